"""Rows in partitions: whatever engine keeps them, the model is that of all rows in one place."""

import operator
import pickle
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from engines import MODELS, Frames, groups, people, split

from likely import Classifier, GaussianDiscriminant, KMeans, Mixture, NaiveBayes
from likely.data.rows import Rows
from likely.data.sources import SinglePassSource
from likely.engines import PartialResult, PartitionedRows, Task, in_partition_order
from likely.estimators import fitting


@pytest.mark.parametrize("most", [100, 10**6])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_any_partitions_give_the_model_of_all_rows(model, count, most, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", most)
    frame = people()
    whole = model.fit(frame, "income").predict_proba(frame)
    spread = model.fit(Frames(split(frame, count)), "income")
    assert spread.class_count_.sum() == len(frame)
    np.testing.assert_allclose(spread.predict_proba(frame), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_who_works_first_does_not_change_a_bit(model, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 100)
    frame = people()
    found = [
        model.fit(Frames(split(frame, 7), order), "income").predict_proba(frame)
        for order in (range(7), [6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4])
    ]
    np.testing.assert_array_equal(found[1:], found[:1] * 2)


def test_a_partition_that_is_empty_and_a_class_of_one_partition_only(monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 100)
    frame = people().sort_values("income", ignore_index=True)
    parts = [*split(frame, 5), frame.iloc[:0]]
    for model in MODELS.values():
        whole = model.fit(frame, "income").predict_proba(frame)
        spread = model.fit(Frames(parts), "income").predict_proba(frame)
        np.testing.assert_allclose(spread, whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_mixture_takes_a_pass_for_each_step(covariance, monkeypatch, tmp_path):
    frame = groups().assign(kind=np.tile(["x", "y", "z"], 1000))
    frame["c"] = frame.c.mask(np.arange(len(frame)) % 11 == 0)
    frame.to_parquet(tmp_path / "groups.parquet")
    # Without a prior, which would be found from other rows to begin with.
    model = Mixture(3, covariance=covariance, tolerance=1e-10, pseudo_rows=0, progress=False)
    whole = Mixture(**model.get_params()).fit(frame)
    monkeypatch.setattr(fitting, "SAMPLE", 400)
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
    monkeypatch.setattr(fitting, "SAMPLE", 400)
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
    monkeypatch.setattr(fitting, "SAMPLE", 200)
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
    monkeypatch.setattr(fitting, "SAMPLE", 150)
    for name in "abcdef":  # which decides on what is drawn
        whole = GaussianDiscriminant(tied=True).fit(frame, name + labels)
        spread = GaussianDiscriminant(tied=True).fit(Frames(split(frame.assign(side=name + labels), 4)), "side")
        np.testing.assert_array_equal(spread.class_count_, whole.class_count_)
        np.testing.assert_allclose(spread.means_, whole.means_, atol=1e-6)


def test_a_partition_that_comes_twice_or_not_at_all_is_told_of():
    parts = [PartialResult({0: 3}, 1), PartialResult({1: 4}, 2)]
    assert in_partition_order(parts[::-1]) == parts
    with pytest.raises(RuntimeError, match="got partition 1 twice"):
        in_partition_order([*parts, parts[1]])
    rows = PartitionedRows(Frames(split(people(20), 2), order=[1]))
    with pytest.raises(RuntimeError, match="expected a result of each of 2 partitions, got none of 0"):
        rows.map(partial(Rows.sample, rows=1))
    rows = PartitionedRows(Frames(split(people(20), 2), again=[0]))
    with pytest.raises(RuntimeError, match="got partition 0 twice"):
        rows.map(partial(Rows.sample, rows=1))


def test_rows_that_change_between_passes_are_told_of():
    engine = Frames(split(people(20), 2))
    rows = PartitionedRows(engine)
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
    with pytest.raises(RuntimeError, match=r"expected likely 0\.0\.1 on the worker of partition 4, as here, got"):
        Task(_count, (), (), "0.0.1")(4, people(5))
    with pytest.raises(ValueError, match="got 'incom': did you mean 'income'"):
        NaiveBayes().fit(Frames(frames), "incom")


def test_rows_that_pass_by_are_counted_to_their_end_and_read_once():
    table = pa.table({"age": range(50)})
    passing = Rows(SinglePassSource(table.schema, table.to_batches(max_chunksize=10)))
    assert passing.sample(15).num_rows == 15
    assert passing.count() == 50
    with pytest.raises(RuntimeError, match="read once, got a second reading"):
        list(passing.batches())


def test_partitions_cut_anew_have_as_many_rows_together():
    engine = Frames(split(people(20), 2))
    rows = PartitionedRows(engine)
    assert rows.reduce(_count, operator.add) == 20
    engine.frames, engine.order, engine.partitions = split(people(20), 3), range(3), 3
    assert rows.reduce(_count, operator.add) == 20
    engine.frames, engine.order, engine.partitions = split(people(19), 2), range(2), 2
    with pytest.raises(RuntimeError, match="expected the 20 rows of all partitions again, got 19: the data change"):
        rows.reduce(_count, operator.add)


def test_labels_and_weights_in_lists_are_refused_in_one_sentence():
    frame = people(90)
    rows, labels = Frames(split(frame, 3)), frame.income.tolist()
    for model in (NaiveBayes(), Classifier(), GaussianDiscriminant()):
        with pytest.raises(ValueError, match="expected the name of the column of labels of rows in partitions of an"):
            model.fit(rows, labels)
        with pytest.raises(ValueError, match="expected no sample_weight of rows in partitions of an engine, got one"):
            model.fit(rows, "income", sample_weight=np.ones(90))
    with pytest.raises(ValueError, match="expected no sample_weight of rows that are not in memory, got one"):
        KMeans(2).fit(Frames(split(groups(90), 3)), sample_weight=np.ones(90))


def test_no_more_than_the_sample_travels():
    sizes = []

    class Weighed(Frames):
        def run(self, task, add):
            found = super().run(task, add)
            sizes.append(len(pickle.dumps(found)))
            return found

    table = pa.table({"a": np.arange(100_000.0)})
    rows = PartitionedRows(Weighed([Rows(SinglePassSource(table.schema, table.to_batches()))]))
    assert rows.sample(50).num_rows == 50
    assert sizes[0] < 5000


def test_discriminants_take_a_frame_with_its_labels():
    frame = groups(90).assign(label=["x", "y", "z"] * 30)
    model = GaussianDiscriminant().fit(frame, "label")
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.drop(columns="label")))
    right = model.score(frame.drop(columns="label"), frame.label)
    assert model.score(frame, "label") == model.score(Frames(split(frame, 3)), "label") == right


def test_groups_of_no_rows_are_refused():
    for model in (KMeans(2), Mixture(2)):
        with pytest.raises(ValueError, match="expected at least one row, got none"):
            model.fit(Frames([groups(90)[:0]] * 3))


def test_one_word_that_stands_for_a_missing_cell():
    frame = people(90).assign(town=["NA", "Nome", "Ames"] * 30)
    here, there = (NaiveBayes(missing="NA").fit(rows, "income") for rows in (frame, Frames(split(frame, 3))))
    np.testing.assert_allclose(there.predict_proba(frame), here.predict_proba(frame), rtol=1e-12)
    assert there.predict_proba(frame.assign(town="NA")).tolist() != there.predict_proba(frame).tolist()
