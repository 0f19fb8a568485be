"""Labels and weights of rows, checked once: the sorted classes, and the index of each row's among them."""

import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.messages import warn
from likely.statistics import Array, Assignment, Labels


def read_labels(labels: Any, rows: int, *, partially_labelled: bool = False) -> tuple[Labels, NDArray[np.int32]]:
    """Return the distinct labels, sorted, and the code of each row; −1 where one is missing if ``partially_labelled``.

    >>> read_labels(["no", "yes", "no"], 3)
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0], dtype=int32))
    >>> read_labels(["no", None, "yes"], 3, partially_labelled=True)
    (array(['no', 'yes'], dtype='<U3'), array([ 0, -1,  1], dtype=int32))
    """
    if labels is None:
        raise ValueError("requires y to be passed, but the target y is None: give one label for each row of X")
    if isinstance(labels, np.ma.MaskedArray):
        labels = labels.tolist()  # None where they are masked
    elif _has_nulls(labels):  # NumPy would make floats of integers with missing ones
        labels = labels.to_pylist() if hasattr(labels, "to_pylist") else list(labels)
    y = np.asarray(labels)
    if y.ndim == 2 and y.shape[1] == 1:
        _warn_column_vector()
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"expected one label for each row, got an array of shape {y.shape}: y should be a 1d array")
    if len(y) != rows:
        raise ValueError(f"expected one label for each of the {rows} rows of X, got {len(y)} labels")
    if partially_labelled and (missing := missing_labels(y, labels)).any():
        return _read_known(y, labels, missing)
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
        index = {label: i for i, label in enumerate(distinct_labels)}
        return named, np.fromiter(map(index.__getitem__, values), dtype=np.int32, count=len(values))
    if listed is not None:
        y = np.asarray(listed, dtype=object)
    if (missing := missing_labels(y, labels)).any():
        first = int(np.argmax(missing))
        raise ValueError(
            f"expected a label for each row, got {y[first]!r} at index {first} of y "
            f"({int(missing.sum())} missing, Input contains NaN): leave these rows out"
        )
    try:
        classes, indices = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise TypeError(f"expected labels of one type, got {' and '.join(kinds)}: convert y to one of them") from None
    return classes, indices.astype(np.int32)


def _has_nulls(labels: Any) -> bool:
    """Say whether values are missing among whole numbers of Arrow, Polars or pandas' nullable types."""
    kind = str(getattr(labels, "type", getattr(labels, "dtype", ""))).lower()
    if not re.match(r"u?int\d+|bool", kind):
        return False
    if hasattr(labels, "isna"):  # of pandas
        return bool(labels.isna().any())
    nulls = getattr(labels, "null_count", 0)
    return bool(nulls() if callable(nulls) else nulls)


def missing_labels(y: NDArray[Any], labels: Any) -> NDArray[np.bool_]:
    """Return which labels are missing: in ``y``, or in the list that it was made of, in which NaN has become text."""
    if y.dtype.kind == "f":
        return np.asarray(np.isnan(y))
    if y.dtype.kind in "mM":
        return np.asarray(np.isnat(y))
    values = y if y.dtype.kind == "O" else labels if isinstance(labels, list | tuple) else ()
    if set(map(type, values)) <= {str, int, bool}:
        return np.zeros(len(y), dtype=bool)
    return np.fromiter(map(is_missing, values), dtype=bool, count=len(y))


def _read_known(y: NDArray[Any], labels: Any, missing: NDArray[np.bool_]) -> tuple[Labels, NDArray[np.int32]]:
    if missing.all():
        raise ValueError(f"expected a label for some rows, got {len(y)} rows without any: use Mixture to find groups")
    if y.dtype.kind == "O":
        known = y[~missing].tolist()
    elif y.dtype.kind == "U":  # in which NaN has become text
        known = [label for label, gone in zip(labels, missing, strict=True) if not gone]
    else:
        known = y[~missing]
    codes = np.full(len(y), -1, dtype=np.int32)
    classes, codes[~missing] = read_labels(known, len(known))
    return classes, codes


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
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.int32)


def _warn_column_vector() -> None:
    exceptions = sys.modules.get("sklearn.exceptions")
    category = UserWarning if exceptions is None else exceptions.DataConversionWarning
    warn("A column-vector y was passed when a 1d array was expected: give y.ravel()", category)


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


def read_assignment(labels: Any, weights: Any, rows: int, *, partially_labelled: bool = False) -> Assignment:
    """Read labels and weights together; ``partially_labelled``: labels may be missing."""
    classes, codes = read_labels(labels, rows, partially_labelled=partially_labelled)
    return Assignment(classes, codes, read_weights(weights, rows))
