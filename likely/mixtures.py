"""Mixtures: where the climbs of expectation maximisation begin, and which of them is kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from likely.clustering import Clustering, restarts
from likely.distinct import DistinctRows, drawn_rows
from likely.families import Gaussian
from likely.hidden import Climb, Hidden, Step, climb
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


class Sample(NamedTuple):
    """Rows that the first groups are looked for in, of which no two are equal, and the weight of each."""

    table: Table
    weights: Array

    @classmethod
    def of(cls, rows: Hidden, generator: np.random.Generator) -> Self:
        """Draw rows by their content: so a weight of 2 is a row twice, wherever the row stands."""
        table, seed = rows.table, int(generator.integers(1 << 62))
        every = Assignment(np.zeros(1), np.zeros(table.rows, dtype=np.int32), rows.weights)
        sparse = isinstance(table.cells, SparseRows)
        if sparse or table.rows > _ENOUGH:
            table, every = drawn_rows(table, every, _ENOUGH, seed)
        if not sparse:  # in an order that is the same in other units
            table, every, _ = DistinctRows.of(table, every, seed)
        return cls(table, np.ones(table.rows) if every.weights is None else every.weights)


def climbs(
    rows: Hidden,
    parts: tuple[Part, ...],
    k: int,
    start: Any,
    times: int,
    generator: np.random.Generator,
    *,
    tolerance: float,
    most: int,
    watch: Callable[[int, int, float], object] | None = None,
) -> Iterator[Climb]:
    """Begin some times, and climb from there; ``watch`` is told the start, the step and the likelihood."""
    sample = Sample.of(rows, generator) if isinstance(start, str) else None
    for i in range(times):
        statistics = given(rows, parts, k, start) if sample is None else begin(sample, parts, k, start, generator, i)
        told = None if watch is None else lambda step, told, i=i: watch(i, step, told)
        yield climb(rows, statistics, parts, tolerance=tolerance, most=most, watch=told)


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


def given(rows: Hidden, parts: tuple[Part, ...], k: int, start: Any) -> JointStatistics:
    """Return the statistics of groups that are given."""
    codes = np.asarray(start, dtype=np.int32)
    return _collected(rows.table, Assignment(np.arange(k), codes, rows.weights), parts)


def begin(
    sample: Sample, parts: tuple[Part, ...], k: int, start: str, generator: np.random.Generator, turn: int = 0
) -> JointStatistics:
    """Return first statistics: of groups that k-means finds, or of chance.

    Every ``turn`` begins elsewhere: k-means takes columns by their scales, and every other time without their
    correlations. After two turns it would end at the same groups again, so it only begins.
    """
    table, weights = sample
    x = standardised(table, parts, weights, whiten=turn % 2 == 1) if start == "k-means++" and table.rows > k else None
    if x is None:
        codes = generator.permutation(np.arange(table.rows) % k).astype(np.int32)
    else:
        times, steps = (_TRIES, _STEPS) if turn < 2 else (1, 1)
        codes = min(restarts(read_points(Table(x)), k, start, times, generator, weights, steps), key=_inertia).labels
    return _collected(table, Assignment(np.arange(k), codes, weights), parts)


def _inertia(found: Clustering) -> float:
    return found.inertia


def _collected(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> JointStatistics:
    return collect(_filled(table, assignment, parts), assignment, parts)


def _filled(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> Table:
    """Fill missing cells under a full covariance with the means of their groups: what is expected there comes later."""
    every = range(table.columns.width)
    full = [
        j
        for part in parts
        if isinstance(part.family, Gaussian) and part.family.covariance == "full"
        for j in (every if part.columns is None else part.columns)
    ]
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
