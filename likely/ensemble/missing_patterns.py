"""Patterns of missing cells: whether those of a row are like training's; and rows with more cells hidden at random."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.distinct import random_uniforms
from likely.data.table import Block, Table
from likely.lazy import pa
from likely.statistics import Array

Mask = NDArray[np.bool_]


# A pair of cells is unusual if it was never seen though so many were to be expected: that happens once in 20 times.
_EXPECTED = 3.0
# What is left of a difference of equal sums of weights is not more than this share of them.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class MissingPairs:
    """How often pairs of columns were missing together in training.

    Whether a cell is missing may say much of the class, if cells were missing in training for the same reason. If the
    missing cells of a row are unlike those of training, the reason is another: then all of them say nothing, and are
    marginalised out. They are unlike those of training if

    - a cell is missing in a column that never had a missing cell, or
    - two are missing together, or one without the other, as never in training though that was to be expected, or
    - two are missing together as never in training, and with all others that are missing no row was to be expected.

    Parameters
    ----------
    columns
        the numbers of the columns that have missing cells in training, sorted
    counts
        the weight of the rows in which both of two of them are missing
    rows
        the weight of all rows

    Examples
    --------
    >>> nan = np.nan
    >>> train = np.tile([[1.0, 2.0, 3.0], [nan, nan, 4.0]], (10, 1))
    >>> pairs = MissingPairs.seen(Table(train))
    >>> pairs.uninformative(Table(np.array([[nan, nan, 4.0], [nan, 2.0, 3.0], [nan, nan, nan]])))
    array([[False, False, False],
           [ True, False, False],
           [ True,  True,  True]])
    """

    columns: NDArray[np.int64]
    counts: Array
    rows: float

    @classmethod
    def seen(cls, table: Table, weights: Array | None = None) -> "MissingPairs":
        """Count the pairs of the rows of a table."""
        missing = missing_cells(table)
        columns = np.flatnonzero(missing.any(axis=0))
        some = missing.any(axis=1)
        cells = missing[np.ix_(some, columns)].astype(np.float64)
        counts = cells.T @ (cells if weights is None else cells * weights[some, None])
        return cls(columns.astype(np.int64), counts, float(len(missing) if weights is None else weights.sum()))

    @cached_property
    def _unusual(self) -> tuple[NDArray[np.float32], ...]:
        """Return which pairs are unusual, missing and missing, missing and there; and those never missing together."""
        n = np.diagonal(self.counts)
        expected = np.outer(n, n) / max(self.rows, 1.0)
        apart = n[:, None] - self.counts
        unusual = (
            (self.counts == 0) & (expected >= _EXPECTED),
            (apart <= _ROUNDING * n[:, None]) & (n[:, None] - expected >= _EXPECTED),
            self.counts == 0,
        )
        return tuple(each.astype(np.float32) for each in unusual)  # products of floats are fast

    def uninformative(self, table: Table) -> Mask | None:
        """Return which cells are missing and say nothing, rows × columns; None if there are none."""
        missing = missing_cells(table)
        rows = np.flatnonzero(missing.any(axis=1))
        if len(rows) == 0:
            return None
        some = missing[rows]
        before = some[:, self.columns].astype(np.float32)
        together, there, never = self._unusual
        unlike = some.sum(axis=1) > before.sum(axis=1)  # in a column that never had a missing cell
        unlike |= (before @ together * before + before @ there * (1 - before)).any(axis=1)
        logs = np.log(np.maximum(np.diagonal(self.counts), np.finfo(float).tiny) / max(self.rows, 1.0))
        unexpected = np.log(max(self.rows, 1.0)) + before @ logs < -_EXPECTED
        unlike[unexpected] |= (before[unexpected] @ never * before[unexpected]).any(axis=1)
        if not unlike.any():
            return None
        missing[rows[~unlike]] = False
        return missing

    def validate(self) -> None:
        """Raise ValueError unless there is a weight of each pair of columns, whose numbers rise, and of all rows."""
        if self.columns.ndim != 1 or (np.diff(self.columns, prepend=-1) <= 0).any():
            raise ValueError("expected rising numbers of columns with missing cells, got others")
        if self.counts.shape != self.columns.shape * 2 or (self.counts < 0).any() or not self.rows >= 0:
            raise ValueError("expected a weight of all rows and of each pair of columns, got others")


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
    width, rows = table.columns.width, np.arange(table.rows)
    drawn = random_uniforms(seed, patterns * (width + 1)).reshape(patterns, width + 1)
    hidden = (drawn[:, 1:] < drawn[:, :1])[rows % patterns]
    cells = np.where(hidden, np.float32(np.nan), Block(table, None).dense())
    strings = {j: texts.take(pa.array(rows, mask=hidden[:, j])) for j, texts in table.strings.items()}
    return replace(table, cells=cells, strings=strings)
