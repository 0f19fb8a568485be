"""Rows drawn by their content: pseudo-random, but the same whatever order they come in, and whatever holds them."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely import native
from likely.data.arrow import is_text
from likely.data.hashing import GOLDEN, Keys, mixed
from likely.text.documents import buffers


def drawn(batches: Sequence[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return at most so many rows of some batches, in their order: those of the lowest keys.

    Rows that are equal have keys of their own: the first of them has the same as a row that is alone, the second
    another, and so on. So any row is drawn with the same chance, and which are drawn depends on all rows alone.

    >>> batch = pa.record_batch({"a": list(range(1000)), "b": ["even", "odd"] * 500})
    >>> some = drawn([batch], 100)[0]
    >>> backwards = drawn([batch.take(pa.array(range(999, -1, -1)))], 100)[0]
    >>> some.num_rows, sorted(backwards.column("a").to_pylist()) == some.column("a").to_pylist()
    (100, True)
    """
    total = sum(batch.num_rows for batch in batches)
    if total <= rows:
        return list(batches)
    keys = _told_apart(np.concatenate([content_keys(batch) for batch in batches]))
    chosen = np.sort(np.argpartition(keys, rows)[:rows])
    bounds = np.searchsorted(chosen, np.cumsum([0, *(batch.num_rows for batch in batches)]))
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    parts = zip(batches, starts, bounds[:-1], bounds[1:], strict=False)
    return [batch.take(pa.array(chosen[first:last] - start)) for batch, start, first, last in parts]


def drawn_as_they_come(batches: Iterable[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return at most so many rows of batches that are read once, each row with the same chance, in their order.

    A hash of its number decides whether a row is drawn: of content, all rows would have to be remembered to tell equal
    ones apart.

    >>> batches = [pa.record_batch({"a": list(range(first, first + 100))}) for first in range(0, 1000, 100)]
    >>> some = drawn_as_they_come(batches, 50)
    >>> sum(batch.num_rows for batch in some), len(some)
    (50, 10)
    """
    kept: list[tuple[Keys, pa.RecordBatch]] = []
    highest, count, seen = np.uint64(2**64 - 1), 0, 0
    for batch in batches:
        keys = mixed(np.arange(seen, seen + batch.num_rows, dtype=np.uint64) * GOLDEN)
        seen += batch.num_rows
        low = np.flatnonzero(keys <= highest)
        if not len(low):
            continue
        kept.append((keys[low], batch if len(low) == batch.num_rows else batch.take(pa.array(low))))
        count += len(low)
        if count > 2 * rows:
            highest, kept = _lowest(kept, rows)
            count = rows
    return [batch for _, batch in (_lowest(kept, rows)[1] if count > rows else kept)]


def _lowest(kept: list[tuple[Keys, pa.RecordBatch]], rows: int) -> tuple[np.uint64, list[tuple[Keys, pa.RecordBatch]]]:
    """Return the rows of the lowest keys, which all differ, and the highest of these keys."""
    highest = np.partition(np.concatenate([keys for keys, _ in kept]), rows - 1)[rows - 1]
    chosen = ((keys <= highest, keys, batch) for keys, batch in kept)
    return highest, [(keys[low], batch.filter(pa.array(low))) for low, keys, batch in chosen if low.any()]


def content_keys(batch: pa.RecordBatch) -> Keys:
    """Return a hash of every row's cells: the same of integers and floats, and wherever a column stands."""
    keys = np.zeros(batch.num_rows, dtype=np.uint64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        seed = np.frombuffer(blake2b(name.encode(), digest_size=8).digest(), dtype="<u8").astype(np.uint64)
        text = _text_keys(column)
        if text is not None:
            keys += mixed(text + seed[0]) * (seed[0] | np.uint64(1))
        elif (numbers := _numbers(column)) is not None:
            native.add_row_keys(numbers[:, None], None, seed, keys)
    return mixed(keys)


def _text_keys(column: Any) -> Keys | None:
    if pa.types.is_dictionary(column.type):
        names = _text_keys(column.dictionary)
        if names is None:
            return None
        places = column.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(names, GOLDEN)[places])
    if not is_text(column.type):
        return None
    keys = np.array(native.hash_texts(buffers(column)))
    if column.null_count:
        keys[column.is_null().to_numpy(zero_copy_only=False)] = GOLDEN
    return keys


def _numbers(column: Any) -> NDArray[Any] | None:
    """Return a column as floats, NaN where a cell is missing; None if it is of lists, or nothing."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _told_apart(keys: Keys) -> Keys:
    """Return keys of which equal ones are changed, each in another way."""
    ordered = np.sort(keys)
    new = np.append(True, ordered[1:] != ordered[:-1])
    if new.all():
        return keys
    order, starts = np.argsort(keys), np.flatnonzero(new)
    place = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    changed = keys.copy()
    changed[order] = np.where(place == 0, ordered, mixed(ordered + place.astype(np.uint64) * GOLDEN))
    return changed
