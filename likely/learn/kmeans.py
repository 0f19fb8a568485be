"""k-means: to each row the nearest centre, to each centre the mean of its rows, until nothing changes.

The result depends on the first centres, so there are several starts, and the least inertia is kept. Every draw is by a
generator that is given, and falls on rows in an order that their cells alone decide, equal rows side by side: so a
weight of 2 is a row twice, and the order in which rows come does not matter.

Labels are those of the centre that is nearest in float64, the first of several that are equally near. The core looks
only where bounds leave a doubt, and those allow for rounding: so the labels are those of looking everywhere.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely import native
from likely.data.table import SparseRows, Table
from likely.families.base import readable_errors
from likely.native import BadCellError
from likely.statistics import Array, Statistics

Rows = NDArray[np.int64]
SparseCells = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], int]
"""A sparse matrix as the core reads it: where rows start, columns, values, and the width."""

# Rows, about, of which the origin is the mean.
_SAMPLE = 4096


class Generator(Protocol):
    """Whatever draws random numbers from 0 to 1: NumPy's generators, the new and the old ones."""

    def random(self, size: int | tuple[int, ...]) -> Array:
        """Return an array of some shape."""


class Points(NamedTuple):
    """Rows as points: what the core reads, and the origin that it takes from them first."""

    cells: Any
    """a matrix of float32 or float64, or the arrays of a sparse one"""
    origin: Array
    """near the mean of every column, or 0 if the rows are sparse; a number of the matrix's kind"""
    missing: bool | None
    """whether cells are missing; None if nobody has looked"""
    rows: int
    """the number of rows"""
    variance: float
    """the mean of the columns' variances"""
    known: NDArray[np.bool_]
    """of each column whether it has a cell at all"""

    def some(self, rows: Rows) -> "Points":
        """Return some of the rows."""
        if isinstance(self.cells, tuple):
            taken = SparseRows(*self.cells).taken(rows)
            return self._replace(cells=tuple(taken), rows=len(rows))
        return self._replace(cells=self.cells[rows], rows=len(rows))


class Order(NamedTuple):
    """The numbers of all rows, equal ones side by side, and of each whether it differs from the one before it."""

    rows: Rows
    fresh: NDArray[np.bool_]

    @classmethod
    def of(cls, points: Points) -> "Order":
        """Put rows in order, by their positions along a direction that is always the same.

        >>> from likely.data.table import read_table
        >>> order = Order.of(read_points(read_table([[4.0], [9.0], [4.0]])))
        >>> order.rows.tolist(), order.fresh.tolist()
        ([0, 2, 1], [True, False, True])
        """
        return cls(*native.kmeans_order(points.cells, 0.5 + np.random.default_rng(0).random(len(points.origin))))

    def distinct(self, weights: Array | None) -> tuple[Rows, Array]:
        """Return one of the rows that are equal, of those that count at all, and the weight of all of them."""
        first = np.flatnonzero(self.fresh)
        if weights is None:
            return self.rows[first], np.diff(first, append=len(self.rows)).astype(np.float64)
        totals = np.add.reduceat(weights[self.rows], first)
        return self.rows[first[totals > 0]], totals[totals > 0]


def read_points(table: Table, exactly: bool = False, weights: Array | None = None, look: bool = True) -> Points:
    """Read a table as points.

    The origin, the variance and which columns have cells are those of rows with their weights: a row of weight 0 has no
    part in them. ``exactly``: the variance is that of all rows, and not only of some. ``look``: whether to look for
    missing cells everywhere, and for infinite ones, which are refused.

    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[1.0, 5.0], [3.0, float("nan")]]))
    >>> points.origin.tolist(), points.missing, points.variance
    ([2.0, 5.0], True, 0.5)
    """
    cells = readable(table)
    if isinstance(cells, tuple):
        return _read_sparse(table, cells, weights)
    with readable_errors(table, "finite numbers"):
        missing = native.kmeans_missing(cells) if look else None
        # Without missing cells some rows tell well enough where the mean is, if they all count alike.
        step = 1 if missing or exactly or weights is not None else max(1, table.rows // _SAMPLE)
        some = cells[::step]
        try:
            origin, weight, total, square = (
                part[0]
                for part in native.collect_moments(
                    some, None, "real", 1, _one_class(len(some)), weights, True, "square"
                )
            )
        except BadCellError:
            if look:
                raise
            return read_points(table, exactly, weights)
    if not look and weights is None and (weight < len(some)).any():
        return read_points(table, exactly, weights)
    n = np.where(weight > 0, weight, 1.0)
    variances = np.maximum(square / n - (total / n) ** 2, 0.0)
    # Where a cell is missing, a first centre has the origin: there it is the mean, and rounding must not move it.
    centre = _rounded(origin + total / n, variances, digits=20 if missing else 0).astype(cells.dtype).astype(np.float64)
    known = weight > 0
    if missing and weights is not None and not known.all():  # only rows of weight 0 have cells there
        cells = np.where(known, cells, np.asarray(np.nan, dtype=cells.dtype))
    return Points(cells, centre, missing, table.rows, float(np.mean(variances)), known)


def _rounded(mean: Array, variances: Array, digits: int) -> Array:
    """Round means to a power of 2 near the standard deviation, or so many binary digits below it.

    Whole numbers less such an origin have few digits, so rows that are equally far from two centres are found to be,
    and means of the same rows in another order, or repeated by weights, are the same.
    """
    _, exponents = np.frexp(np.sqrt(variances))
    steps = np.ldexp(1.0, exponents - 1 - digits)
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
            f"expected finite numbers in a sparse matrix, got {values[at]} in {table.row_name(row)} of "
            f"{table.columns.listed([int(cells.indices[at])])}: replace it by a number"
        )
    starts, indices = cells.starts, cells.indices
    rows = np.repeat(np.arange(table.rows, dtype=np.int64), np.diff(starts))
    positions = rows * cells.width + indices
    if (np.diff(positions) <= 0).any():  # a cell may be written in several parts, which are to be added
        positions, part_of = np.unique(positions, return_inverse=True)
        values = np.bincount(part_of, values).astype(values.dtype)
        starts = np.searchsorted(positions, np.arange(table.rows + 1, dtype=np.int64) * cells.width)
        indices = positions % cells.width
    return (
        np.ascontiguousarray(starts, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int32),
        np.ascontiguousarray(values),
        cells.width,
    )


def _read_sparse(table: Table, cells: SparseCells, weights: Array | None) -> Points:
    starts, indices, values, width = cells
    wide = values.astype(np.float64, copy=False)
    counts = 1.0 if weights is None else np.repeat(weights, np.diff(starts))
    total, square = (np.bincount(indices, counts * powers, minlength=width) for powers in (wide, wide**2))
    n = table.rows if weights is None else max(weights.sum(), np.finfo(float).tiny)
    variance = float(np.mean(np.maximum(square / n - (total / n) ** 2, 0.0)))
    return Points(cells, np.zeros(width), False, table.rows, variance, np.ones(width, dtype=bool))


def kmeans_plus_plus(
    points: Points, k: int, order: Order, generator: Generator, weights: Array | None = None, greedy: bool = False
) -> Rows:
    """Draw k rows, each with a chance that grows with the squared distance from those before it.

    ``greedy``: of 2 + log k such rows, each time the one that leaves the least distances (Arthur and Vassilvitskii,
    2007).

    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[0.0], [0.0], [9.0]]))
    >>> sorted(set(kmeans_plus_plus(points, 2, Order.of(points), np.random.default_rng(0)).tolist()) & {2})
    [2]
    """
    trials = 2 + int(np.log(k)) if greedy else 1
    chances = generator.random((k, trials))
    return native.kmeans_plus_plus(points.cells, weights, points.origin, bool(points.missing), order.rows, chances)


def random_rows(k: int, order: Order, generator: Generator, weights: Array | None = None) -> Rows:
    """Draw k rows that differ, each with a chance that grows with its weight; where there are too few, again and again.

    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[4.0], [9.0], [4.0]]))
    >>> sorted(random_rows(2, Order.of(points), np.random.default_rng(0)).tolist())
    [0, 1]
    """
    rows, weights = order.distinct(weights)
    # Whoever waits for k of several things that happen at such rates has drawn k of them.
    waits = -np.log1p(-generator.random(len(rows))) / weights
    return np.resize(rows[np.argsort(waits)[:k]], k)


def random_groups(k: int, order: Order, generator: Generator, weights: Array | None = None) -> NDArray[np.int32]:
    """Put rows into k groups by chance, equal ones into the same; every group has a row if there are enough.

    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[4.0], [9.0], [4.0]]))
    >>> sorted(random_groups(2, Order.of(points), np.random.default_rng(0))[:2].tolist())
    [0, 1]
    """
    rows, _ = order.distinct(weights)
    groups = np.floor(k * generator.random(len(rows))).astype(np.int32)
    some = np.argsort(generator.random(len(rows)))[:k]
    groups[some] = np.arange(len(some), dtype=np.int32)
    number = np.cumsum(order.fresh) - 1
    of_row = np.empty_like(number)
    of_row[order.rows] = number
    codes = np.zeros(len(number), dtype=np.int32)
    codes[of_row[rows]] = groups
    return codes[of_row]


def centres_of_rows(points: Points, rows: Rows) -> Array:
    """Return rows as centres about the origin; a missing cell is there the mean of its column.

    >>> from likely.data.table import read_table
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

    >>> from likely.data.table import read_table
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


STARTS = ("k-means++", "greedy k-means++", "rows", "assignment")


class UnreadError(ValueError):
    """There may be cells that are missing or infinite, and nobody has looked for them."""


class Clustering(NamedTuple):
    """Where an iteration ended."""

    centres: Array
    """clusters × columns, about the origin of the points"""
    labels: NDArray[np.int32]
    """the cluster of each row"""
    inertia: float
    """the sum of squares of the cells about their centres"""
    iterations: int
    """how often the centres were moved"""
    converged: bool
    """whether it ended by itself"""
    unchanged: bool
    """whether it ended since no row changed its cluster"""
    shift: float
    """the squares of the centres' last movements, added up"""
    course: Array
    """the inertia before each movement, if it was asked for"""

    @property
    def distinct(self) -> int:
        """How many clusters have rows."""
        return int(np.count_nonzero(np.bincount(self.labels)))

    def beats(self, other: "Clustering | None") -> bool:
        """Say whether the inertia is less, and not by rounding only: clusters may be the same in another order."""
        return other is None or self.inertia < other.inertia * (1 - 1e-12)


def given_centres(points: Points, start: ArrayLike) -> Array:
    """Return centres about the origin."""
    return np.ascontiguousarray(np.nan_to_num(np.asarray(start, dtype=np.float64) - points.origin))


def drawn_centres(
    points: Points, k: int, start: str, order: Order, generator: Generator, weights: Array | None = None
) -> Array:
    """Return centres to begin with, about the origin; ``start``: one of STARTS."""
    if start == "assignment":
        return centres_of_groups(points, random_groups(k, order, generator, weights), k, weights)
    if start == "rows":
        return centres_of_rows(points, random_rows(k, order, generator, weights))
    greedy = start == "greedy k-means++"
    return centres_of_rows(points, kmeans_plus_plus(points, k, order, generator, weights, greedy))


def iterate(
    points: Points,
    start: Array,
    weights: Array | None = None,
    iterations: int = 300,
    tolerance: float = 0.0,
    course: bool = False,
) -> Clustering:
    """Iterate from given centres until no label changes, or centres move less than ``tolerance`` × the variance.

    Raises UnreadError if nobody has looked for missing cells, and there may be some.

    >>> from likely.learn.kmeans import read_points
    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[0.0], [1.0], [9.0], [10.0]]))
    >>> found = iterate(points, np.array([[0.0], [1.0]]) - points.origin)
    >>> (found.centres + points.origin).tolist(), found.labels.tolist(), found.inertia
    ([[0.5], [9.5]], [0, 0, 1, 1], 1.0)
    """
    least = tolerance * points.variance
    found = native.kmeans_run(
        points.cells, weights, points.origin, points.missing, np.ascontiguousarray(start), iterations, least, course
    )
    if found is None:
        raise UnreadError("expected rows that were looked at, got cells that may be missing or infinite")
    labels, centres, inertia, taken, unchanged, shift, inertias = found
    return Clustering(centres, labels, inertia, taken, unchanged or shift <= least, unchanged, shift, inertias)


def restarts(
    points: Points,
    k: int,
    start: Any,
    times: int,
    generator: Generator,
    weights: Array | None = None,
    iterations: int = 300,
    tolerance: float = 0.0,
) -> Iterator[Clustering]:
    """Start some times; ``start``: one of STARTS, or the centres."""
    order = Order.of(points) if isinstance(start, str) else None
    for _ in range(times):
        if order is None:
            first = given_centres(points, start)
        else:
            first = drawn_centres(points, k, start, order, generator, weights)
        yield iterate(points, first, weights, iterations, tolerance)


def collect(
    points: Points, centres: Array, weights: Array | None = None
) -> tuple[Statistics, NDArray[np.int32], float]:
    """Give every row of a batch its nearest centre: the sums of each cluster, the labels, and the inertia.

    Sums of batches add up to those of all rows, wherever the batches are.

    >>> from likely.learn.kmeans import read_points
    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[0.0], [1.0], [9.0]]))
    >>> sums, labels, inertia = collect(points, np.array([[0.0], [9.0]]) - points.origin)
    >>> sums.sums["weight"].ravel().tolist(), means(sums).ravel().tolist(), inertia
    ([2.0, 1.0], [0.5, 9.0], 1.0)
    """
    labels, inertia = nearest(points, centres, weights)
    return of_groups(points, labels, len(centres), weights), labels, inertia


def nearest(
    points: Points, centres: Array, weights: Array | None = None, wanted: bool = True
) -> tuple[NDArray[np.int32], float]:
    """Return the nearest centre of each row, and the inertia; ``wanted``: whether that is wanted, else it is NaN."""
    return native.kmeans_nearest(
        points.cells, weights, points.origin, bool(points.missing), np.ascontiguousarray(centres), wanted
    )


def of_groups(points: Points, labels: NDArray[np.int32], k: int, weights: Array | None = None) -> Statistics:
    """Return the weight and sum of every cluster's cells."""
    if isinstance(points.cells, tuple):
        n = np.bincount(labels, weights, minlength=k).astype(np.float64)[:, None]
        total = centres_of_groups(points, labels, k, weights) * n
        return cluster_sums(n, total, np.zeros(total.shape))
    origin, weight, total, _ = native.collect_moments(points.cells, None, "real", k, labels, weights, True, "square")
    return cluster_sums(weight, total, origin)


def about_centres(points: Points, found: Clustering, weights: Array | None = None) -> Statistics:
    """Return the sums of an iteration's clusters about its centres."""
    k = len(found.centres)
    if points.missing:
        return of_groups(points, found.labels, k, weights)
    n = np.bincount(found.labels, weights, minlength=k).astype(np.float64)[:, None]
    return cluster_sums(n, np.zeros(found.centres.shape), found.centres + points.origin)


def cluster_sums(weight: Array, total: Array, origin: Array) -> Statistics:
    """Return the weight and sum of every cluster's cells about an origin; a weight may be that of all columns."""
    sums = {"weight": np.ascontiguousarray(np.broadcast_to(weight, total.shape)), "sum": total}
    return Statistics(sums, dict.fromkeys(sums, ("class", "column")), {"class": np.arange(len(total))}, origin)


def means(sums: Statistics) -> Array:
    """Return the mean of every cluster's cells; NaN where there are none."""
    whole = sums.restored()
    assert whole.origin is not None
    n = whole.sums["weight"]
    return np.asarray(np.where(n > 0, whole.origin + whole.sums["sum"] / np.where(n > 0, n, 1.0), np.nan))


def merged(everyone: Sequence[Statistics], around: Array) -> Statistics:
    """Put the clusters of several models together: k-means of their means with their weights, from centres ``around``.

    >>> both = ([[1.0], [8.0]], [[9.0], [2.0]])
    >>> one, two = (cluster_sums(np.ones((2, 1)), np.zeros((2, 1)), np.array(at)) for at in both)
    >>> means(merged([one, two], np.array([[1.0], [8.0]]))).ravel().tolist()
    [1.5, 8.5]
    """
    centres = np.concatenate([means(one) for one in everyone])
    weight = np.concatenate([one.restored().sums["weight"] for one in everyone])
    counts = weight.max(axis=1)
    there = counts > 0
    centres, weight = centres[there], weight[there]
    counts = counts[there]
    points = read_points(Table(centres), weights=counts)
    found = iterate(points, given_centres(points, around), counts)
    origin = found.centres + points.origin
    n, total = np.zeros(origin.shape), np.zeros(origin.shape)
    np.add.at(n, found.labels, weight)
    np.add.at(total, found.labels, weight * np.nan_to_num(centres - origin[found.labels]))
    return cluster_sums(n, total, origin)
