"""The marginal of every column, frozen after the first pass: its levels, and of numbers a histogram, u and z scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.density.normal import ndtri
from likely.statistics import Array

if TYPE_CHECKING:
    from likely.density.evidence import Known

Codes = NDArray[np.int16]

UNKNOWN, EVIDENCE = -1, -2

# Numbers with so many distinct values, or more, have a histogram; of others every frequent value is a level.
_DISTINCT = 30
# A value with this share of the cells, and so many of them, is an atom: a level of its own.
_ATOM_SHARE, _ATOM_CELLS = 0.05, 8
# An atom has 5 % of the cells, or is one of fewer than 30 values.
_MOST_ATOMS = _DISTINCT
# Categories and repeated values with fewer cells, and those beyond so many, are one level together.
_RARE, _MOST_LEVELS = 3, 64
# Bins that a histogram may have, and the part of the density that is a wide logistic.
_BINS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_WIDE = 0.01
# Scores beyond this are those of probabilities that floats do not tell from 0.
_FARTHEST = 37.0
# A density below this may have lost digits: then it is the logistic's, whose logarithm is known.
_SMALL = 1e-280
# Less than this is 0: what is divided by it would be infinite. Beyond the other, several times a number would be.
_LEAST, _GREATEST = 1e-290, 1e306
# So many scales away from the centre is as far as it is looked at.
_FAR = 1e300
# So many quantiles of the numbers are kept: values are drawn from them.
_QUANTILES = 2048
# Bins of u in which answers about a number are given.
SUPPORT = 64


class Scores(NamedTuple):
    """Where cells of a number lie: its level, and where that is "none of these", u, z and log f."""

    levels: Codes
    u: Array
    z: Array
    log: Array


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """A column of categories: the frequent ones, and one level for all rare ones; others are unknown."""

    frequent: tuple[str, ...]
    rare: dict[str, float]
    """shares of categories within the level of rare ones"""
    counts: Array
    """of the levels"""
    named: bool = True
    """whether categories have names, and are not no and yes"""

    bins = 0

    @classmethod
    def fit(cls, names: Sequence[str], counts: Array, *, named: bool = True) -> "CategoryColumn":
        """Return the column of categories with these weights; no and yes are levels however rare they are."""
        order = np.argsort(-counts, kind="stable")
        kept = [i for i in order[:_MOST_LEVELS].tolist() if counts[i] >= _RARE or not named]
        frequent = tuple(sorted(names[i] for i in kept))
        weight = dict(zip(names, counts.tolist(), strict=True))
        others = {name: count for name, count in weight.items() if name not in set(frequent) and count > 0}
        total = sum(others.values())
        levels = [weight[name] for name in frequent] + [total] * bool(others or not frequent)
        return cls(frequent, {k: v / total for k, v in others.items()}, np.array(levels, dtype=np.float64), named)

    @property
    def has_rare(self) -> bool:
        """Whether there is a level of rare categories, or none at all."""
        return bool(self.rare) or not self.frequent

    def validate(self) -> None:
        """Raise ValueError unless the parts of the column belong together."""
        shares = list(self.rare.values())
        if len(self.counts) != self.levels or not all(s > 0 for s in shares) or len(self.frequent) > _MOST_LEVELS:
            raise ValueError("expected a count of every category, and positive shares of rare ones, got others")
        if (
            len({*self.frequent, *self.rare}) < len(self.frequent) + len(shares)
            or abs(sum(shares) - 1) * len(shares) > 1e-6
        ):
            raise ValueError("expected different categories whose shares add up to 1, got others")
        if not self.named and self.frequent != ("0", "1"):
            raise ValueError("expected no and yes where categories have no names, got others")

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.frequent) + self.has_rare

    @property
    def support(self) -> int:
        """How many values an answer about the column has."""
        return self.levels

    def scored(self, names: Sequence[str], codes: Array) -> Scores:
        """Return the level of each code of ``names``, and log p(category | level); those never seen are unknown."""
        place = {name: i for i, name in enumerate(self.frequent)} | dict.fromkeys(self.rare, len(self.frequent))
        levels = np.array([place.get(name, UNKNOWN) for name in names] + [UNKNOWN], dtype=np.int16)
        within = np.array([float(np.log(self.rare.get(name, 1.0))) for name in names] + [0.0])
        index = np.where(np.isnan(codes), len(names), np.nan_to_num(codes)).astype(np.int64)
        empty = np.full(len(codes), np.nan)
        return Scores(levels[index], empty, empty, within[index])


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers: atoms, and for all others a histogram mixed with a wide logistic, F.

    u = F(x) is uniform between 0 and 1 and z = Φ⁻¹(u) normal; log f(x) is what the column says by itself. Of whole
    numbers f is not a density but the probability of the number, F(x + ½) − F(x − ½), and F leaves out the atoms: the
    probabilities of all other whole numbers add up to 1.
    """

    atoms: Array
    edges: Array
    shares: Array
    """of the bins"""
    centre: float
    scale: float
    quantiles: Array
    """of the numbers that are no atoms, evenly spaced"""
    counts: Array
    """of atoms, and of all others"""
    bins: int
    """1 if there are so few distinct numbers that only atoms and "none of these" are told apart, else many"""
    whole: bool = False
    """whether cells are whole numbers, which have probabilities"""

    @classmethod
    def fit(cls, values: Array, weights: Array | None = None, *, whole: bool = False) -> "NumberColumn":
        """Return the marginal of numbers, of which those that are NaN are left out.

        ``whole``: whether they are said to be whole numbers; they are not if one is none.
        """
        there = ~np.isnan(values)
        x, w = values[there], np.ones(there.sum()) if weights is None else weights[there]
        x, w = x[w > 0], w[w > 0]
        whole = whole and bool(np.all(x == np.rint(x)))
        distinct, inverse = np.unique(x, return_inverse=True)
        if len(distinct) and max(-distinct[0], distinct[-1]) > _GREATEST:
            raise ValueError(
                f"expected numbers between -{_GREATEST:g} and {_GREATEST:g}, got {distinct[0]:g} to {distinct[-1]:g}: "
                "divide them by a large number"
            )
        if len(distinct) > 1 and distinct[-1] - distinct[0] < _LEAST:
            raise ValueError(
                f"expected numbers that differ by {_LEAST:g} or more, got {distinct[0]:g} to {distinct[-1]:g}: "
                "multiply them by a large number"
            )
        counts = np.bincount(inverse, w, minlength=len(distinct)).astype(np.float64)
        total = float(counts.sum())
        few = len(distinct) < min(_DISTINCT, total / 8)
        frequent = counts >= _RARE if few else (counts >= _ATOM_SHARE * total) & (counts >= _ATOM_CELLS)
        atoms, rest, cells = distinct[frequent], distinct[~frequent], counts[~frequent]
        n = float(cells.sum())
        levels = np.append(counts[frequent], n)
        if n < 5:  # too few for a histogram of their own
            rest, cells = distinct, counts
        if len(rest) == 0:
            rest, cells = np.zeros(1), np.ones(1)
        edges, shares = _histogram(rest, cells)
        weight = float(cells.sum())
        running = np.cumsum(cells)
        centre = float(rest[np.searchsorted(running, 0.5 * weight)])
        # Squares of huge numbers would be infinite: deviations are taken in units of the largest.
        unit = max(float(np.abs(rest).max()), _LEAST)
        away = rest / unit - np.average(rest / unit, weights=cells)
        scale = unit * float(np.sqrt(np.average(away**2, weights=cells)))
        scale = max(scale, 1e-9 * max(1.0, abs(centre)) if scale == 0 or abs(centre) > 1e9 * scale else _LEAST)
        if whole:
            scale = max(scale, 1.0)
            edges, shares = _around_atoms(edges, shares, atoms)
        m = int(min(_QUANTILES, max(round(weight), 1)))
        at = np.searchsorted(running, (np.arange(m) + 0.5) / m * weight)
        quantiles = rest[np.minimum(at, len(rest) - 1)]
        return cls(atoms, edges, shares, centre, scale, quantiles, levels, 1 if few else SUPPORT, whole)

    def validate(self) -> None:
        """Raise ValueError unless the parts of the column belong together."""
        flat = all(x.ndim == 1 for x in (self.atoms, self.edges, self.shares, self.quantiles, self.counts))
        rising = all(np.all(np.diff(x) > 0) for x in (self.atoms, self.edges)) and np.all(np.diff(self.quantiles) >= 0)
        sized = len(self.edges) == len(self.shares) + 1 and len(self.counts) == len(self.atoms) + 1
        if not (flat and rising and sized and len(self.shares) and len(self.quantiles) and self.bins in (1, SUPPORT)):
            raise ValueError("expected edges, quantiles and atoms of a number in rising order, got others")
        if not (self.scale > 0 and np.all(self.shares >= 0) and abs(self.shares.sum() - 1) < 1e-6):
            raise ValueError("expected shares of bins that add up to 1, and a positive scale, got others")
        wholes = np.concatenate([2 * self.edges, self.atoms, self.quantiles])
        if self.whole and not (self.scale >= 1 and np.all(wholes == np.rint(wholes))):
            raise ValueError("expected edges of whole numbers at or between them, and a scale of 1 or more, got others")
        if len(self.atoms) > _MOST_ATOMS:
            raise ValueError(f"expected at most {_MOST_ATOMS} repeated numbers, got {len(self.atoms)}")

    @property
    def levels(self) -> int:
        """How many levels there are: atoms, and "none of these"."""
        return len(self.atoms) + 1

    @property
    def support(self) -> int:
        """How many values an answer about the column has: atoms, and bins of u."""
        return len(self.atoms) + self.bins

    @property
    def empty(self) -> bool:
        """Whether no number was there: then none is drawn, or filled in."""
        return not self.counts.any()

    @cached_property
    def _density(self) -> Array:
        """The density of each bin, and 0 before and after all."""
        return np.concatenate([[0.0], self.shares / np.diff(self.edges), [0.0]])

    @cached_property
    def _running(self) -> tuple[Array, Array]:
        """The shares below and above every edge, each added up from its own end, so that none is less than 0."""
        return np.append(0.0, np.cumsum(self.shares)), np.append(np.cumsum(self.shares[::-1])[::-1], 0.0)

    @cached_property
    def _wide_atoms(self) -> tuple[Array, Array]:
        """What the logistic has at the first atoms, so many of them, and at all others; 0 but of whole numbers."""
        masses = np.exp(self._log_step(self.atoms)) if self.whole else np.zeros(len(self.atoms))
        return np.append(0.0, np.cumsum(masses)), np.append(np.cumsum(masses[::-1])[::-1], 0.0)

    def _log_step(self, x: Array) -> Array:
        """Return the logarithm of what the logistic has within ½ of these numbers."""
        t, half = np.abs(self._away(x)), 0.5 / self.scale
        return np.asarray(np.log(2 * np.sinh(half)) - t - np.log1p(np.exp(-2 * t) + 2 * np.cosh(half) * np.exp(-t)))

    def _away(self, x: Array) -> Array:
        """Return how many scales numbers are away from the centre."""
        with np.errstate(over="ignore"):
            return np.clip((x - self.centre) / self.scale, -_FAR, _FAR)

    def distribution(self, x: Array) -> tuple[Array, Array]:
        """Return F(x) and 1 − F(x), each to its last digit, of numbers that are no atoms."""
        return self._below(x), self._above(x)

    def _below(self, x: Array) -> Array:
        """Return F(x) of numbers that are no atoms."""
        return self._mixed(x, _logistic(self._away(x)), self._wide_atoms[0], self._running[0])

    def _above(self, x: Array) -> Array:
        """Return 1 − F(x) of numbers that are no atoms."""
        return self._mixed(x, _logistic(-self._away(x)), self._wide_atoms[1], self._running[1])

    def _mixed(self, x: Array, wide: Array, wide_atoms: Array, running: Array) -> Array:
        if self.whole and len(self.atoms):
            first_to_last = self._wide_atoms[0][-1]
            wide = np.maximum(wide - wide_atoms[np.searchsorted(self.atoms, x)], 0) / (1 - first_to_last)
        found = np.interp(np.clip(x, self.edges[0], self.edges[-1]), self.edges, running)
        return np.asarray(np.minimum((1 - _WIDE) * found + _WIDE * wide, 1.0))

    def log_marginal(self, x: Array) -> Array:
        """Return log f(x) of numbers that are no atoms: of whole numbers the logarithm of a probability."""
        t = np.abs(self._away(x))
        above = np.searchsorted(self.edges, x, side="right")
        if self.whole:
            # Edges are halves: within ½ of a whole number the density changes at the number only.
            h = 0.5 * (self._density[above] + self._density[np.searchsorted(self.edges, x, side="left")])
            wide = self._log_step(x) - np.log1p(-self._wide_atoms[0][-1])
        else:
            h = self._density[np.where(x == self.edges[-1], len(self.shares), above)]
            wide = -t - 2 * np.log1p(np.exp(-t)) - np.log(self.scale)
        f = (1 - _WIDE) * h + _WIDE * np.exp(wide)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(f > _SMALL, np.log(f), np.log(_WIDE) + wide))

    def scored(self, x: Array, *, scores: bool = True) -> Scores:
        """Return where cells lie; NaN is unknown. Without ``scores`` z and log f are left out, NaN and 0."""
        missing = np.isnan(x)
        at = np.searchsorted(self.atoms, x)
        levels = np.full(len(x), len(self.atoms), dtype=np.int16)
        if len(self.atoms):
            hit = self.atoms[np.minimum(at, len(self.atoms) - 1)] == x
            levels[hit] = at[hit]
        levels[missing] = UNKNOWN
        free = levels == len(self.atoms)
        u, z, log = np.full(len(x), np.nan), np.full(len(x), np.nan), np.zeros(len(x))
        u[free] = below = self._below(x[free])
        if not scores:
            return Scores(levels, u, z, log)
        above = self._above(x[free])
        # From the nearer tail, so that no digit is lost.
        tail = ndtri(np.minimum(below, above))
        z[free] = np.clip(np.where(below < above, tail, -tail), -_FARTHEST, _FARTHEST)
        log[free] = self.log_marginal(x[free])
        return Scores(levels, u, z, log)

    def value(self, u: Array, known: "Known | None" = None) -> Array:
        """Return the numbers at these quantiles of those that are no atoms: ties stay ties.

        Of a range they are quantiles of the numbers in it, if there are any: far out, where the histogram has a bin and
        the logistic its tail, others would be at the same u.
        """
        quantiles = self.quantiles
        if known is not None and known.u_high > known.u_low:
            inside = quantiles[(quantiles >= known.least) & (quantiles <= known.most)]
            if len(inside):
                quantiles, u = inside, (u - known.u_low) / (known.u_high - known.u_low)
        n = len(quantiles)
        return quantiles[np.clip((u * n).astype(np.int64), 0, n - 1)]

    @cached_property
    def support_values(self) -> Array:
        """The values of the support, atoms and then the mean of the numbers in each bin of u."""
        return np.append(self.atoms, self.support_points.mean(axis=1))

    @cached_property
    def support_widths(self) -> Array:
        """How wide each bin of u is in numbers; of an atom, and of a bin that holds one number only, the narrowest."""
        width = np.diff(np.quantile(self.quantiles, np.arange(self.bins + 1) / self.bins))
        least = width[width > _LEAST].min() if (width > _LEAST).any() else 1.0
        return np.concatenate([np.full(len(self.atoms), least), np.maximum(width, least)])

    @cached_property
    def support_points(self) -> Array:
        """Bins × 4: numbers within each bin of u."""
        points = np.quantile(self.quantiles, (np.arange(self.bins * 4) + 0.5) / (self.bins * 4))
        return np.asarray(points.reshape(self.bins, 4))


def _logistic(t: Array) -> Array:
    """Return 1 / (1 + exp(−t)) to its last digit."""
    tail = np.exp(-np.abs(t))
    return np.asarray(np.where(t < 0, tail, 1.0) / (1 + tail))


TableColumn = CategoryColumn | NumberColumn


def _rising(edges: Array, cells: Array) -> tuple[Array, Array]:
    """Return bins without those that are so narrow that floats have no number between their edges, or no density."""
    kept = np.append(True, np.diff(edges) > _LEAST)
    if kept.all():
        return edges, cells
    if kept.sum() < 2:
        return np.array(_next_to(edges[0], edges[0], _LEAST)), cells.sum(keepdims=True)
    last = np.cumsum(kept)[1:] - 1
    index = np.minimum(np.where(kept[1:], last - 1, last), kept.sum() - 2)
    return edges[kept], np.asarray(np.bincount(index, cells, minlength=int(kept.sum()) - 1), dtype=np.float64)


def _next_to(low: float, high: float, far: float) -> tuple[float, float]:
    """Return numbers below and above others, so far away, or where floats are not so dense the next ones."""
    return min(low - far, float(np.nextafter(low, -np.inf))), max(high + far, float(np.nextafter(high, np.inf)))


def _around_atoms(edges: Array, shares: Array, atoms: Array) -> tuple[Array, Array]:
    """Return a histogram of whole numbers in which nothing is within ½ of atoms: each bin keeps what it has.

    If atoms are in all bins, it is that of the whole numbers before and after them.
    """
    if not len(atoms):
        return edges, shares
    ends = np.concatenate([atoms - 0.5, atoms + 0.5])
    cut = np.unique(np.concatenate([edges, ends[(ends > edges[0]) & (ends < edges[-1])]]))
    middle = cut[:-1] + np.diff(cut) / 2
    near = np.abs(atoms[np.clip(np.searchsorted(atoms, middle) - [[1], [0]], 0, len(atoms) - 1)] - middle).min(axis=0)
    width = np.where(near < 0.5, 0.0, np.diff(cut))
    bin_ = np.searchsorted(edges, middle) - 1
    free = np.bincount(bin_, width, minlength=len(shares))
    found = shares[bin_] * width / np.maximum(free, _LEAST)[bin_]
    if found.sum() > 0:
        return cut, found / found.sum()
    first, last = _next_to(edges[0], edges[-1], 1.0)
    return np.array([first, edges[0], edges[-1], last]), np.array([0.5, 0.0, 0.5])


def _histogram(values: Array, counts: Array) -> tuple[Array, Array]:
    """Return edges and shares of the quantile histogram that leaves cells out best, less 1 for each bin."""
    total, running = float(counts.sum()), np.cumsum(counts)
    first = (values[1] - values[0]) / 2 if len(values) > 1 else 1.0
    last = (values[-1] - values[-2]) / 2 if len(values) > 1 else 1.0
    best: tuple[float, Array, Array] | None = None
    for bins in _BINS:
        if bins > _BINS[0] and bins > total / 6:
            break
        cut = np.searchsorted(running, np.arange(1, bins) / bins * total)  # in rising order
        cut = cut[(np.diff(cut, prepend=-1) > 0) & (cut < len(values) - 1)]
        middle = values[cut] / 2 + values[cut + 1] / 2
        edges = np.concatenate([[values[0] - first], middle, [values[-1] + last]])
        cells = np.add.reduceat(counts, np.append(0, cut + 1)) if len(values) > 1 else counts
        edges, cells = _rising(edges, cells)
        left = np.maximum(cells - 1 + 0.5 / len(cells), 1e-9) / max(total - 0.5, 0.5)
        gain = float(cells @ np.log(left / np.diff(edges))) - len(cells)
        if best is None or gain > best[0]:
            best = gain, edges, cells / total
    assert best is not None
    return best[1], best[2]


class TextCells(NamedTuple):
    """A column of texts: which are there, and log p(words | topic), 0 of texts without words that are known."""

    column: int
    there: NDArray[np.bool_]
    logs: Array
    """rows × topics"""

    @property
    def told(self) -> NDArray[np.bool_]:
        """Which texts say something."""
        return np.asarray((self.logs != 0).any(axis=1))


class Encoded(NamedTuple):
    """Rows as the members of the joint read them."""

    columns: tuple[TableColumn, ...]
    levels: Codes
    """rows × columns: categories, atoms, or "none of these"; UNKNOWN, EVIDENCE"""
    u: Array
    """rows × numbers; NaN unless the level is "none of these" """
    z: Array
    log: Array
    """rows × columns: what the marginals say of each cell, log f(x)"""
    weights: Array | None = None
    texts: tuple[TextCells, ...] = ()
    """columns of texts, whose levels are topics: unknown but in rows that are learned"""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.levels)

    @property
    def weight(self) -> float:
        """How much all rows count."""
        return float(self.rows) if self.weights is None else float(self.weights.sum())

    def taken(self, rows: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "Encoded":
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        texts = tuple(TextCells(j, there[rows], logs[rows]) for j, there, logs in self.texts)
        return Encoded(self.columns, self.levels[rows], self.u[rows], self.z[rows], self.log[rows], weights, texts)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are not there."""
        missing = self.levels < 0
        for cells in self.texts:
            missing[:, cells.column] = ~cells.there
        return missing

    @property
    def alike(self) -> bool:
        """Whether all rows are the same."""
        of_rows: list[NDArray[Any]] = [self.levels, np.nan_to_num(self.u), np.nan_to_num(self.z)]
        of_rows += [cells.logs for cells in self.texts]
        return self.rows > 1 and all((each == each[:1]).all() for each in of_rows)

    def unknown(self, column: int) -> NDArray[np.bool_] | slice:
        """Return in which rows nothing is known of a cell, or evidence only."""
        unknown = self.levels[:, column] < 0
        return slice(None) if unknown.all() else unknown

    def hiding(self, *columns: int) -> "Encoded":
        """Return rows of which nothing is known of some columns."""
        return self.with_cells(columns, unknown_rows(self.columns, 1))

    def without(self, hidden: NDArray[np.bool_]) -> "Encoded":
        """Return rows of which nothing is known of some cells, rows × columns."""
        of_numbers = hidden[:, [j for j, _ in numbers(self.columns)]]
        return self._replace(
            levels=np.where(hidden, np.int16(UNKNOWN), self.levels),
            u=np.where(of_numbers, np.nan, self.u),
            z=np.where(of_numbers, np.nan, self.z),
            log=np.where(hidden, 0.0, self.log),
            texts=tuple(
                TextCells(j, there & ~hidden[:, j], np.where(hidden[:, [j]], 0.0, logs))
                for j, there, logs in self.texts
            ),
        )

    def with_cells(self, columns: Sequence[int], row: "Encoded") -> "Encoded":
        """Return rows in which the cells of some columns are those of one other row."""
        at, index = list(columns), number_index(self.columns)
        of_numbers = [index[j] for j in at if j in index]
        levels, log, u, z = self.levels.copy(), self.log.copy(), self.u, self.z
        levels[:, at], log[:, at] = row.levels[0, at], row.log[0, at]
        if of_numbers:
            u, z = u.copy(), z.copy()
            u[:, of_numbers], z[:, of_numbers] = row.u[0, of_numbers], row.z[0, of_numbers]
        first = np.zeros(self.rows, dtype=np.int64)
        texts = [cells for cells in self.texts if cells.column not in at]
        texts += [TextCells(j, there[first], logs[first]) for j, there, logs in row.texts if j in at]
        return self._replace(levels=levels, u=u, z=z, log=log, texts=tuple(texts))

    def binned(self, bins: int) -> Codes:
        """Return levels in which numbers that are no atoms are in so many bins of u."""
        out = self.levels.copy()
        for number, (j, column) in enumerate(numbers(self.columns)):
            if column.bins > 1:
                free = self.levels[:, j] == len(column.atoms)
                bin_ = np.minimum((self.u[free, number] * bins).astype(np.int16), bins - 1)
                out[free, j] = len(column.atoms) + bin_
        return out


def numbers(columns: Sequence[TableColumn]) -> list[tuple[int, NumberColumn]]:
    """Return the columns of numbers with their indices."""
    return [(j, column) for j, column in enumerate(columns) if isinstance(column, NumberColumn)]


def number_index(columns: Sequence[TableColumn]) -> dict[int, int]:
    """Return the index among the numbers, by which ``Encoded`` has u and z, of every column of numbers."""
    return {j: number for number, (j, _) in enumerate(numbers(columns))}


def scored_numbers(columns: Sequence[TableColumn]) -> list[tuple[int, int]]:
    """Return the numbers that have scores, not only atoms: index of the column, and among the numbers."""
    return [(j, number) for number, (j, column) in enumerate(numbers(columns)) if column.bins > 1]


def unknown_rows(columns: tuple[TableColumn, ...], n: int) -> Encoded:
    """Return rows of which nothing is known."""
    empty, shape = np.full((n, len(numbers(columns))), np.nan), (n, len(columns))
    return Encoded(columns, np.full(shape, UNKNOWN, dtype=np.int16), empty, empty, np.zeros(shape))


def level_counts(columns: Sequence[TableColumn], bins: int = 1) -> NDArray[np.int32]:
    """Return how many levels every column has if numbers are in so many bins."""
    counts = [c.levels + (bins - 1 if c.bins > 1 else 0) for c in columns]
    return np.array(counts, dtype=np.int32)
