"""Data in partitions of an engine: which engine keeps them, and rows and labels opened."""

from collections.abc import Collection
from importlib import import_module
from typing import Any

from likely.data.detect import engine_class
from likely.data.partitions import Engine, PartialResult, PartitionedRows, Task, add_results, in_partition_order
from likely.data.rows import Rows, missing_words, open_rows

_WHERE = "in partitions of an engine"


def engine_of(data: Any) -> Engine | None:
    """Return the engine that keeps some data in partitions, or is given itself; None if they are not kept by one."""
    if isinstance(data, Engine):
        return data
    found = engine_class(data)
    if found is None:
        return None
    module, name = found.split(".")
    engine: Engine = getattr(import_module(f"likely.engines.{module}"), name)(data)
    return engine


def rows_of(data: Any, *, missing: str | Collection[str] | None = (), typed: bool = True) -> Rows:
    """Open a table: in partitions, or as ``open_rows`` does with these options."""
    engine = engine_of(data)
    if engine is None:
        return open_rows(data, missing=missing, typed=typed)
    return PartitionedRows(engine, missing_words(() if missing is None else missing))


def check_no_weights(data: Any, sample_weight: Any) -> None:
    """Raise if there are weights of rows in partitions."""
    if sample_weight is not None and engine_of(data) is not None:
        raise ValueError(
            f"expected no sample_weight of rows {_WHERE}, got one: bring the rows into memory, where weights can be "
            "matched by their order"
        )


def with_labels(data: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
    """Return rows and labels that are both in blocks as one engine, and the name of its column of labels.

    Rows in partitions may have neither weights nor labels in a list: raises ValueError. All else stays as it is.
    """
    engine = engine_of(data)
    if engine is None:
        return data, y
    check_no_weights(engine, sample_weight)
    if isinstance(y, str):
        return data, y
    if engine.name != "Dask" or y is None:
        raise ValueError(f"expected the name of the column of labels of rows {_WHERE}, got {type(y).__name__}")
    from likely.engines.dask import paired

    return paired(engine, y)


__all__ = [
    "Engine",
    "PartialResult",
    "PartitionedRows",
    "Task",
    "add_results",
    "check_no_weights",
    "engine_of",
    "in_partition_order",
    "rows_of",
    "with_labels",
]
