"""Hidden Chow–Liu trees: each column hangs on a hidden state of its own, and the hidden states form a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.density.columns import Codes, Encoded, TableColumn, level_counts, number_index, scored_numbers
from likely.density.evidence import Evidence
from likely.density.left_out import LeftOut
from likely.density.normal import bins_of_normal, ndtr, ndtri
from likely.density.structure import Structure
from likely.density.trees import Drawn, Learned
from likely.em import iterate
from likely.statistics import Array

# Imagined rows: of the child's marginal and of all states alike in transitions, of the marginal in levels, and of a
# normal score of mean 0 and this variance in Gaussians.
_TRANSITION_ROWS, _UNIFORM = 2.0, 0.1
_LEVEL_ROWS = 1.0
_GAUSSIAN_ROWS, _GAUSSIAN_VARIANCE = 0.5, 0.3
_LEAST_VARIANCE = 1e-4

Ints = NDArray[np.int32]
Arrays = tuple[tuple[Ints, Ints, Array, Array], tuple[Ints, Array, Ints, Array, Array]]
"""A tree as the core takes it: structure, root and transitions; and what columns are like in each state."""
Rows = tuple[Codes, Array, Array | None, Array | None]
"""Rows as the core takes them: levels, scores, likelihoods of states if there is evidence, and weights."""


class Sums(NamedTuple):
    """The expected sums that a hidden tree is solved from: they add."""

    root: Array
    transitions: Array
    levels: Array
    score: Array
    square: Array


@dataclass(frozen=True, eq=False)
class HiddenTreeDensity:
    """Hidden states in a tree, and what each column is like in each of its states."""

    columns: tuple[TableColumn, ...]
    structure: Structure
    root: Array
    transitions: Array
    """columns × states of the parent × states"""
    probabilities: Array
    """levels of all columns × states"""
    mean: Array
    """numbers × states"""
    variance: Array

    @property
    def states(self) -> int:
        """How many hidden states every column has."""
        return len(self.root)

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """How many levels every column has."""
        return level_counts(self.columns)

    @cached_property
    def scored(self) -> list[tuple[int, int]]:
        """The numbers that have scores: index of the column, and of the number."""
        return scored_numbers(self.columns)

    @cached_property
    def arrays(self) -> Arrays:
        """What the core takes."""
        index = np.full(len(self.columns), -1, dtype=np.int32)
        for place, (j, _) in enumerate(self.scored):
            index[j] = place
        tree = self.structure.parents, self.structure.order, self.root, self.transitions.ravel()
        return tree, (self.sizes, self.probabilities, index, self.mean, self.variance)

    def _rows(self, rows: Encoded, evidence: Evidence | None = None, *, weighted: bool = False) -> Rows:
        codes, likelihoods = rows.levels, None
        if evidence is not None:
            codes, likelihoods = self._evidence(codes, evidence)
        scores = np.ascontiguousarray(rows.z[:, [number for _, number in self.scored]])
        return codes, scores, likelihoods, rows.weights if weighted else None

    def _evidence(self, codes: Codes, evidence: Evidence) -> tuple[Codes, Array]:
        """Return the likelihood of every state of columns with evidence."""
        codes, _ = evidence.of_bins(codes, 1)
        out = np.ones((len(self.columns), self.states))
        for j, known in evidence.known.items():
            shares = known.levels[:, None] * self._levels(j)
            inside = self._inside(j, known.u_low, known.u_high)
            if inside is not None:
                shares[-1] *= inside
            out[j] = shares.sum(axis=0)
        return codes, out

    def _levels(self, j: int) -> Array:
        """p(level | state) of a column, levels × states."""
        return self.probabilities[self._starts[j] : self._starts[j + 1]]

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where the levels of each column begin, and the last end."""
        return np.append(0, np.cumsum(self.sizes))

    @cached_property
    def _places(self) -> dict[int, int]:
        """The index among scores of every column that has some."""
        return {j: place for place, (j, _) in enumerate(self.scored)}

    def _gaussian(self, j: int) -> tuple[Array, Array] | None:
        """Mean and standard deviation of the score of a column in every state."""
        place = self._places.get(j)
        return None if place is None else (self.mean[place], np.sqrt(self.variance[place]))

    def _inside(self, j: int, low: float, high: float) -> Array | float | None:
        """p(u between low and high | state, none of the atoms)."""
        gaussian = self._gaussian(j)
        if gaussian is None:
            return max(high - low, 0.0) if self.columns[j].bins else None
        mean, deviation = gaussian
        found: Array = ndtr((ndtri(high) - mean) / deviation) - ndtr((ndtri(low) - mean) / deviation)
        return np.maximum(found, 0.0)

    def log_density(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the log density of the copula at each row."""
        return native.hidden_log_densities(self.arrays, self._rows(rows, evidence))

    def log_components(self, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the log density of the copula at each row, as that of one component."""
        return self.log_density(rows, evidence)[:, None]

    def reweighted(self, factors: Array) -> tuple["HiddenTreeDensity", float]:
        """Return the same: there is one component, whose weight is multiplied."""
        return self, float(factors[0])

    def expected(self, rows: Encoded, shares: Array) -> Sums:
        """Return the expected sums of rows, which all belong to the one component by their weight."""
        return self.step(rows._replace(weights=shares[:, 0]))[1]

    def step(self, rows: Encoded) -> tuple[Array, Sums]:
        """Return the log density of each row, and the expected sums of all."""
        logs, sums = native.hidden_step(self.arrays, self._rows(rows, weighted=True))
        return logs, Sums(*sums)

    def table(self, j: int) -> Array:
        """Return the distribution of a column on its support in every state, states × support."""
        levels, gaussian = self._levels(j), self._gaussian(j)
        if gaussian is None:
            return np.ascontiguousarray(levels.T)
        mean, deviation = gaussian
        inside = bins_of_normal(mean, deviation, self.columns[j].bins)
        return np.concatenate([levels[:-1].T, levels[-1][:, None] * inside], axis=1)

    def marginals(
        self, rows: Encoded, columns: Sequence[int], evidence: Evidence | None = None, logs: Array | None = None
    ) -> list[Array]:
        """Return the distribution of each of some columns, in rows where it is unknown, given all that is known there.

        ``logs``: those of ``log_components``, if they are there already.
        """
        found = native.hidden_posteriors(self.arrays, self._rows(rows, evidence), list(columns))
        states = found.reshape(rows.rows, len(columns), self.states)
        out = []
        for place, j in enumerate(columns):
            table = self.table(j)
            if evidence is not None and j in evidence.known:
                table = evidence.restricted(j, table)
            out.append(np.ascontiguousarray(states[rows.unknown(j), place]) @ table)
        return out

    @cached_property
    def _supports(self) -> tuple[Ints, Array]:
        """How many values the support of each column has, and their distributions in every state."""
        tables = [self.table(j).ravel() for j in range(len(self.columns))]
        return np.array([column.support for column in self.columns], dtype=np.int32), np.concatenate(tables)

    def left_out(self, rows: Encoded, evidence: Evidence | None = None) -> LeftOut:
        """Return what the other cells of its row say of every cell that is there."""
        return LeftOut(*native.hidden_left_out(self.arrays, self._rows(rows, evidence), *self._supports))

    def draw(self, rows: Encoded, generator: np.random.Generator, evidence: Evidence | None = None) -> Drawn:
        """Draw the unknown cells of each row."""
        states = native.hidden_draw(self.arrays, self._rows(rows, evidence), int(generator.integers(1 << 62)))
        levels, u = rows.levels.copy(), rows.u.copy()
        index = number_index(self.columns)
        for j, column in enumerate(self.columns):
            new = np.flatnonzero(rows.levels[:, j] < 0)
            if not len(new):
                continue
            own = states[new, j]
            table = self._levels(j)
            low, high = 0.0, 1.0
            if evidence is not None and j in evidence.known:
                known = evidence.known[j]
                low, high = known.u_low, known.u_high
                table = table * known.levels[:, None]
                inside = self._inside(j, low, high)
                if inside is not None:
                    table = np.concatenate([table[:-1], table[-1:] * inside])
            # All states at once: running sums of each lie above those of the state before.
            running = np.cumsum(table, axis=0)
            ends = (running / np.maximum(running[-1], 1e-300)).T + np.arange(self.states)[:, None]
            drawn = np.searchsorted(ends.ravel(), own + generator.random(len(new)), side="right") - own * len(table)
            levels[new, j] = np.clip(drawn, 0, len(table) - 1)
            if j not in index:
                continue
            free = new[levels[new, j] == column.levels - 1]
            share, gaussian = generator.random(len(free)), self._gaussian(j)
            if gaussian is None:
                u[free, index[j]] = low + share * (high - low)
                continue
            mean, deviation = gaussian[0][states[free, j]], gaussian[1][states[free, j]]
            ends = ndtr((ndtri(low) - mean) / deviation), ndtr((ndtri(high) - mean) / deviation)
            z = mean + deviation * ndtri(ends[0] + share * (ends[1] - ends[0]))
            u[free, index[j]] = np.clip(ndtr(z), low, high)
        return Drawn(levels, u, np.zeros(rows.rows, dtype=np.int32))


@dataclass(frozen=True, eq=False)
class HiddenTreePrior:
    """What hidden trees are solved with beside their sums: the structure, and marginals of levels."""

    columns: tuple[TableColumn, ...]
    structure: Structure
    marginals: Array
    """of the levels of all columns, one after the other"""

    @classmethod
    def of(cls, rows: Encoded, structure: Structure) -> "HiddenTreePrior":
        """Return the prior of these rows."""
        found = []
        for j, size in enumerate(level_counts(rows.columns).tolist()):
            there = rows.levels[:, j] >= 0
            weights = None if rows.weights is None else rows.weights[there]
            counts = np.bincount(rows.levels[there, j], weights, minlength=size) + 0.5 / size
            found.append(counts / counts.sum())
        return cls(rows.columns, structure, np.concatenate(found))

    def solve(self, sums: Sums) -> HiddenTreeDensity:
        """Return the hidden tree of expected sums."""
        k = len(sums.root)
        root = (sums.root + 0.1) / (sums.root.sum() + 0.1 * k)
        totals = sums.transitions.sum(axis=1)
        child = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1e-300)
        transitions = sums.transitions + _TRANSITION_ROWS * ((1 - _UNIFORM) * child + _UNIFORM / k)[:, None, :]
        transitions /= transitions.sum(axis=2, keepdims=True)
        sizes = level_counts(self.columns)
        starts = np.append(0, np.cumsum(sizes))[:-1]
        total = np.repeat(np.add.reduceat(sums.levels, starts, axis=0), sizes, axis=0)
        probabilities = (sums.levels + _LEVEL_ROWS * self.marginals[:, None]) / (total + _LEVEL_ROWS)
        last = [starts[j] + sizes[j] - 1 for j, _ in scored_numbers(self.columns)]
        n = sums.levels[np.array(last, dtype=np.int64)]
        mean = sums.score / (n + _GAUSSIAN_ROWS)
        scatter = sums.square - 2 * mean * sums.score + n * mean**2
        imagined = _GAUSSIAN_ROWS * (mean**2 + _GAUSSIAN_VARIANCE)
        variance = np.maximum((scatter + imagined) / (n + _GAUSSIAN_ROWS), _LEAST_VARIANCE)
        return HiddenTreeDensity(self.columns, self.structure, root, transitions, probabilities, mean, variance)

    def first(self, rows: Encoded, groups: NDArray[np.int64], k: int, sharp: float = 0.9) -> HiddenTreeDensity:
        """Return the hidden tree whose states are first groups of the rows, one grouping for every column."""
        weights = np.ones(rows.rows) if rows.weights is None else rows.weights
        soft = (1 - sharp) / k

        def spread(totals: Array | NDArray[np.intp], hard: Array | NDArray[np.intp]) -> Array:
            return np.asarray(soft * totals[:, None] + sharp * hard)

        d, sizes = len(self.columns), level_counts(self.columns)
        counts = np.stack([np.bincount(groups[:, j], weights, minlength=k) for j in range(d)])
        total = float(weights.sum())
        transitions = np.zeros((d, k, k))
        for j, parent in enumerate(self.structure.parents.tolist()):
            if parent >= 0:
                pairs = np.bincount(groups[:, parent] * k + groups[:, j], weights, minlength=k * k).reshape(k, k)
                transitions[j] = (
                    sharp**2 * pairs + sharp * soft * (counts[parent][:, None] + counts[j][None, :]) + soft**2 * total
                )
        levels: list[Array] = []
        score: list[Array] = []
        square: list[Array] = []
        place = dict(scored_numbers(self.columns))
        for j, size in enumerate(sizes.tolist()):
            code = rows.levels[:, j]
            there = code >= 0
            hard = np.bincount(code[there] * k + groups[there, j], weights[there], minlength=size * k).reshape(size, k)
            levels.append(spread(np.bincount(code[there], weights[there], minlength=size), hard))
            if j in place:
                free = code == size - 1
                z, w = rows.z[free, place[j]], weights[free]
                for out, power in ((score, z), (square, z * z)):
                    out.append(soft * (w @ power) + sharp * np.bincount(groups[free, j], w * power, minlength=k))
        empty = np.zeros((0, k))
        root = int(self.structure.order[0])
        sums = Sums(
            soft * total + sharp * counts[root],
            transitions,
            np.concatenate(levels),
            np.stack(score) if score else empty,
            np.stack(square) if square else empty,
        )
        return self.solve(sums)


class HiddenStep(NamedTuple):
    """Where EM is, and from what it was solved; how likely rows are, in the mean, under the tree before."""

    density: HiddenTreeDensity
    learned: Learned[HiddenTreeDensity, Sums] | None
    log_likelihood: float


def fit_hidden_tree(
    rows: Encoded, start: HiddenTreeDensity, prior: HiddenTreePrior, *, steps: int, tolerance: float = 1e-4
) -> Learned[HiddenTreeDensity, Sums]:
    """Fit a hidden tree by EM from a first one."""

    def step(at: HiddenStep) -> HiddenStep:
        logs, sums = at.density.step(rows)
        found = float(np.average(logs, weights=rows.weights))
        return HiddenStep(prior.solve(sums), Learned(at.density, sums), found)

    def gain(new: HiddenStep, old: HiddenStep) -> float:
        return new.log_likelihood - old.log_likelihood

    ended = iterate(HiddenStep(start, None, -1e300), step, gain, tolerance=tolerance, most=steps).at
    assert ended.learned is not None
    return ended.learned
