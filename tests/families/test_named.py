"""Categories by name, and what is expected or drawn where cells are missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.data.labels import read_assignment
from likely.data.table import Block, Table, read_table
from likely.families import Bernoulli, Gaussian, Named, Poisson
from likely.families.choice import family_of_integers
from likely.joint import Joint, Part
from likely.learn.one_pass import all_but_each, collect, collect_folds
from likely.statistics import Assignment

COLOURS = np.array(["red", "green", "blue", "pink"], dtype=object)
PARTS = (Part(Named(), [0]), Part(Gaussian("full"), [1, 2]), Part(Bernoulli(), [3]), Part(Poisson(), [4]))


def rows(n: int, seed: int = 0, holes: float = 0.0) -> tuple[Table, Assignment]:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    x = np.column_stack(
        [
            generator.integers(0, 3, n),
            generator.multivariate_normal([0, 0], [[1, 0.8], [0.8, 2]], n) + y[:, None],
            generator.random(n) < 0.3 + 0.4 * y,
            generator.poisson(2 + 3 * y),
        ]
    ).astype(float)
    x[generator.random(x.shape) < holes] = np.nan
    return Table(x, ("colour", "a", "b", "yes", "count"), None, {0: COLOURS}), read_assignment(y, None, n)


def solved(table: Table, assignment: Assignment) -> Joint:
    return Joint.solve(collect(table, assignment, PARTS), PARTS, table.columns)


def renumbered(table: Table, order: list[int]) -> Table:
    """The same cells, the names in another order."""
    cells = np.array(table.cells)
    there = ~np.isnan(cells[:, 0])
    cells[there, 0] = np.argsort(order)[cells[there, 0].astype(int)]
    return Table(cells, table.names, None, {0: COLOURS[order]})


@given(st.permutations(range(4)))
def test_numbers_of_names_do_not_matter(order):
    table, assignment = rows(60, holes=0.2)
    other = renumbered(table, order)
    one, two = solved(table, assignment), solved(other, assignment)
    np.testing.assert_array_equal(one.posterior(table), two.posterior(other))
    np.testing.assert_array_equal(one.posterior(other), two.posterior(table))


def test_batches_with_other_names_add_up():
    table, assignment = rows(100)
    first, second = (table.taken(np.arange(0, 50)), renumbered(table, [3, 1, 0, 2]).taken(np.arange(50, 100)))
    parts = [collect(t, assignment.taken(np.arange(i, i + 50)), PARTS) for t, i in ((first, 0), (second, 50))]
    whole = collect(table, assignment, PARTS)
    both = parts[0] + parts[1]
    assert both.blocks[0].labels["category"].tolist() == whole.blocks[0].labels["category"].tolist()
    np.testing.assert_array_equal(both.blocks[0].sums["count"], whole.blocks[0].sums["count"])
    np.testing.assert_array_equal(
        (both - parts[1]).blocks[0].sums["count"].sum(axis=1), parts[0].weights.sums["weight"]
    )


def test_an_unknown_name_says_nothing():
    table, assignment = rows(60)
    joint = solved(table, assignment)
    cells = np.array(table.cells[:1])
    missing, pink = cells.copy(), cells.copy()
    missing[0, 0], pink[0, 0] = np.nan, 3
    np.testing.assert_array_equal(
        *(joint.posterior(Table(x, table.names, None, {0: COLOURS})) for x in (missing, pink))
    )


def test_numbers_where_names_are_expected():
    table, assignment = rows(20)
    with pytest.raises(ValueError, match="expected categories by name in column 'colour', got numbers"):
        solved(Table(table.cells, table.names), assignment)


def test_the_mean_of_draws_is_what_is_expected():
    table, assignment = rows(400)
    joint = solved(table, assignment)
    one = Table(np.array([[np.nan, 1.0, np.nan, np.nan, 4.0]]), table.names, None, {0: COLOURS})
    many = Table(np.repeat(one.cells, 40_000, axis=0), table.names, None, {0: COLOURS})
    drawn, classes = joint.drawn(many, np.random.default_rng(0))
    expected = joint.expected(one)[0]
    assert abs(drawn[:, 2].mean() - expected[2]) < 0.03
    posterior = joint.posterior(one)[0]
    assert abs(classes.mean() - posterior[1]) < 0.01
    values, shares = joint.column_posterior(one, 0)
    assert joint.categories[0].tolist() == ["blue", "green", "red"]
    np.testing.assert_allclose(np.bincount(drawn[:, 0].astype(int)) / 40_000, shares[0], atol=0.01)
    assert expected[0] == values[shares[0].argmax()]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    _, yes = joint.column_posterior(one, 3)
    assert abs(drawn[:, 3].mean() - yes[0, 1]) < 0.01


def test_a_full_covariance_fills_by_regression():
    table, assignment = rows(300)
    joint = solved(table, assignment)
    mean, covariance = joint.densities[1].mean[1], joint.densities[1].covariance[1]
    one = Table(np.array([[0.0, 1.5, np.nan, 1.0, 2.0]]), table.names, None, {0: COLOURS})
    want = mean[1] + covariance[0, 1] / covariance[0, 0] * (1.5 - mean[0])
    np.testing.assert_allclose(joint.expected(one, np.array([1]))[0, 2], want, rtol=1e-12)


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_folds_are_collected_in_one_pass(folds):
    table, assignment = rows(140)
    fold_of = np.arange(140) % folds
    pieces = collect_folds(table, assignment, fold_of, PARTS)
    for fold, (piece, others) in enumerate(zip(pieces, all_but_each(pieces), strict=True)):
        for got, kept in ((piece, fold_of == fold), (others, fold_of != fold)):
            want = Joint.solve(collect(table.taken(kept), assignment.taken(kept), PARTS), PARTS, table.columns)
            np.testing.assert_allclose(
                Joint.solve(got, PARTS, table.columns).posterior(table), want.posterior(table), atol=1e-9
            )


@pytest.mark.parametrize(
    ("draw", "family"),
    [
        (lambda g, y: g.poisson(3 + y), "poisson"),
        (lambda g, y: np.round(g.normal(100 + 5 * y, 15)), "gaussian"),
        (lambda g, y: 100 * np.round(g.normal(100 + 5 * y, 15)), "gaussian"),
        (lambda g, y: g.integers(0, 2, len(y)), "categorical"),
        (lambda g, y: g.choice([-5, 3, 40], len(y)), "categorical"),
        (lambda _, y: np.zeros(len(y)), "categorical"),
        (lambda _, y: np.full(len(y), np.nan), "categorical"),
    ],
)
def test_whole_numbers_by_likelihood(draw, family):
    y = np.arange(2000) % 3
    x = draw(np.random.default_rng(0), y).astype(float)
    assert family_of_integers(Block(read_table(x[:, None]), None), read_assignment(y, None, len(y))) == family
