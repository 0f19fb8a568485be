"""A plain reference of every family: solutions, log densities and posteriors written straight from the formulas.

``solve`` takes the same family objects as the package, rows, classes as codes and weights, and returns the arrays that
the density must have. Nothing here is fast, and nothing is shared with the package but the names of the parameters.
"""

from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy import stats
from sklearn.covariance import ledoit_wolf_shrinkage, oas

from likely import GaussianPrior
from likely.families import Bernoulli, Categorical, Complement, Gamma, Gaussian, LogNormal, Multinomial, Poisson
from likely.families.categorical import CategoricalDensity
from likely.families.gaussian import DiagonalGaussian, FullGaussian
from likely.families.positive import ExponentialDensity, GammaDensity, PoissonDensity
from likely.families.words import BernoulliDensity, MultinomialDensity

# Solutions


def solve(family: Any, X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray) -> dict[str, np.ndarray]:
    """Return the parameters of greatest likelihood, or posterior, by the names the package gives them."""
    if isinstance(family, Gaussian):
        return _solve_gaussian(family, np.log(X) if isinstance(family, LogNormal) else X, codes, k, w)
    if isinstance(family, Bernoulli):
        return _solve_bernoulli(family, X, codes, k, w)
    if isinstance(family, Multinomial):
        return _solve_multinomial(family, X, codes, k, w)
    if isinstance(family, Categorical):
        return _solve_categorical(family, X, codes, k, w)
    mean = _pulled_means(X, codes, k, w, family.pseudo_rows)
    if isinstance(family, Gamma):
        gap = np.log(mean) - _pulled_means(np.log(X), codes, k, w, family.pseudo_rows)
        shape = np.vectorize(gamma_shape, otypes=[float])(gap)
        return {"mean": mean, "shape": shape}
    return {"rate": mean} if isinstance(family, Poisson) else {"mean": mean}


def weighted_mean(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the mean of what is there, column by column."""
    there = ~np.isnan(x)
    return np.nansum(w[:, None] * x, axis=0) / (w[:, None] * there).sum(axis=0)


def _pulled_means(X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray, rows: float) -> np.ndarray:
    """Return (Σx + r·mean of all) / (n + r) of every class."""
    out = []
    for c in range(k):
        x, v = X[codes == c], w[codes == c]
        n = (v[:, None] * ~np.isnan(x)).sum(axis=0)
        out.append((np.nansum(v[:, None] * x, axis=0) + rows * weighted_mean(X, w)) / (n + rows))
    return np.array(out)


def gamma_shape(gap: float) -> float:
    """Solve log a − ψ(a) = gap in 40 digits."""
    with mp.workdps(40):
        s = mpf(float(gap))
        between = (1 / (2 * s), 1 / s)  # since 1/2a < log a − ψ(a) < 1/a
        return float(mp.findroot(lambda a: (mp.log(a) - mp.digamma(a)) / s - 1, between, solver="anderson"))


def _solve_gaussian(family: Gaussian, X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray) -> dict[str, Any]:
    full = family.covariance == "full"
    n, mean, scatter = _moments(X, codes, k, w, full)
    if family.pseudo_rows:
        n, mean, scatter = _with_prior(family.pseudo_rows, X, w, full, n, mean, scatter)
    degrees = n - 1 if family.unbiased else n
    tied = float(family.tied)
    of_class = [_covariance(family, scatter[c], degrees[c]) for c in range(k)]
    of_all = _covariance(family, scatter.sum(axis=0), degrees.sum(axis=0))
    centred = X - mean[codes]
    if family.shrinkage:
        of_class = [_shrunk(family, of_class[c], centred[codes == c], w[codes == c], n[c]) for c in range(k)]
        of_all = _shrunk(family, of_all, centred, w, n.sum(axis=0))
    covariance = np.array([(1 - tied) * of_class[c] + tied * of_all for c in range(k)])
    if not full:
        return {"mean": mean, "variance": covariance}
    covariance = covariance[:1] if tied == 1 and k > 1 else covariance
    return {"mean": mean, "covariance": covariance, "factor": np.linalg.cholesky(covariance)}


def _moments(X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray, full: bool) -> tuple[np.ndarray, ...]:
    """Return n, mean, and Σw(x−mean)² or its matrix, of every class, over the cells that are there."""
    n, mean, scatter = [], [], []
    for c in range(k):
        x, v = X[codes == c], w[codes == c]
        mean.append(weighted_mean(x, v))
        t = x - mean[-1]
        n.append((v[:, None] * ~np.isnan(x)).sum(axis=0))
        scatter.append((v[:, None] * t).T @ t if full else np.nansum(v[:, None] * t**2, axis=0))
    return np.array(n), np.array(mean), np.array(scatter)


def _with_prior(prior: Any, X: np.ndarray, w: np.ndarray, full: bool, n: Any, mean: Any, scatter: Any) -> tuple:
    """Add imagined rows: of the prior, or like all rows together."""
    d = X.shape[1]
    if isinstance(prior, GaussianPrior):
        r, m, C = prior.rows, np.broadcast_to(prior.mean, d), np.asarray(prior.covariance, dtype=float)
        C = C if full or C.ndim < 2 else np.diagonal(C)
    else:
        count, m, total = (part[0] for part in _moments(X, np.zeros(len(X), dtype=int), 1, w, full))
        r, C = prior, total / (count[:, None] if full else count)
    apart = mean - m
    pull = n * r / (n + r)
    if full:
        between = pull[:, :, None] * apart[:, :, None] * apart[:, None, :]
    else:
        between = pull * apart**2
    return n + r, (n * mean + r * m) / (n + r), scatter + r * C + between


def _covariance(family: Gaussian, scatter: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    if family.covariance == "full":
        return scatter / degrees[0]
    if family.covariance == "spherical":
        return np.full(len(scatter), scatter.sum() / degrees.sum())
    return scatter / degrees


def _shrunk(family: Gaussian, covariance: np.ndarray, centred: np.ndarray, w: np.ndarray, n: np.ndarray) -> np.ndarray:
    if family.covariance != "full":
        return (1 - family.shrinkage) * covariance + family.shrinkage * covariance.mean()
    target, share = family.target or "diagonal", family.shrinkage
    if isinstance(share, str) and family.pseudo_rows:  # no rows to show to scikit-learn
        assert (share, target) == ("oas", "diagonal")
        share = _oas(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))), n[0])
    elif isinstance(share, str):
        rows = np.repeat(centred, w.astype(int), axis=0)
        assert len(rows) == w.sum()
        share = _chosen_share(share, rows if target == "spherical" else rows / rows.std(axis=0))
    aim = np.diag(np.diag(covariance)) if target == "diagonal" else np.eye(len(covariance)) * np.diag(covariance).mean()
    return (1 - share) * covariance + share * aim


def _chosen_share(rule: str, rows: np.ndarray) -> float:
    """Ask scikit-learn, on rows that are centred already."""
    return oas(rows, assume_centered=True)[1] if rule == "oas" else ledoit_wolf_shrinkage(rows, assume_centered=True)


def _oas(S: np.ndarray, n: float) -> float:
    """Chen, Wiesel, Eldar and Hero (2010), equation 23, with the correction that scikit-learn explains."""
    p = len(S)
    alpha, mean = (S**2).mean(), np.trace(S) / p
    return min(1.0, (alpha + mean**2) / ((n + 1) * (alpha - mean**2 / p)))


def _solve_categorical(family: Categorical, X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray) -> dict[str, Any]:
    values = [np.unique(x[~np.isnan(x)]) for x in X.T]
    starts = np.cumsum([0, *map(len, values)])
    smoothing = np.broadcast_to(np.asarray(family.smoothing, dtype=float), (k, starts[-1]))
    shares = np.empty((k, starts[-1]))
    for c in range(k):
        for j, found in enumerate(values):
            part = slice(starts[j], starts[j + 1])
            counts = [w[(codes == c) & (X[:, j] == value)].sum() for value in found]
            smoothed = np.array(counts) + smoothing[c, part]
            shares[c, part] = smoothed / smoothed.sum()
    return {"values": np.concatenate(values), "starts": starts, "shares": shares}


def _solve_bernoulli(family: Bernoulli, X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray) -> dict[str, Any]:
    """(yes + λ) / (yes + no + 2λ), and the same of no."""
    one = X == 1 if family.threshold is None else family.threshold < X
    zero = ~one & ~np.isnan(X)
    yes, no = (
        np.array([w[codes == c] @ cells[codes == c] for c in range(k)]) + family.smoothing for cells in (one, zero)
    )
    return {"yes": yes / (yes + no), "no": no / (yes + no)}


def _solve_multinomial(family: Multinomial, X: np.ndarray, codes: np.ndarray, k: int, w: np.ndarray) -> dict[str, Any]:
    counts = np.array([np.nansum(w[codes == c, None] * X[codes == c], axis=0) for c in range(k)])
    smoothed = counts + np.asarray(family.smoothing, dtype=float)
    if isinstance(family, Complement):  # Rennie et al. (2003): −log of the share among all other classes
        others = smoothed.sum(axis=0) - counts - (k - 1) * np.asarray(family.smoothing, dtype=float)
        logs = np.log(others / others.sum(axis=1, keepdims=True)).T
        return {"log_shares": logs / logs.sum(axis=0) if family.normalized else -logs, "length": np.zeros(k)}
    length = counts.sum(axis=1) / [w[codes == c].sum() for c in range(k)]
    with np.errstate(divide="ignore"):
        return {"log_shares": np.log(smoothed / smoothed.sum(axis=1, keepdims=True)).T, "length": length}


# Log densities, from SciPy's distributions


def log_density(density: Any, X: np.ndarray) -> np.ndarray:
    """Return log p(x | class), rows × classes, of the cells that are there."""
    return np.column_stack([_log_density_of_class(density, X, c) for c in range(density.classes)])


def _log_density_of_class(density: Any, X: np.ndarray, c: int) -> np.ndarray:
    if isinstance(density, FullGaussian):
        covariance = density.covariance[c if len(density.covariance) > 1 else 0]
        return np.array([_marginal(x, density.mean[c], covariance) for x in X])
    if isinstance(density, MultinomialDensity):
        logs = density.log_shares[:, c]
        return np.array([sum(n * log for n, log in zip(x, logs, strict=True) if n > 0) for x in X])
    if isinstance(density, CategoricalDensity):
        return np.sum([_log_share(density, x, j, c) for j, x in enumerate(X.T)], axis=0)
    if isinstance(density, BernoulliDensity):
        with np.errstate(divide="ignore"):
            yes = X == 1 if density.threshold is None else density.threshold < X
            cells = np.where(yes, np.log(density.yes[c]), np.log(density.no[c]))
        return np.where(np.isnan(X) | np.isnan(density.yes[c]), 0.0, cells).sum(axis=1)
    if isinstance(density, DiagonalGaussian):
        deviation = np.sqrt(density.variance[c])
        if density.domain == "log":
            cells = stats.lognorm.logpdf(X, s=deviation, scale=np.exp(density.mean[c]))
        else:
            cells = stats.norm.logpdf(X, density.mean[c], deviation)
    elif isinstance(density, GammaDensity):
        cells = stats.gamma.logpdf(X, density.shape[c], scale=1 / density.rate[c])
    elif isinstance(density, ExponentialDensity):
        cells = stats.expon.logpdf(X, scale=density.mean[c])
    else:
        assert isinstance(density, PoissonDensity)
        cells = stats.poisson.logpmf(X, density.rate[c])
    return np.where(np.isnan(X), 0.0, cells).sum(axis=1)


def _marginal(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    there = ~np.isnan(x)
    if not there.any():
        return 0.0
    return stats.multivariate_normal.logpdf(x[there], mean[there], covariance[np.ix_(there, there)])


def _log_share(density: CategoricalDensity, x: np.ndarray, j: int, c: int) -> np.ndarray:
    part = slice(density.starts[j], density.starts[j + 1])
    with np.errstate(divide="ignore"):
        known = dict(zip(density.values[part], np.log(density.shares[c, part]), strict=True))
    return np.array([known.get(value, 0.0) for value in x])
