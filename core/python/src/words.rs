//! Amounts and scores of the words of texts, as Python functions.

use crate::evidence::unfit;
use crate::text::{RowArrays, Settings, Tables, TermArrays, TextArrays, analysis};
use crate::text::{refused, row_arrays, strings, term_arrays, texts};
use likely_kernels::text::amounts::{Measure, Size, Wanted, collect};
use likely_kernels::text::by_unit::{Amount, ByUnit};
use likely_kernels::text::merge::{Side, merge};
use likely_kernels::text::scores::{Count, Rule, Scores, score};
use likely_kernels::text::{Known, Vocabulary};
use numpy::PyUntypedArrayMethods;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Given<'py, T> = PyReadonlyArray1<'py, T>;
type Floats<'py> = Bound<'py, PyArray1<f64>>;
/// Where the classes of each unit begin, the classes, and a line of count, share and documents for each.
type AmountArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray2<f64>>);

fn amount_arrays(py: Python<'_>, by_unit: ByUnit) -> PyResult<AmountArrays<'_>> {
    let lines: Vec<[f64; 3]> = by_unit.amounts.into_iter().map(|a| [a.count, a.share, a.documents]).collect();
    let shape = [lines.len(), 3];
    let amounts = lines.into_flattened().into_pyarray(py).reshape(shape)?;
    Ok((by_unit.starts.into_pyarray(py), by_unit.classes.into_pyarray(py), amounts))
}

/// What every class has of each unit; the weight of its documents, the sum of the logarithms of their sizes, and the sizes;
/// the rows of documents that are kept; and the terms.
#[pyfunction]
fn collect_amounts<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    codes: Given<'py, i32>,
    weights: Option<Given<'py, f64>>,
    classes: usize,
    kept: Given<'py, i64>,
    measure: (bool, String),
) -> PyResult<(AmountArrays<'py>, (Floats<'py>, Floats<'py>, Floats<'py>), RowArrays<'py>, TermArrays<'py>)> {
    let (documents, analysis) = (texts(&documents)?, analysis(&settings, tables.as_ref())?);
    let stops = strings(&texts(&settings.5)?)?;
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let size = match measure.1.as_str() {
        "sum" => Size::Sum,
        "norm" => Size::Norm,
        "one" => Size::One,
        other => return Err(PyValueError::new_err(format!("no size {other:?} of texts"))),
    };
    let measure = Measure { log: measure.0, size };
    let wanted = Wanted { codes: codes.as_slice()?, weights, classes, kept: kept.as_slice()?, measure };
    let sizes = [wanted.codes.len(), weights.map_or(documents.len(), <[f64]>::len), wanted.kept.len()];
    if sizes != [documents.len(); 3] || wanted.codes.iter().any(|&c| c >= classes as i32) {
        return Err(PyValueError::new_err("codes and weights do not fit the documents"));
    }
    let grow = || Vocabulary::growing(stops.iter().copied());
    let (amounts, of_classes, rows, terms) =
        py.detach(|| collect(&documents, &analysis, wanted, grow)).map_err(refused)?;
    let sums = (of_classes.documents, of_classes.log_sizes, of_classes.sizes);
    let sums = (sums.0.into_pyarray(py), sums.1.into_pyarray(py), sums.2.into_pyarray(py));
    Ok((amount_arrays(py, amounts)?, sums, row_arrays(py, rows), term_arrays(py, terms)))
}

/// Terms; where the classes of each begin, the classes, counts, shares, documents; and the new number of each class.
type SideArrays<'py> = (
    TextArrays<'py>,
    Given<'py, i64>,
    Given<'py, i32>,
    Given<'py, f64>,
    Given<'py, f64>,
    Given<'py, f64>,
    Given<'py, i32>,
);

fn amounts(side: &SideArrays) -> PyResult<Vec<Amount>> {
    let (counts, shares, documents) = (side.3.as_slice()?, side.4.as_slice()?, side.5.as_slice()?);
    if counts.len() != shares.len() || counts.len() != documents.len() {
        return Err(unfit("words"));
    }
    let rows = counts.iter().zip(shares).zip(documents);
    Ok(rows.map(|((&count, &share), &documents)| Amount { count, share, documents }).collect())
}

fn side<'a>(arrays: &'a SideArrays, terms: &'a [&'a [u8]], amounts: &'a [Amount]) -> PyResult<Side<'a>> {
    let (starts, classes) = (arrays.1.as_slice()?, arrays.2.as_slice()?);
    let side = Side { terms, starts, classes, amounts, numbers: arrays.6.as_slice()? };
    if side.fits() { Ok(side) } else { Err(unfit("words")) }
}

/// The amounts of the first plus `factor` × those of the second, and which terms are left: numbers of the first's, and after
/// them of the second's. None if more is taken away than there is.
#[pyfunction]
fn merge_amounts<'py>(
    py: Python<'py>,
    one: SideArrays<'py>,
    two: SideArrays<'py>,
    factor: f64,
) -> PyResult<Option<(AmountArrays<'py>, Bound<'py, PyArray1<i64>>)>> {
    let terms = [strings(&texts(&one.0)?)?, strings(&texts(&two.0)?)?];
    let sums = [amounts(&one)?, amounts(&two)?];
    let (first, second) = (side(&one, &terms[0], &sums[0])?, side(&two, &terms[1], &sums[1])?);
    let merged = py.detach(|| merge(&first, &second, factor));
    merged.ok().map(|(sum, left)| Ok((amount_arrays(py, sum)?, left.into_pyarray(py)))).transpose()
}

/// Words that can be looked up: built once, and kept beside the model that has them.
#[pyclass(frozen)]
struct KnownWords(Known);

#[pymethods]
impl KnownWords {
    #[new]
    fn new(py: Python<'_>, terms: TextArrays<'_>, settings: Settings<'_>) -> PyResult<Self> {
        let kind = analysis(&settings, None)?;
        let (stops, terms) = (strings(&texts(&settings.5)?)?, strings(&texts(&terms)?)?);
        let grams = kind.kind.is_words() && kind.longest > 1;
        Ok(Self(py.detach(|| Known::new(stops.iter().copied(), terms.iter().copied(), grams))))
    }
}

/// Adds the scores of every document's words to `out` (documents × classes).
#[pyfunction]
fn score_texts<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    known: PyRef<'py, KnownWords>,
    orders: Given<'py, u8>,
    base: PyReadonlyArray2<'py, f64>,
    groups: Given<'py, u8>,
    differences: (Given<'py, i64>, Given<'py, i32>, Given<'py, f64>),
    weights: Option<Given<'py, f64>>,
    refinement: Option<PyReadonlyArray2<'py, f32>>,
    rule: (String, f64, f64, f64),
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let (documents, analysis) = (texts(&documents)?, analysis(&settings, tables.as_ref())?);
    let (number, orders) = (base.shape()[1], orders.as_slice()?);
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?.unwrap_or_default();
    let scores = Scores {
        base: base.as_slice()?,
        groups: groups.as_slice()?,
        starts: differences.0.as_slice()?,
        classes: differences.1.as_slice()?,
        differences: differences.2.as_slice()?,
        weights,
        refinement: refinement.as_ref().map_or(Ok(&[][..]), PyReadonlyArray2::as_slice)?,
        number,
    };
    let count = match rule.0.as_str() {
        "count" => Count::AsItIs,
        "once" => Count::Once,
        "log" => Count::Log,
        other => return Err(PyValueError::new_err(format!("no way {other:?} to count"))),
    };
    let sizes = [orders.len(), scores.groups.len()];
    if !scores.fits() || sizes != [known.0.number; 2] || out.shape() != [documents.len(), number] {
        return Err(unfit("words"));
    }
    let (out, words) = (out.as_slice_mut()?, &known.0);
    let rule = Rule { count, power: rule.1, usual: rule.2, norm: rule.3 };
    py.detach(|| score(&documents, &analysis, words, orders, &scores, rule, out)).map_err(refused)
}

/// 0 for single words, 1 for terms of several, which have a blank between them.
#[pyfunction]
fn term_orders<'py>(py: Python<'py>, terms: TextArrays<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let terms = strings(&texts(&terms)?)?;
    Ok(terms.iter().map(|term| u8::from(term.contains(&b' '))).collect::<Vec<_>>().into_pyarray(py))
}

pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<KnownWords>()?;
    m.add_function(wrap_pyfunction!(collect_amounts, m)?)?;
    m.add_function(wrap_pyfunction!(merge_amounts, m)?)?;
    m.add_function(wrap_pyfunction!(term_orders, m)?)?;
    m.add_function(wrap_pyfunction!(score_texts, m)?)
}
