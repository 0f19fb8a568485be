"""Tables as they are: columns of any type, holes, names in any order, from frames, records and files."""

import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.estimators.classifier import GenerativeClassifier
from likely.estimators.evaluation import Evaluation
from likely.estimators.frames import arrow, completed, like
from likely.estimators.knowledge import Knowledge
from likely.families import on_one_line
from likely.learn import collect
from likely.reading import Rows, open_rows
from likely.schema import ALMOST_NUMBERS, Column, Schema, read_target
from likely.statistics import Array, Assignment, Labels
from likely.table import Block, Table, read_assignment, read_weights


def is_typed(data: Any) -> bool:
    """Say whether data are a table whose columns have types: a frame, records, a path; not a matrix of numbers.

    >>> is_typed([{"age": 31}]), is_typed("people.csv"), is_typed([[1.0, 2.0]])
    (True, True, False)
    """
    if hasattr(data, "tocsr") or isinstance(data, Table):
        return False
    if isinstance(data, str | os.PathLike | Mapping | Rows):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if isinstance(data, list | tuple):
        return len(data) > 0 and isinstance(data[0], str | os.PathLike | Mapping)
    if hasattr(data, "columns") and hasattr(data, "dtypes"):
        # A frame of nothing but floats is a matrix: read where it lies; its names must match, as scikit-learn wants.
        return not all(str(dtype).lower() in ("float64", "float32") for dtype in data.dtypes)
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "fetch_arrow_table") or hasattr(data, "read")


class Labelled(NamedTuple):
    """Some rows and the classes that they belong to."""

    table: Table
    assignment: Assignment


class TableClassifier(GenerativeClassifier):
    """A classifier that takes matrices of numbers, and tables whose columns have types.

    Attributes
    ----------
    schema_
        what the columns of a table are; of a matrix of numbers there is none
    """

    columns: Any
    missing: Any
    schema_: Schema

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            a matrix of numbers, in which NaN is a missing cell; or a table: a frame of pandas or Polars, an Arrow
            table, a DuckDB relation, a list of dicts, or the path of a CSV, Parquet, Arrow or JSON lines file
        y
            a label for each row; or, if X is a table, the name of the column that holds it
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        if not (is_typed(X) or isinstance(y, str)):
            super().fit(X, y, sample_weight)
            self.__dict__.pop("schema_", None)
            self.__dict__.pop("target_", None)
            return self
        rows = self._opened(X)
        schema = self._inferred(rows, y)
        knowledge, last = self._collected(schema, rows, y, sample_weight, None)
        self._solve_now(last, knowledge)
        self._keep(last, knowledge)
        self._keep_schema(schema, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come.

        What the columns are is decided by the first rows. ``classes`` may name labels that will come later; labels not
        named are learned when they come.
        """
        known = getattr(self, "_knowledge", None)
        if not (hasattr(self, "schema_") if known else is_typed(X) or isinstance(y, str)):
            return super().partial_fit(X, y, classes, sample_weight)
        rows = self._opened(X, known=known is not None)
        schema = self.schema_ if known else self._inferred(rows, y)
        knowledge, last = self._collected(schema, rows, y, sample_weight, known)
        if classes is not None:
            statistics = knowledge.statistics.with_classes(np.unique(np.asarray(classes)))
            knowledge = knowledge.with_statistics(statistics)
        if known:
            self._replace(knowledge)
        else:
            self._keep(last, knowledge)
            self._keep_schema(schema, y)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        if not hasattr(self, "schema_"):
            return super().forget(X, y, sample_weight)
        for table, assignment in self._labelled(self.schema_, self._opened(X, known=True), y, sample_weight):
            self._forget(table, assignment)
        return self

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are.
        """
        for other in others:
            if getattr(self, "schema_", None) != getattr(other, "schema_", None):
                raise ValueError("expected a model of the same columns and kinds, got another: see schema_ of both")
        return super().merge(*others)

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation:
        """Return how well models of this kind predict rows that they have not seen. The model itself stays as it is.

        The rows are dealt into folds, statistics are collected fold by fold in one pass, and each fold is predicted by
        a model of the others.
        """
        if not (is_typed(X) or isinstance(y, str)):
            return super().evaluate(X, y, folds=folds, sample_weight=sample_weight, random_state=random_state)
        return self._evaluated(*self._whole(X, y, sample_weight), folds, random_state)

    def _whole(self, X: Any, y: Any, sample_weight: Any) -> Labelled:
        """Read all rows of a table at once."""
        rows = self._opened(X)
        schema = self._inferred(rows, y)
        return next(self._labelled(schema, rows, y, sample_weight, whole=True))

    def _opened(self, X: Any, *, known: bool = False) -> Rows:
        return open_rows(X, missing=self.missing, typed=not known)

    def _inferred(self, rows: Rows, y: Any) -> Schema:
        schema = Schema.infer(rows, overrides=self._overrides())
        schema = schema.without(y) if isinstance(y, str) else schema
        if not schema.names:
            raise ValueError(
                f"expected columns to learn from, got none that are numbers, categories or dates:\n{schema}"
            )
        almost = {
            column.name: column.seen.note.removeprefix(ALMOST_NUMBERS).strip()
            for column in schema.columns
            if column.seen and column.seen.note.startswith(ALMOST_NUMBERS)
        }
        if almost:
            word = next(iter(almost.values()))
            warnings.warn(
                f"columns of numbers but for the word {word} are taken as categories: {', '.join(map(repr, almost))}; "
                f"if it stands for a missing cell, say missing=[{word}]",
                stacklevel=3,
            )
        texts = [column.name for column in schema.columns if column.kind == "text"]
        if texts:
            warnings.warn(
                f"columns of free text are left out: {', '.join(map(repr, texts))}; to take one as categories, say "
                f'columns={{{texts[0]!r}: "category"}}',
                stacklevel=3,
            )
        return schema

    def _overrides(self) -> dict[str, str]:
        """Return the kinds of columns that were given by name."""
        if not isinstance(self.columns, Mapping):
            return {}
        return {name: str(getattr(family, "name", family)) for name, family in self.columns.items()}

    def _collected(
        self, schema: Schema, rows: Rows, y: Any, sample_weight: Any, known: Knowledge | None
    ) -> tuple[Knowledge, Table]:
        """Collect the statistics of all rows, batch by batch. Returns the knowledge and the last batch."""
        table = None
        for table, assignment in self._labelled(schema, rows, y, sample_weight):
            if known is None:
                known = self._begun(table, assignment)
            else:
                known = known.with_statistics(known.statistics + collect(table, assignment, known.parts))
        if known is None or table is None:
            raise ValueError("expected rows with a label, got none")
        return known, table

    def _labelled(
        self, schema: Schema, rows: Rows, y: Any, sample_weight: Any, *, whole: bool = False
    ) -> Iterator[Labelled]:
        """Return the rows that have a label, batch by batch, or as a whole."""
        named = isinstance(y, str)
        given = None if named else _labels(y, sample_weight)
        weights = read_weights(sample_weight, len(sample_weight)) if named and sample_weight is not None else None
        first = dropped = 0
        for batch in _together(rows) if whole else rows.batches():
            part = slice(first, first + batch.num_rows)
            table = schema.table(batch, start=first, note=first == 0)
            first += batch.num_rows
            if given is not None:
                _check_length(given, part.stop, last=False)
                yield Labelled(table, given.taken(part))
                continue
            labels = read_target(batch, y)
            kept = _there(labels)
            dropped += len(labels) - int(kept.sum())
            if weights is not None and len(weights) < part.stop:
                raise ValueError(f"expected a weight for each row, got {len(weights)} weights")
            if kept.any():
                table = table if kept.all() else table.taken(kept)
                part_weights = None if weights is None else weights[part][kept]
                yield Labelled(table, read_assignment(_tidy(labels[kept]), part_weights, table.rows))
        if given is not None:
            _check_length(given, first, last=True)
        if dropped:
            warnings.warn(f"{dropped:,} rows without a label in {y!r} are left out", stacklevel=4)

    def _keep_schema(self, schema: Schema, y: Any) -> None:
        self.schema_ = schema
        self.target_ = y if isinstance(y, str) else "y"

    def _remembered(self) -> dict[str, Any]:
        if not hasattr(self, "schema_"):
            return super()._remembered()
        return {**super()._remembered(), "schema": self.schema_.described(), "target": self.target_}

    def _remember(self, schema: Any = None, target: Any = None, **more: Any) -> None:
        super()._remember(**more)
        if schema is None:
            return
        read = Schema.from_description(schema)
        columns = self._known().columns
        if len(read.names) != columns.width or (read.names if read.named else None) != columns.names:
            raise ValueError("expected a schema of the columns that were learned, got another")
        if not isinstance(target, str):
            raise ValueError(f"expected the name of the target, got {on_one_line(target)}")
        self.schema_, self.target_ = read, target

    def _read_next(self, X: Any) -> Table:
        schema: Schema | None = getattr(self, "schema_", None)
        if schema is None and hasattr(self, "feature_names_in_") and is_typed(X) and not hasattr(X, "dtypes"):
            schema = Schema(tuple(Column(name, "number") for name in self.feature_names_in_))
        if schema is None or isinstance(X, Table):
            return super()._read_next(X)
        (batch,) = _together(self._opened(X, known=True))
        return schema.table(batch)

    def _given_rows(self, given: Mapping[Any, Any], n: int) -> Table:
        if not hasattr(self, "schema_"):
            return super()._given_rows(given, n)
        if not given:
            return Table(np.full((n, len(self.schema_.kinds)), np.nan), self.schema_.names, kinds=self.schema_.kinds)
        for column in given:
            self._column(column)
        one = self.schema_.table(arrow({name: np.array([value]) for name, value in given.items()}), note=False)
        return one.taken(np.zeros(n, dtype=np.int64))

    def _drawn_rows(self, given: Table, x: Array) -> Any:
        if not given.kinds:
            return super()._drawn_rows(given, x)
        return like(arrow(self._completed(given, x, self.joint_names)), None)

    def _completed(self, table: Table, x: Array, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
        names = self.joint_.categories
        places = [j for j, name in enumerate(self.joint_names) if name in wanted]
        return {self.joint_names[j]: completed(table, x, j, names.get(j)) for j in places}

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the columns of the joint distribution."""
        columns = self._known().columns
        return tuple(columns.name(j) for j in range(columns.width))

    def _filled_rows(self, X: Any, table: Table, filled: Array) -> Any:
        if not table.kinds:
            rows = super()._filled_rows(X, table, filled)
            if table.names is None or not hasattr(X, "dtypes"):
                return rows
            return like(arrow({name: rows[:, j] for j, name in enumerate(table.names)}), X)
        import pyarrow.compute as pc

        (batch,) = _together(self._opened(X))
        names = batch.schema.names
        holes = [name for name in names if pc.any(batch.column(name).is_null(nan_is_null=True)).as_py()]
        for name, column in self._completed(table, filled, holes).items():
            batch = batch.set_column(names.index(name), name, arrow({name: column}).column(0))
        return like(batch, X)

    def _shown(self, table: Table, X: Any) -> Any:
        if not table.kinds:
            return super()._shown(table, X)
        shown = np.array(Block(table, None).values(), dtype=object)
        for j, names in table.categories.items():
            there = ~np.isnan(Block(table, [j]).values()[:, 0])
            shown[there, j] = np.asarray(names, dtype=object)[shown[there, j].astype(np.int64)]
        return shown


def _together(rows: Rows) -> Iterator[Any]:
    """Return all rows in one batch."""
    import pyarrow as pa

    batches = list(rows.batches())
    yield pa.Table.from_batches(batches, batches[0].schema if batches else rows.schema).combine_chunks()


def _labels(y: Any, sample_weight: Any) -> Assignment:
    """Read a label for each row."""
    if y is None or not hasattr(y, "__len__"):
        raise ValueError(f"expected a label for each row, or the name of a column, got y={y!r}")
    return read_assignment(y, sample_weight, len(y))


def _check_length(given: Assignment, rows: int, *, last: bool) -> None:
    if len(given.codes) < rows or (last and len(given.codes) != rows):
        raise ValueError(f"expected one label for each row, got {len(given.codes)} labels for {rows} rows or more")


def _there(labels: Labels) -> NDArray[np.bool_]:
    if labels.dtype != object:
        return np.full(len(labels), True)
    return np.array([label is not None for label in labels], dtype=bool)


def _tidy(labels: Labels) -> Labels:
    """Return labels among which none is missing any more as an array of their own type."""
    return np.asarray(labels.tolist()) if labels.dtype == object else labels
