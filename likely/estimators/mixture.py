"""Mixtures: groups of rows that nobody has labelled, each of its own distribution."""

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.labels import read_weights
from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import Block, Table
from likely.engines.labelled import is_matrix, together, with_weight
from likely.engines.sampling import sampled
from likely.ensemble.selection import SAMPLE
from likely.estimators.by_column import ByColumn
from likely.estimators.criteria import Candidate, Criteria, candidate
from likely.estimators.hidden_rows import HiddenRows
from likely.estimators.laws import Laws
from likely.estimators.questions import random_generator
from likely.estimators.watching import ProgressLine, Watching
from likely.families import CovariancePrior, Gaussian, on_one_line, read_number
from likely.joint import Part
from likely.learn.em import Climb, Hidden, without_empty
from likely.learn.first_groups import STARTS, Sample
from likely.learn.mixtures import Aim, First, Search, Start, climbed, learned
from likely.messages import tell
from likely.model.state import Knowledge
from likely.statistics import Array, Assignment

# Imagined rows and tolerance of mixtures that are compared: next to the greatest likelihood, but no point is a group.
_CANDIDATES_ROWS, _CANDIDATES_TOLERANCE = 0.1, 1e-5
# So many numbers of components in a row that are worse than one before end the search.
_PATIENCE = 2


class Mixture(ByColumn, Criteria):
    """Find groups of rows: every row comes from one of several components, each with a distribution of its own.

    It is fitted by expectation maximisation: the share of each row that belongs to each component, then the components
    of rows so shared, and so on. Columns of numbers follow a Gaussian of all of them, of categories and others each a
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
        before every step of the best start; but for a prior no step lowers it, unless an empty component was begun anew
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
    _learns_labels = False
    log_likelihood_: float
    log_likelihoods_: list[float]
    starts_: list[Start]

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance: str = "full",
        tied: bool = False,
        columns: Any = "auto",
        start: Any = "k-means++",
        n_starts: int = 1,
        tolerance: float = 1e-6,
        max_iterations: int = 1000,
        pseudo_rows: Any = "auto",
        smoothing: Any = 1.0,
        missing: Any = (),
        together: Any = (),
        random_state: Any = 0,
        progress: bool = True,
        checkpoint: Any = None,
    ):
        self.n_components = n_components
        self.covariance = covariance
        self.tied = tied
        self.columns = columns
        self.start = start
        self.n_starts = n_starts
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.pseudo_rows = pseudo_rows
        self.smoothing = smoothing
        self.missing = missing
        self.together = together
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint

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
        schema, rows = self._read_all(X, sample_weight)
        table = rows.table
        k, start = self._checked(rows)
        every = Assignment(np.zeros(1, dtype=np.int64), np.zeros(table.rows, dtype=np.int32), rows.weights)
        search = Search.of(self.n_starts if isinstance(start, str) else 1, random_generator(self.random_state))
        parts = self._parts(table, every)
        for part in parts:  # infinity is refused in a sentence, before groups are looked for
            block = Block(table, part.columns)
            if isinstance(part.family, Gaussian) and any(_has_infinity(block.single(j)) for j in range(block.width)):
                part.family.collect(block, every)
        first = self._first(rows, parts, search.seeds)
        aim = self._aim(rows, parts, first)
        look = {"progress": bool(self.progress), "path": self.checkpoint, "parameters": self._decisive()}
        with Watching(rows, aim.parts, search, **look) as watch:
            search = climbed(rows, aim, watch.search, watch)
        best = search.best
        assert best is not None
        self._tell_of(best, k)
        self._keep(table, Knowledge(aim.parts, best.statistics, table.columns, None))
        self._keep_schema(schema, "group")
        if schema is None:
            self._note(table, rows.weights, more=False)
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
        X = self._held(X)
        known = self._known()
        as_table = hasattr(self, "schema_") and not isinstance(X, Table)
        table = self.schema_.table(X) if as_table else self._read_next(X)
        batch = Hidden(table, None, read_weights(sample_weight, table.rows))
        found = learned(known.statistics, known.joint, batch)
        statistics, removed = without_empty(found.statistics)
        knowledge = known.with_statistics(statistics)
        knowledge.joint  # noqa: B018  what cannot be solved is said before anything changes
        _tell_of_empty(len(known.statistics.classes), removed)
        self._replace(knowledge)
        if as_table:
            self.schema_ = self.schema_.reaching(with_weight(self._opened(X), None, sample_weight)[0])
        else:
            self._note(table, sample_weight, more=True)
        self.log_likelihood_ = found.log_likelihood
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Find the components of rows X, and return the likeliest of each row."""
        return self.fit(X, y, sample_weight).predict(X)

    @classmethod
    def _tried(
        cls, X: Any, numbers: list[int], structures: list[tuple[str, bool]], by: str, parameters: dict[str, Any]
    ) -> list[Candidate]:
        """Return how good mixtures are, on rows that are read once, from first groups that structures share."""
        settings = {"pseudo_rows": _CANDIDATES_ROWS, **parameters}
        reader = cls(1, **settings)
        rows = reader._read_all(X, None)[1]
        rows = Hidden(rows.table, None, rows.weights)
        every = Assignment(np.zeros(1, dtype=np.int64), np.zeros(rows.table.rows, dtype=np.int32), rows.weights)
        generator = random_generator(reader.random_state)
        begun = Search.of(reader.n_starts if isinstance(reader.start, str) else 1, generator)
        sample = Sample.of(rows, begun.seeds[0])
        firsts: dict[int, First | None] = {}
        same: dict[Any, Climb] = {}
        tried: list[Candidate] = []
        line = ProgressLine(bool(reader.progress))
        try:
            for covariance, tied in structures:
                least, worse = np.inf, 0
                for k in numbers:
                    model = cls(k, covariance=covariance, tied=tied, **settings)
                    model._checked(rows)
                    parts = model._parts(rows.table, every)
                    if k not in firsts:
                        firsts[k] = model._first(rows, parts, begun.seeds, sample)
                    aim = model._aim(rows, parts, firsts[k])
                    aim = aim._replace(tolerance=max(aim.tolerance, _CANDIDATES_TOLERANCE))
                    # Without columns of numbers, or with one, structures are the same.
                    gaussians = (part for part in parts if type(part.family) is Gaussian)
                    wide = sum(Block(rows.table, part.columns).width for part in gaussians)
                    key = k, covariance if wide > 1 else "", tied if wide > 0 else True
                    told = f"{k} components, {covariance}{', tied' if tied else ''}; {len(tried)} mixtures tried"
                    if (found := same.get(key)) is None:
                        found = climbed(rows, aim, begun, lambda _, told=told: line(lambda: told)).best  # type: ignore[misc]
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

    @property
    def means_(self) -> Array:
        """The mean of every component and column of numbers; NaN in columns of categories."""
        joint = self.joint_
        found = np.full((len(joint.classes), joint.width), np.nan)
        for part, density in zip(joint.parts, joint.densities, strict=True):
            found[:, slice(None) if part.columns is None else part.columns] = density.means
        return found

    def _read_all(self, X: Any, sample_weight: Any) -> tuple[Schema | None, Hidden]:
        """Read the rows to begin with, and find out what the columns of a table are; those of an array are numbers.

        Many rows that do not lie in memory stay there: some are drawn to begin with, then every step is a pass.
        """
        if not self._is_table(X):
            table = self._read_first(X)
            return None, Hidden(table, None, read_weights(sample_weight, table.rows))
        opened = self._opened(X)
        if isinstance(self.start, str):  # else there is a group for each row
            opened, _, sample_weight = with_weight(opened, None, sample_weight)
        read = partial(self._read_table, opened, sample_weight=sample_weight)
        schema, rows = self._learned_as_table(opened, None, read)
        return None if is_matrix(opened) else schema, rows

    def _read_table(self, opened: Rows, schema: Schema, sample_weight: Any) -> Hidden:
        if not opened.held and sample_weight is None and isinstance(self.start, str):
            some = sampled(schema, opened, None, None, SAMPLE, 0, alike=True)
            if not some.whole:
                weights = some.rows.assignment.weights
                return HiddenRows(some.rows.table, None, weights, (opened, schema, some.labelled))
            return Hidden(some.rows.table)
        table = schema.table(together(opened))
        return Hidden(table, None, read_weights(sample_weight, table.rows))

    def _gaussian(self, kind: type[Gaussian]) -> Gaussian:
        prior = CovariancePrior(rows=None if self._auto() else float(self.pseudo_rows))
        return Gaussian(self.covariance, self.tied, pseudo_rows=prior) if kind is Gaussian else kind(pseudo_rows=prior)

    def _first(
        self, rows: Hidden, parts: tuple[Part, ...], seeds: tuple[int, ...], sample: Sample | None = None
    ) -> First | None:
        """Return first groups, if the prior of covariances is to be found from them."""
        if not isinstance(self.start, str) or not any(isinstance(part.family, Gaussian) for part in parts):
            return None
        return First.of(sample or Sample.of(rows, seeds[0]), parts, self.n_components, seeds)

    def _aim(self, rows: Hidden, parts: tuple[Part, ...], first: First | None) -> Aim:
        """Return what is looked for, with the prior of covariances."""
        k, start = self._checked(rows)
        table = rows.table
        groups: Assignment | None = None
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
        return Aim(parts, k, start, float(self.tolerance), self.max_iterations, first)

    def _imagined(self) -> Any:
        return 1.0 if self._auto() else self.pseudo_rows

    def _auto(self) -> bool:
        """Say whether the prior is to be found from the rows, or raise if it is neither that nor a number of rows."""
        rows = self.pseudo_rows
        if isinstance(rows, str) and rows == "auto":
            return True
        expected = "pseudo_rows='auto', or a number of 0 or more"
        if not 0 <= read_number(rows, expected) < np.inf:
            raise ValueError(f"expected {expected}, got {on_one_line(rows)}")
        return False

    def _correlates(self) -> bool:
        return True  # within components, or by them

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

    def _kept_parameters(self) -> dict[str, Any]:
        return {**super()._kept_parameters(), "checkpoint": None}  # a place on this machine

    def _decisive(self) -> dict[str, Any]:
        """Return what the result of a fit depends on, beside the rows."""
        parameters = self.get_params()
        del parameters["progress"], parameters["checkpoint"]
        if not isinstance(self.random_state, int | np.integer):
            parameters["random_state"] = type(self.random_state).__name__  # its draws are in the checkpoint
        return parameters

    def _tell_of(self, found: Climb, k: int) -> None:
        _tell_of_empty(k, found.removed, found.revived)
        if not found.converged:
            tell(
                f"expected the log-likelihood to settle within {self.max_iterations} steps, got a gain in the last: "
                "raise max_iterations or tolerance"
            )


def _has_infinity(column: Block) -> bool:
    return bool(np.isinf(column.dense()[:, column.number(0)]).any())


def _tell_of_empty(k: int, removed: int, revived: int = 0) -> None:
    if removed or revived:
        anew = f"{revived} begun anew at the rows explained worst, " if revived else ""
        tell(f"components became empty: {anew}{removed} of {k} taken out; ask for fewer, or begin elsewhere")
