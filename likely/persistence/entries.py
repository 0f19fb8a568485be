"""What every model file says, whatever the model: its kind, its columns, its arrays."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Columns
from likely.families import on_one_line

# A row of so many takes half a GB, also if a file holds nothing of most of them.
MOST_COLUMNS = 1 << 26

_JSON = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}


def entry(header: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    """Return what a header says under a name, or raise ValueError if it is of another kind."""
    value = header.get(name)
    if type(value) is not kind:
        raise ValueError(f"expected {_JSON[kind]} as {name!r}, got {on_one_line(value)}")
    return value


def read_columns(described: Mapping[str, Any]) -> Columns:
    """Return the columns of a model, or raise ValueError if a file describes none."""
    width, names = entry(described, "width", int), described.get("names")
    if not 0 < width <= MOST_COLUMNS:
        raise ValueError(f"expected 1 to {MOST_COLUMNS:,} columns, got {width}")
    if names is None:
        return Columns(width)
    if not isinstance(names, list) or len(names) != width or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected names of {width} columns, got {on_one_line(names)}")
    return Columns(width, tuple(names))


def described_columns(columns: Columns) -> dict[str, Any]:
    """Return columns as a header says them."""
    return {"width": columns.width, "names": None if columns.names is None else list(columns.names)}


def float_array(name: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return the array of that name, or raise ValueError if there is none of float64."""
    array = arrays.get(name)
    if array is None or array.dtype != np.float64:
        raise ValueError(f"expected the array {name!r} of float64, got {'none' if array is None else array.dtype}")
    return array


def kind_of(cls: type[Any], kinds: Iterable[str]) -> str:
    """Return the name that files give to an estimator, or raise ValueError if it is none of likely's own."""
    package, _, inner = cls.__module__.partition(".")
    kind = f"sklearn {cls.__name__}" if inner.startswith("sklearn.") else cls.__name__
    if package != "likely" or kind not in kinds:
        raise ValueError(
            f"expected one of likely's own estimators to save, got {cls.__name__}: a model file holds data, not "
            "code, so it cannot hold a class"
        )
    return kind
