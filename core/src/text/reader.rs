//! One document into pairs of a unit and how often it is there.

use super::split::Analysis;
use super::texts::TextError;
use super::vocabulary::{Lexicon, NONE};

/// A unit's number and its count in one document.
pub type Pair = (u32, u32);

/// Reads documents one after another; what it needs for that is kept from one to the next.
pub struct Reader<'a, L> {
    pub vocabulary: L,
    analysis: Analysis<'a>,
    tally: Tally,
    folded: Vec<u8>,
    padded: Vec<u8>,
    window: Vec<usize>,
    /// The n-grams of one, two, … words that end with the word before.
    recent: Vec<u32>,
    pairs: Vec<Pair>,
}

/// How often each node was met in one document.
#[derive(Default)]
struct Tally {
    counts: Vec<u32>,
    met: Vec<u32>,
}

impl Tally {
    #[inline]
    fn add(&mut self, node: u32) {
        let place = node as usize;
        if place >= self.counts.len() {
            self.counts.resize((place + 1).next_power_of_two(), 0);
        }
        let count = &mut self.counts[place];
        if *count == 0 {
            self.met.push(node);
        }
        *count = count.saturating_add(1);
    }
}

impl<'a, L: Lexicon> Reader<'a, L> {
    pub fn new(analysis: Analysis<'a>, vocabulary: L) -> Self {
        Self {
            vocabulary,
            analysis,
            tally: Tally::default(),
            folded: Vec::new(),
            padded: Vec::new(),
            window: Vec::new(),
            recent: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// The pairs of a document, in the order of first appearance. `document` is its number, for errors.
    pub fn read(&mut self, document: usize, text: &[u8]) -> Result<&[Pair], TextError> {
        let Self { vocabulary, analysis, tally, folded, padded, window, recent, pairs } = self;
        analysis.alphabet.fold(document, text, folded)?;
        if !analysis.kind.is_words() {
            analysis.characters(folded, padded, window, |unit| {
                let node = vocabulary.word(unit, true);
                if node != NONE {
                    tally.add(node);
                }
            });
        } else if analysis.longest == 1 {
            analysis.words(folded, |word| {
                let node = vocabulary.word(word, true);
                if node != NONE && !vocabulary.is_stop(node) {
                    tally.add(node);
                }
            });
        } else {
            recent.clear();
            analysis.words(folded, |word| {
                let node = vocabulary.word(word, analysis.shortest == 1);
                if node == NONE || !vocabulary.is_stop(node) {
                    add_grams(vocabulary, analysis, recent, tally, node);
                }
            });
        }
        pairs.clear();
        for node in tally.met.drain(..) {
            let count = std::mem::take(&mut tally.counts[node as usize]);
            let unit = vocabulary.unit(node);
            if unit != NONE {
                pairs.push((unit, count));
            }
        }
        Ok(pairs)
    }
}

/// Counts the n-grams that end with `word`, and keeps them for the next word to continue.
#[inline]
fn add_grams<L: Lexicon>(vocabulary: &mut L, analysis: &Analysis, recent: &mut Vec<u32>, tally: &mut Tally, word: u32) {
    let mut gram = word;
    for n in 1..=analysis.longest.min(recent.len() + 1) {
        if n >= analysis.shortest && gram != NONE {
            tally.add(gram);
        }
        let Some(left) = recent.get_mut(n - 1) else {
            recent.push(gram);
            break;
        };
        let before = std::mem::replace(left, gram);
        if n == analysis.longest {
            break;
        }
        gram = if before == NONE || word == NONE {
            NONE
        } else {
            vocabulary.gram(before, word, n + 1 >= analysis.shortest)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Alphabet, Invalid, Kind, Vocabulary};
    use super::*;

    fn counts(shortest: usize, longest: usize, stops: &[&str], texts: &[&str]) -> (Vec<String>, Vec<Vec<Pair>>) {
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let analysis = Analysis { kind: Kind::Words { least: 1 }, shortest, longest, alphabet };
        let mut reader = Reader::new(analysis, Vocabulary::growing(stops.iter().map(|stop| stop.as_bytes())));
        let rows = texts.iter().map(|text| reader.read(0, text.as_bytes()).unwrap().to_vec()).collect();
        let (offsets, bytes) = reader.vocabulary.terms();
        let text = |pair: &[i64]| String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap();
        (offsets.windows(2).map(text).collect(), rows)
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
        let analysis = Analysis { kind: Kind::Words { least: 1 }, shortest: 1, longest: 3, alphabet };
        let terms = [&b"b c d"[..], b"a", b"c d"];
        let vocabulary = Vocabulary::known(std::iter::empty(), terms.into_iter(), true);
        let mut reader = Reader::new(analysis, &vocabulary);
        assert_eq!(reader.read(0, b"a b c d x c d a").unwrap(), [(1, 2), (2, 2), (0, 1)]);
    }
}
