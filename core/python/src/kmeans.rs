//! k-means as Python functions. Rows are a matrix of float32 or float64, or the three arrays of a sparse one.

use crate::signals::watched;
use crate::{bad_cell, check_sizes};
use likely_kernels::kmeans::lloyd::{Settings, distances, nearest, run};
use likely_kernels::kmeans::order::order;
use likely_kernels::kmeans::points::Dense;
use likely_kernels::kmeans::real::Real;
use likely_kernels::kmeans::sparse::Sparse;
use likely_kernels::kmeans::starts::plus_plus;
use likely_kernels::source::{Domain, Matrix, Source};
use ndarray::ArrayView2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Starts of rows, columns, values, and how many columns there are.
type SparseArrays<'py, T> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i32>, PyReadonlyArray1<'py, T>, usize);

#[derive(FromPyObject)]
enum Rows<'py> {
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

fn sparse<'a, T: numpy::Element + likely_kernels::source::Cell>(
    arrays: &'a SparseArrays<T>,
) -> PyResult<Sparse<'a, T>> {
    Sparse::new(arrays.0.as_slice()?, arrays.1.as_slice()?, arrays.2.as_slice()?, arrays.3)
        .ok_or_else(|| PyValueError::new_err("the sparse matrix is broken: its index arrays do not fit together"))
}

/// Runs `$body` with `$points` bound to the rows, `$sparse` to whether they are sparse, the interpreter released.
macro_rules! with_points {
    ($py:expr, $x:expr, $origin:expr, $holes:expr, ($points:ident, $sparse:ident) => $body:expr) => {{
        let (origin, holes): (&[f64], bool) = ($origin, $holes);
        match $x {
            // Scores in float32 need an origin that float32 holds exactly.
            Rows::Single(x) if origin.iter().all(|&o| f64::from(o as f32) == o) => {
                let ($points, $sparse) = (&Dense::<f32, f32>::new(x.as_array(), origin, holes), false);
                $py.detach(|| $body)
            }
            Rows::Single(x) => {
                let ($points, $sparse) = (&Dense::<f32, f64>::new(x.as_array(), origin, holes), false);
                $py.detach(|| $body)
            }
            Rows::Double(x) => {
                let ($points, $sparse) = (&Dense::<f64, f64>::new(x.as_array(), origin, holes), false);
                $py.detach(|| $body)
            }
            Rows::SparseSingle(x) => {
                let ($points, $sparse) = (&sparse(x)?, true);
                $py.detach(|| $body)
            }
            Rows::SparseDouble(x) => {
                let ($points, $sparse) = (&sparse(x)?, true);
                $py.detach(|| $body)
            }
        }
    }};
}

fn check(x: &Rows, origin: &[f64], centres: &[f64], weights: Option<&[f64]>) -> PyResult<()> {
    let (rows, columns) = x.shape();
    if u32::try_from(rows).is_err() || columns == 0 || centres.is_empty() {
        return Err(PyValueError::new_err("expected fewer than 2^32 rows, a column and a centre at least"));
    }
    check_sizes(&[(origin.len(), columns), (centres.len() % columns, 0), (weights.map_or(rows, <[f64]>::len), rows)])
}

/// How much work it is to score all rows by centres of so many numbers.
fn steps(x: &Rows, centres: usize) -> usize {
    x.shape().0.saturating_mul(centres)
}

type Outcomes<'py> =
    (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray2<f64>>, f64, usize, bool, f64, Bound<'py, PyArray1<f64>>);

/// Labels, centres less the origin, inertia, iterations, whether no label changed in the end, how far the centres moved last
/// (squares, added up), and the inertia before each movement (if `course`). None if there is a cell that is no finite number,
/// or might be: only if `holes` is None, which means that nobody has looked for any.
#[pyfunction]
fn kmeans_run<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    origin: PyReadonlyArray1<'py, f64>,
    holes: Option<bool>,
    start: PyReadonlyArray2<'py, f64>,
    iterations: usize,
    tolerance: f64,
    course: bool,
) -> PyResult<Option<Outcomes<'py>>> {
    let (origin, start) = (origin.as_slice()?, start.as_slice()?.to_vec());
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    check(&x, origin, &start, weights)?;
    let shape = [start.len() / origin.len(), origin.len()];
    let settings = Settings { iterations, tolerance, unread: holes.is_none(), course };
    let steps = steps(&x, start.len());
    let outcome = with_points!(py, &x, origin, holes.unwrap_or(false), (points, sparse) => {
        watched(steps, |stop| run(points, weights, start, &settings, sparse, stop))
    })?;
    let Some(outcome) = outcome else { return Ok(None) };
    Ok(Some((
        outcome.labels.into_pyarray(py),
        outcome.centres.into_pyarray(py).reshape(shape)?,
        outcome.inertia,
        outcome.iterations,
        outcome.settled,
        outcome.shift,
        outcome.course.into_pyarray(py),
    )))
}

/// The nearest centre (less the origin) of each row, and the inertia if it is wanted, else NaN.
#[pyfunction]
fn kmeans_nearest<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    origin: PyReadonlyArray1<'py, f64>,
    holes: bool,
    centres: PyReadonlyArray2<'py, f64>,
    wanted: bool,
) -> PyResult<(Bound<'py, PyArray1<i32>>, f64)> {
    let (origin, centres) = (origin.as_slice()?, centres.as_slice()?.to_vec());
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    check(&x, origin, &centres, weights)?;
    let steps = steps(&x, centres.len());
    let (labels, inertia) = with_points!(py, &x, origin, holes, (points, sparse) => {
        watched(steps, |stop| nearest(points, weights, centres, sparse, wanted, stop))
    })?;
    Ok((labels.into_pyarray(py), inertia))
}

/// The squared distance of each row from each centre (less the origin) over the cells that are there.
#[pyfunction]
fn kmeans_distances<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    origin: PyReadonlyArray1<'py, f64>,
    holes: bool,
    centres: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (origin, centres) = (origin.as_slice()?, centres.as_slice()?);
    check(&x, origin, centres, None)?;
    let shape = [x.shape().0, centres.len() / origin.len()];
    let steps = steps(&x, centres.len());
    let squares = with_points!(py, &x, origin, holes, (points, _sparse) => {
        watched(steps, |stop| distances(points, centres, stop))
    })?;
    squares.into_pyarray(py).reshape(shape)
}

/// The numbers of rows to start from, by k-means++: one for each line of chances, which are random numbers from 0 to 1 and
/// fall on rows in the given order.
#[pyfunction]
fn kmeans_plus_plus<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    origin: PyReadonlyArray1<'py, f64>,
    holes: bool,
    order: PyReadonlyArray1<'py, i64>,
    chances: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (origin, trials) = (origin.as_slice()?, chances.shape()[1]);
    let chances = chances.as_slice()?;
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    check(&x, origin, origin, weights)?;
    let (order, rows) = (order.as_slice()?, x.shape().0);
    check_sizes(&[(order.len(), rows)])?;
    if trials == 0 || chances.is_empty() || rows == 0 || !order.iter().all(|&row| (row as usize) < rows) {
        return Err(PyValueError::new_err("expected a row and a chance at least, and an order of all rows"));
    }
    let steps = steps(&x, chances.len() * origin.len());
    let rows = with_points!(py, &x, origin, holes, (points, _sparse) => {
        watched(steps, |stop| plus_plus(points, weights, order, trials, chances, stop))
    })?;
    Ok(rows.into_pyarray(py))
}

/// The numbers of the rows by their places along a direction, and of each whether it differs from the one before it.
#[pyfunction]
fn kmeans_order<'py>(
    py: Python<'py>,
    x: Rows<'py>,
    direction: PyReadonlyArray1<'py, f64>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<bool>>)> {
    let direction = direction.as_slice()?;
    check(&x, direction, direction, None)?;
    let (rows, fresh) = with_points!(py, &x, direction, true, (points, _sparse) => order(points, direction));
    Ok((rows.into_pyarray(py), fresh.into_pyarray(py)))
}

/// Whether cells are missing; an infinite one is refused.
#[pyfunction]
fn kmeans_holes<'py>(py: Python<'py>, x: Rows<'py>) -> PyResult<bool> {
    let matrix = match &x {
        Rows::Single(x) => Matrix::F32(x.as_array()),
        Rows::Double(x) => Matrix::F64(x.as_array()),
        _ => return Ok(false),
    };
    let source = Source { matrix, columns: None, domain: Domain::Real };
    py.detach(|| {
        let whole = match &source.matrix {
            Matrix::F32(view) => all_finite(view, |x| x * 0.0),
            Matrix::F64(view) => all_finite(view, |x| x * 0.0),
            _ => true,
        };
        if whole { Ok(false) } else { source.first_infinite().map_or(Ok(true), Err) }
    })
    .map_err(bad_cell)
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

pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(kmeans_run, m)?)?;
    m.add_function(wrap_pyfunction!(kmeans_nearest, m)?)?;
    m.add_function(wrap_pyfunction!(kmeans_distances, m)?)?;
    m.add_function(wrap_pyfunction!(kmeans_plus_plus, m)?)?;
    m.add_function(wrap_pyfunction!(kmeans_order, m)?)?;
    m.add_function(wrap_pyfunction!(kmeans_holes, m)?)
}
