//! A hash table from the names of nodes to the nodes: what is compared lies beside what is found, in one line of the cache.

use super::vocabulary::NONE;
use crate::memory::filled;
use crate::simd::prefetch;
use std::hash::{BuildHasher, RandomState};

/// In the place of the length of a word: this is an n-gram.
pub const GRAM: u32 = u32::MAX;
/// So many bytes of a word are in its name.
pub const NAMED: usize = 16;
/// The bytes of a word that count: no text has words of as many, but a broken one might.
const LONGEST: usize = GRAM as usize - 1;

/// Sixteen bytes of a word and its length, or the two nodes of an n-gram; and the hash.
#[derive(Clone, Copy)]
pub struct Name {
    pub first: u64,
    second: u64,
    pub length: u32,
    pub hash: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    first: u64,
    second: u64,
    length: u32,
    node: u32,
}

const EMPTY: Slot = Slot { first: 0, second: 0, length: 0, node: NONE };

pub struct Slots {
    table: Vec<Slot>,
    filled: usize,
    /// So that nobody can choose texts whose words all collide.
    seeds: [u64; 2],
}

impl Slots {
    pub fn new() -> Self {
        let random = RandomState::new();
        Self { table: vec![EMPTY; 16], filled: 0, seeds: [random.hash_one(0), random.hash_one(1) | 1] }
    }

    /// The name of the word that `tail` begins with. Eight bytes are read at once, so it is as well if some more follow.
    #[inline]
    pub fn word(&self, tail: &[u8], length: usize) -> Name {
        let length = length.min(LONGEST);
        let first = first_eight(tail, length);
        let mut hash = folded_multiply(first ^ self.seeds[0], length as u64 ^ self.seeds[1]);
        let mut second = 0;
        let mut at = 8;
        while at < length {
            let eight = first_eight(&tail[at..], length - at);
            if at == 8 {
                second = eight;
            }
            hash = folded_multiply(hash ^ eight, self.seeds[1]);
            at += 8;
        }
        Name { first, second, length: length as u32, hash: hash as u32 }
    }

    /// The name of the n-gram of a node and the word after it.
    #[inline]
    pub fn gram(&self, left: u32, last: u32) -> Name {
        let first = u64::from(left) << 32 | u64::from(last);
        let hash = folded_multiply(first ^ self.seeds[0], self.seeds[1]) as u32;
        Name { first, second: 0, length: GRAM, hash }
    }

    /// Asks for the place of a name that will be looked for soon.
    #[inline]
    pub fn expect(&self, name: &Name) {
        prefetch(&self.table[name.hash as usize & (self.table.len() - 1)]);
    }

    /// The node of a name, or where it would go. `same` tells whether all else is the same of what no name holds.
    #[inline]
    pub fn find(&self, name: &Name, same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.table.len() - 1;
        let mut place = name.hash as usize & mask;
        loop {
            let slot = &self.table[place & mask];
            if slot.node == NONE {
                return Err(place);
            }
            if slot.first == name.first && slot.second == name.second && slot.length == name.length && same(slot.node) {
                return Ok(slot.node);
            }
            place = (place + 1) & mask;
        }
    }

    /// Puts a node where its name was not found. `hashes` gives those of all nodes, in case they must move.
    pub fn insert(&mut self, place: usize, name: &Name, node: u32, hashes: impl Fn(u32) -> u32) {
        self.table[place] = Slot { first: name.first, second: name.second, length: name.length, node };
        self.filled += 1;
        if self.filled * 5 > self.table.len() * 3 {
            let old = std::mem::take(&mut self.table);
            let mask = old.len() * 2 - 1;
            self.table = filled(EMPTY, old.len() * 2);
            for slot in old.into_iter().filter(|slot| slot.node != NONE) {
                let mut place = hashes(slot.node) as usize & mask;
                while self.table[place].node != NONE {
                    place = (place + 1) & mask;
                }
                self.table[place] = slot;
            }
        }
    }
}

/// The first eight of `length` bytes as a number, as if zeros followed.
#[inline]
fn first_eight(tail: &[u8], length: usize) -> u64 {
    match tail.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight) & u64::MAX.checked_shr(64 - 8 * length.min(8) as u32).unwrap_or(0),
        None => tail[..length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

#[inline]
fn folded_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes() {
        for text in [&b""[..], b"a", b"abc", b"abcd", b"abcdefg", b"abcdefgh"] {
            let mut bytes = [0; 8];
            bytes[..text.len()].copy_from_slice(text);
            assert_eq!(first_eight(text, text.len()), u64::from_le_bytes(bytes));
            assert_eq!(first_eight(&[text, b"and more"].concat(), text.len()), u64::from_le_bytes(bytes));
        }
    }

    #[test]
    fn names_do_not_depend_on_what_follows() {
        let slots = Slots::new();
        for text in [&b"a"[..], b"abcdefghij", b"abcdefghijklmnopqrstuvwxyz"] {
            let (alone, followed) =
                (slots.word(text, text.len()), slots.word(&[text, b" etc etc"].concat(), text.len()));
            assert_eq!((alone.first, alone.second, alone.hash), (followed.first, followed.second, followed.hash));
        }
    }
}
