//! Units and their numbers.
//!
//! Words, and runs of characters, are kept as bytes. An n-gram of words is a pair of numbers: of all its words but the last,
//! and of the last. So the text of a long unit is written only once the vocabulary is asked for its terms. All of these are
//! *nodes*, numbered as they come; those that are counted are *units*, with numbers of their own.

use super::lexicon::Lexicon;
use super::slots::{Gram, NAMED, Name, Seeds, Slots, Word};

pub const NONE: u32 = u32::MAX;

/// In the place of the length of a word: this is an n-gram.
const GRAM: u32 = u32::MAX;
/// Nodes whose positions are asked for ahead of being looked up.
const AHEAD: usize = 16;

/// What a node is made of: a word by its position in the arena and its length, an n-gram by its two nodes.
#[derive(Clone, Copy)]
struct Node {
    position: u64,
    length: u32,
    hash: u32,
}

impl Node {
    fn gram(name: &Name<Gram>) -> Self {
        Self { position: name.key, length: GRAM, hash: name.hash }
    }

    /// All words of an n-gram but the last, and the last; None of a word.
    fn parts(&self) -> Option<(u32, u32)> {
        (self.length == GRAM).then_some(((self.position >> 32) as u32, self.position as u32))
    }
}

pub struct Vocabulary {
    pub seeds: Seeds,
    pub words: Slots<Word>,
    pub grams: Slots<Gram>,
    nodes: Vec<Node>,
    arena: Vec<u8>,
    /// Words below this node are passed over.
    stops: u32,
}

impl Vocabulary {
    /// An empty vocabulary that takes in what it meets, but for the words to stop.
    pub fn growing<'a>(stops: impl Iterator<Item = &'a [u8]>) -> Self {
        let (words, grams) = (Slots::new(), Slots::new());
        let mut vocabulary =
            Self { seeds: Seeds::of_process(), words, grams, nodes: Vec::new(), arena: Vec::new(), stops: 0 };
        for word in stops {
            vocabulary.add(word);
        }
        vocabulary.stops = vocabulary.nodes() as u32;
        vocabulary
    }

    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub fn is_stop(&self, node: u32) -> bool {
        node < self.stops
    }

    /// Whether a node is a unit, if units are of this number of words at least.
    pub fn is_unit(&self, node: u32, shortest: usize) -> bool {
        let before = |node: &u32| self.nodes[*node as usize].parts().map(|(left, _)| left);
        !self.is_stop(node) && std::iter::successors(Some(node), before).take(shortest).count() == shortest
    }

    /// The node of a word, or where it would go.
    #[inline]
    pub fn find_word(&self, name: &Name<Word>, text: &[u8]) -> Result<u32, usize> {
        let length = name.key.length as usize;
        self.words.find(name, |node| length <= NAMED || self.text(node) == &text[..length])
    }

    /// Takes in a word that was not found.
    #[cold]
    pub fn add_word(&mut self, slot: usize, name: &Name<Word>, text: &[u8]) -> u32 {
        let position = self.arena.len() as u64;
        self.arena.extend_from_slice(&text[..name.key.length as usize]);
        let node = self.next(Node { position, length: name.key.length, hash: name.hash });
        self.words.insert(slot, name.key, node, |_, node| self.nodes[node as usize].hash);
        node
    }

    /// Takes in an n-gram that was not found.
    pub fn add_gram(&mut self, slot: usize, name: &Name<Gram>) -> u32 {
        let node = self.next(Node::gram(name));
        self.grams.insert(slot, name.key, node, |key, _| self.seeds.of_gram(key));
        node
    }

    fn next(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        i32::try_from(self.nodes.len() - 1).expect("expected fewer than 2^31 different units") as u32
    }

    pub fn add(&mut self, word: &[u8]) -> u32 {
        let name = self.seeds.word(word, word.len());
        self.word(&name, word)
    }

    /// The node of a word and those that follow it.
    pub fn add_words<'a>(&mut self, mut words: impl Iterator<Item = &'a [u8]>) -> u32 {
        let first = self.add(words.next().unwrap_or(b""));
        words.fold(first, |left, word| {
            let last = self.add(word);
            self.gram(&self.seeds.gram(left, last))
        })
    }

    /// The bytes of a word's node.
    fn text(&self, node: u32) -> &[u8] {
        let Node { position, length, .. } = self.nodes[node as usize];
        &self.arena[position as usize..position as usize + length as usize]
    }

    /// Takes in all that another vocabulary of the same stop words holds, and returns the node here of each node there. What
    /// comes from the `last` one is only told apart from what was here before, and not found again.
    pub fn absorb(&mut self, other: &Self, last: bool) -> Vec<u32> {
        let mut here: Vec<u32> = Vec::with_capacity(other.nodes());
        let before = self.nodes() as u32;
        for (i, node) in other.nodes.iter().enumerate() {
            if let Some(later) = other.nodes.get(i + AHEAD) {
                match later.parts() {
                    None => self.words.expect(later.hash),
                    Some((left, word)) => {
                        if let Some((&left, &word)) = here.get(left as usize).zip(here.get(word as usize)) {
                            self.grams.expect(self.seeds.gram(left, word).hash);
                        }
                    }
                }
            }
            here.push(match node.parts() {
                None => self.add(other.text(i as u32)),
                Some((left, word)) => {
                    let (left, word) = (here[left as usize], here[word as usize]);
                    let name = self.seeds.gram(left, word);
                    if last {
                        // An n-gram of a word that was not here before was not here, either.
                        let found = if left.max(word) < before { self.grams.find(&name, |_| true).ok() } else { None };
                        found.unwrap_or_else(|| self.next(Node::gram(&name)))
                    } else {
                        self.gram(&name)
                    }
                }
            });
        }
        here
    }

    /// The texts of some nodes.
    pub fn terms(&self, nodes: &[u32]) -> Terms {
        let (mut offsets, mut bytes, mut words) = (vec![0], Vec::new(), Vec::new());
        offsets.reserve_exact(nodes.len());
        for &node in nodes {
            let mut at = node;
            while let Some((left, last)) = self.nodes[at as usize].parts() {
                words.push(last);
                at = left;
            }
            bytes.extend_from_slice(self.text(at));
            while let Some(word) = words.pop() {
                bytes.push(b' ');
                bytes.extend_from_slice(self.text(word));
            }
            offsets.push(bytes.len() as i64);
        }
        Terms { offsets, bytes }
    }
}

/// The texts of units: where each begins, and all bytes in a row.
#[derive(Debug, PartialEq)]
pub struct Terms {
    pub offsets: Vec<i64>,
    pub bytes: Vec<u8>,
}

impl Terms {
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    #[cfg(test)]
    pub fn strings(&self) -> Vec<String> {
        let text = |pair: &[i64]| String::from_utf8(self.bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap();
        self.offsets.windows(2).map(text).collect()
    }
}

/// A vocabulary whose units are settled.
pub struct Known {
    pub vocabulary: Vocabulary,
    /// The unit of each node.
    units: Vec<u32>,
    pub number: usize,
}

impl Known {
    /// The vocabulary of these terms, in their order. Terms are split at blanks if units are n-grams of words.
    pub fn new<'a>(stops: impl Iterator<Item = &'a [u8]>, terms: impl Iterator<Item = &'a [u8]>, grams: bool) -> Self {
        let mut vocabulary = Vocabulary::growing(stops);
        let mut units: Vec<u32> = Vec::new();
        let mut number = 0;
        for term in terms {
            let node =
                if grams { vocabulary.add_words(term.split(|&byte| byte == b' ')) } else { vocabulary.add(term) };
            units.resize(vocabulary.nodes().max(units.len()), NONE);
            units[node as usize] = number as u32;
            number += 1;
        }
        units.resize(vocabulary.nodes(), NONE);
        Self { vocabulary, units, number }
    }

    /// The number of a unit, `NONE` if the node is none.
    #[inline]
    pub fn unit(&self, node: u32) -> u32 {
        self.units[node as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(vocabulary: &Vocabulary) -> Vec<String> {
        let nodes: Vec<u32> = (0..vocabulary.nodes() as u32).filter(|&node| vocabulary.is_unit(node, 1)).collect();
        vocabulary.terms(&nodes).strings()
    }

    #[test]
    fn words_are_numbered_as_they_come() {
        let mut vocabulary = Vocabulary::growing([&b"the"[..]].into_iter());
        let words: Vec<String> = (0..5000).map(|i| format!("{}word{i}", "x".repeat(i % 20))).collect();
        for _ in 0..2 {
            for (i, word) in words.iter().enumerate() {
                assert_eq!(vocabulary.add(word.as_bytes()), 1 + i as u32);
            }
        }
        let stop = vocabulary.add(b"the");
        assert!(vocabulary.is_stop(stop));
        assert_eq!(strings(&vocabulary), words);
        let mut nul = Vocabulary::growing(std::iter::empty());
        assert_ne!(nul.add(b"a"), nul.add(b"a\0"));
    }

    #[test]
    fn absorbing_takes_in_what_is_new() {
        for last in [false, true] {
            absorbed(last);
        }
    }

    fn absorbed(last: bool) {
        let read = |vocabulary: &mut Vocabulary, words: &[String]| {
            for three in words.windows(3) {
                vocabulary.add_words(three.iter().map(String::as_bytes));
            }
        };
        let words: Vec<String> = (0..2000).map(|i| format!("w{}", i * i % 97)).collect();
        let (mut left, mut right) = (Vocabulary::growing(std::iter::empty()), Vocabulary::growing(std::iter::empty()));
        read(&mut left, &words[..900]);
        read(&mut right, &words[700..]);
        let before = strings(&left);
        let here = left.absorb(&right, last);
        let (after, other) = (strings(&left), strings(&right));
        assert_eq!(after[..before.len()], before);
        assert!(here.iter().zip(&other).all(|(&node, text)| after[node as usize] == *text));
        let mut sorted = after.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), after.len());
    }

    #[test]
    fn known_terms() {
        let terms = [&b"b"[..], b"a b", b"c d e"];
        let known = Known::new(std::iter::empty(), terms.into_iter(), true);
        let (mut lexicon, vocabulary) = (&known, &known.vocabulary);
        let look = |word: &[u8]| vocabulary.find_word(&vocabulary.seeds.word(word, word.len()), word).unwrap_or(NONE);
        let (a, b) = (look(b"a"), look(b"b"));
        assert_eq!((known.unit(a), known.unit(b)), (NONE, 0));
        let gram = lexicon.gram(&vocabulary.seeds.gram(a, b));
        assert_eq!(known.unit(gram), 1);
        assert_eq!(lexicon.gram(&vocabulary.seeds.gram(b, a)), NONE);
        assert_eq!(look(b"z"), NONE);
        assert_eq!(known.number, 3);
    }
}
