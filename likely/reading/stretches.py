"""Stretches of Parquet files: files cut into parts of about one size, each read where it is wanted."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from likely.reading.arrays import plain_batch, recast
from likely.reading.sources import Source, pieces, read_ahead

LENGTH = 128 << 20
"""About so many bytes are in a stretch."""


@dataclass(frozen=True)
class Stretch(Source):
    """Those groups of rows of a Parquet file that begin in a range of its bytes.

    Parameters
    ----------
    path
        the file
    start, stop
        the range
    wanted
        the columns, and their types as Arrow writes them in bytes; one that the file lacks is missing in all rows
    """

    path: str
    start: int
    stop: int
    wanted: bytes

    @cached_property
    def _types(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.wanted)).remove_metadata()

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        return plain_batch(self._types.empty_table()).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        return read_ahead(self._read())

    def count(self) -> int:
        """Return how many rows there are, as the end of the file tells."""
        file = self._opened()
        return sum(file.metadata.row_group(group).num_rows for group in self._groups(file))

    def _opened(self) -> Any:
        from pyarrow.parquet import ParquetFile

        try:
            return ParquetFile(self.path, buffer_size=1 << 20)
        except (OSError, pa.ArrowException) as error:
            said = " ".join(str(error).split())[:200]
            raise ValueError(f"expected a Parquet file in {self.path!r}, got one that cannot be read: {said}") from None

    def _groups(self, file: Any) -> list[int]:
        return [group for group in range(file.num_row_groups) if self.start <= _place(file, group) < self.stop]

    def _read(self) -> Iterator[pa.RecordBatch]:
        file = self._opened()
        known = set(file.schema_arrow.names)
        names = [name for name in self._types.names if name in known]
        size = max(1, (1 << 21) // max(1, len(names)))
        for batch in file.iter_batches(size, self._groups(file), names, use_threads=False):
            yield from pieces(plain_batch(self._typed(batch)))

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = {name: batch.column(name) for name in batch.schema.names}
        columns = [
            recast(found[field.name], field.type) if field.name in found else pa.nulls(batch.num_rows, field.type)
            for field in self._types
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._types)


def _place(file: Any, group: int) -> int:
    """Return where a group of rows begins."""
    first = file.metadata.row_group(group).column(0)
    return int(first.data_page_offset if first.dictionary_page_offset is None else first.dictionary_page_offset)


def stretches(paths: Iterable[str], names: Iterable[str]) -> list[Stretch]:
    """Cut Parquet files, in the order of their names, into stretches with some columns, in the types of the first.

    There are none if the first file lacks one of the columns.
    """
    from pyarrow.parquet import read_schema

    files, names = sorted(paths), list(names)
    first = read_schema(files[0]) if files else pa.schema([])
    if not files or not set(names) <= set(first.names):
        return []
    schema = pa.schema([first.field(name) for name in names])
    wanted = schema.serialize().to_pybytes()
    return [Stretch(path, start, stop, wanted) for path in files for start, stop in _cut(os.path.getsize(path))]


def _cut(size: int) -> Iterator[tuple[int, int]]:
    """Cut a range of bytes evenly.

    >>> list(_cut(300 << 20)) == [(0, 150 << 20), (150 << 20, 300 << 20)]
    True
    """
    count = max(1, round(size / LENGTH))
    places = [i * size // count for i in range(count)]
    return zip(places, [*places[1:], size], strict=True)
