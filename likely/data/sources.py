"""Where rows come from: a table in memory, something that gives batches again when asked, or a stream read once."""

from __future__ import annotations

import io
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cached_property
from typing import Any

from likely.data.arrow import UNNAMED, plain_batch
from likely.data.hashing import sample_batches, sample_stream
from likely.lazy import pa

BATCH = 16 << 20
"""About so many bytes are in a batch."""
BLOCK = 4 << 20
"""So many bytes of text are parsed at a time."""
KEPT = 64 << 20
"""So many bytes at most are kept in memory to save a second reading."""
_LOOKED_AT = 1 << 30
"""So many bytes at most are read to find out what columns are."""
_SAMPLED, _PARTS = 2000, 16


class Source:
    """Something that has rows."""

    schema: pa.Schema
    """the types of the columns"""
    done: int = 0
    total: int | None = None
    unit: str = "rows"
    in_memory: bool = False
    """whether all rows are in memory"""

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows, from the first one on.

        ``dictionaries``: of columns of text, those that a file keeps as dictionaries may come so.
        """
        raise NotImplementedError

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return up to so many rows."""
        return first(self.batches(), rows)

    def count(self) -> int:
        """Return how many rows there are."""
        if self.total is not None and self.unit == "rows":
            return self.total
        return sum(batch.num_rows for batch in self.batches())


def first(batches: Iterator[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return the first of some batches, and at most so many rows."""
    taken: list[pa.RecordBatch] = []
    for batch in batches:
        taken.append(batch.slice(0, rows))
        rows -= len(taken[-1])
        if rows <= 0:
            break
    return taken


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Return the rows of a batch in batches that are not too large."""
    step = max(1, BATCH * max(1, batch.num_rows) // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def read_ahead(batches: Generator[pa.RecordBatch, None, None]) -> Iterator[pa.RecordBatch]:
    """Return the same batches, of which the next is read by another thread while this one is used."""
    with closing(batches), ThreadPoolExecutor(1, "likely-reading") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


class RepeatableSource(Source):
    """Something that gives its batches again whenever it is asked."""

    def __init__(
        self, schema: pa.Schema, ask: Callable[[], Iterable[pa.RecordBatch]], total: int | None = None
    ) -> None:
        self.schema, self._ask, self.total = plain_batch(schema.empty_table()).schema, ask, total

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        self.done = 0
        for batch in self._whole():
            for piece in pieces(batch):
                self.done += piece.num_rows
                yield piece

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return rows drawn from all batches; of very many, from those of the first gigabyte."""
        return sample_stream(self._first(_LOOKED_AT), rows)

    def _whole(self) -> Iterable[pa.RecordBatch]:
        return map(plain_batch, self._ask())

    def _first(self, size: int) -> Iterator[pa.RecordBatch]:
        for batch in self.batches():
            yield batch
            size -= batch.nbytes
            if size <= 0:
                return


class TableSource(RepeatableSource):
    """A table in memory."""

    in_memory = True

    def __init__(self, table: pa.Table, *, named: bool = True) -> None:
        batches = [plain_batch(batch) for batch in table.to_batches()] or [plain_batch(table)]
        self._batches = [b if named else b.replace_schema_metadata(UNNAMED) for b in batches]
        self.schema, self.total = self._batches[0].schema, table.num_rows

    def _whole(self) -> Iterable[pa.RecordBatch]:
        return self._batches

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return rows drawn by their content."""
        return sample_batches(self._batches, rows)


class SinglePassSource(Source):
    """A stream that is read once, where it passes by. Nothing is kept of it."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = plain_batch(schema.empty_table()).schema
        self._live = iter(batches)
        self._started = False

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows, if nobody has asked for them before."""
        if self._started:
            raise RuntimeError("expected rows that pass by to be read once, got a second reading")
        self._started = True
        yield from self._coming()

    def count(self) -> int:
        """Return how many rows have passed by when the last one has."""
        for _ in self._coming():
            pass
        return self.done

    def _coming(self) -> Iterator[pa.RecordBatch]:
        for batch in self._live:
            self.done += batch.num_rows
            yield from pieces(plain_batch(batch))


class StreamSource(Source):
    """A stream that can be read once. What was read is kept, on disk if it is much, and so can be read again."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema | None = None) -> None:
        # A batch of no rows still says what the columns are.
        self._live = (piece for batch in batches for piece in (pieces(batch) if batch.num_rows else (batch,)))
        if schema is not None:
            self.schema = schema
        self._stored: list[tuple[int, int]] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=KEPT)  # noqa: SIM115, lives as long as the source
        weakref.finalize(self, self._file.close)

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns, by the first batch unless they are known."""
        first = next(self.batches(), None)
        return pa.schema([]) if first is None else first.schema

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows: those that were read already, then those that come."""
        self.done = number = 0
        while True:
            if number == len(self._stored):
                batch = next(self._live, None)
                if batch is None:
                    return
                self._keep(batch)
            else:
                start, size = self._stored[number]
                self._file.seek(start)
                batch = pa.ipc.open_stream(self._file.read(size)).read_next_batch()
            number += 1
            self.done += batch.num_rows
            yield batch

    def _keep(self, batch: pa.RecordBatch) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content = sink.getvalue()
        self._file.seek(0, io.SEEK_END)
        self._stored.append((self._file.tell(), content.size))
        self._file.write(content)


class TypedSource(Source):
    """Rows of text files, in types found by a first pass over all of them. What is small is kept from that pass.

    ``widen`` returns a type that holds what one holds, and a column; ``cast`` a column in the type that was found.
    """

    def __init__(
        self, raw: Source, widen: Callable[[pa.DataType, Any], pa.DataType], cast: Callable[[Any, pa.DataType], Any]
    ) -> None:
        self._raw, self._widen, self._cast = raw, widen, cast
        self._kept: list[pa.RecordBatch] | None = None
        self._sample: list[pa.RecordBatch] = []
        self.unit, self.total = raw.unit, raw.total

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        types: dict[str, pa.DataType] = {}
        metadata = None
        kept: list[pa.RecordBatch] | None = []
        size, step = 0, 1
        for i, batch in enumerate(self._raw.batches()):
            metadata = batch.schema.metadata if i == 0 else metadata
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                types[name] = self._widen(types.get(name, pa.null()), column)
            size += batch.nbytes
            if kept is not None:
                kept = [*kept, batch] if size <= KEPT else None
            if i % step == 0:
                self._sample += sample_batches([batch], _SAMPLED)
                if len(self._sample) > _PARTS:
                    del self._sample[1::2]
                    step *= 2
        schema = pa.schema(list(types.items()), metadata=metadata)
        self._kept = None if kept is None else [self._typed(batch, schema) for batch in kept]
        return schema

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        schema = self.schema
        self.done = 0
        for batch in self._raw.batches() if self._kept is None else self._kept:
            self.done = self._raw.done
            yield batch if self._kept is not None else self._typed(batch, schema)

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return rows, drawn by their content, of all that was kept of the first pass."""
        schema = self.schema
        if self._kept is not None:
            return sample_batches(self._kept, rows)
        return [self._typed(batch, schema) for batch in sample_batches(self._sample, rows)]

    def _typed(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = [
            self._cast(found[name], kind) if name in found else pa.nulls(batch.num_rows, kind)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
