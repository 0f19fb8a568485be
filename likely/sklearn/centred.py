"""What the faces of k-means have in common: scikit-learn's parameters, first centres and messages."""

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from likely.data.labels import read_weights
from likely.data.table import Table, read_table
from likely.estimators.centres import Centred
from likely.learn.kmeans import drawn_centres, given_centres
from likely.learn.starts import Order, Points, read_points
from likely.sklearn.face import Checked
from likely.statistics import Array

_STARTS = {"k-means++": "greedy k-means++", "random": "rows"}
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COMMON: Mapping[str, Any] = {
    "n_clusters": [AT_LEAST_ONE],
    "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
    "n_init": [StrOptions({"auto"}), AT_LEAST_ONE],
    "max_iter": [AT_LEAST_ONE],
    "tol": [NOT_NEGATIVE],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
}


class CentredFace(Checked, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator, Centred):  # type: ignore[misc]
    """What both faces do: scikit-learn's parameters and messages."""

    _default_n_init: ClassVar[int]
    init: Any
    n_init: Any
    verbose: Any
    tol: float
    random_state: Any

    # Written here, since scikit-learn's set_output changes only what a class below its mixin says itself.

    def transform(self, X: Any) -> Array:
        """Return the distance of each row from each centre, rows × clusters; in single precision if rows are."""
        return Centred.transform(self, X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the clusters of rows, and return the distance of each row from each centre."""
        return Centred.fit_transform(self, X, y, sample_weight)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the clusters of rows, and return that of each."""
        return Centred.fit_predict(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self._centres)

    def _check_against(self, table: Table) -> None:
        """Check the parameters against the rows that a fit begins with, and settle how often to begin."""
        if table.rows < self.n_clusters:
            raise ValueError(f"n_samples={table.rows} should be >= n_clusters={self.n_clusters}.")
        self._n_init = self.n_init
        given = not isinstance(self.init, str) and not callable(self.init)
        if isinstance(self.n_init, str):
            once = given or (isinstance(self.init, str) and self.init == "k-means++")
            self._n_init = 1 if once else self._default_n_init
        if given:
            self._check_centres(np.asarray(self.init, dtype=np.float64), table.columns.width)
            if self._n_init != 1:
                warnings.warn(
                    "Explicit initial center position passed: performing only one init in "
                    f"{type(self).__name__} instead of n_init={self._n_init}.",
                    RuntimeWarning,
                    stacklevel=3,
                )
                self._n_init = 1

    def _check_centres(self, centres: Array, width: int) -> None:
        for found, wanted, what in (
            (centres.shape[0] if centres.ndim else 0, self.n_clusters, "number of clusters"),
            (centres.shape[1] if centres.ndim == 2 else 0, width, "number of features of the data"),
        ):
            if found != wanted:
                raise ValueError(
                    f"The shape of the initial centers {centres.shape} does not match the {what} {wanted}."
                )

    def _begin(self, points: Points, weights: Array | None, generator: Any, order: Order | None = None) -> Array:
        """Return the first centres, about the origin."""
        if isinstance(self.init, str):
            start = _STARTS[self.init]
            return drawn_centres(points, self.n_clusters, start, order or Order.of(points), generator, weights)
        if not callable(self.init):
            return given_centres(points, self.init)
        centres = np.asarray(self.init(_matrix(points), self.n_clusters, random_state=generator), dtype=np.float64)
        self._check_centres(centres, len(points.origin))
        return given_centres(points, centres)

    def _init_centroids(
        self, X: Any, *, init: Any, random_state: Any, sample_weight: Any, n_centroids: int, **_: Any
    ) -> Array:
        """Return first centres. scikit-learn has this method under this name, and other code calls it."""
        table = read_table(X)
        weights = read_weights(sample_weight, table.rows)
        points = read_points(table, weights=weights)
        drawer = type(self)(n_centroids, init=init)
        return drawer._begin(points, weights, random_state) + points.origin

    def _keep_centres(self, centres: Array, known: Any) -> None:
        super()._keep_centres(centres, known)
        self.cluster_centers_ = self.cluster_centers_.astype(self._dtype, copy=False)

    _dtype: Any = np.dtype(np.float64)

    def _remembered(self) -> dict[str, Any]:
        return {**super()._remembered(), "single": self._dtype == np.float32}

    def _remember(self, more: Mapping[str, Any]) -> None:
        super()._remember(more)
        self._dtype = np.dtype(np.float32 if more.get("single") else np.float64)
        self.cluster_centers_ = self.cluster_centers_.astype(self._dtype, copy=False)

    def _keep_dtype(self, points: Points) -> None:
        cells = points.cells[2] if isinstance(points.cells, tuple) else points.cells
        self._dtype = cells.dtype

    def _say(self, text: str) -> None:
        if self.verbose:
            print(text)


def _matrix(points: Points) -> Any:
    """Return the rows as a matrix, dense or sparse."""
    if not isinstance(points.cells, tuple):
        return points.cells
    from scipy.sparse import csr_matrix

    starts, indices, values, width = points.cells
    return csr_matrix((values, indices, starts), shape=(points.rows, width))
