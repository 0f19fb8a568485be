"""Where a column's bins are split further: at values where the classes of its rows change, more than by chance.

Bins of equal weight, and ranks, do not see a rare class at the end of a column: it is a small part of the last bin, and
of the last ranks. So each bin is split by the classes of its rows as long as the shorter description of these pays for
the split (Fayyad and Irani, 1993) and for having looked at every bin of every column. That is so strict that rows that
are held out later are not known by their own labels.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from likely.data.column_values import CountedColumn, TailSeparation, column_values, gaussian_quantiles
from likely.data.table import Table
from likely.statistics import Array, Assignment, distinct

# With more classes, values × classes would be too many numbers.
_MOST_CLASSES = 100


def with_splits(
    columns: Sequence[CountedColumn], table: Table, assignment: Assignment, bins: int
) -> tuple[CountedColumn, ...]:
    """Return columns with the values at which so many bins of equal weight are split further.

    >>> from likely.data.column_values import counted_columns
    >>> table, rare = Table(np.arange(1000.0)[:, None]), np.arange(1000) >= 990
    >>> rows = Assignment(np.array(["often", "rare"]), rare.astype(np.int32))
    >>> with_splits(counted_columns(table), table, rows, 16)[0].splits.tolist()
    [990.0]
    """
    if not 1 < len(assignment.classes) <= _MOST_CLASSES:
        return tuple(columns)
    price = float(np.log(len(columns) * bins))
    return tuple(
        _split(column, _Labelled(column, table, j, assignment), bins, price)
        if not column.of_categories and j not in table.strings and len(column.values) > bins
        else column
        for j, column in enumerate(columns)
    )


class _Labelled:
    """The weight of every class at every value of a column, and below it."""

    def __init__(self, column: CountedColumn, table: Table, j: int, assignment: Assignment):
        classes, codes, weights = assignment
        cells, k = column_values(table, j), len(classes)
        there = np.flatnonzero(~np.isnan(cells))
        numbers = np.searchsorted(column.values, cells[there]) * k + codes[there]
        counted = np.bincount(numbers, None if weights is None else weights[there], len(column.values) * k)
        self.counts: Array = counted.reshape(-1, k).astype(np.float64)
        self.below = np.concatenate([np.zeros((1, k)), np.cumsum(self.counts, axis=0)])
        self.total: Array = self.below[-1]


def _split(column: CountedColumn, rows: _Labelled, bins: int, price: float) -> CountedColumn:
    """Return the column with its splits, and how much further apart classes near its ends are."""
    n = float(rows.total.sum())
    weight = rows.below.sum(axis=1)
    edges = distinct(np.concatenate([[0, len(rows.counts)], np.searchsorted(weight, np.arange(1, bins) * (n / bins))]))
    found = [
        first + i
        for first, last in _bins_worth_splitting(rows, edges, price)
        for i in _found(rows.counts[first:last], price)
    ]
    if not found:
        return column
    separations = []
    share = weight[found] / n
    for near, upper in ((share <= 1 / bins, False), (share >= 1 - 1 / bins, True)):
        each = [(_deviations(rows, found[i], upper=upper), found[i]) for i in np.flatnonzero(near).tolist()]
        deviations, index = max(each, default=(0.0, 0))
        if deviations > 0:
            separations.append(TailSeparation(float(column.values[index]), deviations))
    return column._replace(splits=column.values[found], separations=tuple(separations))


def _bins_worth_splitting(rows: _Labelled, edges: NDArray[np.int64], price: float) -> list[tuple[int, int]]:
    """Return where the bins between the edges begin and end in which a split may pay: all of them at once."""
    first, last = edges[:-1], edges[1:]
    bin_of = np.repeat(np.arange(len(first)), last - first)
    start, whole = rows.below[first], rows.below[last] - rows.below[first]
    below = rows.below[1:] - start[bin_of]
    length = _length(below) + _length(whole[bin_of] - below)
    gain = _length(whole) - np.minimum.reduceat(length, first)
    return [*zip(first[gain > price].tolist(), last[gain > price].tolist(), strict=True)]


def _found(counts: Array, price: float) -> Iterator[int]:
    """Yield where to split values with the weight of each class (values × classes), in their order."""
    counts = counts[:, counts.any(axis=0)]
    if len(counts) < 2 or counts.shape[1] < 2:
        return
    total = counts.sum(axis=0)
    below = np.cumsum(counts[:-1], axis=0)
    parts = np.stack([below, total - below])
    length = _length(parts).sum(axis=0)
    best = int(np.argmin(length))
    whole, n = float(_length(total)), float(total.sum())
    ends = parts[:, best]
    # k h of the whole less those of both parts, with h the length for each row and k the number of classes
    entropies = (ends > 0).sum(axis=1) @ (_length(ends) / np.maximum(ends.sum(axis=1), np.finfo(float).tiny))
    model = np.log(3.0 ** len(total) - 2) - (len(total) * whole / n - float(entropies))
    if whole - length[best] > np.log(max(n - 1, 1.0)) + model + price:
        yield from _found(counts[: best + 1], price)
        yield best + 1
        yield from (best + 1 + i for i in _found(counts[best + 1 :], price))


def _deviations(rows: _Labelled, split: int, *, upper: bool) -> float:
    """Return by how many deviations the class beyond a split is at least further from the others than ranks say.

    Two Gaussians that a threshold tells apart as well as the split does are Φ⁻¹(p) − Φ⁻¹(q) deviations apart, with p
    and q the shares of the class and of the others beyond it, less the standard error of that. By ranks it is Φ⁻¹ of
    their mean ranks.
    """
    beyond = rows.total - rows.below[split] if upper else rows.below[split]
    c = int(np.argmax(beyond))
    ranks = (rows.below[:-1] + 0.5 * rows.counts).sum(axis=1) / rows.total.sum()
    sums = ranks @ rows.counts

    def of_class_and_others(numbers: Array) -> Array:
        return np.array([numbers[c], numbers.sum() - numbers[c]])

    n = of_class_and_others(rows.total)
    shares = (of_class_and_others(beyond) + 0.5) / (n + 1)
    z = gaussian_quantiles(shares)
    error = np.sqrt((2 * np.pi * np.exp(z**2) * shares * (1 - shares) / n).sum())
    mean, mean_of_others = gaussian_quantiles(of_class_and_others(sums) / np.maximum(n, np.finfo(float).tiny))
    return float(z[0] - z[1] - error - abs(mean - mean_of_others))


def _length(counts: Array) -> Array:
    """Return n h, the nats that it takes to tell the classes of rows, by their weights in the last axis."""
    n = counts.sum(axis=-1)
    logs = np.log(np.where(counts > 0, counts, 1.0))
    return np.asarray(n * np.log(np.where(n > 0, n, 1.0)) - (counts * logs).sum(axis=-1))
