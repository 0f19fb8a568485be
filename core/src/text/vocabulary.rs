//! Units and their numbers.
//!
//! Words, and runs of characters, are kept as bytes. An n-gram of words is a pair of numbers: of all its words but the last,
//! and of the last. So the text of a long unit is written only once the vocabulary is asked for its terms. All of these are
//! *nodes*; those that are counted are *units*, numbered on their own, in the order of their first appearance.

use std::hash::{BuildHasher, RandomState};

pub const NONE: u32 = u32::MAX;
/// In the place of the length of a word: this slot holds an n-gram.
const GRAM: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    /// The first eight bytes of a word, or the two nodes of an n-gram.
    key: u64,
    length: u32,
    node: u32,
}

const EMPTY: Slot = Slot { key: 0, length: 0, node: NONE };

/// Where a node that was not found would go.
struct Vacancy {
    place: usize,
    key: u64,
    length: u32,
    hash: u32,
}

/// What a node is made of: a word by its place in the arena, or a node and the word that comes after it.
#[derive(Clone, Copy)]
struct Node {
    left: u32,
    /// The place of a word, or the node of an n-gram's last word.
    last: u32,
    hash: u32,
    unit: u32,
}

/// What a reader asks of a vocabulary. One that is owned grows; one that is borrowed only knows what it knows.
pub trait Lexicon {
    /// The node of a word, `NONE` if it is unknown. `counted`: if it is new, it is a unit.
    fn word(&mut self, text: &[u8], counted: bool) -> u32;
    /// The node of an n-gram: of all its words but the last, and of the last.
    fn gram(&mut self, left: u32, last: u32, counted: bool) -> u32;
    /// The number of a unit, `NONE` if the node is none.
    fn unit(&self, node: u32) -> u32;
    fn is_stop(&self, node: u32) -> bool;
}

impl Lexicon for Vocabulary {
    #[inline]
    fn word(&mut self, text: &[u8], counted: bool) -> u32 {
        self.find_word(text).unwrap_or_else(|vacancy| self.add_word(text, vacancy, counted))
    }

    #[inline]
    fn gram(&mut self, left: u32, last: u32, counted: bool) -> u32 {
        self.find_gram(left, last).unwrap_or_else(|vacancy| self.insert(vacancy, left, last, counted))
    }

    #[inline]
    fn unit(&self, node: u32) -> u32 {
        self.unit_of(node)
    }

    #[inline]
    fn is_stop(&self, node: u32) -> bool {
        node < self.stops
    }
}

impl Lexicon for &Vocabulary {
    #[inline]
    fn word(&mut self, text: &[u8], _counted: bool) -> u32 {
        self.find_word(text).unwrap_or(NONE)
    }

    #[inline]
    fn gram(&mut self, left: u32, last: u32, _counted: bool) -> u32 {
        self.find_gram(left, last).unwrap_or(NONE)
    }

    #[inline]
    fn unit(&self, node: u32) -> u32 {
        self.unit_of(node)
    }

    #[inline]
    fn is_stop(&self, node: u32) -> bool {
        node < self.stops
    }
}

pub struct Vocabulary {
    slots: Vec<Slot>,
    nodes: Vec<Node>,
    arena: Vec<u8>,
    ends: Vec<usize>,
    units: u32,
    /// Words below this node are passed over.
    stops: u32,
    /// So that nobody can choose texts whose words all collide.
    seeds: [u64; 2],
}

impl Vocabulary {
    /// An empty vocabulary that takes in what it meets, but for the words to stop.
    pub fn growing<'a>(stops: impl Iterator<Item = &'a [u8]>) -> Self {
        let random = RandomState::new();
        let mut vocabulary = Self {
            slots: vec![EMPTY; 16],
            nodes: Vec::new(),
            arena: Vec::new(),
            ends: vec![0],
            units: 0,
            stops: 0,
            seeds: [random.hash_one(0), random.hash_one(1) | 1],
        };
        for word in stops {
            vocabulary.word(word, false);
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
                let first = vocabulary.word(words.next().unwrap_or(term), false);
                words.fold(first, |left, word| {
                    let last = vocabulary.word(word, false);
                    vocabulary.gram(left, last, false)
                })
            } else {
                vocabulary.word(term, false)
            };
            vocabulary.nodes[node as usize].unit = vocabulary.units;
            vocabulary.units += 1;
        }
        vocabulary
    }

    pub fn units(&self) -> usize {
        self.units as usize
    }

    fn unit_of(&self, node: u32) -> u32 {
        self.nodes[node as usize].unit
    }

    /// The node of a word, or where it would go.
    #[inline]
    fn find_word(&self, text: &[u8]) -> Result<u32, Vacancy> {
        let key = first_eight(text);
        let length = text.len().min(GRAM as usize - 1) as u32;
        let mut hash = folded_multiply(key ^ self.seeds[0], u64::from(length) ^ self.seeds[1]);
        let mut rest = text;
        while rest.len() > 8 {
            rest = &rest[8..];
            hash = folded_multiply(hash ^ first_eight(rest), self.seeds[1]);
        }
        self.find(key, length, hash as u32, |node| length <= 8 || self.text(node) == text)
    }

    #[inline]
    fn find_gram(&self, left: u32, last: u32) -> Result<u32, Vacancy> {
        let key = u64::from(left) << 32 | u64::from(last);
        let hash = folded_multiply(key ^ self.seeds[0], self.seeds[1]);
        self.find(key, GRAM, hash as u32, |_| true)
    }

    #[inline]
    fn find(&self, key: u64, length: u32, hash: u32, same: impl Fn(u32) -> bool) -> Result<u32, Vacancy> {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place & mask];
            if slot.node == NONE {
                return Err(Vacancy { place, key, length, hash });
            }
            if slot.key == key && slot.length == length && same(slot.node) {
                return Ok(slot.node);
            }
            place = (place + 1) & mask;
        }
    }

    #[cold]
    fn add_word(&mut self, text: &[u8], vacancy: Vacancy, counted: bool) -> u32 {
        self.arena.extend_from_slice(text);
        self.ends.push(self.arena.len());
        let last = self.ends.len() as u32 - 2;
        self.insert(vacancy, NONE, last, counted)
    }

    fn insert(&mut self, vacancy: Vacancy, left: u32, last: u32, counted: bool) -> u32 {
        let Vacancy { place, key, length, hash } = vacancy;
        let number = i32::try_from(self.nodes.len()).expect("expected fewer than 2^31 different units") as u32;
        self.slots[place] = Slot { key, length, node: number };
        let unit = if counted { self.units } else { NONE };
        self.units += u32::from(counted);
        self.nodes.push(Node { left, last, hash, unit });
        if self.nodes.len() * 5 > self.slots.len() * 3 {
            self.widen();
        }
        number
    }

    fn widen(&mut self) {
        let old = std::mem::take(&mut self.slots);
        let mask = old.len() * 2 - 1;
        self.slots = vec![EMPTY; old.len() * 2];
        for slot in old.into_iter().filter(|slot| slot.node != NONE) {
            let mut place = self.nodes[slot.node as usize].hash as usize & mask;
            while self.slots[place].node != NONE {
                place = (place + 1) & mask;
            }
            self.slots[place] = slot;
        }
    }

    /// The bytes of a word's node.
    fn text(&self, node: u32) -> &[u8] {
        let place = self.nodes[node as usize].last as usize;
        &self.arena[self.ends[place]..self.ends[place + 1]]
    }

    /// Takes in all that another vocabulary of the same stop words holds, and returns the new number of each of its units.
    pub fn absorb(&mut self, other: &Self) -> Vec<u32> {
        let mut nodes = Vec::with_capacity(other.nodes.len());
        let mut units = Vec::with_capacity(other.units());
        for (number, node) in other.nodes.iter().enumerate() {
            let counted = node.unit != NONE;
            let here = if node.left == NONE {
                self.word(other.text(number as u32), counted)
            } else {
                self.gram(nodes[node.left as usize], nodes[node.last as usize], counted)
            };
            if counted {
                units.push(self.unit_of(here));
            }
            nodes.push(here);
        }
        units
    }

    /// The text of each unit, in their order: where each begins, and all bytes in a row.
    pub fn terms(&self) -> (Vec<i64>, Vec<u8>) {
        let (mut offsets, mut bytes, mut words) = (vec![0], Vec::new(), Vec::new());
        offsets.reserve_exact(self.units());
        for (number, _) in self.nodes.iter().enumerate().filter(|(_, node)| node.unit != NONE) {
            let mut at = number as u32;
            while self.nodes[at as usize].left != NONE {
                words.push(self.nodes[at as usize].last);
                at = self.nodes[at as usize].left;
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

/// The first eight bytes as a number, as if zeros followed.
#[inline]
fn first_eight(text: &[u8]) -> u64 {
    if let Some(eight) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let last = u64::from(u32::from_le_bytes(*last)) << ((text.len() - 4) * 8);
        return u64::from(u32::from_le_bytes(*first)) | last;
    }
    text.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[inline]
fn folded_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
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
    fn eight_bytes() {
        for text in [&b""[..], b"a", b"abc", b"abcd", b"abcdefg", b"abcdefgh"] {
            let mut bytes = [0; 8];
            bytes[..text.len()].copy_from_slice(text);
            assert_eq!(first_eight(text), u64::from_le_bytes(bytes));
        }
    }

    #[test]
    fn words_are_numbered_as_they_come() {
        let mut vocabulary = Vocabulary::growing([&b"the"[..]].into_iter());
        let words: Vec<String> = (0..5000).map(|i| format!("{}word{i}", "x".repeat(i % 20))).collect();
        for _ in 0..2 {
            for (i, word) in words.iter().enumerate() {
                let node = vocabulary.word(word.as_bytes(), true);
                assert_eq!(vocabulary.unit(node), i as u32);
            }
        }
        let stop = vocabulary.word(b"the", true);
        assert!(vocabulary.is_stop(stop));
        assert_eq!(strings(&vocabulary), words);
        let mut nul = Vocabulary::growing(std::iter::empty());
        assert_ne!(nul.word(b"a", true), nul.word(b"a\0", true));
    }

    #[test]
    fn absorbing_is_reading_on() {
        let read = |vocabulary: &mut Vocabulary, words: &[&str]| {
            let mut before = NONE;
            for word in words {
                let node = vocabulary.word(word.as_bytes(), true);
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
        let (a, b) = (vocabulary.word(b"a", true), vocabulary.word(b"b", true));
        assert_eq!((vocabulary.unit(a), vocabulary.unit(b)), (NONE, 0));
        let gram = vocabulary.gram(a, b, true);
        assert_eq!(vocabulary.unit(gram), 1);
        assert_eq!(vocabulary.gram(b, a, true), NONE);
        assert_eq!(vocabulary.word(b"z", true), NONE);
        assert_eq!(vocabulary.units(), 3);
    }
}
