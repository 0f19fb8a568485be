"""Rows drawn given some cells, cells filled in, and the probability of a column other than the label."""

import numpy as np
import pytest

from likely import Classifier, GaussianDiscriminant, NaiveBayes

generator = np.random.default_rng(0)
Y = np.repeat(["a", "b"], 300)
X = np.column_stack(
    [generator.normal(np.where(Y == "a", 0, 4)), generator.integers(0, 2, 600), generator.integers(3, 6, 600)]
).astype(float)
X[:, 2] += Y == "b"
MIXED = NaiveBayes(["gaussian", "bernoulli", "categorical"])


def test_sample_given_cells():
    model = MIXED.fit(X, Y)
    x, y = model.sample(20_000, 0, given={0: 0.5, 2: 4})
    assert (x[:, 0] == 0.5).all()
    assert (x[:, 2] == 4).all()
    want = model.predict_proba([[0.5, np.nan, 4.0]])[0]
    assert abs((y == "a").mean() - want[0]) < 0.01
    with pytest.raises(ValueError, match="expected a column among 0 to 2, got 7"):
        model.sample(1, given={7: 1.0})


def test_sample_given_cells_of_a_full_covariance():
    rows = generator.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 500)
    model = GaussianDiscriminant().fit(rows, np.arange(500) % 2)
    x, y = model.sample(20_000, 0, given={0: 2.0})
    for c in (0, 1):
        mean, covariance = model.joint_.densities[0].mean[c], model.joint_.densities[0].covariance[c]
        slope = covariance[0, 1] / covariance[0, 0]
        drawn = x[y == c, 1]
        assert abs(drawn.mean() - (mean[1] + slope * (2.0 - mean[0]))) < 0.03
        assert abs(drawn.var() - (covariance[1, 1] - slope * covariance[0, 1])) < 0.02


@pytest.mark.parametrize("how", ["mean", "draw"])
def test_impute_leaves_what_is_there(how):
    model = MIXED.fit(X, Y)
    holes = X.copy()
    gone = generator.random(X.shape) < 0.3
    holes[gone] = np.nan
    filled = model.impute(holes, how=how, random_state=0)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~gone], X[~gone])
    assert set(filled[:, 1]) <= {0.0, 1.0}
    assert set(filled[:, 2]) <= {3.0, 4.0, 5.0, 6.0}


def test_impute_uses_labels_that_are_known():
    model = MIXED.fit(X, Y)
    filled = model.impute(np.full((3, 3), np.nan), ["a", None, "b"])[:, 0]
    means = [X[label == Y, 0].mean() for label in ("a", "b")]
    np.testing.assert_allclose(filled, [means[0], np.mean(means), means[1]], rtol=1e-12)
    with pytest.raises(ValueError, match="expected labels among"):
        model.impute(X[:1], ["c"])
    with pytest.raises(ValueError, match="for each of the 1 rows"):
        model.impute(X[:1], ["a", "b"])
    with pytest.raises(ValueError, match="how='mean' or 'draw'"):
        model.impute(X[:1], how="median")


def test_the_label_is_only_a_column():
    model = MIXED.fit(X, Y)
    with_label = np.column_stack([Y == "b", X])
    other = NaiveBayes(["bernoulli", "gaussian", "bernoulli", "categorical"]).fit(with_label[:, [0, 1, 2, 3]], X[:, 1])
    assert model.values_of(2).tolist() == [3, 4, 5, 6]
    assert other.values_of(0).tolist() == [0, 1]
    p = model.predict_proba(X[:5], of=2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    # p(x₂ | x₀, x₁) = Σ_y p(y | x₀, x₁) p(x₂ | y), by the model's own answers
    unknown = X[:5].copy()
    unknown[:, 2] = np.nan
    shares = [(X[label == Y, 2][:, None] == model.values_of(2)).sum(axis=0) for label in ("a", "b")]
    shares = np.array([(s + 1) / (s + 1).sum() for s in shares])
    np.testing.assert_allclose(p, model.predict_proba(unknown) @ shares, rtol=1e-12)
    with pytest.raises(ValueError, match="expected a column of categories or of 0 and 1, got column 0"):
        model.predict_proba(X[:5], of=0)


def test_an_unknown_category_cannot_be_given():
    rows = [{"x": 1.0 + i, "sex": ("female", "male")[i % 2], "y": "ab"[i % 2]} for i in range(8)]
    model = NaiveBayes().fit(rows, "y")
    with pytest.raises(
        ValueError, match="expected one of the categories of 'sex' in given=, got 'femal': did you mean"
    ):
        model.sample(2, given={"sex": "femal"})


def test_an_emptied_model_shows_itself_and_answers_nothing():
    model = Classifier().fit([[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"]).emptied()
    assert "0 rows" in str(model)
    with pytest.raises(ValueError, match="a model that has learned none"):
        model.predict([[1.0]])


@pytest.mark.parametrize("kind", ["text", "category", "number"])
def test_a_missing_cell_is_explained(kind):
    """Where cells are missing more often in one class, that a cell is missing says something, and is shown."""
    rng = np.random.default_rng(0)
    words = ["good", "bad", "film", "very", "plot", "actor", "was", "it", "music", "dull", "lovely", "fun"]
    value = {
        "text": lambda: " ".join(rng.choice(words, 6)),
        "category": lambda: rng.choice(["red", "blue"]).item(),
        "number": lambda: rng.normal(),
    }[kind]
    y = rng.integers(0, 2, 200)
    cells = [None if rng.random() < 0.1 + 0.5 * label else value() for label in y]
    model = Classifier().fit({"x": (rng.normal(size=200) + y).tolist(), "cell": cells}, y)
    shown = str(model.explain([{"x": 1.0, "cell": None}])).splitlines()
    assert [line.split()[1] for line in shown if line.startswith("cell")] == ["missing"]
