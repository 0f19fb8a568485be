//! Moments of rows weighted by responsibilities: a small product of matrices, responsibilities × cells and × squares.

use crate::moments::{Moments, Sums, add_lines, collect_blocks};
use crate::responsibilities::{ClassWeights, Responsibilities};
use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Cell, Domain, Source, typed};
use std::ops::Range;

/// Columns that are multiplied together, with four or five classes: their sums stay in registers while the rows pass by.
const SIDE: usize = 4;
/// Rows that are multiplied together, and stay in the first cache.
const ROWS: usize = 32;
/// Where fewer than one in so many responsibilities is more than nothing, rows are added one by one.
const FEW: usize = 4;

/// Σw(x−o) and Σw(x−o)² of C classes and some columns.
#[derive(Clone)]
struct Block<const C: usize> {
    origin: [[f64; SIDE]; C],
    sum: [[f64; SIDE]; C],
    square: [[f64; SIDE]; C],
}

/// Blocks of columns × blocks of classes, of which nothing was added yet.
fn blocks<const C: usize>(origin: &[f64], width: usize) -> Vec<Block<C>> {
    let none = [[0.0; SIDE]; C];
    let high = (origin.len() / width).div_ceil(C);
    let mut blocks = vec![Block { origin: none, sum: none, square: none }; width.div_ceil(SIDE) * high];
    for (at, o) in origin.iter().enumerate() {
        let (c, j) = (at / width, at % width);
        blocks[j / SIDE * high + c / C].origin[c % C][j % SIDE] = *o;
    }
    blocks
}

/// Some rows as they are multiplied, and the sums of those that were.
struct Product<const C: usize> {
    blocks: Vec<Block<C>>,
    weight: Vec<[f64; C]>,
    rows: usize,
    /// blocks of columns × rows
    cells: Vec<[f64; SIDE]>,
    /// responsibility × weight of the row; blocks of classes × rows
    weights: Vec<[f64; C]>,
}

impl<const C: usize> Product<C> {
    fn new(blocks: Vec<Block<C>>, width: usize, classes: usize) -> Self {
        let high = classes.div_ceil(C);
        let (cells, weights) = (vec![[0.0; SIDE]; ROWS * width.div_ceil(SIDE)], vec![[0.0; C]; ROWS * high]);
        Self { blocks, weight: vec![[0.0; C]; high], rows: 0, cells, weights }
    }

    /// Adds some rows, given as one slice, here or row by row to `out`.
    fn add<T: Cell>(
        &mut self,
        lines: &[T],
        rows: &[usize],
        responsibilities: &Responsibilities,
        origin: &[f64],
        out: &mut Sums,
    ) {
        if self.rows != rows.len() {
            self.rows = rows.len();
            self.cells.fill([0.0; SIDE]);
            self.weights.fill([0.0; C]);
        }
        if dispatch!(fill::<T, C>(self, lines, rows, responsibilities)) {
            dispatch!(multiply::<C>(self));
        } else {
            let width = lines.len() / rows.len();
            dispatch!(add_lines::<T, Responsibilities, false>(
                lines,
                rows.iter().copied(),
                responsibilities,
                width,
                origin,
                out
            ));
        }
    }

    fn finish(&self, width: usize, out: &mut Sums) {
        for at in 0..out.weight.len() {
            let (c, j) = (at / width, at % width);
            let block = &self.blocks[j / SIDE * self.weight.len() + c / C];
            out.weight[at] += self.weight[c / C][c % C];
            out.sum[at] += block.sum[c % C][j % SIDE];
            out.second[at] += block.square[c % C][j % SIDE];
        }
    }
}

/// Writes a line into blocks, `rows` apart.
#[inline(always)]
fn spread<T: Copy, const N: usize>(line: &[T], rows: usize, to: &mut [[f64; N]], number: impl Fn(T) -> f64) {
    let (whole, rest) = line.as_chunks::<N>();
    for (to, line) in to.iter_mut().step_by(rows).zip(whole) {
        *to = line.map(&number);
    }
    for (i, x) in rest.iter().enumerate() {
        to[whole.len() * rows][i] = number(*x);
    }
}

/// Takes up rows and their responsibilities. Says whether they can be multiplied: all cells are finite, and of these not only
/// a few are more than nothing.
#[inline(always)]
fn fill<T: Cell, const C: usize, const FUSED: bool>(
    product: &mut Product<C>,
    lines: &[T],
    rows: &[usize],
    responsibilities: &Responsibilities,
) -> bool {
    for (at, &row) in rows.iter().enumerate() {
        let weight = responsibilities.weight(row);
        spread(responsibilities.of(row), rows.len(), &mut product.weights[at..], |r| {
            Responsibilities::weighed(r, weight)
        });
    }
    let mut count = [0.0; C];
    for weights in &product.weights {
        for c in 0..C {
            count[c] += if weights[c] > 0.0 { 1.0 } else { 0.0 };
        }
    }
    if count.iter().sum::<f64>() * (FEW as f64) < (rows.len() * responsibilities.classes) as f64 {
        return false;
    }
    for (at, line) in lines.chunks_exact(lines.len() / rows.len()).enumerate() {
        spread(line, rows.len(), &mut product.cells[at..], T::number);
    }
    let mut doubt = [0.0; SIDE];
    for cells in &product.cells {
        for j in 0..SIDE {
            doubt[j] += cells[j] * 0.0;
        }
    }
    doubt == [0.0; SIDE]
}

/// Adds the rows that were taken up to the sums.
#[inline(always)]
fn multiply<const C: usize, const FUSED: bool>(product: &mut Product<C>) {
    let (rows, high) = (product.rows, product.weight.len());
    for (weights, weight) in product.weights.chunks_exact(rows).zip(&mut product.weight) {
        let mut sum = [0.0; C];
        for w in weights {
            for c in 0..C {
                sum[c] += w[c];
            }
        }
        for c in 0..C {
            weight[c] += sum[c];
        }
    }
    for (cells, blocks) in product.cells.chunks_exact(rows).zip(product.blocks.chunks_exact_mut(high)) {
        for (weights, block) in product.weights.chunks_exact(rows).zip(blocks) {
            let origin = block.origin;
            let (mut sum, mut square) = ([[0.0; SIDE]; C], [[0.0; SIDE]; C]);
            for (x, w) in cells.iter().zip(weights) {
                for c in 0..C {
                    for j in 0..SIDE {
                        let t = x[j] - origin[c][j];
                        let wt = w[c] * t;
                        sum[c][j] += wt;
                        square[c][j] = fma::<FUSED>(wt, t, square[c][j]);
                    }
                }
            }
            for c in 0..C {
                for j in 0..SIDE {
                    block.sum[c][j] += sum[c][j];
                    block.square[c][j] += square[c][j];
                }
            }
        }
    }
}

/// Adds some rows; those that do not count are not even read.
fn add_rows<const C: usize>(
    source: &Source,
    rows: Range<usize>,
    responsibilities: &Responsibilities,
    origin: &[f64],
    product: &mut Product<C>,
    out: &mut Sums,
) -> Result<(), BadCell> {
    let width = source.width();
    let every = 0..responsibilities.classes;
    let counted: Vec<usize> = rows.filter(|&row| responsibilities.counts(row, &every)).collect();
    let mut room = vec![0.0; ROWS * width];
    for rows in counted.chunks(ROWS) {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        if source.domain == Domain::Real && source.columns.is_none() && last - first < rows.len() {
            let done = typed!(&source.matrix, view => {
                let part = view.slice(ndarray::s![first..=last, ..]);
                part.as_slice().map(|lines| product.add(lines, rows, responsibilities, origin, out))
            });
            if done.is_some() {
                continue;
            }
        }
        source.load_rows(rows.iter().copied(), width, &mut room)?;
        product.add(&room[..rows.len() * width], rows, responsibilities, origin, out);
    }
    product.finish(width, out);
    Ok(())
}

/// Σw, Σw(x−o) and Σw(x−o)² over the cells that are there, about origins that are given, classes × columns.
pub fn collect(source: &Source, responsibilities: &Responsibilities, origin: Vec<f64>) -> Result<Moments, BadCell> {
    if responsibilities.classes.div_ceil(5) * 5 < responsibilities.classes.div_ceil(4) * 4 {
        collect_in::<5>(source, responsibilities, origin)
    } else {
        collect_in::<4>(source, responsibilities, origin)
    }
}

fn collect_in<const C: usize>(
    source: &Source,
    responsibilities: &Responsibilities,
    origin: Vec<f64>,
) -> Result<Moments, BadCell> {
    let width = source.width();
    let empty = if origin.is_empty() { vec![] } else { blocks::<C>(&origin, width) };
    collect_blocks(source, origin, |rows, origin, out| {
        let mut product = Product::new(empty.clone(), width, responsibilities.classes);
        add_rows(source, rows, responsibilities, origin, &mut product, out)
    })
}
