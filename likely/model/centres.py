"""Centres of clusters: what k-means has when it is fitted, and every question to them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from likely import native
from likely.data.labels import read_weights
from likely.data.table import Columns, SparseRows, Table
from likely.engines import engine_of
from likely.families import on_one_line
from likely.families.base import readable_errors
from likely.learn.kmeans import Points, given_centres, means, merged, nearest, readable
from likely.model.questions import GROUP, Answer, Questions
from likely.model.readers import MatrixReader
from likely.model.state import not_fitted
from likely.statistics import Array, Statistics


@dataclass(frozen=True, eq=False)
class Centres:
    """The centres of clusters, each the mean of its rows."""

    reader: MatrixReader
    """how rows are read"""
    statistics: Statistics
    """the weight and the sum of each cluster's cells"""
    centres: Array
    origin: Array
    """the centres less an origin, and the origin"""
    known: NDArray[np.bool_]
    """of each column whether it has a cell at all"""
    dtype: DTypeLike = np.float32
    """distances are of the type of the rows, or of this if that is wider"""

    @property
    def columns(self) -> Columns:
        """How many columns there are, and their names."""
        return self.reader.columns

    @property
    def cluster_centers(self) -> Array:
        """The centres, NaN in a column without any cell."""
        return np.where(self.known, self.centres + self.origin, np.nan)

    def points(self, table: Table) -> tuple[Points, Array]:
        """Return rows about the origin, and the centres."""
        cells = readable(table)
        if isinstance(table.cells, SparseRows):  # about 0, where most cells are
            origin = np.zeros(len(self.known))
            return Points(cells, origin, False, table.rows, 0.0, self.known), self.centres + self.origin
        if not self.known.all():  # of such a column nothing is known
            cells = np.where(self.known, cells, np.nan)
        with readable_errors(table, "finite numbers"):
            missing = native.kmeans_missing(cells)
        return Points(cells, self.origin, missing, table.rows, 0.0, self.known), self.centres

    def distances(self, table: Table) -> Array:
        """Return the distance of each row from each centre, rows × clusters."""
        points, _ = self.points(table)
        centres = given_centres(points, self.cluster_centers)  # as they are shown: one lies at 0 from itself
        squares = native.kmeans_distances(points.cells, points.origin, bool(points.missing), centres)
        if points.missing:
            present = np.count_nonzero(~np.isnan(points.cells), axis=1)[:, None]
            squares *= np.count_nonzero(self.known) / np.maximum(present, 1)
        cells = points.cells[2] if isinstance(points.cells, tuple) else points.cells
        return np.sqrt(squares, out=squares).astype(np.result_type(cells, self.dtype), copy=False)

    def with_statistics(self, statistics: Statistics) -> Self:
        """Return centres that are the means of all that was learned; one without any stays where it is."""
        new = means(statistics)
        there = ~np.isnan(new)
        centres = np.ascontiguousarray(np.where(there, new - self.origin, self.centres))
        return replace(self, statistics=statistics, centres=centres, known=self.known | there.any(axis=0))


class CentreQuestions:
    """What can be asked of a model that has centres: all of it is asked of the state that it holds."""

    answers: ClassVar[str] = GROUP
    saved_attributes: ClassVar[Mapping[str, type]] = {"n_iter_": int, "inertia_": float}
    """What a file holds of the fit, beside the state, if it is there."""
    needed_attributes: ClassVar[tuple[str, ...]] = ()
    keeps_dtype: ClassVar[bool] = False
    """Whether centres are of the type of the rows."""
    labels_: NDArray[np.int32]
    inertia_: float
    n_iter_: int
    _state: Centres

    def fitted(self) -> Centres:
        """Return the fitted state, or raise NotFittedError."""
        try:
            return self._state
        except AttributeError:
            raise not_fitted(type(self).__name__) from None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    hold = Questions.hold
    n_features_in_ = Questions.n_features_in_
    feature_names_in_ = Questions.feature_names_in_

    @property
    def cluster_centers_(self) -> Array:
        """The centres, clusters × columns; NaN in a column without any cell."""
        return self.fitted().cluster_centers

    @property
    def statistics_(self) -> Statistics:
        """The weight and the sum of each cluster's cells."""
        return self.fitted().statistics

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of each row: the number of its nearest centre."""
        state = self.fitted()
        if (engine := engine_of(X)) is not None:
            return engine.lazily(Answer(self, "predict"))  # type: ignore[no-any-return]
        table = state.reader.read(X)
        if table.rows == 0:
            return np.zeros(0, dtype=np.int32)
        points, centres = state.points(table)
        return nearest(points, centres, wanted=False)[0]

    def transform(self, X: Any) -> Array:
        """Return the distance of each row from each centre, rows × clusters; in single precision if rows are."""
        state = self.fitted()
        return state.distances(state.reader.read(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of rows: the squared distances from their nearest centres, added up."""
        state = self.fitted()
        table = state.reader.read(X)
        points, centres = state.points(table)
        return -nearest(points, centres, read_weights(sample_weight, table.rows))[1]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows X, forgetting all that was found before."""
        raise NotImplementedError

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int32]:
        """Find the clusters of rows, and return that of each."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if hasattr(self, "labels_") else self.predict(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the clusters of rows, and return the distance of each row from each centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def merge(self, *others: Self) -> Self:
        """Learn what other models have learned of rows of their own; the others stay as they are.

        Clusters of all models are put together around the centres of this one, by k-means of their centres with their
        weights. ``labels_`` and ``inertia_`` go, since there are no rows that they could be of.

        >>> from likely import KMeans
        >>> one = KMeans(2, random_state=0).fit([[1.0], [2.0], [8.0]])
        >>> two = KMeans(2, random_state=0).fit([[3.0], [9.0], [10.0]])
        >>> sorted(one.merge(two).cluster_centers_.ravel().tolist())
        [2.0, 9.0]
        """
        state = self.fitted()
        every = [state.statistics.restored()]
        for other in others:
            if type(other) is not type(self) or other.fitted().centres.shape != state.centres.shape:
                raise ValueError(
                    f"expected a model of as many clusters and columns, {on_one_line(self)}, got {on_one_line(other)}: "
                    "fit both alike"
                )
            names = [list(each.columns.names or ()) for each in (state, other.fitted())]
            if names[0] != names[1]:
                raise ValueError(f"expected a model of the columns {names[0]}, got one of {names[1]}: fit both alike")
            every.append(other.fitted().statistics.restored())
        self._state = state.with_statistics(merged(every, state.centres + state.origin))
        for name in ("labels_", "inertia_"):
            self.__dict__.pop(name, None)
        return self
