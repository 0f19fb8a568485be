"""Temperature, class bias and the weights of members: least log-loss, never worse than before."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from likely.ensemble.calibration import LEAST, Calibration, log_loss
from likely.persistence.codec import decode, encode


def scores(rows: int = 400, classes: int = 3, members: int = 2, seed: int = 0, sharpness: float = 4.0):
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, classes, rows)
    truth = np.eye(classes)[codes]
    found = [
        log_softmax(sharpness * (truth + generator.standard_normal((rows, classes))), axis=1) for _ in range(members)
    ]
    return found, codes


def penalised(parameters, found, codes, weights):
    m = len(found)
    total = sum(w * np.maximum(score, LEAST) for w, score in zip(parameters[:m], found, strict=True)) + parameters[m:]
    loss = -log_softmax(total, axis=1)[np.arange(len(codes)), codes] @ weights
    return loss + 0.5 * ((parameters[:m] - 1 / m) ** 2).sum() + 0.5 * (parameters[m:] ** 2).sum()


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_least_loss_is_found(members: int, classes: int, weighted: bool) -> None:
    found, codes = scores(200, classes, members)
    weights = np.random.default_rng(1).random(200) + 0.1 if weighted else None
    one_each = np.ones(200) if weights is None else weights
    fitted = Calibration.fitted(found, codes, weights)
    start = np.concatenate([np.full(members, 1 / members), np.zeros(classes)])
    bounds = [(0, None)] * members + [(None, None)] * classes
    best = minimize(penalised, start, (found, codes, one_each), bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9})
    reached = np.concatenate([fitted.weights, fitted.bias])
    assert penalised(reached, found, codes, one_each) <= best.fun + 1e-9 * abs(best.fun)
    np.testing.assert_allclose(reached, best.x, atol=1e-3)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 10.0])
def test_never_worse_than_before(sharpness: float) -> None:
    (score,), codes = scores(members=1, sharpness=sharpness)
    fitted = Calibration.fitted([score], codes)
    rows = np.arange(len(codes))
    after = fitted.weights[0] * np.maximum(score, LEAST) + fitted.bias
    assert -log_softmax(after, axis=1)[rows, codes].mean() <= -score[rows, codes].mean()
    assert log_loss(score, codes) <= -score[rows, codes].mean()


def test_a_member_that_misleads_gets_no_weight() -> None:
    (good, bad), codes = scores()
    fitted = Calibration.fitted([good, log_softmax(-bad, axis=1)], codes)
    assert fitted.weights[0] > 0
    assert fitted.weights[1] == 0


def test_order_of_rows_and_classes_does_not_matter() -> None:
    found, codes = scores()
    fitted = Calibration.fitted(found, codes)
    rows, places = np.random.default_rng(1).permutation(400), np.array([2, 0, 1])
    other = Calibration.fitted([score[np.ix_(rows, places)] for score in found], np.argsort(places)[codes[rows]])
    np.testing.assert_allclose(other.weights, fitted.weights, rtol=1e-6)
    np.testing.assert_allclose(other.bias, fitted.bias[places], rtol=1e-5, atol=1e-8)


def test_a_weight_of_2_is_a_row_twice() -> None:
    found, codes = scores()
    twice = np.arange(400) % 3 == 0
    rows = np.concatenate([np.arange(400), np.flatnonzero(twice)])
    repeated = Calibration.fitted([score[rows] for score in found], codes[rows])
    weighed = Calibration.fitted(found, codes, 1.0 + twice)
    np.testing.assert_allclose(weighed.weights, repeated.weights, rtol=1e-8)
    np.testing.assert_allclose(weighed.bias, repeated.bias, rtol=1e-6, atol=1e-9)
    assert weighed.rows == repeated.rows


def test_probabilities_sum_to_1_and_none_is_0() -> None:
    shares = np.array([0.7, 0.2, 0.1])
    p = np.exp(
        Calibration(np.array([50.0]), np.zeros(3), 9.0, np.ones(1)).log_posterior(
            [np.array([[0.0, -60.0, -np.inf]])], shares
        )
    )
    np.testing.assert_allclose(p, [[0.97, 0.02, 0.01]], rtol=1e-12)


def test_without_bias_it_is_a_temperature() -> None:
    (score,), codes = scores(members=1)
    fitted = Calibration.fitted([score], codes, biased=False)
    assert not fitted.bias.any()
    expected = -np.log(softmax(fitted.weights[0] * score, axis=1)[np.arange(400), codes]).mean()
    assert log_loss(score, codes) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_perfect_scores_and_one_class(rows: int) -> None:
    codes = np.arange(rows) % 2
    perfect = np.where(np.eye(2)[codes] > 0, 0.0, -np.inf)
    fitted = Calibration.fitted([perfect], codes)
    assert np.isfinite(fitted.weights).all()
    assert np.isfinite(fitted.bias).all()
    alone = Calibration.fitted([np.zeros((rows, 1))], np.zeros(rows, dtype=int))
    assert alone.log_posterior([np.zeros((1, 1))], np.ones(1)).tolist() == [[0.0]]


def hidden_loss(parameters, found, codes, weights, fitted, known, shares):
    """Return the loss of rows of which a share of the cells is known, with the penalty of v."""
    total = known[:, None] * fitted.bias + np.outer((1 - known) * (1 - parameters.sum()), np.log(shares))
    for w, v, score in zip(fitted.weights, parameters, found, strict=True):
        total = total + (known * w + (1 - known) * v)[:, None] * np.maximum(score, LEAST)
    loss = -log_softmax(total, axis=1)[np.arange(len(codes)), codes] @ weights
    return loss + 0.5 * ((parameters - 1 / len(found)) ** 2).sum()


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_hidden_cells_are_weighed_by_the_least_loss(members: int, weighted: bool) -> None:
    found, codes = scores(300, 3, members)
    generator = np.random.default_rng(1)
    known, shares = generator.random(300), np.array([0.5, 0.3, 0.2])
    weights = generator.random(300) + 0.1 if weighted else None
    one_each = np.ones(300) if weights is None else weights
    complete = Calibration.fitted(*scores(300, 3, members, seed=1))
    fitted = complete.with_hidden(found, known, codes, weights, shares)
    given = (found, codes, one_each, complete, known, shares)
    best = minimize(hidden_loss, np.full(members, 1 / members), given, bounds=[(0, None)] * members)
    assert hidden_loss(fitted.hidden_weights, *given) <= best.fun + 1e-9 * abs(best.fun)


def test_known_cells_lead_from_class_shares_to_the_complete_calibration() -> None:
    found, codes = scores(300, 3, 2)
    shares = np.array([0.5, 0.3, 0.2])
    fitted = Calibration.fitted(found, codes).with_hidden(found, np.full(300, 0.5), codes, None, shares)
    assert (fitted.hidden_weights != fitted.weights).all()
    complete = fitted.log_posterior(found, shares)
    np.testing.assert_array_equal(fitted.log_posterior(found, shares, np.ones(300)), complete)
    nothing = [np.tile(np.log(shares), (2, 1))] * 2
    np.testing.assert_allclose(np.exp(fitted.log_posterior(nothing, shares, np.zeros(2))), [shares] * 2, rtol=1e-12)


def test_description_gives_it_back() -> None:
    found, codes = scores()
    fitted, arrays = Calibration.fitted(found, codes), {}
    again = decode(encode(fitted, "c", arrays), Calibration, "c", arrays)
    shares = np.full(3, 1 / 3)
    np.testing.assert_array_equal(again.log_posterior(found, shares), fitted.log_posterior(found, shares))
    known = np.linspace(0, 1, len(codes))
    np.testing.assert_array_equal(again.log_posterior(found, shares, known), fitted.log_posterior(found, shares, known))
