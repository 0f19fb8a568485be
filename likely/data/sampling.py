"""Samples of rows of Arrow batches by their content: pseudo-random, but the same whatever order they come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from likely.data.hashing import GOLDEN, Keys, content_keys, mix64
from likely.lazy import pa


def sample_batches(batches: Sequence[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return at most so many rows of some batches, in their order: those of the lowest keys.

    Rows that are equal have keys of their own: the first of them has the same as a row that is alone, the second
    another, and so on. So any row is drawn with the same chance, and which are drawn depends on all rows alone.

    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": list(range(1000)), "b": ["even", "odd"] * 500})
    >>> some = sample_batches([batch], 100)[0]
    >>> backwards = sample_batches([batch.take(pa.array(range(999, -1, -1)))], 100)[0]
    >>> some.num_rows, sorted(backwards.column("a").to_pylist()) == some.column("a").to_pylist()
    (100, True)
    """
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    if starts[-1] <= rows:
        return list(batches)
    keys = _break_ties(np.concatenate([content_keys(batch) for batch in batches]))
    chosen = np.sort(np.argpartition(keys, rows)[:rows])
    bounds = np.searchsorted(chosen, starts)
    parts = zip(batches, starts, bounds[:-1], bounds[1:], strict=False)
    return [batch.take(pa.array(chosen[first:last] - start)) for batch, start, first, last in parts]


def sample_stream(batches: Iterable[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    """Return at most so many rows of batches that are read once, each row with the same chance, in their order.

    A hash of its number decides whether a row is drawn: of content, all rows would have to be remembered to
    distinguish equal ones.

    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"a": list(range(first, first + 100))}) for first in range(0, 1000, 100)]
    >>> some = sample_stream(batches, 50)
    >>> sum(batch.num_rows for batch in some), len(some)
    (50, 10)
    """
    kept: list[tuple[Keys, pa.RecordBatch]] = []
    highest, count, seen = np.uint64(2**64 - 1), 0, 0
    for batch in batches:
        keys = mix64(np.arange(seen, seen + batch.num_rows, dtype=np.uint64) * GOLDEN)
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


def _break_ties(keys: Keys) -> Keys:
    """Return keys of which equal ones are changed, each in another way."""
    ordered = np.sort(keys)
    new = np.append(True, ordered[1:] != ordered[:-1])
    if new.all():
        return keys
    order, starts = np.argsort(keys), np.flatnonzero(new)
    copy = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    changed = keys.copy()
    changed[order] = np.where(copy == 0, ordered, mix64(ordered + copy.astype(np.uint64) * GOLDEN))
    return changed
