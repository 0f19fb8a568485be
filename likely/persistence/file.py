"""Model files: a header of JSON and arrays by name, in one safetensors file. Data only: nothing in it is run."""

import json
import os
import stat
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.atomic import replacing
from likely.messages import printable

VERSION = 1
"""The version of the format that is written. Files of all versions up to it are read."""

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

# The metadata of a safetensors file are texts by name: the header is the one of this name.
_NAME = "likely"
# Small enough for what Python makes of it, which may take thirty times as much.
_LONGEST_HEADER = 20_000_000
_DEEPEST_HEADER = 40
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|u1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
STORED = frozenset("?bhilqBHILQefd")
"""The characters of the NumPy types that a file can hold."""


class Contents(NamedTuple):
    """What a file holds."""

    header: Header
    arrays: Arrays


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file, or leave the one that was there as it was.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/a", {"name": "counts"}, {"count": np.array([1.0, np.nan])})
    ...     read(f"{folder}/a")
    Contents(header={'name': 'counts', 'version': 1}, arrays={'count': array([ 1., nan])})
    """
    from safetensors.numpy import save

    text = json.dumps({**header, "version": VERSION}, allow_nan=False, separators=(",", ":"))
    # safetensors reads an array's memory as it lies.
    content = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, {_NAME: text})
    length = int.from_bytes(content[:8], "little")
    if length > _LONGEST_HEADER:
        raise ValueError(
            f"expected names, labels and parameters of at most {_LONGEST_HEADER:,} bytes as JSON, got {length:,}: "
            "leave column names out, or write text labels as numbers"
        )
    with replacing(path, wait=False) as file:
        file.write(content)


def read(path: str | os.PathLike[str]) -> Contents:
    """Read a file that ``write`` has written, and raise ValueError if it is any other or no longer whole.

    Its arrays take at most twice its size in memory while it is read, and its size after that.
    """
    path = os.fspath(path)
    if not stat.S_ISREG((status := os.stat(path)).st_mode) and not stat.S_ISDIR(status.st_mode):
        raise _unfit(path, "something that is no file")
    with open(path, "rb") as file:
        try:
            return _read(file)
        except _UnfitError as error:
            raise _unfit(path, str(error)) from None


def is_model(path: str | os.PathLike[str]) -> bool:
    """Say whether there is a file that begins as those do that ``write`` has written."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return _header_length(file.read(9)) is not None


def _header_length(beginning: bytes) -> int | None:
    length = int.from_bytes(beginning[:8], "little")
    return length if beginning[8:] == b"{" and length <= _LONGEST_HEADER else None


class _UnfitError(Exception):
    """What is wrong with a file."""


def _unfit(path: str, what: str) -> ValueError:
    return ValueError(f"expected a model file, got {what}, in {path!r}: load a file that a model's save has written")


def _read(file: BinaryIO) -> Contents:
    from safetensors import SafetensorError, deserialize

    size = os.fstat(file.fileno()).st_size
    beginning = file.read(9)
    length = _header_length(beginning)
    if length is None or 8 + length > size:
        raise _UnfitError("an empty file" if size == 0 else "another kind of file, or one that was cut off")
    # All that can be known from the header is checked before the arrays are read: they may be large.
    outer = _parsed(beginning[8:] + file.read(length - 1))
    metadata = outer.get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get(_NAME), str):
        raise _UnfitError("a safetensors file of another program")
    header = _parsed(metadata[_NAME].encode("utf-8", "surrogatepass"))
    _check_version(header.get("version"))
    _check_size(outer, size - 8 - length)
    del outer, metadata
    file.seek(0)
    try:
        found = deserialize(file.read(size))  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise _UnfitError(
            f"one whose arrays are not where it says ({printable(' '.join(str(error).split()))})"
        ) from None
    return Contents(header, {name: _array(name, described) for name, described in found})


def _parsed(text: bytes) -> Header:
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        raise _UnfitError("one whose header is no JSON, or says something twice") from None
    if not isinstance(value, dict) or not _is_shallow(value, _DEEPEST_HEADER):
        raise _UnfitError("one whose header is not a JSON object, or one too deep")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _distinct(pairs: list[tuple[str, Any]]) -> Header:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key that is there twice")
    return found


def _is_shallow(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_is_shallow(item, depth - 1) for item in inner)


def _check_version(version: Any) -> None:
    if type(version) is not int or version < 1:
        raise _UnfitError("one that names no version of its format")
    if version > VERSION:
        raise _UnfitError(f"one of the format version {version} where this likely reads up to {VERSION} (update it)")


def _check_size(outer: Header, size: int) -> None:
    """Raise if the arrays are said to end elsewhere than the file does; safetensors checks where each of them is."""
    ends = [0]
    for name, described in outer.items():
        if name != "__metadata__":
            offsets = described.get("data_offsets") if isinstance(described, dict) else None
            if not isinstance(offsets, list) or not all(type(offset) is int for offset in offsets):
                raise _UnfitError("one that does not say where its arrays are")
            ends += offsets
    if max(ends) != size:
        raise _UnfitError(f"one with {size:,} bytes of arrays where it says {max(ends):,}")


def _array(name: str, described: Mapping[str, Any]) -> NDArray[Any]:
    kind = described["dtype"]
    if kind not in _TYPES:
        raise _UnfitError(f"one with the array {name!r} of the type {kind!r}")
    # safetensors has checked that shape and type fit the bytes, but knows no limit of NumPy's.
    try:
        array: NDArray[Any] = np.frombuffer(described["data"], dtype=_TYPES[kind]).reshape(described["shape"])
    except ValueError:
        raise _UnfitError(f"one with the array {name!r} of the shape {described['shape']}") from None
    if kind == "BOOL":
        if array.size and array.max() > 1:
            raise _UnfitError(f"one with the array {name!r} of booleans other than 0 and 1")
        return array.view(np.bool_)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
