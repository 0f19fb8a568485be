//! Hashes of documents, and counts whose columns are hashes of the units: no vocabulary is needed, and none is held.

use super::reader::Pair;
use super::sinks::{Rows, append, runs};
use super::split::Analysis;
use super::texts::{TextError, Texts};
use crate::threads;
use rustc_hash::FxHashSet;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// MurmurHash3 of 32 bits, with seed 0.
pub fn murmur3(bytes: &[u8]) -> u32 {
    let mix = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = blocks.iter().fold(0u32, |hash, block| {
        (hash ^ mix(u32::from_le_bytes(*block))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    hash ^= mix(tail.iter().rev().fold(0, |k, &byte| k << 8 | u32::from(byte)));
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// 64 bits of a hash of every document: XXH3.
pub fn hashes(texts: &Texts) -> Result<Vec<u64>, TextError> {
    (0..texts.len()).map(|document| texts.get(document).map(xxh3_64)).collect()
}

/// The column of a unit, and whether its sign is turned: that of the hash as a signed number.
fn column(unit: &[u8], width: u32) -> (u32, bool) {
    let hash = murmur3(unit) as i32;
    (hash.unsigned_abs() % width, hash < 0)
}

/// Counts the hashes of the units of every document in `width` columns, sorted within each row. With `signs`, half of the units count down.
pub fn count_hashes(
    texts: &Texts,
    analysis: &Analysis,
    stops: &FxHashSet<&[u8]>,
    width: u32,
    signs: bool,
) -> Result<Rows, TextError> {
    let run = |run: Range<usize>| {
        let (mut rows, mut hasher) = (Rows::default(), Hasher::default());
        for document in run {
            hasher.read(document, texts.get(document)?, analysis, stops, width)?;
            for same in hasher.met.chunk_by(|a, b| a.0 == b.0) {
                let down = if signs { same.iter().filter(|pair| pair.1 != 0).count() } else { 0 };
                rows.units.push(same[0].0 as i32);
                rows.counts.push(same.len() as i32 - 2 * down as i32);
            }
            rows.starts.push(rows.units.len() as i64);
        }
        Ok(rows)
    };
    let mut all = Rows { starts: vec![0], ..Rows::default() };
    let runs = runs(texts);
    for piece in threads::map(runs.len(), texts.size(), |i| run(runs[i].clone())) {
        append(&mut all, piece?);
    }
    Ok(all)
}

#[derive(Default)]
struct Hasher {
    folded: Vec<u8>,
    padded: Vec<u8>,
    window: Vec<usize>,
    /// The words so far, with blanks between them.
    joined: Vec<u8>,
    /// The columns of the units of one document and whether their sign is turned, sorted.
    met: Vec<Pair>,
}

impl Hasher {
    fn read(
        &mut self,
        document: usize,
        text: &[u8],
        analysis: &Analysis,
        stops: &FxHashSet<&[u8]>,
        width: u32,
    ) -> Result<(), TextError> {
        let Self { folded, padded, window, joined, met } = self;
        analysis.fold(document, text, folded)?;
        met.clear();
        let mut add = |unit: &[u8]| {
            let (column, turned) = column(unit, width);
            met.push((column, u32::from(turned)));
        };
        let is_stop = |unit: &[u8]| !stops.is_empty() && stops.contains(unit);
        if !analysis.kind.is_words() {
            analysis.characters(folded, padded, window, |unit| {
                if !is_stop(unit) {
                    add(unit);
                }
            });
        } else {
            joined.clear();
            window.clear();
            analysis.words(folded, |tail, length| {
                let word = &tail[..length];
                if is_stop(word) {
                    return;
                }
                if analysis.longest == 1 {
                    return add(word);
                }
                if window.len() >= analysis.longest.saturating_mul(2) {
                    window.drain(..window.len() + 1 - analysis.longest);
                }
                if !joined.is_empty() {
                    joined.push(b' ');
                }
                window.push(joined.len());
                joined.extend_from_slice(word);
                for n in analysis.shortest..=analysis.longest.min(window.len()) {
                    add(&joined[window[window.len() - n]..]);
                }
            });
        }
        met.sort_unstable();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_of_known_texts() {
        // from scikit-learn's tests of its own murmurhash3_32, seed 0
        assert_eq!(murmur3(b"foo") as i32, -156_908_512);
        assert_eq!(murmur3(b""), 0);
    }
}
