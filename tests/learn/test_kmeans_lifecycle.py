"""k-means that is drawn by chance, kept in files, merged, learned by batches, and broken off."""

import _thread
import copy
import threading
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import likely
import likely.sklearn as faces
from likely import KMeans
from likely.data.table import read_table
from likely.learn.kmeans import Order, read_points
from likely.persistence import file as files

IRIS = load_iris().data
STARTS = ["k-means++", "greedy k-means++", "rows", "assignment"]


@pytest.mark.parametrize(
    "model",
    [KMeans(), KMeans(3, start="rows"), KMeans(3, start="assignment", tolerance=1e-3), KMeans(3, batch_size=4)],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit", "ignore:found . distinct clusters")
def test_check_estimator(model):
    """None is expected to fail: a weight of 2 is a row twice, also where rows are drawn."""
    for result in check_estimator(model, on_fail=None, on_skip=None):
        assert result["status"] == "passed" or "array_api" in result["check_name"], result


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("batch_size", [None, 40])
@pytest.mark.parametrize("kind", ["dense", "sparse", "holes"])
def test_a_weight_is_a_row_several_times_in_any_order(start, batch_size, kind):
    for seed in range(4):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(150, 3))[generator.integers(0, 150, 200)]
        if kind == "holes":
            X[generator.random(X.shape) < 0.1] = np.nan
        weights = generator.integers(0, 4, 200)
        repeated = np.repeat(X, weights, axis=0)[generator.permutation(weights.sum())]
        one, two = (KMeans(6, start=start, n_starts=3, batch_size=batch_size, random_state=seed) for _ in range(2))
        matrix = sparse.csr_matrix if kind == "sparse" else np.asarray
        one.fit(matrix(X), sample_weight=weights)
        two.fit(matrix(repeated))
        assert_allclose(one.cluster_centers_, two.cluster_centers_)
        assert_array_equal(one.predict(X), two.predict(X))


WEIGHED = [
    *(KMeans(4, start=start, n_starts=2, random_state=0) for start in STARTS),
    KMeans(4, start=[[0.0] * 3, [6.0] * 3, [9.0] * 3, [12.0] * 3]),
    KMeans(4, tolerance=1e-3, random_state=0),
    KMeans(4, batch_size=10, random_state=0),
    faces.KMeans(4, random_state=0),
    faces.KMeans(4, init="random", random_state=0),
    faces.MiniBatchKMeans(4, batch_size=10, random_state=0),
    faces.MiniBatchKMeans(4, batch_size=10, init="random", tol=1e-3, random_state=0),
]


@pytest.mark.parametrize("model", WEIGHED, ids=repr)
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "holes"])
def test_a_row_of_weight_zero_is_no_row_and_one_of_weight_two_is_there_twice(model, kind):
    """Of whole numbers, many lie equally far from two centres; rows of weight 0 lie far away from all others."""
    matrix = {"sparse": sparse.csr_matrix, "float32": np.float32}.get(kind, np.asarray)
    for seed in range(6):
        generator = np.random.default_rng(seed)
        X = np.round(3 * generator.normal(size=(40, 3)) + 6 * generator.integers(0, 3, (40, 1)))
        weights = generator.integers(0, 4, 40)
        X[weights == 0] = 1e6
        if kind == "holes":
            X[generator.random(X.shape) < 0.2] = np.nan
        counted, times = weights > 0, np.repeat(np.arange(40), weights)[generator.permutation(weights.sum())]
        given = [(X, weights), (X[counted], weights[counted]), (X[times], None)]
        for learn in ("fit", "partial_fit") if hasattr(model, "partial_fit") else ("fit",):
            found = [clone(model) for _ in given]
            for _ in range(2):
                for one, (rows, w) in zip(found, given, strict=True):
                    getattr(one, learn)(matrix(rows), sample_weight=w)
            for other in found[1:]:
                assert_allclose(
                    found[0].cluster_centers_, other.cluster_centers_, rtol=1e-6 if kind == "float32" else 1e-9
                )
                assert found[0].inertia_ == pytest.approx(other.inertia_, rel=1e-9)
                assert getattr(found[0], "n_iter_", None) == getattr(other, "n_iter_", None)
                assert_array_equal(found[0].predict(X[counted]), other.predict(X[counted]))


def test_rows_have_an_order_of_their_own():
    generator = np.random.default_rng(0)
    X = generator.integers(0, 3, (500, 3)).astype(np.float64)
    X[generator.random(X.shape) < 0.2] = np.nan
    for order in (np.arange(500), generator.permutation(500)):
        found = Order.of(read_points(read_table(X[order])))
        rows, weights = found.distinct(None)
        distinct = np.unique(X, axis=0)
        assert len(rows) == len(pd.DataFrame(X).drop_duplicates()) <= len(distinct)
        assert weights.sum() == 500
        assert_array_equal(X[order][found.rows], X[Order.of(read_points(read_table(X))).rows])


def test_rows_that_float64_cannot_tell_apart_along_a_direction_are_not_taken_for_equal():
    X = np.column_stack([np.full(4, 1e20), [1.0, 2.0, 1.0, 3.0]])
    rows, _ = Order.of(read_points(read_table(X))).distinct(None)
    assert set(X[rows, 1]) == {1.0, 2.0, 3.0}


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_matrix, pd.DataFrame], ids=["dense", "sparse", "frame"])
def test_saved_models_are_the_same(rows, tmp_path):
    X = rows(IRIS)
    if isinstance(X, pd.DataFrame):
        X.columns = list("abcd")
    model = KMeans(3, random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert repr(again) == repr(model)
    assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert_array_equal(again.predict(X), model.labels_)
    assert_array_equal(again.transform(X), model.transform(X))
    assert (again.n_iter_, again.inertia_) == (model.n_iter_, model.inertia_)
    assert list(getattr(again, "feature_names_in_", [])) == list(getattr(model, "feature_names_in_", []))
    assert_array_equal(again.partial_fit(X).cluster_centers_, model.partial_fit(X).cluster_centers_)


def test_columns_without_cells_are_saved(tmp_path):
    X = np.column_stack([IRIS, np.full(150, np.nan)])
    model = KMeans(3, random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert np.isnan(again.cluster_centers_[:, 4]).all()
    assert_array_equal(again.predict(X), model.labels_)


def test_broken_files_are_refused(tmp_path):
    path = tmp_path / "model"
    KMeans(3, random_state=0).fit(IRIS).save(path)
    header, arrays = files.read(path)

    def refused(change, message):
        head, parts = copy.deepcopy(header), dict(arrays)
        change(head, parts)
        files.write(path, head, parts)
        with pytest.raises(ValueError, match=message):
            likely.load(path)

    for name in ("weight", "sum", "sum.origin", "centres", "origin", "known"):
        refused(lambda _, parts, name=name: parts.pop(name), "expected")
        refused(lambda _, parts, name=name: parts.update({name: parts[name][:1]}), "expected")
        refused(lambda _, parts, name=name: parts.update({name: parts[name].astype(np.int8)}), "expected")
    for name in ("weight", "sum", "centres", "origin"):
        refused(lambda _, parts, name=name: parts.update({name: np.full_like(parts[name], np.inf)}), "finite|expected")
    refused(lambda _, parts: parts.update(weight=-parts["weight"]), "expected weights of 0 or more")
    refused(lambda head, _: head["parameters"].update(n_clusters=4), "expected 4 clusters")
    refused(lambda head, _: head["parameters"].update(other=4), "expected parameters that belong together")
    refused(lambda head, _: head["more"].update(n_iter_="many"), "expected a number as n_iter_")
    refused(lambda head, _: head["columns"].update(width=3), "expected")
    refused(lambda head, _: head.update(kind=["KMeans"]), "expected")


def test_merging():
    X, _ = make_blobs(900, 3, centers=4, cluster_std=0.4, random_state=3)
    parts = [KMeans(4, random_state=i).fit(X[i::3]) for i in range(3)]
    merged = parts[0].merge(parts[1], parts[2])
    whole = KMeans(4, random_state=0).fit(X)
    nearest = whole.predict(merged.cluster_centers_)
    assert sorted(nearest) == [0, 1, 2, 3]
    assert_allclose(merged.cluster_centers_, whole.cluster_centers_[nearest], rtol=1e-9)
    assert merged.statistics_.sums["weight"][:, 0].sum() == 900
    assert not hasattr(merged, "labels_")
    assert hasattr(parts[1], "labels_")
    assert_array_equal(merged.predict(X), np.argsort(nearest)[whole.labels_])


def test_only_models_that_are_alike_are_merged():
    model = KMeans(2, random_state=0).fit(IRIS)
    with pytest.raises(ValueError, match="as many clusters and columns"):
        model.merge(KMeans(3, random_state=0).fit(IRIS))
    with pytest.raises(ValueError, match="of the columns"):
        model.merge(KMeans(2, random_state=0).fit(load_iris(as_frame=True).data))
    with pytest.raises(NotFittedError):
        model.merge(KMeans(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mini_batches_end_near_all_rows(dtype):
    X = make_blobs(20_000, 5, centers=8, cluster_std=1.0, random_state=0)[0].astype(dtype)
    whole = KMeans(8, random_state=0).fit(X)
    model = KMeans(8, batch_size=500, random_state=0).fit(X)
    assert whole.inertia_ <= model.inertia_ * (1 + 1e-9)
    assert model.inertia_ <= 1.02 * whole.inertia_
    assert_array_equal(model.predict(X), model.labels_)
    assert -model.score(X) == pytest.approx(model.inertia_, rel=1e-12)
    assert model.statistics_.sums["weight"][:, 0].sum() == 20_000
    again = KMeans(8, batch_size=500, random_state=0).fit(X)
    assert_array_equal(again.cluster_centers_, model.cluster_centers_)


def test_mini_batches_from_given_centres_with_holes():
    X, y = make_blobs(3000, 4, centers=3, cluster_std=0.3, random_state=1)
    start = np.stack([X[y == c][0] for c in range(3)])
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = KMeans(3, start=start, batch_size=100, random_state=0).fit(X)
    assert np.mean(model.labels_ == y) > 0.98
    for c in range(3):
        assert_allclose(model.cluster_centers_[c], np.nanmean(X[y == c], axis=0), atol=0.2)


@pytest.mark.parametrize("value", [0, 2.5, True, "all"])
def test_batch_sizes_are_checked(value):
    with pytest.raises(ValueError, match="got batch_size="):
        KMeans(2, batch_size=value).fit(IRIS)


def test_infinite_and_missing_cells_are_found_by_the_first_look_too():
    """With centres to begin with, nobody looks for them before the iteration does."""
    X = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    start = X[:4].astype(np.float64)
    X[4321, 1] = np.nan
    model = KMeans(4, start=start).fit(X)
    assert_array_equal(model.labels_, KMeans(4, start=start).fit(X.astype(np.float64)).labels_)
    X[4321, 1] = -np.inf
    with pytest.raises(ValueError, match="got -inf in row index 4321 of column 1"):
        KMeans(4, start=start).fit(X)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_inertia_is_that_of_the_distances(scale):
    """Whether it was found from sums or row by row, since it is little beside the squares about the origin."""
    X = make_blobs(5000, 4, centers=5, cluster_std=scale, center_box=(-1e3, 1e3), random_state=0)[0]
    for k in (1, 5, 9):
        model = KMeans(k, random_state=0, n_starts=1).fit(X)
        apart = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
        assert model.inertia_ == pytest.approx(apart, rel=1e-9)


@pytest.mark.parametrize("start", ["k-means++", "rows"])
def test_an_interrupt_ends_a_long_fit(start):
    X = np.random.default_rng(0).normal(size=(300_000, 64)).astype(np.float32)
    # Long enough that it would not have ended by itself: a hundred such starts.
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        KMeans(3000, start=start, n_starts=100, random_state=0).fit(X)
    assert time.monotonic() - began < 60
