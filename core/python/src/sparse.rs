//! Counts in compressed sparse rows, as Python functions.

use crate::arrays::{Answer, Array2, Table, Vector, Weights, domain, make_assignment, refuse, scores};
use likely_kernels::sparse;
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Runs `$body` with `$rows` bound to the sparse rows, whatever the types of their arrays.
macro_rules! with_sparse {
    ($starts:expr, $indices:expr, $values:expr, $width:expr, $domain:expr, $rows:ident => $body:expr) => {
        with_sparse!(@try $starts, $indices, $values, $width, $domain, $rows => $body;
            i32 f64, i32 f32, i32 i64, i64 f64, i64 f32, i64 i64)
    };
    (@try $starts:expr, $indices:expr, $values:expr, $width:expr, $domain:expr, $rows:ident => $body:expr; $($index:ident $value:ident),*) => {{
        $(if let (Ok(indices), Ok(values)) =
            ($indices.extract::<PyReadonlyArray1<$index>>(), $values.extract::<PyReadonlyArray1<$value>>())
        {
            let (indices, values) = (indices.as_slice()?, values.as_slice()?);
            let $rows = sparse::Rows::new(&$starts, indices, values, $width, domain($domain)?)?;
            $body
        } else)* {
            return Err(PyTypeError::new_err("expected whole numbers as indices and numbers as values").into());
        }
    }};
}

/// Σ w x per class and column of a matrix in compressed sparse rows.
#[pyfunction]
pub fn collect_sparse<'py>(
    py: Python<'py>,
    starts: Vector<'py, i64>,
    indices: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    width: usize,
    domain_name: &str,
    classes: usize,
    codes: Vector<'py, i32>,
    weights: Weights<'py>,
) -> Answer<Array2<'py>> {
    // Large arrays are NumPy's own: it asks for huge pages.
    let sums = PyArray2::zeros(py, [classes, width], false);
    let mut out = sums.readwrite();
    let out = out.as_slice_mut()?;
    with_sparse!(starts, indices, values, width, domain_name, rows => {
        let assignment = make_assignment(rows.len(), classes, &codes, weights.as_deref())?;
        py.detach(|| rows.sums(&assignment, out))?;
    });
    Ok(sums)
}

/// Adds Σ x · log probability (words × classes) of a matrix in compressed sparse rows to `out`.
#[pyfunction]
pub fn score_sparse<'py>(
    py: Python<'py>,
    starts: Vector<'py, i64>,
    indices: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    domain_name: &str,
    log_probabilities: Table<'py>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> Answer<()> {
    let ([width, k], table) = (log_probabilities.shape(), &*log_probabilities);
    with_sparse!(starts, indices, values, width, domain_name, rows => {
        let out = scores(&mut out, rows.len(), k)?;
        Ok(py.detach(|| rows.score(table, k, out))?)
    })
}

/// log((count + λ) / Σ(count + λ)), from classes × words to words × classes; λ one number, per word, or per class and word.
#[pyfunction]
pub fn log_probabilities<'py>(py: Python<'py>, counts: Table<'py>, smoothing: Vector<'py>) -> Answer<Array2<'py>> {
    let ([k, words], counts, smoothing) = (counts.shape(), &*counts, &*smoothing);
    if ![1, words, k * words].contains(&smoothing.len()) {
        return refuse("the smoothing does not fit the words and classes");
    }
    let logs = PyArray2::zeros(py, [words, k], false);
    let mut out = logs.readwrite();
    let out = out.as_slice_mut()?;
    py.detach(|| sparse::log_probabilities(counts, smoothing, k, out));
    Ok(logs)
}
