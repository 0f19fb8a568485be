//! Text to counts: UTF-8 in, counts of units out. Units are words, or runs of characters, and n-grams of them.
//!
//! | file | what it does |
//! |---|---|
//! | `texts.rs` | documents as Arrow string buffers, read where they lie |
//! | `alphabet.rs` | which characters form words, what lower case and the loss of accents make of them |
//! | `marks.rs` | which bytes belong to words, 64 at a time |
//! | `split.rs` | one document, folded, into its units |
//! | `slots.rs` | a hash table |
//! | `vocabulary.rs` | words, n-grams and their numbers; two vocabularies into one |
//! | `lexicon.rs` | what a reader asks of a vocabulary |
//! | `units.rs` | units that threads read with vocabularies of their own |
//! | `reader.rs` | one document into (unit, count) pairs |
//! | `sinks.rs` | what becomes of the pairs: rows of a sparse matrix |
//! | `amounts.rs`, `by_unit.rs`, `merge.rs` | sums of classes with weights and shares, and two of them into one |
//! | `scores.rs` | scores of documents by those of their units |
//! | `hashing.rs` | rows of a sparse matrix whose columns are hashes |
//! | `sparse.rs` | terms sorted, columns renumbered, rows made columns |
//!
//! # How to add a sink
//!
//! A [`reader::Reader`] turns a document into pairs of a unit's number and its count in that document:
//!
//! ```text
//! let mut reader = Reader::new(analysis, lexicon);
//! let pairs: &[Pair] = reader.read(document, texts.get(document)?)?;     // valid until the next call
//! ```
//!
//! If its lexicon is a [`Known`] vocabulary, which threads share, pairs have the positions of the terms that were given, and
//! units outside it are passed over. If it is a [`Vocabulary`] of its own, which grows, they have nodes:
//! [`units::read_pieces`] shares the work, and tells which unit each node is. Units are numbered by their first
//! appearance, so that it does not matter how documents were cut into pieces, or who read them.

pub mod alphabet;
pub mod amounts;
pub mod by_unit;
pub mod hashing;
pub mod lexicon;
pub mod marks;
pub mod merge;
pub mod reader;
pub mod scores;
pub mod sinks;
pub mod slots;
pub mod sparse;
pub mod split;
pub mod texts;
pub mod units;
pub mod vocabulary;

pub use alphabet::{Alphabet, Invalid};
pub use split::{Analysis, Kind};
pub use texts::{Arrow, Listed, Offsets, TextError, Texts};
pub use vocabulary::{Known, Terms, Vocabulary};
