"""What is known of a column without knowing its value: a range of numbers, or a set of categories."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from likely.density.columns import EVIDENCE, CategoryColumn, Codes, NumberColumn, TableColumn, level_counts
from likely.statistics import Array


class Known(NamedTuple):
    """What may be: levels, each with its probability of being so, and of "none of these" between what u is.

    The probability of the level of rare categories is the share of those of them that may be.
    """

    levels: Array
    u_low: float = 0.0
    u_high: float = 1.0
    least: float = -np.inf
    most: float = np.inf
    """the numbers between which the column is"""
    rare: Array | None = None
    """which of the rare categories may be, in their order; all if there are none"""

    @property
    def anything(self) -> bool:
        """Whether a number may be anything."""
        return self.u_low <= 0 and self.u_high >= 1 and bool(self.levels.all())


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence on columns, the same in all rows; cells of rows in these columns are unknown."""

    columns: tuple[TableColumn, ...]
    known: Mapping[int, Known]

    def of_bins(self, codes: Codes, bins: int) -> tuple[Codes, Array]:
        """Return codes with evidence where a cell is unknown, and how likely it is in every level or bin."""
        codes = codes.copy()
        sizes = level_counts(self.columns, bins)
        likelihoods = [np.ones(size) for size in sizes.tolist()]
        for j, known in self.known.items():
            codes[codes[:, j] < 0, j] = EVIDENCE
            column = self.columns[j]
            if column.bins > 1:
                edges = np.arange(bins + 1) / bins
                inside = np.minimum(edges[1:], known.u_high) - np.maximum(edges[:-1], known.u_low)
                free = known.levels[-1] * np.maximum(inside, 0.0) * bins
                likelihoods[j] = np.concatenate([known.levels[:-1], free])
            else:
                likelihoods[j] = self.of_levels(j)
        return codes, np.concatenate(likelihoods)

    def of_levels(self, j: int) -> Array:
        """Return how likely the evidence is in every level of a column whose numbers are in one bin."""
        known, column = self.known[j], self.columns[j]
        found = known.levels.copy()
        if isinstance(column, NumberColumn) and column.bins == 1:
            found[-1] *= max(known.u_high - known.u_low, 0.0)
        return found

    def ends(self, j: int) -> tuple[float, float]:
        """Return between what u is, of a column that is none of its atoms."""
        return (self.known[j].u_low, self.known[j].u_high) if j in self.known else (0.0, 1.0)

    def within(self, j: int, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the parts of bins of u that the evidence allows."""
        if j not in self.known:
            return low, high
        return np.maximum(low, self.known[j].u_low), np.minimum(high, self.known[j].u_high)

    def restricted(self, j: int, table: Array) -> Array:
        """Return distributions of a column on its support, states × support, as the evidence on it allows."""
        known, column = self.known[j], self.columns[j]
        allowed = known.levels
        if isinstance(column, NumberColumn):
            edges = np.arange(column.bins + 1) / column.bins
            inside = np.minimum(edges[1:], known.u_high) - np.maximum(edges[:-1], known.u_low)
            free = known.levels[-1] * np.maximum(inside, 0.0) * column.bins
            allowed = np.concatenate([known.levels[:-1], free])
        found = table * allowed
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))


def rare_shares(column: CategoryColumn, evidence: Evidence | None, j: int) -> Array:
    """Return p(category | the level of rare ones, what is known of the column), of all rare ones in order."""
    shares = np.array(list(column.rare.values()))
    allowed = None if evidence is None or j not in evidence.known else evidence.known[j].rare
    if allowed is None:
        return shares
    shares = shares * allowed
    return np.asarray(shares / max(shares.sum(), 1e-300))
