"""From a table of any columns to a matrix of numbers without missing cells, each column of about mean 0 and variance 1.

The map looks at no label, so it may be fitted once, before rows are assigned to folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.column_values import (
    CategoryLevels,
    CountedColumn,
    TailSeparation,
    check_width,
    column_values,
    gaussian_quantiles,
    seen_levels,
)
from likely.data.table import Table
from likely.statistics import Array, distinct

_KNOTS = 1000
_WIDEST = 1000
# Ranks are kept this far from 0 and 1, where a Gaussian has its infinities.
_TAIL = 0.001
# About so many features are written at a time.
_TILE = 1 << 16


@dataclass(frozen=True, eq=False)
class NumberFeature:
    """A column of numbers: a curve from its values to those of a Gaussian of the same rank, and whether it is missing.

    Parameters
    ----------
    knots, heights
        the curve, straight between the knots and level beyond them; empty if the column never varies
    absent
        the share of missing cells, 0 if there were none: then a missing cell says nothing
    """

    knots: Array
    heights: Array
    absent: float

    @property
    def width(self) -> int:
        """The number of features."""
        return int(len(self.knots) > 0) + int(self.absent > 0)

    @classmethod
    def fitted(cls, column: CountedColumn) -> "NumberFeature":
        """Fit the curve on a column."""
        finite = np.isfinite(column.values)
        knots, heights = _rank_curve(column.values[finite], column.counts[finite], column.separations)
        return cls(knots, heights, column.missing / column.total if column.counts.any() else 0.0)

    def validate(self) -> None:
        """Raise ValueError unless the knots rise, each with a height, and the share is one."""
        if self.knots.ndim != 1 or self.heights.shape != self.knots.shape or (np.diff(self.knots) <= 0).any():
            raise ValueError("expected knots that rise, with a height of each, got others")
        if not 0 <= self.absent < 1:
            raise ValueError(f"expected a share of missing cells from 0 to less than 1, got {self.absent!r}")

    def fill(self, cells: Array, out: Array) -> None:
        """Write the features of a column's cells."""
        missing = np.isnan(cells)
        j = 0
        if len(self.knots):
            out[:, 0] = np.interp(cells, self.knots, self.heights)
            # If cells were missing in training, too, the indicator speaks for them; else they are marginalised out.
            out[missing, 0] = 0.0 if self.absent else np.nan
            j = 1
        if self.absent:
            low, high = _standardised(self.absent)
            out[:, j] = np.where(missing, high, low)


@dataclass(frozen=True, eq=False)
class CategoryFeature(CategoryLevels):
    """A column of categories: one feature for each of its levels, or one for both if there are but two.

    A missing cell that is no level says nothing: its features are NaN. A category that is not among the levels has
    features of 0, their mean, as it had in training if levels were left out; if none were, it is like a missing cell.

    Parameters
    ----------
    levels, missing
        the names, the most frequent first, and whether missing cells are a level
    shares
        the share of the rows that each level has, that of missing cells last
    """

    shares: Array

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self._table.shape[1])

    @cached_property
    def _table(self) -> Array:
        """Return the features of every level, then of a missing cell that is none, and of another category."""
        p = self.shares
        varying = (p > 0) & (p < 1)
        safe = np.where(varying, p, 0.5)
        table = (np.eye(len(p)) - p) / np.sqrt(safe * (1 - safe))
        table = table[:, varying]
        if table.shape[1] == 2 and p.sum() > 1 - 1e-12:
            table = table[:, :1]  # one says what the other says
        other = 0.0 if p.sum() < 1 - 1e-12 else np.nan
        return np.concatenate([table, np.full((1, table.shape[1]), np.nan), np.full((1, table.shape[1]), other)])

    def validate(self) -> None:
        """Raise ValueError unless every level has a share."""
        super().validate()
        if self.shares.shape != (self.size,) or (self.shares < 0).any() or self.shares.sum() > 1 + 1e-9:
            raise ValueError(f"expected shares of {self.size} levels, of at most 1 together, got others")

    def fill(self, codes: NDArray[np.intp], out: Array) -> None:
        """Write the features of levels, by their codes."""
        out[:] = self._table[codes]


Feature = NumberFeature | CategoryFeature


@dataclass(frozen=True, eq=False)
class Features:
    """How every column of a table becomes features.

    Examples
    --------
    >>> from likely.data.column_values import counted_columns
    >>> table = Table(np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]]), categories={1: np.array(["no", "yes"])})
    >>> features = Features.fitted(counted_columns(table))
    >>> features.matrix(table).round(2)
    array([[-1.  , -0.71, -1.41],
           [ 1.  , -0.71,  0.71],
           [ 0.  ,  1.41,  0.71]], dtype=float32)
    """

    columns: tuple[Feature, ...]

    @classmethod
    def fitted(cls, columns: Sequence[CountedColumn], widest: int = _WIDEST) -> "Features":
        """Fit the map by the values of some rows: their ranks, and their most frequent levels.

        ``widest`` is how many features there may be, as far as leaving out the rarest levels can help.
        """
        made = [_category_feature(c) if c.of_categories else NumberFeature.fitted(c) for c in columns]
        return cls(_at_most(made, widest))

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where every column's features begin, and where the last ones end."""
        return np.cumsum([0, *(column.width for column in self.columns)])

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.starts[-1])

    def matrix(self, table: Table) -> NDArray[np.float32]:
        """Return the features, rows × width."""
        check_width(table, len(self.columns))
        out = np.empty((table.rows, self.width), dtype=np.float32)
        filled: list[tuple[Any, Any, slice]] = [
            (
                column,
                column.codes(table, j)
                if isinstance(column, CategoryFeature)
                else column_values(table, j, numbers=True),
                slice(self.starts[j], self.starts[j + 1]),
            )
            for j, column in enumerate(self.columns)
            if column.width
        ]
        step = max(_TILE // max(self.width, 1), 1)
        for first in range(0, table.rows, step):  # so that the columns of some rows are written while these are near
            rows = slice(first, first + step)
            for column, cells, own in filled:
                column.fill(cells[rows], out[rows, own])
        return out

    def spread(self, columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for every feature what is given for its column, rows × width."""
        return np.repeat(columns, np.diff(self.starts), axis=1)

    def by_column(self, parts: Array) -> Array:
        """Return the sums of the features of every column, rows × columns."""
        sums = np.zeros((len(parts), len(self.columns)))
        for j, (first, last) in enumerate(pairwise(self.starts.tolist())):
            sums[:, j] = parts[:, first:last].sum(axis=1)
        return sums

    def encoded(self, table: Table) -> Table:
        """Return the features as a table."""
        return Table(self.matrix(table))


def _standardised(share: float) -> tuple[float, float]:
    """Return what 0 and 1 become if 1 has this share of the rows."""
    deviation = float(np.sqrt(share * (1 - share)))
    return -share / deviation, (1 - share) / deviation


def _rank_curve(values: Array, counts: Array, separations: Sequence[TailSeparation]) -> tuple[Array, Array]:
    """Return knots and heights: the Gaussian quantile of the middle rank of every value, standardised.

    Where classes change near an end of the column, ranks leave no room between them: there it is made.
    """
    if len(values) < 2:
        return np.empty(0), np.empty(0)
    last = np.cumsum(counts)
    ranks = np.clip((last - 0.5 * counts) / last[-1], _TAIL, 1 - _TAIL)
    first = np.searchsorted(values, [separation.value for separation in separations])
    more = np.zeros(len(values))
    for index, separation in zip(first.tolist(), separations, strict=True):
        if 2 * last[index - 1] < last[-1]:
            more[:index] -= separation.deviations
        else:
            more[index:] += separation.deviations
    if len(values) > _KNOTS:
        wanted = np.linspace(0, last[-1], _KNOTS)
        kept = np.minimum(np.searchsorted(last, wanted, side="right"), len(values) - 1)
        kept = distinct(np.concatenate([kept, first, first - 1]))
        counts = np.diff(last[kept], prepend=0)
        values, ranks, more = values[kept], ranks[kept], more[kept]
    heights = gaussian_quantiles(ranks) + more
    mean = np.average(heights, weights=counts)
    deviation = np.sqrt(np.average((heights - mean) ** 2, weights=counts))
    return values, (heights - mean) / deviation


def _category_feature(column: CountedColumn) -> CategoryFeature:
    seen, counts = seen_levels(column)
    return CategoryFeature(seen.levels, seen.missing, counts / column.total)


def _at_most(columns: Sequence[Feature], widest: int) -> tuple[Feature, ...]:
    """Leave out the rarest levels until there are few enough features, or no levels left."""
    excess = sum(column.width for column in columns) - widest
    if excess <= 0:
        return tuple(columns)
    named = [
        (float(share), j)
        for j, column in enumerate(columns)
        if isinstance(column, CategoryFeature)
        for share in column.shares[: len(column.levels)]
    ]
    gone = np.bincount([j for _, j in sorted(named)[:excess]], minlength=len(columns)).tolist()
    return tuple(
        _with_fewer(column, left_out) if isinstance(column, CategoryFeature) and left_out else column
        for column, left_out in zip(columns, gone, strict=True)
    )


def _with_fewer(column: CategoryFeature, left_out: int) -> CategoryFeature:
    kept = len(column.levels) - left_out
    shares = np.delete(column.shares, np.s_[kept : kept + left_out])
    return CategoryFeature(column.levels[:kept], column.missing, shares)
