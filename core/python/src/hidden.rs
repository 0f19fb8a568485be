//! The functions on classes that are hidden, as seen from Python: bindings only.

use crate::{Array, Arrays, Counted, bad_cell, check_sizes, check_some, counted_columns, make_source, scores, shaped};
use likely_kernels::belonging::Shared;
use likely_kernels::source::Source;
use likely_kernels::{categories, density, diagonal_em, expected, posterior, shared_scatter, soft, tied};
use numpy::{
    PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Weight, sum and squares, about origins that are given, of rows of which a share belongs to each class.
#[pyfunction]
fn collect_shared_moments<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    shares: PyReadonlyArray2<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    origin: PyReadonlyArray2<'py, f64>,
) -> PyResult<Arrays<'py>> {
    let source = make_source(&x, columns, domain)?;
    let (k, d) = (shares.shape()[1], source.width());
    let belonging = make_shared(&source, &shares, weights.as_ref(), &origin)?;
    let origin = origin.as_slice()?.to_vec();
    let m = py.detach(|| soft::collect(&source, &belonging, origin)).map_err(bad_cell)?;
    [m.weight, m.sum, m.second].into_iter().map(|values| shaped(py, values, &[k, d])).collect()
}

/// The values of every column, and their weights (values × classes), of rows of which a share belongs to each class.
#[pyfunction]
fn collect_shared_categories<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    shares: PyReadonlyArray2<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Counted<'py>> {
    let source = make_source(&x, columns, domain)?;
    let classes = shares.shape()[1];
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    check_sizes(&[(shares.shape()[0], source.rows()), (weights.map_or(source.rows(), <[f64]>::len), source.rows())])?;
    let belonging = Shared { classes, shares: shares.as_slice()?, weights };
    let counted = py.detach(|| categories::count(&source, &belonging)).map_err(bad_cell)?;
    counted_columns(py, counted, classes)
}

/// Weight, sum and products of pairs of columns, about origins that are given, of rows of which a share belongs to each
/// class. `is_tied`: the products of all classes together are enough, of which each gets a share.
#[pyfunction]
fn collect_shared_scatter<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    shares: PyReadonlyArray2<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    origin: PyReadonlyArray2<'py, f64>,
    is_tied: bool,
) -> PyResult<Arrays<'py>> {
    let source = make_source(&x, columns, "real")?;
    let (k, d) = (shares.shape()[1], source.width());
    let belonging = make_shared(&source, &shares, weights.as_ref(), &origin)?;
    let origin = origin.as_slice()?;
    let s = py
        .detach(|| {
            let together = if is_tied { tied::collect(&source, &belonging, origin)? } else { None };
            together.map_or_else(|| shared_scatter::collect(&source, &belonging, origin.to_vec()), Ok)
        })
        .map_err(bad_cell)?;
    Ok(vec![shaped(py, s.weight, &[k])?, shaped(py, s.sum, &[k, d])?, shaped(py, s.product, &[k, d, d])?])
}

fn make_shared<'a>(
    source: &Source,
    shares: &'a PyReadonlyArray2<f64>,
    weights: Option<&'a PyReadonlyArray1<f64>>,
    origin: &PyReadonlyArray2<f64>,
) -> PyResult<Shared<'a>> {
    let classes = shares.shape()[1];
    let weights = weights.map(PyReadonlyArray1::as_slice).transpose()?;
    check_sizes(&[
        (shares.shape()[0], source.rows()),
        (weights.map_or(source.rows(), <[f64]>::len), source.rows()),
        (origin.shape()[0], classes),
        (origin.shape()[1], source.width()),
    ])?;
    Ok(Shared { classes, shares: shares.as_slice()?, weights })
}

/// Expected sums of rows with missing cells, of which a share belongs to each class, about the means of Gaussians that are
/// given: (weight, sum, product).
#[pyfunction]
fn collect_shared_expected<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    shares: PyReadonlyArray2<'py, f64>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    mean: PyReadonlyArray2<'py, f64>,
    precision: PyReadonlyArrayDyn<'py, f64>,
) -> PyResult<Arrays<'py>> {
    let source = make_source(&x, columns, "real")?;
    let (k, d) = (shares.shape()[1], source.width());
    check_some(k, d)?;
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let gaussians = expected::Gaussians { mean: mean.as_slice()?, precision: precision.as_slice()? };
    let each = if gaussians.precision.len() == d * d { d * d } else { k * d * d };
    check_sizes(&[
        (shares.shape()[0], source.rows()),
        (weights.map_or(source.rows(), <[f64]>::len), source.rows()),
        (gaussians.mean.len(), k * d),
        (gaussians.precision.len(), each),
    ])?;
    let belonging = Shared { classes: k, shares: shares.as_slice()?, weights };
    let e = py.detach(|| expected::expect_shared(&source, &belonging, &gaussians)).map_err(bad_cell)?;
    Ok(vec![shaped(py, e.weight, &[k])?, shaped(py, e.sum, &[k, d])?, shaped(py, e.product, &[k, d, d])?])
}

/// Turns log p(x, y) into p(y | x), in place, or into 1 and 0 where the class is known, and returns Σ w log p(x) and the
/// weight of every class.
#[pyfunction]
fn expect_classes<'py>(
    py: Python<'py>,
    mut joint: PyReadwriteArray2<'py, f64>,
    log_weights: PyReadonlyArray1<'py, f64>,
    codes: Option<PyReadonlyArray1<'py, i32>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
    let rows = joint.shape()[0];
    let log_weights = log_weights.as_slice()?;
    check_some(log_weights.len(), 1)?;
    let joint = scores(&mut joint, rows, log_weights.len())?;
    let codes = codes.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    check_sizes(&[(codes.map_or(rows, <[i32]>::len), rows), (weights.map_or(rows, <[f64]>::len), rows)])?;
    check_codes(codes, log_weights.len())?;
    let (told, counts) = py.detach(|| posterior::expect(joint, log_weights, codes, weights));
    Ok((told, PyArray1::from_vec(py, counts)))
}

/// A step of expectation maximisation of Gaussians with independent columns: Σ w log p(x), the weight of every class, and
/// weight, sum and squares of every class and column about the means. `None` if a sum overflows, or cells are missing.
#[pyfunction]
fn step_gaussian<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    mean: PyReadonlyArray2<'py, f64>,
    precision: PyReadonlyArray2<'py, f64>,
    constant: PyReadonlyArray2<'py, f64>,
    log_weights: PyReadonlyArray1<'py, f64>,
    codes: Option<PyReadonlyArray1<'py, i32>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Option<(f64, Arrays<'py>)>> {
    let source = make_source(&x, columns, "real")?;
    let (rows, k, d) = (source.rows(), mean.shape()[0], source.width());
    let [mean, precision, constant] = [mean.as_slice()?, precision.as_slice()?, constant.as_slice()?];
    let g = density::Gaussian { mean, precision, constant, classes: k };
    let labels = diagonal_em::Labels {
        log_weights: log_weights.as_slice()?,
        codes: codes.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
        weights: weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
    };
    check_sizes(&[
        (mean.len(), k * d),
        (precision.len(), k * d),
        (constant.len(), k * d),
        (labels.log_weights.len(), k),
        (labels.codes.map_or(rows, <[i32]>::len), rows),
        (labels.weights.map_or(rows, <[f64]>::len), rows),
    ])?;
    check_codes(labels.codes, k)?;
    let step =
        py.detach(|| if diagonal_em::pays(&source)? { diagonal_em::step(&source, &g, &labels) } else { Ok(None) });
    let Some(step) = step.map_err(bad_cell)? else {
        return Ok(None);
    };
    let m = step.moments;
    let mut arrays = vec![shaped(py, step.counts, &[k])?];
    for values in [m.weight, m.sum, m.second] {
        arrays.push(shaped(py, values, &[k, d])?);
    }
    Ok(Some((step.log_likelihood, arrays)))
}

fn check_codes(codes: Option<&[i32]>, classes: usize) -> PyResult<()> {
    if codes.is_some_and(|codes| codes.iter().any(|&code| code >= classes as i32)) {
        return Err(PyValueError::new_err("codes do not fit the classes"));
    }
    Ok(())
}

pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(collect_shared_moments, m)?)?;
    m.add_function(wrap_pyfunction!(collect_shared_categories, m)?)?;
    m.add_function(wrap_pyfunction!(collect_shared_scatter, m)?)?;
    m.add_function(wrap_pyfunction!(collect_shared_expected, m)?)?;
    m.add_function(wrap_pyfunction!(step_gaussian, m)?)?;
    m.add_function(wrap_pyfunction!(expect_classes, m)?)
}
