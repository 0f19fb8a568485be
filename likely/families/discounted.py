"""Texts by the evidence of their words, each group of words discounted by an exponent, and refined word by word."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.families.bag import Bag, BagDensity
from likely.lazy import pa, pc
from likely.statistics import Array, Labels, Statistics, class_proportions, distinct
from likely.text import VocabularyLimits, WordStatistics, checked_terms, kept_numbers, packed_terms


@dataclass(frozen=True, eq=False)
class Refinement:
    """Scores that are added to those of words, whatever numbers the words come to have.

    Examples
    --------
    >>> found = Refinement.of(pa.array(["a", "b"]), np.array([[1, 2], [3, 4]], dtype=np.float32))
    >>> found.table(pa.array(["c", "b"]), np.array([1, -1, 0])).tolist()
    [[0.0, 0.0, 0.0], [4.0, 0.0, 3.0]]
    """

    offsets: Any
    characters: Any
    """where each word begins and the last one ends, and the bytes of all words"""
    scores: Any
    """words × classes"""

    def __post_init__(self) -> None:
        scores = self.scores
        table = isinstance(scores, np.ndarray) and scores.dtype == np.float32 and scores.ndim == 2
        if not table or not np.isfinite(scores).all():
            raise ValueError("expected a table of finite scores of words and classes, got another")
        if len(scores) != len(self.terms):
            raise ValueError(f"expected scores of {len(self.terms)} words, got {len(scores)}")

    @classmethod
    def of(cls, terms: pa.Array, scores: NDArray[np.float32]) -> "Refinement":
        """Return the scores of these words."""
        return cls(*packed_terms(terms), scores)

    @cached_property
    def terms(self) -> pa.Array:
        """The words."""
        return checked_terms(self.offsets, self.characters)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "terms"}

    def table(self, terms: pa.Array, indices: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return scores of other words, and of classes of these indices; 0 where a word or a class is new."""
        rows: NDArray[np.int32] = (
            pc.index_in(terms.cast(pa.large_string()), value_set=self.terms).fill_null(-1).to_numpy()
        )
        width = self.scores.shape[1]
        if np.array_equal(rows, np.arange(len(self.scores))) and np.array_equal(indices, np.arange(width)):
            return self.scores  # type: ignore[no-any-return]
        found = np.zeros((len(rows), len(indices)), dtype=np.float32)
        known, classes = np.flatnonzero(rows >= 0), np.flatnonzero(indices >= 0)
        found[np.ix_(known, classes)] = self.scores[np.ix_(rows[known], indices[classes])]
        return found


# No text has more words than e to this power; what a broken file says otherwise must not become infinite.
_LARGEST_LOG = 50.0


@dataclass(frozen=True, eq=False)
class Discounted(Bag):
    """A column of texts as evidence of words: Σ exponent of the word's group × log (count + 1) × evidence."""

    exponents: Any = field(default_factory=lambda: np.ones(12))
    """one for each group of words, for a class, and then for each group against it"""
    power: float = 0.0
    usual: float = 1.0
    """evidence is divided by the power of the length of a text, its number of different single words, over a usual
    one"""
    prior: float = 1.0
    """the exponent of p(class)"""
    bias: Any = field(default_factory=lambda: np.zeros(0))
    labels: Any = field(default_factory=lambda: np.zeros(0))
    """what is added to the scores of the classes of these labels"""
    edges: Any = field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    """of single words, and of longer units: where groups are cut by how much words tell of the class"""
    refinement: Refinement | None = None
    """what single words say beside that, of the classes of the labels"""
    guessed: float = 0.0
    """the weight of texts whose classes were guessed"""

    name = "discounted words"
    calibrated = True
    least_documents = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        edges: Any = self.edges if isinstance(self.edges, tuple) and len(self.edges) == 2 else (None, None)
        arrays = (self.exponents, self.bias, *edges)
        single = (self.power, self.prior, self.guessed)
        numbers = all(_is_numbers(array) for array in arrays) and all(map(np.isfinite, single))
        if not numbers or not 0 < self.usual < np.inf or len(edges[0]) != len(edges[1]):
            raise ValueError("expected exponents, biases and edges as finite numbers, got others")
        groups = 2 * (1 + 2 * (len(edges[0]) + 1))
        labels = self.labels
        fits = isinstance(labels, np.ndarray) and labels.ndim == 1 and np.array_equal(distinct(labels), labels)
        if not self.counting.raw_counts:
            raise ValueError(f"expected plain counts of discounted words, got {self.counting}")
        if len(self.exponents) != 2 * groups or not fits or len(self.bias) != len(labels):
            raise ValueError("expected an exponent for each group of words and a bias for each class, got others")
        width = len(labels) if self.refinement is None else self.refinement.scores.shape[1]
        if width != len(labels):
            raise ValueError(f"expected scores of words in {len(labels)} classes, got {width}")

    def solve(self, statistics: Statistics) -> BagDensity:
        """Return the scores of every word and class."""
        assert isinstance(statistics, WordStatistics)
        kept = Evidence.of(statistics, self.kept)
        information, documents, evidence, against = kept.said
        groups = native.word_groups(kept.orders, documents, information, self.edges)
        forward, backward = np.split(self.exponents, 2)
        own = groups[kept.words.words]
        exponents = np.where(evidence > 0, forward[own], backward[own])
        differences = exponents * evidence - backward[own] * against[kept.words.codes]
        indices = self._indices(statistics.labels["class"])
        bias = np.append(self.bias, 0.0)[indices]  # of a class of which nothing was known: 0
        constant = (self.prior - 1) * np.log(class_proportions(kept.weight)) + bias
        return BagDensity(
            self.analyzer,
            kept.words.terms,
            kept.orders,
            np.outer(backward, against),
            groups,
            kept.words.starts,
            kept.words.codes,
            differences,
            None,
            constant,
            ("log", self.power, self.usual, 0.0),
            np.zeros(len(constant)),
            refinement=None if self.refinement is None else self.refinement.table(kept.words.terms, indices),
        )

    def tempered(self, temperature: float) -> "Discounted":
        """Return the family whose scores, of words and classes, are multiplied with a number."""
        refinement = self.refinement
        if refinement is not None:
            refinement = replace(refinement, scores=refinement.scores * np.float32(temperature))
        return replace(
            self,
            exponents=self.exponents * temperature,
            prior=self.prior * temperature,
            bias=self.bias * temperature,
            refinement=refinement,
        )

    def _indices(self, classes: Labels) -> NDArray[np.int64]:
        """Return where classes are among the labels, −1 for those that are not."""
        if not len(self.labels):
            return np.full(len(classes), -1)
        indices = np.minimum(np.searchsorted(self.labels, classes), len(self.labels) - 1)
        return np.where(self.labels[indices] == classes, indices, -1)


def _is_numbers(array: Any) -> bool:
    fits = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == 1
    return bool(fits and np.isfinite(array).all())


@dataclass(frozen=True, eq=False)
class Evidence:
    """Words that have something to say, and what the core takes to find out what it is."""

    words: WordStatistics
    numbers: NDArray[np.int32]
    """the index of each word of the statistics among them, −1 if it is left out"""
    orders: NDArray[np.uint8]
    scale: float
    """the size of a usual text: fractions times this are amounts"""

    @classmethod
    def of(cls, statistics: WordStatistics, rule: VocabularyLimits) -> "Evidence":
        """Leave out the words of too few documents, and those that are not kept."""
        before = _FOUND.get(statistics)
        if before is not None and before[0] == rule:
            return before[1]
        chosen = rule.chosen(statistics, least=Discounted.least_documents)
        kept = statistics.of_words(chosen)
        weight = statistics.sums["weight"].sum()
        mean = statistics.sums["log size"].sum() / weight if weight > 0 else 0.0
        scale = float(np.exp(np.clip(mean, -_LARGEST_LOG, _LARGEST_LOG)))
        found = cls(kept, kept_numbers(chosen), native.term_orders(kept.buffers), scale)
        _FOUND[statistics] = rule, found
        return found

    @cached_property
    def said(self) -> tuple[Array, Array, Array, Array]:
        """How much each word tells, its documents, its evidence for each class that has it, and what others lack."""
        return native.word_evidence(self.arrays, self.weight)

    @property
    def weight(self) -> Array:
        """The weight of the documents of every class."""
        return self.words.sums["weight"]

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], Array, Array, NDArray[np.uint8]]:
        """The words as the core takes them."""
        sums = self.words.sums
        documents = np.ascontiguousarray(sums["documents"])
        return self.words.starts, self.words.codes, sums["share"] * self.scale, documents, self.orders


# Fitting the exponents and solving for scores ask the same of the same statistics.
_FOUND: WeakKeyDictionary[WordStatistics, tuple[VocabularyLimits, Evidence]] = WeakKeyDictionary()
