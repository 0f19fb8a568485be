"""A column of texts as a member of a selection: discounted words, fitted and scored out of fold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.stored import stored_value
from likely.data.table import Block, Table
from likely.statistics import Array


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One column of texts of a table of ``of`` columns."""

    column: int
    of: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1

    def encoded(self, table: Table) -> Table:
        """Return the column alone."""
        return Table(np.zeros((table.rows, 1)), strings={0: Block(table, [self.column]).texts()})

    def by_column(self, parts: Array) -> Array:
        """Return what is said of every column of the table."""
        found = np.zeros((len(parts), self.of))
        found[:, self.column] = parts[:, 0]
        return found

    def described(self, name: str, arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
        """Return the column as JSON."""
        return [{"column": self.column, "of": self.of}]

    @classmethod
    def from_description(cls, described: list[Any]) -> "TextColumn":
        """Return the column that was described, or raise ValueError if that is none."""
        one = described[0] if len(described) == 1 else None
        column, of = stored_value(one, "column", int), stored_value(one, "of", int)
        if not 0 <= column < of:
            raise ValueError(f"expected a column from 0 to {of - 1}, got {column}")
        return cls(column, of)
