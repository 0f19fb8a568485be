"""likely: generative models. Model how the data came to be, p(x, y), and answer every question from that one model.

>>> import likely
>>> model = likely.NaiveBayes().fit([[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"])
>>> model.predict([[1.2]]).tolist()
['a']
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likely.estimators import Classifier, Evaluation, Explanation, GaussianDiscriminant, NaiveBayes, NotFittedError
    from likely.estimators.kmeans import KMeans
    from likely.estimators.mixture import Mixture
    from likely.estimators.model import Model
    from likely.estimators.text import TextClassifier
    from likely.families import GaussianPrior
    from likely.model.given import MISSING
    from likely.native import get_threads, set_threads
    from likely.persistence.saved import load
else:
    # What is asked for is imported then, so that starting is fast.
    _HOMES = {
        **dict.fromkeys(
            ["Classifier", "Evaluation", "Explanation", "GaussianDiscriminant", "NaiveBayes", "NotFittedError"],
            "likely.estimators",
        ),
        "GaussianPrior": "likely.families",
        "KMeans": "likely.estimators.kmeans",
        "MISSING": "likely.model.given",
        "Mixture": "likely.estimators.mixture",
        "Model": "likely.estimators.model",
        "TextClassifier": "likely.estimators.text",
        "load": "likely.persistence.saved",
        "get_threads": "likely.native",
        "set_threads": "likely.native",
    }

    def __getattr__(name):
        from importlib import import_module

        if name in _HOMES:
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
            return value
        if name in ("data", "datasets", "estimators", "families", "sklearn"):
            return import_module(f"likely.{name}")
        raise AttributeError(f"module 'likely' has no attribute {name!r}")

    def __dir__():
        return sorted([*__all__, "families", "sklearn"])


__version__ = "0.1.0"

__all__ = [
    "MISSING",
    "Classifier",
    "Evaluation",
    "Explanation",
    "GaussianDiscriminant",
    "GaussianPrior",
    "KMeans",
    "Mixture",
    "Model",
    "NaiveBayes",
    "NotFittedError",
    "TextClassifier",
    "__version__",
    "get_threads",
    "load",
    "set_threads",
]
