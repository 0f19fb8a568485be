"""scikit-learn's linear and quadratic discriminant analysis, on likely's statistics."""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import discriminant_analysis
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from likely import native
from likely.data.table import Block, SparseRows, Table
from likely.estimators import fitting
from likely.estimators.fitting import Guessed, Plan
from likely.families import Gaussian, UnsolvableError, on_one_line, readable_errors
from likely.families.gaussian import Directions, FlatDirections, eigen_directions, svd_directions
from likely.joint import Joint, Part
from likely.messages import warn
from likely.model.questions import Questions
from likely.model.state import State
from likely.sklearn.base import ClassifierFace, check_parameters
from likely.statistics import Array, Assignment, Statistics

_ALSO_LINEAR = ("shrinkage", "priors", "store_covariance", "tol", "covariance_estimator")
"""The parameters of the quadratic discriminant that the linear one has, too."""


@dataclass(frozen=True)
class EstimatedGaussian(Gaussian):
    """A full Gaussian in every class with the covariance that ``estimator`` finds there.

    Its statistics hold n times each covariance in place of the scatter, so that solving them gives it back.
    """

    estimator: Any = None

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        x, classes = block.values(), assignment.classes
        if assignment.weights is not None:
            raise ValueError("expected no sample_weight with a covariance_estimator, which knows none: leave it out")
        codes = assignment.codes
        weight = np.bincount(codes, minlength=len(classes)).astype(np.float64)
        mean = np.stack([x[codes == c].mean(axis=0) for c in range(len(classes))])
        covariance = np.stack([self._estimate(x[codes == c]) for c in range(len(classes))])
        sums = {
            "weight": weight,
            "sum": np.zeros_like(mean),
            "product": weight[:, None, None] * covariance,
            "total": weight.sum() * self._estimate(x),
        }
        axes = {
            "weight": ("class",),
            "sum": ("class", "column"),
            "product": ("class", "column", "other column"),
            "total": ("column", "other column"),
        }
        return Statistics(sums, axes, {"class": classes}, mean)

    def total(self, statistics: Statistics) -> Array:
        """Return the covariance that was found for all rows together."""
        return np.asarray(statistics.sums["total"] / statistics.sums["weight"].sum())

    def _estimate(self, x: Array) -> Array:
        self.estimator.fit(x)
        if not hasattr(self.estimator, "covariance_"):
            raise ValueError(f"{type(self.estimator).__name__} does not have a covariance_ attribute")
        return np.atleast_2d(np.asarray(self.estimator.covariance_, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class _Fitted(State):
    """A discriminant with the parameters that it was fitted with: others may be set before the next fit."""

    settings: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)

    @property
    def density(self) -> Any:
        """The Gaussians of the classes."""
        return self.joint.densities[0]

    @property
    def family(self) -> Any:
        """The family of all columns."""
        return self.parts[0].family

    def kept(self) -> dict[str, Any]:
        """Return what a file holds beside statistics and reader."""
        return {"settings": self.settings}

    def keeping(self, kept: Any) -> Self:
        """Return the state with the settings that a file holds."""
        settings, constraints = kept.get("settings"), self.constraints
        if not isinstance(settings, dict) or settings.keys() != constraints.keys() or len(kept) != 1:
            raise ValueError(f"expected the settings {sorted(constraints)}, got {on_one_line(kept)}")
        validate_parameter_constraints(constraints, settings, self.reader.estimator)
        return replace(self, settings=settings)


class DiscriminantFace(ClassifierFace):
    """What linear and quadratic discriminants have in common."""

    _no_estimator: ClassVar[str]
    solver: str
    shrinkage: Any
    covariance_estimator: Any
    priors: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all before; a weight of 2 is a row twice."""
        try:
            return super().fit(X, y, sample_weight)
        except UnsolvableError as error:
            raise self.refusal(error) from None

    def refusal(self, error: UnsolvableError) -> Exception:
        """Return what to say of a covariance without an inverse, in the words of scikit-learn."""
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: the result is that of ``fit`` on all rows; ``classes`` are named at the first call."""
        self._check_one_by_one("partial_fit")
        return super().partial_fit(X, y, classes, sample_weight)

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one."""
        self._check_one_by_one("merge")
        return self.hold(fitting.merge(self, others))

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: the model becomes what it would be had it never seen them."""
        self._check_one_by_one("forget")
        return self.hold(fitting.forget(self.fitted(), X, y, sample_weight))

    @property
    def means_(self) -> Array:
        """The mean of every class."""
        return np.asarray(self._solution.density.mean)

    @property
    def _solution(self) -> Any:
        """The fitted state."""
        return self.fitted()

    def _families(self, table: Table, structure: dict[str, Any]) -> tuple[Part, ...]:
        """Return the Gaussian of all columns, of a structure."""
        if isinstance(table.cells, SparseRows):
            raise TypeError("expected a dense array, got a sparse matrix: call X.toarray() first")
        if self.covariance_estimator is None:
            return (Part(Gaussian("full", floor=0.0, **structure), None),)
        return (Part(EstimatedGaussian("full", floor=0.0, **structure, estimator=self.covariance_estimator), None),)

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

    def _check_one_by_one(self, question: str) -> None:
        if self.covariance_estimator is not None:
            raise ValueError(
                f"expected covariance_estimator=None for {question}, got {self.covariance_estimator!r}, which must see "
                "all rows at once: use fit"
            )


@dataclass(frozen=True, eq=False)
class _Linear(_Fitted):
    """A linear discriminant, and the directions that tell its classes apart."""

    @cached_property
    def directions(self) -> Directions:
        """The directions that tell classes apart."""
        if self.settings["solver"] == "svd":
            return svd_directions(self.density, self.joint.weights, self.settings["tol"])
        return eigen_directions(self.density, self.family.total(self.statistics.blocks[0]))

    @cached_property
    def comparison(self) -> Joint:
        """The joint, its means put into the directions between classes that ``tol`` leaves."""
        joint, density = self.joint, self.density
        if self.settings["solver"] == "svd":
            vectors, middle = self.directions.vectors, joint.weights @ density.mean
            if vectors.shape[1] < min(len(self.classes) - 1, self.columns.width):
                along = (density.mean - middle) @ vectors
                within = replace(density, mean=middle + along @ vectors.T @ density.covariance[0])
                joint = replace(joint, densities=(within,))
        return joint

    @cached_property
    def linear(self) -> tuple[Array, Array, Array]:
        """o, θ and θ₀ of the scores θ·(x − o) + θ₀ of every class, or of the second against the first if there are two.

        The origin o is the mean of all classes for solver "svd", else 0.
        """
        density: Any = self.comparison.densities[0]
        svd = self.settings["solver"] == "svd"
        origin = self.joint.weights @ density.mean if svd else np.zeros(self.columns.width)
        apart = density.mean - origin
        theta = apart @ density.precision[0]
        theta0 = self.joint.log_weights - 0.5 * (theta * apart).sum(axis=1)
        if len(theta) == 2:
            theta, theta0 = theta[1:] - theta[:1], theta0[1:] - theta0[:1]
        return origin, theta, theta0


class LinearDiscriminantAnalysis(DiscriminantFace, discriminant_analysis.LinearDiscriminantAnalysis):  # type: ignore[misc]
    """scikit-learn's ``LinearDiscriminantAnalysis``: Gaussian classes that share a covariance.

    All solvers learn from the same sums in one pass, so they differ only in what they do with shrinkage, with columns
    that depend on each other, and in the directions of ``transform``. ``partial_fit``, ``merge``, ``forget`` and
    ``sample_weight`` work with each.

    Parameters
    ----------
    solver
        "svd": directions in which classes do not vary are left out; "lsqr": the same, by least squares, and with
        shrinkage, but without ``transform``; "eigen": with shrinkage and ``transform``, for a covariance of full rank
    shrinkage
        None, a number from 0 to 1, or "auto" to choose it from the data (Ledoit and Wolf)
    priors
        p(y), one number for each class; by default the shares of the classes in the data
    n_components
        how many directions ``transform`` gives; by default all there are, one less than classes at most
    store_covariance
        whether solver "svd" has ``covariance_`` too
    tol
        for "svd": standard deviations up to this, of standardised columns within classes, count as none, and so do
        directions along which the means differ by less than this share of the most they do; below 1e-7 it is 1e-7
    covariance_estimator
        an estimator from ``sklearn.covariance`` to be used instead, fitted on each class

    Attributes
    ----------
    coef_, intercept_
        the linear form of every class, or of the second against the first if there are two
    means_, covariance_, priors_, xbar_
        the mean of every class, the covariance they share, p(y), and the mean of all
    scalings_, explained_variance_ratio_
        the directions of ``transform``, and the share of the variance between classes along each
    classes_, class_count_, n_features_in_, feature_names_in_
        the labels, sorted, the weight of their rows, the number of columns, and their names if they have any

    Examples
    --------
    >>> from likely.sklearn import LinearDiscriminantAnalysis
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> model = LinearDiscriminantAnalysis().fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1]])
    array([1])
    >>> model.transform(X).shape
    (6, 1)
    """

    _no_estimator = "covariance estimator is not supported with svd solver. Try another solver"

    def plan(self) -> Plan:
        """Return what is to be fitted: Gaussians that share a covariance."""
        check_parameters(self)
        self._check_solver()
        priors = None
        if self.priors is not None:
            priors = np.array(self.priors, dtype=np.float64)
            if np.any(priors < 0):
                raise ValueError("priors must be non-negative")
            priors = priors / priors.sum()
        if self.solver == "svd":
            structure: dict[str, Any] = {"tied": True, "flat": FlatDirections(self.tol)}
        else:
            flat = FlatDirections(0.0, standardised=False) if self.solver == "lsqr" else None
            # The covariances of the classes are weighed by the priors that were given, or by their rows.
            pooling = "shares" if priors is None else tuple((np.asarray(self.priors) / np.sum(self.priors)).tolist())
            structure = {"tied": True, "flat": flat, "pooling": pooling, **self._shrunk()}

        def families(table: Table, _: Assignment) -> tuple[Part, ...]:
            if table.rows < 2:
                raise ValueError(
                    f"Found array with {table.rows} sample(s) (shape={table.cells.shape}) while a minimum of 2 is "
                    "required."
                )
            return self._families(table, structure)

        constraints = {**self._parameter_constraints, "dtype": [StrOptions({"float32", "float64"})]}
        settings = {**self.get_params(deep=False), "dtype": "float64"}
        return Plan(
            "LinearDiscriminantAnalysis",
            families,
            priors=priors,
            compare=self._with_dtype,
            check=self._check_fitted,
            state=partial(_Linear, settings=settings, constraints=constraints),
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X and their labels y, forgetting all before; a weight of 2 is a row twice."""
        check_parameters(self)
        if self.priors is not None and abs(np.sum(self.priors) - 1.0) > 1e-5:
            warn("The priors do not sum to 1. Renormalizing")
        return super().fit(X, y, sample_weight)

    def _with_dtype(self, state: State, table: Table, _: Assignment, __: Guessed) -> State:
        """Return the state that answers in single precision where scikit-learn does."""
        assert isinstance(state, _Linear)
        single = Block(table, None).dense().dtype == np.float32 and (self.solver == "svd" or len(state.classes) == 2)
        return replace(state, settings={**state.settings, "dtype": "float32" if single else "float64"})

    def _check_fitted(self, table: Table, state: State) -> None:
        classes = len(state.classes)
        if table.rows == classes:
            raise ValueError("The number of samples must be more than the number of classes.")
        if self.n_components is not None and self.n_components > min(table.columns.width, classes - 1):
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")

    def refusal(self, error: UnsolvableError) -> Exception:
        """Return what to say of a covariance without an inverse."""
        return np.linalg.LinAlgError(
            "expected a covariance within classes of full rank, got one in which the others, or missing cells, "
            f"determine {error.blamed}: leave such columns out, use solver='svd' on rows without missing cells, or "
            "solver='lsqr' or 'eigen' with a number as shrinkage"
        )

    @property
    def _n_features_out(self) -> int:
        return self._solution.settings["n_components"] or min(len(self.classes_) - 1, self.n_features_in_)

    def _directions(self, attribute: str) -> Directions:
        if self._solution.settings["solver"] == "lsqr":
            raise AttributeError(f"{attribute} of solver 'lsqr': it finds no directions, use 'svd' or 'eigen'")
        found: Directions = self._solution.directions
        return found

    @property
    def scalings_(self) -> Array:
        """The directions of ``transform``, columns × directions."""
        return self._like_rows(self._directions("scalings_").vectors)

    @property
    def explained_variance_ratio_(self) -> Array:
        """The share of the variance between classes along each direction."""
        return self._like_rows(self._directions("explained_variance_ratio_").shares[: self._n_features_out])

    @property
    def xbar_(self) -> Array:
        """The mean of the class means, weighted by p(y)."""
        if self._solution.settings["solver"] != "svd":
            raise AttributeError("xbar_: only solver 'svd' has one")
        return self._like_rows(self._solution.linear[0])

    @property
    def covariance_(self) -> Array:
        """The covariance that all classes share."""
        svd = self._solution.settings["solver"] == "svd"
        if svd and not self._solution.settings["store_covariance"]:
            raise AttributeError("covariance_ of solver 'svd': set store_covariance=True before fit")
        family = (
            Gaussian("full", tied=True, floor=0.0, pooling=tuple(self.priors_.tolist()))
            if svd
            else self._solution.family
        )
        covariance: Array = family.covariances(self._solution.statistics.blocks[0])[0]
        return covariance

    @property
    def coef_(self) -> Array:
        """θ of the linear form θ·x + θ₀ of every class, or of the second against the first if there are two."""
        return self._like_rows(self._solution.linear[1])

    @property
    def intercept_(self) -> Array:
        """θ₀ of the linear form."""
        origin, theta, theta0 = self._solution.linear
        return self._like_rows(theta0 - theta @ origin)

    def _like_rows(self, array: Array) -> Array:
        """Return results in single precision if rows were, as scikit-learn does for two classes or with "svd"."""
        found: Array = array.astype(self._solution.settings["dtype"], copy=False)
        return found

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class if there are two, else θ·x + θ₀ of each, rows × classes."""
        table = self.fitted().reader.read(X)
        origin, theta, theta0 = self._solution.linear
        scores = _products(table, origin, theta, theta0)
        if not np.isfinite(scores.sum()):
            odd = np.flatnonzero(~np.isfinite(scores).all(axis=1))
            part = Table(Block(table, None).dense()[odd], table.names)
            scores[odd] = self._scores_of_what_is_there(part, origin)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _scores_of_what_is_there(self, table: Table, origin: Array) -> Array:
        """Return log p(x, y) without the part that all classes share: that of a Gaussian about the origin."""
        about, shared = replace(self._solution.density, mean=origin[None]), np.zeros((table.rows, 1))
        about.add_log_density(Block(table, None), shared)
        scores = self._solution.comparison.log_joint(table) - shared
        return np.asarray(scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores)

    def transform(self, X: Any) -> Any:
        """Return the rows in the directions that tell classes apart, rows × directions; NaN if a cell is missing."""
        if self.__sklearn_is_fitted__() and self._solution.settings["solver"] == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        table = self.fitted().reader.read(X)
        origin = self._solution.linear[0]
        theta = np.ascontiguousarray(self._solution.directions.vectors[:, : self._n_features_out].T)
        products = _products(table, origin, theta, np.zeros(len(theta)))
        return products.astype(
            np.result_type(Block(table, None).dense().dtype, self._solution.settings["dtype"]), copy=False
        )


def _products(table: Table, origin: Array, theta: Array, theta0: Array) -> Array:
    """Return θ·(x − origin) + θ₀ of every row and θ."""
    block, out = Block(table, None), np.zeros((table.rows, len(theta)))
    with readable_errors(table, Gaussian.expects):
        native.score_products(block.dense(), None, (origin, theta, theta0), out)
    return out


@dataclass(frozen=True, eq=False)
class _Quadratic(_Fitted):
    """A quadratic discriminant, and the principal axes of its classes."""

    @cached_property
    def principal_axes(self) -> list[tuple[Array, Array]]:
        """Variances along the principal axes of every class, the largest first, and the axes as columns."""
        found = [np.linalg.eigh(covariance) for covariance in self.density.covariance]
        return [(values[::-1], vectors[:, ::-1]) for values, vectors in found]


class QuadraticDiscriminantAnalysis(DiscriminantFace, discriminant_analysis.QuadraticDiscriminantAnalysis):  # type: ignore[misc]
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

    # scikit-learn's own class has reg_param for its only solver, and no shrinkage, before version 1.8.
    _parameter_constraints: ClassVar = {
        **{name: LinearDiscriminantAnalysis._parameter_constraints[name] for name in _ALSO_LINEAR},
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

    def plan(self) -> Plan:
        """Return what is to be fitted: a Gaussian of each class."""
        check_parameters(self)
        self._check_solver()
        structure = {"shrinkage": self.reg_param, "target": "unit"} if self.solver == "svd" else self._shrunk()
        settings = self.get_params(deep=False)
        if self.priors is not None:
            settings["priors"] = np.array(self.priors)  # which whoever gave them may change
        return Plan(
            "QuadraticDiscriminantAnalysis",
            lambda table, _: self._families(table, structure),
            priors=None if self.priors is None else np.asarray(self.priors, dtype=np.float64) / np.sum(self.priors),
            check=_check_classes,
            state=partial(_Quadratic, settings=settings, constraints=dict(self._parameter_constraints)),
        )

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Learn from rows X and their labels y, forgetting all that was learned before.

        Rows of different weights are learned by ``partial_fit``.
        """
        return super().fit(X, y)

    def refusal(self, error: UnsolvableError) -> Exception:
        """Return what to say of a covariance without an inverse."""
        if error.rows == 1 and not self.reg_param and not self.shrinkage:
            return ValueError(f"y has only 1 sample in class {error.label}, covariance is ill defined.")
        return np.linalg.LinAlgError(
            f"The covariance matrix of class {error.label} is not full rank. {self._remedy} ({error.rows:g} rows; "
            f"the others, or missing cells, determine {error.blamed})"
        )

    @property
    def _remedy(self) -> str:
        if self.solver == "svd":
            return (
                "Increase the value of `reg_param` to reduce the collinearity, or try solver='eigen' with "
                "shrinkage='auto'."
            )
        return "Increase the value of `shrinkage` to reduce the collinearity."

    @property
    def priors_(self) -> Array:
        """p(y), one for each class; as they were given, also if they do not sum to 1."""
        given = self._solution.settings["priors"]
        return self.joint_.weights if given is None else np.array(given)

    @property
    def covariance_(self) -> list[Array]:
        """The covariance of every class."""
        if not self._solution.settings["store_covariance"]:
            raise AttributeError("covariance_: set store_covariance=True before fit")
        return list(self._solution.density.covariance)

    @property
    def scalings_(self) -> list[Array]:
        """The variances along the principal axes of every class, the largest first."""
        return [values for values, _ in self._solution.principal_axes]

    @property
    def rotations_(self) -> list[Array]:
        """The principal axes of every class, as columns."""
        return [vectors for _, vectors in self._solution.principal_axes]

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class if there are two, else log p(x, y) without (2π)^−d/2."""
        scores = Questions.decision_function(self, X)
        if scores.ndim == 1:
            return scores
        constant = 0.5 * self.n_features_in_ * np.log(2 * np.pi) + np.log(self.priors_.sum())
        return np.asarray(scores + constant)


def _check_classes(_: Table, state: State) -> None:
    if len(state.classes) < 2:
        raise ValueError(f"The number of classes has to be greater than one. Got {len(state.classes)} class.")
