"""Rows by their content: equal ones are counted together, and a hash decides what is drawn and in which order.

So a weight of 2 is a row twice, a weight of 0 is no row, and the order in which rows come does not matter, also where
rows are drawn and dealt into folds.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.column_values import CountedColumn, PlacedColumn, column_values, string_places, text_keys
from likely.data.hashing import FIRST, GOLDEN, Keys, mixed
from likely.data.table import Block, SparseRows, Table
from likely.statistics import Array, Assignment

# So many rows are hashed at a time, so that their cells are read while they are near.
_TILE = 1 << 14


class DistinctRows(NamedTuple):
    """Rows of which no two are equal, each with the weight of all that are equal to it.

    They stand class by class, the heaviest first, and equally heavy ones by their hash. So to deal them out in turn is
    to deal every class and its weight out evenly, and by chance.
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
        placed = [PlacedColumn.of(table, j) for j in range(table.columns.width)]
        # Places, not values: numbers in another unit, or by their logarithm, make the same model.
        seen = np.cumsum(np.bincount(assignment.codes, minlength=len(assignment.classes)) > 0)
        keys = _keys([*(column.places for column in placed), seen[assignment.codes]], _seeds(seed, len(placed) + 1))
        rows, weights = _lowest(keys, assignment.weights, len(keys))
        order = np.lexsort((-weights, assignment.codes[rows]))
        rows, weights = rows[order], weights[order]
        counts = None if (weights == 1).all() else weights
        if assignment.weights is not None:
            placed = [column._replace(places=column.places[rows]) for column in placed]
        columns = tuple(column.counted(None if assignment.weights is None else weights) for column in placed)
        return cls(table.taken(rows), assignment._replace(weights=None).taken(rows)._replace(weights=counts), columns)

    def some(self, most: int) -> "DistinctRows":
        """Return at most so many of the rows, from all classes alike; the columns stay as they were counted."""
        if self.table.rows <= most:
            return self
        rows = np.arange(most) * self.table.rows // most
        return self._replace(table=self.table.taken(rows), assignment=self.assignment.taken(rows))


def drawn_texts(
    texts: Any, assignment: Assignment, most: int | None = None, seed: Any = 0
) -> tuple[NDArray[np.intp], Array]:
    """Return the numbers of at most so many texts that differ, and the weight of all that are equal to each.

    They are those of the lowest hash, and the lowest of each class, so that parts may be drawn from one by one, and
    drawn from again together. Texts whose code is negative, or that have no weight, are left out.

    >>> import pyarrow as pa
    >>> rows = Assignment(np.array(["x", "y"]), np.array([0, 0, 1, 0], dtype=np.int32))
    >>> numbers, weights = drawn_texts(pa.array(["a", "b", "c", "a"]), rows)
    >>> sorted(zip(numbers.tolist(), weights.tolist()))
    [(0, 2.0), (1, 1.0), (2, 1.0)]
    """
    _, codes, weights = assignment
    there = np.flatnonzero(codes >= 0 if weights is None else (codes >= 0) & (weights > 0))
    labels = text_keys(assignment.classes.tolist())
    keys = _keys([string_places(texts)[there], labels[codes[there]]], _seeds(seed, 2))
    rows, summed = _lowest(keys, None if weights is None else weights[there], len(keys))
    if most is not None and len(rows) > most:
        first = np.unique(codes[there[rows]], return_index=True)[1]
        chosen = np.union1d(np.arange(most), first if len(first) <= most else first[:0])
        rows, summed = rows[chosen], summed[chosen]
    return there[rows], summed


def in_parts(table: Table, assignment: Assignment, most: int) -> tuple[Table, Assignment]:
    """Cut rows that are heavier than is usual in their class into at most so many parts, to be dealt to several folds.

    A row that came again and again will come again: it is to be predicted by a model that has seen it. But if all rows
    of a class are heavy, as when a rare class is given more weight, none is to be predicted by a model of itself.

    >>> rows = Assignment(np.array(["a"]), np.zeros(3, dtype=np.int32), np.array([8.0, 1.0, 1.0]))
    >>> in_parts(Table(np.array([[5.0], [7.0], [9.0]])), rows, 5)[1].weights.tolist()
    [4.0, 4.0, 1.0, 1.0]
    """
    classes, codes, weights = assignment
    if weights is None:
        return table, assignment
    usual = np.bincount(codes, weights) / np.maximum(np.bincount(codes), 1)
    parts = np.clip(weights // usual[codes], 1, most).astype(np.intp)
    rows = np.repeat(np.arange(len(codes)), parts)
    return table.taken(rows), Assignment(classes, codes[rows], (weights / parts)[rows])


def drawn_rows(table: Table, assignment: Assignment, most: int, seed: Any = 0) -> tuple[Table, Assignment]:
    """Return at most so many rows that differ, each with the weight of all that are equal to it.

    They are those of the lowest hash. So a row that is drawn from all rows is drawn from any part of them that holds
    it: parts may be drawn from one by one, and drawn from again together.

    >>> rows = Assignment(np.array(["a"]), np.zeros(4, dtype=np.int32))
    >>> table, assignment = drawn_rows(Table(np.array([[5.0], [7.0], [5.0], [5.0]])), rows, 9)
    >>> sorted(zip(table.cells[:, 0].tolist(), assignment.weights.tolist()))
    [(5.0, 3.0), (7.0, 1.0)]
    """
    return lowest_rows(table, assignment, most, seed)[:2]


def lowest_rows(table: Table, assignment: Assignment, most: int, seed: Any = 0) -> tuple[Table, Assignment, int]:
    """Return what ``drawn_rows`` does, and the highest key of a row that is drawn (0 if there is none)."""
    table, assignment = _with_weight(table, assignment)
    keys = row_keys(table, assignment, seed)
    drawn, weights = _lowest(keys, assignment.weights, most)
    highest = int(keys[drawn[-1]]) if len(drawn) else 0
    return table.taken(drawn), assignment.taken(drawn)._replace(weights=weights), highest


def ranks(table: Table, assignment: Assignment, seed: Any = 0) -> NDArray[np.intp]:
    """Return the place of each row in an order by their content: equal rows of one class have the same.

    >>> found = ranks(Table(np.array([[5.0], [7.0], [5.0]])), Assignment(np.array(["a"]), np.zeros(3, dtype=np.int32)))
    >>> bool(found[0] == found[2]), sorted(set(found.tolist()))
    (True, [0, 1])
    """
    return np.asarray(np.unique(row_keys(table, assignment, seed), return_inverse=True)[1])


def row_keys(table: Table, assignment: Assignment, seed: Any) -> Keys:
    """Return a hash of every row and its class, which depends on nothing else but the seed.

    >>> rows = Assignment(np.array(["a"]), np.zeros(3, dtype=np.int32))
    >>> keys = row_keys(Table(np.array([[5.0], [7.0], [5.0]])), rows, 0)
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    labels = text_keys(assignment.classes.tolist())
    if isinstance(table.cells, SparseRows):
        return _keys([_sparse_keys(table.cells), labels[assignment.codes]], _seeds(seed, 2))
    return _dense_keys(table, labels[assignment.codes], seed)


def _dense_keys(table: Table, labels: Keys, seed: Any) -> Keys:
    width = table.columns.width
    seeds = _seeds(seed, width + 1)
    names = {j: text_keys(texts.tolist()) for j, texts in table.categories.items()}
    named = sorted({*names, *table.strings})
    numbers = [j for j in range(width) if j not in named]
    keys = np.zeros(table.rows, dtype=np.uint64)
    native.add_row_keys(Block(table, None).dense(), numbers, seeds[numbers], keys)
    for first in range(0, table.rows, _TILE):
        rows = slice(first, first + _TILE)
        tile = table.between(first, first + _TILE)
        cells = (
            string_places(tile.strings[j]) if j in tile.strings else _cell_keys(column_values(tile, j), names[j])
            for j in named
        )
        keys[rows] = _keys([*cells, labels[rows]], seeds[[*named, width]], keys[rows])
    return keys


def _sparse_keys(cells: SparseRows) -> Keys:
    """Return a key of every row of a sparse matrix, whatever the order of its cells; one of 0 says nothing."""
    values = _cell_keys(cells.values.astype(np.float64), None)
    keys = mixed(mixed(cells.indices.astype(np.uint64) * GOLDEN + GOLDEN) + values)
    keys[values == 0] = 0
    # Differences of sums that are taken modulo 2⁶⁴ are exact.
    before = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(keys, dtype=np.uint64)])
    return np.diff(before[cells.starts])


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


def random_shares(seed: Any, number: int) -> Array:
    """Return as many numbers from 0 to 1, uniform and at random; they are the same on every machine.

    >>> random_shares(0, 3).round(2).tolist()
    [0.46, 0.51, 0.58]
    """
    return _seeds(seed, number) / 2.0**64


def _seeds(seed: Any, number: int) -> Keys:
    """Return as many random keys; they are the same on every machine."""
    # By a hash of what the seed looks like: NumPy's own generators would have to be imported first.
    return mixed(text_keys([seed]) + GOLDEN * np.arange(1, number + 1, dtype=np.uint64))


def _keys(columns: Iterable[NDArray[Any]], seeds: Keys, total: Any = 0) -> Keys:
    """Return a hash of every row: of 64 bits, so that different rows with the same one need not be thought of.

    ``total``: what other columns add, as the core has it.
    """
    for column, seed in zip(columns, seeds, strict=True):
        keys = column.astype(np.uint64)
        keys += seed
        keys *= FIRST
        keys ^= keys >> np.uint64(32)
        keys *= seed | np.uint64(1)
        keys += total
        total = keys
    return mixed(total)


def _cell_keys(cells: Array, names: Keys | None) -> Keys:
    cells = cells + 0.0  # −0 is 0, and a column of a matrix lies together
    missing = np.isnan(cells)
    holes = bool(missing.any())
    if names is None:
        keys = cells.view(np.uint64)
    else:
        places = (np.where(missing, len(names), cells) if holes else cells).astype(np.intp)
        keys = np.append(names, GOLDEN)[places]
    if holes:
        keys[missing] = GOLDEN
    return keys
