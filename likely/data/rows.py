"""From anything that is a table to batches of Arrow columns: frames, arrays, records, files and streams.

Arrow is imported when the first table is opened, and not before.
"""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

    from likely.data.sources import Source


T = TypeVar("T")


class Progress(NamedTuple):
    """How far a table has been read: so many bytes or rows of a total, which is None if nobody knows it."""

    done: int
    total: int | None
    unit: str


class Rows:
    """A table, in memory or out-of-core, to be read in batches, as often as needed."""

    def __init__(self, source: "Source", missing: Collection[str] = ()) -> None:
        self._source = source
        self._missing = tuple(missing)

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow types of the columns, true of all rows."""
        return self._source.schema

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns, or None if they have none."""
        return tuple(self.schema.names) if self._source.named else None

    @property
    def missing(self) -> tuple[str, ...]:
        """The text that stands for a missing cell."""
        return self._missing

    def with_missing(self, words: Collection[str]) -> "Rows":
        """Return the same rows, in which more words stand for a missing cell."""
        more = [word for word in words if word not in self._missing]
        return Rows(self._source, (*self._missing, *more)) if more else self

    def filtered(self, chosen: "NDArray[np.bool_]") -> "Rows":
        """Return some of the rows, which must be in memory.

        >>> from likely.data.rows import open_rows
        >>> open_rows({"age": [31, 40, 52]}).filtered(np.array([True, False, True])).count()
        2
        """
        import pyarrow as pa

        from likely.data.sources import TableSource

        table = pa.Table.from_batches(self._source.batches(), self.schema).filter(pa.array(chosen))
        return Rows(TableSource(table, named=self._source.named), self._missing)

    @property
    def in_memory(self) -> bool:
        """Whether all rows are in memory."""
        return self._source.in_memory

    @property
    def partitions(self) -> int:
        """How many results ``map`` returns."""
        return 1

    @property
    def progress(self) -> Progress:
        """How far the last of the ``batches`` has been read."""
        return Progress(self._source.done, self._source.total, self._source.unit)

    def batches(self, *, dictionaries: bool = False) -> "Iterator[pa.RecordBatch]":
        """Return all rows, some megabytes at a time. Every call begins again at the first row.

        ``dictionaries``: columns of text may come as dictionaries, where that is how they are stored.
        """
        from likely.data.arrow import words_as_missing

        for batch in self._source.dictionary_batches() if dictionaries else self._source.batches():
            yield words_as_missing(batch, self._missing)

    def count(self) -> int:
        """Return how many rows there are. Of rows that pass by once, this reads the rest."""
        return self._source.count()

    def map(self, work: "Callable[[Rows], T]") -> "list[T]":
        """Return what is made of the rows: of each partition, in their order, if there are several."""
        return [self._with_progress(work)]

    def reduce(self, work: "Callable[[Rows], T]", add: "Callable[[T, T], T]") -> "T":
        """Return what is made of the rows, that of all partitions added up in their order if there are several."""
        return self._with_progress(work)

    def _with_progress(self, work: "Callable[[Rows], T]") -> "T":
        from likely.data.progress import progress_bar

        if self.in_memory:
            return work(self)
        with progress_bar(self, "reading"):
            return work(self)

    def sample(self, rows: int) -> "pa.Table":
        """Return up to so many rows, from all over the table where that is cheap."""
        from likely.data.arrow import concat_batches, words_as_missing

        return concat_batches(
            [words_as_missing(batch, self._missing) for batch in self._source.sample(rows)], self.schema
        )


def open_rows(data: Any, *, missing: Any = (), format: str | None = None, typed: bool = True) -> Rows:  # noqa: A002
    """Open a table.

    Parameters
    ----------
    data
        a frame of pandas or Polars; a table, dataset or stream of Arrow; a relation of DuckDB; a structured or
        two-dimensional array; a list of dicts; a dict of columns; the path of a CSV, TSV, Parquet, Arrow, Feather or
        JSON lines file, of a folder of them, or with wildcards; a list of paths; an open binary file, whose format
        must be given; or rows that are open already
    missing
        text or numbers that stand for a missing cell, such as ``("?", -999)``. Null, NaN, NaT and empty cells of CSV
        always do
    format
        "csv", "tsv", "jsonl", "parquet" or "arrow", also with ".gz" or ".zst" after the first three. By default what
        the file's name ends with
    typed
        whether cells of CSV files become numbers and dates. That takes a pass over all of a large file, since only the
        last row decides. Where a ``Schema`` is known already, it is not needed

    >>> rows = open_rows([{"age": 31, "city": "Oslo"}, {"age": None, "city": "?"}], missing=["?"])
    >>> rows.names
    ('age', 'city')
    >>> [batch.to_pylist() for batch in rows.batches()]
    [[{'age': 31, 'city': 'Oslo'}, {'age': None, 'city': None}]]
    """
    from likely.data.open import open_source

    missing = missing_words(missing)
    if isinstance(data, Rows):
        return data.with_missing(missing)
    return Rows(open_source(data, missing, format, typed), missing)


def missing_words(missing: Any) -> tuple[str, ...]:
    """Return what stands for a missing cell as text: one or several words or numbers.

    >>> missing_words(["?", -999, 0.5])
    ('?', '-999', '0.5')
    """
    given = missing if isinstance(missing, Collection) and not isinstance(missing, str) else (missing,)
    if not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in given):
        raise ValueError(
            f"expected text or numbers that stand for a missing cell, or several in a list, got missing={missing!r}"
        )
    whole = (int(word) if isinstance(word, float) and word.is_integer() else word for word in given)
    return tuple(map(str, whole))


__all__ = ["Progress", "Rows", "missing_words", "open_rows"]
