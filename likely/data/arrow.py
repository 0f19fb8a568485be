"""Arrow columns in few types: numbers, yes/no, text, categories, dates. And Python's values as such columns."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.lazy import pa, pc

UNNAMED = {b"likely": b"unnamed"}
"""Metadata of the schema of a table whose columns have only numbers."""
LABELS = b"labels"
"""Where these metadata have the name of a column of labels, which has one nevertheless."""


_BOOLEANS = ("true", "false", "True", "False", "TRUE", "FALSE")


def is_named(schema: pa.Schema) -> bool:
    """Say whether the columns of a table have names."""
    return (schema.metadata or {}).get(b"likely") != b"unnamed"


def is_number(value: Any) -> bool:
    """Say whether a value, or text, is a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def is_text(kind: pa.DataType) -> bool:
    """Say whether a type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_dictionary_text(kind: pa.DataType) -> bool:
    """Say whether a type is that of dictionary-encoded text."""
    return bool(pa.types.is_dictionary(kind)) and is_text(kind.value_type)


def is_true_or_false(text: Any) -> bool:
    """Say whether all cells of text that are there are true or false, written in one of three ways.

    >>> is_true_or_false(pa.array(["True", None])), is_true_or_false(pa.array(["true", "yes"]))
    (True, False)
    """
    return bool(pc.all(pc.is_in(text.drop_null(), value_set=pa.array(_BOOLEANS, text.type))).as_py())


def casts(text: Any, kind: pa.DataType) -> bool:
    """Say whether all cells of text that are there can be cast to a type.

    >>> casts(pa.array(["1", None]), pa.int64()), casts(pa.array(["1", "a"]), pa.int64())
    (True, False)
    """
    try:
        text.slice(0, 64).cast(kind)  # Arrow is slow to refuse a long column
        text.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def plain(array: Any) -> Any:
    """Return a column in one of the types that are read further; others, such as lists, stay as they are.

    >>> plain(pa.array([decimal.Decimal("1.5"), None])).type
    DataType(double)
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # more text than one array can hold
            array = array.cast(pa.large_string()).combine_chunks()
    if isinstance(array, pa.ExtensionArray) and array.type.extension_name != "pandas.period":  # numbers, but no dates
        array = array.storage
    kind = array.type
    types = pa.types
    if types.is_dictionary(kind):
        values = plain(array.dictionary)
        return array if values.type == kind.value_type else pa.DictionaryArray.from_arrays(array.indices, values)
    if types.is_decimal(kind):
        return array.cast(pa.float64())
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if types.is_date64(kind):
        return array.cast(pa.date32())
    if str(kind) == "string_view":
        try:
            return array.cast(pa.large_string())
        except pa.ArrowNotImplementedError:  # before Arrow 18
            return pa.array(array.to_pylist(), pa.large_string())
    if str(kind).startswith("run_end_encoded"):
        return plain(pc.run_end_decode(array))
    return array


def plain_batch(batch: Any) -> pa.RecordBatch:
    """Return a batch whose columns are plain."""
    columns = [plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names).replace_schema_metadata(batch.schema.metadata)


def text_of(array: Any) -> Any:
    """Return the cells of a column as text: 3 and 3.0 are both "3", true is "true", a date is "2024-02-29".

    >>> text_of(pa.array([3.0, 0.5, None])).to_pylist()
    ['3', '0.5', None]
    """
    kind, types = array.type, pa.types
    if is_text(kind):
        return array
    if types.is_dictionary(kind):
        return pc.take(text_of(array.dictionary), array.indices)
    if types.is_null(kind) or types.is_boolean(kind) or types.is_integer(kind) or types.is_date32(kind):
        return array.cast(pa.string())
    if types.is_timestamp(kind):
        text = array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.string())
        text = pc.replace_substring_regex(text, r"\.0+(Z?)$", r"\1")
        return pc.replace_substring_regex(text, r" 00:00:00Z?$", "")
    if types.is_floating(kind):
        encoded = array.dictionary_encode()
        written = [_number_text(value) for value in encoded.dictionary.to_numpy(zero_copy_only=False)]
        return pc.take(pa.array(written, pa.string()), encoded.indices)
    raise ValueError(f"expected numbers, text, dates or yes/no, got {kind}")


def _number_text(value: Any) -> str | None:
    if np.isnan(value):
        return None
    return str(int(value)) if abs(value) < 1e18 and value == int(value) else str(value)


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds the cells of both: text if nothing else does.

    >>> common_type(pa.int64(), pa.float64()), common_type(pa.float64(), pa.string())
    (DataType(double), DataType(string))
    """
    types = pa.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    both = (one, other)
    if all(map(types.is_integer, both)):
        if pa.uint64() not in both:
            return pa.int64()
        return pa.float64() if any(map(types.is_signed_integer, both)) else pa.uint64()
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in both):
        return pa.float64()
    if all(map(types.is_temporal, both)):
        zones = {getattr(kind, "tz", None) for kind in both}
        if len(zones) == 1 and all(types.is_timestamp(kind) or types.is_date32(kind) for kind in both):
            return pa.timestamp("us", zones.pop())
    return pa.large_string() if any(map(types.is_large_string, both)) else pa.string()


def as_floats(column: Any) -> NDArray[Any]:
    """Return a column of numbers or yes and no as NumPy's floats, NaN where a cell is missing.

    >>> as_floats(pa.array([True, None, False])).tolist()
    [1.0, nan, 0.0]
    """
    column = column if pa.types.is_floating(column.type) else column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def recast(array: Any, kind: pa.DataType) -> Any:
    """Return a column in a wider type."""
    if array.type == kind:
        return array
    if is_text(kind):
        return text_of(array).cast(kind)
    return array.cast(kind, safe=not pa.types.is_floating(kind))


def concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Return tables with the same columns as one, in types that hold the cells of all.

    >>> concat_tables([pa.table({"a": [1]}), pa.table({"a": ["x"]})]).column("a").to_pylist()
    ['1', 'x']
    """
    columns = {}
    for name in tables[0].schema.names:
        cells = [plain(table.column(name)) for table in tables]
        kind = reduce(common_type, (each.type for each in cells))
        columns[name] = pa.chunked_array([recast(each, kind) for each in cells])
    return pa.table(columns)


def concat_batches(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return batches as one table, also if parts of a stream came in other types or orders of columns; or an empty one.

    >>> batches = [pa.record_batch({"a": [1]}), pa.record_batch({"a": [0.5]})]
    >>> concat_batches(batches, pa.schema([])).column("a").to_pylist()
    [1.0, 0.5]
    """
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches, batches[0].schema if batches else schema)
    for number, batch in enumerate(batches):
        if odd := set(batch.schema.names) ^ set(batches[0].schema.names):
            raise ValueError(
                f"expected the columns of the first part of a stream in all, got others in part {number + 1}: "
                f"{sorted(odd)[0]!r} is not in both"
            )
    return concat_tables([pa.Table.from_batches([batch]) for batch in batches])


def words_as_missing(batch: pa.RecordBatch, words: Collection[str]) -> pa.RecordBatch:
    """Return a batch in which text and numbers that stand for a missing cell are missing."""
    if not words:
        return batch
    columns = list(batch.columns)
    numbers = pa.array([float(word) for word in words if is_number(word) and not np.isnan(float(word))], pa.float64())
    for j, column in enumerate(columns):
        if is_text(column.type):
            columns[j] = words_as_null(column, words)
        elif is_dictionary_text(column.type):
            indices, gone = column.indices, pc.is_null(words_as_null(column.dictionary, words))
            hidden = pc.take(gone, indices)
            kept = pc.if_else(hidden, pa.scalar(None, indices.type), indices)
            columns[j] = pa.DictionaryArray.from_arrays(kept, column.dictionary)
        elif len(numbers) and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            found = pc.is_in(column.cast(pa.float64(), safe=False), value_set=numbers)
            if pc.any(found).as_py():
                columns[j] = pc.replace_with_mask(column, found, pa.scalar(None, column.type))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def words_as_null(column: Any, words: Collection[str], *, trimmed: bool = False) -> Any:
    """Return a column of text in which some words, with or without spaces around them, are missing."""
    text = column if trimmed else pc.utf8_trim_whitespace(column)
    if tuple(words) == ("",):
        found = pc.equal(pc.binary_length(text), 0)
    else:
        found = pc.is_in(text, value_set=pa.array(list(words), column.type))
    if not pc.any(found).as_py():
        return column
    # if_else would do, but Arrow 16 takes wrong text with it from a part of a column.
    return pc.replace_with_mask(column, found, pa.scalar(None, column.type))


def from_values(values: Iterable[Any], where: str) -> Any:
    """Return Python's values as a column; numbers among text become text.

    >>> from_values([1, "a", None, 2.0, float("nan")], "column 'x'").to_pylist()
    ['1', 'a', None, '2', None]
    >>> from_values([np.datetime64("2024-12-31"), None], "column 'x'").to_pylist()
    [datetime.date(2024, 12, 31), None]
    """
    values = values if hasattr(values, "__len__") else list(values)
    if str(getattr(values, "dtype", "")).startswith("period["):
        periods: Any = getattr(values, "array", values)
        values = periods.to_timestamp()
    dtype = getattr(values, "dtype", None)
    # NaN stays what it is: to look for it would take longer than to read the cells in place.
    nulls = not (isinstance(dtype, np.dtype) and dtype.kind == "f")
    try:
        return plain(pa.array(values, from_pandas=nulls))
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    kept = [None if _is_missing(value) else value for value in values]
    if all(isinstance(value, np.datetime64 | None) for value in kept):
        return from_values(np.array([np.datetime64("NaT") if value is None else value for value in kept]), where)
    numbers = int | float | np.number | decimal.Decimal | None
    if all(isinstance(v, numbers) and not isinstance(v, bool) for v in kept):  # huge ones, or of several types
        try:
            return pa.array([None if value is None else float(value) for value in kept], pa.float64())
        except OverflowError:
            raise ValueError(f"expected numbers that floats can hold in {where}, got one of 1e308 or more") from None
    return pa.array([None if value is None else _value_text(value, where) for value in kept], pa.string())


def _is_missing(value: Any) -> bool:
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _value_text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return checked_text(value, where)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating | decimal.Decimal):
        return _number_text(float(value)) or "nan"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise ValueError(
        f"expected numbers, text, dates or yes/no in {where}, got a value of the type {type(value).__name__}: "
        "make it one of them, or leave the column out"
    )


def from_records(records: Sequence[Mapping[str, Any]], where: Callable[[int], str]) -> pa.RecordBatch:
    """Return rows, each a mapping from names to values, as a batch; what a row does not name is missing."""
    names: dict[str, None] = {}
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ValueError(f"expected a mapping from names to values in {where(i)}, got {type(record).__name__}")
        names.update(dict.fromkeys(record))
    for name in names:
        checked_name(name)
    columns = [from_values([record.get(name) for record in records], f"column {name!r}") for name in names]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def checked_name(name: Any) -> str:
    """Return the name of a column, or raise if it is none."""
    if not isinstance(name, str):
        raise TypeError(f"expected text as names of columns, got {name!r}")
    return checked_text(name, "the names of columns")


def checked_text(text: str, where: str) -> str:
    """Return text, or raise if it has half a character in it, as a name of a file or broken JSON may have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"expected text of whole characters in {where}, got {text[:80]!r}: replace what stands after the backslash"
        ) from None
    return text


def check_names(names: Sequence[str], where: str) -> None:
    """Raise if two columns have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"expected a different name for every column in {where}, got {twice!r} twice: rename one")
