"""Exponents that discount evidence: how much each group of words counts, fitted on rows scored out of fold.

Words of a text repeat each other, so their evidence for a class, added up, is too sure of itself. The score z of a
class is the sum over groups of exponent × evidence, divided by a power of the length, plus κ log p(class) and a bias of
the class. The exponents minimise −Σ log softmax(z) of the right classes, with a pull of each towards their mean, of κ
towards 1 and of the biases towards 0. Newton's method, damped: there are some seventy numbers, and a bias for each
class.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.statistics import Array

# Cells of evidence that are looked at together.
_TILE = 1 << 22
_STEPS, _GAIN = 30, 1e-6
_POWERS = (-0.5, 1.5)
_MOST_BIASED = 500
_FIRST_POWER = 0.5
# How far apart, in logarithms, the first guesses of one exponent for all are.
_GUESSES = np.exp(np.arange(-6.0, 0.25, 0.25))


class Scored(NamedTuple):
    """Rows with the evidence of every group of words, found without their own fold.

    ``evidence``: rows × classes × groups; ``lengths``: log of the length over that of a usual row; ``log_shares``: log
    p(class) without the row's fold; ``codes``: the right class; ``weights``: how much each row counts.
    """

    evidence: NDArray[np.float32]
    lengths: Array
    log_shares: Array
    codes: NDArray[np.int64]
    weights: Array

    def tiles(self) -> Iterator["Scored"]:
        """Return the rows, some at a time."""
        step = max(_TILE // max(self.evidence[:1].size, 1), 1)
        for first in range(0, len(self.codes), step):
            some = slice(first, first + step)
            yield Scored(
                self.evidence[some], self.lengths[some], self.log_shares[some], self.codes[some], self.weights[some]
            )


@dataclass(frozen=True, eq=False)
class Exponents:
    """How much the evidence of each group counts (groups), the power of the length, that of p(class), and biases."""

    groups: Array
    power: float
    prior: float
    bias: Array

    @classmethod
    def fitted(cls, rows: Scored) -> "Exponents":
        """Return the exponents that make the right classes of these rows likeliest."""
        number, classes = rows.evidence.shape[2], rows.evidence.shape[1]
        one = _one_for_all(rows)
        # With very many classes none has a bias of its own: to find it takes a square of them, and rows of each.
        biased = classes if classes <= _MOST_BIASED else 0
        flat = np.concatenate([np.full(number, one), [_FIRST_POWER, 1.0], np.zeros(biased)])
        now, damping = cls._at(flat, number), 1e-3
        loss, gradient, curvature = now._slope(rows, one)
        for _ in range(_STEPS):
            while True:
                damped = curvature + np.diag(damping * np.diag(curvature) + 1e-9)
                moved = flat - np.linalg.solve(damped, gradient)
                moved[number] = np.clip(moved[number], *_POWERS)
                then = cls._at(moved, number)
                slope = then._slope(rows, one)
                if slope[0] <= loss or damping > 1e6:
                    break
                damping = max(10 * damping, 1e-3)
            gain = loss - slope[0]
            if gain >= 0:
                flat, now, damping = moved, then, damping / 10
                loss, gradient, curvature = slope
            if gain < _GAIN * rows.weights.sum():
                break
        return now if biased else replace(now, bias=np.zeros(classes))

    @classmethod
    def _at(cls, flat: Array, number: int) -> "Exponents":
        return cls(flat[:number], float(flat[number]), float(flat[number + 1]), flat[number + 2 :])

    def log_posterior(self, rows: Scored) -> Array:
        """Return log p(class) of every row."""
        return np.concatenate([self._log_posterior(tile) for tile in rows.tiles()])

    def _log_posterior(self, rows: Scored) -> Array:
        # One product of a matrix and a vector: NumPy would take a stack of them one by one.
        flat = rows.evidence.reshape(-1, rows.evidence.shape[2]) @ self.groups.astype(np.float32)
        z = flat.reshape(rows.log_shares.shape) * np.exp(-self.power * rows.lengths)[:, None]
        z += self.prior * rows.log_shares + (self.bias if len(self.bias) else 0.0)
        z -= z.max(axis=1, keepdims=True)
        return np.asarray(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))

    def _slope(self, rows: Scored, one: float) -> tuple[float, Array, Array]:
        """Return the loss, its gradient and its curvature (but for how the power bends the scores)."""
        at = (self.groups, self.power, self.prior, self.bias)
        loss, gradient, curvature = native.exponent_slope(*rows, at)
        number = len(self.groups)
        pull = ((self.groups - self.groups.mean()) / one) ** 2
        loss += float(pull.sum() + (self.prior - 1) ** 2 + (self.bias**2).sum())
        centred = (np.eye(number) - 1 / number) * (2 / one**2)
        gradient[:number] += centred @ self.groups
        curvature[:number, :number] += centred
        gradient[number + 1] += 2 * (self.prior - 1)
        curvature[number + 1, number + 1] += 2
        gradient[number + 2 :] += 2 * self.bias
        curvature[number + 2 :, number + 2 :] += 2 * np.eye(len(self.bias))
        return loss, gradient, curvature


def _one_for_all(rows: Scored) -> float:
    """Return the best exponent if all groups had the same, among guesses."""
    number = rows.evidence.shape[2]
    total = (rows.evidence.reshape(-1, number) @ np.ones(number, dtype=np.float32)).reshape(rows.log_shares.shape)
    each = np.arange(len(rows.codes))

    @cache
    def loss(guess: int) -> float:
        z = _GUESSES[guess] * total + rows.log_shares
        z -= z.max(axis=1, keepdims=True)
        return float(rows.weights @ (np.log(np.exp(z).sum(axis=1)) - z[each, rows.codes]))

    # The loss is bowl-shaped: where it falls from one guess to the next, the best is beyond.
    low, high = 0, len(_GUESSES) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if loss(middle + 1) < loss(middle) else (low, middle)
    return float(_GUESSES[low])
