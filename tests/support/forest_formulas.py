"""Forests in plain NumPy: rows sent down one by one, and p(class) by the formulas, to compare with the core."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.families.forest import SAMPLED, UNKNOWN, Forest, SampledRows
from likely.statistics import Array

LEAF = 65535
_ALPHA, _LEAST = 0.25, 0.03
_MASK = (1 << 64) - 1


def length(counts: Array) -> float:
    """Return −Σ n_k log (n_k / n)."""
    counts = counts[counts > 0]
    return float(-(counts * np.log(counts / counts.sum())).sum())


def mix(x: int) -> int:
    """Return the next number of splitmix64."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Trees:
    """The trees of a forest, and the rows that are counted at every node."""

    def __init__(self, forest: Forest, rows: SampledRows):
        self.forest, self.rows = forest, rows
        _, self.codes, weights = rows.assignment
        self.k = len(rows.assignment.classes)
        self.weights = np.ones(len(self.codes)) if weights is None else weights
        is_split = forest.features != LEAF
        columns = np.where(is_split, forest.features, len(forest.categories))
        is_category = np.append(forest.categories, False)[columns]
        self.masks = forest.masks.reshape(-1, 4)
        self.mask_of = np.cumsum(is_category) - 1
        self.is_category = is_category
        self.child = np.zeros(len(is_split), dtype=np.intp)
        for first, last in zip(forest.starts[:-1], forest.starts[1:], strict=True):
            own = is_split[first:last]
            self.child[first:last] = first + 2 * (np.cumsum(own) - own) + 1
        self.counts = np.zeros((len(is_split), self.k))
        self.own_paths = [[self.path(root, row) for root in forest.starts[:-1].tolist()] for row in rows.cells]
        for row, paths in enumerate(self.own_paths):
            for path in paths:
                self.counts[path, self.codes[row]] += self.weights[row]

    def left(self, node: int, code: int) -> bool:
        """Whether a cell is counted on the left."""
        if code in (0, UNKNOWN):
            return bool(self.forest.missing[node] & 1)
        if self.is_category[node]:
            return bool(int(self.masks[self.mask_of[node], code // 64]) >> (code % 64) & 1)
        return bool(code <= self.forest.cuts[node])

    def path(self, root: int, row: NDArray[np.uint8]) -> list[int]:
        """Return the nodes at which a row is counted."""
        path = [root]
        while self.forest.features[path[-1]] != LEAF:
            node = path[-1]
            code = int(row[self.forest.features[node]])
            path.append(int(self.child[node]) + (not self.left(node, code)))
        return path

    def takes(self, row: int, tree: int) -> bool:
        """Whether a tree was grown on a row."""
        seed = mix(self.forest.seed ^ mix(tree))
        return (mix(int(self.rows.hashes[row]) ^ seed) >> 11) / 2.0**53 < SAMPLED

    def of_tree(self, tree: int, cells: NDArray[np.uint8], without: int | None = None) -> Array:
        """Return p(class) by one tree, perhaps without a row."""
        counts = self.counts
        if without is not None:
            counts = counts.copy()
            counts[self.own_paths[without][tree], self.codes[without]] -= self.weights[without]

        def down(node: int, above: Array, share: float) -> Array:
            n = counts[node].sum()
            p = (counts[node] + _ALPHA * above) / (n + _ALPHA)
            if node == root:
                p = (counts[node] + 0.5) / (n + 0.5 * self.k)
            if self.forest.features[node] == LEAF:
                return p
            code, children = int(cells[self.forest.features[node]]), [int(self.child[node]), int(self.child[node]) + 1]
            if code != UNKNOWN and (code != 0 or self.forest.missing[node] < 2):
                return down(children[not self.left(node, code)], p, share)
            weights = counts[children].sum(axis=1)
            if share < _LEAST or not weights.sum():
                return p
            parts = weights / weights.sum()
            return sum((w * down(c, p, share * w) for c, w in zip(children, parts, strict=True) if w), np.zeros(self.k))

        root = int(self.forest.starts[tree])
        return down(root, np.zeros(self.k), 1.0)

    def probabilities(self, cells: NDArray[np.uint8], *, out_of_bag: bool = False) -> Array:
        """Return p(class) of rows; ``out_of_bag``: by trees that were grown without them, less themselves."""
        trees = range(len(self.forest.starts) - 1)
        found: list[Any] = []
        for i, row in enumerate(cells):
            some = [t for t in trees if not (out_of_bag and self.takes(i, t))]
            found.append(np.mean([self.of_tree(t, row, i if out_of_bag else None) for t in some], axis=0))
        return np.array(found)
