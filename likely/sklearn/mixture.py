"""scikit-learn's Gaussian mixtures, on likely's expectation maximisation."""

import operator
from collections.abc import Iterable, Iterator
from functools import reduce
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from likely.data.table import Table
from likely.em import iterate
from likely.joint import Joint, Part
from likely.learn.hidden import Hidden
from likely.learn.one_pass import collect
from likely.messages import warn
from likely.sklearn.base import check_parameters
from likely.sklearn.cluster import KMeans
from likely.sklearn.components import TYPES, ComponentGaussian, Components, Given, joint_of, precisions_of
from likely.statistics import Array, Assignment, JointStatistics, Responsibilities

# Shares that are drawn at a time.
_TILE = 1 << 18


class GaussianMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """scikit-learn's ``GaussianMixture``: groups that nobody has labelled, each a Gaussian.

    Its steps are scikit-learn's, and so are the rows and shares that it draws to begin with; but "kmeans" begins with
    the groups of ``likely.sklearn.KMeans``, and a tied covariance with the rows that were drawn, where scikit-learn
    takes the scatter of all rows about 0. Cells may be missing (NaN): the likelihood is that of the cells that are
    there. Sums are taken about the means, in float64.

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
        the first components: "kmeans", "k-means++" or "random_from_data" (each a row), or "random" (shares by chance)
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(TYPES))],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "random", "random_from_data", "k-means++"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    weights_: Array
    means_: Array
    covariances_: Array
    precisions_: Array
    precisions_cholesky_: Array
    converged_: bool
    n_iter_: int
    lower_bound_: float
    lower_bounds_: list[float]

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
        self._set_parameters(Components.of(joint, self.covariance_type).as_type(X.dtype))
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
        holes = np.isnan(X)
        if holes.any() and not given.whole:  # each is begun with the mean of its column
            n = np.maximum((~holes).sum(axis=0), 1)
            X = np.where(holes, np.where(holes, 0, X).sum(axis=0) / n, X)
        for _ in range(self.n_init):
            statistics = None if given.whole else self._guessed(X, random_state)
            yield given.joint(self._family, statistics, len(X))

    def _guessed(self, X: NDArray[Any], random_state: Any) -> JointStatistics:
        """Return the statistics of components that rows are put into by a guess."""
        k, n = self.n_components, len(X)
        if self.init_params == "random":
            return self._shared(X, (_shares(random_state, rows, k) for rows in _tiles(n, k)))
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

    def _shared(self, X: NDArray[Any], shares: Iterable[Array]) -> JointStatistics:
        """Return the statistics of rows that belong to components by shares, which are given some rows at a time."""
        found: list[JointStatistics] = []
        first, parts = 0, (Part(self._family, None),)
        for some in shares:
            tile = Table(X[first : first + len(some)])
            first += len(some)
            each = Responsibilities(np.arange(some.shape[1]), np.asarray(some, dtype=np.float64)).each()
            found.extend(collect(tile, one, parts) for one in each)
        return reduce(operator.add, found)

    def _initialize(self, X: NDArray[Any], resp: Array) -> None:
        """Keep the components of rows that belong to them by the given shares, as scikit-learn's method does."""
        given = Given(self.weights_init, self.means_init, self.precisions_init)
        joint = given.joint(self._family, self._shared(X, [resp]), len(X))
        self._set_parameters(Components.of(joint, self.covariance_type).as_type(X.dtype))

    def _set_parameters(self, components: tuple[Any, Any, Any, Any]) -> None:
        self.weights_, self.means_, self.covariances_, self.precisions_cholesky_ = components
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
        told = self.score_samples(X)
        return float(-2 * told.sum() + self._n_parameters() * np.log(len(told)))

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
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _tiles(rows: int, columns: int) -> Iterator[int]:
    """Return how many rows there are in each tile."""
    step = max(_TILE // columns, 1)
    for first in range(0, rows, step):
        yield min(step, rows - first)


def _shares(random_state: Any, rows: int, columns: int) -> Array:
    shares: Array = random_state.uniform(size=(rows, columns))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
