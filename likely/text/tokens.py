"""Words that a function of Python finds: slower than the core, and free to do anything."""

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from likely.text.documents import without_surrogates

# Ends a token; no UTF-8 has it.
_END = b"\xff"


def tokenized(texts: pa.Array, tokenizer: Callable[[str], Any], prepare: Callable[[str], str], errors: str) -> Any:
    """Yield the tokens of each text, and None of a missing one."""
    for i, text in enumerate(texts.to_pylist()):
        if text is None:
            yield None
            continue
        found = tokenizer(prepare(text if isinstance(text, str) else text.decode(errors=errors)))
        if isinstance(found, str | bytes) or not isinstance(found, Iterable):
            raise TypeError(f"expected the tokenizer to return a list of words, got {found!r} of the text at place {i}")
        tokens = list(found)
        for token in tokens:
            if not isinstance(token, str):
                raise TypeError(f"expected words from the tokenizer, got {token!r} in the text at place {i}: use str()")
        yield [token for token in tokens if token]


def joined(tokens: Iterable[list[str] | None], ngrams: tuple[int, int], stop_words: frozenset[str]) -> pa.Array:
    r"""Return tokens and their n-grams as the core reads them, an end behind each; nothing is made of None.

    >>> joined([["New", "York"], None], (1, 2), frozenset()).to_pylist()
    [b'New\xffYork\xffNew York\xff', None]
    """
    return pa.array(
        [None if own is None else b"".join(_units(own, ngrams, stop_words)) for own in tokens], type=pa.large_binary()
    )


def _units(tokens: list[str], ngrams: tuple[int, int], stop_words: frozenset[str]) -> Iterable[bytes]:
    left = [token for token in tokens if token not in stop_words]
    shortest, longest = ngrams
    for n in range(shortest, min(longest, len(left)) + 1):
        for i in range(len(left) - n + 1):
            yield without_surrogates(" ".join(left[i : i + n])).encode() + _END


def folded(text: str, lowercase: bool, accents: str | None) -> str:
    """Return a text in lower case and without accents, as far as asked for.

    >>> folded("Élan", True, "unicode")
    'elan'
    """
    text = text.lower() if lowercase else text
    if accents is None:
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    if accents == "ascii":
        return decomposed.encode("ascii", "ignore").decode()
    return "".join(c for c in decomposed if not unicodedata.combining(c))
