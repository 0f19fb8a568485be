"""What the columns of a table mean: numbers, categories, yes/no, dates, text. And tables read under it."""

import difflib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from likely.data.rows import Rows
from likely.data.table import CellBuffer, Table, listed
from likely.lazy import pa
from likely.messages import Advice, Setting, printable, warn

KINDS = ("number", "integer", "boolean", "category", "text", "date", "ignore")
"""What a column can be."""
SOURCES = ("number", "integer", "boolean", "text", "date", "other")
"""What the cells of a column are in the table."""
FAMILIES = {
    "gaussian": "number", "log-normal": "number", "gamma": "number", "exponential": "number", "poisson": "number",
    "bernoulli": "boolean", "categorical": "category", "multinomial": "text",
}  # fmt: skip
"""The kind of column that each family is of."""
DATE_TYPE = r"date32\[day\]|timestamp\[(s|ms|us|ns)(?:, tz=([\w/+:-]{1,50}))?\]"
"""What the types of dates are called."""
LARGE = "uint64"
"""The type of whole numbers that may be larger than those of 64 bits with a sign."""
NO, YES = ("false", "no", "f", "n", "0"), ("true", "yes", "t", "y", "1")
"""Words for no and yes, in pairs."""
PARTS = ("year", "month", "weekday", "hour")
"""What becomes of a date."""
UNITS = ("day", "second")
"""What else may become of it: one number, of so many since the first of January 1970."""
ALMOST_NUMBERS = "numbers but for"
"""How the note begins of a column that would be numbers if one word, which follows, stood for a missing cell."""
OTHER_DATES = "dates, but not as 2024-12-31"
"""The note of a column of dates as Europe or America write them."""
COMMAS = "numbers with a comma, not as 1234.5"
"""The note of a column of numbers with a decimal comma."""
IDENTIFIER = "nearly all distinct: an identifier? then ignore it"
"""The note of a column whose cells are names of rows."""
_LONGEST_NAME = 100_000
# More labels than this, of which few rows have the same, are seldom meant as classes.
_MANY_LABELS, _MANY_OF_ROWS = 100, 0.1


class Seen(NamedTuple):
    """What a sample of a column shows."""

    distinct: int
    missing: int
    rows: int
    example: str
    note: str = ""


class UnlikeSampleError(ValueError):
    """A cell shows that a column is of another kind than a sample of it: its name, the cell, and a kind that fits."""

    def __init__(self, sentence: str, column: str, cell: float, kind: str):
        super().__init__(sentence, column, cell, kind)
        self.column, self.cell, self.kind = column, cell, kind

    def __str__(self) -> str:
        return str(self.args[0])

    def located(self, where: str) -> "UnlikeSampleError":
        """Return the error with where the rows are, such as in a partition."""
        return UnlikeSampleError(f"{where}: {self}", self.column, self.cell, self.kind)


@dataclass(frozen=True)
class Column:
    """A column: its name, its kind, and what its cells are in the table.

    Of dates it has the parts that differ from row to row, what the others are in all rows, and the type; or the unit
    that they are counted in, as their only part. Of text that
    is yes or no the words for no and yes, and of whole numbers beyond 63 bits the type: all that is needed to write
    cells that look like those that were there.
    """

    name: str
    kind: str
    source: str = "number"
    family: str | None = None
    range: tuple[float, float] | None = field(default=None, compare=False)
    """the least and the greatest number that was seen"""
    parts: tuple[str, ...] = ()
    fixed: dict[str, str] = field(default_factory=dict, hash=False)
    type: str = field(default="", compare=False)
    words: tuple[str, ...] = field(default=(), compare=False)
    seen: Seen | None = field(default=None, compare=False, metadata={"saved": False})

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the columns that it becomes in a table."""
        if self.kind == "ignore":
            return ()
        if self.unit:
            return (self.name,)
        return tuple(f"{self.name}.{part}" for part in self.parts) if self.kind == "date" else (self.name,)

    @property
    def unit(self) -> str:
        """What dates are counted in, "day" or "second", if they are one number; else ""."""
        return self.parts[0] if self.kind == "date" and self.parts and self.parts[0] in UNITS else ""

    def validate(self) -> None:
        """Raise ValueError unless all that is said of the column belongs together."""
        kind, dated, large = self.kind, self.kind == "date", self.kind == "integer" and self.type == LARGE
        in_order = self.parts in (
            tuple(part for part in PARTS if part in self.parts),
            () if self.fixed else (self.unit,),
        )
        others = all(part in PARTS and part not in self.parts and _is_part(part, x) for part, x in self.fixed.items())
        no_and_yes = len(self.words) == 2 and self.words[0].lower() in NO and self.words[1].lower() in YES
        for fits, expected, got in (
            (len(self.name) <= _LONGEST_NAME, f"a name of at most {_LONGEST_NAME:,} characters", self.name),
            (kind in KINDS, f"one of {', '.join(KINDS)} as the kind", kind),
            (self.source in SOURCES, f"one of {', '.join(SOURCES)} as the source", self.source),
            (self.family is None or FAMILIES.get(self.family) == kind, f"a family of the kind {kind!r}", self.family),
            (in_order and (dated or not self.parts), f"parts of dates among {', '.join(PARTS)}", self.parts),
            (others and (dated or not self.fixed), "parts of dates that are the same in all rows", self.fixed),
            (not self.type or large or (dated and re.fullmatch(DATE_TYPE, self.type)), "a type of dates", self.type),
            (self.range is None or kind in ("number", "integer"), "no range but of numbers", self.range),
            (self.range is None or self.range[0] <= self.range[1], "the least and the greatest number", self.range),
            (not self.words or (kind == "boolean" and no_and_yes), "words for no and yes", self.words),
        ):
            if not fits:
                raise ValueError(f"expected {expected} of column {self.name[:50]!r}, got {str(got)[:50]!r}")

    @property
    def limits(self) -> tuple[float, float]:
        """What cells that are drawn or filled in lie between: whole numbers in their range, others not below 0."""
        if self.range is None:
            return -math.inf, math.inf
        if self.kind == "integer":
            return self.range
        return 0.0 if self.range[0] >= 0 else -math.inf, math.inf

    def with_ranges_of(self, other: "Column") -> "Column":
        """Return the column, in whose range is that of another, too."""
        if self.range is None or other.range is None:
            return self
        return replace(self, range=(min(self.range[0], other.range[0]), max(self.range[1], other.range[1])))


def _is_part(part: str, value: str) -> bool:
    return len(value) < 20 and (
        (value.lstrip("-").isascii() and value.lstrip("-").isdigit()) or part not in ("year", "hour")
    )


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
    def infer(
        cls,
        rows: Rows,
        sample: int = 10_000,
        overrides: Mapping[str, str] | None = None,
        *,
        count_dates: bool = False,
    ) -> Self:
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
        count_dates
            whether a date becomes one number, instead of its parts
        """
        from likely.data.infer import inferred

        return cls(inferred(rows, sample, overrides or {}, count_dates=count_dates), rows.names is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the tables, in order; a date that is not counted has one for each part."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the columns of the tables, in order: "number", "integer", "boolean" or "category"."""
        kinds: list[str] = []
        for column in self.columns:
            if column.unit:
                kinds.append("integer" if column.unit == "day" else "number")
            elif column.kind == "date":
                kinds += ["integer" if part == "year" else "category" for part in column.parts]
            elif column.outputs:
                kinds.append(column.kind)
        return tuple(kinds)

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """What must be the same in models that are merged: numbers are whole, or not, as missing cells may have it."""
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
            if column.unit:  # days that have times
                return replace(column, parts=("second",))
            extent = (min(0.0, cell), max(1.0, cell)) if column.kind == "boolean" else column.range
            return replace(column, kind=kind, range=extent if extent and math.isfinite(cell) else None)

        return replace(self, columns=tuple(widened(c) if c.name == name else c for c in self.columns))

    def with_ranges_of(self, other: "Schema") -> Self:
        """Return the schema with ranges of numbers in which those of another one are, too."""
        theirs = {column.name: column for column in other.columns}
        return replace(self, columns=tuple(c.with_ranges_of(theirs.get(c.name, c)) for c in self.columns))

    def with_ranges_in(self, rows: Rows, sample: int = 10_000) -> Self:
        """Return the schema with ranges of numbers in which those of more rows are, too, as a sample shows them."""
        from likely.data.infer import ranges

        return self.with_ranges_of(ranges(self, rows.sample(sample)))

    def table(
        self,
        batch: "pa.RecordBatch | pa.Table",
        *,
        numbers: Sequence[int] | None = None,
        note: bool = True,
        buffer: CellBuffer | None = None,
        predicting: bool = False,
    ) -> Table:
        """Return a batch as a table: numbers as they are, categories as codes, NaN if missing.

        Columns are found by name, in whatever order they come; those that the schema does not know are left out.
        One that is not there is missing in every row; ``note``: whether to warn about it. ``numbers``: where each row
        was in the data that it came from, counted from 0. ``buffer``: where to put the cells. ``predicting``: rows are
        not learned: then a number that is neither 0 nor 1 in a column of these is missing, as a category that was never
        seen is, and else an error.
        """
        from likely.data.cells import read_cells

        numbers = range(batch.num_rows) if numbers is None else numbers
        return read_cells(self, batch, numbers, buffer or CellBuffer(), note=note, predicting=predicting)

    def tables(
        self, rows: Rows, buffer: CellBuffer | None = None, *, note: bool = True, predicting: bool = False
    ) -> Iterator[Table]:
        """Return all rows, one table for each batch, or one of no rows; a warning about absent columns comes once.

        With a ``buffer``, the cells of a table are gone when the next one comes. ``predicting`` is that of ``table``.
        """
        start, table = 0, None
        for batch in rows.batches(dictionaries=True):
            numbers = range(start, start + batch.num_rows)
            table = self.table(batch, numbers=numbers, note=note and start == 0, buffer=buffer, predicting=predicting)
            start += batch.num_rows
            yield table
        if table is None:
            yield self.table(rows.schema.empty_table(), note=note)

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


def check_name(
    name: Any, names: Sequence[str], what: str = "expected a column of the table", given: str | Setting = ""
) -> None:
    """Raise unless a name is among those of the columns, and say which may be meant, and where it was given."""
    if name not in names:
        near = difflib.get_close_matches(str(name), list(dict.fromkeys(names)), 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {listed(names)}"
        raise ValueError(Advice(f"{what}, got {name!r}", " in " if given else "", given, f": {hint}"))


def warn_about_columns(schema: Schema, given: Collection[str]) -> None:
    """Warn of columns that may be taken for something else than they are, unless it was given what they are."""
    noted: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    for name, note in ((column.name, column.seen.note) for column in schema.columns if column.seen is not None):
        noted.setdefault(note, []).append(name)
        if note.startswith(ALMOST_NUMBERS):
            words[name] = note.removeprefix(ALMOST_NUMBERS).strip()
    if words:
        shown = ", ".join(f"{name!r} but for {word}" for name, word in words.items())
        found = ", ".join(dict.fromkeys(words.values()))
        warn(
            Advice(
                f"columns that are numbers but for one word are taken as categories ({shown}); if it stands for a "
                "missing cell, say ",
                Setting("missing", found, f"missing=[{found}]"),
            )
        )
    for note, what, how in ((OTHER_DATES, "dates", "2024-12-31"), (COMMAS, "numbers with a comma", "1234.5")):
        if names := noted.get(note):
            warn(f"columns of {what} are taken as categories ({listed(names)}): write them as {how}")
    if names := noted.get(IDENTIFIER):
        warn(
            Advice(
                f"columns whose cells are nearly all distinct are taken as categories ({listed(names)}); an "
                "identifier is better left out: ",
                Setting.of_column(names[0], "ignore"),
            )
        )
    if names := [c.name for c in schema.columns if c.kind == "ignore" and c.name not in given and c.source == "other"]:
        warn(f"columns that cannot be read are left out: {listed(names)}")


def warn_about_labels(target: Column) -> None:
    """Warn of a target with so many labels that learning will take long, and teach little."""
    seen = target.seen
    if seen is None or target.kind == "number":  # of which there is an error to come
        return
    there = seen.rows - seen.missing
    if seen.distinct > _MANY_LABELS and seen.distinct > _MANY_OF_ROWS * there:
        warn(
            f"the target {target.name!r} has {seen.distinct:,} labels in {there:,} rows, and each is a class of its "
            "own, which takes long: is it an identifier or a number?"
        )
