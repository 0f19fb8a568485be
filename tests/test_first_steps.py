"""What people try first, and what they ran into."""

import multiprocessing
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from refusal import X, Y, assert_refused, assert_unchanged_by
from sklearn.datasets import load_iris, load_wine

import likely
from likely import GaussianDiscriminant, NaiveBayes

IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize("make", [NaiveBayes, GaussianDiscriminant])
def test_a_forgotten_class_is_no_answer_under_uniform_priors(make):
    x, y = IRIS
    model = make(priors="uniform").fit(x, y).forget(x[:50], y[:50])
    assert model.priors_.tolist() == [0.0, 0.5, 0.5]
    np.testing.assert_allclose(
        model.predict_proba(x)[:, 1:],
        make(priors="uniform").fit(x[50:], y[50:]).predict_proba(x),
        rtol=1e-6,
        atol=1e-12,
    )


def test_masked_cells_are_missing():
    holes = np.where(X > 2, np.nan, X)
    model = NaiveBayes().fit(np.ma.masked_greater(X, 2), Y)
    np.testing.assert_array_equal(model.predict_proba(holes), NaiveBayes().fit(holes, Y).predict_proba(holes))


def test_a_matrix_of_dates_is_refused():
    dates = np.array([["2020-01-01"], ["NaT"], ["2021-01-01"]], dtype="datetime64[D]")
    assert_refused(lambda: NaiveBayes().fit(dates, [0, 0, 1]), "dates", kind=TypeError)


def test_a_series_is_refused_as_one_dimension():
    model = NaiveBayes().fit(pd.DataFrame(X + 0.5, columns=["a", "b"]), Y)
    assert_refused(lambda: model.predict(pd.Series(X[0], index=["a", "b"])), "Expected 2D array")


def test_complement_scores_are_no_density():
    model = NaiveBayes("complement").fit(X, Y)
    assert_refused(lambda: model.sample(3), "complement", "multinomial")
    assert_refused(lambda: model.log_density(X), "complement", "multinomial")
    assert model.predict(X).shape == (6,)


def test_a_printed_explanation_adds_up():
    x, y = load_wine(return_X_y=True)
    lines = str(GaussianDiscriminant().fit(x, y).explain(x[:1])).splitlines()
    numbers = [float(line.split()[-1]) for line in lines[1:]]
    assert "3 other columns" in lines[-2]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.01)


def test_given_priors_and_a_class_too_many():
    model = NaiveBayes(priors=[0.5, 0.5]).fit(X, Y)
    assert_unchanged_by(model, lambda model: model.partial_fit(X[:1], [2]), "priors", "3")


def test_one_column_named_twice_is_refused():
    assert_refused(lambda: NaiveBayes({1: "poisson", -1: "gaussian"}).fit(X, Y), "once", "-1")


def test_ledoit_wolf_does_not_imagine_rows():
    model = GaussianDiscriminant(shrinkage="ledoit-wolf", pseudo_rows=2)
    assert_refused(lambda: model.fit(X, Y), "ledoit-wolf", "pseudo_rows")


@pytest.mark.parametrize("n", [-2, 2.5, "3"])
def test_a_sample_of_no_number_is_refused(n):
    assert_refused(lambda: NaiveBayes().fit(X, Y).sample(n), repr(n))


def test_parameters_set_after_fit_wait_for_the_next_one():
    model = GaussianDiscriminant().fit(X, Y)
    before = model.covariances_
    model.set_params(covariance="diagonal")
    np.testing.assert_array_equal(model.covariances_, before)
    assert model.fit(X, Y).covariances_.shape == (2, 2)


def test_the_package_is_a_command():
    told = subprocess.run([sys.executable, "-m", "likely", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("likely ")


def test_the_demo_runs():
    told = subprocess.run([sys.executable, "-m", "likely", "demo"], capture_output=True, text=True, check=True)
    assert "classified right" in told.stdout


def _fit_in_child(queue: multiprocessing.Queue) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30_000, 20))
    queue.put(NaiveBayes().fit(x, np.arange(30_000) % 3).joint_.densities[0].mean)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    here = multiprocessing.get_context("spawn").SimpleQueue()
    _fit_in_child(here)  # the parent's threads are running now
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=_fit_in_child, args=(queue,))
    child.start()
    try:
        np.testing.assert_array_equal(queue.get(timeout=60), here.get())
    finally:
        child.kill()
        child.join()


def test_what_the_package_shows_is_what_users_use():
    shown = dir(likely)
    assert set(likely.__all__) <= set(shown)
    assert len(shown) <= 30
    assert all(getattr(likely, name) is not None for name in shown)
