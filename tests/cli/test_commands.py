"""The command line: what each command writes is what the library answers."""

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likely
from likely.cli import run
from likely.cli.commands import application
from likely.data import progress as watching
from likely.data.rows import open_rows
from likely.data.write import write_rows

BIRDS = str(files("likely").joinpath("datasets", "penguins.csv"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("models") / "birds.likely")
    assert run(["fit", BIRDS, "-t", "species", "-o", path, "--missing", "NA"]) == 0
    return path


def rows_of(path, **options):
    return pa.Table.from_batches(list(open_rows(path, **options).batches()))


def said(capsys, *words):
    assert run([*map(str, words)]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_fit_says_what_it_learned(tmp_path, capsys):
    told = said(capsys, "fit", BIRDS, "-t", "species", "-o", tmp_path / "birds.likely", "--missing", "NA")
    assert "344 rows" in told
    assert "Adelie 44.2 %" in told
    assert "birds.likely" in told
    told = said(
        capsys, "fit", BIRDS, "-t", "species", "-o", tmp_path / "b.likely", "--missing", "NA", "--model", "naive-bayes",
        "-c", "body_mass_g=log-normal", "--ignore", "year", "--json",
    )  # fmt: skip
    found = json.loads(told)
    families = {column["name"]: column["family"] for column in found["columns"]}
    assert (found["kind"], found["rows"]) == ("NaiveBayes", 344)
    assert (families["body_mass_g"], families["island"], families["year"]) == ("log-normal", "categorical", None)


def test_fit_lets_a_forest_compare_classes(tmp_path, capsys):
    path = tmp_path / "birds.likely"
    said(capsys, "fit", BIRDS, "-t", "species", "-o", path, "--missing", "NA", "--forest")
    assert likely.load(path).forest is True
    for words, message in (
        (["-t", "species", "--model", "naive-bayes"], "expected --forest of a classifier"),
        (["-t", "species", "--no-calibrate"], "expected --forest without --no-calibrate"),
        ([], "expected --target NAME with"),
    ):
        assert run(["fit", BIRDS, "-o", str(path), "--missing", "NA", "--forest", *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("joint", ["tree", "full", "naive"])
def test_fit_chooses_what_answers_all_but_the_class(joint, tmp_path, capsys):
    path = tmp_path / "birds.likely"
    said(capsys, "fit", BIRDS, "-t", "species", "-o", path, "--missing", "NA", "--joint", joint)
    assert likely.load(path).joint == joint
    assert "NA" not in said(capsys, "impute", path, BIRDS)
    for words, told in (
        (["-t", "species", "--model", "naive-bayes"], f"expected --joint of a classifier, got --joint {joint}"),
        ([], "expected --target NAME with"),
        (["-t", "species", "--no-calibrate"], "expected --joint naive with --no-calibrate"),
        (["-t", "species", "--together", "sex,island"], "expected --joint naive with --together"),
    ):
        failed = run(["fit", BIRDS, "-o", str(path), "--missing", "NA", "--joint", joint, *words])
        if joint == "naive" and told.startswith("expected --joint naive"):
            assert failed == 0
        else:
            assert failed == 2
            assert told in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_predict_writes_what_the_model_answers(model, tmp_path, ending):
    out = tmp_path / f"answers.{ending}"
    assert run(["predict", model, BIRDS, "-o", str(out)]) == 0
    answers, loaded = rows_of(str(out), missing=["NA"]), likely.load(model)
    expected = loaded.predict_proba(BIRDS)
    for k, label in enumerate(loaded.classes_):
        np.testing.assert_array_equal(answers[f"p({label})"].to_numpy(), expected[:, k])
    assert answers["prediction"].to_pylist() == loaded.predict(BIRDS).tolist()
    assert answers["body_mass_g"].to_pylist() == rows_of(BIRDS, missing=["NA"])["body_mass_g"].to_pylist()


def test_cells_of_a_csv_stay_as_they_are_written(model, tmp_path, capsys):
    rows = tmp_path / "rows.csv"
    rows.write_text('sex,body_mass_g,when,id,note\nmale,3750.0,2024-01-05,007,"a, b"\nNA,,2024-01-06,008,\n')
    run(["predict", model, str(rows), "--no-probabilities"])
    first, second = capsys.readouterr().out.splitlines()[1:]
    assert first.startswith('male,3750.0,2024-01-05,007,"a, b",')
    assert second.startswith("NA,,2024-01-06,008,,")
    assert said(capsys, "predict", model, BIRDS, "--only", "--no-probabilities").splitlines()[:2] == [
        "prediction",
        "Adelie",
    ]


def test_standard_input(model, tmp_path, capsys, monkeypatch):
    table = Path(BIRDS).read_bytes()
    expected = said(capsys, "predict", model, BIRDS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table)))
    assert said(capsys, "predict", model, "-") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table)))
    again = tmp_path / "again.likely"
    said(capsys, "fit", "-", "-t", "species", "-o", again, "--missing", "NA")
    assert again.read_bytes() == Path(model).read_bytes()
    lines = "\n".join(json.dumps(row) for row in rows_of(BIRDS, missing=["NA"]).to_pylist())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    answered = said(capsys, "predict", model, "-", "--format", "jsonl").splitlines()
    assert json.loads(answered[0])["prediction"] == "Adelie"


def test_several_files_are_one_table(model, tmp_path, capsys):
    head, *lines = Path(BIRDS).read_text().splitlines()
    for i, part in enumerate([lines[:200], lines[200:]]):
        (tmp_path / f"part{i}.csv").write_text("\n".join([head, *part]))
    out = tmp_path / "both.likely"
    for data in ([tmp_path / "part0.csv", tmp_path / "part1.csv"], [tmp_path / "part*.csv"]):
        said(capsys, "fit", *data, "-t", "species", "-o", out, "--missing", "NA")
        assert out.read_bytes() == Path(model).read_bytes()


def test_predicting_no_rows_writes_the_names(model, tmp_path, capsys):
    (tmp_path / "none.csv").write_text("island,sex\n")
    assert said(capsys, "predict", model, tmp_path / "none.csv") == (
        "island,sex,prediction,p(Adelie),p(Chinstrap),p(Gentoo)\n"
    )


def test_evaluate(capsys):
    words = ["evaluate", BIRDS, "-t", "species", "--missing", "NA", "--model", "naive-bayes", "--folds", "5"]
    found = json.loads(said(capsys, *words, "--json"))
    expected = likely.NaiveBayes(missing=["NA"]).evaluate(BIRDS, "species", folds=5)
    assert (found["accuracy"], found["log_loss"]) == (expected.accuracy, expected.log_loss)
    assert found["confusion"] == expected.confusion.tolist()
    told = said(capsys, *words)
    assert f"{100 * expected.accuracy:.2f} %" in told
    assert "calibration error" in told
    assert "Chinstrap" in told


def test_an_explanation_adds_up(model, capsys):
    told = said(capsys, "explain", model, BIRDS, "--row", "3", "--row", "20", "--against", "Gentoo", "--json")
    rows = json.loads(told)["rows"]
    assert [row["row"] for row in rows] == [3, 20]
    for row in rows:
        assert row["against"] == "Gentoo"
        assert row["base"] + sum(cell["log_odds"] for cell in row["cells"]) == pytest.approx(row["log_odds"])
    told = said(capsys, "explain", model, BIRDS)
    assert "Row 1: why Adelie" in told
    assert "altogether" in told


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_impute_fills_every_hole(model, tmp_path, ending):
    out = tmp_path / f"whole.{ending}"
    assert run(["impute", model, BIRDS, "-o", str(out)]) == 0
    whole, before = rows_of(str(out)), rows_of(BIRDS, missing=["NA"])
    assert sum(column.null_count for column in whole.columns) == 0
    assert whole.schema.names == before.schema.names
    for name in before.schema.names:
        kept = [(a, b) for a, b in zip(before[name].to_pylist(), whole[name].to_pylist(), strict=True) if a is not None]
        assert all(a == b for a, b in kept)
    filled = likely.load(model).impute(before, before["species"].to_pylist())
    assert whole["sex"].to_pylist() == filled["sex"].to_pylist()


def test_draws_are_the_same_for_the_same_seed(model, capsys):
    draws = [said(capsys, "impute", model, BIRDS, "--how", "draw", "--seed", seed) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    rows = [said(capsys, "sample", model, "-n", "20", "--seed", seed) for seed in (1, 1, 2)]
    assert rows[0] == rows[1] != rows[2]


def test_holes_that_are_no_numbers_are_filled(tmp_path, capsys):
    table = pa.table({"x": [1.0, float("nan"), 3.0, 3.5], "y": ["a", "a", "b", "b"]})
    pq.write_table(table, tmp_path / "t.parquet")
    said(capsys, "fit", tmp_path / "t.parquet", "-t", "y", "-o", tmp_path / "m.likely", "--model", "naive-bayes")
    assert said(capsys, "impute", tmp_path / "m.likely", tmp_path / "t.parquet").splitlines()[2] == "1,a"


def test_sample_given_cells_and_the_label(model, tmp_path, capsys):
    out = tmp_path / "new.jsonl"
    said(capsys, "sample", model, "-n", "30", "-g", "sex=female", "-g", "species=Gentoo", "-o", out, "--seed", "0")
    rows = rows_of(str(out))
    assert rows.num_rows == 30
    assert set(rows["sex"].to_pylist()) == {"female"}
    assert set(rows["species"].to_pylist()) == {"Gentoo"}
    assert 4000 < np.mean(rows["body_mass_g"].to_numpy()) < 5500
    assert len(said(capsys, "sample", model, "-n", "0").splitlines()) == 1


def test_labels_that_are_numbers(tmp_path, capsys):
    rows = "\n".join(["x,y", *(f"{i},{i % 2}" for i in range(40)), "3,"])
    (tmp_path / "numbers.csv").write_text(rows)
    made = ["fit", tmp_path / "numbers.csv", "-t", "y", "-o", tmp_path / "m.likely", "--no-calibrate"]
    assert run([*map(str, made)]) == 0
    assert capsys.readouterr().err == "likely: note: 1 rows without a label in 'y' are left out\n"
    found = said(capsys, "explain", tmp_path / "m.likely", tmp_path / "numbers.csv", "--label", "1", "--json")
    assert json.loads(found)["rows"][0]["label"] == 1
    drawn = said(capsys, "sample", tmp_path / "m.likely", "-n", "3", "--given", "y=1").splitlines()
    assert all(line.endswith(",1") for line in drawn[1:])
    assert "p(0)" in said(capsys, "predict", tmp_path / "m.likely", tmp_path / "numbers.csv")


def test_inspect(model, capsys):
    found = json.loads(said(capsys, "inspect", model, "--json"))
    assert (found["kind"], found["target"], found["rows"]) == ("Classifier", "species", 344)
    assert found["calibration"]["rows"] == 344
    assert len(found["members"]) >= 1
    told = said(capsys, "inspect", model)
    assert "Chinstrap" in told
    assert "Calibrated on 344 rows" in told
    assert "integer" in said(capsys, "inspect", BIRDS, "--missing", "NA")
    columns = json.loads(said(capsys, "inspect", BIRDS, "--json"))["columns"]
    assert [column["name"] for column in columns][:2] == ["species", "island"]


def test_merged_models_know_what_one_would(tmp_path, capsys):
    head, *lines = Path(BIRDS).read_text().splitlines()
    for name, part in {"odd": lines[::2], "even": lines[1::2], "all": lines}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *part]))
        words = ["-t", "species", "--missing", "NA", "--model", "naive-bayes", "-c", "year=category"]
        words += ["-c", "body_mass_g=gaussian", "-c", "flipper_length_mm=gaussian"]
        said(capsys, "fit", tmp_path / f"{name}.csv", "-o", tmp_path / f"{name}.likely", *words)
    told = said(capsys, "merge", tmp_path / "odd.likely", tmp_path / "even.likely", "-o", tmp_path / "both.likely")
    assert "344 rows" in told
    both, one = (likely.load(tmp_path / f"{name}.likely") for name in ("both", "all"))
    np.testing.assert_allclose(both.predict_proba(BIRDS), one.predict_proba(BIRDS), atol=1e-9)


def test_models_of_matrices_answer_too(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(60, 2))
    likely.GaussianDiscriminant().fit(x, np.where(x[:, 0] > 0, "right", "left")).save(tmp_path / "m.likely")
    (tmp_path / "x.csv").write_text("a,b\n-2,0\n2,\n")
    assert said(capsys, "predict", tmp_path / "m.likely", tmp_path / "x.csv", "--no-probabilities") == (
        "a,b,prediction\n-2,0,left\n2,,right\n"
    )
    assert len(said(capsys, "sample", tmp_path / "m.likely", "-n", "4").splitlines()) == 5
    assert "GaussianDiscriminant" in said(capsys, "inspect", tmp_path / "m.likely")
    assert said(capsys, "impute", tmp_path / "m.likely", tmp_path / "x.csv").count(",\n") == 0


@pytest.mark.parametrize("command", sorted(application.commands))
def test_help_has_examples(command, capsys):
    told = said(capsys, command, "--help")
    assert "Examples" in told
    assert f"likely {command}" in told


@pytest.mark.parametrize("example", [each for command in application.commands.values() for each in command.examples])
def test_examples_can_be_read(example):
    words = shlex.split(example.partition("likely ")[2].partition(" | ")[0], comments=True)
    command = application.commands[words[0]]
    read = command.make_context(words[0], words[1:]).params
    assert read.keys() == {each.name for each in command.params if each.expose_value and each.name != "help"}


def test_other_ways_to_write_options(model, capsys):
    expected = said(capsys, "sample", model, "-n", "2", "--seed", "3")
    assert said(capsys, "sample", model, "-n2", "--seed=3") == expected
    assert said(capsys, "--version").startswith("likely ")
    assert "evaluate" in said(capsys)
    assert said(capsys, "sample", "--seed=3", model, "--number=2") == expected
    assert said(capsys, "sample", "--seed", "3", "-n", "2", "--", model) == expected
    assert said(capsys, "sample", "-h") == said(capsys, "sample", "--help")


def test_values_may_begin_with_a_dash_and_files_may_stand_anywhere(tmp_path, capsys, model):
    (tmp_path / "a.csv").write_text("x,y\n1,a\n-9,a\n3,b\n")
    (tmp_path / "b.csv").write_text("x,y\n--,a\n-,b\n5,b\n---,b\n")
    out, words = tmp_path / "m.likely", ["--missing", "-9", "--missing", "--", "--missing", "-", "--missing", "---"]
    told = said(capsys, "fit", tmp_path / "a.csv", "-t", "y", "-o", out, *words, tmp_path / "b.csv", "--json")
    found = json.loads(told)
    assert (found["rows"], found["columns"][0]["kind"]) == (7, "integer")
    assert run(["sample", model, "-n", "-1"]) == 2
    assert "-1" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    (tmp_path / f".{shell}rc").write_text("true")
    script = said(capsys, "--show-completion")
    assert "_LIKELY_COMPLETE" in script
    for _ in range(2):
        assert str(tmp_path) in said(capsys, "--install-completion")
    installed = [path for path in tmp_path.rglob("*likely*") if path.is_file()]
    assert [path.read_text() for path in installed] == [script.removesuffix("\n")]
    if shell != "fish":
        assert (tmp_path / f".{shell}rc").read_text() == f"true\n. {installed[0]}\n"
    monkeypatch.setenv("_LIKELY_COMPLETE", f"{shell}_complete")
    for words, expected in (
        ("likely ev", "evaluate"),
        ("likely fit --targ", "--target"),
        ("likely fit --model ", "nai"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        last = words.split(" ")[-1]
        monkeypatch.setenv("COMP_CWORD", last if shell == "fish" else str(len(words.split(" ")) - 1))
        assert expected in said(capsys)


def test_completion_of_an_unknown_shell(monkeypatch, capsys):
    monkeypatch.setenv("SHELL", "/bin/csh")
    assert run(["--install-completion"]) == 2
    assert "expected one of bash, zsh, fish" in capsys.readouterr().err


def test_progress_is_shown_to_a_person(model, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    assert run(["predict", model, BIRDS, "-o", str(tmp_path / "out.csv")]) == 0
    assert rows_of(str(tmp_path / "out.csv")).num_rows == 344


def test_fitting_imports_little(tmp_path):
    words = ["-m", "likely", "fit", BIRDS, "-t", "species", "-o", str(tmp_path / "m.likely")]
    told = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert "likely.estimators" in imported
    # Arrow tries to import pandas, and is refused: nothing within it is imported.
    assert imported.isdisjoint({"pandas.core", "sklearn", "scipy", "rich", "pyarrow.parquet"})


def test_importing_the_package_imports_little():
    code = (
        "import sys, likely; print('likely.estimators' in sys.modules, 'Classifier' in dir(likely), likely.Classifier)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("False True <class")


FORMULAS = ["=1+1", "+1-cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1"]
HARMLESS = ["-3.5", "+1e-3", "-.5", "a=b", "", "'quoted", "1-2"]


def formulas_written(cells, form, **options):
    out = io.BytesIO()
    write_rows([pa.table({"=name": cells, "number": [-3.5] * len(cells)})], out, form, **options)
    return out.getvalue().decode()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_formulas_are_escaped_where_that_is_asked_for(kind):
    cells = pa.array([*FORMULAS, *HARMLESS, None], pa.string()).cast(kind)
    names, *rows = csv.reader(io.StringIO(formulas_written(cells, "csv", escape_formulas=True), newline=""))
    assert names == ["'=name", "number"]
    assert [row[0] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS, ""]
    assert {row[1] for row in rows} == {"-3.5"}
    names, *rows = csv.reader(io.StringIO(formulas_written(cells, "csv"), newline=""))
    assert [row[0] for row in rows] == [*FORMULAS, *HARMLESS, ""]


def test_formulas_are_escaped_by_every_command_that_writes_rows(tmp_path, capsys):
    rows = [f"{-1.5 * i},=z{i % 2},=y{i % 2}" for i in range(30)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,z,y", *rows]))
    said(capsys, "fit", tmp_path / "rows.csv", "-t", "y", "-o", tmp_path / "m")
    for words in (
        ["predict", tmp_path / "m", tmp_path / "rows.csv"],
        ["impute", tmp_path / "m", tmp_path / "rows.csv"],
        ["sample", tmp_path / "m"],
    ):
        plain, escaped = (
            list(csv.reader(io.StringIO(said(capsys, *words, *more)))) for more in (["-o", "-"], ["--escape-formulas"])
        )
        assert any(cell.startswith("=") for row in plain for cell in row)
        assert not any(cell.startswith("=") for row in escaped for cell in row)
        assert all(row[0] == "x" or float(row[0]) <= 50 for row in escaped)
    assert run(["sample", f"{tmp_path}/m", "--escape-formulas", "-o", f"{tmp_path}/a.parquet"]) == 2
    assert "expected csv or tsv" in capsys.readouterr().err


@pytest.mark.skipif("jemalloc" not in pa.supported_memory_backends(), reason="Arrow has no jemalloc here")
@pytest.mark.parametrize("given", [{}, {"ARROW_DEFAULT_MEMORY_POOL": "system"}])
def test_arrow_uses_the_allocator_that_keeps_least_unless_told_otherwise(given):
    code = (
        f"from likely.cli import run; import pyarrow as pa; run(['inspect', {BIRDS!r}, '--json']); "
        "print(pa.default_memory_pool().backend_name)"
    )
    kept = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    told = subprocess.run([sys.executable, "-c", code], env={**kept, **given}, capture_output=True, text=True).stdout
    assert told.split()[-1] == given.get("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
