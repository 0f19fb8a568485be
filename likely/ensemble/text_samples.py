"""Texts drawn from very many, wherever they lie, to fit the exponents of discounted words on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from likely.data.distinct import sample_texts
from likely.ensemble.discounting import FOLDS, Dealt, OutOfFold, enough
from likely.families.bag import Bag, of_present
from likely.families.discounted import Discounted
from likely.learn.one_pass import deal
from likely.statistics import Assignment, Labels, union
from likely.text import WordStatistics, as_texts, collect_sized


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
    def of(cls, texts: Any, assignment: Assignment, seed: Any) -> "TextSample":
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
        places = np.searchsorted(classes, own)[codes].astype(np.int32)
        return replace(drawn, assignment=Assignment(classes, places, weights))

    def _drawn(self, most: int) -> "TextSample":
        numbers, weights = sample_texts(self.texts, self.assignment, most, self.seed)
        texts = as_texts(self.texts.take(numbers)).cast(pa.large_binary())
        return replace(self, texts=texts, assignment=self.assignment.taken(numbers)._replace(weights=weights))


def settled_by(family: Bag, statistics: WordStatistics, sample: TextSample) -> Discounted:
    """Fit exponents on texts that were drawn from those whose statistics are given."""
    texts, assignment = sample.texts, sample.assignment
    sizes = collect_sized(family.analyzer, texts, assignment).sizes
    dealt = Dealt(texts, assignment, sizes, deal(assignment.codes, FOLDS))
    return OutOfFold.of(family, statistics).fitted(dealt.sorted()[0]).family(assignment.classes)
