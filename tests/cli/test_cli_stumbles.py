"""What people stumbled on at the command line: each has one clear answer now."""

import gzip
import io
import json
import pickle
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likely import load
from likely.cli import run
from likely.data.rows import open_rows
from likely.messages import said


@pytest.fixture
def folder(tmp_path, monkeypatch):
    lines = [f"{i},{'u' if i % 3 else 'v'},{'a' if i < 20 else 'b'}" for i in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,z,y", *lines, ""]))
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "rows.csv", "-t", "y", "-o", "m.likely", "--model", "naive-bayes"]) == 0
    return tmp_path


@pytest.fixture
def say(capsys):
    """Run a line, and return what it wrote to standard output and to standard error."""

    def said(line, code=0):
        capsys.readouterr()
        assert run(line.split()) == code, capsys.readouterr().err
        told = capsys.readouterr()
        return told.out, told.err

    return said


def test_rows_are_counted_from_one_in_all_of_the_input(folder, say):
    lines = ["x,z,y", *(f"{i},{'u' * 500},a" for i in range(20_000)), "many,u,a"]
    (folder / "long.csv").write_text("\n".join(lines))
    assert "row 20001:" in say("predict m.likely long.csv -o out.csv", 2)[1]
    assert "row 20001:" in say("explain m.likely long.csv --row 3 --row 20001", 2)[1]
    dropped = ["x,y", *(f"{i % 7}," for i in range(5)), *(f"{i % 7},{'ab'[i % 2]}" for i in range(30)), "-1,a"]
    (folder / "dropped.csv").write_text("\n".join(dropped))
    assert "-1 in row 36" in say("fit dropped.csv -t y -o o.likely -c x=poisson", 2)[1].splitlines()[-1]


def test_identifiers_are_told_of(folder, say):
    lines = [f"u{i},{i % 5},{'ab'[i % 2]}" for i in range(40)]
    (folder / "ids.csv").write_text("\n".join(["user id,x,y", *lines]))
    for line in ("fit ids.csv -t y -o o.likely --no-calibrate", "evaluate ids.csv -t y --model naive-bayes --folds 2"):
        assert "--ignore 'user id'" in say(line)[1]
    assert run(["fit", "ids.csv", "-t", "y", "-o", "o.likely", "--no-calibrate", "--ignore", "user id"]) == 0


def test_dates_and_numbers_of_other_countries_are_told_of(folder, say):
    lines = [f'{1 + i}.12.2024,"{i},5",12/31/{2000 + i},{"ab"[i % 2]}' for i in range(30)]
    (folder / "europe.csv").write_text("\n".join(["when,how much,then,y", *lines]))
    told = say("fit europe.csv -t y -o o.likely --no-calibrate")[1].splitlines()
    assert len(told) == 2
    assert "'when', 'then'" in told[0]
    assert "2024-12-31" in told[0]
    assert "'how much'" in told[1]
    assert say("fit europe.csv -t y -o o.likely --no-calibrate -c when=category -c then=category --ignore how_much", 2)


def test_a_target_of_too_many_labels_is_told_of(folder, say):
    lines = [f"{i % 7},c{i // 2}" for i in range(300)]
    (folder / "many.csv").write_text("\n".join(["x,customer", *lines]))
    told = say("fit many.csv -t customer -o o.likely --no-calibrate")[1]
    assert "'customer' has 150 labels in 300 rows" in told


def test_options_of_unknown_columns_are_named_as_they_were_given(folder, say):
    told = say("fit rows.csv -t y -o o.likely --ignore zz", 2)[1]
    assert told == "likely: expected a column of the table, got 'zz' in --ignore 'zz': did you mean 'z'?\n"
    told = say("fit rows.csv -t y -o o.likely -c zz=number", 2)[1]
    assert told == "likely: expected a column of the table, got 'zz' in --column 'zz=number': did you mean 'z'?\n"


def test_words_for_missing_cells_may_be_named_when_rows_are_asked_about(folder, say):
    (folder / "holes.csv").write_text("x,z\n?,u\n3,v\n")
    for line in ("predict m.likely holes.csv", "impute m.likely holes.csv", "explain m.likely holes.csv"):
        assert "say --missing TEXT" in say(line, 2)[1]
        assert say(f"{line} --missing ?")[1] == ""
    assert say("predict m.likely holes.csv --missing ? --no-probabilities")[0].splitlines()[1].startswith("?,u,")
    assert "?" not in say("impute m.likely holes.csv --missing ?")[0]


def test_a_model_is_not_written_to_standard_output(folder, say):
    for line in ("fit rows.csv -t y -o -", "merge m.likely -o -"):
        assert "file" in say(line, 2)[1]
        assert not (folder / "-").exists()


def test_compressed_files_are_written(folder, say):
    expected = say("predict m.likely rows.csv")[0]
    say("predict m.likely rows.csv -o out.csv.gz")
    assert gzip.decompress((folder / "out.csv.gz").read_bytes()).decode() == expected
    for name in ("out.tsv.zst", "out.jsonl.gz", "out.jsonl.zst"):
        say(f"predict m.likely rows.csv -o {name}")
        assert (folder / name).read_bytes()[:2] in (b"\x1f\x8b", b"\x28\xb5")
        assert sum(batch.num_rows for batch in open_rows(name).batches()) == 40
    say("sample m.likely -n 3 -o drawn.txt.gz --format csv")
    assert len(gzip.decompress((folder / "drawn.txt.gz").read_bytes()).splitlines()) == 4
    assert "parquet.gz" in say("predict m.likely rows.csv -o out.parquet.gz", 2)[1]


def test_a_format_that_is_said_wins_over_the_name(folder, say, monkeypatch):
    expected = say("predict m.likely rows.csv --only")[0]
    pq.write_table(pa.Table.from_batches(open_rows("rows.csv").batches()), "table.csv")
    (folder / "rows.txt.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    assert say("predict m.likely table.csv --format parquet --to csv --only")[0] == expected
    assert say("predict m.likely rows.txt.gz --format csv --only")[0] == expected
    for line in ("predict m.likely rows.csv", "impute m.likely rows.csv"):
        say(f"{line} -o out.csv --to parquet")
        assert pq.read_table("out.csv").num_rows == 40
        assert json.loads(say(f"{line} --to jsonl")[0].splitlines()[0])["x"] == 0
    say("sample m.likely -n 5 -o drawn.csv --format parquet")
    assert pq.read_table("drawn.csv").num_rows == 5
    assert json.loads(say("inspect table.csv --format parquet --json")[0])["columns"][0]["name"] == "x"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "rows.txt.gz").read_bytes())))
    assert say("predict m.likely - --format csv.gz --only")[0] == expected


def test_inspect_knows_a_model_by_its_content(folder, say):
    (folder / "model.txt").write_bytes((folder / "m.likely").read_bytes())
    assert "NaiveBayes of y" in say("inspect model.txt")[0]
    (folder / "rows.txt").write_text("x,y\n1,2\n")
    told = say("inspect rows.txt", 2)[1]
    assert "model file, or a table" in told
    assert "--format" in told
    assert "integer" in say("inspect rows.txt --format csv")[0]


def test_names_that_are_nearly_right(folder, say):
    assert "did you mean 'z'" in say("sample m.likely --given zz=u", 2)[1]
    (folder / "named.csv").write_text("x,income\n1,low\n2,high\n3,low\n")
    say("fit named.csv -t income -o n.likely --model naive-bayes")
    assert "did you mean 'income'" in say("sample n.likely --given incom=low", 2)[1]


def test_the_help_that_is_named_is_that_of_the_command(folder, say):
    told = say("fit rows.csv --nope", 2)[1]
    assert told.count("Try 'likely fit --help'") == told.count("--help") == 1
    assert "Try 'likely --help'" in say("dance", 2)[1]


def test_a_model_merged_with_itself_is_told_of(folder, say):
    out, told = say("merge m.likely ./m.likely -o o.likely")
    assert "80 rows" in out
    assert "more than once" in told


def test_json_lines_keep_the_order_of_columns(folder, say):
    rows = [{"x": i, "when": f"2024-01-{1 + i:02}", "y": "ab"[i % 2], "then": "2024-02-01"} for i in range(9)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert open_rows("rows.jsonl").names == ("x", "when", "y", "then")
    assert list(json.loads(say("predict m.likely rows.jsonl --to jsonl")[0].splitlines()[0]))[:4] == [*rows[0]]


def test_rows_are_counted_in_whole_numbers(folder, say):
    found = json.loads(say("inspect m.likely --json")[0])
    assert [type(count) for count in (found["rows"], found["classes"][0]["rows"])] == [int, int]
    say("fit rows.csv -t y -o c.likely")
    assert type(json.loads(say("inspect c.likely --json")[0])["calibration"]["rows"]) is int


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_true_and_false_are_yes_and_no(folder, say, words):
    rows = [f"{words[i % 2]},{i},{words[i % 3 == 0]}" for i in range(30)]
    (folder / "flags.csv").write_text("\n".join(["flag,x,y", *rows, ",3,"]))
    found = json.loads(say("fit flags.csv -t y -o f.likely --model naive-bayes --json")[0])
    assert found["columns"][0] == {"name": "flag", "kind": "boolean", "family": "bernoulli"}
    assert [each["label"] for each in found["classes"]] == [False, True]
    answers = say("predict f.likely flags.csv")[0].splitlines()
    assert answers[0] == "flag,x,y,prediction,p(false),p(true)"
    assert answers[1].startswith(f"{words[0]},0,{words[1]},")
    assert len(say(f"sample f.likely -n 3 --given flag={words[0]} --given y={words[1]}")[0].splitlines()) == 4
    say("impute f.likely flags.csv -o whole.csv")
    assert open_rows("whole.csv").schema.types[0] == pa.bool_()


def test_dates_are_written_as_dates(folder, say):
    lines = [f"{2020 + i % 3}-{1 + i % 12:02}-{1 + i % 28:02},{i % 9},{'ab'[i % 2]}" for i in range(60)]
    (folder / "dates.csv").write_text("\n".join(["when,x,y", *lines, ",3,a"]))
    say("fit dates.csv -t y -o d.likely --model naive-bayes")
    drawn = say("sample d.likely -n 20 --seed 1")[0].splitlines()
    assert drawn[0] == "when,x,y"
    assert all(len(line.partition(",")[0]) == len("2024-12-31") for line in drawn[1:])
    assert say("sample d.likely -n 1 --given when=2021-03-04")[0].splitlines()[1].startswith("2021-03-04,")
    for to in ("csv", "jsonl"):
        whole = say(f"impute d.likely dates.csv --to {to}")[0].splitlines()
        assert "202" in whole[-1]


def test_advice_is_phrased_for_who_reads_it_also_after_a_journey(folder, say):
    (folder / "wrong.csv").write_text("x,z\nmany,u\n")
    advice = "say that such text is missing, or fit with columns={'x': \"category\"}"
    with pytest.raises(ValueError, match=re.escape(advice)) as caught:
        load("m.likely").predict("wrong.csv")
    assert "say --missing TEXT, or fit with --column 'x=category'" in say("predict m.likely wrong.csv", 2)[1]
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert said(error, lambda setting: setting.parameter).endswith("correct the cell, missing, or fit with columns")
    assert said(ValueError(), str) == ""
    assert said(ValueError("plain"), str) == "plain"
