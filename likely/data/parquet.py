"""Chunks of Parquet files: row groups of about one size in all, each read on the worker that wants it."""

import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa

from likely.data.arrow import common_type, is_dictionary_text, is_text, plain_batch, recast
from likely.data.sources import BATCH, Source, first, pieces, read_ahead
from likely.messages import printable

CHUNK_BYTES = 128 << 20
"""About so many bytes are in a chunk."""


@contextmanager
def readable(label: str, kind: str) -> Iterator[None]:
    """Raise what Arrow says of a file that it cannot read in a sentence with the file's name."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = printable(" ".join(str(error).split())[:200])
        raise ValueError(f"expected {kind} file in {label}, got one that cannot be read: {said}") from None


@dataclass(frozen=True)
class ParquetChunk(Source):
    """Those row groups of a Parquet file that begin in a range of its bytes, from ``start`` to before ``stop``."""

    path: str
    start: int
    stop: int
    wanted: bytes
    """the columns, and the types that they are read in, as Arrow writes them in bytes"""

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        return pa.ipc.read_schema(pa.py_buffer(self.wanted))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        return read_ahead(self._read(BATCH))

    def dictionary_batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows; text that is dictionary-encoded stays so."""
        return read_ahead(self._read(BATCH, dictionaries=True))

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return the first rows, of which no more are read."""
        return first(self._read(BATCH, rows), rows)

    def count(self) -> int:
        """Return how many rows there are, as the end of the file tells."""
        file = self._opened()
        return sum(file.metadata.row_group(group).num_rows for group in self._groups(file))

    def _opened(self, **known: Any) -> Any:
        from pyarrow.parquet import ParquetFile

        with readable(repr(self.path), "a Parquet"):
            return ParquetFile(self.path, buffer_size=1 << 20, **known)

    def _groups(self, file: Any) -> list[int]:
        return [group for group in range(file.num_row_groups) if self.start <= _offset(file, group) < self.stop]

    def _read(
        self, size: int, most: int = 1 << 30, *, dictionaries: bool = False
    ) -> Generator[pa.RecordBatch, None, None]:
        """Return batches of about so many bytes, and at most so many rows."""
        file = self._opened()
        groups, names = self._groups(file), self.schema.names
        if dictionaries and (lists := self._dictionary_columns(file, groups)):
            file = self._opened(metadata=file.metadata, read_dictionary=lists)
        for group in groups:
            group_metadata = file.metadata.row_group(group)
            rows = min(most, max(1, size * group_metadata.num_rows // max(1, group_metadata.total_byte_size)))
            for batch in file.iter_batches(rows, [group], names, use_threads=False):
                found = plain_batch(batch.select(names))
                columns = [
                    column
                    if dictionaries and is_text(kind) and is_dictionary_text(column.type)
                    else recast(column, kind)
                    for column, kind in zip(found.columns, self.schema.types, strict=True)
                ]
                yield from pieces(pa.RecordBatch.from_arrays(columns, names=names))

    def _dictionary_columns(self, file: Any, groups: list[int]) -> list[str]:
        """Return the columns of text of which each cell takes less than the length of a text would."""
        texts = {field.name for field in self.schema if is_text(field.type)}
        for group in map(file.metadata.row_group, groups):
            for column in map(group.column, range(group.num_columns if texts else 0)):
                if not column.has_dictionary_page or column.total_uncompressed_size >= 4 * group.num_rows:
                    texts.discard(column.path_in_schema)
        return sorted(texts)


def _offset(file: Any, group: int) -> int:
    """Return where a group of rows begins."""
    column = file.metadata.row_group(group).column(0)
    return int(column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset)


def parquet_chunks(paths: Iterable[str], names: Iterable[str]) -> list[ParquetChunk]:
    """Cut Parquet files, in the order of their names, into chunks with some columns, in types that hold all cells.

    There are none if a file lacks one of the columns.
    """
    from pyarrow.parquet import read_schema

    files, names = sorted(paths), list(names)
    schemas = [read_schema(file) for file in files]
    if not files or not all(set(names) <= set(schema.names) for schema in schemas):
        return []
    plain = [plain_batch(schema.empty_table().select(names)).schema for schema in schemas]
    kinds = [reduce(common_type, kinds) for kinds in zip(*(schema.types for schema in plain), strict=True)]
    wanted = pa.schema(list(zip(names, kinds, strict=True))).serialize().to_pybytes()
    return [ParquetChunk(path, start, stop, wanted) for path in files for start, stop in _cut(os.path.getsize(path))]


def _cut(size: int) -> Iterator[tuple[int, int]]:
    """Cut a range of bytes evenly; the last part has no end, so that no row of a file that grows is passed over.

    >>> list(_cut(300 << 20)) == [(0, 150 << 20), (150 << 20, sys.maxsize)]
    True
    """
    count = max(1, round(size / CHUNK_BYTES))
    starts = [i * size // count for i in range(count)]
    return zip(starts, [*starts[1:], sys.maxsize], strict=True)
