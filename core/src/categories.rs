//! Columns of categories, written as numbers: counted by class, and scored by looking up.

use crate::source::{Assignment, BadCell, Source};
use crate::threads;
use rustc_hash::FxHashMap;

/// Values below this are found by indexing instead of hashing.
const SMALL: usize = 256;

/// What was seen in one column: every value and, value after value, its weight in each class.
pub struct Column {
    pub values: Vec<f64>,
    pub counts: Vec<f64>,
}

/// Gives each distinct value a place, in the order of appearance.
struct Places {
    small: [u32; SMALL],
    other: FxHashMap<u64, u32>,
    values: Vec<f64>,
}

impl Places {
    fn new() -> Self {
        Self { small: [u32::MAX; SMALL], other: FxHashMap::default(), values: vec![] }
    }

    #[inline]
    fn of(&mut self, x: f64) -> usize {
        let x = x + 0.0; // −0 is 0
        let next = self.values.len() as u32;
        let index = x as usize;
        let place = if index < SMALL && index as f64 == x {
            if self.small[index] == u32::MAX {
                self.small[index] = next;
            }
            self.small[index]
        } else {
            *self.other.entry(x.to_bits()).or_insert(next)
        };
        if place == next {
            self.values.push(x);
        }
        place as usize
    }
}

const BLOCK: usize = 1 << 15;

/// Counts the values of one column in rows `rows`.
fn count_block(
    source: &Source,
    j: usize,
    rows: std::ops::Range<usize>,
    assignment: &Assignment,
) -> Result<Column, BadCell> {
    let k = assignment.classes;
    let mut places = Places::new();
    let mut counts = vec![];
    for row in rows {
        let Some((class, weight)) = assignment.of(row) else { continue };
        let x = source.cell(row, j);
        if x.is_nan() {
            continue;
        }
        if x.is_infinite() {
            return Err(BadCell { row, column: source.column(j), value: x });
        }
        let place = places.of(x);
        if counts.len() < (place + 1) * k {
            counts.resize((place + 1) * k, 0.0);
        }
        counts[place * k + class] += weight;
    }
    Ok(Column { values: places.values, counts })
}

/// Adds blocks of one column, and sorts its values.
fn merge(blocks: impl Iterator<Item = Column>, k: usize) -> Column {
    let mut places = Places::new();
    let mut counts: Vec<f64> = vec![];
    for block in blocks {
        for (value, block) in block.values.iter().zip(block.counts.chunks_exact(k)) {
            let place = places.of(*value);
            if counts.len() < (place + 1) * k {
                counts.resize((place + 1) * k, 0.0);
            }
            for (count, more) in counts[place * k..].iter_mut().zip(block) {
                *count += more;
            }
        }
    }
    let mut order: Vec<usize> = (0..places.values.len()).collect();
    order.sort_by(|&a, &b| places.values[a].total_cmp(&places.values[b]));
    Column {
        values: order.iter().map(|&i| places.values[i]).collect(),
        counts: order.iter().flat_map(|&i| counts[i * k..(i + 1) * k].iter().copied()).collect(),
    }
}

/// Counts every column's values by class; missing cells count nowhere.
pub fn count(source: &Source, assignment: &Assignment) -> Result<Vec<Column>, BadCell> {
    let (rows, width, k) = (source.rows(), source.width(), assignment.classes);
    let blocks = rows.div_ceil(BLOCK);
    let parts = threads::map(width * blocks, rows * width * 4, |i| {
        let (j, block) = (i / blocks, i % blocks);
        count_block(source, j, block * BLOCK..((block + 1) * BLOCK).min(rows), assignment)
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut parts = parts.into_iter();
    Ok((0..width).map(|_| merge(parts.by_ref().take(blocks), k)).collect())
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
    /// The place of a value among column j's categories; `None` for a missing or an unknown one.
    #[inline]
    fn place(&self, j: usize, x: f64) -> Option<usize> {
        let (start, end) = (self.starts[j] as usize, self.starts[j + 1] as usize);
        let values = &self.values[start..end];
        // Codes that count up without gaps, the common case, need no search.
        let guess = (x - values.first()?) as usize;
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
        for (r, out) in out.chunks_exact_mut(k).enumerate() {
            let row = piece * PIECE + r;
            for j in 0..width {
                let x = source.cell(row, j);
                if x.is_infinite() {
                    return Err(BadCell { row, column: source.column(j), value: x });
                }
                if let Some(place) = table.place(j, x) {
                    for (out, score) in out.iter_mut().zip(&table.scores[place * k..(place + 1) * k]) {
                        *out += score;
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
