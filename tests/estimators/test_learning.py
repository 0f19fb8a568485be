"""Labels, and models that learn more, merge and forget."""

import pickle
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cases import parameters
from laws import assert_bitwise
from refusal import X, Y, assert_refused, assert_unchanged_by
from scipy.sparse import csr_array
from sklearn.base import clone

import likely.sklearn as faces
from likely import Classifier, GaussianDiscriminant, GaussianPrior, NaiveBayes, TextClassifier
from likely.families import Categorical
from likely.statistics import plain_label

MODELS = {
    "naive Bayes": NaiveBayes,
    "full": GaussianDiscriminant,
    "tied": lambda: GaussianDiscriminant("diagonal", tied=True),
    "categorical": lambda: NaiveBayes("categorical"),
    "multinomial": lambda: NaiveBayes("multinomial"),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
TEXT = np.array(["no", "no", "no", "yes", "yes", "yes"])


# Labels


@every_model
@pytest.mark.parametrize(
    "labels",
    [Y, Y.astype(float), Y.astype(bool), Y.astype(np.uint8), Y.astype(np.uint64), TEXT, TEXT.astype(object), list(TEXT),
     pd.Series(TEXT), pd.Categorical(TEXT), Y - 2**62],
    ids=["int", "float", "bool", "uint8", "uint64", "text", "object", "list", "series", "categorical", "large"],
)  # fmt: skip
def test_labels_of_any_kind_come_back_as_they_were_given(make, labels):
    model = make().fit(X, labels)
    plain = np.asarray(labels)
    np.testing.assert_array_equal(model.classes_, np.unique(plain))
    assert model.predict(X).dtype.kind == plain.dtype.kind
    assert set(model.predict(X).tolist()) <= set(plain.tolist())
    np.testing.assert_array_equal(model.predict_proba(X), make().fit(X, Y).predict_proba(X))


LABELLED = {
    "Classifier": Classifier,
    "TextClassifier": TextClassifier,
    "NaiveBayes": NaiveBayes,
    "GaussianDiscriminant": GaussianDiscriminant,
    **{
        name: getattr(faces, name)
        for name in ("GaussianNB", "MultinomialNB", "BernoulliNB", "ComplementNB", "CategoricalNB")
    },
    "LinearDiscriminantAnalysis": faces.LinearDiscriminantAnalysis,
    "QuadraticDiscriminantAnalysis": faces.QuadraticDiscriminantAnalysis,
}
NAMES = np.tile(["no", "yes"], 20)
LABELS = {
    "object": NAMES.astype(object),
    "StringDType": NAMES.astype(np.dtypes.StringDType()),
    "string[python]": pd.Series(NAMES, dtype=pd.StringDtype("python")),
    "string[pyarrow]": pd.Series(NAMES, dtype=pd.StringDtype("pyarrow")),
    "categorical": pd.Series(NAMES, dtype="category"),
    "bool": NAMES == "yes",
    "boolean": pd.Series(NAMES == "yes", dtype="boolean"),
    "bool as object": (NAMES == "yes").astype(object),
    "int as object": np.tile([3, 7], 20).astype(object),
    "Decimal": np.array([Decimal("0.5"), Decimal(2)] * 20, dtype=object),
    "pyarrow": pa.array(NAMES.tolist()),
}


@pytest.mark.parametrize("name", LABELLED)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_every_classifier_answers_with_labels_of_every_type(name, labels):
    rng = np.random.default_rng(0)
    counts = rng.poisson(2, (40, 3)) + 3 * (NAMES == "yes")[:, None]
    rows = [" ".join(f"word{i}" for i in line) for line in counts] if name == "TextClassifier" else counts.astype(float)
    listed = [plain_label(label) for label in np.asarray(labels)]
    model, plain = (LABELLED[name]().fit(rows, given) for given in (labels, listed))
    np.testing.assert_array_equal(model.predict_proba(rows), plain.predict_proba(rows))
    assert model.predict(rows).tolist() == plain.predict(rows).tolist()
    assert (
        model.score(rows, labels) == np.mean([a == b for a, b in zip(model.predict(rows), listed, strict=True)]) > 0.5
    )
    assert repr(listed[1]) in str(model.explain(rows[:1], label=listed[1], against=listed[0]))


@pytest.mark.parametrize("labels", [label for name, label in LABELS.items() if "bool" not in name])
@pytest.mark.parametrize("missing", [False, True])
def test_a_class_that_cannot_be_solved_is_named_whatever_the_type_of_labels(labels, missing):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3))
    rows = np.column_stack([rows, rows.sum(axis=1)])
    if missing:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    one, other = (re.escape(repr(plain_label(label))) for label in np.asarray(labels)[:2])
    with pytest.raises(ValueError, match=rf"covariance of class ({one}|{other}) that has an inverse"):
        GaussianDiscriminant(shrinkage=0).fit(rows, labels)


BAD_LABELS = {
    "none at all": (None, ["y", "None"]),
    "None": (["a", None, "b", "a", "b", "a"], ["None", "index 1", "leave"]),
    "NaN": ([0, 1, np.nan, 0, 1, 1], ["nan", "index 2", "leave"]),
    "NaN among text": (np.array(["a", "b", np.nan, "a", "b", "b"], dtype=object), ["nan", "index 2", "leave"]),
    "infinity": ([0, 1, np.inf, 0, 1, 1], ["inf", "index 2"]),
    "continuous": ([0, 1, 0.5, 0, 1, 1], ["0.5", "continuous"]),
    "too few": ([0, 1], ["6", "2"]),
    "a matrix": (np.column_stack([Y, Y]), ["(6, 2)", "1d"]),
    "mixed in an array": (np.array([0, "a", 1, "b", 0, 1], dtype=object), ["int", "str"]),
    "mixed in a list": ([0, "a", 1, "b", 0, 1], ["int", "str"]),
}


@every_model
@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels_are_refused(make, name):
    labels, words = BAD_LABELS[name]
    kind = TypeError if name.startswith("mixed") else ValueError
    strict = make()
    if "unlabelled" in strict.get_params():
        strict.set_params(unlabelled=None)
    assert_refused(lambda: strict.fit(X, labels), *words, kind=kind)
    for change in ("partial_fit", "forget"):
        assert_unchanged_by(make().fit(X, [0, 0, 0, 1, 1, 1]), lambda m, c=change: getattr(m, c)(X, labels), kind=kind)


@every_model
@pytest.mark.parametrize(
    ("first", "second"), [(Y, TEXT), (TEXT, Y), (TEXT.astype(object), Y), (Y, TEXT.astype(object))]
)
def test_labels_of_another_kind_are_refused_later_in_words(make, first, second):
    words = (repr(first[0].item() if isinstance(first[0], np.generic) else first[0]), "kind")
    model = make().fit(X, first)
    assert_unchanged_by(model, lambda model: model.partial_fit(X, second), *words, kind=(ValueError, TypeError))
    other = make().fit(X, second)
    assert_unchanged_by(model, lambda model: model.merge(other), *words, kind=(ValueError, TypeError))


def test_classes_that_are_no_labels_are_refused_in_words():
    model = NaiveBayes()
    assert_refused(
        lambda: model.partial_fit(X, Y, classes=[0, 1, None]), "None", "classes", kind=(ValueError, TypeError)
    )
    assert not hasattr(model, "classes_")


# Learning more


@every_model
def test_a_label_not_among_the_first_classes_is_refused(make):
    model = make()
    assert_refused(lambda: model.partial_fit(X, Y, classes=[0, 5]), "[0, 5]", "1")
    assert not hasattr(model, "classes_")


@every_model
def test_more_classes_may_come_later(make):
    model = make().partial_fit(X, Y).partial_fit(X + 1, Y - 1)
    assert model.classes_.tolist() == [-1, 0, 1]
    np.testing.assert_array_equal(model.class_count_, [3, 6, 3])
    together = make().fit(np.vstack([X, X + 1]), np.concatenate([Y, Y - 1]))
    for name, want in parameters(together).items():
        np.testing.assert_allclose(parameters(model)[name], want, rtol=1e-12, atol=1e-15)


@every_model
def test_partial_fit_begins_and_fit_begins_anew(make):
    assert_bitwise(make().fit(X, Y), make().partial_fit(X, Y))
    assert_bitwise(make().fit(X, Y), make().fit(X + 1, Y[::-1]).fit(X, Y))


@every_model
def test_a_class_without_rows_is_kept_and_never_predicted(make):
    model = make().partial_fit(X, Y, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0.0)
    np.testing.assert_allclose(model.predict_proba(X)[:, :2], make().fit(X, Y).predict_proba(X), rtol=1e-12)


def test_a_category_that_comes_later_is_counted():
    model = NaiveBayes("categorical").fit([[1.0], [2.0]], [0, 1]).partial_fit([[3.0]], [1])
    np.testing.assert_array_equal(model.joint_.densities[0].values, [1, 2, 3])
    np.testing.assert_allclose(model.joint_.densities[0].shares, [[2 / 4, 1 / 4, 1 / 4], [1 / 5, 2 / 5, 2 / 5]])


def test_priors_by_class_are_in_the_order_of_the_classes():
    model = NaiveBayes(priors={"yes": 0.9, "no": 0.1}).fit(X, TEXT)
    assert model.priors_.tolist() == [0.1, 0.9]
    assert NaiveBayes(priors="uniform").fit(X, [0, 0, 0, 0, 0, 1]).priors_.tolist() == [0.5, 0.5]


def test_given_priors_shift_the_log_odds_by_their_own():
    plain, given = NaiveBayes().fit(X, Y), NaiveBayes(priors=[0.2, 0.8]).fit(X, Y)
    np.testing.assert_allclose(given.decision_function(X) - plain.decision_function(X), np.log(4), rtol=1e-12)


# Merging


@every_model
def test_merging_leaves_the_others_as_they_are(make):
    one, two = make().fit(X, Y), make().fit(X + 1, Y)
    before = pickle.loads(pickle.dumps(two))
    one.merge(two)
    assert_bitwise(two, before)
    assert one.class_count_.tolist() == [6, 6]


def test_merging_with_itself_is_every_row_twice():
    model = GaussianDiscriminant(shrinkage=0.0).fit(X, Y)
    before = parameters(model)
    for name, want in parameters(model.merge(model)).items():
        np.testing.assert_allclose(before[name], want, rtol=1e-13)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: NaiveBayes(pseudo_rows=1.0).fit(X, Y), ["pseudo_rows=1.0", "same parameters"]),
        (lambda: GaussianDiscriminant().fit(X, Y), ["GaussianDiscriminant", "same parameters"]),
        (lambda: NaiveBayes().fit(X[:, :1], Y), ["columns"]),
        (lambda: NaiveBayes().fit(X > 1, Y), ["famil"]),
        (lambda: NaiveBayes().fit(pd.DataFrame(X, columns=["a", "b"]), Y), ["columns"]),
        (lambda: NaiveBayes().fit(csr_array(X), Y), ["famil"]),
        (lambda: NaiveBayes(), ["not fitted"]),
        (lambda: 3, ["model"]),
    ],
    ids=["parameters", "kind", "width", "families", "names", "sparse", "unfitted", "no model"],
)
def test_merging_with_a_different_model_is_refused_and_nothing_of_it_is_kept(other, words):
    good = NaiveBayes().fit(X + 1, Y)
    kinds = (ValueError, TypeError)
    assert_unchanged_by(NaiveBayes().fit(X, Y), lambda model: model.merge(good, other()), *words, kind=kinds)


ARRAYS = {
    "smoothing": lambda: NaiveBayes("multinomial", smoothing=np.array([1.0, 2.0])),
    "prior": lambda: GaussianDiscriminant(pseudo_rows=GaussianPrior(np.zeros(2), np.eye(2), 2.0)),
    "family": lambda: NaiveBayes([Categorical(np.array([1.0, 2, 3, 4])), "gaussian"]),
    "priors": lambda: NaiveBayes(priors=np.array([0.5, 0.5])),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_models_whose_parameters_are_arrays_merge(make):
    model, other = make().fit(X, Y), make().fit(X, Y)
    assert model.merge(other).class_count_.tolist() == [6, 6]


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_a_stored_or_cloned_model_whose_parameters_are_arrays_merges(make):
    model = make().fit(X, Y)
    model.merge(pickle.loads(pickle.dumps(model)), clone(model).fit(X, Y))
    assert model.class_count_.tolist() == [9, 9]


def test_long_arrays_as_parameters_are_compared_in_full_when_merging():
    """NumPy prints but the ends of a long array: a parameter must not be compared by how it prints."""
    one, two = np.ones(2000), np.ones(2000)
    two[1000] = 500.0
    counts = np.ones((2, 2000))
    first = NaiveBayes("multinomial", smoothing=one).fit(counts, [0, 1])
    second = NaiveBayes("multinomial", smoothing=two).fit(counts, [0, 1])
    assert_refused(lambda: first.merge(second), "same parameters")


# Forgetting


@every_model
def test_forgetting_a_batch_is_never_having_learned_it(make):
    model = make().fit(np.vstack([X, X[::-1] + 1]), np.concatenate([Y, Y])).forget(X[::-1] + 1, Y)
    want = make().fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), want.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(model.class_count_, want.class_count_)


@every_model
def test_forgetting_what_was_never_learned_is_refused(make):
    words = ("learned", "forget")
    assert_unchanged_by(make().fit(X, Y), lambda model: model.forget(X[:1], [7]), *words)
    assert_unchanged_by(make().fit(X, Y), lambda model: model.forget(np.vstack([X, X[:1]]), [*Y, 0]), *words)
    assert_unchanged_by(make().fit(X, Y), lambda model: model.forget(X[:1], Y[:1], sample_weight=[9.0]), *words)
    again = make().fit(X, Y).forget(X[:2], Y[:2])
    assert_unchanged_by(again, lambda model: model.forget(X[:2], Y[:2]), *words)


@every_model
def test_forgetting_a_row_that_no_learned_row_was_like_is_refused(make):
    """A row far from all others leaves sums of squares, or counts, below zero."""
    assert_unchanged_by(make().fit(X, Y), lambda model: model.forget([[50.0, 50.0]], [0]), "learned", "forget")


@every_model
def test_forgetting_everything_is_refused(make):
    assert_unchanged_by(make().fit(X, Y), lambda model: model.forget(X, Y), "left", "new model")


def test_forgetting_all_rows_of_a_class_leaves_an_empty_class():
    model = NaiveBayes().fit(X, Y).forget(X[3:], Y[3:])
    assert model.class_count_.tolist() == [3, 0]
    assert model.predict(X).tolist() == [0] * 6
    assert model.partial_fit(X[3:], Y[3:]).class_count_.tolist() == [3, 3]
    np.testing.assert_allclose(model.predict_proba(X), NaiveBayes().fit(X, Y).predict_proba(X), rtol=1e-12)
