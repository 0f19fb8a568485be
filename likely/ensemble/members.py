"""Members of a selection: a label-free encoding of the table, and a family for what it gives. Scored out of fold.

One more kind of member takes an encoding, a family, and a chooser: from encoded rows and their folds to what is chosen,
with the statistics of all rows and the log posteriors out of fold.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Table
from likely.ensemble.bins import Bins
from likely.ensemble.calibration import LEAST, log_loss
from likely.ensemble.codes import CodedColumns
from likely.ensemble.combinations import Grouped
from likely.ensemble.features import Features
from likely.families import Density, Family
from likely.families.categorical import LeaveOneOut
from likely.families.moments import Moments
from likely.families.regularised import Regularised, log_densities, variances_of_all
from likely.joint import Part
from likely.learn.class_mixtures import Line, mix
from likely.learn.one_pass import assign_folds, split_by_fold
from likely.native import posterior_in_place
from likely.statistics import Array, Assignment, Statistics, class_proportions, class_weights

DIAGONALS = (0.001, 0.03, 0.2, 0.6)
STRENGTHS = (20.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.05)
COMPARED = len(DIAGONALS) + len(STRENGTHS)
"""So many arrays of rows × classes are held at a time."""
# About how many rows decide which pair is best.
_COMPARED = 10_000
# How much rotating, classes × columns³, choosing a strength is worth.
_ROTATIONS = 3e8

_Pair = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Member:
    """An encoding of the table and a family of all its columns."""

    encoding: "MemberEncoding"
    family: Family

    @property
    def part(self) -> Part:
        """What is collected of it."""
        return Part(self.family, None, self.encoding)

    def encoded(self, table: Table, uninformative: NDArray[np.bool_] | None = None) -> Table:
        """Encode rows; missing cells that are ``uninformative`` (rows × columns; None if there are none) say nothing.

        Other missing cells say what they said in training.
        """
        if isinstance(self.encoding, CodedColumns):
            return self.encoding.encoded(table, uninformative)
        encoded = self.encoding.encoded(table)
        if uninformative is not None and isinstance(self.encoding, Features | Bins | Grouped):
            Block(encoded, None).dense()[self.encoding.spread(uninformative)] = np.nan
        return encoded


class Folds(NamedTuple):
    """Rows with their classes, assigned to folds; rows whose classes were guessed are in none, and always learned."""

    assignment: Assignment
    fold_of: NDArray[np.int64]
    """the fold of each row; of those that were guessed, the number of folds"""
    number: int
    """how many folds there are"""

    @classmethod
    def assigned(cls, assignment: Assignment, number: int, guessed: NDArray[np.bool_] | None = None) -> "Folds":
        """Deal the rows of each class out to the folds, in the order in which they stand.

        >>> rows = Assignment(np.array(["a", "b"]), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
        >>> Folds.assigned(rows, 2).fold_of.tolist()
        [0, 1, 0, 1, 0, 1]
        >>> Folds.assigned(rows, 2, np.array([False, False, False, False, False, True])).fold_of.tolist()
        [0, 1, 0, 1, 0, 2]
        """
        if guessed is None:
            return cls(assignment, assign_folds(assignment.codes, number), number)
        fold_of = np.full(len(guessed), number, dtype=np.int64)
        fold_of[~guessed] = assign_folds(assignment.codes[~guessed], number)
        return cls(assignment, fold_of, number)

    @property
    def scored(self) -> NDArray[np.intp]:
        """The numbers of the rows that are in a fold."""
        return np.flatnonzero(self.fold_of < self.number)

    def collected(self, encoded: Table, family: Family) -> tuple[Statistics, ...]:
        """Collect the statistics of every fold, in one pass."""
        classes, count = self.assignment.classes, int(self.fold_of.max()) + 1
        k = len(classes)
        together = family.collect(Block(encoded, None), split_by_fold(self.assignment, self.fold_of, count))
        parts = [together.of_classes(slice(fold * k, (fold + 1) * k), classes) for fold in range(count)]
        # One origin for all, so that adding them is adding their sums.
        return tuple(p if p.origin is None else p.rebased(np.zeros_like(p.origin)) for p in parts)

    def splits(
        self, parts: tuple[Statistics, ...], total: Statistics, number: int
    ) -> Iterator[tuple[int, Statistics, Array]]:
        """Yield so many of the folds that have rows, the statistics of all others, and log class priors of these."""
        classes, codes, weights = self.assignment
        k = len(classes)
        counts = np.bincount(self.fold_of * k + codes, weights, (self.number + 1) * k).reshape(-1, k)
        sizes = np.bincount(self.fold_of, minlength=self.number)
        for f, part in enumerate(parts[:number]):
            if sizes[f]:
                left = np.delete(counts, f, axis=0).sum(axis=0)
                yield f, total - part, np.log(class_proportions(left))


class Chosen(NamedTuple):
    """A family, the statistics of all rows, and the log posteriors of each row by the statistics of the other folds.

    Those of rows in no fold are NaN, and of others that are left out. ``score`` returns those of rows some of whose
    cells are hidden: it takes these rows, encoded, and their numbers among all.
    """

    family: Family
    statistics: Statistics
    log_posteriors: Array
    score: Callable[[Table, NDArray[np.intp]], Array]


def sum_of(parts: tuple[Statistics, ...]) -> Statistics:
    """Add statistics up."""
    return reduce(operator.add, parts).restored()


def log_posteriors(density: Density, encoded: Table, log_priors: Array) -> Array:
    """Return log p(y | x) of encoded rows, not below what calibration takes for the least."""
    scores = np.tile(log_priors, (encoded.rows, 1))
    density.add_scores(Block(encoded, None), scores)
    return _normalised(scores, log_priors)


def choose_naive_bayes(encoded: Table, folds: Folds) -> Chosen:
    """Score naive Bayes of bins out of fold: there is nothing to choose."""
    parts = folds.collected(encoded, LeaveOneOut())
    total = sum_of(parts)
    score = _scorer(LeaveOneOut(), folds, parts, total)
    return Chosen(LeaveOneOut(), total, score(encoded, np.arange(encoded.rows)), score)


def _scorer(
    family: Family, folds: Folds, parts: tuple[Statistics, ...], total: Statistics
) -> Callable[[Table, NDArray[np.intp]], Array]:
    """Return what scores some rows, of given numbers, each by the statistics of the other folds."""

    def score(encoded: Table, numbers: NDArray[np.intp]) -> Array:
        out = np.full((encoded.rows, len(folds.assignment.classes)), np.nan)
        fold_of = folds.fold_of[numbers]
        for fold, others, log_priors in folds.splits(parts, total, folds.number):
            rows = np.flatnonzero(fold_of == fold)
            if len(rows):
                out[rows] = log_posteriors(family.solve(others), encoded.taken(rows), log_priors)
        return out

    return score


def choose_discriminant(encoded: Table, folds: Folds) -> Chosen:
    """Choose γ and ν of a regularised discriminant by the log-loss out of fold, after a fitted temperature.

    First γ, all classes sharing a covariance; then ν at that γ. Both on some of the rows if there are many, and ν on
    fewer folds if there are many classes and columns.
    """
    parts = folds.collected(encoded, Regularised())
    total = sum_of(parts)
    of_all = variances_of_all(Moments.of(total))
    cells = Block(encoded, None).dense()
    k, d = len(folds.assignment.classes), cells.shape[1]
    step = max(len(cells) // _COMPARED, 1)
    few = int(np.clip(_ROTATIONS // (k * d**3), 1, folds.number))

    def compared(diagonals: tuple[float, ...], strengths: tuple[float, ...], number: int) -> dict[_Pair, Array]:
        """Return the log posteriors under each pair; NaN in rows that were left out."""
        found = {(g, v): np.full((len(cells), k), np.nan) for g in diagonals for v in strengths}
        for fold, others, log_priors in folds.splits(parts, total, number):
            some = np.flatnonzero(folds.fold_of == fold)[::step]
            held = cells[some].astype(np.float64)
            for g, v, scores in log_densities(Moments.of(others), held, diagonals, strengths, of_all):
                found[g, v][some] = _normalised(scores + log_priors, log_priors)
        return found

    found = compared(DIAGONALS, (np.inf,), folds.number)
    linear = _best(found, folds.assignment)
    found = {linear: found[linear], **compared(linear[:1], STRENGTHS, few)}
    best = _best(found, folds.assignment)
    score = _scorer(Regularised(*best), folds, parts, total)
    of_all_rows = found[best]
    if np.isnan(of_all_rows[folds.scored, 0]).any():
        of_all_rows = score(encoded, np.arange(encoded.rows))
    return Chosen(Regularised(*best), total, of_all_rows, score)


def choose_words(encoded: Table, folds: Folds) -> Chosen:
    """Fit the exponents of discounted words, and score them out of fold."""
    from likely.ensemble.discounting import FoldAssignment, fit_discounted
    from likely.families.bag import Bag, of_present, present
    from likely.text import Analyzer, collect_sized

    family, texts = Bag(Analyzer(ngrams=(1, 2))), encoded.strings[0]
    statistics, sizes, _ = collect_sized(family.analyzer, texts, of_present(texts, folds.assignment))
    scored = folds.scored
    assigned = FoldAssignment(texts, folds.assignment, sizes, folds.fold_of)
    known = assigned if len(scored) == len(sizes) else assigned.taken(scored)
    fitted, found = fit_discounted(family, statistics, known)
    out = np.full((len(sizes), found.shape[1]), np.nan)
    out[scored] = np.maximum(found, LEAST)

    def score(encoded: Table, numbers: NDArray[np.intp]) -> Array:
        # A text is hidden or it is not: without it, class priors are left.
        priors = class_proportions(class_weights(folds.assignment).sums["weight"])
        return np.where(present(encoded.strings[0])[:, None], out[numbers], np.log(priors))

    return Chosen(fitted, statistics, out, score)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One column of texts of a table of ``of`` columns."""

    column: int
    of: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return 1

    def encoded(self, table: Table) -> Table:
        """Return the column alone."""
        return Table(np.zeros((table.rows, 1)), strings={0: Block(table, [self.column]).texts()})

    def by_column(self, parts: Array) -> Array:
        """Return what is said of every column of the table."""
        found = np.zeros((len(parts), self.of))
        found[:, self.column] = parts[:, 0]
        return found

    def validate(self) -> None:
        """Raise ValueError unless the column is one of the table."""
        if not 0 <= self.column < self.of:
            raise ValueError(f"expected a column from 0 to {self.of - 1}, got {self.column}")


@dataclass(frozen=True)
class Plain:
    """The columns of a table as they are: so many."""

    width: int

    @property
    def of(self) -> int:
        """The number of columns of the table."""
        return self.width

    def encoded(self, table: Table) -> Table:
        """Return the table."""
        return table

    def by_column(self, odds: Array) -> Array:
        """Return what every column says."""
        return np.asarray(odds)


def choose_mixture(
    encoded: Table,
    folds: Folds,
    *,
    parts: tuple[Part, ...],
    components: list[int],
    seed: Any,
    line: Line = lambda _: None,
) -> Chosen:
    """Find so many components of every class, and score each fold by those of the others."""
    models: dict[int, tuple[Density | None, Array]] = {}
    for fold in np.unique(folds.fold_of[folds.scored]).tolist():
        others = folds.fold_of != fold
        known = folds.assignment.taken(others)
        log_priors = np.log(class_proportions(class_weights(known).sums["weight"]))
        density = None  # there is nothing to know its rows by
        if others.any():
            part, statistics = mix(encoded.taken(others), known, parts, components, seed, starts=1, line=line)
            density = part.family.solve(statistics)
        models[fold] = density, log_priors

    def score(some: Table, numbers: NDArray[np.intp]) -> Array:
        out = np.full((some.rows, len(folds.assignment.classes)), np.nan)
        for fold, (density, log_priors) in models.items():
            rows = np.flatnonzero(folds.fold_of[numbers] == fold)
            if len(rows):
                out[rows] = log_priors if density is None else log_posteriors(density, some.taken(rows), log_priors)
        return out

    part, statistics = mix(encoded, folds.assignment, parts, components, seed, line=line)
    return Chosen(part.family, statistics, score(encoded, np.arange(encoded.rows)), score)


MemberEncoding = Features | Bins | Grouped | CodedColumns | TextColumn | Plain
Chooser = Callable[[Table, Folds], Chosen]


def _best(found: dict[_Pair, Array], assignment: Assignment) -> _Pair:
    """Return the pair of least loss, on rows that all of them have scores of."""
    _, codes, weights = assignment
    rows = np.flatnonzero(np.all([np.isfinite(scores[:, 0]) for scores in found.values()], axis=0))
    codes, weights = codes[rows], None if weights is None else weights[rows]
    losses = {pair: log_loss(scores[rows], codes, weights) for pair, scores in found.items()}
    return min(losses, key=lambda pair: losses[pair])


def _normalised(scores: Array, log_priors: Array) -> Array:
    posterior_in_place(scores, log_priors, True)
    return np.maximum(scores, LEAST, out=scores)
