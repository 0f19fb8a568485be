//! How much of the distribution of a cell lies in bins, under a mixture of Gaussians, given the other cells of its row.

use crate::missing::{Conditional as OfMissing, Padded, Pattern, dot, fill};
use crate::simd::{dispatch, fma};
use crate::special::normal_distributions;
use crate::threads;
use crate::whitened::cholesky;
use rustc_hash::FxHashMap;
use std::convert::Infallible;

/// A component with less responsibility for a row is left out of its answer.
const NEGLIGIBLE: f64 = 1e-9;
/// A variance that is less than this is rounding.
const LEAST_VARIANCE: f64 = 1e-12;
const PIECE: usize = 128;

/// Gaussians of `width` columns: means (components × columns), and full covariances.
pub struct Gaussians<'a> {
    pub mean: &'a [f64],
    pub covariance: &'a [f64],
    pub width: usize,
}

/// What the known cells of a pattern say of one column, in one component: mean = constant + Σ slope · x.
struct Conditional {
    constant: f64,
    slope: Vec<f64>,
    deviation: f64,
}

impl Gaussians<'_> {
    fn components(&self) -> usize {
        self.mean.len() / self.width
    }

    /// The conditional of a column given others, by Σ_oo = LLᵀ.
    fn given(&self, component: usize, known: &[usize], column: usize) -> Conditional {
        let d = self.width;
        let mean = &self.mean[component * d..][..d];
        let covariance = &self.covariance[component * d * d..][..d * d];
        let n = known.len();
        let mut factor: Vec<f64> =
            known.iter().flat_map(|&i| known.iter().map(move |&j| covariance[i * d + j])).collect();
        cholesky(&mut factor, n);
        let mut slope: Vec<f64> = known.iter().map(|&i| covariance[i * d + column]).collect();
        for i in 0..n {
            let sum: f64 = (0..i).map(|j| factor[i * n + j] * slope[j]).sum();
            slope[i] = (slope[i] - sum) / factor[i * n + i];
        }
        let explained: f64 = slope.iter().map(|x| x * x).sum();
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|j| factor[j * n + i] * slope[j]).sum();
            slope[i] = (slope[i] - sum) / factor[i * n + i];
        }
        let constant = mean[column] - known.iter().zip(&slope).map(|(&i, s)| s * mean[i]).sum::<f64>();
        let variance = (covariance[column * d + column] - explained).max(LEAST_VARIANCE);
        Conditional { constant, slope, deviation: variance.sqrt() }
    }
}

/// Edges that are looked at together.
const LANES: usize = 16;

/// Edges of bins, the last of which has no end, in full lanes; and room for a distribution function at them.
struct Edges {
    lanes: Vec<[f64; LANES]>,
    /// 0, and what is below each edge
    below: Vec<f64>,
}

impl Edges {
    fn new(edges: &[f64]) -> Self {
        let mut lanes = vec![[f64::INFINITY; LANES]; edges.len() / LANES + 1];
        lanes.as_flattened_mut()[..edges.len()].copy_from_slice(edges);
        let below = vec![0.0; 1 + lanes.len() * LANES];
        Self { lanes, below }
    }
}

/// Adds the share of each bin of a normal distribution.
#[inline(always)]
fn add_bins<const FUSED: bool>(mean: f64, deviation: f64, share: f64, edges: &mut Edges, out: &mut [f64]) {
    let factor = 1.0 / deviation;
    for (below, lane) in edges.below[1..].as_chunks_mut::<LANES>().0.iter_mut().zip(&edges.lanes) {
        let mut away = [0.0; LANES];
        for i in 0..LANES {
            away[i] = (lane[i] - mean) * factor;
        }
        *below = normal_distributions::<FUSED, LANES>(away);
    }
    for (out, pair) in out.iter_mut().zip(edges.below.windows(2)) {
        *out = fma::<FUSED>(share, pair[1] - pair[0], *out);
    }
}

/// Which columns of a row are known, but for one.
fn known(row: &[f64], but: usize) -> Vec<usize> {
    (0..row.len()).filter(|&j| j != but && !row[j].is_nan()).collect()
}

/// Σ responsibility × p(edge_b < x_column < edge_b+1 | the known cells, component) of every row, rows × (edges + 1).
pub fn collect(
    cells: &[f64],
    gaussians: &Gaussians,
    responsibilities: &[f64],
    column: usize,
    edges: &[f64],
) -> Vec<f64> {
    let (d, k, bins) = (gaussians.width, gaussians.components(), edges.len() + 1);
    let rows = cells.len() / d;
    let mut patterns: FxHashMap<Vec<usize>, usize> = FxHashMap::default();
    let pattern_of: Vec<usize> = cells
        .chunks_exact(d)
        .map(|row| {
            let next = patterns.len();
            *patterns.entry(known(row, column)).or_insert(next)
        })
        .collect();
    let mut listed: Vec<(&Vec<usize>, usize)> = patterns.iter().map(|(known, &at)| (known, at)).collect();
    listed.sort_unstable_by_key(|(_, at)| *at);
    let conditionals: Vec<Vec<Conditional>> = threads::map(listed.len(), listed.len() * k * d * d * d, |at| {
        (0..k).map(|component| gaussians.given(component, listed[at].0, column)).collect()
    });
    let mut out = vec![0.0; rows * bins];
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, PIECE * bins, rows * bins * 40, |piece, out| {
        let mut edges = Edges::new(edges);
        for (i, out) in out.chunks_exact_mut(bins).enumerate() {
            let row = piece * PIECE + i;
            let (cells, pattern) = (&cells[row * d..][..d], pattern_of[row]);
            for (component, conditional) in conditionals[pattern].iter().enumerate() {
                let share = responsibilities[row * k + component];
                if share <= NEGLIGIBLE {
                    continue;
                }
                let known = listed[pattern].0.iter().zip(&conditional.slope);
                let mean = conditional.constant + known.map(|(&j, slope)| slope * cells[j]).sum::<f64>();
                dispatch!(add_bins(mean, conditional.deviation, share, &mut edges, out));
            }
        }
        Ok(())
    });
    out
}

/// Every cell given the others of its row, rows × columns × components.
pub struct GivenOthers {
    /// log p(cell | the others), divided by the standard normal density; 0 of a cell that is missing
    pub log: Vec<f64>,
    pub mean: Vec<f64>,
    pub deviation: Vec<f64>,
}

/// Rows with the same cells missing that a thread takes at a time.
const GROUP: usize = 256;

/// Every cell given the others that are there, without the cell itself, under Gaussians with these means (components ×
/// columns) and inverse covariances K.
///
/// With u = K (x − μ), where missing cells are at their means given the others, and Λ the inverse covariance of those that are
/// there, (Λ (x − μ))ᵢ = uᵢ: a cell given the others has the variance 1 / Λᵢᵢ and lies uᵢ / Λᵢᵢ above its mean.
pub fn given_others(cells: &[f64], mean: &[f64], precision: &[f64], width: usize) -> GivenOthers {
    let (rows, k) = (cells.len() / width, mean.len() / width);
    let mut patterns: FxHashMap<Vec<usize>, Vec<usize>> = FxHashMap::default();
    for (row, cells) in cells.chunks_exact(width).enumerate() {
        patterns.entry(known(cells, width)).or_default().push(row);
    }
    let groups: Vec<&[usize]> = patterns.values().flat_map(|rows| rows.chunks(GROUP)).collect();
    let precisions = Padded::new(precision, width);
    let found = threads::map(groups.len(), rows * k * width * width, |group| {
        let there: Vec<bool> = cells[groups[group][0] * width..][..width].iter().map(|x| !x.is_nan()).collect();
        let pattern = Pattern::new(&there);
        let mut out = vec![[0.0; 3]; groups[group].len() * width * k];
        for component in 0..k {
            let mean = &mean[component * width..][..width];
            let of = (component, k);
            dispatch!(add_given_others(cells, groups[group], &pattern, mean, precisions.of(component), of, &mut out));
        }
        out
    });
    let mut out = GivenOthers { log: vec![0.0; rows * width * k], mean: vec![], deviation: vec![] };
    (out.mean, out.deviation) = (out.log.clone(), out.log.clone());
    for (group, found) in groups.iter().zip(found) {
        for (&row, line) in group.iter().zip(found.chunks_exact(width * k)) {
            for (at, [log, mean, deviation]) in (row * width * k..).zip(line) {
                (out.log[at], out.mean[at], out.deviation[at]) = (*log, *mean, *deviation);
            }
        }
    }
    out
}

/// Rows of one pattern under one component: log, mean and deviation of every cell, rows × columns × components.
#[inline(always)]
fn add_given_others<const FUSED: bool>(
    cells: &[f64],
    rows: &[usize],
    pattern: &Pattern,
    mean: &[f64],
    precision: &[f64],
    (component, k): (usize, usize),
    out: &mut [[f64; 3]],
) {
    let (width, stride) = (mean.len(), precision.len() / mean.len());
    let missing = OfMissing::new(&pattern.missing, precision, stride);
    let m = pattern.missing.len();
    let mut variance = vec![0.0; width];
    for (a, &i) in pattern.missing.iter().enumerate() {
        variance[i] = missing.covariance[a * m + a];
    }
    let mut across = vec![0.0; m];
    for &i in &pattern.there {
        let line = &precision[i * stride..][..stride];
        across.iter_mut().zip(&pattern.missing).for_each(|(across, &j)| *across = line[j]);
        let explained: f64 = across
            .iter()
            .zip(missing.covariance.chunks_exact(m.max(1)))
            .map(|(a, c)| a * dot::<FUSED>(c, &across))
            .sum();
        variance[i] = 1.0 / (line[i] - explained);
    }
    for v in &mut variance {
        *v = v.max(LEAST_VARIANCE);
    }
    let (mut apart, mut filled, mut there, mut pulls) = (vec![0.0; stride], vec![0.0; width], vec![], vec![]);
    for (r, &row) in rows.iter().enumerate() {
        let cells = &cells[row * width..][..width];
        there.clear();
        there.extend(pattern.there.iter().map(|&j| cells[j]));
        fill::<FUSED>(&there, pattern, &missing, mean, precision, &mut apart, &mut pulls, &mut filled);
        for (apart, (x, mean)) in apart.iter_mut().zip(filled.iter().zip(mean)) {
            *apart = x - mean;
        }
        let out = &mut out[r * width * k..][..width * k];
        for &i in &pattern.missing {
            out[i * k + component] = [0.0, filled[i], variance[i].sqrt()];
        }
        for &i in &pattern.there {
            let away = dot::<FUSED>(&precision[i * stride..][..stride], &apart) * variance[i];
            let log = 0.5 * (cells[i] * cells[i] - away * away / variance[i] - variance[i].ln());
            out[i * k + component] = [log, cells[i] - away, variance[i].sqrt()];
        }
    }
}

/// Σ share × the share of each bin of a normal distribution: of means, deviations and shares of rows × columns × components,
/// rows × columns × (edges + 1).
pub fn normal_bins(mean: &[f64], deviation: &[f64], shares: &[f64], components: usize, edges: &[f64]) -> Vec<f64> {
    let bins = edges.len() + 1;
    let cells = mean.len() / components.max(1);
    let mut out = vec![0.0; cells * bins];
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, PIECE * bins, cells * bins * 40, |piece, out| {
        let mut edges = Edges::new(edges);
        for (i, out) in out.chunks_exact_mut(bins).enumerate() {
            for at in (piece * PIECE + i) * components..(piece * PIECE + i + 1) * components {
                if shares[at] > NEGLIGIBLE {
                    dispatch!(add_bins(mean[at], deviation[at], shares[at], &mut edges, out));
                }
            }
        }
        Ok(())
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_distribution;

    #[test]
    fn a_cell_given_the_others_is_a_missing_cell() {
        let covariance = [1.0, 0.5, 0.2, 0.5, 2.0, -0.3, 0.2, -0.3, 1.5, 1.0, 0.0, 0.1, 0.0, 1.0, 0.4, 0.1, 0.4, 0.7];
        let mean = [0.3, -0.2, 0.5, 1.0, 0.0, -1.0];
        // Inverses by the adjugate.
        let inverse: Vec<f64> = covariance
            .chunks_exact(9)
            .flat_map(|a| {
                let minor = |i: usize, j: usize| {
                    let (r, c) = ([(i + 1) % 3, (i + 2) % 3], [(j + 1) % 3, (j + 2) % 3]);
                    a[r[0] * 3 + c[0]] * a[r[1] * 3 + c[1]] - a[r[0] * 3 + c[1]] * a[r[1] * 3 + c[0]]
                };
                let determinant: f64 = (0..3).map(|j| a[j] * minor(0, j)).sum();
                (0..9).map(|at| minor(at % 3, at / 3) / determinant).collect::<Vec<_>>()
            })
            .collect();
        let nan = f64::NAN;
        let cells = [0.7, -1.0, 2.0, nan, 0.4, 1.0, 0.5, nan, nan, nan, nan, nan, 1.5, 0.0, nan];
        let found = given_others(&cells, &mean, &inverse, 3);
        let (gaussians, edges) = (Gaussians { mean: &mean, covariance: &covariance, width: 3 }, [-1.0, 0.2, 0.9]);
        for component in 0..2 {
            let shares: Vec<f64> = (0..30).map(|at| f64::from(u8::from(at % 2 == component))).collect();
            let bins = normal_bins(&found.mean, &found.deviation, &shares, 2, &edges);
            for column in 0..3 {
                let want = collect(&cells, &gaussians, &shares[..10], column, &edges);
                for row in 0..5 {
                    let own = &bins[(row * 3 + column) * 4..][..4];
                    for (got, want) in own.iter().zip(&want[row * 4..]) {
                        assert!((got - want).abs() < 1e-14, "{row} {column} {got} {want}");
                    }
                    let at = (row * 3 + column) * 2 + component;
                    let (x, mean, deviation) = (cells[row * 3 + column], found.mean[at], found.deviation[at]);
                    let log = -0.5 * ((x - mean) / deviation).powi(2) - deviation.ln() + 0.5 * x * x;
                    let want = if x.is_nan() { 0.0 } else { log };
                    assert!((found.log[at] - want).abs() < 1e-13, "{row} {column} {} {want}", found.log[at]);
                }
            }
        }
    }

    #[test]
    fn bins_of_a_conditional_normal() {
        // x, y with correlation ½: y given x = 1 is of mean ½ and variance ¾.
        let gaussians = Gaussians { mean: &[0.0, 0.0], covariance: &[1.0, 0.5, 0.5, 1.0], width: 2 };
        let found = collect(&[1.0, f64::NAN, f64::NAN, f64::NAN], &gaussians, &[1.0, 1.0], 1, &[0.5, 2.0]);
        let (deviation, normal) = (0.75f64.sqrt(), normal_distribution::<false>);
        let want = [0.5, normal(1.5 / deviation) - 0.5, 1.0 - normal(1.5 / deviation)];
        for (got, want) in found.iter().zip(want.iter().chain(&[normal(0.5), normal(2.0) - normal(0.5)])) {
            assert!((got - want).abs() < 1e-14, "{got} {want}");
        }
        assert!((found[3..].iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }
}
