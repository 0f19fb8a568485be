"""Columns that lie in memory at even distances, as those of a frame of pandas often do: a matrix that is not copied."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class _Matrix:
    """What NumPy takes for a matrix; it keeps the columns alive."""

    def __init__(self, columns: list[NDArray[Any]], distance: int) -> None:
        self._columns = columns
        first = columns[0]
        self.__array_interface__ = {
            "version": 3,
            "typestr": first.dtype.str,
            "data": (first.ctypes.data, True),
            "shape": (len(first), len(columns)),
            "strides": (first.itemsize, distance),
        }


def evenly_laid(columns: Sequence[Any]) -> NDArray[Any] | None:
    """Return columns of Arrow as a matrix where they lie; None if they do not lie so, or are not floats without nulls.

    >>> block = np.arange(6.0).reshape(3, 2)
    >>> evenly_laid([pa.array(column) for column in block]).tolist()
    [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    >>> evenly_laid([pa.array([1.0]), pa.array([2])]) is None
    True
    """
    kinds = {column.type for column in columns}
    if len(kinds) != 1 or not pa.types.is_floating(columns[0].type) or any(column.null_count for column in columns):
        return None
    cells = [column.to_numpy() for column in columns]
    places = [each.ctypes.data for each in cells]
    distances = {second - first for first, second in pairwise(places)}
    if len(distances) > 1 or len(cells[0]) == 0:
        return None
    distance = distances.pop() if distances else cells[0].nbytes
    matrix: NDArray[Any] = np.asarray(_Matrix(cells, distance))
    return matrix if matrix.flags.aligned and distance % matrix.itemsize == 0 else None
