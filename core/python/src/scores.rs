//! Scores of rows, and what is made of them, as Python functions.

use crate::arrays::{Answer, Array, Array1, Arrays, Columns, Numbers, Table, Vector, Weights};
use crate::arrays::{check_sizes, check_some, codes_fit, make_source, refuse, scores, shaped, size_of_squares};
use likely_kernels::{categories, density, diagonal_em, linear, posterior, sparse, whitened};
use numpy::{IntoPyArray, PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Defines functions that score rows by parameters of every class and column, classes × columns each: `columns` of `x` are
/// read as a domain that is given, or always the same, and scores are added to `out` (rows × classes).
macro_rules! scores_by_column {
    ($($(#[$about:meta])* $name:ident($($domain:ident)? $($fixed:literal)?)
       = $kernel:ident($kind:ident { $first:ident $(, $other:ident)* });)*) => {
        $($(#[$about])*
        #[pyfunction]
        pub fn $name<'py>(
            py: Python<'py>,
            x: Array<'py>,
            columns: Columns,
            $($domain: &str,)?
            $first: Table<'py>,
            $($other: Table<'py>,)*
            mut out: PyReadwriteArray2<'py, f64>,
        ) -> Answer<()> {
            let source = make_source(&x, columns, $($domain)? $($fixed)?)?;
            let classes = $first.shape()[0];
            let size = classes * source.width();
            check_sizes(&[($first.len(), size) $(, ($other.len(), size))*])?;
            let parameters = density::$kind { $first: &$first, $($other: &$other,)* classes };
            let out = scores(&mut out, source.rows(), classes)?;
            Ok(py.detach(|| density::$kernel(&source, &parameters, out))?)
        })*
    };
}
scores_by_column! {
    /// Adds log densities of Gaussians, one per class and column, to `out`.
    score_gaussian(domain) = gaussian(Gaussian { mean, precision, constant });
    /// Adds Σ constant + slope · x to `out`.
    score_linear(domain) = linear(Linear { slope, constant });
    /// Adds the log probabilities of columns of 0 and 1 to `out`.
    score_binary(domain) = binary(Binary { log_no, log_yes });
    /// Adds log densities of gamma distributions, one per class and column, to `out`; a NaN in the mean adds nothing.
    score_gamma("positive") = gamma(Gamma { mean, shape });
    /// Adds log probabilities of Poisson distributions, one per class and column, to `out`; a NaN as rate adds nothing.
    score_poisson("count") = poisson(Poisson { rate });
}

/// Adds −Σ log x to every class: what turns a density of logarithms into one of the numbers.
#[pyfunction]
pub fn score_jacobian<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    mut out: PyReadwriteArray2<'py, f64>,
) -> Answer<()> {
    let source = make_source(&x, columns, "log")?;
    let k = out.shape()[1];
    let out = scores(&mut out, source.rows(), k)?;
    Ok(py.detach(|| density::jacobian(&source, k, out))?)
}

/// Origin, θ (classes × columns) and θ₀.
type LinearForm<'py> = (Vector<'py>, Table<'py>, Vector<'py>);

fn linear_form<'a>((origin, theta, theta0): &'a LinearForm, width: usize) -> Answer<linear::Linear<'a>> {
    check_sizes(&[(origin.len(), width), (theta.len(), theta0.len() * width)])?;
    Ok(linear::Linear::new(origin, theta, theta0))
}

/// Adds θ·(x − origin) + θ₀ of every row and θ to `out`; NaN where a cell is missing.
#[pyfunction]
pub fn score_products<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    linear: LinearForm<'py>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> Answer<()> {
    let source = make_source(&x, columns, "real")?;
    let linear = linear_form(&linear, source.width())?;
    let out = scores(&mut out, source.rows(), linear.classes())?;
    Ok(py.detach(|| density::products(&source, &linear, out))?)
}

/// Adds log densities of Gaussians with full covariances (one per class, or one for all) to `out`.
#[pyfunction]
pub fn score_full<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    mean: Table<'py>,
    whitener: Numbers<'py>,
    covariance: Numbers<'py>,
    constant: Vector<'py>,
    linear: Option<LinearForm<'py>>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> Answer<()> {
    let source = make_source(&x, columns, "real")?;
    let (k, d) = (mean.shape()[0], source.width());
    check_some(k, d)?;
    let linear = linear.as_ref().map(|linear| linear_form(linear, d)).transpose()?;
    let squares = size_of_squares(whitener.len(), k, d);
    check_sizes(&[
        (mean.len(), k * d),
        (whitener.len(), squares),
        (covariance.len(), squares),
        (constant.len(), k),
        (linear.as_ref().map_or(k, linear::Linear::classes), k),
    ])?;
    let full = whitened::Full {
        mean: &mean,
        whitener: &whitener,
        covariance: &covariance,
        constant: &constant,
        classes: k,
        width: d,
    };
    let out = scores(&mut out, source.rows(), k)?;
    Ok(py.detach(|| whitened::score(&source, &full, linear.as_ref(), out))?)
}

/// Adds log probabilities of categories (categories × classes) to `out`; a value that is no category adds nothing.
#[pyfunction]
pub fn score_categories<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    domain: &str,
    values: Vector<'py>,
    starts: Vector<'py, i64>,
    log_probabilities: Table<'py>,
    mut out: PyReadwriteArray2<'py, f64>,
) -> Answer<()> {
    let source = make_source(&x, columns, domain)?;
    let (size, classes) = (values.len(), log_probabilities.shape()[1]);
    check_sizes(&[(starts.len(), source.width() + 1), (log_probabilities.len(), size * classes)])?;
    if !sparse::rises(&starts, size) {
        return refuse("the starts of the columns do not fit the categories");
    }
    let table = categories::Table { values: &values, starts: &starts, scores: &log_probabilities, classes };
    let out = scores(&mut out, source.rows(), classes)?;
    Ok(py.detach(|| categories::score(&source, &table, out))?)
}

/// Writes the class weights into every row of scores.
#[pyfunction]
pub fn begin_scores<'py>(mut joint: PyReadwriteArray2<'py, f64>, log_weights: Vector<'py>) -> Answer<()> {
    check_sizes(&[(joint.shape()[1], log_weights.len())])?;
    check_some(log_weights.len(), 1)?;
    posterior::begin(joint.as_slice_mut()?, &log_weights);
    Ok(())
}

/// log p(x) of each row of log p(x, y).
#[pyfunction]
pub fn log_density<'py>(py: Python<'py>, joint: Table<'py>) -> Array1<'py> {
    let (k, joint) = (joint.shape()[1].max(1), &*joint);
    py.detach(|| posterior::log_density(joint, k)).into_pyarray(py)
}

/// Turns log p(x, y) into p(y | x), or its logarithm, in place.
#[pyfunction]
pub fn posterior_in_place<'py>(
    py: Python<'py>,
    mut joint: PyReadwriteArray2<'py, f64>,
    log_weights: Vector<'py>,
    log: bool,
) -> Answer<()> {
    let (rows, log_weights) = (joint.shape()[0], &*log_weights);
    let joint = scores(&mut joint, rows, log_weights.len())?;
    py.detach(|| posterior::posterior(joint, log_weights, log));
    Ok(())
}

/// The position of the likeliest class of each row.
#[pyfunction]
pub fn likeliest<'py>(py: Python<'py>, joint: Table<'py>, log_weights: Vector<'py>) -> Answer<Array1<'py, i64>> {
    let [rows, k] = joint.shape();
    check_sizes(&[(k, log_weights.len())])?;
    check_some(k, 1)?;
    let (joint, log_weights, mut out) = (&*joint, &*log_weights, vec![0; rows]);
    py.detach(|| posterior::likeliest(joint, log_weights, &mut out));
    Ok(out.into_pyarray(py))
}

/// Turns log p(x, y) into p(y | x), in place, or into 1 and 0 where the class is known, and returns Σ w log p(x) and the
/// weight of every class.
#[pyfunction]
pub fn expect_classes<'py>(
    py: Python<'py>,
    mut joint: PyReadwriteArray2<'py, f64>,
    log_weights: Vector<'py>,
    codes: Option<Vector<'py, i32>>,
    weights: Weights<'py>,
) -> Answer<(f64, Array1<'py>)> {
    let rows = joint.shape()[0];
    check_some(log_weights.len(), 1)?;
    let joint = scores(&mut joint, rows, log_weights.len())?;
    let labels = labels(rows, &log_weights, codes.as_deref(), weights.as_deref())?;
    let (log_likelihood, counts) =
        py.detach(|| posterior::expect(joint, labels.log_weights, labels.codes, labels.weights));
    Ok((log_likelihood, counts.into_pyarray(py)))
}

/// A step of expectation maximisation of Gaussians with independent columns: Σ w log p(x), the weight of every class, and
/// weight, sum and squares of every class and column about the means. `None` if a sum overflows, or cells are missing.
#[pyfunction]
pub fn step_gaussian<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    mean: Table<'py>,
    precision: Table<'py>,
    constant: Table<'py>,
    log_weights: Vector<'py>,
    codes: Option<Vector<'py, i32>>,
    weights: Weights<'py>,
) -> Answer<Option<(f64, Arrays<'py>)>> {
    let source = make_source(&x, columns, "real")?;
    let (k, d) = (mean.shape()[0], source.width());
    let size = k * d;
    check_sizes(&[(mean.len(), size), (precision.len(), size), (constant.len(), size), (log_weights.len(), k)])?;
    let g = density::Gaussian { mean: &mean, precision: &precision, constant: &constant, classes: k };
    let labels = labels(source.rows(), &log_weights, codes.as_deref(), weights.as_deref())?;
    let Some(step) = py.detach(|| diagonal_em::step(&source, &g, &labels, diagonal_em::PROBED))? else {
        return Ok(None);
    };
    let m = step.moments;
    let arrays = [(step.counts, &[k][..]), (m.weight, &[k, d]), (m.sum, &[k, d]), (m.second, &[k, d])];
    Ok(Some((step.log_likelihood, shaped(py, arrays)?)))
}

/// The classes that are known, checked against the rows and class weights.
fn labels<'a>(
    rows: usize,
    log_weights: &'a [f64],
    codes: Option<&'a [i32]>,
    weights: Option<&'a [f64]>,
) -> Answer<diagonal_em::Labels<'a>> {
    check_sizes(&[(codes.map_or(rows, <[i32]>::len), rows), (weights.map_or(rows, <[f64]>::len), rows)])?;
    if codes.is_some_and(|codes| !codes_fit(codes, log_weights.len())) {
        return refuse("codes do not fit the classes");
    }
    Ok(diagonal_em::Labels { log_weights, codes, weights })
}
