"""Semi-supervised learning: rows without a label are learned with the responsibilities that the model expects.

If the joint alone compares classes, that is expectation maximisation, and the likelihood of all rows (or with a prior,
the posterior) rises to a maximum. A calibrated comparison is learned in the same way, a few steps: sums are of all
rows, but what is chosen and calibrated is judged by the rows whose labels are known.

Whether rows without a label help is asked of the others: they are taken away, fold by fold, and their labels expected.
"""

import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.distinct import content_ranks
from likely.data.table import Table
from likely.ensemble.calibration import LEAST, fitted_temperature
from likely.families import UnsolvableError
from likely.learn.hidden import Hidden, em
from likely.learn.one_pass import assign_folds
from likely.model.state import State
from likely.native import posterior_in_place
from likely.statistics import Array, Assignment

_FOLDS = 4
# Steps of a comparison that is calibrated: more change little, and each fits it anew.
_STEPS = 4
# Smaller responsibilities are left out there, and the others of a row add up to one.
_LEAST_RESPONSIBILITY = 0.05
# Steps of expectation maximisation, and the least gain of one for each row.
_MOST_STEPS = 300
_TOLERANCE = 1e-7

Begin = Callable[[Table, Assignment, NDArray[np.bool_] | None], State]


class HeldOutLoss(NamedTuple):
    """How well labels that were not given are expected."""

    losses: Array
    """the log-loss of each row that has a label, after the best temperature"""
    weights: Array
    """how much each of them counts"""
    temperature: float
    """by which log posteriors are to be multiplied"""

    def better_than(self, other: "HeldOutLoss") -> bool:
        """Say whether the losses are less than others, by more than the standard error of their differences."""
        with np.errstate(invalid="ignore"):  # losses are infinite where nothing could be learned
            gain, weights = other.losses - self.losses, self.weights
            mean = np.average(gain, weights=weights)
            return bool(mean > np.sqrt(np.average((gain - mean) ** 2, weights=weights) / weights.sum()))


class PartiallyLabelled(NamedTuple):
    """Rows of which only some have a label: the code of others is −1. ``begin`` learns rows that have one.

    ``begin`` takes rows, their classes, and which of these were guessed.
    """

    table: Table
    assignment: Assignment
    begin: Begin

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        return self.assignment.codes >= 0

    def learned(self, unlabelled: float | str) -> tuple[State, float]:
        """Learn from all rows. Returns what was learned, and how much each row without a label counted.

        ``unlabelled``: how much, or "auto": 1 if labels are expected better than without them, and else 0.
        """
        weight = 1.0 if isinstance(unlabelled, str) else unlabelled
        held_out = None
        if isinstance(unlabelled, str):
            held_out = self.held_out_loss(weight)
            if not held_out.better_than(self.held_out_loss(0.0)):
                return self.expected(0.0), 0.0
        state = self.expected(weight)
        if state.calibrated and weight > 0:
            # Responsibilities are of a model that knew the labels it was calibrated by: it is less sure than it seems.
            state = state.tempered((held_out or self.held_out_loss(weight)).temperature)
        return state, weight

    def expected(self, weight: float) -> State:
        """Learn from rows with a label, and then from those without by what they are expected to be."""
        known = self.known
        state = self.begin(self.table.taken(known), self.assignment.taken(known), None)
        if weight == 0 or known.all():
            return state
        apart = state.calibrated or any(part.family.needs_density for part in state.parts)
        if not apart and not self.table.strings:
            weights = np.where(known, 1.0, weight) * self._weights
            rows = Hidden(self.table, self.assignment.codes, weights)
            given = state.given_weights
            found = em(rows, state.statistics, state.parts, tolerance=_TOLERANCE, most=_MOST_STEPS, priors=given)
            return state.with_statistics(found.statistics)
        others = self.table.taken(~known)
        for _ in range(_STEPS):
            state = self.begin(*self._with_soft_labels(state.comparison.posterior(others), weight))
        return state

    def held_out_loss(self, weight: float) -> HeldOutLoss:
        """Take one fold of rows with a label away after the other, and see how well their labels are expected."""
        rows = np.flatnonzero(self.known)
        codes, own = self.assignment.codes[rows], self._weights[rows]
        nothing = HeldOutLoss(np.full(len(rows), np.inf), own, 1.0)
        # By their content, so that neither their order nor how often each is written matters.
        rank = content_ranks(self.table.taken(rows), self.assignment.taken(rows))
        _, first = np.unique(rank, return_index=True)
        folds = assign_folds(codes[first], min(_FOLDS, len(first)))[rank]
        if folds.max() == 0:  # without it none could be learned from
            return nothing
        found = np.empty((len(rows), len(self.assignment.classes)))
        for fold in range(int(folds.max()) + 1):
            held = rows[folds == fold]
            hidden, weights = self.assignment.codes.copy(), self._weights.copy()
            hidden[held], weights[held] = -1, 0.0
            try:
                left = Assignment(self.assignment.classes, hidden, weights)
                state = self._replace(assignment=left).expected(weight)
                found[folds == fold] = state.comparison.posterior(self.table.taken(held), log=True)
            except UnsolvableError:
                return nothing
        found = np.maximum(np.nan_to_num(found, nan=LEAST), LEAST)
        _, temperature = fitted_temperature(found, codes, own)
        found *= temperature
        posterior_in_place(found, np.zeros(found.shape[1]), True)
        return HeldOutLoss(-found[np.arange(len(rows)), codes], own, temperature)

    @property
    def _weights(self) -> Array:
        weights = self.assignment.weights
        return np.ones(self.table.rows) if weights is None else weights

    def _with_soft_labels(self, responsibilities: Array, weight: float) -> tuple[Table, Assignment, NDArray[np.bool_]]:
        """Return all rows, those without a label once for each class that may be theirs, and which these are.

        ``responsibilities``: rows without a label × classes.
        """
        known, weights = self.known, self._weights
        least = np.minimum(_LEAST_RESPONSIBILITY, responsibilities.max(axis=1, keepdims=True))
        kept = np.where(responsibilities < least, 0.0, responsibilities)
        kept /= kept.sum(axis=1, keepdims=True)
        of, codes = np.nonzero(kept)
        labelled, others = np.flatnonzero(known), np.flatnonzero(~known)[of]
        rows = np.concatenate([labelled, others])
        counted = np.concatenate([weights[labelled], weights[others] * kept[of, codes] * weight])
        classes = np.concatenate([self.assignment.codes[labelled], codes]).astype(np.int32)
        guessed = np.arange(len(rows)) >= len(labelled)
        return self.table.taken(rows), Assignment(self.assignment.classes, classes, counted), guessed


def check_unlabelled(unlabelled: Any) -> float | Literal["auto"] | None:
    """Return how much rows without a label count, or raise ValueError if that is not said well."""
    if unlabelled is None:
        return None
    if isinstance(unlabelled, str) and unlabelled == "auto":
        return "auto"
    number = isinstance(unlabelled, int | float | np.integer | np.floating) and not isinstance(unlabelled, bool)
    if not number or not 0 <= unlabelled <= sys.float_info.max:
        raise ValueError(
            f"expected unlabelled='auto', None, or how much a row without a label counts beside one with, got "
            f"{unlabelled!r}"
        )
    return float(unlabelled)
