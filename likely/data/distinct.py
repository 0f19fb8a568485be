"""Rows by their content: equal ones are counted together, and a hash decides what is drawn and in which order.

So a weight of 2 is a row twice, a weight of 0 is no row, and the order in which rows come does not matter, also where
rows are sampled and assigned to folds.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.column_values import CountedColumn, FactorizedColumn
from likely.data.hashing import Keys, combined_keys, random_keys, row_keys, string_hashes, text_keys
from likely.data.table import Table
from likely.statistics import Array, Assignment


class DistinctRows(NamedTuple):
    """Rows of which no two are equal, each with the weight of all that are equal to it.

    They stand class by class, the heaviest first, and equally heavy ones by their hash. So to assign them to folds in
    turn is to stratify by class and weight, at random.
    """

    table: Table
    assignment: Assignment
    columns: tuple[CountedColumn, ...]

    @classmethod
    def of(cls, table: Table, assignment: Assignment, seed: Any = 0) -> "DistinctRows":
        """Count equal rows together.

        >>> rows = Assignment(np.array(["a", "b"]), np.array([0, 1, 0, 0], dtype=np.int32))
        >>> found = DistinctRows.of(Table(np.array([[5.0], [7.0], [np.nan], [5.0]])), rows)
        >>> found.table.cells.tolist(), found.assignment.codes.tolist(), found.assignment.weights.tolist()
        ([[5.0], [nan], [7.0]], [0, 0, 1], [2.0, 1.0, 1.0])
        """
        table, assignment = _with_weight(table, assignment)
        factorized = [FactorizedColumn.of(table, j) for j in range(table.columns.width)]
        # Codes, not values: numbers in another unit, or by their logarithm, make the same model.
        seen = np.cumsum(np.bincount(assignment.codes, minlength=len(assignment.classes)) > 0)
        keys = combined_keys(
            [*(column.codes for column in factorized), seen[assignment.codes]], random_keys(seed, len(factorized) + 1)
        )
        rows, weights = _lowest(keys, assignment.weights, len(keys))
        order = np.lexsort((-weights, assignment.codes[rows]))
        rows, weights = rows[order], weights[order]
        counts = None if (weights == 1).all() else weights
        if assignment.weights is not None:
            factorized = [column._replace(codes=column.codes[rows]) for column in factorized]
        columns = tuple(column.counted(None if assignment.weights is None else weights) for column in factorized)
        return cls(table.taken(rows), assignment._replace(weights=None).taken(rows)._replace(weights=counts), columns)

    def some(self, most: int) -> "DistinctRows":
        """Return at most so many of the rows, from all classes alike; the columns stay as they were counted."""
        if self.table.rows <= most:
            return self
        rows = np.arange(most) * self.table.rows // most
        return self._replace(table=self.table.taken(rows), assignment=self.assignment.taken(rows))


def sample_texts(
    texts: Any, assignment: Assignment, most: int | None = None, seed: Any = 0
) -> tuple[NDArray[np.intp], Array]:
    """Return the numbers of at most so many texts that differ, and the weight of all that are equal to each.

    They are those of the lowest hash, and the lowest of each class, so that parts may be drawn from one by one, and
    drawn from again together. Texts whose code is negative, or that have no weight, are left out.

    >>> import pyarrow as pa
    >>> rows = Assignment(np.array(["x", "y"]), np.array([0, 0, 1, 0], dtype=np.int32))
    >>> numbers, weights = sample_texts(pa.array(["a", "b", "c", "a"]), rows)
    >>> sorted(zip(numbers.tolist(), weights.tolist()))
    [(0, 2.0), (1, 1.0), (2, 1.0)]
    """
    _, codes, weights = assignment
    there = np.flatnonzero(codes >= 0 if weights is None else (codes >= 0) & (weights > 0))
    labels = text_keys(assignment.classes.tolist())
    keys = combined_keys([string_hashes(texts)[there], labels[codes[there]]], random_keys(seed, 2))
    rows, summed = _lowest(keys, None if weights is None else weights[there], len(keys))
    if most is not None and len(rows) > most:
        first = np.unique(codes[there[rows]], return_index=True)[1]
        chosen = np.union1d(np.arange(most), first if len(first) <= most else first[:0])
        rows, summed = rows[chosen], summed[chosen]
    return there[rows], summed


def split_heavy_rows(table: Table, assignment: Assignment, most: int) -> tuple[Table, Assignment]:
    """Cut rows that are heavier than is usual in their class into at most so many parts, for several folds.

    A row that came again and again will come again: it is to be predicted by a model that has seen it. But if all rows
    of a class are heavy, as when a rare class is given more weight, none is to be predicted by a model of itself.

    >>> rows = Assignment(np.array(["a"]), np.zeros(3, dtype=np.int32), np.array([8.0, 1.0, 1.0]))
    >>> split_heavy_rows(Table(np.array([[5.0], [7.0], [9.0]])), rows, 5)[1].weights.tolist()
    [4.0, 4.0, 1.0, 1.0]
    """
    classes, codes, weights = assignment
    if weights is None:
        return table, assignment
    usual = np.bincount(codes, weights) / np.maximum(np.bincount(codes), 1)
    parts = np.clip(weights // usual[codes], 1, most).astype(np.intp)
    rows = np.repeat(np.arange(len(codes)), parts)
    return table.taken(rows), Assignment(classes, codes[rows], (weights / parts)[rows])


def sample_rows(table: Table, assignment: Assignment, most: int, seed: Any = 0) -> tuple[Table, Assignment]:
    """Return at most so many rows that differ, each with the weight of all that are equal to it.

    They are those of the lowest hash. So a row that is drawn from all rows is drawn from any part of them that holds
    it: parts may be drawn from one by one, and drawn from again together.

    >>> rows = Assignment(np.array(["a"]), np.zeros(4, dtype=np.int32))
    >>> table, assignment = sample_rows(Table(np.array([[5.0], [7.0], [5.0], [5.0]])), rows, 9)
    >>> sorted(zip(table.cells[:, 0].tolist(), assignment.weights.tolist()))
    [(5.0, 3.0), (7.0, 1.0)]
    """
    table, assignment = _with_weight(table, assignment)
    drawn, weights = _lowest(row_keys(table, assignment, seed), assignment.weights, most)
    return table.taken(drawn), assignment.taken(drawn)._replace(weights=weights)


def content_ranks(table: Table, assignment: Assignment, seed: Any = 0) -> NDArray[np.intp]:
    """Return the rank of each row in an order by their content: equal rows of one class have the same.

    >>> rows = Assignment(np.array(["a"]), np.zeros(3, dtype=np.int32))
    >>> found = content_ranks(Table(np.array([[5.0], [7.0], [5.0]])), rows)
    >>> bool(found[0] == found[2]), sorted(set(found.tolist()))
    (True, [0, 1])
    """
    return np.asarray(np.unique(row_keys(table, assignment, seed), return_inverse=True)[1])


def _with_weight(table: Table, assignment: Assignment) -> tuple[Table, Assignment]:
    if assignment.weights is None or assignment.weights.all():
        return table, assignment
    counted = assignment.weights > 0
    return table.taken(counted), assignment.taken(counted)


def _lowest(keys: Keys, weights: Array | None, most: int) -> tuple[NDArray[np.intp], Array]:
    """Return where rows of the lowest distinct keys are, in their order, and the weight of all rows with that key."""
    # Weights are sorted too, so that they are added in the same order wherever the rows stand.
    order = np.argsort(keys) if weights is None else np.lexsort((weights, keys))
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    if weights is None:
        total = np.diff(starts, append=len(keys)).astype(np.float64)
    else:
        total = np.add.reduceat(weights[order], starts)
    return order[starts[:most]], total[:most]


def random_uniforms(seed: Any, number: int) -> Array:
    """Return as many numbers from 0 to 1, uniform and at random; they are the same on every machine.

    >>> random_uniforms(0, 3).round(2).tolist()
    [0.46, 0.51, 0.58]
    """
    return random_keys(seed, number) / 2.0**64
