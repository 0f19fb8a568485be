"""A model of a whole table on the command line: fit without a target, and every question to it."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import likely
from likely.cli import run
from likely.datasets import penguins


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    penguins().to_pandas().to_csv(folder / "birds.csv", index=False)
    assert run(["fit", str(folder / "birds.csv"), "-o", str(folder / "birds.likely")]) == 0
    return folder


@pytest.fixture
def say(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)

    def said(*words):
        capsys.readouterr()
        assert run([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return said


def test_fit_without_a_target_is_the_model_of_python(say, folder):
    told = json.loads(say("fit", "birds.csv", "-o", "again.likely", "--json"))
    assert told["kind"] == "Model"
    assert told["rows"] == 344
    assert {member["name"] for member in told["members"]} <= {"trees", "hidden trees", "scores", "tied scores"}
    same, ours = likely.load(folder / "birds.likely"), likely.Model().fit(penguins())
    assert same.members_ == ours.members_
    assert "Model of the whole table: 344 rows" in say("inspect", "birds.likely")


def test_ask_prints_the_distribution(say, folder):
    model = likely.load(folder / "birds.likely")
    given = ["--given", "body_mass_g=4000..5000", "--given", "island=Dream|Biscoe"]
    told = json.loads(say("ask", "birds.likely", "--of", "species", *given, "--json"))
    want = model.distribution("species", {"body_mass_g": (4000, 5000), "island": {"Dream", "Biscoe"}})
    found = {each["value"]: each["p"] for each in told["values"]}
    assert found == pytest.approx(dict(zip(want.values, want.p.tolist(), strict=True)))
    assert "%" in say("ask", "birds.likely", "--of", "species", *given)
    told = json.loads(say("ask", "birds.likely", "--of", "body_mass_g", "--given", "sex=missing", "--json"))
    want = model.distribution("body_mass_g", {"sex": likely.MISSING})
    assert told["mean"] == pytest.approx(want.values @ want.p)
    assert "90 % between" in say("ask", "birds.likely", "--of", "body_mass_g", "--given", "flipper_length_mm=200..")


def test_predict_of_a_column(say, folder):
    say("predict", "birds.likely", "birds.csv", "--of", "species", "-o", "out.csv")
    out = pd.read_csv(folder / "out.csv")
    assert (out["predicted species"] == out["species"]).mean() > 0.95
    assert out[[f"p({name})" for name in ("Adelie", "Chinstrap", "Gentoo")]].sum(axis=1).round(6).eq(1).all()
    say("predict", "birds.likely", "birds.csv", "--of", "body_mass_g", "--only", "-o", "mass.csv")
    mass = pd.read_csv(folder / "mass.csv")
    assert list(mass) == ["predicted body_mass_g", "5 %", "95 %"]
    assert (mass["5 %"] <= mass["95 %"]).all()


def test_groups_are_shown_and_predicted(say, folder):
    model = likely.load(folder / "birds.likely")
    groups = json.loads(say("inspect", "birds.likely", "--json"))["groups"]
    assert {each["group"]: each["weight"] for each in groups} == dict(enumerate(model.group_weights_))
    assert [len(each["columns"]) for each in groups] == [8] * len(groups)
    shown = say("inspect", "birds.likely")
    assert "special in" in shown
    assert groups[0]["columns"][0]["column"] in shown
    say("predict", "birds.likely", "birds.csv", "-o", "out.csv")
    out = pd.read_csv(folder / "out.csv")
    assert out.group.tolist() == model.groups(penguins()).tolist()
    shares = out[[f"p({group})" for group in range(len(groups))]].to_numpy()
    np.testing.assert_allclose(shares, model.predict_proba(penguins()), rtol=1e-12)
    say("predict", "birds.likely", "birds.csv", "--only", "--no-probabilities", "-o", "out.csv")
    assert list(pd.read_csv(folder / "out.csv")) == ["group"]
    (folder / "none.csv").write_text("species,year\n")
    assert say("predict", "birds.likely", "none.csv", "--only").startswith("group,p(0)")


def test_evaluation_of_a_fitted_model_on_other_rows(say, folder):
    birds = pd.read_csv(folder / "birds.csv").sample(frac=1, random_state=0)
    birds[:250].to_csv(folder / "some.csv", index=False)
    birds[250:].to_csv(folder / "others.csv", index=False)
    say("fit", "some.csv", "-o", "some.likely", "--kind", "tree")
    model = likely.load(folder / "some.likely")
    assert model.kind == "tree"
    want = model.evaluate(str(folder / "others.csv"))
    told = json.loads(say("evaluate", "some.likely", "others.csv", "--json"))
    assert (told["rows"], told["folds"], told["log_density"]) == (94, None, want.log_density)
    assert {each["column"]: each.get("r2") for each in told["columns"]} == {
        name: measures.get("r2") for name, measures in want.measures.items()
    }
    shown = say("evaluate", "some.likely", "others.csv")
    assert "94 rows" in shown
    assert f"{100 * want.measures['species']['accuracy']:.1f} %" in shown


def test_evaluation_of_all_columns_by_cross_validation(say):
    told = json.loads(say("evaluate", "birds.csv", "--kind", "tree", "--folds", "3", "--seed", "4", "--json"))
    want = likely.Model("tree", random_state=4).evaluate(penguins(), folds=3, random_state=4)
    assert told["log_density"] == pytest.approx(want.log_density, rel=1e-9)
    assert told["folds"] == 3
    assert json.loads(say("evaluate", "birds.csv", "--kind", "tree", "--json"))["folds"] == 5


def test_intervals_of_another_coverage(say, folder):
    model = likely.load(folder / "birds.likely")
    say("predict", "birds.likely", "birds.csv", "--of", "body_mass_g", "--only", "--coverage", ".5", "-o", "mass.csv")
    mass = pd.read_csv(folder / "mass.csv")
    assert list(mass) == ["predicted body_mass_g", "25 %", "75 %"]
    want = model.predict_interval(penguins(), of="body_mass_g", coverage=0.5)
    np.testing.assert_array_equal(mass[["25 %", "75 %"]], want)


def test_outliers_name_the_cell_to_blame(say, folder):
    birds = pd.read_csv(folder / "birds.csv")
    birds.loc[4, "bill_depth_mm"] = 99
    birds.to_csv(folder / "odd.csv", index=False)
    say("outliers", "birds.likely", "odd.csv", "-n", "3", "-o", "found.csv")
    found = pd.read_csv(folder / "found.csv")
    assert len(found) == 3
    assert found.loc[0, "row"] == 5
    assert found.loc[0, "cell"] == "bill_depth_mm"
    assert found.surprise.is_monotonic_decreasing


def test_draws_are_rows_of_the_table(say, folder):
    say("sample", "birds.likely", "-n", "200", "--seed", "1", "--given", "species=Gentoo", "-o", "new.csv")
    new = pd.read_csv(folder / "new.csv")
    assert list(new) == list(pd.read_csv(folder / "birds.csv"))
    assert set(new.species) == {"Gentoo"}
    say("sample", "birds.likely", "-n", "300", "--seed", "1", "--missing-cells", "-o", "new.csv")
    assert pd.read_csv(folder / "new.csv").isna().any().any()
    say("impute", "birds.likely", "birds.csv", "--how", "draw", "--draws", "3", "--seed", "0", "-o", "filled.csv")
    filled = pd.read_csv(folder / "filled.csv")
    assert filled.draw.value_counts().to_dict() == {1: 344, 2: 344, 3: 344}
    assert not filled.isna().any().any()


def test_evidence_for_filled_cells_and_explanations(say, folder):
    model = likely.load(folder / "birds.likely")
    given = {"island": "Dream", "year": (2008, None)}
    said = ["--given", "island=Dream", "--given", "year=2008.."]
    (folder / "holes.csv").write_text("species,island,body_mass_g\n,,3500\nGentoo,,\n")
    say("impute", "birds.likely", "holes.csv", *said, "-o", "filled.csv")
    filled = pd.read_csv(folder / "filled.csv")
    want = model.impute(str(folder / "holes.csv"), given=given).to_pandas()
    assert filled.species.tolist() == want.species.tolist()
    assert filled.island.tolist() == ["Dream", "Dream"]
    told = json.loads(say("explain", "birds.likely", "birds.csv", "--of", "species", *said, "--json"))["rows"][0]
    explained = model.explain(penguins().slice(0, 1), of="species", given=given)
    assert told["total"] == pytest.approx(explained.total[0], rel=1e-9)
    assert told["total"] != pytest.approx(model.explain(penguins().slice(0, 1), of="species").total[0])


def test_dependence_and_explanations(say):
    pairs = json.loads(say("dependence", "birds.likely", "-n", "3", "--json"))["pairs"]
    assert len(pairs) == 3
    assert pairs[0]["normalised"] >= pairs[1]["normalised"]
    assert "species" in say("dependence", "birds.likely")
    rows = json.loads(say("explain", "birds.likely", "birds.csv", "--of", "species", "--row", "2", "--json"))["rows"]
    assert rows[0]["total"] == pytest.approx(rows[0]["base"] + sum(each["adds"] for each in rows[0]["cells"]))
    assert "altogether" in say("explain", "birds.likely", "birds.csv", "--of", "body_mass_g")


def test_a_category_that_looks_like_a_range_or_a_set_wins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["1..2", "a|b", "missing", "x=y"]
    pd.DataFrame({"kind": names * 20, "n": range(80), "lacks": ["p", None] * 40}).to_csv("rows.csv", index=False)
    assert run(["fit", "rows.csv", "-o", "m.likely"]) == 0
    for name in names:
        capsys.readouterr()
        assert run(["sample", "m.likely", "-n", "5", "--given", f"kind={name}"]) == 0
        out = capsys.readouterr().out
        assert out.count(name) == 5


def test_yes_and_no_are_written_as_the_file_has_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"member": ["Yes", "No", "Yes", "No"] * 20, "vip": [True, False, True, True] * 20, "n": range(80)})  # fmt: skip # noqa: E501
    frame.to_csv("rows.csv", index=False)
    assert run(["fit", "rows.csv", "-o", "m.likely", "--column", "member=boolean"]) == 0
    for name, values in {"member": {"Yes", "No"}, "vip": {"true", "false"}}.items():
        capsys.readouterr()
        assert run(["predict", "m.likely", "rows.csv", "--of", name, "--only", "-o", "out.csv"]) == 0
        out = pd.read_csv("out.csv", dtype=str)
        assert list(out)[1:] == [f"p({each})" for each in sorted(values)]
        assert set(out[f"predicted {name}"]) <= values
        assert run(["ask", "m.likely", "--of", name, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert {each["value"] for each in told["values"]} == values
    assert run(["ask", "m.likely", "--of", "n", "--given", "member=Yes", "--given", "vip=true"]) == 0


def test_a_text_is_evidence(say, folder):
    words = {"land": "soil grass tree road", "sea": "salt fish wave boat"}
    orders = list(permutations(range(4), 3))
    notes = [(" ".join(said.split()[i] for i in order), where) for where, said in words.items() for order in orders] * 2
    pd.DataFrame(notes, columns=["note", "where"]).to_csv(folder / "notes.csv", index=False)
    say("fit", "notes.csv", "-o", "notes.likely", "--text", "note")
    told = json.loads(say("ask", "notes.likely", "--of", "where", "--given", "note=grass | soil..", "--json"))
    assert max(told["values"], key=lambda each: each["p"])["value"] == "land"


def test_dates_are_ranges_and_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days = pd.date_range("2019-01-01", periods=300)
    frame = pd.DataFrame({"hired": days, "seen": days + pd.to_timedelta(np.arange(300) * 37, "min"), "n": np.arange(300) % 7 + np.arange(300)})  # fmt: skip # noqa: E501
    frame.to_csv("rows.csv", index=False)
    assert run(["fit", "rows.csv", "-o", "m.likely"]) == 0
    model = likely.load("m.likely")

    def said(*words):
        capsys.readouterr()
        assert run([*words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    told = json.loads(said("ask", "m.likely", "--of", "n", "--given", "hired=2019-02-01..2019-03-31", "--json"))
    want = model.distribution("n", {"hired": ("2019-02-01", "2019-03-31")})
    assert told["mean"] == pytest.approx(want.values @ want.p)
    told = json.loads(said("ask", "m.likely", "--of", "hired", "--given", "n=100..150", "--json"))
    assert "2019-03-15" < told["quantiles"]["0.05"] <= told["mean"] <= told["quantiles"]["0.95"] < "2019-06-30"
    for name in ("hired", "seen"):
        assert "90 % between 2019-" in said("ask", "m.likely", "--of", name, "--given", "hired=2019-03-01..")
        assert "2019-" in said("explain", "m.likely", "rows.csv", "--of", name, "--row", "2")
        rows = json.loads(said("explain", "m.likely", "rows.csv", "--of", name, "--row", "2", "--json"))["rows"]
        assert rows[0]["answer"].startswith("2019-")
        said("predict", "m.likely", "rows.csv", "--of", name, "--only", "-o", "out.csv")
        out = pd.read_csv("out.csv")
        assert list(out) == [f"predicted {name}", "5 %", "95 %"]
        assert (out["5 %"] <= out["95 %"]).all()
        assert out["5 %"].str.startswith("20").all()
    said("sample", "m.likely", "-n", "50", "--seed", "0", "--given", "hired=2019-05-01..2019-05-31", "-o", "new.csv")
    assert pd.read_csv("new.csv").hired.between("2019-05-01", "2019-05-31").all()
    assert run(["ask", "m.likely", "--of", "n", "--given", "hired=soon..later"]) == 2
    assert "of two dates" in capsys.readouterr().err
    pd.DataFrame({"n": []}).to_csv("none.csv", index=False)
    said("predict", "m.likely", "none.csv", "--of", "hired")
