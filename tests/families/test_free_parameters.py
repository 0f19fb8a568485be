"""How many parameters a model has: the dimension of the space of its densities, found without asking the families.

The weights of the rows that are learned move a model within its space. So the rank of the Jacobian of log p(x), at
random rows, by the weights is the number of parameters; of mixtures, where components can be told apart at all.
"""

import numpy as np
import pytest

from likely import Classifier, GaussianDiscriminant, Mixture, NaiveBayes

STEP = 1e-4


def rank_of_jacobian(fit, rows, weights):
    """Return the rank of ∂ log p(x) / ∂ weight over all rows x; ``fit`` makes a model from weights."""

    def column(r):
        up, down = weights.copy(), weights.copy()
        up[r] += STEP
        down[r] -= STEP
        return (fit(up).log_density(rows) - fit(down).log_density(rows)) / (2 * STEP)

    jacobian = np.column_stack([column(r) for r in range(len(weights))])
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    rank = int((sizes > 1e-6 * sizes[0]).sum())
    # The rank is not a matter of the tolerance: what is left out is rounding, and far below what is not.
    assert rank == len(sizes) or sizes[rank] < 1e-2 * sizes[rank - 1]
    return rank


def _cells(kind, n, rng):
    return {
        "real": lambda: rng.normal(size=n),
        "positive": lambda: rng.gamma(2.0, 1.0, n),
        "count": lambda: rng.poisson(3.0, n).astype(float),
        "binary": lambda: (rng.random(n) < 0.4).astype(float),
        "category": lambda: np.append(np.arange(3.0), rng.integers(0, 3, n - 3)),
    }[kind]()


def _columns(kinds, n, seed):
    rng = np.random.default_rng(seed)
    return np.column_stack([_cells(kind, n, rng) for kind in kinds])


NUMBERS = {
    "gaussian": (lambda: NaiveBayes("gaussian"), ["real"] * 3, 6),
    "log-normal": (lambda: NaiveBayes("log-normal"), ["positive"] * 2, 4),
    "gamma": (lambda: NaiveBayes("gamma"), ["positive"] * 2, 4),
    "exponential": (lambda: NaiveBayes("exponential"), ["positive"] * 3, 3),
    "poisson": (lambda: NaiveBayes("poisson"), ["count"] * 3, 3),
    "bernoulli": (lambda: NaiveBayes("bernoulli"), ["binary"] * 6, 6),
    "categorical": (lambda: NaiveBayes("categorical"), ["category"] * 4, 8),
    "multinomial": (lambda: NaiveBayes("multinomial"), ["count"] * 5, 4),
    "mixed": (
        lambda: NaiveBayes(["gaussian", "bernoulli", "categorical", "bernoulli", "categorical", "poisson"]),
        ["real", "binary", "category", "binary", "category", "count"],
        2 + 1 + 2 + 1 + 2 + 1,
    ),
    "spherical": (lambda: GaussianDiscriminant("spherical"), ["real"] * 3, 4),
    "diagonal": (lambda: GaussianDiscriminant("diagonal"), ["real"] * 3, 6),
    "full": (lambda: GaussianDiscriminant("full", shrinkage=0), ["real"] * 3, 9),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_one_component(name):
    make, kinds, by_hand = NUMBERS[name]
    X = _columns(kinds, 40, seed=1)
    y = np.zeros(40, dtype=int)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 40)
    count = make().fit(X, y).joint_.free_parameters()
    assert count == by_hand
    assert count == rank_of_jacobian(lambda w: make().fit(X, y, sample_weight=w), _columns(kinds, 60, seed=3), weights)


# Columns enough that no other mixture of as many components has the same density.
MIXTURES = {
    "gaussian": (lambda: NaiveBayes("gaussian"), ["real"] * 3),
    "poisson": (lambda: NaiveBayes("poisson"), ["count"] * 3),
    "bernoulli": (lambda: NaiveBayes("bernoulli"), ["binary"] * 6),
    "categorical": (lambda: NaiveBayes("categorical"), ["category"] * 4),
    "mixed": (NUMBERS["mixed"][0], NUMBERS["mixed"][1]),
    "spherical": (lambda: GaussianDiscriminant("spherical"), ["real"] * 3),
    "spherical tied": (lambda: GaussianDiscriminant("spherical", tied=True), ["real"] * 3),
    "diagonal tied": (lambda: GaussianDiscriminant("diagonal", tied=True), ["real"] * 3),
    "full": (lambda: GaussianDiscriminant("full", shrinkage=0), ["real"] * 2),
    "full tied": (lambda: GaussianDiscriminant("full", tied=True, shrinkage=0), ["real"] * 2),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_identifiable_mixtures(name):
    make, kinds = MIXTURES[name]
    rng = np.random.default_rng(4)
    X = np.vstack([_columns(kinds, 30, seed=5), _columns(kinds, 30, seed=6)])
    y = np.repeat([0, 1], 30)
    far = [j for j, kind in enumerate(kinds) if kind == "real"]
    X[30:, far] = 2 * X[30:, far] + 2  # components that differ
    binary = [j for j, kind in enumerate(kinds) if kind == "binary"]
    X[30:][:, binary] = 1 - X[30:][:, binary]
    X[np.ix_(np.arange(30, 60), binary)] = rng.random((30, len(binary))) < 0.8
    category = [j for j, kind in enumerate(kinds) if kind == "category"]
    X[np.ix_(np.arange(33, 60), category)] = rng.choice(3, (27, len(category)), p=[0.7, 0.2, 0.1])
    counts = [j for j, kind in enumerate(kinds) if kind == "count"]
    X[np.ix_(np.arange(30, 60), counts)] = rng.poisson(8, (30, len(counts)))
    rows = np.vstack([X[rng.permutation(60)], _columns(kinds, 60, seed=7)])
    count = make().fit(X, y).joint_.free_parameters()
    weights = rng.uniform(0.5, 2.0, 60)
    assert count == rank_of_jacobian(lambda w: make().fit(X, y, sample_weight=w), rows, weights)


@pytest.mark.parametrize("together", [(), ["a", "b"]])
def test_named_categories_and_texts(together):
    rng = np.random.default_rng(8)
    n = 50
    table = {
        "a": rng.choice(["x", "y", "z"], n).tolist(),
        "b": rng.choice(["u", "v"], n).tolist(),
        "note": [" ".join(rng.choice(["one", "two", "three", "four"], 5)) for _ in range(n)],
    }
    y = np.zeros(n, dtype=int)

    def fit(weights):
        columns = {"a": "category", "b": "category", "note": "text"}
        return NaiveBayes(columns, together=together).fit(table, y, sample_weight=weights)

    weights = rng.uniform(0.5, 2.0, n)
    count = fit(weights).joint_.free_parameters()
    assert count == (5 if together else 2 + 1) + 3
    assert count == rank_of_jacobian(fit, table, weights)


def test_columns_without_a_cell_have_no_parameters():
    X = np.random.default_rng(0).gamma(2.0, 1.0, (20, 3))
    X[:, 1] = np.nan
    for family, each in (("gaussian", 2), ("gamma", 2), ("poisson", 1), ("bernoulli", 1), ("categorical", 19)):
        cells = np.round(X) if family == "poisson" else X > 1 if family == "bernoulli" else X
        cells = np.where(np.isnan(X), np.nan, cells)
        model = NaiveBayes(family).fit(cells, np.zeros(20))
        assert model.joint_.free_parameters() == 2 * each, family


def test_classes_that_are_mixtures_count_components_that_have_rows():
    """Classes of few rows have fewer components than were asked for."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)) + 6 * rng.integers(0, 2, (200, 1)), rng.normal(size=(6, 2)) - 9])
    y = np.repeat(["many", "few"], [200, 6])
    model = Classifier(components=2).fit(X, y)
    components = int(np.count_nonzero(model.joint_.densities[0].weights))
    assert components == 3
    assert model.joint_.free_parameters() == 1 + (components - 2) + components * (2 + 2)


def test_tables_of_categories_count_every_column():
    """Eight columns of twelve categories have 88 shares that are free, and six of yes and no have six."""
    rng = np.random.default_rng(0)
    names = np.array([f"c{i:02}" for i in range(12)])
    of_categories = {f"x{j}": names[np.append(np.arange(12), rng.integers(0, 12, 188))].tolist() for j in range(8)}
    assert Mixture(1).fit(of_categories).joint_.free_parameters() == 88
    assert Mixture(1).fit({f"x{j}": (rng.random(200) < 0.5).tolist() for j in range(6)}).joint_.free_parameters() == 6


def _noise(kind, rng, n=200):
    if kind == "numbers":
        return {f"x{j}": rng.normal(size=n).tolist() for j in range(4)}
    if kind == "categories":
        return {f"x{j}": rng.choice(list("abcde"), n).tolist() for j in range(4)}
    return {f"x{j}": (rng.random(n) < rng.uniform(0.1, 0.9)).tolist() for j in range(6)}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore:components became empty")
@pytest.mark.parametrize("kind", ["numbers", "categories", "yes/no"])
def test_noise_has_one_group(kind, seed):
    """Columns that are independent of each other give no reason for more than one component."""
    table = _noise(kind, np.random.default_rng(seed))
    found = Mixture.select(table, range(1, 4), [("diagonal", False)])
    assert found.table[0].n_components == 1
