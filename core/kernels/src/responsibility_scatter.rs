//! Sums of products of all pairs of columns, of rows weighted by responsibilities.
//!
//! Rows lie column by column, so that one instruction takes several of them: cells are read once for all classes. A class
//! that few of the rows belong to gets these one by one, as if it were theirs alone.

use crate::responsibilities::Responsibilities;
use crate::scatter::{self, Part, Piece, Scatter, Sums, missing_cell, padded};
use crate::simd::{dispatch_wide, fma};
use crate::source::{BadCell, Source};
use std::ops::Range;

/// Columns that are multiplied with 2 or 4 others: their products stay in registers while the rows pass by.
const SIDE: usize = 4;
/// Rows that are read together. Not a power of two: columns so far apart would get in each other's way in a cache.
const TILE: usize = 120;
/// A class that fewer than one in so many rows belong to gets them one by one.
const FEW: usize = 4;

/// Adds Σ_r u_ri u_rj, of columns one after another, to `out` (stride × stride), in the blocks on and above the diagonal.
#[inline(always)]
fn add_products<const LANES: usize, const WIDE: usize, const FUSED: bool>(u: &[f64], stride: usize, out: &mut [f64]) {
    let length = u.len() / stride; // a number that the compiler does not know: it would unroll the loop over the rows
    let column = |j: usize| u[j * length..(j + 1) * length].as_chunks::<LANES>().0;
    for j in (0..stride).step_by(WIDE) {
        let b: [&[[f64; LANES]]; WIDE] = std::array::from_fn(|w| column(j + w));
        for i in (0..j + WIDE).step_by(SIDE) {
            let a: [&[[f64; LANES]]; SIDE] = std::array::from_fn(|h| column(i + h));
            let mut block = [[[0.0; LANES]; WIDE]; SIDE];
            for r in 0..length / LANES {
                let b: [[f64; LANES]; WIDE] = b.map(|b| b[r]);
                for (block, a) in block.iter_mut().zip(a) {
                    let a = a[r];
                    for (sums, b) in block.iter_mut().zip(b) {
                        for l in 0..LANES {
                            sums[l] = fma::<FUSED>(a[l], b[l], sums[l]);
                        }
                    }
                }
            }
            for (out, block) in out[i * stride..].chunks_exact_mut(stride).zip(block) {
                for (out, sums) in out[j..j + WIDE].iter_mut().zip(block) {
                    *out += sums.iter().sum::<f64>();
                }
            }
        }
    }
}

/// Writes (x − o) √w in columns, and adds up w (x − o).
#[inline(always)]
fn centre_and_weigh<const FUSED: bool>(x: &[f64], origin: &[f64], w: &[f64; TILE], u: &mut [f64], sums: &mut [f64]) {
    const LANES: usize = 8;
    let roots: [f64; TILE] = std::array::from_fn(|r| w[r].sqrt());
    for (((x, o), u), sum) in x.chunks_exact(TILE).zip(origin).zip(u.chunks_exact_mut(TILE)).zip(sums) {
        for ((u, x), root) in u.iter_mut().zip(x).zip(&roots) {
            *u = if *root > 0.0 { (x - o) * root } else { 0.0 }; // x − o may be beyond all numbers where w is 0
        }
        let mut parts = [[0.0; LANES]; 3];
        for (u, roots) in u.as_chunks::<LANES>().0.chunks_exact(3).zip(roots.as_chunks::<LANES>().0.chunks_exact(3)) {
            for (part, (u, root)) in parts.iter_mut().zip(u.iter().zip(roots)) {
                for l in 0..LANES {
                    part[l] = fma::<FUSED>(u[l], root[l], part[l]);
                }
            }
        }
        *sum += parts.as_flattened().iter().sum::<f64>();
    }
}

/// Collects one piece, a part for each of its classes.
fn collect_piece(
    source: &Source,
    piece: &Piece,
    responsibilities: &Responsibilities,
    origin: &[f64],
) -> Result<Vec<Part>, BadCell> {
    let width = source.width();
    let stride = padded(width);
    let mut sums = Sums::new(piece, origin, width, true, false);
    // What no row and no column fills stays 0.
    let (mut columns, mut weighed) = (vec![0.0; stride * TILE], vec![0.0; stride * TILE]);
    let mut lines = vec![0.0; width * TILE];
    let mut counts = vec![0; piece.classes.len()];
    for rows in piece.counted(responsibilities).chunks(TILE) {
        count(rows, responsibilities, &piece.classes, &mut counts);
        let (many, few) = (counts.iter().any(|count| count * FEW >= rows.len()), |count| count * FEW < rows.len());
        if many && source.load_columns_of(rows, TILE, &mut columns)? {
            return Err(missing_cell(source, rows));
        }
        if counts.iter().any(|&count| count > 0 && few(count)) {
            if source.load_rows(rows.iter().copied(), width, &mut lines)? {
                return Err(missing_cell(source, rows));
            }
            if !many {
                sums.take_rows(&lines, rows, responsibilities, &piece.classes);
                continue;
            }
        }
        for (index, class) in piece.classes.clone().enumerate() {
            if few(counts[index]) {
                sums.take_rows(&lines, rows, responsibilities, &(class..class + 1));
            } else {
                let w = weights(rows, responsibilities, class);
                let (part, x, u) = (&mut sums.parts[index], &columns, &mut weighed);
                let (origin, sum) = (&origin[class * width..(class + 1) * width], &mut part.sum);
                dispatch_wide!(centre_and_weigh(x, origin, &w, u, sum), centre_and_weigh(x, origin, &w, u, sum));
                let (u, product) = (&weighed, &mut part.product);
                dispatch_wide!(add_products::<8, 4>(u, stride, product), add_products::<4, 2>(u, stride, product));
                part.weight += w.iter().sum::<f64>();
            }
        }
    }
    Ok(sums.finished())
}

/// How many of some rows belong to each class.
fn count(rows: &[usize], responsibilities: &Responsibilities, classes: &Range<usize>, counts: &mut [usize]) {
    counts.fill(0);
    for &row in rows {
        let weight = responsibilities.weight(row);
        for (count, &r) in counts.iter_mut().zip(&responsibilities.of(row)[classes.clone()]) {
            *count += usize::from(Responsibilities::weighed(r, weight) > 0.0);
        }
    }
}

/// How much each of some rows counts in a class.
fn weights(rows: &[usize], responsibilities: &Responsibilities, class: usize) -> [f64; TILE] {
    let mut weights = [0.0; TILE];
    for (w, &row) in weights.iter_mut().zip(rows) {
        *w = Responsibilities::weighed(responsibilities.of(row)[class], responsibilities.weight(row));
    }
    weights
}

/// About origins that are given, classes × columns.
pub fn collect(source: &Source, responsibilities: &Responsibilities, origin: Vec<f64>) -> Result<Scatter, BadCell> {
    scatter::collect_pieces(source, responsibilities.classes, origin, false, |piece, origin| {
        collect_piece(source, piece, responsibilities, origin)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::Array2;

    /// Machines choose one of the shapes: here each is asked, without instructions that a machine may lack.
    #[test]
    fn all_shapes_multiply_alike() {
        let stride = 12;
        let u: Vec<f64> = (0..stride * TILE).map(|at| ((at * 7919) % 1009) as f64 - 500.0).collect();
        let (mut narrow, mut wide) = (vec![1.0; stride * stride], vec![1.0; stride * stride]);
        add_products::<4, 2, false>(&u, stride, &mut narrow);
        add_products::<8, 4, false>(&u, stride, &mut wide);
        for i in 0..stride {
            for j in i..stride {
                let want: f64 = 1.0 + (0..TILE).map(|r| u[i * TILE + r] * u[j * TILE + r]).sum::<f64>();
                assert_eq!((narrow[i * stride + j], wide[i * stride + j]), (want, want)); // whole numbers are exact
            }
        }
    }

    #[test]
    fn a_responsibility_of_zero_does_not_matter() {
        let x = ndarray::array![[1.5e308], [-1.5e308], [1.0], [2.0]];
        let values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let responsibilities = Responsibilities { classes: 2, values: &values, weights: None };
        let got = collect(&source(&x), &responsibilities, vec![-1e308, 1e308]).unwrap();
        assert!((got.sum[0] / 1.5e308 - 1.0).abs() < 1e-12 && (got.sum[1] / 0.5e308 - 1.0).abs() < 1e-12);
    }

    /// Of the classes, all rows belong to the first, every other one to the second, few to the third, in tiles that end
    /// with the rows and others that do not.
    #[test]
    fn equals_the_definition() {
        let (n, d, k) = (1000, 11, 3);
        let x = Array2::from_shape_fn((n, d), |(i, j)| ((i * 7 + j * j * 13) % 101) as f64);
        let responsibility =
            |i: usize, c: usize| [0.5, if i % 2 == 1 { 0.25 } else { 0.0 }, if i % 9 == 1 { 0.3 } else { 0.0 }][c];
        let values: Vec<f64> = (0..n * k).map(|at| responsibility(at / k, at % k)).collect();
        let weights: Vec<f64> = (0..n).map(|i| (i % 5) as f64).collect();
        let origin: Vec<f64> = (0..k * d).map(|at| at as f64).collect();
        let responsibilities = Responsibilities { classes: k, values: &values, weights: Some(&weights) };
        let got = collect(&source(&x), &responsibilities, origin.clone()).unwrap();
        let close = |got: f64, want: f64| assert!((got - want).abs() <= 1e-11 * (1.0 + want.abs()), "{got} {want}");
        for c in 0..k {
            let t = |i: usize, j: usize| x[[i, j]] - origin[c * d + j];
            let sum =
                |term: &dyn Fn(usize) -> f64| (0..n).map(|i| weights[i] * responsibility(i, c) * term(i)).sum::<f64>();
            close(got.weight[c], sum(&|_| 1.0));
            for a in 0..d {
                close(got.sum[c * d + a], sum(&|i| t(i, a)));
                for b in 0..d {
                    close(got.product[(c * d + a) * d + b], sum(&|i| t(i, a) * t(i, b)));
                }
            }
        }
    }
}
