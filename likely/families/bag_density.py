"""What the words of a text say: scores of words and classes, explained word by word, and texts drawn from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.families.base import Codes, Density, subtract_logs
from likely.statistics import Array, Assignment
from likely.text import Analyzer, WordStatistics

# No text that is drawn has more words on average: a broken file may say otherwise.
_LONGEST = 10_000_000


def present(texts: Any) -> NDArray[np.bool_]:
    """Say which texts of an Arrow array are there."""
    if not texts.null_count:
        return np.full(len(texts), True)
    return np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))


def of_present(texts: Any, assignment: Assignment) -> Assignment:
    """Return the assignment with no class for rows whose text is missing."""
    if not texts.null_count:
        return assignment
    return assignment._replace(codes=np.where(present(texts), assignment.codes, -1).astype(np.int32))


@dataclass(frozen=True, eq=False)
class BagDensity(Density):
    """Scores of words: a base for each class and group of words, and for pairs of a word and a class a difference.

    Parameters
    ----------
    analyzer, terms, orders
        what words are, those that are known, and 0 for single words, 1 for longer units
    base
        groups × classes
    groups
        the group of every word
    starts, codes, differences
        where the classes of each word begin, their places, and how much their score differs from the base
    common
        what is the same in all classes of each word, or None if scores only compare
    constant
        what is added for each class
    rule
        how counts are taken ("count", "once", "log"), the power of the length, the length of a usual text, and the norm
        that texts are scaled to, 0 if they are not
    length
        the mean number of words in a text of each class
    weights
        what the count of each word is multiplied with, or None if with nothing
    refinement
        words × classes: what else is added to the scores of words, if anything
    """

    analyzer: Analyzer
    terms: pa.Array
    orders: NDArray[np.uint8]
    base: Array
    groups: NDArray[np.uint8]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    differences: Array
    common: Array | None
    constant: Array
    rule: tuple[str, float, float, float]
    length: Array
    weights: Array | None = None
    refinement: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        analyzer: Analyzer,
        words: WordStatistics,
        base: Array,
        differences: Array,
        *,
        common: Array | None = None,
        constant: Array | None = None,
        rule: tuple[str, float, float, float],
        weights: Array | None = None,
    ) -> "BagDensity":
        """Return the density of a textbook's event."""
        weight, none = words.sums["weight"], np.zeros(len(words.terms), dtype=np.uint8)
        length = words.in_classes("count") / np.where(weight > 0, weight, 1.0)
        constant = np.zeros(len(weight)) if constant is None else constant
        base = np.ascontiguousarray(base[None, :])
        pairs = (words.starts, words.codes, differences)
        return cls(analyzer, words.terms, none, base, none, *pairs, common, constant, rule, length, weights)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.base.shape[1])

    @cached_property
    def _known(self) -> native.KnownWords:
        return self.analyzer.known(self.terms)

    @property
    def _words(self) -> NDArray[np.int64]:
        """The word of each pair."""
        return np.repeat(np.arange(len(self.terms)), np.diff(self.starts))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}

    def add_scores(self, block: Block, out: Array) -> None:
        """Add the scores of every row's words; a missing text adds nothing."""
        texts = block.texts()
        pairs = (self.starts, self.codes, self.differences)
        scores = (self.orders, self.base, self.groups, pairs, self.weights, self.refinement, self.rule)
        self.analyzer.add_scores(texts, self._known, *scores, out)
        if self.constant.any():
            out += self.constant if not texts.null_count else present(texts)[:, None] * self.constant

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's words."""
        self.add_scores(block, out)
        if self.common is not None:
            rows = self.analyzer.transform(block.texts(), self.terms)
            counts = np.ones(len(rows.counts)) if self.rule[0] == "once" else rows.counts
            out += np.bincount(rows.documents, counts * self.common[rows.units], len(out))[:, None]

    @property
    def no_density(self) -> str | None:
        """None if words have probabilities."""
        return None if self.common is not None else "use event='multinomial' and plain counts, without calibration"

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Return nothing: a text is no cell of a matrix. ``bags`` draws the words of texts."""
        return np.full((len(codes), 1), np.nan)

    def bags(self, codes: Codes, generator: "np.random.Generator") -> list[list[str]]:
        """Draw the words of a text of each class given, as many as a Poisson draw with the mean of its class."""
        terms = self.terms.to_pylist()
        drawn: list[list[str]] = [[] for _ in codes]
        for c in np.unique(codes):
            scores = self.class_scores(int(c))
            shares = np.exp(scores - scores.max(initial=0.0))
            if self.rule[0] == "once":
                for i in np.flatnonzero(codes == c):
                    drawn[i] = [terms[w] for w in np.flatnonzero(generator.random(len(terms)) < _expit(scores))]
                continue
            if self.length[c] > _LONGEST:
                raise ValueError(
                    f"expected to draw texts of at most {_LONGEST:,} words, got a model of {self.length[c]:.3g}"
                )
            below = np.cumsum(shares)
            for i in np.flatnonzero(codes == c):
                u = generator.random(generator.poisson(self.length[c])) * (below[-1] if len(below) else 0.0)
                drawn[i] = [terms[w] for w in np.minimum(np.searchsorted(below, u, side="right"), len(terms) - 1)]
        return drawn

    def class_scores(self, c: int) -> Array:
        """Return the score of every word in one class."""
        scores = self.base[self.groups, c] + (0.0 if self.common is None else self.common)
        own = self.codes == c
        scores[self._words[own]] += self.differences[own]
        return np.asarray(scores if self.refinement is None else scores + self.refinement[:, c])

    def word_odds(self, block: Block, one: Codes, other: Codes) -> tuple[NDArray[np.int64], Any, Any, Array]:
        """Return what every word of each row says: where rows begin, the words, their counts, and log-odds."""
        rows = self.analyzer.transform(block.texts(), self.terms)
        documents = rows.documents
        odds = self._pair_scores(rows.units, one[documents]) - self._pair_scores(rows.units, other[documents])
        how, power, usual, norm = self.rule
        if how != "once":
            taken = rows.counts if how == "count" else np.log1p(rows.counts)
            odds *= taken if self.weights is None else taken * self.weights[rows.units]
            if norm:
                odds *= norm / np.sqrt(np.bincount(documents, taken * taken, len(one)))[documents]
        if power:
            odds *= ((rows.lengths(self.orders) / usual) ** -power)[documents]
        return rows.starts, self.terms.take(rows.units), rows.counts, odds

    def _pair_scores(self, words: NDArray[Any], codes: Codes) -> Array:
        """Return the scores of pairs of a word and a class, but for what all classes share."""
        keys = self._words * self.classes + self.codes
        wanted = words.astype(np.int64) * self.classes + codes
        places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        known = keys[places] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        scores: Array = self.base[self.groups[words], codes]
        scores = scores if self.refinement is None else scores + self.refinement[words, codes]
        return np.where(known, scores + self.differences[places], scores) if len(keys) else scores

    def column(self, j: int) -> "BagDensity":
        """Return the density: there is one column."""
        return self

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Array, Array]:
        """Return what every text says for class ``one`` against ``other``; ``word_odds`` says it word by word."""
        scores = np.zeros((block.table.rows, self.classes))
        self.add_scores(block, scores)
        rows = np.arange(len(scores))
        return subtract_logs(scores[rows, one], scores[rows, other])[:, None], np.zeros(len(rows))


def _expit(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))
