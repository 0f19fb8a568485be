//! Moments of cells that lie column by column. Some rows are put in the order of their classes once, for all columns;
//! then several columns at a time add one class after another. Every sum gets the same terms in the same order as from
//! cells that lie row by row: not a bit differs.

use crate::moments::Sums;
use crate::responsibilities::Assignment;
use crate::simd::{dispatch, fma};
use crate::source::Cell;
use std::ops::Range;

/// So many columns are added at a time.
const LANES: usize = 8;
/// So many rows are put in order at a time: their cells of that many columns lie in the first cache.
const ROWS: usize = 512;
/// So many of them a class must have, on average, for their order to pay.
const ROWS_OF_A_CLASS: usize = 8;

/// Rows in the order of their classes.
#[derive(Default)]
struct ByClass {
    /// where each row is
    positions: Vec<u32>,
    /// how much each row counts
    weights: Vec<f64>,
    /// where the rows of each class end among the positions
    ends: Vec<usize>,
}

impl ByClass {
    fn order(&mut self, assignment: &Assignment, rows: Range<usize>) {
        self.ends.clear();
        self.ends.resize(assignment.classes + 1, 0);
        for (class, _) in rows.clone().filter_map(|row| assignment.of(row)) {
            self.ends[class + 1] += 1;
        }
        for class in 1..self.ends.len() {
            self.ends[class] += self.ends[class - 1];
        }
        let count = self.ends[assignment.classes];
        self.positions.resize(count, 0);
        self.weights.resize(count, 1.0);
        for row in rows {
            if let Some((class, weight)) = assignment.of(row) {
                self.positions[self.ends[class]] = row as u32;
                self.weights[self.ends[class]] = weight;
                self.ends[class] += 1;
            }
        }
        // What was the beginning of each class is now its end.
        self.ends.pop();
    }
}

/// Adds some rows of columns, each given as one slice; false, and nothing added, if the classes are too many for it.
pub fn add_columns<T: Cell>(
    columns: &[&[T]],
    rows: Range<usize>,
    assignment: &Assignment,
    origin: &[f64],
    out: &mut Sums,
) -> bool {
    if ROWS < ROWS_OF_A_CLASS * assignment.classes {
        return false;
    }
    let width = columns.len();
    let mut by_class = ByClass::default();
    for start in rows.clone().step_by(ROWS) {
        by_class.order(assignment, start..(start + ROWS).min(rows.end));
        for first in (0..width).step_by(LANES) {
            // Past the last column, it is added again, to sums that nobody reads.
            let cells: [&[T]; LANES] = std::array::from_fn(|lane| columns[(first + lane).min(width - 1)]);
            let lanes = LANES.min(width - first);
            let mut start = 0;
            for (class, &end) in by_class.ends.iter().enumerate() {
                let at = class * width + first..class * width + first + lanes;
                let mut sums = Lanes::of(&origin[at.clone()], out, at.clone());
                let (positions, weights) = (&by_class.positions[start..end], &by_class.weights[start..end]);
                dispatch!(add_rows::<T>(&cells, positions, weights, &mut sums));
                sums.keep(out, at);
                start = end;
            }
        }
    }
    true
}

/// The sums of some columns.
struct Lanes {
    origin: [f64; LANES],
    weight: [f64; LANES],
    sum: [f64; LANES],
    second: [f64; LANES],
}

impl Lanes {
    fn of(origin: &[f64], out: &Sums, at: Range<usize>) -> Self {
        let padded = |from: &[f64]| std::array::from_fn(|lane| from.get(lane).copied().unwrap_or(0.0));
        Self {
            origin: padded(origin),
            weight: padded(&out.weight[at.clone()]),
            sum: padded(&out.sum[at.clone()]),
            second: padded(&out.second[at]),
        }
    }

    fn keep(&self, out: &mut Sums, at: Range<usize>) {
        let lanes = at.len();
        out.weight[at.clone()].copy_from_slice(&self.weight[..lanes]);
        out.sum[at.clone()].copy_from_slice(&self.sum[..lanes]);
        out.second[at].copy_from_slice(&self.second[..lanes]);
    }
}

#[inline(always)]
fn add_rows<T: Cell, const FUSED: bool>(cells: &[&[T]; LANES], positions: &[u32], weights: &[f64], out: &mut Lanes) {
    let (origin, mut weight, mut sum, mut second) = (out.origin, out.weight, out.sum, out.second);
    for (&position, &w) in positions.iter().zip(weights) {
        let t: [f64; LANES] = std::array::from_fn(|lane| cells[lane][position as usize].number() - origin[lane]);
        for lane in 0..LANES {
            let there = !t[lane].is_nan();
            let x = if there { t[lane] } else { 0.0 };
            let wx = w * x;
            weight[lane] += if there { w } else { 0.0 };
            sum[lane] += wx;
            second[lane] = fma::<FUSED>(wx, x, second[lane]);
        }
    }
    (out.weight, out.sum, out.second) = (weight, sum, second);
}
