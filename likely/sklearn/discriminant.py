"""What the faces of scikit-learn's linear and quadratic discriminant analysis have in common."""

from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints

from likely.data.table import SparseRows, Table
from likely.families import Gaussian, UnsolvableError, on_one_line
from likely.joint import Part
from likely.model.state import Knowledge
from likely.sklearn.estimated import EstimatedGaussian
from likely.sklearn.face import Face
from likely.statistics import Array, Assignment

COMMON_CONSTRAINTS = {
    "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
    "priors": ["array-like", None],
    "store_covariance": ["boolean"],
    "tol": [Interval(Real, 0, None, closed="left")],
    "covariance_estimator": [HasMethods("fit"), None],
}


class DiscriminantFace(Face):
    """What linear and quadratic discriminants have in common."""

    _settings: dict[str, Any]
    """The parameters that the model was fitted with, and what else it keeps of the fit."""

    solver: str
    shrinkage: Any
    covariance_estimator: Any
    priors: Any

    def _parts(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        self._check_solver()
        if isinstance(table.cells, SparseRows):
            raise TypeError("expected a dense array, got a sparse matrix: call X.toarray() first")
        if self.covariance_estimator is None:
            return (Part(Gaussian("full", floor=0.0, **self._structure()), None),)
        estimated = EstimatedGaussian("full", floor=0.0, **self._structure(), estimator=self.covariance_estimator)
        return (Part(estimated, None),)

    def _keep(self, table: Table, knowledge: Knowledge) -> None:
        super()._keep(table, knowledge)
        self._settings = self.get_params(deep=False)  # others may be set before the next fit

    @property
    def _setting_constraints(self) -> dict[str, Any]:
        return dict(self._parameter_constraints)

    def _remembered(self) -> dict[str, Any]:
        return {"settings": self._settings}

    def _remember(self, *, settings: Any) -> None:  # type: ignore[override]
        constraints = self._setting_constraints
        if not isinstance(settings, dict) or settings.keys() != constraints.keys():
            raise ValueError(f"expected the settings {sorted(constraints)}, got {on_one_line(settings)}")
        validate_parameter_constraints(constraints, settings, type(self).__name__)
        self._settings = settings

    def _structure(self) -> dict[str, Any]:
        """Return what kind of Gaussian the parameters describe."""
        raise NotImplementedError

    def _shrunk(self) -> dict[str, Any]:
        """Return how ``shrinkage`` is asked for in a Gaussian."""
        if self.shrinkage == "auto":
            return {"shrinkage": "ledoit-wolf", "target": "standardised"}
        return {"shrinkage": self.shrinkage or 0.0, "target": "spherical"}

    def _check_solver(self) -> None:
        if self.solver == "svd":
            if self.shrinkage is not None:
                raise NotImplementedError("shrinkage not supported with 'svd' solver.")
            if self.covariance_estimator is not None:
                raise ValueError(self._no_estimator)
        elif self.covariance_estimator is not None and self.shrinkage:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )

    _no_estimator: ClassVar[str]

    def _known_one_by_one(self, question: str) -> None:
        if self.covariance_estimator is not None:
            raise ValueError(
                f"expected covariance_estimator=None for {question}, got {self.covariance_estimator!r}, which must see "
                "all rows at once: use fit"
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all before; a weight of 2 is a row twice."""
        try:
            return super().fit(X, y, sample_weight)
        except UnsolvableError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: UnsolvableError) -> Exception:
        """Return what to say of a covariance without an inverse, in the words of the class."""
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. The result is that of ``fit`` on all rows together, in whatever batches they come."""
        self._known_one_by_one("partial_fit")
        return super().partial_fit(X, y, classes, sample_weight)

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one."""
        self._known_one_by_one("merge")
        return super().merge(*others)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        self._known_one_by_one("forget")
        return super().forget(X, y, sample_weight)

    @property
    def means_(self) -> Array:
        """The mean of every class."""
        mean: Array = self._density.mean
        return mean
