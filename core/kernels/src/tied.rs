//! Sums of rows weighted by responsibilities, where classes share a covariance: products within all classes together
//! are those of all rows less those of the means, which takes one product of the rows instead of one for every class.

use crate::responsibilities::{Assignment, Responsibilities};
use crate::responsibility_moments;
use crate::scatter::{self, Scatter};
use crate::source::{BadCell, Source};

/// How many times the squares within classes those of all rows may be: beyond, their difference would lose digits.
const APART: f64 = 1e3;

/// The squares of each class are its own. Of the products of different columns within all classes each class has a share
/// by its weight: only their sum is right. None if classes lie too far apart.
pub fn collect(
    source: &Source,
    responsibilities: &Responsibilities,
    origin: &[f64],
) -> Result<Option<Scatter>, BadCell> {
    let (k, width) = (responsibilities.classes, source.width());
    let each = responsibility_moments::collect(source, responsibilities, origin.to_vec())?;
    let weight: Vec<f64> = each.weight.iter().step_by(width.max(1)).copied().collect();
    let total: f64 = weight.iter().sum();
    if total == 0.0 {
        return Ok(None);
    }
    let codes = vec![0; source.rows()];
    let every = Assignment { classes: 1, codes: &codes, weights: responsibilities.weights };
    let whole = scatter::collect_about(source, &every, middle(origin, &weight, total), false)?;

    let mut within = whole.product.clone();
    let mut squares = vec![0.0; width];
    let mut shifts = Vec::with_capacity(k * width);
    for (c, &n) in weight.iter().enumerate() {
        let at = c * width..(c + 1) * width;
        let over = |sum: &f64| if n > 0.0 { sum / n } else { 0.0 };
        let shift: Vec<f64> = each.sum[at.clone()].iter().map(over).collect();
        for (j, square) in squares.iter_mut().enumerate() {
            *square += each.second[at.start + j] - n * shift[j] * shift[j];
        }
        let apart = |j: usize| (origin[at.start + j] - whole.origin[j]) + shift[j];
        for (i, line) in within.chunks_exact_mut(width).enumerate() {
            for (j, within) in line.iter_mut().enumerate() {
                *within -= n * apart(i) * apart(j);
            }
        }
        shifts.extend(shift);
    }
    if (0..width).any(|j| whole.product[j * width + j] > APART * squares[j]) {
        return Ok(None);
    }
    let mut product = Vec::with_capacity(k * width * width);
    for (c, shift) in shifts.chunks_exact(width).enumerate() {
        for i in 0..width {
            product.extend((0..width).map(|j| {
                if i == j {
                    each.second[c * width + j]
                } else {
                    weight[c] * (within[i * width + j] / total + shift[i] * shift[j])
                }
            }));
        }
    }
    Ok(Some(Scatter { origin: origin.to_vec(), weight, sum: each.sum, product, cubic: vec![], quartic: vec![] }))
}

/// The mean of the origins of all classes; what they agree on stays as it is.
fn middle(origin: &[f64], weight: &[f64], total: f64) -> Vec<f64> {
    let first = &origin[..origin.len() / weight.len()];
    let mut middle = first.to_vec();
    for (origin, weight) in origin.chunks_exact(first.len().max(1)).zip(weight) {
        for (middle, (o, first)) in middle.iter_mut().zip(origin.iter().zip(first)) {
            *middle += weight / total * (o - first);
        }
    }
    middle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::Array2;

    fn collected() -> (Option<Scatter>, Scatter) {
        let (n, d, k) = (500, 6, 3);
        let cell = |i: usize, j: usize| ((i * 7 + j * j * 13 + i * j) % 101) as f64 + (i % k) as f64;
        let x = Array2::from_shape_fn((n, d), |(i, j)| cell(i, j));
        let values: Vec<f64> = (0..n * k).map(|at| if at % k == at / k % k { 0.5 } else { 0.25 }).collect();
        let weights: Vec<f64> = (0..n).map(|i| (i % 4) as f64).collect();
        let responsibilities = Responsibilities { classes: k, values: &values, weights: Some(&weights) };
        let origin: Vec<f64> = (0..k * d).map(|i| i as f64).collect();
        let each = crate::responsibility_scatter::collect(&source(&x), &responsibilities, origin.clone()).unwrap();
        (collect(&source(&x), &responsibilities, &origin).unwrap(), each)
    }

    /// Σ_c of the products about the mean of each class.
    fn within(scatter: &Scatter, i: usize, j: usize) -> f64 {
        let d = 6;
        (0..3)
            .map(|c| {
                scatter.product[(c * d + i) * d + j]
                    - scatter.sum[c * d + i] * scatter.sum[c * d + j] / scatter.weight[c]
            })
            .sum()
    }

    #[test]
    fn products_within_classes_are_the_same() {
        let (tied, each) = collected();
        let tied = tied.unwrap();
        for i in 0..6 {
            for j in 0..6 {
                let (got, want) = (within(&tied, i, j), within(&each, i, j));
                assert!((got - want).abs() < 1e-12 * within(&each, i, i), "{got} {want}");
            }
            for c in 0..3 {
                let at = (c * 6 + i) * 6 + i;
                assert!((tied.product[at] / each.product[at] - 1.0).abs() < 1e-13);
            }
        }
    }
}
