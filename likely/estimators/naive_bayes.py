"""Naive Bayes: columns are class-conditionally independent, each of its own family."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from likely.estimators.base import LabelledEstimator, tags_of
from likely.estimators.column_families import ColumnFamilies, count_tags
from likely.estimators.fitting import Plan
from likely.estimators.laws import Laws


@dataclass(eq=False, repr=False)
class NaiveBayes(LabelledEstimator):
    """Classify rows of mixed columns, taking every column as independent of the others given the class.

    Missing cells (NaN) are left out, in training and in prediction. Statistics are kept, so a model can learn more
    rows, be merged with others, and forget.

    Parameters
    ----------
    columns
        the family of every column: one name for all, a list with one for each, or a dict from column name or number to
        family, the others being chosen by their type. Names are "gaussian", "log-normal", "gamma", "exponential",
        "poisson", "bernoulli", "categorical" (integer codes), "multinomial" (counts of words), "complement" (the same,
        scored against the other classes) and "ignore"; a family such as ``likely.families.Gaussian(tied=True)`` may
        stand for a name, and so may in a list or dict the kind of a column: "number", "integer", "boolean",
        "category", and in a table of text "text" and "date". "auto": a matrix of booleans is Bernoulli, a sparse one
        multinomial, any other Gaussian.
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the proportions of the classes in the data
    smoothing
        pseudo-counts of categories and words: one number, one for each, or one for each class and category or word
    pseudo_rows
        for the other families: rows like those of all classes together that every class is imagined to have
    unbiased
        divide the variance of Gaussian columns by n − 1 instead of n
    missing
        text or numbers that stand for a missing cell of a table, such as ``["?", -999]``
    together
        columns of categories of a table that are not taken as independent: a list of names, or several lists. All
        combinations of their categories have a probability of their own
    unlabelled
        how much a row without a label (None or NaN in y) counts beside one with: its responsibilities are what the
        model expects. 0 leaves such rows out; "auto": 1 if there are as many of them as of others, and labels that are
        held back are expected clearly better with them; None: each row must have a label

    Attributes
    ----------
    classes_
        the labels, sorted
    class_count_
        the weight of the rows of each class
    priors_
        p(y)
    joint_
        the joint distribution, with the density of every block of columns
    unlabelled_
        how much each row without a label counted
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> import numpy as np
    >>> from likely import NaiveBayes
    >>> X = np.array([[1.0, 0], [1.2, 0], [3.1, 1], [np.nan, 1], [2.7, 0]])
    >>> model = NaiveBayes(columns=["gaussian", "bernoulli"]).fit(X, ["small", "small", "large", "large", "large"])
    >>> model.predict([[1.1, np.nan], [2.9, 1]]).tolist()
    ['small', 'large']
    """

    # The kinds and families of a table are those that its first rows have shown.
    laws: ClassVar[Laws] = Laws(weights="reference", batches="reference", merge="reference", forget="reference")

    columns: Any = "auto"
    _: KW_ONLY
    priors: Any = None
    smoothing: Any = 1.0
    pseudo_rows: float = 0.0
    unbiased: bool = False
    missing: Any = ()
    together: Any = ()
    unlabelled: Any = "auto"

    def plan(self) -> Plan:
        """Return what is to be fitted: every column its own family, responsibilities by the labels."""
        families = ColumnFamilies(self.columns, self.smoothing, self.pseudo_rows, self.together, self.unbiased)
        return Plan(
            "NaiveBayes",
            families,
            "table",
            self.columns,
            self.missing,
            by_type=families.by_type,
            priors=self.priors,
            unlabelled=self.unlabelled,
        )

    def __sklearn_tags__(self) -> Any:
        sparse, positive_only = count_tags(self.columns)
        return tags_of("classifier", sparse=sparse, positive_only=positive_only)
