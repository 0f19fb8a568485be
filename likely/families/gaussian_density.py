"""Gaussian densities: of independent columns, of columns that depend on each other, and flat where nothing varies."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likely import native
from likely.data.table import Block
from likely.families.base import Codes, Density, LinearForm, QuadraticForm
from likely.statistics import Array

_LOG_2PI = float(np.log(2 * np.pi))
# Whitened means further apart than this are not compared by a linear form: the difference of two large numbers loses
# digits.
_NEAR = 100.0


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

    def column(self, j: int) -> "DiagonalGaussian":
        """Return the density of one column."""
        return DiagonalGaussian(self.mean[:, [j]], self.variance[:, [j]], self.domain)

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
        self._score(block, self._comparison, out)

    def _score(self, block: Block, linear: tuple[Array, Array, Array] | None, out: Array) -> None:
        parameters = self.mean, self.whitener, self.covariance, self.constant
        native.score_full(block.dense(), block.columns, *parameters, linear, out)

    @cached_property
    def _comparison(self) -> tuple[Array, Array, Array] | None:
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
        patterns, places = np.unique(missing, axis=0, return_inverse=True)
        for p, gone in enumerate(patterns):
            if not gone.any():
                continue
            rows, there = np.flatnonzero(places.ravel() == p), ~gone
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


@dataclass(frozen=True, eq=False)
class FlatGaussian(FullGaussian):
    """Gaussians that share a covariance of less than full rank, and do not care about directions without variance."""

    directions: Array
    """columns × rank: D with DDᵀ the precision"""

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

    @property
    def no_density(self) -> str | None:
        """What has one."""
        return "some columns are determined by the others, leave them out or shrink the covariance"
