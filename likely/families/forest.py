"""Forests of classification trees: their shape is fixed, and class counts of rows at their leaves add and subtract."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.hashing import Keys
from likely.data.table import Block
from likely.families.base import Codes, Density, Family
from likely.statistics import NOT_LEARNED, Array, Assignment, Labels, Statistics, class_proportions, union

CellCodes = NDArray[np.uint8]

UNKNOWN = 255
"""The code of a cell that is missing for another reason than those of its column were when trees were grown."""
MOST = 65_534
"""So many columns a forest can have, and classes one more."""
SAMPLED = 0.632
"""The share of rows that each tree is grown on."""
# A node of weight n says (counts + α p of the parent) / (n + α).
_ALPHA = 0.25
# A row whose cell is missing where none was goes to both sides, until its share is less than this.
_LEAST_SHARE = 0.03
# What is left of a difference of equal weights is not more than this share of them.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LeafStatistics(Statistics):
    """The weight of every pair of a leaf and a class that it has, the classes of one leaf after those of another.

    Parameters
    ----------
    starts
        where the classes of each leaf begin among the pairs, and the last ones end
    codes
        the index of each pair's class among the labels

    Examples
    --------
    >>> one = LeafStatistics.of(np.array([0, 1, 1]), np.array([0], np.int32), np.array([2.0]), np.array(["a"]))
    >>> two = LeafStatistics.of(np.array([0, 1, 2]), np.array([0, 0], np.int32), np.array([3.0, 4.0]), np.array(["b"]))
    >>> both = one + two
    >>> both.labels["class"].tolist(), both.starts.tolist(), both.codes.tolist(), both.sums["count"].tolist()
    (['a', 'b'], [0, 2, 3], [0, 1, 1], [2.0, 3.0, 4.0])
    >>> (both - two).sums["count"].tolist()
    [2.0]
    """

    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @classmethod
    def of(
        cls, starts: NDArray[np.int64], codes: NDArray[np.int32], counts: Array, classes: Labels
    ) -> "LeafStatistics":
        """Return the statistics of these pairs."""
        return cls({"count": counts}, {"count": ("pair",)}, {"class": classes}, starts=starts, codes=codes)

    def _combined(self, other: Statistics, sign: float) -> "LeafStatistics":
        assert isinstance(other, LeafStatistics)
        if len(other.starts) != len(self.starts):
            raise ValueError("expected counts at the leaves of the same trees, got those of others")
        classes = union(self.labels["class"], other.labels["class"])
        one, two = self.aligned({"class": classes}), other.aligned({"class": classes})
        own, more = one._keys, two._keys
        found = np.searchsorted(own, more)
        known = np.append(own, -1)[found] == more
        counts, had = one.sums["count"].copy(), one.sums["count"]
        counts[found[known]] += sign * two.sums["count"][known]
        if sign < 0:
            if not known.all() or np.any(counts < -_ROUNDING * np.maximum(had, 1.0)):
                raise ValueError(NOT_LEARNED.format("are not left in their class"))
            kept = counts > _ROUNDING * had
            return one._of_keys(own[kept], counts[kept])
        new = found[~known]
        return one._of_keys(np.insert(own, new, more[~known]), np.insert(counts, new, two.sums["count"][~known]))

    def __sub__(self, other: Statistics) -> "LeafStatistics":
        return self._combined(other, -1.0)

    def __mul__(self, factor: float) -> "LeafStatistics":
        if factor == 0:
            return self._of_keys(self._keys[:0], np.zeros(0))
        return replace(self, sums={"count": self.sums["count"] * factor})

    __rmul__ = __mul__

    def aligned(self, labels: Mapping[str, Labels]) -> "LeafStatistics":
        """Return these statistics with more classes."""
        if labels["class"] is self.labels["class"]:
            return self
        numbers = np.searchsorted(labels["class"], self.labels["class"]).astype(np.int32)
        return self.of(self.starts, numbers[self.codes], self.sums["count"], labels["class"])

    def of_classes(self, indices: slice, labels: Labels) -> "LeafStatistics":
        """Return the statistics of some of the classes, under other labels."""
        first, last, _ = indices.indices(len(self.labels["class"]))
        pairs = (self.codes >= first) & (self.codes < last)
        starts = np.concatenate([[0], np.cumsum(pairs)])[self.starts]
        return self.of(starts, self.codes[pairs] - np.int32(first), self.sums["count"][pairs], labels)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(self.starts) - 1

    @property
    def _keys(self) -> NDArray[np.int64]:
        """A number for each pair: they rise."""
        leaves = np.repeat(np.arange(self.leaves), np.diff(self.starts))
        return leaves * len(self.labels["class"]) + self.codes

    def _of_keys(self, keys: NDArray[np.int64], counts: Array) -> "LeafStatistics":
        """Return the statistics of pairs by their numbers."""
        k = len(self.labels["class"])
        starts = np.searchsorted(keys, np.arange(self.leaves + 1) * k)
        return self.of(starts, (keys % k).astype(np.int32), counts, self.labels["class"])


class SampledRows(NamedTuple):
    """Rows as trees count them, and the hash by which each is in the sample of some trees."""

    cells: CellCodes
    assignment: Assignment
    hashes: Keys

    def taken(self, rows: NDArray[np.intp]) -> "SampledRows":
        """Return some of the rows."""
        return SampledRows(self.cells[rows], self.assignment.taken(rows), self.hashes[rows])


@dataclass(frozen=True, eq=False)
class Forest(Family):
    """Trees over columns of codes: 0 is missing, 255 missing for another reason, and all others are values.

    The nodes of every tree stand in breadth-first order: the children of its split number k are its nodes 2k + 1 and
    2k + 2.

    Parameters
    ----------
    starts
        where the nodes of each tree begin, and the last ones end
    features
        the column that each node splits, 65,535 for leaves
    cuts
        the largest code of numbers that goes to the left
    missing
        whether missing cells go to the left; and 2 more if none was there
    masks
        for each split of categories, in the order of nodes, the codes that go to the left: 256 bits in four numbers
    categories
        of each column, whether its codes are categories
    seed
        by which rows are in the sample of a tree or not

    Examples
    --------
    >>> from likely.data.table import Table
    >>> cells = np.repeat(np.arange(1, 5, dtype=np.uint8), 10)[:, None]
    >>> rows = Assignment(np.array(["a", "b"]), (cells[:, 0] > 2).astype(np.int32))
    >>> sampled = SampledRows(cells, rows, np.arange(40, dtype=np.uint64))
    >>> forest = Forest.grown(sampled, np.array([False]), seed=0, kinds=[(10, 1, False)])
    >>> density = forest.solve(forest.collect(Block(Table(cells), None), rows))
    >>> density.probabilities(cells[[0, 39]]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    starts: NDArray[np.int64]
    features: NDArray[np.uint16]
    cuts: NDArray[np.uint8]
    missing: NDArray[np.uint8]
    masks: NDArray[np.uint64]
    categories: NDArray[np.bool_]
    seed: int

    name = "forest"
    expects = "codes from 0 to 255"

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name == "seed":
                continue
            array: Any = getattr(self, each.name)
            if not isinstance(array, np.ndarray) or array.dtype != _TYPES[each.name] or array.ndim != 1:
                raise ValueError(f"expected {each.name} of a forest as a list of {_TYPES[each.name]}, got another")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"expected a seed of 64 bits, got {self.seed!r}")
        _ = self._layout

    @classmethod
    def grown(
        cls, rows: SampledRows, categories: NDArray[np.bool_], seed: int, kinds: list[tuple[int, int, bool]]
    ) -> "Forest":
        """Grow trees on rows, equal ones of which have the same hash.

        ``kinds``: how many trees, how many columns are tried at each node, and whether by a random cut of each, not its
        best.
        """
        classes, codes, weights = rows.assignment
        sample = rows.hashes, SAMPLED, seed
        trees = native.forest_grow(rows.cells, categories, len(classes), codes, weights, sample, kinds)
        return cls(*trees, categories, seed)

    @cached_property
    def _layout(self) -> Any:
        """The nodes as rows are sent down them, or ValueError if they are not those of trees."""
        nodes = self.starts, self.features, self.cuts, self.missing, self.masks, self.categories
        return native.forest_layout(nodes)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_layout"}

    @property
    def trees(self) -> Any:
        """The trees as the core takes them."""
        return self.starts, self._layout, self.masks, len(self.categories)

    @property
    def leaves(self) -> int:
        """The number of leaves of all trees."""
        return (len(self.features) + len(self.starts) - 1) // 2

    def _collect(self, block: Block, assignment: Assignment) -> LeafStatistics:
        classes, codes, weights = assignment
        found = native.forest_leaf_counts(self.trees, block.dense(), len(classes), codes, weights)
        return LeafStatistics.of(*found, classes)

    def solve(self, statistics: Statistics) -> "ForestDensity":
        """Return p(class) at every node."""
        assert isinstance(statistics, LeafStatistics)
        return ForestDensity(self, statistics)


_TYPES = {
    "starts": np.dtype(np.int64),
    "features": np.dtype(np.uint16),
    "cuts": np.dtype(np.uint8),
    "missing": np.dtype(np.uint8),
    "masks": np.dtype(np.uint64),
    "categories": np.dtype(np.bool_),
}


@dataclass(frozen=True, eq=False)
class ForestDensity(Density):
    """p(class | x) of a forest, as the mean over trees of what the leaf of a row says, smoothed along its path."""

    forest: Forest
    statistics: LeafStatistics

    no_density = "leave the forest out"

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.statistics.labels["class"])

    @cached_property
    def _nodes(self) -> Any:
        """The weight of each class at every node, and that of all classes, as the core takes them."""
        leaves = self.statistics.starts, self.statistics.codes, self.statistics.sums["count"]
        return native.forest_node_counts(self.forest.trees, self.classes, leaves)

    @property
    def _log_priors(self) -> Array:
        """The logarithm of p(class), as it is at the root."""
        (starts, codes, counts), _ = self._nodes
        root = slice(starts[0], starts[1])
        return np.log(class_proportions(np.bincount(codes[root], counts[root], self.classes).astype(np.float64)))

    def probabilities(self, cells: CellCodes, own: SampledRows | None = None) -> Array:
        """Return p(class), rows × classes.

        ``own``: the same rows as they were learned, perhaps with other cells. Then only trees that were grown without a
        row say what it is, and from their counts the row is taken away.
        """
        given = None
        if own is not None:
            _, codes, weights = own.assignment
            given = own.cells, codes, weights, (own.hashes, SAMPLED, self.forest.seed)
        how = _ALPHA, _LEAST_SHARE
        return native.forest_probabilities(self.forest.trees, self.classes, self._nodes, how, cells, given)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add log p(class | x) − log p(class), which is log p(x | class) up to what is the same in all classes."""
        out += np.log(self.probabilities(block.dense())) - self._log_priors

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Array, Array]:
        """Return how much less is said of class ``one`` against ``other`` without a cell, and what is left over."""
        rows, cells = np.arange(block.table.rows), block.dense()

        def odds(cells: CellCodes) -> Array:
            scores = np.log(self.probabilities(cells)) - self._log_priors
            return np.asarray(scores[rows, one] - scores[rows, other])

        total, found = odds(cells), np.empty(cells.shape)
        for j in range(cells.shape[1]):
            hidden = cells.copy()
            hidden[:, j] = UNKNOWN
            found[:, j] = total - odds(hidden)
        return found, total - found.sum(axis=1)

    def sample(self, codes: Codes, generator: np.random.Generator) -> Array:
        """Return nothing: a forest says which class, not what the cells are."""
        return np.full((len(codes), len(self.forest.categories)), np.nan)

    def column(self, j: int) -> "ForestDensity":
        """Refuse: trees are of all columns together."""
        raise NotImplementedError("expected a family of single columns, got a forest, which is of all columns together")
