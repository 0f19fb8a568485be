"""Gaussian mixtures of normal scores: each component a full Gaussian of z, and a tree of categories and atoms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.density.columns import EVIDENCE, Codes, Encoded, TableColumn, level_counts, numbers, scored_numbers
from likely.density.evidence import Evidence
from likely.density.left_out import LeftOut, support_starts
from likely.density.normal import ndtr, ndtri
from likely.density.structure import Candidates, Structure, maximum_tree
from likely.density.trees import Drawn, Forest, Learned, drawn_components, fit_mixture, log_sum_exp, responsibilities
from likely.families.gaussian import FullGaussian
from likely.statistics import Array

# Rows of the table of all rows that every component's table has beside its own.
_TABLE_ROWS = 10.0
# The same of components with one covariance for all, of which there are many, each of few rows.
_TIED_TABLE_ROWS = 0.3
_PSEUDO = (1.0, 3.0, 10.0, 30.0)
_MEAN_ROWS = 0.5
# EM steps at most, of tied covariances, and the gain of each row that is too little for more.
_STEPS, _TIED_STEPS, _TOLERANCE = 20, 8, 1e-3
# The pooled covariance: so much of its own diagonal, and of 1; and what every covariance has beside.
_DIAGONAL, _UNIT, _RIDGE = 0.1, 1e-3, 1e-6


class ScoreSums(NamedTuple):
    """The expected sums that a mixture of scores is solved from: they add."""

    weight: Array
    score: Array
    product: Array
    tables: Array


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """How tables of categories and atoms are solved: the tree, and the tables of all rows."""

    chosen: tuple[int, ...]
    """columns with more than one level"""
    forest: Forest
    """the tree with the tables of all rows, once"""

    @classmethod
    def of(cls, rows: Encoded, structure: Structure | None = None) -> "ScoreTables | None":
        """Return a tree, by default that of the greatest mutual information; None if no column has levels."""
        sizes = level_counts(rows.columns)
        chosen = tuple(np.flatnonzero(sizes > 1).tolist())
        if not chosen:
            return None
        codes, levels = np.ascontiguousarray(rows.levels[:, list(chosen)]), sizes[list(chosen)]
        if structure is None:
            among = Candidates.of(codes, levels, rows.weights)
            structure = maximum_tree(among.information(codes, levels, rows.weights), among.of_columns)
        pairs = np.array([(p, j) for j, p in enumerate(structure.parents.tolist()) if p >= 0], dtype=np.int64)
        counted = native.pair_counts(np.ascontiguousarray(codes.T), levels, pairs.reshape(-1, 2), rows.weights)
        ends = np.cumsum(levels[pairs].astype(np.int64).prod(axis=-1))[:-1]
        counts = iter(np.split(counted, ends))
        forest = Forest.empty(levels, [structure])
        for j, parent in enumerate(structure.parents.tolist()):
            there = codes[:, j] >= 0
            weights = None if rows.weights is None else rows.weights[there]
            marginal = np.bincount(codes[there, j], weights, minlength=levels[j]) + 0.5 / levels[j]
            marginal = marginal / marginal.sum()
            if parent < 0:
                forest.table(0, j)[:] = marginal
                continue
            forest.table(0, j)[:] = _backed_off(next(counts).reshape(levels[parent], -1), marginal)
        return cls(chosen, forest)

    def of_components(self, k: int) -> Forest:
        """Return the tables of all rows for each of k components."""
        forest = Forest.empty(self.forest.levels, self.forest.structures * k)
        return forest.with_tables(np.tile(self.forest.tables, k))

    def solve(self, tables: Array, rows: float = _TABLE_ROWS) -> Forest:
        """Return tables of expected counts, each with so many rows of the table of all rows."""
        counts = self.of_components(len(tables) // len(self.forest.tables)).with_tables(tables)
        out = counts.with_tables(np.empty_like(tables))
        for k in range(len(counts.structures)):
            for j in range(len(counts.levels)):
                found = counts.table(k, j)
                total = found.sum(axis=-1, keepdims=True)
                out.table(k, j)[:] = (found + rows * self.forest.table(0, j)) / (total + rows)
        return out


def _backed_off(counts: Array, marginal: Array) -> Array:
    """Return p(child | parent), with as much of the child's marginal as leaves rows out best."""
    rows = counts.sum(axis=1)[:, None]
    found = []
    for pseudo in _PSEUDO:
        left = np.log(np.maximum(counts - 1, 0) + pseudo * marginal) - np.log(np.maximum(rows - 1, 0) + pseudo)
        found.append((float((counts * left).sum()), pseudo))
    pseudo = max(found)[1]
    return np.asarray((counts + pseudo * marginal) / (rows + pseudo))


@dataclass(frozen=True, eq=False)
class ScoreDensity:
    """A mixture whose components are a Gaussian of all normal scores and a tree of categories and atoms."""

    columns: tuple[TableColumn, ...]
    weights: Array
    mean: Array
    covariance: Array
    tables: ScoreTables | None
    forest: Forest | None
    tied: bool = False
    """whether all covariances are one: then products are summed over components"""

    @cached_property
    def scored(self) -> list[tuple[int, int]]:
        """The numbers that have scores: index of the column, and of the number."""
        return scored_numbers(self.columns)

    @cached_property
    def gaussian(self) -> FullGaussian:
        """The Gaussians of scores."""
        return FullGaussian(self.mean, self.covariance, np.asarray(np.linalg.cholesky(self.covariance)))

    def _scores(self, rows: Encoded) -> Array:
        return np.ascontiguousarray(rows.z[:, [number for _, number in self.scored]])

    def _codes(self, rows: Encoded) -> Codes:
        assert self.tables is not None
        return np.ascontiguousarray(rows.levels[:, list(self.tables.chosen)])

    def log_components(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return log w_k p_k(what is known), of the copula."""
        if evidence is None:
            return self._log_levels(rows, None) + self._log_scores(rows)
        return np.asarray(np.logaddexp.reduce([logs for _, logs in self._cases(rows, evidence)]))

    def _log_levels(self, rows: Encoded, case: "Case | None") -> Array:
        """Return log w_k p_k(levels)."""
        if self.forest is None:
            return np.tile(np.log(self.weights), (rows.rows, 1))
        codes, likelihoods = self._codes(rows), None
        if case is not None:
            codes, likelihoods = case.levels(self, codes)
        return self.forest.log_densities(codes, likelihoods) + np.log(self.weights)

    def _log_scores(self, rows: Encoded) -> Array:
        """Return log p_k(scores), divided by that of independent standard Gaussians."""
        z, g = self._scores(rows), self.gaussian
        out = np.zeros((rows.rows, len(self.weights)))
        if z.shape[1]:
            native.score_full(z, None, g.mean, g.whitener, g.covariance, g.constant, None, out)
            there = ~np.isnan(z)
            out += (0.5 * np.where(there, z, 0.0) ** 2 + 0.5 * np.log(2 * np.pi) * there).sum(axis=1)[:, None]
        return out

    def log_density(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the log density of the copula at each row."""
        return log_sum_exp(self.log_components(rows, evidence))

    def _cases(self, rows: Encoded, evidence: Evidence | None) -> list[tuple["Case | None", Array]]:
        """Return the ways in which evidence may hold, and log w_k p_k(what is known) in each, rows × components.

        A number whose evidence is a range is either one of the atoms in it, or none: then its score is in a range.
        """
        if evidence is None:
            return [(None, self.log_components(rows))]
        scores = self._log_scores(rows)
        found: list[tuple[Case | None, Array]] = []
        for case in Case.all_of(self, evidence):
            logs = self._log_levels(rows, case) + scores
            if case.z_ranges:
                logs = logs + np.log(np.maximum(self._inside(rows, case), 1e-300))
            found.append((case, logs))
        return found

    def _inside(self, rows: Encoded, case: "Case") -> Array:
        """Return p(scores are in their ranges | the others, component), rows × components: once for equal rows."""
        z = self._scores(rows)  # in which NaN differs from NaN
        _, first, index = np.unique(np.nan_to_num(z, nan=np.inf), axis=0, return_index=True, return_inverse=True)
        z = z[first]
        found = np.ones((len(z), len(self.weights)))
        patterns, pattern = np.unique(~np.isnan(z), axis=0, return_inverse=True)
        for p, there in enumerate(patterns):
            own = np.flatnonzero(pattern.ravel() == p)
            for c in range(len(self.weights)):
                for some in _parts(own, case):
                    found[some, c] = Inside.of(self, c, z[some], there, case).weights.sum(axis=1)
        return found[index.ravel()]

    def expected(self, rows: Encoded, shares: Array) -> ScoreSums:
        """Return the expected sums of rows that belong to components by these responsibilities (weighted)."""
        z = self._scores(rows)
        tables = np.zeros(0)
        if self.forest is not None:
            tables = self.forest.counts(self._codes(rows), shares).tables
        k, m = self.mean.shape
        weight, score, product = shares.sum(axis=0), np.zeros((k, m)), np.zeros((k, m, m))
        if m:
            if np.isnan(z).any():
                g = self.gaussian
                counted, s, p = native.collect_responsibility_expected(z, None, shares, None, g.mean, g.precision)
                # rows without a score are left out there: they are expected as their component is
                p = p + (weight - counted)[:, None, None] * self.covariance
            else:
                _, s, p = native.collect_responsibility_scatter(z, None, shares, None, self.mean, False)[:3]
            o = self.mean
            score = s + weight[:, None] * o
            cross = o[:, :, None] * s[:, None, :]
            product = p + cross + np.swapaxes(cross, 1, 2) + weight[:, None, None] * o[:, :, None] * o[:, None, :]
        return ScoreSums(weight, score, product.sum(axis=0, keepdims=True) if self.tied else product, tables)

    def reweighted(self, factors: Array) -> tuple["ScoreDensity", float]:
        """Return the mixture whose weights are multiplied by these, and what they then add up to."""
        weights = self.weights * factors
        return replace(self, weights=weights / weights.sum()), float(weights.sum())

    def marginals(
        self, rows: Encoded, columns: Sequence[int], evidence: Evidence | None = None, logs: Array | None = None
    ) -> list[Array]:
        """Return the distribution of each of some columns, in rows where it is unknown, given all that is known there.

        ``logs``: those of ``log_components``, if they are there already.
        """
        cases = self._cases(rows, evidence) if evidence is not None or logs is None else [(None, logs)]
        shares = responsibilities(np.concatenate([logs for _, logs in cases], axis=1))
        out = [np.zeros((int((rows.levels[:, j] < 0).sum()), self.columns[j].support)) for j in columns]
        k = len(self.weights)
        for at, (case, _) in enumerate(cases):
            for total, found in zip(
                out, self._of_case(rows, columns, case, shares[:, at * k : (at + 1) * k]), strict=True
            ):
                total += found
        return [found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300) for found in out]

    def _of_case(self, rows: Encoded, columns: Sequence[int], case: "Case | None", shares: Array) -> list[Array]:
        """Return the distribution of columns on their supports in one case, mixed by responsibilities."""
        place = {j: at for at, (j, _) in enumerate(self.scored)}
        chosen = {} if self.tables is None else {j: at for at, j in enumerate(self.tables.chosen)}
        shares = np.ascontiguousarray(shares)
        listed = [j for j in columns if j in chosen]
        found = dict(zip(listed, self._levels(rows, [chosen[j] for j in listed], case, shares), strict=True))
        z, out = self._scores(rows), []
        for j in columns:
            own, column = rows.unknown(j), self.columns[j]
            if j not in place:
                out.append(found[j][own] if j in found else shares[own].sum(axis=1, keepdims=True))
                continue
            atoms, free = column.levels - 1, shares[own]
            if atoms:
                part = rows.taken(own)
                free = free * self._free(part, chosen[j], case, np.ascontiguousarray(free))
            bins = self._score_bins(z[own], place[j], column.bins, case, np.ascontiguousarray(free))
            out.append(np.concatenate([found[j][own, :-1], bins], axis=1) if atoms else bins)
        return out

    def _levels(self, rows: Encoded, chosen: list[int], case: "Case | None", shares: Array) -> list[Array]:
        """Return the distribution of levels of columns of the tree."""
        if not chosen or self.forest is None:
            return []
        codes, likelihoods = self._codes(rows), None
        if case is not None:
            codes, likelihoods = case.levels(self, codes)
        parts = native.tree_marginals(self.forest.arrays, codes, likelihoods, shares, chosen)
        return np.split(parts, np.cumsum(self.forest.levels[chosen])[:-1], axis=1)

    def _free(self, rows: Encoded, chosen: int, case: "Case | None", shares: Array) -> Array:
        """Return p(a number is none of its atoms | what is known, component), rows × components."""
        assert self.forest is not None
        codes, likelihoods = self._codes(rows), None
        if case is not None:
            codes, likelihoods = case.levels(self, codes)
        return native.tree_last_levels(self.forest.arrays, codes, likelihoods, shares, [chosen])

    def _score_bins(self, z: Array, i: int, bins: int, case: "Case | None", shares: Array) -> Array:
        """Return p(u of a score in each bin | the others), mixed by responsibilities, rows × bins."""
        edges = ndtri(np.arange(1, bins) / bins)
        if case is None or not case.z_ranges:
            return _in_bins(native.given_others(z, self.mean, self.gaussian.precision, [i]), shares, edges)
        out = np.zeros((len(z), bins))
        known = ~np.isnan(z)
        known[:, i] = False
        patterns, index = np.unique(known, axis=0, return_inverse=True)
        for p, there in enumerate(patterns):
            for c in range(len(self.weights)):
                near = np.flatnonzero((index.ravel() == p) & (shares[:, c] > _NEGLIGIBLE))
                for own in _parts(near, case):
                    inside = Inside.of(self, c, z[own], there, case)
                    out[own] += shares[own, c, None] * inside.bins(self, c, case, z[own], there, i, edges)
        return out

    def left_out(self, rows: Encoded, evidence: Evidence | None = None) -> LeftOut | None:
        """Return what the other cells of its row say of every cell that is there; None if scores are in ranges."""
        case: Case | None = None
        if evidence is not None:
            case, *more = Case.all_of(self, evidence)
            if more or case.z_ranges:
                return None
        n, (k, m) = rows.rows, self.mean.shape
        chosen = [] if self.tables is None else list(self.tables.chosen)
        places, starts = [j for j, _ in self.scored], support_starts(self.columns)
        others = np.repeat(self._log_scores(rows)[:, None], len(self.columns), axis=1)
        if m:
            given = native.given_others(self._scores(rows), self.mean, self.gaussian.precision, list(range(m)))
            others[:, places] -= given[0]
        logs = others + self._log_levels(rows, case)[:, None]
        found = np.ones((n, int(starts[-1])))
        shares, free = responsibilities(logs.reshape(-1, k)).reshape(logs.shape), np.ones(logs.shape)
        logs = log_sum_exp(logs.reshape(-1, k)).reshape(n, -1)
        if self.forest is not None:
            codes, likelihoods = self._codes(rows), None
            if case is not None:
                codes, likelihoods = case.levels(self, codes)
            others = np.ascontiguousarray(others[:, chosen] + np.log(self.weights))
            logs[:, chosen], levels, shares[:, chosen], free[:, chosen] = native.tree_left_out(
                self.forest.arrays, codes, likelihoods, others
            )
            # Of a number "none of these" is the first bin, until bins are filled in.
            to = np.concatenate([starts[j] + np.arange(self.columns[j].levels) for j in chosen])
            found[:, to] = levels
        if m:
            bins = self.columns[places[0]].bins
            to = np.concatenate([starts[j + 1] - bins + np.arange(bins) for j in places])
            mixed = np.ascontiguousarray(shares[:, places] * free[:, places])
            found[:, to] = _in_bins(given, mixed, ndtri(np.arange(1, bins) / bins)).reshape(n, -1)
        return LeftOut(logs, found)

    def draw(self, rows: Encoded, generator: np.random.Generator, evidence: Evidence | None = None) -> Drawn:
        """Draw the unknown cells of each row."""
        from likely.data.table import Block, Table

        k, alike = len(self.weights), rows.alike
        cases = self._cases(rows.taken(slice(0, 1)) if alike else rows, evidence)
        if alike:
            cases = [(case, np.repeat(logs, rows.rows, axis=0)) for case, logs in cases]
        drawn = drawn_components(responsibilities(np.concatenate([logs for _, logs in cases], axis=1)), generator)
        components, which = drawn % k, drawn // k
        levels, u = rows.levels.copy(), rows.u.copy()
        scores = self._scores(rows)
        for at, (case, _) in enumerate(cases):
            own = np.flatnonzero(which == at)
            part = rows.taken(own)
            if self.forest is not None and self.tables is not None:
                codes, likelihoods = self._codes(part), None
                if case is not None:
                    codes, likelihoods = case.levels(self, codes)
                seed = int(generator.integers(1 << 62))
                found = native.tree_draw(self.forest.arrays, codes, likelihoods, components[own], seed)
                levels[np.ix_(own, np.array(self.tables.chosen))] = found
            if case is not None and case.z_ranges:
                for c in np.unique(components[own]).tolist():
                    those = own[components[own] == c]
                    self._draw_ranges(scores, those, c, case, generator)
        levels[levels < 0] = 0  # columns of one level
        if self.scored:
            z = self.gaussian.drawn(Block(Table(scores), None), components.astype(np.int64), generator)
            for place, (j, number) in enumerate(self.scored):
                free = (levels[:, j] == self.columns[j].levels - 1) & (rows.levels[:, j] < 0)
                u[free, number] = ndtr(z[free, place])
        for number, (j, column) in enumerate(numbers(self.columns)):
            if column.bins == 1:
                free = (levels[:, j] == column.levels - 1) & (rows.levels[:, j] < 0)
                low, high = (0.0, 1.0) if evidence is None else evidence.ends(j)
                u[free, number] = low + (high - low) * generator.random(int(free.sum()))
        return Drawn(levels, u, components.astype(np.int32))

    def _draw_ranges(
        self, scores: Array, rows: NDArray[np.int64], c: int, case: "Case", generator: np.random.Generator
    ) -> None:
        """Draw scores that are in their ranges, of rows of one component, in place."""
        known = ~np.isnan(scores[rows])
        patterns, index = np.unique(known, axis=0, return_inverse=True)
        for p, there in enumerate(patterns):
            own = rows[index.ravel() == p]
            inside = Inside.of(self, c, scores[own], there, case, generator)
            picked = drawn_components(inside.weights, generator)
            scores[np.ix_(own, list(case.z_ranges))] = inside.points[np.arange(len(own)), picked]


@dataclass(frozen=True, eq=False)
class ScorePrior:
    """What mixtures of scores are solved with beside their sums: the tree of levels, with the tables of all rows."""

    columns: tuple[TableColumn, ...]
    tables: ScoreTables | None
    tied: bool = False
    """whether all components have the pooled covariance: so there may be many, each of few rows"""

    def first(self, k: int) -> ScoreDensity:
        """Return the mixture whose components are all standard, and have the tables of all rows."""
        m = len(scored_numbers(self.columns))
        forest = None if self.tables is None else self.tables.of_components(k)
        unit = np.tile(np.eye(m), (k, 1, 1))
        return ScoreDensity(self.columns, np.full(k, 1 / k), np.zeros((k, m)), unit, self.tables, forest, self.tied)

    def solve(self, sums: ScoreSums) -> ScoreDensity:
        """Return the mixture of expected sums."""
        n, m = sums.weight, sums.score.shape[1]
        weights = (n + 0.01) / (n + 0.01).sum()
        table_rows = _TIED_TABLE_ROWS if self.tied else _TABLE_ROWS
        forest = None if self.tables is None else self.tables.solve(sums.tables, table_rows)
        mean = sums.score / (n + _MEAN_ROWS)[:, None]
        cross = sums.score[:, :, None] * mean[:, None, :]
        own = (n + _MEAN_ROWS)[:, None, None] * mean[:, :, None] * mean[:, None, :]
        within = own - cross - np.swapaxes(cross, 1, 2)
        scatter = sums.product + (within.sum(axis=0, keepdims=True) if self.tied else within)
        pooled = scatter.sum(axis=0) / n.sum() if n.sum() > 0 else np.eye(m)
        pooled = (1 - _DIAGONAL) * pooled + _DIAGONAL * np.diag(np.diag(pooled)) + _UNIT * np.eye(m)
        if self.tied:
            covariance = np.tile(pooled, (len(n), 1, 1))
        else:
            nu = m + 2.0
            covariance = (scatter + nu * pooled) / (n + nu)[:, None, None]
        covariance += _RIDGE * np.eye(m)
        return ScoreDensity(self.columns, weights, mean, covariance, self.tables, forest, self.tied)


# Components with less responsibility than this for a row are left out of its answers.
_NEGLIGIBLE = 1e-9


def conditional(
    mean: Array, covariance: Array, z: Array, there: NDArray[np.bool_], of: list[int]
) -> tuple[Array, Array]:
    """Return mean (rows × of) and covariance of some scores, given those that are there."""
    known, asked = np.flatnonzero(there), np.array(of, dtype=np.int64)
    across: Array = covariance[np.ix_(known, asked)]
    own: Array = covariance[np.ix_(known, known)]
    slope = np.linalg.solve(own, across)
    return mean[asked] + (z[:, known] - mean[known]) @ slope, covariance[np.ix_(asked, asked)] - across.T @ slope


def _in_bins(given: list[Array], shares: Array, edges: Array) -> Array:
    """Return how much of scores given the others lies between edges, cells × bins, mixed by shares of components."""
    k = shares.shape[-1]
    return native.normal_bins(given[1].reshape(-1, k), given[2].reshape(-1, k), shares.reshape(-1, k), edges)


class Case(NamedTuple):
    """One way in which evidence may hold: which numbers are none of their atoms, and the ranges of their scores."""

    evidence: Evidence
    free: frozenset[int]
    """columns of numbers with a range that are none of their atoms"""
    z_ranges: dict[int, tuple[Array, Array]]
    """by the index among scores; both ends are arrays of no axes"""

    @classmethod
    def all_of(cls, density: ScoreDensity, evidence: Evidence) -> list["Case"]:
        """Return all ways: those in which a number is an atom, and those in which it is none."""
        place = {j: at for at, (j, _) in enumerate(density.scored)}
        ways: list[frozenset[int]] = [frozenset()]
        for j, known in evidence.known.items():
            if j not in place or known.anything:
                continue
            free = [way | {j} for way in ways] if known.levels[-1] > 0 and known.u_high > known.u_low else []
            ways = free + (ways if known.levels[:-1].any() else [])
            if len(ways) > _MOST_WAYS or max(map(len, ways), default=0) > _MOST_RANGES:
                raise ValueError(
                    f"expected at most {_MOST_RANGES} ranges, or {_MOST_WAYS.bit_length() - 1} of columns of repeated "
                    "numbers, got more: give sets or values of some"
                )
        cases = []
        for way in ways:
            ends = {place[j]: (ndtri(evidence.known[j].u_low), ndtri(evidence.known[j].u_high)) for j in sorted(way)}
            cases.append(cls(evidence, way, ends))
        return cases

    def levels(self, density: ScoreDensity, codes: Codes) -> tuple[Codes, Array]:
        """Return codes of the columns of the tree, and the likelihood of their levels."""
        assert density.tables is not None
        assert density.forest is not None
        codes, parts = codes.copy(), []
        scored = {j for j, _ in density.scored}
        for at, j in enumerate(density.tables.chosen):
            likelihood = np.ones(density.forest.levels[at])
            if j in self.evidence.known:
                likelihood = self.evidence.of_levels(j)
                if j in scored and not self.evidence.known[j].anything:
                    free = np.zeros_like(likelihood)
                    free[-1] = 1.0
                    likelihood = free if j in self.free else np.append(likelihood[:-1], 0.0)
                codes[codes[:, at] < 0, at] = EVIDENCE
            parts.append(likelihood)
        return codes, np.concatenate(parts)


class Inside(NamedTuple):
    """Points within ranges of scores of rows of one component and pattern, and the weights that integrate over them.

    One range: Gauss and Legendre's points; several: a lattice, one score after the other given those before (Genz,
    1992). The weights of a row add up to the probability of the ranges.
    """

    points: Array
    """rows × points × ranges"""
    weights: Array

    @classmethod
    def of(
        cls,
        density: ScoreDensity,
        c: int,
        z: Array,
        there: NDArray[np.bool_],
        case: Case,
        generator: np.random.Generator | None = None,
    ) -> "Inside":
        """Return points and weights; with a generator, points that are drawn."""
        ranges = list(case.z_ranges)
        mean, covariance = conditional(density.mean[c], density.covariance[c], z, there, ranges)
        factor = np.linalg.cholesky(covariance)
        at, weight = _lattice(len(ranges), len(z) > _FEW)
        if generator is not None:  # of one range a draw is exact; of several one of some is chosen by its weight
            drawn = 1 if len(ranges) == 1 else _DRAWN
            at, weight = generator.random((len(z), drawn, len(ranges))), np.full(drawn, 1 / drawn)
        points = np.empty((len(z), len(weight), len(ranges)))
        standard = np.empty_like(points)
        weights = np.tile(weight, (len(z), 1))
        for r, ends in enumerate(case.z_ranges.values()):
            centre = mean[:, r, None] + standard[:, :, :r] @ factor[r, :r]
            low, high = ((end - centre) / factor[r, r] for end in ends)
            # From the nearer tail, so that no digit is lost.
            flip = low > 0
            a, b = np.where(flip, -high, low), np.where(flip, -low, high)
            start, width = ndtr(a), ndtr(b) - ndtr(a)
            share = np.where(flip, 1 - at[..., r], at[..., r])
            y = np.clip(ndtri(np.clip(start + share * width, 1e-300, 1 - 1e-16)), a, b)
            standard[:, :, r] = np.where(flip, -y, y)
            points[:, :, r] = centre + factor[r, r] * standard[:, :, r]
            weights = weights * width
        return cls(points, weights)

    def bins(
        self, density: ScoreDensity, c: int, case: Case, z: Array, there: NDArray[np.bool_], i: int, edges: Array
    ) -> Array:
        """Return p(a score is between edges | ranges, the others), rows × bins."""
        share = self.weights / np.maximum(self.weights.sum(axis=1, keepdims=True), 1e-300)
        ranges = list(case.z_ranges)
        out = np.zeros((len(z), len(edges) + 1))
        if i in ranges:  # the score itself has a range
            own = self.points[:, :, ranges.index(i)]
            ends = case.z_ranges[i]
            if len(ranges) == 1:  # exactly
                mean, variance = conditional(density.mean[c], density.covariance[c], z, there, [i])
                cut = ndtr(
                    (np.clip(np.concatenate([[-np.inf], edges, [np.inf]]), *ends) - mean) / np.sqrt(variance[0, 0])
                )
                found = np.diff(cut, axis=1)
                return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))
            index = np.searchsorted(edges, own)
            for row in range(len(z)):
                out[row] = np.bincount(index[row], share[row], minlength=len(edges) + 1)
            return out
        n, q = self.weights.shape
        filled = np.repeat(z, q, axis=0)
        filled[:, ranges] = self.points.reshape(n * q, -1)
        filled[:, i] = np.nan
        parameters = density.mean[c : c + 1], density.gaussian.precision[c : c + 1]
        found = _in_bins(native.given_others(filled, *parameters, [i]), np.ones((n * q, 1)), edges)
        return np.asarray(np.einsum("nq,nqb->nb", share, found.reshape(n, q, -1)))


# Points of an integral over one range, or over two in each direction: of few rows and of many; over more; and points of
# which one is drawn. Points of rows that are looked at together, ways in which evidence may hold, and ranges, at most.
_POINTS, _LATTICE, _DRAWN = (48, 24), 2039, 64
_FEW, _TOGETHER, _MOST_WAYS, _MOST_RANGES = 16, 1 << 16, 256, 20


def _parts(rows: NDArray[np.int64], case: Case) -> list[NDArray[np.int64]]:
    """Return rows in parts whose points fit in little memory."""
    size = max(1, _TOGETHER // len(_lattice(len(case.z_ranges), len(rows) > _FEW)[1]))
    return np.array_split(rows, -(-len(rows) // size)) if len(rows) else []


@cache
def _lattice(dimensions: int, many: bool) -> tuple[Array, Array]:
    """Return points between 0 and 1 in so many dimensions, and their weights."""
    if dimensions <= 2:
        n = _POINTS[dimensions == 2 and many]
        x, w = np.polynomial.legendre.leggauss(n)
        x, w = (x + 1) / 2, w / 2
        if dimensions == 1:
            return x[:, None], w
        return np.stack([np.repeat(x, n), np.tile(x, n)], axis=1), np.outer(w, w).ravel()
    # A rank-1 lattice of the square roots of primes (Richtmyer), folded so that its integrand is periodic.
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71], dtype=np.float64)
    step = np.sqrt(primes[:dimensions])
    at = ((np.arange(_LATTICE)[:, None] + 0.5) * step) % 1.0
    return np.abs(2 * at - 1), np.full(_LATTICE, 1 / _LATTICE)


def fit_scores(
    rows: Encoded, groups: NDArray[np.int64] | None, k: int, *, tied: bool = False
) -> tuple[ScorePrior, Learned[ScoreDensity, ScoreSums]]:
    """Fit a mixture of k components by EM from first groups of rows; with ``tied`` all have one covariance."""
    prior = ScorePrior(rows.columns, ScoreTables.of(rows), tied)
    first = np.ones((rows.rows, 1)) if groups is None else 0.9 * np.eye(k)[groups] + 0.1 / k
    steps = _TIED_STEPS if tied else _STEPS
    found = fit_mixture(prior, prior.first(k), first, rows, steps=steps, tolerance=_TOLERANCE)
    return prior, found.learned


def continued_scores(
    rows: Encoded, density: ScoreDensity, *, steps: int, tied: bool = False
) -> tuple[ScorePrior, Learned[ScoreDensity, ScoreSums]]:
    """Take more EM steps, on these rows, from a mixture of others."""
    structure = None if density.tables is None else density.tables.forest.structures[0]
    prior = ScorePrior(rows.columns, ScoreTables.of(rows, structure), tied)
    shares = responsibilities(density.log_components(rows))
    return prior, fit_mixture(prior, density, shares, rows, steps=steps, tolerance=_TOLERANCE).learned
