//! Expected sums of products of rows with missing cells: what is missing is given its mean and covariance under a
//! Gaussian, given the cells that are there.
//!
//! With K the inverse of the covariance, m the missing columns and u = x − μ of those that are there (0 elsewhere), the
//! missing cells have the covariance C = (K_mm)⁻¹ and the mean μ_m − C (K u)_m: one small factorisation for each
//! pattern of holes.

use crate::scatter::{Bucket, Part, padded, unpad};
use crate::simd::{dispatch, fma};
use crate::threads;
use crate::whitened::cholesky;
use std::ops::Range;

/// Rows of one class with the same cells missing.
pub struct Group {
    pub pattern: usize,
    pub class: usize,
    pub rows: Range<usize>,
    /// where the cells of its first row begin
    pub cells: usize,
}

/// The cells that are there, row after row about the origin of their class, in groups sorted by pattern.
pub struct Holes<'a> {
    pub cells: &'a [f64],
    pub weights: Option<&'a [f64]>,
    /// patterns × columns: whether a cell is there
    pub there: &'a [bool],
    pub groups: Vec<Group>,
    pub width: usize,
}

/// A Gaussian for each class, about the origin of the class.
pub struct Gaussians<'a> {
    /// classes × columns
    pub mean: &'a [f64],
    /// the inverse covariance of each class, or one for all
    pub precision: &'a [f64],
}

pub struct Expected {
    pub weight: Vec<f64>,
    pub sum: Vec<f64>,
    pub product: Vec<f64>,
}

/// What the sums of all pieces together may take, and the buckets of one piece, in numbers.
const ROOM: usize = 1 << 21;
const BUCKETS: usize = 1 << 15;
const LANES: usize = 8;
/// Groups of more rows are cut, so that threads can share them.
pub const LARGEST_GROUP: usize = 1024;

#[inline(always)]
fn dot<const FUSED: bool>(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] = fma::<FUSED>(a[i], b[i], sums[i]);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(rest_of_a.iter().zip(rest_of_b)) {
        *sum = fma::<FUSED>(*a, *b, *sum);
    }
    sums.iter().sum()
}

/// What a pattern of holes means under one covariance.
struct Conditional {
    missing: Vec<usize>,
    there: Vec<usize>,
    /// missing × missing
    covariance: Vec<f64>,
}

impl Conditional {
    fn new(there: &[bool], precision: &[f64], stride: usize) -> Self {
        let (there, missing): (Vec<usize>, Vec<usize>) = (0..there.len()).partition(|&j| there[j]);
        let m = missing.len();
        let mut factor: Vec<f64> =
            missing.iter().flat_map(|&i| missing.iter().map(move |&j| precision[i * stride + j])).collect();
        cholesky(&mut factor, m);
        Self { missing, there, covariance: inverse(&factor, m) }
    }
}

/// (L Lᵀ)⁻¹, exactly symmetric.
fn inverse(factor: &[f64], m: usize) -> Vec<f64> {
    let mut whitener = vec![0.0; m * m];
    for j in 0..m {
        for i in j..m {
            let solved: f64 = (j..i).map(|h| factor[i * m + h] * whitener[h * m + j]).sum();
            whitener[i * m + j] = (f64::from(u8::from(i == j)) - solved) / factor[i * m + i];
        }
    }
    let mut inverse = vec![0.0; m * m];
    for i in 0..m {
        for j in 0..=i {
            let product: f64 = (i..m).map(|h| whitener[h * m + i] * whitener[h * m + j]).sum();
            inverse[i * m + j] = product;
            inverse[j * m + i] = product;
        }
    }
    inverse
}

/// Fills a line with the cells of a row and the means of those that are missing. `apart` is room for a row.
#[inline(always)]
fn fill<const FUSED: bool>(
    cells: &[f64],
    conditional: &Conditional,
    mean: &[f64],
    precision: &[f64],
    apart: &mut [f64],
    pulls: &mut Vec<f64>,
    line: &mut [f64],
) {
    let stride = apart.len();
    apart.fill(0.0);
    for (&j, x) in conditional.there.iter().zip(cells) {
        line[j] = *x;
        apart[j] = x - mean[j];
    }
    pulls.clear();
    pulls.extend(conditional.missing.iter().map(|&i| dot::<FUSED>(&precision[i * stride..(i + 1) * stride], apart)));
    let lines = conditional.covariance.chunks_exact(pulls.len().max(1));
    for (&i, covariance) in conditional.missing.iter().zip(lines) {
        line[i] = mean[i] - covariance.iter().zip(pulls.iter()).map(|(c, pull)| c * pull).sum::<f64>();
    }
}

/// The Gaussians with their precisions in padded lines.
struct Padded<'a> {
    of: &'a Gaussians<'a>,
    precision: Vec<f64>,
    width: usize,
    stride: usize,
}

impl<'a> Padded<'a> {
    fn new(of: &'a Gaussians<'a>, width: usize) -> Self {
        let stride = padded(width);
        let lines = of.precision.chunks_exact(width.max(1));
        let precision = lines.flat_map(|line| line.iter().copied().chain((width..stride).map(|_| 0.0))).collect();
        Self { of, precision, width, stride }
    }

    /// The place of the precision of a class.
    fn place(&self, class: usize) -> usize {
        if self.of.precision.len() > self.width * self.width { class } else { 0 }
    }

    fn precision(&self, class: usize) -> &[f64] {
        let size = self.width * self.stride;
        &self.precision[self.place(class) * size..][..size]
    }

    fn mean(&self, class: usize) -> &[f64] {
        &self.of.mean[class * self.width..(class + 1) * self.width]
    }
}

/// The sums of some groups, for each class.
fn expect_piece(holes: &Holes, groups: &[Group], gaussians: &Padded, classes: usize) -> Vec<Part> {
    let stride = gaussians.stride;
    let capacity = (BUCKETS / (stride * classes)).clamp(8, 64);
    let mut parts: Vec<Part> = (0..classes).map(|_| Part::new(stride, false)).collect();
    let mut buckets: Vec<Bucket> =
        (0..classes).map(|_| Bucket::new(capacity * stride, holes.weights.is_some())).collect();
    let (mut apart, mut pulls) = (vec![0.0; stride], vec![]);
    let mut known: Option<((usize, usize), Conditional)> = None;
    for group in groups {
        let key = (group.pattern, gaussians.place(group.class));
        let precision = gaussians.precision(group.class);
        if known.as_ref().is_none_or(|(of, _)| *of != key) {
            let there = &holes.there[group.pattern * holes.width..(group.pattern + 1) * holes.width];
            known = Some((key, Conditional::new(there, precision, stride)));
        }
        let Some((_, conditional)) = &known else { unreachable!() };
        let (part, bucket) = (&mut parts[group.class], &mut buckets[group.class]);
        let (mean, size, m) = (gaussians.mean(group.class), conditional.there.len(), conditional.missing.len());
        let mut weight = 0.0;
        for (r, row) in group.rows.clone().enumerate() {
            let w = holes.weights.map_or(1.0, |weights| weights[row]);
            let cells = &holes.cells[group.cells + r * size..][..size];
            let line = bucket.line(stride);
            dispatch!(fill(cells, conditional, mean, precision, &mut apart, &mut pulls, line));
            weight += w;
            part.take(bucket, w, stride);
        }
        for (a, &i) in conditional.missing.iter().enumerate() {
            for (b, &j) in conditional.missing.iter().enumerate().skip(a) {
                part.product[i * stride + j] += weight * conditional.covariance[a * m + b];
            }
        }
    }
    for (bucket, part) in buckets.iter_mut().zip(&mut parts) {
        part.empty(bucket, stride);
    }
    parts
}

/// The expected sums of every class. Every group of `holes` must lie within its rows, patterns and classes.
pub fn expect(holes: &Holes, gaussians: &Gaussians) -> Expected {
    let d = holes.width;
    let k = gaussians.mean.len() / d.max(1);
    let gaussians = Padded::new(gaussians, d);
    let stride = gaussians.stride;
    let pieces = (ROOM / (k * stride * stride).max(1)).clamp(1, 64).min(holes.groups.len());
    let step = holes.groups.len().div_ceil(pieces.max(1)).max(1);
    let rows = holes.groups.last().map_or(0, |group| group.rows.end);
    let parts = threads::map(holes.groups.len().div_ceil(step), rows * stride * stride, |i| {
        let groups = &holes.groups[i * step..holes.groups.len().min((i + 1) * step)];
        expect_piece(holes, groups, &gaussians, k)
    });
    let mut totals: Vec<Part> = (0..k).map(|_| Part::new(stride, false)).collect();
    for parts in parts {
        for (total, part) in totals.iter_mut().zip(&parts) {
            total.add(part);
        }
    }
    let mut expected = Expected { weight: vec![], sum: vec![], product: vec![] };
    for total in &totals {
        expected.weight.push(total.weight);
        expected.sum.extend(&total.sum[..d]);
        unpad(&total.product, d, true, &mut expected.product);
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ = [[4, 2], [2, 2]]: given the first cell t, the second has the mean t/2 and the variance 1; given the second,
    /// the first has the mean t and the variance 2.
    #[test]
    fn a_missing_cell_has_its_conditional_moments() {
        let there = [true, false, false, true];
        let groups = vec![
            Group { pattern: 0, class: 0, rows: 0..2, cells: 0 },
            Group { pattern: 1, class: 0, rows: 2..3, cells: 2 },
        ];
        let holes = Holes { cells: &[2.0, 4.0, 3.0], weights: Some(&[1.0, 2.0, 1.0]), there: &there, groups, width: 2 };
        let precision = [0.5, -0.5, -0.5, 1.0];
        let gaussians = Gaussians { mean: &[0.0, 0.0], precision: &precision };
        let got = expect(&holes, &gaussians);
        assert_eq!(got.weight, [4.0]);
        // filled rows: (2, 1), twice (4, 2), and (3, 3)
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13);
        assert!(close(&got.sum, &[13.0, 8.0]), "{:?}", got.sum);
        assert!(close(&got.product, &[47.0, 27.0, 27.0, 21.0]), "{:?}", got.product);
    }
}
