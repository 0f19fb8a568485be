"""A model of a whole table on engines: answers are frames of the engine, and rows are learned where they are."""

import numpy as np
import pandas as pd
import pytest
from engines import Frames, people, spark_frame, split
from texts import made

import likely
from likely.estimators import fitting

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def frame():
    frame = people()
    frame["born"] = pd.date_range("1980-01-01", periods=len(frame)).date
    return frame


@pytest.fixture(scope="module")
def model(frame):
    return likely.Model("trees").fit(frame)


GIVEN = {"visits": (1, None)}
ROWS = {
    "predict a category": (lambda m, x: m.predict(x, of="town"), ["predicted town"]),
    "predict a number": (lambda m, x: m.predict(x, of="age", given=GIVEN), ["predicted age"]),
    "predict a date": (lambda m, x: m.predict(x, of="born"), ["predicted born"]),
    "predict yes or no": (lambda m, x: m.predict(x, "member"), ["predicted member"]),
    "predict a group": (lambda m, x: m.predict(x), ["group"]),
    "groups": (lambda m, x: m.groups(x), ["group"]),
    "log density": (lambda m, x: m.log_density(x, GIVEN), ["log_density"]),
    "probabilities": (lambda m, x: m.predict_proba(x, of="town"), ["p(Lima)", "p(Oslo)", "p(Rome)"]),
    "logarithms": (lambda m, x: m.predict_log_proba(x, of="income"), ["log p(high)", "log p(low)"]),
    "interval": (lambda m, x: m.predict_interval(x, of="age", coverage=0.9), ["5 %", "95 %"]),
    "quantiles": (lambda m, x: m.predict_quantiles(x, [0.1, 0.5], "age"), ["10 %", "50 %"]),
    "missing given": (lambda m, x: m.predict(x, of="age", given={"town": likely.MISSING}), ["predicted age"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_answers_are_found_lazily(name, frame, model, dask_frame):
    ask, columns = ROWS[name]
    spread = dask_frame(frame, 4)
    asked = ask(model, spread)
    assert type(asked) is type(spread)
    assert list(asked.columns) == [*frame.columns, *columns]
    found = asked.compute()
    assert found.index.equals(frame.index)
    assert asked._meta.dtypes.to_dict() == found.dtypes.to_dict()
    here = np.asarray(ask(model, frame)).reshape(len(frame), -1)
    for k, column in enumerate(columns):
        values = found[column].to_numpy()
        if here.dtype.kind == "f":
            np.testing.assert_allclose(values, here[:, k], rtol=1e-12)
        else:
            np.testing.assert_array_equal(values.astype(here.dtype), here[:, k])


def test_surprise_names_the_cell_to_blame(frame, model, dask_frame):
    found, here = model.surprise(dask_frame(frame, 4)).compute(), model.surprise(frame)
    np.testing.assert_array_equal(found.surprise, here.rows)
    assert found.cell.tolist() == here.worst().tolist()
    np.testing.assert_array_equal(found.cell_surprise, np.nanmax(here.cells, axis=1))


def test_cells_are_filled_where_they_are(frame, model, dask_frame):
    filled, here = model.impute(dask_frame(frame, 4)).compute(), model.impute(frame)
    assert not filled.isna().any().any()
    for name in frame.columns:
        assert filled[name].astype(str).tolist() == here[name].astype(str).tolist()


def test_an_empty_partition_and_rows_without_the_column(frame, model, dask_frame):
    parts = [frame.iloc[:300], frame.iloc[:0], frame.iloc[300:]]
    dd = pytest.importorskip("dask.dataframe")
    spread = dd.concat([dask_frame(part, 1) for part in parts])
    assert model.predict(spread, of="town").compute()["predicted town"].tolist() == model.predict(frame, of="town").tolist()  # fmt: skip # noqa: E501
    without = frame.drop(columns=["town", "born"])
    found = model.predict(dask_frame(without, 2), of="town").compute()
    assert found["predicted town"].tolist() == model.predict(without, of="town").tolist()


@pytest.mark.parametrize("engine", ["test", "dask"])
def test_rows_are_learned_and_forgotten_where_they_are(frame, dask_frame, engine):
    def spread(frame):
        return dask_frame(frame, 4) if engine == "dask" else Frames(split(frame, 4))

    half = frame.iloc[:300]
    started = likely.Model("trees").fit(half)
    here = started.emptied().partial_fit(half).partial_fit(frame.iloc[300:])
    there = started.emptied().partial_fit(spread(half)).partial_fit(spread(frame.iloc[300:]))
    np.testing.assert_allclose(there.log_density(frame), here.log_density(frame), rtol=1e-9)
    assert there.schema_ == here.schema_
    there.forget(spread(half))
    here.forget(half)
    np.testing.assert_allclose(there.log_density(frame), here.log_density(frame), rtol=1e-9)
    with pytest.raises(ValueError, match=r"rows that the model has learned|some rows to be left"):
        there.forget(spread(frame))


def test_texts_are_learned_and_forgotten_where_they_are(dask_frame):
    texts, y = made(300, seed=0)
    frame = pd.DataFrame({"review": texts, "mood": y})
    started = likely.Model("tree", columns={"review": "text"}).fit(frame)
    here = started.emptied().partial_fit(frame).forget(frame.iloc[:100])
    there = started.emptied().partial_fit(dask_frame(frame, 3)).forget(dask_frame(frame.iloc[:100], 2))
    np.testing.assert_allclose(there.log_density(frame), here.log_density(frame), rtol=1e-9)


def test_evaluation_stays_where_the_rows_are(frame, model, dask_frame):
    here, there = model.evaluate(frame), model.evaluate(dask_frame(frame, 4))
    assert there.log_density == pytest.approx(here.log_density, rel=1e-12)
    assert model.score(dask_frame(frame, 4)) == pytest.approx(model.score(frame), rel=1e-12)
    for name, measures in here.measures.items():
        assert there.measures[name] == pytest.approx(measures, rel=1e-9)


def test_an_array_is_answered_by_arrays():
    array = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(300, 3)) + np.random.default_rng(1).normal(size=(300, 1))
    model, spread = likely.Model("trees").fit(X), array.from_array(X, chunks=(100, 3))
    for ask in (
        lambda x: model.log_density(x),
        lambda x: model.predict(x, of=1),
        lambda x: model.predict_interval(x, of=2),
        lambda x: model.predict_proba(x),
        lambda x: model.impute(x),
    ):
        asked = ask(spread)
        assert isinstance(asked, array.Array)
        np.testing.assert_allclose(asked.compute(), ask(X), rtol=1e-12)
    np.testing.assert_array_equal(model.surprise(spread).compute(), model.surprise(X).rows)
    assert model.score(spread) == pytest.approx(model.score(X), rel=1e-12)
    twice = likely.Model("trees").fit(X).partial_fit(spread)
    np.testing.assert_allclose(twice.log_density(X), likely.Model("trees").fit(X).partial_fit(X).log_density(X))


def test_weights_of_rows_in_partitions_are_refused(frame, model, dask_frame):
    for learn in (likely.Model("tree").fit, model.partial_fit, model.evaluate):
        with pytest.raises(ValueError, match="no sample_weight of rows in partitions"):
            learn(dask_frame(frame, 2), sample_weight=np.ones(len(frame)))
    with pytest.raises(ValueError, match="not fitted yet"):
        likely.Model().predict(dask_frame(frame, 2), of="age")


def many(frame, monkeypatch):
    """Let few rows be many, so that they are learned on the workers."""
    monkeypatch.setattr(fitting, "SAMPLE", 200)
    return frame.drop(columns="born")


def check(spread, frame):
    """Learn, answer, learn more and forget, as in one place."""
    here, there = (likely.Model("trees").fit(rows) for rows in (Frames(split(frame, 3)), spread))
    np.testing.assert_allclose(there.log_density(frame), here.log_density(frame), rtol=1e-9)
    there.partial_fit(spread).forget(spread)
    np.testing.assert_allclose(there.log_density(frame), here.log_density(frame), rtol=1e-9)
    frames = {
        "town": there.predict(spread, of="town"),
        "p": there.predict_proba(spread),
        "odd": there.surprise(spread),
        "filled": there.impute(spread),
    }
    tables = {name: found.toPandas() if hasattr(found, "toPandas") else found.to_pandas() for name, found in frames.items()}  # fmt: skip # noqa: E501
    order = np.argsort(there.log_density(frame))
    assert sorted(tables["town"]["predicted town"]) == sorted(there.predict(frame, of="town"))
    assert {f"p({k})" for k in range(len(there.group_weights_))} <= set(tables["p"].columns)
    np.testing.assert_allclose(np.sort(tables["odd"].surprise)[::-1], -there.log_density(frame)[order], rtol=1e-9)
    assert not tables["filled"].isna().any().any()


def test_spark(spark, frame, monkeypatch):
    few = many(frame, monkeypatch)
    check(spark_frame(spark, few, 3), few)


def test_ray(ray_data, frame, monkeypatch):
    few = many(frame, monkeypatch)
    check(ray_data.from_pandas(split(few, 3)), few)
