"""Tables that a person likes to read, on a terminal."""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from likely.estimators import Explanation
from likely.messages import printable
from likely.model.evaluation import Measures
from likely.model.word_explanation import WordExplanation

_MOST_CLASSES = 12
_MOST_CELLS = 15


def plain_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return a table without lines."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(literal(name), justify="right" if name in right else "left", overflow="fold")
    return table


def literal(text: Any, style: str = "") -> Text:
    """Return text of the data to show: markup in it is none, and nothing in it steers the terminal."""
    return Text(printable(str(text)), style=style)


def shown(value: Any) -> str:
    """Return a cell as a person writes it.

    >>> shown(0.123456), shown(3700.0), shown(None), shown(float("nan")), shown("Biscoe")
    ('0.1235', '3700', 'missing', 'missing', 'Biscoe')
    """
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "missing"
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if 1000 <= abs(float(value)) < 1e9 else f"{value:.4g}"
    return str(value)


def explanation_table(
    explanation: Explanation | WordExplanation, console: Console, row: int = 0, half: int = 14
) -> Table:
    """Return what every cell says, as numbers and as bars: to the right for the label, to the left against it."""
    label, against = printable(str(explanation.label[row])), printable(str(explanation.against[row]))
    top = explanation.top(most=_MOST_CELLS, row=row)
    base, total = float(explanation.base[row]), float(explanation.log_odds[row])
    rest = total - base - sum(odds for _, _, odds in top)
    others = explanation.size(row) - len(top)
    lines = [(explanation.before, "", base), *((name, shown(value), odds) for name, value, odds in top)]
    if others > 0:
        lines.append((f"{others} other {explanation.things}", "", rest))
    finite = [abs(odds) for _, _, odds in [*lines, ("", "", total)] if np.isfinite(odds)]
    strongest = max([*finite, 1e-300])
    block = "#" if console.options.ascii_only else "█"

    def bar(x: float) -> Text:
        blocks = block * (half if not np.isfinite(x) else round(half * abs(x) / strongest))
        if x < 0:
            return Text(blocks.rjust(half) + "|", style="red")
        return Text(" " * half + "|" + blocks, style="green")

    table = plain_table("", "value", "log-odds", right=("value", "log-odds"))
    table.add_column(literal(f"{against[-half:]:>{half}}|{label}"), no_wrap=True)
    for name, value, odds in lines:
        table.add_row(literal(name), literal(value), f"{odds:+.2f}", bar(odds))
    table.add_row("altogether", "", f"{total:+.2f}", bar(total), style="bold")
    return table


def measures_table(found: Measures) -> Table:
    """Return how good predictions are, with what each measure means."""
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
    return table


def confusion_table(found: Measures) -> Table | str:
    """Return how many rows of each class were taken for which."""
    if len(found.classes) > _MOST_CLASSES:
        return f"{len(found.classes)} classes: --json has the confusion matrix."
    names = [str(label) for label in found.classes.tolist()]
    table = plain_table("true \\ predicted")
    for name in names:
        table.add_column(literal(name), justify="right")
    for k, counts in enumerate(found.confusion):
        cells = [
            Text(f"{count:,.6g}", style="green" if j == k else "red" if count else "dim")
            for j, count in enumerate(counts)
        ]
        table.add_row(literal(names[k]), *cells)
    return table


def rows_table(rows: "list[dict[str, Any]]") -> Table:
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
