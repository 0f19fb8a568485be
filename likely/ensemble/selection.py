"""Choosing a classifier from the rows themselves: members scored out of fold, weighed and calibrated together."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.column_values import CountedColumn, counted_columns
from likely.data.distinct import DistinctRows, sample_rows, split_heavy_rows
from likely.data.table import Block, Table
from likely.ensemble.bins import BINS, Bins
from likely.ensemble.calibration import Calibration, log_loss
from likely.ensemble.codes import CodedColumns
from likely.ensemble.combinations import Grouped, Groups, with_combinations
from likely.ensemble.features import Features
from likely.ensemble.forest import choose_forest
from likely.ensemble.members import (
    COMPARED,
    Chooser,
    Chosen,
    Folds,
    Member,
    MemberEncoding,
    TextColumn,
    choose_discriminant,
    choose_naive_bayes,
    choose_words,
    log_posteriors,
)
from likely.ensemble.missing_patterns import MissingPairs, missing_cells, with_hidden
from likely.ensemble.splits import with_splits
from likely.families import Density
from likely.families.forest import MOST
from likely.learn.one_pass import collect
from likely.statistics import Array, Assignment, JointStatistics, Labels, class_proportions, class_weights

# Encodings of a member, of which one is chosen, and how to choose a family for each.
Alternatives = list[tuple[MemberEncoding, Chooser]]

_FOLDS = 5
# With few rows more folds are affordable, and what is fitted without one is more like what is fitted on all.
_FEW_ROWS, _MORE_FOLDS = 1000, 10
SAMPLE = 50_000
"""The most rows that a choice is made on, equal ones counted once."""
_MOST_CELLS = 30_000_000  # and encoded cells
# With more classes than this none has a bias of its own: to find it takes a square of them, and rows of each.
_MOST_BIASED = 500
# Matrices with more columns than this are multiplied by several threads.
_WORTH_THREADS = 300
# The most sums that a discriminant may keep, of all pairs of features, classes and folds.
_MOST_SUMS = 40_000_000
# So many features are left when the rarest levels are left out: the work grows with their cube.
_MOST_LEVELS = 500
# Cells are hidden in so many rows at most, to learn how much members count if cells are missing; and in so many at
# least, with so many patterns. Between, the work is about this.
_MOST_HIDDEN, _FEWEST_HIDDEN, _FEWEST_PATTERNS, _SCORING = 2000, 300, 30, 2e8
# Rows are encoded for about this many cells at a time.
_TILE = 1 << 22


@dataclass(frozen=True, eq=False)
class Selection:
    """Members, the statistics of each, and how their log posteriors make one calibrated posterior.

    Statistics grow and shrink with the rows that are learned and forgotten; encodings, what was chosen, and the
    calibration stay as they are.

    Parameters
    ----------
    members
        their encodings and families
    statistics
        the class weights, and a block for each member
    calibration
        the weights of the members and the biases of the classes
    calibrated
        the labels of the classes that have a bias; the bias of others is 0
    missing
        which cells were missing together in training: others that are missing say nothing
    """

    members: tuple[Member, ...]
    statistics: JointStatistics
    calibration: Calibration
    calibrated: Labels
    missing: MissingPairs

    @property
    def classes(self) -> Labels:
        """The labels of the classes, sorted."""
        return self.statistics.classes

    @property
    def priors(self) -> Array:
        """p(class), with half a row more in each class."""
        return class_proportions(self.statistics.weights.sums["weight"])

    def posterior(self, table: Table) -> Array:
        """Return calibrated probabilities, rows × classes."""
        return np.exp(self.log_posterior(table))

    def log_posterior(self, table: Table) -> Array:
        """Return the logarithms of calibrated probabilities, rows × classes."""
        priors = self.priors
        out = np.empty((table.rows, len(priors)))
        for first, tile in self._tiles(table):
            uninformative = self.missing.uninformative(tile)
            scores = [
                log_posteriors(density, member.encoded(tile, uninformative), np.log(priors))
                for member, density in zip(self.members, self.densities, strict=True)
            ]
            known = None if uninformative is None else 1 - uninformative.mean(axis=1)
            out[first : first + tile.rows] = self._calibration.log_posterior(scores, priors, known)
        return out

    def log_odds(self, table: Table, one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return what holds of class ``one`` against ``other`` before a cell is read, and what every cell adds."""
        uninformative = self.missing.uninformative(table)
        known = np.ones(table.rows) if uninformative is None else 1 - uninformative.mean(axis=1)
        weights, prior = self._calibration.by_known(known)
        bias, log_priors = self._calibration.bias, np.log(self.priors)
        base = known * (bias[one] - bias[other])
        base += (weights.sum(axis=1) + prior) * (log_priors[one] - log_priors[other])
        cells = np.zeros((table.rows, table.columns.width))
        for member, density, weight in zip(self.members, self.densities, weights.T, strict=True):
            odds, rest = density.log_odds(Block(member.encoded(table, uninformative), None), one, other)
            base += weight * rest
            cells += weight[:, None] * member.encoding.by_column(odds)
        return base, cells

    def collect(self, table: Table, assignment: Assignment) -> JointStatistics:
        """Collect the statistics of more rows, to be added or subtracted."""
        given = self.densities if any(member.family.needs_density for member in self.members) else None
        return collect(table, assignment, tuple(member.part for member in self.members), given)

    def validate(self, width: int, widths: Sequence[int]) -> None:
        """Raise ValueError unless all is of tables of ``width`` columns, and of members encoded in so many columns."""
        sizes = len(self.calibration.weights), len(self.calibration.bias), len(self.statistics.blocks)
        if sizes != (len(self.members), len(self.calibrated), len(self.members)):
            raise ValueError("expected a weight and statistics of each member and a bias of each class, got others")
        if not np.isin(self.calibrated, self.classes).all():
            raise ValueError("expected biases of classes that were learned, got others")
        encodings = [member.encoding for member in self.members]
        of = {len(each.columns) if isinstance(each, Features | Bins | CodedColumns) else each.of for each in encodings}
        if of != {width} or [encoding.width for encoding in encodings] != list(widths):
            raise ValueError(f"expected members of {width} columns, encoded as their statistics are, got others")
        if (self.missing.columns >= width).any():
            raise ValueError(f"expected missing cells of {width} columns, got others")

    @cached_property
    def densities(self) -> tuple[Density, ...]:
        """The density of every member's encoded columns, in every class."""
        blocks = zip(self.members, self.statistics.blocks, strict=True)
        return tuple(member.family.solve(block) for member, block in blocks)

    @cached_property
    def _calibration(self) -> Calibration:
        """The calibration with a bias of every class."""
        bias = np.zeros(len(self.classes))
        bias[np.searchsorted(self.classes, self.calibrated)] = self.calibration.bias
        return replace(self.calibration, bias=bias)

    def _tiles(self, table: Table) -> Iterator[tuple[int, Table]]:
        widest = max([len(self.classes), *(member.encoding.width for member in self.members)])
        step = max(_TILE // widest, 256)
        for first in range(0, max(table.rows, 1), step):
            yield first, table.between(first, first + step)


def select(
    table: Table,
    assignment: Assignment,
    *,
    seed: int = 0,
    groups: Groups = (),
    guessed: NDArray[np.bool_] | None = None,
    more: Sequence[tuple[MemberEncoding, Chooser]] = (),
    forest: bool = False,
) -> Selection:
    """Choose and fit a classifier on rows whose classes are known.

    Columns become features of a regularised discriminant, and bins of naive Bayes. Each is scored on folds that it
    was not fitted on; a small stack of the two, with a bias for each class, gives calibrated probabilities. Equal rows
    are one row of more weight, and which fold a row is in, or whether it is drawn if there are many, is decided by its
    content and the seed: neither the order of rows nor how often each is written matters. ``groups`` are columns of
    categories that are taken together. Rows whose classes were ``guessed`` are learned from, but nothing is chosen or
    calibrated by them. ``more`` are further members; ``forest``: whether a forest of trees is one, too.

    >>> generator = np.random.default_rng(0)
    >>> X = generator.standard_normal((200, 2))
    >>> classes = np.array(["inside", "outside"])
    >>> codes = ((X**2).sum(axis=1) > 1.4).astype(np.int32)
    >>> chosen = select(Table(X), Assignment(classes, codes))
    >>> chosen.posterior(Table(np.array([[0.0, 0.0], [2.0, 2.0]]))).round(1)
    array([[1., 0.],
           [0., 1.]])
    """
    if table.rows == 0:
        raise ValueError("expected at least one row to learn from, got none")
    k = len(assignment.classes)
    apart = assignment if guessed is None else _apart(assignment, guessed)
    drawn = sample_rows(table, apart, SAMPLE, seed) if table.rows > SAMPLE else (table, apart)
    rows = DistinctRows.of(*drawn, seed)
    candidates = [*_candidates(rows, k, groups), *([each] for each in more)]
    if forest and max(table.columns.width, k) <= MOST:
        coded = CodedColumns.fitted(rows.columns)
        candidates.append([(coded, partial(choose_forest, categories=coded.categories, seed=seed))])
    widest = max(encoding.width for alternatives in candidates for encoding, _ in alternatives)
    some = rows.some(max(_MOST_CELLS // max(widest, COMPARED * k), _FEW_ROWS))
    number = _MORE_FOLDS if some.table.rows < _FEW_ROWS else _FOLDS
    sample, known = split_heavy_rows(some.table, some.assignment, number)
    all_of_them = table.rows <= SAMPLE and some is rows
    pairs = MissingPairs.seen(some.table, some.assignment.weights)
    del drawn, rows, some  # a copy of the table, which would stay while its features are made
    is_guessed = None if guessed is None else known.codes >= k
    known = Assignment(assignment.classes, known.codes % np.int32(k), known.weights)
    with _ONE_THREAD if widest <= _WORTH_THREADS else nullcontext():
        folds = Folds.assigned(known, number, is_guessed)
        scored = folds.scored
        few, patterns = _hidden_rows(len(scored), k, widest)
        numbers = scored[np.arange(few) * len(scored) // max(few, 1)]
        hidden = with_hidden(sample.taken(numbers), patterns, seed)
        gone = missing_cells(hidden)
        members, blocks, scores, scores_of_hidden = [], [], [], []
        judged = known.taken(scored)
        for alternatives in candidates:
            member, chosen = _best(alternatives, sample, folds, judged)
            members.append(member)
            blocks.append(chosen.statistics)
            scores.append(chosen.log_posteriors[scored])
            scores_of_hidden.append(chosen.score(member.encoded(hidden, gone), numbers))
        told = np.asarray(np.isfinite([score[:, 0] for score in scores]).all(axis=0))
        if not told.all():  # a member may leave rows out
            scores, judged = [score[told] for score in scores], judged.taken(told)
        calibration = Calibration.fitted(scores, judged.codes, judged.weights, biased=k <= _MOST_BIASED)
        statistics = JointStatistics(class_weights(known), tuple(blocks))
        priors = class_proportions(statistics.weights.sums["weight"])
        judged = known.taken(numbers)
        calibration = calibration.with_hidden(
            scores_of_hidden, 1 - gone.mean(axis=1), judged.codes, judged.weights, priors
        )
    selection = Selection(tuple(members), statistics, calibration, assignment.classes, pairs)
    if not all_of_them:
        selection = replace(selection, statistics=selection.collect(table, assignment))
    return selection


def _best(alternatives: Alternatives, sample: Table, folds: Folds, judged: Assignment) -> tuple[Member, Chosen]:
    """Return the member of least log-loss out of fold, and what was chosen for it."""
    best: tuple[float, Member, Chosen] | None = None
    for encoding, choose in alternatives:
        chosen = choose(encoding.encoded(sample), folds)
        loss = 0.0
        if len(alternatives) > 1:
            loss = log_loss(chosen.log_posteriors[folds.scored], judged.codes, judged.weights)
        if best is None or loss < best[0]:
            best = loss, Member(encoding, chosen.family), chosen
    assert best is not None
    return best[1:]


def _hidden_rows(rows: int, classes: int, width: int) -> tuple[int, int]:
    """Return how many rows are to have cells hidden, and in how many patterns, so that scoring them takes little."""
    few = min(rows, _MOST_HIDDEN, max(int(_SCORING / (classes * width**2)), _FEWEST_HIDDEN))
    return few, int(np.clip(_SCORING / (classes * width**3), min(few, _FEWEST_PATTERNS), few))


def _apart(assignment: Assignment, guessed: NDArray[np.bool_]) -> Assignment:
    """Return classes of their own, after all others, for the rows that were guessed: no row is taken for another."""
    k = len(assignment.classes)
    return Assignment(np.arange(2 * k), assignment.codes + np.int32(k) * guessed, assignment.weights)


class _OneThread:
    """Keeps the products of small matrices on one thread: several would wait for each other longer than they work.

    Fits may run side by side: the first to come sets the limit, and the last to go lifts it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        with self._lock:
            if self._inside == 0:
                self._limit = threadpool_limits(1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_THREAD = _OneThread()


def _labelled(table: Table, assignment: Assignment, classes: int) -> tuple[Table, Assignment]:
    """Return the rows whose classes are known, not guessed."""
    known = assignment.codes < classes
    if not known.all():
        table, assignment = table.taken(known), assignment.taken(known)
    return table, assignment._replace(classes=assignment.classes[:classes])


def _candidates(rows: DistinctRows, classes: int, groups: Groups = ()) -> list[Alternatives]:
    """Return the encodings of every member, of which one is to be chosen, and how to choose a family for each."""
    width = len(rows.columns)

    def grouped(inner: Features | Bins) -> Features | Bins | Grouped:
        return Grouped(groups, width, inner) if groups else inner

    def columns(*, keep: bool) -> Sequence[CountedColumn]:
        table, counted = rows.table, rows.columns
        if groups:
            table = with_combinations(table, groups, keep=keep)
            counted = counted_columns(table, rows.assignment.weights)
        return with_splits(counted, *_labelled(table, rows.assignment, classes), BINS)

    found = columns(keep=True)
    bins = Bins.fitted(columns(keep=False) if groups else found)
    candidates: list[Alternatives] = [[(grouped(bins), choose_naive_bayes)]]
    widest = int(np.sqrt(_MOST_SUMS / (classes * (_FOLDS + 1))))
    by_ranks = [column._replace(separations=()) for column in found]
    features = [Features.fitted(each, min(widest, _MOST_LEVELS)) for each in (by_ranks, found)]
    if 0 < features[0].width <= widest:
        # How far classes near the ends are apart is found by the labels, and not always worth it.
        some = features if any(column.separations for column in found) else features[:1]
        candidates.insert(0, [(grouped(each), choose_discriminant) for each in some])
    return candidates + [[(TextColumn(j, width), choose_words)] for j in sorted(rows.table.strings)]


def same_members(one: Selection, two: Selection) -> bool:
    """Whether two selections have the same members and calibration, whatever rows they have learned."""
    return same((one.members, one.calibration, one.missing), (two.members, two.calibration, two.missing))


def same(one: Any, other: Any) -> bool:
    """Whether two parameters, or parts of a model, are equal: arrays and records by what they hold.

    >>> same({"priors": [np.array([0.5])]}, {"priors": (np.array([0.5]),)}), same(np.zeros(2), np.ones(2))
    (True, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
