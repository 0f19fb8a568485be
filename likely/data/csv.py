"""CSV files: cells of text between separators, under one line of names."""

import codecs
import csv
import io
import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from threading import Event
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from likely.data.arrow import casts, check_names, is_number, is_text, is_true_or_false, words_as_null
from likely.data.sources import BLOCK
from likely.messages import Advice, Setting, printable

_SEPARATORS = ",;\t|"
_HEAD = 1 << 20
_SNIFFED = 50
# So many seconds at most are waited for a stream that has nothing to read yet.
_PATIENCE = 2.0
_FOREIGN = {
    b"\xff\xfe": "text in UTF-16", b"\xfe\xff": "text in UTF-16", b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstd file", b"PK\x03\x04": "a zip file", b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
}  # fmt: skip


class CsvFile(NamedTuple):
    """A CSV file: how its bytes are opened, what it is called in messages, and its separator if that is known."""

    open: Callable[[], Any]
    label: str
    separator: str | None
    missing: tuple[str, ...]
    again: bool = True

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows, all cells as text without spaces around it, the empty ones missing."""
        stream = self.open()
        try:
            head = stream.read(_HEAD)
        except OSError as error:
            self._refuse(str(error), "")
        separator, width = self._sniff(head)
        names = [str(j) for j in range(width)]
        reader = _Reader(
            head,
            stream,
            pa.csv.ReadOptions(block_size=BLOCK, column_names=names, use_threads=True),
            pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
        try:
            yield from self._cleaned(reader)
        except (pa.ArrowException, OSError) as error:
            reader.stop()
            self._refuse(" ".join(str(error).split()), separator)
        finally:
            reader.stop()

    def _cleaned(self, reader: "_Reader") -> Iterator[pa.RecordBatch]:
        words = ("", *self.missing)
        schema, first = None, 0
        for batch in reader:
            columns = [pc.utf8_trim_whitespace(column) for column in batch.columns]
            if schema is None:
                if batch.num_rows == 0:
                    continue
                schema = pa.schema([(name, pa.string()) for name in self._names([c[0].as_py() for c in columns])])
                first = 1
            columns = [words_as_null(column, words, trimmed=True).slice(first) for column in columns]
            first = 0
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _names(self, names: list[str]) -> list[str]:
        if all(is_number(name) for name in names) and not all(name.isdigit() for name in names):
            raise ValueError(
                f"expected the names of the columns in the first line of {self.label}, got numbers such as "
                f"{names[0]!r}: put a line of names above them"
            )
        check_names(names, f"the first line of {self.label}")
        return names

    def _sniff(self, head: bytes) -> tuple[str, int]:
        """Return the separator and the number of columns."""
        if not head.strip():
            raise ValueError(f"expected a line of names and rows below it in {self.label}, got an empty file")
        kind = next((kind for mark, kind in _FOREIGN.items() if head.startswith(mark)), None)
        if kind is None and b"\0" in head:
            kind = "bytes that are no text"
        if kind is not None:
            expected = f"expected text in UTF-8 in {self.label}, got {kind}: name the file for what it is, or "
            raise ValueError(Advice(expected, Setting("format", None, "say the format")))
        text = head.decode("utf-8-sig", errors="replace")
        if len(head) == _HEAD:  # the last row is not whole
            text = text[: text.rfind("\n") + 1] or text
        candidates = self.separator or _SEPARATORS
        found = {separator: _widths(text, separator) for separator in candidates}
        even = {s: w[0] for s, w in found.items() if w and w[0] > 1 and len(set(w)) == 1}
        first = even or {s: w[0] for s, w in found.items() if w} or {candidates[0]: 1}
        best = max(first, key=lambda separator: first[separator])
        return best, first[best]

    def _refuse(self, said: str, separator: str) -> NoReturn:
        if ragged := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", said):
            row, expected, got = ragged.groups()
            line = _line_of(self.open(), separator, int(expected)) if self.again else None
            where = f"line {line}" if line else f"row {int(row) - 1}" if row else "a row"
            raise ValueError(
                f"expected {expected} cells in each row of {self.label}, got {got} in {where}: put quotes around cells "
                "that hold the separator, and check that none is left open"
            ) from None
        if "UTF8" in said:
            byte = _first_foreign_byte(self.open()) if self.again else None
            where = "" if byte is None else f" at byte {byte}"
            raise ValueError(
                f"expected text in UTF-8 in {self.label}, got another encoding{where}: save the file as UTF-8"
            ) from None
        if "straddling" in said or "too large" in said:
            raise ValueError(
                f"expected rows of less than {BLOCK >> 20} MB in {self.label}, got a longer one: is a quote left open?"
            ) from None
        raise ValueError(
            f"expected a CSV file in {self.label}, got one that cannot be read: {printable(said[:200])}"
        ) from None


_TYPES = (pa.int64(), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.bool_(), pa.string())
# For each type, those that are tried when more cells come, in order.
_TRIED = {kind: (kind, pa.string()) for kind in _TYPES}
_TRIED |= {pa.null(): _TYPES, pa.int64(): (pa.int64(), pa.float64(), pa.string())}


def csv_type(kind: pa.DataType, column: Any) -> pa.DataType:
    """Return a type that holds what ``kind`` holds, and a column of text: of numbers, dates, yes/no or text.

    >>> csv_type(pa.null(), pa.array(["1", None])), csv_type(pa.int64(), pa.array(["2.5"]))
    (DataType(int64), DataType(double))
    >>> csv_type(pa.null(), pa.array(["0815"]))
    DataType(string)
    """
    if kind == pa.string() or column.null_count == len(column):
        return kind
    return next(tried for tried in _TRIED[kind] if _fits(column, tried))


def csv_cast(column: Any, kind: pa.DataType) -> Any:
    """Return a column of text in a type that fits every cell of it."""
    return pa.nulls(len(column)) if pa.types.is_null(kind) else column.cast(kind)


def _fits(column: Any, kind: pa.DataType) -> bool:
    if is_text(kind):
        return True
    if pa.types.is_boolean(kind):
        return is_true_or_false(column)
    if not casts(column, kind):
        return False
    # Digits after a first zero are a name, such as a post code, and 0x10 is not meant as a number.
    zero = pc.starts_with(column, "0")
    if pa.types.is_timestamp(kind) or not pc.any(zero).as_py():
        return True
    return not pc.any(pc.match_substring_regex(column.filter(zero).unique(), "^0[0-9xX]")).as_py()


class _File(io.RawIOBase):
    """Bytes that were read already, then the rest of their stream, until they are stopped: none come after that."""

    def __init__(self, head: bytes, rest: Any, stopped: Event) -> None:
        self._head, self._rest, self._stopped = head, rest, stopped

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or as much of it as there are bytes; a failure is a stop."""
        if self._stopped.is_set():
            return 0
        part, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        try:
            part = part or self._rest.read(len(buffer)) or b""
        except BaseException:
            self._stopped.set()
            raise
        buffer[: len(part)] = part
        return len(part)


class _Reader:
    """The batches of a CSV file, which a thread of Arrow's reads ahead.

    That thread calls Python, and goes on when nobody wants its batches any more: if Python ends meanwhile, that aborts
    the process, or hangs it. So it is stopped as soon as reading ends, for whatever reason, and at the exit at latest.
    """

    def __init__(self, head: bytes, rest: Any, *options: Any) -> None:
        self._bytes, self._options, self._stopped = (head, rest), options, Event()
        # The one place that knows Arrow's reader, after its file: others, such as a traceback, would keep it.
        self._opened: list[Any] = []
        self.stop = weakref.finalize(self, _stop, self._stopped, self._opened)

    def _file(self) -> _File:
        file = _File(*self._bytes, self._stopped)
        self._opened.append(weakref.ref(file))
        return file

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        # Buffered, bytes are copied into Arrow's own memory: else its threads would have to ask Python to free them,
        # and might do so when Python has ended.
        self._opened.append(
            pa.csv.open_csv(pa.BufferedInputStream(pa.PythonFile(self._file(), "r"), 1 << 16), *self._options)
        )
        while True:
            try:
                batch = self._opened[1].read_next_batch()
            except StopIteration:
                return
            yield batch


def _stop(stopped: Event, opened: list[Any]) -> None:
    """Let Arrow's thread find no more bytes, and wait until it has ended."""
    failed, file = stopped.is_set(), opened[0] if opened else lambda: None
    stopped.set()
    opened.clear()
    patience = time.monotonic() + _PATIENCE
    # What failed to read is not asked again, but the traceback of its error still knows the file.
    while not failed and file() is not None and time.monotonic() < patience:
        time.sleep(0.001)


def _widths(text: str, separator: str) -> list[int]:
    """Return how many cells each of the first rows has."""
    widths: list[int] = []
    with suppress(csv.Error):
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        widths.extend(map(len, islice(filter(None, rows), _SNIFFED)))
    return widths


def _line_of(stream: Any, separator: str, width: int) -> int | None:
    """Return the line in which the first row begins that has another number of cells."""
    lines = io.BufferedReader(_File(b"", stream, Event()))
    reader = csv.reader(io.TextIOWrapper(lines, "utf-8-sig", errors="replace", newline=""), delimiter=separator)
    before = 0
    try:
        for row in reader:
            if row and len(row) != width:
                return before + 1
            before = reader.line_num
    except csv.Error:
        return None
    return None


def _first_foreign_byte(stream: Any) -> int | None:
    """Return where the first byte is that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    read = 0
    while True:
        part = stream.read(BLOCK)
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            return read - waiting + error.start
        if not part:
            return None
        read += len(part)
