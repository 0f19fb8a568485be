"""Cross-validation: models predict rows of folds that they have not seen, in memory or out of core."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.folds import MOST, FrequentItems, HashedFolds, fold_seed
from likely.data.hashing import Keys, row_keys
from likely.data.labelled import Collected, LabelledRows, Labelling, warn_about_unlabelled
from likely.data.labels import read_assignment
from likely.data.rows import Rows
from likely.data.table import Block, Table
from likely.engines import rows_of, with_labels
from likely.ensemble.selection import SAMPLE
from likely.estimators import fitting
from likely.estimators.fitting import Plan
from likely.joint import Part
from likely.learn.one_pass import all_but_each, collect_folds, training_folds
from likely.model.evaluation import Evaluation, SummedEvaluation, Sums, check_folds, shuffled_folds
from likely.model.readers import read_first, read_texts
from likely.model.state import Comparison, State
from likely.statistics import Assignment, JointStatistics, Labels, union


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What a first pass over rows that have a label finds out."""

    classes: Labels
    """the labels, sorted"""
    frequent: FrequentItems
    """rows that come often, by their keys"""
    additive: bool
    """whether statistics of folds add up to those of several"""

    @classmethod
    def of(cls, table: Table, assignment: Assignment, seed: str, parts: tuple[Part, ...] | None) -> Self:
        """Look at some rows."""
        additive = all(part.family.additive(Block(table, part.columns)) for part in parts or ())
        return cls(assignment.classes, FrequentItems.of(row_keys(table, assignment, seed)), additive)

    def __add__(self, other: Self) -> Self:
        classes, frequent = union(self.classes, other.classes), self.frequent.plus(other.frequent)
        return type(self)(classes, frequent, self.additive and other.additive)


@dataclass(frozen=True, eq=False)
class FoldStatistics:
    """The statistics of every fold."""

    pieces: list[JointStatistics]

    @classmethod
    def of(cls, table: Table, assignment: Assignment, folds: HashedFolds, parts: tuple[Part, ...]) -> Self:
        """Collect the statistics of some rows."""
        indices, fold_of, weights = folds.of(table, assignment)
        split = assignment.taken(indices)._replace(weights=weights)
        return cls(collect_folds(table.taken(indices), split, fold_of, parts, folds.count))

    def __add__(self, other: Self) -> Self:
        return type(self)(list(map(operator.add, self.pieces, other.pieces)))


def evaluate(
    plan: Plan, X: Any, y: Any, folds: int, sample_weight: Any, random_state: Any
) -> Evaluation | SummedEvaluation:
    """Return how well models of a plan predict rows that they have not seen."""
    plan = replace(plan, answer=None)  # only the class is asked for
    if plan.rows == "texts":
        X, y, sample_weight, _ = fitting.texts_of(None, X, y, sample_weight, partially_labelled=True)
    elif plan.rows != "matrix":
        X, y = with_labels(X, y)
        if fitting.is_tabular(plan, X, y):
            rows = rows_of(X, missing=plan.missing)
            work = partial(_of_table, plan, folds=folds, random_state=random_state)
            return fitting.inferred(plan, work, rows, y, weights=sample_weight)
    table = read_texts(X) if plan.rows == "texts" else read_first(X)
    assignment = read_assignment(y, sample_weight, table.rows, partially_labelled=plan.partially_labelled())
    return _in_memory(plan, table, assignment, folds, random_state)


def _in_memory(plan: Plan, table: Table, assignment: Assignment, folds: int, random_state: Any) -> Evaluation:
    known = assignment.codes >= 0
    fold_of = np.full(table.rows, -1, dtype=np.int64)
    fold_of[known] = shuffled_folds(assignment.codes[known], folds, random_state)
    probabilities = np.empty((table.rows, len(assignment.classes)))
    for fold, state in enumerate(_without_each_fold(plan, table, assignment, fold_of)):
        held = fold_of == fold
        probabilities[held] = state.comparison.posterior(table.taken(held))
    weights = np.ones(table.rows) if assignment.weights is None else assignment.weights
    codes = assignment.codes[known].astype(np.int64)
    return Evaluation(assignment.classes, codes, probabilities[known], weights[known], folds)


def _without_each_fold(plan: Plan, table: Table, assignment: Assignment, fold_of: NDArray[np.int64]) -> Iterator[State]:
    """Return for each fold what is learned from the others, and from rows without a label, which are in none."""
    if plan.chosen or (fold_of < 0).any():  # what is chosen by the rows is chosen without the fold, too
        for fold in range(int(fold_of.max()) + 1):
            others = fold_of != fold
            yield fitting.begin(plan, table.taken(others), assignment.taken(others))
        return
    parts = plan.families(table, assignment)
    for statistics in training_folds(table, assignment, fold_of, parts):
        yield plan.state(parts, statistics, plan.matrix(table.columns), plan.priors)


def _of_table(plan: Plan, data: LabelledRows, folds: int, random_state: Any) -> Evaluation | SummedEvaluation:
    """Evaluate on a table; many rows that are not in memory stay where they are."""
    if not data.rows.in_memory and isinstance(data.y, str) and data.labelling.weights is None:
        seed, parts = fold_seed(random_state), _parts_by_type(plan, data)
        found = data.collect(partial(FirstPass.of, seed=seed, parts=parts), note=False)
        many = found.labelled + found.unlabelled > SAMPLE
        if many and not plan.learns_unlabelled(found.labelled, found.unlabelled):
            check_folds(folds, found.labelled)
            warn_about_unlabelled(found.unlabelled, data.y)
            assigned = HashedFolds.assigned(int(folds), seed, *_common(data, seed, found))
            return _out_of_core(plan, data, assigned, found, parts)
    return _in_memory(plan, *data.all(partially_labelled=plan.partially_labelled()), folds, random_state)


def _parts_by_type(plan: Plan, data: LabelledRows) -> tuple[Part, ...] | None:
    """Return the parts of the joint if the declared types of columns alone decide on them; None if rows do."""
    if plan.chosen or not plan.by_type(data.schema):
        return None
    return plan.families(data.empty(), Assignment(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)))


def _out_of_core(
    plan: Plan, data: LabelledRows, folds: HashedFolds, found: Collected[FirstPass], parts: tuple[Part, ...] | None
) -> SummedEvaluation:
    assert found.statistics is not None
    classes = found.statistics.classes
    if parts is not None and found.statistics.additive:
        learned = _learned_at_once(plan, data, folds, parts)
    else:
        learned = (fitting.learn_table(plan, data.without(folds.held_out(fold)))[0] for fold in range(folds.count))
    models = [state.with_statistics(state.statistics.with_classes(classes)).comparison for state in learned]
    work = partial(_scored, labelling=data.labelling, folds=folds, classes=classes, models=models)
    sums = data.rows.reduce(work, Sums.plus)
    # A row that has shares in several folds was scored several times; those of all its copies are whole together.
    whole = sums._replace(rows=found.labelled, confusion=np.round(sums.confusion))
    return SummedEvaluation(classes, whole, folds.count)


def _learned_at_once(plan: Plan, data: LabelledRows, folds: HashedFolds, parts: tuple[Part, ...]) -> Iterator[State]:
    """Return for each fold what is learned from the others; statistics of all folds are collected in one pass."""
    found = data.collect(partial(FoldStatistics.of, folds=folds, parts=parts), note=False).statistics
    assert found is not None
    for statistics in all_but_each(found.pieces):
        yield plan.state(parts, statistics, plan.matrix(data.empty().columns), plan.priors)


def _common(data: LabelledRows, seed: str, found: Collected[FirstPass]) -> tuple[Keys, NDArray[np.int64]]:
    """Return the keys of rows that come again and again, and how often each does, in all partitions."""
    assert found.statistics is not None
    keys, counts, lost = found.statistics.frequent
    least = max(1, found.labelled // MOST)
    maybe = counts + lost > least
    keys, counts = keys[maybe], counts[maybe]
    if lost and len(keys):
        copies: Collected[NDArray[np.int64]] = data.collect(partial(_copies, seed=seed, keys=keys), note=False)
        assert copies.statistics is not None
        counts = copies.statistics
    return keys[counts > least], counts[counts > least]


def _copies(table: Table, assignment: Assignment, seed: str, keys: Keys) -> NDArray[np.int64]:
    """Return how often each of some keys comes."""
    own = row_keys(table, assignment, seed)
    return np.bincount(np.searchsorted(keys, own[np.isin(own, keys)]), minlength=len(keys))


def _scored(rows: Rows, labelling: Labelling, folds: HashedFolds, classes: Labels, models: list[Comparison]) -> Sums:
    """Predict each row by the model that has not seen its fold."""
    found = Sums.none(len(classes))
    for table, assignment in labelling.known(rows):
        codes = np.searchsorted(classes, assignment.classes)[assignment.codes]
        indices, fold_of, shares = folds.of(table, assignment)
        weights = np.ones(len(indices)) if shares is None else shares
        for fold, model in enumerate(models):
            held = fold_of == fold
            if held.any():
                probabilities = model.posterior(table.taken(indices[held]))
                found = found.plus(Sums.of(codes[indices[held]], probabilities, weights[held]))
    return found
