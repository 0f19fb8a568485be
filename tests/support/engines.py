"""Engines for tests: one of frames in a list, and real ones on this machine, reached from nowhere else."""

import gc
import os
import pickle
import shutil
import sys
import tempfile
import warnings
from contextlib import contextmanager
from threading import Event, Thread

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from likely import Classifier, NaiveBayes
from likely.data.rows import open_rows
from likely.engines import Engine, add_results, in_partition_order

slow = pytest.mark.skipif("LIKELY_SLOW" not in os.environ, reason="takes a minute: set LIKELY_SLOW to run it")

MODELS = {
    "naive Bayes": NaiveBayes(),
    "naive Bayes of categories": NaiveBayes({"visits": "category"}),
    "classifier": Classifier(),
    "classifier, not calibrated": Classifier(calibrate=False),
}


def people(n=600, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": generator.normal(40, 10, n).round(1),
            "visits": generator.poisson(3, n),
            "town": generator.choice(["Oslo", "Rome", "Lima"], n),
            "member": generator.random(n) < 0.5,
        }
    )
    frame["income"] = np.where(frame.age + 5 * frame.visits + generator.normal(0, 9, n) > 55, "high", "low")
    holes = generator.random(frame.shape) < 0.1
    holes[:, [1, 3, 4]] = False
    return frame.mask(holes)


def groups(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 3, n)
    X = generator.normal(size=(n, 3)) + np.array([[0, 0, 0], [6, 6, 0], [0, 7, 7]])[group]
    return pd.DataFrame(X, columns=["a", "b", "c"])


class Frames(Engine):
    """Frames in a list, as an engine: tasks are pickled, done in any order, and some of them twice."""

    name = "test"

    def __init__(self, frames, order=None, again=()):
        self.frames, self.partitions = frames, len(frames)
        self.order = range(len(frames)) if order is None else order
        self.again = again

    @property
    def schema(self):
        return open_rows(self.frames[0]).schema

    def run(self, task, add):
        sent = pickle.dumps((task, add))
        found = []
        for number in filter(task.wants, self.order):
            task, add = pickle.loads(sent)
            found.append(pickle.loads(pickle.dumps(task(number, self.frames[number]))))
        found += [found[i] for i in self.again]
        return found if add is None else [add_results(part, add) for part in neighbours(in_partition_order(found))]

    def contents(self):
        return iter(self.frames)

    def lazily(self, answer):
        raise NotImplementedError


def check_unchanged(models, spread, frame, kill):
    """Fit models as long as ``kill``, which is told when to stop, runs beside: not a bit of an answer may differ."""
    expected = [model.fit(spread, "income").predict_proba(frame) for model in models]
    stopped = Event()
    killer = Thread(target=kill, args=(stopped,))
    killer.start()
    try:
        while killer.is_alive():
            for model, right in zip(models, expected, strict=True):
                np.testing.assert_array_equal(model.fit(spread, "income").predict_proba(frame), right)
    finally:
        stopped.set()
        killer.join()


def neighbours(parts, most=3):
    return [parts[i : i + most] for i in range(0, len(parts), most)]


def split(frame, count):
    return [frame.iloc[part] for part in np.array_split(np.arange(len(frame)), count)]


def arrow_parts(frame, count):
    return [pa.Table.from_pandas(part, preserve_index=False) for part in split(frame, count)]


def _start(ray, tries=3):
    """Start Ray: its own servers are given 15 seconds, which on a busy machine may not do; then once more."""
    for left in reversed(range(tries)):
        try:
            ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
            return
        except RuntimeError as error:
            if not left or "Timed out" not in str(error):
                raise
            ray.shutdown()
            gc.collect()  # what is left of the processes, while warnings are ignored


@contextmanager
def ray_session():
    """Ray on two processors of this machine, reached from nowhere else."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as elsewhere:  # workers import from where Ray was started, too
            os.chdir(elsewhere)
            try:
                _start(ray)
            finally:
                os.chdir(here)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray.data
        ray.shutdown()


SPARK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}


@contextmanager
def spark_session(monkeypatch, settings=None, **where):
    """Start Spark on this machine: classic by its master, Connect by its remote."""
    sql = pytest.importorskip("pyspark.sql")
    if "remote" in where:
        pytest.importorskip("grpc_status")
        monkeypatch.setenv("SPARK_TESTING", "1")  # a port that is free
        settings = {"spark.connect.grpc.binding.address": "127.0.0.1", **(settings or {})}
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder
        for name, value in {**SPARK, "spark.sql.shuffle.partitions": "4", **(settings or {})}.items():
            builder = builder.config(name, value)
        for name, value in where.items():
            builder = getattr(builder, name)(value)
        session = builder.getOrCreate()
        yield session
        session.stop()


def spark_frame(session, frame, count):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    places = pa.array(np.arange(len(frame)) * count // len(frame))
    spread = session.createDataFrame(table.append_column("place", places))
    return spread.repartitionByRange(count, "place").sortWithinPartitions("place").drop("place")
