"""scikit-learn's generative classifiers: change the import line, and nothing else.

>>> from likely.sklearn import GaussianNB  # instead of: from sklearn.naive_bayes import GaussianNB
"""

from likely.sklearn.naive_bayes import GaussianNB

__all__ = ["GaussianNB"]
