"""Dask Arrays, and labels in blocks beside rows: the model is that of NumPy's arrays."""

import numpy as np
import pandas as pd
import pytest

from likely import Classifier, GaussianDiscriminant, KMeans, Mixture, NaiveBayes
from likely.engines import PartitionedRows, engine_of
from likely.estimators import fitting

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.filterwarnings("ignore:Dask currently has limited support:UserWarning")
CLOSE = {"rtol": 1e-12, "atol": 1e-14}
MODELS = {
    "naive Bayes": NaiveBayes(),
    "classifier": Classifier(),
    "classifier, not calibrated": Classifier(calibrate=False),
    "diagonal": GaussianDiscriminant("diagonal"),
    "full": GaussianDiscriminant(),
}
CHUNKS = {"one": (600, 3), "rows": (85, 3), "columns": (600, 1), "both": (35, 2), "unlike": ((1, 0, 99, 500), 3)}


def measured(n=600, seed=0, holes=False):
    generator = np.random.default_rng(seed)
    y = generator.choice(["left", "right", "up"], n)
    X = generator.normal(size=(n, 3)) + 2 * (y == "left")[:, None] - np.array([0, 3, 1]) * (y == "up")[:, None]
    if holes:
        X[generator.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.fixture(params=[150, 10**6], ids=["drawn", "all"])
def most(request, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", request.param)
    return request.param


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_blocks_give_the_model_of_a_matrix(model, chunks, most):
    X, y = measured(holes=not isinstance(model, GaussianDiscriminant))
    spread = da.from_array(X, chunks=chunks)
    # What is chosen by rows that were drawn is chosen by those of one block, too.
    drawn = most < len(X) and isinstance(model, Classifier) and model.calibrate
    whole = model.fit(da.from_array(X, chunks=-1) if drawn else X, y).predict_proba(X)
    for labels in (y, da.from_array(y, chunks=77), da.from_array(y, chunks=(spread.chunks[0],))):
        learned = model.fit(spread, labels)
        assert learned.classes_.tolist() == ["left", "right", "up"]
        assert learned.class_count_.sum() == 600
        assert not hasattr(learned, "feature_names_in_")
        assert not hasattr(learned, "schema_")
        np.testing.assert_allclose(learned.predict_proba(X), whole, **CLOSE)


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint8, bool, object])
def test_blocks_are_of_any_type_of_number(kind):
    X, y = measured()
    X = X > 0 if kind is bool else np.abs(X * 10).astype(np.int64).astype(kind)
    whole = NaiveBayes().fit(X, y)
    learned = NaiveBayes().fit(da.from_array(X, chunks=(85, 2)), y)
    assert str(learned).splitlines()[1:] == str(whole).splitlines()[1:]
    np.testing.assert_allclose(learned.predict_proba(X), whole.predict_proba(X), **CLOSE)
    merged = learned.merge(whole)
    assert merged.class_count_.sum() == 1200


@pytest.mark.parametrize("model", [*MODELS.values(), Mixture(3, progress=False), KMeans(3, random_state=0)], ids=str)
def test_answers_about_an_array_are_a_lazy_array(model, most):
    X, y = measured()
    spread = da.from_array(X, chunks=CHUNKS["unlike"])
    model.fit(spread, y)
    predicted = model.predict(spread)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == ((1, 0, 99, 500),)
    assert predicted.dtype == model.predict(X).dtype
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))
    if not isinstance(model, KMeans):
        asked = model.predict_proba(da.from_array(X, chunks=CHUNKS["both"]))
        assert asked.chunks == (da.from_array(X, chunks=CHUNKS["both"]).chunks[0], (3,))
        assert asked.dtype == np.float64
        np.testing.assert_array_equal(asked.compute(), model.predict_proba(X))
        np.testing.assert_array_equal(model.predict_log_proba(spread), model.predict_log_proba(X))
        assert model.score(spread, da.from_array(y, chunks=50)) == model.score(X, y)
    X[::7, 1] = np.nan
    if hasattr(model, "impute"):
        filled = model.impute(da.from_array(X, chunks=CHUNKS["both"]))
        np.testing.assert_array_equal(filled.compute(), model.impute(X))


def test_groups_of_an_array(monkeypatch):
    X, _ = measured(900)
    start = X[[0, 1, 5]]
    centres, means = KMeans(3, start=start).fit(X).cluster_centers_, Mixture(3, progress=False).fit(X).means_
    monkeypatch.setattr(fitting, "SAMPLE", 200)
    for chunks in ((900, 3), (130, 2), (20, 3)):
        spread = da.from_array(X, chunks=chunks)
        model = KMeans(3, start=start).fit(spread)
        np.testing.assert_allclose(model.cluster_centers_, centres, rtol=1e-12)
        found = Mixture(3, tolerance=1e-10, progress=False).fit(spread).means_
        np.testing.assert_allclose(sorted(found.tolist()), sorted(means.tolist()), atol=0.02)


def test_blocks_of_unknown_sizes_pair_up_if_they_are_as_many():
    X, y = measured()
    whole = NaiveBayes().fit(X, y).predict_proba(X)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(side=y), npartitions=7, sort=False)
    unknown, labels = frame[["a", "b", "c"]].to_dask_array(), frame.side.to_dask_array()
    assert np.isnan(unknown.shape[0])
    for given in (labels, frame.side):
        learned = NaiveBayes().fit(unknown, given)
        np.testing.assert_allclose(learned.predict_proba(X), whole, **CLOSE)
        np.testing.assert_array_equal(learned.predict_proba(unknown).compute(), learned.predict_proba(X))
    with pytest.raises(
        ValueError, match=r"expected labels in partitions beside rows .* of unknown sizes, got ndarray:"
    ):
        NaiveBayes().fit(unknown, y)
    with pytest.raises(ValueError, match="expected labels in as many partitions as rows, got 5 and 7: cut both alike"):
        NaiveBayes().fit(unknown, da.from_array(y, chunks=120))
    with pytest.raises(
        ValueError, match=r"^partition \d: expected one label for each row, got \d+ labels for 8\d rows"
    ):
        NaiveBayes().fit(unknown, da.from_array(y, chunks=90))


@pytest.mark.parametrize("model", [NaiveBayes(), Classifier(), GaussianDiscriminant()], ids=str)
def test_a_series_of_labels_beside_a_frame(model, most):
    X, y = measured()
    named = pd.DataFrame(X, columns=["a", "y", "c"])
    spread = dd.from_pandas(named.assign(side=y), npartitions=7, sort=False)
    whole = model.fit(spread, "side").predict_proba(named)
    for labels in (spread.side, spread.side.to_dask_array()):
        learned = model.fit(spread[["a", "y", "c"]], labels)
        assert learned.feature_names_in_.tolist() == ["a", "y", "c"]
        np.testing.assert_allclose(learned.predict_proba(named), whole, **CLOSE)
    with pytest.raises(ValueError, match=r"expected labels in partitions beside rows .* of unknown sizes, got list:"):
        model.fit(spread[["a", "c"]], y.tolist())


def test_labels_that_are_missing_are_left_out():
    X, y = measured()
    labels = np.where(np.arange(600) % 3 == 0, None, y)
    spread = da.from_array(X, chunks=(85, 3))
    whole = NaiveBayes().fit(X[labels != None], y[labels != None]).predict_proba(X)  # noqa: E711
    with pytest.warns(UserWarning, match="200 rows without a label in 'y' are left out"):
        learned = NaiveBayes().fit(spread, labels)
    np.testing.assert_allclose(learned.predict_proba(X), whole, **CLOSE)


def test_other_ways_of_learning_take_arrays():
    X, y = measured()
    spread, labels = da.from_array(X, chunks=(85, 3)), da.from_array(y, chunks=85)
    whole = NaiveBayes().fit(X, y)
    learned = NaiveBayes().partial_fit(spread[:300], labels[:300]).partial_fit(spread[300:], labels[300:])
    np.testing.assert_allclose(learned.predict_proba(X), whole.predict_proba(X), **CLOSE)
    assert NaiveBayes().evaluate(spread, labels, folds=3).accuracy == NaiveBayes().evaluate(X, y, folds=3).accuracy


def test_what_is_wrong_is_one_sentence():
    X, y = measured()
    spread = da.from_array(X, chunks=(85, 3))
    with pytest.raises(ValueError, match=r"^expected one label for each of 600 rows, got 599 labels"):
        NaiveBayes().fit(spread, y[:-1])
    with pytest.raises(ValueError, match=r"^expected one label for each row, got 2 dimensions of labels"):
        NaiveBayes().fit(spread, da.from_array(y.reshape(-1, 1), chunks=85))
    words = X.astype(object)
    words[100, 1] = "far"
    with pytest.raises(ValueError, match=r"^partition 1: expected numbers, got 'far' in column 1"):
        NaiveBayes().fit(da.from_array(words, chunks=(85, 3)), y)
    rows = PartitionedRows(engine_of(spread))
    assert rows.names is None
    assert [batch.num_rows for batch in rows.batches()] == [85] * 7 + [5]
    assert engine_of(spread[:, 0]) is None


@pytest.mark.parametrize("make", [NaiveBayes, GaussianDiscriminant, Classifier])
def test_models_of_equal_parameters_are_told_apart(make):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    one, other = make().fit(X, y), make().fit(X, 1 - y)
    rows = da.from_array(X, chunks=(20, 2))
    found = da.compute(one.predict(rows), other.predict(rows), rows.map_blocks(other.predict, drop_axis=1, dtype=int))
    for got, want in zip(found, (one.predict(X), other.predict(X), other.predict(X)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_clusters_of_equal_parameters_are_told_apart():
    X = np.random.default_rng(0).normal(size=(40, 2))
    one, other = (KMeans(2, random_state=0).fit(each) for each in (X, X[:, ::-1] * [1.0, 9.0]))
    rows = da.from_array(X, chunks=(20, 2))
    found = da.compute(one.predict(rows), other.predict(rows))
    np.testing.assert_array_equal(found, [one.predict(X), other.predict(X)])
