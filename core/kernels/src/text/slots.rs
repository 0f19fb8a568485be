//! Hash tables from the names of nodes to the nodes: what is compared lies beside what is found, in one line of the cache.

use super::vocabulary::NONE;
use crate::memory::filled;
use crate::simd::prefetch;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// So many bytes of a word are in its name.
pub const NAMED: usize = 16;

/// What a node is found by, and where.
#[derive(Clone, Copy, Default)]
pub struct Name<K> {
    pub key: K,
    pub hash: u32,
}

/// The first sixteen bytes of a word, and its length. Packed, as tables of them are most of the memory of a vocabulary.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(Rust, packed(4))]
pub struct Word {
    first: u64,
    second: u64,
    pub length: u32,
}

/// All words of an n-gram but the last, and the last, as the halves of a number.
pub type Gram = u64;

#[derive(Clone, Copy)]
#[repr(Rust, packed(4))]
struct Slot<K> {
    key: K,
    node: u32,
}

pub struct Slots<K> {
    table: Vec<Slot<K>>,
    filled: usize,
}

impl<K: Copy + Default + PartialEq> Slots<K> {
    pub fn new() -> Self {
        Self { table: vec![Self::empty(); 16], filled: 0 }
    }

    fn empty() -> Slot<K> {
        Slot { key: K::default(), node: NONE }
    }

    /// Asks for the position of a hash that will be looked for soon.
    #[inline]
    pub fn expect(&self, hash: u32) {
        prefetch(&self.table[hash as usize & (self.table.len() - 1)]);
    }

    /// The node of a name, or where it would go. `same` tells whether all else is the same of what no name holds.
    #[inline]
    pub fn find(&self, name: &Name<K>, same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.table.len() - 1;
        let mut position = name.hash as usize & mask;
        loop {
            let slot = self.table[position & mask];
            if slot.node == NONE {
                return Err(position);
            }
            if { slot.key } == name.key && same(slot.node) {
                return Ok(slot.node);
            }
            position = (position + 1) & mask;
        }
    }

    /// Puts a node where its name was not found. `hash` gives that of any key and node, in case they must move.
    pub fn insert(&mut self, position: usize, key: K, node: u32, hash: impl Fn(K, u32) -> u32) {
        self.table[position] = Slot { key, node };
        self.filled += 1;
        if self.filled * 5 > self.table.len() * 3 {
            let old = std::mem::take(&mut self.table);
            let mask = old.len() * 2 - 1;
            self.table = filled(Self::empty(), old.len() * 2);
            for slot in old.into_iter().filter(|slot| slot.node != NONE) {
                let mut position = hash(slot.key, slot.node) as usize & mask;
                while self.table[position].node != NONE {
                    position = (position + 1) & mask;
                }
                self.table[position] = slot;
            }
        }
    }
}

/// Random numbers, so that nobody can choose texts whose words all collide.
#[derive(Clone, Copy)]
pub struct Seeds([u64; 2]);

impl Seeds {
    /// Those of this process.
    pub fn of_process() -> Self {
        static SEEDS: OnceLock<Seeds> = OnceLock::new();
        *SEEDS.get_or_init(|| {
            let random = RandomState::new();
            Self([random.hash_one(0), random.hash_one(1) | 1])
        })
    }

    /// The name of the word that `tail` begins with. Sixteen bytes are read at once, so it is as well if some more follow.
    #[inline]
    pub fn word(&self, tail: &[u8], length: usize) -> Name<Word> {
        let length = length.min(u32::MAX as usize); // no text has words of as many bytes, but a broken one might
        let [first, second] = match tail.first_chunk::<NAMED>() {
            Some(bytes) => {
                let all = u128::from_le_bytes(*bytes);
                let own = if length < NAMED { all & ((1 << (8 * length)) - 1) } else { all };
                [own as u64, (own >> 64) as u64]
            }
            None => sixteen(&tail[..length.min(NAMED)]),
        };
        let mut hash = folded_multiply(first ^ self.0[0], second ^ self.0[1]);
        if length > NAMED {
            for bytes in tail[NAMED..length].chunks(NAMED) {
                let [one, two] = sixteen(bytes);
                hash = folded_multiply(hash ^ one, two ^ self.0[1]);
            }
        }
        Name { key: Word { first, second, length: length as u32 }, hash: hash as u32 }
    }

    /// The name of the n-gram of a node and the word after it.
    #[inline]
    pub fn gram(&self, left: u32, last: u32) -> Name<Gram> {
        let key = u64::from(left) << 32 | u64::from(last);
        Name { key, hash: self.of_gram(key) }
    }

    #[inline]
    pub fn of_gram(&self, key: Gram) -> u32 {
        folded_multiply(key ^ self.0[0], self.0[1]) as u32
    }
}

/// Up to sixteen bytes as two numbers, as if zeros followed.
fn sixteen(bytes: &[u8]) -> [u64; 2] {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let (first, second) = bytes.split_at(bytes.len().min(8));
    [number(first), number(second)]
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
    fn names_do_not_depend_on_what_follows() {
        let seeds = Seeds::of_process();
        let text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
        for length in 0..text.len() {
            let word = &text.as_bytes()[..length];
            let (alone, followed) =
                (seeds.word(word, length), seeds.word(&[word, b" and more to follow"].concat(), length));
            assert!(alone.key == followed.key && alone.hash == followed.hash);
        }
    }
}
