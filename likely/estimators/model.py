"""The joint of a whole table, without a target: every question is answered from it."""

from dataclasses import KW_ONLY, dataclass
from functools import partial, reduce
from typing import Any, ClassVar, Literal, Self

import numpy as np

from likely.data.arrow import check_names
from likely.data.labels import read_weights
from likely.data.progress import ProgressLine
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import CellBuffer
from likely.density.combination import COMBINED, KINDS
from likely.density.table import TableJoint
from likely.engines import check_no_weights, engine_of
from likely.estimators import fitting
from likely.estimators.base import Estimator, tags_of
from likely.estimators.fitting import Plan
from likely.estimators.laws import Laws
from likely.families import on_one_line
from likely.learn.hidden import Hidden
from likely.learn.out_of_core import HiddenRows
from likely.model.evaluation import shuffled_folds
from likely.model.questions import GROUP
from likely.model.readers import Reader, TableReader
from likely.model.table_evaluation import TableEvaluation, TableSums
from likely.model.table_questions import TableQuestions, TableState

Kind = Literal["combined", "tree", "trees", "hidden trees", "scores", "tied scores"]
_MEMBERS = {"combined": COMBINED} | {kind: ((kind, most),) for kind, most in KINDS.items()}


@dataclass(eq=False, repr=False)
class Model(TableQuestions, Estimator):
    """One joint of the whole table, p(x): fill cells, draw rows, find outliers, predict any column given any others.

    There is no target. Columns may be numbers, whole numbers, yes and no, categories, dates and texts, and cells may be
    missing anywhere. Numbers become repeated values ("atoms") and bins of equal weight, categories are as they are; the
    joint of these is a combination, weighted by the likelihood of rows held out: a mixture of Chow–Liu trees, a tree of
    hidden states, and Gaussian mixtures of normal scores with a tree of categories.

    Parameters
    ----------
    kind
        "combined", or one member by itself: "tree" (one Chow–Liu tree, whose counts add exactly), "trees" (a mixture
        of them), "hidden trees", "scores" (a Gaussian mixture of normal scores), or "tied scores" (one of many more
        components, which share one covariance: for few rows)
    columns
        what columns are, by name: "number", "integer", "category", "boolean", "date", "text" or "ignore"; "auto": by
        themselves
    missing
        text or numbers that stand for a missing cell of a table
    random_state
        the seed of first groups, and of rows held out
    progress
        whether a fit that takes some seconds shows on a terminal, in one line, how far it is

    Attributes
    ----------
    members_
        the members, and the weight of each
    group_weights_, group_profiles_
        how frequent the groups of rows are, and what each is like, column by column
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any
    schema_
        what the columns of a table are

    Examples
    --------
    >>> from likely import Model
    >>> from likely.datasets import penguins
    >>> model = Model().fit(penguins())
    >>> rows = [{"flipper_length_mm": 215.0}, {"flipper_length_mm": 185.0, "island": "Dream"}]
    >>> model.predict(rows, of="species").tolist()
    ['Gentoo', 'Adelie']
    >>> heavy = model.predict(rows, of="body_mass_g")
    >>> bool(heavy[0] > heavy[1] + 500)
    True
    """

    laws: ClassVar[Laws] = Laws(weights="reference", batches="reference", merge="reference", forget="reference")
    answers: ClassVar[str] = GROUP

    kind: Kind = "combined"
    _: KW_ONLY
    columns: Any = "auto"
    missing: Any = ()
    random_state: int = 0
    progress: bool = True

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint of rows X, forgetting all that was learned before.

        Parameters
        ----------
        X
            a matrix of numbers, in which NaN is a missing cell; or a table, as ``NaiveBayes`` takes it
        y
            not used
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        kinds = self._kinds()
        if isinstance(y, str):
            raise ValueError(
                f"expected no target, got {on_one_line(y)}: Model learns all columns, and any can be asked about by of="
            )
        reader, rows = self._opened(X, sample_weight)
        if rows.table.rows == 0:
            raise ValueError("expected at least one row to learn from, got none")
        if rows.weights is not None and not (rows.weights > 0).any():
            raise ValueError("expected a positive weight in some row, got only zeros")
        with ProgressLine(self.progress) as line:
            joint = TableJoint.fit(rows.table, rows.weights, kinds, self._seed(), line)
            if isinstance(rows, HiddenRows) and rows.everywhere is not None:
                blank = joint.advanced()
                data = rows.everywhere
                work = partial(_learned, schema=data.schema, joint=blank)
                joint = data.rows.reduce(work, TableJoint.merged)
        self._state = TableState(reader, joint)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows: they are expected under what the first rows decided, the stored reference.

        Bins, structures and weights of members stay; of ``kind="tree"`` the structure is chosen anew, so that the model
        is that of ``fit`` but for bins. A refit learns more than this: do it when there is time.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        self._state = self._with(X, sample_weight)
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearn rows that were learned: their sums, expected under the same reference, are subtracted."""
        state = self.fitted()
        self._state = TableState(state.reader, self._with(X, sample_weight, -1.0).joint.checked(state.joint))
        return self

    def _with(self, X: Any, sample_weight: Any, sign: float = 1.0) -> TableState:
        """Return the state that has learned more rows, or forgotten some; those in partitions are where they are."""
        state = self.fitted()
        reader, joint = state.reader, state.joint
        if isinstance(reader, TableReader) and engine_of(X) is not None:
            check_no_weights(X, sample_weight)
            rows = reader.opened(X)
            found = rows.reduce(partial(_learned, schema=reader.schema, joint=joint.emptied()), TableJoint.merged)
            return TableState(reader.with_ranges_in(rows), joint.merged(found, sign))
        reader, batch = fitting.more_hidden(reader, X, sample_weight)
        return TableState(reader, joint.plus(batch.table, batch.weights, sign))

    def merge(self, *others: Self) -> Self:
        """Learn what other models with the same reference have learned: copies that ``emptied`` gave."""
        state = self.fitted()
        joint, reader = state.joint, state.reader
        for other in others:
            alike = type(other) is type(self) and reader.columns == other.fitted().columns
            if not alike or not joint.same_reference(other.fitted().joint):
                raise ValueError(
                    f"expected a model with the same reference, got {on_one_line(other)} fitted by itself: let copies "
                    "from emptied() learn the other rows by partial_fit, and merge those"
                )
            joint, reader = joint.merged(other.fitted().joint), reader.merged(other.fitted().reader)
        self._state = TableState(reader, joint)
        return self

    def emptied(self) -> Self:
        """Return a copy that has the same reference, and knows no rows."""
        state = self.fitted()
        copy = type(self)(**self.get_params())
        copy._state = TableState(state.reader, state.joint.emptied())
        return copy

    def evaluate(
        self, X: Any, *, folds: int | None = None, sample_weight: Any = None, random_state: Any = 0
    ) -> TableEvaluation:
        """Return how good the joint is on other rows: log p(x), and each cell predicted by the others of its row.

        Without ``folds`` it is the joint as it is fitted, which should not have learned these rows; they may be in
        files or in partitions of an engine. With ``folds`` the rows are assigned to so many cross-validation folds, in
        memory, and each is predicted by a model of the others; the model itself stays as it is, fitted or not.

        Parameters
        ----------
        X
            rows, as ``fit`` takes them
        folds
            into how many cross-validation folds they are split
        sample_weight
            how much each row counts
        random_state
            the seed by which rows are assigned to folds

        Examples
        --------
        >>> from likely import Model
        >>> from likely.datasets import penguins
        >>> found = Model("tree").evaluate(penguins(), folds=3)
        >>> found.measures["species"]["accuracy"] > 0.9
        True
        """
        if folds is None:
            return TableEvaluation(self._measured(X, sample_weight))
        kinds, seed = self._kinds(), self._seed()
        reader, rows = self._opened(X, sample_weight, in_memory=True)
        table, weights = rows.table, rows.weights
        if weights is not None:
            table, weights = table.taken(weights > 0), weights[weights > 0]
        fold_of = shuffled_folds(np.zeros(table.rows, dtype=np.int64), folds, random_state)
        found = []
        with ProgressLine(self.progress) as line:
            for fold in range(folds):
                held = fold_of == fold
                own, others = (None, None) if weights is None else (weights[held], weights[~held])
                joint = TableJoint.fit(table.taken(~held), others, kinds, seed, line)
                found.append(TableSums.of(joint, reader, table.taken(held), own))
        return TableEvaluation(reduce(TableSums.plus, found), int(folds))

    def _measured(self, X: Any, sample_weight: Any) -> TableSums:
        """Add up over rows what is measured of the joint as it is fitted."""
        state = self.fitted()
        reader, joint = state.reader, state.joint
        check_no_weights(X, sample_weight)
        if sample_weight is not None:
            table = reader.read(X)
            found = TableSums.of(joint, reader, table, read_weights(sample_weight, table.rows))
        elif isinstance(reader, TableReader) and engine_of(X) is not None:
            work = partial(_measures, reader=reader, joint=joint)
            found = reader.opened(X).reduce(work, TableSums.plus)
        else:
            parts = [TableSums.of(joint, reader, table, None) for table in reader.batches(X)]
            found = reduce(TableSums.plus, parts)
        if not found.rows:
            raise ValueError("expected at least one row to evaluate, got none")
        return found

    def plan(self) -> Plan:
        """Return what is to be fitted."""
        return Plan("Model", lambda *_: (), "table", columns=self.columns, missing=self.missing, count_dates=True)

    @property
    def members_(self) -> list[tuple[str, float]]:
        """The kind and the weight of every member."""
        joint = self.fitted().joint
        return [(m.kind, float(w)) for m, w in zip(joint.members, joint.weights, strict=True)]

    def __str__(self) -> str:
        if not self.__sklearn_is_fitted__():
            return repr(self)
        joint = self.fitted().joint
        shown = ", ".join(f"{kind} × {weight:.2f}" for kind, weight in self.members_)
        return f"{self!r}, {joint.rows:,.6g} rows of {len(joint.columns)} columns\nmembers: {shown}"

    def _opened(self, X: Any, sample_weight: Any, *, in_memory: bool = False) -> tuple[Reader, Hidden]:
        """Open rows to learn from, whose columns are found by their names: each needs one of its own."""
        check_no_weights(X, sample_weight)
        reader, rows = fitting.open_hidden(self.plan(), X, sample_weight, in_memory=in_memory)
        check_names(reader.columns.names or (), "the table")
        return reader, rows

    def _kinds(self) -> tuple[tuple[str, int], ...]:
        if not isinstance(self.kind, str) or self.kind not in _MEMBERS:
            raise ValueError(f"expected kind among {list(_MEMBERS)}, got {on_one_line(self.kind)}")
        return _MEMBERS[self.kind]

    def _seed(self) -> int:
        if isinstance(self.random_state, bool) or not isinstance(self.random_state, int | np.integer):
            raise ValueError(f"expected random_state as a whole number, got {on_one_line(self.random_state)}")
        return int(self.random_state)

    def __sklearn_tags__(self) -> Any:
        return tags_of("density_estimator")


def _measures(rows: Rows, reader: TableReader, joint: TableJoint) -> TableSums:
    tables = reader.schema.tables(rows, note=False, predicting=True)
    return reduce(TableSums.plus, (TableSums.of(joint, reader, table, None) for table in tables))


def _learned(rows: Rows, schema: Schema, joint: TableJoint) -> TableJoint:
    for table in schema.tables(rows, CellBuffer()):
        joint = joint.plus(table, None)
    return joint
