"""The distribution of every cell given the others of its row, in one pass, is that of cells hidden one by one."""

import numpy as np
import pytest
from encoded import encoded, mixed_table

import likely
from likely.density.class_trees import fit_class_trees
from likely.density.columns import UNKNOWN, CategoryColumn, NumberColumn
from likely.density.combination import COMBINED, Combination, Member, fit_member
from likely.density.evidence import Evidence, Known
from likely.density.left_out import support_starts
from likely.density.table import fit_members
from likely.density.trees import dependence

KINDS = ("trees", "hidden trees", "scores", "tied scores", "tree", "class trees")


def few_values(n):
    """Return columns of every kind, also of one level, without atoms, of atoms only, and of one number only."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(n, 5))
    cells = np.stack([x[:, 0], np.round(x[:, 1]), np.full(n, 7.0), np.zeros(n), x[:, 2] > 0, x[:, 3], x[:, 4]], axis=1)
    cells[rng.random(n) < 0.4, 5] = 1.0
    cells[rng.random(cells.shape) < 0.08] = np.nan
    names = {3: ["only"], 4: ["no", "yes"]}
    columns = [NumberColumn.fit(cells[:, j]) for j in range(7)]
    columns[3] = CategoryColumn.fit(names[3], np.full(1, float(n)))
    columns[4] = CategoryColumn.fit(names[4], np.full(2, n / 2))
    return encoded(tuple(columns), cells, names)


TABLES = {
    "complete": lambda: mixed_table(300, 0.0),
    "missing cells": lambda: mixed_table(300, 0.25),
    "few values": lambda: few_values(300),
}


@pytest.fixture(scope="module", params=TABLES)
def table(request):
    return TABLES[request.param]()


@pytest.fixture(scope="module")
def joints(table):
    def alone(member):
        return Combination(table.columns, np.ones(1), (member.density,))

    found = {kind: alone(fit_member(kind, table, 0)) for kind in KINDS[:-1]}
    held_out = np.random.default_rng(1).random(table.rows) < 0.2
    if not single_class("class trees", table):
        fitted = fit_class_trees(table, held_out, dependence(table))
        found["class trees"] = alone(Member.of("class trees", fitted))
    members, weights = fit_members(table, COMBINED, [held_out], 0, lambda _: None)
    return found | {"combination": Combination(table.columns, weights, tuple(m.density for m in members))}


def single_class(kind, table):
    """Say whether the last column cannot be a class."""
    return kind == "class trees" and not isinstance(table.columns[-1], CategoryColumn)


def a_set(columns):
    """A category, or number, that may be at some of its levels only."""
    return {1: Known(np.append(np.ones(columns[1].levels - 1), 0.0))}


def a_range(columns):
    """A number that is between two others."""
    return {0: Known(np.ones(columns[0].levels), 0.2, 0.7)}


GIVEN = {"nothing": lambda _: {}, "a set": a_set, "a range": a_range, "both": lambda c: a_set(c) | a_range(c)}


@pytest.mark.parametrize("kind", [*KINDS, "combination"])
@pytest.mark.parametrize("given", GIVEN)
def test_all_cells_at_once_are_one_by_one(joints, table, kind, given):
    if single_class(kind, table):
        return
    known = GIVEN[given](table.columns)
    evidence = Evidence(table.columns, known) if known else None
    rows = table.taken(slice(0, 60)).hiding(*known)
    joint, starts = joints[kind], support_starts(table.columns)
    found, want = joint.left_out(rows, evidence), joint.hidden_one_by_one(rows, evidence)
    for j in range(len(table.columns)):
        there = rows.levels[:, j] >= 0
        assert there.any() != (j in known)
        part = slice(starts[j], starts[j + 1])
        np.testing.assert_allclose(want[there, part].sum(axis=1), 1, rtol=1e-9)
        np.testing.assert_allclose(found[there, part], want[there, part], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_says_how_likely_the_other_cells_are(joints, table, kind):
    if single_class(kind, table):
        return
    member = joints[kind].members[0]
    logs = member.left_out(table).logs
    for j in range(len(table.columns)):
        there = table.levels[:, j] >= 0
        np.testing.assert_allclose(logs[there, j], member.log_density(table.hiding(j))[there], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["trees", "hidden trees", "scores"])
def test_cells_that_contradict_all_others_are_left_out_like_others(kind):
    """Many copies of a column, and a row in which one of them says otherwise: far less likely than floats can be."""
    n, copies = 400, 300
    cells = np.repeat(np.random.default_rng(0).normal(size=(n, 1)), copies, axis=1)
    columns = (NumberColumn.fit(cells[:, 0]),) * copies
    rows = encoded(columns, cells, {})
    member = fit_member(kind, rows.taken(slice(0, 100)), 0, 2)
    joint = Combination(columns, np.ones(1), (member.density,))
    odd = cells[:2].copy()
    odd[:, 7] += [50.0, -50.0]
    odd = encoded(columns, odd, {})
    found, starts = joint.left_out(odd), support_starts(columns)
    for j in (0, 7, copies - 1):
        want = joint.marginals(odd.hiding(j), [j])[0]
        np.testing.assert_allclose(found[:, starts[j] : starts[j + 1]], want, atol=1e-9)


def test_surprise_of_rows_with_texts_is_that_of_their_cells():
    rng = np.random.default_rng(0)
    where = rng.choice(["sea", "land"], 300)
    words = {"sea": ["fish", "salt", "wave"], "land": ["grass", "soil", "road"]}
    frame = {
        "note": [" ".join(rng.choice(words[w], 12)) for w in where],
        "where": where.tolist(),
        "depth": (rng.normal(size=300) + (where == "sea")).tolist(),
    }
    rows = [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)]
    model = likely.Model(random_state=0).fit(rows)
    silent = [{**row, "note": None} for row in rows[:40]]
    told, untold = model.surprise(rows[:40]).cells, model.surprise(silent).cells
    assert np.isnan(told[:, 0]).all()
    # The odd cell out, of a row whose note says the opposite
    odd = [{"note": "fish salt wave fish salt", "where": "land", "depth": 1.0}]
    assert model.surprise(odd).cells[0, 1] > model.surprise([{**odd[0], "note": None}]).cells[0, 1] + 1
    assert np.median(told[:, 1]) <= np.median(untold[:, 1]) + 1e-12


def test_missing_cells_have_no_surprise():
    table = mixed_table(200, 0.3)
    x = np.where(table.levels >= 0, table.levels, np.nan).astype(float)
    model = likely.Model("trees", random_state=0).fit(x)
    np.testing.assert_array_equal(np.isnan(model.surprise(x).cells), table.levels == UNKNOWN)
