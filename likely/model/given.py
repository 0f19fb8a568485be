"""What is given of rows beside their cells: values, ranges, sets of categories, or that a cell is missing."""

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.schema import check_name
from likely.density.columns import Encoded, NumberColumn, unknown_rows
from likely.density.combination import Combination
from likely.density.evidence import Evidence, Known
from likely.density.table import TableJoint
from likely.families import on_one_line
from likely.model.readers import Reader
from likely.statistics import Array


class Missing(Enum):
    """Evidence that a cell is missing."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "likely.MISSING"


MISSING = Missing.MISSING


class Given(NamedTuple):
    """What is given: cells, evidence that is not a value, and the joint given which cells are missing."""

    values: Mapping[Any, Any]
    """columns that have a value, by name or number, as the user gave them"""
    row: Encoded | None
    """one row of these values"""
    evidence: Evidence | None
    missing: tuple[int, ...]
    combination: Combination
    log_missing: float
    """the log probability that these cells are missing"""
    cells: Array
    """the values that are given, as cells of the joint; NaN in columns without one"""

    @classmethod
    def of(cls, given: Mapping[Any, Any] | None, joint: TableJoint, reader: Reader) -> Self:
        """Read what is given, or raise ValueError if it cannot be so."""
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"expected given as a dict from columns to evidence, got {on_one_line(given)}")
        values: dict[Any, Any] = {}
        known: dict[int, Known] = {}
        missing: list[int] = []
        read: set[int] = set()
        for column, value in (given or {}).items():
            j = reader.column(column)
            if j in read:
                listed = reader.columns.listed([j])
                raise ValueError(f"expected evidence once on {listed}, got it by its name and by its number")
            read.add(j)
            if value is MISSING:
                missing.append(j)
            elif isinstance(value, tuple | Set) and j in joint.text_columns:
                raise ValueError(
                    f"expected a text, or likely.MISSING, of {reader.columns.listed([j])}, got {on_one_line(value)}"
                )
            elif isinstance(value, tuple):
                known[j] = _range(joint, reader, j, value)
            elif isinstance(value, Set):
                known[j] = _set(joint, reader, j, value)
            else:
                _check_value(joint, reader, j, value)
                values[column] = value
        row, cells = None, np.full(len(joint.columns), np.nan)
        if values:
            table = reader.given_rows(values, 1, joint.names)
            row = joint.encode(table)
            cells = joint.as_cells(table)
        evidence = Evidence(joint.columns, known) if known else None
        if not missing:
            return cls(values, row, evidence, (), joint.combination, 0.0, cells)
        combination, log = joint.combination.given_missing(missing)
        if log == -np.inf:
            lacking = [j for j in missing if joint.missing is None or j not in joint.missing.columns]
            raise ValueError(
                f"expected cells that may be missing, got {reader.columns.listed(lacking)}: none was missing in the "
                "rows that were learned"
            )
        return cls(values, row, evidence, tuple(missing), combination, log, cells)

    def applied(self, rows: Encoded) -> Encoded:
        """Return rows in which the given cells stand, and nothing is known of those that have other evidence."""
        others = set(self.missing) | set(() if self.evidence is None else self.evidence.known)
        fixed = [] if self.row is None else np.flatnonzero(~self.row.missing[0]).tolist()
        if not others and not fixed:
            return rows
        rows = rows.hiding(*others)
        return rows if self.row is None else rows.with_cells(fixed, self.row)

    def within(self, x: Array, whole: NDArray[np.bool_], generator: "np.random.Generator | None" = None) -> Array:
        """Return drawn or expected cells, those that are given as they are, and others in their ranges.

        Where no number that was learned is in a range, one between its ends is drawn, or the middle is taken.
        """
        for j, known in ({} if self.evidence is None else self.evidence.known).items():
            out = (x[:, j] < known.least) | (x[:, j] > known.most)
            if not out.any():
                continue
            if not np.isfinite([known.least, known.most]).all():
                x[out, j] = np.clip(x[out, j], known.least, known.most)
                continue
            share = np.full(int(out.sum()), 0.5) if generator is None else generator.random(int(out.sum()))
            between = known.least + share * (known.most - known.least)
            x[out, j] = np.rint(between) if whole[j] else between
        return np.where(np.isnan(self.cells), x, self.cells)

    def log_density(self, rows: Encoded) -> Array:
        """Return log p(rows | what is given)."""
        blank = self.applied(unknown_rows(rows.columns, 1))
        below = float(self.combination.log_density(blank, self.evidence)[0])
        return self.combination.log_density(self.applied(rows), self.evidence) - below


def _check_value(joint: TableJoint, reader: Reader, j: int, value: Any) -> None:
    """Raise if what is given of a column is no single value, or not of its type."""
    name, of = reader.columns.listed([j]), joint.columns[j]
    if isinstance(value, list | slice | range | np.ndarray):
        raise ValueError(
            f"expected one value of {name}, a range (low, high), or a set of values in braces, got {on_one_line(value)}"
        )
    if not isinstance(of, NumberColumn):
        return
    if isinstance(value, str):
        try:
            reader.as_number(j, value)
        except (TypeError, ValueError, OverflowError):
            what = "a date such as 2024-02-29" if reader.what_are(j) == "dates" else "a number"
            raise ValueError(
                f"expected {what} of {name}, or a range (low, high) in which None is no end, got {on_one_line(value)}"
            ) from None
    if isinstance(value, float) and np.isfinite(value) and value != round(value) and joint.whole[j]:
        raise ValueError(f"expected a whole number of {name}, got {value!r}")


def _range(joint: TableJoint, reader: Reader, j: int, value: tuple[Any, ...]) -> Known:
    """Return the evidence that a number is in a range."""
    name, column = reader.columns.listed([j]), joint.columns[j]
    if not isinstance(column, NumberColumn):
        raise ValueError(f"expected a category, or a set of them, of {name}, got the range {on_one_line(value)}")
    try:
        first, last = value
        low = -np.inf if first is None else reader.as_number(j, first)
        high = np.inf if last is None else reader.as_number(j, last, last=True)
    except (TypeError, ValueError, OverflowError):
        low, high = np.nan, np.nan
    if not low <= high:
        raise ValueError(
            f"expected a range (low, high) of {name}, of two {reader.what_are(j)} or None for no end, got "
            f"{on_one_line(value)}"
        )
    free = (np.ceil(low) - 0.5, np.floor(high) + 0.5) if column.whole else (low, high)
    with np.errstate(over="ignore"):
        u = column.distribution(np.array(free))[0]
    u = np.where(np.isinf(free), (0.0, 1.0), u)  # no end is none, whatever rounding says
    levels = np.append((column.atoms >= low) & (column.atoms <= high), u[1] > u[0]).astype(np.float64)
    if column.counts[-1] <= 0 and levels[:-1].any():  # all numbers were repeated ones
        levels[-1] = 0.0 if column.bins == 1 else levels[-1]
    if not levels.any():
        raise ValueError(f"expected a range that numbers of {name} can be in, got {on_one_line(value)}")
    ends = (float(np.ceil(low)), float(np.floor(high))) if column.whole else (low, high)
    return Known(levels, float(u[0]), float(u[1]), *ends)


def _set(joint: TableJoint, reader: Reader, j: int, value: Set[Any]) -> Known:
    """Return the evidence that a category, or a repeated number, is one of some."""
    name, column = reader.columns.listed([j]), joint.columns[j]
    if not value:
        raise ValueError(f"expected a set of values of {name}, got an empty one")
    if isinstance(column, NumberColumn):
        what = reader.what_are(j)
        try:
            wanted = np.array(sorted(reader.as_number(j, x) for x in value))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"expected {what} in a set for {name}, got {on_one_line(value)}") from None
        if not np.isin(wanted, column.atoms).all():
            raise ValueError(
                f"expected {what} of {name} that are often repeated in a set, got {on_one_line(value)}: give a range "
                "(low, high)"
            )
        return Known(np.append(np.isin(column.atoms, wanted), 0.0).astype(np.float64))
    if not column.named:
        codes = {_code(joint, reader, j, x) for x in value}
        return Known(np.array([float(code in codes) for code in (0, 1)]))
    names = [str(x) for x in joint.names[j].tolist()]
    words = {str(x) for x in value}
    for word in sorted(words):
        check_name(word, names, f"expected one of the categories of {name} in given=")
    allowed = np.array([word in words for word in column.rare], dtype=np.float64)
    levels = [float(word in words) for word in column.frequent]
    if column.has_rare:
        levels.append(float(allowed @ np.array(list(column.rare.values()))))
    return Known(np.array(levels), rare=allowed)


def _code(joint: TableJoint, reader: Reader, j: int, value: Any) -> int:
    """Return yes or no, however it is written, as 1 or 0."""
    row = joint.encode(
        reader.given_rows({reader.columns.name(j) if reader.columns.names else j: value}, 1, joint.names)
    )
    code = int(row.levels[0, j])
    if code < 0:
        raise ValueError(f"expected yes or no of {reader.columns.listed([j])}, got {on_one_line(value)}")
    return code
