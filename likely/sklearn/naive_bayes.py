"""scikit-learn's naive Bayes classifiers, on likely's statistics."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import naive_bayes

from likely.data.table import SparseRows, Table
from likely.estimators import fitting
from likely.estimators.fitting import Plan
from likely.families import Bernoulli, Complement, Family, Gaussian, Multinomial, Numbered
from likely.families.moments import Moments
from likely.joint import Joint, Part
from likely.messages import warn
from likely.model.readers import MatrixReader, Reader
from likely.model.state import ALIKE, State
from likely.sklearn.base import ClassifierFace, check_parameters, checked_classes
from likely.sklearn.categories import (
    Categories,
    check_categories,
    decoded,
    read_known,
    read_learning,
    translated,
    united,
    without_unseen,
)
from likely.statistics import Array, JointStatistics

# Only variances of 0 are lifted, so that there is an answer: others are as ``var_smoothing`` makes them.
_NEXT_TO_NOTHING = 1e-30
_LEAST_ALPHA = 1e-10
MOST_CATEGORIES = 1 << 24
"""Every class has a count of each category of a column: more would take gigabytes."""


class NaiveBayesFace(ClassifierFace):
    """A naive Bayes classifier with scikit-learn's parameters: one family for all columns."""

    @property
    def n_features_in_(self) -> int:
        """The number of columns; scikit-learn's may be set by hand, too."""
        if "n_features_in_" in vars(self) and not self.__sklearn_is_fitted__():
            return int(vars(self)["n_features_in_"])
        return self.fitted().columns.width

    @n_features_in_.setter
    def n_features_in_(self, number: int) -> None:
        self.__dict__["n_features_in_"] = number

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y), rows × classes."""
        state = self.fitted()
        return state.joint.log_joint(state.reader.read(X))

    @property
    def decision_function(self) -> Any:
        """Not there, as in scikit-learn: meta-estimators would use it in place of ``predict_proba``."""
        raise AttributeError(f"{type(self).__name__} has no decision_function: use predict_joint_log_proba")


class GaussianNB(NaiveBayesFace, naive_bayes.GaussianNB):  # type: ignore[misc]
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

    def plan(self) -> Plan:
        """Return what is to be fitted: every column a Gaussian."""
        check_parameters(self)
        family = Gaussian(added_variance=self.var_smoothing, floor=_NEXT_TO_NOTHING)
        return Plan("GaussianNB", lambda *_: (Part(family, None),), priors=self.priors)

    @property
    def theta_(self) -> Array:
        """The mean of every class and column."""
        density: Any = self.joint_.densities[0]
        return np.asarray(density.mean)

    @property
    def var_(self) -> Array:
        """The variance of every class and column."""
        density: Any = self.joint_.densities[0]
        return np.asarray(density.variance)

    @property
    def class_prior_(self) -> Array:
        """p(y)."""
        return self.priors_

    @property
    def epsilon_(self) -> float:
        """What was added to every variance."""
        state: Any = self.fitted()
        addition: float = state.parts[0].family.structure.addition(Moments.of(state.statistics.blocks[0]))
        return addition


class DiscreteFace(NaiveBayesFace):
    """A naive Bayes classifier of counts or categories, smoothed by ``alpha``."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    def plan(self) -> Plan:
        """Return what is to be fitted: one family of all columns, with class priors learned, given, or all the same."""
        check_parameters(self)
        priors: Any = None if self.fit_prior else ALIKE
        if self.class_prior is not None:
            weights = np.array(self.class_prior, dtype=np.float64)
            priors = np.asarray(weights / (weights.sum() or 1.0))
        return Plan(
            type(self).__name__,
            lambda table, _: (Part(self._family(table.columns.width), None),),
            priors=priors,
            signed=True,
        )

    def _family(self, width: int) -> Family:
        """Return the family of so many columns."""
        raise NotImplementedError

    @property
    def class_log_prior_(self) -> Array:
        """log p(y)."""
        return _logarithms(self.priors_)

    def _check_alpha(self, width: int | None = None) -> Any:
        """Return the pseudo-counts: ``alpha``, unless it is too small and ``force_alpha`` is not set.

        scikit-learn has this method under this name, and other code calls it.
        """
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
        warn(
            f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA:.1e}. Use "
            "`force_alpha=True` to keep alpha unchanged.",
        )
        return np.maximum(alpha, _LEAST_ALPHA)


def _logarithms(shares: Array) -> Array:
    """Return the logarithms of shares, −∞ of those that are 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares))


class MultinomialNB(DiscreteFace, naive_bayes.MultinomialNB):  # type: ignore[misc]
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

    def _family(self, width: int) -> Multinomial:
        return Multinomial(self._check_alpha(width))

    @property
    def class_log_prior_(self) -> Array:
        """log p(y)."""
        return self.joint_.log_weights

    @property
    def feature_count_(self) -> Array:
        """How much of every word was seen in every class."""
        return self.fitted().statistics.blocks[0].sums["count"]

    @property
    def feature_log_prob_(self) -> Array:
        """What every word says for every class."""
        return self.linear_form().theta


@dataclass(frozen=True, eq=False)
class _Unweighted(State):
    """A state in which class weights play no part."""

    @cached_property
    def weighted(self) -> Joint:
        """The joint with its class weights."""
        return Joint.solve(self.statistics, self.parts, self.columns, self.given_weights)

    @cached_property
    def joint(self) -> Joint:
        """The scores of every class, without its weight."""
        return replace(self.weighted, weights=np.ones_like(self.weighted.weights))


class ComplementNB(DiscreteFace, naive_bayes.ComplementNB):  # type: ignore[misc]
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

    def plan(self) -> Plan:
        """Return what is to be fitted: counts of words in all other classes."""
        return replace(super().plan(), state=_Unweighted)

    def _family(self, width: int) -> Complement:
        return Complement(self._check_alpha(width), self.norm)

    @property
    def priors_(self) -> Array:
        """p(y), one for each class."""
        state = self.fitted()
        assert isinstance(state, _Unweighted)
        return state.weighted.weights

    feature_count_, feature_log_prob_ = MultinomialNB.feature_count_, MultinomialNB.feature_log_prob_

    @property
    def feature_all_(self) -> Array:
        """How much of every word was seen in all classes together."""
        return np.asarray(self.feature_count_.sum(axis=0))


class BernoulliNB(DiscreteFace, naive_bayes.BernoulliNB):  # type: ignore[misc]
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

    def _family(self, width: int) -> Bernoulli:
        return Bernoulli(self._check_alpha(width), self.binarize)

    @property
    def feature_log_prob_(self) -> Array:
        """The logarithm of the share of yes in every class and column."""
        density: Any = self.joint_.densities[0]
        return _logarithms(density.yes)

    @property
    def feature_count_(self) -> Array:
        """The weight of the yes of every class and column."""
        return self.fitted().statistics.blocks[0].sums["yes"]


@dataclass(frozen=True, eq=False)
class _CategoryReader(MatrixReader):
    """Rows are categories: numbers, or text that is numbered."""

    categories: Categories = field(default_factory=dict)

    def read(self, X: Any, *, note: bool = True) -> Table:
        """Return rows as the numbers of their categories; those never seen are missing."""
        return MatrixReader.read(self, X if isinstance(X, Table) else _whole(read_known(X, self.categories)))

    def drawn_rows(self, table: Table, x: Array, *more: Any) -> Any:
        """Return drawn rows, text by its categories."""
        return decoded(Reader.drawn_rows(self, table, x, *more), self.categories)

    def shown(self, table: Table, X: Any) -> Any:
        """Return the cells as an explanation shows them."""
        return decoded(Reader.shown(self, table, X), self.categories)

    def described(self) -> dict[str, Any]:
        """Return what a file says of the reader."""
        return {"categories": dict(self.categories)}

    def keeping(self, kept: dict[str, Any], statistics: JointStatistics) -> Self:
        """Return the reader of the categories that a file holds."""
        categories = kept.pop("categories", None)
        check_categories(categories, statistics.blocks[0], self.columns.width)
        return replace(self, categories=categories)


class CategoricalNB(DiscreteFace, naive_bayes.CategoricalNB):  # type: ignore[misc]
    """scikit-learn's ``CategoricalNB``: every column holds one of some categories.

    Categories are text, or the numbers 0, 1, 2, …, of which those up to the largest one seen are taken to be possible
    (fractions are cut off). Missing cells (NaN, None) say nothing, nor do categories that were not seen in training.
    ``merge`` and ``forget`` add and take away what was learned.

    Parameters
    ----------
    alpha
        the pseudo-count added to that of every category
    force_alpha, fit_prior, class_prior
        as in ``MultinomialNB``
    min_categories
        how many categories a column has at least: one number, or one for each column

    Attributes
    ----------
    category_count_, feature_log_prob_
        for each column the weight of every class and category, and the logarithm of its share; categories of text are
        in the order of the alphabet
    n_categories_
        how many categories each column has
    classes_, class_count_, class_log_prior_, n_features_in_, feature_names_in_
        as in ``MultinomialNB``

    Examples
    --------
    >>> from likely.sklearn import CategoricalNB
    >>> X = [["red", "round"], ["red", None], ["yellow", "long"]]
    >>> model = CategoricalNB().fit(X, ["apple", "apple", "banana"])
    >>> model.predict([["yellow", "long"], ["blue", "round"]])
    array(['banana', 'apple'], dtype='<U6')
    """

    def plan(self) -> Plan:
        """Return what is to be fitted: every column one of some categories."""
        return replace(super().plan(), reader=_CategoryReader)

    def _family(self, width: int) -> Numbered:
        return Numbered(self._check_alpha(width), self._least_categories(width))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X of categories and their labels y; a weight of 2 is the row twice."""
        table, categories = read_learning(X, {})
        state = fitting.fit(self.plan(), _whole(table), y, sample_weight)
        return self.hold(_with_categories(state, categories))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, which may have new categories: the result is that of ``fit`` on all rows together.

        ``classes``: all labels that will ever come; needed at the first call, and no others are taken after it.
        """
        before = getattr(self, "_state", None)
        table, categories = read_learning(X, {} if before is None else self._reader.categories)
        plan = self.plan()
        classes = checked_classes(self, y, classes)
        known = None if before is None else _translated(before, categories)
        state = fitting.partial_fit(plan, known, _whole(table), y, classes, sample_weight)
        return self.hold(_with_categories(state, categories))

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        table, categories = read_learning(X, self._reader.categories)
        state = fitting.forget(_translated(self.fitted(), categories), _whole(table), y, sample_weight)
        return self.hold(_with_categories(state, categories))

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are.
        """
        same = [other for other in others if type(other) is type(self)]
        categories = reduce(united, (other._reader.categories for other in same), self._reader.categories)

        def knowing(model: Any) -> Any:
            return copy(model).hold(_translated(model.fitted(), categories)) if type(model) is type(self) else model

        state = fitting.merge(knowing(self), [knowing(other) for other in others])
        return self.hold(_with_categories(state, categories))

    @property
    def _reader(self) -> _CategoryReader:
        reader = self.fitted().reader
        assert isinstance(reader, _CategoryReader)
        return reader

    @property
    def _density(self) -> Any:
        return self.joint_.densities[0]

    def _least_categories(self, width: int) -> Any:
        if self.min_categories is None:
            return 0
        least = np.array(self.min_categories)
        if least.dtype.kind != "i":
            raise ValueError(f"'min_categories' should have integral type. Got {least.dtype} instead.")
        if least.shape not in ((), (1,), (width,)):
            raise ValueError(
                f"'min_categories' should have shape ({width},) when an array-like is provided. "
                f"Got {least.shape} instead."
            )
        if np.any(least > MOST_CATEGORIES):
            raise ValueError(f"'min_categories' should be at most {MOST_CATEGORIES:,}. Got {least.max()} instead.")
        return least

    @property
    def categories_(self) -> list[NDArray[Any]]:
        """The categories of each column, in the order of ``feature_log_prob_``: text, or numbers."""
        return [
            np.array(self._reader.categories[j]) if j in self._reader.categories else np.arange(count)
            for j, count in enumerate(self.n_categories_)
        ]

    @property
    def n_categories_(self) -> NDArray[np.int64]:
        """How many categories each column has."""
        sizes: NDArray[np.int64] = np.diff(self._density.starts)
        return sizes

    @property
    def category_count_(self) -> list[Array]:
        """For each column the weight of every class and category."""
        state: Any = self.fitted()
        return self._by_column(state.parts[0].family.completed(state.statistics.blocks[0]).sums["count"])

    @property
    def feature_log_prob_(self) -> list[Array]:
        """For each column the logarithm of the share of every class and category."""
        return self._by_column(_logarithms(self._density.shares))

    def _by_column(self, array: Array) -> list[Array]:
        return np.split(array, self._density.starts[1:-1], axis=1)


def _whole(table: Table) -> Table:
    """Return the cells as whole numbers."""
    cells = table.cells
    if isinstance(cells, SparseRows):
        raise TypeError(
            "Sparse data was passed for X, but CategoricalNB needs dense data: use X.toarray(), or BernoulliNB or "
            "MultinomialNB for a bag of words"
        )
    if cells.dtype.kind == "f":
        cells = np.trunc(cells) + 0.0  # −0.0 becomes 0.0
    return Table(cells, table.names)


def _translated(state: State, categories: Categories) -> State:
    """Return a state that knows more categories."""
    reader = state.reader
    assert isinstance(reader, _CategoryReader)
    if categories == reader.categories:
        return state
    statistics = translated(state.statistics, reader.categories, categories, state.columns)
    return replace(state.with_statistics(statistics), reader=replace(reader, categories=categories))


def _with_categories(state: State, categories: Categories) -> State:
    """Return a state with the categories that have rows."""
    if categories:
        statistics, categories = without_unseen(state.statistics, categories, state.columns)
        if statistics is not state.statistics:
            state = state.with_statistics(statistics)
    reader: Any = state.reader
    return replace(state, reader=replace(reader, categories=categories))
