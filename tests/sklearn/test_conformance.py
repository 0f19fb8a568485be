"""scikit-learn's own conformance suite, and its tools that drive an estimator from outside."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import likely
from likely import Classifier, GaussianDiscriminant, Model, NaiveBayes

ESTIMATORS = [
    Classifier(),
    Classifier(calibrate=False),
    NaiveBayes(),
    NaiveBayes("gaussian", pseudo_rows=0.5),
    GaussianDiscriminant(),
    GaussianDiscriminant(tied=True),
    GaussianDiscriminant(covariance="diagonal"),
    GaussianDiscriminant(covariance="spherical", tied=True),
    GaussianDiscriminant(shrinkage="ledoit-wolf", tied=0.5),
]
# The protocol is followed without importing scikit-learn: its base class is not there to inherit from.
NOT_OURS = "Estimator .* does not inherit from `sklearn.base.BaseEstimator`"
X, Y = load_iris(return_X_y=True)
FRAME = load_iris(as_frame=True).data


@pytest.mark.parametrize("estimator", [*ESTIMATORS, Model(), Model("tree")], ids=repr)
@pytest.mark.filterwarnings(f"ignore:{NOT_OURS}")
def test_check_estimator(estimator):
    refused = {}
    if estimator.get_params().get("shrinkage") == "ledoit-wolf":
        # scikit-learn has one tag for missing cells in fit and in predict; this shrinkage takes them in predict only.
        refused = {"check_estimators_pickle": "fits rows with NaN, whose fourth moments are not known"}
    results = check_estimator(estimator, expected_failed_checks=refused, on_fail=None, on_skip=None)
    assert len(results) > 40
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == refused.keys()
    for result in results:
        assert result["status"] != "failed", f"{result['check_name']}: {result['exception']!r}"
        if result["status"] == "skipped":
            reason = f"{result['check_name']} {result['exception']}".lower()
            assert any(word in reason for word in ("array api", "array_api", "not installed")), reason


def test_likely_does_not_import_scikit_learn():
    import subprocess
    import sys

    code = "import sys, likely; print('sklearn' in sys.modules, 'scipy' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3


# The protocol


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_cloning_keeps_parameters_and_drops_what_was_learned(estimator):
    fitted = clone(estimator).fit(X, Y)
    again = clone(fitted)
    assert again.get_params() == estimator.get_params()
    assert repr(again) == repr(estimator)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    check_is_fitted(fitted)
    assert is_classifier(fitted)


def test_parameters_are_set_by_name_and_unknown_ones_refused():
    model = GaussianDiscriminant().set_params(tied=True, shrinkage=0.1)
    assert (model.tied, model.shrinkage) == (True, 0.1)
    with pytest.raises(ValueError, match="Invalid parameter 'smooth'"):
        model.set_params(smooth=1)


def test_the_error_before_fitting_is_scikit_learns_and_ours():
    with pytest.raises(NotFittedError):
        NaiveBayes().predict(X)
    assert issubclass(likely.NotFittedError, ValueError)
    assert issubclass(likely.NotFittedError, AttributeError)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_pickled_models_predict_the_same(estimator):
    fitted = clone(estimator).fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


# Tools that drive an estimator


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_pipeline_cross_validation_and_calibration(estimator):
    """Standardising is an affine map, which changes no posterior unless the shrinkage depends on units."""
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, Y)
    plain = clone(estimator).fit(X, Y)
    if estimator.get_params().get("covariance") != "spherical":
        np.testing.assert_allclose(pipeline.predict_proba(X), plain.predict_proba(X), rtol=1e-6, atol=1e-12)
    assert cross_val_score(clone(estimator), X, Y, cv=3).min() > 0.8
    assert cross_val_predict(clone(estimator), X, Y, cv=3, method="predict_proba").shape == (150, 3)
    calibrated = CalibratedClassifierCV(clone(estimator), cv=3).fit(X, Y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert calibrated.score(X, Y) > 0.8


def test_grid_search_over_the_covariance_grid():
    grid = {"covariance": ["spherical", "diagonal", "full"], "tied": [False, True, 0.5]}
    search = GridSearchCV(GaussianDiscriminant(), grid, cv=3, scoring="neg_log_loss").fit(X, Y)
    assert len(search.cv_results_["params"]) == 9
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.covariance == "full"


def test_grid_search_in_parallel_with_weights():
    weights = np.linspace(0.5, 2, 150)
    search = GridSearchCV(NaiveBayes(), {"pseudo_rows": [0.0, 1.0, 5.0]}, cv=3, n_jobs=2)
    search.fit(X, Y, sample_weight=weights)
    want = NaiveBayes(**search.best_params_).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(search.predict_proba(X), want.predict_proba(X))


def test_bagging():
    assert BaggingClassifier(NaiveBayes(), n_estimators=3, random_state=0).fit(X, Y).score(X, Y) > 0.9


# Frames


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_frame_is_its_values_with_names(estimator):
    model = clone(estimator).fit(FRAME, pd.Series(Y))
    assert model.feature_names_in_.tolist() == FRAME.columns.tolist()
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict_proba(FRAME), clone(estimator).fit(X, Y).predict_proba(X))


def test_other_names_are_refused_and_missing_names_warned_of():
    model = NaiveBayes().fit(FRAME, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(FRAME.rename(columns={FRAME.columns[0]: "other"}))
    with pytest.raises(ValueError, match="same order"):
        model.partial_fit(FRAME[FRAME.columns[::-1]], Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        NaiveBayes().fit(X, Y).predict(FRAME)


def test_nullable_frames_hold_missing_cells():
    holes = X.copy()
    holes[::7, 1] = np.nan
    nullable = pd.DataFrame(holes, columns=FRAME.columns).convert_dtypes(dtype_backend="numpy_nullable")
    assert str(nullable.dtypes.iloc[1]) == "Float64"
    assert nullable.iloc[0, 1] is pd.NA
    model, want = NaiveBayes().fit(nullable, Y), NaiveBayes().fit(holes, Y)
    np.testing.assert_array_equal(model.predict_proba(nullable), want.predict_proba(holes))


def test_nullable_integers_and_booleans_are_numbers():
    frame = pd.DataFrame({"n": pd.array([1, 2, None, 4], dtype="Int64"), "b": pd.array([True, None, False, True])})
    model = NaiveBayes({"n": "gaussian"}).fit(frame, [0, 0, 1, 1])
    assert model.joint_.densities[0].mean.ravel().tolist() == [1.5, 4.0]
    np.testing.assert_allclose(model.joint_.densities[1].shares, [[1 / 3, 2 / 3], [2 / 4, 2 / 4]])


def test_columns_are_chosen_by_name():
    model = NaiveBayes({FRAME.columns[0]: "gamma", FRAME.columns[3]: "ignore"}).fit(FRAME, Y)
    assert [part.family.name for part in model.joint_.parts] == ["gamma", "gaussian"]
    assert [part.columns for part in model.joint_.parts] == [[0], [1, 2]]
    told = model.explain(FRAME[:1])
    assert told.cells[0, 3] == 0
    assert {name for name, _, _ in told.top()} == set(FRAME.columns[:3])
    assert FRAME.columns[2] in str(told)
