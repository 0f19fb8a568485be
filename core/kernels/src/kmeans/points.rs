//! Rows as k-means reads them: less an origin, in panels to be scored, or one by one in float64 where digits count.

use super::centres::Centres;
use super::panel::{Panel, norms_of, turned};
use super::real::Real;
use super::tile::{Least, ROWS, least};
use crate::source::Cell;
use ndarray::ArrayView2;

pub trait Points: Sync {
    type Number: Real;
    fn rows(&self) -> usize;
    fn columns(&self) -> usize;
    /// Whether cells may be missing.
    fn has_missing(&self) -> bool;
    /// Numbers that a row is multiplied with for each centre, at most: how far rounding errors may add up.
    fn features(&self) -> usize;
    fn new_panel(&self) -> Panel<Self::Number>;
    /// Fills a panel with rows, up to the number that it holds; the last is repeated where there are fewer.
    fn load(&self, rows: &[u32], panel: &mut Panel<Self::Number>);
    /// Asks for a row that will be loaded soon.
    fn prefetch(&self, row: usize);
    /// Scores the panel by a group of centres.
    fn score(
        &self,
        panel: &Panel<Self::Number>,
        centres: &Centres<Self::Number>,
        group: usize,
        out: &mut Least<Self::Number>,
    );
    /// The squared distance of a row from a centre over the cells that are there. Labels are defined by it: it is
    /// the same on every machine, and for every way to find which is least. `norm`: the square of the centre's.
    fn distance(&self, row: usize, centre: &[f64], norm: f64) -> f64;
    /// Adds a row to a sum, to the weights of its columns (or the one weight if no cell can be missing), and its cells
    /// less the origin to sums of squares.
    fn add(&self, row: usize, weight: f64, sum: &mut [f64], weights: &mut [f64], squares: &mut Squares);
    /// Writes a row as a centre: missing cells are 0, at the origin.
    fn as_centre(&self, row: usize, out: &mut [f64]);
    /// The projection of a row on a direction. Equal rows have the same, others hardly ever.
    fn projection(&self, row: usize, direction: &[f64]) -> f64;
    /// Whether two rows have the same cells.
    fn equal(&self, one: usize, two: usize) -> bool;
}

/// A matrix in memory, of any order.
pub struct Dense<'a, A, T> {
    view: ArrayView2<'a, A>,
    origin: &'a [f64],
    narrow_origin: Vec<T>,
    missing: bool,
}

/// Columns whose squares are summed side by side: a fixed order that any machine can follow with vectors.
const SIDE: usize = 8;
pub type Squares = [f64; SIDE];

#[inline(always)]
fn squares(pairs: impl Fn(usize) -> f64, columns: usize) -> f64 {
    let mut sums = [0.0; SIDE];
    let whole = columns / SIDE * SIDE;
    for j in (0..whole).step_by(SIDE) {
        for (s, sum) in sums.iter_mut().enumerate() {
            let t = pairs(j + s);
            *sum += t * t;
        }
    }
    for j in whole..columns {
        let t = pairs(j);
        sums[j - whole] += t * t;
    }
    sums.iter().sum()
}

/// Adds a row less an origin, times a weight, to sums, and to sums of squares.
#[inline(always)]
fn add_line<A: Cell>(line: &[A], origin: &[f64], weight: f64, sums: &mut [f64], squares: &mut Squares) {
    let (cells, last_cells) = line.as_chunks::<SIDE>();
    let (origins, last_origins) = origin.as_chunks::<SIDE>();
    let (lines, last_sums) = sums.as_chunks_mut::<SIDE>();
    let mut all = *squares;
    for ((sums, cells), origins) in lines.iter_mut().zip(cells).zip(origins) {
        // Nothing is written before all is read: one instruction then serves several.
        let t: [f64; SIDE] = std::array::from_fn(|s| cells[s].number() - origins[s]);
        let weighted: [f64; SIDE] = std::array::from_fn(|s| weight * t[s]);
        *sums = std::array::from_fn(|s| sums[s] + weighted[s]);
        all = std::array::from_fn(|s| all[s] + weighted[s] * t[s]);
    }
    *squares = all;
    for (((sum, cell), origin), square) in last_sums.iter_mut().zip(last_cells).zip(last_origins).zip(squares) {
        let t = cell.number() - origin;
        *sum += weight * t;
        *square += weight * t * t;
    }
}

#[inline(always)]
fn apart_plainly<A: Cell>(line: &[A], origin: &[f64], centre: &[f64]) -> f64 {
    let columns = line.len();
    let (origin, centre) = (&origin[..columns], &centre[..columns]);
    squares(|j| line[j].number() - origin[j] - centre[j], columns)
}

/// # Safety
/// The machine must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn apart_fast<A: Cell>(line: &[A], origin: &[f64], centre: &[f64]) -> f64 {
    apart_plainly(line, origin, centre)
}

/// The squared distance of a complete row from a centre: the same bits with any instructions, nothing is fused.
fn apart<A: Cell>(line: &[A], origin: &[f64], centre: &[f64]) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // Safe: the line above asked the machine.
        return unsafe { apart_fast(line, origin, centre) };
    }
    apart_plainly(line, origin, centre)
}

impl<'a, A: Cell, T: Real> Dense<'a, A, T> {
    pub fn new(view: ArrayView2<'a, A>, origin: &'a [f64], missing: bool) -> Self {
        Self { view, origin, narrow_origin: origin.iter().map(|&o| T::of(o)).collect(), missing }
    }

    #[inline(always)]
    fn pointer(&self, row: usize) -> *const A {
        assert!(row < self.view.nrows());
        self.view.as_ptr().wrapping_offset(row as isize * self.view.strides()[0])
    }

    fn same_kind() -> bool {
        std::any::TypeId::of::<A>() == std::any::TypeId::of::<T>()
    }
}

impl<A: Cell, T: Real> Points for Dense<'_, A, T> {
    type Number = T;

    fn rows(&self) -> usize {
        self.view.nrows()
    }

    fn columns(&self) -> usize {
        self.view.ncols()
    }

    fn has_missing(&self) -> bool {
        self.missing
    }

    fn features(&self) -> usize {
        self.columns() * if self.missing { 2 } else { 1 }
    }

    fn new_panel(&self) -> Panel<T> {
        let direct = Self::same_kind() && self.view.strides()[1] == 1;
        Panel::new(self.features(), if direct { 0 } else { ROWS * self.columns() })
    }

    #[inline(always)]
    fn load(&self, rows: &[u32], panel: &mut Panel<T>) {
        let columns = self.columns();
        let last = rows.len() - 1;
        let mut from = [std::ptr::null::<T>(); ROWS];
        if panel.room.is_empty() {
            for (r, from) in from.iter_mut().enumerate() {
                *from = self.pointer(rows[r.min(last)] as usize).cast();
            }
        } else {
            // By columns within the panel: rows of Fortran order that lie side by side share what is read.
            for j in 0..columns {
                let column = self.view.column(j);
                for (r, &row) in rows.iter().enumerate() {
                    panel.room[r * columns + j] = T::of(column[row as usize].number());
                }
            }
            for (r, from) in from.iter_mut().enumerate() {
                *from = panel.room[r.min(last) * columns..].as_ptr();
            }
        }
        // Safe: each pointer is to a row of T, one after the other: of the matrix if it holds such (`new_panel`), or of
        // the room.
        panel.norms = unsafe { turned(&from, &self.narrow_origin, panel.features_mut()) };
        panel.look_ahead(&from, columns);
        if self.missing {
            let (cells, there) = panel.features_mut().split_at_mut(columns * ROWS);
            for (cell, there) in cells.iter_mut().zip(there) {
                let is_there = !cell.wide().is_nan();
                *there = if is_there { T::of(1.0) } else { T::ZERO };
                *cell = if is_there { *cell } else { T::ZERO };
            }
            panel.norms = norms_of(cells);
        }
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        const LINE: usize = 64;
        if self.view.strides()[1] == 1 {
            let first = self.view.as_ptr().wrapping_offset(row as isize * self.view.strides()[0]).cast::<u8>();
            let mut at = 0;
            // The machine itself foresees what follows.
            while at < (self.view.ncols() * size_of::<A>()).min(8 * LINE) {
                crate::simd::prefetch_later(first.wrapping_add(at));
                at += LINE;
            }
        }
    }

    #[inline(always)]
    fn score(&self, panel: &Panel<T>, centres: &Centres<T>, group: usize, out: &mut Least<T>) {
        least(panel.features(), centres.packed(group), panel.ahead, out);
    }

    fn distance(&self, row: usize, centre: &[f64], _norm: f64) -> f64 {
        let (line, origin) = (self.view.row(row), self.origin);
        match (line.as_slice(), self.missing) {
            (Some(line), false) => apart(line, origin, centre),
            _ => squares(
                |j| {
                    let t = line[j].number() - origin[j] - centre[j];
                    if t.is_nan() { 0.0 } else { t }
                },
                centre.len(),
            ),
        }
    }

    #[inline(always)]
    fn add(&self, row: usize, weight: f64, sum: &mut [f64], weights: &mut [f64], squares: &mut Squares) {
        let line = self.view.row(row);
        if self.missing {
            for (j, (sum, weights)) in sum.iter_mut().zip(weights).enumerate() {
                let t = line[j].number() - self.origin[j];
                if !t.is_nan() {
                    *sum += weight * t;
                    *weights += weight;
                }
            }
            return;
        }
        weights[0] += weight;
        match line.as_slice() {
            Some(line) => add_line(line, self.origin, weight, sum, squares),
            None => add_line(&line.to_vec(), self.origin, weight, sum, squares),
        }
    }

    fn as_centre(&self, row: usize, out: &mut [f64]) {
        let line = self.view.row(row);
        for (j, out) in out.iter_mut().enumerate() {
            let t = line[j].number() - self.origin[j];
            *out = if t.is_nan() { 0.0 } else { t };
        }
    }

    fn projection(&self, row: usize, direction: &[f64]) -> f64 {
        // A missing cell is not to be taken for any number that is likely to occur.
        const MISSING: f64 = 0.618_033_988_749_894_9;
        let along = |(x, d): (&A, &f64)| d * if x.number().is_nan() { MISSING } else { x.number() };
        self.view.row(row).iter().zip(direction).map(along).sum()
    }

    fn equal(&self, one: usize, two: usize) -> bool {
        let same = |(a, b): (&A, &A)| a.number() == b.number() || (a.number().is_nan() && b.number().is_nan());
        self.view.row(one).iter().zip(self.view.row(two)).all(same)
    }
}
