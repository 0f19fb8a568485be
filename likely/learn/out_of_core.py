"""EM and k-means of rows that are not in memory: every step is one pass over them, on the workers if there are any."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.labelled import LabelledRows, Labelling
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import Block, CellBuffer
from likely.joint import Joint, Part
from likely.learn.hidden import Hidden, Step, em
from likely.learn.kmeans import Points, cluster_sums, collect, means, readable
from likely.statistics import Array, JointStatistics, Statistics

# A step of expected cells that gains less for each row is the last, and so is the last of so many.
_TOLERANCE, _MOST = 1e-10, 200


@dataclass(frozen=True)
class HiddenRows(Hidden):
    """Rows that are not in memory, of known or of hidden classes; ``table``: some of them, drawn to start from."""

    everywhere: LabelledRows | None = None
    """all rows, and what their columns and labels are"""
    count: float = 0.0
    """how many rows there are that are learned from"""

    @property
    def weight(self) -> float:
        """How many rows there are."""
        return float(self.count)

    def prepared(self, first: JointStatistics, parts: tuple[Part, ...], tolerance: float, most: int) -> JointStatistics:
        """Take EM steps on the rows that were drawn, which takes no pass over all of them."""
        return em(Hidden(self.table, None, self.weights), first, parts, tolerance=tolerance, most=most).statistics

    def expect(self, joint: Joint) -> Step:
        """Take a step: expect what is hidden in all rows, and collect."""
        assert self.everywhere is not None
        rows, labelling = self.everywhere
        return rows.reduce(partial(_expected, labelling=labelling, joint=joint), Step.plus)

    def log_likelihood(self, joint: Joint) -> float:
        """Return the log-likelihood of all rows: that of a step, without taking it."""
        assert self.everywhere is not None
        rows, labelling = self.everywhere
        found: float = rows.reduce(partial(_log_likelihood, labelling=labelling, joint=joint), operator.add)
        return found


def _batches(rows: Rows, labelling: Labelling, joint: Joint) -> Iterator[Hidden]:
    """Return the rows of a partition, beginning with none at all: there may be no others."""
    if labelling.y is None:
        yield from (Hidden(table) for table in labelling.schema.tables(rows, CellBuffer()))
        return
    yield Hidden(labelling.schema.table(rows.schema.empty_table(), note=False), np.zeros(0, dtype=np.int32))
    for table, (classes, codes, weights) in labelling.known(rows):
        yield Hidden(table, np.searchsorted(joint.classes, classes).astype(np.int32)[codes], weights)


def _expected(rows: Rows, labelling: Labelling, joint: Joint) -> Step:
    return reduce(Step.plus, (batch.expect(joint) for batch in _batches(rows, labelling, joint)))


def _log_likelihood(rows: Rows, labelling: Labelling, joint: Joint) -> float:
    return sum(batch.log_likelihood(joint) for batch in _batches(rows, labelling, joint))


def with_missing_cells(
    data: LabelledRows, count: float, start: JointStatistics, parts: tuple[Part, ...]
) -> JointStatistics:
    """Return the statistics of all rows with a label, those expected where cells are missing; each step is a pass."""
    every = HiddenRows(data.empty(), np.zeros(0, dtype=np.int32), None, data, count)
    # Classes are known, so what their weights add to the likelihood does not matter, but where that is −∞: one of which
    # no row was drawn has none at the start.
    uniform = np.full(len(start.classes), 1 / len(start.classes))
    return em(every, start, parts, tolerance=_TOLERANCE, most=_MOST, priors=uniform).statistics


def any_missing(data: LabelledRows) -> bool:
    """Say whether any cell is missing."""
    found: bool = data.rows.reduce(partial(_any_missing, schema=data.schema), operator.or_)
    return found


def _any_missing(rows: Rows, schema: Schema) -> bool:
    return any(bool(np.isnan(Block(table, None).dense()).any()) for table in schema.tables(rows))


class Pass(NamedTuple):
    """What a pass of k-means has found: the sums of each cluster, and the inertia."""

    sums: Statistics
    inertia: float

    def plus(self, other: "Pass") -> "Pass":
        """Return what was found here and there."""
        return Pass(self.sums + other.sums, self.inertia + other.inertia)


def moved(
    data: LabelledRows, centres: Array, origin: Array, known: NDArray[np.bool_], most: int, least: float
) -> tuple[Array, Pass, int]:
    """Move centres, about the origin, until none moves further: where they are then, the last pass, and how many moved.

    ``least``: the squares of movements that are taken for none. A centre that no row is nearest to stays where it is.
    """
    for moves in range(most + 1):
        work = partial(_pass, schema=data.schema, centres=centres, origin=origin, known=known)
        found = data.rows.reduce(work, Pass.plus)
        new = means(found.sums) - origin
        new = np.where(np.isnan(new), centres, new)
        shift = float(((new - centres) ** 2).sum())
        if shift <= least or moves == most:
            break
        centres = new
    return centres, found, moves


def _pass(rows: Rows, schema: Schema, centres: Array, origin: Array, known: NDArray[np.bool_]) -> Pass:
    nothing = np.zeros(centres.shape)
    found = Pass(cluster_sums(nothing, nothing, centres + origin), 0.0)
    for table in schema.tables(rows, CellBuffer()):
        if table.rows:
            cells = np.where(known, readable(table), np.nan) if not known.all() else readable(table)
            points = Points(cells, origin, bool(np.isnan(cells).any()), table.rows, 0.0, known)
            sums, _, inertia = collect(points, centres)
            found = found.plus(Pass(sums, inertia))
    return found
