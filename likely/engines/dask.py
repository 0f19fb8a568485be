"""Partitions of a Dask DataFrame, worked on where they lie, by whichever scheduler Dask is set to use."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa

from likely.engines import TOGETHER, Engine, Made, Task, added
from likely.reading import open_rows


class DaskFrame(Engine):
    """A Dask DataFrame."""

    name = "Dask"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.partitions = int(frame.npartitions)

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns, as Dask expects them."""
        return open_rows(self._frame._meta).schema

    @cached_property
    def _delayed(self) -> list[Any]:
        return list(self._frame.to_delayed())

    def run(self, task: Task, add: Callable[[Any, Any], Any] | None) -> list[Made]:
        """Do a task on all partitions; results are added on the workers, some neighbours at a time."""
        import dask

        do = dask.delayed(task, pure=False, traverse=False)
        level = [do(number, part) for number, part in enumerate(self._delayed)]
        if add is not None:
            join = dask.delayed(added, pure=False)
            while len(level) > 1:
                level = [join(level[i : i + TOGETHER], add) for i in range(0, len(level), TOGETHER)]
        return list(dask.compute(*level))

    def fetched(self, number: int) -> Any:
        """Return the frame of a partition."""
        return self._delayed[number].compute()

    def lazily(self, answer: Callable[[pa.Table], pa.Table]) -> Any:
        """Return a Dask DataFrame with the same partitions and index."""
        return self._frame.map_partitions(_answered, answer, meta=_answered(self._frame._meta, answer))


def _answered(frame: Any, answer: Callable[[pa.Table], pa.Table]) -> Any:
    found = answer(pa.Table.from_pandas(frame, preserve_index=False)).to_pandas()
    found.index = frame.index
    return frame.assign(**{name: found[name] for name in found.columns})
