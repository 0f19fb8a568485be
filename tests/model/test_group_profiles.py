"""Groups of a whole table: which member they are of, and what each is like, exactly as the joint has it."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import likely
from likely.datasets import penguins
from likely.density.combination import component_shares

KINDS = ("combined", "tree", "trees", "hidden trees", "scores")
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def models():
    return {kind: likely.Model(kind).fit(penguins()) for kind in KINDS}


def profiles(model, column):
    rows = [row for row in model.group_profiles_.to_pylist() if row["column"] == column]
    return sorted(rows, key=lambda row: row["group"])


def test_groups_are_components_of_the_mixture_of_trees_of_most_weight(models):
    model = models["combined"]
    joint, birds = model.fitted().joint, penguins()
    trees = [m for m, (kind, _) in enumerate(model.members_) if kind == "trees"]
    member = joint.combination.members[max(trees, key=lambda m: model.members_[m][1])]
    rows = [part for table in model.fitted().reader.batches(birds) for part in joint.batches(table)]
    np.testing.assert_array_equal(model.predict_proba(birds), component_shares(member, rows[0]))
    assert len(model.group_weights_) == len(member.weights)


@pytest.mark.parametrize(
    ("kind", "more"), [("tree", False), ("hidden trees", False), ("trees", True), ("scores", True)]
)
def test_members_by_themselves_have_their_components_or_one_group(models, kind, more):
    assert (len(models[kind].group_weights_) > 1) == more


@every_kind
def test_profiles_of_all_groups_add_up_to_all_rows(models, kind):
    model = models[kind]
    weights = model.group_weights_
    table = model.group_profiles_
    assert table.num_rows == len(weights) * 8
    for name in ("body_mass_g", "bill_length_mm", "year"):
        rows = profiles(model, name)
        assert [row["weight"] for row in rows] == weights.tolist()
        mean = np.array([row["mean"] for row in rows])
        square = np.array([row["deviation"] ** 2 + row["mean"] ** 2 for row in rows])
        assert weights @ mean == pytest.approx(rows[0]["mean_of_all"], rel=1e-12)
        assert weights @ square == pytest.approx(rows[0]["deviation_of_all"] ** 2 + rows[0]["mean_of_all"] ** 2)
        assert rows[0]["value"] is None
    for row in profiles(model, "sex"):
        assert row["mean"] is None
        assert row["value"] in ("male", "female")
        assert 0.5 <= row["share"] <= 1


@pytest.mark.parametrize("kind", ["tree", "trees", "hidden trees", "scores"])
def test_profiles_are_what_bayes_says(models, kind):
    model = models[kind]
    answer = model.distribution("species")
    given_species = model.predict_proba([{"species": value} for value in answer.values])
    p = given_species.T * answer.p / model.group_weights_[:, None]  # p(species | group)
    divergence = (p * np.log(p / answer.p)).sum(axis=1)
    for row in profiles(model, "species"):
        own = p[row["group"]]
        assert row["value"] == answer.values[own.argmax()]
        assert row["share"] == pytest.approx(own.max(), rel=1e-9)
        assert row["share_of_all"] == pytest.approx(answer.p[own.argmax()], rel=1e-9)
        assert row["difference"] == pytest.approx(divergence[row["group"]], rel=1e-6, abs=1e-9)
    spread = model.distribution("body_mass_g")
    assert profiles(model, "body_mass_g")[0]["mean_of_all"] == pytest.approx(spread.values @ spread.p, rel=1e-9)
    missing = model.distribution("year", {"sex": likely.MISSING}).log_given
    shares = [row["missing"] for row in profiles(model, "sex")]
    assert model.group_weights_ @ shares == pytest.approx(np.exp(missing), rel=1e-9)
    assert {row["missing"] for row in profiles(model, "species")} == {0.0}


def test_the_first_glance_says_what_is_special():
    rng = np.random.default_rng(0)
    group = rng.random(600) < 0.3
    frame = pd.DataFrame({"noise": rng.normal(size=600)})
    for j in range(4):
        frame[f"x{j}"] = 8.0 * group + rng.normal(size=600)
    frame["word"] = np.where(group, "yes", "no")
    frame["day"] = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in 500 * group + rng.integers(0, 90, 600)]  # fmt: skip # noqa: E501
    model = likely.Model("scores").fit(frame)
    rows = model.group_profiles_.to_pylist()
    order = [(-row["weight"], row["group"], -row["difference"]) for row in rows]
    assert order == sorted(order)
    special = max((row for row in profiles(model, "word") if row["value"] == "yes"), key=lambda row: row["weight"])
    own = [row for row in rows if row["group"] == special["group"]]
    assert own[-1]["column"] == "noise"
    assert special["profile"].startswith("yes 9")
    assert f"(all {100 * special['share_of_all']:.0f} %)" in special["profile"]
    number = next(row for row in own if row["column"] == "x0")
    assert number["mean"] > number["mean_of_all"] + 3
    day = next(row for row in own if row["column"] == "day")
    assert day["profile"].startswith("2021-")
    assert day["mean"] > (np.datetime64("2021-01-01") - np.datetime64("1970-01-01")).astype(int)


def test_columns_without_cells_and_texts_have_no_profile():
    table = pa.table(
        {
            "x": np.linspace(0, 9, 60),
            "none": pa.nulls(60, pa.float64()),
            "nothing": pa.nulls(60, pa.string()),
            "text": ["a boat on the sea", "a road in the land", "grass and soil"] * 20,
            "huge": np.linspace(-1, 1, 60) * 1e300,
        }
    )
    model = likely.Model(columns={"text": "text", "nothing": "category"}).fit(table)
    assert set(model.group_profiles_["column"].to_pylist()) == {"x", "huge"}
    assert np.isfinite(model.group_profiles_["deviation"].to_numpy()).all()
    assert likely.Model().fit(np.full((9, 2), np.nan)).group_profiles_.num_rows == 0


def test_a_matrix_has_profiles_by_the_numbers_of_columns():
    found = likely.Model().fit(np.random.default_rng(0).normal(size=(100, 2))).group_profiles_
    assert set(found["column"].to_pylist()) == {"0", "1"}
