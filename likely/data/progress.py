"""A progress bar on the terminal while rows are read, if that takes long and a person looks on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likely.data.rows import Rows

PATIENCE = 0.7
"""Seconds before the bar is shown."""
_ONE = Lock()
"""held by who watches: what is read within is part of it"""


@contextmanager
def watched(rows: "Rows", doing: str) -> Iterator[None]:
    """Show how far rows have been read."""
    if not looked_at() or not _ONE.acquire(blocking=False):
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


def looked_at() -> bool:
    """Say whether a person looks on: errors go to a terminal, not to a file, or whatever was put in its place."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def _watch(rows: "Rows", doing: str, done: Event) -> None:
    if done.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[read]}")]
    bar = Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task(doing, total=None, read="")
        while not done.wait(0.1):
            read, total, unit = rows.progress
            counted = f"{read / 1e6:,.1f} MB" if unit == "bytes" else f"{read:,} {unit}"
            # Reading runs ahead of the work: what has been read whole is not done yet.
            bar.update(task, total=total, completed=read if total is None else min(read, total - 1), read=counted)
