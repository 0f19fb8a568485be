"""One pass over rows: their statistics by known classes or responsibilities, and those of stratified folds."""

import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Table
from likely.families import Density
from likely.joint import Part
from likely.statistics import (
    Assignment,
    ClassCodes,
    JointStatistics,
    Responsibilities,
    Statistics,
    Sums,
    class_weights,
)

# Cells that are made of columns at a time.
_TILE = 1 << 22


class TableLearner(Sums, Protocol):
    """Sums of a whole table and its classes."""

    def learned(self, table: Table, assignment: Assignment) -> Self:
        """Return what has learned more rows; those without a class are left out."""


def collect(
    table: Table,
    assignment: Assignment | Responsibilities,
    parts: tuple[Part, ...],
    given: Sequence[Density | None] | None = None,
    whole: TableLearner | None = None,
) -> JointStatistics:
    """Collect the statistics of rows whose classes are known, or have responsibilities, under given densities of parts.

    ``whole``: what is to learn the table as a whole, too, and knows no rows.

    >>> from likely.families import Gaussian
    >>> from likely.data.labels import read_assignment
    >>> from likely.data.table import read_table
    >>> table = read_table([[1.0], [3.0], [5.0]])
    >>> statistics = collect(table, read_assignment([0, 0, 1], None, 3), (Part(Gaussian(), None),))
    >>> statistics.weights.sums["weight"].tolist()
    [2.0, 1.0]
    """
    blocks: list[Statistics] = []
    for i, part in enumerate(parts):
        density = None if given is None else given[i]
        if part.encoding is None:
            blocks.append(part.family.collect(Block(table, part.columns), assignment, density))
            continue
        assert isinstance(assignment, Assignment)
        # What is made of the columns may be many times as large as they are.
        step = max(_TILE // max(part.encoding.width, 1), 256)
        tiles: list[Statistics] = []
        for first in range(0, max(table.rows, 1), step):
            tile = part.encoding.encoded(table.between(first, first + step))
            own = assignment.taken(slice(first, first + step))
            tiles.append(part.family.collect(Block(tile, None), own, density))
        blocks.append(reduce(operator.add, tiles))
    if whole is not None:
        assert isinstance(assignment, Assignment)
        whole = whole.learned(table, assignment)
    return JointStatistics(class_weights(assignment), tuple(blocks), whole)


def assign_folds(codes: ClassCodes, folds: int) -> NDArray[np.int64]:
    """Return a stratified fold for each row: those of each class in turn, so every fold has as many of it.

    >>> assign_folds(np.array([0, 1, 0, 1, 1]), 2).tolist()
    [0, 0, 1, 1, 0]
    """
    found = np.empty(len(codes), dtype=np.int64)
    found[np.argsort(codes, kind="stable")] = np.arange(len(codes)) % folds
    return found


def collect_folds(
    table: Table, assignment: Assignment, folds: NDArray[np.int64], parts: tuple[Part, ...], count: int | None = None
) -> list[JointStatistics]:
    """Collect the statistics of every fold in one pass: to the core, each class of each fold is a class of its own.

    ``count``: how many folds there are, if the last ones may have no rows here.
    """
    classes, count = assignment.classes, int(folds.max()) + 1 if count is None else count
    k, together = len(classes), collect(table, split_by_fold(assignment, folds, count), parts)
    return [together.of_classes(slice(fold * k, (fold + 1) * k), classes) for fold in range(count)]


def split_by_fold(assignment: Assignment, folds: NDArray[np.int64], count: int) -> Assignment:
    """Return an assignment in which each class of each fold is a class of its own, fold by fold."""
    classes, codes, weights = assignment
    k = len(classes)
    return Assignment(np.arange(count * k), (folds * k + codes).astype(np.int32), weights)


def all_but_each(pieces: list[JointStatistics]) -> Iterator[JointStatistics]:
    """Return for each piece of two or more the sum of the others. Nothing is subtracted, so no digit is lost."""
    before = list(accumulate(pieces[:-1], operator.add))
    after = list(accumulate(reversed(pieces[1:]), operator.add))[::-1]
    yield after[0]
    for one, other in zip(before[:-1], after[1:], strict=True):
        yield one + other
    yield before[-1]


def training_folds(
    table: Table, assignment: Assignment, folds: NDArray[np.int64], parts: tuple[Part, ...]
) -> Iterator[JointStatistics]:
    """Return for each fold the statistics of the rows of all others."""
    if all(part.family.additive(Block(table, part.columns)) for part in parts):
        yield from all_but_each(collect_folds(table, assignment, folds, parts))
        return
    for fold in range(int(folds.max()) + 1):
        yield collect(table.taken(folds != fold), assignment.taken(folds != fold), parts)
