//! Log densities of Gaussians with a full covariance, through the inverse W of its Cholesky factor: −½‖W(x−μ)‖².

use crate::expected::LARGEST_GROUP;
use crate::linear::{GROUP, HIGH, Linear, centre, multiply};
use crate::missing::{Conditional, Padded, Pattern, fill, patterns, whiten};
use crate::simd::{dispatch, dispatch_wide, fma};
use crate::source::{BadCell, Source};
use crate::threads;
use std::sync::{Mutex, PoisonError};

/// Rows a thread loads at a time (with a whitener they should stay in its first cache), and takes at a time.
const TILE: usize = 4 * GROUP;
const PIECE: usize = 12 * TILE;

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

    /// Whether some directions are left out: then W has an empty line, and no inverse.
    fn flat(&self) -> bool {
        let of_one = self.whitener.chunks_exact((self.width * self.width).max(1));
        of_one.flat_map(|w| w.iter().step_by(self.width + 1)).any(|&diagonal| diagonal == 0.0)
    }

    /// Wᵀ of each covariance.
    fn turned(&self) -> Vec<f64> {
        let width = self.width;
        let each = self.whitener.chunks_exact((width * width).max(1));
        each.flat_map(|w| (0..width).flat_map(move |j| (0..width).map(move |i| w[i * width + j]))).collect()
    }

    /// K = WᵀW of each covariance.
    fn precisions(&self) -> Vec<f64> {
        let width = self.width;
        let mut precisions = vec![0.0; self.whitener.len()];
        let size = (width * width).max(1);
        for (precision, w) in precisions.chunks_exact_mut(size).zip(self.whitener.chunks_exact(size)) {
            for line in w.chunks_exact(width) {
                for (to, a) in precision.chunks_exact_mut(width).zip(line) {
                    for (to, b) in to.iter_mut().zip(line) {
                        *to += a * b;
                    }
                }
            }
        }
        precisions
    }

    fn of_class<'b>(&self, matrices: &'b [f64], class: usize) -> &'b [f64] {
        let size = self.width * self.width;
        let index = if self.tied() { 0 } else { class };
        &matrices[index * size..(index + 1) * size]
    }
}

/// Where each block of [`HIGH`] lines of W ends. Lines that fill up a block lie before the first, the shortest.
fn ends(width: usize) -> impl Iterator<Item = usize> {
    let blocks = width.div_ceil(HIGH);
    (0..blocks).map(move |block| width - (blocks - 1 - block) * HIGH)
}

/// The lines of W in blocks, column after column up to the diagonal: read straight through by the kernel.
fn pack(whitener: &[f64], width: usize) -> Vec<f64> {
    let mut packed = vec![];
    for end in ends(width) {
        for j in 0..end {
            packed.extend((0..HIGH).map(|h| if end + h < HIGH { 0.0 } else { whitener[(end + h - HIGH) * width + j] }));
        }
    }
    packed
}

/// Adds the scores of up to [`TILE`] rows, given as columns each [`TILE`] long, to `out` (rows × classes).
#[inline(always)]
fn score_tile<const FUSED: bool>(tile: &[f64], full: &Full, packed: &[Vec<f64>], t: &mut [f64], out: &mut [f64]) {
    let (k, width) = (full.classes, full.width);
    let rows = out.len() / k;
    for c in 0..k {
        let packed = &packed[if full.tied() { 0 } else { c }];
        for first in (0..rows).step_by(GROUP) {
            centre::<TILE>(tile, first, &full.mean[c * width..(c + 1) * width], t);
            let mut squares = [0.0; GROUP];
            multiply::<FUSED>(packed, ends(width), t, |_, z| {
                for z in z {
                    for r in 0..GROUP {
                        squares[r] = fma::<FUSED>(z[r], z[r], squares[r]);
                    }
                }
            });
            for (r, square) in squares.iter().enumerate().take(rows - first) {
                out[(first + r) * k + c] += full.constant[c] - 0.5 * square;
            }
        }
    }
}

/// Classes that share a covariance: a row is whitened once, about the middle of the classes, and compared with the
/// whitened mean of each.
struct Tied {
    origin: Vec<f64>,
    /// blocks of [`HIGH`] columns × classes: the order in which they are compared
    mean: Vec<[f64; HIGH]>,
}

/// Whitened means further apart than this are not compared that way: the difference of two large numbers loses digits.
const NEAR: f64 = 100.0;

impl Tied {
    fn new(full: &Full) -> Option<Self> {
        if !full.tied() {
            return None;
        }
        let (k, width) = (full.classes, full.width);
        let mut origin = full.mean[..width].to_vec();
        for mean in full.mean.chunks_exact(width).skip(1) {
            for (o, (mean, first)) in origin.iter_mut().zip(mean.iter().zip(full.mean)) {
                *o += (mean - first) / k as f64;
            }
        }
        let blocks = width.div_ceil(HIGH);
        let before = blocks * HIGH - width;
        let mut mean = vec![[0.0; HIGH]; blocks * k];
        for (c, class_mean) in full.mean.chunks_exact(width).enumerate() {
            for (i, w) in full.whitener.chunks_exact(width).enumerate() {
                let apart = class_mean.iter().zip(&origin).map(|(mean, o)| mean - o);
                let z: f64 = w.iter().zip(apart).map(|(w, t)| w * t).sum();
                mean[(i + before) / HIGH * k + c][(i + before) % HIGH] = z;
            }
        }
        mean.iter().flatten().all(|m| m.abs() < NEAR).then_some(Self { origin, mean })
    }
}

/// Like [`score_tile`], for classes that share a covariance.
#[inline(always)]
fn score_tied_tile<const FUSED: bool>(
    tile: &[f64],
    full: &Full,
    tied: &Tied,
    packed: &[f64],
    t: &mut [f64],
    out: &mut [f64],
) {
    let (k, width) = (full.classes, full.width);
    let rows = out.len() / k;
    for first in (0..rows).step_by(GROUP) {
        centre::<TILE>(tile, first, &tied.origin, t);
        // The scores of all classes grow with each whitened line: so no whitened row needs to be kept.
        let mut squares = vec![[0.0; GROUP]; k];
        multiply::<FUSED>(packed, ends(width), t, |block, z| {
            let means = &tied.mean[block * k..];
            for (squares, mean) in squares.iter_mut().zip(means) {
                let mut sums = *squares;
                for h in 0..HIGH {
                    for r in 0..GROUP {
                        let apart = z[h][r] - mean[h];
                        sums[r] = fma::<FUSED>(apart, apart, sums[r]);
                    }
                }
                *squares = sums;
            }
        });
        for (r, out) in out.chunks_exact_mut(k).skip(first).take(GROUP).enumerate() {
            for (c, out) in out.iter_mut().enumerate() {
                *out += full.constant[c] - 0.5 * squares[c][r];
            }
        }
    }
}

/// How complete rows are scored.
enum Kernel {
    Tied(Tied, Vec<f64>),
    Each(Vec<Vec<f64>>),
}

impl Kernel {
    fn new(full: &Full) -> Self {
        if let Some(tied) = Tied::new(full) {
            return Self::Tied(tied, pack(full.whitener, full.width));
        }
        let size = (full.width * full.width).max(1);
        Self::Each(full.whitener.chunks_exact(size).map(|w| pack(w, full.width)).collect())
    }
}

/// Adds the log density of every row in every class to `out` (rows × classes). A linear form is given if classes are
/// only compared: then it is enough up to a term that is the same in all classes of a row.
pub fn score(source: &Source, full: &Full, linear: Option<&Linear>, out: &mut [f64]) -> Result<(), BadCell> {
    let (rows, k, width) = (source.rows(), full.classes, full.width);
    // Rows with missing cells are left for later; each is noted by the piece that met it.
    let incomplete = Mutex::new(vec![]);
    let note = |rows: &[usize]| incomplete.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(rows);
    if let Some(linear) = linear {
        linear.score(source, out, |row, _| {
            note(&[row]);
            Ok(true)
        })?;
    } else {
        let kernel = Kernel::new(full);
        threads::for_each(out, PIECE * k, rows * k * width * width, |piece, out| {
            let mut tile = vec![0.0; width * TILE];
            let mut t = vec![0.0; width * GROUP];
            for (i, out) in out.chunks_mut(TILE * k).enumerate() {
                let first = piece * PIECE + i * TILE;
                let count = out.len() / k;
                let missing = source.load_columns(first..first + count, TILE, &mut tile)?;
                let has_missing = |r: &usize| (0..width).any(|j| tile[j * TILE + r].is_nan());
                let kept: Vec<usize> = if missing { (0..count).filter(has_missing).collect() } else { vec![] };
                let before: Vec<f64> = kept.iter().flat_map(|r| &out[r * k..(r + 1) * k]).copied().collect();
                if !kept.is_empty() {
                    note(&kept.iter().map(|r| first + r).collect::<Vec<usize>>());
                }
                match &kernel {
                    Kernel::Tied(tied, packed) => {
                        dispatch!(score_tied_tile(&tile, full, tied, packed, &mut t, out));
                    }
                    Kernel::Each(packed) => dispatch_wide!(
                        score_tile(&tile, full, packed, &mut t, out),
                        score_tile(&tile, full, packed, &mut t, out)
                    ),
                }
                for (r, before) in kept.iter().zip(before.chunks_exact(k)) {
                    out[r * k..(r + 1) * k].copy_from_slice(before);
                }
            }
            Ok(())
        })?;
    }
    let incomplete = incomplete.into_inner().unwrap_or_else(PoisonError::into_inner);
    if incomplete.is_empty() { Ok(()) } else { score_incomplete(source, full, incomplete, out) }
}

/// Scores rows with missing cells by the exact marginal of the cells that are there, pattern by pattern.
fn score_incomplete(source: &Source, full: &Full, mut rows: Vec<usize>, out: &mut [f64]) -> Result<(), BadCell> {
    rows.sort_unstable();
    let patterns = patterns(source, rows.iter().copied())?;
    let (k, width) = (full.classes, full.width);
    let (columns, precision) = (Padded::new(&full.turned(), width), Padded::new(&full.precisions(), width));
    let flat = full.flat();
    let groups: Vec<(&Pattern, &[usize])> = patterns
        .iter()
        .flat_map(|(pattern, rows)| rows.chunks(LARGEST_GROUP).map(move |some| (pattern, some)))
        .collect();
    let scores = threads::map(groups.len(), rows.len() * k * width * width, |i| {
        let (pattern, rows) = groups[i];
        if pattern.there.is_empty() {
            return Ok(vec![0.0; rows.len() * k]);
        }
        // What is factorised is the smaller part: the columns that are missing, or those that are there.
        if flat || pattern.missing.len() > pattern.there.len() {
            return Ok(marginal_scores(source, full, &pattern.there, rows));
        }
        let each = (0..=precision.position(k - 1))
            .map(|c| Conditional::new(&pattern.missing, precision.of(c), precision.stride))
            .collect();
        let filling = Filling { pattern, each, columns: &columns, precision: &precision };
        dispatch!(filled_scores(source, full, rows, &filling))
    });
    for ((_, rows), scores) in groups.iter().zip(scores) {
        for (&row, scores) in rows.iter().zip(scores?.chunks_exact(k)) {
            for (out, score) in out[row * k..(row + 1) * k].iter_mut().zip(scores) {
                *out += score;
            }
        }
    }
    Ok(())
}

/// What a pattern of missing cells means in every class.
struct Filling<'a> {
    pattern: &'a Pattern,
    each: Vec<Conditional>,
    /// Wᵀ
    columns: &'a Padded,
    precision: &'a Padded,
}

/// The scores (rows × classes) of rows of one pattern, filled with what is expected: then they lie as far from the mean
/// as their known cells do, and |Σ_there| = |Σ| |K_missing|.
#[inline(always)]
fn filled_scores<const FUSED: bool>(
    source: &Source,
    full: &Full,
    rows: &[usize],
    filling: &Filling,
) -> Result<Vec<f64>, BadCell> {
    let Filling { pattern, each, columns, precision } = filling;
    let (k, width, stride) = (full.classes, full.width, columns.stride);
    let mut scores = vec![0.0; rows.len() * k];
    let (mut cells, mut line, mut apart) = (vec![0.0; width], vec![0.0; stride], vec![0.0; stride]);
    let (mut known, mut pulls, mut z) = (vec![0.0; pattern.there.len()], vec![], vec![0.0; stride]);
    let zero = vec![0.0; width];
    let unit = 0.5 * pattern.missing.len() as f64 * std::f64::consts::TAU.ln();
    for (&row, scores) in rows.iter().zip(scores.chunks_exact_mut(k)) {
        source.load_rows(std::iter::once(row), width, &mut cells)?;
        for (c, score) in scores.iter_mut().enumerate() {
            let mean = &full.mean[c * width..(c + 1) * width];
            for (known, &j) in known.iter_mut().zip(&pattern.there) {
                *known = cells[j] - mean[j];
            }
            let conditional = &each[precision.position(c)];
            fill::<FUSED>(&known, pattern, conditional, &zero, precision.of(c), &mut apart, &mut pulls, &mut line);
            whiten::<FUSED>(columns.of(c), &line[..width], &mut z);
            let square: f64 = z.iter().map(|z| z * z).sum();
            *score = full.constant[c] + unit - conditional.half_log - 0.5 * square;
        }
    }
    Ok(scores)
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
pub fn cholesky(a: &mut [f64], size: usize) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for i in 0..size {
        let (above, line) = a.split_at_mut(i * size);
        for j in 0..i {
            let other = &above[j * size..];
            line[j] = (line[j] - dot(&line[..j], other)) / other[j];
        }
        line[i] = (line[i] - dot(&line[..i], &line[..i])).sqrt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn shared_covariances_score_alike() {
        let x = array![[1.0, 2.0], [-1.0, 0.5], [3.0, 3.0]];
        let (covariance, whitener) = ([4.0, 2.0, 2.0, 2.0], [0.5, 0.0, -0.5, 1.0]);
        let mean = [0.0, 1.0, 2.0, -1.0];
        let tied = Full {
            mean: &mean,
            whitener: &whitener,
            covariance: &covariance,
            constant: &[0.25, 0.25],
            classes: 2,
            width: 2,
        };
        let (twice, both) = ([covariance, covariance].concat(), [whitener, whitener].concat());
        let each = Full { whitener: &both, covariance: &twice, ..tied };
        let (mut one, mut other) = (vec![0.0; 6], vec![0.0; 6]);
        super::score(&source(&x), &tied, None, &mut one).unwrap();
        super::score(&source(&x), &each, None, &mut other).unwrap();
        assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-14), "{one:?} {other:?}");
        let mut compared = vec![0.0; 6];
        // Σ⁻¹ = WᵀW, θ = Σ⁻¹μ, θ₀ = −½ μ·θ
        let theta = [-0.5, 1.0, 1.5, -2.0];
        let linear = Linear::new(&[0.0; 2], &theta, &[-0.5, -2.5]);
        super::score(&source(&x), &tied, Some(&linear), &mut compared).unwrap();
        for (scores, compared) in one.chunks(2).zip(compared.chunks(2)) {
            let (odds, compared) = (scores[1] - scores[0], compared[1] - compared[0]);
            assert!((odds - compared).abs() < 1e-14, "{odds} {compared}");
        }
    }

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
        super::score(&source(&x), &full, None, &mut out).unwrap();
        // columns 0 and 2 are independent with variances 1 and 2
        let marginal = -0.5 * (1.0 + 4.0 / 2.0) - 0.5 * 2f64.ln() - std::f64::consts::TAU.ln();
        assert!((out[0] - marginal).abs() < 1e-14);
        assert!(out[1].abs() < 1e-14);
        let z = [0.5, 0.5, -1.5];
        let complete = constant - 0.5 * z.iter().map(|z| z * z).sum::<f64>();
        assert!((out[2] - complete).abs() < 1e-14, "{} {complete}", out[2]);
    }
}
