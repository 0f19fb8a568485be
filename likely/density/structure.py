"""Which columns depend on which: mutual information of pairs, and the trees that have the most of it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.density.columns import Codes
from likely.statistics import Array

Ints = NDArray[np.int64]


class Structure(NamedTuple):
    """A tree: the parent of every column (−1: the root), and columns in an order in which parents come first."""

    parents: NDArray[np.int32]
    order: NDArray[np.int32]


class Pairs(NamedTuple):
    """Levels column after column, and the pairs of columns that may be neighbours in a tree."""

    codes: Codes
    """columns × rows"""
    levels: NDArray[np.int32]
    pairs: Ints
    """pairs × 2"""

    @classmethod
    def of(cls, codes: Codes, levels: NDArray[np.int32]) -> "Pairs":
        """Return all pairs of columns."""
        one, other = np.tril_indices(codes.shape[1], -1)
        return cls(np.ascontiguousarray(codes.T), levels, np.stack([one, other], axis=1).astype(np.int64))

    def information(self, weights: Array | None = None) -> tuple[Array, Array]:
        """Return the mutual information of columns × columns, and the weight of the rows in which both are there."""
        found, total = self.information_by_component(None if weights is None else weights[:, None])
        return found[0], total[0]

    def information_by_component(self, weights: Array | None) -> tuple[Array, Array]:
        """Return the same for each column of weights, rows × components: components × columns × columns."""
        found, total = native.mutual_information(self.codes, self.levels, self.pairs, weights)
        d = len(self.levels)
        square = np.zeros((2, found.shape[1], d, d))
        for out, values in zip(square, (found, total), strict=True):
            out[:, self.pairs[:, 0], self.pairs[:, 1]] = values.T
            out[:, self.pairs[:, 1], self.pairs[:, 0]] = values.T
        return square[0], square[1]


def maximum_tree(information: Array, root: int | None = None) -> Structure:
    """Return the tree of the greatest sum of mutual information (Chow and Liu, 1968), by Prim's algorithm.

    The root is by default the column that has most of it with all others.
    """
    d = len(information)
    root = int(information.sum(axis=0).argmax()) if root is None else root
    parents = np.full(d, -1, dtype=np.int32)
    best, nearest = information[root].copy(), np.full(d, root)
    inside = np.zeros(d, dtype=bool)
    inside[root] = True
    order = [root]
    for _ in range(d - 1):
        column = int(np.where(inside, -np.inf, best).argmax())
        parents[column] = nearest[column]
        inside[column] = True
        order.append(column)
        nearer = ~inside & (information[column] > best)
        nearest[nearer], best[nearer] = column, information[column][nearer]
    return Structure(parents, np.array(order, dtype=np.int32))


def entropies(codes: Codes, levels: NDArray[np.int32], weights: Array | None = None) -> Array:
    """Return the entropy of the levels of every column, of rows where it is there."""
    found = np.zeros(len(levels))
    for j, size in enumerate(levels.tolist()):
        there = codes[:, j] >= 0
        counts = np.bincount(codes[there, j], None if weights is None else weights[there], minlength=size)
        p = counts[counts > 0] / max(counts.sum(), 1e-300)
        found[j] = -(p * np.log(p)).sum()
    return found
