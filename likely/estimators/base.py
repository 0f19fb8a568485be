"""What every estimator does: parameters, files and tags by scikit-learn's protocol, and learning from labelled rows."""

import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from likely.estimators import fitting
from likely.estimators.cross_validation import evaluate
from likely.estimators.fitting import Plan
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.questions import Questions
from likely.persistence.saved import save


def _parameters(cls: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


class Estimator:
    """Parameters in ``__init__``, what was learned in a state, results in attributes with a trailing underscore."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in _parameters(self.__class__)}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; they take effect at the next ``fit``."""
        known = _parameters(self.__class__)
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {sorted(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _parameters(self.__class__)
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __dask_tokenize__(self) -> Any:
        """Return what tells two models apart: Dask would take those of equal parameters for the same."""
        return type(self), vars(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, from which ``likely.load`` returns it.

        A file that was there is replaced at once, when all is written. Text, numbers and arrays are all it can hold.

        >>> import tempfile
        >>> import likely
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     likely.NaiveBayes().fit([[1.0], [4.0]], ["a", "b"]).save(f"{folder}/letters.likely")
        ...     likely.load(f"{folder}/letters.likely").predict([[1.2]]).tolist()
        ['a']
        """
        save(self, path)


class LabelledEstimator(Questions):
    """An estimator that learns from rows with labels: it hands its plan to the pipeline, and holds what comes back."""

    get_params, set_params, __repr__, __dask_tokenize__, save = (
        Estimator.get_params,
        Estimator.set_params,
        Estimator.__repr__,
        Estimator.__dask_tokenize__,
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
        self._state = fitting.partial_fit(self.plan(), getattr(self, "_state", None), X, y, classes, sample_weight)
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
        plan = replace(self.plan(), answer=None)  # only classes are asked about
        return evaluate(plan, X, y, folds, sample_weight, random_state)

    @property
    def unlabelled_(self) -> float | None:
        """How much each row without a label counted in the last ``fit``.

        None if it was given none, left them out, or if something was learned, forgotten or loaded since.
        """
        return self.fitted().unlabelled

    def __sklearn_tags__(self) -> Any:
        return tags_of("classifier")


def tags_of(kind: str, *, sparse: bool = False, positive_only: bool = False) -> Any:
    """Return what scikit-learn, which is loaded when it asks, is to know of an estimator of a kind."""
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

    labels = kind == "classifier"
    transforms = TransformerTags(preserves_dtype=["float64", "float32"]) if kind == "clusterer" else None
    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=labels),
        classifier_tags=None if kind == "clusterer" else ClassifierTags(multi_class=labels),
        transformer_tags=transforms,
        input_tags=InputTags(allow_nan=True, sparse=sparse, positive_only=positive_only),
    )
