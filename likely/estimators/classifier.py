"""What every generative classifier does, whatever its families: learn, merge, forget, and answer."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.labels import read_assignment
from likely.data.table import Columns, Table
from likely.engines.labelled import tell_of_unlabelled
from likely.estimators.kept import Kept
from likely.families import on_one_line
from likely.joint import Part
from likely.learn.one_pass import collect, training_folds
from likely.model.evaluation import Evaluation, SummedEvaluation, dealt
from likely.model.semi_supervised import Partly, check_unlabelled
from likely.model.state import Knowledge, few
from likely.statistics import Assignment, JointStatistics, Labels


class GenerativeClassifier(Kept):
    """A classifier that models p(x, y). Subclasses say which family each column follows."""

    priors: Any
    unlabelled: Any = None
    """How much a row without a label counts; None if each must have one."""

    @abstractmethod
    def _parts(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        """Return the family of every block of columns."""

    def _given_priors(self) -> Any:
        """Return the class weights that were given, in any form that ``read_priors`` takes."""
        return self.priors

    @property
    def unlabelled_(self) -> float | None:
        """How much each row without a label counted in the last ``fit``.

        None if it was given none, left them out, or if something was learned, forgotten or loaded since.
        """
        found: float | None = self._known().derived.get("unlabelled")
        return found

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            rows × columns of numbers; NaN is a missing cell
        y
            a label for each row; None or NaN where it is not known, if the model has ``unlabelled``
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        table = self._read_first(X)
        knowledge = self._learned(table, y, sample_weight)
        self._solve_now(table, knowledge)
        self._keep(table, knowledge)
        self._note(table, sample_weight, more=False)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come.

        ``classes`` may name labels that will come later; labels not named are learned when they come.
        """
        labels = None if classes is None else _read_classes(classes)
        if not hasattr(self, "_knowledge"):
            table = self._read_first(X)
            self._keep(table, self._learned(table, y, sample_weight, labels))
            self._note(table, sample_weight, more=False)
            return self
        known = self._knowledge
        table = self._read_next(X)
        statistics = known.statistics + known.collect(table, read_assignment(y, sample_weight, table.rows))
        self._replace(known.with_statistics(statistics if labels is None else statistics.with_classes(labels)))
        self._note(table, sample_weight, more=True)
        return self

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are.
        """
        knowledge = self._known()
        statistics = knowledge.statistics
        for other in others:
            if type(other) is not type(self) or not _same(self.get_params(), other.get_params()):
                raise ValueError(
                    f"expected a model with the same parameters, {on_one_line(self)}, got {on_one_line(other)}: "
                    "fit both alike"
                )
            theirs = other._known()
            shapes = [[(type(part.family), part.columns) for part in known.parts] for known in (knowledge, theirs)]
            if theirs.columns != knowledge.columns:
                raise ValueError(
                    f"expected a model of {_described(knowledge.columns)}, got one of {_described(theirs.columns)}"
                )
            if shapes[0] != shapes[1]:
                raise ValueError(_other_families(knowledge, theirs))
            statistics = statistics + theirs.statistics
        self._replace(knowledge.with_statistics(statistics))
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        self._known()
        table = self._read_next(X)
        self._forget(table, read_assignment(y, sample_weight, table.rows))
        return self

    def _forget(self, table: Table, assignment: Assignment) -> None:
        self._without(self._known().collect(table, assignment))

    def _without(self, gone: JointStatistics) -> None:
        """Take statistics away."""
        knowledge = self._known()
        statistics = knowledge.statistics - gone
        if not statistics.weights.sums["weight"].any():
            raise ValueError(
                "expected some rows to be left, got a request to forget all of them: use a new model instead"
            )
        self._replace(knowledge.with_statistics(statistics))

    def _learned(self, table: Table, y: Any, sample_weight: Any, classes: Labels | None = None) -> Knowledge:
        partly = check_unlabelled(self.unlabelled) is not None
        knowledge = self._begun_partly(table, read_assignment(y, sample_weight, table.rows, partly=partly))
        statistics = knowledge.statistics
        if classes is not None:
            unknown = np.setdiff1d(statistics.classes, classes)
            if len(unknown):
                raise ValueError(f"expected labels among classes={classes.tolist()}, got {unknown.tolist()[0]!r} in y")
            knowledge = knowledge.with_statistics(statistics.with_classes(classes))
        return knowledge

    def _begun_partly(self, table: Table, assignment: Assignment) -> Knowledge:
        """Learn first rows, of which some may have no label: their code is −1."""
        is_known = assignment.codes >= 0
        if is_known.all():
            return self._begun(table, assignment)
        counted = np.full(table.rows, True) if assignment.weights is None else assignment.weights > 0
        known, count = int((is_known & counted).sum()), int((~is_known & counted).sum())
        if not known:
            raise ValueError("expected a positive weight in some row that has a label, got only zeros")
        rows = Partly(table, assignment, self._begun)
        if not self._learns_unlabelled(known, count):
            tell_of_unlabelled(count)
            return rows.expected(0.0)
        knowledge, weight = rows.learned(check_unlabelled(self.unlabelled))
        if weight == 0:
            tell_of_unlabelled(count, why=": labels that are held back are expected no better with them")
        knowledge.derived["unlabelled"] = weight
        return knowledge

    def _learns_unlabelled(self, known: int, count: int) -> bool:
        """Say whether so many rows without a label, beside others, are worth learning from."""
        unlabelled = check_unlabelled(self.unlabelled)
        return count >= known if unlabelled == "auto" else bool(count and unlabelled)

    def _begun(self, table: Table, assignment: Assignment, guessed: NDArray[np.bool_] | None = None) -> Knowledge:
        """Learn first rows: they decide what every column follows. Nothing is judged by those that were guessed."""
        parts, statistics = self._first(table, assignment, self._parts(table, assignment))
        return Knowledge(parts, statistics, table.columns, self._given_priors())

    def _first(
        self, table: Table, assignment: Assignment, parts: tuple[Part, ...]
    ) -> tuple[tuple[Part, ...], JointStatistics]:
        """Return the parts of the joint and the statistics of first rows."""
        return parts, collect(table, assignment, parts)

    def _solve_now(self, table: Table, knowledge: Knowledge) -> None:
        """Solve what ``fit`` has learned, so that what cannot be solved is said at once."""
        knowledge.joint  # noqa: B018

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation | SummedEvaluation:
        """Return how well models of this kind predict rows that they have not seen. The model itself stays as it is.

        The rows are dealt into folds, statistics are collected fold by fold in one pass, and each fold is predicted by
        a model of the others.

        >>> from likely import NaiveBayes
        >>> X = [[1.0], [1.5], [2.0], [4.0], [4.5], [5.0]]
        >>> NaiveBayes().evaluate(X, ["a", "a", "a", "b", "b", "b"], folds=3).accuracy
        1.0
        """
        table = self._read_first(X)
        partly = check_unlabelled(self.unlabelled) is not None
        assignment = read_assignment(y, sample_weight, table.rows, partly=partly)
        return self._evaluated(table, assignment, folds, random_state)

    def _evaluated(self, table: Table, assignment: Assignment, folds: int, random_state: Any) -> Evaluation:
        known = assignment.codes >= 0
        places = np.full(table.rows, -1, dtype=np.int64)
        places[known] = dealt(assignment.codes[known], folds, random_state)
        probabilities = np.empty((table.rows, len(assignment.classes)))
        for fold, knowledge in enumerate(self._without_each_fold(table, assignment, places)):
            held = places == fold
            probabilities[held] = knowledge.comparison.posterior(table.taken(held))
        weights = np.ones(table.rows) if assignment.weights is None else assignment.weights
        codes = assignment.codes[known].astype(np.int64)
        return Evaluation(assignment.classes, codes, probabilities[known], weights[known], folds)

    def _without_each_fold(
        self, table: Table, assignment: Assignment, places: NDArray[np.int64]
    ) -> Iterator[Knowledge]:
        """Return for each fold what is learned from the others, and from rows without a label, which are in none."""
        # What is chosen by the rows is chosen without the fold, too.
        chosen = getattr(self, "calibrate", False) or getattr(self, "components", 1) != 1
        if chosen or (places < 0).any():
            for fold in range(int(places.max()) + 1):
                others = places != fold
                yield self._begun_partly(table.taken(others), assignment.taken(others))
            return
        parts = self._parts(table, assignment)
        for statistics in training_folds(table, assignment, places, parts):
            yield Knowledge(parts, statistics, table.columns, self._given_priors())


def _read_classes(classes: Any) -> Labels:
    try:
        return np.unique(np.asarray(classes))
    except TypeError:
        raise ValueError(f"expected labels of one kind in classes, got {on_one_line(classes)}") from None


def _same(one: Any, other: Any) -> bool:
    """Say whether two parameters are equal, arrays by their elements."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) or isinstance(other, np.ndarray) else one == other


def _other_families(one: Knowledge, other: Knowledge) -> str:
    """Say which column is of another family in two models."""
    names = [
        {
            j: part.family.name
            for part in known.parts
            if part.encoding is None
            for j in (range(known.columns.width) if part.columns is None else part.columns)
        }
        for known in (one, other)
    ]
    for j in range(one.columns.width):
        own, theirs = names[0].get(j, "ignore"), names[1].get(j, "ignore")
        if own != theirs:
            name = one.columns.name(j)
            return (
                f"expected a model of the same families, got {own!r} and {theirs!r} in {one.columns.listed([j])}: fit "
                f"both with columns={{{name!r}: {own!r}}}, or let one go on where the other began"
            )
    return "expected a model of the same families, got one of others: fit both with the same columns="


def _described(columns: Columns) -> str:
    return f"{columns.width} columns" if columns.names is None else f"the columns {few(columns.names)}"
