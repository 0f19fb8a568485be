"""Files: what they hold, and how their rows are read."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from likely.data.arrow import check_names, plain_batch, recast, wider
from likely.data.column_types import Joined, Settled, Written
from likely.data.csv import Delimited
from likely.data.formats import Format
from likely.data.jsonl import JsonLines
from likely.data.locations import File, found_files
from likely.data.sampling import drawn
from likely.data.sources import Once, Source, pieces, read_ahead
from likely.messages import printable

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
        """The types of the columns in all files together."""
        if self.text:
            first = next(self._pieces(self._files[0]), None)
            return pa.schema([]) if first is None else first.schema
        schemas = [_stored_schema(file) for file in self._files]
        types = dict(zip(schemas[0].names, schemas[0].types, strict=True))
        for file, schema in zip(self._files[1:], schemas[1:], strict=True):
            self._check_columns(set(types), file, schema.names)
            for name, kind in zip(schema.names, schema.types, strict=True):
                types[name] = wider(types[name], kind)
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
        if file.format.name == "jsonl":
            return JsonLines(lambda: self.opened(file), file.label, self._missing).batches()
        if file.format.text:
            separator = "\t" if file.format.name == "tsv" else None
            return Delimited(lambda: self.opened(file), file.label, separator, self._missing).batches()
        return self._stored(file)

    def _stored(self, file: File) -> Iterator[pa.RecordBatch]:
        read, size = 0, file.size
        self._tell = lambda: read
        with _OneSentence(file):
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
        """Return rows from several places of the files."""
        if self.text:
            return super().sample(rows)
        if (self.total or 0) < _SMALL:
            return drawn(list(self.batches()), rows)
        spots = _spots(self._files)
        share = max(1, -(-rows // len(spots)))
        taken = []
        for file, group in spots:
            with _OneSentence(file):
                first = next(_stored_batches(file, group, share), None)
            if first is not None:
                taken.append(self._recast(plain_batch(first[0].slice(0, share))))
        return taken


class _OneSentence:
    """What Arrow says of a file that it cannot read, in a sentence with the file's name."""

    def __init__(self, file: File) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, pa.ArrowException | OSError):
            said = " ".join(str(error).split())[:200]
            name = {"parquet": "a Parquet", "arrow": "an Arrow"}[self._file.format.name]
            raise ValueError(
                f"expected {name} file in {self._file.label}, got one that cannot be read: {printable(said)}"
            ) from None


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
    with _OneSentence(file):
        schema = _parquet(file).schema_arrow if file.format.name == "parquet" else _arrow(file).schema
        check_names(schema.names, file.label)
        return plain_batch(schema.empty_table()).schema


def _spots(files: list[File], most: int = 8) -> list[tuple[File, int]]:
    """Return places to sample: groups of rows of files, evenly spaced."""
    spots = [
        (file, group)
        for file in files[:: max(1, len(files) // most)]
        for group in range(max(1, _parquet(file).num_row_groups) if file.format.name == "parquet" else 1)
    ]
    return spots[:: -(-len(spots) // most)]


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
    files = found_files(paths, format_name)
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
    if not rows.text or not typed:
        return rows
    return Settled(rows, Joined() if kinds == ["jsonl"] else Written())


def stream_source(stream: Any, label: str, missing: tuple[str, ...], given: Format, typed: bool) -> Source:
    """Return the rows of an open binary file, which is read once."""
    if not given.text:
        return _CopiedStream(stream, given)
    if given.compression is not None:
        stream = pa.CompressedInputStream(pa.PythonFile(stream, "r"), given.compression)
    if given.name == "jsonl":
        raw = Once(JsonLines(lambda: stream, label, missing).batches())
    else:
        separator = "\t" if given.name == "tsv" else None
        raw = Once(Delimited(lambda: stream, label, separator, missing, again=False).batches())
    if not typed:
        return raw
    return Settled(raw, Joined() if given.name == "jsonl" else Written())


class _CopiedStream(Files):
    """A stream of a format that is not read from its beginning on: it is copied to a file first."""

    def __init__(self, stream: Any, given: Format) -> None:
        self._copy = tempfile.NamedTemporaryFile()  # noqa: SIM115, lives as long as the source
        shutil.copyfileobj(stream, self._copy)
        self._copy.flush()
        super().__init__([File(self._copy.name, given)], ())
