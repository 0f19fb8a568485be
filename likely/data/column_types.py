"""The types of the columns of text files, which only the last row decides."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from likely.data.arrow import is_text, is_true_or_false, recast, wider
from likely.data.sampling import drawn
from likely.data.sources import KEPT, Source

_SAMPLED, _PARTS = 2000, 16
# In order: the first of them that fits what follows it in the tuple is tried when a cell does not fit.
_TRIED: tuple[tuple[pa.DataType, tuple[int, ...]], ...] = (
    (pa.null(), (1, 2, 3, 4, 5, 6)),
    (pa.int64(), (1, 2, 6)),
    (pa.float64(), (2, 6)),
    (pa.timestamp("us"), (3, 6)),
    (pa.timestamp("us", "UTC"), (4, 6)),
    (pa.bool_(), (5, 6)),
    (pa.string(), (6,)),
)
_NEXT = {kind: tuple(_TRIED[i][0] for i in places) for kind, places in _TRIED}


class Reading(Protocol):
    """How the cells of a kind of file become typed."""

    def fitted(self, kind: pa.DataType, column: Any) -> pa.DataType:
        """Return a type that holds what ``kind`` holds, and the column."""

    def read(self, column: Any, kind: pa.DataType) -> Any:
        """Return a column in the type that was found."""


class Written:
    """Columns all of text, as CSV has them: numbers, dates, yes/no or text, whichever fits every cell.

    >>> reading = Written()
    >>> reading.fitted(pa.null(), pa.array(["1", None])), reading.fitted(pa.int64(), pa.array(["2.5"]))
    (DataType(int64), DataType(double))
    >>> reading.fitted(pa.null(), pa.array(["0815"]))
    DataType(string)
    """

    def fitted(self, kind: pa.DataType, column: Any) -> pa.DataType:
        """Return a type that holds what ``kind`` holds, and the column."""
        if kind == pa.string() or column.null_count == len(column):
            return kind
        for tried in _NEXT[kind]:
            if _fits(column, tried):
                return tried
        return pa.string()

    def read(self, column: Any, kind: pa.DataType) -> Any:
        """Return a column in the type that was found."""
        if pa.types.is_null(kind):
            return pa.nulls(len(column))
        return column if kind == pa.string() else column.cast(kind)


def _fits(column: Any, kind: pa.DataType) -> bool:
    if is_text(kind):
        return True
    if pa.types.is_boolean(kind):
        return is_true_or_false(column)
    try:
        column.slice(0, 64).cast(kind)  # Arrow is slow to refuse a long column
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    # Digits after a first zero are a name, such as a post code, and 0x10 is not meant as a number.
    zero = pc.starts_with(column, "0")
    if pa.types.is_timestamp(kind) or not pc.any(zero).as_py():
        return True
    return not pc.any(pc.match_substring_regex(column.filter(zero).unique(), "^0[0-9xX]")).as_py()


class Joined:
    """Columns typed batch by batch, as JSON has them: the widest of their types."""

    def fitted(self, kind: pa.DataType, column: Any) -> pa.DataType:
        """Return a type that holds what ``kind`` holds, and the column."""
        return kind if column.null_count == len(column) and not is_text(kind) else wider(kind, column.type)

    def read(self, column: Any, kind: pa.DataType) -> Any:
        """Return a column in the type that was found."""
        if column.null_count == len(column):
            return pa.nulls(len(column), kind)
        return recast(column, kind)


class Settled(Source):
    """Rows of text files, in types found by a first pass over all of them. What is small is kept from that pass."""

    def __init__(self, raw: Source, reading: Reading) -> None:
        self._raw, self._reading = raw, reading
        self._held: list[pa.RecordBatch] | None = None
        self._sample: list[pa.RecordBatch] = []
        self.unit, self.total = raw.unit, raw.total

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        types: dict[str, pa.DataType] = {}
        metadata = None
        held: list[pa.RecordBatch] | None = []
        size, step = 0, 1
        for i, batch in enumerate(self._raw.batches()):
            metadata = batch.schema.metadata if i == 0 else metadata
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                types[name] = self._reading.fitted(types.get(name, pa.null()), column)
            size += batch.nbytes
            if held is not None:
                held = [*held, batch] if size <= KEPT else None
            if i % step == 0:
                self._sample += drawn([batch], _SAMPLED)
                if len(self._sample) > _PARTS:
                    del self._sample[1::2]
                    step *= 2
        schema = pa.schema(list(types.items()), metadata=metadata)
        self._held = None if held is None else [self._typed(batch, schema) for batch in held]
        return schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        schema = self.schema
        self.done = 0
        for batch in self._raw.batches() if self._held is None else self._held:
            self.done = self._raw.done
            yield batch if self._held is not None else self._typed(batch, schema)

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return rows, drawn by their content, of all that was kept of the first pass."""
        schema = self.schema
        if self._held is not None:
            return drawn(self._held, rows)
        return [self._typed(batch, schema) for batch in drawn(self._sample, rows)]

    def _typed(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = [
            self._reading.read(found[name], kind) if name in found else pa.nulls(batch.num_rows, kind)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
