"""Columns of whole numbers: which family they follow, what they are in every container, and what is drawn of them."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, poisson

from likely import Classifier, Mixture, NaiveBayes, load
from likely.data.hashing import sample_batches
from likely.data.labels import read_assignment
from likely.data.rows import open_rows
from likely.data.schema import Schema
from likely.data.table import Block, read_table
from likely.families.choice import _log_masses, _log_subsets, family_of_integers


def family(x, classes=1):
    x = np.asarray(x, dtype=float)[:, None]
    return family_of_integers(Block(read_table(x), None), read_assignment(np.arange(len(x)) % classes, None, len(x)))


# The choice


@pytest.mark.parametrize("width", [0.003, 0.1, 0.19, 0.21, 1.0, 3.0])
def test_masses_are_differences_of_the_distribution_function(width):
    z = np.array([-30.0, -8.0, -1.3, 0.0, 0.4, 5.0, 12.0])
    upper = np.abs(z)
    with np.errstate(divide="ignore"):
        want = np.log(norm.sf(upper - width / 2) - norm.sf(upper + width / 2))
    np.testing.assert_allclose(_log_masses(z, width), want, rtol=2e-6)


def test_masses_beyond_what_a_double_holds_keep_falling():
    found = _log_masses(np.array([40.0, 60.0, 1e3, 1e6]), 1.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
    want = norm.logsf([39.5, 59.5]) + np.log1p(-np.exp(norm.logsf([40.5, 60.5]) - norm.logsf([39.5, 59.5])))
    np.testing.assert_allclose(found[:2], want, rtol=1e-4)


def test_subsets():
    for n, k in ((6, 6), (10, 3), (50_000, 700)):
        assert _log_subsets(n, k) == pytest.approx(math.log(math.comb(n, k)), rel=1e-12, abs=1e-9)
    assert _log_subsets(1e15, 3) == pytest.approx(math.log(math.comb(10**15, 3)), rel=1e-9)


def _brute_force(x):
    """The three scores by the textbook, one class."""
    n = len(x)
    values, counts = np.unique(x, return_counts=True)
    price = 0.5 * np.log(n)
    step = np.gcd.reduce(np.diff(values).astype(int))
    numbers = int((values[-1] - values[0]) / step) + 1
    deviation = max(x.std(), step / np.sqrt(12))
    upper, half = np.abs(x - x.mean()) / deviation, step / deviation / 2
    masses = norm.sf(upper - half) - norm.sf(upper + half)
    with np.errstate(divide="ignore"):
        gaussian = np.log(masses).sum() - 2 * price
    return {
        "categorical": (counts * np.log(counts / n)).sum()
        - price * (len(values) - 1)
        - math.log(math.comb(numbers, len(values))),
        "gaussian": gaussian,
        "poisson": poisson.logpmf(x, x.mean()).sum() - price if values[0] >= 0 else -np.inf,
    }


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_the_choice_is_that_of_the_textbook(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    x = [
        lambda: rng.poisson(rng.uniform(0.5, 30), n),
        lambda: np.rint(rng.normal(50, rng.uniform(0.5, 20), n)),
        lambda: rng.integers(1, rng.integers(3, 40), n),
        lambda: rng.choice([1, 2, 5, 70], n, p=[0.6, 0.2, 0.1, 0.1]),
        lambda: np.rint(rng.lognormal(5, 1, n)),
        lambda: 5 * rng.integers(-4, 5, n),
    ][rng.integers(6)]().astype(float)
    x[:2] = x[:2].min(), x[:2].min() + 1  # two values at least
    scores = _brute_force(x)
    best, second = sorted(scores.values(), reverse=True)[:2]
    if best - second > 1e-6 * abs(best):
        assert family(x) == max(scores, key=lambda name: scores[name])


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.15, 0.3, 0.5, 0.9, 0.99])
def test_zeros_and_ones_are_never_gaussian(share):
    rng = np.random.default_rng(0)
    x = (rng.random(2000) < share).astype(int)
    x[:2] = 0, 1
    assert family(x) == "categorical"
    table = pd.DataFrame({"flag": x, "other": rng.normal(size=2000), "y": rng.choice(["a", "b"], 2000)})
    for model in (NaiveBayes(), Classifier()):
        model.fit(table, "y")
        assert model.schema_.column("flag").kind == "boolean"
        rows, _ = model.sample(500, random_state=0)
        assert set(rows.column("flag").to_pylist()) <= {0, 1}
        assert model.predict_proba(table, of="flag").shape == (2000, 2)
        assert np.abs(model.explain(table).cells).max() < 50


def test_codes_are_categories_counts_are_poisson_and_amounts_are_numbers():
    rng = np.random.default_rng(1)
    assert family(rng.integers(1, 7, 500)) == "categorical"
    assert family(rng.choice([10, 11, 40, 77, 503], 500)) == "categorical"
    assert family(rng.poisson(4, 500)) == "poisson"
    assert family(np.rint(rng.lognormal(8, 0.8, 735))) == "gaussian"
    assert family(np.rint(rng.normal(50, 12, 500))) == "gaussian"
    assert family(10 * np.rint(rng.normal(50, 12, 500))) == "gaussian"  # in another unit


# An amount that hardly repeats


@pytest.mark.parametrize("make", [NaiveBayes, Classifier])
def test_a_number_that_nobody_has_seen_is_less_usual_than_one_that_was(make):
    rng = np.random.default_rng(2)
    columns = {
        "amount": np.rint(rng.lognormal(8, 0.8, 735)).astype(int),
        "age": rng.integers(18, 80, 735),
        "die": rng.integers(1, 7, 735),
        "visits": rng.poisson(2, 735),
    }
    table = pd.DataFrame({**columns, "y": rng.choice(["a", "b"], 735)})
    model = make().fit(table, "y")
    seen = model.log_density(table.drop(columns="y"))
    for name in columns:
        odd = table.drop(columns="y").assign(**{name: 10**8})
        assert (model.log_density(odd) < seen).all(), name
        assert np.isfinite(model.predict_proba(odd)).all()


def test_a_number_that_nobody_has_seen_says_nothing_of_the_class():
    """Its probability is the same in all classes, and all of them sum to 1."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"die": rng.integers(1, 7, 300), "y": np.repeat(["a", "b"], [200, 100])})
    for smoothing in (1.0, 0.25, 0.0):
        model = NaiveBayes(smoothing=smoothing).fit(table, "y")
        odd = pd.DataFrame({"die": [7, 1000, -3]})
        np.testing.assert_allclose(model.predict_proba(odd), [model.priors_] * 3, rtol=1e-12)
        seen = np.exp(model.log_density(pd.DataFrame({"die": np.arange(1, 7)}))).sum()
        other = np.exp(model.log_density(odd))
        np.testing.assert_allclose(other, smoothing / (300 + smoothing * 7), rtol=1e-12, atol=1e-300)
        assert seen + other[0] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("make", [NaiveBayes, lambda: Mixture(1), lambda: Classifier(calibrate=False)])
def test_what_is_no_count_in_a_column_that_looked_like_counts(make, tmp_path):
    """Nobody has said that they are counts: such a cell says nothing of the class, and is less usual than others."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"visits": rng.poisson(2, 400).astype(float), "x": rng.normal(size=400)})
    y = rng.choice(["a", "b"], 400, p=[0.3, 0.7])
    model = make()
    model = model.fit(table) if isinstance(model, Mixture) else model.fit(table, y)
    assert "poisson" in [part.family.name for part in model.joint_.parts]
    model.save(tmp_path / "m.likely")
    odd = pd.DataFrame({"visits": [-1.0, 0.5, np.nan], "x": [0.3, 0.3, 0.3]})
    for one in (model, load(tmp_path / "m.likely")):
        told = one.log_density(odd)
        assert (told[:2] < one.log_density(table).min() - 100).all()
        np.testing.assert_allclose(one.predict_proba(odd)[:2], one.predict_proba(odd)[[2, 2]], rtol=1e-12)
    if not isinstance(model, Mixture):
        before = model.predict_proba(table)
        model.partial_fit(odd.head(2), ["a", "b"]).forget(odd.head(2), ["a", "b"])
        np.testing.assert_allclose(model.predict_proba(table), before, rtol=1e-9)
    with pytest.raises(ValueError, match="got inf in row 1 of column 'visits'"):
        model.log_density(odd.assign(visits=np.inf))
    with pytest.raises(ValueError, match="got -1 in row 1 of column 'visits'"):
        NaiveBayes({"visits": "poisson"}).fit(table, y).predict(odd)


def test_means_are_those_of_the_numbers():
    rng = np.random.default_rng(4)
    income = np.rint(rng.lognormal(8, 0.6, 735)).astype(int)
    table = pd.DataFrame({"income": income, "y": np.repeat("a", 735)})
    model = NaiveBayes().fit(table, "y")
    filled = model.impute(pd.DataFrame({"income": [None]}))["income"].tolist()
    assert filled == [round(income.mean())]


# The same table in every container


def _table(n=400, seed=5):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "flag": (rng.random(n) < 0.1).astype(int),
            "visits": rng.poisson(3, n),
            "amount": np.rint(rng.lognormal(8, 0.8, n)).astype(int),
            "code": rng.choice([1, 2, 5], n),
            "share": rng.random(n),
            "town": rng.choice(["Oslo", "Rome"], n),
        }
    )
    for name in ("flag", "visits", "amount", "code"):
        frame[name] = frame[name].astype("Int64").mask(rng.random(n) < 0.1)
    return frame.assign(y=rng.choice(["a", "b"], n))


@pytest.mark.parametrize("make", [NaiveBayes, Classifier], ids=["NaiveBayes", "Classifier"])
def test_the_same_table_gives_the_same_model_from_any_container(make, tmp_path):
    frame = _table()
    floats = frame.copy()
    for name in ("flag", "visits", "amount", "code"):
        floats[name] = floats[name].astype(float)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    floats.to_parquet(tmp_path / "floats.parquet")
    containers = {
        "nullable": frame,
        "pandas": floats,
        "polars": pl.from_pandas(frame),
        "csv": str(tmp_path / "a.csv"),
        "parquet": str(tmp_path / "a.parquet"),
        "parquet of floats": str(tmp_path / "floats.parquet"),
        "records": frame.astype(object).where(frame.notna(), None).to_dict("records"),
    }
    models = {name: make().fit(data, "y") for name, data in containers.items()}
    one = models.pop("nullable")
    assert [column.kind for column in one.schema_.columns] == [
        "boolean", "integer", "integer", "integer", "number", "category",
    ]  # fmt: skip
    rows = frame.drop(columns="y")
    for name, model in models.items():
        assert [c.kind for c in model.schema_.columns] == [c.kind for c in one.schema_.columns], name
        assert [p.family for p in model.joint_.parts] == [p.family for p in one.joint_.parts], name
        np.testing.assert_array_equal(model.log_density(rows), one.log_density(rows), err_msg=name)
        np.testing.assert_array_equal(model.predict_proba(rows), one.predict_proba(rows), err_msg=name)


def test_zeros_and_ones_may_be_written_in_any_way(tmp_path):
    frame = pd.DataFrame({"flag": [0.0, 1.0, np.nan, 1.0] * 9, "big": 2**53 + np.arange(36), "y": ["a", "b"] * 18})
    model = NaiveBayes().fit(frame, "y")
    assert model.schema_.kinds == ("boolean", "integer")
    assert NaiveBayes().fit(frame.astype({"big": float}), "y").schema_.kinds == ("boolean", "integer")
    asked = frame.head(4)
    want = model.predict_proba(asked)
    for number, (no, yes) in enumerate([("0", "1"), ("0.0", "1.0"), ("-0", "1e0"), ("-0.0", "1.00")]):
        path = tmp_path / f"{number}.csv"
        cells = zip(asked.flag, asked.big, strict=True)
        lines = [f"{'' if f != f else yes if f else no},{b}" for f, b in cells]
        path.write_text("\n".join(["flag,big", *lines]))
        np.testing.assert_array_equal(model.predict_proba(str(path)), want)


def test_mixtures_are_the_same_from_a_frame_of_floats_and_of_integers():
    frame = _table()[["flag", "visits", "amount"]]
    a, b = Mixture(2).fit(frame), Mixture(2).fit(frame.astype(float))
    np.testing.assert_array_equal(a.log_density(frame), b.log_density(frame))
    assert a.schema_.kinds == b.schema_.kinds == ("boolean", "integer", "integer")


def test_arrays_of_floats_stay_numbers():
    X = np.random.default_rng(0).integers(0, 2, (50, 2)).astype(float)
    model = NaiveBayes().fit(X, np.arange(50) % 2)
    assert [part.family.name for part in model.joint_.parts] == ["gaussian"]


def test_kinds_that_a_sample_does_not_show(tmp_path):
    """Far down in a file there is a 2 among zeros and ones, and a half among whole numbers."""
    n = 60_000
    flag = np.arange(n) % 2
    for value, kind in ((2, "integer"), (0.5, "number")):
        odd = flag.astype(object)
        odd[n - 7] = value
        path = tmp_path / f"{kind}.csv"
        path.write_text("flag,y\n" + "\n".join(f"{a},{b}" for a, b in zip(odd, np.arange(n) % 3 == 0, strict=True)))
        assert NaiveBayes().fit(str(path), "y").schema_.column("flag").kind == kind
    with pytest.raises(ValueError, match=r"expected yes or no .* got '2' in row 59994.*\"integer\""):
        NaiveBayes({"flag": "boolean"}).fit(str(tmp_path / "integer.csv"), "y")


def test_a_number_that_is_neither_zero_nor_one_says_nothing_when_it_is_asked_about(tmp_path):
    flag = np.arange(40) % 2
    model = NaiveBayes().fit(pd.DataFrame({"flag": flag, "y": np.where(flag, "a", "b")}), "y")
    (tmp_path / "asked.csv").write_text("flag\n3\n-0.5\n1\n")
    for asked in (pd.DataFrame({"flag": [3, -0.5, 1]}), str(tmp_path / "asked.csv")):
        found = model.predict_proba(asked)
        np.testing.assert_allclose(found[:2], [model.priors_] * 2)
        assert found[2, 0] > 0.9
    for learn in (model.partial_fit, model.forget):
        with pytest.raises(ValueError, match=r"expected yes or no .* got '3' in row 2.*\"integer\""):
            learn(pd.DataFrame({"flag": [1, 3]}), ["a", "b"])


# What is drawn and filled in


@pytest.mark.parametrize("make", [NaiveBayes, Classifier, lambda: Mixture(2), lambda: Classifier(covariance="full")])
def test_whole_numbers_are_drawn_whole_within_their_range_and_others_not_below_zero(make, tmp_path):
    rng = np.random.default_rng(6)
    n = 300
    frame = pd.DataFrame(
        {
            "amount": np.rint(rng.lognormal(4, 1.2, n)).astype(int),
            "visits": rng.poisson(1, n),
            "length": rng.exponential(1.0, n),
            "balance": rng.normal(0, 1, n),
        }
    )
    model = make()
    model = (
        model.fit(frame) if isinstance(model, Mixture) else model.fit(frame.assign(y=rng.choice(["a", "b"], n)), "y")
    )
    model.save(tmp_path / "m.likely")
    for one in (model, load(tmp_path / "m.likely")):
        rows = one.sample(3000, random_state=0)[0].to_pandas()
        holes = frame.mask(rng.random(frame.shape) < 0.4)
        filled = one.impute(holes)
        more = one.impute(holes, how="draw", random_state=0)
        for cells in (rows, filled, more):
            for name in ("amount", "visits"):
                assert (cells[name] == np.rint(cells[name])).all(), name
                assert cells[name].between(frame[name].min(), frame[name].max()).all(), name
            assert (cells["length"] >= 0).all()
        assert rows["balance"].min() < 0
        assert pa.types.is_integer(one.sample(3, random_state=0)[0].column("amount").type)


def test_ranges_grow_with_more_rows():
    one = pd.DataFrame({"x": [5, 6, 9, 5], "y": ["a", "b", "a", "b"]})
    two = pd.DataFrame({"x": [1, 30, 5, 5], "y": ["a", "b", "a", "b"]})
    merged = NaiveBayes({"x": "poisson"}).fit(one, "y").merge(NaiveBayes({"x": "poisson"}).fit(two, "y"))
    learned = NaiveBayes({"x": "integer"}).partial_fit(one, "y").partial_fit(two, "y")
    assert learned.schema_.column("x").range == (1, 30)
    assert merged.schema_.column("x").limits == (0.0, math.inf)
    assert Mixture(1).fit(one[["x"]]).partial_fit(two[["x"]]).schema_.column("x").range == (1, 30)


# Rows that kinds are found on


def test_kinds_do_not_depend_on_where_rows_stand():
    n = 40_000
    rng = np.random.default_rng(7)
    note = np.array([" ".join(rng.choice(["fine", "late", "cold", "warm", "soup"], 6)) + f" {i}" for i in range(n)])
    note[::10] = "none"
    for order in (np.arange(n), rng.permutation(n)):
        assert Schema.infer(open_rows({"note": note[order].tolist()})).column("note").kind == "text"


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_rows_are_drawn_by_their_content(seed):
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(50, 3000)), int(rng.integers(1, 50))
    table = pa.table(
        {
            "number": pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.1),
            "text": pa.array(rng.choice(["a", "b", "ä"], n), mask=rng.random(n) < 0.1),
            "yes": rng.random(n) < 0.5,
            "day": pa.array(rng.integers(0, 5, n).astype("int32"), pa.date32()),
        }
    )
    some = pa.Table.from_batches(sample_batches(table.to_batches(), rows))
    assert some.num_rows == min(rows, n)
    again = table.take(pa.array(rng.permutation(n)))
    cut = pa.concat_tables([again.slice(0, n // 3), again.slice(n // 3)]).select(["yes", "text", "day", "number"])
    cut = cut.set_column(3, "number", cut.column("number").cast(pa.float64()))
    cut = cut.set_column(1, "text", cut.column("text").dictionary_encode().unify_dictionaries())
    other = pa.Table.from_batches(sample_batches(cut.to_batches(), rows)).to_pandas().astype({"text": object})
    keys = ["number", "text", "yes", "day"]

    def ordered(frame):
        return frame[keys].astype(str).sort_values(keys).to_numpy().tolist()

    assert ordered(some.to_pandas().astype({"number": float})) == ordered(other)


# What an attack has found


def _many(n=15_000):
    return pd.DataFrame(
        {"x": np.arange(n) % 9 * 1.0, "z": np.random.default_rng(0).normal(size=n), "y": np.arange(n) % 2}
    )


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("cell", [0.5, 1e19])
def test_one_cell_that_is_not_whole_makes_a_column_of_numbers(row, cell):
    """Whether it is among the rows that kinds are found on, or not."""
    table = _many()
    table.loc[row, "x"] = cell
    for data in (table, pl.from_pandas(table)):
        model = NaiveBayes().fit(data, "y")
        if cell == 0.5:
            assert model.schema_.column("x").kind == "number"
            assert model.joint_.parts[0].family.name == "gaussian"
    small = table.iloc[: max(row, 40)]
    for model in (NaiveBayes({"x": "integer"}), Classifier({"x": "integer"})):
        assert np.isfinite(model.fit(small, "y").log_density(small.drop(columns="y"))).all()


def test_ranges_and_kinds_are_found_on_the_same_rows_of_every_container(tmp_path):
    table = _many().astype({"x": int})
    for row in range(4):
        table.loc[row, "x"] = 40 + row
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    sources = (table, str(tmp_path / "a.csv"), str(tmp_path / "a.parquet"), pl.from_pandas(table))
    ranges = {NaiveBayes().fit(data, "y").schema_.column("x").range for data in sources}
    assert len(ranges) == 1


@pytest.mark.parametrize(("cell", "kind"), [(2.0, "integer"), (0.5, "number")])
def test_a_late_partition_shows_what_a_column_is(cell, kind):
    frames = pytest.importorskip("dask.dataframe")
    table = _many().assign(x=lambda table: table.x % 2 // 1)
    table.loc[len(table) - 1, "x"] = cell
    model = NaiveBayes().fit(frames.from_pandas(table, npartitions=4), "y")
    assert model.schema_.column("x").kind == kind
    assert model.schema_.column("x").range[0] == 0.0
    assert (model.sample(500, random_state=0)[0].column("x").to_numpy() >= 0).all()


def test_a_column_of_whole_numbers_without_any_says_nothing():
    table = pd.DataFrame({"a": [1.5, 2.5, 3.0, 4.0], "b": pd.array([None] * 4, dtype="Int64")})
    for model in (NaiveBayes().fit(table, list("pqpq")), Mixture(1).fit(table)):
        with_b, without = model.log_density(table), model.log_density(table.assign(b=pd.NA))
        assert np.isfinite(with_b).all()
        np.testing.assert_array_equal(with_b, without)


def test_batches_of_mixtures_refuse_what_is_neither_zero_nor_one():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": np.arange(200) % 2, "z": rng.normal(size=200)})
    model = Mixture(2, random_state=0).partial_fit(table)
    with pytest.raises(ValueError, match=r"expected yes or no .* got '2' in row 1"):
        model.partial_fit(table.assign(x=2))


def test_a_part_that_has_only_zeros_is_merged_with_one_that_has_ones():
    table = pd.DataFrame({"x": np.arange(100) % 2, "z": np.random.default_rng(0).normal(size=100)})
    y = np.array(["a", "b", "b", "a"] * 25)
    zeros = table.assign(x=0)
    merged = NaiveBayes().fit(zeros, y).merge(NaiveBayes().fit(table, y))
    whole = NaiveBayes().fit(pd.concat([zeros, table]), np.tile(y, 2))
    np.testing.assert_allclose(merged.predict_proba(table), whole.predict_proba(table), rtol=1e-12)


def test_large_whole_floats_are_filled_in():
    table = pd.DataFrame({"x": [1e16, 2e16, 3e16, np.nan], "z": [0.1, 0.2, 0.3, 0.4]})
    model = NaiveBayes({"x": "gaussian"}).fit(table, list("abab"))
    auto = NaiveBayes().fit(table, list("abab"))
    asked = pd.DataFrame({"x": [1e16, np.nan], "z": [0.1, 0.2]})
    assert auto.impute(asked).x.notna().all()
    assert model.impute(asked).x[0] == 1e16


def test_zeros_and_ones_of_a_text_file_are_filled_as_they_are_written(tmp_path):
    rng = np.random.default_rng(0)
    flag = rng.integers(0, 2, 60)
    table = pd.DataFrame({"flag": flag, "z": rng.normal(size=60) + 3 * flag, "y": rng.choice(["a", "b"], 60)})
    model = NaiveBayes().fit(table, "y")
    for no, yes in (("0", "1"), ("0.0", "1.0")):
        rows = [{"flag": no, "z": "0.1"}, {"flag": yes, "z": "3"}, {"flag": None, "z": "3.1"}]
        assert set(model.impute(rows).column("flag").to_pylist()) <= {no, yes}


def test_infinity_among_whole_numbers_is_named():
    table = pd.DataFrame({"x": [1.0, 2.0, 5.0, np.inf], "z": [1.0, 2.0, 3.0, 5.0]})
    for make in (lambda: Mixture(1).fit(table), lambda: NaiveBayes().fit(table, list("abab"))):
        with pytest.raises(ValueError, match=r"got inf in row (index 3|4) of column 'x'"):
            make()


def frame_of_floats(rng, rows=200):
    return pd.DataFrame({"length": rng.exponential(size=rows) + 0.01, "angle": rng.normal(size=rows)})


@pytest.mark.parametrize("kind", ["float64", "float32", "Float64"])
@pytest.mark.parametrize(
    "make",
    [NaiveBayes, lambda: Classifier(joint="naive"), lambda: Mixture(2)],
    ids=["NaiveBayes", "Classifier", "Mixture"],
)
def test_a_frame_of_floats_keeps_its_columns_above_0(make, kind, tmp_path):
    rng = np.random.default_rng(0)
    frame, y = frame_of_floats(rng).astype(kind), rng.integers(0, 2, 200)
    model = make().fit(frame, y)
    model.save(tmp_path / "model")
    for asked in (
        model,
        load(tmp_path / "model"),
        make().partial_fit(frame[:99], y[:99]).partial_fit(frame[99:], y[99:]),
    ):
        drawn = np.asarray(asked.sample(500, random_state=0)[0])
        assert drawn[:, 0].min() == 0.0
        assert drawn[:, 1].min() < 0.0
    model.partial_fit(frame - 3.0, y)
    assert np.asarray(model.sample(500, random_state=0)[0])[:, 0].min() < 0.0


def test_trees_draw_numbers_that_were_learned():
    rng = np.random.default_rng(0)
    frame, y = frame_of_floats(rng), rng.integers(0, 2, 200)
    drawn = Classifier().fit(frame, y).sample(500, random_state=0)[0]
    for j, name in enumerate(frame):
        assert np.isin(np.asarray(drawn)[:, j], frame[name]).all()


def test_merged_frames_of_floats_span_the_ranges_of_both():
    rng = np.random.default_rng(0)
    frame, y = frame_of_floats(rng), rng.integers(0, 2, 200)
    one, other = NaiveBayes().fit(frame, y), NaiveBayes().fit(frame - 3.0, y)
    assert one.merge(NaiveBayes().fit(frame, y)).sample(500, random_state=0)[0][:, 0].min() == 0.0
    assert one.merge(other).sample(500, random_state=0)[0][:, 0].min() < 0.0


@pytest.mark.parametrize(
    "make", [NaiveBayes, Classifier, lambda: Mixture(2)], ids=["NaiveBayes", "Classifier", "Mixture"]
)
@pytest.mark.parametrize("extra", ["whole", "floats"])
def test_a_row_of_weight_0_says_nothing_of_kinds_and_ranges(make, extra):
    rng = np.random.default_rng(0)
    frame, y = frame_of_floats(rng), rng.integers(0, 2, 200)
    if extra == "whole":
        frame["count"] = rng.poisson(4.0, 200)
    far = pd.DataFrame({name: [-50] if name == "count" else [-50.5] for name in frame})
    model = make().fit(
        pd.concat([frame, far], ignore_index=True), np.append(y, 0), sample_weight=np.append(np.ones(200), 0)
    )
    want = make().fit(frame, y)
    assert str(getattr(model, "schema_", "")) == str(getattr(want, "schema_", ""))
    drawn = model.sample(500, random_state=0)[0]
    columns = ["length", "count"] if extra == "whole" else [0]
    assert all(np.asarray(drawn[c] if extra == "whole" else drawn[:, c]).min() >= 0 for c in columns)


@pytest.mark.parametrize(
    "change",
    [lambda X: X.to_dict("list"), lambda X: X.to_dict("records"), pa.table, lambda X: pa.table(X[["angle", "length"]])],
)
def test_more_rows_in_any_container_widen_the_ranges_of_a_frame_by_name(change):
    rng = np.random.default_rng(0)
    frame, y = frame_of_floats(rng), rng.integers(0, 2, 200)
    frame["angle"] = frame["angle"].abs()
    model = NaiveBayes().fit(frame, y).partial_fit(change(frame.assign(length=-frame["length"])), y)
    assert model.class_count_.sum() == 400
    low = model.sample(1000, random_state=0)[0].min(axis=0)
    assert low[0] < 0
    assert low[1] == 0


def test_a_column_without_cells_takes_its_range_from_later_rows():
    rng = np.random.default_rng(0)
    frame, y = frame_of_floats(rng), rng.integers(0, 2, 200)
    empty = frame.assign(length=np.nan)
    for model in (
        NaiveBayes().partial_fit(empty, y).partial_fit(frame, y),
        NaiveBayes().fit(empty, y).merge(NaiveBayes().fit(frame, y)),
        NaiveBayes().fit(frame, y).merge(NaiveBayes().fit(empty, y)),
    ):
        assert model.sample(500, random_state=0)[0][:, 0].min() == 0


def test_a_frame_of_floats_with_one_name_twice_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    model = NaiveBayes().fit(pd.DataFrame(rng.random((20, 2)), columns=["a", "a"]), np.arange(20) % 2)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").sample(100, random_state=0)[0].min() == 0


@pytest.mark.parametrize("labels", [list, np.array, pd.Series, lambda _: "y"], ids=["list", "array", "Series", "name"])
@pytest.mark.parametrize(
    "make", [NaiveBayes, Classifier, lambda: Mixture(2)], ids=["NaiveBayes", "Classifier", "Mixture"]
)
def test_a_row_of_weight_0_is_no_row_of_a_table(make, labels):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 60)
    frame = pd.DataFrame({"flag": rng.integers(0, 2, 60), "n": rng.normal(size=60), "c": rng.choice(list("xy"), 60)})
    odd = pd.DataFrame({"flag": [7], "n": ["none"], "c": ["z"]})
    both, labelled = pd.concat([odd, frame], ignore_index=True), np.append("b", y)
    weights = np.append(0, np.ones(60))
    if isinstance(labels(y), str):
        both, frame = both.assign(y=labelled), frame.assign(y=y)
    model, want = make().fit(both, labels(labelled), sample_weight=weights), make().fit(frame, labels(y))
    assert [c.kind for c in model.schema_.columns] == [c.kind for c in want.schema_.columns]
    np.testing.assert_allclose(model.log_density(frame), want.log_density(frame), rtol=1e-9)


def test_a_class_whose_rows_all_weigh_0_stays_a_class():
    frame = pd.DataFrame({"c": list("xyxyx"), "n": [1.5, 2.0, 2.5, 3.0, 9.0]})
    model = NaiveBayes().fit(frame, [*"abab", "rare"], sample_weight=[1, 1, 1, 1, 0])
    assert model.classes_.tolist() == ["a", "b", "rare"]
    assert model.priors_[2] == 0


def test_labels_of_rows_of_weight_0_may_be_missing_and_must_be_one_for_each_row():
    frame, weights = pd.DataFrame({"c": list("xyxyxy"), "n": np.arange(6) + 0.5}), [1, 1, 1, 1, 0, 0]
    for labels in (pd.Series(["a", "b", "a", "b", pd.NA, "a"], dtype="string"), ["a", "b", "a", "b", None, "a"]):
        assert NaiveBayes().fit(frame, labels, sample_weight=weights).classes_.tolist() == ["a", "b"]
    for labels in (np.zeros((6, 2)), ["a"] * 5):
        with pytest.raises(ValueError, match=r"expected|1d"):
            NaiveBayes().fit(frame, labels, sample_weight=weights)
