//! The functions on text, as seen from Python: bindings only.

use likely_kernels::text::hashing::{count_hashes, hashes};
use likely_kernels::text::sinks::{Rows, count, count_known};
use likely_kernels::text::{Alphabet, Analysis, Arrow, Invalid, Kind, Known, Listed, Offsets};
use likely_kernels::text::{Terms, TextError, Texts, Vocabulary, alphabet, sparse};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyList;

type Ints<'py, T> = Bound<'py, PyArray1<T>>;

pub fn refused(error: TextError) -> PyErr {
    match error {
        TextError::Layout => PyValueError::new_err("the texts are broken: their offsets and bytes do not fit together"),
        // the caller knows the document, and says what is wrong with it
        TextError::NotUtf8(document) => crate::NotUtf8Error::new_err(document),
    }
}

/// A borrowed array of offsets of either width.
pub enum OffsetsArray<'py> {
    Narrow(PyReadonlyArray1<'py, i32>),
    Wide(PyReadonlyArray1<'py, i64>),
}

impl<'py> FromPyObject<'_, 'py> for OffsetsArray<'py> {
    type Error = PyErr;
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(offsets) = any.extract() {
            return Ok(Self::Narrow(offsets));
        }
        any.extract().map(Self::Wide).map_err(|_| PyTypeError::new_err("expected offsets of 32 or 64 bits"))
    }
}

/// (offsets, bytes, bits of those that are there or None, the place of the first bit)
type ArrowArrays<'py> = (OffsetsArray<'py>, PyReadonlyArray1<'py, u8>, Option<PyReadonlyArray1<'py, u8>>, usize);

/// Texts from Python: the arrays of Arrow, or a list of strings, which are read where they lie.
pub enum TextArrays<'py> {
    Arrow(Box<ArrowArrays<'py>>),
    Listed(Strings),
}

pub struct Strings(Vec<PyBackedStr>);

impl Listed for Strings {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, document: usize) -> &[u8] {
        self.0[document].as_bytes()
    }
}

impl<'py> FromPyObject<'_, 'py> for TextArrays<'py> {
    type Error = PyErr;
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if any.is_instance_of::<PyList>() {
            return Ok(Self::Listed(Strings(any.extract()?)));
        }
        Ok(Self::Arrow(Box::new(any.extract()?)))
    }
}

pub fn texts<'a>(arrays: &'a TextArrays) -> PyResult<Texts<'a>> {
    let arrays = match arrays {
        TextArrays::Listed(strings) => return Ok(Texts::Listed(strings)),
        TextArrays::Arrow(arrays) => arrays,
    };
    let offsets = match &arrays.0 {
        OffsetsArray::Narrow(offsets) => Offsets::Narrow(offsets.as_slice()?),
        OffsetsArray::Wide(offsets) => Offsets::Wide(offsets.as_slice()?),
    };
    let validity = arrays.2.as_ref().map(|bits| bits.as_slice()).transpose()?.map(|bits| (bits, arrays.3));
    Ok(Texts::Arrow(Arrow { offsets, bytes: arrays.1.as_slice()?, validity }))
}

/// (kind, shortest, longest, lower case, what to do with bytes that are not UTF-8, stop words)
pub type Settings<'py> = (String, usize, usize, bool, String, TextArrays<'py>);
/// (flags of every code point, the code points that folding changes, where what they become begins, what they become)
pub type Tables<'py> =
    (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u8>);

pub fn analysis<'a>(settings: &Settings, tables: Option<&'a Tables>) -> PyResult<Analysis<'a>> {
    let (kind, shortest, longest, lower, invalid, _) = settings;
    let kind = match kind.as_str() {
        "words of two" => Kind::Words { single: false },
        "words" => Kind::Words { single: true },
        "words and punctuation" => Kind::WordsAndPunctuation,
        "characters" => Kind::Characters,
        "characters in words" => Kind::CharactersInWords,
        "tokens" => Kind::Tokens,
        _ => return Err(PyValueError::new_err(format!("no units {kind:?}"))),
    };
    let invalid = match invalid.as_str() {
        "strict" => Invalid::Refuse,
        "ignore" => Invalid::Drop,
        "replace" => Invalid::Replace,
        _ => return Err(PyValueError::new_err(format!("no way {invalid:?} with bytes that are not UTF-8"))),
    };
    if *shortest < 1 || longest < shortest {
        return Err(PyValueError::new_err("a unit is of at least one word or character"));
    }
    let mut alphabet = Alphabet::ascii(*lower, invalid);
    if let Some((kinds, folded, starts, becomes)) = tables {
        (alphabet.kinds, alphabet.folded) = (kinds.as_slice()?, folded.as_slice()?);
        (alphabet.starts, alphabet.becomes) = (starts.as_slice()?, becomes.as_slice()?);
        let text = std::str::from_utf8(alphabet.becomes).ok();
        let begins = |&start: &u32| text.is_some_and(|text| text.is_char_boundary(start as usize));
        if !alphabet.starts.iter().all(begins) {
            return Err(PyValueError::new_err("what characters become is not UTF-8"));
        }
    }
    // longer than any document, yet twice of it is a number, too
    Ok(Analysis { kind, shortest: *shortest, longest: (*longest).min(usize::MAX / 4), alphabet })
}

pub fn strings<'a>(texts: &Texts<'a>) -> PyResult<Vec<&'a [u8]>> {
    (0..texts.len()).map(|i| texts.get(i)).collect::<Result<_, _>>().map_err(refused)
}

pub type RowArrays<'py> = (Ints<'py, i64>, Ints<'py, i32>, Ints<'py, i32>);
pub type TermArrays<'py> = (Ints<'py, i64>, Ints<'py, u8>);

pub fn row_arrays(py: Python<'_>, rows: Rows) -> RowArrays<'_> {
    (PyArray1::from_vec(py, rows.starts), PyArray1::from_vec(py, rows.units), PyArray1::from_vec(py, rows.counts))
}

pub fn term_arrays(py: Python<'_>, terms: Terms) -> TermArrays<'_> {
    (PyArray1::from_vec(py, terms.offsets), PyArray1::from_vec(py, terms.bytes))
}

/// Whether texts are ASCII throughout, and whether there is a capital sigma among them.
#[pyfunction]
fn survey_text(py: Python<'_>, documents: TextArrays<'_>) -> PyResult<(bool, bool)> {
    let documents = texts(&documents)?;
    py.detach(|| alphabet::survey(&documents)).map_err(refused)
}

/// The units of every document: where rows begin, units, counts; and the terms, in the order of their first appearance.
#[pyfunction]
fn count_units<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
) -> PyResult<(RowArrays<'py>, TermArrays<'py>)> {
    let (documents, analysis) = (texts(&documents)?, analysis(&settings, tables.as_ref())?);
    let stops = strings(&texts(&settings.5)?)?;
    let grow = || Vocabulary::growing(stops.iter().copied());
    let (rows, terms) = py.detach(|| count(&documents, &analysis, grow)).map_err(refused)?;
    Ok((row_arrays(py, rows), term_arrays(py, terms)))
}

/// The units of every document that are among `terms`.
#[pyfunction]
fn count_known_units<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    terms: TextArrays<'py>,
) -> PyResult<RowArrays<'py>> {
    let (documents, analysis) = (texts(&documents)?, analysis(&settings, tables.as_ref())?);
    let (stops, terms) = (strings(&texts(&settings.5)?)?, strings(&texts(&terms)?)?);
    let rows = py.detach(|| {
        let grams = analysis.kind.is_words() && analysis.longest > 1;
        let known = Known::new(stops.iter().copied(), terms.iter().copied(), grams);
        count_known(&documents, &analysis, &known)
    });
    Ok(row_arrays(py, rows.map_err(refused)?))
}

/// The hashes of the units of every document, in `width` columns.
#[pyfunction]
fn count_hashed_units<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    width: u32,
    signs: bool,
) -> PyResult<RowArrays<'py>> {
    let (documents, analysis) = (texts(&documents)?, analysis(&settings, tables.as_ref())?);
    let stops = strings(&texts(&settings.5)?)?.into_iter().collect();
    if width < 1 || i32::try_from(width).is_err() {
        return Err(PyValueError::new_err("expected 1 to 2^31 - 1 columns"));
    }
    let rows = py.detach(|| count_hashes(&documents, &analysis, &stops, width, signs)).map_err(refused)?;
    Ok(row_arrays(py, rows))
}

/// 64 bits of a hash of every document, the same on every machine; a missing one is an empty one.
#[pyfunction]
fn hash_texts<'py>(py: Python<'py>, documents: TextArrays<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let documents = texts(&documents)?;
    Ok(PyArray1::from_vec(py, py.detach(|| hashes(&documents)).map_err(refused)?))
}

/// The order that sorts terms by their code points.
#[pyfunction]
fn sort_terms<'py>(py: Python<'py>, terms: TextArrays<'py>) -> PyResult<Ints<'py, i32>> {
    let terms = texts(&terms)?;
    Ok(PyArray1::from_vec(py, py.detach(|| sparse::sorted(&terms)).map_err(refused)?))
}

/// Rows with other column numbers, sorted by them; columns whose new number is negative are dropped.
#[pyfunction]
fn renumber_columns<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    units: PyReadonlyArray1<'py, i32>,
    counts: PyReadonlyArray1<'py, i32>,
    numbers: PyReadonlyArray1<'py, i32>,
) -> PyResult<RowArrays<'py>> {
    let (starts, units) = (starts.as_slice()?, units.as_slice()?);
    let (counts, numbers) = (counts.as_slice()?, numbers.as_slice()?);
    let rows = py.detach(|| sparse::renumbered(starts, units, counts, numbers)).map_err(refused)?;
    Ok(row_arrays(py, rows))
}

/// The columns of a matrix of rows as rows.
#[pyfunction]
fn transpose_rows<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    columns: PyReadonlyArray1<'py, i32>,
    values: PyReadonlyArray1<'py, f32>,
    width: usize,
) -> PyResult<(Ints<'py, i64>, Ints<'py, i32>, Bound<'py, PyArray1<f32>>)> {
    let (starts, columns, values) = (starts.as_slice()?, columns.as_slice()?, values.as_slice()?);
    let (starts, rows, values) = py.detach(|| sparse::transposed(starts, columns, values, width)).map_err(refused)?;
    Ok((PyArray1::from_vec(py, starts), PyArray1::from_vec(py, rows), PyArray1::from_vec(py, values)))
}

pub fn add_to(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(survey_text, m)?)?;
    m.add_function(wrap_pyfunction!(count_units, m)?)?;
    m.add_function(wrap_pyfunction!(count_known_units, m)?)?;
    m.add_function(wrap_pyfunction!(count_hashed_units, m)?)?;
    m.add_function(wrap_pyfunction!(hash_texts, m)?)?;
    m.add_function(wrap_pyfunction!(sort_terms, m)?)?;
    m.add_function(wrap_pyfunction!(renumber_columns, m)?)?;
    m.add_function(wrap_pyfunction!(transpose_rows, m)?)?;
    Ok(())
}
