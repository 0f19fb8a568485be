"""What cannot be learned or answered is refused in one line that names the place and the value, and changes nothing."""

import numpy as np
import pandas as pd
import pytest
from refusal import X, Y, assert_refused, assert_unchanged_by, with_cell
from scipy.sparse import csr_array

from likely import GaussianDiscriminant, NaiveBayes

FITTED = {
    "naive Bayes": lambda: NaiveBayes().fit(X, Y),
    "full": lambda: GaussianDiscriminant().fit(X, Y),
    "tied": lambda: GaussianDiscriminant(tied=True, shrinkage=0.0).fit(X, Y),
    "poisson": lambda: NaiveBayes("poisson").fit(X, Y),
    "categorical": lambda: NaiveBayes("categorical").fit(X, Y),
    "multinomial": lambda: NaiveBayes("multinomial").fit(X, Y),
    "mixed": lambda: NaiveBayes(["gaussian", "poisson"]).fit(X, Y),
}
every_model = pytest.mark.parametrize("make", FITTED.values(), ids=FITTED)
LEARNING = {
    "fit": lambda model, X, y, **more: model.fit(X, y, **more),
    "partial_fit": lambda model, X, y, **more: model.partial_fit(X, y, **more),
    "forget": lambda model, X, y, **more: model.forget(X, y, **more),
}
every_way = pytest.mark.parametrize("learn", LEARNING.values(), ids=LEARNING)
ASKING = ["predict", "predict_proba", "predict_log_proba", "decision_function", "log_density", "explain"]


# Cells


@every_model
@every_way
@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("order", ["C", "F"])
def test_infinity_is_refused_in_training(make, learn, value, order):
    bad = np.asarray(with_cell(value), order=order)
    words = (str(value), "row index 3", "column 1")
    assert_unchanged_by(make(), lambda model: learn(model, bad, Y), *words)


@every_model
@pytest.mark.parametrize("question", ASKING)
def test_infinity_is_refused_in_questions(make, question):
    assert_unchanged_by(
        make(), lambda model: getattr(model, question)(with_cell(np.inf)), "inf", "row index 3", "column 1", "NaN"
    )


@pytest.mark.parametrize(
    ("family", "value"),
    [("poisson", -1.0), ("poisson", 0.5), ("multinomial", -2.0), ("exponential", -1.0), ("gamma", 0.0), ("gamma", -1.0),
     ("log-normal", 0.0), ("log-normal", -3.0), ("bernoulli", 2.0), ("bernoulli", -1.0)],
)  # fmt: skip
@every_way
def test_a_cell_outside_its_family_is_refused_in_training(family, value, learn):
    good = np.minimum(X + 1, 1.0) if family == "bernoulli" else X + 1
    bad = good.copy()
    bad[3, 1] = value
    words = ("expected", f"got {value:g}", "row index 3", "column 1", "another family")
    assert_unchanged_by(NaiveBayes(family).fit(good, Y), lambda model: learn(model, bad, Y), *words, rows=good)


@pytest.mark.parametrize("family", ["poisson", "multinomial", "exponential", "gamma", "log-normal"])
@pytest.mark.parametrize("question", ASKING)
def test_a_cell_outside_its_family_is_refused_in_questions(family, question):
    good = X + 1
    bad = good.copy()
    bad[3, 1] = -1.0
    model = NaiveBayes(family).fit(good, Y)
    assert_unchanged_by(model, lambda model: getattr(model, question)(bad), "-1", "row index 3", "column 1", rows=good)


def test_a_cell_is_named_by_its_column_name():
    frame = pd.DataFrame(with_cell(np.inf) + 0.5, columns=["age", "income"])
    assert_refused(lambda: NaiveBayes().fit(frame, Y), "inf", "row index 3", "column 'income'")
    assert_refused(lambda: GaussianDiscriminant().fit(frame, Y), "inf", "row index 3", "column 'income'")


def test_text_cells_are_refused_with_the_text():
    cells = np.array([[1.0, "red"], [2.0, "blue"]], dtype=object)
    assert_refused(lambda: NaiveBayes().fit(cells, [0, 1]), "'red'", "column 1", "codes")
    frame = pd.DataFrame({"age": [1.0, 2.0], "colour": ["red", "blue"]})
    assert_refused(lambda: GaussianDiscriminant().fit(frame, [0, 1]), "'red'", "column 'colour'", "codes")


def test_negative_counts_in_a_sparse_matrix_are_refused():
    model, bad = NaiveBayes().fit(csr_array(X), Y), csr_array(with_cell(-4.0))
    for ask in (lambda model: model.partial_fit(bad, Y), lambda model: model.predict(bad)):
        assert_unchanged_by(model, ask, "-4", "row index 3", "column 1")


# Shapes


@every_model
@every_way
def test_wrong_shapes_are_refused_in_training(make, learn):
    model = make()
    assert_unchanged_by(model, lambda model: learn(model, X[:, 0], Y), "2D", "1D", "reshape")
    assert_unchanged_by(model, lambda model: learn(model, X[None], Y), "2D", "3D")
    assert_unchanged_by(model, lambda model: learn(model, 3.0, Y), "2D", "0D")
    assert_unchanged_by(model, lambda model: learn(model, X, Y[:4]), "6", "4")
    assert_unchanged_by(model, lambda model: learn(model, X, np.column_stack([Y, Y])), "(6, 2)", "1d")
    assert_unchanged_by(model, lambda model: learn(model, np.empty((0, 2)), []), "0 sample", "minimum of 1")
    assert_unchanged_by(model, lambda model: learn(model, np.empty((6, 0)), Y), "0 feature", "minimum of 1")
    assert_unchanged_by(model, lambda model: learn(model, X, Y, sample_weight=np.ones(5)), "(5,)", "(6,)")
    assert_unchanged_by(model, lambda model: learn(model, X, Y, sample_weight=np.ones((6, 1))), "(6, 1)", "(6,)")


@every_model
@pytest.mark.parametrize("question", ASKING)
def test_wrong_shapes_are_refused_in_questions(make, question):
    ask = lambda X: lambda model: getattr(model, question)(X)  # noqa: E731
    assert_unchanged_by(make(), ask(X[0]), "2D", "1D", "reshape(1, -1)")
    assert_unchanged_by(make(), ask(X[:, :1]), "1 features", "2 features")
    assert_unchanged_by(make(), ask(np.empty((0, 2))), "0 sample")


@pytest.mark.parametrize("change", ["partial_fit", "forget"])
def test_other_columns_are_refused_later(change):
    model = NaiveBayes().fit(X, Y)
    assert_unchanged_by(model, lambda model: getattr(model, change)(X[:, :1], Y), "1 features", "2 features")


def test_scoring_with_too_few_labels_is_refused_in_words():
    assert_unchanged_by(NaiveBayes().fit(X, Y), lambda model: model.score(X, Y[:3]), "6", "3", "label")


# Sparse matrices where they cannot be read


def test_a_sparse_matrix_is_refused_by_gaussians():
    sparse = csr_array(X)
    assert_refused(lambda: GaussianDiscriminant().fit(sparse, Y), "sparse", "toarray", kind=TypeError)
    assert_refused(lambda: NaiveBayes("gaussian").fit(sparse, Y), "sparse", "toarray", "multinomial")
    for name in ("naive Bayes", "full", "mixed", "poisson", "categorical"):
        for question in ("predict", "log_density"):
            ask = lambda model, q=question: getattr(model, q)(sparse)  # noqa: E731
            assert_unchanged_by(FITTED[name](), ask, "sparse", "toarray", kind=TypeError)
        learn = lambda model: model.partial_fit(sparse, Y)  # noqa: E731
        assert_unchanged_by(FITTED[name](), learn, "sparse", "toarray", kind=TypeError)


def test_a_sparse_matrix_for_some_columns_only_is_never_read_by_the_wrong_column():
    """Words in columns 1 and 2 only: a sparse row of column 0 must not be taken for a word."""
    dense = np.array([[9.0, 5, 0], [9, 4, 1], [9, 0, 5], [9, 1, 4]])
    model = NaiveBayes(["ignore", "multinomial", "multinomial"]).fit(dense, [0, 0, 1, 1])
    question = np.array([[3.0, 0, 0]])
    want = model.predict_proba(question)
    try:
        got = model.predict_proba(csr_array(question))
    except (TypeError, ValueError):
        return
    np.testing.assert_array_equal(got, want)


# Weights


@pytest.mark.parametrize(("weight", "words"), [(-1.0, "-1.0"), (np.nan, "nan"), (np.inf, "inf")])
@every_model
@every_way
def test_a_bad_weight_is_refused(make, learn, weight, words):
    weights = np.array([1.0, 1, weight, 1, 1, 1])
    assert_unchanged_by(make(), lambda model: learn(model, X, Y, sample_weight=weights), words, "index 2")


@every_model
@every_way
def test_weights_of_nothing_but_zeros_are_refused(make, learn):
    assert_unchanged_by(make(), lambda model: learn(model, X, Y, sample_weight=np.zeros(6)), "zeros", "positive")
