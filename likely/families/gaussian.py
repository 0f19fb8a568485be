"""Gaussians: spherical, diagonal or full, by class or tied, and the log-normal, a Gaussian of the logarithm."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from likely import native
from likely.families.base import Codes, Density, Family, LinearForm, QuadraticForm, UnsolvableError, on_one_line
from likely.families.covariance import STRUCTURES, Shrinkage, Structure
from likely.families.missing import collect_missing, full_statistics
from likely.families.moments import Moments, check_pseudo_rows, check_scale, collect_moments
from likely.statistics import Array, Assignment, Statistics
from likely.table import Block

_LOG_2PI = float(np.log(2 * np.pi))
# A column is collinear if the others explain all but this share of its variance: what is left is rounding.
_COLLINEAR = 1e-12
# What is left after the means of missing cells were taken again and again.
_COLLINEAR_EXPECTED = 1e-10


@dataclass(frozen=True)
class GaussianPrior:
    """A conjugate prior: ``rows`` imagined rows of this mean and covariance, added to every class before solving.

    It is the normal-inverse-Wishart distribution with κ = rows, Ψ = rows · covariance and ν = rows − d − 2, and solving
    gives its posterior mode.

    >>> GaussianPrior(mean=[0.0, 0.0], covariance=[1.0, 1.0], rows=2)
    GaussianPrior(mean=[0.0, 0.0], covariance=[1.0, 1.0], rows=2)
    """

    mean: Any
    covariance: Any
    rows: float

    def moments(self, like: Moments) -> Moments:
        """Return the prior as moments of one class."""
        d = len(like.base)
        try:
            mean = np.broadcast_to(np.asarray(self.mean, dtype=np.float64), (d,))
            covariance = np.asarray(self.covariance, dtype=np.float64)
            if covariance.ndim < 2:
                covariance = np.broadcast_to(covariance, (d,)) * np.eye(d)
            covariance = np.broadcast_to(covariance, (d, d))
            np.linalg.cholesky(covariance)
            fits = np.isfinite(mean).all() and np.array_equal(covariance, covariance.T) and 0 < self.rows < np.inf
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise ValueError(
                f"expected a prior of rows > 0 with a mean and a positive definite covariance of {d} columns, got "
                f"{on_one_line(self)}"
            )
        scatter = self.rows * (covariance if like.full else np.diagonal(covariance))
        n = np.full((1, like.n.shape[1]), float(self.rows))
        return Moments(n, mean, np.zeros((1, d)), scatter[None])


@dataclass(frozen=True)
class Gaussian(Family):
    """A Gaussian in every class.

    Parameters
    ----------
    covariance
        ``"spherical"``, ``"diagonal"`` or ``"full"``
    tied
        True for one covariance of all classes, a number between 0 and 1 for a share of it
    shrinkage
        how far the covariance is pulled to a simpler one: a number from 0 to 1, or for a full covariance ``"oas"``
        or ``"ledoit-wolf"`` to choose it from the data
    target
        the simpler one: ``"diagonal"`` (correlations shrink, variances stay; the default if full) or ``"spherical"``
    pseudo_rows
        rows like those of all classes together that every class is imagined to have, or a ``GaussianPrior``
    unbiased
        divide by n − 1 instead of n
    """

    covariance: str = "diagonal"
    tied: float = False
    shrinkage: Shrinkage = 0.0
    target: str | None = None
    pseudo_rows: float | GaussianPrior = 0.0
    unbiased: bool = False
    structure: Structure = field(init=False, repr=False, compare=False)

    name = "gaussian"
    expects = "a finite number"
    domain: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        if self.covariance not in STRUCTURES:
            raise ValueError(f"expected covariance among {tuple(STRUCTURES)}, got {self.covariance!r}")
        if not isinstance(self.pseudo_rows, GaussianPrior):
            check_pseudo_rows(self.pseudo_rows)
        if self.shrinkage == "ledoit-wolf" and self.pseudo_rows != 0:
            raise ValueError(
                "expected shrinkage='ledoit-wolf' or pseudo_rows, got both: it is estimated from rows that were seen; "
                "use shrinkage='oas' or a number with imagined ones"
            )
        structure = STRUCTURES[self.covariance](float(self.tied), self.shrinkage, self.target, self.unbiased)
        object.__setattr__(self, "structure", structure)

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        if self.covariance != "full":
            return collect_moments(block, assignment, self.domain, centred=True)
        fourth = self.structure.needs_fourth_moments
        try:
            origin, *sums = native.collect_scatter(
                block.dense(), block.columns, len(assignment.classes), assignment.codes, assignment.weights, fourth
            )
        except native.BadCellError as error:
            if not np.isnan(error.args[2]):
                raise
        else:
            check_scale(block, assignment, np.einsum("cii->ci", sums[2]))
            return full_statistics(assignment, sums, origin)
        if fourth:
            raise ValueError(_no_fourth_moments(block))
        # The likelihood divides by n; n − 1 is for the end.
        likeliest = replace(self, unbiased=False)
        return collect_missing(
            block, assignment, likeliest.moments, lambda sums: likeliest._solved(sums, _COLLINEAR_EXPECTED)
        )

    def moments(self, statistics: Statistics) -> Moments:
        """Return the moments of every class, imagined rows included."""
        moments = Moments.of(statistics)
        pooled = moments.pooled()
        if isinstance(self.pseudo_rows, GaussianPrior):
            moments = moments.with_imagined(self.pseudo_rows.moments(moments))
        elif self.pseudo_rows > 0:
            moments = moments.with_imagined(pooled.weighing(self.pseudo_rows))
        return moments.filled(pooled)

    def solve(self, statistics: Statistics) -> Density:
        """Return a Gaussian density for every class."""
        return self._solved(statistics, _COLLINEAR)

    def _solved(self, statistics: Statistics, collinear: float) -> Density:
        moments = self.moments(statistics)
        covariances = self.structure.covariances(moments, statistics)
        if self.covariance == "full":
            tied = len(covariances) < len(moments.n)
            factors = [_factor(matrix, i, tied, statistics, collinear) for i, matrix in enumerate(covariances)]
            return FullGaussian(moments.mean, covariances, np.stack(factors))
        seen = moments.n.sum(axis=0) > 0
        mean = np.where(seen, moments.mean, np.nan)
        variance = np.where(seen, np.broadcast_to(covariances, mean.shape), np.nan)
        return DiagonalGaussian(mean, variance, self.domain)


@dataclass(frozen=True)
class LogNormal(Gaussian):
    """A Gaussian of the logarithm, for positive numbers such as incomes, by class, column by column."""

    name = "log-normal"
    expects = "a positive number"
    domain = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.covariance == "full":
            raise ValueError("expected a diagonal covariance of log-normal columns, got 'full': take logarithms first")


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(Density):
    """Independent Gaussians; a column that was never seen has the mean and variance NaN, and says nothing."""

    mean: Array
    variance: Array
    domain: str = "real"

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.mean)

    @cached_property
    def _kernel(self) -> tuple[Array, Array, Array]:
        never = np.isnan(self.variance)
        variance = np.where(never, 1.0, self.variance)
        constant = -0.5 * (np.log(variance) + _LOG_2PI)
        return (
            np.where(never, 0.0, self.mean),
            np.where(never, 0.0, 1 / np.sqrt(variance)),
            np.where(never, 0.0, constant),
        )

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log density of every row."""
        native.score_gaussian(block.dense(), block.columns, self.domain, *self._kernel, out)
        if self.domain == "log":
            native.score_jacobian(block.dense(), block.columns, out)

    def sample(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Draw a row of each class given."""
        mean, deviation = self.mean[codes], np.sqrt(self.variance)[codes]
        x = mean + deviation * generator.standard_normal(mean.shape)
        return np.exp(x) if self.domain == "log" else x

    def column(self, j: int) -> "DiagonalGaussian":
        """Return the density of one column."""
        return DiagonalGaussian(self.mean[:, [j]], self.variance[:, [j]], self.domain)

    def linear_form(self) -> LinearForm | None:
        """Return θ = μ/σ² and θ₀ if every class has the same variances."""
        mean, precision, _ = self._kernel
        if self.domain != "real" or np.any(precision != precision[0]):
            return None
        theta = mean * precision**2
        return LinearForm(theta, -0.5 * (theta * mean).sum(axis=1))

    def quadratic_form(self) -> QuadraticForm | None:
        """Return A = −½ diag(1/σ²), b = μ/σ² and c."""
        if self.domain != "real":
            return None
        mean, precision, constant = self._kernel
        precision = precision**2
        A = -0.5 * precision[:, :, None] * np.eye(mean.shape[1])
        return QuadraticForm(A, mean * precision, constant.sum(axis=1) - 0.5 * (mean**2 * precision).sum(axis=1))


@dataclass(frozen=True, eq=False)
class FullGaussian(Density):
    """Gaussians whose columns depend on each other, with one covariance for every class or one for all."""

    mean: Array
    covariance: Array
    factor: Array
    """lower triangular L with LLᵀ the covariance"""

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.mean)

    @cached_property
    def whitener(self) -> Array:
        """L⁻¹, which makes the columns independent with variance 1."""
        return np.ascontiguousarray(np.tril(np.linalg.inv(self.factor)))

    @cached_property
    def precision(self) -> Array:
        """The inverse of every covariance."""
        return np.swapaxes(self.whitener, 1, 2) @ self.whitener

    @cached_property
    def constant(self) -> Array:
        """−½ log |2πΣ| of every class."""
        log_diagonal = np.log(np.einsum("cii->ci", self.factor)).sum(axis=1)
        constant = -log_diagonal - 0.5 * self.mean.shape[1] * _LOG_2PI
        return np.broadcast_to(constant, (self.classes,)).copy()

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log density of every row, or of the cells of it that are there."""
        self._score(block, False, out)

    def add_scores(self, block: Block, out: Array) -> None:
        """Add the log density up to a term that classes share: if they share a covariance, a linear function."""
        self._score(block, True, out)

    def _score(self, block: Block, compared: bool, out: Array) -> None:
        parameters = self.mean, self.whitener, self.covariance, self.constant
        native.score_full(block.dense(), block.columns, *parameters, compared, out)

    def sample(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Draw a row of each class given."""
        z = generator.standard_normal((len(codes), self.mean.shape[1]))
        x = self.mean[codes]
        for c in range(self.classes):
            rows = codes == c
            x[rows] += z[rows] @ self.factor[c if len(self.factor) > 1 else 0].T
        return x

    def column(self, j: int) -> DiagonalGaussian:
        """Return the density of one column, whatever the others hold."""
        variance = np.broadcast_to(self.covariance[:, j, j, None], (self.classes, 1))
        return DiagonalGaussian(self.mean[:, [j]], variance)

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Array, Array]:
        """Return each cell's share of the log-odds: −½ t_j (Σ⁻¹t)_j − log σ_j, with t = x − μ.

        What no single column accounts for, the determinants of the correlations, is left over.
        """
        x = block.values()
        there = ~np.isnan(x)
        odds, rest = np.zeros_like(x), np.zeros(len(x))
        patterns, places = np.unique(there, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            rows = np.flatnonzero(places.ravel() == p)
            cells = np.ix_(rows, np.flatnonzero(pattern))
            for codes, sign in ((one, 1.0), (other, -1.0)):
                share, left = self._shares(x[cells], pattern, codes[rows])
                odds[cells] += sign * share
                rest[rows] += sign * left
        return odds, rest

    def _shares(self, x: Array, pattern: Array, codes: Codes) -> tuple[Array, Array]:
        shares, rest = np.zeros_like(x), np.zeros(len(x))
        for c in np.unique(codes):
            rows = codes == c
            covariance = self.covariance[c if len(self.covariance) > 1 else 0][np.ix_(pattern, pattern)]
            deviation = np.sqrt(np.diagonal(covariance))
            correlation = covariance / np.outer(deviation, deviation)
            z = (x[rows] - self.mean[c, pattern]) / deviation
            shares[rows] = -0.5 * z * np.linalg.solve(correlation, z.T).T - np.log(deviation) - 0.5 * _LOG_2PI
            rest[rows] = -0.5 * np.linalg.slogdet(correlation)[1]
        return shares, rest

    def linear_form(self) -> LinearForm | None:
        """Return θ = Σ⁻¹μ and θ₀ if all classes share one covariance."""
        if len(self.covariance) > 1:
            return None
        theta = self.mean @ self.precision[0]
        return LinearForm(theta, -0.5 * (theta * self.mean).sum(axis=1))

    def quadratic_form(self) -> QuadraticForm:
        """Return A = −½Σ⁻¹, b = Σ⁻¹μ and c."""
        b = np.einsum(
            "cij,cj->ci", np.broadcast_to(self.precision, (self.classes, *self.precision.shape[1:])), self.mean
        )
        A = np.broadcast_to(-0.5 * self.precision, (self.classes, *self.precision.shape[1:]))
        return QuadraticForm(A.copy(), b, self.constant - 0.5 * (b * self.mean).sum(axis=1))


def _factor(covariance: Array, index: int, tied: bool, statistics: Statistics, collinear: float) -> Array:
    """Return the Cholesky factor of a covariance, or say which columns make it singular."""
    deviation = np.sqrt(np.diagonal(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    try:
        factor = np.linalg.cholesky(correlation)
        unexplained = np.diagonal(factor) ** 2
    except np.linalg.LinAlgError:
        unexplained = _unexplained(correlation)
    if unexplained.min() > collinear:
        return factor * deviation[:, None]
    classes, weight = statistics.labels["class"], statistics.sums["weight"]
    one_of_them = len(classes) == 1 or not tied
    whose, rows = (f"class {classes[index].item()!r}", weight[index]) if one_of_them else ("all classes", weight.sum())
    raise UnsolvableError(
        np.flatnonzero(unexplained <= collinear).tolist(),
        f"expected a covariance of {whose} that has an inverse, got one of not full rank ({rows:g} rows, "
        f"{len(covariance)} columns): the others determine ",
        "; leave such columns out, or use shrinkage='oas', tied=True or covariance='diagonal'",
    )


def _unexplained(correlation: Array) -> Array:
    """Return the share of each column's variance that the columns before it do not explain."""
    a = correlation.copy()
    unexplained = np.ones(len(a))
    for j in range(len(a)):
        unexplained[j] = max(a[j, j], 0.0)
        if a[j, j] > _COLLINEAR:
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :]) / a[j, j]
    return unexplained


def _no_fourth_moments(block: Block) -> str:
    holes = [block.number(j) for j in np.flatnonzero(np.isnan(block.values()).any(axis=0)).tolist()]
    return (
        f"expected no missing cells with shrinkage='ledoit-wolf', got NaN in {block.table.columns.listed(holes)}: "
        "use shrinkage='oas' or a number, which need no products of four cells"
    )
