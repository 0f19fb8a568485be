"""Rows of tables and the classes that they belong to, batch by batch, as a whole, or a sample of them."""

import operator
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.data.folds import Without
from likely.data.labels import read_assignment, read_labels, read_weights
from likely.data.rows import Rows
from likely.data.schema import Schema, coded_target
from likely.data.table import Room, Table
from likely.engines import Spread, engine_of
from likely.messages import tell
from likely.statistics import Array, Assignment, Labels, distinct, union


def is_typed(data: Any) -> bool:
    """Say whether data are a table whose columns have types: a frame, records, a path; not a matrix of numbers.

    >>> is_typed([{"age": 31}]), is_typed("people.csv"), is_typed([[1.0, 2.0]])
    (True, True, False)
    """
    if engine_of(data) is not None:  # asked first: a frame of Spark Connect has attributes of any name
        return True
    if hasattr(data, "tocsr") or isinstance(data, Table):
        return False
    if isinstance(data, Iterator) or hasattr(data, "collect_schema"):
        return True
    if isinstance(data, str | os.PathLike | Mapping | Rows):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if isinstance(data, list | tuple):
        return len(data) > 0 and isinstance(data[0], str | os.PathLike | Mapping)
    if hasattr(data, "columns") and hasattr(data, "dtypes"):
        # A frame of nothing but floats is a matrix: read where it lies; its names must match, as scikit-learn wants.
        return not all(str(dtype).lower() in ("float64", "float32") for dtype in data.dtypes)
    speaks = ("__arrow_c_stream__", "fetch_arrow_table", "read", "count_rows")
    return any(hasattr(data, name) for name in speaks)


def has_names(data: Any) -> bool:
    """Say whether data are a frame whose columns have names."""
    return hasattr(data, "columns") and hasattr(data, "dtypes") and all(isinstance(c, str) for c in data.columns)


def has_whole_numbers(data: Any) -> bool:
    """Say whether a frame of floats has a column of nothing but whole numbers, which may be missing.

    Its library may have made floats of integers, as pandas does where one is missing: elsewhere they are integers.
    """
    if not has_names(data):
        return False
    columns = list(range(len(data.columns)))
    for rows in (data.head(64), data):  # most are seen not to be by their first cells
        columns = [j for j in columns if _is_whole(rows.iloc[:, j] if hasattr(rows, "iloc") else rows[:, j])]
    return bool(columns)


def _is_whole(column: Any) -> bool:
    import pyarrow as pa

    from likely.data.infer import is_whole

    cells = np.asarray(column, dtype=np.float64)
    return not np.isnan(cells).all() and is_whole(pa.array(cells))


def is_matrix(rows: Rows) -> bool:
    """Say whether rows are blocks of an array: numbers without names, which a model takes as it takes a matrix."""
    return isinstance(rows, Spread) and rows.names is None


def with_weight(rows: Rows, y: Any, sample_weight: Any) -> tuple[Rows, Any, Any]:
    """Return rows in memory, their labels and weights without those of weight 0, unless no other row has the label.

    ``y`` may be the name of a column, or None. What does not fit is left to whoever reads it.

    >>> from likely.data.rows import open_rows
    >>> rows, y, weights = with_weight(open_rows({"x": [1, 2, 3, 4]}), ["a", "a", "b", "b"], [0, 2, 1, 0])
    >>> rows.count(), y, weights.tolist()
    (2, ['a', 'b'], [2, 1])
    """
    weights = np.asarray(sample_weight)
    if sample_weight is None or not rows.held or weights.dtype.kind not in "fiub" or weights.shape != (rows.count(),):
        return rows, y, sample_weight
    counts = weights != 0
    if counts.all() or not counts.any():
        return rows, y, sample_weight
    if y is not None:
        by_name = isinstance(y, str)
        codes = coded_target(together(rows), y)[1] if by_name else read_labels(y, len(counts), partly=True)[1]
        counts |= (codes >= 0) & ~np.isin(codes, codes[counts])
    if isinstance(y, list | tuple):
        y = [label for label, counted in zip(y, counts, strict=True) if counted]
    elif y is not None and not isinstance(y, str):
        y = y[counts] if isinstance(y, np.ndarray) or hasattr(y, "iloc") else np.asarray(y)[counts]
    return rows.filtered(counts), y, weights[counts]


class Labelled(NamedTuple):
    """Some rows and the classes that they belong to; −1 where that is not known."""

    table: Table
    assignment: Assignment

    def known(self) -> "Labelled":
        """Return the rows that have a label."""
        known = self.assignment.codes >= 0
        return self if known.all() else self.taken(known)

    def taken(self, rows: NDArray[Any]) -> "Labelled":
        """Return some of the rows; ``rows``: numbers, or one boolean for each."""
        return Labelled(self.table.taken(rows), self.assignment.taken(rows))


def together(rows: Rows) -> Any:
    """Return all rows as one Arrow table."""
    from likely.data.arrow import joined

    return joined(list(rows.batches()), rows.schema).combine_chunks()


def every_row(
    schema: Schema,
    rows: Rows,
    y: Any,
    sample_weight: Any,
    *,
    note: bool = True,
    partly: bool = True,
    alike: bool = False,
    room: Room | None = None,
) -> Iterator[Labelled]:
    """Return all rows, batch by batch. All must be taken: at the end it is checked how many came.

    ``y`` is a label for each row, or the name of the column that holds it; without ``partly``, none of a list of labels
    may be missing. ``note``: whether to warn of columns that are not there. ``alike``: all rows are of one class.
    With a ``room`` for cells, those of a batch are gone when the next one comes.
    ``sample_weight`` is a weight for each row, or says which fold is held out: then rows in it, and those without a
    label, are left out.
    """
    if alike:
        for table in schema.tables(rows, room):
            yield Labelled(table, Assignment(np.zeros(1, dtype=np.int64), np.zeros(table.rows, dtype=np.int32)))
        return
    given = None if isinstance(y, str) else _labels(y, sample_weight, partly=partly)
    without = sample_weight if isinstance(sample_weight, Without) else None
    weights = _weights(sample_weight) if given is None and without is None else None
    first = 0
    for batch in rows.batches(coded=True):
        part = slice(first, first + batch.num_rows)
        table = schema.table(batch, numbers=range(first, first + batch.num_rows), note=note and first == 0, room=room)
        first += batch.num_rows
        if given is not None:
            _check_length("label", len(given.codes), first, last=False)
            yield Labelled(table, given.taken(part))
            continue
        if weights is not None:
            _check_length("weight", len(weights), first, last=False)
        classes, codes = _target(batch, y)
        found = Labelled(table, Assignment(classes, codes, None if weights is None else weights[part]))
        yield found if without is None else Labelled(*without.rest(*found.known()))
    if given is not None:
        _check_length("label", len(given.codes), first, last=True)
    if weights is not None:
        _check_length("weight", len(weights), first, last=True)


def _target(batch: Any, name: str) -> tuple[Labels, NDArray[np.int32]]:
    """Return the classes in a column, and the place of each row's among them, −1 where it is missing."""
    labels, places = coded_target(batch, name)
    known = _there(labels)
    codes = np.full(len(labels), -1, dtype=np.int32)
    classes, codes[known] = read_labels(_tidy(labels[known]), int(known.sum())) if known.any() else (labels[:0], -1)
    return classes, codes[places]


def labelled(schema: Schema, rows: Rows, y: Any, sample_weight: Any, *, note: bool = True) -> Iterator[Labelled]:
    """Return the rows that have a label, batch by batch; ``note``: whether to warn of others."""
    dropped = total = 0
    for part in every_row(schema, rows, y, sample_weight, note=note, partly=False):
        known = part.known()
        total += part.table.rows
        dropped += part.table.rows - known.table.rows
        if known.table.rows:
            yield known
    if note and dropped < total:
        tell_of_unlabelled(dropped, y)


class Summable(Protocol):
    """What can be added up."""

    def __add__(self, other: Self) -> Self:
        """Return both together."""


S = TypeVar("S", bound=Summable)


class Collected(NamedTuple, Generic[S]):
    """The statistics of rows that have a label (None if there are none), and how many have one, and have none."""

    statistics: S | None
    labelled: int = 0
    unlabelled: int = 0

    def plus(self, other: "Collected[S]") -> "Collected[S]":
        """Return what was collected here and there."""
        there = [part.statistics for part in (self, other) if part.statistics is not None]
        counts = self.labelled + other.labelled, self.unlabelled + other.unlabelled
        return Collected(reduce(operator.add, there) if there else None, *counts)


def collected(
    rows: Rows,
    schema: Schema,
    y: Any,
    sample_weight: Any,
    collect: Callable[[Table, Assignment], S],
    *,
    note: bool = True,
    partly: bool = True,
) -> Collected[S]:
    """Collect the statistics of all rows that have a label, wherever they lie."""
    work = partial(
        _collected, schema=schema, y=y, sample_weight=sample_weight, collect=collect, note=note, partly=partly
    )
    return rows.reduce(work, Collected.plus)


def _collected(
    rows: Rows,
    schema: Schema,
    y: Any,
    sample_weight: Any,
    collect: Callable[[Table, Assignment], S],
    note: bool,
    partly: bool,
) -> Collected[S]:
    found: Collected[S] = Collected(None)
    for part in every_row(schema, rows, y, sample_weight, note=note, partly=partly, room=Room()):
        known = part.known()
        count = known.table.rows
        found = found.plus(Collected(collect(*known) if count else None, count, part.table.rows - count))
    return found


def tell_of_unlabelled(count: int, y: Any = None, why: str = "") -> None:
    """Warn that so many rows are not learned from; ``y`` may be the name of the column of labels."""
    if count:
        tell(f"{count:,} rows without a label{f' in {y!r}' if isinstance(y, str) else ''} are left out{why}")


def labelled_whole(schema: Schema, rows: Rows, y: Any, sample_weight: Any, *, partly: bool = False) -> Labelled:
    """Return all rows at once, or without ``partly`` all that have a label."""
    read = every_row if partly else labelled
    return stacked(list(read(schema, rows, y, sample_weight)))


def stacked(parts: list[Labelled]) -> Labelled:
    """Return rows as one table, in which every category and every class has one number."""
    if not any(len(part.assignment.classes) for part in parts if part.table.rows):
        raise ValueError("expected rows with a label, got none")
    if len(parts) == 1:
        return parts[0]
    tables, assignments = zip(*parts, strict=True)
    names = {
        j: distinct(np.concatenate([table.categories[j] for table in tables if j in table.categories]))
        for j in sorted({j for table in tables for j in table.categories})
    }
    cells = np.concatenate([table.cells for table in tables])
    for j, all_names in names.items():
        places = [np.searchsorted(all_names, table.categories.get(j, all_names[:0])) for table in tables]
        cells[:, j] = np.concatenate([_renumbered(t.cells[:, j], n) for t, n in zip(tables, places, strict=True)])
    classes = reduce(union, [assignment.classes for assignment in assignments if len(assignment.classes)])
    # The place after the last is that of −1.
    moved = (np.append(np.searchsorted(classes, a.classes) if len(a.classes) else (), -1) for a in assignments)
    codes = np.concatenate([p.astype(np.int32)[a.codes] for p, a in zip(moved, assignments, strict=True)])
    weights = None
    if any(a.weights is not None for a in assignments):
        weights = np.concatenate([np.ones(len(a.codes)) if a.weights is None else a.weights for a in assignments])
    numbers = np.concatenate([table.row_numbers for table in tables])
    strings = {j: concatenated([table.strings[j] for table in tables]) for j in tables[0].strings}
    whole = replace(tables[0], cells=cells, categories=names, numbers=numbers, strings=strings)
    return Labelled(whole, Assignment(classes, codes, weights))


def concatenated(arrays: list[Any]) -> Any:
    """Return Arrow arrays as one."""
    import pyarrow as pa

    return pa.concat_arrays(arrays)


def _renumbered(cells: NDArray[Any], numbers: NDArray[np.intp]) -> NDArray[Any]:
    """Return places in one list of names as those in another; missing cells stay."""
    missing = np.isnan(cells)
    places = np.where(missing, len(numbers), cells).astype(np.intp)
    return np.append(numbers.astype(np.float64), np.nan)[places]


def _labels(y: Any, sample_weight: Any, *, partly: bool) -> Assignment:
    """Read a label for each row."""
    if y is None or not hasattr(y, "__len__"):
        raise ValueError(f"expected a label for each row, or the name of a column, got y={y!r}")
    if len(y) == 0:
        raise ValueError("expected rows with a label, got none")
    return read_assignment(y, sample_weight, len(y), partly=partly)


def _weights(sample_weight: Any) -> Array | None:
    if sample_weight is None:
        return None
    if np.ndim(sample_weight) == 0:
        raise ValueError(f"expected a weight for each row, got {sample_weight!r}: one for all changes nothing")
    return read_weights(sample_weight, len(sample_weight))


def _check_length(name: str, given: int, rows: int, *, last: bool) -> None:
    if given < rows or (last and given != rows):
        more = "" if last else " or more"
        raise ValueError(f"expected one {name} for each row, got {given} {name}s for {rows} rows{more}")


def _there(labels: Labels) -> NDArray[np.bool_]:
    if labels.dtype != object:
        return np.full(len(labels), True)
    return np.array([label is not None for label in labels], dtype=bool)


def _tidy(labels: Labels) -> Labels:
    """Return labels among which none is missing any more as an array of their own type."""
    return np.asarray(labels.tolist()) if labels.dtype == object else labels
