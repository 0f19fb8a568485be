//! What Python gives as what kernels take, what they return as what Python gets, and their errors as Python's.

use likely_kernels::interrupt;
use likely_kernels::responsibilities::{Assignment, Responsibilities};
use likely_kernels::source::{BadCell, Domain, Matrix, Source};
use likely_kernels::{sparse, text::TextError};
use ndarray::{Dim, Dimension, Ix1, Ix2, IxDyn};
use numpy::{AsSliceError, Element, IntoPyArray, PyArray, PyArray1, PyArrayDyn, PyReadonlyArray, PyReadonlyArray2};
use numpy::{PyArrayMethods, PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;

create_exception!(_core, BadCellError, PyValueError, "A cell outside its column's domain: (row, column, value).");

create_exception!(_core, NotUtf8Error, PyValueError, "A document that is not UTF-8: its number.");

/// An error of a kernel or of Python, as Python sees it.
pub struct Failure(PyErr);

pub type Answer<T> = Result<T, Failure>;

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

macro_rules! failures {
    ($($error:ty, $convert:expr;)*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self { Self($convert(error)) }
        })*
    };
}
failures! {
    PyErr, |error| error;
    AsSliceError, PyErr::from;
    BadCell, bad_cell;
    sparse::Broken, |error| match error {
        sparse::Broken::Layout => broken_sparse(),
        sparse::Broken::Value { row, column, value } => bad_cell(BadCell { row, column, value }),
    };
    TextError, |error| match error {
        TextError::Layout => PyValueError::new_err("the texts are broken: their offsets and bytes do not fit together"),
        // the caller knows the document, and says what is wrong with it
        TextError::NotUtf8(document) => NotUtf8Error::new_err(document),
    };
}

fn bad_cell(bad: BadCell) -> PyErr {
    BadCellError::new_err((bad.row, bad.column, bad.value))
}

pub fn broken_sparse() -> PyErr {
    PyValueError::new_err("the sparse matrix is broken: its index arrays do not fit together")
}

/// A refusal of values that cannot be used.
pub fn refuse<T>(why: impl Into<String>) -> Answer<T> {
    Err(Failure(PyValueError::new_err(why.into())))
}

pub fn unfit<T>(what: &str) -> Answer<T> {
    refuse(format!("the arrays of the {what} do not fit together"))
}

/// A borrowed NumPy array of one element type whose numbers lie row after row, read as a slice.
pub struct Given<'py, T: Element, D: Dimension>(PyReadonlyArray<'py, T, D>);

pub type Vector<'py, T = f64> = Given<'py, T, Ix1>;
pub type Table<'py, T = f64> = Given<'py, T, Ix2>;
/// Of any number of dimensions.
pub type Numbers<'py> = Given<'py, f64, IxDyn>;

impl<'py, T: Element + 'py, D: Dimension + 'py> FromPyObject<'_, 'py> for Given<'py, T, D> {
    type Error = PyErr;
    fn extract(any: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array: PyReadonlyArray<'py, T, D> = any.extract()?;
        if array.len() > 0 && !array.is_c_contiguous() {
            return Err(AsSliceError.into());
        }
        array.as_slice()?; // aligned, too
        Ok(Self(array))
    }
}

impl<T: Element, D: Dimension> Deref for Given<'_, T, D> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.0.as_slice().unwrap_or_default() // it was one when it was read
    }
}

impl<T: Element, const N: usize> Given<'_, T, Dim<[usize; N]>>
where
    Dim<[usize; N]>: Dimension,
{
    pub fn shape(&self) -> [usize; N] {
        std::array::from_fn(|i| self.0.shape()[i])
    }
}

macro_rules! arrays {
    ($($name:ident $kind:ty),*) => {
        /// A borrowed NumPy matrix of any element type and memory order.
        pub enum Array<'py> { $($name(PyReadonlyArray2<'py, $kind>),)* }

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

/// Which columns of a matrix are read; None for all.
pub type Columns = Option<Vec<usize>>;

pub fn domain(name: &str) -> Answer<Domain> {
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
        _ => return refuse(format!("no domain {name:?}")),
    })
}

pub fn make_source<'a>(x: &'a Array, columns: Columns, domain_name: &str) -> Answer<Source<'a>> {
    let (matrix, mut domain) = (x.view(), domain(domain_name)?);
    if matches!((&matrix, domain), (Matrix::Bool(_), Domain::Above(threshold)) if (0.0..1.0).contains(&threshold)) {
        domain = Domain::Binary; // already what it would become
    }
    let source = Source { matrix, columns: None, domain };
    if columns.iter().flatten().any(|&j| j >= source.width()) {
        return refuse("a column index is outside the matrix");
    }
    Ok(Source { columns, ..source })
}

/// How much each row counts; None if all count once.
pub type Weights<'py> = Option<Vector<'py>>;

/// Checks what the kernels rely on: a code and a weight for each row, codes below the number of classes.
pub fn make_assignment<'a>(
    rows: usize,
    classes: usize,
    codes: &'a [i32],
    weights: Option<&'a [f64]>,
) -> Answer<Assignment<'a>> {
    let fits = codes.len() == rows && weights.is_none_or(|weights| weights.len() == rows);
    if !fits || !codes_fit(codes, classes) || u32::try_from(rows).is_err() {
        return refuse("codes and weights do not fit the rows");
    }
    Ok(Assignment { classes, codes, weights })
}

/// Whether codes are below the number of classes. A fold without a branch: it is vectorised.
pub fn codes_fit(codes: &[i32], classes: usize) -> bool {
    let largest = codes.iter().fold(-1, |largest, &code| code.max(largest));
    largest < 0 || (largest as usize) < classes
}

/// Checks that there are responsibilities, and a weight, for each row.
pub fn make_responsibilities<'a>(
    rows: usize,
    values: &'a Table,
    weights: Option<&'a [f64]>,
) -> Answer<Responsibilities<'a>> {
    let [given, classes] = values.shape();
    check_sizes(&[(given, rows), (weights.map_or(rows, <[f64]>::len), rows)])?;
    Ok(Responsibilities { classes, values, weights })
}

/// A contiguous output of rows × classes, checked against the rows.
pub fn scores<'a>(out: &'a mut PyReadwriteArray2<'_, f64>, rows: usize, k: usize) -> Answer<&'a mut [f64]> {
    if out.shape() != [rows, k] {
        return refuse("the scores do not fit the rows and classes");
    }
    Ok(out.as_slice_mut()?)
}

/// Checks pairs of a size that was got and one that is wanted.
pub fn check_sizes(given: &[(usize, usize)]) -> Answer<()> {
    if given.iter().all(|(got, want)| got == want) {
        return Ok(());
    }
    refuse("the parameters do not fit the columns and classes")
}

/// The size of square matrices, one for each class, or one for all as their length tells.
pub fn size_of_squares(length: usize, k: usize, d: usize) -> usize {
    if length == d * d { d * d } else { k * d * d }
}

/// Refuses sizes of 0, of which no kernel could take anything.
pub fn check_some(classes: usize, columns: usize) -> Answer<()> {
    if classes > 0 && columns > 0 {
        return Ok(());
    }
    refuse("expected at least one class and one column")
}

pub type Arrays<'py> = Vec<Bound<'py, PyArrayDyn<f64>>>;

/// Vectors as arrays, each with its shape.
pub fn shaped<'py, const N: usize>(py: Python<'py>, values: [(Vec<f64>, &[usize]); N]) -> Answer<Arrays<'py>> {
    Ok(values.into_iter().map(|(values, shape)| values.into_pyarray(py).reshape(shape)).collect::<PyResult<_>>()?)
}

pub type Array1<'py, T = f64> = Bound<'py, PyArray1<T>>;
pub type Array2<'py, T = f64> = Bound<'py, PyArray<T, Ix2>>;

pub fn matrix<T: Element>(py: Python<'_>, values: Vec<T>, rows: usize, columns: usize) -> Answer<Array2<'_, T>> {
    Ok(values.into_pyarray(py).reshape([rows, columns])?)
}

/// Does work of some size while the interpreter is released. Python handles signals in the thread that called: so that thread
/// looks for them, and another one does the work, which ends soon after it is told to stop.
pub fn watched<T: Send>(steps: usize, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    #[allow(clippy::redundant_closure_for_method_calls)] // its name alone is not general enough
    interrupt::watched(steps, || Python::attach(|py| py.check_signals()), work)
}
