"""Estimators: parameters and documentation; the mathematics is below them."""

from likely.estimators.calibrated import Classifier
from likely.estimators.evaluation import Evaluation
from likely.estimators.explanation import Explanation
from likely.estimators.gaussian_discriminant import GaussianDiscriminant
from likely.estimators.naive_bayes import NaiveBayes
from likely.estimators.protocol import NotFittedError

__all__ = ["Classifier", "Evaluation", "Explanation", "GaussianDiscriminant", "NaiveBayes", "NotFittedError"]
