"""Fitting discounted words: texts are scored without their fold's sums, and exponents fitted on these scores.

Sums are of all texts, whatever their number. A fold's own sums are taken away from those of the few words that its
texts have, so that folds cost next to nothing.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.data.distinct import sample_texts
from likely.data.table import SparseRows
from likely.ensemble.exponents import Evidence as GroupEvidence
from likely.ensemble.exponents import Exponents, Scored
from likely.ensemble.refining import BaseLogits, lbfgs, newton
from likely.families.bag import Bag, of_present, present
from likely.families.discounted import Discounted, Evidence, Refinement
from likely.learn.one_pass import assign_folds
from likely.statistics import Array, Assignment, Labels, class_weights, union
from likely.text import TermCounts, WordStatistics, as_texts, collect_sized, kept_numbers

FOLDS = 10
ENOUGH = 6_000
"""So many texts are enough to fit the exponents on."""
MOST_SCORES = 1 << 25
"""So many scores of words and classes are kept at most (128 MB): those of the words that most documents have."""
Refine = Literal[0, 1, "full"]
# How much is left to single words of a group that counts for nothing.
_LEAST_GROUP_WEIGHT = 0.02
_CUTS = 8
# Words of fewer documents are a group of their own, which no edge cuts.
_FREQUENT = 4.0
# So many cells of evidence are held at a time; of each row and class there are so many.
_TILE = 1 << 26
_WIDTH = 4 * (1 + 2 * _CUTS)


@dataclass(frozen=True, eq=False)
class TextSample:
    """What is drawn from texts to fit exponents on: drawn from parts, and again from them together, it is the same.

    Parameters
    ----------
    texts
        the texts, of which no two of a class are equal
    assignment
        their classes, and the weight of all texts that are equal to each
    seed
        what they are drawn by
    """

    texts: pa.Array
    assignment: Assignment
    seed: Any

    @classmethod
    def of(cls, texts: pa.Array, assignment: Assignment, seed: Any) -> "TextSample":
        """Draw from texts; those that are missing are left out.

        >>> texts = pa.array(["a", "b", "a", None])
        >>> one, other = (Assignment(np.array([label]), np.zeros(4, dtype=np.int32)) for label in ("x", "y"))
        >>> both = TextSample.of(texts, one, 0) + TextSample.of(texts, other, 0)
        >>> sorted(zip(both.texts.to_pylist(), both.assignment.codes.tolist(), both.assignment.weights.tolist()))
        [(b'a', 0, 2.0), (b'a', 1, 2.0), (b'b', 0, 1.0), (b'b', 1, 1.0)]
        """
        return cls(texts, of_present(texts, assignment), seed)._drawn(enough())

    def __add__(self, other: "TextSample") -> "TextSample":
        parts = (self, other)
        classes = union(self.assignment.classes, other.assignment.classes)
        codes = [np.searchsorted(classes, part.assignment.classes)[part.assignment.codes] for part in parts]
        weights = np.concatenate([part.assignment.weights for part in parts])
        assignment = Assignment(classes, np.concatenate(codes).astype(np.int32), weights)
        return TextSample(pa.concat_arrays([part.texts for part in parts]), assignment, self.seed)._drawn(enough())

    def among(self, classes: Labels) -> "TextSample":
        """Return the texts of a model of these classes, which has room for fewer if they are very many."""
        drawn = self._drawn(enough(len(classes)))
        own, codes, weights = drawn.assignment
        indices = np.searchsorted(classes, own)[codes].astype(np.int32)
        return replace(drawn, assignment=Assignment(classes, indices, weights))

    def _drawn(self, most: int) -> "TextSample":
        numbers, weights = sample_texts(self.texts, self.assignment, most, self.seed)
        texts = as_texts(self.texts.take(numbers)).cast(pa.large_binary())
        return replace(self, texts=texts, assignment=self.assignment.taken(numbers)._replace(weights=weights))


class FoldAssignment(NamedTuple):
    """Texts with their classes, sizes (sums of log (count + 1)) and folds; or their counts, if all texts are there."""

    texts: pa.Array | None
    assignment: Assignment
    sizes: Array
    folds: NDArray[np.int64]
    rows: TermCounts | None = None

    def taken(self, rows: NDArray[np.int64]) -> "FoldAssignment":
        """Return some of the texts."""
        texts = None if self.texts is None else self.texts.take(rows)
        counts = None if self.rows is None else self.rows.taken(rows)
        return FoldAssignment(texts, self.assignment.taken(rows), self.sizes[rows], self.folds[rows], counts)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which texts are there."""
        return np.full(len(self.folds), True) if self.texts is None else present(self.texts)

    @property
    def weights(self) -> Array:
        """How much each text counts."""
        given = self.assignment.weights
        return np.ones(len(self.folds)) if given is None else given

    def sorted(self) -> tuple["FoldAssignment", NDArray[np.int64]]:
        """Return the texts sorted by their folds, and the number that each had."""
        order = np.argsort(self.folds, kind="stable")
        return self.taken(order), order

    @property
    def ends(self) -> list[int]:
        """Where each fold's texts begin, if they are sorted, and where the last one's end."""
        ends: list[int] = np.searchsorted(self.folds, np.arange(int(self.folds.max(initial=0)) + 2)).tolist()
        return ends


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
        informative, documents, *_ = kept.said
        return cls(
            family,
            kept,
            (_edges(informative, documents, kept.orders == 0), _edges(informative, documents, kept.orders == 1)),
        )

    def counted(self, assigned: FoldAssignment) -> TermCounts:
        """Return the counts of texts of the words that say something."""
        if assigned.rows is None:
            return self.family.analyzer.transform(assigned.texts, self.evidence.words.terms)
        return assigned.rows.renumbered(self.evidence.numbers)

    def scored(self, assigned: FoldAssignment) -> Scored:
        """Return what the words of texts, sorted by their folds, say without their fold; and lengths, in logarithms."""
        kept, codes = self.evidence, assigned.assignment.codes
        rows = self.counted(assigned)
        learned = np.where(assigned.present, assigned.weights, 0.0)
        scales = np.where(assigned.sizes > 0, kept.scale / np.where(assigned.sizes > 0, assigned.sizes, 1.0), 0.0)
        given = (rows.starts, rows.units, _log_counts(rows.counts), codes, learned, scales)
        evidence, priors = native.evidence_out_of_fold(kept.arrays, kept.weight, given, assigned.ends, self.edges)
        lengths = np.log(rows.lengths(kept.orders))
        log_priors = np.log(priors)[assigned.folds]
        return Scored(GroupEvidence(*evidence), lengths, log_priors, codes.astype(np.int64), assigned.weights)

    def fitted(self, assigned: FoldAssignment) -> "OutOfFoldFit":
        """Fit exponents on texts sorted by their folds."""
        scored = self.scored(assigned)
        usual = float(scored.lengths.mean()) if len(scored.lengths) else 0.0
        return OutOfFoldFit(self, Exponents.fitted(scored._replace(lengths=scored.lengths - usual), _WIDTH), usual)


class OutOfFoldFit(NamedTuple):
    """Words out of fold, the exponents that were fitted on some texts, and the logarithm of the usual length."""

    words: OutOfFold
    exponents: Exponents
    usual: float

    def family(self, labels: Labels) -> Discounted:
        """Return the family of discounted words, with classes of these labels."""
        found = self.exponents
        return Discounted(
            self.words.family.analyzer,
            kept=self.words.family.kept,
            exponents=found.groups,
            power=found.power,
            usual=float(np.exp(self.usual)),
            prior=found.prior,
            bias=found.bias,
            labels=labels,
            edges=self.words.edges,
        )

    def scored(self, assigned: FoldAssignment) -> Scored:
        """Return what the words of texts, sorted by their folds, say without their fold; lengths are of the usual."""
        scored = self.words.scored(assigned)
        return scored._replace(lengths=scored.lengths - self.usual)

    def log_posteriors(self, assigned: FoldAssignment) -> Array:
        """Return log p(class) of texts, sorted by their folds, as if their fold had not been learned."""
        k = len(assigned.assignment.classes)
        out = np.empty((len(assigned.folds), k))
        step = max(_TILE // (k * len(self.exponents.groups)), 1)
        for first in range(0, len(out), step):
            some = assigned.taken(np.arange(first, min(first + step, len(out))))
            scored = self.scored(some)
            found = self.exponents.log_posterior(scored)
            out[first : first + step] = np.where(some.present[:, None], found, scored.log_priors)
        return out

    def refined(
        self, sample: FoldAssignment, assigned: FoldAssignment, rows: NDArray[np.int64], refine: Refine
    ) -> Discounted:
        """Return the family with scores of single words, fitted on all texts, which are sorted by their folds.

        ``sample`` are the texts that the exponents were fitted on, which are at ``rows`` among all.
        """
        labels, evidence = assigned.assignment.classes, self.words.evidence
        informative, documents, *_ = evidence.said
        chosen = _of_most_documents(documents, MOST_SCORES // len(labels))
        groups = native.word_groups(evidence.orders, documents, informative, self.words.edges)[chosen]
        group_weight = _group_weight(self.exponents.groups)[groups].astype(np.float32)
        matrix, factor = self._matrix(assigned, chosen, group_weight)
        codes = assigned.assignment.codes.astype(np.int64)
        texts = BaseLogits(matrix, self.log_posteriors(assigned), codes, assigned.weights)
        if refine == "full":
            again, scores = self, lbfgs(texts)
        else:
            scores, said = newton(texts, assigned.ends)
            again = self._with_column(sample, said[rows] / factor[rows, None])
            scores *= np.float32(again.exponents.further[0])
        scores *= group_weight[:, None]
        refinement = Refinement.of(evidence.words.terms.filter(pa.array(chosen)), scores)
        return replace(again.family(labels), refinement=refinement)

    def _matrix(
        self, assigned: FoldAssignment, chosen: NDArray[np.bool_], group_weight: NDArray[np.float32]
    ) -> tuple[SparseRows, Array]:
        """Return texts × chosen words to refine: log (count + 1) × group weight × what the length leaves of it.

        And what the length leaves.
        """
        evidence = self.words.evidence
        counts = self.words.counted(assigned)
        factor = np.exp(-self.exponents.power * (np.log(counts.lengths(evidence.orders)) - self.usual))
        if not chosen.all():
            counts = counts.renumbered(kept_numbers(chosen))
        x = _log_counts(counts.counts)
        x *= group_weight[counts.units]
        x *= np.repeat(factor.astype(np.float32), np.diff(counts.starts))
        return SparseRows(counts.starts, counts.units, x, len(group_weight)), factor

    def _with_column(self, sample: FoldAssignment, column: Array) -> "OutOfFoldFit":
        """Fit the exponents again, with one more column of evidence (texts × classes) that counts by one of its own."""
        return self._replace(exponents=self.exponents.fitted_further(self.scored(sample), column))


def fit_discounted(family: Bag, statistics: WordStatistics, assigned: FoldAssignment) -> tuple[Discounted, Array]:
    """Fit exponents on some of the texts whose statistics are given; return also log p(class) of all out of fold."""
    classes = assigned.assignment.classes
    by_fold, order = assigned.sorted()
    every = max(-(-len(order) // enough(len(classes))), 1)
    fitted = OutOfFold.of(family, statistics).fitted(by_fold.taken(np.arange(0, len(order), every)))
    out = np.empty((len(order), len(classes)))
    out[order] = fitted.log_posteriors(by_fold)
    return fitted.family(classes), out


def collect_discounted(
    family: Bag,
    texts: pa.Array,
    assignment: Assignment,
    *,
    seed: int = 0,
    refine: Refine = 0,
    guessed: NDArray[np.bool_] | None = None,
) -> tuple[Discounted, WordStatistics]:
    """Collect the statistics of texts, fit exponents on some of them, and refine scores of words on all, if asked.

    Texts whose classes were ``guessed`` are learned from, but nothing is fitted on them.
    """
    assignment = of_present(texts, assignment)
    classes = assignment.classes
    known = assignment
    if guessed is not None:
        known = assignment._replace(codes=np.where(guessed, np.int32(-1), assignment.codes))
    # Equal texts are one text of more weight, in an order that depends on nothing but the texts.
    numbers, weights = sample_texts(texts, known, None if refine else enough(len(classes)), seed)
    folds = assign_folds(assignment.codes[numbers], FOLDS)
    order = np.argsort(folds, kind="stable")
    numbers, weights, folds = numbers[order], weights[order], folds[order]
    statistics, sizes, rows = collect_sized(family.analyzer, texts, assignment, numbers)
    drawn = Assignment(classes, assignment.codes[numbers], weights)
    every = FoldAssignment(None, drawn, sizes[numbers], folds, rows)
    words = OutOfFold.of(family, statistics)
    if refine:
        some, _ = sample_texts(texts.take(numbers), drawn, enough(len(classes)), seed)
        sample, again = every.taken(some)._replace(folds=assign_folds(drawn.codes[some], FOLDS)).sorted()
        found = words.fitted(sample).refined(sample, every, some[again], refine)
    else:
        found = words.fitted(every).family(classes)
    if guessed is not None:
        counted = class_weights(assignment).sums["weight"].sum() - class_weights(known).sums["weight"].sum()
        found = replace(found, guessed=max(float(counted), 0.0))
    return found, statistics


def fit_on_sample(family: Bag, statistics: WordStatistics, sample: TextSample) -> Discounted:
    """Fit exponents on texts that were drawn from those whose statistics are given."""
    texts, assignment = sample.texts, sample.assignment
    sizes = collect_sized(family.analyzer, texts, assignment).sizes
    assigned = FoldAssignment(texts, assignment, sizes, assign_folds(assignment.codes, FOLDS))
    return OutOfFold.of(family, statistics).fitted(assigned.sorted()[0]).family(assignment.classes)


def _log_counts(counts: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return log (count + 1). Most counts are small: their logarithms are looked up."""
    logs = np.log1p(np.arange(min(int(counts.max(initial=0)), 999) + 1)).astype(np.float32)
    found = logs[np.minimum(counts, len(logs) - 1)]
    large = np.flatnonzero(counts >= len(logs))
    found[large] = np.log1p(counts[large])
    return np.asarray(found)


def _group_weight(exponents: Array) -> Array:
    """Return √ of how much each group counts, beside the group that counts most: what is left to its single words."""
    mean = exponents.reshape(2, -1).mean(axis=0)
    most = float(mean.max())
    return np.sqrt(np.maximum(mean / most, _LEAST_GROUP_WEIGHT) if most > 0 else np.ones(len(mean)))


def _of_most_documents(documents: Array, most: int) -> NDArray[np.bool_]:
    """Return which words to choose so that they are at most so many: those that more documents have than the others.

    >>> _of_most_documents(np.array([3.0, 9.0, 3.0, 5.0]), 3).tolist()
    [False, True, False, True]
    """
    if len(documents) <= most:
        return np.full(len(documents), True)
    first_left_out = len(documents) - 1 - most
    return np.asarray(documents > np.partition(documents, first_left_out)[first_left_out])


def _edges(informative: Array, documents: Array, chosen: NDArray[np.bool_]) -> Array:
    """Return where to cut words by how informative they are, so that each part has as many words in texts."""
    words = np.flatnonzero(chosen & (documents >= _FREQUENT))
    order = words[np.argsort(informative[words], kind="stable")]
    below = np.cumsum(documents[order])
    if len(below) == 0:
        return np.zeros(_CUTS - 1)
    wanted = below[-1] * np.arange(1, _CUTS) / _CUTS
    return np.asarray(informative[order[np.minimum(np.searchsorted(below, wanted), len(below) - 1)]])


def enough(classes: int = 1) -> int:
    """Return how many texts are enough to fit the exponents on: fewer if classes are so many that room would lack."""
    return min(ENOUGH, max(_TILE // (classes * _WIDTH), 1))
