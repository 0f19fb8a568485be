"""Options and arguments that several commands have. They are data, read in ``reading`` and shown by ``full``."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple


class Argument(NamedTuple):
    """A parameter known by its place."""

    metavar: str
    help: str


class Option(NamedTuple):
    """A parameter known by its flags, separated by spaces; one that is yes or no may have "--this/--not-this"."""

    flags: str
    help: str
    metavar: str | None = None
    least: int | None = None


class Kind(StrEnum):
    """Which model to fit."""

    CLASSIFIER = "classifier"
    NAIVE_BAYES = "naive-bayes"


class Covariance(StrEnum):
    """How columns of numbers hang together in a group."""

    AUTO = "auto"
    FULL = "full"
    DIAGONAL = "diagonal"
    SPHERICAL = "spherical"


class How(StrEnum):
    """What to fill a hole with."""

    MEAN = "mean"
    DRAW = "draw"


_FORMATS = "csv, tsv, jsonl, parquet or arrow"
_OUT = "The file to write; by default standard output."

Data = Annotated[
    Sequence[str],
    Argument(
        "DATA...",
        "CSV, TSV, JSON lines, Parquet or Arrow files, a folder, a name with wildcards, or - for standard input.",
    ),
]
Rows = Annotated[str, Argument("DATA", "A file, a folder, a name with wildcards, or - for standard input.")]
Model = Annotated[str, Argument("MODEL", "A model file, written by likely fit.")]
Models = Annotated[Sequence[str], Argument("MODEL...", "Model files, written by likely fit.")]
Target = Annotated[str, Option("--target -t", "The column that holds the label.", "NAME")]
TargetUnlessFolders = Annotated[str | None, Option("--target -t", "The column that holds the label.", "NAME")]
ModelKind = Annotated[Kind, Option("--model", "Calibrated probabilities, or plain naive Bayes.")]
Columns = Annotated[
    Sequence[str],
    Option(
        "--column -c",
        "What a column is: number, integer, boolean, category, date, text or ignore; or its family, such as "
        "log-normal. May be repeated.",
        "NAME=KIND",
    ),
]
Ignored = Annotated[Sequence[str], Option("--ignore", "Leave a column out. May be repeated.", "NAME")]
Texts = Annotated[Sequence[str], Option("--text", "A column of free text. May be repeated.", "NAME")]
TextFolders = Annotated[
    bool, Option("--text-dirs", "DATA is a folder with one folder for each label, in which every file is a text.")
]
Together = Annotated[
    Sequence[str],
    Option(
        "--together", "Columns of categories that depend on each other, quoted as in CSV. May be repeated.", "NAME,NAME"
    ),
]
Missing = Annotated[
    Sequence[str], Option("--missing", "Text that stands for a missing cell, as '?'. May be repeated.", "TEXT")
]
MoreMissing = Annotated[
    Sequence[str],
    Option("--missing", "Text that stands for a missing cell, beside what the model knows. May be repeated.", "TEXT"),
]
InputFormat = Annotated[
    str | None, Option("--format -f", f"{_FORMATS}; by default what the name of DATA ends with, else csv.", "FORMAT")
]
OutputFormat = Annotated[
    str | None,
    Option("--to", f"{_FORMATS}, to write; by default what the name of OUT ends with, else --format.", "FORMAT"),
]
DrawnFormat = Annotated[
    str | None, Option("--format -f", f"{_FORMATS}; by default what the name of OUT ends with, else csv.", "FORMAT")
]
Unlabelled = Annotated[
    str,
    Option(
        "--unlabelled",
        "How much a row without a label counts beside one with: a number, or auto.",
        "WEIGHT",
    ),
]
Calibrate = Annotated[
    bool, Option("--calibrate/--no-calibrate", "Calibrate the probabilities of the classifier on held-out rows.")
]
Seed = Annotated[int, Option("--seed", "By which rows are dealt into folds.", least=0)]
StartSeed = Annotated[int, Option("--seed", "By which it is drawn where to begin.", least=0)]
DrawSeed = Annotated[int | None, Option("--seed", "For the same draws again.", least=0)]
Output = Annotated[str | None, Option("--output -o", _OUT, "OUT")]
ModelOutput = Annotated[str, Option("--output -o", "The model file to write.", "MODEL")]
EscapeFormulas = Annotated[
    bool, Option("--escape-formulas", "Put ' before text in CSV and TSV that a spreadsheet would run, such as =1+1.")
]
AsJson = Annotated[bool, Option("--json", "Print one JSON object, for programs.")]
