//! Expected sums of products of rows with missing cells: what is missing is given its mean and covariance under a
//! Gaussian, given the cells that are there.

use crate::missing::{Conditional, Padded, Pattern, fill, patterns};
use crate::responsibilities::{ClassWeights, Responsibilities};
use crate::scatter::{Bucket, Part, padded, unpad};
use crate::simd::dispatch;
use crate::source::{BadCell, Source};
use crate::threads;
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
pub struct IncompleteRows<'a> {
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
/// Groups of more rows are cut, so that threads can share them.
pub const LARGEST_GROUP: usize = 1024;

/// The sums of one piece of the rows, for each class, and the lines that wait to be multiplied.
struct Sums {
    parts: Vec<Part>,
    buckets: Vec<Bucket>,
    stride: usize,
}

impl Sums {
    fn new(classes: usize, width: usize, weighted: bool) -> Self {
        let stride = padded(width);
        let capacity = (BUCKETS / (stride * classes)).clamp(8, 64);
        Self {
            parts: (0..classes).map(|_| Part::new(stride, false)).collect(),
            buckets: (0..classes).map(|_| Bucket::new(capacity * stride, weighted)).collect(),
            stride,
        }
    }

    /// Adds what is left to vary of the cells that are missing in rows of this weight.
    fn add_covariance(&mut self, class: usize, weight: f64, missing: &[usize], conditional: &Conditional) {
        let m = missing.len();
        for (a, &i) in missing.iter().enumerate() {
            for (b, &j) in missing.iter().enumerate().skip(a) {
                self.parts[class].product[i * self.stride + j] += weight * conditional.covariance[a * m + b];
            }
        }
    }

    fn finished(mut self) -> Vec<Part> {
        for (bucket, part) in self.buckets.iter_mut().zip(&mut self.parts) {
            part.empty(bucket, self.stride);
        }
        self.parts
    }
}

/// The sums of some groups, for each class.
fn expect_piece(
    incomplete: &IncompleteRows,
    groups: &[Group],
    mean: &[f64],
    precisions: &Padded,
    classes: usize,
) -> Vec<Part> {
    let (stride, width) = (precisions.stride, incomplete.width);
    let mut sums = Sums::new(classes, width, incomplete.weights.is_some());
    let (mut apart, mut pulls) = (vec![0.0; stride], vec![]);
    let mut known: Option<((usize, usize), Pattern, Conditional)> = None;
    for group in groups {
        let key = (group.pattern, precisions.position(group.class));
        let precision = precisions.of(group.class);
        if known.as_ref().is_none_or(|(of, ..)| *of != key) {
            let pattern = Pattern::new(&incomplete.there[group.pattern * width..(group.pattern + 1) * width]);
            let conditional = Conditional::new(&pattern.missing, precision, stride);
            known = Some((key, pattern, conditional));
        }
        let Some((_, pattern, conditional)) = &known else { unreachable!() };
        let (mean, size) = (&mean[group.class * width..(group.class + 1) * width], pattern.there.len());
        let mut weight = 0.0;
        for (r, row) in group.rows.clone().enumerate() {
            let w = incomplete.weights.map_or(1.0, |weights| weights[row]);
            let cells = &incomplete.cells[group.cells + r * size..][..size];
            let (part, bucket) = (&mut sums.parts[group.class], &mut sums.buckets[group.class]);
            let line = bucket.line(stride);
            dispatch!(fill(cells, pattern, conditional, mean, precision, &mut apart, &mut pulls, line));
            weight += w;
            part.take(bucket, w, stride);
        }
        sums.add_covariance(group.class, weight, &pattern.missing, conditional);
    }
    sums.finished()
}

/// Some rows of one pattern.
type Patterned<'a> = (&'a Pattern, &'a [usize]);

/// The sums about the means of rows weighted by responsibilities.
fn expect_weighted_piece(
    source: &Source,
    groups: &[Patterned],
    responsibilities: &Responsibilities,
    mean: &[f64],
    precisions: &Padded,
) -> Result<Vec<Part>, BadCell> {
    let (stride, width, k) = (precisions.stride, source.width(), responsibilities.classes);
    let mut sums = Sums::new(k, width, true);
    let (mut row_cells, mut apart, mut pulls) = (vec![0.0; width], vec![0.0; stride], vec![]);
    let (mut cells, zero) = (vec![], vec![0.0; width]);
    for (pattern, rows) in groups {
        let positions = precisions.position(k - 1) + 1;
        let each: Vec<Conditional> =
            (0..positions).map(|c| Conditional::new(&pattern.missing, precisions.of(c), stride)).collect();
        let mut weights = vec![0.0; k];
        for &row in *rows {
            source.load_rows(std::iter::once(row), width, &mut row_cells)?;
            responsibilities.each(row, &(0..k), |c, w| {
                let mean = &mean[c * width..(c + 1) * width];
                cells.clear();
                cells.extend(pattern.there.iter().map(|&j| row_cells[j] - mean[j]));
                let (part, bucket) = (&mut sums.parts[c], &mut sums.buckets[c]);
                let (conditional, precision) = (&each[precisions.position(c)], precisions.of(c));
                let line = bucket.line(stride);
                dispatch!(fill(&cells, pattern, conditional, &zero, precision, &mut apart, &mut pulls, line));
                weights[c] += w;
                part.take(bucket, w, stride);
            });
        }
        for (c, weight) in weights.into_iter().enumerate() {
            sums.add_covariance(c, weight, &pattern.missing, &each[precisions.position(c)]);
        }
    }
    Ok(sums.finished())
}

/// How many groups go together, so that the sums of all pieces take no more than their room.
fn groups_at_once(groups: usize, classes: usize, stride: usize) -> usize {
    let pieces = (ROOM / (classes * stride * stride).max(1)).clamp(1, 64).min(groups);
    groups.div_ceil(pieces.max(1)).max(1)
}

/// Adds the parts of all pieces, in their order.
fn total(pieces: Vec<Vec<Part>>, classes: usize, width: usize) -> Expected {
    let mut totals: Vec<Part> = (0..classes).map(|_| Part::new(padded(width), false)).collect();
    for parts in pieces {
        for (total, part) in totals.iter_mut().zip(&parts) {
            total.add(part);
        }
    }
    let mut expected = Expected { weight: vec![], sum: vec![], product: vec![] };
    for total in &totals {
        expected.weight.push(total.weight);
        expected.sum.extend(&total.sum[..width]);
        unpad(&total.product, width, true, &mut expected.product);
    }
    expected
}

/// The expected sums of every class. Every group of `incomplete` must lie within its rows, patterns and classes.
pub fn expect(incomplete: &IncompleteRows, gaussians: &Gaussians) -> Expected {
    let d = incomplete.width;
    let k = gaussians.mean.len() / d.max(1);
    let precisions = Padded::new(gaussians.precision, d);
    let step = groups_at_once(incomplete.groups.len(), k, precisions.stride);
    let rows = incomplete.groups.last().map_or(0, |group| group.rows.end);
    let work = rows * precisions.stride * precisions.stride;
    let pieces = threads::map(incomplete.groups.len().div_ceil(step), work, |i| {
        let groups = &incomplete.groups[i * step..incomplete.groups.len().min((i + 1) * step)];
        expect_piece(incomplete, groups, gaussians.mean, &precisions, k)
    });
    total(pieces, k, d)
}

/// The expected sums about the means of rows weighted by responsibilities; rows without a cell are left out.
pub fn expect_weighted(
    source: &Source,
    responsibilities: &Responsibilities,
    gaussians: &Gaussians,
) -> Result<Expected, BadCell> {
    let (k, d) = (responsibilities.classes, source.width());
    let precisions = Padded::new(gaussians.precision, d);
    let found = patterns(source, (0..source.rows()).filter(|&row| responsibilities.counts(row, &(0..k))))?;
    let groups: Vec<Patterned> = found
        .iter()
        .filter(|(pattern, _)| !pattern.there.is_empty())
        .flat_map(|(pattern, rows)| rows.chunks(LARGEST_GROUP).map(move |some| (pattern, some)))
        .collect();
    let step = groups_at_once(groups.len(), k, precisions.stride);
    let work = source.rows() * k * precisions.stride * precisions.stride;
    let pieces = threads::map(groups.len().div_ceil(step), work, |i| {
        let groups = &groups[i * step..groups.len().min((i + 1) * step)];
        expect_weighted_piece(source, groups, responsibilities, gaussians.mean, &precisions)
    });
    Ok(total(pieces.into_iter().collect::<Result<_, _>>()?, k, d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    /// Σ = [[4, 2], [2, 2]]: given the first cell t, the second has the mean t/2 and the variance 1; given the second,
    /// the first has the mean t and the variance 2.
    #[test]
    fn a_missing_cell_has_its_conditional_moments() {
        let there = [true, false, false, true];
        let groups = vec![
            Group { pattern: 0, class: 0, rows: 0..2, cells: 0 },
            Group { pattern: 1, class: 0, rows: 2..3, cells: 2 },
        ];
        let rows = IncompleteRows {
            cells: &[2.0, 4.0, 3.0],
            weights: Some(&[1.0, 2.0, 1.0]),
            there: &there,
            groups,
            width: 2,
        };
        let precision = [0.5, -0.5, -0.5, 1.0];
        let gaussians = Gaussians { mean: &[0.0, 0.0], precision: &precision };
        let got = expect(&rows, &gaussians);
        assert_eq!(got.weight, [4.0]);
        // filled rows: (2, 1), twice (4, 2), and (3, 3)
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13);
        assert!(close(&got.sum, &[13.0, 8.0]), "{:?}", got.sum);
        assert!(close(&got.product, &[47.0, 27.0, 27.0, 21.0]), "{:?}", got.product);
        // The same rows as a matrix, about the mean 0, with the responsibilities of a class beside one that has nothing.
        let x = array![[2.0, f64::NAN], [4.0, f64::NAN], [f64::NAN, 3.0], [f64::NAN, f64::NAN]];
        let values = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let responsibilities = Responsibilities { classes: 2, values: &values, weights: Some(&[1.0, 2.0, 1.0, 5.0]) };
        let gaussians = Gaussians { mean: &[0.0; 4], precision: &precision };
        let together = expect_weighted(&source(&x), &responsibilities, &gaussians).unwrap();
        assert_eq!(together.weight, [4.0, 0.0]);
        assert!(close(&together.sum, &[13.0, 8.0, 0.0, 0.0]), "{:?}", together.sum);
        assert!(close(&together.product[..4], &[47.0, 27.0, 27.0, 21.0]), "{:?}", together.product);
        assert!(together.product[4..].iter().all(|&x| x == 0.0));
    }
}
