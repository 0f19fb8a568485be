"""scikit-learn's naive Bayes classifier of categories, which takes them as text, too."""

from copy import copy
from functools import reduce
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from likely.data.table import SparseRows, Table
from likely.families import Numbered
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
from likely.sklearn.discrete import NOT_NEGATIVE, DiscreteFace, logarithms
from likely.statistics import Array

MOST_CATEGORIES = 1 << 24
"""Every class has a count of each category of a column: more would take gigabytes."""


class CategoricalNB(DiscreteFace):
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

    _parameter_constraints: ClassVar = {
        **DiscreteFace._parameter_constraints,
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
        "alpha": [NOT_NEGATIVE],
    }
    _categories: Categories = {}  # noqa: RUF012  replaced, never changed

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            rows × columns of categories
        y
            a label for each row
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        table, categories = read_learning(X, {})
        super().fit(self._whole(table), y, sample_weight)
        return self._know(categories)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, which may have new categories: the result is that of ``fit`` on all rows together.

        Parameters
        ----------
        X, y, sample_weight
            as in ``fit``
        classes
            all labels that will ever come; needed at the first call, and no others are taken after it
        """
        table, categories = read_learning(X, self._categories)
        model = self._knowing(categories)
        super(CategoricalNB, model).partial_fit(self._whole(table), y, classes, sample_weight)
        return self._become(model)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        table, categories = read_learning(X, self._categories)
        model = self._knowing(categories)
        super(CategoricalNB, model).forget(self._whole(table), y, sample_weight)
        return self._become(model)

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        The others stay as they are.
        """
        alike = [other for other in others if type(other) is type(self)]
        categories = reduce(united, (other._categories for other in alike), self._categories)
        model = self._knowing(categories)
        super(CategoricalNB, model).merge(*(o._knowing(categories) if type(o) is type(self) else o for o in others))
        return self._become(model)

    def _drawn_rows(self, table: Table, x: Array, *more: Any) -> NDArray[Any]:
        return decoded(super()._drawn_rows(table, x, *more), self._categories)

    def _read_next(self, X: Any) -> Table:
        return super()._read_next(X if isinstance(X, Table) else self._whole(read_known(X, self._categories)))

    def _whole(self, table: Table) -> Table:
        """Return the cells as whole numbers."""
        cells = table.cells
        if isinstance(cells, SparseRows):
            raise TypeError(
                f"Sparse data was passed for X, but {type(self).__name__} needs dense data: use X.toarray(), "
                "or BernoulliNB or MultinomialNB for a bag of words"
            )
        if cells.dtype.kind == "f":
            cells = np.trunc(cells) + 0.0  # −0.0 becomes 0.0
        return Table(cells, table.names)

    def _knowing(self, categories: Categories) -> Self:
        """Return a model like this one that knows more categories."""
        if categories == self._categories:
            return self
        model = copy(self)
        if self.__sklearn_is_fitted__():
            known = self._known()
            model._replace(
                known.with_statistics(translated(known.statistics, self._categories, categories, known.columns))
            )
        model._categories = categories
        return model

    def _become(self, model: Self) -> Self:
        """Take over what a model like this one has learned."""
        self.__dict__.update(model.__dict__)
        return self._know(self._categories)

    def _know(self, categories: Categories) -> Self:
        """Keep the categories that have rows."""
        self._categories = categories
        if categories:
            known = self._known()
            statistics, self._categories = without_unseen(known.statistics, categories, known.columns)
            if statistics is not known.statistics:
                self._replace(known.with_statistics(statistics))
        return self

    def _remembered(self) -> dict[str, Any]:
        return {"categories": dict(self._categories)}

    def _remember(self, *, categories: Any) -> None:  # type: ignore[override]
        check_categories(categories, self._statistics, self.n_features_in_)
        self._categories = categories

    def _chosen_family(self, table: Table) -> Numbered:
        return Numbered(self._check_alpha(), self._least_categories(table.columns.width))

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

    def _shown(self, table: Table, X: Any) -> Any:
        return decoded(super()._shown(table, X), self._categories)

    @property
    def categories_(self) -> list[NDArray[Any]]:
        """The categories of each column, in the order of ``feature_log_prob_``: text, or numbers."""
        return [
            np.array(self._categories[j]) if j in self._categories else np.arange(count)
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
        return self._by_column(self._family.completed(self._statistics).sums["count"])

    @property
    def feature_log_prob_(self) -> list[Array]:
        """For each column the logarithm of the share of every class and category."""
        return self._by_column(logarithms(self._density.shares))

    def _by_column(self, array: Array) -> list[Array]:
        return np.split(array, self._density.starts[1:-1], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.sparse = False
        tags.input_tags.positive_only = True
        return tags
