"""Timing side by side: ours and a peer's in turn, in one process, medians of several runs, and their ratio."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a job takes, and its result."""
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def seconds(job: Callable[[], object]) -> float:
    """Return how long a job takes."""
    return timed(job)[0]


def compare(
    name: str, ours: Callable[[], object], peer: Callable[[], object], repeats: int = 5, times: int = 1
) -> float:
    """Print the medians of both jobs, run in turn, and return how many times faster ours is."""

    def repeated(job: Callable[[], object]) -> Callable[[], object]:
        return lambda: [job() for _ in range(times)]

    ours(), peer()
    pairs = [(seconds(repeated(ours)), seconds(repeated(peer))) for _ in range(repeats)]
    a, b = (median(column) / times for column in zip(*pairs, strict=True))
    print(f"{name:<52}{_shown(a):>12}{_shown(b):>12}{b / a:>9.{1 if b / a >= 2 else 2}f} ×", flush=True)
    return b / a


def header(title: str, peer: str = "scikit-learn") -> None:
    """Print the head of a table."""
    print(f"\n{title:<52}{'likely':>12}{peer:>12}{'ratio':>11}")


def _shown(t: float) -> str:
    return f"{t * 1e6:.1f} µs" if t < 1e-3 else f"{t * 1e3:.1f} ms" if t < 1 else f"{t:.2f} s"


def classes_of_rows(
    rows: int = 1_000_000, columns: int = 50, classes: int = 10, dtype: type = np.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Make rows of correlated columns around the means of their classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, rows)
    mix = np.eye(columns) + 0.1 * rng.normal(size=(columns, columns))
    means = rng.normal(size=(classes, columns)) * 0.3
    X = np.empty((rows, columns), dtype=dtype)
    for start in range(0, rows, 100_000):
        part = slice(start, start + 100_000)
        X[part] = rng.normal(size=X[part].shape) @ mix + means[y[part]]
    return X, y
