"""Digits: variances at large offsets, posteriors of extreme log-likelihoods, densities, against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from likely import GaussianDiscriminant, NaiveBayes, native
from likely.data.table import read_table
from likely.families import Gamma, Gaussian

mp.dps = 50


# Variances at large offsets


def _exact_scatters(X: np.ndarray, y: np.ndarray) -> list[list[list[Fraction]]]:
    """Return Σ(x−μ)(x−μ)ᵀ of every class without rounding."""
    out = []
    for c in np.unique(y):
        rows = [[Fraction(float(cell)) for cell in row] for row in X[y == c]]
        mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        t = [[cell - m for cell, m in zip(row, mean, strict=True)] for row in rows]
        d = range(len(mean))
        out.append([[sum(row[i] * row[j] for row in t) for j in d] for i in d])
    return out


def _exact_covariances(X: np.ndarray, y: np.ndarray, kind: str, tied: bool) -> np.ndarray:
    scatters, n = _exact_scatters(X, y), np.bincount(y).tolist()
    d = range(X.shape[1])
    if tied:
        scatters = [[[sum(s[i][j] for s in scatters) for j in d] for i in d]] * len(n)
        n = [sum(n)] * len(n)
    if kind == "full":
        return np.array([[[float(s[i][j] / m) for j in d] for i in d] for s, m in zip(scatters, n, strict=True)])
    if kind == "diagonal":
        return np.array([[float(s[i][i] / m) for i in d] for s, m in zip(scatters, n, strict=True)])
    return np.array(
        [[float(sum(s[j][j] for j in d) / (m * len(d)))] * len(d) for s, m in zip(scatters, n, strict=True)]
    )


def _offset_data(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    offset = 1e7 if dtype is np.float64 else 1e4
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    scale = np.array([1.0, 3.0, 0.01])
    X = (rng.normal(size=(600, 3)) @ [[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1]] + y[:, None] + offset) * scale
    return X.astype(dtype), y


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", ["spherical", "diagonal", "full"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variance_at_an_offset(dtype, kind, tied, order):
    X, y = _offset_data(dtype)
    model = GaussianDiscriminant(kind, tied=tied, shrinkage=0.0).fit(np.asarray(X, order=order), y)
    want = _exact_covariances(X, y, kind, tied)
    got = np.broadcast_to(model.covariances_, want.shape)
    if kind == "full":  # a covariance near zero is measured by the deviations of its columns
        deviation = np.sqrt(np.einsum("cii->ci", want))
        assert np.all(np.abs(got - want) <= 1e-10 * deviation[:, :, None] * deviation[:, None, :])
    else:
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_variance_at_an_offset_of_naive_bayes_with_weights_and_batches(dtype):
    X, y = _offset_data(dtype)
    want = _exact_covariances(X, y, "diagonal", False)
    np.testing.assert_allclose(NaiveBayes().fit(X, y).joint_.densities[0].variance, want, rtol=1e-10)
    weighted = NaiveBayes().fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(weighted.joint_.densities[0].variance, want, rtol=1e-10)
    model = NaiveBayes()
    for first in range(0, len(X), 37):
        model.partial_fit(X[first : first + 37], y[first : first + 37])
    np.testing.assert_allclose(model.joint_.densities[0].variance, want, rtol=1e-10)


# Posteriors of extreme log-likelihoods


def _exact_posteriors(x: np.ndarray, weights: np.ndarray, mean: np.ndarray, covariances: list) -> list:
    """Return p(y | x) of one row under Gaussians, with 50 digits, from parameters taken as exact."""
    scores = []
    for weight, m, covariance in zip(weights, mean, covariances, strict=True):
        t = mp.matrix([mpf(float(a)) - mpf(float(b)) for a, b in zip(x, m, strict=True)])
        if covariance.ndim == 1:
            square = sum(t[i] ** 2 / mpf(float(v)) for i, v in enumerate(covariance))
            log_determinant = sum(mp.log(mpf(float(v))) for v in covariance)
        else:
            matrix = mp.matrix(covariance.tolist())
            square = (t.T * mp.lu_solve(matrix, t))[0]
            log_determinant = mp.log(mp.det(matrix))
        scores.append(mp.log(mpf(float(weight))) - (square + log_determinant + len(x) * mp.log(2 * mp.pi)) / 2)
    top = max(scores)
    total = sum(mp.exp(score - top) for score in scores)
    return [scores, [mp.exp(score - top) / total for score in scores]]


def _far_rows(size: float, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows of two close classes, and rows far from both where they are still in doubt."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 200)
    A = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    X = rng.normal(size=(400, d)) @ A
    X[200:] = X[:200] + 1e-3 * rng.normal(size=(200, d))  # nearly the same rows again
    directions = rng.normal(size=(30, d))
    far = directions / np.linalg.norm(directions, axis=1, keepdims=True) * np.sqrt(2 * size)
    return X, y, far @ A


MODELS = {
    "naive Bayes": lambda: NaiveBayes(),
    "full": lambda: GaussianDiscriminant(shrinkage=0.0),
    "full tied": lambda: GaussianDiscriminant(shrinkage=0.0, tied=True),
    "diagonal tied": lambda: GaussianDiscriminant("diagonal", tied=True),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("size", "tolerance"), [(1e3, 1e-12), (1e6, 1e-9)], ids=["-1e3", "-1e6"])
def test_posteriors_equal_those_of_50_digits(kind, size, tolerance):
    X, y, far = _far_rows(size, 6)
    if size > 1e5:  # classes must be closer still to be in doubt
        X[200:] = X[:200] + 1e-3 * (X[200:] - X[:200])
    model = MODELS[kind]().fit(X, y)
    density = model.joint_.densities[0]
    spread = density.covariance if kind.startswith("full") else density.variance
    covariances = [spread[c if len(spread) > 1 else 0] for c in (0, 1)]
    got = model.predict_proba(far)
    doubtful = 0
    for row, p in zip(far, got, strict=True):
        scores, want = _exact_posteriors(row, model.priors_, density.mean, covariances)
        assert size / 5 < -scores[0] < size * 5
        doubtful += 1e-6 < want[0] < 1 - 1e-6
        assert max(abs(mpf(float(a)) - b) for a, b in zip(p, want, strict=True)) <= tolerance
    assert doubtful >= 20
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-15)


def test_log_posteriors_keep_what_posteriors_round_away():
    model = NaiveBayes().fit([[0.0], [2.0], [100.0], [102.0]], [0, 0, 1, 1])
    log_p = model.predict_log_proba([[1.0]])[0]
    assert log_p[1] == pytest.approx(-0.5 * 100**2, rel=1e-14)
    assert model.predict_proba([[1.0]])[0].tolist() == [1.0, 0.0]


# Shapes and densities


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 7.5, 90.0, 2500.0, 9000.0, 1.1e4, 1e6])
def test_gamma_shape_solves_its_equation(shape):
    gap = mp.log(mpf(shape)) - mp.digamma(mpf(shape))
    assert native.gamma_shapes(np.array([float(gap)]))[0] == pytest.approx(shape, rel=1e-12)


@pytest.mark.parametrize("shape", [0.5, 2.0, 30.0, 1000.0, 1e5])
def test_gamma_fit_is_the_maximum_of_the_likelihood(shape):
    """Also where the deviation is small against the mean, as of years or of heights."""
    x = stats.gamma.rvs(shape, scale=2.0, size=400, random_state=3)
    model = NaiveBayes("gamma").fit(x[:, None], np.zeros(400, dtype=int))
    exact = [mpf(float(value)) for value in x]
    gap = mp.log(mp.fsum(exact) / 400) - mp.fsum(map(mp.log, exact)) / 400
    want = mp.findroot(lambda a: (mp.log(a) - mp.digamma(a)) / gap - 1, (1 / (2 * gap), 1 / gap), solver="anderson")
    density = model.joint_.densities[0]
    assert density.shape[0, 0] == pytest.approx(float(want), rel=1e-10)
    assert density.rate[0, 0] == pytest.approx(float(want / (mp.fsum(exact) / 400)), rel=1e-10)


def _split_in_two(model, X, y):
    return model.partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])


@pytest.mark.parametrize("deviations", [1.0, 1e2, 1e4])
def test_a_narrow_gamma_is_the_same_from_batches(deviations):
    """The mean is so many standard deviations above zero; batches must agree with one fit to 1e-12."""
    x = np.random.default_rng(0).gamma(deviations**2, 1.0, (500, 1))
    y = np.zeros(500, dtype=int)
    one, two = NaiveBayes("gamma").fit(x, y), _split_in_two(NaiveBayes("gamma"), x, y)
    np.testing.assert_allclose(two.joint_.densities[0].shape, one.joint_.densities[0].shape, rtol=1e-12)


@pytest.mark.parametrize("shape", [0.5, 2.0, 100.0, 1e4, 1e6])
def test_gamma_log_density_against_mpmath(shape):
    x = stats.gamma.rvs(shape, size=(50, 1), random_state=1)
    model = NaiveBayes(Gamma()).fit(x, np.zeros(50, dtype=int))
    a = mpf(float(model.joint_.densities[0].shape[0, 0]))
    b = a / (mp.fsum(mpf(float(value)) for value in x.ravel()) / 50)  # the mean is that of the rows
    for value, got in zip(x.ravel(), model.log_density(x), strict=True):
        v = mpf(float(value))
        want = a * mp.log(b) - mp.loggamma(a) + (a - 1) * mp.log(v) - b * v
        assert float(abs(mpf(float(got)) - want)) <= 1e-12 * max(1.0, abs(float(want)))


@pytest.mark.parametrize("rate", [3.0, 1e3, 1e5, 1e7])
def test_poisson_log_density_and_odds_against_mpmath(rate):
    """Two classes of large counts, a deviation apart."""
    step = np.sqrt(rate).round()
    x = np.array([[rate - step], [rate], [rate], [rate + step]])
    model = NaiveBayes("poisson").fit(x, [0, 0, 1, 1])
    rates = [mpf(float(value)) for value in model.joint_.densities[0].rate[:, 0]]
    for value, got in zip(x.ravel(), model.joint_.log_joint(read_table(x)), strict=True):
        v = mpf(float(value))
        want = [mp.log(0.5) + v * mp.log(r) - r - mp.loggamma(v + 1) for r in rates]
        for a, b in zip(got, want, strict=True):
            assert float(abs(mpf(float(a)) - b)) <= 1e-12 * max(1.0, abs(float(b)))


DENSITIES = {
    "gaussian": lambda x: mp.log(mp.npdf(x, mpf(1.5), mp.sqrt(mpf(0.25)))),
    "log-normal": lambda x: mp.log(mp.npdf(mp.log(x), mp.log(2) / 2, mp.log(2) / 2)) - mp.log(x),
    "exponential": lambda x: -x / mpf(1.5) - mp.log(mpf(1.5)),
    "poisson": lambda x: x * mp.log(mpf(1.5)) - mpf(1.5) - mp.loggamma(x + 1),
}


@pytest.mark.parametrize("family", DENSITIES)
@pytest.mark.parametrize("x", [1.0, 2.0, 3.0, 17.0, 100.0, 1e5])
def test_log_density_against_mpmath(family, x):
    """Of the rows 1 and 2: mean 1.5, variance 1/4, log deviation ½ log 2."""
    model = NaiveBayes(family).fit([[1.0], [2.0]], [0, 0])
    want = DENSITIES[family](mpf(x))
    assert model.log_density([[x]])[0] == pytest.approx(float(want), rel=1e-13, abs=1e-14)


def test_means_that_differ_in_their_last_digits_are_told_apart():
    """Two classes a deviation apart at an offset of 1e9 deviations: the odds are those without the offset."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 500)
    near = np.round((rng.normal(size=(1000, 2)) + y[:, None]) * 2**20) / 2**20  # so that adding 2³⁰ is exact
    for model in (NaiveBayes, lambda: NaiveBayes(Gaussian(tied=True)), lambda: GaussianDiscriminant(shrinkage=0.0)):
        plain, far = model().fit(near, y), model().fit(near + 2**30, y)
        np.testing.assert_allclose(far.predict_proba(near + 2**30), plain.predict_proba(near), atol=1e-6)
        assert np.mean(far.predict(near + 2**30) == plain.predict(near)) == 1.0


def test_log_density_of_a_word_counts_them_in_their_order():
    model = NaiveBayes("multinomial", smoothing=0.0).fit([[1, 3]], [0])
    assert model.joint_.log_joint(read_table([[2, 1]]))[0, 0] == pytest.approx(
        2 * np.log(0.25) + np.log(0.75), rel=1e-15
    )
