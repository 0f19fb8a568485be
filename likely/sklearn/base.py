"""What scikit-learn's estimators have in common here: their parameters are those of scikit-learn's own classes.

A face is a subclass of the class whose name it has. It takes over the parameters, with their defaults and what they may
be, and the tags; every method that learns or answers is likely's.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import validate_parameter_constraints

from likely.estimators import fitting
from likely.estimators.base import LabelledEstimator
from likely.estimators.fitting import Plan
from likely.model.questions import Questions, accuracy


class ClassifierFace(Questions):
    """What scikit-learn's classifiers do here: they learn from rows with labels, and are merged and evaluated."""

    _parameter_constraints: ClassVar[dict[str, Any]]

    def plan(self) -> Plan:
        """Return what is to be fitted, as the parameters say."""
        raise NotImplementedError

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
        return self.hold(fitting.fit(self.plan(), X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come.

        Parameters
        ----------
        X, y, sample_weight
            as in ``fit``
        classes
            all labels that will ever come; needed at the first call, and no others are taken after it
        """
        plan = self.plan()
        classes = checked_classes(self, y, classes)
        before = getattr(self, "_state", None)
        return self.hold(fitting.partial_fit(plan, before, X, y, classes, sample_weight))

    merge, forget = LabelledEstimator.merge, LabelledEstimator.forget
    evaluate, save = LabelledEstimator.evaluate, LabelledEstimator.save

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right, of labels of any kind."""
        return accuracy(self.predict(X), y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        return face_tags(super().__sklearn_tags__())  # type: ignore[misc]


def face_tags(tags: Any) -> Any:
    """Return the tags of a face: missing cells are taken, arrays of other libraries are not."""
    tags.input_tags.allow_nan = True
    tags.array_api_support = False
    return tags


def check_parameters(model: Any) -> None:
    """Check the parameters. scikit-learn's own way inspects signatures, which takes longer than many a fit."""
    values = {name: getattr(model, name) for name in model._parameter_constraints}
    validate_parameter_constraints(model._parameter_constraints, values, type(model).__name__)
    for name, value in values.items():
        if isinstance(value, int | list | tuple) and _overflows(value):
            raise ValueError(f"The {name!r} parameter of {type(model).__name__} must be of numbers that floats can be.")


def checked_classes(model: Any, y: Any, classes: Any) -> Any:
    """Return the classes of a ``partial_fit``, which must be named at the first one, and hold all labels."""
    if model.__sklearn_is_fitted__():
        if classes is not None and not np.array_equal(model.classes_, np.unique(classes)):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {model.classes_!r}"
            )
        classes = model.classes_
    elif classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit.")
    unknown = np.setdiff1d(np.asarray(y), np.unique(classes))
    if len(unknown):
        raise ValueError(f"The target label(s) {unknown} in y do not exist in the initial classes {np.unique(classes)}")
    return classes


def _overflows(value: Any) -> bool:
    """Say whether there are whole numbers that no float can be."""
    try:
        np.asarray(value, dtype=np.float64)
    except OverflowError:
        return True
    except (TypeError, ValueError):  # words, or lists of other things
        pass
    return False
