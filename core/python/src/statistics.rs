//! Sufficient statistics of rows whose classes are known, or that have responsibilities, as Python functions.

use crate::arrays::{Answer, Array, Array1, Arrays, Columns, Numbers, Table, Vector, Weights};
use crate::arrays::{check_sizes, check_some, make_assignment, make_responsibilities, make_source, matrix, refuse};
use crate::arrays::{shaped, size_of_squares};
use likely_kernels::{categories, expected, moments, responsibility_moments, responsibility_scatter, scatter, tied};
use numpy::IntoPyArray;
use pyo3::prelude::*;

/// Weight, sum and a second sum ("square" or "excess") about an origin, classes × columns each: (origin, weight, sum, second).
#[pyfunction]
pub fn collect_moments<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    domain: &str,
    classes: usize,
    codes: Vector<'py, i32>,
    weights: Weights<'py>,
    centred: bool,
    second: &str,
) -> Answer<Arrays<'py>> {
    let second = match second {
        "square" => moments::Second::Square,
        "excess" => moments::Second::Excess,
        _ => return refuse(format!("no second sum {second:?}")),
    };
    let source = make_source(&x, columns, domain)?;
    let assignment = make_assignment(source.rows(), classes, &codes, weights.as_deref())?;
    let shape = [classes, source.width()];
    let m = py.detach(|| moments::collect(&source, &assignment, centred, second))?;
    shaped(py, [m.origin, m.weight, m.sum, m.second].map(|values| (values, &shape[..])))
}

/// The same about origins that are given, of rows weighted by responsibilities: (weight, sum, squares).
#[pyfunction]
pub fn collect_responsibility_moments<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    domain: &str,
    responsibilities: Table<'py>,
    weights: Weights<'py>,
    origin: Table<'py>,
) -> Answer<Arrays<'py>> {
    let source = make_source(&x, columns, domain)?;
    let given = make_responsibilities(source.rows(), &responsibilities, weights.as_deref())?;
    let shape = [given.classes, source.width()];
    check_shape(&origin, shape)?;
    let origin = origin.to_vec();
    let m = py.detach(|| responsibility_moments::collect(&source, &given, origin))?;
    shaped(py, [m.weight, m.sum, m.second].map(|values| (values, &shape[..])))
}

fn check_shape(given: &Table, want: [usize; 2]) -> Answer<()> {
    let got = given.shape();
    check_sizes(&[(got[0], want[0]), (got[1], want[1])])
}

/// Weight, sum and sums of products about an origin: (origin, weight, sum, product[, cubic, quartic]).
#[pyfunction]
pub fn collect_scatter<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    classes: usize,
    codes: Vector<'py, i32>,
    weights: Weights<'py>,
    fourth: bool,
) -> Answer<Arrays<'py>> {
    let source = make_source(&x, columns, "real")?;
    let assignment = make_assignment(source.rows(), classes, &codes, weights.as_deref())?;
    let (k, d) = (classes, source.width());
    let s = py.detach(|| scatter::collect(&source, &assignment, fourth))?;
    let mut arrays = shaped(py, [(s.origin, &[k, d])])?;
    arrays.extend(sums_of_products(py, [s.weight, s.sum, s.product], k, d)?);
    if fourth {
        arrays.extend(shaped(py, [(s.cubic, &[k, d, d]), (s.quartic, &[k, d, d])])?);
    }
    Ok(arrays)
}

fn sums_of_products(py: Python<'_>, sums: [Vec<f64>; 3], k: usize, d: usize) -> Answer<Arrays<'_>> {
    let [weight, sum, product] = sums;
    shaped(py, [(weight, &[k]), (sum, &[k, d]), (product, &[k, d, d])])
}

/// The same about origins that are given, of rows weighted by responsibilities: (weight, sum, product). `is_tied`: the
/// products of all classes together are enough, of which each gets a part.
#[pyfunction]
pub fn collect_responsibility_scatter<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    responsibilities: Table<'py>,
    weights: Weights<'py>,
    origin: Table<'py>,
    is_tied: bool,
) -> Answer<Arrays<'py>> {
    let source = make_source(&x, columns, "real")?;
    let given = make_responsibilities(source.rows(), &responsibilities, weights.as_deref())?;
    let (k, d) = (given.classes, source.width());
    check_shape(&origin, [k, d])?;
    let origin = &*origin;
    let s = py.detach(|| {
        let together = if is_tied { tied::collect(&source, &given, origin)? } else { None };
        together.map_or_else(|| responsibility_scatter::collect(&source, &given, origin.to_vec()), Ok)
    })?;
    sums_of_products(py, [s.weight, s.sum, s.product], k, d)
}

/// Expected sums of rows with missing cells under a Gaussian for each class, about the origin of the cells and means:
/// (weight, sum, product).
#[pyfunction]
pub fn collect_expected<'py>(
    py: Python<'py>,
    cells: Vector<'py>,
    rows: usize,
    weights: Weights<'py>,
    there: Table<'py, bool>,
    groups: Table<'py, i64>,
    mean: Table<'py>,
    precision: Numbers<'py>,
) -> Answer<Arrays<'py>> {
    let [k, d] = mean.shape();
    let gaussians = expected::Gaussians { mean: &mean, precision: &precision };
    check_sizes(&[
        (precision.len(), size_of_squares(precision.len(), k, d)),
        (there.len() % d.max(1), 0),
        (weights.as_deref().map_or(rows, <[f64]>::len), rows),
    ])?;
    let groups = make_groups(&groups, &there, d, k, rows, cells.len())?;
    let incomplete =
        expected::IncompleteRows { cells: &cells, weights: weights.as_deref(), there: &there, groups, width: d };
    let e = py.detach(|| expected::expect(&incomplete, &gaussians));
    sums_of_products(py, [e.weight, e.sum, e.product], k, d)
}

/// The groups of rows with missing cells, from lines of (pattern, class, rows), checked against the cells.
fn make_groups(
    lines: &[i64],
    there: &[bool],
    width: usize,
    classes: usize,
    rows: usize,
    cells: usize,
) -> Answer<Vec<expected::Group>> {
    let sizes: Vec<usize> = there.chunks_exact(width.max(1)).map(|row| row.iter().filter(|&&is| is).count()).collect();
    let (mut groups, mut row, mut cell) = (vec![], 0, 0);
    for line in lines.chunks_exact(3) {
        let (pattern, class, count) = (line[0] as usize, line[1] as usize, line[2] as usize);
        if pattern >= sizes.len() || class >= classes || count > rows {
            return refuse("a group is outside the patterns and classes");
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

/// The same about the means, of rows weighted by responsibilities: (weight, sum, product).
#[pyfunction]
pub fn collect_responsibility_expected<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    responsibilities: Table<'py>,
    weights: Weights<'py>,
    mean: Table<'py>,
    precision: Numbers<'py>,
) -> Answer<Arrays<'py>> {
    let source = make_source(&x, columns, "real")?;
    let given = make_responsibilities(source.rows(), &responsibilities, weights.as_deref())?;
    let (k, d) = (given.classes, source.width());
    check_some(k, d)?;
    check_sizes(&[(mean.len(), k * d), (precision.len(), size_of_squares(precision.len(), k, d))])?;
    let gaussians = expected::Gaussians { mean: &mean, precision: &precision };
    let e = py.detach(|| expected::expect_weighted(&source, &given, &gaussians))?;
    sums_of_products(py, [e.weight, e.sum, e.product], k, d)
}

/// The values of each column, sorted, and their weights, values × classes.
type Counted<'py> = Vec<(Array1<'py>, crate::arrays::Array2<'py>)>;

/// For each column its distinct values, sorted, and their weights (values × classes).
#[pyfunction]
pub fn collect_categories<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    domain: &str,
    classes: usize,
    codes: Vector<'py, i32>,
    weights: Weights<'py>,
) -> Answer<Counted<'py>> {
    let source = make_source(&x, columns, domain)?;
    let assignment = make_assignment(source.rows(), classes, &codes, weights.as_deref())?;
    check_some(classes, 1)?;
    counted(py, py.detach(|| categories::count(&source, &assignment))?, classes)
}

/// The same of rows weighted by responsibilities.
#[pyfunction]
pub fn collect_responsibility_categories<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    domain: &str,
    responsibilities: Table<'py>,
    weights: Weights<'py>,
) -> Answer<Counted<'py>> {
    let source = make_source(&x, columns, domain)?;
    let given = make_responsibilities(source.rows(), &responsibilities, weights.as_deref())?;
    counted(py, py.detach(|| categories::count(&source, &given))?, given.classes)
}

fn counted(py: Python<'_>, columns: Vec<categories::Column>, classes: usize) -> Answer<Counted<'_>> {
    let arrays = columns.into_iter().map(|column| {
        let rows = column.values.len();
        Ok((column.values.into_pyarray(py), matrix(py, column.counts, rows, classes)?))
    });
    arrays.collect()
}
