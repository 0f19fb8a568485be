"""What is printed: JSON for programs, and lines and tables for a person. rich is imported only where it draws."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from likely.messages import printable, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from likely.data.schema import Schema
    from likely.estimators import Explanation
    from likely.model.evaluation import Measures
    from likely.model.explanation import WordExplanation

_MOST_CLASSES = 12
_MOST_SHARES = 8
_MOST_CELLS = 15
_MOST_PROBABILITIES = 5


def print_json(found: Any) -> None:
    """Print an object as JSON; what JSON has no number for is null."""
    text = json.dumps(_plain(found), ensure_ascii=False, allow_nan=False)
    print(printable(text, lambda character: json.dumps(character)[1:-1]))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def explanation_dict(found: Any, i: int, number: int) -> dict[str, Any]:
    """Return what the cells of a row say for its class."""
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


def _of_groups(found: dict[str, Any]) -> bool:
    """Say whether the classes of a model are groups that it has found."""
    return str(found["kind"]) == "Mixture"


def _title(found: dict[str, Any]) -> str:
    """Return what kind of model it is, and of what, if that has a name."""
    if _of_groups(found):
        number = len(found["classes"])
        return f"{found['kind']} of {number} group{'s' * (number > 1)}"
    return str(found["kind"]) if found["target"] is None else f"{found['kind']} of {found['target']}"


def model_text(found: dict[str, Any]) -> str:
    """Return a few lines about a model that was saved."""
    took = f" in {found['seconds']:.2g} s" if "seconds" in found else ""
    classes = sorted(found["classes"], key=lambda each: -each["share"])
    shares = [f"{each['label']} {100 * each['share']:.1f} %" for each in classes[:_MOST_SHARES]]
    if len(classes) > _MOST_SHARES:
        shares.append(f"and {len(classes) - _MOST_SHARES} more")
    families = Counter(column["family"] for column in found["columns"] if column["family"])
    left_out = [column["name"] for column in found["columns"] if not column["family"]]
    lines = [
        f"{_title(found)}: {found['rows']:,.0f} rows{took}",
        f"{'groups ' if _of_groups(found) else 'classes'}  {', '.join(shares)}",
        f"columns  {', '.join(f'{count} {family}' for family, count in families.most_common())}",
    ]
    if left_out:
        lines.append(f"left out {', '.join(left_out[:_MOST_SHARES])}{' …' if len(left_out) > _MOST_SHARES else ''}")
    return "\n".join(map(printable, [*lines, f"saved in {found['model']}"]))


def new_console() -> "Console":
    """Return where tables are printed."""
    from rich.console import Console

    return Console(highlight=False)


def print_schema(schema: "Schema", file: str, *, as_json: bool) -> None:
    """Print what the columns of a table are taken for."""
    seen = [column.seen for column in schema.columns if column.seen is not None]
    if as_json:
        from likely.persistence.codec import encode

        columns = [
            {
                **encode(column, column.name, {}),
                **(
                    {} if column.kind != "date" else {"parts": column.parts, "fixed": column.fixed, "type": column.type}
                ),
                **({} if column.seen is None else column.seen._asdict()),
            }
            for column in schema.columns
        ]
        print_json({"file": file, "columns": columns})
        return
    print(str(schema))
    if seen:
        print(f"distinct and missing of {max(each.rows for each in seen):,} rows, from all over the table")


def print_model(found: dict[str, Any]) -> None:
    """Print the tables of what a model has learned."""
    number = len(found["columns"])
    title = f"{_title(found)}: {found['rows']:,.6g} rows, {number} column{'' if number == 1 else 's'}"
    classes = plain_table("group" if _of_groups(found) else "class", "rows", "share", right=("rows", "share"))
    for each in sorted(found["classes"], key=lambda one: -one["share"]):
        classes.add_row(literal(each["label"]), f"{each['rows']:,.6g}", f"{100 * each['share']:.1f} %")
    columns = plain_table("column", "kind", "family")
    for column in found["columns"]:
        columns.add_row(literal(column["name"]), column["kind"], column["family"] or "left out")
    shown: list[Any] = [literal(title), "", classes, "", columns]
    if found["members"] is not None:
        members = plain_table("compared by", "features", "weight", "", right=("features", "weight"))
        for member in found["members"]:
            chosen = f"diagonal {member['diagonal']:g}, strength {member['strength']:g}" if "diagonal" in member else ""
            members.add_row(member["name"], f"{member['features']:,}", f"{member['weight']:.2f}", chosen)
        shown += ["", members, f"Calibrated on {found['calibration']['rows']:,.6g} rows."]
    console = new_console()
    for part in shown:
        console.print(part)


def print_evaluation(found: "Measures") -> None:
    """Print how well held-out rows were predicted: measures, with what each means, and the confusion matrix."""
    table = plain_table("measure", "value", "", right=("value",))
    meanings = (
        "of the rows are predicted right",
        "0 is perfect",
        "0 is perfect, 2 is sure of the wrong class",
        "0 is honest",
    )
    for (name, value), meaning in zip(found.measures.items(), meanings, strict=True):
        text = f"{100 * value:.2f} %" if name == "accuracy" else f"{value:.4f}"
        table.add_row(name, f"[bold]{text}[/bold]", f"[dim]{meaning}[/dim]")
    folds = f"{found.folds - 1} of {found.folds} folds"
    console = new_console()
    console.print(f"[bold]{found.rows:,}[/bold] rows, each predicted by a model of the other {folds}.\n")
    for part in (table, "", confusion_table(found)):
        console.print(part)


def print_explanations(found: Any, numbers: Sequence[int], labels: Any, probabilities: Any) -> None:
    """Print why each row is of its class, and how likely that is; ``numbers``: which rows, counted from 1."""
    from rich.text import Text

    console = new_console()
    for i, number in enumerate(numbers):
        console.print("" if i == 0 else "\n", end="")
        for_it, against_it = literal(found.label[i], "green"), literal(found.against[i], "red")
        console.print(Text.assemble(f"Row {number}: why ", for_it, " and not ", against_it, "?"))
        console.print(explanation_table(found, console, i))
        order = (-probabilities[i]).argsort(kind="stable")[:_MOST_PROBABILITIES]
        likeliest = ", ".join(f"{labels[c]} {100 * probabilities[i, c]:.1f} %" for c in order)
        console.print(literal(f"So {likeliest}"))


def plain_table(*columns: str, right: tuple[str, ...] = ()) -> "Table":
    """Return a table without lines."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(literal(name), justify="right" if name in right else "left", overflow="fold")
    return table


def literal(text: Any, style: str = "") -> "Text":
    """Return text of the data to show: markup in it is none, and nothing in it steers the terminal."""
    from rich.text import Text

    return Text(printable(str(text)), style=style)


def explanation_table(
    explanation: "Explanation | WordExplanation", console: "Console", row: int = 0, half: int = 14
) -> "Table":
    """Return what every cell says, as numbers and as bars: to the right for the label, to the left against it."""
    label, against = printable(str(explanation.label[row])), printable(str(explanation.against[row]))
    top = explanation.top(most=_MOST_CELLS, row=row)
    base, total = float(explanation.base[row]), float(explanation.log_odds[row])
    rest = total - base - sum(odds for _, _, odds in top)
    others = explanation.size(row) - len(top)
    lines = [(explanation.before, "", base), *((name, shown(value), odds) for name, value, odds in top)]
    if others > 0:
        lines.append((f"{others} other {explanation.things}", "", rest))
    finite = [abs(odds) for _, _, odds in [*lines, ("", "", total)] if math.isfinite(odds)]
    strongest = max([*finite, 1e-300])
    block = "#" if console.options.ascii_only else "█"

    def bar(x: float) -> "Text":
        blocks = block * (half if not math.isfinite(x) else round(half * abs(x) / strongest))
        if x < 0:
            return literal(blocks.rjust(half) + "|", "red")
        return literal(" " * half + "|" + blocks, "green")

    table = plain_table("", "value", "log-odds", right=("value", "log-odds"))
    table.add_column(literal(f"{against[-half:]:>{half}}|{label}"), no_wrap=True)
    for name, value, odds in lines:
        table.add_row(literal(name), literal(value), f"{odds:+.2f}", bar(odds))
    table.add_row("altogether", "", f"{total:+.2f}", bar(total), style="bold")
    return table


def confusion_table(found: "Measures") -> "Table | str":
    """Return how many rows of each class were taken for which."""
    if len(found.classes) > _MOST_CLASSES:
        return f"{len(found.classes)} classes: --json has the confusion matrix."
    names = [str(label) for label in found.classes.tolist()]
    table = plain_table("true \\ predicted")
    for name in names:
        table.add_column(literal(name), justify="right")
    for k, counts in enumerate(found.confusion):
        cells = [
            literal(f"{count:,.6g}", "green" if j == k else "red" if count else "dim") for j, count in enumerate(counts)
        ]
        table.add_row(literal(names[k]), *cells)
    return table


def rows_table(rows: list[dict[str, Any]]) -> "Table":
    """Return some rows as a table."""
    names = list(rows[0]) if rows else []
    right = tuple(name for name in names if any(isinstance(row[name], int | float) for row in rows))
    table = plain_table()
    for name in names:  # as words, which may stand below each other
        table.add_column(literal(name.replace("_", " ")), justify="right" if name in right else "left")
    for row in rows:
        table.add_row(
            *(literal(shown(row[name]), style="dim" if shown(row[name]) == "missing" else "") for name in names)
        )
    return table
