"""What every face does: scikit-learn's parameters, tags and messages around a generative classifier."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import validate_parameter_constraints

from likely.data.table import Table
from likely.estimators.classifier import GenerativeClassifier
from likely.joint import Part
from likely.statistics import Array, Assignment, Statistics


class Checked:
    """What has parameters that are checked as scikit-learn's are, also when they are read from a file."""

    _parameter_constraints: ClassVar[Mapping[str, Any]]

    @classmethod
    def _from_saved(cls, saved: Any) -> Self:
        """Return the model that a file holds, or raise if its parts do not belong together."""
        model: Self = super()._from_saved(saved)  # type: ignore[misc]
        model._validate_params()
        return model

    def _validate_params(self) -> None:
        """Check the parameters. scikit-learn's own way inspects signatures, which takes longer than many a fit."""
        values = {name: getattr(self, name) for name in self._parameter_constraints}
        validate_parameter_constraints(self._parameter_constraints, values, type(self).__name__)
        for name, value in values.items():
            if isinstance(value, int | list | tuple) and _overflows(value):
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be of numbers that floats can be."
                )


class Face(Checked, ClassifierMixin, BaseEstimator, GenerativeClassifier):  # type: ignore[misc]
    """A generative classifier with the parameters of one of scikit-learn's."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            rows × columns
        y
            a label for each row
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        self._validate_params()
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come.

        Parameters
        ----------
        X, y, sample_weight
            as in ``fit``
        classes
            all labels that will ever come; needed at the first call, and no others are taken after it
        """
        self._validate_params()
        if self.__sklearn_is_fitted__():
            if classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
                )
            classes = self.classes_
        elif classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        _check_labels(y, np.unique(classes))
        return super().partial_fit(X, y, classes, sample_weight)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right, of labels of any kind."""
        return GenerativeClassifier.score(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _statistics(self) -> Statistics:
        """The statistics of all columns."""
        return self._known().statistics.blocks[0]

    @property
    def _family(self) -> Any:
        return self._known().parts[0].family

    @property
    def _density(self) -> Any:
        return self.joint_.densities[0]


class NaiveBayesFace(Face):
    """A face of one of the naive Bayes classifiers: one family for all columns."""

    def _parts(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        return (Part(self._chosen_family(table), None),)

    def _chosen_family(self, table: Table) -> Any:
        raise NotImplementedError

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y), rows × classes."""
        return self.joint_.log_joint(self._read_next(X))

    @property
    def decision_function(self) -> Any:
        """Not there, as in scikit-learn: meta-estimators would use it in place of ``predict_proba``."""
        raise AttributeError(f"{type(self).__name__} has no decision_function: use predict_joint_log_proba")


def _overflows(value: Any) -> bool:
    """Say whether there are whole numbers that no float can be."""
    try:
        np.asarray(value, dtype=np.float64)
    except OverflowError:
        return True
    except (TypeError, ValueError):  # words, or lists of other things
        pass
    return False


def _check_labels(y: Any, classes: NDArray[Any]) -> None:
    """Raise if a label is none of the classes."""
    unknown = np.setdiff1d(np.asarray(y), classes)
    if len(unknown):
        raise ValueError(f"The target label(s) {unknown} in y do not exist in the initial classes {classes}")
