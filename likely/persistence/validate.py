"""Checks of statistics from a file: that rows could have had their shapes, labels, weights and origins."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Columns
from likely.families import Family, Gaussian, Numbered, Together, on_one_line
from likely.families.forest import Forest
from likely.joint import Part
from likely.learn.class_mixtures import Mixed
from likely.persistence.registry import ESTIMATORS, tag_of
from likely.statistics import Array, Labels, Statistics, distinct

# A row of so many takes half a GB, also if a file holds nothing of most of them.
_MOST_COLUMNS = 1 << 26
# Classes × categories of numbered columns, all of which are there once solved, may always be so many, which take half
# a GB, and otherwise so many times those that have counts.
_MOST_NUMBERED = 1 << 26
_MOST_TIMES = 16


def check_columns(columns: Columns) -> None:
    """Raise unless there are some columns, not too many, and a name of each if any has one."""
    width, names = columns
    if not 0 < width <= _MOST_COLUMNS:
        raise ValueError(f"expected 1 to {_MOST_COLUMNS:,} columns, got {on_one_line(width)}")
    if names is not None and len(names) != width:
        raise ValueError(f"expected names of {width} columns, got {on_one_line(names)}")


def check_part(family: Any, columns: tuple[int, ...] | None, width: int) -> Part:
    """Return a family of some of ``width`` columns, or raise ValueError if it is none, or they are others."""
    if not isinstance(family, Family):
        raise ValueError(f"expected a family, got {on_one_line(family)}")
    if columns is not None and not (columns and all(0 <= j < width for j in columns)):
        raise ValueError(f"expected columns from 0 to {width - 1}, got {on_one_line(columns)}")
    return Part(family, None if columns is None else list(columns))


def check_parts(kind: str, parts: Sequence[Part]) -> None:
    """Raise unless an estimator could have these families in these blocks."""
    families, full, several, *_ = ESTIMATORS[kind]
    if len(parts) == 1 and isinstance(mixed := parts[0].family, Mixed) and Mixed.name in families:
        if parts[0].columns != mixed.columns:
            raise ValueError("expected a mixture of the columns of its blocks, got others")
        parts, families = mixed.blocks, tuple(name for name in families if name != Mixed.name)
    for family, *_ in parts:
        matrix = isinstance(family, Gaussian) and family.covariance == "full"
        if tag_of(type(family)) not in families or full not in (None, matrix):
            raise ValueError(f"expected families that {kind} has, got {on_one_line(family)}")
    if len(parts) == 1 and parts[0].columns is None:
        return
    taken = [j for part in parts for j in part.columns or ()]
    if not several or any(part.columns is None for part in parts) or len(set(taken)) < len(taken):
        raise ValueError(f"expected every column in one block, got {on_one_line(parts)}")


def check_mixture(family: Mixed, width: int) -> None:
    """Raise unless the columns of a mixture's blocks are among those of the table, each once."""
    inner = [part.family for part in family.blocks]
    numbers = [j for part in family.blocks for j in part.columns or ()]
    known = all(type(j) is int and 0 <= j < width for j in numbers) and len(set(numbers)) == len(numbers)
    whole = any(part.columns is None for part in family.blocks)
    if any(isinstance(each, Mixed) for each in inner) or not known or (whole and len(inner) > 1):
        raise ValueError("expected every column in one block of a mixture, got others")


def check_classes(labels: Any) -> Labels:
    """Return labels of classes, or raise ValueError if they are none, or not sorted."""
    fits = isinstance(labels, np.ndarray) and labels.ndim == 1 and len(labels) > 0
    try:
        if not fits or not np.array_equal(distinct(labels), labels):
            raise ValueError(f"expected labels of classes, sorted and each once, got {on_one_line(labels)}")
    except TypeError:
        raise ValueError(f"expected labels of one kind, got {on_one_line(labels)}") from None
    classes: Labels = labels
    return classes


def check_weights(weights: Statistics) -> None:
    """Raise unless there is a weight for each class, and some are positive."""
    _check_shape("weight", weights.sums["weight"], (len(weights.labels["class"]),))
    _check_numbers("weight", weights.sums["weight"], counted=True)
    if not 0 < weights.sums["weight"].sum() < np.inf:
        raise ValueError(f"expected some weight in all classes together, got {weights.sums['weight'].sum()}")


def check_block(statistics: Statistics, family: Family, width: int) -> None:
    """Raise unless the statistics of a family's columns, ``width`` of them, agree with each other."""
    k = len(statistics.labels["class"])
    sizes = {"class": k, "column": width, "other column": width, "word": width}
    if "category" in statistics.labels:
        sizes["category"] = len(statistics.labels["category"])
        _check_categories(statistics.labels["category"], 1 if isinstance(family, Together) else width)
    if statistics.lost is not None and statistics.origin is None:
        raise ValueError("expected nothing lost from sums without an origin, got some")
    for arrays in (statistics.sums, statistics.lost or {}):
        for name, array in arrays.items():
            _check_shape(name, array, tuple(sizes[axis] for axis in statistics.axes[name]))
    for name, array in statistics.restored().sums.items():
        _check_numbers(name, array, counted=name in ("weight", "count", "yes", "no"))
    if statistics.origin is not None:
        _check_origin(statistics, family, (k, width))
    if isinstance(family, Gaussian):
        _check_pooling(family.pooling, k)
    if isinstance(family, Numbered):
        _check_numbered(statistics, family)
    if isinstance(family, Together):
        cells = k * family.size(statistics)
        if cells > _MOST_NUMBERED:
            raise ValueError(f"expected at most {_MOST_NUMBERED:,} classes × combinations, got {cells:,}")


def check_words(parts: Mapping[str, NDArray[Any]], sums: Mapping[str, Array], classes: int) -> None:
    """Raise unless words and their sums in some of the classes agree with each other."""
    from likely.text import rises
    from likely.text.words import CLASSES, PAIRS

    starts, codes = parts["starts"], parts["codes"]
    if any(array.ndim != 1 for array in (*parts.values(), *sums.values())):
        raise ValueError("expected arrays of words in one dimension, got others")
    sizes = [*(len(sums[n]) for n in PAIRS), *(len(sums[n]) for n in CLASSES), len(starts)]
    if sizes != [len(codes)] * 3 + [classes] * 2 + [len(parts["offsets"])]:
        raise ValueError("expected sums of every word and class, got others")
    if not rises(starts, len(codes)) or np.any(np.diff(starts) == 0):
        raise ValueError("expected words one after the other, got others")
    if len(codes) and (codes.min() < 0 or codes.max() >= classes):
        raise ValueError(f"expected classes below {classes}, got others")
    first = np.zeros(len(codes), dtype=bool)
    first[starts[:-1]] = True
    if np.any(np.diff(codes, prepend=0)[~first] <= 0):
        raise ValueError("expected the classes of each word sorted and each once, got others")
    for n, array in sums.items():
        _check_numbers(n, array, counted=n != "log size")
    if np.any(sums["documents"] == 0):
        raise ValueError("expected words in some documents, got others")


def check_leaves(
    sizes: NDArray[np.int64], codes: NDArray[np.int32], counts: Array, family: Forest, classes: int
) -> None:
    """Raise unless there are counts of some classes, in their order, at each leaf of a forest."""
    if len(sizes) != family.leaves or (sizes < 0).any() or not sizes.sum() == len(codes) == len(counts):
        raise ValueError("expected the classes of each leaf and their counts, got others")
    _check_numbers("count", counts, counted=True)
    if len(codes) and (codes.min() < 0 or codes.max() >= classes):
        raise ValueError(f"expected classes below {classes}, got others")
    first = np.zeros(len(codes) + 1, dtype=bool)
    first[np.cumsum(sizes) - sizes] = True
    if np.any(np.diff(codes, prepend=0)[~first[:-1]] <= 0):
        raise ValueError("expected the classes of each leaf sorted and each once, got others")


def check_centres(found: Mapping[str, Array], known: NDArray[np.bool_], width: int) -> None:
    """Raise unless centres, an origin and the sums of clusters are of the same columns, and ``known`` in some."""
    k = len(found["centres"]) if found["centres"].ndim else 0
    if known.shape != (width,) or k == 0:
        raise ValueError("expected centres, and of each column whether it is known, got others")
    for name, array in found.items():
        _check_shape(name, array, (width,) if name == "origin" else (k, width))
        _check_numbers(name, array[..., known])
    if np.any(found["weight"] < 0) or not 0 < found["weight"].sum() < np.inf:
        raise ValueError("expected weights of 0 or more, some of them positive, got others")


def _check_shape(name: str, array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"expected {name!r} of the shape {shape}, got {array.shape}")


def _check_numbers(name: str, array: np.ndarray[Any, Any], *, counted: bool = False) -> None:
    if not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers in {name!r}, got {array[~np.isfinite(array)][0]}")
    if counted and np.any(array < 0):
        raise ValueError(f"expected no negative numbers in {name!r}, got {array.min()}")


def _check_origin(statistics: Statistics, family: Family, shape: tuple[int, int]) -> None:
    """Raise unless the origin is a number wherever sums are about it, and a positive one if it divides them."""
    origin, weight = statistics.origin, statistics.sums["weight"]
    assert origin is not None
    _check_shape("origin", origin, shape)
    full = "product" in statistics.sums
    never = np.isnan(origin) if full else np.zeros(shape, dtype=bool)
    if not np.isfinite(origin[~never]).all():
        raise ValueError(f"expected finite numbers as origin of {family.name!r}, got {on_one_line(origin)}")
    if statistics.sums["sum"][never].any():
        raise ValueError(f"expected an origin of every sum of {family.name!r}, got NaN")
    if "excess" in statistics.sums and not np.all(origin[weight > 0] > 0):
        raise ValueError(f"expected positive numbers as origin of {family.name!r}, got {on_one_line(origin)}")


def _check_categories(labels: Labels, width: int) -> None:
    columns, values = labels["column"], labels["value"]
    fits = values.dtype == object or np.isfinite(values).all()
    if len(labels) and not (fits and columns.min() >= 0 and columns.max() < width):
        raise ValueError(f"expected categories of the columns 0 to {width - 1}, got others")
    later = (columns[1:] > columns[:-1]) | ((columns[1:] == columns[:-1]) & (values[1:] > values[:-1]))
    if not later.all():
        raise ValueError("expected categories sorted and each once, got others")


def _check_pooling(pooling: Any, classes: int) -> None:
    if pooling is None or (isinstance(pooling, str) and pooling == "shares"):
        return
    fits = isinstance(pooling, tuple) and len(pooling) == classes
    if not fits or not all(isinstance(share, float) and 0 <= share <= 1 for share in pooling):
        raise ValueError(f"expected a share of each of {classes} classes as pooling, got {on_one_line(pooling)}")


def _check_numbered(statistics: Statistics, family: Numbered) -> None:
    """Raise unless categories are 0, 1, 2, …, and not so many that no memory could hold them."""
    labels, width = statistics.labels["category"], len(statistics.sums["columns"])
    values, least = labels["value"], np.asarray(family.least)
    if np.any(values < 0) or np.any(values != np.trunc(values)):
        raise ValueError("expected categories 0, 1, 2, …, got others")
    if least.dtype.kind not in "iu" or least.shape not in ((), (1,), (width,)) or least.min() < 0:
        raise ValueError(f"expected a least number of categories for each column, got {on_one_line(family.least)}")
    sizes = np.zeros(width)
    np.maximum.at(sizes, labels["column"], values + 1)
    total = np.maximum(sizes, least).sum() * len(statistics.labels["class"])
    most = max(_MOST_NUMBERED, _MOST_TIMES * statistics.sums["count"].size)
    if total > most:
        raise ValueError(f"expected at most {most:,} classes × categories, got {total:,.0f}: number them without gaps")
