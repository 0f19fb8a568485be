"""Classes that are mixtures: within each class, several components, each with the families of the columns.

To everything above, it is a family of all columns: sums that add, a density in every class. Which component a row of a
class comes from is hidden, and found by expectation maximisation, class by class.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Columns, Table
from likely.families import Density, Family, subtract_logs
from likely.families.base import Codes
from likely.joint import Joint, Part, draw_indices
from likely.learn.hidden import EMResult, Hidden
from likely.learn.mixtures import MixtureTask, Search, search_mixture
from likely.learn.one_pass import collect
from likely.messages import printable
from likely.statistics import Array, Assignment, JointStatistics, Labels, Responsibilities, SomeRows, Statistics

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Scores are computed for about this many rows × components at a time.
_TILE = 1 << 20


@dataclass(frozen=True, eq=False)
class MixedStatistics(Statistics):
    """Statistics of the first component of every class, of the second, and so on; no rows where a class has fewer."""

    components: tuple[JointStatistics, ...] = ()

    @classmethod
    def of(cls, components: tuple[JointStatistics, ...]) -> "MixedStatistics":
        """Return the statistics of components that have the same classes."""
        classes = components[0].classes if components else np.zeros(0)
        return cls({}, {}, {"class": classes}, components=components)

    def __add__(self, other: Statistics) -> "MixedStatistics":
        return self._with(other, operator.add)

    def __sub__(self, other: Statistics) -> "MixedStatistics":
        return self._with(other, operator.sub)

    def _with(
        self, other: Statistics, how: Callable[[JointStatistics, JointStatistics], JointStatistics]
    ) -> "MixedStatistics":
        assert isinstance(other, MixedStatistics)
        pairs = zip(self.components, other.components, strict=True)
        return self.of(tuple(how(one, two) for one, two in pairs))

    def __mul__(self, factor: float) -> "MixedStatistics":
        return self.of(tuple(each * factor for each in self.components))

    __rmul__ = __mul__

    def aligned(self, labels: Mapping[str, Labels]) -> "MixedStatistics":
        """Return these statistics with more classes."""
        return self.of(tuple(each.with_classes(labels["class"]) for each in self.components))

    def of_classes(self, indices: slice, labels: Labels) -> "MixedStatistics":
        """Return the statistics of some of the classes, under other labels."""
        return self.of(tuple(each.of_classes(indices, labels) for each in self.components))

    @property
    def weights(self) -> Array:
        """The weight of every class's rows in every component, components × classes."""
        return np.array([each.weights.sums["weight"] for each in self.components])


@dataclass(frozen=True, eq=False)
class MixedDensity(Density):
    """Σ of components' weights × densities, in every class."""

    labels: Labels
    """the labels of the classes"""
    inner: Joint
    """the joint of all components: the first of every class, the second, and so on"""
    weights: Array = field(repr=False)
    """of each class's components, classes × components"""

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.weights)

    def add_log_density(self, block: Block, out: Array) -> None:
        """Add log p(x | class) of every row."""
        for rows, scores in self._scores(block.table):
            top = scores.max(axis=1)
            safe = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                out[rows] += safe + np.log(np.exp(scores - safe[:, None]).sum(axis=1))

    def _scores(self, table: Table) -> Iterator[tuple[slice, Array]]:
        """Return tiles of rows, each with log (weight × density), rows × components × classes."""
        m, k = self.weights.shape[1], self.classes
        step = max(_TILE // (m * k), 256)
        for first in range(0, max(table.rows, 1), step):
            tile = table.between(first, first + step)
            found = self.inner.log_joint(tile).reshape(tile.rows, m, k)
            yield slice(first, first + tile.rows), np.where(self.weights.T > 0, found, -np.inf)

    def responsibilities(self, table: Table) -> Array:
        """Return p(component | class, x), rows × components × classes; without cells that tell, the weights."""
        out = np.empty((table.rows, *self.weights.T.shape))
        for rows, scores in self._scores(table):
            out[rows] = self._normalised(scores)
        return out

    def _normalised(self, scores: Array) -> Array:
        """Return responsibilities of components that add up to 1 in every class."""
        top = scores.max(axis=1, keepdims=True)
        known = np.isfinite(top)
        p = np.exp(np.where(known, scores - np.where(known, top, 0.0), 0.0)) * (self.weights.T > 0)
        return np.where(known, p / np.where(known, p.sum(axis=1, keepdims=True), 1.0), self.weights.T)

    def collected(self, table: Table, assignment: Assignment) -> MixedStatistics:
        """Collect rows, for each of which the components of its class are responsible."""
        classes, codes, weights = assignment
        known = np.isin(classes, self.labels)
        if not known.all():
            raise ValueError(
                f"expected classes whose components are known, got {classes[~known].tolist()[0]!r}: fit all together"
            )
        # No class has the code −1, which is the index after the last.
        own = np.append(np.searchsorted(self.labels, classes), -1)[codes]
        found = []
        for rows, scores in self._scores(table):
            p = self._normalised(scores) * (own[rows, None] == np.arange(self.classes))[:, None]
            counted = None if weights is None else weights[rows]
            r = Responsibilities(self.inner.classes, np.ascontiguousarray(p.reshape(len(p), -1)), counted)
            tile = table.between(rows.start, rows.stop)
            found.append(collect(tile, r, self.inner.parts, self.inner.densities))
        total, k = reduce(operator.add, found), self.classes
        numbers = range(self.weights.shape[1])
        return MixedStatistics.of(tuple(total.of_classes(slice(m * k, (m + 1) * k), self.labels) for m in numbers))

    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each of the given classes: first a component."""
        components = draw_indices(self.weights[codes], generator) * self.classes + codes
        x = np.full((len(components), self._width), np.nan)
        for part, density in zip(self.inner.parts, self.inner.densities, strict=True):
            x[:, self._indices(part)] = density.sample(components, generator)
        return x

    @property
    def _columns(self) -> list[int] | None:
        return columns_of(self.inner.parts)

    @property
    def _width(self) -> int:
        return self.inner.width if self._columns is None else len(self._columns)

    def _indices(self, part: Part) -> slice | NDArray[np.int64]:
        """Return the indices of a part's columns among all of the mixture's."""
        return slice(None) if part.columns is None else np.searchsorted(self._columns or [], part.columns)

    def _locate(self, j: int) -> tuple[Part, Density, int]:
        """Return the part that has the mixture's column j, its density, and the column's index in it."""
        return self.inner.locate(j if self._columns is None else self._columns[j])

    @property
    def means(self) -> Array:
        """The mean of every class and column; NaN in columns of categories."""
        m, k = self.weights.shape[1], self.classes
        found = np.zeros((k, self._width))
        for part, density in zip(self.inner.parts, self.inner.densities, strict=True):
            means = np.where(self.weights.T[:, :, None] > 0, density.means.reshape(m, k, -1), 0.0)
            found[:, self._indices(part)] = np.einsum("km,mkd->kd", self.weights, means)
        return found

    def column(self, j: int) -> Density:
        """Return the density of one column, whatever the others hold."""
        part, density, i = self._locate(j)
        number = j if self._columns is None else self._columns[j]
        one = replace(self.inner, parts=(Part(part.family, [number]),), densities=(density.column(i),))
        return replace(self, inner=one)

    def names_of(self, j: int) -> Labels | None:
        """Return the names of column j's categories."""
        _, density, i = self._locate(j)
        return density.names_of(i)

    def discrete(self, j: int) -> tuple[Array, Array] | None:
        """Return the values that column j can have and their probabilities in every class."""
        _, density, i = self._locate(j)
        found = density.discrete(i)
        if found is None:
            return None
        values, p = found
        m, k = self.weights.shape[1], self.classes
        return values, np.einsum("km,mkv->kv", self.weights, p.reshape(m, k, -1))

    def discrete_given(self, block: Block, rows: SomeRows, j: int, posterior: Array) -> Array:
        """Return the probability of each of column j's values in some rows, given their other columns."""
        part, density, i = self._locate(j)
        table = block.table.taken(np.arange(block.table.rows)[rows])
        within = self.responsibilities(table) * posterior[:, None, :]
        return density.discrete_given(Block(table, part.columns), slice(None), i, within.reshape(len(posterior), -1))

    def expected(self, block: Block, c: int) -> Array:
        """Return the mean of every cell in class c, given the other cells of its row."""
        p = self.responsibilities(block.table)[:, :, c]
        x = np.zeros((block.table.rows, self._width))
        for part, density in zip(self.inner.parts, self.inner.densities, strict=True):
            for m in np.flatnonzero(self.weights[c] > 0):
                own = density.expected(Block(block.table, part.columns), int(m) * self.classes + c)
                x[:, self._indices(part)] += p[:, [m]] * own
        return x

    def drawn(self, block: Block, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw every cell of rows of the given classes, given the cells that are there."""
        p = self.responsibilities(block.table)[np.arange(block.table.rows), :, codes]
        components = draw_indices(p, generator) * self.classes + codes
        x = np.full((block.table.rows, self._width), np.nan)
        for part, density in zip(self.inner.parts, self.inner.densities, strict=True):
            x[:, self._indices(part)] = density.drawn(Block(block.table, part.columns), components, generator)
        return x

    def log_odds(self, block: Block, one: Codes, other: Codes) -> "tuple[Array | csr_array, Array]":
        """Return what every cell says for class ``one`` against ``other``, by the likeliest component of each."""
        table, rows = block.table, np.arange(block.table.rows)
        total = np.zeros((table.rows, self.classes))
        self.add_log_density(block, total)
        p = self.responsibilities(table)
        likeliest = [p[rows, :, c].argmax(axis=1) * self.classes + c for c in (one, other)]
        cells = self.inner.log_odds(table, *likeliest).cells
        if self._columns is not None:
            own, cells = cells, np.zeros((len(cells), block.width))  # columns of others, such as text, say nothing here
            for place in range(block.width):
                if (j := block.number(place)) in self._columns:
                    cells[:, place] = own[:, j]
        return cells, subtract_logs(total[rows, one], total[rows, other]) - cells.sum(axis=1)


def columns_of(parts: tuple[Part, ...]) -> list[int] | None:
    """Return the columns of all parts, sorted; None if one takes all that there are."""
    if any(part.columns is None for part in parts):
        return None
    return sorted(j for part in parts for j in part.columns or ())


# Components that are tried for a class at most, if their number is to be found.
_MOST = 8
# Rows that each component must have, on average.
_ROWS_EACH = 5
_TOLERANCE = 1e-4
_STEPS = 100

Line = Callable[[Callable[[], str]], object]
"""Is given at every step what is being tried, a function to be called if it is to be shown."""


@dataclass(frozen=True)
class Mixed(Family):
    """All columns of a table, in each class a mixture of components."""

    parts: Any = ()
    """the family of every block of columns in a component, with the numbers of the columns, or None for all"""
    components: int = 1
    """how many components a class has at most"""

    name = "mixture"
    expects = "numbers that every family takes"
    needs_density = True

    def __post_init__(self) -> None:
        parts = self.parts
        fits = isinstance(parts, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in parts) and len(parts) > 0
        if not fits or not all(isinstance(family, Family) for family, _ in parts):
            raise ValueError("expected families and their columns as the parts of a mixture, got others")
        if type(self.components) is not int or not 0 < self.components < 1 << 16:
            raise ValueError(f"expected a number of components of 1 or more, got {self.components!r}")

    @cached_property
    def blocks(self) -> tuple[Part, ...]:
        """The family of every block of columns."""
        return tuple(Part(family, None if columns is None else list(columns)) for family, columns in self.parts)

    @cached_property
    def columns(self) -> list[int] | None:
        """The numbers of all columns, sorted; None if a block takes all that there are."""
        return columns_of(self.blocks)

    def additive(self, block: Block) -> bool:
        """Say that parts of rows have other components than all of them."""
        return False

    def collect(self, block: Block, assignment: Any, given: Density | None = None) -> MixedStatistics:
        """Collect rows, under a given density by which components are responsible for them."""
        if not isinstance(given, MixedDensity):
            raise ValueError("expected a model whose components are known to learn more rows, got none: call fit first")
        return given.collected(block.table, assignment)

    def _collect(self, block: Block, assignment: Assignment) -> Statistics:
        raise NotImplementedError

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the parameters of all components that have rows, and all their weights less one in each class."""
        assert isinstance(density, MixedDensity)
        return density.inner.free_parameters() + 1 - classes

    def solve(self, statistics: Statistics) -> "MixedDensity":
        """Return the density of every class."""
        assert isinstance(statistics, MixedStatistics)
        k = len(statistics.labels["class"])
        rows = statistics.weights
        apart = [
            each.of_classes(slice(None), np.arange(m * k, (m + 1) * k)) for m, each in enumerate(statistics.components)
        ]
        inner = Joint.solve(reduce(operator.add, apart), self.blocks, Columns(max(self.columns or [0]) + 1))
        if self.columns is None:
            inner = replace(inner, width=_width(apart[0].blocks[0]))
        total = rows.sum(axis=0)
        weights = np.divide(rows, total, out=np.full_like(rows, 1 / len(rows)), where=total > 0)
        return MixedDensity(statistics.labels["class"], replace(inner, weights=weights.ravel()), weights.T)


def _width(statistics: Statistics) -> int:
    """Return how many columns the statistics of a block are of."""
    sizes = (
        size
        for name, axes in statistics.axes.items()
        for axis, size in zip(axes, statistics.sums[name].shape, strict=True)
        if axis in ("column", "word")
    )
    return next(sizes, 1)  # texts are one column


def mix(
    table: Table,
    assignment: Assignment,
    parts: tuple[Part, ...],
    components: int | str | list[int],
    seed: Any = 0,
    starts: int = 2,
    line: Line = lambda _: None,
) -> tuple[Part, MixedStatistics]:
    """Find the components of every class: so many, of each class so many, or with "auto" as many as the BIC favours.

    ``line`` is given what is being tried.

    >>> X = np.array([[-5.0, -5.2, -4.9, -5.1, -5.2, 5.0, 5.1, 4.8, 5.2, 4.9, 0.0, 0.2, -0.1, 0.1]]).T
    >>> rows = Assignment(np.array(["inner", "outer"]), np.repeat([1, 0], [10, 4]).astype(np.int32))
    >>> from likely.families import Gaussian
    >>> part, found = mix(Table(X), rows, (Part(Gaussian(pseudo_rows=1e-4), None),), 2)
    >>> sorted(part.family.solve(found).inner.densities[0].means[[1, 3], 0].round(2).tolist())
    [-5.08, 5.0]
    """
    classes, codes, weights = assignment
    generator = np.random.default_rng(seed)
    found: list[JointStatistics] = []
    for c in range(len(classes)):
        rows = np.flatnonzero(codes == c if weights is None else (codes == c) & (weights > 0))
        if not len(rows):
            continue
        own = Hidden(table.taken(rows), None, None if weights is None else weights[rows])
        number = components[c] if isinstance(components, list) else components
        label = printable(str(classes[c]))
        best = _mixture(own, parts, number, generator, starts, label, line).statistics
        for m in range(len(best.classes)):
            one = best.of_classes(slice(m, m + 1), classes[c : c + 1])
            if m == len(found):
                found.append(one)
            else:
                found[m] = found[m] + one
    family = Mixed(
        tuple((part.family, None if part.columns is None else tuple(part.columns)) for part in parts), len(found)
    )
    return Part(family, family.columns), MixedStatistics.of(tuple(each.with_classes(classes) for each in found))


def _mixture(
    rows: Hidden,
    parts: tuple[Part, ...],
    components: int | str,
    generator: "np.random.Generator",
    starts: int,
    label: str,
    line: Line,
) -> EMResult:
    """Return the mixture of one class."""

    def fitted(k: int) -> EMResult:
        def line_of() -> str:
            return f"{k} component{'s' if k > 1 else ''} of class {label}"

        task = MixtureTask(parts, k, "k-means++", _TOLERANCE, _STEPS)
        search = Search.of(starts if k > 1 else 1, generator)
        found = search_mixture(rows, task, search, watch=lambda _: line(line_of)).best
        assert found is not None
        return found

    # A row of weight 2 is two rows, but weights may also be fractions of 1.
    most = max(rows.table.rows, round(rows.weight)) // _ROWS_EACH or 1
    if not isinstance(components, str):
        return fitted(min(components, most))
    best, least = None, np.inf
    for k in range(1, min(_MOST, most) + 1):
        found = fitted(k)
        bic = -2 * found.log_likelihood + found.joint.free_parameters() * np.log(max(rows.weight, 1.0))
        if best is not None and not bic < least:
            break
        best, least = found, bic
    assert best is not None
    return best
