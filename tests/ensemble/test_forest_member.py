"""A forest as a member of a selection: codes, scores out of bag, and a model that learns, forgets and is saved."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import likely
from likely import Classifier
from likely.data.column_values import CountedColumn, counted_columns
from likely.data.table import Table
from likely.datasets import penguins
from likely.ensemble.codes import CodedColumns
from likely.ensemble.forest import choose_forest
from likely.ensemble.members import Folds, log_posteriors
from likely.ensemble.selection import Selection, select
from likely.families.forest import UNKNOWN, Forest
from likely.persistence.codec import decode, encode
from likely.statistics import Assignment

NAN = np.nan


def mixed(rows: int = 300, seed: int = 0) -> tuple[Table, Assignment]:
    """Return numbers, 300 categories and few with missing cells, from three classes; rows come again."""
    generator = np.random.default_rng(seed)
    y = np.arange(rows) % 3
    cells = generator.standard_normal((rows, 4)).round(1) + (y == 1)[:, None]
    cells[:, 2] = np.where(generator.random(rows) < 0.6, 100 * y, 0) + generator.integers(0, 100, rows)
    cells[:, 3] = np.where(generator.random(rows) < 0.7, y, generator.integers(0, 4, rows))
    cells[generator.random(cells.shape) < 0.1] = NAN
    cells[rows - 30 :] = cells[:30]
    y[rows - 30 :] = y[:30]
    many = np.array([f"level {i:03}" for i in range(300)])
    names = np.array(["red", "green", "blue", "none"])
    classes = np.array(["x", "y", "z"])
    return Table(cells, ("a", "b", "c", "d"), categories={2: many, 3: names}), Assignment(classes, y.astype(np.int32))


def rows_of(table: Table, assignment: Assignment, rows: Any) -> tuple[Table, Assignment]:
    return replace(table, cells=table.cells[rows]), assignment.taken(rows)


def forest_of(selection: Selection) -> Forest:
    family = selection.members[-1].family
    assert isinstance(family, Forest)
    return family


def same(one: Selection, other: Selection) -> None:
    for name in ("starts", "features", "cuts", "missing", "masks", "seed"):
        np.testing.assert_array_equal(getattr(forest_of(one), name), getattr(forest_of(other), name))
    np.testing.assert_array_equal(one.calibration.weights, other.calibration.weights)
    np.testing.assert_array_equal(one.statistics.blocks[-1].sums["count"], other.statistics.blocks[-1].sums["count"])


def test_without_the_keyword_there_is_no_forest() -> None:
    assert not any(isinstance(member.family, Forest) for member in select(*mixed()).members)


@pytest.mark.parametrize("copies", [False, True])
def test_neither_order_nor_copies_matter(copies: bool) -> None:
    table, assignment = mixed()
    counts = np.random.default_rng(1).integers(1, 4, 300) if copies else np.ones(300, dtype=int)
    rows = np.random.default_rng(2).permutation(np.repeat(np.arange(300), counts))
    weighed = assignment._replace(weights=counts.astype(float)) if copies else assignment
    expected, found = select(table, weighed, forest=True), select(*rows_of(table, assignment, rows), forest=True)
    same(expected, found)
    np.testing.assert_allclose(found.log_posterior(table), expected.log_posterior(table), rtol=1e-9)


def test_units_of_numbers_and_names_of_classes_do_not_matter() -> None:
    table, assignment = mixed()
    cells = table.cells.copy()
    cells[:, 0] = np.where(cells[:, 0] > 0, 8 * cells[:, 0], cells[:, 0])
    other = select(replace(table, cells=cells), assignment._replace(classes=np.array(["1", "2", "3"])), forest=True)
    same(select(table, assignment, forest=True), other)


def test_threads_do_not_matter() -> None:
    table, assignment = mixed()
    answers = []
    try:
        for threads in (1, 3):
            likely.set_threads(threads)
            answers.append(select(table, assignment, forest=True).log_posterior(table))
    finally:
        likely.set_threads(None)
    np.testing.assert_array_equal(*answers)


def test_batches_add_up_and_are_forgotten() -> None:
    table, assignment = mixed()
    selection = select(table, assignment, forest=True)
    more = selection.collect(*rows_of(table, assignment, np.arange(50)))
    learned = replace(selection, statistics=selection.statistics + more)
    assert not np.array_equal(learned.log_posterior(table), selection.log_posterior(table))
    forgotten = replace(learned, statistics=learned.statistics - more)
    np.testing.assert_allclose(forgotten.log_posterior(table), selection.log_posterior(table), rtol=1e-9, atol=1e-12)
    counts = [each.statistics.blocks[-1].sums["count"] for each in (forgotten, selection)]
    np.testing.assert_array_equal(*counts)


def test_scores_of_rows_are_not_by_their_own_label() -> None:
    # Labels at random: known by its own label, a row would be predicted well.
    generator = np.random.default_rng(0)
    table = Table(generator.standard_normal((300, 3)))
    assignment = Assignment(np.array(["a", "b"]), generator.integers(0, 2, 300).astype(np.int32))
    coded = CodedColumns.fitted(counted_columns(table))
    chosen = choose_forest(coded.encoded(table), Folds.assigned(assignment, 5), categories=coded.categories)
    rows = np.arange(300)
    assert -chosen.log_posteriors[rows, assignment.codes].mean() > 0.69
    density = chosen.family.solve(chosen.statistics)
    assert -np.log(density.probabilities(coded.encoded(table).cells)[rows, assignment.codes]).mean() < 0.4  # type: ignore[attr-defined]


def test_rows_whose_class_was_guessed_are_learned_and_not_scored() -> None:
    table, assignment = mixed()
    guessed = np.arange(300) % 5 == 0
    coded = CodedColumns.fitted(counted_columns(table))
    folds = Folds.assigned(assignment, 5, guessed)
    chosen = choose_forest(coded.encoded(table), folds, categories=coded.categories)
    np.testing.assert_array_equal(np.isnan(chosen.log_posteriors[:, 0]), guessed)
    forest = chosen.family
    assert isinstance(forest, Forest)
    assert chosen.statistics.sums["count"].sum() == 300 * (len(forest.starts) - 1)


def test_a_row_that_comes_again_is_known() -> None:
    # Of a row that came more often than is usual, only as much is left out as is usual.
    generator = np.random.default_rng(0)
    cells = generator.standard_normal((200, 3))
    y = generator.integers(0, 2, 200).astype(np.int32)
    once = np.arange(200) < 100
    weights = np.where(once, 1.0, 19.0)
    table, assignment = Table(cells), Assignment(np.array(["a", "b"]), y, weights)
    coded = CodedColumns.fitted(counted_columns(table, weights))
    chosen = choose_forest(coded.encoded(table), Folds.assigned(assignment, 5), categories=coded.categories)
    scores = chosen.log_posteriors[np.arange(200), y]
    assert scores[~once].mean() > scores[once].mean() + 0.2


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_few_rows_one_class_and_constant_columns(rows: int) -> None:
    cells = np.column_stack([np.ones(rows), np.full(rows, NAN), np.arange(rows)])
    for y in (np.zeros(rows, dtype=np.int32), (np.arange(rows) % 2).astype(np.int32)):
        selection = select(Table(cells), Assignment(np.array(["a", "b"]), y), forest=True)
        p = selection.posterior(Table(np.array([[1.0, NAN, 2.0], [NAN, 7.0, NAN], [5.0, 5.0, 1e9]])))
        assert (p > 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1)


def test_what_is_said_of_cells_adds_up() -> None:
    table, assignment = mixed()
    selection = select(table, assignment, forest=True)
    one, other = np.zeros(300, dtype=np.int64), np.ones(300, dtype=np.int64)
    base, cells = selection.log_odds(table, one, other)
    complete = ~np.isnan(table.cells).any(axis=1)
    scores = [
        log_posteriors(density, member.encoded(table), np.log(selection.priors))
        for member, density in zip(selection.members, selection.densities, strict=True)
    ]
    total = selection.calibration.total(scores, selection.priors)
    found = base + cells.sum(axis=1)
    np.testing.assert_allclose(found[complete], (total[:, 0] - total[:, 1])[complete], rtol=1e-6, atol=1e-9)


def codes(cells: NDArray[Any], **more: Any) -> NDArray[np.uint8]:
    table = Table(cells[:, None], **more)
    return CodedColumns.fitted(counted_columns(table)).encoded(table).cells[:, 0]  # type: ignore[return-value]


def test_codes_of_numbers_are_their_order() -> None:
    few = np.array([3.0, NAN, -1.0, np.inf, 3.0])
    assert codes(few).tolist() == [2, 0, 1, 2, 2]
    many = np.random.default_rng(0).standard_normal(10_000)
    found = codes(many)
    assert set(found.tolist()) == set(range(1, 255))
    assert (np.diff(found[np.argsort(many)].astype(int)) >= 0).all()
    np.testing.assert_allclose(np.bincount(found)[1:], 10_000 / 254, atol=2)


def test_codes_of_categories_are_by_frequency_and_others_are_rare() -> None:
    names = np.array([f"{i:03}" for i in range(300)])
    cells = np.concatenate([np.arange(300.0), np.full(10, 7.0), [NAN]])
    table = Table(cells[:, None], categories={0: names})
    coded = CodedColumns.fitted(counted_columns(table))
    found = coded.encoded(table).cells[:, 0]
    assert found[7] == 2
    assert found[-1] == 0
    assert np.bincount(found)[1] == 50
    assert found.max() == 251
    other = Table(np.array([[0.0]]), categories={0: np.array(["new"])})
    assert coded.encoded(other).cells.tolist() == [[1]]
    assert coded.encoded(table, np.isnan(table.cells)).cells[-1, 0] == UNKNOWN


def test_codes_are_read_as_they_were_written() -> None:
    table, _ = mixed()
    coded = CodedColumns.fitted(counted_columns(table))
    arrays: dict[str, Any] = {}
    again = decode(encode(coded, "codes", arrays), CodedColumns, "codes", arrays)
    np.testing.assert_array_equal(again.encoded(table).cells, coded.encoded(table).cells)


@pytest.mark.parametrize("levels", [("a",) * 2, tuple(map(str, range(251)))])
def test_broken_codes_are_refused(levels: tuple[str, ...]) -> None:
    arrays: dict[str, Any] = {}
    column = CountedColumn(np.array(["a"], dtype=object), np.ones(1), 0.0)
    described = encode(CodedColumns.fitted([column]), "codes", arrays)
    described["columns"][0]["levels"] = list(levels)
    with pytest.raises(ValueError, match="expected at most 250 levels"):
        decode(described, CodedColumns, "codes", arrays)
    numbers = encode(CodedColumns.fitted([CountedColumn(np.arange(3.0), np.ones(3), 0.0)]), "codes", arrays)
    arrays["codes.columns.0.edges"] = np.arange(254.0)
    with pytest.raises(ValueError, match="expected at most 254 bins"):
        decode(numbers, CodedColumns, "codes", arrays)


def test_a_model_is_saved_and_goes_on(tmp_path: Any) -> None:
    birds = penguins()
    model = Classifier(forest=True).fit(birds, "species")
    selection = model.selection_
    assert selection is not None
    model.save(tmp_path / "birds.likely")
    again = likely.load(tmp_path / "birds.likely")
    np.testing.assert_array_equal(again.predict_proba(birds), model.predict_proba(birds))
    same(again.selection_, selection)
    few = birds[:20].drop_columns("species"), birds["species"][:20].to_pylist()
    for each in (model, again):
        each.partial_fit(*few)
    np.testing.assert_array_equal(again.predict_proba(birds), model.predict_proba(birds))
    merged = model.merge(model.emptied().partial_fit(*few))
    assert merged.class_count_.sum() == again.class_count_.sum() + 20


@pytest.fixture(scope="module")
def steps() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Classes on squares of a board: no line, and no Gaussian, tells them apart."""
    X = np.random.default_rng(3).random((1500, 2))
    return X, (np.floor(4 * X).sum(axis=1) % 2).astype(int)


def test_sharp_thresholds_are_found(steps: Any) -> None:
    X, y = steps
    board = Classifier(forest=True).fit(X[:1000], y[:1000])
    assert board.score(X[1000:], y[1000:]) > 0.9
    assert Classifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) < 0.75


def test_reasons_add_up_to_the_log_odds(steps: Any) -> None:
    X, y = steps
    model = Classifier(forest=True).fit(X, y)
    rows = np.vstack([X[:20], [[np.nan, 0.3], [0.7, np.nan]]])
    found = model.explain(rows)
    logs = model.predict_log_proba(rows)
    every = np.arange(len(rows))
    one, other = (np.searchsorted(model.classes_, part) for part in (found.label, found.against))
    np.testing.assert_allclose(found.log_odds, logs[every, one] - logs[every, other], atol=1e-9)


def test_rows_are_forgotten_and_weights_count(steps: Any) -> None:
    X, y = steps
    model = Classifier(forest=True).fit(X, y)
    want = model.predict_proba(X[:50])
    more = model.emptied().partial_fit(X[:300], y[:300])
    both = Classifier(forest=True).fit(X, y).merge(more)
    assert np.abs(both.predict_proba(X[:50]) - want).max() > 1e-6
    np.testing.assert_allclose(both.forget(X[:300], y[:300]).predict_proba(X[:50]), want, atol=1e-9)
    twice = Classifier(forest=True).fit(X[:400], y[:400], np.full(400, 2.0))
    again = Classifier(forest=True).fit(np.repeat(X[:400], 2, axis=0), np.repeat(y[:400], 2))
    np.testing.assert_allclose(twice.predict_proba(X[:50]), again.predict_proba(X[:50]), atol=1e-12)


def test_a_forest_without_calibration_is_refused(steps: Any) -> None:
    with pytest.raises(ValueError, match="expected calibrate=True with forest=True"):
        Classifier(forest=True, calibrate=False).fit(*steps)
