"""Tables of any types and holes: every law holds for estimators that take them as they are."""

import string
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import likely
from likely import Classifier, GaussianDiscriminant, Mixture, NaiveBayes
from likely.cli import run
from likely.data.rows import open_rows

WORDS = st.sampled_from(["red", "green", "blue", "été", "a,b", 'q"q', "  x", "3", "-", "nan"])
CELLS = {
    "number": st.floats(-1e6, 1e6, allow_nan=False, width=32),
    "integer": st.integers(-1000, 1000),
    "count": st.integers(0, 5),
    "flag": st.booleans(),
    "word": WORDS,
    "day": st.datetimes(pd.Timestamp("1999-01-01"), pd.Timestamp("2030-01-01")),
}
TYPES = {"number": "float64", "integer": "Int64", "count": "Int64", "flag": "boolean", "word": "object"}
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def frames(draw, least=12, most=30):
    """A frame with a column of each of some types, holes in it, and labels."""
    n = draw(st.integers(least, most))
    kinds = ["number", *draw(st.lists(st.sampled_from(sorted(CELLS)), max_size=4))]
    columns = {}
    for j, kind in enumerate(kinds):
        cells = draw(st.lists(st.one_of(CELLS[kind], st.none()), min_size=n, max_size=n))
        if all(cell is None for cell in cells):
            cells[0] = draw(CELLS[kind])
        name = f"{kind} {j}"
        columns[name] = pd.to_datetime(cells) if kind == "day" else pd.array(cells, dtype=TYPES[kind])
    labels = draw(st.lists(st.sampled_from(["no", "yes", "perhaps"]), min_size=n, max_size=n))
    return pd.DataFrame(columns), np.array(labels)


def answers(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.predict_proba(X)


@SLOW
@given(frames())
def test_every_classifier_answers(case):
    X, y = case
    for model in (NaiveBayes(), Classifier(), Classifier(calibrate=False)):
        p = answers(model.fit(X, y), X)
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        assert set(model.predict(X)) <= set(y)


@SLOW
@given(frames(), st.integers(1, 11), st.randoms(use_true_random=False))
def test_rows_in_any_order_and_in_any_batches(case, cut, dice):
    X, y = case
    whole = NaiveBayes().fit(X, y)
    order = list(range(len(X)))
    dice.shuffle(order)
    shuffled = NaiveBayes().fit(X.iloc[order], y[order])
    np.testing.assert_allclose(answers(shuffled, X), answers(whole, X), rtol=1e-7, atol=1e-9)
    # What the columns are is decided by the first rows: here, by all of them.
    batches = NaiveBayes().fit(X, y).partial_fit(X.iloc[:cut], y[:cut]).forget(X.iloc[:cut], y[:cut])
    np.testing.assert_allclose(answers(batches, X), answers(whole, X), rtol=1e-7, atol=1e-9)


@SLOW
@given(frames())
def test_a_merge_is_the_rows_together(case):
    X, y = case
    for kind in (NaiveBayes, Classifier):
        one = kind().fit(X, y)
        two = kind().fit(X, y).partial_fit(X, y)
        np.testing.assert_allclose(answers(one.merge(one), X), answers(two, X), rtol=1e-9, atol=1e-12)


@SLOW
@given(frames())
def test_columns_in_any_order(case):
    X, y = case
    X = X.assign(letter=np.where(np.arange(len(X)) % 2, "a", "b"))  # a frame of nothing but floats is a matrix
    for model in (NaiveBayes().fit(X, y), Classifier().fit(X, y)):
        np.testing.assert_array_equal(answers(model, X[X.columns[::-1]]), answers(model, X))
        extra = X.assign(another=1.0)
        np.testing.assert_array_equal(answers(model, extra), answers(model, X))


@SLOW
@given(frames())
def test_a_column_that_is_not_there_is_missing(case):
    X, y = case
    X = X.assign(letter="a", last=np.arange(len(X)) * 0.5)
    for model in (NaiveBayes().fit(X, y), Classifier().fit(X, y)):
        with pytest.warns(UserWarning, match="'last'"):
            without = model.predict_proba(X.drop(columns="last"))
        np.testing.assert_array_equal(without, answers(model, X.assign(last=np.nan)))


@SLOW
@given(frames())
def test_the_same_table_from_anywhere(case):
    X, y = case
    table = pa.Table.from_pandas(X, preserve_index=False)
    model = NaiveBayes().fit(X, y)
    want = answers(model, X)
    records = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in X.astype(object).to_dict("records")]
    for form in (table, pl.from_arrow(table), records, {name: table.column(name) for name in table.column_names}):
        np.testing.assert_array_equal(answers(model, form), want)


@SLOW
@given(case=frames())
def test_save_and_load(case, tmp_path_factory):
    X, y = case
    path = tmp_path_factory.mktemp("saved") / "model.likely"
    for model in (NaiveBayes().fit(X, y), Classifier().fit(X, y)):
        model.save(path)
        same = likely.load(path)
        np.testing.assert_array_equal(answers(same, X), answers(model, X))
        same.partial_fit(X, y)
        model.merge(model)
        np.testing.assert_allclose(answers(same, X), answers(model, X), rtol=1e-9, atol=1e-12)


def varied(dates):
    """Say whether something of the dates differs that a model learns."""
    return any(getattr(dates.dt, part).nunique() > 1 for part in ("year", "month", "day_of_week", "hour"))


@SLOW
@given(frames(), st.sampled_from(["mean", "draw"]))
def test_impute_fills_holes_and_nothing_else(case, how):
    X, y = case
    filled = NaiveBayes().fit(X, y).impute(X, how=how, random_state=0)
    assert list(filled.columns) == list(X.columns)
    for name in X:
        there = X[name].notna().to_numpy()
        assert list(filled[name][there]) == list(X[name][there])
        if "day" not in name or varied(X[name]):
            assert filled[name].notna().all(), name
        assert filled[name].dtype.kind == X[name].dtype.kind or "day" not in name


@SLOW
@given(frames())
def test_samples_have_the_columns_and_what_was_given(case):
    X, y = case
    X = X.assign(colour=np.where(np.arange(len(X)) % 2, "red", "blue"))
    model = Classifier().fit(X, y)
    rows, labels = model.sample(20, 0, given={"colour": "red"})
    assert rows.column("colour").to_pylist() == ["red"] * 20
    assert set(labels) <= set(y)
    assert rows.column_names == [column.name for column in model.schema_.columns if column.outputs]


def test_target_by_name_and_rows_without_label():
    frame = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0, 5.0], "b": list("xxyyx"), "t": ["n", "n", "p", "p", None]})
    with pytest.warns(UserWarning, match="1 rows without a label in 't' are left out"):
        model = NaiveBayes().fit(frame, "t")
    assert model.target_ == "t"
    assert model.class_count_.tolist() == [2, 2]
    assert model.predict(frame).tolist()[:4] == ["n", "n", "p", "p"]
    with pytest.raises(ValueError, match="did you mean 'tt'"):
        NaiveBayes().fit(frame.rename(columns={"b": "tt"}), "ttt")


def test_kinds_and_families_are_overridden_by_name():
    n = 40
    frame = pd.DataFrame(
        {"zip": np.arange(n) % 3 + 10000, "age": np.arange(n) + 1.0, "id": np.arange(n), "c": list("ab") * (n // 2)}
    )
    y = np.arange(n) % 2
    model = NaiveBayes({"zip": "categorical", "age": "log-normal", "id": "ignore"}).fit(frame, y)
    assert {part.family.name: part.columns for part in model.joint_.parts} == {
        "named categories": [0, 2],
        "log-normal": [1],
    }
    assert "id" not in model.feature_names_in_
    with pytest.raises(ValueError, match="agee"):
        NaiveBayes({"agee": "number"}).fit(frame, y)


def test_a_wrong_type_names_column_and_value():
    model = NaiveBayes().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": list("xyx")}), [0, 1, 0])
    with pytest.raises((ValueError, TypeError), match=r"'a'.*'old'|'old'.*'a'"):
        model.predict(pd.DataFrame({"a": ["old"], "b": ["x"]}))


def test_explanations_show_names_and_add_up():
    frame = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0] * 10, "b": list("xxyy") * 10})
    for model in (NaiveBayes(), Classifier()):
        told = model.fit(frame, np.array([0, 0, 1, 1] * 10)).explain(frame[:3])
        assert "x" in str(told)
        p = model.predict_log_proba(frame[:3])
        rows, one = np.arange(3), p.argmax(axis=1)
        np.testing.assert_allclose(told.log_odds, p[rows, one] - p[rows, 1 - one], atol=1e-9)


def test_words_for_missing():
    frame = pd.DataFrame({"a": ["1", "?", "3", "4"], "b": ["x", "?", "y", "x"]})
    model = NaiveBayes(missing="?").fit(frame, [0, 1, 0, 1])
    assert "?" not in model.joint_.categories.get(1, [])
    assert string.ascii_lowercase[23] in model.values_of("b")


def test_a_word_among_numbers_is_told_of():
    frame = pd.DataFrame({"a": [*map(str, range(20)), "NA"]})
    with pytest.warns(UserWarning, match=r"'a' but for 'NA'.*missing=\['NA'\]"):
        NaiveBayes().fit(frame, np.arange(21) % 2)
    model = NaiveBayes(missing=["NA"]).fit(frame, np.arange(21) % 2)
    assert model.schema_.kinds == ("number",)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_gaussian_columns_hang_together_on_request(covariance, tmp_path):
    generator = np.random.default_rng(0)
    x = generator.multivariate_normal([0, 0], [[1, 0.95], [0.95, 1]], 200)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": np.where(np.arange(200) % 3, "u", "v")})
    y = np.arange(200) % 2
    model = Classifier(covariance=covariance).fit(frame, y)
    hole = pd.DataFrame({"a": [2.0], "b": [np.nan], "c": ["u"]})
    assert 1.6 < model.impute(hole)["b"][0] < 2.2
    assert abs(Classifier(joint="naive").fit(frame, y).impute(hole)["b"][0]) < 0.3
    assert (
        1.0 < Classifier().fit(frame, y).impute(hole)["b"][0] < 2.2
    )  # by trees, in which columns depend on each other
    assert "full covariance" in str(model)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(likely.load(tmp_path / "model").log_density(frame), model.log_density(frame))
    with pytest.raises(ValueError, match="covariance='diagonal', 'full' or 'tied'"):
        Classifier(covariance="block").fit(frame, y)


@pytest.mark.parametrize("shift", [0, 1, 4, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_are_read_wherever_their_bytes_begin(shift, dtype):
    generator = np.random.default_rng(0)
    cells = generator.normal(size=(200, 2)).astype(dtype)
    label = np.where(cells[:, 0] > 0, "x", "y")

    def shifted(column, by):
        return pa.Array.from_buffers(
            pa.from_numpy_dtype(dtype), len(column), [None, pa.py_buffer(b"-" * by + column.tobytes()).slice(by)]
        )

    table = pa.table({"a": shifted(cells[:, 0], shift), "b": shifted(cells[:, 1], 0), "y": label})
    plain = pa.table({"a": cells[:, 0], "b": cells[:, 1], "y": label})
    found, wanted = (NaiveBayes().fit(data, "y").predict_proba(plain) for data in (table, plain))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("model", [NaiveBayes(), Classifier(calibrate=False), Mixture(1)], ids=repr)
@pytest.mark.parametrize(
    "columns",
    [{"a": "number"}, {"b": "integer"}, {"b": "category"}, {"c": "boolean"}, {"a": "number", "b": "ignore"}],
    ids=str,
)
def test_kinds_are_taken_whatever_the_types_of_all_columns(model, columns):
    """A frame of nothing but floats is read as a matrix, and one with another column is not."""
    rng = np.random.default_rng(0)
    y = np.tile(["no", "yes"], 40)
    cells = [rng.normal(size=80) + 2.0 * (y == "yes"), rng.integers(0, 4, 80), rng.random(80) < 0.5]
    floats = pd.DataFrame(dict(zip("abc", cells, strict=True)), dtype=float)
    mixed = floats.assign(d="same")
    columns = {**dict.fromkeys("abc", "number"), **columns}  # of a frame, whole numbers would be found out
    numbered = {"abc".index(name): kind for name, kind in columns.items()}
    given = [(floats, columns), (floats.to_numpy(), numbered), (mixed, {**columns, "d": "ignore"})]
    labels = [] if isinstance(model, Mixture) else [y]
    answers = [clone(model).set_params(columns=kinds).fit(rows, *labels).log_density(rows) for rows, kinds in given]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-9, atol=1e-12)


def test_kinds_that_numbers_cannot_have_and_kinds_without_a_column_are_refused():
    floats = pd.DataFrame({"a": [1.5, 2.0, 3.0], "b": [1.0, 0.0, 1.5]})
    with pytest.raises(ValueError, match=r"expected text or dates in column 'a', .* got numbers"):
        Mixture(1, columns={"a": "text"}).fit(floats)
    for rows in (floats, floats.round().astype({"b": int})):
        with pytest.raises(ValueError, match=r"expected kinds by column, such as columns=\{'a': 'number'\}"):
            Mixture(1, columns="number").fit(rows)


def large_numbers():
    return np.arange(40, dtype=np.uint64) + np.uint64(2**64 - 41)


@pytest.mark.parametrize("columns", ["auto", {"v": "gaussian"}, {"v": "log-normal"}, {"v": "category"}])
def test_whole_numbers_beyond_63_bits_are_answered_in_their_type(columns, tmp_path):
    table = pa.table({"v": large_numbers(), "y": list("ab") * 20})
    model = NaiveBayes(columns).fit(table, "y")
    model.save(tmp_path / "model")
    for each in (model, likely.load(tmp_path / "model")):
        drawn = each.sample(50, random_state=0)[0]
        assert drawn.num_rows == 50
        for how in ("mean", "draw"):
            for hole in (pa.array([None], pa.uint64()), pa.nulls(1)):
                filled = each.impute(pa.table({"v": hole}), how=how, random_state=0).column("v")
                assert filled.null_count == 0
                if columns == "auto":
                    assert filled.type == drawn.column("v").type == pa.uint64()


def test_drawn_whole_numbers_are_in_the_range_of_their_type():
    cells = [*range(-128, 128), *[None] * 2000]
    table = pa.table({"v": pa.array(cells, pa.int8()), "y": ["a"] * len(cells)})
    model = NaiveBayes({"v": "integer"}).fit(table, "y")
    filled = model.impute(table, how="draw", random_state=0).column("v")
    assert (filled.type, filled.null_count) == (pa.int8(), 0)
    assert filled.to_pylist()[:256] == cells[:256]


def test_files_of_small_and_large_whole_numbers_are_one_table(tmp_path):
    for name, kind in (("a", pa.uint64()), ("b", pa.int64()), ("c", pa.uint8())):
        largest = 2**63 if name == "a" else 5
        pa.parquet.write_table(pa.table({"v": pa.array([1, largest], kind)}), tmp_path / f"{name}.parquet")

    def read(*names):
        return pa.Table.from_batches(open_rows([tmp_path / f"{name}.parquet" for name in names]).batches()).column("v")

    assert read("a", "c").to_pylist() == [1, 2**63, 1, 5]
    assert read("a", "b").to_pylist() == [1.0, 2.0**63, 1.0, 5.0]
    assert read("b", "c").type == pa.int64()


@pytest.mark.parametrize(
    ("no", "yes", "columns"),
    [
        ("False", "True", "auto"),
        ("false", "true", "auto"),
        ("FALSE", "TRUE", "auto"),
        ("No", "Yes", "auto"),
        ("No", "Yes", {"b": "boolean"}),
        ("n", "y", {"b": "boolean"}),
        ("F", "T", {"b": "boolean"}),
        ("False", "True", {"b": "category"}),
    ],
)
def test_cells_that_are_filled_look_like_those_that_are_there(no, yes, columns, tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4] * 5, "b": [yes, no, None, yes] * 5, "y": list("pq") * 10})
    model = NaiveBayes(columns).fit(frame, "y")
    model.save(tmp_path / "model")
    for each in (model, likely.load(tmp_path / "model")):
        assert set(each.impute(frame, frame["y"])["b"]) == {yes, no}
        drawn = each.impute(pd.DataFrame({"a": [2.0] * 40, "b": [None] * 40}), how="draw", random_state=0)["b"]
        assert set(drawn) == {yes, no}
        assert set(each.sample(40, random_state=0)[0].column("b").to_pylist()) == {yes, no}
    one = pd.DataFrame({"a": [2.0] * 40, "b": [no, *[None] * 39]})
    assert set(model.impute(one, how="draw", random_state=0)["b"]) == {yes, no}


def test_cells_of_a_csv_file_are_filled_as_the_others_are_written(tmp_path):
    rows = "".join(f"{word},{i},{'pq'[i % 2]}\n" for i, word in enumerate(["True", "False", "", "True"] * 5))
    (tmp_path / "rows.csv").write_text("b,a,y\n" + rows)
    assert run(["fit", f"{tmp_path}/rows.csv", "-t", "y", "-o", f"{tmp_path}/m"]) == 0
    assert run(["impute", f"{tmp_path}/m", f"{tmp_path}/rows.csv", "-o", f"{tmp_path}/whole.csv"]) == 0
    lines = (tmp_path / "whole.csv").read_text().splitlines()[1:]
    assert {line.partition(",")[0] for line in lines} == {"True", "False"}


def test_a_discriminant_of_a_table_learns_and_forgets_by_the_name_of_the_labels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"]).assign(kind=["x", "y", "z"] * 30)
    first, more = frame[:60], frame[60:]
    whole = GaussianDiscriminant().fit(frame, "kind")
    model = GaussianDiscriminant().fit(first, "kind").partial_fit(more, "kind")
    np.testing.assert_allclose(model.predict_proba(frame), whole.predict_proba(frame), rtol=1e-9)
    back = GaussianDiscriminant().fit(first, "kind").predict_proba(frame)
    np.testing.assert_allclose(model.forget(more, "kind").predict_proba(frame), back, rtol=1e-9)
