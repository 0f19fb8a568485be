//! Some rows side by side, column by column, so that one instruction serves several of them.

use super::real::Real;
use super::tile::{ROWS, Side};
use super::vector::Transpose;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Some rows, and their squared norms.
pub struct Panel<T> {
    memory: Vec<T>,
    /// where the features are in the memory: no vector is to lie in two lines of the cache
    first: usize,
    length: usize,
    pub norms: Side<T>,
    /// where the rows lie that are likely to come next: to be asked for while these are scored
    pub ahead: *const T,
    /// the numbers of the rows, where they are read again
    pub rows: Side<u32>,
    /// for rows that do not lie as they are read
    pub room: Vec<T>,
}

impl<T: Real> Panel<T> {
    pub fn new(features: usize, room: usize) -> Self {
        let length = features * ROWS;
        let memory = vec![T::ZERO; length + LINE];
        let first = memory.as_ptr().align_offset(LINE).min(LINE);
        let ahead = memory.as_ptr();
        Self { memory, first, length, norms: [T::ZERO; ROWS], ahead, rows: [0; ROWS], room: vec![T::ZERO; room] }
    }

    /// Numbers in which missing cells are 0; of rows with missing cells followed by 1 where a cell is there; features × rows.
    #[inline(always)]
    pub fn features(&self) -> &[T] {
        &self.memory[self.first..self.first + self.length]
    }

    /// Looks where the rows of the panel were: if one after the other, the next ones are likely to follow them.
    #[inline(always)]
    pub fn look_ahead(&mut self, rows: &Side<*const T>, columns: usize) {
        let step = (columns * size_of::<T>()) as isize;
        let apart = |row: usize| rows[row] as isize - rows[0] as isize;
        let in_order = apart(1) == step && apart(ROWS - 1) == step * (ROWS as isize - 1);
        self.ahead = if in_order { rows[0].wrapping_add(columns * ROWS) } else { self.memory.as_ptr() };
    }

    #[inline(always)]
    pub fn features_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.first..self.first + self.length]
    }
}

/// # Safety
/// The machine must have the instructions of `V`; every row must be good for the columns.
#[inline(always)]
unsafe fn turn<V: Transpose>(rows: &Side<*const V::Number>, origin: &[V::Number], out: &mut [V::Number]) {
    let columns = origin.len();
    assert!(out.len() >= columns * ROWS);
    let whole = columns / V::LANES * V::LANES;
    // Safe: the lengths are checked above.
    unsafe {
        for j in (0..whole).step_by(V::LANES) {
            for side in (0..ROWS).step_by(V::LANES) {
                let to = out.as_mut_ptr().add(j * ROWS + side);
                V::transpose(&rows[side..side + V::LANES], j, origin.as_ptr().add(j), to, ROWS);
            }
        }
        for j in whole..columns {
            for (r, row) in rows.iter().enumerate() {
                out[j * ROWS + r] = *row.add(j) - origin[j];
            }
        }
    }
}

/// # Safety
/// The machine must have AVX2; every row must be good for the columns.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn turn_fast<T: Real>(rows: &Side<*const T>, origin: &[T], out: &mut [T]) -> Side<T> {
    // Safe: the caller's promise.
    unsafe { turn::<T::Fast>(rows, origin, out) }
    norms_of(&out[..origin.len() * ROWS])
}

/// The squared norms of the rows of a panel.
#[inline(always)]
pub fn norms_of<T: Real>(features: &[T]) -> Side<T> {
    // Two sums side by side: none waits for the other.
    let (pairs, rest) = features.as_chunks::<{ 2 * ROWS }>();
    let (mut even, mut odd) = ([T::ZERO; ROWS], [T::ZERO; ROWS]);
    for pair in pairs {
        even = std::array::from_fn(|r| even[r] + pair[r] * pair[r]);
        odd = std::array::from_fn(|r| odd[r] + pair[ROWS + r] * pair[ROWS + r]);
    }
    for column in rest.as_chunks::<ROWS>().0 {
        even = std::array::from_fn(|r| even[r] + column[r] * column[r]);
    }
    std::array::from_fn(|r| even[r] + odd[r])
}

/// Writes rows less the origin as a panel, and returns their norms.
///
/// # Safety
/// Every row must be good for the columns.
#[inline(always)]
pub unsafe fn turned<T: Real>(rows: &Side<*const T>, origin: &[T], out: &mut [T]) -> Side<T> {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // Safe: the line above asked the machine, and the caller's promise.
        return unsafe { turn_fast(rows, origin, out) };
    }
    // Safe: these need no special instructions, and the caller's promise.
    unsafe { turn::<T::Plain>(rows, origin, out) }
    norms_of(&out[..origin.len() * ROWS])
}
