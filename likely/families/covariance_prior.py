"""The prior of the covariances of a mixture's components: inverse-Wishart, about the covariance within first groups."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.families.covariance import oas_shrinkage
from likely.families.moments import Moments, check_pseudo_rows, collect_moments, moment_statistics, safe_divide
from likely.statistics import Array, Assignment

if TYPE_CHECKING:
    from likely.families.gaussian import Gaussian

# A column whose standard deviation is at most this share of its mean is constant: what is left is rounding.
_ROUNDING = 1e-15
# Correlations are never shrunk further: so there is a finite number of imagined rows that does it.
_MOST_SHRINKAGE = 0.999
# Correlations of pairs of columns need not belong to any rows; then the variance of a direction is lifted to this.
_LEAST_VARIANCE = 1e-3
# How much of the prior is the covariance within first groups; the rest is that of all rows.
_WITHIN = 0.9
# Cells that are multiplied at a time.
_TILE = 1 << 20


@dataclass(frozen=True, eq=False)
class CovariancePrior:
    """``rows`` imagined rows of this covariance about the mean of every class, wherever that is.

    It is the inverse-Wishart distribution with Ψ = rows · covariance and ν = rows − d − 1, and solving gives the
    posterior mode, (scatter + Ψ) / (n + rows). A column whose variance is 0 here is constant: under a full covariance
    it gets the variance 1 in every class, and so says nothing.
    """

    covariance: Any = None
    """columns × columns, or the variance of every column; None if it is yet to be found from the rows"""
    rows: float | None = None
    """how many rows are imagined in every class; None if that is yet to be found"""

    def __post_init__(self) -> None:
        if self.rows is not None:
            check_pseudo_rows(self.rows)
        if self.covariance is not None:
            shape, finite = np.shape(self.covariance), np.isfinite(self.covariance).all()
            if self.rows is None or len(shape) not in (1, 2) or len(set(shape)) != 1 or not finite:
                raise ValueError("expected the variances or the covariance of a prior and its rows, got others")

    def validate(self) -> None:
        """Raise ValueError if the covariance is yet to be found, as that of no fitted model is."""
        if self.covariance is None:
            raise ValueError("expected the covariance of a prior that was found from rows, got none")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CovariancePrior)
            and self.rows == other.rows
            and (self.covariance is None) == (other.covariance is None)
            and np.array_equal(np.asarray(self.covariance), np.asarray(other.covariance))
        )

    def __hash__(self) -> int:
        return hash(self.rows)

    def __repr__(self) -> str:
        return f"CovariancePrior(rows={self.rows:.4g})" if self.rows is not None else "CovariancePrior()"

    def estimated(self, block: Block, groups: Assignment, family: "Gaussian") -> "CovariancePrior":
        """Return the prior of as many components as there are groups, from rows in first groups such as k-means finds.

        The covariance is nine parts of that within the groups and one part of that of all rows, whose volume is first
        divided by the number of groups (as by Fraley and Raftery, 2007), so that no column is without variance. Its
        correlations are shrunk as far as OAS says. d + 2 rows are imagined, or 3 if columns are independent; one
        component is shrunk as far as OAS says.
        """
        own = Moments.of(collect_moments(block, groups, family.domain, centred=True))
        k, n = len(groups.classes), own.n.sum(axis=0)
        of_all = safe_divide(own.pooled.scatter[0], n)
        varying = np.flatnonzero(of_all > (_ROUNDING * own.pooled.mean[0]) ** 2)
        parts = _WITHIN, (1 - _WITHIN) * k ** (-2 / max(block.table.columns.width, 1))
        together = k if family.tied == 1 else 1  # they have their imagined rows in common
        if family.covariance != "full":
            variance = np.zeros(block.width)
            variance[varying] = (parts[0] * safe_divide(own.scatter.sum(axis=0), n) + parts[1] * of_all)[varying]
            return CovariancePrior(variance, (3.0 if self.rows is None else self.rows) / together)
        covariance, rows = np.zeros((block.width, block.width)), self.rows
        if len(varying) and rows != 0:
            weight, within, total = _scatters(block, groups, own, varying)
            mixed = parts[0] * within + parts[1] * total
            deviation = np.sqrt(np.diagonal(mixed))
            correlation = _positive(mixed / np.outer(deviation, deviation))
            shrinkage = min(oas_shrinkage(correlation, weight), _MOST_SHRINKAGE)
            if k == 1 and rows is None:
                rows = weight * shrinkage / (1 - shrinkage)
                shrinkage = 1.0
            shrunk = (1 - shrinkage) * correlation + shrinkage * np.eye(len(varying))
            covariance[np.ix_(varying, varying)] = shrunk * np.outer(deviation, deviation)
        else:
            covariance[varying, varying] = of_all[varying]
        return CovariancePrior(covariance, (block.width + 2.0 if rows is None else rows) / together)

    def added(self, moments: Moments) -> Moments:
        """Return moments with the imagined rows; of a column that no row has, nothing is imagined."""
        assert self.rows is not None
        if not moments.n.all():
            moments = moments.filled(moments.pooled)
        seen = moments.n.sum(axis=0) > 0
        scatter = moments.scatter + self.rows * self.covariance
        return replace(moments, n=np.where(seen, moments.n + self.rows, 0.0), scatter=scatter)

    def without_constants(self, covariances: Array) -> Array:
        """Return full covariances in which a column that is constant has no covariance, and at least the variance 1."""
        constant = np.diagonal(self.covariance) == 0
        if not constant.any():
            return covariances
        variance = np.einsum("cii->ci", covariances)
        apart = np.where(constant[:, None] | constant, 0.0, covariances)
        np.einsum("cii->ci", apart)[:] = np.where(constant, np.maximum(variance, 1.0), variance)
        return apart

    def log_density(self, covariances: Array, classes: int) -> float:
        """Return the logarithm of the prior of covariances, or variances, up to a constant."""
        assert self.rows is not None
        varying = np.flatnonzero(np.diagonal(self.covariance) if covariances.ndim == 3 else self.covariance)
        if self.rows == 0 or not len(varying):
            return 0.0
        if covariances.ndim == 3:
            own, about = covariances[:, varying[:, None], varying], self.covariance[np.ix_(varying, varying)]
            logarithms = np.linalg.slogdet(own)[1]
            traces = np.einsum("cii->c", np.linalg.solve(own, np.broadcast_to(about, own.shape)))
        else:
            own = covariances[:, varying]
            logarithms, traces = np.log(own).sum(axis=1), (self.covariance[varying] / own).sum(axis=1)
        return float(-0.5 * self.rows * classes / len(own) * (logarithms + traces).sum())


def _scatters(block: Block, groups: Assignment, own: Moments, columns: NDArray[np.int64]) -> tuple[float, Array, Array]:
    """Return the weight of rows, and the covariance of some columns within groups and of all rows.

    Each pair of columns is taken over the rows that have both cells.
    """
    codes, weights = groups.codes, groups.weights
    try:
        origin, *sums = native.collect_scatter(block.dense(), block.columns, len(groups.classes), codes, weights, False)
    except native.BadCellError as error:
        if not np.isnan(error.args[2]):
            raise
        return _pairwise(block, groups, own, columns)
    moments = Moments.of(moment_statistics(groups.classes, sums, origin))
    n, some = float(moments.n.sum()), np.ix_(columns, columns)
    return n, (moments.scatter.sum(axis=0) / n)[some], (moments.pooled.scatter[0] / n)[some]


def _pairwise(block: Block, groups: Assignment, own: Moments, columns: NDArray[np.int64]) -> tuple[float, Array, Array]:
    pooled = own.pooled
    means, mean = own.filled(pooled).mean[:, columns], pooled.mean[0][columns]
    d = len(columns)
    weight, within, total = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    step = max(_TILE // max(block.width, 1), 1)
    for first in range(0, block.table.rows, step):
        tile = Block(block.table.between(first, first + step), block.columns)
        x, codes = tile.values()[:, columns], groups.codes[first : first + step]
        there = ~np.isnan(x)
        w = 1.0 if groups.weights is None else groups.weights[first : first + step, None]
        weight += (w * there).T @ there.astype(np.float64)
        for centre, products in ((means[codes], within), (mean, total)):
            apart = np.where(there, x - centre, 0.0)
            products += (w * apart).T @ apart
    return float(weight.mean()), safe_divide(within, weight), safe_divide(total, weight)


def _positive(correlation: Array) -> Array:
    """Return the correlations, lifted to those of some rows if pairs of columns do not fit together."""
    values, vectors = np.linalg.eigh(correlation)
    if values[0] >= 0:
        return correlation
    lifted = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
    scale = np.sqrt(np.diagonal(lifted))
    return np.asarray(lifted / np.outer(scale, scale))
