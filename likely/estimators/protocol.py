"""scikit-learn's protocol for estimators, without importing scikit-learn: parameters, tags, files."""

import inspect
import os
from collections.abc import Mapping
from typing import Any, Self

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
