"""Columns of categories taken together: one share for every combination, and holes that may be any of them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import likely
from likely import Classifier, NaiveBayes
from likely.families import Together
from likely.families.together import combinations_of

COLOURS, SIZES = ["red", "green", "blue"], ["small", "large"]
cells = st.tuples(
    st.sampled_from([*COLOURS, None]),
    st.sampled_from([*SIZES, None]),
    st.sampled_from([None, -1.0, 0.5, 3.0]),
    st.sampled_from(["no", "yes"]),
)


def table(rows):
    return [dict(zip(("colour", "size", "x", "y"), row, strict=True)) for row in rows]


def made(**more):
    return NaiveBayes(
        columns={"colour": "category", "size": "category", "x": "number"}, together=["colour", "size"], **more
    )


def complete(rows):
    """One row of each class and combination, so that all of them are known, and then these."""
    pairs = enumerate(product(COLOURS, SIZES))
    return table([(*pair, float(i), y) for i, pair in pairs for y in ("no", "yes")] + rows)


def shares(model):
    return next(d.shares for d in model.joint_.densities if hasattr(d, "shares") and d.shares.ndim == 3)


def drawn(n, holes, seed=0):
    generator = np.random.default_rng(seed)
    first, y = generator.integers(0, 3, n), generator.integers(0, 2, n)
    second = np.where(generator.random(n) < 0.8, first % 2 ^ y, generator.integers(0, 2, n))
    rows = [(COLOURS[a], SIZES[b], 0.0, "yes" if c else "no") for a, b, c in zip(first, second, y, strict=True)]
    gone = generator.random((n, 2)) < holes
    return [(None if g else a, None if h else b, x, c) for (a, b, x, c), (g, h) in zip(rows, gone, strict=True)]


def test_shares_are_counted():
    model = made().fit(complete([("red", "small", 0.0, "no")] * 4), "y")
    found = shares(model)[0]  # sorted: blue, green, red × large, small
    np.testing.assert_allclose(found, np.array([[2, 2], [2, 2], [2, 6]]) / 16)


@pytest.mark.parametrize("smoothing", [0.5, 1.0])
def test_holes_are_filled_by_likelihood(smoothing):
    """The shares with holes maximise the likelihood of what is there, times that of the pseudo-counts."""
    rows = [row for row in drawn(120, 0.4) if row[3] == "no" and row[:2] != (None, None)]
    model = made(smoothing=smoothing).fit(table([*rows, ("red", "small", 0.0, "yes")]), "y")
    names = sorted(COLOURS), sorted(SIZES)

    def loss(logits):
        theta = np.exp(logits - logits.max()).reshape(3, 2)
        theta /= theta.sum()
        found = -smoothing * np.log(theta).sum()
        for colour, size, _, _ in rows:
            part = theta if colour is None else theta[[names[0].index(colour)]]
            part = part if size is None else part[:, [names[1].index(size)]]
            found -= np.log(part.sum())
        return found

    best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    theta = np.exp(best.x - best.x.max()).reshape(3, 2)
    np.testing.assert_allclose(shares(model)[0], theta / theta.sum(), atol=1e-6)
    assert loss(np.log(shares(model)[0].ravel())) <= best.fun + 1e-9


@given(st.lists(cells, max_size=12), st.integers(0, 12))
def test_batches_merging_and_forgetting(rows, cut):
    rows = complete(rows)
    whole = made().fit(rows, "y")
    first, rest = rows[: 12 + cut], rows[12 + cut :]
    parts = made().fit(first, "y")
    if rest:
        parts.partial_fit(rest, "y")
    np.testing.assert_allclose(shares(parts), shares(whole), rtol=1e-9)
    np.testing.assert_allclose(parts.predict_proba(rows), whole.predict_proba(rows), rtol=1e-9)
    if rest:
        parts.forget(rest, "y")
        np.testing.assert_allclose(shares(parts), shares(made().fit(first, "y")), rtol=1e-9)


@given(st.lists(cells, max_size=12), st.lists(cells, min_size=1, max_size=4))
def test_answers_agree_with_each_other(rows, asked):
    model = made().fit(complete(rows), "y")
    asked = table(asked)
    density = np.exp(model.log_density(asked))
    for i, row in enumerate(asked):
        for column, values in (("colour", COLOURS), ("size", SIZES)):
            every = [{**row, column: value} for value in values]
            among = np.exp(model.log_density(every))
            if row[column] is None:  # p(x) without a column is the sum over all it may be
                np.testing.assert_allclose(among.sum(), density[i], rtol=1e-9)
            found = dict(zip(model.values_of(column), model.predict_proba([row], of=column)[0], strict=True))
            np.testing.assert_allclose([found[value] for value in values], among / among.sum(), rtol=1e-9)
            if row[column] is None:
                likeliest = model.impute([row]).column(column)[0].as_py()
                assert found[likeliest] == pytest.approx(max(found.values()))
    explained = model.explain(asked, "yes", "no")
    odds = model.predict_log_proba(asked)
    np.testing.assert_allclose(explained.base + explained.cells.sum(axis=1), odds[:, 1] - odds[:, 0], atol=1e-9)
    for row, contributions in zip(asked, explained.cells, strict=True):
        assert all(contributions[j] == 0 for j, name in enumerate(("colour", "size")) if row[name] is None)


def test_a_category_not_seen_says_nothing():
    model = made().fit(complete(drawn(50, 0.2)), "y")
    unknown, missing = ({"colour": name, "size": "small", "x": 0.0} for name in ("pink", None))
    np.testing.assert_array_equal(model.predict_proba([unknown]), model.predict_proba([missing]))


def test_draws_have_the_shares():
    model = made().fit(complete(drawn(300, 0.2)), "y")
    rows, labels = model.sample(20_000, random_state=0)
    rows = rows.to_pylist()
    for c, label in enumerate(model.classes_):
        own = [(row["colour"], row["size"]) for row, y in zip(rows, labels, strict=True) if y == label]
        found = [[sum(pair == (a, b) for pair in own) / len(own) for b in sorted(SIZES)] for a in sorted(COLOURS)]
        np.testing.assert_allclose(found, shares(model)[c], atol=0.02)
    rows, _ = model.sample(20_000, random_state=0, given={"colour": "red", "y": "no"})
    given_red = shares(model)[0, 2] / shares(model)[0, 2].sum()
    assert np.mean([row["size"] == "large" for row in rows.to_pylist()]) == pytest.approx(given_red[0], abs=0.02)


def test_saved_and_read(tmp_path):
    model = made().fit(complete(drawn(50, 0.3)), "y")
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict_proba(complete([])), model.predict_proba(complete([])))
    np.testing.assert_array_equal(again.merge(model).class_count_, 2 * model.class_count_)
    assert "categories together: colour, size" in str(model)


def test_what_one_column_alone_cannot_say():
    """Colour and size each say nothing of the class, together nearly all: naive Bayes is blind to it."""
    rows = [(COLOURS[a], SIZES[b], None, "yes" if a ^ b else "no") for a, b in product(range(2), range(2))] * 20
    alone, together = NaiveBayes(columns={"x": "ignore"}), made()
    assert alone.fit(table(rows), "y").score(table(rows), "y") == 0.5
    together.columns = {"x": "ignore"}
    assert together.fit(table(rows), "y").score(table(rows), "y") == 1.0


def test_the_calibrated_classifier_compares_combinations(tmp_path):
    """Two classes by whether three columns are of an even number of kinds: no one or two of them say anything."""
    generator = np.random.default_rng(0)
    rows = [
        {"a": f"a{a}", "b": f"b{b}", "c": f"c{c}", "x": float(generator.normal()), "y": f"c{(a + b + c) % 2}"}
        for a, b, c in generator.integers(0, 2, (300, 3))
    ]
    for row in rows[:30]:
        row["a" if generator.random() < 0.5 else "b"] = None
    kinds = dict.fromkeys("abc", "category")
    blind = Classifier(columns=kinds).fit(rows, "y")
    model = Classifier(columns=kinds, together=["a", "b", "c"]).fit(rows, "y")
    known = rows[30:]
    assert blind.score(known, "y") < 0.7 < 0.99 < model.score(known, "y")
    told, logs = model.explain(rows[:50], "c0", "c1"), model.predict_log_proba(rows[:50])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 1], atol=1e-9)
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    again.merge(model.emptied().partial_fit(rows[:20], "y"))
    assert model.evaluate(rows, "y", folds=3).accuracy > 0.8


@pytest.mark.parametrize("model", [NaiveBayes, Classifier])
@pytest.mark.parametrize(
    ("together", "message"),
    [
        (["colour"], "two or more columns"),
        ("colour", "two or more columns"),
        (["colour", "x"], "columns of categories, each once, in together=, got column 'x'"),
        ([["colour", "size"], ["size", "colour"]], "each once"),
        (["colour", "shape"], "expected columns among"),
    ],
)
def test_what_cannot_be_taken_together(model, together, message):
    with pytest.raises(ValueError, match=message):
        model(together=together).fit(complete([]), "y")


def test_too_many_columns_or_combinations():
    many = [{**{f"c{j}": f"v{i // 2}" for j in range(9)}, "y": i % 2} for i in range(40)]
    with pytest.raises(ValueError, match="at most 8 columns together, got 9"):
        NaiveBayes(together=[f"c{j}" for j in range(9)]).fit(many, "y")
    with pytest.raises(ValueError, match="at most 1,000,000 combinations of categories, got"):
        NaiveBayes(together=[f"c{j}" for j in range(8)]).fit(many, "y")


def test_too_many_combinations_and_classes():
    rows = [{"a": f"a{i % 90}", "b": f"b{i % 89}", "c": f"c{i % 91}", "y": i % 50} for i in range(900)]
    with pytest.raises(ValueError, match="combinations of categories and classes, got 36,445,500"):
        NaiveBayes(together=["a", "b", "c"]).fit(rows, "y")


@pytest.mark.parametrize("label", ["", "[", '["a"]', '["a", 1]', "[null, null]", '["a",null]', "[" * 10_000])
def test_labels_that_are_none(label):
    with pytest.raises(ValueError, match="expected a combination of 2 categories"):
        combinations_of(np.array([label], dtype=object), 2)


def test_a_family_is_a_value():
    assert Together(smoothing=2.0) == Together(smoothing=2.0)
    assert Together() != Together(smoothing=2.0)
