"""scikit-learn's k-means, on likely's core."""

import warnings
from typing import Any, ClassVar, Self

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from likely.data.labels import read_weights
from likely.learn.kmeans import Clustering, about_centres, iterate
from likely.learn.starts import Order, Points, read_points
from likely.messages import tell
from likely.sklearn.centred import COMMON, CentredFace
from likely.statistics import Array


class KMeans(CentredFace):
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

    _parameter_constraints: ClassVar = {
        **COMMON,
        "copy_x": ["boolean"],
        "algorithm": [StrOptions({"lloyd", "elkan"})],
    }
    _default_n_init = 10

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm

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
        self._validate_params()
        table = self._read_first(X)
        weights = read_weights(sample_weight, table.rows)
        self._check_against(table)
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=2,
            )
        points = read_points(table, exactly=self.tol > 0, weights=weights)
        found = self._best(points, weights)
        self._keep_columns(table.columns)
        self._keep_dtype(points)
        self._origin = points.origin
        self.statistics_ = about_centres(points, found, weights)
        self._keep_centres(found.centres, points.known)
        self.labels_, self.inertia_ = found.labels, found.inertia
        # scikit-learn counts the iteration in which nothing changes.
        self.n_iter_ = found.iterations + found.settled
        distinct = found.distinct
        if distinct < self.n_clusters:
            tell(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({self.n_clusters}). Possibly "
                "due to duplicate points in X.",
                ConvergenceWarning,
            )
        return self

    def _best(self, points: Points, weights: Array | None) -> Clustering:
        generator = check_random_state(self.random_state)
        order = Order.of(points) if isinstance(self.init, str) else None
        best: Clustering | None = None
        for _ in range(self._n_init):
            first = self._begin(points, weights, generator, order)
            self._say("Initialization complete")
            found = iterate(points, first, weights, self.max_iter, float(self.tol), course=bool(self.verbose))
            self._tell_of(found, self.tol * points.variance)
            if found.beats(best):
                best = found
        assert best is not None
        return best

    def _tell_of(self, found: Clustering, least: float) -> None:
        for i, inertia in enumerate(found.course):
            self._say(f"Iteration {i}, inertia {inertia}.")
        if found.settled:
            self._say(f"Converged at iteration {found.iterations}: strict convergence.")
        elif found.converged:
            self._say(
                f"Converged at iteration {found.iterations - 1}: center shift {found.shift} within tolerance {least}."
            )
