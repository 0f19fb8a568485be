"""Texts that need not be held all at once: iterators, and files, some at a time."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
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
    """Return the texts in files as bytes; texts that are not files stay as they are."""
    return [_content(text) for text in texts] if _are_files(texts) else texts


def batches(texts: Iterable[Any], labels: Iterable[Any], weights: Iterable[float] | None) -> Iterator[TextBatch]:
    """Return texts, labels and weights some at a time.

    >>> [len(batch.texts) for batch in batches(iter(["one", "two"]), "ab", None)]
    [2]
    """
    left: Iterator[Any] = iter(texts)
    given = iter(labels)
    weighed = None if weights is None else iter(weights)
    done = 0
    while some := _some(left):
        own = list(islice(given, len(some)))
        heavy = None if weighed is None else list(islice(weighed, len(some)))
        done += len(some)
        for name, column in (("label", own), ("weight", heavy)):
            if column is not None and len(column) < len(some):
                raise ValueError(
                    f"expected a {name} for each text, got {done - len(some) + len(column)} for more texts"
                )
        yield TextBatch(some, own, heavy)
    more = next(chain(given, () if weighed is None else weighed), None)
    if more is not None:
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
    return isinstance(texts, list | tuple) and len(texts) > 0 and isinstance(texts[0], os.PathLike)


def _content(text: Any) -> Any:
    return Path(text).read_bytes() if isinstance(text, os.PathLike) else text
