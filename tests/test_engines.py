"""Rows in partitions: whatever engine keeps them, the model is that of all rows in one place."""

import operator
import os
import random
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import Frames, arrow_parts, spark_frame, split

from likely import Classifier, GaussianDiscriminant, KMeans, Mixture, NaiveBayes
from likely.engines import Made, Spread, Task, engine_of, in_order
from likely.estimators import gaussian_discriminant, kmeans_rows, mixture, typed
from likely.reading import Rows
from likely.reading.sources import Passing


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


slow = pytest.mark.skipif("LIKELY_SLOW" not in os.environ, reason="takes a minute: set LIKELY_SLOW to run it")

MODELS = {
    "naive Bayes": NaiveBayes(),
    "naive Bayes of categories": NaiveBayes({"visits": "category"}),
    "classifier": Classifier(),
    "classifier, not calibrated": Classifier(calibrate=False),
}


@pytest.mark.parametrize("most", [100, 10**6])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_any_partitions_give_the_model_of_all_rows(model, count, most, monkeypatch):
    monkeypatch.setattr(typed, "SAMPLE", most)
    frame = people()
    whole = model.fit(frame, "income").predict_proba(frame)
    spread = model.fit(Frames(split(frame, count)), "income")
    assert spread.class_count_.sum() == len(frame)
    np.testing.assert_allclose(spread.predict_proba(frame), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_who_works_first_does_not_change_a_bit(model, monkeypatch):
    monkeypatch.setattr(typed, "SAMPLE", 100)
    frame = people()
    found = [
        model.fit(Frames(split(frame, 7), order), "income").predict_proba(frame)
        for order in (range(7), [6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4])
    ]
    np.testing.assert_array_equal(found[1:], found[:1] * 2)


def test_a_partition_that_is_empty_and_a_class_of_one_partition_only(monkeypatch):
    monkeypatch.setattr(typed, "SAMPLE", 100)
    frame = people().sort_values("income", ignore_index=True)
    parts = [*split(frame, 5), frame.iloc[:0]]
    for model in MODELS.values():
        whole = model.fit(frame, "income").predict_proba(frame)
        spread = model.fit(Frames(parts), "income").predict_proba(frame)
        np.testing.assert_allclose(spread, whole, rtol=1e-12, atol=1e-14)


def groups(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 3, n)
    X = generator.normal(size=(n, 3)) + np.array([[0, 0, 0], [6, 6, 0], [0, 7, 7]])[group]
    return pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_mixture_takes_a_pass_for_each_step(covariance, monkeypatch, tmp_path):
    frame = groups().assign(kind=np.tile(["x", "y", "z"], 1000))
    frame["c"] = frame.c.mask(np.arange(len(frame)) % 11 == 0)
    frame.to_parquet(tmp_path / "groups.parquet")
    model = Mixture(3, covariance=covariance, tolerance=1e-10, progress=False)
    whole = Mixture(**model.get_params()).fit(frame)
    monkeypatch.setattr(mixture, "SAMPLE", 400)
    parts = [*split(frame, 7), frame.iloc[:0]]
    for rows in (Frames(parts), Frames(split(frame, 2)), tmp_path / "groups.parquet"):
        model.fit(rows)
        assert model.class_count_.sum() == pytest.approx(len(frame), rel=1e-12)
        assert (np.diff(model.log_likelihoods_) > -1e-9).all()
        assert model.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-8)
        assert model.log_likelihood_ == pytest.approx(model.log_density(frame).sum(), rel=1e-12)
        order, there = model.means_[:, 0].argsort(), whole.means_[:, 0].argsort()
        np.testing.assert_allclose(model.means_[order, :3], whole.means_[there, :3], atol=1e-3)
    orders = [model.fit(Frames(parts, order)).means_ for order in (range(8), [7, 3, 0, 1, 6, 5, 4, 2])]
    np.testing.assert_array_equal(*orders)


@pytest.mark.parametrize("holes", [False, True])
def test_k_means_takes_a_pass_for_each_movement(holes, monkeypatch, tmp_path):
    frame = groups()
    if holes:
        frame["c"] = frame.c.mask(np.arange(len(frame)) % 11 == 0)
    frame.to_parquet(tmp_path / "groups.parquet")
    start = frame.fillna(0.0).iloc[[0, 1, 5]].to_numpy()
    whole = KMeans(3, start=start).fit(frame)
    monkeypatch.setattr(kmeans_rows, "SAMPLE", 400)
    for rows in (Frames([*split(frame, 7), frame.iloc[:0]]), tmp_path / "groups.parquet"):
        model = KMeans(3, start=start).fit(rows)
        assert not hasattr(model, "labels_")
        assert (model.predict(frame) == whole.labels_).all()
        assert model.inertia_ == pytest.approx(whole.inertia_, rel=1e-12)
        assert model.n_iter_ == whole.n_iter_
        np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-12, atol=1e-14)
    drawn = KMeans(3, random_state=0).fit(tmp_path / "groups.parquet")
    assert drawn.inertia_ == pytest.approx(whole.inertia_, rel=1e-9)
    with pytest.raises(ValueError, match="expected columns of numbers, got 'kind' of kind category"):
        KMeans(3).fit(Frames(split(frame.assign(kind="x"), 2)))


@pytest.mark.parametrize("settings", [{}, {"tied": True}, {"covariance": "diagonal"}], ids=str)
@pytest.mark.parametrize("holes", [False, True])
def test_discriminants_of_rows_in_partitions(settings, holes, monkeypatch, tmp_path):
    frame = groups(900)
    if holes:
        frame["b"] = frame.b.mask(np.arange(len(frame)) % 5 == 0)
    labels = np.where(frame.a + frame.c > 3, "right", "left")
    frame["side"] = labels
    frame.to_parquet(tmp_path / "groups.parquet")
    X = frame[["a", "b", "c"]]
    whole = GaussianDiscriminant(**settings).fit(X, labels).predict_log_proba(X)
    np.testing.assert_array_equal(GaussianDiscriminant(**settings).fit(frame, "side").predict_log_proba(X), whole)
    monkeypatch.setattr(gaussian_discriminant, "SAMPLE", 200)
    exact = not holes or settings.get("covariance") == "diagonal"
    parts = [*split(frame.sort_values("side"), 5), frame.iloc[:0]]
    found = []
    for rows in (Frames(parts), Frames(parts, [5, 2, 0, 1, 4, 3]), tmp_path / "groups.parquet"):
        model = GaussianDiscriminant(**settings).fit(rows, "side")
        assert model.class_count_.sum() == pytest.approx(len(frame), rel=1e-12)
        found.append(model.predict_log_proba(X))
        # Cells that are missing are expected anew in every step, until steps gain nothing.
        np.testing.assert_allclose(found[-1], whole, rtol=1e-11 if exact else 1e-6, atol=1e-11 if exact else 1e-6)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_class_of_which_no_row_is_drawn_is_learned_where_cells_are_missing(monkeypatch):
    frame = groups(900)
    frame["b"] = frame.b.mask(np.arange(len(frame)) % 5 == 0)
    labels = np.where(frame.a + frame.c > 3, "right", "left").astype(object)
    labels[[1, 2, 4]] = "up"
    monkeypatch.setattr(gaussian_discriminant, "SAMPLE", 150)
    for name in "abcdef":  # which decides on what is drawn
        whole = GaussianDiscriminant(tied=True).fit(frame, name + labels)
        spread = GaussianDiscriminant(tied=True).fit(Frames(split(frame.assign(side=name + labels), 4)), "side")
        np.testing.assert_array_equal(spread.class_count_, whole.class_count_)
        np.testing.assert_allclose(spread.means_, whole.means_, atol=1e-6)


def test_a_partition_that_comes_twice_or_not_at_all_is_told_of():
    parts = [Made({0: 3}, 1), Made({1: 4}, 2)]
    assert in_order(parts[::-1]) == parts
    with pytest.raises(RuntimeError, match="got partition 1 twice"):
        in_order([*parts, parts[1]])
    rows = Spread(Frames(split(people(20), 2), order=[1]))
    with pytest.raises(RuntimeError, match="expected a result of each of 2 partitions, got none of 0"):
        rows.map(partial(Rows.sample, rows=1))
    rows = Spread(Frames(split(people(20), 2), again=[0]))
    with pytest.raises(RuntimeError, match="got partition 0 twice"):
        rows.map(partial(Rows.sample, rows=1))


def test_rows_that_change_between_passes_are_told_of():
    engine = Frames(split(people(20), 2))
    rows = Spread(engine)
    assert rows.reduce(_count, operator.add) == 20
    engine.frames[1] = engine.frames[1].iloc[:-1]
    with pytest.raises(RuntimeError, match="expected the 10 rows of partition 1 again, got 9: the data change"):
        rows.reduce(_count, operator.add)


def _count(rows):
    return sum(batch.num_rows for batch in rows.batches())


def test_what_is_wrong_names_the_partition():
    frames = split(people(), 3)
    frames[1] = frames[1].drop(columns="town")
    with pytest.raises(ValueError, match=r"partition 1: expected the same columns as in the other .* 'town'"):
        NaiveBayes().fit(Frames(frames), "income")
    frames = split(people().assign(age=lambda frame: frame.age.astype(object)), 3)
    frames[2] = frames[2].assign(age="old")
    with pytest.raises(ValueError, match="partition 2: expected a number in column 'age', got 'old' in row 1"):
        NaiveBayes({"age": "number"}).fit(Frames(frames), "income")
    with pytest.raises(RuntimeError, match=r"expected likely 0\.0\.1 where partition 4 lies, as here, got"):
        Task(_count, (), (), "0.0.1")(4, people(5))
    with pytest.raises(ValueError, match="got 'incom': did you mean 'income'"):
        NaiveBayes().fit(Frames(frames), "incom")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [100, 10**6])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_dask_frame_gives_the_model_of_all_rows(model, most, dask_frame, monkeypatch):
    monkeypatch.setattr(typed, "SAMPLE", most)
    frame = people()
    spread = dask_frame(frame, 20)
    whole = model.fit(frame, "income").predict_proba(frame)
    learned = model.fit(spread, "income")
    np.testing.assert_allclose(learned.predict_proba(frame), whole, rtol=1e-12, atol=1e-14)
    asked = learned.predict_proba(spread)
    assert list(asked.columns) == [*frame.columns, "p(high)", "p(low)"]
    found = asked.compute()
    np.testing.assert_array_equal(found[["p(high)", "p(low)"]], learned.predict_proba(frame))
    assert found.index.equals(frame.index)
    assert learned.predict(spread).compute().prediction.tolist() == learned.predict(frame).tolist()
    filled, here = learned.impute(spread).compute(), learned.impute(frame)
    assert filled.town.tolist() == here.town.tolist()
    np.testing.assert_array_equal(filled.age, here.age)


@pytest.mark.filterwarnings("ignore")
def test_groups_of_a_dask_frame(dask_frame, monkeypatch):
    monkeypatch.setattr(mixture, "SAMPLE", 400)
    monkeypatch.setattr(kmeans_rows, "SAMPLE", 400)
    frame = groups()
    spread = dask_frame(frame, 5)
    for model in (Mixture(3, progress=False), KMeans(3, random_state=0)):
        asked = model.fit(spread).predict(spread)
        assert list(asked.columns) == ["a", "b", "c", "group"]
        assert asked.compute().group.tolist() == model.predict(frame).tolist()


@slow
@pytest.mark.filterwarnings("ignore")
def test_dask_workers_that_die_do_not_change_a_bit(monkeypatch):
    """Twenty times a process is killed at random moments, and Dask's nanny starts another."""
    dask = pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(typed, "SAMPLE", 2000)
    frame = people(20_000)
    models = [MODELS["naive Bayes"], MODELS["classifier"]]
    killed, generator = [], random.Random(0)

    def kill(cluster, client, stopped):
        changed = time.monotonic()
        while len(killed) < 20 and not stopped.wait(generator.uniform(0.2, 1.5)):
            alive = list(client.run(os.getpid, on_error="ignore").values())
            if len(alive) > 1:
                killed.append(generator.choice(alive))
                os.kill(killed[-1], signal.SIGKILL)
                changed = time.monotonic()
            elif time.monotonic() > changed + 10:  # a nanny whose worker died again and again may give up
                cluster.scale(len(cluster.worker_spec) + 1)
                changed = time.monotonic()

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 20}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            scheduler_port=0,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spread = frames.from_pandas(frame, npartitions=40, sort=False)
        expected = [model.fit(spread, "income").predict_proba(frame) for model in models]
        stopped = Event()
        killer = Thread(target=kill, args=(cluster, client, stopped))
        killer.start()
        try:
            while killer.is_alive():
                for model, right in zip(models, expected, strict=True):
                    np.testing.assert_array_equal(model.fit(spread, "income").predict_proba(frame), right)
        finally:
            stopped.set()
            killer.join()
    assert len(killed) == 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "blocks"), [("naive Bayes", "pandas"), ("classifier", "arrow")])
def test_a_ray_dataset_gives_the_model_of_all_rows(model, blocks, ray_data, monkeypatch):
    monkeypatch.setattr(typed, "SAMPLE", 100)
    model, frame = MODELS[model], people()
    monkeypatch.setattr("likely.engines.ray.KEPT", 0.25 if blocks == "pandas" else 0)
    spread = (
        ray_data.from_pandas(split(frame, 20)) if blocks == "pandas" else ray_data.from_arrow(arrow_parts(frame, 20))
    )
    assert engine_of(spread).partitions == 20
    whole = model.fit(frame, "income").predict_proba(frame)
    learned = model.fit(spread, "income")
    np.testing.assert_allclose(learned.predict_proba(frame), whole, rtol=1e-12, atol=1e-14)
    assert learned.score(spread, "income") == learned.score(frame, "income")
    spread.context.execution_options.preserve_order = True
    asked = learned.predict_proba(spread)
    assert asked.columns() == [*frame.columns, "p(high)", "p(low)"]
    np.testing.assert_array_equal(asked.to_pandas()[["p(high)", "p(low)"]], learned.predict_proba(frame))
    assert learned.predict(spread).to_pandas().prediction.tolist() == learned.predict(frame).tolist()
    filled, here = learned.impute(spread).to_pandas(), learned.impute(frame)
    assert filled.columns.tolist() == frame.columns.tolist()
    assert filled.town.tolist() == here.town.tolist()
    np.testing.assert_array_equal(filled.age.astype(float), here.age)


def _first_comes_last(rows):
    time.sleep(0.5 if rows["number"][0].as_py() == 0 else 0)
    return rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kept", [0, 0.25], ids=["streamed", "kept"])
def test_ray_blocks_keep_their_numbers_whichever_is_made_first(kept, ray_data, monkeypatch):
    monkeypatch.setattr("likely.engines.ray.KEPT", kept)
    parts = [pa.table({"number": [i] * (i + 1)}) for i in range(5)]
    spread = ray_data.from_arrow(parts).map_batches(_first_comes_last, batch_size=None, batch_format="pyarrow")
    rows = Spread(engine_of(spread))
    assert rows.schema == parts[0].schema
    assert bool(rows.engine._first_run[1]) == bool(kept)
    assert rows.map(_count) == [1, 2, 3, 4, 5]
    assert rows.reduce(_count, operator.add) == 15
    assert [rows.engine.fetched(i).num_rows for i in (2, 3, 1, 4, 0)] == [3, 4, 2, 5, 1]
    assert not spread.context.execution_options.preserve_order


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_in_a_ray_block_is_told_in_one_sentence(ray_data):
    frames = split(people().assign(age=lambda frame: frame.age.astype(str)), 3)
    frames[2] = frames[2].assign(age="old")
    with pytest.raises(ValueError, match=r"^partition 2: expected a number in column 'age', got 'old'") as caught:
        NaiveBayes({"age": "number"}).fit(ray_data.from_pandas(frames), "income")
    assert caught.type is ValueError
    with pytest.raises(ValueError, match="expected a dataset with columns, got an empty one"):
        NaiveBayes().fit(ray_data.from_items([]), "income")


@dataclass(frozen=True)
class Deadly:
    """A task whose process dies when a partition comes to it for the first time."""

    task: Task
    folder: Path

    def __call__(self, number, content):
        try:
            (self.folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            return self.task(number, content)
        os._exit(1)


@slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["naive Bayes", "classifier"])
def test_ray_workers_that_die_do_not_change_a_bit(model, ray_data, monkeypatch, tmp_path):
    """Twenty processes die: half of them in one pass, half in the next."""
    from likely.engines.ray import RayDataset

    class Dying(RayDataset):
        passes = 0

        def run(self, task, add):
            self.passes += 1
            (tmp_path / str(self.passes)).mkdir()
            return super().run(Deadly(task, tmp_path / str(self.passes)) if self.passes < 3 else task, add)

    monkeypatch.setattr(typed, "SAMPLE", 100)
    frame = people()
    spread = ray_data.from_arrow(arrow_parts(frame, 10))
    expected = MODELS[model].fit(spread, "income").predict_proba(frame)
    found = MODELS[model].fit(Dying(spread), "income").predict_proba(frame)
    assert len(list(tmp_path.glob("[12]/*"))) == 20
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_gives_the_model_of_all_rows(spark, monkeypatch):
    monkeypatch.setattr("likely.engines.spark.TOGETHER", 2)
    monkeypatch.setattr(typed, "SAMPLE", 100)
    model, frame = Classifier(), people()
    spread = spark_frame(spark, frame, 3)
    whole = model.fit(frame, "income").predict_proba(frame)
    learned = model.fit(spread, "income")
    np.testing.assert_allclose(learned.predict_proba(frame), whole, rtol=1e-12, atol=1e-14)
    found = learned.predict_proba(learned.predict(spread)).toPandas()
    assert list(found.columns) == [*frame.columns, "prediction", "p(high)", "p(low)"]
    np.testing.assert_array_equal(found[["p(high)", "p(low)"]], learned.predict_proba(found[frame.columns]))
    assert found.prediction.tolist() == learned.predict(found[frame.columns]).tolist()
    assert sorted(found.prediction) == sorted(learned.predict(frame))
    filled, here = learned.impute(spread).toPandas(), learned.impute(frame)
    columns = list(frame.columns)
    pd.testing.assert_frame_equal(
        filled.sort_values(columns, ignore_index=True),
        here.sort_values(columns, ignore_index=True),
        check_dtype=False,
    )


@pytest.mark.filterwarnings("ignore")
def test_rows_of_spark_come_in_their_types_and_from_empty_partitions_too(spark):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spread = spark.sql(
        "select cast(id / 4 as decimal(9, 2)) amount, date_add(date'2024-02-29', cast(id as int)) day, id whole, "
        "timestamp'2024-02-29 12:00:00Z' at, concat('t', id % 2) town, id % 3 = 0 member from range(0, 40, 1, 4)"
    ).where("whole < 11")
    rows = Spread(engine_of(spread))
    types = ["double", "date32[day]", "int64", "timestamp[us, tz=UTC]", "string", "bool"]
    assert [str(kind) for kind in rows.schema.types] == types
    assert rows.map(operator.methodcaller("count")) == [10, 1, 0, 0]
    assert [part.num_rows for part in rows.map(partial(Rows.sample, rows=3))] == [3, 1, 0, 0]
    table = pa.Table.from_batches(rows.batches())
    assert table.schema.types == rows.schema.types
    assert table["whole"].to_pylist() == list(range(11))
    assert rows.engine.fetched(1)["whole"].to_pylist() == [10]
    assert rows.engine.fetched(3).num_rows == 0
    filled = NaiveBayes().fit(spread, "town").impute(spread.replace(2, None, ["whole"]))
    assert dict(filled.dtypes)["whole"] == "double"
    assert filled.where("whole is null or at <> timestamp'2024-02-29 12:00:00Z'").count() == 0
    empty = Spread(engine_of(spark.createDataFrame([], "age double, town string")))
    assert sum(empty.map(operator.methodcaller("count"))) == 0


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_in_spark_is_one_sentence(spark, monkeypatch):
    monkeypatch.setattr("likely.engines.spark.TOGETHER", 2)
    frame = people(60).assign(age=["41"] * 59 + ["old"])
    with pytest.raises(ValueError, match=r"^partition 2: expected a number in column 'age', got 'old'.*"):
        NaiveBayes({"age": "number"}).fit(spark_frame(spark, frame, 3), "income")


def test_rows_that_pass_by_are_counted_to_their_end_and_read_once():
    table = pa.table({"age": range(50)})
    passing = Rows(Passing(table.schema, table.to_batches(max_chunksize=10)))
    assert passing.sample(15).num_rows == 15
    assert passing.count() == 50
    with pytest.raises(RuntimeError, match="read once, got a second reading"):
        list(passing.batches())


def test_partitions_cut_anew_have_as_many_rows_together():
    engine = Frames(split(people(20), 2))
    rows = Spread(engine)
    assert rows.reduce(_count, operator.add) == 20
    engine.frames, engine.order, engine.partitions = split(people(20), 3), range(3), 3
    assert rows.reduce(_count, operator.add) == 20
    engine.frames, engine.order, engine.partitions = split(people(19), 2), range(2), 2
    with pytest.raises(RuntimeError, match="expected the 20 rows of all partitions again, got 19: the data change"):
        rows.reduce(_count, operator.add)
