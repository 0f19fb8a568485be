"""Text of the data never steers the terminal, and is never taken for markup, wherever it is shown."""

import io
import json
import random
import sys
import unicodedata
import warnings

import pyarrow as pa
import pytest
from rich.console import Console

import likely
from likely.cli import run
from likely.cli.commands import application
from likely.cli.render import confusion_table
from likely.data.rows import open_rows
from likely.data.schema import Schema
from likely.messages import printable, warn

# Colours, a title of the window, commands of C1, text from right to left, an end of a line; and markup of rich.
MARKUP = ["[red]x[/red]", "[/nothing]", "[link=x]y"]
HOSTILE = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2Jgone", "\u202etfel", "a\u2028b", *MARKUP]
TARGET, NUMBER, CATEGORY, NAME = "label\x07[red]", "number\x1b[2J", "[bold]cat\x9b", "\u202ename"


def raw(text):
    """Return the characters that should not have reached a person."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c != "\n"}


def rows(count=60):
    draw = random.Random(0)
    for i in range(count):
        yield {
            NUMBER: draw.gauss(i % 2, 1) if i else None,
            CATEGORY: draw.choice(HOSTILE),
            NAME: "[/x]\x1b[1m"[: 3 + 6 * (i % 2)],
            TARGET: HOSTILE[i % len(HOSTILE)],
        }


TABLE = pa.Table.from_pylist(list(rows()))
TEXTS = [f"{text} and more words {i % 7}" for i, text in enumerate(HOSTILE * 6)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("rows.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows())
    with open("texts.jsonl", "w") as file:
        file.writelines(json.dumps({"text": t, "y": HOSTILE[i % 8]}) + "\n" for i, t in enumerate(TEXTS))
    return tmp_path


FITS = [
    ["fit", "rows.jsonl", "--target", TARGET, "-o", "m\x1b.likely"],
    ["fit", "rows.jsonl", "--target", TARGET, "-o", "m.likely", "--model", "naive-bayes"],
    ["fit", "rows.jsonl", "--target", TARGET, "-o", "n.likely", "--model", "naive-bayes"],
    ["fit", "texts.jsonl", "--target", "y", "--text", "text", "-o", "t.likely"],
]
EVALUATED = ["evaluate", "rows.jsonl", "--target", TARGET, "--folds", "2"]
EXPLAINED = ["explain", "m.likely", "rows.jsonl", "--row", "1", "--row", "2", "--row", "6", "--row", "7"]
COMMAND_LINES = [
    *FITS,
    ["predict", "m.likely", "rows.jsonl"],
    ["predict", "m.likely", "rows.jsonl", "--to", "csv"],
    EVALUATED,
    ["cluster", "rows.jsonl", "-k", "2", "-o", "g.likely", "--ignore", NAME],
    EXPLAINED,
    ["explain", "t.likely", "texts.jsonl", "--row", "3"],
    ["impute", "m.likely", "rows.jsonl"],
    ["sample", "m.likely", "-n", "20"],
    ["inspect", "rows.jsonl"],
    ["inspect", "m.likely"],
    ["inspect", "g.likely"],
    ["fit", "rows.jsonl", "-o", "w.likely"],
    ["ask", "w.likely", "--of", CATEGORY],
    ["outliers", "w.likely", "rows.jsonl", "-n", "3"],
    ["dependence", "w.likely"],
    ["explain", "w.likely", "rows.jsonl", "--of", CATEGORY],
    ["inspect", "w.likely"],
    ["merge", "m.likely", "n.likely", "-o", "o.likely"],
    ["demo"],
]
MISTAKES = [
    ["fit", "rows.jsonl", "--target", "\x1b[31m", "-o", "x.likely"],
    ["fit", "no\x9b.csv", "--target", "y", "-o", "x.likely"],
    ["fit", "rows.jsonl", "--target", TARGET, "-o", "\x1bnowhere/x.likely"],
    ["fit", "rows.jsonl", "--target", TARGET, "-o", "x.likely", "--column", f"{CATEGORY}=\x1b"],
    ["fit", "rows.jsonl", "--target", TARGET, "-o", "x.likely", "--\x1b[31m"],
    ["sample", "m.likely", "--given", "\x1b=3"],
    ["explain", "m.likely", "rows.jsonl", "--label", "\x1b"],
]


class Terminal(io.StringIO):
    """What a person sees."""

    def isatty(self):
        return True


@pytest.fixture
def say(folder, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "400")

    def said(words):
        out, err = Terminal(), io.StringIO()
        with monkeypatch.context() as streams:
            streams.setattr(sys, "stdout", out)
            streams.setattr(sys, "stderr", err)
            code = run(words)
        return code, out.getvalue(), err.getvalue()

    return said


def test_no_command_lets_text_steer_the_terminal(say):
    assert {words[0] for words in COMMAND_LINES} == {*application.commands}
    for words in COMMAND_LINES:
        code, out, err = say(words)
        assert (code, raw(out), raw(err)) == (0, set(), set()), (words, out, err)
        assert words == ["demo"] or "\\x1b" in out or "\\x9b" in out or "\\u202e" in out, (words, out)
    for words in MISTAKES:
        code, out, err = say(words)
        assert (code, raw(out), raw(err)) == (2, set(), set()), (words, out, err)
        assert err.count("\n") == 1


def test_markup_in_the_data_is_shown(say):
    for words in FITS:
        assert all(text in say(words)[1] for text in MARKUP)
    assert all(text in say(["inspect", "m.likely"])[1] for text in [*MARKUP, "[bold]cat"])
    wide = Console(file=io.StringIO(), width=400)
    wide.print(confusion_table(likely.NaiveBayes().evaluate(TABLE, TARGET, folds=2)))
    assert all(wide.file.getvalue().count(text) == 2 for text in MARKUP)
    out = say(["explain", "m.likely", "rows.jsonl", "--row", "6", "--label", MARKUP[0], "--against", MARKUP[1]])[1]
    assert f"why {MARKUP[0]} and not {MARKUP[1]}?" in out
    assert "[bold]cat" in out


@pytest.mark.parametrize("words", [FITS[1], EVALUATED, EXPLAINED, ["inspect", "rows.jsonl"], ["inspect", "m.likely"]])
def test_json_is_the_same_to_a_program(say, words):
    say(FITS[1])
    code, out, _ = say([*words, "--json"])
    assert (code, raw(out)) == (0, set())
    assert raw(json.dumps(json.loads(out), ensure_ascii=False))


def test_rows_to_a_pipe_are_as_they_are(folder, capsysbinary):
    assert run(FITS[1]) == 0
    capsysbinary.readouterr()
    assert run(["predict", "m.likely", "rows.jsonl", "--to", "csv"]) == 0
    assert all(text.encode() in capsysbinary.readouterr().out for text in ["\x9b2Jgone"])


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv.gz"])
def test_binary_rows_are_not_shown(say, form):
    say(FITS[1])
    code, out, err = say(["sample", "m.likely", "--format", form])
    assert (code, out) == (2, "")
    assert "got a terminal: say -o OUT" in err


def test_what_is_printed_in_python():
    model = likely.NaiveBayes().fit(TABLE, TARGET)
    classifier = likely.Classifier().fit(TABLE, TARGET)
    worded = likely.TextClassifier().fit(TEXTS, HOSTILE * 6)
    frame = TABLE.drop_columns([TARGET])
    shown = [
        model,
        classifier,
        worded,
        likely.Mixture(2).fit(frame),
        Schema.infer(open_rows(TABLE)),
        model.explain(frame),
        worded.explain(TEXTS),
        classifier.evaluate(TABLE, TARGET, folds=2),
        classifier.schema_,
    ]
    for each in shown:
        assert raw(str(each)) == set(), type(each)
        assert raw(repr(each)) == set(), type(each)
    assert "\\x9b2Jgone" in str(model)


def test_warnings_and_errors():
    with pytest.warns(UserWarning, match=r"^a\\x1b\[31m b$"):
        warn("a\x1b[31m b")
    model = likely.NaiveBayes().fit(TABLE, TARGET)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.predict(TABLE.drop_columns([NAME]))
    assert told
    assert not any(raw(str(each.message)) for each in told)
    asked = [
        lambda: model.predict(pa.table({NUMBER: ["\x9bx"]})),
        lambda: model.sample(1, given={"\x1b": 1}),
        lambda: model.explain(TABLE, "\x1b"),
        lambda: likely.NaiveBayes().fit(TABLE, "\x1b"),
        lambda: likely.NaiveBayes(columns={"\x1b": "number"}).fit(TABLE, TARGET),
        lambda: open_rows("no\x9bthing.csv"),
        lambda: open_rows(io.BytesIO(b"a,\x1b\n1,2\n1,2,\x1b[3\n"), format="csv").schema,
        lambda: open_rows({"\x1b": [1], "b": [1, 2]}),
        lambda: likely.load("no\x9bthing"),
    ]
    for ask in asked:
        with pytest.raises((ValueError, TypeError, OSError)) as caught:
            ask()
        assert raw(str(caught.value)) == set()


def test_printable():
    harmless = "café 猫\u3000🐈 \\ \u00a0"
    assert printable(harmless) == harmless
    assert printable("".join(map(chr, range(32)))).isprintable()
    assert printable("\x7f\x85\x9b\ud800\u2066\ufeff") == r"\x7f\x85\x9b\ud800\u2066\ufeff"
    text = '"\x9b\U000e0001\ud800"'
    assert json.loads(printable(text, lambda character: json.dumps(character)[1:-1])) == text[1:-1]
