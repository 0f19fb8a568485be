"""Whatever goes wrong on the command line is one line on standard error, and the exit code 2."""

import os
import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likely.cli import commands, run

ROWS = "x,z,y\n1,u,a\n2,v,b\n3,u,a\n4,v,b\n5,,a\n6,v,b\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("x,z,y\n")
    (tmp_path / "ragged.csv").write_text("x,y\n1,a\n1,2,b\n")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 8)
    (tmp_path / "latin.csv").write_bytes("x,y\n1,é\n".encode("latin-1"))
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 no more")
    (tmp_path / "rows.jsonl").write_text('{"x": 1}\n{"x": \n')
    (tmp_path / "rows.txt").write_text(ROWS)
    (tmp_path / "wrong.csv").write_text("x,z,y\nmany,u,a\n")
    (tmp_path / "others.csv").write_text("k,l\n1,2\n")
    (tmp_path / "no.likely").write_text("this is no model")
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "rows.csv", "-t", "y", "-o", "m.likely", "--no-calibrate"]) == 0
    assert run(["fit", "rows.csv", "-o", "whole.likely"]) == 0
    return tmp_path


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("fit", ["DATA"]),
        ("explain whole.likely rows.csv", ["--of NAME"]),
        ("explain whole.likely rows.csv --of y --label a", ["--label", "a whole table"]),
        ("explain m.likely rows.csv --of x", ["--of", "'y'"]),
        ("impute m.likely rows.csv --given x=1", ["--given", "'y'"]),
        ("impute whole.likely rows.csv --given nothing=1", ["nothing"]),
        ("predict whole.likely rows.csv --coverage .5", ["--coverage", "no --of"]),
        ("predict whole.likely rows.csv --of y --coverage .5", ["--coverage", "'y'"]),
        ("predict whole.likely rows.csv --of x --coverage .5 --no-probabilities", ["--no-probabilities"]),
        ("predict whole.likely rows.csv --of x --coverage 90", ["between 0 and 1", "90"]),
        ("predict m.likely rows.csv --coverage .5", ["a model of a whole table", "'y'"]),
        ("evaluate whole.likely", ["rows", "whole.likely DATA"]),
        ("evaluate whole.likely rows.csv --folds 3", ["another option", "fitted already"]),
        ("evaluate whole.likely rows.csv --kind tree", ["another option", "fitted already"]),
        ("evaluate m.likely rows.csv", ["a model of a whole table", "Classifier"]),
        ("evaluate rows.csv --model naive-bayes", ["--target NAME"]),
        ("fit rows.csv -t y -o o.likely --kind tree", ["--kind 'tree'"]),
        ("fit rows.csv -o o.likely --kind forest", ["--kind", "hidden trees"]),
        ("ask m.likely --of y", ["a model of a whole table", "Classifier"]),
        ("outliers m.likely rows.csv", ["a model of a whole table"]),
        ("ask whole.likely --of nothing", ["a column", "nothing"]),
        ("ask whole.likely --of y --given x=a..b", ["a number", "x="]),
        ("impute whole.likely rows.csv --draws 3", ["--how draw"]),
        ("predict m.likely rows.csv --of y", ["--of", "a model of a whole table"]),
        ("fit none.csv -t y -o o.likely", ["none.csv", "No such file"]),
        ("fit none*.csv -t y -o o.likely", ["none*.csv"]),
        ("fit inside -t y -o o.likely", ["inside"]),
        ("fit empty.csv -t y -o o.likely", ["empty"]),
        ("fit header.csv -t y -o o.likely", []),
        ("fit ragged.csv -t y -o o.likely", ["line 3"]),
        ("fit binary.csv -t y -o o.likely", ["UTF-8"]),
        ("fit latin.csv -t y -o o.likely", ["UTF-8"]),
        ("fit rows.parquet -t y -o o.likely", ["Parquet"]),
        ("fit rows.jsonl -t x -o o.likely", ["rows.jsonl"]),
        ("fit rows.txt -t y -o o.likely", ["--format"]),
        ("fit rows.csv -t yy -o o.likely", ["'yy'", "did you mean 'y'"]),
        ("fit rows.csv -t y -o nowhere/o.likely", ["nowhere"]),
        ("fit rows.csv -t y -o inside", ["inside"]),
        ("fit rows.csv -t y -o o.likely -c x", ["NAME=KIND"]),
        ("fit rows.csv -t y -o o.likely -c x=much", ["'much'"]),
        ("fit rows.csv -t y -o o.likely -c w=number", ["'w'", "--column"]),
        ("fit rows.csv -t y -o o.likely --ignore w", ["'w'"]),
        ("fit rows.csv -t y -o o.likely --ignore x --ignore z", ["columns"]),
        ("fit rows.csv -t y -o o.likely --model forest", ["forest"]),
        ("fit rows.csv -t y -o o.likely --seed -1", ["--seed"]),
        ("fit rows.csv - -t y -o o.likely", ["standard input"]),
        ("fit rows.csv -t y -o o.likely --format xls", ["xls"]),
        ("predict m.likely", ["DATA"]),
        ("predict no.likely rows.csv", ["no.likely"]),
        ("predict rows.csv rows.csv", ["rows.csv"]),
        ("predict none.likely rows.csv", ["none.likely"]),
        ("predict inside rows.csv", ["inside"]),
        ("predict m.likely none.csv", ["none.csv"]),
        ("predict m.likely wrong.csv", ["'x'", "'many'", "row 1"]),
        ("predict m.likely others.csv", ["'x'"]),
        ("predict m.likely rows.csv -o nowhere/out.csv", ["nowhere"]),
        ("predict m.likely rows.csv -o out.xls", ["out.xls"]),
        ("evaluate rows.csv -t y --folds 1", ["--folds"]),
        ("evaluate rows.csv -t y --folds 50", ["50"]),
        ("explain m.likely rows.csv --row 7", ["7", "6 rows"]),
        ("explain m.likely rows.csv --row 0", ["--row"]),
        ("explain m.likely rows.csv --label c", ["'c'"]),
        ("sample m.likely -g x", ["NAME=VALUE"]),
        ("sample m.likely -g w=1", ["'w'"]),
        ("sample m.likely -g x=many", ["'many'"]),
        ("sample m.likely -g y=c", ["'c'"]),
        ("sample m.likely -n many", ["--number"]),
        ("impute m.likely rows.csv --how mode", ["mode"]),
        ("inspect no.likely", ["no.likely"]),
        ("inspect empty.csv", ["empty"]),
        ("merge none.likely -o o.likely", ["none.likely"]),
        ("dance", ["dance"]),
    ],
)
def test_errors_are_one_line(folder, line, parts, capsys):
    assert run(line.split()) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert told.err.startswith("likely: ")
    assert not re.match(r"likely: \w+Error: ", told.err), told.err
    for part in parts:
        assert part in told.err
    assert not (folder / "o.likely").exists()


def test_models_that_do_not_fit_together(folder, capsys):
    (folder / "more.csv").write_text("x,w,y\n1,2,a\n2,3,b\n")
    assert run(["fit", "more.csv", "-t", "y", "-o", "more.likely", "--no-calibrate"]) == 0
    capsys.readouterr()
    assert run(["merge", "m.likely", "more.likely", "-o", "o.likely"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_notes_are_lines_and_each_is_told_once(folder, capsys):
    (folder / "less.csv").write_text("x,other\n1,9\n2,9\n")
    assert run(["predict", "m.likely", "less.csv"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("likely: note: ")
    assert "'z'" in told.err
    assert told.err.count("\n") == 1
    assert len(told.out.splitlines()) == 3


def test_one_class_is_fitted(folder, capsys):
    (folder / "one.csv").write_text("x,y\n1,a\n2,a\n3,a\n")
    assert run(["fit", "one.csv", "-t", "y", "-o", "one.likely"]) == 0
    assert "a 100.0 %" in capsys.readouterr().out
    assert run(["predict", "one.likely", "one.csv"]) == 0


def test_a_failed_command_leaves_the_file_that_was_there(folder):
    (folder / "out.csv").write_text("as before")
    assert run(["predict", "m.likely", "wrong.csv", "-o", "out.csv"]) == 2
    assert (folder / "out.csv").read_text() == "as before"
    assert not list(folder.glob(".*.tmp"))


def test_interruption(folder, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "opened_to_answer", interrupted)
    assert run(["predict", "m.likely", "rows.csv"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name != "posix", reason="needs a pipe that breaks")
def test_a_reader_that_leaves_ends_it_quietly(folder):
    command = [sys.executable, "-m", "likely", "sample", "m.likely", "-n", "300000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"x,z,y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_the_exit_code_is_that_of_the_process(folder):
    told = subprocess.run([sys.executable, "-m", "likely", "inspect", "none.csv"], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "likely: No such file or directory: 'none.csv'\n"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(alphabet='ab,;"\n\t 01.é-', max_size=200).map(str.encode)))
def test_no_file_makes_a_traceback(folder, capsys, content):
    (folder / "any.csv").write_bytes(content)
    for line in ("fit any.csv -t y -o any.likely", "predict m.likely any.csv", "inspect any.csv"):
        code = run(line.split())
        told = capsys.readouterr()
        assert code in (0, 2)
        assert not re.search(r"likely: \w+Error: ", told.err), told.err
