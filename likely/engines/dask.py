"""Partitions of a Dask DataFrame, worked on where they lie, by whichever scheduler Dask is set to use."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa

from likely.engines import TOGETHER, Engine, Made, Task, added
from likely.reading import Rows, open_rows
from likely.reading.places import found_files
from likely.reading.stretches import stretches


class DaskFrame(Engine):
    """A Dask DataFrame.

    One that is nothing but a reading of Parquet files is read by the workers as Arrow, stretch by stretch: no frames of
    pandas are made of it.
    """

    name = "Dask"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @property
    def partitions(self) -> int:  # type: ignore[override]
        """How many partitions there are."""
        return len(self._parts)

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns, as Dask expects them."""
        return open_rows(self._frame._meta).schema

    @cached_property
    def _parts(self) -> list[Any]:
        """The content of the partitions, as rows to be read or as frames to be made."""
        parts = stretches(parquet_files(self._frame), self.schema.names)
        return [Rows(part) for part in parts] or list(self._frame.to_delayed())

    def run(self, task: Task, add: Callable[[Any, Any], Any] | None) -> list[Made]:
        """Do a task on all partitions; results are added on the workers, some neighbours at a time."""
        import dask

        do = dask.delayed(task, pure=False, traverse=False)
        level = [do(number, part) for number, part in enumerate(self._parts) if task.wants(number)]
        if add is not None:
            join = dask.delayed(added, pure=False)
            while len(level) > 1:
                level = [join(level[i : i + TOGETHER], add) for i in range(0, len(level), TOGETHER)]
        return list(dask.compute(*level))

    def fetched(self, number: int) -> Any:
        """Return the rows of a partition."""
        part = self._parts[number]
        return part if isinstance(part, Rows) else part.compute()

    def lazily(self, answer: Callable[[pa.Table], pa.Table]) -> Any:
        """Return a Dask DataFrame with the same partitions and index."""
        return self._frame.map_partitions(_answered, answer, meta=_answered(self._frame._meta, answer))


def parquet_files(frame: Any) -> list[str]:
    """Return the Parquet files in a file system of this machine that a frame is nothing but a reading of.

    There are none if it is more, or other, than that, or if Dask does not tell.
    """
    try:
        plan = frame.expr.simplify()
        plan = plan.frame if type(plan).__name__ == "Projection" else plan
        if not type(plan).__name__.startswith("ReadParquet"):
            return []
        more = ("filters", "categories", "index", "storage_options", "_partitions")
        plainly_read = (
            not any(plan.operand(name) for name in more)
            and not plan.operand("_dataset_info_cache")["partitions"]
            and not any(plan.operand("kwargs").values())
        )
        path = plan.operand("path")
    except (AttributeError, KeyError, TypeError, ValueError):
        return []
    paths = [path] if isinstance(path, str) else path
    if not plainly_read or not all(isinstance(one, str) and "://" not in one for one in paths):
        return []
    return [file.path for file in found_files(paths, "parquet")]


def _answered(frame: Any, answer: Callable[[pa.Table], pa.Table]) -> Any:
    found = answer(pa.Table.from_pandas(frame, preserve_index=False)).to_pandas()
    found.index = frame.index
    return frame.assign(**{name: found[name] for name in found.columns})
