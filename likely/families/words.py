"""Bags of words and columns of 0 and 1, dense or sparse, smoothed by pseudo-counts."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block, SparseRows
from likely.families.base import Codes, ColumnwiseDensity, Density, LinearForm, subtract_logs
from likely.families.categorical import LOG_SMALLEST, Smoothed, log_dirichlet
from likely.families.moments import collect_moments
from likely.statistics import Array, Assignment, Responsibilities, Statistics, class_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def _sparse(block: Block) -> SparseRows | None:
    """Return the rows if they are sparse; only all columns of a sparse matrix can be read."""
    cells = block.table.cells
    if not isinstance(cells, SparseRows):
        return None
    if block.columns is not None:
        raise TypeError("expected one family for all columns of a sparse matrix, got one for some of them")
    return cells


def _collect_sparse(cells: SparseRows, assignment: Assignment, domain: str) -> Array:
    """Return Σ w x for each class and column."""
    classes, codes, weights = assignment
    return native.collect_sparse(*cells, domain, len(classes), codes, weights)


def _domain(threshold: float | None) -> str:
    """Return how the core reads a cell that is 0 or 1, or that is compared with a threshold."""
    return "binary" if threshold is None else f"above {float(threshold)!r}"


def _missing_cells(cells: SparseRows) -> SparseRows | None:
    """Return 1 for each missing cell of sparse rows, or None if there is none."""
    missing = np.isnan(cells.values)
    return cells._replace(values=missing.astype(np.float64)) if missing.any() else None


def _log_probabilities(count: Array, smoothing: Array) -> Array:
    """Return log (n + λ) / Σ (n + λ), words × classes. A class without words has the probabilities of all classes."""
    if not smoothing.all():
        empty = (count + smoothing).sum(axis=1) == 0
        of_all = count.sum(axis=0)
        count = np.where(empty[:, None], of_all if of_all.any() else 1.0, count)
    return native.log_probabilities(np.ascontiguousarray(count), np.ascontiguousarray(smoothing.ravel()))


class Multinomial(Smoothed):
    """A bag of words, or other counts of things: p(x) = Π θ_w^x_w, the probability of the words in their order."""

    name = "multinomial"
    expects = "a count or weight that is not negative"

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        cells = _sparse(block)
        if cells is not None:
            count = _collect_sparse(cells, assignment, "non-negative")
        else:
            count = collect_moments(block, assignment, "non-negative", centred=False).sums["sum"]
        rows = class_weights(assignment)
        return Statistics(
            {"count": count, **rows.sums}, {"count": ("class", "word"), **rows.axes}, {"class": assignment.classes}
        )

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of words in every class, less one: probabilities sum to 1."""
        assert isinstance(density, MultinomialDensity)
        return classes * max(len(density.log_shares) - 1, 0)

    def solve(self, statistics: Statistics) -> Density:
        """Return θ = (n + λ) / Σ (n + λ) for every word and class."""
        count, rows = statistics.sums["count"], statistics.sums["weight"]
        smoothing = self.pseudo_counts(*count.shape)
        totals = count.sum(axis=1)
        length = np.divide(totals, rows, out=np.zeros_like(totals), where=rows > 0)
        return MultinomialDensity(_log_probabilities(count, smoothing), length)

    def log_prior(self, density: Density) -> float:
        """Return Σ λ log θ, the logarithm of the Dirichlet prior, up to a constant."""
        assert isinstance(density, MultinomialDensity)
        logs = density.log_shares.T
        pseudo_counts = self.pseudo_counts(*logs.shape)
        return float(np.multiply(logs, pseudo_counts, where=pseudo_counts > 0, out=np.zeros_like(logs)).sum())


@dataclass(frozen=True)
class Complement(Multinomial):
    """A bag of words scored by how little it is like the other classes (Rennie et al., 2003): a score, no density.

    Rennie leaves out p(y): for his rule use ``priors="uniform"``.
    """

    normalized: bool = False

    name = "complement"

    def solve(self, statistics: Statistics) -> Density:
        """Return −log θ of every word in all other classes, normalised to sum to 1 if asked."""
        count, rows = statistics.sums["count"], statistics.sums["weight"]
        others = count.sum(axis=0) - count
        smoothing = self.pseudo_counts(*count.shape)
        logs = _log_probabilities(others, smoothing)
        if not smoothing.all():
            logs = np.maximum(logs, LOG_SMALLEST)  # scores without end could not be compared
        scores = logs / logs.sum(axis=0) if self.normalized else -logs
        return ComplementScores(scores, np.zeros_like(rows))


@dataclass(frozen=True)
class Bernoulli(Smoothed):
    """Columns of 0 and 1, or of numbers that count as 1 above a ``threshold``."""

    threshold: float | None = None

    name = "bernoulli"
    expects = "0 or 1"

    @property
    def domain(self) -> str:
        """How the core reads a cell."""
        return _domain(self.threshold)

    def _collect_responsibilities(self, block: Block, r: Responsibilities, given: Density) -> Statistics:
        return super()._collect_responsibilities(block, r, given) if _sparse(block) else self._collect(block, r)

    def _collect(self, block: Block, assignment: Assignment | Responsibilities) -> Statistics:
        cells = _sparse(block)
        if cells is not None:
            assert isinstance(assignment, Assignment)
            if self.threshold is not None and self.threshold < 0:
                raise ValueError(f"expected a threshold of 0 or more for a sparse matrix, got {self.threshold!r}")
            yes = _collect_sparse(cells, assignment, self.domain)
            weight = class_weights(assignment).sums["weight"][:, None]
            gone = _missing_cells(cells)
            if gone is not None:
                weight = weight - _collect_sparse(gone, assignment, "binary")
        else:
            moments = collect_moments(block, assignment, self.domain, centred=False)
            yes, weight = moments.sums["sum"], moments.sums["weight"]
        sums = {"yes": yes, "no": weight - yes}
        return Statistics(sums, dict.fromkeys(sums, ("class", "column")), {"class": assignment.classes})

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of columns that have a cell, in every class."""
        assert isinstance(density, BernoulliDensity)
        return classes * int((~np.isnan(density.yes[0])).sum())

    def solve(self, statistics: Statistics) -> Density:
        """Return p = (yes + λ) / (yes + no + 2λ); of a class without a cell in a column, that of all classes."""
        yes, no = statistics.sums["yes"], statistics.sums["no"]
        smoothing, weight = self.pseudo_counts(*yes.shape), yes + no
        total = weight + 2 * smoothing
        seen = weight.sum(axis=0) > 0
        of_all = np.divide(yes.sum(axis=0), weight.sum(axis=0), out=np.full(yes.shape[1], 0.5), where=seen)
        p, q = np.broadcast_to(of_all, yes.shape).copy(), np.broadcast_to(1 - of_all, yes.shape).copy()
        known = np.broadcast_to(total > 0, yes.shape)
        np.divide(yes + smoothing, total, out=p, where=known)
        np.divide(no + smoothing, total, out=q, where=known)
        return BernoulliDensity(np.where(seen, p, np.nan), np.where(seen, q, np.nan), self.threshold)

    def log_prior(self, density: Density) -> float:
        """Return Σ λ (log p + log(1 − p)), the logarithm of the prior, up to a constant."""
        assert isinstance(density, BernoulliDensity)
        pseudo_counts = self.pseudo_counts(*density.yes.shape)
        return log_dirichlet(pseudo_counts, density.yes) + log_dirichlet(pseudo_counts, density.no)


def _sparse_log_odds(
    cells: SparseRows,
    values: Array | NDArray[np.float32] | NDArray[np.int64] | NDArray[np.bool_],
    logs: Array,
    one: Codes,
    other: Codes,
) -> "csr_array":
    """Return x · (log of one class − log of the other) for every cell there is; logs: classes × columns."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(cells.shape[0]), np.diff(cells.starts))
    difference = subtract_logs(logs[one[rows], cells.indices], logs[other[rows], cells.indices])
    odds = np.where(np.isnan(values) | (values == 0), 0.0, values * difference)
    return csr_array((odds, cells.indices, cells.starts), shape=cells.shape)


@dataclass(frozen=True, eq=False)
class MultinomialDensity(Density):
    """The probability of every word in every class."""

    log_shares: Array
    """words × classes"""
    length: Array
    """the mean number of words in a row of each class"""

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.log_shares.shape[1])

    @cached_property
    def _by_class(self) -> Array:
        return np.ascontiguousarray(self.log_shares.T)

    @property
    def means(self) -> Array:
        """The mean count of every class and word."""
        return self.length[:, None] * np.exp(self._by_class)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's words."""
        cells = _sparse(block)
        if cells is not None:
            native.score_sparse(cells.starts, cells.indices, cells.values, "non-negative", self.log_shares, out)
        else:
            slope = self._by_class
            native.score_linear(block.dense(), block.columns, "non-negative", slope, np.zeros_like(slope), out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a bag of words of each class given, of Poisson length with the mean of its class."""
        p = np.exp(self._by_class)
        p /= p.sum(axis=1, keepdims=True)
        lengths = generator.poisson(self.length[codes])
        return generator.multinomial(lengths, p[codes]).astype(np.float64)

    def column(self, j: int) -> "MultinomialDensity":
        """Return the score of one word."""
        return MultinomialDensity(self.log_shares[[j]], self.length)

    def log_odds(self, block: Block, one: Codes, other: Codes) -> "tuple[Array | csr_array, Array]":
        """Return x · (log θ_one − log θ_other) for every word; sparse if the rows are."""
        cells = _sparse(block)
        logs = self._by_class
        if cells is not None:
            return _sparse_log_odds(cells, cells.values, logs, one, other), np.zeros(block.table.rows)
        x = block.values()
        with np.errstate(invalid="ignore"):
            odds = x * subtract_logs(logs[one], logs[other])
        return np.where(np.isnan(x) | (x == 0), 0.0, odds), np.zeros(len(x))

    def linear_form(self) -> LinearForm | None:
        """Return θ = the logarithms of the probabilities."""
        return LinearForm(self._by_class, np.zeros(self.classes))


class ComplementScores(MultinomialDensity):
    """Scores of every word: to be compared between classes, but no probabilities."""

    no_density = "use 'multinomial'"


@dataclass(frozen=True, eq=False)
class BernoulliDensity(ColumnwiseDensity):
    """p(1) and p(0) of every class and column; NaN in a column that was never seen, which says nothing."""

    yes: Array
    no: Array
    threshold: float | None = None

    @property
    def shares(self) -> Array:
        """p(0) and p(1) of one column after the other, classes × twice the columns."""
        return np.stack([self.no, self.yes], axis=2).reshape(self.classes, -1)

    @cached_property
    def _logs(self) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.no), np.log(self.yes)
        return np.where(np.isnan(logs[0]), 0.0, logs[0]), np.where(np.isnan(logs[1]), 0.0, logs[1])

    @cached_property
    def _sparse_scores(self) -> tuple[Array, Array, Array]:
        """What a row of zeros scores, what each 1 adds, and what each missing cell (both columns × classes)."""
        no, yes = (np.maximum(log, LOG_SMALLEST) for log in self._logs)
        return no.sum(axis=1), np.ascontiguousarray((yes - no).T), np.ascontiguousarray(-no.T)

    def discrete(self, j: int) -> tuple[Array, Array] | None:
        """Return 0 and 1 and their probabilities."""
        return np.array([0.0, 1.0]), np.stack([self.no[:, j], self.yes[:, j]], axis=1)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row."""
        cells = _sparse(block)
        if cells is not None:
            zeros, ones, missing = self._sparse_scores
            out += zeros
            native.score_sparse(cells.starts, cells.indices, cells.values, _domain(self.threshold), ones, out)
            gone = _missing_cells(cells)
            if gone is not None:
                native.score_sparse(gone.starts, gone.indices, gone.values, "binary", missing, out)
        else:
            native.score_binary(block.dense(), block.columns, _domain(self.threshold), *self._logs, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        p = self.yes[codes]
        return np.where(np.isnan(p), np.nan, generator.random(p.shape) < p)

    def log_odds(self, block: Block, one: Codes, other: Codes) -> "tuple[Array | csr_array, Array]":
        """Return what every cell says; of sparse rows only the 1s count one by one, the 0s altogether."""
        cells = _sparse(block)
        if cells is None:
            return super().log_odds(block, one, other)
        zeros, ones, missing = self._sparse_scores
        read = cells.values == 1 if self.threshold is None else cells.values > self.threshold
        odds = _sparse_log_odds(cells, read, ones.T, one, other)
        rest = zeros[one] - zeros[other]
        gone = _missing_cells(cells)
        if gone is not None:
            rest = rest + _sparse_log_odds(gone, gone.values, missing.T, one, other).sum(axis=1)
        return odds, rest

    def linear_form(self) -> LinearForm | None:
        """Return θ = log p(1)/p(0) and θ₀ = Σ log p(0), unless cells are compared with a threshold."""
        if self.threshold is not None:
            return None
        no, yes = self._logs
        return LinearForm(subtract_logs(yes, no), no.sum(axis=1))
