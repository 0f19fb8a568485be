"""Classes that are hidden: expectation maximisation (EM), the one loop of all models in which something is not seen.

Every step takes the share of each row that belongs to each class under the joint of the step before, collects the
statistics of rows so shared, and solves them. No step lowers the likelihood, or with a prior the posterior.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.joint import Joint, Part
from likely.learn import collect
from likely.statistics import Array, JointStatistics
from likely.table import Table

# A class that fewer rows than this belong to, all their shares together, is empty.
_NO_ROWS = 1e-3


class Step(NamedTuple):
    """The statistics of rows whose classes were expected under a joint, and the logarithm of their likelihood."""

    statistics: JointStatistics
    log_likelihood: float


@dataclass(frozen=True)
class Hidden:
    """Rows of which all, some or no classes are known.

    Parameters
    ----------
    table
        the rows
    codes
        the places of the classes that are known, −1 of the others; None if none is known
    weights
        how much each row counts
    """

    table: Table
    codes: NDArray[np.int32] | None = None
    weights: Array | None = None

    @property
    def weight(self) -> float:
        """How much all rows count."""
        return float(self.table.rows if self.weights is None else self.weights.sum())

    def expect(self, joint: Joint) -> Step:
        """Take a step: expect the classes of all rows, and collect."""
        found, told = [], 0.0
        for tile, shared, log_likelihood in joint.shares(self.table, self.codes, self.weights):
            found.append(collect(tile, shared, joint.parts, joint))
            told += log_likelihood
        return Step(reduce(operator.add, found), told)

    def log_likelihood(self, joint: Joint) -> float:
        """Return the logarithm of the likelihood of all rows: what a step would tell, without taking it."""
        return sum(told for _, _, told in joint.shares(self.table, self.codes, self.weights))


class Climb(NamedTuple):
    """Where a climb has ended: the joint, the statistics it was solved from, and the likelihood of every step."""

    joint: Joint
    statistics: JointStatistics
    log_likelihoods: list[float]
    converged: bool
    removed: int
    """classes that became empty, and were taken out"""

    @property
    def log_likelihood(self) -> float:
        """The likelihood of the joint, in logarithms, over all rows."""
        return self.log_likelihoods[-1]


def climb(
    rows: Hidden,
    start: JointStatistics,
    parts: tuple[Part, ...],
    *,
    tolerance: float,
    most: int,
    watch: Callable[[int, float], object] | None = None,
) -> Climb:
    """Climb from first statistics until a step gains less than ``tolerance`` for each row, or ``most`` were taken.

    ``watch`` is told the number of every step, and the likelihood before it.
    """
    statistics, told, converged, removed = start, [], False, 0
    joint = Joint.solve(statistics, parts, rows.table.columns)
    for step in range(most + 1):
        found = rows.expect(joint) if step < most else Step(statistics, rows.log_likelihood(joint))
        told.append(found.log_likelihood)
        if watch is not None:
            watch(step, found.log_likelihood)
        if not np.isfinite(found.log_likelihood):
            break
        if step and told[-1] - told[-2] < tolerance * rows.weight:
            converged = True
            break
        if step == most:
            break
        statistics = found.statistics
        while (place := _empty(statistics)) is not None:
            statistics, removed = _without(statistics, place), removed + 1
        joint = Joint.solve(statistics, parts, rows.table.columns)
    return Climb(joint, statistics, told, converged, removed)


def _empty(statistics: JointStatistics) -> int | None:
    """Return the place of a class that next to no rows belong to, if there is one beside others."""
    weight = statistics.weights.sums["weight"]
    place = int(np.argmin(weight))
    return place if len(weight) > 1 and weight[place] < _NO_ROWS else None


def _without(statistics: JointStatistics, place: int) -> JointStatistics:
    classes = statistics.classes
    sides = [(slice(0, place), classes[:place]), (slice(place + 1, None), classes[place + 1 :])]
    left = [statistics.of_classes(part, labels) for part, labels in sides if len(labels)]
    return reduce(operator.add, left)
