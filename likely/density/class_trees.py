"""Chow–Liu trees of the columns and the class: one of all rows, and one in every class. Their counts add exactly."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.density.columns import Codes, Encoded, TableColumn, level_counts
from likely.density.combination import combination_weights
from likely.density.structure import Pairs, Structure, maximum_tree
from likely.density.trees import (
    BINS,
    COARSE,
    INFORMATION_ROWS,
    Forest,
    Learned,
    Smoother,
    TreeDensity,
    binned_marginals,
    coarser,
    log_sum_exp,
    smoothed_root,
    taken_or_none,
)
from likely.statistics import Array

Ints = NDArray[np.int64]

# Counts of trees in classes that are kept at most: 32 MB.
_MOST_COUNTS = 1 << 22
# Of no more pairs of columns all are counted; of more those of trees that are found in first rows: in so many of them,
# or in as many as there is time for.
_EVERY_PAIR = 120
_STRUCTURE_ROWS, _LEAST_ROWS, _STRUCTURE_STEPS = 5000, 1000, 1 << 28
# Rows by which the two kinds of trees are compared.
_COMPARED = 4096
# Trees in classes of less weight are left out.
_LEAST = 0.005


class ClassTreeSums(NamedTuple):
    """Counts of classes, of levels, and of pairs of levels: of each class, and last of all rows. They add."""

    weight: Array
    """groups: the classes, and all rows, of which some may have none"""
    levels: Array
    """groups × levels of all columns but the class"""
    pairs: Array
    """of listed pairs, one table after the other"""


@dataclass(frozen=True, eq=False)
class ClassTreesPrior:
    """Trees of all columns, of which the last is the class: one tree of all, and one of the others in each class.

    Both are chosen anew, among the pairs that are counted, whenever counts are solved. Rows whose class is not known
    count in the tree of all.
    """

    columns: tuple[TableColumn, ...]
    listed: Ints
    """what is counted, rows of (group, column, column before it), in the order of groups: the last is all rows"""
    share: float
    """p(trees in classes), against that of all: if 0, no pairs are counted in classes"""

    def validate(self) -> None:
        """Raise ValueError unless the pairs of every group are listed, enough of them for a tree."""
        d = len(self.columns) - 1
        if self.listed.ndim != 2 or self.listed.shape[1] != 3 or not 0 <= self.share < 1:
            raise ValueError("expected pairs of columns, and how much trees in classes count, got others")
        group, one, other = self.listed.T
        rows = list(map(tuple, self.listed.tolist()))
        if rows != sorted(set(rows)) or not ((other >= 0) & (other < one) & (one < d) & (group >= 0)).all():
            raise ValueError("expected pairs of columns in the order of the classes they are counted in, got others")
        groups = range(self.classes + 1) if self.share else [self.classes]
        of_all = {tuple(pair) for number, *pair in rows if number == self.classes}
        if not set(group.tolist()) <= set(groups) or not {tuple(pair) for _, *pair in rows} <= of_all:
            raise ValueError("expected pairs of classes among those of all rows, got others")
        for number in groups:
            joined = np.full((d, d), -1.0)
            _, one, other = self.listed[self.slice_of(number)].T
            joined[one, other] = joined[other, one] = 1.0
            if not all(joined[pair] > 0 for pair in _edges(maximum_tree(joined))):
                raise ValueError("expected pairs that join all columns, got others")

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.columns[-1].levels

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """How many levels every column has, but the class."""
        return level_counts(self.columns[:-1], BINS)

    @cached_property
    def starts(self) -> Ints:
        """Where the counts of each listed pair begin, and where the last ones end."""
        return np.append(0, np.cumsum(self.levels.astype(np.int64)[self.listed[:, 1:]].prod(axis=1)))

    def slice_of(self, group: int) -> slice:
        """Return which pairs are listed of a group."""
        first, end = np.searchsorted(self.listed[:, 0], [group, group + 1]).tolist()
        return slice(first, end)

    def log_components(self, rows: Encoded) -> Array:
        """There is one component, to which all rows belong."""
        return np.zeros((rows.rows, 1))

    def expected(self, rows: Encoded, shares: Array) -> ClassTreeSums:
        """Return the counts of rows with these weights."""
        return self.counted(rows.binned(BINS), np.ascontiguousarray(shares[:, 0]))

    def counted(self, codes: Codes, weights: Array) -> ClassTreeSums:
        """Return the counts of levels of rows, numbers in bins, with these weights."""
        groups = self.classes + 1
        group, parts = codes[:, -1].astype(np.int64) + 1, []  # those of no class come first
        for j, size in enumerate(self.levels.tolist()):
            there = codes[:, j] >= 0
            at = group[there] * size + codes[there, j]
            counts = np.bincount(at, weights[there], minlength=groups * size).reshape(groups, size)
            parts.append(np.concatenate([counts[1:], counts.sum(axis=0, keepdims=True)]))
        weight = np.bincount(group, weights, minlength=groups).astype(np.float64)
        total = np.append(weight[1:], weight.sum())
        return ClassTreeSums(total, np.concatenate(parts, axis=1), self._pairs(codes, group - 1, weights))

    def _pairs(self, codes: Codes, classes: Ints, weights: Array) -> Array:
        """Return the counts of listed pairs."""
        found = np.zeros(int(self.starts[-1]))
        by_column = np.ascontiguousarray(codes[:, :-1].T)
        for group in np.unique(self.listed[:, 0]).tolist():
            part, own, counted = self.slice_of(group), by_column, weights
            if group < self.classes:
                rows = np.flatnonzero(classes == group)
                if not len(rows):
                    continue
                own, counted = np.ascontiguousarray(by_column[:, rows]), weights[rows]
            pairs = np.ascontiguousarray(self.listed[part, 1:])
            counts = native.pair_counts(own, self.levels, pairs, counted)
            found[self.starts[part.start] : self.starts[part.stop]] = counts
        return found

    def with_classes(
        self, columns: tuple[TableColumn, ...], sums: ClassTreeSums, index: Ints
    ) -> tuple[Self, ClassTreeSums]:
        """Return what has other classes, the last of these columns: the index of each before, or −1 of a new one.

        In a new one those pairs are counted that were in the class of the most first rows.
        """
        most = int(np.argmax(self.columns[-1].counts))
        listed, tables = [self.listed[:0]], [sums.pairs[:0]]
        for group, before in enumerate([*index.tolist(), self.classes]):
            part = self.slice_of(most if before < 0 else before)
            own = self.listed[part].copy()
            own[:, 0] = group
            listed.append(own)
            counts = sums.pairs[self.starts[part.start] : self.starts[part.stop]]
            tables.append(np.zeros_like(counts) if before < 0 else counts)
        groups = np.append(index, self.classes)
        weight, levels = taken_or_none(sums.weight, groups), taken_or_none(sums.levels, groups)
        prior = replace(self, columns=columns, listed=np.concatenate(listed))
        return prior, ClassTreeSums(weight, levels, np.concatenate(tables))

    def solve(self, sums: ClassTreeSums) -> TreeDensity:
        """Return the trees of the most mutual information, as one mixture; tables are smoothed."""
        counts = _Counts(self, sums)
        weights, forests = [np.array([1.0 - self.share])], [_tree_of_all(counts)]
        if self.share:
            density = _trees_of_classes(counts)
            weights.insert(0, self.share * density.weights)
            forests.insert(0, _with_class(density.forest, self.classes))
        found = Forest.empty(forests[-1].levels, [one for forest in forests for one in forest.structures])
        tables = np.concatenate([forest.tables for forest in forests])
        return TreeDensity(self.columns, np.concatenate(weights), found.with_tables(tables))


@dataclass(frozen=True, eq=False)
class _Counts:
    """The counts of a group's levels, and of its pairs of levels. The class is a column of the group of all rows."""

    prior: ClassTreesPrior
    sums: ClassTreeSums

    @cached_property
    def place(self) -> dict[tuple[int, int, int], int]:
        """Where in the list each group and pair of columns is."""
        return {(group, i, j): at for at, (group, i, j) in enumerate(self.prior.listed.tolist())}

    def of_levels(self, group: int) -> list[Array]:
        """Return counts of the levels of every column but the class."""
        return np.split(self.sums.levels[group], np.cumsum(self.prior.levels)[:-1])

    def of_pair(self, group: int, parent: int, child: int) -> Array:
        """Return counts of a pair, levels of the parent × levels of the child."""
        prior, d = self.prior, len(self.prior.levels)
        one, other = max(parent, child), min(parent, child)
        if one == d:  # the class
            end = int(prior.levels[: other + 1].sum())
            found = self.sums.levels[:-1, end - int(prior.levels[other]) : end]
        else:
            at = self.place[group, one, other]
            found = self.sums.pairs[prior.starts[at] : prior.starts[at + 1]]
            found = found.reshape(prior.levels[one], prior.levels[other])
        return np.ascontiguousarray(found if parent == one else found.T)

    def of_all(self, parent: int, child: int) -> Array:
        """Return counts of a pair in all rows."""
        return self.of_pair(self.prior.classes, parent, child)

    def information(self, group: int, one: int, other: int) -> tuple[float, float]:
        """Return the mutual information of a pair, and the weight of the rows that have both."""
        columns = self.prior.columns
        table = coarser(coarser(self.of_pair(group, one, other), columns[one]).T, columns[other])
        return native.table_information(np.ascontiguousarray(table)), float(table.sum())


def _tree_of_all(counts: _Counts) -> Forest:
    """Return the tree of all columns. Its root is the class, so that it has the classes as often as rows do."""
    prior, d = counts.prior, len(counts.prior.levels)
    information = np.full((d + 1, d + 1), -1.0)  # of pairs that are not counted
    np.fill_diagonal(information, 0.0)
    pairs = [(i, j) for _, i, j in prior.listed[prior.slice_of(prior.classes)].tolist()]
    for i, j in [*pairs, *((d, j) for j in range(d))]:
        information[i, j] = information[j, i] = counts.information(prior.classes, i, j)[0]
    levels = np.append(prior.levels, np.int32(prior.classes)).astype(np.int32)
    marginals = binned_marginals(prior.columns, [*counts.of_levels(prior.classes), counts.sums.weight[:-1]])
    return Smoother(prior.columns, levels, marginals, counts.of_all).prior([maximum_tree(information, root=d)]).forest


def _trees_of_classes(counts: _Counts) -> TreeDensity:
    """Return a tree of all columns but the class in each class, weighted as classes are."""
    prior, sums = counts.prior, counts.sums
    d, columns, groups = len(prior.levels), prior.columns[:-1], range(prior.classes)
    together = {
        (i, j): counts.information(prior.classes, i, j)[0]
        for _, i, j in prior.listed[prior.slice_of(prior.classes)].tolist()
    }
    structures = []
    for k in groups:
        information = np.full((d, d), -1.0)
        np.fill_diagonal(information, 0.0)
        for _, i, j in prior.listed[prior.slice_of(k)].tolist():
            own, counted = counts.information(k, i, j)
            mixed = (counted * own + INFORMATION_ROWS * together[i, j]) / (counted + INFORMATION_ROWS)
            information[i, j] = information[j, i] = mixed
        structures.append(maximum_tree(information))
    marginals = binned_marginals(columns, counts.of_levels(prior.classes))
    smoother = Smoother(columns, prior.levels, marginals, counts.of_all)
    forest = smoother.prior(structures).forest  # tables of all rows
    for k, structure in enumerate(structures):
        own_levels = counts.of_levels(k)
        for j, parent in enumerate(structure.parents.tolist()):
            table = forest.table(k, j)
            if parent < 0:
                table[:] = smoothed_root(columns[j], own_levels[j], table)
            else:
                table[:] = smoother.of_part(parent, j, counts.of_pair(k, parent, j))
    weight = sums.weight[:-1] + 0.1
    return TreeDensity(columns, weight / weight.sum(), forest)


def _with_class(forest: Forest, classes: int) -> Forest:
    """Return trees whose root is the class: in each it is one class for sure."""
    last, levels = len(forest.levels), np.append(forest.levels, np.int32(classes)).astype(np.int32)
    structures = []
    for one in forest.structures:
        parents = np.append(np.where(one.parents < 0, last, one.parents), -1).astype(np.int32)
        structures.append(Structure(parents, np.append(last, one.order).astype(np.int32)))
    found = Forest.empty(levels, structures)
    for k in range(classes):
        found.table(k, last)[k] = 1.0
        for j in range(last):
            found.table(k, j)[:] = forest.table(k, j)  # of the root the same below every class
    return found


def structure_rows(columns: int) -> int:
    """Return how many rows the trees of so many columns are looked for in."""
    return int(np.clip(_STRUCTURE_STEPS // max(columns * (columns - 1) // 2, 1), _LEAST_ROWS, _STRUCTURE_ROWS))


def fit_class_trees(
    rows: Encoded, held_out: NDArray[np.bool_] | None, information: Array
) -> tuple[ClassTreesPrior, Learned[ClassTreesPrior, ClassTreeSums]]:
    """Fit trees of all columns, of which the last is the class: which share classes have, rows held out say.

    Rows are in an order that tells nothing. ``information``: that of all pairs of columns, in the first rows.
    """
    columns, classes = rows.columns, rows.columns[-1].levels
    size = float(level_counts(columns[:-1], BINS).mean())
    by_class = classes > 1 and len(columns) > 2
    every = len(columns) * (len(columns) - 1) // 2 <= _EVERY_PAIR
    pairs = _EVERY_PAIR if every else len(columns) - 1
    if by_class and classes * pairs * size**2 > _MOST_COUNTS:
        by_class = False
    listed = _every_pair(len(columns) - 1, classes, by_class) if every else _pairs_of_trees(rows, information, by_class)
    prior = ClassTreesPrior(columns, listed, 0.5 if by_class else 0.0)

    codes, weights = rows.binned(BINS), np.ones(rows.rows) if rows.weights is None else rows.weights
    if not by_class or held_out is None:
        return prior, Learned(prior, prior.counted(codes, weights))
    train, test = (prior.counted(codes[part], weights[part]) for part in (~held_out, held_out))
    sums = ClassTreeSums(*(a + b for a, b in zip(train, test, strict=True)))
    compared = rows.taken(np.flatnonzero(held_out)[:_COMPARED])
    prior = replace(prior, share=_share(prior.solve(train), compared))
    if prior.share < _LEAST:
        first = prior.starts[prior.slice_of(classes).start]
        prior = replace(prior, listed=prior.listed[prior.slice_of(classes)], share=0.0)
        sums = sums._replace(pairs=sums.pairs[first:])
    return prior, Learned(prior, sums)


def _every_pair(columns: int, classes: int, by_class: bool) -> Ints:
    """Return all pairs of so many columns, in all rows and in each class."""
    pairs = np.stack(np.tril_indices(columns, -1), axis=1)
    groups = np.arange(classes + 1) if by_class else np.array([classes])
    return np.column_stack([np.repeat(groups, len(pairs)), np.tile(pairs, (len(groups), 1))]).astype(np.int64)


def _pairs_of_trees(rows: Encoded, information: Array, by_class: bool) -> Ints:
    """Return the pairs of columns that are neighbours in a tree of all first rows, or in one of each class."""
    d, first = len(rows.columns) - 1, rows.taken(slice(0, structure_rows(len(rows.columns))))
    together = information[:d, :d]
    of_all = _edges(maximum_tree(together)) | {edge for edge in _edges(maximum_tree(information)) if edge[0] < d}
    found: list[tuple[int, int, int]] = []
    if by_class:
        codes, levels = first.binned(COARSE), level_counts(rows.columns, COARSE)[:d]
        for k in range(rows.columns[d].levels):
            own = np.flatnonzero(codes[:, d] == k)
            weights = None if first.weights is None else first.weights[own]
            inside, counted = Pairs.of(codes[own, :d], levels).information(weights)
            edges = _edges(
                maximum_tree((counted * inside + INFORMATION_ROWS * together) / (counted + INFORMATION_ROWS))
            )
            found += [(k, *edge) for edge in edges]
            of_all |= edges
    found += [(rows.columns[d].levels, *edge) for edge in of_all]
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)


def _edges(tree: Structure) -> set[tuple[int, int]]:
    """Return the pairs of a tree, the larger index first."""
    return {(max(i, p), min(i, p)) for i, p in enumerate(tree.parents.tolist()) if p >= 0}


def _share(density: TreeDensity, rows: Encoded) -> float:
    """Return how much trees in classes count, against the tree of all, by the likelihood of these rows."""
    logs = density.log_components(rows) - density.log_weights
    weights = density.weights[:-1] / density.weights[:-1].sum()
    kinds = np.stack([log_sum_exp(logs[:, :-1] + np.log(weights)), logs[:, -1]], axis=1)
    return float(combination_weights(kinds, rows.weights)[0])
