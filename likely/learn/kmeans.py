"""k-means: to each row the nearest centre, to each centre the mean of its rows, until nothing changes.

It is the iteration of :mod:`likely.learn.one_pass` in which the classes are hidden and every row belongs to one of them
wholly. It ends where it began to lead, so it begins several times, and the least inertia is kept.

Labels are those of the centre that is nearest in float64, the first of several that are equally near. The core looks
only where bounds leave a doubt, and those allow for rounding: so the labels are those of looking everywhere.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Table
from likely.learn.starts import (
    Generator,
    Order,
    Points,
    centres_of_groups,
    centres_of_rows,
    kmeans_plus_plus,
    random_groups,
    random_rows,
    read_points,
)
from likely.statistics import Array, Statistics

STARTS = ("k-means++", "greedy k-means++", "rows", "assignment")


class UnreadError(ValueError):
    """There may be cells that are missing or infinite, and nobody has looked for them."""


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
    settled
        whether it ended since no row changed its cluster
    shift
        the squares of the centres' last movements, added up
    course
        the inertia before each movement, if it was asked for
    """

    centres: Array
    labels: NDArray[np.int32]
    inertia: float
    iterations: int
    converged: bool
    settled: bool
    shift: float
    course: Array

    @property
    def distinct(self) -> int:
        """How many clusters have rows."""
        return int(np.count_nonzero(np.bincount(self.labels)))

    def beats(self, other: "Clustering | None") -> bool:
        """Say whether the inertia is less, and not by rounding only: clusters may be the same in another order."""
        return other is None or self.inertia < other.inertia * (1 - 1e-12)


def given_centres(points: Points, start: Any) -> Array:
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

    >>> from likely.learn.starts import read_points
    >>> from likely.data.table import read_table
    >>> points = read_points(read_table([[0.0], [1.0], [9.0], [10.0]]))
    >>> found = iterate(points, np.array([[0.0], [1.0]]) - points.origin)
    >>> (found.centres + points.origin).tolist(), found.labels.tolist(), found.inertia
    ([[0.5], [9.5]], [0, 0, 1, 1], 1.0)
    """
    least = tolerance * points.variance
    found = native.kmeans_run(
        points.cells, weights, points.origin, points.holes, np.ascontiguousarray(start), iterations, least, course
    )
    if found is None:
        raise UnreadError("expected rows that were looked at, got cells that may be missing or infinite")
    labels, centres, inertia, taken, settled, shift, told = found
    return Clustering(centres, labels, inertia, taken, settled or shift <= least, settled, shift, told)


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
    """Begin anew some times; ``start``: one of STARTS, or the centres."""
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

    >>> from likely.learn.starts import read_points
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
        points.cells, weights, points.origin, bool(points.holes), np.ascontiguousarray(centres), wanted
    )


def of_groups(points: Points, labels: NDArray[np.int32], k: int, weights: Array | None = None) -> Statistics:
    """Return the weight and sum of every cluster's cells."""
    if isinstance(points.cells, tuple):
        shape = (k, points.cells[3])
        n = np.bincount(labels, weights, minlength=k).astype(np.float64)[:, None]
        weight = np.ascontiguousarray(np.broadcast_to(n, shape))
        return cluster_sums(weight, centres_of_groups(points, labels, k, weights) * weight, np.zeros(shape))
    origin, weight, total, _ = native.collect_moments(points.cells, None, "real", k, labels, weights, True, "square")
    return cluster_sums(weight, total, origin)


def about_centres(points: Points, found: Clustering, weights: Array | None = None) -> Statistics:
    """Return the sums of an iteration's clusters about its centres."""
    k = len(found.centres)
    if points.holes:
        return of_groups(points, found.labels, k, weights)
    n = np.bincount(found.labels, weights, minlength=k).astype(np.float64)[:, None]
    weight = np.ascontiguousarray(np.broadcast_to(n, found.centres.shape))
    return cluster_sums(weight, np.zeros(found.centres.shape), found.centres + points.origin)


def cluster_sums(weight: Array, total: Array, origin: Array) -> Statistics:
    """Return the weight and sum of every cluster's cells about an origin, clusters × columns each."""
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
