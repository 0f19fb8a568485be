"""All faces together: whatever code does with scikit-learn's class, it can do with ours."""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import sklearn.discriminant_analysis
import sklearn.naive_bayes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_faces_kmeans import CENTRED
from test_vectorizers import VECTORIZERS

import likely.sklearn
from likely.sklearn import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
)

FACES = [
    GaussianNB,
    MultinomialNB,
    ComplementNB,
    BernoulliNB,
    CategoricalNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
]
every_face = pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)


def peer_of(face):
    module = sklearn.discriminant_analysis if "Analysis" in face.__name__ else sklearn.naive_bayes
    return getattr(module, face.__name__)


def data(face):
    X, y = load_iris(return_X_y=True)
    if face is CategoricalNB:
        X = np.floor(X)
    elif face is BernoulliNB:
        X = np.greater(X, X.mean(axis=0)).astype(float)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@parametrize_with_checks([face() for face in FACES])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_every_face_is_tested():
    names = {face.__name__ for face in FACES}
    assert names | VECTORIZERS | CENTRED | {"GaussianMixture", "TfidfTransformer"} == set(likely.sklearn.__all__)


@every_face
def test_parameters_are_scikit_learns(face):
    peer = peer_of(face)
    assert inspect.signature(face) == inspect.signature(peer) or [
        (p.name, p.kind, p.default) for p in inspect.signature(face).parameters.values()
    ] == [(p.name, p.kind, p.default) for p in inspect.signature(peer).parameters.values()]
    assert face().get_params() == peer().get_params()
    assert repr(face()) == repr(peer())
    assert is_classifier(face())


@every_face
def test_attributes_and_methods_are_scikit_learns(face):
    X, y = data(face)
    model, peer = face().fit(X, y), peer_of(face)().fit(X, y)
    lacking = [name for name in dir(peer) if not name.startswith("_") and not hasattr(model, name)]
    assert lacking == []
    assert hasattr(model, "decision_function") == hasattr(peer, "decision_function")
    for name in [name for name in vars(peer) if name.endswith("_") and name not in ("rotations_", "scalings_")]:
        mine, theirs = getattr(model, name), getattr(peer, name)
        if not isinstance(theirs, list):
            mine, theirs = [mine], [theirs]
        for one, other in zip(mine, theirs, strict=True):
            if np.asarray(other).dtype.kind == "U":
                assert_array_equal(one, other)
            else:
                assert_allclose(one, other, rtol=1e-7, atol=1e-9, err_msg=name)


@every_face
def test_results_are_scikit_learns(face):
    X, y = data(face)
    model, peer = face().fit(X, y), peer_of(face)().fit(X, y)
    assert_array_equal(model.predict(X), peer.predict(X))
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-8, atol=1e-15)
    assert_allclose(model.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-7, atol=1e-10)
    assert model.score(X, y) == peer.score(X, y)


@every_face
def test_before_fit(face):
    with pytest.raises(NotFittedError):
        face().predict([[1.0]])
    with pytest.raises(AttributeError):
        face().classes_  # noqa: B018


@every_face
def test_clone_and_pickle(face):
    X, y = data(face)
    model = face().fit(X, y)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "classes_")
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.forget(X[:9], y[:9]).predict(X), model.forget(X[:9], y[:9]).predict(X))


@every_face
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(face, frame):
    X, y = data(face)
    table = frame({name: X[:, j] for j, name in enumerate("abcd")})
    model = face().fit(table, frame({"y": y})["y"])
    assert list(model.feature_names_in_) == list("abcd")
    assert_allclose(model.predict_proba(table), face().fit(X, y).predict_proba(X), rtol=1e-13)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[["b", "a", "c", "d"]])


@every_face
def test_missing_cells(face):
    """A missing cell says nothing, in training and in prediction; in a bag of words it is a word that is not there."""
    X, y = data(face)
    holes = X.copy()
    holes[::3, 1] = holes[1::4, 2] = np.nan
    model = face().fit(holes, y)
    p = model.predict_proba(holes)
    assert np.isfinite(p).all()
    if face not in (MultinomialNB, ComplementNB):
        assert model.score(holes, y) > peer_of(face)().fit(X, y).score(X, y) - 0.1
    nothing = np.full((1, 4), np.nan)
    weights = np.full(3, 1 / 3) if face is ComplementNB else getattr(model, "priors_", None)
    assert_allclose(model.predict_proba(nothing)[0], weights, rtol=1e-12)


@every_face
def test_batches(face):
    X, y = data(face)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    model = face()
    for first in range(0, 150, 50):
        model.partial_fit(X[first : first + 50], y[first : first + 50], classes=np.unique(y))
    assert_allclose(model.predict_proba(X), face().fit(X, y).predict_proba(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        model.partial_fit(X, ["daisy"] * 150)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        face().partial_fit(X, y)


@every_face
def test_merge_and_forget(face):
    X, y = data(face)
    whole = face().fit(X, y)
    halves = face().fit(X[::2], y[::2]).merge(face().fit(X[1::2], y[1::2]))
    assert_allclose(halves.predict_proba(X), whole.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert_allclose(
        halves.forget(X[1::2], y[1::2]).predict_proba(X),
        face().fit(X[::2], y[::2]).predict_proba(X),
        rtol=1e-8,
        atol=1e-12,
    )


@every_face
def test_meta_estimators(face):
    X, y = data(face)
    peer = peer_of(face)
    pipes = [make_pipeline(FunctionTransformer(), kind()) for kind in (face, peer)]
    assert_array_equal(*(cross_val_score(pipe, X, y) for pipe in pipes))
    calibrated = [CalibratedClassifierCV(kind(), cv=3).fit(X, y).predict_proba(X) for kind in (face, peer)]
    assert_allclose(*calibrated, rtol=1e-4, atol=1e-6)
    voting = [VotingClassifier([("it", kind())], voting="soft").fit(X, y).predict(X) for kind in (face, peer)]
    assert_array_equal(*voting)
    assert_array_equal(
        *(cross_val_predict(kind(), X, y, method="predict_proba").argmax(axis=1) for kind in (face, peer))
    )


@pytest.mark.parametrize(
    ("face", "grid"),
    [
        (GaussianNB, {"var_smoothing": [1e-9, 0.1, 1.0]}),
        (MultinomialNB, {"alpha": [0.1, 1.0], "fit_prior": [True, False]}),
        (LinearDiscriminantAnalysis, {"solver": ["lsqr"], "shrinkage": [None, 0.1, "auto"]}),
        (QuadraticDiscriminantAnalysis, {"reg_param": [0.0, 0.1, 0.5]}),
    ],
)
def test_grid_search(face, grid):
    X, y = data(face)
    mine, theirs = (GridSearchCV(kind(), grid).fit(X, y) for kind in (face, peer_of(face)))
    assert_allclose(mine.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-12)
    assert mine.best_params_ == theirs.best_params_


@every_face
def test_weights_are_routed(face):
    if "sample_weight" not in inspect.signature(peer_of(face).fit).parameters:
        pytest.skip("scikit-learn's class takes no weights in fit")
    X, y = data(face)
    weights = np.random.default_rng(0).random(150)
    with sklearn.config_context(enable_metadata_routing=True):
        model = face().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        pipe = make_pipeline(FunctionTransformer(), model).fit(X, y, sample_weight=weights)
    assert_allclose(pipe[-1].class_count_, [weights[y == label].sum() for label in np.unique(y)])


def test_output_of_transform():
    X, y = data(LinearDiscriminantAnalysis)
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150) + 7)
    for kind in (LinearDiscriminantAnalysis, sklearn.discriminant_analysis.LinearDiscriminantAnalysis):
        out = kind().set_output(transform="pandas").fit(table, y).transform(table)
        assert list(out.columns) == ["lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]
        assert list(out.index) == list(table.index)
    out = LinearDiscriminantAnalysis().set_output(transform="polars").fit(table, y).transform(table)
    assert isinstance(out, pl.DataFrame)


def test_small_smoothing_is_not_raised():
    rng = np.random.default_rng(0)
    X, y = np.r_[rng.normal(size=(50, 1)) * 1e-6, rng.normal(size=(50, 1))], np.repeat([0, 1], 50)
    for smoothing in (0, 1e-15, 1e-9):
        mine, theirs = (kind(var_smoothing=smoothing).fit(X, y) for kind in (GaussianNB, peer_of(GaussianNB)))
        assert_allclose(mine.var_, theirs.var_, rtol=1e-9)
    constant = GaussianNB(var_smoothing=0).fit(np.ones((4, 1)), [0, 0, 1, 1])
    assert_allclose(constant.predict_proba([[1.0]]), [[0.5, 0.5]])


def test_missing_cells_of_pandas():
    booleans = pd.DataFrame({"a": pd.array([True, False, None, True], dtype="boolean")})
    assert_array_equal(BernoulliNB().fit(booleans, [0, 1, 0, 1]).feature_count_, [[1], [1]])
    objects = pd.DataFrame({"a": np.array([1.0, 2.0, pd.NA, 4.0], dtype=object)})
    assert_allclose(GaussianNB().fit(objects, [0, 1, 0, 1]).theta_, [[1.0], [3.0]])


def test_categories_are_shown_by_name():
    table = pd.DataFrame({"w": ["a", "b", "a", "b"], "v": ["p", "p", "q", None], "n": [0, 1, 2, 2]})
    model = CategoricalNB().fit(table, ["n", "y", "n", "y"])
    assert [list(names) for names in model.categories_] == [["a", "b"], ["p", "q"], [0, 1, 2]]
    assert " a " in str(model.explain(table.head(1)))


OF_WORDS = (
    "input encoding decode_error strip_accents lowercase preprocessor tokenizer analyzer stop_words token_pattern "
    "ngram_range max_df min_df max_features vocabulary binary dtype"
)
PARAMETERS = {
    "GaussianNB": "priors var_smoothing",
    "MultinomialNB": "alpha force_alpha fit_prior class_prior",
    "ComplementNB": "alpha force_alpha fit_prior class_prior norm",
    "BernoulliNB": "alpha force_alpha binarize fit_prior class_prior",
    "CategoricalNB": "alpha force_alpha fit_prior class_prior min_categories",
    "LinearDiscriminantAnalysis": "solver shrinkage priors n_components store_covariance tol covariance_estimator",
    "QuadraticDiscriminantAnalysis": "solver shrinkage priors reg_param store_covariance tol covariance_estimator",
    "KMeans": "n_clusters init n_init max_iter tol verbose random_state copy_x algorithm",
    "MiniBatchKMeans": (
        "n_clusters init n_init max_iter tol verbose random_state batch_size compute_labels max_no_improvement "
        "init_size reassignment_ratio"
    ),
    "GaussianMixture": (
        "n_components covariance_type tol reg_covar max_iter n_init init_params weights_init means_init "
        "precisions_init random_state warm_start verbose verbose_interval"
    ),
    "CountVectorizer": OF_WORDS,
    "TfidfVectorizer": f"{OF_WORDS} norm use_idf smooth_idf sublinear_tf",
    "HashingVectorizer": (
        "input encoding decode_error strip_accents lowercase preprocessor tokenizer analyzer stop_words token_pattern "
        "ngram_range n_features binary norm alternate_sign dtype"
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_faces_heed_every_parameter_of_scikit_learn_s_class(name):
    """They take over its parameters: a new one there must be seen to here."""
    face = getattr(likely.sklearn, name)
    assert face.__name__ in {base.__name__ for base in face.__mro__ if base.__module__.startswith("sklearn.")}
    assert sorted(face().get_params()) == sorted(PARAMETERS[name].split())


@pytest.mark.parametrize("name", [name for name in PARAMETERS if not name.endswith("Vectorizer")])
def test_faces_take_over_no_method_that_learns_or_answers(name):
    face = getattr(likely.sklearn, name)
    homes = {method: next(c for c in face.__mro__ if method in vars(c)) for method in dir(face) if method[0] != "_"}
    theirs = {method for method, home in homes.items() if home.__module__.startswith("sklearn.")}
    general = {
        "fit_transform",
        "get_feature_names_out",
        "get_metadata_routing",
        "get_params",
        "set_output",
        "set_params",
    }
    assert {method for method in theirs if not method.endswith("_request")} <= {*general, "set_params"}
