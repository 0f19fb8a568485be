"""The faces of scikit-learn's discrete naive Bayes classifiers: equal to theirs, and better where they may be."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.naive_bayes as upstream
from sameness import ATTRIBUTES, alike, equal
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import likely.sklearn as faces

COUNTS = ["MultinomialNB", "ComplementNB"]
SPARSE = [*COUNTS, "BernoulliNB"]
NAMES = [*SPARSE, "CategoricalNB"]
ANSWERS = ["predict_proba", "predict_log_proba", "predict_joint_log_proba"]

GENERATOR = np.random.default_rng(7)
ROWS, WIDTH = 60, 6
X = GENERATOR.integers(0, 5, (ROWS, WIDTH)) * GENERATOR.integers(0, 2, (ROWS, WIDTH))
X[[0, 1, 20]] = 5  # the largest categories are in every batch, as scikit-learn's n_categories_ expects
Y = GENERATOR.choice(["a", "b", "c"], ROWS)
Y[0] = "a"
WEIGHTS = GENERATOR.uniform(0.1, 3.0, ROWS)
NEW = GENERATOR.integers(0, 6, (25, WIDTH))

KINDS = {
    "int64": np.asarray,
    "int32 by columns": lambda x: np.asfortranarray(x, dtype=np.int32),
    "uint8": lambda x: x.astype(np.uint8),
    "float64": lambda x: x.astype(float),
    "float32": lambda x: x.astype(np.float32),
    "fractions": lambda x: x + np.where(x > 0, 0.25, 0.0),
    "bool": lambda x: x > 2,
    "objects": lambda x: x.astype(object),
    "lists": lambda x: x.tolist(),
    "frame": lambda x: pd.DataFrame(x, columns=list("uvwxyz")),
    "csr": csr_array,
    "csr matrix of floats": lambda x: csr_matrix(x.astype(float)),
    "csc": csc_array,
    "coo": coo_array,
}
LAWS = {
    "default": {},
    "little alpha": {"alpha": 1e-3},
    "no alpha but a bound": {"alpha": 0.0, "force_alpha": False},
    "large alpha": {"alpha": 10},
    "alpha by column": {"alpha": np.linspace(0.5, 2.0, WIDTH)},
    "uniform": {"fit_prior": False},
    "given weights": {"class_prior": [0.2, 0.3, 0.5]},
    "normalised": {"norm": True},
    "threshold": {"binarize": 1.5},
    "least categories": {"min_categories": 8},
    "least categories by column": {"min_categories": [6, 7, 8, 9, 2, 1]},
}
ONLY = {"normalised": ["ComplementNB"], "threshold": ["BernoulliNB"], "alpha by column": COUNTS}


def _cases():
    for name in NAMES:
        for kind in KINDS:
            for law in LAWS:
                allowed = ONLY.get(law, ["CategoricalNB"] if "categories" in law else NAMES)
                dense_only = name == "CategoricalNB" and kind.startswith(("cs", "coo"))
                if name in allowed and not dense_only:
                    yield pytest.param(name, KINDS[kind], LAWS[law], id=f"{name}-{kind}-{law}")


def _readable(*kinds):
    """Return each face with each kind of data that it takes."""
    return [(name, kind) for name in NAMES for kind in kinds if name != "CategoricalNB" or kind != "csr"]


def _pair(name, **parameters):
    return getattr(faces, name)(**parameters), getattr(upstream, name)(**parameters)


def _same(face, theirs, new):
    for attribute in ATTRIBUTES:
        assert hasattr(face, attribute) == hasattr(theirs, attribute), attribute
        if hasattr(theirs, attribute):
            equal(getattr(face, attribute), getattr(theirs, attribute))
    for answer in ANSWERS:
        equal(getattr(face, answer)(new), getattr(theirs, answer)(new))
    chosen = np.searchsorted(face.classes_, face.predict(new))
    share = theirs.predict_proba(new)
    equal(share[np.arange(len(share)), chosen], share.max(axis=1))  # classes may be equal but for rounding


@pytest.mark.filterwarnings("ignore:alpha too small")
@pytest.mark.parametrize(("name", "kind", "parameters"), list(_cases()))
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
def test_equal_to_scikit_learn(name, kind, parameters, weights):
    face, theirs = (model.fit(kind(X), Y, weights) for model in _pair(name, **parameters))
    _same(face, theirs, kind(np.minimum(NEW, 1) if kind is KINDS["bool"] else NEW))


@pytest.mark.parametrize(("name", "kind"), _readable("int64", "csr"))
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("parameters", [{}, {"fit_prior": False}, {"class_prior": [0.1, 0.2, 0.3, 0.4]}], ids=repr)
def test_batches_are_equal_to_scikit_learn_s(name, kind, weights, parameters):
    face, theirs = _pair(name, **parameters)
    batches = [slice(0, 1), slice(1, 20), slice(20, ROWS)]
    for number, batch in enumerate(batches):
        part = None if weights is None else weights[batch]
        for model in (face, theirs):
            known = {"classes": ["a", "b", "c", "d"]} if number == 0 else {}
            model.partial_fit(KINDS[kind](X[batch]), Y[batch], sample_weight=part, **known)
        _same(face, theirs, KINDS[kind](NEW))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [1, 2])
def test_few_classes_are_as_in_scikit_learn(name, number):
    few = np.where(Y == "a", 0, number - 1)
    face, theirs = (model.fit(X, few) for model in _pair(name))
    _same(face, theirs, NEW)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_tags_are_scikit_learn_s(name):
    face, theirs = _pair(name)
    assert list(face.get_params()) == list(theirs.get_params())
    assert face.get_params() == theirs.get_params()
    assert vars(face) == vars(theirs)
    constraints = ({n: list(map(str, c)) for n, c in m._parameter_constraints.items()} for m in (face, theirs))
    assert next(constraints) == next(constraints)
    ours, other = get_tags(face), get_tags(theirs)
    for tag in ("sparse", "positive_only", "categorical", "string", "two_d_array"):
        assert getattr(ours.input_tags, tag) == getattr(other.input_tags, tag), tag
    assert ours.classifier_tags == other.classifier_tags
    assert ours.input_tags.allow_nan


@pytest.mark.parametrize("name", NAMES)
def test_check_estimator(name):
    for result in check_estimator(getattr(faces, name)(), on_fail=None, on_skip=None):
        if result["status"] == "skipped":
            assert "SCIPY_ARRAY_API" in str(result["exception"])
        else:
            assert result["status"] == "passed", f"{result['check_name']}: {result['exception']!r}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "The 'alpha' parameter of {} must be"),
        ({"fit_prior": "yes"}, "The 'fit_prior' parameter of {} must be"),
        ({"class_prior": [0.5, 0.5]}, "Number of priors must match number of classes"),
    ],
    ids=str,
)
def test_refused_as_by_scikit_learn(name, parameters, message):
    for model in _pair(name, **parameters):
        with pytest.raises(ValueError, match=re.escape(message.format(name))):
            model.fit(X, Y)


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ([1.0, 2.0], "When alpha is an array, it should contains `n_features`. Got 2 elements instead of 6."),
        ([1.0, 2.0, 1.0, 1.0, 1.0, -0.1], "All values in alpha must be greater than 0."),
    ],
    ids=["length", "negative"],
)
def test_unfit_alphas_are_refused_as_by_scikit_learn(name, alpha, message):
    for model in _pair(name, alpha=alpha):
        with pytest.raises(ValueError, match=re.escape(message)):
            model.fit(X, Y)


@pytest.mark.parametrize(
    ("least", "message"),
    [([2, 3], r"'min_categories' should have shape \(6,\)"), ([1.5] * 6, "should have integral type. Got float64")],
)
def test_unfit_numbers_of_categories_are_refused(least, message):
    with pytest.raises(ValueError, match=message):
        faces.CategoricalNB(min_categories=least).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "kind"), [case for case in _readable("float64", "int64", "frame", "csr") if case[0] != "BernoulliNB"]
)
def test_negative_cells_are_refused_in_a_sentence(name, kind):
    model = getattr(faces, name)().fit(KINDS[kind](X), Y)
    bad = X.copy()
    bad[3, 2] = -1
    column = "'w'" if kind == "frame" else "2"
    message = (
        re.escape(f"Negative values in data passed to {name} (input X)")
        + f".* got -1 in row index 3 of column {column}"
    )
    for ask in (
        lambda x: model.fit(x, Y),
        model.predict,
        lambda x: model.partial_fit(x, Y),
        lambda x: model.forget(x, Y),
    ):
        with pytest.raises(ValueError, match=message):
            ask(KINDS[kind](bad))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ask", ["predict", *ANSWERS])
def test_infinity_is_refused(name, ask):
    model = getattr(faces, name)().fit(X, Y)
    bad = NEW.astype(float)
    bad[1, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        getattr(model, ask)(bad)
    with pytest.raises(ValueError, match="inf"):
        model.fit(bad, Y[: len(bad)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("attribute", ["class_log_prior_", "feature_log_prob_", "category_count_", "predict"])
def test_without_data_there_is_nothing(name, attribute):
    model = getattr(faces, name)()
    with pytest.raises((NotFittedError, AttributeError)):
        model.predict(X) if attribute == "predict" else getattr(model, attribute)


@pytest.mark.parametrize(("name", "kind"), _readable("int64", "float32", "objects", "frame", "csr"))
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
def test_merged_and_forgotten(name, kind, weights):
    read, model = KINDS[kind], getattr(faces, name)(alpha=0.5)
    first, rest = slice(1, 30), slice(30, ROWS)

    def of(part):
        return None if weights is None else weights[part]

    one = clone(model).fit(read(X[first]), Y[first], of(first))
    other = clone(model).fit(read(X[rest]), Y[rest], of(rest))
    both = clone(model).fit(read(X[1:]), Y[1:], of(slice(1, None)))
    answers = other.predict_proba(read(NEW))
    merged = clone(model).fit(read(X[first]), Y[first], of(first)).merge(other)
    alike(merged, both, read(NEW))
    equal(other.predict_proba(read(NEW)), answers)
    alike(merged.forget(read(X[rest]), Y[rest], of(rest)), one, read(NEW))


@pytest.mark.parametrize("name", NAMES)
def test_models_that_differ_are_not_merged(name):
    model = getattr(faces, name)().fit(X, Y)
    for other in (getattr(faces, name)(alpha=2.0).fit(X, Y), faces.GaussianNB().fit(X, Y)):
        with pytest.raises(ValueError, match="expected a model with the same parameters"):
            model.merge(other)
    with pytest.raises(ValueError, match="expected a model of"):
        model.merge(getattr(faces, name)().fit(X[:, :3], Y))
    with pytest.raises(NotFittedError):
        model.merge(getattr(faces, name)())


@pytest.mark.parametrize(("name", "kind"), _readable("int64", "csr"))
def test_missing_cells_say_nothing(name, kind):
    read = KINDS[kind]
    model = getattr(faces, name)().fit(read(X), Y)
    some = NEW.astype(float)
    some[:, 4:] = np.nan
    left = model.predict_joint_log_proba(read(some))
    if name == "CategoricalNB":
        expected = model.class_log_prior_ + sum(model.feature_log_prob_[j][:, NEW[:, j]].T for j in range(4))
    elif name == "BernoulliNB":
        yes, log = NEW[:, :4] > 0, model.feature_log_prob_[:, :4]
        expected = model.class_log_prior_ + yes @ log.T + ~yes @ np.log1p(-np.exp(log)).T
    else:
        prior = model.class_log_prior_ if name == "MultinomialNB" else 0.0
        expected = prior + NEW[:, :4] @ model.feature_log_prob_[:, :4].T
    np.testing.assert_allclose(left, expected, rtol=1e-12)
    if name not in COUNTS:  # where columns are independent, a column without cells changes no other
        holes = X.astype(float)
        holes[:, 4:] = np.nan
        part = getattr(faces, name)().fit(read(X[:, :4]), Y)
        equal(getattr(faces, name)().fit(read(holes), Y).predict_proba(read(NEW)), part.predict_proba(read(NEW[:, :4])))


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_stay_sparse(name):
    class Counts(csr_array):
        def toarray(self, *_, **__):
            raise AssertionError("the rows were made dense")

        todense = __array__ = toarray

    wide = csr_array((np.ones(3), ([0, 1, 2], [5, 10**6, 7])), shape=(3, 10**6 + 1))
    model = getattr(faces, name)().fit(Counts(wide), [0, 1, 1])
    model.partial_fit(Counts(wide), [0, 1, 1])
    theirs = getattr(upstream, name)().fit(wide, [0, 1, 1]).partial_fit(wide, [0, 1, 1])
    equal(model.predict(Counts(wide)), theirs.predict(wide))
    np.testing.assert_allclose(model.predict_proba(Counts(wide)), theirs.predict_proba(wide), rtol=1e-6)


def test_cells_are_0_or_1_without_a_threshold():
    for read in (np.asarray, csr_array):
        face, theirs = (model.fit(read(X > 2), Y) for model in _pair("BernoulliNB", binarize=None))
        _same(face, theirs, read(NEW > 2))
        with pytest.raises(ValueError, match="expected 0 or 1, got 5"):
            face.fit(read(X), Y)


@pytest.mark.parametrize("name", NAMES)
def test_cloned_pickled_and_renamed(name):
    model = getattr(faces, name)(alpha=0.25).fit(X, Y)
    for other in (
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(X, Y),
        type(model)().set_params(alpha=0.25).fit(X, Y),
    ):
        alike(other, model, NEW)
    assert repr(model) == f"{name}(alpha=0.25)"


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns(name):
    frame = KINDS["frame"](X)
    model = getattr(faces, name)().fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("uvwxyz")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("zyxwvu")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_routed(name):
    with sklearn.config_context(enable_metadata_routing=True):
        model = getattr(faces, name)().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(model).fit(X, Y, sample_weight=WEIGHTS)
    alike(pipeline[-1], getattr(faces, name)().fit(X, Y, WEIGHTS), NEW)


DOCUMENTS = [
    "ball goal ball",
    "goal match",
    "match ball team",
    "paint brush",
    "paint canvas paint",
    "museum canvas",
] * 5
TOPICS = ["sport", "sport", "sport", "art", "art", "art"] * 5


@pytest.mark.parametrize("name", SPARSE)
def test_in_a_pipeline_with_words(name):
    ours, theirs = (make_pipeline(CountVectorizer(), model).fit(DOCUMENTS, TOPICS) for model in _pair(name))
    equal(ours.predict_proba(DOCUMENTS), theirs.predict_proba(DOCUMENTS))
    assert ours.predict(["a ball in the museum of paint"]).tolist() == ["art"]
    assert cross_val_score(ours, DOCUMENTS, TOPICS).mean() > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_searched_and_calibrated(name):
    grid = {"alpha": [0.01, 0.1, 1.0, 10.0], "fit_prior": [True, False]}
    ours, theirs = (GridSearchCV(model, grid, scoring="neg_log_loss").fit(X % 5, Y) for model in _pair(name))
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-9)
    one, other = (CalibratedClassifierCV(model).fit(X % 5, Y) for model in _pair(name))
    np.testing.assert_allclose(one.predict_proba(X % 5), other.predict_proba(X % 5), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [0, 0, 0, 0]], ids=["two classes", "one"])
def test_without_smoothing_answers_are_numbers(name, labels):
    x = np.array([[1, 0, 2], [2, 0, 1], [0, 1, 1], [0, 2, 2]])
    model = getattr(faces, name)(alpha=0).fit(x, labels)
    assert model.predict(x).tolist() == labels
    assert np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize(
    "face", [*(getattr(faces, name)(class_prior=[0.3, 0.7]) for name in NAMES), faces.GaussianNB(priors=[0.3, 0.7])]
)
def test_given_weights_may_be_of_classes_yet_to_come(face):
    face.partial_fit(X[:2], ["a", "a"], classes=["a", "b"]).partial_fit(X[2:4], ["b", "b"])
    np.testing.assert_allclose(face.priors_, [0.3, 0.7], rtol=1e-15)
