//! Rows in an order of their own, whatever order they came in: equal ones lie side by side.

use super::points::Points;
use crate::threads;

const BLOCK: usize = 4096;

/// The numbers of the rows by their projections on a direction, and of each whether it differs from the one before it.
pub fn order<P: Points>(points: &P, direction: &[f64]) -> (Vec<i64>, Vec<bool>) {
    let (rows, columns) = (points.rows(), points.columns());
    let parts = threads::map(rows.div_ceil(BLOCK), rows * columns, |piece| {
        let projection = |row: usize| (points.projection(row, direction), row as u32);
        let mut part: Vec<(f64, u32)> = (piece * BLOCK..((piece + 1) * BLOCK).min(rows)).map(projection).collect();
        part.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        part
    });
    let mut all = parts.concat();
    all.sort_by(|a, b| a.0.total_cmp(&b.0)); // which knows how to merge what is sorted
    let fresh =
        |i: usize| i == 0 || all[i].0 != all[i - 1].0 || !points.equal(all[i].1 as usize, all[i - 1].1 as usize);
    let fresh = (0..rows).map(fresh).collect();
    (all.into_iter().map(|(_, row)| i64::from(row)).collect(), fresh)
}
