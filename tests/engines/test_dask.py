"""Partitions of Dask, worked on by its threads and by processes that may die."""

import os
import random
import signal
import time
from functools import partial

import numpy as np
import pytest
from engines import MODELS, check_unchanged, groups, people, slow, split

from likely import GaussianDiscriminant, KMeans, Mixture, NaiveBayes
from likely.estimators import fitting


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [100, 10**6])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_dask_frame_gives_the_model_of_all_rows(model, most, dask_frame, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", most)
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
    monkeypatch.setattr(fitting, "SAMPLE", 400)
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
    monkeypatch.setattr(fitting, "SAMPLE", 2000)
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
        check_unchanged(models, spread, frame, partial(kill, cluster, client))
    assert len(killed) == 20


@pytest.mark.filterwarnings("ignore")
def test_cells_of_numbers_are_filled_in_their_columns(dask_frame):
    frame = groups(300).assign(label=["x", "y", "z"] * 100)
    frame.loc[::7, "b"] = np.nan
    model = GaussianDiscriminant().fit(frame, "label")
    filled = model.impute(dask_frame(frame, 3)).compute()
    assert list(filled.columns) == ["a", "b", "c", "label"]
    np.testing.assert_array_equal(filled[["a", "b", "c"]], model.impute(frame[["a", "b", "c"]]))


@pytest.mark.filterwarnings("ignore")
def test_labels_beside_rows_of_files(tmp_path):
    read_parquet = pytest.importorskip("dask.dataframe").read_parquet
    frame = people(400)
    for number, part in enumerate(split(frame, 8)):
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    read = read_parquet(f"{tmp_path}/*.parquet")
    model = NaiveBayes().fit(read[["age", "visits"]], read["income"])
    here = NaiveBayes().fit(frame[["age", "visits"]], frame.income)
    np.testing.assert_allclose(model.predict_proba(frame), here.predict_proba(frame), rtol=1e-12)
    assert model.score(read[["age", "visits"]], read["income"]) == here.score(frame[["age", "visits"]], frame.income)


@pytest.mark.filterwarnings("ignore")
def test_clusters_of_many_rows_are_predicted_lazily(dask_frame, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 100)
    found = KMeans(3, random_state=0).fit_predict(dask_frame(groups(600), 4)).compute()
    assert found.group.nunique() == 3


def test_probabilities_of_another_column_are_named_by_its_values(dask_frame):
    frame = people()
    learned = NaiveBayes().fit(frame, "income")
    found = learned.predict_proba(dask_frame(frame, 3), of="town").compute()
    values = learned.values_of("town").tolist()
    expected = learned.predict_proba(frame, of="town")
    np.testing.assert_array_equal(found[[f"p({value})" for value in values]], expected)
