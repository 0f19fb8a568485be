"""The first groups of rows, from which expectation maximisation climbs."""

from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.distinct import DistinctRows, sample_rows
from likely.data.table import Block, SparseRows, Table
from likely.families import Gaussian
from likely.joint import Part
from likely.learn.hidden import Hidden
from likely.learn.kmeans import Clustering, restarts
from likely.learn.one_pass import collect
from likely.learn.starts import read_points
from likely.statistics import Array, Assignment, JointStatistics

STARTS = ("k-means++", "assignment")
# Rows that the first groups are looked for in; all rows are climbed with.
_ENOUGH = 20_000
# Runs of k-means for each of the first two starts, and how many steps each takes at most.
_TRIES = 4
_STEPS = 100
# Starts whose likelihoods or inertias differ by less than this share have ended at the same: the first is kept.
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


def begin(
    sample: Sample, parts: tuple[Part, ...], k: int, start: str, generator: np.random.Generator, turn: int = 0
) -> JointStatistics:
    """Return first statistics: of groups that k-means finds, or of chance."""
    groups = Assignment(np.arange(k), first_codes(sample, parts, k, start, generator, turn), sample.weights)
    return collected(sample.table, groups, parts)


def first_codes(
    sample: Sample, parts: tuple[Part, ...], k: int, start: str, generator: np.random.Generator, turn: int = 0
) -> NDArray[np.int32]:
    """Return the first group of every row of a sample.

    Every ``turn`` begins elsewhere: k-means takes columns by their scales, and every other time without their
    correlations, or where there are words, by chance. After two turns it would end at the same groups again, so it only
    begins.
    """
    table, weights = sample
    x: Array | SparseRows | None = None
    if start == "k-means++" and table.rows > k:
        x = standardised(table, parts, weights, whiten=turn % 2 == 1)
    if x is None:
        return generator.permutation(np.arange(table.rows) % k).astype(np.int32)
    times, steps = (_TRIES, _STEPS) if turn < 2 else (1, 1)
    points = read_points(Table(x), weights=weights)
    return reduce(_nearer, restarts(points, k, start, times, generator, weights, steps)).labels


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
        n, means = _middle(x[group], w[group])
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


def _middle(x: Array, w: Array) -> tuple[Array, Array]:
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
        return None if whiten else _weighed(table.cells, weights)
    found, texts = [], []
    w = weights[:, None]
    for part in parts:
        block = Block(table, part.columns)
        if isinstance(part.family, Gaussian):
            found.append(_uncorrelated(block.values(), w) if whiten else _scaled(block.values(), w))
            continue
        for j in range(block.width):
            if block.number(j) in table.strings:
                texts.append(_weighed(_counted(part.family, block.single(j)), weights))
                continue
            column = block.single(j).values()[:, 0]
            named = block.number(j) in table.categories or part.family.name == "numbered categories"
            found.append(_indicators(column, w) if named else _scaled(column[:, None], w))
    x = np.hstack(found) if found else np.empty((table.rows, 0))
    if texts:
        return None if whiten else _beside(x, texts)
    return np.ascontiguousarray(x) if x.shape[1] else None


def _counted(family: Any, column: Block) -> SparseRows:
    """Return how often each word comes in each text; a missing one has none."""
    rows, terms = family.analyzer.counts(column.texts().fill_null(""))
    return SparseRows(rows.starts, rows.units, rows.counts.astype(np.float64), len(terms))


def _weighed(cells: SparseRows, weights: Array) -> SparseRows:
    """Return rows of length 1 along log(1 + count) of each word, times the logarithm of how rare it is."""
    rows = np.repeat(np.arange(len(weights)), np.diff(cells.starts))
    counts = np.maximum(cells.values, 0).astype(np.float64)
    having = np.bincount(cells.indices, weights[rows] * (counts > 0), cells.width)
    values = np.log1p(counts) * (1 + np.log((1 + weights.sum()) / (1 + having)))[cells.indices]
    lengths = np.sqrt(np.bincount(rows, values**2, len(weights)))
    return cells._replace(values=values / np.where(lengths > 0, lengths, 1.0)[rows])


def _beside(x: Array, texts: list[SparseRows]) -> SparseRows:
    """Put columns of numbers, in which a missing cell is the mean, and sparse ones side by side."""
    n, width = x.shape
    numbers = SparseRows(np.arange(n + 1) * width, np.tile(np.arange(width), n), np.nan_to_num(x).ravel(), width)
    parts = [numbers, *texts]
    first = np.cumsum([0, *(part.width for part in parts)])
    rows = np.concatenate([np.repeat(np.arange(n), np.diff(part.starts)) for part in parts])
    order = np.argsort(rows, kind="stable")
    indices = np.concatenate([part.indices + place for part, place in zip(parts, first, strict=False)])
    values = np.concatenate([part.values for part in parts])
    starts = np.searchsorted(rows[order], np.arange(n + 1))
    return SparseRows(starts.astype(np.int64), indices[order], values[order], int(first[-1]))


def _scaled(x: Array, w: Array) -> Array:
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity is refused by those who collect it, in a sentence
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
