"""Which family a column of whole numbers follows: decided by likelihood, not by a rule of thumb."""

import math

import numpy as np

from likely import native
from likely.statistics import Array, Assignment
from likely.table import Block

# Larger numbers are no counts.
_MOST_COUNTED = 1e9


def family_of_integers(block: Block, assignment: Assignment) -> str:
    """Return "categorical", "poisson" or "gaussian", whichever explains one column of whole numbers best.

    Each gets the parameters of greatest likelihood in every class, and pays ½ log n for each of them (BIC). A
    Gaussian's density stands for the probability of a step between neighbouring numbers.

    >>> from likely.labels import read_assignment
    >>> from likely.table import read_table
    >>> dice = np.repeat(np.arange(1, 7), 20)[:, None]
    >>> family_of_integers(Block(read_table(dice), None), read_assignment(np.arange(120) % 2, None, 120))
    'categorical'
    """
    classes, codes, weights = assignment
    ((values, counts),) = native.collect_categories(block.dense(), block.columns, "real", len(classes), codes, weights)
    n = counts.sum(axis=0)
    if len(values) < 2 or not n.any():
        return "categorical"
    counts, n = counts[:, n > 0], n[n > 0]
    price = 0.5 * math.log(n.sum())
    k = len(n)
    with np.errstate(over="ignore", invalid="ignore"):
        gaussian = np.nan_to_num(_gaussian(values, counts, n), nan=-np.inf)
    scores = {
        "categorical": _categorical(counts, n) - price * k * (len(values) - 1),
        "gaussian": gaussian - price * k * 2,
    }
    if values[0] >= 0 and values[-1] < _MOST_COUNTED:
        scores["poisson"] = _poisson(values, counts, n) - price * k
    return max(scores, key=lambda name: scores[name])


def _categorical(counts: Array, n: Array) -> float:
    shares = counts / n
    return float((counts * np.log(np.where(counts > 0, shares, 1.0))).sum())


def _gaussian(values: Array, counts: Array, n: Array) -> float:
    step = np.diff(values).min()
    mean = values @ counts / n
    variance = (counts * (values[:, None] - mean) ** 2).sum(axis=0) / n
    variance = np.maximum(variance, step**2 / 12)  # that of a number known to one step only
    return float((-0.5 * n * (np.log(2 * np.pi * variance / step**2) + 1)).sum())


def _poisson(values: Array, counts: Array, n: Array) -> float:
    rate = values @ counts / n
    log_factorial = np.array([math.lgamma(value + 1) for value in values])
    log_rate = np.log(np.where(rate > 0, rate, 1.0))
    return float((counts * (values[:, None] * log_rate - rate - log_factorial[:, None])).sum())
