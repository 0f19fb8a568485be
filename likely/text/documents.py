"""Documents as Arrow lays strings out, whatever they come as, and the buffers of them that the core reads."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native

# So many texts, or bytes of them, are held at a time.
_MOST, _BYTES = 1 << 15, 1 << 25
_SURROGATES = re.compile("[\ud800-\udfff]")


class Strings:
    """A list of strings that is read in place. What else is asked of it is asked of the same in Arrow's layout.

    ``survey``: whether they are ASCII throughout, and whether there is a capital sigma in them.

    >>> texts = Strings(["one", "two", "three"], (True, False))
    >>> len(texts[1:]), texts.take([2]).items, texts.to_pylist()[0]
    (2, ['three'], b'one')
    """

    null_count = 0

    def __init__(self, items: list[str], survey: tuple[bool, bool]) -> None:
        self.items = items
        self.survey = survey

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, part: slice) -> "Strings":
        return Strings(self.items[part], self.survey)

    def take(self, indices: Iterable[int]) -> "Strings":
        """Return some of the strings; ``indices`` are numbers of them, or say of each whether it is taken."""
        found = np.asarray(indices)
        chosen = np.flatnonzero(found) if found.dtype == bool else found
        return Strings([self.items[i] for i in chosen], self.survey)

    @cached_property
    def arrow(self) -> pa.Array:
        """The strings in Arrow's layout."""
        return as_texts(self.items)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("items", "survey", "arrow"):
            raise AttributeError(name)
        return getattr(self.arrow, name)


def as_read(texts: Any) -> Any:
    """Return texts as the core reads them best: a list of strings as it is, all else as ``as_texts`` does."""
    if type(texts) is list and texts:
        try:
            return Strings(texts, native.survey_text(texts))
        except (TypeError, UnicodeEncodeError):  # not all are strings, or there is a lone surrogate
            pass
    return texts if isinstance(texts, Strings) else as_texts(texts)


def as_texts(texts: Any) -> pa.Array:
    """Return texts as an Arrow array of strings or bytes.

    None and NaN are missing. A lone surrogate, which no encoding can write, becomes U+FFFD.

    Parameters
    ----------
    texts
        strings or bytes: a list or another iterable, a NumPy array, a column of pandas, Polars or Arrow

    Examples
    --------
    >>> as_texts(["one", None]).null_count
    1
    """
    if isinstance(texts, str | bytes):
        raise TypeError(f"expected several texts, got a single one, {texts[:40]!r}: put it in a list")
    if isinstance(texts, Strings):
        return texts.arrow
    if isinstance(texts, os.PathLike):
        raise TypeError(f"expected several files, got a single one, {os.fspath(texts)!r}: put it in a list")
    if hasattr(texts, "tocsr"):
        raise TypeError("expected the texts themselves, got a matrix of counts: use NaiveBayes for counts")
    if not isinstance(texts, Iterable) and not hasattr(texts, "__arrow_c_stream__"):
        raise TypeError(f"expected texts, got {texts!r}: give a list or a column of strings")
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        return _plain(texts)
    if isinstance(texts, Mapping | pa.Table | pa.RecordBatch) or (
        hasattr(texts, "columns") and hasattr(texts, "shape")
    ):
        raise TypeError("expected a column of texts, got a table: give one of its columns")
    if hasattr(texts, "__arrow_c_stream__"):
        try:
            return _plain(pa.chunked_array(texts))
        except (TypeError, ValueError, pa.ArrowInvalid, pa.ArrowTypeError):  # a column of objects of different kinds
            pass
    objects = isinstance(texts, list) or (isinstance(texts, np.ndarray) and texts.dtype.kind == "O")
    items = texts if objects else list(texts)
    try:
        return pa.array(items, type=pa.large_binary(), from_pandas=True)
    except UnicodeEncodeError:
        items = [without_surrogates(item) if isinstance(item, str) else item for item in items]
        return pa.array(items, type=pa.large_binary(), from_pandas=True)
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise _refusal(items) from error


def without_surrogates(text: str) -> str:
    """Return a text with U+FFFD in the place of lone surrogates, which no encoding can write."""
    return _SURROGATES.sub("\ufffd", text)


def as_terms(offsets: NDArray[np.int64], characters: NDArray[np.uint8]) -> pa.Array:
    """Return a vocabulary from its buffers, without a copy."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def packed_terms(terms: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return where the terms of a vocabulary begin, the first at 0, and their bytes, and no others."""
    offsets, characters, *_ = buffers(terms)
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets.astype(np.int64) - first, characters[first:last].copy()


def checked_terms(offsets: Any, characters: Any) -> pa.Array:
    """Return a vocabulary from the buffers that a file has, or raise ValueError if they hold none.

    >>> checked_terms(np.array([0, 1, 3]), np.frombuffer(b"abc", np.uint8)).to_pylist()
    ['a', 'bc']
    """
    import pyarrow.compute as pc

    for array, kind in ((offsets, np.int64), (characters, np.uint8)):
        if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
            raise ValueError("expected words as where they begin and their bytes, got others")
    if not rises(offsets, len(characters)):
        raise ValueError("expected words one after the other, got others")
    terms = as_terms(offsets, characters)
    try:
        terms.validate(full=True)
    except ValueError:
        raise ValueError("expected words as UTF-8, got other bytes") from None
    in_partition_order = terms.take(pa.array(native.sort_terms(buffers(terms))))
    if len(in_partition_order) > 1 and pc.any(pc.equal(in_partition_order[1:], in_partition_order[:-1])).as_py():
        raise ValueError("expected each word once, got one twice")
    return terms


def rises(starts: NDArray[Any], last: int) -> bool:
    """Say whether these are where things begin, one after the other, and where the last one ends."""
    return len(starts) > 0 and starts[0] == 0 and starts[-1] == last and bool(np.all(np.diff(starts) >= 0))


def buffers(texts: Any) -> Any:
    """Return offsets, bytes, the bits of those that are there, and the offset of the first bit; nothing is copied.

    A list of strings is itself what the core reads.
    """
    if isinstance(texts, Strings):
        return texts.items
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    bits, offsets, characters = texts.buffers()
    kind: Any = np.int64 if wide else np.int32
    indices = _view(offsets, kind)[texts.offset : texts.offset + len(texts) + 1] if len(texts) else np.zeros(1, kind)
    there = None if bits is None or not texts.null_count else _view(bits, np.uint8)
    return indices, _view(characters, np.uint8), there, texts.offset


def _view(buffer: pa.Buffer | None, kind: Any) -> NDArray[Any]:
    return np.zeros(0, kind) if buffer is None else np.frombuffer(buffer, dtype=kind)


def _plain(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return one array of strings or bytes whose layout is that of offsets and bytes."""
    kind = texts.type
    if isinstance(texts, pa.ChunkedArray):
        if texts.num_chunks > 1 and (pa.types.is_string(kind) or pa.types.is_binary(kind)):
            # as one they may be longer than offsets of 32 bits reach
            texts = texts.cast(pa.large_string() if pa.types.is_string(kind) else pa.large_binary())
        texts = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
        kind = texts.type
    if pa.types.is_null(kind):
        return texts.cast(pa.large_string())
    if pa.types.is_dictionary(kind):
        return _plain(texts.dictionary_decode())
    if isinstance(texts, pa.ExtensionArray):
        return _plain(texts.storage)
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return texts
    if kind == pa.string_view():
        return texts.cast(pa.large_string())
    if kind == pa.binary_view():
        return texts.cast(pa.large_binary())
    raise TypeError(f"expected texts, got values of type {kind}: turn them into strings")


def _refusal(items: Iterable[Any]) -> TypeError:
    """Return the error about the first item that is no text."""
    for i, item in enumerate(items):
        missing = item is None or (isinstance(item, float) and np.isnan(item))
        if not isinstance(item, str | bytes) and not missing:
            return TypeError(f"expected texts, got {item!r} at index {i}: turn it into a string")
    return TypeError("expected texts, got something else: turn it into strings")


class TextBatch(NamedTuple):
    """Some texts, their labels and their weights, if there are any."""

    texts: list[Any]
    labels: list[Any]
    weights: list[float] | None


def is_stream(texts: Any) -> bool:
    """Say whether texts are an iterator, or a list of files.

    >>> is_stream(iter(["a text"])), is_stream([Path("a file")]), is_stream(["a text"])
    (True, True, False)
    """
    if hasattr(texts, "__next__"):
        return True
    if isinstance(texts, Mapping | str | bytes) or not hasattr(texts, "__iter__") or getattr(texts, "ndim", 1) != 1:
        return False
    return isinstance(next(iter(texts), None), os.PathLike)


def contents(texts: Any) -> Any:
    """Return the texts in files; texts that are not files stay as they are."""
    return [_content(text) for text in texts] if is_stream(texts) else texts


def listed(labels: Any) -> Any:
    """Return labels, or weights, that come from an iterator as a list."""
    return list(labels) if hasattr(labels, "__next__") else labels


def batches(texts: Iterable[Any], labels: Iterable[Any], weights: Any) -> Iterator[TextBatch]:
    """Return texts, labels and weights some at a time.

    >>> [len(batch.texts) for batch in batches(iter(["one", "two"]), ["a", "b"], None)]
    [2]
    """
    if not isinstance(labels, Iterable) or isinstance(labels, str | bytes):
        raise TypeError(f"expected a label for each text, got {labels!r}: give a list or an iterator of them")
    left, given = iter(texts), {"label": iter(labels)}
    if weights is not None and not isinstance(weights, Real):
        given["weight"] = iter(weights)
    done = 0
    while some := _some(left):
        own = {name: list(islice(column, len(some))) for name, column in given.items()}
        for name, column in own.items():
            if len(column) < len(some):
                raise ValueError(f"expected a {name} for each text, got {done + len(column)} for more texts")
        done += len(some)
        alike = [weights] * len(some) if isinstance(weights, Real) else None
        yield TextBatch(some, own["label"], own.get("weight", alike))
    nothing = object()
    if next(chain(*given.values()), nothing) is not nothing:
        raise ValueError(f"expected a label, and a weight if any, for each of {done} texts, got more of them")


def _some(texts: Iterator[Any]) -> list[Any]:
    some: list[Any] = []
    size = 0
    for text in texts:
        read = _content(text)
        some.append(read)
        size += len(read) if isinstance(read, str | bytes) else 0
        if len(some) >= _MOST or size >= _BYTES:
            break
    return some


def _content(text: Any) -> Any:
    if not isinstance(text, os.PathLike):
        return text
    read = Path(text).read_bytes()
    try:
        return read.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"expected a text in UTF-8, got {os.fspath(text)!r} with byte {read[error.start]:#x} at index "
            f"{error.start}: read the files yourself, such as by path.read_text('latin-1')"
        ) from None
