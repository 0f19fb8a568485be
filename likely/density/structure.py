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
    def of(cls, codes: Codes, levels: NDArray[np.int32], pairs: Ints | None = None) -> "Pairs":
        """Return these pairs of columns, or all."""
        return cls(np.ascontiguousarray(codes.T), levels, all_pairs(len(levels)) if pairs is None else pairs)

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


def all_pairs(d: int) -> Ints:
    """Return all pairs of d columns, the greater one first."""
    return np.stack(np.tril_indices(d, -1), axis=1).astype(np.int64)


def neighbours(d: int, pairs: Ints) -> NDArray[np.bool_]:
    """Return which of d columns may be neighbours of which."""
    found = np.zeros((d, d), dtype=bool)
    found[pairs[:, 0], pairs[:, 1]] = found[pairs[:, 1], pairs[:, 0]] = True
    return found


# Beyond so many pairs of columns only some are candidates: so many partners of each column, those of the most mutual
# information, which is found on so many rows.
MOST_PAIRS, _PARTNERS, _SCREENED = 5_000, 16, 4_096


def bounded(d: int) -> bool:
    """Say whether d columns have too many pairs for all of them to be candidates."""
    return d * (d - 1) // 2 > MOST_PAIRS


class Candidates(NamedTuple):
    """Pairs of columns that may be neighbours in a tree: all, or where they are too many, the strongest of each column.

    Those of the tree of the most mutual information are among them, so that they connect all columns.
    """

    pairs: Ints
    """pairs × 2, the greater column first"""
    screened: Array | None = None
    """columns × columns: the information of all pairs on first rows; None if all pairs are candidates"""

    @classmethod
    def of(cls, codes: Codes, levels: NDArray[np.int32], weights: Array | None = None) -> "Candidates":
        """Return the candidates of rows in an order that has nothing to do with their content."""
        d = len(levels)
        if not bounded(d):
            return cls(all_pairs(d))
        first = None if weights is None else weights[:_SCREENED]
        information = Pairs.of(codes[:_SCREENED], levels).information(first)[0]
        strongest = np.argsort(-information, axis=1, kind="stable")[:, :_PARTNERS]
        chosen = np.zeros((d, d), dtype=bool)
        np.put_along_axis(chosen, strongest, True, axis=1)
        chosen &= information > 0
        parents = maximum_tree(information).parents
        chosen[np.flatnonzero(parents >= 0), parents[parents >= 0]] = True
        pairs = np.ascontiguousarray(np.argwhere(np.tril(chosen | chosen.T, -1)), dtype=np.int64)
        return cls(pairs, information)

    @property
    def of_columns(self) -> NDArray[np.bool_] | None:
        """Which columns may be neighbours of which, columns × columns; None if all may."""
        return None if self.screened is None else neighbours(len(self.screened), self.pairs)

    def information(self, codes: Codes, levels: NDArray[np.int32], weights: Array | None = None) -> Array:
        """Return the mutual information of columns × columns; of pairs that are no candidates as it was screened."""
        found = Pairs.of(codes, levels, self.pairs).information(weights)[0]
        chosen = self.of_columns
        return found if chosen is None or self.screened is None else np.where(chosen, found, self.screened)


def maximum_tree(information: Array, among: NDArray[np.bool_] | None = None, root: int | None = None) -> Structure:
    """Return the tree of the greatest sum of mutual information (Chow and Liu, 1968), by Prim's algorithm.

    Edges are among some, columns × columns, that connect all columns, or any. The root is by default the column that
    has most of it with all others.
    """
    d = len(information)
    root = int(information.sum(axis=0).argmax()) if root is None else root
    if among is not None:
        information = np.where(among, information, -np.inf)
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
