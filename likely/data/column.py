"""A column of a table: what it is called, what it holds, and what a sample of it shows."""

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

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
    parts: tuple[str, ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()
    type: str = field(default="", compare=False)
    range: tuple[float, float] | None = field(default=None, compare=False)
    """the least and the greatest number that was seen"""
    seen: Seen | None = field(default=None, compare=False)
    words: tuple[str, ...] = field(default=(), compare=False)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the columns that it becomes in a table."""
        if self.kind == "ignore":
            return ()
        return tuple(f"{self.name}.{part}" for part in self.parts) if self.kind == "date" else (self.name,)

    def described(self) -> dict[str, Any]:
        """Return what ``from_description`` takes."""
        described: dict[str, Any] = {"name": self.name, "kind": self.kind, "source": self.source}
        if self.family is not None:
            described["family"] = self.family
        if self.range is not None:
            described["range"] = list(self.range)
        if self.kind == "date":
            described |= {"parts": list(self.parts), "fixed": dict(self.fixed)}
        if self.kind == "date" or self.type:
            described["type"] = self.type
        if self.words:
            described["words"] = list(self.words)
        return described

    @classmethod
    def from_description(cls, described: Any) -> Self:
        """Return a column, or raise ValueError unless it was described by ``described``."""
        if not isinstance(described, dict) or not all(isinstance(key, str) for key in described):
            raise ValueError(f"expected a column by name, kind and source, got {type(described).__name__}")
        name, kind, source = (described.get(key) for key in ("name", "kind", "source"))
        family, parts = described.get("family"), described.get("parts", [])
        fixed, date_type, words = (
            described.get(key, none) for key, none in (("fixed", {}), ("type", ""), ("words", []))
        )
        extent, large = described.get("range"), kind == "integer" and date_type == LARGE
        if unknown := set(described) - {"name", "kind", "source", "family", "parts", "fixed", "type", "range", "words"}:
            raise ValueError(f"expected a column by name, kind and source, got also {sorted(unknown)[0][:50]!r}")
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            raise ValueError(f"expected text as the name of a column, got {type(name).__name__}")
        where = f"column {name[:50]!r}"
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)} as the kind of {where}, got {_short(kind)}")
        if not isinstance(source, str) or source not in SOURCES:
            raise ValueError(f"expected one of {', '.join(SOURCES)} as the source of {where}, got {_short(source)}")
        if family is not None and (not isinstance(family, str) or FAMILIES.get(family) != kind):
            raise ValueError(f"expected a family of the kind {kind!r} for {where}, got {_short(family)}")
        fits = isinstance(parts, list) and parts == [part for part in PARTS if part in parts]
        if not fits or (parts and kind != "date"):
            raise ValueError(f"expected parts of dates among {', '.join(PARTS)} for {where}, got {_short(parts)}")
        if (fixed or date_type) and kind != "date" and not (large and not fixed):
            raise ValueError(f"expected nothing of dates for {where}, got a {kind}")
        if not isinstance(fixed, dict) or not all(
            part in PARTS and part not in parts and isinstance(value, str) and _is_part(part, value)
            for part, value in fixed.items()
        ):
            raise ValueError(f"expected parts of dates that are the same in all rows for {where}, got others")
        if not isinstance(date_type, str) or (date_type and not large and not re.fullmatch(DATE_TYPE, date_type)):
            raise ValueError(f"expected a type of dates for {where}, got {_short(date_type)}")
        if extent is not None and (kind not in ("number", "integer") or not _is_range(extent)):
            raise ValueError(f"expected the least and the greatest number of {where}, got {_short(extent)}")
        if words and (
            kind != "boolean"
            or not isinstance(words, list)
            or len(words) != 2
            or not all(isinstance(word, str) and word.lower() in known for word, known in zip(words, (NO, YES)))  # noqa: B905
        ):
            raise ValueError(f"expected words for no and yes for {where}, got others")
        return cls(
            name,
            kind,
            source,
            family,
            tuple(parts),
            tuple(fixed.items()),
            date_type,
            extent and (extent[0], extent[1]),
            words=tuple(words),
        )

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


def _is_range(extent: Any) -> bool:
    numbers = isinstance(extent, list) and len(extent) == 2 and all(type(x) in (int, float) for x in extent)
    return numbers and all(map(math.isfinite, extent)) and extent[0] <= extent[1]


def _short(value: Any) -> str:
    return repr(value)[:50] if isinstance(value, str | int | float | None) else type(value).__name__
