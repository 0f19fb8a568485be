"""Partitions of Spark, classic and through Connect, by executors that may die."""

import operator
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import people, spark_frame

from likely import Classifier, NaiveBayes
from likely.engines import Spread, engine_of
from likely.estimators import typed
from likely.reading import Rows


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
