"""Single columns of a table: their distinct values, and the levels of categories, known by their names."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.hashing import string_hashes
from likely.data.table import Block, Table
from likely.statistics import Array, distinct

MOST_LEVELS = 50
"""How many levels of a column have a name; rarer ones say nothing."""


@dataclass(frozen=True, eq=False)
class CategoryLevels:
    """The names of a column's levels, and whether missing cells are one more, the last."""

    levels: tuple[str, ...]
    missing: bool
    most: ClassVar[int] = MOST_LEVELS

    @property
    def size(self) -> int:
        """The number of levels."""
        return len(self.levels) + self.missing

    def validate(self) -> None:
        """Raise ValueError unless the names differ, and are not too many."""
        if len(self.levels) > self.most or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"expected at most {self.most} levels that differ from each other, got others")

    def codes(self, table: Table, j: int) -> NDArray[np.intp]:
        """Return the level of every row of a column: its position, −1 where it is at none, −2 where it is missing."""
        cells = column_values(table, j)
        missing = np.isnan(cells)
        if j not in table.categories:
            if not missing.all():
                example = cells[~missing][0]
                name = table.columns.listed([j])
                raise TypeError(
                    f"expected categories in {name}, as in the rows the model was fitted on, got {example:g}"
                )
            names: list[str] = []
        else:
            names = [str(name) for name in table.categories[j].tolist()]
        index = {name: code for code, name in enumerate(self.levels)}
        # One more line for missing cells.
        found = np.array([*(index.get(name, -1) for name in names), len(self.levels) if self.missing else -2])
        codes = np.full(len(cells), len(names), dtype=np.intp)
        np.copyto(codes, cells, where=~missing, casting="unsafe")
        return np.asarray(found[codes], dtype=np.intp)


class TailSeparation(NamedTuple):
    """A value from which on, or below which if it is low, a class is so many deviations further away than ranks say."""

    value: float
    deviations: float


class CountedColumn(NamedTuple):
    """The distinct values of a column, sorted, and the weight of the rows that have each: all that encodings look at.

    Of categories the values are their names, as text.
    """

    values: NDArray[Any]
    counts: Array
    missing: float
    """the weight of the rows whose cell is missing"""
    splits: Array = np.zeros(0)
    """the values from which on classes are others than just below"""
    separations: tuple[TailSeparation, ...] = ()
    """near the ends, where ranks leave too little room between classes"""

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.counts.sum()) + self.missing

    @property
    def of_categories(self) -> bool:
        """Whether the values are names."""
        return bool(self.values.dtype == object)


class FactorizedColumn(NamedTuple):
    """The distinct values of a column, sorted, and the index of every cell's among them; −1 where it is missing."""

    values: NDArray[Any]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, table: Table, j: int) -> "FactorizedColumn":
        """Find the values of a column.

        >>> table = Table(np.array([[1.0], [0.0], [np.nan]]), categories={0: np.array(["yes", "no"])})
        >>> FactorizedColumn.of(table, 0)
        FactorizedColumn(values=array(['no', 'yes'], dtype=object), codes=array([ 0,  1, -1]))
        """
        cells = column_values(table, j)
        missing = np.isnan(cells)
        if j in table.strings:  # of texts only whether they are equal matters
            return cls(np.zeros(0), string_hashes(table.strings[j]))
        if j not in table.categories:
            values = distinct(cells[~missing])
            codes = np.searchsorted(values, cells)
            codes[missing] = -1
            return cls(values, codes)
        texts = [str(name) for name in table.categories[j].tolist()]
        codes = np.full(len(cells), len(texts), dtype=np.intp)
        np.copyto(codes, cells, where=~missing, casting="unsafe")
        seen = np.flatnonzero(np.bincount(codes, minlength=len(texts) + 1)[:-1]).tolist()
        names = sorted({texts[code] for code in seen})
        index = {name: i for i, name in enumerate(names)}
        found = np.full(len(texts) + 1, -1, dtype=np.intp)
        found[seen] = [index[texts[code]] for code in seen]
        return cls(np.array(names, dtype=object), found[codes])

    def counted(self, weights: Array | None = None) -> CountedColumn:
        """Return how much weight every value has; without weights, how many rows. Texts count as being there."""
        if len(self.values) == 0 and (self.codes >= 0).any():
            return FactorizedColumn(np.zeros(1), np.minimum(self.codes, 0)).counted(weights)
        counts = np.bincount(self.codes + 1, weights, len(self.values) + 1).astype(np.float64)
        return CountedColumn(self.values, counts[1:], float(counts[0]))


def counted_columns(table: Table, weights: Array | None = None) -> tuple[CountedColumn, ...]:
    """Count the values of every column."""
    return tuple(FactorizedColumn.of(table, j).counted(weights) for j in range(table.columns.width))


def check_width(table: Table, width: int) -> None:
    """Raise unless the table has as many columns as the one that was fitted on."""
    if table.columns.width != width:
        raise ValueError(f"expected a table of {width} columns, as the model was fitted on, got {table.columns.width}")


def column_values(table: Table, j: int, *, numbers: bool = False) -> Array:
    """Return a column's cells; if ``numbers`` are wanted, categories are refused."""
    cells = np.asarray(Block(table, None).dense()[:, j], dtype=np.float64)
    if numbers and j in table.categories and not np.isnan(cells).all():
        name = table.columns.listed([j])
        example = table.categories[j][int(cells[~np.isnan(cells)][0])]
        raise TypeError(f"expected numbers in {name}, as in the rows the model was fitted on, got {str(example)!r}")
    return cells


def seen_levels(column: CountedColumn) -> tuple[CategoryLevels, Array]:
    """Return the most frequent levels of a column, and the weight of each; missing cells are one if there are any.

    >>> seen_levels(CountedColumn(np.array(["no", "yes"], dtype=object), np.array([1.0, 2.0]), 1.0))
    (CategoryLevels(levels=('yes', 'no'), missing=True), array([2., 1., 1.]))
    """
    kept = most_frequent(column, MOST_LEVELS)
    levels = CategoryLevels(tuple(column.values[kept].tolist()), column.missing > 0)
    return levels, np.append(column.counts[kept], [column.missing] if column.missing else [])


def most_frequent(column: CountedColumn, most: int) -> NDArray[np.intp]:
    """Return the indices of at most so many values, the most frequent first; of equally many, the first by name."""
    return np.argsort(-column.counts, kind="stable")[:most]


def gaussian_quantiles(shares: Array) -> Array:
    """Return Φ⁻¹.

    >>> gaussian_quantiles(np.array([0.025, 0.5])).round(2)
    array([-1.96,  0.  ])
    """
    return np.frombuffer(_quantiles(shares.tobytes()))


@lru_cache(maxsize=8)  # columns without ties all have the same ranks
def _quantiles(shares: bytes) -> bytes:
    from statistics import NormalDist

    return np.array([*map(NormalDist().inv_cdf, np.frombuffer(shares).tolist())], dtype=np.float64).tobytes()
