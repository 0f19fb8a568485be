"""k-means: groups of rows around centres."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.clustering import STARTS, about_centres, collect, means, restarts
from likely.estimators.protocol import Estimator, not_fitted
from likely.families.base import readable_errors
from likely.labels import read_weights
from likely.starts import Points, read_points, readable
from likely.statistics import Array, Statistics
from likely.table import SparseRows, Table
from likely.telling import tell


class Start(NamedTuple):
    """What came of one start."""

    inertia: float
    iterations: int
    converged: bool


class KMeans(Estimator):
    """Find groups of rows: each row belongs to the nearest centre, each centre is the mean of its rows.

    Labels are exact: those of the centre at the least squared distance in float64, the first of several at the same.
    The labels of ``fit`` are those that ``predict`` gives, whatever the offset of the data, and all results have the
    same bits for any number of threads.

    Cells may be missing (NaN). The distance of a row from a centre is taken over the cells that are there; each
    coordinate of a centre is the mean of its rows' cells that are there. Inertia is the sum of the squares of these
    cells, which no step can raise. Distances of ``transform`` are those of complete rows: the squares are multiplied
    by columns / cells that are there. A row without any cell belongs to the first cluster.

    A cluster that loses all its rows gets the row that lies farthest from its centre.

    Parameters
    ----------
    n_clusters
        the number of clusters
    start
        the first centres: "k-means++" (rows that lie far apart by chance), "greedy k-means++" (the best of several
        such rows each time), "rows" (any), "assignment" (the means of rows that were put into clusters by chance), or
        an array of centres
    n_starts
        how often to begin; the result of the least inertia is kept. Given centres are begun with once.
    max_iterations
        how often the centres of each start move at most
    tolerance
        end when the squares of the centres' movements add up to no more than this share of the columns' mean
        variance; by default when no row changes its cluster
    random_state
        a seed, or a NumPy generator

    Attributes
    ----------
    cluster_centers_
        clusters × columns; NaN in a column without any cell
    labels_
        the cluster of each row
    inertia_
        the sum of squares about the centres
    n_iter_
        how often the centres of the best start moved
    starts_
        inertia, iterations and whether it converged, of each start
    statistics_
        the weight and the sum of each cluster's cells, which ``partial_fit`` adds to
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely import KMeans
    >>> model = KMeans(2, random_state=0).fit([[1.0, 1.0], [1.0, 2.0], [8.0, 8.0], [9.0, 8.0]])
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 1.5], [8.5, 8.0]]
    >>> bool(model.predict([[2.0, 2.0]])[0] == model.labels_[0])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        start: Any = "k-means++",
        n_starts: int = 10,
        max_iterations: int = 300,
        tolerance: float = 0.0,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.start = start
        self.n_starts = n_starts
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.random_state = random_state

    cluster_centers_: Array
    labels_: NDArray[np.int32]
    inertia_: float
    n_iter_: int
    starts_: list[Start]
    statistics_: Statistics
    _centres: Array
    _origin: Array

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows X, forgetting all that was found before.

        Parameters
        ----------
        X
            rows × columns of numbers; NaN is a missing cell
        y
            not used
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        table = self._read_first(X)
        weights = read_weights(sample_weight, table.rows)
        k = self._check(table)
        points = read_points(table, exactly=self.tolerance > 0)
        generator = np.random.default_rng(self.random_state)
        times = self.n_starts if isinstance(self.start, str) else 1
        found = None
        self.starts_ = []
        for one in restarts(
            points, k, self.start, times, generator, weights, self.max_iterations, float(self.tolerance)
        ):
            self.starts_.append(Start(one.inertia, one.iterations, one.converged))
            if found is None or one.inertia < found.inertia:
                found = one
        assert found is not None
        self._keep_columns(table.columns)
        self.labels_, self.inertia_, self.n_iter_ = found.labels, found.inertia, found.iterations
        self._origin = points.origin
        self.statistics_ = about_centres(points, found, weights)
        self._keep_centres(found.centres, points.known)
        if len(distinct := np.unique(found.labels)) < k:
            tell(f"found {len(distinct)} distinct clusters, fewer than n_clusters={k}: are rows of X the same?")
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of rows: each centre becomes the mean of all rows that it was ever nearest to.

        The first batch is clustered as by ``fit``. ``labels_`` and ``inertia_`` are those of the last batch.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, sample_weight=sample_weight)
        table = self._read_next(X)
        weights = read_weights(sample_weight, table.rows)
        points, centres = self._points(table)
        more, self.labels_, self.inertia_ = collect(points, centres, weights)
        self.statistics_ = self.statistics_ + more
        self.n_iter_ += 1
        new = means(self.statistics_)
        known = ~np.isnan(new)
        before = self._centres + self._origin
        self._keep_centres(np.where(known, new, before) - self._origin, self._known_columns | known.any(axis=0))
        return self

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of each row: the number of its nearest centre."""
        points, centres = self._points(self._asked(X))
        labels, _ = native.kmeans_nearest(points.cells, None, points.origin, points.holes, centres)
        return labels

    def transform(self, X: Any) -> Array:
        """Return the distance of each row from each centre, rows × clusters."""
        table = self._asked(X)
        points, centres = self._points(table)
        squares = native.kmeans_distances(points.cells, points.origin, points.holes, centres)
        if points.holes:
            present = np.count_nonzero(~np.isnan(points.cells), axis=1)[:, None]
            squares *= np.count_nonzero(self._known_columns) / np.maximum(present, 1)
        return np.asarray(np.sqrt(squares))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of rows: the squared distances from their nearest centres, added up."""
        table = self._asked(X)
        points, centres = self._points(table)
        weights = read_weights(sample_weight, table.rows)
        return -native.kmeans_nearest(points.cells, weights, points.origin, points.holes, centres)[1]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Find the clusters of rows, and return that of each."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the clusters of rows, and return the distance of each row from each centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_centres")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True, sparse=True),
        )

    def _asked(self, X: Any) -> Table:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)
        return self._read_next(X)

    @property
    def _known_columns(self) -> NDArray[np.bool_]:
        return np.asarray(~np.isnan(self.cluster_centers_).all(axis=0))

    def _keep_centres(self, centres: Array, known: NDArray[np.bool_]) -> None:
        self._centres = np.ascontiguousarray(centres)
        self.cluster_centers_ = np.where(known, self._centres + self._origin, np.nan)

    def _points(self, table: Table) -> tuple[Points, Array]:
        """Return rows about the origin of the model, and its centres."""
        cells = readable(table)
        known = self._known_columns
        if isinstance(table.cells, SparseRows):  # about 0, where most cells are
            origin = np.zeros(len(known))
            return Points(cells, origin, False, table.rows, 0.0, known), self._centres + self._origin
        if not known.all():  # of such a column nothing is known
            cells = np.where(known, cells, np.nan)
        with readable_errors(table, "finite numbers"):
            holes = native.kmeans_holes(cells)
        return Points(cells, self._origin, holes, table.rows, 0.0, known), self._centres

    def _check(self, table: Table) -> int:
        """Check the parameters, and return the number of clusters."""
        k = self.n_clusters
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"expected a whole number of clusters from 1 on, got n_clusters={k!r}")
        for name in ("n_starts", "max_iterations"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"expected a whole number from 1 on, got {name}={value!r}")
        if not 0 <= self.tolerance < np.inf:
            raise ValueError(f"expected a number from 0 on, got tolerance={self.tolerance!r}")
        if table.rows < k:
            raise ValueError(
                f"n_samples={table.rows} should be >= n_clusters={k}: expected at least as many rows as clusters, "
                "give more rows or ask for fewer clusters"
            )
        if isinstance(self.start, str):
            if self.start not in STARTS:
                raise ValueError(
                    f"expected start to be one of {', '.join(map(repr, STARTS))} or centres, got {self.start!r}"
                )
            return int(k)
        start = np.asarray(self.start, dtype=np.float64)
        if start.shape != (k, table.columns.width) or np.isinf(start).any():
            raise ValueError(
                f"expected finite centres of shape {(int(k), table.columns.width)} (clusters × columns) as start, "
                f"got shape {start.shape}"
            )
        return int(k)
