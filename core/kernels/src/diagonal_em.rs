//! A step of expectation maximisation of Gaussians whose columns are independent, in one pass: a few rows are read, scored,
//! given their responsibilities and added to the sums while they are in the cache.

use crate::density::{Gaussian, row_sums};
use crate::moments::{Moments, block_rows};
use crate::simd::{dispatch_wide, fma};
use crate::source::{BadCell, Source};
use crate::special::exp_of_negative;
use crate::threads;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that are read together. A column of them is a run of vectors.
const TILE: usize = 64;
/// If a cell is missing in one of the first so many rows, three passes are faster than this one.
pub const PROBED: usize = 32 * TILE;
/// Numbers that are left of a sum from tile to tile. Within a tile `LANES` rows are added side by side, four vectors of
/// them: enough for no addition to wait for the one before.
const KEPT: usize = 4;

/// Which classes are known (−1: none), and how much rows count.
pub struct Labels<'a> {
    pub log_weights: &'a [f64],
    pub codes: Option<&'a [i32]>,
    pub weights: Option<&'a [f64]>,
}

/// Σ w log p(x), or of log p(x, y) where y is known; Σ w p(y | x) of every class; and the moments about the means.
pub struct Step {
    pub log_likelihood: f64,
    pub counts: Vec<f64>,
    pub moments: Moments,
}

/// The sums of a block of rows. Every number is [`KEPT`] numbers, which are added at the end.
struct Sums {
    log_likelihood: f64,
    /// of every class, rows that lack no cell of their tile, and the others
    complete: Vec<[f64; KEPT]>,
    incomplete: Vec<[f64; KEPT]>,
    /// classes × columns; of the others, the cells that are there
    there: Vec<[f64; KEPT]>,
    sum: Vec<[f64; KEPT]>,
    square: Vec<[f64; KEPT]>,
}

/// Adds up rows side by side until [`KEPT`] numbers are left.
#[inline(always)]
fn fold<const LANES: usize>(lanes: [f64; LANES], to: &mut [f64; KEPT]) {
    for lanes in lanes.as_chunks::<{ 4 * KEPT }>().0 {
        for i in 0..KEPT {
            to[i] += (lanes[i] + lanes[i + KEPT]) + (lanes[i + 2 * KEPT] + lanes[i + 3 * KEPT]);
        }
    }
}

/// log p(x, y) of a tile, class after class.
#[inline(always)]
fn score<const LANES: usize, const MISSING: bool, const FUSED: bool>(
    cells: &[[f64; TILE]],
    g: &Gaussian,
    all: &[f64],
    log_weights: &[f64],
    scores: &mut [[f64; TILE]],
) {
    let width = cells.len();
    for (c, out) in scores.iter_mut().enumerate() {
        let at = c * width..(c + 1) * width;
        let (mean, precision, constant) = (&g.mean[at.clone()], &g.precision[at.clone()], &g.constant[at]);
        for first in (0..TILE).step_by(LANES) {
            let mut squares = [0.0; LANES];
            // What all columns add to a score, or those whose cell is there.
            let mut constants = [if MISSING { 0.0 } else { all[c] }; LANES];
            for (((x, mean), precision), constant) in cells.iter().zip(mean).zip(precision).zip(constant) {
                let x: &[f64; LANES] = x[first..first + LANES].try_into().unwrap();
                for r in 0..LANES {
                    let z = (x[r] - mean) * precision;
                    if MISSING {
                        constants[r] += if z.is_nan() { 0.0 } else { *constant };
                        let z = if z.is_nan() { 0.0 } else { z };
                        squares[r] = fma::<FUSED>(z, z, squares[r]);
                    } else {
                        squares[r] = fma::<FUSED>(z, z, squares[r]);
                    }
                }
            }
            for r in 0..LANES {
                out[first + r] = log_weights[c] + (constants[r] - 0.5 * squares[r]);
            }
        }
    }
}

/// Turns the scores of some rows into responsibilities, times the weights of the rows. Returns Σ w log p(x).
#[inline(always)]
fn expect<const FUSED: bool>(scores: &mut [[f64; TILE]], first: usize, count: usize, labels: &Labels) -> f64 {
    let mut top = [f64::NEG_INFINITY; TILE];
    for scores in scores.iter() {
        for r in 0..TILE {
            top[r] = if scores[r] > top[r] { scores[r] } else { top[r] };
        }
    }
    let known = |r: usize| labels.codes.and_then(|codes| usize::try_from(codes[first + r]).ok());
    let mut log = top;
    for r in 0..count {
        if let Some(class) = known(r) {
            log[r] = scores[class][r];
        }
    }
    let mut total = [0.0; TILE];
    for scores in scores.iter_mut() {
        for r in 0..TILE {
            scores[r] = exp_of_negative::<FUSED>(scores[r] - top[r]);
            total[r] += scores[r];
        }
    }
    let mut factor = [0.0; TILE];
    let mut sum = 0.0;
    for r in 0..count {
        let weight = labels.weights.map_or(1.0, |weights| weights[first + r]);
        if let Some(class) = known(r) {
            for (c, scores) in scores.iter_mut().enumerate() {
                scores[r] = f64::from(u8::from(c == class));
            }
            total[r] = 1.0;
        } else if top[r] == f64::NEG_INFINITY {
            for (scores, log_weight) in scores.iter_mut().zip(labels.log_weights) {
                scores[r] = log_weight.exp();
            }
            total[r] = 1.0;
        } else {
            log[r] += total[r].ln();
        }
        if weight > 0.0 {
            factor[r] = weight / total[r];
            sum += weight * log[r];
        }
    }
    for scores in scores.iter_mut() {
        for r in 0..TILE {
            // Rows after the last, and those that do not count, hold anything.
            scores[r] = if factor[r] > 0.0 { scores[r] * factor[r] } else { 0.0 };
        }
    }
    sum
}

/// Adds the cells of a tile, about the means, by the responsibilities of its rows.
#[inline(always)]
fn add<const LANES: usize, const MISSING: bool, const FUSED: bool>(
    cells: &[[f64; TILE]],
    responsibilities: &[[f64; TILE]],
    mean: &[f64],
    sums: &mut Sums,
) {
    let width = cells.len();
    for (c, w) in responsibilities.iter().enumerate() {
        let mut count = [0.0; LANES];
        for w in w.as_chunks::<LANES>().0 {
            for r in 0..LANES {
                count[r] += w[r];
            }
        }
        if count == [0.0; LANES] {
            continue;
        }
        fold(count, if MISSING { &mut sums.incomplete[c] } else { &mut sums.complete[c] });
        let at = c * width..(c + 1) * width;
        let to = sums.sum[at.clone()].iter_mut().zip(&mut sums.square[at.clone()]).zip(&mut sums.there[at.clone()]);
        for ((x, mean), ((sum_to, square_to), there_to)) in cells.iter().zip(&mean[at]).zip(to) {
            let (mut sum, mut square, mut there) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for (x, w) in x.as_chunks::<LANES>().0.iter().zip(w.as_chunks::<LANES>().0) {
                for r in 0..LANES {
                    let t = x[r] - mean;
                    if MISSING {
                        there[r] += if t.is_nan() { 0.0 } else { w[r] };
                    }
                    let t = if MISSING && t.is_nan() { 0.0 } else { t };
                    let wt = w[r] * t;
                    sum[r] += wt;
                    square[r] = fma::<FUSED>(wt, t, square[r]);
                }
            }
            fold(sum, sum_to);
            fold(square, square_to);
            if MISSING {
                fold(there, there_to);
            }
        }
    }
}

#[inline(always)]
fn tile_step<const LANES: usize, const FUSED: bool>(
    cells: &[[f64; TILE]],
    rows: Range<usize>,
    missing: bool,
    g: &Gaussian,
    all: &[f64],
    labels: &Labels,
    scores: &mut [[f64; TILE]],
    sums: &mut Sums,
) {
    if missing {
        score::<LANES, true, FUSED>(cells, g, all, labels.log_weights, scores);
    } else {
        score::<LANES, false, FUSED>(cells, g, all, labels.log_weights, scores);
    }
    sums.log_likelihood += expect::<FUSED>(scores, rows.start, rows.len(), labels);
    if missing {
        add::<LANES, true, FUSED>(cells, scores, g.mean, sums);
    } else {
        add::<LANES, false, FUSED>(cells, scores, g.mean, sums);
    }
}

/// Takes a step; `None` if another way is to be taken: if a sum overflows, or if a cell of the first `probed` rows is missing.
pub fn step(source: &Source, g: &Gaussian, labels: &Labels, probed: usize) -> Result<Option<Step>, BadCell> {
    let (rows, width, k) = (source.rows(), source.width(), g.classes);
    let all = row_sums(g.constant, width, k);
    let size = k * width;
    let block = block_rows(rows, 3 * size);
    let slower = AtomicBool::new(false);
    let parts = threads::map(rows.div_ceil(block), rows * width * k, |i| {
        let nothing = |size| vec![[0.0; KEPT]; size];
        let mut sums = Sums {
            log_likelihood: 0.0,
            complete: nothing(k),
            incomplete: nothing(k),
            there: nothing(size),
            sum: nothing(size),
            square: nothing(size),
        };
        let mut cells = vec![[0.0; TILE]; width];
        let mut scores = vec![[0.0; TILE]; k];
        let end = ((i + 1) * block).min(rows);
        for first in (i * block..end).step_by(TILE) {
            let rows = first..(first + TILE).min(end);
            if rows.len() < TILE {
                cells.fill([0.0; TILE]); // what the rows before have left could be NaN
            }
            let missing = source.load_columns(rows.clone(), TILE, cells.as_flattened_mut())?;
            if missing && first < probed {
                slower.store(true, Ordering::Relaxed);
            }
            if slower.load(Ordering::Relaxed) {
                break;
            }
            dispatch_wide!(
                tile_step::<32>(&cells, rows, missing, g, &all, labels, &mut scores, &mut sums),
                tile_step::<16>(&cells, rows, missing, g, &all, labels, &mut scores, &mut sums)
            );
        }
        Ok(sums)
    });
    if slower.into_inner() {
        return Ok(None);
    }
    let mut log_likelihood = 0.0;
    let mut total: [Vec<f64>; 5] = [k, k, size, size, size].map(|size| vec![0.0; size]);
    for part in parts {
        let part = part?;
        log_likelihood += part.log_likelihood;
        let part = [part.complete, part.incomplete, part.there, part.sum, part.square];
        for (to, of) in total.iter_mut().zip(part) {
            for (to, of) in to.iter_mut().zip(of) {
                *to += (of[0] + of[1]) + (of[2] + of[3]);
            }
        }
    }
    let [complete, incomplete, there, sum, square] = total;
    if sum.iter().chain(&square).any(|x| !x.is_finite()) {
        return Ok(None);
    }
    let weight = there.iter().enumerate().map(|(at, there)| complete[at / width] + there).collect();
    let counts = complete.iter().zip(&incomplete).map(|(one, other)| one + other).collect();
    let moments = Moments { origin: g.mean.to_vec(), weight, sum, second: square };
    Ok(Some(Step { log_likelihood, counts, moments }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responsibilities::Responsibilities;
    use crate::source::tests::source;
    use crate::{density, posterior, responsibility_moments};
    use ndarray::Array2;

    /// A step is what scoring, expecting and collecting one after the other give.
    fn compare(rows: usize, width: usize, k: usize, every: usize, known: bool) {
        let x = Array2::from_shape_fn((rows, width), |(i, j)| {
            let cell = ((i * 7919 + j * 104_729) % 1013) as f64 * 0.01 - 3.0 + 1e4 * j as f64;
            if every > 0 && (i * width + j).is_multiple_of(every) { f64::NAN } else { cell }
        });
        let at: Vec<(usize, usize)> = (0..k * width).map(|i| (i / width, i % width)).collect();
        let mean: Vec<f64> = at.iter().map(|&(c, j)| c as f64 - 1.0 + 1e4 * j as f64).collect();
        let precision: Vec<f64> = at.iter().map(|&(c, j)| 0.2 + 0.1 * ((c + j) % 3) as f64).collect();
        let constant: Vec<f64> = precision.iter().map(|p| p.ln()).collect();
        let g = Gaussian { mean: &mean, precision: &precision, constant: &constant, classes: k };
        let log_weights = vec![-(k as f64).ln(); k];
        let codes: Vec<i32> = (0..rows as i32).map(|i| if i % 5 == 0 { i % k as i32 } else { -1 }).collect();
        let weights: Vec<f64> = (0..rows).map(|i| (i % 4) as f64 * 0.5).collect();
        let (codes, weights) = if known { (Some(&codes[..]), Some(&weights[..])) } else { (None, None) };
        let source = source(&x);
        let got = step(&source, &g, &Labels { log_weights: &log_weights, codes, weights }, 0).unwrap().unwrap();

        let mut scores = vec![0.0; rows * k];
        posterior::begin(&mut scores, &log_weights);
        density::gaussian(&source, &g, &mut scores).unwrap();
        let (log_likelihood, counts) = posterior::expect(&mut scores, &log_weights, codes, weights);
        let want = responsibility_moments::collect(
            &source,
            &Responsibilities { classes: k, values: &scores, weights },
            mean.clone(),
        )
        .unwrap();
        let near = |got: f64, want: f64, size: f64| assert!((got - want).abs() <= 1e-12 * size, "{got} {want}");
        near(got.log_likelihood, log_likelihood, 1.0 + log_likelihood.abs());
        let pairs = [(&got.counts, &counts), (&got.moments.weight, &want.weight), (&got.moments.sum, &want.sum)];
        for (got, want) in pairs.into_iter().chain([(&got.moments.second, &want.second)]) {
            let size = 1e-9 + want.iter().fold(0.0f64, |size, x| size.max(x.abs()));
            got.iter().zip(want).for_each(|(got, want)| near(*got, *want, size));
        }
    }

    #[test]
    fn one_pass_is_three() {
        for (rows, width, k) in [(1, 1, 1), (63, 3, 2), (64, 2, 5), (65, 4, 3), (4160, 7, 4), (9000, 5, 9)] {
            for (every, known) in [(0, false), (0, true), (3, false), (997, true), (1, false)] {
                compare(rows, width, k, every, known);
            }
        }
    }

    #[test]
    fn a_column_without_cells_weighs_nothing() {
        let x = Array2::from_shape_fn((300, 2), |(i, j)| if j == 0 { f64::NAN } else { i as f64 });
        let ones = [1.0; 4];
        let g = Gaussian { mean: &[0.0, 100.0, 0.0, 200.0], precision: &ones, constant: &ones, classes: 2 };
        let labels = Labels { log_weights: &[0.5f64.ln(); 2], codes: None, weights: None };
        let got = step(&source(&x), &g, &labels, 0).unwrap().unwrap();
        assert_eq!([got.moments.weight[0], got.moments.weight[2], got.moments.sum[0]], [0.0; 3]);
        assert!((got.moments.weight[1] - got.counts[0]).abs() < 1e-12 * got.counts[0]);
    }

    #[test]
    fn missing_cells_among_the_first_rows_are_left_to_others() {
        let x = Array2::from_shape_fn((900, 2), |(i, j)| if i == 500 && j == 0 { f64::NAN } else { i as f64 });
        let g = Gaussian { mean: &[1.0, 2.0], precision: &[1.0; 2], constant: &[0.0; 2], classes: 1 };
        let labels = Labels { log_weights: &[0.0], codes: None, weights: None };
        let taken = |probed| step(&source(&x), &g, &labels, probed).unwrap().is_some();
        assert_eq!([taken(0), taken(400), taken(501)], [true, true, false]);
    }

    #[test]
    fn what_overflows_is_left_to_others() {
        let x = ndarray::array![[1e200], [-1e200]];
        let g = Gaussian { mean: &[0.0], precision: &[1e-200], constant: &[0.0], classes: 1 };
        let labels = Labels { log_weights: &[0.0], codes: None, weights: None };
        assert!(step(&source(&x), &g, &labels, 0).unwrap().is_none());
    }
}
