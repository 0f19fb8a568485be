"""Options and arguments that several commands have."""

from enum import StrEnum
from typing import Annotated

import typer


class Kind(StrEnum):
    """Which model to fit."""

    CLASSIFIER = "classifier"
    NAIVE_BAYES = "naive-bayes"


class How(StrEnum):
    """What to fill a hole with."""

    MEAN = "mean"
    DRAW = "draw"


_FORMATS = "csv, tsv, jsonl, parquet or arrow"

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, TSV, JSON lines, Parquet or Arrow files, a folder, a name with wildcards, or - for standard input.",
    ),
]
Table = Annotated[str, typer.Argument(metavar="DATA", help="A file, a folder, a name with wildcards, or -.")]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file, written by likely fit.")]
Target = Annotated[str, typer.Option("--target", "-t", metavar="NAME", help="The column that holds the label.")]
ModelKind = Annotated[Kind, typer.Option("--model", help="Calibrated probabilities, or plain naive Bayes.")]
Columns = Annotated[
    list[str],
    typer.Option(
        "--column",
        "-c",
        metavar="NAME=KIND",
        help="What a column is: number, integer, boolean, category, date, text or ignore; or its family, such as "
        "log-normal. May be repeated.",
    ),
]
Ignored = Annotated[list[str], typer.Option("--ignore", metavar="NAME", help="Leave a column out. May be repeated.")]
Missing = Annotated[
    list[str],
    typer.Option("--missing", metavar="TEXT", help="Text that stands for a missing cell, as '?'. May be repeated."),
]
InputFormat = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help=f"{_FORMATS}; by default what the name ends with, else csv."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{_FORMATS}, of standard input and output, and of files whose names do not tell. By default csv.",
    ),
]
Calibrate = Annotated[
    bool, typer.Option("--calibrate/--no-calibrate", help="Calibrate the probabilities of the classifier.")
]
Seed = Annotated[int, typer.Option(min=0, help="By which rows are dealt into folds.")]
DrawSeed = Annotated[int | None, typer.Option("--seed", min=0, help="For the same draws again.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="OUT", help="The file to write; by default standard output.")
]
ModelOutput = Annotated[str, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
