//! Draws from trees: unknown cells get levels, given all that is known of their row.

use super::messages::{Prepared, Scratch};
use super::{Cells, Trees};
use crate::threads;
use std::convert::Infallible;

const PIECE: usize = 256;

/// A number between 0 and 1 that looks random: the same for a seed, a row and a column, whichever thread draws it.
pub fn uniform(seed: u64, row: usize, column: usize) -> f64 {
    // splitmix64 of the three, mixed twice
    let mut x = seed ^ (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for salt in [column as u64, 0x94D0_49BB_1331_11EB] {
        x = (x ^ salt.wrapping_mul(0xD6E8_FEB8_6659_FD93)).wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// The index at which the running sum of weights passes a share of their total.
pub fn choose(weights: impl Iterator<Item = f64> + Clone, share: f64) -> usize {
    let total: f64 = weights.clone().sum();
    let mut left = share * total;
    let mut last = 0;
    for (index, weight) in weights.enumerate() {
        if weight > 0.0 {
            last = index;
            if left < weight {
                return index;
            }
            left -= weight;
        }
    }
    last
}

/// Draws the cells of every row that are not observed, from its component: rows × columns of levels.
pub fn draw(trees: &Trees, cells: &Cells, components: &[i32], seed: u64) -> Vec<i16> {
    let d = trees.width();
    let prepared = Prepared::new(trees, cells.codes.len() / d);
    let mut out = cells.codes.to_vec();
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, PIECE * d, cells.codes.len() * 16, |piece, out| {
        let mut scratch = prepared.scratch();
        for (i, row) in out.chunks_exact_mut(d).enumerate() {
            let number = piece * PIECE + i;
            let component = components[number] as usize;
            prepared.upward(component, row, cells.evidence, &mut scratch);
            for column in trees.ordered(component) {
                if row[column] < 0 {
                    let share = uniform(seed, number, column);
                    row[column] = prepared.drawn(component, column, row, &scratch, share) as i16;
                }
            }
        }
        Ok(())
    });
    out
}

impl Prepared<'_> {
    /// A level of a column whose parent is there or has been drawn, given what lies below it.
    fn drawn(&self, component: usize, column: usize, row: &[i16], scratch: &Scratch, share: f64) -> usize {
        let (start, size) = (self.trees.start(component, column), self.trees.size(column));
        let parent = self.trees.parent(component, column).map_or(0, |parent| row[parent] as usize);
        let line = &self.trees.tables[start + parent * size..][..size];
        match scratch.belief_of(column, self.offsets[column], size) {
            Some(belief) => choose(line.iter().zip(belief).map(|(p, b)| p * b), share),
            None => choose(line.iter().copied(), share),
        }
    }
}
