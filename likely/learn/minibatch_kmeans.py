"""k-means by mini-batches: a few rows at a time move the centres that are nearest to them (Sculley, 2010).

Each centre is the mean of all rows that it was ever nearest to. It costs a look at some rows in place of all, and ends
near the result of :mod:`likely.learn.kmeans`, not at it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.learn.kmeans import Clustering, Generator, Order, Points, centres_of_rows, collect, nearest, random_rows
from likely.statistics import Array

Begin = Callable[[Points, Array], Array]
Say = Callable[[str], None]


class Settings(NamedTuple):
    """How batches are drawn, and when it is enough."""

    batch: int = 1024
    """rows of a batch"""
    epochs: int = 100
    """how many rows are drawn at most, in multiples of all rows"""
    tolerance: float = 0.0
    """end when the squares of the centres' movements add up to no more than this share of the columns' mean variance"""
    patience: int | None = 10
    """end when so many batches in a row did not lower the inertia of a batch, smoothed; None: never"""
    begin_with: int | None = None
    """rows of which the first centres are drawn; by default three batches, or three for each cluster"""
    revive_below: float = 0.01
    """a centre with less than this share of the weight of the heaviest is put where a row of the batch is"""


class RunningCentres(NamedTuple):
    """Centres that follow batches."""

    centres: Array
    """clusters × columns, about the origin"""
    weight: Array
    """of all cells that made them what they are, clusters × columns"""
    idle: float = 0.0
    """the weight of rows since centres of little weight were last looked for"""

    @classmethod
    def started(cls, centres: Array) -> "RunningCentres":
        """Return centres that no row has moved yet."""
        return cls(centres, np.zeros(centres.shape))

    def after(
        self, batch: Points, weights: Array | None, generator: Generator, revive_below: float, say: Say
    ) -> tuple["RunningCentres", float]:
        """Return the centres after a batch, and its inertia before it.

        >>> from likely.learn.kmeans import read_points
        >>> from likely.data.table import read_table
        >>> points = read_points(read_table([[0.0], [2.0], [9.0]]))
        >>> running = RunningCentres.started(np.array([[0.0], [9.0]]) - points.origin)
        >>> moved, inertia = running.after(points, None, np.random.default_rng(0), 0.01, print)
        >>> (moved.centres + points.origin).ravel().tolist(), inertia
        ([1.0, 9.0], 4.0)
        """
        sums, _, inertia = collect(batch, self.centres, weights)
        assert sums.origin is not None
        more = sums.sums["weight"]
        weight = self.weight + more
        from_centres = sums.sums["sum"] + more * (sums.origin - batch.origin - self.centres)
        centres = self.centres + from_centres / np.where(weight > 0, weight, 1.0)
        idle = self.idle + (batch.rows if weights is None else float(weights.sum()))
        moved = RunningCentres(centres, weight, idle)
        if (weight.max(axis=1) == 0).any() or idle >= 10 * len(centres):
            moved = moved._revived(batch, weights, generator, revive_below, say)
        return moved, inertia

    def _revived(
        self, batch: Points, weights: Array | None, generator: Generator, below: float, say: Say
    ) -> "RunningCentres":
        """Put centres of hardly any weight where rows of the batch are, half of its distinct rows at most."""
        counts = self.weight.max(axis=1)
        light = counts < below * counts.max()
        if not light.any():
            return self._replace(idle=0.0)
        order = Order.of(batch)
        most = len(order.distinct(weights)[0]) // 2
        if np.count_nonzero(light) > most:
            light[np.argsort(counts, kind="stable")[most:]] = False
        centres, weight, number = self.centres.copy(), self.weight.copy(), int(np.count_nonzero(light))
        if number:
            say(f"[MiniBatchKMeans] Reassigning {number} cluster centers.")
            centres[light] = centres_of_rows(batch, random_rows(number, order, generator, weights))
            # As much weight as the lightest of the others, so that they are not taken away at once.
            weight[light] = counts[~light].min()
        return RunningCentres(centres, weight)


class MiniBatchResult(NamedTuple):
    """Where it ended."""

    running: RunningCentres
    """the centres"""
    steps: int
    """how many batches they followed"""
    epochs: int
    """how often as many rows as there are were drawn, rounded up"""
    converged: bool
    """whether it ended by itself"""
    inertia: float
    """of a row of a batch, smoothed"""

    def clustering(self, points: Points, weights: Array | None) -> Clustering:
        """Return the clusters of all rows."""
        centres = self.running.centres
        labels, inertia = nearest(points, centres, weights)
        return Clustering(centres, labels, inertia, self.epochs, self.converged, False, 0.0, np.empty(0))


def follow(
    points: Points,
    k: int,
    begin: Begin,
    times: int,
    generator: Generator,
    weights: Array | None = None,
    settings: Settings = Settings(),  # noqa: B008  it never changes
    say: Say = lambda _: None,
) -> MiniBatchResult:
    """Draw batches until it is enough.

    ``begin`` returns centres from some rows and their weights; of as many ``times``, those are taken that suit other
    rows best. Rows are drawn with chances by their weights, and equal ones are one row of more weight.
    """
    rows, counts = Order.of(points).distinct(weights)
    n = len(rows)
    if n == 0:
        raise ValueError("expected rows that count, got none with a positive weight")
    batch = min(settings.batch, n)
    size = init_size(settings, k, n)

    def some() -> NDArray[np.intp]:
        return np.arange(n) if size == n else np.floor(n * generator.random(size)).astype(np.intp)

    others, least, first = some(), np.inf, np.empty(0)
    for i in range(times):
        drawn = some()
        centres = begin(points.some(rows[drawn]), counts[drawn])
        inertia = nearest(points.some(rows[others]), centres, counts[others])[1]
        say(f"Inertia for init {i + 1}/{times}: {inertia}")
        if i == 0 or inertia < least:
            least, first = inertia, centres
    running = RunningCentres.started(first)
    upto = np.cumsum(counts)
    steps = settings.epochs * n // batch
    progress = _Progress(settings, steps, n, batch, settings.tolerance * points.variance, say)
    step, ended = 0, False
    for step in range(1, steps + 1):
        drawn = np.searchsorted(upto, upto[-1] * generator.random(batch), side="right")
        batch_points = points.some(rows[np.minimum(drawn, n - 1)])
        before = running.centres
        running, inertia = running.after(batch_points, None, generator, settings.revive_below, say)
        ended = progress.ended(step, inertia / batch, float(((running.centres - before) ** 2).sum()))
        if ended:
            break
    return MiniBatchResult(running, step, -(-step * batch // n), ended, progress.smooth)


def init_size(settings: Settings, k: int, rows: int) -> int:
    """Return of how many rows the first centres are drawn."""
    size = settings.begin_with
    if size is None:
        size = 3 * min(settings.batch, rows)
    return min(size if size >= k else 3 * k, rows)


class _Progress:
    """Whether it is enough: the inertia of a row of a batch, smoothed, since batches differ by chance."""

    def __init__(self, settings: Settings, steps: int, rows: int, batch: int, least: float, say: Say):
        self.settings, self.steps, self.least, self.say = settings, steps, least, say
        self.rate = min(2.0 * batch / (rows + 1), 1.0)
        self.smooth = self.lowest = np.inf
        self.waited = 0

    def ended(self, step: int, inertia: float, shift: float) -> bool:
        where = f"step {step}/{self.steps}"
        if step == 1:  # the inertia of the first centres
            self.say(f"Minibatch {where}: mean batch inertia: {inertia}")
            return False
        known = np.isfinite(self.smooth)
        self.smooth = self.smooth * (1 - self.rate) + inertia * self.rate if known else inertia
        self.say(f"Minibatch {where}: mean batch inertia: {inertia}, ewa inertia: {self.smooth}")
        if self.least > 0 and shift <= self.least:
            self.say(f"Converged (small centers change) at {where}")
            return True
        self.waited = 0 if self.smooth < self.lowest else self.waited + 1
        self.lowest = min(self.lowest, self.smooth)
        if self.settings.patience is not None and self.waited >= self.settings.patience:
            self.say(f"Converged (lack of improvement in inertia) at {where}")
            return True
        return False
