"""Classes that are mixtures: the density by plain formulas, the questions it answers, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

import likely
from likely import Classifier, Mixture


def crossed(n=600, seed=0):
    """Return rows of two classes, each two clouds, that no single Gaussian of each tells apart."""
    generator = np.random.default_rng(seed)
    y, side = generator.integers(0, 2, n), generator.choice([-1.0, 1.0], n)
    X = 0.7 * generator.normal(size=(n, 2)) + 3.0 * np.column_stack([side, np.where(y == 1, side, -side)])
    return X, np.array(["falls", "rises"])[y]


def plain_log_densities(model, X):
    """Return log p(x | class) by the textbook, from the parameters of every component."""
    density = model.joint_.densities[0]
    inner, k = density.inner.densities[0], density.classes
    found = np.empty((len(X), k))
    for c in range(k):
        scores = []
        for m, weight in enumerate(density.weights[c]):
            place = m * k + c
            spread = inner.covariance[place] if hasattr(inner, "covariance") else np.diag(inner.variance[place])
            if weight > 0:
                scores.append(np.log(weight) + multivariate_normal(inner.means[place], spread).logpdf(X))
        found[:, c] = logsumexp(scores, axis=0)
    return found


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("components", [2, 3, "auto"])
def test_the_density_is_the_sum_over_components(covariance, components):
    X, y = load_iris(return_X_y=True)
    model = Classifier(components=components, covariance=covariance, calibrate=False).fit(X, y)
    plain = plain_log_densities(model, X) + np.log(model.priors_)
    np.testing.assert_allclose(model.log_density(X), logsumexp(plain, axis=1), rtol=1e-10)
    expected = np.exp(plain - logsumexp(plain, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_allclose(model.joint_.densities[0].weights.sum(axis=1), 1.0)


def test_each_class_is_as_likely_as_under_a_mixture_of_its_own():
    X, y = crossed()
    model = Classifier(components=2, covariance="full", calibrate=False).fit(X, y)
    plain = plain_log_densities(model, X)
    for c, label in enumerate(model.classes_):
        rows = X[y == label]
        alone = Mixture(2, n_starts=2, tolerance=1e-4, pseudo_rows=1e-4).fit(rows)
        assert plain[y == label, c].mean() == pytest.approx(alone.log_likelihood_ / len(rows), abs=1e-3)


@pytest.mark.parametrize("calibrate", [True, False])
def test_two_clouds_in_each_class_are_told_apart(calibrate):
    X, y = crossed()
    new, truth = crossed(seed=1)
    one = Classifier(calibrate=calibrate, covariance="diagonal").fit(X, y)
    two = Classifier(components=2, calibrate=calibrate).fit(X, y)
    assert two.score(new, truth) > 0.99
    assert two.score(new, truth) >= one.score(new, truth)
    assert Classifier(calibrate=False).fit(X, y).score(new, truth) < 0.7


def test_auto_finds_how_many_components_a_class_has():
    generator = np.random.default_rng(0)
    X = np.concatenate([generator.normal(size=200), generator.normal(size=100) - 6, generator.normal(size=100) + 6])
    y = np.repeat(["one", "two"], 200)
    model = Classifier(components="auto", calibrate=False).fit(X[:, None], y)
    assert (model.joint_.densities[0].weights > 0).sum(axis=1).tolist() == [1, 2]


def test_a_class_of_few_rows_has_few_components():
    X, y = crossed(60)
    y = y.astype("<U6")
    y[:3] = "rare"
    model = Classifier(components=3, calibrate=False).fit(X, y)
    rare = model.classes_.tolist().index("rare")
    assert (model.joint_.densities[0].weights[rare] > 0).sum() == 1
    assert np.isfinite(model.predict_proba(X)).all()


def table(n=300):
    X, y = crossed(n)
    frame = pd.DataFrame(X, columns=["a", "b"])
    generator = np.random.default_rng(5)
    frame["sign"] = np.where(X[:, 0] > 0, "plus", "minus")
    frame["id"] = np.arange(n).astype(str)
    frame = frame.mask(generator.random(frame.shape) < 0.1)
    return frame, y


def test_questions_about_a_table_with_holes_and_a_column_left_out(tmp_path):
    frame, y = table()
    model = Classifier({"id": "ignore"}, components=2, covariance="full").fit(frame, y)
    assert model.score(frame, y) > 0.8
    filled = model.impute(frame)
    assert not filled[["a", "b", "sign"]].isna().any().any()
    agree = frame["sign"].isna() & frame["a"].notna()
    assert (filled["sign"][agree] == np.where(frame["a"][agree] > 0, "plus", "minus")).mean() > 0.9
    drawn, labels = model.sample(2000, random_state=0)
    assert drawn.schema.names == ["a", "b", "sign"]
    assert set(labels) == {"falls", "rises"}
    signs = np.where(np.array(drawn["a"]) > 0, "plus", "minus")
    assert (signs == np.array(drawn["sign"].to_pylist())).mean() > 0.95
    values, shares = model.joint_.column_posterior(model.fitted().reader.read(frame), 2)
    assert shares.shape == (len(frame), len(values))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    model.save(tmp_path / "mixed.likely")
    again = likely.load(tmp_path / "mixed.likely")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(again.log_density(frame), model.log_density(frame))


@pytest.mark.parametrize("calibrate", [True, False])
def test_explanations_add_up(calibrate):
    frame, y = table()
    model = Classifier({"id": "ignore"}, components=2, calibrate=calibrate).fit(frame, y)
    told, p = model.explain(frame.head(20)), model.predict_log_proba(frame.head(20))
    rows, places = np.arange(20), [np.searchsorted(model.classes_, label) for label in (told.label, told.against)]
    assert np.abs(told.cells).max() > 1
    np.testing.assert_allclose(
        told.base + told.cells.sum(axis=1), p[rows, places[0]] - p[rows, places[1]], atol=1e-6, rtol=1e-6
    )


def test_conditional_means_by_plain_formulas():
    """E[a | b] of one class: components by how well they explain b, each with its regression."""
    X, y = crossed()
    model = Classifier(components=2, covariance="full", calibrate=False).fit(X, y)
    density = model.joint_.densities[0]
    inner, k = density.inner.densities[0], 2
    b = np.array([-2.5, 0.3, 2.8])
    rows = np.column_stack([np.full(3, np.nan), b])
    for c, label in enumerate(model.classes_):
        scores, means = [], []
        for m in range(2):
            mean, spread = inner.means[m * k + c], inner.covariance[m * k + c]
            scores.append(np.log(density.weights[c, m]) + multivariate_normal(mean[1], spread[1, 1]).logpdf(b))
            means.append(mean[0] + spread[0, 1] / spread[1, 1] * (b - mean[1]))
        shares = np.exp(np.array(scores) - logsumexp(scores, axis=0))
        found = model.impute(rows, [label] * 3)
        np.testing.assert_allclose(found[:, 0], (shares * np.array(means)).sum(axis=0), rtol=1e-9)


def test_more_rows_are_shared_among_the_components():
    X, y = crossed()
    model = Classifier(components=2, covariance="full").fit(X[:400], y[:400])
    model.partial_fit(X[400:], y[400:])
    assert model.class_count_.sum() == 600
    parts = model.fitted().statistics.blocks[0]
    assert parts.weights.sum() == pytest.approx(600)
    assert model.score(X, y) > 0.99


def test_rows_without_a_label_are_shared_among_classes_and_components():
    X, y = crossed()
    left = y.astype(object)
    left[60:] = None
    model = Classifier(components=2, calibrate=False, unlabelled=1.0).fit(X, left)
    assert model.class_count_.sum() == pytest.approx(600)
    assert model.score(X, y) > 0.99


def test_evaluation_fits_components_without_the_fold():
    X, y = crossed(200)
    assert Classifier(components=2, calibrate=False).evaluate(X, y, folds=4).accuracy > 0.97


@pytest.mark.parametrize("calibrate", [True, False])
def test_the_same_rows_make_the_same_model(calibrate):
    X, y = crossed(200)
    one, two = (Classifier(components=2, calibrate=calibrate).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("change", ["merge", "forget", "emptied"])
def test_what_needs_one_component_is_refused(change):
    X, y = crossed(100)
    model = Classifier(components=2).fit(X, y)
    before = model.predict_proba(X)
    given = {"merge": (model,), "forget": (X[:5], y[:5]), "emptied": ()}[change]
    with pytest.raises(ValueError, match=r"expected classes of one component to .*, got mixtures"):
        getattr(model, change)(*given)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_class_that_comes_later_is_refused():
    X, y = crossed(100)
    model = Classifier(components=2, calibrate=False).fit(X, y)
    with pytest.raises(ValueError, match="expected classes whose components are known, got 'new'"):
        model.partial_fit(X[:2], ["new", "new"])


def test_one_row_is_learned():
    assert Classifier(components=2).fit([[1.0, 2.0]], ["a"]).predict([[0.0, 0.0]]).tolist() == ["a"]


@pytest.mark.parametrize("components", [0, -1, 1.5, "two", None, True, np.array([2, 3])])
def test_a_bad_number_of_components_is_refused(components):
    with pytest.raises(ValueError, match="expected components as a whole number of 1 or more, or 'auto'"):
        Classifier(components=components).fit(*crossed(20))


def test_a_tied_covariance_is_refused():
    with pytest.raises(ValueError, match="expected covariance='diagonal' or 'full' of classes that are mixtures"):
        Classifier(components=2, covariance="tied").fit(*crossed(20))


def _columns(n=120):
    """Return a pair of columns of every kind that a component can have."""
    rng = np.random.default_rng(0)
    words = ["good", "bad", "film", "very", "plot", "actor", "was", "it", "music", "dull", "lovely", "fun"]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(n)]
    tables = {
        "categories": {name: rng.choice(["u", "v", "w"], n).tolist() for name in "ab"},
        "booleans": {name: (rng.random(n) < 0.5).tolist() for name in "ab"},
        "counts": {name: rng.poisson(2, n).tolist() for name in "ab"},
        "numbers": {name: rng.normal(size=n).tolist() for name in "ab"},
        "texts": {"a": texts},
        "a text and numbers": {"a": texts, "b": rng.normal(size=n).tolist()},
        "a text and categories": {"a": texts, "b": rng.choice(["u", "v"], n).tolist()},
    }
    return tables, rng.integers(0, 2, n)


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("kind", list(_columns()[0]))
def test_questions_about_columns_of_one_kind(kind, calibrate, tmp_path):
    """Whatever the columns are, also if all are of one family, components answer what one component answers."""
    tables, y = _columns()
    table = tables[kind]
    one, two = (Classifier(components=k, calibrate=calibrate).fit(table, y) for k in (1, 2))
    drawn, _ = two.sample(5, random_state=0)
    assert (drawn.schema, drawn.num_rows) == (one.sample(5, random_state=0)[0].schema, 5)
    assert np.isfinite(two.log_density(table)).all()
    for how in ("mean", "draw"):
        missing = pd.DataFrame({name: pd.Series([None], dtype="object") for name in table})
        filled = two.impute(missing, how=how, random_state=0)
        assert list(filled) == list(table)
        assert set(filled.columns[filled.isna().any()]) == (set() if "text" not in kind else {"a"})
    if kind in ("categories", "booleans"):
        for name, column in table.items():
            assert two.values_of(name).tolist() == one.values_of(name).tolist() == sorted(set(column))
            p = two.predict_proba(table, of=name)
            np.testing.assert_allclose(p.sum(axis=1), 1.0)
            np.testing.assert_allclose(p.mean(axis=0), one.predict_proba(table, of=name).mean(axis=0), atol=0.05)
    assert len(str(two.explain(table)).splitlines()) > 2
    two.save(tmp_path / "model")
    np.testing.assert_array_equal(likely.load(tmp_path / "model").predict_proba(table), two.predict_proba(table))


def test_a_class_has_as_many_components_as_its_weight_allows():
    """Ten rows are enough for two components, whether they are written or weighed."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 1, (4, 1)), rng.normal(5, 1, (3, 1)), rng.normal(0, 1, (12, 1))])
    y, weights = np.repeat([0, 1], [7, 12]), np.tile([1, 2, 3], 7)[:19]
    weighed = Classifier(components=2, calibrate=False).fit(X, y, sample_weight=weights)
    written = Classifier(components=2, calibrate=False).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighed.predict_proba(X), written.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 0.02, 1 / 600])
def test_weights_that_are_shares_leave_the_components(weight):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 1, (200, 1)), rng.normal(5, 1, (200, 1)), rng.normal(0, 1, (200, 1))])
    y = np.repeat([0, 0, 1], 200)
    model = Classifier(components=2, calibrate=False).fit(X, y, sample_weight=np.full(600, weight))
    assert model.score(X, y) > 0.97
