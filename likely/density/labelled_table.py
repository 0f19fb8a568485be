"""The joint of a table and the class of its rows: by it ``Classifier`` answers what is not about the class."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Table
from likely.density.columns import CategoryColumn, Encoded, NumberColumn, unknown_rows
from likely.density.combination import CLASS_TREES, COMBINED, COUNTED
from likely.density.evidence import Evidence, Known
from likely.density.table import FEWEST, Progress, TableJoint, class_column
from likely.density.trees import taken_or_none
from likely.joint import Joint
from likely.statistics import NOT_LEARNED, Array, Assignment, Labels, union

ClassCodes = NDArray[np.int32]
TableKind = Literal["tree", "full"]

# Of more columns, classes, or columns times classes, too much would have to be counted.
_MOST_COLUMNS, _MOST_CLASSES, _MOST_CELLS = 1000, 1000, 100_000


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """The joint of all columns of a table and the class, which is its last column: it adds as statistics do."""

    joint: TableJoint
    labels: Labels
    """those of the levels of the last column; rows of other classes are rows whose class is not known"""

    @staticmethod
    def reads(table: Table, assignment: Assignment, kind: TableKind) -> bool:
        """Say whether there is a joint of such first rows: texts are in none, and a few rows decide on no trees."""
        width, classes = table.columns.width, len(assignment.classes)
        rows = float(table.rows) if assignment.weights is None else float(assignment.weights.sum())
        few = width <= _MOST_COLUMNS and classes <= _MOST_CLASSES and classes * width <= _MOST_CELLS
        return few and not table.strings and (kind == "full" or rows >= FEWEST)

    @classmethod
    def fit(cls, table: Table, assignment: Assignment, kind: TableKind, seed: int, say: Progress | None) -> Self:
        """Fit the joint to first rows, of which some may have no class.

        "tree": one Chow–Liu tree of the columns and the class, and a tree in every class, weighted by the likelihood of
        rows held out; "full": all members of ``Model``.
        """
        kinds = CLASS_TREES if kind == "tree" else COMBINED
        return cls(TableJoint.fit(table, assignment.weights, kinds, seed, say, assignment), assignment.classes)

    def learned(self, table: Table, assignment: Assignment) -> Self:
        """Return what has learned more rows; those without a class are left out."""
        rows = assignment.codes >= 0
        if not rows.all():
            table, assignment = table.taken(rows), assignment.taken(rows)
        known = self.with_labels(assignment.classes)
        codes = positions(assignment.classes, known.labels)[assignment.codes].astype(np.int32)
        return replace(known, joint=known.joint.plus(table, assignment.weights, codes=codes))

    def with_labels(self, labels: Labels) -> Self:
        """Return the same with more classes, of which it knows no rows, where sums are counts of levels.

        Elsewhere what is expected depends on the classes: rows of others are then rows whose class is not known.
        """
        found = union(self.labels, labels)
        if len(found) == len(self.labels) or not all(member.kind in COUNTED for member in self.joint.members):
            return self
        at, columns = positions(found, self.labels), self.joint.columns
        columns = (*columns[:-1], class_column(taken_or_none(columns[-1].counts, at)))
        members = tuple(member.with_classes(columns, at) for member in self.joint.members)
        return replace(self, joint=replace(self.joint, columns=columns, members=members), labels=found)

    def emptied(self) -> Self:
        """Return what knows no rows, under the same reference."""
        return replace(self, joint=self.joint.emptied())

    def __add__(self, other: Self) -> Self:
        one, two = self.with_labels(other.labels), other.with_labels(self.labels)
        return replace(one, joint=one.joint.merged(two.joint))

    def __sub__(self, other: Self) -> Self:
        one, two = self.with_labels(other.labels), other.with_labels(self.labels)
        left = one.joint.merged(two.joint, -1.0)
        if left.miscounted(self.joint):
            raise ValueError(NOT_LEARNED.format("weigh more than what is left"))
        return replace(one, joint=left)

    def __mul__(self, factor: float) -> Self:
        return replace(self, joint=self.joint.emptied().merged(self.joint, factor))

    def same_reference(self, other: object) -> bool:
        """Say whether rows are expected under the same reference."""
        if not isinstance(other, LabelledTable):
            return False
        one, two = self.with_labels(other.labels), other.with_labels(self.labels)
        return np.array_equal(one.labels, two.labels) and one.joint.same_reference(two.joint)


@dataclass(frozen=True, eq=False)
class LabelledTableAnswers:
    """What is asked of ``Joint``, answered by the joint of a table and the class of its rows."""

    table: LabelledTable
    classes: Labels
    priors: Array | None
    """class weights that were given, in the order of the classes"""

    @property
    def joint(self) -> TableJoint:
        """The joint of columns and class."""
        return self.table.joint

    @property
    def categories(self) -> dict[int, Labels]:
        """The names of the categories of every column that has such, in the order of their numbers in drawn rows."""
        return dict(self.joint.names)

    @cached_property
    def _classes_of_levels(self) -> NDArray[np.int64]:
        return positions(self.table.labels, self.classes)

    @cached_property
    def _evidence(self) -> Evidence | None:
        """Given class weights in place of those of the rows: how likely each class makes what is asked."""
        if self.priors is None:
            return None
        last = len(self.joint.columns) - 1
        own = self.joint.combination.marginals(unknown_rows(self.joint.columns, 1), [last])[0][0]
        wanted = np.where(self._classes_of_levels >= 0, self.priors[self._classes_of_levels], 0.0)
        return Evidence(self.joint.columns, {last: Known(wanted / np.maximum(own, 1e-300))})

    def _rows(self, table: Table, codes: ClassCodes | None) -> Iterator[tuple[slice, Encoded]]:
        """Return rows as members read them, some at a time."""
        levels = positions(self.classes, self.table.labels)
        for rows, part in self.joint.parts(table):
            known = None if codes is None else np.where(codes[rows] >= 0, levels[codes[rows]], -1).astype(np.int32)
            yield rows, self.joint.encode(part, known)

    def log_density(self, table: Table) -> Array:
        """Return log p(x) for every row, whatever its class."""
        joint = self.joint.combination
        return np.concatenate([joint.log_density(rows, self._evidence) for _, rows in self._rows(table, None)])

    def sample(self, n: int, generator: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
        """Draw n rows. Returns the rows and the indices of their classes."""
        return self.drawn(Table(np.full((n, len(self.joint.columns) - 1), np.nan)), generator)

    def drawn(
        self, table: Table, generator: np.random.Generator, codes: ClassCodes | None = None
    ) -> tuple[Array, NDArray[np.int64]]:
        """Draw the missing cells of rows, and their classes unless they are known (not −1)."""
        cells = np.empty((table.rows, len(self.joint.columns)))
        for part, rows in self._rows(table, codes):
            levels, u = self.joint.combination.draw(rows, generator, self._evidence)
            cells[part] = self.joint.cells(levels, u, generator)
        return cells[:, :-1], self._classes_of_levels[cells[:, -1].astype(np.int64)]

    def expected(self, table: Table, codes: ClassCodes | None = None) -> Array:
        """Return the mean of every number that is missing given the cells that are there, or the likeliest category."""
        found = [
            self.joint.expected(self.joint.combination, rows, self._evidence)[:, :-1]
            for _, rows in self._rows(table, codes)
        ]
        return np.concatenate(found)

    def values_of(self, column: int) -> Array:
        """Return the values that a column of categories, or of a few numbers, can have."""
        of = self.joint.columns[column]
        if isinstance(of, NumberColumn) and of.bins == 1 and len(of.atoms):
            return of.atoms
        if isinstance(of, CategoryColumn) and (of.frequent or of.rare):
            return np.arange(len(of.frequent) + len(of.rare), dtype=np.float64)
        raise ValueError(f"expected a column of categories, or of a few numbers, got column {column}: ask for another")

    def column_posterior(self, table: Table, column: int, codes: ClassCodes | None = None) -> tuple[Array, Array]:
        """Return the values that a column can have, and p(value | the other cells) of every row (rows × values)."""
        values, of, parts = self.values_of(column), self.joint.columns[column], []
        for _, rows in self._rows(table, codes):
            found = self.joint.combination.marginals(rows.hiding(column), [column], self._evidence)[0]
            if isinstance(of, CategoryColumn):
                parts.append(self.joint.named_values(column, found))
            else:  # other numbers than those that were repeated are left out
                parts.append(found[:, :-1] / np.maximum(found[:, :-1].sum(axis=1, keepdims=True), 1e-300))
        return values, np.concatenate(parts)


AnsweringJoint = Joint | LabelledTableAnswers
"""What answers questions beside that about the class."""


def positions(labels: Labels, among: Labels) -> NDArray[np.int64]:
    """Return the index of each label among others, −1 of one that is not there."""
    index = {label: i for i, label in enumerate(among.tolist())}
    return np.array([index.get(label, -1) for label in labels.tolist()], dtype=np.int64)
