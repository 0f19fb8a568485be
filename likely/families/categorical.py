"""Columns of categories, numbered or named, smoothed by pseudo-counts that are given or chosen by leave-one-out."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.families.base import Codes, Density, Family, on_one_line, read_numbers
from likely.statistics import Array, Assignment, Labels, Responsibilities, Statistics

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

    def _counted(self, block: Block, assignment: Assignment | Responsibilities) -> list[tuple[Labels, Array]]:
        """Return every column's categories, sorted, and their weights (categories × classes)."""
        cells, columns, domain = block.dense(), block.columns, self.domain
        if isinstance(assignment, Responsibilities):
            return native.collect_responsibility_categories(
                cells, columns, domain, assignment.values, assignment.weights
            )
        classes, codes, weights = assignment
        return native.collect_categories(cells, columns, domain, len(classes), codes, weights)

    def _collect_responsibilities(self, block: Block, r: Responsibilities, given: Density) -> Statistics:
        return self._collect(block, r)

    def _collect(self, block: Block, assignment: Assignment | Responsibilities) -> Statistics:
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
        """Return the probabilities of the categories, (count + λ) / Σ (count + λ)."""
        seen = self.completed(statistics)
        return CategoricalDensity(
            seen.labels["category"]["value"].copy(), *self.probabilities(seen), domain=self.domain
        )

    def completed(self, statistics: Statistics) -> Statistics:
        """Return the statistics of the categories that have a probability: those that any row has."""
        return without_unseen(statistics)

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of categories of every class and column, less one each: probabilities sum to 1."""
        assert isinstance(density, CategoricalDensity)
        return classes * int(np.maximum(np.diff(density.starts) - 1, 0).sum())

    def log_prior(self, density: Density) -> float:
        """Return Σ λ log p of all probabilities, the logarithm of their Dirichlet prior, up to a constant."""
        assert isinstance(density, CategoricalDensity)
        return log_dirichlet(self.pseudo_counts(*density.shares.shape), density.shares)

    def probabilities(self, statistics: Statistics) -> tuple[NDArray[np.int64], Array]:
        """Return where each column's categories start, and the probability of every class and category."""
        counts, starts = statistics.sums["count"], column_starts(statistics)
        smoothed = counts + self.pseudo_counts(*counts.shape)
        p = np.empty_like(smoothed)
        for first, last in pairwise(starts):
            p[:, first:last] = within_classes(smoothed[:, first:last])
        return starts, p


def column_starts(statistics: Statistics) -> NDArray[np.int64]:
    """Return where the categories of each column start, and the last ones end."""
    columns = statistics.labels["category"]["column"]
    return np.searchsorted(columns, np.arange(len(statistics.sums["columns"]) + 1)).astype(np.int64)


class WholeNumbers(Categorical):
    """Columns of whole numbers, each with a probability of its own; one not seen in training is less usual than others.

    It says nothing of the class, as an unseen category does, but it is not missing: in every class one such number is
    imagined to have λ rows, λ / (n + λ(V + 1)) for V numbers in n rows of all classes.
    """

    def solve(self, statistics: Statistics) -> Density:
        """Return the probabilities of the numbers, and that of all others together."""
        seen = without_unseen(statistics)
        starts, p = self.probabilities(seen)
        imagined = np.broadcast_to(self.pseudo_counts(*p.shape), p.shape).mean(axis=0)
        counts = seen.sums["count"].sum(axis=0)
        log_others = np.full(len(starts) - 1, LOG_SMALLEST)  # of a column without any number, too
        for j, (first, last) in enumerate(pairwise(starts)):
            if last > first:
                one = imagined[first:last].mean()
                log_others[j] = np.log(one / (counts[first:last].sum() + one * (last - first + 1))) if one else -np.inf
        values = seen.labels["category"]["value"].copy()
        return WholeNumbersDensity(values, starts, p, self.domain, np.maximum(log_others, LOG_SMALLEST))


@dataclass(frozen=True)
class Numbered(Categorical):
    """Columns of categories numbered 0, 1, 2, … up to the largest that was seen: those below it may come, too.

    ``least`` is the number of categories that a column has at least: one number, or one for each column.
    """

    least: Any = 0
    expects = "categories 0, 1, 2, …"
    domain = "non-negative"

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


def log_dirichlet(pseudo_counts: Array, p: Array) -> float:
    """Return Σ λ log p over the probabilities that are not 0."""
    counted = np.broadcast_to(pseudo_counts, p.shape) * (p > 0)
    return float((counted * np.log(np.where(p > 0, p, 1.0))).sum())


def without_unseen(statistics: Statistics) -> Statistics:
    """Return statistics without the categories that no row has, or has no longer."""
    counts, labels = statistics.sums["count"], statistics.labels["category"]
    seen = counts.any(axis=0)
    if seen.all():
        return statistics
    sums, names = {**statistics.sums, "count": counts[:, seen]}, {**statistics.labels, "category": labels[seen]}
    return Statistics(sums, statistics.axes, names)


def within_classes(smoothed: Array) -> Array:
    """Divide by the total of each class. A class of which nothing is known has the probabilities of all classes."""
    of_all = smoothed.sum(axis=0)
    of_all = of_all / of_all.sum() if of_all.any() else np.full(of_all.shape, 1 / max(len(of_all), 1))
    total = smoothed.sum(axis=1, keepdims=True)
    out = np.broadcast_to(of_all, smoothed.shape).copy()
    np.divide(smoothed, total, out=out, where=total > 0)
    return out


@dataclass(frozen=True, eq=False)
class CategoricalDensity(Density):
    """The probabilities of every column's categories, one column after the other; column j's begin at ``starts[j]``."""

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
    def _log_probabilities(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(np.log(self.shares).T)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's categories."""
        cells = block.dense()
        native.score_categories(
            cells, block.columns, self.domain, self.values, self.starts, self._log_probabilities, out
        )

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
        """Return the categories of a column and their probabilities."""
        part = slice(self.starts[j], self.starts[j + 1])
        return self.values[part], self.shares[:, part]

    def column(self, j: int) -> "CategoricalDensity":
        """Return the density of one column."""
        part = slice(self.starts[j], self.starts[j + 1])
        starts = np.array([0, self.starts[j + 1] - self.starts[j]])
        return CategoricalDensity(self.values[part], starts, self.shares[:, part], self.domain)


@dataclass(frozen=True, eq=False)
class WholeNumbersDensity(CategoricalDensity):
    """The probabilities of every column's numbers that were seen, and of others."""

    log_others: Array = field(default_factory=lambda: np.zeros(0))
    """log p of a number that was not seen, one for each column"""

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's numbers, with what is left to those that were not seen."""
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
        """Add the log probabilities: a number that was not seen says nothing of the class."""
        super().add_log_density(block, out)

    def column(self, j: int) -> "WholeNumbersDensity":
        """Return the density of one column."""
        one = super().column(j)
        return WholeNumbersDensity(one.values, one.starts, one.shares, self.domain, self.log_others[[j]])


class Named(Categorical):
    """Columns of named categories. A name not seen in training says nothing."""

    name = "named categories"
    expects = "a category by its name"
    domain = "non-negative"
    labels = np.dtype([("column", np.int64), ("value", np.object_)])

    def _counted(self, block: Block, assignment: Assignment | Responsibilities) -> list[tuple[Labels, Array]]:
        found = []
        for j, (values, counts) in enumerate(super()._counted(block, assignment)):
            names = names_in(block, j)[values.astype(np.int64)]
            order = np.argsort(names, kind="stable")
            found.append((names[order], counts[order]))
        return found

    def solve(self, statistics: Statistics) -> Density:
        """Return the probabilities of the categories, (count + λ) / Σ (count + λ)."""
        seen = without_unseen(statistics)
        names = seen.labels["category"]["value"]
        starts, p = self.probabilities(seen)
        numbers = np.arange(len(names)) - np.repeat(starts[:-1], np.diff(starts))
        return NamedDensity(numbers.astype(np.float64), starts, p, self.domain, names)


def names_in(block: Block, j: int) -> Labels:
    """Return the names of the categories of a block's column j, in the order of their numbers."""
    number = block.number(j)
    try:
        return np.asarray(block.table.categories[number], dtype=object)
    except KeyError:
        if np.isnan(block.single(j).values()).all():
            return np.empty(0, dtype=object)
        raise ValueError(
            f"expected categories by name in {block.table.columns.listed([number])}, got numbers: write them as text"
        ) from None


@dataclass(frozen=True, eq=False)
class NamedDensity(CategoricalDensity):
    """The probabilities of every column's categories; ``values`` are their numbers within the column."""

    names: Any = None
    """the names of the categories, one column's after the other's"""

    def names_of(self, j: int) -> Labels:
        """Return the names of a column's categories, in the order of their numbers."""
        names: Labels = self.names[self.starts[j] : self.starts[j + 1]]
        return names

    @cached_property
    def _numbers(self) -> list[dict[object, int]]:
        """The row of every name in the table of scores, one dict for each column."""
        starts = self.starts[:-1]
        return [{name: int(first) + i for i, name in enumerate(self.names_of(j))} for j, first in enumerate(starts)]

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's categories, whatever numbers the table gives them."""
        unknown = len(self.names)
        lines = [[known.get(name, unknown) for name in names_in(block, j)] for j, known in enumerate(self._numbers)]
        sizes = [len(line) for line in lines]
        scores = np.vstack([self._log_probabilities, np.zeros((1, self.classes))])[[i for line in lines for i in line]]
        values = np.concatenate([np.arange(size, dtype=np.float64) for size in sizes])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        native.score_categories(block.dense(), block.columns, self.domain, values, starts, scores, out)

    def column(self, j: int) -> "NamedDensity":
        """Return the density of one column."""
        part = super().column(j)
        return NamedDensity(part.values, part.starts, part.shares, self.domain, self.names_of(j))


# How many imagined rows a class may be given in a column.
_ROWS = 2.0 ** np.arange(-2, 11)


@dataclass(frozen=True)
class LeaveOneOut(Family):
    """Columns of categories, θ_kv = (n_kv + αp_v) / (n_k + α): α rows like those of all classes are imagined.

    p_v = (n_v + ½) / (n + ½V) for V categories, and α is the one of {¼, ½, …, 1024} under which rows are likeliest
    that are left out one by one: from n_kv alone, Σ n_kv log((n_kv − 1 + αp′_v) / (n_k − 1 + α)), where p′ is p
    without the row.

    Examples
    --------
    >>> from likely.data.table import Table
    >>> rows = Assignment(np.array(["a", "b"]), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
    >>> block = Block(Table(np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])), None)
    >>> LeaveOneOut().solve(LeaveOneOut().collect(block, rows)).shares.round(2)
    array([[0.96, 0.04],
           [0.04, 0.96]])
    """

    name = "naive Bayes of levels"
    expects = Categorical.expects

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        return Categorical().collect(block, assignment)

    def solve(self, statistics: Statistics) -> CategoricalDensity:
        """Return the probabilities of the categories."""
        seen = without_unseen(statistics)
        starts = column_starts(seen)
        return CategoricalDensity(
            seen.labels["category"]["value"].copy(), starts, _smoothed(seen.sums["count"], starts)
        )


def _smoothed(counts: Array, starts: NDArray[np.int64]) -> Array:
    """Return the probabilities, classes × categories."""
    sizes = np.diff(starts)
    # Of each category: its column's numbers.
    column = np.repeat(np.arange(len(sizes)), sizes)
    n_k = np.stack([np.bincount(column, of_class, len(sizes)) for of_class in counts])
    n_v, n, size = counts.sum(axis=0), n_k.sum(axis=0)[column], sizes[column]
    n_k = n_k[:, column]
    p = (n_v + 0.5) / (n + 0.5 * size)
    p_without = np.maximum(n_v - 0.5, 0.0) / np.maximum(n - 1 + 0.5 * size, 0.5)
    seen = np.nonzero(counts)
    n_kv, others = counts[seen], np.maximum(n_k[seen] - 1, 0.0)
    same, prior, where = np.maximum(n_kv - 1, 0.0), p_without[seen[1]], column[seen[1]]
    tiny = np.finfo(np.float64).tiny
    likelihood = np.array(
        [
            np.bincount(where, n_kv * np.log(np.maximum((same + a * prior) / (others + a), tiny)), len(sizes))
            for a in _ROWS
        ]
    )
    alpha = _ROWS[np.argmax(likelihood, axis=0)][column]
    return np.asarray((counts + alpha * p) / (n_k + alpha))
