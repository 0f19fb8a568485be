"""The command line: the program itself, its exit codes, and what it writes to standard error."""

import errno
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from likely.messages import Setting, printable, said

WRONG, INTERRUPTED = 2, 130
_MOST_ARENAS = -8  # M_ARENA_MAX of malloc.h


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the one that was typed, and return the exit code.

    The library's warnings are shown as notes, and whatever goes wrong as one line, with the exit code 2.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _Notes()
        try:
            return _run(words)
        except KeyboardInterrupt:
            return INTERRUPTED
        except OSError as error:
            broken = isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE
            return _quiet() if broken else _failed(_of_file(error))
        except MemoryError:
            return _failed("there is not enough memory for this")
        except (ValueError, TypeError) as error:
            return _failed(said(error, _as_option) or type(error).__name__)
        except Exception as error:  # whatever the input, no traceback
            return _failed(f"{type(error).__name__}: {error}")


def _run(words: list[str]) -> int:
    import click

    from likely.cli.arguments import COMPLETE
    from likely.cli.commands import application

    if COMPLETE in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(application, {}, "likely", COMPLETE, os.environ[COMPLETE])
    try:
        with application.make_context("likely", words) as context:
            application.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        message = error.format_message().rstrip(".")
        command = "likely" if error.ctx is None else error.ctx.command_path
        return _failed(f"{message}{'' if message.endswith('?') else '.'} Try '{command} --help'.")
    return 0


def _as_option(setting: Setting) -> str:
    """Return what to write on the command line for a parameter of the library."""
    match setting:
        case Setting("columns", (name, "ignore")):
            return f"--ignore '{name}'"
        case Setting("columns", (name, kind)):
            return f"--column '{name}={kind}'"
        case Setting("missing", None):
            return "say --missing TEXT"
        case Setting("missing", words):
            return f"--missing, once for each of {words}"
        case Setting("format"):
            return "say --format"
    return str(setting)


class _Notes:
    """Shows warnings as lines, each once."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def __call__(self, message: Warning | str, *_: Any, **__: Any) -> None:
        line = _line(said(message, _as_option) if isinstance(message, Warning) else message)
        if line not in self._shown:
            self._shown.add(line)
            print(f"likely: note: {line}", file=sys.stderr)


def _line(message: str) -> str:
    return printable(" ".join(message.split()))


def _failed(message: str) -> int:
    print(f"likely: {_line(message)}", file=sys.stderr)
    return WRONG


def _of_file(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.strerror}: {os.fspath(error.filename)!r}"


def _quiet() -> int:
    """Let nothing more be written to a reader that has gone, such as ``head``."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
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


def main() -> NoReturn:
    """Run the command that was typed, in a process of its own."""
    gc.set_threshold(20_000)  # what is imported makes many objects, and none of them is garbage
    _share_memory()
    sys.meta_path.insert(0, _WithoutPandas())
    # Matrices are small here: threads of the linear algebra would wait for each other. The core has its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(code)  # at once: to take apart all that was imported would take as long as to import it


__all__ = ["main", "run"]
