"""The face of scikit-learn's CategoricalNB: categories as text, missing, new, merged and forgotten."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn.naive_bayes as upstream
from sameness import alike, equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from likely.sklearn import CategoricalNB

GENERATOR = np.random.default_rng(7)
ROWS = 60
Y = GENERATOR.choice(["a", "b", "c"], ROWS)
COLOURS = np.array(["red", "blue", "green", "yellow"], dtype=object)
SHAPES = np.array(["round", "long", None], dtype=object)
TEXT = np.column_stack(
    [COLOURS[GENERATOR.integers(0, 4, ROWS)], SHAPES[GENERATOR.integers(0, 3, ROWS)], GENERATOR.integers(0, 3, ROWS)]
).astype(object)
TEXT[:3, 2] = [2, 0, 1]
FRAME = pd.DataFrame({"colour": TEXT[:, 0], "shape": TEXT[:, 1], "size": TEXT[:, 2].astype(float)})
TEXTS = {
    "objects": lambda x: x,
    "lists": lambda x: x.tolist(),
    "frame": lambda x: pd.DataFrame(x, columns=["colour", "shape", "size"]),
    "categoricals": lambda x: pd.DataFrame(x, columns=["colour", "shape", "size"]).astype(
        {"colour": "category", "shape": "category", "size": int}
    ),
    "nullable": lambda x: pd.DataFrame(x, columns=["colour", "shape", "size"]).astype(
        {"colour": "string", "shape": "string", "size": "Int64"}
    ),
}


def _codes(x):
    """Return the categories as numbers, in the order of the alphabet."""
    colours, shapes = sorted(set(COLOURS)), ["long", "round"]
    numbers = [[colours.index(c), np.nan if s is None else shapes.index(s), n] for c, s, n in x]
    return np.array(numbers, dtype=float)


@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_read_as_categories(kind):
    model = CategoricalNB().fit(TEXTS[kind](TEXT), Y)
    coded = CategoricalNB().fit(_codes(TEXT), Y)
    equal(model.predict_proba(TEXTS[kind](TEXT)), coded.predict_proba(_codes(TEXT)))
    equal(model.category_count_, coded.category_count_)
    assert model.n_categories_.tolist() == [4, 2, 3]


def test_text_in_polars():
    polars = pytest.importorskip("polars")
    kinds = {"colour": polars.String, "shape": polars.Categorical, "size": polars.Int64}
    frame = polars.DataFrame(TEXT.tolist(), schema=["colour", "shape", "size"], orient="row").cast(kinds)
    model = CategoricalNB().fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["colour", "shape", "size"]
    equal(model.predict_proba(frame), CategoricalNB().fit(_codes(TEXT), Y).predict_proba(_codes(TEXT)))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("cut", [1, 2, 7, 30])
def test_text_is_learned_in_batches_merged_and_forgotten(kind, cut):
    read = TEXTS[kind]
    order = np.lexsort((TEXT[:, 0].astype(str), TEXT[:, 2]))  # so that the batches have different categories
    text, y = TEXT[order], Y[order]
    whole = CategoricalNB().fit(read(text), y)
    batches = CategoricalNB().partial_fit(read(text[cut:]), y[cut:], classes=["a", "b", "c"])
    late = CategoricalNB().partial_fit(read(text[:cut]), y[:cut], classes=["a", "b", "c"])
    alike(pickle.loads(pickle.dumps(late)).partial_fit(read(text[cut:]), y[cut:]), whole, read(TEXT))
    before = late.predict_proba(read(TEXT))
    merged = clone(batches).fit(read(text[cut:]), y[cut:]).merge(late)
    alike(merged, whole, read(TEXT))
    equal(late.predict_proba(read(TEXT)), before)
    alike(merged.forget(read(text[cut:]), y[cut:]), late, read(TEXT))


def test_a_category_that_is_forgotten_is_gone():
    x, y = [["red"], ["blue"], ["green"], ["red"]], [0, 1, 1, 0]
    model = CategoricalNB().fit(x, y).forget([["green"]], [1])
    alike(model, CategoricalNB().fit(x[:2] + x[3:], y[:2] + y[3:]), [["red"], ["green"], ["blue"]])
    assert model.n_categories_.tolist() == [2]


def test_what_was_not_learned_is_not_forgotten():
    model = CategoricalNB().fit(TEXT, Y)
    answers = model.predict_proba(TEXT)
    with pytest.raises(ValueError, match="expected rows that the model has learned"):
        model.forget([["violet", "long", 1]], ["a"])
    equal(model.predict_proba(TEXT), answers)
    assert model.n_categories_.tolist() == [4, 2, 3]


def test_categories_that_were_not_seen_say_nothing():
    model = CategoricalNB().fit(TEXT, Y)
    nothing = model.predict_proba([[None, None, None]])
    equal(nothing[0], np.exp(model.class_log_prior_))
    equal(model.predict_proba([["violet", "square", 17]]), nothing)
    numbers = CategoricalNB().fit(_codes(TEXT), Y)
    equal(numbers.predict_proba([[99, 98, 97]]), np.exp(numbers.class_log_prior_)[None])


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ([[3, "long", 1]], ValueError, "expected text in column 0, as in its other rows, got 3"),
        ([["red", "long", "big"]], ValueError, "expected numbers in column 2, as were learned before, got 'big'"),
        ([[["red"], "long", 1]], TypeError, "argument must be a string or a number"),
        ([[pd.Timestamp(0), "long", 1]], ValueError, "expected text in column 0"),
    ],
    ids=["number", "text", "list", "date"],
)
def test_text_and_numbers_are_not_mixed(rows, kind, message):
    model = CategoricalNB().fit(TEXT, Y)
    table = np.empty((1, 3), dtype=object)
    table[0] = [*rows[0]]
    with pytest.raises(kind, match=re.escape(message)):
        model.predict(table)
    for learn in (model.partial_fit, model.forget):
        with pytest.raises((ValueError, TypeError), match=r"expected (text|numbers)"):
            learn(table, ["a"])
    alike(model, CategoricalNB().fit(TEXT, Y), TEXT)


def test_models_of_text_and_of_numbers_are_not_merged():
    numbers, text = CategoricalNB().fit([[1], [0]], [0, 1]), CategoricalNB().fit([["x"], ["y"]], [0, 1])
    for one, other in ((numbers, text), (text, numbers)):
        with pytest.raises(ValueError, match=r"expected numbers in column 0, as were learned before, got text"):
            one.merge(other)


def test_a_column_may_be_empty_at_first():
    x, y = [["red", None], ["blue", None], ["red", "big"]], [0, 1, 1]
    model = CategoricalNB().partial_fit(x[:2], y[:2], classes=[0, 1]).partial_fit(x[2:], y[2:])
    alike(model, CategoricalNB().fit(x, y), x)


def test_more_categories_of_text_may_be_awaited():
    model = CategoricalNB(min_categories=3).fit([["red"], ["blue"]], [0, 1])
    assert model.n_categories_.tolist() == [3]
    equal(np.exp(model.feature_log_prob_[0]), np.array([[1, 2, 1], [2, 1, 1]]) / 4)


def test_rows_of_no_weight_have_no_categories():
    weights = np.ones(ROWS)
    weights[::7] = 0
    model = CategoricalNB().fit(TEXT, Y, weights)
    alike(model, CategoricalNB().fit(TEXT[weights > 0], Y[weights > 0]), TEXT)


def test_samples_are_text_where_the_rows_were():
    x, y = CategoricalNB().fit(TEXT, Y).sample(50, random_state=0)
    assert set(x[:, 0]) <= set(COLOURS)
    assert set(x[:, 1]) <= {"long", "round"}
    assert set(x[:, 2]) <= {0.0, 1.0, 2.0}
    assert set(y) <= {"a", "b", "c"}


def test_samples_of_categories_without_a_name_are_missing():
    x, _ = CategoricalNB(min_categories=9).fit([["a"], ["b"]], [0, 1]).sample(50, random_state=0)
    assert set(x[:, 0]) == {"a", "b", None}


def test_in_a_pipeline_with_an_encoder():
    known = FRAME.fillna("none")
    ours, theirs = (
        make_pipeline(OrdinalEncoder(), model).fit(known, Y) for model in (CategoricalNB(), upstream.CategoricalNB())
    )
    equal(ours.predict_proba(known), theirs.predict_proba(known))
    lenient = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    model = make_pipeline(lenient, CategoricalNB()).fit(FRAME, Y)
    equal(model.predict_proba(FRAME), CategoricalNB().fit(FRAME, Y).predict_proba(FRAME))
