"""What columns are, by their types and a sample of their cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from likely.data.arrow import casts, is_text, is_true_or_false, plain, text_of
from likely.data.cells import UnfitCellError, boolean_words, source_of, timestamps
from likely.data.dates import counted_dates, date_part, named_type
from likely.data.hashing import content_keys
from likely.data.rows import Rows
from likely.data.schema import (
    ALMOST_NUMBERS,
    COMMAS,
    FAMILIES,
    IDENTIFIER,
    KINDS,
    LARGE,
    OTHER_DATES,
    PARTS,
    Column,
    Schema,
    Seen,
    check_name,
)
from likely.lazy import pa, pc
from likely.messages import Setting

_WORDS, _MANY_WORDS = 4, 12
"""So many words on average are free text if nearly all or at least half of the cells are distinct."""
_ENOUGH = 20
"""Fewer cells than this do not show that nearly all are distinct."""
_COPIES = 10
"""So often on average at least, cells are repeated because they are categories, not since rows are copied."""
_FEW = 10
"""So many numbers that were written as text, each again and again, are the codes of categories."""
_OTHER_DATE = r"^[0-9]{1,2}([.]|/)[0-9]{1,2}([.]|/)([0-9]{4}|[0-9]{2})( .*)?$"
_COMMA = r"^[-+]?[0-9.,]*[0-9]$"
_NUMBER = r"^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"


def inferred(rows: Rows, sample: int, overrides: Mapping[str, str], *, count_dates: bool = False) -> tuple[Column, ...]:
    """Return the columns of a table."""
    names = list(rows.schema.names)
    for name, given in overrides.items():
        check_name(name, names, given=Setting.of_column(name, given))
        if given not in KINDS and given not in FAMILIES:
            known = ", ".join(map(repr, (*KINDS, *FAMILIES)))
            raise ValueError(f"expected one of {known} for column {name!r}, got {given!r}")
    table, named = rows.sample(sample), rows.names is not None
    once = cache(partial(_without_repeats, table))
    return tuple(
        _column(name, plain(table.column(name)), overrides.get(name), once, not rows.missing, named, count_dates)
        for name in names
    )


def _without_repeats(table: pa.Table) -> pa.Table:
    """Return the rows of which none is equal to one before it."""
    keys = np.concatenate([np.empty(0, dtype=np.uint64), *(content_keys(batch) for batch in table.to_batches())])
    first = np.sort(np.unique(keys, return_index=True)[1])
    return table if len(first) == len(keys) else table.take(pa.array(first))


def _column(
    name: str, cells: Any, given: str | None, once: Callable[[], Any], codes: bool, named: bool, count_dates: bool
) -> Column:
    """``once`` returns the rows without repeats, of which few columns must know."""
    source = source_of(cells.type)
    kind, note = _kind(cells, source, lambda: plain(once().column(name)), codes=codes, named=named)
    family = given if given in FAMILIES else None
    if given is not None:
        kind, note = FAMILIES.get(given, given), ""
        if given == "multinomial" and source != "text":
            raise ValueError(
                f"expected text in column {name!r} to be 'multinomial', got {cells.type}: say 'poisson' or "
                "'categorical'; counts of words are the columns of a matrix"
            )
        if source == "other" and kind != "ignore":
            raise ValueError(f"expected numbers, text, dates or yes/no in column {name!r}, got {cells.type}: ignore it")
    seen = _seen(cells, source, note)
    if kind != "date":
        extent = _range(cells) if named and kind in ("number", "integer") and source in ("number", "integer") else None
        large = LARGE if kind == "integer" and str(cells.type) == LARGE else ""
        words = boolean_words(cells) if kind == "boolean" and is_text(cells.type) else ()
        return Column(name, kind, source, family, type=large, range=extent, seen=seen, words=words)
    date_type = str(cells.type) if source == "date" else ""
    if count_dates:
        days = counted_dates(_moments(name, cells), "day", named_type(date_type))
        unit = "day" if np.all(np.isnan(days) | (days == np.floor(days))) else "second"
        return Column(name, kind, source, family, parts=(unit,), type=date_type, seen=seen)
    parts, fixed = _parts(name, cells)
    if not parts:
        seen = seen._replace(note="the same in all rows" if len(cells) else "no rows")
    return Column(name, kind, source, family, parts=parts, fixed=fixed, type=date_type, seen=seen)


def _kind(cells: Any, source: str, once: Callable[[], Any], *, codes: bool, named: bool) -> tuple[str, str]:
    if pa.types.is_null(cells.type):
        return "ignore", "all missing"
    if source == "other":
        return "ignore", f"{cells.type} is not read"
    if pa.types.is_dictionary(cells.type):
        return "category", ""
    if source == "text":
        return _kind_of_text(cells, once, codes=codes)
    # The columns of an array are all of one type, which says nothing of any of them.
    return _kind_of_numbers(cells) if named and source in ("number", "integer") else source, ""


def _kind_of_numbers(cells: Any) -> str:
    """Return what numbers are: yes/no if they are 0 and 1, integers if all are whole, whatever type holds them.

    A library may make floats of integers among which one is missing.
    """
    found = _range(cells)
    if found is None or (pa.types.is_floating(cells.type) and not is_whole(cells)):
        return source_of(cells.type)
    return "boolean" if found in ((0.0, 1.0), (0.0, 0.0)) else "integer"  # of a rare yes, a part may have none


def is_whole(cells: Any) -> bool:
    """Say whether all floats that are there are whole numbers, and none larger than integers can be.

    >>> is_whole(pa.array([1.0, None, 3.0])), is_whole(pa.array([1.0, 0.5])), is_whole(pa.array([1e300]))
    (True, False, False)
    """

    def whole(some: Any) -> bool:
        there = some.drop_null().filter(pc.invert(pc.is_nan(some.drop_null())))
        fits = pc.and_(pc.equal(there, pc.trunc(there)), pc.less(pc.abs(there), float(1 << 63)))
        return bool(pc.all(fits).as_py())

    return whole(cells.slice(0, 64)) and whole(cells)  # most are seen not to be at once


def ranges(schema: Schema, table: pa.Table) -> Schema:
    """Return the schema with the ranges of the numbers in some rows, and no others."""
    found = {name: plain(table.column(name)) for name in table.schema.names}
    columns = [
        replace(column, range=_range(found[column.name]))
        for column in schema.columns
        if column.name in found and source_of(found[column.name].type) in ("number", "integer")
    ]
    return replace(schema, columns=tuple(columns))


def _range(cells: Any) -> tuple[float, float] | None:
    """Return the least and the greatest number that is there; None if there is none, or one is infinite."""
    found = pc.min_max(cells).as_py()  # which passes over NaN
    low, high = found["min"], found["max"]
    if low is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return float(low), float(high)


def _kind_of_text(cells: Any, once: Callable[[], Any], *, codes: bool) -> tuple[str, str]:
    text = _there(cells)
    if len(text) == 0:
        return "category", "missing in the sample"
    distinct = text.unique()
    if casts(distinct, pa.float64()) and not pc.any(pc.match_substring_regex(distinct, "^0[0-9]")).as_py():
        if codes and 2 * len(distinct) <= min(2 * _FEW, len(text)):
            return "category", "text that is numbers"
        return "number", "text that is numbers"
    if is_true_or_false(distinct):
        return "boolean", "text that is true or false"
    if any(casts(distinct, kind) for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC"))):
        return "date", "text that is dates"
    word = _word_among_numbers(distinct)
    if word is not None:
        return "category", f"{ALMOST_NUMBERS} {word!r}"
    if _all(distinct, _OTHER_DATE):
        return "category", OTHER_DATES
    if _all(distinct, _COMMA) and pc.any(pc.match_substring(distinct, ",")).as_py():
        return "category", COMMAS
    share = len(distinct) / len(text)
    if len(distinct) >= _ENOUGH and len(text) < _COPIES * len(distinct):
        # Rows that are copied, or drawn again and again, make no categories of sentences.
        share = len(distinct) / len(_there(once()))
    words = 1 + pc.mean(pc.count_substring_regex(text, r"\s+")).as_py()
    if len(text) > 1 and ((words >= _WORDS and share >= 0.8) or (words >= _MANY_WORDS and share >= 0.5)):
        return "text", ""
    if len(text) >= _ENOUGH and len(distinct) >= 0.9 * len(text):
        return "category", IDENTIFIER
    return "category", ""


def _there(cells: Any) -> Any:
    """Return the text that is there, without spaces around it."""
    text = pc.utf8_trim_whitespace(cells).drop_null()
    return text.filter(pc.not_equal(text, ""))


def _word_among_numbers(distinct: Any) -> str | None:
    """Return the word that alone keeps a column from being numbers: it may stand for a missing cell."""
    words = distinct.filter(pc.invert(pc.match_substring_regex(distinct, _NUMBER)))
    return words[0].as_py()[:24] if len(words) == 1 and len(distinct) > _FEW else None


def _all(text: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def _parts(name: str, cells: Any) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the parts of dates that differ, and of the others what they are in all rows."""
    moments = _moments(name, cells)
    found = {part: date_part(moments, part).drop_null().unique().cast(pa.string()) for part in PARTS}
    fixed = {part: values[0].as_py() for part, values in found.items() if len(values) == 1}
    return tuple(part for part in PARTS if len(found[part]) > 1), fixed


def _moments(name: str, cells: Any) -> Any:
    try:
        return timestamps(cells)
    except UnfitCellError as error:  # in a sample, whose rows have no numbers
        raise ValueError(error.sentence(name)) from None


def _seen(cells: Any, source: str, note: str) -> Seen:
    missing = cells.null_count
    if source == "number" and pa.types.is_floating(cells.type):
        missing += pc.sum(pc.is_nan(cells)).as_py() or 0
    example, distinct = "", 0
    if source != "other" and missing < len(cells):
        distinct = pc.count_distinct(text_of(cells) if pa.types.is_dictionary(cells.type) else cells).as_py()
        distinct -= missing > cells.null_count  # NaN
        shown = text_of(cells.drop_null().slice(0, 64)).drop_null()
        example = " ".join(shown[0].as_py().split())[:24] if len(shown) else ""
    return Seen(distinct, missing, len(cells), example, note)
