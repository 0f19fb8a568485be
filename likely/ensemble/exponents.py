"""The log-linear model of discounted words: exponents of groups, of the length and of priors, by Newton's method.

Words of a text repeat each other, so their evidence for a class, added up, is too sure of itself. The score z of a
class is the sum over groups of exponent × evidence, divided by a power of the length, plus κ log p(class) and a bias of
the class. The exponents minimise −Σ log softmax(z) of the right classes, with a pull of each towards their mean, of κ
towards 1 and of the biases towards 0. Newton's method, damped: there are some seventy numbers, and a bias for each
class.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.statistics import Array

# Steps end where the next would gain less than this, for each row: that one is taken, and what it leaves is far less.
_STEPS, _GAIN = 30, 1e-7
# The first steps, from afar, are of fewer rows, and end sooner.
_FEW, _FIRST_GAIN = 1_000, 1e-3
# After a step that gains less than this, for each row, the curvature is next to what it was.
_NEAR = 3e-4
_POWERS = (-0.5, 1.5)
_MOST_BIASED = 500
_FIRST_POWER = 0.5
# How far apart, in logarithms, the first guesses of one exponent for all are.
_GUESSES = np.exp(np.arange(-6.0, 0.25, 0.25))


class Evidence(NamedTuple):
    """Evidence of rows, in columns of groups of words: most texts have words of few groups.

    Row i has the ``columns`` from ``starts[i]`` to the next, in rising order; ``values`` (columns of all rows ×
    classes) says how much each of them tells for every class.

    >>> evidence = Evidence.of(np.array([[[1.0, 0.0], [2.0, 0.0]], [[0.0, 5.0], [0.0, 0.0]]]))
    >>> evidence.starts.tolist(), evidence.columns.tolist(), evidence.values.tolist()
    ([0, 1, 2], [0, 1], [[1.0, 2.0], [5.0, 0.0]])
    >>> evidence.weighed(np.array([10.0, 1.0])).tolist()
    [[10.0, 20.0], [5.0, 0.0]]
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.uint8]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, cells: Array) -> "Evidence":
        """Return evidence that is given as rows × classes × groups."""
        there = cells.any(axis=1)
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        values = np.ascontiguousarray(cells.transpose(0, 2, 1)[there], dtype=np.float32)
        return cls(starts, np.nonzero(there)[1].astype(np.uint8), values)

    def with_column(self, number: int, values: Array) -> "Evidence":
        """Return evidence with one more column of every row (rows × classes), whose number is beyond all others."""
        ends = self.starts[1:]
        columns = np.insert(self.columns, ends, np.uint8(number))
        more = np.insert(self.values, ends, values.astype(np.float32), axis=0)
        return Evidence(self.starts + np.arange(len(self.starts)), columns, more)

    def first(self, rows: int) -> "Evidence":
        """Return the evidence of the first rows."""
        end = self.starts[rows]
        return Evidence(self.starts[: rows + 1], self.columns[:end], self.values[:end])

    def weighed(self, weights: Array) -> Array:
        """Return the weighed sum of the columns of every row and class."""
        return native.weigh_evidence(self, weights)


class Scored(NamedTuple):
    """Rows with the evidence of every group of words, found without their own fold.

    ``lengths``: log of the length over that of a usual row; ``log_priors``: log p(class) without the row's fold;
    ``codes``: the right class; ``weights``: how much each row counts.
    """

    evidence: Evidence
    lengths: Array
    log_priors: Array
    codes: NDArray[np.int64]
    weights: Array

    def first(self, rows: int) -> "Scored":
        """Return the first rows."""
        _, lengths, log_priors, codes, weights = self
        return Scored(self.evidence.first(rows), lengths[:rows], log_priors[:rows], codes[:rows], weights[:rows])


@dataclass(frozen=True, eq=False)
class Exponents:
    """How much the evidence of each group counts (groups), the power of the length, that of p(class), and biases.

    ``one`` is the best exponent if all groups had the same. Evidence may have columns after those of the groups, which
    count as ``further`` says, each pulled towards 1.
    """

    groups: Array
    power: float
    prior: float
    bias: Array
    one: float = 1.0
    further: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fitted(cls, rows: Scored, groups: int) -> "Exponents":
        """Return the exponents of so many groups that make the right classes of these rows likeliest."""
        one = _one_for_all(rows, groups)
        bias = np.zeros(rows.log_priors.shape[1])
        initial = cls(np.full(groups, one), _FIRST_POWER, 1.0, bias, one)
        if len(rows.codes) < 2 * _FEW:
            return initial._improved(rows)
        # Rows come fold by fold, and folds are alike: the first of them tell nearly as much as all.
        few = rows.first(_FEW)
        few = few._replace(weights=few.weights * (rows.weights.sum() / max(few.weights.sum(), 1e-300)))
        return initial._improved(few, gain=_FIRST_GAIN)._improved(rows, damping=0.01)

    def fitted_further(self, rows: Scored, column: Array) -> "Exponents":
        """Return the exponents of evidence that has one more column (rows × classes), beginning with these."""
        evidence = rows.evidence.with_column(len(self.groups), column)
        return replace(self, further=np.ones(1))._improved(rows._replace(evidence=evidence))

    def _improved(self, rows: Scored, *, gain: float = _GAIN, damping: float = 0.1) -> "Exponents":
        # With very many classes none has a bias of its own: to find it takes a square of them, and rows of each.
        classes = len(self.bias)
        now = self if classes <= _MOST_BIASED else replace(self, bias=np.zeros(0))
        flat, total = now._flat(), rows.weights.sum()
        enough = gain * total
        power = len(self.groups) + len(self.further)
        low, high = np.full(len(flat), -np.inf), np.full(len(flat), np.inf)
        low[power], high[power] = _POWERS
        low[power + 1] = 0.0  # a class that is more frequent is not less likely
        # What single words add is not turned around: texts that come again would be taken for others.
        low[len(self.groups) : power] = 0.0
        loss, gradient, curvature = now._slope(rows)
        for _ in range(_STEPS):
            while True:
                moved = flat + _step(curvature, gradient, damping, low - flat, high - flat)
                then = now._at(moved)
                step = moved - flat
                expected = float(-(gradient @ step) - step @ curvature @ step / 2)  # as curved as where it starts
                if 0 <= expected < enough:
                    return then._with_biases(classes)  # the last step: what it gains need not be seen
                slope = then._slope(rows, curvature if 0 <= expected < _NEAR * total else None)
                if slope[0] <= loss or damping > 1e6:
                    break
                damping = max(10 * damping, 1e-3)
            gained = loss - slope[0]
            if gained >= 0:
                flat, now, damping = moved, then, damping / 10
                loss, gradient, curvature = slope
            if not gained >= enough:
                break
        return now._with_biases(classes)

    def _with_biases(self, classes: int) -> "Exponents":
        return self if len(self.bias) else replace(self, bias=np.zeros(classes))

    def _flat(self) -> Array:
        return np.concatenate([self._columns, [self.power, self.prior], self.bias])

    def _at(self, flat: Array) -> "Exponents":
        groups, further, rest = np.split(flat, [len(self.groups), len(self.groups) + len(self.further)])
        return replace(self, groups=groups, further=further, power=float(rest[0]), prior=float(rest[1]), bias=rest[2:])

    @property
    def _columns(self) -> Array:
        """How much each column of evidence counts."""
        return np.concatenate([self.groups, self.further])

    def log_posterior(self, rows: Scored) -> Array:
        """Return log p(class) of every row."""
        z = rows.evidence.weighed(self._columns) * np.exp(-self.power * rows.lengths)[:, None]
        z += self.prior * rows.log_priors + (self.bias if len(self.bias) else 0.0)
        z -= z.max(axis=1, keepdims=True)
        return np.asarray(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))

    def _slope(self, rows: Scored, known: Array | None = None) -> tuple[float, Array, Array]:
        """Return the loss, its gradient and its curvature: that which is known already, if it is given."""
        at = (self._columns, self.power, self.prior, self.bias)
        loss, gradient, found = native.exponent_slope(*rows, at, known is None)
        grouped, number = len(self.groups), len(self._columns)
        pull = ((self.groups - self.groups.mean()) / self.one) ** 2
        loss += float(pull.sum() + (self.prior - 1) ** 2 + (self.bias**2).sum() + ((self.further - 1) ** 2).sum())
        centred = (np.eye(grouped) - 1 / grouped) * (2 / self.one**2)
        gradient[:grouped] += centred @ self.groups
        gradient[grouped:number] += 2 * (self.further - 1)
        gradient[number + 1] += 2 * (self.prior - 1)
        gradient[number + 2 :] += 2 * self.bias
        if found is None:
            assert known is not None
            return loss, gradient, known
        found[:grouped, :grouped] += centred
        found[grouped:number, grouped:number] += 2 * np.eye(number - grouped)
        found[number + 1, number + 1] += 2
        found[number + 2 :, number + 2 :] += 2 * np.eye(len(self.bias))
        return loss, gradient, found


def _step(curvature: Array, gradient: Array, damping: float, low: Array, high: Array) -> Array:
    """Return the damped step of Newton's method. Numbers that it would take beyond their bounds stop there.

    >>> curvature, gradient = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-4.0, 1.0])
    >>> _step(curvature, gradient, 0.0, np.full(2, -9.0), np.ones(2)).round(6).tolist()
    [1.0, -1.0]
    """
    step, free = np.zeros(len(gradient)), np.full(len(gradient), True)
    while free.any():
        others = gradient[free] + curvature[np.ix_(free, ~free)] @ step[~free]
        # Not by LAPACK: the threads that it wakes would stay busy for a while, and in the way of ours.
        step[free] = -native.solve_damped(np.ascontiguousarray(curvature[np.ix_(free, free)]), others, damping)
        beyond = free & ((step < low) | (step > high))
        if not beyond.any():
            break
        step[beyond] = np.clip(step, low, high)[beyond]
        free &= ~beyond
    return step


def _one_for_all(rows: Scored, groups: int) -> float:
    """Return the best exponent if all groups had the same, among guesses; 1 if no row has evidence to tell by."""
    if not len(rows.evidence.columns):
        return 1.0
    total = rows.evidence.weighed(np.ones(groups))

    def best(number: int, low: int, high: int) -> int:
        """Return the best guess for the first rows, of those from low to high."""
        each, sums, log_priors = np.arange(number), total[:number], rows.log_priors[:number]
        z = np.empty_like(sums)  # one for all guesses: fresh memory would take as long as the sums

        @cache
        def loss(guess: int) -> float:
            np.multiply(sums, _GUESSES[guess], out=z)
            np.add(z, log_priors, out=z)
            np.subtract(z, z.max(axis=1, keepdims=True), out=z)
            right = z[each, rows.codes[:number]]
            return float(rows.weights[:number] @ (np.log(np.exp(z, out=z).sum(axis=1)) - right))

        # The loss is bowl-shaped: where it falls from one guess to the next, the best is beyond.
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if loss(middle + 1) < loss(middle) else (low, middle)
        return low

    last, number = len(_GUESSES) - 1, len(rows.codes)
    if number < 2 * _FEW:
        return float(_GUESSES[best(number, 0, last)])
    near = best(_FEW, 0, last)
    low, high = max(near - 2, 0), min(near + 2, last)
    found = best(number, low, high)
    # At an edge of what was looked at, the best may be beyond it.
    return float(_GUESSES[found if low < found < high else best(number, 0, last)])
