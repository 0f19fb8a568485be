"""The joint distribution p(x, y) = class weight × density of every block of columns: scores, fills cells, draws."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block, Columns, Table
from likely.families import (
    Density,
    EMInput,
    EMStep,
    Family,
    LinearForm,
    QuadraticForm,
    UnsolvableError,
    readable_errors,
    subtract_logs,
)
from likely.statistics import Array, JointStatistics, Labels, Responsibilities

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Scores are computed for about this many rows × classes at a time.
_TILE = 1 << 20


class Encoding(Protocol):
    """What makes other columns of those of a table."""

    @property
    def width(self) -> int:
        """The number of columns made."""
        ...

    def encoded(self, table: Table) -> Table:
        """Return the rows in other columns."""
        ...


class Part(NamedTuple):
    """A block of columns and the family they follow; None stands for all columns.

    With an encoding, what follows the family is made of the columns: such a part compares classes only.
    """

    family: Family
    columns: list[int] | None
    encoding: Encoding | None = None


class LogOdds(NamedTuple):
    """What every cell says for one class against another, in logarithms; ``base`` + their sum = the log-odds."""

    base: Array
    cells: "Array | csr_array"


@dataclass(frozen=True, eq=False)
class Joint:
    """Class weights and, for each block of columns, a density in every class."""

    classes: Labels
    """the labels, sorted"""
    weights: Array
    """p(y), one for each class"""
    parts: tuple[Part, ...]
    densities: tuple[Density, ...]
    """the blocks, and the density of each"""
    width: int
    """the number of columns of the table"""

    @classmethod
    def solve(
        cls,
        statistics: JointStatistics,
        parts: tuple[Part, ...],
        columns: Columns,
        priors: Array | None = None,
    ) -> "Joint":
        """Return the joint of greatest likelihood (or posterior); class weights are N_c/N unless they are given."""
        counts = statistics.weights.sums["weight"]
        weights = counts / counts.sum() if priors is None else priors
        densities = []
        for part, block in zip(parts, statistics.blocks, strict=True):
            try:
                densities.append(part.family.solve(block))
            except UnsolvableError as error:
                raise error.named(columns, part.columns) from None
        return cls(statistics.classes, weights, parts, tuple(densities), columns.width)

    @cached_property
    def log_weights(self) -> Array:
        """log p(y)."""
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def log_joint(self, table: Table) -> Array:
        """Return log p(x, y) for every row and class."""
        out = np.empty((table.rows, len(self.classes)))
        for tile, scores in self._tiles(table, out):
            self._score(tile, scores)
        return out

    def posterior(self, table: Table, *, log: bool = False) -> Array:
        """Return p(y | x) for every row and class, or its logarithm."""
        out = np.empty((table.rows, len(self.classes)))
        for tile, scores in self._tiles(table, out):
            self._score(tile, scores, compared=True)
            native.posterior_in_place(scores, self.log_weights, log)
        return out

    def likeliest(self, table: Table) -> NDArray[np.int64]:
        """Return the index of the likeliest class of every row."""
        found = [
            native.likeliest(self._score(tile, scores, compared=True), self.log_weights)
            for tile, scores in self._tiles(table)
        ]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def log_density(self, table: Table) -> Array:
        """Return log p(x) for every row."""
        self._must_be_density("log_density")
        found = [native.log_density(self._score(tile, scores)) for tile, scores in self._tiles(table)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def responsibilities(
        self, table: Table, codes: NDArray[np.int32] | None = None, weights: Array | None = None
    ) -> Iterator[tuple[Table, Responsibilities, float]]:
        """Cut the table into tiles, each with p(y | x) of its rows and Σ w log p(x), or log p(x, y) where y is known.

        ``codes``: the indices of the classes that are known, −1 of the others; ``weights``: how much rows count.
        """
        self._must_be_density("hidden classes")
        first = 0
        for tile, scores in self._tiles(table):
            rows = slice(first, first + tile.rows)
            first += tile.rows
            self._score(tile, scores)
            own = None if weights is None else weights[rows]
            known = None if codes is None else codes[rows]
            log_likelihood, class_weights = native.expect_classes(scores, self.log_weights, known, own)
            yield tile, Responsibilities(self.classes, scores, own, class_weights), log_likelihood

    def em_step(self, table: Table, codes: NDArray[np.int32] | None, weights: Array | None) -> EMStep | None:
        """Take a step of EM in one pass over the rows, if all columns follow one family that can; None if not."""
        self._must_be_density("hidden classes")
        if len(self.parts) != 1 or table.rows == 0:
            return None
        part, density = self.parts[0], self.densities[0]
        with readable_errors(table, part.family.expects):
            block = Block(table, part.columns)
            return part.family.em_step(EMInput(block, density, self.classes, self.log_weights, codes, weights))

    def free_parameters(self) -> int:
        """Return the dimension of the parameter space; classes without rows have no parameters."""
        k = int(np.count_nonzero(self.weights))
        chosen = zip(self.parts, self.densities, strict=True)
        return k - 1 + sum(part.family.free_parameters(density, k) for part, density in chosen)

    def log_prior(self) -> float:
        """Return the logarithm of the prior of all parameters, up to a constant."""
        chosen = zip(self.parts, self.densities, strict=True)
        return sum(part.family.log_prior(density) for part, density in chosen)

    def log_odds(self, table: Table, one: NDArray[np.int64], other: NDArray[np.int64]) -> LogOdds:
        """Return what every cell says for class ``one`` of its row against class ``other``."""
        base = subtract_logs(self.log_weights[one], self.log_weights[other])
        whole = len(self.parts) == 1 and self.parts[0].columns is None
        cells = np.zeros((0 if whole else table.rows, self.width))
        for part, density in zip(self.parts, self.densities, strict=True):
            with readable_errors(table, part.family.expects):
                odds, rest = density.log_odds(Block(table, part.columns), one, other)
            base = base + rest
            if whole:
                return LogOdds(base, odds)  # sparse if the rows are
            cells[:, part.columns] = odds
        return LogOdds(base, cells)

    def sample(self, n: int, generator: "np.random.Generator") -> tuple[Array, NDArray[np.int64]]:
        """Draw n rows: first y, then x given y. Returns the rows and the indices of their classes."""
        self._must_be_density("sample")
        codes = generator.choice(len(self.classes), size=n, p=self.weights)
        x = np.full((n, self.width), np.nan)
        for part, density in zip(self.parts, self.densities, strict=True):
            x[:, slice(None) if part.columns is None else part.columns] = density.sample(codes, generator)
        return x, codes

    @property
    def categories(self) -> dict[int, Labels]:
        """The names of the categories of every column that has such, in the order of their numbers in drawn rows."""
        return {
            column: names
            for part, density in zip(self.parts, self.densities, strict=True)
            for j, column in enumerate(self._columns(part))
            if (names := density.names_of(j)) is not None
        }

    def classes_given(self, table: Table, codes: NDArray[np.int32] | None = None) -> Array:
        """Return p(y | the cells that are there), rows × classes; where codes are known (not −1), all on that class."""
        posterior = self.posterior(table)
        if codes is not None:
            known = codes >= 0
            posterior[known] = np.eye(len(self.classes))[codes[known]]
        return posterior

    def drawn(
        self, table: Table, generator: "np.random.Generator", codes: NDArray[np.int32] | None = None
    ) -> tuple[Array, NDArray[np.int64]]:
        """Draw a class of each row given its cells, unless it is known, and then its missing cells.

        Returns all cells and the indices of the classes; only those cells that were missing are to be used.
        """
        self._must_be_density("drawing")
        drawn = draw_indices(self.classes_given(table, codes), generator)
        x = np.full((table.rows, self.width), np.nan)
        for part, density in zip(self.parts, self.densities, strict=True):
            x[:, self._columns(part)] = density.drawn(Block(table, part.columns), drawn, generator)
        return x, drawn

    def expected(self, table: Table, codes: NDArray[np.int32] | None = None) -> Array:
        """Return the mean of every cell that is missing given those that are there, or its likeliest category.

        Only those cells that were missing are to be used.
        """
        self._must_be_density("what is expected")
        posterior = self.classes_given(table, codes)
        x = np.zeros((table.rows, self.width))
        for part, density in zip(self.parts, self.densities, strict=True):
            columns, block = self._columns(part), Block(table, part.columns)
            discrete = [density.discrete(j) for j in range(len(columns))]
            if any(each is None for each in discrete):
                for c in range(len(self.classes)):
                    x[:, columns] += posterior[:, [c]] * density.expected(block, c)
            for j, each in enumerate(discrete):
                if each is not None:
                    _fill_likeliest(x[:, columns[j]], density, block, j, posterior)
        return x

    def column_posterior(
        self, table: Table, column: int, codes: NDArray[np.int32] | None = None
    ) -> tuple[Array, Array]:
        """Return the values that a column can have, and p(value | the other cells) of every row (rows × values)."""
        values = self.values_of(column)
        part, density, j = self.locate(column)
        cells = np.array(Block(table, None).dense(), dtype=np.float64, order="K")
        cells[:, column] = np.nan
        others = replace(table, cells=cells)
        posterior = self.classes_given(others, codes)
        return values, density.discrete_given(Block(others, part.columns), slice(None), j, posterior)

    def values_of(self, column: int) -> Array:
        """Return the values that a column of categories, or of 0 and 1, can have."""
        _, density, j = self.locate(column)
        found = density.discrete(j)
        if found is None:
            raise ValueError(f"expected a column of categories or of 0 and 1, got column {column}: ask for another")
        return found[0]

    def locate(self, column: int) -> tuple[Part, Density, int]:
        """Return the part that a column belongs to, its density, and the column's index in it."""
        for part, density in zip(self.parts, self.densities, strict=True):
            columns = self._columns(part)
            if column in columns:
                return part, density, columns.index(column)
        raise ValueError(f"expected a column that was learned, got column {column}, which is ignored: ask for another")

    def _columns(self, part: Part) -> list[int]:
        return list(range(self.width)) if part.columns is None else part.columns

    def linear_form(self) -> LinearForm:
        """Return θ and θ₀ of every class: the scores θ·x + θ₀ differ between classes as log p(x, y) does."""
        theta = np.zeros((len(self.classes), self.width))
        theta0 = self.log_weights.copy()
        for part, density in zip(self.parts, self.densities, strict=True):
            form = density.linear_form()
            if form is None:
                raise ValueError(
                    f"expected a boundary that is linear in the columns, got the family {part.family}, whose is not: "
                    "tie the variances of Gaussians, or ask for their quadratic_form()"
                )
            theta[:, slice(None) if part.columns is None else part.columns] = form.theta
            theta0 += form.theta0
        return LinearForm(theta, theta0)

    def quadratic_form(self) -> QuadraticForm:
        """Return A, b and c of every class: the scores xᵀAx + b·x + c differ between classes as log p(x, y) does."""
        k = len(self.classes)
        A, b, c = np.zeros((k, self.width, self.width)), np.zeros((k, self.width)), self.log_weights.copy()
        for part, density in zip(self.parts, self.densities, strict=True):
            form = density.quadratic_form()
            if form is None:
                raise ValueError(
                    f"expected a boundary quadratic in the columns, got the family {part.family}, whose is not: "
                    "ask for decision_function or explain instead"
                )
            columns = np.arange(self.width) if part.columns is None else np.asarray(part.columns)
            A[np.ix_(np.arange(k), columns, columns)] = form.A
            b[:, columns] = form.b
            c += form.c
        return QuadraticForm(A, b, c)

    def _must_be_density(self, question: str) -> None:
        for part, density in zip(self.parts, self.densities, strict=True):
            if density.no_density is not None:
                raise ValueError(
                    f"expected families with a density for {question}, got {part.family.name!r}, which only compares "
                    f"classes here: {density.no_density}"
                )

    def _tiles(self, table: Table, out: Array | None = None) -> Iterator[tuple[Table, Array]]:
        """Cut the table into tiles of rows, each with the scores to fill."""
        k = len(self.classes)
        step = max(_TILE // k, 1024)
        # Without an array for all scores, every tile takes the same one: the scores of one are gone with the next.
        scores = np.empty((min(step, table.rows), k)) if out is None else None
        for first in range(0, max(table.rows, 1), step):
            tile = table.between(first, first + step)
            yield tile, out[first : first + step] if scores is None else scores[: tile.rows]  # type: ignore[index]

    def _score(self, table: Table, out: Array, *, compared: bool = False) -> Array:
        """Fill ``out`` with log p(x, y); if classes are only compared, up to a term that they share."""
        native.begin_scores(out, self.log_weights)
        for part, density in zip(self.parts, self.densities, strict=True):
            with readable_errors(table, part.family.expects):
                add = density.add_scores if compared else density.add_log_density
                add(Block(table, part.columns), out)
        return out


def draw_indices(p: Array, generator: "np.random.Generator") -> NDArray[np.int64]:
    """Draw an index of every row by its probabilities (rows × indices)."""
    below = np.cumsum(p, axis=1)
    drawn = (generator.random(len(p))[:, None] * below[:, -1:] >= below).sum(axis=1)
    return np.asarray(np.minimum(drawn, p.shape[1] - 1))


def _fill_likeliest(x: Array, density: Density, block: Block, j: int, posterior: Array) -> None:
    """Fill the missing cells of a column with the likeliest of its values; of whole numbers with their mean."""
    values, _ = density.discrete(j) or (np.empty(0), None)
    missing = np.flatnonzero(np.isnan(block.single(j).values()[:, 0]))
    x[missing] = np.nan
    kinds = block.table.kinds
    numbers = bool(kinds) and kinds[block.number(j)] == "integer"  # taken for categories, but numbers
    step = max(_TILE // max(len(values), 1), 1)
    for first in range(0, len(missing) if len(values) else 0, step):
        rows = missing[first : first + step]
        p = density.discrete_given(block, rows, j, posterior[rows])
        x[rows] = p @ values if numbers else values[p.argmax(axis=1)]
