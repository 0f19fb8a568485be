"""Rows in and out: files and standard streams, and a progress bar on a terminal."""

import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from likely.data.atomic import is_stream, open_file_of
from likely.data.formats import EXPECTED, Format, stated
from likely.messages import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from likely.data.rows import Rows

STANDARD = "-"
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
    import pyarrow as pa

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


def output_format(out: str | None, given: str | None, read: str | None = None) -> Format:
    """Return the format to write: the one given, else what the file's name ends with, else the one that is read."""
    found = Format.of(out or STANDARD, given)
    if found is not None:
        return _shown(found, out)
    if read is None and out is not None and out != STANDARD and not is_stream(out):
        raise ValueError(f"expected a name that ends with its format, got {out!r}: say which, one of {EXPECTED}")
    found = Format.of(out or STANDARD, stated(read or "csv")._replace(compression=None)) or stated("csv")
    return _shown(found, out)


def _shown(form: Format, out: str | None) -> Format:
    """Raise if a binary format would go to a terminal, which would take it for commands."""
    if (out is None or out == STANDARD) and _on_terminal() and (not form.text or form.compression):
        raise ValueError(f"expected a file or a pipe to write {form.name} to, got a terminal: say -o OUT")
    return form


def written(tables: "Iterable[pa.Table]", out: str | None, form: Format, *, escape_formulas: bool = False) -> int:
    """Write rows to a file, or to standard output, and return how many they were."""
    from likely.data.write import write_rows

    if out is not None and out != STANDARD:
        return write_rows(tables, out, form, escape_formulas=escape_formulas)
    to: Any = _Terminal() if _on_terminal() else sys.stdout.buffer
    count = write_rows(tables, to, form, escape_formulas=escape_formulas)
    sys.stdout.flush()
    return count


class _Terminal(io.RawIOBase):
    """Standard output where a person reads it: rows of text, and nothing in their cells steers the terminal."""

    def write(self, content: Any) -> int:
        """Write whole lines."""
        lines = bytes(content).decode("utf-8", "backslashreplace")
        sys.stdout.write("".join(part if part in ("\n", "\t") else printable(part) for part in _BREAKS.split(lines)))
        return len(content)


def _on_terminal() -> bool:
    return sys.stdout.isatty()


def check_place(out: str | None, read: Iterable[str], form: str | None = None, *, text_dirs: bool = False) -> None:
    """Raise at once if a file cannot be written where it is to be, or is one of those that are read.

    ``read`` has files, folders and names with wildcards; ``form``, the format that was given, decides which files of a
    folder are read, and ``text_dirs`` that they are texts in a folder for each label.
    """
    if out is None or out == STANDARD:
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
            what = "standard output" if out is None or out == STANDARD else repr(out)
            raise ValueError(
                f"expected another file to write than those that are read, got {what}, which is {path}: choose "
                "another name"
            )


def _read(paths: Iterable[str], form: str | None, text_dirs: bool) -> Iterator[tuple[str, os.stat_result | None]]:
    """Return all files on this machine that are read, as they are called in a message, and what the system says."""
    from likely.cli.texts import labelled_files
    from likely.data.locations import expanded

    for path in paths:
        if path == STANDARD:
            yield "standard input", _status_of(sys.stdin)
            continue
        # A file that is not there is told of when it is opened; a URL of another machine is not asked twice.
        with suppress(OSError, ImportError, ValueError):
            if text_dirs:
                files = [str(file) for file, _ in labelled_files([path])]
            elif "://" in path and not path.startswith(("file://", "local://")):
                files = []
            else:
                files = [file for file, _ in expanded(path, any_ending=form is not None)]
            for file in files:
                yield repr(file), os.stat(file)


def _status_of(stream: Any) -> os.stat_result | None:
    """Return what the system says of a stream; None if it is none of the system's."""
    try:
        return os.fstat(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def check_model_place(out: str, read: Iterable[str], form: str | None = None, *, text_dirs: bool = False) -> None:
    """Raise at once if a model file cannot be written where it is to be, or is one of those that are read."""
    if out == STANDARD or open_file_of(out) == 1:
        raise ValueError(f"expected the name of a file to write the model to, got {out}: a model file is binary")
    check_place(out, read, form, text_dirs=text_dirs)


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
