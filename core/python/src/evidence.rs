//! The evidence of words, as Python functions.

use likely_kernels::evidence::{Classes, Groups, Rows, Words, groups, out_of_fold, solve};
use likely_kernels::exponents;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Given<'py, T> = PyReadonlyArray1<'py, T>;

/// Where the classes of each word begin, the classes, the amount and the documents of each, and the words' orders.
#[derive(FromPyObject)]
struct GivenWords<'py>(Given<'py, i64>, Given<'py, i32>, Given<'py, f64>, Given<'py, f64>, Given<'py, u8>);

impl GivenWords<'_> {
    fn read(&self, classes: usize) -> PyResult<Words<'_>> {
        let words = Words {
            starts: self.0.as_slice()?,
            classes: self.1.as_slice()?,
            amounts: self.2.as_slice()?,
            documents: self.3.as_slice()?,
            orders: self.4.as_slice()?,
        };
        if words.fits(classes) { Ok(words) } else { Err(unfit("words")) }
    }
}

/// Where the words of each row begin, the words, their counts; the rows' classes, weights and scales.
#[derive(FromPyObject)]
struct GivenRows<'py>(
    Given<'py, i64>,
    Given<'py, i32>,
    Given<'py, f32>,
    Given<'py, i32>,
    Given<'py, f64>,
    Given<'py, f64>,
);

impl GivenRows<'_> {
    fn read(&self, words: usize, classes: usize) -> PyResult<Rows<'_>> {
        let rows = Rows {
            starts: self.0.as_slice()?,
            words: self.1.as_slice()?,
            counts: self.2.as_slice()?,
            classes: self.3.as_slice()?,
            weights: self.4.as_slice()?,
            scales: self.5.as_slice()?,
        };
        if rows.fits(words, classes) { Ok(rows) } else { Err(unfit("rows")) }
    }
}

pub fn unfit(what: &str) -> PyErr {
    PyValueError::new_err(format!("the arrays of the {what} do not fit together"))
}

fn cut_by<'a>(edges: &'a (Given<'_, f64>, Given<'_, f64>)) -> PyResult<Groups<'a>> {
    let edges = [edges.0.as_slice()?, edges.1.as_slice()?];
    // Groups are numbered by bytes.
    if edges[0].len() == edges[1].len() && edges[0].len() < 50 { Ok(Groups { edges }) } else { Err(unfit("groups")) }
}

/// How much each word tells of the class, its documents, and its evidence for each class that has it; what words that a
/// class never had say against it.
#[pyfunction]
fn word_evidence<'py>(
    py: Python<'py>,
    words: GivenWords<'py>,
    class_documents: Given<'py, f64>,
) -> PyResult<[Bound<'py, PyArray1<f64>>; 4]> {
    let documents = class_documents.as_slice()?;
    let words = words.read(documents.len())?;
    let ((told, of_words, evidence), against) = py.detach(|| {
        let classes = Classes::of(words, documents);
        (solve(words, &classes), classes.against())
    });
    Ok([told, of_words, evidence, against].map(|array| array.into_pyarray(py)))
}

/// The group of every word.
#[pyfunction]
fn word_groups<'py>(
    py: Python<'py>,
    orders: Given<'py, u8>,
    documents: Given<'py, f64>,
    told: Given<'py, f64>,
    edges: (Given<'py, f64>, Given<'py, f64>),
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    Ok(groups(orders.as_slice()?, documents.as_slice()?, told.as_slice()?, cut_by(&edges)?).into_pyarray(py))
}

/// Where the columns of each row begin, the columns, and the evidence of each for every class.
type ScoredArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray2<f32>>);

#[derive(FromPyObject)]
struct GivenEvidence<'py>(Given<'py, i64>, Given<'py, u8>, PyReadonlyArray2<'py, f32>);

impl GivenEvidence<'_> {
    fn read(&self) -> PyResult<exponents::Evidence<'_>> {
        Ok(exponents::Evidence {
            starts: self.0.as_slice()?,
            columns: self.1.as_slice()?,
            values: self.2.as_slice()?,
            classes: self.2.shape()[1],
        })
    }
}

/// The evidence of every group of words for each class and, in as many columns more, against it, as if the rows of a row's own
/// fold had not been learned; and the shares of the classes without each fold.
#[pyfunction]
fn evidence_out_of_fold<'py>(
    py: Python<'py>,
    words: GivenWords<'py>,
    class_documents: Given<'py, f64>,
    rows: GivenRows<'py>,
    folds: Vec<usize>,
    edges: (Given<'py, f64>, Given<'py, f64>),
) -> PyResult<(ScoredArrays<'py>, Bound<'py, PyArray2<f64>>)> {
    let documents = class_documents.as_slice()?;
    let k = documents.len();
    let words = words.read(k)?;
    let rows = rows.read(words.len(), k)?;
    let by = cut_by(&edges)?;
    let covered = folds.first() == Some(&0) && folds.last() == Some(&rows.len());
    if !covered || folds.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(unfit("folds"));
    }
    let scored = py.detach(|| out_of_fold(words, &Classes::of(words, documents), rows, &folds, by));
    let shape = [scored.columns.len(), k];
    let values = scored.evidence.into_pyarray(py).reshape(shape)?;
    let evidence = (scored.starts.into_pyarray(py), scored.columns.into_pyarray(py), values);
    Ok((evidence, scored.shares.into_pyarray(py).reshape([folds.len() - 1, k])?))
}

/// The weighed sum of the columns of every row and class.
#[pyfunction]
fn weigh_evidence<'py>(
    py: Python<'py>,
    evidence: GivenEvidence<'py>,
    weights: Given<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (evidence, weights) = (evidence.read()?, weights.as_slice()?);
    if !evidence.fits(weights.len()) {
        return Err(unfit("rows"));
    }
    let shape = [evidence.starts.len() - 1, evidence.classes];
    py.detach(|| exponents::weigh(evidence, weights)).into_pyarray(py).reshape(shape)
}

/// The loss of some exponents (groups, power, prior, biases), its gradient and, if it is asked for, its curvature.
#[pyfunction]
#[pyo3(signature = (evidence, lengths, log_shares, codes, weights, at, curved = true))]
#[allow(clippy::too_many_arguments)]
fn exponent_slope<'py>(
    py: Python<'py>,
    evidence: GivenEvidence<'py>,
    lengths: Given<'py, f64>,
    log_shares: PyReadonlyArray2<'py, f64>,
    codes: Given<'py, i64>,
    weights: Given<'py, f64>,
    at: (Given<'py, f64>, f64, f64, Given<'py, f64>),
    curved: bool,
) -> PyResult<(f64, Bound<'py, PyArray1<f64>>, Option<Bound<'py, PyArray2<f64>>>)> {
    let rows = exponents::Rows {
        evidence: evidence.read()?,
        lengths: lengths.as_slice()?,
        log_shares: log_shares.as_slice()?,
        codes: codes.as_slice()?,
        weights: weights.as_slice()?,
    };
    let at = exponents::At { groups: at.0.as_slice()?, power: at.1, prior: at.2, bias: at.3.as_slice()? };
    if !rows.fits(at.groups.len()) || ![0, rows.evidence.classes].contains(&at.bias.len()) {
        return Err(unfit("rows"));
    }
    let slope = py.detach(|| exponents::slope(rows, at, curved));
    let size = slope.gradient.len();
    let curvature = curved.then(|| slope.curvature.into_pyarray(py).reshape([size, size])).transpose()?;
    Ok((slope.loss, slope.gradient.into_pyarray(py), curvature))
}

/// The step of Newton's method by a curvature that is damped: its diagonal grows by a share of itself. NaN if the curvature is
/// negative in some direction.
#[pyfunction]
fn solve_damped<'py>(
    py: Python<'py>,
    curvature: PyReadonlyArray2<'py, f64>,
    gradient: Given<'py, f64>,
    damping: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (matrix, gradient) = (curvature.as_slice()?, gradient.as_slice()?);
    if curvature.shape() != [gradient.len(); 2] {
        return Err(unfit("slope"));
    }
    Ok(py.detach(|| exponents::solve_damped(matrix, gradient, damping)).into_pyarray(py))
}

pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(word_evidence, m)?)?;
    m.add_function(wrap_pyfunction!(word_groups, m)?)?;
    m.add_function(wrap_pyfunction!(evidence_out_of_fold, m)?)?;
    m.add_function(wrap_pyfunction!(weigh_evidence, m)?)?;
    m.add_function(wrap_pyfunction!(solve_damped, m)?)?;
    m.add_function(wrap_pyfunction!(exponent_slope, m)?)
}
