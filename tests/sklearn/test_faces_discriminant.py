"""Linear and quadratic discriminant analysis under scikit-learn's names, beside scikit-learn's own."""

import numpy as np
import pytest
import sklearn.covariance
import sklearn.discriminant_analysis as theirs
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine

import likely
import likely.sklearn as ours

LINEAR = [
    {},
    {"priors": [0.5, 0.2, 0.3]},
    {"store_covariance": True},
    {"store_covariance": True, "priors": [0.5, 0.2, 0.3]},
    {"n_components": 1},
    {"solver": "lsqr"},
    {"solver": "lsqr", "shrinkage": 0.3},
    {"solver": "lsqr", "shrinkage": "auto", "priors": [0.1, 0.6, 0.3]},
    {"solver": "lsqr", "covariance_estimator": sklearn.covariance.ShrunkCovariance(shrinkage=0.2)},
    {"solver": "eigen"},
    {"solver": "eigen", "shrinkage": 0.0, "n_components": 2},
    {"solver": "eigen", "shrinkage": 0.7, "priors": [0.5, 0.2, 0.3]},
    {"solver": "eigen", "shrinkage": "auto"},
    {"solver": "eigen", "covariance_estimator": sklearn.covariance.LedoitWolf()},
]
QUADRATIC = [
    {},
    {"reg_param": 0.1},
    {"reg_param": 1.0},
    {"priors": [0.5, 0.2, 0.3], "store_covariance": True},
    {"solver": "eigen", "store_covariance": True},
    {"solver": "eigen", "shrinkage": 0.3},
    {"solver": "eigen", "shrinkage": "auto"},
    {"solver": "eigen", "covariance_estimator": sklearn.covariance.OAS(), "priors": [0.1, 0.6, 0.3]},
]
CASES = [("LinearDiscriminantAnalysis", options) for options in LINEAR] + [
    ("QuadraticDiscriminantAnalysis", options) for options in QUADRATIC
]
every_case = pytest.mark.parametrize(("name", "options"), CASES, ids=str)
ATTRIBUTES = ["coef_", "intercept_", "means_", "priors_", "xbar_", "explained_variance_ratio_", "classes_"]


def data(kind):
    if kind == "two classes":
        X, y = load_iris(return_X_y=True)
        return X[:100], np.array(["setosa", "versicolor"])[y[:100]]
    X, y = load_iris(return_X_y=True) if kind == "iris" else load_wine(return_X_y=True)
    return (X.astype(np.float32) if kind == "float32" else X), y


def pair(name, options, X, y):
    if len(np.unique(y)) == 2:
        options = {**options, **({"priors": [0.3, 0.7]} if "priors" in options else {})}
        if "n_components" in options:
            options["n_components"] = 1
    return [getattr(module, name)(**options).fit(X, y) for module in (ours, theirs)]


@every_case
@pytest.mark.parametrize("kind", ["iris", "wine", "two classes"])
def test_results_are_scikit_learns(name, options, kind):
    X, y = data(kind)
    model, peer = pair(name, options, X, y)
    assert_array_equal(model.predict(X), peer.predict(X))
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-7, atol=1e-12)
    assert_allclose(model.decision_function(X), peer.decision_function(X), rtol=1e-8, atol=1e-7)
    for attribute in ATTRIBUTES:
        assert hasattr(model, attribute) == hasattr(peer, attribute), attribute
        if hasattr(peer, attribute) and attribute != "classes_":
            assert_allclose(getattr(model, attribute), getattr(peer, attribute), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("options", LINEAR, ids=str)
@pytest.mark.parametrize("kind", ["iris", "wine"])
def test_directions_are_scikit_learns(options, kind):
    X, y = data(kind)
    model, peer = pair("LinearDiscriminantAnalysis", options, X, y)
    if model.solver == "lsqr":
        with pytest.raises(NotImplementedError, match="lsqr"):
            model.transform(X)
        return
    mine, other = model.transform(X), peer.transform(X)
    signs = np.sign((mine * other).sum(axis=0))
    assert_allclose(mine * signs, other, rtol=1e-6, atol=1e-8)
    vectors = model.scalings_[:, : mine.shape[1]]
    assert_allclose(vectors * signs, peer.scalings_[:, : mine.shape[1]], rtol=1e-6, atol=1e-8)
    assert list(model.get_feature_names_out()) == list(peer.get_feature_names_out())


@every_case
def test_covariances_are_scikit_learns(name, options):
    X, y = data("wine")
    model, peer = pair(name, options, X, y)
    assert hasattr(model, "covariance_") == hasattr(peer, "covariance_")
    if hasattr(peer, "covariance_"):
        assert_allclose(np.array(model.covariance_), np.array(peer.covariance_), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", QUADRATIC, ids=str)
def test_axes_are_scikit_learns(options):
    X, y = data("wine")
    model, peer = pair("QuadraticDiscriminantAnalysis", options, X, y)
    for mine, other in zip(model.scalings_, peer.scalings_, strict=True):
        assert_allclose(mine, other, rtol=1e-8)
    for vectors, values in zip(model.rotations_, model.scalings_, strict=True):
        assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)


def test_float32_stays_float32():
    X, y = data("float32")
    model, peer = pair("LinearDiscriminantAnalysis", {}, X, y)
    for attribute in ("coef_", "intercept_", "scalings_", "xbar_"):
        assert getattr(model, attribute).dtype == getattr(peer, attribute).dtype == np.float32
    assert model.transform(X).dtype == np.float32


@pytest.mark.parametrize("solver", ["svd", "lsqr"])
def test_directions_without_variance_are_left_out(solver):
    """Columns that determine each other, and more columns than rows."""
    X, y = data("iris")
    twice = np.hstack([X, X[:, :2] + X[:, 1:3], np.ones((150, 1))])
    options = {"solver": solver}
    model, peer = pair("LinearDiscriminantAnalysis", options, twice, y)
    alone = ours.LinearDiscriminantAnalysis(**options).fit(X, y)
    assert_allclose(model.predict_proba(twice), peer.predict_proba(twice), rtol=1e-6, atol=1e-9)
    assert_allclose(model.predict_proba(twice), alone.predict_proba(X), rtol=1e-6, atol=1e-9)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 40)), np.arange(20) % 3
    model, peer = pair("LinearDiscriminantAnalysis", options, X, y)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="some columns are determined by the others"):
        model.sample(3)


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_a_small_tolerance_still_leaves_out_columns_that_others_determine(tol):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.arange(60) % 3
        X = rng.normal(size=(60, 3)) + 0.7 * y[:, None]
        X = np.hstack([X, X @ rng.normal(size=(3, 2))])
        model, peer = pair("LinearDiscriminantAnalysis", {"tol": tol}, X, y)
        assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_a_direction_of_little_variance_is_kept_if_the_tolerance_says_so():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = rng.normal(size=(200, 3)) + 0.5 * y[:, None]
    X = np.hstack([X, X.sum(axis=1, keepdims=True) + 8e-7 * rng.normal(size=(200, 1))])
    model, peer = pair("LinearDiscriminantAnalysis", {"tol": 1e-7}, X, y)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("tol", [1e-4, 1e-6])
@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
def test_directions_between_classes_are_left_out_by_the_tolerance_everywhere(tol, priors):
    """Two classes lie near each other, compared with how far the third is."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 4))
    X[:, 0] += np.array([0, 1e5, 1e5 + 1])[y]
    X[:, 1] += 3.0 * (y == 2)
    model, peer = pair("LinearDiscriminantAnalysis", {"tol": tol, "priors": priors}, X, y)
    assert model.scalings_.shape == peer.scalings_.shape == (4, 1 if tol == 1e-4 else 2)
    assert_allclose(model.coef_, peer.coef_, rtol=1e-6, atol=1e-4)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert_allclose(model.means_, peer.means_)


def test_a_missing_cell_in_flat_directions_is_summed_out():
    X, y = data("iris")
    twice = np.hstack([X, X[:, :1] + X[:, 1:2]])
    model = ours.LinearDiscriminantAnalysis().fit(twice, y)
    alone = ours.LinearDiscriminantAnalysis().fit(X, y)
    holes = X.copy()
    holes[::2, 3] = np.nan
    assert_allclose(
        model.predict_proba(np.hstack([holes, twice[:, 4:]])), alone.predict_proba(holes), rtol=1e-4, atol=1e-5
    )


def test_a_class_that_is_not_of_full_rank_is_named_with_its_columns():
    X, y = data("iris")
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    X[y == 1, 3] = X[y == 1, 0] - X[y == 1, 1]
    with pytest.raises(np.linalg.LinAlgError, match=r"class versicolor is not full rank.*reg_param.*column 3"):
        ours.QuadraticDiscriminantAnalysis().fit(X, labels)
    with pytest.raises(np.linalg.LinAlgError, match=r"class versicolor is not full rank.*shrinkage.*column 3"):
        ours.QuadraticDiscriminantAnalysis(solver="eigen").fit(X, labels)
    model = ours.QuadraticDiscriminantAnalysis(reg_param=0.1).fit(X, labels)
    assert model.score(X, labels) > 0.9


def test_few_rows_fit_when_regularised():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(9, 4)), np.repeat([1, 2], [6, 3])
    with pytest.raises(np.linalg.LinAlgError, match="class 2 is not full rank"):
        ours.QuadraticDiscriminantAnalysis().fit(X, y)
    assert ours.QuadraticDiscriminantAnalysis(reg_param=0.3).fit(X, y).predict(X).shape == (9,)


def test_units_do_not_make_a_class_singular():
    """scikit-learn compares variances with an absolute number, so that kilometres fail where metres do not."""
    X, y = data("iris")
    small, large = (ours.QuadraticDiscriminantAnalysis().fit(X * unit, y) for unit in (1e-6, 1.0))
    assert_allclose(small.predict_proba(X * 1e-6), large.predict_proba(X), rtol=1e-9, atol=1e-12)


@every_case
def test_batches_merging_and_forgetting(name, options):
    X, y = data("wine")
    kind = getattr(ours, name)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    whole = kind(**options)
    if options.get("covariance_estimator") is not None:
        with pytest.raises(ValueError, match="covariance_estimator"):
            whole.partial_fit(X, y, classes=[0, 1, 2])
        return
    whole.fit(X, y)
    batches = kind(**options)
    for first in range(0, len(X), 60):
        batches.partial_fit(X[first : first + 60], y[first : first + 60], classes=[0, 1, 2])
    halves = [kind(**options).fit(X[:90], y[:90]), kind(**options).fit(X[90:], y[90:])]
    merged = halves[0].merge(halves[1])
    more = kind(**options).fit(np.vstack([X, X[:20] + 1]), np.hstack([y, y[:20]]))
    forgotten = more.forget(X[:20] + 1, y[:20])
    for model in (batches, merged, forgotten):
        assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-6, atol=1e-9)


def test_estimators_of_covariance_must_have_one():
    X, y = data("iris")

    class Nothing(sklearn.base.BaseEstimator):
        def fit(self, X):
            return self

    with pytest.raises(ValueError, match="does not have a covariance_ attribute"):
        ours.LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=Nothing()).fit(X, y)


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        ("LinearDiscriminantAnalysis", {"shrinkage": 0.5}, NotImplementedError, "svd"),
        ("LinearDiscriminantAnalysis", {"priors": [0.5, -0.5, 1.0]}, ValueError, "non-negative"),
        ("LinearDiscriminantAnalysis", {"n_components": 3}, ValueError, "n_components cannot be larger"),
        ("LinearDiscriminantAnalysis", {"solver": "newton"}, ValueError, "'solver' parameter"),
        ("LinearDiscriminantAnalysis", {"shrinkage": 2.0}, ValueError, "'shrinkage' parameter"),
        ("QuadraticDiscriminantAnalysis", {"shrinkage": 0.5}, NotImplementedError, "svd"),
        ("QuadraticDiscriminantAnalysis", {"reg_param": -1}, ValueError, "'reg_param' parameter"),
        ("QuadraticDiscriminantAnalysis", {"solver": "lsqr"}, ValueError, "'solver' parameter"),
        ("QuadraticDiscriminantAnalysis", {"priors": [0.5, 0.5]}, ValueError, "priors"),
    ],
)
def test_errors_are_scikit_learns(name, options, kind, message):
    X, y = data("iris")
    model = getattr(ours, name)(**options)
    with pytest.raises(kind, match=message):
        model.fit(X, y)
    with pytest.raises((ValueError, NotImplementedError)):
        getattr(theirs, name)(**options).fit(X, y).predict(X)


def test_priors_that_do_not_sum_to_one_are_renormalised():
    X, y = data("iris")
    with pytest.warns(UserWarning, match="do not sum to 1"):
        model = ours.LinearDiscriminantAnalysis(priors=[1, 2, 1]).fit(X, y)
    assert_allclose(model.priors_, [0.25, 0.5, 0.25])


def test_one_class_and_one_row_of_a_class():
    X, y = data("iris")
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        ours.QuadraticDiscriminantAnalysis().fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="y has only 1 sample in class 1"):
        ours.QuadraticDiscriminantAnalysis().fit(X[:51], y[:51])
    with pytest.raises(ValueError, match="number of samples must be more than the number of classes"):
        ours.LinearDiscriminantAnalysis().fit(X[::50], y[::50])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_other_numbers_are_answered_too(name, classes, kind):
    X, y = data("iris")
    X, y = (X[y < classes] * 10).astype(kind), y[y < classes]
    model, peer = pair(name, {}, X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        assert_allclose(getattr(model, method)(X), getattr(peer, method)(X), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("constant", ["in one class", "in all"])
@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("LinearDiscriminantAnalysis", "lsqr"),
        ("LinearDiscriminantAnalysis", "eigen"),
        ("QuadraticDiscriminantAnalysis", "eigen"),
    ],
)
def test_automatic_shrinkage_of_columns_that_do_not_vary(name, solver, constant):
    X, y = data("wine")
    X[y == 0 if constant == "in one class" else y >= 0, 2] = 1.0
    model, peer = pair(name, {"solver": solver, "shrinkage": "auto"}, X, y)
    assert_allclose(model.predict_log_proba(X), peer.predict_log_proba(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{"shrinkage": 1.0}, {"shrinkage": 0.0}, {"shrinkage": "auto"}], ids=str)
def test_explained_variance_with_odd_priors(options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    options = {"solver": "eigen", "priors": [0.2, 0.8], **options}
    model, peer = (module.LinearDiscriminantAnalysis(**options).fit(X, y) for module in (ours, theirs))
    assert_allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-8)


def test_explained_variance_of_shrunk_covariances_is_sorted_by_itself():
    """The eigenvalues add up to less than 0 for some of these."""
    for seed in range(100, 200):
        rng = np.random.default_rng(seed)
        model, peer = pair(
            "LinearDiscriminantAnalysis",
            {"solver": "eigen", "shrinkage": "auto"},
            rng.normal(size=(19, 2)),
            np.arange(19) % 2,
        )
        assert_allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=1e-6)


def test_one_class_is_certain():
    X, y = data("iris")
    model = ours.LinearDiscriminantAnalysis().fit(X[y == 0].astype(np.float32), y[y == 0])
    assert model.predict_proba(X).tolist() == [[1.0]] * 150
    assert model.decision_function(X).shape == (150, 1)


def test_priors_of_quadratic_discriminants_need_not_sum_to_one():
    X, y = data("iris")
    model, peer = pair("QuadraticDiscriminantAnalysis", {"priors": [2, 1, 1]}, X, y)
    assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.priors_, peer.priors_)
    assert_allclose(model.decision_function(X), peer.decision_function(X), rtol=1e-9)


def test_priors_of_quadratic_discriminants_are_those_at_the_time_of_fit(tmp_path):
    X, y = data("iris")
    given = np.array([2.0, 1.0, 1.0])
    model = ours.QuadraticDiscriminantAnalysis(priors=given).fit(X, y)
    given[0] = model.priors_[1] = 7.0
    assert model.priors_.tolist() == [2.0, 1.0, 1.0]
    model.save(tmp_path / "model")
    again = likely.load(tmp_path / "model")
    assert again.priors_.tolist() == [2.0, 1.0, 1.0]
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_parameters_take_effect_at_the_next_fit():
    X, y = data("iris")
    model = ours.LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    before = model.decision_function(X)
    model.set_params(n_components=2, solver="lsqr", store_covariance=True)
    assert model.transform(X).shape == (150, 1)
    assert not hasattr(model, "covariance_")
    assert_array_equal(model.decision_function(X), before)


def test_decisions_on_rows_with_holes_follow_the_posterior():
    X, y = data("iris")
    for classes in (2, 3):
        model = ours.LinearDiscriminantAnalysis().fit(X[y < classes], y[y < classes])
        holes = X.copy()
        holes[::2, 1] = np.nan
        scores = model.decision_function(holes)
        scores = np.column_stack([np.zeros(150), scores]) if classes == 2 else scores
        odds = model.predict_log_proba(holes)
        assert_allclose(scores - scores[:, :1], odds - odds[:, :1], rtol=1e-9, atol=1e-9)


def test_what_cannot_be_solved_is_said_in_the_words_of_the_class():
    X, y = data("iris")
    X[:, 3] = X[:, 0] - X[:, 1]
    with pytest.raises(np.linalg.LinAlgError, match="determine column 3") as error:
        ours.LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert "oas" not in str(error.value)
    assert "tied" not in str(error.value)
