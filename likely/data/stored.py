"""Reading back what was written as JSON and arrays, checked: a file may be broken."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.statistics import Array

Arrays = Mapping[str, NDArray[Any]]


def stored_array(arrays: Arrays, name: str, length: int | None = None) -> Array:
    """Return an array of finite numbers in one dimension.

    >>> stored_array({"x": np.array([1.0, np.nan])}, "x")
    Traceback (most recent call last):
    ValueError: expected finite numbers in the array 'x', got others
    """
    array = arrays.get(name)
    if array is None or array.dtype != np.float64 or array.ndim != 1 or length not in (None, len(array)):
        size = "" if length is None else f" {length}"
        got = "none" if array is None else f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"expected{size} numbers as float64 in the array {name!r}, got {got}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers in the array {name!r}, got others")
    return array


def rising_array(arrays: Arrays, name: str) -> Array:
    """Return an array of finite numbers, each larger than the one before it."""
    array = stored_array(arrays, name)
    if (array[1:] <= array[:-1]).any():
        raise ValueError(f"expected rising numbers in the array {name!r}, got others")
    return array


def stored_value(described: Any, name: str, kind: type) -> Any:
    """Return what a description says under a name.

    >>> stored_value({"rows": "many"}, "rows", float)
    Traceback (most recent call last):
    ValueError: expected 'rows' of the type float, got 'many'
    """
    value = described.get(name) if isinstance(described, Mapping) else None
    if type(value) is not kind:
        text = " ".join(repr(value).split())
        shown = text if len(text) <= 80 else text[:79] + "…"
        raise ValueError(f"expected {name!r} of the type {kind.__name__}, got {shown}")
    return value


def stored_share(described: Any, name: str) -> float:
    """Return a number from 0 to 1, but not 1."""
    value: float = stored_value(described, name, float)
    if not 0 <= value < 1:
        raise ValueError(f"expected {name!r} from 0 to less than 1, got {value!r}")
    return value
