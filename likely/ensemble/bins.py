"""Columns cut into bins: numbers into bins of equal weight, a bin for each category, and one for missing cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.data.column_values import (
    CategoryLevels,
    CountedColumn,
    check_width,
    column_values,
    seen_levels,
)
from likely.data.table import Table
from likely.statistics import Array, distinct

BINS = 16


@dataclass(frozen=True, eq=False)
class NumberBins:
    """Edges between bins of numbers; a value on an edge lies above it."""

    edges: Array
    missing: bool

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.edges) + 1 + self.missing

    @classmethod
    def fitted(cls, column: CountedColumn, bins: int = BINS) -> "NumberBins":
        """Cut a column into bins of equal weight, between its distinct values.

        A value of more weight than a bin should hold is a bin of its own, and so is each of a few values.
        """
        finite = np.isfinite(column.values)
        values, counts = column.values[finite], column.counts[finite]
        if len(values) <= bins:
            ends = np.arange(1, len(values))
        else:
            last = np.cumsum(counts)
            wanted = np.arange(1, bins) * (last[-1] / bins)
            after = np.searchsorted(last, wanted) + 1
            # The nearer side of the value that a quantile falls on.
            nearer = after - (2 * wanted < last[after - 1] * 2 - counts[after - 1])
            heavy = np.flatnonzero(counts > last[-1] / bins)
            ends = distinct(np.concatenate([nearer, heavy, heavy + 1, np.searchsorted(values, column.splits)]))
            ends = ends[(ends > 0) & (ends < len(values))]
        return cls(edges_between(values, ends), column.missing > 0)

    def validate(self) -> None:
        """Raise ValueError unless the edges rise."""
        if self.edges.ndim != 1 or (np.diff(self.edges) <= 0).any():
            raise ValueError("expected edges of bins that rise, got others")

    def codes(self, table: Table, j: int) -> NDArray[np.intp]:
        """Return every row's bin, −1 where the cell is missing and never was."""
        cells = column_values(table, j, numbers=True)
        codes = np.searchsorted(self.edges, cells, side="right")
        absent = np.isnan(cells)
        if absent.any():
            codes[absent] = len(self.edges) + 1 if self.missing else -1
        return codes


def edges_between(values: Array, ends: NDArray[np.integer]) -> Array:
    """Return edges in the middle between the sorted values of some numbers and those just before."""
    low, high = values[ends - 1], values[ends]
    return np.asarray(np.maximum(low + 0.5 * (high - low), np.nextafter(low, high)))


ColumnBins = NumberBins | CategoryLevels


@dataclass(frozen=True, eq=False)
class Bins:
    """How every column of a table is cut into bins.

    Examples
    --------
    >>> from likely.data.column_values import counted_columns
    >>> table = Table(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]), categories={1: np.array(["no", "yes"])})
    >>> Bins.fitted(counted_columns(table)).encoded(table).cells
    array([[0., 1.],
           [1., 0.],
           [2., 0.]], dtype=float32)
    """

    columns: tuple[ColumnBins, ...]

    @classmethod
    def fitted(cls, columns: Sequence[CountedColumn], bins: int = BINS) -> "Bins":
        """Find bins by the values of some rows."""
        return cls(
            tuple(
                seen_levels(column)[0] if column.of_categories else NumberBins.fitted(column, bins)
                for column in columns
            )
        )

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def spread(self, columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for every encoded column what is given for the column that it is of: they are the same."""
        return columns

    def by_column(self, parts: Array) -> Array:
        """Return what is said of every column: each is encoded as one."""
        return parts

    def encoded(self, table: Table) -> Table:
        """Return the bin of every cell, NaN where it is in none."""
        check_width(table, self.width)
        out = np.empty((table.rows, self.width), dtype=np.float32)
        for j, column in enumerate(self.columns):
            codes = column.codes(table, j)
            out[:, j] = codes
            out[codes < 0, j] = np.nan
        return Table(out, table.names)
