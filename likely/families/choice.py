"""Whether a column of whole numbers holds categories, counts or amounts: the likeliest by BIC."""

import math

import numpy as np

from likely import native
from likely.data.table import Block
from likely.statistics import Array, Assignment

# Larger numbers are no counts.
_MOST_COUNTED = 1e9
# Steps that are narrower, in standard deviations, are integrated by a series: what is left out is below 1e-6.
_NARROW = 0.2
_ROOT2 = math.sqrt(2.0)


def family_of_integers(block: Block, assignment: Assignment, most_categories: int | None = None) -> str:
    """Return "categorical", "poisson" or "gaussian", whichever explains one column of whole numbers best.

    Each is a probability of whole numbers: a Gaussian's is that of a step around each of them, a difference of its
    distribution function. Each has the parameters of greatest likelihood in every class and pays ½ log n for each of
    them (BIC). Categories pay for their support, too: log C(R, V) to say which V of the R numbers in their range exist.

    Parameters
    ----------
    block, assignment
        the column, and the classes of its rows
    most_categories
        so many distinct numbers at most are taken for categories; by default any number of them

    Examples
    --------
    >>> from likely.data.labels import read_assignment
    >>> from likely.data.table import read_table
    >>> dice = np.repeat(np.arange(1, 7), 20)[:, None]
    >>> family_of_integers(Block(read_table(dice), None), read_assignment(np.arange(120) % 2, None, 120))
    'categorical'
    >>> amounts = np.arange(120)[:, None] ** 2
    >>> family_of_integers(Block(read_table(amounts), None), read_assignment(np.arange(120) % 2, None, 120))
    'gaussian'
    """
    classes, codes, weights = assignment
    ((values, counts),) = native.collect_categories(block.dense(), block.columns, "real", len(classes), codes, weights)
    n = counts.sum(axis=0)
    if len(values) < 2 or not n.any():
        return "categorical"
    if not np.all(values == np.trunc(values)):
        return "gaussian"  # the column's declared type was whole numbers, or a sample of it was
    counts, n = counts[:, n > 0], n[n > 0]
    price = 0.5 * math.log(max(n.sum(), 2.0))
    k, step = len(n), _step(values)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gaussian = np.nan_to_num(_gaussian(values, counts, n, step), nan=-np.inf)
    scores = {"gaussian": gaussian - price * k * 2}
    if values[0] >= 0 and values[-1] < _MOST_COUNTED:
        scores["poisson"] = _poisson(values, counts, n) - price * k
    if most_categories is None or len(values) <= most_categories:
        support = _log_subsets((values[-1] - values[0]) / step + 1, len(values))
        scores = {"categorical": _categorical(counts, n) - price * k * (len(values) - 1) - support, **scores}
    return max(scores, key=lambda name: scores[name])


def _step(values: Array) -> float:
    """Return the greatest step of which all differences between numbers are multiples."""
    differences = np.diff(values)
    return float(np.gcd.reduce(differences.astype(np.int64)) if differences.max() < 2**53 else differences.min())


def _log_subsets(numbers: float, chosen: int) -> float:
    """Return log C(numbers, chosen)."""
    if numbers > 1e6 * chosen:  # where logarithms of factorials would lose the digits of their difference
        return chosen * math.log(numbers) - math.lgamma(chosen + 1)
    return math.lgamma(numbers + 1) - math.lgamma(chosen + 1) - math.lgamma(numbers - chosen + 1)


def _categorical(counts: Array, n: Array) -> float:
    p = counts / n
    return float((counts * np.log(np.where(counts > 0, p, 1.0))).sum())


def _gaussian(values: Array, counts: Array, n: Array, step: float) -> float:
    mean = values @ counts / n
    variance = (counts * (values[:, None] - mean) ** 2).sum(axis=0) / n
    deviation = np.sqrt(np.maximum(variance, step**2 / 12))  # that of a number known to one step only
    total = 0.0
    for c in range(len(n)):
        seen = counts[:, c] > 0
        total += float(counts[seen, c] @ _log_masses((values[seen] - mean[c]) / deviation[c], step / deviation[c]))
    return total


def _log_masses(z: Array, width: float) -> Array:
    """Return log of Φ(z + ½ width) − Φ(z − ½ width), without losing the tails."""
    z = np.abs(z)  # both sides are alike, and the upper tail keeps its digits
    with np.errstate(divide="ignore", invalid="ignore"):
        if width < _NARROW:
            # φ(z) ∫ exp(−zt − ½t²) dt over a step: that of exp(−zt), less half the mean of t² under it
            s = 0.5 * z * width
            log_sinhc = np.where(s < 1e-3, s**2 / 6, s + np.log1p(-np.exp(-2 * s)) - np.log(2 * s))
            square = np.where(s < 0.05, 1 / 3 + 2 / 45 * s**2, 1 - 2 * (s / np.tanh(s) - 1) / s**2) * width**2 / 4
            return np.asarray(np.log(width) + log_sinhc - 0.5 * (z**2 + math.log(2 * math.pi) + square))
        near = z - 0.5 * width
        mass = np.array([0.5 * (math.erfc(a / _ROOT2) - math.erfc((a + width) / _ROOT2)) for a in near.tolist()])
        # Beyond what a double holds, the tail is φ(a)/a, and what lies behind the step is nothing beside it.
        far = -0.5 * (near**2 + math.log(2 * math.pi)) - np.log(np.maximum(near, 1.0))
        return np.where(mass > 0, np.log(mass), far)


def _poisson(values: Array, counts: Array, n: Array) -> float:
    rate = values @ counts / n
    log_factorial = np.array([math.lgamma(value + 1) for value in values])
    log_rate = np.log(np.where(rate > 0, rate, 1.0))
    return float((counts * (values[:, None] * log_rate - rate - log_factorial[:, None])).sum())
