"""scikit-learn's generative classifiers and vectorizers of text: change the import line, and nothing else.

>>> from likely.sklearn import GaussianNB  # instead of: from sklearn.naive_bayes import GaussianNB
"""

try:
    from sklearn.feature_extraction.text import TfidfTransformer  # arithmetic on sparse matrices, good as it is
except ModuleNotFoundError as error:
    raise ImportError(
        "expected scikit-learn beside likely.sklearn, got none: pip install scikit-learn, or use likely.NaiveBayes and "
        "likely.GaussianDiscriminant, which need only NumPy"
    ) from error

from likely.sklearn.categorical import CategoricalNB
from likely.sklearn.discrete import BernoulliNB, ComplementNB, MultinomialNB
from likely.sklearn.kmeans import KMeans
from likely.sklearn.linear import LinearDiscriminantAnalysis
from likely.sklearn.minibatch_kmeans import MiniBatchKMeans
from likely.sklearn.mixture import GaussianMixture
from likely.sklearn.naive_bayes import GaussianNB
from likely.sklearn.quadratic import QuadraticDiscriminantAnalysis
from likely.sklearn.vectorizers import CountVectorizer, HashingVectorizer, TfidfVectorizer

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "CountVectorizer",
    "GaussianMixture",
    "GaussianNB",
    "HashingVectorizer",
    "KMeans",
    "LinearDiscriminantAnalysis",
    "MiniBatchKMeans",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
    "TfidfTransformer",
    "TfidfVectorizer",
]
