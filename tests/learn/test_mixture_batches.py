"""Mixtures of rows that come in batches."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import likely
from likely import Mixture


def batches(number=60, size=200, k=3, seed=0, holes=0.0):
    """Rows of one mixture of Gaussians, batch by batch."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 2.0], [0.0, 5.0, -2.0]])[:k]
    factors = np.array([np.eye(3), [[1, 0, 0], [0.8, 0.5, 0], [0, 0, 1]], [[0.5, 0, 0], [0, 1, 0], [0.5, 0.5, 1]]])
    for _ in range(number):
        codes = rng.choice(k, size, p=[0.5, 0.3, 0.2][:k])
        X = means[codes] + np.einsum("nij,nj->ni", factors[codes], rng.normal(size=(size, 3)))
        X[rng.random(X.shape) < holes] = np.nan
        yield X


@pytest.mark.parametrize("holes", [0.0, 0.15])
@pytest.mark.parametrize(("covariance", "tied"), [("full", False), ("full", True), ("diagonal", False)])
def test_batches_end_near_the_likelihood_of_all_rows(covariance, tied, holes):
    model, every = Mixture(3, covariance=covariance, tied=tied), list(batches(holes=holes))
    for X in every:
        model.partial_fit(X)
    X = np.vstack(every)
    whole = Mixture(3, covariance=covariance, tied=tied, n_starts=2).fit(X)
    assert model.class_count_.sum() == pytest.approx(len(X))
    assert whole.score(X) - 2e-3 < model.score(X) < whole.score(X) + 1e-4


def test_every_step_is_a_weighted_mean_of_statistics():
    one, two, three = batches(3, 100)
    model = Mixture(2).fit(one)
    for before, X in ((1.0, two), (2.0, three)):
        known, joint = model.fitted().statistics, model.joint_
        shares = joint.posterior(model.fitted().reader.read(X))
        model.partial_fit(X)
        gamma = (before + 2) ** -0.7
        counts = known.weights.sums["weight"] / (100 * before)
        expected = (1 - gamma) * counts + gamma * shares.mean(axis=0)
        assert model.priors_ == pytest.approx(expected, rel=1e-12)
        sums = (1 - gamma) * counts[:, None] * joint.densities[0].mean + gamma * shares.T @ X / 100
        got = model.fitted().statistics.blocks[0].restored()
        got = got.sums["sum"] + got.sums["weight"][:, None] * got.origin
        assert got / (100 * (before + 1)) == pytest.approx(sums, rel=1e-3, abs=1e-4)  # imagined rows pull the means


def test_a_batch_of_one_row_moves_little():
    first, *more = batches(2, 1000)
    model = Mixture(3).fit(first)
    before = model.means_
    model.partial_fit(more[0][:1])
    assert model.class_count_.sum() == pytest.approx(1001)
    assert 0 < np.abs(model.means_ - before).max() < 0.05
    for row in more[0]:
        model.partial_fit(row[None])
    assert model.score(first) > Mixture(3).fit(first).score(first) - 0.05


def test_weights_count():
    one, two = batches(2, 300)
    weights = np.random.default_rng(0).integers(0, 3, 300)
    weighted, repeated = (Mixture(3).fit(one) for _ in range(2))
    weighted.partial_fit(two, sample_weight=weights)
    repeated.partial_fit(np.repeat(two, weights, axis=0))
    assert weighted.predict_proba(one) == pytest.approx(repeated.predict_proba(one), rel=1e-9, abs=1e-12)
    assert weighted.class_count_.sum() == pytest.approx(300 + weights.sum())


def table(rng, n=150):
    codes = rng.integers(2, size=n)
    words = np.array([["sun", "sea", "sand", "warm"], ["snow", "ice", "ski", "cold"]])
    return pd.DataFrame(
        {
            "degrees": rng.normal(codes * -30.0 + 28, 5.0),
            "sky": np.where(rng.random(n) < 0.8, np.array(["blue", "grey"])[codes], "white"),
            "diary": [" ".join(rng.choice(words[c], 8)) + " was the day number " + str(rng.integers(9)) for c in codes],
            "outside": rng.random(n) < np.where(codes, 0.2, 0.9),
        }
    ), codes


def test_tables_keep_the_schema_of_the_first_batch():
    rng = np.random.default_rng(0)
    model = Mixture(2, covariance="diagonal")
    for _ in range(8):
        frame, _ = table(rng)
        model.partial_fit(frame)
    schema = model.schema_
    assert dict(zip(schema.names, schema.kinds, strict=True))["diary"] == "text"
    shuffled, codes = table(rng)
    shuffled.loc[0, "sky"] = "green"  # never seen before
    model.partial_fit(shuffled[["outside", "diary", "sky", "degrees"]])
    assert model.schema_ == schema
    right = np.mean(model.predict(shuffled) == codes)
    assert max(right, 1 - right) > 0.98
    assert "green" in model.values_of("sky")


def test_sparse_counts():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(30, 0.2), 2)
    model = Mixture(2, start="assignment", n_starts=4)
    for _ in range(10):
        codes = rng.integers(2, size=100)
        X = np.array([rng.multinomial(40, shares[c]) for c in codes])
        model.partial_fit(csr_matrix(X))
    right = np.mean(model.predict(csr_matrix(X)) == codes)
    assert max(right, 1 - right) > 0.98


def test_a_batch_that_fails_changes_nothing():
    one, two = batches(2, 100)
    model = Mixture(2).fit(one)
    before, told = model.predict_proba(one), model.log_likelihood_
    bad = two.copy()
    bad[3, 1] = np.inf
    for X, message in (
        (bad, "expected a finite number, got inf"),
        (two[:, :2], "X has 2 features, but Mixture is expecting 3"),
        (two[:0], "0 sample"),
        (csr_matrix(two), "sparse"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            model.partial_fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(two, sample_weight=np.ones(3))
    assert np.array_equal(model.predict_proba(one), before)
    assert model.log_likelihood_ == told
    with pytest.raises(ValueError, match="got 1 rows for 2 components"):
        Mixture(2).partial_fit(one[:1])


def test_a_loaded_model_goes_on(tmp_path):
    one, two = batches(2)
    model = Mixture(3).fit(one)
    model.save(tmp_path / "groups.likely")
    same = likely.load(tmp_path / "groups.likely").partial_fit(two)
    assert np.array_equal(same.predict_proba(one), model.partial_fit(two).predict_proba(one))
    assert same.log_likelihood_ == model.log_likelihood_


def test_a_component_that_nothing_comes_to_is_taken_out():
    X = np.concatenate([np.full(50, -9.0), np.full(50, 9.0)])[:, None] + np.random.default_rng(0).normal(size=(100, 1))
    model = Mixture(2, covariance="spherical").fit(X)

    def stream():
        for _ in range(500):
            model.partial_fit(X[50:])

    with pytest.warns(UserWarning, match="components became empty: 1 of 2 taken out"):
        stream()
    assert model.priors_.tolist() == [1.0]
    assert model.means_.round().tolist() == [[9.0]]
