"""The EM loop: the only one, for everything in which something is not seen.

Missing cells under a full covariance, joint categories with missing cells, hidden classes (mixtures), labels partly
known, and scikit-learn's Gaussian mixtures all take steps that this loop ends. What a step is, they say themselves:
expect what is hidden under the present parameters, collect the statistics, solve them for the next parameters.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

# An extrapolation is taken back if it makes the next step this many times as long as the last one.
_LONGEST = 20.0


class Ended(NamedTuple, Generic[T]):
    """Where EM has ended, whether by itself, and the change of its last step."""

    at: T
    converged: bool
    change: float


def iterate(
    at: T,
    step: Callable[[T], T],
    change: Callable[[T, T], float],
    *,
    tolerance: float,
    most: int,
    extrapolate: Callable[[list[T]], T] | None = None,
) -> Ended[T]:
    """Take EM steps until one changes less than the tolerance, or ``most`` were taken.

    Parameters
    ----------
    at
        where to start
    step
        what an EM step leads to
    change
        how far the new is from the old: a difference of parameters, or a gain in log-likelihood; NaN ends the steps
    extrapolate
        where three steps in a row seem to lead (SQUAREM: Varadhan and Roland, 2008), taken after every two steps and
        taken back if the step from there is much longer, or if it, or the extrapolation, raises LinAlgError

    Examples
    --------
    >>> iterate(1.0, lambda x: 1 + x / 2, lambda new, old: new - old, tolerance=1e-3, most=100).at
    1.9990234375
    """
    new, moved, length, trail = at, np.inf, np.inf, [at]
    before: T | None = None  # where the last extrapolation began, which may be taken back
    for _ in range(most):
        try:
            new = step(at)
            moved = abs(change(new, at))
        except np.linalg.LinAlgError:
            if before is None:
                raise
            moved = np.inf
        if moved < tolerance:
            return Ended(new, True, moved)
        if before is not None and not moved <= _LONGEST * length:
            at, trail, before = before, [before], None
            continue
        if np.isnan(moved):
            break
        at, length, before = new, moved, None
        if extrapolate is not None:
            trail.append(new)
            if len(trail) == 3:
                try:
                    at, before = extrapolate(trail), new
                except np.linalg.LinAlgError:
                    before = None
                trail = [at]
    return Ended(new, False, moved)
