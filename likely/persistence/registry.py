"""What a model file can hold, by the names that files give it: a new estimator or family is one line here.

Classes are imported when a file, or a model that is saved, needs them. No other name is ever looked up.
"""

from importlib import import_module
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """Which families an estimator can have, by name, whether their covariances are full, and if in several blocks."""

    families: tuple[str, ...] = ()
    full: bool | None = None
    several: bool = False
    centred: bool = False
    """whether it has centres, and no families"""
    whole: bool = False
    """whether it has the joint of a whole table, and no families"""
    before: tuple[tuple[str, Any], ...] = ()
    """parameters that files of before do not name, and what they were then"""


# Families, and what belongs to them, by module and class. First those of matrices, which tables may have, too.
_OF_MATRICES = {
    "gaussian": "families.gaussian:Gaussian",
    "log-normal": "families.gaussian:LogNormal",
    "gamma": "families.positive:Gamma",
    "exponential": "families.positive:Exponential",
    "poisson": "families.positive:Poisson",
    "bernoulli": "families.words:Bernoulli",
    "categorical": "families.categorical:Categorical",
    "multinomial": "families.words:Multinomial",
    "complement": "families.words:Complement",
}
_OF_TABLES = {
    "whole numbers": "families.categorical:WholeNumbers",
    "counts": "families.positive:Counts",
    "named categories": "families.categorical:Named",
    "categories together": "families.together:Together",
    "bag of words": "families.bag:Bag",
}
_OTHERS = {
    "mixture": "learn.class_mixtures:Mixed",
    "discounted words": "families.discounted:Discounted",
    "numbered categories": "families.categorical:Numbered",
    "left-out categories": "families.categorical:LeaveOneOut",
    "regularised": "families.regularised:Regularised",
    "gaussian prior": "families.gaussian:GaussianPrior",
    "covariance prior": "families.covariance_prior:CovariancePrior",
    "flat directions": "families.gaussian:FlatDirections",
    "forest": "families.forest:Forest",
    "refinement": "families.discounted:Refinement",
    "counting": "families.bag:Counting",
    "analyzer": "text.analyzer:Analyzer",
    "kept words": "text.vocabulary:VocabularyLimits",
}
_RECORDS = {**_OF_MATRICES, **_OF_TABLES, **_OTHERS}
_TAGS = {home: tag for tag, home in _RECORDS.items()}

_ANY = (*_OF_MATRICES, *_OF_TABLES)
ESTIMATORS = {
    "NaiveBayes": Kind(_ANY, full=False, several=True),
    "Classifier": Kind((*_ANY, "mixture"), several=True, before=(("joint", "naive"), ("forest", False))),
    "GaussianDiscriminant": Kind(("gaussian",)),
    "Mixture": Kind(_ANY, several=True),
    "TextClassifier": Kind(("bag of words", "discounted words")),
    "KMeans": Kind(centred=True),
    "Model": Kind(whole=True),
    "sklearn GaussianNB": Kind(("gaussian",), full=False),
    "sklearn MultinomialNB": Kind(("multinomial",)),
    "sklearn ComplementNB": Kind(("complement",)),
    "sklearn BernoulliNB": Kind(("bernoulli",)),
    "sklearn CategoricalNB": Kind(("numbered categories",)),
    "sklearn LinearDiscriminantAnalysis": Kind(("gaussian",), full=True),
    "sklearn QuadraticDiscriminantAnalysis": Kind(("gaussian",), full=True),
    "sklearn KMeans": Kind(centred=True),
    "sklearn MiniBatchKMeans": Kind(centred=True),
}
"""The estimators that a file can hold; those of scikit-learn's names need scikit-learn."""


def record(tag: str) -> type[Any] | None:
    """Return the class that files know by this name; None if there is none."""
    if tag not in _RECORDS:
        return None
    module, name = _RECORDS[tag].split(":")
    found: type[Any] = getattr(import_module(f"likely.{module}"), name)
    return found


def tag_of(kind: type[Any]) -> str | None:
    """Return the name under which files know a class; None if they do not."""
    tag = _TAGS.get(f"{kind.__module__}:{kind.__qualname__}".removeprefix("likely."))
    return tag if tag is not None and record(tag) is kind else None


def kind_of(cls: type[Any]) -> str:
    """Return the name that files give to an estimator, or raise ValueError if it is none of likely's own."""
    package, _, inner = cls.__module__.partition(".")
    kind = f"sklearn {cls.__name__}" if inner.startswith("sklearn.") else cls.__name__
    if package != "likely" or kind not in ESTIMATORS:
        raise ValueError(
            f"expected one of likely's own estimators to save, got {cls.__name__}: a model file holds data, not "
            "code, so it cannot hold a class"
        )
    return kind


def estimator(kind: str) -> Any:
    """Return the estimator that files know by this name; those of scikit-learn's names need scikit-learn."""
    name = kind.removeprefix("sklearn ")
    return getattr(import_module("likely" if name == kind else "likely.sklearn"), name)
