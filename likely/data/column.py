"""A column of a table: what it is called, what it holds, and what a sample of it shows."""

import math
import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

KINDS = ("number", "integer", "boolean", "category", "text", "date", "ignore")
"""What a column can be."""
SOURCES = ("number", "integer", "boolean", "text", "date", "other")
"""What the cells of a column are where the table lies."""
FAMILIES = {
    "gaussian": "number", "log-normal": "number", "gamma": "number", "exponential": "number", "poisson": "number",
    "bernoulli": "boolean", "categorical": "category", "multinomial": "text",
}  # fmt: skip
"""The kind of column that each family is of."""
DATE_TYPE = r"date32\[day\]|timestamp\[(s|ms|us|ns)(?:, tz=([\w/+:-]{1,50}))?\]"
"""What the types of dates are called."""
LARGE = "uint64"
"""The type of whole numbers that may be larger than those of 64 bits with a sign."""
NO, YES = ("false", "no", "f", "n", "0"), ("true", "yes", "t", "y", "1")
"""Words for no and yes, in pairs."""
PARTS = ("year", "month", "weekday", "hour")
"""What becomes of a date."""
ALMOST_NUMBERS = "numbers but for"
"""How the note begins of a column that would be numbers if one word, which follows, stood for a missing cell."""
OTHER_DATES = "dates, but not as 2024-12-31"
"""The note of a column of dates as Europe or America write them."""
COMMAS = "numbers with a comma, not as 1234.5"
"""The note of a column of numbers with a decimal comma."""
IDENTIFIER = "nearly all distinct: an identifier? then ignore it"
"""The note of a column whose cells are names of rows."""
_LONGEST_NAME = 100_000


class Seen(NamedTuple):
    """What a sample of a column shows."""

    distinct: int
    missing: int
    rows: int
    example: str
    note: str = ""


class UnlikeSampleError(ValueError):
    """A cell shows that a column is of another kind than a sample of it: its name, the cell, and a kind that fits."""

    def __init__(self, sentence: str, column: str, cell: float, kind: str):
        super().__init__(sentence, column, cell, kind)
        self.column, self.cell, self.kind = column, cell, kind

    def __str__(self) -> str:
        return str(self.args[0])

    def placed(self, where: str) -> "UnlikeSampleError":
        """Return the error of rows that lie somewhere else, such as in a partition."""
        return UnlikeSampleError(f"{where}: {self}", self.column, self.cell, self.kind)


@dataclass(frozen=True)
class Column:
    """A column: its name, its kind, and what its cells are where the table lies.

    Of dates it has the parts that differ from row to row, what the others are in all rows, and the type; of text that
    is yes or no the words for no and yes, and of whole numbers beyond 63 bits the type: all that is needed to write
    cells that look like those that were there.
    """

    name: str
    kind: str
    source: str = "number"
    family: str | None = None
    range: tuple[float, float] | None = field(default=None, compare=False)
    """the least and the greatest number that was seen"""
    parts: tuple[str, ...] = ()
    fixed: dict[str, str] = field(default_factory=dict, hash=False)
    type: str = field(default="", compare=False)
    words: tuple[str, ...] = field(default=(), compare=False)
    seen: Seen | None = field(default=None, compare=False, metadata={"saved": False})

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the columns that it becomes in a table."""
        if self.kind == "ignore":
            return ()
        return tuple(f"{self.name}.{part}" for part in self.parts) if self.kind == "date" else (self.name,)

    def validate(self) -> None:
        """Raise ValueError unless all that is said of the column belongs together."""
        kind, dated, large = self.kind, self.kind == "date", self.kind == "integer" and self.type == LARGE
        in_order = self.parts == tuple(part for part in PARTS if part in self.parts)
        others = all(part in PARTS and part not in self.parts and _is_part(part, x) for part, x in self.fixed.items())
        no_and_yes = len(self.words) == 2 and self.words[0].lower() in NO and self.words[1].lower() in YES
        for fits, expected, got in (
            (len(self.name) <= _LONGEST_NAME, f"a name of at most {_LONGEST_NAME:,} characters", self.name),
            (kind in KINDS, f"one of {', '.join(KINDS)} as the kind", kind),
            (self.source in SOURCES, f"one of {', '.join(SOURCES)} as the source", self.source),
            (self.family is None or FAMILIES.get(self.family) == kind, f"a family of the kind {kind!r}", self.family),
            (in_order and (dated or not self.parts), f"parts of dates among {', '.join(PARTS)}", self.parts),
            (others and (dated or not self.fixed), "parts of dates that are the same in all rows", self.fixed),
            (not self.type or large or (dated and re.fullmatch(DATE_TYPE, self.type)), "a type of dates", self.type),
            (self.range is None or kind in ("number", "integer"), "no range but of numbers", self.range),
            (self.range is None or self.range[0] <= self.range[1], "the least and the greatest number", self.range),
            (not self.words or (kind == "boolean" and no_and_yes), "words for no and yes", self.words),
        ):
            if not fits:
                raise ValueError(f"expected {expected} of column {self.name[:50]!r}, got {str(got)[:50]!r}")

    @property
    def limits(self) -> tuple[float, float]:
        """What cells that are drawn or filled in lie between: whole numbers in their range, others not below 0."""
        if self.range is None:
            return -math.inf, math.inf
        if self.kind == "integer":
            return self.range
        return 0.0 if self.range[0] >= 0 else -math.inf, math.inf

    def spanning(self, other: "Column") -> "Column":
        """Return the column, in whose range is that of another, too."""
        if self.range is None or other.range is None:
            return self
        return replace(self, range=(min(self.range[0], other.range[0]), max(self.range[1], other.range[1])))


def _is_part(part: str, value: str) -> bool:
    return len(value) < 20 and (
        (value.lstrip("-").isascii() and value.lstrip("-").isdigit()) or part not in ("year", "hour")
    )
