"""Rows to choose by: all that have a label if they are few, or else some that are drawn by their content."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likely.data.distinct import lowest_rows, row_keys
from likely.data.folds import Without, put_together
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.engines.labelled import Labelled, every_row, stacked
from likely.statistics import Assignment

# How many times its even share of what is drawn a partition sends, and how many rows more: so neither those that are
# larger nor chance among many small ones takes a second pass.
_AMPLE, _MORE = 4, 10
# So many batches are put together at a time, once most of their rows are left out.
_BATCHES = 64


class Sampled(NamedTuple):
    """Rows to choose by, whether they are all that have a label, and how many rows have one, and have none."""

    rows: Labelled
    whole: bool
    labelled: int
    unlabelled: int


class _Part(NamedTuple):
    """What one partition sends; ``bound``: the greatest key that it sends rows of, None if none is left out."""

    sampled: Sampled
    bound: int | None


def sampled(
    schema: Schema,
    rows: Rows,
    y: Any,
    sample_weight: Any,
    most: int,
    seed: Any,
    *,
    partly: bool = False,
    alike: bool = False,
) -> Sampled:
    """Return all rows that have a label, if they are at most so many; otherwise so many that are drawn from them.

    Drawn are those of the lowest keys. Of these, every partition sends some more than its even share. If one was so
    large that others of its rows might be among the lowest, all send as many as are drawn.
    """
    read = partial(every_row, schema, y=y, sample_weight=sample_weight, partly=partly, alike=alike)
    found: Sampled | None = None
    for share in sorted({min(most, _AMPLE * most // max(1, rows.partitions) + _MORE), most}):
        parts = rows.map(partial(_drawn, read=read, schema=schema, most=share, seed=seed))
        if alike and not any(part.sampled.rows.table.rows for part in parts):
            raise ValueError("expected at least one row, got none")
        found = _lowest_of(parts, most, seed, in_shares=isinstance(sample_weight, Without))
        if found is not None:
            break
    assert found is not None, "expected the lowest of all rows among as many of each partition"
    return found


def _lowest_of(parts: list[_Part], most: int, seed: Any, *, in_shares: bool) -> Sampled | None:
    """Return the rows of the lowest keys among those that were sent; None if others might be lower."""
    each = [part.sampled for part in parts]
    rows = stacked([part.rows for part in each if part.rows.table.rows] or [each[0].rows])
    whole = all(part.whole for part in each) and rows.table.rows <= most
    in_shares = in_shares and rows.assignment.weights is not None
    if in_shares or not whole:
        table, assignment, highest = lowest_rows(*rows, most, seed)
        bounds = [part.bound for part in parts if part.bound is not None]
        if bounds and (table.rows < most or highest > min(bounds)):
            return None
        rows = Labelled(table, put_together(assignment) if in_shares else assignment)
    return Sampled(rows, whole, sum(part.labelled for part in each), sum(part.unlabelled for part in each))


def _drawn(rows: Rows, read: Callable[..., Iterator[Labelled]], schema: Schema, most: int, seed: Any) -> _Part:
    """Return all rows that have a label, if they are at most so many; otherwise those of the lowest keys."""
    held: list[Labelled] = []
    count = with_label = total = 0
    whole, bound = True, None
    for part in read(rows=rows):
        total += part.table.rows
        part = part.known()
        with_label += part.table.rows
        if not part.table.rows and held:
            continue
        if bound is not None:  # of rows that are left out, classes and categories are known nevertheless
            part = part.taken(row_keys(*part, seed) <= bound)
        held.append(part)
        count += part.table.rows
        if count > 2 * most or (bound is not None and len(held) > _BATCHES):
            held, bound = _fewer(held, most, seed, bound)
            count, whole = held[0].table.rows, False
    if count > most:
        held, bound = _fewer(held, most, seed, bound)
        whole = False
    if not held:
        nothing = Assignment(np.empty(0, dtype="<U1"), np.empty(0, dtype=np.int32))
        held = [Labelled(schema.table(rows.schema.empty_table()), nothing)]
    return _Part(Sampled(held[0] if with_label == 0 else stacked(held), whole, with_label, total - with_label), bound)


def _fewer(held: list[Labelled], most: int, seed: Any, bound: int | None) -> tuple[list[Labelled], int | None]:
    """Return at most so many rows, of the lowest keys, and beyond which key others are left out."""
    rows = stacked(held)
    table, assignment, highest = lowest_rows(*rows, most, seed)
    left_out = table.rows == most
    return [Labelled(table, assignment)], highest if left_out else bound
