"""Hidden classes of rows that do not lie in memory: every step of expectation maximisation is one pass over them."""

import operator
from dataclasses import dataclass
from functools import partial, reduce

from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import Room
from likely.joint import Joint, Part
from likely.learn.em import Hidden, Step, climb
from likely.statistics import JointStatistics


@dataclass(frozen=True)
class HiddenRows(Hidden):
    """Rows wherever they lie, of which no class is known; ``table``: some of them, drawn to begin with.

    Parameters
    ----------
    everywhere
        all rows, what their columns are, and how many there are
    """

    everywhere: tuple[Rows, Schema, int] | None = None

    @property
    def weight(self) -> float:
        """How many rows there are."""
        assert self.everywhere is not None
        return float(self.everywhere[2])

    def prepared(self, first: JointStatistics, parts: tuple[Part, ...], tolerance: float, most: int) -> JointStatistics:
        """Climb on the rows that were drawn, which takes no pass over all of them."""
        some = Hidden(self.table, None, self.weights)
        return climb(some, first, parts, tolerance=tolerance, most=most).statistics

    def expect(self, joint: Joint) -> Step:
        """Take a step: expect the classes of all rows, and collect."""
        assert self.everywhere is not None
        rows, schema, _ = self.everywhere
        return rows.reduce(partial(_expected, schema=schema, joint=joint), both)

    def log_likelihood(self, joint: Joint) -> float:
        """Return the logarithm of the likelihood of all rows: what a step would tell, without taking it."""
        assert self.everywhere is not None
        rows, schema, _ = self.everywhere
        told: float = rows.reduce(partial(_told, schema=schema, joint=joint), operator.add)
        return told


def _expected(rows: Rows, schema: Schema, joint: Joint) -> Step:
    return reduce(both, (Hidden(table).expect(joint) for table in schema.tables(rows, Room())))


def _told(rows: Rows, schema: Schema, joint: Joint) -> float:
    return sum(Hidden(table).log_likelihood(joint) for table in schema.tables(rows, Room()))


def both(one: Step, other: Step) -> Step:
    """Return the step of two parts of the rows together."""
    return Step(one.statistics + other.statistics, one.log_likelihood + other.log_likelihood)
