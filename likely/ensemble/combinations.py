"""Columns of categories that are taken together, as one column of their combinations, before others encode them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Table
from likely.ensemble.bins import Bins
from likely.ensemble.features import Features
from likely.families.together import combined
from likely.statistics import Array

Groups = tuple[tuple[int, ...], ...]


def with_combinations(table: Table, groups: Groups, *, keep: bool) -> Table:
    """Return a table with one more column for each group; ``keep`` the group's own columns, or leave them out.

    >>> table = Table(np.array([[0.0, 1.0], [0.0, 0.0]]), categories={0: np.array(["a"]), 1: np.array(["x", "y"])})
    >>> with_combinations(table, ((0, 1),), keep=False).cells.tolist()
    [[1.0], [0.0]]
    """
    kept = _kept(table.columns.width, groups, keep=keep)
    cells, names = zip(*(combined(Block(table, list(group))) for group in groups), strict=True)
    own = Block(table, None).dense()[:, kept]
    categories = {i: table.categories[j] for i, j in enumerate(kept) if j in table.categories}
    categories |= {len(kept) + i: each for i, each in enumerate(names)}
    return Table(np.column_stack([own, *cells]), categories=categories)


def _kept(width: int, groups: Groups, *, keep: bool) -> list[int]:
    gone = set() if keep else {j for group in groups for j in group}
    return [j for j in range(width) if j not in gone]


@dataclass(frozen=True, eq=False)
class Grouped:
    """An encoding of a table of ``of`` columns whose groups are columns of combinations; see ``with_combinations``."""

    groups: Groups
    of: int
    inner: Features | Bins

    @property
    def _keep(self) -> bool:
        # A discriminant knows only the frequent combinations: of others, the columns still say something. To naive
        # Bayes they would say it twice.
        return isinstance(self.inner, Features)

    @property
    def width(self) -> int:
        """The number of columns made."""
        return self.inner.width

    def encoded(self, table: Table) -> Table:
        """Return the rows as the encoding of their combinations has them."""
        return self.inner.encoded(with_combinations(table, self.groups, keep=self._keep))

    def spread(self, columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether each column made is of one of which it is given (rows × columns)."""
        own = columns[:, _kept(self.of, self.groups, keep=self._keep)]
        groups = [columns[:, list(group)].any(axis=1) for group in self.groups]
        return self.inner.spread(np.column_stack([own, *groups]))

    def by_column(self, parts: Array) -> Array:
        """Return what is said of every column of the table; what a combination says is shared among its columns."""
        found = self.inner.by_column(parts)
        kept = _kept(self.of, self.groups, keep=self._keep)
        out = np.zeros((len(found), self.of))
        out[:, kept] = found[:, : len(kept)]
        for i, group in enumerate(self.groups):
            out[:, list(group)] += found[:, [len(kept) + i]] / len(group)
        return out

    def validate(self) -> None:
        """Raise ValueError unless the groups are of several columns of the table, each of them once."""
        listed = [j for group in self.groups for j in group]
        several = len(self.groups) > 0 and all(len(group) > 1 for group in self.groups)
        if not several or len(set(listed)) < len(listed) or not all(0 <= j < self.of for j in listed):
            raise ValueError("expected groups of columns, each column once, got others")
