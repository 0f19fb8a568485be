//! Patterns of missing cells, and what the cells that are there say about the others under a Gaussian.
//!
//! With K the inverse of the covariance, m the missing columns and u = x − μ of those that are there (0 elsewhere), the
//! missing cells have the covariance C = (K_mm)⁻¹ and the mean μ_m − C (K u)_m: one small factorisation for each
//! pattern of missing cells. A row that is filled so lies as far from μ, in units of the covariance, as its known cells do.

use crate::scatter::padded;
use crate::simd::fma;
use crate::source::{BadCell, Source};
use crate::whitened::cholesky;
use rustc_hash::FxHashMap;

const LANES: usize = 8;

/// Which columns are there, and which are missing.
pub struct Pattern {
    pub there: Vec<usize>,
    pub missing: Vec<usize>,
}

impl Pattern {
    pub fn new(there: &[bool]) -> Self {
        let (there, missing) = (0..there.len()).partition(|&j| there[j]);
        Self { there, missing }
    }
}

/// Finds the patterns of some rows, in the order in which they first come, and the rows of each.
pub fn patterns(source: &Source, rows: impl Iterator<Item = usize>) -> Result<Vec<(Pattern, Vec<usize>)>, BadCell> {
    let width = source.width();
    let mut known: FxHashMap<Vec<u64>, usize> = FxHashMap::default();
    let mut found: Vec<(Pattern, Vec<usize>)> = vec![];
    let (mut cells, mut bits) = (vec![0.0; width], vec![0; width.div_ceil(64)]);
    for row in rows {
        source.load_rows(std::iter::once(row), width, &mut cells)?;
        for (word, cells) in bits.iter_mut().zip(cells.chunks(64)) {
            *word = cells.iter().enumerate().fold(0, |word, (j, x)| word | (u64::from(x.is_nan()) << j));
        }
        let position = known.get(bits.as_slice()).copied().unwrap_or_else(|| {
            known.insert(bits.clone(), found.len());
            let there: Vec<bool> = cells.iter().map(|x| !x.is_nan()).collect();
            found.push((Pattern::new(&there), vec![]));
            found.len() - 1
        });
        found[position].1.push(row);
    }
    Ok(found)
}

/// One square matrix for each class, or one for all, in padded lines.
pub struct Padded {
    lines: Vec<f64>,
    one_for_all: bool,
    width: usize,
    pub stride: usize,
}

impl Padded {
    pub fn new(matrices: &[f64], width: usize) -> Self {
        let stride = padded(width);
        let lines = matrices.chunks_exact(width.max(1));
        let lines = lines.flat_map(|line| line.iter().copied().chain((width..stride).map(|_| 0.0))).collect();
        Self { lines, one_for_all: matrices.len() <= width * width, width, stride }
    }

    /// The position of a class's matrix.
    pub fn position(&self, class: usize) -> usize {
        if self.one_for_all { 0 } else { class }
    }

    pub fn of(&self, class: usize) -> &[f64] {
        let size = self.width * self.stride;
        &self.lines[self.position(class) * size..][..size]
    }
}

/// What is left to vary of missing cells, given the others.
pub struct Conditional {
    /// missing × missing
    pub covariance: Vec<f64>,
    /// ½ log |K_mm|
    pub half_log: f64,
}

impl Conditional {
    pub fn new(missing: &[usize], precision: &[f64], stride: usize) -> Self {
        let m = missing.len();
        let mut factor: Vec<f64> =
            missing.iter().flat_map(|&i| missing.iter().map(move |&j| precision[i * stride + j])).collect();
        cholesky(&mut factor, m);
        let half_log = (0..m).map(|i| factor[i * m + i].ln()).sum();
        Self { covariance: inverse(&factor, m), half_log }
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

#[inline(always)]
pub fn dot<const FUSED: bool>(a: &[f64], b: &[f64]) -> f64 {
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

/// Fills a line with the cells of a row that are there and the means of the others. `apart` is room for a row.
#[inline(always)]
pub fn fill<const FUSED: bool>(
    cells: &[f64],
    pattern: &Pattern,
    conditional: &Conditional,
    mean: &[f64],
    precision: &[f64],
    apart: &mut [f64],
    pulls: &mut Vec<f64>,
    line: &mut [f64],
) {
    let stride = apart.len();
    apart.fill(0.0);
    for (&j, x) in pattern.there.iter().zip(cells) {
        line[j] = *x;
        apart[j] = x - mean[j];
    }
    pulls.clear();
    // Not by `extend`, which would be compiled by itself, for any machine.
    for &i in &pattern.missing {
        pulls.push(dot::<FUSED>(&precision[i * stride..(i + 1) * stride], apart));
    }
    let lines = conditional.covariance.chunks_exact(pulls.len().max(1));
    for (&i, covariance) in pattern.missing.iter().zip(lines) {
        line[i] = mean[i] - covariance.iter().zip(pulls.iter()).map(|(c, pull)| c * pull).sum::<f64>();
    }
}

/// Writes W t of a lower triangular W, whose columns are given as padded lines. `z` is as long as one.
#[inline(always)]
pub fn whiten<const FUSED: bool>(columns: &[f64], t: &[f64], z: &mut [f64]) {
    z.fill(0.0);
    for (j, (column, t)) in columns.chunks_exact(z.len()).zip(t).enumerate() {
        let first = j / LANES * LANES;
        for (z, w) in z[first..].iter_mut().zip(&column[first..]) {
            *z = fma::<FUSED>(*w, *t, *z);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn patterns_come_in_the_order_of_their_first_rows() {
        let nan = f64::NAN;
        let x = array![[1.0, nan, 2.0], [1.0, 2.0, 3.0], [4.0, nan, 5.0], [nan, nan, nan]];
        let found = patterns(&source(&x), 0..4).unwrap();
        let got: Vec<(Vec<usize>, Vec<usize>)> = found.into_iter().map(|(p, rows)| (p.missing, rows)).collect();
        assert_eq!(got, [(vec![1], vec![0, 2]), (vec![], vec![1]), (vec![0, 1, 2], vec![3])]);
    }
}
