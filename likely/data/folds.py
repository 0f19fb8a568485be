"""Cross-validation folds by a hash of the rows: the same ones are held out, wherever and in whatever order they come.

Rows that are read again for every pass may come in other partitions and orders, so nothing but their content can say
which fold they are in. A hash does, and equal rows share a fold, if they are few. Those that come again and again
would be predicted by models that never saw them, and make one fold larger than the others. So they are counted first,
their copies are assigned at random, as if they were different rows, and every copy stands for all: it has a share
in each fold, that of the copies assigned to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.hashing import Keys, row_keys
from likely.data.table import Table
from likely.statistics import Array, Assignment

HeldOut = Callable[[Table, Assignment], tuple[Table, Assignment]]
"""What leaves out the rows of a fold, and of others the share of each that is in it."""
MOST = 10_000
"""So many distinct rows are counted at most. Each that makes up more than one in so many of all rows is among them."""


class FrequentItems(NamedTuple):
    """Distinct rows by their keys, and how often each comes, at least; at most ``lost`` more (Misra and Gries, 1982).

    >>> some, more = (FrequentItems.of(np.array(keys, dtype=np.uint64)) for keys in ([7, 5, 7], [7]))
    >>> found = some.plus(more)
    >>> found.keys.tolist(), found.counts.tolist(), found.lost
    ([5, 7], [1, 3], 0)
    """

    keys: Keys
    counts: NDArray[np.int64]
    lost: int = 0

    @classmethod
    def of(cls, keys: Keys) -> "FrequentItems":
        """Count keys."""
        return cls(*np.unique(keys, return_counts=True)).fewer()

    def plus(self, other: "FrequentItems") -> "FrequentItems":
        """Return how often rows come here and there."""
        keys, indices = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        counts = np.zeros(len(keys), dtype=np.int64)
        np.add.at(counts, indices, np.concatenate([self.counts, other.counts]))
        return FrequentItems(keys, counts, self.lost + other.lost).fewer()

    def fewer(self) -> "FrequentItems":
        """Return the most frequent ones; as much is taken from each as makes the others none."""
        if len(self.keys) <= MOST:
            return self
        least = int(np.partition(self.counts, -MOST - 1)[-MOST - 1])
        kept = self.counts > least
        return FrequentItems(self.keys[kept], self.counts[kept] - least, self.lost + least)


@dataclass(frozen=True, eq=False)
class HashedFolds:
    """Which fold rows are in."""

    count: int
    seed: str
    """by which rows are hashed"""
    common: Keys
    """the keys of rows that come again and again, sorted"""
    copies: NDArray[np.int64]
    """how many copies of each are in each fold"""

    @classmethod
    def assigned(cls, count: int, seed: str, common: Keys, counts: NDArray[np.int64]) -> "HashedFolds":
        """Assign the copies of common rows at random."""
        generator = np.random.default_rng(list(seed.encode()))
        return cls(count, seed, common, generator.multinomial(counts, np.full(count, 1 / count)))

    def of(self, table: Table, assignment: Assignment) -> tuple[NDArray[np.intp], NDArray[np.int64], Array | None]:
        """Return rows by their numbers, the fold that each is in, and which share of it.

        A row may be there several times, with all shares that it has.
        """
        keys = row_keys(table, assignment, self.seed)
        folds = (keys % np.uint64(self.count)).astype(np.int64)
        indices = np.searchsorted(self.common, keys)
        is_common = np.append(self.common, np.uint64(0))[indices] == keys
        is_common &= indices < len(self.common)
        if not is_common.any():
            return np.arange(len(keys)), folds, None
        single, often = np.flatnonzero(~is_common), np.flatnonzero(is_common)
        copies = self.copies[indices[often]]
        which, where = np.nonzero(copies)
        shares = copies[which, where] / copies.sum(axis=1)[which]
        return (
            np.concatenate([single, often[which]]),
            np.concatenate([folds[single], where]),
            np.concatenate([np.ones(len(single)), shares]),
        )

    def held_out(self, fold: int) -> HeldOut:
        """Return what leaves out a fold: found on the workers, by the content of the rows."""
        return partial(self._rest, fold)

    def _rest(self, fold: int, table: Table, assignment: Assignment) -> tuple[Table, Assignment]:
        """Return the rows that are in other folds, each with the share of it that is there."""
        rows, folds, shares = self.of(table, assignment)
        others = folds != fold
        if shares is None:
            return table.taken(others), assignment.taken(others)
        weights = np.bincount(rows, shares * others, table.rows).astype(np.float64)
        kept = weights > 0
        return table.taken(kept), assignment.taken(kept)._replace(weights=weights[kept])


def whole_weights(assignment: Assignment) -> Assignment:
    """Return the weights of rows whose copies are counted together: the shares of all copies are whole numbers then.

    So in which order they were added does not decide which of two rows is heavier.
    """
    assert assignment.weights is not None
    return assignment._replace(weights=np.asarray(np.round(assignment.weights), dtype=np.float64))


def fold_seed(random_state: Any) -> str:
    """Return a seed of folds from one for random numbers; no model draws rows by the same.

    >>> fold_seed(0) == fold_seed(0), fold_seed(0) == fold_seed(1)
    (True, False)
    """
    return f"fold {np.random.default_rng(random_state).integers(2**63)}"
