"""k-means: to each row the nearest centre, to each centre the mean of its rows, until nothing changes.

It is the iteration of :mod:`likely.learn`'s one pass in which the classes are hidden and every row belongs to one of
them wholly. It ends where it began to lead, so it begins several times, and the least inertia is kept.

Labels are those of the centre that is nearest in float64, the first of several that are equally near. The core looks
only where bounds leave a doubt, and those allow for rounding: so the labels are those of looking everywhere.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.starts import (
    Points,
    centres_of_groups,
    centres_of_rows,
    kmeans_plus_plus,
    random_rows,
)
from likely.statistics import Array, Statistics

STARTS = ("k-means++", "greedy k-means++", "rows", "assignment")


class Clustering(NamedTuple):
    """Where an iteration ended.

    Parameters
    ----------
    centres
        clusters × columns, about the origin of the points
    labels
        the cluster of each row
    inertia
        the sum of squares of the cells about their centres
    iterations
        how often the centres were moved
    converged
        whether it ended by itself
    """

    centres: Array
    labels: NDArray[np.int32]
    inertia: float
    iterations: int
    converged: bool


def first_centres(
    points: Points, k: int, start: Any, generator: np.random.Generator, weights: Array | None = None
) -> Array:
    """Return centres to begin with, about the origin; ``start``: one of STARTS, or the centres."""
    if not isinstance(start, str):
        return np.ascontiguousarray(np.nan_to_num(np.asarray(start, dtype=np.float64) - points.origin))
    if start == "assignment":
        codes = generator.integers(0, k, points.rows, dtype=np.int32)
        # Every cluster has a row, however few there are.
        codes[generator.permutation(points.rows)[:k]] = np.arange(k, dtype=np.int32)
        return centres_of_groups(points, codes, k, weights)
    if start == "rows":
        return centres_of_rows(points, random_rows(points, k, generator, weights))
    greedy = start == "greedy k-means++"
    return centres_of_rows(points, kmeans_plus_plus(points, k, generator, weights, greedy))


def iterate(
    points: Points, start: Array, weights: Array | None = None, iterations: int = 300, tolerance: float = 0.0
) -> Clustering:
    """Iterate from given centres until no label changes, or centres move less than ``tolerance`` × the variance.

    >>> from likely.starts import read_points
    >>> from likely.table import read_table
    >>> points = read_points(read_table([[0.0], [1.0], [9.0], [10.0]]))
    >>> found = iterate(points, np.array([[0.0], [1.0]]) - points.origin)
    >>> (found.centres + points.origin).tolist(), found.labels.tolist(), found.inertia
    ([[0.5], [9.5]], [0, 0, 1, 1], 1.0)
    """
    labels, centres, inertia, taken, converged, _ = native.kmeans_run(
        points.cells,
        weights,
        points.origin,
        points.holes,
        np.ascontiguousarray(start),
        iterations,
        tolerance * points.variance,
    )
    return Clustering(centres, labels, inertia, taken, converged)


def restarts(
    points: Points,
    k: int,
    start: Any,
    times: int,
    generator: np.random.Generator,
    weights: Array | None = None,
    iterations: int = 300,
    tolerance: float = 0.0,
) -> Iterator[Clustering]:
    """Begin anew some times."""
    for _ in range(times):
        yield iterate(points, first_centres(points, k, start, generator, weights), weights, iterations, tolerance)


def collect(
    points: Points, centres: Array, weights: Array | None = None
) -> tuple[Statistics, NDArray[np.int32], float]:
    """Give every row of a batch its nearest centre: the sums of each cluster, the labels, and the inertia.

    Sums of batches add up to those of all rows, wherever the batches are.

    >>> from likely.starts import read_points
    >>> from likely.table import read_table
    >>> points = read_points(read_table([[0.0], [1.0], [9.0]]))
    >>> sums, labels, inertia = collect(points, np.array([[0.0], [9.0]]) - points.origin)
    >>> sums.sums["weight"].ravel().tolist(), means(sums).ravel().tolist(), inertia
    ([2.0, 1.0], [0.5, 9.0], 1.0)
    """
    labels, inertia = native.kmeans_nearest(
        points.cells, weights, points.origin, points.holes, np.ascontiguousarray(centres)
    )
    return of_groups(points, labels, len(centres), weights), labels, inertia


def of_groups(points: Points, labels: NDArray[np.int32], k: int, weights: Array | None = None) -> Statistics:
    """Return the weight and sum of every cluster's cells."""
    if isinstance(points.cells, tuple):
        shape = (k, points.cells[3])
        n = np.bincount(labels, weights, minlength=k).astype(np.float64)[:, None]
        weight = np.ascontiguousarray(np.broadcast_to(n, shape))
        return _statistics(weight, centres_of_groups(points, labels, k, weights) * weight, np.zeros(shape))
    origin, weight, total, _ = native.collect_moments(points.cells, None, "real", k, labels, weights, True, "square")
    return _statistics(weight, total, origin)


def about_centres(points: Points, found: Clustering, weights: Array | None = None) -> Statistics:
    """Return the sums of an iteration's clusters about its centres."""
    k = len(found.centres)
    if points.holes:
        return of_groups(points, found.labels, k, weights)
    n = np.bincount(found.labels, weights, minlength=k).astype(np.float64)[:, None]
    weight = np.ascontiguousarray(np.broadcast_to(n, found.centres.shape))
    return _statistics(weight, np.zeros(found.centres.shape), found.centres + points.origin)


def _statistics(weight: Array, total: Array, origin: Array) -> Statistics:
    axes = ("class", "column")
    return Statistics(
        {"weight": weight, "sum": total}, {"weight": axes, "sum": axes}, {"class": np.arange(len(weight))}, origin
    )


def means(sums: Statistics) -> Array:
    """Return the mean of every cluster's cells; NaN where there are none."""
    whole = sums.restored()
    assert whole.origin is not None
    n = whole.sums["weight"]
    return np.asarray(np.where(n > 0, whole.origin + whole.sums["sum"] / np.where(n > 0, n, 1.0), np.nan))
