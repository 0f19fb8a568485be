"""Components of Gaussian mixtures in the shapes that scikit-learn has them in, as families and densities, and back."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_array

from likely.families import Density, Gaussian
from likely.families.gaussian import DiagonalGaussian, FullGaussian
from likely.families.moments import Moments, over
from likely.joint import Joint, Part
from likely.statistics import Array, JointStatistics, Statistics

# What each type is called here: a covariance, and whether it is tied.
TYPES = {
    "full": ("full", False),
    "tied": ("full", True),
    "diag": ("diagonal", False),
    "spherical": ("spherical", False),
}
# A component of one row has no variance. scikit-learn's own sums leave it this share of the square of its mean.
_LEFT_BY_ROUNDING = 10 * np.finfo(np.float64).eps
_COLLAPSED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
    "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or scale "
    "the input data."
)


@dataclass(frozen=True)
class ComponentGaussian(Gaussian):
    """A Gaussian in every component, with a number added to every variance and no other care taken of small ones."""

    added: float = 0.0

    @classmethod
    def of_type(cls, covariance_type: str, added: float) -> Self:
        """Return the family of one of scikit-learn's types of covariances."""
        covariance, tied = TYPES[covariance_type]
        return cls(covariance, tied, floor=0.0, added=added)

    def solve(self, statistics: Statistics, collinear: float = 0.0) -> Density:
        """Return the density of greatest likelihood, its variances increased, or raise if one is not positive."""
        moments = self.moments(statistics)
        covariances = self.structure.covariances(moments, statistics)
        if self.covariance == "full":
            return full_density(moments.mean, covariances + self.added * np.eye(covariances.shape[1]))
        rounding = _LEFT_BY_ROUNDING * over(moments.mean**2, moments.n)
        if self.covariance == "spherical":
            rounding = rounding.mean(axis=1, keepdims=True)
        return diagonal_density(moments.mean, np.where(covariances > 0, covariances, rounding) + self.added)


def full_density(mean: Array, covariances: Array) -> FullGaussian:
    """Return a density of full covariances, or raise if one has no inverse."""
    try:
        return FullGaussian(mean, covariances, np.asarray(np.linalg.cholesky(covariances)))
    except np.linalg.LinAlgError:
        raise ValueError(_COLLAPSED) from None


def diagonal_density(mean: Array, variances: Array) -> DiagonalGaussian:
    """Return a density of independent columns, or raise if a variance is not positive."""
    if not np.all(variances > 0):
        raise ValueError(_COLLAPSED)
    return DiagonalGaussian(mean, np.ascontiguousarray(np.broadcast_to(variances, mean.shape)))


class Components(NamedTuple):
    """Weights, means, covariances and the factors of their inverses, in scikit-learn's shapes."""

    weights: Array
    means: Array
    covariances: Array
    precisions_cholesky: Array

    @classmethod
    def of(cls, joint: Joint, covariance_type: str) -> Self:
        """Take the components from a joint of one Gaussian block."""
        density: Any = joint.densities[0]
        if covariance_type in ("full", "tied"):
            covariances, factors = density.covariance, np.swapaxes(density.whitener, 1, 2)
            if covariance_type == "tied":
                covariances, factors = covariances[0], factors[0]
        else:
            covariances = density.variance if covariance_type == "diag" else density.variance[:, 0]
            factors = 1 / np.sqrt(covariances)
        return cls(joint.weights, density.mean, covariances, factors)

    def as_type(self, dtype: Any) -> Self:
        """Return the same in another type of numbers."""
        return type(self)(*(np.asarray(each, dtype=dtype) for each in self))


def joint_of(family: ComponentGaussian, weights: Any, means: Any, precisions: Any) -> Joint:
    """Return the joint of components that are given by their weights, means and inverse covariances."""
    mean = np.asarray(means, dtype=np.float64)
    precisions = np.asarray(precisions, dtype=np.float64)
    if family.covariance == "full":
        covariances = np.linalg.inv(precisions.reshape(-1, *precisions.shape[-2:]))
        density: Density = full_density(mean, 0.5 * (covariances + np.swapaxes(covariances, 1, 2)))
    else:
        density = diagonal_density(mean, 1 / (precisions if precisions.ndim == 2 else precisions[:, None]))
    k, width = mean.shape
    return Joint(np.arange(k), np.asarray(weights, dtype=np.float64), (Part(family, None),), (density,), width)


def precisions_of(precisions_cholesky: Any, covariance_type: str) -> Array:
    """Return inverse covariances from their factors."""
    factors = np.asarray(precisions_cholesky)
    if covariance_type in ("full", "tied"):
        return np.asarray(factors @ np.swapaxes(factors, -1, -2))
    return factors**2


class Given(NamedTuple):
    """The weights, means and inverse covariances to begin with; None for those that are to be found."""

    weights: Array | None
    means: Array | None
    precisions: Array | None

    @classmethod
    def read(cls, model: Any, width: int) -> Self:
        """Read what a model is told to begin with, or raise if it does not fit."""
        k, kind = model.n_components, model.covariance_type
        weights = _read(model.weights_init, (k,), "weights")
        if weights is not None:
            _check_weights(weights)
        means = _read(model.means_init, (k, width), "means")
        shapes = {"full": (k, width, width), "tied": (width, width), "diag": (k, width), "spherical": (k,)}
        precisions = _read(model.precisions_init, shapes[kind], f"{kind} precision")
        if precisions is not None:
            _check_precisions(precisions, kind)
        return cls(weights, means, precisions)

    @property
    def whole(self) -> bool:
        """Whether nothing is to be found."""
        return all(each is not None for each in self)

    def joint(self, family: ComponentGaussian, statistics: JointStatistics | None, rows: int) -> Joint:
        """Return the joint to begin with: what is not given is that of rows whose components were guessed."""
        weights, means, precisions = self
        if statistics is None:
            return joint_of(family, *self)
        block = statistics.blocks[0]
        if weights is None:
            weights = statistics.weights.sums["weight"] / rows
        if precisions is not None:
            return joint_of(family, weights, Moments.of(block).mean if means is None else means, precisions)
        density: Any = family.solve(block)
        if means is not None:
            means = means.astype(np.float64)
            if family.covariance == "full":
                density = FullGaussian(means, density.covariance, density.factor)
            else:
                density = DiagonalGaussian(means, density.variance)
        width = density.mean.shape[1]
        return Joint(statistics.classes, np.asarray(weights), (Part(family, None),), (density,), width)


def _read(given: Any, shape: tuple[int, ...], name: str) -> Any:
    if given is None:
        return None
    read = check_array(given, dtype=[np.float64, np.float32], ensure_2d=False, allow_nd=len(shape) > 2)
    if read.shape != shape:
        raise ValueError(f"The parameter '{name}' should have the shape of {shape}, but got {read.shape}")
    return read


def _check_weights(weights: Array) -> None:
    if (weights < 0).any() or (weights > 1).any():
        raise ValueError(
            f"The parameter 'weights' should be in the range [0, 1], but got max value {weights.min():.5f}, min value "
            f"{weights.max():.5f}"
        )
    if not np.isclose(weights.sum(), 1.0, atol=1e-6 if weights.dtype == np.float32 else 1e-8):
        raise ValueError(f"The parameter 'weights' should be normalized, but got sum(weights) = {weights.sum():.5f}")


def _check_precisions(precisions: Array, kind: str) -> None:
    if kind in ("diag", "spherical"):
        if (precisions <= 0).any():
            raise ValueError(f"'{kind} precision' should be positive")
        return
    turned = np.swapaxes(precisions, -1, -2)
    if not np.allclose(precisions, turned) or (np.linalg.eigvalsh(precisions) <= 0).any():
        raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")
