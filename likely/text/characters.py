"""What the running Python knows of characters, as tables for the core.

Versions of Unicode differ between Python and the core, and between one Python and the next. Words must be those of
``re`` and lower case that of ``str.lower``, so both are asked, once in a process, and only if there is a character
beyond ASCII.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# as in core/kernels/src/text/alphabet.rs
_WORD, _SPACE, _FOLDED, _CASED, _CASE_IGNORABLE, _DROPPED = 1, 2, 4, 8, 16, 32

_BLOCK = 256
_CAPITAL_SIGMA, _SIGMA, _FINAL_SIGMA = 0x3A3, "σ", 0x3C2


class Tables(NamedTuple):
    """Flags of every code point, and what becomes of those that folding changes: lower case, and no accents."""

    kinds: NDArray[np.uint8]
    folded: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    becomes: NDArray[np.uint8]


@cache
def tables(lowercase: bool, accents: str | None, sigma: bool) -> Tables:
    """Return the tables of characters.

    Parameters
    ----------
    lowercase
        fold capitals
    accents
        ``"unicode"``: drop combining characters after decomposition; ``"ascii"``: all that is not ASCII; None: nothing
    sigma
        say which characters decide the form of a sigma, which takes longer than the rest

    Examples
    --------
    >>> found = tables(True, None, False)
    >>> bool(found.kinds[ord("é")] & 1), bool(found.kinds[ord("€")] & 1)
    (True, False)
    """
    kinds = _kinds().copy()
    if sigma:
        kinds |= _contexts()
    changed = dict(_lowered()) if lowercase else {}
    if accents is not None:
        _strip(changed, kinds, accents)
    for code, text in changed.items():
        kinds[code] |= _FOLDED if text else _DROPPED
    codes = sorted(code for code, text in changed.items() if text)
    texts = [changed[code].encode() for code in codes]
    starts = np.cumsum([0, *map(len, texts)], dtype=np.uint32)
    return Tables(kinds, np.array(codes, dtype=np.uint32), starts, np.frombuffer(b"".join(texts), dtype=np.uint8))


def strip_accents(text: str, accents: str) -> str:
    """Return a text without accents, and with ``"ascii"`` without all that is still not ASCII."""
    decomposed = unicodedata.normalize("NFKD", text)
    if accents == "ascii":
        return decomposed.encode("ascii", "ignore").decode()
    return "".join(c for c in decomposed if not unicodedata.combining(c))


@cache
def _codes() -> NDArray[np.uint32]:
    """Return the code points of the planes that have characters; NUL in the place of surrogates, which are none.

    Planes 4 to 13 are empty in every version of Unicode so far, 15 and 16 for private use.
    """
    codes = np.concatenate([np.arange(0x40000, dtype=np.uint32), np.arange(0xE0000, 0xF0000, dtype=np.uint32)])
    codes[0xD800:0xE000] = 0
    return codes


def _text(codes: NDArray[np.uint32]) -> str:
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def _blocks() -> Iterator[tuple[list[int], str]]:
    """Yield all characters in blocks, most of which need no second look: their code points, and themselves."""
    codes = _codes()
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK]
        yield block.tolist(), _text(block)


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return which characters form words and which are spaces."""
    kinds = np.zeros(len(_codes()), dtype=np.uint8)
    text = _text(_codes())
    for pattern, flag in [(r"\w+", _WORD), (r"\s", _SPACE)]:
        for run in re.finditer(pattern, text):
            kinds[run.start() : run.end()] |= flag
    return _spread(kinds)


def _spread(kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return flags of all code points from those of ``_codes``."""
    spread = np.zeros(0x110000, dtype=np.uint8)
    spread[_codes()] = kinds
    return spread


@cache
def _lowered() -> dict[int, str]:
    """Return the characters beyond ASCII that have a lower case, and that."""
    lowered: dict[int, str] = {}
    for codes, block in _blocks():
        if block.lower() != block:
            lowered |= {code: c.lower() for code, c in zip(codes, block, strict=True) if c.lower() != c and code > 127}
    lowered[_CAPITAL_SIGMA] = _SIGMA
    return lowered


def _strip(changed: dict[int, str], kinds: NDArray[np.uint8], accents: str) -> None:
    """Take the accents from what becomes of characters, and mark those of which nothing remains."""
    if accents == "ascii":
        kinds[128:] |= _DROPPED
    else:
        every = _text(_codes())
        kinds[[ord(mark) for mark in compress(every, map(unicodedata.combining, every))]] |= _DROPPED
    for code, text in _decomposed().items():
        changed.setdefault(code, text)
    for code, text in changed.items():
        changed[code] = strip_accents(text, accents)
    for code in [code for code, text in changed.items() if text]:
        kinds[code] &= 255 - _DROPPED


@cache
def _decomposed() -> dict[int, str]:
    """Return the characters that others make up, and those."""
    decomposed: dict[int, str] = {}
    for codes, block in _blocks():
        if not unicodedata.is_normalized("NFKD", block):
            for code, c in zip(codes, block, strict=True):
                text = unicodedata.normalize("NFKD", c)
                if text != c:
                    decomposed[code] = text
    return decomposed


@cache
def _contexts() -> NDArray[np.uint8]:
    """Return which characters are cased, and which are passed over when a sigma looks for one that is.

    ``str.lower`` tells: a sigma is final after a cased character, and after one that is passed over if a cased one
    comes before that.
    """
    long = [code for code, text in _lowered().items() if len(text) > 1]
    codes = np.where(np.isin(_codes(), long), np.uint32(ord("A")), _codes())  # so that all keep their places

    def final_after(before: str) -> NDArray[np.bool_]:
        texts = np.empty((len(codes), 4), dtype=np.uint32)
        texts[:, 0], texts[:, 1], texts[:, 2], texts[:, 3] = ord(before), codes, _CAPITAL_SIGMA, ord(" ")
        lowered = np.frombuffer(_text(texts).lower().encode("utf-32-le"), dtype="<u4").reshape(-1, 4)
        return np.asarray(lowered[:, 2] == _FINAL_SIGMA)

    cased = final_after(" ")
    ignorable = final_after("A") & ~cased
    return _spread((cased * _CASED + ignorable * _CASE_IGNORABLE).astype(np.uint8))
