"""What is said to people: text that is safe on a terminal, and warnings at the line of the user's program."""

import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# All that may be printable is not looked at one by one.
_OTHER = re.compile(r"[^ -~]")


def printable(text: str, escaped: Callable[[str], str] | None = None) -> str:
    r"""Return text of the data as it can be shown: what would steer a terminal, or cannot be seen, is escaped.

    Control characters of C0 and C1, bidirectional overrides and other invisible characters, line ends and lone
    surrogates are written as ``repr`` writes them, or as ``escaped`` says.

    >>> print(printable("red\x1b[31m\x9b2J \u202eleft, café 猫"))
    red\x1b[31m\x9b2J \u202eleft, café 猫
    """
    if text.isprintable():
        return text
    return _OTHER.sub(lambda found: _shown(found.group(), escaped or _as_repr), text)


def _shown(character: str, escaped: Callable[[str], str]) -> str:
    # Spaces other than the plain one are harmless.
    return character if character.isprintable() or unicodedata.category(character) == "Zs" else escaped(character)


def _as_repr(character: str) -> str:
    return repr(character)[1:-1]


def tell(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn; the line shown is the first one up the stack that is outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(message), category, stacklevel=level)
