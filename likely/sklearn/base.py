"""What scikit-learn's estimators have in common here: parameters that are checked as scikit-learn's are."""

from typing import Any

import numpy as np
from sklearn.utils._param_validation import validate_parameter_constraints


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
