"""Gaussians whose covariances a scikit-learn covariance estimator finds, from the rows of each class."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.data.table import Block
from likely.families import Gaussian
from likely.statistics import Array, Assignment, Statistics


@dataclass(frozen=True)
class EstimatedGaussian(Gaussian):
    """A full Gaussian in every class with the covariance that ``estimator`` finds there.

    Its statistics hold n times each covariance in place of the scatter, so that solving them gives it back.
    """

    estimator: Any = None

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        x, classes = block.values(), assignment.classes
        if assignment.weights is not None:
            raise ValueError("expected no sample_weight with a covariance_estimator, which knows none: leave it out")
        codes = assignment.codes
        weight = np.bincount(codes, minlength=len(classes)).astype(np.float64)
        mean = np.stack([x[codes == c].mean(axis=0) for c in range(len(classes))])
        covariance = np.stack([self._estimate(x[codes == c]) for c in range(len(classes))])
        sums = {
            "weight": weight,
            "sum": np.zeros_like(mean),
            "product": weight[:, None, None] * covariance,
            "total": weight.sum() * self._estimate(x),
        }
        axes = {
            "weight": ("class",),
            "sum": ("class", "column"),
            "product": ("class", "column", "other column"),
            "total": ("column", "other column"),
        }
        return Statistics(sums, axes, {"class": classes}, mean)

    def total(self, statistics: Statistics) -> Array:
        """Return the covariance that was found for all rows together."""
        return np.asarray(statistics.sums["total"] / statistics.sums["weight"].sum())

    def _estimate(self, x: Array) -> Array:
        self.estimator.fit(x)
        if not hasattr(self.estimator, "covariance_"):
            raise ValueError(f"{type(self.estimator).__name__} does not have a covariance_ attribute")
        return np.atleast_2d(np.asarray(self.estimator.covariance_, dtype=np.float64))
