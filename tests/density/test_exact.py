"""Joint densities of a whole table are exact: sums are 1, conditionals are ratios, evidence is a sum or an integral."""

from itertools import pairwise, product

import numpy as np
import pytest
from encoded import mixed_table
from scipy.special import ndtri
from scipy.stats import chi2

from likely.density.class_trees import fit_class_trees
from likely.density.columns import (
    UNKNOWN,
    CategoryColumn,
    NumberColumn,
    unknown_rows,
)
from likely.density.combination import COMBINED, Combination, Member, continued, fit_member
from likely.density.evidence import Evidence, Known
from likely.density.table import fit_members
from likely.density.trees import BINS, dependence

N = 600
KINDS = ("trees", "hidden trees", "scores", "tied scores")


@pytest.fixture(scope="module")
def table():
    return mixed_table(N)


@pytest.fixture(scope="module")
def joints(table):
    rows = table
    found = {kind: fit_member(kind, rows, 0).density for kind in (*KINDS, "tree")}
    held_out = np.random.default_rng(1).random(N) < 0.2
    found["class trees"] = Member.of("class trees", fit_class_trees(rows, held_out, dependence(rows))).density
    members, weights = fit_members(rows, COMBINED, [held_out], 0, lambda _: None)
    return found | {"combination": Combination(rows.columns, weights, tuple(m.density for m in members))}


ALL = (*KINDS, "combination", "tree", "class trees")


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
    rows = table
    for j in range(4):
        levels, u, weight = grid(rows, j)
        density = np.exp(joints[kind].log_density(with_cells(rows, {j: (levels, u)})))
        assert weight @ density == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_a_missing_cell_is_a_sum_over_all_it_could_be(joints, table, kind):
    rows = table
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
    rows = table.taken(slice(0, 50))
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
    rows = table
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
    rows = table
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
    rows = table
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
    rows = table
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


QUARTERS = 4


def quarters(column):
    """What a column may be: each level by itself, and the numbers that are no atoms by quarters of u."""
    levels = np.eye(column.levels)
    if isinstance(column, CategoryColumn):
        return [Known(level) for level in levels]
    cuts = np.arange(QUARTERS + 1) / QUARTERS
    return [Known(level) for level in levels[:-1]] + [Known(levels[-1], *ends) for ends in pairwise(cuts)]


def p_value(counts, p):
    """Return how likely a chi-square of these counts, or a greater one, is; rare cells are taken together."""
    n = counts.sum()
    rare = n * p < 5
    assert p.sum() == pytest.approx(1, abs=1e-4)
    assert not counts[p == 0].any()
    expected = np.append(n * p[~rare], n * p[rare].sum())
    away = (np.append(counts[~rare], counts[rare].sum()) - expected) ** 2 / np.maximum(expected, 1.0)
    return chi2.sf(away.sum(), max((expected > 0).sum() - 1, 1))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("ranged", [False, True])
def test_draws_match_the_density(joints, table, kind, ranged):
    """Cells and all pairs of cells, by chi-square: the least of the p values, times how many there are (Bonferroni)."""
    joint, columns, n = joints[kind], table.columns, 40_000
    given = {0: Known(np.ones(1), 0.25, 0.75)} if ranged else {}
    evidence = Evidence(columns, given) if ranged else None
    levels, u = joint.draw(unknown_rows(columns, n), np.random.default_rng(3), evidence)[:2]
    assert (levels >= 0).all()
    drawn = levels.astype(int)
    for number, j in enumerate((0, 2)):
        free = levels[:, j] == columns[j].levels - 1
        assert not np.isnan(u[free, number]).any()
        drawn[free, j] += np.minimum((u[free, number] * QUARTERS).astype(int), QUARTERS - 1)
    blank = unknown_rows(columns, 1)

    def marginals(evidence):
        """Return p(quarter) of every column."""
        found = [each[0] for each in joint.marginals(blank, range(4), evidence)]
        for j in (0, 2):
            atoms = columns[j].levels - 1
            of_quarters = found[j][atoms:].reshape(QUARTERS, -1).sum(axis=1)
            found[j] = np.concatenate([found[j][:atoms], of_quarters])
        return found

    of_cells = marginals(evidence)
    found = [p_value(np.bincount(drawn[:, j], minlength=len(p)), p) for j, p in enumerate(of_cells)]
    for j in range(4):
        for at, known in enumerate(quarters(columns[j])):
            if of_cells[j][at] < 1e-12:
                continue
            if j in given:  # quarters of a range are within it, or not at all
                known = known._replace(u_low=max(known.u_low, 0.25), u_high=min(known.u_high, 0.75))
            conditional = marginals(Evidence(columns, given | {j: known}))
            own = drawn[drawn[:, j] == at]
            found += [p_value(np.bincount(own[:, i], minlength=len(p)), p) for i, p in enumerate(conditional[:j])]
    assert min(found) * len(found) > 1e-3


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
    rows = table
    some = fit_member("scores", rows.taken(slice(0, 40)), 0)
    more = continued(some, rows, 3)
    structures = [m.prior.tables.forest.structures[0] for m in (some, more)]
    np.testing.assert_array_equal(structures[0].parents, structures[1].parents)
    assert np.average(more.density.log_density(rows)) > np.average(some.density.log_density(rows))
