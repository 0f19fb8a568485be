"""Estimators: parameters and documentation; the mathematics is below them."""

from likely.estimators.calibrated import Classifier
from likely.estimators.gaussian_discriminant import GaussianDiscriminant
from likely.estimators.naive_bayes import NaiveBayes
from likely.estimators.protocol import NotFittedError
from likely.model.evaluation import Evaluation
from likely.model.explanation import Explanation

__all__ = ["Classifier", "Evaluation", "Explanation", "GaussianDiscriminant", "NaiveBayes", "NotFittedError"]
