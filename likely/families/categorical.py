"""Columns of categories, smoothed by pseudo-counts."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.families.base import Codes, Density, Family, on_one_line
from likely.statistics import Array, Assignment, Labels, Statistics
from likely.table import Block

CATEGORY = np.dtype([("column", np.int64), ("value", np.float64)])


@dataclass(frozen=True)
class Smoothed(Family):
    """A family with pseudo-counts: one number, one per category or word, or one per class and category or word."""

    smoothing: Any = 1.0

    def __post_init__(self) -> None:
        smoothing = np.asarray(self.smoothing, dtype=np.float64)
        if smoothing.ndim > 2 or not np.all(smoothing >= 0) or np.isinf(smoothing).any():
            raise ValueError(
                f"expected smoothing of 0 or more, one number or an array, got {on_one_line(self.smoothing)}"
            )

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
        return smoothing if smoothing.ndim < 2 else np.broadcast_to(smoothing, (classes, categories)).copy()


class Categorical(Smoothed):
    """Columns of categories written as numbers. A category not seen in training says nothing."""

    name = "categorical"
    expects = "a finite number that stands for a category"
    domain = "real"
    labels = CATEGORY

    def _counted(self, block: Block, assignment: Assignment) -> list[tuple[Labels, Array]]:
        """Return every column's categories, sorted, and their weights (categories × classes)."""
        classes, codes, weights = assignment
        return native.collect_categories(block.dense(), block.columns, self.domain, len(classes), codes, weights)

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        counted = self._counted(block, assignment)
        labels = np.empty(sum(len(values) for values, _ in counted), dtype=self.labels)
        labels["column"] = np.repeat(np.arange(len(counted)), [len(values) for values, _ in counted])
        labels["value"] = np.concatenate([values for values, _ in counted])
        counts = np.ascontiguousarray(np.concatenate([counts for _, counts in counted]).T)
        # The number of columns is kept by an array of zeros, since a column may have no category at all.
        sums = {"count": counts, "columns": np.zeros(len(counted))}
        axes = {"count": ("class", "category"), "columns": ("column",)}
        return Statistics(sums, axes, {"class": assignment.classes, "category": labels})

    def solve(self, statistics: Statistics) -> Density:
        """Return the shares of the categories, (count + λ) / Σ (count + λ)."""
        seen = without_unseen(statistics)
        return CategoricalDensity(seen.labels["category"]["value"].copy(), *self.shares(seen), domain=self.domain)

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of categories of every column and class, less one of each column: shares sum to 1."""
        assert isinstance(density, CategoricalDensity)
        return classes * int(np.maximum(np.diff(density.starts) - 1, 0).sum())

    def shares(self, statistics: Statistics) -> tuple[NDArray[np.int64], Array]:
        """Return where each column's categories start, and the share of every class and category."""
        counts, labels = statistics.sums["count"], statistics.labels["category"]
        starts = np.searchsorted(labels["column"], np.arange(len(statistics.sums["columns"]) + 1))
        smoothed = counts + self.pseudo_counts(*counts.shape)
        shares = np.empty_like(smoothed)
        for first, last in pairwise(starts):
            shares[:, first:last] = within_classes(smoothed[:, first:last])
        return starts.astype(np.int64), shares


@dataclass(frozen=True)
class Numbered(Categorical):
    """Columns of categories numbered 0, 1, 2, … up to the largest that was seen: those below it may come, too.

    ``least`` is the number of categories that a column has at least: one number, or one for each column.
    """

    least: Any = 0
    expects = "categories 0, 1, 2, …"
    domain = "non-negative"

    def solve(self, statistics: Statistics) -> Density:
        """Return the shares of the categories, also of those that were never seen."""
        whole = self.completed(statistics)
        return CategoricalDensity(whole.labels["category"]["value"].copy(), *self.shares(whole), domain=self.domain)

    def completed(self, statistics: Statistics) -> Statistics:
        """Return the statistics with all categories of every column, from 0 to the largest that has any weight."""
        statistics = without_unseen(statistics)
        counts, labels = statistics.sums["count"], statistics.labels["category"]
        columns, values = labels["column"], labels["value"].astype(np.int64)
        sizes = np.zeros(len(statistics.sums["columns"]), dtype=np.int64)
        sizes[columns] = values + 1  # the last of a column is its largest: labels are sorted
        np.maximum(sizes, self.least, out=sizes)
        starts = np.cumsum(sizes) - sizes
        complete = np.empty(sizes.sum(), dtype=CATEGORY)
        complete["column"] = np.repeat(np.arange(len(sizes)), sizes)
        complete["value"] = np.arange(len(complete)) - np.repeat(starts, sizes)
        wider = np.zeros((len(counts), len(complete)))
        wider[:, starts[columns] + values] = counts
        sums, names = {**statistics.sums, "count": wider}, {**statistics.labels, "category": complete}
        return Statistics(sums, statistics.axes, names)


def without_unseen(statistics: Statistics) -> Statistics:
    """Return statistics without the categories that no row has, or has no longer."""
    counts, labels = statistics.sums["count"], statistics.labels["category"]
    seen = counts.any(axis=0)
    if seen.all():
        return statistics
    sums, names = {**statistics.sums, "count": counts[:, seen]}, {**statistics.labels, "category": labels[seen]}
    return Statistics(sums, statistics.axes, names)


def within_classes(smoothed: Array) -> Array:
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
    domain: str = "real"

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
        cells = block.dense()
        native.score_categories(cells, block.columns, self.domain, self.values, self.starts, self._log_shares, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        x = np.full((len(codes), len(self.starts) - 1), np.nan)
        for j, (first, last) in enumerate(pairwise(self.starts)):
            if last > first:
                u = generator.random(len(codes))
                for c in np.unique(codes):
                    rows = codes == c
                    below = np.cumsum(self.shares[c, first:last])
                    below[-1] = 1.0
                    x[rows, j] = self.values[first + np.searchsorted(below, u[rows], side="right")]
        return x

    def discrete(self, j: int) -> tuple[Array, Array] | None:
        """Return the categories of a column and their shares."""
        part = slice(self.starts[j], self.starts[j + 1])
        return self.values[part], self.shares[:, part]

    def column(self, j: int) -> "CategoricalDensity":
        """Return the density of one column."""
        part = slice(self.starts[j], self.starts[j + 1])
        starts = np.array([0, self.starts[j + 1] - self.starts[j]])
        return CategoricalDensity(self.values[part], starts, self.shares[:, part], self.domain)
