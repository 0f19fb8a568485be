"""Dates split into the parts that a model learns, or counted in days or seconds, and made from such again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.arrow import is_text, text_of
from likely.data.schema import DATE_TYPE
from likely.lazy import pa, pc

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")  # fmt: skip # noqa: E501
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIRST_WEEKDAY = 3
"""The first of January 1970, from which days are counted, was a Thursday."""
_FIRST_YEAR, _LAST_YEAR = 1, 9999
# Seconds of each unit that dates are counted in, and microseconds of one.
_SECONDS, _TICKS = {"day": 86_400, "second": 1}, 1_000_000
# What nanoseconds of 64 bits reach.
_NANOSECONDS = np.datetime64("1678-01-01", "us"), np.datetime64("2262-01-01", "us")
"""Years that timestamps can hold to the nanosecond."""


def date_part(moments: Any, part: str) -> Any:
    """Return the year as a number, and other parts by name."""
    if part == "year":
        return pc.year(moments)
    if part == "month":
        return pc.take(pa.array(_MONTHS), pc.subtract(pc.month(moments), 1))
    if part == "weekday":
        return pc.take(pa.array(_WEEKDAYS), pc.day_of_week(moments))
    return pc.hour(moments).cast(pa.string())


def counted_dates(moments: Any, unit: str, kind: pa.DataType) -> NDArray[np.float64]:
    """Return days or seconds since the first of January 1970, by the clock of a column's type; NaN if missing.

    >>> counted_dates(pa.array([90_000, None], pa.timestamp("s")), "day", pa.date32())
    array([1.04166667,        nan])
    """
    if moments.type.tz is not None:
        zone = getattr(kind, "tz", None) or moments.type.tz
        moments = pc.local_timestamp(moments.cast(pa.timestamp(moments.type.unit, zone)))
    there = moments.is_valid().to_numpy(zero_copy_only=False)
    ticks = moments.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    each = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[moments.type.unit] * _SECONDS[unit]
    whole = ticks // each  # of which floats lose no digit
    return np.where(there, whole + (ticks - whole * each) / each, np.nan)


def dates_from_counts(counts: NDArray[np.float64], unit: str) -> NDArray[np.datetime64]:
    """Return dates from days or seconds since the first of January 1970; NaT where one is missing.

    >>> dates_from_counts(np.array([1.0, np.nan]), "day")
    array(['1970-01-02T00:00:00.000000',                        'NaT'],
          dtype='datetime64[us]')
    """
    there = ~np.isnan(counts)
    first, last = (np.datetime64(f"{year:04}-01-01", "s").astype(np.int64) for year in (_FIRST_YEAR, _LAST_YEAR + 1))
    bounded = np.clip(np.where(there, counts, 0.0), first / _SECONDS[unit], (last - 1) / _SECONDS[unit])
    whole = np.floor(bounded)
    ticks = whole.astype(np.int64) * _SECONDS[unit] * _TICKS
    ticks += np.rint((bounded - whole) * (_SECONDS[unit] * _TICKS)).astype(np.int64)
    return np.where(there, ticks.astype("datetime64[us]"), np.datetime64("NaT"))


def dates_from_parts(parts: Mapping[str, Any], generator: np.random.Generator | None) -> NDArray[np.datetime64]:
    """Return dates of these parts, NaT where one is missing.

    Which day of the month it is among those of the weekday, no part says: it is drawn, or, without a generator, one in
    the middle of the month.

    >>> dates_from_parts({"year": [2023.8], "month": ["February"], "weekday": ["Thursday"], "hour": ["7"]}, None)
    array(['2024-02-15T07:00:00.000000'], dtype='datetime64[us]')
    """
    years = np.clip(np.round(np.array(parts["year"], dtype=np.float64)), _FIRST_YEAR, _LAST_YEAR)
    months, weekdays = _indices(parts["month"], _MONTHS), _indices(parts["weekday"], _WEEKDAYS)
    hours = np.array([np.nan if hour is None else int(hour) % 24 for hour in parts["hour"]], dtype=np.float64)
    there = ~np.isnan(years + months + weekdays + hours)
    since = np.where(there, (years - 1970) * 12 + months, 0).astype(np.int64).astype("datetime64[M]")
    first = since.astype("datetime64[D]")
    length = ((since + 1).astype("datetime64[D]") - first).astype(np.int64)
    start = (np.where(there, weekdays, 0).astype(np.int64) - first.astype(np.int64) - _FIRST_WEEKDAY) % 7
    weeks = (length - 1 - start) // 7 + 1
    chosen = (weeks - 1) // 2 if generator is None else generator.integers(0, weeks)
    hour = np.where(there, hours, 0).astype("timedelta64[h]")
    moments = (first + start + 7 * chosen).astype("datetime64[us]") + hour
    return np.where(there, moments, np.datetime64("NaT"))


def _indices(names: Any, known: tuple[str, ...]) -> NDArray[np.float64]:
    indices = {name: float(index) for index, name in enumerate(known)}
    return np.array([indices.get(name, np.nan) for name in names])


def in_type(moments: Any, kind: pa.DataType) -> Any:
    """Return dates as a column of some type: of days, of times, in a zone or not, or of text."""
    column = pa.array(moments, pa.timestamp("us"))
    if getattr(kind, "unit", "") == "ns":
        first, last = (pa.scalar(each, pa.timestamp("us")) for each in _NANOSECONDS)
        column = pc.min_element_wise(pc.max_element_wise(column, first, skip_nulls=False), last, skip_nulls=False)
    if is_text(kind):
        return text_of(column).cast(kind)
    if getattr(kind, "tz", None) is not None:
        column = pc.assume_timezone(column, kind.tz, ambiguous="earliest", nonexistent="earliest")
    return column.cast(kind, safe=False)


def named_type(name: str) -> pa.DataType:
    """Return the type of dates of which ``str`` gives this name; text if it is none."""
    found = re.fullmatch(DATE_TYPE, name)
    if found is None:
        return pa.string()
    return pa.timestamp(found[1], found[2]) if found[1] else pa.date32()
