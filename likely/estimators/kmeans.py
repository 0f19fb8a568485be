"""k-means: groups of rows around centres."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from likely.data.labels import read_weights
from likely.data.table import Table
from likely.estimators import fitting
from likely.estimators.base import Estimator, tags_of
from likely.estimators.fitting import Plan
from likely.estimators.laws import Laws
from likely.families import read_number, read_numbers
from likely.learn.kmeans import (
    STARTS,
    Clustering,
    Order,
    Points,
    UnreadError,
    about_centres,
    collect,
    drawn_centres,
    given_centres,
    read_points,
    restarts,
)
from likely.learn.minibatch_kmeans import Settings, follow
from likely.learn.out_of_core import HiddenRows, moved
from likely.messages import warn
from likely.model.centres import CentreQuestions, Centres
from likely.model.questions import random_generator
from likely.statistics import Array


class Start(NamedTuple):
    """What came of one start."""

    inertia: float
    iterations: int
    converged: bool


@dataclass(eq=False, repr=False)
class KMeans(CentreQuestions, Estimator):
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
        how often to begin; the result of the least inertia is kept. Given centres are started from once.
    max_iterations
        how often the centres of each start move at most
    tolerance
        end when the squares of the centres' movements add up to no more than this share of the columns' mean
        variance; by default when no row changes its cluster
    batch_size
        None: all rows in every iteration. A number: so many rows drawn by chance at a time, until ten batches in a row
        did not get better, or ``max_iterations`` × as many rows as there are were drawn. It costs a look at some rows,
        and ends near the result of all. Of ``n_starts`` first centres, drawn from some rows, the best are taken.
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
        how often the centres of the best start moved; of batches, how often as many rows as there are were drawn
    starts_
        inertia, iterations and whether it converged, of each start; of batches, of all
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

    # partial_fit and merge move centres, which end near to those of fit; clusters are no distributions.
    laws: ClassVar[Laws] = Laws(
        batches="not offered",
        merge="not offered",
        forget="not offered",
        missing="not offered",
        posterior="not offered",
        density="not offered",
        sample="not offered",
    )

    n_clusters: int = 8
    _: KW_ONLY
    start: Any = "k-means++"
    n_starts: int = 10
    max_iterations: int = 300
    tolerance: float = 0.0
    batch_size: int | None = None
    random_state: Any = None

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
        reader, rows = fitting.open_hidden(self.plan(), X, sample_weight)
        table, weights = rows.table, rows.weights
        k = self._checked(table)
        exactly = self.tolerance > 0
        try:
            # With centres to begin with, the first look at the rows may as well be that of the iteration.
            look = isinstance(self.start, str) or self.batch_size is not None
            points = read_points(table, exactly, weights, look)
            found, starts = self._best(points, k, weights)
        except UnreadError:
            points = read_points(table, exactly, weights)
            found, starts = self._best(points, k, weights)
        centres = np.ascontiguousarray(found.centres)
        statistics = about_centres(points, found, weights)
        self._state = Centres(reader, statistics, centres, points.origin, points.known)  # type: ignore[arg-type]
        self.starts_ = starts
        self.labels_, self.inertia_, self.n_iter_ = found.labels, found.inertia, found.iterations
        if (distinct := found.distinct) < k:
            warn(f"found {distinct} distinct clusters, fewer than n_clusters={k}: are rows of X the same?")
        if isinstance(rows, HiddenRows):
            self._move_everywhere(rows)
        return self

    def plan(self) -> Plan:
        """Return what is to be fitted: centres of numbers, each row belongs to the nearest."""
        return Plan("KMeans", lambda *_: (), "numbers")

    def _move_everywhere(self, rows: HiddenRows) -> None:
        """Go on from the centres of a sample: every movement is a pass over all rows. There are no ``labels_``."""
        assert rows.everywhere is not None
        del self.labels_
        state = self.fitted()
        first = state.centres if isinstance(self.start, str) else np.asarray(self.start, np.float64) - state.origin
        least = float(self.tolerance) * read_points(rows.table, True, rows.weights).variance
        centres, found, self.n_iter_ = moved(
            rows.everywhere, first, state.origin, state.known, self.max_iterations, least
        )
        statistics, self.inertia_ = found
        self._state = replace(state, statistics=statistics, centres=np.ascontiguousarray(centres))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of rows: each centre becomes the mean of all rows that it was ever nearest to.

        The first batch is clustered as by ``fit``. ``labels_`` and ``inertia_`` are those of the last batch.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, sample_weight=sample_weight)
        state = self.fitted()
        table = state.reader.read(X)
        weights = read_weights(sample_weight, table.rows)
        points, centres = state.points(table)
        more, self.labels_, self.inertia_ = collect(points, centres, weights)
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1  # a file need not say it
        self._state = state.with_statistics(state.statistics.restored() + more)
        return self

    def _best(self, points: Points, k: int, weights: Array | None) -> tuple[Clustering, list[Start]]:
        """Begin several times, and return where the best ended, and what came of each."""
        generator = random_generator(self.random_state)
        times = self.n_starts if isinstance(self.start, str) else 1
        if self.batch_size is not None:
            found = self._by_batches(points, k, weights, times, generator)
            return found, [Start(found.inertia, found.iterations, found.converged)]
        every = restarts(points, k, self.start, times, generator, weights, self.max_iterations, float(self.tolerance))
        best: Clustering | None = None
        starts = []
        for one in every:
            starts.append(Start(one.inertia, one.iterations, one.converged))
            if one.beats(best):
                best = one
        assert best is not None
        return best, starts

    def _by_batches(
        self, points: Points, k: int, weights: Array | None, times: int, generator: np.random.Generator
    ) -> Clustering:
        def begin(some: Points, counts: Array) -> Array:
            if not isinstance(self.start, str):
                return given_centres(some, self.start)
            return drawn_centres(some, k, self.start, Order.of(some), generator, counts)

        assert self.batch_size is not None
        settings = Settings(int(self.batch_size), int(self.max_iterations), float(self.tolerance))
        return follow(points, k, begin, times, generator, weights, settings).clustering(points, weights)

    def _checked(self, table: Table) -> int:
        """Check the parameters, and return the number of clusters."""
        k = self.n_clusters
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"expected a whole number of clusters from 1 on, got n_clusters={k!r}")
        for name in ("n_starts", "max_iterations", "batch_size"):
            value = getattr(self, name)
            if name == "batch_size" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 1 << 63:
                raise ValueError(f"expected a whole number from 1 on, below 2⁶³, got {name}={value!r}")
        if not 0 <= read_number(self.tolerance, "tolerance as a number from 0 on") < np.inf:
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
        start = read_numbers(self.start, f"start to be one of {', '.join(map(repr, STARTS))} or centres")
        if start.shape != (k, table.columns.width) or np.isinf(start).any():
            raise ValueError(
                f"expected finite centres of shape {(int(k), table.columns.width)} (clusters × columns) as start, "
                f"got shape {start.shape}"
            )
        return int(k)

    def __sklearn_tags__(self) -> Any:
        return tags_of("clusterer", sparse=True)
