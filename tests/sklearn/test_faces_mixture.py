"""The face of scikit-learn's GaussianMixture: the same numbers, messages and lines, and rows with holes."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as Upstream
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from likely.sklearn import GaussianMixture

TYPES = ("full", "tied", "diag", "spherical")
DRAWN = ("k-means++", "random", "random_from_data")
ATTRIBUTES = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bounds_")


def rows(n=400, d=3, k=4, seed=0):
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return spread + rng.normal(scale=3, size=(k, d))[rng.integers(k, size=n)]


def both(X, **parameters):
    return [kind(**{"random_state": 3, **parameters}).fit(X) for kind in (GaussianMixture, Upstream)]


@pytest.mark.parametrize("start", DRAWN)
@pytest.mark.parametrize("kind", TYPES)
def test_the_same_seed_finds_the_same_components(kind, start):
    if kind == "tied" and start in ("k-means++", "random_from_data"):
        pytest.skip("scikit-learn begins with the scatter of all rows about 0, whatever rows it has drawn")
    X = rows()
    ours, theirs = both(X, n_components=4, covariance_type=kind, init_params=start, n_init=2)
    assert (ours.n_iter_, ours.converged_) == (theirs.n_iter_, theirs.converged_)
    for name in ATTRIBUTES:
        assert getattr(ours, name) == pytest.approx(np.asarray(getattr(theirs, name)), rel=1e-8, abs=1e-10), name
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, rel=1e-12)
    more = rows(seed=1)
    assert np.array_equal(ours.predict(more), theirs.predict(more))
    assert ours.predict_proba(more) == pytest.approx(theirs.predict_proba(more), rel=1e-7, abs=1e-12)
    assert ours.score_samples(more) == pytest.approx(theirs.score_samples(more), rel=1e-9)
    assert ours.bic(more) == pytest.approx(theirs.bic(more), rel=1e-10)
    assert ours.aic(more) == pytest.approx(theirs.aic(more), rel=1e-10)
    drawn, components = ours.sample(20)
    assert drawn == pytest.approx(theirs.sample(20)[0], rel=1e-7, abs=1e-9)
    assert np.array_equal(components, theirs.sample(20)[1])


@pytest.mark.parametrize("kind", TYPES)
def test_steps_from_the_groups_of_k_means_are_the_same(kind):
    X = rows()
    first = GaussianMixture(4, covariance_type=kind, max_iter=0, random_state=3).fit(X)
    given = {f"{name}_init": getattr(first, f"{name}_") for name in ("weights", "means", "precisions")}
    ours = GaussianMixture(4, covariance_type=kind, random_state=3).fit(X)
    theirs = Upstream(4, covariance_type=kind, **given).fit(X)
    assert (ours.n_iter_, ours.converged_) == (theirs.n_iter_, theirs.converged_)
    for name in ATTRIBUTES:
        assert getattr(ours, name) == pytest.approx(np.asarray(getattr(theirs, name)), rel=1e-8, abs=1e-10), name


@pytest.mark.parametrize("kind", ["k-means++", "random_from_data"])
def test_a_tied_covariance_begins_with_the_rows_that_were_drawn(kind):
    ours, theirs = both(rows(), n_components=4, covariance_type="tied", init_params=kind)
    assert ours.lower_bound_ > theirs.lower_bound_


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("given", [{"weights"}, {"means"}, {"precisions"}, {"weights", "means", "precisions"}])
def test_given_parameters_are_begun_with(kind, given):
    X = rows()
    start = Upstream(3, covariance_type=kind, random_state=0, max_iter=2, tol=1.0).fit(X)
    parameters = {f"{name}_init": getattr(start, f"{name}_") for name in given}
    with pytest.warns(ConvergenceWarning):
        ours, theirs = both(
            X, n_components=3, covariance_type=kind, max_iter=3, tol=1e-12, init_params="random", **parameters
        )
    for name in ("weights_", "means_", "precisions_cholesky_"):
        assert getattr(ours, name) == pytest.approx(np.asarray(getattr(theirs, name)), rel=1e-8), name
    first = GaussianMixture(3, covariance_type=kind, max_iter=0, random_state=0, **parameters).fit(X)
    for name in given:
        assert getattr(first, f"{name}_") == pytest.approx(getattr(start, f"{name}_"), rel=1e-10), name


def test_float32_stays():
    X = rows().astype(np.float32)
    ours, theirs = both(X, n_components=3, init_params="random_from_data")
    for name in ATTRIBUTES[:5]:
        assert getattr(ours, name).dtype == np.float32
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-3, abs=1e-4)
    assert ours.score_samples(X).dtype == ours.predict_proba(X).dtype == np.float32


def test_an_offset_costs_no_digits():
    X = rows()
    near, far = (GaussianMixture(3, random_state=0, covariance_type="diag").fit(x) for x in (X, X + 1e7))
    assert far.covariances_ == pytest.approx(near.covariances_, rel=1e-6)
    assert np.array_equal(near.predict(X), far.predict(X + 1e7))


@pytest.mark.parametrize("kind", TYPES)
def test_holes_take_the_likelihood_of_the_cells_that_are_there(kind):
    X = rows(n=150)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = GaussianMixture(2, covariance_type=kind, reg_covar=0.0, random_state=0, tol=1e-9, max_iter=2000).fit(X)
    assert model.converged_
    assert np.diff(model.lower_bounds_).min() > -1e-10
    spread = np.broadcast_to(model.covariances_.T, (3, 2)).T if kind == "spherical" else model.covariances_
    spread = [np.diag(each) for each in spread] if kind in ("diag", "spherical") else spread
    for row, known, told in zip(X, ~np.isnan(X), model.score_samples(X), strict=True):
        each = [
            np.log(model.weights_[c])
            + multivariate_normal(
                model.means_[c][known], (spread if kind == "tied" else spread[c])[np.ix_(known, known)]
            ).logpdf(row[known])
            for c in range(2)
        ]
        assert told == pytest.approx(logsumexp(each), rel=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_start_goes_on():
    X = rows()
    whole = GaussianMixture(4, random_state=0, tol=1e-5, max_iter=500).fit(X)
    warm = GaussianMixture(4, random_state=0, tol=1e-5, max_iter=3, warm_start=True)
    steps = 0
    while not getattr(warm, "converged_", False):
        steps += warm.fit(X).n_iter_
    assert steps == whole.n_iter_
    assert warm.means_ == pytest.approx(whole.means_, rel=1e-9)


def test_parameters_may_be_set_by_hand():
    fitted = Upstream(3, random_state=0).fit(rows())
    model = GaussianMixture(3)
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
        setattr(model, name, getattr(fitted, name))
    more = rows(seed=1)
    assert np.array_equal(model.predict(more), fitted.predict(more))
    assert model.score(more) == pytest.approx(fitted.score(more))


def test_what_is_printed_is_what_scikit_learn_prints(capsys):
    said = []
    for kind in (GaussianMixture, Upstream):
        kind(4, random_state=0, tol=1e-3, n_init=2, verbose=1, verbose_interval=5).fit(rows())
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "Initialization 1" in said[0]
    GaussianMixture(4, random_state=0, verbose=2, verbose_interval=1).fit(rows())
    assert "ll change" in capsys.readouterr().out


@pytest.mark.parametrize("kind", TYPES)
def test_check_estimator(kind):
    for result in check_estimator(GaussianMixture(2, covariance_type=kind), on_fail=None, on_skip=None):
        assert result["status"] == "passed" or "array_api" in str(result["exception"]), result


def test_tools_that_drive_it():
    X = pd.DataFrame(rows(), columns=["a", "b", "c"])
    search = GridSearchCV(GaussianMixture(random_state=0), {"n_components": [1, 4]}).fit(X)
    assert search.best_params_ == {"n_components": 4}
    model = search.best_estimator_
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(clone(model).fit_predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "The 'n_components' parameter of GaussianMixture must be an int"),
        ({"n_components": 500}, "Expected n_samples >= n_components but got n_components = 500, n_samples = 400"),
        ({"covariance_type": "round"}, "The 'covariance_type' parameter"),
        ({"means_init": [[1.0]]}, r"The parameter 'means' should have the shape of \(1, 3\), but got \(1, 1\)"),
        ({"precisions_init": -np.eye(3)[None]}, "'full precision' should be symmetric, positive-definite"),
        ({"weights_init": [0.5]}, "should be normalized"),
    ],
)
def test_what_does_not_fit_is_said(parameters, message):
    for kind in (GaussianMixture, Upstream):
        with pytest.raises(ValueError, match=message):
            kind(**parameters).fit(rows())


def test_questions_before_fit_and_no_rows_to_draw():
    with pytest.raises(NotFittedError):
        GaussianMixture().predict([[1.0]])
    with pytest.raises(ValueError, match="at least one sample"):
        GaussianMixture().fit(rows()).sample(0)
