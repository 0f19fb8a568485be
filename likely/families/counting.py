"""How the words of a text are counted: as they come, by logarithms, in texts of one length, rare words for more."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from likely.statistics import Array
from likely.text import SHARES, Measure, WordStatistics

COUNTS = ("plain", "log")


class Counted(NamedTuple):
    """Words whose ``"count"`` is what they are taken for, their weights, and the norm that texts are scaled to.

    Without weights all are 1; without a norm, which then is 0, texts stay as long as they are.
    """

    words: WordStatistics
    weights: Array | None
    norm: float


@dataclass(frozen=True)
class Counting:
    """How the words of a text are counted.

    A text has so much of a word: its count x, or log(1 + x); divided by the length of the text, the root of the sum of
    their squares, and times a number that is the same for all texts; times the weight of the word.

    Parameters
    ----------
    counts
        "plain": x; "log": log(1 + x)
    normalize
        whether texts are scaled to one length. That is such that all texts learned have together as many counts as
        they have words: so smoothing weighs as much as it does without. A text that is asked about is measured by the
        words in it that are known.
    idf
        whether a word has the weight log((1 + N) / (1 + n)) + 1, if n of N texts have it; otherwise 1
    """

    counts: Literal["plain", "log"] = "plain"
    normalize: bool = False
    idf: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.counts, str) or self.counts not in COUNTS:
            raise ValueError(f"expected counts to be one of {', '.join(map(repr, COUNTS))}, got {self.counts!r}")
        for name in ("normalize", "idf"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"expected {name} to be True or False, got {getattr(self, name)!r}")

    @property
    def as_they_come(self) -> bool:
        """Whether counts are plain, texts as long as they are, and words alike."""
        return self == Counting()

    @property
    def measure(self) -> Measure:
        """What is summed as ``"share"`` while texts are read; weights come later, when all texts are known."""
        if self.normalize:
            return Measure(self.counts == "log", "norm")
        return Measure(True, "one") if self.counts == "log" else SHARES

    @property
    def rule(self) -> str:
        """How the core takes the count of a word."""
        return "log" if self.counts == "log" else "count"

    def counted(self, words: WordStatistics, of_all: WordStatistics) -> Counted:
        """Return words as they are counted; the norm depends on all words of all texts."""
        if self.as_they_come:
            return Counted(words, None, 0.0)
        sums = words.sums["count" if self.measure == SHARES else "share"]
        norm = _ratio(of_all.sums["count"].sum(), of_all.sums["share"].sum()) if self.normalize else 0.0
        weights = None
        if norm:
            sums = sums * norm
        if self.idf:
            n, found = words.sums["weight"].sum(), words.in_words("documents")
            weights = np.log(np.maximum((1 + n) / (1 + found), 1.0)) + 1
            sums = sums * weights[words.words]
        return Counted(replace(words, sums={**words.sums, "count": sums}), weights, norm)


def _ratio(one: float, other: float) -> float:
    return float(one / other) if other > 0 else 1.0
