//! How much of the distribution of a cell lies in bins, under a mixture of Gaussians, given the other cells of its row.

use crate::missing::{Conditional, Padded, Pattern, dot, fill};
use crate::simd::{dispatch, fma};
use crate::special::normal_distributions;
use crate::threads;
use rustc_hash::FxHashMap;
use std::convert::Infallible;

/// A component with less responsibility for a row is left out of its answer.
const NEGLIGIBLE: f64 = 1e-9;
/// A variance that is less than this is rounding.
const LEAST_VARIANCE: f64 = 1e-12;
const PIECE: usize = 128;

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

/// Some cells given the others of their row, rows × columns × components.
pub struct GivenOthers {
    /// log p(cell | the others), divided by the standard normal density; 0 of a cell that is missing
    pub log: Vec<f64>,
    pub mean: Vec<f64>,
    pub deviation: Vec<f64>,
}

/// Rows with the same cells missing that a thread takes at a time.
const GROUP: usize = 256;

/// Gaussians: means (components × columns) and inverse covariances K (components × columns × columns).
pub struct Gaussians<'a> {
    pub mean: &'a [f64],
    pub precision: &'a [f64],
    pub width: usize,
}

/// Cells of some columns given all others of their row that are there, whether they are there themselves or not.
///
/// With u = K (x − μ), where missing cells are at their means given the others, and Λ the inverse covariance of those that are
/// there, (Λ (x − μ))ᵢ = uᵢ: a cell given the others has the variance 1 / Λᵢᵢ and lies uᵢ / Λᵢᵢ above its mean.
pub fn given_others(cells: &[f64], gaussians: &Gaussians, columns: &[usize]) -> GivenOthers {
    let Gaussians { mean, precision, width } = *gaussians;
    let (rows, k, line) = (cells.len() / width, mean.len() / width, columns.len() * (mean.len() / width));
    let mut patterns: FxHashMap<Vec<bool>, Vec<usize>> = FxHashMap::default();
    for (row, cells) in cells.chunks_exact(width).enumerate() {
        patterns.entry(cells.iter().map(|x| !x.is_nan()).collect()).or_default().push(row);
    }
    let groups: Vec<(&[bool], &[usize])> =
        patterns.iter().flat_map(|(there, rows)| rows.chunks(GROUP).map(|rows| (there.as_slice(), rows))).collect();
    let precisions = Padded::new(precision, width);
    let found = threads::map(groups.len(), rows * line * width, |group| {
        let (there, rows) = groups[group];
        let pattern = Pattern::new(there);
        let mut out = vec![[0.0; 3]; rows.len() * line];
        for component in 0..k {
            let mean = &mean[component * width..][..width];
            let of = (component, k);
            let precision = precisions.of(component);
            dispatch!(add_given_others(cells, rows, &pattern, mean, precision, columns, of, &mut out));
        }
        out
    });
    let mut out = GivenOthers { log: vec![0.0; rows * line], mean: vec![], deviation: vec![] };
    (out.mean, out.deviation) = (out.log.clone(), out.log.clone());
    for ((_, rows), found) in groups.iter().zip(found) {
        for (&row, found) in rows.iter().zip(found.chunks_exact(line.max(1))) {
            for (at, [log, mean, deviation]) in (row * line..).zip(found) {
                (out.log[at], out.mean[at], out.deviation[at]) = (*log, *mean, *deviation);
            }
        }
    }
    out
}

/// Rows of one pattern under one component: log, mean and deviation of cells, rows × columns × components.
#[inline(always)]
fn add_given_others<const FUSED: bool>(
    cells: &[f64],
    rows: &[usize],
    pattern: &Pattern,
    mean: &[f64],
    precision: &[f64],
    columns: &[usize],
    (component, k): (usize, usize),
    out: &mut [[f64; 3]],
) {
    let (width, stride) = (mean.len(), precision.len() / mean.len());
    let missing = Conditional::new(&pattern.missing, precision, stride);
    let m = pattern.missing.len();
    let mut across = vec![0.0; m];
    let mut variances = Vec::with_capacity(columns.len());
    for &i in columns {
        let line = &precision[i * stride..][..stride];
        let variance = if let Ok(at) = pattern.missing.binary_search(&i) {
            missing.covariance[at * m + at]
        } else {
            across.iter_mut().zip(&pattern.missing).for_each(|(across, &j)| *across = line[j]);
            let mut explained = 0.0;
            for (a, covariance) in across.iter().zip(missing.covariance.chunks_exact(m.max(1))) {
                explained += a * dot::<FUSED>(covariance, &across);
            }
            1.0 / (line[i] - explained)
        };
        variances.push(variance.max(LEAST_VARIANCE));
    }
    let (mut apart, mut filled, mut there, mut pulls) = (vec![0.0; stride], vec![0.0; width], vec![], vec![]);
    for (r, &row) in rows.iter().enumerate() {
        let cells = &cells[row * width..][..width];
        there.clear();
        for &j in &pattern.there {
            there.push(cells[j]);
        }
        fill::<FUSED>(&there, pattern, &missing, mean, precision, &mut apart, &mut pulls, &mut filled);
        for (apart, (x, mean)) in apart.iter_mut().zip(filled.iter().zip(mean)) {
            *apart = x - mean;
        }
        let out = &mut out[r * columns.len() * k..][..columns.len() * k];
        for (at, (&i, variance)) in columns.iter().zip(&variances).enumerate() {
            out[at * k + component] = if cells[i].is_nan() {
                [0.0, filled[i], variance.sqrt()]
            } else {
                let away = dot::<FUSED>(&precision[i * stride..][..stride], &apart) * variance;
                let log = 0.5 * (cells[i] * cells[i] - away * away / variance - variance.ln());
                [log, cells[i] - away, variance.sqrt()]
            };
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
    fn bins_of_a_conditional_normal() {
        // x, y with correlation ½: y given x = 1 is of mean ½ and variance ¾.
        let precision = [4.0 / 3.0, -2.0 / 3.0, -2.0 / 3.0, 4.0 / 3.0];
        let gaussians = Gaussians { mean: &[0.0, 0.0], precision: &precision, width: 2 };
        for y in [f64::NAN, -0.3] {
            let cells = [1.0, y, f64::NAN, y];
            let found = given_others(&cells, &gaussians, &[1]);
            let bins = normal_bins(&found.mean, &found.deviation, &[1.0, 1.0], 1, &[0.5, 2.0]);
            let (deviation, normal) = (0.75f64.sqrt(), normal_distribution::<false>);
            let want = [0.5, normal(1.5 / deviation) - 0.5, 1.0 - normal(1.5 / deviation)];
            let alone = [normal(0.5), normal(2.0) - normal(0.5), 1.0 - normal(2.0)];
            for (got, want) in bins.iter().zip(want.iter().chain(&alone)) {
                assert!((got - want).abs() < 1e-14, "{got} {want}");
            }
            let log = |mean: f64, v: f64| -0.5 * (y - mean).powi(2) / v - 0.5 * v.ln() + 0.5 * y * y;
            for (got, want) in found.log.iter().zip([log(0.5, 0.75), 0.0]) {
                assert!((got - if y.is_nan() { 0.0 } else { want }).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn a_cell_that_is_there_is_given_the_others_as_a_missing_one_is() {
        let precision = [1.5, 0.5, 0.2, 0.5, 2.0, -0.3, 0.2, -0.3, 1.0, 1.0, 0.0, 0.1, 0.0, 1.0, 0.4, 0.1, 0.4, 0.7];
        let gaussians = Gaussians { mean: &[0.3, -0.2, 0.5, 1.0, 0.0, -1.0], precision: &precision, width: 3 };
        let nan = f64::NAN;
        let cells = [0.7, -1.0, 2.0, nan, 0.4, 1.0, 0.5, nan, nan, nan, nan, nan, 1.5, 0.0, nan];
        let all = given_others(&cells, &gaussians, &[2, 0, 1]);
        for (at, column) in [2, 0, 1].into_iter().enumerate() {
            let mut hidden = cells;
            hidden.iter_mut().skip(column).step_by(3).for_each(|x| *x = nan);
            let one = given_others(&hidden, &gaussians, &[column]);
            for row in 0..5 {
                for component in 0..2 {
                    let (got, want) = ((row * 3 + at) * 2 + component, row * 2 + component);
                    assert!((all.mean[got] - one.mean[want]).abs() < 1e-14);
                    assert!((all.deviation[got] - one.deviation[want]).abs() < 1e-14);
                    let x = cells[row * 3 + column];
                    let away = (x - one.mean[want]) / one.deviation[want];
                    let log = -0.5 * away * away - one.deviation[want].ln() + 0.5 * x * x;
                    assert!((all.log[got] - if x.is_nan() { 0.0 } else { log }).abs() < 1e-13);
                }
            }
        }
    }
}
