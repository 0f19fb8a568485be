"""Partitions of Spark, classic and through Connect, by executors that may die."""

import operator
import os
import random
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import MODELS, check_unchanged, people, slow, spark_frame, spark_session, split

from likely import Classifier, NaiveBayes
from likely.data import files
from likely.data.rows import Rows
from likely.engines import PartitionedRows, engine_of
from likely.engines.spark import parquet_files
from likely.estimators import fitting


@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_gives_the_model_of_all_rows(spark, monkeypatch):
    monkeypatch.setattr("likely.engines.spark.FAN_IN", 2)
    monkeypatch.setattr("likely.engines.spark.MANY", 2)
    monkeypatch.setattr(fitting, "SAMPLE", 100)
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
    rows = PartitionedRows(engine_of(spread))
    types = ["double", "date32[day]", "int64", "timestamp[us, tz=UTC]", "string", "bool"]
    assert [str(kind) for kind in rows.schema.types] == types
    assert rows.map(operator.methodcaller("count")) == [10, 1, 0, 0]
    assert [part.num_rows for part in rows.map(partial(Rows.sample, rows=3))] == [3, 1, 0, 0]
    table = pa.Table.from_batches(rows.batches())
    assert table.schema.types == rows.schema.types
    assert table["whole"].to_pylist() == list(range(11))
    assert pa.concat_tables(rows.engine.contents())["whole"].to_pylist() == list(range(11))
    filled = NaiveBayes().fit(spread, "town").impute(spread.replace(2, None, ["whole"]))
    assert dict(filled.dtypes)["whole"] == "double"
    assert filled.where("whole is null or at <> timestamp'2024-02-29 12:00:00Z'").count() == 0
    zoned = spark.sql("select timestamp_ntz'2024-02-29 12:00:00' at, id age, concat('t', id % 2) town from range(8)")
    told = NaiveBayes({"at": "ignore"}).fit(zoned, "town").predict(zoned)
    assert dict(told.dtypes)["at"] == "timestamp_ntz"
    assert told.select(told["at"].cast("string")).distinct().collect() == [("2024-02-29 12:00:00",)]
    empty = PartitionedRows(engine_of(spark.createDataFrame([], "age double, town string")))
    assert sum(empty.map(operator.methodcaller("count"))) == 0


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_in_spark_is_one_sentence(spark, monkeypatch):
    monkeypatch.setattr("likely.engines.spark.FAN_IN", 2)
    monkeypatch.setattr("likely.engines.spark.MANY", 2)
    frame = people(60).assign(age=["41"] * 59 + ["old"])
    with pytest.raises(ValueError, match=r"^partition 2: expected a number in column 'age', got 'old'.*"):
        NaiveBayes({"age": "number"}).fit(spark_frame(spark, frame, 3), "income")


@pytest.mark.filterwarnings("ignore")
def test_executors_read_files_by_themselves(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_BYTES", 3000)
    frame = people()
    path = str(tmp_path)
    for number, part in enumerate(split(frame, 4)):
        part.to_parquet(tmp_path / f"{number}.parquet", index=False, row_group_size=30)
    read = spark.read.parquet(path)
    plain = [
        read,
        read.select("town", "age", "income"),
        read.drop("age"),
        spark.read.parquet(f"{path}/*.parquet"),
        spark.read.schema("age double, income string").parquet(path),
        spark.read.schema("age double, height double").parquet(path),
    ]
    others = [
        read.where("age > 30"),
        read.withColumn("age", read.age + 1),
        read.withColumnRenamed("age", "years"),
        read.selectExpr("visits as age", "age as visits", "income"),
        read.limit(50),
        read.union(read),
        read.distinct(),
        read.sample(0.5, seed=1),
        spark.read.option("mergeSchema", "true").parquet(path),
        spark.read.parquet(path, path),
        spark.read.parquet(path, f"{path}/0.parquet"),
    ]
    classic = hasattr(read, "_jdf")
    for few, rows in ((True, plain), (False, others)):
        for one in rows:
            assert bool(parquet_files(one)) == (few and classic), one
            assert sum(PartitionedRows(engine_of(one)).map(Rows.count)) == one.count()
    both = tmp_path / "both"
    for number, name in enumerate(["age", "Age"]):
        (both / str(number)).mkdir(parents=True)
        frame[["age"]].rename(columns={"age": name}).to_parquet(both / str(number) / "part.parquet")
    ages = PartitionedRows(
        engine_of(spark.read.parquet(f"{both}/0", f"{both}/1").select("age"))
    )  # Spark takes both for one
    assert sum(batch["age"].null_count for batch in ages.batches()) == 2 * frame.age.isna().sum()
    read.cache()
    assert not parquet_files(read)
    read.unpersist()
    whole = NaiveBayes().fit(frame, "income").predict_proba(frame)
    there = NaiveBayes().fit(read, "income")
    assert classic == (engine_of(read).partitions > 4)
    np.testing.assert_allclose(there.predict_proba(frame), whole, rtol=1e-12)
    assert sorted(there.predict(read).toPandas().prediction) == sorted(there.predict(frame))


def executors(pid):
    """Return the processes that a process has started, and they, to run tasks of Spark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if parent == pid:
            is_executor = b"CoarseGrainedExecutorBackend" in words
            found += [int(entry.name)] if is_executor else executors(int(entry.name))
    return found


@slow
@pytest.mark.filterwarnings("ignore")
def test_spark_executors_that_die_do_not_change_a_bit(monkeypatch):
    """Twenty times an executor is killed at a random moment, and the cluster starts another."""
    monkeypatch.setattr(fitting, "SAMPLE", 2000)
    frame = people(20_000)
    models = [MODELS["naive Bayes"], MODELS["classifier"]]
    killed, generator = [], random.Random(0)

    def kill(stopped):
        while len(killed) < 20 and not stopped.wait(generator.uniform(0.5, 3)):
            alive = executors(os.getpid())
            if len(alive) > 1:
                killed.append(generator.choice(alive))
                os.kill(killed[-1], signal.SIGKILL)

    patient = {
        "spark.task.maxFailures": "100",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.executor.memory": "700m",
    }
    with spark_session(monkeypatch, patient, master="local-cluster[2,1,1024]") as session:
        spread = spark_frame(session, frame, 8).cache()
        check_unchanged(models, spread, frame, kill)
    assert len(killed) == 20
