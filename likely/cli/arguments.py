"""Options and arguments that several commands have, help that shows arguments and examples, and completion."""

import csv
import os
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from inspect import signature
from typing import Any, NamedTuple

import click

from likely.cli.io import Output

FILE = click.Path(readable=False)
"""What a shell completes by the names of files; it is checked when it is opened."""
SHELLS = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ""}
"""Shells for which there is completion, and the file that each reads when it starts."""
COMPLETE = "_LIKELY_COMPLETE"
_FORMATS = "csv, tsv, jsonl, parquet or arrow"
Decorator = Callable[[Any], Any]


class Argument(click.Argument):
    """A parameter known by its position, with what it is."""

    def __init__(self, *words: Any, meaning: str, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.meaning = meaning


class Integer(click.IntRange):
    """An integer of some least value."""

    name = "integer"


class Command(click.Command):
    """A command whose help has its arguments, and examples."""

    def __init__(self, *words: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and the options."""
        arguments = [(str(each.metavar), each.meaning) for each in self.params if isinstance(each, Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on a line that can be copied."""
        with formatter.section("Examples"):
            formatter.write("".join(f"  {example}\n" for example in self.examples))


class Group(Command, click.Group):
    """All commands."""

    def command(self, *examples: str) -> Decorator:  # type: ignore[override]
        """Add a function as a command of its name, with examples of its use."""
        return super().command(cls=Command, examples=examples)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, in the order in which they are defined."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, str(command.help)) for name, command in self.commands.items()])


def together(*decorators: Decorator) -> Decorator:
    """Return one decorator that adds several parameters."""
    return lambda function: reduce(lambda made, decorator: decorator(made), reversed(decorators), function)


def combined(name: str, make: Callable[..., Any], *decorators: Decorator) -> Decorator:
    """Return a decorator that adds parameters of which a command gets only what is made of them, by this name."""

    def add(command: Callable[..., None]) -> Any:
        @wraps(command)
        def called(**values: Any) -> None:
            made = make(**{each: values.pop(each) for each in signature(make).parameters})
            command(**{name: made}, **values)

        return together(*decorators)(called)

    return add


def column_kinds(column: Sequence[str], ignore: Sequence[str], text: Sequence[str]) -> dict[str, str]:
    """Return what columns are by name, from NAME=KIND and from names."""
    kinds = dict.fromkeys(ignore, "ignore") | dict.fromkeys(text, "text")
    for each in column:
        name, equals, kind = each.rpartition("=")
        if not equals or not name or not kind:
            raise ValueError(f"expected --column NAME=KIND, such as zip=category, got {each!r}")
        kinds[name] = kind
    return kinds


def argument(name: str, metavar: str, meaning: str, **settings: Any) -> Decorator:
    """Return a decorator that adds files as arguments."""
    return click.argument(name, cls=Argument, metavar=metavar, meaning=meaning, type=FILE, **settings)


def option(*names: str, least: int | None = None, **settings: Any) -> Decorator:
    """Return a decorator that adds an option; ``least`` is that of a whole number."""
    if least is not None:
        settings["type"] = Integer(least)
    return click.option(*names, **settings)


def several(*names: str, **settings: Any) -> Decorator:
    """Return a decorator that adds an option that may be repeated."""
    return option(*names, multiple=True, **settings)


def flag(*names: str, **settings: Any) -> Decorator:
    """Return a decorator that adds an option that is yes or no."""
    return option(*names, is_flag=True, default=False, **settings)


def _format(name: str, of: str) -> Decorator:
    """Return a decorator that adds the one option of a format."""
    meaning = f"{_FORMATS}; by default what the name of {of} ends with, else csv."
    return option("--format", "-f", name, metavar="FORMAT", help=meaning)


def install_completion(group: click.Group, shell: str) -> str:
    """Let a shell complete commands, options and files, and return which file it reads that from."""
    script = os.path.expanduser(
        "~/.config/fish/completions/likely.fish" if shell == "fish" else f"~/.likely-complete.{shell}"
    )
    os.makedirs(os.path.dirname(script), exist_ok=True)
    with open(script, "w") as file:
        file.write(completion(group, shell))
    if SHELLS[shell]:
        with open(os.path.expanduser(f"~/{SHELLS[shell]}"), "a+") as start:
            start.seek(0)
            before, line = start.read(), f". {script}\n"
            if line not in before:
                start.write(line if not before or before.endswith("\n") else f"\n{line}")
    return script


def completion(group: click.Group, shell: str) -> str:
    """Return what a shell runs to complete commands, options and files."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    return found(group, {}, "likely", COMPLETE).source()


DATA = argument(
    "data",
    "DATA...",
    "CSV, TSV, JSON lines, Parquet or Arrow files, a folder, a name with wildcards, or - for standard input.",
    nargs=-1,
    required=True,
)
ROWS = argument("data", "DATA", "A file, a folder, a name with wildcards, or - for standard input.")
MODEL = argument("model", "MODEL", "A model file, written by likely fit.")
MODELS = argument("models", "MODEL...", "Model files, written by likely fit.", nargs=-1, required=True)
OUTPUT = option("--output", "-o", metavar="OUT", type=FILE, help="The file to write; by default standard output.")
MODEL_OUTPUT = option("--output", "-o", metavar="MODEL", type=FILE, required=True, help="The model file to write.")
COLUMNS = combined(
    "columns",
    column_kinds,
    several(
        "--column",
        "-c",
        metavar="NAME=KIND",
        help="What a column is: number, integer, boolean, category, date, text or ignore; or its family, such as "
        "log-normal. May be repeated.",
    ),
    several("--ignore", metavar="NAME", help="Leave a column out. May be repeated."),
    several("--text", metavar="NAME", help="A column of free text. May be repeated."),
)
MISSING = several("--missing", metavar="TEXT", help="Text that stands for a missing cell, as '?'. May be repeated.")
MORE_MISSING = several(
    "--missing",
    metavar="TEXT",
    help="Text that stands for a missing cell, beside what the model knows. May be repeated.",
)
INPUT_FORMAT = _format("form", "DATA")
ESCAPE_FORMULAS = flag(
    "--escape-formulas", help="Put ' before text in CSV and TSV that a spreadsheet would run, such as =1+1."
)
ANSWERED_ROWS = combined(
    "out",
    Output,
    OUTPUT,
    INPUT_FORMAT,
    option(
        "--to",
        metavar="FORMAT",
        help=f"{_FORMATS}, to write; by default what the name of OUT ends with, else --format.",
    ),
    MORE_MISSING,
)
"""Rows that are read and written again, with ``ESCAPE_FORMULAS`` in its place among other options."""
NEW_ROWS = combined(
    "out",
    Output,
    OUTPUT,
    _format("to", "OUT"),
    ESCAPE_FORMULAS,
)
GIVEN = several(
    "--given",
    "-g",
    metavar="NAME=VALUE",
    help="A cell that all rows have; of a model of a whole table also NAME=LOW..HIGH, NAME=ONE|OTHER or NAME=missing. "
    "May be repeated.",
)
DRAW_SEED = option("--seed", least=0, help="For the same draws again.")
JSON = flag("--json", "as_json", help="Print one JSON object, for programs.")


class New(NamedTuple):
    """What ``fit`` and ``evaluate`` are told of a model that is not yet fitted."""

    kind: str
    columns: dict[str, str]
    together: Sequence[str]
    missing: Sequence[str]
    calibrate: bool
    unlabelled: str
    seed: int
    members: str | None = None
    """the kind of members of a model of all columns"""

    @property
    def said(self) -> bool:
        """Whether anything was said of how to fit, beside text that stands for a missing cell."""
        return self != New("classifier", {}, (), self.missing, calibrate=True, unlabelled="auto", seed=0)

    def whole(self, joint: str | None = None, *, forest: bool = False) -> Any:
        """Return the model of all columns, without a target."""
        plain = self.kind == "classifier" and self.calibrate and self.unlabelled == "auto"
        if not plain or self.together or joint or forest:
            raise ValueError(
                "expected --target NAME with --model, --together, --no-calibrate, --unlabelled, --joint and --forest, "
                "which are of a classifier, got none"
            )
        from likely.estimators.model import Model

        kind: Any = self.members or "combined"
        return Model(kind, columns=self.columns or "auto", missing=tuple(self.missing), random_state=self.seed)

    def model(self, joint: str | None = None, *, forest: bool = False) -> Any:
        """Return the model of a target; ``joint``: what is to answer all but the class, if that was said."""
        from likely.estimators import Classifier, NaiveBayes

        if self.members is not None:
            raise ValueError(
                f"expected no --target with --kind, which is of a model of all columns, got --kind {self.members!r}"
            )
        try:
            weight = self.unlabelled if self.unlabelled == "auto" else float(self.unlabelled)
        except ValueError:
            raise ValueError(
                f"expected --unlabelled as a number of 0 or more, or auto, got {self.unlabelled!r}"
            ) from None
        names = [next(csv.reader([names])) for names in self.together]
        common: dict[str, Any] = {"missing": tuple(self.missing), "together": names, "unlabelled": weight}
        if self.kind == "naive-bayes":
            if forest:
                raise ValueError("expected --forest of a classifier, got --forest of naive Bayes: leave it out")
            if joint is not None:
                raise ValueError(f"expected --joint of a classifier, got --joint {joint} of naive Bayes: leave it out")
            return NaiveBayes(self.columns or "auto", **common)
        if joint is not None:
            common["joint"] = joint
        if forest and not self.calibrate:
            raise ValueError("expected --forest without --no-calibrate, got both: leave out one of the two")
        if joint in ("tree", "full") and (names or not self.calibrate):
            asked = "--together" if names else "--no-calibrate"
            raise ValueError(f"expected --joint naive with {asked}, got --joint {joint}: leave out one of the two")
        return Classifier(
            self.columns or "auto", calibrate=self.calibrate, random_state=self.seed, forest=forest, **common
        )


CLASSIFIER = combined(
    "new",
    New,
    option(
        "--model",
        "kind",
        type=click.Choice(["classifier", "naive-bayes"]),
        default="classifier",
        help="Calibrated probabilities, or plain naive Bayes.",
    ),
    option(
        "--kind",
        "members",
        type=click.Choice(["combined", "tree", "trees", "hidden trees", "scores", "tied scores"]),
        help="Of a model of all columns: all its members, which is the default, or one by itself.",
    ),
    COLUMNS,
    several(
        "--together",
        metavar="NAME,NAME",
        help="Columns of categories that depend on each other, quoted as in CSV. May be repeated.",
    ),
    MISSING,
    INPUT_FORMAT,
    option(
        "--calibrate/--no-calibrate",
        default=True,
        help="Calibrate the probabilities of the classifier on held-out rows.",
    ),
    option(
        "--unlabelled",
        metavar="WEIGHT",
        default="auto",
        help="How much a row without a label counts beside one with: a number, or auto.",
    ),
    option("--seed", least=0, default=0, help="By which rows are held out, or assigned to cross-validation folds."),
)
