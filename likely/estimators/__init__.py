"""Public estimators: parameters, documentation, and the plan that each hands to the fitting pipeline."""

from likely.estimators.classifier import Classifier
from likely.estimators.gaussian_discriminant import GaussianDiscriminant
from likely.estimators.naive_bayes import NaiveBayes
from likely.model.evaluation import Evaluation
from likely.model.explanation import Explanation
from likely.model.state import NotFittedError

__all__ = ["Classifier", "Evaluation", "Explanation", "GaussianDiscriminant", "NaiveBayes", "NotFittedError"]
