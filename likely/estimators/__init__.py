"""Estimators: parameters and documentation; the mathematics is below them."""

from likely.estimators.explanation import Explanation
from likely.estimators.gaussian_discriminant import GaussianDiscriminant
from likely.estimators.naive_bayes import NaiveBayes
from likely.estimators.protocol import NotFittedError

__all__ = ["Explanation", "GaussianDiscriminant", "NaiveBayes", "NotFittedError"]
