"""Discriminants between linear and quadratic, full and diagonal: the corners are known, and the grid is its refits."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from likely.data.table import Block, Table
from likely.families import Gaussian
from likely.families.categorical import LeaveOneOut
from likely.families.moments import Moments
from likely.families.regularised import Regularised, log_densities, variances_of_all
from likely.statistics import Assignment, Statistics

X, labels = load_wine(return_X_y=True)
COUNTS = np.bincount(labels)


def collected(X, y, classes=3) -> Statistics:
    assignment = Assignment(np.arange(classes), y.astype(np.int32))
    return Regularised().collect(Block(Table(X), None), assignment)


def log_density(density, X):
    out = np.zeros((len(X), density.classes))
    density.add_log_density(Block(Table(X), None), out)
    return out


def log_odds(scores):
    return scores - scores[:, :1]


def test_linear_discriminant() -> None:
    density = Regularised(0.0, np.inf).solve(collected(X, labels))
    expected = Gaussian("full", tied=True).solve(collected(X, labels))
    np.testing.assert_allclose(density.covariance, expected.covariance, rtol=1e-12)
    np.testing.assert_allclose(density.mean, expected.mean, rtol=1e-14)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, labels)
    ours = log_density(density, X) + np.log(COUNTS / COUNTS.sum())
    np.testing.assert_allclose(log_odds(ours), log_odds(theirs.decision_function(X)), rtol=1e-6, atol=1e-6)


def test_quadratic_discriminant() -> None:
    density = Regularised(0.3, 0.0).solve(collected(X, labels))
    expected = Gaussian("full").solve(collected(X, labels))
    np.testing.assert_allclose(density.covariance, expected.covariance, rtol=1e-9)
    np.testing.assert_allclose(density.covariance[1], np.cov(X[labels == 1].T, bias=True), rtol=1e-9)


def test_independent_columns() -> None:
    density = Regularised(1.0, np.inf).solve(collected(X, labels))
    within = sum(np.var(X[labels == k], axis=0) * COUNTS[k] for k in range(3)) / len(X)
    np.testing.assert_allclose(density.covariance[0], np.diag(within), rtol=1e-12)


@pytest.mark.parametrize("strength", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("diagonal", [0.001, 0.6])
def test_the_formula(diagonal: float, strength: float) -> None:
    S = sum(np.cov(X[labels == k].T, bias=True) * COUNTS[k] for k in range(3)) / len(X)
    shared = (1 - diagonal) * S + diagonal * np.diag(np.diag(S))
    density = Regularised(diagonal, strength).solve(collected(X, labels))
    for k in range(3):
        rows = strength * X.shape[1]
        expected = (np.cov(X[labels == k].T, bias=True) * COUNTS[k] + rows * shared) / (COUNTS[k] + rows)
        np.testing.assert_allclose(density.covariance[k], expected, rtol=1e-9)
        np.testing.assert_allclose(density.factor[k] @ density.factor[k].T, expected, rtol=1e-9)


@pytest.mark.parametrize("case", ["wine", "wide", "rare", "constant", "offset"])
def test_the_grid_is_its_refits(case: str) -> None:
    generator = np.random.default_rng(0)
    rows, y = (X - X.mean(axis=0)) / X.std(axis=0), labels.copy()
    if case == "wide":
        rows = generator.standard_normal((40, 90)) + np.arange(40)[:, None] % 3
        y = np.arange(40) % 3
    elif case == "rare":
        y = np.where(np.arange(len(y)) == 5, 2, np.minimum(y, 1))
    elif case == "constant":
        rows = np.column_stack([rows, np.ones(len(y))])
    elif case == "offset":
        rows = rows + 1e4
    total, held = collected(rows, y), np.arange(len(y)) % 5 == 0
    others = total - collected(rows[held], y[held])
    of_all = variances_of_all(Moments.of(total))
    strengths = (np.inf, 5.0, 0.05)
    found = list(log_densities(Moments.of(others), rows[held], (0.001, 0.6), strengths, of_all))
    assert [pair[:2] for pair in found] == [(g, v) for g in (0.001, 0.6) for v in strengths]
    refit = collected(rows[~held], y[~held])
    for diagonal, strength, scores in found:
        expected = log_density(Regularised(diagonal, strength).solve(refit), rows[held])
        np.testing.assert_allclose(log_odds(scores), log_odds(expected), rtol=1e-5, atol=1e-5)


def test_order_of_rows_and_classes_does_not_matter() -> None:
    density = Regularised(0.2, 1.0).solve(collected(X, labels))
    order = np.random.default_rng(0).permutation(len(X))
    other = Regularised(0.2, 1.0).solve(collected(X[order], np.array([2, 0, 1])[labels[order]]))
    np.testing.assert_allclose(other.covariance[[2, 0, 1]], density.covariance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("strength", [0.05, 20.0, np.inf])
def test_a_class_without_rows_and_columns_without_variance(strength: float) -> None:
    rows = np.column_stack([X[:, :3], np.ones(len(X)), labels == 1, np.zeros(len(X))])
    density = Regularised(0.001, strength).solve(collected(rows, labels, classes=4))
    np.testing.assert_allclose(density.mean[3], rows.mean(axis=0), rtol=1e-9)
    assert np.isfinite(log_density(density, rows)).all()
    assert np.isfinite(density.sample(np.arange(4), np.random.default_rng(0))).all()


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="expected a diagonal share between 0 and 1, got 2"):
        Regularised(diagonal=2)
    with pytest.raises(ValueError, match="expected a strength of 0 or more, got -1"):
        Regularised(strength=-1)


def left_out(codes, y, alpha, classes):
    """Return the log-likelihood of rows left out one by one, refitting each time."""
    size, total = codes.max() + 1, 0.0
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        counts = np.zeros((classes, size))
        np.add.at(counts, (y[kept], codes[kept]), 1)
        p = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * size)
        theta = (counts + alpha * p) / (counts.sum(axis=1, keepdims=True) + alpha)
        total += np.log(theta[y[i], codes[i]])
    return total


@pytest.mark.parametrize("seed", range(4))
def test_smoothing_is_the_best_of_leaving_one_out(seed: int) -> None:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, 60)
    codes = np.where(generator.random(60) < [0, 0.2, 0.5, 0.9][seed], y, generator.integers(0, 5, 60))
    codes = np.unique(codes, return_inverse=True)[1]
    assignment = Assignment(np.arange(2), y.astype(np.int32))
    family = LeaveOneOut()
    shares = family.solve(family.collect(Block(Table(codes[:, None].astype(float)), None), assignment)).shares
    alpha = max(2.0 ** np.arange(-2, 11), key=lambda a: left_out(codes, y, a, 2))
    counts = np.zeros((2, codes.max() + 1))
    np.add.at(counts, (y, codes), 1)
    p = (counts.sum(axis=0) + 0.5) / (60 + 0.5 * counts.shape[1])
    np.testing.assert_allclose(shares, (counts + alpha * p) / (counts.sum(axis=1, keepdims=True) + alpha), rtol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
