//! Moments of cells that lie column by column. The rows of a block are put in the order of their classes once, for all
//! columns; each column then adds one class after another, several rows at a time.

use crate::belonging::Assignment;
use crate::moments::Sums;
use crate::simd::{dispatch, fma};
use crate::source::Cell;
use std::ops::Range;

/// So many rows are added at a time, each to a sum of its own.
const LANES: usize = 8;
/// So many rows a class must have in a block, on average, for their order to pay.
const ROWS_OF_A_CLASS: usize = 16;

/// The rows of a block, class by class.
pub struct ByClass {
    /// where each row is in the block
    places: Vec<u32>,
    /// how much each row counts; empty if all count 1
    weights: Vec<f64>,
    /// where the rows of each class end among the places
    ends: Vec<usize>,
}

impl ByClass {
    /// None if the classes are too many for it to pay.
    pub fn of(assignment: &Assignment, rows: Range<usize>) -> Option<Self> {
        if rows.len() < ROWS_OF_A_CLASS * assignment.classes {
            return None;
        }
        let mut next = vec![0; assignment.classes + 1];
        for (class, _) in rows.clone().filter_map(|row| assignment.of(row)) {
            next[class + 1] += 1;
        }
        for class in 1..next.len() {
            next[class] += next[class - 1];
        }
        let count = next[assignment.classes];
        let mut places = vec![0; count];
        let mut weights = vec![0.0; if assignment.weights.is_some() { count } else { 0 }];
        for (place, row) in rows.enumerate() {
            if let Some((class, weight)) = assignment.of(row) {
                places[next[class]] = place as u32;
                if let Some(known) = weights.get_mut(next[class]) {
                    *known = weight;
                }
                next[class] += 1;
            }
        }
        // What was the beginning of each class is now its end.
        next.pop();
        Some(Self { places, weights, ends: next })
    }

    /// Adds the cells of column `j` of `width` in the rows of the block. A missing cell adds zeros.
    pub fn add_column<T: Cell>(&self, cells: &[T], j: usize, width: usize, origin: &[f64], out: &mut Sums) {
        let mut start = 0;
        for (class, &end) in self.ends.iter().enumerate() {
            let at = class * width + j;
            let places = &self.places[start..end];
            let added = if self.weights.is_empty() {
                dispatch!(sums_of::<T, false>(cells, places, &[], origin[at]))
            } else {
                dispatch!(sums_of::<T, true>(cells, places, &self.weights[start..end], origin[at]))
            };
            out.weight[at] += added[0];
            out.sum[at] += added[1];
            out.second[at] += added[2];
            start = end;
        }
    }
}

/// Σw, Σw(x−o) and Σw(x−o)² over the cells at some places that are there.
#[inline(always)]
fn sums_of<T: Cell, const WEIGHTED: bool, const FUSED: bool>(
    cells: &[T],
    places: &[u32],
    weights: &[f64],
    origin: f64,
) -> [f64; 3] {
    let mut sums = [[0.0; LANES]; 3];
    let whole = places.len() - places.len() % LANES;
    for first in (0..whole).step_by(LANES) {
        let t = std::array::from_fn(|lane| cells[places[first + lane] as usize].number() - origin);
        let w = if WEIGHTED { std::array::from_fn(|lane| weights[first + lane]) } else { [1.0; LANES] };
        add_lanes::<FUSED>(t, w, &mut sums);
    }
    for at in whole..places.len() {
        let (mut t, mut w) = ([f64::NAN; LANES], [1.0; LANES]);
        t[at - whole] = cells[places[at] as usize].number() - origin;
        w[at - whole] = if WEIGHTED { weights[at] } else { 1.0 };
        add_lanes::<FUSED>(t, w, &mut sums);
    }
    sums.map(|lanes| lanes.iter().sum())
}

#[inline(always)]
fn add_lanes<const FUSED: bool>(t: [f64; LANES], w: [f64; LANES], sums: &mut [[f64; LANES]; 3]) {
    for lane in 0..LANES {
        let there = !t[lane].is_nan();
        let x = if there { t[lane] } else { 0.0 };
        let wx = w[lane] * x;
        sums[0][lane] += if there { w[lane] } else { 0.0 };
        sums[1][lane] += wx;
        sums[2][lane] = fma::<FUSED>(wx, x, sums[2][lane]);
    }
}
