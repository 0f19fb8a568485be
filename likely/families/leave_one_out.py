"""Columns of categories whose smoothing is chosen for each column, as if every row had been left out once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block
from likely.families.base import Family
from likely.families.categorical import Categorical, CategoricalDensity, without_unseen
from likely.statistics import Array, Assignment, Statistics

# How many imagined rows a class may be given in a column.
_ROWS = 2.0 ** np.arange(-2, 11)


@dataclass(frozen=True)
class LeaveOneOut(Family):
    """The shares of categories by class, θ_kv = (n_kv + αp_v) / (n_k + α): α imagined rows like all classes together.

    p_v = (n_v + ½) / (n + ½V) for V categories, and α is the one of {¼, ½, …, 1024} under which rows are likeliest
    that are left out one by one: from n_kv alone, Σ n_kv log((n_kv − 1 + αp′_v) / (n_k − 1 + α)), where p′ is p
    without the row.

    Examples
    --------
    >>> from likely.data.table import Table
    >>> rows = Assignment(np.array(["a", "b"]), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
    >>> block = Block(Table(np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])), None)
    >>> LeaveOneOut().solve(LeaveOneOut().collect(block, rows)).shares.round(2)
    array([[0.96, 0.04],
           [0.04, 0.96]])
    """

    name = "naive Bayes of levels"
    expects = Categorical.expects

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        return Categorical().collect(block, assignment)

    def solve(self, statistics: Statistics) -> CategoricalDensity:
        """Return the shares of the categories."""
        statistics = without_unseen(statistics)
        counts, labels = statistics.sums["count"], statistics.labels["category"]
        starts = np.searchsorted(labels["column"], np.arange(len(statistics.sums["columns"]) + 1)).astype(np.int64)
        return CategoricalDensity(labels["value"].copy(), starts, _smoothed(counts, starts))


def _smoothed(counts: Array, starts: NDArray[np.int64]) -> Array:
    """Return the shares, classes × categories."""
    sizes = np.diff(starts)
    # Of each category: its column's numbers.
    column = np.repeat(np.arange(len(sizes)), sizes)
    n_k = _by_column(counts, column, len(sizes))
    n_v, n, size = counts.sum(axis=0), n_k.sum(axis=0)[column], sizes[column]
    n_k = n_k[:, column]
    p = (n_v + 0.5) / (n + 0.5 * size)
    p_without = np.maximum(n_v - 0.5, 0.0) / np.maximum(n - 1 + 0.5 * size, 0.5)
    seen = np.nonzero(counts)
    n_kv, others = counts[seen], np.maximum(n_k[seen] - 1, 0.0)
    same, share, where = np.maximum(n_kv - 1, 0.0), p_without[seen[1]], column[seen[1]]
    tiny = np.finfo(np.float64).tiny
    likelihood = np.array(
        [
            np.bincount(where, n_kv * np.log(np.maximum((same + a * share) / (others + a), tiny)), len(sizes))
            for a in _ROWS
        ]
    )
    alpha = _ROWS[np.argmax(likelihood, axis=0)][column]
    return np.asarray((counts + alpha * p) / (n_k + alpha))


def _by_column(counts: Array, column: NDArray[np.int64], columns: int) -> Array:
    return np.stack([np.bincount(column, line, columns) for line in counts])
