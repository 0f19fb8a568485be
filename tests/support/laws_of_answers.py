"""The laws about what a model answers: probabilities, missing cells, samples, explanations, forms of the boundary."""

from typing import Any

import numpy as np
import pytest
from cases import CATEGORIES, Case, Data, learn
from laws import log_joint
from scipy.special import logsumexp, softmax

from likely.families.categorical import CategoricalDensity
from likely.families.gaussian import DiagonalGaussian, FullGaussian
from likely.families.positive import ExponentialDensity, GammaDensity, PoissonDensity
from likely.families.words import BernoulliDensity, MultinomialDensity

_FAR = {
    "real": 1e200,
    "positive": 1e300,
    "waiting": 1e300,
    "count": 1e15,
    "word": 1e15,
    "binary": 1.0,
    "category": 99.0,
}


def _with_holes(case: Case, data: Data) -> np.ndarray:
    """Return the rows, some cells missing, and a row without any cell."""
    rng = np.random.default_rng(len(data.y))
    X = data.X.copy()
    X[rng.random(X.shape) < 0.25] = np.nan
    X[0] = np.nan
    return X


def _extremes(case: Case) -> np.ndarray:
    """Return rows as far out as the families allow."""
    X = np.array([[_FAR[kind] for kind in case.kinds]] * 3)
    for j, kind in enumerate(case.kinds):
        if kind == "real":
            X[1, j] *= -1
        X[2, j] = 1.0 if kind == "category" else np.nan
    return X


# Probabilities


def the_joint_sums_to_the_density(case: Case, data: Data) -> None:
    """p(x) is the sum of p(x, y) over the classes; scores that are no probabilities have no p(x)."""
    model = learn(case, data)
    if not case.density:
        with pytest.raises(ValueError, match="density"):
            model.log_density(case.table(data.X))
        return
    for X in (data.X, _with_holes(case, data)):
        want = logsumexp(log_joint(case, model, X), axis=1)
        np.testing.assert_allclose(model.log_density(case.table(X)), want, rtol=1e-13, atol=1e-13)


def posteriors_are_probabilities(case: Case, data: Data) -> None:
    """They sum to 1, are never NaN, follow from the joint, and the label is the likeliest."""
    model = learn(case, data)
    for X in (data.X, _with_holes(case, data), _extremes(case)):
        table = case.table(X)
        p, log_p = model.predict_proba(table), model.predict_log_proba(table)
        assert np.all((p >= 0) & (p <= 1))
        assert not np.isnan(log_p).any()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
        np.testing.assert_allclose(np.exp(log_p), p, rtol=1e-12, atol=1e-15)
        joint = log_joint(case, model, X)
        possible = np.isfinite(joint).any(axis=1)
        with np.errstate(invalid="ignore"):
            want = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        size = 1 + np.abs(np.where(np.isfinite(joint), joint, 0.0)).max(axis=1, keepdims=True)
        assert np.all(np.abs(p - want)[possible] <= 1e-14 * np.broadcast_to(size, p.shape)[possible])
        for x, answer in zip(X[~possible], p[~possible], strict=True):
            # Too far out for any density to be told from 0: what is known of the class is its weight, unless the
            # boundary is linear, whose side may still be told.
            answers = [model.priors_]
            if case.linear and all(kind == "real" for kind in case.kinds):
                theta, theta0 = model.linear_form()
                answers.append(softmax(theta @ x + theta0))
            assert any(np.allclose(answer, known, rtol=1e-12) for known in answers)
        best = p[np.arange(len(p)), np.searchsorted(model.classes_, model.predict(table))]
        np.testing.assert_array_equal(best, p.max(axis=1))


def a_missing_cell_is_summed_out(case: Case, data: Data) -> None:
    """p of a row with a missing cell is p of the row, summed or integrated over all that the cell might hold."""
    model = learn(case, data)
    x = data.X[1]
    joint = log_joint(case, model, x[None])
    assert np.isfinite(joint).all()
    for j, kind in enumerate(case.kinds):
        without = x.copy()
        without[j] = np.nan
        got = log_joint(case, model, without[None])[0]
        for c in range(len(got)):
            values, log_steps = _everything(kind, model, j, c)
            rows = np.tile(x, (len(values), 1))
            rows[:, j] = values
            want = logsumexp(log_joint(case, model, rows)[:, c] + log_steps)
            np.testing.assert_allclose(got[c], want, rtol=1e-10, err_msg=f"column {j}, class {c}")


def _everything(kind: str, model: Any, j: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what a cell may hold, and the logarithm of the weight of each value in the sum or integral."""
    density, at = _density_of(model, j)
    if density is None:  # ignored: any one value will do
        return np.array([0.5]), np.zeros(1)
    if kind == "word":  # a bag of words without a word that is not known is the bag without that word
        return np.zeros(1), np.zeros(1)
    if isinstance(density, BernoulliDensity):
        return (np.array([0.0, 1.0]) if density.threshold is None else np.array([0.0, 99.0])), np.zeros(2)
    if kind == "count":
        return np.arange(400.0), np.zeros(400)
    if kind == "category":
        return CATEGORIES, np.zeros(len(CATEGORIES))
    if kind == "real":
        column = density.column(at)
        mean, deviation = column.mean[c, 0], np.sqrt(column.variance[c, 0])
        values = mean + deviation * np.linspace(-30, 30, 6001)
        return values, np.full(6001, np.log(values[1] - values[0]))
    if isinstance(density, DiagonalGaussian):
        middle, deviation = density.mean[c, at], np.sqrt(density.variance[c, at])
    else:
        shape = density.shape[c, at] if isinstance(density, GammaDensity) else 1.0
        scale = 1 / density.rate[c, at] if isinstance(density, GammaDensity) else density.mean[c, at]
        middle, deviation = np.log(shape * scale), max(1 / shape, shape**-0.5)
    logs = np.linspace(middle - 60 * deviation, middle + 60 * deviation, 40_001)
    logs = logs[np.abs(logs) < 600]
    return np.exp(logs), logs + np.log(logs[1] - logs[0])  # dx = x d log x


def _density_of(model: Any, j: int) -> tuple[Any, int]:
    """Return the density of a column, and the column's place in it."""
    for part, density in zip(model.joint_.parts, model.joint_.densities, strict=True):
        if part.columns is None:
            return density, j
        if j in part.columns:
            return density, part.columns.index(j)
    return None, 0


# Samples


def _moments(density: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of every class and column; of the logarithm where the family is log-normal."""
    if isinstance(density, FullGaussian):
        variance = np.einsum("cii->ci", density.covariance)
        return density.mean, np.broadcast_to(variance, density.mean.shape)
    if isinstance(density, DiagonalGaussian):
        return density.mean, density.variance
    if isinstance(density, GammaDensity):
        return density.shape / density.rate, density.shape / density.rate**2
    if isinstance(density, ExponentialDensity):
        return density.mean, density.mean**2
    if isinstance(density, PoissonDensity):
        return density.rate, density.rate
    if isinstance(density, MultinomialDensity):  # of Poisson length, so that every word is Poisson
        rate = density.length[:, None] * np.exp(density.log_shares.T)
        return rate, rate
    if isinstance(density, BernoulliDensity):
        return density.yes, density.yes * density.no
    assert isinstance(density, CategoricalDensity)
    mean, square = (
        np.add.reduceat(density.shares * density.values**power, density.starts[:-1], axis=1) for power in (1, 2)
    )
    return mean, square - mean**2


def samples_have_the_moments_of_their_model(case: Case, data: Data) -> None:
    """Shares of the classes, means, variances and correlations of 60,000 samples, within five standard errors."""
    model = learn(case, data)
    n = 60_000
    X, y = model.sample(n, random_state=1)
    again, _ = model.sample(n, random_state=1)
    np.testing.assert_array_equal(X, again)
    share = np.array([(y == label).mean() for label in model.classes_])
    assert np.all(np.abs(share - model.priors_) <= 5 * np.sqrt(model.priors_ * (1 - model.priors_) / n))
    for part, density in zip(model.joint_.parts, model.joint_.densities, strict=True):
        columns = slice(None) if part.columns is None else part.columns
        mean, variance = _moments(density)
        for c, label in enumerate(model.classes_):
            x = X[y == label][:, columns]
            x = np.log(x) if getattr(density, "domain", "") == "log" else x
            t = x - mean[c]
            assert np.all(np.abs(t.mean(axis=0)) <= 5 * np.sqrt(variance[c] / len(x))), "the mean"
            error = np.sqrt(np.maximum((t**4).mean(axis=0) - variance[c] ** 2, 0) / len(x))
            assert np.all(np.abs((t**2).mean(axis=0) - variance[c]) <= 5 * error + 1e-12), "the variance"
            if isinstance(density, FullGaussian):
                covariance = density.covariance[c if len(density.covariance) > 1 else 0]
                error = np.sqrt((covariance**2 + np.outer(variance[c], variance[c])) / len(x))
                assert np.all(np.abs(t.T @ t / len(x) - covariance) <= 5 * error), "the covariance"


# Explanations and forms


def explanations_add_up(case: Case, data: Data) -> None:
    """What the cells say, and the base, add up to the log-odds of the two classes."""
    model = learn(case, data)
    for X in (data.X, _with_holes(case, data)):
        joint = log_joint(case, model, X)
        for label, against in ((None, None), (model.classes_[-1], model.classes_[0]), (None, model.classes_[0])):
            told = model.explain(case.table(X), label, against)
            one, other = (np.searchsorted(model.classes_, labels) for labels in (told.label, told.against))
            cells = told.cells.toarray() if case.sparse else told.cells
            assert cells.shape == X.shape
            assert not cells[np.isnan(X)].any(), "a missing cell says something"
            a, b = joint[np.arange(len(X)), one], joint[np.arange(len(X)), other]
            certain = np.isfinite(a) & np.isfinite(b)
            with np.errstate(invalid="ignore"):  # of two classes that are both impossible nothing is asked here
                got = told.log_odds
                size = 1 + np.abs(told.base) + np.abs(cells).sum(axis=1) + np.abs(a) + np.abs(b)
            assert np.all(np.abs(got[certain] - (a[certain] - b[certain])) <= 1e-12 * size[certain])
            assert np.all(got[np.isfinite(a) & np.isneginf(b)] == np.inf)


def forms_give_the_log_odds(case: Case, data: Data) -> None:
    """The linear and the quadratic form differ between classes as log p(x, y) does."""
    model = learn(case, data)
    X = np.nan_to_num(data.X, nan=1.0)
    joint = log_joint(case, model, X)

    def constants(c: np.ndarray) -> np.ndarray:
        return np.broadcast_to(c[None, :, None], (*joint.shape, 1))

    if case.quadratic:
        form = model.quadratic_form()
        assert not any(np.isnan(array).any() for array in form), "NaN in the quadratic form"
        squares = np.einsum("cij,ni,nj->ncij", form.A, X, X).reshape(*joint.shape, -1)
        _assert_log_odds(np.concatenate([squares, _products(form.b, X), constants(form.c)], axis=2), joint)
    try:
        form = model.linear_form()
    except ValueError:
        assert not case.linear, "no linear form though the classes are tied"
        return
    assert not any(np.isnan(array).any() for array in form), "NaN in the linear form"
    _assert_log_odds(np.concatenate([_products(form.theta, X), constants(form.theta0)], axis=2), joint)


def quadratic_boundaries_have_no_linear_form(case: Case, data: Data) -> None:
    """Where classes differ in more than their means, that is said."""
    model = learn(case, data)
    if not case.linear:
        with pytest.raises(ValueError, match="expected a boundary that is linear"):
            model.linear_form()
    if not case.quadratic:
        with pytest.raises(ValueError, match="expected a boundary quadratic"):
            model.quadratic_form()
    assert case.linear <= case.quadratic


def _products(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """θ_j x_j, with 0 · ∞ = 0: rows × classes × columns."""
    with np.errstate(invalid="ignore"):
        return np.where(X[:, None, :] == 0, 0.0, theta[None] * X[:, None, :])


def _assert_log_odds(terms: np.ndarray, joint: np.ndarray) -> None:
    """The terms of each row and class must sum to log p(x, y), but for a number that is the same in every class."""
    certain = np.isfinite(terms).all(axis=(0, 2)) & np.isfinite(joint).all(axis=0)
    terms, joint = terms[:, certain], joint[:, certain]
    if joint.shape[1] < 2:
        return
    size = np.abs(terms).sum(axis=2).max(axis=1) + np.abs(joint).max(axis=1) + 1
    scores = terms.sum(axis=2)
    wrong = (scores - scores[:, :1]) - (joint - joint[:, :1])
    assert np.all(np.abs(wrong) <= 1e-12 * size[:, None])
