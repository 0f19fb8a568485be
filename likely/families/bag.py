"""Texts as bags of words: the events of the textbook, smoothed by pseudo-counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.families.base import Codes, Density, Family, on_one_line, subtract_logs
from likely.families.words import LOG_SMALLEST
from likely.statistics import Array, Assignment, Statistics
from likely.table import Block
from likely.text import Analyzer, WordStatistics, collect_words

EVENTS = ("multinomial", "complement", "bernoulli")
BACKGROUNDS = ("collection", "kneser-ney")


@dataclass(frozen=True)
class Bag(Family):
    """A column of texts as bags of words.

    Parameters
    ----------
    analyzer
        what the words of a text are
    event
        "multinomial": words are drawn one by one; "bernoulli": each word is in a text or not; "complement": a text is
        scored by how little it is like the other classes
    smoothing
        λ, a count that every word is imagined to have in every class: a number, a dict from words to numbers (0 for
        others), or a background: "collection", in proportion to the word's count in all classes, or "kneser-ney", to
        the number of classes that have it, with the strength that predicts each word best from all others
    """

    analyzer: Analyzer = field(default_factory=Analyzer)
    event: Literal["multinomial", "complement", "bernoulli"] = "multinomial"
    smoothing: Any = 1.0

    name = "bag of words"
    expects = "text"

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise ValueError(f"expected the event to be one of {', '.join(map(repr, EVENTS))}, got {self.event!r}")
        given = self.smoothing
        several = isinstance(given, Mapping) and all(_is_count(number) for number in given.values())
        background = isinstance(given, str) and given in BACKGROUNDS
        if not _is_count(given) and (self.event == "bernoulli" or not (several or background)):
            more = (
                ""
                if self.event == "bernoulli"
                else (f", a dict from words to numbers, or a background, {' or '.join(map(repr, BACKGROUNDS))}")
            )
            raise ValueError(f"expected smoothing of 0 or more{more}, got {on_one_line(given)}")

    def _collect(self, block: Block, assignment: Assignment) -> WordStatistics:
        return collect_words(self.analyzer, block.texts(), of_present(block.texts(), assignment))

    def solve(self, statistics: Statistics) -> "BagDensity":
        """Return the scores of every word and class."""
        assert isinstance(statistics, WordStatistics)
        found = {"multinomial": self._multinomial, "complement": self._complement, "bernoulli": self._bernoulli}
        return found[self.event](statistics)

    def _pseudo_counts(self, words: WordStatistics) -> Array:
        """Return λ of every word."""
        if isinstance(self.smoothing, Mapping):
            return np.array([float(self.smoothing.get(term, 0.0)) for term in words.terms.to_pylist()])
        if not isinstance(self.smoothing, str):
            return np.full(len(words.terms), float(self.smoothing))
        shares = words.in_words("count") if self.smoothing == "collection" else np.diff(words.starts).astype(np.float64)
        shares = shares / shares.sum() if shares.any() else shares
        return _strength(words, shares) * shares

    def _multinomial(self, words: WordStatistics) -> "BagDensity":
        smoothing = self._pseudo_counts(words)
        total = words.in_classes("count") + smoothing.sum()
        common = _log(smoothing)
        differences = _log(words.sums["count"] + smoothing[words.words]) - common[words.words]
        return BagDensity.of(self, words, -_log(np.where(total > 0, total, 1.0)), differences, common=common)

    def _complement(self, words: WordStatistics) -> "BagDensity":
        smoothing, of_all = self._pseudo_counts(words), words.in_words("count")
        total = of_all.sum() - words.in_classes("count") + smoothing.sum()
        own, pairs = smoothing[words.words], of_all[words.words]
        differences = _log(pairs + own) - _log(np.maximum(pairs - words.sums["count"], 0.0) + own)
        return BagDensity.of(self, words, _log(total), differences)

    def _bernoulli(self, words: WordStatistics) -> "BagDensity":
        codes, documents, weight = words.codes, words.sums["documents"], words.sums["weight"]
        one = float(self.smoothing)
        yes, no = _log(documents + one), _log(np.maximum(weight[codes] - documents, 0.0) + one)
        absent = _log(weight + one)
        differences = yes - no - (_log(np.array(one)) - absent[codes])
        # A text without words: what it lacks says something, too.
        never = len(words.terms) * (absent - _log(weight + 2 * one))
        constant = never + np.bincount(codes, no - absent[codes], len(weight))
        common = np.full(len(words.terms), _log(np.array(one)))
        return BagDensity.of(self, words, -absent, differences, common=common, constant=constant, rule="once")


def _is_count(number: Any) -> bool:
    return isinstance(number, int | float | np.integer | np.floating) and 0 <= float(number) < np.inf


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(x), LOG_SMALLEST)


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


def _strength(words: WordStatistics, shares: Array) -> float:
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
        how counts are taken ("count", "once", "log"), the power of the length, and the length of a usual text
    length
        the mean number of words in a text of each class
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
    rule: tuple[str, float, float]
    length: Array
    refinement: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        family: Bag,
        words: WordStatistics,
        base: Array,
        differences: Array,
        *,
        common: Array | None = None,
        constant: Array | None = None,
        rule: str = "count",
    ) -> "BagDensity":
        """Return the density of a textbook's event."""
        weight, none = words.sums["weight"], np.zeros(len(words.terms), dtype=np.uint8)
        length = words.in_classes("count") / np.where(weight > 0, weight, 1.0)
        constant = np.zeros(len(weight)) if constant is None else constant
        base = np.ascontiguousarray(base[None, :])
        pairs = (words.starts, words.codes, differences)
        return cls(family.analyzer, words.terms, none, base, none, *pairs, common, constant, (rule, 0.0, 1.0), length)

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
        scores = (self.base, self.groups, (self.starts, self.codes, self.differences), self.refinement)
        self.analyzer.add_scores(texts, self._known, self.orders, *scores, self.rule, out)
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
        return None if self.common is not None else "use smoothing and event='multinomial', without calibration"

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
        how, power, usual = self.rule
        if how != "once":
            odds *= rows.counts if how == "count" else np.log1p(rows.counts)
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
