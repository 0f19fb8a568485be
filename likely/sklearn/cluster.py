"""scikit-learn's k-means and mini-batch k-means, on likely's core."""

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import cluster
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from likely.data.labels import read_weights
from likely.data.table import Table, read_table
from likely.estimators.base import Estimator
from likely.estimators.fitting import Plan
from likely.learn.kmeans import (
    Clustering,
    Order,
    Points,
    about_centres,
    cluster_sums,
    drawn_centres,
    given_centres,
    iterate,
    nearest,
    read_points,
)
from likely.learn.minibatch_kmeans import RunningCentres, Settings, follow, init_size
from likely.messages import warn
from likely.model.centres import CentreQuestions, Centres
from likely.model.readers import read_first
from likely.sklearn.base import check_parameters, face_tags
from likely.statistics import Array, Statistics

_STARTS = {"k-means++": "greedy k-means++", "random": "rows"}


class CentreFace(CentreQuestions, TransformerMixin):  # type: ignore[misc]
    """What both do beside scikit-learn's own classes, which have the parameters."""

    keeps_dtype = True
    _default_n_init: ClassVar[int]
    n_clusters: int
    init: Any
    n_init: Any
    verbose: Any
    tol: float
    random_state: Any

    def plan(self) -> Plan:
        """Return what is to be fitted: centres of numbers, each row belongs to the nearest."""
        check_parameters(self)
        return Plan(type(self).__name__, lambda *_: (), "matrix")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows X, forgetting all that was found before.

        Parameters
        ----------
        X
            rows × columns of numbers, dense or sparse; NaN is a missing cell
        y
            not used
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        check_parameters(self)
        table = read_first(X)
        weights = read_weights(sample_weight, table.rows)
        self._check_against(table)
        self._find(table, read_points(table, exactly=self.tol > 0, weights=weights), weights)
        return self

    def _find(self, table: Table, points: Points, weights: Array | None) -> None:
        """Find the clusters of rows, and hold them."""
        raise NotImplementedError

    # Written here, since scikit-learn's set_output changes only what a class below its mixin says itself.

    def transform(self, X: Any) -> Array:
        """Return the distance of each row from each centre, rows × clusters; in single precision if rows are."""
        return CentreQuestions.transform(self, X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the clusters of rows, and return the distance of each row from each centre."""
        return CentreQuestions.fit_transform(self, X, y, sample_weight)

    save = Estimator.save

    @property
    def cluster_centers_(self) -> Array:
        """The centres, clusters × columns, of the type of the data if that is float32."""
        state = self.fitted()
        return state.cluster_centers.astype(state.dtype, copy=False)

    @cluster_centers_.setter
    def cluster_centers_(self, centres: Array) -> None:
        state, given = self.fitted(), np.asarray(centres, dtype=np.float64)
        known = np.asarray(~np.isnan(given).all(axis=0))
        moved = np.ascontiguousarray(np.where(known, given - state.origin, 0.0))
        self._state = replace(state, centres=moved, known=known)

    def __sklearn_tags__(self) -> Any:
        tags = face_tags(super().__sklearn_tags__())
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.fitted().centres)

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
                warn(
                    "Explicit initial center position passed: performing only one init in "
                    f"{type(self).__name__} instead of n_init={self._n_init}.",
                    RuntimeWarning,
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

    def _hold_centres(self, table: Table, points: Points, centres: Array, statistics: Statistics) -> None:
        cells = points.cells[2] if isinstance(points.cells, tuple) else points.cells
        reader = self.plan().matrix(table.columns)
        self._state = Centres(
            reader, statistics, np.ascontiguousarray(centres), points.origin, points.known, cells.dtype
        )

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


class KMeans(CentreFace, cluster.KMeans):  # type: ignore[misc]
    """scikit-learn's ``KMeans``: each row belongs to the nearest centre, each centre is the mean of its rows.

    Labels are exact, also of float32 and of data far from 0. Missing cells (NaN) are left out of distances and means.
    A weight of 2 is a row twice, also where rows are drawn. Equal seeds draw other rows than scikit-learn does.

    Parameters
    ----------
    n_clusters
        the number of clusters
    init
        the first centres: "k-means++" (the best of several rows that lie far apart by chance), "random" (rows), an
        array, or a function of the rows, the number of clusters and ``random_state``, which gets the rows as they are
    n_init
        how often to begin, of which the best is kept; "auto": 10 times, but once from "k-means++" or an array
    max_iter
        how many iterations each start takes at most
    tol
        end when the squares of the centres' movements add up to no more than this share of the columns' mean variance
    verbose
        whether to print the inertia of each iteration
    random_state
        a seed or a random state
    copy_x
        has no effect: rows are never changed, nor copied
    algorithm
        "lloyd" or "elkan": has no effect, the core chooses; the results are the same

    Attributes
    ----------
    cluster_centers_
        clusters × columns, of the type of the data if that is float32
    labels_
        the cluster of each row
    inertia_
        the sum of squares about the centres
    n_iter_
        how many iterations the best start took
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely.sklearn import KMeans
    >>> model = KMeans(2, random_state=0).fit([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    """

    _default_n_init = 10

    def _check_against(self, table: Table) -> None:
        super()._check_against(table)
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warn("algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.", RuntimeWarning)

    def _find(self, table: Table, points: Points, weights: Array | None) -> None:
        found = self._best(points, weights)
        self._hold_centres(table, points, found.centres, about_centres(points, found, weights))
        self.labels_, self.inertia_ = found.labels, found.inertia
        # scikit-learn counts the iteration in which nothing changes.
        self.n_iter_ = found.iterations + found.unchanged
        distinct = found.distinct
        if distinct < self.n_clusters:
            warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). Possibly "
                "due to duplicate points in X.",
                ConvergenceWarning,
            )

    def _best(self, points: Points, weights: Array | None) -> Clustering:
        generator = check_random_state(self.random_state)
        order = Order.of(points) if isinstance(self.init, str) else None
        best: Clustering | None = None
        for _ in range(self._n_init):
            first = self._begin(points, weights, generator, order)
            self._say("Initialization complete")
            found = iterate(points, first, weights, self.max_iter, float(self.tol), course=bool(self.verbose))
            self._print_course(found, self.tol * points.variance)
            if found.beats(best):
                best = found
        assert best is not None
        return best

    def _print_course(self, found: Clustering, least: float) -> None:
        for i, inertia in enumerate(found.course):
            self._say(f"Iteration {i}, inertia {inertia}.")
        if found.unchanged:
            self._say(f"Converged at iteration {found.iterations}: strict convergence.")
        elif found.converged:
            self._say(
                f"Converged at iteration {found.iterations - 1}: center shift {found.shift} within tolerance {least}."
            )


class MiniBatchKMeans(CentreFace, cluster.MiniBatchKMeans):  # type: ignore[misc]
    """scikit-learn's ``MiniBatchKMeans``: k-means of some rows at a time.

    Missing cells (NaN) are left out of distances and means. A weight of 2 is a row twice: batches are drawn from
    distinct rows, with chances by their weights. Equal seeds draw other rows than scikit-learn does.

    Parameters
    ----------
    n_clusters, init, random_state
        as of ``KMeans``
    max_iter
        how often as many rows as there are may be drawn
    batch_size
        rows of a batch
    verbose
        whether to print the inertia of each batch
    compute_labels
        whether to find the cluster of every row in the end
    tol
        end when the squares of the centres' movements add up to no more than this share of the columns' mean
        variance; 0: never for that reason
    max_no_improvement
        end when so many batches in a row did not lower the smoothed inertia; None: never for that reason
    init_size
        rows from which the first centres are drawn; by default three batches, or three for each cluster
    n_init
        how many first centres are tried on ``init_size`` rows; "auto": 3, but 1 of "k-means++" or an array
    reassignment_ratio
        a centre with less than this share of the weight of the heaviest is put where a row is

    Attributes
    ----------
    cluster_centers_
        clusters × columns, of the type of the data if that is float32
    labels_, inertia_
        the cluster of each row, and the sum of squares about the centres
    n_iter_, n_steps_
        how often as many rows as there are were drawn, and how many batches
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely.sklearn import MiniBatchKMeans
    >>> model = MiniBatchKMeans(2, random_state=0).fit([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model.predict([[0, 0], [12, 3]]).tolist() in ([0, 1], [1, 0])
    True
    """

    _default_n_init = 3
    n_steps_: int
    _idle = 0.0
    saved_attributes: ClassVar = {"n_iter_": int, "inertia_": float, "n_steps_": int}
    needed_attributes = ("n_steps_",)

    def _find(self, table: Table, points: Points, weights: Array | None) -> None:
        generator = check_random_state(self.random_state)

        def begin(some: Points, counts: Array) -> Array:
            return self._begin(some, counts, generator)

        found = follow(points, self.n_clusters, begin, self._n_init, generator, weights, self._settings, self._say)
        self.n_steps_, self.n_iter_ = found.steps, found.epochs
        self._hold_running(table, found.running, points)
        if self.compute_labels:
            self.labels_, self.inertia_ = nearest(points, self.fitted().centres, weights)
        else:
            self.inertia_ = found.inertia * (table.rows if weights is None else float(weights.sum()))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Move the centres by one batch: each becomes the mean of all rows that it was ever nearest to.

        Parameters
        ----------
        X, y, sample_weight
            as in ``fit``
        """
        check_parameters(self)
        if self.__sklearn_is_fitted__():
            state = self.fitted()
            table = state.reader.read(X)
            weights = read_weights(sample_weight, table.rows)
            points, centres = state.points(table)
            running = RunningCentres(centres, state.statistics.restored().sums["weight"], self._idle)
        else:
            table = read_first(X)
            weights = read_weights(sample_weight, table.rows)
            self._check_against(table)
            points = read_points(table, weights=weights)
            self._random_state = check_random_state(self.random_state)
            running = RunningCentres.started(self._begin(points, weights, self._random_state))
            self.n_steps_ = 0
        if not hasattr(self, "_random_state"):
            self._random_state = check_random_state(self.random_state)
        running, _ = running.after(points, weights, self._random_state, self.reassignment_ratio, self._say)
        self._hold_running(table, running, points)
        self.n_steps_ += 1
        if self.compute_labels:
            self.labels_, self.inertia_ = nearest(points, self.fitted().centres, weights)
        return self

    def _check_against(self, table: Table) -> None:
        super()._check_against(table)
        if self.init_size is not None and self.init_size < self.n_clusters:
            warn(
                f"init_size={self.init_size} should be larger than n_clusters={self.n_clusters}. Setting it to "
                "min(3*n_clusters, n_samples)",
                RuntimeWarning,
            )
        self._init_size = init_size(self._settings, self.n_clusters, table.rows)

    @property
    def _settings(self) -> Settings:
        return Settings(
            self.batch_size,
            self.max_iter,
            float(self.tol),
            self.max_no_improvement,
            self.init_size,
            float(self.reassignment_ratio),
        )

    def _hold_running(self, table: Table, running: RunningCentres, points: Points) -> None:
        self._idle = running.idle
        sums = cluster_sums(running.weight, np.zeros(running.weight.shape), running.centres + points.origin)
        self._hold_centres(table, points, running.centres, sums)
