"""Tables with a column of texts, wherever they lie: which column that is, and what is learned of it in one pass."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.rows import Rows
from likely.data.schema import Column, Schema, check_name
from likely.data.table import Room, Table
from likely.engines import engine_of, rows_of
from likely.engines.labelled import labelled_whole
from likely.ensemble.text_samples import TextSample
from likely.joint import Part
from likely.learn.one_pass import collect
from likely.statistics import Array, Assignment, JointStatistics
from likely.text import as_texts


def is_table(data: Any) -> bool:
    """Say whether data are a table, or where one lies, and not texts.

    >>> is_table({"text": ["a b"]}), is_table("reviews.parquet"), is_table(["a text"])
    (True, True, False)
    """
    if isinstance(data, str | os.PathLike | Mapping | Rows) or engine_of(data) is not None:
        return True
    if isinstance(data, list | tuple):
        return len(data) > 0 and isinstance(data[0], Mapping)
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    return not isinstance(data, Table) and any(hasattr(data, name) for name in ("collect_schema", "schema", "columns"))


def text_table(texts: Any, numbers: Sequence[int] | None = None) -> Table:
    """Return texts as a table of one column; ``numbers``: where each was in the data that it came from."""
    return Table(np.zeros((len(texts), 1)), ("text",), numbers=numbers, strings={0: texts})


@dataclass(frozen=True)
class TextColumn(Schema):
    """The column of a table that holds texts. Others are not read."""

    @classmethod
    def named_so(cls, name: str) -> "TextColumn":
        """Return the column of texts of this name."""
        return cls((Column(name, "text", "text"),))

    @classmethod
    def beside(cls, rows: Rows, y: str) -> "TextColumn":
        """Return the column of texts beside that of the labels: the only one, or the only one of free text."""
        names = list(rows.schema.names)
        check_name(y, names, "expected the name of a column as target")
        others = [name for name in names if name != y]
        if len(others) > 1:
            kinds = {column.name: column.kind for column in Schema.infer(rows).without(y).columns}
            others = [name for name in others if kinds[name] == "text"]
        if len(others) == 1:
            return cls.named_so(others[0])
        listed = ", ".join(f"{name!r} ({kinds[name]})" for name in names if name != y) if len(names) > 1 else "none"
        raise ValueError(f"expected one column of texts beside {y!r}, got {listed}: select it and the labels")

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.columns[0].name

    def table(
        self,
        batch: Any,
        *,
        numbers: Sequence[int] | None = None,
        note: bool = True,
        room: Room | None = None,
        asked: bool = False,
    ) -> Table:
        """Return a batch as a table of texts."""
        import pyarrow as pa

        check_name(self.name, list(batch.schema.names), "expected the column of texts")
        try:
            texts = as_texts(batch.column(self.name))
        except TypeError:
            kind = batch.schema.field(self.name).type
            raise TypeError(f"expected texts in column {self.name!r}, got {kind}: turn them into strings") from None
        wide = pa.large_string() if pa.types.is_string(texts.type) else texts.type
        return text_table(texts.cast(wide), numbers)


class LabelledTexts(NamedTuple):
    """A table, wherever it lies, the column of its texts, and the name of that of its labels."""

    rows: Rows
    column: TextColumn
    y: str

    @classmethod
    def of(cls, data: Any, y: str, name: str | None = None) -> "LabelledTexts":
        """Open a table; ``name``: what the column of texts is called, if that is known."""
        rows = rows_of(data)
        return cls(rows, TextColumn.beside(rows, y) if name is None else TextColumn.named_so(name), y)

    def here(self, sample_weight: Any, *, partly: bool) -> tuple[Table, NDArray[Any], Array | None]:
        """Return all texts, labels and weights; ``partly``: also where the label is missing, and is None."""
        table, (classes, codes, weights) = labelled_whole(self.column, self.rows, self.y, sample_weight, partly=partly)
        labels = classes if (codes >= 0).all() else np.array([*classes.tolist(), None], dtype=object)
        return table, labels[codes], weights


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned of some texts: their words, and if exponents are to be fitted, some of the texts."""

    statistics: JointStatistics
    sample: TextSample | None

    @classmethod
    def of(cls, table: Table, assignment: Assignment, parts: tuple[Part, ...], draw: bool, seed: Any) -> "Learned":
        """Learn texts whose classes are known; ``draw``: whether some of them are kept."""
        sample = TextSample.of(table.strings[0], assignment, seed) if draw else None
        return cls(collect(table, assignment, parts), sample)

    def __add__(self, other: "Learned") -> "Learned":
        sample = None if self.sample is None or other.sample is None else self.sample + other.sample
        return Learned(self.statistics + other.statistics, sample)
