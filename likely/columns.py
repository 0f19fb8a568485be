"""Single columns of a table, and the levels of a column of categories, known by their names."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.statistics import Array
from likely.stored import stored_value
from likely.table import Block, Table

MOST_LEVELS = 50
"""How many levels of a column have a name; rarer ones say nothing."""


class CategoryLevels(NamedTuple):
    """The names of a column's levels, and whether missing cells are one more, the last."""

    names: tuple[str, ...]
    missing: bool

    @classmethod
    def from_description(cls, described: Any) -> "CategoryLevels":
        """Return the levels that a description lists."""
        names, missing = stored_value(described, "levels", list), stored_value(described, "missing", bool)
        if len(names) > MOST_LEVELS or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"expected at most {MOST_LEVELS} levels, texts that differ from each other, got others")
        return cls(tuple(names), missing)


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


def seen_levels(cells: Array, names: Sequence[Any] | NDArray[Any]) -> tuple[CategoryLevels, Array]:
    """Return the most frequent levels of a column, and how many rows have each; missing cells are one if there are any.

    >>> seen_levels(np.array([0.0, 1.0, 1.0, np.nan]), ["no", "yes"])
    (CategoryLevels(names=('yes', 'no'), missing=True), array([2., 1., 1.]))
    """
    there = cells[~np.isnan(cells)].astype(np.intp)
    counts = np.bincount(there, minlength=len(names))
    texts = [str(name) for name in np.asarray(names).tolist()]
    kept = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (-counts[code], texts[code]))[:MOST_LEVELS]
    missing = len(cells) - len(there)
    levels = CategoryLevels(tuple(texts[code] for code in kept), missing > 0)
    return levels, np.array([*counts[kept], *([missing] if missing else [])], dtype=np.float64)


def level_codes(table: Table, j: int, levels: CategoryLevels) -> NDArray[np.intp]:
    """Return every row's place among the levels of a column, −1 where it is at none of them."""
    cells = column_values(table, j)
    missing = np.isnan(cells)
    if j not in table.categories:
        if not missing.all():
            example = cells[~missing][0]
            name = table.columns.listed([j])
            raise TypeError(f"expected categories in {name}, as in the rows the model was fitted on, got {example:g}")
        names: list[str] = []
    else:
        names = [str(name) for name in table.categories[j].tolist()]
    places = {name: place for place, name in enumerate(levels.names)}
    # One more line for missing cells.
    found = np.array([*(places.get(name, -1) for name in names), len(levels.names) if levels.missing else -1])
    codes = np.full(len(cells), len(names), dtype=np.intp)
    np.copyto(codes, cells, where=~missing, casting="unsafe")
    return np.asarray(found[codes], dtype=np.intp)
