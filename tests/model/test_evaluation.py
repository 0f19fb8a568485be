"""What is measured on rows that a model has not seen."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, log_loss

from likely import GaussianDiscriminant, NaiveBayes
from likely.model.evaluation import Evaluation, shuffled_folds

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("model", [NaiveBayes(), GaussianDiscriminant(), GaussianDiscriminant(tied=True)], ids=repr)
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_equals_fitting_every_fold(model, holes):
    x = np.where(np.random.default_rng(0).random(X.shape) < holes, np.nan, X)
    result = model.evaluate(x, Y, folds=5)
    places = shuffled_folds(Y, 5, 0)
    for fold in range(5):
        held = places == fold
        want = type(model)(**model.get_params()).fit(x[~held], Y[~held]).predict_proba(x[held])
        np.testing.assert_allclose(result.probabilities[held], want, atol=1e-12)
    assert not hasattr(model, "classes_")


def test_measures_are_scikit_learns():
    result = NaiveBayes().evaluate(X, Y, sample_weight=np.linspace(0.5, 2, 150))
    p, w = result.probabilities, result.weights
    assert result.accuracy == pytest.approx(accuracy_score(Y, p.argmax(axis=1), sample_weight=w))
    assert result.log_loss == pytest.approx(log_loss(Y, p, sample_weight=w))
    assert result.brier == pytest.approx(brier_score_loss(Y, p, sample_weight=w, labels=[0, 1, 2], scale_by_half=False))
    np.testing.assert_allclose(result.confusion, confusion_matrix(Y, p.argmax(axis=1), sample_weight=w))
    assert "true \\ predicted" in str(result)


def test_calibration_error():
    p = np.array([[0.8, 0.2]] * 10)
    right = Evaluation(np.array([0, 1]), np.array([0] * 8 + [1] * 2), p, np.ones(10), 2)
    sure = Evaluation(np.array([0, 1]), np.array([0] * 5 + [1] * 5), p, np.ones(10), 2)
    assert right.calibration_error == pytest.approx(0)
    assert sure.calibration_error == pytest.approx(0.3)


def test_sparse_rows():
    counts = np.floor(X)
    dense, sparse = (NaiveBayes("multinomial").evaluate(x, Y, folds=3) for x in (counts, csr_array(counts)))
    np.testing.assert_allclose(dense.probabilities, sparse.probabilities, atol=1e-12)


@pytest.mark.parametrize(("folds", "what"), [(1, "2 folds or more"), (2.5, "2 folds or more"), (200, "as many rows")])
def test_folds_that_cannot_be(folds, what):
    with pytest.raises(ValueError, match=what):
        NaiveBayes().evaluate(X, Y, folds=folds)


def test_folds_have_their_share_of_each_class():
    counts = np.array([np.bincount(Y[shuffled_folds(Y, 10, 3) == fold], minlength=3) for fold in range(10)])
    assert (counts == 5).all()
