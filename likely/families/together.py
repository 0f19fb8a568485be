"""The joint categorical: several columns of named categories, with a probability for every combination.

Statistics count the combinations that rows have. Where a cell is missing, a combination lacks that column: its rows
count for all that it may be, in the proportions that make all of them likeliest (expectation and maximisation on the
counts alone, no row is seen again). So any split of the rows gives the same model, and a missing cell says nothing.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block, Table
from likely.em import iterate
from likely.families.base import Codes, Density, subtract_logs
from likely.families.categorical import Named, NamedDensity, log_dirichlet, names_in, within_classes, without_unseen
from likely.statistics import Array, Assignment, Labels, Responsibilities, SomeRows, Statistics

MOST_COLUMNS = 8
"""The most columns taken together: what each says of a class is a mean over all sets of the others."""
MOST_COMBINATIONS = 1_000_000
_MOST_CELLS = 1 << 25
_STEPS, _CLOSE = 10_000, 1e-13


class Together(Named):
    """Columns of named categories, all combinations of which have a probability of their own."""

    name = "categories together"
    expects = "a category by its name"

    def _collect(self, block: Block, assignment: Assignment | Responsibilities) -> Statistics:
        cells, names = combined(block)
        one = Block(Table(cells[:, None], categories={0: names}), None)
        counted = super()._collect(one, assignment)
        return Statistics({**counted.sums, "columns": np.zeros(block.width)}, counted.axes, counted.labels)

    def solve(self, statistics: Statistics) -> "TogetherDensity":
        """Return p of every combination, (count + λ) / Σ (count + λ), with expected counts where cells are missing."""
        seen = without_unseen(statistics)
        rows, names = _read(seen)
        shape = tuple(len(each) for each in names)
        cells = len(seen.labels["class"]) * prod(shape)
        if cells > _MOST_CELLS:
            raise ValueError(
                f"expected at most {_MOST_CELLS:,} combinations of categories and classes, got {cells:,}: take fewer "
                "columns together"
            )
        known = [{name: i for i, name in enumerate(each)} for each in names]
        patterns: dict[tuple[int, ...], tuple[list[int], list[tuple[int, ...]]]] = {}
        for i, row in enumerate(rows):
            missing = tuple(j for j, name in enumerate(row) if name is None)
            numbers, indices = patterns.setdefault(missing, ([], []))
            numbers.append(i)
            indices.append(tuple(0 if name is None else known[j][name] for j, name in enumerate(row)))
        counts = {}
        for missing, (numbers, indices) in patterns.items():
            held = tuple(1 if j in missing else size for j, size in enumerate(shape))
            counted = np.zeros((len(seen.sums["count"]), *held))
            counted[(slice(None), *np.array(indices).T)] = seen.sums["count"][:, numbers]
            counts[missing] = counted
        return TogetherDensity(names, self._solved(counts, (len(seen.sums["count"]), *shape)))

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the number of combinations in every class, less one: probabilities sum to 1."""
        assert isinstance(density, TogetherDensity)
        return classes * max(int(density.shares[0].size) - 1, 0)

    def log_prior(self, density: Density) -> float:
        """Return Σ λ log p of all combinations."""
        assert isinstance(density, TogetherDensity)
        p = density.shares.reshape(density.classes, -1)
        return log_dirichlet(self.pseudo_counts(*p.shape), p)

    def size(self, statistics: Statistics) -> int:
        """Return the number of combinations, or raise ValueError if there are too many, or a label is none."""
        return prod(len(names) for names in _read(statistics)[1])

    def _solved(self, counts: dict[tuple[int, ...], Array], shape: tuple[int, ...]) -> Array:
        flat = shape[0], prod(shape[1:])
        whole = np.broadcast_to(self.pseudo_counts(*flat), flat).reshape(shape) + counts.pop((), 0.0)

        def normalised(counted: Array) -> Array:
            return within_classes(counted.reshape(flat)).reshape(shape)

        def step(p: Array) -> Array:
            expected = whole.copy()
            for gone, counted in counts.items():
                margin = p.sum(axis=tuple(j + 1 for j in gone), keepdims=True)
                expected += p * np.divide(counted, margin, out=np.zeros_like(counted), where=margin > 0)
            return normalised(expected)

        def change(new: Array, old: Array) -> float:
            return float(np.abs(new - old).max(initial=0.0))

        # Missing cells at first count as if columns said nothing of each other.
        start = normalised(whole + sum(each / prod(shape[j + 1] for j in gone) for gone, each in counts.items()))
        return iterate(start, step, change, tolerance=_CLOSE, most=_STEPS if counts else 0).at


def combined(block: Block) -> tuple[Array, Labels]:
    """Return columns of categories as one: the index of every row's combination, NaN if all is missing, and the names.

    >>> table = Table(np.array([[0.0, 1.0], [0.0, np.nan]]), categories={0: np.array(["a"]), 1: np.array(["x", "y"])})
    >>> combined(Block(table, None))
    (array([0., 1.]), array(['["a", "y"]', '["a", null]'], dtype=object))
    """
    _check(block.width, 0)
    names = [names_in(block, j) for j in range(block.width)]
    sizes = [len(each) + 1 for each in names]
    if prod(sizes) > 2**53:
        _check(block.width, prod(sizes))
    flat = np.zeros(block.table.rows)
    for j, size in enumerate(sizes):
        flat = flat * size + _line_indices(block, j, np.arange(size - 1), size - 1)
    seen = np.unique(flat)
    labels = [
        json.dumps([None if p == len(each) else str(each[p]) for p, each in zip(indices, names, strict=True)])
        for indices in np.column_stack(np.unravel_index(seen.astype(np.int64), sizes)).tolist()
    ]
    cells = np.searchsorted(seen, flat).astype(np.float64)
    cells[flat == prod(sizes) - 1] = np.nan  # nothing is known of the row
    return cells, np.array(labels, dtype=object)


def combinations_of(labels: Labels, width: int) -> list[list[str | None]]:
    """Return the categories that each label combines, None where a cell is missing; ValueError if it is no label.

    >>> combinations_of(np.array(['["no", null]'], dtype=object), 2)
    [['no', None]]
    """
    rows = []
    for label in labels:
        try:
            row = json.loads(label)
        except (ValueError, RecursionError):
            row = None
        fits = (
            isinstance(row, list) and len(row) == width and all(name is None or isinstance(name, str) for name in row)
        )
        if not fits or all(name is None for name in row) or json.dumps(row) != label:
            raise ValueError(f"expected a combination of {width} categories, got {str(label)[:80]!r}")
        rows.append(row)
    return rows


def _read(statistics: Statistics) -> tuple[list[list[str | None]], tuple[Labels, ...]]:
    """Return the combinations that were counted, and the categories of each column."""
    width = len(statistics.sums["columns"])
    rows = combinations_of(statistics.labels["category"]["value"], width)
    names = tuple(
        np.array(sorted({name for row in rows if (name := row[j]) is not None}), dtype=object) for j in range(width)
    )
    _check(width, prod(len(each) for each in names))
    return rows, names


def _check(columns: int, cells: int) -> None:
    if columns > MOST_COLUMNS:
        raise ValueError(f"expected at most {MOST_COLUMNS} columns together, got {columns}: take fewer")
    if cells > MOST_COMBINATIONS:
        raise ValueError(
            f"expected at most {MOST_COMBINATIONS:,} combinations of categories, got {cells:,}: take fewer columns "
            "together"
        )


def _line_indices(block: Block, j: int, line: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the index of every row's cell in column j, ``size`` if it has none.

    ``line`` has the index of every category as the block numbers them, −1 if it has none.
    """
    cells = block.single(j).values()[:, 0]
    codes = np.where(np.isnan(cells), len(line), cells).astype(np.int64)
    return np.append(np.where(line < 0, size, line), size)[codes]


@dataclass(frozen=True, eq=False)
class TogetherDensity(Density):
    """The probabilities of all combinations of the categories of some columns."""

    names: tuple[Labels, ...]
    """the categories of each column"""
    shares: Array
    """classes × the categories of the first column × those of the second × …"""
    domain = Together.domain

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.shares)

    def names_of(self, j: int) -> Labels:
        """Return the names of a column's categories."""
        return self.names[j]

    @cached_property
    def _with_margins(self) -> Array:
        """The probabilities, with one more index on every axis for all categories of that column together."""
        whole = self.shares
        for axis in range(1, whole.ndim):
            whole = np.concatenate([whole, whole.sum(axis=axis, keepdims=True)], axis=axis)
        # Nothing known of a row is certain, and nothing may be all that there is.
        whole.reshape(self.classes, -1)[:, -1] = 1.0
        return whole

    @cached_property
    def _log_probabilities(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.ascontiguousarray(np.log(self._with_margins.reshape(self.classes, -1)).T)

    @cached_property
    def _known(self) -> list[dict[object, int]]:
        return [{name: i for i, name in enumerate(each)} for each in self.names]

    def _rows(self, block: Block, rows: SomeRows = slice(None)) -> NDArray[np.int64]:
        """Return where rows are on every axis, rows × columns; what is missing or unknown has the last index."""
        lines = [
            np.array([known.get(name, -1) for name in names_in(block, j)], dtype=np.int64)
            for j, known in enumerate(self._known)
        ]
        return np.column_stack(
            [_line_indices(block, j, line, len(self.names[j]))[rows] for j, line in enumerate(lines)]
        )

    def _flat(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.ravel_multi_index(tuple(rows.T), self._with_margins.shape[1:])
        return np.asarray(found, dtype=np.int64)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add the log probability of every row's categories; of those that are missing, of all they may be."""
        cells = self._flat(self._rows(block)).astype(np.float64)[:, None]
        n = len(self._log_probabilities)
        values, starts = np.arange(n, dtype=np.float64), np.array([0, n])
        native.score_categories(cells, None, self.domain, values, starts, self._log_probabilities, out)

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each class given."""
        empty = np.tile([len(each) for each in self.names], (len(codes), 1))
        return self._completed(empty, codes, generator)

    def drawn(self, block: Block, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw the missing cells of rows of the given classes, given those that are there."""
        return self._completed(self._rows(block), codes, generator)

    def _completed(self, rows: NDArray[np.int64], codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw one column after the other, each given those before it."""
        for j, names in enumerate(self.names):
            missing = np.flatnonzero(rows[:, j] == len(names))
            if len(missing) == 0 or len(names) == 0:
                continue
            below = np.cumsum(self._given(rows[missing], j, codes[missing]), axis=1)
            u = generator.random(len(missing))[:, None] * below[:, -1:]
            rows[missing, j] = np.minimum((u >= below).sum(axis=1), len(names) - 1)
        cells = rows.astype(np.float64)
        cells[rows == np.array([len(each) for each in self.names])] = np.nan
        return cells

    def _given(self, rows: NDArray[np.int64], j: int, codes: Codes) -> Array:
        """Return the probability of every category of column j in rows of given classes, given their other columns."""
        indices: list[NDArray[np.int64]] = [codes, *rows.T]
        indices = [each[:, None] for each in indices]
        indices[j + 1] = np.arange(len(self.names[j]))[None, :]
        p: Array = self._with_margins[tuple(indices)]
        total = p.sum(axis=1, keepdims=True)
        # What no row of the class could be says nothing of the column.
        return np.asarray(
            np.where(total > 0, p / np.where(total > 0, total, 1.0), self._column_probabilities(j)[codes])
        )

    def _column_probabilities(self, j: int) -> Array:
        return np.asarray(self.shares.sum(axis=tuple(i + 1 for i in range(len(self.names)) if i != j)))

    def discrete(self, j: int) -> tuple[Array, Array]:
        """Return the categories of a column and their probabilities, whatever the others hold."""
        return np.arange(len(self.names[j]), dtype=np.float64), self._column_probabilities(j)

    def discrete_given(self, block: Block, rows: SomeRows, j: int, posterior: Array) -> Array:
        """Return the probabilities of column j's values in some rows, given their other columns."""
        indices = self._rows(block, rows)
        found = np.zeros((len(indices), len(self.names[j])))
        for c in range(self.classes):
            found += posterior[:, [c]] * self._given(indices, j, np.full(len(indices), c))
        return found

    def column(self, j: int) -> NamedDensity:
        """Return the density of one column, whatever the others hold."""
        values, p = self.discrete(j)
        return NamedDensity(values, np.array([0, len(values)]), p, self.domain, self.names[j])

    def log_odds(self, block: Block, one: Codes, other: Codes) -> tuple[Array, Array]:
        """Return what every cell says, in the mean over all orders in which the cells could be read."""
        rows, m = self._rows(block), len(self.names)
        last = np.array([len(each) for each in self.names])

        def odds_of(columns: tuple[int, ...]) -> Array:
            part = np.tile(last, (len(rows), 1))
            part[:, columns] = rows[:, columns]
            flat = self._flat(part)
            return subtract_logs(self._log_probabilities[flat, one], self._log_probabilities[flat, other])

        of = {columns: odds_of(columns) for size in range(m + 1) for columns in combinations(range(m), size)}
        odds = np.zeros((len(rows), m))
        for columns, before in of.items():
            weight = factorial(len(columns)) * factorial(m - len(columns) - 1) / factorial(m) if len(columns) < m else 0
            for j in set(range(m)) - set(columns):
                after = of[tuple(sorted((*columns, j)))]
                odds[:, j] += weight * np.where(after == before, 0.0, after - before)
        return odds, np.zeros(len(rows))
