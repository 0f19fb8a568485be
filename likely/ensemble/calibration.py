"""Honest probabilities: how much each member's log posterior counts, and a bias of each class, by least log-loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likely.native import posterior_in_place
from likely.statistics import Array, ClassCodes

LEAST = -60.0
"""Log posteriors are not taken to be lower than this."""

_STEPS = 100
_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Calibration:
    """softmax(Σ_m w_m ℓ_m + b) of the log posteriors ℓ_m of some members.

    With cells missing that never were in training, members are too sure to another degree. So where only a share s of
    the cells is known, weights are s w + (1 − s) v, and biases s b + (1 − s)(1 − Σv) log p(y). Where no cell is known,
    all members return the class priors, and so does this.

    Parameters
    ----------
    weights
        w, of each member, 0 or more: an inverse temperature
    bias
        b, of each class
    rows
        how many rows it was fitted on: no probability is lower than the share of its class among one more row
    hidden_weights
        v, of each member, 0 or more: towards which its weight goes the more cells are missing

    Examples
    --------
    >>> too_sure = np.log([[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.01, 0.99]])
    >>> calibration = Calibration.fitted([too_sure], np.array([0, 0, 1, 1]))
    >>> np.exp(calibration.log_posterior([too_sure[:1]], np.array([0.5, 0.5]))).round(1)
    array([[0.7, 0.3]])
    """

    weights: Array
    bias: Array
    rows: float
    hidden_weights: Array

    @classmethod
    def fitted(
        cls,
        scores: Sequence[Array],
        codes: ClassCodes,
        weights: Array | None = None,
        *,
        biased: bool = True,
    ) -> "Calibration":
        """Fit on log posteriors of rows that the members were not fitted on, and the indices of their classes.

        The weights of members are drawn to 1/M and the biases to 0, as by one row's surprise; without ``biased`` all
        biases are 0.
        """
        loss = _Loss(scores, codes, weights, biased)
        parameters = _minimum(loss)
        m = len(scores)
        bias = parameters[m:] if biased else np.zeros(scores[0].shape[1])
        rows = float(len(codes) if weights is None else weights.sum())
        return cls(parameters[:m], bias, rows, np.full(m, 1 / m))

    def with_hidden(
        self, scores: Sequence[Array], known: Array, codes: ClassCodes, weights: Array | None, priors: Array
    ) -> "Calibration":
        """Fit v, drawn to 1/M, on rows of which but a share of the cells is ``known``; all else stays as it is."""
        hidden, log_priors = (1 - known)[:, None], np.log(priors)
        fixed = replace(self, hidden_weights=np.zeros_like(self.weights)).total(scores, priors, known)
        beyond = [hidden * (np.maximum(score, LEAST) - log_priors) for score in scores]
        return replace(self, hidden_weights=_minimum(_Loss(beyond, codes, weights, False, fixed)))

    def by_known(self, known: Array) -> tuple[Array, Array]:
        """Return the weight of every member, rows × members, and of log p(y), by the share of cells that is known."""
        s = known[:, None]
        return s * self.weights + (1 - s) * self.hidden_weights, (1 - known) * (1 - self.hidden_weights.sum())

    def total(self, scores: Sequence[Array], priors: Array, known: Array | None = None) -> Array:
        """Return Σ_m w_m ℓ_m + b of rows × classes; ``known``: which share of the cells of each row is known."""
        if known is None:
            total, weights = np.broadcast_to(self.bias, scores[0].shape).copy(), self.weights[None]
        else:
            weights, prior = self.by_known(known)
            total = known[:, None] * self.bias + prior[:, None] * np.log(priors)
        for weight, score in zip(weights.T, scores, strict=True):
            total += weight[:, None] * np.maximum(score, LEAST)
        return total

    def log_posterior(self, scores: Sequence[Array], priors: Array, known: Array | None = None) -> Array:
        """Return calibrated log posteriors; ``priors``: those of the classes among all rows.

        ``known``: which share of the cells of each row is known; None if all are.
        """
        total = self.total(scores, priors, known)
        posterior_in_place(total, np.log(priors), False)
        total *= self.rows
        total += priors
        total /= self.rows + 1
        return np.asarray(np.log(total, out=total))

    def tempered(self, temperature: float) -> "Calibration":
        """Return the calibration of log posteriors multiplied with a number."""
        return replace(
            self,
            weights=self.weights * temperature,
            bias=self.bias * temperature,
            hidden_weights=self.hidden_weights * temperature,
        )

    def validate(self) -> None:
        """Raise ValueError unless weights and rows are not negative."""
        sizes = self.weights.ndim, self.bias.ndim, self.hidden_weights.shape
        if sizes != (1, 1, self.weights.shape) or (self.weights < 0).any() or (self.hidden_weights < 0).any():
            raise ValueError("expected weights of members that are not negative and a bias of each class, got others")
        if not self.rows >= 0:
            raise ValueError(f"expected a number of rows that is not negative, got {self.rows!r}")


def log_loss(score: Array, codes: ClassCodes, weights: Array | None = None) -> float:
    """Return the mean log-loss after the best temperature, which tells how good scores can be made.

    >>> log_loss(np.log([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 1])) < 0.11
    True
    """
    return fitted_temperature(score, codes, weights)[0]


def fitted_temperature(score: Array, codes: ClassCodes, weights: Array | None = None) -> tuple[float, float]:
    """Return the least mean log-loss, and what log posteriors are to be multiplied with to have it.

    >>> too_sure = np.log([[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.01, 0.99]])
    >>> loss, temperature = fitted_temperature(np.tile(too_sure, (50, 1)), np.tile([0, 0, 1, 1], 50))
    >>> round(loss, 2), round(temperature, 2)
    (0.56, 0.24)
    """
    loss = _Loss([score], codes, weights, False)
    total = len(codes) if weights is None else weights.sum()
    best = _minimum(loss, close=1e-6)
    return loss(best) / max(float(total), 1.0), float(best[0])


class _Loss:
    """The summed log-loss and its penalty, a convex function of (w, b), with its first two derivatives.

    ``fixed`` is added to what the parameters make of the scores, rows × classes.
    """

    def __init__(
        self,
        scores: Sequence[Array],
        codes: ClassCodes,
        weights: Array | None,
        biased: bool,
        fixed: Array | None = None,
    ):
        # Members × classes × rows: classes are few, and sums over them run along rows. Less the true class's score,
        # so that the loss is log Σ exp.
        self.scores = np.maximum([score.T for score in scores], LEAST)
        rows = np.arange(len(codes))
        self.scores -= self.scores[:, codes, rows][:, None]
        self.fixed = 0.0 if fixed is None else (fixed - fixed[rows, codes][:, None]).T
        self.codes, self.weights, self.biased = codes, weights, biased
        self.members, self.classes, _ = self.scores.shape
        self.counts = np.bincount(codes, weights, self.classes)
        self.aim = np.concatenate([np.full(self.members, 1 / self.members), np.zeros(self.classes * biased)])

    def _exponentials(self, parameters: Array) -> tuple[Array, Array, Array]:
        """Return exp(total − highest), its sum over classes, and the highest total."""
        total = parameters[0] * self.scores[0] + self.fixed
        for weight, score in zip(parameters[1:], self.scores[1:], strict=False):
            total += weight * score
        if self.biased:
            b = parameters[self.members :]
            total += b[:, None] - b[self.codes]
        highest = total.max(axis=0)
        total -= highest
        np.exp(total, out=total)
        return total, total.sum(axis=0), highest

    def __call__(self, parameters: Array) -> float:
        _, summed, highest = self._exponentials(parameters)
        loss = highest + np.log(summed)
        total = loss.sum() if self.weights is None else loss @ self.weights
        return float(total + 0.5 * ((parameters - self.aim) ** 2).sum())

    def derivatives(self, parameters: Array) -> tuple[Array, Array]:
        """Return the gradient and the matrix of second derivatives."""
        p, summed, _ = self._exponentials(parameters)
        p /= summed
        m, u = self.members, self.weights
        gradient, hessian = parameters - self.aim, np.eye(len(self.aim))
        seen = p.sum(axis=1) if u is None else p @ u
        if self.biased:
            gradient[m:] += seen - self.counts
            hessian[m:, m:] += np.diag(seen) - p @ (p if u is None else p * u).T
        for i, score in enumerate(self.scores):
            weighed = score * p
            expected = weighed.sum(axis=0)
            if u is not None:
                weighed *= u
            gradient[i] += expected.sum() if u is None else expected @ u
            # The covariance, under p, of this member's score with another's, or with a class.
            weighed -= (expected if u is None else expected * u) * p
            for j in range(i + 1):
                hessian[i, j] += np.vdot(weighed, self.scores[j])
                hessian[j, i] = hessian[i, j]
            if self.biased:
                hessian[i, m:] += weighed.sum(axis=1)
                hessian[m:, i] = hessian[i, m:]
        return gradient, hessian


def _minimum(loss: _Loss, close: float = _CLOSE) -> Array:
    """Return the parameters of least loss: Newton's method, in which weights that would be negative stay at 0."""
    parameters = loss.aim.copy()
    m = loss.members
    value = loss(parameters)
    for _ in range(_STEPS):
        gradient, hessian = loss.derivatives(parameters)
        held = np.zeros(len(parameters), dtype=bool)
        held[:m] = (parameters[:m] <= 0) & (gradient[:m] > 0)
        free = np.flatnonzero(~held)
        step = np.zeros_like(parameters)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        decrease = float(gradient @ step)
        if decrease <= close * (1 + abs(value)):
            break
        length = 1.0
        while length > 1e-10:
            tried = parameters - length * step
            tried[:m] = np.maximum(tried[:m], 0.0)
            reached = loss(tried)
            if reached <= value - 1e-4 * float(gradient @ (parameters - tried)):
                break
            length *= 0.5
        else:
            break
        parameters, value = tried, reached
    return parameters
