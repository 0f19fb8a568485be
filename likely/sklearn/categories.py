"""Columns of text read as numbers: the categories of a column are numbered in the order of the alphabet."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.labels import is_missing
from likely.data.table import Columns, Table, column_names, read_table
from likely.families import on_one_line
from likely.statistics import Array, JointStatistics, Statistics

Categories = Mapping[int, tuple[str, ...]]
"""Of each column of text its categories, sorted. The cells of all other columns are numbers."""


def read_learning(data: Any, known: Categories) -> tuple[Table, Categories]:
    """Read rows to learn from, and return the categories known with those that are new.

    >>> table, categories = read_learning([["red", 1], ["blue", 0], [None, 2]], {0: ("green", "red")})
    >>> table.cells
    array([[ 2.,  1.],
           [ 0.,  0.],
           [nan,  2.]])
    >>> categories
    {0: ('blue', 'green', 'red')}
    """
    cells = _cells_with_text(data, known)
    if cells is None:
        return read_table(data), known
    categories = united(known, {j: column.categories for j, column in enumerate(cells.each) if column.categories})
    return cells.numbered(categories), categories


def read_known(data: Any, known: Categories) -> Table:
    """Read rows to answer about: a category that is not known is missing."""
    cells = _cells_with_text(data, known)
    return read_table(data) if cells is None else cells.numbered(known)


def united(one: Categories, other: Categories) -> Categories:
    """Return the categories of both."""
    if one == other:
        return one
    return {j: tuple(sorted({*one.get(j, ()), *other.get(j, ())})) for j in sorted({*one, *other})}


def translated(statistics: JointStatistics, before: Categories, after: Categories, columns: Columns) -> JointStatistics:
    """Return statistics of categories by the numbers that they have among other ones."""
    (block,) = statistics.blocks
    labels = block.labels["category"].copy()
    for j, categories in after.items():
        here = labels["column"] == j
        if j in before:
            number = {category: i for i, category in enumerate(categories)}
            numbers = np.array([number.get(category, -1) for category in before[j]])
            labels["value"][here] = numbers[labels["value"][here].astype(np.int64)]
        elif here.any():
            raise ValueError(
                f"expected numbers in {columns.listed([j])}, as were learned before, got text such as {categories[0]!r}"
            )
    return replace(statistics, blocks=(replace(block, labels={**block.labels, "category": labels}),))


def without_unseen(
    statistics: JointStatistics, known: Categories, columns: Columns
) -> tuple[JointStatistics, Categories]:
    """Return the statistics and the categories of text without those that no row has, or has no longer."""
    (block,) = statistics.blocks
    counts, labels = block.sums["count"], block.labels["category"]
    seen = counts.any(axis=0)
    numbers = {j: labels["value"][seen & (labels["column"] == j)].astype(np.int64).tolist() for j in known}
    left = {j: tuple(known[j][i] for i in numbers[j]) for j in known if numbers[j]}
    if left == known:
        return statistics, known
    sums, names = {**block.sums, "count": counts[:, seen]}, {**block.labels, "category": labels[seen]}
    statistics = replace(statistics, blocks=(replace(block, sums=sums, labels=names),))
    return translated(statistics, known, left, columns), left


def check_categories(categories: Any, statistics: Statistics, width: int) -> None:
    """Raise ValueError unless these are categories of text, and a column's numbers in the statistics are among them."""
    if not isinstance(categories, dict) or not all(type(j) is int and 0 <= j < width for j in categories):
        raise ValueError(f"expected categories of the columns 0 to {width - 1}, got {on_one_line(categories)}")
    largest = np.zeros(width)
    np.maximum.at(largest, statistics.labels["category"]["column"], statistics.labels["category"]["value"])
    for j, names in categories.items():
        text = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        if not text or not names or list(names) != sorted(set(names)):
            raise ValueError(f"expected categories of text, sorted and each once, got {on_one_line(names)}")
        if largest[j] >= len(names):
            raise ValueError(f"expected numbers of {len(names)} categories in column {j}, got others")


def decoded(x: Array, categories: Categories) -> NDArray[Any]:
    """Return rows with the categories in place of their numbers; None for those that have no name yet."""
    if not categories:
        return x
    cells = x.astype(object)
    for j, names in categories.items():
        cells[:, j] = [names[int(number)] if number < len(names) else None for number in x[:, j]]
    return cells


@dataclass(frozen=True)
class _Column:
    """The distinct cells of a column, and the index of each row's cell among them."""

    distinct: tuple[Any, ...]
    indices: NDArray[np.int64]
    where: str

    @classmethod
    def read(cls, cells: NDArray[Any], where: str) -> "_Column":
        found: dict[Any, int] = {}
        try:
            indices = np.fromiter((found.setdefault(cell, len(found)) for cell in cells), np.int64, len(cells))
        except TypeError:
            unfit = next((cell for cell in cells if not isinstance(cell, Hashable)), cells[0])
            raise TypeError(_unfit(unfit, where)) from None
        return cls(tuple(found), indices, where)

    @property
    def categories(self) -> tuple[str, ...]:
        """The distinct text."""
        return tuple(cell for cell in self.distinct if isinstance(cell, str))

    def numbers(self, categories: tuple[str, ...] | None) -> Array:
        """Return each row's number: that of its category, NaN if it is not known, or the cell itself if all are."""
        if categories is None:
            numbers = [self._number(cell) for cell in self.distinct]
        else:
            number = {category: float(i) for i, category in enumerate(categories)}
            numbers = [self._index(cell, number) for cell in self.distinct]
        return np.array(numbers, dtype=np.float64)[self.indices]

    def _number(self, cell: Any) -> float:
        if is_missing(cell):
            return np.nan
        if isinstance(cell, str):
            raise ValueError(f"expected numbers in {self.where}, as were learned before, got {cell!r}")
        try:
            return float(cell)
        except (TypeError, ValueError):
            raise TypeError(_unfit(cell, self.where)) from None

    def _index(self, cell: Any, number: dict[str, float]) -> float:
        if isinstance(cell, str):
            return number.get(cell, np.nan)
        if is_missing(cell):
            return np.nan
        raise ValueError(
            f"expected text in {self.where}, as in its other rows, got {cell!r}: write all its categories as text"
        )


@dataclass(frozen=True)
class _Cells:
    """The columns of a table that has text in some of them."""

    each: tuple[_Column, ...]
    names: tuple[str, ...] | None

    def numbered(self, categories: Categories) -> Table:
        """Return the cells as numbers."""
        columns = [column.numbers(categories.get(j)) for j, column in enumerate(self.each)]
        return Table(np.column_stack(columns), self.names)


def _cells_with_text(data: Any, known: Categories) -> _Cells | None:
    """Return the columns if any of them may be of text, else None."""
    numeric = isinstance(data, np.ndarray) and data.dtype.kind in "fiub"
    if isinstance(data, Table) or hasattr(data, "tocsr") or (numeric and not known):
        return None
    matrix = data if isinstance(data, np.ndarray) else np.asarray(data)
    if matrix.ndim != 2 or 0 in matrix.shape or (matrix.dtype.kind not in "OUT" and not known):
        return None
    if matrix.dtype.kind == "U" and matrix is not data:
        matrix = np.asarray(data, dtype=object)  # numbers among text would have become text
    names = column_names(data)
    columns = Columns(matrix.shape[1], names)
    cells = matrix.astype(object)
    return _Cells(tuple(_Column.read(cells[:, j], columns.listed([j])) for j in range(columns.width)), names)


def _unfit(cell: Any, where: str) -> str:
    return f"expected text or numbers in {where}, got {cell!r}: the argument must be a string or a number"
