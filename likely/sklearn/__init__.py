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

from likely.sklearn.cluster import KMeans, MiniBatchKMeans
from likely.sklearn.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from likely.sklearn.mixture import GaussianMixture
from likely.sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from likely.sklearn.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

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
