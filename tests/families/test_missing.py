"""A full covariance of rows with missing cells is that of the greatest likelihood of the cells that are there."""

from typing import Any

import numpy as np
import pytest
from cases import parameters
from refusal import assert_refused, assert_unchanged_by
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import likely
from likely import GaussianDiscriminant, GaussianPrior, Mixture
from likely.families import missing

LIKELIEST = {"shrinkage": 0.0}
SETTINGS = {
    "likeliest": LIKELIEST,
    "tied": {"shrinkage": 0.0, "tied": True},
    "between": {"shrinkage": 0.0, "tied": 0.3},
    "oas": {},
    "shrunk": {"shrinkage": 0.2},
    "spherical target": {"shrinkage": 0.2, "target": "spherical"},
    "pseudo rows": {"pseudo_rows": 2.0},
    "prior": {"shrinkage": 0.0, "pseudo_rows": GaussianPrior(0.5, 2.0, 3.0)},
    "unbiased": {"shrinkage": 0.0, "unbiased": True},
}
every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def draw(seed: int, rows: int = 120, columns: int = 3, classes: int = 2, share: float = 0.25) -> tuple[Any, Any]:
    """Return rows of correlated columns, a share of whose cells is missing, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    factors = np.eye(columns) + 0.7 * rng.normal(size=(classes, columns, columns))
    X = np.einsum("nij,nj->ni", factors[y], rng.normal(size=(rows, columns))) + 2.0 * y[:, None]
    X[rng.random(X.shape) < share] = np.nan
    return X, y


def log_likelihood(X: np.ndarray, mean: np.ndarray, covariance: np.ndarray, w: np.ndarray | None = None) -> float:
    """Return Σw log p of the cells that are there, by SciPy."""
    total = 0.0
    patterns, places = np.unique(~np.isnan(X), axis=0, return_inverse=True)
    for i, there in enumerate(patterns):
        if there.any():
            rows = places.ravel() == i
            scores = multivariate_normal(mean[there], covariance[np.ix_(there, there)]).logpdf(X[np.ix_(rows, there)])
            total += np.sum(scores if w is None else w[rows] * scores)
    return total


def of_classes(X: np.ndarray, y: np.ndarray, model: Any) -> float:
    covariances = np.broadcast_to(model.covariances_, (len(model.means_), X.shape[1], X.shape[1]))
    return sum(log_likelihood(X[y == c], model.means_[c], covariances[c]) for c in range(len(model.means_)))


# The greatest likelihood


def unpack(theta: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and covariance of numbers that may be any: the mean, and L with its diagonal in logarithms."""
    factor = np.zeros((d, d))
    factor[np.tril_indices(d)] = theta[d:]
    factor[np.diag_indices(d)] = np.exp(np.diagonal(factor))
    return theta[:d], factor @ factor.T


def pack(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    factor = np.linalg.cholesky(covariance)
    factor[np.diag_indices(len(mean))] = np.log(np.diagonal(factor))
    return np.concatenate([mean, factor[np.tril_indices(len(mean))]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_no_direct_search_finds_a_greater_likelihood(seed, weighted):
    X, y = draw(seed, rows=60, classes=1)
    w = np.random.default_rng(seed).uniform(0.2, 3.0, 60) if weighted else None
    model = GaussianDiscriminant(**LIKELIEST).fit(X, y, sample_weight=w)
    theta = pack(model.means_[0], model.covariances_[0])
    cost = lambda theta: -log_likelihood(X, *unpack(theta, 3), w)  # noqa: E731
    steps = 1e-5 * np.eye(len(theta))
    gradient = [(cost(theta + step) - cost(theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)
    start = pack(np.nanmean(X, axis=0), np.diag(np.nanvar(X, axis=0)))
    found = minimize(cost, start, method="L-BFGS-B", options={"maxiter": 500})
    assert cost(theta) <= found.fun + 1e-9
    np.testing.assert_allclose(theta, found.x, atol=2e-3)


def test_no_tied_covariance_has_a_greater_likelihood():
    X, y = draw(4)
    model = GaussianDiscriminant(tied=True, shrinkage=0.0).fit(X, y)
    theta = np.concatenate([model.means_[1], pack(model.means_[0], model.covariances_)])

    def cost(theta: np.ndarray) -> float:
        mean, covariance = unpack(theta[3:], 3)
        return -log_likelihood(X[y == 0], mean, covariance) - log_likelihood(X[y == 1], theta[:3], covariance)

    gradient = [(cost(theta + step) - cost(theta - step)) / 2e-5 for step in 1e-5 * np.eye(len(theta))]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)


def test_every_step_raises_the_likelihood(monkeypatch):
    X, y = draw(5, share=0.4)
    seen = []

    class Watched(missing.Expectation):
        def __call__(self, given):
            origin = self.complete.origin
            pairs = [(given.mean[c] + origin[c], given.covariance[c]) for c in range(2)]
            seen.append(sum(log_likelihood(X[y == c], *pairs[c]) for c in range(2)))
            return super().__call__(given)

    monkeypatch.setattr(missing, "Expectation", Watched)
    monkeypatch.setattr(missing, "_extrapolate", lambda trail: trail[-1])
    GaussianDiscriminant(**LIKELIEST).fit(X, y)
    assert len(seen) > 10
    assert np.diff(seen).min() > -1e-9
    assert seen[-1] > seen[0] + 1.0


def test_leaps_end_where_steps_end(monkeypatch):
    X, y = draw(6, share=0.4)
    model = GaussianDiscriminant(**LIKELIEST).fit(X, y)
    monkeypatch.setattr(missing, "_extrapolate", lambda trail: trail[-1])
    plain = GaussianDiscriminant(**LIKELIEST).fit(X, y)
    np.testing.assert_allclose(model.means_, plain.means_, rtol=1e-7)
    np.testing.assert_allclose(model.covariances_, plain.covariances_, rtol=1e-7)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_holes_in_the_last_column_have_a_closed_form(offset):
    """Anderson (1957): the others as they are; the last regressed on them where it is there."""
    X, y = draw(7, rows=90, columns=4, classes=1, share=0.0)
    X[40:, 3] = np.nan
    mean, covariance = X[:, :3].mean(axis=0), np.cov(X[:, :3].T, bias=True)
    whole = np.column_stack([np.ones(40), X[:40, :3]])
    slope = np.linalg.lstsq(whole, X[:40, 3], rcond=None)[0]
    rest = np.mean((X[:40, 3] - whole @ slope) ** 2)
    across = covariance @ slope[1:]
    model = GaussianDiscriminant(**LIKELIEST).fit(X + offset, y)
    np.testing.assert_allclose(model.means_[0] - offset, [*mean, slope[0] + slope[1:] @ mean], atol=1e-8)
    got = model.covariances_[0]
    np.testing.assert_allclose(got[:3, :3], covariance, atol=1e-8)
    np.testing.assert_allclose(got[3], [*across, rest + slope[1:] @ across], atol=1e-8)


# What holds for every setting


@every_setting
def test_without_holes_it_is_the_fit_of_complete_rows(settings):
    """A row without any cell takes the way of missing cells, and adds nothing but its class."""
    X, y = draw(8, share=0.0)
    one = GaussianDiscriminant(**settings).fit(X, y)
    two = GaussianDiscriminant(**settings).fit(np.vstack([X, np.full((2, 3), np.nan)]), [*y, 0, 1])
    np.testing.assert_allclose(two.means_, one.means_, rtol=1e-13)
    np.testing.assert_allclose(two.covariances_, one.covariances_, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(two.class_count_, one.class_count_ + 1)


@every_setting
def test_the_solution_reproduces_itself(settings):
    """Filled with what is expected under the solution, the rows solve to it."""
    X, y = draw(9)
    model = GaussianDiscriminant(**{**settings, "unbiased": False}).fit(X, y)
    covariances = np.broadcast_to(model.covariances_, (2, 3, 3))
    filled, extra = X.copy(), np.zeros((2, 3, 3))
    for i, (row, c) in enumerate(zip(X, y, strict=True)):
        m, o = np.isnan(row), ~np.isnan(row)
        if o.any():
            B = covariances[c][np.ix_(m, o)] @ np.linalg.inv(covariances[c][np.ix_(o, o)])
            filled[i, m] = model.means_[c, m] + B @ (row[o] - model.means_[c, o])
            extra[c][np.ix_(m, m)] += covariances[c][np.ix_(m, m)] - B @ covariances[c][np.ix_(o, m)]
    there = ~np.isnan(filled).any(axis=1)
    statistics = model._state.statistics.blocks[0]
    for c in range(2):
        t = filled[there & (y == c)] - statistics.origin[c]
        np.testing.assert_allclose(statistics.sums["sum"][c], t.sum(axis=0), atol=1e-7)
        np.testing.assert_allclose(statistics.sums["product"][c], t.T @ t + extra[c], atol=1e-7)


@every_setting
def test_weights_repeat_rows(settings):
    X, y = draw(10)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    one = GaussianDiscriminant(**settings).fit(X, y, sample_weight=times)
    two = GaussianDiscriminant(**settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    for name, want in parameters(two).items():
        np.testing.assert_allclose(parameters(one)[name], want, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("settings", [SETTINGS[name] for name in SETTINGS if name != "prior"])
def test_an_offset_of_1e9_deviations_costs_nothing_but_its_own_digits(settings):
    X, y = draw(11)
    X = np.round(X * 2**20) / 2**20
    one = GaussianDiscriminant(**settings).fit(X, y)
    two = GaussianDiscriminant(**settings).fit(X + 2.0**30, y)
    np.testing.assert_allclose(two.covariances_, one.covariances_, atol=1e-8)
    np.testing.assert_allclose(two.means_ - 2.0**30, one.means_, atol=2.0**-22)


def test_names_of_classes_and_units_of_columns_do_not_matter():
    X, y = draw(12, classes=3)
    unit = np.array([1e-3, 1.0, 1e6])
    model = GaussianDiscriminant().fit(X, y)
    other = GaussianDiscriminant().fit(X * unit, np.array(["c", "a", "b"])[y])
    np.testing.assert_allclose(other.means_[[2, 0, 1]], model.means_ * unit, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.predict_proba(X * unit)[:, [2, 0, 1]], model.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("tied", [False, True])
def test_threads_do_not_change_bits(tied):
    X, y = draw(13, rows=20_000, columns=8, classes=3, share=0.2)
    models = []
    try:
        for threads in (1, 2, 5):
            likely.set_threads(threads)
            models.append(GaussianDiscriminant(tied=tied).fit(X, y))
    finally:
        likely.set_threads(None)
    for model in models[1:]:
        for name, want in parameters(models[0]).items():
            np.testing.assert_array_equal(parameters(model)[name], want, err_msg=name)


# Real data


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("tied", [False, True])
def test_real_data_with_a_fifth_of_the_cells_missing(load, tied):
    X, y = load(return_X_y=True)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    complete = GaussianDiscriminant(tied=tied).fit(X, y)
    model = GaussianDiscriminant(tied=tied).fit(holes, y)
    assert model.score(X, y) > complete.score(X, y) - 0.04
    filled = np.where(np.isnan(holes), np.array([np.nanmean(holes[y == c], axis=0) for c in range(3)])[y], holes)
    by_hand = GaussianDiscriminant(tied=tied).fit(filled, y)
    variances = [m.covariances_[..., range(X.shape[1]), range(X.shape[1])] for m in (model, by_hand, complete)]
    assert np.abs(np.log(variances[0] / variances[2])).mean() < np.abs(np.log(variances[1] / variances[2])).mean()


@pytest.mark.parametrize(("load", "tied"), [(load_iris, False), (load_iris, True), (load_wine, True)])
def test_the_likelihood_of_real_data_is_greater_than_with_means_filled_in(load, tied):
    X, y = load(return_X_y=True)
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    filled = np.where(np.isnan(holes), np.array([np.nanmean(holes[y == c], axis=0) for c in range(3)])[y], holes)
    model, by_hand = (GaussianDiscriminant(tied=tied, shrinkage=0.0).fit(rows, y) for rows in (holes, filled))
    assert of_classes(holes, y, model) > of_classes(holes, y, by_hand)


# Degenerate data


def test_a_class_without_a_cell_in_a_column_has_the_mean_and_variance_of_all():
    X, y = draw(14, share=0.1)
    X[y == 0, 1] = np.nan
    model = GaussianDiscriminant(**LIKELIEST).fit(X, y)
    np.testing.assert_allclose(model.means_[0, 1], np.nanmean(X[:, 1]), rtol=1e-12)
    np.testing.assert_allclose(model.covariances_[0, 1], [0.0, np.nanvar(X[:, 1]), 0.0], atol=1e-12)
    without = GaussianDiscriminant(**LIKELIEST).fit(X[:, [0, 2]], y)
    np.testing.assert_allclose(model.means_[0, [0, 2]], without.means_[0], rtol=1e-8)


@every_setting
def test_a_column_without_a_cell_changes_no_posterior(settings):
    if "target" in settings or isinstance(settings.get("pseudo_rows"), GaussianPrior):
        return  # a spherical target shares its variance with all columns; a prior knows something of every column
    X, y = draw(15)
    wide = np.column_stack([X, np.full(len(X), np.nan)])
    model = GaussianDiscriminant(**settings).fit(wide, y)
    want = GaussianDiscriminant(**settings).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(wide), want, atol=1e-8)
    wide[:, 3] = 7.0
    np.testing.assert_allclose(model.predict_proba(wide), want, atol=1e-8)


def test_a_prior_says_what_to_expect_of_a_column_without_a_cell():
    X, y = draw(16, columns=2)
    prior = GaussianPrior([0.0, 0.0, 5.0], np.diag([1.0, 1.0, 4.0]), 3.0)
    model = GaussianDiscriminant(**LIKELIEST, pseudo_rows=prior).fit(np.column_stack([X, np.full(len(X), np.nan)]), y)
    np.testing.assert_allclose(model.means_[:, 2], 5.0, rtol=1e-7)
    np.testing.assert_allclose(model.covariances_[:, 2, 2], 4.0, rtol=1e-6)


def test_a_constant_column_with_holes_is_a_constant_column():
    X, y = draw(17)
    constant = np.where(np.random.default_rng(0).random((len(X), 1)) < 0.5, np.nan, 1e9)
    model = GaussianDiscriminant().fit(np.hstack([X, constant]), y)
    np.testing.assert_array_equal(model.covariances_[:, 3], [[0.0, 0.0, 0.0, 1.0]] * 2)
    np.testing.assert_array_equal(model.means_[:, 3], 1e9)
    want = GaussianDiscriminant().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(np.hstack([X, constant])), want, atol=1e-8)


@pytest.mark.parametrize("tied", [False, True, 0.3])
def test_a_column_constant_in_each_class_that_has_it_keeps_a_variance(tied):
    X, y = draw(26, classes=3, share=0.1)
    X[:, 2] = np.where(np.arange(len(X)) % 3 == 0, np.nan, np.array([1.0, 4.0, np.nan])[y])
    model = GaussianDiscriminant(tied=tied).fit(X, y)
    variances = np.broadcast_to(np.diagonal(model.covariances_, axis1=-2, axis2=-1), (3, 3))[:, 2]
    of_all = np.nanvar(X[:, 2])
    assert variances[:2].max() < of_all
    assert variances.min() > 1e-11 * of_all
    assert variances[2] == pytest.approx(of_all, rel=1e-9) or tied
    np.testing.assert_allclose(model.means_[:, 2], [1.0, 4.0, np.nanmean(X[:, 2])], rtol=1e-12)


def test_a_class_without_rows_may_be_named():
    X, y = draw(18)
    model = GaussianDiscriminant().partial_fit(X, y, classes=[0, 1, 2])
    assert model.predict_proba(X)[:, 2].max() == 0.0


@pytest.mark.parametrize("tied", [False, True])
def test_collinear_columns_are_refused_by_name_without_shrinkage(tied):
    X, y = draw(19, share=0.0)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    model = GaussianDiscriminant(tied=tied, shrinkage=0.0)
    assert_refused(lambda: model.fit(X, y), "inverse", "column", "'oas'", kind=np.linalg.LinAlgError)
    assert np.isfinite(GaussianDiscriminant(tied=tied).fit(X, y).log_density(X)).all()


def test_fourth_moments_are_refused_and_the_columns_named():
    X, y = draw(20, share=0.0)
    X[5, 1] = np.nan
    model = GaussianDiscriminant(shrinkage="ledoit-wolf").fit(np.nan_to_num(X), y)
    for learn in ("fit", "partial_fit", "forget"):
        ask = lambda model, learn=learn: getattr(model, learn)(X, y)  # noqa: E731
        assert_unchanged_by(model, ask, "NaN", "column 1", "'oas'", rows=np.nan_to_num(X))


def test_steps_that_do_not_settle_are_warned_of(monkeypatch):
    X, y = draw(21)
    monkeypatch.setattr(missing, "_MOST_STEPS", 2)
    with pytest.warns(RuntimeWarning, match="settle within 2 steps"):
        GaussianDiscriminant(**LIKELIEST).fit(X, y)


# Parts


def test_forgetting_a_batch_that_was_learned_leaves_no_trace():
    X, y = draw(22)
    more, labels = draw(23)
    model = GaussianDiscriminant().fit(X, y)
    changed = GaussianDiscriminant().fit(X, y).partial_fit(more, labels).forget(more, labels)
    np.testing.assert_allclose(changed.means_, model.means_, rtol=1e-12)
    np.testing.assert_allclose(changed.covariances_, model.covariances_, rtol=1e-12)


def test_batches_are_nearly_one_fit():
    X, y = draw(24, rows=4000)
    model, batched = GaussianDiscriminant(**LIKELIEST).fit(X, y), GaussianDiscriminant(**LIKELIEST)
    for rows in np.array_split(np.arange(4000), 4):
        batched.partial_fit(X[rows], y[rows])
    assert np.abs(batched.means_ - model.means_).max() < 0.02
    assert 0 < np.abs(batched.covariances_ - model.covariances_).max() < 0.1


def test_a_batch_without_a_cell_in_a_column_that_others_have_is_refused():
    X, y = draw(25)
    model, holes = GaussianDiscriminant().fit(X, y), X.copy()
    holes[:, 1] = np.nan
    for learn in ("partial_fit", "forget"):
        ask = lambda model, learn=learn: getattr(model, learn)(holes[:9], y[:9])  # noqa: E731
        assert_unchanged_by(model, ask, "column 1", "together", rows=X)
    never = GaussianDiscriminant().fit(holes, y)
    assert_unchanged_by(never, lambda model: model.partial_fit(X, y), "column 1", rows=X)
    assert_unchanged_by(never, lambda never: never.merge(model), "column 1", rows=X)
    never.partial_fit(holes, y).forget(holes, y)


@pytest.mark.parametrize(
    ("load", "most"), [(load_iris, 0.6), (load_diabetes, 0.75), (load_wine, 0.8), (load_breast_cancer, 0.45)]
)
def test_masked_cells_of_real_tables_are_filled_better_than_by_means(load, most):
    """The error of conditional means under a full covariance, in standard deviations; that of means is about 1."""
    X = load().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    masked = np.random.default_rng(0).random(X.shape) < 0.2
    holes = np.where(masked, np.nan, X)
    filled = Mixture(1).fit(holes).impute(holes)
    np.testing.assert_array_equal(filled[~masked], X[~masked])
    by_means = np.where(masked, np.nanmean(holes, axis=0), X)
    error, error_of_means = (np.sqrt(np.mean((each - X)[masked] ** 2)) for each in (filled, by_means))
    assert error < most < error_of_means
