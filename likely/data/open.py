"""Which kind of table it is that was given."""

import io
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from likely.data.arrow import check_names, checked_name, from_records, from_values, plain_batch
from likely.data.sources import RepeatableSource, Source, StreamSource, TableSource
from likely.messages import Advice


def open_source(data: Any, missing: tuple[str, ...], format_name: str | None, typed: bool) -> Source:
    """Return the rows of anything that is a table."""
    if _is_path(data) or (isinstance(data, list | tuple) and data and all(map(_is_path, data))):
        from likely.data.files import path_source

        paths = [data] if _is_path(data) else data
        return path_source([os.fspath(path) for path in paths], missing, format_name, typed)
    if hasattr(data, "read") and hasattr(data, "readable"):
        return _open_file(data, missing, format_name, typed)
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


def _open_file(data: Any, missing: tuple[str, ...], format_name: str | None, typed: bool) -> Source:
    from likely.data.files import stream_source
    from likely.data.paths import OPEN_WITH_FORMAT, parse_format

    if isinstance(data, io.TextIOBase):
        raise TypeError("expected a file opened in binary mode, got one in text mode: open it with mode 'rb'")
    if format_name is None:
        raise ValueError(Advice("expected the format of an open file, got none: ", OPEN_WITH_FORMAT, ", such as 'csv'"))
    name = getattr(data, "name", None)
    return stream_source(
        data, repr(name) if isinstance(name, str) else "the stream", missing, parse_format(format_name), typed
    )


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
        return RepeatableSource(_polars(data.limit(0).collect()).schema, lambda: _lazy_batches(data))
    if module == "polars" and hasattr(data, "collect"):
        return TableSource(_polars(data.collect()))
    if module == "polars":
        return TableSource(_polars(data))
    if hasattr(data, "__arrow_c_stream__"):
        return _streamed(data)
    if isinstance(data, np.ndarray):
        return _array(data)
    if isinstance(data, Mapping):
        return _columns(data)
    if isinstance(data, list | tuple):
        return _list(data)
    return _generated(data) if isinstance(data, Iterator) else None


def _streamed(data: Any) -> Source:
    """Return what speaks Arrow; a relation of DuckDB is asked again for every pass."""
    reader = pa.RecordBatchReader.from_stream(data)
    return RepeatableSource(reader.schema, lambda: pa.RecordBatchReader.from_stream(data))


def _polars(frame: Any) -> pa.Table:
    frame = frame.to_frame() if not hasattr(frame, "columns") else frame
    return frame.to_arrow()


def _lazy_batches(frame: Any) -> Iterator[pa.RecordBatch]:
    for part in frame.collect_batches():
        yield from _polars(part).to_batches()


def _pandas(frame: Any) -> Source:
    from likely.data.table import column_names

    names = column_names(frame)
    for name in names or ():
        checked_name(name)
    columns = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        where = f"column {names[j] if names else j!r}"
        columns.append(from_values(column.array if column.dtype == object else column, where))
    table = pa.table(columns, names=[str(j) for j in range(len(columns))] if names is None else list(names))
    return TableSource(table, named=names is not None)


def _array(data: Any) -> Source | None:
    if data.dtype.names is not None and data.ndim == 1:
        return _columns({name: data[name] for name in data.dtype.names})
    if data.ndim != 2 or data.dtype.kind == "c":
        return None
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), np.nan)
    columns = [from_values(data[:, j], f"column {j}") for j in range(data.shape[1])]
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
        return TableSource(pa.table(columns, names=[str(j) for j in range(len(columns))]), named=False)
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
