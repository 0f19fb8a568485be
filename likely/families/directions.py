"""Directions that tell classes apart: where their means differ most, measured by how much they vary within."""

from typing import NamedTuple

import numpy as np

from likely.families.gaussian_density import FlatGaussian, FullGaussian
from likely.statistics import Array


class Directions(NamedTuple):
    """Vectors (columns × directions), the best first, along which all classes vary by 1; and what each explains."""

    vectors: Array
    shares: Array
    """of the variance between classes, one for each vector"""


def by_means(density: FullGaussian, weights: Array, tolerance: float) -> Directions:
    """Return the directions between the weighted means of classes that share a covariance.

    Those are left out along which the means differ by less than ``tolerance`` times the most they do.
    """
    whitening = density.directions if isinstance(density, FlatGaussian) else density.whitener[0].T
    apart = np.sqrt(weights)[:, None] * (density.mean - weights @ density.mean)
    _, sizes, vectors = np.linalg.svd(apart @ whitening, full_matrices=False)
    explained = _shares(sizes**2)
    kept = sizes > tolerance * sizes.max(initial=0.0)
    return Directions(whitening @ vectors.T[:, kept], explained)


def by_total(density: FullGaussian, total: Array) -> Directions:
    """Return the directions in which the covariance of all rows exceeds that of the classes, one for each column."""
    whitener = density.whitener[0]
    between = whitener @ (total - density.covariance[0]) @ whitener.T
    sizes, vectors = np.linalg.eigh((between + between.T) / 2)
    # Of shrunk covariances the sizes, and their sum, may be negative: shares are sorted by themselves.
    return Directions(whitener.T @ vectors[:, ::-1], np.sort(_shares(sizes))[::-1])


def _shares(sizes: Array) -> Array:
    whole = sizes.sum()
    return sizes / whole if whole != 0 else np.zeros_like(sizes)
