"""Discriminants between linear and quadratic, and between full and diagonal: two numbers say how far.

With S the covariance within classes, Σ_γ = (1−γ) S + γ diag S, and the covariance of class k is
(scatter_k + νd Σ_γ) / (n_k + νd) for d columns: νd imagined rows that vary like all classes together.
γ = 0, ν = ∞ is the linear discriminant, γ = 1, ν = ∞ one of independent columns, ν = 0 the quadratic one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likely.families.base import Family
from likely.families.gaussian import Gaussian
from likely.families.gaussian_density import FullGaussian
from likely.families.moments import Moments
from likely.statistics import Array, Assignment, Statistics
from likely.table import Block

# A direction in which correlated columns vary less is one in which they do not: what is left is rounding.
_COLLINEAR = 1e-12


@dataclass(frozen=True)
class Regularised(Family):
    """A Gaussian in every class, whose covariance is pulled to a shared one, and that one to a diagonal.

    Parameters
    ----------
    diagonal
        γ, from 0 to 1
    strength
        ν, from 0 to ∞

    Examples
    --------
    >>> from likely.table import Table
    >>> X = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 0.0], [7.0, 8.0], [9.0, 9.0]])
    >>> rows = Assignment(np.array(["a", "b"]), np.array([0, 0, 0, 1, 1], dtype=np.int32))
    >>> family = Regularised(diagonal=0.2, strength=1.0)
    >>> family.solve(family.collect(Block(Table(X), None), rows)).mean
    array([[2. , 1. ],
           [8. , 8.5]])
    """

    diagonal: float = 0.001
    strength: float = np.inf

    name = "regularised discriminant"
    expects = Gaussian.expects

    def __post_init__(self) -> None:
        if not 0 <= self.diagonal <= 1:
            raise ValueError(f"expected a diagonal share between 0 and 1, got {self.diagonal!r}")
        if not self.strength >= 0:
            raise ValueError(f"expected a strength of 0 or more, got {self.strength!r}")

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        return Gaussian(covariance="full").collect(block, assignment)

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


def _whiteners(moments: Moments, diagonals: tuple[float, ...], of_all: Array) -> Iterator[Array]:
    """Yield W with WWᵀ the inverse of Σ_γ, for each γ.

    Correlations shrink to 0 and variances stay, so all have the eigenvectors of one correlation matrix.
    """
    covariance = shared_covariance(moments, 0.0, of_all)
    deviations = np.sqrt(np.diagonal(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
    vectors /= deviations[:, None]
    for diagonal in diagonals:
        yield vectors / np.sqrt(np.maximum((1 - diagonal) * values + diagonal, _COLLINEAR))


def log_densities(
    moments: Moments, rows: Array, diagonals: tuple[float, ...], strengths: tuple[float, ...], of_all: Array
) -> Iterator[tuple[float, float, Array]]:
    """Score rows under all pairs of γ and ν: γ, ν and log densities, rows × classes, up to a term classes share.

    The eigenvectors of a class's scatter, after whitening by Σ_γ, are those of its covariance for every ν: the rows
    are rotated once for all of them.
    """
    moments = known(moments)
    finite = np.array([strength for strength in strengths if np.isfinite(strength)])[:, None]
    n, means, d = moments.n[:, 0], moments.mean, rows.shape[1]
    for diagonal, whitener in zip(diagonals, _whiteners(moments, diagonals, of_all), strict=True):
        if len(finite) < len(strengths):
            centres = means @ whitener
            # About their middle, centres are near each other and their squares lose no digits.
            middle = centres.mean(axis=0)
            centres -= middle
            yield (
                diagonal,
                np.inf,
                rows @ (whitener @ centres.T) - (0.5 * centres**2 + middle * centres).sum(axis=1),
            )
        if len(finite) == 0:
            continue
        scores = np.empty((len(finite), len(rows), len(means)))
        for k in range(len(means)):
            values, vectors = np.linalg.eigh(whitener.T @ moments.scatter[k] @ whitener)
            axes = whitener @ vectors
            squares = rows @ axes
            squares -= means[k] @ axes
            np.square(squares, out=squares)
            spread = (np.maximum(values, 0.0) + finite * d) / (n[k] + finite * d)
            scores[:, :, k] = -0.5 * (squares @ (1 / spread).T + np.log(spread).sum(axis=1)).T
        for strength, score in zip(finite[:, 0].tolist(), scores, strict=True):
            yield diagonal, strength, score
