"""The faces of k-means and mini-batch k-means: scikit-learn's own checks, its results, and what likely adds."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import likely
from likely.sklearn import KMeans, MiniBatchKMeans

CENTRED = {"KMeans", "MiniBatchKMeans"}
FACES = [KMeans, MiniBatchKMeans]
every_face = pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
IRIS = load_iris().data


# Without any that are expected to fail: a weight of 2 is a row twice, also where rows are drawn.
@parametrize_with_checks(
    [
        KMeans(),
        KMeans(3, init="random", n_init=4),
        KMeans(2, algorithm="elkan", tol=0.0),
        MiniBatchKMeans(),
        MiniBatchKMeans(3, init="random", batch_size=5),
        MiniBatchKMeans(2, tol=1e-3, compute_labels=True, reassignment_ratio=0.0),
    ]
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters", "ignore:algorithm='elkan'")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@every_face
def test_parameters_attributes_and_methods_are_scikit_learns(face):
    peer = getattr(sklearn.cluster, face.__name__)
    theirs = inspect.signature(peer).parameters.values()
    assert [(p.name, p.kind, p.default) for p in inspect.signature(face).parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs
    ]
    assert repr(face(3)) == repr(peer(3))
    model, other = face(3, random_state=0).fit(IRIS), peer(3, random_state=0).fit(IRIS)
    assert [name for name in dir(other) if not name.startswith("_") and not hasattr(model, name)] == []
    assert model.__sklearn_tags__().estimator_type == other.__sklearn_tags__().estimator_type
    assert model.cluster_centers_.shape == other.cluster_centers_.shape
    assert model.labels_.dtype == other.labels_.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tol", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("max_iter", [1, 2, 7, 300])
def test_results_are_scikit_learns_from_the_same_centres(dtype, tol, max_iter):
    X = make_blobs(2000, 6, centers=12, cluster_std=3.0, random_state=0)[0].astype(dtype)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    options = {"init": X[:12], "n_init": 1, "max_iter": max_iter, "tol": tol}
    model = KMeans(12, **options).fit(X, sample_weight=weights)
    peer = sklearn.cluster.KMeans(12, **options).fit(X.astype(np.float64), sample_weight=weights)
    assert_array_equal(model.labels_, peer.labels_)
    assert_allclose(model.cluster_centers_, peer.cluster_centers_, rtol=1e-5 if dtype == np.float32 else 1e-9)
    assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-6)
    assert model.score(X, sample_weight=weights) == pytest.approx(-model.inertia_, rel=1e-12)
    if tol == 0:  # weighted variances, by which others are multiplied, are ours alone
        assert model.n_iter_ == peer.n_iter_


def test_an_iteration_ends_where_scikit_learns_does():
    X = make_blobs(3000, 4, centers=9, cluster_std=4.0, random_state=1)[0]
    for tol in (1e-5, 1e-4, 1e-3):
        peer = sklearn.cluster.KMeans(9, init=X[:9], n_init=1, tol=tol).fit(X)
        model = KMeans(9, init=X[:9], n_init=1, tol=tol).fit(X)
        assert model.n_iter_ == peer.n_iter_
        assert_array_equal(model.labels_, peer.labels_)


@every_face
@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_draws_are_as_good_as_scikit_learns(face, init):
    """Over fifty seeds, the mean inertia of the first centres is that of scikit-learn's to three standard errors."""
    X = make_blobs(500, 3, centers=10, cluster_std=0.7, random_state=2)[0]
    weights = np.random.default_rng(1).integers(1, 5, 500).astype(float)

    def inertias(estimator):
        found = []
        for seed in range(50):
            model = estimator(10, init=init, n_init=1, random_state=seed, max_iter=1)
            found.append(-model.fit(X, sample_weight=weights).score(X, sample_weight=weights))
        return np.log(found)

    ours, theirs = inertias(face), inertias(getattr(sklearn.cluster, face.__name__))
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / 50)
    assert ours.mean() <= theirs.mean() + 3 * error


@every_face
@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_a_weight_is_a_row_several_times_in_any_order(face, init, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(200, 3))[generator.integers(0, 200, 300)]
    weights = generator.integers(0, 4, 300)
    order = generator.permutation(weights.sum())
    one = face(7, init=init, n_init=3, random_state=seed).fit(X, sample_weight=weights)
    two = face(7, init=init, n_init=3, random_state=seed).fit(np.repeat(X, weights, axis=0)[order])
    assert_allclose(one.cluster_centers_, two.cluster_centers_)
    assert_array_equal(one.predict(X), two.predict(X))
    assert one.inertia_ == pytest.approx(two.inertia_)


@every_face
def test_missing_cells(face):
    X = make_blobs(300, 4, centers=3, cluster_std=0.5, random_state=0)[0]
    whole = face(3, random_state=0).fit(X)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = face(3, random_state=0).fit(X)
    assert adjusted_rand_score(whole.labels_, model.labels_) == 1.0
    assert np.isfinite(model.transform(X)).all()


@every_face
@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_saved_models_are_the_same(face, rows, tmp_path):
    X = rows(IRIS.astype(np.float32))
    model = face(3, random_state=0).fit(X)
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert type(again) is face
    assert again.get_params() == model.get_params()
    assert again.cluster_centers_.dtype == model.cluster_centers_.dtype == np.float32
    assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert_array_equal(again.predict(X), model.predict(X))
    assert (again.n_iter_, again.inertia_) == (model.n_iter_, model.inertia_)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)


def test_a_loaded_model_goes_on_learning(tmp_path):
    model = MiniBatchKMeans(3, random_state=0, reassignment_ratio=0.0).partial_fit(IRIS[::2])
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model").partial_fit(IRIS[1::2])
    assert_allclose(again.cluster_centers_, model.partial_fit(IRIS[1::2]).cluster_centers_)
    assert again.n_steps_ == 2


def test_a_function_is_not_saved(tmp_path):
    model = KMeans(2, init=lambda X, k, random_state: X[:k], n_init=1).fit(IRIS)  # noqa: ARG005
    with pytest.raises(ValueError, match="a model file holds data, not code"):
        model.save(tmp_path / "model")


@every_face
def test_before_fit_clone_and_pipeline(face):
    with pytest.raises(NotFittedError):
        face().predict(IRIS)
    with pytest.raises(NotFittedError):
        face().save("nowhere")
    model = make_pipeline(StandardScaler(), face(3, random_state=0)).fit(IRIS)
    assert model.transform(IRIS).shape == (150, 3)
    assert not hasattr(clone(model[-1]), "cluster_centers_")


@every_face
def test_frames_in_and_out(face):
    frame = load_iris(as_frame=True).data
    model = face(3, random_state=0).set_output(transform="pandas").fit(frame)
    name = face.__name__.lower()
    for out in (model.transform(frame), model.fit_transform(frame)):
        assert isinstance(out, pd.DataFrame)
        assert list(out.columns) == [f"{name}{i}" for i in range(3)]


def test_a_function_gets_the_rows_as_they_are():
    seen = []

    def init(X, k, random_state):
        seen.append(X)
        return X[:k]

    KMeans(2, init=init, n_init=1).fit(IRIS + 100.0)
    assert_array_equal(seen[0], IRIS + 100.0)


def test_dense_and_sparse_batches_follow_each_other():
    model = MiniBatchKMeans(3, random_state=0).partial_fit(IRIS + 7.0)
    both = clone(model).partial_fit(IRIS + 7.0)
    model.partial_fit(sparse.csr_matrix(IRIS + 7.0))
    assert_allclose(model.cluster_centers_, both.partial_fit(IRIS + 7.0).cluster_centers_)


def test_verbose_tells_the_inertia_of_each_iteration(capsys):
    X = make_blobs(500, 3, centers=6, random_state=0)[0]
    model = KMeans(6, init="random", n_init=1, random_state=0, tol=0, verbose=1).fit(X)
    told = [float(line.split()[-1][:-1]) for line in capsys.readouterr().out.splitlines() if "inertia" in line]
    assert len(told) == model.n_iter_
    assert told == sorted(told, reverse=True)
    assert told[-1] == pytest.approx(model.inertia_)


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", [KMeans(3, random_state=0), MiniBatchKMeans(3, random_state=0)], ids=repr)
def test_distances_are_of_the_type_of_rows_and_centres(model, matrix):
    X = matrix(np.random.default_rng(0).random((60, 4)))
    peer = getattr(sklearn.cluster, type(model).__name__)(3, random_state=0)
    for learned in (np.float32, np.float64):
        for asked in (np.float32, np.float64):
            found, expected = (clone(each).fit(X.astype(learned)).transform(X.astype(asked)) for each in (model, peer))
            assert found.dtype == expected.dtype
    model = likely.KMeans(3, random_state=0)
    whole = model.fit(X).transform(X)
    assert whole.dtype == np.float64
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, whole, rtol=1e-5)
