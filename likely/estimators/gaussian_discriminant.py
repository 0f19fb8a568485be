"""Gaussian discriminant analysis: a Gaussian for every class, from spherical to full, by class or tied."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from likely.data.table import SparseRows, Table
from likely.estimators.base import LabelledEstimator
from likely.estimators.fitting import Plan
from likely.estimators.laws import Laws
from likely.families import Gaussian
from likely.joint import Part
from likely.statistics import Array, Assignment


@dataclass(eq=False, repr=False)
class GaussianDiscriminant(LabelledEstimator):
    """Classify rows by a Gaussian for each class. ``tied=True`` makes the boundaries linear, else they are quadratic.

    Cells may be missing (NaN). A full covariance is then fitted by expectation maximisation, each batch by itself: of
    rows with missing cells ``partial_fit``, ``merge`` and ``forget`` give nearly the model of all rows together, of
    others exactly that.

    Parameters
    ----------
    covariance
        "full": columns depend on each other; "diagonal": they do not; "spherical": and vary alike
    tied
        True for one covariance of all classes (linear discriminant analysis if full), False for one each
        (quadratic), or a number between 0 and 1 for a mean of both (regularised)
    shrinkage
        how far the covariance is pulled to a simpler one: a number from 0 (the maximum of the likelihood) to 1, or if
        full "oas" or "ledoit-wolf", which choose it from the data: next to nothing where rows are many. "oas" makes an
        inverse exist where they are few; it is the default if full, else 0 is.
    target
        what a full covariance is pulled to: "diagonal" (correlations shrink, variances stay; the default), or
        "spherical", which depends on the units of the columns
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the proportions of the classes in the data
    pseudo_rows
        rows like those of all classes together that every class is imagined to have, or a ``likely.GaussianPrior``
    unbiased
        divide scatters by n − 1 (n − the number of classes if tied) instead of n
    unlabelled
        as of ``NaiveBayes``

    Attributes
    ----------
    classes_
        the labels, sorted
    class_count_
        the weight of the rows of each class
    priors_
        p(y)
    means_
        classes × columns
    covariances_
        classes × columns × columns, or columns × columns if tied; of the diagonal only, unless full
    joint_
        the joint distribution
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> import numpy as np
    >>> from likely import GaussianDiscriminant
    >>> X = np.array([[0.0, 0.1], [1.0, 0.9], [0.2, 0.6], [3.0, 0.2], [4.0, 0.8], [3.5, 1.0]])
    >>> model = GaussianDiscriminant(tied=True, shrinkage=0.1).fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.predict([[0.5, np.nan], [3.0, 0.5]]).tolist()
    [0, 1]
    """

    # Under a full covariance batches, merge and forget are exact of rows without missing cells.
    laws: ClassVar[Laws] = Laws()

    covariance: str = "full"
    _: KW_ONLY
    tied: float = False
    shrinkage: Any = None
    target: str | None = None
    priors: Any = None
    pseudo_rows: Any = 0.0
    unbiased: bool = False
    unlabelled: Any = "auto"

    def plan(self) -> Plan:
        """Return what is to be fitted: one Gaussian of all columns, responsibilities by the labels."""
        shrinkage = self.shrinkage
        if shrinkage is None:
            shrinkage = "oas" if self.covariance == "full" else 0.0
        family = Gaussian(self.covariance, self.tied, shrinkage, self.target, self.pseudo_rows, self.unbiased)

        def families(table: Table, _: Assignment) -> tuple[Part, ...]:
            if isinstance(table.cells, SparseRows):
                raise TypeError("expected a dense array, got a sparse matrix: call X.toarray() first")
            return (Part(family, None),)

        return Plan(
            "GaussianDiscriminant",
            families,
            "numbers",
            expects_missing=family.covariance == "full",
            priors=self.priors,
            unlabelled=self.unlabelled,
        )

    @property
    def means_(self) -> Array:
        """The mean of every class."""
        return np.asarray(self.joint_.densities[0].mean)  # type: ignore[attr-defined]

    @property
    def covariances_(self) -> Array:
        """The covariance of every class, or the one of all if tied."""
        density: Any = self.joint_.densities[0]
        family: Any = self.joint_.parts[0].family
        spread = np.asarray(density.covariance if family.covariance == "full" else density.variance)
        return spread[0] if float(family.tied) == 1 else spread
