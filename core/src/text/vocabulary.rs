//! Units and their numbers.
//!
//! Words, and runs of characters, are kept as bytes. An n-gram of words is a pair of numbers: of all its words but the last,
//! and of the last. So the text of a long unit is written only once the vocabulary is asked for its terms. All of these are
//! *nodes*; those that are counted are *units*, numbered on their own, in the order of their first appearance.

use super::lexicon::Lexicon;
use super::slots::{GRAM, NAMED, Name, Slots};

pub const NONE: u32 = u32::MAX;

/// What a node is made of: a word by its place in the arena and its length, an n-gram by its two nodes.
#[derive(Clone, Copy)]
struct Node {
    place: u64,
    length: u32,
    hash: u32,
}

impl Node {
    /// All words of an n-gram but the last, and the last; None of a word.
    fn parts(&self) -> Option<(u32, u32)> {
        (self.length == GRAM).then_some(((self.place >> 32) as u32, self.place as u32))
    }
}

pub struct Vocabulary {
    pub slots: Slots,
    nodes: Vec<Node>,
    /// The unit of each node.
    numbers: Vec<u32>,
    arena: Vec<u8>,
    units: u32,
    /// Words below this node are passed over.
    stops: u32,
}

impl Vocabulary {
    /// An empty vocabulary that takes in what it meets, but for the words to stop.
    pub fn growing<'a>(stops: impl Iterator<Item = &'a [u8]>) -> Self {
        let (nodes, numbers, arena) = (Vec::new(), Vec::new(), Vec::new());
        let mut vocabulary = Self { slots: Slots::new(), nodes, numbers, arena, units: 0, stops: 0 };
        for word in stops {
            vocabulary.add(word, false);
        }
        vocabulary.stops = vocabulary.nodes.len() as u32;
        vocabulary
    }

    /// The vocabulary of these terms, in their order. Terms are split at blanks if units are n-grams of words.
    pub fn known<'a>(
        stops: impl Iterator<Item = &'a [u8]>,
        terms: impl Iterator<Item = &'a [u8]>,
        grams: bool,
    ) -> Self {
        let mut vocabulary = Self::growing(stops);
        for term in terms {
            let node = if grams {
                let mut words = term.split(|&byte| byte == b' ');
                let first = vocabulary.add(words.next().unwrap_or(term), false);
                words.fold(first, |left, word| {
                    let last = vocabulary.add(word, false);
                    vocabulary.gram(left, last, false)
                })
            } else {
                vocabulary.add(term, false)
            };
            vocabulary.numbers[node as usize] = vocabulary.units;
            vocabulary.units += 1;
        }
        vocabulary
    }

    pub fn units(&self) -> usize {
        self.units as usize
    }

    /// The number of a unit, `NONE` if the node is none.
    #[inline]
    pub fn unit(&self, node: u32) -> u32 {
        self.numbers[node as usize]
    }

    #[inline]
    pub fn is_stop(&self, node: u32) -> bool {
        node < self.stops
    }

    /// The node of a word, or where it would go.
    #[inline]
    pub fn find_word(&self, name: &Name, text: &[u8]) -> Result<u32, usize> {
        let same = |node| name.length as usize <= NAMED || self.text(node) == &text[..name.length as usize];
        self.slots.find(name, same)
    }

    /// Takes in a word that was not found.
    #[cold]
    pub fn add_word(&mut self, slot: usize, name: &Name, text: &[u8], counted: bool) -> u32 {
        let place = self.arena.len() as u64;
        self.arena.extend_from_slice(&text[..name.length as usize]);
        self.insert(slot, name, place, counted)
    }

    /// Takes in an n-gram that was not found.
    pub fn add_gram(&mut self, slot: usize, name: &Name, counted: bool) -> u32 {
        self.insert(slot, name, name.first, counted)
    }

    fn insert(&mut self, slot: usize, name: &Name, place: u64, counted: bool) -> u32 {
        let node = i32::try_from(self.nodes.len()).expect("expected fewer than 2^31 different units") as u32;
        self.nodes.push(Node { place, length: name.length, hash: name.hash });
        self.numbers.push(if counted { self.units } else { NONE });
        self.units += u32::from(counted);
        self.slots.insert(slot, name, node, |node| self.nodes[node as usize].hash);
        node
    }

    pub fn add(&mut self, word: &[u8], counted: bool) -> u32 {
        let name = self.slots.word(word, word.len());
        self.word(&name, word, counted)
    }

    /// The bytes of a word's node.
    fn text(&self, node: u32) -> &[u8] {
        let Node { place, length, .. } = self.nodes[node as usize];
        &self.arena[place as usize..place as usize + length as usize]
    }

    /// Takes in all that another vocabulary of the same stop words holds, and returns the new number of each of its units.
    pub fn absorb(&mut self, other: &Self) -> Vec<u32> {
        let mut nodes = Vec::with_capacity(other.nodes.len());
        let mut units = Vec::with_capacity(other.units());
        for (number, node) in other.nodes.iter().enumerate() {
            let counted = other.numbers[number] != NONE;
            let here = match node.parts() {
                None => self.add(other.text(number as u32), counted),
                Some((left, last)) => self.gram(nodes[left as usize], nodes[last as usize], counted),
            };
            if counted {
                units.push(self.unit(here));
            }
            nodes.push(here);
        }
        units
    }

    /// The text of each unit, in their order: where each begins, and all bytes in a row.
    pub fn terms(&self) -> (Vec<i64>, Vec<u8>) {
        let (mut offsets, mut bytes, mut words) = (vec![0], Vec::new(), Vec::new());
        offsets.reserve_exact(self.units());
        for (number, _) in self.numbers.iter().enumerate().filter(|(_, unit)| **unit != NONE) {
            let mut at = number as u32;
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
        (offsets, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(vocabulary: &Vocabulary) -> Vec<String> {
        let (offsets, bytes) = vocabulary.terms();
        let text = |pair: &[i64]| String::from_utf8(bytes[pair[0] as usize..pair[1] as usize].to_vec()).unwrap();
        offsets.windows(2).map(text).collect()
    }

    #[test]
    fn words_are_numbered_as_they_come() {
        let mut vocabulary = Vocabulary::growing([&b"the"[..]].into_iter());
        let words: Vec<String> = (0..5000).map(|i| format!("{}word{i}", "x".repeat(i % 20))).collect();
        for _ in 0..2 {
            for (i, word) in words.iter().enumerate() {
                let node = vocabulary.add(word.as_bytes(), true);
                assert_eq!(vocabulary.unit(node), i as u32);
            }
        }
        let stop = vocabulary.add(b"the", true);
        assert!(vocabulary.is_stop(stop));
        assert_eq!(strings(&vocabulary), words);
        let mut nul = Vocabulary::growing(std::iter::empty());
        assert_ne!(nul.add(b"a", true), nul.add(b"a\0", true));
    }

    #[test]
    fn absorbing_is_reading_on() {
        let read = |vocabulary: &mut Vocabulary, words: &[&str]| {
            let mut before = NONE;
            for word in words {
                let node = vocabulary.add(word.as_bytes(), true);
                if before != NONE {
                    vocabulary.gram(before, node, true);
                }
                before = node;
            }
        };
        let (first, second) = (["a", "b", "a", "b"], ["c", "a", "b", "a"]);
        let mut whole = Vocabulary::growing(std::iter::empty());
        read(&mut whole, &first);
        read(&mut whole, &second);
        let (mut left, mut right) = (Vocabulary::growing(std::iter::empty()), Vocabulary::growing(std::iter::empty()));
        read(&mut left, &first);
        read(&mut right, &second);
        let numbers = left.absorb(&right);
        assert_eq!(strings(&left), strings(&whole));
        let places: Vec<u32> =
            strings(&right).iter().map(|t| strings(&whole).iter().position(|w| w == t).unwrap() as u32).collect();
        assert_eq!(numbers, places);
    }

    #[test]
    fn known_terms() {
        let terms = [&b"b"[..], b"a b", b"c d e"];
        let known = Vocabulary::known(std::iter::empty(), terms.into_iter(), true);
        let mut vocabulary = &known;
        let look = |word: &[u8]| known.find_word(&known.slots.word(word, word.len()), word).unwrap_or(NONE);
        let (a, b) = (look(b"a"), look(b"b"));
        assert_eq!((vocabulary.unit(a), vocabulary.unit(b)), (NONE, 0));
        let gram = vocabulary.gram(a, b, true);
        assert_eq!(vocabulary.unit(gram), 1);
        assert_eq!(vocabulary.gram(b, a, true), NONE);
        assert_eq!(look(b"z"), NONE);
        assert_eq!(vocabulary.units(), 3);
    }
}
