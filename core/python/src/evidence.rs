//! The evidence of words, as Python functions.

use crate::arrays::{Answer, Array1, Array2, Table, Vector, matrix, unfit};
use likely_kernels::evidence::{Classes, Groups, Rows, Words, groups, out_of_fold, solve};
use likely_kernels::exponents;
use numpy::IntoPyArray;
use pyo3::prelude::*;

/// Where the classes of each word begin, the classes, the amount and the documents of each, and the words' orders.
#[derive(FromPyObject)]
pub struct GivenWords<'py>(Vector<'py, i64>, Vector<'py, i32>, Vector<'py>, Vector<'py>, Vector<'py, u8>);

impl GivenWords<'_> {
    fn read(&self, classes: usize) -> Answer<Words<'_>> {
        let words = Words { starts: &self.0, classes: &self.1, amounts: &self.2, documents: &self.3, orders: &self.4 };
        if words.fits(classes) { Ok(words) } else { unfit("words") }
    }
}

/// Where the words of each row begin, the words, their counts; the rows' classes, weights and scales.
#[derive(FromPyObject)]
pub struct GivenRows<'py>(
    Vector<'py, i64>,
    Vector<'py, i32>,
    Vector<'py, f32>,
    Vector<'py, i32>,
    Vector<'py>,
    Vector<'py>,
);

impl GivenRows<'_> {
    fn read(&self, words: usize, classes: usize) -> Answer<Rows<'_>> {
        let rows = Rows {
            starts: &self.0,
            words: &self.1,
            counts: &self.2,
            classes: &self.3,
            weights: &self.4,
            scales: &self.5,
        };
        if rows.fits(words, classes) { Ok(rows) } else { unfit("rows") }
    }
}

fn cut_by<'a>(edges: &'a (Vector<'_>, Vector<'_>)) -> Answer<Groups<'a>> {
    let edges = [&*edges.0, &*edges.1];
    // Groups are numbered by bytes.
    if edges[0].len() == edges[1].len() && edges[0].len() < 50 { Ok(Groups { edges }) } else { unfit("groups") }
}

/// How much each word tells of the class, its documents, and its evidence for each class that has it; what words that a
/// class never had say against it.
#[pyfunction]
pub fn word_evidence<'py>(
    py: Python<'py>,
    words: GivenWords<'py>,
    class_documents: Vector<'py>,
) -> Answer<[Array1<'py>; 4]> {
    let documents = &*class_documents;
    let words = words.read(documents.len())?;
    let ((information, of_words, evidence), against) = py.detach(|| {
        let classes = Classes::of(words, documents);
        (solve(words, &classes), classes.against())
    });
    Ok([information, of_words, evidence, against].map(|array| array.into_pyarray(py)))
}

/// The group of every word.
#[pyfunction]
pub fn word_groups<'py>(
    py: Python<'py>,
    orders: Vector<'py, u8>,
    documents: Vector<'py>,
    information: Vector<'py>,
    edges: (Vector<'py>, Vector<'py>),
) -> Answer<Array1<'py, u8>> {
    Ok(groups(&orders, &documents, &information, cut_by(&edges)?).into_pyarray(py))
}

/// Where the columns of each row begin, the columns, and the evidence of each for every class.
type ScoredArrays<'py> = (Array1<'py, i64>, Array1<'py, u8>, Array2<'py, f32>);

#[derive(FromPyObject)]
pub struct GivenEvidence<'py>(Vector<'py, i64>, Vector<'py, u8>, Table<'py, f32>);

impl GivenEvidence<'_> {
    fn read(&self) -> exponents::Evidence<'_> {
        exponents::Evidence { starts: &self.0, columns: &self.1, values: &self.2, classes: self.2.shape()[1] }
    }
}

/// The evidence of every group of words for each class and, in as many columns more, against it, as if the rows of a row's own
/// fold had not been learned; and the priors of the classes without each fold.
#[pyfunction]
pub fn evidence_out_of_fold<'py>(
    py: Python<'py>,
    words: GivenWords<'py>,
    class_documents: Vector<'py>,
    rows: GivenRows<'py>,
    folds: Vec<usize>,
    edges: (Vector<'py>, Vector<'py>),
) -> Answer<(ScoredArrays<'py>, Array2<'py>)> {
    let documents = &*class_documents;
    let k = documents.len();
    let words = words.read(k)?;
    let rows = rows.read(words.len(), k)?;
    let by = cut_by(&edges)?;
    let covered = folds.first() == Some(&0) && folds.last() == Some(&rows.len());
    if !covered || folds.windows(2).any(|pair| pair[0] > pair[1]) {
        return unfit("folds");
    }
    let scored = py.detach(|| out_of_fold(words, &Classes::of(words, documents), rows, &folds, by));
    let values = matrix(py, scored.evidence, scored.columns.len(), k)?;
    let evidence = (scored.starts.into_pyarray(py), scored.columns.into_pyarray(py), values);
    Ok((evidence, matrix(py, scored.priors, folds.len() - 1, k)?))
}

/// The weighed sum of the columns of every row and class.
#[pyfunction]
pub fn weigh_evidence<'py>(py: Python<'py>, evidence: GivenEvidence<'py>, weights: Vector<'py>) -> Answer<Array2<'py>> {
    let (evidence, weights) = (evidence.read(), &*weights);
    if !evidence.fits(weights.len()) {
        return unfit("rows");
    }
    let (rows, k) = (evidence.starts.len() - 1, evidence.classes);
    matrix(py, py.detach(|| exponents::weigh(evidence, weights)), rows, k)
}

/// The loss of some exponents (groups, power, prior, biases), its gradient and, if it is asked for, its curvature.
#[pyfunction]
#[pyo3(signature = (evidence, lengths, log_priors, codes, weights, at, curved = true))]
pub fn exponent_slope<'py>(
    py: Python<'py>,
    evidence: GivenEvidence<'py>,
    lengths: Vector<'py>,
    log_priors: Table<'py>,
    codes: Vector<'py, i64>,
    weights: Vector<'py>,
    at: (Vector<'py>, f64, f64, Vector<'py>),
    curved: bool,
) -> Answer<(f64, Array1<'py>, Option<Array2<'py>>)> {
    let rows = exponents::Rows {
        evidence: evidence.read(),
        lengths: &lengths,
        log_priors: &log_priors,
        codes: &codes,
        weights: &weights,
    };
    let at = exponents::At { groups: &at.0, power: at.1, prior: at.2, bias: &at.3 };
    if !rows.fits(at.groups.len()) || ![0, rows.evidence.classes].contains(&at.bias.len()) {
        return unfit("rows");
    }
    let slope = py.detach(|| exponents::slope(rows, at, curved));
    let size = slope.gradient.len();
    let curvature = curved.then(|| matrix(py, slope.curvature, size, size)).transpose()?;
    Ok((slope.loss, slope.gradient.into_pyarray(py), curvature))
}

/// The step of Newton's method by a curvature that is damped: its diagonal grows by a share of itself. NaN if the curvature is
/// negative in some direction.
#[pyfunction]
pub fn solve_damped<'py>(
    py: Python<'py>,
    curvature: Table<'py>,
    gradient: Vector<'py>,
    damping: f64,
) -> Answer<Array1<'py>> {
    if curvature.shape() != [gradient.len(); 2] {
        return unfit("slope");
    }
    let (curvature, gradient) = (&*curvature, &*gradient);
    Ok(py.detach(|| exponents::solve_damped(curvature, gradient, damping)).into_pyarray(py))
}
