"""Full covariances of rows with missing cells: 100,000 rows × 20 columns, 3 classes, a tenth of the cells missing.

python benchmarks/missing.py
"""

import statistics
import time

import numpy as np

from likely import GaussianDiscriminant
from likely.families import missing


def rows_with_holes(rows: int = 100_000, columns: int = 20, classes: int = 3, share: float = 0.1) -> tuple:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, rows)
    X = rng.normal(size=(rows, columns))
    for c, factor in enumerate(np.eye(columns) + 0.3 * rng.normal(size=(classes, columns, columns))):
        X[y == c] = X[y == c] @ factor.T + c
    X[rng.random(X.shape) < share] = np.nan
    return X, y


def main() -> None:
    X, y = rows_with_holes()
    patterns = len(np.unique(np.packbits(np.isnan(X), axis=1), axis=0))
    print(f"{len(X):,} rows × {X.shape[1]} columns, {patterns:,} patterns of holes; medians of 5 fits")
    steps: list[float] = []
    expect = missing.Expectation.__call__

    def timed(self: missing.Expectation, given: missing.Parameters) -> object:
        start = time.perf_counter()
        sums = expect(self, given)
        steps.append(time.perf_counter() - start)
        return sums

    missing.Expectation.__call__ = timed  # type: ignore[method-assign]
    for name, settings in {
        "tied": {"tied": True},
        "by class": {},
        "by class, unshrunk": {"shrinkage": 0.0},
    }.items():
        totals = []
        for _ in range(5):
            steps.clear()
            start = time.perf_counter()
            GaussianDiscriminant(**settings).fit(X, y)
            totals.append(time.perf_counter() - start)
        each = 1000 * statistics.median(steps)
        print(f"{name:20} {statistics.median(totals):.2f} s, {len(steps)} steps, {each:.1f} ms each")


if __name__ == "__main__":
    main()
