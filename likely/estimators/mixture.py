"""Mixtures: groups of rows that nobody has labelled, each of its own distribution."""

import os
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.labelled import of_one_class
from likely.data.progress import ProgressLine
from likely.data.table import Block
from likely.estimators import fitting
from likely.estimators.base import Estimator, tags_of
from likely.estimators.checkpoint import Checkpoint
from likely.estimators.column_families import ColumnFamilies, count_tags
from likely.estimators.fitting import Plan
from likely.estimators.laws import Laws
from likely.families import CovariancePrior, Gaussian, on_one_line, read_number
from likely.joint import Part
from likely.learn.hidden import EMResult, Hidden, without_empty
from likely.learn.mixtures import STARTS, First, MixtureTask, Sample, Search, learned, search_mixture
from likely.messages import warn
from likely.model.questions import GROUP, Questions, random_generator
from likely.model.state import State
from likely.persistence.saved import save
from likely.statistics import Array, Assignment

# Imagined rows and tolerance of mixtures that are compared: next to the greatest likelihood, but no point is a group.
_CANDIDATES_ROWS, _CANDIDATES_TOLERANCE = 0.1, 1e-5
# So many numbers of components in a row that are worse than one before end the search.
_PATIENCE = 2
# Spherical, diagonal and full covariances, one for all components or one each.
STRUCTURES = tuple((covariance, tied) for covariance in ("spherical", "diagonal", "full") for tied in (True, False))


class Candidate(NamedTuple):
    """A mixture that was tried, and how good it is: the less, the better."""

    n_components: int
    covariance: str
    tied: bool
    log_likelihood: float
    free_parameters: int
    bic: float
    aic: float
    icl: float


class Selected(NamedTuple):
    """All mixtures that were tried, the best first, and the best of them."""

    table: list[Candidate]
    best: "Mixture"


def candidate(k: int, covariance: str, tied: bool, found: EMResult, rows: Hidden) -> Candidate:
    """Return how good a mixture is that was found for rows."""
    log_likelihood, free = found.log_likelihood, found.joint.free_parameters()
    bic = -2 * log_likelihood + free * float(np.log(rows.weight))
    sure = found.joint.posterior(rows.table, log=True).max(axis=1)
    weights = np.ones(len(sure)) if rows.weights is None else rows.weights
    return Candidate(
        k, covariance, tied, log_likelihood, free, bic, -2 * log_likelihood + 2 * free, bic - 2 * float(weights @ sure)
    )


@dataclass(eq=False, repr=False)
class Mixture(Questions, Estimator):
    """Find groups of rows: every row comes from one of several components, each with a distribution of its own.

    It is fitted by expectation maximisation: the responsibility of each component for each row, then the components
    of rows so weighed, and so on. Columns of numbers follow a Gaussian of all of them, of categories and others each a
    family of its own. Missing cells (NaN) are left out; under a full covariance what is expected there takes their
    place, so the likelihood is that of the cells that are there.

    Parameters
    ----------
    n_components
        the number of components
    covariance
        of the columns of numbers: "full", "diagonal" or "spherical"
    tied
        True for one covariance of all components, False for one each
    columns
        the family of every column, as of ``NaiveBayes``; "auto": by its type
    start
        the first groups: "k-means++" (those that k-means finds in standardised rows), "assignment" (by chance), or
        the number of the group of each row
    n_starts
        how often to begin; the result of the greatest likelihood is kept
    tolerance
        end when a step raises the log-likelihood by less than this for each row
    max_iterations
        how many steps each start takes at most
    pseudo_rows
        imagined rows that every component has beside its own, which vary about its mean like rows vary within groups
        that k-means finds: "auto" for d + 2 of d columns under a full covariance and 3 under others, 0 for the greatest
        likelihood
    smoothing
        pseudo-counts of categories and words
    missing
        text or numbers that stand for a missing cell of a table
    together
        columns of categories that are not taken as independent
    random_state
        a seed, or a NumPy generator
    progress
        whether a fit that takes some seconds shows on a terminal, in one line, how far it is
    checkpoint
        the path of a file in which a fit keeps how far it is, every ten seconds and when it is interrupted; ``fit`` of
        the same rows goes on from there, ends at the same bits, and removes it

    Attributes
    ----------
    classes_
        the numbers of the components, from 0
    priors_
        their weights
    joint_
        the joint distribution of rows and components
    log_likelihood_
        of all rows that were learned from, in logarithms
    n_iterations_, converged_
        how many steps the best start took, and whether it ended by itself
    log_likelihoods_
        before every step of the best start; but for a prior no step lowers it, unless an empty component was restarted
    starts_
        log-likelihood, iterations and whether it converged, of each start
    n_features_in_, feature_names_in_
        the number of columns, and their names if they have any

    Examples
    --------
    >>> import numpy as np
    >>> from likely import Mixture
    >>> X = np.array([[0.0, 0.1], [0.3, 0.0], [0.1, 0.4], [5.0, 5.2], [5.4, np.nan], [5.1, 5.0]])
    >>> model = Mixture(2, covariance="diagonal").fit(X)
    >>> groups = model.predict(X)
    >>> bool(groups[0] == groups[1] == groups[2] != groups[3] == groups[4] == groups[5])
    True
    >>> float(model.predict_proba([[5.2, 5.1]]).max().round(6))
    1.0
    """

    # partial_fit is stepwise EM, which ends near to fit.
    laws: ClassVar[Laws] = Laws(weights="reference", batches="not offered", merge="not offered", forget="not offered")
    answers = GROUP

    n_components: int = 2
    _: KW_ONLY
    covariance: str = "full"
    tied: bool = False
    columns: Any = "auto"
    start: Any = "k-means++"
    n_starts: int = 1
    tolerance: float = 1e-6
    max_iterations: int = 1000
    pseudo_rows: Any = "auto"
    smoothing: Any = 1.0
    missing: Any = ()
    together: Any = ()
    random_state: Any = 0
    progress: bool = True
    checkpoint: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of rows X, forgetting all that was found before.

        Parameters
        ----------
        X
            a matrix of numbers, in which NaN is a missing cell; or a table, as ``NaiveBayes`` takes it
        y
            not used
        sample_weight
            how much each row counts: a weight of 2 is the row twice
        """
        plan = self.plan()
        reader, rows = fitting.open_hidden(plan, X, sample_weight, in_memory=not isinstance(self.start, str))
        table = rows.table
        k, start = self._checked(rows)
        every = of_one_class(table.rows, rows.weights)
        search = Search.of(self.n_starts if isinstance(start, str) else 1, random_generator(self.random_state))
        parts = plan.families(table, every)
        for part in parts:  # infinity is refused in a sentence, before groups are looked for
            block = Block(table, part.columns)
            if isinstance(part.family, Gaussian) and any(_has_infinity(block.single(j)) for j in range(block.width)):
                part.family.collect(block, every)
        task = self._task(rows, parts, self._first(rows, parts, search.seeds))
        look = {"progress": bool(self.progress), "path": self.checkpoint, "parameters": self._decisive()}
        with Checkpoint(rows, task.parts, search, **look) as watch:
            search = search_mixture(rows, task, watch.search, watch)
        best = search.best
        assert best is not None
        _warn_about_empty(k, best.removed, best.restarted)
        if not best.converged:
            warn(
                f"expected the log-likelihood to settle within {self.max_iterations} steps, got a gain in the last: "
                "raise max_iterations or tolerance"
            )
        self._state = State(task.parts, best.statistics, reader)
        self.starts_, self.log_likelihoods_ = list(search.starts), best.log_likelihoods
        self.log_likelihood_, self.converged_ = best.log_likelihood, best.converged
        self.n_iterations_ = len(best.log_likelihoods) - 1
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of rows, by one step of expectation maximisation (stepwise EM).

        The first batch is learned as by ``fit``. Statistics become (1 − γ) of what they were + γ of the batch's, with
        γ = (t + 2)^−0.7, where t is how many batches of this size came before: the first groups are forgotten, and
        steps settle. What the columns are is decided by the first batch. ``log_likelihood_`` is that of the batch
        before it is learned.

        Parameters
        ----------
        X, y, sample_weight
            as in ``fit``

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> model = Mixture(2, covariance="spherical")
        >>> for _ in range(20):
        ...     _ = model.partial_fit(rng.normal(size=(100, 1)) + rng.choice([-5.0, 5.0], (100, 1)))
        >>> float(model.class_count_.sum().round())
        2000.0
        >>> sorted(model.means_.ravel().round().tolist())
        [-5.0, 5.0]
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        state = self.fitted()
        reader, batch = fitting.more_hidden(state.reader, X, sample_weight)
        found = learned(state.statistics, state.joint, batch)
        statistics, removed = without_empty(found.statistics)
        new = State(state.parts, statistics, reader)
        new.joint  # noqa: B018  what cannot be solved is said before anything changes
        _warn_about_empty(len(state.classes), removed)
        self._state, self.log_likelihood_ = new, found.log_likelihood
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Find the components of rows X, and return the likeliest of each row."""
        return self.fit(X, y, sample_weight).predict(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of log p(x) over the rows."""
        return float(np.average(self.log_density(X), weights=sample_weight))

    def bic(self, X: Any) -> float:
        """Return −2 log-likelihood + free parameters × log rows (Schwarz): the less, the better."""
        found = self.log_density(X)
        return -2 * float(found.sum()) + self.joint_.free_parameters() * float(np.log(len(found)))

    def aic(self, X: Any) -> float:
        """Return −2 log-likelihood + 2 × free parameters (Akaike): the less, the better."""
        return -2 * float(self.log_density(X).sum()) + 2 * self.joint_.free_parameters()

    def icl(self, X: Any) -> float:
        """Return the BIC − 2 Σ log p(a row's likeliest component), which asks for components that lie apart."""
        return self.bic(X) - 2 * float(self.predict_log_proba(X).max(axis=1).sum())

    @classmethod
    def select(
        cls,
        X: Any,
        components: Iterable[int] = range(1, 10),
        structures: Iterable[tuple[str, bool]] = STRUCTURES,
        *,
        by: str = "bic",
        **parameters: Any,
    ) -> Selected:
        """Fit mixtures of several numbers of components and structures of covariances, and return the best of them.

        Candidates are fitted next to the greatest likelihood, which the criteria ask for (``pseudo_rows=0.1``), and
        until a step gains little; of many rows out-of-core, on those that are drawn. Two numbers of
        components in a row that are worse than one before end the search within a structure. The best is then fitted
        as all mixtures are, to all rows.

        Parameters
        ----------
        X
            rows, as ``fit`` takes them
        components
            numbers of components
        structures
            pairs of ``covariance`` and ``tied``
        by
            "bic", "aic" or "icl"
        parameters
            all other parameters of the mixtures; ``pseudo_rows``, if given, is also that of the candidates

        Examples
        --------
        >>> import numpy as np
        >>> from likely import Mixture
        >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0.0], [9.0]], 100, axis=0)
        >>> found = Mixture.select(X, range(1, 4), [("spherical", True), ("full", False)])
        >>> found.best
        Mixture(covariance='spherical', tied=True)
        >>> [candidate.n_components for candidate in found.table[:2]]
        [2, 3]
        """
        if by not in ("bic", "aic", "icl"):
            raise ValueError(f"expected by='bic', 'aic' or 'icl', got {by!r}")
        structures, numbers = list(structures), list(components)
        if not structures or not numbers:
            raise ValueError("expected numbers of components and structures to choose from, got none")
        tried = _candidates(cls, X, numbers, structures, by, parameters)
        tried.sort(key=lambda one: float(getattr(one, by)))
        best = tried[0]
        made = cls(best.n_components, covariance=best.covariance, tied=best.tied, **parameters)
        return Selected(tried, made.fit(X))

    @property
    def means_(self) -> Array:
        """The mean of every component and column of numbers; NaN in columns of categories."""
        joint = self.joint_
        found = np.full((len(joint.classes), joint.width), np.nan)
        for part, density in zip(joint.parts, joint.densities, strict=True):
            found[:, slice(None) if part.columns is None else part.columns] = density.means
        return found

    def plan(self) -> Plan:
        """Return what is to be fitted: numbers a Gaussian of all, responsibilities by EM."""
        auto = self._auto()
        prior = CovariancePrior(rows=None if auto else float(self.pseudo_rows))

        def gaussian(kind: type[Gaussian]) -> Gaussian:
            if kind is Gaussian:
                return Gaussian(self.covariance, self.tied, pseudo_rows=prior)
            return kind(pseudo_rows=prior)

        pseudo_rows = 1.0 if auto else self.pseudo_rows
        # Numbers are correlated within components, or by them.
        families = ColumnFamilies(
            self.columns, self.smoothing, pseudo_rows, self.together, correlates=True, gaussian=gaussian
        )
        return Plan("Mixture", families, "table", self.columns, self.missing)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, from which ``likely.load`` returns it; all but ``checkpoint``, a path here."""
        save(self, path, checkpoint=None)

    def _first(
        self, rows: Hidden, parts: tuple[Part, ...], seeds: tuple[int, ...], sample: Sample | None = None
    ) -> First | None:
        """Return first groups, if the prior of covariances is to be found from them."""
        if not isinstance(self.start, str) or not any(isinstance(part.family, Gaussian) for part in parts):
            return None
        return First.of(sample or Sample.of(rows, seeds[0]), parts, self.n_components, seeds)

    def _task(self, rows: Hidden, parts: tuple[Part, ...], first: First | None) -> MixtureTask:
        """Return what is looked for, with the prior of covariances."""
        k, start = self._checked(rows)
        table, groups = rows.table, None
        if first is not None:
            table, groups = first.sample.table, first.groups
        elif not isinstance(start, str):
            groups = Assignment(np.arange(k), start, rows.weights)
        parts = tuple(
            part._replace(family=part.family.with_prior_found(Block(table, part.columns), groups))
            if isinstance(part.family, Gaussian) and groups is not None
            else part
            for part in parts
        )
        return MixtureTask(parts, k, start, float(self.tolerance), self.max_iterations, first)

    def _auto(self) -> bool:
        """Say whether the prior is to be found from the rows, or raise if it is neither that nor a number of rows."""
        rows = self.pseudo_rows
        if isinstance(rows, str) and rows == "auto":
            return True
        expected = "pseudo_rows='auto', or a number of 0 or more"
        if not 0 <= read_number(rows, expected) < np.inf:
            raise ValueError(f"expected {expected}, got {on_one_line(rows)}")
        return False

    def _checked(self, rows: Hidden) -> tuple[int, Any]:
        """Return the number of components and the start, or raise if they do not fit the rows."""
        k, n = self.n_components, rows.table.rows
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
            raise ValueError(f"expected n_components as a whole number of 1 or more, got {k!r}")
        # Shares may add up to 1, and a weight of 2 is a row twice: whichever is more.
        counted = n if rows.weights is None else max(int((rows.weights > 0).sum()), int(rows.weights.sum()))
        if counted < k:
            raise ValueError(f"expected as many rows as components or more, got {counted} rows for {k} components")
        for name, least in (("n_starts", 1), ("max_iterations", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"expected {name} as a whole number of {least} or more, got {value!r}")
        if not 0 <= read_number(self.tolerance, "tolerance of 0 or more") < np.inf:
            raise ValueError(f"expected tolerance of 0 or more, got {self.tolerance!r}")
        if isinstance(self.start, str):
            if self.start not in STARTS:
                raise ValueError(f"expected start among {STARTS}, or a group for each row, got {self.start!r}")
            return int(k), self.start
        start = np.asarray(self.start)
        if start.shape != (n,) or start.dtype.kind not in "iu" or not np.array_equal(np.unique(start), np.arange(k)):
            raise ValueError(
                f"expected start as the number of a group, from 0 to {k - 1} and each used, for each of the {n} rows, "
                f"got an array of shape {start.shape} and type {start.dtype}"
            )
        return int(k), start.astype(np.int32)

    def _decisive(self) -> dict[str, Any]:
        """Return what the result of a fit depends on, beside the rows."""
        parameters = self.get_params()
        del parameters["progress"], parameters["checkpoint"]
        if not isinstance(self.random_state, int | np.integer):
            parameters["random_state"] = type(self.random_state).__name__  # its draws are in the checkpoint
        return parameters

    def __sklearn_tags__(self) -> Any:
        sparse, positive_only = count_tags(self.columns)
        return tags_of("density_estimator", sparse=sparse, positive_only=positive_only)


def _candidates(
    cls: type[Mixture], X: Any, numbers: list[int], structures: list[tuple[str, bool]], by: str, parameters: Any
) -> list[Candidate]:
    """Return how good mixtures are, on rows that are read once, from first groups that structures share."""
    settings = {"pseudo_rows": _CANDIDATES_ROWS, **parameters}
    reader = cls(1, **settings)
    opened = fitting.open_hidden(reader.plan(), X, None, in_memory=not isinstance(reader.start, str))[1]
    rows = Hidden(opened.table, None, opened.weights)
    every = of_one_class(rows.table.rows, rows.weights)
    generator = random_generator(reader.random_state)
    initial = Search.of(reader.n_starts if isinstance(reader.start, str) else 1, generator)
    sample = Sample.of(rows, initial.seeds[0])
    firsts: dict[int, First | None] = {}
    same: dict[Any, EMResult] = {}
    tried: list[Candidate] = []
    line = ProgressLine(bool(reader.progress))
    try:
        for covariance, tied in structures:
            least, worse = np.inf, 0
            for k in numbers:
                model = cls(k, covariance=covariance, tied=tied, **settings)
                model._checked(rows)
                parts = model.plan().families(rows.table, every)
                if k not in firsts:
                    firsts[k] = model._first(rows, parts, initial.seeds, sample)
                task = model._task(rows, parts, firsts[k])
                task = task._replace(tolerance=max(task.tolerance, _CANDIDATES_TOLERANCE))
                # Without columns of numbers, or with one, structures are the same.
                gaussians = (part for part in parts if type(part.family) is Gaussian)
                wide = sum(Block(rows.table, part.columns).width for part in gaussians)
                key = k, covariance if wide > 1 else "", tied if wide > 0 else True
                shown = f"{k} components, {covariance}{', tied' if tied else ''}; {len(tried)} mixtures tried"
                if (found := same.get(key)) is None:
                    found = search_mixture(rows, task, initial, lambda _, shown=shown: line(lambda: shown)).best  # type: ignore[misc]
                assert found is not None
                same[key] = found
                tried.append(candidate(k, covariance, tied, found, rows))
                price = float(getattr(tried[-1], by))
                least, worse = (price, 0) if price < least else (least, worse + 1)
                if worse == _PATIENCE and numbers == sorted(numbers):
                    break
    finally:
        line.clear()
    return tried


def _has_infinity(column: Block) -> bool:
    return bool(np.isinf(column.dense()[:, column.number(0)]).any())


def _warn_about_empty(k: int, removed: int, restarted: int = 0) -> None:
    if removed or restarted:
        again = f"{restarted} restarted at the rows explained worst, " if restarted else ""
        warn(f"components became empty: {again}{removed} of {k} taken out; ask for fewer, or begin elsewhere")
