"""Where an iteration begins: rows that are read about an origin, and some of them drawn as the first centres.

What finds groups depends on where it begins, so it begins several times. Every draw is by a generator that is given.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.families.base import readable_errors
from likely.statistics import Array
from likely.table import SparseRows, Table

Rows = NDArray[np.int64]

# Rows, about, of which the origin is the mean.
_SAMPLE = 4096


class Points(NamedTuple):
    """Rows as points: what the core reads, and the origin that it takes from them first.

    Parameters
    ----------
    cells
        a matrix of float32 or float64, or the arrays of a sparse one
    origin
        near the mean of every column, or 0 if the rows are sparse; a number of the matrix's kind
    holes
        whether cells are missing
    rows
        the number of rows
    variance
        the mean of the columns' variances
    known
        of each column whether it has a cell at all
    """

    cells: Any
    origin: Array
    holes: bool
    rows: int
    variance: float
    known: NDArray[np.bool_]


def read_points(table: Table, exactly: bool = False) -> Points:
    """Read a table as points; ``exactly``: the variance is that of all rows, and not only of some.

    >>> from likely.table import read_table
    >>> points = read_points(read_table([[1.0, 5.0], [3.0, float("nan")]]))
    >>> points.origin.tolist(), points.holes, points.variance
    ([2.0, 5.0], True, 0.5)
    """
    cells = readable(table)
    if isinstance(cells, tuple):
        return _read_sparse(table, cells)
    with readable_errors(table, "finite numbers"):
        holes = native.kmeans_holes(cells)
        # Without holes some rows tell well enough where the middle is.
        step = 1 if holes or exactly else max(1, table.rows // _SAMPLE)
        some = cells[::step]
        origin, weight, total, square = (
            part[0]
            for part in native.collect_moments(some, None, "real", 1, _one_class(len(some)), None, True, "square")
        )
    n = np.maximum(weight, 1.0)
    variances = np.maximum(square / n - (total / n) ** 2, 0.0)
    centre = _rounded(origin + total / n, variances).astype(cells.dtype).astype(np.float64)
    return Points(cells, centre, holes, table.rows, float(np.mean(variances)), weight > 0)


def _rounded(mean: Array, variances: Array) -> Array:
    """Round means to a power of 2 near the standard deviation.

    Whole numbers stay whole less such an origin, so rows that are equally far from two centres are found to be.
    """
    _, exponents = np.frexp(np.sqrt(variances))
    steps = np.ldexp(1.0, exponents - 1)
    return np.where(variances > 0, np.round(mean / steps) * steps, mean)


def _one_class(rows: int) -> NDArray[np.int32]:
    return np.zeros(rows, dtype=np.int32)


def readable(table: Table) -> Any:
    """Return a table's cells as the core reads them: float32 and float64 as they lie, all else as float64."""
    cells = table.cells
    if not isinstance(cells, SparseRows):
        return cells if cells.dtype.char in "fd" else cells.astype(np.float64)
    values = cells.values if cells.values.dtype.char in "fd" else cells.values.astype(np.float64)
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        row = int(np.searchsorted(cells.starts, at, side="right")) - 1
        raise ValueError(
            f"expected finite numbers in a sparse matrix, got {values[at]} in {table.place(row)} of "
            f"{table.columns.listed([int(cells.indices[at])])}: replace it by a number"
        )
    starts, indices = cells.starts, cells.indices
    rows = np.repeat(np.arange(table.rows, dtype=np.int64), np.diff(starts))
    places = rows * cells.width + indices
    if (np.diff(places) <= 0).any():  # a cell may be written in several parts, which are to be added
        places, part_of = np.unique(places, return_inverse=True)
        values = np.bincount(part_of, values).astype(values.dtype)
        starts = np.searchsorted(places, np.arange(table.rows + 1, dtype=np.int64) * cells.width)
        indices = places % cells.width
    return (
        np.ascontiguousarray(starts, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int32),
        np.ascontiguousarray(values),
        cells.width,
    )


def _read_sparse(table: Table, cells: Any) -> Points:
    _, indices, values, width = cells
    wide = values.astype(np.float64, copy=False)
    total, square = (np.bincount(indices, weights, minlength=width) for weights in (wide, wide**2))
    variance = float(np.mean(square / table.rows - (total / table.rows) ** 2))
    return Points(cells, np.zeros(width), False, table.rows, variance, np.ones(width, dtype=bool))


def kmeans_plus_plus(
    points: Points, k: int, generator: np.random.Generator, weights: Array | None = None, greedy: bool = False
) -> Rows:
    """Draw k rows, each with a chance that grows with the squared distance from those before it.

    ``greedy``: of 2 + log k such rows, each time the one that leaves the least distances (Arthur and Vassilvitskii,
    2007).

    >>> from likely.table import read_table
    >>> points = read_points(read_table([[0.0], [0.0], [9.0]]))
    >>> sorted(set(kmeans_plus_plus(points, 2, np.random.default_rng(0)).tolist()) & {2})
    [2]
    """
    trials = 2 + int(np.log(k)) if greedy else 1
    return native.kmeans_plus_plus(points.cells, weights, points.origin, points.holes, generator.random((k, trials)))


def random_rows(points: Points, k: int, generator: np.random.Generator, weights: Array | None = None) -> Rows:
    """Draw k different rows; one of weight 0 is not drawn, unless there are too few others."""
    chances = None
    if weights is not None and np.count_nonzero(weights) >= k:
        chances = weights / weights.sum()
    return generator.choice(points.rows, k, replace=False, p=chances)


def centres_of_rows(points: Points, rows: Rows) -> Array:
    """Return rows as centres about the origin; a missing cell is there the mean of its column.

    >>> from likely.table import read_table
    >>> centres_of_rows(read_points(read_table([[0.0, 1.0], [4.0, 3.0]])), np.array([1])).tolist()
    [[2.0, 1.0]]
    """
    if isinstance(points.cells, tuple):
        starts, indices, values, width = points.cells
        centres = np.zeros((len(rows), width))
        for i, row in enumerate(rows):
            cells = slice(starts[row], starts[row + 1])
            np.add.at(centres[i], indices[cells], values[cells])
        return centres
    return np.asarray(np.nan_to_num(points.cells[rows].astype(np.float64) - points.origin), dtype=np.float64)


def centres_of_groups(points: Points, codes: NDArray[np.int32], k: int, weights: Array | None = None) -> Array:
    """Return the means of groups of rows about the origin; of a group or column without cells, the origin itself.

    >>> from likely.table import read_table
    >>> points = read_points(read_table([[7.0, 9.0], [3.0, 3.0], [4.0, 1.0], [3.0, 8.0]]))
    >>> (centres_of_groups(points, np.array([0, 0, 1, 1], dtype=np.int32), 2) + points.origin).tolist()
    [[5.0, 6.0], [3.5, 4.5]]
    """
    if isinstance(points.cells, tuple):
        starts, indices, values, width = points.cells
        w = np.ones(points.rows) if weights is None else weights
        sums = np.zeros((k, width))
        rows = np.repeat(np.arange(points.rows), np.diff(starts))
        np.add.at(sums, (codes[rows], indices), values * w[rows])
        n = np.bincount(codes, w, minlength=k)[:, None]
        return np.asarray(sums / np.where(n > 0, n, 1.0))
    origin, weight, total, _ = native.collect_moments(points.cells, None, "real", k, codes, weights, True, "square")
    means = origin - points.origin + total / np.where(weight > 0, weight, 1.0)
    return np.ascontiguousarray(np.where(weight > 0, means, 0.0))
