"""k-means of rows that do not lie in memory: every movement of the centres is one pass over them."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.rows import Rows
from likely.data.schema import Column, Schema
from likely.data.table import Room, Table
from likely.engines import rows_of
from likely.engines.labelled import is_typed
from likely.engines.sampling import sampled
from likely.ensemble.selection import SAMPLE
from likely.learn.kmeans import cluster_sums, collect, means
from likely.learn.starts import Points, readable
from likely.statistics import Array, Statistics


class Everywhere(NamedTuple):
    """Rows wherever they lie, what their columns are, and some of them, with their weights; all if they are few."""

    rows: Rows
    schema: Schema
    table: Table
    weights: Array | None
    whole: bool


class Pass(NamedTuple):
    """What a pass has found: the sums of each cluster, and the inertia."""

    sums: Statistics
    inertia: float

    def plus(self, other: "Pass") -> "Pass":
        """Return what was found here and there."""
        return Pass(self.sums + other.sums, self.inertia + other.inertia)


def everywhere(data: Any, sample_weight: Any = None) -> Everywhere | None:
    """Return rows that do not lie in memory, and some of them to begin with; None if they do."""
    rows = rows_of(data) if is_typed(data) else None
    if rows is None or rows.held:
        return None
    if sample_weight is not None:
        raise ValueError("expected no sample_weight of rows that do not lie in memory, got one: read them first")
    schema = numbers_of(rows)
    some = sampled(schema, rows, None, None, SAMPLE, 0, alike=True)
    return Everywhere(rows, schema, some.rows.table, some.rows.assignment.weights, some.whole)


def numbers_of(rows: Rows, but: str | None = None) -> Schema:
    """Return the schema of a table of numbers, but one column, or raise if there is something else in it."""
    inferred = Schema.infer(rows)
    inferred = inferred if but is None else inferred.without(but)
    for column in inferred.columns:
        if column.kind not in ("number", "integer", "boolean"):
            other = "Mixture" if but is None else "NaiveBayes or Classifier"
            raise ValueError(
                f"expected columns of numbers, got {column.name!r} of kind {column.kind}: leave it out, or use {other}"
            )
    return schema_of([column.name for column in inferred.columns], inferred.named)


def schema_of(names: Iterable[str], named: bool = True) -> Schema:
    """Return the schema of a table of numbers."""
    return Schema(tuple(Column(name, "number") for name in names), named)


def moved(
    data: Everywhere, centres: Array, origin: Array, known: NDArray[np.bool_], most: int, least: float
) -> tuple[Array, Pass, int]:
    """Move centres, about the origin, until none moves further: where they are then, the last pass, and how many moved.

    ``least``: the squares of movements that are taken for none. A centre that no row is nearest to stays where it is.
    """
    for moves in range(most + 1):
        work = partial(_pass, schema=data.schema, centres=centres, origin=origin, known=known)
        found = data.rows.reduce(work, Pass.plus)
        new = means(found.sums) - origin
        new = np.where(np.isnan(new), centres, new)
        shift = float(((new - centres) ** 2).sum())
        if shift <= least or moves == most:
            break
        centres = new
    return centres, found, moves


def _pass(rows: Rows, schema: Schema, centres: Array, origin: Array, known: NDArray[np.bool_]) -> Pass:
    nothing = np.zeros(centres.shape)
    found = Pass(cluster_sums(nothing, nothing, centres + origin), 0.0)
    for table in schema.tables(rows, Room()):
        if table.rows:
            cells = np.where(known, readable(table), np.nan) if not known.all() else readable(table)
            points = Points(cells, origin, bool(np.isnan(cells).any()), table.rows, 0.0, known)
            sums, _, inertia = collect(points, centres)
            found = found.plus(Pass(sums, inertia))
    return found
