"""Naive Bayes: columns are class-conditionally independent, each of its own family."""

from typing import Any, ClassVar, Self

from likely.estimators import fitting
from likely.estimators.column_families import ColumnFamilies, count_tags
from likely.estimators.cross_validation import evaluate
from likely.estimators.fitting import Plan
from likely.estimators.laws import Laws
from likely.estimators.protocol import Estimator, tags_of
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.questions import Questions


class NaiveBayes(Questions, Estimator):
    """Classify rows of mixed columns, taking every column as independent of the others given the class.

    Missing cells (NaN) are left out, in training and in prediction. Statistics are kept, so a model can learn more
    rows, be merged with others, and forget.

    Parameters
    ----------
    columns
        the family of every column: one name for all, a list with one for each, or a dict from column name or number to
        family, the others being chosen by their type. Names are "gaussian", "log-normal", "gamma", "exponential",
        "poisson", "bernoulli", "categorical" (integer codes), "multinomial" (counts of words), "complement" (the same,
        scored against the other classes) and "ignore"; a family such as ``likely.families.Gaussian(tied=True)`` may
        stand for a name, and so may in a list or dict the kind of a column: "number", "integer", "boolean",
        "category", and in a table of text "text" and "date". "auto": a matrix of booleans is Bernoulli, a sparse one
        multinomial, any other Gaussian.
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the shares of the classes in the data
    smoothing
        pseudo-counts of categories and words: one number, one for each, or one for each class and category or word
    pseudo_rows
        for the other families: rows like those of all classes together that every class is imagined to have
    unbiased
        divide the variance of Gaussian columns by n − 1 instead of n
    missing
        text or numbers that stand for a missing cell of a table, such as ``["?", -999]``
    together
        columns of categories of a table that are not taken as independent: a list of names, or several lists. All
        combinations of their categories have a share of their own
    unlabelled
        how much a row without a label (None or NaN in y) counts beside one with: it is shared among the classes as the
        model expects. 0 leaves such rows out; "auto": 1 if there are as many of them as of others, and labels that are
        held back are expected clearly better with them; None: each row must have a label

    Attributes
    ----------
    classes_
        the labels, sorted
    class_count_
        the weight of the rows of each class
    priors_
        p(y)
    joint_
        the joint distribution, with the density of every block of columns
    unlabelled_
        how much each row without a label counted
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> import numpy as np
    >>> from likely import NaiveBayes
    >>> X = np.array([[1.0, 0], [1.2, 0], [3.1, 1], [np.nan, 1], [2.7, 0]])
    >>> model = NaiveBayes(columns=["gaussian", "bernoulli"]).fit(X, ["small", "small", "large", "large", "large"])
    >>> model.predict([[1.1, np.nan], [2.9, 1]]).tolist()
    ['small', 'large']
    """

    # The kinds and families of a table are those that its first rows have shown.
    laws: ClassVar[Laws] = Laws(weights="reference", batches="reference", merge="reference", forget="reference")

    def __init__(
        self,
        columns: Any = "auto",
        *,
        priors: Any = None,
        smoothing: Any = 1.0,
        pseudo_rows: float = 0.0,
        unbiased: bool = False,
        missing: Any = (),
        together: Any = (),
        unlabelled: Any = "auto",
    ):
        self.columns = columns
        self.priors = priors
        self.smoothing = smoothing
        self.pseudo_rows = pseudo_rows
        self.unbiased = unbiased
        self.missing = missing
        self.together = together
        self.unlabelled = unlabelled

    def plan(self) -> Plan:
        """Return what is to be fitted: every column its own family, responsibilities by the labels."""
        families = ColumnFamilies(self.columns, self.smoothing, self.pseudo_rows, self.together, self.unbiased)
        return Plan(
            "NaiveBayes",
            families,
            "table",
            self.columns,
            self.missing,
            by_type=families.by_type,
            priors=self.priors,
            unlabelled=self.unlabelled,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            a matrix of numbers, in which NaN is a missing cell; or a table: a frame of pandas or Polars, an Arrow
            table, a DuckDB relation, a list of dicts, or the path of a CSV, Parquet, Arrow or JSON lines file; or an
            array or frame of Dask, or a frame of Spark or Ray, which is learned on the workers
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

        What the columns are is decided by the first rows. ``classes`` may name labels that will come later; labels not
        named are learned when they come.
        """
        before = getattr(self, "_state", None)
        self._state = fitting.partial_fit(self.plan(), before, X, y, classes, sample_weight)
        return self

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are.
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
        fold is predicted by a model of the others. Of many rows in files, or in partitions of an engine, whose labels
        are in a column, a hash of their content says which fold they are in, they stay on the workers, and only the
        measures come back.

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
        sparse, positive_only = count_tags(self.columns)
        return tags_of("classifier", sparse=sparse, positive_only=positive_only)
