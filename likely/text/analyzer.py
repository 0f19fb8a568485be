"""Texts to counts of their units: for every document, for every class, or in columns that are hashes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.text.characters import Tables, strip_accents, tables
from likely.text.documents import Strings, as_read, as_terms, as_texts, buffers, without_surrogates

Unit = Literal["words", "words of two", "words and punctuation", "characters", "characters in words"]

# No text has as many words, and the core can count so far.
_LONGEST = 1 << 40
# Ends a token; no UTF-8 has it.
_END = b"\xff"
_DEFAULT: Unit = "words and punctuation"
_UNITS = ("words", "words of two", "words and punctuation", "characters", "characters in words")


class Measure(NamedTuple):
    """What the share of a unit in a text is: its count, or log(1 + count), divided by the size of the text.

    The size is the ``"sum"`` of these, their ``"norm"``, the root of the sum of squares, or ``"one"``.
    """

    log: bool
    size: Literal["sum", "norm", "one"]


SHARES = Measure(True, "sum")


class TermCounts(NamedTuple):
    """Counts of documents × units, sparse: document i has ``units`` and ``counts`` from ``starts[i]`` to the next."""

    starts: NDArray[np.int64]
    units: NDArray[np.int32]
    counts: NDArray[np.int32]

    def taken(self, rows: NDArray[np.int64]) -> "TermCounts":
        """Return some of the documents, in their order."""
        sizes = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], sizes)
        return TermCounts(starts, self.units[indices], self.counts[indices])

    def renumbered(self, numbers: NDArray[np.int32]) -> "TermCounts":
        """Return the rows with other numbers of units, sorted by them, without the units whose number is negative."""
        return TermCounts(*native.renumber_columns(*self, numbers))

    @property
    def documents(self) -> NDArray[np.int64]:
        """The document of each count."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def lengths(self, orders: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return how many different single words each document has, 1 at least; ``orders``: 0 for such units."""
        single = np.concatenate([[0], np.cumsum(orders[self.units] == 0)])
        return np.maximum(np.diff(single[self.starts]), 1)

    def document_counts(self, units: int) -> NDArray[np.int64]:
        """Return in how many documents each unit is."""
        return np.bincount(self.units, minlength=units)


@dataclass(frozen=True)
class Analyzer:
    r"""What the units of a text are, and their counts.

    Vocabularies are Arrow arrays of strings. A missing text is an empty one.

    Parameters
    ----------
    unit
        ``"words"``, runs of letters, digits and _; ``"words of two"`` such characters at least; ``"words and
        punctuation"``, as well as every other character but spaces; ``"characters"``; ``"characters in words"``, and
        the space on either side of a word
    ngrams
        how many words, or characters, make a unit: from the first number to the second
    lowercase
        whether capitals are made small
    accents
        ``"unicode"``: letters lose their accents; ``"ascii"``: and what is still not ASCII is left out; None: all stays
    stop_words
        words, or units of characters, that are left out
    errors
        bytes that are not UTF-8 are an error if ``"strict"``, left out if ``"ignore"``, and U+FFFD if ``"replace"``
    tokenizer
        in the place of ``unit``, a function from a text, in lower case and without accents if so asked for, to a list
        of its words; empty ones are left out

    Examples
    --------
    >>> rows, vocabulary = Analyzer("words").counts(["the cat sat", "The hat"])
    >>> vocabulary.to_pylist()
    ['the', 'cat', 'sat', 'hat']
    >>> rows.starts.tolist(), rows.units.tolist()
    ([0, 3, 5], [0, 1, 2, 0, 3])
    """

    unit: Unit = _DEFAULT
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    accents: Literal["ascii", "unicode"] | None = None
    stop_words: frozenset[str] = field(default=frozenset())
    errors: Literal["strict", "ignore", "replace"] = "strict"
    tokenizer: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or self.unit not in _UNITS:
            raise ValueError(f"expected unit to be one of {', '.join(map(repr, _UNITS))}, got {self.unit!r}")
        if self.accents is not None and (not isinstance(self.accents, str) or self.accents not in ("ascii", "unicode")):
            raise ValueError(f"expected accents to be None, 'ascii' or 'unicode', got {self.accents!r}")
        if self.errors not in ("strict", "ignore", "replace"):
            raise ValueError(f"expected errors to be 'strict', 'ignore' or 'replace', got {self.errors!r}")
        if not isinstance(self.lowercase, bool):
            raise ValueError(f"expected lowercase to be True or False, got {self.lowercase!r}")
        numbers = isinstance(self.ngrams, tuple) and [type(n) for n in self.ngrams] == [int, int]
        if not numbers or not 1 <= self.ngrams[0] <= self.ngrams[1]:
            raise ValueError(f"expected ngrams from 1 or more to at least as many, got {self.ngrams!r}")
        if not isinstance(self.stop_words, frozenset) or not all(isinstance(word, str) for word in self.stop_words):
            raise ValueError(f"expected stop_words as a set of words, got {self.stop_words!r}")
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise ValueError(f"expected the tokenizer as a function from a text to a list, got {self.tokenizer!r}")
        if self.tokenizer is not None and self.unit != _DEFAULT:
            raise ValueError(f"expected a unit or a tokenizer, which says what words are, got both: unit={self.unit!r}")

    def counts(self, texts: Any) -> tuple[TermCounts, pa.Array]:
        """Return the counts of every text, and the vocabulary in the order of first appearance.

        ``texts``: strings or bytes, in a list or another iterable, a NumPy array, a column of pandas, Polars or Arrow.
        """
        rows, terms = self._ask(native.count_units, as_read(texts))
        return TermCounts(*rows), as_terms(*terms)

    def transform(self, texts: Any, vocabulary: Any) -> TermCounts:
        """Return the counts of every text of the units in a vocabulary, which has each once."""
        return TermCounts(*self._ask(native.count_known_units, as_read(texts), buffers(as_texts(vocabulary))))

    def amounts(
        self,
        texts: Any,
        codes: NDArray[np.int32],
        weights: Any,
        n_classes: int,
        kept: Any = (),
        measure: Measure = SHARES,
    ) -> Any:
        """Return what every class has of each unit, sums of classes and the sizes of texts, some rows, and the terms.

        Texts whose code is negative are left out. No matrix of documents is made on the way, but for those whose
        numbers are ``kept``, in this order.
        """
        documents = as_read(texts)
        if codes.shape != (len(documents),):
            raise ValueError(f"expected a class for each of the {len(documents)} texts, got {len(codes)}")
        wanted = np.full(len(documents), -1)
        wanted[np.asarray(kept, dtype=np.int64)] = np.arange(len(kept))
        return self._ask(native.collect_amounts, documents, codes, weights, n_classes, wanted, measure)

    def known(self, terms: pa.Array) -> native.KnownWords:
        """Return terms that can be looked up."""
        return native.KnownWords(buffers(terms), self._settings())

    def add_scores(self, texts: pa.Array, known: native.KnownWords, *scores: Any) -> None:
        """Add the scores of the units of texts; what they are is for the core."""
        self._ask(native.score_texts, texts, known, *scores)

    def hashed(self, texts: Any, width: int, signs: bool = True) -> TermCounts:
        """Return the counts of every text in so many columns that are hashes of units.

        ``signs``: whether half of the units count down, so that units in the same column tend to cancel out.
        """
        return TermCounts(*self._ask(native.count_hashed_units, as_read(texts), width, signs))

    def _ask(self, function: Any, documents: Any, *rest: Any) -> Any:
        if self.tokenizer is not None:
            prepare = partial(folded, lowercase=self.lowercase, accents=self.accents)
            tokens = tokenized(as_texts(documents), self.tokenizer, prepare, self.errors)
            arrays = buffers(joined(tokens, self.ngrams, self.stop_words))
            return function(arrays, self._settings(), None, *rest)
        arrays = buffers(documents)
        try:
            return function(arrays, self._settings(), self._tables(documents), *rest)
        except native.NotUtf8Error as error:
            (number,) = error.args
            try:
                documents[number].cast(pa.large_binary()).as_py().decode()
            except UnicodeDecodeError as wrong:
                wrong.add_note(f"in the text at index {number}: decode the texts, or leave it out")
                raise wrong from None
            raise

    def _settings(self) -> Any:
        if self.tokenizer is not None:  # all else is done by then
            return ("tokens", 1, 1, False, "strict", buffers(as_texts([])))
        stop_words = buffers(as_texts(sorted(self.stop_words)))
        shortest, longest = (min(n, _LONGEST) for n in self.ngrams)
        return (self.unit, shortest, longest, self.lowercase, self.errors, stop_words)

    def _tables(self, texts: Any) -> Tables | None:
        """Return what must be known of the characters that are there."""
        ascii_only, sigma = texts.survey if isinstance(texts, Strings) else native.survey_text(buffers(texts))
        if ascii_only:
            return None
        return tables(self.lowercase, self.accents, sigma and self.lowercase)


def kept_numbers(kept: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the new number of each unit if only some are kept, −1 of the others.

    >>> kept_numbers(np.array([True, False, True])).tolist()
    [0, -1, 1]
    """
    return np.where(kept, np.cumsum(kept, dtype=np.int32) - np.int32(1), np.int32(-1))


def sorted_terms(vocabulary: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """Return the new number of each term once they are sorted by code points, and the sorted vocabulary."""
    order = native.sort_terms(buffers(vocabulary))
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order), dtype=np.int32)
    return numbers, vocabulary.take(pa.array(order))


def tokenized(texts: pa.Array, tokenizer: Callable[[str], Any], prepare: Callable[[str], str], errors: str) -> Any:
    """Yield the tokens of each text, and None of a missing one."""
    for i, text in enumerate(texts.to_pylist()):
        if text is None:
            yield None
            continue
        found = tokenizer(prepare(text if isinstance(text, str) else text.decode(errors=errors)))
        if isinstance(found, str | bytes) or not isinstance(found, Iterable):
            raise TypeError(f"expected the tokenizer to return a list of words, got {found!r} of the text at index {i}")
        tokens = list(found)
        for token in tokens:
            if not isinstance(token, str):
                raise TypeError(f"expected words from the tokenizer, got {token!r} in the text at index {i}: use str()")
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
    return text if accents is None else strip_accents(text, accents)
