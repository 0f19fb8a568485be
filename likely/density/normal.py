"""The normal distribution and its quantiles, of arrays of any shape."""

import numpy as np
from numpy.typing import ArrayLike

from likely import native
from likely.statistics import Array


def ndtr(x: ArrayLike) -> Array:
    """Return Φ(x), to its last digits in both tails.

    >>> float(ndtr(0.0)), float(ndtr(-40.0)) < 1e-300
    (0.5, True)
    """
    found = np.ascontiguousarray(x, dtype=np.float64)
    return native.normal_distribution(found.ravel()).reshape(np.shape(x))


def ndtri(p: ArrayLike) -> Array:
    """Return Φ⁻¹(p).

    >>> float(ndtri(0.975).round(9)), ndtri([0.0, 1.0]).tolist()
    (1.959963985, [-inf, inf])
    """
    found = np.ascontiguousarray(p, dtype=np.float64)
    return native.normal_quantiles(found.ravel()).reshape(np.shape(p))


def bins_of_normal(mean: Array, deviation: ArrayLike, bins: int) -> Array:
    """Return how much of normal distributions lies in each of so many bins of equal weight, distributions × bins.

    >>> bins_of_normal(np.array([0.0, 9.0]), 1.0, 4).round(2).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]]
    """
    below = ndtr((ndtri(np.arange(1, bins) / bins) - mean[:, None]) / np.reshape(deviation, (-1, 1)))
    ends = np.zeros((len(mean), 1)), np.ones((len(mean), 1))
    return np.diff(np.concatenate([ends[0], below, ends[1]], axis=1), axis=1)
