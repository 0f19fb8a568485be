//! Columns of categories, written as numbers: counted by class, and scored by looking up.

use crate::responsibilities::ClassWeights;
use crate::source::{BadCell, Source};
use crate::threads;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Values below this are found by indexing instead of hashing.
const SMALL: i32 = 256;

/// What was seen in one column: every value and, value after value, its weight in each class.
pub struct Column {
    pub values: Vec<f64>,
    pub counts: Vec<f64>,
}

/// Rows a thread counts at a time, and rows loaded at a time.
const BLOCK: usize = 1 << 15;
const TILE: usize = 64;

/// A value as an index, if it is a small number: 0, 1, 2, …
#[inline(always)]
fn small(x: f64) -> Option<usize> {
    let index = x as i32;
    (f64::from(index) == x && (0..SMALL).contains(&index)).then_some(index as usize)
}

/// The weights of one column's values, by class.
#[derive(Default)]
struct Counter {
    /// of 0, 1, 2, …, as far as they were seen
    small: Vec<f64>,
    /// of other values: the position of each, and the weights position after position
    positions: FxHashMap<u64, usize>,
    other: Vec<f64>,
}

impl Counter {
    /// The weights of a small number, one for each of k classes.
    #[inline(always)]
    fn of_small(&mut self, index: usize, k: usize) -> &mut [f64] {
        let at = index * k;
        if at >= self.small.len() {
            self.small.resize(at + k, 0.0);
        }
        &mut self.small[at..at + k]
    }

    /// The weights of another value.
    fn of_other(&mut self, x: f64, k: usize) -> &mut [f64] {
        let next = self.positions.len();
        let at = k * *self.positions.entry(x.to_bits()).or_insert(next);
        if at >= self.other.len() {
            self.other.resize(at + k, 0.0);
        }
        &mut self.other[at..at + k]
    }

    /// Every value that was seen, and its weights.
    fn values(&self, k: usize) -> impl Iterator<Item = (f64, &[f64])> {
        let small = self.small.chunks_exact(k).enumerate().map(|(i, weights)| (i as f64, weights));
        let other = self.positions.iter().map(move |(&bits, &at)| (f64::from_bits(bits), &self.other[at * k..][..k]));
        small.filter(|(_, weights)| weights.iter().any(|&weight| weight != 0.0)).chain(other)
    }
}

/// Counts the values of every column in some rows.
fn count_block<B: ClassWeights>(
    source: &Source,
    rows: Range<usize>,
    class_weights: &B,
) -> Result<Vec<Counter>, BadCell> {
    let (width, k) = (source.width(), class_weights.classes());
    let every = 0..k;
    let mut counters: Vec<Counter> = (0..width).map(|_| Counter::default()).collect();
    let mut tile = vec![0.0; width * TILE];
    let mut counted = Vec::with_capacity(TILE);
    for first in rows.clone().step_by(TILE) {
        let rows = first..(first + TILE).min(rows.end);
        counted.clear();
        counted.extend(rows.clone().filter(|&row| class_weights.counts(row, &every)));
        source.load_unchecked(rows, TILE, &mut tile);
        for (j, (counter, tile)) in counters.iter_mut().zip(tile.chunks_exact(TILE)).enumerate() {
            for &row in &counted {
                let x = tile[row - first];
                // Small numbers are of every domain of categories: only others are looked at.
                let weights = match small(x) {
                    Some(index) => counter.of_small(index, k),
                    None if x.is_nan() => continue,
                    None if source.domain.holds(x) => counter.of_other(x, k),
                    None => return Err(BadCell { row, column: source.column(j), value: x }),
                };
                class_weights.each(row, &every, |class, weight| weights[class] += weight);
            }
        }
    }
    Ok(counters)
}

/// Adds blocks of one column, and sorts its values.
fn merge<'a>(blocks: impl Iterator<Item = &'a Counter>, k: usize) -> Column {
    let mut sum = Counter::default();
    for (value, weights) in blocks.flat_map(|block| block.values(k)) {
        let sums = match small(value) {
            Some(index) => sum.of_small(index, k),
            None => sum.of_other(value, k),
        };
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += weight;
        }
    }
    let mut seen: Vec<_> = sum.values(k).collect();
    seen.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Column {
        values: seen.iter().map(|(value, _)| *value).collect(),
        counts: seen.iter().flat_map(|(_, weights)| weights.iter().copied()).collect(),
    }
}

/// Counts every column's values by class; missing cells count nowhere.
pub fn count<B: ClassWeights>(source: &Source, class_weights: &B) -> Result<Vec<Column>, BadCell> {
    let (rows, width, k) = (source.rows(), source.width(), class_weights.classes());
    let blocks = threads::map(rows.div_ceil(BLOCK), rows * width * 4, |block| {
        count_block(source, block * BLOCK..((block + 1) * BLOCK).min(rows), class_weights)
    });
    let blocks = blocks.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((0..width).map(|j| merge(blocks.iter().map(|block| &block[j]), k)).collect())
}

/// The categories of every column, sorted, one column after the other; column j's start at `starts[j]`.
pub struct Table<'a> {
    pub values: &'a [f64],
    pub starts: &'a [i64],
    /// categories × classes: log p(category | class)
    pub scores: &'a [f64],
    pub classes: usize,
}

impl Table<'_> {
    /// The position of a value among column j's categories; `None` for a missing or an unknown one.
    #[inline]
    fn position(&self, j: usize, x: f64) -> Option<usize> {
        let (start, end) = (self.starts[j] as usize, self.starts[j + 1] as usize);
        let values = &self.values[start..end];
        // Codes that count up without gaps, the common case, need no search.
        let guess = (x - values.first()?) as i32 as usize;
        if values.get(guess) == Some(&x) {
            return Some(start + guess);
        }
        values
            .binary_search_by(|value| value.partial_cmp(&x).unwrap_or(std::cmp::Ordering::Less))
            .ok()
            .map(|i| start + i)
    }
}

const PIECE: usize = 1024;

/// Adds the log probability of every known category to `out` (rows × classes).
pub fn score(source: &Source, table: &Table, out: &mut [f64]) -> Result<(), BadCell> {
    let (rows, width, k) = (source.rows(), source.width(), table.classes);
    threads::for_each(out, PIECE * k, rows * width * k, |piece, out| {
        let mut tile = vec![0.0; width * TILE];
        for (t, out) in out.chunks_mut(TILE * k).enumerate() {
            let first = piece * PIECE + t * TILE;
            source.load_columns(first..first + out.len() / k, TILE, &mut tile)?;
            for (j, column) in tile.chunks_exact(TILE).enumerate() {
                for (out, &x) in out.chunks_exact_mut(k).zip(column) {
                    if let Some(position) = table.position(j, x) {
                        for (out, score) in out.iter_mut().zip(&table.scores[position * k..(position + 1) * k]) {
                            *out += score;
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responsibilities::{Assignment, Responsibilities};
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn counts_and_looks_up() {
        let x = array![[0.0, 500.5], [2.0, -3.0], [0.0, 500.5], [f64::NAN, 1e300]];
        let assignment = Assignment { classes: 2, codes: &[0, 1, 1, 0], weights: Some(&[1.0, 1.0, 2.0, 1.0]) };
        let columns = count(&source(&x), &assignment).unwrap();
        assert_eq!(columns[0].values, [0.0, 2.0]);
        assert_eq!(columns[0].counts, [1.0, 2.0, 0.0, 1.0]);
        assert_eq!(columns[1].values, [-3.0, 500.5, 1e300]);
        assert_eq!(columns[1].counts, [0.0, 1.0, 1.0, 2.0, 1.0, 0.0]);
        let values = [0.5, 0.5, 1.0, 0.0, 0.25, 0.75, 0.0, 1.0];
        let rows = Responsibilities { classes: 2, values: &values, weights: Some(&[2.0, 1.0, 4.0, 0.0]) };
        let columns = count(&source(&x), &rows).unwrap();
        assert_eq!(columns[0].counts, [2.0, 4.0, 1.0, 0.0]);
        assert_eq!(columns[1].values, [-3.0, 500.5]);
        let table = Table {
            values: &[0.0, 2.0, -3.0, 500.5],
            starts: &[0, 2, 4],
            scores: &[1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0],
            classes: 2,
        };
        let mut out = vec![0.0; 8];
        score(&source(&x), &table, &mut out).unwrap();
        assert_eq!(out, [31.0, 42.0, 13.0, 24.0, 31.0, 42.0, 0.0, 0.0]);
    }
}
