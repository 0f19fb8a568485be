"""What all that finds centres does: answer by the nearest, be kept in a file, and be merged."""

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.labels import read_weights
from likely.data.rows import open_rows
from likely.data.table import Columns, SparseRows, Table
from likely.engines import engine_of
from likely.engines.labelled import is_typed, together
from likely.estimators.kmeans_rows import schema_of
from likely.estimators.protocol import Estimator, not_fitted
from likely.families import on_one_line
from likely.families.base import readable_errors
from likely.learn.kmeans import given_centres, means, merged, nearest
from likely.learn.starts import Points, readable
from likely.model.lazy import answered
from likely.persistence import file as files
from likely.persistence.centres import KINDS, SavedCentres
from likely.persistence.entries import kind_of
from likely.statistics import Array, Statistics


class Centred(Estimator):
    """Rows belong to the nearest of some centres, each of which is the mean of its rows."""

    _learns_labels = False

    n_clusters: int
    cluster_centers_: Array
    labels_: NDArray[np.int32]
    inertia_: float
    n_iter_: int
    statistics_: Statistics
    _centres: Array
    _origin: Array
    _dtype: Any = np.dtype(np.float32)
    """Distances are of the type of the rows, or of this if that is wider."""

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of each row: the number of its nearest centre."""
        if (engine := engine_of(X)) is not None:
            self._known_statistics()
            return answered(self, engine, "predict", {})  # type: ignore[no-any-return]
        table = self._asked(X)
        if table.rows == 0:
            return np.zeros(0, dtype=np.int32)
        points, centres = self._points(table)
        return nearest(points, centres, wanted=False)[0]

    def transform(self, X: Any) -> Array:
        """Return the distance of each row from each centre, rows × clusters; in single precision if rows are."""
        points, _ = self._points(self._asked(X))
        centres = given_centres(points, self.cluster_centers_)  # as they are told: one lies at 0 from itself
        squares = native.kmeans_distances(points.cells, points.origin, bool(points.holes), centres)
        if points.holes:
            present = np.count_nonzero(~np.isnan(points.cells), axis=1)[:, None]
            squares *= np.count_nonzero(self._known_columns) / np.maximum(present, 1)
        cells = points.cells[2] if isinstance(points.cells, tuple) else points.cells
        return np.sqrt(squares, out=squares).astype(np.result_type(cells, self._dtype), copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of rows: the squared distances from their nearest centres, added up."""
        table = self._asked(X)
        points, centres = self._points(table)
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
        everyone = [self._known_statistics(), *(self._alike(other)._known_statistics() for other in others)]
        self.statistics_ = merged(everyone, self._centres + self._origin)
        self._move_to_means()
        for name in ("labels_", "inertia_"):
            self.__dict__.pop(name, None)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, from which ``likely.load`` returns it; all but ``labels_``, which are of the rows.

        >>> import tempfile
        >>> import likely
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     likely.KMeans(2, random_state=0).fit([[1.0], [4.0]]).save(f"{folder}/two.likely")
        ...     sorted(likely.load(f"{folder}/two.likely").cluster_centers_.ravel().tolist())
        [1.0, 4.0]
        """
        statistics = self._known_statistics()
        names = getattr(self, "feature_names_in_", None)
        contents = SavedCentres(
            kind_of(type(self), KINDS),
            self.get_params(deep=False),
            Columns(self.n_features_in_, None if names is None else tuple(names)),
            statistics,
            self._centres,
            self._origin,
            self._known_columns,
            self._remembered(),
        ).contents()
        self._from_saved(SavedCentres.read(*contents))  # what could not be loaded is said now
        files.write(path, *contents)

    @classmethod
    def _from_saved(cls, saved: SavedCentres) -> Self:
        """Return the model that a file holds, or raise if its parts do not belong together."""
        model = cls(**saved.parameters)
        if model.n_clusters != len(saved.centres):
            raise ValueError(f"expected {on_one_line(model.n_clusters)} clusters, got centres of {len(saved.centres)}")
        model._keep_columns(saved.columns)
        model._origin, model.statistics_ = saved.origin, saved.statistics
        model._keep_centres(saved.centres, saved.known)
        model._remember(saved.more)
        return model

    def _remembered(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_iter_", "inertia_") if hasattr(self, name)}

    def _remember(self, more: Mapping[str, Any]) -> None:
        for name, kind in (("n_iter_", int), ("inertia_", float)):
            if name in more:
                if type(more[name]) is not kind:
                    raise ValueError(f"expected a number as {name}, got {on_one_line(more[name])}")
                setattr(self, name, more[name])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_centres")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "clusterer", None
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64", "float32"])
        tags.input_tags.sparse = True
        return tags

    def _known_statistics(self) -> Statistics:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)
        return self.statistics_.restored()

    def _alike(self, other: Self) -> Self:
        names = [list(getattr(each, "feature_names_in_", [])) for each in (self, other)]
        if type(other) is not type(self) or other._known_statistics().sums["sum"].shape != self._centres.shape:
            raise ValueError(
                f"expected a model of as many clusters and columns, {on_one_line(self)}, got {on_one_line(other)}: fit "
                "both alike"
            )
        if names[0] != names[1]:
            raise ValueError(f"expected a model of the columns {names[0]}, got one of {names[1]}: fit both alike")
        return other

    def _asked(self, X: Any) -> Table:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)
        if hasattr(self, "feature_names_in_") and is_typed(X) and not hasattr(X, "dtypes"):
            return schema_of(self.feature_names_in_).table(together(open_rows(X)))
        return self._read_next(X)

    @property
    def _known_columns(self) -> NDArray[np.bool_]:
        return np.asarray(~np.isnan(self.cluster_centers_).all(axis=0))

    def _keep_centres(self, centres: Array, known: NDArray[np.bool_]) -> None:
        self._centres = np.ascontiguousarray(centres)
        self.cluster_centers_ = np.where(known, self._centres + self._origin, np.nan)

    def _move_to_means(self) -> None:
        """Make the centres the means of all that was learned; one without any stays where it is."""
        new = means(self.statistics_)
        there = ~np.isnan(new)
        centres = np.where(there, new - self._origin, self._centres)
        self._keep_centres(centres, self._known_columns | there.any(axis=0))

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
