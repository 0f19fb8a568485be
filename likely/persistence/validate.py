"""Whether statistics could have come from rows: their shapes, labels, weights and origins agree with each other."""

from typing import Any

import numpy as np

from likely.families import Family, Gaussian, Numbered, Together, on_one_line
from likely.statistics import Labels, Statistics, distinct

# Classes × categories of numbered columns, all of which are there once solved, may always be so many, which take half
# a GB, and otherwise so many times those that have counts.
_MOST_NUMBERED = 1 << 26
_MOST_TIMES = 16


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
