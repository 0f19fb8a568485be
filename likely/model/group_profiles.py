"""What the groups of a whole table are like: a table for a person to read, exact from the joint, without any data."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.density.columns import NumberColumn
from likely.density.groups import GroupColumn, group_columns, group_weights
from likely.density.table import TableJoint
from likely.lazy import pa
from likely.messages import shown
from likely.model.questions import labels_in_text
from likely.model.readers import Reader
from likely.statistics import Array

if TYPE_CHECKING:
    import pyarrow

# Categories that are told of a group, the most frequent ones, and the share that one must have.
_MOST, _LEAST = 3, 0.01
_SECONDS = 86400


def group_profiles(joint: TableJoint, reader: Reader) -> "pyarrow.Table":
    """Return a row for each group and column: the largest group first, and of each the most special column first."""
    weights = group_weights(joint)
    rows = [row for column in group_columns(joint) for row in _rows(column, weights, joint, reader)]
    rows.sort(key=lambda row: (-row["weight"], row["group"], -row["difference"]))
    kinds = {
        "group": pa.int64(),
        "weight": pa.float64(),
        "column": pa.string(),
        "profile": pa.string(),
        "difference": pa.float64(),
        "mean": pa.float64(),
        "deviation": pa.float64(),
        "mean_of_all": pa.float64(),
        "deviation_of_all": pa.float64(),
        "value": pa.string(),
        "share": pa.float64(),
        "share_of_all": pa.float64(),
        "missing": pa.float64(),
    }
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()})


def _rows(found: GroupColumn, weights: Array, joint: TableJoint, reader: Reader) -> Iterator[dict[str, Any]]:
    told = (
        _of_numbers(found, weights, reader)
        if isinstance(joint.columns[found.column], NumberColumn)
        else _of_categories(found, weights, reader, joint.values_of(found.column))
    )
    for group, more in enumerate(told):
        yield {
            "group": group,
            "weight": float(weights[group]),
            "column": reader.columns.name(found.column),
            "difference": float(found.difference[group]),
            "missing": float(found.missing[group]),
            **more,
        }


def _of_numbers(found: GroupColumn, weights: Array, reader: Reader) -> Iterator[dict[str, Any]]:
    """Return mean and standard deviation of numbers, or of dates, in each group and of all rows."""
    assert found.distribution is not None
    values, p = found.distribution
    unit = max(float(np.abs(values).max()), 1e-290)  # squares of huge numbers would be infinite

    def moments(p: Array) -> tuple[float, float]:
        mean = float(p @ (values / unit))
        return unit * mean, unit * float(np.sqrt(p @ (values / unit - mean) ** 2))

    def told(mean: float, deviation: float) -> str:
        date = reader.as_asked(found.column, np.array([mean]))
        if date.dtype.kind != "M":
            return f"{shown(mean)} ± {shown(deviation)}"
        days = np.datetime_data(date.dtype)[0] == "D"
        return f"{date.astype('datetime64[D]')[0]} ± {shown(deviation / (1 if days else _SECONDS))} days"

    of_all = moments(weights @ p)
    for each in p:
        own = moments(each)
        yield {
            "profile": f"{told(*own)} (all {told(*of_all)})",
            "mean": own[0],
            "deviation": own[1],
            "mean_of_all": of_all[0],
            "deviation_of_all": of_all[1],
        }


def _of_categories(
    found: GroupColumn, weights: Array, reader: Reader, values: NDArray[Any]
) -> Iterator[dict[str, Any]]:
    """Return the most frequent values in each group, with their shares there and of all rows."""
    assert found.p is not None
    names = labels_in_text(reader.as_asked(found.column, values))
    of_all = weights @ found.p
    for p in found.p:
        order = np.argsort(-p, kind="stable")[:_MOST].tolist()
        told = [k for at, k in enumerate(order) if at == 0 or p[k] >= _LEAST]
        yield {
            "profile": ", ".join(f"{names[k]} {_percent(p[k])} (all {_percent(of_all[k])})" for k in told),
            "value": names[order[0]],
            "share": float(p[order[0]]),
            "share_of_all": float(of_all[order[0]]),
        }


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
