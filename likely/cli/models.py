"""A model from a file: what it is, and what it answers about rows, batch by batch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from likely.data.arrow import recast, text_of, words_as_missing
from likely.data.schema import Column, Schema, check_name

if TYPE_CHECKING:
    from likely.data.rows import Rows

# Rows are drawn so many at a time.
_AT_ONCE = 50_000
# Categories by name are what the user calls categorical.
_OTHER_NAMES = {"named categories": "categorical"}


class Loaded(NamedTuple):
    """A model and what its columns are."""

    model: Any
    schema: Schema
    missing: tuple[str, ...]
    """The text that stands for a missing cell."""

    @classmethod
    def read(cls, path: str, missing: Sequence[str] = ()) -> "Loaded":
        """Load a model; words that stand for a missing cell are added to those that it knows."""
        from likely.persistence.saved import load

        model = load(path)
        schema = getattr(model, "schema_", None)
        words = getattr(model, "missing", ())
        known = (words,) if isinstance(words, str) else tuple(words)
        return cls(model, schema or plain_schema(model), (*known, *missing))

    @property
    def text(self) -> str | None:
        """The name of the one column that the model reads, if that is of text."""
        columns = [column for column in self.schema.columns if column.outputs]
        return columns[0].name if len(columns) == 1 and columns[0].kind == "text" else None

    def table(self, batch: Any, numbers: Sequence[int], *, note: bool = True) -> Any:
        """Return rows as the model reads them; ``numbers``: where they are in the data, counted from 0."""
        return self.schema.table(words_as_missing(batch, self.missing), numbers=numbers, note=note, predicting=True)

    def tables(self, rows: "Rows") -> Iterator[tuple[Any, Any]]:
        """Return batches, each with the table that the model reads: of no rows at all, one batch and None."""
        first = 0
        for batch in rows.batches():
            if batch.num_rows:
                yield batch, self.table(batch, range(first, first + batch.num_rows), note=first == 0)
                first += batch.num_rows
        if not first:
            yield rows.schema.empty_table(), None

    @property
    def target(self) -> str | None:
        """The name of the column that holds the label, if the model knows it."""
        return None if self.whole else getattr(self.model, "target_", None)

    @property
    def whole(self) -> bool:
        """Whether it is a model of a whole table, without a target."""
        return type(self.model).__name__ == "Model"

    def predicted(self, rows: "Rows", *, probabilities: bool, only: bool) -> Iterator[pa.Table]:
        """Return the rows with the likeliest class of each, and the probability of every class; or ``only`` these."""
        from likely.model.questions import labels_in_text

        labels = self.model.classes_
        names = [f"p({label})" for label in labels_in_text(labels)]
        for batch, table in self.tables(rows):
            found = np.empty((0, len(labels)))
            if table is None:
                predicted = labels[:0]
            elif probabilities:
                found = self.model.predict_proba(table)
                predicted = labels[found.argmax(axis=1)]
            else:
                predicted = self.model.predict(table)
            answers = {self.model.answers: pa.array(predicted)}
            if probabilities:
                answers |= {name: pa.array(found[:, k]) for k, name in enumerate(names)}
            kept = [] if only else [name for name in batch.schema.names if name not in answers]
            yield pa.table({**{name: batch.column(name) for name in kept}, **answers})

    def filled(
        self, rows: "Rows", how: str, seed: int | None, draws: int | None = None, given: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Return the rows with their missing cells filled; with ``draws``, each row so often, and which draw it is."""
        more = {"given": self.evidence(given)} if self.whole else {}
        if given and not self.whole:
            raise ValueError(f"expected --given only of a model of a whole table, got one of {self.target!r}")
        generator = np.random.default_rng(seed)
        types = self._filled_types(rows.schema)
        for batch, table in self.tables(rows):
            for draw in range(1, 1 + (draws or 1)):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                if table is not None:
                    columns |= self._filled(batch, table, how, generator, more)
                number = {} if draws is None else {"draw": pa.array([draw] * batch.num_rows, pa.int64())}
                yield pa.table({**number, **{name: recast(column, types[name]) for name, column in columns.items()}})

    def _filled_types(self, schema: pa.Schema) -> dict[str, pa.DataType]:
        """Return the type of every column after its missing cells are filled: the same in all batches."""
        kinds = {column.name: column.kind for column in self.schema.columns}
        by_kind = {"number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}
        types = {}
        for name, kind in zip(schema.names, schema.types, strict=True):
            if pa.types.is_dictionary(kind):
                kind = kind.value_type
            wanted = by_kind.get(kinds.get(name, ""))
            if pa.types.is_null(kind):
                kind = wanted or pa.string()
            elif wanted is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                # A column of whole numbers has its own type, which may be larger; yes and no are written as 1 and 0.
                wanted = pa.int64() if pa.types.is_boolean(wanted) else wanted
                kind = kind if wanted == pa.int64() and pa.types.is_integer(kind) else wanted
            types[name] = kind
        return types

    def evidence(self, given: Sequence[str]) -> dict[Any, Any]:
        """Return what is given of a model of a whole table."""
        from likely.cli.whole_table import evidence

        return evidence(self, given)

    def _filled(self, batch: Any, table: Any, how: str, generator: Any, more: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of a batch that have missing cells, filled."""
        labels = None
        if self.target is not None and self.target in batch.schema.names:
            known = self.labels
            labels = [known.get(text, text) for text in text_of(batch.column(self.target)).to_pylist()]
        if hasattr(self.model, "schema_"):
            given: tuple[Any, ...] = () if labels is None else (labels,)
            there = words_as_missing(batch, self.missing)
            rows = self.model.impute(there, *given, how=how, random_state=generator, **more)
            return {name: rows.column(name).combine_chunks() for name in rows.schema.names}
        given = () if labels is None else (labels,)
        cells = self.model.impute(table, *given, how=how, random_state=generator, **more)
        names = self.schema.names if self.schema.named else batch.schema.names
        return {name: pa.array(cells[:, j]) for j, name in enumerate(names) if name in batch.schema.names}

    def drawn(
        self, number: int, given: Sequence[str], seed: int | None, *, missing: bool = False
    ) -> Iterator[pa.Table]:
        """Return new rows with their labels, drawn given cells that are written as NAME=VALUE."""
        if self.whole:
            known, drawing = self.evidence(given), np.random.default_rng(seed)
            sizes = [min(_AT_ONCE, number - first) for first in range(0, max(number, 1), _AT_ONCE)]
            return (self._plain(self.model.sample(n, drawing, known, missing=missing)) for n in sizes)
        if missing:
            raise ValueError("expected a model of a whole table for --missing-cells, got one with a target")
        cells = self.split_given(given)
        generator = np.random.default_rng(seed)
        starts = range(0, max(number, 1), _AT_ONCE)
        return (self._drawn(min(_AT_ONCE, number - first), cells, generator) for first in starts)

    def split_given(self, given: Sequence[str]) -> dict[str, str]:
        """Return cells by column from NAME=VALUE, where a name may have = in it."""
        columns = [column.name for column in self.schema.columns if column.outputs]
        names = [*dict.fromkeys([*columns, *self.schema.names, *([self.target] if self.target else [])])]
        cells = {}
        for each in given:
            if "=" not in each:
                raise ValueError(f"expected --given NAME=VALUE, such as sex=female, got {each!r}")
            fitting = [name for name in names if each.startswith(f"{name}=")]
            name = max(fitting, key=len) if fitting else each.partition("=")[0]
            check_name(name, names, "expected a column that the model knows", f"--given {each!r}")
            cells[name] = each[len(name) + 1 :]
        return cells

    def _drawn(self, number: int, given: dict[str, str], generator: Any) -> pa.Table:
        cells: dict[Any, Any] = dict(given)
        if self.target in given:
            cells[self.target] = self.label(given[self.target])
        if not hasattr(self.model, "schema_"):
            names = {name: j for j, name in enumerate(self.schema.names)}
            cells = {names.get(name, name): float(value) for name, value in given.items()}
        x, labels = self.model.sample(number, generator, given=cells)
        if isinstance(x, list):
            x = pa.table({self.schema.names[0]: x})
        elif not isinstance(x, pa.Table):
            x = pa.table({name: x[:, j] for j, name in enumerate(self.schema.names)})
        return x.append_column(self.target or "label", pa.array(labels))

    def _plain(self, x: Any) -> pa.Table:
        """Return drawn rows as a table, of a matrix by the names of its columns."""
        return x if isinstance(x, pa.Table) else pa.table({name: x[:, j] for j, name in enumerate(self.schema.names)})

    def label(self, text: str | None) -> Any:
        """Return the class whose label is written so; text that is none stays, to be refused."""
        return None if text is None else self.labels.get(text, text)

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of the classes by how they are written."""
        classes = self.model.classes_
        ways = [map(str, classes.tolist()), text_of(pa.array(classes)).to_pylist()]
        if classes.dtype == bool:
            ways.append(str(label).upper() for label in classes)
        return {text: label for way in ways for text, label in zip(way, classes, strict=True)}


def plain_schema(model: Any) -> Schema:
    """Return the columns of a model that was fitted on a matrix of numbers, or on texts."""
    if type(model).__name__ == "TextClassifier":
        return Schema((Column("text", "text", "text"),))
    names = getattr(model, "feature_names_in_", None)
    listed = map(str, range(model.n_features_in_) if names is None else names)
    return Schema(tuple(Column(name, "number") for name in listed), names is not None)


def described(model: Any) -> dict[str, Any]:
    """Return what a fitted model is."""
    if type(model).__name__ == "Model":
        from likely.cli.whole_table import described_whole

        return described_whole(model)
    counts = model.class_count_
    selection = getattr(model, "selection_", None)
    return {
        "kind": type(model).__name__,
        "target": getattr(model, "target_", None),
        "rows": _count(counts.sum()),
        "classes": [
            {"label": label, "rows": _count(count), "share": float(share)}
            for label, count, share in zip(model.classes_.tolist(), counts, model.priors_, strict=True)
        ],
        "columns": _columns(model),
        "members": None if selection is None else _members(selection),
        "calibration": None if selection is None else _calibration(selection),
    }


def _columns(model: Any) -> list[dict[str, Any]]:
    families: dict[int, str] = {}
    for part in model.joint_.parts:
        columns = range(model.n_features_in_) if part.columns is None else part.columns
        families.update(dict.fromkeys(columns, _OTHER_NAMES.get(part.family.name, part.family.name)))
    schema = getattr(model, "schema_", None) or plain_schema(model)
    by_name = {name: families.get(j) for j, name in enumerate(schema.names)}
    return [
        {"name": name, "kind": column.kind, "family": by_name.get(name)}
        for column in schema.columns
        for name in column.outputs or (column.name,)
    ]


def _members(selection: Any) -> list[dict[str, Any]]:
    from likely.families.regularised import Regularised

    found = []
    for member, weight in zip(selection.members, selection.calibration.weights.tolist(), strict=True):
        discriminant = isinstance(member.family, Regularised)
        chosen = {"diagonal": member.family.diagonal, "strength": member.family.strength} if discriminant else {}
        name = "discriminant of ranks" if discriminant else member.family.name
        found.append({"name": name, "features": member.encoding.width, "weight": weight, **chosen})
    return found


def _calibration(selection: Any) -> dict[str, Any]:
    labels, bias = selection.calibrated.tolist(), selection.calibration.bias.tolist()
    return {"rows": _count(selection.calibration.rows), "bias": [{"label": a, "bias": b} for a, b in zip(labels, bias)]}  # noqa: B905


def _count(rows: Any) -> int | float:
    """Return how many rows there are: with weights that need not be a whole number."""
    number = float(rows)
    return int(number) if number.is_integer() else number
