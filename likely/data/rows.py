"""From anything that is a table to batches of Arrow columns: frames, arrays, records, files and streams."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.data.arrow import (
    check_names,
    checked_name,
    concat_batches,
    from_records,
    from_values,
    is_named,
    plain_batch,
    words_as_missing,
)
from likely.data.paths import OPEN_WITH_FORMAT, parse_format
from likely.data.progress import progress_bar
from likely.data.sources import RepeatableSource, Source, StreamSource, TableSource
from likely.data.table import column_names
from likely.lazy import pa
from likely.messages import Advice

T = TypeVar("T")


class Progress(NamedTuple):
    """How far a table has been read: so many bytes or rows of a total, which is None if nobody knows it."""

    done: int
    total: int | None
    unit: str


class Rows:
    """A table, in memory or out-of-core, to be read in batches, as often as needed."""

    partitions: int = 1
    """how many results ``map`` returns"""

    def __init__(self, source: Source, missing: Collection[str] = ()) -> None:
        self._source, self.in_memory = source, source.in_memory
        self.missing = tuple(missing)
        """the text that stands for a missing cell"""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow types of the columns, true of all rows."""
        return self._source.schema

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns, or None if they have none."""
        return tuple(self.schema.names) if is_named(self.schema) else None

    def with_missing(self, words: Collection[str]) -> Rows:
        """Return the same rows, in which more words stand for a missing cell."""
        more = [word for word in words if word not in self.missing]
        return type(self)(self._source, (*self.missing, *more)) if more else self

    def filtered(self, chosen: NDArray[np.bool_]) -> Rows:
        """Return some of the rows, which must be in memory.

        >>> open_rows({"age": [31, 40, 52]}).filtered(np.array([True, False, True])).count()
        2
        """
        table = pa.Table.from_batches(self._source.batches(), self.schema).filter(pa.array(chosen))
        return Rows(TableSource(table, named=self.names is not None), self.missing)

    @property
    def progress(self) -> Progress:
        """How far the last of the ``batches`` has been read."""
        return Progress(self._source.done, self._source.total, self._source.unit)

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows, some megabytes at a time. Every call begins again at the first row.

        ``dictionaries``: columns of text may come as dictionaries, where that is how they are stored.
        """
        for batch in self._source.batches(dictionaries=dictionaries):
            yield words_as_missing(batch, self.missing)

    def count(self) -> int:
        """Return how many rows there are. Of rows that pass by once, this reads the rest."""
        return self._source.count()

    def map(self, work: Callable[[Rows], T]) -> list[T]:
        """Return what is made of the rows: of each partition, in their order, if there are several."""
        with nullcontext() if self.in_memory else progress_bar(self, "reading"):
            return [work(self)]

    def reduce(self, work: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Return what is made of the rows, that of all partitions added up in their order if there are several."""
        return reduce(add, self.map(work))

    def sample(self, rows: int) -> pa.Table:
        """Return up to so many rows, from all over the table where that is cheap."""
        return concat_batches(
            [words_as_missing(batch, self.missing) for batch in self._source.sample(rows)], self.schema
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
    missing = missing_words(missing)
    if isinstance(data, Rows):
        return data.with_missing(missing)
    return Rows(_opened(data, missing, format, typed), missing)


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


def _opened(data: Any, missing: tuple[str, ...], format_name: str | None, typed: bool) -> Source:
    """Return the rows of anything that is a table."""
    if _is_path(data) or (isinstance(data, list | tuple) and data and all(map(_is_path, data))):
        from likely.data.files import path_source

        paths = [data] if _is_path(data) else data
        return path_source([os.fspath(path) for path in paths], missing, format_name, typed)
    if hasattr(data, "read") and hasattr(data, "readable"):
        from likely.data.files import stream_source

        if isinstance(data, io.TextIOBase):
            raise TypeError("expected a file opened in binary mode, got one in text mode: open it with mode 'rb'")
        if format_name is None:
            expected = "expected the format of an open file, got none: "
            raise ValueError(Advice(expected, OPEN_WITH_FORMAT, ", such as 'csv'"))
        name = getattr(data, "name", None)
        label = repr(name) if isinstance(name, str) else "the stream"
        return stream_source(data, label, missing, parse_format(format_name), typed)
    if format_name is not None:
        raise ValueError(
            f"expected a path or an open file with a format, got {type(data).__name__} and {format_name!r}"
        )
    source = _in_memory(data)
    if source is None:
        raise TypeError(
            f"expected a table: a frame, an array, a list of dicts, a dict of columns or a path, got {_described(data)}"
        )
    check_names(source.schema.names, "the table")
    return source


def _is_path(data: Any) -> bool:
    return isinstance(data, str | os.PathLike)


def _described(data: Any) -> str:
    return f"{type(data).__name__} of {data.ndim} dimensions" if isinstance(data, np.ndarray) else type(data).__name__


def _in_memory(data: Any) -> Source | None:
    if isinstance(data, pa.Table):
        return TableSource(data)
    if isinstance(data, pa.RecordBatch):
        return TableSource(pa.Table.from_batches([data]))
    if isinstance(data, pa.RecordBatchReader):
        return StreamSource((plain_batch(batch) for batch in data), plain_batch(data.schema.empty_table()).schema)
    if hasattr(data, "to_batches") and hasattr(data, "count_rows"):  # a dataset of Arrow's
        return RepeatableSource(
            data.schema, lambda: data.to_batches(batch_readahead=1, fragment_readahead=1), data.count_rows()
        )
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "columns"):
        return _pandas(data)
    if module == "pandas" and hasattr(data, "to_frame"):
        return _pandas(data.to_frame(data.name if isinstance(data.name, str) else "0"))
    if module == "polars" and hasattr(data, "collect_batches"):
        return RepeatableSource(
            data.limit(0).collect().to_arrow().schema,
            lambda: (batch for part in data.collect_batches() for batch in part.to_arrow().to_batches()),
        )
    if module == "polars":
        frame = data.collect() if hasattr(data, "collect") else data
        return TableSource((frame if hasattr(frame, "columns") else frame.to_frame()).to_arrow())
    if hasattr(data, "__arrow_c_stream__"):
        # A relation of DuckDB is asked again for every pass.
        reader = pa.RecordBatchReader.from_stream(data)
        return RepeatableSource(reader.schema, lambda: pa.RecordBatchReader.from_stream(data))
    if isinstance(data, np.ndarray):
        return _array(data)
    if isinstance(data, Mapping):
        return _columns(data)
    if isinstance(data, list | tuple):
        return _list(data)
    return _generated(data) if isinstance(data, Iterator) else None


def _pandas(frame: Any) -> Source:

    names = column_names(frame)
    for name in names or ():
        checked_name(name)
    columns = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        where = f"column {names[j] if names else j!r}"
        columns.append(from_values(column.array if column.dtype == object else column, where))
    return _unnamed(columns) if names is None else TableSource(pa.table(columns, names=list(names)))


def _array(data: Any) -> Source | None:
    if data.dtype.names is not None and data.ndim == 1:
        return _columns({name: data[name] for name in data.dtype.names})
    if data.ndim != 2 or data.dtype.kind == "c":
        return None
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), np.nan)
    columns = [from_values(data[:, j], f"column {j}") for j in range(data.shape[1])]
    return _unnamed(columns)


def _unnamed(columns: list[Any]) -> Source:
    return TableSource(pa.table(columns, names=[str(j) for j in range(len(columns))]), named=False)


def _columns(data: Mapping[Any, Any]) -> Source:
    columns = {}
    for name, values in data.items():
        checked_name(name)
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise TypeError(f"expected a list or an array in column {name!r}, got {type(values).__name__}")
        values = values.to_arrow() if hasattr(values, "to_arrow") else values
        is_arrow = isinstance(values, pa.Array | pa.ChunkedArray)
        columns[name] = values if is_arrow else from_values(values, f"column {name!r}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest, longest = min(lengths, key=lambda n: lengths[n]), max(lengths, key=lambda n: lengths[n])
        raise ValueError(
            f"expected columns of one length, got {lengths[shortest]} cells in {shortest!r} and {lengths[longest]} in "
            f"{longest!r}"
        )
    return TableSource(pa.table(columns))


def _list(data: Any) -> Source | None:
    if not data or isinstance(data[0], Mapping):
        return TableSource(pa.Table.from_batches([from_records(data, lambda i: f"row {i + 1}")]))
    if isinstance(data[0], list | tuple | np.ndarray):
        widths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in data}
        if len(widths) > 1:
            raise ValueError(f"expected rows of one length, got {min(widths)} and {max(widths)} cells")
        columns = [from_values([row[j] for row in data], f"column {j}") for j in range(len(data[0]))]
        return _unnamed(columns)
    return None


def _generated(data: Iterator[Any]) -> Source:
    """Return batches, tables or frames that come one by one."""

    def batches() -> Iterator[pa.RecordBatch]:
        for part in data:
            source = _in_memory(part)
            if source is None:
                raise TypeError(f"expected tables or frames, one by one, got {_described(part)}")
            yield from source.batches()

    return StreamSource(batches())
