"""scikit-learn's generative classifiers: change the import line, and nothing else.

>>> from likely.sklearn import GaussianNB  # instead of: from sklearn.naive_bayes import GaussianNB
"""

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
