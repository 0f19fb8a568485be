//! The native core of likely, as a Python module: bindings only. Arrays in, arrays out, the interpreter released.

mod arrays;
mod evidence;
mod forest;
mod kmeans;
mod scores;
mod sparse;
mod statistics;
mod text;
mod trees;
mod words;

use crate::arrays::{Answer, Array, Array1, Array2, Columns, Table, Vector, check_sizes, make_source, matrix, refuse};
use likely_kernels::{json, keys, labels, simd, special, threads};
use numpy::{IntoPyArray, PyReadwriteArray1};
use pyo3::prelude::*;

/// The sorted distinct labels and each row's position among them.
#[pyfunction]
fn encode_integers<'py>(py: Python<'py>, labels: Vector<'py, i64>) -> (Array1<'py, i64>, Array1<'py, i32>) {
    let labels = &*labels;
    let (classes, codes) = py.detach(|| labels::encode(labels));
    (classes.into_pyarray(py), codes.into_pyarray(py))
}

/// Adds to the key of every row what its cells say, mixed with the seed of each column.
#[pyfunction]
fn add_row_keys<'py>(
    py: Python<'py>,
    x: Array<'py>,
    columns: Columns,
    seeds: Vector<'py, u64>,
    mut out: PyReadwriteArray1<'py, u64>,
) -> Answer<()> {
    let source = make_source(&x, columns, "real")?;
    let (seeds, out) = (&*seeds, out.as_slice_mut()?);
    check_sizes(&[(seeds.len(), source.width()), (out.len(), source.rows())])?;
    py.detach(|| keys::add(&source, seeds, out));
    Ok(())
}

/// Whether objects and lists of JSON text lie in each other deeper than a limit.
#[pyfunction]
fn json_is_deeper(py: Python<'_>, text: &[u8], limit: usize) -> bool {
    py.detach(|| json::is_deeper(text, limit))
}

/// The maximum-likelihood shape of a gamma distribution from log(mean x) − mean(log x), for each number.
#[pyfunction]
fn gamma_shapes<'py>(py: Python<'py>, gaps: Vector<'py>) -> Array1<'py> {
    gaps.iter().map(|&gap| special::gamma_shape(gap)).collect::<Vec<_>>().into_pyarray(py)
}

/// u − 1 − log u with u = x/m, of each pair of numbers.
#[pyfunction]
fn excess<'py>(py: Python<'py>, x: Table<'py>, m: Table<'py>) -> Answer<Array2<'py>> {
    check_sizes(&[(x.len(), m.len())])?;
    let [rows, columns] = x.shape();
    matrix(py, x.iter().zip(&*m).map(|(&x, &m)| special::excess(x, m)).collect(), rows, columns)
}

/// Sets the number of threads of every kernel; None goes back to the number of cores.
#[pyfunction]
#[pyo3(signature = (threads=None))]
fn set_threads(threads: Option<i64>) -> Answer<()> {
    if let Some(threads) = threads.filter(|&threads| threads < 1) {
        return refuse(format!("expected at least 1 thread, got {threads}"));
    }
    threads::set_threads(threads.map(|threads| threads as usize));
    Ok(())
}

#[pyfunction]
fn get_threads() -> usize {
    threads::threads()
}

/// Refuses a level of instructions in the environment that there is not.
fn check_environment() -> Answer<()> {
    let level = std::env::var_os("LIKELY_SIMD").map(|level| level.to_string_lossy().into_owned());
    let known = simd::LEVELS.map(|(name, _)| name);
    if let Some(level) = level.filter(|level| !known.contains(&level.as_str())) {
        return refuse(format!("expected LIKELY_SIMD to be one of {}, got {level:?}", known.join(", ")));
    }
    Ok(())
}

#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arrays::{BadCellError, NotUtf8Error};
    #[pymodule_export]
    use crate::evidence::{
        evidence_out_of_fold, exponent_slope, solve_damped, weigh_evidence, word_evidence, word_groups,
    };
    #[pymodule_export]
    use crate::forest::{forest_grow, forest_layout, forest_leaf_counts, forest_node_counts, forest_probabilities};
    #[pymodule_export]
    use crate::kmeans::{kmeans_distances, kmeans_missing, kmeans_nearest, kmeans_order, kmeans_plus_plus, kmeans_run};
    #[pymodule_export]
    use crate::scores::{
        begin_scores, expect_classes, likeliest, log_density, posterior_in_place, score_binary, score_categories,
        score_full, score_gamma, score_gaussian, score_jacobian, score_linear, score_poisson, score_products,
        step_gaussian,
    };
    #[pymodule_export]
    use crate::sparse::{collect_sparse, log_probabilities, score_sparse};
    #[pymodule_export]
    use crate::statistics::{
        collect_categories, collect_expected, collect_moments, collect_responsibility_categories,
        collect_responsibility_expected, collect_responsibility_moments, collect_responsibility_scatter,
        collect_scatter,
    };
    #[pymodule_export]
    use crate::text::{
        count_hashed_units, count_known_units, count_units, hash_texts, renumber_columns, sort_terms, survey_text,
        transpose_rows,
    };
    #[pymodule_export]
    use crate::trees::{
        given_others, hidden_draw, hidden_left_out, hidden_log_densities, hidden_posteriors, hidden_step,
        mutual_information, normal_bins, normal_distribution, normal_quantiles, pair_counts, table_information,
        tree_counts, tree_draw, tree_last_levels, tree_left_out, tree_log_densities, tree_marginals,
    };
    #[pymodule_export]
    use crate::words::{KnownWords, collect_amounts, merge_amounts, score_texts, term_orders};
    #[pymodule_export]
    use crate::{add_row_keys, encode_integers, excess, gamma_shapes, get_threads, json_is_deeper, set_threads};

    #[pymodule_init]
    fn init(_m: &Bound<'_, PyModule>) -> PyResult<()> {
        Ok(crate::check_environment()?)
    }
}
