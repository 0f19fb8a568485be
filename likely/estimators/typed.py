"""Classifiers of tables as they are: columns of any type, holes, names in any order, from frames, records and files."""

import operator
from functools import partial, reduce
from typing import Any, Self

import numpy as np

from likely.data.rows import Rows
from likely.data.schema import Schema, read_target
from likely.data.table import Table
from likely.engines import with_labels
from likely.engines.labelled import (
    collected,
    is_matrix,
    labelled,
    labelled_whole,
    tell_of_unlabelled,
    with_weight,
)
from likely.engines.sampling import sampled
from likely.ensemble.selection import SAMPLE
from likely.estimators.evaluated_rows import StreamedClassifier
from likely.estimators.tables import TableQuestions
from likely.learn.one_pass import collect
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.semi_supervised import check_unlabelled
from likely.model.state import Knowledge
from likely.statistics import Assignment


class TableClassifier(TableQuestions, StreamedClassifier):
    """A classifier that takes matrices of numbers, and tables whose columns have types.

    Attributes
    ----------
    schema_
        what the columns of a table are; of a matrix of numbers there is none
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            a matrix of numbers, in which NaN is a missing cell; or a table: a frame of pandas or Polars, an Arrow
            table, a DuckDB relation, a list of dicts, or the path of a CSV, Parquet, Arrow or JSON lines file; or an
            array or frame of Dask, or a frame of Spark or Ray, which is learned where it lies
        y
            a label for each row, of Dask's blocks in as many blocks; or, if X is a table, the name of the column that
            holds it
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        if not (self._is_table(X) or isinstance(y, str)):
            super().fit(X, y, sample_weight)
            self._keep_schema(None, y)
            return self
        X, y = with_labels(X, y, sample_weight)
        rows, y, sample_weight = with_weight(self._opened(X), y, sample_weight)
        learn = partial(self._collected, rows=rows, y=y, sample_weight=sample_weight, known=None)
        schema, (knowledge, last) = self._learned_as_table(rows, y, learn)
        self._lowest = None
        self._solve_now(last, knowledge)
        self._keep(last, knowledge)
        self._keep_schema(None if is_matrix(rows) else schema, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come.

        What the columns are is decided by the first rows. ``classes`` may name labels that will come later; labels not
        named are learned when they come.
        """
        known = getattr(self, "_knowledge", None)
        if not (hasattr(self, "schema_") if known else self._is_table(X) or isinstance(y, str)):
            return super().partial_fit(X, y, classes, sample_weight)
        X, y = with_labels(X, y, sample_weight)
        rows, y, sample_weight = with_weight(self._opened(X), y, sample_weight)
        learn = partial(self._collected, rows=rows, y=y, sample_weight=sample_weight, known=known)
        if known:
            schema = self.schema_.reaching(rows)
            knowledge, last = learn(schema)
        else:
            schema, (knowledge, last) = self._learned_as_table(rows, y, learn)
        if classes is not None:
            statistics = knowledge.statistics.with_classes(np.unique(np.asarray(classes)))
            knowledge = knowledge.with_statistics(statistics)
        if known:
            self._replace(knowledge)
            self.schema_ = schema
        else:
            self._keep(last, knowledge)
            self._keep_schema(None if is_matrix(rows) else schema, y)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        if not hasattr(self, "schema_"):
            return super().forget(X, y, sample_weight)
        knowledge = self._known()
        batches = labelled(self.schema_, self._opened(X), y, sample_weight)
        gone = [knowledge.collect(table, assignment) for table, assignment in batches]
        if gone:
            self._without(reduce(operator.add, gone))
        return self

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are.
        """
        for other in others:
            one, two = getattr(self, "schema_", None), getattr(other, "schema_", None)
            if (one and one.essence) != (two and two.essence):
                raise ValueError("expected a model of the same columns and kinds, got another: see schema_ of both")
        super().merge(*others)
        for other in others:
            if hasattr(self, "schema_"):
                self.schema_ = self.schema_.spanning(other.schema_)
            if self._lowest is not None:
                self._lowest = None if other._lowest is None else np.minimum(self._lowest, other._lowest)
        return self

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation | SummedEvaluation:
        """Return how well models of this kind predict rows that they have not seen. The model itself stays as it is.

        The rows are dealt into folds, statistics are collected fold by fold in one pass, and each fold is predicted by
        a model of the others. Of many rows in files, or in partitions of an engine, whose labels are in a column, a
        hash of their content says which fold they are in, they stay where they lie, and only the measures come back.
        """
        X, y = with_labels(X, y)
        if not (self._is_table(X) or isinstance(y, str)):
            return super().evaluate(X, y, folds=folds, sample_weight=sample_weight, random_state=random_state)
        rows = self._opened(X)
        settings = {"y": y, "sample_weight": sample_weight, "folds": folds, "random_state": random_state}
        return self._learned_as_table(rows, y, partial(self._evaluated_of, rows, **settings))[1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right; ``y`` may be the name of a column of X."""
        X, y = with_labels(X, y) if hasattr(X, "columns") else (X, y)
        if isinstance(y, str):
            X = self._opened(X)
            y = np.concatenate([read_target(batch, y) for batch in X.batches()])
        return super().score(X, y, sample_weight)

    def _learned_of(self, rows: Rows, schema: Schema, y: Any, sample_weight: Any) -> Knowledge:
        return self._collected(schema, rows, y, sample_weight, None)[0]

    def _collected(
        self, schema: Schema, rows: Rows, y: Any, sample_weight: Any, known: Knowledge | None, *, note: bool = True
    ) -> tuple[Knowledge, Table]:
        """Collect the statistics of all rows, batch by batch. Returns the knowledge and the last batch.

        Rows from all over the table decide what every column follows: the first ones may be unlike the others. To learn
        from rows without a label, all are held.
        """
        partly = check_unlabelled(self.unlabelled) is not None
        if known is None and (parts := self._parts_by_kind(schema, rows)) is not None:
            found = collected(rows, schema, y, sample_weight, partial(collect, parts=parts), partly=partly)
            table = schema.table(rows.schema.empty_table(), note=False)
            if found.statistics is None:
                raise ValueError("expected rows with a label, got none")
            if not self._learns_unlabelled(found.labelled, found.unlabelled):
                tell_of_unlabelled(found.unlabelled, y)
                return Knowledge(parts, found.statistics, table.columns, self._given_priors()), table
        if known is None:
            sample = sampled(schema, rows, y, sample_weight, SAMPLE, getattr(self, "random_state", 0), partly=partly)
            if self._learns_unlabelled(sample.labelled, sample.unlabelled):
                every = labelled_whole(schema, rows, y, sample_weight, partly=True)
                return self._begun_partly(*every), every.table
            tell_of_unlabelled(sample.unlabelled, y)
            if sample.whole:
                return self._begun(*sample.rows), sample.rows.table
            known, note = self._begun(*sample.rows), False
            nothing = Assignment(
                sample.rows.assignment.classes, np.full(sample.rows.table.rows, -1, dtype=np.int32)
            )  # what was chosen stays, and all rows are still to be learned
            statistics = known.collect(sample.rows.table, nothing)
        else:
            statistics = known.statistics
        more = collected(rows, schema, y, sample_weight, known.collector, note=note, partly=False)
        if more.statistics is None:
            raise ValueError("expected rows with a label, got none")
        if note:
            tell_of_unlabelled(more.unlabelled, y)
        return known.with_statistics(statistics + more.statistics), schema.table(rows.schema.empty_table(), note=False)
