//! How much of the distribution of a missing cell lies in bins, under a mixture of Gaussians, given the other cells of its row.

use crate::simd::{dispatch, fma};
use crate::special::normal_distribution;
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

/// Adds the share of each bin of a normal distribution; `below` is room for its distribution function at the edges.
#[inline(always)]
fn add_bins<const FUSED: bool>(
    mean: f64,
    deviation: f64,
    share: f64,
    edges: &[f64],
    below: &mut [f64],
    out: &mut [f64],
) {
    let factor = 1.0 / deviation;
    for (below, edge) in below[1..].iter_mut().zip(edges) {
        *below = normal_distribution::<FUSED>((edge - mean) * factor);
    }
    for (out, pair) in out.iter_mut().zip(below.windows(2)) {
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
        let mut below = vec![0.0; bins + 1];
        below[bins] = 1.0;
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
                dispatch!(add_bins(mean, conditional.deviation, share, edges, &mut below, out));
            }
        }
        Ok(())
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

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
