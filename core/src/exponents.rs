//! How far the exponents that discount evidence are from their best values: the loss, its gradient and its curvature.
//!
//! Row i has evidence F_c, one number for each group of words, for and against class c. Its score is
//! z_c = s^(−γ) Σ_b e_b F_cb + κ log p_c + β_c, with s its length, and the loss −Σ log softmax(z) of the right classes.
//! z moves with the exponents (e, γ, κ) by u_c = (s^(−γ) F_c, −log s · Σ e F s^(−γ), log p_c), and with β_c by 1. With m the mean
//! of u by the probabilities p_c, the curvature is Σ p_c (u_c − m)(u_c − m)ᵀ, but for how γ bends z.

use crate::simd::dispatch;
use crate::threads;

/// Classes of less probability add nothing to the curvature: it says how far to go, the gradient where to stop.
const LEAST: f64 = 1e-4;
/// Moves summed together.
const BLOCK: usize = 128;
/// Moves are padded to a multiple of this, and their products summed in tiles of so many by `TALL`.
const WIDE: usize = 16;
const TALL: usize = 4;
/// Sums of fractions depend on the order of adding: the number of pieces follows from the data.
const PIECE: usize = 1 << 20;
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
        self.evidence.len() == n * self.classes * self.groups
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
    let (moved, biased) = (g + 2, at.bias.len());
    let size = moved + biased;
    let mut out = Slope { loss: 0.0, gradient: vec![0.0; size], curvature: vec![0.0; size * size] };
    let exponents: Vec<f32> = at.groups.iter().map(|&e| e as f32).collect();
    let mut products = Products::new(moved);
    let (mut scores, mut evidence, mut gaps) = (vec![0.0; k], vec![0.0; k], vec![0.0; k]);
    let (mut mean, mut total, mut rest) = (vec![0.0_f32; moved], vec![0.0_f32; g], vec![0.0_f32; moved]);
    let mut likely: Vec<usize> = Vec::new();
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
            add::<FUSED>(&mut total, own, (gaps[c] * factor) as f32);
            add::<FUSED>(&mut mean[..g], own, (p[c] * factor) as f32);
            mean[g] -= (p[c] * length * evidence[c]) as f32;
            mean[g + 1] += (p[c] * log_shares[c]) as f32;
        }
        out.gradient.iter_mut().zip(&total).for_each(|(sum, &more)| *sum += f64::from(more));
        out.gradient[moved..].iter_mut().zip(&gaps).for_each(|(sum, gap)| *sum += gap);
        likely.clear();
        likely.extend((0..k).filter(|&c| p[c] * (1.0 - p[c]) >= LEAST));
        rest.fill(0.0);
        for &c in &likely {
            let place = products.next::<FUSED>();
            for (b, v) in place[..g].iter_mut().enumerate() {
                *v = factor as f32 * features[c * g + b] - mean[b];
            }
            place[g] = -(length * evidence[c]) as f32 - mean[g];
            place[g + 1] = log_shares[c] as f32 - mean[g + 1];
            if biased > 0 {
                add::<FUSED>(&mut rest, &place[..moved], p[c] as f32);
                for (b, &v) in place[..moved].iter().enumerate() {
                    out.curvature[b * size + moved + c] += weight * p[c] * f64::from(v);
                }
            }
            let root = (weight * p[c]).sqrt() as f32;
            place[..moved].iter_mut().for_each(|v| *v *= root);
        }
        if biased > 0 {
            // Of the biases, the mean is by the classes that are left, so that it stays a sum of squares.
            let kept: f64 = likely.iter().map(|&c| p[c]).sum();
            for &c in &likely {
                for (b, &r) in rest.iter().enumerate() {
                    out.curvature[b * size + moved + c] -= weight * p[c] * f64::from(r);
                }
                for &d in &likely {
                    out.curvature[(moved + c) * size + moved + d] -= weight * p[c] * p[d] * (2.0 - kept);
                }
                out.curvature[(moved + c) * size + moved + c] += weight * p[c];
            }
        }
    }
    products.write::<FUSED>(&mut out.curvature, size);
    for a in 0..size {
        for b in 0..a {
            out.curvature[a * size + b] = out.curvature[b * size + a];
        }
    }
    out
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

#[inline(always)]
fn add<const FUSED: bool>(sum: &mut [f32], more: &[f32], factor: f32) {
    sum.iter_mut().zip(more).for_each(|(s, &m)| *s = fma::<FUSED>(factor, m, *s));
}

/// The sum of v vᵀ over vectors v: its upper triangle, in tiles.
struct Products {
    width: usize,
    padded: usize,
    block: Vec<f32>,
    filled: usize,
    sums: Vec<f64>,
}

impl Products {
    fn new(width: usize) -> Self {
        let padded = width.next_multiple_of(WIDE);
        Self { width, padded, block: vec![0.0; BLOCK * padded], filled: 0, sums: vec![0.0; padded * padded] }
    }

    /// Where the next vector goes.
    #[inline(always)]
    fn next<const FUSED: bool>(&mut self) -> &mut [f32] {
        if self.filled == BLOCK {
            self.sum::<FUSED>();
        }
        self.filled += 1;
        &mut self.block[(self.filled - 1) * self.padded..self.filled * self.padded]
    }

    #[inline(always)]
    fn sum<const FUSED: bool>(&mut self) {
        let n = self.padded;
        for a in (0..n).step_by(TALL) {
            for b in (a / WIDE * WIDE..n).step_by(WIDE) {
                let mut tile = [[0.0_f32; WIDE]; TALL];
                for v in self.block.chunks_exact(n).take(self.filled) {
                    let (left, right) = (&v[a..a + TALL], &v[b..b + WIDE]);
                    for i in 0..TALL {
                        for j in 0..WIDE {
                            tile[i][j] = fma::<FUSED>(left[i], right[j], tile[i][j]);
                        }
                    }
                }
                for (i, row) in tile.iter().enumerate() {
                    let sums = &mut self.sums[(a + i) * n + b..(a + i) * n + b + WIDE];
                    sums.iter_mut().zip(row).for_each(|(sum, more)| *sum += f64::from(*more));
                }
            }
        }
        self.filled = 0;
    }

    /// Adds the upper triangle to a matrix with rows of `size`.
    #[inline(always)]
    fn write<const FUSED: bool>(&mut self, out: &mut [f64], size: usize) {
        self.sum::<FUSED>();
        for a in 0..self.width {
            for b in a..self.width {
                out[a * size + b] += self.sums[a * self.padded + b];
            }
        }
    }
}
