//! Counts in compressed sparse rows: summed by class, and scored by a table of words × classes.

use crate::responsibilities::Assignment;
use crate::simd::{dispatch, fma, prefetch};
use crate::source::{Cell, Domain};
use crate::threads;
use std::convert::Infallible;

/// Whether these are where rows begin, one after the other, and where the last of `length` cells ends.
pub fn rises(starts: &[i64], length: usize) -> bool {
    starts.first() == Some(&0)
        && starts.last() == Some(&(length as i64))
        && starts.windows(2).all(|pair| pair[0] <= pair[1])
}

/// Rows of counts. Row i holds `indices[starts[i]..starts[i + 1]]` and the values beside them.
pub struct Rows<'a, I, T> {
    starts: &'a [i64],
    indices: &'a [I],
    values: &'a [T],
    width: usize,
    domain: Domain,
}

/// A value that is no count.
#[derive(Debug, PartialEq)]
pub enum Broken {
    /// the three arrays do not describe a matrix
    Layout,
    Value {
        row: usize,
        column: usize,
        value: f64,
    },
}

impl<'a, I: Copy + Sync + TryInto<usize>, T: Cell> Rows<'a, I, T> {
    pub fn new(
        starts: &'a [i64],
        indices: &'a [I],
        values: &'a [T],
        width: usize,
        domain: Domain,
    ) -> Result<Self, Broken> {
        if rises(starts, indices.len()) && indices.len() == values.len() {
            Ok(Self { starts, indices, values, width, domain })
        } else {
            Err(Broken::Layout)
        }
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The cells of a row; NaN, a missing count, is passed over.
    #[inline(always)]
    fn row(&self, row: usize) -> impl Iterator<Item = Result<(usize, f64), Broken>> {
        let at = self.starts[row] as usize..self.starts[row + 1] as usize;
        self.indices[at.clone()].iter().zip(&self.values[at]).filter_map(move |(&index, value)| {
            let x = value.number();
            if x.is_nan() {
                return None;
            }
            Some(match index.try_into() {
                Ok(column) if column < self.width => {
                    if self.domain.holds(x) {
                        Ok((column, self.domain.read(x)))
                    } else {
                        Err(Broken::Value { row, column, value: x })
                    }
                }
                _ => Err(Broken::Layout),
            })
        })
    }

    /// The cells of a row in which nothing is missing, 0 or wrong, and numbers are read as they are; else None. Nearly
    /// every row is such a one, and this is many times faster than [`Self::row`].
    #[inline(always)]
    fn plain(&self, row: usize) -> Option<impl Iterator<Item = (usize, f64)> + Clone> {
        let at = self.starts[row] as usize..self.starts[row + 1] as usize;
        let (indices, values) = (&self.indices[at.clone()], &self.values[at]);
        let (mut inside, mut positive) = (true, true);
        for &index in indices {
            inside &= index.try_into().unwrap_or(usize::MAX) < self.width;
        }
        for value in values {
            let x = value.number();
            positive &= x > 0.0 && x < f64::INFINITY;
        }
        let read = |(&index, value): (&I, &T)| (index.try_into().unwrap_or(0), value.number());
        (inside && positive && self.domain == Domain::NonNegative).then(|| indices.iter().zip(values).map(read))
    }

    /// Fills `out` with Σ w x per class and column (classes × columns). A class is one thread's work, so that no sum is
    /// kept twice.
    pub fn sums(&self, assignment: &Assignment, out: &mut [f64]) -> Result<(), Broken> {
        let by_class = assignment.rows_by_class();
        threads::for_each(out, self.width, self.indices.len() * 4, |class, out| {
            out.fill(0.0);
            for &row in &by_class[class] {
                let weight = assignment.weights.map_or(1.0, |weights| weights[row as usize]);
                if let Some(plain) = self.plain(row as usize) {
                    plain.for_each(|(column, x)| out[column] += weight * x);
                } else {
                    for cell in self.row(row as usize) {
                        let (column, x) = cell?;
                        out[column] += weight * x;
                    }
                }
            }
            Ok(())
        })
    }

    /// Adds Σ x · score over a row's words (`scores`: columns × classes) to `out` (rows × classes).
    pub fn score(&self, scores: &[f64], k: usize, out: &mut [f64]) -> Result<(), Broken> {
        threads::for_each(out, PIECE * k, self.indices.len() * k, |piece, out| {
            dispatch!(score_rows::<_, _>(self, piece * PIECE, scores, k, out))
        })
    }
}

/// Rows a thread takes at a time.
const PIECE: usize = 256;

/// How many words ahead their scores are asked for, which may lie in a table far larger than any cache.
const AHEAD: usize = 8;

#[inline(always)]
fn score_rows<I: Copy + Sync + TryInto<usize>, T: Cell, const FUSED: bool>(
    rows: &Rows<I, T>,
    first: usize,
    scores: &[f64],
    k: usize,
    out: &mut [f64],
) -> Result<(), Broken> {
    for (r, out) in out.chunks_exact_mut(k).enumerate() {
        let mut upcoming = rows.indices.iter().skip(rows.starts[first + r] as usize + AHEAD);
        let ask = || {
            if let Some(&index) = upcoming.next()
                && let Ok(column) = index.try_into()
                && let Some(next) = scores.get(column * k..(column + 1) * k)
            {
                next.iter().step_by(8).for_each(prefetch);
            }
        };
        if let Some(words) = rows.plain(first + r) {
            add_words::<FUSED>(words, scores, k, out, ask);
        } else {
            let words = rows.row(first + r).filter(|word| !matches!(word, Ok((_, 0.0))));
            let words = words.collect::<Result<Vec<_>, _>>()?;
            add_words::<FUSED>(words.into_iter(), scores, k, out, ask);
        }
    }
    Ok(())
}

/// Adds x · score over the words of a row for every class, as many classes at a time as there are sums to keep at hand.
/// Calls `ask` once for each word.
#[inline(always)]
fn add_words<const FUSED: bool>(
    words: impl Iterator<Item = (usize, f64)> + Clone,
    scores: &[f64],
    k: usize,
    out: &mut [f64],
    mut ask: impl FnMut(),
) {
    let mut class = 0;
    while class < k {
        let at = &mut out[class..];
        let words = words.clone().inspect(|_| {
            if class == 0 {
                ask();
            }
        });
        class += match k - class {
            8.. => add_to_classes::<8, FUSED>(words, scores, k, class, at),
            4.. => add_to_classes::<4, FUSED>(words, scores, k, class, at),
            2.. => add_to_classes::<2, FUSED>(words, scores, k, class, at),
            _ => add_to_classes::<1, FUSED>(words, scores, k, class, at),
        };
    }
}

/// Adds x · score over words for N classes from `class` on; returns N.
#[inline(always)]
fn add_to_classes<const N: usize, const FUSED: bool>(
    words: impl Iterator<Item = (usize, f64)>,
    scores: &[f64],
    k: usize,
    class: usize,
    out: &mut [f64],
) -> usize {
    let mut sums = [0.0; N];
    for (column, x) in words {
        let position = column * k + class;
        for (sum, score) in sums.iter_mut().zip(&scores[position..position + N]) {
            *sum = fma::<FUSED>(x, *score, *sum);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out += sum;
    }
    N
}

/// Fills `out` with log((count + λ) / Σ (count + λ)), from classes × words to words × classes.
/// λ is one number, one per word, or one per class and word.
pub fn log_probabilities(counts: &[f64], smoothing: &[f64], k: usize, out: &mut [f64]) {
    const PIECE: usize = 2048;
    const MEMO: usize = 64;
    let words = counts.len().checked_div(k).unwrap_or(0);
    let (by_class, by_word) = match smoothing.len() {
        1 => (0, 0),
        n => (if n == words { 0 } else { words }, 1),
    };
    let lambda = |class: usize, word: usize| smoothing[class * by_class + word * by_word];
    let totals = threads::map(k, counts.len(), |class| {
        let mut total = 0.0;
        for first in (0..words).step_by(PIECE) {
            let last = (first + PIECE).min(words);
            total += (first..last).map(|word| counts[class * words + word] + lambda(class, word)).sum::<f64>();
        }
        f64::ln(total)
    });
    // Most counts are small whole numbers: with one λ for all their logarithms are few.
    let memo: Vec<f64> =
        if smoothing.len() == 1 { (0..MEMO).map(|i| (i as f64 + smoothing[0]).ln()).collect() } else { vec![] };
    let Ok::<(), Infallible>(()) = threads::for_each(out, PIECE * k, counts.len() * 8, |piece, out| {
        for class in 0..k {
            let first = piece * PIECE;
            let counts = &counts[class * words + first..];
            for (w, (out, &count)) in out.iter_mut().skip(class).step_by(k).zip(counts).enumerate() {
                let index = count as usize;
                let log = match memo.get(index) {
                    Some(&log) if index as f64 == count => log,
                    _ => (count + lambda(class, first + w)).ln(),
                };
                *out = log - totals[class];
            }
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_scores() {
        let rows = Rows::new(&[0, 2, 2, 3], &[0i32, 2, 1], &[1.0, 2.0, 3.0], 3, Domain::NonNegative).unwrap();
        let assignment = Assignment { classes: 2, codes: &[0, 1, 1], weights: Some(&[2.0, 1.0, 1.0]) };
        let mut sums = [7.0; 6];
        rows.sums(&assignment, &mut sums).unwrap();
        assert_eq!(sums, [2.0, 0.0, 4.0, 0.0, 3.0, 0.0]);
        let mut out = vec![0.0; 6];
        rows.score(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0], 2, &mut out).unwrap();
        assert_eq!(out, [7.0, 70.0, 0.0, 0.0, 6.0, 60.0]);
    }

    #[test]
    fn a_broken_layout_is_refused() {
        assert_eq!(Rows::new(&[0, 5], &[0i32], &[1.0], 1, Domain::Real).err(), Some(Broken::Layout));
        let rows = Rows::new(&[0, 1], &[9i32], &[1.0], 3, Domain::Real).unwrap();
        assert_eq!(rows.score(&[0.0; 3], 1, &mut [0.0]), Err(Broken::Layout));
    }

    #[test]
    fn probabilities_sum_to_one() {
        for smoothing in [vec![1.0], vec![0.5, 1.0, 2.0], vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]] {
            let mut probabilities = [0.0; 6];
            log_probabilities(&[3.0, 0.0, 100.5, 0.0, 1.0, 7.0], &smoothing, 2, &mut probabilities);
            for class in 0..2 {
                let total: f64 = (0..3).map(|word| probabilities[word * 2 + class].exp()).sum();
                assert!((total - 1.0).abs() < 1e-14);
            }
        }
    }
}
