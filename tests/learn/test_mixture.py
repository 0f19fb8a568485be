"""Mixtures: expectation maximisation beside a plain one, its laws, holes, starts, selection and answers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import Mixture
from likely.data.table import Block, read_table
from likely.estimators.fitting import open_hidden
from likely.families import Bernoulli, Categorical, Exponential, Gamma, Gaussian, Poisson
from likely.joint import Joint, Part
from likely.learn.hidden import Hidden, em
from likely.learn.mixtures import MixtureTask, collected, restarted
from likely.learn.one_pass import collect
from likely.statistics import Assignment, Responsibilities

IRIS = load_iris(return_X_y=True)
STRUCTURES = [(covariance, tied) for covariance in ("spherical", "diagonal", "full") for tied in (False, True)]
UPSTREAM = {
    ("full", False): "full",
    ("full", True): "tied",
    ("diagonal", False): "diag",
    ("spherical", False): "spherical",
}


def groups(n=300, d=3, k=3, apart=2.0, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=n)
    X = rng.normal(scale=apart, size=(k, d))[codes] + rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * 0.7
    return X, codes.astype(np.int32)


def plain(X, start, k, covariance, tied, steps, weights):
    """Expectation maximisation, straight from the formulas: log-likelihoods, weights, means, covariances."""
    d = X.shape[1]
    shares, told = np.eye(k)[start], []
    for _ in range(steps + 1):
        r = shares * weights[:, None]
        count = r.sum(axis=0)
        mean = (r.T @ X) / count[:, None]
        spread = []
        for c in range(k):
            t = X - mean[c]
            spread.append((r[:, c, None] * t).T @ t)
        if tied:
            spread = [sum(spread) / count.sum()] * k
        else:
            spread = [s / m for s, m in zip(spread, count, strict=True)]
        if covariance != "full":
            spread = [np.diag(np.diag(s)) for s in spread]
        if covariance == "spherical":
            spread = [np.eye(d) * np.trace(s) / d for s in spread]
        z = np.column_stack([multivariate_normal(mean[c], spread[c]).logpdf(X) for c in range(k)])
        z += np.log(count / count.sum())
        told.append(float(weights @ logsumexp(z, axis=1)))
        shares = np.exp(z - logsumexp(z, axis=1, keepdims=True))
    return told, count / count.sum(), mean, np.array(spread)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("covariance", "tied"), STRUCTURES)
def test_steps_are_those_of_the_formulas(covariance, tied, weighted):
    X, codes = groups()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else np.ones(len(X))
    start = np.roll(codes, 40)
    told, shares, mean, spread = plain(X, start, 3, covariance, tied, 6, weights)
    model = Mixture(3, covariance=covariance, tied=tied, start=start, pseudo_rows=0.0, tolerance=0.0, max_iterations=6)
    with pytest.warns(UserWarning, match="settle within 6 steps"):
        model.fit(X, sample_weight=weights if weighted else None)
    assert model.log_likelihoods_ == pytest.approx(told, rel=1e-11)
    assert model.priors_ == pytest.approx(shares, rel=1e-9)
    assert model.means_ == pytest.approx(mean, rel=1e-8, abs=1e-9)
    density = model.joint_.densities[0]
    own = density.covariance if covariance == "full" else np.array([np.diag(v) for v in density.variance])
    assert np.broadcast_to(own, spread.shape) == pytest.approx(spread, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(("covariance", "tied"), UPSTREAM)
def test_iris_ends_where_scikit_learn_ends(covariance, tied):
    X, y = IRIS
    ours = Mixture(3, covariance=covariance, tied=tied, start=y, pseudo_rows=0.0, tolerance=1e-12).fit(X)
    theirs = GaussianMixture(3, covariance_type=UPSTREAM[covariance, tied], tol=1e-12, max_iter=2000, reg_covar=0.0)
    _, theirs.weights_init, theirs.means_init, spread = plain(X, y, 3, covariance, tied, 0, np.ones(150))
    precisions = np.linalg.inv(spread)
    theirs.precisions_init = {
        "full": precisions,
        "tied": precisions[0],
        "diag": np.einsum("cii->ci", precisions),
        "spherical": precisions[:, 0, 0],
    }[theirs.covariance_type]
    theirs.fit(X)
    assert ours.log_likelihood_ == pytest.approx(150 * theirs.score(X), abs=1e-5)
    assert ours.joint_.free_parameters() == theirs._n_parameters()
    assert ours.bic(X) == pytest.approx(theirs.bic(X), abs=1e-4)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), abs=1e-4)


@pytest.mark.parametrize("holes", [0.0, 0.25])
@pytest.mark.parametrize(("covariance", "tied"), STRUCTURES)
def test_no_step_lowers_the_likelihood(covariance, tied, holes):
    X, _ = groups(seed=3, apart=0.8)
    X[np.random.default_rng(0).random(X.shape) < holes] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = Mixture(3, covariance=covariance, tied=tied, start="assignment", pseudo_rows=0.0, tolerance=1e-10).fit(X)
    assert len(model.log_likelihoods_) > 3
    assert np.diff(model.log_likelihoods_).min() > -1e-9 * abs(model.log_likelihood_)


def test_no_step_lowers_the_likelihood_of_mixed_families():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=400)
    X = np.column_stack([rng.poisson([2, 7], (400, 2))[np.arange(400), codes], rng.gamma(2 + codes, 1.0, 400)])
    table, parts = read_table(X), (Part(Poisson(), [0]), Part(Gamma(), [1]))
    start = collect(table, Assignment(np.arange(2), rng.integers(2, size=400).astype(np.int32)), parts)
    found = em(Hidden(table), start, parts, tolerance=1e-9, most=500)
    assert found.converged
    assert np.diff(found.log_likelihoods).min() > -1e-9 * abs(found.log_likelihood)
    assert found.joint.free_parameters() == 1 + 2 * (1 + 2)


@pytest.mark.parametrize("tied", [False, True])
def test_holes_under_a_full_covariance_have_the_greatest_likelihood(tied):
    X, _ = groups(n=120, d=3, k=2, seed=5)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = Mixture(2, tied=tied, pseudo_rows=0.0, tolerance=1e-13, max_iterations=5000).fit(X)
    density, shares = model.joint_.densities[0], model.priors_

    def told(mean, factor):
        spread = factor @ np.swapaxes(factor, 1, 2)
        total = 0.0
        for row in X:
            there = ~np.isnan(row)
            each = [
                np.log(shares[c])
                + multivariate_normal(mean[c][there], spread[c if len(spread) > 1 else 0][np.ix_(there, there)]).logpdf(
                    row[there]
                )
                for c in range(2)
            ]
            total += logsumexp(each)
        return total

    best = told(density.mean, density.factor)
    assert best == pytest.approx(model.log_likelihood_, rel=1e-10)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=density.mean.shape), np.tril(rng.normal(size=density.factor.shape))
        up, down = (told(density.mean + h * step[0], density.factor + h * step[1]) for h in (1e-4, -1e-4))
        assert up < best + 1e-9
        assert down < best + 1e-9
        assert abs(up - down) / 2e-4 < 0.05  # flat: the slope is next to nothing


def test_a_weight_of_two_is_a_row_twice():
    X, codes = groups(n=90)
    weights = np.arange(90) % 3.0
    twice, start = np.repeat(X, weights.astype(int), axis=0), np.repeat(codes, weights.astype(int))
    options = {"tolerance": 1e-12, "max_iterations": 3000}
    one = Mixture(3, start=codes, **options).fit(X, sample_weight=weights)
    other = Mixture(3, start=start, **options).fit(twice)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-9)
    assert one.means_ == pytest.approx(other.means_, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("start", ["k-means++", "assignment"])
@pytest.mark.parametrize("kind", ["matrix", "holes", "table", "sparse"])
def test_a_weight_of_two_is_a_row_twice_where_the_first_groups_are_drawn(kind, start):
    rng = np.random.default_rng(3)
    X, codes = groups(n=120, apart=4.0)
    weights = rng.integers(0, 4, 120)
    if kind == "holes":
        X[rng.random(X.shape) < 0.1] = np.nan
    elif kind == "table":
        X = pd.DataFrame(X, columns=["a", "b", "c"])
        X["name"] = np.array(["x", "y", "z"])[codes]
        X["whole"] = codes + 1
    elif kind == "sparse":
        X = csr_matrix(rng.poisson(1.0, (120, 8)) * (1 + codes[:, None]))
    take = X.iloc.__getitem__ if kind == "table" else X.__getitem__
    mixed = rng.permutation(120)
    options = {"start": start, "n_starts": 3, "tolerance": 1e-9}
    one = Mixture(3, **options).fit(take(mixed), sample_weight=weights[mixed])
    other = Mixture(3, **options).fit(take(np.repeat(np.arange(120), weights)))
    assert one.n_iterations_ == other.n_iterations_
    assert one.predict_proba(X) == pytest.approx(other.predict_proba(X), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("covariance", "tied"), STRUCTURES)
@pytest.mark.parametrize("kind", ["matrix", "missing cells", "table"])
def test_a_weight_of_two_is_a_row_twice_where_components_are_restarted(kind, covariance, tied):
    restarted = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.vstack([rng.normal(size=(20, 2)) + rng.integers(0, 3, (20, 1)) * 4, [[1e6, 1e6]]])
        weights = np.append(rng.integers(0, 9, 20), 2)
        if kind == "missing cells":
            X[:20][rng.random((20, 2)) < 0.15] = np.nan
        elif kind == "table":
            X = pd.DataFrame(X, columns=["a", "b"])
            X["name"], X["kept"] = rng.choice(["x", "y", "z"], 21), rng.random(21) < 0.5
        take = X.iloc.__getitem__ if kind == "table" else X.__getitem__
        model = Mixture(4, covariance=covariance, tied=tied, n_starts=2, pseudo_rows=1e-4, random_state=seed)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            one = clone(model).fit(X, sample_weight=weights)
            restarted += any("restarted" in str(each.message) for each in said)
            other = clone(model).fit(take(np.repeat(np.arange(21), weights)[::-1]))
        assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-9)
        assert one.predict_proba(X) == pytest.approx(other.predict_proba(X), rel=1e-5, abs=1e-8)
    assert tied or restarted == 4


def test_a_weight_counts_as_so_many_rows_where_they_must_be_as_many_as_components():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of the components has no row
        one = Mixture(2).fit([[1.0]], sample_weight=[2.0])
        other = Mixture(2).fit([[1.0], [1.0]])
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_)
    with pytest.raises(ValueError, match="got 1 rows for 2 components"):
        Mixture(2).fit([[1.0], [2.0]], sample_weight=[1.0, 0.0])


def test_rows_may_be_fewer_than_columns():
    X = np.random.default_rng(0).normal(size=(12, 20))
    model = Mixture(2).fit(np.vstack([X, X + 9]))
    assert np.bincount(model.predict(np.vstack([X, X + 9]))).tolist() == [12, 12]


def test_more_components_than_different_rows():
    with pytest.warns(UserWarning, match="components became empty: 3 restarted at the rows explained worst, 1 of 3"):
        model = Mixture(3, covariance="diagonal").fit([[1.0], [1.0], [4.0], [4.0]])
    assert set(model.means_.ravel().round(3).tolist()) == {1.0, 4.0}


@pytest.mark.parametrize(("dtype", "offset", "close"), [(np.float64, 1e7, 1e-6), (np.float32, 1e4, 1e-3)])
@pytest.mark.parametrize(("covariance", "tied"), [("full", False), ("full", True), ("diagonal", False)])
def test_an_offset_costs_nothing(dtype, offset, close, covariance, tied):
    X, _ = groups(n=400, seed=2)
    moved = (X + offset).astype(dtype)
    centred = moved.astype(np.float64) - offset
    one = Mixture(3, covariance=covariance, tied=tied).fit(moved)
    other = Mixture(3, covariance=covariance, tied=tied).fit(centred)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=close)
    assert one.means_ - offset == pytest.approx(other.means_, abs=close)
    assert np.array_equal(one.predict(moved), other.predict(centred))


@pytest.mark.parametrize(("covariance", "tied"), [("full", False), ("full", True), ("diagonal", False)])
def test_threads_do_not_change_bits(covariance, tied):
    X, _ = groups(n=30_000, d=5)
    found = []
    for threads in (1, 2, 5):
        likely.set_threads(threads)
        model = Mixture(3, covariance=covariance, tied=tied, max_iterations=50, tolerance=1e-3).fit(X)
        found.append([model.log_likelihood_, *model.means_.ravel()])
    likely.set_threads(None)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("apart", [1.0, 1e2, 1e5])
def test_tied_components_far_apart_keep_the_digits_of_their_covariance(apart):
    """Components that no row is shared between: the covariance is that within their rows."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=600)
    noise = rng.normal(size=(600, 3)) @ rng.normal(size=(3, 3))
    X = 40.0 * apart * np.eye(3)[codes] + noise
    model = Mixture(3, tied=True, start=codes, pseudo_rows=0.0).fit(X)
    t = X - np.array([X[codes == c].mean(axis=0) for c in range(3)])[codes]
    assert model.joint_.densities[0].covariance[0] == pytest.approx(t.T @ t / 600, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [3, 12])
def test_one_component_is_shrunk_to_independent_columns_as_far_as_oas_says(d, weighted):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(40, d)) @ rng.normal(size=(d, d)) + 5
    w = rng.integers(0, 3, 40).astype(float) if weighted else np.ones(40)
    n, mean = w.sum(), w @ X / w.sum()
    S = (X - mean).T @ (w[:, None] * (X - mean)) / n
    R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    square = (R**2).mean()  # of Chen, Wiesel, Eldar and Hero (2010), of columns with variance 1
    share = min((square + 1) / ((n + 1) * (square - 1 / d)), 0.999)
    model = Mixture(1).fit(X, sample_weight=w)
    assert model.means_[0] == pytest.approx(mean)
    assert model.joint_.densities[0].covariance[0] == pytest.approx((1 - share) * S + share * np.diag(np.diag(S)))


@pytest.mark.parametrize(("covariance", "tied"), STRUCTURES)
def test_components_are_the_mode_of_the_posterior(covariance, tied):
    """The mode of an inverse-Wishart prior of d + 2 rows, or 3 where columns are independent, from the formulas."""
    X, codes = groups(n=60, d=4, apart=30.0)  # no row is shared
    k, d = 3, 4
    model = Mixture(k, covariance=covariance, tied=tied, start=codes).fit(X)
    n, scatter = np.bincount(codes), []
    for c in range(k):
        t = X[codes == c] - X[codes == c].mean(axis=0)
        scatter.append(t.T @ t)
    prior = 0.9 * sum(scatter) / 60 + 0.1 * np.cov(X.T, bias=True) / k ** (2 / d)
    rows = d + 2 if covariance == "full" else 3
    if covariance == "full":
        square = (prior**2 / np.outer(np.diag(prior), np.diag(prior))).mean()
        share = min((square + 1) / ((60 + 1) * (square - 1 / d)), 0.999)
        prior = (1 - share) * prior + share * np.diag(np.diag(prior))
    if tied:
        expected = [(sum(scatter) + rows * prior) / (60 + rows)] * k
    else:
        expected = [(s + rows * prior) / (m + rows) for s, m in zip(scatter, n, strict=True)]
    if covariance != "full":
        expected = [np.diag(e) for e in expected]
    if covariance == "spherical":
        expected = [np.full(d, e.mean()) for e in expected]
    density = model.joint_.densities[0]
    found = density.covariance if covariance == "full" else density.variance
    assert np.broadcast_to(found, np.shape(expected)) == pytest.approx(np.array(expected), rel=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("covariance", "tied"), STRUCTURES)
@pytest.mark.parametrize("pseudo_rows", ["auto", 20.0])
def test_no_step_lowers_the_posterior(pseudo_rows, covariance, tied, missing):
    rng = np.random.default_rng(1)
    X, codes = groups(n=70, d=4, apart=1.0)
    X[rng.random(X.shape) < missing] = np.nan
    table = pd.DataFrame(X, columns=list("abcd"))
    table["name"], table["kept"] = np.array(["x", "y", "z"])[codes], rng.random(70) < 0.3
    options = {"covariance": covariance, "tied": tied, "pseudo_rows": pseudo_rows, "start": "assignment"}
    model = Mixture(3, tolerance=0.1, **options).fit(table)
    parts, rows = model.joint_.parts, open_hidden(model.plan(), table, None)[1]
    joint = Joint.solve(
        collected(rows.table, Assignment(np.arange(3), np.roll(codes, 9)), parts), parts, rows.table.columns
    )
    reached = []
    for _ in range(30):
        step = rows.expect(joint)
        reached.append(step.log_likelihood + joint.log_prior())
        joint = Joint.solve(step.statistics, parts, rows.table.columns)
    assert reached[-1] > reached[0] + 1
    assert np.diff(reached).min() > -1e-9 * abs(reached[-1])


@pytest.mark.parametrize(("n", "d"), [(60, 30), (20, 10), (100, 60), (40, 20)])
@pytest.mark.parametrize("correlated", [False, True])
def test_new_rows_of_a_small_table_are_imputed_no_worse_than_by_the_column_mean(n, d, correlated):
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 200, d))
        if correlated:
            X += rng.normal(size=(n + 200, 3)) @ rng.normal(size=(3, d))
        new, hidden = X[n:], rng.random((200, d)) < 0.2
        filled = Mixture(1).fit(X[:n]).impute(np.where(hidden, np.nan, new))
        means = np.broadcast_to(X[:n].mean(axis=0), new.shape)
        errors.append([np.mean((each - new)[hidden] ** 2) for each in (filled, means)])
    ours, theirs = np.mean(errors, axis=0)
    assert ours < (0.9 if correlated else 1.01) * theirs


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("data", [load_wine, load_breast_cancer])
def test_the_prior_predicts_new_rows_better_than_the_greatest_likelihood(data, covariance):
    X = data().data
    gains = []
    for seed in range(4):
        X = X[np.random.default_rng(seed).permutation(len(X))]
        models = [Mixture(3, covariance=covariance, pseudo_rows=rows).fit(X[:60]) for rows in ("auto", 1e-4)]
        gains.append(models[0].score(X[60:]) - models[1].score(X[60:]))
    assert min(gains) > 0


@pytest.mark.parametrize("pseudo_rows", ["auto", 0.0])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("constant", [0.0, 1e6 + 0.1])
def test_a_constant_column_with_missing_cells_says_nothing(constant, k, pseudo_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + np.repeat([[0.0], [6.0]], 150, axis=0)
    X[:, 2] = constant
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X[:, :2]).all(axis=1)]
    options = {"pseudo_rows": pseudo_rows, "random_state": 0}
    model, without = Mixture(k, **options).fit(X), Mixture(k, **options).fit(X[:, :2])
    assert model.converged_
    filled = model.impute(X)
    assert not np.isnan(filled).any()
    assert filled[:, 2] == pytest.approx(constant)
    if pseudo_rows == 0:  # the prior knows of the third column
        assert model.predict_proba(X) == pytest.approx(without.predict_proba(X[:, :2]), abs=1e-3)
    assert np.isfinite(model.log_density(X)).all()


def test_no_component_shrinks_to_a_point():
    X = np.vstack([np.random.default_rng(0).normal(size=(100, 2)), [[50.0, 50.0]]])
    model = Mixture(2).fit(X)
    assert np.isfinite(model.log_likelihood_)
    assert np.linalg.eigvalsh(model.joint_.densities[0].covariance).min() > 1e-5
    same = Mixture(2).fit(np.vstack([X, np.repeat([[50.0, 50.0]], 30, axis=0)]))
    assert np.isfinite(same.log_likelihood_)


def test_an_empty_component_is_taken_out_and_said_so():
    X, codes = groups(n=60, k=2)
    table, parts = read_table(X), (Part(Gaussian("full", pseudo_rows=1e-4), None),)
    start = collect(table, Assignment(np.arange(3), codes), parts)  # the third has no row
    found = em(Hidden(table), start, parts, tolerance=1e-9, most=100)
    assert found.removed == 1
    assert found.joint.classes.tolist() == [0, 1]


@pytest.mark.parametrize("holes", [0.0, 0.1])
@pytest.mark.parametrize("covariance", ["full", "spherical"])
def test_an_empty_component_is_restarted_where_rows_are_explained_worst(covariance, holes):
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0.0, 0], [9, 0], [0, 40]], 100, axis=0)
    X[np.random.default_rng(1).random(X.shape) < holes] = np.nan
    rows = Hidden(read_table(X))
    parts = (Part(Gaussian(covariance, pseudo_rows=1e-4, uncorrelated=True), None),)
    task = MixtureTask(parts, 3, None, 1e-9, 1000)
    start = np.repeat([0, 1, 1], 100).astype(np.int32)
    first = collected(rows.table, Assignment(np.arange(3), start), parts)  # the third has no row
    options = {"tolerance": task.tolerance, "most": task.most}
    without = em(rows, first, parts, **options)
    found = em(
        rows, first, parts, **options, restart=lambda statistics, joint: restarted(rows, task, statistics, joint)
    )
    assert (found.removed, found.restarted, without.removed) == (0, 1, 1)
    assert found.joint.weights == pytest.approx(np.full(3, 1 / 3), abs=0.02)
    assert found.log_likelihood > without.log_likelihood + 100
    assert np.diff(found.log_likelihoods[1:]).min() > -1e-9 * abs(found.log_likelihood)


def test_known_classes_stay():
    X, codes = groups(n=200, k=2, apart=3.0)
    known = np.where(np.arange(200) < 20, codes, -1).astype(np.int32)
    table, parts = read_table(X), (Part(Gaussian("full"), None),)
    start = collect(table, Assignment(np.arange(2), known), parts)
    found = em(Hidden(table, known), start, parts, tolerance=1e-10, most=500)
    assert np.diff(found.log_likelihoods).min() > -1e-9 * abs(found.log_likelihood)
    every = Hidden(table, codes).expect(Joint.solve(start, parts, table.columns))
    assert every.statistics.weights.sums["weight"].tolist() == np.bincount(codes).tolist()


@pytest.mark.parametrize(
    "family", [Categorical(), Bernoulli(), Poisson(), Exponential(), Gamma()], ids=lambda family: family.name
)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_shared_are_collected_as_by_the_share_of_each_class(family, weighted):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (200, 3)) if isinstance(family, Bernoulli) else rng.integers(1, 6, (200, 3))
    block = Block(read_table(np.where(rng.random((200, 3)) < 0.1, np.nan, x)), [0, 2])
    shares = rng.dirichlet(np.ones(3), 200)
    r = Responsibilities(np.arange(3), shares, rng.random(200) if weighted else None)
    each = [family.collect(block, one) for one in r.each()]
    density = family.solve(each[0] + each[1] + each[2])
    found, wanted = np.zeros((200, 3)), np.zeros((200, 3))
    family.solve(family.collect(block, r, density)).add_log_density(block, found)
    density.add_log_density(block, wanted)
    assert found == pytest.approx(wanted, rel=1e-12)


def test_tables_of_mixed_columns():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=500)
    frame = pd.DataFrame(
        {
            "size": rng.normal(codes * 4.0),
            "weight": rng.normal(codes * 4.0),
            "colour": np.array(["red", "green", "blue"])[np.where(rng.random(500) < 0.8, codes, 2)],
            "kept": rng.random(500) < np.where(codes, 0.9, 0.2),
        }
    )
    frame.loc[rng.random(500) < 0.1, "size"] = np.nan
    frame.loc[rng.random(500) < 0.1, "colour"] = None
    model = Mixture(2).fit(frame)
    right = np.mean(model.predict(frame) == codes)
    assert max(right, 1 - right) > 0.97
    assert np.isfinite(model.log_density(frame)).all()
    filled = model.impute(frame)
    assert not filled.isna().any().any()
    drawn, places = model.sample(50, random_state=0)
    assert len(drawn["colour"]) == 50
    assert set(places.tolist()) <= {0, 1}
    assert "size" in str(model)
    explained = model.explain(frame.head(2))
    assert len(explained.classes) == 2 if hasattr(explained, "classes") else explained is not None


def test_sparse_counts():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    X = rng.multinomial(30, [0.4, 0.3, 0.2, 0.1], 300) * (codes == 0)[:, None]
    X += rng.multinomial(30, [0.1, 0.1, 0.2, 0.6], 300) * (codes == 1)[:, None]
    model = Mixture(2, start="assignment", n_starts=3).fit(csr_matrix(X))
    right = np.mean(model.predict(csr_matrix(X)) == codes)
    assert max(right, 1 - right) > 0.99
    assert len(model.starts_) == 3
    assert model.log_likelihood_ == pytest.approx(max(start.log_likelihood for start in model.starts_), rel=1e-9)


def test_select_finds_the_structure():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) + np.repeat([[0, 0], [8, 0], [0, 8]], 200, axis=0)
    found = Mixture.select(X, range(1, 6))
    assert (found.best.n_components, found.best.covariance, found.best.tied) == (3, "spherical", True)
    assert {(one.covariance, one.tied) for one in found.table} == set(STRUCTURES)
    assert {(one.covariance, one.tied) for one in found.table if one.n_components == 3} == set(STRUCTURES)
    assert [one.bic for one in found.table] == sorted(one.bic for one in found.table)
    assert found.table[0].icl >= found.table[0].bic
    with pytest.raises(ValueError, match="expected by='bic'"):
        Mixture.select(X, [1], by="dic")


@pytest.mark.parametrize("kind", ["numbers", "categories", "yes and no"])
def test_pure_noise_has_one_group(kind):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        if kind == "numbers":
            X = rng.normal(size=(200, 4))
        elif kind == "categories":
            X = pd.DataFrame(rng.choice(["a", "b", "c"], (200, 4)), columns=list("wxyz"))
        else:
            X = pd.DataFrame(rng.random((200, 4)) < 0.4, columns=list("wxyz"))
        found = Mixture.select(X, range(1, 5))
        assert found.best.n_components == 1
        assert max(one.n_components for one in found.table) == 3  # two that were worse were enough


def test_structures_are_the_same_without_columns_of_numbers():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    right = np.where(rng.random((300, 5)) < 0.9, codes[:, None], 1 - codes[:, None])
    found = Mixture.select(pd.DataFrame(np.array(["no", "yes"])[right], columns=list("abcde")), range(1, 4))
    assert found.best.n_components == 2
    assert len({(one.n_components, round(one.bic, 9)) for one in found.table}) == 3
    assert len(found.table) == 3 * 6


def test_select_chooses_by_the_greatest_likelihood_and_returns_a_mixture_with_its_prior():
    """2 components of full covariances: as R's mclust chooses for iris."""
    X = IRIS[0]
    found = Mixture.select(X, range(1, 6))
    assert (found.best.n_components, found.best.covariance, found.best.tied) == (2, "full", False)
    assert found.table[0].bic == pytest.approx(574.0, abs=0.3)
    alone = Mixture(2).fit(X)
    assert np.array_equal(found.best.predict_proba(X), alone.predict_proba(X))
    assert found.best.log_likelihood_ < found.table[0].log_likelihood


def test_a_file_gives_the_model_back(tmp_path):
    X, _ = groups()
    X[0, 0] = np.nan
    model = Mixture(3).fit(X)
    model.save(tmp_path / "groups.likely")
    same = likely.load(tmp_path / "groups.likely")
    assert np.array_equal(same.predict_proba(X), model.predict_proba(X))
    assert repr(same) == repr(model)


@pytest.mark.filterwarnings("ignore:Estimator Mixture does not inherit")
def test_check_estimator():
    for result in check_estimator(Mixture(), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or "array_api" in str(result["exception"]), result


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "expected n_components as a whole number of 1 or more, got 0"),
        ({"n_components": 400}, "got 300 rows for 400 components"),
        ({"n_starts": 0}, "expected n_starts"),
        ({"tolerance": -1.0}, "expected tolerance of 0 or more"),
        ({"start": "rows"}, "expected start among"),
        ({"start": np.zeros(300, dtype=int)}, "each used"),
        ({"covariance": "round"}, "expected covariance among"),
        ({"pseudo_rows": -1}, "expected pseudo_rows='auto', or a number of 0 or more, got -1"),
        ({"pseudo_rows": "many"}, "expected pseudo_rows='auto', or a number of 0 or more, got 'many'"),
    ],
)
def test_what_does_not_fit_is_said(parameters, message):
    X, _ = groups()
    with pytest.raises(ValueError, match=message):
        Mixture(**{"n_components": 2, **parameters}).fit(X)


def test_one_row_and_rows_that_are_all_alike():
    assert Mixture(1).fit([[1.0, 2.0]]).predict([[0.0, 0.0]]).tolist() == [0]
    assert np.isfinite(Mixture(1, covariance="diagonal").fit([[1.0, 2.0]] * 5).log_likelihood_)


@pytest.mark.parametrize("covariance", ["diagonal", "spherical"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("partly", [False, True])
def test_an_em_step_in_one_pass_is_scoring_expecting_and_collecting(
    covariance: str, kind: type, share_missing: float, partly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(1100, 5)) + 1e5 + 2 * rng.integers(3, size=(1100, 1))).astype(kind)
    X[rng.random(X.shape) < share_missing] = np.nan
    weights = rng.integers(0, 3, size=1100) / 2 if partly else None

    def fitted() -> Mixture:
        model = Mixture(3, covariance=covariance, max_iterations=8, tolerance=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return model.fit(X, sample_weight=weights)

    in_one_pass = fitted()
    monkeypatch.setattr(Joint, "em_step", lambda *_: None)
    in_three = fitted()
    assert in_one_pass.log_likelihood_ == pytest.approx(in_three.log_likelihood_, rel=1e-10)
    np.testing.assert_allclose(in_one_pass.predict_proba(X), in_three.predict_proba(X), atol=1e-6)
    for one, three in zip(in_one_pass.joint_.densities, in_three.joint_.densities, strict=True):
        np.testing.assert_allclose(one.mean, three.mean, rtol=1e-9)


def test_what_overflows_in_one_pass_is_still_refused_or_fitted_in_three() -> None:
    X = np.array([[1e200], [-1e200], [1.0], [2.0]])
    with pytest.raises(ValueError, match="expected"):
        Mixture(1, covariance="diagonal").fit(X)


def test_dates_make_no_groups_of_years():
    rng = np.random.default_rng(0)
    days = pd.to_timedelta(rng.integers(0, 3 * 365, 300), unit="D")
    frame = pd.DataFrame({"height": rng.normal(170, 10, 300), "visit": pd.Timestamp("2021-01-01") + days})
    assert Mixture.select(frame, range(1, 5)).best.n_components == 1
    drawn = Mixture(1).fit(frame).sample(500, random_state=0)[0].to_pandas()
    assert set(drawn.visit.dt.year) == {2021, 2022, 2023}
