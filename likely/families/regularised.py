"""Regularised discriminant analysis (Friedman, 1989): from quadratic to linear, from full to diagonal.

With S the covariance within classes, Σ_γ = (1−γ) S + γ diag S, and the covariance of class k is
(scatter_k + νd Σ_γ) / (n_k + νd) for d columns: νd imagined rows that vary like all classes together.
γ = 0, ν = ∞ is the linear discriminant, γ = 1, ν = ∞ one of independent columns, ν = 0 the quadratic one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from likely.data.table import Block
from likely.families.base import Family
from likely.families.gaussian import FullGaussian, Gaussian
from likely.families.moments import Moments
from likely.statistics import Array, Assignment, Statistics

# A direction in which correlated columns vary less is one in which they do not: what is left is rounding.
_COLLINEAR = 1e-12


_FULL = Gaussian(covariance="full")


@dataclass(frozen=True)
class Regularised(Family):
    """A Gaussian in every class, whose covariance is pulled to a shared one, and that one to a diagonal.

    Examples
    --------
    >>> from likely.data.table import Table
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 0.0], [7.0, 8.0], [9.0, 9.0]])
    >>> rows = Assignment(np.array(["a", "b"]), np.array([0, 0, 0, 1, 1], dtype=np.int32))
    >>> family = Regularised(diagonal=0.2, strength=1.0)
    >>> family.solve(family.collect(Block(Table(X), None), rows)).mean
    array([[2. , 1. ],
           [8. , 8.5]])
    """

    diagonal: float = 0.001
    """γ, from 0 to 1"""
    strength: float = np.inf
    """ν, from 0 to ∞"""

    name = "regularised discriminant"
    expects = Gaussian.expects

    def __post_init__(self) -> None:
        if not 0 <= self.diagonal <= 1:
            raise ValueError(f"expected a diagonal share between 0 and 1, got {self.diagonal!r}")
        if not self.strength >= 0:
            raise ValueError(f"expected a strength of 0 or more, got {self.strength!r}")

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        cells = block.dense()
        if np.isnan(cells.sum()):  # which takes no room, as to ask every cell would
            # Expected sums would not add up: a cell that is missing is learned as the mean of features, which is 0.
            filled = np.nan_to_num(cells, nan=0.0, posinf=np.inf, neginf=-np.inf)
            block = block._replace(table=replace(block.table, cells=filled))
        return _FULL._collect(block, assignment)

    def solve(self, statistics: Statistics) -> FullGaussian:
        """Return a Gaussian density for every class."""
        moments = known(Moments.of(statistics))
        shared = shared_covariance(moments, self.diagonal, variances_of_all(moments))
        covariances = shared[None]
        if np.isfinite(self.strength):
            rows = self.strength * len(shared)
            total = np.maximum(moments.n + rows, np.finfo(float).tiny)
            covariances = (moments.scatter + rows * shared) / total[:, :, None]
        return FullGaussian(moments.mean, covariances, np.asarray(np.linalg.cholesky(covariances)))


def known(moments: Moments) -> Moments:
    """Return moments in which a class without rows has the mean of all rows."""
    return moments if moments.n.all() else moments.filled(moments.pooled)


def variances_of_all(moments: Moments) -> Array:
    """Return the variance of every column over all rows, whatever their class; 1 if it never varies."""
    variances = np.diagonal(moments.pooled.scatter[0]) / max(float(moments.n.sum()), 1.0)
    # What is left of a column that no longer varies is rounding, of numbers as large as its mean.
    rounding = _COLLINEAR * (1.0 + moments.pooled.mean[0] ** 2)
    return np.where(variances > rounding, variances, 1.0)


def shared_covariance(moments: Moments, diagonal: float, of_all: Array) -> Array:
    """Return Σ_γ. A column that hardly varies within classes varies like one row that is drawn from ``of_all``."""
    n = max(float(moments.n.sum()), 1.0)
    within = moments.scatter.sum(axis=0) / n
    shared = (1 - diagonal) * within
    shared[np.diag_indices_from(shared)] = np.maximum(np.diagonal(within), of_all / n)
    return np.asarray(shared)


def log_densities(
    moments: Moments, rows: Array, diagonals: tuple[float, ...], strengths: tuple[float, ...], of_all: Array
) -> Iterator[tuple[float, float, Array]]:
    """Score rows under all pairs of γ and ν: γ, ν and log densities, rows × classes, up to a term classes share."""
    moments = known(moments)
    finite = np.array([strength for strength in strengths if np.isfinite(strength)])
    for diagonal in diagonals:
        shared = shared_covariance(moments, diagonal, of_all)
        if len(finite) < len(strengths):
            yield diagonal, np.inf, _linear_scores(moments.mean, shared, rows)
        if len(finite):
            scores = _quadratic_scores(moments, shared, finite[:, None], rows)
            yield from ((diagonal, *pair) for pair in zip(finite.tolist(), scores, strict=True))


def _linear_scores(means: Array, shared: Array, rows: Array) -> Array:
    """Return x·θ_k + θ₀ of every class, whose differences are those of log densities with one covariance."""
    # About their middle, centres are near each other and their squares lose no digits. In units in which every column
    # has the variance 1, no column's digits are lost to another's.
    middle, deviations = means.mean(axis=0), np.sqrt(np.diagonal(shared))
    centres = (means - middle) / deviations
    theta = np.linalg.solve(shared / np.outer(deviations, deviations), centres.T)
    offset = (centres + 2 * middle / deviations) * theta.T
    return np.asarray(rows @ (theta / deviations[:, None]) - 0.5 * offset.sum(axis=1))


def _quadratic_scores(moments: Moments, shared: Array, strengths: Array, rows: Array) -> Array:
    """Return log densities, strengths × rows × classes.

    The eigenvectors of a class's scatter, after whitening by Σ_γ, are those of its covariance for every ν: the rows
    are rotated once for all of them.
    """
    n, means, d = moments.n[:, 0], moments.mean, len(shared)
    whitener = np.linalg.inv(np.linalg.cholesky(shared)).T
    scores = np.empty((len(strengths), len(rows), len(means)))
    for k in range(len(means)):
        values, vectors = np.linalg.eigh(whitener.T @ moments.scatter[k] @ whitener)
        axes = whitener @ vectors
        squares = rows @ axes
        squares -= means[k] @ axes
        np.square(squares, out=squares)
        spread = (np.maximum(values, 0.0) + strengths * d) / (n[k] + strengths * d)
        scores[:, :, k] = -0.5 * (squares @ (1 / spread).T + np.log(spread).sum(axis=1)).T
    return scores
