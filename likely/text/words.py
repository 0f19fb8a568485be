"""What classes have of each word: sums over texts that add, subtract and align, however words come to be numbered."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.statistics import NOT_LEARNED, Array, Assignment, Labels, Statistics, union
from likely.text.analyzer import SHARES, Analyzer, Measure, TermCounts
from likely.text.documents import as_terms, buffers

PAIRS = ("count", "share", "documents")
"""The sums of each pair of a word and a class."""
CLASSES = ("weight", "log size")
"""The sums of each class."""
_AXES = {**dict.fromkeys(PAIRS, ("pair",)), **dict.fromkeys(CLASSES, ("class",))}


@dataclass(frozen=True, eq=False)
class WordStatistics(Statistics):
    """Sums of every pair of a word and a class that has it, the classes of each word after those of the one before.

    ``sums`` has, of each pair, how often the word came (``"count"``), what share of the class's documents it made up
    (``"share"``) and in how many it was (``"documents"``); of each class, the weight of its documents and the sum of
    the logarithms of their sizes. The share of a word in a document is log(1 + count), over the sum of these, its size;
    unless another measure was asked for.

    Parameters
    ----------
    terms
        the words, as an Arrow array
    starts
        where the classes of each word begin among the pairs
    codes
        the index of each pair's class among the labels

    Examples
    --------
    >>> one = collect_words(Analyzer("words"), pa.array(["a b a"]), Assignment(np.array([0]), np.array([0], np.int32)))
    >>> two = collect_words(Analyzer("words"), pa.array(["c b"]), Assignment(np.array([1]), np.array([0], np.int32)))
    >>> both = one + two
    >>> both.terms.to_pylist(), both.labels["class"].tolist(), both.starts.tolist(), both.codes.tolist()
    (['a', 'b', 'c'], [0, 1], [0, 1, 3, 4], [0, 0, 1, 1])
    >>> (both - two).sums["count"].tolist()
    [2.0, 1.0]
    """

    terms: Any = None
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @classmethod
    def of(cls, terms: Any, starts: Any, codes: Any, sums: Mapping[str, Array], classes: Labels) -> "WordStatistics":
        """Return statistics of these words, pairs, sums and classes."""
        return cls(sums, _AXES, {"class": classes}, terms=terms, starts=starts, codes=codes)

    def _combined(self, other: Statistics, sign: float) -> "WordStatistics":
        assert isinstance(other, WordStatistics)
        labels = union(self.labels["class"], other.labels["class"])
        found = native.merge_amounts(self._side(labels), other._side(labels), sign)
        if found is None:
            raise ValueError(NOT_LEARNED.format("have words that are not left in their class"))
        (starts, codes, amounts), left = found
        terms = pa.concat_arrays([self.terms, other.terms]).take(pa.array(left))
        one, two = self._of_classes(labels), other._of_classes(labels)
        classes = {name: one[name] + sign * two[name] for name in CLASSES}
        return self.of(terms, starts, codes, {**dict(zip(PAIRS, amounts.T, strict=True)), **classes}, labels)

    def __sub__(self, other: Statistics) -> "WordStatistics":
        left = self._combined(other, -1.0)
        weight = left.sums["weight"]
        if np.any(weight < -1e-9 * np.maximum(self._of_classes(left.labels["class"])["weight"], 1.0)):
            raise ValueError(NOT_LEARNED.format("weigh more than what is left of their class"))
        return replace(left, sums={**left.sums, "weight": np.maximum(weight, 0.0)})

    def __mul__(self, factor: float) -> "WordStatistics":
        if factor == 0:
            none = {name: np.zeros(0 if name in PAIRS else len(array)) for name, array in self.sums.items()}
            return self.of(self.terms[:0], np.zeros(1, np.int64), np.zeros(0, np.int32), none, self.labels["class"])
        return replace(self, sums={name: array * factor for name, array in self.sums.items()})

    __rmul__ = __mul__

    def aligned(self, labels: Mapping[str, Labels]) -> "WordStatistics":
        """Return these statistics with more classes."""
        numbers = self._numbers(labels["class"])
        sums = {**self.sums, **self._of_classes(labels["class"])}
        return self.of(self.terms, self.starts, numbers[self.codes], sums, labels["class"])

    def of_classes(self, indices: slice, labels: Labels) -> "WordStatistics":
        """Return the statistics of some of the classes, under other labels."""
        first, last, _ = indices.indices(len(self.labels["class"]))
        pairs = np.flatnonzero((self.codes >= first) & (self.codes < last))
        sizes = np.bincount(self.words[pairs], minlength=len(self.terms))
        left = np.flatnonzero(sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[left])]).astype(np.int64)
        sums = {name: array[pairs if name in PAIRS else indices] for name, array in self.sums.items()}
        return self.of(self.terms.take(pa.array(left)), starts, self.codes[pairs] - np.int32(first), sums, labels)

    def of_words(self, chosen: NDArray[np.bool_]) -> "WordStatistics":
        """Return the statistics of some of the words."""
        pairs = chosen[self.words]
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[chosen])]).astype(np.int64)
        sums = {name: array[pairs] if name in PAIRS else array for name, array in self.sums.items()}
        return self.of(self.terms.filter(pa.array(chosen)), starts, self.codes[pairs], sums, self.labels["class"])

    def of_responsibilities(self, responsibilities: Array, classes: Labels) -> "WordStatistics":
        """Return the statistics of classes by their responsibilities for documents (× classes), each a class so far.

        >>> texts, each = pa.array(["a b a", "b"]), Assignment(np.arange(2), np.arange(2, dtype=np.int32))
        >>> words = collect_words(Analyzer("words"), texts, each)
        >>> one = words.of_responsibilities(np.array([[0.5], [1.0]]), np.array(["x"]))
        >>> one.terms.to_pylist(), one.sums["count"].tolist(), one.sums["weight"].tolist()
        (['a', 'b'], [1.0, 1.5], [1.5])
        """
        words, k = len(self.terms), responsibilities.shape[1]
        sums = {name: np.einsum("dc,d->c", responsibilities, self.sums[name]) for name in CLASSES}
        found = {name: np.empty((words, k)) for name in PAIRS}
        for c in range(k):
            of_class = responsibilities[self.codes, c]
            for name, out in found.items():
                out[:, c] = np.add.reduceat(self.sums[name] * of_class, self.starts[:-1])
        # A class without responsibility for any document with a word, as far from all of them, does not have the word.
        has = found["documents"] > 0
        sizes = has.sum(axis=1)
        left = np.flatnonzero(sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[left])]).astype(np.int64)
        codes = np.nonzero(has)[1].astype(np.int32)
        pairs = {name: array[has] for name, array in found.items()}
        return self.of(self.terms.take(pa.array(left)), starts, codes, {**pairs, **sums}, classes)

    @property
    def buffers(self) -> Any:
        """The terms as the core takes them."""
        return buffers(self.terms)

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """The word of each pair."""
        return np.repeat(np.arange(len(self.terms)), np.diff(self.starts))

    def in_words(self, name: str) -> Array:
        """Return a sum of pairs, over all classes of each word."""
        return np.bincount(self.words, self.sums[name], len(self.terms)).astype(np.float64)

    def in_classes(self, name: str) -> Array:
        """Return a sum of pairs, over all words of each class."""
        return np.bincount(self.codes, self.sums[name], len(self.labels["class"])).astype(np.float64)

    def _numbers(self, labels: Labels) -> NDArray[np.int32]:
        return np.searchsorted(labels, self.labels["class"]).astype(np.int32)

    def _side(self, labels: Labels) -> Any:
        pairs = (np.ascontiguousarray(self.sums[name]) for name in PAIRS)
        return buffers(self.terms), self.starts, self.codes, *pairs, self._numbers(labels)

    def _of_classes(self, labels: Labels) -> dict[str, Array]:
        """Return the sums of classes, for more classes."""
        found = {name: np.zeros(len(labels)) for name in CLASSES}
        for name in CLASSES:
            found[name][self._numbers(labels)] = self.sums[name]
        return found


class Collected(NamedTuple):
    """Statistics of texts, the size of each, and the counts of those that were to be kept."""

    statistics: WordStatistics
    sizes: Array
    rows: TermCounts


def collect_words(analyzer: Analyzer, texts: Any, assignment: Assignment, measure: Measure = SHARES) -> WordStatistics:
    """Collect the statistics of texts whose classes are known, without a matrix of documents and words."""
    return collect_sized(analyzer, texts, assignment, measure=measure).statistics


def collect_sized(
    analyzer: Analyzer, texts: Any, assignment: Assignment, kept: Any = (), measure: Measure = SHARES
) -> Collected:
    """Collect the statistics of texts whose classes are known; keep the counts of the texts of these numbers."""
    classes, codes, weights = assignment
    (starts, pairs, amounts), of_classes, rows, terms = analyzer.amounts(
        texts, codes, weights, len(classes), kept, measure
    )
    named = {**dict(zip(PAIRS, amounts.T, strict=True)), "weight": of_classes[0], "log size": of_classes[1]}
    statistics = WordStatistics.of(as_terms(*terms), starts, pairs, named, classes)
    return Collected(statistics, of_classes[2], TermCounts(*rows))
