"""Texts by the evidence of their words, each group of words discounted by an exponent of its own."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.families.bag import Bag
from likely.families.bag_density import BagDensity
from likely.families.refinement import Refinement
from likely.statistics import Array, Labels, Statistics, class_shares, distinct
from likely.text import VocabularyLimits, WordStatistics, kept_numbers

# No text has more words than e to this power; what a broken file says otherwise must not become infinite.
_LARGEST_LOG = 50.0


@dataclass(frozen=True, eq=False)
class Discounted(Bag):
    """A column of texts as evidence of words: Σ exponent of the word's group × log (count + 1) × evidence.

    Parameters
    ----------
    exponents
        one for each group of words, for a class, and then for each group against it
    power, usual
        evidence is divided by the power of the length of a text, its number of different single words, over a usual one
    prior
        the exponent of p(class)
    bias, labels
        what is added to the scores of the classes of these labels
    edges
        of single words, and of longer units: where groups are cut by how much words tell of the class
    refinement
        what single words say beside that, of the classes of the labels
    guessed
        the weight of texts whose classes were guessed
    """

    exponents: Any = field(default_factory=lambda: np.ones(12))
    power: float = 0.0
    usual: float = 1.0
    prior: float = 1.0
    bias: Any = field(default_factory=lambda: np.zeros(0))
    labels: Any = field(default_factory=lambda: np.zeros(0))
    edges: Any = field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    refinement: Refinement | None = None
    guessed: float = 0.0

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
        if not self.counting.as_they_come:
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
        told, documents, evidence, against = kept.said
        groups = native.word_groups(kept.orders, documents, told, self.edges)
        forward, backward = np.split(self.exponents, 2)
        own = groups[kept.words.words]
        exponents = np.where(evidence > 0, forward[own], backward[own])
        differences = exponents * evidence - backward[own] * against[kept.words.codes]
        places = self._places(statistics.labels["class"])
        bias = np.append(self.bias, 0.0)[places]  # of a class of which nothing was known: 0
        constant = (self.prior - 1) * np.log(class_shares(kept.weight)) + bias
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
            refinement=None if self.refinement is None else self.refinement.table(kept.words.terms, places),
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

    def _places(self, classes: Labels) -> NDArray[np.int64]:
        """Return where classes are among the labels, −1 for those that are not."""
        if not len(self.labels):
            return np.full(len(classes), -1)
        places = np.minimum(np.searchsorted(self.labels, classes), len(self.labels) - 1)
        return np.where(self.labels[places] == classes, places, -1)


def _is_numbers(array: Any) -> bool:
    fits = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == 1
    return bool(fits and np.isfinite(array).all())


@dataclass(frozen=True, eq=False)
class Evidence:
    """Words that have something to say, and what the core takes to find out what it is."""

    words: WordStatistics
    numbers: NDArray[np.int32]
    """the place of each word of the statistics among them, −1 if it is left out"""
    orders: NDArray[np.uint8]
    scale: float
    """the size of a usual text: shares times this are amounts"""

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
    def arrays(self) -> Any:
        """The words as the core takes them."""
        sums = self.words.sums
        documents = np.ascontiguousarray(sums["documents"])
        return self.words.starts, self.words.codes, sums["share"] * self.scale, documents, self.orders


# Fitting the exponents and solving for scores ask the same of the same statistics.
_FOUND: WeakKeyDictionary[WordStatistics, tuple[VocabularyLimits, Evidence]] = WeakKeyDictionary()
