"""From what the user has to what the core reads: matrices, sparse counts, labels and weights, checked once.

Nothing is copied that the core can read where it lies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.statistics import Array, Assignment, Labels
from likely.telling import tell

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
        shown = ", ".join(str(j) if self.names is None else repr(self.names[j]) for j in columns[:most])
        more = f" and {len(columns) - most} more" if len(columns) > most else ""
        return f"column{'s' if len(columns) > 1 else ''} {shown}{more}"


@dataclass(frozen=True)
class Table:
    """Rows and columns.

    Parameters
    ----------
    cells
        the numbers; NaN is a missing cell
    names
        the names of the columns, if they have any
    reader
        who reads the table, for messages
    categories
        of every column of categories by name (its number in the table): the distinct names, as an array of text, of
        which the cells hold the places 0, 1, 2, …
    kinds
        what every column is: "number", "integer", "boolean" or "category"; none if nobody has looked
    numbers
        where each row was in the data that it came from, counted from 0, for messages; None if they are all of them
    """

    cells: NDArray[Any] | SparseRows
    names: tuple[str, ...] | None = None
    reader: str | None = None
    categories: Mapping[int, Labels] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    numbers: Sequence[int] | NDArray[np.int64] | None = None
    strings: Mapping[int, Any] = field(default_factory=dict)

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
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        strings = {j: texts.take(places) for j, texts in self.strings.items()}
        return replace(self, cells=cells, numbers=numbers, strings=strings)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """The number of each row in the table that it came from."""
        return np.asarray(self._numbers, dtype=np.int64)

    @property
    def _numbers(self) -> Sequence[int] | NDArray[np.int64]:
        return range(self.rows) if self.numbers is None else self.numbers

    def place(self, row: int) -> str:
        """Return a row in a message: rows of files and frames are counted from 1, those of arrays by their index."""
        number = int(self._numbers[row])
        return f"row {number + 1}" if self.kinds else f"row index {number}"


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
        """Return the texts of the block's one column, as an Arrow array."""
        return self.table.strings[self.number(0)]

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
                if value is not None and not _is_number(value):
                    where = f"column {j if names is None else names[j]!r}"
                    raise type(error)(
                        f"expected numbers, got {value!r} in {where}: write categories as integer codes, "
                        "or drop the column (could not convert string to float; argument must be a string or a number)"
                    ) from None
        raise


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


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


def read_labels(labels: Any, rows: int) -> tuple[Labels, NDArray[np.int32]]:
    """Return the distinct labels, sorted, and each row's place among them.

    >>> read_labels(["no", "yes", "no"], 3)
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0], dtype=int32))
    """
    if labels is None:
        raise ValueError("requires y to be passed, but the target y is None: give one label for each row of X")
    y = np.asarray(labels)
    if y.ndim == 2 and y.shape[1] == 1:
        _warn_column_vector()
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"expected one label for each row, got an array of shape {y.shape}: y should be a 1d array")
    if len(y) != rows:
        raise ValueError(f"expected one label for each of the {rows} rows of X, got {len(y)} labels")
    if y.dtype.kind == "f":
        return _read_float_labels(y)
    if y.dtype.kind in "biu" and y.dtype != np.uint64:
        classes, codes = native.encode_integers(np.ascontiguousarray(y, dtype=np.int64))
        return classes.astype(y.dtype, copy=False), codes
    # Numbers among text would have become text.
    listed = list(labels) if y.dtype.kind == "U" and isinstance(labels, list | tuple) else None
    values = listed or (y.tolist() if y.dtype.kind in "OUT" else [])
    if values and all(
        issubclass(kind, str) for kind in set(map(type, values))
    ):  # a table of the few labels beats sorting all of them
        distinct_labels = sorted(set(values))
        own = y.dtype if listed is None else None
        named: Labels = text_array(distinct_labels, "y") if own is None else np.array(distinct_labels, dtype=own)
        place = {label: i for i, label in enumerate(distinct_labels)}
        return named, np.fromiter(map(place.__getitem__, values), dtype=np.int32, count=len(values))
    if listed is not None:
        y = np.asarray(listed, dtype=object)
    if y.dtype.kind == "O" and (missing := [i for i, label in enumerate(y) if is_missing(label)]):
        raise ValueError(
            f"expected a label for each row, got {y[missing[0]]!r} at index {missing[0]} of y "
            f"({len(missing)} missing, Input contains NaN): leave these rows out"
        )
    try:
        classes, places = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise TypeError(f"expected labels of one type, got {' and '.join(kinds)}: convert y to one of them") from None
    return classes, places.astype(np.int32)


def text_array(texts: list[str], where: str) -> NDArray[np.str_]:
    """Return text as an array, in which NumPy would forget a NUL at the end: such names would be taken for others."""
    if bad := [text for text in texts if text.endswith("\0")]:
        raise ValueError(
            f"expected names that do not end with a NUL character in {where}, got {bad[0][:80]!r}: strip it off"
        )
    return np.array(texts, dtype=f"<U{max(1, max(map(len, texts), default=1))}")


def is_missing(value: Any) -> bool:
    """Say whether a value stands for none: None, NaN, or pandas' NA, which no comparison answers."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _read_float_labels(y: NDArray[Any]) -> tuple[Labels, NDArray[np.int32]]:
    unfit = np.flatnonzero(~np.isfinite(y))
    if len(unfit):
        raise ValueError(f"Input y contains {y[unfit[0]]} (NaN or infinity) at index {unfit[0]}: leave these rows out")
    if np.any(y != np.trunc(y)):
        example = y[y != np.trunc(y)][0]
        raise ValueError(f"Unknown label type: continuous. Expected classes, got numbers such as {example} in y")
    classes, places = np.unique(y, return_inverse=True)
    return classes, places.astype(np.int32)


def _warn_column_vector() -> None:
    import sys

    exceptions = sys.modules.get("sklearn.exceptions")
    category = UserWarning if exceptions is None else exceptions.DataConversionWarning
    tell("A column-vector y was passed when a 1d array was expected: give y.ravel()", category)


def read_weights(weights: Any, rows: int) -> Array | None:
    """Return one weight for each row, or None if all rows count the same."""
    if weights is None:
        return None
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim == 0:
        w = np.full(rows, float(w))
    if w.shape != (rows,):
        raise ValueError(
            f"sample_weight.shape == {w.shape}, expected {(rows,)}: give one weight for each row (1D array or scalar)"
        )
    if not np.isfinite(w).all() or (w < 0).any():
        row = int(np.flatnonzero(~(w >= 0) | np.isinf(w))[0])
        raise ValueError(f"expected weights that are finite and not negative, got {w[row]} at index {row}")
    if rows and not w.any():
        raise ValueError("expected a positive weight in some row, got only zeros: sample_weight would leave no data")
    return np.ascontiguousarray(w)


def read_assignment(labels: Any, weights: Any, rows: int) -> Assignment:
    """Read labels and weights together."""
    classes, codes = read_labels(labels, rows)
    return Assignment(classes, codes, read_weights(weights, rows))
