"""Hidden topics of texts summed out: every row is asked once for each topic that its texts may have."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.density.columns import UNKNOWN, Encoded
from likely.density.trees import log_sum_exp
from likely.statistics import Array

# Topics that make the words less likely than another does by so many nats are left out, and so are those of so little
# probability given all that is known.
_FAR, _NEGLIGIBLE = 60.0, 1e-15
# Rows × topics that are asked together.
_TOGETHER = 1 << 16


def pieces(rows: Encoded) -> Iterator[Encoded]:
    """Cut rows into as many at a time as fit in little memory when each is asked for every topic of its texts."""
    topics = 1
    for cells in rows.texts:
        topics *= cells.logs.shape[1]
    size = max(1, _TOGETHER // topics)
    if not rows.texts or rows.rows <= size:
        yield rows
        return
    for first in range(0, rows.rows, size):
        yield rows.taken(slice(first, first + size))


class Spread(NamedTuple):
    """Rows in which texts have a topic, those of each row one after the other."""

    rows: Encoded
    starts: NDArray[np.int64]
    """where the rows of each row begin"""
    log: Array
    """log p(words | topic)"""

    @classmethod
    def of(cls, rows: Encoded) -> "Spread | None":
        """Return each row with every topic that its texts may have; None if no texts say anything."""
        open_ = [cells for cells in rows.texts if (cells.told & (rows.levels[:, cells.column] < 0)).any()]
        if not open_:
            return None
        index, log = np.arange(rows.rows), np.zeros(rows.rows)
        chosen: dict[int, NDArray[np.int16]] = {}
        for cells in open_:
            logs = cells.logs[index]
            free = (cells.told & (rows.levels[:, cells.column] < 0))[index]
            kept = logs >= logs.max(axis=1, keepdims=True) - _FAR
            kept[~free] = np.arange(logs.shape[1]) == 0
            at, topic = np.nonzero(kept)
            level = np.where(free[at], topic, rows.levels[index[at], cells.column]).astype(np.int16)
            chosen = {j: levels[at] for j, levels in chosen.items()} | {cells.column: level}
            log = log[at] + np.where(free[at], logs[at, topic], 0.0)
            index = index[at]
        found = rows.taken(index)
        levels = found.levels.copy()
        for j, level in chosen.items():
            levels[:, j] = level
        starts = np.searchsorted(index, np.arange(rows.rows))
        return cls(found._replace(levels=levels, texts=()), starts, log)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The row that each is of."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.log)))

    def added(self, values: Array, rows: NDArray[np.bool_] | None = None) -> Array:
        """Return sums over the topics of each row, of values rows × anything; only some ``rows`` may have values."""
        starts = self.starts if rows is None else np.flatnonzero(np.diff(self.owner[rows], prepend=-1))
        return np.asarray(np.add.reduceat(values, starts, axis=0)) if len(starts) else values

    def summed(self, logs: Array) -> Array:
        """Return log Σ exp over the topics of each row, of logarithms of rows × anything, with those of the words."""
        logs = (logs.T + self.log).T
        if not len(self.starts):
            return logs
        top = np.maximum.reduceat(logs, self.starts, axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.added(np.exp(logs - top[self.owner]))) + top)

    def shares(self, logs: Array) -> Array:
        """Return p(topic, column | row) from logarithms of rows × columns."""
        total = log_sum_exp(self.summed(logs))
        if np.isfinite(total).all():
            return np.asarray(np.exp(logs + (self.log - total[self.owner])[:, None]))
        equal = np.zeros_like(logs)  # rows that are impossible
        return self.shares(np.where(np.isfinite(total)[self.owner, None], logs, equal))

    def of_topics(self, kept: NDArray[np.bool_]) -> "Spread":
        """Return some of the rows, at least one of each."""
        starts = np.append(0, np.cumsum(self.added(kept.astype(np.int64))))[:-1] if len(self.starts) else self.starts
        return Spread(self.rows.taken(kept), starts, self.log[kept])

    @staticmethod
    def needed(shares: Array) -> NDArray[np.bool_]:
        """Return the rows whose shares are not negligible."""
        return np.asarray(shares.sum(axis=1) > _NEGLIGIBLE)

    def drawn(self, logs: Array, generator: np.random.Generator) -> Encoded:
        """Draw a topic of each row, by the log density of each."""
        shares = self.shares(logs[:, None])[:, 0]
        running = np.cumsum(shares)
        before = np.append(0.0, running)[self.starts]
        ends = np.append(self.starts[1:], len(shares)) - 1
        at = np.searchsorted(running, before + generator.random(len(self.starts)) * (running[ends] - before))
        return self.rows.taken(np.clip(at, self.starts, ends))


def unsettled(rows: Encoded) -> Encoded:
    """Return rows whose texts have no topic yet."""
    levels = rows.levels.copy()
    for cells in rows.texts:
        levels[:, cells.column] = UNKNOWN
    return rows._replace(levels=levels)
