"""Chow–Liu trees and mixtures of them, over levels: categories, atoms, and numbers in bins of u."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.density.columns import EVIDENCE, Codes, Encoded, NumberColumn, TableColumn, level_counts, numbers
from likely.density.evidence import Evidence
from likely.density.left_out import LeftOut, OnSupports
from likely.density.normal import bins_of_normal, ndtri
from likely.density.structure import Candidates, Pairs, Structure, all_pairs, entropies, maximum_tree, neighbours
from likely.em import iterate
from likely.statistics import Array

D = TypeVar("D")
S = TypeVar("S")
M = TypeVar("M", bound="Mixture[Any]")
M_co = TypeVar("M_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)
S_contra = TypeVar("S_contra", contravariant=True)

# Bins of u in which numbers are, and in which structures are looked for.
BINS, COARSE = 32, 8
# Smoothing of tables over neighbouring bins, in bins, and pseudo-counts of the marginal: chosen for each edge.
_WIDTHS, _PSEUDO = (1.0, 2.0, 4.0, 8.0), (1.0, 3.0, 10.0, 30.0)
_ROOT_WIDTH = 4.0
# Rows of the information of all rows that every component's is mixed with, and of their tables.
INFORMATION_ROWS = 30.0
_TABLE_ROWS = 5.0
# EM steps before trees are chosen once more, after that at most, and the gain of each row that is too little for more.
_FIRST_STEPS, _STEPS, _TOLERANCE = 4, 11, 1e-3


class Forest(NamedTuple):
    """One tree for each component: structures, and tables in one array, as the core reads them."""

    levels: NDArray[np.int32]
    structures: tuple[Structure, ...]
    starts: NDArray[np.int64]
    tables: Array

    @classmethod
    def empty(cls, levels: NDArray[np.int32], structures: Sequence[Structure]) -> "Forest":
        """Return trees whose tables are all 0."""
        sizes = np.array(
            [[levels[j] * (levels[p] if p >= 0 else 1) for j, p in enumerate(s.parents.tolist())] for s in structures]
        )
        ends = np.cumsum(sizes.ravel())
        starts = np.append(0, ends[:-1]).reshape(sizes.shape)
        return cls(levels, tuple(structures), starts.astype(np.int64), np.zeros(int(ends[-1])))

    def with_tables(self, tables: Array) -> "Forest":
        """Return the same trees with other tables."""
        return self._replace(tables=tables)

    def table(self, component: int, column: int) -> Array:
        """Return p(level) of a root, or p(level | level of the parent): a view of the tables."""
        parent = int(self.structures[component].parents[column])
        start, size = int(self.starts[component, column]), int(self.levels[column])
        if parent < 0:
            return self.tables[start : start + size]
        above = int(self.levels[parent])
        return self.tables[start : start + above * size].reshape(above, size)

    @property
    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], Array]:
        """What the core takes."""
        parents = np.stack([s.parents for s in self.structures])
        order = np.stack([s.order for s in self.structures])
        return self.levels, parents, order, self.starts, self.tables

    def log_densities(self, codes: Codes, evidence: Array | None = None) -> Array:
        """Return log p(what is known of each row | component)."""
        return native.tree_log_densities(self.arrays, codes, evidence)

    def counts(self, codes: Codes, responsibilities: Array) -> "Forest":
        """Return the expected counts of every table."""
        return self.with_tables(native.tree_counts(self.arrays, codes, responsibilities))


def binned_marginals(columns: tuple[TableColumn, ...], counts: Sequence[Array]) -> tuple[Array, ...]:
    """Return p(level) of every column from counts of levels; of a number, u is uniform."""
    found = []
    for column, counted in zip(columns, counts, strict=True):
        p = counted + 0.0
        if column.bins > 1:
            p[column.levels - 1 :] = p[column.levels - 1 :].mean()
        p += 0.5 / len(p)
        found.append(p / p.sum())
    return tuple(found)


def counts_of_levels(codes: Codes, levels: NDArray[np.int32], weights: Array | None) -> list[Array]:
    """Return how much rows have of each level, column by column."""
    found = []
    for j, size in enumerate(levels.tolist()):
        there = codes[:, j] >= 0
        counts = np.bincount(codes[there, j], None if weights is None else weights[there], minlength=size)
        found.append(counts.astype(np.float64))
    return found


@dataclass(frozen=True, eq=False)
class Smoother:
    """Tables of an edge from its counts: a kernel over neighbouring bins, and back-off to the child's marginal.

    Width and pseudo-counts are those of the greatest leave-one-out likelihood, in closed form: each row's own weight
    in its cell is taken away.
    """

    columns: tuple[TableColumn, ...]
    levels: NDArray[np.int32]
    marginals: tuple[Array, ...]
    counts: Callable[[int, int], Array]
    """the counts of a pair of columns, parent and child"""
    _edges: dict[tuple[int, int], "Edge"] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: tuple[TableColumn, ...], codes: Codes, weights: Array | None) -> "Smoother":
        """Return the smoother of tables of these rows."""
        levels = level_counts(columns, BINS)
        by_column = np.ascontiguousarray(codes.T)

        def counts(parent: int, child: int) -> Array:
            found = native.pair_counts(by_column, levels, np.array([[parent, child]]), weights)
            return found.reshape(levels[parent], -1)

        return cls(columns, levels, binned_marginals(columns, counts_of_levels(codes, levels, weights)), counts)

    def edge(self, parent: int, child: int) -> "Edge":
        """Return how the table of an edge is smoothed, and the table of all rows."""
        if (parent, child) not in self._edges:
            counts, marginal = self.counts(parent, child), self.marginals[child]
            towards = [np.broadcast_to(marginal, counts.shape)]
            columns = self.columns[parent], self.columns[child]
            if any(column.bins > 1 for column in columns):
                towards.append(gaussian_table(*columns, counts, marginal))
            self._edges[parent, child] = self.chosen(parent, child, counts, towards)
        return self._edges[parent, child]

    def of_part(self, parent: int, child: int, counts: Array) -> Array:
        """Return the table of an edge in some of the rows, towards that of all: no narrower, as they are fewer."""
        every = self.edge(parent, child)
        widths = [width for width in _WIDTHS if width >= every.width][:2] if every.width else [0.0]
        return self.chosen(parent, child, counts, [every.table], widths).table

    def chosen(
        self, parent: int, child: int, counts: Array, towards: Sequence[Array], widths: Sequence[float] = _WIDTHS
    ) -> "Edge":
        """Return the smoothing of an edge with the greatest leave-one-out likelihood, towards one of some tables."""
        binned = self.columns[parent].bins > 1 or self.columns[child].bins > 1
        above, below = np.nonzero(counts)  # only cells with rows count in the likelihood
        cells, rows_of = counts[above, below], counts.sum(axis=1)
        pseudos = np.array(_PSEUDO)[:, None]
        best: tuple[float, float, float, Array, Array] | None = None
        for width in widths if binned else (0.0,):
            down, across = kernel(self.columns[parent], width), kernel(self.columns[child], width)
            smooth = down @ counts @ across.T
            own = np.diagonal(down)
            left = np.maximum(smooth[above, below] - own[above] * np.diagonal(across)[below], 0)
            rows_left = np.maximum(smooth.sum(axis=1) - own, 0)
            of_rows = np.log(rows_left + pseudos) @ rows_of
            for table in towards:
                scores = np.log(left + pseudos * table[above, below]) @ cells - of_rows
                at = int(scores.argmax())
                if best is None or scores[at] > best[0]:
                    best = float(scores[at]), _PSEUDO[at], width, smooth, table
        assert best is not None
        _, pseudo, width, smooth, table = best
        return Edge((smooth + pseudo * table) / (smooth.sum(axis=1) + pseudo)[:, None], width)

    def prior(self, structures: Sequence[Structure]) -> "TreePrior":
        """Return trees of these structures with the tables of all rows, and how tables are smoothed."""
        forest = Forest.empty(self.levels, structures)
        widths = np.zeros(forest.starts.shape)
        for k, structure in enumerate(structures):
            for j, parent in enumerate(structure.parents.tolist()):
                edge = None if parent < 0 else self.edge(parent, j)
                forest.table(k, j)[:] = self.marginals[j] if edge is None else edge.table
                widths[k, j] = _ROOT_WIDTH if edge is None else edge.width
        return TreePrior(self.columns, forest, widths)


class Edge(NamedTuple):
    """The table of an edge, and how many bins it is smoothed over."""

    table: Array
    width: float


# Scores of bins; rows without dependence, that correlations and means are shrunk by; and the least standard deviation.
_MIDDLES = ndtri((np.arange(BINS) + 0.5) / BINS)
_SHRINK_ROWS, _LEAST_DEVIATION, _INDEPENDENT = 3.0, 0.05, 0.01


def gaussian_table(above: TableColumn, below: TableColumn, counts: Array, marginal: Array) -> Array:
    """Return p(child's level | parent's level) if scores of numbers are Gaussian: what tables of few rows are near to.

    Scores of two numbers have a correlation, those of a number and a category the mean of each category. It is told by
    the counts, and shrunk towards independence. Repeated values of the child are as its marginal says.
    """
    first, last = above.levels - 1, below.levels - 1
    if not below.bins > 1:  # a number above a category: by Bayes' theorem
        means, deviation = _means(counts[first:].T)
        likelihood = np.exp(-0.5 * ((_MIDDLES[:, None] - means) / deviation) ** 2)
        out = np.tile(marginal, (len(counts), 1))
        out[first:] = _with_some(likelihood * marginal, marginal)
        return out
    out = np.tile(marginal, (len(counts), 1))
    binned, own = counts[:, last:], 1.0 - marginal[:last].sum()
    if above.bins > 1:
        both = binned[first:]
        total = both.sum()
        centre = _MIDDLES @ both.sum(axis=1) / (total + 1e-9), _MIDDLES @ both.sum(axis=0) / (total + 1e-9)
        x, y = _MIDDLES - centre[0], _MIDDLES - centre[1]
        squares = (x**2 @ both.sum(axis=1) + _SHRINK_ROWS, y**2 @ both.sum(axis=0) + _SHRINK_ROWS)
        slope = x @ both @ y / squares[0]
        variance = (squares[1] - slope**2 * squares[0]) / (total + _SHRINK_ROWS)
        deviation = np.sqrt(max(variance, _LEAST_DEVIATION**2))
        out[first:, last:] = own * bins_of_normal(centre[1] + slope * x, deviation, BINS)
        binned = binned[:first]
    if len(binned):
        means, deviation = _means(binned)
        out[: len(binned), last:] = own * bins_of_normal(means, deviation, BINS)
    return _with_some(out, marginal)


def _with_some(tables: Array, marginal: Array) -> Array:
    """Return lines that add up to 1, in which a hundredth is independent, so that nothing is impossible."""
    total = np.maximum(tables.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray((1 - _INDEPENDENT) * tables / total + _INDEPENDENT * marginal)


def _means(counts: Array) -> tuple[Array, float]:
    """Return the mean of scores in each level, from levels × bins, and the standard deviation about them."""
    n, total = counts.sum(axis=1), counts.sum()
    centre = float(_MIDDLES @ counts.sum(axis=0)) / (total + 1e-9)
    means = centre + (counts @ (_MIDDLES - centre)) / (n + _SHRINK_ROWS)
    squares = float((counts * (_MIDDLES - means[:, None]) ** 2).sum()) + _SHRINK_ROWS
    return means, float(max(np.sqrt(squares / (total + _SHRINK_ROWS)), _LEAST_DEVIATION))


def kernel(column: TableColumn, width: float) -> Array:
    """Return the weights that cells of a level give to each level: of bins, those near to them."""
    return _kernel(column.levels, BINS if column.bins > 1 else 0, width)


@lru_cache(256)
def _kernel(levels: int, bins: int, width: float) -> Array:
    weights = np.eye(max(levels - 1 + bins, levels))
    if bins and width > 0:
        i = np.arange(bins)
        near = np.exp(-0.5 * ((i[:, None] - i) / width) ** 2)
        weights[levels - 1 :, levels - 1 :] = near / near.sum(axis=0)
    weights.setflags(write=False)
    return weights


def smoothed_root(column: TableColumn, counts: Array, marginal: Array) -> Array:
    """Return p(level) of the root of a tree, smoothed over bins, and with some rows of the marginal of all rows."""
    found = kernel(column, _ROOT_WIDTH) @ counts
    return np.asarray((found + _TABLE_ROWS * marginal) / (found.sum() + _TABLE_ROWS))


class TreeSums(NamedTuple):
    """The expected sums that a mixture of trees is solved from: they add."""

    weight: Array
    tables: Array


@dataclass(frozen=True, eq=False)
class TreePrior:
    """What mixtures of trees are solved with beside their sums: structures, tables of all rows, and their smoothing."""

    columns: tuple[TableColumn, ...]
    forest: Forest
    """one tree for each component, with the tables of all rows"""
    widths: Array
    """components × columns: how many bins each table is smoothed over"""

    @property
    def first(self) -> "TreeDensity":
        """The mixture whose components all have the tables of all rows."""
        k = len(self.widths)
        return TreeDensity(self.columns, np.full(k, 1 / k), self.forest)

    def solve(self, sums: TreeSums) -> "TreeDensity":
        """Return the mixture of expected sums, each table smoothed, and with rows of the table of all rows."""
        counts = self.forest.with_tables(sums.tables)
        out = counts.with_tables(np.empty_like(counts.tables))
        for k, structure in enumerate(counts.structures):
            for j, parent in enumerate(structure.parents.tolist()):
                across = kernel(self.columns[j], self.widths[k, j])
                found = counts.table(k, j) @ across.T
                if parent >= 0:
                    found = kernel(self.columns[parent], self.widths[k, j]) @ found
                total = found.sum(axis=-1, keepdims=True)
                out.table(k, j)[:] = (found + _TABLE_ROWS * self.forest.table(k, j)) / (total + _TABLE_ROWS)
        weight = sums.weight + 0.1
        return TreeDensity(self.columns, weight / weight.sum(), out)


@dataclass(frozen=True, eq=False)
class TreeDensity:
    """A mixture of trees: p(levels) = Σ w_k p_k(levels), and numbers within bins as their marginals say."""

    columns: tuple[TableColumn, ...]
    weights: Array
    forest: Forest

    @cached_property
    def log_weights(self) -> Array:
        """log w_k."""
        return np.log(self.weights)

    def expected(self, rows: Encoded, shares: Array) -> TreeSums:
        """Return the expected sums of rows that belong to components by these responsibilities (weighted)."""
        return TreeSums(shares.sum(axis=0), self.forest.counts(rows.binned(BINS), shares).tables)

    def log_components(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return log w_k p_k(what is known), of the copula: without what the marginals say."""
        found = self.forest.log_densities(*_cells(rows, evidence)) + self.log_weights
        return np.asarray(found + np.log(BINS) * _in_bins(rows).sum(axis=1, keepdims=True))

    def log_density(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the log density of the copula at each row."""
        return log_sum_exp(self.log_components(rows, evidence))

    def reweighted(self, factors: Array) -> tuple["TreeDensity", float]:
        """Return the mixture whose weights are multiplied by these, and what they then add up to."""
        weights = self.weights * factors
        return replace(self, weights=weights / weights.sum()), float(weights.sum())

    def marginals(
        self, rows: Encoded, columns: Sequence[int], evidence: Evidence | None = None, logs: Array | None = None
    ) -> list[Array]:
        """Return the distribution of each of some columns, in rows where it is unknown, given all that is known there.

        ``logs``: those of ``log_components``, if they are there already.
        """
        logs = self.log_components(rows, evidence) if logs is None else logs
        cells = _cells(rows, evidence)
        found = native.tree_marginals(self.forest.arrays, *cells, responsibilities(logs), list(columns))
        parts = np.split(found, np.cumsum(self.forest.levels[list(columns)])[:-1], axis=1)
        return [_on_support(self.columns[j], part[rows.unknown(j)]) for j, part in zip(columns, parts, strict=True)]

    @cached_property
    def _on_supports(self) -> OnSupports:
        return OnSupports.of(self.columns, BINS)

    def left_out(self, rows: Encoded, evidence: Evidence | None = None) -> LeftOut:
        """Return what the other cells of its row say of every cell that is there."""
        others = np.broadcast_to(self.log_weights, (*rows.levels.shape, len(self.weights)))
        logs, found = native.tree_left_out(self.forest.arrays, *_cells(rows, evidence), np.ascontiguousarray(others))[
            :2
        ]
        binned = _in_bins(rows)
        logs += np.log(BINS) * (binned.sum(axis=1, keepdims=True) - binned)
        on = self._on_supports
        return LeftOut(logs, found[:, on.level] * on.share)

    def draw(self, rows: Encoded, generator: np.random.Generator, evidence: Evidence | None = None) -> "Drawn":
        """Draw the unknown cells of each row."""
        codes, likelihoods = _cells(rows, evidence)
        shares = responsibilities(of_alike(rows, lambda some: self.log_components(some, evidence)))
        components = drawn_components(shares, generator)
        drawn = native.tree_draw(self.forest.arrays, codes, likelihoods, components, int(generator.integers(1 << 62)))
        u = np.full((len(drawn), rows.u.shape[1]), np.nan)
        for number, (j, column) in enumerate(numbers(self.columns)):
            free = column.levels - 1
            bin_ = drawn[:, j] - free
            new = (rows.levels[:, j] < 0) & (bin_ >= 0)
            u[:, number] = rows.u[:, number]
            within = generator.random(int(new.sum()))
            bins = BINS if column.bins > 1 else 1
            low, high = bin_[new] / bins, (bin_[new] + 1) / bins
            if evidence is not None:
                low, high = evidence.within(j, low, high)
            u[new, number] = low + within * (high - low)
            drawn[:, j] = np.where(bin_ >= 0, free, drawn[:, j])
        return Drawn(drawn, u, components)


def _cells(rows: Encoded, evidence: Evidence | None) -> tuple[Codes, Array | None]:
    """Return levels and bins of rows, and the likelihoods of those of columns with evidence."""
    codes = rows.binned(BINS)
    return (codes, None) if evidence is None else evidence.of_bins(codes, BINS)


def _in_bins(rows: Encoded) -> NDArray[np.bool_]:
    """Return which cells are in bins of u, rows × columns."""
    last = np.array([c.levels - 1 if c.bins > 1 else EVIDENCE - 1 for c in rows.columns])
    return np.asarray(rows.levels == last)


def _on_support(column: TableColumn, found: Array) -> Array:
    if not isinstance(column, NumberColumn) or column.bins == 1:
        return found
    atoms, times = len(column.atoms), column.bins // BINS
    return np.concatenate([found[:, :atoms], np.repeat(found[:, atoms:] / times, times, axis=1)], axis=1)


def log_sum_exp(logs: Array) -> Array:
    """Return log Σ exp over the components of each row."""
    return native.log_density(np.ascontiguousarray(logs))


def responsibilities(logs: Array) -> Array:
    """Return p(component | row) from log w_k p_k(row)."""
    shares = np.ascontiguousarray(logs).copy()
    native.posterior_in_place(shares, np.full(logs.shape[1], -np.log(logs.shape[1])), False)
    return shares


def of_alike(rows: Encoded, ask: Callable[[Encoded], Array]) -> Array:
    """Return what is asked of each row: once, if all rows are the same, as they are where new ones are drawn."""
    return np.repeat(ask(rows.taken(slice(0, 1))), rows.rows, axis=0) if rows.alike else ask(rows)


def drawn_components(shares: Array, generator: np.random.Generator) -> NDArray[np.int32]:
    """Draw a component of each row."""
    running = np.cumsum(shares, axis=1)
    drawn = (running < generator.random(len(shares))[:, None] * running[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(drawn, shares.shape[1] - 1), dtype=np.int32)


class PairSums(NamedTuple):
    """What one Chow–Liu tree is solved from: counts of levels, and of all pairs of levels. They add."""

    levels: Array
    pairs: Array


@dataclass(frozen=True, eq=False)
class ChowLiuPrior:
    """One tree, chosen anew whenever counts are solved: so it is the same however rows came."""

    columns: tuple[TableColumn, ...]
    among: NDArray[np.int64] | None = None
    """the pairs of columns whose counts are kept, and that may be neighbours; None: all"""

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """How many levels every column has."""
        return level_counts(self.columns, BINS)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs of columns, and where the counts of each begin."""
        return pairs_and_starts(self.levels, self.among)

    def log_components(self, rows: Encoded) -> Array:
        """There is one component, to which all rows belong."""
        return np.zeros((rows.rows, 1))

    def expected(self, rows: Encoded, shares: Array) -> PairSums:
        """Return the counts of rows with these weights."""
        codes, weights = rows.binned(BINS), np.ascontiguousarray(shares[:, 0])
        pairs = native.pair_counts(np.ascontiguousarray(codes.T), self.levels, self.pairs[0], weights)
        return PairSums(np.concatenate(counts_of_levels(codes, self.levels, weights)), pairs)

    def solve(self, sums: PairSums) -> "TreeDensity":
        """Return the tree of the most mutual information, its tables smoothed."""
        listed, starts = self.pairs
        d = len(self.columns)
        place = {(int(i), int(j)): at for at, (i, j) in enumerate(listed)}

        def counts(parent: int, child: int) -> Array:
            one, other = max(parent, child), min(parent, child)
            at = place[one, other]
            found = sums.pairs[starts[at] : starts[at + 1]].reshape(self.levels[one], self.levels[other])
            return found if parent == one else np.ascontiguousarray(found.T)

        information = np.zeros((d, d))
        for i, j in place:
            found = coarser(coarser(counts(i, j), self.columns[i]).T, self.columns[j])
            information[i, j] = information[j, i] = native.table_information(np.ascontiguousarray(found))
        ends = np.cumsum(self.levels)[:-1]
        marginals = binned_marginals(self.columns, np.split(sums.levels, ends))
        allowed = None if self.among is None else neighbours(d, self.among)
        return Smoother(self.columns, self.levels, marginals, counts).prior([maximum_tree(information, allowed)]).first


def pairs_and_starts(
    levels: NDArray[np.int32], among: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return some pairs of columns, or all, and where the counts of each begin if they lie one after the other."""
    listed = all_pairs(len(levels)) if among is None else among
    sizes = levels[listed].astype(np.int64).prod(axis=1)
    return listed, np.append(0, np.cumsum(sizes))


def taken_or_none(counts: Array, index: NDArray[np.int64]) -> Array:
    """Return counts at these indices, and 0 where the index is −1."""
    found = counts[np.maximum(index, 0)]
    found[index < 0] = 0.0
    return found


def coarser(counts: Array, column: TableColumn) -> Array:
    """Return counts, levels × anything, in which bins of a number are added up to coarse ones."""
    if column.bins == 0 or column.bins == 1:
        return counts
    atoms, times = column.levels - 1, BINS // COARSE
    binned = counts[atoms:].reshape(COARSE, times, *counts.shape[1:]).sum(axis=1)
    return np.concatenate([counts[:atoms], binned])


def fit_tree(rows: Encoded, among: Candidates | None = None) -> tuple[ChowLiuPrior, "Learned[ChowLiuPrior, PairSums]"]:
    """Fit one Chow–Liu tree: counts of all pairs, or of those that may be neighbours, in one pass."""
    among = candidates(rows) if among is None else among
    prior = ChowLiuPrior(rows.columns, None if among.screened is None else among.pairs)
    return prior, Learned(prior, prior.expected(rows, weighted(np.ones((rows.rows, 1)), rows.weights)))


class Drawn(NamedTuple):
    """Rows whose unknown cells were drawn: levels, u of numbers that are none, and the component of each row."""

    levels: Codes
    u: Array
    components: NDArray[np.int32]


class Learned(NamedTuple, Generic[D, S]):
    """A mixture as EM leaves it: the density under which rows were expected, and their sums, which are solved."""

    reference: D
    sums: S


def fit_trees(
    rows: Encoded, groups: NDArray[np.int64] | None, k: int, among: Candidates | None = None
) -> tuple[TreePrior, "Learned[TreeDensity, TreeSums]"]:
    """Fit a mixture of k Chow–Liu trees by EM from first groups of rows.

    Each component has a tree of its own, chosen at first and once more after some steps.
    """
    first = np.ones((rows.rows, 1)) if groups is None else 0.8 * np.eye(k)[groups] + 0.2 / k
    among = candidates(rows) if among is None else among
    prior = tree_prior(rows, first, among)
    start = fit_mixture(prior, prior.first, first, rows, steps=_FIRST_STEPS, tolerance=0.0)
    if k == 1:
        return prior, start.learned
    again, found = continued_trees(rows, start.shares, among, steps=_STEPS)
    return (prior, start.learned) if start.log_likelihood > found.log_likelihood else (again, found.learned)


def continued_trees(
    rows: Encoded, shares: Array, among: Candidates | None = None, *, steps: int
) -> tuple[TreePrior, "MixtureStep[TreeDensity, TreeSums]"]:
    """Choose the trees of components anew, and take more EM steps from responsibilities."""
    prior = tree_prior(rows, shares, among)
    return prior, fit_mixture(prior, prior.first, shares, rows, steps=steps, tolerance=_TOLERANCE)


def candidates(rows: Encoded) -> Candidates:
    """Return the pairs of columns that may be neighbours in trees."""
    return Candidates.of(rows.binned(COARSE), level_counts(rows.columns, COARSE), rows.weights)


def tree_prior(rows: Encoded, shares: Array, among: Candidates | None = None) -> TreePrior:
    """Choose a tree for every component, by its own mutual information with some of that of all rows."""
    codes, weights = rows.binned(BINS), rows.weights
    among = candidates(rows) if among is None else among
    information = among.information(rows.binned(COARSE), level_counts(rows.columns, COARSE), weights)
    allowed = among.of_columns
    smoother = Smoother.of(rows.columns, codes, weights)
    if shares.shape[1] == 1:
        return smoother.prior([maximum_tree(information, allowed)])
    pairs = Pairs.of(codes, smoother.levels, among.pairs)
    own, counted = pairs.information_by_component(weighted(shares, weights))
    mixed = (counted * own + INFORMATION_ROWS * information) / (counted + INFORMATION_ROWS)
    return smoother.prior([maximum_tree(one, allowed) for one in mixed])


def dependence(rows: Encoded, among: Candidates | None = None) -> Array:
    """Return the mutual information of columns × columns, numbers in coarse bins; on the diagonal the entropies."""
    codes, levels = rows.binned(COARSE), level_counts(rows.columns, COARSE)
    among = Candidates(all_pairs(len(levels))) if among is None else among
    found = among.information(codes, levels, rows.weights)
    found[np.diag_indices(len(levels))] = entropies(codes, levels, rows.weights)
    return found


def weighted(shares: Array, weights: Array | None) -> Array:
    """Return responsibilities times the weights of rows."""
    return shares if weights is None else shares * weights[:, None]


class MixtureStep(NamedTuple, Generic[D, S]):
    """Where EM is: a mixture, from which sums it was solved, and how likely rows are in the mean."""

    density: D
    learned: Learned[D, S]
    log_likelihood: float
    shares: Array


class Mixture(Protocol[S_co]):
    """Components that rows are expected under."""

    def log_components(self, rows: Encoded) -> Array:
        """Return log w_k p_k(what is known of each row)."""

    def expected(self, rows: Encoded, shares: Array) -> S_co:
        """Return the expected sums of rows that belong to components by these responsibilities."""


class MixturePrior(Protocol[S_contra, M_co]):
    """What mixtures are solved with beside their sums."""

    def solve(self, sums: S_contra) -> M_co:
        """Return the mixture of expected sums."""


def fit_mixture(
    prior: MixturePrior[S, M], start: M, shares: Array, rows: Encoded, *, steps: int, tolerance: float
) -> MixtureStep[M, S]:
    """Take EM steps from first responsibilities; the best step is kept, as smoothed tables may lower the likelihood.

    ``start`` says what is expected of missing cells in the first step. That one is never kept: its responsibilities are
    not those of its reference, under which rows must be expected again when they are forgotten.
    """
    best: list[MixtureStep[M, S]] = []

    def solved(reference: M, shares: Array) -> MixtureStep[M, S]:
        sums: S = reference.expected(rows, weighted(shares, rows.weights))
        density = prior.solve(sums)
        logs = density.log_components(rows)
        found = float(np.average(log_sum_exp(logs), weights=rows.weights))
        return MixtureStep(density, Learned(reference, sums), found, responsibilities(logs))

    def step(at: MixtureStep[M, S]) -> MixtureStep[M, S]:
        new = solved(at.density, at.shares)
        if not best or new.log_likelihood > best[0].log_likelihood:
            best[:] = [new]
        return new

    def gain(new: MixtureStep[M, S], old: MixtureStep[M, S]) -> float:
        return new.log_likelihood - old.log_likelihood

    first = solved(start, shares)
    iterate(first, step, gain, tolerance=tolerance, most=max(steps - 1, 1))
    return best[0]
