"""Missing cells: those that were missing in training, too, may say something of the class; others say nothing."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.distinct import random_shares
from likely.stored import Arrays
from likely.table import Block, Table

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MissingPairs:
    """Which pairs of cells were seen in training, the first one missing and the second one missing or there.

    Whether a cell is missing may say much of the class, if cells were missing in training for the same reason. A row
    with a pair that was never seen in training has missing cells for another reason: then all of them say nothing, and
    are marginalised out. So it is if a cell is missing in a column that never had a missing cell.

    Parameters
    ----------
    columns
        the numbers of the columns that have missing cells in training, sorted
    missing, there
        of each pair of them, whether the first was ever missing while the second was missing, or there

    Examples
    --------
    >>> nan = np.nan
    >>> pairs = MissingPairs.seen(Table(np.array([[1.0, 2.0, 3.0], [nan, nan, 4.0]])))
    >>> pairs.uninformative(Table(np.array([[nan, nan, 4.0], [nan, 2.0, 3.0], [nan, nan, nan]])))
    array([[False, False, False],
           [ True, False, False],
           [ True,  True,  True]])
    """

    columns: NDArray[np.int64]
    missing: Mask
    there: Mask

    @classmethod
    def seen(cls, table: Table) -> "MissingPairs":
        """Find the pairs of the rows of a table."""
        missing = missing_cells(table)
        columns = np.flatnonzero(missing.any(axis=0))
        missing = missing[:, columns]
        some = missing[missing.any(axis=1)].astype(np.float32)  # products of floats are fast
        return cls(columns.astype(np.int64), some.T @ some > 0, some.T @ (1 - some) > 0)

    def uninformative(self, table: Table) -> Mask | None:
        """Return which cells are missing and say nothing, rows × columns; None if there are none."""
        missing = missing_cells(table)
        rows = np.flatnonzero(missing.any(axis=1))
        if len(rows) == 0:
            return None
        some = missing[rows]
        before = some[:, self.columns].astype(np.float32)
        new = some.sum(axis=1) > before.sum(axis=1)  # in a column that never had a missing cell
        new |= ((before @ ~self.missing) * before + (before @ ~self.there) * (1 - before)).any(axis=1)
        if not new.any():
            return None
        missing[rows[~new]] = False
        return missing

    def described(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Put what was seen among ``arrays`` under names that begin with ``name``."""
        for part in ("columns", "missing", "there"):
            arrays[f"{name}.{part}"] = getattr(self, part)

    @classmethod
    def from_description(cls, name: str, arrays: Arrays, width: int) -> "MissingPairs":
        """Return the pairs of a table of so many columns that were described, or raise ValueError if there are none."""
        columns, *pairs = (arrays.get(f"{name}.{part}", np.zeros(0)) for part in ("columns", "missing", "there"))
        size = len(columns) if columns.ndim == 1 else -1
        if columns.dtype != np.int64 or not np.isin(columns, np.arange(width)).all() or (np.diff(columns) <= 0).any():
            raise ValueError(f"expected rising numbers of {width} columns in the array '{name}.columns', got others")
        if any(pair.dtype != np.bool_ or pair.shape != (size, size) for pair in pairs):
            raise ValueError(f"expected {size} × {size} booleans in the arrays of {name!r}, got others")
        return cls(columns, *pairs)


def missing_cells(table: Table) -> Mask:
    """Return which cells are missing, rows × columns."""
    return np.asarray(np.isnan(Block(table, None).dense()))


def with_hidden(table: Table, patterns: int, seed: Any) -> Table:
    """Return the rows with more cells missing, completely at random: in each row another share of them.

    Rows take turns with so many patterns.

    >>> with_hidden(Table(np.arange(12.0).reshape(4, 3)), 2, seed=3).cells
    array([[ 0., nan,  2.],
           [ 3.,  4., nan],
           [ 6., nan,  8.],
           [ 9., 10., nan]])
    """
    width = table.columns.width
    drawn = random_shares(seed, patterns * (width + 1)).reshape(patterns, width + 1)
    hidden = (drawn[:, 1:] < drawn[:, :1])[np.arange(table.rows) % patterns]
    cells = np.where(hidden, np.float32(np.nan), Block(table, None).dense())
    strings = {j: texts.take(_places(~hidden[:, j])) for j, texts in table.strings.items()}
    return replace(table, cells=cells, strings=strings)


def _places(there: Mask) -> Any:
    """Return the place of each row that is there, and none for others, as Arrow takes them."""
    import pyarrow as pa

    return pa.array(np.arange(len(there)), mask=~there)
