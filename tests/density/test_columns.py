"""Marginals of columns: whole numbers have probabilities, which add up to 1, other numbers densities."""

import numpy as np
import pytest

import likely
from likely.density.columns import NumberColumn

RNG = np.random.default_rng(0)
WHOLE = {
    "ages": RNG.integers(17, 90, 2000),
    "hours, often 40": np.where(RNG.random(2000) < 0.5, 40, RNG.integers(1, 99, 2000)),
    "few": RNG.integers(0, 5, 500),
    "few, and fewer others": np.repeat([0, 1, 3, 4, 10], [500, 500, 2, 2, 1]),
    "constant": np.full(50, 7),
    "mostly 0": np.where(RNG.random(3000) < 0.9, 0, np.exp(RNG.normal(8, 1, 3000))),
    "six": [1, 2, 2, 5, 9, 100],
    "one": [3],
    "counts": RNG.poisson(40, 1000),
    "negative": -RNG.geometric(0.1, 1000),
    "none": [np.nan],
}
every_column = pytest.mark.parametrize("values", WHOLE.values(), ids=WHOLE.keys())


def other_numbers(column):
    """All whole numbers that are likely at all, but atoms."""
    reach = 60 * max(column.scale, 200.0)
    every = np.arange(np.rint(column.centre - reach), np.rint(column.centre + reach) + 1)
    return every[~np.isin(every, column.atoms)]


@every_column
def test_probabilities_of_whole_numbers_add_up_to_1(values):
    column = NumberColumn.fit(np.rint(np.array(values, dtype=np.float64)), whole=True)
    column.validate()
    assert column.whole
    x = other_numbers(column)
    p = np.exp(column.log_marginal(x))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    # F rises by the probability of a number within ½ of it, so ranges are sums
    (below, above), (low, _), (high, _) = map(column.distribution, (x, x - 0.5, x + 0.5))
    np.testing.assert_allclose(high - low, p, atol=1e-15)
    np.testing.assert_allclose(below + above, 1, atol=1e-14)
    assert (low <= below + 1e-15).all()
    assert (below <= high + 1e-15).all()
    scored = column.scored(x)
    assert (np.diff(scored.z) >= 0).all()
    np.testing.assert_array_equal(scored.log, column.log_marginal(x))


@every_column
def test_the_range_of_all_atoms_has_nothing_beside_them(values):
    column = NumberColumn.fit(np.rint(np.array(values, dtype=np.float64)), whole=True)
    for atom in column.atoms:
        low, high = column.distribution(np.array([atom - 0.5, atom + 0.5]))[0]
        assert high - low == pytest.approx(0, abs=1e-15)


def test_where_steps_are_small_probabilities_are_densities():
    x = np.rint(RNG.normal(0, 1e6, 5000))
    whole, number = NumberColumn.fit(x, whole=True), NumberColumn.fit(x)
    at = np.linspace(-2e6, 2e6, 5001).round()
    np.testing.assert_allclose(whole.log_marginal(at), number.log_marginal(at), atol=1e-3)


def test_whole_numbers_far_out_are_possible():
    column = NumberColumn.fit(np.array([1.0, 2, 2, 3, 9] * 10), whole=True)
    x = np.append(10.0 ** np.arange(2, 19), -(10.0 ** np.arange(2, 19)))
    assert np.isfinite(column.log_marginal(x)).all()
    assert (np.diff(column.log_marginal(np.sort(x[x > 0]))) < 0).all()


def test_numbers_said_to_be_whole_that_are_not_have_densities():
    assert not NumberColumn.fit(np.array([1.0, 2.5, 3.0]), whole=True).whole


def test_columns_are_whole_by_their_declared_type_and_stay_so(tmp_path):
    table = {"n": RNG.integers(0, 300, 400), "x": RNG.normal(size=400)}
    model = likely.Model("tree").fit(table)
    model.save(tmp_path / "m.likely")
    for each in (model, likely.load(tmp_path / "m.likely")):
        n, x = each.fitted().joint.columns
        assert n.whole
        assert not x.whole
    plain = likely.Model("tree", columns={"n": "number"}).fit(table)
    assert not plain.fitted().joint.columns[0].whole
    assert not likely.Model("tree").fit(np.arange(60.0)[:, None]).fitted().joint.columns[0].whole
    with pytest.raises(ValueError, match=r"a whole number of column 'n', got 2\.5"):
        model.distribution("x", {"n": 2.5})
    # the tree's copula is that of 32 bins, so a sum over whole numbers is nearly that of the marginal
    p = np.exp(model.log_density([{"n": n} for n in range(-3000, 3300)]))
    assert p.sum() == pytest.approx(1, abs=0.02)
