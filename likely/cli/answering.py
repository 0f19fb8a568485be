"""Commands that ask a model about rows: predict and explain."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from likely.cli import options
from likely.cli.streams import STANDARD, check_place, opened, opened_to_answer, output_format, written
from likely.data.progress import watched

if TYPE_CHECKING:
    import pyarrow as pa

    from likely.cli.models import Loaded
    from likely.data.rows import Rows

LINES = "txt"
"""The format in which every line is a text."""


def predict(
    model: options.Model,
    data: options.Rows,
    output: options.Output = None,
    form: options.InputFormat = None,
    to: options.OutputFormat = None,
    missing: options.MoreMissing = (),
    probabilities: Annotated[
        bool, options.Option("--probabilities/--no-probabilities", "Write the probability of every class.")
    ] = True,
    only: Annotated[bool, options.Option("--only", "Write the answers without the rows.")] = False,
    escape_formulas: options.EscapeFormulas = False,
) -> None:
    """Write rows with the likeliest class of each, and the probability of every class."""
    from likely.cli.models import Loaded

    check_place(output, [model, data], form)
    out = output_format(output, to, None if form == LINES else form)
    loaded = Loaded.read(model, missing)
    rows = _lines(loaded, data, form) or opened_to_answer(data, form, out, loaded.missing)
    with watched(rows, "predicting"):
        answers = _predicted(loaded.model, loaded.tables(rows), probabilities, only)
        written(answers, output, out, escape_formulas=escape_formulas)


def _lines(loaded: "Loaded", data: str, form: str | None) -> "Rows | None":
    """Open lines of text, as standard input and .txt files are to a model of one column of text; None of other rows."""
    if form != LINES and not (form is None and loaded.text and (data == STANDARD or data.endswith(f".{LINES}"))):
        return None
    from likely.cli.texts import lines_of

    if loaded.text is None:
        raise ValueError("expected a model of one column of text for lines, got one of others: give a table")
    return lines_of(data, loaded.text)


def _predicted(model: Any, tables: Any, probabilities: bool, only: bool) -> Iterator["pa.Table"]:
    import numpy as np
    import pyarrow as pa

    from likely.model.lazy import answer_name, labels_in_text

    labels = model.classes_
    written_labels = labels_in_text(labels)
    for batch, table in tables:
        answers: dict[str, Any] = {}
        shares = np.empty((0, len(labels)))
        if probabilities and table is not None:
            shares = model.predict_proba(table)
        predicted = (
            labels[:0] if table is None else labels[shares.argmax(axis=1)] if probabilities else model.predict(table)
        )
        answers[answer_name(model)] = pa.array(predicted)
        if probabilities:
            answers |= {f"p({label})": pa.array(shares[:, k]) for k, label in enumerate(written_labels)}
        kept = [] if only else [name for name in batch.schema.names if name not in answers]
        yield pa.table({**{name: batch.column(name) for name in kept}, **answers})


def explain(
    model: options.Model,
    data: options.Rows,
    row: Annotated[Sequence[int], options.Option("--row", "Which row, counted from 1. May be repeated.", least=1)] = (
        1,
    ),
    label: Annotated[str | None, options.Option("--label", "For which class; by default the likeliest.")] = None,
    against: Annotated[str | None, options.Option("--against", "Against which class; by default the next.")] = None,
    form: options.InputFormat = None,
    missing: options.MoreMissing = (),
    as_json: options.AsJson = False,
) -> None:
    """Say what each cell of a row contributes to its class, in log-odds that add up."""
    from likely.cli.models import Loaded

    loaded = Loaded.read(model, missing)
    rows = _lines(loaded, data, form) or opened([data], form, loaded.missing, typed=False)
    table = loaded.table(_some(rows, row), [number - 1 for number in row])
    found = loaded.model.explain(table, loaded.label(label), loaded.label(against))
    shares = loaded.model.predict_proba(table)
    if as_json:
        from likely.cli.describing import printed_json

        printed_json({"rows": [_as_dict(found, i, number) for i, number in enumerate(row)]})
        return
    from rich.console import Console
    from rich.text import Text

    from likely.cli.tables import explanation_table, literal

    console = Console(highlight=False)
    for i, number in enumerate(row):
        console.print("" if i == 0 else "\n", end="")
        for_it, against_it = literal(found.label[i], "green"), literal(found.against[i], "red")
        console.print(Text.assemble(f"Row {number}: why ", for_it, " and not ", against_it, "?"))
        console.print(explanation_table(found, console, i))
        order = (-shares[i]).argsort(kind="stable")[:5]
        likeliest = ", ".join(f"{loaded.model.classes_[c]} {100 * shares[i, c]:.1f} %" for c in order)
        console.print(literal(f"So {likeliest}"))


def _some(rows: "Rows", numbers: Sequence[int]) -> Any:
    """Return some rows, counted from 1, in the order asked for."""
    import pyarrow as pa

    found: dict[int, Any] = {}
    before = 0
    for batch in rows.batches():
        for number in numbers:
            if before < number <= before + batch.num_rows:
                found[number] = pa.Table.from_batches([batch.slice(number - 1 - before, 1)])
        before += batch.num_rows
        if len(found) == len(set(numbers)):
            break
    for number in numbers:
        if number not in found:
            raise ValueError(f"expected one of the {before:,} rows, counted from 1, got --row {number}")
    together = pa.concat_tables([found[number] for number in numbers], promote_options="permissive")
    return together.combine_chunks().to_batches()[0]


def _as_dict(found: Any, i: int, number: int) -> dict[str, Any]:
    from likely.statistics import plain_label

    top = found.top(most=found.size(i), row=i)
    names = ("word", "count") if found.things == "words" else ("column", "value")
    return {
        "row": number,
        "label": plain_label(found.label[i]),
        "against": plain_label(found.against[i]),
        "base": float(found.base[i]),
        "log_odds": float(found.log_odds[i]),
        "cells": [{names[0]: name, names[1]: value, "log_odds": odds} for name, value, odds in top],
    }
