"""Means and scatters of every class from sums about an origin, with imagined rows added, without losing a digit."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from likely import native
from likely.data.table import Block
from likely.families.base import read_number
from likely.statistics import Array, Assignment, Labels, Responsibilities, Statistics

# Sums of squares below this have lost digits to the smallest number there is.
_SMALLEST_SQUARE = 1e-290


def collect_moments(
    block: Block, assignment: Assignment | Responsibilities, domain: str, *, centred: bool, second: str = "square"
) -> Statistics:
    """Collect Σw, Σw(x−o) and a second sum for each class and column, of the cells that are there.

    The second is ``"square"``, Σw(x−o)², or ``"excess"``, Σw(u − 1 − log u) with u = x/o. ``centred``: o lies in the
    middle of each class, so that no offset costs a digit; else, and with responsibilities, o = 0.
    """
    if isinstance(assignment, Responsibilities):
        return collect_about(np.zeros((len(assignment.classes), block.width)), block, assignment, domain)
    classes, codes, weights = assignment
    origin, *sums = native.collect_moments(
        block.dense(), block.columns, domain, len(classes), codes, weights, centred, second
    )
    if centred and second == "square" and domain == "real":
        check_scale(block, assignment, sums[2])
    return moment_statistics(classes, sums, origin, second)


def collect_about(origin: Array, block: Block, r: Responsibilities, domain: str) -> Statistics:
    """Collect Σw, Σw(x−o) and Σw(x−o)² of rows with responsibilities, about an origin (classes × columns)."""
    sums = native.collect_responsibility_moments(block.dense(), block.columns, domain, r.values, r.weights, origin)
    return moment_statistics(r.classes, sums, origin)


def moment_statistics(classes: Labels, sums: list[Array], origin: Array, second: str = "square") -> Statistics:
    """Return sums under their names: weight, sum and the second, or of a full covariance product, cubic and quartic."""
    names = ("weight", "sum", second) if sums[-1].ndim < 3 else ("weight", "sum", "product", "cubic", "quartic")
    named = dict(zip(names, sums, strict=False))
    axes = {name: ("class", "column", "other column")[: array.ndim] for name, array in named.items()}
    return Statistics(named, axes, {"class": classes}, origin)


def check_scale(block: Block, assignment: Assignment, squares: Array) -> None:
    """Raise if a column's squares about its means (classes × columns) are too large or too small to be numbers."""
    _, codes, weights = assignment
    for c, j in np.argwhere(~np.isfinite(squares) | (squares < _SMALLEST_SQUARE)).tolist():
        if np.isfinite(squares[c, j]) and squares[:, j].max() >= _SMALLEST_SQUARE:
            continue  # other classes show the column's scale: this one is constant
        rows = codes == c if weights is None else (codes == c) & (weights > 0)
        cells = block.dense()[rows, block.number(j)].astype(np.float64)
        low, high = (float(reduce(cells, initial=np.nan)) for reduce in (np.fmin.reduce, np.fmax.reduce))
        if not np.isfinite(squares[c, j]) or low < high:
            raise ValueError(
                f"expected numbers whose squares can be told from 0 and from infinity, got {low:g} to {high:g} in "
                f"{block.table.columns.listed([block.number(j)])}: measure the column in another unit"
            )


def check_pseudo_rows(rows: float) -> None:
    """Raise unless the number of imagined rows is one."""
    if not 0 <= read_number(rows, "pseudo_rows of 0 or more") < np.inf:
        raise ValueError(f"expected pseudo_rows of 0 or more, got {rows!r}")


@dataclass(frozen=True)
class Moments:
    """Weight n, mean and scatter Σw(x−mean)² of every class.

    A mean is kept as a base, shared by all classes, and what lies beyond it: means that differ in their last digits
    only can still be told apart.
    """

    n: Array
    """classes × columns, or classes × 1 where no cell is missing"""
    base: Array
    beyond: Array
    scatter: Array
    """classes × columns, or classes × columns × columns"""

    @classmethod
    def of(cls, statistics: Statistics) -> Self:
        """Take the moments from the statistics of a Gaussian."""
        statistics = statistics.restored()
        sums = statistics.sums
        assert statistics.origin is not None
        origin = statistics.origin
        if np.isnan(origin).any():
            origin = np.nan_to_num(origin)
        n = sums["weight"].reshape(len(origin), -1)
        shift = safe_divide(sums["sum"], n)
        seen = n > 0
        heaviest = np.broadcast_to(np.argmax(n, axis=0), origin.shape[1:])
        base = origin[heaviest, np.arange(origin.shape[1])]
        beyond = np.where(seen, (origin - base) + shift, 0.0)
        if "product" in sums:
            scatter = sums["product"] - n[:, :, None] * shift[:, :, None] * shift[:, None, :]
        else:
            scatter = sums["square"] - n * shift**2
        variances = variances_of(scatter)
        np.maximum(variances, 0.0, out=variances)
        return cls(n, base, beyond, scatter)

    @property
    def mean(self) -> Array:
        """The mean of every class."""
        return self.base + self.beyond

    @property
    def full(self) -> bool:
        """Whether the scatter is a matrix for each class."""
        return self.scatter.ndim == 3

    @cached_property
    def pooled(self) -> Self:
        """The moments of all classes together, as one class."""
        n = self.n.sum(axis=0, keepdims=True)
        beyond = safe_divide((self.n * self.beyond).sum(axis=0, keepdims=True), n)
        apart = self.beyond - beyond
        if self.full:
            between = np.einsum("c,ci,cj->ij", self.n[:, 0], apart, apart)
        else:
            between = (self.n * apart**2).sum(axis=0)
        return replace(self, n=n, beyond=beyond, scatter=(self.scatter.sum(axis=0) + between)[None])

    def with_pseudo_rows(self, prior: "Moments") -> Self:
        """Add the rows of a prior (one class) to every class."""
        n = self.n + prior.n
        apart = self.beyond - (prior.beyond + (prior.base - self.base))
        pull = safe_divide(self.n * prior.n, n)
        beyond = self.beyond - safe_divide(prior.n, n) * apart
        if self.full:
            between = pull[:, :, None] * apart[:, :, None] * apart[:, None, :]
        else:
            between = pull * apart**2
        return replace(self, n=n, beyond=beyond, scatter=self.scatter + prior.scatter + between)

    def scaled_to(self, rows: float) -> Self:
        """Return the same mean and covariance, from another number of rows."""
        factor = safe_divide(np.full_like(self.n, rows), self.n)
        scatter = self.scatter * (factor[:, :, None] if self.full else factor)
        return replace(self, n=np.where(self.n > 0, rows, 0.0), scatter=scatter)

    @property
    def uncorrelated(self) -> Self:
        """The same means and variances, without covariances."""
        return replace(self, scatter=self.scatter * np.eye(self.scatter.shape[1])) if self.full else self

    def filled(self, pooled: "Moments") -> Self:
        """Return moments in which a class without a cell in a column has the mean of all classes there."""
        return replace(self, beyond=np.where(self.n > 0, self.beyond, pooled.beyond))


def variances_of(covariance: Array) -> Array:
    """Return a view of the variances: the diagonals of matrices; what are none are variances themselves."""
    return covariance if covariance.ndim < 3 else np.asarray(np.einsum("cii->ci", covariance))


def safe_divide(a: Array, n: Array) -> Array:
    """Divide, with 0 where nothing was seen."""
    if n.all():
        return a / n
    return np.divide(a, n, out=np.zeros(np.broadcast_shapes(a.shape, n.shape)), where=n > 0)
