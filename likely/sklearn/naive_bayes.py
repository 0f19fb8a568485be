"""scikit-learn's naive Bayes classifiers, on likely's statistics."""

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from likely.data.table import Table
from likely.families import Gaussian
from likely.families.moments import Moments
from likely.sklearn.face import NaiveBayesFace
from likely.statistics import Array

# Only variances of 0 are lifted, so that there is an answer: others are as ``var_smoothing`` makes them.
_NEXT_TO_NOTHING = 1e-30


class GaussianNB(NaiveBayesFace):
    """scikit-learn's ``GaussianNB``: every column a Gaussian in every class, independent of the others.

    Missing cells (NaN) are left out, in training and in prediction. ``partial_fit`` is exactly ``fit`` on all batches
    together, also in its ``epsilon_``; ``merge`` and ``forget`` add and take away what was learned.

    Parameters
    ----------
    priors
        p(y), one number for each class; by default the shares of the classes in the data
    var_smoothing
        the share of the largest variance of a column that is added to every variance

    Attributes
    ----------
    classes_, class_count_, class_prior_
        the labels, sorted, the weight of their rows, and p(y)
    theta_, var_
        the mean and variance of every class and column
    epsilon_
        what was added to every variance
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely.sklearn import GaussianNB
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, None], [3, 2]]
    >>> model = GaussianNB().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1], [None, 1.5]])
    array([1, 2])
    """

    _parameter_constraints: ClassVar = {
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9):
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _chosen_family(self, table: Table) -> Gaussian:
        return Gaussian(added_variance=self.var_smoothing, floor=_NEXT_TO_NOTHING)

    @property
    def theta_(self) -> Array:
        """The mean of every class and column."""
        mean: Array = self._density.mean
        return mean

    @property
    def var_(self) -> Array:
        """The variance of every class and column."""
        variance: Array = self._density.variance
        return variance

    @property
    def class_prior_(self) -> Array:
        """p(y)."""
        return self.priors_

    @property
    def epsilon_(self) -> float:
        """What was added to every variance."""
        addition: float = self._family.structure.addition(Moments.of(self._statistics))
        return addition
