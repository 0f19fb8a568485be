"""How a fitted model reads rows, and shows answers: as a matrix of numbers, a table of typed columns, or texts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.detect import is_text_table, is_typed
from likely.data.frames import (
    arrow,
    column_type,
    completed,
    counted_date,
    dates_as_asked,
    drawn_dates,
    filled_column,
    in_words,
    like,
    moments,
    whole_numbers,
)
from likely.data.labelled import as_arrow_table
from likely.data.labels import read_weights
from likely.data.rows import Rows
from likely.data.schema import Column, Schema, check_name
from likely.data.table import Block, CellBuffer, Columns, SparseRows, Table, read_table
from likely.engines import rows_of
from likely.lazy import pa, pc
from likely.messages import warn
from likely.statistics import Array, JointStatistics, Labels

if TYPE_CHECKING:
    from numpy.random import Generator as Random


CategoryNames = Mapping[int, Labels]
"""The names of categories in answers, by column, in the order of their numbers there."""


@dataclass(frozen=True, eq=False)
class Reader:
    """What is common to all."""

    estimator: str
    """its name, for messages"""
    columns: Columns
    """how many columns there are, and their names if they have any"""
    missing: Any = field(default=(), kw_only=True)
    """text or numbers that stand for a missing cell of a table"""

    def schema_for(self, X: Any) -> Schema | None:
        """Return the schema of a table whose columns are found by name; None of a matrix, or of rows already read."""
        raise NotImplementedError

    def read_plain(self, X: Any) -> Table:
        """Return rows without a schema, or raise if they are not like those that were learned."""
        raise NotImplementedError

    def read(self, X: Any, *, note: bool = True) -> Table:
        """Return rows that are asked about, or raise if they are not like those that were learned.

        ``note``: whether to warn of columns that are not there, whose cells are missing.
        """
        schema = self.schema_for(X)
        return self.read_plain(X) if schema is None else schema.table(self._in_memory(X), note=note, predicting=True)

    def batches(self, X: Any, *, note: bool = True) -> Iterator[Table]:
        """Return the rows in parts: of a file, only the answers must fit in memory."""
        schema = self.schema_for(X)
        if schema is None:
            yield self.read(X)
        else:
            yield from schema.tables(self.opened(X, typed=False), note=note, predicting=True)

    def held(self, X: Any) -> Any:
        """Return rows that can be read again at no cost."""
        return X if self.schema_for(X) is None else self._in_memory(X)

    def _in_memory(self, X: Any) -> Any:
        return as_arrow_table(self.opened(X, typed=False))

    def opened(self, X: Any, *, typed: bool = True) -> Rows:
        """Open a table."""
        return rows_of(X, missing=self.missing, typed=typed)

    def schema_by_name(self, y: Any) -> Schema | None:
        """Return what the columns of a table are, whose labels are ``y``, if they are found by name; else None."""
        return None

    def merged(self, other: "Reader") -> Self:
        """Return the reader of what both have read."""
        return self

    def column(self, column: Any) -> int:
        """Return the number of a column that is given by its name or number."""
        columns = self.columns
        if isinstance(column, str) and columns.names is not None and column in columns.names:
            return columns.names.index(column)
        if isinstance(column, int | np.integer) and 0 <= column < columns.width:
            return int(column)
        if columns.names is not None:
            check_name(column, columns.names)
        raise ValueError(f"expected a column among 0 to {columns.width - 1}, got {column!r}")

    def as_number(self, column: int, value: Any, *, last: bool = False) -> float:
        """Return a value of a column of numbers, which is given by its number; ``last``: it is the end of a range."""
        return float(value)

    def what_are(self, column: int) -> str:
        """Say what the values of a column of numbers are."""
        return "numbers"

    def as_asked(self, column: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of a column of a table, which is given by its number, as the user has them."""
        return values

    def given_rows(self, given: Mapping[Any, Any], n: int, category_names: CategoryNames) -> Table:
        """Return rows in which only some cells are there, all the same."""
        cells = np.full((n, self.columns.width), np.nan)
        for column, value in given.items():
            cells[:, self.column(column)] = value
        return Table(cells, self.columns.names)

    def within_limits(self, x: Array) -> Array:
        """Return cells that are drawn or expected, within what their columns can hold."""
        return x

    def drawn_rows(
        self, table: Table, x: Array, given: Mapping[Any, Any], category_names: CategoryNames, generator: "Random"
    ) -> Any:
        """Return drawn rows as the user gets them; cells that were given, and are in the table, stay."""
        cells = Block(table, None).values()
        return np.where(np.isnan(cells), x, cells)

    def filled_rows(
        self, X: Any, rows: Any, table: Table, filled: Array, category_names: CategoryNames, generator: "Random | None"
    ) -> Any:
        """Return the user's rows, held as ``rows``, with what was found in place of missing cells."""
        cells = Block(table, None).values()
        return np.where(np.isnan(cells), filled, cells)

    def shown(self, table: Table, X: Any) -> Any:
        """Return the cells as an explanation shows them."""
        return table.cells if isinstance(table.cells, np.ndarray) else X

    def described(self) -> dict[str, Any]:
        """Return what a file says of the reader, by name."""
        return {}


@dataclass(frozen=True, eq=False)
class MatrixReader(Reader):
    """Rows are a matrix of numbers, or if its columns have names, a table of numbers."""

    lowest: Array | None = None
    """the least number of every named column, ∞ if it has none; None if that is not known"""
    signed: bool = False
    """whether errors about cells name the estimator, as scikit-learn's do"""

    def schema_for(self, X: Any) -> Schema | None:
        """Return the schema of a table whose numbers are found by name: a frame must have other columns, too."""
        names = self.columns.names
        if names is None or not is_typed(X):
            return None
        by_name = not hasattr(X, "dtypes") or set(names) < set(getattr(X, "columns", ()))
        return _numbers(names) if by_name else None

    def read_plain(self, X: Any) -> Table:
        """Return rows of the columns that were learned; names must match, as scikit-learn wants."""
        table = read_table(X)
        width, names = table.columns
        if width != self.columns.width:
            raise ValueError(
                f"X has {width} features, but {self.estimator} is expecting {self.columns.width} features as input."
            )
        _check_names(names, self.columns.names, self.estimator)
        _check_rows(table)
        return replace(table, reader=self.estimator) if self.signed else table

    def noting(self, table: Table, sample_weight: Any, *, more: bool = True) -> Self:
        """Return the reader that knows of rows that were learned, or of ``more`` rows, too."""
        if isinstance(table.cells, SparseRows) or (self.lowest is None if more else table.names is None):
            return self
        weights = read_weights(sample_weight, table.rows)
        cells = table.cells if weights is None or weights.all() else table.cells[weights > 0]
        found = np.fmin.reduce(cells, axis=0, initial=np.inf).astype(np.float64)
        return replace(self, lowest=found if self.lowest is None else np.minimum(found, self.lowest))

    def merged(self, other: Reader) -> Self:
        """Return the reader of what both have read."""
        if self.lowest is None or not isinstance(other, MatrixReader):
            return self
        return replace(self, lowest=None if other.lowest is None else np.minimum(self.lowest, other.lowest))

    def within_limits(self, x: Array) -> Array:
        """Keep numbers above 0 if all were."""
        return x if self.lowest is None else np.maximum(x, np.where(self.lowest >= 0, 0.0, -np.inf))

    def filled_rows(
        self, X: Any, rows: Any, table: Table, filled: Array, category_names: CategoryNames, generator: "Random | None"
    ) -> Any:
        """Return the user's rows, as a frame if they are one, with what was found in place of missing cells."""
        if not isinstance(rows, Table) and table.kinds:
            return _filled_table(X, rows, table, filled, category_names, _numbers(self.columns.names or ()), generator)
        cells = Reader.filled_rows(self, X, rows, table, filled, category_names, generator)
        if table.names is None or not hasattr(X, "dtypes"):
            return cells
        return like(arrow({name: cells[:, j] for j, name in enumerate(table.names)}), X)

    def keeping(self, kept: dict[str, Any], statistics: JointStatistics) -> Self:
        """Return the reader with more of what a file says of it, which is taken out of ``kept``."""
        return self

    def described(self) -> dict[str, Any]:
        """Return what a file says of the reader."""
        if self.lowest is None:
            return {}
        return {"lowest": [low if np.isfinite(low) else None for low in self.lowest.tolist()]}

    def schema_by_name(self, y: Any) -> Schema | None:
        """Return the schema of a table of numbers, if the labels are in a column of it."""
        names = self.columns.names
        return None if names is None or not isinstance(y, str) else _numbers(names)


@dataclass(frozen=True, eq=False)
class TableReader(Reader):
    """Rows are a table whose columns have types; they are found by name, in whatever order they come."""

    schema: Schema
    """what the columns are"""
    target: str
    """the name of the labels"""

    def schema_for(self, X: Any) -> Schema | None:
        """Return the schema that was learned, unless rows are read already."""
        return None if isinstance(X, Table) else self.schema

    def read_plain(self, X: Any) -> Table:
        """Return rows that are read already."""
        assert isinstance(X, Table)
        return X

    def held(self, X: Any) -> Any:
        """Return rows that can be read again at no cost."""
        return as_arrow_table(self.opened(X))

    def schema_by_name(self, y: Any) -> Schema | None:
        """Return what the columns are."""
        return self.schema

    def with_ranges_in(self, rows: Rows) -> Self:
        """Return the reader whose ranges hold more rows, too."""
        return replace(self, schema=self.schema.with_ranges_in(rows))

    def merged(self, other: Reader) -> Self:
        """Return the reader whose ranges hold those of another."""
        assert isinstance(other, TableReader)
        return replace(self, schema=self.schema.with_ranges_of(other.schema))

    def as_number(self, column: int, value: Any, *, last: bool = False) -> float:
        """Return a number, or a date counted in the unit of its column: the end of a range may be a day, to its end."""
        of = self._columns[column]
        return float(value) if not of.unit else counted_date(of, value, last=last)

    def given_rows(self, given: Mapping[Any, Any], n: int, category_names: CategoryNames) -> Table:
        """Return rows in which only some cells are there; dates, and categories by their names, are read."""
        schema, names = self.schema, self.schema.names
        if not given:
            return Table(np.full((n, len(schema.kinds)), np.nan), names, kinds=schema.kinds)
        own = [column.name for column in schema.columns if column.outputs]
        for column in given:
            if isinstance(column, str) and column not in own:
                check_name(column, [*own, *names])
        named = {column if column in own else names[self.column(column)]: value for column, value in given.items()}
        whole = {column.name: [named.get(column.name)] for column in schema.columns}
        one = schema.table(as_arrow_table(self.opened(whole)))
        cells, categories = np.array(one.cells, dtype=np.float64), dict(one.categories)
        for name in named.keys() - whole.keys():  # parts of dates
            j = names.index(name)
            if one.kinds[j] == "category":
                cells[0, j], categories[j] = 0.0, np.array([str(named[name])], dtype=object)
            else:
                cells[0, j] = named[name]
        for j, known in category_names.items():
            if not np.isnan(cells[0, j]):
                word = str(categories[j][int(cells[0, j])])
                check_name(word, list(known), f"expected one of the categories of {names[j]!r} in given=")
        return replace(one, cells=cells, categories=categories).taken(np.zeros(n, dtype=np.int64))

    def what_are(self, column: int) -> str:
        """Say what the values of a column of numbers are."""
        return "dates" if self._columns[column].unit else "numbers"

    def as_asked(self, column: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of a column as the user has them: dates; True and False, unless yes and no were 1 and 0."""
        of = self._columns[column]
        if of.unit:
            return dates_as_asked(of, values)
        return values.astype(bool) if of.kind == "boolean" and of.source not in ("integer", "number") else values

    @property
    def _columns(self) -> list[Column]:
        """The user's column that each column of a table is of."""
        return [column for column in self.schema.columns for _ in column.outputs]

    def within_limits(self, x: Array) -> Array:
        """Round whole numbers and keep them within the range that was seen, and others above 0 if all were."""
        limits = [column.limits for column in self._columns]
        whole = [kind == "integer" for kind in self.schema.kinds]
        low, high = np.array(limits).T
        return np.asarray(np.clip(np.where(whole, np.rint(x), x), low, high))

    def drawn_rows(
        self, table: Table, x: Array, given: Mapping[Any, Any], category_names: CategoryNames, generator: "Random"
    ) -> Any:
        """Return drawn rows as an Arrow table, whose columns have the types of those that were learned."""
        found: dict[str, Any] = {}
        drawn = _completed(table, x, category_names, self.schema.names)
        for column in self.schema.columns:
            cells = {name: drawn[name] for name in column.outputs}
            if column.kind == "date" and cells:
                found[column.name] = drawn_dates(column, cells, given.get(column.name), generator)
            elif column.kind == "boolean" and column.source in ("integer", "number"):  # yes and no as 1 and 0
                found |= {
                    name: np.array([x if x is None else int(x) for x in yes], dtype=object)
                    for name, yes in cells.items()
                }
            elif column.kind == "integer":
                found[column.name] = whole_numbers(cells[column.name], column_type(column))
            elif column.words:
                found[column.name] = in_words(cells[column.name], column.words)
            else:
                found |= cells
        return arrow(found)

    def filled_rows(
        self, X: Any, rows: Any, table: Table, filled: Array, category_names: CategoryNames, generator: "Random | None"
    ) -> Any:
        """Return the user's rows, as the frame that they are, with what was found in place of missing cells."""
        return _filled_table(X, rows, table, filled, category_names, self.schema, generator)

    def shown(self, table: Table, X: Any) -> Any:
        """Return the cells as an explanation shows them: categories by their names, and texts."""
        shown = np.array(Block(table, None).values(), dtype=object)
        for j, names in table.categories.items():
            there = ~np.isnan(Block(table, [j]).values()[:, 0])
            shown[there, j] = np.asarray(names, dtype=object)[shown[there, j].astype(np.int64)]
        for j, texts in table.strings.items():
            shown[:, j] = texts.to_pylist()
        return shown


@dataclass(frozen=True)
class TextColumn(Schema):
    """The column of a table that holds texts. Others are not read."""

    @classmethod
    def named_so(cls, name: str) -> "TextColumn":
        """Return the column of texts of this name."""
        return cls((Column(name, "text", "text"),))

    @classmethod
    def beside(cls, rows: Rows, y: str) -> "TextColumn":
        """Return the column of texts beside that of the labels: the only one, or the only one of free text."""
        names = list(rows.schema.names)
        check_name(y, names, "expected the name of a column as target")
        others = [name for name in names if name != y]
        if len(others) > 1:
            kinds = {column.name: column.kind for column in Schema.infer(rows).without(y).columns}
            others = [name for name in others if kinds[name] == "text"]
        if len(others) == 1:
            return cls.named_so(others[0])
        listed = ", ".join(f"{name!r} ({kinds[name]})" for name in names if name != y) if len(names) > 1 else "none"
        raise ValueError(f"expected one column of texts beside {y!r}, got {listed}: select it and the labels")

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.columns[0].name

    def table(
        self,
        batch: Any,
        *,
        numbers: Sequence[int] | None = None,
        note: bool = True,
        buffer: CellBuffer | None = None,
        predicting: bool = False,
    ) -> Table:
        """Return a batch as a table of texts."""
        from likely.text import as_texts

        check_name(self.name, list(batch.schema.names), "expected the column of texts")
        try:
            texts = as_texts(batch.column(self.name))
        except TypeError:
            kind = batch.schema.field(self.name).type
            raise TypeError(f"expected texts in column {self.name!r}, got {kind}: turn them into strings") from None
        wide = pa.large_string() if pa.types.is_string(texts.type) else texts.type
        return text_table(texts.cast(wide), numbers)


@dataclass(frozen=True, eq=False)
class TextReader(Reader):
    """Rows are texts, or if the model was fitted on a table, the texts in a column of one."""

    columns: Columns = Columns(1, ("text",))  # noqa: RUF009  which never changes
    column_name: str | None = None
    """of the column of texts, if the model was fitted on a table"""

    def schema_for(self, X: Any) -> Schema | None:
        """Return the column of texts of a table."""
        found = self.column_name is not None and is_text_table(X)
        return TextColumn.named_so(str(self.column_name)) if found else None

    def read_plain(self, X: Any) -> Table:
        """Return texts that are in no table."""
        return read_texts(X)

    def described(self) -> dict[str, Any]:
        """Return what a file says of the reader."""
        return {} if self.column_name is None else {"text_column": self.column_name}


def text_table(texts: Any, numbers: Sequence[int] | None = None) -> Table:
    """Return texts as a table of one column; ``numbers``: where each was in the data that it came from."""
    return Table(np.zeros((len(texts), 1)), ("text",), numbers=numbers, strings={0: texts})


def read_texts(X: Any) -> Table:
    """Return texts, or what files of texts hold, as a table of one column."""
    from likely.text import as_read, contents

    return X if isinstance(X, Table) else text_table(as_read(contents(X)))


def read_first(X: Any) -> Table:
    """Read a matrix that a model starts with."""
    table = read_table(X)
    _check_rows(table)
    return table


def numbers_of(rows: Rows, but: str | None = None) -> Schema:
    """Return the schema of a table of numbers, but one column, or raise if there is something else in it."""
    inferred = Schema.infer(rows)
    inferred = inferred if but is None else inferred.without(but)
    for column in inferred.columns:
        if column.kind not in ("number", "integer", "boolean"):
            other = "Mixture" if but is None else "NaiveBayes or Classifier"
            raise ValueError(
                f"expected columns of numbers, got {column.name!r} of kind {column.kind}: leave it out, or use {other}"
            )
    return _numbers([column.name for column in inferred.columns], inferred.named)


def _numbers(names: Iterable[str], named: bool = True) -> Schema:
    """Return the schema of a table of numbers."""
    return Schema(tuple(Column(name, "number") for name in names), named)


def _check_rows(table: Table) -> None:
    if table.rows == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={table.cells.shape}) while a minimum of 1 is required.")


def _check_names(names: tuple[str, ...] | None, fitted: tuple[str, ...] | None, estimator: str) -> None:
    if fitted is None:
        if names is not None:
            warn(f"X has feature names, but {estimator} was fitted without feature names")
    elif names is None:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
    elif names != fitted:
        raise ValueError(_different_names(names, fitted))


def _different_names(names: tuple[str, ...], fitted: tuple[str, ...], most: int = 5) -> str:
    def listed(these: list[str]) -> str:
        return "".join(f"- {name}\n" for name in these[:most]) + ("- ...\n" if len(these) > most else "")

    message = "The feature names should match those that were passed during fit.\n"
    extra, lacking = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if extra:
        message += f"Feature names unseen at fit time:\n{listed(extra)}"
    if lacking:
        message += f"Feature names seen at fit time, yet now missing:\n{listed(lacking)}"
    if not extra and not lacking:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def _completed(
    table: Table, x: Array, category_names: CategoryNames, names: tuple[str, ...], wanted: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the values of all or the wanted columns: their own cells, and what was found where one is missing."""
    numbers = [j for j, name in enumerate(names) if wanted is None or name in wanted]
    return {names[j]: completed(table, x, j, category_names.get(j)) for j in numbers}


def _filled_table(
    X: Any,
    rows: Any,
    table: Table,
    filled: Array,
    category_names: CategoryNames,
    schema: Schema,
    generator: "Random | None",
) -> Any:
    """Return an Arrow table with what was found in place of missing cells, as the kind of frame that X is."""
    given = rows.schema.names
    missing = [name for name in given if pc.any(rows.column(name).is_null(nan_is_null=True)).as_py()]
    found = _completed(table, filled, category_names, schema.names, missing)
    for column in schema.columns:
        if column.kind == "date" and column.outputs and column.name in missing:
            parts = _completed(table, filled, category_names, schema.names, column.outputs)
            found[column.name] = moments(column, parts, generator)
    known = {column.name: column for column in schema.columns}
    for name, values in found.items():
        rows = rows.set_column(given.index(name), name, filled_column(rows.column(name), values, known.get(name)))
    return like(rows, X)
