"""Parameters of the estimators: what they mean, and what is refused."""

import numpy as np
import pytest
from refusal import X, Y, assert_refused

from likely import GaussianDiscriminant, GaussianPrior, NaiveBayes
from likely.families import Gaussian


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        ([0.5, 0.6], ["1.1", "divide"]),
        ([-0.5, 1.5], ["-0.5"]),
        ([np.nan, 1.0], ["nan"]),
        ([1 / 3] * 3, ["2", "3"]),
        ({0: 0.5, 7: 0.5}, ["[0, 1]", "7"]),
        ("equal", ["'uniform'", "'equal'"]),
    ],
)
@pytest.mark.parametrize("kind", [NaiveBayes, GaussianDiscriminant])
def test_bad_priors_are_refused(kind, priors, words):
    model = kind(priors=priors)
    assert_refused(lambda: model.fit(X, Y), *words)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("family", ["multinomial", "categorical", "bernoulli"])
@pytest.mark.parametrize("smoothing", [-1.0, np.nan, np.inf, [1.0, -2.0], np.ones((2, 2, 2))])
def test_bad_smoothing_is_refused(family, smoothing):
    assert_refused(lambda: NaiveBayes(family, smoothing=smoothing).fit(np.minimum(X, 1), Y), "smoothing")


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3)], ids=str)
def test_smoothing_of_the_wrong_shape_is_refused_with_the_shapes_that_fit(shape):
    words = np.column_stack([X, X])
    model = NaiveBayes("multinomial", smoothing=np.ones(shape))
    assert_refused(lambda: model.fit(words, Y), "smoothing", "4 numbers", "2 × 4", str(shape))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("words", [2, 4])
def test_smoothing_of_one_number_per_class_is_refused_or_means_that(words):
    """Also where there are as many words as classes, and (2, 1) could be taken for one number per word."""
    counts = np.tile(X, words // 2)
    smoothing = np.array([[1.0], [50.0]])
    model = NaiveBayes("multinomial", smoothing=smoothing)
    try:
        model.fit(counts, Y)
    except ValueError as refused:
        message = str(refused)
        assert "expected smoothing" in message
        return
    smoothed = np.array([counts[c == Y].sum(axis=0) for c in (0, 1)]) + smoothing
    want = smoothed / smoothed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(model.joint_.densities[0].log_shares.T), want, rtol=1e-13)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"covariance": "ful"}, ["'full'", "'ful'"]),
        ({"tied": 2}, ["between 0 and 1", "2"]),
        ({"shrinkage": 1.5}, ["between 0 and 1", "1.5"]),
        ({"shrinkage": "lw"}, ["'ledoit-wolf'", "'lw'"]),
        ({"covariance": "spherical", "shrinkage": 0.1}, ["spherical", "0.1"]),
        ({"covariance": "diagonal", "shrinkage": "oas"}, ["diagonal", "'oas'"]),
        ({"target": "round"}, ["'spherical'", "'round'"]),
        ({"pseudo_rows": -1}, ["pseudo_rows", "-1"]),
        ({"pseudo_rows": np.inf}, ["pseudo_rows", "inf"]),
        ({"pseudo_rows": GaussianPrior(0.0, 1.0, -1)}, ["rows", "-1"]),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_with_their_value(settings, words):
    model = GaussianDiscriminant(**settings)
    assert_refused(lambda: model.fit(X, Y), *words)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("gauss", ["'gaussian'", "'gauss'"]),
        (["gaussian"], ["2 columns", "1"]),
        ({"age": "gaussian"}, ["0 to 1", "'age'"]),
        ({7: "gaussian"}, ["0 to 1", "7"]),
        (Gaussian("full"), ["GaussianDiscriminant"]),
        (["gaussian", 3], ["3"]),
    ],
)
def test_bad_families_are_refused(columns, words):
    assert_refused(lambda: NaiveBayes(columns).fit(X, Y), *words)


@pytest.mark.parametrize(
    ("prior", "word"),
    [
        (GaussianPrior([0.0] * 3, 1.0, 1), "2 columns"),
        (GaussianPrior(0.0, [[1.0, 0.0, 0.0]] * 3, 1), "2 columns"),
        (GaussianPrior(float("nan"), 1.0, 1), "nan"),
        (GaussianPrior(0.0, -1.0, 1), "-1"),
        (GaussianPrior(0.0, [[1.0, 5.0], [5.0, 1.0]], 100), "5.0"),
        (GaussianPrior(0.0, [[1.0, 0.5], [0.0, 1.0]], 1), "0.5"),
    ],
    ids=["mean of 3", "covariance of 3", "NaN mean", "negative variance", "not positive definite", "not symmetric"],
)
def test_a_prior_that_is_no_gaussian_is_refused_as_a_prior(prior, word):
    assert_refused(lambda: GaussianDiscriminant(pseudo_rows=prior).fit(X, Y), "prior", word)
