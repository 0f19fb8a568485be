"""Parameters and labels as JSON and arrays, and back: numbers, text, lists, dicts, arrays, families and their priors.

JSON has no tuples, arrays or families. They are objects with the key ``"is"``, a word from a fixed table.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from likely.families import (
    FAMILIES,
    Counts,
    CovariancePrior,
    GaussianPrior,
    Named,
    Numbered,
    Together,
    WholeNumbers,
    on_one_line,
)
from likely.families.gaussian import FlatDirections
from likely.families.leave_one_out import LeaveOneOut
from likely.families.regularised import Regularised
from likely.learn.class_mixtures import Mixed
from likely.persistence.file import STORED, Arrays

# What needs Arrow is imported when it is met: by name, its home.
_OF_TEXT = {
    "bag of words": ("likely.families.bag", "Bag"),
    "discounted words": ("likely.families.discounted", "Discounted"),
    "refinement": ("likely.families.refinement", "Refinement"),
    "analyzer": ("likely.text", "Analyzer"),
    "counting": ("likely.families.counting", "Counting"),
    "kept words": ("likely.text", "Kept"),
}

RECORDS: dict[str, type[Any]] = {
    **FAMILIES,
    "numbered categories": Numbered,
    "whole numbers": WholeNumbers,
    "counts": Counts,
    "named categories": Named,
    "categories together": Together,
    "left-out categories": LeaveOneOut,
    "regularised": Regularised,
    "gaussian prior": GaussianPrior,
    "covariance prior": CovariancePrior,
    "flat directions": FlatDirections,
    "mixture": Mixed,
}
"""What is kept by its fields, under these names."""

_NAMES = {kind: name for name, kind in RECORDS.items()}
_NAMES_OF_TEXT = {home: name for name, home in _OF_TEXT.items()}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# An array of text may always have so many characters, and otherwise not much more than its items have.
_MOST_CHARACTERS = 1 << 24
_TEXT_TYPES: dict[str, Any] = {"U": np.str_, "T": np.dtypes.StringDType(), "O": np.object_}


def packed(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a value as JSON; arrays in it are added to ``arrays``, under its name.

    >>> packed((1, [0.5, "a"]), "pair", {})
    {'is': 'tuple', 'items': [1, [0.5, 'a']]}
    """
    if isinstance(value, np.generic) and type(value.item()) in (bool, int, float, str):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"is": "number", "value": str(value)}
    if type(value) in (list, tuple):
        items = [packed(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
        return items if type(value) is list else {"is": "tuple", "items": items}
    if type(value) is dict:
        pairs = [packed(list(pair), f"{name}.{i}", arrays) for i, pair in enumerate(value.items())]
        return {"is": "dict", "items": pairs}
    if type(value) is np.ndarray:
        return _packed_array(value, name, arrays)
    if type(value) in (set, frozenset) and all(type(item) is str for item in value):
        return {"is": "set", "items": sorted(value)}
    if kind := _name_of(type(value)):
        parts = {f.name: packed(getattr(value, f.name), f"{name}.{f.name}", arrays) for f in fields(value) if f.init}
        return {"is": kind, "fields": parts}
    raise ValueError(
        "expected parameters and labels of numbers, text, lists, dicts, arrays and likely's own families to save, got "
        f"{name.split('.')[-1]}={on_one_line(value)}: a model file holds data, not code"
    )


def unpacked(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return a value that was packed, or raise ValueError if it is none.

    >>> unpacked({"is": "tuple", "items": [1, [0.5, "a"]]}, {})
    (1, [0.5, 'a'])
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return [unpacked(item, arrays) for item in value]
    what = value.get("is") if isinstance(value, dict) else None
    if not isinstance(what, str) or not (what in _READERS or what in RECORDS or what in _OF_TEXT):
        raise ValueError(f"expected a parameter, got {on_one_line(value)}")
    return _READERS[what](value, arrays) if what in _READERS else _unpacked_record(_record(what), value, arrays)


def _name_of(kind: type[Any]) -> str | None:
    """Return the name under which values of a type are kept; None if they are not."""
    return _NAMES.get(kind) or next(
        (n for (home, name), n in _NAMES_OF_TEXT.items() if kind.__name__ == name and kind is _record(n)), None
    )


def _record(what: str) -> type[Any]:
    if what in RECORDS:
        return RECORDS[what]
    from importlib import import_module

    home, name = _OF_TEXT[what]
    kind: type[Any] = getattr(import_module(home), name)
    return kind


def _packed_array(array: NDArray[Any], name: str, arrays: Arrays) -> Any:
    if array.dtype.char in STORED:
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        return {"is": "array", "name": name}
    if array.dtype.kind in _TEXT_TYPES and array.ndim == 1:
        return {"is": "list", "type": array.dtype.kind, "items": packed(array.tolist(), name, arrays)}
    raise ValueError(
        f"expected {name.split('.')[-1]} of numbers, booleans or text to save, got an array of the type {array.dtype} "
        f"and shape {array.shape}: convert it before fit"
    )


def _unpacked_array(value: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    name = value.get("name")
    if not isinstance(name, str) or name not in arrays:
        raise ValueError(f"expected the name of an array, got {on_one_line(name)}")
    return arrays[name]


def _unpacked_text(value: Mapping[str, Any]) -> NDArray[Any]:
    kind, items = value.get("type"), _items(value)
    allowed = (str, int, float, bool) if kind == "O" else (str,)
    if not isinstance(kind, str) or kind not in _TEXT_TYPES or not all(type(item) in allowed for item in items):
        raise ValueError(f"expected an array of text, got {on_one_line(items)}")
    if kind == "U":  # where every item takes the room of the longest
        lengths = [len(item) for item in items]
        if max(lengths, default=0) * len(items) > max(_MOST_CHARACTERS, 16 * sum(lengths)):
            raise ValueError(f"expected text of similar lengths, got one of {max(lengths)} characters")
    try:
        return np.array(items, dtype=_TEXT_TYPES[kind])
    except UnicodeError:
        raise ValueError(f"expected text of whole characters, got {on_one_line(items)}") from None


def _unpacked_dict(value: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[Any, Any]:
    pairs = unpacked(_items(value), arrays)
    if not all(isinstance(pair, list) and len(pair) == 2 and _is_key(pair[0]) for pair in pairs):
        raise ValueError(f"expected pairs of a key and a value, got {on_one_line(pairs)}")
    return dict(pairs)


def _unpacked_special(value: Mapping[str, Any]) -> float:
    name = value.get("value")
    if not isinstance(name, str) or name not in _SPECIAL:
        raise ValueError(f"expected one of {list(_SPECIAL)}, got {on_one_line(name)}")
    return _SPECIAL[name]


def _unpacked_record(kind: type[Any], value: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    given = value.get("fields")
    known = {f.name for f in fields(kind) if f.init}
    if not isinstance(given, dict) or not known.issuperset(given):
        raise ValueError(f"expected parameters of {kind.__name__} among {sorted(known)}, got {on_one_line(given)}")
    parameters = {name: unpacked(item, arrays) for name, item in given.items()}
    hints = get_type_hints(kind)
    for name, item in parameters.items():
        if not _fits(item, hints[name]):
            raise ValueError(f"expected another type of {name} of {kind.__name__}, got {on_one_line(item)}")
    if kind is CovariancePrior and parameters.get("covariance") is None:
        raise ValueError("expected the covariance of a prior that was found from rows, got none")
    return kind(**parameters)


_READERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], Any]] = {
    "tuple": lambda value, arrays: tuple(unpacked(_items(value), arrays)),
    "dict": _unpacked_dict,
    "set": lambda value, _: _unpacked_set(value),
    "number": lambda value, _: _unpacked_special(value),
    "array": _unpacked_array,
    "list": lambda value, _: _unpacked_text(value),
}


def _items(value: Mapping[str, Any]) -> list[Any]:
    items = value.get("items")
    if not isinstance(items, list):
        raise ValueError(f"expected a list, got {on_one_line(items)}")
    return items


def _unpacked_set(value: Mapping[str, Any]) -> frozenset[str]:
    items = _items(value)
    if not all(type(item) is str for item in items):
        raise ValueError(f"expected words, got {on_one_line(items)}")
    return frozenset(items)


def _is_key(key: Any) -> bool:
    return key is None or isinstance(key, bool | int | float | str)


def _fits(value: Any, hint: Any) -> bool:
    """Say whether a value is of the type that a field is declared to have."""
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) in (tuple, frozenset):
        return isinstance(value, get_origin(hint))
    if hint is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1000)
    return isinstance(value, hint)
