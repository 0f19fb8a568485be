//! Keys of rows by their content: sums over their cells, each mixed with the seed of its column. The same on every machine.

use crate::simd::dispatch_wide;
use crate::source::Source;
use crate::threads;
use std::convert::Infallible;

/// The odd multipliers of splitmix64: that of the golden ratio stands for a missing cell.
const MISSING: u64 = 0x9E37_79B9_7F4A_7C15;
const FIRST: u64 = 0xBF58_476D_1CE4_E5B9;

/// Rows that are brought into columns together, and those that a thread takes.
const TILE: usize = 256;
const PIECE: usize = 16 * TILE;

/// The bits of a cell; 0 and −0 have the same, and so has all that is missing.
#[inline(always)]
fn bits(x: f64) -> u64 {
    if x.is_nan() { MISSING } else { (x + 0.0).to_bits() }
}

#[inline(always)]
fn add_column<const FUSED: bool>(cells: &[f64], seed: u64, keys: &mut [u64]) {
    for (key, &x) in keys.iter_mut().zip(cells) {
        let mixed = bits(x).wrapping_add(seed).wrapping_mul(FIRST);
        *key = key.wrapping_add((mixed ^ (mixed >> 32)).wrapping_mul(seed | 1));
    }
}

/// Adds to the key of every row what its cells in each column say.
pub fn add(source: &Source, seeds: &[u64], keys: &mut [u64]) {
    let width = source.width();
    let Ok::<(), Infallible>(()) = threads::for_each(keys, PIECE, source.rows() * width, |piece, keys| {
        let mut cells = vec![0.0; width * TILE];
        for (tile, keys) in keys.chunks_mut(TILE).enumerate() {
            let first = piece * PIECE + tile * TILE;
            source.load_unchecked(first..first + keys.len(), TILE, &mut cells);
            for (cells, &seed) in cells.chunks_exact(TILE).zip(seeds) {
                dispatch_wide!(add_column(cells, seed, keys), add_column(cells, seed, keys));
            }
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn a_key_is_of_what_the_cells_say() {
        let x = array![[0.0, f64::NAN, 2.0], [-0.0, -f64::NAN, 2.0], [2.0, f64::NAN, 0.0]];
        let mut keys = [5; 3];
        add(&source(&x), &[7, 8, 9], &mut keys);
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[0], keys[2]);
        let mut once = [0; 3];
        add(&source(&x), &[7, 8, 9], &mut once);
        assert_eq!(keys.map(|key| key - 5), once);
    }
}
