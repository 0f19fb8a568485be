"""Where responsibilities come from. Labels known: one pass over the rows, and the sums are all that is kept."""

from likely.joint import Part
from likely.statistics import Assignment, JointStatistics, class_weights
from likely.table import Block, Table


def collect(table: Table, assignment: Assignment, parts: tuple[Part, ...]) -> JointStatistics:
    """Collect the statistics of rows whose classes are known.

    >>> from likely.families import Gaussian
    >>> from likely.table import read_assignment, read_table
    >>> table = read_table([[1.0], [3.0], [5.0]])
    >>> statistics = collect(table, read_assignment([0, 0, 1], None, 3), (Part(Gaussian(), None),))
    >>> statistics.weights.sums["weight"].tolist()
    [2.0, 1.0]
    """
    blocks = tuple(part.family.collect(Block(table, part.columns), assignment) for part in parts)
    return JointStatistics(class_weights(assignment), blocks)
