"""Columns of text: every text has a topic, a hidden level beside those of other columns, and words given the topic."""

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likely import native
from likely.data.hashing import string_hashes
from likely.data.table import Block, Table
from likely.density.columns import UNKNOWN, CategoryColumn, Codes, TextCells
from likely.families.bag import Bag, BagDensity, present
from likely.joint import Part
from likely.learn.mixtures import Sample, first_groups
from likely.statistics import Array, Assignment, Statistics
from likely.text import Analyzer, VocabularyLimits, WordStatistics, collect_words

# Words given the topic, smoothed towards those of all texts, by as much as predicts each word best from all others.
BAG = Bag(Analyzer("words"), smoothing="collection")
# Words that are kept: those of so many texts at least, and of these the most frequent.
VOCABULARY = VocabularyLimits(min_df=2, max_features=20_000)
# The topic of a text is told by the texts of the other folds.
FOLDS = 4
# Topics at most, texts that each must have, and groups of texts by their words alone.
_MOST, _LEAST, _ALONE = 32, 20, 8
# Texts by which topics are chosen, and their bytes in all; columns whose levels they may be, and how many of these are
# crossed with the best; nats of all other columns that a choice must tell more to be preferred to a simpler one.
_ENOUGH, _BYTES, _COLUMNS, _CROSSED, _WORTH = 5_000, 4_000_000, 32, 4, 0.01


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of texts: p(text, others) = Σ p(topic, others) p(words | topic).

    The members of the joint have the first factor: the topic is a level like those of categories, never seen.
    The second is the probability of the words in their order, independent of each other given the topic.
    """

    column: int
    reference: WordStatistics
    """words of first texts by fold and topic, by which topics are told of texts that are learned: it does not change"""
    sums: WordStatistics
    """words by topic, of all texts that were learned"""

    @classmethod
    def of(
        cls,
        column: int,
        texts: Any,
        folds: NDArray[np.int64],
        groups: NDArray[np.int64],
        weights: Array | None,
        words: Any,
    ) -> Self:
        """Return the column whose topics are these groups of texts, −1 of those in none. It has learned no texts."""
        k = int(groups.max(initial=0)) + 1
        codes = np.where((folds >= 0) & (groups >= 0), folds * k + groups, -1).astype(np.int32)
        reference = _collected(texts, Assignment(np.arange(FOLDS * k), codes, weights), words)
        return cls(column, reference, _collected(texts[:0], Assignment(np.arange(k), codes[:0]), words))

    @property
    def topics(self) -> int:
        """How many topics there are."""
        return len(self.sums.labels["class"])

    @cached_property
    def density(self) -> BagDensity:
        """Words given the topic."""
        return BAG.solve(self.sums)

    @cached_property
    def _told_by(self) -> tuple[tuple[BagDensity, Array], ...]:
        """Of each fold words given the topic, and log p(topic), of the texts of the other folds."""
        k = self.topics
        of_folds = [self.reference.of_classes(slice(f * k, f * k + k), np.arange(k)) for f in range(FOLDS)]
        found = []
        for f in range(FOLDS):
            others = reduce(add, of_folds[:f] + of_folds[f + 1 :])
            weight = others.sums["weight"]
            with np.errstate(divide="ignore"):
                found.append((BAG.solve(others), np.log(weight / weight.sum()) if weight.any() else np.zeros(k)))
        return tuple(found)

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in ("column", "reference", "sums")}

    def cells(self, texts: Any) -> TextCells:
        """Return log p(words | topic) of texts."""
        return TextCells(self.column, present(texts), _log_words(self.density, texts))

    def learnable(self, texts: Any) -> tuple[Codes, TextCells]:
        """Return the likeliest topic of each text, and log p(words | topic), as texts of other folds tell them.

        No word that is known, and there is no topic.
        """
        folds, logs = _folds(texts), np.zeros((len(texts), self.topics))
        topics = np.full(len(texts), UNKNOWN, dtype=np.int16)
        for f, (density, log_prior) in enumerate(self._told_by):
            own = np.flatnonzero(folds == f)
            logs[own] = _log_words(density, texts.take(pa.array(own)))
            topics[own] = (logs[own] + log_prior).argmax(axis=1)
        cells = TextCells(self.column, present(texts), logs)
        return np.where(cells.told, topics, UNKNOWN).astype(np.int16), cells

    def learned(self, texts: Any, topics: Codes, weights: Array | None, sign: float = 1.0) -> Self:
        """Return the column that has learned, or forgotten, texts of these topics."""
        assignment = Assignment(np.arange(self.topics), topics.astype(np.int32), weights)
        words = _collected(texts, assignment, self.reference.terms)
        return self._with(self.sums + words if sign > 0 else self.sums - words)

    def _with(self, sums: Statistics) -> Self:
        assert isinstance(sums, WordStatistics)
        return replace(self, sums=sums)

    def merged(self, other: Self, factor: float = 1.0) -> Self:
        """Return the column that has learned what another with the same reference has, times a factor."""
        return self._with(self.sums + other.sums * factor if factor >= 0 else self.sums - other.sums * -factor)

    def emptied(self) -> Self:
        """Return the column that has learned no texts."""
        return replace(self, sums=self.sums * 0.0)

    def same_reference(self, other: Self) -> bool:
        """Say whether topics are told by the same texts."""
        one, two = self.reference, other.reference
        return (
            self.column == other.column
            and one.terms.equals(two.terms)
            and np.array_equal(one.starts, two.starts)
            and np.array_equal(one.codes, two.codes)
            and all(np.array_equal(one.sums[name], two.sums[name]) for name in one.sums)
        )

    def levels(self, topics: Codes, weights: Array | None) -> CategoryColumn:
        """Return the column of topics."""
        counts = np.bincount(topics + 1, weights, minlength=self.topics + 1)[1:]
        return topic_levels(counts.astype(np.float64))


def topic_levels(counts: Array) -> CategoryColumn:
    """Return the column of topics of these weights."""
    return CategoryColumn(tuple(map(str, range(len(counts)))), {}, counts)


def fit_text(
    column: int, texts: Any, weights: Array | None, codes: Codes, levels: NDArray[np.int32], seed: int
) -> TextColumn:
    """Choose the topics of a column of texts: those by which texts tell most of other columns, rows × columns of codes.

    Candidates are the levels of another column, of two columns together, and groups of texts by k-means. What counts is
    the mutual information of all columns and topics, told by the texts of other folds.
    """
    folds, every = _folds(texts), np.ones(len(texts)) if weights is None else weights
    everyone = Assignment(np.zeros(1), np.where(folds < 0, -1, 0).astype(np.int32), weights)
    words = VOCABULARY.of(collect_words(BAG.analyzer, texts, everyone)).terms
    first = np.flatnonzero(folds >= 0)[:_ENOUGH]
    sizes = pc.binary_length(texts.take(pa.array(first))).to_numpy(zero_copy_only=False)
    first = first[: int(np.searchsorted(np.cumsum(sizes), _BYTES)) + 1]
    part, own, others = texts.take(pa.array(first)), every[first], codes[first]
    groups = np.full(len(texts), -1)
    if len(words):
        groups[first] = _clusters(part, own, seed)

    def topics_of(groups: NDArray[np.int64]) -> Codes:
        return TextColumn.of(column, part, folds[first], groups[first], own, words).learnable(part)[0]

    if groups.max(initial=-1) > 0 and len(levels):
        told = _information(topics_of(groups), others, levels, own)
        most, found = float(told.sum()), []
        for j in np.argsort(-told, kind="stable")[:_COLUMNS].tolist():
            by_level = _frequent(codes[:, j].astype(np.int64), every)
            if by_level.max(initial=0) > 0:
                found.append((float(_information(topics_of(by_level), others, levels, own).sum()), j))
        found.sort(reverse=True)
        tried = [codes[:, j].astype(np.int64) for _, j in found[:1]]
        for _, j in found[1 : 1 + _CROSSED]:
            crossed = tried[0] * int(levels[j]) + codes[:, j]
            tried.append(np.where((tried[0] < 0) | (codes[:, j] < 0), -1, crossed))
        for each in tried:
            candidate = _frequent(each, every)
            tells = float(_information(topics_of(candidate), others, levels, own).sum())
            if tells > most + _WORTH:
                most, groups = tells, candidate
    return TextColumn.of(column, texts, folds, groups, weights, words)


def _folds(texts: Any) -> NDArray[np.int64]:
    """Return the fold of each text, by its content; −1 of one that is missing."""
    hashes = string_hashes(texts)
    return np.where(hashes < 0, -1, hashes % FOLDS)


def _collected(texts: Any, assignment: Assignment, words: Any) -> WordStatistics:
    found = collect_words(BAG.analyzer, texts, assignment)
    return found.of_words(np.asarray(pc.is_in(found.terms, value_set=words).to_numpy(zero_copy_only=False), dtype=bool))


def _log_words(density: BagDensity, texts: Any) -> Array:
    """Return log p(words | topic); 0 of texts without words that are known."""
    out = np.zeros((len(texts), density.classes))
    density.add_log_density(Block(Table(np.zeros((len(texts), 1)), strings={0: texts}), [0]), out)
    return out


def _frequent(codes: NDArray[np.int64], weights: Array) -> NDArray[np.int64]:
    """Return groups of codes that are frequent enough, −1 of all others."""
    there = codes >= 0
    distinct, index = np.unique(codes[there], return_inverse=True)
    counts = np.bincount(index, weights[there], minlength=len(distinct))
    order = np.argsort(-counts, kind="stable")[:_MOST]
    kept = np.sort(order[counts[order] >= _LEAST])
    number = np.full(len(distinct), -1)
    number[kept] = np.arange(len(kept))
    groups = np.full(len(codes), -1)
    groups[there] = number[index]
    return groups


def _clusters(texts: Any, weights: Array, seed: int) -> NDArray[np.int64]:
    """Return groups of texts by their words alone, by k-means; all are one if there are few."""
    k = int(min(_ALONE, weights.sum() // _LEAST))
    if k < 2:
        return np.zeros(len(texts), dtype=np.int64)
    table = Table(np.zeros((len(texts), 1)), strings={0: texts})
    sample = Sample(table, weights)
    found = first_groups(sample, (Part(BAG, [0]),), k, "k-means++", np.random.default_rng(seed))
    return found.codes.astype(np.int64)


def _information(topics: Codes, codes: Codes, levels: NDArray[np.int32], weights: Array) -> Array:
    """Return the mutual information of topics with each column."""
    both = np.concatenate([topics[None], codes.T]).astype(np.int16)
    sizes = np.append(np.int32(topics.max(initial=0) + 1), levels).astype(np.int32)
    pairs = np.stack([np.arange(1, len(both)), np.zeros(len(both) - 1, dtype=np.int64)], axis=1)
    found, _ = native.mutual_information(np.ascontiguousarray(both), sizes, pairs, weights[:, None])
    return np.asarray(found[:, 0])
