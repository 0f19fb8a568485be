"""Cells of real tables are masked, and filled again: by a full covariance fitted on what is left, and by scikit-learn.

    python benchmarks/masking.py [SHARE]

SHARE of the cells (0.2) is masked at random, in tables that scikit-learn ships. Shown are root mean squares of the
errors, in standard deviations of the columns, and seconds; medians of several masks.
"""

import sys
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from compare import timed
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from likely import Mixture

ROUNDS = 3


def tables() -> dict[str, np.ndarray]:
    """Return real tables of standardised columns."""
    found = {}
    for load in (load_iris, load_wine, load_diabetes, load_breast_cancer):
        X = load().data
        found[load.__name__.removeprefix("load_")] = (X - X.mean(axis=0)) / X.std(axis=0)
    return found


WAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "likely": lambda holes: Mixture(1).fit(holes).impute(holes),
    "mean": lambda holes: SimpleImputer().fit_transform(holes),
    "neighbours": lambda holes: KNNImputer().fit_transform(holes),
    "iterative": lambda holes: IterativeImputer(random_state=0).fit_transform(holes),
}


def main() -> None:
    warnings.simplefilter("ignore")
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    print(f"{'':<16}" + "".join(f"{name:>18}" for name in WAYS))
    for name, X in tables().items():
        errors: dict[str, list[float]] = {way: [] for way in WAYS}
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(ROUNDS):
            masked = np.random.default_rng(seed).random(X.shape) < share
            holes = np.where(masked, np.nan, X)
            for way, fill in WAYS.items():
                taken, filled = timed(lambda fill=fill, holes=holes: fill(holes))
                seconds[way].append(taken)
                errors[way].append(float(np.sqrt(np.mean((filled - X)[masked] ** 2))))
        shown = (f"{median(errors[way]):.3f} ({median(seconds[way]):.2f} s)" for way in WAYS)
        print(f"{name:<16}" + "".join(f"{cell:>18}" for cell in shown), flush=True)


if __name__ == "__main__":
    main()
