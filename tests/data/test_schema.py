"""A schema says what columns are, and reads batches as tables under that, whatever they look like where they lie."""

import datetime
import itertools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusal import assert_refused

from likely.data import sources
from likely.data.cells import encoded_target, read_target
from likely.data.rows import open_rows
from likely.data.schema import FAMILIES, KINDS, Column, Schema
from likely.data.table import CellBuffer
from likely.persistence.codec import decode, encode

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "sleeps"]


def sentences(n, length=9):
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(WORDS, length)) + f" {i}" for i in range(n)]


def kinds(data, **options):
    rows = open_rows(data, missing=options.pop("missing", ()))
    return {column.name: column.kind for column in Schema.infer(rows, **options).columns}


def one_table(schema, data, **options):
    (table,) = schema.tables(open_rows(data, **options))
    return table


COLUMNS = {
    "floats": ([1.5, None], "number"),
    "integers": ([1, 2], "integer"),
    "booleans": ([True, None], "boolean"),
    "words": (["a", "b"], "category"),
    "yes and no": (["yes", "no"], "category"),
    "true and false as text": (["true", "FALSE"], "boolean"),
    "integers and text": ([1, "b"], "category"),
    "booleans and integers": ([True, 2], "category"),
    "huge": ([10**30, 1], "number"),
    "dates": ([datetime.date(2024, 2, 29), None], "date"),
    "times": ([datetime.datetime(2024, 2, 29, 12), None], "date"),
    "dates as text": (["2024-02-29", " 2024-03-01 "], "date"),
    "zoned dates as text": (["2024-02-29T10:00:00Z", "2024-02-29T10:00:00+02:00"], "date"),
    "numbers as text": ([" 1.5", "-2e3 "], "number"),
    "codes as text": (["1", "2"] * 9, "category"),
    "post codes": (["0150", "1234"], "category"),
    "all missing": ([None, None], "ignore"),
    "all NaN": (np.array([np.nan] * 2), "number"),
    "lists": ([[1], [2]], "ignore"),
    "durations": ([datetime.timedelta(1)] * 2, "ignore"),
    "bytes": ([b"x", b"y"], "ignore"),
    "sentences": (sentences(40), "text"),
    "identifiers": ([f"id{i}" for i in range(40)], "category"),
    "long categories": (["not in the labour force at all", "in the labour force"] * 20, "category"),
}


@pytest.mark.parametrize(("cells", "kind"), COLUMNS.values(), ids=COLUMNS)
def test_kinds(cells, kind):
    assert kinds({"x": cells}) == {"x": kind}
    assert kinds(pa.table({"x": open_rows({"x": cells}).sample(99)["x"]})) == {"x": kind}


def test_categories_of_pandas_stay_categories():
    frame = pd.DataFrame({"i": pd.Categorical([3, 4]), "t": pd.Categorical(["a", None], categories=["b", "a"])})
    schema = Schema.infer(open_rows(frame))
    table = one_table(schema, frame)
    assert schema.kinds == ("category", "category")
    assert {j: names.tolist() for j, names in table.categories.items()} == {0: ["3", "4"], 1: ["a"]}


def test_numbers_with_given_text_missing_are_numbers():
    assert kinds({"x": ["1", "2", "?"] * 9}, missing=["?"]) == {"x": "number"}


def test_overrides():
    data = {"a": [1, 2], "b": ["x", "y"], "c": ["1", "2"], "d": [0, 1], "e": ["y", "n"], "f": ["2024-01-01"] * 2}
    given = {"a": "categorical", "b": "ignore", "c": "log-normal", "d": "bernoulli", "e": "boolean", "f": "text"}
    schema = Schema.infer(open_rows(data), overrides=given)
    assert [column.kind for column in schema.columns] == ["category", "ignore", "number", "boolean", "boolean", "text"]
    assert [column.family for column in schema.columns] == ["categorical", None, "log-normal", "bernoulli", None, None]
    table = one_table(schema, data)
    np.testing.assert_array_equal(table.cells, [[0, 1, 0, 1, 0], [1, 2, 1, 0, 0]])
    assert table.names == schema.names == ("a", "c", "d", "e", "f")
    assert table.categories[0].tolist() == ["1", "2"]
    assert table.strings[4].to_pylist() == ["2024-01-01"] * 2
    assert schema.without("a", "f").names == ("c", "d", "e")


def test_wrong_overrides_are_refused():
    rows = open_rows({"income": [1], "age": [2], "l": [[1]]})
    assert_refused(lambda: Schema.infer(rows, overrides={"incone": "number"}), "'incone'", "'income'")
    assert_refused(lambda: Schema.infer(rows, overrides={"zzzz": "number"}), "'zzzz'", "'age'")
    assert_refused(lambda: Schema.infer(rows, overrides={"age": "normal"}), "'age'", "'normal'", "'gaussian'")
    assert_refused(lambda: Schema.infer(rows, overrides={"l": "number"}), "'l'", "list")
    assert_refused(lambda: Schema.infer(rows).without("agee"), "'agee'", "'age'")


def test_dates_become_what_a_person_would_use():
    when = ["2023-12-31 23:30", None, "2024-02-29 08:00"]
    data = {"when": pa.array(when).cast(pa.timestamp("ms"))}
    schema = Schema.infer(open_rows(data))
    assert schema.names == ("when.year", "when.month", "when.weekday", "when.hour")
    assert schema.kinds == ("integer", "category", "category", "category")
    for given_data in (data, {"when": when}):
        table = one_table(schema, given_data)
        np.testing.assert_array_equal(table.cells[:, 0], [2023, np.nan, 2024])
        names = [[None if x != x else table.categories[j][int(x)] for x in table.cells[:, j]] for j in (1, 2, 3)]
        assert names == [["December", None, "February"], ["Sunday", None, "Thursday"], ["23", None, "8"]]
    assert Schema.infer(open_rows({"d": ["2024-01-01", "2024-02-05"]})).names == ("d.month",)
    assert Schema.infer(open_rows({"d": ["2024-01-01", "2024-01-01"]})).names == ()
    assert_refused(lambda: one_table(schema, {"when": ["2024-02-29", "never"]}), "'when'", "'never'", "row 2", "date")
    assert_refused(lambda: one_table(schema, {"when": [3]}), "'when'", "'3'")


def test_hours_are_those_of_the_zone():
    when = pd.to_datetime(["2024-02-29 23:30", "2024-02-29 22:30"]).tz_localize("Europe/Oslo")
    table = one_table(Schema((Column("when", "date", "date", parts=("hour",)),)), pd.DataFrame({"when": when}))
    assert table.categories[0].tolist() == ["22", "23"]


MIXED = Schema(
    (
        Column("n", "number", "number"),
        Column("c", "category", "integer"),
        Column("t", "category", "text"),
        Column("b", "boolean", "boolean"),
        Column("x", "text", "text"),
        Column("d", "date", "date", parts=("year",)),
        Column("gone", "ignore", "other"),
    )
)


def test_a_missing_column_is_missing_in_every_row_and_told_of_once():
    rows = open_rows(pa.table({"c": [3, 4], "extra": [1, 2], "n": [1.5, 2.5]}).slice(i, 1) for i in range(2))
    with pytest.warns(UserWarning, match="'t', 'b', 'x', 'd'") as told:
        tables = list(MIXED.tables(rows))
    assert len(told) == 1
    np.testing.assert_array_equal(
        np.vstack([table.cells for table in tables]), [[1.5, 0, *[np.nan] * 4], [2.5, 0, *[np.nan] * 4]]
    )
    assert [table.categories[1].tolist() for table in tables] == [["3"], ["4"]]
    assert tables[0].categories[2].tolist() == []
    assert [texts.to_pylist() for table in tables for texts in table.strings.values()] == [[None], [None]]
    assert_refused(lambda: one_table(MIXED, {"other": [1]}), "'n'", "'other'")


@pytest.mark.parametrize(
    "cells", [[3, None], [3.0, None], ["3", None], ["3.0", None], [" 3", None], pd.Categorical([3, None])]
)
def test_a_category_has_one_name_whatever_its_type(cells):
    table = one_table(Schema((Column("c", "category", "integer"),)), {"c": cells})
    assert table.categories[0].tolist() == ["3"]
    np.testing.assert_array_equal(table.cells, [[0], [np.nan]])


def test_numbers_in_a_category_of_text_become_text():
    for cells in ([3, 4], [3.0, 4.0], ["3", "4"]):
        assert one_table(Schema((Column("t", "category", "text"),)), {"t": cells}).categories[0].tolist() == ["3", "4"]
    cells = {"t": [0.1, 1e300, -0.0]}
    assert one_table(Schema((Column("t", "category", "text"),)), cells).categories[0].tolist() == ["0", "0.1", "1e+300"]
    single = {"t": np.array([0.1], dtype=np.float32)}
    assert one_table(Schema((Column("t", "category", "text"),)), single).categories[0].tolist() == ["0.1"]


@pytest.mark.parametrize(
    "cells",
    [[True, False, None], [1, 0, None], [1.0, 0.0, None], ["yes", "No", ""], ["True", "false", None], ["1", "0", None]],
)
def test_yes_and_no_in_many_words(cells):
    table = one_table(Schema((Column("b", "boolean", "boolean"),)), {"b": cells})
    np.testing.assert_array_equal(table.cells, [[1], [0], [np.nan]])
    assert table.categories == {}


def test_cells_of_a_wrong_type_are_named():
    numbers = Schema((Column("n", "number", "number"),))
    rows = open_rows({"n": ["1"] * 1000 + ["abc", "2", "def"]})
    assert_refused(lambda: list(numbers.tables(rows)), "number", "'n'", "'abc'", "row 1001")
    (batch,) = rows.batches()
    assert_refused(lambda: numbers.table(batch, numbers=range(500, 1503)), "row 1501")
    assert_refused(lambda: one_table(numbers, {"n": [datetime.date(2024, 1, 1)]}), "'n'", "2024-01-01")
    assert_refused(lambda: one_table(numbers, {"n": [[1]]}), "'n'", "list")
    assert_refused(
        lambda: one_table(Schema((Column("b", "boolean"),)), {"b": ["yes", "perhaps"]}), "'perhaps'", "row 2"
    )
    unnamed = Schema.infer(open_rows(np.zeros((2, 3))))
    assert_refused(lambda: one_table(unnamed, np.zeros((2, 2))), "3 columns", "got 2")
    huge = {"c": ["x" * 10**6 + str(i) for i in range(100)]}
    assert_refused(lambda: Schema((Column("c", "category", "text"),)).table(pa.table(huge)), "'c'", "100")


def test_an_array_may_be_read_under_names():
    named = Schema.infer(open_rows({"a": [1.0], "b": [2.0]}))
    np.testing.assert_array_equal(one_table(named, np.array([[3.0, 4.0]])).cells, [[3, 4]])


def test_no_rows():
    schema = Schema.infer(open_rows({"a": [1.0], "b": ["x"], "c": ["2024-01-01"]}))
    rows = open_rows(
        pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.string()), "c": pa.array([], pa.string())})
    )
    (empty,) = schema.tables(rows)
    assert empty.cells.shape == (0, 2)
    assert Schema.infer(rows).kinds == ("number", "category", "category")


LABELS = {
    "text": (["a", "b"], np.array(["a", "b"])),
    "integers": ([1, 2], np.array([1, 2])),
    "booleans": ([True, False], np.array([True, False])),
    "whole floats": ([1.0, 2.0], np.array([1, 2])),
    "floats": ([1.5, 2.0], np.array([1.5, 2.0])),
    "categories": (pd.Categorical(["b", "a"]), np.array(["b", "a"])),
    "dates": ([datetime.date(2024, 1, 1)], np.array(["2024-01-01"])),
    "some missing": (["a", None], np.array(["a", None], dtype=object)),
    "some NaN": ([1.0, float("nan")], np.array([1, None], dtype=object)),
    "some integers": (pd.array([1, None], dtype="Int64"), np.array([1, None], dtype=object)),
    "all missing": ([None, None], np.array([None, None], dtype=object)),
}


@pytest.mark.parametrize(("cells", "wanted"), LABELS.values(), ids=LABELS)
def test_labels(cells, wanted):
    (batch,) = open_rows({"y": cells}).batches()
    labels = read_target(batch, "y")
    assert labels.dtype == wanted.dtype
    np.testing.assert_array_equal(labels, wanted)


def test_wrong_targets_are_refused():
    (batch,) = open_rows({"income": [[1]], "age": [1]}).batches()
    assert_refused(lambda: read_target(batch, "incom"), "'incom'", "'income'")
    assert_refused(lambda: read_target(batch, "income"), "'income'", "list")


def test_a_schema_prints_as_a_table():
    data = {"id": [f"u{i}" for i in range(30)], "age": [1.5, None, *[2.5] * 28], "long" * 20: [1] * 30}
    lines = str(Schema.infer(open_rows(data), overrides={"age": "gamma"})).splitlines()
    assert lines[0].split() == ["column", "kind", "distinct", "missing", "example", "note"]
    assert lines[1].split()[:5] == ["id", "category", "30", "0", "u0"]
    assert "identifier" in lines[1]
    assert lines[2].split() == ["age", "gamma", "2", "1", "1.5"]
    assert len({len(line.split("  ")[0]) for line in lines}) <= 4
    assert str(Schema((Column("a", "number"),))).splitlines()[1].split() == ["a", "number"]


def described_by(schema):
    return encode(schema, "schema", {})


def schema_of(described):
    return decode(described, Schema, "schema", {})


def test_a_description_is_plain_json_and_gives_the_schema_back():
    for schema in (MIXED, Schema.infer(open_rows(np.zeros((2, 3)))), Schema(())):
        assert schema_of(json.loads(json.dumps(described_by(schema)))) == schema


PLAIN = described_by(MIXED)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([*KINDS, *FAMILIES, "n", "name"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "kind", "parts", "x"]), inner),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(
    place=st.integers(0, len(MIXED.columns) - 1),
    key=st.sampled_from(["name", "kind", "source", "family", "parts", "x"]),
    value=JSON,
)
def test_a_hostile_description_is_refused_or_harmless(place, key, value):
    described = json.loads(json.dumps(PLAIN))
    described["columns"][place][key] = value
    try:
        schema = schema_of(described)
    except ValueError as error:
        said = str(error)
    else:
        assert schema_of(described_by(schema)) == schema
        return
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "described",
    [
        None, [], {}, {"named": True}, {"named": 1, "columns": []}, {"named": True, "columns": {}},
        {"named": True, "columns": [3]},
        {"named": True, "columns": [{"name": "a", "kind": "number"}]},
        {"named": True, "columns": [{"name": "a", "kind": "number", "source": "number"}] * 2},
        {"named": True, "columns": [{"name": "a", "kind": "number", "source": "number", "parts": ["year"]}]},
        {"named": True, "columns": [{"name": "a", "kind": "number", "source": "number", "family": "bernoulli"}]},
        {"named": True, "columns": [{"name": "a", "kind": "date", "source": "date", "parts": ["hour", "year"]}]},
        {"named": True, "columns": [{"name": "a", "kind": "date", "source": "date", "parts": ["year"]},
                                    {"name": "a.year", "kind": "number", "source": "number"}]},
        {"named": True, "columns": [], "more": 1},
    ],
)  # fmt: skip
def test_a_wrong_description_is_refused(described):
    assert_refused(lambda: schema_of(described), "expected")


def test_labels_of_a_dictionary_are_those_of_its_cells():
    listed = pa.array(["b", "a", "never", None, "a"])
    column = pa.DictionaryArray.from_arrays(pa.array([4, 1, None, 3, 0, 1], pa.int8()), listed)
    for cells in (column, column.slice(1), column.slice(0, 2), column.slice(2, 1)):
        labels, places = encoded_target(pa.table({"y": cells}), "y")
        assert labels[places].tolist() == cells.to_pylist()
        assert len(labels) == len(set(cells.to_pylist()))


def test_tables_may_be_read_into_the_same_place(monkeypatch):
    monkeypatch.setattr(sources, "BATCH", 400)
    frame = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100) % 7, "c": list("xyxz") * 25})
    rows = open_rows(frame)
    schema = Schema.infer(rows)
    own = list(schema.tables(rows))
    count = 0
    for table, passing in zip(own, schema.tables(rows, CellBuffer()), strict=True):
        np.testing.assert_array_equal(passing.cells, table.cells)
        assert passing.cells.flags.f_contiguous
        count += 1
    assert count > 3
    assert not any(np.shares_memory(one.cells, other.cells) for one, other in itertools.pairwise(own))


@pytest.mark.parametrize("repeat", ["twice", "bootstrap", "oversampled"])
def test_sentences_of_repeated_rows_stay_text(repeat):
    rng = np.random.default_rng(0)
    words = ["slow", "quick", "nice", "shop", "price", "staff", "food", "room", "bed", "view", "door", "lamp"]
    frame = pd.DataFrame({"note": [" ".join(rng.choice(words, 5)) for _ in range(200)], "y": rng.integers(0, 2, 200)})
    rows = {
        "twice": pd.concat([frame, frame]),
        "bootstrap": frame.sample(200, replace=True, random_state=0),
        "oversampled": pd.concat([frame, *[frame[:40]] * 4]),
    }[repeat]
    assert Schema.infer(open_rows(rows)).column("note").kind == "text"


def test_long_names_of_categories_stay_categories():
    names = ["a very good place to be", "not at all what was promised", "neither good nor bad in the end"]
    frame = pd.DataFrame({"note": names * 50, "n": np.arange(150)})
    assert Schema.infer(open_rows(frame)).column("note").kind == "category"
    assert Schema.infer(open_rows(frame[["note"]])).column("note").kind == "category"


def test_categories_in_a_table_of_few_columns_are_neither_text_nor_identifiers():
    names = [f"the office of the district number {i}" for i in range(30)]
    for repeats in (12, 40):
        column = Schema.infer(open_rows({"office": names * repeats})).column("office")
        assert column.kind == "category"
        assert column.seen.note == ""
