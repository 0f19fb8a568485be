"""Trees of the columns and the class: exact probabilities, and counts that add whatever way rows come."""

from copy import copy
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import likely
from likely.data.table import Columns, Table
from likely.density.columns import unknown_rows
from likely.density.labelled_table import LabelledTable
from likely.statistics import Assignment

N = 400
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def categories(n=N, seed=0):
    """Three columns of categories, and three classes: colours and sizes go together in other ways in each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    colour = rng.integers(3, size=n)
    size = np.where(rng.random(n) < 0.8, (colour + y) % 3, rng.integers(3, size=n))
    shape = np.where(rng.random(n) < 0.7, y > 0, rng.random(n) < 0.5)
    frame = pd.DataFrame(
        {"colour": np.array(["blue", "green", "red"])[colour], "size": np.array(["l", "m", "s"])[size], "round": shape}
    ).astype(object)
    return frame.mask(rng.random(frame.shape) < 0.05), np.array(["a", "b", "c"])[y]


def numbers(columns, n=N, seed=0):
    """Numbers in a chain, each near the one before, in another way in each class; some are missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, columns))
    for j in range(1, columns):
        X[:, j] = 0.8 * X[:, j - 1] * (y - 1) + 0.5 * X[:, j] + y
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.array(["a", "b", "c"])[y]


DATA = {"categories": categories, "every pair": lambda: numbers(5), "pairs of trees": lambda: numbers(18)}
every_table = pytest.mark.parametrize("data", DATA, ids=str)


def rows_of(X, index):
    return X.iloc[index] if isinstance(X, pd.DataFrame) else X[index]


def trees(model):
    (member,) = model.fitted().table.joint.members
    return member


def assert_same_sums(one, other):
    a, b = trees(one), trees(other)
    np.testing.assert_array_equal(one.fitted().table.labels, other.fitted().table.labels)
    np.testing.assert_array_equal(a.prior.listed, b.prior.listed)
    assert a.prior.share == pytest.approx(b.prior.share, rel=1e-12)
    for mine, theirs in zip(a.sums, b.sums, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    assert one.fitted().table.joint.rows == pytest.approx(other.fitted().table.joint.rows, rel=1e-12)


# Probabilities ------------------------------------------------------------------------------------------------------


def every_cell(columns):
    """All combinations of levels, the class the last."""
    cells = np.array(list(product(*(range(c.levels) for c in columns))), dtype=np.int16)
    return unknown_rows(columns, len(cells))._replace(levels=cells)


@pytest.mark.parametrize("share", [0.0, 0.5, None], ids=["one tree", "both", "as fitted"])
def test_probabilities_of_all_rows_add_up_to_1(share):
    joint = likely.Classifier().fit(*categories()).fitted().table.joint
    (member,) = joint.members
    assert member.prior.share > 0.5  # what goes together depends on the class
    prior = member.prior if share is None else replace(member.prior, share=share)
    density = prior.solve(member.sums)
    rows = every_cell(joint.columns)
    p = np.exp(density.log_density(rows))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    classes = joint.columns[-1].levels
    of_x = np.exp(density.log_density(rows.hiding(len(joint.columns) - 1)))
    np.testing.assert_allclose(of_x[::classes], p.reshape(-1, classes).sum(axis=1), **CLOSE)


def test_the_tree_of_all_has_classes_as_often_as_rows():
    model = likely.Classifier().fit(*numbers(18))
    member = trees(model)
    density = replace(member.prior, share=0.0).solve(member.sums)
    last = len(density.columns) - 1
    found = density.marginals(unknown_rows(density.columns, 1), [last])[0][0]
    weight = member.sums.weight[:-1] + 0.5 / 3
    np.testing.assert_allclose(found, weight / weight.sum(), rtol=1e-12)


@every_table
def test_given_class_weights_are_those_of_the_joint(data):
    X = rows_of(DATA[data]()[0], slice(0, 100))
    priors = {"a": 0.7, "b": 0.1, "c": 0.2}
    plain = likely.Classifier(random_state=1).fit(*DATA[data]())
    given = likely.Classifier(priors=priors, random_state=1).fit(*DATA[data]())
    table = plain.fitted().reader.read(X)
    joint = plain.fitted().table.joint
    nothing = joint.encode(plain.fitted().reader.read(rows_of(X, slice(0, 1)))).with_cells(
        range(len(joint.columns)), unknown_rows(joint.columns, 1)
    )
    own = joint.combination.marginals(nothing, [len(joint.columns) - 1])[0][0]
    codes = np.arange(3, dtype=np.int32)
    of_classes = [joint.combination.log_density(joint.encode(table, np.full(table.rows, k, np.int32))) for k in codes]
    conditional = np.exp(np.stack(of_classes, axis=1)) / own
    np.testing.assert_allclose(np.exp(given.log_density(X)), conditional @ list(priors.values()), rtol=1e-9)
    np.testing.assert_allclose(np.exp(plain.log_density(X)), conditional @ own, rtol=1e-9)


def test_other_columns_are_predicted_by_ratios_of_densities():
    X, y = categories()
    model = likely.Classifier().fit(X, y)
    some = X.iloc[:60]
    for column in X.columns:
        without = some.assign(**{column: None})
        below = model.log_density(without)
        found = model.predict_proba(some, of=column)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
        for k, value in enumerate(model.values_of(column)):
            value = bool(value) if column == "round" else value
            above = model.log_density(some.assign(**{column: value}))
            np.testing.assert_allclose(found[:, k], np.exp(above - below), rtol=1e-10)


# Sums ---------------------------------------------------------------------------------------------------------------


@every_table
def test_batches_and_merged_copies_are_one_pass(data):
    X, y = DATA[data]()
    start = likely.Classifier().fit(X, y)
    first, second, third = np.array_split(np.random.default_rng(1).permutation(N), 3)
    together = start.emptied().partial_fit(X, y)
    assert_same_sums(together, start)
    batched, copies = start.emptied(), [start.emptied() for _ in range(3)]
    for part, one in zip((first, second, third), copies, strict=True):
        batched.partial_fit(rows_of(X, part), y[part])
        one.partial_fit(rows_of(X, part), y[part])
    assert_same_sums(batched, together)
    assert_same_sums(start.emptied().merge(*copies), together)
    assert_same_sums(copies[2].merge(copies[1], copies[0]), together)
    np.testing.assert_allclose(batched.log_density(X), start.log_density(X), rtol=1e-9)


@every_table
def test_forgotten_rows_leave_nothing_behind(data):
    X, y = DATA[data]()
    start, part = likely.Classifier().fit(X, y), np.arange(0, N, 3)
    rest = np.setdiff1d(np.arange(N), part)
    left = copy(start).forget(rows_of(X, part), y[part])
    assert_same_sums(left, start.emptied().partial_fit(rows_of(X, rest), y[rest]))
    assert_same_sums(left.partial_fit(rows_of(X, part), y[part]), start)


def test_rows_that_were_never_learned_are_not_forgotten():
    X, y = categories()
    model = likely.Classifier().fit(X, y)
    other = X.assign(colour="green", size="l", round=True)
    with pytest.raises(ValueError, match="learned"):
        model.forget(other, y)


@every_table
def test_weights_order_and_threads(data):
    X, y = DATA[data]()
    model = likely.Classifier().fit(X, y)
    order = np.random.default_rng(2).permutation(N)
    assert_same_sums(likely.Classifier().fit(rows_of(X, order), y[order]), model)
    twice = likely.Classifier().fit(rows_of(X, np.repeat(np.arange(N), 2)), np.repeat(y, 2))
    assert_same_sums(likely.Classifier().fit(X, y, sample_weight=np.full(N, 2.0)), twice)
    sums = trees(model.emptied().partial_fit(X, y, sample_weight=np.full(N, 2.0))).sums
    for weighed, plain in zip(sums, trees(model).sums, strict=True):
        np.testing.assert_allclose(weighed, 2 * plain, rtol=1e-12)
    zeros = np.where(np.arange(N) < 300, 1.0, 0.0)
    assert_same_sums(
        likely.Classifier().fit(X, y, sample_weight=zeros), likely.Classifier().fit(rows_of(X, slice(0, 300)), y[:300])
    )
    try:
        likely.set_threads(1)
        assert_same_sums(likely.Classifier().fit(X, y), model)
    finally:
        likely.set_threads(None)


def test_counts_are_those_of_a_table_with_rows_in_its_cells():
    X, y = categories()
    member = trees(likely.Classifier().fit(X, y))
    assert member.sums.weight.tolist() == [*((y == label).sum() for label in "abc"), N]
    for at, (group, one, other) in enumerate(member.prior.listed.tolist()):
        own = X if group == 3 else X[y == "abc"[group]]
        found = pd.crosstab(own[X.columns[one]], own[X.columns[other]]).to_numpy()
        counts = member.sums.pairs[member.prior.starts[at] : member.prior.starts[at + 1]]
        np.testing.assert_array_equal(counts.reshape(found.shape), found)


# Classes ------------------------------------------------------------------------------------------------------------


@every_table
def test_classes_that_turn_up_later(data):
    X, y = DATA[data]()
    later = np.where(np.arange(N) % 5 == 0, "B new", np.where(np.arange(N) % 7 == 0, "z", y))
    start = likely.Classifier().fit(X, y)
    together = copy(start).partial_fit(X, later)
    assert together.fitted().table.labels.tolist() == ["B new", "a", "b", "c", "z"]
    batched, copies = copy(start), []
    for label in ("z", "b", "B new", "a", "c"):
        part = later == label
        batched.partial_fit(rows_of(X, part), later[part])
        copies.append(start.emptied().partial_fit(rows_of(X, part), later[part]))
    assert_same_sums(batched, together)
    assert_same_sums(copy(start).merge(*copies), together)
    drawn = together.sample(2000, random_state=0)[1]
    assert {"B new", "z"} <= set(drawn)
    filled = together.impute(rows_of(X, slice(0, 20)), ["z"] * 20)
    assert not pd.isna(pd.DataFrame(filled)).any(axis=None)
    before = copy(together).forget(rows_of(X, later == "z"), later[later == "z"])
    assert np.isfinite(before.log_density(X)).all()
    assert (before.sample(2000, random_state=0)[1] != "z").mean() > 0.999


def test_a_class_without_rows_says_nothing():
    X, y = numbers(4)
    model = likely.Classifier().partial_fit(X, y, classes=["a", "b", "c", "d"])
    holes = np.full((2, 4), np.nan)
    np.testing.assert_allclose(model.impute(holes, ["d", "d"]), model.impute(holes), rtol=1e-12)
    assert set(model.sample(500, random_state=0)[1]) == {"a", "b", "c"}


def test_a_class_of_one_row_and_columns_that_say_nothing():
    X, y = numbers(4)
    y = y.astype(object)
    y[7] = "one"
    X[y == "b", 1] = np.nan  # missing in a class
    X[y == "c", 2] = 5.0  # constant in a class
    X = np.column_stack([X, np.full(N, 3.0), np.full(N, np.nan)])  # constant, and never there
    model = likely.Classifier().fit(X, y)
    assert np.isfinite(model.log_density(X)).all()
    holes = np.where(np.isnan(X) | (np.arange(6) == 2), np.nan, X)
    for joint in (model, copy(model).forget(X[7:8], y[7:8])):
        filled = joint.impute(holes, y)
        assert np.isfinite(filled[:, :5]).all()
        assert (filled[:, 4] == 3).all()
    np.testing.assert_allclose(model.impute(holes, y)[y == "c", 2], 5.0, atol=0.2)
    rows, drawn = model.sample(3000, random_state=0)
    assert (rows[:, 4] == 3).all()
    np.testing.assert_allclose((drawn == "a").mean(), (y == "a").mean(), atol=0.04)


def test_rows_without_a_class_count_in_the_tree_of_all():
    cells, y = numbers(5)
    table = Table(cells, Columns(5))
    codes = np.searchsorted(["a", "b", "c"], y).astype(np.int32)
    codes[::4] = -1
    found = LabelledTable.fit(table, Assignment(np.array(["a", "b", "c"]), codes, None), "tree", 0, None)
    (member,) = found.joint.members
    known = codes >= 0
    assert member.sums.weight.tolist() == [*np.bincount(codes[known], minlength=3), N]
    of_all = member.sums.levels[-1].sum()
    assert of_all == (~np.isnan(cells)).sum()
    assert member.sums.levels[:-1].sum() == (~np.isnan(cells[known])).sum()
    learned = found.emptied().learned(table, Assignment(np.array(["a", "b", "c"]), codes, None))
    assert learned.joint.members[0].sums.weight.tolist() == [*np.bincount(codes[known], minlength=3), known.sum()]


def test_models_that_began_with_other_rows_are_not_merged():
    X, y = categories()
    one = likely.Classifier().fit(X, y)
    # Members that compare classes are the same; marginals of columns are not.
    other = likely.Classifier().hold(replace(one.fitted(), statistics=one.fitted().statistics))
    table = one.fitted().table
    columns = tuple(replace(c, counts=c.counts + 1) for c in table.joint.columns)
    (member,) = table.joint.members
    prior = replace(member.prior, columns=columns)
    moved = replace(table.joint, columns=columns, members=(replace(member, prior=prior, reference=prior),))
    other.hold(one.fitted().with_table(replace(table, joint=moved)))
    with pytest.raises(ValueError, match="began with the same rows"):
        one.merge(other)


def test_pairs_that_are_no_trees_are_refused():
    prior = trees(likely.Classifier().fit(*numbers(18))).prior
    prior.validate()
    listed = prior.listed
    others = (
        listed[:, :2],
        listed[::-1],
        listed[1:],
        listed[listed[:, 0] > 0],
        listed + np.array([1, 0, 0]),
        listed[:, [0, 2, 1]],
        np.concatenate([listed, [[3, 9, 1]]]),
    )
    for change in [*({"listed": other} for other in others), {"share": 1.0}, {"share": 0.0}, {"share": -0.5}]:
        with pytest.raises(ValueError, match="expected pairs"):
            replace(prior, **change).validate()
