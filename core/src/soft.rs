//! Sums of rows of which every class has a share: a small product of matrices, shares × cells and shares × squares.

use crate::belonging::{Belonging, Shared};
use crate::moments::{Moments, Sums, add_lines, collect_blocks};
use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Source};
use std::ops::Range;

/// Columns and classes that are multiplied together: their sums stay in registers while the rows pass by.
const SIDE: usize = 4;
/// Rows that are multiplied together, and stay in the first cache.
const ROWS: usize = 64;
/// Where fewer than one in so many shares is more than nothing, rows are added one by one to the classes they belong to.
const FEW: usize = 4;

type Square = [[f64; SIDE]; SIDE];

/// The sums of some classes and columns.
#[derive(Clone, Copy)]
struct Pair {
    sum: Square,
    square: Square,
}

const NONE: Square = [[0.0; SIDE]; SIDE];

/// Some rows as they are multiplied.
struct Panels {
    rows: usize,
    /// blocks of [`SIDE`] columns × rows
    cells: Vec<[f64; SIDE]>,
    /// blocks of [`SIDE`] classes × rows
    shares: Vec<[f64; SIDE]>,
}

impl Panels {
    fn new(width: usize, classes: usize) -> Self {
        let blocks = |length: usize| vec![[0.0; SIDE]; ROWS * length.div_ceil(SIDE)];
        Self { rows: 0, cells: blocks(width), shares: blocks(classes) }
    }
}

/// Writes a line into blocks, `rows` apart.
#[inline(always)]
fn spread(line: &[f64], rows: usize, to: &mut [[f64; SIDE]]) {
    let (whole, rest) = line.as_chunks::<SIDE>();
    for (to, cells) in to.iter_mut().step_by(rows).zip(whole) {
        *to = *cells;
    }
    if !rest.is_empty() {
        to[whole.len() * rows][..rest.len()].copy_from_slice(rest);
    }
}

/// Fills the panels with lines and their shares. Says whether that is worth it: all cells are finite, and of the shares
/// not only a few are more than nothing.
#[inline(always)]
fn fill<const FUSED: bool>(
    panels: &mut Panels,
    lines: &[f64],
    rows: &[usize],
    shared: &Shared,
    room: &mut [f64],
) -> bool {
    panels.rows = rows.len();
    let mut count = 0;
    for (at, &row) in rows.iter().enumerate() {
        for (room, w) in room.iter_mut().zip(shared.of(row)) {
            *room = w;
            count += usize::from(w > 0.0);
        }
        spread(room, panels.rows, &mut panels.shares[at..]);
    }
    if count * FEW < rows.len() * shared.classes {
        return false;
    }
    let mut doubt = [0.0; SIDE];
    for (at, line) in lines.chunks_exact(lines.len() / rows.len()).enumerate() {
        spread(line, panels.rows, &mut panels.cells[at..]);
        let (whole, rest) = line.as_chunks::<SIDE>();
        for cells in whole {
            for (doubt, x) in doubt.iter_mut().zip(cells) {
                *doubt += x * 0.0;
            }
        }
        for x in rest {
            doubt[0] += x * 0.0;
        }
    }
    doubt == [0.0; SIDE]
}

/// Adds the rows of the panels to the sums, blocks of columns × blocks of classes.
#[inline(always)]
fn multiply<const FUSED: bool>(panels: &Panels, origins: &[Square], sums: &mut [Pair]) {
    let rows = panels.rows;
    let blocks = panels.shares.len() / ROWS;
    let places = origins.chunks_exact(blocks).zip(sums.chunks_exact_mut(blocks));
    for (cells, (origins, sums)) in panels.cells.chunks_exact(rows).zip(places) {
        for (shares, (o, sums)) in panels.shares.chunks_exact(rows).zip(origins.iter().zip(sums)) {
            let (mut sum, mut square) = (NONE, NONE);
            for (x, w) in cells.iter().zip(shares) {
                for c in 0..SIDE {
                    for j in 0..SIDE {
                        let t = x[j] - o[c][j];
                        let wt = w[c] * t;
                        sum[c][j] += wt;
                        square[c][j] = fma::<FUSED>(wt, t, square[c][j]);
                    }
                }
            }
            for c in 0..SIDE {
                for j in 0..SIDE {
                    sums.sum[c][j] += sum[c][j];
                    sums.square[c][j] += square[c][j];
                }
            }
        }
    }
}

/// Adds the shares of the panels to the weights of classes, in blocks.
#[inline(always)]
fn add_shares<const FUSED: bool>(panels: &Panels, weights: &mut [[f64; SIDE]]) {
    for (shares, weights) in panels.shares.chunks_exact(panels.rows).zip(weights) {
        let mut sum = [0.0; SIDE];
        for w in shares {
            for c in 0..SIDE {
                sum[c] += w[c];
            }
        }
        for c in 0..SIDE {
            weights[c] += sum[c];
        }
    }
}

/// The origins, classes × columns, in blocks of columns × blocks of classes.
fn in_blocks(origin: &[f64], width: usize) -> Vec<Square> {
    let classes = origin.len() / width;
    let mut blocks = vec![NONE; width.div_ceil(SIDE) * classes.div_ceil(SIDE)];
    for (at, o) in origin.iter().enumerate() {
        let (c, j) = (at / width, at % width);
        blocks[j / SIDE * classes.div_ceil(SIDE) + c / SIDE][c % SIDE][j % SIDE] = *o;
    }
    blocks
}

/// Adds some rows.
fn add_rows(
    source: &Source,
    rows: Range<usize>,
    shared: &Shared,
    origin: &[f64],
    origins: &[Square],
    out: &mut Sums,
) -> Result<(), BadCell> {
    let (width, k) = (source.width(), shared.classes);
    let mut panels = Panels::new(width, k);
    let mut sums = vec![Pair { sum: NONE, square: NONE }; origins.len()];
    let mut weights = vec![[0.0; SIDE]; k.div_ceil(SIDE)];
    let (mut room, mut room_of_shares) = (vec![0.0; ROWS * width], vec![0.0; k]);
    let every = 0..k;
    let counted: Vec<usize> = rows.filter(|&row| shared.counts(row, &every)).collect();
    for rows in counted.chunks(ROWS) {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let lines = if last - first < rows.len() {
            source.rows_at(first..last + 1, &mut room)?
        } else {
            source.load_rows(rows.iter().copied(), width, &mut room)?;
            &room[..rows.len() * width]
        };
        if dispatch!(fill(&mut panels, lines, rows, shared, &mut room_of_shares)) {
            dispatch!(add_shares(&panels, &mut weights));
            dispatch!(multiply(&panels, origins, &mut sums));
        } else {
            dispatch!(add_lines::<f64, Shared, false>(lines, rows.iter().copied(), shared, width, origin, out));
        }
    }
    for at in 0..k * width {
        let (c, j) = (at / width, at % width);
        let pair = &sums[j / SIDE * k.div_ceil(SIDE) + c / SIDE];
        out.weight[at] += weights[c / SIDE][c % SIDE];
        out.sum[at] += pair.sum[c % SIDE][j % SIDE];
        out.second[at] += pair.square[c % SIDE][j % SIDE];
    }
    Ok(())
}

/// Σw, Σw(x−o) and Σw(x−o)² over the cells that are there, about origins that are given, classes × columns.
pub fn collect(source: &Source, shared: &Shared, origin: Vec<f64>) -> Result<Moments, BadCell> {
    let origins = if origin.is_empty() { vec![] } else { in_blocks(&origin, source.width()) };
    collect_blocks(source, origin, |rows, origin, out| add_rows(source, rows, shared, origin, &origins, out))
}
