"""Tables of numbers whose classes are known, and which need not lie in memory: sums by one pass, or by several."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from likely.data.folds import Without
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import Block
from likely.engines.labelled import every_row
from likely.estimators.hidden_rows import both
from likely.joint import Joint, Part
from likely.learn.em import Hidden, Step, climb
from likely.statistics import JointStatistics

# A step of expectation maximisation that gains less for each row is the last, and so is the last of so many.
_TOLERANCE, _MOST = 1e-10, 200


@dataclass(frozen=True)
class KnownRows(Hidden):
    """Rows wherever they lie, whose classes are known, with cells that are not; ``table``: one like them.

    Parameters
    ----------
    everywhere
        all rows, what their columns are, the name of the column of labels, the fold that is held out, if one is, and
        how many rows have a label
    """

    everywhere: tuple[Rows, Schema, str, Without | None, float] | None = None

    @property
    def weight(self) -> float:
        """How many rows have a label."""
        assert self.everywhere is not None
        return self.everywhere[-1]

    def expect(self, joint: Joint) -> Step:
        """Take a step: expect the cells that are missing, and collect."""
        assert self.everywhere is not None
        rows, schema, y, without, _ = self.everywhere
        return rows.reduce(partial(_expected, schema=schema, y=y, without=without, joint=joint), both)

    def log_likelihood(self, joint: Joint) -> float:
        """Return the logarithm of the likelihood of all rows."""
        return self.expect(joint).log_likelihood


def _expected(rows: Rows, schema: Schema, y: str, without: Without | None, joint: Joint) -> Step:
    def steps() -> Iterator[Step]:
        yield Hidden(schema.table(rows.schema.empty_table(), note=False), np.zeros(0, dtype=np.int32)).expect(joint)
        for part in every_row(schema, rows, y, without, note=False):
            table, (classes, codes, weights) = part.known()
            if table.rows:
                places = np.searchsorted(joint.classes, classes).astype(np.int32)
                yield Hidden(table, places[codes], weights).expect(joint)

    return reduce(both, steps())


def with_missing_cells(
    rows: Rows,
    schema: Schema,
    y: str,
    without: Without | None,
    count: float,
    start: JointStatistics,
    parts: tuple[Part, ...],
) -> JointStatistics:
    """Return the statistics of all rows with a label, those expected where cells are missing; each step is a pass."""
    empty = schema.table(rows.schema.empty_table(), note=False)
    every = KnownRows(empty, np.zeros(0, dtype=np.int32), None, (rows, schema, y, without, count))
    # Classes are known, so what their weights add to the likelihood does not matter, but where that is −∞: one of which
    # no row was drawn has none at the start.
    alike = np.full(len(start.classes), 1 / len(start.classes))
    return climb(every, start, parts, tolerance=_TOLERANCE, most=_MOST, priors=alike).statistics


def any_holes(rows: Rows, schema: Schema) -> bool:
    """Say whether any cell is missing."""
    found: bool = rows.reduce(partial(_holes, schema=schema), operator.or_)
    return found


def _holes(rows: Rows, schema: Schema) -> bool:
    return any(bool(np.isnan(Block(table, None).dense()).any()) for table in schema.tables(rows))
