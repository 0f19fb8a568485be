"""What a person should know of a table before a model learns from it."""

from collections.abc import Collection

from likely.data.column import ALMOST_NUMBERS, COMMAS, IDENTIFIER, OTHER_DATES
from likely.data.schema import Column, Schema
from likely.messages import Advice, Setting, tell

# More labels than this, of which few rows have the same, are seldom meant as classes.
_MANY_LABELS, _MANY_OF_ROWS = 100, 0.1


def tell_of_columns(schema: Schema, given: Collection[str]) -> None:
    """Warn of columns that may be taken for something else than they are, unless it was given what they are."""
    noted: dict[str, list[Column]] = {}
    for column in schema.columns:
        if column.seen is not None:
            noted.setdefault(column.seen.note.partition(" '")[0], []).append(column)
    if almost := noted.get(ALMOST_NUMBERS):
        words = {c.name: c.seen.note.removeprefix(ALMOST_NUMBERS).strip() for c in almost if c.seen}
        shown = ", ".join(f"{name!r} but for {word}" for name, word in words.items())
        listed = ", ".join(dict.fromkeys(words.values()))
        tell(
            Advice(
                f"columns that are numbers but for one word are taken as categories ({shown}); if it stands for a "
                "missing cell, say ",
                Setting("missing", listed, f"missing=[{listed}]"),
            )
        )
    if found := noted.get(OTHER_DATES):
        tell(f"columns of dates are taken as categories ({_listed(found)}): write them as 2024-12-31")
    if found := noted.get(COMMAS):
        tell(f"columns of numbers with a comma are taken as categories ({_listed(found)}): write them as 1234.5")
    if found := noted.get(IDENTIFIER):
        tell(
            Advice(
                f"columns whose cells are nearly all distinct are taken as categories ({_listed(found)}); an "
                "identifier is better left out: ",
                Setting.of_column(found[0].name, "ignore"),
            )
        )
    if found := [c for c in schema.columns if c.kind == "ignore" and c.name not in given and c.source == "other"]:
        tell(f"columns that cannot be read are left out: {_listed(found)}")


def tell_of_labels(target: Column) -> None:
    """Warn of a target with so many labels that learning will take long, and teach little."""
    seen = target.seen
    if seen is None or target.kind == "number":  # of which there is an error to come
        return
    there = seen.rows - seen.missing
    if seen.distinct > _MANY_LABELS and seen.distinct > _MANY_OF_ROWS * there:
        tell(
            f"the target {target.name!r} has {seen.distinct:,} labels in {there:,} rows, and each is a class of its "
            "own, which takes long: is it an identifier or a number?"
        )


def _listed(columns: list[Column]) -> str:
    return ", ".join(repr(column.name) for column in columns)
