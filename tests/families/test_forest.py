"""Forests: as plain NumPy has them, and the same whatever the order of rows, their copies and the number of threads."""

import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from forest_formulas import LEAF, Trees, length
from numpy.typing import NDArray

import likely
from likely.data.hashing import row_keys
from likely.data.table import Block, Table
from likely.families.forest import UNKNOWN, Forest, ForestDensity, LeafStatistics, SampledRows
from likely.statistics import Assignment

KINDS = [(5, 2, False), (5, 3, True)]
CATEGORIES = np.array([False, True, False, True, False])
LABELS = np.array(["a", "b", "c"])


def sampled(rows: int = 150, k: int = 3, seed: int = 0, weights: Any = None) -> SampledRows:
    """Return rows of columns of numbers, of few and of many categories, with missing cells, and of a constant one."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, k, rows)
    cells = np.empty((rows, 5), dtype=np.uint8)
    cells[:, 0] = generator.integers(0, 6, rows) + y * generator.integers(0, 2, rows)
    cells[:, 1] = generator.integers(0, 4, rows) * (1 + y // 2)
    cells[:, 2] = generator.integers(1, 255, rows)
    cells[:, 3] = generator.integers(0, 252, rows)
    cells[:, 4] = 7
    return of_rows(cells, y, k, weights)


def of_rows(cells: NDArray[np.uint8], y: NDArray[np.int64], k: int = 3, weights: Any = None) -> SampledRows:
    assignment = Assignment(LABELS[:k], y.astype(np.int32), weights)
    return SampledRows(cells, assignment, row_keys(Table(cells), assignment, 0))


def grown(rows: SampledRows, kinds: Any = KINDS) -> Forest:
    return Forest.grown(rows, CATEGORIES, 7, kinds)


def collected(forest: Forest, rows: SampledRows) -> LeafStatistics:
    return forest._collect(Block(Table(rows.cells), None), rows.assignment)


def solved(rows: SampledRows) -> ForestDensity:
    forest = grown(rows)
    return forest.solve(collected(forest, rows))


def same(one: Forest, other: Forest) -> bool:
    return all(np.array_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))


def same_counts(one: LeafStatistics, other: LeafStatistics) -> bool:
    names = ("starts", "codes")
    return np.array_equal(one.sums["count"], other.sums["count"]) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )


def hidden(cells: NDArray[np.uint8], seed: int = 1) -> NDArray[np.uint8]:
    """Return rows with cells that are missing, some for no reason that trees could know."""
    drawn = np.random.default_rng(seed).random(cells.shape)
    return np.where(drawn < 0.15, 0, np.where(drawn > 0.85, UNKNOWN, cells)).astype(np.uint8)


@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_those_of_the_formulas(weighted: bool) -> None:
    rows = sampled(weights=np.random.default_rng(3).integers(1, 4, 150) / 2 if weighted else None)
    density = solved(rows)
    trees = Trees(density.forest, rows)
    np.testing.assert_allclose(density.probabilities(rows.cells), trees.probabilities(rows.cells), atol=1e-6)
    without = hidden(rows.cells)
    np.testing.assert_allclose(density.probabilities(without), trees.probabilities(without), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_bag_is_by_trees_without_the_row_less_itself(weighted: bool) -> None:
    rows = sampled(60, weights=np.random.default_rng(3).integers(1, 4, 60) / 2 if weighted else None)
    density = solved(rows)
    trees = Trees(density.forest, rows)
    for cells in (rows.cells, hidden(rows.cells)):
        expected = trees.probabilities(cells, out_of_bag=True)
        np.testing.assert_allclose(density.probabilities(cells, rows), expected, atol=1e-6)


def test_counts_are_those_of_all_rows() -> None:
    rows = sampled(weights=np.random.default_rng(3).integers(0, 4, 150).astype(float))
    forest = grown(rows)
    statistics = collected(forest, rows)
    found = np.zeros((statistics.leaves, 3))
    leaves = np.repeat(np.arange(statistics.leaves), np.diff(statistics.starts))
    found[leaves, statistics.codes] = statistics.sums["count"]
    np.testing.assert_array_equal(found, Trees(forest, rows).counts[forest.features == LEAF])


def test_the_first_split_has_the_largest_gain() -> None:
    rows = sampled(400, 2)
    forest = Forest.grown(rows, CATEGORIES, 7, [(20, 5, False)])
    trees = Trees(forest, rows)
    for tree, root in enumerate(forest.starts[:-1].tolist()):
        taken = np.array([trees.takes(i, tree) for i in range(400)])
        cells, y = rows.cells[taken], rows.assignment.codes[taken]

        def value(left: NDArray[np.bool_], y: NDArray[np.int32] = y) -> float:
            return -sum(length(np.bincount(y[side], minlength=2)) for side in (left, ~left))

        def values(j: int, cells: NDArray[np.uint8] = cells, y: NDArray[np.int32] = y, value: Any = value) -> Any:
            levels, codes = np.unique(cells[:, j], return_inverse=True)
            there, order = levels > 0, np.arange(len(levels))
            if CATEGORIES[j]:
                # of two classes, the best set of categories is the first ones in the order of p(class)
                order = np.argsort(np.bincount(codes, y) / np.bincount(codes))
            order = order[there[order]]
            for end in range(len(order) + 1):
                for more in [[]] if there.all() else [[], [0]]:
                    yield value(np.isin(codes, [*order[:end], *more]))

        column = int(forest.features[root])
        left = np.array([trees.left(root, int(code)) for code in cells[:, column]])
        assert value(left) == pytest.approx(max(max(values(j)) for j in range(5)), abs=1e-9)


def test_neither_order_nor_copies_nor_threads_matter() -> None:
    counts = np.random.default_rng(5).integers(0, 4, 400)
    cells, y = sampled(400).cells, sampled(400).assignment.codes.astype(np.int64)
    once = of_rows(cells, y, weights=counts.astype(float))
    copies = np.repeat(np.arange(400), counts)
    again = np.random.default_rng(6).permutation(copies)
    expected = grown(once)
    statistics = collected(expected, once)
    for some in (copies, again):
        rows = of_rows(cells[some], y[some])
        assert same(grown(rows), expected)
        assert same_counts(collected(expected, rows), statistics)
    p = expected.solve(statistics).probabilities(cells, once)
    try:
        for threads in (1, 3):
            likely.set_threads(threads)
            assert same(grown(once), expected)
            assert same_counts(collected(expected, once), statistics)
            np.testing.assert_array_equal(expected.solve(statistics).probabilities(cells, once), p)
    finally:
        likely.set_threads(None)


def test_counts_add_and_subtract_exactly() -> None:
    rows = sampled(300)
    forest = grown(rows)
    parts = [rows.taken(np.arange(300)[i::3]) for i in range(3)]
    one, two, three = (collected(forest, part) for part in parts)
    whole = collected(forest, rows)
    assert same_counts(one + two + three, whole)
    assert same_counts(whole - two, one + three)
    assert same_counts((whole - two) + two, whole)
    assert len((whole - whole).sums["count"]) == 0
    assert same_counts(whole * 3.0, whole + whole + whole)
    with pytest.raises(ValueError, match="expected rows that the model has learned"):
        one - two


def test_classes_may_turn_up_later() -> None:
    rows = sampled(300)
    forest = grown(rows)
    first, rest = rows.assignment.codes == 0, rows.assignment.codes != 0
    of_first = rows.assignment.taken(first)._replace(classes=np.array(["a"]))
    of_rest = Assignment(np.array(["b", "c"]), rows.assignment.codes[rest] - np.int32(1))
    one, two = (
        forest._collect(Block(Table(rows.cells[some]), None), assignment)
        for some, assignment in ((first, of_first), (rest, of_rest))
    )
    whole = collected(forest, rows)
    for both in (one + two, two + one):
        assert both.labels["class"].tolist() == ["a", "b", "c"]
        assert same_counts(both, whole)
    assert same_counts(whole.of_classes(slice(1, 3), np.array(["b", "c"])), two)
    wider = one.aligned({"class": LABELS})
    assert same_counts(wider, whole - two)


def test_what_is_said_of_cells_adds_up() -> None:
    rows = sampled()
    density = solved(rows)
    one, other = np.zeros(150, dtype=np.int64), np.full(150, 2)
    cells, rest = density.log_odds(Block(Table(rows.cells), None), one, other)
    scores = np.zeros((150, 3))
    density.add_scores(Block(Table(rows.cells), None), scores)
    np.testing.assert_allclose(cells.sum(axis=1) + rest, scores[:, 0] - scores[:, 2], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(cells[:, 4], 0)  # the column that is constant


@pytest.mark.parametrize(("rows", "k"), [(1, 1), (1, 3), (50, 1), (2, 2)])
def test_few_rows_and_classes(rows: int, k: int) -> None:
    given = sampled(rows, k)
    density = solved(given)
    for p in (density.probabilities(given.cells), density.probabilities(given.cells, given)):
        assert p.shape == (rows, k)
        assert (p > 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1)


def test_constant_columns_are_not_split() -> None:
    rows = of_rows(np.full((80, 5), 3, dtype=np.uint8), np.arange(80) % 3)
    density = solved(rows)
    assert set(density.forest.features.tolist()) == {LEAF}
    expected = np.array([[27.5, 27.5, 26.5]]) / 81.5
    np.testing.assert_allclose(density.probabilities(rows.cells[:1]), expected, rtol=1e-6)


def test_categories_that_no_node_has_seen_are_answered() -> None:
    rows = sampled()
    density = solved(rows)
    cells = rows.cells.copy()
    cells[:, [1, 3]] = [200, 253]
    p = density.probabilities(cells)
    np.testing.assert_allclose(p, Trees(density.forest, rows).probabilities(cells), atol=1e-6)


def test_a_forest_can_be_sent_to_workers() -> None:
    rows = sampled()
    density = solved(rows)
    again = pickle.loads(pickle.dumps(density.forest))
    assert same(again, density.forest)
    np.testing.assert_array_equal(
        again.solve(density.statistics).probabilities(rows.cells), density.probabilities(rows.cells)
    )


def test_rows_of_other_widths_are_refused() -> None:
    density = solved(sampled())
    with pytest.raises(ValueError, match="do not fit"):
        density.probabilities(np.zeros((3, 4), dtype=np.uint8))


@pytest.mark.parametrize("name", ["starts", "features", "cuts", "missing", "masks", "categories"])
def test_broken_forests_are_refused(name: str) -> None:
    forest = grown(sampled())
    own = {each.name: getattr(forest, each.name) for each in fields(forest)}
    for broken in (own[name][:-2], own[name].astype(np.float64), own[name][None], None):
        with pytest.raises(ValueError, match="forest"):
            Forest(**{**own, name: broken})
