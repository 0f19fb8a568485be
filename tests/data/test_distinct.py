"""A weight of 2 is a row twice, a weight of 0 is no row, and no order matters: also where a classifier chooses."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likely import Classifier
from likely.data import sources
from likely.data.distinct import DistinctRows, sample_rows, split_heavy_rows
from likely.data.hashing import _cell_keys, combined_keys, random_keys, row_keys, text_keys
from likely.data.rows import Rows
from likely.data.table import Table
from likely.ensemble import selection as selecting
from likely.ensemble.selection import select
from likely.estimators import fitting
from likely.statistics import Assignment

NAN = np.nan
NAMES = np.array(["red", "green", "blue"])
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
CELLS = {
    "number": st.floats(-1e6, 1e6, width=32) | st.sampled_from([NAN, -0.0, 0.0]),
    "level": st.sampled_from([NAN, 1.0, 2.0, 2.5]),
    "name": st.sampled_from([NAN, 0.0, 1.0, 2.0]),
}


@st.composite
def tables(draw):
    """Numbers, levels and names with holes, each row some number of times, and an order of all of them."""
    rows = draw(st.integers(1, 30))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    cells = np.array([draw(st.lists(CELLS[kind], min_size=rows, max_size=rows)) for kind in kinds]).T
    codes = np.array(draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows)), dtype=np.int32)
    times = np.array(draw(st.lists(st.integers(0, 7), min_size=rows, max_size=rows)))
    times[0] += 1
    table = Table(cells, categories={j: NAMES for j, kind in enumerate(kinds) if kind == "name"})
    order = draw(st.permutations(np.repeat(np.arange(rows), times).tolist()))
    return table, Assignment(np.array(["a", "b", "c"]), codes), times.astype(float), np.array(order)


def same(one, two, table):
    np.testing.assert_allclose(one.log_posterior(table), two.log_posterior(table), rtol=1e-9, atol=1e-9)
    assert [member.family for member in one.members] == [member.family for member in two.members]


@SLOW
@given(tables(), st.sampled_from([5, 1000]))
def test_a_weight_is_a_number_of_rows_in_any_order(case, most):
    table, assignment, times, order = case
    before = selecting.SAMPLE
    selecting.SAMPLE = most  # with fewer than there are rows, some are drawn
    try:
        weighed = select(table, assignment._replace(weights=times))
        repeated = select(table.taken(order), assignment.taken(order))
    finally:
        selecting.SAMPLE = before
    same(weighed, repeated, table)


@SLOW
@given(tables())
def test_weights_may_be_cut_among_equal_rows(case):
    table, assignment, times, order = case
    cut = times[order] / np.bincount(order, minlength=table.rows)[order] / 4
    same(
        select(table.taken(order), assignment.taken(order)._replace(weights=cut)),
        select(table, assignment._replace(weights=times / 4)),
        table,
    )


@SLOW
@given(tables())
def test_distinct_rows_are_the_rows(case):
    table, assignment, times, order = case
    found = DistinctRows.of(table.taken(order), assignment.taken(order))
    drawn, _ = sample_rows(table.taken(order), assignment.taken(order), 10**6)
    frame = pd.DataFrame(table.cells).assign(label=assignment.codes, times=times)
    frame = frame[frame.times > 0].groupby([*range(table.columns.width), "label"], dropna=False)["times"].sum()
    assert found.table.rows == drawn.rows == len(frame)
    weights = np.ones(len(frame)) if found.assignment.weights is None else found.assignment.weights
    assert sorted(weights) == sorted(frame)
    for column in found.columns:
        assert column.total == times.sum()


@pytest.mark.parametrize("change", [lambda x: 3 * x - 7, np.arctan, lambda x: x**3])
def test_numbers_in_another_unit_make_the_same_model(change):
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, 200).astype(np.int32)
    X = (generator.normal(size=(200, 3)) + codes[:, None]).round(2)
    assignment = Assignment(np.array(["a", "b"]), codes)
    one, other = (select(Table(cells), assignment).log_posterior(Table(cells)) for cells in (X, change(X)))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_seeds_deal_differently():
    table, assignment = Table(np.arange(100.0)[:, None]), Assignment(np.array(["a"]), np.zeros(100, dtype=np.int32))
    one, two = (DistinctRows.of(table, assignment, seed).table.cells[:, 0].tolist() for seed in (0, 1))
    assert one != two
    assert sorted(one) == sorted(two)


def test_hashes_are_the_same_on_every_machine():
    """The order was found once, on x86-64."""
    cells = np.array([[1.5, 0.0], [NAN, 1.0], [-0.0, NAN], [1e300, 0.0], [-7.0, 1.0]])
    table = Table(cells, categories={1: np.array(["été", "x"])})
    assignment = Assignment(np.array(["no", "yes"]), np.array([0, 1, 1, 0, 0], dtype=np.int32))
    drawn, found = sample_rows(table, assignment, 5)[0], DistinctRows.of(table, assignment).table
    np.testing.assert_array_equal(drawn.cells[:, 0], [1.5, 1e300, -7.0, 0.0, NAN])
    np.testing.assert_array_equal(found.cells[:, 0], [1e300, -7.0, 1.5, 0.0, NAN])


def test_hashes_are_spread_evenly():
    """Grids are the hardest: every cell is one of a few small numbers, or of a few words."""
    grid = np.array(np.meshgrid(*[np.arange(4.0)] * 6)).reshape(6, -1).T
    table = Table(grid, categories={5: np.array(["a", "b", "c", "d"])})
    assignment = Assignment(np.array(["a"]), np.zeros(len(grid), dtype=np.int32))
    for rows in (DistinctRows.of(table, assignment).table, sample_rows(table, assignment, len(grid))[0]):
        assert rows.rows == len(grid)
        for j in range(6):
            counts = np.bincount(rows.cells[: len(grid) // 4, j].astype(int), minlength=4)
            assert abs(counts - 256).max() < 5 * np.sqrt(256)


def test_heavy_rows_are_dealt_in_parts_unless_all_of_their_class_are():
    weights, codes = np.array([6.0, 1, 1, 1, 1, 8, 8, 8]), np.repeat([0, 1], [5, 3]).astype(np.int32)
    table = Table(np.arange(8.0)[:, None])
    cut, assignment = split_heavy_rows(table, Assignment(np.array(["a", "b"]), codes, weights), 5)
    assert cut.cells[:, 0].tolist() == [0, 0, 0, *range(1, 8)]
    assert assignment.weights.tolist() == [2, 2, 2, 1, 1, 1, 1, 8, 8, 8]


def people(rows=600):
    generator = np.random.default_rng(0)
    income = np.where(generator.random(rows) < 0.4, "high", "low")
    age = generator.integers(18, 60, rows) + 10 * (income == "high")
    frame = pd.DataFrame({"age": age, "hours": generator.normal(40, 9, rows).round(1)})
    frame["town"] = np.where(generator.random(rows) < 0.1, None, generator.choice(["Rome", "Oslo", "Bern"], rows))
    frame["income"] = income
    return frame


@pytest.mark.parametrize("most", [50, 250, 10**6])
def test_labels_by_name_and_as_an_array_are_one_table(most, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", most)
    monkeypatch.setattr(selecting, "SAMPLE", most)
    monkeypatch.setattr(sources, "BATCH", 2000)
    frame = people()
    X, y = frame.drop(columns="income"), frame.income.to_numpy()
    by_name, by_array = Classifier().fit(frame, "income"), Classifier().fit(X, y)
    np.testing.assert_allclose(by_name.predict_proba(X), by_array.predict_proba(X), rtol=1e-9, atol=1e-12)
    shuffled = frame.sample(frac=1, random_state=1)
    np.testing.assert_allclose(
        Classifier().fit(shuffled, "income").predict_proba(X), by_name.predict_proba(X), rtol=1e-9, atol=1e-12
    )
    weights = np.random.default_rng(2).integers(0, 4, len(frame))
    weighed = Classifier().fit(frame, "income", sample_weight=weights)
    repeated = Classifier().fit(frame.loc[frame.index.repeat(weights)], "income")
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighed.log_density(X), repeated.log_density(X), rtol=1e-9)


@pytest.mark.parametrize("most", [100, 10**6])
def test_a_matrix_and_its_frame_are_one_table(most, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", most)
    monkeypatch.setattr(selecting, "SAMPLE", most)
    frame = people().drop(columns="town").astype({"age": float})
    X, y = frame[["age", "hours"]], frame.income.to_numpy()
    named = Classifier().fit(frame, "income").predict_proba(X)
    np.testing.assert_allclose(Classifier().fit(X, y).predict_proba(X), named, rtol=1e-9, atol=1e-12)


def test_a_table_that_fits_is_read_once(monkeypatch, tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    reads = []
    batches = Rows.batches
    monkeypatch.setattr(Rows, "batches", lambda rows, **how: (reads.append(rows), batches(rows, **how))[1])
    Classifier().fit(tmp_path / "people.csv", "income")
    assert len(reads) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_keys_of_the_core_are_those_of_numpy(dtype, order):
    rng = np.random.default_rng(0)
    cells = np.abs(rng.normal(size=(5000, 4), scale=3)).astype(dtype)
    if cells.dtype.kind == "f":
        cells[rng.random(cells.shape) < 0.1] = NAN
        cells[:2, 0] = 0.0, -0.0
    codes = np.arange(len(cells), dtype=np.int32) % 2
    columns = [*(_cell_keys(column.astype(np.float64), None) for column in cells.T), text_keys("ab")[codes]]
    expected = combined_keys(columns, random_keys(3, 5))
    found = row_keys(Table(np.array(cells, order=order)), Assignment(np.array(["a", "b"]), codes), 3)
    np.testing.assert_array_equal(found, expected)
