//! Text to counts: UTF-8 in, counts of units out. Units are words, or runs of characters, and n-grams of them.
//!
//! | file | what it does |
//! |---|---|
//! | `texts.rs` | documents as Arrow string buffers, read where they lie |
//! | `alphabet.rs` | which characters form words, what lower case and the loss of accents make of them |
//! | `split.rs` | one document, folded, into its units |
//! | `slots.rs` | a hash table |
//! | `vocabulary.rs` | units and their numbers; two vocabularies into one |
//! | `lexicon.rs` | what a reader asks of a vocabulary |
//! | `reader.rs` | one document into (unit, count) pairs |
//! | `sinks.rs` | what becomes of the pairs: rows of a sparse matrix |
//! | `amounts.rs`, `merge.rs` | sums of classes with weights and shares, and two of them into one |
//! | `scores.rs` | scores of documents by those of their units |
//! | `hashing.rs` | rows of a sparse matrix whose columns are hashes |
//! | `sparse.rs` | terms sorted, columns renumbered, rows made columns |
//!
//! # How to add a sink
//!
//! A [`reader::Reader`] turns a document into pairs of a unit's number and its count in that document:
//!
//! ```text
//! let mut reader = Reader::new(analysis, vocabulary);
//! let pairs: &[Pair] = reader.read(document, texts.get(document)?)?;     // valid until the next call
//! ```
//!
//! A reader that owns its vocabulary ([`Vocabulary::growing`]) numbers units in the order of their first appearance. One that
//! borrows it (`&`[`Vocabulary::known`]) only looks up: pairs have the places of the terms that were given, units outside
//! it are passed over, and threads share it. Work
//! is shared with [`sinks::each_piece`], which runs a function on consecutive runs of documents, each with a reader of
//! its own. Growing vocabularies are put together by [`Vocabulary::absorb`], in the order of the documents, which
//! returns the new number of each unit. As numbers follow from the first appearance and counts are whole, neither
//! depends on how documents were cut into pieces.

pub mod alphabet;
pub mod amounts;
pub mod hashing;
pub mod lexicon;
pub mod merge;
pub mod reader;
pub mod scores;
pub mod sinks;
pub mod slots;
pub mod sparse;
pub mod split;
pub mod texts;
pub mod vocabulary;

pub use alphabet::{Alphabet, Invalid};
pub use split::{Analysis, Kind};
pub use texts::{Offsets, TextError, Texts};
pub use vocabulary::Vocabulary;
