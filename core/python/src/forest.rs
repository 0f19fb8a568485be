//! Forests, as Python functions.

use crate::arrays::{
    Answer, Array1, Array2, Table, Vector, Weights, check_sizes, codes_fit, matrix, refuse, unfit, watched,
};
use likely_kernels::forest::counts::{self, Sparse, SparseView};
use likely_kernels::forest::grow::{self, Kind};
use likely_kernels::forest::score::{self, Own, Scorer};
use likely_kernels::forest::{Cells, Forest, LEAF, Labels, Layout, Nodes, Sampling};
use numpy::{Element, IntoPyArray};
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;

/// Where each tree begins; the column, the cut and the side of missing cells of each node; masks of categories; and which
/// columns hold categories.
type NodeArrays<'py> =
    (Vector<'py, i64>, Vector<'py, u16>, Vector<'py, u8>, Vector<'py, u8>, Vector<'py, u64>, Vector<'py, bool>);

/// Where each tree begins; its layout: splits, parents, and numbers of masks; masks; and the number of columns.
type ForestArrays<'py> = (Vector<'py, i64>, LayoutArrays<'py>, Vector<'py, u64>, usize);
type LayoutArrays<'py> = (Vector<'py, u64>, Vector<'py, u32>, Vector<'py, u32>);

/// Where the classes of each group begin, the classes, and what is counted of each.
type SparseArrays<'py, T> = (Vector<'py, i64>, Vector<'py, i32>, Vector<'py, T>);

/// A hash of each row, the share that is in a sample, and the seed of the forest.
type SamplingArrays<'py> = (Vector<'py, u64>, f64, u64);

/// A forest whose layout was made by the core: what else would be there is out of bounds.
fn forest<'a>((starts, (splits, parents, numbers), masks, _): &'a ForestArrays) -> Answer<Forest<'a>> {
    let ends = starts.first() == Some(&0) && starts.last() == Some(&(splits.len() as i64));
    if !ends || parents.len() != splits.len() {
        return unfit("forest");
    }
    Ok(Forest { starts, splits, parents, numbers, masks })
}

fn cells<'a>(codes: &'a Table<u8>, width: usize) -> Answer<Cells<'a>> {
    let [rows, columns] = codes.shape();
    check_sizes(&[(columns, width)])?;
    if width == 0 || width >= usize::from(LEAF) || u32::try_from(rows).is_err() {
        return refuse("expected 1 to 65,534 columns and fewer than 2^32 rows");
    }
    Ok(Cells { codes, width })
}

fn labels<'a>(
    rows: usize,
    classes: usize,
    codes: &'a [i32],
    weights: Option<&'a [f64]>,
    known: bool,
) -> Answer<Labels<'a>> {
    check_sizes(&[(codes.len(), rows), (weights.map_or(rows, <[f64]>::len), rows)])?;
    let sized = classes > 0 && u16::try_from(classes).is_ok() && codes_fit(codes, classes);
    if !sized || (known && codes.iter().any(|&code| code < 0)) {
        return refuse("expected 1 to 65,535 classes, and a class of each row");
    }
    if weights.is_some_and(|weights| !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)) {
        return refuse("expected weights that are not negative");
    }
    Ok(Labels { classes, codes, weights })
}

fn sampling<'a>((hashes, rate, seed): &'a SamplingArrays, rows: usize) -> Answer<Sampling<'a>> {
    check_sizes(&[(hashes.len(), rows)])?;
    Ok(Sampling { hashes, rate: *rate, seed: *seed })
}

fn given<T: Element>(sparse: SparseView<'_, T>, groups: usize, classes: usize) -> Answer<SparseView<'_, T>> {
    if sparse.fits(groups, classes) { Ok(sparse) } else { unfit("counts") }
}

fn view<'a, T: Element>((starts, classes, values): &'a SparseArrays<T>) -> SparseView<'a, T> {
    SparseView { starts, classes, values }
}

type Counted<'py, T> = (Array1<'py, i64>, Array1<'py, i32>, Array1<'py, T>);

fn arrays<T: Element>(py: Python<'_>, sparse: Sparse<T>) -> Counted<'_, T> {
    (sparse.starts.into_pyarray(py), sparse.classes.into_pyarray(py), sparse.values.into_pyarray(py))
}

type Grown<'py> = (Array1<'py, i64>, Array1<'py, u16>, Array1<'py, u8>, Array1<'py, u8>, Array1<'py, u64>);

/// Grows trees of some kinds: how many, columns that are tried at each node, and whether their cuts are random.
#[pyfunction]
pub fn forest_grow<'py>(
    py: Python<'py>,
    codes: Table<'py, u8>,
    categories: Vector<'py, bool>,
    classes: usize,
    class_codes: Vector<'py, i32>,
    weights: Weights<'py>,
    sample: SamplingArrays<'py>,
    kinds: Vec<(usize, usize, bool)>,
) -> Answer<Grown<'py>> {
    let cells = cells(&codes, categories.len())?;
    let labels = labels(cells.rows(), classes, &class_codes, weights.as_deref(), true)?;
    let sampling = sampling(&sample, cells.rows())?;
    let kinds: Vec<Kind> = kinds.into_iter().map(|(trees, columns, random)| Kind { trees, columns, random }).collect();
    let trees: usize = kinds.iter().map(|kind| kind.trees).sum();
    let categories = &*categories;
    let steps = trees * cells.rows() * 1000;
    let work = |stop: &AtomicBool| grow::grow(cells, categories, &labels, &sampling, &kinds, stop);
    let grown = py.detach(|| watched(steps, work))?;
    Ok((
        grown.starts.into_pyarray(py),
        grown.features.into_pyarray(py),
        grown.cuts.into_pyarray(py),
        grown.missing.into_pyarray(py),
        grown.masks.into_pyarray(py),
    ))
}

type Laid<'py> = (Array1<'py, u64>, Array1<'py, u32>, Array1<'py, u32>);

/// The layout of trees; refuses nodes that are not those of trees.
#[pyfunction]
pub fn forest_layout<'py>(py: Python<'py>, trees: NodeArrays<'py>) -> Answer<Laid<'py>> {
    let (starts, features, cuts, missing, masks, categories) = &trees;
    let nodes = Nodes { starts, features, cuts, missing, masks };
    let categories = &**categories;
    let Some(layout) = py.detach(|| Layout::of(nodes, categories)) else { return unfit("forest") };
    Ok((layout.splits.into_pyarray(py), layout.parents.into_pyarray(py), layout.numbers.into_pyarray(py)))
}

/// The class weights of rows at all leaves. Rows of a negative class are in none.
#[pyfunction]
pub fn forest_leaf_counts<'py>(
    py: Python<'py>,
    trees: ForestArrays<'py>,
    codes: Table<'py, u8>,
    classes: usize,
    class_codes: Vector<'py, i32>,
    weights: Weights<'py>,
) -> Answer<Counted<'py, f64>> {
    let forest = forest(&trees)?;
    let cells = cells(&codes, trees.3)?;
    let labels = labels(cells.rows(), classes, &class_codes, weights.as_deref(), false)?;
    let found = py.detach(|| counts::at_leaves(&forest, cells, &labels));
    Ok(arrays(py, found))
}

/// The class weights at all nodes from those at leaves, and the weight of all classes together.
#[pyfunction]
pub fn forest_node_counts<'py>(
    py: Python<'py>,
    trees: ForestArrays<'py>,
    classes: usize,
    leaves: SparseArrays<'py, f64>,
) -> Answer<(Counted<'py, f32>, Array1<'py, f32>)> {
    let forest = forest(&trees)?;
    let leaves = given(view(&leaves), forest.leaves(), classes)?;
    let (found, totals) = py.detach(|| counts::at_nodes(&forest, leaves));
    Ok((arrays(py, found), totals.into_pyarray(py)))
}

/// p(class) of every row; with the rows as they were counted, only by trees that were grown without them, and less themselves.
#[pyfunction]
pub fn forest_probabilities<'py>(
    py: Python<'py>,
    trees: ForestArrays<'py>,
    classes: usize,
    nodes: (SparseArrays<'py, f32>, Vector<'py, f32>),
    smoothing: (f64, f64),
    codes: Table<'py, u8>,
    own: Option<(Table<'py, u8>, Vector<'py, i32>, Weights<'py>, SamplingArrays<'py>)>,
) -> Answer<Array2<'py>> {
    let forest = forest(&trees)?;
    let counts = view(&nodes.0); // made by the core, for this forest
    check_sizes(&[(nodes.1.len(), forest.splits.len()), (counts.starts.len(), forest.splits.len() + 1)])?;
    let cells = self::cells(&codes, trees.3)?;
    let rows = cells.rows();
    let own = match &own {
        None => None,
        Some((counted, class_codes, weights, sample)) => Some(Own {
            cells: self::cells(counted, trees.3)?,
            labels: labels(rows, classes, class_codes, weights.as_deref(), true)?,
            sampling: sampling(sample, rows)?,
        }),
    };
    if own.is_some_and(|own| own.cells.rows() != rows) || classes == 0 {
        return unfit("rows");
    }
    let (alpha, least_share) = smoothing;
    let scorer = Scorer { forest, counts, totals: &nodes.1, classes, alpha, least_share };
    let found = py.detach(|| score::probabilities(&scorer, cells, own.as_ref()));
    matrix(py, found, rows, classes)
}
