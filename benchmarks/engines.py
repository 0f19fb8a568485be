"""Naive Bayes and mixtures on clusters of this machine, beside dask-ml and Spark's MLlib on the same cluster.

    python benchmarks/engines.py FOLDER [dask] [spark]

FOLDER holds what benchmarks/streaming.py has written. Two processes of one thread work, those of Dask, or executors of
Spark. Each job runs in a process of its own, once to warm up and three times for the median; mixtures, which take
minutes, run once.
Needs dask[distributed] and dask-ml, or pyspark and Java.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 3
NAMES = [f"x{j}" for j in range(19)]
STEPS = 5


def timed(job: Callable[[], Any], *, once: bool = False) -> list[float]:
    """Return the seconds that a job takes, without the first time, or of a single one."""
    seconds = []
    for _ in range(1 if once else ROUNDS + 1):
        began = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - began)
    return seconds if once else seconds[1:]


def on_dask(folder: str, who: str, kept: bool) -> list[float]:
    import dask.dataframe
    from distributed import Client, LocalCluster, wait

    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", scheduler_port=0, dashboard_address="127.0.0.1:0"
    )
    with cluster, Client(cluster):
        frame = dask.dataframe.read_parquet(folder)
        if kept:
            frame = frame.persist()
            wait(frame)

        def peer() -> None:
            from dask_ml.naive_bayes import GaussianNB

            X = frame[NAMES].to_dask_array()
            y = frame["label"].map({"a": 0, "b": 1, "c": 2}, meta=("label", "int64")).to_dask_array()
            X.compute_chunk_sizes()
            y.compute_chunk_sizes()
            GaussianNB().fit(X, y)

        def own() -> None:
            from likely import NaiveBayes

            NaiveBayes().fit(frame, "label")

        return timed(own if who == "likely" else peer)


def on_spark(folder: str, who: str, kept: bool, *, mixture: bool = False) -> list[float]:
    from pyspark.ml.classification import NaiveBayes as Peer
    from pyspark.ml.clustering import GaussianMixture
    from pyspark.ml.feature import StringIndexer, VectorAssembler
    from pyspark.sql import SparkSession

    from likely import Mixture, NaiveBayes

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "10g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    frame = session.read.parquet(folder)
    if kept:
        frame = frame.cache()
        frame.count()
    vectors = VectorAssembler(inputCols=NAMES, outputCol="x")

    def peer() -> None:
        if mixture:
            GaussianMixture(k=3, featuresCol="x", maxIter=STEPS, tol=0.0, seed=0).fit(vectors.transform(frame))
            return
        rows = StringIndexer(inputCol="label", outputCol="y").fit(frame).transform(frame)
        Peer(modelType="gaussian", featuresCol="x", labelCol="y").fit(vectors.transform(rows))

    def own() -> None:
        if mixture:
            Mixture(3, covariance="full", max_iterations=STEPS, tolerance=0.0, random_state=0).fit(frame.drop("label"))
        else:
            NaiveBayes().fit(frame, "label")

    found = timed(own if who == "likely" else peer, once=mixture)
    session.stop()
    return found


JOBS: dict[str, tuple[str, str, Callable[..., list[float]], dict[str, bool]]] = {
    "dask files": ("naive Bayes of Parquet files", "dask-ml GaussianNB", on_dask, {"kept": False}),
    "dask kept": ("naive Bayes of persisted frames", "dask-ml GaussianNB", on_dask, {"kept": True}),
    "spark files": ("naive Bayes of Parquet files", "MLlib NaiveBayes", on_spark, {"kept": False}),
    "spark kept": ("naive Bayes of a cached frame", "MLlib NaiveBayes", on_spark, {"kept": True}),
    "spark mixture": (
        f"full mixture of 3, {STEPS} steps",
        "MLlib GaussianMixture",
        on_spark,
        {"kept": False, "mixture": True},
    ),
}


def main() -> None:
    folder, *wanted = sys.argv[1:]
    for name, (what, peer, _, _) in JOBS.items():
        if wanted and not any(name.startswith(word) for word in wanted):
            continue
        seconds = {}
        for who in (peer, "likely"):
            told = subprocess.run(
                [sys.executable, __file__, "--one", folder, name, who], capture_output=True, text=True, check=True
            )
            seconds[who] = median(json.loads(told.stdout.splitlines()[-1]))
        ratio = seconds[peer] / seconds["likely"]
        print(
            f"{name:<15}{what:<42}{peer} {seconds[peer]:.1f} s, likely {seconds['likely']:.1f} s: {ratio:.1f} ×",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        warnings.simplefilter("ignore")
        folder, name, who = sys.argv[2:]
        _, _, job, options = JOBS[name]
        print(json.dumps(job(str(Path(folder)), who, **options)))
    else:
        main()
