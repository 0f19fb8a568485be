"""Rows of tables and the classes that they belong to, batch by batch, as a whole, or a sample of them."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.reading import Rows
from likely.schema import Schema, read_target
from likely.statistics import Array, Assignment, Labels
from likely.table import Table, read_assignment, read_labels, read_weights
from likely.telling import tell


def is_typed(data: Any) -> bool:
    """Say whether data are a table whose columns have types: a frame, records, a path; not a matrix of numbers.

    >>> is_typed([{"age": 31}]), is_typed("people.csv"), is_typed([[1.0, 2.0]])
    (True, True, False)
    """
    if hasattr(data, "tocsr") or isinstance(data, Table):
        return False
    if isinstance(data, str | os.PathLike | Mapping | Rows):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if isinstance(data, list | tuple):
        return len(data) > 0 and isinstance(data[0], str | os.PathLike | Mapping)
    if hasattr(data, "columns") and hasattr(data, "dtypes"):
        # A frame of nothing but floats is a matrix: read where it lies; its names must match, as scikit-learn wants.
        return not all(str(dtype).lower() in ("float64", "float32") for dtype in data.dtypes)
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "fetch_arrow_table") or hasattr(data, "read")


class Labelled(NamedTuple):
    """Some rows and the classes that they belong to."""

    table: Table
    assignment: Assignment


def together(rows: Rows) -> Any:
    """Return all rows as one Arrow table."""
    import pyarrow as pa

    batches = list(rows.batches())
    return pa.Table.from_batches(batches, batches[0].schema if batches else rows.schema).combine_chunks()


def labelled(schema: Schema, rows: Rows, y: Any, sample_weight: Any) -> Iterator[Labelled]:
    """Return the rows that have a label, batch by batch. All must be taken: at the end it is checked how many came.

    ``y`` is a label for each row, or the name of the column that holds it.
    """
    yield from _labelled(schema, rows.batches(), y, sample_weight)


def labelled_whole(schema: Schema, rows: Rows, y: Any, sample_weight: Any, places: Any = None) -> Labelled:
    """Return all rows that have a label at once; ``places``: where they were in a larger table, for messages."""
    found = list(_labelled(schema, iter([together(rows)]), y, sample_weight, places))
    if not found or found[0].table.rows == 0:
        raise ValueError("expected rows with a label, got none")
    return found[0]


def _labelled(
    schema: Schema, batches: Iterator[Any], y: Any, sample_weight: Any, places: Any = None
) -> Iterator[Labelled]:
    given = None if isinstance(y, str) else _labels(y, sample_weight)
    weights = _weights(sample_weight) if given is None else None
    first = dropped = 0
    for batch in batches:
        part = slice(first, first + batch.num_rows)
        numbers = range(first, first + batch.num_rows) if places is None else places[part]
        table = schema.table(batch, numbers=numbers, note=first == 0)
        first += batch.num_rows
        if given is not None:
            _check_length("label", len(given.codes), first, last=False)
            yield Labelled(table, given.taken(part))
            continue
        if weights is not None:
            _check_length("weight", len(weights), first, last=False)
        labels = read_target(batch, y)
        kept = _there(labels)
        dropped += len(labels) - int(kept.sum())
        if kept.any():
            classes, codes = read_labels(_tidy(labels[kept]), int(kept.sum()))
            own = None if weights is None else weights[part][kept]
            yield Labelled(table if kept.all() else table.taken(kept), Assignment(classes, codes, own))
    if given is not None:
        _check_length("label", len(given.codes), first, last=True)
    if weights is not None:
        _check_length("weight", len(weights), first, last=True)
    if 0 < dropped < first:
        tell(f"{dropped:,} rows without a label in {y!r} are left out")


def sampled(schema: Schema, rows: Rows, y: Any, sample_weight: Any, most: int, seed: int) -> Labelled | None:
    """Return rows from all over a table that has more than so many with a label and a weight; None if it has not."""
    import pyarrow as pa

    given = None if isinstance(y, str) else _labels(y, None)
    weights = _weights(sample_weight)
    generator = np.random.default_rng(seed)
    kept: Any = None
    keys, numbers = np.empty(0), np.empty(0, dtype=np.int64)
    seen = first = 0
    for batch in rows.batches():
        counted = _there(read_target(batch, y)) if given is None else np.full(batch.num_rows, True)
        if weights is not None:
            _check_length("weight", len(weights), first + batch.num_rows, last=False)
            counted &= weights[first : first + batch.num_rows] > 0
        own = np.flatnonzero(counted)
        drawn = generator.random(len(own))
        seen += len(own)
        if len(keys) == most:  # others would not be kept
            own, drawn = own[drawn < keys.max()], drawn[drawn < keys.max()]
        more = pa.Table.from_batches([batch]).take(own)
        keys = np.concatenate([keys, drawn])
        numbers = np.concatenate([numbers, first + own])
        first += batch.num_rows
        kept = more if kept is None else pa.concat_tables([kept, more])
        if len(keys) > most:
            chosen = np.sort(np.argpartition(keys, most)[:most])
            keys, numbers, kept = keys[chosen], numbers[chosen], kept.take(chosen)
    if seen <= most:
        return None
    if given is not None:
        _check_length("label", len(given.codes), first, last=True)
        y = given.classes[given.codes[numbers]]
    return labelled_whole(schema, Rows.of(kept), y, None if weights is None else weights[numbers], numbers)


def _labels(y: Any, sample_weight: Any) -> Assignment:
    """Read a label for each row."""
    if y is None or not hasattr(y, "__len__"):
        raise ValueError(f"expected a label for each row, or the name of a column, got y={y!r}")
    if len(y) == 0:
        raise ValueError("expected rows with a label, got none")
    return read_assignment(y, sample_weight, len(y))


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
