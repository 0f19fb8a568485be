"""What people stumbled on at the command line: each has one clear answer now."""

import pytest

from likely.cli import run


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
