//! k-means++: rows to begin with, each drawn with a chance that grows with the squared distance from those before it.

use super::points::Points;
use crate::threads;

const BLOCK: usize = 4096;

/// The number of a row that a random number from 0 to 1 falls on; rows have shares of it by `mass`, by blocks.
fn draw(masses: &[f64], chance: f64) -> usize {
    let blocks: Vec<f64> = masses.chunks(BLOCK).map(|block| block.iter().sum()).collect();
    let mut left = chance * blocks.iter().sum::<f64>();
    let mut block = 0;
    while block + 1 < blocks.len() && left >= blocks[block] {
        left -= blocks[block];
        block += 1;
    }
    let first = block * BLOCK;
    let mut last_with_mass = first;
    for (i, &mass) in masses[first..].iter().take(BLOCK).enumerate() {
        if mass > 0.0 {
            last_with_mass = first + i;
            if left < mass {
                break;
            }
        }
        left -= mass;
    }
    last_with_mass
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
            if !points.holes() && apart[near.chosen[row] as usize] > 4.000_001 * now {
                return now;
            }
            now.min(points.distance(row, candidate, norm))
        };
        range.map(of).collect::<Vec<f64>>()
    });
    parts.concat()
}

/// Chooses rows, one after the other; each is the best of as many candidates as there are chances for it (`trials`).
pub fn plus_plus<P: Points>(points: &P, weights: Option<&[f64]>, trials: usize, chances: &[f64]) -> Vec<i64> {
    let (rows, columns) = (points.rows(), points.columns());
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let weighed = |squares: &[f64]| squares.iter().enumerate().map(|(i, s)| weight(i) * s).collect::<Vec<f64>>();
    let centre = |row: usize| {
        let mut values = vec![0.0; columns];
        points.as_centre(row, &mut values);
        values
    };
    let ones = weighed(&vec![1.0; rows]);
    let first = draw(&ones, chances[0]);
    let mut chosen = vec![first as i64];
    let mut centres = vec![centre(first)];
    let mut near = Nearest { chosen: vec![0; rows], square: vec![f64::INFINITY; rows] };
    near.square = squares(points, &near, &centres[0], &[0.0]);
    for chances in chances[trials..].chunks(trials) {
        let masses = weighed(&near.square);
        let any = masses.iter().any(|&mass| mass > 0.0);
        let mut best: Option<(f64, usize, Vec<f64>, Vec<f64>)> = None;
        for &chance in chances {
            let row = draw(if any { &masses } else { &ones }, chance);
            let candidate = centre(row);
            let apart: Vec<f64> =
                centres.iter().map(|c| c.iter().zip(&candidate).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).collect();
            let after = squares(points, &near, &candidate, &apart);
            let rest = weighed(&after).chunks(BLOCK).map(|block| block.iter().sum::<f64>()).sum();
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
