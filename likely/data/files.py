"""Files: what they hold, and how their rows are read."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import pyarrow as pa

from likely.data.arrow import check_names, common_type, plain_batch, recast
from likely.data.csv import CSV_TYPES, CsvFile
from likely.data.hashing import sample_batches
from likely.data.jsonl import JSON_TYPES, JsonLines
from likely.data.parquet import readable
from likely.data.paths import File, Format, find_files
from likely.data.sources import Source, StreamSource, TypedSource, pieces, read_ahead

_SMALL = 16 << 20


class Files(Source):
    """One or more files, one below the other."""

    unit = "bytes"

    def __init__(self, files: list[File], missing: tuple[str, ...]) -> None:
        self._files, self._missing = files, missing
        self._sizes = [file.size for file in files]
        self.total = sum(self._sizes)
        self._tell: Callable[[], int] = lambda: 0

    @property
    def text(self) -> bool:
        """Whether the files are text, in which types are not written."""
        return self._files[0].format.text

    def opened(self, file: File) -> Any:
        """Return a file's bytes, decompressed."""
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

    def batches(self) -> Iterator[pa.RecordBatch]:
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
            return _text_batches(lambda: self.opened(file), file.label, file.format, self._missing)
        return self._stored(file)

    def _stored(self, file: File) -> Iterator[pa.RecordBatch]:
        read, size = 0, file.size
        self._tell = lambda: read
        with _readable(file):
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
                f"expected the columns of {self._files[0].label} in {file.label} too, got others: it {has} {odd!r}"
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
            with _readable(file):
                first = next(_stored_batches(file, group, share), None)
            if first is not None:
                taken.append(self._recast(plain_batch(first[0].slice(0, share))))
        return taken


def _readable(file: File) -> AbstractContextManager[None]:
    return readable(file.label, "a Parquet" if file.format.name == "parquet" else "an Arrow")


def _parquet(file: File) -> Any:
    from pyarrow.parquet import ParquetFile  # which takes a while, and CSV does without

    return ParquetFile(file.opened(), memory_map=False, buffer_size=1 << 20, pre_buffer=False)


def _arrow(file: File) -> Any:
    """Return a reader of an Arrow file, or of a stream in a file."""
    source = file.mapped()
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _stored_schema(file: File) -> pa.Schema:
    with _readable(file):
        schema = _parquet(file).schema_arrow if file.format.name == "parquet" else _arrow(file).schema
        check_names(schema.names, file.label)
        return plain_batch(schema.empty_table()).schema


def _sampled_groups(files: list[File], most: int = 8) -> list[tuple[File, int]]:
    """Return row groups of files to sample, evenly spaced."""
    groups = [
        (file, group)
        for file in files[:: max(1, len(files) // most)]
        for group in range(max(1, _parquet(file).num_row_groups) if file.format.name == "parquet" else 1)
    ]
    return groups[:: -(-len(groups) // most)]


def _stored_batches(
    file: File, group: int | None = None, rows: int = 1 << 18
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Return batches, and the share of the file's rows that have been read after each."""
    if file.format.name == "parquet":
        reader, done = _parquet(file), 0
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
        source = stream_source(stream, files[0].label, missing, files[0].format, typed)
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
    return TypedSource(raw, JSON_TYPES if given.name == "jsonl" else CSV_TYPES)


class _CopiedStream(Files):
    """A stream of a format that is not read from its beginning on: it is copied to a file first."""

    def __init__(self, stream: Any, given: Format) -> None:
        self._copy = tempfile.NamedTemporaryFile()  # noqa: SIM115, lives as long as the source
        shutil.copyfileobj(stream, self._copy)
        self._copy.flush()
        super().__init__([File(self._copy.name, given)], ())
