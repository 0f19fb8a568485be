"""What goes to standard error: notes and errors, each on one line, and the exit code."""

import errno
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from likely.messages import printable

WRONG, INTERRUPTED = 2, 130
# The library speaks of its parameters, and the command line has options for them.
_OPTIONS = (
    (r"columns=\{(['\"])(.*?)\1: (['\"])ignore\3\}", r"--ignore '\2'"),
    (r"columns=\{(['\"])(.*?)\1: (['\"])(.*?)\3\}", r"--column '\2=\4'"),
    (r"\bsay missing=\[(.*?)\]", r"say --missing, once for each of \1"),
    (r"\bopen it by likely.data.open_rows\(…, format=…\)", "say --format"),
    (r"\bsay the format\b", "say --format"),
    (r"\bsay that such text is missing\b", "say --missing TEXT"),
)


class MisuseError(Exception):
    """A command line that nobody can read."""


class Said:
    """What a command came to."""

    code = 0


@contextmanager
def explained() -> Iterator[Said]:
    """Show the library's warnings as notes, and whatever goes wrong as one line."""
    said = Said()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _Notes()
        try:
            yield said
        except KeyboardInterrupt:
            said.code = INTERRUPTED
        except OSError as error:
            said.code = _quiet() if _is_broken_pipe(error) else _failed(_of_file(error))
        except MemoryError:
            said.code = _failed("there is not enough memory for this")
        except (ValueError, TypeError, MisuseError) as error:
            said.code = _failed(str(error) or type(error).__name__)
        except Exception as error:  # whatever the input, no traceback
            said.code = _failed(f"{type(error).__name__}: {error}")


class _Notes:
    """Shows warnings as lines, each once."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def __call__(self, message: Warning | str, *_: Any, **__: Any) -> None:
        line = _line(str(message))
        if line not in self._shown:
            self._shown.add(line)
            print(f"likely: note: {line}", file=sys.stderr)


def _line(message: str) -> str:
    line = " ".join(message.split())
    for said, option in _OPTIONS:
        line = re.sub(said, option, line)
    return printable(line)


def _failed(message: str) -> int:
    print(f"likely: {_line(message)}", file=sys.stderr)
    return WRONG


def _of_file(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.strerror}: {os.fspath(error.filename)!r}"


def _is_broken_pipe(error: OSError) -> bool:
    return isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE


def _quiet() -> int:
    """Let nothing more be written to a reader that has gone, such as ``head``."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return 0


def finished(code: int) -> NoReturn:
    """Leave with an exit code, at once: to take apart all that was imported would take as long as to import it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(code)
