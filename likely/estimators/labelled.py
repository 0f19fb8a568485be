"""What every classifier does with labelled rows: learn, merge, forget, and be evaluated."""

from typing import Any, Self

from likely.estimators import fitting
from likely.estimators.cross_validation import evaluate
from likely.estimators.fitting import Plan
from likely.estimators.protocol import Estimator, tags_of
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.questions import Questions


class LabelledEstimator(Questions):
    """An estimator that learns from rows with labels: it hands its plan to the pipeline, and holds what comes back."""

    get_params, set_params, __repr__, save = (
        Estimator.get_params,
        Estimator.set_params,
        Estimator.__repr__,
        Estimator.save,
    )

    def plan(self) -> Plan:
        """Return what is to be fitted."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            a matrix of numbers, in which NaN is a missing cell; or a table: a frame of pandas or Polars, an Arrow
            table, a DuckDB relation, a list of dicts, or the path of a CSV, Parquet, Arrow or JSON lines file; or an
            array or frame of Dask, or a frame of Spark or Ray, which is learned on the workers;
            ``GaussianDiscriminant`` takes tables of numbers
        y
            a label for each row, of Dask's blocks in as many blocks; or, if X is a table, the name of the column that
            holds it
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        self._state = fitting.fit(self.plan(), X, y, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come.

        What the first rows decided stays: the types of columns, and of ``Classifier`` ranks, bins and the calibration;
        of ``TextClassifier`` exponents, so let its first texts be some hundreds, of all classes. ``classes`` may name
        labels that will come later; labels not named are learned when they come.
        """
        before = getattr(self, "_state", None)
        self._state = fitting.partial_fit(self.plan(), before, X, y, classes, sample_weight)
        return self

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are. Models of ``Classifier`` must have been chosen on the same rows: fit one, and let
        ``emptied`` copies of it learn other rows.
        """
        self._state = fitting.merge(self, others)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        self._state = fitting.forget(self.fitted(), X, y, sample_weight)
        return self

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation | SummedEvaluation:
        """Return how well models of this kind predict rows that they have not seen. The model itself stays as it is.

        The rows are assigned to cross-validation folds, statistics are collected fold by fold in one pass, and each
        fold is predicted by a model of the others, in which whatever is chosen is chosen anew. Of many rows in files,
        or in partitions of an engine, whose labels are in a column, a hash of their content says which fold they are
        in, they stay on the workers, and only the measures come back.

        >>> from likely import NaiveBayes
        >>> X = [[1.0], [1.5], [2.0], [4.0], [4.5], [5.0]]
        >>> NaiveBayes().evaluate(X, ["a", "a", "a", "b", "b", "b"], folds=3).accuracy
        1.0
        """
        return evaluate(self.plan(), X, y, folds, sample_weight, random_state)

    @property
    def unlabelled_(self) -> float | None:
        """How much each row without a label counted in the last ``fit``.

        None if it was given none, left them out, or if something was learned, forgotten or loaded since.
        """
        return self.fitted().unlabelled

    def __sklearn_tags__(self) -> Any:
        return tags_of("classifier")
