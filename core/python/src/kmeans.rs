//! k-means as Python functions. Rows are a matrix of float32 or float64, or the three arrays of a sparse one.

use crate::arrays::{
    Answer, Array1, Array2, Table, Vector, Weights, broken_sparse, check_sizes, matrix, refuse, watched,
};
use likely_kernels::kmeans::lloyd::{Settings, distances, nearest, run};
use likely_kernels::kmeans::order::order;
use likely_kernels::kmeans::points::Dense;
use likely_kernels::kmeans::real::Real;
use likely_kernels::kmeans::sparse::Sparse;
use likely_kernels::kmeans::starts::plus_plus;
use likely_kernels::source::{Cell, Domain, Matrix, Source};
use ndarray::ArrayView2;
use numpy::{Element, IntoPyArray, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Starts of rows, columns, values, and how many columns there are.
type SparseArrays<'py, T> = (Vector<'py, i64>, Vector<'py, i32>, Vector<'py, T>, usize);

#[derive(FromPyObject)]
pub enum Rows<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
    SparseSingle(SparseArrays<'py, f32>),
    SparseDouble(SparseArrays<'py, f64>),
}

impl Rows<'_> {
    fn shape(&self) -> (usize, usize) {
        match self {
            Self::Single(x) => (x.shape()[0], x.shape()[1]),
            Self::Double(x) => (x.shape()[0], x.shape()[1]),
            Self::SparseSingle(x) => (x.0.len().saturating_sub(1), x.3),
            Self::SparseDouble(x) => (x.0.len().saturating_sub(1), x.3),
        }
    }
}

fn sparse<'a, T: Element + Cell>((starts, columns, values, width): &'a SparseArrays<T>) -> Answer<Sparse<'a, T>> {
    Ok(Sparse::new(starts, columns, values, *width).ok_or_else(broken_sparse)?)
}

/// Runs `$body` with `$points` bound to the rows, `$sparse` to whether they are sparse, the interpreter released.
macro_rules! with_points {
    ($py:expr, $x:expr, $origin:expr, $missing:expr, ($points:ident, $sparse:ident) => $body:expr) => {{
        let (origin, missing): (&[f64], bool) = ($origin, $missing);
        match $x {
            // Scores in float32 need an origin that float32 holds exactly.
            Rows::Single(x) if origin.iter().all(|&o| f64::from(o as f32) == o) => {
                with_points!(@run $py, Dense::<f32, f32>::new(x.as_array(), origin, missing), false, $points, $sparse, $body)
            }
            Rows::Single(x) => {
                with_points!(@run $py, Dense::<f32, f64>::new(x.as_array(), origin, missing), false, $points, $sparse, $body)
            }
            Rows::Double(x) => {
                with_points!(@run $py, Dense::<f64, f64>::new(x.as_array(), origin, missing), false, $points, $sparse, $body)
            }
            Rows::SparseSingle(x) => with_points!(@run $py, sparse(x)?, true, $points, $sparse, $body),
            Rows::SparseDouble(x) => with_points!(@run $py, sparse(x)?, true, $points, $sparse, $body),
        }
    }};
    (@run $py:expr, $rows:expr, $is_sparse:expr, $points:ident, $sparse:ident, $body:expr) => {{
        let ($points, $sparse) = (&$rows, $is_sparse);
        $py.detach(|| $body)
    }};
}

fn check(x: &Rows, origin: &[f64], centres: &[f64], weights: Option<&[f64]>) -> Answer<()> {
    let (rows, columns) = x.shape();
    if u32::try_from(rows).is_err() || columns == 0 || centres.is_empty() {
        return refuse("expected fewer than 2^32 rows, a column and a centre at least");
    }
    check_sizes(&[(origin.len(), columns), (centres.len() % columns, 0), (weights.map_or(rows, <[f64]>::len), rows)])
}

/// How much work it is to score all rows by centres of so many numbers.
fn steps(x: &Rows, centres: usize) -> usize {
    x.shape().0.saturating_mul(centres)
}

type Outcomes<'py> = (Array1<'py, i32>, Array2<'py>, f64, usize, bool, f64, Array1<'py>);

/// Labels, centres less the origin, inertia, iterations, whether no label changed in the end, how far the centres moved last
/// (squares, added up), and the inertia before each movement (if `course`). None if there is a cell that is no finite number,
/// or might be: only if `missing` is None, which means that nobody has looked for any.
#[pyfunction]
pub fn kmeans_run<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    weights: Weights<'py>,
    origin: Vector<'py>,
    missing: Option<bool>,
    start: Table<'py>,
    iterations: usize,
    tolerance: f64,
    course: bool,
) -> Answer<Option<Outcomes<'py>>> {
    let (origin, start) = (&*origin, start.to_vec());
    let weights = weights.as_deref();
    check(&x, origin, &start, weights)?;
    let (clusters, columns) = (start.len() / origin.len(), origin.len());
    let settings = Settings { iterations, tolerance, unread: missing.is_none(), course };
    let steps = steps(&x, start.len());
    let outcome = with_points!(py, &x, origin, missing.unwrap_or(false), (points, sparse) => {
        watched(steps, |stop| run(points, weights, start, &settings, sparse, stop))
    })?;
    let Some(outcome) = outcome else { return Ok(None) };
    Ok(Some((
        outcome.labels.into_pyarray(py),
        matrix(py, outcome.centres, clusters, columns)?,
        outcome.inertia,
        outcome.iterations,
        outcome.settled,
        outcome.shift,
        outcome.course.into_pyarray(py),
    )))
}

/// The nearest centre (less the origin) of each row, and the inertia if it is wanted, else NaN.
#[pyfunction]
pub fn kmeans_nearest<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    weights: Weights<'py>,
    origin: Vector<'py>,
    missing: bool,
    centres: Table<'py>,
    wanted: bool,
) -> Answer<(Array1<'py, i32>, f64)> {
    let (origin, centres) = (&*origin, centres.to_vec());
    let weights = weights.as_deref();
    check(&x, origin, &centres, weights)?;
    let steps = steps(&x, centres.len());
    let (labels, inertia) = with_points!(py, &x, origin, missing, (points, sparse) => {
        watched(steps, |stop| nearest(points, weights, centres, sparse, wanted, stop))
    })?;
    Ok((labels.into_pyarray(py), inertia))
}

/// The squared distance of each row from each centre (less the origin) over the cells that are there.
#[pyfunction]
pub fn kmeans_distances<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    origin: Vector<'py>,
    missing: bool,
    centres: Table<'py>,
) -> Answer<Array2<'py>> {
    let (origin, centres) = (&*origin, &*centres);
    check(&x, origin, centres, None)?;
    let steps = steps(&x, centres.len());
    let squares = with_points!(py, &x, origin, missing, (points, _sparse) => {
        watched(steps, |stop| distances(points, centres, stop))
    })?;
    matrix(py, squares, x.shape().0, centres.len() / origin.len())
}

/// The numbers of rows to start from, by k-means++: one for each line of chances, which are random numbers from 0 to 1 and
/// fall on rows in the given order.
#[pyfunction]
pub fn kmeans_plus_plus<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    weights: Weights<'py>,
    origin: Vector<'py>,
    missing: bool,
    order: Vector<'py, i64>,
    chances: Table<'py>,
) -> Answer<Array1<'py, i64>> {
    let (origin, trials, chances) = (&*origin, chances.shape()[1], &*chances);
    let weights = weights.as_deref();
    check(&x, origin, origin, weights)?;
    let (order, rows) = (&*order, x.shape().0);
    check_sizes(&[(order.len(), rows)])?;
    if trials == 0 || chances.is_empty() || rows == 0 || !order.iter().all(|&row| (row as usize) < rows) {
        return refuse("expected a row and a chance at least, and an order of all rows");
    }
    let steps = steps(&x, chances.len() * origin.len());
    let rows = with_points!(py, &x, origin, missing, (points, _sparse) => {
        watched(steps, |stop| plus_plus(points, weights, order, trials, chances, stop))
    })?;
    Ok(rows.into_pyarray(py))
}

/// The numbers of the rows by their projections on a direction, and of each whether it differs from the one before it.
#[pyfunction]
pub fn kmeans_order<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    direction: Vector<'py>,
) -> Answer<(Array1<'py, i64>, Array1<'py, bool>)> {
    let direction = &*direction;
    check(&x, direction, direction, None)?;
    let (rows, fresh) = with_points!(py, &x, direction, true, (points, _sparse) => order(points, direction));
    Ok((rows.into_pyarray(py), fresh.into_pyarray(py)))
}

/// Whether cells are missing; an infinite one is refused.
#[pyfunction]
pub fn kmeans_missing<'py>(py: Python<'py>, x: Rows<'py>) -> Answer<bool> {
    let matrix = match &x {
        Rows::Single(x) => Matrix::F32(x.as_array()),
        Rows::Double(x) => Matrix::F64(x.as_array()),
        _ => return Ok(false),
    };
    let source = Source { matrix, columns: None, domain: Domain::Real };
    Ok(py.detach(|| {
        let whole = match &source.matrix {
            Matrix::F32(view) => all_finite(view, |x| x * 0.0),
            Matrix::F64(view) => all_finite(view, |x| x * 0.0),
            _ => true,
        };
        if whole { Ok(false) } else { source.first_infinite().map_or(Ok(true), Err) }
    })?)
}

/// Whether every cell is a finite number; `nothing` makes 0 of those and NaN of others.
fn all_finite<T: Real>(view: &ArrayView2<T>, nothing: impl Fn(T) -> T + Sync + Send) -> bool {
    const BLOCK: usize = 1 << 15;
    let (rows, width) = view.dim();
    let block = (BLOCK / width.max(1)).max(1);
    let parts = likely_kernels::threads::map(rows.div_ceil(block), rows * width, |piece| {
        let part = view.slice(ndarray::s![piece * block..((piece + 1) * block).min(rows), ..]);
        if let Some(cells) = part.as_slice_memory_order() {
            let (lines, rest) = cells.as_chunks::<32>();
            let mut sums = [T::ZERO; 32];
            for line in lines {
                for (sum, &x) in sums.iter_mut().zip(line) {
                    *sum = *sum + nothing(x);
                }
            }
            sums.iter().chain(rest).fold(T::ZERO, |sum, &x| sum + nothing(x)) == T::ZERO
        } else {
            part.iter().fold(T::ZERO, |sum, &x| sum + nothing(x)) == T::ZERO
        }
    });
    parts.into_iter().all(|whole| whole)
}
