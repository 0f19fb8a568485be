"""Rows in and out: files, standard streams, lines of text, and folders of texts."""

import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from likely.data.atomic import is_stream, open_file_of
from likely.data.paths import KNOWN_FORMATS, Format, parse_format
from likely.lazy import pa
from likely.messages import printable

if TYPE_CHECKING:
    from likely.data.rows import Rows

STANDARD = "-"
LINES = "txt"
"""The format in which every line is a text."""
TEXT, LABEL = "text", "label"
"""The columns of texts in folders."""
_PIECE = 1 << 22
_BREAKS = re.compile("([\n\t])")


def opened(data: Sequence[str], form: str | None, missing: Sequence[str] = (), *, typed: bool = True) -> "Rows":
    """Open files, or standard input."""
    from likely.data.rows import open_rows

    _choose_memory_pool()
    if STANDARD not in data:
        return open_rows(list(data), missing=missing, format=form, typed=typed)
    if len(data) > 1:
        raise ValueError("expected - for standard input alone, got other files beside it")
    return open_rows(sys.stdin.buffer, missing=missing, format=form or "csv", typed=typed)


def _choose_memory_pool() -> None:
    """Let Arrow use jemalloc, if it has that and nobody has chosen, and give back at once what it frees.

    mimalloc keeps much more for every thread. What is freed is kept for ten seconds, unless told otherwise.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(0)


def opened_to_answer(
    data: str, form: str | None, out: Format, missing: Sequence[str], *, verbatim: bool = True
) -> "Rows":
    """Open rows that are to be written again with answers.

    Cells of text files that go to a text file stay as they are written there, and so does text that stands for a
    missing cell. In other formats cells have types, which are found first.
    """
    read = Format.of(data, form or ("csv" if data == STANDARD else None))
    text = read is not None and read.delimited and out.delimited
    return opened([data], form, () if text and verbatim else missing, typed=not text)


class Output(NamedTuple):
    """Where rows are written, by default standard output, and how: what options say of it."""

    output: str | None
    to: str | None
    escape_formulas: bool

    def format(self, read: Sequence[str], form: str | None = None) -> Format:
        """Return the format to write: the one given, else what the file's name ends with, else the one that is read.

        Raises ValueError at once if rows of files and folders ``read``, in the format ``form``, cannot be written so.
        """
        out = self.output or STANDARD
        check_output(out, read, form)
        found, form = Format.of(out, self.to), None if form == LINES else form
        if found is None and form is None and out != STANDARD and not is_stream(out):
            raise ValueError(
                f"expected a name that ends with its format, got {out!r}: say which, one of {KNOWN_FORMATS}"
            )
        found = found or Format.of(out, parse_format(form or "csv")._replace(compression=None)) or parse_format("csv")
        # A terminal would take it for commands.
        if out == STANDARD and _on_terminal() and (not found.text or found.compression):
            raise ValueError(f"expected a file or a pipe to write {found.name} to, got a terminal: say -o OUT")
        return found

    def write(self, tables: "Iterable[pa.Table]", form: Format) -> None:
        """Write rows."""
        from likely.data.write import write_rows

        to: Any = self.output
        if to is None or to == STANDARD:
            to = _Terminal() if _on_terminal() else sys.stdout.buffer
        write_rows(tables, to, form, escape_formulas=self.escape_formulas)
        sys.stdout.flush()


class _Terminal(io.RawIOBase):
    """Standard output where a person reads it: rows of text, and nothing in their cells steers the terminal."""

    def write(self, content: Any) -> int:
        """Write whole lines."""
        lines = bytes(content).decode("utf-8", "backslashreplace")
        sys.stdout.write("".join(part if part in ("\n", "\t") else printable(part) for part in _BREAKS.split(lines)))
        return len(content)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def check_output(out: str, read: Iterable[str], form: str | None = None, *, text_dirs: bool = False) -> None:
    """Raise at once if a file cannot be written where it is to be, or is one of those that are read.

    ``read`` has files, folders and names with wildcards; ``form``, the format that was given, decides which files of a
    folder are read, and ``text_dirs`` that they are texts in a folder for each label.
    """
    if out == STANDARD:
        status = _status_of(sys.stdout)
    else:
        folder = Path(out).parent
        if not folder.is_dir():
            raise ValueError(
                f"expected a folder to write {out!r} in, got {str(folder)!r}, which is not there: make it first"
            )
        if os.path.isdir(out):
            raise ValueError(f"expected the name of a file to write, got the folder {out!r}")
        status = os.stat(out) if os.path.exists(out) else None
    if status is None or not stat.S_ISREG(status.st_mode):
        return
    for path, other in _read(read, form, text_dirs):
        if other is not None and os.path.samestat(status, other):
            what = "standard output" if out == STANDARD else repr(out)
            raise ValueError(
                f"expected another file to write than those that are read, got {what}, which is {path}: choose "
                "another name"
            )


def _read(paths: Iterable[str], form: str | None, text_dirs: bool) -> Iterator[tuple[str, os.stat_result | None]]:
    """Return all files on this machine that are read, as they are called in a message, and what the system says."""
    from likely.data.paths import expand_path

    for path in paths:
        if path == STANDARD:
            yield "standard input", _status_of(sys.stdin)
            continue
        # A file that is not there is told of when it is opened; a URL of another machine is not asked twice.
        with suppress(OSError, ImportError, ValueError):
            if text_dirs:
                files = [str(file) for file, _ in _labelled_files([path])]
            elif "://" in path and not path.startswith(("file://", "local://")):
                files = []
            else:
                files = [file for file, _ in expand_path(path, any_ending=form is not None)]
            for file in files:
                yield repr(file), os.stat(file)


def _status_of(stream: Any) -> os.stat_result | None:
    """Return what the system says of a stream; None if it is none of the system's."""
    try:
        return os.fstat(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def check_model_output(out: str, read: Iterable[str], form: str | None = None, *, text_dirs: bool = False) -> None:
    """Raise at once if a model file cannot be written where it is to be, or is one of those that are read."""
    if out == STANDARD or open_file_of(out) == 1:
        raise ValueError(f"expected the name of a file to write the model to, got {out}: a model file is binary")
    check_output(out, read, form, text_dirs=text_dirs)


@contextmanager
def read_meanwhile(rows: "Rows", data: Sequence[str]) -> Iterator[None]:
    """Find the types of columns of files while something else is done, such as an import.

    What fails is tried again later, and told then; a stream could not be read again.
    """
    if STANDARD in data:
        yield
        return
    reader = Thread(target=_find_types, args=(rows,), daemon=True)
    reader.start()
    try:
        yield
    finally:
        reader.join()


def _find_types(rows: "Rows") -> None:
    with suppress(Exception):
        _ = rows.schema


def rows_at(rows: "Rows", numbers: Sequence[int]) -> Any:
    """Return some rows, counted from 1, in the order asked for."""
    found: dict[int, Any] = {}
    before = 0
    for batch in rows.batches():
        for number in numbers:
            if before < number <= before + batch.num_rows:
                found[number] = pa.Table.from_batches([batch.slice(number - 1 - before, 1)])
        before += batch.num_rows
        if len(found) == len(set(numbers)):
            break
    for number in numbers:
        if number not in found:
            raise ValueError(f"expected one of the {before:,} rows, counted from 1, got --row {number}")
    together = pa.concat_tables([found[number] for number in numbers], promote_options="permissive")
    return together.combine_chunks().to_batches()[0]


def lines_of(data: str, name: str) -> "Rows":
    """Return the lines of a file, or of standard input, as rows of one column of that name."""
    from likely.data.rows import open_rows

    schema = pa.schema([(name, pa.large_string())])
    stream = sys.stdin.buffer if data == STANDARD else open(data, "rb")  # noqa: SIM115  closed when all is read
    batches = (pa.record_batch([_texts(lines)], schema=schema) for lines in _pieces(stream))
    return open_rows(pa.RecordBatchReader.from_batches(schema, batches))


def _pieces(stream: Any) -> Iterator[list[bytes]]:
    """Return the lines of a stream, some megabytes at a time."""
    with stream:
        rest = b""
        while piece := stream.read(_PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            if lines:
                yield lines
        if rest:
            yield [rest]


def folders_of(folders: Sequence[str]) -> "Rows":
    """Return the files in the folders of folders as rows: their text, and the name of the folder they are in."""
    from likely.data.rows import open_rows

    files = _labelled_files(folders)
    if not files:
        raise ValueError(
            f"expected a folder for each label with texts in it, in {', '.join(map(repr, folders))}, got none: "
            "put every text in a file, and the files of a label in a folder of its name"
        )
    schema = pa.schema([(TEXT, pa.large_string()), (LABEL, pa.string())])

    def batches() -> Iterator[Any]:
        texts: list[bytes] = []
        labels: list[str] = []
        size = 0
        for path, label in files:
            texts.append(path.read_bytes())
            labels.append(label)
            size += len(texts[-1])
            if size > _PIECE:
                yield pa.record_batch([_texts(texts), pa.array(labels)], schema=schema)
                texts, labels, size = [], [], 0
        if texts:
            yield pa.record_batch([_texts(texts), pa.array(labels)], schema=schema)

    return open_rows(pa.Table.from_batches(batches(), schema))


def _labelled_files(folders: Sequence[str]) -> list[tuple[Path, str]]:
    """Return the files in the folders of folders, each with the name of the folder it is in."""
    return [
        (path, label.name)
        for folder in folders
        for label in _sorted(folder, Path.is_dir)
        for path in _sorted(label, Path.is_file)
    ]


def _sorted(folder: str | os.PathLike[str], kind: Any) -> list[Path]:
    return sorted(path for path in Path(folder).iterdir() if kind(path) and not path.name.startswith("."))


def _texts(lines: list[bytes]) -> Any:
    """Return bytes as text; those that are not UTF-8 become U+FFFD."""
    return pa.array([line.decode("utf-8", "replace").rstrip("\r") for line in lines], pa.large_string())
