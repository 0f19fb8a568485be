"""Columns as codes of one byte, for trees: numbers by quantiles, categories by how frequent they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.data.column_values import CategoryLevels, CountedColumn, check_width, most_frequent
from likely.data.table import Table
from likely.ensemble.bins import NumberBins, edges_between
from likely.families.forest import UNKNOWN
from likely.statistics import Array, distinct

# Numbers are 1 … 254, of categories 1 is one that is rare, or was never seen; 0 is a missing cell.
_NUMBERS, _LEVELS = 254, 250


class FrequentLevels(CategoryLevels):
    """The names of a column's levels, with room for more of them."""

    most: ClassVar[int] = _LEVELS


ColumnCodes = NumberBins | FrequentLevels


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """How every column of a table becomes codes.

    Examples
    --------
    >>> from likely.data.column_values import counted_columns
    >>> table = Table(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]), categories={1: np.array(["no", "yes"])})
    >>> CodedColumns.fitted(counted_columns(table)).encoded(table).cells
    array([[1, 3],
           [2, 2],
           [0, 2]], dtype=uint8)
    """

    columns: tuple[ColumnCodes, ...]

    @classmethod
    def fitted(cls, columns: Sequence[CountedColumn]) -> "CodedColumns":
        """Find codes by the values of some rows."""
        return cls(tuple(_levels(column) if column.of_categories else _quantiles(column) for column in columns))

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def categories(self) -> NDArray[np.bool_]:
        """Which columns are categories."""
        return np.array([isinstance(column, FrequentLevels) for column in self.columns])

    def by_column(self, parts: Array) -> Array:
        """Return what is said of every column: each is encoded as one."""
        return parts

    def encoded(self, table: Table, uninformative: NDArray[np.bool_] | None = None) -> Table:
        """Return the codes of all cells; ``uninformative``: of missing cells that say nothing, rows × columns."""
        check_width(table, self.width)
        out = np.empty((table.rows, self.width), dtype=np.uint8)
        for j, column in enumerate(self.columns):
            out[:, j] = column.codes(table, j) + (2 if isinstance(column, FrequentLevels) else 1)
        if uninformative is not None:
            out[uninformative] = UNKNOWN
        return Table(out, table.names)

    def validate(self) -> None:
        """Raise ValueError unless there is a code for everything."""
        sizes = [len(column.edges) for column in self.columns if isinstance(column, NumberBins)]
        if max(sizes, default=0) >= _NUMBERS or any(column.missing for column in self.columns):
            raise ValueError(f"expected at most {_NUMBERS} bins of numbers, and none of missing cells, got others")


def _quantiles(column: CountedColumn) -> NumberBins:
    """Cut a column into bins of equal weight, or between all values if they are few."""
    finite = np.isfinite(column.values)
    values, last = column.values[finite], np.cumsum(column.counts[finite])
    ends = np.arange(1, len(values))
    if len(values) > _NUMBERS:
        wanted = np.arange(1, _NUMBERS) * (last[-1] / _NUMBERS)
        ends = distinct(np.minimum(np.searchsorted(last, wanted), len(values) - 2)) + 1
    return NumberBins(edges_between(values, ends), missing=False)


def _levels(column: CountedColumn) -> FrequentLevels:
    return FrequentLevels(tuple(column.values[most_frequent(column, _LEVELS)].tolist()), missing=False)
