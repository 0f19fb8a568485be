"""Gaussian discriminant analysis: a Gaussian for every class, from spherical to full, by class or tied."""

from typing import Any, ClassVar, Self

import numpy as np

from likely.data.folds import Without
from likely.data.rows import Rows, open_rows
from likely.data.schema import Schema, read_target
from likely.data.table import SparseRows, Table
from likely.engines import rows_of, with_labels
from likely.engines.labelled import (
    collected,
    is_typed,
    labelled_whole,
    tell_of_unlabelled,
    together,
)
from likely.engines.sampling import sampled
from likely.ensemble.selection import SAMPLE
from likely.estimators.evaluated_rows import StreamedClassifier
from likely.estimators.kmeans_rows import numbers_of, schema_of
from likely.estimators.labelled_rows import any_holes, with_missing_cells
from likely.estimators.laws import Laws
from likely.families import Gaussian
from likely.joint import Part
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.semi_supervised import check_unlabelled
from likely.model.state import Knowledge
from likely.statistics import Array, Assignment


class GaussianDiscriminant(StreamedClassifier):
    """Classify rows by a Gaussian for each class. ``tied=True`` makes the boundaries linear, else they are quadratic.

    Cells may be missing (NaN). A full covariance is then fitted by expectation maximisation, each batch by itself: of
    rows with holes ``partial_fit``, ``merge`` and ``forget`` give nearly the model of all rows together, of others
    exactly that.

    Parameters
    ----------
    covariance
        "full": columns depend on each other; "diagonal": they do not; "spherical": and vary alike
    tied
        True for one covariance of all classes (linear discriminant analysis if full), False for one each
        (quadratic), or a number between 0 and 1 for a mean of both (regularised)
    shrinkage
        how far the covariance is pulled to a simpler one: a number from 0 (the maximum of the likelihood) to 1, or if
        full "oas" or "ledoit-wolf", which choose it from the data: next to nothing where rows are many. "oas" makes an
        inverse exist where they are few; it is the default if full, else 0 is.
    target
        what a full covariance is pulled to: "diagonal" (correlations shrink, variances stay; the default), or
        "spherical", which depends on the units of the columns
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the shares of the classes in the data
    pseudo_rows
        rows like those of all classes together that every class is imagined to have, or a ``likely.GaussianPrior``
    unbiased
        divide scatters by n − 1 (n − the number of classes if tied) instead of n
    unlabelled
        as of ``NaiveBayes``

    Attributes
    ----------
    classes_
        the labels, sorted
    class_count_
        the weight of the rows of each class
    priors_
        p(y)
    means_
        classes × columns
    covariances_
        classes × columns × columns, or columns × columns if tied; of the diagonal only, unless full
    joint_
        the joint distribution
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> import numpy as np
    >>> from likely import GaussianDiscriminant
    >>> X = np.array([[0.0, 0.1], [1.0, 0.9], [0.2, 0.6], [3.0, 0.2], [4.0, 0.8], [3.5, 1.0]])
    >>> model = GaussianDiscriminant(tied=True, shrinkage=0.1).fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.predict([[0.5, np.nan], [3.0, 0.5]]).tolist()
    [0, 1]
    """

    # Under a full covariance batches, merge and forget are exact of rows without missing cells.
    laws: ClassVar[Laws] = Laws()

    def __init__(
        self,
        covariance: str = "full",
        *,
        tied: float = False,
        shrinkage: Any = None,
        target: str | None = None,
        priors: Any = None,
        pseudo_rows: Any = 0.0,
        unbiased: bool = False,
        unlabelled: Any = "auto",
    ):
        self.covariance = covariance
        self.tied = tied
        self.shrinkage = shrinkage
        self.target = target
        self.priors = priors
        self.pseudo_rows = pseudo_rows
        self.unbiased = unbiased
        self.unlabelled = unlabelled

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            a matrix or a frame of numbers, in which NaN is a missing cell; with the name of a column as y also what
            ``NaiveBayes`` takes as a table, if its other columns are numbers
        y
            a label for each row, or the name of the column that holds it
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        X, y = with_labels(X, y, sample_weight)
        if not isinstance(y, str):
            return super().fit(X, y, sample_weight)
        rows, schema = _opened(X, y)
        knowledge = self._learned_of(rows, schema, y, sample_weight)
        knowledge.joint  # noqa: B018  what cannot be solved is said at once
        self._keep(schema.table(rows.schema.empty_table(), note=False), knowledge)
        return self

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation | SummedEvaluation:
        """Return how well models of this kind predict rows that they have not seen, as for ``NaiveBayes``.

        X and y are those of ``fit``.
        """
        X, y = with_labels(X, y)
        if not isinstance(y, str):
            return super().evaluate(X, y, folds=folds, sample_weight=sample_weight, random_state=random_state)
        return self._evaluated_of(*_opened(X, y), y, sample_weight, folds, random_state)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right; ``y`` may be the name of a column of X."""
        X, y = with_labels(X, y) if hasattr(X, "columns") else (X, y)
        if isinstance(y, str):
            X = together(_opened(X, y)[0])
            y = read_target(X, y)
        return super().score(X, y, sample_weight)

    def _learned_of(self, rows: Rows, schema: Schema, y: Any, sample_weight: Any) -> Knowledge:
        """Learn from a table; many rows that do not lie in memory stay there."""
        partly = check_unlabelled(self.unlabelled) is not None
        some = None if rows.held else sampled(schema, rows, y, sample_weight, SAMPLE, 0, partly=partly)
        if some is None or some.whole or self._learns_unlabelled(some.labelled, some.unlabelled):
            return self._begun_partly(*labelled_whole(schema, rows, y, sample_weight, partly=partly))
        tell_of_unlabelled(some.unlabelled, y)
        known = self._begun(*some.rows)
        without = sample_weight if isinstance(sample_weight, Without) else None
        if self.covariance == "full" and sample_weight is without and any_holes(rows, schema):
            start = known.statistics
            found = with_missing_cells(rows, schema, y, without, some.labelled, start, known.parts)
            return known.with_statistics(found)
        every = collected(rows, schema, y, sample_weight, known.collector, note=False)
        assert every.statistics is not None
        return known.with_statistics(every.statistics)

    def _parts_by_kind(self, schema: Schema, rows: Rows) -> tuple[Part, ...]:
        return self._parts_of_no_rows(schema, rows)

    def _read_next(self, X: Any) -> Table:
        names = getattr(self, "feature_names_in_", None)
        if names is not None and is_typed(X) and (not hasattr(X, "dtypes") or set(names) < set(X.columns)):
            return schema_of(names).table(together(open_rows(X)))
        return super()._read_next(X)

    def _parts(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        if isinstance(table.cells, SparseRows):
            raise TypeError("expected a dense array, got a sparse matrix: call X.toarray() first")
        shrinkage = self.shrinkage
        if shrinkage is None:
            shrinkage = "oas" if self.covariance == "full" else 0.0
        family = Gaussian(self.covariance, self.tied, shrinkage, self.target, self.pseudo_rows, self.unbiased)
        return (Part(family, None),)

    @property
    def means_(self) -> Array:
        """The mean of every class."""
        return np.asarray(self.joint_.densities[0].mean)  # type: ignore[attr-defined]

    @property
    def covariances_(self) -> Array:
        """The covariance of every class, or the one of all if tied."""
        density: Any = self.joint_.densities[0]
        family: Any = self.joint_.parts[0].family
        spread = np.asarray(density.covariance if family.covariance == "full" else density.variance)
        return spread[0] if float(family.tied) == 1 else spread


def _opened(X: Any, y: str) -> tuple[Rows, Schema]:
    """Return the rows of a table of numbers, and what its columns are, but that of the labels."""
    rows = rows_of(X)
    return rows, numbers_of(rows, but=y)
