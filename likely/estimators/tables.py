"""Questions about tables as they are: columns of any type, holes, names in any order, from frames or files."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.data.advice import tell_of_columns, tell_of_labels
from likely.data.frames import (
    arrow,
    column_type,
    completed,
    drawn_dates,
    filled_column,
    in_words,
    like,
    moments,
    whole_numbers,
)
from likely.data.labels import read_weights
from likely.data.rows import Rows, missing_words
from likely.data.schema import Column, Schema, UnlikeSampleError, check_name
from likely.data.table import Block, SparseRows, Table
from likely.engines import rows_of
from likely.engines.labelled import has_names, has_whole_numbers, is_typed, together
from likely.estimators.kept import Kept
from likely.families import on_one_line
from likely.statistics import Array

Learned = TypeVar("Learned")


class TableQuestions(Kept):
    """What can be asked of a model about matrices of numbers, and about tables whose columns have types."""

    columns: Any
    missing: Any
    schema_: Schema
    _lowest: Array | None = None
    """of a frame of floats, which is learned as a matrix: the least number of every column, ∞ if it has none"""

    def _opened(self, X: Any, *, known: bool = False) -> Rows:
        return rows_of(X, missing=self.missing, typed=not known)

    def _is_table(self, X: Any) -> bool:
        """Say whether X is to be learned as a table, whose columns have kinds."""
        if is_typed(X):
            return True
        by_name = isinstance(self.columns, Mapping) and all(isinstance(name, str) for name in self.columns)
        auto = isinstance(self.columns, str) and self.columns == "auto"
        if self.missing is not None and has_names(X) and missing_words(self.missing):  # its numbers may be among them
            return True
        return (auto or by_name) and has_whole_numbers(X)

    def _learned_as_table(self, rows: Rows, y: Any, learn: Callable[[Schema], Learned]) -> tuple[Schema, Learned]:
        """Find out what the columns are from some rows, and learn from all; again where the others are unlike them."""
        schema = self._inferred(rows, y)
        schema = replace(schema, tentative=frozenset(schema.names) - frozenset(self._overrides()))
        while True:
            try:
                return replace(schema, tentative=frozenset()), learn(schema)
            except UnlikeSampleError as error:
                if error.column not in schema.tentative:
                    raise
                schema = schema.with_kind(error.column, error.kind, error.cell)

    def _inferred(self, rows: Rows, y: Any) -> Schema:
        schema = Schema.infer(rows, overrides=self._overrides())
        if isinstance(y, str):
            schema, target = schema.without(y), schema.column(y)
            tell_of_labels(target)
        if not schema.names:
            raise ValueError("expected columns of numbers, categories or dates to learn from, got none, or no rows")
        tell_of_columns(schema, self._overrides())
        return schema

    def _overrides(self) -> dict[str, str]:
        """Return the kinds of columns that were given by name."""
        if isinstance(self.columns, list | tuple | np.ndarray):
            raise ValueError(f"expected what columns are by name, as a dict, for a table, got {self.columns!r}")
        if not isinstance(self.columns, Mapping):
            return {}
        return {name: str(getattr(family, "name", family)) for name, family in self.columns.items()}

    def _keep_schema(self, schema: Schema | None, y: Any) -> None:
        """Remember what the columns are; a matrix of numbers has no schema."""
        if schema is None:
            self.__dict__.pop("schema_", None)
            self.__dict__.pop("target_", None)
            return
        self.schema_, self._lowest = schema, None
        self.target_ = y if isinstance(y, str) else "y"

    def _note(self, table: Table, sample_weight: Any, *, more: bool) -> None:
        if not more:
            self._lowest = None
        if isinstance(table.cells, SparseRows) or (self._lowest is None if more else table.names is None):
            return
        weights = read_weights(sample_weight, table.rows)
        cells = table.cells if weights is None or weights.all() else table.cells[weights > 0]
        found = np.fmin.reduce(cells, axis=0, initial=np.inf).astype(np.float64)
        self._lowest = found if self._lowest is None else np.minimum(found, self._lowest)

    def _remembered(self) -> dict[str, Any]:
        if not hasattr(self, "schema_"):
            if self._lowest is None:
                return super()._remembered()
            lowest = [low if np.isfinite(low) else None for low in self._lowest.tolist()]
            return {**super()._remembered(), "lowest": lowest}
        return {**super()._remembered(), "schema": self.schema_.described(), "target": self.target_}

    def _remember(self, schema: Any = None, target: Any = None, lowest: Any = None, **more: Any) -> None:
        super()._remember(**more)
        if lowest is not None:
            fits = isinstance(lowest, list) and len(lowest) == self._known().columns.width
            if not fits or not all(low is None or type(low) is float for low in lowest):
                raise ValueError("expected the least number of every column that was learned, got others")
            self._lowest = np.array([np.inf if low is None else low for low in lowest])
        if schema is None:
            return
        read = Schema.from_description(schema)
        columns = self._known().columns
        if len(read.names) != columns.width or (read.names if read.named else None) != columns.names:
            raise ValueError("expected a schema of the columns that were learned, got another")
        if not isinstance(target, str):
            raise ValueError(f"expected the name of the target, got {on_one_line(target)}")
        self.schema_, self.target_ = read, target

    def _schema_of(self, X: Any) -> Schema | None:
        """Return what the columns of a table are; None if X is a matrix, or read already."""
        schema: Schema | None = getattr(self, "schema_", None)
        if schema is None and hasattr(self, "feature_names_in_") and is_typed(X) and not hasattr(X, "dtypes"):
            schema = Schema(tuple(Column(name, "number") for name in self.feature_names_in_))
        return None if isinstance(X, Table) else schema

    def _read_next(self, X: Any) -> Table:
        if isinstance(X, Table) and hasattr(self, "schema_") and X.kinds == self.schema_.kinds:
            return X
        schema = self._schema_of(X)
        if schema is None:
            return super()._read_next(X)
        return schema.table(together(self._opened(X, known=True)), asked=True)

    def _batches(self, X: Any) -> Iterator[Any]:
        schema = self._schema_of(X)
        if schema is None:
            yield from super()._batches(X)
            return
        yield from schema.tables(self._opened(X, known=True), asked=True)

    def _held(self, X: Any) -> Any:
        return X if self._schema_of(X) is None else together(self._opened(X))

    def _given_rows(self, given: Mapping[Any, Any], n: int) -> Table:
        if not hasattr(self, "schema_"):
            return super()._given_rows(given, n)
        if not given:
            return Table(np.full((n, len(self.schema_.kinds)), np.nan), self.schema_.names, kinds=self.schema_.kinds)
        own = [column.name for column in self.schema_.columns if column.outputs]
        for column in given:
            if isinstance(column, str) and column not in own:
                check_name(column, [*own, *self.joint_names])
        named = {
            column if column in own else self.joint_names[self._column(column)]: value
            for column, value in given.items()
        }
        whole = {column.name: [named.get(column.name)] for column in self.schema_.columns}
        one = self.schema_.table(together(self._opened(whole)))
        cells, categories = np.array(one.cells, dtype=np.float64), dict(one.categories)
        for name in named.keys() - whole.keys():  # parts of dates
            j = self.joint_names.index(name)
            if one.kinds[j] == "category":
                cells[0, j], categories[j] = 0.0, np.array([str(named[name])], dtype=object)
            else:
                cells[0, j] = named[name]
        for j, known in self.joint_.categories.items():
            if not np.isnan(cells[0, j]):
                word = str(categories[j][int(cells[0, j])])
                check_name(word, list(known), f"expected one of the categories of {self.joint_names[j]!r} in given=")
        return replace(one, cells=cells, categories=categories).taken(np.zeros(n, dtype=np.int64))

    def _within_limits(self, x: Array) -> Array:
        """Round whole numbers and keep them within the range that was seen, and others above 0 if all were."""
        if not hasattr(self, "schema_"):
            return x if self._lowest is None else np.maximum(x, np.where(self._lowest >= 0, 0.0, -np.inf))
        limits = [column.limits for column in self.schema_.columns for _ in column.outputs]
        whole = [kind == "integer" for kind in self.schema_.kinds]
        low, high = np.array(limits).T
        return np.asarray(np.clip(np.where(whole, np.rint(x), x), low, high))

    def _drawn_rows(self, table: Table, x: Array, given: Mapping[Any, Any], generator: "np.random.Generator") -> Any:
        if not table.kinds:
            return super()._drawn_rows(table, x, given, generator)
        found: dict[str, Any] = {}
        drawn = self._completed(table, x, self.joint_names)
        for column in self.schema_.columns:
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

    def _completed(self, table: Table, x: Array, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
        names = self.joint_.categories
        places = [j for j, name in enumerate(self.joint_names) if name in wanted]
        return {self.joint_names[j]: completed(table, x, j, names.get(j)) for j in places}

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the columns of the joint distribution."""
        # A model of a matrix with names may be asked about a table.
        return self.schema_.names if hasattr(self, "schema_") else tuple(self.feature_names_in_)

    def _filled_rows(
        self, X: Any, rows: Any, table: Table, filled: Array, generator: "np.random.Generator | None"
    ) -> Any:
        if not table.kinds:
            cells = super()._filled_rows(X, rows, table, filled, generator)
            if table.names is None or not hasattr(X, "dtypes"):
                return cells
            return like(arrow({name: cells[:, j] for j, name in enumerate(table.names)}), X)
        import pyarrow.compute as pc

        names = rows.schema.names
        holes = [name for name in names if pc.any(rows.column(name).is_null(nan_is_null=True)).as_py()]
        found = self._completed(table, filled, holes)
        for column in self.schema_.columns if hasattr(self, "schema_") else ():
            if column.kind == "date" and column.outputs and column.name in holes:
                found[column.name] = moments(column, self._completed(table, filled, column.outputs), generator)
        known = {column.name: column for column in self.schema_.columns} if hasattr(self, "schema_") else {}
        for name, values in found.items():
            rows = rows.set_column(names.index(name), name, filled_column(rows.column(name), values, known.get(name)))
        return like(rows, X)

    def _shown(self, table: Table, X: Any) -> Any:
        if not table.kinds:
            return super()._shown(table, X)
        shown = np.array(Block(table, None).values(), dtype=object)
        for j, names in table.categories.items():
            there = ~np.isnan(Block(table, [j]).values()[:, 0])
            shown[there, j] = np.asarray(names, dtype=object)[shown[there, j].astype(np.int64)]
        for j, texts in table.strings.items():
            shown[:, j] = texts.to_pylist()
        return shown
