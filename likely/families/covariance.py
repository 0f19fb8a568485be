"""The covariance grid: spherical, diagonal or full, by class or tied, shrunk or not, from one set of moments."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from likely.families.base import read_number
from likely.families.moments import Moments, variances_of
from likely.statistics import Array, Statistics

if TYPE_CHECKING:
    from likely.families.gaussian import Gaussian

Shrinkage = float | Literal["oas", "ledoit-wolf"]

# A variance is at least this share of the column's variance within classes. Smaller ones are rounding, or a class whose
# few values happen to agree; without a floor one such column would decide every question.
FLOOR = 1e-9


@dataclass(frozen=True)
class Structure(ABC):
    """A kind of covariance."""

    family: "Gaussian"
    """the Gaussian that has the settings"""
    tied: float
    """1 for one covariance of all classes, 0 for one each, or anything between"""

    targets: ClassVar[tuple[str, ...]]

    def check(self) -> None:
        """Raise ValueError unless the settings belong together."""
        if self.family.shrinkage != 0 and not self.targets:
            raise ValueError(
                f"expected shrinkage=0 for a spherical covariance, got {self.family.shrinkage!r}: there is nothing "
                "simpler to shrink it to"
            )
        if isinstance(self.family.shrinkage, str):
            if self.family.shrinkage not in ("oas", "ledoit-wolf"):
                raise ValueError(f"expected shrinkage 'oas', 'ledoit-wolf' or a number, got {self.family.shrinkage!r}")
            if "diagonal" not in self.targets or self.family.target == "unit":
                simple = "to the unit matrix" if self.family.target == "unit" else "of a diagonal covariance"
                raise ValueError(f"expected a number as shrinkage {simple}, got {self.family.shrinkage!r}")
        elif not 0 <= read_number(self.family.shrinkage, "shrinkage between 0 and 1, 'oas' or 'ledoit-wolf'") <= 1:
            raise ValueError(f"expected shrinkage between 0 and 1, got {self.family.shrinkage!r}")
        if self.family.target is not None and self.family.target not in self.targets:
            raise ValueError(f"expected a target among {self.targets}, got {self.family.target!r}")
        for name in ("added_variance", "floor"):
            if not 0 <= getattr(self.family, name) < np.inf:
                raise ValueError(f"expected {name} of 0 or more, got {getattr(self.family, name)!r}")
        if self.family.pooling is not None and self.tied != 1:
            raise ValueError(f"expected tied=True where covariances are pooled by weights, got tied={self.tied!r}")

    def covariances(self, moments: Moments, statistics: Statistics) -> Array:
        """Return the covariance of every class, or one for all if tied: variances, or matrices if full."""
        n = moments.n
        degrees = n - (n > 0) if self.family.unbiased else n
        parts = []
        if self.tied < 1 or self.family.pooling is not None:
            fourth = self._fourth(statistics, moments.mean)
            # A class of which nothing is known varies like all classes together.
            parts.append((1 - self.tied, self._shrunk(moments.scatter, degrees, n, fourth, moments)))
        if self.family.pooling is not None:
            weights = (
                n.max(axis=1) / n.max(axis=1).sum() if isinstance(self.family.pooling, str) else self.family.pooling
            )
            parts = [(1.0, np.einsum("c,c...->...", weights, parts[0][1])[None])]
        elif self.tied > 0:
            fourth = self._fourth(statistics, moments.mean, pooled=True)
            scatter, degrees, n = _summed(moments.scatter, degrees, n)
            parts.append((self.tied, self._shrunk(scatter, degrees, n, fourth, moments)))
        covariance = np.asarray(parts[0][1] if len(parts) == 1 else sum(weight * part for weight, part in parts))
        if self.family.floor == self.family.added_variance == 0:
            return covariance
        variances = variances_of(covariance) + self.addition(moments)
        if self.family.floor > 0:
            within = _divide(*self._simplified(*_summed(moments.scatter, moments.n)), lambda: np.zeros(()))
            variances = _at_least(
                variances, self.family.floor, variances_of(within), variances_of(self._of_all(moments))
            )
        covariance = covariance.copy()
        variances_of(covariance)[:] = variances
        return covariance

    def addition(self, moments: Moments) -> float:
        """Return what is added to every variance: a share of the largest of them over all rows."""
        if self.family.added_variance == 0:
            return 0.0
        return float(self.family.added_variance * variances_of(self._of_all(moments)).max())

    def total(self, moments: Moments, statistics: Statistics) -> Array:
        """Return the covariance of all rows, whatever their class, shrunk as those of the classes are."""
        total = moments.pooled
        fourth = self._fourth(statistics, np.broadcast_to(total.mean, moments.mean.shape), pooled=True)
        return self._shrunk(total.scatter, total.n, total.n, fourth, moments)

    def _of_all(self, moments: Moments) -> Array:
        total = moments.pooled
        return _divide(*self._simplified(total.scatter, total.n), lambda: np.zeros(()))

    def _shrunk(self, scatter: Array, degrees: Array, n: Array, fourth: Array | None, moments: Moments) -> Array:
        covariance = _divide(*self._simplified(scatter, degrees), lambda: self._of_all(moments))
        if self.family.shrinkage == 0:
            return covariance
        target = self.family.target or self.targets[0]
        return self._towards(target, covariance, n.max(axis=1), fourth)

    def _fourth(self, statistics: Statistics, mean: Array, *, pooled: bool = False) -> Array | None:
        """Return Σ (x_i−μ_i)²(x_j−μ_j)² of every class."""
        if self.family.shrinkage != "ledoit-wolf":
            return None
        fourth = statistics.rebased(mean).sums["quartic"]
        return fourth.sum(axis=0, keepdims=True) if pooled else fourth

    @abstractmethod
    def _simplified(self, scatter: Array, degrees: Array) -> tuple[Array, Array]:
        """Return the scatter and its degrees of freedom for this structure."""

    @abstractmethod
    def _towards(self, target: str, covariance: Array, n: Array, fourth: Array | None) -> Array:
        """Shrink the covariance."""


class Diagonal(Structure):
    """A variance for every column."""

    targets: ClassVar[tuple[str, ...]] = ("spherical",)

    def _simplified(self, scatter: Array, degrees: Array) -> tuple[Array, Array]:
        return scatter, degrees

    def _towards(self, target: str, covariance: Array, n: Array, fourth: Array | None) -> Array:
        assert not isinstance(self.family.shrinkage, str)
        average: Array = covariance.mean(axis=1, keepdims=True)
        return np.asarray((1 - self.family.shrinkage) * covariance + self.family.shrinkage * average)


class Spherical(Diagonal):
    """One variance for all columns: Σ‖x−μ‖² / (d·n), or over the cells that are there."""

    targets = ()

    def _simplified(self, scatter: Array, degrees: Array) -> tuple[Array, Array]:
        shape = scatter.shape
        degrees = np.broadcast_to(degrees, shape).sum(axis=1, keepdims=True)
        return np.broadcast_to(scatter.sum(axis=1, keepdims=True), shape), np.broadcast_to(degrees, shape)


class Full(Structure):
    """A covariance for every pair of columns."""

    targets = ("diagonal", "spherical", "standardised", "unit")

    def _simplified(self, scatter: Array, degrees: Array) -> tuple[Array, Array]:
        return scatter, degrees[:, :, None]

    def _towards(self, target: str, covariance: Array, n: Array, fourth: Array | None) -> Array:
        d = covariance.shape[1]
        variances = variances_of(covariance)
        scale, varying = np.ones_like(variances), np.full(len(variances), d)
        if target in ("diagonal", "standardised"):
            scale = np.sqrt(np.where(variances > 0, variances, 1.0))
        if target == "diagonal":
            varying = np.maximum((variances > 0).sum(axis=1), 1)
            aim = np.eye(d) * variances[:, None, :]
        elif target == "standardised":
            # The mean variance of standardised columns: columns that do not vary count, and get their share of it.
            aim = np.eye(d) * ((variances > 0).mean(axis=1, keepdims=True) * scale**2)[:, None, :]
        elif target == "spherical":
            aim = np.eye(d) * variances.mean(axis=1)[:, None, None]
        else:
            aim = np.broadcast_to(np.eye(d), covariance.shape)
        if isinstance(self.family.shrinkage, str):
            scaled = covariance / (scale[:, :, None] * scale[:, None, :])
            if fourth is None:
                ratio = _oas(scaled, n, varying)
            else:
                ratio = _ledoit_wolf(scaled, n, varying, fourth / (scale[:, :, None] * scale[:, None, :]) ** 2)
            shrinkage = _fraction(*ratio)
        else:
            shrinkage = np.full(len(covariance), float(self.family.shrinkage))
        shrinkage = shrinkage[:, None, None]
        return np.asarray((1 - shrinkage) * covariance + shrinkage * aim)


STRUCTURES: dict[str, type[Structure]] = {"spherical": Spherical, "diagonal": Diagonal, "full": Full}


def _divide(scatter: Array, degrees: Array, otherwise: Callable[[], Array]) -> Array:
    if degrees.all():
        return scatter / degrees
    known = np.broadcast_to(degrees > 0, scatter.shape)
    out = np.broadcast_to(otherwise(), scatter.shape).copy()
    np.divide(scatter, degrees, out=out, where=known)
    return out


def _summed(*arrays: Array) -> tuple[Array, ...]:
    """Add up the classes."""
    return tuple(array.sum(axis=0, keepdims=True) for array in arrays)


def _at_least(variance: Array, floor: float, within: Array, of_all: Array) -> Array:
    """Lift variances to the floor.

    The scale of a column is its variance within classes; if it never varies there, its variance over all rows; and if
    it never varies at all it has no scale, and the variance 1 in every class.
    """
    scale = np.where(within > 0, within, of_all)
    lifted = np.maximum(variance, floor * scale)
    return np.where(lifted > 0, lifted, 1.0)


def _oas(covariance: Array, n: Array, d: Array) -> tuple[Array, Array]:
    """Return part and whole of the oracle-approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010).

    d is the number of columns that vary: others have no covariance to shrink.
    """
    mean = np.einsum("cii->c", covariance) / d
    alpha = (covariance**2).sum(axis=(1, 2)) / d**2
    return alpha + mean**2, (n + 1) * (alpha - mean**2 / d)


def _ledoit_wolf(covariance: Array, n: Array, d: Array, fourth: Array) -> tuple[Array, Array]:
    """Return part and whole of the shrinkage of Ledoit and Wolf (2004), for each class."""
    mean = np.einsum("cii->c", covariance) / d
    squares = (covariance**2).sum(axis=(1, 2))
    n = np.maximum(n, 1.0)
    noise = (fourth.sum(axis=(1, 2)) / n - squares) / n
    return np.clip(noise, 0.0, None), squares - d * mean**2


def oas_shrinkage(correlation: Array, n: float) -> float:
    """Return how far a correlation matrix of n rows is to be shrunk to independent columns.

    >>> oas_shrinkage(np.eye(3), 100.0), round(oas_shrinkage(np.array([[1.0, 0.5], [0.5, 1.0]]), 100.0), 3)
    (1.0, 0.129)
    """
    return float(_fraction(*_oas(correlation[None], np.array([n]), np.array([len(correlation)])))[0])


def _fraction(part: Array, whole: Array) -> Array:
    return np.clip(np.divide(part, whole, out=np.ones_like(part), where=whole > 0), 0.0, 1.0)
