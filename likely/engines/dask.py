"""Partitions of a Dask DataFrame and blocks of a Dask Array, worked on by whichever scheduler Dask is set to use."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely.data.arrow import LABELS, UNNAMED, from_values, is_named
from likely.data.files import parquet_chunks
from likely.data.partitions import FAN_IN, Answering, Engine, PartialResult, Task, add_results, use_threads
from likely.data.rows import Rows, open_rows
from likely.data.table import SparseRows, read_table


class DaskEngine(Engine):
    """Partitions that Dask makes when they are wanted."""

    name = "Dask"
    collection: Any
    parts: list[Any]
    """for each partition, rows, a delayed frame, or what makes a table"""

    @property
    def sizes(self) -> tuple[float, ...]:
        """How many rows each partition has; NaN if nobody knows."""
        return (np.nan,) * self.partitions

    def run(self, task: Task, add: Callable[[Any, Any], Any] | None) -> list[PartialResult]:
        """Do a task on all partitions; results are added on the workers, some neighbours at a time."""
        import dask

        do, sent = dask.delayed(_done, pure=False, traverse=False), dask.delayed(task, pure=False, traverse=False)
        level = [do(sent, number, part) for number, part in enumerate(self.parts) if task.wants(number)]
        if add is not None:
            join = dask.delayed(add_results, pure=False)
            while len(level) > 1:
                level = [join(level[i : i + FAN_IN], add) for i in range(0, len(level), FAN_IN)]
        return list(dask.compute(*level))

    def contents(self) -> Iterator[Any]:
        """Return the content of all partitions, made one after another."""
        for part in self.parts:
            content = part if isinstance(part, Rows) else part.compute()
            yield content() if callable(content) else content

    @property
    def partitions(self) -> int:  # type: ignore[override]
        """How many partitions there are."""
        return len(self.parts)


class DaskFrame(DaskEngine):
    """A Dask DataFrame.

    One that is nothing but a reading of Parquet files is read by the workers as Arrow, chunk by chunk: no frames of
    pandas are made of it.
    """

    def __init__(self, frame: Any, *, as_cut: bool = False) -> None:
        self.collection, self._as_cut = frame, as_cut

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns, as Dask expects them."""
        return open_rows(self.collection._meta).schema

    @cached_property
    def parts(self) -> list[Any]:  # type: ignore[override]
        """The content of the partitions: rows to be read, or delayed frames."""
        if self._as_cut:  # by plans that are made better, Dask may read several files at once
            return list(self.collection.to_delayed(optimize_graph=False))
        files = parquet_files(self.collection)
        return [Rows(part) for part in parquet_chunks(files, self.schema.names)] or list(self.collection.to_delayed())

    def lazily(self, answer: Answering) -> Any:
        """Return a Dask DataFrame with the same partitions and index."""
        frame = self.collection
        return frame.map_partitions(_answered, answer, meta=_answered(frame._meta, answer))


class DaskArray(DaskEngine):
    """A Dask Array of rows and columns of numbers. Blocks of rows are whole, so columns are rechunked first."""

    def __init__(self, array: Any) -> None:
        if np.isnan(array.shape[1]):
            raise ValueError("expected a Dask Array with a known number of columns, got an unknown one: use rechunk")
        self.collection = array if array.numblocks[1] == 1 else array.rechunk({1: -1})

    @property
    def sizes(self) -> tuple[float, ...]:
        """How many rows each block has; NaN if nobody knows."""
        return tuple(self.collection.chunks[0])

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        return _as_table(np.empty((0, self.collection.shape[1]), dtype=self.collection.dtype)).schema

    @cached_property
    def parts(self) -> list[Any]:  # type: ignore[override]
        """What makes a table of each block."""
        import dask

        make = dask.delayed(partial, pure=True)
        return [make(_as_table, block) for block in self.collection.to_delayed().ravel()]

    def lazily(self, answer: Answering) -> Any:
        """Return a Dask Array of the answers about each row."""
        array = self.collection
        like = answer.asked(np.ones((1, array.shape[1]), dtype=array.dtype))[:0]
        how = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (array.chunks[0], (like.shape[1],))}
        return array.map_blocks(_asked, answer=answer, like=like, dtype=like.dtype, meta=like, **how)


class DaskLabelled(DaskEngine):
    """Rows in partitions, and in as many others their labels, which become one more column of this name."""

    def __init__(self, rows: DaskEngine, labels: Any, name: str) -> None:
        self.rows, self.labels, self.label = rows, labels, name

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        return _with_labels(self.rows.schema.empty_table(), self.labels._meta[:0], self.label).schema

    @cached_property
    def parts(self) -> list[Any]:  # type: ignore[override]
        """What makes a table with labels of each pair."""
        import dask

        make = dask.delayed(partial, pure=True)
        pairs = zip(self.rows.parts, self.labels.to_delayed(optimize_graph=False), strict=True)
        return [make(_with_labels, content, labels, self.label) for content, labels in pairs]

    def lazily(self, answer: Answering) -> Any:
        """Return the answers about the rows."""
        return self.rows.lazily(answer)


def paired(rows: Any, y: Any) -> tuple[DaskLabelled, str]:
    """Return rows with labels beside them, and the name of the column of labels; or raise if they do not pair up."""
    if isinstance(rows, DaskFrame):
        rows = DaskFrame(rows.collection, as_cut=True)
    if type(y).__module__.startswith("dask.dataframe"):
        blocks = (np.nan,) * y.npartitions
    else:
        y = _in_blocks(y, rows)
        blocks = y.chunks[0]
        if y.ndim == 1 and not np.isnan([*blocks, *rows.sizes]).any():
            if sum(blocks) != sum(rows.sizes):
                raise ValueError(f"expected one label for each of {sum(rows.sizes)} rows, got {sum(blocks)} labels")
            y, blocks = y.rechunk((rows.sizes,)), rows.sizes
    if y.ndim != 1:
        raise ValueError(f"expected one label for each row, got {y.ndim} dimensions of labels: give one column")
    if len(blocks) != rows.partitions:
        raise ValueError(
            f"expected labels in as many partitions as rows, got {len(blocks)} and {rows.partitions}: cut both alike, "
            "or give labels as a column"
        )
    name = "y"
    while name in rows.schema.names:
        name += "_"
    return DaskLabelled(rows, y, name), name


def _in_blocks(y: Any, rows: DaskEngine) -> Any:
    """Return labels as a Dask Array; those in memory are cut as the rows are."""
    import dask.array

    if not isinstance(y, dask.array.Array):
        if np.isnan(rows.sizes).any():
            raise ValueError(
                f"expected labels in partitions beside rows in partitions of unknown sizes, got {type(y).__name__}: "
                "give the name of their column, a Dask Series or a Dask Array"
            )
        y = np.asarray(y)
        y = dask.array.from_array(y, chunks=(rows.sizes,) if len(y) == sum(rows.sizes) else -1)
    return y


def _done(task: Task, number: int, content: Any) -> PartialResult:
    """Do a task; a worker in a process of its own runs as many at once as it has threads."""
    try:
        from distributed import get_worker

        alone = get_worker().nanny is not None
    except (ImportError, ValueError):
        alone = False
    if alone:
        use_threads(1)
    return task(number, content)


def _as_table(block: Any) -> pa.Table:
    """Return a block of numbers as columns without names. As in a matrix, whole numbers are numbers."""
    cells = read_table(block).cells
    if isinstance(cells, SparseRows):
        raise TypeError("expected dense blocks, got sparse ones: call .map_blocks(lambda block: block.toarray())")
    cells = cells if cells.dtype.kind in "fb" else cells.astype(np.float64)
    columns = [pa.array(np.ascontiguousarray(cells[:, j])) for j in range(cells.shape[1])]
    return pa.table(columns, [str(j) for j in range(len(columns))]).replace_schema_metadata(UNNAMED)


def _with_labels(content: Any, labels: Any, name: str) -> pa.Table:
    """Return rows with one more column of labels."""
    rows = open_rows(content() if callable(content) else content)
    table = pa.Table.from_batches(rows.batches(), rows.schema)
    if len(labels) != table.num_rows:
        raise ValueError(f"expected one label for each row, got {len(labels)} labels for {table.num_rows} rows")
    column = from_values(labels, "the labels")
    known = {} if is_named(rows.schema) else {**UNNAMED, LABELS: name.encode()}
    return table.append_column(name, column).replace_schema_metadata(known)


def _asked(block: NDArray[Any], answer: Answering, like: NDArray[Any]) -> NDArray[Any]:
    return answer.asked(block).astype(like.dtype, copy=False) if len(block) else like


def parquet_files(frame: Any) -> list[str]:
    """Return the Parquet files in a file system of this machine that a frame is nothing but a reading of.

    There are none if it is more, or other, than that, or if Dask does not tell.
    """
    try:
        plan = frame.expr.simplify()
        plan = plan.frame if type(plan).__name__ == "Projection" else plan
        if not type(plan).__name__.startswith("ReadParquet"):
            return []
        known = plan.operand("_dataset_info_cache")
        plainly_read = (
            not any(plan.operand(name) for name in ("filters", "categories", "index", "storage_options"))
            and plan.operand("_partitions") is None
            and not known["partitions"]
            and type(known["fs"]).__name__ == "LocalFileSystem"
            and not any(plan.operand("kwargs").values())
        )
        return [str(path) for path in known["ds"].files] if plainly_read else []
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def _answered(frame: Any, answer: Callable[[pa.Table], pa.Table]) -> Any:
    found = answer(pa.Table.from_pandas(frame, preserve_index=False)).to_pandas()
    found.index = frame.index
    return frame.assign(**{name: found[name] for name in found.columns})
