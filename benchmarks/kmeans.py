"""Exact k-means beside scikit-learn (Lloyd, Elkan), faiss and scikit-learn-intelex: same start, 20 iterations, float32.

    python benchmarks/kmeans.py [SHAPE ...]

SHAPE is the number of a line below, counted from 0. Rows lie around centres ("clustered") or are one Gaussian. Peers
that are not installed are left out. Every round runs each in turn; shown are medians, the ratio to the fastest peer,
and how much more inertia the best peer's centres have (less is negative).

All of them move the centres as often, and give labels of the last ones. What they say the inertia is they have summed
in float32, so it is found here, from their centres, in float64.
"""

import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median

import numpy as np
from compare import timed

from likely import KMeans

SHAPES = [
    (200_000, 50, 10),
    (200_000, 50, 100),
    (1_000_000, 8, 100),
    (100_000, 128, 1000),
    (60_000, 784, 10),
    (60_000, 256, 400),
]
ITERATIONS, ROUNDS, PATIENCE = 20, 5, 6.0


def made(n: int, d: int, k: int, clustered: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    if clustered:
        centres = rng.standard_normal((k, d)).astype(np.float32) * (2.0 if d < 20 else 1.0)
        X += centres[rng.integers(0, k, n)]
    return X, X[np.sort(rng.choice(n, k, replace=False))].copy()


def inertia_of(X: np.ndarray, centres: np.ndarray) -> float:
    """Return the squared distances of rows from their nearest centres, added up in float64."""
    middle = centres.mean(axis=0, dtype=np.float64)
    c = centres - middle
    total = 0.0
    for part in np.array_split(X, max(1, len(X) * len(c) // 10**7)):
        x = part - middle
        nearest = ((c**2).sum(axis=1) - 2 * x @ c.T).argmin(axis=1)
        total += float(((x - c[nearest]) ** 2).sum())
    return total


def contestants(X: np.ndarray, start: np.ndarray) -> dict[str, Callable[[], np.ndarray]]:
    """Return jobs that run from the start and give the centres."""
    k, d = start.shape

    def ours() -> np.ndarray:
        return KMeans(k, start=start, max_iterations=ITERATIONS).fit(X).cluster_centers_

    jobs: dict[str, Callable[[], np.ndarray]] = {"likely": ours}
    if find_spec("sklearn"):
        from sklearn import cluster

        for algorithm in ("lloyd", "elkan"):
            settings = {"n_clusters": k, "init": start, "n_init": 1, "max_iter": ITERATIONS, "tol": 0}
            job = cluster.KMeans(**settings, algorithm=algorithm)
            jobs[algorithm] = lambda job=job: job.fit(X).cluster_centers_
    if find_spec("faiss"):
        import faiss

        def with_faiss() -> np.ndarray:
            settings = {"max_points_per_centroid": 10**9, "min_points_per_centroid": 1}
            job = faiss.Kmeans(d, k, niter=ITERATIONS, **settings)
            job.train(X, init_centroids=start)
            job.index.search(X, 1)  # labels of the last centres, as all others give
            return job.centroids

        jobs["faiss"] = with_faiss
    if find_spec("sklearnex"):
        from sklearnex.cluster import KMeans as IntelKMeans

        job = IntelKMeans(k, init=start, n_init=1, max_iter=ITERATIONS, tol=0)
        jobs["intelex"] = lambda: job.fit(X).cluster_centers_
    return jobs


def main() -> None:
    warnings.simplefilter("ignore")
    chosen = [SHAPES[int(i)] for i in sys.argv[1:]] or SHAPES
    names = ["likely", "lloyd", "elkan", "faiss", "intelex"]
    print(f"{'':<36}" + "".join(f"{name:>10}" for name in names) + f"{'ratio':>9}{'inertia':>11}")
    for n, d, k in chosen:
        for clustered in (True, False):
            X, start = made(n, d, k, clustered)
            jobs = contestants(X, start)
            taken: dict[str, list[float]] = {name: [] for name in jobs}
            found: dict[str, np.ndarray] = {}
            for _ in range(ROUNDS):
                for name, job in jobs.items():
                    if sum(taken[name]) < PATIENCE:
                        seconds, found[name] = timed(job)
                        taken[name].append(seconds)
            middle = {name: median(seconds) for name, seconds in taken.items()}
            inertia = {name: inertia_of(X, centres.astype(np.float64)) for name, centres in found.items()}
            peers = [name for name in jobs if name != "likely"]
            ratio = min((middle[name] for name in peers), default=float("nan")) / middle["likely"]
            more = min((inertia[name] for name in peers), default=float("nan")) / inertia["likely"] - 1
            label = f"{n:,} × {d}, k = {k}, {'clustered' if clustered else 'one Gaussian'}"
            shown = "".join(f"{1e3 * middle[name]:>7.0f} ms" if name in middle else f"{'–':>10}" for name in names)
            print(f"{label:<36}{shown}{ratio:>7.2f} ×{more:>+11.1e}", flush=True)


if __name__ == "__main__":
    main()
