"""Evaluating on rows that do not lie in memory: they are held out, and scored, where they lie."""

import operator
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.distinct import row_keys
from likely.data.folds import MOST, Folds, Frequent, seed_of
from likely.data.hashing import Keys
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import Block
from likely.engines.labelled import Labelled, every_row, labelled_whole, tell_of_unlabelled
from likely.ensemble.selection import SAMPLE
from likely.estimators.classifier import GenerativeClassifier
from likely.joint import Part
from likely.learn.one_pass import all_but_each, collect_folds
from likely.model.evaluation import Evaluation, SummedEvaluation, Sums, check_folds
from likely.model.semi_supervised import check_unlabelled
from likely.model.state import Knowledge
from likely.statistics import Assignment, JointStatistics, Labels, union


class Counted(NamedTuple):
    """What a first pass finds out.

    Parameters
    ----------
    labelled, unlabelled
        how many rows have a label, and have none
    classes
        the labels, sorted
    frequent
        rows that come often, by their keys
    additive
        whether statistics of folds add up to those of several
    """

    labelled: int
    unlabelled: int
    classes: Labels
    frequent: Frequent
    additive: bool

    def plus(self, other: "Counted") -> "Counted":
        """Return what was found here and there."""
        return Counted(
            self.labelled + other.labelled,
            self.unlabelled + other.unlabelled,
            union(self.classes, other.classes),
            self.frequent.plus(other.frequent),
            self.additive and other.additive,
        )


class StreamedClassifier(GenerativeClassifier):
    """A classifier that learns from tables, and is evaluated on them, also if they do not lie in memory."""

    @abstractmethod
    def _learned_of(self, rows: Rows, schema: Schema, y: Any, sample_weight: Any) -> Knowledge:
        """Learn from a table, wherever it lies; ``sample_weight`` may say which fold is held out."""

    def _parts_by_kind(self, schema: Schema, rows: Rows) -> tuple[Part, ...] | None:
        """Return the parts of the joint if the kinds of columns alone decide on them; None if rows do."""
        return None

    def _parts_of_no_rows(self, schema: Schema, rows: Rows) -> tuple[Part, ...]:
        """Return the parts of the joint, none of which depends on rows."""
        nothing = Assignment(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))
        return self._parts(schema.table(rows.schema.empty_table(), note=False), nothing)

    def _evaluated_of(
        self, rows: Rows, schema: Schema, y: Any, sample_weight: Any, folds: int, random_state: Any
    ) -> Evaluation | SummedEvaluation:
        """Evaluate on a table; many rows that do not lie in memory stay where they are."""
        if not rows.held and isinstance(y, str) and sample_weight is None:
            seed, parts = seed_of(random_state), self._parts_by_kind(schema, rows)
            count = rows.reduce(partial(_counted, schema=schema, y=y, seed=seed, parts=parts), Counted.plus)
            many = count.labelled + count.unlabelled > SAMPLE
            if many and not self._learns_unlabelled(count.labelled, count.unlabelled):
                check_folds(folds, count.labelled)
                tell_of_unlabelled(count.unlabelled, y)
                common = _common(rows, schema, y, seed, count)
                dealt = Folds.dealt(int(folds), seed, *common)
                return self._evaluated_there(rows, schema, y, dealt, count, parts)
        partly = check_unlabelled(self.unlabelled) is not None
        return self._evaluated(*labelled_whole(schema, rows, y, sample_weight, partly=partly), folds, random_state)

    def _evaluated_there(
        self, rows: Rows, schema: Schema, y: str, folds: Folds, count: Counted, parts: tuple[Part, ...] | None
    ) -> SummedEvaluation:
        if parts is not None and count.additive:
            learned = self._learned_at_once(rows, schema, y, folds, parts)
        else:
            learned = (self._learned_of(rows, schema, y, folds.without(fold)) for fold in range(folds.count))
        classes = count.classes
        models = [known.with_statistics(known.statistics.with_classes(classes)).comparison for known in learned]
        work = partial(_scored, schema=schema, y=y, folds=folds, classes=classes, models=models)
        sums = rows.reduce(work, Sums.plus)
        # A row that has shares in several folds was scored several times; those of all its copies are whole together.
        whole = sums._replace(rows=count.labelled, confusion=np.round(sums.confusion))
        return SummedEvaluation(classes, whole, folds.count)

    def _learned_at_once(
        self, rows: Rows, schema: Schema, y: str, folds: Folds, parts: tuple[Part, ...]
    ) -> Iterator[Knowledge]:
        """Return for each fold what is learned from the others; statistics of all folds are collected in one pass."""
        pieces = rows.reduce(partial(_collected, schema=schema, y=y, folds=folds, parts=parts), _both)
        assert pieces is not None
        columns = schema.table(rows.schema.empty_table(), note=False).columns
        for statistics in all_but_each(pieces):
            yield Knowledge(parts, statistics, columns, self._given_priors())


def _known_rows(rows: Rows, schema: Schema, y: str) -> Iterator[Labelled]:
    for part in every_row(schema, rows, y, None, note=False):
        known = part.known()
        if known.table.rows:
            yield known


def _counted(rows: Rows, schema: Schema, y: str, seed: str, parts: tuple[Part, ...] | None) -> Counted:
    nothing = Frequent(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
    found = Counted(0, 0, np.zeros(0, dtype="<U1"), nothing, True)
    for part in every_row(schema, rows, y, None, note=False):
        table, assignment = part.known()
        found = found.plus(
            Counted(
                table.rows,
                part.table.rows - table.rows,
                assignment.classes,
                Frequent.of(row_keys(table, assignment, seed)),
                all(each.family.additive(Block(table, each.columns)) for each in parts or ()),
            )
        )
    return found


def _common(rows: Rows, schema: Schema, y: str, seed: str, count: Counted) -> tuple[Keys, NDArray[np.int64]]:
    """Return the keys of rows that come again and again, and how often each does, wherever they lie."""
    keys, counts, lost = count.frequent
    least = max(1, count.labelled // MOST)
    maybe = counts + lost > least
    keys, counts = keys[maybe], counts[maybe]
    if lost and len(keys):
        counts = rows.reduce(partial(_copies, schema=schema, y=y, seed=seed, keys=keys), operator.add)
    return keys[counts > least], counts[counts > least]


def _copies(rows: Rows, schema: Schema, y: str, seed: str, keys: Keys) -> NDArray[np.int64]:
    """Return how often each of some keys comes."""
    found = np.zeros(len(keys), dtype=np.int64)
    for part in _known_rows(rows, schema, y):
        own = row_keys(*part, seed)
        found += np.bincount(np.searchsorted(keys, own[np.isin(own, keys)]), minlength=len(keys))
    return found


def _collected(
    rows: Rows, schema: Schema, y: str, folds: Folds, parts: tuple[Part, ...]
) -> list[JointStatistics] | None:
    """Collect the statistics of each fold; None if there are no rows."""
    found = None
    for table, assignment in _known_rows(rows, schema, y):
        places, dealt, shares = folds.of(table, assignment)
        split = assignment.taken(places)._replace(weights=shares)
        found = _both(found, collect_folds(table.taken(places), split, dealt, parts, folds.count))
    return found


def _both(one: list[JointStatistics] | None, other: list[JointStatistics] | None) -> list[JointStatistics] | None:
    if one is None or other is None:
        return other if one is None else one
    return list(map(operator.add, one, other))


def _scored(rows: Rows, schema: Schema, y: str, folds: Folds, classes: Labels, models: list[Any]) -> Sums:
    """Predict each row by the model that has not seen its fold."""
    found = Sums.none(len(classes))
    for table, assignment in _known_rows(rows, schema, y):
        codes = np.searchsorted(classes, assignment.classes)[assignment.codes]
        places, dealt, shares = folds.of(table, assignment)
        weights = np.ones(len(places)) if shares is None else shares
        for fold, model in enumerate(models):
            held = dealt == fold
            if held.any():
                probabilities = model.posterior(table.taken(places[held]))
                found = found.plus(Sums.of(codes[places[held]], probabilities, weights[held]))
    return found
