"""Gaussians: spherical, diagonal or full, by class or tied; their densities, and the log-normal, a Gaussian of logs."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from likely import native
from likely.data.table import Block
from likely.families.base import (
    Codes,
    ColumnwiseDensity,
    Density,
    EMInput,
    EMStep,
    Family,
    LinearForm,
    QuadraticForm,
    UnsolvableError,
    on_one_line,
    read_number,
)
from likely.families.covariance import FLOOR, STRUCTURES, Shrinkage, Structure
from likely.families.covariance_prior import CovariancePrior
from likely.families.missing import collect_expected, collect_missing
from likely.families.moments import (
    Moments,
    check_pseudo_rows,
    check_scale,
    collect_about,
    collect_moments,
    moment_statistics,
    variances_of,
)
from likely.statistics import Array, Assignment, Responsibilities, Statistics, plain_label

_LOG_2PI = float(np.log(2 * np.pi))
# Whitened means further apart than this are not compared by a linear form: the difference of two large numbers loses
# digits.
_NEAR = 100.0


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(ColumnwiseDensity):
    """Independent Gaussians; a column that was never seen has the mean and variance NaN, and says nothing."""

    mean: Array
    variance: Array
    domain: str = "real"

    @cached_property
    def kernel(self) -> tuple[Array, Array, Array]:
        """μ, 1/σ and −log σ − ½ log 2π of every class and column; 0 of a column that was never seen."""
        never = np.isnan(self.variance)
        variance = np.where(never, 1.0, self.variance)
        constant = -0.5 * (np.log(variance) + _LOG_2PI)
        return (
            np.where(never, 0.0, self.mean),
            np.where(never, 0.0, 1 / np.sqrt(variance)),
            np.where(never, 0.0, constant),
        )

    @property
    def means(self) -> Array:
        """The mean of every class and column."""
        return np.exp(self.mean + 0.5 * self.variance) if self.domain == "log" else self.mean

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log density of every row."""
        native.score_gaussian(block.dense(), block.columns, self.domain, *self.kernel, out)
        if self.domain == "log":
            native.score_jacobian(block.dense(), block.columns, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        mean, deviation = self.mean[codes], np.sqrt(self.variance)[codes]
        x = mean + deviation * generator.standard_normal(mean.shape)
        return np.exp(x) if self.domain == "log" else x

    def linear_form(self) -> LinearForm | None:
        """Return θ = μ/σ² and θ₀ if every class has the same variances."""
        mean, precision, _ = self.kernel
        if self.domain != "real" or np.any(precision != precision[0]):
            return None
        theta = mean * precision**2
        return LinearForm(theta, -0.5 * (theta * mean).sum(axis=1))

    def quadratic_form(self) -> QuadraticForm | None:
        """Return A = −½ diag(1/σ²), b = μ/σ² and c."""
        if self.domain != "real":
            return None
        mean, precision, constant = self.kernel
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
        self._score(block, None, out)

    def add_scores(self, block: Block, out: Array) -> None:
        """Add the log density up to a term that classes share: if they share a covariance, a linear function."""
        self._score(block, self._linear_discriminants, out)

    def _score(self, block: Block, linear: tuple[Array, Array, Array] | None, out: Array) -> None:
        parameters = self.mean, self.whitener, self.covariance, self.constant
        native.score_full(block.dense(), block.columns, *parameters, linear, out)

    @cached_property
    def _linear_discriminants(self) -> tuple[Array, Array, Array] | None:
        """o, θ and θ₀ of θ·(x − o) + θ₀, by how much classes score more than the first; None if they are too far apart.

        The origin o is the middle of the classes.
        """
        if len(self.covariance) > 1 or self.classes == 1:
            return None
        origin = self.mean[0] + (self.mean - self.mean[0]).mean(axis=0)
        whitened = (self.mean - origin) @ self.whitener[0].T
        if np.abs(whitened).max() > _NEAR:
            return None
        theta, theta0 = whitened @ self.whitener[0], self.constant - 0.5 * (whitened**2).sum(axis=1)
        return origin, theta - theta[0], theta0 - theta0[0]

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        z = generator.standard_normal((len(codes), self.mean.shape[1]))
        x = self.mean[codes]
        for c in range(self.classes):
            rows = codes == c
            x[rows] += z[rows] @ self.factor[c if len(self.factor) > 1 else 0].T
        return x

    @property
    def means(self) -> Array:
        """The mean of every class and column."""
        return self.mean

    def expected(self, block: Block, c: int) -> Array:
        """Return the cells, and where one is missing its mean in class c, given the others of its row."""
        x = block.values().copy()
        self._fill(x, c, None)
        return x

    def drawn(self, block: Block, codes: Codes, generator: "np.random.Generator") -> Array:
        """Return the cells, and where some are missing a draw of them, given the others of their row."""
        x = block.values().copy()
        for c in np.unique(codes):
            rows = codes == c
            part = x[rows]
            self._fill(part, int(c), generator)
            x[rows] = part
        return x

    def _fill(self, x: Array, c: int, generator: "np.random.Generator | None") -> None:
        """Fill missing cells of rows of class c, in place: μ + Σ_mo Σ_oo⁻¹ (x_o − μ_o), and a draw about it."""
        covariance = self.covariance[c if len(self.covariance) > 1 else 0]
        missing = np.isnan(x)
        patterns, pattern_of = np.unique(missing, axis=0, return_inverse=True)
        for p, gone in enumerate(patterns):
            if not gone.any():
                continue
            rows, there = np.flatnonzero(pattern_of.ravel() == p), ~gone
            slope = np.linalg.solve(covariance[np.ix_(there, there)], covariance[np.ix_(there, gone)])
            filled = self.mean[c, gone] + (x[np.ix_(rows, there)] - self.mean[c, there]) @ slope
            if generator is not None:
                left = covariance[np.ix_(gone, gone)] - covariance[np.ix_(gone, there)] @ slope
                filled += generator.multivariate_normal(np.zeros(gone.sum()), left, len(rows), method="eigh")
            x[np.ix_(rows, gone)] = filled

    def column(self, j: int) -> DiagonalGaussian:
        """Return the density of one column, whatever the others hold."""
        variance = np.broadcast_to(self.covariance[:, j, j, None], (self.classes, 1))
        return DiagonalGaussian(self.mean[:, [j]], variance)

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Array, Array]:
        """Return each cell's part of the log-odds: −½ t_j (Σ⁻¹t)_j − log σ_j, with t = x − μ.

        What no single column accounts for, the determinants of the correlations, is left over.
        """
        x = block.values()
        there = ~np.isnan(x)
        odds, rest = np.zeros_like(x), np.zeros(len(x))
        patterns, pattern_of = np.unique(there, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            rows = np.flatnonzero(pattern_of.ravel() == p)
            cells = np.ix_(rows, np.flatnonzero(pattern))
            for codes, sign in ((one, 1.0), (other, -1.0)):
                own, left = self._log_density_by_cell(x[cells], pattern, codes[rows])
                odds[cells] += sign * own
                rest[rows] += sign * left
        return odds, rest

    def _log_density_by_cell(self, x: Array, pattern: Array, codes: Codes) -> tuple[Array, Array]:
        cells, rest = np.zeros_like(x), np.zeros(len(x))
        for c in np.unique(codes):
            rows = codes == c
            covariance = self.covariance[c if len(self.covariance) > 1 else 0][np.ix_(pattern, pattern)]
            deviation = np.sqrt(np.diagonal(covariance))
            correlation = covariance / np.outer(deviation, deviation)
            z = (x[rows] - self.mean[c, pattern]) / deviation
            cells[rows] = -0.5 * z * np.linalg.solve(correlation, z.T).T - np.log(deviation) - 0.5 * _LOG_2PI
            rest[rows] = -0.5 * np.linalg.slogdet(correlation)[1]
        return cells, rest

    def linear_form(self) -> LinearForm | None:
        """Return θ = Σ⁻¹μ and θ₀ if all classes share one covariance."""
        if len(self.covariance) > 1:
            return None
        theta = self.mean @ self.precision[0]
        return LinearForm(theta, -0.5 * (theta * self.mean).sum(axis=1))

    def quadratic_form(self) -> QuadraticForm:
        """Return A = −½Σ⁻¹, b = Σ⁻¹μ and c."""
        precision = np.broadcast_to(self.precision, (self.classes, *self.precision.shape[1:]))
        b = np.einsum("cij,cj->ci", precision, self.mean)
        return QuadraticForm(-0.5 * precision, b, self.constant - 0.5 * (b * self.mean).sum(axis=1))


@dataclass(frozen=True, eq=False)
class SingularGaussian(FullGaussian):
    """Gaussians that share a covariance of less than full rank, and do not care about directions without variance."""

    directions: Array
    """columns × rank: D with DDᵀ the precision"""

    no_density = "some columns are determined by the others, leave them out or shrink the covariance"

    @cached_property
    def whitener(self) -> Array:
        """Lower triangular W with WᵀW the precision; its first lines are 0."""
        columns, rank = self.directions.shape
        upper: Array = np.linalg.qr(self.directions.T[:, ::-1], mode="r")  # type: ignore[assignment]
        whitener = np.zeros((1, columns, columns))
        whitener[0, columns - rank :] = upper[::-1, ::-1]
        return whitener

    @cached_property
    def constant(self) -> Array:
        """The same for every class: a flat direction has no density."""
        return np.zeros(self.classes)


# A column is collinear if the others explain all but this fraction of its variance: what is left is rounding.
_COLLINEAR = 1e-12
# What is left after the means of missing cells were taken again and again.
_COLLINEAR_EXPECTED = 1e-10
# Standard deviations below this fraction of the largest are rounding.
_ROUNDING = 1e-7
# The variance of a direction that is left out, where a number is needed for it, in units of the largest.
_NEXT_TO_FLAT = 1e6


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
        except (TypeError, ValueError, OverflowError):
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
class FlatDirections:
    """Directions in which a standard deviation is at most ``tolerance`` count as without variance, and are left out.

    Standard deviations are those of ``standardised`` columns, or compared with the largest one. Below 1e-7 they are
    rounding: a covariance is a sum of products, whose last digit is the square of that.
    """

    tolerance: float
    standardised: bool = True

    def solved(self, covariance: Array) -> tuple[Array, Array, Array]:
        """Return D, columns × rank, with DDᵀ the precision in the directions that are left; and two without gaps.

        These are the covariance with a very large variance in the directions left out, next to flat, and its factor,
        the lower triangle L with LLᵀ that covariance. It is found from the directions, since Cholesky's way fails where
        their variances differ so much.
        """
        deviation = np.sqrt(np.diagonal(covariance))
        scale = np.where(deviation > 0, deviation, 1.0) if self.standardised else np.ones_like(deviation)
        values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        least = max(self.tolerance, _ROUNDING)
        if not self.standardised:
            least *= np.sqrt(max(values.max(), 0.0))
        kept = np.sqrt(np.maximum(values, 0.0)) > least
        directions = vectors[:, kept] / scale[:, None] / np.sqrt(values[kept])
        values = np.where(kept, values, _NEXT_TO_FLAT * max(values.max(), 1.0))
        upper: Array = np.linalg.qr((vectors * np.sqrt(values)).T, mode="r")  # type: ignore[assignment]
        factor = upper.T * np.where(np.diagonal(upper) < 0, -1.0, 1.0) * scale[:, None]
        return directions, (vectors * values) @ vectors.T * np.outer(scale, scale), factor


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
        the simpler one: ``"diagonal"`` (correlations shrink, variances stay; the default if full), ``"standardised"``
        (the same, but columns that do not vary get a variance too), ``"spherical"`` or ``"unit"``
    pseudo_rows
        rows like those of all classes together that every class is imagined to have, a ``GaussianPrior``, or a
        ``CovariancePrior``
    uncorrelated
        whether the columns of imagined rows are independent: so every full covariance has an inverse
    unbiased
        divide by n − 1 instead of n
    added_variance
        a share of the largest variance of a column, over all rows, that is added to every variance
    floor
        the share of a column's variance within classes that a variance is lifted to if it is smaller
    flat
        what to do if a tied full covariance is not of full rank: None, to refuse it; or which directions to leave out
    pooling
        how the covariance of all classes is tied: None, by adding up their scatters; "shares" or one weight for each
        class, by averaging their own covariances, each shrunk by itself, by their shares of the rows or those weights
    """

    covariance: str = "diagonal"
    tied: float = False
    shrinkage: Shrinkage = 0.0
    target: str | None = None
    pseudo_rows: float | GaussianPrior | CovariancePrior = 0.0
    unbiased: bool = False
    added_variance: float = 0.0
    floor: float = FLOOR
    pooling: Any = None
    flat: FlatDirections | None = None
    uncorrelated: bool = False

    name = "gaussian"
    expects = "a finite number"
    domain: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        if not isinstance(self.covariance, str) or self.covariance not in STRUCTURES:
            raise ValueError(f"expected covariance among {tuple(STRUCTURES)}, got {self.covariance!r}")
        if not isinstance(self.pseudo_rows, GaussianPrior | CovariancePrior):
            check_pseudo_rows(self.pseudo_rows)
        if self.shrinkage == "ledoit-wolf" and self.pseudo_rows != 0:
            raise ValueError(
                "expected shrinkage='ledoit-wolf' or pseudo_rows, got both: it is estimated from rows that were seen; "
                "use shrinkage='oas' or a number with imagined ones"
            )
        tied = read_number(self.tied, "tied between 0 and 1")
        if not 0 <= tied <= 1:
            raise ValueError(f"expected tied=True, False or a number between 0 and 1, got {tied!r}")
        self.structure.check()

    @property
    def structure(self) -> Structure:
        """The kind of covariance, with the settings of this family."""
        return STRUCTURES[self.covariance](self, float(self.tied))

    def additive(self, block: Block) -> bool:
        """Say whether sums add up: with missing cells under a full covariance they are expected ones, which do not."""
        return self.covariance != "full" or not np.isnan(block.values()).any()

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        if self.covariance != "full":
            return collect_moments(block, assignment, self.domain, centred=True)
        fourth = self.shrinkage == "ledoit-wolf"
        try:
            origin, *sums = native.collect_scatter(
                block.dense(), block.columns, len(assignment.classes), assignment.codes, assignment.weights, fourth
            )
        except native.BadCellError as error:
            if not np.isnan(error.args[2]):
                raise
        else:
            check_scale(block, assignment, variances_of(sums[2]))
            return moment_statistics(assignment.classes, sums, origin)
        if fourth:
            incomplete = [block.number(j) for j in np.flatnonzero(np.isnan(block.values()).any(axis=0)).tolist()]
            raise ValueError(
                "expected no missing cells where shrinkage is chosen by Ledoit and Wolf, from products of four cells, "
                f"got NaN in {block.table.columns.listed(incomplete)}: give shrinkage as a number, or as 'oas' to "
                "GaussianDiscriminant"
            )
        # The likelihood divides by n, n − 1 is for the end; and of flat directions nothing could be expected.
        likeliest = replace(self, unbiased=False, flat=None)
        return collect_missing(
            block, assignment, likeliest.moments, lambda sums: likeliest.solve(sums, _COLLINEAR_EXPECTED)
        )

    def _collect_responsibilities(self, block: Block, r: Responsibilities, given: Density) -> Statistics:
        origin = np.ascontiguousarray(np.nan_to_num(given.mean))  # type: ignore[attr-defined]
        if self.covariance != "full":
            return collect_about(origin, block, r, self.domain)
        # One covariance of all classes needs no products of each.
        tied = self.tied == 1 and self.pooling is None
        try:
            sums = native.collect_responsibility_scatter(
                block.dense(), block.columns, r.values, r.weights, origin, tied
            )
        except native.BadCellError as error:
            if not np.isnan(error.args[2]):
                raise
            return collect_expected(block, r, given)
        return moment_statistics(r.classes, sums, origin)

    def em_step(self, at: EMInput) -> EMStep | None:
        """Take the E step and collect for the M step in one pass over the rows, if columns are independent numbers."""
        if not isinstance(at.given, DiagonalGaussian) or self.domain != "real":
            return None
        mean, precision, constant = at.given.kernel
        found = native.step_gaussian(
            at.block.dense(), at.block.columns, mean, precision, constant, at.log_weights, at.codes, at.weights
        )
        if found is None:
            return None
        log_likelihood, (class_weights, *sums) = found
        return EMStep(log_likelihood, class_weights, moment_statistics(at.classes, sums, mean.copy()))

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of means, and of variances and covariances in as many matrices as there are."""
        d = int((~np.isnan(density.means[0])).sum())  # a column without any cell has none
        one = {"spherical": 1, "diagonal": d, "full": d * (d + 1) // 2}[self.covariance]
        return classes * d + (1 if self.tied == 1 else classes) * one

    def covariances(self, statistics: Statistics) -> Array:
        """Return the covariance of every class, or one for all, of the rows that were seen."""
        return self.structure.covariances(Moments.of(statistics), statistics)

    def total(self, statistics: Statistics) -> Array:
        """Return the covariance of all rows, whatever their class."""
        total: Array = self.structure.total(Moments.of(statistics), statistics)[0]
        return total

    def moments(self, statistics: Statistics) -> Moments:
        """Return the moments of every class, imagined rows included."""
        seen = moments = Moments.of(statistics)
        if isinstance(self.pseudo_rows, GaussianPrior):
            moments = moments.with_pseudo_rows(self.pseudo_rows.moments(moments))
        elif isinstance(self.pseudo_rows, CovariancePrior):
            moments = self.pseudo_rows.added(moments)
        elif self.pseudo_rows > 0:
            imagined = moments.pooled.scaled_to(self.pseudo_rows)
            moments = moments.with_pseudo_rows(imagined.uncorrelated if self.uncorrelated else imagined)
        return moments if moments.n.all() else moments.filled(seen.pooled)

    def with_prior_found(self, block: Block, groups: Assignment) -> "Gaussian":
        """Return the family of a mixture, its prior found from rows in first groups if it is a ``CovariancePrior``."""
        if not isinstance(self.pseudo_rows, CovariancePrior):
            return self
        return replace(self, pseudo_rows=self.pseudo_rows.estimated(block, groups, self))

    def log_prior(self, density: Density) -> float:
        """Return the logarithm of the prior of a density's covariances, up to a constant; 0 without such a prior."""
        if not isinstance(self.pseudo_rows, CovariancePrior):
            return 0.0
        covariances = density.covariance if isinstance(density, FullGaussian) else density.variance  # type: ignore[attr-defined]
        return self.pseudo_rows.log_density(covariances, density.classes)

    def solve(self, statistics: Statistics, collinear: float = _COLLINEAR) -> Density:
        """Return a Gaussian density for every class; ``collinear``: how little is left of a column that has none."""
        moments = self.moments(statistics)
        covariances = self.structure.covariances(moments, statistics)
        if self.covariance == "full":
            if isinstance(self.pseudo_rows, CovariancePrior):
                covariances = self.pseudo_rows.without_constants(covariances)
            if self.flat is not None:
                directions, filled, factor = self.flat.solved(covariances[0])
                if directions.shape[1] < len(directions):
                    return SingularGaussian(moments.mean, filled[None], factor[None], directions)
                return FullGaussian(moments.mean, covariances, factor[None])
            return FullGaussian(moments.mean, covariances, _factors(covariances, statistics, collinear))
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


def _factors(covariances: Array, statistics: Statistics, collinear: float) -> Array:
    """Return the Cholesky factors of covariances, or say which columns of which class make one singular."""
    deviations = np.sqrt(variances_of(covariances))
    deviations = np.where(deviations > 0, deviations, 1.0)
    correlations = covariances / (deviations[:, :, None] * deviations[:, None, :])
    try:
        factors = np.asarray(np.linalg.cholesky(correlations))
        unexplained = np.einsum("cii->ci", factors) ** 2
        if unexplained.min() > collinear:
            return factors * deviations[:, :, None]
    except np.linalg.LinAlgError:
        unexplained = np.stack([_unexplained(correlation) for correlation in correlations])
    index = int(np.argmin(unexplained.min(axis=1)))
    classes, weight = statistics.labels["class"], statistics.sums["weight"]
    label = classes[index] if len(covariances) == len(classes) else None
    whose, rows = ("all classes", weight.sum()) if label is None else (f"class {plain_label(label)!r}", weight[index])
    raise UnsolvableError(
        np.flatnonzero(unexplained[index] <= max(collinear, unexplained[index].min())).tolist(),
        f"expected a covariance of {whose} that has an inverse, got one of not full rank ({rows:g} rows, "
        f"{covariances.shape[1]} columns): the others determine ",
        "; leave such columns out, or use shrinkage='oas', tied=True or covariance='diagonal'",
        label,
        float(rows),
    )


def _unexplained(correlation: Array) -> Array:
    """Return the fraction of each column's variance that the columns before it do not explain."""
    a = correlation.copy()
    unexplained = np.ones(len(a))
    for j in range(len(a)):
        unexplained[j] = max(a[j, j], 0.0)
        if a[j, j] > _COLLINEAR:
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :]) / a[j, j]
    return unexplained


class Directions(NamedTuple):
    """Vectors (columns × directions), the best first, along which all classes vary by 1; and what each explains."""

    vectors: Array
    shares: Array
    """of the variance between classes, one for each vector"""


def svd_directions(density: FullGaussian, weights: Array, tolerance: float) -> Directions:
    """Return the directions between the weighted means of classes that share a covariance.

    Those are left out along which the means differ by less than ``tolerance`` times the most they do.
    """
    whitening = density.directions if isinstance(density, SingularGaussian) else density.whitener[0].T
    apart = np.sqrt(weights)[:, None] * (density.mean - weights @ density.mean)
    _, sizes, vectors = np.linalg.svd(apart @ whitening, full_matrices=False)
    explained = _proportions(sizes**2)
    kept = sizes > tolerance * sizes.max(initial=0.0)
    return Directions(whitening @ vectors.T[:, kept], explained)


def eigen_directions(density: FullGaussian, total: Array) -> Directions:
    """Return the directions in which the covariance of all rows exceeds that of the classes, one for each column."""
    whitener = density.whitener[0]
    between = whitener @ (total - density.covariance[0]) @ whitener.T
    sizes, vectors = np.linalg.eigh((between + between.T) / 2)
    # Of shrunk covariances the sizes, and their sum, may be negative: proportions are sorted by themselves.
    return Directions(whitener.T @ vectors[:, ::-1], np.sort(_proportions(sizes))[::-1])


def _proportions(sizes: Array) -> Array:
    whole = sizes.sum()
    return sizes / whole if whole != 0 else np.zeros_like(sizes)
