"""A model from a file, and rows as it reads them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from likely.data.rows import Rows
    from likely.data.schema import Schema


class Loaded(NamedTuple):
    """A model and what its columns are."""

    model: Any
    schema: "Schema"
    missing: tuple[str, ...]
    """The text that stands for a missing cell."""

    @classmethod
    def read(cls, path: str, missing: Sequence[str] = ()) -> "Loaded":
        """Load a model; words that stand for a missing cell are added to those that it knows."""
        from likely.persistence.registry import load

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
        from likely.data.arrow import without_words

        return self.schema.table(without_words(batch, self.missing), numbers=numbers, note=note, asked=True)

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
        return getattr(self.model, "target_", None)

    def filled(self, batch: Any, table: Any, how: str, generator: Any) -> dict[str, Any]:
        """Return the columns of a batch that have holes, filled."""
        import pyarrow as pa

        from likely.data.arrow import text_of, without_words

        labels = None
        if self.target is not None and self.target in batch.schema.names:
            known = self.labels
            labels = [known.get(text, text) for text in text_of(batch.column(self.target)).to_pylist()]
        if hasattr(self.model, "schema_"):
            rows = self.model.impute(without_words(batch, self.missing), labels, how=how, random_state=generator)
            return {name: rows.column(name).combine_chunks() for name in rows.schema.names}
        cells = self.model.impute(table, labels, how=how, random_state=generator)
        names = self.schema.names if self.schema.named else batch.schema.names
        return {name: pa.array(cells[:, j]) for j, name in enumerate(names) if name in batch.schema.names}

    def drawn(self, number: int, given: dict[str, Any], generator: Any) -> Any:
        """Return new rows with their labels."""
        import pyarrow as pa

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

    def label(self, text: str | None) -> Any:
        """Return the class whose label is written so; text that is none stays, to be refused."""
        return None if text is None else self.labels.get(text, text)

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of the classes by how they are written."""
        import pyarrow as pa

        from likely.data.arrow import text_of

        classes = self.model.classes_
        ways = [map(str, classes.tolist()), text_of(pa.array(classes)).to_pylist()]
        if classes.dtype == bool:
            ways.append(str(label).upper() for label in classes)
        return {text: label for way in ways for text, label in zip(way, classes, strict=True)}


def plain_schema(model: Any) -> "Schema":
    """Return the columns of a model that was fitted on a matrix of numbers, or on texts."""
    from likely.data.schema import Column, Schema

    if type(model).__name__ == "TextClassifier":
        return Schema((Column("text", "text", "text"),))
    names = getattr(model, "feature_names_in_", None)
    listed = map(str, range(model.n_features_in_) if names is None else names)
    return Schema(tuple(Column(name, "number") for name in listed), names is not None)
