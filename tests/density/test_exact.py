"""Joint densities of a whole table are exact: sums are 1, conditionals are ratios, evidence is a sum or an integral."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import ndtri

from likely.density.columns import (
    UNKNOWN,
    CategoryColumn,
    Encoded,
    NumberColumn,
    level_counts,
    unknown_rows,
)
from likely.density.combination import COMBINED, Combination, continued, fit_member
from likely.density.evidence import Evidence, Known
from likely.density.table import fit_members
from likely.density.trees import BINS

N = 600
KINDS = ("trees", "hidden trees", "scores")


def encoded(columns, cells, names):
    scored = [
        c.scored(names[j], cells[:, j]) if isinstance(c, CategoryColumn) else c.scored(cells[:, j])
        for j, c in enumerate(columns)
    ]
    of_numbers = [s for c, s in zip(columns, scored, strict=True) if isinstance(c, NumberColumn)]
    return Encoded(
        columns,
        np.stack([s.levels for s in scored], axis=1),
        np.stack([s.u for s in of_numbers], axis=1),
        np.stack([s.z for s in of_numbers], axis=1),
        np.stack([s.log for s in scored], axis=1),
    )


@pytest.fixture(scope="module")
def table():
    """Two numbers, one often 0, and two categories: all depend on each other, and some cells are missing."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=N)
    x = rng.normal(group * 2.0, 1.0)
    y = np.where(rng.random(N) < 0.3, 0.0, np.exp(0.5 * x + 0.3 * rng.normal(size=N)))
    a = np.where(rng.random(N) < 0.8, group, rng.integers(3, size=N)).astype(float)
    b = (x + rng.normal(size=N) > 2).astype(float)
    cells = np.stack([x, a, y, b], axis=1)
    cells[rng.random(cells.shape) < 0.1] = np.nan
    names = {1: ["p", "q", "r"], 3: ["no", "yes"]}
    columns = (
        NumberColumn.fit(cells[:, 0]),
        CategoryColumn.fit(names[1], np.bincount(cells[~np.isnan(cells[:, 1]), 1].astype(int), minlength=3)),
        NumberColumn.fit(cells[:, 2]),
        CategoryColumn.fit(names[3], np.bincount(cells[~np.isnan(cells[:, 3]), 3].astype(int)), named=False),
    )
    return encoded(columns, cells, names), cells


@pytest.fixture(scope="module")
def joints(table):
    rows, _ = table
    found = {kind: fit_member(kind, rows, 0).density for kind in KINDS}
    held_out = np.random.default_rng(1).random(N) < 0.2
    members, weights = fit_members(rows, COMBINED, held_out, 0, lambda _: None)
    return found | {"combination": Combination(rows.columns, weights, tuple(m.density for m in members))}


ALL = (*KINDS, "combination")


def with_cells(rows, known):
    """Unknown rows, but for levels of columns of categories, or (level, u) of numbers: one row each."""
    n = len(next(iter(known.values()))[0])
    blank = unknown_rows(rows.columns, n)
    levels, u, z = blank.levels.copy(), blank.u.copy(), blank.z.copy()
    place = {j: i for i, j in enumerate(j for j, c in enumerate(rows.columns) if isinstance(c, NumberColumn))}
    for j, (level, at) in known.items():
        levels[:, j] = level
        if j in place:
            free = levels[:, j] == rows.columns[j].levels - 1
            u[free, place[j]] = at[free]
            z[free, place[j]] = ndtri(at[free])
    return blank._replace(levels=levels, u=u, z=z)


def grid(rows, j, fine=400):
    """Points and weights that sum over all levels of a column, and integrate over u."""
    column = rows.columns[j]
    if isinstance(column, CategoryColumn):
        return np.arange(column.levels), np.full(column.levels, 0.5), np.ones(column.levels)
    # Gauss and Legendre's points in every bin of u, as densities of trees have steps there, and closer near 0 and 1
    x, w = np.polynomial.legendre.leggauss(20)
    edges = np.unique(
        np.concatenate([np.arange(BINS + 1) / BINS, 10.0 ** -np.arange(2, 13), 1 - 10.0 ** -np.arange(2, 13)])
    )
    at = (edges[:-1, None] + np.diff(edges)[:, None] * (x + 1) / 2).ravel()
    weight = (np.diff(edges)[:, None] * w / 2).ravel()
    atoms = len(column.atoms)
    levels = np.concatenate([np.arange(atoms), np.full(len(at), atoms)])
    return levels, np.concatenate([np.full(atoms, 0.5), at]), np.concatenate([np.ones(atoms), weight])


@pytest.mark.parametrize("kind", ALL)
def test_the_marginal_of_every_column_integrates_to_1(joints, table, kind):
    rows, _ = table
    for j in range(4):
        levels, u, weight = grid(rows, j)
        density = np.exp(joints[kind].log_density(with_cells(rows, {j: (levels, u)})))
        assert weight @ density == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_a_missing_cell_is_a_sum_over_all_it_could_be(joints, table, kind):
    rows, _ = table
    for j, other in product(range(4), range(4)):
        if j == other:
            continue
        levels, u, weight = grid(rows, j)
        fixed, at, _ = grid(rows, other)
        for pick in (0, len(fixed) // 2, len(fixed) - 1):
            known = {other: (np.full(1, fixed[pick]), np.full(1, at[pick]))}
            one = np.exp(joints[kind].log_density(with_cells(rows, known)))[0]
            both = {j: (levels, u), other: (np.full(len(u), fixed[pick]), np.full(len(u), at[pick]))}
            found = weight @ np.exp(joints[kind].log_density(with_cells(rows, both)))
            assert found == pytest.approx(one, rel=1e-8)


@pytest.mark.parametrize("kind", ALL)
def test_conditionals_are_ratios_of_marginals(joints, table, kind):
    rows = table[0].taken(slice(0, 50))
    joint = joints[kind]
    for j in (1, 3):
        hidden = rows.levels.copy()
        hidden[:, j] = UNKNOWN
        without = rows._replace(levels=hidden, log=np.zeros((rows.rows, 4)))
        below = joint.log_density(without)
        found = joint.marginals(without, [j])[0]
        for level in range(rows.columns[j].levels):
            filled = hidden.copy()
            filled[:, j] = level
            above = joint.log_density(without._replace(levels=filled))
            np.testing.assert_allclose(found[:, level], np.exp(above - below), atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("kind", ALL)
def test_distributions_of_numbers_are_integrals_of_ratios(joints, table, kind):
    rows, _ = table
    joint = joints[kind]
    for row in range(5):
        part = rows.taken(slice(row, row + 1))
        for number, j in enumerate((0, 2)):
            hidden, u, z = part.levels.copy(), part.u.copy(), part.z.copy()
            hidden[:, j], u[:, number], z[:, number] = UNKNOWN, np.nan, np.nan
            without = part._replace(levels=hidden, u=u, z=z, log=np.zeros((1, 4)))
            found = joint.marginals(without, [j])[0][0]
            levels, at, weight = grid(rows, j)
            many = without.taken(np.zeros(len(at), dtype=np.int64))
            filled, uu, zz = many.levels.copy(), many.u.copy(), many.z.copy()
            filled[:, j] = levels
            free = levels == rows.columns[j].levels - 1
            uu[free, number], zz[free, number] = at[free], ndtri(at[free])
            density = np.exp(joint.log_density(many._replace(levels=filled, u=uu, z=zz)) - joint.log_density(without))
            atoms = rows.columns[j].levels - 1
            bins = np.bincount(np.minimum((at[free] * 64).astype(int), 63), (weight * density)[free], minlength=64)
            # a point of the quadrature may lie on the other side of an edge of 64 bins: pairs of them are compared
            np.testing.assert_allclose(found[:atoms], density[~free], rtol=1e-8)
            np.testing.assert_allclose(
                found[atoms:].reshape(32, 2).sum(axis=1), bins.reshape(32, 2).sum(axis=1), atol=1e-7
            )


@pytest.mark.parametrize("kind", ALL)
def test_a_set_of_categories_is_the_sum_of_its_members(joints, table, kind):
    rows, _ = table
    part = rows.taken(slice(0, 30))
    hidden = part.levels.copy()
    hidden[:, 1] = UNKNOWN
    part = part._replace(levels=hidden, log=np.zeros((30, 4)))
    evidence = Evidence(rows.columns, {1: Known(np.array([1.0, 0.0, 1.0]))})
    total = np.zeros(30)
    for level in (0, 2):
        filled = hidden.copy()
        filled[:, 1] = level
        total += np.exp(joints[kind].log_density(part._replace(levels=filled)))
    np.testing.assert_allclose(np.exp(joints[kind].log_density(part, evidence)), total, rtol=1e-10)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("atom", [0.0, 1.0])
def test_a_range_is_the_integral_over_it(joints, table, kind, atom):
    rows, _ = table
    part = rows.taken(slice(0, 8))
    hidden, u, z = part.levels.copy(), part.u.copy(), part.z.copy()
    hidden[:, 2], u[:, 1], z[:, 1] = UNKNOWN, np.nan, np.nan
    part = part._replace(levels=hidden, u=u, z=z, log=np.zeros((8, 4)))
    low, high = 7 / 64, 0.8
    assert len(rows.columns[2].atoms) == 1
    evidence = Evidence(rows.columns, {2: Known(np.array([atom, 1.0]), low, high)})
    x, w = np.polynomial.legendre.leggauss(30)
    edges = np.unique(np.clip(np.arange(65) / 64, low, high))
    at = (edges[:-1, None] + np.diff(edges)[:, None] * (x + 1) / 2).ravel()
    weight = (np.diff(edges)[:, None] * w / 2).ravel()
    want = np.zeros(8)
    for level, u_at, share in [(0, 0.5, atom), *((1, a, w) for a, w in zip(at, weight, strict=True))]:
        filled, uu, zz = hidden.copy(), u.copy(), z.copy()
        filled[:, 2] = level
        if level:
            uu[:, 1], zz[:, 1] = u_at, ndtri(u_at)
        want += share * np.exp(joints[kind].log_density(part._replace(levels=filled, u=uu, z=zz)))
    np.testing.assert_allclose(np.exp(joints[kind].log_density(part, evidence)), want, rtol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_given_a_range_conditionals_are_ratios(joints, table, kind):
    rows, _ = table
    blank = unknown_rows(rows.columns, 1)
    joint = joints[kind]
    both = {
        0: Known(np.append(np.ones(len(rows.columns[0].atoms)), 1.0), 0.2, 0.7),
        2: Known(np.array([1.0, 1.0]), 0.3, 1.0),
    }
    evidence = Evidence(rows.columns, both)
    below = joint.log_density(blank, evidence)
    for j in (1, 3):
        found = joint.marginals(blank, [j], evidence)[0]
        for level in range(rows.columns[j].levels):
            filled = blank.levels.copy()
            filled[:, j] = level
            above = joint.log_density(blank._replace(levels=filled), evidence)
            np.testing.assert_allclose(found[:, level], np.exp(above - below), rtol=1e-10)
    # and of the numbers: p(x, y in their ranges) is a sum over parts of one range
    whole = np.exp(joint.log_density(blank, evidence))
    cuts = np.linspace(0.2, 0.7, 6)
    parts = 0.0
    for low, high in pairwise(cuts):
        known = both | {0: Known(both[0].levels, low, high)}
        parts += np.exp(joint.log_density(blank, Evidence(rows.columns, known)))
    assert len(rows.columns[0].atoms) == 0
    np.testing.assert_allclose(
        parts, whole, rtol=1e-5
    )  # several ranges in a Gaussian mixture: by numerical integration


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("ranged", [False, True])
def test_draws_match_the_density(joints, table, kind, ranged):
    rows, _ = table
    n = 40_000
    joint, columns = joints[kind], rows.columns
    evidence = Evidence(columns, {0: Known(np.ones(1), 0.25, 0.75)}) if ranged else None
    levels, u = joint.draw(unknown_rows(columns, n), np.random.default_rng(3), evidence)[:2]
    assert (levels >= 0).all()
    sizes = level_counts(columns, 4)
    coarse = levels.copy().astype(int)
    for number, j in enumerate((0, 2)):
        free = levels[:, j] == columns[j].levels - 1
        assert not np.isnan(u[free, number]).any()
        coarse[free, j] += np.minimum((u[free, number] * 4).astype(int), 3)
    found = joint.marginals(unknown_rows(columns, 1), range(4), evidence)
    for j in range(4):
        counts = np.bincount(coarse[:, j], minlength=sizes[j])
        p = found[j][0]
        if isinstance(columns[j], NumberColumn):
            atoms = len(columns[j].atoms)
            p = np.concatenate([p[:atoms], p[atoms:].reshape(4, 16).sum(axis=1)])
        away = (counts - n * p) ** 2 / np.maximum(n * p * (1 - p), 1.0)
        assert (away < 25).all(), (j, counts, n * p)
    # pairs: a number against a category
    for level in range(columns[1].levels):
        known = with_cells(rows, {1: (np.full(1, level), np.zeros(1))})
        p = np.exp(joint.log_density(known, evidence) - joint.log_density(unknown_rows(columns, 1), evidence))[0]
        part = joint.marginals(known, [0], evidence)[0][0].reshape(4, 16).sum(axis=1) * p
        counts = np.bincount(coarse[coarse[:, 1] == level, 0], minlength=4)
        assert ((counts - n * part) ** 2 < 25 * np.maximum(n * part, 1.0)).all(), (level, counts, n * part)


def test_scores_of_numbers_far_out_are_finite_and_rise():
    column = NumberColumn.fit(np.random.default_rng(0).normal(size=5000) ** 3)
    x = np.concatenate([-np.logspace(300, 0, 200), np.linspace(-1, 1, 400), np.logspace(0, 300, 200)])
    found = column.scored(x)
    assert np.isfinite(found.z).all()
    assert (np.diff(found.z) >= 0).all()
    below, above = column.distribution(x)
    np.testing.assert_allclose(below + above, 1, atol=1e-14)
    assert (np.diff(below) >= 0).all()
    assert (above >= 0).all()


def test_members_that_go_on_with_more_rows_keep_their_tree(table):
    rows, _ = table
    some = fit_member("scores", rows.taken(slice(0, 40)), 0)
    more = continued(some, rows, 3)
    structures = [m.prior.tables.forest.structures[0] for m in (some, more)]
    np.testing.assert_array_equal(structures[0].parents, structures[1].parents)
    assert np.average(more.density.log_density(rows)) > np.average(some.density.log_density(rows))
