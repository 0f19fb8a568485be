"""Every cell given the others of its row: its distribution without itself, and how likely they are, all at once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.density.columns import Encoded, NumberColumn, TableColumn, level_counts
from likely.statistics import Array

# Rows × supports that are answered together, and the fewest rows that are.
_TOGETHER, _FEWEST = 1 << 21, 128


class LeftOut(NamedTuple):
    """What a member says of every cell that is there from the others of its row; anything of cells that are missing."""

    logs: Array
    """rows × columns: log p(the others), of the copula"""
    found: Array
    """rows × the supports of all columns, one after the other: p(value | the others)"""


def support_starts(columns: Sequence[TableColumn]) -> NDArray[np.int64]:
    """Return where the support of each column begins, if they lie one after the other; the last is where all end."""
    return np.append(0, np.cumsum([column.support for column in columns])).astype(np.int64)


def column_of_support(columns: Sequence[TableColumn]) -> NDArray[np.int64]:
    """Return the column of each value of the supports of all columns, one after the other."""
    return np.repeat(np.arange(len(columns)), [column.support for column in columns])


def tiles(rows: Encoded, columns: Sequence[int] | None = None) -> Iterator[slice]:
    """Cut rows into as many at a time as their answers about some columns, or all, fit in little memory.

    No rows are one part of none.
    """
    support = sum(rows.columns[j].support for j in (range(len(rows.columns)) if columns is None else columns))
    size = max(_FEWEST, _TOGETHER // max(support, 1))
    for first in range(0, max(rows.rows, 1), size):
        yield slice(first, first + size)


class OnSupports(NamedTuple):
    """How distributions of levels, where numbers are in bins of u, lie on the supports of the columns."""

    level: NDArray[np.int64]
    """of each value its level, of those of all columns one after the other"""
    share: Array

    @classmethod
    def of(cls, columns: Sequence[TableColumn], bins: int) -> "OnSupports":
        """Return the places of values where numbers are in so many bins."""
        levels, shares = [], []
        for start, column in zip(_starts(level_counts(columns, bins)), columns, strict=True):
            own, times = np.arange(column.levels), 1
            if isinstance(column, NumberColumn) and column.bins > 1:
                atoms, times = len(column.atoms), column.bins // bins
                own = np.append(own[:atoms], atoms + np.arange(column.bins) // times)
            levels.append(start + own)
            shares.append(np.where(own < column.levels - 1, 1.0, 1.0 / times))
        return cls(np.concatenate(levels), np.concatenate(shares))


def _starts(sizes: NDArray[np.int32]) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]
