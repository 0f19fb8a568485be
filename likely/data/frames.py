"""Tables of numbers back into what the user has: Arrow columns with their names, and frames of the user's library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.arrow import from_values, is_text
from likely.data.cells import boolean_words, timestamps
from likely.data.dates import counted_dates, dates_from_counts, dates_from_parts, in_type, named_type
from likely.data.schema import Column
from likely.data.table import Block, Table
from likely.lazy import pa, pc
from likely.statistics import Array, Labels

# Below this, floats are integers of 64 bits to the last digit.
_EXACT = 2.0**53
# How long 2024-12-31 is, what NumPy calls days, and how many seconds a day is longer than its first moment.
_DAY, _DAYS, _TO_MIDNIGHT = 10, np.dtype("datetime64[D]"), 86_400 - 1e-6
# What stands for a part of dates that nobody has seen.
_UNKNOWN = (("year", "1970"), ("month", "January"), ("weekday", "Monday"), ("hour", "0"))


def completed(table: Table, filled: Array, j: int, names: Labels | None) -> NDArray[Any]:
    """Return the values of a column: its own cells, and what was found where one is missing.

    ``names``: those of the categories in ``filled``. None stands for what is still missing.
    """
    own = Block(table, [j]).values()[:, 0]
    there, nothing = ~np.isnan(own), np.full(len(own), None, dtype=object)
    kind = table.kinds[j]
    if kind == "text":  # what is missing stays so
        return np.array(table.strings[j].to_pylist(), dtype=object) if j in table.strings else nothing
    if kind != "category":
        values = np.where(there, own, filled[:, j])
        if kind == "number":
            return values
        return _whole(values, bool if kind == "boolean" else int)
    out = nothing
    if there.any():
        out[there] = np.asarray(table.categories[j], dtype=object)[own[there].astype(np.int64)]
    found = ~there & ~np.isnan(filled[:, j])
    if names is not None:
        out[found] = names[filled[found, j].astype(np.int64)]
    return out


def _whole(values: Array, kind: type) -> NDArray[Any]:
    """Return numbers as integers or booleans, None where one is missing."""
    if (np.abs(values) < _EXACT).all():  # none is missing, and all are integers of 64 bits
        return np.rint(values).astype(np.int64).astype(kind).astype(object)
    return np.array([None if np.isnan(value) else kind(round(value)) for value in values.tolist()], dtype=object)


def whole_numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return whole numbers in a type of them; those beyond its range become the nearest that it has."""
    range_ = np.iinfo(kind.to_pandas_dtype())
    least, most = int(range_.min), int(range_.max)
    try:
        return pa.array(np.clip(values.astype(np.int64), least, most).astype(kind.to_pandas_dtype()), kind)
    except (TypeError, OverflowError):  # one is missing, or beyond 64 bits
        pass
    return pa.array([None if value is None else min(max(value, least), most) for value in values.tolist()], kind)


def column_type(column: Column | None) -> pa.DataType:
    """Return the type of a column of whole numbers."""
    return pa.uint64() if column is not None and column.type else pa.int64()


def in_words(values: NDArray[Any], words: Sequence[str]) -> pa.Array:
    """Return true and false as the words for no and yes."""
    return pa.array([None if value is None else words[value] for value in values.tolist()], pa.string())


def _digits(column: pa.ChunkedArray, known: Column | None) -> tuple[str, str]:
    """Return how no and yes are written where numbers stood for them, or else that they are false and true."""
    if known is None or known.source not in ("integer", "number"):
        return "false", "true"
    shown = column.drop_null().slice(0, 1).to_pylist()
    return ("0.0", "1.0") if shown and "." in shown[0] else ("0", "1")


def filled_column(column: pa.ChunkedArray, values: NDArray[Any], known: Column | None) -> pa.ChunkedArray:
    """Return a column with values in place of missing cells, of its own type if that holds them. Others stay.

    ``known``: the column that was learned, which says how cells are written where there are none.
    """
    is_missing = column.is_null(nan_is_null=True)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    missing = values[is_missing.to_numpy()]
    empty, learned = pa.types.is_null(column.type), () if known is None else known.words
    if missing.dtype.kind == "M":
        kind = pa.timestamp("us") if pa.types.is_null(column.type) else column.type
        found = in_type(missing, kind)
    elif all(type(value) is int for value in missing) and (empty or pa.types.is_integer(column.type)):
        found = whole_numbers(missing, column_type(known) if empty else column.type)
    elif all(type(value) is bool for value in missing) and (is_text(column.type) or (empty and learned)):
        found = in_words(missing, (() if empty else boolean_words(column)) or learned or _digits(column, known))
    elif pa.types.is_floating(column.type):  # which may hold integers that it cannot tell from their neighbours
        found = pa.array([None if value is None else float(value) for value in missing.tolist()], pa.float64())
    else:
        found = pa.array(missing.tolist(), from_pandas=True)
    try:
        found = found.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        column = column.cast(found.type)
    return pc.replace_with_mask(column.combine_chunks(), is_missing.combine_chunks(), found)


def moments(
    column: Column, cells: Mapping[str, NDArray[Any]], generator: np.random.Generator | None
) -> NDArray[np.datetime64]:
    """Return the dates of a column whose parts, or counts, were found; what is the same in all rows it knows."""
    found = dict(zip(column.parts, cells.values(), strict=True))
    if column.unit:
        return dates_from_counts(np.array(found[column.unit], dtype=np.float64), column.unit)
    rows = len(next(iter(found.values())))
    fixed = {part: [value] * rows for part, value in (*_UNKNOWN, *column.fixed.items())}
    return dates_from_parts({**fixed, **found}, generator)


def drawn_dates(
    column: Column, cells: Mapping[str, NDArray[Any]], given: Any, generator: np.random.Generator
) -> pa.Array:
    """Return dates whose parts were drawn, or the one that was given, in the type of their column."""
    dates: Any = moments(column, cells, generator)
    if given is not None and not column.unit:  # of dates that are counted, it is in the cells
        cell = timestamps(from_values([given], f"column {column.name!r}"))
        wall = cell if cell.type.tz is None else pc.local_timestamp(cell)
        dates = [wall[0].as_py()] * len(dates)
    return in_type(dates, named_type(column.type))


def counted_date(column: Column, value: Any, *, last: bool = False) -> float:
    """Return a date, as Python, NumPy or text have it, in the unit of a column of dates.

    ``last``: it is the end of a range, which a day belongs to until midnight.
    """
    moment = timestamps(from_values([value], f"column {column.name!r}"))
    found = float(counted_dates(moment, column.unit, named_type(column.type))[0])
    is_day = len(value.strip()) == _DAY if isinstance(value, str) else not hasattr(value, "hour")
    is_day = is_day and getattr(value, "dtype", _DAYS) == _DAYS
    return found + (_TO_MIDNIGHT if last and is_day and column.unit == "second" else 0.0)


def dates_as_asked(column: Column, counts: Array) -> NDArray[np.datetime64]:
    """Return dates of their column's unit as NumPy's: days, or microseconds, by the clock of the column's zone."""
    if column.unit == "day":
        return dates_from_counts(np.rint(counts), "day").astype("datetime64[D]")
    return dates_from_counts(counts, column.unit)


def arrow(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return columns as an Arrow table."""
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def like(table: pa.Table, data: Any) -> Any:
    """Return an Arrow table as the kind of frame that some data are: pandas, Polars, or Arrow."""
    library = type(data).__module__.split(".")[0]
    if library == "pandas":
        frame = table.to_pandas()
        frame.index = data.index if len(data) == len(frame) else frame.index
        return frame
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    return table
