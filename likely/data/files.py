"""Files: what they hold, how their rows are read, and Parquet files in chunks that workers read by themselves."""

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa

from likely.data.arrow import check_names, common_type, is_dictionary_text, is_text, plain_batch, recast
from likely.data.csv import CsvFile, csv_cast, csv_type
from likely.data.hashing import sample_batches
from likely.data.jsonl import JsonLines, json_cast, json_type
from likely.data.paths import File, Format, find_files
from likely.data.sources import BATCH, Source, StreamSource, TypedSource, first, pieces, read_ahead
from likely.lazy import pq
from likely.messages import printable

_SMALL = 16 << 20
CHUNK_BYTES = 128 << 20
"""About so many bytes are in a chunk of a Parquet file."""


class Files(Source):
    """One or more files, one below the other."""

    unit = "bytes"

    def __init__(self, files: list[File], missing: tuple[str, ...]) -> None:
        self._files, self._missing = files, missing
        self.text = files[0].format.text
        """whether types are not written in the files"""
        self._sizes = [file.size for file in files]
        self.total = sum(self._sizes)
        self._tell: Callable[[], int] = lambda: 0

    def _opened(self, file: File) -> Any:
        raw = file.opened()
        self._tell = raw.tell
        return raw if file.format.compression is None else pa.CompressedInputStream(raw, file.format.compression)

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns in all files."""
        if self.text:
            first = next(self._pieces(self._files[0]), None)
            return pa.schema([]) if first is None else first.schema
        schemas = [_stored_schema(file) for file in self._files]
        types = dict(zip(schemas[0].names, schemas[0].types, strict=True))
        for file, schema in zip(self._files[1:], schemas[1:], strict=True):
            self._check_columns(set(types), file, schema.names)
            for name, kind in zip(schema.names, schema.types, strict=True):
                types[name] = common_type(types[name], kind)
        return pa.schema(list(types.items()))

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        return read_ahead(self._read())

    def _read(self) -> Generator[pa.RecordBatch, None, None]:
        self.done = past = 0
        names: set[str] | None = None
        for file, size in zip(self._files, self._sizes, strict=True):
            for batch in self._pieces(file):
                self.done = past + min(size, self._tell())
                if file.format.name != "jsonl":
                    names = names or set(batch.schema.names)
                    self._check_columns(names, file, batch.schema.names)
                yield batch if self.text else self._recast(batch)
            past += size
        self.done = past

    def _pieces(self, file: File) -> Iterator[pa.RecordBatch]:
        if file.format.text:
            return _text_batches(lambda: self._opened(file), repr(file.path), file.format, self._missing)
        return self._stored(file)

    def _stored(self, file: File) -> Iterator[pa.RecordBatch]:
        read, size = 0, file.size
        self._tell = lambda: read
        with _readable(file.path, file.format.name):
            for batch, share in _stored_batches(file):
                read = int(share * size)
                yield from pieces(plain_batch(batch))

    def _recast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        schema = self.schema
        if batch.schema.equals(schema):
            return batch
        columns = [recast(batch.column(name), schema.field(name).type) for name in schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _check_columns(self, names: set[str], file: File, found: list[str]) -> None:
        if set(found) != names:
            odd = sorted(set(found) ^ names)[0]
            has = "has" if odd in found else "lacks"
            raise ValueError(
                f"expected the columns of {self._files[0].path!r} in {file.path!r} too, got others: it {has} {odd!r}"
            )

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return rows from several row groups of the files."""
        if self.text:
            return super().sample(rows)
        if (self.total or 0) < _SMALL:
            return sample_batches(list(self.batches()), rows)
        groups = _sampled_groups(self._files)
        share = max(1, -(-rows // len(groups)))
        taken = []
        for file, group in groups:
            with _readable(file.path, file.format.name):
                first = next(_stored_batches(file, group, share), None)
            if first is not None:
                taken.append(self._recast(plain_batch(first[0].slice(0, share))))
        return taken


@contextmanager
def _readable(path: str, form: str) -> Iterator[None]:
    """Raise what Arrow says of a file that it cannot read in a sentence with the file's name."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = printable(" ".join(str(error).split())[:200])
        kind = "a Parquet" if form == "parquet" else "an Arrow"
        raise ValueError(f"expected {kind} file in {path!r}, got one that cannot be read: {said}") from None


def _parquet(source: Any, **known: Any) -> Any:
    """Return a reader of a Parquet file, by its path or its bytes."""
    return pq.ParquetFile(source, buffer_size=1 << 20, **known)


def _arrow(file: File) -> Any:
    """Return a reader of an Arrow file, or of a stream in a file."""
    source = file.mapped()
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _stored_schema(file: File) -> pa.Schema:
    with _readable(file.path, file.format.name):
        schema = _parquet(file.opened()).schema_arrow if file.format.name == "parquet" else _arrow(file).schema
        check_names(schema.names, repr(file.path))
        return plain_batch(schema.empty_table()).schema


def _sampled_groups(files: list[File], most: int = 8) -> list[tuple[File, int]]:
    """Return row groups of files to sample, evenly spaced."""
    groups = [
        (file, group)
        for file in files[:: max(1, len(files) // most)]
        for group in range(max(1, _parquet(file.opened()).num_row_groups) if file.format.name == "parquet" else 1)
    ]
    return groups[:: -(-len(groups) // most)]


def _stored_batches(
    file: File, group: int | None = None, rows: int = 1 << 18
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Return batches, and the share of the file's rows that have been read after each."""
    if file.format.name == "parquet":
        reader, done = _parquet(file.opened()), 0
        groups = None if group is None else [group] if reader.num_row_groups else []
        width = max(1, reader.metadata.num_columns)
        for batch in reader.iter_batches(batch_size=max(1, min(rows, (1 << 21) // width)), row_groups=groups):
            done += batch.num_rows
            yield batch, done / max(1, reader.metadata.num_rows)
    elif isinstance(reader := _arrow(file), pa.RecordBatchFileReader):
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i), (i + 1) / reader.num_record_batches
    else:
        for batch in reader:
            yield batch, 0.0


def path_source(paths: list[str], missing: tuple[str, ...], format_name: str | None, typed: bool) -> Source:
    """Return the rows of files."""
    files = find_files(paths, format_name)
    if not files:
        raise ValueError("expected one or more paths, got none")
    kinds = sorted({file.format.name for file in files})
    if len(kinds) > 1 and set(kinds) != {"csv", "tsv"}:
        raise ValueError(f"expected files of one format, got {' and '.join(kinds)}: read them one by one")
    if len(files) == 1 and not files[0].is_regular:
        stream = open(files[0].path, "rb")  # noqa: SIM115, lives as long as the source
        source = stream_source(stream, repr(files[0].path), missing, files[0].format, typed)
        weakref.finalize(source, stream.close)
        return source
    rows = Files(files, missing)
    return _with_types(rows, files[0].format) if rows.text and typed else rows


def stream_source(stream: Any, label: str, missing: tuple[str, ...], given: Format, typed: bool) -> Source:
    """Return the rows of an open binary file, which is read once."""
    if not given.text:
        return _CopiedStream(stream, given)
    if given.compression is not None:
        stream = pa.CompressedInputStream(pa.PythonFile(stream, "r"), given.compression)
    raw = StreamSource(_text_batches(lambda: stream, label, given, missing, again=False))
    return _with_types(raw, given) if typed else raw


def _text_batches(
    opened: Callable[[], Any], label: str, given: Format, missing: tuple[str, ...], *, again: bool = True
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a text file, in types that its cells do not decide yet."""
    if given.name == "jsonl":
        return JsonLines(opened, label, missing).batches()
    return CsvFile(opened, label, "\t" if given.name == "tsv" else None, missing, again).batches()


def _with_types(raw: Source, given: Format) -> Source:
    widen, cast = (json_type, json_cast) if given.name == "jsonl" else (csv_type, csv_cast)
    return TypedSource(raw, widen, cast)


class _CopiedStream(Files):
    """A stream of a format that is not read from its beginning on: it is copied to a file first."""

    def __init__(self, stream: Any, given: Format) -> None:
        self._copy = tempfile.NamedTemporaryFile()  # noqa: SIM115, lives as long as the source
        shutil.copyfileobj(stream, self._copy)
        self._copy.flush()
        super().__init__([File(self._copy.name, given)], ())


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

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows."""
        return read_ahead(self._read(BATCH, dictionaries=dictionaries))

    def sample(self, rows: int) -> list[pa.RecordBatch]:
        """Return the first rows, of which no more are read."""
        return first(self._read(BATCH, rows), rows)

    def count(self) -> int:
        """Return how many rows there are, as the end of the file tells."""
        file = self._opened()
        return sum(file.metadata.row_group(group).num_rows for group in self._groups(file))

    def _opened(self, **known: Any) -> Any:
        with _readable(self.path, "parquet"):
            return _parquet(self.path, **known)

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
    files, names = sorted(paths), list(names)
    schemas = [pq.read_schema(file) for file in files]
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
