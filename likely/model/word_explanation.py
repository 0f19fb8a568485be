"""Explanations of texts: what each word says for one class against another."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.messages import printable
from likely.statistics import Array, Labels, plain_label


@dataclass(frozen=True, eq=False)
class WordExplanation:
    """What every word of some texts says for one class against another, in logarithms.

    Parameters
    ----------
    label, against
        the two classes of each text
    base
        the log-odds before the text is read
    starts, terms, counts, odds
        the words of text i, how often each came, and what they say altogether, are those from ``starts[i]`` on
    """

    label: Labels
    against: Labels
    base: Array
    starts: NDArray[np.int64]
    terms: Any = field(repr=False)  # Arrow would show its text as it is
    counts: NDArray[Any]
    odds: Array

    @property
    def log_odds(self) -> Array:
        """log p(label | x) − log p(against | x) of every text: the base and its words added."""
        return self.base + added_up(self.odds, self.starts)

    things: ClassVar[str] = "words"
    before: ClassVar[str] = "before any word"

    def __len__(self) -> int:
        return len(self.base)

    def size(self, row: int = 0) -> int:
        """Return how many words a text has."""
        return int(self.starts[row + 1] - self.starts[row])

    def top(self, most: int = 10, row: int = 0) -> list[tuple[str, int, float]]:
        """Return the words that say most of a text: (word, how often, log-odds), the strongest first."""
        return self.words(row)[:most]

    def words(self, text: int = 0) -> list[tuple[str, int, float]]:
        """Return the words of a text: (word, how often, log-odds), the strongest first."""
        own = np.arange(self.starts[text], self.starts[text + 1])
        own = own[np.argsort(-np.abs(self.odds[own]), kind="stable")]
        terms = self.terms.take(own).to_pylist()
        return list(zip(terms, self.counts[own].tolist(), self.odds[own].tolist(), strict=True))

    def __str__(self) -> str:
        return "\n\n".join(self._table(text) for text in range(min(len(self.base), 5)))

    def _table(self, text: int, most: int = 10) -> str:
        words = self.words(text)
        lines = [("before reading the text", self.base[text])]
        lines += [
            (printable(word) if count == 1 else f"{printable(word)} × {count}", odds)
            for word, count, odds in words[:most]
        ]
        if len(words) > most:
            lines.append((f"{len(words) - most} other words", sum(odds for _, _, odds in words[most:])))
        lines.append(("altogether", self.log_odds[text]))
        width = max(len(name) for name, _ in lines)
        head = f"{plain_label(self.label[text])!r} against {plain_label(self.against[text])!r}, log-odds"
        return "\n".join([head, *(f"{name:<{width}}  {odds:+10.3f}" for name, odds in lines)])


def added_up(odds: Array, starts: NDArray[np.int64]) -> Array:
    """Return the sum of what the words of each text say."""
    return np.diff(np.concatenate([[0.0], np.cumsum(odds)])[starts])
