"""The statistics of words in a model file: arrays, checked as they are read."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.persistence.file import Arrays
from likely.statistics import Labels, Statistics
from likely.text import WordStatistics, checked_terms, packed_terms, rises
from likely.text.words import CLASSES, PAIRS

_KINDS = {"offsets": np.int64, "bytes": np.uint8, "starts": np.int64, "codes": np.int32}


def packed_words(statistics: Statistics, name: str, arrays: Arrays) -> None:
    """Put the words of a block among the arrays; its sums are there already."""
    assert isinstance(statistics, WordStatistics)
    offsets, characters = packed_terms(statistics.terms)
    found: Arrays = {"offsets": offsets, "bytes": characters, "starts": statistics.starts, "codes": statistics.codes}
    arrays.update({f"{name}.{part}": array for part, array in found.items()})


def read_words(classes: Labels, name: str, arrays: Mapping[str, NDArray[Any]]) -> WordStatistics:
    """Return the statistics of words, or raise ValueError if they do not agree with themselves."""
    parts = {part: _array(f"{name}.{part}", arrays, kind) for part, kind in _KINDS.items()}
    sums = {n: _array(f"{name}.sum.{n}", arrays, np.float64) for n in (*PAIRS, *CLASSES)}
    offsets, starts, codes = parts["offsets"], parts["starts"], parts["codes"]
    sizes = [*(len(sums[n]) for n in PAIRS), *(len(sums[n]) for n in CLASSES), len(starts)]
    if sizes != [len(codes)] * 3 + [len(classes)] * 2 + [len(offsets)]:
        raise ValueError("expected sums of every word and class, got others")
    terms = checked_terms(offsets, parts["bytes"])
    if not rises(starts, len(codes)) or np.any(np.diff(starts) == 0):
        raise ValueError("expected words one after the other, got others")
    if len(codes) and (codes.min() < 0 or codes.max() >= len(classes)):
        raise ValueError(f"expected classes below {len(classes)}, got others")
    first = np.zeros(len(codes), dtype=bool)
    first[starts[:-1]] = True
    if np.any(np.diff(codes, prepend=0)[~first] <= 0):
        raise ValueError("expected the classes of each word sorted and each once, got others")
    for n, array in sums.items():
        if not np.isfinite(array).all() or (n != "log size" and np.any(array < 0)):
            raise ValueError(f"expected finite numbers of 0 or more in {n!r}, got others")
    if np.any(sums["documents"] == 0):
        raise ValueError("expected words in some documents, got others")
    return WordStatistics.of(terms, starts, codes, sums, classes)


def _array(name: str, arrays: Mapping[str, NDArray[Any]], kind: Any) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.dtype != kind or array.ndim != 1:
        raise ValueError(
            f"expected the array {name!r} of {np.dtype(kind)}, got {'none' if array is None else array.dtype}"
        )
    return array
