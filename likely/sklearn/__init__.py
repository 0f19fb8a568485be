"""scikit-learn's generative classifiers: change the import line, and nothing else.

>>> from likely.sklearn import GaussianNB  # instead of: from sklearn.naive_bayes import GaussianNB
"""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError(
        "expected scikit-learn beside likely.sklearn, got none: pip install scikit-learn, or use likely.NaiveBayes and "
        "likely.GaussianDiscriminant, which need only NumPy"
    ) from error

from likely.sklearn.categorical import CategoricalNB
from likely.sklearn.discrete import BernoulliNB, ComplementNB, MultinomialNB
from likely.sklearn.linear import LinearDiscriminantAnalysis
from likely.sklearn.naive_bayes import GaussianNB
from likely.sklearn.quadratic import QuadraticDiscriminantAnalysis

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
]
