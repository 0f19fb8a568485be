"""Scores of single words beside the exponents of groups: logistic regression on texts, by Newton or L-BFGS.

x is texts × words, Z are the scores of texts without their fold, and Δ, words × classes, is to make the loss
−Σ log softmax(Z + xΔ) of the right classes small, with a pull 2‖Δ‖² towards 0. One step of Newton's method, word by
word, takes two sums over the texts (``newton``); to go on takes a pass over them for every step (``lbfgs``).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import SparseRows
from likely.statistics import Array

STEPS = 10
"""How often the texts are passed over if all is to be had."""
PULL = 4.0
"""The curvature of 2‖Δ‖²: as strong as that of sixteen texts with x = 1 and two classes that are equally likely."""
# So many cells of words × classes are held at a time.
_TILE = 1 << 23
# A step along a line ends where the slope is so much less than at its start.
_FLAT, _TRIES = 0.1, 8
# A slope whose square is so much less than that of the first comes of rounding: residuals are kept in single precision.
_ROUNDED = 1e-6


def times(x: SparseRows, table: Array) -> Array:
    """Return the product of a sparse matrix and a table.

    >>> x = SparseRows(np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), np.array([2, 3, 4], np.float32), 2)
    >>> times(x, np.array([[1.0], [10.0]])).tolist(), times(transposed(x), np.array([[1.0], [10.0]])).tolist()
    ([[20.0], [43.0]], [[30.0], [42.0]])
    """
    out = np.zeros((len(x.starts) - 1, table.shape[1]))
    table = np.ascontiguousarray(table, dtype=np.float64)
    native.score_sparse(x.starts, x.indices, x.values, "non-negative", table, out)
    return out


def transposed(x: SparseRows) -> SparseRows:
    """Return the columns as rows."""
    return SparseRows(*native.transpose_rows(*x), len(x.starts) - 1)


class BaseLogits(NamedTuple):
    """Texts as words (x) and by their scores without their fold (texts × classes), right classes, and weights."""

    x: SparseRows
    scores: Array
    codes: NDArray[np.int64]
    weights: Array

    def probabilities(self, more: Array | float = 0.0) -> Array:
        """Return p(class) of every text, with more added to the scores."""
        found = self.scores + more
        native.posterior_in_place(found, np.zeros(found.shape[1]), False)
        return found

    def residual(self, p: Array) -> Array:
        """Return p(class) of every text, less 1 at the right class, times the weight of the text."""
        found = p * self.weights[:, None]
        found[np.arange(len(found)), self.codes] -= self.weights
        return found

    def tiles(self, tables: int) -> Iterator[slice]:
        """Return some classes at a time, so that as many tables of words and these classes take no more than a tile."""
        step = max(_TILE // max(self.x.width * tables, 1), 1)
        for first in range(0, self.scores.shape[1], step):
            yield slice(first, first + step)


def newton(texts: BaseLogits, ends: list[int]) -> tuple[NDArray[np.float32], Array]:
    """Return Δ = G / (H + 4) and what it says of each text, xΔ, with the G and H of its fold taken away.

    G = Σ (y − p) x and H = Σ p (1 − p) x², by word and class. Fold i has the texts from ``ends[i]`` to the next.
    """
    p = texts.probabilities()
    gap, spread = -texts.residual(p), p * (1 - p) * texts.weights[:, None]
    spans = list(pairwise(ends))
    folds = [texts.x.between(*span) for span in spans]
    words = [transposed(fold) for fold in folds]
    squares = [each._replace(values=each.values**2) for each in words]
    delta = np.empty((texts.x.width, p.shape[1]), dtype=np.float32)
    said = np.empty_like(p)
    for tile in texts.tiles(2 * len(spans)):
        g, h = (
            np.stack([times(each, of[first:last, tile]) for each, (first, last) in zip(by, spans, strict=True)])
            for by, of in ((words, gap), (squares, spread))
        )
        all_g, all_h = g.sum(axis=0), h.sum(axis=0) + PULL
        delta[:, tile] = all_g / all_h
        for fold, (first, last), own_g, own_h in zip(folds, spans, g, h, strict=True):
            # What is left of H is 0 or more, but for rounding.
            said[first:last, tile] = times(fold, (all_g - own_g) / np.maximum(all_h - own_h, PULL))
    return delta, said


def lbfgs(texts: BaseLogits, steps: int = STEPS) -> NDArray[np.float32]:
    """Return Δ after so many steps of L-BFGS from 0.

    Every table that is met on the way is a sum of xᵀR for the residuals R at the points before. So such tables are kept
    as the factors of R in that sum, products of two of them follow from those of the xᵀR, and with x xᵀR at hand no
    step along a line asks for the words.
    """
    words = transposed(texts.x)
    residuals: list[NDArray[np.float32]] = []
    images: list[NDArray[np.float32]] = []
    products = np.zeros((steps, steps))
    delta, moves = np.zeros(steps), list[tuple[Array, Array]]()
    slope_before = step = delta
    now = np.zeros_like(texts.scores)
    p = texts.probabilities()
    for i in range(steps):
        residual = texts.residual(p)
        residuals.append(residual.astype(np.float32))
        images.append(_image(texts, words, residual))
        products[i, : i + 1] = products[: i + 1, i] = [_product(residuals[i], image) for image in images]
        slope = PULL * delta
        slope[i] += 1.0
        if i and step @ products @ (slope - slope_before) > 0:
            moves.append((step, slope - slope_before))
        direction = -_two_loop(slope, moves, products)
        steepness = float(slope @ products @ direction)
        if not (slope @ products @ slope > _ROUNDED * products[0, 0] and steepness < 0):
            break
        pulled = (PULL * float(of @ products @ direction) for of in (delta, direction))
        line = _Line(now, _sum(direction, images), *pulled)
        p, length = line.lowest(texts, p, steepness)
        slope_before, step = slope, length * direction
        delta = delta + step
        now += length * line.along
    return _by_words(texts, words, _sum(delta, residuals))


class _Line(NamedTuple):
    """A line from where xΔ is ``now``: what it adds to xΔ, ``along``; the slope and the curvature of the pull on it."""

    now: Array
    along: Array
    slope: float
    curvature: float

    def lowest(self, texts: BaseLogits, p: Array, steepness: float) -> tuple[Array, float]:
        """Return p(class) where the loss is about lowest, and how far that is: by Newton's method, within bounds."""
        low, high, at, slope = 0.0, np.inf, 0.0, steepness
        for _ in range(_TRIES):
            mean = np.einsum("ij,ij->i", p, self.along)
            square = np.einsum("ij,ij,ij->i", p, self.along, self.along)
            wanted = at - slope / (float(texts.weights @ (square - mean**2)) + self.curvature)
            at = wanted if low < wanted < high else (low + high) / 2 if np.isfinite(high) else 2 * at
            p = texts.probabilities(self.now + at * self.along)
            slope = _product(texts.residual(p), self.along) + self.slope + at * self.curvature
            if abs(slope) <= _FLAT * -steepness:
                break
            low, high = (at, high) if slope < 0 else (low, at)
        return p, at


def _two_loop(slope: Array, moves: list[tuple[Array, Array]], products: Array) -> Array:
    """Return the slope times the inverse curvature that moves and changes of slopes tell of: L-BFGS in two loops."""
    found, alphas = slope, []
    for move, change in reversed(moves):
        alpha = (move @ products @ found) / (move @ products @ change)
        found = found - alpha * change
        alphas.append(alpha)
    if moves:
        move, change = moves[-1]
        found = found * (move @ products @ change) / (change @ products @ change)
    for (move, change), alpha in zip(moves, reversed(alphas), strict=True):
        found = found + move * (alpha - (change @ products @ found) / (move @ products @ change))
    return found


def _image(texts: BaseLogits, words: SparseRows, residual: Array) -> NDArray[np.float32]:
    """Return x xᵀR."""
    found = np.empty(residual.shape, dtype=np.float32)
    for tile in texts.tiles(1):
        found[:, tile] = times(texts.x, times(words, residual[:, tile]))
    return found


def _by_words(texts: BaseLogits, words: SparseRows, residual: Array) -> NDArray[np.float32]:
    """Return xᵀR."""
    found = np.empty((texts.x.width, residual.shape[1]), dtype=np.float32)
    for tile in texts.tiles(1):
        found[:, tile] = times(words, residual[:, tile])
    return found


def _sum(factors: Array, tables: list[NDArray[np.float32]]) -> Array:
    found = np.zeros(tables[0].shape)
    for factor, table in zip(factors, tables, strict=False):
        found += factor * table
    return found


def _product(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    return float(np.einsum("ij,ij->", one, other, dtype=np.float64))
