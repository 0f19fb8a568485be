//! Log densities of Gaussians with a full covariance, through the inverse W of its Cholesky factor: −½‖W(x−μ)‖².

use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Source};
use crate::threads;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Rows in a group: two AVX registers.
const GROUP: usize = 8;
/// Columns of the whitened row computed together.
const HIGH: usize = 4;
/// Rows a thread loads at a time, and takes at a time.
const TILE: usize = 6 * GROUP;
const PIECE: usize = 8 * TILE;

/// One covariance for every class, or one for all.
pub struct Full<'a> {
    /// classes × columns
    pub mean: &'a [f64],
    /// covariances × columns × columns: lower triangular W
    pub whitener: &'a [f64],
    /// covariances × columns × columns: needed for rows with missing cells only
    pub covariance: &'a [f64],
    /// one per class: −½ log |2πΣ|
    pub constant: &'a [f64],
    pub classes: usize,
    pub width: usize,
}

impl Full<'_> {
    fn tied(&self) -> bool {
        self.whitener.len() == self.width * self.width && self.classes > 1
    }

    fn of_class<'b>(&self, matrices: &'b [f64], class: usize) -> &'b [f64] {
        let size = self.width * self.width;
        let index = if self.tied() { 0 } else { class };
        &matrices[index * size..(index + 1) * size]
    }
}

/// The rows of W in blocks of [`HIGH`], column after column up to the diagonal: read straight through by the kernel.
fn pack(whitener: &[f64], width: usize) -> Vec<f64> {
    let mut packed = vec![];
    for i in (0..width).step_by(HIGH) {
        for j in 0..(i + HIGH).min(width) {
            packed.extend((i..i + HIGH).map(|i| if i < width { whitener[i * width + j] } else { 0.0 }));
        }
    }
    packed
}

/// ‖W t‖² of a group of rows; `t` holds the columns, each [`GROUP`] long.
#[inline(always)]
fn squares<const FUSED: bool>(packed: &[f64], t: &[f64], width: usize) -> [f64; GROUP] {
    let mut squares = [0.0; GROUP];
    let mut at = 0;
    for i in (0..width).step_by(HIGH) {
        let columns = (i + HIGH).min(width);
        let w = &packed[at..at + columns * HIGH];
        at += columns * HIGH;
        let mut z = [[0.0; GROUP]; HIGH];
        for (w, t) in w.chunks_exact(HIGH).zip(t.chunks_exact(GROUP)) {
            let w: &[f64; HIGH] = w.try_into().unwrap();
            let t: &[f64; GROUP] = t.try_into().unwrap();
            for h in 0..HIGH {
                for r in 0..GROUP {
                    z[h][r] = fma::<FUSED>(w[h], t[r], z[h][r]);
                }
            }
        }
        for z in &z {
            for r in 0..GROUP {
                squares[r] = fma::<FUSED>(z[r], z[r], squares[r]);
            }
        }
    }
    squares
}

/// Adds the scores of up to [`TILE`] rows, given as columns each [`TILE`] long, to `out` (rows × classes).
#[inline(always)]
fn score_tile<const FUSED: bool>(tile: &[f64], full: &Full, packed: &[Vec<f64>], t: &mut [f64], out: &mut [f64]) {
    let (k, width) = (full.classes, full.width);
    let rows = out.len() / k;
    for c in 0..k {
        let packed = &packed[if full.tied() { 0 } else { c }];
        for first in (0..rows).step_by(GROUP) {
            for j in 0..width {
                let mean = full.mean[c * width + j];
                let x: &[f64; GROUP] = tile[j * TILE + first..j * TILE + first + GROUP].try_into().unwrap();
                for (t, x) in t[j * GROUP..(j + 1) * GROUP].iter_mut().zip(x) {
                    *t = x - mean;
                }
            }
            let squares = squares::<FUSED>(packed, t, width);
            for (r, square) in squares.iter().enumerate().take(rows - first) {
                out[(first + r) * k + c] += full.constant[c] - 0.5 * square;
            }
        }
    }
}

pub fn score(source: &Source, full: &Full, out: &mut [f64]) -> Result<(), BadCell> {
    let (rows, k, width) = (source.rows(), full.classes, full.width);
    let packed: Vec<Vec<f64>> = full.whitener.chunks_exact((width * width).max(1)).map(|w| pack(w, width)).collect();
    let steps = rows * k * width * width;
    // Rows with holes are left for later; each is noted by the piece that met it.
    let holes = Mutex::new(vec![]);
    threads::for_each(out, PIECE * k, steps, |piece, out| {
        let mut tile = vec![0.0; width * TILE];
        let mut t = vec![0.0; width * GROUP];
        for (i, out) in out.chunks_mut(TILE * k).enumerate() {
            let first = piece * PIECE + i * TILE;
            let count = out.len() / k;
            let missing = source.load_columns(first..first + count, TILE, &mut tile)?;
            let mut kept = vec![];
            if missing {
                for r in 0..count {
                    let missing = |j: usize| tile[j * TILE + r].is_nan();
                    if (0..width).any(missing) {
                        let pattern: Vec<bool> = (0..width).map(missing).collect();
                        holes.lock().unwrap_or_else(PoisonError::into_inner).push((pattern, first + r));
                        kept.push((r, out[r * k..(r + 1) * k].to_vec()));
                    }
                }
            }
            dispatch!(score_tile(&tile, full, &packed, &mut t, out));
            for (r, before) in kept {
                out[r * k..(r + 1) * k].copy_from_slice(&before);
            }
        }
        Ok(())
    })?;
    let holes = holes.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !holes.is_empty() {
        score_holes(source, full, holes, out);
    }
    Ok(())
}

/// Scores rows with missing cells by the exact marginal of the cells that are there, pattern by pattern.
fn score_holes(source: &Source, full: &Full, holes: Vec<(Vec<bool>, usize)>, out: &mut [f64]) {
    let mut patterns: FxHashMap<Vec<bool>, Vec<usize>> = FxHashMap::default();
    for (pattern, row) in holes {
        patterns.entry(pattern).or_default().push(row);
    }
    let patterns: Vec<(Vec<bool>, Vec<usize>)> = patterns.into_iter().collect();
    let (k, width) = (full.classes, full.width);
    let scores = threads::map(patterns.len(), patterns.len() * k * width.pow(3) / 6, |i| {
        let (pattern, rows) = &patterns[i];
        let there: Vec<usize> = (0..width).filter(|&j| !pattern[j]).collect();
        marginal_scores(source, full, &there, rows)
    });
    for ((_, rows), scores) in patterns.iter().zip(scores) {
        for (&row, scores) in rows.iter().zip(scores.chunks_exact(k)) {
            for (out, score) in out[row * k..(row + 1) * k].iter_mut().zip(scores) {
                *out += score;
            }
        }
    }
}

/// The scores (rows × classes) of rows of which only the columns `there` are known.
fn marginal_scores(source: &Source, full: &Full, there: &[usize], rows: &[usize]) -> Vec<f64> {
    let (k, width, size) = (full.classes, full.width, there.len());
    let mut scores = vec![0.0; rows.len() * k];
    let mut factor = vec![];
    let mut constant = 0.0;
    let mut z = vec![0.0; size];
    for c in 0..k {
        if c == 0 || !full.tied() {
            let covariance = full.of_class(full.covariance, c);
            factor = there.iter().flat_map(|&i| there.iter().map(move |&j| covariance[i * width + j])).collect();
            cholesky(&mut factor, size);
            let log_diagonal: f64 = (0..size).map(|i| factor[i * size + i].ln()).sum();
            constant = -log_diagonal - 0.5 * size as f64 * std::f64::consts::TAU.ln();
        }
        for (r, &row) in rows.iter().enumerate() {
            let mut square = 0.0;
            for (i, &j) in there.iter().enumerate() {
                let line = &factor[i * size..i * size + i];
                let solved: f64 = line.iter().zip(&z).map(|(l, z)| l * z).sum();
                z[i] = (source.cell(row, j) - full.mean[c * width + j] - solved) / factor[i * size + i];
                square += z[i] * z[i];
            }
            scores[r * k + c] = constant - 0.5 * square;
        }
    }
    scores
}

/// The lower Cholesky factor, in place (the upper half is left as it is). A principal block of a positive definite
/// matrix is positive definite, so the roots exist.
fn cholesky(a: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..=i {
            let (above, line) = a.split_at_mut(i * size);
            let other = if j == i { None } else { Some(&above[j * size..j * size + j + 1]) };
            if let Some(other) = other {
                let dot: f64 = line[..j].iter().zip(other).map(|(a, b)| a * b).sum();
                line[j] = (line[j] - dot) / other[j];
            } else {
                let dot: f64 = line[..i].iter().map(|a| a * a).sum();
                line[i] = (line[i] - dot).sqrt();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn a_hole_is_scored_by_the_marginal() {
        let x = array![[1.0, f64::NAN, 2.0], [f64::NAN, f64::NAN, f64::NAN], [0.5, 1.5, -1.0]];
        // Σ = L Lᵀ with L = [[1,0,0],[1,2,0],[0,1,1]]; W = L⁻¹
        let covariance = [1.0, 1.0, 0.0, 1.0, 5.0, 2.0, 0.0, 2.0, 2.0];
        let whitener = [1.0, 0.0, 0.0, -0.5, 0.5, 0.0, 0.5, -0.5, 1.0];
        let constant = -(2f64).ln() - 1.5 * std::f64::consts::TAU.ln();
        let full = Full {
            mean: &[0.0; 3],
            whitener: &whitener,
            covariance: &covariance,
            constant: &[constant],
            classes: 1,
            width: 3,
        };
        let mut out = vec![0.0; 3];
        super::score(&source(&x), &full, &mut out).unwrap();
        // columns 0 and 2 are independent with variances 1 and 2
        let marginal = -0.5 * (1.0 + 4.0 / 2.0) - 0.5 * 2f64.ln() - std::f64::consts::TAU.ln();
        assert!((out[0] - marginal).abs() < 1e-14);
        assert!(out[1].abs() < 1e-14);
        let z = [0.5, 0.5, -1.5];
        let complete = constant - 0.5 * z.iter().map(|z| z * z).sum::<f64>();
        assert!((out[2] - complete).abs() < 1e-14, "{} {complete}", out[2]);
    }
}
