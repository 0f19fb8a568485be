"""Blocks of a Ray Dataset, worked on by the workers that have them, as they stream by.

A dataset that is small beside the memory of the cluster is run once, and its blocks are kept between passes. Of a
larger one no more is held than is being worked on: each pass runs it again, in its order. Where that takes long, or
gives other rows each time, ``dataset.materialize()`` keeps them, on disks if need be.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa

from likely.data.partitions import (
    FAN_IN,
    Answering,
    Engine,
    PartialResult,
    Task,
    add_results,
    answered,
    use_threads,
)
from likely.data.rows import open_rows

RETRIES = 3
"""A task is done again so many times when the process or the machine that does it is lost."""

KEPT = 0.25
"""Blocks are kept between passes if they fill no more than this share of the memory that Ray has for objects."""


class RayDataset(Engine):
    """A Ray Dataset."""

    name = "Ray"

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @property
    def partitions(self) -> int:  # type: ignore[override]
        """How many blocks there are, which only running the dataset tells."""
        return self._first_run[0]

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns; where Ray knows but those of pandas, as they are in the first block."""
        import ray

        known = self._dataset.schema()
        if known is None:
            raise ValueError("expected a dataset with columns, got an empty one")
        if isinstance(known.base_schema, pa.Schema):
            return open_rows(known.base_schema.empty_table()).schema
        return open_rows(ray.get(next(self._blocks()))).schema

    def run(self, task: Task, add: Callable[[Any, Any], Any] | None) -> list[PartialResult]:
        """Do a task on all blocks; results are added by the workers, some neighbours at a time.

        As many blocks are worked on at once as there are processors. Tasks ask Ray for none of them: those that make
        the blocks may hold them all, and wait for the blocks to be taken.
        """
        import ray

        do = ray.remote(_done).options(num_cpus=0, num_returns=2, max_retries=RETRIES)
        join = ray.remote(_joined).options(num_cpus=0, max_retries=RETRIES)
        sent, sent_add = ray.put(task), ray.put(add)
        most = max(1, int(ray.cluster_resources().get("CPU", 1)))
        levels: list[list[Any]] = [[]]
        running: list[Any] = []
        count = 0
        try:
            for number, block in enumerate(self._blocks()):
                count += 1
                if not task.wants(number):
                    continue
                made, end = do.remote(sent, number, block)
                levels[0].append(made)
                running.append(end)
                if len(running) >= most:
                    ended, running = ray.wait(running)
                    ray.get(ended)
                if add is not None:
                    _add_full(levels, lambda parts: join.remote(sent_add, *parts))
            ray.get(running)
            found = ray.get([made for level in reversed(levels) for made in level])
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        if count != self.partitions:
            raise RuntimeError(
                f"expected the {self.partitions} blocks of the dataset again, got {count}: keep them first, by "
                "materialize()"
            )
        return list(found)

    def contents(self) -> Iterator[Any]:
        """Return all blocks, of one run of the dataset."""
        import ray

        return map(ray.get, self._blocks())

    def lazily(self, answer: Answering) -> Any:
        """Return a Ray Dataset with the same blocks."""
        return self._dataset.map_batches(
            answered, fn_args=(answer,), batch_size=None, batch_format="pyarrow", zero_copy_batch=True
        )

    @cached_property
    def _first_run(self) -> tuple[int, list[Any]]:
        """The number of blocks, and references to them if they are kept."""
        import ray

        most = KEPT * ray.cluster_resources().get("object_store_memory", 0)
        kept: list[Any] = []
        count = size = 0
        for bundle in self._bundles():
            count += len(bundle.block_refs)
            size += bundle.size_bytes()
            kept = kept + bundle.block_refs if size <= most else []
        return count, kept

    def _blocks(self) -> Iterator[Any]:
        """Return references to the blocks, in the same order each time."""
        if kept := self._first_run[1]:
            return iter(kept)
        return (block for bundle in self._bundles() for block in bundle.block_refs)

    def _bundles(self) -> Iterator[Any]:
        """Run the dataset, in its order."""
        dataset = self._dataset.copy(self._dataset, _deep_copy=True)
        dataset.context.execution_options.preserve_order = True
        found: Iterator[Any] = dataset.iter_internal_ref_bundles()
        return found


def _done(task: Task, number: int, block: Any) -> tuple[PartialResult, None]:
    """Return what a task makes of a block, and beside it the mere sign that it is done."""
    use_threads(1)
    return task(number, block), None


def _joined(add: Callable[[Any, Any], Any], *parts: PartialResult) -> PartialResult:
    return add_results(parts, add)


def _add_full(levels: list[list[Any]], join: Callable[[list[Any]], Any]) -> None:
    """Put each level that is full as one result on the level above it, in place.

    >>> levels = [["a"] * FAN_IN]
    >>> _add_full(levels, "".join)
    >>> levels
    [[], ['aaaaaaaaaaaaaaaa']]
    """
    for height, level in enumerate(levels):
        if len(level) == FAN_IN:
            if height + 1 == len(levels):
                levels.append([])
            levels[height + 1].append(join(level))
            levels[height] = []
