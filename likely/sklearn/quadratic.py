"""scikit-learn's quadratic discriminant analysis, on likely's statistics."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from likely.data.table import Table
from likely.families import UnsolvableError
from likely.model.state import Knowledge
from likely.sklearn.discriminant import COMMON_CONSTRAINTS, DiscriminantFace
from likely.statistics import Array


class QuadraticDiscriminantAnalysis(DiscriminantFace):
    """scikit-learn's ``QuadraticDiscriminantAnalysis``: Gaussian classes, each with its own covariance.

    A class whose columns determine each other is refused with the names of those columns, unless it is regularised by
    ``reg_param`` or ``shrinkage``. ``partial_fit``, also with weights, ``merge`` and ``forget``
    work too.

    Parameters
    ----------
    solver
        "svd" takes ``reg_param``, "eigen" takes ``shrinkage`` and ``covariance_estimator``; else they are the same
    shrinkage
        None, a number from 0 to 1, or "auto" to choose it from the data (Ledoit and Wolf)
    priors
        p(y), one number for each class; by default the shares of the classes in the data
    reg_param
        the share of the unit matrix in every covariance
    store_covariance
        whether to have ``covariance_``
    tol
        accepted, but not needed: whether columns determine each other is judged by their correlations, whatever units
        they are measured in
    covariance_estimator
        an estimator from ``sklearn.covariance`` to be used instead, fitted on each class

    Attributes
    ----------
    means_, covariance_, priors_
        the mean of every class, their covariances, and p(y)
    rotations_, scalings_
        the principal axes of every class, and the variances along them
    classes_, class_count_, n_features_in_, feature_names_in_
        the labels, sorted, the weight of their rows, the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely.sklearn import QuadraticDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> QuadraticDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar = {
        **COMMON_CONSTRAINTS,
        "solver": [StrOptions({"svd", "eigen"})],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
    }
    _no_estimator = "covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead."

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def _structure(self) -> dict[str, Any]:
        if self.solver == "svd":
            return {"shrinkage": self.reg_param, "target": "unit"}
        return self._shrunk()

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Rows of different weights are learned by ``partial_fit``.
        """
        return super().fit(X, y)

    def _refusal(self, error: UnsolvableError) -> Exception:
        if error.rows == 1 and not self.reg_param and not self.shrinkage:
            return ValueError(f"y has only 1 sample in class {error.label}, covariance is ill defined.")
        return np.linalg.LinAlgError(
            f"The covariance matrix of class {error.label} is not full rank. {self._remedy} ({error.rows:g} rows; "
            f"the others, or holes, determine {error.blamed})"
        )

    @property
    def _remedy(self) -> str:
        if self.solver == "svd":
            return (
                "Increase the value of `reg_param` to reduce the collinearity, or try solver='eigen' with "
                "shrinkage='auto'."
            )
        return "Increase the value of `shrinkage` to reduce the collinearity."

    def _given_priors(self) -> Any:
        return None if self.priors is None else np.asarray(self.priors, dtype=np.float64) / np.sum(self.priors)

    def _keep(self, table: Table, knowledge: Knowledge) -> None:
        super()._keep(table, knowledge)
        if self.priors is not None:
            self._settings["priors"] = np.array(self.priors)  # which whoever gave them may change

    @property
    def priors_(self) -> Array:
        """p(y), one for each class; as they were given, also if they do not sum to 1."""
        self._known()
        given = self._settings["priors"]
        return super().priors_ if given is None else np.array(given)

    def _solve_now(self, table: Table, knowledge: Knowledge) -> None:
        classes = knowledge.statistics.classes
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one. Got {len(classes)} class.")
        super()._solve_now(table, knowledge)

    @property
    def covariance_(self) -> list[Array]:
        """The covariance of every class."""
        if not self._settings["store_covariance"]:
            raise AttributeError("covariance_: set store_covariance=True before fit")
        return list(self._density.covariance)

    @property
    def scalings_(self) -> list[Array]:
        """The variances along the principal axes of every class, the largest first."""
        return [values for values, _ in self._principal_axes]

    @property
    def rotations_(self) -> list[Array]:
        """The principal axes of every class, as columns."""
        return [vectors for _, vectors in self._principal_axes]

    @property
    def _principal_axes(self) -> list[tuple[Array, Array]]:
        derived = self._known().derived
        if "axes" not in derived:
            found = [np.linalg.eigh(covariance) for covariance in self._density.covariance]
            derived["axes"] = [(values[::-1], vectors[:, ::-1]) for values, vectors in found]
        axes: list[tuple[Array, Array]] = derived["axes"]
        return axes

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class if there are two, else log p(x, y) without (2π)^−d/2."""
        scores = super().decision_function(X)
        if scores.ndim == 1:
            return scores
        constant = 0.5 * self.n_features_in_ * np.log(2 * np.pi) + np.log(self.priors_.sum())
        return np.asarray(scores + constant)
