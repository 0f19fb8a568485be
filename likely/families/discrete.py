"""Families of categories, yes/no columns and bags of words, smoothed by pseudo-counts."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.families.base import Codes, Density, Family, LinearForm, subtract_logs
from likely.families.moments import collect_moments
from likely.statistics import Array, Assignment, Statistics, class_weights
from likely.table import Block, SparseRows

_CATEGORY = np.dtype([("column", np.int64), ("value", np.float64)])


@dataclass(frozen=True)
class Smoothed(Family):
    """A family with pseudo-counts: one number, one per category or word, or one per class and category or word."""

    smoothing: Any = 1.0

    def __post_init__(self) -> None:
        smoothing = np.asarray(self.smoothing, dtype=np.float64)
        if smoothing.ndim > 2 or not np.all(smoothing >= 0) or np.isinf(smoothing).any():
            raise ValueError(f"expected smoothing of 0 or more, one number or an array, got {self.smoothing!r}")

    def pseudo_counts(self, classes: int, categories: int) -> Array:
        """Return λ as an array that can be added to the counts, classes × categories."""
        smoothing = np.asarray(self.smoothing, dtype=np.float64)
        try:
            np.broadcast_to(smoothing, (classes, categories))
        except ValueError:
            raise ValueError(
                f"expected smoothing as one number, {categories} numbers (one for each category or word), or "
                f"{classes} × {categories} (one for each class and category or word), got shape {smoothing.shape}"
            ) from None
        return smoothing


class Categorical(Smoothed):
    """Columns of categories written as numbers. A category not seen in training says nothing."""

    name = "categorical"
    expects = "a finite number that stands for a category"

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        classes, codes, weights = assignment
        counted = native.collect_categories(block.dense(), block.columns, len(classes), codes, weights)
        return self._statistics(counted, assignment)

    def _statistics(self, counted: list[tuple[Array, Array]], assignment: Assignment) -> Statistics:
        labels = np.empty(sum(len(values) for values, _ in counted), dtype=_CATEGORY)
        labels["column"] = np.repeat(np.arange(len(counted)), [len(values) for values, _ in counted])
        labels["value"] = np.concatenate([values for values, _ in counted])
        counts = np.ascontiguousarray(np.concatenate([counts for _, counts in counted]).T)
        # The number of columns is kept by an array of zeros, since a column may have no category at all.
        sums = {"count": counts, "columns": np.zeros(len(counted))}
        axes = {"count": ("class", "category"), "columns": ("column",)}
        return Statistics(sums, axes, {"class": assignment.classes, "category": labels})

    def solve(self, statistics: Statistics) -> Density:
        """Return the shares of the categories, (count + λ) / Σ (count + λ)."""
        counts, labels = statistics.sums["count"], statistics.labels["category"]
        starts = np.searchsorted(labels["column"], np.arange(len(statistics.sums["columns"]) + 1))
        smoothed = counts + self.pseudo_counts(*counts.shape)
        shares = np.empty_like(smoothed)
        for first, last in pairwise(starts):
            shares[:, first:last] = _shares(smoothed[:, first:last])
        return CategoricalDensity(labels["value"].copy(), starts.astype(np.int64), shares)


class Bernoulli(Categorical):
    """Columns of 0 and 1."""

    name = "bernoulli"
    expects = "0 or 1"

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        classes, codes, weights = assignment
        counted = native.collect_categories(block.dense(), block.columns, len(classes), codes, weights)
        both = np.array([0.0, 1.0])
        complete = []
        for j, (values, counts) in enumerate(counted):
            wrong = values[(values != 0) & (values != 1)]
            if len(wrong):
                column = block.number(j)
                row = int(np.flatnonzero(block.dense()[:, column] == wrong[0])[0])
                raise native.BadCellError(row, column, float(wrong[0]))
            filled = np.zeros((2, len(classes)))
            filled[np.searchsorted(both, values)] = counts
            complete.append((both, filled))
        return self._statistics(complete, assignment)


class Multinomial(Smoothed):
    """A bag of words, or other counts of things: p(x) = Π θ_w^x_w, the probability of the words in their order."""

    name = "multinomial"
    expects = "a count or weight that is not negative"

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        classes, codes, weights = assignment
        cells = block.table.cells
        if isinstance(cells, SparseRows):
            if block.columns is not None:
                raise TypeError("expected all columns of a sparse matrix to be multinomial, got only some of them")
            starts, indices, values, width = cells
            count = native.collect_sparse(starts, indices, values, width, len(classes), codes, weights)
        else:
            count = collect_moments(block, assignment, "non-negative", centred=False).sums["sum"]
        rows = class_weights(assignment)
        return Statistics(
            {"count": count, **rows.sums}, {"count": ("class", "word"), **rows.axes}, {"class": assignment.classes}
        )

    def solve(self, statistics: Statistics) -> Density:
        """Return θ = (n + λ) / Σ (n + λ) for every word and class."""
        count, rows = statistics.sums["count"], statistics.sums["weight"]
        smoothing = self.pseudo_counts(*count.shape)
        totals = count.sum(axis=1)
        length = np.divide(totals, rows, out=np.zeros_like(totals), where=rows > 0)
        if not smoothing.all():
            empty = totals + np.broadcast_to(smoothing, count.shape).sum(axis=1) == 0
            of_all = count.sum(axis=0)
            count = np.where(empty[:, None], of_all if of_all.any() else 1.0, count)
        log_shares = native.log_shares(np.ascontiguousarray(count), np.ascontiguousarray(smoothing.ravel()))
        return MultinomialDensity(log_shares, length)


def _shares(smoothed: Array) -> Array:
    """Divide by the total of each class. A class of which nothing is known has the shares of all classes."""
    of_all = smoothed.sum(axis=0)
    of_all = of_all / of_all.sum() if of_all.any() else np.full(of_all.shape, 1 / max(len(of_all), 1))
    total = smoothed.sum(axis=1, keepdims=True)
    out = np.broadcast_to(of_all, smoothed.shape).copy()
    np.divide(smoothed, total, out=out, where=total > 0)
    return out


@dataclass(frozen=True, eq=False)
class CategoricalDensity(Density):
    """The shares of every column's categories, one column after the other; column j's begin at ``starts[j]``."""

    values: Array
    starts: NDArray[np.int64]
    shares: Array
    """classes × categories"""

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.shares)

    @cached_property
    def _log_shares(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(np.log(self.shares).T)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's categories."""
        native.score_categories(block.dense(), block.columns, self.values, self.starts, self._log_shares, out)

    def sample(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Draw a row of each class given."""
        x = np.full((len(codes), len(self.starts) - 1), np.nan)
        for j, (first, last) in enumerate(pairwise(self.starts)):
            if last > first:
                below = np.cumsum(self.shares[:, first:last], axis=1)
                below[:, -1] = 1.0
                places = (generator.random(len(codes))[:, None] >= below[codes]).sum(axis=1)
                x[:, j] = self.values[first + places]
        return x

    def column(self, j: int) -> "CategoricalDensity":
        """Return the density of one column."""
        part = slice(self.starts[j], self.starts[j + 1])
        starts = np.array([0, self.starts[j + 1] - self.starts[j]])
        return CategoricalDensity(self.values[part], starts, self.shares[:, part])

    def linear_form(self) -> LinearForm | None:
        """Return θ = log p₁/p₀ and θ₀ = Σ log p₀ if every column is 0 or 1."""
        if not np.array_equal(self.values, np.tile([0.0, 1.0], len(self.starts) - 1)):
            return None
        logs = self._log_shares.T
        no, yes = logs[:, ::2], logs[:, 1::2]
        return LinearForm(subtract_logs(yes, no), no.sum(axis=1))


@dataclass(frozen=True, eq=False)
class MultinomialDensity(Density):
    """The share of every word in every class."""

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

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's words."""
        cells = block.table.cells
        if isinstance(cells, SparseRows):
            native.score_sparse(cells.starts, cells.indices, cells.values, self.log_shares, out)
        else:
            slope = self._by_class
            native.score_linear(cells, block.columns, "non-negative", slope, np.zeros_like(slope), out)

    def sample(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Draw a bag of words of each class given, of Poisson length with the mean of its class."""
        shares = np.exp(self._by_class)
        shares /= shares.sum(axis=1, keepdims=True)
        lengths = generator.poisson(self.length[codes])
        return generator.multinomial(lengths, shares[codes]).astype(np.float64)

    def column(self, j: int) -> "MultinomialDensity":
        """Return the score of one word."""
        return MultinomialDensity(self.log_shares[[j]], self.length)

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Any, Array]:
        """Return x · (log θ_one − log θ_other) for every word; sparse if the rows are."""
        cells = block.table.cells
        logs = self._by_class
        if isinstance(cells, SparseRows):
            from scipy.sparse import csr_array

            rows = np.repeat(np.arange(block.table.rows), np.diff(cells.starts))
            difference = subtract_logs(logs[one[rows], cells.indices], logs[other[rows], cells.indices])
            values = np.where(np.isnan(cells.values) | (cells.values == 0), 0.0, cells.values * difference)
            return csr_array((values, cells.indices, cells.starts), shape=cells.shape), np.zeros(block.table.rows)
        x = block.values()
        with np.errstate(invalid="ignore"):
            odds = x * subtract_logs(logs[one], logs[other])
        return np.where(np.isnan(x) | (x == 0), 0.0, odds), np.zeros(len(x))

    def linear_form(self) -> LinearForm | None:
        """Return θ = the logarithms of the shares."""
        return LinearForm(self._by_class, np.zeros(self.classes))
