//! Sums of products of all pairs of columns about an origin, per class: what a full covariance needs.

use crate::responsibilities::{Assignment, ClassWeights, origins};
use crate::simd::{dispatch, fma};
use crate::source::{BadCell, Source};
use crate::threads;
use std::ops::Range;

/// Σw, Σw t and Σw t tᵀ with t = x − o, per class. On request also Σw t² tᵀ and Σw t² t²ᵀ (squares by element),
/// from which the Ledoit–Wolf shrinkage of standardised columns follows.
pub struct Scatter {
    pub origin: Vec<f64>,
    pub weight: Vec<f64>,
    pub sum: Vec<f64>,
    pub product: Vec<f64>,
    pub cubic: Vec<f64>,
    pub quartic: Vec<f64>,
}

/// Columns that are multiplied together, with as many or [`HIGH`] others: their products stay in registers while the rows
/// pass by.
const WIDE: usize = 4;
const HIGH: usize = 8;

/// The width of a padded line: a whole number of blocks.
pub fn padded(width: usize) -> usize {
    width.div_ceil(WIDE) * WIDE
}

/// Adds Σ_r a_r b_rᵀ to `out` (stride × stride). `upper`: only the blocks on and above the diagonal.
#[inline(always)]
pub fn add_products<const FUSED: bool>(a: &[f64], b: &[f64], stride: usize, upper: bool, out: &mut [f64]) {
    let lines = a.chunks_exact(stride).zip(b.chunks_exact(stride));
    for j in (0..stride).step_by(WIDE) {
        let end = if upper { j + WIDE } else { stride };
        for i in (0..end / HIGH * HIGH).step_by(HIGH) {
            add_block::<HIGH, FUSED>(lines.clone(), stride, i, j, out);
        }
        if end % HIGH > 0 {
            add_block::<WIDE, FUSED>(lines.clone(), stride, end - WIDE, j, out);
        }
    }
}

/// Adds the products of some columns of a, from i on, and of b, from j on.
#[inline(always)]
fn add_block<'a, const HIGH: usize, const FUSED: bool>(
    lines: impl Iterator<Item = (&'a [f64], &'a [f64])>,
    stride: usize,
    i: usize,
    j: usize,
    out: &mut [f64],
) {
    let mut block = [[0.0; WIDE]; HIGH];
    for (a, b) in lines {
        let a: &[f64; HIGH] = a[i..i + HIGH].try_into().unwrap();
        let b: &[f64; WIDE] = b[j..j + WIDE].try_into().unwrap();
        for h in 0..HIGH {
            for w in 0..WIDE {
                block[h][w] = fma::<FUSED>(a[h], b[w], block[h][w]);
            }
        }
    }
    for (out, block) in out[i * stride..].chunks_exact_mut(stride).zip(&block) {
        for (out, x) in out[j..j + WIDE].iter_mut().zip(block) {
            *out += x;
        }
    }
}

/// Writes x − o times the root of w, and adds w(x − o) to the sums.
#[inline(always)]
fn centre_and_weigh<const FUSED: bool>(cells: &[f64], origin: &[f64], w: f64, line: &mut [f64], sums: &mut [f64]) {
    let root = w.sqrt();
    for ((line, sum), (x, o)) in line.iter_mut().zip(sums).zip(cells.iter().zip(origin)) {
        let t = x - o;
        *sum = fma::<FUSED>(w, t, *sum);
        *line = root * t;
    }
}

/// Adds w x to the sums, and multiplies x with the root of w.
#[inline(always)]
fn weigh<const FUSED: bool>(line: &mut [f64], w: f64, sums: &mut [f64]) {
    let root = w.sqrt();
    for (x, sum) in line.iter_mut().zip(sums) {
        *sum = fma::<FUSED>(w, *x, *sum);
        *x *= root;
    }
}

/// Writes x − o.
#[inline(always)]
fn centre(cells: &[f64], origin: &[f64], line: &mut [f64]) {
    for ((t, x), o) in line.iter_mut().zip(cells).zip(origin) {
        *t = x - o;
    }
}

/// The sums of some rows of one class, padded.
pub struct Part {
    pub weight: f64,
    pub sum: Vec<f64>,
    pub product: Vec<f64>,
    cubic: Vec<f64>,
    quartic: Vec<f64>,
}

impl Part {
    pub fn new(stride: usize, fourth: bool) -> Self {
        let square = stride * stride;
        let more = if fourth { square } else { 0 };
        Self {
            weight: 0.0,
            sum: vec![0.0; stride],
            product: vec![0.0; square],
            cubic: vec![0.0; more],
            quartic: vec![0.0; more],
        }
    }

    /// Fills the next line of a bucket with the cells of a row, about the origin, and counts it.
    #[inline(always)]
    fn take_row<const FUSED: bool>(
        &mut self,
        bucket: &mut Bucket,
        cells: &[f64],
        origin: &[f64],
        w: f64,
        stride: usize,
    ) {
        if bucket.weighted && self.quartic.is_empty() {
            centre_and_weigh::<FUSED>(cells, origin, w, bucket.line(stride), &mut self.sum);
            self.count(bucket, w, stride);
        } else {
            centre(cells, origin, bucket.line(stride));
            self.take(bucket, w, stride);
        }
    }

    /// Counts the line of a bucket that was filled last, and empties the bucket if it is full.
    pub fn take(&mut self, bucket: &mut Bucket, w: f64, stride: usize) {
        let at = bucket.rows * stride..(bucket.rows + 1) * stride;
        let numbers = bucket.t.len();
        let line = &mut bucket.t[at.clone()];
        if bucket.weighted && self.quartic.is_empty() {
            // The product of two such lines is weighed: there is no need for another that is.
            dispatch!(weigh(line, w, &mut self.sum));
        } else {
            for (sum, x) in self.sum.iter_mut().zip(line.iter()) {
                *sum += w * x;
            }
            if bucket.weighted {
                bucket.wt.resize(numbers, 0.0);
                for (to, from) in bucket.wt[at].iter_mut().zip(line) {
                    *to = w * *from;
                }
            }
        }
        self.count(bucket, w, stride);
    }

    fn count(&mut self, bucket: &mut Bucket, w: f64, stride: usize) {
        self.weight += w;
        bucket.rows += 1;
        if (bucket.rows + 1) * stride > bucket.t.len() {
            self.empty(bucket, stride);
        }
    }

    /// Adds the products of the rows in a bucket, and empties it.
    pub fn empty(&mut self, bucket: &mut Bucket, stride: usize) {
        let used = bucket.rows * stride;
        let t = &bucket.t[..used];
        let wt = if bucket.wt.is_empty() { t } else { &bucket.wt[..used] };
        dispatch!(add_products(wt, t, stride, true, &mut self.product));
        if !self.quartic.is_empty() {
            let tt: Vec<f64> = t.iter().map(|t| t * t).collect();
            let wtt: Vec<f64> = t.iter().zip(wt).map(|(t, wt)| t * wt).collect();
            dispatch!(add_products(&wtt, t, stride, false, &mut self.cubic));
            dispatch!(add_products(&wtt, &tt, stride, true, &mut self.quartic));
        }
        bucket.rows = 0;
    }

    pub fn add(&mut self, other: &Self) {
        self.weight += other.weight;
        let pairs = [
            (&mut self.sum, &other.sum),
            (&mut self.product, &other.product),
            (&mut self.cubic, &other.cubic),
            (&mut self.quartic, &other.quartic),
        ];
        for (to, from) in pairs {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
    }
}

/// Rows of one class, centred and waiting to be multiplied together.
pub struct Bucket {
    rows: usize,
    weighted: bool,
    t: Vec<f64>,
    /// Each line times its weight, where products of four cells are wanted too.
    wt: Vec<f64>,
}

impl Bucket {
    pub fn new(numbers: usize, weighted: bool) -> Self {
        Self { rows: 0, weighted, t: vec![0.0; numbers], wt: Vec::new() }
    }

    /// The line to fill next; what pads it stays 0.
    pub fn line(&mut self, stride: usize) -> &mut [f64] {
        &mut self.t[self.rows * stride..(self.rows + 1) * stride]
    }
}

/// The rows and classes that one thread collects.
pub struct Piece {
    rows: Range<usize>,
    pub classes: Range<usize>,
}

impl Piece {
    /// Its rows that belong to one of its classes.
    pub fn counted(&self, class_weights: &impl ClassWeights) -> Vec<usize> {
        self.rows.clone().filter(|&row| class_weights.counts(row, &self.classes)).collect()
    }
}

/// The sums of the classes of a piece, and the rows of each that wait.
pub struct Sums<'a> {
    classes: Range<usize>,
    /// all classes × columns
    origin: &'a [f64],
    stride: usize,
    pub parts: Vec<Part>,
    buckets: Vec<Bucket>,
}

impl<'a> Sums<'a> {
    pub fn new(piece: &Piece, origin: &'a [f64], width: usize, weighted: bool, fourth: bool) -> Self {
        let (classes, stride) = (piece.classes.clone(), padded(width));
        let capacity = (BUCKETS / (stride * classes.len()).max(1)).clamp(8, 64);
        let parts = classes.clone().map(|_| Part::new(stride, fourth)).collect();
        let buckets = classes.clone().map(|_| Bucket::new(capacity * stride, weighted)).collect();
        Self { classes, origin, stride, parts, buckets }
    }

    /// Puts rows, whose cells are given, into the buckets of those of some classes that they belong to.
    pub fn take_rows<B: ClassWeights>(
        &mut self,
        cells: &[f64],
        rows: &[usize],
        class_weights: &B,
        classes: &Range<usize>,
    ) {
        dispatch!(take_rows::<B>(self, cells, rows, class_weights, classes));
    }

    /// The sums of each class, with all rows that waited.
    pub fn finished(mut self) -> Vec<Part> {
        for (bucket, part) in self.buckets.iter_mut().zip(&mut self.parts) {
            part.empty(bucket, self.stride);
        }
        self.parts
    }
}

#[inline(always)]
fn take_rows<B: ClassWeights, const FUSED: bool>(
    sums: &mut Sums,
    cells: &[f64],
    rows: &[usize],
    class_weights: &B,
    classes: &Range<usize>,
) {
    let width = sums.origin.len() / class_weights.classes();
    for (&row, cells) in rows.iter().zip(cells.chunks_exact(width)) {
        class_weights.each(row, classes, |class, w| {
            let index = class - sums.classes.start;
            let origin = &sums.origin[class * width..(class + 1) * width];
            sums.parts[index].take_row::<FUSED>(&mut sums.buckets[index], cells, origin, w, sums.stride);
        });
    }
}

/// Rows that are read together.
const TILE: usize = 64;

/// Collects one piece, a part for each of its classes. Rows are read in their order and wait in a bucket for others of
/// their class, so that memory is read straight through and products are taken of many rows at once.
fn collect_piece(
    source: &Source,
    piece: &Piece,
    assignment: &Assignment,
    origin: &[f64],
    fourth: bool,
) -> Result<Vec<Part>, BadCell> {
    let width = source.width();
    let mut sums = Sums::new(piece, origin, width, assignment.weights.is_some(), fourth);
    let mut cells = vec![0.0; TILE * width];
    for rows in piece.counted(assignment).chunks(TILE) {
        if source.load_rows(rows.iter().copied(), width, &mut cells)? {
            return Err(missing_cell(source, rows));
        }
        sums.take_rows(&cells, rows, assignment, &piece.classes);
    }
    Ok(sums.finished())
}

/// The first missing cell of some rows.
pub fn missing_cell(source: &Source, rows: &[usize]) -> BadCell {
    let mut cells = rows.iter().flat_map(|&row| (0..source.width()).map(move |j| (row, j)));
    let (row, j) = cells.find(|&(row, j)| source.cell(row, j).is_nan()).unwrap_or((rows[0], 0));
    BadCell { row, column: source.column(j), value: f64::NAN }
}

/// Copies a padded matrix without its padding; `upper`: the lower half mirrors the upper one.
pub fn unpad(from: &[f64], width: usize, upper: bool, to: &mut Vec<f64>) {
    let stride = padded(width);
    for i in 0..width {
        for j in 0..width {
            let (i, j) = if upper && i > j { (j, i) } else { (i, j) };
            to.push(from[i * stride + j]);
        }
    }
}

/// What the sums of all pieces together may take, and the buckets of one piece, in numbers.
const ROOM: usize = 1 << 19;
const BUCKETS: usize = 1 << 15;
const SMALLEST_PIECE: usize = 2048;

/// Cuts the work: by rows where the sums of every class are small, else by classes too, so that only few sums are kept twice.
fn pieces(rows: usize, classes: usize, numbers: usize) -> Vec<Piece> {
    let at_once = classes * numbers;
    let (parts, by_class) = if 4 * at_once <= ROOM { ((ROOM / at_once).min(64), false) } else { (2, true) };
    let step = rows.div_ceil(parts).max(SMALLEST_PIECE);
    let mut pieces = vec![];
    for start in (0..rows).step_by(step) {
        let rows = start..(start + step).min(rows);
        if by_class {
            pieces.extend((0..classes).map(|class| Piece { rows: rows.clone(), classes: class..class + 1 }));
        } else {
            pieces.push(Piece { rows, classes: 0..classes });
        }
    }
    pieces
}

pub fn collect(source: &Source, assignment: &Assignment, fourth: bool) -> Result<Scatter, BadCell> {
    collect_about(source, assignment, origins(source, assignment), fourth)
}

/// About origins that are given, classes × columns.
pub fn collect_about(
    source: &Source,
    assignment: &Assignment,
    origin: Vec<f64>,
    fourth: bool,
) -> Result<Scatter, BadCell> {
    collect_pieces(source, assignment.classes, origin, fourth, |piece, origin| {
        collect_piece(source, piece, assignment, origin, fourth)
    })
}

/// The sums of pieces of the rows, and of the classes if they are many, in the order of the pieces.
pub fn collect_pieces(
    source: &Source,
    k: usize,
    origin: Vec<f64>,
    fourth: bool,
    collect_piece: impl Fn(&Piece, &[f64]) -> Result<Vec<Part>, BadCell> + Sync + Send,
) -> Result<Scatter, BadCell> {
    let (rows, width) = (source.rows(), source.width());
    let stride = padded(width);
    let numbers = stride * stride * if fourth { 3 } else { 1 };
    let pieces = if k * width == 0 { vec![] } else { pieces(rows, k, numbers) };
    let parts = threads::map(pieces.len(), rows * stride * stride, |i| collect_piece(&pieces[i], &origin));
    let mut totals: Vec<Option<Part>> = (0..k).map(|_| None).collect();
    for (parts, piece) in parts.into_iter().zip(&pieces) {
        for (part, class) in parts?.into_iter().zip(piece.classes.clone()) {
            match &mut totals[class] {
                Some(total) => total.add(&part),
                none => *none = Some(part),
            }
        }
    }
    let square = width * width;
    let more = if fourth { k * square } else { 0 };
    let mut scatter = Scatter {
        origin,
        weight: Vec::with_capacity(k),
        sum: Vec::with_capacity(k * width),
        product: Vec::with_capacity(k * square),
        cubic: Vec::with_capacity(more),
        quartic: Vec::with_capacity(more),
    };
    for total in totals {
        let total = total.unwrap_or_else(|| Part::new(stride, fourth));
        scatter.weight.push(total.weight);
        scatter.sum.extend(&total.sum[..width]);
        unpad(&total.product, width, true, &mut scatter.product);
        if fourth {
            unpad(&total.cubic, width, false, &mut scatter.cubic);
            unpad(&total.quartic, width, true, &mut scatter.quartic);
        }
    }
    Ok(scatter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::Array2;

    #[test]
    fn equals_the_definition() {
        let (n, d) = (3000, 11);
        let x = Array2::from_shape_fn((n, d), |(i, j)| ((i * 7 + j * j * 13) % 101) as f64);
        let codes: Vec<i32> = (0..n).map(|i| (i % 4) as i32 - 1).collect();
        let weights: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
        let assignment = Assignment { classes: 3, codes: &codes, weights: Some(&weights) };
        let got = collect(&source(&x), &assignment, true).unwrap();
        for c in 0..3 {
            for a in 0..d {
                for b in 0..d {
                    let mut sums = [0.0; 3];
                    for i in (0..n).filter(|&i| codes[i] == c as i32) {
                        let t = x[[i, a]] - got.origin[c * d + a];
                        let u = x[[i, b]] - got.origin[c * d + b];
                        sums[0] += weights[i] * t * u;
                        sums[1] += weights[i] * t * t * u;
                        sums[2] += weights[i] * t * t * u * u;
                    }
                    let at = (c * d + a) * d + b;
                    for (got, want) in [got.product[at], got.cubic[at], got.quartic[at]].iter().zip(sums) {
                        assert!((got - want).abs() <= 1e-9 * (1.0 + want.abs()), "{got} {want}");
                    }
                }
            }
        }
    }
}
