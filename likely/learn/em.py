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

from likely.data.table import Columns, Table
from likely.joint import Joint, Part
from likely.learn.one_pass import collect
from likely.statistics import Array, JointStatistics, Shared, class_weights

# A class that fewer rows than this belong to, all their shares together, is empty.
_NO_ROWS = 1e-3
# How often a climb begins a class anew that has become empty.
_REVIVALS = 3


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

    def prepared(self, first: JointStatistics, parts: tuple[Part, ...], tolerance: float, most: int) -> JointStatistics:
        """Return the statistics to begin with, after what can be done before all rows are looked at: here nothing."""
        return first

    def expect(self, joint: Joint) -> Step:
        """Take a step: expect the classes of all rows, and collect."""
        if (found := joint.em_step(self.table, self.codes, self.weights)) is not None:
            counts = class_weights(Shared(joint.classes, np.empty((0, 0)), None, found.class_weights))
            return Step(JointStatistics(counts, (found.statistics,)), found.log_likelihood)
        collected, told = [], 0.0
        for tile, shared, log_likelihood in joint.shares(self.table, self.codes, self.weights):
            collected.append(collect(tile, shared, joint.parts, joint.densities))
            told += log_likelihood
        return Step(reduce(operator.add, collected), told)

    def log_likelihood(self, joint: Joint) -> float:
        """Return the logarithm of the likelihood of all rows: what a step would tell, without taking it."""
        return sum(told for _, _, told in joint.shares(self.table, self.codes, self.weights))


class Ascent(NamedTuple):
    """Where a climb is: the statistics to solve next, and the likelihoods before every step so far."""

    statistics: JointStatistics
    log_likelihoods: tuple[float, ...] = ()
    removed: int = 0
    """classes that became empty, and were taken out"""
    revived: int = 0
    """how often one was begun anew instead"""
    since: int = 0
    """the first likelihood after that"""
    log_prior: float = 0.0
    """of the parameters that the last likelihood is of"""


class Climb(NamedTuple):
    """Where a climb has ended: the joint, the statistics it was solved from, and the likelihood of every step."""

    joint: Joint
    statistics: JointStatistics
    log_likelihoods: list[float]
    converged: bool
    removed: int
    """classes that became empty, and were taken out"""
    revived: int = 0
    """how often one was begun anew instead"""

    @property
    def log_likelihood(self) -> float:
        """The likelihood of the joint, in logarithms, over all rows."""
        return self.log_likelihoods[-1]

    @property
    def log_posterior(self) -> float:
        """The logarithm of likelihood × prior, up to a constant: what no step lowers."""
        return self.log_likelihood + self.joint.log_prior()


Revive = Callable[[JointStatistics, Joint], JointStatistics]


def climb(
    rows: Hidden,
    start: JointStatistics | Ascent,
    parts: tuple[Part, ...],
    *,
    tolerance: float,
    most: int,
    priors: Array | None = None,
    revive: Revive | None = None,
    watch: Callable[[Ascent], object] | None = None,
) -> Climb:
    """Climb from first statistics until a step gains less than ``tolerance`` for each row, or ``most`` were taken.

    What is gained is the log-likelihood, and the logarithm of the prior if there is one.

    ``priors``: class weights that stay as they are. If no labels are known, a class that becomes empty is taken out, or
    some times begun anew by ``revive``, which is given the statistics of the others and their joint. ``watch`` is told
    where the climb is before every further step; it can go on from there.
    """
    at = start if isinstance(start, Ascent) else Ascent(start)
    converged = False
    joint = Joint.solve(at.statistics, parts, rows.table.columns, priors)
    for step in range(len(at.log_likelihoods), most + 1):
        found = rows.expect(joint) if step < most else Step(at.statistics, rows.log_likelihood(joint))
        log_prior = joint.log_prior()
        gain = np.inf
        if step > at.since:
            gain = found.log_likelihood - at.log_likelihoods[-1] + (log_prior - at.log_prior)
        at = at._replace(log_likelihoods=(*at.log_likelihoods, found.log_likelihood), log_prior=log_prior)
        # With categories that a step has found, or imagined rows like all others, it may fall on the way.
        converged = bool(abs(gain) < tolerance * rows.weight)
        if converged or step == most or not np.isfinite(found.log_likelihood):
            break
        at = at._replace(statistics=found.statistics)
        if rows.codes is None:
            at = _mended(at, parts, rows.table.columns, revive)
        if watch is not None:
            watch(at)
        joint = Joint.solve(at.statistics, parts, rows.table.columns, priors)
    return Climb(joint, at.statistics, list(at.log_likelihoods), converged, at.removed, at.revived)


def _mended(at: Ascent, parts: tuple[Part, ...], columns: Columns, revive: Revive | None) -> Ascent:
    """Take empty classes out, and begin them anew some times."""
    statistics, gone = without_empty(at.statistics)
    if gone and revive is not None and at.revived < _REVIVALS:
        statistics = revive(statistics, Joint.solve(statistics, parts, columns))
        gone, at = gone - 1, at._replace(revived=at.revived + 1, since=len(at.log_likelihoods))
    return at._replace(statistics=statistics, removed=at.removed + gone)


def without_empty(statistics: JointStatistics) -> tuple[JointStatistics, int]:
    """Return the statistics of the classes that rows belong to, and how many others there were."""
    removed = 0
    while (place := _empty(statistics)) is not None:
        statistics, removed = _without(statistics, place), removed + 1
    return statistics, removed


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
