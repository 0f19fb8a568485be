//! Scores of a panel of rows and a group of centres, and which two are least, without a table of all scores.
//!
//! A panel holds its rows column by column, so that one instruction serves several rows. A tile of rows × centres
//! lives in registers while the columns pass by: every number that is read is used several times.

use super::real::Real;
use super::vector::Vector;

/// Groups are filled up to a multiple of it with centres infinitely far away.
pub const EVEN: usize = 2;

/// Centres that are scored together, if so many of a group are left. Their sums fill the registers: six centres where these
/// are 16, or four where columns are few, to leave room for the least scores; with AVX-512 as many as sum up in 16 of 32.
#[inline(always)]
pub fn run_length<T: Real>(columns: usize, left: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        let most = 16 / (ROWS / T::Wide::LANES);
        return most.min(1 << left.ilog2());
    }
    left.min(if columns < 96 { 4 } else { 6 })
}

/// Rows of a panel.
pub const ROWS: usize = 16;

/// A number of each row of a panel.
pub type Side<T> = [T; ROWS];

/// Of each row of a panel: the least score of a group, the next, and the position of the least (as a number).
#[derive(Clone, Copy)]
pub struct Least<T> {
    pub first: Side<T>,
    pub second: Side<T>,
    pub position: Side<T>,
}

impl<T: Real> Least<T> {
    pub const NONE: Self = Self { first: [T::INFINITY; ROWS], second: [T::INFINITY; ROWS], position: [T::ZERO; ROWS] };

    /// Takes in another group.
    #[inline(always)]
    pub fn merge(&mut self, other: &Self) {
        for r in 0..ROWS {
            let (first, there) = (self.first[r], other.first[r]);
            self.second[r] = self.second[r].lesser(first.greater(there)).lesser(other.second[r]);
            self.position[r] = if there < first { other.position[r] } else { self.position[r] };
            self.first[r] = first.lesser(there);
        }
    }

    /// Takes in one score of one row.
    #[inline(always)]
    pub fn take(&mut self, row: usize, score: T, position: usize) {
        let first = self.first[row];
        self.second[row] = self.second[row].lesser(first.greater(score));
        if score < first {
            (self.first[row], self.position[row]) = (score, T::of(position as f64));
        }
    }
}

/// A group of centres as they are multiplied with panels: their weights in runs of [`run_length`], each column by
/// column; and what each score begins with.
#[derive(Clone, Copy)]
pub struct Packed<'a, T> {
    pub weights: &'a [T],
    pub begin: &'a [T],
    /// the position of the first
    pub position: usize,
}

/// # Safety
/// `x` must be good for `S` vectors of each column, [`ROWS`] apart, `w` and `begin` for `W` numbers of each. `ahead` may
/// be any address: as much of what lies there as is read at `x` is asked for.
#[inline(always)]
unsafe fn scores<V: Vector, const S: usize, const W: usize>(
    columns: usize,
    mut x: *const V::Number,
    mut w: *const V::Number,
    begin: &[V::Number],
    mut ahead: *const V::Number,
) -> [[V; S]; W] {
    // Safe: the caller's promise.
    unsafe {
        let mut sums: [[V; S]; W] = std::array::from_fn(|c| [V::all(begin[c]); S]);
        for _ in 0..columns {
            crate::simd::prefetch_later(ahead);
            ahead = ahead.wrapping_add(S * V::LANES);
            let cells: [V; S] = std::array::from_fn(|s| V::load(x.add(s * V::LANES)));
            for (c, sums) in sums.iter_mut().enumerate() {
                let weight = V::all(*w.add(c));
                *sums = std::array::from_fn(|s| cells[s].fused(weight, sums[s]));
            }
            x = x.add(ROWS);
            w = w.add(W);
        }
        sums
    }
}

/// The least two scores so far of the rows of `S` vectors, and the position of the least.
struct Best<V, const S: usize> {
    first: [V; S],
    second: [V; S],
    position: [V; S],
}

impl<V: Vector, const S: usize> Best<V, S> {
    /// Takes in `W` centres from `done` on.
    ///
    /// # Safety
    /// As of [`scores`], and the machine must have the instructions of `V`.
    #[inline(always)]
    unsafe fn take<const W: usize>(
        &mut self,
        columns: usize,
        x: *const V::Number,
        packed: &Packed<V::Number>,
        done: usize,
        ahead: *const V::Number,
    ) {
        // Safe: the caller's promise.
        unsafe {
            let weights = packed.weights.as_ptr().add(done * columns);
            let scores = scores::<V, S, W>(columns, x, weights, &packed.begin[done..done + W], ahead);
            for (c, scores) in scores.iter().enumerate() {
                let here = V::all(V::Number::of((packed.position + done + c) as f64));
                for (r, score) in scores.iter().enumerate() {
                    self.second[r] = self.second[r].lesser(self.first[r].greater(*score));
                    self.position[r] = score.where_less(self.first[r], here, self.position[r]);
                    self.first[r] = self.first[r].lesser(*score);
                }
            }
        }
    }
}

/// # Safety
/// The machine must have the instructions of `V`.
#[inline(always)]
unsafe fn least_of<V: Vector, const S: usize>(
    panel: &[V::Number],
    packed: Packed<V::Number>,
    ahead: *const V::Number,
    out: &mut Least<V::Number>,
) {
    let columns = panel.len() / ROWS;
    let centres = packed.begin.len();
    assert!(packed.weights.len() >= centres * columns && centres.is_multiple_of(EVEN));
    // Safe: the lengths are checked above, and whole vectors fit into ROWS.
    unsafe {
        for side in (0..ROWS).step_by(S * V::LANES) {
            let (far, x) = (V::all(V::Number::INFINITY), panel.as_ptr().add(side));
            let mut best = Best { first: [far; S], second: [far; S], position: [V::all(V::Number::ZERO); S] };
            let mut done = 0;
            let mut ahead = ahead.wrapping_add(side * columns);
            while centres > done {
                let run = run_length::<V::Number>(columns, centres - done);
                match run {
                    16 => best.take::<16>(columns, x, &packed, done, ahead),
                    8 => best.take::<8>(columns, x, &packed, done, ahead),
                    6 => best.take::<6>(columns, x, &packed, done, ahead),
                    4 => best.take::<4>(columns, x, &packed, done, ahead),
                    _ => best.take::<EVEN>(columns, x, &packed, done, ahead),
                }
                done += run;
                ahead = x;
            }
            for r in 0..S {
                let at = side + r * V::LANES;
                best.first[r].store(out.first.as_mut_ptr().add(at));
                best.second[r].store(out.second.as_mut_ptr().add(at));
                best.position[r].store(out.position.as_mut_ptr().add(at));
            }
        }
    }
}

/// # Safety
/// The machine must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn least_fast<T: Real>(panel: &[T], packed: Packed<T>, ahead: *const T, out: &mut Least<T>) {
    // Safe: the caller's promise.
    unsafe { least_of::<T::Fast, 2>(panel, packed, ahead, out) }
}

/// # Safety
/// The machine must have AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
unsafe fn least_wide<T: Real>(panel: &[T], packed: Packed<T>, ahead: *const T, out: &mut Least<T>) {
    // Safe: the caller's promise.
    unsafe {
        if T::Wide::LANES == ROWS {
            least_of::<T::Wide, 1>(panel, packed, ahead, out);
        } else {
            least_of::<T::Wide, 2>(panel, packed, ahead, out);
        }
    }
}

/// The least scores of a panel (columns × rows) among a group of centres.
#[inline(always)]
pub fn least<T: Real>(panel: &[T], packed: Packed<T>, ahead: *const T, out: &mut Least<T>) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx512() {
        // Safe: the line above asked the machine.
        return unsafe { least_wide(panel, packed, ahead, out) };
    }
    #[cfg(target_arch = "x86_64")]
    if crate::simd::has_avx2() {
        // Safe: the line above asked the machine.
        return unsafe { least_fast(panel, packed, ahead, out) };
    }
    // Safe: these need no special instructions.
    unsafe { least_of::<T::Plain, 2>(panel, packed, ahead, out) }
}
