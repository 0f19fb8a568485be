"""Texts on the command line: columns of text, folders of texts, and lines."""

import csv
import io
import json
import subprocess
import sys

import pytest

from likely import TextClassifier

SPAM = ["win a free prize now", "claim your free prize today", "free cash prize, call now", "you win cash, call today"]
HAM = ["see you at lunch today", "lunch at noon then?", "are you at home now", "call me when you are home"]


def likely(*words, given=""):
    return subprocess.run(
        [sys.executable, "-m", "likely", *map(str, words)], input=given, capture_output=True, text=True, check=False
    )


@pytest.fixture
def mail(tmp_path):
    for label, texts in (("spam", SPAM), ("ham", HAM)):
        folder = tmp_path / "mail" / label
        folder.mkdir(parents=True)
        for i, text in enumerate(texts * 3):
            (folder / f"{i}.txt").write_text(f"{text} {i}\n")
    (tmp_path / "mail" / "spam" / "odd.txt").write_bytes(b"free prize \xff now")
    (tmp_path / "mail" / ".hidden").mkdir()
    return tmp_path / "mail"


def test_folders_and_lines(mail, tmp_path):
    model = tmp_path / "mail.likely"
    assert likely("fit", mail, "--text-dirs", "-o", model).returncode == 0
    found = likely("predict", model, "-", given="a free prize\nlunch at home\n")
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    assert [row["text"] for row in rows] == ["a free prize", "lunch at home"]
    assert [row["prediction"] for row in rows] == ["spam", "ham"]
    lines = tmp_path / "new.txt"
    lines.write_text("a free prize\r\n\nlunch")
    found = likely("predict", model, lines, "--to", "jsonl", "--only")
    assert next(json.loads(line)["prediction"] for line in found.stdout.splitlines()) == "spam"
    assert len(found.stdout.splitlines()) == 3
    described = json.loads(likely("inspect", model, "--json").stdout)
    assert [(each["name"], each["kind"]) for each in described["columns"]] == [("text", "text")]
    for words, given in ((["-"], "a free prize\n"), ([lines], ""), (["-", "-f", "csv"], "text\na free prize\n")):
        assert "a free prize" in likely("explain", model, *words, given=given).stdout


def test_a_column_of_text(tmp_path):
    table = tmp_path / "reviews.csv"
    rows = [(text, label) for label, texts in (("spam", SPAM), ("ham", HAM)) for text in texts * 3]
    table.write_text("note,label\n" + "".join(f'"{text}",{label}\n' for text, label in rows))
    model = tmp_path / "reviews.likely"
    found = likely("fit", table, "--text", "note", "--target", "label", "-o", model)
    assert "1 bag of words" in found.stdout
    assert "spam" in likely("predict", model, "-", "--format", "txt", given="free cash\n").stdout


def test_a_model_of_texts_answers_all_questions(tmp_path):
    model, table = tmp_path / "texts.likely", tmp_path / "new.csv"
    TextClassifier(calibrate=False).fit(SPAM + HAM, ["spam"] * 4 + ["ham"] * 4).save(model)
    table.write_text("text\na free free prize\n")
    told = likely("explain", model, table)
    assert told.returncode == 0
    assert "before any word" in told.stdout
    assert "prize" in told.stdout
    cells = json.loads(likely("explain", model, table, "--json").stdout)["rows"][0]["cells"]
    assert (cells[0]["word"], cells[0]["count"]) == ("free", 2)
    drawn = list(csv.DictReader(io.StringIO(likely("sample", model, "-n", 3).stdout)))
    assert len(drawn) == 3
    assert all(row["label"] in ("spam", "ham") and row["text"] for row in drawn)
    described = likely("inspect", model).stdout
    assert "1 column\n" in described
    assert "number" not in described


def test_a_model_of_texts_from_python(tmp_path):
    model = tmp_path / "texts.likely"
    TextClassifier(calibrate=False, ngrams=1).fit(SPAM + HAM, ["spam"] * 4 + ["ham"] * 4).save(model)
    assert ",spam," in likely("predict", model, "-", given="free prize\n").stdout
    assert "bag of words" in likely("inspect", model).stdout


def test_what_is_refused(mail, tmp_path):
    model = tmp_path / "x.likely"
    cases = [
        (("fit", mail / "spam", "--text-dirs", "-o", model), "expected a folder for each label"),
        (("fit", tmp_path / "no.csv", "-o", model), "No such file"),
        (("fit", tmp_path / "nowhere", "--text-dirs", "-o", model), "nowhere"),
    ]
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("x,y\n1.5,a\n2.5,b\n3.5,a\n4.5,b\n")
    assert likely("fit", numbers, "--target", "y", "-o", model).returncode == 0
    cases.append((("predict", model, numbers, "--format", "txt"), "expected a model of one column of text"))
    for words, message in cases:
        found = likely(*words)
        assert (found.returncode, found.stdout) == (2, "")
        assert message in found.stderr
        assert "Traceback" not in found.stderr


def test_columns_together_by_name(tmp_path):
    table = tmp_path / "pairs.csv"
    rows = [f"{a},{b},{'even' if a == b else 'odd'}" for a in "pq" for b in "pq"] * 8
    table.write_text('"a,1",b,y\n' + "\n".join(rows))
    found = likely("fit", table, "-t", "y", "--together", '"a,1",b', "-o", tmp_path / "m.likely")
    assert "2 categories together" in found.stdout
    assert "distinct and missing of 32 rows" in likely("inspect", table).stdout


def test_a_model_without_a_target_is_merged(tmp_path):
    model = tmp_path / "texts.likely"
    TextClassifier(calibrate=False).fit(SPAM + HAM, ["spam"] * len(SPAM) + ["ham"] * len(HAM)).save(model)
    told = likely("merge", model, model, "-o", tmp_path / "both.likely").stdout
    assert told.startswith(f"TextClassifier: {2 * len(SPAM + HAM)} rows")
