"""Texts as bags of words: how words are counted, the events of the textbook and their pseudo-counts, and densities."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.families.base import Codes, Density, Family, on_one_line, subtract_logs
from likely.families.categorical import LOG_SMALLEST
from likely.statistics import Array, Assignment, Responsibilities, Statistics
from likely.text import SHARES, Analyzer, Measure, VocabularyLimits, WordStatistics, collect_words
from likely.text.words import PAIRS

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
    """

    counts: Literal["plain", "log"] = "plain"
    """how much a count x is: with "plain" x, with "log" log(1 + x)"""
    normalize: bool = False
    """whether texts are scaled to one length. That is such that all texts learned have together as many counts as
    they have words: so smoothing weighs as much as it does without. A text that is asked about is measured by the
    words in it that are known."""
    idf: bool = False
    """whether a word has the weight log((1 + N) / (1 + n)) + 1, if n of N texts have it; otherwise 1"""

    def __post_init__(self) -> None:
        if not isinstance(self.counts, str) or self.counts not in COUNTS:
            raise ValueError(f"expected counts to be one of {', '.join(map(repr, COUNTS))}, got {self.counts!r}")
        for name in ("normalize", "idf"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"expected {name} to be True or False, got {getattr(self, name)!r}")

    @property
    def raw_counts(self) -> bool:
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
        if self.raw_counts:
            return Counted(words, None, 0.0)
        sums = words.sums["count" if self.measure == SHARES else "share"]
        norm, weights = 0.0, None
        if self.normalize:
            whole = of_all.sums["share"].sum()
            norm = float(of_all.sums["count"].sum() / whole) if whole > 0 else 1.0
            sums = sums * norm if norm else sums
        if self.idf:
            n, found = words.sums["weight"].sum(), words.in_words("documents")
            weights = np.log(np.maximum((1 + n) / (1 + found), 1.0)) + 1
            sums = sums * weights[words.words]
        return Counted(replace(words, sums={**words.sums, "count": sums}), weights, norm)


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
            p = words.in_words("count") if background else np.diff(words.starts).astype(np.float64)
            p = p / p.sum() if p.any() else p
            every = strength(words, p) * p
        return cls(words, every, every[words.words], np.full(len(words.labels["class"]), every.sum()))

    @classmethod
    def _of_classes(cls, smoothing: Mapping[object, Mapping[str, float]], words: WordStatistics) -> "PseudoCounts":
        classes = words.labels["class"].tolist()
        unknown = [label for label in smoothing if label not in classes]
        if unknown:
            raise ValueError(
                f"expected smoothing of the classes {on_one_line(classes)}, got {unknown[0]!r}; in partial_fit, name "
                "labels yet to come by classes="
            )
        terms, k = words.terms.to_pylist(), len(classes)
        numbers = {term: i for i, term in enumerate(terms)}
        given = {
            numbers[term] * k + c: float(number)
            for c, label in enumerate(classes)
            for term, number in smoothing.get(label, {}).items()
            if term in numbers and number > 0
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


def strength(words: WordStatistics, background: Array) -> float:
    """Return the strength μ of a background that predicts every word best from all others, one left out at a time.

    That is where the derivative of Σ n log [(n − 1 + μp) / (N − 1 + μ)] is 0, found by halving.
    """
    n, p = words.sums["count"], background[words.words]
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


def _is_nested(smoothing: object) -> bool:
    """Say whether pseudo-counts are given class by class: then all values of the dict are dicts."""
    given = list(smoothing.values()) if isinstance(smoothing, Mapping) else []
    return bool(given) and all(isinstance(each, Mapping) for each in given)


def _is_counts(numbers: object) -> bool:
    return isinstance(numbers, Mapping) and all(map(_is_count, numbers.values()))


def _is_count(number: object) -> bool:
    return isinstance(number, int | float | np.integer | np.floating) and bool(0 <= number <= sys.float_info.max)


# No text that is drawn has more words on average: a broken file may say otherwise.
_LONGEST = 10_000_000


def present(texts: pa.Array) -> NDArray[np.bool_]:
    """Say which texts of an Arrow array are there."""
    if not texts.null_count:
        return np.full(len(texts), True)
    return np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))


def of_present(texts: pa.Array, assignment: Assignment) -> Assignment:
    """Return the assignment with no class for rows whose text is missing."""
    if not texts.null_count:
        return assignment
    return assignment._replace(codes=np.where(present(texts), assignment.codes, -1).astype(np.int32))


@dataclass(frozen=True, eq=False)
class BagDensity(Density):
    """Scores of words: a base for each class and group of words, and for pairs of a word and a class a difference."""

    analyzer: Analyzer
    terms: pa.Array
    orders: NDArray[np.uint8]
    """what words are, those that are known, and 0 for single words, 1 for longer units"""
    base: Array
    """groups × classes"""
    groups: NDArray[np.uint8]
    """the group of every word"""
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    differences: Array
    """where the classes of each word begin, their indices, and how much their score differs from the base"""
    common: Array | None
    """what is the same in all classes of each word, or None if scores only compare"""
    constant: Array
    """what is added for each class"""
    rule: tuple[str, float, float, float]
    """how counts are taken ("count", "once", "log"), the power of the length, the length of a usual text, and the norm
    that texts are scaled to, 0 if they are not"""
    length: Array
    """the mean number of words in a text of each class"""
    weights: Array | None = None
    """what the count of each word is multiplied with, or None if with nothing"""
    refinement: NDArray[np.float32] | None = None
    """words × classes: what else is added to the scores of words, if anything"""

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

    def __getstate__(self) -> dict[str, object]:
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
            if self.rule[0] == "once":
                probabilities = 1 / (1 + np.exp(-scores))
                for i in np.flatnonzero(codes == c):
                    drawn[i] = [terms[w] for w in np.flatnonzero(generator.random(len(terms)) < probabilities)]
                continue
            if self.length[c] > _LONGEST:
                raise ValueError(
                    f"expected to draw texts of at most {_LONGEST:,} words, got a model of {self.length[c]:.3g}"
                )
            below = np.cumsum(np.exp(scores - scores.max(initial=0.0)))
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

    def word_odds(
        self, block: Block, one: Codes, other: Codes
    ) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.int32], Array]:
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

    def _pair_scores(self, words: NDArray[np.int32], codes: Codes) -> Array:
        """Return the scores of pairs of a word and a class, but for what all classes share."""
        keys = self._words * self.classes + self.codes
        wanted = words.astype(np.int64) * self.classes + codes
        found = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        known = keys[found] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        scores: Array = self.base[self.groups[words], codes]
        scores = scores if self.refinement is None else scores + self.refinement[words, codes]
        return np.where(known, scores + self.differences[found], scores) if len(keys) else scores

    def column(self, j: int) -> "BagDensity":
        """Return the density: there is one column."""
        return self

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Array, Array]:
        """Return what every text says for class ``one`` against ``other``; ``word_odds`` says it word by word."""
        scores = np.zeros((block.table.rows, self.classes))
        self.add_scores(block, scores)
        rows = np.arange(len(scores))
        return subtract_logs(scores[rows, one], scores[rows, other])[:, None], np.zeros(len(rows))


EVENTS = ("multinomial", "complement", "bernoulli")


@dataclass(frozen=True)
class Bag(Family):
    """A column of texts as bags of words."""

    analyzer: Analyzer = field(default_factory=Analyzer)
    """what the words of a text are"""
    event: Literal["multinomial", "complement", "bernoulli"] = "multinomial"
    """how texts are drawn: "multinomial", word by word; "bernoulli", each word is in a text or not; "complement": a
    text is scored by how little it is like the other classes"""
    smoothing: Any = 1.0
    """λ, a count that every word is imagined to have in every class: a number, a dict from words to numbers (0 for
    others), a dict from classes to such dicts, or a background: "collection", in proportion to the word's count in
    all classes, or "kneser-ney", to the number of classes that have it, with the strength that predicts each word
    best from all others, all of them counted as they come"""
    counting: Counting = field(default_factory=Counting)
    """what the words of a text are taken for"""
    kept: VocabularyLimits = field(default_factory=VocabularyLimits)
    """which words say something"""

    name = "bag of words"
    expects = "text"
    least_documents = 1
    """Words of fewer documents say nothing, unless ``min_df`` says otherwise."""

    def __post_init__(self) -> None:
        if not isinstance(self.event, str) or self.event not in EVENTS:
            raise ValueError(f"expected the event to be one of {', '.join(map(repr, EVENTS))}, got {self.event!r}")
        check_smoothing(self.smoothing, only_number=self.event == "bernoulli")
        if self.event == "bernoulli" and not self.counting.raw_counts:
            raise ValueError(
                "expected counts='plain' without normalize and idf, as event='bernoulli' only asks whether a word is "
                f"there, got {self.counting}"
            )

    def _collect(self, block: Block, assignment: Assignment) -> WordStatistics:
        texts = block.texts()
        return collect_words(self.analyzer, texts, of_present(texts, assignment), self.counting.measure)

    def _collect_responsibilities(self, block: Block, r: Responsibilities, given: Density) -> WordStatistics:
        """Read every text once: as a class of its own, for which the classes are responsible."""
        rows = np.arange(len(r.values), dtype=np.int32)
        weights = r.values if r.weights is None else r.values * r.weights[:, None]
        return self._collect(block, Assignment(rows, rows)).of_responsibilities(weights, r.classes)

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of words in every class; less one if drawn one by one: probabilities sum to 1."""
        assert isinstance(density, BagDensity)
        words = len(density.terms)
        return classes * (words if self.event == "bernoulli" else max(words - 1, 0))

    def solve(self, statistics: Statistics) -> BagDensity:
        """Return the scores of every word and class."""
        assert isinstance(statistics, WordStatistics)
        found = {"multinomial": self._multinomial, "complement": self._complement, "bernoulli": self._bernoulli}
        pseudo = PseudoCounts.of(self.smoothing, self.kept.of(statistics))
        return found[self.event](self.counting.counted(pseudo.words, statistics), pseudo)

    def _multinomial(self, counted: Counted, pseudo: PseudoCounts) -> BagDensity:
        words = counted.words
        total = words.in_classes("count") + pseudo.totals
        unseen = _log(pseudo.every)
        differences = _log(words.sums["count"] + pseudo.own) - unseen[words.words]
        common = unseen if self.counting.raw_counts else None
        return self._density(counted, -_log(np.where(total > 0, total, 1.0)), differences, common)

    def _complement(self, counted: Counted, pseudo: PseudoCounts) -> BagDensity:
        words = counted.words
        of_all = words.in_words("count")
        total = _of_others(words.in_classes("count")) + pseudo.totals
        others = np.maximum(of_all[words.words] - words.sums["count"], 0.0)
        differences = _log(of_all + pseudo.every)[words.words] - _log(others + pseudo.own)
        return self._density(counted, _log(total), differences)

    def _bernoulli(self, counted: Counted, pseudo: PseudoCounts) -> BagDensity:
        words = counted.words
        codes, documents, weight = words.codes, words.sums["documents"], words.sums["weight"]
        one = float(self.smoothing)
        yes, no = _log(documents + one), _log(np.maximum(weight[codes] - documents, 0.0) + one)
        absent = _log(weight + one)
        differences = yes - no - (_log(np.array(one)) - absent[codes])
        # A text without words: what it lacks says something, too.
        never = len(words.terms) * (absent - _log(weight + 2 * one))
        constant = never + np.bincount(codes, no - absent[codes], len(weight))
        common = np.full(len(words.terms), _log(np.array(one)))
        return self._density(counted, -absent, differences, common, constant, "once")

    def _density(
        self,
        counted: Counted,
        base: Array,
        differences: Array,
        common: Array | None = None,
        constant: Array | None = None,
        rule: str | None = None,
    ) -> BagDensity:
        words, weight = counted.words, counted.words.sums["weight"]
        none = np.zeros(len(words.terms), dtype=np.uint8)
        return BagDensity(
            self.analyzer,
            words.terms,
            none,
            np.ascontiguousarray(base[None, :]),
            none,
            words.starts,
            words.codes,
            differences,
            common,
            np.zeros(len(weight)) if constant is None else constant,
            (rule or self.counting.rule, 0.0, 1.0, counted.norm),
            words.in_classes("count") / np.where(weight > 0, weight, 1.0),
            counted.weights,
        )


def _of_others(counts: Array) -> Array:
    """Return the sum over all other classes: nothing is subtracted, as rounding would leave something of nothing.

    >>> _of_others(np.array([0.1, 0.2, 0.0])).tolist(), _of_others(np.array([0.3])).tolist()
    ([0.2, 0.1, 0.30000000000000004], [0.0])
    """
    none = np.zeros(1)
    before, after = np.cumsum(counts[:-1]), np.cumsum(counts[:0:-1])[::-1]
    return np.asarray(np.concatenate([none, before]) + np.concatenate([after, none]))


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(x), LOG_SMALLEST)
