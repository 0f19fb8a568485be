"""Fitting the exponents of discounted words: the texts of a sample are scored as if their fold had not been learned.

Sums are of all texts, whatever their number. A fold's own sums are taken away from those of the few words that its
texts have, so that folds cost next to nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.exponents import Exponents, Scored
from likely.families.bag import Bag
from likely.families.discounted import Discounted, Evidence
from likely.statistics import Array, Assignment
from likely.text import WordStatistics

FOLDS = 10
SAMPLE = 6_000
"""So many texts settle the exponents."""
_CUTS = 8
# Words of fewer documents are a group of their own, which no edge cuts.
_FREQUENT = 4.0


class Sample(NamedTuple):
    """Texts with their classes and sizes (sums of log (count + 1)), sorted by the fold that each is dealt to."""

    texts: object
    assignment: Assignment
    sizes: Array
    folds: NDArray[np.int64]


class Fitted(NamedTuple):
    """A family, and log p(class) of the sample's texts as if their fold had not been learned."""

    family: Discounted
    log_posteriors: Array


def fit_exponents(family: Bag, statistics: WordStatistics, sample: Sample) -> Fitted:
    """Fit exponents on a sample of the texts whose statistics are given."""
    kept = Evidence.of(statistics)
    told, documents, *_ = native.word_evidence(kept.arrays, kept.weight)
    edges = _edges(told, documents, kept.orders == 0), _edges(told, documents, kept.orders == 1)
    classes, codes, weights = sample.assignment
    rows = family.analyzer.transform(sample.texts, kept.words.terms)
    single = np.add.reduceat(np.append(kept.orders[rows.units] == 0, False), rows.starts[:-1]) if len(codes) else _NONE
    lengths = np.log(np.maximum(np.where(np.diff(rows.starts) > 0, single, 0), 1))
    usual = float(lengths.mean()) if len(lengths) else 0.0
    weighed = np.ones(len(codes)) if weights is None else weights
    scales = np.where(sample.sizes > 0, kept.scale / np.where(sample.sizes > 0, sample.sizes, 1.0), 0.0)
    given = (rows.starts, rows.units, np.log1p(rows.counts).astype(np.float32), codes, weighed, scales)
    ends = np.searchsorted(sample.folds, np.arange(FOLDS + 1)).tolist()
    evidence, shares = native.evidence_out_of_fold(kept.arrays, kept.weight, given, ends, edges)
    log_shares = np.log(shares)[sample.folds]
    scored = Scored(evidence, lengths - usual, log_shares, codes.astype(np.int64), weighed)
    found = Exponents.fitted(scored)
    settled = Discounted(
        family.analyzer,
        exponents=found.groups,
        power=found.power,
        usual=float(np.exp(usual)),
        prior=found.prior,
        bias=found.bias,
        labels=classes,
        edges=edges,
    )
    return Fitted(settled, found.log_posterior(scored))


_NONE = np.zeros(0, dtype=np.int64)


def _edges(told: Array, documents: Array, chosen: NDArray[np.bool_]) -> Array:
    """Return where to cut words by how much they tell, so that each part has as many words in texts."""
    words = np.flatnonzero(chosen & (documents >= _FREQUENT))
    order = words[np.argsort(told[words], kind="stable")]
    below = np.cumsum(documents[order])
    if len(below) == 0:
        return np.zeros(_CUTS - 1)
    wanted = below[-1] * np.arange(1, _CUTS) / _CUTS
    return np.asarray(told[order[np.minimum(np.searchsorted(below, wanted), len(below) - 1)]])


def sampled(
    codes: NDArray[np.int32], most: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of at most about so many rows, each class in proportion, and their folds, sorted by these."""
    rows = generator.permutation(len(codes))
    rows = rows[codes[rows] >= 0]
    rows = rows[np.argsort(codes[rows], kind="stable")]
    if len(rows) > most:  # every so-manieth: of each class its share, and of a class that has any, one at least
        first = np.flatnonzero(np.diff(codes[rows], prepend=-1))
        evenly = (np.arange(most) * (len(rows) / most)).astype(np.int64)
        rows = rows[np.union1d(first, evenly)]
    folds = np.arange(len(rows)) % FOLDS
    order = np.argsort(folds, kind="stable")
    return rows[order], folds[order]
