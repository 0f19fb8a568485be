"""How good a mixture is, and the best of several."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from likely.estimators.tables import TableQuestions
from likely.learn.em import Climb, Hidden

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
    best: Any


def candidate(k: int, covariance: str, tied: bool, found: Climb, rows: Hidden) -> Candidate:
    """Return how good a mixture is that was found for rows."""
    log_likelihood, free = found.log_likelihood, found.joint.free_parameters()
    bic = -2 * log_likelihood + free * float(np.log(rows.weight))
    sure = found.joint.posterior(rows.table, log=True).max(axis=1)
    weights = np.ones(len(sure)) if rows.weights is None else rows.weights
    return Candidate(
        k, covariance, tied, log_likelihood, free, bic, -2 * log_likelihood + 2 * free, bic - 2 * float(weights @ sure)
    )


class Criteria(TableQuestions):
    """What tells good mixtures from others: the likelihood, and that less what parameters cost."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of log p(x) over the rows."""
        return float(np.average(self.log_density(X), weights=sample_weight))

    def bic(self, X: Any) -> float:
        """Return −2 log-likelihood + free parameters × log rows (Schwarz): the less, the better."""
        told = self.log_density(X)
        return self._bic(float(told.sum()), len(told))

    def aic(self, X: Any) -> float:
        """Return −2 log-likelihood + 2 × free parameters (Akaike): the less, the better."""
        return self._aic(float(self.log_density(X).sum()))

    def icl(self, X: Any) -> float:
        """Return the BIC − 2 Σ log p(a row's likeliest component), which asks for components that lie apart."""
        return self.bic(X) - 2 * float(self.predict_log_proba(X).max(axis=1).sum())

    def _bic(self, log_likelihood: float, rows: int) -> float:
        return -2 * log_likelihood + self.joint_.free_parameters() * float(np.log(rows))

    def _aic(self, log_likelihood: float) -> float:
        return -2 * log_likelihood + 2 * self.joint_.free_parameters()

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
        until a step gains little; of many rows that do not lie in memory, on those that are drawn. Two numbers of
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
        tried = cls._tried(X, numbers, structures, by, parameters)
        tried.sort(key=lambda one: float(getattr(one, by)))
        best = tried[0]
        made: Any = cls(best.n_components, covariance=best.covariance, tied=best.tied, **parameters)  # type: ignore[call-arg]
        return Selected(tried, made.fit(X))

    @classmethod
    def _tried(
        cls, X: Any, numbers: list[int], structures: list[tuple[str, bool]], by: str, parameters: dict[str, Any]
    ) -> list[Candidate]:
        raise NotImplementedError
