"""Mixtures of Gaussians on 200,000 rows × 50 columns, 10 components, beside scikit-learn's: same start, same steps.

python benchmarks/mixture.py [STRUCTURE ...] [--float32]
"""

import argparse
import warnings
from functools import partial

import numpy as np
from compare import compare, header
from memory import peak_of
from sklearn.mixture import GaussianMixture

from likely import Mixture

ROWS, COLUMNS, COMPONENTS, STEPS = 200_000, 50, 10, 5
STRUCTURES = {
    "full": ("full", "full", False),
    "tied": ("tied", "full", True),
    "diagonal": ("diag", "diagonal", False),
    "spherical": ("spherical", "spherical", False),
}


def rows(apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Make rows around centres, and the centre of each."""
    rng = np.random.default_rng(0)
    codes = rng.integers(COMPONENTS, size=ROWS)
    mix = np.eye(COLUMNS) + 0.1 * rng.normal(size=(COLUMNS, COLUMNS))
    return apart * rng.normal(size=(COMPONENTS, COLUMNS))[codes] + rng.normal(size=(ROWS, COLUMNS)) @ mix, codes


def peer(kind: str, X: np.ndarray, start: np.ndarray) -> GaussianMixture:
    """Return scikit-learn's mixture, which begins with the means, weights and covariances of given groups.

    All of them are of the type of the rows: numbers of 64 bits would make it turn the rows into such at every step.
    """
    model = GaussianMixture(COMPONENTS, covariance_type=kind, tol=0.0, max_iter=STEPS, reg_covar=0.0)
    model.weights_init = np.bincount(start) / len(start)
    model.means_init = np.array([X[start == c].mean(axis=0) for c in range(COMPONENTS)])
    spread = np.array([np.cov(X[start == c].T, bias=True) for c in range(COMPONENTS)])
    model.precisions_init = {
        "full": np.linalg.inv(spread),
        "tied": np.linalg.inv(np.einsum("c,cij->ij", model.weights_init, spread)),
        "diag": 1 / np.einsum("cii->ci", spread),
        "spherical": 1 / np.einsum("cii->ci", spread).mean(axis=1),
    }[kind]
    for name in ("weights_init", "means_init", "precisions_init"):
        setattr(model, name, getattr(model, name).astype(X.dtype))
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("structures", nargs="*", choices=[[], *STRUCTURES], default=[])
    parser.add_argument("--float32", action="store_true")
    chosen = parser.parse_args()
    kind = np.float32 if chosen.float32 else np.float64
    warnings.simplefilter("ignore")
    for title, apart in {"clustered": 0.5, "structureless": 0.0}.items():
        X, codes = rows(apart)
        X = X.astype(kind)
        start = np.where(np.random.default_rng(1).random(ROWS) < 0.8, codes, np.roll(codes, 1))
        header(f"{ROWS:,} × {COLUMNS}, {COMPONENTS} components, {STEPS} steps, {title}, {kind.__name__}")
        for name in chosen.structures or STRUCTURES:
            upstream, covariance, tied = STRUCTURES[name]
            options = {"start": start, "tolerance": 0.0, "max_iterations": STEPS, "pseudo_rows": 0.0}
            ours = Mixture(COMPONENTS, covariance=covariance, tied=tied, **options)
            theirs = peer(upstream, X, start)
            compare(name, partial(ours.fit, X), partial(theirs.fit, X), repeats=3)
            gap = ours.log_likelihood_ / ROWS - theirs.score(X)
            print(f"  log-likelihood of a row beyond scikit-learn's {gap:.1e}")
            memory = [peak_of(partial(model.fit, X)) for model in (ours, theirs)]
            print(f"  peak memory beyond X: {memory[0]:.0f} MB beside {memory[1]:.0f} MB")


if __name__ == "__main__":
    main()
