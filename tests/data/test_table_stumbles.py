"""What people stumbled on with tables in Python: each has one clear answer now."""

import datetime
import decimal
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusal import assert_refused

import likely.data.rows
from likely import Classifier, NaiveBayes
from likely.data.rows import open_rows
from likely.data.schema import Schema

BOTH = pytest.mark.parametrize("kind", [NaiveBayes, Classifier])


@BOTH
@pytest.mark.parametrize("named", [True, False])
def test_families_are_chosen_on_rows_from_all_over_the_table(kind, named):
    n = 600_000
    counts = np.random.default_rng(0).poisson(3, n)
    counts[n // 2 :] -= 5  # no counts any more
    rows = {"x": counts, "z": np.arange(n) * 0.5, "y": np.arange(n) % 2}
    model = kind(**({} if kind is NaiveBayes else {"calibrate": False}))
    model.fit(rows, "y") if named else model.fit({name: rows[name] for name in "xz"}, rows["y"])
    assert model.class_count_.sum() == n
    assert {part.family.name for part in model.joint_.parts} <= {"gaussian", "categorical"}


def test_a_later_value_that_does_not_fit_is_named_with_what_to_do():
    model = NaiveBayes({"x": "poisson"}).fit(
        {"x": np.random.default_rng(0).poisson(3, 300), "z": ["u", "v", "w"] * 100}, list("ab") * 150
    )
    later = {"x": [1, 2, -1], "z": ["u", "v", "w"]}
    assert_refused(lambda: model.partial_fit(later, ["a", "b", "a"]), "'x'", "-1", "row 3", "columns={'x': \"number\"}")


def test_halves_of_which_one_has_a_hole_are_merged():
    frame = pd.DataFrame({"x": np.arange(100) * 37 % 101, "z": list("uv") * 50, "y": list("aabb") * 25})
    holed = frame.assign(x=frame.x.where(frame.index != 70))  # floats, in pandas
    halves = [NaiveBayes().fit(part, "y") for part in (holed[:50].astype({"x": int}), holed[50:])]
    whole = NaiveBayes({"x": "gaussian"}).fit(holed, "y")
    np.testing.assert_allclose(halves[0].merge(halves[1]).predict_proba(frame), whole.predict_proba(frame))


def test_models_of_other_families_say_which_column():
    data = {"x": np.random.default_rng(0).poisson(3, 300), "z": ["u", "v", "w"] * 100}
    one, other = (
        NaiveBayes().fit(data, list("ab") * 150),
        NaiveBayes().fit({**data, "x": 10 * data["x"] - 50.5}, list("ab") * 150),
    )
    assert_refused(lambda: one.merge(other), "'poisson' and 'gaussian'", "'x'", "columns={'x': 'poisson'}")


def kinds(data):
    return [column.kind for column in Schema.infer(open_rows(data)).columns]


@pytest.mark.parametrize(
    "cells",
    [
        [Decimal("1.5"), 2.5], [Decimal("Infinity"), Decimal(1)], [Decimal("1e40"), Decimal("1e-40")],
        [Decimal("NaN"), 1, 2.5], [Decimal("1" * 80), None], [Decimal("1.5"), np.float32(2)],
    ],
)  # fmt: skip
def test_decimals_are_numbers(cells):
    assert kinds({"x": cells}) == kinds(pd.DataFrame({"x": pd.Series(cells, dtype=object)})) == ["number"]


def test_decimals_among_text_are_text():
    (batch,) = open_rows({"x": [Decimal("1.50"), "a", Decimal("sNaN")]}).batches()
    assert batch.column("x").to_pylist() == ["1.5", "a", None]
    assert decimal.getcontext().traps[decimal.InvalidOperation]


def test_half_characters_are_refused():
    for data in ({"x": ["\ud800", "a"]}, {"\ud800": ["a"]}, [{"\ud800": 1}], [{"x": "\ud800"}]):
        assert_refused(lambda data=data: open_rows(data), "whole characters", r"\ud800")
    model = NaiveBayes().fit({"x": ["a", "b"], "z": [1.5, 2.5]}, ["p", "q"])
    assert_refused(lambda: model.sample(1, given={"x": "\ud800"}), "whole characters", "'x'")


def test_names_that_end_with_nul_are_refused():
    assert_refused(lambda: NaiveBayes().fit({"x": ["a", "a\0"]}, ["p", "q"]), "NUL", "'x'")
    assert_refused(lambda: NaiveBayes().fit({"x": [1.0, 2.0], "y": ["a", "a\0"]}, "y"), "NUL", "'y'")
    assert_refused(lambda: NaiveBayes().fit([[1.0], [2.0]], ["a", "a\0"]), "NUL")


def test_periods_are_dates():
    frame = pd.DataFrame({"month": pd.period_range("2023-05", periods=30, freq="M"), "x": np.arange(30) % 7})
    assert kinds(frame) == ["date", "integer"]
    assert kinds(pa.Table.from_pandas(frame)) == ["ignore", "integer"]
    assert NaiveBayes().fit(frame, np.arange(30) % 2).feature_names_in_[0] == "month.year"


def test_words_of_a_column_that_has_none():
    data = {"x": [1, 2] * 9, "z": [1.5, 2.5] * 9}
    assert_refused(lambda: NaiveBayes({"x": "multinomial"}).fit(data, list("ab") * 9), "'x'", "int64", "'poisson'")


def test_a_number_among_categories_of_integers_is_one_that_was_never_seen():
    model = NaiveBayes({"c": "category"}).fit({"c": [1, 2] * 9, "z": [1.5, 2.5] * 9}, list("ab") * 9)
    unseen = model.predict_proba({"c": [3.5, 99], "z": [1.5, 1.5]})
    np.testing.assert_array_equal(unseen[0], unseen[1])


def test_open_files_are_opened_with_their_format(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1.5,a\n2.5,b\n")
    with open(path, "rb") as file:
        assert_refused(lambda: NaiveBayes().fit(file, "y"), "likely.data.open_rows", "format=")
        assert NaiveBayes().fit(likely.data.open_rows(file, format="csv"), "y").class_count_.sum() == 2


def test_questions_about_a_column_name_it():
    model = NaiveBayes().fit({"income": [1.5, 2.5], "c": ["u", "v"]}, ["a", "b"])
    assert_refused(lambda: model.values_of("income"), "column 'income'")
    assert_refused(lambda: model.predict_proba({"income": [1.0], "c": ["u"]}, of="income"), "column 'income'")


@BOTH
def test_a_warning_points_at_the_line_that_gave_the_rows(kind):
    model = kind().fit({"x": [1.5, 2.5] * 9, "c": ["u", "v"] * 9}, list("ab") * 9)
    for ask in (model.predict, model.impute, model.explain, model.log_density):
        with pytest.warns(UserWarning, match="'c'") as told:
            ask({"x": [1.0]})
        assert [each.filename for each in told] == [__file__]


class Counted(dict):
    """A table of columns that counts how often it is read."""

    read = 0

    def items(self):
        self.read += 1
        return super().items()


def test_impute_reads_rows_once():
    rows = Counted(x=[1.5, None, 2.5, 4.0], c=["u", "v", None, "v"])
    model = NaiveBayes().fit(rows, list("abab"))
    rows.read = 0
    assert model.impute(rows).column("c").null_count == 0
    assert rows.read == 1


@BOTH
def test_files_are_predicted_batch_by_batch(kind, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    lines = [f"{i % 11},{'uvw'[i % 3]},{'ab'[i % 2]}" for i in range(3000)]
    path.write_text("\n".join(["x,c,y", *lines]))
    model = kind().fit(path, "y")
    frame = pd.read_csv(path)
    whole = {name: getattr(model, name)(frame) for name in ASKED}
    score = model.score(frame, "y")
    monkeypatch.setattr("likely.data.csv.BLOCK", 4096)
    sizes = []
    table = Schema.table
    monkeypatch.setattr(Schema, "table", lambda *a, **k: sizes.append(a[1].num_rows) or table(*a, **k))
    for name in ASKED:
        np.testing.assert_array_equal(getattr(model, name)(path), whole[name])
    assert model.score(path, "y") == score
    assert max(sizes) < 1500
    (tmp_path / "none.csv").write_text("x,c\n")
    assert model.predict(tmp_path / "none.csv").shape == (0,)


ASKED = ("predict", "predict_proba", "predict_log_proba", "decision_function", "log_density")


DAYS = pd.Series(pd.date_range("2023-01-01", periods=400, freq="D"))
DATES = {
    "days": pa.array(DAYS.dt.date),
    "times": pa.array(DAYS + pd.to_timedelta(np.arange(400) % 24, "h")).cast(pa.timestamp("ms")),
    "nanoseconds": pa.array(DAYS.astype("datetime64[ns]")),
    "zoned": pa.array(DAYS.dt.tz_localize("Europe/Oslo")),
    "text": pa.array(DAYS.dt.strftime("%Y-%m-%d"), pa.string()),
    "one month": pa.array(pd.date_range("2024-02-01", periods=29).date).take(pa.array(np.arange(400) % 29)),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_drawn_and_filled_as_dates(kind):
    column = DATES[kind]
    labels = np.where(np.arange(400) % 2, "odd", "even")
    model = NaiveBayes().fit(pa.table({"when": column, "x": np.arange(400) * 0.5}), labels)
    drawn = model.sample(200, 0)[0]
    assert drawn.column_names == ["when", "x"]
    assert drawn.schema.field("when").type == column.type
    days = pd.to_datetime(pd.Series(drawn["when"].to_pylist()))
    assert days.notna().all()
    assert set(days.dt.year) <= ({2024} if kind == "one month" else {2022, 2023, 2024, 2025})
    assert set(days.dt.month) == ({2} if kind == "one month" else set(range(1, 13)))
    assert days.dt.day.nunique() > 20
    holed = pa.table({"when": pa.array([None, *column[1:3].to_pylist()], column.type), "x": [0.5, 1.0, 1.5]})
    for how in ("mean", "draw"):
        filled = model.impute(holed, how=how, random_state=1)["when"]
        assert filled.type == column.type
        assert filled.null_count == 0
        assert filled.to_pylist()[1:] == column[1:3].to_pylist()
    given = model.sample(4, 0, given={"when": column[70].as_py()})[0]["when"]
    assert given.to_pylist() == [column[70].as_py()] * 4


def test_a_date_may_be_given_as_text_and_comes_back_from_a_file(tmp_path):
    rows = pa.table({"when": DATES["times"], "x": np.arange(400) * 0.5, "y": ["a", "b"] * 200})
    NaiveBayes().fit(rows, "y").save(tmp_path / "m.likely")
    model = likely.load(tmp_path / "m.likely")
    drawn = model.sample(3, 0, given={"when": "2023-05-06 07:08"})[0]
    assert drawn["when"].to_pylist() == [datetime.datetime(2023, 5, 6, 7, 8)] * 3
    assert drawn.schema.field("when").type == pa.timestamp("ms")
    assert_refused(lambda: model.sample(3, given={"when": "never"}), "'when'", "'never'")
    with pytest.raises(ValueError, match="did you mean 'when'"):
        model.sample(1, given={"whenn": "2023-05-06"})


def test_columns_without_names_are_told_by_their_numbers():
    frame = pd.DataFrame({0: [[1]] * 40, 1: np.arange(40) % 3, 2: list("uv") * 20, 3: DAYS[:40]})
    with pytest.warns(UserWarning, match="cannot be read"):
        model = NaiveBayes({"1": "category"}).fit(frame, list("aabb") * 10)
    drawn = model.sample(5, 0, given={1: "u"})[0]
    assert drawn.column_names == ["1", "2", "3"]
    assert drawn["2"].to_pylist() == ["u"] * 5
    holed = frame.astype(object)
    holed.loc[0, [1, 2, 3]] = None
    assert model.impute(holed).iloc[:, 1:].notna().to_numpy().all()


def test_a_model_of_a_frame_of_floats_fills_the_holes_of_a_table():
    model = NaiveBayes().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]}), ["p", "p", "q"])
    assert model.impute({"a": [1.5], "b": [None]})["b"].null_count == 0


@pytest.mark.parametrize("year", [1600, 9990])
def test_dates_long_ago_and_far_ahead(year):
    rows = [
        {"when": datetime.date(year + i % 3, 1 + i % 12, 1 + i % 28), "x": float(i), "y": "ab"[i % 2]}
        for i in range(40)
    ]
    drawn = NaiveBayes().fit(rows, "y").sample(20, random_state=0)[0].column("when").to_pylist()
    assert {day.year for day in drawn} <= {year - 1, year, year + 1, year + 2, year + 3}
