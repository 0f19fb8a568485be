"""How good a joint of a whole table is on other rows: log p(x), and each cell hidden and predicted by all others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Table
from likely.density.columns import Encoded, NumberColumn
from likely.density.table import Distribution, TableJoint, finite_cells
from likely.density.topics import pieces
from likely.lazy import pa
from likely.messages import printable
from likely.model.questions import labels_in_text
from likely.model.readers import Reader
from likely.statistics import Array

if TYPE_CHECKING:
    import pyarrow

# Of intervals it is counted how many cells they hold.
COVERAGE = 0.9
HEADS = {
    "rmse": "RMSE / sd",
    "r2": "R²",
    "crps": "CRPS / sd",
    "coverage": f"in {100 * COVERAGE:.0f} %",
    "accuracy": "accuracy",
    "log_loss": "log-loss",
    "most_frequent": "most frequent",
}
"""What measures are called in print."""


class NumberSums(NamedTuple):
    """What is added up over the cells of a column of numbers: second moments in a unit of their own."""

    unit: float
    cells: int
    weight: float
    mean: float
    scatter: float
    """the weighed sum of (cell − mean)², in squares of the unit"""
    squares: float
    """the weighed sum of (predicted − cell)², in squares of the unit"""
    crps: float
    """the weighed sum of E|X − cell| − ½ E|X − X'|, in the unit"""
    covered: float
    """the weight of the cells within their intervals"""

    @classmethod
    def of(cls, truth: Array, spread: Distribution, weights: Array) -> Self:
        """Add up over cells, which have these distributions given the others of their rows."""
        values, p = spread
        largest = max(float(np.abs(truth).max()), np.finfo(np.float64).tiny)
        mean = largest * float(np.average(truth / largest, weights=weights))
        error, deviation = p @ values - truth, truth - mean
        # Squares of huge numbers would be infinite, and those of tiny ones 0.
        unit = max(float(np.abs(error).max()), float(np.abs(deviation).max()), np.finfo(np.float64).tiny)
        running, ends = np.cumsum(p, axis=1), interval(spread, COVERAGE)
        apart = (running[:, :-1] * (1 - running[:, :-1])) @ (np.diff(values) / unit)
        crps = (p * (np.abs(values - truth[:, None]) / unit)).sum(axis=1) - apart
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        return cls(
            unit,
            len(truth),
            float(weights.sum()),
            mean,
            float(weights @ (deviation / unit) ** 2),
            float(weights @ (error / unit) ** 2),
            float(weights @ crps),
            float(weights @ inside),
        )

    def in_unit(self, unit: float) -> Self:
        """Return the same sums in another unit."""
        ratio = self.unit / unit
        return self._replace(
            unit=unit, scatter=ratio**2 * self.scatter, squares=ratio**2 * self.squares, crps=ratio * self.crps
        )

    def plus(self, other: Self) -> Self:
        """Return the sums of the cells of both."""
        if not other.cells or not self.cells:
            return self if self.cells else other
        away = other.mean - self.mean
        unit = max(self.unit, other.unit, abs(away))
        one, two = self.in_unit(unit), other.in_unit(unit)
        weight = self.weight + other.weight
        return self._replace(
            unit=unit,
            cells=self.cells + other.cells,
            weight=weight,
            mean=self.mean + away * (other.weight / weight),
            scatter=one.scatter + two.scatter + (away / unit) ** 2 * (self.weight * other.weight / weight),
            squares=one.squares + two.squares,
            crps=one.crps + two.crps,
            covered=self.covered + other.covered,
        )

    @property
    def measures(self) -> dict[str, float]:
        """All measures by name: errors in standard deviations of the column, which a constant column has none of."""
        if not self.cells:
            return dict.fromkeys(("rmse", "r2", "crps", "coverage"), np.nan)
        varies = self.scatter > 0
        share = self.squares / self.scatter if varies else np.nan
        deviation = np.sqrt(self.scatter / self.weight)
        crps = self.crps / self.weight / deviation if varies else np.nan
        return {
            "rmse": float(np.sqrt(share)),
            "r2": 1 - share,
            "crps": float(crps),
            "coverage": self.covered / self.weight,
        }


_NO_NUMBERS = NumberSums(1.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class CategorySums(NamedTuple):
    """What is added up over the cells of a column of categories."""

    cells: int
    weights: Mapping[str, float]
    """of the cells of each category"""
    correct: float
    loss: float
    """the weighed sum of −log p(the category that came true)"""
    unseen: int
    """cells of categories that were never learned: nothing is measured of them"""

    @classmethod
    def of(cls, names: list[str], truth: NDArray[np.int64], p: Array, weights: Array, unseen: int) -> Self:
        """Add up over cells: the index of each category among the names, and p(category | the other cells)."""
        own = p[np.arange(len(truth)), truth]
        counts = np.bincount(truth, weights, minlength=len(names))
        return cls(
            len(truth),
            {name: float(count) for name, count in zip(names, counts, strict=True) if count > 0},
            float(weights @ (p.argmax(axis=1) == truth)),
            float(weights @ -np.log(np.maximum(own, np.finfo(np.float64).tiny))),
            unseen,
        )

    def plus(self, other: Self) -> Self:
        """Return the sums of the cells of both."""
        weights = dict(self.weights)
        for name, weight in other.weights.items():
            weights[name] = weights.get(name, 0.0) + weight
        correct, loss = self.correct + other.correct, self.loss + other.loss
        return type(self)(self.cells + other.cells, weights, correct, loss, self.unseen + other.unseen)

    @property
    def measures(self) -> dict[str, float]:
        """All measures by name."""
        if not self.cells:
            return dict.fromkeys(("accuracy", "log_loss", "most_frequent"), np.nan)
        total = sum(self.weights.values())
        return {
            "accuracy": self.correct / total,
            "log_loss": self.loss / total,
            "most_frequent": max(self.weights.values()) / total,
        }


ColumnSums = NumberSums | CategorySums


class TableSums(NamedTuple):
    """What is added up over rows: all measures follow from it."""

    rows: int
    weight: float
    log_density: float
    columns: Mapping[str, ColumnSums]
    """of each column but texts, by name or number"""

    @classmethod
    def of(cls, joint: TableJoint, reader: Reader, table: Table, weights: Array | None) -> "TableSums":
        """Ask the joint about rows; those of weight 0 count for nothing."""
        if weights is not None and not (weights > 0).all():
            table, weights = table.taken(weights > 0), weights[weights > 0]
        every = np.ones(table.rows) if weights is None else weights
        found = _nothing(joint, reader)
        for where, part in joint.parts(table):
            first = where.start
            for rows in pieces(joint.encode(part)):
                last = first + rows.rows
                log = float(every[first:last] @ joint.combination.log_density(rows))
                own = table.between(first, last)
                columns = {
                    reader.columns.name(j): _of_column(joint, reader, j, rows, own, every[first:last])
                    for j in _measured(joint)
                }
                found = found.plus(cls(rows.rows, float(every[first:last].sum()), log, columns))
                first = last
        return found

    def plus(self, other: "TableSums") -> "TableSums":
        """Return the sums of the rows of both."""
        columns: dict[str, ColumnSums] = {}
        for name, one in self.columns.items():
            two: Any = other.columns[name]
            columns[name] = one.plus(two)
        weight, log = self.weight + other.weight, self.log_density + other.log_density
        return TableSums(self.rows + other.rows, weight, log, columns)


def _measured(joint: TableJoint) -> list[int]:
    """Return the columns of which cells are predicted: all but texts, and those without any category."""
    columns = enumerate(joint.columns)
    return [j for j, c in columns if j not in joint.text_columns and (isinstance(c, NumberColumn) or c.counts.sum())]


def _nothing(joint: TableJoint, reader: Reader) -> TableSums:
    columns: dict[str, ColumnSums] = {}
    for j in _measured(joint):
        number = isinstance(joint.columns[j], NumberColumn)
        columns[reader.columns.name(j)] = _NO_NUMBERS if number else CategorySums(0, {}, 0.0, 0.0, 0)
    return TableSums(0, 0.0, 0.0, columns)


def _of_column(joint: TableJoint, reader: Reader, j: int, rows: Encoded, table: Table, weights: Array) -> ColumnSums:
    """Hide the cells of a column, and predict each by the others of its row."""
    column, there = joint.columns[j], rows.levels[:, j] >= 0
    asked = rows.taken(there).hiding(j)
    p = joint.combination.marginals(asked, [j])[0] if there.any() else np.zeros((0, column.support))
    if isinstance(column, NumberColumn):
        if not there.any():
            return _NO_NUMBERS
        spread = joint.distribution(column, p, None, j)
        return NumberSums.of(finite_cells(table, j)[there], spread, weights[there])
    values = joint.values_of(j)
    codes = Block(table, [j]).values()[:, 0]
    known = codes[there].astype(np.int64)
    if column.named:
        index = {str(value): k for k, value in enumerate(values.tolist())}
        known = np.array([index.get(str(name), -1) for name in table.categories[j].tolist()], dtype=np.int64)[known]
    unseen = int((~np.isnan(codes) & ~there).sum())
    names = labels_in_text(reader.as_asked(j, values))
    return CategorySums.of(names, known, joint.named_values(j, p), weights[there], unseen)


def interval(spread: Distribution, coverage: float) -> Array:
    """Return between what a number lies with a probability of ``coverage``, rows × 2."""
    return quantiles(spread, np.array([(1 - coverage) / 2, (1 + coverage) / 2]))


def quantiles(spread: Distribution, q: Array) -> Array:
    """Return quantiles of the distribution of each row, rows × quantiles."""
    running = np.cumsum(spread.p, axis=1)
    places = [(running < at - 1e-12).sum(axis=1) for at in q]
    return np.asarray(spread.values[np.minimum(np.stack(places, axis=1), len(spread.values) - 1)])


def _left_out(sums: ColumnSums) -> str:
    """Say how many cells nothing is measured of."""
    return f"  and {sums.unseen:,} never seen" if isinstance(sums, CategorySums) and sums.unseen else ""


@dataclass(frozen=True, eq=False, repr=False)
class TableEvaluation:
    """How good a model of a whole table is on other rows.

    Of each cell it is measured how well it is predicted by all others of its row, as if it were missing.

    Attributes
    ----------
    sums
        what was added up over the rows
    folds
        into how many cross-validation folds the rows were split; None if a fitted model was asked about them

    Examples
    --------
    >>> from likely import Model
    >>> from likely.datasets import penguins
    >>> found = Model("tree").evaluate(penguins(), folds=3)
    >>> found
    TableEvaluation(344 rows, 8 columns, 3 folds)
    >>> found.measures["island"]["accuracy"] > found.measures["island"]["most_frequent"]
    True
    """

    sums: TableSums
    folds: int | None = None

    @property
    def rows(self) -> int:
        """How many rows were asked about."""
        return self.sums.rows

    @property
    def log_density(self) -> float:
        """The mean of log p(x) over the rows."""
        return self.sums.log_density / self.sums.weight

    @property
    def measures(self) -> dict[str, dict[str, float]]:
        """All measures by column and name.

        Of numbers ``rmse`` and ``crps`` (the continuous ranked probability score) are in standard deviations of the
        column, ``r2`` is the share of its variance that is explained, and ``coverage`` the share of the cells within
        their 90 % intervals. Of categories ``accuracy`` stands beside the share of the ``most_frequent`` one, and
        ``log_loss`` is the mean of −log p(the category that came true).
        """
        return {name: column.measures for name, column in self.sums.columns.items()}

    def as_table(self) -> "pyarrow.Table":
        """Return the measures as an Arrow table, a row for each column; what a column has not is null."""
        names = ("rmse", "r2", "crps", "coverage", "accuracy", "log_loss", "most_frequent")
        found = list(self.sums.columns.values())
        measures = [{name: x for name, x in each.measures.items() if not np.isnan(x)} for each in found]
        unseen = [each.unseen if isinstance(each, CategorySums) else None for each in found]
        return pa.table(
            {
                "column": pa.array(list(self.sums.columns), pa.string()),
                "kind": pa.array(["number" if isinstance(each, NumberSums) else "category" for each in found]),
                "cells": pa.array([each.cells for each in found], pa.int64()),
                **{name: pa.array([each.get(name) for each in measures], pa.float64()) for name in names},
                "unseen": pa.array(unseen, pa.int64()),
            }
        )

    def __repr__(self) -> str:
        folds = "" if self.folds is None else f", {self.folds} folds"
        return f"{type(self).__name__}({self.rows:,} rows, {len(self.sums.columns)} columns{folds})"

    @property
    def title(self) -> str:
        """What was asked, in a line."""
        how = f", each by a model of the other {self.folds - 1} of {self.folds} folds" if self.folds else ""
        return f"{self.rows:,} rows{how}: log p(x) {self.log_density:.4f} on average"

    def __str__(self) -> str:
        wide = max([len(printable(name)) for name in self.sums.columns] + [6])
        lines = [self.title]
        for kind in (NumberSums, CategorySums):
            own = {name: each for name, each in self.sums.columns.items() if isinstance(each, kind)}
            heads = [HEADS[name] for name in next(iter(own.values())).measures] if own else []
            if own:
                lines += ["", " ".join([f"{'column':<{wide}}", f"{'cells':>9}", *(f"{head:>13}" for head in heads)])]
            for name, each in own.items():
                cells = [f"{'' if np.isnan(x) else f'{x:.4f}':>13}" for x in each.measures.values()]
                lines.append(" ".join([f"{printable(name):<{wide}}", f"{each.cells:>9,}", *cells]) + _left_out(each))
        return "\n".join(lines)
