//! One document into pairs of a unit and how often it is there.

use super::lexicon::Lexicon;
use super::slots::Name;
use super::split::Analysis;
use super::texts::TextError;
use super::vocabulary::NONE;

/// A unit's number and its count in one document.
pub type Pair = (u32, u32);

/// Words named ahead of being looked up, so that their places in memory are there by then.
const AHEAD: usize = 16;

/// Reads documents one after another; what it needs for that is kept from one to the next.
pub struct Reader<'a, L> {
    pub vocabulary: L,
    analysis: Analysis<'a>,
    tally: Tally,
    folded: Vec<u8>,
    padded: Vec<u8>,
    window: Vec<usize>,
    /// The words of a document, and the n-grams that end with each of them.
    words: Vec<u32>,
    grams: Vec<u32>,
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
            words: Vec::new(),
            grams: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// The pairs of a document, in the order of first appearance. `document` is its number, for errors.
    pub fn read(&mut self, document: usize, text: &[u8]) -> Result<&[Pair], TextError> {
        let Self { vocabulary, analysis, tally, folded, padded, window, words, grams, pairs } = self;
        analysis.fold(document, text, folded)?;
        if analysis.kind.is_words() {
            folded.extend_from_slice(b"        "); // no words, and the last one is named as fast as any
            find_words(vocabulary, analysis, folded, words);
            if analysis.shortest == 1 {
                words.iter().filter(|&&word| word != NONE).for_each(|&word| tally.add(word));
            }
            grams.clone_from(words);
            for n in 2..=analysis.longest.min(words.len()) {
                extend_grams(vocabulary, words, grams, n, n >= analysis.shortest);
                if n >= analysis.shortest {
                    grams[n - 1..].iter().filter(|&&gram| gram != NONE).for_each(|&gram| tally.add(gram));
                }
            }
        } else {
            analysis.characters(folded, padded, window, |unit| {
                let name = vocabulary.all().slots.word(unit, unit.len());
                let node = vocabulary.word(&name, unit, true);
                if node != NONE {
                    tally.add(node);
                }
            });
        }
        pairs.clear();
        for node in tally.met.drain(..) {
            let count = std::mem::take(&mut tally.counts[node as usize]);
            let unit = vocabulary.all().unit(node);
            if unit != NONE {
                pairs.push((unit, count));
            }
        }
        Ok(pairs)
    }
}

/// Finds the words of a text, but for those to stop.
fn find_words<L: Lexicon>(vocabulary: &mut L, analysis: &Analysis, text: &[u8], words: &mut Vec<u32>) {
    words.clear();
    let mut find = |vocabulary: &mut L, (name, start): &(Name, usize)| {
        let node = vocabulary.word(name, &text[*start..], analysis.shortest == 1);
        if node == NONE || !vocabulary.all().is_stop(node) {
            words.push(node);
        }
    };
    let mut ahead = [None; AHEAD];
    let mut next = 0;
    analysis.words(text, |tail, length| {
        let name = vocabulary.all().slots.word(tail, length);
        vocabulary.all().slots.expect(&name);
        if let Some(named) = ahead[next % AHEAD].replace((name, text.len() - tail.len())) {
            find(vocabulary, &named);
        }
        next += 1;
    });
    for i in next..next + AHEAD {
        if let Some(named) = &ahead[i % AHEAD] {
            find(vocabulary, named);
        }
    }
}

/// Makes n-grams of n words of those of one less: each is the one that ends a word before, and the word.
fn extend_grams<L: Lexicon>(vocabulary: &mut L, words: &[u32], grams: &mut [u32], n: usize, counted: bool) {
    let mut left = grams[n - 2];
    for i in n - 1..words.len() {
        if i + AHEAD < words.len() {
            let slots = &vocabulary.all().slots;
            slots.expect(&slots.gram(grams[i + AHEAD - 1], words[i + AHEAD]));
        }
        let gram = if left == NONE || words[i] == NONE { NONE } else { vocabulary.gram(left, words[i], counted) };
        left = std::mem::replace(&mut grams[i], gram);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Alphabet, Invalid, Kind, Vocabulary};
    use super::*;

    fn counts(shortest: usize, longest: usize, stops: &[&str], texts: &[&str]) -> (Vec<String>, Vec<Vec<Pair>>) {
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let analysis = Analysis { kind: Kind::Words { single: true }, shortest, longest, alphabet };
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
        let analysis = Analysis { kind: Kind::Words { single: true }, shortest: 1, longest: 3, alphabet };
        let terms = [&b"b c d"[..], b"a", b"c d"];
        let vocabulary = Vocabulary::known(std::iter::empty(), terms.into_iter(), true);
        let mut reader = Reader::new(analysis, &vocabulary);
        assert_eq!(reader.read(0, b"a b c d x c d a").unwrap(), [(1, 2), (2, 2), (0, 1)]);
    }
}
