"""The native core: arrays in, arrays out. See core/python/src."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Matrix = NDArray[Any]
_Floats = NDArray[np.float64]
_Codes = NDArray[np.int32]
_Columns = list[int] | None

class BadCellError(ValueError):
    """A cell outside its column's domain: (row, column, value)."""

def collect_moments(
    x: _Matrix,
    columns: _Columns,
    domain: str,
    classes: int,
    codes: _Codes,
    weights: _Floats | None,
    centred: bool,
    second: str,
) -> list[_Floats]: ...
def collect_scatter(
    x: _Matrix, columns: _Columns, classes: int, codes: _Codes, weights: _Floats | None, fourth: bool
) -> list[_Floats]: ...
def collect_responsibility_moments(
    x: _Matrix, columns: _Columns, domain: str, responsibilities: _Floats, weights: _Floats | None, origin: _Floats
) -> list[_Floats]: ...
def step_gaussian(
    x: _Matrix,
    columns: _Columns,
    mean: _Floats,
    precision: _Floats,
    constant: _Floats,
    log_weights: _Floats,
    codes: _Codes | None,
    weights: _Floats | None,
) -> tuple[float, list[_Floats]] | None: ...
def collect_responsibility_categories(
    x: _Matrix, columns: _Columns, domain: str, responsibilities: _Floats, weights: _Floats | None
) -> list[tuple[_Floats, _Floats]]: ...
def collect_responsibility_scatter(
    x: _Matrix, columns: _Columns, responsibilities: _Floats, weights: _Floats | None, origin: _Floats, is_tied: bool
) -> list[_Floats]: ...
def collect_responsibility_expected(
    x: _Matrix,
    columns: _Columns,
    responsibilities: _Floats,
    weights: _Floats | None,
    mean: _Floats,
    precision: _Floats,
) -> list[_Floats]: ...
def collect_expected(
    cells: _Floats,
    rows: int,
    weights: _Floats | None,
    there: NDArray[np.bool_],
    groups: NDArray[np.int64],
    mean: _Floats,
    precision: _Floats,
) -> list[_Floats]: ...
def collect_categories(
    x: _Matrix, columns: _Columns, domain: str, classes: int, codes: _Codes, weights: _Floats | None
) -> list[tuple[_Floats, _Floats]]: ...
def collect_sparse(
    starts: NDArray[np.int64],
    indices: NDArray[Any],
    values: NDArray[Any],
    width: int,
    domain_name: str,
    classes: int,
    codes: _Codes,
    weights: _Floats | None,
) -> _Floats: ...
def score_gaussian(
    x: _Matrix, columns: _Columns, domain: str, mean: _Floats, precision: _Floats, constant: _Floats, out: _Floats
) -> None: ...
def score_linear(
    x: _Matrix, columns: _Columns, domain: str, slope: _Floats, constant: _Floats, out: _Floats
) -> None: ...
def score_binary(
    x: _Matrix, columns: _Columns, domain: str, log_no: _Floats, log_yes: _Floats, out: _Floats
) -> None: ...
def score_gamma(x: _Matrix, columns: _Columns, mean: _Floats, shape: _Floats, out: _Floats) -> None: ...
def score_poisson(x: _Matrix, columns: _Columns, rate: _Floats, out: _Floats) -> None: ...
def score_products(x: _Matrix, columns: _Columns, linear: tuple[_Floats, _Floats, _Floats], out: _Floats) -> None: ...
def begin_scores(joint: _Floats, log_weights: _Floats) -> None: ...
def score_jacobian(x: _Matrix, columns: _Columns, out: _Floats) -> None: ...
def score_full(
    x: _Matrix,
    columns: _Columns,
    mean: _Floats,
    whitener: _Floats,
    covariance: _Floats,
    constant: _Floats,
    linear: tuple[_Floats, _Floats, _Floats] | None,
    out: _Floats,
) -> None: ...
def score_categories(
    x: _Matrix,
    columns: _Columns,
    domain: str,
    values: _Floats,
    starts: NDArray[np.int64],
    log_probabilities: _Floats,
    out: _Floats,
) -> None: ...
def score_sparse(
    starts: NDArray[np.int64],
    indices: NDArray[Any],
    values: NDArray[Any],
    domain_name: str,
    log_probabilities: _Floats,
    out: _Floats,
) -> None: ...
def log_probabilities(counts: _Floats, smoothing: _Floats) -> _Floats: ...
def encode_integers(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], _Codes]: ...
def add_row_keys(x: _Matrix, columns: _Columns, seeds: NDArray[np.uint64], out: NDArray[np.uint64]) -> None: ...
def json_is_deeper(text: bytes, limit: int) -> bool: ...
def log_density(joint: _Floats) -> _Floats: ...
def posterior_in_place(joint: _Floats, log_weights: _Floats, log: bool) -> None: ...
def expect_classes(
    joint: _Floats, log_weights: _Floats, codes: _Codes | None, weights: _Floats | None
) -> tuple[float, _Floats]: ...
def likeliest(joint: _Floats, log_weights: _Floats) -> NDArray[np.int64]: ...
def excess(x: _Floats, m: _Floats) -> _Floats: ...
def gamma_shapes(gaps: _Floats) -> _Floats: ...
def set_threads(threads: int | None = None) -> None: ...
def get_threads() -> int: ...

_Words = tuple[NDArray[np.int64], _Codes, _Floats, _Floats, NDArray[np.uint8]]
_Evidence = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.float32]]
_WeighedRows = tuple[NDArray[np.int64], _Codes, NDArray[np.float32], _Codes, _Floats, _Floats]

def word_evidence(words: _Words, class_documents: _Floats) -> tuple[_Floats, _Floats, _Floats, _Floats]: ...
def word_groups(
    orders: NDArray[np.uint8], documents: _Floats, information: _Floats, edges: tuple[_Floats, _Floats]
) -> NDArray[np.uint8]: ...
def evidence_out_of_fold(
    words: _Words, class_documents: _Floats, rows: _WeighedRows, folds: list[int], edges: tuple[_Floats, _Floats]
) -> tuple[_Evidence, _Floats]: ...
def weigh_evidence(evidence: _Evidence, weights: _Floats) -> _Floats: ...
def solve_damped(curvature: _Floats, gradient: _Floats, damping: float) -> _Floats: ...
def exponent_slope(
    evidence: _Evidence,
    lengths: _Floats,
    log_priors: _Floats,
    codes: NDArray[np.int64],
    weights: _Floats,
    at: tuple[_Floats, float, float, _Floats],
    curved: bool = True,
) -> tuple[float, _Floats, _Floats | None]: ...

_Ints = NDArray[np.int32]
_Offsets = NDArray[np.int64]
_Bytes = NDArray[np.uint8]
_Texts = tuple[NDArray[Any], _Bytes, _Bytes | None, int] | list[str]
_Settings = tuple[str, int, int, bool, str, _Texts]
_Tables = tuple[_Bytes, NDArray[np.uint32], NDArray[np.uint32], _Bytes] | None
_Rows = tuple[_Offsets, _Ints, _Ints]
_Terms = tuple[_Offsets, _Bytes]

class NotUtf8Error(ValueError):
    """A document that is not UTF-8: its number."""

class KnownWords:
    """Words that can be looked up."""

    def __init__(self, terms: _Texts, settings: _Settings) -> None: ...

def survey_text(documents: _Texts) -> tuple[bool, bool]: ...
def count_units(documents: _Texts, settings: _Settings, tables: _Tables) -> tuple[_Rows, _Terms]: ...
def count_known_units(documents: _Texts, settings: _Settings, tables: _Tables, terms: _Texts) -> _Rows: ...
def count_hashed_units(documents: _Texts, settings: _Settings, tables: _Tables, width: int, signs: bool) -> _Rows: ...
def hash_texts(documents: _Texts) -> NDArray[np.uint64]: ...
def sort_terms(terms: _Texts) -> _Ints: ...
def renumber_columns(starts: _Offsets, units: _Ints, counts: _Ints, numbers: _Ints) -> _Rows: ...
def transpose_rows(
    starts: _Offsets, columns: _Ints, values: NDArray[np.float32], width: int
) -> tuple[_Offsets, _Ints, NDArray[np.float32]]: ...

_Amounts = tuple[_Offsets, _Ints, _Floats]
_NumberedAmounts = tuple[_Texts, _Offsets, _Ints, _Floats, _Floats, _Floats, _Ints]

def collect_amounts(
    documents: _Texts,
    settings: _Settings,
    tables: _Tables,
    codes: _Codes,
    weights: _Floats | None,
    classes: int,
    kept: _Offsets,
    measure: tuple[bool, str],
) -> tuple[_Amounts, tuple[_Floats, _Floats, _Floats], _Rows, _Terms]: ...
def merge_amounts(one: _NumberedAmounts, two: _NumberedAmounts, factor: float) -> tuple[_Amounts, _Offsets] | None: ...
def term_orders(terms: _Texts) -> _Bytes: ...
def score_texts(
    documents: _Texts,
    settings: _Settings,
    tables: _Tables,
    known: KnownWords,
    orders: _Bytes,
    base: _Floats,
    groups: _Bytes,
    differences: tuple[_Offsets, _Ints, _Floats],
    weights: _Floats | None,
    refinement: NDArray[np.float32] | None,
    rule: tuple[str, float, float, float],
    out: _Floats,
) -> None: ...

_Points = NDArray[Any] | tuple[_Offsets, _Ints, NDArray[Any], int]

_CellCodes = NDArray[np.uint8]
_Layout = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]
_ForestArrays = tuple[NDArray[np.int64], _Layout, NDArray[np.uint64], int]
_Counts = tuple[NDArray[np.int64], _Codes, NDArray[Any]]
_Sampling = tuple[NDArray[np.uint64], float, int]

def forest_grow(
    codes: _CellCodes,
    categories: NDArray[np.bool_],
    classes: int,
    class_codes: _Codes,
    weights: _Floats | None,
    sample: _Sampling,
    kinds: list[tuple[int, int, bool]],
) -> tuple[NDArray[np.int64], NDArray[np.uint16], _CellCodes, _CellCodes, NDArray[np.uint64]]: ...
def forest_layout(
    trees: tuple[NDArray[np.int64], NDArray[np.uint16], _CellCodes, _CellCodes, NDArray[np.uint64], NDArray[np.bool_]],
) -> _Layout: ...
def forest_leaf_counts(
    trees: _ForestArrays, codes: _CellCodes, classes: int, class_codes: _Codes, weights: _Floats | None
) -> _Counts: ...
def forest_node_counts(trees: _ForestArrays, classes: int, leaves: _Counts) -> tuple[_Counts, NDArray[np.float32]]: ...
def forest_probabilities(
    trees: _ForestArrays,
    classes: int,
    nodes: tuple[_Counts, NDArray[np.float32]],
    smoothing: tuple[float, float],
    codes: _CellCodes,
    own: tuple[_CellCodes, _Codes, _Floats | None, _Sampling] | None,
) -> _Floats: ...
def kmeans_run(
    x: _Points,
    weights: _Floats | None,
    origin: _Floats,
    missing: bool | None,
    start: _Floats,
    iterations: int,
    tolerance: float,
    course: bool,
) -> tuple[_Ints, _Floats, float, int, bool, float, _Floats] | None: ...
def kmeans_nearest(
    x: _Points, weights: _Floats | None, origin: _Floats, missing: bool, centres: _Floats, wanted: bool
) -> tuple[_Ints, float]: ...
def kmeans_distances(x: _Points, origin: _Floats, missing: bool, centres: _Floats) -> _Floats: ...
def kmeans_plus_plus(
    x: _Points,
    weights: _Floats | None,
    origin: _Floats,
    missing: bool,
    order: NDArray[np.int64],
    chances: _Floats,
) -> NDArray[np.int64]: ...
def kmeans_order(x: _Points, direction: _Floats) -> tuple[NDArray[np.int64], NDArray[np.bool_]]: ...
def kmeans_missing(x: _Points) -> bool: ...

_Levels = NDArray[np.int16]
_Trees = tuple[_Ints, _Ints, _Ints, NDArray[np.int64], _Floats]

def tree_log_densities(tree: _Trees, codes: _Levels, evidence: _Floats | None) -> _Floats: ...
def tree_marginals(
    tree: _Trees, codes: _Levels, evidence: _Floats | None, responsibilities: _Floats, columns: list[int]
) -> _Floats: ...
def tree_last_levels(
    tree: _Trees, codes: _Levels, evidence: _Floats | None, responsibilities: _Floats, columns: list[int]
) -> _Floats: ...
def tree_left_out(tree: _Trees, codes: _Levels, evidence: _Floats | None, others: _Floats) -> list[_Floats]: ...
def normal_distribution(x: _Floats) -> _Floats: ...
def normal_quantiles(p: _Floats) -> _Floats: ...
def given_others(cells: _Floats, mean: _Floats, precision: _Floats, columns: list[int]) -> list[_Floats]: ...
def normal_bins(mean: _Floats, deviation: _Floats, shares: _Floats, edges: _Floats) -> _Floats: ...
def tree_counts(tree: _Trees, codes: _Levels, responsibilities: _Floats) -> _Floats: ...
def tree_draw(tree: _Trees, codes: _Levels, evidence: _Floats | None, components: _Ints, seed: int) -> _Levels: ...
def pair_counts(codes: _Levels, levels: _Ints, listed: NDArray[np.int64], weights: _Floats | None) -> _Floats: ...
def mutual_information(
    codes: _Levels, levels: _Ints, listed: NDArray[np.int64], weights: _Floats | None
) -> tuple[_Floats, _Floats]: ...
def table_information(counts: _Floats) -> float: ...

_Hidden = tuple[tuple[_Ints, _Ints, _Floats, _Floats], tuple[_Ints, _Floats, _Ints, _Floats, _Floats]]
_HiddenRows = tuple[_Levels, _Floats, _Floats | None, _Floats | None]

def hidden_log_densities(tree: _Hidden, rows: _HiddenRows) -> _Floats: ...
def hidden_step(tree: _Hidden, rows: _HiddenRows) -> tuple[_Floats, list[_Floats]]: ...
def hidden_posteriors(tree: _Hidden, rows: _HiddenRows, columns: list[int]) -> _Floats: ...
def hidden_left_out(tree: _Hidden, rows: _HiddenRows, sizes: _Ints, tables: _Floats) -> tuple[_Floats, _Floats]: ...
def hidden_draw(tree: _Hidden, rows: _HiddenRows, seed: int) -> _Levels: ...
