//! Where the numbers come from: a matrix of any element type and memory order, read where it lies.

use crate::simd::dispatch;
use ndarray::ArrayView2;
use std::ops::Range;

/// An element type of a matrix.
pub trait Cell: Copy + Send + Sync + 'static {
    fn number(self) -> f64;
}

macro_rules! cells {
    ($($name:ident $kind:ty, $convert:expr;)*) => {
        $(impl Cell for $kind {
            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn number(self) -> f64 { $convert(self) }
        })*

        /// A borrowed matrix of any element type.
        pub enum Matrix<'a> { $($name(ArrayView2<'a, $kind>),)* }

        /// Runs `$body` with `$view` bound to the typed view of the matrix.
        macro_rules! typed {
            ($matrix:expr, $view:ident => $body:expr) => {
                match $matrix { $($crate::source::Matrix::$name($view) => $body,)* }
            };
        }
        pub(crate) use typed;
    };
}
cells! {
    F64 f64, |x| x;
    F32 f32, f64::from;
    I64 i64, |x| x as f64;
    I32 i32, f64::from;
    I16 i16, f64::from;
    I8 i8, f64::from;
    U64 u64, |x| x as f64;
    U32 u32, f64::from;
    U16 u16, f64::from;
    U8 u8, f64::from;
    Bool bool, |x| f64::from(u8::from(x));
}

/// What a column may hold, and what is made of it. A NaN is a missing cell in every domain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Domain {
    /// any finite number
    Real,
    /// a positive number, whose logarithm is taken
    Log,
    /// zero or more
    NonNegative,
    /// more than zero
    Positive,
    /// 0, 1, 2, …
    Count,
    /// 0 or 1
    Binary,
    /// any finite number, read as 1 if it is above a threshold, else as 0
    Above(f64),
}

impl Domain {
    #[inline(always)]
    pub fn holds(self, x: f64) -> bool {
        match self {
            Self::Real | Self::Above(_) => x.is_finite(),
            Self::Binary => x == 0.0 || x == 1.0,
            Self::Log | Self::Positive => x > 0.0 && x.is_finite(),
            Self::NonNegative => x >= 0.0 && x.is_finite(),
            Self::Count => x >= 0.0 && x.is_finite() && x.fract() == 0.0,
        }
    }

    /// What is made of a number that the domain holds.
    #[inline(always)]
    pub fn read(self, x: f64) -> f64 {
        match self {
            Self::Log => x.ln(),
            Self::Above(threshold) => f64::from(u8::from(x > threshold)),
            _ => x,
        }
    }
}

/// A cell outside its column's domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BadCell {
    pub row: usize,
    pub column: usize,
    pub value: f64,
}

/// Some columns of a matrix, read as one domain.
pub struct Source<'a> {
    pub matrix: Matrix<'a>,
    /// `None` for all columns in their order
    pub columns: Option<Vec<usize>>,
    pub domain: Domain,
}

impl Source<'_> {
    pub fn rows(&self) -> usize {
        typed!(&self.matrix, view => view.nrows())
    }

    pub fn width(&self) -> usize {
        self.columns.as_ref().map_or_else(|| typed!(&self.matrix, view => view.ncols()), Vec::len)
    }

    /// The column of the matrix behind column `j` of the source.
    pub fn column(&self, j: usize) -> usize {
        self.columns.as_ref().map_or(j, |columns| columns[j])
    }

    pub fn cell(&self, row: usize, j: usize) -> f64 {
        let x = typed!(&self.matrix, view => view[[row, self.column(j)]].number());
        if x.is_nan() { x } else { self.domain.read(x) }
    }

    /// Some rows, one after the other: as they lie in memory if they can be used so (infinite cells may be among them),
    /// or else read into `room`.
    pub fn rows_at<'a>(&'a self, rows: Range<usize>, room: &'a mut Vec<f64>) -> Result<&'a [f64], BadCell> {
        let width = self.width();
        if let (Matrix::F64(view), None) = (&self.matrix, &self.columns)
            && let Some(cells) = view.as_slice()
        {
            let cells = &cells[rows.start * width..rows.end * width];
            let least = || cells.iter().fold(0.0, |least: f64, &x| least.min(x));
            if self.domain == Domain::Real || (self.domain == Domain::NonNegative && least() == 0.0) {
                return Ok(cells);
            }
        }
        room.resize(rows.len() * width, 0.0);
        self.load_rows(rows, width, room)?;
        Ok(room)
    }

    /// Whether a cell of a row is missing.
    pub fn has_missing(&self, row: usize) -> Result<bool, BadCell> {
        (0..self.width()).try_fold(false, |any, j| Ok(any | self.checked_cell(row, j)?.is_nan()))
    }

    /// Reads rows into `out`, row after row, each `stride` long; the cells past the width are left alone.
    /// Says whether a cell was missing.
    pub fn load_rows(
        &self,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
        stride: usize,
        out: &mut [f64],
    ) -> Result<bool, BadCell> {
        let width = self.width();
        let mut doubt = 0.0;
        typed!(&self.matrix, view => {
            if let Some(columns) = self.columns_at(view, rows.clone()) {
                doubt = dispatch!(transpose::<_>(|j| columns[j], width, rows.len(), stride, out));
            } else {
                for (row, out) in rows.clone().zip(out.chunks_mut(stride)) {
                    let line = view.row(row);
                    match (line.as_slice(), &self.columns) {
                        (Some(line), None) => doubt += dispatch!(copy_line::<_>(line, &mut out[..width])),
                        (_, None) => doubt += copy(line.iter(), &mut out[..width]),
                        (_, Some(columns)) => {
                            doubt += copy(columns.iter().map(|&j| &line[j]), &mut out[..width]);
                        }
                    }
                }
            }
        });
        if let Some(missing) = self.settled(doubt, &mut out[..rows.len() * stride]) {
            return Ok(missing);
        }
        let mut missing = false;
        for (row, out) in rows.zip(out.chunks_mut(stride)) {
            for (j, x) in out[..width].iter_mut().enumerate() {
                missing |= self.finish(x, row, j)?;
            }
        }
        Ok(missing)
    }

    /// The cells of each column in some rows where they lie, if the rows are neighbours, and in memory too.
    fn columns_at<'a, T>(
        &self,
        view: &'a ArrayView2<'_, T>,
        mut rows: impl ExactSizeIterator<Item = usize>,
    ) -> Option<Vec<&'a [T]>> {
        if view.strides()[0] != 1 || rows.len() < SIDE || self.width() < 2 {
            return None;
        }
        let (first, count) = (rows.next()?, rows.len() + 1);
        if !rows.zip(first + 1..).all(|(row, next)| row == next) {
            return None;
        }
        (0..self.width())
            .map(|j| view.column(self.column(j)).to_slice().map(|cells| &cells[first..first + count]))
            .collect()
    }

    /// Reads the transpose of some rows into `out`: column after column, each `stride` long. Whether the cells are of
    /// the domain is not looked at; the result is 0 if all are finite and NaN otherwise.
    pub fn load_unchecked(&self, rows: Range<usize>, stride: usize, out: &mut [f64]) -> f64 {
        let width = self.width();
        let mut doubt = 0.0;
        typed!(&self.matrix, view => {
            let by_rows = view.strides()[1].unsigned_abs() <= view.strides()[0].unsigned_abs();
            if by_rows && self.columns.is_none() {
                let part = view.slice(ndarray::s![rows.clone(), ..]);
                if let Some(cells) = part.as_slice() {
                    let line = |r: usize| &cells[r * width..(r + 1) * width];
                    doubt += dispatch!(transpose::<_>(line, rows.len(), width, stride, out));
                } else {
                    for (r, line) in part.rows().into_iter().enumerate() {
                        for (j, x) in line.iter().enumerate() {
                            let x = x.number();
                            doubt += x * 0.0;
                            out[j * stride + r] = x;
                        }
                    }
                }
            } else {
                for (j, out) in out.chunks_mut(stride).take(width).enumerate() {
                    let column = view.column(self.column(j));
                    let (part, out) = (column.slice(ndarray::s![rows.clone()]), &mut out[..rows.len()]);
                    doubt += match part.as_slice() {
                        Some(cells) => dispatch!(copy_line::<_>(cells, out)),
                        None => copy(part.iter(), out),
                    };
                }
            }
        });
        doubt
    }

    /// Reads the transpose of some rows into `out`: column after column, each `stride` long. Says whether a cell was
    /// missing.
    pub fn load_columns(&self, rows: Range<usize>, stride: usize, out: &mut [f64]) -> Result<bool, BadCell> {
        let width = self.width();
        let doubt = self.load_unchecked(rows.clone(), stride, out);
        if let Some(missing) = self.settled(doubt, &mut out[..width * stride]) {
            return Ok(missing);
        }
        let mut missing = false;
        for (j, out) in out.chunks_mut(stride).take(width).enumerate() {
            for (row, x) in rows.clone().zip(out.iter_mut()) {
                missing |= self.finish(x, row, j)?;
            }
        }
        Ok(missing)
    }

    /// The same for rows by their numbers, which need not be neighbours.
    pub fn load_columns_of(&self, rows: &[usize], stride: usize, out: &mut [f64]) -> Result<bool, BadCell> {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        if last - first + 1 == rows.len() {
            return self.load_columns(first..last + 1, stride, out);
        }
        let width = self.width();
        let mut cells = vec![0.0; rows.len() * width];
        let missing = self.load_rows(rows.iter().copied(), width, &mut cells)?;
        let line = |r: usize| &cells[r * width..(r + 1) * width];
        dispatch!(transpose::<_>(line, rows.len(), width, stride, out));
        Ok(missing)
    }

    /// Takes all cells to their domain at once, and says whether any is missing; None if they must be looked at one by
    /// one. `doubt` is 0 if all are finite. No loop has a branch, so that each is vectorised; padding may hold anything
    /// finite.
    fn settled(&self, doubt: f64, cells: &mut [f64]) -> Option<bool> {
        let all = |holds: fn(f64) -> bool| cells.iter().fold(true, |all, &x| all & holds(x));
        if doubt != 0.0 {
            let missing_only = self.domain == Domain::Real && all(|x| x.abs() != f64::INFINITY);
            return missing_only.then_some(true);
        }
        let holds = match self.domain {
            Domain::Real => true,
            Domain::NonNegative => all(|x| x >= 0.0),
            Domain::Positive => all(|x| x > 0.0),
            Domain::Binary => all(|x| x == 0.0 || x == 1.0),
            Domain::Count => all(|x| x >= 0.0 && x.trunc() == x),
            Domain::Above(threshold) => {
                for x in cells.iter_mut() {
                    *x = f64::from(u8::from(*x > threshold));
                }
                true
            }
            Domain::Log => false,
        };
        holds.then_some(false)
    }

    /// A cell of its domain, or NaN if it is missing.
    pub fn checked_cell(&self, row: usize, j: usize) -> Result<f64, BadCell> {
        let mut x = typed!(&self.matrix, view => view[[row, self.column(j)]].number());
        self.finish(&mut x, row, j)?;
        Ok(x)
    }

    /// Checks one cell and takes it to its domain; true if it is missing.
    #[inline]
    fn finish(&self, x: &mut f64, row: usize, j: usize) -> Result<bool, BadCell> {
        if x.is_nan() {
            return Ok(true);
        }
        if !self.domain.holds(*x) {
            return Err(BadCell { row, column: self.column(j), value: *x });
        }
        *x = self.domain.read(*x);
        Ok(false)
    }

    /// The first infinite cell, if there is one.
    pub fn first_infinite(&self) -> Option<BadCell> {
        let (rows, width) = (self.rows(), self.width());
        (0..rows).flat_map(|row| (0..width).map(move |j| (row, j))).find_map(|(row, j)| {
            let value = self.cell(row, j);
            value.is_infinite().then(|| BadCell { row, column: self.column(j), value })
        })
    }
}

/// Lines that are turned together, in registers.
const SIDE: usize = 4;

/// Writes so many lines of `length` cells each as columns: the cells that stand at one position of all lines together, and
/// those of the next position `stride` further on. The result is 0 if all are finite and NaN otherwise.
#[inline(always)]
fn transpose<'a, T: Cell, const FUSED: bool>(
    line: impl Fn(usize) -> &'a [T],
    lines: usize,
    length: usize,
    stride: usize,
    out: &mut [f64],
) -> f64 {
    let mut doubts = [0.0; SIDE];
    let (together, whole) = (lines / SIDE * SIDE, length / SIDE * SIDE);
    for first in (0..together).step_by(SIDE) {
        let lines: [&[T]; SIDE] = std::array::from_fn(|i| &line(first + i)[..length]);
        let runs = lines.map(|line| line.as_chunks::<SIDE>().0);
        for (b, columns) in out.chunks_mut(SIDE * stride).take(whole / SIDE).enumerate() {
            let block: [[f64; SIDE]; SIDE] = runs.map(|run| run[b].map(T::number));
            for line in block {
                for (doubt, x) in doubts.iter_mut().zip(line) {
                    *doubt += x * 0.0;
                }
            }
            for (i, column) in columns.chunks_mut(stride).enumerate() {
                column[first..first + SIDE].copy_from_slice(&block.map(|line| line[i]));
            }
        }
        for position in whole..length {
            let run = lines.map(|line| line[position].number());
            for (doubt, x) in doubts.iter_mut().zip(run) {
                *doubt += x * 0.0;
            }
            out[position * stride + first..][..SIDE].copy_from_slice(&run);
        }
    }
    for i in together..lines {
        for (position, x) in line(i)[..length].iter().enumerate() {
            let x = x.number();
            doubts[0] += x * 0.0;
            out[position * stride + i] = x;
        }
    }
    doubts.iter().sum()
}

/// Copies numbers that lie together, several at a time; the result is 0 if all are finite and NaN otherwise.
#[inline(always)]
fn copy_line<T: Cell, const FUSED: bool>(from: &[T], to: &mut [f64]) -> f64 {
    const TOGETHER: usize = 8;
    let mut doubts = [0.0; TOGETHER];
    let ((runs, rest), (positions, last)) = (from.as_chunks::<TOGETHER>(), to.as_chunks_mut::<TOGETHER>());
    for (to, run) in positions.iter_mut().zip(runs) {
        *to = run.map(T::number);
        for (doubt, x) in doubts.iter_mut().zip(to) {
            *doubt += *x * 0.0;
        }
    }
    doubts.iter().sum::<f64>() + copy(rest.iter(), last)
}

/// Copies numbers; the result is 0 if all are finite and NaN otherwise.
#[inline(always)]
fn copy<'a, T: Cell>(from: impl Iterator<Item = &'a T>, to: &mut [f64]) -> f64 {
    let mut doubt = 0.0;
    for (to, x) in to.iter_mut().zip(from) {
        *to = x.number();
        doubt += *to * 0.0;
    }
    doubt
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ndarray::{Array2, array};

    pub fn source(x: &Array2<f64>) -> Source<'_> {
        Source { matrix: Matrix::F64(x.view()), columns: None, domain: Domain::Real }
    }

    #[test]
    fn any_order_reads_the_same() {
        let x = array![[1.0, 2.0, 3.0], [4.0, f64::NAN, 6.0]];
        let turned = x.t().as_standard_layout().to_owned();
        let views = [x.view(), turned.t()];
        for view in views {
            for columns in [None, Some(vec![0, 1, 2])] {
                let source = Source { matrix: Matrix::F64(view), columns, domain: Domain::Real };
                let (mut rows, mut columns) = ([0.0; 8], [0.0; 9]);
                assert!(source.load_rows(0..2, 4, &mut rows).unwrap());
                assert!(source.load_columns(0..2, 3, &mut columns).unwrap());
                for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)] {
                    assert_eq!(rows[i * 4 + j], x[[i, j]]);
                    assert_eq!(columns[j * 3 + i], x[[i, j]]);
                }
            }
        }
    }

    #[test]
    fn a_bad_cell_is_named() {
        let x = array![[1.0, 2.0], [3.0, -1.0]];
        let source = Source { domain: Domain::Log, columns: Some(vec![1]), ..source(&x) };
        let bad = source.load_rows(0..2, 1, &mut [0.0; 2]).unwrap_err();
        assert_eq!(bad, BadCell { row: 1, column: 1, value: -1.0 });
    }
}
