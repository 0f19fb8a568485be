"""Single columns of a table: their distinct values, and the levels of categories, known by their names."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block, Table
from likely.statistics import Array, distinct

MOST_LEVELS = 50
"""How many levels of a column have a name; rarer ones say nothing."""


@dataclass(frozen=True, eq=False)
class CategoryLevels:
    """The names of a column's levels, and whether missing cells are one more, the last."""

    levels: tuple[str, ...]
    missing: bool

    @property
    def size(self) -> int:
        """The number of levels."""
        return len(self.levels) + self.missing

    def validate(self) -> None:
        """Raise ValueError unless the names differ, and are not too many."""
        if len(self.levels) > MOST_LEVELS or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"expected at most {MOST_LEVELS} levels that differ from each other, got others")

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
        places = {name: place for place, name in enumerate(self.levels)}
        # One more line for missing cells.
        found = np.array([*(places.get(name, -1) for name in names), len(self.levels) if self.missing else -2])
        codes = np.full(len(cells), len(names), dtype=np.intp)
        np.copyto(codes, cells, where=~missing, casting="unsafe")
        return np.asarray(found[codes], dtype=np.intp)


class Room(NamedTuple):
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
    rooms: tuple[Room, ...] = ()
    """near the ends, where ranks leave too little room between classes"""

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.counts.sum()) + self.missing

    @property
    def of_categories(self) -> bool:
        """Whether the values are names."""
        return bool(self.values.dtype == object)


class PlacedColumn(NamedTuple):
    """The distinct values of a column, sorted, and every cell's place among them; −1 where it is missing."""

    values: NDArray[Any]
    places: NDArray[np.intp]

    @classmethod
    def of(cls, table: Table, j: int) -> "PlacedColumn":
        """Find the values of a column.

        >>> table = Table(np.array([[1.0], [0.0], [np.nan]]), categories={0: np.array(["yes", "no"])})
        >>> PlacedColumn.of(table, 0)
        PlacedColumn(values=array(['no', 'yes'], dtype=object), places=array([ 0,  1, -1]))
        """
        cells = column_values(table, j)
        missing = np.isnan(cells)
        holes = bool(missing.any())
        if j in table.strings:  # of texts only whether they are equal matters
            return cls(np.zeros(0), string_places(table.strings[j]))
        if j not in table.categories:
            values = distinct(cells[~missing] if holes else cells)
            places = np.searchsorted(values, cells)
            places[missing] = -1
            return cls(values, places)
        texts = [str(name) for name in table.categories[j].tolist()]
        codes = np.full(len(cells), len(texts), dtype=np.intp)
        np.copyto(codes, cells, where=~missing, casting="unsafe")
        seen = np.flatnonzero(np.bincount(codes, minlength=len(texts) + 1)[:-1]).tolist()
        names = sorted({texts[code] for code in seen})
        place = {name: i for i, name in enumerate(names)}
        found = np.full(len(texts) + 1, -1, dtype=np.intp)
        found[seen] = [place[texts[code]] for code in seen]
        return cls(np.array(names, dtype=object), found[codes])

    def counted(self, weights: Array | None = None) -> CountedColumn:
        """Return how much weight every value has; without weights, how many rows. Texts count as being there."""
        if len(self.values) == 0 and (self.places >= 0).any():
            return PlacedColumn(np.zeros(1), np.minimum(self.places, 0)).counted(weights)
        counts = np.bincount(self.places + 1, weights, len(self.values) + 1).astype(np.float64)
        return CountedColumn(self.values, counts[1:], float(counts[0]))


def string_places(texts: Any) -> NDArray[np.intp]:
    """Return a number of each text of an Arrow array that depends on nothing but the text; −1 where it is missing."""
    from likely.text.documents import buffers

    keys = (native.hash_texts(buffers(texts)) >> np.uint64(1)).astype(np.intp)
    if texts.null_count:
        keys[texts.is_null().to_numpy(zero_copy_only=False)] = -1
    return keys


def text_keys(texts: Iterable[Any]) -> NDArray[np.uint64]:
    """Return 64 bits of a hash of each text: the same on every machine."""
    from hashlib import blake2b

    encoded = (text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass") for text in texts)
    hashed = b"".join(blake2b(text, digest_size=8).digest() for text in encoded)
    return np.frombuffer(hashed, dtype="<u8").astype(np.uint64)


def counted_columns(table: Table, weights: Array | None = None) -> tuple[CountedColumn, ...]:
    """Count the values of every column."""
    return tuple(PlacedColumn.of(table, j).counted(weights) for j in range(table.columns.width))


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
    kept = np.argsort(-column.counts, kind="stable")[:MOST_LEVELS]  # of equally many, the first by name
    levels = CategoryLevels(tuple(column.values[kept].tolist()), column.missing > 0)
    return levels, np.append(column.counts[kept], [column.missing] if column.missing else [])


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
