"""Cross-validation: models predict rows of folds that they have not seen, in memory or out of core."""

import operator
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.folds import MOST, Frequent, HashedFolds, fold_seed
from likely.data.hashing import Keys, row_keys
from likely.data.labelled import LabelledRows, Labelling, warn_about_unlabelled
from likely.data.labels import read_assignment
from likely.data.rows import Rows
from likely.data.table import Block, Table
from likely.engines import rows_of, with_labels
from likely.ensemble.selection import SAMPLE
from likely.estimators import fitting
from likely.estimators.fitting import Plan
from likely.joint import Part
from likely.learn.one_pass import all_but_each, collect_folds, training_folds
from likely.model.evaluation import Evaluation, SummedEvaluation, Sums, check_folds, dealt
from likely.model.readers import read_first, read_texts
from likely.model.state import State
from likely.statistics import Assignment, JointStatistics, Labels, union


class Counted(NamedTuple):
    """What a first pass finds out."""

    labelled: int
    unlabelled: int
    """how many rows have a label, and have none"""
    classes: Labels
    """the labels, sorted"""
    frequent: Frequent
    """rows that come often, by their keys"""
    additive: bool
    """whether statistics of folds add up to those of several"""

    def plus(self, other: "Counted") -> "Counted":
        """Return what was found here and there."""
        return Counted(
            self.labelled + other.labelled,
            self.unlabelled + other.unlabelled,
            union(self.classes, other.classes),
            self.frequent.plus(other.frequent),
            self.additive and other.additive,
        )


def evaluate(
    plan: Plan, X: Any, y: Any, folds: int, sample_weight: Any, random_state: Any
) -> Evaluation | SummedEvaluation:
    """Return how well models of a plan predict rows that they have not seen."""
    if plan.rows == "texts":
        X, y, sample_weight, _ = fitting.texts_of(None, X, y, sample_weight, partly=True)
    elif plan.rows != "matrix":
        X, y = with_labels(X, y)
        if fitting.is_tabular(plan, X, y):
            rows = rows_of(X, missing=plan.missing)
            work = partial(_of_table, plan, folds=folds, random_state=random_state)
            return fitting.inferred(plan, work, rows, y, weights=sample_weight)
    table = read_texts(X) if plan.rows == "texts" else read_first(X)
    assignment = read_assignment(y, sample_weight, table.rows, partly=plan.partly())
    return _in_memory(plan, table, assignment, folds, random_state)


def _in_memory(plan: Plan, table: Table, assignment: Assignment, folds: int, random_state: Any) -> Evaluation:
    known = assignment.codes >= 0
    fold_of = np.full(table.rows, -1, dtype=np.int64)
    fold_of[known] = dealt(assignment.codes[known], folds, random_state)
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
        count = data.rows.reduce(partial(_counted, labelling=data.labelling, seed=seed, parts=parts), Counted.plus)
        many = count.labelled + count.unlabelled > SAMPLE
        if many and not plan.learns_unlabelled(count.labelled, count.unlabelled):
            check_folds(folds, count.labelled)
            warn_about_unlabelled(count.unlabelled, data.y)
            assigned = HashedFolds.assigned(int(folds), seed, *_common(data, seed, count))
            return _out_of_core(plan, data, assigned, count, parts)
    return _in_memory(plan, *data.all(partly=plan.partly()), folds, random_state)


def _parts_by_type(plan: Plan, data: LabelledRows) -> tuple[Part, ...] | None:
    """Return the parts of the joint if the declared types of columns alone decide on them; None if rows do."""
    if plan.chosen or not plan.by_type(data.schema):
        return None
    return plan.families(data.empty(), Assignment(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)))


def _out_of_core(
    plan: Plan, data: LabelledRows, folds: HashedFolds, count: Counted, parts: tuple[Part, ...] | None
) -> SummedEvaluation:
    if parts is not None and count.additive:
        learned = _learned_at_once(plan, data, folds, parts)
    else:
        learned = (fitting.learn_table(plan, data.without(folds.held_out(fold)))[0] for fold in range(folds.count))
    classes = count.classes
    models = [state.with_statistics(state.statistics.with_classes(classes)).comparison for state in learned]
    work = partial(_scored, labelling=data.labelling, folds=folds, classes=classes, models=models)
    sums = data.rows.reduce(work, Sums.plus)
    # A row that has shares in several folds was scored several times; those of all its copies are whole together.
    whole = sums._replace(rows=count.labelled, confusion=np.round(sums.confusion))
    return SummedEvaluation(classes, whole, folds.count)


def _learned_at_once(plan: Plan, data: LabelledRows, folds: HashedFolds, parts: tuple[Part, ...]) -> Iterator[State]:
    """Return for each fold what is learned from the others; statistics of all folds are collected in one pass."""
    pieces = data.rows.reduce(partial(_collected, labelling=data.labelling, folds=folds, parts=parts), _both)
    assert pieces is not None
    for statistics in all_but_each(pieces):
        yield plan.state(parts, statistics, plan.matrix(data.empty().columns), plan.priors)


def _counted(rows: Rows, labelling: Labelling, seed: str, parts: tuple[Part, ...] | None) -> Counted:
    nothing = Frequent(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
    found = Counted(0, 0, np.zeros(0, dtype="<U1"), nothing, True)
    for part in labelling.batches(rows, note=False):
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


def _common(data: LabelledRows, seed: str, count: Counted) -> tuple[Keys, NDArray[np.int64]]:
    """Return the keys of rows that come again and again, and how often each does, in all partitions."""
    keys, counts, lost = count.frequent
    least = max(1, count.labelled // MOST)
    maybe = counts + lost > least
    keys, counts = keys[maybe], counts[maybe]
    if lost and len(keys):
        counts = data.rows.reduce(partial(_copies, labelling=data.labelling, seed=seed, keys=keys), operator.add)
    return keys[counts > least], counts[counts > least]


def _copies(rows: Rows, labelling: Labelling, seed: str, keys: Keys) -> NDArray[np.int64]:
    """Return how often each of some keys comes."""
    found = np.zeros(len(keys), dtype=np.int64)
    for part in labelling.known(rows):
        own = row_keys(*part, seed)
        found += np.bincount(np.searchsorted(keys, own[np.isin(own, keys)]), minlength=len(keys))
    return found


def _collected(
    rows: Rows, labelling: Labelling, folds: HashedFolds, parts: tuple[Part, ...]
) -> list[JointStatistics] | None:
    """Collect the statistics of each fold; None if there are no rows."""
    found = None
    for table, assignment in labelling.known(rows):
        indices, fold_of, shares = folds.of(table, assignment)
        split = assignment.taken(indices)._replace(weights=shares)
        found = _both(found, collect_folds(table.taken(indices), split, fold_of, parts, folds.count))
    return found


def _both(one: list[JointStatistics] | None, other: list[JointStatistics] | None) -> list[JointStatistics] | None:
    if one is None or other is None:
        return other if one is None else one
    return list(map(operator.add, one, other))


def _scored(rows: Rows, labelling: Labelling, folds: HashedFolds, classes: Labels, models: list[Any]) -> Sums:
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
