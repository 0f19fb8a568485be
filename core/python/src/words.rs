//! Amounts and scores of the words of texts, as Python functions.

use crate::arrays::{Answer, Array1, Array2, Table, Vector, Weights, matrix, refuse, unfit};
use crate::text::{RowArrays, Settings, Tables, TermArrays, TextArrays, row_arrays, term_arrays};
use likely_kernels::text::amounts::{Measure, Size, Wanted, collect};
use likely_kernels::text::by_unit::{Amount, ByUnit};
use likely_kernels::text::merge::{Side, merge};
use likely_kernels::text::scores::{Count, Rule, Scores, score};
use likely_kernels::text::{Known, Vocabulary};
use numpy::{IntoPyArray, PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Where the classes of each unit begin, the classes, and a line of count, share and documents for each.
type AmountArrays<'py> = (Array1<'py, i64>, Array1<'py, i32>, Array2<'py>);

fn amount_arrays(py: Python<'_>, by_unit: ByUnit) -> Answer<AmountArrays<'_>> {
    let lines: Vec<[f64; 3]> = by_unit.amounts.into_iter().map(|a| [a.count, a.share, a.documents]).collect();
    let rows = lines.len();
    let amounts = matrix(py, lines.into_flattened(), rows, 3)?;
    Ok((by_unit.starts.into_pyarray(py), by_unit.classes.into_pyarray(py), amounts))
}

/// What every class has of each unit; the weight of its documents, the sum of the logarithms of their sizes, and the sizes;
/// the rows of documents that are kept; and the terms.
#[pyfunction]
pub fn collect_amounts<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    codes: Vector<'py, i32>,
    weights: Weights<'py>,
    classes: usize,
    kept: Vector<'py, i64>,
    measure: (bool, String),
) -> Answer<(AmountArrays<'py>, (Array1<'py>, Array1<'py>, Array1<'py>), RowArrays<'py>, TermArrays<'py>)> {
    let (documents, analysis) = (documents.read(), settings.read(tables.as_ref())?);
    let stops = settings.stop_words()?;
    let weights = weights.as_deref();
    let size = match measure.1.as_str() {
        "sum" => Size::Sum,
        "norm" => Size::Norm,
        "one" => Size::One,
        other => return refuse(format!("no size {other:?} of texts")),
    };
    let measure = Measure { log: measure.0, size };
    let wanted = Wanted { codes: &codes, weights, classes, kept: &kept, measure };
    let sizes = [wanted.codes.len(), weights.map_or(documents.len(), <[f64]>::len), wanted.kept.len()];
    if sizes != [documents.len(); 3] || wanted.codes.iter().any(|&c| c >= classes as i32) {
        return refuse("codes and weights do not fit the documents");
    }
    let grow = || Vocabulary::growing(stops.iter().copied());
    let (amounts, of, rows, terms) = py.detach(|| collect(&documents, &analysis, wanted, grow))?;
    let sums = (of.documents.into_pyarray(py), of.log_sizes.into_pyarray(py), of.sizes.into_pyarray(py));
    Ok((amount_arrays(py, amounts)?, sums, row_arrays(py, rows), term_arrays(py, terms)))
}

/// Terms; where the classes of each begin, the classes, counts, shares, documents; and the new number of each class.
type SideArrays<'py> =
    (TextArrays<'py>, Vector<'py, i64>, Vector<'py, i32>, Vector<'py>, Vector<'py>, Vector<'py>, Vector<'py, i32>);

fn amounts(side: &SideArrays) -> Answer<Vec<Amount>> {
    let (counts, shares, documents) = (&*side.3, &*side.4, &*side.5);
    if counts.len() != shares.len() || counts.len() != documents.len() {
        return unfit("words");
    }
    let rows = counts.iter().zip(shares).zip(documents);
    Ok(rows.map(|((&count, &share), &documents)| Amount { count, share, documents }).collect())
}

fn side<'a>(arrays: &'a SideArrays, terms: &'a [&'a [u8]], amounts: &'a [Amount]) -> Answer<Side<'a>> {
    let side = Side { terms, starts: &arrays.1, classes: &arrays.2, amounts, numbers: &arrays.6 };
    if side.fits() { Ok(side) } else { unfit("words") }
}

/// The amounts of the first plus `factor` × those of the second, and which terms are left: numbers of the first's, and after
/// them of the second's. None if more is taken away than there is.
#[pyfunction]
pub fn merge_amounts<'py>(
    py: Python<'py>,
    one: SideArrays<'py>,
    two: SideArrays<'py>,
    factor: f64,
) -> Answer<Option<(AmountArrays<'py>, Array1<'py, i64>)>> {
    let terms = [one.0.strings()?, two.0.strings()?];
    let sums = [amounts(&one)?, amounts(&two)?];
    let (first, second) = (side(&one, &terms[0], &sums[0])?, side(&two, &terms[1], &sums[1])?);
    let merged = py.detach(|| merge(&first, &second, factor));
    merged.ok().map(|(sum, left)| Ok((amount_arrays(py, sum)?, left.into_pyarray(py)))).transpose()
}

/// Words that can be looked up: built once, and kept beside the model that has them.
#[pyclass(frozen)]
pub struct KnownWords(Known);

#[pymethods]
impl KnownWords {
    #[new]
    fn new(py: Python<'_>, terms: TextArrays<'_>, settings: Settings<'_>) -> Answer<Self> {
        let kind = settings.read(None)?;
        let (stops, terms) = (settings.stop_words()?, terms.strings()?);
        let grams = kind.kind.is_words() && kind.longest > 1;
        Ok(Self(py.detach(|| Known::new(stops.iter().copied(), terms.iter().copied(), grams))))
    }
}

/// Adds the scores of every document's words to `out` (documents × classes).
#[pyfunction]
pub fn score_texts<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    known: PyRef<'py, KnownWords>,
    orders: Vector<'py, u8>,
    base: Table<'py>,
    groups: Vector<'py, u8>,
    differences: (Vector<'py, i64>, Vector<'py, i32>, Vector<'py>),
    weights: Weights<'py>,
    refinement: Option<Table<'py, f32>>,
    rule: (String, f64, f64, f64),
    mut out: PyReadwriteArray2<'py, f64>,
) -> Answer<()> {
    let (documents, analysis) = (documents.read(), settings.read(tables.as_ref())?);
    let (number, orders) = (base.shape()[1], &*orders);
    let scores = Scores {
        base: &base,
        groups: &groups,
        starts: &differences.0,
        classes: &differences.1,
        differences: &differences.2,
        weights: weights.as_deref().unwrap_or_default(),
        refinement: refinement.as_deref().unwrap_or_default(),
        number,
    };
    let count = match rule.0.as_str() {
        "count" => Count::AsItIs,
        "once" => Count::Once,
        "log" => Count::Log,
        other => return refuse(format!("no way {other:?} to count")),
    };
    let sizes = [orders.len(), scores.groups.len()];
    if !scores.fits() || sizes != [known.0.number; 2] || out.shape() != [documents.len(), number] {
        return unfit("words");
    }
    let (out, words) = (out.as_slice_mut()?, &known.0);
    let rule = Rule { count, power: rule.1, usual: rule.2, norm: rule.3 };
    Ok(py.detach(|| score(&documents, &analysis, words, orders, &scores, rule, out))?)
}

/// 0 for single words, 1 for terms of several, which have a blank between them.
#[pyfunction]
pub fn term_orders<'py>(py: Python<'py>, terms: TextArrays<'py>) -> Answer<Array1<'py, u8>> {
    let terms = terms.strings()?;
    Ok(terms.iter().map(|term| u8::from(term.contains(&b' '))).collect::<Vec<_>>().into_pyarray(py))
}
