"""Which words are kept, by the number of texts that have them and by how often they come."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely.statistics import Array
from likely.text.analyzer import sorted_terms
from likely.text.words import WordStatistics

# No one has so many texts, or words, and a file that says so is broken.
_MOST = 1 << 53


def document_limits(min_df: Any, max_df: Any, documents: float) -> tuple[float, float]:
    """Return in how many documents a term must be at least, and may be at most.

    Whole numbers are numbers of documents, others shares of them.

    >>> document_limits(2, 0.5, 10)
    (2, 5.0)
    """
    low: Any = min_df if isinstance(min_df, Integral) else min_df * documents
    high: Any = max_df if isinstance(max_df, Integral) else max_df * documents
    return low, high


@dataclass(frozen=True)
class VocabularyLimits:
    """Which words say something. All are counted, whatever is kept, so that more texts may still decide otherwise.

    Parameters
    ----------
    min_df, max_df
        in how many texts a word must be at least, and may be at most: a whole number of texts, or a share of them. None
        is as few as the model can use.
    max_features
        how many words are kept at most, those that come most often; of words that come as often, the first by alphabet

    Examples
    --------
    >>> from likely.statistics import Assignment
    >>> from likely.text import Analyzer, collect_words
    >>> everyone = Assignment(np.array([0]), np.zeros(3, np.int32))
    >>> words = collect_words(Analyzer("words"), pa.array(["a b", "a c", "a c d"]), everyone)
    >>> VocabularyLimits(max_df=2, max_features=2).of(words).terms.to_pylist()
    ['b', 'c']
    """

    min_df: int | float | None = None
    max_df: int | float = 1.0
    max_features: int | None = None

    def __post_init__(self) -> None:
        for name, number in (("min_df", self.min_df), ("max_df", self.max_df)):
            if not _is_limit(number) and (name, number) != ("min_df", None):
                raise ValueError(
                    f"expected {name} as a number of texts, 1 or more, or a share from 0.0 to 1.0, got {number!r}"
                )
        most = self.max_features
        if most is not None and (isinstance(most, bool) or not isinstance(most, Integral) or not 1 <= most <= _MOST):
            raise ValueError(f"expected max_features as a number of words, 1 or more, or None, got {most!r}")
        alike = isinstance(self.min_df, Integral) == isinstance(self.max_df, Integral)
        if self.min_df is not None and alike and self.min_df > self.max_df:
            raise ValueError(f"expected min_df up to max_df, got {self.min_df!r} and {self.max_df!r}")

    def of(self, statistics: WordStatistics, least: int = 1) -> WordStatistics:
        """Return the statistics of the words that are kept; ``least`` is for a ``min_df`` of None."""
        chosen = self.chosen(statistics, least)
        return statistics if chosen.all() else statistics.of_words(chosen)

    def chosen(self, statistics: WordStatistics, least: int = 1) -> NDArray[np.bool_]:
        """Return which words are kept."""
        chosen = self._within(statistics, least)
        if self.max_features is not None and chosen.sum() > self.max_features:
            indices = np.flatnonzero(chosen)
            counts = statistics.in_words("count")[indices]
            chosen[:] = False
            chosen[indices[_most(counts, statistics.terms.take(pa.array(indices)), int(self.max_features))]] = True
        return chosen

    def check(self, statistics: WordStatistics, least: int = 1) -> None:
        """Raise ValueError if limits that were given keep no word."""
        asked = self != VocabularyLimits() or isinstance(self.max_df, Integral)  # 1 text is not a share of 1.0
        if asked and len(statistics.terms) and not self.chosen(statistics, least).any():
            low = least if self.min_df is None else self.min_df
            raise ValueError(
                f"expected some words to keep, got none of {len(statistics.terms)} by min_df={low!r} and "
                f"max_df={self.max_df!r}: take a lower min_df or a higher max_df"
            )

    def _within(self, statistics: WordStatistics, least: int) -> NDArray[np.bool_]:
        """Return which words are in enough texts, and not in too many."""
        chosen = np.full(len(statistics.terms), True)
        min_df = least if self.min_df is None else self.min_df
        # A word that was counted is in one text at least, whatever that weighs, and no word is in more than all.
        anywhere = isinstance(min_df, Integral) and min_df == 1
        everywhere = not isinstance(self.max_df, Integral) and self.max_df == 1.0
        if anywhere and everywhere:
            return chosen
        documents = statistics.in_words("documents")
        low, high = document_limits(min_df, self.max_df, float(statistics.sums["weight"].sum()))
        return (anywhere | (documents >= low)) & (everywhere | (documents <= high))


def _most(counts: Array, terms: pa.Array, most: int) -> NDArray[np.int64]:
    """Return the indices of the greatest counts; of equal ones, those of the first terms by alphabet."""
    last = np.partition(counts, -most)[-most]
    above, equal = np.flatnonzero(counts > last), np.flatnonzero(counts == last)
    ranks = sorted_terms(terms.take(pa.array(equal)))[0]
    return np.concatenate([above, equal[np.argsort(ranks)[: most - len(above)]]])


def _is_limit(number: Any) -> bool:
    if isinstance(number, bool) or not isinstance(number, Real):
        return False
    return 1 <= int(number) <= _MOST if isinstance(number, Integral) else 0.0 <= float(number) <= 1.0
