"""The progress line on the terminal, while something takes long and a person looks on."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from likely.data.rows import Rows

PATIENCE, AGAIN = 1.0, 0.1
"""Seconds before the line is shown, and between two of it."""
_WIDTH = 40
_ONE = Lock()
"""held by the bar that is shown: what is read within is part of it"""


def is_terminal() -> bool:
    """Say whether a person looks on: errors go to a terminal, not to a file, or whatever was put in its place."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


class ProgressLine:
    """One line on the terminal that says how far something is which takes some seconds."""

    def __init__(self, wanted: bool = True):
        self._began = self._shown = monotonic()
        self._wanted = bool(wanted) and is_terminal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: Callable[[], str]) -> None:
        """Show the line, if it is time to."""
        now = monotonic()
        if self._wanted and now - self._began > PATIENCE and now - self._shown > AGAIN:
            self._shown = now
            self._show(text())

    def clear(self) -> None:
        """Remove the line."""
        if self._shown > self._began:
            self._show("")

    def _show(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{line[:width]:<{width}}\r")
        sys.stderr.flush()


@contextmanager
def progress_bar(rows: "Rows", doing: str) -> Iterator[None]:
    """Show how far rows have been read."""
    if not is_terminal() or not _ONE.acquire(blocking=False):
        yield
        return
    done = Event()
    watcher = Thread(target=_watch, args=(rows, doing, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        _ONE.release()


def _watch(rows: "Rows", doing: str, done: Event) -> None:
    began = monotonic()
    with ProgressLine() as line:
        while not done.wait(1.01 * AGAIN):
            line(lambda: _bar(doing, *rows.progress, monotonic() - began))


def _bar(doing: str, read: int, total: int | None, unit: str, seconds: float) -> str:
    """Return a bar as text.

    >>> _bar("reading", 5_000_000, 10_000_000, "bytes", 61.5)
    'reading [####################                    ] 5.0 MB 1:01'
    """
    counted = f"{read / 1e6:,.1f} MB" if unit == "bytes" else f"{read:,} {unit}"
    # Reading runs ahead of the work: what has been read whole is not done yet.
    filled = "" if total is None else f"[{'#' * (_WIDTH * min(read, total - 1) // max(1, total)):<{_WIDTH}}] "
    return f"{doing} {filled}{counted} {seconds // 60:.0f}:{int(seconds % 60):02}"
