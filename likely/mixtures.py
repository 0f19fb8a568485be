"""Mixtures: where the climbs of expectation maximisation begin, and which of them is kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.clustering import Clustering, restarts
from likely.families import Gaussian
from likely.hidden import Climb, Hidden, climb
from likely.joint import Part
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
    for i in range(times):
        statistics = begin(rows, parts, k, start, generator, turn=i)
        told = None if watch is None else lambda step, told, i=i: watch(i, step, told)
        yield climb(rows, statistics, parts, tolerance=tolerance, most=most, watch=told)


def begin(
    rows: Hidden, parts: tuple[Part, ...], k: int, start: Any, generator: np.random.Generator, *, turn: int = 0
) -> JointStatistics:
    """Return first statistics: of groups that k-means finds, of chance, or as they are given.

    Every ``turn`` begins elsewhere: k-means takes columns by their scales, and every other time without their
    correlations. After two turns it would end at the same groups again, so it only begins.
    """
    classes = np.arange(k)
    if not isinstance(start, str):
        codes = np.asarray(start, dtype=np.int32)
        return collect(_filled(rows.table, codes, parts), Assignment(classes, codes, rows.weights), parts)
    chosen = np.arange(rows.table.rows) if rows.weights is None else np.flatnonzero(rows.weights > 0)
    if len(chosen) > _ENOUGH:
        chosen = np.sort(generator.choice(chosen, _ENOUGH, replace=False))
    table = rows.table.taken(chosen)
    weights = None if rows.weights is None else rows.weights[chosen]
    x = standardised(table, parts, whiten=turn % 2 == 1) if start == "k-means++" else None
    if x is None:
        codes = generator.permutation(np.arange(table.rows) % k).astype(np.int32)
    else:
        times, steps = (_TRIES, _STEPS) if turn < 2 else (1, 1)
        codes = min(restarts(read_points(Table(x)), k, start, times, generator, weights, steps), key=_inertia).labels
    return collect(_filled(table, codes, parts), Assignment(classes, codes, weights), parts)


def _inertia(found: Clustering) -> float:
    return found.inertia


def _filled(table: Table, codes: NDArray[np.int32], parts: tuple[Part, ...]) -> Table:
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
    for group in [*(codes == c for c in np.unique(codes)), slice(None)]:
        there = ~np.isnan(x[group])
        n = there.sum(axis=0)
        means = np.where(there, x[group], 0.0).sum(axis=0) / np.maximum(n, 1)
        x[group] = np.where(there, x[group], np.where(n > 0, means, np.nan))
    cells = np.array(Block(table, None).dense(), dtype=np.float64)
    cells[:, full] = x
    return replace(table, cells=cells)


def standardised(table: Table, parts: tuple[Part, ...], *, whiten: bool) -> Array | None:
    """Return rows whose columns of numbers have variance 1 and, to ``whiten`` them if none is missing, no correlations.

    A column of categories becomes one of 0 and 1 for each, less their means, of variance 1 all together. Cells that are
    missing stay so. None if the rows are sparse or texts, or all alike.
    """
    if isinstance(table.cells, SparseRows):
        return None
    found = []
    for part in parts:
        block = Block(table, part.columns)
        if isinstance(part.family, Gaussian):
            found.append(_uncorrelated(block.values()) if whiten else _scaled(block.values()))
            continue
        for j in range(block.width):
            if block.number(j) in table.strings:
                continue
            column = block.single(j).values()[:, 0]
            named = block.number(j) in table.categories or part.family.name == "numbered categories"
            found.append(_indicators(column) if named else _scaled(column[:, None]))
    x = np.hstack(found) if found else np.empty((table.rows, 0))
    return np.ascontiguousarray(x) if x.shape[1] else None


def _scaled(x: Array) -> Array:
    x = np.asarray(x, dtype=np.float64)
    there = ~np.isnan(x)
    n = np.maximum(there.sum(axis=0), 1)
    middle = np.where(there, x, 0.0).sum(axis=0) / n
    apart = np.where(there, x - middle, 0.0)
    deviation = np.sqrt((apart**2).sum(axis=0) / n)
    return np.where(there, apart / np.where(deviation > 0, deviation, 1.0), np.nan)


def _uncorrelated(x: Array) -> Array:
    z = _scaled(x)
    if np.isnan(z).any() or z.shape[1] == 1:
        return z
    values, vectors = np.linalg.eigh(np.cov(z.T, bias=True))
    kept = values > 1e-9 * values.max()
    return np.asarray(z @ (vectors[:, kept] / np.sqrt(values[kept])))


def _indicators(column: Array) -> Array:
    there = ~np.isnan(column)
    values, codes = np.unique(column[there], return_inverse=True)
    z = np.full((len(column), len(values)), np.nan)
    z[there] = np.eye(len(values))[codes]
    shares = np.nanmean(z, axis=0) if there.any() else np.zeros(len(values))
    spread = np.sqrt((shares * (1 - shares)).sum())
    return np.asarray((z - shares) / (spread if spread > 0 else 1.0))
