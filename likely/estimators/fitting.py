"""The pipeline of every fit: open → infer → sample → choose → collect → solve, whatever the source and the estimator.

An estimator hands over a plan, and gets back the state that it then holds. Arrays, frames, files, streams and
partitions of engines all come through here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.data.detect import is_matrix, is_table, is_typed
from likely.data.labelled import Collected, LabelledRows, Labelling, as_arrow_table, warn_about_unlabelled, with_weight
from likely.data.labels import read_assignment, read_weights
from likely.data.rows import Rows
from likely.data.schema import Schema, UnlikeSampleError, warn_about_columns, warn_about_labels
from likely.data.table import Columns, Table
from likely.engines import rows_of, with_labels
from likely.ensemble.selection import SAMPLE, same, same_members
from likely.families import on_one_line
from likely.joint import Part
from likely.learn.hidden import Hidden
from likely.learn.one_pass import collect
from likely.learn.out_of_core import HiddenRows, any_missing, with_missing_cells
from likely.messages import Advice, Setting
from likely.model.readers import (
    MatrixReader,
    Reader,
    TableReader,
    TextColumn,
    TextReader,
    numbers_of,
    read_first,
    read_texts,
    text_table,
)
from likely.model.semi_supervised import PartiallyLabelled, check_unlabelled
from likely.model.state import State, few
from likely.statistics import Assignment, JointStatistics

Guessed = NDArray[np.bool_] | None
"""Which labels were guessed: nothing is judged by these rows."""
Learned = TypeVar("Learned")


class FirstFit(NamedTuple):
    """What first rows have decided: the family of every block of columns, and their statistics."""

    parts: tuple[Part, ...]
    statistics: JointStatistics


def _always(_: object) -> bool:
    return True


@dataclass(frozen=True)
class Plan:
    """What an estimator asks of a fit."""

    estimator: str
    """its name, for messages"""
    families: Callable[[Table, Assignment], tuple[Part, ...]]
    """which family the columns of a table follow: of rows and their classes, the blocks of the joint"""
    rows: Literal["matrix", "numbers", "table", "texts"] = "matrix"
    """what may be learned from beside a matrix: a "table" of typed columns, one of "numbers", "texts", or
    nothing else
    """
    columns: Any = "auto"
    missing: Any = ()
    """what was said of the columns of a table, and of its missing cells"""
    by_type: Callable[[Schema], bool] = _always
    """whether the declared types of the columns alone decide on the families, under a schema"""
    begin: Callable[[Table, Assignment, tuple[Part, ...], Guessed], FirstFit] | None = None
    """what first rows decide, in place of the families alone: components of classes, exponents of words"""
    compare: Callable[[State, Table, Assignment, Guessed], State] | None = None
    """what is to compare classes, added to the state of first rows: the ensemble"""
    answer: Callable[[State, Table, Assignment], State] | None = None
    """what is to answer all other questions, added to the state of first rows: a joint of the whole table"""
    count_dates: bool = False
    """whether a date of a table is one number, instead of its parts"""
    chosen: bool = False
    """whether first rows decide more than the families, so that cross-validation must choose anew in every fold"""
    expects_missing: bool = False
    """whether missing cells take expected statistics, as under a full covariance, and all rows are needed for them"""
    priors: Any = None
    unlabelled: Any = None
    random_state: Any = 0
    """parameters of the estimator"""
    collect: Callable[[Table, Assignment], Any] | None = None
    finish: Callable[[Any], FirstFit] | None = None
    """of texts that are not all held: what learns from some of them, also on workers, and what is made of that"""
    check: Callable[[Table, State], None] | None = None
    """what is checked of a fitted state, given the last rows, beside that it can be solved"""
    state: Callable[..., State] = State
    reader: Callable[..., MatrixReader] = MatrixReader
    """what the state is made by, and the reader of a matrix"""
    signed: bool = False
    """whether errors about cells name the estimator, as scikit-learn's do"""

    def partially_labelled(self) -> bool:
        """Say whether labels may be missing, or raise if ``unlabelled`` is not said well."""
        return check_unlabelled(self.unlabelled) is not None

    def learns_unlabelled(self, known: int, count: int) -> bool:
        """Say whether so many rows without a label, beside others, are worth learning from."""
        unlabelled = check_unlabelled(self.unlabelled)
        return count >= known if unlabelled == "auto" else bool(count and unlabelled)

    def matrix(self, columns: Columns) -> MatrixReader:
        """Return the reader of a matrix."""
        return self.reader(self.estimator, columns, missing=self.missing, signed=self.signed)

    def first_reader(self, columns: Columns) -> Reader:
        """Return the reader of rows in memory."""
        return TextReader(self.estimator) if self.rows == "texts" else self.matrix(columns)

    def overrides(self) -> dict[str, str]:
        """Return the types of columns that were given by name."""
        if isinstance(self.columns, list | tuple | np.ndarray):
            raise ValueError(f"expected what columns are by name, as a dict, for a table, got {self.columns!r}")
        if not isinstance(self.columns, Mapping):
            return {}
        return {name: str(getattr(family, "name", family)) for name, family in self.columns.items()}


def fit(plan: Plan, X: Any, y: Any, sample_weight: Any = None, *, more: bool = False) -> State:
    """Learn from rows X and their labels y, and check what was learned, unless ``more`` rows are to come."""
    if plan.rows not in ("matrix", "texts"):
        X, y = with_labels(X, y, sample_weight)
    if plan.rows == "texts" and not more:
        state, last = _from_texts(plan, X, y, sample_weight), text_table(())
    elif is_tabular(plan, X, y):
        rows = rows_of(X, missing=plan.missing)
        if plan.rows == "table":  # rows of weight 0 are left out
            rows, y, sample_weight = with_weight(rows, y, sample_weight)
        learn = partial(learn_table, plan)
        state, last = inferred(
            plan, learn, rows, _checked_labels(y), sample_weight, partially_labelled=plan.partially_labelled()
        )
    else:
        last = read_texts(X) if plan.rows == "texts" else read_first(X)
        if plan.rows == "texts" and last.rows == 0:
            raise ValueError("expected at least one text, got none")
        last = replace(last, reader=plan.estimator) if plan.signed else last
        state = begin(
            plan, last, read_assignment(y, sample_weight, last.rows, partially_labelled=plan.partially_labelled())
        )
        if plan.rows == "table" and isinstance(state.reader, MatrixReader):
            state = replace(state, reader=state.reader.noting(last, sample_weight, more=False))
    if not more:
        if plan.check is not None:
            plan.check(last, state)
        state.joint  # noqa: B018  what cannot be solved is said at once
    return state


def partial_fit(
    plan: Plan, state: State | None, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
) -> State:
    """Learn from more rows, or from first ones: what these decided stays."""
    column = None
    if plan.rows == "texts":
        X, y, sample_weight, column = texts_of(state, X, y, sample_weight, partially_labelled=state is None)
    elif plan.rows != "matrix" and (state is None or isinstance(state.reader, TableReader)):
        X, y = with_labels(X, y, sample_weight)
    try:
        labels = None if classes is None else np.unique(np.asarray(classes))
    except TypeError:
        raise ValueError(f"expected labels of one kind in classes, got {on_one_line(classes)}") from None
    if state is None:
        found = fit(plan, X, y, sample_weight, more=True)
        by_name = is_tabular(plan, X, y)
        if labels is not None and not by_name and len(unknown := np.setdiff1d(found.classes, labels)):
            raise ValueError(f"expected labels among classes={labels.tolist()}, got {unknown.tolist()[0]!r} in y")
        if column is not None:
            found = replace(found, reader=TextReader(plan.estimator, column_name=column))
    elif (schema := state.reader.schema_by_name(y)) is not None:
        rows, y, sample_weight = with_weight(state.reader.opened(X), y, sample_weight)
        data = LabelledRows(rows, Labelling(schema, _checked_labels(y), sample_weight, partially_labelled=False))
        found = _with_all(state, state.statistics, data, note=True)
        if isinstance(found.reader, TableReader):
            found = replace(found, reader=found.reader.with_ranges_in(rows))
    else:
        table = state.reader.read(X)
        more = state.collect(table, read_assignment(y, sample_weight, table.rows))
        found = state.with_statistics(state.statistics + more)
        if isinstance(found.reader, MatrixReader):
            found = replace(found, reader=found.reader.noting(table, sample_weight))
    if labels is not None:
        found = found.with_statistics(found.statistics.with_classes(labels))
    found.given_weights  # noqa: B018  class weights that do not fit the classes are refused at once
    return found


def forget(state: State, X: Any, y: Any, sample_weight: Any = None) -> State:
    """Unlearn rows: their statistics are subtracted."""
    if isinstance(state.reader, TextReader):
        X, y, sample_weight, _ = texts_of(state, X, y, sample_weight, partially_labelled=False)
    check_one_component(state, "forget")
    if (schema := state.reader.schema_by_name(y)) is not None:
        labelling = Labelling(schema, _checked_labels(y), sample_weight, partially_labelled=False)
        found = LabelledRows(state.reader.opened(X), labelling).collect(state.collect)
        if found.statistics is None:
            return state
        warn_about_unlabelled(found.unlabelled, y)
        gone = found.statistics
    else:
        table = state.reader.read(X)
        gone = state.collect(table, read_assignment(y, sample_weight, table.rows))
    statistics = state.statistics - gone
    if not statistics.weights.sums["weight"].any():
        raise ValueError("expected some rows to be left, got a request to forget all of them: use a new model instead")
    return state.with_statistics(statistics)


def merge(model: Any, others: Iterable[Any]) -> State:
    """Return the state of all that several models have learned, or raise if they were not fitted alike."""
    state: State = model.fitted()
    check_one_component(state, "merge")
    for other in others:
        if type(other) is not type(model) or not same(model.get_params(), other.get_params()):
            raise ValueError(
                f"expected a model with the same parameters, {on_one_line(model)}, got {on_one_line(other)}: fit both "
                "alike"
            )
        state = _merged(state, other.fitted())
    return state


def _merged(state: State, theirs: State) -> State:
    schemas = [getattr(each.reader, "schema", None) for each in (state, theirs)]
    if (schemas[0] and schemas[0].fingerprint) != (schemas[1] and schemas[1].fingerprint):
        raise ValueError("expected a model of the same columns and kinds, got another: see schema_ of both")
    one, two = state.selection, theirs.selection
    if (one is None) != (two is None) or (one and two and not same_members(one, two)):
        raise ValueError(
            "expected models chosen on the same rows, got two that encode their columns in different ways: fit one of "
            "them, and let copies of it, from emptied(), learn the other rows"
        )
    if state.table is not theirs.table and not (state.table and state.table.same_reference(theirs.table)):
        raise ValueError(
            "expected models whose joints of all columns began with the same rows, got two that did not: fit one of "
            "them, and let copies of it, from emptied(), learn the other rows"
        )
    if theirs.columns != state.columns:
        raise ValueError(f"expected a model of {_described(state.columns)}, got one of {_described(theirs.columns)}")
    shapes = [[(type(part.family), part.columns) for part in each.parts] for each in (state, theirs)]
    if shapes[0] != shapes[1]:
        raise ValueError(_other_families(state, theirs))
    found = state.with_statistics(state.statistics + theirs.statistics)
    return replace(found, reader=state.reader.merged(theirs.reader))


def emptied(state: State) -> State:
    """Return the state that has chosen as another, and knows no rows."""
    check_one_component(state, "empty")
    return state.with_statistics(state.statistics * 0.0)


def check_one_component(state: State, what: str) -> None:
    """Raise if classes are mixtures: which component is which, and what a row gave to each, is not known."""
    if any(part.family.needs_density for part in state.parts):
        raise ValueError(
            f"expected classes of one component to {what}, got mixtures, whose components depend on all rows: fit "
            "again, or use components=1"
        )


def begin(plan: Plan, table: Table, assignment: Assignment, guessed: Guessed = None) -> State:
    """Learn from first rows, of which some may have no label: they decide what every column follows."""
    if (assignment.codes < 0).any():
        return _semi_supervised(plan, table, assignment)
    parts = plan.families(table, assignment)
    if plan.begin is None:
        first = FirstFit(parts, collect(table, assignment, parts))
    else:
        first = plan.begin(table, assignment, parts, guessed)
    state = plan.state(*first, plan.first_reader(table.columns), plan.priors)
    state = state if plan.compare is None else plan.compare(state, table, assignment, guessed)
    return state if plan.answer is None else plan.answer(state, table, assignment)


def _semi_supervised(plan: Plan, table: Table, assignment: Assignment) -> State:
    """Learn from rows of which some have no label: their code is −1."""
    is_known = assignment.codes >= 0
    counted = np.full(table.rows, True) if assignment.weights is None else assignment.weights > 0
    known, count = int((is_known & counted).sum()), int((~is_known & counted).sum())
    if not known:
        raise ValueError("expected a positive weight in some row that has a label, got only zeros")
    rows = PartiallyLabelled(table, assignment, partial(begin, replace(plan, answer=None)))

    def answering(state: State, weight: float) -> State:
        if plan.answer is None:
            return state
        weights = np.where(is_known, 1.0, weight) * (1.0 if assignment.weights is None else assignment.weights)
        return plan.answer(state, table, assignment._replace(weights=weights))

    if not plan.learns_unlabelled(known, count):
        warn_about_unlabelled(count)
        return answering(rows.expected(0.0), 0.0)
    unlabelled = check_unlabelled(plan.unlabelled)
    assert unlabelled is not None
    state, weight = rows.learned(unlabelled)
    if weight == 0:
        warn_about_unlabelled(count, why=": labels that are held back are expected no better with them")
    return replace(answering(state, weight), unlabelled=weight)


# Tables -------------------------------------------------------------------------------------------------------------


def is_tabular(plan: Plan, X: Any, y: Any) -> bool:
    """Say whether rows are a table under a plan."""
    if plan.rows == "table":
        return isinstance(y, str) or is_table(X, plan.columns, plan.missing)
    return plan.rows == "numbers" and isinstance(y, str)


def inferred(
    plan: Plan,
    learn: Callable[[LabelledRows], Learned],
    rows: Rows,
    y: Any,
    weights: Any = None,
    partially_labelled: bool = True,
) -> Learned:
    """Find out what the columns are from some rows, and learn from all; again where the others are unlike them."""
    if plan.rows == "numbers":
        schema = numbers_of(rows, but=y)
        return learn(LabelledRows(rows, Labelling(schema, y, weights, partially_labelled=partially_labelled)))
    overrides = plan.overrides()
    schema = infer_schema(rows, y, overrides, count_dates=plan.count_dates)
    # That a column was said to be of dates says nothing of their unit.
    counted = frozenset(column.name for column in schema.columns if column.unit)
    schema = replace(schema, tentative=frozenset(schema.names) - frozenset(overrides) | counted)
    while True:
        try:
            return learn(LabelledRows(rows, Labelling(schema, y, weights, partially_labelled=partially_labelled)))
        except UnlikeSampleError as error:
            if error.column not in schema.tentative:
                raise
            schema = schema.with_kind(error.column, error.kind, error.cell)


def infer_schema(rows: Rows, y: Any, overrides: Mapping[str, str], *, count_dates: bool = False) -> Schema:
    """Return what the columns of a table are, but that of the labels, and warn of what may not be meant."""
    schema = Schema.infer(rows, overrides=overrides, count_dates=count_dates)
    if isinstance(y, str):
        schema, target = schema.without(y), schema.column(y)
        warn_about_labels(target)
    if not schema.names:
        raise ValueError("expected columns of numbers, categories or dates to learn from, got none, or no rows")
    warn_about_columns(schema, overrides)
    return schema


def table_reader(plan: Plan, data: LabelledRows) -> Reader:
    """Return how rows like those of a table are read."""
    columns = data.empty().columns
    if plan.rows == "numbers" or is_matrix(data.rows):
        return plan.matrix(columns)
    target = data.y if isinstance(data.y, str) else "group" if data.y is None else "y"
    schema = replace(data.schema, tentative=frozenset())
    return TableReader(plan.estimator, columns, schema, target, missing=plan.missing)


def learn_table(plan: Plan, data: LabelledRows) -> tuple[State, Table]:
    """Collect the statistics of all rows of a table, batch by batch. Returns the state, and rows like those.

    Rows drawn from all over the table decide what every column follows: the first ones may be unlike the others. To
    learn from rows without a label, all are held in memory.
    """
    reader, table = table_reader(plan, data), data.empty()
    by_type = plan.by_type(data.schema) and not plan.expects_missing and not plan.chosen
    if plan.expects_missing and data.rows.in_memory:
        table, assignment = data.all(partially_labelled=plan.partially_labelled())
        return replace(begin(plan, table, assignment), reader=reader), table
    if by_type:
        parts = plan.families(table, Assignment(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)))
        found = data.collect(partial(collect, parts=parts))
        if found.statistics is None:
            raise ValueError("expected rows with a label, got none")
        if not plan.learns_unlabelled(found.labelled, found.unlabelled):
            warn_about_unlabelled(found.unlabelled, data.y)
            return plan.state(parts, found.statistics, reader, plan.priors), table
    sample = data.sample(SAMPLE, plan.random_state)
    if plan.learns_unlabelled(sample.labelled, sample.unlabelled):
        table, assignment = data.all(partially_labelled=True)
        return replace(begin(plan, table, assignment), reader=reader), table
    warn_about_unlabelled(sample.unlabelled, data.y)
    state = replace(begin(plan, *sample.rows), reader=reader)
    if sample.whole:
        return state, sample.rows.table
    if plan.expects_missing and data.labelling.weights is None and any_missing(data):
        return state.with_statistics(with_missing_cells(data, sample.labelled, state.statistics, state.parts)), table
    # What was chosen stays, and all rows are still to be learned.
    nothing = Assignment(sample.rows.assignment.classes, np.full(sample.rows.table.rows, -1, dtype=np.int32))
    known = LabelledRows(data.rows, replace(data.labelling, partially_labelled=False))
    return _with_all(state, state.collect(sample.rows.table, nothing), known, note=False), table


def _with_all(state: State, statistics: JointStatistics, data: LabelledRows, *, note: bool) -> State:
    """Return the state of statistics and of all rows of a table."""
    more = data.collect(state.collect, note=note)
    if more.statistics is None:
        raise ValueError("expected rows with a label, got none")
    if note:
        warn_about_unlabelled(more.unlabelled, data.y)
    return state.with_statistics(statistics + more.statistics)


# Rows without labels ------------------------------------------------------------------------------------------------


def open_hidden(plan: Plan, X: Any, sample_weight: Any, *, in_memory: bool = False) -> tuple[Reader, Hidden]:
    """Open rows whose classes are hidden: a matrix or a table in memory, or out of core with a sample to start from.

    ``in_memory``: whether all rows are to be read, since something is said of each.
    """
    elsewhere = is_typed(X) if plan.rows == "numbers" else is_tabular(plan, X, None)
    rows = rows_of(X, missing=plan.missing) if elsewhere else None
    if rows is None or (plan.rows == "numbers" and rows.in_memory):
        table = read_first(X)
        reader = plan.matrix(table.columns)
        if plan.rows == "table":
            reader = reader.noting(table, sample_weight, more=False)
        return reader, Hidden(table, None, read_weights(sample_weight, table.rows))
    if plan.rows == "numbers" and sample_weight is not None:
        raise ValueError("expected no sample_weight of rows that are not in memory, got one: read them first")
    if not in_memory:
        rows, _, sample_weight = with_weight(rows, None, sample_weight)

    def read(data: LabelledRows) -> tuple[Reader, Hidden]:
        reader = table_reader(plan, data)
        if not data.rows.in_memory and sample_weight is None and not in_memory:
            some = data.sample(SAMPLE, 0)
            weights = some.rows.assignment.weights
            if some.whole:
                return reader, Hidden(some.rows.table, None, weights)
            return reader, HiddenRows(some.rows.table, None, weights, data, some.labelled)
        table = data.schema.table(as_arrow_table(data.rows))
        return reader, Hidden(table, None, read_weights(sample_weight, table.rows))

    return inferred(plan, read, rows, None)


def more_hidden(reader: Reader, X: Any, sample_weight: Any) -> tuple[Reader, Hidden]:
    """Open one more batch of rows whose classes are hidden, to learn from."""
    if isinstance(reader, TableReader) and not isinstance(X, Table):
        X = reader.held(X)
        table = reader.schema.table(X)
        reader = reader.with_ranges_in(with_weight(reader.opened(X), None, sample_weight)[0])
    else:
        table = reader.read(X)
        reader = reader.noting(table, sample_weight) if isinstance(reader, MatrixReader) else reader
    return reader, Hidden(table, None, read_weights(sample_weight, table.rows))


# Texts --------------------------------------------------------------------------------------------------------------


def _from_texts(plan: Plan, X: Any, y: Any, sample_weight: Any) -> State:
    """Learn from texts: a list, a stream that is read some at a time, or a column of a table, in memory or not."""
    from likely.text import batches, is_stream

    if isinstance(y, str):
        rows = rows_of(X)
        schema = TextColumn.beside(rows, y)
        data = LabelledRows(rows, Labelling(schema, y, sample_weight, partially_labelled=plan.partially_labelled()))
        return replace(_from_text_column(plan, data), reader=TextReader(plan.estimator, column_name=schema.name))
    if is_stream(X) and plan.collect is not None:
        learned = None
        for batch in batches(X, y, sample_weight):
            if batch.weights is not None and all(weight == 0 for weight in batch.weights):
                continue
            table = read_texts(batch.texts)
            own = plan.collect(table, read_assignment(batch.labels, batch.weights, table.rows))
            learned = own if learned is None else learned + own
        if learned is None:
            raise ValueError("expected at least one text, got none")
        return _finished(plan, learned)
    X, y, sample_weight, _ = texts_of(None, X, y, sample_weight, partially_labelled=True)
    return fit(plan, X, y, sample_weight, more=True)


def _from_text_column(plan: Plan, data: LabelledRows) -> State:
    """Learn from a column of texts: in one pass, unless all of them are in memory, or must be."""
    if plan.collect is not None and not data.rows.in_memory:
        found: Collected[Any] = data.collect(plan.collect)
        if found.statistics is None:
            raise ValueError("expected rows with a label, got none")
        if not plan.learns_unlabelled(found.labelled, found.unlabelled):
            warn_about_unlabelled(found.unlabelled, data.y)
            return _finished(plan, found.statistics)
    return begin(plan, *data.all(partially_labelled=plan.partially_labelled()))


def _finished(plan: Plan, learned: Any) -> State:
    assert plan.finish is not None
    return plan.state(*plan.finish(learned), TextReader(plan.estimator), plan.priors)


def texts_of(
    state: State | None, X: Any, y: Any, sample_weight: Any, *, partially_labelled: bool
) -> tuple[Any, Any, Any, str | None]:
    """Return texts, labels and weights, if need be from a table, and the name of its column of texts."""
    from likely.text import listed

    if not isinstance(y, str):
        return X, listed(y), listed(sample_weight), None
    rows = rows_of(X)
    column = None if state is None else getattr(state.reader, "column_name", None)
    schema = TextColumn.beside(rows, y) if column is None else TextColumn.named_so(column)
    table, (classes, codes, weights) = LabelledRows(rows, Labelling(schema, y, sample_weight)).all(
        partially_labelled=partially_labelled
    )
    labels = classes if (codes >= 0).all() else np.array([*classes.tolist(), None], dtype=object)
    return table, labels[codes], weights, schema.name


# Small parts --------------------------------------------------------------------------------------------------------


def _checked_labels(y: Any) -> Any:
    if y is None:
        raise ValueError("expected a label for each row, or the name of a column, got y=None")
    return y


def _other_families(one: State, other: State) -> str:
    """Say which column is of another family in two models."""
    names = [
        {
            j: part.family.name
            for part in state.parts
            if part.encoding is None
            for j in (range(state.columns.width) if part.columns is None else part.columns)
        }
        for state in (one, other)
    ]
    for j in range(one.columns.width):
        own, theirs = names[0].get(j, "ignore"), names[1].get(j, "ignore")
        if own != theirs:
            name = one.columns.name(j)
            return Advice(
                f"expected a model of the same families, got {own!r} and {theirs!r} in {one.columns.listed([j])}: fit "
                "both with ",
                Setting.of_column(name, own),
                ", or let one go on where the other began",
            )
    return "expected a model of the same families, got one of others: fit both with the same columns="


def _described(columns: Columns) -> str:
    return f"{columns.width} columns" if columns.names is None else f"the columns {few(columns.names)}"
