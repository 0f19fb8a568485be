"""Mixtures: EM from several starts, of which one is kept; the first groups of each; empty components; batches."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.distinct import DistinctRows, sample_rows
from likely.data.table import Block, SparseRows, Table
from likely.families import Gaussian
from likely.joint import Joint, Part
from likely.learn.hidden import EMResult, EMState, Hidden, Step, em
from likely.learn.kmeans import Clustering, read_points, restarts
from likely.learn.one_pass import collect
from likely.statistics import Array, Assignment, JointStatistics

STARTS = ("k-means++", "assignment")
# Rows that the first groups are looked for in; EM is run on all rows.
_ENOUGH = 20_000
# Runs of k-means for each of the first two starts, and how many steps each takes at most.
_TRIES = 4
_STEPS = 100
# Starts whose likelihoods or inertias differ by less than this fraction have ended at the same: the first is kept.
ROUNDING = 1e-10


class Sample(NamedTuple):
    """Rows that the first groups are looked for in, of which no two are equal, and the weight of each."""

    table: Table
    weights: Array

    @classmethod
    def of(cls, rows: Hidden, seed: int) -> Self:
        """Draw rows by their content: so a weight of 2 is a row twice, wherever the row stands."""
        table = rows.table
        every = Assignment(np.zeros(1), np.zeros(table.rows, dtype=np.int32), rows.weights)
        sparse = isinstance(table.cells, SparseRows)
        if sparse or table.rows > _ENOUGH:
            table, every = sample_rows(table, every, _ENOUGH, seed)
        if not sparse:  # in an order that is the same in other units
            table, every, _ = DistinctRows.of(table, every, seed)
        return cls(table, np.ones(table.rows) if every.weights is None else every.weights)


def first_groups(
    sample: Sample, parts: tuple[Part, ...], k: int, start: str, generator: np.random.Generator, turn: int = 0
) -> Assignment:
    """Return the first group of every row of a sample: what k-means finds, or chance.

    Every ``turn`` begins elsewhere: k-means takes columns by their scales, and every other time without their
    correlations, or where there are words, by chance. After two turns it would end at the same groups again, so it only
    begins.
    """
    table, weights = sample
    x: Array | SparseRows | None = None
    if start == "k-means++" and table.rows > k:
        x = standardised(table, parts, weights, whiten=turn % 2 == 1)
    if x is None:
        codes = generator.permutation(np.arange(table.rows) % k).astype(np.int32)
        return Assignment(np.arange(k), codes, weights)
    times, steps = (_TRIES, _STEPS) if turn < 2 else (1, 1)
    points = read_points(Table(x), weights=weights)
    best = reduce(_nearer, restarts(points, k, start, times, generator, weights, steps))
    return Assignment(np.arange(k), best.labels, weights)


def _nearer(one: Clustering, other: Clustering) -> Clustering:
    return other if other.inertia < one.inertia * (1 - ROUNDING) else one


def collected(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> JointStatistics:
    """Collect the statistics of rows whose groups are known, and their missing cells are not."""
    return collect(_filled(table, assignment, parts), assignment, parts)


def _filled(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> Table:
    """Fill missing cells under a full covariance with the means of their groups: what is expected there comes later."""
    full = full_columns(table, parts)
    if not full or not np.isnan(Block(table, full).values()).any():
        return table
    x = np.array(Block(table, full).values())
    _, codes, weights = assignment
    w = np.ones((len(x), 1)) if weights is None else weights[:, None]
    for group in [*(codes == c for c in np.unique(codes)), slice(None)]:
        n, means = _weighted_mean(x[group], w[group])
        x[group] = np.where(np.isnan(x[group]) & (n > 0), means, x[group])
    cells = np.array(Block(table, None).dense(), dtype=np.float64)
    cells[:, full] = x
    return replace(table, cells=cells)


def full_columns(table: Table, parts: tuple[Part, ...]) -> list[int]:
    """Return the columns under a full covariance."""
    every = range(table.columns.width)
    return [
        j
        for part in parts
        if isinstance(part.family, Gaussian) and part.family.covariance == "full"
        for j in (every if part.columns is None else part.columns)
    ]


def _weighted_mean(x: Array, w: Array) -> tuple[Array, Array]:
    """Return the weight of the cells of every column that are there, and their mean, 0 if there is none."""
    there = ~np.isnan(x)
    n = (there * w).sum(axis=0)
    return n, np.where(there, x * w, 0.0).sum(axis=0) / np.where(n > 0, n, 1.0)


def standardised(table: Table, parts: tuple[Part, ...], weights: Array, *, whiten: bool) -> Array | SparseRows | None:
    """Return rows whose columns of numbers have variance 1 and, to ``whiten`` them if none is missing, no correlations.

    A column of categories becomes one of 0 and 1 for each, less their means, of variance 1 all together. Cells that are
    missing stay so. Counts and texts become sparse, with other columns beside them; None if they are to be whitened.
    """
    if isinstance(table.cells, SparseRows):
        return None if whiten else _tf_idf(table.cells, weights)
    found, texts = [], []
    w = weights[:, None]
    for part in parts:
        block = Block(table, part.columns)
        if isinstance(part.family, Gaussian):
            found.append(_uncorrelated(block.values(), w) if whiten else _scaled(block.values(), w))
            continue
        for j in range(block.width):
            if block.number(j) in table.strings:
                texts.append(_tf_idf(_counted(part.family, block.single(j)), weights))
                continue
            column = block.single(j).values()[:, 0]
            named = block.number(j) in table.categories or part.family.name == "numbered categories"
            found.append(_indicators(column, w) if named else _scaled(column[:, None], w))
    x = np.hstack(found) if found else np.empty((table.rows, 0))
    if texts:
        return None if whiten else _hstack(x, texts)
    return np.ascontiguousarray(x) if x.shape[1] else None


def _counted(family: Any, column: Block) -> SparseRows:
    """Return how often each word comes in each text; a missing one has none."""
    rows, terms = family.analyzer.counts(column.texts().fill_null(""))
    return SparseRows(rows.starts, rows.units, rows.counts.astype(np.float64), len(terms))


def _tf_idf(cells: SparseRows, weights: Array) -> SparseRows:
    """Return rows of length 1 along log(1 + count) of each word, times the logarithm of how rare it is."""
    rows = np.repeat(np.arange(len(weights)), np.diff(cells.starts))
    counts = np.maximum(cells.values, 0).astype(np.float64)
    having = np.bincount(cells.indices, weights[rows] * (counts > 0), cells.width)
    values = np.log1p(counts) * (1 + np.log((1 + weights.sum()) / (1 + having)))[cells.indices]
    lengths = np.sqrt(np.bincount(rows, values**2, len(weights)))
    return cells._replace(values=values / np.where(lengths > 0, lengths, 1.0)[rows])


def _hstack(x: Array, texts: list[SparseRows]) -> SparseRows:
    """Put columns of numbers, in which a missing cell is the mean, and sparse ones side by side."""
    n, width = x.shape
    numbers = SparseRows(np.arange(n + 1) * width, np.tile(np.arange(width), n), np.nan_to_num(x).ravel(), width)
    parts = [numbers, *texts]
    first = np.cumsum([0, *(part.width for part in parts)])
    rows = np.concatenate([np.repeat(np.arange(n), np.diff(part.starts)) for part in parts])
    order = np.argsort(rows, kind="stable")
    indices = np.concatenate([part.indices + start for part, start in zip(parts, first, strict=False)])
    values = np.concatenate([part.values for part in parts])
    starts = np.searchsorted(rows[order], np.arange(n + 1))
    return SparseRows(starts.astype(np.int64), indices[order], values[order], int(first[-1]))


def _scaled(x: Array, w: Array) -> Array:
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity is refused by those who collect it, in a sentence
        apart = x - _weighted_mean(x, w)[1]
        deviation = np.sqrt(_weighted_mean(apart**2, w)[1])
        return np.asarray(apart / np.where(deviation > 0, deviation, 1.0))


def _uncorrelated(x: Array, w: Array) -> Array:
    z = _scaled(x, w)
    if np.isnan(z).any() or z.shape[1] == 1:
        return z
    values, vectors = np.linalg.eigh(np.cov(z.T, bias=True, aweights=w[:, 0]))
    kept = values > 1e-9 * values.max()
    return np.asarray(z @ (vectors[:, kept] / np.sqrt(values[kept])))


def _indicators(column: Array, w: Array) -> Array:
    there = ~np.isnan(column)
    values, codes = np.unique(column[there], return_inverse=True)
    z = np.full((len(column), len(values)), np.nan)
    z[there] = np.eye(len(values))[codes]
    p = _weighted_mean(z, w)[1]
    spread = np.sqrt((p * (1 - p)).sum())
    return np.asarray((z - p) / (spread if spread > 0 else 1.0))


# How fast early batches are forgotten: at ½ or less EM never converges, at 1 first groups are remembered too long.
_FORGETTING = 0.7
# A component that is restarted gets this part of an even share of the weight of all rows.
_SHARE = 10


class Start(NamedTuple):
    """Where one start has ended."""

    log_likelihood: float
    iterations: int
    converged: bool


class Search(NamedTuple):
    """EM from several starts, one after the other, as far as it is. It can go on from there, to the same bits."""

    seeds: tuple[int, ...]
    """of the rows that first groups are looked for in, and of each start"""
    starts: tuple[Start, ...] = ()
    """those that have ended"""
    best: EMResult | None = None
    present: EMState | None = None
    """where the next one is, if it has started"""

    @classmethod
    def of(cls, times: int, generator: np.random.Generator) -> Self:
        """Return a search that has not started."""
        return cls(tuple(generator.integers(1 << 62, size=times + 1).tolist()))

    def ended(self, found: EMResult) -> Self:
        """Return the search after one more start."""
        reached, best = found.log_posterior, self.best
        start = Start(found.log_likelihood, len(found.log_likelihoods) - 1, found.converged)
        better = best is None or reached > best.log_posterior + ROUNDING * abs(best.log_posterior)
        return self._replace(starts=(*self.starts, start), best=found if better else best, present=None)


class MixtureTask(NamedTuple):
    """What is looked for: so many components of these parts, started so, until steps gain less than the tolerance."""

    parts: tuple[Part, ...]
    k: int
    start: str | NDArray[np.int32]
    """one of STARTS, or the group of each row"""
    tolerance: float
    most: int
    first: "First | None" = None
    """rows that first groups were already looked for in"""


class First(NamedTuple):
    """Rows in the groups that k-means finds in them, where the first start begins."""

    sample: Sample
    groups: Assignment

    @classmethod
    def of(cls, sample: Sample, parts: tuple[Part, ...], k: int, seeds: tuple[int, ...]) -> Self:
        """Return the groups of a sample as a search with these seeds begins with them."""
        return cls(sample, first_groups(sample, parts, k, STARTS[0], np.random.default_rng(seeds[1])))


def search_mixture(rows: Hidden, task: MixtureTask, search: Search, watch: Callable[[Search], object]) -> Search:
    """Run EM from as many starts as there are seeds; ``watch`` is given the search before every further step."""
    sample = None if task.first is None else task.first.sample

    while len(search.starts) < len(search.seeds) - 1:
        turn = len(search.starts)
        if search.present is None:
            if isinstance(task.start, str):
                sample = sample or Sample.of(rows, search.seeds[0])
                if task.first is not None and turn == 0 and task.start == STARTS[0]:
                    groups = task.first.groups
                else:
                    generator = np.random.default_rng(search.seeds[turn + 1])
                    groups = first_groups(sample, task.parts, task.k, task.start, generator, turn)
                first = collected(sample.table, groups, task.parts)
                first = rows.prepared(first, task.parts, task.tolerance, task.most)
            else:
                first = collected(rows.table, Assignment(np.arange(task.k), task.start, rows.weights), task.parts)
            search = search._replace(present=EMState(first))
            watch(search)
        assert search.present is not None
        found = em(
            rows,
            search.present,
            task.parts,
            tolerance=task.tolerance,
            most=task.most,
            restart=partial(restarted, rows, task),
            watch=lambda at, search=search: watch(search._replace(present=at)),  # type: ignore[misc]
        )
        search = search.ended(found)
    return search


def restarted(rows: Hidden, task: MixtureTask, statistics: JointStatistics, joint: Joint) -> JointStatistics:
    """Restart a component, beside those that are left, at the rows that they explain worst."""
    table = rows.table
    weights = np.ones(table.rows) if rows.weights is None else rows.weights
    taken = _least_likely(joint.log_density(table), weights, float(weights.sum()) / (_SHARE * task.k))
    worst = np.flatnonzero(taken)
    some = table.taken(worst)
    label = np.setdiff1d(np.arange(task.k), statistics.classes)[:1]
    own = Assignment(label, np.zeros(some.rows, dtype=np.int32), taken[worst])
    full = full_columns(some, task.parts)
    if full and np.isnan(Block(some, full).values()).any():
        cells, expected = np.array(Block(some, None).dense(), dtype=np.float64), joint.expected(some)
        cells[:, full] = np.where(np.isnan(cells[:, full]), expected[:, full], cells[:, full])
        some = replace(some, cells=cells)
    return statistics + collect(some, own, task.parts)


def _least_likely(log_density: Array, weights: Array, wanted: float) -> Array:
    """Return how much of each row's weight is taken, if the least likely rows of so much weight together are.

    Of rows that are equally likely the same fraction is taken: neither their order matters, nor whether a row is
    written twice or has a weight of 2.

    >>> _least_likely(np.array([-1.0, -9.0, -2.0, -2.0]), np.array([1.0, 1.0, 1.0, 3.0]), 2.0).tolist()
    [0.0, 1.0, 0.25, 0.75]
    """
    order = np.argsort(log_density, kind="stable")
    last = log_density[order][min(int(np.searchsorted(np.cumsum(weights[order]), wanted)), len(order) - 1)]
    margin = ROUNDING * abs(last) if np.isfinite(last) else 0.0
    less = log_density < last - margin
    equal = ~less & (log_density <= last + margin)
    left = wanted - float(weights[less].sum())
    return np.where(less, weights, np.where(equal, weights * min(left / float(weights[equal].sum()), 1.0), 0.0))


def learned(known: JointStatistics, joint: Joint, batch: Hidden) -> Step:
    """Learn from one more batch (stepwise EM; Cappé and Moulines, 2009): statistics for all rows so far, about.

    Those that are known keep the weight 1 − γ, the batch gets γ = (t + 2)^−0.7, where t is how many batches of its
    weight came before. ``joint`` is what the known ones solve to. The likelihood is the batch's before it is learned.
    """
    found = batch.expect(joint)
    before, more = float(known.weights.sums["weight"].sum()), batch.weight
    rate = (before / more + 2) ** -_FORGETTING
    every = before + more
    return found._replace(statistics=known * ((1 - rate) * every / before) + found.statistics * (rate * every / more))
