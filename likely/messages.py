"""What is said to people: text that is safe on a terminal, warnings at the line of the user's program, and advice."""

import math
import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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


def shown(value: Any) -> str:
    """Return a cell as a person writes it.

    >>> shown(0.123456), shown(3700.0), shown(None), shown(float("nan")), shown("Biscoe")
    ('0.1235', '3700', 'missing', 'missing', 'Biscoe')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if 1000 <= abs(float(value)) < 1e9 else f"{value:.4g}"
    return str(value)


class Setting(NamedTuple):
    """A parameter that a message names, what it may be set to, and how that is said in Python."""

    parameter: str
    value: Any
    text: str

    @classmethod
    def of_column(cls, name: Any, kind: str, shown: str = "") -> "Setting":
        """Return that a column is of a kind or a family, which may be shown in other quotes."""
        return cls("columns", (name, kind), f"columns={{{name!r}: {shown or repr(kind)}}}")

    def __str__(self) -> str:
        return self.text


class Advice(str):
    """A message of an error or a warning that names settings: as text it is said in Python.

    >>> error = ValueError(Advice("fit with ", Setting.of_column("zip", "category")))
    >>> print(error)
    fit with columns={'zip': 'category'}
    >>> said(error, lambda setting: "--column '{}={}'".format(*setting.value))
    "fit with --column 'zip=category'"
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> "Advice":
        """Join text and settings."""
        self = super().__new__(cls, printable("".join(map(str, parts))))
        self.parts = parts
        return self

    def __reduce__(self) -> tuple[type["Advice"], tuple[str | Setting, ...]]:
        return Advice, self.parts


def said(error: Exception, phrased: Callable[[Setting], str]) -> str:
    """Return the message of an error or a warning, its settings phrased as another front end than Python has them."""
    message = error.args[0] if error.args else ""
    if not isinstance(message, Advice):
        return str(error)
    return "".join(phrased(part) if isinstance(part, Setting) else part for part in message.parts)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn; the line shown is the first one up the stack that is outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message if isinstance(message, Advice) else printable(message), category, stacklevel=level)
