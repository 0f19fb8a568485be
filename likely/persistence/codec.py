"""One codec between values of Python and what a file holds: a header of JSON, and arrays by name.

Where a reader knows the type of a value, the type says how it is written, and checked when it is read: dataclasses and
named tuples are objects of their fields, whose arrays lie apart. Constraints beyond types are for a class to check, in
``__post_init__`` or, of what is read only, in ``validate``. Where any value may be, such as in parameters, those that
JSON does not know are objects with the key ``"is"``: a word of this module, or a name in the registry.

msgspec has no arrays of NumPy, which are most of what is checked here, and would be one more dependency.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from likely.families import on_one_line
from likely.persistence.file import STORED, Arrays
from likely.persistence.registry import record, tag_of

Given = Mapping[str, NDArray[Any]]

_SHOWN = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", tuple: "a list",
    dict: "an object", Mapping: "an object", type(None): "nothing",
}  # fmt: skip
_EMPTY = (type(None), bool, str, tuple, dict)
_KEYS = (type(None), int, float, str)
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# An array of text may always have so many characters, and otherwise not much more than its items have.
_MOST_CHARACTERS = 1 << 24
_TEXT_TYPES: dict[str, Any] = {"U": np.str_, "T": np.dtypes.StringDType(), "O": np.object_}


def encode(value: Any, name: str, arrays: Arrays, kind: Any = None) -> Any:
    """Return a value as JSON; arrays in it are added to ``arrays``, under names that begin with its own.

    ``kind`` is ``Any`` if a reader cannot know the type.

    >>> encode((1, (0.5, "a")), "pair", {}), encode((1, [0.5, "a"]), "pair", {}, Any)
    ([1, [0.5, 'a']], {'is': 'tuple', 'items': [1, [0.5, 'a']]})
    """
    if kind is Any:
        return _tagged(value, name, arrays)
    own: Any = type(value)
    if _is_record(own):
        found = {}
        for field in _fields(own):
            item, path = getattr(value, field.name), f"{name}.{field.name}".removeprefix(".")
            if field.is_array:
                arrays[path] = item
            elif not (field.may_lack and type(item) is type(field.default) and item == field.default):
                found[field.name] = encode(item, path, arrays, field.hint)
        return found
    if isinstance(value, Mapping):
        inner = (get_args(kind) or (str, None))[1]
        return {key: encode(item, f"{name}.{key}", arrays, inner) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
    return value


def decode(value: Any, kind: Any, name: str, arrays: Given) -> Any:
    """Return the value of a type that was encoded, or raise ValueError if it is none.

    >>> decode([1, [0.5, "a"]], tuple[int, tuple[float, str]], "pair", {})
    (1, (0.5, 'a'))
    >>> decode([1, 2.5], tuple[int, ...], "numbers", {})
    Traceback (most recent call last):
    ValueError: expected a whole number as 'numbers.1', got 2.5
    """
    if kind is Any:
        return _untagged(value, arrays)
    for each in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        origin, inner = get_origin(each), get_args(each)
        if origin is tuple and isinstance(value, list) and (inner[-1] is ... or len(inner) == len(value)):
            kinds = inner[:1] * len(value) if inner[-1] is ... else inner
            pairs = zip(value, kinds, strict=True)
            return tuple(decode(item, of, f"{name}.{i}", arrays) for i, (item, of) in enumerate(pairs))
        if origin in (dict, Mapping) and isinstance(value, dict):
            return {key: decode(item, inner[1], f"{name}.{key}", arrays) for key, item in value.items()}
        if _is_record(each) and isinstance(value, dict) and _has_fields(value, each):
            return _read_record(value, each, name, arrays)
    if not _fits(value, kind) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"expected {_shown(kind)} as {name!r}, got {on_one_line(value)}")
    return value


class _Field(NamedTuple):
    name: str
    hint: Any
    default: Any

    @property
    def is_array(self) -> bool:
        """Whether it lies apart from the header."""
        return get_origin(self.hint) is np.ndarray

    @property
    def may_lack(self) -> bool:
        """Whether a file need not say that it is empty, or False, as it is by default."""
        return type(self.default) in _EMPTY and not self.default


@cache
def _fields(kind: Any) -> tuple[_Field, ...]:
    """Return the fields of a class that are kept: not those whose metadata say ``saved=False``."""
    hints = get_type_hints(kind)
    if not is_dataclass(kind):  # a named tuple
        return tuple(_Field(name, hints[name], MISSING) for name in kind._fields)
    kept = (f for f in fields(kind) if f.init and f.metadata.get("saved", True))
    return tuple(
        _Field(f.name, hints[f.name], f.default if f.default_factory is MISSING else f.default_factory()) for f in kept
    )


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_field_defaults"))


def _has_fields(value: Mapping[str, Any], kind: Any) -> bool:
    """Say whether an object has all the fields of a class but those that it may lack, and no other."""
    listed = [field for field in _fields(kind) if not field.is_array]
    needed = {field.name for field in listed if not field.may_lack}
    return needed <= value.keys() <= {field.name for field in listed}


def _read_record(value: Mapping[str, Any], kind: Any, name: str, arrays: Given) -> Any:
    found = {}
    for field in _fields(kind):
        path = f"{name}.{field.name}"
        if field.is_array:
            found[field.name] = read_array(path, arrays, np.dtype(get_args(get_args(field.hint)[1])[0]))
        elif field.name in value:
            found[field.name] = decode(value[field.name], field.hint, path, arrays)
    return _valid(kind(**found))


def _valid(made: Any) -> Any:
    """Return what was read from a file, or raise ValueError if its class does not allow it."""
    if hasattr(made, "validate"):
        made.validate()
    return made


def read_array(name: str, arrays: Given, kind: Any = np.float64, *, finite: bool = True) -> NDArray[Any]:
    """Return the array of that name, or raise ValueError if there is none of the type, or not of finite numbers.

    >>> read_array("x", {"x": np.array([1.0, np.nan])})
    Traceback (most recent call last):
    ValueError: expected finite numbers in the array 'x', got others
    """
    array = arrays.get(name)
    if array is None or array.dtype != kind:
        got = "none" if array is None else array.dtype
        raise ValueError(f"expected the array {name!r} of {np.dtype(kind)}, got {got}")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers in the array {name!r}, got others")
    return array


def _fits(value: Any, kind: Any) -> bool:
    """Say whether a value is of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is tuple and isinstance(value, tuple) and (inner[-1] is ... or len(inner) == len(value)):
        return all(map(_fits, value, inner[:1] * len(value) if inner[-1] is ... else inner))
    if origin is not None:
        return origin is not tuple and isinstance(value, origin)
    if kind is float:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1000)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _shown(kind: Any) -> str:
    """Return a type in words."""
    if isinstance(kind, str):  # one of a Literal
        return repr(kind)
    if _is_record(kind):
        return f"an object of {', '.join(field.name for field in _fields(kind) if not field.is_array)}"
    return _SHOWN.get(get_origin(kind) or kind) or " or ".join(map(_shown, get_args(kind)))


def _tagged(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a value as JSON that says what it is."""
    if isinstance(value, np.generic) and type(value.item()) in (bool, int, float, str):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"is": "number", "value": str(value)}
    if type(value) in (list, tuple):
        items = [_tagged(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
        return items if type(value) is list else {"is": "tuple", "items": items}
    if type(value) is dict:
        pairs = [_tagged(list(pair), f"{name}.{i}", arrays) for i, pair in enumerate(value.items())]
        return {"is": "dict", "items": pairs}
    if type(value) is np.ndarray:
        return _tagged_array(value, name, arrays)
    if type(value) in (set, frozenset) and all(type(item) is str for item in value):
        return {"is": "set", "items": sorted(value)}
    own: Any = type(value)
    if tag := tag_of(own):
        named = ((field.name, getattr(value, field.name)) for field in _fields(own))
        return {"is": tag, "fields": {part: _tagged(item, f"{name}.{part}", arrays) for part, item in named}}
    raise ValueError(
        "expected parameters and labels of numbers, text, lists, dicts, arrays and likely's own families to save, got "
        f"{name.split('.')[-1]}={on_one_line(value)}: a model file holds data, not code"
    )


def _tagged_array(array: NDArray[Any], name: str, arrays: Arrays) -> Any:
    if array.dtype.char in STORED:
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        return {"is": "array", "name": name}
    if array.dtype.kind in _TEXT_TYPES and array.ndim == 1:
        return {"is": "list", "type": array.dtype.kind, "items": _tagged(array.tolist(), name, arrays)}
    raise ValueError(
        f"expected {name.split('.')[-1]} of numbers, booleans or text to save, got an array of the type {array.dtype} "
        f"and shape {array.shape}: convert it before fit"
    )


def _untagged(value: Any, arrays: Given) -> Any:
    """Return the value that JSON says it is, or raise ValueError if it says nothing known."""
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list):
        return [_untagged(item, arrays) for item in value]
    match value:
        case {"is": "number", "value": str(name)} if name in _SPECIAL:
            return _SPECIAL[name]
        case {"is": "array", "name": str(name)}:
            if name not in arrays:
                raise ValueError(f"expected the name of an array, got {on_one_line(name)}")
            return arrays[name]
        case {"is": "tuple", "items": list(items)}:
            return tuple(_untagged(items, arrays))
        case {"is": "set", "items": list(items)} if all(type(item) is str for item in items):
            return frozenset(items)
        case {"is": "list", "type": str(kind), "items": list(items)} if kind in _TEXT_TYPES:
            return _untagged_text(kind, items)
        case {"is": "dict", "items": list(items)}:
            pairs = _untagged(items, arrays)
            if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], _KEYS) for pair in pairs):
                raise ValueError(f"expected pairs of a key and a value, got {on_one_line(pairs)}")
            return dict(pairs)
        case {"is": str(tag), "fields": dict(given)} if (known := record(tag)) is not None:
            return _untagged_record(known, given, arrays)
    raise ValueError(f"expected a parameter, got {on_one_line(value)}")


def _untagged_text(kind: str, items: list[Any]) -> NDArray[Any]:
    allowed = (str, int, float, bool) if kind == "O" else (str,)
    if not all(type(item) in allowed for item in items):
        raise ValueError(f"expected an array of text, got {on_one_line(items)}")
    if kind == "U":  # where every item takes the room of the longest
        lengths = [len(item) for item in items]
        if max(lengths, default=0) * len(items) > max(_MOST_CHARACTERS, 16 * sum(lengths)):
            raise ValueError(f"expected text of similar lengths, got one of {max(lengths)} characters")
    try:
        return np.array(items, dtype=_TEXT_TYPES[kind])
    except UnicodeError:
        raise ValueError(f"expected text of whole characters, got {on_one_line(items)}") from None


def _untagged_record(kind: Any, given: Mapping[str, Any], arrays: Given) -> Any:
    hints = {field.name: field.hint for field in _fields(kind)}
    if not hints.keys() >= given.keys():
        raise ValueError(f"expected parameters of {kind.__name__} among {sorted(hints)}, got {on_one_line(given)}")
    parameters = {name: _untagged(item, arrays) for name, item in given.items()}
    for name, item in parameters.items():
        if not _fits(item, hints[name]):
            raise ValueError(f"expected another type of {name} of {kind.__name__}, got {on_one_line(item)}")
    return _valid(kind(**parameters))
