//! The native core of likely, as a Python module: bindings only. Arrays in, arrays out, the interpreter released.

mod evidence;
mod hidden;
mod kmeans;
mod signals;
mod text;
mod words;

use likely_kernels::belonging::Assignment;
use likely_kernels::source::{BadCell, Domain, Matrix, Source};
use likely_kernels::{
    categories, density, expected, json, keys, labels, linear, moments, posterior, scatter, simd, sparse, special,
    threads, whitened,
};
use numpy::{
    PyArray1, PyArray2, PyArrayDyn, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn, PyReadwriteArray1,
    PyReadwriteArray2,
};
use numpy::{PyArrayMethods, PyUntypedArrayMethods};
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(_core, BadCellError, PyValueError, "A cell outside its column's domain: (row, column, value).");

create_exception!(_core, NotUtf8Error, PyValueError, "A document that is not UTF-8: its number.");

fn bad_cell(bad: BadCell) -> PyErr {
    BadCellError::new_err((bad.row, bad.column, bad.value))
}

fn broken(broken: sparse::Broken) -> PyErr {
    match broken {
        sparse::Broken::Layout => {
            PyValueError::new_err("the sparse matrix is broken: its index arrays do not fit together")
        }
        sparse::Broken::Value { row, column, value } => bad_cell(BadCell { row, column, value }),
    }
}

macro_rules! arrays {
    ($($name:ident $kind:ty),*) => {
        /// A borrowed NumPy matrix of any element type.
        enum Array<'py> { $($name(PyReadonlyArray2<'py, $kind>),)* }

        impl<'py> Array<'py> {
            fn view(&self) -> Matrix<'_> {
                match self { $(Self::$name(array) => Matrix::$name(array.as_array()),)* }
            }
        }

        impl<'py> FromPyObject<'_, 'py> for Array<'py> {
            type Error = PyErr;
            fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                $(if let Ok(array) = any.extract() { return Ok(Self::$name(array)); })*
                Err(PyTypeError::new_err("expected a matrix of numbers"))
            }
        }
    };
}
arrays!(F64 f64, F32 f32, I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8, Bool bool);

fn domain(name: &str) -> PyResult<Domain> {
    if let Some(Ok(threshold)) = name.strip_prefix("above ").map(str::parse) {
        return Ok(Domain::Above(threshold));
    }
    Ok(match name {
        "real" => Domain::Real,
        "log" => Domain::Log,
        "non-negative" => Domain::NonNegative,
        "positive" => Domain::Positive,
        "count" => Domain::Count,
        "binary" => Domain::Binary,
        _ => return Err(PyValueError::new_err(format!("no domain {name:?}"))),
    })
}

fn make_source<'a>(x: &'a Array, columns: Option<Vec<usize>>, domain_name: &str) -> PyResult<Source<'a>> {
    let (matrix, mut domain) = (x.view(), domain(domain_name)?);
    if matches!((&matrix, domain), (Matrix::Bool(_), Domain::Above(threshold)) if (0.0..1.0).contains(&threshold)) {
        domain = Domain::Binary; // already what it would become
    }
    let source = Source { matrix, columns: None, domain };
    if columns.iter().flatten().any(|&j| j >= source.width()) {
        return Err(PyValueError::new_err("a column index is outside the matrix"));
    }
    Ok(Source { columns, ..source })
}

/// Checks what the kernels rely on: a code and a weight for each row, codes below the number of classes.
fn make_assignment<'a>(
    rows: usize,
    classes: usize,
    codes: &'a PyReadonlyArray1<i32>,
    weights: Option<&'a PyReadonlyArray1<f64>>,
) -> PyResult<Assignment<'a>> {
    let codes = codes.as_slice()?;
    let weights = weights.map(|weights| weights.as_slice()).transpose()?;
    let fits = codes.len() == rows && weights.is_none_or(|weights| weights.len() == rows);
    let largest = codes.iter().fold(-1, |largest, &code| code.max(largest));
    let below = largest < 0 || (largest as usize) < classes;
    if !fits || !below || u32::try_from(rows).is_err() {
        return Err(PyValueError::new_err("codes and weights do not fit the rows"));
    }
    Ok(Assignment { classes, codes, weights })
}

/// A vector as an array of a given shape.
fn shaped<'py>(py: Python<'py>, values: Vec<f64>, shape: &[usize]) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    PyArray1::from_vec(py, values).reshape(shape)
}

/// A contiguous output of rows × classes, checked against the rows.
fn scores<'a>(out: &'a mut PyReadwriteArray2<'_, f64>, rows: usize, k: usize) -> PyResult<&'a mut [f64]> {
    if out.shape() != [rows, k] {
        return Err(PyValueError::new_err("the scores do not fit the rows and classes"));
    }
    Ok(out.as_slice_mut()?)
}

fn check_sizes(given: &[(usize, usize)]) -> PyResult<()> {
    if given.iter().all(|(got, want)| got == want) {
        return Ok(());
    }
    Err(PyValueError::new_err("the parameters do not fit the columns and classes"))
}

/// Refuses sizes of 0, of which no kernel could take anything.
fn check_some(classes: usize, columns: usize) -> PyResult<()> {
    if classes > 0 && columns > 0 {
        return Ok(());
    }
    Err(PyValueError::new_err("expected at least one class and one column"))
}

type Arrays<'py> = Vec<Bound<'py, PyArrayDyn<f64>>>;

/// Weight, sum and a second sum ("square" or "excess") about an origin, classes × columns each: (origin, weight, sum, second).
#[pyfunction]
fn collect_moments<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    classes: usize,
    codes: PyReadonlyArray1<'py, i32>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    centred: bool,
    second: &str,
) -> PyResult<Arrays<'py>> {
    let second = match second {
        "square" => moments::Second::Square,
        "excess" => moments::Second::Excess,
        _ => return Err(PyValueError::new_err(format!("no second sum {second:?}"))),
    };
    let source = make_source(&x, columns, domain)?;
    let assignment = make_assignment(source.rows(), classes, &codes, weights.as_ref())?;
    let shape = [classes, source.width()];
    let m = py.detach(|| moments::collect(&source, &assignment, centred, second)).map_err(bad_cell)?;
    [m.origin, m.weight, m.sum, m.second].into_iter().map(|values| shaped(py, values, &shape)).collect()
}

/// Weight, sum and sums of products about an origin: (origin, weight, sum, product[, cubic, quartic]).
#[pyfunction]
fn collect_scatter<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    classes: usize,
    codes: PyReadonlyArray1<'py, i32>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    fourth: bool,
) -> PyResult<Arrays<'py>> {
    let source = make_source(&x, columns, "real")?;
    let assignment = make_assignment(source.rows(), classes, &codes, weights.as_ref())?;
    let (k, d) = (classes, source.width());
    let s = py.detach(|| scatter::collect(&source, &assignment, fourth)).map_err(bad_cell)?;
    let mut arrays = vec![
        shaped(py, s.origin, &[k, d])?,
        shaped(py, s.weight, &[k])?,
        shaped(py, s.sum, &[k, d])?,
        shaped(py, s.product, &[k, d, d])?,
    ];
    if fourth {
        arrays.push(shaped(py, s.cubic, &[k, d, d])?);
        arrays.push(shaped(py, s.quartic, &[k, d, d])?);
    }
    Ok(arrays)
}

/// The groups of rows with holes, from lines of (pattern, class, rows), checked against the cells.
fn make_groups(
    lines: &[i64],
    there: &[bool],
    width: usize,
    classes: usize,
    rows: usize,
    cells: usize,
) -> PyResult<Vec<expected::Group>> {
    let sizes: Vec<usize> = there.chunks_exact(width.max(1)).map(|row| row.iter().filter(|&&is| is).count()).collect();
    let (mut groups, mut row, mut cell) = (vec![], 0, 0);
    for line in lines.chunks_exact(3) {
        let (pattern, class, count) = (line[0] as usize, line[1] as usize, line[2] as usize);
        if pattern >= sizes.len() || class >= classes || count > rows {
            return Err(PyValueError::new_err("a group is outside the patterns and classes"));
        }
        for start in (row..row + count).step_by(expected::LARGEST_GROUP) {
            let end = (row + count).min(start + expected::LARGEST_GROUP);
            groups.push(expected::Group { pattern, class, rows: start..end, cells: cell });
            cell += (end - start) * sizes[pattern];
        }
        row += count;
    }
    check_sizes(&[(lines.len() % 3, 0), (row, rows), (cell, cells)])?;
    Ok(groups)
}

/// Expected sums of rows with holes under a Gaussian for each class, about the origin of the cells and means:
/// (weight, sum, product).
#[pyfunction]
fn collect_expected<'py>(
    py: Python<'py>,
    cells: PyReadonlyArray1<'py, f64>,
    rows: usize,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    there: PyReadonlyArray2<'py, bool>,
    groups: PyReadonlyArray2<'py, i64>,
    mean: PyReadonlyArray2<'py, f64>,
    precision: PyReadonlyArrayDyn<'py, f64>,
) -> PyResult<Arrays<'py>> {
    let (k, d) = (mean.shape()[0], mean.shape()[1]);
    let (cells, there) = (cells.as_slice()?, there.as_slice()?);
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let gaussians = expected::Gaussians { mean: mean.as_slice()?, precision: precision.as_slice()? };
    let each = if gaussians.precision.len() == d * d { d * d } else { k * d * d };
    check_sizes(&[
        (gaussians.precision.len(), each),
        (there.len() % d.max(1), 0),
        (weights.map_or(rows, <[f64]>::len), rows),
    ])?;
    let groups = make_groups(groups.as_slice()?, there, d, k, rows, cells.len())?;
    let holes = expected::Holes { cells, weights, there, groups, width: d };
    let e = py.detach(|| expected::expect(&holes, &gaussians));
    Ok(vec![shaped(py, e.weight, &[k])?, shaped(py, e.sum, &[k, d])?, shaped(py, e.product, &[k, d, d])?])
}

/// For each column its distinct values, sorted, and their weights (values × classes).
#[pyfunction]
fn collect_categories<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    classes: usize,
    codes: PyReadonlyArray1<'py, i32>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Counted<'py>> {
    let source = make_source(&x, columns, domain)?;
    let assignment = make_assignment(source.rows(), classes, &codes, weights.as_ref())?;
    check_some(classes, 1)?;
    counted_columns(py, py.detach(|| categories::count(&source, &assignment)).map_err(bad_cell)?, classes)
}

/// The values of each column, and their weights, values × classes.
type Counted<'py> = Vec<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArrayDyn<f64>>)>;

fn counted_columns(py: Python<'_>, columns: Vec<categories::Column>, classes: usize) -> PyResult<Counted<'_>> {
    columns
        .into_iter()
        .map(|column| {
            let shape = [column.values.len(), classes];
            Ok((PyArray1::from_vec(py, column.values), shaped(py, column.counts, &shape)?))
        })
        .collect()
}

/// Adds log densities of Gaussians, one per class and column, to `out`.
#[pyfunction]
fn score_gaussian<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    mean: PyReadonlyArray2<'py, f64>,
    precision: PyReadonlyArray2<'py, f64>,
    constant: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, domain)?;
    let k = mean.shape()[0];
    let g = density::Gaussian {
        mean: mean.as_slice()?,
        precision: precision.as_slice()?,
        constant: constant.as_slice()?,
        classes: k,
    };
    let size = k * source.width();
    check_sizes(&[(g.mean.len(), size), (g.precision.len(), size), (g.constant.len(), size)])?;
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| density::gaussian(&source, &g, out)).map_err(bad_cell)
}

/// Adds Σ constant + slope · x to `out`.
#[pyfunction]
fn score_linear<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    slope: PyReadonlyArray2<'py, f64>,
    constant: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, domain)?;
    let k = slope.shape()[0];
    let l = density::Linear { slope: slope.as_slice()?, constant: constant.as_slice()?, classes: k };
    let size = k * source.width();
    check_sizes(&[(l.slope.len(), size), (l.constant.len(), size)])?;
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| density::linear(&source, &l, out)).map_err(bad_cell)
}

/// Adds θ·(x − origin) + θ₀ of every row and θ to `out`; NaN where a cell is missing.
#[pyfunction]
fn score_products<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    linear: LinearForm<'py>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, "real")?;
    let linear = linear_form(&linear, source.width())?;
    let out = scores(&mut out, source.rows(), linear.classes())?;
    py.detach(|| density::products(&source, &linear, out)).map_err(bad_cell)
}

/// Adds the log probabilities of columns of 0 and 1 to `out`.
#[pyfunction]
fn score_binary<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    log_no: PyReadonlyArray2<'py, f64>,
    log_yes: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, domain)?;
    let k = log_no.shape()[0];
    let b = density::Binary { log_no: log_no.as_slice()?, log_yes: log_yes.as_slice()?, classes: k };
    let size = k * source.width();
    check_sizes(&[(b.log_no.len(), size), (b.log_yes.len(), size)])?;
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| density::binary(&source, &b, out)).map_err(bad_cell)
}

/// Adds log densities of gamma distributions, one per class and column, to `out`; a NaN in the mean adds nothing.
#[pyfunction]
fn score_gamma<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    mean: PyReadonlyArray2<'py, f64>,
    shape: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, "positive")?;
    let k = mean.shape()[0];
    let (mean, shape) = (mean.as_slice()?, shape.as_slice()?);
    let constant: Vec<f64> = shape.iter().map(|&a| special::gamma_constant(a)).collect();
    let g = density::Gamma { mean, shape, constant: &constant, classes: k };
    let size = k * source.width();
    check_sizes(&[(mean.len(), size), (shape.len(), size)])?;
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| density::gamma(&source, &g, out)).map_err(bad_cell)
}

/// Adds log probabilities of Poisson distributions, one per class and column, to `out`; a NaN as rate adds nothing.
#[pyfunction]
fn score_poisson<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    rate: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, "count")?;
    let k = rate.shape()[0];
    let p = density::Poisson { rate: rate.as_slice()?, classes: k };
    check_sizes(&[(p.rate.len(), k * source.width())])?;
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| density::poisson(&source, &p, out)).map_err(bad_cell)
}

/// Adds −Σ log x to every class: what turns a density of logarithms into one of the numbers.
#[pyfunction]
fn score_jacobian<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, "log")?;
    let k = out.shape()[1];
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| density::jacobian(&source, k, out)).map_err(bad_cell)
}

/// Origin, θ (classes × columns) and θ₀.
type LinearForm<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, f64>);

fn linear_form<'a>((origin, theta, theta0): &'a LinearForm, width: usize) -> PyResult<linear::Linear<'a>> {
    let (origin, theta, theta0) = (origin.as_slice()?, theta.as_slice()?, theta0.as_slice()?);
    check_sizes(&[(origin.len(), width), (theta.len(), theta0.len() * width)])?;
    Ok(linear::Linear::new(origin, theta, theta0))
}

/// Adds log densities of Gaussians with full covariances (one per class, or one for all) to `out`.
#[pyfunction]
fn score_full<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    mean: PyReadonlyArray2<'py, f64>,
    whitener: PyReadonlyArrayDyn<'py, f64>,
    covariance: PyReadonlyArrayDyn<'py, f64>,
    constant: PyReadonlyArray1<'py, f64>,
    linear: Option<LinearForm<'py>>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, "real")?;
    let (k, d) = (mean.shape()[0], source.width());
    check_some(k, d)?;
    let full = whitened::Full {
        mean: mean.as_slice()?,
        whitener: whitener.as_slice()?,
        covariance: covariance.as_slice()?,
        constant: constant.as_slice()?,
        classes: k,
        width: d,
    };
    let each = if full.whitener.len() == d * d { d * d } else { k * d * d };
    check_sizes(&[
        (full.mean.len(), k * d),
        (full.whitener.len(), each),
        (full.covariance.len(), each),
        (full.constant.len(), k),
    ])?;
    let linear = linear.as_ref().map(|linear| linear_form(linear, d)).transpose()?;
    check_sizes(&[(linear.as_ref().map_or(k, linear::Linear::classes), k)])?;
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| whitened::score(&source, &full, linear.as_ref(), out)).map_err(bad_cell)
}

/// Adds log probabilities of categories (categories × classes) to `out`; a value that is no category adds nothing.
#[pyfunction]
fn score_categories<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    domain: &str,
    values: PyReadonlyArray1<'py, f64>,
    starts: PyReadonlyArray1<'py, i64>,
    log_shares: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, domain)?;
    let k = log_shares.shape()[1];
    let table = categories::Table {
        values: values.as_slice()?,
        starts: starts.as_slice()?,
        scores: log_shares.as_slice()?,
        classes: k,
    };
    let size = table.values.len();
    check_sizes(&[(table.starts.len(), source.width() + 1), (table.scores.len(), size * k)])?;
    if !sparse::rises(table.starts, size) {
        return Err(PyValueError::new_err("the starts of the columns do not fit the categories"));
    }
    let out = scores(&mut out, source.rows(), k)?;
    py.detach(|| categories::score(&source, &table, out)).map_err(bad_cell)
}

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
            let (starts, indices, values) = ($starts.as_slice()?, indices.as_slice()?, values.as_slice()?);
            let $rows = sparse::Rows::new(starts, indices, values, $width, domain($domain)?).map_err(broken)?;
            $body
        } else)* {
            return Err(PyTypeError::new_err("expected whole numbers as indices and numbers as values"));
        }
    }};
}

/// Σ w x per class and column of a matrix in compressed sparse rows.
#[pyfunction]
fn collect_sparse<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    indices: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    width: usize,
    domain_name: &str,
    classes: usize,
    codes: PyReadonlyArray1<'py, i32>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    // Large arrays are NumPy's own: it asks for huge pages.
    let sums = PyArray2::zeros(py, [classes, width], false);
    let mut out = sums.readwrite();
    let out = out.as_slice_mut()?;
    with_sparse!(starts, indices, values, width, domain_name, rows => {
        let assignment = make_assignment(rows.len(), classes, &codes, weights.as_ref())?;
        py.detach(|| rows.sums(&assignment, out)).map_err(broken)?;
    });
    Ok(sums)
}

/// Adds Σ x · log share (words × classes) of a matrix in compressed sparse rows to `out`.
#[pyfunction]
fn score_sparse<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    indices: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    domain_name: &str,
    log_shares: PyReadonlyArray2<'py, f64>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let (width, k) = (log_shares.shape()[0], log_shares.shape()[1]);
    let table = log_shares.as_slice()?;
    with_sparse!(starts, indices, values, width, domain_name, rows => {
        let out = scores(&mut out, rows.len(), k)?;
        py.detach(|| rows.score(table, k, out)).map_err(broken)
    })
}

/// log((count + λ) / Σ(count + λ)), from classes × words to words × classes; λ one number, per word, or per class and word.
#[pyfunction]
fn log_shares<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray2<'py, f64>,
    smoothing: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (k, words) = (counts.shape()[0], counts.shape()[1]);
    let (counts, smoothing) = (counts.as_slice()?, smoothing.as_slice()?);
    if ![1, words, k * words].contains(&smoothing.len()) {
        return Err(PyValueError::new_err("the smoothing does not fit the words and classes"));
    }
    let shares = PyArray2::zeros(py, [words, k], false);
    let mut out = shares.readwrite();
    let out = out.as_slice_mut()?;
    py.detach(|| sparse::log_shares(counts, smoothing, k, out));
    Ok(shares)
}

/// The sorted distinct labels and each row's place among them.
#[pyfunction]
fn encode_integers<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray1<'py, i64>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>)> {
    let labels = labels.as_slice()?;
    let (classes, codes) = py.detach(|| labels::encode(labels));
    Ok((PyArray1::from_vec(py, classes), PyArray1::from_vec(py, codes)))
}

/// Adds to the key of every row what its cells say, mixed with the seed of each column.
#[pyfunction]
fn add_row_keys<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Option<Vec<usize>>,
    seeds: PyReadonlyArray1<'py, u64>,
    mut out: PyReadwriteArray1<'py, u64>,
) -> PyResult<()> {
    let source = make_source(&x, columns, "real")?;
    let (seeds, out) = (seeds.as_slice()?, out.as_slice_mut()?);
    check_sizes(&[(seeds.len(), source.width()), (out.len(), source.rows())])?;
    py.detach(|| keys::add(&source, seeds, out));
    Ok(())
}

/// Whether objects and lists of JSON text lie in each other deeper than a limit.
#[pyfunction]
fn json_is_deeper(py: Python<'_>, text: &[u8], limit: usize) -> bool {
    py.detach(|| json::is_deeper(text, limit))
}

/// log p(x) of each row of log p(x, y).
#[pyfunction]
fn log_density<'py>(py: Python<'py>, joint: PyReadonlyArray2<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let k = joint.shape()[1].max(1);
    let joint = joint.as_slice()?;
    Ok(PyArray1::from_vec(py, py.detach(|| posterior::log_density(joint, k))))
}

/// Turns log p(x, y) into p(y | x), or its logarithm, in place.
#[pyfunction]
fn posterior_in_place<'py>(
    py: Python<'py>,
    mut joint: PyReadwriteArray2<'py, f64>,
    log_weights: PyReadonlyArray1<'py, f64>,
    log: bool,
) -> PyResult<()> {
    let rows = joint.shape()[0];
    let log_weights = log_weights.as_slice()?;
    let joint = scores(&mut joint, rows, log_weights.len())?;
    py.detach(|| posterior::posterior(joint, log_weights, log));
    Ok(())
}

/// Writes the class weights into every row of scores.
#[pyfunction]
fn begin_scores<'py>(mut joint: PyReadwriteArray2<'py, f64>, log_weights: PyReadonlyArray1<'py, f64>) -> PyResult<()> {
    check_sizes(&[(joint.shape()[1], log_weights.len())])?;
    check_some(log_weights.len(), 1)?;
    posterior::begin(joint.as_slice_mut()?, log_weights.as_slice()?);
    Ok(())
}

/// The place of the likeliest class of each row.
#[pyfunction]
fn likeliest<'py>(
    py: Python<'py>,
    joint: PyReadonlyArray2<'py, f64>,
    log_weights: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let rows = joint.shape()[0];
    let log_weights = log_weights.as_slice()?;
    check_sizes(&[(joint.shape()[1], log_weights.len())])?;
    check_some(log_weights.len(), 1)?;
    let joint = joint.as_slice()?;
    let mut out = vec![0; rows];
    py.detach(|| posterior::likeliest(joint, log_weights, &mut out));
    Ok(PyArray1::from_vec(py, out))
}

/// The maximum-likelihood shape of a gamma distribution from log(mean x) − mean(log x), for each number.
#[pyfunction]
fn gamma_shapes<'py>(py: Python<'py>, gaps: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    Ok(PyArray1::from_vec(py, gaps.as_slice()?.iter().map(|&gap| special::gamma_shape(gap)).collect()))
}

/// u − 1 − log u with u = x/m, of each pair of numbers.
#[pyfunction]
fn excess<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    m: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let (numbers, centres) = (x.as_slice()?, m.as_slice()?);
    check_sizes(&[(numbers.len(), centres.len())])?;
    shaped(py, numbers.iter().zip(centres).map(|(&x, &m)| special::excess(x, m)).collect(), x.shape())
}

/// Sets the number of threads of every kernel; None goes back to the number of cores.
#[pyfunction]
#[pyo3(signature = (threads=None))]
fn set_threads(threads: Option<i64>) -> PyResult<()> {
    if let Some(threads) = threads.filter(|&threads| threads < 1) {
        return Err(PyValueError::new_err(format!("expected at least 1 thread, got {threads}")));
    }
    threads::set_threads(threads.map(|threads| threads as usize));
    Ok(())
}

#[pyfunction]
fn get_threads() -> usize {
    threads::threads()
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let level = std::env::var_os("LIKELY_SIMD").map(|level| level.to_string_lossy().into_owned());
    if let Some(level) = level.filter(|level| !simd::LEVELS.contains(&level.as_str())) {
        let known = simd::LEVELS.join(", ");
        return Err(PyValueError::new_err(format!("expected LIKELY_SIMD to be one of {known}, got {level:?}")));
    }
    m.add("BadCellError", m.py().get_type::<BadCellError>())?;
    m.add("NotUtf8Error", m.py().get_type::<NotUtf8Error>())?;
    text::add_to(m)?;
    m.add_function(wrap_pyfunction!(collect_moments, m)?)?;
    m.add_function(wrap_pyfunction!(collect_scatter, m)?)?;
    m.add_function(wrap_pyfunction!(collect_expected, m)?)?;
    m.add_function(wrap_pyfunction!(begin_scores, m)?)?;
    m.add_function(wrap_pyfunction!(collect_categories, m)?)?;
    m.add_function(wrap_pyfunction!(collect_sparse, m)?)?;
    m.add_function(wrap_pyfunction!(score_gaussian, m)?)?;
    m.add_function(wrap_pyfunction!(score_linear, m)?)?;
    m.add_function(wrap_pyfunction!(score_binary, m)?)?;
    m.add_function(wrap_pyfunction!(score_gamma, m)?)?;
    m.add_function(wrap_pyfunction!(score_poisson, m)?)?;
    m.add_function(wrap_pyfunction!(score_products, m)?)?;
    m.add_function(wrap_pyfunction!(score_jacobian, m)?)?;
    m.add_function(wrap_pyfunction!(excess, m)?)?;
    m.add_function(wrap_pyfunction!(score_full, m)?)?;
    m.add_function(wrap_pyfunction!(score_categories, m)?)?;
    m.add_function(wrap_pyfunction!(score_sparse, m)?)?;
    m.add_function(wrap_pyfunction!(log_shares, m)?)?;
    m.add_function(wrap_pyfunction!(encode_integers, m)?)?;
    m.add_function(wrap_pyfunction!(add_row_keys, m)?)?;
    m.add_function(wrap_pyfunction!(json_is_deeper, m)?)?;
    m.add_function(wrap_pyfunction!(log_density, m)?)?;
    m.add_function(wrap_pyfunction!(posterior_in_place, m)?)?;
    hidden::add_to(m)?;
    m.add_function(wrap_pyfunction!(likeliest, m)?)?;
    m.add_function(wrap_pyfunction!(gamma_shapes, m)?)?;
    m.add_function(wrap_pyfunction!(set_threads, m)?)?;
    m.add_function(wrap_pyfunction!(get_threads, m)?)?;
    evidence::add_to(m)?;
    words::add_to(m)?;
    kmeans::add_to(m)
}
