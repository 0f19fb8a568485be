"""Texts that need not be held all at once: iterators, and files, some at a time."""

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

# So many texts, or bytes of them, are held at a time.
_MOST, _BYTES = 1 << 15, 1 << 25


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
    return hasattr(texts, "__next__") or _are_files(texts)


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
    left: Iterator[Any] = iter(texts)
    given = iter(labels)
    alike = isinstance(weights, Real)
    weighed = None if weights is None or alike else iter(weights)
    done = 0
    while some := _some(left):
        own = list(islice(given, len(some)))
        heavy = [weights] * len(some) if alike else None if weighed is None else list(islice(weighed, len(some)))
        done += len(some)
        for name, column in (("label", own), ("weight", heavy)):
            if column is not None and len(column) < len(some):
                raise ValueError(
                    f"expected a {name} for each text, got {done - len(some) + len(column)} for more texts"
                )
        yield TextBatch(some, own, heavy)
    nothing = object()
    if next(chain(given, () if weighed is None else weighed), nothing) is not nothing:
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


def _are_files(texts: Any) -> bool:
    if isinstance(texts, Mapping | str | bytes) or not hasattr(texts, "__iter__") or getattr(texts, "ndim", 1) != 1:
        return False
    return isinstance(next(iter(texts), None), os.PathLike)


def _content(text: Any) -> Any:
    if not isinstance(text, os.PathLike):
        return text
    read = Path(text).read_bytes()
    try:
        return read.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"expected a text in UTF-8, got {os.fspath(text)!r} with byte {read[error.start]:#x} at place "
            f"{error.start}: read the files yourself, such as by path.read_text('latin-1')"
        ) from None
