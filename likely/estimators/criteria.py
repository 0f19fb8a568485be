"""How good a mixture is, and the best of several."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from likely.estimators.tables import TableQuestions

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
            all other parameters of the mixtures

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
        tried: list[tuple[Candidate, Any]] = []
        for covariance, tied in structures:
            for k in components:
                model: Any = cls(k, covariance=covariance, tied=tied, **parameters).fit(X)  # type: ignore[call-arg, attr-defined]
                told, number = model.log_likelihood_, model.joint_.free_parameters()
                sure = model.predict_log_proba(X).max(axis=1)
                bic = model._bic(told, len(sure))
                how_good = bic, model._aic(told), bic - 2 * float(sure.sum())
                tried.append((Candidate(k, covariance, tied, told, number, *how_good), model))
        if not tried:
            raise ValueError("expected numbers of components and structures to choose from, got none")
        tried.sort(key=lambda one: float(getattr(one[0], by)))
        return Selected([candidate for candidate, _ in tried], tried[0][1])
