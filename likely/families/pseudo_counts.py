"""Counts that words are imagined to have: the same for all, for each word, for each class and word, or a background."""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from likely.families.base import on_one_line
from likely.statistics import Array
from likely.text import WordStatistics
from likely.text.words import PAIRS

BACKGROUNDS = ("collection", "kneser-ney")


class PseudoCounts(NamedTuple):
    """Words, with a pair for every pseudo-count of their own, and the pseudo-counts λ.

    ``every`` has those of each word in classes that have no pair with it, ``own`` those of each pair, and ``totals``
    the sums of each class.
    """

    words: WordStatistics
    every: Array
    own: Array
    totals: Array

    @classmethod
    def of(cls, smoothing: Any, words: WordStatistics) -> "PseudoCounts":
        """Return the pseudo-counts of words.

        Parameters
        ----------
        smoothing
            a number, a dict from words to numbers or from classes to such dicts (0 for others), or a background
        words
            the words, counted as they come
        """
        if _is_nested(smoothing):
            return cls._of_classes(smoothing, words)
        if isinstance(smoothing, Mapping):
            every = np.array([float(smoothing.get(term, 0.0)) for term in words.terms.to_pylist()])
        elif not isinstance(smoothing, str):
            every = np.full(len(words.terms), float(smoothing))
        else:
            background = smoothing == "collection"
            shares = words.in_words("count") if background else np.diff(words.starts).astype(np.float64)
            shares = shares / shares.sum() if shares.any() else shares
            every = strength(words, shares) * shares
        return cls(words, every, every[words.words], np.full(len(words.labels["class"]), every.sum()))

    @classmethod
    def _of_classes(cls, smoothing: Mapping[Any, Mapping[Any, Any]], words: WordStatistics) -> "PseudoCounts":
        classes = words.labels["class"].tolist()
        unknown = [label for label in smoothing if label not in classes]
        if unknown:
            raise ValueError(
                f"expected smoothing of the classes {on_one_line(classes)}, got {unknown[0]!r}; in partial_fit, name "
                "labels yet to come by classes="
            )
        terms, k = words.terms.to_pylist(), len(classes)
        places = {term: i for i, term in enumerate(terms)}
        given = {
            places[term] * k + c: float(number)
            for c, label in enumerate(classes)
            for term, number in smoothing.get(label, {}).items()
            if term in places and number > 0
        }
        keys = words.words * k + words.codes
        named = np.fromiter(given, dtype=np.int64, count=len(given))
        every = np.union1d(keys, named)
        sizes = np.bincount(every // k, minlength=len(terms))
        there, own = np.searchsorted(every, keys), np.zeros(len(every))
        own[np.searchsorted(every, named)] = list(given.values())
        sums = dict(words.sums)
        for name in PAIRS:
            sums[name] = np.zeros(len(every))
            sums[name][there] = words.sums[name]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        more = words.of(words.terms, starts, (every % k).astype(np.int32), sums, words.labels["class"])
        return cls(more, np.zeros(len(terms)), own, np.bincount(more.codes, own, k).astype(np.float64))


def check_smoothing(smoothing: Any, *, only_number: bool) -> None:
    """Raise unless these are pseudo-counts."""
    background = isinstance(smoothing, str) and smoothing in BACKGROUNDS
    nested = _is_nested(smoothing) and all(map(_is_counts, smoothing.values()))
    if _is_count(smoothing) or (not only_number and (background or nested or _is_counts(smoothing))):
        return
    more = ", a dict from words to numbers, or from classes to such dicts, or a background, " + " or ".join(
        map(repr, BACKGROUNDS)
    )
    raise ValueError(f"expected smoothing of 0 or more{'' if only_number else more}, got {on_one_line(smoothing)}")


def strength(words: WordStatistics, shares: Array) -> float:
    """Return the strength μ of a background that predicts every word best from all others, one left out at a time.

    That is where the derivative of Σ n log [(n − 1 + μp) / (N − 1 + μ)] is 0, found by halving.
    """
    n, p = words.sums["count"], shares[words.words]
    totals = words.in_classes("count")
    if not np.any(n > 1):
        return 1.0  # no word came again: nothing says how strong

    def slope(mu: float) -> float:
        return float(
            (n * p / (np.maximum(n - 1, 0.0) + mu * p)).sum() - (totals / np.maximum(totals - 1 + mu, mu)).sum()
        )

    # Beyond a thousand times all words the classes hardly differ, and rounding would decide.
    low, high = 1e-6, 1e3 * float(totals.max())
    for _ in range(100):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return float(np.sqrt(low * high))


def _is_nested(smoothing: Any) -> bool:
    """Say whether pseudo-counts are given class by class: then all values of the dict are dicts."""
    given = list(smoothing.values()) if isinstance(smoothing, Mapping) else []
    return bool(given) and all(isinstance(each, Mapping) for each in given)


def _is_counts(numbers: Any) -> bool:
    return isinstance(numbers, Mapping) and all(map(_is_count, numbers.values()))


def _is_count(number: Any) -> bool:
    return isinstance(number, int | float | np.integer | np.floating) and bool(0 <= number <= sys.float_info.max)
