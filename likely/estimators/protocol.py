"""scikit-learn's protocol for estimators, without importing scikit-learn: parameters, tags, column names, errors."""

import inspect
import sys
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from likely.data.table import Columns, Table, read_table
from likely.messages import tell


class NotFittedError(ValueError, AttributeError):
    """A question was asked before ``fit``."""


def not_fitted(name: str) -> Exception:
    """Return the error for an estimator without data: scikit-learn's own where it is loaded."""
    exceptions = sys.modules.get("sklearn.exceptions")
    kind = NotFittedError if exceptions is None else exceptions.NotFittedError
    error: Exception = kind(f"This {name} instance is not fitted yet: call fit(X, y) or partial_fit(X, y) first.")
    return error


def _parameters(cls: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


class Estimator:
    """Parameters in ``__init__``, results in attributes with a trailing underscore."""

    n_features_in_: int
    _learns_labels = True

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

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, which is loaded when it asks, what this estimator takes."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        labels = self._learns_labels
        return Tags(
            estimator_type="classifier" if labels else "density_estimator",
            target_tags=TargetTags(required=labels),
            classifier_tags=ClassifierTags(multi_class=labels),
            input_tags=InputTags(allow_nan=True),
        )

    def _read_first(self, X: Any) -> Table:
        """Read the rows that a model begins with."""
        table = read_table(X)
        if table.rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={table.cells.shape}) while a minimum of 1 is required."
            )
        return table

    def _read_next(self, X: Any) -> Table:
        """Read rows that must have the columns of those before them."""
        table = read_table(X)
        width = table.columns.width
        if width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        self._check_names(table.names)
        if table.rows == 0:
            raise ValueError(
                f"Found array with 0 sample(s) (shape={table.cells.shape}) while a minimum of 1 is required."
            )
        return table

    def _check_names(self, names: tuple[str, ...] | None) -> None:
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is None:
            if names is not None:
                tell(f"X has feature names, but {type(self).__name__} was fitted without feature names")
        elif names is None:
            tell(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names")
        elif names != tuple(fitted):
            raise ValueError(_different_names(names, tuple(fitted)))

    def _keep_columns(self, columns: Columns) -> None:
        """Remember the columns."""
        self.n_features_in_ = columns.width
        if columns.names is not None:
            self.feature_names_in_ = np.array(columns.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _different_names(names: tuple[str, ...], fitted: tuple[str, ...], most: int = 5) -> str:
    def listed(these: list[str]) -> str:
        return "".join(f"- {name}\n" for name in these[:most]) + ("- ...\n" if len(these) > most else "")

    message = "The feature names should match those that were passed during fit.\n"
    extra, lacking = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if extra:
        message += f"Feature names unseen at fit time:\n{listed(extra)}"
    if lacking:
        message += f"Feature names seen at fit time, yet now missing:\n{listed(lacking)}"
    if not extra and not lacking:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message
