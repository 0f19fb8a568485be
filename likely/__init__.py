"""likely: generative models. Model how the data came to be, p(x, y), and answer every question from that one model.

>>> import likely
>>> model = likely.NaiveBayes().fit([[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"])
>>> model.predict([[1.2]]).tolist()
['a']
"""

from likely.estimators import Classifier, Evaluation, Explanation, GaussianDiscriminant, NaiveBayes, NotFittedError
from likely.families import GaussianPrior
from likely.loading import load
from likely.native import get_threads, set_threads

__version__ = "0.1.0"

__all__ = [
    "Classifier",
    "Evaluation",
    "Explanation",
    "GaussianDiscriminant",
    "GaussianPrior",
    "NaiveBayes",
    "NotFittedError",
    "__version__",
    "get_threads",
    "load",
    "set_threads",
]
