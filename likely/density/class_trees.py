"""A Chow–Liu tree in every class: counts of pairs of levels by class, which add exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.density.columns import Encoded, TableColumn, level_counts
from likely.density.structure import Candidates, Structure, maximum_tree, neighbours
from likely.density.trees import (
    BINS,
    COARSE,
    INFORMATION_ROWS,
    Forest,
    Learned,
    Smoother,
    TreeDensity,
    TreeSums,
    binned_marginals,
    coarser,
    counts_of_levels,
    pairs_and_starts,
    taken_or_none,
    weighted,
)
from likely.statistics import Array


class ClassPairSums(NamedTuple):
    """What a tree in every class is solved from: counts of levels, and of all pairs of levels, by class. They add."""

    weight: Array
    levels: Array
    pairs: Array


# Counts that are kept at most: 32 MB.
_MOST_COUNTS = 1 << 22


@dataclass(frozen=True, eq=False)
class ClassTreesPrior:
    """Trees of all columns but the last, which is the class: one in each class, chosen anew whenever counts are solved.

    Rows whose class is not known are left out.
    """

    columns: tuple[TableColumn, ...]
    among: NDArray[np.int64] | None = None
    """the pairs of columns whose counts are kept, and that may be neighbours; None: all"""

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.columns[-1].levels

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """How many levels every column has, but the class."""
        return level_counts(self.columns[:-1], BINS)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs of columns, and where the counts of each begin."""
        return pairs_and_starts(self.levels, self.among)

    @property
    def affordable(self) -> bool:
        """Whether counts of pairs in every class are few enough to be kept."""
        return self.classes * int(self.pairs[1][-1]) <= _MOST_COUNTS

    def log_components(self, rows: Encoded) -> Array:
        """There is one component, to which all rows belong."""
        return np.zeros((rows.rows, 1))

    def expected(self, rows: Encoded, shares: Array) -> ClassPairSums:
        """Return the counts of rows with these weights."""
        codes, weights = rows.binned(BINS), shares[:, 0]
        weight = np.bincount(codes[:, -1] + 1, weights, minlength=self.classes + 1)[1:].astype(np.float64)
        levels = np.zeros((self.classes, int(self.levels.sum())))
        pairs = np.zeros((self.classes, int(self.pairs[1][-1])))
        for k in range(self.classes):
            own = np.flatnonzero(codes[:, -1] == k)
            if len(own):
                part, counted = codes[own, :-1], weights[own]
                levels[k] = np.concatenate(counts_of_levels(part, self.levels, counted))
                pairs[k] = native.pair_counts(np.ascontiguousarray(part.T), self.levels, self.pairs[0], counted)
        return ClassPairSums(weight, levels, pairs)

    def with_classes(self, sums: ClassPairSums, index: NDArray[np.int64]) -> ClassPairSums:
        """Return sums of other classes: the index of each before, or −1 of a new one."""
        return ClassPairSums(*(taken_or_none(part, index) for part in sums))

    def solve(self, sums: ClassPairSums) -> TreeDensity:
        """Return the trees of the most mutual information, one for each class; tables are smoothed."""
        (listed, starts), d = self.pairs, len(self.levels)
        place = {(int(i), int(j)): at for at, (i, j) in enumerate(listed)}

        def by_class(parent: int, child: int) -> Array:
            one, other = max(parent, child), min(parent, child)
            at = place[one, other]
            found = sums.pairs[:, starts[at] : starts[at + 1]].reshape(-1, self.levels[one], self.levels[other])
            return found if parent == one else np.swapaxes(found, 1, 2)

        def pooled(pairs: Sequence[tuple[int, int]]) -> list[Array]:
            return [np.ascontiguousarray(by_class(parent, child).sum(axis=0)) for parent, child in pairs]

        own, counted = np.zeros((2, self.classes, d, d))
        together = np.zeros((d, d))
        for i, j in place:
            # Classes last, so that bins are added up along the first axis.
            table = coarser(np.moveaxis(by_class(i, j), 0, 2), self.columns[i])
            table = np.moveaxis(coarser(np.swapaxes(table, 0, 1), self.columns[j]), 2, 0)
            own[:, i, j] = own[:, j, i] = [native.table_information(np.ascontiguousarray(each)) for each in table]
            counted[:, i, j] = counted[:, j, i] = table.sum(axis=(1, 2))
            together[i, j] = together[j, i] = native.table_information(np.ascontiguousarray(table.sum(axis=0)))
        mixed = (counted * own + INFORMATION_ROWS * together) / (counted + INFORMATION_ROWS)
        marginals = binned_marginals(self.columns[:-1], np.split(sums.levels.sum(axis=0), np.cumsum(self.levels)[:-1]))
        smoother = Smoother(self.columns[:-1], self.levels, marginals, pooled)
        allowed = None if self.among is None else neighbours(d, self.among)
        prior = smoother.prior([maximum_tree(one, allowed) for one in mixed])
        counts = prior.forest.with_tables(np.zeros_like(prior.forest.tables))
        ends = np.append(0, np.cumsum(self.levels))
        for k, structure in enumerate(counts.structures):
            for j, parent in enumerate(structure.parents.tolist()):
                found = sums.levels[k, ends[j] : ends[j + 1]] if parent < 0 else by_class(parent, j)[k]
                counts.table(k, j)[:] = found
        density = prior.solve(TreeSums(sums.weight, counts.tables))
        return TreeDensity(self.columns, density.weights, self._with_class(density.forest))

    def _with_class(self, forest: Forest) -> Forest:
        """Return trees whose root is the class: in each component it is one class for sure."""
        last, levels = len(self.levels), np.append(self.levels, np.int32(self.classes)).astype(np.int32)
        structures = []
        for one in forest.structures:
            parents = np.append(np.where(one.parents < 0, last, one.parents), -1).astype(np.int32)
            structures.append(Structure(parents, np.append(last, one.order).astype(np.int32)))
        found = Forest.empty(levels, structures)
        for k in range(self.classes):
            found.table(k, last)[k] = 1.0
            for j in range(last):
                found.table(k, j)[:] = forest.table(k, j)  # of the root the same below every class
        return found


def fit_class_trees(
    rows: Encoded, among: Candidates | None = None
) -> tuple[ClassTreesPrior, Learned[ClassTreesPrior, ClassPairSums]]:
    """Fit a tree in every class: counts of all pairs, or of those that may be neighbours, by class, in one pass."""
    if among is not None and among.screened is not None:
        # Without the class other pairs connect all columns.
        codes, levels = rows.binned(COARSE)[:, :-1], level_counts(rows.columns[:-1], COARSE)
        among = Candidates.of(codes, levels, rows.weights)
    pairs = None if among is None or among.screened is None else among.pairs
    prior = ClassTreesPrior(rows.columns, pairs)
    return prior, Learned(prior, prior.expected(rows, weighted(np.ones((rows.rows, 1)), rows.weights)))
