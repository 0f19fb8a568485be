//! The functions on text, as seen from Python: bindings only.

use crate::arrays::{Answer, Array1, Failure, Vector, refuse};
use likely_kernels::text::hashing::{count_hashes, hashes};
use likely_kernels::text::sinks::{Rows, count, count_known};
use likely_kernels::text::{Alphabet, Analysis, Arrow, Invalid, Kind, Known, Listed, Offsets};
use likely_kernels::text::{Terms, Texts, Vocabulary, alphabet, sparse};
use numpy::IntoPyArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyList;

/// A borrowed array of offsets of either width.
pub enum OffsetsArray<'py> {
    Narrow(Vector<'py, i32>),
    Wide(Vector<'py, i64>),
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

/// (offsets, bytes, bits of those that are there or None, the position of the first bit)
type ArrowArrays<'py> = (OffsetsArray<'py>, Vector<'py, u8>, Option<Vector<'py, u8>>, usize);

/// Texts from Python: the arrays of Arrow, or a list of strings, which are not copied.
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

impl TextArrays<'_> {
    pub fn read(&self) -> Texts<'_> {
        match self {
            Self::Listed(strings) => Texts::Listed(strings),
            Self::Arrow(arrays) => {
                let (offsets, bytes, validity, first) = &**arrays;
                let offsets = match offsets {
                    OffsetsArray::Narrow(offsets) => Offsets::Narrow(offsets),
                    OffsetsArray::Wide(offsets) => Offsets::Wide(offsets),
                };
                Texts::Arrow(Arrow { offsets, bytes, validity: validity.as_deref().map(|bits| (bits, *first)) })
            }
        }
    }

    pub fn strings(&self) -> Answer<Vec<&[u8]>> {
        let texts = self.read();
        (0..texts.len()).map(|i| texts.get(i).map_err(Failure::from)).collect()
    }
}

/// (kind, shortest, longest, lower case, what to do with bytes that are not UTF-8, stop words)
#[derive(FromPyObject)]
pub struct Settings<'py>(String, usize, usize, bool, String, TextArrays<'py>);
/// (flags of every code point, the code points that folding changes, where what they become begins, what they become)
pub type Tables<'py> = (Vector<'py, u8>, Vector<'py, u32>, Vector<'py, u32>, Vector<'py, u8>);

impl Settings<'_> {
    pub fn read<'a>(&self, tables: Option<&'a Tables>) -> Answer<Analysis<'a>> {
        let Self(kind, shortest, longest, lower, invalid, _) = self;
        let kind = match kind.as_str() {
            "words of two" => Kind::Words { single: false },
            "words" => Kind::Words { single: true },
            "words and punctuation" => Kind::WordsAndPunctuation,
            "characters" => Kind::Characters,
            "characters in words" => Kind::CharactersInWords,
            "tokens" => Kind::Tokens,
            _ => return refuse(format!("no units {kind:?}")),
        };
        let invalid = match invalid.as_str() {
            "strict" => Invalid::Refuse,
            "ignore" => Invalid::Drop,
            "replace" => Invalid::Replace,
            _ => return refuse(format!("no way {invalid:?} with bytes that are not UTF-8")),
        };
        if *shortest < 1 || longest < shortest {
            return refuse("a unit is of at least one word or character");
        }
        let mut alphabet = Alphabet::ascii(*lower, invalid);
        if let Some((kinds, folded, starts, becomes)) = tables {
            (alphabet.kinds, alphabet.folded) = (kinds, folded);
            (alphabet.starts, alphabet.becomes) = (starts, becomes);
            let text = std::str::from_utf8(alphabet.becomes).ok();
            let begins = |&start: &u32| text.is_some_and(|text| text.is_char_boundary(start as usize));
            if !alphabet.starts.iter().all(begins) {
                return refuse("what characters become is not UTF-8");
            }
        }
        // longer than any document, yet twice of it is a number, too
        Ok(Analysis { kind, shortest: *shortest, longest: (*longest).min(usize::MAX / 4), alphabet })
    }

    pub fn stop_words(&self) -> Answer<Vec<&[u8]>> {
        self.5.strings()
    }
}

pub type RowArrays<'py> = (Array1<'py, i64>, Array1<'py, i32>, Array1<'py, i32>);
pub type TermArrays<'py> = (Array1<'py, i64>, Array1<'py, u8>);

pub fn row_arrays(py: Python<'_>, rows: Rows) -> RowArrays<'_> {
    (rows.starts.into_pyarray(py), rows.units.into_pyarray(py), rows.counts.into_pyarray(py))
}

pub fn term_arrays(py: Python<'_>, terms: Terms) -> TermArrays<'_> {
    (terms.offsets.into_pyarray(py), terms.bytes.into_pyarray(py))
}

/// Whether texts are ASCII throughout, and whether there is a capital sigma among them.
#[pyfunction]
pub fn survey_text(py: Python<'_>, documents: TextArrays<'_>) -> Answer<(bool, bool)> {
    let documents = documents.read();
    Ok(py.detach(|| alphabet::survey(&documents))?)
}

/// The units of every document: where rows begin, units, counts; and the terms, in the order of their first appearance.
#[pyfunction]
pub fn count_units<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
) -> Answer<(RowArrays<'py>, TermArrays<'py>)> {
    let (documents, analysis) = (documents.read(), settings.read(tables.as_ref())?);
    let stops = settings.stop_words()?;
    let grow = || Vocabulary::growing(stops.iter().copied());
    let (rows, terms) = py.detach(|| count(&documents, &analysis, grow))?;
    Ok((row_arrays(py, rows), term_arrays(py, terms)))
}

/// The units of every document that are among `terms`.
#[pyfunction]
pub fn count_known_units<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    terms: TextArrays<'py>,
) -> Answer<RowArrays<'py>> {
    let (documents, analysis) = (documents.read(), settings.read(tables.as_ref())?);
    let (stops, terms) = (settings.stop_words()?, terms.strings()?);
    let rows = py.detach(|| {
        let grams = analysis.kind.is_words() && analysis.longest > 1;
        let known = Known::new(stops.iter().copied(), terms.iter().copied(), grams);
        count_known(&documents, &analysis, &known)
    });
    Ok(row_arrays(py, rows?))
}

/// The hashes of the units of every document, in `width` columns.
#[pyfunction]
pub fn count_hashed_units<'py>(
    py: Python<'py>,
    documents: TextArrays<'py>,
    settings: Settings<'py>,
    tables: Option<Tables<'py>>,
    width: u32,
    signs: bool,
) -> Answer<RowArrays<'py>> {
    let (documents, analysis) = (documents.read(), settings.read(tables.as_ref())?);
    let stops = settings.stop_words()?.into_iter().collect();
    if width < 1 || i32::try_from(width).is_err() {
        return refuse("expected 1 to 2^31 - 1 columns");
    }
    let rows = py.detach(|| count_hashes(&documents, &analysis, &stops, width, signs))?;
    Ok(row_arrays(py, rows))
}

/// 64 bits of a hash of every document, the same on every machine; a missing one is an empty one.
#[pyfunction]
pub fn hash_texts<'py>(py: Python<'py>, documents: TextArrays<'py>) -> Answer<Array1<'py, u64>> {
    let documents = documents.read();
    Ok(py.detach(|| hashes(&documents))?.into_pyarray(py))
}

/// The order that sorts terms by their code points.
#[pyfunction]
pub fn sort_terms<'py>(py: Python<'py>, terms: TextArrays<'py>) -> Answer<Array1<'py, i32>> {
    let terms = terms.read();
    Ok(py.detach(|| sparse::sorted(&terms))?.into_pyarray(py))
}

/// Rows with other column numbers, sorted by them; columns whose new number is negative are dropped.
#[pyfunction]
pub fn renumber_columns<'py>(
    py: Python<'py>,
    starts: Vector<'py, i64>,
    units: Vector<'py, i32>,
    counts: Vector<'py, i32>,
    numbers: Vector<'py, i32>,
) -> Answer<RowArrays<'py>> {
    let (starts, units, counts, numbers) = (&*starts, &*units, &*counts, &*numbers);
    let rows = py.detach(|| sparse::renumbered(starts, units, counts, numbers))?;
    Ok(row_arrays(py, rows))
}

/// The columns of a matrix of rows as rows.
#[pyfunction]
pub fn transpose_rows<'py>(
    py: Python<'py>,
    starts: Vector<'py, i64>,
    columns: Vector<'py, i32>,
    values: Vector<'py, f32>,
    width: usize,
) -> Answer<(Array1<'py, i64>, Array1<'py, i32>, Array1<'py, f32>)> {
    let (starts, columns, values) = (&*starts, &*columns, &*values);
    let (starts, rows, values) = py.detach(|| sparse::transposed(starts, columns, values, width))?;
    Ok((starts.into_pyarray(py), rows.into_pyarray(py), values.into_pyarray(py)))
}
