"""From what the user has to what the core reads: matrices and sparse counts, checked once.

Nothing is copied that the core can read in place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.arrow import is_number
from likely.lazy import pa
from likely.statistics import Array, Labels

_READ_AS_THEY_ARE = frozenset("fd?bBhHiIlLqQ")


class SparseRows(NamedTuple):
    """Counts in compressed sparse rows."""

    starts: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.starts) - 1, self.width

    def between(self, first: int, last: int) -> "SparseRows":
        """Return some of the rows, without copying their cells."""
        starts = self.starts[first : last + 1]
        cells = slice(int(starts[0]), int(starts[-1]))
        return SparseRows(starts - starts[0], self.indices[cells], self.values[cells], self.width)

    def taken(self, rows: NDArray[Any]) -> "SparseRows":
        """Return a copy of some of the rows, in the order asked for; ``rows``: numbers, or one boolean for each."""
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
        sizes = np.diff(self.starts)[numbers]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        cells = np.arange(starts[-1]) + np.repeat(self.starts[numbers] - starts[:-1], sizes)
        return SparseRows(starts, self.indices[cells], self.values[cells], self.width)


class Columns(NamedTuple):
    """How many columns there are, and their names if they have any."""

    width: int
    names: tuple[str, ...] | None = None

    def name(self, column: int) -> str:
        """Return a column's name, or its number."""
        return str(column) if self.names is None else self.names[column]

    def listed(self, columns: list[int], most: int = 5) -> str:
        """Return columns for a sentence: ``column 'age'``, or ``columns 3, 4 and 7 more``."""
        names = columns if self.names is None else [self.names[j] for j in columns]
        return f"column{'s' if len(columns) > 1 else ''} {listed(names, most)}"


def listed(names: Iterable[Any], most: int = 5) -> str:
    """Return names for a sentence: the first of them, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


@dataclass(frozen=True)
class Table:
    """Rows and columns."""

    cells: NDArray[Any] | SparseRows
    """the numbers; NaN is a missing cell"""
    names: tuple[str, ...] | None = None
    reader: str | None = None
    """who reads the table, for messages"""
    categories: Mapping[int, Labels] = field(default_factory=dict)
    """of every column of categories (its number): the distinct names, of which the cells hold the codes 0, 1, 2, …"""
    kinds: tuple[str, ...] = ()
    """what every column is: "number", "integer", "boolean" or "category"; none if nobody has looked"""
    numbers: Sequence[int] | NDArray[np.int64] | None = None
    """where each row was in the data that it came from, from 0, for messages; None if they are all of them"""
    strings: Mapping[int, Any] = field(default_factory=dict)
    """of every column of text (its number): the texts, as an Arrow array"""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.cells.shape[0])

    @property
    def columns(self) -> Columns:
        """The columns and their names."""
        return Columns(int(self.cells.shape[1]), self.names)

    def between(self, first: int, last: int) -> Self:
        """Return some of the rows, without copying."""
        if first == 0 and last >= self.rows:
            return self
        cells = self.cells
        part = cells.between(first, min(last, self.rows)) if isinstance(cells, SparseRows) else cells[first:last]
        strings = {j: texts[first:last] for j, texts in self.strings.items()}
        return replace(self, cells=part, numbers=self._numbers[first:last], strings=strings)

    def taken(self, rows: NDArray[Any]) -> Self:
        """Return a copy of some of the rows; ``rows``: numbers, or one boolean for each."""
        cells = self.cells.taken(rows) if isinstance(self.cells, SparseRows) else self.cells[rows]
        numbers = self.row_numbers[rows]
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        strings = {j: texts.take(indices) for j, texts in self.strings.items()}
        return replace(self, cells=cells, numbers=numbers, strings=strings)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """The number of each row in the table that it came from."""
        numbers = self._numbers
        if isinstance(numbers, range):  # NumPy would ask it for one number after another
            return np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
        return np.asarray(numbers, dtype=np.int64)

    @property
    def _numbers(self) -> Sequence[int] | NDArray[np.int64]:
        return range(self.rows) if self.numbers is None else self.numbers

    def row_name(self, row: int) -> str:
        """Return a row in a message: rows of files and frames are counted from 1, those of arrays by their index."""
        number = int(self._numbers[row])
        return f"row {number + 1}" if self.kinds else f"row index {number}"


class CellBuffer:
    """Memory for the cells of one table after another: what is new for each would have to be zeroed first."""

    def __init__(self) -> None:
        self._numbers: NDArray[Any] = np.empty(0)

    def cells(self, rows: int, width: int, dtype: Any) -> NDArray[Any]:
        """Return memory for so many cells, column by column; what was there before is gone."""
        if self._numbers.dtype != dtype or len(self._numbers) < rows * width:
            self._numbers = np.empty(rows * width, dtype=dtype)
        return self._numbers[: rows * width].reshape((rows, width), order="F")


class Block(NamedTuple):
    """Some columns of a table, all of one family; None stands for all of them."""

    table: Table
    columns: list[int] | None

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.table.columns.width if self.columns is None else len(self.columns)

    def number(self, j: int) -> int:
        """Return the number in the table of the block's column j."""
        return j if self.columns is None else self.columns[j]

    def dense(self) -> NDArray[Any]:
        """Return the whole matrix that the columns are part of; sparse counts are refused."""
        if isinstance(self.table.cells, SparseRows):
            raise TypeError(
                "expected a dense array, got a sparse matrix, which only bags of words and columns of 0 and 1 can be: "
                "call .toarray() on it, or use a multinomial or Bernoulli model"
            )
        return self.table.cells

    def values(self) -> Array:
        """Return the cells as a matrix of floats (a copy, unless all columns are floats already)."""
        cells = self.dense()
        return np.asarray(cells if self.columns is None else cells[:, self.columns], dtype=np.float64)

    def texts(self) -> Any:
        """Return the texts of the block's one column, as an Arrow array; all are missing in a table without them."""
        texts = self.table.strings.get(self.number(0))
        if texts is None:
            return pa.nulls(self.table.rows, pa.large_string())
        return texts

    def single(self, j: int) -> "Block":
        """Return the block of one of these columns."""
        return Block(self.table, [self.number(j)])


def read_table(data: Any) -> Table:
    """Read anything that has rows and columns of numbers; what is read already stays as it is.

    >>> read_table([[1, 2], [3, None]]).cells
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    if type(data) is np.ndarray and data.dtype.char in _READ_AS_THEY_ARE and data.ndim == 2:
        table = Table(data if data.flags.aligned and data.dtype.isnative else data.astype(data.dtype.newbyteorder("=")))
    elif isinstance(data, Table):
        table = data
    elif hasattr(data, "tocsr"):
        table = Table(_read_sparse(data))
    else:
        table = Table(_read_matrix(data), column_names(data))
    if table.columns.width == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={table.cells.shape}) while a minimum of 1 is required.")
    return table


def column_names(data: Any) -> tuple[str, ...] | None:
    """Return the names of a frame's columns, or None if it has none or they are not text."""
    columns = getattr(data, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types: convert them with X.columns = X.columns.astype(str)"
        )
    return tuple(names) if names and all(text) else None


def _read_matrix(data: Any) -> NDArray[Any]:
    matrix: NDArray[Any]
    if isinstance(data, np.ma.MaskedArray):
        return np.asarray(np.ma.filled(data.astype(np.float64), np.nan))
    if getattr(data, "ndim", 2) == 2 and any(hasattr(dtype, "na_value") for dtype in getattr(data, "dtypes", ())):
        try:  # pandas' own nullable types: missing cells become NaN
            matrix = data.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            matrix = np.asarray(data)
    else:
        matrix = np.asarray(data)
    if matrix.dtype.kind == "c":
        raise ValueError("Complex data not supported: expected real numbers, take their parts or absolute values first")
    if matrix.dtype.kind in "mM":
        raise TypeError(
            "expected numbers, got dates or times: take from them what matters, such as the year or a number of days"
        )
    if matrix.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {matrix.ndim}D array instead. Reshape your data: array.reshape(-1, 1) for one "
            "column, array.reshape(1, -1) for one row."
        )
    if matrix.dtype.char not in _READ_AS_THEY_ARE:
        if matrix.dtype.kind not in "fiub":
            matrix = _to_floats(matrix, data)
        else:
            matrix = matrix.astype(np.float32 if matrix.dtype == np.float16 else np.float64)
    return matrix.astype(matrix.dtype.newbyteorder("="), copy=False)


def _to_floats(matrix: NDArray[Any], data: Any) -> Array:
    if matrix.dtype.kind == "O":
        matrix = np.where(np.frompyfunc(lambda cell: type(cell).__name__ == "NAType", 1, 1)(matrix), np.nan, matrix)
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        names = column_names(data)
        for j in range(matrix.shape[1]):
            for value in matrix[:, j]:
                if value is not None and not is_number(value):
                    where = f"column {j if names is None else names[j]!r}"
                    raise type(error)(
                        f"expected numbers, got {value!r} in {where}: write categories as integer codes, "
                        "or drop the column (could not convert string to float; argument must be a string or a number)"
                    ) from None
        raise


def _read_sparse(data: Any) -> SparseRows:
    rows = data.tocsr()
    if rows.ndim != 2:
        raise ValueError(f"expected a sparse matrix with 2 dimensions, got {rows.ndim}")
    if rows.dtype.kind == "c":
        raise ValueError("Complex data not supported: expected counts")
    indices, values = rows.indices, rows.data
    if values.dtype.char not in "fd" and values.dtype != np.int64:
        values = values.astype(np.float64)
    return SparseRows(rows.indptr.astype(np.int64, copy=False), indices, values, rows.shape[1])
