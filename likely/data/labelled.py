"""Rows with their labels, in memory or not: batch by batch, all at once, or a sample drawn by content."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely.data.arrow import concat_batches
from likely.data.cells import encoded_target
from likely.data.distinct import sample_rows
from likely.data.folds import HeldOut, whole_weights
from likely.data.hashing import row_keys
from likely.data.labels import read_assignment, read_labels, read_weights
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import CellBuffer, Table
from likely.lazy import pa
from likely.messages import warn
from likely.statistics import Assignment, Labels, distinct, union

# How many times its even share of a sample a partition sends, and how many rows more: so neither those that are larger
# nor chance among many small ones takes a second pass.
_AMPLE, _MORE = 4, 10
# So many batches are concatenated at a time, once most of their rows are left out.
_BATCHES = 64


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


S = TypeVar("S")
"""Statistics, which can be added."""


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


class LabelledSample(NamedTuple):
    """Rows to choose by, whether they are all that have a label, and how many rows have one, and have none."""

    rows: Labelled
    whole: bool
    labelled: int
    unlabelled: int
    bound: int | None = None
    """of what one partition sends, the greatest key of a row; None if no row is left out"""


@dataclass(frozen=True)
class Labelling:
    """What the columns of rows are, and where the labels and weights of the rows come from. It is sent to workers.

    Parameters
    ----------
    schema
        what the columns are
    y
        a label for each row, the name of the column that holds it, or None: all rows are of one class
    weights
        a weight for each row
    held_out
        what leaves out a cross-validation fold, and with it rows without a label
    partially_labelled
        whether labels in a list may be missing; those in a column may
    """

    schema: Schema
    y: Any = None
    weights: Any = None
    held_out: HeldOut | None = None
    partially_labelled: bool = True

    def batches(self, rows: Rows, *, note: bool = True, buffer: CellBuffer | None = None) -> Iterator[Labelled]:
        """Return all rows, batch by batch. All must be taken: at the end it is checked how many came.

        ``note``: whether to warn of columns that are not there. With a ``buffer`` for cells, those of a batch are gone
        when the next one comes.
        """
        if self.y is None:
            for table in self.schema.tables(rows, buffer):
                yield Labelled(table, of_one_class(table.rows))
            return
        given = weights = None
        if isinstance(self.y, str):
            weights = _read_weights(self.weights)
        else:
            given = _read_given(self.y, self.weights, partially_labelled=self.partially_labelled)
        first = 0
        for batch in rows.batches(dictionaries=True):
            numbers = range(first, first + batch.num_rows)
            part = slice(first, first + batch.num_rows)
            table = self.schema.table(batch, numbers=numbers, note=note and first == 0, buffer=buffer)
            first += batch.num_rows
            _check_lengths(given, weights, first, last=False)
            if given is not None:
                yield Labelled(table, given.taken(part))
                continue
            classes, codes = _target(batch, self.y)
            found = Labelled(table, Assignment(classes, codes, None if weights is None else weights[part]))
            yield found if self.held_out is None else Labelled(*self.held_out(*found.known()))
        _check_lengths(given, weights, first, last=True)

    def known(self, rows: Rows) -> Iterator[Labelled]:
        """Return the rows that have a label, batch by batch."""
        for part in self.batches(rows, note=False):
            known = part.known()
            if known.table.rows:
                yield known


class LabelledRows(NamedTuple):
    """Rows in memory, in files or in partitions of an engine, what their columns are, and where labels come from."""

    rows: Rows
    labelling: Labelling

    @property
    def schema(self) -> Schema:
        """What the columns are."""
        return self.labelling.schema

    @property
    def y(self) -> Any:
        """A label for each row, or the name of the column that holds it."""
        return self.labelling.y

    def without(self, held_out: HeldOut) -> Self:
        """Return the rows of all cross-validation folds but one."""
        return self._replace(labelling=replace(self.labelling, held_out=held_out))

    def empty(self) -> Table:
        """Return a table of no rows."""
        return self.schema.table(self.rows.schema.empty_table(), note=False)

    def collect(self, collect: Callable[[Table, Assignment], S], *, note: bool = True) -> Collected[S]:
        """Collect the statistics of all rows that have a label, in one pass, on the workers if there are any."""
        work = partial(_collected, labelling=self.labelling, collect=collect, note=note)
        return self.rows.reduce(work, Collected.plus)

    def all(self, *, partially_labelled: bool = False) -> Labelled:
        """Return all rows at once, or without ``partially_labelled`` all that have a label, and warn of the others."""
        labelling = replace(self.labelling, partially_labelled=partially_labelled)
        batches = list(labelling.batches(self.rows))
        if not partially_labelled:
            known = [part.known() for part in batches]
            total = sum(part.table.rows for part in batches)
            dropped = total - sum(part.table.rows for part in known)
            batches = [part for part in known if part.table.rows]
            if dropped < total:
                warn_about_unlabelled(dropped, self.y)
        return concat_labelled(batches)

    def sample(self, most: int, seed: Any) -> LabelledSample:
        """Return all rows that have a label, if they are at most so many; otherwise so many that are drawn from them.

        Drawn are those of the lowest keys. Of these, every partition sends some more than its even share. If one was
        so large that others of its rows might be among the lowest, all send as many as are drawn.
        """
        found: LabelledSample | None = None
        for share in sorted({min(most, _AMPLE * most // max(1, self.rows.partitions) + _MORE), most}):
            parts = self.rows.map(partial(_drawn, labelling=self.labelling, most=share, seed=seed))
            if self.y is None and not any(part.rows.table.rows for part in parts):
                raise ValueError("expected at least one row, got none")
            found = _lowest_of(parts, most, seed, in_shares=self.labelling.held_out is not None)
            if found is not None:
                break
        assert found is not None, "expected the lowest of all rows among as many of each partition"
        return found


def of_one_class(rows: int, weights: Any = None) -> Assignment:
    """Return the assignment of rows that all are of one class, without a name."""
    return Assignment(np.zeros(1, dtype=np.int64), np.zeros(rows, dtype=np.int32), weights)


def as_arrow_table(rows: Rows) -> Any:
    """Return all rows as one Arrow table."""
    return concat_batches(list(rows.batches()), rows.schema).combine_chunks()


def with_weight(rows: Rows, y: Any, sample_weight: Any) -> tuple[Rows, Any, Any]:
    """Return rows in memory, their labels and weights without those of weight 0, unless no other row has the label.

    ``y`` may be the name of a column, or None. What does not fit is left to whoever reads it.

    >>> from likely.data.rows import open_rows
    >>> rows, y, weights = with_weight(open_rows({"x": [1, 2, 3, 4]}), ["a", "a", "b", "b"], [0, 2, 1, 0])
    >>> rows.count(), y, weights.tolist()
    (2, ['a', 'b'], [2, 1])
    """
    weights = np.asarray(sample_weight)
    fits = rows.in_memory and weights.dtype.kind in "fiub" and weights.shape == (rows.count(),)
    if sample_weight is None or not fits:
        return rows, y, sample_weight
    counts = weights != 0
    if counts.all() or not counts.any():
        return rows, y, sample_weight
    if y is not None:
        codes: NDArray[Any]
        if isinstance(y, str):
            _, codes = encoded_target(as_arrow_table(rows), y)
        else:
            _, codes = read_labels(y, len(counts), partially_labelled=True)
        counts |= (codes >= 0) & ~np.isin(codes, codes[counts])
    if isinstance(y, list | tuple):
        y = [label for label, counted in zip(y, counts, strict=True) if counted]
    elif y is not None and not isinstance(y, str):
        y = y[counts] if isinstance(y, np.ndarray) or hasattr(y, "iloc") else np.asarray(y)[counts]
    return rows.filtered(counts), y, weights[counts]


def warn_about_unlabelled(count: int, y: Any = None, why: str = "") -> None:
    """Warn that so many rows are not learned from; ``y`` may be the name of the column of labels."""
    if count:
        warn(f"{count:,} rows without a label{f' in {y!r}' if isinstance(y, str) else ''} are left out{why}")


def concat_labelled(parts: list[Labelled]) -> Labelled:
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
        indices = [np.searchsorted(all_names, table.categories.get(j, all_names[:0])) for table in tables]
        cells[:, j] = np.concatenate([_renumbered(t.cells[:, j], n) for t, n in zip(tables, indices, strict=True)])
    classes = reduce(union, [assignment.classes for assignment in assignments if len(assignment.classes)])
    # The index after the last is that of −1.
    moved = (np.append(np.searchsorted(classes, a.classes) if len(a.classes) else (), -1) for a in assignments)
    codes = np.concatenate([p.astype(np.int32)[a.codes] for p, a in zip(moved, assignments, strict=True)])
    weights = None
    if any(a.weights is not None for a in assignments):
        weights = np.concatenate([np.ones(len(a.codes)) if a.weights is None else a.weights for a in assignments])
    numbers = np.concatenate([table.row_numbers for table in tables])
    strings = {j: pa.concat_arrays([table.strings[j] for table in tables]) for j in tables[0].strings}
    whole = replace(tables[0], cells=cells, categories=names, numbers=numbers, strings=strings)
    return Labelled(whole, Assignment(classes, codes, weights))


def _collected(rows: Rows, labelling: Labelling, collect: Callable[[Table, Assignment], S], note: bool) -> Collected[S]:
    found: Collected[S] = Collected(None)
    for part in labelling.batches(rows, note=note, buffer=CellBuffer()):
        known = part.known()
        count = known.table.rows
        found = found.plus(Collected(collect(*known) if count else None, count, part.table.rows - count))
    return found


def _lowest_of(parts: list[LabelledSample], most: int, seed: Any, *, in_shares: bool) -> LabelledSample | None:
    """Return the rows of the lowest keys among those that were sent; None if others might be lower."""
    rows = concat_labelled([part.rows for part in parts if part.rows.table.rows] or [parts[0].rows])
    whole = all(part.whole for part in parts) and rows.table.rows <= most
    in_shares = in_shares and rows.assignment.weights is not None
    if in_shares or not whole:
        table, assignment = sample_rows(*rows, most, seed)
        bounds = [part.bound for part in parts if part.bound is not None]
        if bounds and (table.rows < most or row_keys(table, assignment, seed)[-1] > min(bounds)):
            return None
        rows = Labelled(table, whole_weights(assignment) if in_shares else assignment)
    return LabelledSample(rows, whole, sum(part.labelled for part in parts), sum(part.unlabelled for part in parts))


def _drawn(rows: Rows, labelling: Labelling, most: int, seed: Any) -> LabelledSample:
    """Return all rows that have a label, if they are at most so many; otherwise those of the lowest keys."""
    kept: list[Labelled] = []
    count = with_label = total = 0
    whole, bound = True, None
    for part in labelling.batches(rows):
        total += part.table.rows
        part = part.known()
        with_label += part.table.rows
        if not part.table.rows and kept:
            continue
        if bound is not None:  # of rows that are left out, classes and categories are known nevertheless
            part = part.taken(row_keys(*part, seed) <= bound)
        kept.append(part)
        count += part.table.rows
        if count > 2 * most or (bound is not None and len(kept) > _BATCHES):
            kept, bound = _fewer(kept, most, seed, bound)
            count, whole = kept[0].table.rows, False
    if count > most:
        kept, bound = _fewer(kept, most, seed, bound)
        whole = False
    if not kept:
        nothing = Assignment(np.empty(0, dtype="<U1"), np.empty(0, dtype=np.int32))
        kept = [Labelled(labelling.schema.table(rows.schema.empty_table()), nothing)]
    some = kept[0] if with_label == 0 else concat_labelled(kept)
    return LabelledSample(some, whole, with_label, total - with_label, bound)


def _fewer(kept: list[Labelled], most: int, seed: Any, bound: int | None) -> tuple[list[Labelled], int | None]:
    """Return at most so many rows, of the lowest keys, and beyond which key others are left out."""
    some = Labelled(*sample_rows(*concat_labelled(kept), most, seed))
    return [some], int(row_keys(*some, seed)[-1]) if some.table.rows == most else bound


def _target(batch: Any, name: str) -> tuple[Labels, NDArray[np.int32]]:
    """Return the classes in a column, and the index of each row's among them, −1 where it is missing."""
    labels, indices = encoded_target(batch, name)
    if not any(label is not None for label in labels.tolist()):
        return labels[:0], np.full(len(indices), -1, dtype=np.int32)
    classes, codes = read_labels(labels, len(labels), partially_labelled=True)
    return classes, codes[indices]


def _renumbered(cells: NDArray[Any], numbers: NDArray[np.intp]) -> NDArray[Any]:
    """Return codes of one list of names as those of another; missing cells stay."""
    return np.append(numbers.astype(np.float64), np.nan)[np.where(np.isnan(cells), -1, cells).astype(np.intp)]


def _read_given(y: Any, sample_weight: Any, *, partially_labelled: bool) -> Assignment:
    """Read a label for each row."""
    if not hasattr(y, "__len__"):
        raise ValueError(f"expected a label for each row, or the name of a column, got y={y!r}")
    if len(y) == 0:
        raise ValueError("expected rows with a label, got none")
    return read_assignment(y, sample_weight, len(y), partially_labelled=partially_labelled)


def _read_weights(sample_weight: Any) -> Any:
    if sample_weight is None:
        return None
    if np.ndim(sample_weight) == 0:
        raise ValueError(f"expected a weight for each row, got {sample_weight!r}: one for all changes nothing")
    return read_weights(sample_weight, len(sample_weight))


def _check_lengths(labels: Assignment | None, weights: Any, rows: int, *, last: bool) -> None:
    for name, given in (("label", labels and labels.codes), ("weight", weights)):
        if given is not None and (len(given) < rows or (last and len(given) != rows)):
            more = "" if last else " or more"
            raise ValueError(f"expected one {name} for each row, got {len(given)} {name}s for {rows} rows{more}")
