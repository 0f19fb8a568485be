"""scikit-learn's mini-batch k-means, on likely's core."""

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from likely.data.labels import read_weights
from likely.data.table import Table
from likely.learn.kmeans import cluster_sums, nearest
from likely.learn.minibatch_kmeans import Running, Settings, follow, init_size
from likely.learn.starts import Points, read_points
from likely.sklearn.centred import AT_LEAST_ONE, COMMON, NOT_NEGATIVE, CentredFace
from likely.statistics import Array


class MiniBatchKMeans(CentredFace):
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

    _parameter_constraints: ClassVar = {
        **COMMON,
        "batch_size": [AT_LEAST_ONE],
        "compute_labels": ["boolean"],
        "max_no_improvement": [Interval(Integral, 0, None, closed="left"), None],
        "init_size": [AT_LEAST_ONE, None],
        "reassignment_ratio": [NOT_NEGATIVE],
    }
    _default_n_init = 3
    n_steps_: int
    _idle = 0.0

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        verbose: int = 0,
        compute_labels: bool = True,
        random_state: Any = None,
        tol: float = 0.0,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: Any = "auto",
        reassignment_ratio: float = 0.01,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio

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
        table = self._read_first(X)
        weights = read_weights(sample_weight, table.rows)
        settings = self._check_first(table)
        points = read_points(table, exactly=self.tol > 0, weights=weights)
        generator = check_random_state(self.random_state)

        def begin(some: Points, counts: Array) -> Array:
            return self._begin(some, counts, generator)

        found = follow(points, self.n_clusters, begin, self._n_init, generator, weights, settings, self._say)
        self._keep_columns(table.columns)
        self.n_steps_, self.n_iter_ = found.steps, found.epochs
        self._keep_running(found.running, points)
        if self.compute_labels:
            self.labels_, self.inertia_ = nearest(points, self._centres, weights)
        else:
            self.inertia_ = found.inertia * (table.rows if weights is None else float(weights.sum()))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Move the centres by one batch: each becomes the mean of all rows that it was ever nearest to.

        Parameters
        ----------
        X, y, sample_weight
            as in ``fit``
        """
        if self.__sklearn_is_fitted__():
            self._validate_params()
            table = self._read_next(X)
            weights = read_weights(sample_weight, table.rows)
            points, centres = self._points(table)
            running = Running(centres, self.statistics_.restored().sums["weight"], self._idle)
        else:
            table = self._read_first(X)
            weights = read_weights(sample_weight, table.rows)
            self._check_first(table)
            points = read_points(table, weights=weights)
            self._random_state = check_random_state(self.random_state)
            running = Running.begun(self._begin(points, weights, self._random_state))
            self._keep_columns(table.columns)
            self.n_steps_ = 0
        if not hasattr(self, "_random_state"):
            self._random_state = check_random_state(self.random_state)
        running, _ = running.after(points, weights, self._random_state, self.reassignment_ratio, self._say)
        self._keep_running(running, points)
        self.n_steps_ += 1
        if self.compute_labels:
            self.labels_, self.inertia_ = nearest(points, self._centres, weights)
        return self

    def _check_first(self, table: Table) -> Settings:
        self._validate_params()
        self._check_against(table)
        if self.init_size is not None and self.init_size < self.n_clusters:
            warnings.warn(
                f"init_size={self.init_size} should be larger than n_clusters={self.n_clusters}. Setting it to "
                "min(3*n_clusters, n_samples)",
                RuntimeWarning,
                stacklevel=3,
            )
        settings = Settings(
            self.batch_size,
            self.max_iter,
            float(self.tol),
            self.max_no_improvement,
            self.init_size,
            float(self.reassignment_ratio),
        )
        self._init_size = init_size(settings, self.n_clusters, table.rows)
        return settings

    def _keep_running(self, running: Running, points: Points) -> None:
        self._idle, self._origin = running.idle, points.origin
        self._keep_dtype(points)
        self._keep_centres(running.centres, points.known)
        self.statistics_ = cluster_sums(running.weight, np.zeros(running.weight.shape), running.centres + points.origin)

    def _remembered(self) -> dict[str, Any]:
        return {**super()._remembered(), "n_steps_": self.n_steps_}

    def _remember(self, more: Mapping[str, Any]) -> None:
        super()._remember(more)
        if type(more.get("n_steps_")) is not int:
            raise ValueError(f"expected a whole number as n_steps_, got {more.get('n_steps_')!r}")
        self.n_steps_ = more["n_steps_"]
