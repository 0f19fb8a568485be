"""What the columns of a table mean: numbers, categories, yes/no, dates, text. And tables read under it.

Arrow is imported when the first table is read, and not before.
"""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.column import FAMILIES, KINDS, Column, Seen, UnlikeSampleError
from likely.data.rows import Rows
from likely.data.table import Room, Table
from likely.messages import Advice, Setting, printable, tell
from likely.statistics import Labels

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, and whether they have names.

    >>> from likely.data.rows import open_rows
    >>> rows = open_rows({"age": [31.5, None, 40.0], "city": ["Oslo", "Rome", "Oslo"]})
    >>> schema = Schema.infer(rows)
    >>> print(schema)
    column  kind      distinct  missing  example  note
    age     number           2        1  31.5
    city    category         2        0  Oslo
    >>> tables = list(schema.tables(rows))
    >>> tables[0].cells
    array([[31.5,  0. ],
           [ nan,  1. ],
           [40. ,  0. ]])
    >>> tables[0].categories[1]
    array(['Oslo', 'Rome'], dtype='<U4')
    """

    columns: tuple[Column, ...]
    named: bool = True
    tentative: frozenset[str] = field(default=frozenset(), compare=False, metadata={"saved": False})
    """columns of which rows may still show that they are not of the kind that a sample showed, by UnlikeSampleError"""

    @classmethod
    def infer(cls, rows: Rows, sample: int = 10_000, overrides: Mapping[str, str] | None = None) -> Self:
        """Find out what the columns of a table are, from their types and so many rows.

        Parameters
        ----------
        rows
            the table
        sample
            how many rows to look at
        overrides
            what columns are by name: a kind, one of "number", "integer", "boolean", "category", "text", "date" and
            "ignore", or a family, such as "log-normal" or "categorical"
        """
        from likely.data.infer import inferred

        return cls(inferred(rows, sample, overrides or {}), rows.names is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the tables, in order; a date has one for each of its parts."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the columns of the tables, in order: "number", "integer", "boolean" or "category"."""
        kinds: list[str] = []
        for column in self.columns:
            if column.kind == "date":
                kinds += ["integer" if part == "year" else "category" for part in column.parts]
            elif column.outputs:
                kinds.append(column.kind)
        return tuple(kinds)

    @property
    def essence(self) -> tuple[Any, ...]:
        """What must be the same in models that are merged: numbers are whole, or not, as their holes may have it."""
        same = {"integer": "number"}
        return self.named, tuple(
            replace(c, kind=same.get(c.kind, c.kind), source=same.get(c.source, c.source)) for c in self.columns
        )

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        check_name(name, [column.name for column in self.columns])
        return next(column for column in self.columns if column.name == name)

    def without(self, *names: str) -> Self:
        """Return the schema without some columns, such as the target."""
        for name in names:
            self.column(name)
        return replace(self, columns=tuple(column for column in self.columns if column.name not in names))

    def with_kind(self, name: str, kind: str, cell: float) -> Self:
        """Return the schema in which a column is of another kind, as a cell of it shows."""

        def widened(column: Column) -> Column:
            extent = (min(0.0, cell), max(1.0, cell)) if column.kind == "boolean" else column.range
            return replace(column, kind=kind, range=extent if extent and math.isfinite(cell) else None)

        return replace(self, columns=tuple(widened(c) if c.name == name else c for c in self.columns))

    def spanning(self, other: "Schema") -> Self:
        """Return the schema with ranges of numbers in which those of another one are, too."""
        theirs = {column.name: column for column in other.columns}
        return replace(self, columns=tuple(c.spanning(theirs.get(c.name, c)) for c in self.columns))

    def reaching(self, rows: Rows, sample: int = 10_000) -> Self:
        """Return the schema with ranges of numbers in which those of more rows are, too, as a sample shows them."""
        from likely.data.infer import ranges

        return self.spanning(ranges(self, rows.sample(sample)))

    def table(
        self,
        batch: "pa.RecordBatch | pa.Table",
        *,
        numbers: Sequence[int] | None = None,
        note: bool = True,
        room: Room | None = None,
        asked: bool = False,
    ) -> Table:
        """Return a batch as a table: numbers as they are, categories as places in a list of names, NaN if missing.

        Columns are found by name, in whatever order they come; those that the schema does not know are left out.
        One that is not there is missing in every row, of which a warning tells.

        Parameters
        ----------
        batch
            rows in Arrow's columns, as ``Rows.batches`` gives them
        numbers
            where each row was in the data that it came from, counted from 0; by default these are all rows
        note
            whether to warn of columns that are not there
        room
            where to put the cells; by default a place of their own
        asked
            whether rows are not learned, only asked about: then a number that is neither 0 nor 1 in a column of these
            is missing, as a category that was never seen is, and else an error
        """
        from likely.data.cells import read_cells

        places = range(batch.num_rows) if numbers is None else numbers
        absent, cells, categories, strings = read_cells(self, batch, places, room or Room(), asked=asked)
        if absent and note:
            tell(f"expected all columns of the first table, got none named {_few(absent)}: their cells are missing")
        names = self.names if self.named else None
        return Table(cells, names, None, categories, self.kinds, places, strings)

    def tables(self, rows: Rows, room: Room | None = None, *, asked: bool = False) -> Iterator[Table]:
        """Return all rows, one table for each batch, or one of no rows; columns that are not there are told of once.

        With a ``room`` for cells, those of a table are gone when the next one comes. ``asked`` is that of ``table``.
        """
        start, table = 0, None
        for batch in rows.batches(coded=True):
            numbers = range(start, start + batch.num_rows)
            table = self.table(batch, numbers=numbers, note=start == 0, room=room, asked=asked)
            start += batch.num_rows
            yield table
        if table is None:
            yield self.table(rows.schema.empty_table())

    def validate(self) -> None:
        """Raise ValueError unless every column has a name of its own."""
        for names in ([column.name for column in self.columns], self.names):
            if len(set(names)) < len(names):
                raise ValueError("expected a different name for every column of a schema, got one twice")

    def __str__(self) -> str:
        heads = ("column", "kind", "distinct", "missing", "example", "note")
        lines = [heads, *(_line(column) for column in self.columns)]
        widths = [max(len(line[j]) for line in lines) for j in range(len(heads))]
        shown = []
        for line in lines:
            cells = [
                cell.rjust(w) if j in (2, 3) else cell.ljust(w)
                for j, (cell, w) in enumerate(zip(line, widths, strict=True))
            ]
            shown.append("  ".join(cells).rstrip())
        return "\n".join(shown)


def _line(column: Column) -> tuple[str, ...]:
    kind = column.family or column.kind
    name = printable(column.name if len(column.name) <= 40 else column.name[:39] + "…")
    if column.seen is None:
        return name, kind, "", "", "", ""
    seen = column.seen
    return name, kind, str(seen.distinct), str(seen.missing), printable(seen.example), printable(seen.note)


def _few(names: Iterable[str], most: int = 5) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(map(repr, listed[:most])) + more


def check_name(
    name: Any, names: Sequence[str], what: str = "expected a column of the table", given: str | Setting = ""
) -> None:
    """Raise unless a name is among those of the columns, and say which may be meant, and where it was given."""
    if name not in names:
        near = difflib.get_close_matches(str(name), list(dict.fromkeys(names)), 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {_few(names)}"
        raise ValueError(Advice(f"{what}, got {name!r}", " in " if given else "", given, f": {hint}"))


def read_target(batch: "pa.RecordBatch | pa.Table", name: str) -> Labels:
    """Return the labels in a column: text, integers or true and false, as an array.

    If some are missing, it is an array of objects with None in their place.

    >>> import pyarrow as pa
    >>> read_target(pa.table({"income": ["low", None, "high"]}), "income")
    array(['low', None, 'high'], dtype=object)
    """
    labels, places = coded_target(batch, name)
    return labels[places]


def coded_target(batch: "pa.RecordBatch | pa.Table", name: str) -> tuple[Labels, NDArray[np.int64]]:
    """Return the distinct labels in a column, and the place of each row's among them.

    >>> import pyarrow as pa
    >>> labels, places = coded_target(pa.table({"income": ["low", None, "high", "low"]}), "income")
    >>> labels.tolist(), places.tolist()
    (['low', 'high', None], [0, 2, 1, 0])
    """
    from likely.data.cells import coded_labels

    check_name(name, list(batch.schema.names), "expected the name of a column as target")
    return coded_labels(batch.column(name), name)


__all__ = ["FAMILIES", "KINDS", "Column", "Schema", "Seen", "UnlikeSampleError", "coded_target", "read_target"]
