"""Hashes of rows by their content, the same on every machine; and samples, for which a hash decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.arrow import as_floats, is_text
from likely.data.table import Block, SparseRows, Table
from likely.lazy import pa
from likely.statistics import Array, Assignment

Keys = NDArray[np.uint64]

GOLDEN, FIRST = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""The golden ratio, by which splitmix64 counts, and its first multiplier, as the core has them."""
_SECOND = np.uint64(0x94D049BB133111EB)
# So many rows are hashed at a time, so that their cells are read while they are near.
_TILE = 1 << 14


def mix64(keys: Any) -> Keys:
    """Return keys of which each bit depends on all bits of those given, by the end of splitmix64.

    >>> mix64(np.arange(1, 3, dtype=np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    keys = (keys ^ (keys >> np.uint64(30))) * FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def text_keys(texts: Iterable[Any]) -> Keys:
    """Return 64 bits of a hash of each text: the same on every machine."""
    encoded = (text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass") for text in texts)
    hashed = b"".join(blake2b(text, digest_size=8).digest() for text in encoded)
    return np.frombuffer(hashed, dtype="<u8").astype(np.uint64)


def _hashed(texts: Any) -> Keys:
    from likely.text.documents import buffers

    return np.array(native.hash_texts(buffers(texts)))


def _is_null(column: Any) -> NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def string_hashes(texts: Any) -> NDArray[np.intp]:
    """Return a number of each text of an Arrow array that depends on nothing but the text; −1 where it is missing."""
    keys = (_hashed(texts) >> np.uint64(1)).astype(np.intp)
    if texts.null_count:
        keys[_is_null(texts)] = -1
    return keys


def row_keys(table: Table, assignment: Assignment, seed: Any) -> Keys:
    """Return a hash of every row and its class, which depends on nothing else but the seed.

    >>> rows = Assignment(np.array(["a"]), np.zeros(3, dtype=np.int32))
    >>> keys = row_keys(Table(np.array([[5.0], [7.0], [5.0]])), rows, 0)
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    labels = text_keys([*assignment.classes.tolist(), ""])  # the last is that of rows without a class
    if isinstance(table.cells, SparseRows):
        return combined_keys([_sparse_keys(table.cells), labels[assignment.codes]], random_keys(seed, 2))
    return _dense_keys(table, labels[assignment.codes], seed)


def _dense_keys(table: Table, labels: Keys, seed: Any) -> Keys:
    width = table.columns.width
    seeds = random_keys(seed, width + 1)
    names = {j: text_keys(texts.tolist()) for j, texts in table.categories.items()}
    named = sorted({*names, *table.strings})
    numbers = [j for j in range(width) if j not in named]
    keys = np.zeros(table.rows, dtype=np.uint64)
    native.add_row_keys(Block(table, None).dense(), numbers, seeds[numbers], keys)
    for first in range(0, table.rows, _TILE):
        rows = slice(first, first + _TILE)
        tile = table.between(first, first + _TILE)
        codes = Block(tile, named).values()
        cells = (
            string_hashes(tile.strings[j]) if j in tile.strings else _cell_keys(codes[:, k], names[j])
            for k, j in enumerate(named)
        )
        keys[rows] = combined_keys([*cells, labels[rows]], seeds[[*named, width]], keys[rows])
    return keys


def _sparse_keys(cells: SparseRows) -> Keys:
    """Return a key of every row of a sparse matrix, whatever the order of its cells; one of 0 says nothing."""
    values = _cell_keys(cells.values.astype(np.float64), None)
    keys = mix64(mix64(cells.indices.astype(np.uint64) * GOLDEN + GOLDEN) + values)
    keys[values == 0] = 0
    # Differences of sums that are taken modulo 2⁶⁴ are exact.
    before = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(keys, dtype=np.uint64)])
    return np.diff(before[cells.starts])


def random_keys(seed: Any, number: int) -> Keys:
    """Return as many random keys; they are the same on every machine."""
    # By a hash of what the seed looks like: NumPy's own generators would have to be imported first.
    return mix64(text_keys([seed]) + GOLDEN * np.arange(1, number + 1, dtype=np.uint64))


def combined_keys(columns: Iterable[NDArray[Any]], seeds: Keys, total: Any = 0) -> Keys:
    """Return a hash of every row: of 64 bits, so that different rows with the same one need not be thought of.

    ``total``: what other columns add, as the core has it.
    """
    for column, seed in zip(columns, seeds, strict=True):
        keys = column.astype(np.uint64)
        keys += seed
        keys *= FIRST
        keys ^= keys >> np.uint64(32)
        keys *= seed | np.uint64(1)
        keys += total
        total = keys
    return mix64(total)


def _cell_keys(cells: Array, names: Keys | None) -> Keys:
    cells = cells + 0.0  # −0 is 0, and a column of a matrix is contiguous
    missing = np.isnan(cells)
    if names is not None:
        return np.asarray(np.append(names, GOLDEN)[np.where(missing, len(names), cells).astype(np.intp)])
    keys = cells.view(np.uint64)
    keys[missing] = GOLDEN
    return keys


def content_keys(batch: pa.RecordBatch) -> Keys:
    """Return a hash of every row's cells: the same of integers and floats, and wherever a column stands."""
    keys = np.zeros(batch.num_rows, dtype=np.uint64)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        seed = text_keys([name])
        text = _text_keys(column)
        if text is not None:
            keys += mix64(text + seed[0]) * (seed[0] | np.uint64(1))
        elif (numbers := _numbers(column)) is not None:
            native.add_row_keys(numbers[:, None], None, seed, keys)
    return mix64(keys)


def _text_keys(column: Any) -> Keys | None:

    if pa.types.is_dictionary(column.type):
        names = _text_keys(column.dictionary)
        if names is None:
            return None
        codes = column.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(names, GOLDEN)[codes])
    if not is_text(column.type):
        return None
    keys = _hashed(column)
    if column.null_count:
        keys[_is_null(column)] = GOLDEN
    return keys


def _numbers(column: Any) -> NDArray[Any] | None:
    """Return a column as floats, NaN where a cell is missing; None if it is of lists, or nothing."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64())
    elif not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    return np.asarray(as_floats(column), dtype=np.float64)


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
    keys = break_ties(np.concatenate([content_keys(batch) for batch in batches]))
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


def break_ties(keys: Keys) -> Keys:
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
