"""Arrow columns as the cells of a table: numbers, yes/no as 1 and 0, categories as codes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from likely.data.arrow import LABELS, as_floats, casts, is_named, is_text, plain, text_of, words_as_null
from likely.data.dates import counted_dates, date_part, named_type
from likely.data.labels import text_array
from likely.data.schema import NO, YES, Column, Schema, UnlikeSampleError, check_name
from likely.data.table import CellBuffer, Table, listed
from likely.lazy import pa, pc
from likely.messages import Advice, Setting, warn
from likely.statistics import Labels

_LARGEST = 1 << 28
"""So many bytes the names of the categories of a column may take."""


def source_of(kind: pa.DataType) -> str:
    """Return what the cells of an Arrow type are."""
    types = pa.types
    if types.is_dictionary(kind):
        return source_of(kind.value_type)
    if is_text(kind) or types.is_null(kind):
        return "text"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind):
        return "number"
    return "date" if types.is_timestamp(kind) or types.is_date32(kind) else "other"


class UnfitCellError(ValueError):
    """A cell that is not what its column holds: what was expected, what came, and in which row of the column."""

    def __init__(self, expected: str, value: str, row: int):
        super().__init__(expected, value, row)
        self.expected, self.value, self.row = expected, value, row

    def sentence(self, name: str, where: str = "", kind: str = "category") -> Advice:
        """Return what to say, and to do: the column may be of another kind."""
        return Advice(
            f"expected {self.expected} in column {name!r}, got {self.value!r}{where}: correct the cell, ",
            Setting("missing", None, "say that such text is missing"),
            ", or fit with ",
            Setting.of_column(name, kind, f'"{kind}"'),
        )


def read_cells(
    schema: Schema, batch: Any, numbers: Sequence[int], buffer: CellBuffer, *, note: bool, predicting: bool
) -> Table:
    """Return the cells of a batch; ``note``: whether to warn of columns that are not there."""
    found = _found(schema, batch)
    wanted = [column for column in schema.columns if column.kind != "ignore"]
    absent = [column.name for column in wanted if column.name not in found]
    if absent and len(absent) == len(wanted):
        got = listed(batch.schema.names)
        raise ValueError(f"expected a table with the columns {absent[:5]}, got one with none of them: {got}")
    table = Table(np.empty(0), schema.names if schema.named else None, kinds=schema.kinds, numbers=numbers)
    only_numbers = all(column.kind == "number" for column in wanted)
    if only_numbers and len(wanted) == len(schema.columns) and not absent:
        in_place = strided_matrix([found[column.name] for column in wanted])
        if in_place is not None:
            return replace(table, cells=in_place)
    small = only_numbers and found and all(found[c.name].type == pa.float32() for c in wanted if c.name in found)
    cells = buffer.cells(batch.num_rows, len(schema.names), np.float32 if small else np.float64)
    categories: dict[int, Labels] = {}
    strings: dict[int, Any] = {}
    j = 0
    for column in schema.columns:
        for part in _read(
            column, found.get(column.name), numbers, predicting=predicting, tentative=column.name in schema.tentative
        ):
            if part is None:
                cells[:, j] = np.nan
                if column.kind == "category":
                    categories[j] = np.empty(0, dtype="<U1")
                elif column.kind == "text":
                    strings[j] = pa.nulls(batch.num_rows, pa.large_string())
            elif isinstance(part, tuple):
                categories[j], cells[:, j] = part
            elif isinstance(part, pa.Array):
                strings[j] = part
                cells[:, j] = np.where(part.is_null().to_numpy(zero_copy_only=False), np.nan, 0.0)
            else:
                cells[:, j] = part
            j += 1
    if absent and note:
        warn(f"expected all columns of the first table, got none named {listed(absent)}: their cells are missing")
    return replace(table, cells=cells, categories=categories, strings=strings)


def _found(schema: Schema, batch: Any) -> dict[str, Any]:
    """Return the columns of a batch by the schema's names."""
    names = batch.schema.names
    if not is_named(batch.schema) or not schema.named:
        labels = (batch.schema.metadata or {}).get(LABELS, b"").decode()
        names = [name for name in names if name != labels]
        if len(names) != len(schema.columns):
            raise ValueError(
                f"expected {len(schema.columns)} columns, got {len(names)}: give the columns of the first table"
            )
        return {column.name: plain(batch.column(name)) for column, name in zip(schema.columns, names, strict=True)}
    known = {column.name for column in schema.columns if column.kind != "ignore"}
    return {name: plain(batch.column(j)) for j, name in enumerate(names) if name in known}


def _read(column: Column, cells: Any, numbers: Sequence[int], *, predicting: bool, tentative: bool) -> list[Any]:
    """Return what a column becomes: floats, or the names of categories and codes, or None if missing."""
    try:
        return _parts_of(column, cells, predicting=predicting, tentative=tentative)
    except UnfitCellError as error:
        where = f" in row {int(numbers[error.row]) + 1}"
        if column.kind == "boolean" and column.source in ("integer", "number"):
            try:
                cell = float(error.value)
            except ValueError:
                raise ValueError(error.sentence(column.name, where)) from None
            kind = "integer" if cell.is_integer() else "number"
            raise UnlikeSampleError(error.sentence(column.name, where, kind), column.name, cell, kind) from None
        raise ValueError(error.sentence(column.name, where)) from None


def _parts_of(column: Column, cells: Any, *, predicting: bool, tentative: bool) -> list[Any]:
    if not column.outputs:
        return []
    if cells is None or pa.types.is_null(cells.type):
        return [None] * len(column.outputs)
    if source_of(cells.type) == "other":
        article = "an" if column.kind == "integer" else "a"
        raise ValueError(
            f"expected {article} {column.kind} in column {column.name!r}, got {cells.type}: convert it first"
        )
    if column.kind == "date":
        moments = timestamps(cells)
        if column.unit:
            return [_counted(moments, column, tentative=tentative)]
        parts = [date_part(moments, part) for part in column.parts]
        return [as_floats(p) if pa.types.is_integer(p.type) else _encoded(p, column.name) for p in parts]
    if column.kind == "text":
        texts = text_of(cells).cast(pa.large_string())
        return [texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts]
    if column.kind == "category":
        return [_encoded(_canonical(cells, column), column.name)]
    if column.kind == "boolean":
        if column.source in ("integer", "number") and source_of(cells.type) == "text":
            with suppress(UnfitCellError):  # in a file that is read as text, what was 1 may be written as 1.0
                cells = _numbers(cells)
        return [as_floats(_yes_or_no(cells, predicting=predicting))]
    numbers = _numbers(cells)
    if tentative and column.kind == "integer" and column.source == "number" and pa.types.is_floating(numbers.type):
        odd = pc.and_(pc.not_equal(numbers, pc.trunc(numbers)), pc.invert(pc.is_nan(numbers)))
        if (row := pc.index(odd, True).as_py()) >= 0:
            raise UnlikeSampleError("expected whole numbers", column.name, numbers[row].as_py(), "number")
    return [as_floats(numbers)]


def _counted(moments: Any, column: Column, *, tentative: bool) -> NDArray[np.float64]:
    """Return dates in the unit of their column; of days, times of the day are left out unless all may have them."""
    found = counted_dates(moments, column.unit, named_type(column.type))
    if column.unit != "day":
        return found
    days = np.floor(found)
    if tentative and (odd := np.flatnonzero(days < found)).size:
        raise UnlikeSampleError("expected whole days", column.name, float(found[odd[0]]), "date")
    return days


def _numbers(cells: Any) -> Any:
    cells = _decoded(cells)
    source = source_of(cells.type)
    if source == "date":
        _refuse("a number", cells, 0)
    if source != "text":
        return cells
    return _cast_text(cells, pa.float64(), "a number")


def _decoded(cells: Any) -> Any:
    return pc.take(cells.dictionary, cells.indices) if pa.types.is_dictionary(cells.type) else cells


def _cast_text(cells: Any, kind: pa.DataType, expected: str) -> Any:
    text = words_as_null(pc.utf8_trim_whitespace(cells), [""], trimmed=True)
    with suppress(pa.ArrowInvalid):
        text.slice(0, 64).cast(kind)  # Arrow is slow to refuse a long column
        return text.cast(kind)
    first, last = 0, len(text)
    while last - first > 1:  # the first cell that does not fit is in text[first:last]
        middle = (first + last) // 2
        fits = casts(text.slice(first, middle - first), kind)
        first, last = (middle, last) if fits else (first, middle)
    return _refuse(expected, cells, first)


def _refuse(expected: str, cells: Any, row: int) -> NoReturn:
    raise UnfitCellError(expected, str(text_of(cells.slice(row, 1))[0].as_py())[:80], row)


def _yes_or_no(cells: Any, *, predicting: bool) -> Any:
    cells = _decoded(cells)
    if pa.types.is_boolean(cells.type):
        return cells
    if source_of(cells.type) in ("number", "integer"):
        there = pc.if_else(pc.is_nan(cells), None, cells) if pa.types.is_floating(cells.type) else cells
        odd = pc.and_(pc.not_equal(there, 0), pc.not_equal(there, 1))
        row = pc.index(odd, True).as_py()
        if row >= 0 and not predicting:
            _refuse("yes or no (true or false, 1 or 0)", cells, row)
        return pc.equal(there, 1) if row < 0 else pc.if_else(odd, None, pc.equal(there, 1))
    text = words_as_null(pc.utf8_lower(pc.utf8_trim_whitespace(text_of(cells))), [""], trimmed=True)
    yes = pc.is_in(text, value_set=pa.array(YES, text.type))
    unknown = pc.and_(pc.is_valid(text), pc.invert(pc.or_(yes, pc.is_in(text, value_set=pa.array(NO, text.type)))))
    row = pc.index(unknown, True).as_py()
    if row >= 0:
        _refuse("yes or no (true or false, 1 or 0)", cells, row)
    return pc.if_else(pc.is_valid(text), yes, pa.scalar(None, pa.bool_()))


def boolean_words(text: Any) -> tuple[str, ...]:
    """Return how no and yes are written in a column of text; nothing if neither is there.

    >>> [boolean_words(pa.array(words)) for words in (["Yes", None, "No"], ["TRUE"], ["perhaps"])]
    [('No', 'Yes'), ('FALSE', 'TRUE'), ()]
    """
    words = [word.strip() for word in text.drop_null().unique().to_pylist()]
    no, yes = (next((word for word in words if word.lower() in known), None) for known in (NO, YES))
    if no is None and yes is None:
        return ()
    return no or _other_word(str(yes), YES, NO), yes or _other_word(str(no), NO, YES)


def _other_word(word: str, known: tuple[str, ...], others: tuple[str, ...]) -> str:
    other = others[known.index(word.lower())]
    return other.upper() if word.isupper() else other.capitalize() if word.istitle() else other


def _canonical(cells: Any, column: Column) -> Any:
    """Return the text of categories; where they were numbers first, "3.0" is "3"."""
    text = text_of(cells)
    if column.source in ("number", "integer", "boolean") and source_of(cells.type) == "text":
        encoded = text.dictionary_encode()
        names = pa.array([_same_name(name, column.source) for name in encoded.dictionary.to_pylist()], pa.string())
        return pc.take(names, encoded.indices)
    return text


def _same_name(name: str, source: str) -> str:
    stripped = name.strip()
    if source == "boolean":
        return "true" if stripped.lower() in YES else "false" if stripped.lower() in NO else name
    try:
        number = text_of(pa.array([stripped]).cast(pa.int64() if stripped.lstrip("+-").isdigit() else pa.float64()))
    except pa.ArrowInvalid:
        return name
    return str(number[0].as_py())


def _encoded(text: Any, name: str) -> tuple[Labels, NDArray[Any]]:
    """Return the names that occur, sorted, and the code of every cell."""
    encoded = text.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    longest = max(map(len, names), default=1)
    if 4 * longest * len(names) > _LARGEST:
        raise ValueError(
            f"expected short names of categories in column {name!r}, got {len(names)} of up to {longest} "
            "characters: say that the column is text, or ignore it"
        )
    labels, codes_of_names = np.unique(text_array(names, f"column {name!r}"), return_inverse=True)
    indices = encoded.indices.cast(pa.float64()).to_numpy(zero_copy_only=False)
    there = ~np.isnan(indices)
    codes = np.full(len(indices), np.nan)
    codes[there] = codes_of_names[indices[there].astype(np.int64)]
    return labels, codes


def timestamps(cells: Any) -> Any:
    """Return dates and times as Arrow's timestamps; text must be as in 2024-02-29 or 2024-02-29 18:30."""
    cells = _decoded(cells)
    if pa.types.is_timestamp(cells.type):
        return cells
    if pa.types.is_date32(cells.type):
        return cells.cast(pa.timestamp("s"))
    if not is_text(cells.type):
        _refuse("a date", cells, 0)
    try:
        return _cast_text(cells, pa.timestamp("us", "UTC"), "")
    except UnfitCellError:
        return _cast_text(cells, pa.timestamp("us"), "a date such as 2024-02-29 or 2024-02-29 18:30")


def read_target(batch: pa.RecordBatch | pa.Table, name: str) -> Labels:
    """Return the labels in a column: text, integers or true and false, as an array.

    If some are missing, it is an array of objects with None in their place.

    >>> read_target(pa.table({"income": ["low", None, "high"]}), "income")
    array(['low', None, 'high'], dtype=object)
    """
    labels, indices = encoded_target(batch, name)
    return labels[indices]


def encoded_target(batch: pa.RecordBatch | pa.Table, name: str) -> tuple[Labels, NDArray[np.int64]]:
    """Return the distinct labels in a column, None among them if it stands there, and the index of each row's.

    >>> labels, indices = encoded_target(pa.table({"income": ["low", None, "high", "low"]}), "income")
    >>> labels.tolist(), indices.tolist()
    (['low', 'high', None], [0, 2, 1, 0])
    """
    check_name(name, list(batch.schema.names), "expected the name of a column as target")
    cells = plain(batch.column(name))
    if source_of(cells.type) == "other":
        raise ValueError(f"expected labels in column {name!r}, got {cells.type}: give text, integers or true and false")
    values, indices = _values_in(cells)
    codes = pc.fill_null(indices, len(values)).to_numpy(zero_copy_only=False)
    if indices.null_count:
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return _distinct_labels(values, name), codes


def _values_in(cells: Any) -> tuple[Any, Any]:
    """Return the distinct values among the cells, and the index of each cell's; those of a dictionary are looked up."""
    if not pa.types.is_dictionary(cells.type):
        encoded = cells.dictionary_encode()
        return encoded.dictionary, encoded.indices
    listed = cells.dictionary.dictionary_encode()  # a list may have a value twice, or one that is missing
    indices = pc.take(listed.indices, cells.indices)
    used = pc.unique(indices.drop_null())
    if len(used) < len(listed.dictionary):
        return pc.take(listed.dictionary, used), pc.index_in(indices, value_set=used)
    return listed.dictionary, indices


def _distinct_labels(cells: Any, name: str) -> Labels:
    """Return labels as an array, of objects if one is missing."""
    source = source_of(cells.type)
    if source == "number":
        floats = cells.to_numpy(zero_copy_only=False).astype(np.float64)
        there = floats[~np.isnan(floats)]
        whole = np.all(np.isfinite(there)) and np.all(there == np.trunc(there)) and np.all(np.abs(there) < 2**63)
        listed: Any = [None if x != x else int(x) if whole else x for x in floats.tolist()]
        return _labels(listed, np.int64 if whole else np.float64)
    if source in ("integer", "boolean"):
        return _labels(cells.to_pylist(), np.bool_ if source == "boolean" else cells.type.to_pandas_dtype())
    texts = text_of(cells).to_pylist()
    text_array([text for text in texts if text is not None], f"column {name!r}")
    return _labels(texts, np.str_)


def _labels(values: list[Any], dtype: Any) -> Labels:
    if any(value is None for value in values):
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    return np.array(values, dtype=dtype)


def strided_matrix(columns: Sequence[Any]) -> NDArray[Any] | None:
    """Return columns of Arrow as a matrix without a copy; None unless they are floats without nulls at even strides.

    >>> block = np.arange(6.0).reshape(3, 2)
    >>> strided_matrix([pa.array(column) for column in block]).tolist()
    [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    >>> strided_matrix([pa.array([1.0]), pa.array([2])]) is None
    True
    """
    kinds = {column.type for column in columns}
    if len(kinds) != 1 or not pa.types.is_floating(columns[0].type) or any(column.null_count for column in columns):
        return None
    cells = [column.to_numpy() for column in columns]
    addresses = [each.ctypes.data for each in cells]
    distances = {second - first for first, second in pairwise(addresses)}
    if len(distances) > 1 or len(cells[0]) == 0:
        return None
    distance = distances.pop() if distances else cells[0].nbytes
    strided = {
        "version": 3,
        "typestr": cells[0].dtype.str,
        "data": (addresses[0], True),
        "shape": (len(cells[0]), len(cells)),
        "strides": (cells[0].itemsize, distance),
    }
    # What NumPy takes for a matrix, and keeps with the columns in it.
    matrix: NDArray[Any] = np.asarray(SimpleNamespace(__array_interface__=strided, columns=cells))
    return matrix if matrix.flags.aligned and distance % matrix.itemsize == 0 else None
