//! Log densities of families that factorise by column, added to scores of rows × classes.

use crate::linear;
use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Source};
use crate::special::{excess, gamma_constant};
use crate::threads;

/// Rows scored together: a few vector registers of each column.
const TILE: usize = 16;
/// Rows a thread takes at a time.
const PIECE: usize = 1024;

/// Loads tile after tile of rows, transposed, and lets `score` fill the scores of that tile,
/// class after class, each [`TILE`] long; adds them to `out` (rows × classes).
fn by_tiles(
    source: &Source,
    k: usize,
    out: &mut [f64],
    score: impl Fn(&[f64], bool, &mut [f64]) + Sync + Send,
) -> Result<(), BadCell> {
    let (rows, width) = (source.rows(), source.width());
    threads::for_each(out, PIECE * k, rows * width * k, |piece, out| {
        let mut tile = vec![0.0; width * TILE];
        let mut scores = vec![0.0; k * TILE];
        for (t, out) in out.chunks_mut(TILE * k).enumerate() {
            let first = piece * PIECE + t * TILE;
            let count = out.len() / k;
            let missing = source.load_columns(first..first + count, TILE, &mut tile)?;
            score(&tile, missing, &mut scores);
            for (r, out) in out.chunks_exact_mut(k).enumerate() {
                for (out, scores) in out.iter_mut().zip(scores.as_chunks::<TILE>().0) {
                    *out += scores[r];
                }
            }
        }
        Ok(())
    })
}

fn lane(tile: &[f64], j: usize) -> &[f64; TILE] {
    tile[j * TILE..(j + 1) * TILE].try_into().unwrap()
}

/// A Gaussian for every class and column: −½((x−μ)/σ)² + constant, constant = −log σ − ½ log 2π.
pub struct Gaussian<'a> {
    pub mean: &'a [f64],
    /// 1/σ
    pub precision: &'a [f64],
    pub constant: &'a [f64],
    pub classes: usize,
}

/// MISSING: whether cells may be; `all`: the constants of all columns together.
#[inline(always)]
fn gaussian_tile<const MISSING: bool, const FUSED: bool>(
    tile: &[f64],
    g: &Gaussian,
    all: &[f64],
    width: usize,
    scores: &mut [f64],
) {
    let tile = tile.as_chunks::<TILE>().0;
    for (c, out) in scores.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        let at = c * width..(c + 1) * width;
        let (mean, precision, constant) = (&g.mean[at.clone()], &g.precision[at.clone()], &g.constant[at]);
        let mut sums = [0.0; TILE];
        let mut constants = [0.0; TILE];
        for (x, ((mean, precision), constant)) in tile.iter().zip(mean.iter().zip(precision).zip(constant)) {
            for r in 0..TILE {
                let z = (x[r] - mean) * precision;
                if MISSING {
                    // Two choices without a branch: both are vectorised.
                    let there = if z.is_nan() { 0.0 } else { 1.0 };
                    let z = if z.is_nan() { 0.0 } else { z };
                    sums[r] = fma::<FUSED>(z, z, sums[r]);
                    constants[r] = fma::<FUSED>(there, *constant, constants[r]);
                } else {
                    sums[r] = fma::<FUSED>(z, z, sums[r]);
                }
            }
        }
        for r in 0..TILE {
            out[r] = if MISSING { constants[r] } else { all[c] } - 0.5 * sums[r];
        }
    }
}

pub fn gaussian(source: &Source, g: &Gaussian, out: &mut [f64]) -> Result<(), BadCell> {
    let width = source.width();
    let all = row_sums(g.constant, width, g.classes);
    by_tiles(source, g.classes, out, |tile, missing, scores| {
        if missing {
            dispatch!(gaussian_tile::<true>(tile, g, &all, width, scores));
        } else {
            dispatch!(gaussian_tile::<false>(tile, g, &all, width, scores));
        }
    })
}

/// Scores linear in the cells: Σ_j constant + slope · x over the cells that are there.
pub struct Linear<'a> {
    pub slope: &'a [f64],
    pub constant: &'a [f64],
    pub classes: usize,
}

#[inline(always)]
fn linear_tile<const FUSED: bool>(tile: &[f64], l: &Linear, width: usize, scores: &mut [f64]) {
    for (c, out) in scores.chunks_exact_mut(TILE).enumerate() {
        let at = c * width..(c + 1) * width;
        let (slope, constant) = (&l.slope[at.clone()], &l.constant[at]);
        let mut sums = [0.0; TILE];
        for j in 0..width {
            let x = lane(tile, j);
            for r in 0..TILE {
                // 0 · log 0 is 0: a count of zero says nothing of a word that cannot be.
                let term = if x[r] == 0.0 { constant[j] } else { fma::<FUSED>(slope[j], x[r], constant[j]) };
                sums[r] += if !x[r].is_nan() { term } else { 0.0 };
            }
        }
        out.copy_from_slice(&sums);
    }
}

pub fn linear(source: &Source, l: &Linear, out: &mut [f64]) -> Result<(), BadCell> {
    let width = source.width();
    let (origin, theta0) = (vec![0.0; width], row_sums(l.constant, width, l.classes));
    let complete = linear::Linear::new(&origin, l.slope, &theta0);
    let finite = l.slope.iter().chain(&theta0).all(|x| x.is_finite());
    if !finite {
        return by_tiles(source, l.classes, out, |tile, _, scores| dispatch!(linear_tile(tile, l, width, scores)));
    }
    complete.score(source, out, |row, out| {
        for (c, out) in out.iter_mut().enumerate() {
            for j in 0..width {
                let x = source.cell(row, j);
                *out += if x.is_nan() { 0.0 } else { l.constant[c * width + j] + l.slope[c * width + j] * x };
            }
        }
        Ok(true)
    })
}

/// Scores about an origin: NaN where a cell is missing.
pub fn products(source: &Source, linear: &linear::Linear, out: &mut [f64]) -> Result<(), BadCell> {
    linear.score(source, out, |_, _| Ok(false))
}

pub fn row_sums(cells: &[f64], width: usize, rows: usize) -> Vec<f64> {
    (0..rows).map(|row| cells[row * width..(row + 1) * width].iter().sum()).collect()
}

/// Columns of 0 and 1: the logarithm of p(0) or of p(1), which may be −∞.
pub struct Binary<'a> {
    pub log_no: &'a [f64],
    pub log_yes: &'a [f64],
    pub classes: usize,
}

#[inline(always)]
fn binary_tile<const FUSED: bool>(tile: &[f64], b: &Binary, width: usize, scores: &mut [f64]) {
    for (c, out) in scores.chunks_exact_mut(TILE).enumerate() {
        let mut sums = [0.0; TILE];
        for j in 0..width {
            let (no, yes) = (b.log_no[c * width + j], b.log_yes[c * width + j]);
            let x = lane(tile, j);
            for r in 0..TILE {
                let log = if x[r] == 0.0 { no } else { yes };
                sums[r] += if x[r].is_nan() { 0.0 } else { log };
            }
        }
        out.copy_from_slice(&sums);
    }
}

pub fn binary(source: &Source, b: &Binary, out: &mut [f64]) -> Result<(), BadCell> {
    let width = source.width();
    by_tiles(source, b.classes, out, |tile, _, scores| {
        dispatch!(binary_tile(tile, b, width, scores));
    })
}

/// A gamma distribution for every class and column, by its mean and shape: constant − a (u − 1 − log u) − log x, u = x/mean.
/// The usual a log b − log Γ(a) + (a−1) log x − bx would be a small difference of large numbers in a narrow column.
pub struct Gamma<'a> {
    pub mean: &'a [f64],
    pub shape: &'a [f64],
    pub classes: usize,
}

pub fn gamma(source: &Source, g: &Gamma, out: &mut [f64]) -> Result<(), BadCell> {
    let width = source.width();
    let constant: Vec<f64> = g.shape.iter().map(|&a| gamma_constant(a)).collect();
    by_tiles(source, g.classes, out, |tile, _, scores| {
        for (c, out) in scores.chunks_exact_mut(TILE).enumerate() {
            out.fill(0.0);
            for j in 0..width {
                let at = c * width + j;
                for (out, x) in out.iter_mut().zip(lane(tile, j)) {
                    let score = constant[at] - g.shape[at] * excess(*x, g.mean[at]) - x.ln();
                    *out += if score.is_nan() { 0.0 } else { score };
                }
            }
        }
    })
}

/// A Poisson distribution for every class and column. x log λ − λ − log x! is written as the distance of x from λ, which
/// loses no digits where both are large.
pub struct Poisson<'a> {
    pub rate: &'a [f64],
    pub classes: usize,
}

pub fn poisson(source: &Source, p: &Poisson, out: &mut [f64]) -> Result<(), BadCell> {
    let width = source.width();
    by_tiles(source, p.classes, out, |tile, _, scores| {
        scores.fill(0.0);
        for j in 0..width {
            for (r, &x) in lane(tile, j).iter().enumerate() {
                // x log x − x − log x!
                let base = if x > 0.0 { gamma_constant(x) - x.ln() } else { 0.0 };
                for (c, out) in scores.chunks_exact_mut(TILE).enumerate() {
                    let rate = p.rate[c * width + j];
                    let score = if x > 0.0 { base - x * excess(rate, x) } else { -rate };
                    out[r] += if x.is_nan() || rate.is_nan() { 0.0 } else { score };
                }
            }
        }
    })
}

/// Adds −Σ log x to every class (`source` reads logarithms): the density of log x becomes that of x.
pub fn jacobian(source: &Source, k: usize, out: &mut [f64]) -> Result<(), BadCell> {
    by_tiles(source, k, out, |tile, _, scores| {
        let mut sums = [0.0; TILE];
        for tile in tile.chunks_exact(TILE) {
            for (sum, &x) in sums.iter_mut().zip(tile) {
                *sum -= if x.is_nan() { 0.0 } else { x };
            }
        }
        for scores in scores.chunks_exact_mut(TILE) {
            scores.copy_from_slice(&sums);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn a_missing_cell_carries_no_information() {
        let x = array![[1.0, f64::NAN], [f64::NAN, f64::NAN], [0.0, 2.0]];
        let g = Gaussian {
            mean: &[0.0, 0.0, 1.0, 1.0],
            precision: &[1.0, 1.0, 2.0, 2.0],
            constant: &[10.0, 20.0, 30.0, 40.0],
            classes: 2,
        };
        let mut out = vec![0.0; 6];
        gaussian(&source(&x), &g, &mut out).unwrap();
        assert_eq!(out, [9.5, 30.0, 0.0, 0.0, 28.0, 66.0]);
    }

    #[test]
    fn gamma_densities() {
        // shape 1 is the exponential distribution; a narrow column keeps its digits
        let x = array![[3.0, 1e9 + 1.0]];
        let g = Gamma { mean: &[2.0, 1e9], shape: &[1.0, 1e18], classes: 1 };
        let mut out = vec![0.0];
        gamma(&source(&x), &g, &mut out).unwrap();
        let normal = -0.5 * std::f64::consts::TAU.ln() - 0.5; // mean 1e9, deviation 1: x is one away
        assert!((out[0] - (-1.5 - 2f64.ln() + normal)).abs() < 1e-8, "{}", out[0]);
    }

    #[test]
    fn poisson_probabilities() {
        let x = array![[0.0], [3.0], [f64::NAN]];
        let mut out = vec![0.0; 6];
        poisson(&source(&x), &Poisson { rate: &[2.0, 0.0], classes: 2 }, &mut out).unwrap();
        let three = 3.0 * 2f64.ln() - 2.0 - 6f64.ln();
        assert_eq!([out[0], out[1], out[3], out[4], out[5]], [-2.0, 0.0, f64::NEG_INFINITY, 0.0, 0.0]);
        assert!((out[2] - three).abs() < 1e-15);
    }

    #[test]
    fn zero_times_minus_infinity_is_zero() {
        let x = array![[0.0, 2.0], [1.0, f64::NAN]];
        let l = Linear { slope: &[f64::NEG_INFINITY, -1.0], constant: &[0.5, 0.25], classes: 1 };
        let mut out = vec![0.0; 2];
        linear(&source(&x), &l, &mut out).unwrap();
        assert_eq!(out, [0.5 - 1.75, f64::NEG_INFINITY]);
    }
}
