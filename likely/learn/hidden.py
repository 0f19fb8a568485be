"""Hidden classes by EM: of no row, of some rows or of all rows it is known to which class it belongs.

Every step takes the responsibilities of the classes for each row under the joint of the step before, collects the
statistics of the rows with them, and solves these. No step lowers the likelihood, or with a prior the posterior.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Columns, Table
from likely.em import iterate
from likely.joint import Joint, Part
from likely.learn.one_pass import collect
from likely.statistics import Array, JointStatistics, Responsibilities, class_weights

# A class that fewer rows than this belong to, all responsibilities together, is empty.
_NO_ROWS = 1e-3
# How often EM restarts a class that has become empty.
_RESTARTS = 3


class Step(NamedTuple):
    """The statistics of rows whose classes were expected under a joint, and the logarithm of their likelihood."""

    statistics: JointStatistics
    log_likelihood: float

    def plus(self, other: "Step") -> "Step":
        """Return the step of two parts of the rows together."""
        return Step(self.statistics + other.statistics, self.log_likelihood + other.log_likelihood)


@dataclass(frozen=True)
class Hidden:
    """Rows of which all, some or no classes are known."""

    table: Table
    """the rows"""
    codes: NDArray[np.int32] | None = None
    """the indices of the classes that are known, −1 of the others; None if none is known"""
    weights: Array | None = None
    """how much each row counts"""

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
            counts = class_weights(Responsibilities(joint.classes, np.empty((0, 0)), None, found.class_weights))
            return Step(JointStatistics(counts, (found.statistics,)), found.log_likelihood)
        collected, total = [], 0.0
        for tile, r, log_likelihood in joint.responsibilities(self.table, self.codes, self.weights):
            collected.append(collect(tile, r, joint.parts, joint.densities))
            total += log_likelihood
        return Step(reduce(operator.add, collected), total)

    def log_likelihood(self, joint: Joint) -> float:
        """Return the logarithm of the likelihood of all rows: that of a step, without taking it."""
        return sum(found for _, _, found in joint.responsibilities(self.table, self.codes, self.weights))


class EMState(NamedTuple):
    """How far EM is: the statistics to solve next, and the log-likelihoods before every step so far."""

    statistics: JointStatistics
    log_likelihoods: tuple[float, ...] = ()
    removed: int = 0
    """classes that became empty, and were taken out"""
    restarted: int = 0
    """how often one was restarted instead"""
    since: int = 0
    """the first log-likelihood after that"""
    log_prior: float = 0.0
    """of the parameters that the last log-likelihood is of"""


class EMResult(NamedTuple):
    """Where EM has ended: the joint, the statistics it was solved from, and the log-likelihood of every step."""

    joint: Joint
    statistics: JointStatistics
    log_likelihoods: list[float]
    converged: bool
    removed: int
    """classes that became empty, and were taken out"""
    restarted: int = 0
    """how often one was restarted instead"""

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of the joint over all rows."""
        return self.log_likelihoods[-1]

    @property
    def log_posterior(self) -> float:
        """The logarithm of likelihood × prior, up to a constant: what no step lowers."""
        return self.log_likelihood + self.joint.log_prior()


class _Expected(NamedTuple):
    """A joint after its E step: how far EM is, what was gained, and the statistics that were expected."""

    state: EMState
    joint: Joint
    gain: float
    statistics: JointStatistics


Restart = Callable[[JointStatistics, Joint], JointStatistics]


def em(
    rows: Hidden,
    start: JointStatistics | EMState,
    parts: tuple[Part, ...],
    *,
    tolerance: float,
    most: int,
    priors: Array | None = None,
    restart: Restart | None = None,
    watch: Callable[[EMState], object] | None = None,
) -> EMResult:
    """Take EM steps from first statistics until one gains less than ``tolerance`` for each row, or ``most`` were taken.

    What is gained is the log-likelihood, and the logarithm of the prior if there is one. With categories that a step
    has found, or imagined rows like all others, it may fall on the way.

    ``priors``: class weights that stay as they are. If no labels are known, a class that becomes empty is taken out, or
    some times restarted by ``restart``, which is given the statistics of the others and their joint. ``watch`` is given
    the state before every further step; EM can go on from there.
    """

    def expected(state: EMState) -> _Expected:
        joint = Joint.solve(state.statistics, parts, rows.table.columns, priors)
        steps, log_prior = len(state.log_likelihoods), joint.log_prior()
        found = rows.expect(joint) if steps < most else Step(state.statistics, rows.log_likelihood(joint))
        gain = np.inf
        if steps > state.since:
            gain = found.log_likelihood - state.log_likelihoods[-1] + (log_prior - state.log_prior)
        likelihoods = (*state.log_likelihoods, found.log_likelihood)
        return _Expected(
            state._replace(log_likelihoods=likelihoods, log_prior=log_prior), joint, gain, found.statistics
        )

    def step(at: _Expected) -> _Expected:
        state = at.state._replace(statistics=at.statistics)
        if rows.codes is None:
            state = _without_empty_classes(state, parts, rows.table.columns, restart)
        if watch is not None:
            watch(state)
        return expected(state)

    def change(new: _Expected, _: _Expected) -> float:
        return new.gain if np.isfinite(new.state.log_likelihoods[-1]) else np.nan

    at = expected(start if isinstance(start, EMState) else EMState(start))
    least = tolerance * rows.weight
    converged = bool(abs(at.gain) < least)
    if not converged and np.isfinite(at.state.log_likelihoods[-1]):
        left = most + 1 - len(at.state.log_likelihoods)
        at, converged, _ = iterate(at, step, change, tolerance=least, most=left)
    state = at.state
    return EMResult(at.joint, state.statistics, list(state.log_likelihoods), converged, state.removed, state.restarted)


def _without_empty_classes(
    state: EMState, parts: tuple[Part, ...], columns: Columns, restart: Restart | None
) -> EMState:
    """Take empty classes out, and restart them some times."""
    statistics, gone = without_empty(state.statistics)
    if gone and restart is not None and state.restarted < _RESTARTS:
        statistics = restart(statistics, Joint.solve(statistics, parts, columns))
        gone, state = gone - 1, state._replace(restarted=state.restarted + 1, since=len(state.log_likelihoods))
    return state._replace(statistics=statistics, removed=state.removed + gone)


def without_empty(statistics: JointStatistics) -> tuple[JointStatistics, int]:
    """Return the statistics of the classes that rows belong to, or of the largest, and how many others there were."""
    weight, classes = statistics.weights.sums["weight"], statistics.classes
    kept = np.flatnonzero(weight >= _NO_ROWS)
    if len(kept) == 0:
        kept = len(weight) - 1 - np.argmax(weight[::-1], keepdims=True)
    if len(kept) == len(weight):
        return statistics, 0
    parts = (statistics.of_classes(slice(c, c + 1), classes[c : c + 1]) for c in kept.tolist())
    return reduce(operator.add, parts), len(weight) - len(kept)
