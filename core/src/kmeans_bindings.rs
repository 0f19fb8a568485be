//! k-means as Python functions.

use crate::kmeans::lloyd::{Outcome, Settings, run};
use crate::kmeans::points::Dense;
use crate::source::{Matrix, typed};
use crate::{Array, check_sizes};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

type Outcomes<'py> =
    (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray2<f64>>, f64, usize, bool, Bound<'py, PyArray1<f64>>);

/// Labels, centres less the origin, inertia, iterations, whether it settled, and the share of scores that each pass needed.
#[pyfunction]
fn kmeans_run<'py>(
    py: Python<'py>,
    x: Array<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    origin: PyReadonlyArray1<'py, f64>,
    holes: bool,
    start: PyReadonlyArray2<'py, f64>,
    iterations: usize,
    tolerance: f64,
) -> PyResult<Outcomes<'py>> {
    let matrix = x.view();
    let (rows, columns) = typed!(&matrix, view => view.dim());
    let (origin, start) = (origin.as_slice()?, start.as_slice()?);
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    check_sizes(&[
        (origin.len(), columns),
        (start.len() % columns.max(1), 0),
        (weights.map_or(rows, <[f64]>::len), rows),
    ])?;
    let settings = Settings { iterations, tolerance };
    let start = start.to_vec();
    let clusters = start.len() / columns;
    let outcome: Outcome = py.detach(|| match matrix {
        Matrix::F32(view) => run(&Dense::<f32, f32>::new(view, origin, holes), weights, start, &settings, false),
        _ => typed!(matrix, view => run(&Dense::<_, f64>::new(view, origin, holes), weights, start, &settings, false)),
    });
    Ok((
        outcome.labels.into_pyarray(py),
        outcome.centres.into_pyarray(py).reshape([clusters, columns])?,
        outcome.inertia,
        outcome.iterations,
        outcome.converged,
        outcome.shares.into_pyarray(py),
    ))
}

pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(kmeans_run, m)?)
}
