//! Hidden Chow–Liu trees: every column hangs on a hidden state of its own, and the hidden states form a tree.
//!
//! A column given its state is a category, or a repeated value, or "none of these", which for a number is a Gaussian of its
//! normal score. Rows are taken in tiles: messages of a tile are products of matrices, rows × states times states × states.

use super::draw::{choose, uniform};
use super::messages::ratio;
use super::offsets;
use crate::simd::{dispatch, fma};
use crate::special::exp_of_negative;
use crate::threads;
use std::ops::Range;

const TILE: usize = 32;
/// States are padded to a multiple of this.
const LANES: usize = 8;
const PIECES: usize = 16;
const LEAST: usize = 1024;
/// So many rows where columns are more than [`WIDE`].
const LEAST_OF_WIDE: usize = 128;
const WIDE: usize = 128;
/// A product of so many messages is divided by its largest number before the next.
const CHILDREN: usize = 8;

/// The parameters: columns in the order of the table, states within.
pub struct HiddenTree<'a> {
    pub states: usize,
    pub parents: &'a [i32],
    pub order: &'a [i32],
    /// p(state) of the root
    pub root: &'a [f64],
    /// columns × states of the parent × states; that of the root is not used
    pub transitions: &'a [f64],
    /// how many levels every column has; of a number the last is "none of these", and its score says more
    pub levels: &'a [i32],
    /// levels of all columns × states: p(level | state)
    pub probabilities: &'a [f64],
    /// which number every column is, −1 if none
    pub numbers: &'a [i32],
    /// numbers × states
    pub mean: &'a [f64],
    pub variance: &'a [f64],
}

/// Rows: codes as of trees, and scores of numbers, rows × numbers.
pub struct Rows<'a> {
    pub codes: &'a [i16],
    pub scores: &'a [f64],
    /// columns × states: the likelihood of a state, where a column has evidence that is not a level
    pub evidence: Option<&'a [f64]>,
    pub weights: Option<&'a [f64]>,
}

/// Expected sums: of states of the root, of pairs of states, of levels and states, and of scores and their squares by state.
pub struct Sums {
    pub root: Vec<f64>,
    pub transitions: Vec<f64>,
    pub levels: Vec<f64>,
    pub score: Vec<f64>,
    pub square: Vec<f64>,
}

impl HiddenTree<'_> {
    fn width(&self) -> usize {
        self.levels.len()
    }

    /// Whether the arrays are those of a tree.
    pub fn fit(&self) -> bool {
        let (d, k) = (self.width(), self.states);
        let all: usize = self.levels.iter().map(|&size| size.max(0) as usize).sum();
        let count = self.numbers.iter().filter(|&&number| number >= 0).count();
        let starts: Vec<i64> = vec![0; d];
        let tree = super::Trees {
            levels: &vec![1; d],
            parents: self.parents,
            order: self.order,
            starts: &starts,
            tables: &[1.0],
        };
        d > 0
            && k > 0
            && tree.fit()
            && tree.components() == 1
            && self.levels.iter().all(|&size| size > 0 && size <= i32::from(i16::MAX))
            && self.root.len() == k
            && self.transitions.len() == d * k * k
            && self.probabilities.len() == all * k
            && self.numbers.len() == d
            && self.numbers.iter().all(|&number| number < count as i32)
            && self.mean.len() == count * k
            && self.variance.len() == count * k
    }

    /// Whether rows are of these columns.
    pub fn takes(&self, rows: &Rows) -> bool {
        let (d, n) = (self.width(), rows.codes.len() / self.width());
        let least = if rows.evidence.is_some() { super::EVIDENCE } else { super::UNKNOWN };
        rows.codes.len() == n * d
            && rows
                .codes
                .chunks_exact(d)
                .all(|row| row.iter().zip(self.levels).all(|(&code, &size)| code >= least && i32::from(code) < size))
            && rows.scores.len() == n * (self.mean.len() / self.states)
            && rows.evidence.is_none_or(|evidence| evidence.len() == d * self.states)
            && rows.weights.is_none_or(|weights| weights.len() == n)
    }
}

/// The parameters as the passes over tiles want them: states padded, tables of both directions, likelihoods of levels.
struct Prepared<'a> {
    tree: &'a HiddenTree<'a>,
    offsets: Vec<usize>,
    stride: usize,
    children: Vec<Vec<usize>>,
    root: Vec<f64>,
    down: Vec<f64>,
    up: Vec<f64>,
    /// likelihood of every level by state, divided by its largest, and the logarithm of that
    likelihood: Vec<f64>,
    largest: Vec<f64>,
    /// of numbers: mean, 1 / variance, and the constant of the logarithm of the Gaussian over the standard one
    gaussian: Vec<[Vec<f64>; 3]>,
}

/// What is kept of a tile, columns × rows × states.
struct Tile {
    belief: Vec<f64>,
    message: Vec<f64>,
    posterior: Vec<f64>,
    /// one column's rows × states
    without: Vec<f64>,
    log: [f64; TILE],
    /// columns × rows: the logarithm of what was divided out of each belief
    taken_out: Vec<f64>,
}

/// out (m × stride) += a (m × inner, in any order) b (inner × stride), where `stride` is a multiple of the lanes.
#[inline(always)]
fn multiply<const FUSED: bool>(
    a: &[f64],
    (row_step, inner_step): (usize, usize),
    (m, inner): (usize, usize),
    b: &[f64],
    stride: usize,
    out: &mut [f64],
) {
    const ROWS: usize = 4;
    for first in (0..stride).step_by(LANES) {
        for at in (0..m).step_by(ROWS) {
            let rows = ROWS.min(m - at);
            if rows == ROWS {
                let mut sums = [[0.0; LANES]; ROWS];
                for x in 0..inner {
                    let line: &[f64; LANES] = b[x * stride + first..][..LANES].try_into().unwrap_or(&[0.0; LANES]);
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let factor = a[(at + r) * row_step + x * inner_step];
                        for i in 0..LANES {
                            sums[i] = fma::<FUSED>(factor, line[i], sums[i]);
                        }
                    }
                }
                for (r, sums) in sums.iter().enumerate() {
                    let out = &mut out[(at + r) * stride + first..][..LANES];
                    out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                }
            } else {
                for r in at..at + rows {
                    let mut sums = [0.0; LANES];
                    for x in 0..inner {
                        let factor = a[r * row_step + x * inner_step];
                        for (sum, b) in sums.iter_mut().zip(&b[x * stride + first..][..LANES]) {
                            *sum = fma::<FUSED>(factor, *b, *sum);
                        }
                    }
                    let out = &mut out[r * stride + first..][..LANES];
                    out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                }
            }
        }
    }
}

impl<'a> Prepared<'a> {
    fn new(tree: &'a HiddenTree<'a>) -> Self {
        let (d, k) = (tree.width(), tree.states);
        let stride = k.next_multiple_of(LANES);
        let mut children = vec![vec![]; d];
        for (column, &parent) in tree.parents.iter().enumerate() {
            if let Ok(parent) = usize::try_from(parent) {
                children[parent].push(column);
            }
        }
        let (mut down, mut up) = (vec![0.0; d * stride * stride], vec![0.0; d * stride * stride]);
        for column in 0..d {
            for p in 0..k {
                for x in 0..k {
                    let value = tree.transitions[(column * k + p) * k + x];
                    down[(column * stride + p) * stride + x] = value;
                    up[(column * stride + x) * stride + p] = value;
                }
            }
        }
        let padded = |values: &[f64]| {
            let mut line = vec![0.0; stride];
            line[..k].copy_from_slice(values);
            line
        };
        let mut likelihood = vec![];
        let mut largest = vec![];
        for line in tree.probabilities.chunks_exact(k) {
            let top = line.iter().copied().fold(0.0, f64::max);
            largest.push(top.ln());
            likelihood.extend(padded(line).iter().map(|p| ratio(*p, top)));
        }
        let gaussian = tree.mean.chunks_exact(k).zip(tree.variance.chunks_exact(k));
        let gaussian = gaussian.map(|(mean, variance)| {
            let precision: Vec<f64> = variance.iter().map(|v| 1.0 / v).collect();
            let constant: Vec<f64> = variance.iter().map(|v| -0.5 * v.ln()).collect();
            let mut constant = padded(&constant);
            constant[k..].fill(f64::NEG_INFINITY);
            [padded(mean), padded(&precision), constant]
        });
        Self {
            tree,
            offsets: offsets(tree.levels),
            stride,
            children,
            root: padded(tree.root),
            down,
            up,
            likelihood,
            largest,
            gaussian: gaussian.collect(),
        }
    }

    fn tile(&self) -> Tile {
        let size = self.tree.width() * TILE * self.stride;
        Tile {
            belief: vec![0.0; size],
            message: vec![0.0; size],
            posterior: vec![0.0; size],
            without: vec![0.0; TILE * self.stride],
            log: [0.0; TILE],
            taken_out: vec![0.0; self.tree.width() * TILE],
        }
    }

    /// Whether a code of a column says to look at its score.
    fn is_free(&self, column: usize, code: i16) -> bool {
        self.tree.numbers[column] >= 0 && i32::from(code) == self.tree.levels[column] - 1
    }

    /// The likelihood of a cell by state, divided by its largest, into a line; returns the logarithm of that.
    #[inline(always)]
    fn emit<const FUSED: bool>(&self, column: usize, row: usize, rows: &Rows, line: &mut [f64]) -> f64 {
        let (d, k, stride) = (self.tree.width(), self.tree.states, self.stride);
        let code = rows.codes[row * d + column];
        if code < 0 {
            line[k..].fill(0.0);
            match rows.evidence {
                Some(evidence) if code == super::EVIDENCE => line[..k].copy_from_slice(&evidence[column * k..][..k]),
                _ => line[..k].fill(1.0),
            }
            return 0.0;
        }
        let level = self.offsets[column] + code as usize;
        let known = &self.likelihood[level * stride..][..stride];
        if !self.is_free(column, code) {
            line.copy_from_slice(known);
            return self.largest[level];
        }
        let number = self.tree.numbers[column] as usize;
        let z = rows.scores[row * self.gaussian.len() + number];
        let [mean, precision, constant] = &self.gaussian[number];
        let mut top = f64::NEG_INFINITY;
        for ((out, mean), (precision, constant)) in line.iter_mut().zip(mean).zip(precision.iter().zip(constant)) {
            let away = z - mean;
            *out = fma::<FUSED>(-0.5 * away * away, *precision, *constant);
            top = top.max(*out);
        }
        for (out, known) in line.iter_mut().zip(known) {
            *out = exp_of_negative::<FUSED>(*out - top) * known;
        }
        self.largest[level] + top + 0.5 * z * z
    }

    /// Messages from leaves to root of the rows of a tile: log p(what is known) of each, and beliefs.
    #[inline(always)]
    fn upward<const FUSED: bool>(&self, rows: &Rows, range: Range<usize>, tile: &mut Tile) {
        let (stride, n) = (self.stride, range.len());
        let size = TILE * stride;
        tile.log.fill(0.0);
        for &column in self.tree.order.iter().rev() {
            let column = column as usize;
            let before = tile.log;
            let belief = &mut tile.belief[column * size..][..n * stride];
            for (line, (row, log)) in belief.chunks_exact_mut(stride).zip(range.clone().zip(&mut tile.log)) {
                *log += self.emit::<FUSED>(column, row, rows, line);
            }
            for children in self.children[column].chunks(CHILDREN) {
                for &child in children {
                    let message = &tile.message[child * size..][..n * stride];
                    belief.iter_mut().zip(message).for_each(|(b, m)| *b *= m);
                }
                scale(belief, stride, &mut tile.log);
            }
            if self.children[column].is_empty() {
                scale(belief, stride, &mut tile.log);
            }
            let taken_out = &mut tile.taken_out[column * TILE..][..TILE];
            for (out, (after, before)) in taken_out.iter_mut().zip(tile.log.iter().zip(before)) {
                *out = after - before;
            }
            if self.tree.parents[column] >= 0 {
                let message = &mut tile.message[column * size..][..n * stride];
                message.fill(0.0);
                let up = &self.up[column * stride * stride..][..stride * stride];
                multiply::<FUSED>(belief, (stride, 1), (n, self.tree.states), up, stride, message);
            } else {
                for (line, log) in belief.chunks_exact(stride).zip(&mut tile.log) {
                    *log += line.iter().zip(&self.root).map(|(b, p)| b * p).sum::<f64>().ln();
                }
            }
        }
    }

    /// p(state | what is known, but for the column and what lies below it), into `above`, for a column whose parent has its
    /// posterior. What the parent's state is without the column stays in `tile.without`.
    #[inline(always)]
    fn descend<const FUSED: bool>(&self, column: usize, n: usize, tile: &mut Tile, above: &mut [f64]) {
        let (stride, size) = (self.stride, TILE * self.stride);
        let Ok(parent) = usize::try_from(self.tree.parents[column]) else {
            above.chunks_exact_mut(stride).for_each(|line| line.copy_from_slice(&self.root));
            return;
        };
        let message = &tile.message[column * size..][..n * stride];
        let posterior = &tile.posterior[parent * size..][..n * stride];
        let without = &mut tile.without[..n * stride];
        without.iter_mut().zip(posterior).zip(message).for_each(|((q, p), m)| *q = ratio(*p, *m));
        above.fill(0.0);
        let square = &self.down[column * stride * stride..][..stride * stride];
        multiply::<FUSED>(without, (stride, 1), (n, self.tree.states), square, stride, above);
    }

    /// After `upward`: p(state | what is known) of every column, and if asked for the counts of pairs of states.
    #[inline(always)]
    fn downward<const FUSED: bool>(&self, n: usize, tile: &mut Tile, weights: &[f64], mut counts: Option<&mut [f64]>) {
        let (stride, size) = (self.stride, TILE * self.stride);
        let mut above = vec![0.0; n * stride];
        for &column in self.tree.order {
            let column = column as usize;
            self.descend::<FUSED>(column, n, tile, &mut above);
            let belief = &tile.belief[column * size..][..n * stride];
            let posterior = &mut tile.posterior[column * size..][..n * stride];
            let without = &mut tile.without[..n * stride];
            posterior.iter_mut().zip(above.iter().zip(belief)).for_each(|(own, (a, b))| *own = a * b);
            for (i, own) in posterior.chunks_exact_mut(stride).enumerate() {
                let factor = ratio(weights[i], divide(own));
                without[i * stride..][..stride].iter_mut().for_each(|q| *q *= factor);
            }
            if self.tree.parents[column] >= 0
                && let Some(counts) = counts.as_deref_mut()
            {
                // Σ q(parent) belief(child): times the table it is what is expected of the pair
                let square = column * stride * stride..(column + 1) * stride * stride;
                multiply::<FUSED>(without, (1, stride), (self.tree.states, n), belief, stride, &mut counts[square]);
            }
        }
    }

    /// Adds what is expected of levels and scores, given the posteriors of a tile.
    #[inline(always)]
    fn add_emissions(&self, rows: &Rows, range: Range<usize>, tile: &Tile, weights: &[f64], sums: &mut Sums) {
        let (d, k, stride) = (self.tree.width(), self.tree.states, self.stride);
        for column in 0..d {
            let posterior = &tile.posterior[column * TILE * stride..];
            for ((row, line), weight) in range.clone().zip(posterior.chunks_exact(stride)).zip(weights) {
                let code = rows.codes[row * d + column];
                if code < 0 {
                    continue;
                }
                let line = &line[..k];
                let counts = &mut sums.levels[(self.offsets[column] + code as usize) * k..][..k];
                counts.iter_mut().zip(line).for_each(|(count, p)| *count += weight * p);
                if self.is_free(column, code) {
                    let number = self.tree.numbers[column] as usize;
                    let z = rows.scores[row * self.gaussian.len() + number];
                    let score = &mut sums.score[number * k..][..k];
                    score.iter_mut().zip(line).for_each(|(sum, p)| *sum += weight * p * z);
                    let square = &mut sums.square[number * k..][..k];
                    square.iter_mut().zip(line).for_each(|(sum, p)| *sum += weight * p * (z * z));
                }
            }
            if self.tree.parents[column] < 0 {
                for (line, weight) in posterior.chunks_exact(stride).take(range.len()).zip(weights) {
                    sums.root.iter_mut().zip(line).for_each(|(sum, p)| *sum += weight * p);
                }
            }
        }
    }

    fn sums(&self) -> Sums {
        let (d, k) = (self.tree.width(), self.tree.states);
        let numbers = self.gaussian.len();
        Sums {
            root: vec![0.0; k],
            transitions: vec![0.0; d * self.stride * self.stride],
            levels: vec![0.0; self.offsets[d] * k],
            score: vec![0.0; numbers * k],
            square: vec![0.0; numbers * k],
        }
    }
}

/// Divides every line by its largest number, whose logarithm is added.
fn scale(belief: &mut [f64], stride: usize, log: &mut [f64]) {
    for (line, log) in belief.chunks_exact_mut(stride).zip(log) {
        let top = line.iter().copied().fold(0.0, f64::max);
        if top > 0.0 {
            let factor = 1.0 / top;
            for b in line.iter_mut() {
                *b *= factor;
            }
        }
        *log += top.ln();
    }
}

/// Divides a line by its sum, which is returned.
fn divide(line: &mut [f64]) -> f64 {
    let total: f64 = line.iter().sum();
    if total > 0.0 {
        let factor = 1.0 / total;
        for p in line.iter_mut() {
            *p *= factor;
        }
    }
    total
}

/// Rows cut into pieces by their number, and that of columns, alone.
fn pieces(rows: usize, width: usize) -> Vec<Range<usize>> {
    let least = if width > WIDE { LEAST_OF_WIDE } else { LEAST };
    let piece = rows.div_ceil(PIECES).max(least).next_multiple_of(TILE);
    (0..rows.div_ceil(piece)).map(|i| i * piece..((i + 1) * piece).min(rows)).collect()
}

/// What is made of every piece, in their order; every thread has one tile for all of its own.
fn of_pieces<T: Send>(
    pieces: usize,
    steps: usize,
    prepared: &Prepared,
    f: impl Fn(&mut Tile, usize) -> T + Sync + Send,
) -> Vec<T> {
    let taken = threads::map_with(pieces, steps, || prepared.tile(), f);
    let mut found: Vec<_> = taken.into_iter().flat_map(|thread| thread.pieces).collect();
    found.sort_unstable_by_key(|(i, _)| *i);
    found.into_iter().map(|(_, part)| part).collect()
}

fn tiles(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(TILE).map(move |first| first..(first + TILE).min(range.end))
}

#[inline(always)]
fn log_piece<const FUSED: bool>(prepared: &Prepared, rows: &Rows, range: Range<usize>) -> Vec<f64> {
    let (mut tile, mut logs) = (prepared.tile(), Vec::with_capacity(range.len()));
    for range in tiles(range) {
        let n = range.len();
        prepared.upward::<FUSED>(rows, range, &mut tile);
        logs.extend_from_slice(&tile.log[..n]);
    }
    logs
}

/// log p(what is known) of every row.
pub fn log_densities(tree: &HiddenTree, rows: &Rows) -> Vec<f64> {
    let n = rows.codes.len() / tree.width();
    let prepared = Prepared::new(tree);
    let pieces = pieces(n, tree.width());
    let steps = n * tree.width() * tree.states * tree.states;
    threads::map(pieces.len(), steps, |i| dispatch!(log_piece(&prepared, rows, pieces[i].clone()))).concat()
}

#[inline(always)]
fn step_piece<const FUSED: bool>(
    prepared: &Prepared,
    rows: &Rows,
    range: Range<usize>,
    tile: &mut Tile,
) -> (Vec<f64>, Sums) {
    let (mut sums, mut logs) = (prepared.sums(), Vec::with_capacity(range.len()));
    for range in tiles(range) {
        let weights: Vec<f64> = range.clone().map(|row| rows.weights.map_or(1.0, |weights| weights[row])).collect();
        prepared.upward::<FUSED>(rows, range.clone(), tile);
        prepared.downward::<FUSED>(range.len(), tile, &weights, Some(&mut sums.transitions));
        prepared.add_emissions(rows, range.clone(), tile, &weights, &mut sums);
        logs.extend_from_slice(&tile.log[..range.len()]);
    }
    (logs, sums)
}

/// An E step: log p(what is known) of every row, and the expected sums from which the next parameters are solved.
pub fn step(tree: &HiddenTree, rows: &Rows) -> (Vec<f64>, Sums) {
    let (n, d, k) = (rows.codes.len() / tree.width(), tree.width(), tree.states);
    let prepared = Prepared::new(tree);
    let pieces = pieces(n, tree.width());
    let found = of_pieces(pieces.len(), 3 * n * d * k * k, &prepared, |tile, i| {
        dispatch!(step_piece(&prepared, rows, pieces[i].clone(), tile))
    });
    let (mut logs, mut total) = (Vec::with_capacity(n), prepared.sums());
    for (part, sums) in found {
        logs.extend(part);
        for (total, part) in [
            (&mut total.root, sums.root),
            (&mut total.transitions, sums.transitions),
            (&mut total.levels, sums.levels),
            (&mut total.score, sums.score),
            (&mut total.square, sums.square),
        ] {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
    }
    // times the tables, and without the padding
    let stride = prepared.stride;
    let lines = (0..d * k).map(|line| (line / k * stride + line % k) * stride);
    total.transitions = lines
        .enumerate()
        .flat_map(|(line, at)| {
            let table = &tree.transitions[line * k..][..k];
            total.transitions[at..at + k].iter().zip(table).map(|(count, t)| count * t).collect::<Vec<_>>()
        })
        .collect();
    (logs, total)
}

#[inline(always)]
fn posterior_piece<const FUSED: bool>(
    prepared: &Prepared,
    rows: &Rows,
    range: Range<usize>,
    columns: &[usize],
) -> Vec<f64> {
    let (mut tile, k, stride) = (prepared.tile(), prepared.tree.states, prepared.stride);
    let mut out = Vec::with_capacity(range.len() * columns.len() * k);
    for range in tiles(range) {
        let n = range.len();
        prepared.upward::<FUSED>(rows, range, &mut tile);
        prepared.downward::<FUSED>(n, &mut tile, &[1.0; TILE], None);
        for row in 0..n {
            for &column in columns {
                out.extend_from_slice(&tile.posterior[(column * TILE + row) * stride..][..k]);
            }
        }
    }
    out
}

/// p(state | what is known of the row) of some columns: rows × columns × states.
pub fn posteriors(tree: &HiddenTree, rows: &Rows, columns: &[usize]) -> Vec<f64> {
    let n = rows.codes.len() / tree.width();
    let prepared = Prepared::new(tree);
    let pieces = pieces(n, tree.width());
    let steps = 2 * n * tree.width() * tree.states * tree.states;
    threads::map(pieces.len(), steps, |i| dispatch!(posterior_piece(&prepared, rows, pieces[i].clone(), columns)))
        .concat()
}

/// What columns are like in every state, on whatever support answers have.
pub struct Supports<'a> {
    /// how many values every column has
    pub sizes: &'a [i32],
    /// column after column: states × values
    pub tables: &'a [f64],
}

impl Supports<'_> {
    /// Whether there is a table of every column.
    pub fn fit(&self, tree: &HiddenTree) -> bool {
        self.sizes.len() == tree.width()
            && self.sizes.iter().all(|&size| size > 0)
            && self.sizes.iter().map(|&size| size as usize).sum::<usize>() * tree.states == self.tables.len()
    }

    /// Tables whose lines are padded, and where each begins.
    fn padded(&self, states: usize) -> (Vec<f64>, Vec<usize>) {
        let (mut tables, mut starts, mut rest) = (vec![], vec![], self.tables);
        for &size in self.sizes {
            let size = size as usize;
            let (own, after) = rest.split_at(states * size);
            rest = after;
            starts.push(tables.len());
            for line in own.chunks_exact(size) {
                tables.extend_from_slice(line);
                tables.resize(tables.len().next_multiple_of(LANES), 0.0);
            }
        }
        (tables, starts)
    }
}

/// The likelihood of what lies below a column, without its own cell, of every state, into `below`; and what was divided out.
fn likelihood_below(tile: &Tile, children: &[usize], (n, stride): (usize, usize), below: &mut [f64]) -> [f64; TILE] {
    let mut log = [0.0; TILE];
    below.fill(1.0);
    for children in children.chunks(CHILDREN) {
        for &child in children {
            let message = &tile.message[child * TILE * stride..][..n * stride];
            below.iter_mut().zip(message).for_each(|(b, m)| *b *= m);
        }
        scale(below, stride, &mut log);
    }
    log
}

#[inline(always)]
fn left_out_tile<const FUSED: bool>(
    prepared: &Prepared,
    rows: &Rows,
    range: Range<usize>,
    supports: &Supports,
    (tables, starts): (&[f64], &[usize]),
    tile: &mut Tile,
) -> (Vec<f64>, Vec<f64>) {
    let (tree, stride, n) = (prepared.tree, prepared.stride, range.len());
    let (d, k, size) = (tree.width(), tree.states, TILE * stride);
    let places = offsets(supports.sizes);
    let all = places[d];
    let (mut logs, mut found) = (vec![0.0; n * d], vec![0.0; n * all]);
    let (mut above, mut below) = (vec![0.0; n * stride], vec![0.0; n * stride]);
    let widest = supports.sizes.iter().copied().max().unwrap_or(0) as usize;
    let mut values = vec![0.0; n * widest.next_multiple_of(LANES)];
    prepared.upward::<FUSED>(rows, range.clone(), tile);
    for &column in tree.order {
        let column = column as usize;
        prepared.descend::<FUSED>(column, n, tile, &mut above);
        let belief = &tile.belief[column * size..][..n * stride];
        let posterior = &mut tile.posterior[column * size..][..n * stride];
        posterior.iter_mut().zip(above.iter().zip(belief)).for_each(|(own, (a, b))| *own = a * b);
        let mut whole = [0.0; TILE];
        for (own, whole) in posterior.chunks_exact_mut(stride).zip(&mut whole) {
            *whole = divide(own);
        }
        let there = |i: &usize| rows.codes[(range.start + i) * d + column] >= 0;
        if !(0..n).any(|i| there(&i)) {
            continue;
        }
        let taken_out = likelihood_below(tile, &prepared.children[column], (n, stride), &mut below);
        above.iter_mut().zip(&below).for_each(|(own, b)| *own *= b);
        for (i, own) in above.chunks_exact_mut(stride).enumerate() {
            let without = divide(own).ln() + taken_out[i];
            if there(&i) {
                let with = whole[i].ln() + tile.taken_out[column * TILE + i];
                let log = tile.log[i] + without - with;
                logs[i * d + column] = if log.is_nan() { f64::NEG_INFINITY } else { log };
            }
        }
        let width = supports.sizes[column] as usize;
        let padded = width.next_multiple_of(LANES);
        let values = &mut values[..n * padded];
        values.fill(0.0);
        multiply::<FUSED>(&above, (stride, 1), (n, k), &tables[starts[column]..], padded, values);
        for i in (0..n).filter(there) {
            found[i * all + places[column]..][..width].copy_from_slice(&values[i * padded..][..width]);
        }
    }
    (logs, found)
}

/// Leaves every observed cell out of its row: log p(the other cells), rows × columns, and the distribution of the cell given the
/// others, rows × the values of all columns, one after the other. 0 of cells that are not observed.
pub fn left_out(tree: &HiddenTree, rows: &Rows, supports: &Supports) -> (Vec<f64>, Vec<f64>) {
    let n = rows.codes.len() / tree.width();
    let prepared = Prepared::new(tree);
    let (tables, starts) = supports.padded(tree.states);
    let steps = 3 * n * tree.width() * tree.states * tree.states;
    let of_tile = |tile: &mut Tile, i: usize| {
        let range = i * TILE..((i + 1) * TILE).min(n);
        dispatch!(left_out_tile(&prepared, rows, range, supports, (&tables, &starts), tile))
    };
    let (logs, found): (Vec<_>, Vec<_>) = of_pieces(n.div_ceil(TILE), steps, &prepared, of_tile).into_iter().unzip();
    (logs.concat(), found.concat())
}

#[inline(always)]
fn draw_piece<const FUSED: bool>(prepared: &Prepared, rows: &Rows, range: Range<usize>, seed: u64) -> Vec<i16> {
    let (tree, stride, d) = (prepared.tree, prepared.stride, prepared.tree.width());
    let mut tile = prepared.tile();
    let mut out = vec![0; range.len() * d];
    let first = range.start;
    for range in tiles(range) {
        prepared.upward::<FUSED>(rows, range.clone(), &mut tile);
        for (i, row) in range.enumerate() {
            let states = &mut out[(row - first) * d..][..d];
            for &column in tree.order {
                let column = column as usize;
                let belief = &tile.belief[(column * TILE + i) * stride..][..stride];
                let line = match usize::try_from(tree.parents[column]) {
                    Ok(parent) => &prepared.down[(column * stride + states[parent] as usize) * stride..][..stride],
                    Err(_) => &prepared.root[..],
                };
                let share = uniform(seed, row, column);
                states[column] = choose(line.iter().zip(belief).map(|(p, b)| p * b), share) as i16;
            }
        }
    }
    out
}

/// Draws the hidden states of every row, given what is known of it: rows × columns.
pub fn draw(tree: &HiddenTree, rows: &Rows, seed: u64) -> Vec<i16> {
    let n = rows.codes.len() / tree.width();
    let prepared = Prepared::new(tree);
    let pieces = pieces(n, tree.width());
    let steps = n * tree.width() * tree.states * tree.states;
    threads::map(pieces.len(), steps, |i| dispatch!(draw_piece(&prepared, rows, pieces[i].clone(), seed))).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three columns, the middle one a number with one repeated value, and two states: small enough to add up all states.
    struct Small {
        root: Vec<f64>,
        transitions: Vec<f64>,
        probabilities: Vec<f64>,
    }

    const PARENTS: [i32; 3] = [-1, 0, 1];
    const ORDER: [i32; 3] = [0, 1, 2];
    const LEVELS: [i32; 3] = [2, 2, 3];
    const NUMBERS: [i32; 3] = [-1, 0, -1];
    const MEAN: [f64; 2] = [-0.5, 1.0];
    const VARIANCE: [f64; 2] = [0.3, 0.8];

    impl Small {
        fn new() -> Self {
            Self {
                root: vec![0.3, 0.7],
                transitions: vec![0.5, 0.5, 0.5, 0.5, 0.9, 0.1, 0.4, 0.6, 0.2, 0.8, 0.7, 0.3],
                probabilities: vec![0.1, 0.8, 0.9, 0.2, 0.4, 0.25, 0.6, 0.75, 0.2, 0.5, 0.3, 0.25, 0.5, 0.25],
            }
        }

        fn tree(&self) -> HiddenTree<'_> {
            HiddenTree {
                states: 2,
                parents: &PARENTS,
                order: &ORDER,
                root: &self.root,
                transitions: &self.transitions,
                levels: &LEVELS,
                probabilities: &self.probabilities,
                numbers: &NUMBERS,
                mean: &MEAN,
                variance: &VARIANCE,
            }
        }

        /// The likelihood of a cell in a state, over the standard normal density where it is a score.
        fn cell(&self, column: usize, code: i16, z: f64, state: usize) -> f64 {
            if code < 0 {
                return 1.0;
            }
            let start = [0, 2, 4][column];
            let p = self.probabilities[(start + code as usize) * 2 + state];
            if column == 1 && code == 1 {
                let away = z - MEAN[state];
                return p * (-0.5 * away * away / VARIANCE[state] + 0.5 * z * z).exp() / VARIANCE[state].sqrt();
            }
            p
        }
    }

    #[test]
    fn passes_over_the_tree_are_sums_over_all_states() {
        let small = Small::new();
        let tree = small.tree();
        let codes: Vec<i16> = (0..3 * 3 * 4).flat_map(|i| [i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1]).collect();
        let scores: Vec<f64> = (0..36).map(|i| f64::from(i) / 10.0 - 1.5).collect();
        let weights: Vec<f64> = (0..36).map(|i| 0.5 + f64::from(i % 4)).collect();
        let rows = Rows { codes: &codes, scores: &scores, evidence: None, weights: Some(&weights) };
        assert!(tree.fit() && tree.takes(&rows));
        let (logs, sums) = step(&tree, &rows);
        let posterior = posteriors(&tree, &rows, &[0, 1, 2]);
        assert_eq!(logs, log_densities(&tree, &rows));
        let (mut root, mut pairs, mut score) = ([0.0; 2], [0.0; 12], [0.0; 2]);
        for (i, row) in codes.chunks_exact(3).enumerate() {
            let mut all = vec![];
            for s in 0..8 {
                let h = [s % 2, s / 2 % 2, s / 4];
                let cells: f64 = (0..3).map(|j| small.cell(j, row[j], scores[i], h[j])).product();
                let moves = small.transitions[4 + h[0] * 2 + h[1]] * small.transitions[8 + h[1] * 2 + h[2]];
                all.push((h, small.root[h[0]] * moves * cells));
            }
            let total: f64 = all.iter().map(|(_, p)| p).sum();
            assert!((logs[i] - total.ln()).abs() < 1e-13, "{row:?} {} {}", logs[i], total.ln());
            for (h, p) in all {
                let share = p / total;
                root[h[0]] += weights[i] * share;
                pairs[4 + h[0] * 2 + h[1]] += weights[i] * share;
                pairs[8 + h[1] * 2 + h[2]] += weights[i] * share;
                if row[1] == 1 {
                    score[h[1]] += weights[i] * share * scores[i];
                }
            }
            for column in 0..3 {
                let own = &posterior[(i * 3 + column) * 2..][..2];
                assert!((own[0] + own[1] - 1.0).abs() < 1e-14);
            }
        }
        for (got, want) in sums.root.iter().zip(root).chain(sums.score.iter().zip(score)) {
            assert!((got - want).abs() < 1e-11, "{got} {want}");
        }
        for (got, want) in sums.transitions[4..].iter().zip(&pairs[4..]) {
            assert!((got - want).abs() < 1e-11, "{got} {want}");
        }
        assert!(
            (sums.levels.iter().sum::<f64>()
                - (0..36)
                    .map(|i| { weights[i] * codes[i * 3..][..3].iter().filter(|&&code| code >= 0).count() as f64 })
                    .sum::<f64>())
            .abs()
                < 1e-9
        );
    }

    #[test]
    fn a_cell_that_is_left_out_is_a_cell_that_is_hidden() {
        let small = Small::new();
        let tree = small.tree();
        let codes: Vec<i16> = (0..3 * 3 * 4).flat_map(|i| [i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1]).collect();
        let scores: Vec<f64> = (0..36).map(|i| f64::from(i) / 10.0 - 1.5).collect();
        let rows = Rows { codes: &codes, scores: &scores, evidence: None, weights: None };
        let tables = [0.1, 0.9, 0.8, 0.2, 0.5, 0.2, 0.3, 0.1, 0.1, 0.8, 0.6, 0.4, 0.0, 1.0];
        let supports = Supports { sizes: &[2, 3, 2], tables: &tables };
        assert!(supports.fit(&tree) && !Supports { sizes: &[2, 2, 3], tables: &tables[1..] }.fit(&tree));
        let (logs, found) = left_out(&tree, &rows, &supports);
        let mut at = 0;
        for (column, width) in [2, 3, 2].into_iter().enumerate() {
            let mut hidden = codes.clone();
            hidden.iter_mut().skip(column).step_by(3).for_each(|code| *code = -1);
            let rows = Rows { codes: &hidden, scores: &scores, evidence: None, weights: None };
            let (want, states) = (log_densities(&tree, &rows), posteriors(&tree, &rows, &[column]));
            for (row, code) in codes.iter().skip(column).step_by(3).enumerate() {
                let found = &found[row * 7 + at..][..width];
                if *code < 0 {
                    assert!(logs[row * 3 + column] == 0.0 && found.iter().all(|&p| p == 0.0));
                    continue;
                }
                assert!((logs[row * 3 + column] - want[row]).abs() < 1e-13);
                for (x, p) in found.iter().enumerate() {
                    let table = &tables[2 * at..];
                    let want = states[row * 2] * table[x] + states[row * 2 + 1] * table[width + x];
                    assert!((p - want).abs() < 1e-14, "{row} {column} {p} {want}");
                }
            }
            at += width;
        }
    }

    #[test]
    fn states_are_drawn_as_often_as_they_are_likely() {
        let small = Small::new();
        let tree = small.tree();
        let n = 40_000;
        let (codes, scores) = ([1i16, 1, -1].repeat(n), vec![0.4; n]);
        let rows = Rows { codes: &codes, scores: &scores, evidence: None, weights: None };
        let drawn = draw(&tree, &rows, 3);
        let posterior = posteriors(&tree, &rows, &[0, 1, 2]);
        for column in 0..3 {
            let p = posterior[column * 2 + 1];
            let count = drawn.chunks_exact(3).filter(|row| row[column] == 1).count() as f64;
            assert!((count - n as f64 * p).abs() < 5.0 * (n as f64 * p * (1.0 - p)).sqrt(), "{column} {count} {p}");
        }
    }
}
