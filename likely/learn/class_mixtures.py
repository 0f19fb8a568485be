"""Classes that are mixtures: within each class, several components, each with the families of the columns.

To everything above, it is a family of all columns: sums that add, a density in every class. Which component a row of a
class comes from is hidden, and found by expectation maximisation, class by class.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from likely.data.table import Block, Columns, Table
from likely.families import Density, Family
from likely.joint import Joint, Part
from likely.learn.class_mixture_density import MixedDensity, MixedStatistics, columns_of
from likely.learn.hidden import EMResult, Hidden
from likely.learn.mixtures import Aim, Search, search_mixture
from likely.messages import printable
from likely.statistics import Assignment, JointStatistics, Statistics

# Components that are tried for a class at most, if their number is to be found.
_MOST = 8
# Rows that each component must have, as they are dealt out.
_ROWS_EACH = 5
_TOLERANCE = 1e-4
_STEPS = 100

Line = Callable[[Callable[[], str]], object]
"""Is told at every step what is being tried, to be called if it is to be shown."""


@dataclass(frozen=True)
class Mixed(Family):
    """All columns of a table, in each class a mixture of components.

    Parameters
    ----------
    parts
        the family of every block of columns in a component, with the numbers of the columns, or None for all
    components
        how many components a class has at most
    """

    parts: Any = ()
    components: int = 1

    name = "mixture"
    expects = "numbers that every family takes"
    shares_rows = True

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
        """Share rows among the components of their classes under a given density, and collect them."""
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

    ``line`` is told what is being tried.

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
    generator: Any,
    starts: int,
    label: str,
    line: Line,
) -> EMResult:
    """Return the mixture of one class."""
    # A row of weight 2 is two rows, but weights may also be shares of 1.
    most = max(rows.table.rows, round(rows.weight)) // _ROWS_EACH or 1
    if not isinstance(components, str):
        return _searched(rows, parts, min(components, most), generator, starts, label, line)
    best, least = None, np.inf
    for k in range(1, min(_MOST, most) + 1):
        found = _searched(rows, parts, k, generator, starts, label, line)
        price = found.joint.free_parameters() * np.log(max(rows.weight, 1.0))
        bic = -2 * found.log_likelihood + price
        if best is not None and not bic < least:
            break
        best, least = found, bic
    assert best is not None
    return best


def _searched(
    rows: Hidden, parts: tuple[Part, ...], k: int, generator: Any, starts: int, label: str, line: Line
) -> EMResult:
    def line_of() -> str:
        return f"{k} component{'s' if k > 1 else ''} of class {label}"

    search = Search.of(starts if k > 1 else 1, generator)
    aim = Aim(parts, k, "k-means++", _TOLERANCE, _STEPS)
    best = search_mixture(rows, aim, search, watch=lambda _: line(line_of)).best
    assert best is not None
    return best
