"""Data in partitions of an engine: which engine keeps them, and rows and labels opened wherever they lie."""

from collections.abc import Collection
from typing import Any

from likely.data.rows import Rows, missing_words, open_rows
from likely.engines.partitions import Engine, Made, Spread, Task, added, in_order

_WHERE = "in partitions of an engine"


def engine_of(data: Any) -> Engine | None:
    """Return the engine that keeps some data in partitions, or is given itself; None if they are not kept by one."""
    if isinstance(data, Engine):
        return data
    if type(data).__module__.startswith("dask.dataframe") and getattr(data, "ndim", 0) == 2:
        from likely.engines.dask import DaskFrame

        return DaskFrame(data)
    if _is_dask_array(data) and data.ndim == 2:
        from likely.engines.dask import DaskArray

        return DaskArray(data)
    if type(data).__module__ == "ray.data.dataset" and hasattr(data, "map_batches"):
        from likely.engines.ray import RayDataset

        return RayDataset(data)
    if type(data).__module__.startswith("pyspark.sql") and hasattr(data, "mapInArrow"):
        from likely.engines.spark import SparkFrame

        return SparkFrame(data)
    return None


def rows_of(data: Any, *, missing: str | Collection[str] | None = (), typed: bool = True) -> Rows:
    """Open a table wherever it lies: in partitions, or as ``open_rows`` does with these options."""
    engine = engine_of(data)
    if engine is None:
        return open_rows(data, missing=missing, typed=typed)
    return Spread(engine, missing_words(() if missing is None else missing))


def with_labels(data: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
    """Return rows and labels that both lie in blocks as one engine, and the name of its column of labels.

    Rows in partitions may have neither weights nor labels in a list: raises ValueError. All else stays as it is.
    """
    engine = engine_of(data)
    if engine is None:
        return data, y
    if sample_weight is not None:
        raise ValueError(
            f"expected no sample_weight of rows {_WHERE}, got one: bring the rows into memory, where weights can be "
            "told by their order"
        )
    if isinstance(y, str):
        return data, y
    if engine.name != "Dask" or y is None:
        raise ValueError(f"expected the name of the column of labels of rows {_WHERE}, got {type(y).__name__}")
    from likely.engines.dask import paired

    return paired(engine, y)


def _is_dask_array(data: Any) -> bool:
    return type(data).__module__.startswith("dask.array") and hasattr(data, "numblocks")


__all__ = ["Engine", "Made", "Spread", "Task", "added", "engine_of", "in_order", "rows_of", "with_labels"]
