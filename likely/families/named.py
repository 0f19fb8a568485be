"""Columns of categories that have names: statistics carry the names, so tables that number them differently add up."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely import native
from likely.data.table import Block
from likely.families.base import Density
from likely.families.categorical import Categorical, CategoricalDensity, without_unseen
from likely.statistics import Array, Assignment, Labels, Shared, Statistics


class Named(Categorical):
    """Columns of named categories. A name not seen in training says nothing."""

    name = "named categories"
    expects = "a category by its name"
    domain = "non-negative"
    labels = np.dtype([("column", np.int64), ("value", np.object_)])

    def _counted(self, block: Block, assignment: Assignment | Shared) -> list[tuple[Labels, Array]]:
        counted = super()._counted(block, assignment)
        return [
            _by_name(names_in(block, j)[values.astype(np.int64)], counts) for j, (values, counts) in enumerate(counted)
        ]

    def solve(self, statistics: Statistics) -> Density:
        """Return the shares of the categories, (count + λ) / Σ (count + λ)."""
        seen = without_unseen(statistics)
        names = seen.labels["category"]["value"]
        starts, shares = self.shares(seen)
        places = np.arange(len(names)) - np.repeat(starts[:-1], np.diff(starts))
        return NamedDensity(places.astype(np.float64), starts, shares, self.domain, names)


def _by_name(names: Labels, counts: Array) -> tuple[Labels, Array]:
    order = np.argsort(names, kind="stable")
    return names[order], counts[order]


def names_in(block: Block, j: int) -> Labels:
    """Return the names of the categories of a block's column j, in the order of their numbers."""
    number = block.number(j)
    try:
        return np.asarray(block.table.categories[number], dtype=object)
    except KeyError:
        if np.isnan(block.single(j).values()).all():
            return np.empty(0, dtype=object)
        raise ValueError(
            f"expected categories by name in {block.table.columns.listed([number])}, got numbers: write them as text"
        ) from None


@dataclass(frozen=True, eq=False)
class NamedDensity(CategoricalDensity):
    """The shares of every column's categories; ``values`` are their places within the column."""

    names: Any = None
    """the names of the categories, one column's after the other's"""

    def names_of(self, j: int) -> Labels:
        """Return the names of a column's categories, in the order of their places."""
        names: Labels = self.names[self.starts[j] : self.starts[j + 1]]
        return names

    @cached_property
    def _places(self) -> list[dict[Any, int]]:
        """The row of every name in the table of scores, one dict for each column."""
        starts = self.starts[:-1]
        return [{name: int(first) + i for i, name in enumerate(self.names_of(j))} for j, first in enumerate(starts)]

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's categories, whatever numbers the table gives them."""
        unknown = len(self.names)
        lines = [[known.get(name, unknown) for name in names_in(block, j)] for j, known in enumerate(self._places)]
        sizes = [len(line) for line in lines]
        scores = np.vstack([self._log_shares, np.zeros((1, self.classes))])[[i for line in lines for i in line]]
        values = np.concatenate([np.arange(size, dtype=np.float64) for size in sizes])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        native.score_categories(block.dense(), block.columns, self.domain, values, starts, scores, out)

    def column(self, j: int) -> "NamedDensity":
        """Return the density of one column."""
        part = super().column(j)
        return NamedDensity(part.values, part.starts, part.shares, self.domain, self.names_of(j))
