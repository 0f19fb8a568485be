"""Fitting the exponents of discounted words: texts are scored as if their fold had not been learned.

Sums are of all texts, whatever their number. A fold's own sums are taken away from those of the few words that its
texts have, so that folds cost next to nothing.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.distinct import distinct_texts
from likely.exponents import Exponents, Scored
from likely.families.bag import Bag
from likely.families.bag_density import of_present, present
from likely.families.discounted import Discounted, Evidence
from likely.learn import deal
from likely.statistics import Array, Assignment
from likely.text import Rows, WordStatistics, collect_sized

FOLDS = 10
ENOUGH = 6_000
"""So many texts settle the exponents."""
_CUTS = 8
# Words of fewer documents are a group of their own, which no edge cuts.
_FREQUENT = 4.0
# So many cells of evidence are held at a time; of each row and class there are so many.
_TILE = 1 << 26
_WIDTH = 4 * (1 + 2 * _CUTS)


class Dealt(NamedTuple):
    """Texts with their classes, sizes (sums of log (count + 1)) and folds; and their counts, if these are known."""

    texts: Any
    assignment: Assignment
    sizes: Array
    folds: NDArray[np.int64]
    rows: Rows | None = None

    def taken(self, rows: NDArray[Any]) -> "Dealt":
        """Return some of the texts."""
        counts = None if self.rows is None else self.rows.taken(rows)
        return Dealt(self.texts.take(rows), self.assignment.taken(rows), self.sizes[rows], self.folds[rows], counts)


class Fitted(NamedTuple):
    """A family of discounted words, and log p(class) of texts as if their fold had not been learned."""

    family: Discounted
    log_posteriors: Array


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Words of all texts, and how they are grouped: what it takes to score texts without their fold."""

    family: Bag
    evidence: Evidence
    edges: tuple[Array, Array]

    @classmethod
    def of(cls, family: Bag, statistics: WordStatistics) -> "OutOfFold":
        """Group the words of all texts."""
        kept = Evidence.of(statistics, family.kept)
        told, documents, *_ = kept.said
        return cls(family, kept, (_edges(told, documents, kept.orders == 0), _edges(told, documents, kept.orders == 1)))

    def scored(self, dealt: Dealt) -> Scored:
        """Return what the words of texts, sorted by their folds, say without their fold; and lengths, in logarithms."""
        kept = self.evidence
        _, codes, weights = dealt.assignment
        if dealt.rows is None:
            rows = self.family.analyzer.transform(dealt.texts, kept.words.terms)
        else:
            rows = dealt.rows.renumbered(kept.numbers)
        weighed = np.ones(len(codes)) if weights is None else weights
        learned = np.where(present(dealt.texts), weighed, 0.0)
        scales = np.where(dealt.sizes > 0, kept.scale / np.where(dealt.sizes > 0, dealt.sizes, 1.0), 0.0)
        given = (rows.starts, rows.units, np.log1p(rows.counts).astype(np.float32), codes, learned, scales)
        last = int(dealt.folds.max(initial=0)) + 1
        ends = np.searchsorted(dealt.folds, np.arange(last + 1)).tolist()
        evidence, shares = native.evidence_out_of_fold(kept.arrays, kept.weight, given, ends, self.edges)
        lengths = np.log(rows.lengths(kept.orders))
        return Scored(evidence, lengths, np.log(shares)[dealt.folds], codes.astype(np.int64), weighed)

    def fitted(self, dealt: Dealt) -> tuple[Exponents, float]:
        """Fit exponents on texts sorted by their folds. Returns them, and the logarithm of the usual length."""
        scored = self.scored(dealt)
        usual = float(scored.lengths.mean()) if len(scored.lengths) else 0.0
        return Exponents.fitted(scored._replace(lengths=scored.lengths - usual)), usual


def fit_discounted(family: Bag, statistics: WordStatistics, dealt: Dealt, *, score: bool = False) -> Fitted:
    """Fit exponents on some of the texts whose statistics are given; ``score`` all of these out of fold, if asked."""
    words = OutOfFold.of(family, statistics)
    order = np.argsort(dealt.folds, kind="stable")
    k = len(dealt.assignment.classes)
    every = max(-(-len(order) // _enough(k)), 1)
    found, usual = words.fitted(dealt.taken(order[::every]))
    settled = Discounted(
        family.analyzer,
        kept=family.kept,
        exponents=found.groups,
        power=found.power,
        usual=float(np.exp(usual)),
        prior=found.prior,
        bias=found.bias,
        labels=dealt.assignment.classes,
        edges=words.edges,
    )
    out = np.empty((len(order) if score else 0, k))
    step = max(_TILE // (k * len(found.groups)), 1)
    for first in range(0, len(out), step):
        rows = order[first : first + step]
        scored = words.scored(dealt.taken(rows))
        out[rows] = found.log_posterior(scored._replace(lengths=scored.lengths - usual))
        missing = ~present(dealt.texts.take(rows))
        out[rows[missing]] = scored.log_shares[missing]
    return Fitted(settled, out)


def collect_discounted(family: Bag, texts: Any, assignment: Assignment, *, seed: int = 0) -> tuple[Discounted, Any]:
    """Collect the statistics of texts, and fit exponents on some of them."""
    assignment = of_present(texts, assignment)
    # Equal texts are one text of more weight, in an order that depends on nothing but the texts.
    numbers, weights = distinct_texts(texts, assignment, seed)
    some = _some(assignment.codes[numbers], len(assignment.classes))
    numbers, weights = numbers[some], weights[some]
    statistics, sizes, rows = collect_sized(family.analyzer, texts, assignment, numbers)
    chosen = assignment._replace(weights=None).taken(numbers)._replace(weights=weights)
    rows = rows.taken(np.searchsorted(np.sort(numbers), numbers))
    sample = Dealt(texts.take(numbers), chosen, sizes[numbers], deal(chosen.codes, FOLDS), rows)
    return fit_discounted(family, statistics, sample).family, statistics


def _edges(told: Array, documents: Array, chosen: NDArray[np.bool_]) -> Array:
    """Return where to cut words by how much they tell, so that each part has as many words in texts."""
    words = np.flatnonzero(chosen & (documents >= _FREQUENT))
    order = words[np.argsort(told[words], kind="stable")]
    below = np.cumsum(documents[order])
    if len(below) == 0:
        return np.zeros(_CUTS - 1)
    wanted = below[-1] * np.arange(1, _CUTS) / _CUTS
    return np.asarray(told[order[np.minimum(np.searchsorted(below, wanted), len(below) - 1)]])


def _enough(classes: int) -> int:
    """Return how many texts settle the exponents: fewer if there are so many classes that room would lack."""
    return min(ENOUGH, max(_TILE // (classes * _WIDTH), 1))


def _some(codes: NDArray[np.int32], classes: int) -> NDArray[np.int64]:
    """Return the numbers of about enough rows, which stand class by class: evenly, and one at least of each class."""
    most = _enough(classes)
    if len(codes) <= most:
        return np.arange(len(codes))
    evenly = (np.arange(most) * (len(codes) / most)).astype(np.int64)
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return np.union1d(evenly, first if len(first) <= most else first[:0])
