//! Expected counts of trees: what every table would have counted, had all cells been seen.

use super::messages::Prepared;
use super::{Cells, NEGLIGIBLE, Trees};
use crate::threads;

/// Rows are cut into this many pieces at most, each with counts of its own.
const PIECES: usize = 16;
const LEAST: usize = 2048;

/// The sums that trees are solved from, in the order of their tables: Σ r p(parent's level, level | what is known), for
/// responsibilities r (rows × components) that may be weighted.
pub fn expected(trees: &Trees, cells: &Cells, responsibilities: &[f64]) -> Vec<f64> {
    let (d, k) = (trees.width(), trees.components());
    let rows = cells.codes.len() / d;
    let prepared = Prepared::new(trees, rows);
    let every = vec![true; d];
    let piece = rows.div_ceil(PIECES).max(LEAST);
    let found = threads::map(rows.div_ceil(piece), rows * d * k * 2, |index| {
        let mut counts = vec![0.0; trees.tables.len()];
        let mut scratch = prepared.scratch();
        for component in 0..k {
            for row in index * piece..((index + 1) * piece).min(rows) {
                let share = responsibilities[row * k + component];
                if share <= NEGLIGIBLE {
                    continue;
                }
                let codes = &cells.codes[row * d..][..d];
                if codes.iter().any(|&code| code < 0) {
                    prepared.upward(component, codes, cells.evidence, &mut scratch);
                    prepared.downward(component, codes, &every, &mut scratch);
                }
                prepared.expect(component, codes, &scratch, |at, p| counts[at] += share * p);
            }
        }
        counts
    });
    let mut found = found.into_iter();
    let mut total = found.next().unwrap_or_else(|| vec![0.0; trees.tables.len()]);
    for counts in found {
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    total
}
