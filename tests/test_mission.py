"""The worked examples of the lecture notes, as listed in MISSION.md."""

import numpy as np
import pytest

from likely import GaussianDiscriminant, NaiveBayes, native
from likely.data.table import read_table

REVIEWS = [
    ("just plain boring", "-"),
    ("entirely predictable and lacks energy", "-"),
    ("no surprises and very few laughs", "-"),
    ("very powerful", "+"),
    ("the most fun film of the summer", "+"),
]
WORDS = sorted({word for text, _ in REVIEWS for word in text.split()})


def bag(text: str) -> list[int]:
    """Count the known words; a word never seen is ignored."""
    return [text.split().count(word) for word in WORDS]


@pytest.fixture
def reviews() -> NaiveBayes:
    X = np.array([bag(text) for text, _ in REVIEWS])
    return NaiveBayes("multinomial", smoothing=1.0).fit(X, [label for _, label in REVIEWS])


def test_reviews_have_20_words_and_14_and_9_tokens(reviews):
    assert len(WORDS) == 20
    assert reviews.classes_.tolist() == ["+", "-"]
    lengths = reviews.joint_.densities[0].length * reviews.class_count_
    np.testing.assert_allclose(lengths, [9, 14], rtol=1e-15)
    np.testing.assert_allclose(reviews.priors_, [2 / 5, 3 / 5], rtol=1e-15)


def test_predictable_with_no_fun_is_negative(reviews):
    x = [bag("predictable with no fun")]
    assert sum(x[0]) == 3  # "with" is unknown
    plus, minus = np.exp(reviews.joint_.log_joint(read_table(x)))[0]
    assert minus == pytest.approx(3 / 5 * (2 * 2 * 1) / 34**3, rel=1e-13)
    assert minus == pytest.approx(6.1062e-05, abs=5e-10)
    assert plus == pytest.approx(2 / 5 * (1 * 1 * 2) / 29**3, rel=1e-13)
    assert plus == pytest.approx(3.2802e-05, abs=5e-10)
    assert reviews.predict(x).tolist() == ["-"]
    assert reviews.predict_proba(x)[0, 1] == pytest.approx(0.65054, abs=5e-6)
    assert reviews.log_density(x)[0] == pytest.approx(np.log(plus + minus), rel=1e-14)


def test_the_linear_form_of_the_reviews_holds_the_log_odds_of_each_word(reviews):
    theta, theta0 = reviews.linear_form()
    no = WORDS.index("no")
    assert theta[1, no] - theta[0, no] == pytest.approx(np.log((2 / 34) / (1 / 29)), rel=1e-13)
    assert theta0[1] - theta0[0] == pytest.approx(np.log(3 / 2), rel=1e-14)
    told = reviews.explain([bag("predictable with no fun")], "-", "+")
    assert told.cells[0, no] == pytest.approx(np.log((2 / 34) / (1 / 29)), rel=1e-13)
    assert told.log_odds[0] == pytest.approx(np.log(0.65054 / (1 - 0.65054)), abs=5e-5)


def test_many_documents_collapse_into_one_bag():
    X = np.array([bag(text) for text, _ in REVIEWS])
    y = np.array([label for _, label in REVIEWS])
    many = NaiveBayes("multinomial").fit(X, y)
    one = NaiveBayes("multinomial").fit([X[y == "+"].sum(axis=0), X[y == "-"].sum(axis=0)], ["+", "-"])
    np.testing.assert_array_equal(many.joint_.densities[0].log_shares, one.joint_.densities[0].log_shares)


def test_bags_of_animals_and_flowers():
    """Words dog, cat, tulip, rose; the parameters come from counts in the same proportions, unsmoothed."""
    model = NaiveBayes("multinomial", smoothing=0.0, priors="uniform")
    model.fit([[50, 40, 5, 5], [10, 10, 50, 30]], ["animals", "flowers"])
    x = [[3, 2, 1, 0]]  # dog dog cat dog cat tulip
    given_class = np.exp(model.joint_.log_joint(read_table(x)))[0] / 0.5
    np.testing.assert_allclose(given_class, [0.001, 5e-06], rtol=1e-13)
    assert model.predict(x).tolist() == ["animals"]


def test_a_prior_of_one_pseudo_count_per_word_has_its_mode_at_the_shares():
    """θ = (n + λ) / Σ(n + λ): with no data at all, λ / Σλ."""
    smoothing = [4.0, 3.0, 2.0, 1.0]
    model = NaiveBayes("multinomial", smoothing=smoothing).fit([[0, 0, 0, 0], [5, 0, 0, 0]], ["a", "b"])
    shares = np.exp(model.joint_.densities[0].log_shares.T)
    np.testing.assert_allclose(shares, [[0.4, 0.3, 0.2, 0.1], [9 / 15, 3 / 15, 2 / 15, 1 / 15]], rtol=1e-14)


def test_survey_of_103_yes_54_no_and_25_without_an_answer():
    answers = np.repeat([1.0, 0.0, np.nan], [103, 54, 25])[:, None]
    for family in ("bernoulli", "categorical"):
        model = NaiveBayes([family], smoothing=0.0).fit(answers, np.zeros(182, dtype=int))
        assert model.joint_.densities[0].shares[0, 1] == pytest.approx(103 / 157, rel=1e-15)


def test_softmax():
    rows = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    native.posterior_in_place(rows, np.log(np.full(3, 1 / 3)), False)
    np.testing.assert_allclose(rows[0], [0.0900, 0.2447, 0.6652], atol=5e-5)
    np.testing.assert_allclose(rows[1], [2.06e-09, 4.54e-05, 0.99995], rtol=1e-3)


def two_classes(d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (30, d)), rng.normal(2, 1.5, (50, d))])
    return X, np.repeat([0, 1], [30, 50])


def test_spherical_gaussian_divides_by_rows_times_dimensions():
    X, y = two_classes()
    model = GaussianDiscriminant("spherical").fit(X, y)
    for c in (0, 1):
        x = X[y == c]
        want = ((x - x.mean(axis=0)) ** 2).sum() / (3 * len(x))
        np.testing.assert_allclose(model.covariances_[c], want, rtol=1e-13)


def test_equal_variance_makes_the_boundary_linear_with_minus_the_norms_in_its_offset():
    """θ = (μ₊ − μ₋)/σ² and θ₀ = −(‖μ₊‖² − ‖μ₋‖²)/2σ² + log π₊/π₋ (000 has the wrong sign)."""
    X, y = two_classes()
    model = GaussianDiscriminant("spherical", tied=True).fit(X, y)
    (minus, plus), variance = model.means_, model.covariances_[0]
    theta, theta0 = model.linear_form()
    np.testing.assert_allclose(theta[1] - theta[0], (plus - minus) / variance, rtol=1e-12)
    offset = -(plus @ plus - minus @ minus) / (2 * variance) + np.log(50 / 30)
    assert theta0[1] - theta0[0] == pytest.approx(offset, rel=1e-12)
    assert offset < 0 < plus @ plus - minus @ minus
    np.testing.assert_allclose(X @ (theta[1] - theta[0]) + offset, model.decision_function(X), rtol=1e-11, atol=1e-11)


def test_posterior_of_two_classes_is_the_sigmoid_of_the_log_odds():
    X, y = two_classes()
    for model in (GaussianDiscriminant(tied=True, shrinkage=0.0), GaussianDiscriminant(shrinkage=0.0), NaiveBayes()):
        odds = model.fit(X, y).decision_function(X)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)), rtol=1e-12)


def test_unequal_variances_make_the_boundary_quadratic():
    X, y = two_classes()
    for covariance in ("spherical", "diagonal", "full"):
        model = GaussianDiscriminant(covariance, shrinkage=0.0).fit(X, y)
        with pytest.raises(ValueError, match="expected a boundary that is linear"):
            model.linear_form()
        A, b, c = model.quadratic_form()
        scores = np.einsum("cij,ni,nj->nc", A, X, X) + X @ b.T + c
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], model.decision_function(X), rtol=1e-11, atol=1e-11)


def test_missing_cells_are_left_out_of_training_and_of_prediction():
    """Each estimate uses the cells that are there; a row without a cell gets the class weights."""
    X = np.array([[1.0, 10.0], [3.0, np.nan], [np.nan, 30.0], [5.0, 1.0], [9.0, 3.0]])
    model = NaiveBayes().fit(X, [0, 0, 0, 1, 1])
    np.testing.assert_allclose(model.joint_.densities[0].mean, [[2.0, 20.0], [7.0, 2.0]], rtol=1e-15)
    np.testing.assert_allclose(model.joint_.densities[0].variance, [[1.0, 100.0], [4.0, 1.0]], rtol=1e-15)
    np.testing.assert_allclose(model.predict_proba([[np.nan, np.nan]]), [[0.6, 0.4]], rtol=1e-15)


def test_mixed_columns_side_by_side():
    """A real, a yes/no and a categorical column: the log-odds of the three add up."""
    X = np.array([[1.0, 1, 2], [2.0, 1, 2], [3.0, 0, 5], [11.0, 0, 5], [12.0, 1, 7], [13.0, 0, 7]])
    y = [0, 0, 0, 1, 1, 1]
    both = NaiveBayes(["gaussian", "bernoulli", "categorical"]).fit(X, y)
    alone = [NaiveBayes([f]).fit(X[:, [j]], y) for j, f in enumerate(["gaussian", "bernoulli", "categorical"])]
    odds = sum(model.decision_function(X[:, [j]]) for j, model in enumerate(alone))  # the class weights are equal
    np.testing.assert_allclose(both.decision_function(X), odds, rtol=1e-13)
