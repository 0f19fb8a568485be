//! From log p(x, y) to what is asked: the likeliest class, p(y | x), log p(x). The one log-sum-exp.

use crate::simd::dispatch;
use crate::special::exp_of_negative;
use crate::threads;
use std::convert::Infallible;

const PIECE: usize = 4096;
const TOGETHER: usize = 256;

/// The largest score and the logarithm of Σ exp(score − largest): kept apart, so that a large score swallows no digit.
#[inline]
fn log_sum_exp(row: &[f64]) -> (f64, f64) {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return (top, 0.0);
    }
    (top, row.iter().map(|x| (x - top).exp()).sum::<f64>().ln())
}

/// Writes the class weights into every row (rows × classes), more rows at a time than would be one by one.
pub fn begin(joint: &mut [f64], log_weights: &[f64]) {
    let k = log_weights.len();
    for row in joint.chunks_exact_mut(k).take(TOGETHER) {
        row.copy_from_slice(log_weights);
    }
    let (first, rest) = joint.split_at_mut(joint.len().min(TOGETHER * k));
    for rows in rest.chunks_mut(TOGETHER * k) {
        rows.copy_from_slice(&first[..rows.len()]);
    }
}

/// log p(x): the sum of each row (rows × classes) in the log domain.
pub fn log_density(joint: &[f64], k: usize) -> Vec<f64> {
    let mut out = vec![0.0; joint.len() / k];
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, PIECE, joint.len() * 8, |piece, out| {
        let rows = joint[piece * PIECE * k..].chunks_exact(k);
        for (out, row) in out.iter_mut().zip(rows) {
            let (top, rest) = log_sum_exp(row);
            *out = top + rest;
        }
        Ok(())
    });
    out
}

/// Turns log p(x, y) into p(y | x), or its logarithm, in place. Where x is impossible under every class,
/// it says nothing, and the class weights stand.
pub fn posterior(joint: &mut [f64], log_weights: &[f64], log: bool) {
    let k = log_weights.len();
    let Ok::<(), Infallible>(()) = threads::for_each(joint, PIECE * k, joint.len() * 8, |_, rows| {
        for row in rows.chunks_exact_mut(k) {
            if row.iter().all(|&x| x == f64::NEG_INFINITY) {
                row.copy_from_slice(log_weights);
            }
            if log {
                let (top, rest) = log_sum_exp(row);
                for x in row.iter_mut() {
                    *x = (*x - top) - rest;
                }
            } else {
                let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut total = 0.0;
                for x in row.iter_mut() {
                    *x = (*x - top).exp();
                    total += *x;
                }
                for x in row.iter_mut() {
                    *x /= total;
                }
            }
        }
        Ok(())
    });
}

/// Turns log p(x, y) into p(y | x), in place, and returns Σ w log p(x) and Σ w p(y | x) of every class. Where the class of
/// a row is known (its code is not negative), it is that one for sure, and the first sum is of log p(x, y).
pub fn expect(
    joint: &mut [f64],
    log_weights: &[f64],
    codes: Option<&[i32]>,
    weights: Option<&[f64]>,
) -> (f64, Vec<f64>) {
    let k = log_weights.len();
    let steps = joint.len() * 8;
    let mut pieces: Vec<(&mut [f64], f64, Vec<f64>)> =
        joint.chunks_mut(PIECE * k).map(|rows| (rows, 0.0, vec![0.0; k])).collect();
    let Ok::<(), Infallible>(()) = threads::for_each(&mut pieces, 1, steps, |piece, out| {
        let (rows, sum, counts) = &mut out[0];
        for (part, rows) in rows.chunks_mut(TOGETHER * k).enumerate() {
            let first = piece * PIECE + part * TOGETHER;
            let class = |row: usize| codes.and_then(|codes| usize::try_from(codes[first + row]).ok());
            let weight = |row: usize| weights.map_or(1.0, |weights| weights[first + row]);
            *sum += dispatch!(expect_rows(rows, log_weights, class, weight, counts));
        }
        Ok(())
    });
    let mut counts = vec![0.0; k];
    for (_, _, part) in &pieces {
        for (count, part) in counts.iter_mut().zip(part) {
            *count += part;
        }
    }
    (pieces.iter().map(|piece| piece.1).sum(), counts)
}

/// The same for a few rows; what counts in every class is added. Exponentials are taken of all rows together.
#[inline(always)]
fn expect_rows<const FUSED: bool>(
    rows: &mut [f64],
    log_weights: &[f64],
    class: impl Fn(usize) -> Option<usize>,
    weight: impl Fn(usize) -> f64,
    counts: &mut [f64],
) -> f64 {
    let k = log_weights.len();
    let mut logs = [0.0; TOGETHER];
    for (i, (row, log)) in rows.chunks_exact_mut(k).zip(&mut logs).enumerate() {
        let top = row.iter().fold(f64::NEG_INFINITY, |top, &x| if x > top { x } else { top });
        *log = class(i).map_or(top, |class| row[class]);
        for x in row {
            *x -= top;
        }
    }
    for x in rows.iter_mut() {
        *x = exp_of_negative::<FUSED>(*x);
    }
    let mut sum = 0.0;
    for (i, (row, log)) in rows.chunks_exact_mut(k).zip(&mut logs).enumerate() {
        if let Some(class) = class(i) {
            row.fill(0.0);
            row[class] = 1.0;
        } else if *log == f64::NEG_INFINITY {
            row.iter_mut().zip(log_weights).for_each(|(x, weight)| *x = weight.exp());
        } else {
            let total: f64 = row.iter().sum();
            *log += total.ln();
            let factor = 1.0 / total;
            for x in row.iter_mut() {
                *x *= factor;
            }
        }
        let w = weight(i);
        if w > 0.0 {
            sum += w * *log;
            for (count, x) in counts.iter_mut().zip(row) {
                *count += w * *x;
            }
        }
    }
    sum
}

/// The index of the largest score of each row, the first among equals; by the class weights where all are −∞.
pub fn likeliest(joint: &[f64], log_weights: &[f64], out: &mut [i64]) {
    let k = log_weights.len();
    let best = |row: &[f64]| {
        if let &[first, second] = row {
            return usize::from(second > first); // no branch: which of two wins cannot be foretold
        }
        let mut best = 0;
        for (c, x) in row.iter().enumerate() {
            if *x > row[best] {
                best = c;
            }
        }
        best
    };
    let Ok::<(), Infallible>(()) = threads::for_each(out, PIECE, joint.len() * 2, |piece, out| {
        let rows = joint[piece * PIECE * k..].chunks_exact(k);
        for (out, row) in out.iter_mut().zip(rows) {
            let class = best(row);
            *out = if row[class] == f64::NEG_INFINITY { best(log_weights) } else { class } as i64;
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_as_in_the_lectures() {
        let mut rows = vec![1.0, 2.0, 3.0, 10.0, 20.0, 30.0];
        posterior(&mut rows, &[-1.0; 3], false);
        let want = [0.0900, 0.2447, 0.6652, 2.06e-9, 4.54e-5, 0.99995];
        assert!(rows.iter().zip(want).all(|(got, want)| (got - want).abs() < 5e-5 * want + 5e-5));
    }

    #[test]
    fn huge_scores_keep_their_digits() {
        let mut rows = vec![-1e300, -1e300, 1e17, 1e17];
        posterior(&mut rows, &[-1.0; 2], true);
        assert_eq!(rows, [0.5f64.ln(); 4]);
    }

    #[test]
    fn expected_classes_are_posteriors_and_told_is_the_density() {
        let (k, rows) = (5, 700);
        let log_weights = [0.2f64.ln(); 5];
        let scores: Vec<f64> = (0..rows * k).map(|i| ((i * 7919) % 1009) as f64 * 0.9 - 400.0).collect();
        let (mut expected, mut posteriors) = (scores.clone(), scores.clone());
        let codes: Vec<i32> = (0..rows as i32).map(|row| if row % 9 == 0 { row % 5 } else { -1 }).collect();
        let weights: Vec<f64> = (0..rows).map(|row| (row % 3) as f64).collect();
        let (log_likelihood, counts) = expect(&mut expected, &log_weights, Some(&codes), Some(&weights));
        posterior(&mut posteriors, &log_weights, false);
        let density = log_density(&scores, k);
        let mut want = 0.0;
        for row in 0..rows {
            let class = usize::try_from(codes[row]).ok();
            want += weights[row] * class.map_or(density[row], |class| scores[row * k + class]);
            for c in 0..k {
                let want = class.map_or(posteriors[row * k + c], |class| f64::from(u8::from(c == class)));
                let got = expected[row * k + c];
                assert!((got - want).abs() <= 1e-14 * want + 1e-300, "{got} {want}");
            }
        }
        assert!((log_likelihood - want).abs() <= 1e-13 * want.abs(), "{log_likelihood} {want}");
        for (c, count) in counts.iter().enumerate() {
            let want: f64 = (0..rows).map(|row| weights[row] * expected[row * k + c]).sum();
            assert!((count - want).abs() <= 1e-12 * want, "{count} {want}");
        }
    }

    #[test]
    fn an_impossible_row_leaves_the_weights() {
        let mut rows = vec![f64::NEG_INFINITY; 2];
        let weights = [0.25f64.ln(), 0.75f64.ln()];
        assert_eq!(log_density(&rows, 2), [f64::NEG_INFINITY]);
        let mut out = [7];
        likeliest(&rows, &weights, &mut out);
        assert_eq!(out, [1]);
        posterior(&mut rows, &weights, false);
        assert!((rows[0] - 0.25).abs() < 1e-15 && (rows[1] - 0.75).abs() < 1e-15);
        let mut rows = vec![f64::NEG_INFINITY; 2];
        assert_eq!(expect(&mut rows, &weights, None, None).0, f64::NEG_INFINITY);
        assert!((rows[0] - 0.25).abs() < 1e-15 && (rows[1] - 0.75).abs() < 1e-15);
    }
}
