"""Families of counts and of positive numbers whose statistics are sums of x and of log x."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.families.base import Codes, ColumnwiseDensity, Density, Family, LinearForm
from likely.families.categorical import LOG_SMALLEST
from likely.families.moments import Moments, check_pseudo_rows, collect_moments, safe_divide
from likely.statistics import Array, Assignment, Responsibilities, Statistics

# No mean is below this fraction of the column's mean over all rows, and no gamma distribution narrower than that.
_FLOOR = 1e-9


@dataclass(frozen=True)
class Positive(Family):
    """What the families here have in common: sums of x, and rows imagined like those of all classes together."""

    pseudo_rows: float = 0.0

    domain: ClassVar[str] = "non-negative"
    numbers: ClassVar[int] = 1
    """that the data choose in each class and column"""

    def __post_init__(self) -> None:
        check_pseudo_rows(self.pseudo_rows)

    def _collect(self, block: Block, assignment: Assignment | Responsibilities) -> Statistics:
        return collect_moments(block, assignment, self.domain, centred=False)

    def _collect_responsibilities(self, block: Block, r: Responsibilities, given: Density) -> Statistics:
        return self._collect(block, r)

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of parameters of every class and column that has a cell."""
        return classes * self.numbers * int((~np.isnan(density.means[0])).sum())

    def _means(self, statistics: Statistics) -> Array:
        """Return the mean of every class and column; NaN in a column that was never seen."""
        moments = Moments.of(statistics)
        pooled = moments.pooled
        if self.pseudo_rows > 0:
            moments = moments.with_pseudo_rows(pooled.scaled_to(self.pseudo_rows))
        return np.where(pooled.n > 0, moments.filled(pooled).mean, np.nan)


class Poisson(Positive):
    """Counts of independent events: p(x) = λˣ e^−λ / x!."""

    name = "poisson"
    expects = "a count (0, 1, 2, …)"
    domain = "count"

    def solve(self, statistics: Statistics) -> Density:
        """Return λ = the mean of every class."""
        return PoissonDensity(np.maximum(self._means(statistics), 0.0))


class Counts(Poisson):
    """Counts that nobody has declared: a cell that is none says nothing of the class, and is less usual than others."""

    def _collect(self, block: Block, assignment: Assignment | Responsibilities) -> Statistics:
        try:
            return super()._collect(block, assignment)
        except native.BadCellError:
            if np.isinf(block.values()).any():
                raise
            return super()._collect(_only_counts(block)[0], assignment)

    def solve(self, statistics: Statistics) -> Density:
        """Return λ = the mean of every class."""
        return CountsDensity(np.maximum(self._means(statistics), 0.0))


class Exponential(Positive):
    """Waiting times: p(x) = e^(−x/μ) / μ."""

    name = "exponential"
    expects = "a number that is not negative"

    def solve(self, statistics: Statistics) -> Density:
        """Return μ = the mean of every class."""
        means = self._means(statistics)
        of_all = Moments.of(statistics).pooled.mean
        return ExponentialDensity(np.maximum(means, np.where(of_all > 0, _FLOOR * of_all, 1.0)))


class Gamma(Positive):
    """Positive numbers such as ages or durations: p(x) ∝ x^(a−1) e^(−bx)."""

    name = "gamma"
    expects = "a positive number"
    domain = "positive"
    numbers = 2

    def _collect(self, block: Block, assignment: Assignment | Responsibilities) -> Statistics:
        assert isinstance(assignment, Assignment)
        return collect_moments(block, assignment, self.domain, centred=True, second="excess")

    _collect_responsibilities = Family._collect_responsibilities  # class by class, each about its own origin

    def solve(self, statistics: Statistics) -> Density:
        """Return the mean a/b and the shape a of greatest likelihood: log a − ψ(a) = log mean(x) − mean(log x)."""
        own = statistics.restored()
        assert own.origin is not None
        n = own.sums["weight"]
        mean_of_all = safe_divide((n * own.origin + own.sums["sum"]).sum(axis=0), n.sum(axis=0))
        about_all = own.rebased(np.broadcast_to(mean_of_all, n.shape).copy())
        pooled = replace(
            about_all,
            sums={name: array.sum(axis=0, keepdims=True) for name, array in about_all.sums.items()},
            origin=mean_of_all[None],
        )
        if self.pseudo_rows > 0:
            factor = safe_divide(np.full(n.shape, self.pseudo_rows), np.broadcast_to(pooled.sums["weight"], n.shape))
            own = replace(about_all, sums={k: a + factor * pooled.sums[k] for k, a in about_all.sums.items()})
        seen = own.sums["weight"] > 0
        mean, gap = (
            np.where(seen, ours, all_) for ours, all_ in zip(_log_mean_gap(own), _log_mean_gap(pooled), strict=True)
        )
        never = np.broadcast_to(pooled.sums["weight"] == 0, n.shape)
        shape = native.gamma_shapes(np.maximum(gap, _FLOOR).ravel()).reshape(gap.shape)
        return GammaDensity(np.where(never, np.nan, mean), np.where(never, np.nan, shape))


def _log_mean_gap(statistics: Statistics) -> tuple[Array, Array]:
    """Return mean(x) and log mean(x) − mean(log x) of each class and column; 1 and 0 where nothing was seen."""
    n = statistics.sums["weight"]
    assert statistics.origin is not None
    origin = np.where(n > 0, statistics.origin, 1.0)
    mean = origin + safe_divide(statistics.sums["sum"], n)
    return mean, safe_divide(statistics.sums["excess"], n) - native.excess(mean, origin)


@dataclass(frozen=True, eq=False)
class PositiveDensity(ColumnwiseDensity):
    """Densities whose first parameter is the mean."""

    @property
    def means(self) -> Array:
        """The mean of every class and column."""
        return np.asarray(getattr(self, fields(self)[0].name))


@dataclass(frozen=True, eq=False)
class PoissonDensity(PositiveDensity):
    """Poisson distributions of rate λ; a column that was never seen has the rate NaN, and says nothing."""

    rate: Array

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's counts."""
        native.score_poisson(block.dense(), block.columns, self.rate, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        rate = self.rate[codes]
        drawn = generator.poisson(np.where(np.isnan(rate), 0.0, rate)).astype(np.float64)
        return np.where(np.isnan(rate), np.nan, drawn)

    def linear_form(self) -> LinearForm | None:
        """Return θ = log λ and θ₀ = −Σλ."""
        with np.errstate(divide="ignore"):
            slope, constant = _zero_where_unseen(np.log(self.rate), -self.rate)
        return LinearForm(slope, constant.sum(axis=1))


class CountsDensity(PoissonDensity):
    """Poisson distributions under which what is no count has next to no probability, the same in all classes."""

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's counts, and of each cell that is none that of the least number."""
        out += LOG_SMALLEST * self._add_counts(block, out)[:, None]

    def add_scores(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's counts."""
        self._add_counts(block, out)

    def _add_counts(self, block: Block, out: Array) -> NDArray[np.int64]:
        """Add the scores of counts, and return how many cells of each row are none."""
        scores = np.zeros_like(out)  # what the core has added when it meets such a cell is thrown away
        odd = np.zeros(len(out), dtype=np.int64)
        try:
            super().add_log_density(block, scores)
        except native.BadCellError:
            if np.isinf(block.values()).any():
                raise
            scores[:] = 0.0
            block, odd = _only_counts(block)
            super().add_log_density(block, scores)
        out += scores
        return odd


def _only_counts(block: Block) -> tuple[Block, NDArray[np.int64]]:
    """Return a block in which numbers that are no counts are missing, and how many there are in each row."""
    cells = block.values().copy()
    odd = ~np.isnan(cells) & ((cells < 0) | (cells != np.trunc(cells)))
    cells[odd] = np.nan
    table = replace(block.table, cells=cells, names=None, categories={}, strings={}, kinds=())
    return Block(table, None), odd.sum(axis=1)


@dataclass(frozen=True, eq=False)
class ExponentialDensity(PositiveDensity):
    """Exponential distributions of mean μ."""

    mean: Array

    @cached_property
    def _slope_and_constant(self) -> tuple[Array, Array]:
        return _zero_where_unseen(-1 / self.mean, -np.log(self.mean))

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log density of every row."""
        native.score_linear(block.dense(), block.columns, "non-negative", *self._slope_and_constant, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        return generator.standard_exponential((len(codes), self.mean.shape[1])) * self.mean[codes]

    def linear_form(self) -> LinearForm | None:
        """Return θ = −1/μ and θ₀ = −Σ log μ."""
        slope, constant = self._slope_and_constant
        return LinearForm(slope, constant.sum(axis=1))


@dataclass(frozen=True, eq=False)
class GammaDensity(PositiveDensity):
    """Gamma distributions of mean a/b and shape a."""

    mean: Array
    shape: Array

    @property
    def rate(self) -> Array:
        """b of every class and column."""
        return self.shape / self.mean

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log density of every row."""
        native.score_gamma(block.dense(), block.columns, self.mean, self.shape, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        return generator.standard_gamma(self.shape[codes]) * (self.mean / self.shape)[codes]


def _zero_where_unseen(slope: Array, constant: Array) -> tuple[Array, Array]:
    """Let columns that were never seen say nothing."""
    never = np.isnan(slope) | np.isnan(constant)
    return np.where(never, 0.0, slope), np.where(never, 0.0, constant)
