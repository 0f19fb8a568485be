//! k-means++: rows to begin with, each drawn with a chance that grows with the squared distance from those before it.

use super::points::Points;
use crate::threads;
use std::sync::atomic::{AtomicBool, Ordering};

const BLOCK: usize = 4096;
/// Parts of the order by which a row is found.
const SHELVES: usize = 256;

/// Draws rows by random numbers from 0 to 1, of which rows have shares by their masses, one after the other in an order
/// that their cells alone decide: so it does not matter in which order they came, nor whether one came twice.
struct Lots<'a> {
    order: &'a [i64],
    /// the part of the order in which each row is
    shelf: Vec<u8>,
}

impl<'a> Lots<'a> {
    fn new(order: &'a [i64]) -> Self {
        let mut shelf = vec![0; order.len()];
        for (rank, &row) in order.iter().enumerate() {
            shelf[row as usize] = (rank * SHELVES / order.len()) as u8;
        }
        Self { order, shelf }
    }

    /// The mass of every part.
    fn weigh(&self, masses: &[f64]) -> Vec<f64> {
        let rows = masses.len();
        let block = BLOCK.max(rows.div_ceil(64));
        let parts = threads::map(rows.div_ceil(block), rows, |piece| {
            let range = piece * block..((piece + 1) * block).min(rows);
            let mut sums = [0.0; SHELVES];
            for (&shelf, mass) in self.shelf[range.clone()].iter().zip(&masses[range]) {
                sums[shelf as usize] += mass;
            }
            sums
        });
        (0..SHELVES).map(|shelf| parts.iter().map(|part| part[shelf]).sum()).collect()
    }

    /// The row that a chance falls on; `weighed`: the masses of the parts.
    fn draw(&self, masses: &[f64], weighed: &[f64], chance: f64) -> usize {
        let mut left = chance * weighed.iter().sum::<f64>();
        let last = weighed.iter().rposition(|&mass| mass > 0.0).unwrap_or(0);
        let mut part = 0;
        while part < last && left >= weighed[part] {
            left -= weighed[part];
            part += 1;
        }
        let first = (part * self.order.len()).div_ceil(SHELVES);
        let end = ((part + 1) * self.order.len()).div_ceil(SHELVES);
        let mut last_with_mass = self.order[first.min(self.order.len() - 1)] as usize;
        for &row in &self.order[first..end] {
            let mass = masses[row as usize];
            if mass > 0.0 {
                last_with_mass = row as usize;
                if left < mass {
                    break;
                }
            }
            left -= mass;
        }
        last_with_mass
    }
}

/// Of each row, the nearest of the rows that were chosen, and the squared distance from it.
struct Nearest {
    chosen: Vec<u32>,
    square: Vec<f64>,
}

/// The squares of the distances to the nearer of the chosen and a candidate; `apart`: the squares from the candidate to each
/// that was chosen. A row twice as near to its own as that is to the candidate need not be looked at.
fn squares<P: Points>(points: &P, near: &Nearest, candidate: &[f64], apart: &[f64]) -> Vec<f64> {
    let (rows, columns) = (points.rows(), points.columns());
    let norm = candidate.iter().map(|c| c * c).sum();
    let parts = threads::map(rows.div_ceil(BLOCK), rows * columns, |piece| {
        let range = piece * BLOCK..((piece + 1) * BLOCK).min(rows);
        let of = |row: usize| {
            let now = near.square[row];
            // The last digits of the squares are not to be relied on.
            if !points.has_missing() && apart[near.chosen[row] as usize] > 4.000_001 * now {
                return now;
            }
            now.min(points.distance(row, candidate, norm))
        };
        range.map(of).collect::<Vec<f64>>()
    });
    parts.concat()
}

/// Chooses rows, one after the other; each is the best of as many candidates as there are chances for it (`trials`).
/// `order`: the numbers of all rows.
pub fn plus_plus<P: Points>(
    points: &P,
    weights: Option<&[f64]>,
    order: &[i64],
    trials: usize,
    chances: &[f64],
    stop: &AtomicBool,
) -> Vec<i64> {
    let lots = Lots::new(order);
    let (rows, columns) = (points.rows(), points.columns());
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    // A row of weight 0 may lie so far that its square is infinite.
    let mass = |(row, square): (usize, &f64)| if weight(row) > 0.0 { weight(row) * square } else { 0.0 };
    let times_weight = |squares: &[f64]| squares.iter().enumerate().map(mass).collect::<Vec<f64>>();
    let centre = |row: usize| {
        let mut values = vec![0.0; columns];
        points.as_centre(row, &mut values);
        values
    };
    let ones = times_weight(&vec![1.0; rows]);
    let all = lots.weigh(&ones);
    let first = lots.draw(&ones, &all, chances[0]);
    let mut chosen = vec![first as i64];
    let mut centres = vec![centre(first)];
    let mut near = Nearest { chosen: vec![0; rows], square: vec![f64::INFINITY; rows] };
    near.square = squares(points, &near, &centres[0], &[0.0]);
    for chances in chances[trials..].chunks(trials) {
        let masses = times_weight(&near.square);
        let weighed = lots.weigh(&masses);
        let (masses, weighed) =
            if weighed.iter().any(|&mass| mass > 0.0) { (&masses, &weighed) } else { (&ones, &all) };
        let mut best: Option<(f64, usize, Vec<f64>, Vec<f64>)> = None;
        for &chance in chances {
            if stop.load(Ordering::Relaxed) {
                return chosen;
            }
            let row = lots.draw(masses, weighed, chance);
            let candidate = centre(row);
            let apart: Vec<f64> =
                centres.iter().map(|c| c.iter().zip(&candidate).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).collect();
            let after = squares(points, &near, &candidate, &apart);
            let rest = times_weight(&after).chunks(BLOCK).map(|block| block.iter().sum::<f64>()).sum();
            if best.as_ref().is_none_or(|best| rest < best.0) {
                best = Some((rest, row, candidate, after));
            }
        }
        let Some((_, row, candidate, after)) = best else { break };
        for (i, (now, &square)) in near.square.iter_mut().zip(&after).enumerate() {
            if square < *now {
                (*now, near.chosen[i]) = (square, centres.len() as u32);
            }
        }
        centres.push(candidate);
        chosen.push(row as i64);
    }
    chosen
}
