"""likely cluster, and the questions that its models answer."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from likely import load


@pytest.fixture
def points(tmp_path):
    """Return a table of three groups, with holes."""
    generator = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 60)
    frame = pd.DataFrame(generator.normal(size=(180, 2)) + 8.0 * group[:, None], columns=["x", "y"])
    frame["kind"] = np.array(["a", "b", "c"])[group]
    frame.loc[::17, "x"] = None
    frame.loc[::23, "kind"] = None
    path = tmp_path / "points.csv"
    frame.to_csv(path, index=False)
    return path, group


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "likely", *map(str, words)], capture_output=True, text=True, check=False
    )


def same_groups(found, group):
    return len(set(zip(found, group, strict=True))) == len(set(group)) == len(set(found))


@pytest.mark.parametrize("k", ["3", "auto"])
def test_groups_are_found_and_predicted(points, tmp_path, k):
    path, group = points
    model = tmp_path / "groups.likely"
    result = run("cluster", path, "-k", k, "-o", model, "--most", 4)
    assert result.returncode == 0, result.stderr
    assert "Mixture of 3 groups: 180 rows" in result.stdout
    assert len(load(model).classes_) == 3
    out = tmp_path / "found.csv"
    assert run("predict", model, path, "-o", out).returncode == 0
    found = pd.read_csv(out)
    assert list(found.columns) == ["x", "y", "kind", "group", "p(0)", "p(1)", "p(2)"]
    assert same_groups(found["group"], group)


def test_all_that_was_tried_is_in_the_json(points, tmp_path):
    result = run("cluster", points[0], "-k", "auto", "--most", 3, "-o", tmp_path / "g.likely", "--json")
    found = json.loads(result.stdout)
    assert len(found["tried"]) == 9
    assert found["tried"][0]["bic"] == min(each["bic"] for each in found["tried"])
    # The candidates are of greatest likelihood, next to it, and the model has a prior.
    assert 0 < found["tried"][0]["log_likelihood"] - found["log_likelihood"] < 1
    assert {each["n_components"] for each in found["tried"]} == {1, 2, 3}


def test_one_structure_may_be_asked_for(points, tmp_path):
    model = tmp_path / "g.likely"
    result = run("cluster", points[0], "-k", 2, "-o", model, "--covariance", "diagonal", "--tied", "--starts", 2)
    assert result.returncode == 0, result.stderr
    assert "chosen" not in result.stdout
    assert (load(model).covariance, load(model).tied, load(model).n_starts) == ("diagonal", True, 2)


@pytest.mark.parametrize("question", [("explain", "--row", "1"), ("impute",), ("inspect",)])
def test_its_models_answer_what_others_do(points, tmp_path, question):
    model = tmp_path / "g.likely"
    run("cluster", points[0], "-k", 3, "-o", model)
    command, *options = question
    result = run(command, model, *([] if command == "inspect" else [points[0]]), *options)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("k", ["0", "-1", "two", "1.5"])
def test_a_number_of_groups_that_is_none_is_refused(points, tmp_path, k):
    result = run("cluster", points[0], f"-k={k}", "-o", tmp_path / "g.likely")
    assert result.returncode != 0
    assert "expected -k as a whole number of groups of 1 or more, or auto" in result.stderr
    assert not (tmp_path / "g.likely").exists()


def test_rows_without_a_label_on_the_command_line(tmp_path):
    generator = np.random.default_rng(1)
    y = np.repeat([0, 1], 100)
    frame = pd.DataFrame({"x": generator.normal(size=200) + 5 * y, "y": np.array(["no", "yes"])[y].astype(object)})
    frame.loc[(np.arange(200) % 100) > 4, "y"] = None
    frame.to_csv(tmp_path / "some.csv", index=False)
    model = tmp_path / "m.likely"
    result = run("fit", tmp_path / "some.csv", "-t", "y", "-o", model, "--model", "naive-bayes", "--unlabelled", "1")
    assert result.returncode == 0, result.stderr
    assert load(model).class_count_.sum() == pytest.approx(200)
    bad = run("fit", tmp_path / "some.csv", "-t", "y", "-o", model, "--unlabelled", "some")
    assert "expected --unlabelled as a number of 0 or more, or auto, got 'some'" in bad.stderr


def test_noise_is_one_group(tmp_path):
    np.savetxt(tmp_path / "noise.csv", np.random.default_rng(0).normal(size=(30, 4)), delimiter=",", header="a,b,c,d")
    result = run("cluster", tmp_path / "noise.csv", "-k", "auto", "-o", tmp_path / "g.likely", "--most", 8)
    assert "Mixture of 1 group:" in result.stdout
