"""scikit-learn's naive Bayes classifiers of counts, of yes and no, and of categories, on likely's families."""

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likely.data.table import Table
from likely.families import Bernoulli, Complement, Multinomial
from likely.joint import Joint
from likely.model.state import ALIKE
from likely.sklearn.face import NaiveBayesFace
from likely.statistics import Array

_LEAST_ALPHA = 1e-10
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


class DiscreteFace(NaiveBayesFace):
    """A face whose family is smoothed by ``alpha``, and whose class weights are learned, given, or all the same."""

    _parameter_constraints: ClassVar = {
        "alpha": [NOT_NEGATIVE, "array-like"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
        "force_alpha": ["boolean"],
    }

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    @property
    def class_log_prior_(self) -> Array:
        """log p(y)."""
        return self._known().joint.log_weights

    def _given_priors(self) -> Array | str | None:
        if self.class_prior is not None:
            weights = np.array(self.class_prior, dtype=np.float64)
            return np.asarray(weights / (weights.sum() or 1.0))
        return None if self.fit_prior else ALIKE

    def _check_alpha(self, width: int | None = None) -> Any:
        """Return the pseudo-counts: ``alpha``, unless it is too small and ``force_alpha`` is not set."""
        single = isinstance(self.alpha, Real)
        alpha: Any = self.alpha if single else np.asarray(self.alpha, dtype=np.float64)
        if not single:
            width = self.n_features_in_ if width is None else width
            if alpha.shape != (width,):
                shape = f"{len(alpha)} elements" if alpha.ndim == 1 else f"the shape {alpha.shape}"
                raise ValueError(
                    f"When alpha is an array, it should contains `n_features`. Got {shape} instead of {width}."
                )
            if not np.all(alpha >= 0):
                raise ValueError(f"All values in alpha must be greater than 0. Got {alpha.tolist()}.")
        if self.force_alpha or np.min(alpha) >= _LEAST_ALPHA:
            return alpha
        warnings.warn(
            f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA:.1e}. Use "
            "`force_alpha=True` to keep alpha unchanged.",
            stacklevel=2,
        )
        return np.maximum(alpha, _LEAST_ALPHA)

    def _read_first(self, X: Any) -> Table:
        return self._signed(super()._read_first(X))

    def _read_next(self, X: Any) -> Table:
        return self._signed(super()._read_next(X))

    def _signed(self, table: Table) -> Table:
        return Table(table.cells, table.names, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True
        return tags


class CountsFace(DiscreteFace):
    """A face for counts, or other amounts that are not negative."""

    @property
    def feature_count_(self) -> Array:
        """How much of every word was seen in every class."""
        return self._statistics.sums["count"]

    @property
    def feature_log_prob_(self) -> Array:
        """What every word says for every class."""
        scores: Array = self._density.linear_form().theta
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class MultinomialNB(CountsFace):
    """scikit-learn's ``MultinomialNB``: counts of words, or other amounts that are not negative, dense or sparse.

    Missing cells (NaN) say nothing, in training and in prediction; ``merge`` and ``forget`` add and take away what was
    learned.

    Parameters
    ----------
    alpha
        the pseudo-count added to that of every word: one number, or one for each column
    force_alpha
        keep an ``alpha`` below 1e-10, instead of raising it to that
    fit_prior
        learn p(y); otherwise all classes are alike
    class_prior
        p(y), one number for each class, in place of what ``fit_prior`` says

    Attributes
    ----------
    classes_, class_count_, class_log_prior_
        the labels, sorted, the weight of their rows, and log p(y)
    feature_count_, feature_log_prob_
        how much of every word was seen in every class, and the logarithm of its share
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely.sklearn import MultinomialNB
    >>> model = MultinomialNB().fit([[3, 0, 1], [2, 1, 0], [0, 4, 1]], ["sport", "sport", "art"])
    >>> model.predict([[1, 0, 5], [0, 2, 0]])
    array(['sport', 'art'], dtype='<U5')
    """

    def __init__(self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _chosen_family(self, table: Table) -> Multinomial:
        return Multinomial(self._check_alpha(table.columns.width))


class ComplementNB(CountsFace):
    """scikit-learn's ``ComplementNB``: a row goes to the class whose complement, all other classes, it is least like.

    Class weights play no part in it. Rows are as in ``MultinomialNB``.

    Parameters
    ----------
    alpha, force_alpha
        as in ``MultinomialNB``
    fit_prior, class_prior
        what ``class_log_prior_`` says: nothing else depends on them
    norm
        scale the scores of every class so that they sum to 1

    Attributes
    ----------
    feature_all_
        how much of every word was seen in all classes together
    feature_log_prob_
        the score of every word in every class
    classes_, class_count_, class_log_prior_, feature_count_, n_features_in_, feature_names_in_
        as in ``MultinomialNB``

    Examples
    --------
    >>> from likely.sklearn import ComplementNB
    >>> model = ComplementNB().fit([[3, 0, 1], [2, 1, 0], [0, 4, 1]], ["sport", "sport", "art"])
    >>> model.predict([[1, 0, 5], [0, 2, 0]])
    array(['sport', 'art'], dtype='<U5')
    """

    _parameter_constraints: ClassVar = {**DiscreteFace._parameter_constraints, "norm": ["boolean"]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    def _chosen_family(self, table: Table) -> Complement:
        return Complement(self._check_alpha(table.columns.width), self.norm)

    @property
    def joint_(self) -> Joint:
        """The scores of every class, without its weight."""
        joint = super().joint_
        return replace(joint, weights=np.ones_like(joint.weights))

    @property
    def feature_all_(self) -> Array:
        """How much of every word was seen in all classes together."""
        amounts: Array = self.feature_count_.sum(axis=0)
        return amounts


class BernoulliNB(DiscreteFace):
    """scikit-learn's ``BernoulliNB``: columns of yes and no, dense or sparse; absence of a word counts, too.

    Missing cells (NaN) say nothing, in training and in prediction; ``merge`` and ``forget`` add and take away what was
    learned.

    Parameters
    ----------
    alpha
        the pseudo-count added to those of yes and of no: one number, or one for each column
    force_alpha, fit_prior, class_prior
        as in ``MultinomialNB``
    binarize
        cells above this number are a yes; None if all cells are 0 or 1

    Attributes
    ----------
    feature_count_, feature_log_prob_
        the weight of the yes of every class and column, and the logarithm of its share
    classes_, class_count_, class_log_prior_, n_features_in_, feature_names_in_
        as in ``MultinomialNB``

    Examples
    --------
    >>> from likely.sklearn import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, None], [1, 0], [0, 1], [0, 1]], ["bird"] * 3 + ["fish"] * 2)
    >>> model.predict([[1, 0], [None, 1]])
    array(['bird', 'fish'], dtype='<U4')
    """

    _parameter_constraints: ClassVar = {**DiscreteFace._parameter_constraints, "binarize": [None, NOT_NEGATIVE]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _chosen_family(self, table: Table) -> Bernoulli:
        return Bernoulli(self._check_alpha(table.columns.width), self.binarize)

    @property
    def feature_log_prob_(self) -> Array:
        """The logarithm of the share of yes in every class and column."""
        return logarithms(self._density.yes)

    @property
    def feature_count_(self) -> Array:
        """The weight of the yes of every class and column."""
        return self._statistics.sums["yes"]


def logarithms(shares: Array) -> Array:
    """Return the logarithms of shares, −∞ of those that are 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares))
