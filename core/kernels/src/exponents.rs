//! How far the exponents that discount evidence are from their best values: the loss, its gradient and its curvature.
//!
//! Row i has evidence F_c, one number for each group of words, for and against class c. Its score is
//! z_c = s^(−γ) Σ_b e_b F_cb + κ log p_c + β_c, with s its length, and the loss −Σ log softmax(z) of the right classes.
//! z moves with the exponents (e, γ, κ) by u_c = (s^(−γ) F_c, −log s · Σ e F s^(−γ), log p_c), and with β_c by 1. With m the mean
//! of u by the probabilities p_c, the curvature is Σ p_c (u_c − m)(u_c − m)ᵀ, and how γ bends z: −log s times the gradient, in
//! the row and the column of γ.

use crate::scatter::{Bucket, Part, add_products, padded};
use crate::simd::{dispatch, dispatch_wide, fma};
use crate::sparse::rises;
use crate::special::exp_of_negative;
use crate::threads;
use crate::whitened::cholesky;

/// Classes of less probability add nothing to the curvature: it says how far to go, the gradient where to stop.
const LEAST: f64 = 1e-4;
/// Of the classes of less probability than this, of which a row may have many, the curvature of many rows takes every fourth,
/// four times over, and others in the next row.
const SURE: f64 = 1e-2;
const MANY: usize = 1000;
const EVERY: usize = 4;
/// Moves that wait to be multiplied together.
const BUCKET: usize = 128;
/// Numbers multiplied side by side.
const WIDE: usize = 8;
/// Sums of fractions depend on the order of adding: the number of pieces follows from the data.
const PIECE: usize = 1 << 17;
const MOST_PIECES: usize = 16;

/// The evidence of rows, group by group, in the columns that a row has: short texts have words of few groups. Row i has the
/// columns from `starts[i]` to the next, in rising order, each with a number for every class.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    pub starts: &'a [i64],
    pub columns: &'a [u8],
    pub values: &'a [f32],
    pub classes: usize,
}

impl Evidence<'_> {
    pub fn fits(&self, groups: usize) -> bool {
        let rising = |pair: &[i64]| self.columns[pair[0] as usize..pair[1] as usize].is_sorted_by(|a, b| a < b);
        rises(self.starts, self.columns.len())
            && self.values.len() == self.columns.len() * self.classes
            && self.columns.iter().all(|&column| usize::from(column) < groups)
            && self.starts.windows(2).all(rising)
    }

    /// The columns of a row, and the numbers of the classes in each.
    fn row(&self, row: usize) -> (&[u8], &[f32]) {
        let own = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.columns[own.clone()], &self.values[own.start * self.classes..own.end * self.classes])
    }
}

/// Rows with their evidence, the logarithm of their length, of the classes' priors (rows × classes), the right class and a
/// weight.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub evidence: Evidence<'a>,
    pub lengths: &'a [f64],
    pub log_priors: &'a [f64],
    pub codes: &'a [i64],
    pub weights: &'a [f64],
}

/// The exponents of groups, that of the length, that of the priors, and the bias of every class or none.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub groups: &'a [f64],
    pub power: f64,
    pub prior: f64,
    pub bias: &'a [f64],
}

/// The loss at some exponents, and how it changes: with those of the groups, γ, κ, and then every β.
#[derive(Clone)]
pub struct Slope {
    pub loss: f64,
    pub gradient: Vec<f64>,
    pub curvature: Vec<f64>,
}

impl Slope {
    fn zero(size: usize, curved: bool) -> Self {
        Self { loss: 0.0, gradient: vec![0.0; size], curvature: vec![0.0; if curved { size * size } else { 0 }] }
    }
}

impl Rows<'_> {
    pub fn fits(&self, groups: usize) -> bool {
        let (n, k) = (self.codes.len(), self.evidence.classes);
        groups > 0
            && self.evidence.fits(groups)
            && [self.evidence.starts.len(), self.lengths.len(), self.weights.len()] == [n + 1, n, n]
            && self.log_priors.len() == n * k
            && self.codes.iter().all(|&code| code >= 0 && (code as usize) < k)
    }
}

/// The weighed sum of the groups of every row and class.
pub fn weigh(evidence: Evidence, weights: &[f64]) -> Vec<f64> {
    let (n, k) = (evidence.starts.len().saturating_sub(1), evidence.classes);
    let mut out = vec![0.0; n * k];
    for (row, out) in out.chunks_mut(k.max(1)).enumerate() {
        dispatch!(weigh_row(evidence.row(row), weights, out));
    }
    out
}

#[inline(always)]
fn weigh_row<const FUSED: bool>((columns, values): (&[u8], &[f32]), weights: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (&column, values) in columns.iter().zip(values.chunks_exact(out.len())) {
        let weight = weights[usize::from(column)];
        for (o, &x) in out.iter_mut().zip(values) {
            *o = fma::<FUSED>(weight, f64::from(x), *o);
        }
    }
}

/// The solution s of (C + δ |diag C| + ε) s = b, for a matrix there of 0 or more in all directions. NaN if it is not.
pub fn solve_damped(curvature: &[f64], b: &[f64], damping: f64) -> Vec<f64> {
    let size = b.len();
    let mut factor = curvature.to_vec();
    for i in 0..size {
        factor[i * size + i] += damping * curvature[i * size + i].abs() + 1e-9;
    }
    cholesky(&mut factor, size);
    let mut x = b.to_vec();
    for i in 0..size {
        let known: f64 = factor[i * size..i * size + i].iter().zip(&x).map(|(l, x)| l * x).sum();
        x[i] = (x[i] - known) / factor[i * size + i];
    }
    for i in (0..size).rev() {
        x[i] /= factor[i * size + i];
        let (left, solved) = x.split_at_mut(i);
        left.iter_mut().zip(&factor[i * size..]).for_each(|(x, l)| *x -= l * solved[0]);
    }
    x
}

/// Without a curvature, if none is asked for: that of a point nearby does as well for the last steps.
pub fn slope(rows: Rows, at: At, curved: bool) -> Slope {
    let n = rows.codes.len();
    let step = n.div_ceil((n * rows.evidence.classes * at.groups.len() / PIECE).clamp(1, MOST_PIECES)).max(1);
    let pieces = threads::map(n.div_ceil(step), rows.evidence.values.len() * 16, |piece| {
        let own = piece * step..((piece + 1) * step).min(n);
        dispatch_wide!(of_rows(rows, at, curved, own), of_rows(rows, at, curved, own))
    });
    let size = at.groups.len() + 2 + at.bias.len();
    let none = Slope::zero(size, curved);
    pieces.into_iter().fold(none, |mut all, piece| {
        all.loss += piece.loss;
        all.gradient.iter_mut().zip(piece.gradient).for_each(|(sum, more)| *sum += more);
        all.curvature.iter_mut().zip(piece.curvature).for_each(|(sum, more)| *sum += more);
        all
    })
}

#[inline(always)]
#[allow(clippy::too_many_lines)]
fn of_rows<const FUSED: bool>(rows: Rows, at: At, curved: bool, own: std::ops::Range<usize>) -> Slope {
    let (k, g) = (rows.evidence.classes, at.groups.len());
    let (moved, biases) = (g + 2, at.bias.len());
    let size = moved + biases;
    let mut out = Slope::zero(size, curved);
    let stride = padded(moved);
    let (mut products, mut bucket) = (Part::new(stride, false), Bucket::new(BUCKET * stride, true));
    let (mut p, mut q, mut evidence, mut positions) = (vec![0.0; k], vec![0.0; k], vec![0.0; k], vec![0; k]);
    // The exponents that a row's scores move with, by how much on average, and by how much more in each likely class.
    let (mut there, mut mean): (Vec<usize>, Vec<f64>) = (Vec::with_capacity(moved), Vec::with_capacity(moved));
    let (mut shifts, mut roots, mut rest) = (vec![0.0; k * stride], vec![0.0; k], vec![0.0; stride]);
    // Products of the moves of rows that have few.
    let mut few = vec![0.0; stride * stride];
    // How γ bends the scores, with each exponent; how biases and the other exponents bend the loss together.
    let (mut bend, mut cross) = (vec![0.0; g + 1], vec![0.0; moved * biases]);
    let every = if rows.codes.len() < MANY { 1 } else { EVERY };
    for row in own {
        let (columns, values) = rows.evidence.row(row);
        let log_priors = &rows.log_priors[row * k..(row + 1) * k];
        let (length, weight, right) = (rows.lengths[row], rows.weights[row], rows.codes[row] as usize);
        let factor = (-at.power * length).exp();
        weigh_row::<FUSED>((columns, values), at.groups, &mut evidence);
        for e in &mut evidence {
            *e *= factor;
        }
        for ((z, e), log_prior) in p.iter_mut().zip(&evidence).zip(log_priors) {
            *z = e + at.prior * log_prior;
        }
        p.iter_mut().zip(at.bias).for_each(|(z, bias)| *z += bias);
        let score = p[right];
        out.loss += weight * (softmax::<FUSED>(&mut p) - score);
        // The means of the moves; the gradient is how far they are from those of the right class.
        there.clear();
        there.extend(columns.iter().map(|&column| usize::from(column)));
        there.extend([g, g + 1]);
        mean.clear();
        for own in values.chunks_exact(k) {
            mean.push(factor * dot_f32::<FUSED>(&p, own));
        }
        mean.push(-length * dot::<FUSED>(&p, &evidence));
        mean.push(dot::<FUSED>(&p, log_priors));
        let of_right = values.chunks_exact(k).map(|own| factor * f64::from(own[right]));
        for ((&b, mean), x) in there.iter().zip(&mean).zip(of_right.chain([-length * evidence[right]])) {
            let more = weight * (mean - x);
            out.gradient[b] += more;
            bend[b] -= length * more;
        }
        out.gradient[g + 1] += weight * (mean[columns.len() + 1] - log_priors[right]);
        if biases > 0 {
            out.gradient[moved..].iter_mut().zip(&p).for_each(|(sum, p)| *sum += weight * p);
            out.gradient[moved + right] -= weight;
        }
        if !curved {
            continue;
        }
        let mut number = 0;
        for (c, (&p, q)) in p.iter().zip(&mut q).enumerate() {
            let times = if p >= SURE { 1 } else { every * usize::from((row + c) & (every - 1) == 0) };
            *q = if p * (1.0 - p) >= LEAST { times as f64 * p } else { 0.0 };
            positions[number] = c;
            number += usize::from(*q > 0.0);
        }
        let likely = &positions[..number];
        let wide = padded(there.len());
        let lines = &mut shifts[..number * wide];
        for ((line, root), &c) in lines.chunks_exact_mut(wide).zip(&mut roots).zip(likely) {
            *root = (weight * q[c]).sqrt();
            line[columns.len()] = *root * (-length * evidence[c] - mean[columns.len()]);
            line[columns.len() + 1] = *root * (log_priors[c] - mean[columns.len() + 1]);
            line[there.len()..].fill(0.0);
        }
        for (i, (own, mean)) in values.chunks_exact(k).zip(&mean).enumerate() {
            for ((line, root), &c) in lines.chunks_exact_mut(wide).zip(&roots).zip(likely) {
                line[i] = root * (factor * f64::from(own[c]) - mean);
            }
        }
        if biases > 0 && weight > 0.0 {
            // Of the biases, the mean is by the classes that are taken, so that it stays a sum of squares.
            let kept: f64 = likely.iter().map(|&c| q[c]).sum();
            let rest = &mut rest[..wide];
            rest.fill(0.0);
            for (line, root) in lines.chunks_exact(wide).zip(&roots) {
                rest.iter_mut().zip(line).for_each(|(sum, x)| *sum = fma::<FUSED>(*root, *x, *sum));
            }
            mean.iter_mut().zip(rest).for_each(|(mean, rest)| *mean += *rest / weight);
            for ((&b, mean), own) in there.iter().zip(&mean).zip(values.chunks_exact(k)) {
                let own = own.iter().map(|&x| f64::from(x));
                add_cross::<FUSED>(&q, own, weight, factor, *mean, &mut cross[b * k..(b + 1) * k]);
            }
            for (b, own, scale) in [(g, &evidence[..], -length), (g + 1, log_priors, 1.0)] {
                let mean = mean[columns.len() + b - g];
                add_cross::<FUSED>(&q, own.iter().copied(), weight, scale, mean, &mut cross[b * k..(b + 1) * k]);
            }
            let last = likely.last().map_or(0, |&c| c + 1);
            for &c in likely {
                let own = &mut out.curvature[(moved + c) * size + moved..(moved + c + 1) * size];
                let less = weight * (kept - 2.0) * q[c];
                own[c..last].iter_mut().zip(&q[c..last]).for_each(|(sum, &q)| *sum = fma::<FUSED>(less, q, *sum));
                own[c] += weight * q[c];
            }
        }
        if 2 * there.len() < moved {
            let few = &mut few[..wide * wide];
            add_products::<FUSED>(lines, lines, wide, true, few);
            spread(few, wide, &there, stride, &mut products.product);
        } else {
            for line in lines.chunks_exact(wide) {
                let all = bucket.line(stride);
                all.fill(0.0);
                line.iter().zip(&there).for_each(|(x, &b)| all[b] = *x);
                products.take(&mut bucket, 1.0, stride);
            }
        }
    }
    if !curved {
        return out;
    }
    products.empty(&mut bucket, stride);
    for (b, bend) in bend.iter().enumerate() {
        products.product[b * stride + g] += bend;
    }
    fill_curvature(&mut out.curvature, moved, size, &products.product, &cross);
    out
}

/// Turns scores into probabilities, and returns the logarithm of what their exponentials were divided by.
#[inline(always)]
fn softmax<const FUSED: bool>(scores: &mut [f64]) -> f64 {
    let (wide, rest) = scores.as_chunks::<WIDE>();
    let mut highest = [f64::NEG_INFINITY; WIDE];
    for z in wide {
        highest = std::array::from_fn(|i| if z[i] > highest[i] { z[i] } else { highest[i] });
    }
    let highest = highest.iter().chain(rest).copied().fold(f64::NEG_INFINITY, f64::max);
    for z in &mut *scores {
        *z = exp_of_negative::<FUSED>(*z - highest);
    }
    let (wide, rest) = scores.as_chunks::<WIDE>();
    let mut sums = [0.0; WIDE];
    for p in wide {
        sums = std::array::from_fn(|i| sums[i] + p[i]);
    }
    let total = halved(sums) + rest.iter().sum::<f64>();
    for p in scores {
        *p /= total;
    }
    total.ln() + highest
}

/// Puts the sums of products above the diagonal, and those with biases, where they belong on both sides of it.
fn fill_curvature(curvature: &mut [f64], moved: usize, size: usize, product: &[f64], cross: &[f64]) {
    let (stride, biases) = (padded(moved), size - moved);
    for a in 0..size {
        for b in 0..size {
            let (low, high) = (a.min(b), a.max(b));
            curvature[a * size + b] = if high < moved {
                product[low * stride + high]
            } else if low < moved {
                cross[low * biases + high - moved]
            } else {
                curvature[low * size + high]
            };
        }
    }
}

/// Adds how the biases of classes, of probabilities q, and one more exponent bend the loss: w q (s x − m), for its moves s x.
#[inline(always)]
fn add_cross<const FUSED: bool>(q: &[f64], x: impl Iterator<Item = f64>, w: f64, s: f64, m: f64, out: &mut [f64]) {
    for ((out, q), x) in out.iter_mut().zip(q).zip(x) {
        *out = fma::<FUSED>(w * q, fma::<FUSED>(s, x, -m), *out);
    }
}

/// Adds sums of products, on and above the diagonal, to where they belong, and empties them.
fn spread(sums: &mut [f64], wide: usize, positions: &[usize], stride: usize, out: &mut [f64]) {
    for (i, (&position, sums)) in positions.iter().zip(sums.chunks_exact(wide)).enumerate() {
        let out = &mut out[position * stride..(position + 1) * stride];
        positions[i..].iter().zip(&sums[i..]).for_each(|(&other, sum)| out[other] += sum);
    }
    sums.fill(0.0);
}

#[inline(always)]
fn dot<const FUSED: bool>(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; WIDE];
    let ((wide_a, rest_a), (wide_b, rest_b)) = (a.as_chunks::<WIDE>(), b.as_chunks::<WIDE>());
    for (a, b) in wide_a.iter().zip(wide_b) {
        for i in 0..WIDE {
            sums[i] = fma::<FUSED>(a[i], b[i], sums[i]);
        }
    }
    halved(sums) + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f64>()
}

#[inline(always)]
fn dot_f32<const FUSED: bool>(a: &[f64], b: &[f32]) -> f64 {
    let mut sums = [0.0; WIDE];
    let ((wide_a, rest_a), (wide_b, rest_b)) = (a.as_chunks::<WIDE>(), b.as_chunks::<WIDE>());
    for (a, b) in wide_a.iter().zip(wide_b) {
        for i in 0..WIDE {
            sums[i] = fma::<FUSED>(a[i], f64::from(b[i]), sums[i]);
        }
    }
    halved(sums) + rest_a.iter().zip(rest_b).map(|(a, b)| a * f64::from(*b)).sum::<f64>()
}

/// The sum of numbers, by halves: as vectors are added.
#[inline(always)]
fn halved(sums: [f64; WIDE]) -> f64 {
    let four = [sums[0] + sums[4], sums[1] + sums[5], sums[2] + sums[6], sums[3] + sums[7]];
    (four[0] + four[2]) + (four[1] + four[3])
}
