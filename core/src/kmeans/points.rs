//! Rows as k-means reads them: less an origin, in panels to be scored, or one by one in float64 where digits count.

use super::centres::Centres;
use super::real::Real;
use super::tile::{Least, least};
use super::vector::Vector;
use crate::source::Cell;
use ndarray::ArrayView2;

/// Some rows side by side, and their squared norms.
pub struct Panel<T> {
    /// numbers in which missing cells are 0; of rows with holes followed by 1 where a cell is there; features × rows
    pub features: Vec<T>,
    pub norms: Vec<T>,
    rows: Vec<u32>,
    room: Vec<T>,
}

pub trait Points: Sync {
    type Number: Real;
    fn rows(&self) -> usize;
    fn columns(&self) -> usize;
    /// Whether cells may be missing.
    fn holes(&self) -> bool;
    /// Numbers that a row is multiplied with for each centre, at most: how far rounding errors may add up.
    fn features(&self) -> usize;
    fn new_panel(&self) -> Panel<Self::Number>;
    /// Fills a panel with rows, up to the number that it holds; the last is repeated where there are fewer.
    fn load(&self, rows: &[u32], panel: &mut Panel<Self::Number>);
    /// Scores the panel by a group of centres.
    fn score(
        &self,
        panel: &Panel<Self::Number>,
        centres: &Centres<Self::Number>,
        group: usize,
        out: &mut Least<Self::Number>,
    );
    /// The squared distance of a row from a centre over the cells that are there. Labels are defined by it: it is
    /// the same on every machine, and for every way to find which is least.
    fn distance(&self, row: usize, centre: &[f64]) -> f64;
    /// Adds a row to a sum, and to the weights of its columns (or the one weight if no cell can be missing).
    fn add(&self, row: usize, weight: f64, sum: &mut [f64], weights: &mut [f64]);
    /// Writes a row as a centre: missing cells are 0, at the origin.
    fn as_centre(&self, row: usize, out: &mut [f64]);
}

/// A matrix in memory, of any order.
pub struct Dense<'a, A, T> {
    view: ArrayView2<'a, A>,
    origin: &'a [f64],
    narrow_origin: Vec<T>,
    holes: bool,
}

/// Columns whose squares are summed side by side: a fixed order that any machine can follow with vectors.
const SIDE: usize = 8;

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

impl<'a, A: Cell, T: Real> Dense<'a, A, T> {
    pub fn new(view: ArrayView2<'a, A>, origin: &'a [f64], holes: bool) -> Self {
        Self { view, origin, narrow_origin: origin.iter().map(|&o| T::of(o)).collect(), holes }
    }

    fn same_kind() -> bool {
        std::any::TypeId::of::<A>() == std::any::TypeId::of::<T>()
    }
}

/// # Safety
/// The machine must have the instructions of `V`; every row must be good for the columns.
#[inline(always)]
unsafe fn turn<V: Vector>(rows: &[*const V::Number], origin: &[V::Number], out: &mut [V::Number]) {
    let (columns, panel) = (origin.len(), 2 * V::LANES);
    assert!(rows.len() == panel && out.len() >= columns * panel);
    let whole = columns / V::LANES * V::LANES;
    // Safe: the lengths are checked above.
    unsafe {
        for j in (0..whole).step_by(V::LANES) {
            for half in 0..2 {
                let mut from = [std::ptr::null(); 16];
                for r in 0..V::LANES {
                    from[r] = rows[half * V::LANES + r].add(j);
                }
                let to = out.as_mut_ptr().add(j * panel + half * V::LANES);
                V::transpose(&from[..V::LANES], origin.as_ptr().add(j), to, panel);
            }
        }
        for j in whole..columns {
            for (r, row) in rows.iter().enumerate() {
                out[j * panel + r] = *row.add(j) - origin[j];
            }
        }
    }
}

/// # Safety
/// The machine must have AVX2; every row must be good for the columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn turn_fast<T: Real>(rows: &[*const T], origin: &[T], out: &mut [T], norms: &mut [T]) {
    // Safe: the caller's promise.
    unsafe { turn::<T::Fast>(rows, origin, out) }
    norms_of(&out[..origin.len() * T::PANEL], norms);
}

#[inline(always)]
fn norms_of<T: Real>(features: &[T], norms: &mut [T]) {
    norms.fill(T::ZERO);
    for column in features.chunks_exact(T::PANEL) {
        for (norm, &x) in norms.iter_mut().zip(column) {
            *norm = *norm + x * x;
        }
    }
}

/// # Safety
/// Every row must be good for the columns.
unsafe fn turned<T: Real>(rows: &[*const T], origin: &[T], out: &mut [T], norms: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // Safe: the line above asked the machine, and the caller's promise.
        return unsafe { turn_fast(rows, origin, out, norms) };
    }
    // Safe: these need no special instructions, and the caller's promise.
    unsafe { turn::<T::Plain>(rows, origin, out) }
    norms_of(&out[..origin.len() * T::PANEL], norms);
}

impl<A: Cell, T: Real> Points for Dense<'_, A, T> {
    type Number = T;

    fn rows(&self) -> usize {
        self.view.nrows()
    }

    fn columns(&self) -> usize {
        self.view.ncols()
    }

    fn holes(&self) -> bool {
        self.holes
    }

    fn features(&self) -> usize {
        self.columns() * if self.holes { 2 } else { 1 }
    }

    fn new_panel(&self) -> Panel<T> {
        let features = vec![T::ZERO; self.features() * T::PANEL];
        let direct = Self::same_kind() && self.view.strides()[1] == 1;
        let room = vec![T::ZERO; if direct { 0 } else { T::PANEL * self.columns() }];
        Panel { features, norms: vec![T::ZERO; T::PANEL], rows: vec![], room }
    }

    fn load(&self, rows: &[u32], panel: &mut Panel<T>) {
        let columns = self.columns();
        let last = rows.len() - 1;
        let mut from = [std::ptr::null::<T>(); 16];
        let from = &mut from[..T::PANEL];
        if panel.room.is_empty() {
            for (r, from) in from.iter_mut().enumerate() {
                *from = self.view.row(rows[r.min(last)] as usize).as_ptr().cast();
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
        unsafe { turned(from, &self.narrow_origin, &mut panel.features, &mut panel.norms) };
        if self.holes {
            let (cells, there) = panel.features.split_at_mut(columns * T::PANEL);
            for (cell, there) in cells.iter_mut().zip(there) {
                let is_there = *cell == *cell;
                *there = if is_there { T::of(1.0) } else { T::ZERO };
                *cell = if is_there { *cell } else { T::ZERO };
            }
            norms_of(cells, &mut panel.norms);
        }
    }

    #[inline]
    fn score(&self, panel: &Panel<T>, centres: &Centres<T>, group: usize, out: &mut Least<T>) {
        least(&panel.features, centres.packed(group), out);
    }

    fn distance(&self, row: usize, centre: &[f64]) -> f64 {
        let columns = self.columns();
        let (line, origin) = (self.view.row(row), self.origin);
        let apart = |j: usize, x: f64| {
            let t = x - origin[j] - centre[j];
            if t.is_nan() { 0.0 } else { t }
        };
        if let Some(line) = line.as_slice() {
            let (line, origin, centre) = (&line[..columns], &origin[..columns], &centre[..columns]);
            if self.holes {
                squares(|j| apart(j, line[j].number()), columns)
            } else {
                squares(|j| line[j].number() - origin[j] - centre[j], columns)
            }
        } else {
            squares(|j| apart(j, line[j].number()), columns)
        }
    }

    fn add(&self, row: usize, weight: f64, sum: &mut [f64], weights: &mut [f64]) {
        let line = self.view.row(row);
        if self.holes {
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
        if let Some(line) = line.as_slice() {
            for ((sum, x), o) in sum.iter_mut().zip(line).zip(self.origin) {
                *sum += weight * (x.number() - o);
            }
        } else {
            for ((sum, x), o) in sum.iter_mut().zip(line).zip(self.origin) {
                *sum += weight * (x.number() - o);
            }
        }
    }

    fn as_centre(&self, row: usize, out: &mut [f64]) {
        let line = self.view.row(row);
        for (j, out) in out.iter_mut().enumerate() {
            let t = line[j].number() - self.origin[j];
            *out = if t.is_nan() { 0.0 } else { t };
        }
    }
}
