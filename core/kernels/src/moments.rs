//! Sums of a column and of a second function of it about an origin, per class: all a family that factorises by column needs.

use crate::by_column;
use crate::responsibilities::{Assignment, ClassWeights, origins};
use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Cell, Domain, Source, typed};
use crate::special::excess;
use crate::threads;
use std::ops::Range;

/// The second sum, beside Σw(x−o).
#[derive(Clone, Copy, PartialEq)]
pub enum Second {
    /// Σw(x−o)²
    Square,
    /// Σw(u − 1 − log u) with u = x/o: how far the logarithms lie from that of their mean
    Excess,
}

/// Σw, Σw(x−o) and a second sum over the cells that are there, each classes × columns, about the origins o.
pub struct Moments {
    pub origin: Vec<f64>,
    pub weight: Vec<f64>,
    pub sum: Vec<f64>,
    pub second: Vec<f64>,
}

pub struct Sums<'a> {
    pub weight: &'a mut [f64],
    pub sum: &'a mut [f64],
    pub second: &'a mut [f64],
}

/// Adds one row to the sums of its class. No branch on a missing cell: it adds zeros.
#[inline(always)]
fn add_row<T: Cell, const EXCESS: bool, const FUSED: bool>(line: &[T], origin: &[f64], w: f64, sums: &mut Sums) {
    let cells = sums.weight.iter_mut().zip(sums.sum.iter_mut()).zip(sums.second.iter_mut());
    for (((weight, sum), second), (x, o)) in cells.zip(line.iter().zip(origin)) {
        let t = x.number() - o;
        let there = !t.is_nan();
        let t = if there { t } else { 0.0 };
        let wt = w * t;
        *weight += if there { w } else { 0.0 };
        *sum += wt;
        if EXCESS {
            *second += if there { w * excess(x.number(), *o) } else { 0.0 };
        } else {
            *second = fma::<FUSED>(wt, t, *second);
        }
    }
}

/// Adds rows, given as one slice.
#[inline(always)]
pub fn add_lines<T: Cell, B: ClassWeights, const EXCESS: bool, const FUSED: bool>(
    lines: &[T],
    rows: impl Iterator<Item = usize>,
    class_weights: &B,
    width: usize,
    origin: &[f64],
    out: &mut Sums,
) {
    for (row, line) in rows.zip(lines.chunks_exact(width)) {
        class_weights.each(row, &(0..class_weights.classes()), |class, w| {
            let at = class * width..(class + 1) * width;
            let mut sums = Sums {
                weight: &mut out.weight[at.clone()],
                sum: &mut out.sum[at.clone()],
                second: &mut out.second[at.clone()],
            };
            add_row::<T, EXCESS, FUSED>(line, &origin[at], w, &mut sums);
        });
    }
}

/// Rows are summed in blocks of this many, and the blocks then: the error does not grow with the rows.
const BLOCK: usize = 4096;
/// What the sums of all blocks together may take, in numbers.
const ROOM: usize = 1 << 20;

/// The number of rows in a block: [`BLOCK`], or more where the sums of so many blocks would not fit.
pub fn block_rows(rows: usize, numbers: usize) -> usize {
    let blocks = (ROOM / numbers.max(1)).max(1);
    BLOCK.max(rows.div_ceil(blocks))
}

fn add_block(
    source: &Source,
    rows: Range<usize>,
    assignment: &Assignment,
    origin: &[f64],
    second: Second,
    out: &mut Sums,
) -> Result<(), BadCell> {
    let width = source.width();
    if source.domain == Domain::Real && source.columns.is_none() {
        let done = typed!(&source.matrix, view => {
            let part = view.slice(ndarray::s![rows.clone(), ..]);
            part.as_slice().map(|lines| dispatch!(add_lines::<_, Assignment, false>(lines, rows.clone(), assignment, width, origin, out)))
        });
        if done.is_some() {
            return Ok(());
        }
    }
    if source.domain == Domain::Real && add_columns(source, rows.clone(), assignment, origin, out) {
        return Ok(());
    }
    let step = (8192 / width).clamp(1, 256);
    let mut buffer = vec![0.0; step * width];
    // Rows that do not count are not even read: nothing in them can be wrong.
    let every = 0..assignment.classes;
    let counted: Vec<usize> = rows.filter(|&row| assignment.counts(row, &every)).collect();
    for rows in counted.chunks(step) {
        let rows = rows.iter().copied();
        source.load_rows(rows.clone(), width, &mut buffer)?;
        match second {
            Second::Square => {
                dispatch!(add_lines::<f64, Assignment, false>(&buffer, rows, assignment, width, origin, out));
            }
            Second::Excess => {
                dispatch!(add_lines::<f64, Assignment, true>(&buffer, rows, assignment, width, origin, out));
            }
        }
    }
    Ok(())
}

/// Adds the columns of a block where they lie, and says whether that could be done.
fn add_columns(source: &Source, rows: Range<usize>, assignment: &Assignment, origin: &[f64], out: &mut Sums) -> bool {
    typed!(&source.matrix, view => {
        let columns: Option<Vec<_>> = (0..source.width()).map(|j| view.column(source.column(j)).to_slice()).collect();
        columns.is_some_and(|columns| by_column::add_columns(&columns, rows, assignment, origin, out))
    })
}

/// `centred`: about a point in the middle of each class; else about zero, where sums of counts are exact.
pub fn collect(source: &Source, assignment: &Assignment, centred: bool, second: Second) -> Result<Moments, BadCell> {
    let size = assignment.classes * source.width();
    let origin = if centred { origins(source, assignment) } else { vec![0.0; size] };
    collect_blocks(source, origin, |rows, origin, out| add_block(source, rows, assignment, origin, second, out))
}

/// About origins that are given, classes × columns; `add` adds the rows of a block.
pub fn collect_blocks(
    source: &Source,
    origin: Vec<f64>,
    add: impl Fn(Range<usize>, &[f64], &mut Sums) -> Result<(), BadCell> + Sync + Send,
) -> Result<Moments, BadCell> {
    let (rows, width) = (source.rows(), source.width());
    let size = origin.len();
    if size == 0 {
        return Ok(Moments { origin, weight: vec![], sum: vec![], second: vec![] });
    }
    let block = block_rows(rows, 3 * size);
    let parts = threads::map(rows.div_ceil(block), rows * width, |i| {
        let mut part = vec![0.0; 3 * size];
        let (weight, rest) = part.split_at_mut(size);
        let (sum, other) = rest.split_at_mut(size);
        let rows = i * block..((i + 1) * block).min(rows);
        add(rows, &origin, &mut Sums { weight, sum, second: other })?;
        Ok(part)
    });
    let mut total = vec![0.0; 3 * size];
    for part in parts {
        for (total, part) in total.iter_mut().zip(part?) {
            *total += part;
        }
    }
    if total.iter().any(|x| !x.is_finite())
        && let Some(bad) = source.first_infinite()
    {
        return Err(bad);
    }
    let second = total.split_off(2 * size);
    let sum = total.split_off(size);
    Ok(Moments { origin, weight: total, sum, second })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::{Array2, array};

    #[test]
    fn sums_of_what_is_there() {
        let x = array![[1.0, 10.0], [3.0, f64::NAN], [5.0, 30.0]];
        let assignment = Assignment { classes: 2, codes: &[0, 0, 1], weights: Some(&[1.0, 2.0, 4.0]) };
        let m = collect(&source(&x), &assignment, true, Second::Square).unwrap();
        assert_eq!(m.origin, [2.0, 10.0, 5.0, 30.0]);
        assert_eq!(m.weight, [3.0, 1.0, 4.0, 4.0]);
        assert_eq!(m.sum, [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(m.second, [3.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn threads_do_not_change_bits() {
        let x = Array2::from_shape_fn((40_000, 7), |(i, j)| ((i * 31 + j * 17) % 1013) as f64 * 0.37 + 1e6);
        let codes: Vec<i32> = (0..40_000).map(|i| i % 3).collect();
        let assignment = Assignment { classes: 3, codes: &codes, weights: None };
        let mut results = vec![];
        for n in [1, 2, 5] {
            threads::set_threads(Some(n));
            let m = collect(&source(&x), &assignment, true, Second::Square).unwrap();
            results
                .push([m.origin, m.weight, m.sum, m.second].concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        }
        threads::set_threads(None);
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn columns_that_lie_in_memory_add_up_as_rows_do() {
        let n = 9000;
        let x = Array2::from_shape_fn((n, 5), |(i, j)| match (i * 7 + j * 3) % 11 {
            0 => f64::NAN,
            rest => (i % 97) as f64 * 0.31 + rest as f64 + 1e4,
        });
        let mut turned = Array2::zeros(ndarray::ShapeBuilder::f((n, 5)));
        turned.assign(&x);
        let codes: Vec<i32> = (0..n as i32).map(|i| i * i % 5 - 1).collect();
        let weights: Vec<f64> = (0..n).map(|i| (i % 4) as f64 * 0.5).collect();
        for weights in [None, Some(weights.as_slice())] {
            let assignment = Assignment { classes: 4, codes: &codes, weights };
            let [by_row, by_column] = [&x, &turned].map(|x| {
                let mut cells = source(x);
                cells.columns = Some(vec![4, 0, 2]);
                let m = collect(&cells, &assignment, true, Second::Square).unwrap();
                [m.origin, m.weight, m.sum, m.second].concat()
            });
            assert_eq!(by_row, by_column);
        }
    }

    #[test]
    fn an_infinite_cell_is_named() {
        let x = array![[1.0, 2.0], [3.0, f64::INFINITY]];
        let assignment = Assignment { classes: 1, codes: &[0, 0], weights: None };
        let bad = collect(&source(&x), &assignment, true, Second::Square).err().unwrap();
        assert_eq!((bad.row, bad.column), (1, 1));
    }
}
