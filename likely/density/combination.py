"""The joint of a whole table: a convex combination of its members, weighted by held-out likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Table
from likely.density.columns import (
    UNKNOWN,
    CategoryColumn,
    Codes,
    Encoded,
    NumberColumn,
    TableColumn,
    level_counts,
    number_index,
    scored_numbers,
)
from likely.density.evidence import Evidence
from likely.density.hidden_trees import HiddenTreePrior, fit_hidden_tree
from likely.density.left_out import LeftOut, column_of_support, support_starts
from likely.density.scores import ScoreTables, continued_scores, fit_scores
from likely.density.structure import Candidates, entropies, maximum_tree
from likely.density.topics import Spread
from likely.density.trees import (
    COARSE,
    Drawn,
    Learned,
    candidates,
    continued_trees,
    drawn_components,
    fit_tree,
    fit_trees,
    log_sum_exp,
    of_alike,
    responsibilities,
    weighted,
)
from likely.em import iterate
from likely.learn.kmeans import read_points, restarts
from likely.statistics import Array

# Weights of members: a Dirichlet prior of so many rows in all.
_PRIOR_ROWS = 0.5
# What members are worth that are left out; and EM steps by which the others take their place.
_WORTH, _FEW_STEPS = 0.01, 20
# EM steps of hidden trees at most; where columns are too many for all pairs, so many times the states: later steps of
# many states fit to the rows, not to the table.
_STEPS, _STATE_STEPS = 40, 640
COUNTED = ("tree", "class trees")
"""Kinds of members whose sums are counts of levels, in which nothing is expected: one tree, or more in classes."""
CLASS_TREES = (("class trees", 1),)
"""The one member of a joint that is to be counted only, of columns of which the last is the class."""
TIED = "tied scores"
KINDS = {"tree": 1, "trees": 10, "hidden trees": 32, "scores": 30, TIED: 100}
"""The kinds of members, and how many components, or hidden states, each has at most; "tree" is one Chow–Liu tree."""
COMBINED = (
    ("trees", 10),
    ("trees", 3),
    ("hidden trees", 32),
    ("hidden trees", 8),
    ("scores", 30),
    ("scores", 5),
    (TIED, 100),
)
"""The members of the default combination: large ones for many rows, and small ones for few."""
FEW_ROWS = 1000
"""Beyond so many rows the default combination has no tied scores: they take long, and have next to no weight."""


class Density(Protocol):
    """A joint density of the copula of a table: a mixture, or one component."""

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns of the table."""

    def log_components(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return log w_k p_k(what is known of each row)."""

    def log_density(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the log density of what is known of each row."""

    def marginals(
        self, rows: Encoded, columns: Sequence[int], evidence: Evidence | None = None, logs: Array | None = None
    ) -> list[Array]:
        """Return the distribution of each of some columns, where it is unknown, given all that is known there."""

    def left_out(self, rows: Encoded, evidence: Evidence | None = None) -> LeftOut | None:
        """Return what the other cells of its row say of every cell that is there; None if there is no such way."""

    def draw(self, rows: Encoded, generator: np.random.Generator, evidence: Evidence | None = None) -> Drawn:
        """Draw the unknown cells of each row."""

    def reweighted(self, factors: Array) -> tuple["Density", float]:
        """Return the mixture whose weights are multiplied by these, and what they then add up to."""

    def expected(self, rows: Encoded, shares: Array) -> tuple[Array, ...]:
        """Return the expected sums of rows that belong to components by these responsibilities."""


# Which sums of each kind of member are counts.
_COUNTS = {
    "tree": (0, 1),
    "class trees": (0, 1, 2),
    "trees": (0, 1),
    "hidden trees": (0, 1, 2),
    "scores": (0, 3),
    TIED: (0, 3),
}


@dataclass(frozen=True, eq=False)
class Member:
    """A member of the combination: what it was solved with, under which density rows are expected, and their sums.

    Sums add: rows that are learned or forgotten later are expected under the same reference.
    """

    kind: str
    prior: Any
    reference: Any
    sums: Any
    missing: Array | None = None
    """counts of the tables of missing cells, of every component"""

    @cached_property
    def density(self) -> Density:
        """The density that the sums solve to."""
        found: Density = self.prior.solve(self.sums)
        return found

    @classmethod
    def of(cls, kind: str, found: tuple[Any, Learned[Any, Any]]) -> "Member":
        """Return the member that EM has found."""
        prior, (reference, sums) = found
        return cls(kind, prior, reference, sums)

    @property
    def counts(self) -> Array:
        """Those sums that are counts of rows, which are not negative."""
        return np.concatenate([np.ravel(self.sums[i]) for i in _COUNTS[self.kind]])

    def shares(self, rows: Encoded) -> Array:
        """Return responsibilities of components for rows under the reference, times the weights of rows."""
        return weighted(responsibilities(self.reference.log_components(rows)), rows.weights)

    def learned(self, rows: Encoded, missing: "MissingCells | None", sign: float = 1.0) -> "Member":
        """Return the member that has learned, or forgotten, rows, which are expected under the reference."""
        shares = self.shares(rows)
        counts = None if missing is None else missing.counts(rows.missing, shares)
        return self._plus(self.reference.expected(rows, shares), counts, sign)

    def merged(self, other: "Member", factor: float = 1.0) -> "Member":
        """Return the member that has learned what another with the same reference has, times a factor."""
        return self._plus(other.sums, other.missing, factor)

    def emptied(self) -> "Member":
        """Return the member that knows no rows, under the same reference."""
        missing = None if self.missing is None else 0.0 * self.missing
        sums = type(self.sums)(*(0.0 * part for part in self.sums))
        return Member(self.kind, self.prior, self.reference, sums, missing)

    def with_classes(self, columns: tuple[TableColumn, ...], index: NDArray[np.int64]) -> "Member":
        """Return counts of levels whose last column, the class, has others: the index of each before, or −1."""
        prior, sums = self.prior.with_classes(columns, self.sums, index)
        return Member(self.kind, prior, prior, sums)

    def advanced(self) -> "Member":
        """Return the member that knows no rows, and expects them under its density; counts of levels need no such."""
        return self.emptied() if self.kind in COUNTED else replace(self.emptied(), reference=self.density)

    def _plus(self, sums: tuple[Array, ...], counts: Array | None, sign: float) -> "Member":
        added = type(self.sums)(*(a + sign * b for a, b in zip(self.sums, sums, strict=True)))
        if counts is not None:
            counts = sign * counts if self.missing is None else self.missing + sign * counts
        return replace(self, sums=added, missing=self.missing if counts is None else counts)


@dataclass(frozen=True, eq=False)
class MissingCells:
    """Which cells are missing: in each component of each member, a tree of the columns that lack any."""

    columns: tuple[int, ...]
    tables: ScoreTables

    @classmethod
    def of(cls, missing: NDArray[np.bool_], weights: Array | None) -> "MissingCells | None":
        """Return what is to be modelled of missing cells, rows × columns; None if none are missing."""
        columns = tuple(np.flatnonzero(missing.any(axis=0)).tolist())
        if not columns:
            return None
        tables = ScoreTables.of(_indicators(missing[:, columns], weights))
        assert tables is not None
        return cls(columns, tables)

    def counts(self, missing: NDArray[np.bool_], shares: Array) -> Array:
        """Return the counts of every component's tables."""
        forest = self.tables.of_components(shares.shape[1])
        return forest.counts(np.ascontiguousarray(missing[:, list(self.columns)].astype(np.int16)), shares).tables

    def log_probability(self, counts: Array, missing: Sequence[int]) -> Array:
        """Return log p(these columns are missing | component)."""
        code = np.full((1, len(self.columns)), UNKNOWN, dtype=np.int16)
        code[0, [self.columns.index(j) for j in missing]] = 1
        return np.asarray(self.tables.solve(counts).log_densities(code)[0])

    def draw(
        self, counts: Array, components: NDArray[np.int32], known: Codes, generator: np.random.Generator
    ) -> NDArray[np.bool_]:
        """Draw which cells are missing, given those of which it is known: rows × columns that lack any."""
        forest = self.tables.solve(counts)
        drawn = native.tree_draw(forest.arrays, known, None, components, int(generator.integers(1 << 62)))
        return np.asarray(drawn == 1, dtype=bool)


def _indicators(missing: NDArray[np.bool_], weights: Array | None) -> Encoded:
    n, d = missing.shape
    column = CategoryColumn(("0", "1"), {}, np.zeros(2), named=False)
    empty = np.zeros((n, 0))
    return Encoded((column,) * d, missing.astype(np.int16), empty, empty, np.zeros((n, d)), weights)


@dataclass(frozen=True, eq=False)
class Combination:
    """A convex combination of joint densities of the same columns."""

    columns: tuple[TableColumn, ...]
    weights: Array
    members: tuple[Density, ...]
    missing: MissingCells | None = None
    counts: tuple[Array, ...] = ()
    """of each member, of missing cells"""

    @cached_property
    def log_weights(self) -> Array:
        """log w_m."""
        return np.log(self.weights)

    def log_members(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return log w_m p_m(what is known), rows × members."""
        found = [log_density(member, rows, evidence) for member in self.members]
        return np.stack(found, axis=1) + self.log_weights

    def log_density(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return log p(what is known) of each row, with what the marginals say."""
        return np.asarray(log_sum_exp(self.log_members(rows, evidence)) + rows.log.sum(axis=1))

    def marginals(self, rows: Encoded, columns: Sequence[int], evidence: Evidence | None = None) -> list[Array]:
        """Return the distribution of each of some columns, in rows where it is unknown, given all that is known there.

        Of each column: rows in which it is unknown × its support.
        """
        if not len(columns):
            return []
        spread = Spread.of(rows)
        asked = rows if spread is None else spread.rows
        logs = [member.log_components(asked, evidence) for member in self.members]
        every = np.stack([log_sum_exp(each) for each in logs], axis=1) + self.log_weights
        shares = responsibilities(every) if spread is None else spread.shares(every)
        if spread is not None:
            kept = spread.needed(shares)
            spread, shares, logs = spread.of_topics(kept), shares[kept], [each[kept] for each in logs]
        if spread is None:
            return self._mixed(rows, columns, evidence, logs, shares)
        found = self._mixed(spread.rows, columns, evidence, logs, shares)
        return [spread.added(each, spread.rows.levels[:, j] < 0) for j, each in zip(columns, found, strict=True)]

    def _mixed(
        self, rows: Encoded, columns: Sequence[int], evidence: Evidence | None, logs: list[Array], shares: Array
    ) -> list[Array]:
        """Return the distribution of columns, mixed by shares of members: rows × members."""
        found: list[Array] = []
        for m, (member, each) in enumerate(zip(self.members, logs, strict=True)):
            for at, part in enumerate(member.marginals(rows, columns, evidence, each)):
                part *= shares[rows.unknown(columns[at]), m, None]
                if m == 0:
                    found.append(part)
                else:
                    found[at] += part
        return found

    def left_out(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the distribution of every cell that is there given the others of its row, without the cell itself.

        It is on the supports of all columns, one after the other; 0, or anything, of cells that are missing. All cells
        are left out in one pass over each member, but where there are texts, or ranges of numbers as evidence.
        """
        if Spread.of(rows) is not None:
            return self.hidden_one_by_one(rows, evidence)
        owner = column_of_support(self.columns)
        total, top = np.zeros((rows.rows, len(owner))), np.full(rows.levels.shape, -np.inf)
        for log_weight, member in zip(self.log_weights, self.members, strict=True):
            part = member.left_out(rows, evidence)
            if part is None:
                return self.hidden_one_by_one(rows, evidence)
            logs = part.logs + log_weight
            most = np.maximum(np.maximum(top, logs), -1e300)
            total *= np.exp(top - most)[:, owner]
            total += np.exp(logs - most)[:, owner] * part.found
            top = most
        sums = np.add.reduceat(total, support_starts(self.columns)[:-1], axis=1)
        total /= np.maximum(sums, 1e-300)[:, owner]
        return total

    def hidden_one_by_one(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the same as ``left_out``, where each column is hidden by itself."""
        starts = support_starts(self.columns)
        total = np.zeros((rows.rows, int(starts[-1])))
        for j in range(len(self.columns)):
            there = np.flatnonzero(rows.levels[:, j] >= 0)
            if len(there):
                hidden = rows.taken(there).hiding(j)
                total[there, starts[j] : starts[j + 1]] = self.marginals(hidden, [j], evidence)[0]
        return total

    def draw(
        self,
        rows: Encoded,
        generator: np.random.Generator,
        evidence: Evidence | None = None,
        *,
        missing: bool = False,
        lacking: Sequence[int] = (),
    ) -> tuple[Codes, Array]:
        """Draw the unknown cells of each row: levels, and u of numbers that are none.

        With ``missing``, cells are missing as those of the data are: their levels are unknown. ``lacking``: columns
        whose cells are known to be missing.
        """
        logs = of_alike(rows, lambda some: self.log_members(some, evidence))
        chosen = drawn_components(responsibilities(logs), generator)
        levels, u = rows.levels.copy(), rows.u.copy()
        for m, member in enumerate(self.members):
            own = np.flatnonzero(chosen == m)
            if not len(own):
                continue
            part = rows.taken(own)
            known_cells = ~part.missing
            if evidence is not None:  # a cell of which something is given is there
                known_cells[:, list(evidence.known)] = True
            spread = Spread.of(part)
            if spread is not None:
                part = spread.drawn(member.log_density(spread.rows, evidence), generator)
            drawn = member.draw(part, generator, evidence)
            levels[own], u[own] = drawn.levels, drawn.u
            if missing and self.missing is not None:
                columns = list(self.missing.columns)
                known = np.ascontiguousarray(np.where(known_cells[:, columns], 0, UNKNOWN), dtype=np.int16)
                known[:, [columns.index(j) for j in lacking]] = 1
                gone = self.missing.draw(self.counts[m], drawn.components, known, generator)
                levels[np.ix_(own, np.array(columns))] = np.where(gone, UNKNOWN, drawn.levels[:, columns])
        return levels, u

    def given_missing(self, columns: Sequence[int]) -> tuple["Combination", float]:
        """Return the joint given that cells of these columns are missing, and the log probability of that."""
        if self.missing is None or not set(columns) <= set(self.missing.columns):
            return self, -np.inf
        members, factors = [], []
        for member, counts in zip(self.members, self.counts, strict=True):
            found, factor = member.reweighted(np.exp(self.missing.log_probability(counts, columns)))
            members.append(found)
            factors.append(factor)
        weights = self.weights * np.array(factors)
        total = float(weights.sum())
        return replace(self, weights=weights / total, members=tuple(members)), float(np.log(total))


def log_density(member: Density, rows: Encoded, evidence: Evidence | None = None) -> Array:
    """Return the log density of a member at each row, with the words of its texts."""
    spread = Spread.of(rows)
    if spread is None:
        return member.log_density(rows, evidence)
    return spread.summed(member.log_density(spread.rows, evidence))


def component_shares(member: Density, rows: Encoded, evidence: Evidence | None = None) -> Array:
    """Return p(component | row) of a member."""
    spread = Spread.of(rows)
    if spread is None:
        return responsibilities(member.log_components(rows, evidence))
    return responsibilities(spread.summed(member.log_components(spread.rows, evidence)))


def combination_weights(
    logs: Array, weights: Array | None = None, start: Array | None = None, steps: int = 500
) -> Array:
    """Return the weights of members of the greatest held-out likelihood, rows × members, by EM."""
    k = logs.shape[1]
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    counted = np.ones(len(logs)) if weights is None else weights

    def step(w: Array) -> Array:
        shares = likelihood * w
        found = counted @ (shares / shares.sum(axis=1, keepdims=True)) + _PRIOR_ROWS / k
        return np.asarray(found / found.sum())

    start = np.full(k, 1.0 / k) if start is None else start
    return iterate(start, step, lambda new, old: float(np.abs(new - old).max()), tolerance=1e-9, most=steps).at


def members_worth(logs: Array, weights: Array, needed: Sequence[int] = ()) -> tuple[list[int], Array]:
    """Return which members are worth their time, and their weights: from logarithms of held-out rows × members.

    The one of least worth is left out as long as all that are, together, are worth less than ``_WORTH`` nats a row, and
    one of those ``needed`` is left.
    """

    def likelihood(members: list[int], shares: Array) -> float:
        return float(np.average(log_sum_exp(logs[:, members] + np.log(shares)), weights=weights))

    kept = list(range(logs.shape[1]))
    shares = combination_weights(logs, weights)
    full = likelihood(kept, shares)
    while len(kept) > 1:
        found = []
        for m in range(len(kept)):
            others, rest = kept[:m] + kept[m + 1 :], np.delete(shares, m)
            if len(needed) and not set(needed) & set(others):
                continue
            rest = combination_weights(logs[:, others], weights, rest / rest.sum(), _FEW_STEPS)
            found.append((likelihood(others, rest), others, rest))
        best = max(found, key=lambda each: each[0])
        if full - best[0] > _WORTH:
            break
        _, kept, shares = best
    return kept, combination_weights(logs[:, kept], weights)


class Points(NamedTuple):
    """Rows as points for first groups: levels one-hot, scores × .8; what is missing at the mean."""

    values: NDArray[np.float32]
    column: NDArray[np.int64]
    """the column of the table that each coordinate is of"""

    @classmethod
    def of(cls, rows: Encoded) -> "Points":
        """Embed rows."""
        parts, owners = [np.zeros((rows.rows, 0), dtype=np.float32)], []
        index = number_index(rows.columns)
        for j, (column, size) in enumerate(zip(rows.columns, level_counts(rows.columns).tolist(), strict=True)):
            is_number = isinstance(column, NumberColumn) and column.bins > 1
            if is_number:
                parts.append((0.8 * np.nan_to_num(rows.z[:, [index[j]]])).astype(np.float32))
            if size > is_number:
                one_hot = (rows.levels[:, [j]] == np.arange(size - is_number)).astype(np.float32)
                missing = rows.levels[:, j] < 0
                if not missing.all():
                    weights = None if rows.weights is None else rows.weights[~missing]
                    one_hot -= np.average(one_hot[~missing], axis=0, weights=weights).astype(np.float32)
                one_hot[missing] = 0
                parts.append(one_hot)
            owners += [j] * (size)
        return cls(np.concatenate(parts, axis=1), np.array(owners, dtype=np.int64))

    def weighed(self, importance: Array) -> NDArray[np.float32]:
        """Return points whose coordinates count as much as their columns."""
        factors = importance[self.column].astype(np.float32)
        kept = factors > 0
        return np.ascontiguousarray(self.values[:, kept] * factors[kept])


def first_groups(
    points: NDArray[np.float32], k: int, generator: np.random.Generator, weights: Array | None, iterations: int
) -> NDArray[np.int64]:
    """Return the group of each row that k-means finds, from k-means++."""
    if not points.shape[1]:
        points = np.zeros((len(points), 1), dtype=np.float32)
    read = read_points(Table(points), weights=weights)
    found = next(restarts(read, k, "k-means++", 1, generator, weights, iterations))
    return found.labels.astype(np.int64)


def components(kind: str, rows: Encoded, most: int) -> int:
    """Return how many components, or hidden states, a member of these rows has, of so many at most."""
    if kind == "hidden trees":
        return int(min(most, max(2, rows.weight // 6)))
    each = {"tree": 1, "trees": 20, "scores": len(scored_numbers(rows.columns)) + 15, TIED: 2}[kind]
    return max(int(min(most, rows.weight // each)), 1)


def fit_member(kind: str, rows: Encoded, seed: int, most: int | None = None, among: Candidates | None = None) -> Member:
    """Fit one of KINDS to rows, of so many components or hidden states at most.

    ``among``: the pairs of columns that may be neighbours in trees, by default found here.
    """
    among = candidates(rows) if among is None else among
    if kind == "tree":
        return Member.of(kind, fit_tree(rows, among))
    k, d = components(kind, rows, most or KINDS[kind]), len(rows.columns)
    generator = np.random.default_rng(seed)
    points = Points.of(rows)
    if kind == "hidden trees":
        codes, levels, allowed = rows.binned(COARSE), level_counts(rows.columns, COARSE), among.of_columns
        information = among.information(codes, levels, rows.weights)
        entropy = entropies(codes, levels, rows.weights)
        groups = np.empty((rows.rows, d), dtype=np.int64)
        for j in range(d):
            importance = np.sqrt(information[j] / np.maximum(np.sqrt(entropy * entropy[j]), 1e-9))
            if allowed is not None:
                importance[~allowed[j]] = 0
            importance[j] = max(importance.max(), 0.5)
            importance /= importance.max()
            importance[importance < 0.1] = 0
            groups[:, j] = first_groups(points.weighed(importance), k, generator, rows.weights, 5)
        prior = HiddenTreePrior.of(rows, maximum_tree(information, allowed))
        steps = _STEPS if allowed is None else min(_STEPS, _STATE_STEPS // k)
        return Member.of(kind, (prior, fit_hidden_tree(rows, prior.first(rows, groups, k), prior, steps=steps)))
    groups_ = None if k <= 1 else first_groups(points.values, k, generator, rows.weights, 8)
    if kind == "trees":
        return Member.of(kind, fit_trees(rows, groups_, k, among))
    return Member.of(kind, fit_scores(rows, groups_, k, tied=kind == TIED))


def continued(member: Member, rows: Encoded, steps: int, among: Candidates | None = None) -> Member:
    """Take so many more EM steps from a member that was fitted to some of the rows."""
    kind, density = member.kind, cast("Any", member.density)
    if kind == "tree":
        return Member.of(kind, fit_tree(rows, among))
    if kind == "hidden trees":
        prior = HiddenTreePrior.of(rows, density.structure)
        return Member.of(kind, (prior, fit_hidden_tree(rows, density, prior, steps=steps)))
    if kind in ("scores", TIED):
        return Member.of(kind, continued_scores(rows, density, steps=steps, tied=kind == TIED))
    shares = responsibilities(density.log_components(rows))
    tree_prior, found = continued_trees(rows, shares, among, steps=steps)
    return Member.of(kind, (tree_prior, found.learned))
