"""Commands that show: inspect and demo."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from likely.cli import options
from likely.cli.streams import opened
from likely.data.formats import EXPECTED, Format
from likely.data.progress import watched

if TYPE_CHECKING:
    from rich.console import Console


def inspect(
    file: Annotated[str, options.Argument("FILE", "A model file, or a table: a file, a folder, or -.")],
    missing: options.Missing = (),
    form: options.InputFormat = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a model has learned, or what the columns of a table would be taken for."""
    from likely.cli.describing import described, printed_json
    from likely.persistence.file import is_model

    if form is not None or not is_model(file):
        if form is None and os.path.isfile(file) and Format.of(file) is None:
            raise ValueError(
                f"expected a model file, or a table whose name ends with its format, got {file!r}, which is neither: "
                f"if it is a table, say --format, one of {EXPECTED}"
            )
        _inspect_table(file, form, missing, as_json)
        return
    from likely.persistence.registry import load

    found = {"model": file, **described(load(file))}
    if as_json:
        printed_json(found)
        return
    from rich.console import Console

    _show_model(found, Console(highlight=False))


def _inspect_table(file: str, form: str | None, missing: Sequence[str], as_json: bool) -> None:
    from likely.cli.describing import printed_json
    from likely.data.schema import Schema

    rows = opened([file], form, missing)
    with watched(rows, "looking"):
        schema = Schema.infer(rows)
    if not as_json:
        print(str(schema))
        seen = [column.seen.rows for column in schema.columns if column.seen is not None]
        if seen:
            print(f"distinct and missing of {max(seen):,} rows, from all over the table")
        return
    columns = [
        {**column.described(), **({} if column.seen is None else column.seen._asdict())} for column in schema.columns
    ]
    printed_json({"file": file, "columns": columns})


def _show_model(found: dict[str, Any], console: "Console") -> None:
    from likely.cli.describing import groups, title
    from likely.cli.tables import literal, plain_table

    console.print(literal(f"{title(found)}: {found['rows']:,.6g} rows, {_columns_of(found)}"))
    classes = plain_table("group" if groups(found) else "class", "rows", "share", right=("rows", "share"))
    for each in sorted(found["classes"], key=lambda one: -one["share"]):
        classes.add_row(literal(each["label"]), f"{each['rows']:,.6g}", f"{100 * each['share']:.1f} %")
    columns = plain_table("column", "kind", "family")
    for column in found["columns"]:
        columns.add_row(literal(column["name"]), column["kind"], column["family"] or "left out")
    console.print()
    console.print(classes)
    console.print()
    console.print(columns)
    if found["members"] is None:
        return
    members = plain_table("compared by", "features", "weight", "", right=("features", "weight"))
    for member in found["members"]:
        chosen = f"diagonal {member['diagonal']:g}, strength {member['strength']:g}" if "diagonal" in member else ""
        members.add_row(member["name"], f"{member['features']:,}", f"{member['weight']:.2f}", chosen)
    console.print()
    console.print(members)
    console.print(f"Calibrated on {found['calibration']['rows']:,.6g} rows.")


def demo(seed: Annotated[int, options.Option("--seed", "Which new birds to draw.", least=0)] = 0) -> None:
    """Fit 344 penguins, missing cells and all; then score, explain, fill a hole, and draw new ones."""
    from rich.console import Console

    from likely.cli.demo import show

    show(Console(highlight=False), seed)


def _columns_of(found: dict[str, Any]) -> str:
    number = len(found["columns"])
    return f"{number} column{'' if number == 1 else 's'}"
