"""Sufficient statistics: arrays with named axes that add and subtract; and the classes and weights of rows.

A model is fitted in two steps: *collect* sums on any number of batches and add them, then *solve* for parameters.
Sums form a group, so adding is learning and merging, subtracting is forgetting, and scaling is weighting.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from likely import native

Array = NDArray[np.float64]
Labels = NDArray[Any]
ClassCodes = NDArray[np.int32] | NDArray[np.int64]
"""The index of each row's class."""
SomeRows = slice | NDArray[np.bool_] | NDArray[np.int64]
"""Which rows: from one to another, a boolean for each, or their numbers."""

Scalar = TypeVar("Scalar", bound=np.generic)

# Weights that differ by less than this fraction of what was there differ by rounding only.
_ROUNDING = 1e-9

NOT_LEARNED = (
    "expected rows that the model has learned, got rows that {}: forget each row once, with the label and weight it "
    "was learned with"
)


class Assignment(NamedTuple):
    """Which class each row belongs to (−1: none) and how much it counts."""

    classes: Labels
    codes: NDArray[np.int32]
    weights: Array | None = None

    def taken(self, rows: SomeRows) -> "Assignment":
        """Return the assignment of some of the rows."""
        return Assignment(self.classes, self.codes[rows], None if self.weights is None else self.weights[rows])


class Responsibilities(NamedTuple):
    """How probable each class is of each row, and how much the row counts."""

    classes: Labels
    values: Array
    """rows × classes, C-contiguous"""
    weights: Array | None = None
    class_weights: Array | None = None
    """how much all rows count in each class, if it is known already"""

    def each(self) -> Iterator[Assignment]:
        """Return for each class all rows, weighed by their responsibilities for it."""
        every = np.zeros(len(self.values), dtype=np.int32)
        for c in range(len(self.classes)):
            own = self.values[:, c]
            yield Assignment(self.classes[c : c + 1], every, own.copy() if self.weights is None else self.weights * own)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over rows, as arrays with named axes. Never changed: every operation returns new statistics.

    Examples
    --------
    >>> one = Statistics({"count": np.array([3.0])}, {"count": ("class",)}, {"class": np.array(["no"])})
    >>> two = Statistics({"count": np.array([4.0])}, {"count": ("class",)}, {"class": np.array(["yes"])})
    >>> both = one + two
    >>> both.labels["class"].tolist(), both.sums["count"].tolist()
    (['no', 'yes'], [3.0, 4.0])
    >>> (both - two).sums["count"].tolist()
    [3.0, 0.0]
    """

    sums: Mapping[str, Array]
    """the arrays, by name"""
    axes: Mapping[str, tuple[str, ...]]
    """the names of each array's axes; statistics that are added are aligned along the axes that have labels"""
    labels: Mapping[str, Labels]
    """the labels, sorted, of the axes that may grow: ``"class"``, ``"category"``"""
    origin: Array | None = None
    """classes × columns; if given, the sums are of x − origin, so that no digits are lost to an offset; NaN where a
    full covariance never saw a cell of the column, whose sums are 0"""
    lost: Mapping[str, Array] | None = None
    """with an origin: what rounding took from each sum when statistics were added, so that no digits are lost to
    many batches either"""

    def __post_init__(self) -> None:
        for array in [*self.sums.values(), *self.labels.values(), *(self.lost or {}).values()]:
            array.setflags(write=False)
        if self.origin is not None:
            self.origin.setflags(write=False)

    def __add__(self, other: "Statistics") -> "Statistics":
        return self._combined(other, 1.0)

    def __sub__(self, other: "Statistics") -> "Statistics":
        difference = self._combined(other, -1.0).restored()
        aligned = self.aligned({axis: difference.labels[axis] for axis in self.labels})
        return difference._checked(aligned)

    def __mul__(self, factor: float) -> "Statistics":
        whole = self.restored()
        return replace(whole, sums={name: array * factor for name, array in whole.sums.items()})

    __rmul__ = __mul__

    def aligned(self, labels: Mapping[str, Labels]) -> "Statistics":
        """Return these statistics with other labels, of which theirs are a part; what is new is zero."""
        same = {axis: _same(self.labels[axis], labels[axis]) for axis in self.labels}
        if all(same.values()):
            return self
        indices = {axis: np.searchsorted(labels[axis], own) for axis, own in self.labels.items() if not same[axis]}

        def spread(array: Array, axes: tuple[str, ...]) -> Array:
            sizes = dict(zip(axes, array.shape, strict=False))
            if not indices.keys() & sizes.keys():
                return array
            wider = np.zeros([len(labels[axis]) if axis in indices else size for axis, size in sizes.items()])
            wider[np.ix_(*(indices.get(axis, np.arange(size)) for axis, size in sizes.items()))] = array
            return wider

        def spread_all(arrays: Mapping[str, Array]) -> dict[str, Array]:
            return {name: spread(array, self.axes[name]) for name, array in arrays.items()}

        return Statistics(
            spread_all(self.sums),
            self.axes,
            {axis: labels[axis] for axis in self.labels},
            None if self.origin is None else spread(self.origin, ("class", "column")),
            None if self.lost is None else spread_all(self.lost),
        )

    def of_classes(self, indices: slice, labels: Labels) -> "Statistics":
        """Return the statistics of some of the classes, under other labels."""

        def part(arrays: Mapping[str, Array]) -> dict[str, Array]:
            return {name: a[indices] if self.axes[name][0] == "class" else a for name, a in arrays.items()}

        return Statistics(
            part(self.sums),
            self.axes,
            {**self.labels, "class": labels},
            None if self.origin is None else self.origin[indices],
            None if self.lost is None else part(self.lost),
        )

    def restored(self) -> "Statistics":
        """Return the sums with what rounding took from them."""
        if self.lost is None:
            return self
        return replace(self, sums={name: array + self.lost[name] for name, array in self.sums.items()}, lost=None)

    def rebased(self, origin: Array) -> "Statistics":
        """Return the same sums about another origin."""
        whole = self.restored()
        if whole.origin is None or _same(whole.origin, origin):
            return whole
        sums = dict(whole.sums)
        d = np.nan_to_num(whole.origin - origin)
        n, s = sums["weight"], sums["sum"]
        if "product" in sums:
            _rebase_products(sums, d)
        elif "excess" in sums:
            sums["excess"] = _rebased_excess(sums["excess"], n, s, d, origin, whole.origin)
        elif "square" in sums:
            sums["square"] = sums["square"] + d * (2 * s + n * d)
        sums["sum"] = s + n.reshape(len(n), -1) * d
        return replace(whole, sums=sums, origin=origin)

    def _combined(self, other: "Statistics", sign: float) -> "Statistics":
        labels = {axis: union(self.labels[axis], other.labels[axis]) for axis in self.labels}
        one, two = self.aligned(labels), other.aligned(labels)
        if one.origin is None or two.origin is None:
            return replace(one, sums={name: array + sign * two.sums[name] for name, array in one.sums.items()})
        # A class that only one side has seen keeps the origin of that side: sums of nothing are 0 about any origin.
        seen = one.sums["weight"].reshape(len(one.origin), -1) != 0
        origin = np.where(seen, one.origin, two.origin)
        _check_same_columns(one, two)
        two = two.rebased(origin)
        sums, lost = {}, {}
        for name, a in one.sums.items():
            b = sign * two.sums[name]
            sums[name] = total = a + b
            virtual = total - a
            lost[name] = (a - (total - virtual)) + (b - virtual)  # Knuth's two-sum: exact
            if one.lost is not None:
                lost[name] += one.lost[name]
        return replace(one, sums=sums, origin=origin, lost=lost)

    def _checked(self, before: "Statistics") -> "Statistics":
        """Return the statistics after a subtraction, or raise if more was taken away than was there."""
        sums = dict(self.sums)
        for counted in [name for name in ("weight", "count", "yes", "no") if name in sums]:
            left, had = sums[counted], before.sums[counted]
            if np.any(left < -_ROUNDING * np.maximum(had, 1.0)):
                raise ValueError(NOT_LEARNED.format("weigh more than what is left of their class"))
            gone = left <= _ROUNDING * had
            # Where no weight is left, nothing else is.
            for name in sums if counted == "weight" else (counted,):
                if self.axes[name][: gone.ndim] == self.axes[counted]:
                    dimensions = sums[name].ndim - gone.ndim
                    sums[name] = np.where(gone.reshape(gone.shape + (1,) * dimensions), 0.0, sums[name])
        _check_squares(sums, before.sums)
        return replace(self, sums=sums)


class Sums(Protocol):
    """What adds, and is subtracted, as sums of rows are."""

    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __mul__(self, factor: float, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class JointStatistics:
    """The weight of every class and the statistics of every block of columns, added and subtracted together."""

    weights: Statistics
    blocks: tuple[Statistics, ...]
    table: Sums | None = None
    """of all columns and the class together, if they have a joint of their own"""

    @property
    def classes(self) -> Labels:
        """The labels of the classes, sorted."""
        return self.weights.labels["class"]

    def with_classes(self, labels: Labels) -> Self:
        """Return these statistics with more classes, of which nothing was seen if they are new."""
        classes = union(self.classes, labels)
        weights, *blocks = (part.aligned({**part.labels, "class": classes}) for part in (self.weights, *self.blocks))
        return replace(self, weights=weights, blocks=tuple(blocks))

    def of_classes(self, indices: slice, labels: Labels) -> Self:
        """Return the statistics of some of the classes, under other labels."""
        weights, *blocks = (part.of_classes(indices, labels) for part in (self.weights, *self.blocks))
        return replace(self, weights=weights, blocks=tuple(blocks))

    def __add__(self, other: Self) -> Self:
        blocks = zip(self.blocks, other.blocks, strict=True)
        table = None if self.table is None else self.table + other.table
        return replace(self, weights=self.weights + other.weights, blocks=tuple(a + b for a, b in blocks), table=table)

    def __sub__(self, other: Self) -> Self:
        blocks = zip(self.blocks, other.blocks, strict=True)
        table = None if self.table is None else self.table - other.table
        return replace(self, weights=self.weights - other.weights, blocks=tuple(a - b for a, b in blocks), table=table)

    def __mul__(self, factor: float) -> Self:
        table = None if self.table is None else self.table * factor
        return replace(self, weights=self.weights * factor, blocks=tuple(b * factor for b in self.blocks), table=table)

    __rmul__ = __mul__


def class_weights(assignment: Assignment | Responsibilities) -> Statistics:
    """Collect the weight of every class.

    >>> yes_no = Assignment(np.array(["no", "yes"]), np.array([0, 1, -1, 1], dtype=np.int32))
    >>> class_weights(yes_no).sums["weight"].tolist()
    [1.0, 2.0]
    """
    if isinstance(assignment, Responsibilities):
        _, values, weights, weight = assignment
        if weight is None:
            # Not by a product of matrices, whose threads would stay busy for a while.
            weight = np.einsum("rc->c", values) if weights is None else np.einsum("rc,r->c", values, weights)
        return Statistics({"weight": weight}, {"weight": ("class",)}, {"class": assignment.classes})
    classes, codes, weights = assignment
    known = codes >= 0
    if not known.all():
        codes, weights = codes[known], None if weights is None else weights[known]
    weight = np.bincount(codes, weights, minlength=len(classes)).astype(np.float64)
    return Statistics({"weight": weight}, {"weight": ("class",)}, {"class": classes})


def class_proportions(counts: Array) -> Array:
    """Return the probability of every class, with half a row more in each: (n_k + ½) / (n + ½K)."""
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * len(counts)))


def _check_same_columns(one: Statistics, two: Statistics) -> None:
    """Raise if one side never saw a cell of a column that the other saw: there is nothing to expect of its rows."""
    assert one.origin is not None
    assert two.origin is not None
    never_one, never_two = np.isnan(one.origin).any(axis=0), np.isnan(two.origin).any(axis=0)
    if one.sums["weight"].any() and two.sums["weight"].any() and np.any(never_one != never_two):
        columns = ", ".join(map(str, np.flatnonzero(never_one != never_two).tolist()))
        raise ValueError(
            f"expected rows with a cell in every column that other rows have, got none in column {columns}: under a "
            "full covariance, learn or forget them together with others"
        )


def _check_squares(left: Mapping[str, Array], had: Mapping[str, Array]) -> None:
    """Raise if so much was taken away that no rows could leave such sums of squares."""
    for name in [name for name in ("square", "product") if name in left]:
        square, before = (np.einsum("cii->ci", a[name]) if name == "product" else a[name] for a in (left, had))
        n = left["weight"].reshape(len(square), -1)
        scatter = square - np.divide(left["sum"] ** 2, n, out=np.zeros_like(square), where=n > 0)
        if np.any(scatter < -_ROUNDING * before):
            raise ValueError(NOT_LEARNED.format("no rows of their class were like"))


def _rebased_excess(excess: Array, n: Array, s: Array, d: Array, new: Array, old: Array) -> Array:
    """Return Σ(u − 1 − log u) with u = x/new instead of x/old, from the shift d = old − new."""
    seen = n > 0
    new, old = np.where(seen, new, 1.0), np.where(seen, old, 1.0)
    return np.where(seen, excess + n * native.excess(old, new) + s * d / (old * new), 0.0)


def _rebase_products(sums: dict[str, Array], d: Array) -> None:
    """Rebase the sums of products of pairs of columns, per class, by the shift d, in place.

    With t the old and t + d the new distance from the origin, every formula is the product of the two written out.
    """
    n, s, q = sums["weight"][:, None, None], sums["sum"], sums["product"]
    ds = d[:, :, None] * s[:, None, :]
    dd = d[:, :, None] * d[:, None, :]
    if "quartic" in sums:
        c, f = sums["cubic"], sums["quartic"]  # Σ t_i² t_j, Σ t_i² t_j²
        v = np.einsum("cii->ci", q)
        di, dj = d[:, :, None], d[:, None, :]
        si, sj = s[:, :, None], s[:, None, :]
        vi, vj = v[:, :, None], v[:, None, :]
        sums["cubic"] = c + 2 * di * q + di**2 * sj + dj * vi + 2 * dd * si + n * di * dd
        sums["quartic"] = (
            f
            + 2 * dj * c
            + 2 * di * np.swapaxes(c, 1, 2)
            + dj**2 * vi
            + di**2 * vj
            + 4 * dd * q
            + 2 * dd * (dj * si + di * sj)
            + n * dd**2
        )
    sums["product"] = q + ds + np.swapaxes(ds, 1, 2) + n * dd


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the distinct values, sorted.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    # Asked for nothing but values, NumPy would import its masked arrays first.
    found: NDArray[Scalar] = np.unique(values, return_counts=True)[0]
    return found


def plain_label(label: object) -> object:
    """Return a label as Python has it, whatever the array that it was taken from.

    >>> plain_label(np.array([2, 3])[0]), plain_label(np.array(["a", None])[0])
    (2, 'a')
    """
    return label.item() if isinstance(label, np.generic) else label


def _same(one: Labels, two: Labels) -> bool:
    return one is two or np.array_equal(one, two)


def union(one: Labels, two: Labels) -> Labels:
    """Return the labels of both, sorted, or raise if they are not of one kind."""
    if _same(one, two):
        return one
    if len(one) == 0 or len(two) == 0:
        return two if len(one) == 0 else one
    text = [labels.dtype.kind in "UT" for labels in (one, two)]
    try:
        if text[0] != text[1] and "O" not in (one.dtype.kind, two.dtype.kind):
            raise TypeError
        return distinct(np.concatenate([one, two]))
    except TypeError:
        examples = (plain_label(labels[0]) for labels in (one, two))
        raise ValueError(
            "expected labels of one kind, got {!r} and {!r}: give all as text or all as numbers".format(*examples)
        ) from None
