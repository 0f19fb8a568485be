"""The command line."""

import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

from likely.cli.commands import COMMANDS
from likely.cli.messages import explained, finished
from likely.cli.reading import plainly_read

_MOST_ARENAS = -8  # M_ARENA_MAX of malloc.h


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the one that was typed, and return the exit code. An error is one line, and 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with explained() as said:
        said.code = _run(words)
    return said.code


def _run(words: list[str]) -> int:
    command = COMMANDS.get(words[0]) if words and "_LIKELY_COMPLETE" not in os.environ else None
    read = None if command is None else plainly_read(command.function, words[1:])
    if command is None or read is None:
        # Help, completion, and words that are not plain: importing Typer takes as long as some commands.
        from likely.cli.full import run_fully

        return run_fully(words)
    command.function(**read)
    return 0


class _WithoutPandas:
    """Lets nothing find pandas: Arrow would import all of it, if it is there, only to see that it is not used."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuse the one name, and leave others to those who find them."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used on the command line", name=name)


def _share_memory() -> None:
    """Let the threads of C share one heap, where it is glibc's: each would keep what it has freed for itself."""
    import ctypes

    adjust = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if adjust is not None and "MALLOC_ARENA_MAX" not in os.environ:
        adjust(_MOST_ARENAS, 1)


def main() -> None:
    """Run the command that was typed, in a process of its own."""
    gc.set_threshold(20_000)  # what is imported makes many objects, and none of them is garbage
    _share_memory()
    sys.meta_path.insert(0, _WithoutPandas())
    # Matrices are small here: threads of the linear algebra would wait for each other. The core has its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    finished(run())


__all__ = ["main", "run"]
