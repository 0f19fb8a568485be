//! One document into pairs of a unit and how often it is there.

use super::lexicon::Lexicon;
use super::slots::{Gram, Name, Word};
use super::split::Analysis;
use super::texts::TextError;
use super::vocabulary::NONE;

/// A unit's number and its count in one document.
pub type Pair = (u32, u32);

/// Words, or n-grams, named ahead of being looked up, so that their positions in memory are there by then.
const AHEAD: usize = 64;

/// Reads documents one after another; what it needs for that is kept from one to the next.
pub struct Reader<'a, L> {
    pub lexicon: L,
    analysis: Analysis<'a>,
    tally: Tally,
    folded: Vec<u8>,
    padded: Vec<u8>,
    window: Vec<usize>,
    /// The words of a document, and the n-grams that end with each of them.
    words: Vec<u32>,
    grams: Vec<u32>,
    named: Vec<(Name<Word>, usize)>,
    pairs: Vec<Pair>,
}

/// How often each node was met in one document.
#[derive(Default)]
struct Tally {
    counts: Vec<u32>,
    met: Vec<u32>,
}

impl Tally {
    fn add(&mut self, nodes: &[u32], all: usize) {
        if self.counts.len() < all {
            self.counts.resize(all.next_power_of_two(), 0);
        }
        for &node in nodes.iter().filter(|&&node| node != NONE) {
            let count = &mut self.counts[node as usize];
            if *count == 0 {
                self.met.push(node);
            }
            *count = count.saturating_add(1);
        }
    }
}

impl<'a, L: Lexicon> Reader<'a, L> {
    pub fn new(analysis: Analysis<'a>, lexicon: L) -> Self {
        Self {
            lexicon,
            analysis,
            tally: Tally::default(),
            folded: Vec::new(),
            padded: Vec::new(),
            window: Vec::new(),
            words: Vec::new(),
            grams: Vec::new(),
            named: Vec::with_capacity(AHEAD),
            pairs: Vec::new(),
        }
    }

    /// The pairs of a document, in the order of first appearance. `document` is its number, for errors.
    pub fn read(&mut self, document: usize, text: &[u8]) -> Result<&[Pair], TextError> {
        self.analysis.fold(document, text, &mut self.folded)?;
        if self.analysis.kind.is_words() {
            self.find_words();
        } else {
            self.find_characters();
        }
        let Self { lexicon, tally, pairs, .. } = self;
        pairs.clear();
        for node in tally.met.drain(..) {
            let count = std::mem::take(&mut tally.counts[node as usize]);
            let unit = lexicon.unit(node);
            if unit != NONE {
                pairs.push((unit, count));
            }
        }
        Ok(pairs)
    }

    fn find_words(&mut self) {
        let Self { lexicon, analysis, tally, folded, words, grams, named, .. } = self;
        folded.extend_from_slice(b"                "); // no words, and the last one is named as fast as any
        words.clear();
        let text: &[u8] = folded;
        let mut find = |lexicon: &mut L, named: &mut Vec<(Name<Word>, usize)>| {
            for (name, start) in named.drain(..) {
                let node = lexicon.word(&name, &text[start..]);
                if node == NONE || !lexicon.vocabulary().is_stop(node) {
                    words.push(node);
                }
            }
        };
        analysis.words(text, |tail, length| {
            let vocabulary = lexicon.vocabulary();
            let name = vocabulary.seeds.word(tail, length);
            vocabulary.words.expect(name.hash);
            named.push((name, text.len() - tail.len()));
            if named.len() == AHEAD {
                find(lexicon, named);
            }
        });
        find(lexicon, named);
        if analysis.shortest == 1 {
            tally.add(words, lexicon.vocabulary().nodes());
        }
        if analysis.longest == 1 {
            return;
        }
        grams.clone_from(words);
        for n in 2..=analysis.longest.min(words.len()) {
            extend_grams(lexicon, words, grams, n);
            if n >= analysis.shortest {
                tally.add(&grams[n - 1..], lexicon.vocabulary().nodes());
            }
        }
    }

    fn find_characters(&mut self) {
        let Self { lexicon, analysis, tally, folded, padded, window, words, .. } = self;
        words.clear();
        analysis.characters(folded, padded, window, |unit| {
            let name = lexicon.vocabulary().seeds.word(unit, unit.len());
            let node = lexicon.word(&name, unit);
            if node == NONE || !lexicon.vocabulary().is_stop(node) {
                words.push(node);
            }
            if words.len() == AHEAD {
                tally.add(words, lexicon.vocabulary().nodes());
                words.clear();
            }
        });
        tally.add(words, lexicon.vocabulary().nodes());
    }
}

/// Makes n-grams of n words of those of one less: each is the one that ends a word before, and the word.
fn extend_grams<L: Lexicon>(lexicon: &mut L, words: &[u32], grams: &mut [u32], n: usize) {
    let mut names = [Name::<Gram>::default(); AHEAD];
    let mut before = grams[n - 2];
    for first in (n - 1..words.len()).step_by(AHEAD) {
        let some = first..(first + AHEAD).min(words.len());
        let vocabulary = lexicon.vocabulary();
        for (i, name) in some.clone().zip(&mut names) {
            *name = vocabulary.seeds.gram(before, words[i]);
            vocabulary.grams.expect(name.hash);
            before = grams[i];
        }
        for (i, name) in some.zip(&names) {
            let known = words[i] != NONE && name.key >> 32 != u64::from(NONE);
            grams[i] = if known { lexicon.gram(name) } else { NONE };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::vocabulary::Known;
    use super::super::{Alphabet, Invalid, Kind, Vocabulary};
    use super::*;

    fn counts(shortest: usize, longest: usize, stops: &[&str], texts: &[&str]) -> (Vec<String>, Vec<Vec<Pair>>) {
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let analysis = Analysis { kind: Kind::Words { single: true }, shortest, longest, alphabet };
        let mut reader = Reader::new(analysis, Vocabulary::growing(stops.iter().map(|stop| stop.as_bytes())));
        let rows: Vec<Vec<Pair>> = texts.iter().map(|text| reader.read(0, text.as_bytes()).unwrap().to_vec()).collect();
        let nodes = 0..reader.lexicon.nodes() as u32;
        let units: Vec<u32> = nodes.filter(|&node| reader.lexicon.is_unit(node, shortest)).collect();
        let number = |&(node, count): &Pair| (units.iter().position(|&unit| unit == node).unwrap() as u32, count);
        let rows = rows.iter().map(|row| row.iter().map(number).collect()).collect();
        (reader.lexicon.terms(&units).strings(), rows)
    }

    #[test]
    fn words_are_counted_document_by_document() {
        let (terms, rows) = counts(1, 1, &["the"], &["The cat, the CAT", "", "a cat"]);
        assert_eq!(terms, ["cat", "a"]);
        assert_eq!(rows, [vec![(0, 2)], vec![], vec![(1, 1), (0, 1)]]);
    }

    #[test]
    fn n_grams_leave_out_stop_words() {
        let (terms, rows) = counts(2, 3, &["the"], &["a the b c", "b c"]);
        assert_eq!(terms, ["a b", "b c", "a b c"]);
        assert_eq!(rows, [vec![(0, 1), (1, 1), (2, 1)], vec![(1, 1)]]);
        assert_eq!(counts(3, 3, &[], &["a b", "a b c d"]).0, ["a b c", "b c d"]);
        assert_eq!(counts(1, 2, &[], &["a a a"]).1, [vec![(0, 3), (1, 2)]]);
    }

    #[test]
    fn unknown_words_are_passed_over() {
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let analysis = Analysis { kind: Kind::Words { single: true }, shortest: 1, longest: 3, alphabet };
        let terms = [&b"b c d"[..], b"a", b"c d"];
        let known = Known::new(std::iter::empty(), terms.into_iter(), true);
        let mut reader = Reader::new(analysis, &known);
        assert_eq!(reader.read(0, b"a b c d x c d a").unwrap(), [(1, 2), (2, 2), (0, 1)]);
    }
}
