"""One joint of a whole table: answers, evidence, odd data, adding and forgetting, files."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest

import likely
from likely.datasets import penguins

KINDS = ("combined", "tree", "trees", "hidden trees", "scores", "tied scores")
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def birds():
    return penguins()


@pytest.fixture(scope="module")
def models(birds):
    return {kind: likely.Model(kind).fit(birds) for kind in KINDS}


@every_kind
def test_species_are_told_apart(models, birds, kind):
    found = models[kind].predict(birds, of="species")
    assert (found == np.array(birds["species"].to_pylist())).mean() > 0.95
    p = models[kind].predict_proba(birds, of="species")
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert models[kind].values_of("species").tolist() == ["Adelie", "Chinstrap", "Gentoo"]


@every_kind
def test_numbers_are_predicted_with_their_intervals(models, birds, kind):
    truth = np.array([np.nan if x is None else x for x in birds["body_mass_g"].to_pylist()])
    known = ~np.isnan(truth)
    mean = models[kind].predict(birds, of="body_mass_g")
    assert np.sqrt(np.mean((mean - truth)[known] ** 2)) < 0.6 * truth[known].std()
    ends = models[kind].predict_interval(birds, of="body_mass_g")
    inside = ((ends[:, 0] <= truth) & (truth <= ends[:, 1]))[known].mean()
    assert 0.85 < inside < 0.99
    q = models[kind].predict_quantiles(birds, [0.1, 0.5, 0.9], of="body_mass_g")
    assert (np.diff(q, axis=1) >= 0).all()
    assert np.array_equal(models[kind].predict_quantiles(birds, [0.05, 0.95], of="body_mass_g"), ends)


@every_kind
def test_evidence_is_a_ratio_of_densities(models, kind):
    model = models[kind]
    for given in (
        {"island": "Dream"},
        {"body_mass_g": (None, 4000)},
        {"species": {"Adelie", "Gentoo"}},
        {"sex": likely.MISSING},
    ):
        alone, both = model.distribution("species"), model.distribution("species", given)
        without = model.distribution("year", given).log_given
        total = 0.0
        for value, p in zip(alone.values, both.p, strict=True):
            joint = (
                model.distribution("year", {**given, "species": str(value)}).log_given
                if "species" not in given
                else None
            )
            if joint is not None:
                assert p == pytest.approx(np.exp(joint - without), rel=1e-9)
            total += p
        assert total == pytest.approx(1)


@every_kind
def test_a_value_given_is_a_cell_known(models, birds, kind):
    model = models[kind]
    rows = [{"species": "Gentoo", "body_mass_g": 5000}]
    np.testing.assert_allclose(
        model.predict_proba(rows, of="sex"),
        model.predict_proba([{"body_mass_g": 5000}], of="sex", given={"species": "Gentoo"}),
        rtol=1e-12,
    )
    joint = model.log_density(rows) - model.log_density([{"species": "Gentoo"}])
    np.testing.assert_allclose(
        model.log_density([{"body_mass_g": 5000}], given={"species": "Gentoo"}), joint, rtol=1e-9
    )


@every_kind
def test_draws_obey_what_is_given(models, kind):
    given = {"body_mass_g": (4000, 4500), "island": {"Dream", "Biscoe"}, "species": "Adelie"}
    drawn = models[kind].sample(300, 0, given=given).to_pandas()
    assert drawn.body_mass_g.between(4000, 4500).all()
    assert set(drawn.island) == {"Dream", "Biscoe"}
    assert set(drawn.species) == {"Adelie"}
    lacking = models[kind].sample(400, 0, missing=True).to_pandas()
    assert 0 < lacking.sex.isna().mean() < 0.1
    assert not lacking.species.isna().any()
    without = models[kind].sample(50, 0, given={"sex": likely.MISSING}).to_pandas()
    assert without.sex.isna().all()
    assert models[kind].sample(0).num_rows == 0


@every_kind
def test_cells_of_which_something_is_given_are_not_drawn_as_missing(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "a": rng.choice(list("pqr"), 300).astype(object), "y": rng.normal(size=300)})  # fmt: skip # noqa: E501
    frame = frame.mask(rng.random(frame.shape) < 0.3)
    model = likely.Model(kind).fit(frame)
    drawn = model.sample(400, 0, given={"x": (-1, 1), "a": {"p", "q"}}, missing=True).to_pandas()
    assert drawn.x.between(-1, 1).all()
    assert set(drawn.a) == {"p", "q"}
    assert 0.2 < drawn.y.isna().mean() < 0.4
    drawn = model.sample(400, 0, given={"x": likely.MISSING, "a": "p"}, missing=True).to_pandas()
    assert drawn.x.isna().all()
    assert (drawn.a == "p").all()


@every_kind
def test_several_ranges_and_sets_hold_together(models, birds, kind):
    given = {
        "body_mass_g": (3000, 4000), "bill_length_mm": (None, 45), "bill_depth_mm": (15, None), "year": (2008, 2009),
        "flipper_length_mm": (190, 210), "species": {"Adelie", "Gentoo"}, "sex": "male",
    }  # fmt: skip
    drawn = models[kind].sample(200, 0, given=given).to_pandas()
    assert drawn.body_mass_g.between(3000, 4000).all()
    assert (drawn.bill_length_mm <= 45).all()
    assert (drawn.bill_depth_mm >= 15).all()
    assert drawn.year.between(2008, 2009).all()
    assert drawn.flipper_length_mm.between(190, 210).all()
    assert set(drawn.species) <= {"Adelie", "Gentoo"}
    assert (drawn.sex == "male").all()
    p = models[kind].predict_proba(birds.slice(0, 5), of="island", given=given)
    np.testing.assert_allclose(p.sum(axis=1), 1)


@every_kind
def test_no_rows_have_no_answers(models, birds, kind):
    model, none = models[kind], birds.slice(0, 0)
    k = len(model.group_weights_)
    assert model.log_density(none).shape == model.groups(none).shape == model.predict(none, of="species").shape == (0,)
    assert model.predict_proba(none).shape == (0, k)
    assert model.predict_proba(none, of="species").shape == (0, 3)
    assert model.predict_interval(none, of="year").shape == (0, 2)
    assert model.surprise(none).cells.shape == model.explain(none, of="year").cells.shape == (0, 8)
    assert model.surprise(none).worst().shape == (0,)
    assert model.impute(none) == model.impute(none, how="draw") == none
    assert model.similar(none, birds, 3).shape == (0, 3)
    assert model.similar(birds.slice(0, 2), none, 3).shape == (2, 0)
    assert model.similar(birds.slice(0, 2), birds.slice(0, 4), 9).shape == (2, 4)
    np.testing.assert_array_equal(model.emptied().partial_fit(none).group_weights_, model.emptied().group_weights_)


def test_names_of_columns_may_be_anything(tmp_path):
    names = ["\x1b[31m", "a\nb", "", "p(x)", "group", "a.b", "'q'", "=1+1", "é猫", "surprise", "value"]
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=60) if k % 2 else rng.choice(["\x1b[2J", "=cmd", "", "None"], 60) for k in range(11)]
    table = pa.table(dict(zip(names, columns, strict=True)))
    model = likely.Model("trees").fit(table)
    model.save(tmp_path / "m.likely")
    same = likely.load(tmp_path / "m.likely")
    for k, name in enumerate(names):
        assert np.array_equal(same.predict(table, of=name), model.predict(table, of=k))
        assert "\x1b" not in str(model.explain(table.slice(0, 1), of=name))
    assert "\x1b" not in str(model.evaluate(table))
    assert set(model.evaluate(table).measures) == set(names)
    assert set(model.group_profiles_["column"].to_pylist()) == set(names)
    assert model.sample(3, 0).schema.names == model.impute(table).schema.names == names


@every_kind
def test_missing_cells_are_filled_and_others_stay(models, birds, kind):
    filled = models[kind].impute(birds)
    assert sum(column.null_count for column in filled.columns) == 0
    for name in birds.schema.names:
        for before, after in zip(birds[name].to_pylist(), filled[name].to_pylist(), strict=True):
            assert before is None or before == after
    draws = models[kind].impute(birds, how="draw", draws=3, random_state=0)
    assert len(draws) == 3
    assert draws[0] != draws[1]


def test_several_draws_are_those_of_a_loop_with_one_generator(models, birds):
    rng, given = np.random.default_rng(0), {"body_mass_g": (4000, 4001)}
    one_by_one = [models["combined"].impute(birds, how="draw", given=given, random_state=rng) for _ in range(3)]
    assert models["combined"].impute(birds, how="draw", draws=3, given=given, random_state=0) == one_by_one


def test_frames_come_back_as_they_are(models, birds):
    frame = birds.to_pandas()
    assert isinstance(models["combined"].impute(frame), pd.DataFrame)
    assert isinstance(models["combined"].impute(pl.from_arrow(birds)), pl.DataFrame)
    assert isinstance(models["combined"].sample(2), pa.Table)
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = likely.Model().fit(X)
    X[3, 1] = np.nan
    assert isinstance(model.impute(X), np.ndarray)
    assert model.sample(4).shape == (4, 3)


@every_kind
def test_a_changed_cell_is_the_most_surprising(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 1)) + 0.1 * rng.normal(size=(500, 4))
    model = likely.Model(kind).fit(x)
    odd = x[:50].copy()
    odd[:, 2] = -2 * np.sign(odd[:, 2])
    found = model.surprise(odd)
    assert (found.worst() == "2").mean() > 0.8
    assert np.median(found.rows) > np.median(model.surprise(x).rows) + 2
    np.testing.assert_allclose(found.rows, -model.log_density(odd))


@every_kind
def test_explanations_add_up(models, birds, kind):
    part = birds.slice(0, 20)
    found = models[kind].explain(part, of="species")
    p = models[kind].predict_proba(part, of="species")
    ranked = np.sort(p, axis=1)
    np.testing.assert_allclose(found.total, np.log(ranked[:, -1] / ranked[:, -2]), rtol=1e-6)
    number = models[kind].explain(part, of="body_mass_g")
    np.testing.assert_allclose(number.total, models[kind].predict(part, of="body_mass_g"), rtol=1e-9)
    assert number.against is None
    assert (found.cells[:, models[kind].schema_.names.index("species")] == 0).all()


def test_dependence_is_the_mutual_information_of_counts(birds):
    found = likely.Model("tree").fit(birds).dependence().to_pylist()
    pair = next(each for each in found if {each["column"], each["other"]} == {"species", "island"})
    counts = pd.crosstab(birds.to_pandas().species, birds.to_pandas().island).to_numpy() / 344
    across = np.outer(counts.sum(axis=1), counts.sum(axis=0))
    there = counts > 0
    want = (counts[there] * np.log(counts[there] / across[there])).sum() - 2 * 2 / (2 * 344)  # Miller and Madow
    assert pair["information"] == pytest.approx(want, rel=1e-12)
    shares = [each["normalised"] for each in found]
    assert shares == sorted(shares, reverse=True)
    assert 0 <= min(shares) <= max(shares) <= 1


def test_similar_rows_are_of_the_same_species(models, birds):
    near = models["combined"].similar(birds.slice(0, 40), birds, k=3)
    species = np.array(birds["species"].to_pylist())
    assert near.shape == (40, 3)
    assert (species[near] == species[:40, None]).mean() > 0.9


def test_one_tree_adds_exactly(birds):
    whole = likely.Model("tree").fit(birds)
    parts = [whole.emptied().partial_fit(birds.slice(at, 86)) for at in range(0, 344, 86)]
    merged = parts[0].merge(*parts[1:])
    batched = whole.emptied()
    for at in range(0, 344, 43):
        batched.partial_fit(birds.slice(at, 43))
    more = likely.Model("tree").fit(birds).partial_fit(birds.slice(0, 100)).forget(birds.slice(0, 100))
    for other in (merged, batched, more):
        np.testing.assert_allclose(other.log_density(birds), whole.log_density(birds), rtol=1e-12, atol=1e-12)


def test_models_of_other_references_do_not_merge(birds):
    one, other = likely.Model().fit(birds), likely.Model(random_state=1).fit(birds.slice(0, 300))
    with pytest.raises(ValueError, match=r"the same reference.*emptied\(\)"):
        one.merge(other)
    with pytest.raises(ValueError, match="rows that the model has learned"):
        one.emptied().partial_fit(birds.slice(0, 10)).forget(birds)
    with pytest.raises(ValueError, match="some rows to be left"):
        likely.Model("tree").fit(birds).forget(birds)


@every_kind
@pytest.mark.parametrize(
    ("name", "X"),
    [
        ("one row", np.ones((1, 3))),
        ("six rows", np.arange(18.0).reshape(6, 3) ** 1.5),
        ("one column", np.linspace(0, 9, 50)[:, None]),
        ("all missing", np.full((20, 2), np.nan)),
        ("a column without a cell", np.stack([np.linspace(0, 9, 60), np.full(60, np.nan)], axis=1)),
        ("constant", np.stack([np.linspace(0, 9, 60), np.full(60, 7.0)], axis=1)),
        ("huge offsets", np.random.default_rng(0).normal(size=(200, 3)) + 1e12),
        ("tiny numbers", np.random.default_rng(0).normal(size=(200, 3)) * 1e-200),
        ("an outlier", np.append(np.random.default_rng(0).normal(size=(200, 2)), [[1e8, 1e8]], axis=0)),
        ("copies of columns", np.random.default_rng(0).normal(size=(200, 1)) @ [[1.0, 1.0, 2.0]]),
        ("copies of rows", np.repeat(np.random.default_rng(0).normal(size=(40, 2)), 5, axis=0)),
        ("categories", pd.DataFrame({"a": list("xyxyxxz") * 5})),
        ("dates", pd.DataFrame({"d": pd.date_range("2020-01-01", periods=90), "x": np.arange(90.0)})),
        ("yes and no", pd.DataFrame({"b": [True, False, None] * 20, "x": np.arange(60.0)})),
    ],
)
def test_odd_tables(kind, name, X):
    model = likely.Model(kind).fit(X)
    assert np.isfinite(model.log_density(X)).all()
    assert np.isfinite(model.surprise(X).rows).all()
    model.sample(3, 0, missing=True)
    model.impute(X, how="draw", random_state=0)
    assert model.groups(X).shape == (len(X),)
    if not isinstance(X, pd.DataFrame) and not np.isnan(X).all(axis=0).any():
        assert not np.isnan(model.impute(np.full((1, X.shape[1]), np.nan))).any()


def test_rare_and_unseen_categories():
    rng = np.random.default_rng(0)
    names = [f"common {i}" for i in range(3)]
    a = rng.choice(names, 500).astype(object)
    a[:2] = ["rare one", "rare two"]
    frame = pd.DataFrame({"a": a, "x": rng.normal(size=500)})
    model = likely.Model().fit(frame)
    p = dict(zip(*model.distribution("a")[:2], strict=True))
    assert p["common 0"] > 0.2
    assert 0 < p["rare one"] == p["rare two"] < 0.02
    ask = [{"a": name} for name in ("common 0", "rare one", "never seen")]
    common, rare, unseen = model.log_density(ask)
    assert common > rare > -np.inf
    assert unseen == pytest.approx(0)  # as everywhere, a category that was never seen is a missing cell


@pytest.fixture(scope="module")
def with_rare():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    a = np.where(x + rng.normal(size=500) > 0, "high", "low").astype(object)
    a[:7] = ["one", "one", "two", "three", "three", "four", "five"]
    return pd.DataFrame({"a": a, "b": rng.choice(list("pq"), 500), "x": x})


@every_kind
@pytest.mark.parametrize("some", [{"one", "three"}, {"four"}, {"low", "two", "five"}, {"one", "two", "three", "four", "five"}])  # fmt: skip # noqa: E501
def test_a_set_of_rare_categories_is_the_sum_of_its_members(with_rare, kind, some):
    model = likely.Model(kind).fit(with_rare)
    each = {name: model.distribution("x", {"a": name}).log_given for name in some}
    whole = model.distribution("x", {"a": some}).log_given
    assert whole == pytest.approx(np.log(sum(map(np.exp, each.values()))), rel=1e-10)
    # of the column itself: within the set, and in it as p is
    answer = model.distribution("a", {"a": some})
    for value, p in zip(answer.values, answer.p, strict=True):
        assert p == pytest.approx(np.exp(each[value] - whole) if value in some else 0, rel=1e-10)
    # of another column: the sum over the set of what is given each of it
    rows = with_rare[["x"]].head(20)
    both = {name: np.exp(model.log_density(rows.assign(a=name)))[:, None] for name in some}
    found = sum(both[name] * model.predict_proba(rows, of="b", given={"a": name}) for name in some)
    np.testing.assert_allclose(model.predict_proba(rows, of="b", given={"a": some}), found / sum(both.values()), rtol=1e-9)  # fmt: skip # noqa: E501
    p = model.predict_proba(rows, of="a", given={"a": some})
    want = np.concatenate([both.get(name, np.zeros((20, 1))) for name in model.values_of("a")], axis=1)
    np.testing.assert_allclose(p, want / want.sum(axis=1, keepdims=True), rtol=1e-9)
    assert set(model.predict(rows, of="a", given={"a": some})) <= some
    drawn = model.sample(2000, 0, given={"a": some})["a"].to_pylist()
    counts = np.array([drawn.count(name) for name in answer.values])
    assert (counts[answer.p == 0] == 0).all()
    assert ((counts - 2000 * answer.p) ** 2 <= 25 * np.maximum(2000 * answer.p, 1.0)).all()
    filled = model.impute(pd.DataFrame({"a": [None] * 50, "x": [0.5] * 50}), how="draw", given={"a": some}, random_state=0)  # fmt: skip # noqa: E501
    assert set(filled.a) <= some


def test_sets_with_categories_that_were_never_seen_are_refused(with_rare):
    with pytest.raises(ValueError, match="one of the categories of column 'a' in given=, got 'six'"):
        likely.Model("tree").fit(with_rare).distribution("x", {"a": {"one", "six"}})


def test_yes_and_no_are_true_and_false_unless_they_were_1_and_0():
    rng = np.random.default_rng(0)
    yes = rng.random(300) < 0.4
    frame = pd.DataFrame({
        "truth": yes, "words": np.where(yes, "Yes", "No"), "digits": yes.astype(int), "x": yes + rng.normal(size=300),
        "lacking": pd.array(np.where(rng.random(300) < 0.1, None, yes), dtype="boolean"),
    })  # fmt: skip
    model = likely.Model("tree", columns={"words": "boolean"}).fit(frame)
    for name in ("truth", "words", "lacking"):
        assert model.values_of(name).dtype == bool
        assert model.values_of(name).tolist() == [False, True]
        found = model.predict(frame, of=name)
        assert found.dtype == bool
        assert (found == yes).mean() > 0.9
        assert model.distribution(name).values.dtype == bool
        assert model.explain(frame.head(2), of=name).label.dtype == bool
        one = model.distribution("x", {name: True})
        for same in (1, np.True_, {True}, {1}):
            assert model.distribution("x", {name: same}).log_given == one.log_given
        assert model.distribution("x", {name: {True, False}}).log_given == pytest.approx(0)
    assert model.predict(frame, of="digits").dtype.kind == "i"
    assert model.values_of("digits").tolist() == [0, 1]
    assert model.distribution("x", {"digits": True}).log_given == model.distribution("x", {"digits": 1}).log_given
    assert model.distribution("x", {"words": "yes"}).log_given == model.distribution("x", {"words": True}).log_given


@pytest.fixture(scope="module")
def staff():
    """Dates as days, as times in a zone, as text; pay falls with the date."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2018-01-01") + rng.integers(0, 1500, 500).astype("timedelta64[D]")
    times = days.astype("datetime64[s]") + rng.integers(0, 86400 * 30, 500).astype("timedelta64[s]")
    zone = pa.compute.assume_timezone(pa.array(times), "Europe/Oslo", ambiguous="earliest", nonexistent="latest")
    hired = pa.array(days, mask=rng.random(500) < 0.1)
    pay = 9000 - 2 * (days - days.min()).astype(float) + 200 * rng.normal(size=500)
    return pa.table({"hired": hired, "seen": zone.cast(pa.timestamp("ms", "Europe/Oslo")), "text": days.astype(str), "pay": pay})  # fmt: skip # noqa: E501


@pytest.fixture(scope="module")
def dated(staff):
    return likely.Model().fit(staff)


def test_a_date_is_one_column(dated, staff):
    assert dated.feature_names_in_.tolist() == ["hired", "seen", "text", "pay"]
    assert [column.unit for column in dated.schema_.columns] == ["day", "second", "day", ""]
    assert [column.whole for column in dated.fitted().joint.columns] == [True, False, True, False]
    rows = pd.DataFrame({"pay": [8900.0, 6200.0]})
    for name, kind in (("hired", "datetime64[D]"), ("text", "datetime64[D]"), ("seen", "datetime64[us]")):
        early, late = found = dated.predict(rows, of=name)
        assert found.dtype == kind
        assert early < np.datetime64("2018-08-01") < np.datetime64("2021-01-01") < late
        ends = dated.predict_interval(rows, of=name)
        assert ends.dtype == kind
        assert (ends[:, 0] < found).all()
        assert (found < ends[:, 1]).all()
        answer = dated.distribution(name)
        assert answer.values.dtype == kind
        assert answer.p.sum() == pytest.approx(1)
        assert dated.explain(rows, of=name).label.tolist() == found.tolist()
        assert "before any cell" in str(dated.explain(rows, of=name))
    assert {tuple(sorted((d["column"], d["other"]))) for d in dated.dependence().slice(0, 3).to_pylist()} >= {("hired", "text")}  # fmt: skip # noqa: E501


def test_a_date_counts_once_in_the_density(staff):
    model = likely.Model("tree").fit(staff.select(["hired"]))
    days = np.arange(np.datetime64("1990-01-01"), np.datetime64("2050-01-01"))
    p = np.exp(model.log_density(pa.table({"hired": days})))
    assert p.sum() == pytest.approx(1, abs=0.02)  # of a date with parts of its own it would be far less
    between = (days >= np.datetime64("2019-01-01")) & (days <= np.datetime64("2019-12-31"))
    given = {"hired": (datetime.date(2019, 1, 1), datetime.date(2019, 12, 31))}
    assert np.exp(model.distribution("hired", given).log_given) == pytest.approx(p[between].sum(), abs=0.01)


def test_dates_are_evidence(dated, staff):
    first, last = datetime.date(2020, 1, 1), datetime.date(2020, 6, 30)
    want = dated.distribution("pay", {"hired": (first, last)})
    for low, high in (("2020-01-01", "2020-06-30"), (np.datetime64(first), pd.Timestamp(last)), (datetime.datetime(2020, 1, 1), last)):  # fmt: skip # noqa: E501
        found = dated.distribution("pay", {"hired": (low, high)})
        np.testing.assert_array_equal(found.p, want.p)
    drawn = dated.sample(300, 0, given={"hired": (first, last), "seen": (None, last)}).to_pandas()
    assert drawn.hired.between(first, last).all()
    naive = drawn.seen.dt.tz_localize(None)
    assert (naive < pd.Timestamp("2020-07-01")).all()
    assert (naive > pd.Timestamp("2020-06-30")).any()  # the end of a range is all of the day
    open_end = np.exp(dated.distribution("pay", {"hired": (first, None)}).log_given)
    hired = staff["hired"].to_pandas().dropna()
    assert open_end == pytest.approx((hired >= first).mean(), abs=0.05)
    noon = datetime.datetime(2020, 3, 1, 5, tzinfo=datetime.UTC)
    one = dated.sample(3, 0, given={"hired": first, "seen": noon})
    assert one["hired"].to_pylist() == [first] * 3
    assert [x == noon for x in one["seen"].to_pylist()] == [True] * 3  # which Oslo calls 6
    assert dated.distribution("pay", {"hired": likely.MISSING}).log_given == pytest.approx(np.log(0.1), abs=0.4)
    assert dated.sample(20, 0, given={"hired": likely.MISSING})["hired"].null_count == 20


def test_drawn_and_filled_dates_have_the_type_of_their_column(dated, staff):
    drawn = dated.sample(200, 0)
    assert [drawn.schema.field(name).type for name in ("hired", "seen", "text")] == [
        pa.date32(), pa.timestamp("ms", "Europe/Oslo"), pa.string()
    ]  # fmt: skip
    assert all(len(text) == 10 for text in drawn["text"].to_pylist())
    known = set(staff["seen"].to_pylist())
    assert set(drawn["seen"].to_pylist()) <= known
    for how in ("mean", "draw"):
        filled = dated.impute(staff, how=how, random_state=0)
        assert filled.schema == staff.schema
        assert filled["hired"].null_count == 0
        assert filled["seen"] == staff["seen"]
    assert dated.impute(pl.from_arrow(staff))["hired"].dtype == pl.Date


def test_an_odd_date_is_to_blame(dated, staff):
    rows = staff.slice(0, 20).to_pandas()
    rows.loc[7, "hired"] = datetime.date(2045, 5, 5)
    found = dated.surprise(rows)
    assert found.cells.shape == (20, 4)
    assert found.worst()[7] == "hired"


def test_dates_in_files(dated, staff, tmp_path):
    dated.save(tmp_path / "m.likely")
    same = likely.load(tmp_path / "m.likely")
    np.testing.assert_array_equal(same.log_density(staff), dated.log_density(staff))
    assert same.sample(5, 0) == dated.sample(5, 0)
    same.partial_fit(staff.slice(0, 50)).forget(staff.slice(0, 50))
    np.testing.assert_allclose(same.log_density(staff), dated.log_density(staff), rtol=1e-9)


def test_files_whose_dates_are_in_parts_are_refused(dated, tmp_path):
    from likely.persistence.file import read, write

    dated.save(tmp_path / "m.likely")
    header, arrays = read(tmp_path / "m.likely")
    header.pop("version")
    counted = json.dumps(header)
    assert '["parts", ["day"]]' in counted
    parts = counted.replace('["parts", ["day"]]', '["parts", ["year"]]', 1)
    parts = parts.replace('"names": ["hired"', '"names": ["hired.year"')
    write(tmp_path / "m.likely", json.loads(parts), arrays)
    with pytest.raises(ValueError, match=r"dates as one column each.*fit it again"):
        likely.load(tmp_path / "m.likely")


def test_days_that_turn_out_to_have_times_are_times():
    days = [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=k) for k in range(11_000)]
    days[10_700] += datetime.timedelta(hours=5)
    model = likely.Model("tree").fit(pa.table({"d": pa.array(days, pa.timestamp("us"))}))
    assert model.schema_.columns[0].unit in ("day", "second")  # whichever rows the sample had
    assert model.schema_.columns[0].unit == "second"
    assert model.predict([{"d": None}], of="d").dtype == "datetime64[us]"


@pytest.mark.parametrize(
    "values",
    [
        [datetime.date(2020, 2, 29)] * 40,
        [None] * 40,
        [datetime.date(2020, 1, 1 + k % 3) for k in range(40)],
        [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)] * 20,
    ],
    ids=["constant", "all missing", "few", "the first and the last"],
)
def test_odd_dates(values, tmp_path):
    table = pa.table({"d": pa.array(values, pa.date32()), "x": np.arange(40.0)})
    model = likely.Model().fit(table)
    assert np.isfinite(model.log_density(table)).all()
    assert model.sample(5, 0)["d"].type == pa.date32()
    assert model.predict(table, of="d").dtype == "datetime64[D]"
    model.save(tmp_path / "m.likely")
    assert likely.load(tmp_path / "m.likely").sample(5, 0) == model.sample(5, 0)
    assert model.impute(table).num_rows == 40


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"hired": (5, None)}, "of two dates or None"),
        ({"hired": ("soon", None)}, "of two dates or None"),
        ({"hired": (datetime.date(2021, 1, 1), datetime.date(2020, 1, 1))}, "of two dates or None"),
        ({"hired": "soon"}, "a date such as 2024-02-29"),
        ({"hired": {datetime.date(2020, 1, 1)}}, "dates of column 'hired' that are often repeated"),
        ({"hired": {"soon"}}, "expected dates in a set"),
        ({"hired.year": 2020}, "did you mean 'hired'"),
    ],
)
def test_dates_that_cannot_be_evidence(dated, given, words):
    with pytest.raises(ValueError, match=words):
        dated.distribution("pay", given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"island": "Nowhere"}, "one of the categories.*Nowhere"),
        ({"body_mass_g": (6000, 5000)}, "a range.*low, high"),
        ({"body_mass_g": (1, 2, 3)}, "a range.*low, high"),
        ({"species": (1, 2)}, "a category.*got the range"),
        ({"species": likely.MISSING}, "may be missing.*species"),
        ({"species": set()}, "a set of values.*empty"),
        ({"nothing": 1}, "a column of the table.*nothing"),
        ({"body_mass_g": {1.5}}, "often repeated"),
        ({"body_mass_g": 10**400}, "numbers that floats can hold"),
        ({"island": "Dream", 1: "Biscoe"}, "evidence once on column 'island', got it by its name and by its number"),
        ({"island": {"Dream"}, 1: {"Biscoe"}}, "evidence once on column 'island'"),
    ],
)
def test_evidence_that_cannot_be(models, birds, given, words):
    with pytest.raises(ValueError, match=words):
        models["combined"].predict(birds, of="sex", given=given)


TWICE = pd.DataFrame(np.eye(9)[:, :2] / 3, columns=["a", "a"])


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m, b: m.predict_proba(b, of="body_mass_g"), "of numbers.*predict_quantiles"),
        (lambda m, b: m.predict_quantiles(b, 0.5, of="species"), "of categories.*predict_proba"),
        (lambda m, b: m.predict_quantiles(b, 1.5, of="body_mass_g"), "between 0 and 1"),
        (lambda m, b: m.predict_quantiles(b, [], of="body_mass_g"), r"one or more quantiles.*\[\]"),
        (lambda m, b: m.predict_quantiles(b, [[0.1, 0.2]], of="body_mass_g"), "one or more quantiles"),
        (lambda m, b: m.predict_quantiles(b, "half", of="body_mass_g"), "quantiles q between 0 and 1, got 'half'"),
        (lambda m, b: m.predict_interval(b, of="body_mass_g", coverage=2), "coverage between 0 and 1"),
        (lambda m, b: m.predict_interval(b, of="body_mass_g", coverage="all"), "coverage between 0 and 1, got 'all'"),
        (lambda m, b: m.similar(b, b, k=0), "a whole number of rows of 1 or more, got 0"),
        (lambda m, b: m.similar(b, b, k=2.5), "a whole number of rows of 1 or more, got 2.5"),
        (lambda m, b: m.score(b.slice(0, 0)), "at least one row, got none"),
        (lambda m, b: m.score(b, sample_weight=[1.0, 2.0]), "one weight for each row"),
        (lambda m, b: m.score(b, sample_weight=np.zeros(344)), "a positive weight in some row"),
        (
            lambda *_: likely.Model().fit(pd.DataFrame(np.eye(9)[:, :2] / 3, columns=["a", "a"])),
            "'a' twice: rename one",
        ),
        (
            lambda *_: likely.Model().evaluate(pd.DataFrame(np.eye(9)[:, :2] / 3, columns=["a", "a"]), folds=2),
            "'a' twice",
        ),
        (lambda m, b: m.impute(b, how="median"), "how='mean' or 'draw'"),
        (lambda m, b: m.impute(b, draws=3), "how='draw'"),
        (lambda m, b: m.impute(b, how="draw", draws=2.5), "expected draws, 1 or more.*2.5"),
        (lambda m, _: m.sample(-1), "a whole number of rows"),
        (lambda _, b: likely.Model("forest").fit(b), "kind among"),
        (lambda _, b: likely.Model(random_state="x").fit(b), "random_state as a whole number"),
        (lambda *_: likely.Model().fit([[np.inf, 1.0], [1.0, 2.0]]), "finite numbers.*row 0"),
        (lambda _, b: likely.Model().predict(b), "not fitted yet"),
    ],
)
def test_questions_that_cannot_be(models, birds, ask, words):
    with pytest.raises(ValueError, match=words):
        ask(models["combined"], birds)


@every_kind
def test_files_hold_all_that_is_learned(models, birds, kind, tmp_path):
    models[kind].save(tmp_path / "a.likely")
    same = likely.load(tmp_path / "a.likely")
    assert np.array_equal(same.log_density(birds), models[kind].log_density(birds))
    assert same.sample(20, 0, missing=True) == models[kind].sample(20, 0, missing=True)
    same.partial_fit(birds.slice(0, 50)).forget(birds.slice(0, 50))
    np.testing.assert_allclose(same.log_density(birds), models[kind].log_density(birds), rtol=1e-9)


@every_kind
def test_files_that_are_broken_are_refused_in_a_sentence(models, kind, tmp_path):
    from safetensors.numpy import load_file, save_file

    models[kind].save(tmp_path / "a.likely")
    arrays = load_file(tmp_path / "a.likely")
    with open(tmp_path / "a.likely", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        metadata = json.loads(file.read(size))["__metadata__"]
    rng, refused = np.random.default_rng(0), []
    for name, array in arrays.items():
        for change in range(3):
            broken = dict(arrays)
            if change == 0:
                broken[name] = np.zeros((2, *array.shape), dtype=array.dtype)
            elif change == 1:
                broken[name] = array[:-1].copy() if array.ndim and len(array) else np.zeros(7, dtype=array.dtype)
            elif array.size:
                flat = array.copy().ravel()
                flat[rng.integers(array.size)] = -77 if array.dtype.kind in "if" else 1
                broken[name] = flat.reshape(array.shape)
            save_file(broken, tmp_path / "b.likely", metadata)
            try:
                model = likely.load(tmp_path / "b.likely")
            except ValueError as error:
                refused.append(str(error))
                continue
            # What is changed may still be a model: then it answers.
            assert not np.isnan(model.log_density(penguins().slice(0, 5))).any()
    assert len(refused) > len(arrays)
    assert all("expected" in words for words in refused)


def test_values_that_are_given_are_filled_in(models):
    rows = pd.DataFrame({"species": [None, "Adelie"], "island": ["Dream", None], "body_mass_g": [None, 4000.0]})
    filled = models["combined"].impute(rows, given={"island": "Dream", "body_mass_g": 3333})
    assert filled.island.tolist() == ["Dream", "Dream"]
    assert filled.body_mass_g.tolist() == [3333.0, 4000.0]


@every_kind
def test_ranges_in_which_nothing_was_learned(kind):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = likely.Model(kind).fit(X)
    for ends in ((6.0, 7.0), (2.0, 2.0001), (-0.5, -0.499)):
        answer = model.distribution(0, {0: ends})
        assert answer.p.sum() == pytest.approx(1)
        drawn = model.sample(50, 0, given={0: ends})[:, 0]
        assert ((drawn >= ends[0]) & (drawn <= ends[1])).all()
        assert ends[0] <= model.predict(X[:1], of=0, given={0: ends})[0] <= ends[1]


def test_surprise_of_a_number_grows_as_it_goes_out():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    model = likely.Model().fit(X)
    found = [model.surprise([[x, 0.3, -0.4]]).cells[0, 0] for x in (0.0, 2.0, 3.0, 5.0, 10.0, 100.0)]
    assert found[0] < 1.5 < found[1] < found[2] < found[3] < found[4] <= found[5]
    assert np.isfinite(model.log_density([[1e6, 0, 0]])).all()


def test_two_ranges_of_many_rows_are_near_those_of_few():
    X = np.random.default_rng(0).normal(size=(800, 1)) + 0.5 * np.random.default_rng(1).normal(size=(800, 4))
    model = likely.Model("scores").fit(X)
    given = {0: (0.0, 1.5), 1: (-1.0, None)}
    many = model.predict(X[:40], of=2, given=given)
    few = np.concatenate([model.predict(X[i : i + 8], of=2, given=given) for i in range(0, 40, 8)])
    np.testing.assert_allclose(many, few, atol=1e-4)


NORMAL, RISING = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200.0)[:, None]
ENDS = {
    "next to each other": 1e15 + NORMAL,
    "identifiers": 2.0**62 + RISING * [1, 3],
    "huge": NORMAL * 1e200,
    "squares beyond": NORMAL * 1e155,
    "nearly the largest": NORMAL * 1e305,
    "the largest": np.array([[1e306, -1e306], [1.0, 2.0]] * 100) + NORMAL,
    "all sizes": np.sign(RISING - 99.5) * 10.0 ** np.random.default_rng(0).uniform(-300, 300, (200, 2)),
    "floats without 1 between": 1e16 + RISING * [1, 2],
    "few of them": 1e16 + np.random.default_rng(0).integers(0, 5, (200, 2)),
    "and far away": np.append(1e16 + RISING * [1, 2], [[0.0, 1e300]], axis=0),
    "neighbours": 1.0 + RISING * [2.0**-52, 2.0**-51],
    "huge neighbours": 1e300 * (1.0 + RISING * [2.0**-52, 2.0**-51]),
    "two neighbours": np.where(RISING % [2, 3] == 0, 1.0, np.nextafter(1.0, 2.0)),
    "subnormal beside others": np.append(NORMAL * 1e-310, NORMAL, axis=0),
    "subnormal beside an atom": np.append(np.ones((200, 2)), NORMAL * 1e-310, axis=0),
    "the smallest": np.full((200, 2), 5e-324),
    "one row": np.array([[1e305, -1e305]]),
    "three rows": np.array([[1e306, -1e306], [0.0, 0.0], [-1e306, 1e306]]),
    "unsigned": pd.DataFrame({"a": np.uint64(2**64 - 1) - np.arange(200).astype(np.uint64), "b": NORMAL[:, 0]}),
    "signed": pd.DataFrame({"a": [-(2**63), 2**63 - 1, 0, 5] * 50, "b": NORMAL[:, 0]}),
}


@pytest.mark.parametrize("X", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("kind", ["combined", "tree"])
def test_numbers_at_the_ends_of_what_floats_hold(X, kind, tmp_path):
    model = likely.Model(kind).fit(X)
    model.save(tmp_path / "m.likely")
    same = likely.load(tmp_path / "m.likely")
    assert np.isfinite(same.log_density(X)).all()
    np.testing.assert_array_equal(same.log_density(X), model.log_density(X))
    found = model.surprise(X)
    assert np.isfinite(found.rows).all()
    assert np.isfinite(found.cells).all()
    ends = model.predict_interval(X, of=0)
    assert np.isfinite(ends).all()
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert np.isfinite(model.predict(X, of=0)).all()
    assert len(model.sample(20, 0, missing=True)) == 20
    assert not np.isinf([x for each in model.evaluate(X).measures.values() for x in each.values()]).any()
    assert np.isfinite(model.group_profiles_["deviation"].to_numpy()).all()
    np.testing.assert_allclose(model.partial_fit(X).forget(X).log_density(X), same.log_density(X), rtol=1e-6)


@pytest.mark.parametrize("X", [[[1.7e308], [-1.7e308]], [[1.7e308]] * 50, [[1e307], [1.0]] * 30])
def test_numbers_beyond_what_can_be_reckoned_with_are_refused(X):
    with pytest.raises(ValueError, match=r"between -1e\+306 and 1e\+306, got .*: divide them by a large number"):
        likely.Model("tree").fit(np.array(X))


@every_kind
@pytest.mark.parametrize("x", [1e100, 1e306, -1.79e308, 5e-324])
def test_no_number_is_impossible(kind, x):
    model = likely.Model(kind).fit(np.random.default_rng(0).normal(size=(100, 2)))
    rows = [[x, 0.1]]
    assert np.isfinite(model.log_density(rows)).all()
    assert np.isfinite(model.surprise(rows).cells).all()
    assert np.isfinite(model.predict(rows, of=1)).all()


def test_numbers_that_floats_hardly_tell_apart_are_refused():
    with pytest.raises(ValueError, match="differ by 1e-290 or more"):
        likely.Model().fit(np.random.default_rng(0).normal(size=(50, 2)) * 1e-310)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tail", [1.5, 2.5])
def test_draws_and_answers_in_a_tail_are_those_of_the_numbers_there(kind, tail):
    x = np.random.default_rng(1).normal(size=(2000, 2))
    model = likely.Model(kind, progress=False).fit(x)
    beyond = x[x[:, 0] >= tail, 0]
    given = {0: (tail, None)}
    drawn = model.sample(4000, random_state=0, given=given)[:, 0]
    error = beyond.std() / np.sqrt(len(beyond))
    assert (drawn == tail).mean() < 0.01
    assert drawn.min() >= tail
    answer = model.distribution(0, given=given)
    assert answer.values.min() >= tail
    assert answer.p[answer.values == tail].sum() < 0.01
    for mean in (drawn.mean(), answer.values @ answer.p):
        assert abs(mean - beyond.mean()) < 4 * error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_range_that_excludes_nothing_says_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(600) < 0.4, 0.0, rng.normal(5, 1, 600))
    model = likely.Model(kind, progress=False).fit(np.column_stack([x, x + rng.normal(size=600)]))
    all_of, given = model.distribution(1), model.distribution(1, given={0: (None, None)})
    assert given.log_given == pytest.approx(0.0, abs=1e-9)
    assert given.values @ given.p == pytest.approx(all_of.values @ all_of.p, abs=1e-9)
    drawn = model.sample(2000, random_state=0, given={0: (None, None)})
    assert abs((drawn[:, 0] == 0).mean() - (x == 0).mean()) < 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_cells_that_are_missing_together_are_drawn_so(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    x[rng.random(600) < 0.3] = np.nan
    model = likely.Model(kind, progress=False).fit(x)
    drawn = model.sample(500, random_state=0, given={0: likely.MISSING}, missing=True)
    assert np.isnan(drawn[:, 0]).all()
    assert np.isnan(drawn[:, 1]).mean() > 0.9
    again = model.emptied().partial_fit(x).sample(500, random_state=0, missing=True)
    assert np.isnan(again[:, 0]).mean() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_invented_in_a_column_without_numbers(kind, birds):
    frame = birds.to_pandas().assign(none=np.nan)
    model = likely.Model(kind, progress=False).fit(frame)
    assert model.impute(frame)["none"].isna().all()
    assert model.impute(frame, how="draw", random_state=0)["none"].isna().all()
    assert pd.isna(model.sample(5, random_state=0)["none"].to_pandas()).all()


def test_similar_rows_in_parts_are_those_of_all(models, birds, monkeypatch):
    want = models["combined"].similar(birds, birds, k=3)
    monkeypatch.setattr("likely.model.table_questions._LIKENESSES", 1000)
    np.testing.assert_array_equal(models["combined"].similar(birds, birds, k=3), want)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"body_mass_g": [4000, 5000]}, r"a range \(low, high\), or a set of values in braces, got \[4000, 5000\]"),
        ({"species": ["Adelie"]}, "a set of values in braces"),
        ({"body_mass_g": slice(4000, None)}, "a range"),
        ({"body_mass_g": ">4000"}, "expected a number of .*body_mass_g.*got '>4000'"),
    ],
)
def test_evidence_in_other_forms_is_refused_in_a_sentence(models, given, words):
    with pytest.raises(ValueError, match=words):
        models["combined"].distribution("sex", given=given)


def test_a_target_is_refused(birds):
    with pytest.raises(ValueError, match="expected no target, got 'species'"):
        likely.Model().fit(birds, "species")
