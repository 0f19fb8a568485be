"""Rows in partitions, wherever an engine keeps them: work goes to the rows, and what it makes of them comes back.

An engine runs work on every partition and tells which partition a result is of. All else is here, once: what is sent,
what is checked of what comes back, and that results are combined in the order of the partitions, each once,
however often, late or by whomever they were made. No model knows that there are engines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import numpy as np

from likely.data.arrow import concat_tables
from likely.data.progress import progress_bar
from likely.data.rows import Rows, T, open_rows
from likely.data.sources import Source
from likely.lazy import pa
from likely.native import get_threads, set_threads

FAN_IN = 16
"""Results of so many partitions are added where they were made, before they travel on."""
LOOKED_AT = 4
"""So many partitions, from the first to the last, are looked at to see what the columns are."""


class PartialResult(NamedTuple):
    """What was made of some partitions: how many rows each had, by its number (−1: not counted), and the result."""

    rows: dict[int, int]
    result: Any


@dataclass(frozen=True)
class Task:
    """Work for every partition, as it is sent to the workers, and what is checked or known there."""

    work: Callable[[Rows], Any]
    columns: tuple[str, ...]
    """those that each partition must have"""
    missing: tuple[str, ...]
    """the text that stands for a missing cell"""
    version: str
    """that of this package, where the task is sent from"""
    only: frozenset[int] | None = None
    """the numbers of the partitions that it is for, of which the first rows may do; None for all rows of all"""

    def wants(self, number: int) -> bool:
        """Say whether the task is for a partition."""
        return self.only is None or number in self.only

    def __call__(self, number: int, content: Any) -> PartialResult:
        """Do the work on the content of a partition: a frame, an Arrow table, a stream, or what makes one."""
        where = f"partition {number}"
        if (found := version("likely")) != self.version:
            raise RuntimeError(
                f"expected likely {self.version} on the worker of {where}, as here, got {found}: install the same"
            )
        try:
            rows = open_rows(content() if callable(content) else content, missing=self.missing)
            lacking = [name for name in self.columns if name not in rows.schema.names]
            if lacking:
                raise ValueError(f"expected the same columns as in the other partitions, got none named {lacking[0]!r}")
            result = self.work(rows)
        except (ValueError, TypeError) as error:
            if hasattr(error, "located"):
                raise error.located(where) from None
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{where}: {error}") from error
        return PartialResult({number: rows.count() if self.only is None else -1}, result)


def use_threads(count: int) -> None:
    """Let this process work by so many threads: where others work beside it, all cores for each would be too many."""
    if get_threads() != count:
        set_threads(count)


def in_partition_order(parts: Iterable[PartialResult]) -> list[PartialResult]:
    """Return results in the order of their partitions, or raise if one is there twice."""
    ordered = sorted(parts, key=lambda part: min(part.rows))
    numbers = [number for part in ordered for number in part.rows]
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise RuntimeError(f"expected each partition once, got partition {twice} twice")
    return ordered


def add_results(parts: Iterable[PartialResult], add: Callable[[Any, Any], Any]) -> PartialResult:
    """Add the results of several partitions in their order.

    >>> add_results([PartialResult({1: 5}, "b"), PartialResult({0: 4}, "a")], lambda one, other: one + other)
    PartialResult(rows={0: 4, 1: 5}, result='ab')
    """
    ordered = in_partition_order(parts)
    rows = {number: count for part in ordered for number, count in part.rows.items()}
    return PartialResult(rows, reduce(add, (part.result for part in ordered)))


def with_columns(rows: pa.Table, found: pa.Table) -> pa.Table:
    """Return rows with answers in columns beside them, or in place of those that they are of."""
    for name in found.column_names:
        index = rows.schema.get_field_index(name)
        rows = rows.append_column(name, found[name]) if index < 0 else rows.set_column(index, name, found[name])
    return rows


def answered(rows: pa.Table, answer: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """Return rows with the answers about them."""
    return with_columns(rows, answer(rows))


class Answering(Protocol):
    """A question about rows, as it is sent to the workers."""

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the answers in columns of their own."""

    def asked(self, rows: Any) -> Any:
        """Return the answers as the model gives them."""


class Engine(Source, ABC):
    """Who keeps partitions, and works on them. The types of columns are those that it knows."""

    name: str
    partitions: int
    unit = "passes"

    @abstractmethod
    def run(self, task: Task, add: Callable[[Any, Any], Any] | None) -> list[PartialResult]:
        """Do a task on all partitions that it wants. With ``add``, results of neighbours may come back added."""

    @abstractmethod
    def contents(self) -> Iterator[Any]:
        """Return the content of all partitions in their order, one after another, whole or in parts."""

    def batches(self, *, dictionaries: bool = False) -> Iterator[pa.RecordBatch]:
        """Return all rows, brought here one partition at a time."""
        for content in self.contents():
            yield from open_rows(content).batches(dictionaries=dictionaries)

    @abstractmethod
    def lazily(self, answer: Answering) -> Any:
        """Return a frame of the engine: its columns, and beside them those of answers, found when they are wanted."""


class PartitionedRows(Rows):
    """Rows in the partitions of an engine."""

    def __init__(self, engine: Engine, missing: Collection[str] = ()) -> None:
        super().__init__(engine, missing)
        self.engine = engine
        self._counts: dict[int, int] = {}

    @property
    def partitions(self) -> int:  # type: ignore[override]
        """How many partitions there are."""
        return self.engine.partitions

    def sample(self, rows: int) -> pa.Table:
        """Return up to so many rows: the first of some partitions, or of all if there are none in those."""
        count = self.engine.partitions
        few = {round(i * (count - 1) / (LOOKED_AT - 1)) for i in range(LOOKED_AT)}
        for only in (few, set(range(count)) - few):
            share = -(-rows // max(1, len(only)))
            task = replace(self._task(partial(_sample, wanted=share)), only=frozenset(only))
            parts = [part.result for part in in_partition_order(self.engine.run(task, None)) if part.result.num_rows]
            if parts:
                return concat_tables(parts)
        return self.schema.empty_table()

    def map(self, work: Callable[[Rows], T]) -> list[T]:
        """Return what is made of each partition, in their order."""
        return self._run(work)

    def reduce(self, work: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Return what is made of all partitions, added up in their order."""
        parts: list[T] = self._run(work, add)
        return reduce(add, parts)

    def _task(self, work: Callable[[Rows], Any]) -> Task:
        return Task(work, tuple(self.schema.names), self.missing, version("likely"))

    def _run(self, work: Callable[[Rows], Any], add: Callable[[Any, Any], Any] | None = None) -> list[Any]:
        with progress_bar(self, f"working on {self.engine.partitions} partitions"):
            found = in_partition_order(self.engine.run(self._task(work), add))
        self.engine.done += 1
        rows = {number: count for part in found for number, count in part.rows.items()}
        if lost := set(range(self.engine.partitions)) - rows.keys():
            raise RuntimeError(
                f"expected a result of each of {self.engine.partitions} partitions, got none of {min(lost)}"
            )
        self._check(rows)
        return [part.result for part in found]

    def _check(self, rows: dict[int, int]) -> None:
        """Raise if there are other rows than before: in a partition, or in all if an engine has repartitioned them."""
        before, self._counts = self._counts or rows, rows
        if before.keys() == rows.keys():
            pairs = {f"partition {number}": (before[number], rows[number]) for number in rows}
        else:
            pairs = {"all partitions": (sum(before.values()), sum(rows.values()))}
        for where, (expected, found) in pairs.items():
            if expected != found:
                raise RuntimeError(
                    f"expected the {expected} rows of {where} again, got {found}: the data change while they are read; "
                    "keep them first, such as by persist() or materialize()"
                )


def _sample(rows: Rows, wanted: int) -> pa.Table:
    found = rows.sample(wanted)
    return found.take(np.arange(found.num_rows))  # part of a batch would travel with the whole of it
