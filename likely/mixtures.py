"""Mixtures: where the climbs of expectation maximisation begin, and which of them is kept."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from likely.clustering import Clustering, restarts
from likely.distinct import DistinctRows, drawn_rows
from likely.families import Gaussian
from likely.hidden import Ascent, Climb, Hidden, Step, climb
from likely.joint import Joint, Part
from likely.learn import collect
from likely.starts import read_points
from likely.statistics import Array, Assignment, JointStatistics
from likely.table import Block, SparseRows, Table

STARTS = ("k-means++", "assignment")
# Rows that the first groups are looked for in; all rows are climbed with.
_ENOUGH = 20_000
# Runs of k-means for each of the first two starts, and how many steps each takes at most.
_TRIES = 4
_STEPS = 100
# How fast early batches are forgotten: at ½ or less steps never settle, at 1 the first groups are remembered too long.
_FORGETTING = 0.7
# Starts whose likelihoods or inertias differ by less than this share have ended at the same: the first is kept.
_ROUNDING = 1e-10
# A component that is begun anew gets this part of an even share of the rows.
_SHARE = 10


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
            table, every = drawn_rows(table, every, _ENOUGH, seed)
        if not sparse:  # in an order that is the same in other units
            table, every, _ = DistinctRows.of(table, every, seed)
        return cls(table, np.ones(table.rows) if every.weights is None else every.weights)


class Start(NamedTuple):
    """Where one start has ended."""

    log_likelihood: float
    iterations: int
    converged: bool


class Search(NamedTuple):
    """Several climbs, one after the other, as far as they are. It can go on from there, and ends at the same bits."""

    seeds: tuple[int, ...]
    """of the rows that first groups are looked for in, and of each start"""
    starts: tuple[Start, ...] = ()
    """those that have ended"""
    best: Climb | None = None
    present: Ascent | None = None
    """where the next one is, if it has begun"""

    @classmethod
    def of(cls, times: int, generator: np.random.Generator) -> Self:
        """Return a search that has not begun."""
        return cls(tuple(generator.integers(1 << 62, size=times + 1).tolist()))

    def ended(self, found: Climb) -> Self:
        """Return the search after one more start."""
        told, best = found.log_likelihood, self.best
        start = Start(told, len(found.log_likelihoods) - 1, found.converged)
        better = best is None or told > best.log_likelihood + _ROUNDING * abs(best.log_likelihood)
        return self._replace(starts=(*self.starts, start), best=found if better else best, present=None)


class Aim(NamedTuple):
    """What is looked for: so many components of these parts, begun so, until steps gain less than the tolerance."""

    parts: tuple[Part, ...]
    k: int
    start: Any
    """one of STARTS, or the group of each row"""
    tolerance: float
    most: int


def climbed(rows: Hidden, aim: Aim, search: Search, watch: Callable[[Search], object]) -> Search:
    """Begin as often as there are seeds, and climb from there; ``watch`` is told before every further step."""
    sample = None

    def revive(statistics: JointStatistics, joint: Joint) -> JointStatistics:
        return revived(rows, aim, statistics, joint)

    while len(search.starts) < len(search.seeds) - 1:
        turn = len(search.starts)
        if search.present is None:
            if isinstance(aim.start, str):
                sample = sample or Sample.of(rows, search.seeds[0])
                first = begin(sample, aim, np.random.default_rng(search.seeds[turn + 1]), turn)
            else:
                first = _collected(rows.table, Assignment(np.arange(aim.k), aim.start, rows.weights), aim.parts)
            search = search._replace(present=Ascent(first))
            watch(search)
        assert search.present is not None
        found = climb(
            rows,
            search.present,
            aim.parts,
            tolerance=aim.tolerance,
            most=aim.most,
            revive=revive,
            watch=lambda at, search=search: watch(search._replace(present=at)),  # type: ignore[misc]
        )
        search = search.ended(found)
    return search


def revived(rows: Hidden, aim: Aim, statistics: JointStatistics, joint: Joint) -> JointStatistics:
    """Begin a component anew, beside those that are left, at the rows that they explain worst."""
    table, weights = rows.table, rows.weights
    told = joint.log_density(table)
    if weights is not None:
        told[weights == 0] = np.inf
    worst = np.argsort(told, kind="stable")[: -(-table.rows // (_SHARE * aim.k))]
    some = table.taken(worst)
    label = np.setdiff1d(np.arange(aim.k), statistics.classes)[:1]
    own = Assignment(label, np.zeros(some.rows, dtype=np.int32), None if weights is None else weights[worst])
    full = _full_columns(some, aim.parts)
    if full and np.isnan(Block(some, full).values()).any():
        cells, expected = np.array(Block(some, None).dense(), dtype=np.float64), joint.expected(some)
        cells[:, full] = np.where(np.isnan(cells[:, full]), expected[:, full], cells[:, full])
        some = replace(some, cells=cells)
    return statistics + collect(some, own, aim.parts)


def learned(known: JointStatistics, joint: Joint, batch: Hidden) -> Step:
    """Learn from one more batch (stepwise EM; Cappé and Moulines, 2009): statistics for all rows so far, about.

    Those that are known keep the share 1 − γ, the batch gets γ = (t + 2)^−0.7, where t is how many batches of its
    weight came before. ``joint`` is what the known ones solve to. The likelihood is the batch's before it is learned.
    """
    found = batch.expect(joint)
    before, more = float(known.weights.sums["weight"].sum()), batch.weight
    share = (before / more + 2) ** -_FORGETTING
    every = before + more
    return found._replace(statistics=known * ((1 - share) * every / before) + found.statistics * (share * every / more))


def begin(sample: Sample, aim: Aim, generator: np.random.Generator, turn: int = 0) -> JointStatistics:
    """Return first statistics: of groups that k-means finds, or of chance.

    Every ``turn`` begins elsewhere: k-means takes columns by their scales, and every other time without their
    correlations. After two turns it would end at the same groups again, so it only begins.
    """
    (table, weights), (parts, k, start, *_), x = sample, aim, None
    if start == "k-means++" and table.rows > k:
        x = standardised(table, parts, weights, whiten=turn % 2 == 1)
    if x is None:
        codes = generator.permutation(np.arange(table.rows) % k).astype(np.int32)
    else:
        times, steps = (_TRIES, _STEPS) if turn < 2 else (1, 1)
        codes = reduce(_nearer, restarts(read_points(Table(x)), k, start, times, generator, weights, steps)).labels
    return _collected(table, Assignment(np.arange(k), codes, weights), parts)


def _nearer(one: Clustering, other: Clustering) -> Clustering:
    return other if other.inertia < one.inertia * (1 - _ROUNDING) else one


def _collected(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> JointStatistics:
    return collect(_filled(table, assignment, parts), assignment, parts)


def _filled(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> Table:
    """Fill missing cells under a full covariance with the means of their groups: what is expected there comes later."""
    full = _full_columns(table, parts)
    if not full or not np.isnan(Block(table, full).values()).any():
        return table
    x = np.array(Block(table, full).values())
    _, codes, weights = assignment
    w = np.ones((len(x), 1)) if weights is None else weights[:, None]
    for group in [*(codes == c for c in np.unique(codes)), slice(None)]:
        n, means = _middle(x[group], w[group])
        x[group] = np.where(np.isnan(x[group]) & (n > 0), means, x[group])
    cells = np.array(Block(table, None).dense(), dtype=np.float64)
    cells[:, full] = x
    return replace(table, cells=cells)


def _full_columns(table: Table, parts: tuple[Part, ...]) -> list[int]:
    """Return the columns under a full covariance."""
    every = range(table.columns.width)
    return [
        j
        for part in parts
        if isinstance(part.family, Gaussian) and part.family.covariance == "full"
        for j in (every if part.columns is None else part.columns)
    ]


def _middle(x: Array, w: Array) -> tuple[Array, Array]:
    """Return the weight of the cells of every column that are there, and their mean, 0 if there is none."""
    there = ~np.isnan(x)
    n = (there * w).sum(axis=0)
    return n, np.where(there, x * w, 0.0).sum(axis=0) / np.where(n > 0, n, 1.0)


def standardised(table: Table, parts: tuple[Part, ...], weights: Array, *, whiten: bool) -> Array | None:
    """Return rows whose columns of numbers have variance 1 and, to ``whiten`` them if none is missing, no correlations.

    A column of categories becomes one of 0 and 1 for each, less their means, of variance 1 all together. Cells that are
    missing stay so. None if the rows are sparse or texts, or all alike.
    """
    if isinstance(table.cells, SparseRows):
        return None
    found = []
    w = weights[:, None]
    for part in parts:
        block = Block(table, part.columns)
        if isinstance(part.family, Gaussian):
            found.append(_uncorrelated(block.values(), w) if whiten else _scaled(block.values(), w))
            continue
        for j in range(block.width):
            if block.number(j) in table.strings:
                continue
            column = block.single(j).values()[:, 0]
            named = block.number(j) in table.categories or part.family.name == "numbered categories"
            found.append(_indicators(column, w) if named else _scaled(column[:, None], w))
    x = np.hstack(found) if found else np.empty((table.rows, 0))
    return np.ascontiguousarray(x) if x.shape[1] else None


def _scaled(x: Array, w: Array) -> Array:
    x = np.asarray(x, dtype=np.float64)
    apart = x - _middle(x, w)[1]
    deviation = np.sqrt(_middle(apart**2, w)[1])
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
    shares = _middle(z, w)[1]
    spread = np.sqrt((shares * (1 - shares)).sum())
    return np.asarray((z - shares) / (spread if spread > 0 else 1.0))
