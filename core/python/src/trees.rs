//! Trees of columns, and hidden trees, as Python functions.

use crate::arrays::{
    Answer, Array1, Array2, Arrays, Numbers, Table, Vector, Weights, check_sizes, matrix, refuse, shaped, unfit,
};
use likely_kernels::trees::hidden::{self, HiddenTree, Rows, Supports};
use likely_kernels::trees::information::{self, Columns};
use likely_kernels::trees::{Cells, Trees, counts, draw, left_out, messages};
use likely_kernels::{conditional_bins as conditional, special};
use numpy::IntoPyArray;
use pyo3::prelude::*;

/// Levels of every column; parents, orders and starts of tables (components × columns); and all tables.
type TreeArrays<'py> = (Vector<'py, i32>, Table<'py, i32>, Table<'py, i32>, Table<'py, i64>, Vector<'py>);

fn trees<'a>((levels, parents, order, starts, tables): &'a TreeArrays) -> Answer<Trees<'a>> {
    let trees = Trees { levels, parents, order, starts, tables };
    if trees.fit() { Ok(trees) } else { unfit("trees") }
}

fn cells<'a>(codes: &'a Table<i16>, evidence: Option<&'a [f64]>, trees: &Trees) -> Answer<Cells<'a>> {
    let cells = Cells { codes, evidence };
    if codes.shape()[1] == trees.width() && cells.fit(trees.levels) { Ok(cells) } else { unfit("cells") }
}

/// The columns that are asked for, checked.
fn asked(columns: Vec<usize>, width: usize) -> Answer<Vec<usize>> {
    if columns.iter().all(|&column| column < width) { Ok(columns) } else { refuse("a column is outside the rows") }
}

/// log p(what is known of each row | tree), rows × trees.
#[pyfunction]
pub fn tree_log_densities<'py>(
    py: Python<'py>,
    tree: TreeArrays<'py>,
    codes: Table<'py, i16>,
    evidence: Option<Vector<'py>>,
) -> Answer<Array2<'py>> {
    let trees = trees(&tree)?;
    let cells = cells(&codes, evidence.as_deref(), &trees)?;
    let found = py.detach(|| messages::log_densities(&trees, &cells));
    matrix(py, found, codes.shape()[0], trees.components())
}

/// The distribution of some columns' cells given all that is known of their row, mixed by responsibilities.
#[pyfunction]
pub fn tree_marginals<'py>(
    py: Python<'py>,
    tree: TreeArrays<'py>,
    codes: Table<'py, i16>,
    evidence: Option<Vector<'py>>,
    responsibilities: Table<'py>,
    columns: Vec<usize>,
) -> Answer<Array2<'py>> {
    let trees = trees(&tree)?;
    let cells = cells(&codes, evidence.as_deref(), &trees)?;
    let columns = asked(columns, trees.width())?;
    check_sizes(&[(responsibilities.len(), codes.shape()[0] * trees.components())])?;
    let shares = &*responsibilities;
    let found = py.detach(|| messages::marginals(&trees, &cells, shares, &columns));
    matrix(py, found, codes.shape()[0], columns.iter().map(|&column| trees.size(column)).sum())
}

/// p(a column is at its last level | what is known, component) where its cell is not there: rows × (components × columns).
#[pyfunction]
pub fn tree_last_levels<'py>(
    py: Python<'py>,
    tree: TreeArrays<'py>,
    codes: Table<'py, i16>,
    evidence: Option<Vector<'py>>,
    responsibilities: Table<'py>,
    columns: Vec<usize>,
) -> Answer<Array2<'py>> {
    let trees = trees(&tree)?;
    let cells = cells(&codes, evidence.as_deref(), &trees)?;
    let columns = asked(columns, trees.width())?;
    check_sizes(&[(responsibilities.len(), codes.shape()[0] * trees.components())])?;
    let shares = &*responsibilities;
    let found = py.detach(|| messages::last_levels(&trees, &cells, shares, &columns));
    matrix(py, found, codes.shape()[0], trees.components() * columns.len())
}

/// Every observed cell left out of its row: log p of the others, their distribution of the cell, responsibilities of components and
/// p(last level) without it, of which the last two are rows × columns × components.
#[pyfunction]
pub fn tree_left_out<'py>(
    py: Python<'py>,
    tree: TreeArrays<'py>,
    codes: Table<'py, i16>,
    evidence: Option<Vector<'py>>,
    others: Numbers<'py>,
) -> Answer<Arrays<'py>> {
    let trees = trees(&tree)?;
    let cells = cells(&codes, evidence.as_deref(), &trees)?;
    let ([n, d], k) = (codes.shape(), trees.components());
    check_sizes(&[(others.len(), n * d * k)])?;
    let others = &*others;
    let found = py.detach(|| left_out::left_out(&trees, &cells, others));
    let all = trees.levels.iter().map(|&size| size as usize).sum();
    let each = &[n, d, k][..];
    shaped(py, [(found.logs, &[n, d]), (found.found, &[n, all]), (found.shares, each), (found.last, each)])
}

/// Φ of every number.
#[pyfunction]
pub fn normal_distribution<'py>(py: Python<'py>, x: Vector<'py>) -> Array1<'py> {
    let x = &*x;
    py.detach(|| special::of_each(x, special::normal_distribution::<false>)).into_pyarray(py)
}

/// Φ⁻¹ of every number.
#[pyfunction]
pub fn normal_quantiles<'py>(py: Python<'py>, p: Vector<'py>) -> Array1<'py> {
    let p = &*p;
    py.detach(|| special::of_each(p, special::normal_quantile)).into_pyarray(py)
}

/// Cells of some columns given the others of their row, under Gaussians with these inverse covariances: log p over the standard
/// normal density (0 of a missing cell), mean and deviation, rows × columns × components.
#[pyfunction]
pub fn given_others<'py>(
    py: Python<'py>,
    cells: Table<'py>,
    mean: Table<'py>,
    precision: Numbers<'py>,
    columns: Vec<usize>,
) -> Answer<Arrays<'py>> {
    let ([n, width], k) = (cells.shape(), mean.shape()[0]);
    check_sizes(&[(mean.len(), k * width), (precision.len(), k * width * width)])?;
    let columns = asked(columns, width)?;
    if width == 0 {
        return refuse("there are no columns");
    }
    let (cells, gaussians) = (&*cells, conditional::Gaussians { mean: &mean, precision: &precision, width });
    let found = py.detach(|| conditional::given_others(cells, &gaussians, &columns));
    let shape = &[n, columns.len(), k][..];
    shaped(py, [(found.log, shape), (found.mean, shape), (found.deviation, shape)])
}

/// How much of normal distributions lies between edges, mixed by shares: of cells × components, cells × (edges + 1).
#[pyfunction]
pub fn normal_bins<'py>(
    py: Python<'py>,
    mean: Table<'py>,
    deviation: Table<'py>,
    shares: Table<'py>,
    edges: Vector<'py>,
) -> Answer<Array2<'py>> {
    let [cells, k] = mean.shape();
    check_sizes(&[(deviation.len(), mean.len()), (shares.len(), mean.len())])?;
    let (mean, deviation, shares, edges) = (&*mean, &*deviation, &*shares, &*edges);
    let found = py.detach(|| conditional::normal_bins(mean, deviation, shares, k, edges));
    matrix(py, found, cells, edges.len() + 1)
}

/// The expected counts of all tables.
#[pyfunction]
pub fn tree_counts<'py>(
    py: Python<'py>,
    tree: TreeArrays<'py>,
    codes: Table<'py, i16>,
    responsibilities: Table<'py>,
) -> Answer<Array1<'py>> {
    let trees = trees(&tree)?;
    let cells = cells(&codes, None, &trees)?;
    check_sizes(&[(responsibilities.len(), codes.shape()[0] * trees.components())])?;
    let shares = &*responsibilities;
    Ok(py.detach(|| counts::expected(&trees, &cells, shares)).into_pyarray(py))
}

/// Draws every cell that is not observed, from the row's component.
#[pyfunction]
pub fn tree_draw<'py>(
    py: Python<'py>,
    tree: TreeArrays<'py>,
    codes: Table<'py, i16>,
    evidence: Option<Vector<'py>>,
    components: Vector<'py, i32>,
    seed: u64,
) -> Answer<Array2<'py, i16>> {
    let trees = trees(&tree)?;
    let cells = cells(&codes, evidence.as_deref(), &trees)?;
    let [rows, width] = codes.shape();
    check_sizes(&[(components.len(), rows)])?;
    if !components.iter().all(|&c| usize::try_from(c).is_ok_and(|c| c < trees.components())) {
        return refuse("a component is not one of the trees");
    }
    let components = &*components;
    let found = py.detach(|| draw::draw(&trees, &cells, components, seed));
    matrix(py, found, rows, width)
}

/// Columns of levels (columns × rows) and pairs of them, checked.
fn pairs<'a>(
    codes: &'a Table<i16>,
    levels: &'a Vector<i32>,
    pairs: &Table<i64>,
) -> Answer<(Columns<'a>, Vec<(usize, usize)>)> {
    let [width, rows] = codes.shape();
    let columns = Columns { codes, rows, levels };
    let listed: Option<Vec<(usize, usize)>> = pairs
        .chunks_exact(2)
        .map(|pair| match (usize::try_from(pair[0]), usize::try_from(pair[1])) {
            (Ok(one), Ok(other)) if one < width && other < width => Some((one, other)),
            _ => None,
        })
        .collect();
    match listed {
        Some(listed) if levels.len() == width && pairs.shape()[1] == 2 && columns.fit() => Ok((columns, listed)),
        _ => unfit("pairs of columns"),
    }
}

/// How much rows have of each pair of levels, for pairs of columns, one table after the other.
#[pyfunction]
pub fn pair_counts<'py>(
    py: Python<'py>,
    codes: Table<'py, i16>,
    levels: Vector<'py, i32>,
    listed: Table<'py, i64>,
    weights: Weights<'py>,
) -> Answer<Array1<'py>> {
    let (columns, listed) = pairs(&codes, &levels, &listed)?;
    check_sizes(&[(weights.as_deref().map_or(columns.rows, <[f64]>::len), columns.rows)])?;
    let weights = weights.as_deref();
    Ok(py.detach(|| information::pair_counts(&columns, &listed, weights)).into_pyarray(py))
}

/// The mutual information of pairs of columns, and the weight of the rows in which both are there, each pairs × weights.
#[pyfunction]
pub fn mutual_information<'py>(
    py: Python<'py>,
    codes: Table<'py, i16>,
    levels: Vector<'py, i32>,
    listed: Table<'py, i64>,
    weights: Option<Table<'py>>,
) -> Answer<(Array2<'py>, Array2<'py>)> {
    let (columns, listed) = pairs(&codes, &levels, &listed)?;
    let [rows, k] = weights.as_ref().map_or([columns.rows, 1], Table::shape);
    check_sizes(&[(rows, columns.rows)])?;
    let weights = weights.as_deref();
    let (found, total) = py.detach(|| information::mutual_information(&columns, &listed, weights, k));
    Ok((matrix(py, found, listed.len(), k)?, matrix(py, total, listed.len(), k)?))
}

/// The mutual information of a table of counts.
#[pyfunction]
pub fn table_information(counts: Table<'_>) -> f64 {
    let [rows, width] = counts.shape();
    information::information(&counts, rows, width).0
}

/// Parents and order of the columns; p(state) of the root; transitions; levels, p(level | state); which number a column is,
/// and mean and variance of every number and state.
type HiddenArrays<'py> = (
    (Vector<'py, i32>, Vector<'py, i32>, Vector<'py>, Vector<'py>),
    (Vector<'py, i32>, Table<'py>, Vector<'py, i32>, Table<'py>, Table<'py>),
);

fn hidden_tree<'a>(arrays: &'a HiddenArrays) -> Answer<HiddenTree<'a>> {
    let ((parents, order, root, transitions), (levels, probabilities, numbers, mean, variance)) = arrays;
    let states = root.len();
    let tree = HiddenTree { states, parents, order, root, transitions, levels, probabilities, numbers, mean, variance };
    if tree.fit() { Ok(tree) } else { unfit("hidden tree") }
}

/// Codes and scores of rows, and the evidence and weights of some.
type HiddenRows<'py> = (Table<'py, i16>, Table<'py>, Option<Table<'py>>, Weights<'py>);

fn hidden_rows<'a>((codes, scores, evidence, weights): &'a HiddenRows, tree: &HiddenTree) -> Answer<Rows<'a>> {
    let rows = Rows { codes, scores, evidence: evidence.as_deref(), weights: weights.as_deref() };
    if codes.shape()[1] == tree.levels.len() && tree.takes(&rows) { Ok(rows) } else { unfit("rows") }
}

/// log p(what is known) of every row.
#[pyfunction]
pub fn hidden_log_densities<'py>(
    py: Python<'py>,
    tree: HiddenArrays<'py>,
    rows: HiddenRows<'py>,
) -> Answer<Array1<'py>> {
    let tree = hidden_tree(&tree)?;
    let rows = hidden_rows(&rows, &tree)?;
    Ok(py.detach(|| hidden::log_densities(&tree, &rows)).into_pyarray(py))
}

/// An E step: log p of every row; expected states of the root, pairs of states, levels × states, scores and their squares.
#[pyfunction]
pub fn hidden_step<'py>(
    py: Python<'py>,
    tree: HiddenArrays<'py>,
    rows: HiddenRows<'py>,
) -> Answer<(Array1<'py>, Arrays<'py>)> {
    let tree = hidden_tree(&tree)?;
    let rows = hidden_rows(&rows, &tree)?;
    let (logs, sums) = py.detach(|| hidden::step(&tree, &rows));
    let (d, k) = (tree.levels.len(), tree.states);
    let (all, numbers) = (sums.levels.len() / k, sums.score.len() / k);
    let sums = [
        (sums.root, &[k][..]),
        (sums.transitions, &[d, k, k]),
        (sums.levels, &[all, k]),
        (sums.score, &[numbers, k]),
        (sums.square, &[numbers, k]),
    ];
    Ok((logs.into_pyarray(py), shaped(py, sums)?))
}

/// p(state | what is known of the row) of some columns: rows × (columns × states).
#[pyfunction]
pub fn hidden_posteriors<'py>(
    py: Python<'py>,
    tree: HiddenArrays<'py>,
    rows: HiddenRows<'py>,
    columns: Vec<usize>,
) -> Answer<Array2<'py>> {
    let tree = hidden_tree(&tree)?;
    let given = hidden_rows(&rows, &tree)?;
    let columns = asked(columns, tree.levels.len())?;
    let found = py.detach(|| hidden::posteriors(&tree, &given, &columns));
    matrix(py, found, rows.0.shape()[0], columns.len() * tree.states)
}

/// Every observed cell left out of its row: log p of the others, and their distribution of the cell on the supports of columns
/// that these tables are of (column after column, states × values).
#[pyfunction]
pub fn hidden_left_out<'py>(
    py: Python<'py>,
    tree: HiddenArrays<'py>,
    rows: HiddenRows<'py>,
    sizes: Vector<'py, i32>,
    tables: Vector<'py>,
) -> Answer<(Array2<'py>, Array2<'py>)> {
    let tree = hidden_tree(&tree)?;
    let given = hidden_rows(&rows, &tree)?;
    let supports = Supports { sizes: &sizes, tables: &tables };
    if !supports.fit(&tree) {
        return unfit("tables of supports");
    }
    let (logs, found) = py.detach(|| hidden::left_out(&tree, &given, &supports));
    let [n, d] = rows.0.shape();
    Ok((matrix(py, logs, n, d)?, matrix(py, found, n, sizes.iter().map(|&size| size as usize).sum())?))
}

/// Draws the hidden states of every row: rows × columns.
#[pyfunction]
pub fn hidden_draw<'py>(
    py: Python<'py>,
    tree: HiddenArrays<'py>,
    rows: HiddenRows<'py>,
    seed: u64,
) -> Answer<Array2<'py, i16>> {
    let tree = hidden_tree(&tree)?;
    let given = hidden_rows(&rows, &tree)?;
    let found = py.detach(|| hidden::draw(&tree, &given, seed));
    matrix(py, found, rows.0.shape()[0], tree.levels.len())
}
