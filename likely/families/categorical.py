"""Columns of categories, smoothed by pseudo-counts."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.families.base import Codes, Density, Family, on_one_line, read_numbers
from likely.statistics import Array, Assignment, Labels, Shared, Statistics

LOG_SMALLEST = float(np.log(5e-324))
"""The logarithm of the smallest number above 0: it stands for log 0 where that is compared, or taken away again."""
CATEGORY = np.dtype([("column", np.int64), ("value", np.float64)])


@dataclass(frozen=True)
class Smoothed(Family):
    """A family with pseudo-counts: one number, one per category or word, or one per class and category or word."""

    smoothing: Any = 1.0

    def __post_init__(self) -> None:
        expected = "smoothing of 0 or more, one number or an array"
        smoothing = read_numbers(self.smoothing, expected)
        if smoothing.ndim > 2 or not np.all(smoothing >= 0) or np.isinf(smoothing).any():
            raise ValueError(f"expected {expected}, got {on_one_line(self.smoothing)}")

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

    def _counted(self, block: Block, assignment: Assignment | Shared) -> list[tuple[Labels, Array]]:
        """Return every column's categories, sorted, and their weights (categories × classes)."""
        if isinstance(assignment, Shared):
            shares = np.ascontiguousarray(assignment.shares)
            return native.collect_responsibility_categories(
                block.dense(), block.columns, self.domain, shares, assignment.weights
            )
        classes, codes, weights = assignment
        return native.collect_categories(block.dense(), block.columns, self.domain, len(classes), codes, weights)

    def _collect_shared(self, block: Block, shared: Shared, given: Density) -> Statistics:
        return self._collect(block, shared)

    def _collect(self, block: Block, assignment: Assignment | Shared) -> Statistics:
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

    def log_prior(self, density: Density) -> float:
        """Return Σ λ log(share), the Dirichlet prior of a density's shares in logarithms, up to a constant."""
        assert isinstance(density, CategoricalDensity)
        return log_dirichlet(self.pseudo_counts(*density.shares.shape), density.shares)

    def shares(self, statistics: Statistics) -> tuple[NDArray[np.int64], Array]:
        """Return where each column's categories start, and the share of every class and category."""
        counts, labels = statistics.sums["count"], statistics.labels["category"]
        starts = np.searchsorted(labels["column"], np.arange(len(statistics.sums["columns"]) + 1))
        smoothed = counts + self.pseudo_counts(*counts.shape)
        shares = np.empty_like(smoothed)
        for first, last in pairwise(starts):
            shares[:, first:last] = within_classes(smoothed[:, first:last])
        return starts.astype(np.int64), shares


class WholeNumbers(Categorical):
    """Columns of whole numbers, each with a share of its own. A number not seen in training is less usual than others.

    It says nothing of the class, as an unseen category does, but it is not missing: in every class one such number is
    imagined to have λ rows, λ / (n + λ(V + 1)) for V numbers in n rows of all classes.
    """

    def solve(self, statistics: Statistics) -> Density:
        """Return the shares of the numbers, and that of all others together."""
        seen = without_unseen(statistics)
        starts, shares = self.shares(seen)
        imagined = np.broadcast_to(self.pseudo_counts(*shares.shape), shares.shape).mean(axis=0)
        counts = seen.sums["count"].sum(axis=0)
        log_others = np.full(len(starts) - 1, LOG_SMALLEST)  # of a column without any number, too
        for j, (first, last) in enumerate(pairwise(starts)):
            if last > first:
                one = imagined[first:last].mean()
                log_others[j] = np.log(one / (counts[first:last].sum() + one * (last - first + 1))) if one else -np.inf
        values = seen.labels["category"]["value"].copy()
        return WholeNumbersDensity(values, starts, shares, self.domain, np.maximum(log_others, LOG_SMALLEST))


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


def log_dirichlet(pseudo_counts: Array, shares: Array) -> float:
    """Return Σ λ log(share) over the shares that are known."""
    counted = np.broadcast_to(pseudo_counts, shares.shape) * (shares > 0)
    return float((counted * np.log(np.where(shares > 0, shares, 1.0))).sum())


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


@dataclass(frozen=True, eq=False)
class WholeNumbersDensity(CategoricalDensity):
    """The shares of every column's numbers that were seen, and what others have."""

    log_others: Array = field(default_factory=lambda: np.zeros(0))
    """log p of a number that was not seen, one for each column"""

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's numbers: shares of what the numbers that were not seen leave."""
        super().add_log_density(block, out)
        cells = block.values()
        there = ~np.isnan(cells)
        log_seen = np.log1p(-np.exp(self.log_others))
        out += (there @ log_seen)[:, None]
        known = np.zeros((len(cells), 1))
        ones = np.ones((len(self.values), 1))
        native.score_categories(block.dense(), block.columns, self.domain, self.values, self.starts, ones, known)
        odd = np.flatnonzero(known[:, 0] < there.sum(axis=1))
        for j, (first, last) in enumerate(pairwise(self.starts) if len(odd) else ()):
            unseen = there[odd, j] & ~np.isin(cells[odd, j], self.values[first:last])
            out[odd[unseen]] += self.log_others[j] - log_seen[j]

    def add_scores(self, block: Block, out: Array) -> None:
        """Add the log shares: a number that was not seen says nothing of the class."""
        super().add_log_density(block, out)

    def column(self, j: int) -> "WholeNumbersDensity":
        """Return the density of one column."""
        one = super().column(j)
        return WholeNumbersDensity(one.values, one.starts, one.shares, self.domain, self.log_others[[j]])
