"""Full covariances of rows with missing cells, by expectation maximisation (EM).

Every step takes the mean and covariance of what is missing, given what is there, under the parameters of the step
before, and solves the expected sums for the next parameters. Where nothing changes any more the likelihood of the cells
that are there is greatest, or with shrinkage or a prior, the family's own solution reproduces itself. What is returned
are sums like those of complete rows.

Steps end when no mean and no covariance changes by more than a fraction of the standard deviations. The likelihood
would be the worse judge: it is flat near its maximum, so its last digit says nothing of the parameters' last eight.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely import native
from likely.data.table import Block
from likely.em import iterate
from likely.families.moments import Moments, collect_moments, moment_statistics, safe_divide, variances_of
from likely.statistics import Array, Assignment, Responsibilities, Statistics, class_weights

_NAMES = ("weight", "sum", "product")
_MOST_STEPS = 1000
# EM has converged if no step changes them by more than this fraction of the standard deviations.
_CONVERGED = 1e-10
# What a change of the logarithm of a determinant counts beside: it falls for ever on the way to a covariance without an
# inverse, long after the covariance itself has converged.
_LOGARITHM = 1e-6


class Parameters(NamedTuple):
    """What sums solve to: means about their origin, covariances of each class or of all, inverses, and −½ log |2πΣ|."""

    statistics: Statistics
    mean: Array
    covariance: Array
    precision: Array
    constant: Array

    def change(self, other: Self) -> float:
        """Return the largest difference in units of the standard deviations."""
        deviation = np.sqrt(variances_of(self.covariance))
        means = np.abs(self.mean - other.mean) / deviation
        covariances = np.abs(self.covariance - other.covariance) / (deviation[:, :, None] * deviation[:, None, :])
        logarithms = _LOGARITHM * np.abs(self.constant - other.constant)
        return float(max(means.max(), covariances.max(), logarithms.max()))


@dataclass(frozen=True)
class Expectation:
    """The sums of complete rows, and the cells of the others: all that a step needs."""

    complete: Statistics
    cells: Array
    """of one row after the other, about the origin of its class"""
    weights: Array | None
    rows: int
    there: NDArray[np.bool_]
    """patterns × columns: which cells are there"""
    groups: NDArray[np.int64]
    """pattern, class and number of rows of each group of rows that share both"""

    @classmethod
    def of(cls, x: Array, assignment: Assignment, origin: Array) -> Self:
        """Sum up complete rows, and keep others by their pattern of missing cells; rows without a cell are left out."""
        classes, codes, weights = assignment
        known = ~np.isnan(x)
        counted = known.any(axis=1) & (codes >= 0)
        if weights is not None:
            counted &= weights > 0
        whole = known.all(axis=1)
        k = len(classes)
        o, *sums = native.collect_scatter(x, None, k, np.where(whole, codes, -1).astype(np.int32), weights, False)
        complete = moment_statistics(classes, sums, o).rebased(origin)
        rows = np.flatnonzero(counted & ~whole)
        bits = np.packbits(known[rows], axis=1)
        _, first, pattern = np.unique(
            bits.view(np.dtype((np.void, bits.shape[1]))).ravel(), return_index=True, return_inverse=True
        )
        there = known[rows[first]]
        order = np.lexsort((codes[rows], pattern))
        rows = rows[order]
        key = pattern[order] * k + codes[rows]
        _, start, count = np.unique(key, return_index=True, return_counts=True)
        groups = np.column_stack([key[start] // k, key[start] % k, count]).astype(np.int64)
        cells = (x[rows] - origin[codes[rows]])[known[rows]]
        return cls(complete, cells, None if weights is None else weights[rows], len(rows), there, groups)

    def __call__(self, given: Parameters) -> Statistics:
        """Return the expected sums of all rows."""
        arrays = native.collect_expected(
            self.cells, self.rows, self.weights, self.there, self.groups, given.mean, given.precision
        )
        sums = {name: self.complete.sums[name] + array for name, array in zip(_NAMES, arrays, strict=True)}
        return Statistics(sums, self.complete.axes, self.complete.labels, self.complete.origin)


def collect_expected(block: Block, r: Responsibilities, given: Any) -> Statistics:
    """Return the sums of rows with missing cells that are expected under the given Gaussians."""
    origin, precision = np.ascontiguousarray(np.nan_to_num(given.mean)), np.ascontiguousarray(given.precision)
    sums = native.collect_responsibility_expected(block.dense(), block.columns, r.values, r.weights, origin, precision)
    return moment_statistics(r.classes, sums, origin)


def collect_missing(
    block: Block,
    assignment: Assignment,
    moments: Callable[[Statistics], Moments],
    solve: Callable[[Statistics], Any],
) -> Statistics:
    """Return the expected sums of rows with missing cells, under the parameters that these sums solve to.

    The origin of a column without a cell is NaN, unless imagined rows say what to expect there.
    """

    def parameters(statistics: Statistics) -> Parameters:
        assert statistics.origin is not None
        own, density = moments(statistics), solve(statistics)
        mean = own.beyond + (own.base - statistics.origin)
        return Parameters(statistics, mean, density.covariance, density.precision, density.constant)

    available = collect_moments(block, assignment, "real", centred=True)
    x = block.values()
    start = _start(available, x, assignment)
    assert start.origin is not None
    unseen = available.sums["weight"] == 0
    as_all = np.where(unseen[:, :, None], start.sums["product"], 0.0)
    constant = np.einsum("cii->i", moments(_with_product(start, start.sums["product"] - as_all)).scatter) == 0
    if constant.any():
        # Of columns that never vary within a class nothing is to be expected: their missing cells are filled for good.
        missing = np.isnan(x)
        to_fill = missing & constant & ~missing.all(axis=1, keepdims=True)
        x = np.where(to_fill, start.origin[assignment.codes], x)
    expectation = Expectation.of(x, assignment, start.origin)
    product = expectation.complete.sums["product"] + as_all * constant
    expectation = replace(expectation, complete=_with_product(expectation.complete, product))
    statistics = _expected_sums(expectation, start, parameters)
    return replace(statistics, origin=np.where(constant & unseen.all(axis=0), np.nan, start.origin))


def _with_product(statistics: Statistics, product: Array) -> Statistics:
    return replace(statistics, sums={**statistics.sums, "product": product})


def _start(available: Statistics, x: Array, assignment: Assignment) -> Statistics:
    """Return sums of independent columns, of the mean and variance of the cells that are there in each class.

    A class without a cell in a column has those of all classes.
    """
    own = Moments.of(available)
    pooled = own.pooled
    variance = np.where(own.n > 0, safe_divide(own.scatter, own.n), safe_divide(pooled.scatter, pooled.n))
    codes, weights = assignment.codes, assignment.weights
    has_cells = ~np.isnan(x).all(axis=1)
    weight = class_weights(
        Assignment(assignment.classes, codes[has_cells], None if weights is None else weights[has_cells])
    ).sums["weight"]
    product = (weight[:, None] * variance)[:, :, None] * np.eye(x.shape[1])
    return moment_statistics(assignment.classes, [weight, np.zeros_like(variance), product], own.filled(pooled).mean)


def _expected_sums(
    expectation: Expectation, start: Statistics, solve: Callable[[Statistics], Parameters]
) -> Statistics:
    """Take EM steps from the start until they change nothing, and return the expected sums."""
    found = iterate(
        solve(start),
        lambda given: solve(expectation(given)),
        lambda new, old: new.change(old),
        tolerance=_CONVERGED,
        most=_MOST_STEPS,
        extrapolate=lambda trail: solve(_extrapolate([given.statistics for given in trail])),
    )
    if not found.converged:
        warnings.warn(
            f"expected means and covariances that settle within {_MOST_STEPS} steps, got a change of "
            f"{found.change:.1g} standard deviations in the last one: leave out columns with few cells, or use more "
            "shrinkage or tied=True",
            RuntimeWarning,
            stacklevel=2,
        )
    return found.at.statistics


def _extrapolate(trail: list[Statistics]) -> Statistics:
    """Return the sums to which three in a row seem to lead, class by class (SQUAREM: Varadhan and Roland, 2008)."""
    weight = trail[0].sums["weight"]
    deviation = np.sqrt(np.einsum("cii->ci", trail[2].sums["product"]))
    units = {"sum": np.sqrt(weight)[:, None] * deviation, "product": deviation[:, :, None] * deviation[:, None, :]}
    first, bend, lengths = {}, {}, np.zeros((2, len(weight)))
    for name, unit in units.items():
        zero, one, two = (statistics.sums[name] for statistics in trail)
        first[name], bend[name] = one - zero, two - 2 * one + zero
        for i, difference in enumerate((first[name], bend[name])):
            lengths[i] += (safe_divide(difference, unit) ** 2).reshape(len(weight), -1).sum(axis=1)
    stride = np.maximum(np.sqrt(safe_divide(*lengths)), 1.0)
    sums = {"weight": weight}
    for name, unit in units.items():
        by = stride.reshape(-1, *[1] * (unit.ndim - 1))
        sums[name] = trail[0].sums[name] + 2 * by * first[name] + by**2 * bend[name]
    return Statistics(sums, trail[0].axes, trail[0].labels, trail[0].origin)
