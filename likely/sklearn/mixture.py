"""scikit-learn's Gaussian mixtures, on likely's expectation maximisation."""

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import mixture
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.data.table import Table
from likely.em import iterate
from likely.families import Density, Gaussian
from likely.families.gaussian import DiagonalGaussian, FullGaussian
from likely.families.moments import Moments, safe_divide
from likely.joint import Joint, Part
from likely.learn.hidden import Hidden
from likely.learn.one_pass import collect
from likely.messages import warn
from likely.sklearn.base import check_parameters, face_tags
from likely.sklearn.cluster import KMeans
from likely.statistics import Array, Assignment, JointStatistics, Responsibilities, Statistics

# Responsibilities that are drawn at a time.
_TILE = 1 << 18
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
        rounding = _LEFT_BY_ROUNDING * safe_divide(moments.mean**2, moments.n)
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


class GaussianMixture(mixture.GaussianMixture):  # type: ignore[misc]
    """scikit-learn's ``GaussianMixture``: groups that nobody has labelled, each a Gaussian.

    Its steps are scikit-learn's, and so are the rows and responsibilities that it draws to begin with; but "kmeans"
    begins with the groups of ``likely.sklearn.KMeans``, and a tied covariance with the rows that were drawn, where
    scikit-learn takes the scatter of all rows about 0. Cells may be missing (NaN): the likelihood is that of the cells
    that are there. Sums are taken about the means, in float64.

    Parameters
    ----------
    n_components
        the number of components
    covariance_type
        "full", "tied" (full, one for all), "diag" or "spherical"
    tol
        end when a step changes the mean of log p(x) by less than this
    reg_covar
        what is added to every variance
    max_iter
        how many steps each start takes at most; with 0 the start itself is kept
    n_init
        how often to begin; the result of the greatest likelihood is kept
    init_params
        the first components: "kmeans", "k-means++" or "random_from_data" (each a row), or "random" (random
        responsibilities)
    weights_init, means_init, precisions_init
        the first weights, means and inverse covariances, in the shapes of ``weights_``, ``means_`` and ``precisions_``
    random_state
        a seed, a ``RandomState``, or None, of the start and of ``sample``
    warm_start
        whether to begin where the last ``fit`` has ended
    verbose, verbose_interval
        1 to print starts and steps, 2 also their times and gains; how many steps to a line

    Attributes
    ----------
    weights_, means_
        the weight of every component, and its mean
    covariances_, precisions_, precisions_cholesky_
        components × columns × columns ("full"), columns × columns ("tied"), components × columns ("diag") or components
        ("spherical"): covariances, their inverses, and U with UUᵀ the inverse
    converged_, n_iter_
        whether the best start ended by itself, and after how many steps
    lower_bound_, lower_bounds_
        the mean of log p(x) before the last step, and before every step
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> import numpy as np
    >>> from likely.sklearn import GaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.means_.round(6).tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    >>> bool(model.predict([[0, 0]])[0] == model.predict([[2, 1]])[0])
    True
    """

    lower_bound_: float

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of rows X; y is not used."""
        check_parameters(self)
        X = self._read(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if len(X) < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, n_samples = {len(X)}"
            )
        rows, bound = Hidden(Table(X)), -np.inf
        starts: Iterable[Joint]
        if self.warm_start and hasattr(self, "converged_"):
            starts, bound = [self._joint], self.lower_bound_
        else:
            starts = self._starts(X)
        best: tuple[Joint, list[float], bool] | None = None
        for i, start in enumerate(starts):
            self._say(f"Initialization {i}")
            found = self._em(rows, start, bound)
            if best is None or (found[1] and (found[1][-1] > best[1][-1] or np.isneginf(best[1][-1]))):
                best = found
        assert best is not None
        joint, self.lower_bounds_, self.converged_ = best
        self.n_iter_ = len(self.lower_bounds_)
        self.lower_bound_ = self.lower_bounds_[-1] if self.lower_bounds_ else -np.inf
        self._hold(joint, X.dtype)
        if not self.converged_ and self.max_iter > 0:
            warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, "
                "tol, or check for degenerate data.",
                ConvergenceWarning,
            )
        return self

    def _em(self, rows: Hidden, start: Joint, bound: float) -> tuple[Joint, list[float], bool]:
        """Take EM steps until one gains next to nothing; the last step is taken, as scikit-learn does."""
        bounds: list[float] = []
        began = last = perf_counter()

        def step(at: tuple[Joint, float]) -> tuple[Joint, float]:
            found = rows.expect(at[0])
            bounds.append(found.log_likelihood / rows.weight)
            return Joint.solve(found.statistics, at[0].parts, rows.table.columns), bounds[-1]

        def change(new: tuple[Joint, float], old: tuple[Joint, float]) -> float:
            nonlocal last
            gain = new[1] - old[1]
            if len(bounds) % self.verbose_interval == 0:
                last, before = perf_counter(), last
                self._say(f"  Iteration {len(bounds)}", f"\t time lapse {last - before:.5f}s\t ll change {gain:.5f}")
            return gain

        (joint, bound), converged, _ = iterate((start, bound), step, change, tolerance=self.tol, most=self.max_iter)
        if bounds:
            lapse = perf_counter() - began
            word = "converged" if converged else "did not converge"
            self._say(f"Initialization {word}.", f" time lapse {lapse:.5f}s\t lower bound {bound:.5f}.")
        return joint, bounds, converged

    def _say(self, line: str, more: str = "") -> None:
        if self.verbose:
            print(line + (more if self.verbose > 1 else ""))

    def _starts(self, X: NDArray[Any]) -> Iterator[Joint]:
        """Return the components that each start begins with."""
        given = Given.read(self, X.shape[1])
        random_state = check_random_state(self.random_state)
        missing = np.isnan(X)
        if missing.any() and not given.whole:  # each starts as the mean of its column
            n = np.maximum((~missing).sum(axis=0), 1)
            X = np.where(missing, np.where(missing, 0, X).sum(axis=0) / n, X)
        for _ in range(self.n_init):
            statistics = None if given.whole else self._guessed(X, random_state)
            yield given.joint(self._family, statistics, len(X))

    def _guessed(self, X: NDArray[Any], random_state: Any) -> JointStatistics:
        """Return the statistics of components that rows are put into by a guess."""
        k, n = self.n_components, len(X)
        if self.init_params == "random":
            return self._shared(X, (_responsibilities(random_state, rows, k) for rows in _tiles(n, k)))
        if self.init_params == "kmeans":
            codes = KMeans(n_clusters=k, n_init=1, random_state=random_state).fit(X).labels_
        else:
            if self.init_params == "k-means++":
                _, chosen = kmeans_plusplus(X, k, random_state=random_state)
            else:
                chosen = random_state.choice(n, size=k, replace=False)
            codes = np.full(n, -1)
            codes[chosen] = np.arange(k)
        return collect(Table(X), Assignment(np.arange(k), codes.astype(np.int32)), (Part(self._family, None),))

    def _shared(self, X: NDArray[Any], responsibilities: Iterable[Array]) -> JointStatistics:
        """Return the statistics of rows by their responsibilities, which are given some rows at a time."""
        found: list[JointStatistics] = []
        first, parts = 0, (Part(self._family, None),)
        for some in responsibilities:
            tile = Table(X[first : first + len(some)])
            first += len(some)
            each = Responsibilities(np.arange(some.shape[1]), np.asarray(some, dtype=np.float64)).each()
            found.extend(collect(tile, one, parts) for one in each)
        return reduce(operator.add, found)

    def _initialize(self, X: NDArray[Any], resp: Array) -> None:
        """Keep the components of rows with the given responsibilities, as scikit-learn's method does."""
        given = Given(self.weights_init, self.means_init, self.precisions_init)
        joint = given.joint(self._family, self._shared(X, [resp]), len(X))
        self._hold(joint, X.dtype)

    def _hold(self, joint: Joint, dtype: Any) -> None:
        """Set the attributes to the components of a joint of one Gaussian block, in scikit-learn's shapes."""
        density: Any = joint.densities[0]
        if self.covariance_type in ("full", "tied"):
            covariances, factors = density.covariance, np.swapaxes(density.whitener, 1, 2)
            if self.covariance_type == "tied":
                covariances, factors = covariances[0], factors[0]
        else:
            covariances = density.variance if self.covariance_type == "diag" else density.variance[:, 0]
            factors = 1 / np.sqrt(covariances)
        components = (joint.weights, density.mean, covariances, factors)
        self.weights_, self.means_, self.covariances_, self.precisions_cholesky_ = (
            np.asarray(each, dtype=dtype) for each in components
        )
        self.precisions_ = precisions_of(self.precisions_cholesky_, self.covariance_type)

    @property
    def _family(self) -> ComponentGaussian:
        return ComponentGaussian.of_type(self.covariance_type, float(self.reg_covar))

    @property
    def _joint(self) -> Joint:
        """The joint of the components as the attributes have them, which may have been set by hand."""
        precisions = precisions_of(np.asarray(self.precisions_cholesky_, dtype=np.float64), self.covariance_type)
        return joint_of(self._family, self.weights_, self.means_, precisions)

    def _read(self, X: Any, **options: Any) -> NDArray[Any]:
        return np.asarray(validate_data(self, X, ensure_all_finite="allow-nan", **options))

    def _asked(self, X: Any) -> tuple[Joint, Table, Any]:
        """Return whom to ask, about which rows, and the type of the answer."""
        check_is_fitted(self)
        X = self._read(X, dtype=[np.float64, np.float32], reset=False)
        return self._joint, Table(X), np.result_type(X.dtype, self.means_.dtype)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Find the components of rows X, and return the likeliest of each row."""
        return self.fit(X).predict(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the likeliest component of each row."""
        joint, table, _ = self._asked(X)
        return joint.likeliest(table)

    def predict_proba(self, X: Any) -> Array:
        """Return p(component | x), rows × components."""
        joint, table, dtype = self._asked(X)
        return joint.posterior(table).astype(dtype, copy=False)

    def score_samples(self, X: Any) -> Array:
        """Return log p(x) of each row."""
        joint, table, dtype = self._asked(X)
        return joint.log_density(table).astype(dtype, copy=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of log p(x) over the rows."""
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Return −2 log-likelihood + free parameters × log rows: the less, the better."""
        log_likelihoods = self.score_samples(X)
        return float(-2 * log_likelihoods.sum() + self._n_parameters() * np.log(len(log_likelihoods)))

    def aic(self, X: Any) -> float:
        """Return −2 log-likelihood + 2 × free parameters: the less, the better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())

    def _n_parameters(self) -> int:
        return self._joint.free_parameters()

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[np.int64]]:
        """Draw rows, component by component; the same ``random_state`` draws the same rows as scikit-learn's."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one sample.")
        random_state = check_random_state(self.random_state)
        counts = random_state.multinomial(n_samples, self.weights_)
        spread = [self.covariances_] * len(counts) if self.covariance_type == "tied" else self.covariances_
        X = [self._drawn(random_state, *each) for each in zip(self.means_, spread, counts, strict=True)]
        return np.vstack(X), np.repeat(np.arange(len(counts)), counts)

    def _drawn(self, random_state: Any, mean: Array, spread: Array, count: int) -> Array:
        if self.covariance_type in ("full", "tied"):
            return np.asarray(random_state.multivariate_normal(mean, spread, count))
        return np.asarray(mean + random_state.standard_normal((count, len(mean))) * np.sqrt(spread))

    def __sklearn_tags__(self) -> Any:
        return face_tags(super().__sklearn_tags__())


def _tiles(rows: int, columns: int) -> Iterator[int]:
    """Return how many rows there are in each tile."""
    step = max(_TILE // columns, 1)
    for first in range(0, rows, step):
        yield min(step, rows - first)


def _responsibilities(random_state: Any, rows: int, columns: int) -> Array:
    drawn: Array = random_state.uniform(size=(rows, columns))
    drawn /= drawn.sum(axis=1, keepdims=True)
    return drawn
