"""Degenerate data gets a right answer, or is refused in one line."""

import numpy as np
import pytest
from cases import parameters
from refusal import X, Y, assert_refused, assert_unchanged_by, with_cell

import likely
from likely import GaussianDiscriminant, NaiveBayes

MODELS = {
    "naive Bayes": NaiveBayes,
    "log-normal": lambda: NaiveBayes("log-normal"),
    "gamma": lambda: NaiveBayes("gamma"),
    "exponential": lambda: NaiveBayes("exponential"),
    "poisson": lambda: NaiveBayes("poisson"),
    "categorical": lambda: NaiveBayes("categorical"),
    "multinomial": lambda: NaiveBayes("multinomial"),
    "full": GaussianDiscriminant,
    "full unshrunk": lambda: GaussianDiscriminant(shrinkage=0.0),
    "full tied": lambda: GaussianDiscriminant(tied=True),
    "ledoit-wolf": lambda: GaussianDiscriminant(shrinkage="ledoit-wolf"),
    "diagonal tied": lambda: GaussianDiscriminant("diagonal", tied=True),
    "spherical": lambda: GaussianDiscriminant("spherical"),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
WITH_HOLES = [name for name in MODELS if name != "ledoit-wolf"]
every_model_with_holes = pytest.mark.parametrize("make", [MODELS[name] for name in WITH_HOLES], ids=WITH_HOLES)
rng = np.random.default_rng(0)
MANY = rng.integers(1, 9, (40, 3)).astype(float)
MANY_Y = np.repeat([0, 1], 20)
MANY[20:, 0] += 12


# One row, one class


@every_model
def test_one_row_is_a_model(make):
    model = make().fit([[2.0, 3.0]], ["only"])
    assert model.predict([[2.0, 3.0], [9.0, 1.0]]).tolist() == ["only", "only"]
    assert model.predict_proba([[2.0, 3.0]]).tolist() == [[1.0]]
    assert np.isfinite(model.log_density([[2.0, 3.0]])).all()
    rows, labels = model.sample(5, random_state=0)
    assert rows.shape == (5, 2)
    assert set(labels) == {"only"}


@every_model
def test_one_class_is_certain_and_has_a_density(make):
    model = make().fit(MANY, np.zeros(40, dtype=int))
    assert np.all(model.predict_proba(MANY) == 1.0)
    assert model.decision_function(MANY).shape == (40, 1)
    assert not model.explain(MANY).log_odds.any()
    near, far = model.log_density([[4.0, 4.0, 4.0], [80.0, 80.0, 80.0]])
    assert near > far or make is MODELS["categorical"]


@every_model
def test_one_row_in_each_class_is_told_by_the_nearest_row(make):
    model = make().fit([[1.0, 9.0], [9.0, 1.0]], ["a", "b"])
    assert model.predict([[1.0, 9.0], [9.0, 1.0]]).tolist() == ["a", "b"]
    assert not np.isnan(model.predict_proba([[5.0, 5.0], [1.0, 9.0]])).any()


# Columns that say nothing


# Words share a total and spherical columns a variance: there a further column does say something.
INDEPENDENT = [name for name in MODELS if name not in ("multinomial", "spherical")]


@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize("value", [1.0, 7.0, 1e9])
def test_a_constant_column_changes_no_posterior(name, value):
    constant = np.full((40, 1), value)
    without, model = MODELS[name]().fit(MANY, MANY_Y), MODELS[name]().fit(np.hstack([MANY, constant]), MANY_Y)
    got = model.predict_proba(np.hstack([MANY, constant]))
    np.testing.assert_allclose(got, without.predict_proba(MANY), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in WITH_HOLES if name != "multinomial"])
def test_a_column_without_a_cell_changes_no_posterior(name):
    missing = np.full((40, 1), np.nan)
    without, model = MODELS[name]().fit(MANY, MANY_Y), MODELS[name]().fit(np.hstack([MANY, missing]), MANY_Y)
    for cells in (missing, np.ones((40, 1))):
        got = model.predict_proba(np.hstack([MANY, cells]))
        np.testing.assert_allclose(got, without.predict_proba(MANY), rtol=1e-12)


@every_model_with_holes
def test_nothing_but_holes_leaves_the_class_weights(make):
    model = make().fit(np.full((5, 2), np.nan), [0, 0, 1, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[np.nan, np.nan]]), [[0.4, 0.6]], rtol=1e-14)
    if make is not MODELS["multinomial"]:
        np.testing.assert_allclose(model.predict_proba([[3.0, 4.0]]), [[0.4, 0.6]], rtol=1e-14)


def test_a_column_that_one_class_never_has_is_like_all_rows_there():
    holes = MANY.copy()
    holes[:20, 1] = np.nan
    density = NaiveBayes().fit(holes, MANY_Y).joint_.densities[0]
    assert density.mean[0, 1] == pytest.approx(MANY[20:, 1].mean(), rel=1e-14)
    assert density.variance[0, 1] == pytest.approx(MANY[20:, 1].var(), rel=1e-13)


@every_model
def test_a_column_constant_in_one_class_gives_no_nan(make):
    rows = MANY.copy()
    rows[:20, 2] = 4.0
    if make is MODELS["full unshrunk"]:
        rows[:20] += rng.normal(0, 0.1, (20, 3)) * [1, 1, 0]
    model = make().fit(rows, MANY_Y)
    p = model.predict_proba(rows)
    assert not np.isnan(p).any()
    assert model.score(rows, MANY_Y) >= 0.8


def test_a_variance_has_a_floor_in_shares_of_the_variance_within_classes():
    variance = NaiveBayes().fit([[5.0], [5.0], [1.0], [9.0]], [0, 0, 1, 1]).joint_.densities[0].variance
    assert variance[0, 0] == pytest.approx(1e-9 * 8, rel=1e-12)
    assert variance[1, 0] == pytest.approx(16.0, rel=1e-15)


# Columns that depend on each other, rows that are too few


@pytest.mark.parametrize("tied", [False, True])
def test_collinear_columns_are_refused_by_name_without_shrinkage(tied):
    rows = np.column_stack([MANY, MANY[:, 0] + MANY[:, 1]])
    model = GaussianDiscriminant(tied=tied, shrinkage=0.0)
    whose = "all classes" if tied else "class 0"
    assert_refused(lambda: model.fit(rows, MANY_Y), whose, "40 rows" if tied else "20 rows", "column 3", "'oas'")
    assert not hasattr(model, "classes_")
    model.fit(rows + rng.normal(size=rows.shape), MANY_Y)
    assert_unchanged_by(model, lambda model: model.fit(rows, MANY_Y), whose, "column 3", rows=rows)


@pytest.mark.parametrize("shrinkage", [0.1, "oas", "ledoit-wolf"])
@pytest.mark.parametrize("tied", [False, True])
def test_collinear_columns_are_taken_with_shrinkage(shrinkage, tied):
    rows = np.column_stack([MANY, MANY[:, 0] + MANY[:, 1]])
    model = GaussianDiscriminant(tied=tied, shrinkage=shrinkage).fit(rows, MANY_Y)
    assert model.score(rows, MANY_Y) >= 0.8
    assert np.isfinite(model.log_density(rows)).all()


def test_a_class_with_fewer_rows_than_columns():
    rows, y = rng.normal(size=(12, 5)), np.repeat([0, 1], [9, 3])
    model = GaussianDiscriminant(shrinkage=0.0)
    assert_refused(lambda: model.fit(rows, y), "class 1", "3 rows", "5 columns", "shrinkage", "tied", "diagonal")
    for other in (GaussianDiscriminant(), GaussianDiscriminant(tied=True, shrinkage=0.1), NaiveBayes()):
        p = other.fit(rows, y).predict_proba(rows)
        assert not np.isnan(p).any()
        assert other.score(rows, y) >= 0.7


# Weights of zero


@every_model
def test_a_class_of_zero_weight_is_known_but_never_predicted(make):
    weights = np.where(MANY_Y == 1, 0.0, 1.0)
    model = make().fit(MANY, MANY_Y, sample_weight=weights)
    assert model.classes_.tolist() == [0, 1]
    assert model.class_count_.tolist() == [20.0, 0.0]
    np.testing.assert_array_equal(model.predict_proba(MANY), np.tile([1.0, 0.0], (40, 1)))


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_a_bad_cell_in_a_row_of_zero_weight_is_treated_alike_in_every_memory_order(family):
    rows, weights = with_cell(np.inf) + [[1.0, 1.0]], [1, 1, 1, 0, 1, 1]  # noqa: RUF005
    outcomes = []
    for order in ("C", "F"):
        try:
            NaiveBayes(family).fit(np.asarray(rows, order=order), Y, sample_weight=weights)
            outcomes.append("taken")
        except ValueError:
            outcomes.append("refused")
    assert outcomes[0] == outcomes[1]


# Numbers at the ends of the range


@pytest.mark.parametrize("make", [NaiveBayes, GaussianDiscriminant], ids=["naive Bayes", "full"])
@pytest.mark.parametrize("scale", [1e-100, 1e-170, 1e100, 1e170], ids=str)
def test_the_unit_of_a_column_does_not_matter_or_it_is_refused(make, scale):
    """Squares of 1e±170 are no doubles: an answer must be that of a better unit, or a refusal in one line."""
    want = make().fit(X, Y).predict_proba(X)
    try:
        got = make().fit(X * scale, Y).predict_proba(X * scale)
    except ValueError as refused:
        message = str(refused)
        assert "column" in message
        assert "\n" not in message
        return
    np.testing.assert_allclose(got, want, rtol=1e-9)


# Explanations of what is impossible


def test_an_explanation_is_never_of_a_class_against_itself():
    """The second class is impossible here; still it is the one to compare with."""
    model = NaiveBayes().partial_fit(X[:3], Y[:3], classes=[0, 1])
    told = model.explain(X)
    assert told.label.tolist() == [0] * 6
    assert told.against.tolist() == [1] * 6
    assert np.all(told.log_odds == np.inf)


def test_explaining_one_empty_class_against_another_gives_no_nan():
    """What is impossible twice says nothing (likely.families.base.subtract_logs)."""
    model = NaiveBayes().partial_fit(X[:3], Y[:3], classes=[0, 1, 2])
    assert not np.isnan(model.explain(X, 1, 2).log_odds).any()


def test_explaining_rows_impossible_under_both_classes_gives_no_warning_and_no_nan():
    model = NaiveBayes("bernoulli", smoothing=0.0).fit([[0, 1], [0, 1], [1, 0], [1, 0]], [0, 0, 1, 1])
    assert not np.isnan(model.explain([[0, 0], [1, 1]]).log_odds).any()


# Odds and ends


def test_ignoring_every_column_leaves_the_class_weights_or_is_refused_in_words():
    try:
        p = NaiveBayes("ignore").fit(X, [0, 0, 0, 0, 1, 1]).predict_proba(X)
    except ValueError as refused:
        message = str(refused)
        assert "got 'ignore'" not in message, "the message lists 'ignore' among the families it expects"
        return
    np.testing.assert_allclose(p, np.tile([4 / 6, 2 / 6], (6, 1)), rtol=1e-14)


def test_a_category_never_seen_says_nothing():
    model = NaiveBayes("categorical").fit([[1.0, 5.0], [2.0, 5.0], [1.0, 6.0]], [0, 0, 1])
    np.testing.assert_array_equal(model.predict_proba([[1.0, 99.0]]), model.predict_proba([[1.0, np.nan]]))


def test_booleans_are_bernoulli():
    yes = np.array([[True, False], [True, True], [False, False]])
    model = NaiveBayes().fit(yes, [0, 0, 1])
    np.testing.assert_allclose(model.joint_.densities[0].shares, [[1 / 4, 3 / 4, 2 / 4, 2 / 4], [2 / 3, 1 / 3] * 2])
    np.testing.assert_array_equal(model.predict_proba(yes), model.predict_proba(yes.astype(float)))


def test_no_samples_are_samples():
    rows, labels = NaiveBayes().fit(X, Y).sample(0)
    assert rows.shape == (0, 2)
    assert labels.shape == (0,)


def test_threads_are_at_least_one():
    with pytest.raises(ValueError, match="at least 1"):
        likely.set_threads(0)
    assert likely.get_threads() >= 1


def test_a_question_before_any_data_is_refused():
    for question in ("predict", "predict_proba", "log_density", "explain"):
        assert_refused(lambda q=question: getattr(NaiveBayes(), q)(X), "not fitted", "fit(X, y)")
    assert_refused(lambda: parameters(NaiveBayes()), "not fitted")
