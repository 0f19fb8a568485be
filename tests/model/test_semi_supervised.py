"""Labels partly known: laws, greatest likelihood, and that rows without a label help where they can."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.datasets import load_iris, load_wine

import likely
from likely import Classifier, GaussianDiscriminant, NaiveBayes, TextClassifier
from likely.data.labels import read_assignment, read_labels
from likely.data.table import read_table
from likely.estimators.fitting import begin
from likely.learn.hidden import Hidden, em
from likely.model.semi_supervised import PartiallyLabelled


def hidden(y, share, seed=0, least=2):
    """Return labels of which so many of each class are left."""
    y = np.asarray(y)
    order = np.random.default_rng(seed).permutation(len(y))
    left = np.full(len(y), None, dtype=object)
    for label in np.unique(y):
        rows = order[y[order] == label]
        rows = rows[: max(round(share * len(rows)), least)]
        left[rows] = y[rows]
    return left


def blobs(n=400, seed=0):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    return generator.normal(size=(n, 2)) + 4.0 * y[:, None], np.array(["left", "right"])[y]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_label_in_a_list_is_minus_one(missing):
    classes, codes = read_labels(["b", missing, "a"], 3, partially_labelled=True)
    assert classes.tolist() == ["a", "b"]
    assert codes.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1.0, np.nan, 0.0]),
        [1, None, 0],
        pd.Series([1, None, 0], dtype="Int64"),
        pd.Series([True, None, False], dtype="boolean"),
    ],
)
def test_missing_labels_of_other_types(labels):
    classes, codes = read_labels(labels, 3, partially_labelled=True)
    assert [int(label) for label in classes] == [0, 1]
    assert codes.tolist() == [1, -1, 0]


def test_labels_that_are_all_missing_are_refused():
    with pytest.raises(ValueError, match="expected a label for some rows, got 2 rows without any"):
        NaiveBayes().fit([[1.0], [2.0]], [None, None])


@pytest.mark.parametrize("unlabelled", [-1, np.inf, np.nan, "some", True, [1.0]])
def test_a_bad_weight_of_rows_without_a_label_is_refused(unlabelled):
    with pytest.raises(ValueError, match="expected unlabelled='auto', None, or how much"):
        NaiveBayes(unlabelled=unlabelled).fit([[1.0], [2.0]], ["a", "b"])


def test_with_none_each_row_must_have_a_label():
    with pytest.raises(ValueError, match="expected a label for each row, got None at index 1"):
        NaiveBayes(unlabelled=None).fit([[1.0], [2.0]], ["a", None])


def test_faces_want_a_label_for_each_row():
    from likely.sklearn import GaussianNB

    with pytest.raises(ValueError, match="expected a label for each row"):
        GaussianNB().fit([[1.0], [2.0], [3.0]], ["a", None, "b"])


@pytest.mark.parametrize("make", [NaiveBayes, GaussianDiscriminant, Classifier])
def test_without_weight_they_are_left_out(make):
    X, y = blobs()
    left = hidden(y, 0.1)
    known = np.array([label is not None for label in left])
    with pytest.warns(UserWarning, match=r"360 rows without a label are left out"):
        model = make(unlabelled=0).fit(X, left)
    np.testing.assert_array_equal(model.predict_proba(X), make().fit(X[known], left[known]).predict_proba(X))
    assert model.unlabelled_ is None


def test_a_few_rows_without_a_label_are_left_out_by_themselves():
    X, y = blobs()
    left = y.astype(object)
    left[:3] = None
    with pytest.warns(UserWarning, match="3 rows without a label are left out"):
        assert NaiveBayes().fit(X, left).unlabelled_ is None


def test_the_greatest_likelihood_of_labels_partly_known():
    """Beside direct maximisation of Σ log p(x, y) + ½ Σ log p(x), by scipy."""
    generator = np.random.default_rng(1)
    y = np.repeat([0, 1], 30)
    x = generator.normal(size=60) * np.where(y == 1, 0.5, 1.0) + 1.7 * y
    left = hidden(y, 0.2)
    known = np.array([label is not None for label in left])
    model = GaussianDiscriminant("diagonal", unlabelled=0.5).fit(x[:, None], left)

    def surprise(parameters):
        share, means, deviations = 1 / (1 + np.exp(-parameters[0])), parameters[1:3], np.exp(parameters[3:])
        joint = np.log([1 - share, share]) + norm.logpdf(x[:, None], means, deviations)
        return -joint[known, y[known]].sum() - 0.5 * np.logaddexp(joint[~known, 0], joint[~known, 1]).sum()

    begin = [0.0, *model.means_.ravel(), *np.log(model.covariances_.ravel()) / 2]
    best = minimize(surprise, begin, method="BFGS", options={"gtol": 1e-9})
    found = [np.log(model.priors_[1] / model.priors_[0]), *begin[1:]]
    assert surprise(np.array(found)) - best.fun < 1e-4
    np.testing.assert_allclose(found, best.x, atol=0.02)


@pytest.mark.parametrize("columns", ["gaussian", {"a": "gaussian", "b": "category"}])
def test_no_step_lowers_the_likelihood(columns):
    X, y = blobs(200)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 2, "high", "low")})
    model = NaiveBayes(columns if isinstance(columns, dict) else "auto").fit(frame, y)
    table = model.fitted().reader.read(frame)
    rows = Hidden(table, read_assignment(hidden(y, 0.05), None, 200, partially_labelled=True).codes)
    known = model.fitted()
    told = em(rows, known.statistics, known.parts, tolerance=0.0, most=20).log_likelihoods
    assert len(told) > 3
    assert (np.diff(told) > -1e-9 * abs(told[-1])).all()


def test_given_class_weights_stay():
    X, y = blobs()
    model = NaiveBayes(priors=[0.3, 0.7], unlabelled=1).fit(X, hidden(y, 0.05))
    np.testing.assert_allclose(model.priors_, [0.3, 0.7])


def test_a_class_of_little_weight_is_kept():
    X, y = blobs()
    weights = np.where(y == "left", 1e-6, 1.0)
    model = NaiveBayes(unlabelled=1.0).fit(X, hidden(y, 0.05), weights)
    assert model.classes_.tolist() == ["left", "right"]


@pytest.mark.parametrize("make", [lambda **o: GaussianDiscriminant(tied=True, **o), Classifier])
def test_rows_without_a_label_and_weight_change_nothing(make):
    X, y = blobs()
    left, weights = hidden(y, 0.05), np.ones(len(y))
    more = np.vstack([X, X[:50] + 9])
    one = make(unlabelled=1.0).fit(X, left)
    two = make(unlabelled=1.0).fit(
        more, np.concatenate([left, np.full(50, None)]), np.concatenate([weights, np.zeros(50)])
    )
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_they_help_a_discriminant_where_groups_lie_apart():
    """Wine with 2 labels of each class: what the others look like tells the rest."""
    X, y = load_wine(return_X_y=True)
    left = hidden(y, 0.0, seed=3)
    alone = GaussianDiscriminant(tied=True, unlabelled=0.0)
    with pytest.warns(UserWarning, match="left out"):
        alone.fit(X, left)
    model = GaussianDiscriminant(tied=True, unlabelled=1.0).fit(X, left)
    assert model.score(X, y) > max(0.95, alone.score(X, y))


def test_the_weight_is_chosen_by_labels_that_are_held_back():
    X, y = load_iris(return_X_y=True)
    model = GaussianDiscriminant(tied=True).fit(X, hidden(y, 0.1))
    assert model.unlabelled_ in (0.0, 1.0)
    # Classes that the columns do not tell apart: two groups of rows are there, and say nothing of the labels.
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 1)) + np.repeat([0.0, 6.0], 300)[:, None]
    noise = generator.integers(0, 2, 600)
    with pytest.warns(UserWarning, match="540 rows without a label are left out: labels that are held back"):
        assert NaiveBayes().fit(X, hidden(noise, 0.1)).unlabelled_ == 0.0


def topics(n, seed):
    """Return texts of two topics with words in common, and the topic of each."""
    generator = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(120)])
    y = generator.integers(0, 2, n)
    chances = np.ones((2, 120))
    chances[0, :40], chances[1, 40:80] = 4.0, 4.0
    chances /= chances.sum(axis=1, keepdims=True)
    return [" ".join(generator.choice(words, 20, p=chances[c])) for c in y], np.array(["x", "y"])[y]


@pytest.mark.parametrize("settings", [{}, {"calibrate": False, "ngrams": 1}])
def test_they_help_with_texts(settings, tmp_path):
    texts, y = topics(900, 0)
    new, truth = topics(500, 1)
    left = hidden(y, 0.01)
    with pytest.warns(UserWarning, match="left out"):
        alone = TextClassifier(unlabelled=0, **settings).fit(texts, left)
    model = TextClassifier(**settings).fit(texts, left)
    assert model.unlabelled_ == 1.0
    assert 1 - model.score(new, truth) < 0.5 * (1 - alone.score(new, truth))
    p, alone_p = model.predict_proba(new), alone.predict_proba(new)
    rows, codes = np.arange(len(new)), (truth == "y").astype(int)
    assert np.log(p[rows, codes]).mean() > np.log(alone_p[rows, codes]).mean()
    model.save(tmp_path / "topics.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "topics.likely").predict_proba(new), p)


def test_nothing_is_calibrated_by_rows_that_were_guessed():
    X, y = blobs()
    model = Classifier(unlabelled=1.0).fit(X, hidden(y, 0.05))
    assert model.selection_.calibration.rows == sum(label is not None for label in hidden(y, 0.05))
    assert model.class_count_.sum() == pytest.approx(len(y))
    assert model.score(X, y) > 0.95


def test_labels_by_name_or_as_a_list_make_one_model():
    X, y = blobs()
    left = hidden(y, 0.05)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 0] > 2, "u", "v")})
    one = Classifier(unlabelled=1.0).fit(frame.assign(side=left), "side")
    two = Classifier(unlabelled=1.0).fit(frame, left)
    np.testing.assert_array_equal(one.predict_proba(frame), two.predict_proba(frame))
    assert one.unlabelled_ == two.unlabelled_ == 1.0


def test_a_file_whose_labels_come_first(tmp_path):
    X, y = blobs(4000)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "side": y})
    frame.loc[40:, "side"] = None
    frame.to_csv(tmp_path / "sides.csv", index=False)
    model = NaiveBayes(unlabelled=1.0).fit(tmp_path / "sides.csv", "side")
    assert model.class_count_.sum() == pytest.approx(4000)
    assert (model.predict(X) == y).mean() > 0.98


@pytest.mark.parametrize("make", [NaiveBayes, Classifier])
def test_evaluation_is_of_the_rows_that_have_a_label(make):
    X, y = blobs()
    left = hidden(y, 0.1)
    model = make(unlabelled=1.0)
    found = model.evaluate(X, left, folds=4)
    assert len(found.probabilities) == 40
    assert found.accuracy > 0.9
    assert not hasattr(model, "classes_")


def test_a_model_that_cannot_be_solved_without_a_fold_leaves_them_out():
    X = np.random.default_rng(0).normal(size=(40, 3))
    left = np.full(40, None)
    left[:4] = ["a", "a", "b", "b"]
    rows = PartiallyLabelled(
        read_table(X),
        read_assignment(left, None, 40, partially_labelled=True),
        partial(begin, GaussianDiscriminant(shrinkage=0.0).plan()),
    )
    held_out = rows.held_out_loss(1.0)
    assert np.isinf(held_out.losses).all()
    assert not held_out.better_than(rows.held_out_loss(0.0))


@pytest.mark.parametrize("make", [NaiveBayes, GaussianDiscriminant, Classifier])
def test_one_label_in_all_is_enough_to_answer(make):
    X, _ = blobs(50)
    left = np.full(50, None)
    left[7] = "only"
    with pytest.warns(UserWarning, match="49 rows without a label are left out"):
        model = make().fit(X, left)
    assert set(model.predict(X)) == {"only"}


def test_categories_that_only_rows_without_a_label_have_do_not_end_the_steps():
    """Such a category costs nothing before it is known: the likelihood falls at first."""
    generator = np.random.default_rng(0)
    y = np.arange(600) % 2
    p = generator.dirichlet(np.ones(8), size=(2, 12))
    frame = pd.DataFrame(
        {f"c{j}": ["abcdefgh"[generator.choice(8, p=p[c, j])] for c in y] for j in range(12)},
    )
    left = [int(c) if i < 6 else None for i, c in enumerate(y)]
    found = NaiveBayes(unlabelled=1).fit(frame, left).predict_proba(frame)
    assert -np.log(found[np.arange(600), y])[6:].mean() < 0.06


@pytest.mark.parametrize("make", [NaiveBayes, Classifier])
def test_neither_order_nor_copies_of_rows_matter(make):
    X, y = blobs(120)
    X, left = X.round(1), hidden(y, 0.15)
    order = np.random.default_rng(0).permutation(120)
    one = make(unlabelled=1.0).fit(X, left, np.full(120, 2.0)).predict_proba(X)
    other = make(unlabelled=1.0).fit(X[order], left[order], np.full(120, 2.0)).predict_proba(X)
    twice = make(unlabelled=1.0).fit(np.vstack([X, X]), np.concatenate([left, left])).predict_proba(X)
    np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_allclose(one, twice, atol=1e-6)


def test_only_rows_that_have_a_label_are_scored():
    X, y = blobs()
    model = NaiveBayes().fit(X, y)
    left = hidden(y, 0.1)
    known = np.array([label is not None for label in left])
    assert model.score(X, left) == model.score(X[known], y[known])
    with pytest.raises(ValueError, match="expected a label for some rows"):
        model.score(X[:2], [None, None])


def test_labels_without_weight_are_refused():
    X, y = blobs(40)
    left = hidden(y, 0.1)
    weights = np.array([float(label is None) for label in left])
    with pytest.raises(ValueError, match="expected a positive weight in some row that has a label"):
        NaiveBayes(unlabelled=1).fit(X, left, weights)


def test_labels_that_are_masked_or_of_arrow_or_dates():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    masked = np.ma.masked_array([0, 1, 1], mask=[False, False, True])
    assert read_labels(masked, 3, partially_labelled=True)[1].tolist() == [0, 1, -1]
    classes, codes = read_labels(pa.array(["yes", None, "no"]), 3, partially_labelled=True)
    assert (classes.tolist(), codes.tolist()) == (["no", "yes"], [1, -1, 0])
    nullable = (pa.array([3, None, 5]), pl.Series([3, None, 5]), pd.array([3, None, 5], dtype="Int64"))
    for labels in (*nullable, pd.Series(nullable[-1]), pa.chunked_array([[3, None], [5]])):
        classes, codes = read_labels(labels, 3, partially_labelled=True)
        assert (classes.dtype.kind, classes.tolist(), codes.tolist()) == ("i", [3, 5], [0, -1, 1])
    moments = pl.Series([1, 2, None]).cast(pl.Datetime("ns"))
    assert read_labels(moments, 3, partially_labelled=True)[0].astype(np.int64).tolist() == [1, 2]
    with pytest.warns(UserWarning, match="column-vector"):
        assert read_labels(pl.DataFrame({"y": [3, 4]}), 2)[1].tolist() == [0, 1]
    dates = np.array(["2024-01-01", "NaT", "2023-01-01"], dtype="datetime64[D]")
    assert read_labels(dates, 3, partially_labelled=True)[1].tolist() == [1, -1, 0]
