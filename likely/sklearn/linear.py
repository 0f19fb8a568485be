"""scikit-learn's linear discriminant analysis, on likely's statistics."""

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from likely import native
from likely.data.table import Block, Table
from likely.families import Gaussian, UnsolvableError, readable_errors
from likely.families.directions import Directions, by_means, by_total
from likely.families.gaussian import FlatDirections
from likely.joint import Joint
from likely.model.state import Knowledge
from likely.sklearn.discriminant import COMMON_CONSTRAINTS, DiscriminantFace
from likely.statistics import Array


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DiscriminantFace):  # type: ignore[misc]
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

    _parameter_constraints: ClassVar = {
        **COMMON_CONSTRAINTS,
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }
    _no_estimator = "covariance estimator is not supported with svd solver. Try another solver"

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def _structure(self) -> dict[str, Any]:
        if self.solver == "svd":
            return {"tied": True, "flat": FlatDirections(self.tol)}
        flat = FlatDirections(0.0, standardised=False) if self.solver == "lsqr" else None
        return {"tied": True, "flat": flat, "pooling": self._shares, **self._shrunk()}

    @property
    def _shares(self) -> Any:
        """How the covariances of the classes are weighed: by the priors that were given, or by their rows."""
        return "shares" if self.priors is None else tuple((np.asarray(self.priors) / np.sum(self.priors)).tolist())

    def _given_priors(self) -> Any:
        if self.priors is None:
            return None
        priors = np.array(self.priors, dtype=np.float64)
        if np.any(priors < 0):
            raise ValueError("priors must be non-negative")
        if abs(priors.sum() - 1.0) > 1e-5:
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=6)
        return priors / priors.sum()

    def _solve_now(self, table: Table, knowledge: Knowledge) -> None:
        classes = len(knowledge.statistics.classes)
        if table.rows == classes:
            raise ValueError("The number of samples must be more than the number of classes.")
        if self.n_components is not None and self.n_components > min(table.columns.width, classes - 1):
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")
        super()._solve_now(table, knowledge)

    def _refusal(self, error: UnsolvableError) -> Exception:
        return np.linalg.LinAlgError(
            "expected a covariance within classes of full rank, got one in which the others, or holes, determine "
            f"{error.blamed}: leave such columns out, use solver='svd' on rows without holes, or solver='lsqr' or "
            "'eigen' with a number as shrinkage"
        )

    def _read_first(self, X: Any) -> Table:
        table = super()._read_first(X)
        if table.rows < 2:
            raise ValueError(
                f"Found array with 1 sample(s) (shape={table.cells.shape}) while a minimum of 2 is required."
            )
        return table

    def _keep(self, table: Table, knowledge: Knowledge) -> None:
        super()._keep(table, knowledge)
        single = Block(table, None).dense().dtype == np.float32 and (self.solver == "svd" or len(self.classes_) == 2)
        self._settings["dtype"] = "float32" if single else "float64"

    @property
    def _setting_constraints(self) -> dict[str, Any]:
        return {**super()._setting_constraints, "dtype": [StrOptions({"float32", "float64"})]}

    @property
    def _n_features_out(self) -> int:
        return self._settings["n_components"] or min(len(self.classes_) - 1, self.n_features_in_)

    @property
    def _directions(self) -> Directions:
        knowledge = self._known()
        if "directions" not in knowledge.derived:
            density = self._density
            if self._settings["solver"] == "svd":
                found = by_means(density, self.priors_, self._settings["tol"])
            else:
                found = by_total(density, self._family.total(self._statistics))
            knowledge.derived["directions"] = found
        directions: Directions = knowledge.derived["directions"]
        return directions

    @property
    def scalings_(self) -> Array:
        """The directions of ``transform``, columns × directions."""
        if self._settings["solver"] == "lsqr":
            raise AttributeError("scalings_ of solver 'lsqr': it finds no directions, use 'svd' or 'eigen'")
        return self._like_rows(self._directions.vectors)

    @property
    def explained_variance_ratio_(self) -> Array:
        """The share of the variance between classes along each direction."""
        if self._settings["solver"] == "lsqr":
            raise AttributeError(
                "explained_variance_ratio_ of solver 'lsqr': it finds no directions, use 'svd' or 'eigen'"
            )
        return self._like_rows(self._directions.shares[: self._n_features_out])

    @property
    def xbar_(self) -> Array:
        """The mean of the class means, weighted by p(y)."""
        if self._settings["solver"] != "svd":
            raise AttributeError("xbar_: only solver 'svd' has one")
        return self._like_rows(self._linear[0])

    @property
    def covariance_(self) -> Array:
        """The covariance that all classes share."""
        svd = self._settings["solver"] == "svd"
        if svd and not self._settings["store_covariance"]:
            raise AttributeError("covariance_ of solver 'svd': set store_covariance=True before fit")
        family = Gaussian("full", tied=True, floor=0.0, pooling=tuple(self.priors_.tolist())) if svd else self._family
        covariance: Array = family.covariances(self._statistics)[0]
        return covariance

    @property
    def _linear(self) -> tuple[Array, Array, Array]:
        """o, θ and θ₀ of the scores θ·(x − o) + θ₀ of every class, or of the second against the first if there are two.

        The origin o is the mean of all classes for solver "svd", else 0.
        """
        derived = self._known().derived
        if "linear" not in derived:
            derived["linear"] = self._find_linear()
        linear: tuple[Array, Array, Array] = derived["linear"]
        return linear

    @property
    def _comparison(self) -> Joint:
        """The joint, its means put into the directions between classes that ``tol`` leaves."""
        derived = self._known().derived
        if "comparison" not in derived:
            joint, density = self.joint_, self._density
            if self._settings["solver"] == "svd":
                vectors, middle = self._directions.vectors, self.priors_ @ density.mean
                if vectors.shape[1] < min(len(self.classes_) - 1, self.n_features_in_):
                    along = (density.mean - middle) @ vectors
                    within = replace(density, mean=middle + along @ vectors.T @ density.covariance[0])
                    joint = replace(joint, densities=(within,))
            derived["comparison"] = joint
        comparison: Joint = derived["comparison"]
        return comparison

    def _find_linear(self) -> tuple[Array, Array, Array]:
        density: Any = self._comparison.densities[0]
        origin = self.priors_ @ density.mean if self._settings["solver"] == "svd" else np.zeros(self.n_features_in_)
        apart = density.mean - origin
        theta = apart @ density.precision[0]
        theta0 = self.joint_.log_weights - 0.5 * (theta * apart).sum(axis=1)
        if len(theta) == 2:
            theta, theta0 = theta[1:] - theta[:1], theta0[1:] - theta0[:1]
        return origin, theta, theta0

    @property
    def coef_(self) -> Array:
        """θ of the linear form θ·x + θ₀ of every class, or of the second against the first if there are two."""
        return self._like_rows(self._linear[1])

    @property
    def intercept_(self) -> Array:
        """θ₀ of the linear form."""
        origin, theta, theta0 = self._linear
        return self._like_rows(theta0 - theta @ origin)

    def _like_rows(self, array: Array) -> Array:
        """Return results in single precision if rows were, as scikit-learn does for two classes or with "svd"."""
        return array.astype(self._settings["dtype"], copy=False)

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class if there are two, else θ·x + θ₀ of each, rows × classes."""
        self._known()
        table = self._read_next(X)
        origin, theta, theta0 = self._linear
        scores = _products(table, origin, theta, theta0)
        if not np.isfinite(scores.sum()):
            odd = np.flatnonzero(~np.isfinite(scores).all(axis=1))
            part = Table(Block(table, None).dense()[odd], table.names)
            scores[odd] = self._scores_of_what_is_there(part, origin)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _scores_of_what_is_there(self, table: Table, origin: Array) -> Array:
        """Return log p(x, y) without the part that all classes share: that of a Gaussian about the origin."""
        about, shared = replace(self._density, mean=origin[None]), np.zeros((table.rows, 1))
        about.add_log_density(Block(table, None), shared)
        scores = self._comparison.log_joint(table) - shared
        return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores

    def transform(self, X: Any) -> Any:
        """Return the rows in the directions that tell classes apart, rows × directions; NaN if a cell is missing."""
        if self.__sklearn_is_fitted__() and self._settings["solver"] == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        self._known()
        table = self._read_next(X)
        origin = self._linear[0]
        theta = np.ascontiguousarray(self._directions.vectors[:, : self._n_features_out].T)
        products = _products(table, origin, theta, np.zeros(len(theta)))
        return products.astype(np.result_type(Block(table, None).dense().dtype, self._settings["dtype"]), copy=False)


def _products(table: Table, origin: Array, theta: Array, theta0: Array) -> Array:
    """Return θ·(x − origin) + θ₀ of every row and θ."""
    block, out = Block(table, None), np.zeros((table.rows, len(theta)))
    with readable_errors(table, Gaussian.expects):
        native.score_products(block.dense(), None, (origin, theta, theta0), out)
    return out
