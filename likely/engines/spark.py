"""Partitions of a Spark DataFrame, classic or of Spark Connect: batches of Arrow stream past the work on executors."""

import os
import pickle
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from operator import itemgetter
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa

from likely.data.arrow import is_text
from likely.data.files import ParquetChunk, parquet_chunks
from likely.data.partitions import (
    FAN_IN,
    LOOKED_AT,
    Answering,
    Engine,
    PartialResult,
    Task,
    add_results,
    answered,
    use_threads,
    with_columns,
)
from likely.data.rows import Rows, open_rows
from likely.data.sources import SinglePassSource

_SENT = pa.schema([("number", pa.int64()), ("content", pa.binary())])
_SENT_IN_SPARK = "number long, content binary"

MANY = 64
"""Results of more partitions are added by executors, which takes a stage of its own."""

Batches = Iterator[pa.RecordBatch]

TASKS, CHUNKS = 2, 8
"""Every core gets so many tasks, unless they would be of more chunks than that: to begin one takes 80 ms."""


class SparkFrame(Engine):
    """A Spark DataFrame. Its partitions are those that answered last: Spark may repartition the rows for every pass.

    One that is nothing but a reading of Parquet files is read by the executors themselves, chunk by chunk: rows
    that Spark reads and hands over take several times as long.
    """

    name = "Spark"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @cached_property
    def partitions(self) -> int:  # type: ignore[override]
        """How many partitions have rows, until a task has run on all of them."""
        if self._chunks:
            return len(self._chunks)
        from pyspark.sql.functions import spark_partition_id

        return max(1, int(self._frame.select(spark_partition_id().alias("number")).distinct().count()))

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns, as Spark writes them to Arrow."""
        return open_rows(self._empty).schema

    @cached_property
    def _empty(self) -> pa.Table:
        return self._frame.limit(0).toArrow()

    @cached_property
    def _chunks(self) -> list[ParquetChunk]:
        parts = parquet_chunks(parquet_files(self._frame), self.schema.names)
        return parts if parts and _kinds_of(parts[0].schema) == _kinds_of(self.schema) else []

    def run(self, task: Task, add: Callable[[Any, Any], Any] | None) -> list[PartialResult]:
        """Do a task on all partitions; results of neighbours are added by executors where there are many."""
        if self._chunks and task.only is not None and len(task.only) <= LOOKED_AT:
            # A few rows are read here before executors have started.
            return [task(number, Rows(self._chunks[number])) for number in sorted(task.only)]
        found = self._made(task)
        if add is not None and self.partitions > MANY:
            from pyspark.sql.functions import col, floor

            groups = -(-self.partitions // FAN_IN)
            found = found.repartition(groups, floor(col("number") / FAN_IN))
            found = found.mapInArrow(partial(_joined, add, FAN_IN), _SENT_IN_SPARK)
        made = [_received(row["content"]) for row in found.collect()]
        if task.only is None:
            if not made:  # Spark may find out that there are no rows, and so no partitions
                made = [task(0, self._empty)]
            self.__dict__["partitions"] = sum(len(part.rows) for part in made)
        return made

    def _made(self, task: Task) -> Any:
        """Return a DataFrame of what a task makes of each partition."""
        if not self._chunks:
            return self._frame.mapInArrow(partial(_worked, task, self._empty.schema), _SENT_IN_SPARK)
        parts = [(number, part) for number, part in enumerate(self._chunks) if task.wants(number)]
        session = self._frame.sparkSession
        tasks = _tasks(len(parts), session.sparkContext.defaultParallelism)
        return session.range(0, len(parts), 1, tasks).mapInArrow(partial(_read, task, parts), _SENT_IN_SPARK)

    def contents(self) -> Iterator[Any]:
        """Return all rows in one pass, some thousand at a time."""
        if self._chunks:
            return map(Rows, self._chunks)
        packed = self._frame.mapInArrow(_packed, _SENT_IN_SPARK)
        return map(self._unpacked, packed.toLocalIterator())

    def _unpacked(self, row: Any) -> pa.Table:
        return pa.ipc.open_stream(row["content"]).read_all().cast(self._empty.schema)

    def lazily(self, answer: Answering) -> Any:
        """Return a DataFrame of Spark, whose rows are answered as they pass by."""
        kinds = _kinds(self._empty.schema, answer)
        types = self._frame.sparkSession.createDataFrame(_unknown(kinds)).schema
        for field in types.fields:  # columns that stay are of the types that they have in Spark
            own = self._empty.schema.get_field_index(field.name)
            if own >= 0 and kinds.field(field.name).type == self._empty.schema.types[own]:
                field.dataType = self._frame.schema[field.name].dataType
        return self._frame.mapInArrow(partial(_answered, answer, self._empty.schema, kinds), types)


def parquet_files(frame: Any) -> list[str]:
    """Return the Parquet files in a file system of this machine that a DataFrame is nothing but a reading of.

    There are none if it is more, or other, than that, or if the plan of Spark cannot be seen, as through Spark Connect.
    """
    try:
        plan = frame._jdf.queryExecution().optimizedPlan()
        kind = _class_of(plan)
        if kind == "Project" and all(_class_of(one) == "AttributeReference" for one in _each(plan.projectList())):
            plan = plan.child()
            kind = _class_of(plan)
        kept = frame.storageLevel.useMemory or frame.storageLevel.useDisk
        if kept or kind != "LogicalRelation" or _class_of(plan.relation()) != "HadoopFsRelation":
            return []
        relation = plan.relation()
        plainly_read = (
            _class_of(relation.fileFormat()) == "ParquetFileFormat"
            and _class_of(relation.location()) == "InMemoryFileIndex"
            and relation.partitionSchema().isEmpty()
            and {str(name) for name in _each(relation.options().keys().toSeq())} <= {"path"}
        )
        roots = sorted(str(root) + "/" for root in _each(relation.location().rootPaths()))
        once = not any(later.startswith(root) for root, later in pairwise(roots))  # else some files are read twice
        files = frame.inputFiles() if plainly_read and once else []
    except (AttributeError, TypeError):
        return []
    paths = [url2pathname(urlsplit(file).path) for file in files if file.startswith("file:")]
    return paths if len(paths) == len(files) and all(map(os.path.isfile, paths)) else []


def _tasks(parts: int, cores: int) -> int:
    """Return among how many tasks chunks are shared.

    >>> _tasks(24, 2), _tasks(3, 2), _tasks(800, 2)
    (4, 3, 100)
    """
    return max(1, min(parts, TASKS * cores), -(-parts // CHUNKS))


def _kinds_of(schema: pa.Schema) -> list[pa.DataType]:
    """Return the types of columns, in which text is of one type."""
    return [pa.string() if is_text(kind) else kind for kind in schema.types]


def _class_of(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.length())]


def _number() -> int:
    """Return the number of the partition that is worked on here, by as many threads as Spark has counted on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "expected to be on an executor"
    use_threads(context.cpus())
    return int(context.partitionId())


def _sent(number: int, content: bytes) -> pa.RecordBatch:
    return pa.record_batch([[number], [content]], schema=_SENT)


def _tried(work: Callable[..., PartialResult], *given: Any) -> bytes:
    """Return what was made, or what went wrong, in bytes: raised on an executor, a sentence would be lost in others."""
    try:
        return pickle.dumps(work(*given))
    except (ValueError, TypeError, RuntimeError) as error:
        return pickle.dumps(type(error)(str(error)))


def _received(content: bytes) -> PartialResult:
    found = pickle.loads(content)
    if isinstance(found, Exception):
        raise found
    return found  # type: ignore[no-any-return]


def _read(task: Task, parts: list[tuple[int, ParquetChunk]], batches: Batches) -> Batches:
    _number()
    for index in (index for batch in batches for index in batch.column(0).to_pylist()):
        number, part = parts[index]
        yield _sent(number, _tried(task, number, Rows(part)))


def _worked(task: Task, schema: pa.Schema, batches: Batches) -> Batches:
    number = _number()
    if task.wants(number):
        rows = Rows(SinglePassSource(schema, (batch.cast(schema) for batch in batches)))
        yield _sent(number, _tried(task, number, rows))


def _joined(add: Callable[[Any, Any], Any], most: int, batches: Batches) -> Batches:
    groups: dict[int, list[bytes]] = {}
    for row in sorted((row for batch in batches for row in batch.to_pylist()), key=itemgetter("number")):
        groups.setdefault(row["number"] // most, []).append(row["content"])
    for group, contents in groups.items():
        yield _sent(group, _tried(add_results, map(_received, contents), add))


def _packed(batches: Batches) -> Batches:
    number = _number()
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield _sent(number, sink.getvalue().to_pybytes())


def _unknown(schema: pa.Schema) -> pa.Table:
    """Return one row of which nothing is known."""
    return pa.table([pa.nulls(1, kind) for kind in schema.types], schema.names)


def _kinds(schema: pa.Schema, answer: Callable[[pa.Table], pa.Table]) -> pa.Schema:
    """Return the types of rows with their answers. Integers whose missing cells are filled by means are floats."""
    unknown = _unknown(schema)
    found = answer(unknown)
    kinds = with_columns(unknown, found).schema
    if found.column_names != schema.names:
        return kinds
    for index, (name, kind) in enumerate(zip(kinds.names, kinds.types, strict=True)):
        whole = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        if whole and not found[name].null_count:
            kinds = kinds.set(index, pa.field(name, pa.float64()))
    return kinds


def _answered(answer: Callable[[pa.Table], pa.Table], schema: pa.Schema, kinds: pa.Schema, batches: Batches) -> Batches:
    _number()
    for batch in batches:
        rows = pa.Table.from_batches([batch.cast(schema)])
        yield from answered(rows, answer).cast(kinds).combine_chunks().to_batches()
