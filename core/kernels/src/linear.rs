//! Scores linear in the cells of a row: products of a matrix with rows, several rows at a time or one.

use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Source};
use crate::threads;
use std::ops::Range;

/// Rows in a group: two AVX registers.
pub const GROUP: usize = 8;
/// Lines of a matrix that are multiplied together.
pub const HIGH: usize = 6;
/// With at most this many classes rows are scored one by one, instead of being brought into groups.
const FEW: usize = 4;
/// Rows looked at together, and rows a thread takes at a time.
const TILE: usize = 32;
const PIECE: usize = 12 * TILE;

/// [`HIGH`] numbers of each row of a group.
pub type Block = [[f64; GROUP]; HIGH];

/// Hands out M t of a group of rows, [`HIGH`] lines of a packed matrix M at a time, each with that many columns; `t`
/// holds the columns of the rows, each [`GROUP`] long.
#[inline(always)]
pub fn multiply<const FUSED: bool>(
    packed: &[f64],
    columns: impl Iterator<Item = usize>,
    t: &[f64],
    mut take: impl FnMut(usize, &Block),
) {
    let mut at = 0;
    for (block, columns) in columns.enumerate() {
        let w = &packed[at..at + columns * HIGH];
        at += columns * HIGH;
        let mut z = [[0.0; GROUP]; HIGH];
        for (w, t) in w.chunks_exact(HIGH).zip(t.chunks_exact(GROUP)) {
            let w: &[f64; HIGH] = w.try_into().unwrap();
            let t: &[f64; GROUP] = t.try_into().unwrap();
            for h in 0..HIGH {
                for r in 0..GROUP {
                    z[h][r] = fma::<FUSED>(w[h], t[r], z[h][r]);
                }
            }
        }
        take(block, &z);
    }
}

/// Fills `t` with x − origin of a group of rows that begins at row `first` of a tile, of columns each STRIDE long.
#[inline(always)]
pub fn centre<const STRIDE: usize>(tile: &[f64], first: usize, origin: &[f64], t: &mut [f64]) {
    for ((t, x), o) in t.chunks_exact_mut(GROUP).zip(tile.chunks_exact(STRIDE)).zip(origin) {
        for (t, x) in t.iter_mut().zip(&x[first..first + GROUP]) {
            *t = x - o;
        }
    }
}

/// Scores θ·(x − o) + θ₀ of every class.
pub struct Linear<'a> {
    origin: &'a [f64],
    /// classes × columns
    theta: &'a [f64],
    theta0: &'a [f64],
    /// classes before this one have θ = 0
    first: usize,
    /// the lines of θ in blocks, column after column
    packed: Vec<f64>,
}

impl<'a> Linear<'a> {
    /// `theta`: classes × columns.
    pub fn new(origin: &'a [f64], theta: &'a [f64], theta0: &'a [f64]) -> Self {
        let width = origin.len();
        let first = usize::from(theta[..width.min(theta.len())].iter().all(|&theta| theta == 0.0));
        let mut packed = vec![0.0; theta0.len().div_ceil(HIGH) * HIGH * width];
        for (c, theta) in theta.chunks_exact(width.max(1)).enumerate() {
            for (j, theta) in theta.iter().enumerate() {
                packed[(c / HIGH * width + j) * HIGH + c % HIGH] = *theta;
            }
        }
        Self { origin, theta, theta0, first, packed }
    }

    pub fn classes(&self) -> usize {
        self.theta0.len()
    }

    /// Adds the scores of every row to `out` (rows × classes). A row with a missing cell is first given to `odd` with its
    /// position in `out`: if that returns true, the row is settled, or else its scores will be NaN.
    pub fn score(
        &self,
        source: &Source,
        out: &mut [f64],
        odd: impl Fn(usize, &mut [f64]) -> Result<bool, BadCell> + Sync + Send,
    ) -> Result<(), BadCell> {
        let (k, width) = (self.classes(), self.origin.len());
        let few = width > 0 && (1..=FEW).contains(&(k - self.first));
        threads::for_each(out, PIECE * k, source.rows() * k * width, |piece, out| {
            let mut room = Room::default();
            for (tile, out) in out.chunks_mut(TILE * k).enumerate() {
                let first = piece * PIECE + tile * TILE;
                let rows = first..first + out.len() / k;
                if few {
                    self.score_rows(source, rows, out, &mut room, &odd)?;
                } else {
                    self.score_tile(source, rows, out, &mut room, &odd)?;
                }
            }
            Ok(())
        })
    }

    /// One row after the other, where they lie if they are plain numbers: best for few classes.
    fn score_rows(
        &self,
        source: &Source,
        rows: Range<usize>,
        out: &mut [f64],
        room: &mut Room,
        odd: &Odd<'_>,
    ) -> Result<(), BadCell> {
        let mut odd =
            |row: usize, out: &mut [f64]| Ok(source.has_missing(rows.start + row)? && odd(rows.start + row, out)?);
        let cells = source.rows_at(rows.clone(), &mut room.cells)?;
        match self.classes() - self.first {
            1 => dispatch!(add_rows::<1>(self, cells, out, &mut odd)),
            2 => dispatch!(add_rows::<2>(self, cells, out, &mut odd)),
            3 => dispatch!(add_rows::<3>(self, cells, out, &mut odd)),
            _ => dispatch!(add_rows::<FEW>(self, cells, out, &mut odd)),
        }
    }

    /// A tile of rows, brought into columns.
    fn score_tile(
        &self,
        source: &Source,
        rows: Range<usize>,
        out: &mut [f64],
        room: &mut Room,
        odd: &Odd<'_>,
    ) -> Result<(), BadCell> {
        let (k, width) = (self.classes(), self.origin.len());
        room.cells.resize(width * TILE, 0.0);
        let missing = source.load_columns(rows.clone(), TILE, &mut room.cells)?;
        let mut settled = vec![];
        if missing {
            for (r, out) in out.chunks_exact_mut(k).enumerate() {
                let missing = room.cells.chunks_exact(TILE).any(|column| column[r].is_nan());
                if missing && odd(rows.start + r, out)? {
                    settled.push((r, out.to_vec()));
                }
            }
        }
        dispatch!(add_tile(self, room, out));
        for (r, scores) in settled {
            out[r * k..(r + 1) * k].copy_from_slice(&scores);
        }
        Ok(())
    }
}

type Odd<'a> = dyn Fn(usize, &mut [f64]) -> Result<bool, BadCell> + Sync + Send + 'a;

/// What is worked with, kept from tile to tile.
#[derive(Default)]
struct Room {
    cells: Vec<f64>,
    group: Vec<f64>,
    scores: Vec<Block>,
}

/// See [`Linear::score_tile`]: columns each [`TILE`] long.
#[inline(always)]
fn add_tile<const FUSED: bool>(linear: &Linear, room: &mut Room, out: &mut [f64]) {
    let (k, width) = (linear.classes(), linear.origin.len());
    room.group.resize(width * GROUP, 0.0);
    room.scores.resize(k.div_ceil(HIGH), [[0.0; GROUP]; HIGH]);
    for (group, out) in out.chunks_mut(GROUP * k).enumerate() {
        centre::<TILE>(&room.cells, group * GROUP, linear.origin, &mut room.group);
        let columns = std::iter::repeat_n(width, room.scores.len());
        multiply::<FUSED>(&linear.packed, columns, &room.group, |block, z| room.scores[block] = *z);
        for (r, out) in out.chunks_exact_mut(k).enumerate() {
            for ((out, theta0), score) in out.iter_mut().zip(linear.theta0).zip(room.scores.iter().flatten()) {
                *out += theta0 + score[r];
            }
        }
    }
}

/// See [`Linear::score_rows`]; K of the classes have θ ≠ 0.
#[inline(always)]
fn add_rows<const K: usize, const FUSED: bool>(
    linear: &Linear,
    cells: &[f64],
    out: &mut [f64],
    odd: &mut dyn FnMut(usize, &mut [f64]) -> Result<bool, BadCell>,
) -> Result<(), BadCell> {
    let width = linear.origin.len();
    let theta: [&[f64]; K] = std::array::from_fn(|c| &linear.theta[(linear.first + c) * width..][..width]);
    let rows = cells.chunks_exact(width).zip(out.chunks_exact_mut(linear.classes()));
    for (row, (x, out)) in rows.enumerate() {
        let sums = dots::<K, FUSED>(x, linear.origin, &theta);
        if !sums.iter().sum::<f64>().is_finite() && odd(row, out)? {
            continue;
        }
        for (out, theta0) in out.iter_mut().zip(linear.theta0) {
            *out += theta0;
        }
        for (out, sum) in out[linear.first..].iter_mut().zip(sums) {
            *out += sum;
        }
    }
    Ok(())
}

/// (x − origin)·θ for each θ.
#[inline(always)]
fn dots<const K: usize, const FUSED: bool>(x: &[f64], origin: &[f64], theta: &[&[f64]; K]) -> [f64; K] {
    let mut sums = [[0.0; GROUP]; K];
    let whole = x.len() / GROUP * GROUP;
    for j in (0..whole).step_by(GROUP) {
        let (x, o) = (&x[j..j + GROUP], &origin[j..j + GROUP]);
        for c in 0..K {
            let theta = &theta[c][j..j + GROUP];
            for i in 0..GROUP {
                sums[c][i] = fma::<FUSED>(x[i] - o[i], theta[i], sums[c][i]);
            }
        }
    }
    for j in whole..x.len() {
        for c in 0..K {
            sums[c][j - whole] = fma::<FUSED>(x[j] - origin[j], theta[c][j], sums[c][j - whole]);
        }
    }
    sums.map(|s| ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;

    #[test]
    fn rows_are_scored_one_by_one() {
        let width = 11;
        let mut x = ndarray::Array2::from_shape_fn((40, width), |(i, j)| (i * width + j) as f64 * 0.5);
        x[[33, 10]] = f64::NAN;
        let origin: Vec<f64> = (0..width).map(|j| j as f64).collect();
        let theta: Vec<f64> = (0..3 * width).map(|i| if i < width { 0.0 } else { (i % 7) as f64 - 3.0 }).collect();
        let theta0 = [0.5, 1.5, -2.0];
        let linear = Linear::new(&origin, &theta, &theta0);
        let mut out = vec![1.0; 120];
        let settle = |row: usize, out: &mut [f64]| {
            out[0] = row as f64;
            Ok(true)
        };
        linear.score(&source(&x), &mut out, settle).unwrap();
        for (i, out) in out.chunks(3).enumerate().filter(|(i, _)| *i != 33) {
            for c in 0..3 {
                let sum: f64 = (0..width).map(|j| (x[[i, j]] - origin[j]) * theta[c * width + j]).sum();
                assert!((out[c] - (1.0 + theta0[c] + sum)).abs() < 1e-11);
            }
        }
        assert_eq!(out[99..102], [33.0, 1.0, 1.0]);
    }
}
