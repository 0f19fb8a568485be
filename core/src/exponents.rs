//! How far the exponents that discount evidence are from their best values: the loss, its gradient and its curvature.
//!
//! Row i has evidence F_c, one number for each group of words, for and against class c. Its score is
//! z_c = s^(−γ) Σ_b e_b F_cb + κ log p_c + β_c, with s its length, and the loss −Σ log softmax(z) of the right classes.
//! z moves with the exponents (e, γ, κ) by u_c = (s^(−γ) F_c, −log s · Σ e F s^(−γ), log p_c), and with β_c by 1. With m the mean
//! of u by the probabilities p_c, the curvature is Σ p_c (u_c − m)(u_c − m)ᵀ, but for how γ bends z.

use crate::scatter::{Bucket, Part, padded};
use crate::simd::dispatch;
use crate::threads;

/// Classes of less probability add nothing to the curvature: it says how far to go, the gradient where to stop.
const LEAST: f64 = 1e-4;
/// Smaller probabilities add nothing to a sum of 32 bits.
const NOTHING: f64 = 1e-12;
/// Moves that wait to be multiplied together.
const BUCKET: usize = 128;
/// Numbers multiplied side by side.
const WIDE: usize = 16;
/// Sums of fractions depend on the order of adding: the number of pieces follows from the data.
const PIECE: usize = 1 << 17;
const MOST_PIECES: usize = 16;

/// Rows with the evidence of every group (rows × classes × groups), the logarithm of their length, of the classes' shares
/// (rows × classes), the right class and a weight.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub evidence: &'a [f32],
    pub lengths: &'a [f64],
    pub log_shares: &'a [f64],
    pub codes: &'a [i64],
    pub weights: &'a [f64],
    pub classes: usize,
    pub groups: usize,
}

/// The exponents of groups, that of the length, that of the shares, and the bias of every class or none.
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

impl Rows<'_> {
    pub fn fits(&self) -> bool {
        let n = self.codes.len();
        self.groups > 0
            && self.evidence.len() == n * self.classes * self.groups
            && [self.lengths.len(), self.weights.len()] == [n, n]
            && self.log_shares.len() == n * self.classes
            && self.codes.iter().all(|&code| code >= 0 && (code as usize) < self.classes)
    }
}

pub fn slope(rows: Rows, at: At) -> Slope {
    let n = rows.codes.len();
    let step = n.div_ceil((rows.evidence.len() / PIECE).clamp(1, MOST_PIECES)).max(1);
    let pieces = threads::map(n.div_ceil(step), rows.evidence.len() * 4, |piece| {
        let own = piece * step..((piece + 1) * step).min(n);
        dispatch!(of_rows(rows, at, own))
    });
    let size = at.groups.len() + 2 + at.bias.len();
    let none = Slope { loss: 0.0, gradient: vec![0.0; size], curvature: vec![0.0; size * size] };
    pieces.into_iter().fold(none, |mut all, piece| {
        all.loss += piece.loss;
        all.gradient.iter_mut().zip(piece.gradient).for_each(|(sum, more)| *sum += more);
        all.curvature.iter_mut().zip(piece.curvature).for_each(|(sum, more)| *sum += more);
        all
    })
}

#[inline(always)]
fn of_rows<const FUSED: bool>(rows: Rows, at: At, own: std::ops::Range<usize>) -> Slope {
    let (k, g) = (rows.classes, rows.groups);
    let (moved, biases) = (g + 2, at.bias.len());
    let size = moved + biases;
    let mut out = Slope { loss: 0.0, gradient: vec![0.0; size], curvature: vec![0.0; size * size] };
    let exponents: Vec<f32> = at.groups.iter().map(|&e| e as f32).collect();
    let stride = padded(moved);
    let (mut products, mut bucket) = (Part::new(stride, false), Bucket::new(BUCKET * stride, true));
    let (mut scores, mut evidence, mut gaps) = (vec![0.0; k], vec![0.0; k], vec![0.0; k]);
    let (mut mean, mut total, mut rest) = (vec![0.0_f32; moved], vec![0.0_f32; g], vec![0.0; moved]);
    let mut likely: Vec<usize> = Vec::new();
    // The exponents that a row's scores move with, and by how much: short texts have words of few groups.
    let (mut there, mut line, mut few) = (Vec::with_capacity(moved), vec![0.0; stride], Few::new(moved));
    let mut seen = vec![0; g];
    // How biases and the other exponents bend the loss together, class by class.
    let mut cross = vec![0.0; biases * moved];
    for row in own {
        let features = &rows.evidence[row * k * g..(row + 1) * k * g];
        let log_shares = &rows.log_shares[row * k..(row + 1) * k];
        let (length, weight, right) = (rows.lengths[row], rows.weights[row], rows.codes[row] as usize);
        let factor = (-at.power * length).exp();
        for c in 0..k {
            evidence[c] = factor * f64::from(dot::<FUSED>(&features[c * g..(c + 1) * g], &exponents));
            scores[c] = evidence[c] + at.prior * log_shares[c] + at.bias.get(c).copied().unwrap_or(0.0);
        }
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = scores.iter().map(|z| (z - highest).exp()).sum::<f64>().ln() + highest;
        out.loss += weight * (log_sum - scores[right]);
        for z in &mut scores {
            *z = (*z - log_sum).exp();
        }
        let p = &scores;
        total.fill(0.0);
        mean.fill(0.0);
        for c in 0..k {
            gaps[c] = weight * (p[c] - f64::from(u8::from(c == right)));
            out.gradient[g] -= gaps[c] * length * evidence[c];
            out.gradient[g + 1] += gaps[c] * log_shares[c];
            let own = &features[c * g..(c + 1) * g];
            // What is too small to be seen is also too small to be multiplied fast.
            if gaps[c].abs() > NOTHING {
                add::<FUSED>(&mut total, own, (gaps[c] * factor) as f32);
            }
            if p[c] > NOTHING {
                add::<FUSED>(&mut mean[..g], own, (p[c] * factor) as f32);
            }
            mean[g] -= (p[c] * length * evidence[c]) as f32;
            mean[g + 1] += (p[c] * log_shares[c]) as f32;
        }
        out.gradient.iter_mut().zip(&total).for_each(|(sum, &more)| *sum += f64::from(more));
        out.gradient[moved..].iter_mut().zip(&gaps).for_each(|(sum, gap)| *sum += gap);
        likely.clear();
        likely.extend((0..k).filter(|&c| p[c] * (1.0 - p[c]) >= LEAST));
        rest.fill(0.0);
        if !likely.is_empty() {
            find_groups(features, g, &mut seen, &mut there);
        }
        for &c in &likely {
            for (&b, v) in there.iter().zip(&mut line) {
                *v = match b.checked_sub(g) {
                    None => f64::from(factor as f32 * features[c * g + b] - mean[b]),
                    Some(0) => -length * evidence[c] - f64::from(mean[g]),
                    Some(_) => log_shares[c] - f64::from(mean[g + 1]),
                };
            }
            if biases > 0 {
                let own = &mut cross[c * moved..(c + 1) * moved];
                for (&b, v) in there.iter().zip(&line) {
                    rest[b] += p[c] * v;
                    own[b] += weight * p[c] * v;
                }
            }
            if 2 * there.len() < moved {
                few.add::<FUSED>(&line[..there.len()], weight * p[c]);
            } else {
                let all = bucket.line(stride);
                all.fill(0.0);
                there.iter().zip(&line).for_each(|(&b, v)| all[b] = *v);
                products.take(&mut bucket, weight * p[c], stride);
            }
        }
        few.spread(&there, stride, &mut products.product);
        if biases > 0 {
            // Of the biases, the mean is by the classes that are left, so that it stays a sum of squares.
            let kept: f64 = likely.iter().map(|&c| p[c]).sum();
            for &c in &likely {
                let own = &mut cross[c * moved..(c + 1) * moved];
                own.iter_mut().zip(&rest).for_each(|(sum, r)| *sum -= weight * p[c] * r);
                for &d in &likely {
                    out.curvature[(moved + c) * size + moved + d] -= weight * p[c] * p[d] * (2.0 - kept);
                }
                out.curvature[(moved + c) * size + moved + c] += weight * p[c];
            }
        }
    }
    products.empty(&mut bucket, stride);
    fill_curvature(&mut out.curvature, moved, size, &products.product, &cross);
    out
}

/// Puts the sums of products above the diagonal, and those with biases, where they belong on both sides of it.
fn fill_curvature(curvature: &mut [f64], moved: usize, size: usize, product: &[f64], cross: &[f64]) {
    let stride = padded(moved);
    for a in 0..size {
        for b in 0..size {
            let (low, high) = (a.min(b), a.max(b));
            curvature[a * size + b] = if high < moved {
                product[low * stride + high]
            } else if low < moved {
                cross[(high - moved) * moved + low]
            } else {
                curvature[low * size + high]
            };
        }
    }
}

/// Finds the groups of which a row has evidence, and adds the places of the two exponents that all rows move with.
#[inline(always)]
fn find_groups(features: &[f32], groups: usize, seen: &mut [u32], there: &mut Vec<usize>) {
    seen.fill(0);
    for own in features.chunks_exact(groups) {
        for (seen, x) in seen.iter_mut().zip(own) {
            *seen |= x.to_bits() << 1; // all but the sign
        }
    }
    there.clear();
    there.extend((0..groups).filter(|&b| seen[b] != 0));
    there.extend([groups, groups + 1]);
}

/// Sums of products of a few numbers.
struct Few {
    sums: Vec<f64>,
    stride: usize,
    used: bool,
}

impl Few {
    fn new(most: usize) -> Self {
        let stride = padded(most);
        Self { sums: vec![0.0; stride * stride], stride, used: false }
    }

    /// Adds w v vᵀ, on and above the diagonal.
    #[inline(always)]
    fn add<const FUSED: bool>(&mut self, v: &[f64], w: f64) {
        self.used = true;
        for (i, &x) in v.iter().enumerate() {
            let sums = &mut self.sums[i * self.stride..];
            for (sum, &y) in sums[i..v.len()].iter_mut().zip(&v[i..]) {
                *sum = crate::simd::fma::<FUSED>(w * x, y, *sum);
            }
        }
    }

    /// Adds the sums to where they belong, and begins anew.
    fn spread(&mut self, places: &[usize], stride: usize, out: &mut [f64]) {
        if !std::mem::take(&mut self.used) {
            return;
        }
        for (i, &place) in places.iter().enumerate() {
            for (&other, sum) in places[i..].iter().zip(&mut self.sums[i * self.stride + i..]) {
                out[place * stride + other] += std::mem::take(sum);
            }
        }
    }
}

#[inline(always)]
fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn dot<const FUSED: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; WIDE];
    let ((wide_a, rest_a), (wide_b, rest_b)) = (a.as_chunks::<WIDE>(), b.as_chunks::<WIDE>());
    for (a, b) in wide_a.iter().zip(wide_b) {
        for i in 0..WIDE {
            sums[i] = fma::<FUSED>(a[i], b[i], sums[i]);
        }
    }
    sums.iter().sum::<f32>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}

// A loop, as a closure given to an iterator may be compiled apart, without the instructions of its caller.
#[inline(always)]
fn add<const FUSED: bool>(sum: &mut [f32], more: &[f32], factor: f32) {
    for (s, &m) in sum.iter_mut().zip(more) {
        *s = fma::<FUSED>(factor, m, *s);
    }
}
