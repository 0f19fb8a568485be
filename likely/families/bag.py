"""Texts as bags of words: the events of the textbook, smoothed by pseudo-counts."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from likely.data.table import Block
from likely.families.bag_density import BagDensity, of_present
from likely.families.base import Density, Family
from likely.families.categorical import LOG_SMALLEST
from likely.families.counting import Counted, Counting
from likely.families.pseudo_counts import PseudoCounts, check_smoothing
from likely.statistics import Array, Assignment, Shared, Statistics
from likely.text import Analyzer, VocabularyLimits, WordStatistics, collect_words

EVENTS = ("multinomial", "complement", "bernoulli")


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
        others), a dict from classes to such dicts, or a background: "collection", in proportion to the word's count in
        all classes, or "kneser-ney", to the number of classes that have it, with the strength that predicts each word
        best from all others, all of them counted as they come
    counting
        what the words of a text are taken for
    kept
        which words say something
    """

    analyzer: Analyzer = field(default_factory=Analyzer)
    event: Literal["multinomial", "complement", "bernoulli"] = "multinomial"
    smoothing: Any = 1.0
    counting: Counting = field(default_factory=Counting)
    kept: VocabularyLimits = field(default_factory=VocabularyLimits)

    name = "bag of words"
    expects = "text"
    least_documents = 1
    """Words of fewer documents say nothing, unless ``min_df`` says otherwise."""

    def __post_init__(self) -> None:
        if not isinstance(self.event, str) or self.event not in EVENTS:
            raise ValueError(f"expected the event to be one of {', '.join(map(repr, EVENTS))}, got {self.event!r}")
        check_smoothing(self.smoothing, only_number=self.event == "bernoulli")
        if self.event == "bernoulli" and not self.counting.as_they_come:
            raise ValueError(
                "expected counts='plain' without normalize and idf, as event='bernoulli' only asks whether a word is "
                f"there, got {self.counting}"
            )

    def _collect(self, block: Block, assignment: Assignment) -> WordStatistics:
        texts = block.texts()
        return collect_words(self.analyzer, texts, of_present(texts, assignment), self.counting.measure)

    def _collect_shared(self, block: Block, shared: Shared, given: Density) -> WordStatistics:
        """Read every text once: as a class of its own, of which the classes have shares."""
        rows = np.arange(len(shared.shares), dtype=np.int32)
        shares = shared.shares if shared.weights is None else shared.shares * shared.weights[:, None]
        return self._collect(block, Assignment(rows, rows)).of_responsibilities(shares, shared.classes)

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of words in every class; less one where they are drawn one by one: shares sum to 1."""
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
        common = unseen if self.counting.as_they_come else None
        return self._density(counted, -_log(np.where(total > 0, total, 1.0)), differences, common)

    def _complement(self, counted: Counted, pseudo: PseudoCounts) -> BagDensity:
        words = counted.words
        of_all = words.in_words("count")
        total = _of_others(words.in_classes("count")) + pseudo.totals
        others = np.maximum(of_all[words.words] - words.sums["count"], 0.0)
        differences = _log(of_all + pseudo.every)[words.words] - _log(others + pseudo.own)
        return self._density(counted, _log(total), differences)

    def _density(self, counted: Counted, base: Array, differences: Array, common: Array | None = None) -> BagDensity:
        rule = (self.counting.rule, 0.0, 1.0, counted.norm)
        return BagDensity.of(
            self.analyzer, counted.words, base, differences, common=common, rule=rule, weights=counted.weights
        )

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
        rule = ("once", 0.0, 1.0, 0.0)
        return BagDensity.of(self.analyzer, words, -absent, differences, common=common, constant=constant, rule=rule)


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
