"""Mixtures: EM from several starts, of which one is kept; empty components; batches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from likely.data.table import Block
from likely.joint import Joint, Part
from likely.learn.first_groups import ROUNDING, STARTS, Sample, begin, collected, first_codes, full_columns
from likely.learn.hidden import EMResult, EMState, Hidden, Step, em
from likely.learn.one_pass import collect
from likely.statistics import Array, Assignment, JointStatistics

# How fast early batches are forgotten: at ½ or less steps never settle, at 1 the first groups are remembered too long.
_FORGETTING = 0.7
# A component that is restarted gets this part of an even share of the weight of all rows.
_SHARE = 10


class Start(NamedTuple):
    """Where one start has ended."""

    log_likelihood: float
    iterations: int
    converged: bool


class Search(NamedTuple):
    """EM from several starts, one after the other, as far as it is. It can go on from there, to the same bits."""

    seeds: tuple[int, ...]
    """of the rows that first groups are looked for in, and of each start"""
    starts: tuple[Start, ...] = ()
    """those that have ended"""
    best: EMResult | None = None
    present: EMState | None = None
    """where the next one is, if it has begun"""

    @classmethod
    def of(cls, times: int, generator: np.random.Generator) -> Self:
        """Return a search that has not begun."""
        return cls(tuple(generator.integers(1 << 62, size=times + 1).tolist()))

    def ended(self, found: EMResult) -> Self:
        """Return the search after one more start."""
        reached, best = found.log_posterior, self.best
        start = Start(found.log_likelihood, len(found.log_likelihoods) - 1, found.converged)
        better = best is None or reached > best.log_posterior + ROUNDING * abs(best.log_posterior)
        return self._replace(starts=(*self.starts, start), best=found if better else best, present=None)


class Aim(NamedTuple):
    """What is looked for: so many components of these parts, begun so, until steps gain less than the tolerance."""

    parts: tuple[Part, ...]
    k: int
    start: Any
    """one of STARTS, or the group of each row"""
    tolerance: float
    most: int
    first: "First | None" = None
    """rows that first groups were already looked for in"""


class First(NamedTuple):
    """Rows in the groups that k-means finds in them, where the first start begins."""

    sample: Sample
    groups: Assignment

    @classmethod
    def of(cls, sample: Sample, parts: tuple[Part, ...], k: int, seeds: tuple[int, ...]) -> Self:
        """Return the groups of a sample as a search with these seeds begins with them."""
        codes = first_codes(sample, parts, k, STARTS[0], np.random.default_rng(seeds[1]))
        return cls(sample, Assignment(np.arange(k), codes, sample.weights))


def search_mixture(rows: Hidden, aim: Aim, search: Search, watch: Callable[[Search], object]) -> Search:
    """Run EM from as many starts as there are seeds; ``watch`` is given the search before every further step."""
    sample = None if aim.first is None else aim.first.sample

    def restart(statistics: JointStatistics, joint: Joint) -> JointStatistics:
        return restarted(rows, aim, statistics, joint)

    while len(search.starts) < len(search.seeds) - 1:
        turn = len(search.starts)
        if search.present is None:
            if isinstance(aim.start, str):
                sample = sample or Sample.of(rows, search.seeds[0])
                if aim.first is not None and turn == 0 and aim.start == STARTS[0]:
                    first = collected(sample.table, aim.first.groups, aim.parts)
                else:
                    generator = np.random.default_rng(search.seeds[turn + 1])
                    first = begin(sample, aim.parts, aim.k, aim.start, generator, turn)
                first = rows.prepared(first, aim.parts, aim.tolerance, aim.most)
            else:
                first = collected(rows.table, Assignment(np.arange(aim.k), aim.start, rows.weights), aim.parts)
            search = search._replace(present=EMState(first))
            watch(search)
        assert search.present is not None
        found = em(
            rows,
            search.present,
            aim.parts,
            tolerance=aim.tolerance,
            most=aim.most,
            restart=restart,
            watch=lambda at, search=search: watch(search._replace(present=at)),  # type: ignore[misc]
        )
        search = search.ended(found)
    return search


def restarted(rows: Hidden, aim: Aim, statistics: JointStatistics, joint: Joint) -> JointStatistics:
    """Restart a component, beside those that are left, at the rows that they explain worst."""
    table = rows.table
    weights = np.ones(table.rows) if rows.weights is None else rows.weights
    taken = _least_likely(joint.log_density(table), weights, float(weights.sum()) / (_SHARE * aim.k))
    worst = np.flatnonzero(taken)
    some = table.taken(worst)
    label = np.setdiff1d(np.arange(aim.k), statistics.classes)[:1]
    own = Assignment(label, np.zeros(some.rows, dtype=np.int32), taken[worst])
    full = full_columns(some, aim.parts)
    if full and np.isnan(Block(some, full).values()).any():
        cells, expected = np.array(Block(some, None).dense(), dtype=np.float64), joint.expected(some)
        cells[:, full] = np.where(np.isnan(cells[:, full]), expected[:, full], cells[:, full])
        some = replace(some, cells=cells)
    return statistics + collect(some, own, aim.parts)


def _least_likely(log_density: Array, weights: Array, wanted: float) -> Array:
    """Return how much of each row's weight is taken, if the least likely rows of so much weight together are.

    Of rows that are equally likely the same share is taken: neither their order matters, nor whether a row is written
    twice or has a weight of 2.

    >>> _least_likely(np.array([-1.0, -9.0, -2.0, -2.0]), np.array([1.0, 1.0, 1.0, 3.0]), 2.0).tolist()
    [0.0, 1.0, 0.25, 0.75]
    """
    order = np.argsort(log_density, kind="stable")
    last = log_density[order][min(int(np.searchsorted(np.cumsum(weights[order]), wanted)), len(order) - 1)]
    margin = ROUNDING * abs(last) if np.isfinite(last) else 0.0
    less = log_density < last - margin
    equal = ~less & (log_density <= last + margin)
    left = wanted - float(weights[less].sum())
    return np.where(less, weights, np.where(equal, weights * min(left / float(weights[equal].sum()), 1.0), 0.0))


def learned(known: JointStatistics, joint: Joint, batch: Hidden) -> Step:
    """Learn from one more batch (stepwise EM; Cappé and Moulines, 2009): statistics for all rows so far, about.

    Those that are known keep the share 1 − γ, the batch gets γ = (t + 2)^−0.7, where t is how many batches of its
    weight came before. ``joint`` is what the known ones solve to. The likelihood is the batch's before it is learned.
    """
    found = batch.expect(joint)
    before, more = float(known.weights.sums["weight"].sum()), batch.weight
    share = (before / more + 2) ** -_FORGETTING
    every = before + more
    return found._replace(statistics=known * ((1 - share) * every / before) + found.statistics * (share * every / more))
