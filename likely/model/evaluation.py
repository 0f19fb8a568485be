"""How good a model is on rows that it has not seen: sums over them, and what is measured by these."""

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from likely.learn.one_pass import assign_folds
from likely.messages import printable
from likely.statistics import Array, Labels

# Probabilities are compared with what came true in so many groups.
_GROUPS = 15


class Sums(NamedTuple):
    """What is added up over rows that were held out: all measures follow from it.

    >>> rows = np.array([0, 1]), np.array([[0.9, 0.1], [0.6, 0.4]]), np.ones(2)
    >>> found = Sums.of(*rows).plus(Sums.of(*rows))
    >>> found.rows, round(found.loss, 3), found.confusion.tolist()
    (4, 2.043, [[2.0, 0.0], [2.0, 0.0]])
    """

    rows: int
    loss: float
    """the weighed sum of −log p(the label that came true)"""
    brier: float
    """the weighed sum of Σ (p − what came true)²"""
    gaps: Array
    """the weighed sums of p(the predicted class) − whether it came true, in groups by that p"""
    confusion: Array
    """the weight of the rows by true and predicted class"""

    @classmethod
    def of(cls, codes: NDArray[np.int64], probabilities: Array, weights: Array) -> "Sums":
        """Add up over rows: the indices of their labels, p(y | x), and how much each counts."""
        k = probabilities.shape[1]
        predicted, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
        true = probabilities[np.arange(len(codes)), codes]
        loss = -np.log(np.maximum(true, np.finfo(np.float64).tiny))
        brier = (probabilities**2).sum(axis=1) - 2 * true + 1
        group = np.minimum((sure * _GROUPS).astype(np.int64), _GROUPS - 1)
        gaps = np.bincount(group, weights * (sure - (predicted == codes)), _GROUPS).astype(np.float64)
        confusion = np.bincount(codes * k + predicted, weights, k * k).reshape(k, k).astype(np.float64)
        return cls(len(codes), float((weights * loss).sum()), float((weights * brier).sum()), gaps, confusion)

    @classmethod
    def none(cls, classes: int) -> "Sums":
        """Return the sums of no rows."""
        return cls(0, 0.0, 0.0, np.zeros(_GROUPS), np.zeros((classes, classes)))

    def plus(self, other: "Sums") -> "Sums":
        """Return the sums of the rows of both."""
        return Sums(*map(operator.add, self, other))


class Measures:
    """What is measured on rows that were held out, by what was added up over them."""

    classes: Labels
    folds: int
    sums: Sums

    def _mean(self, total: float) -> float:
        return float(total / self.sums.confusion.sum())

    @property
    def rows(self) -> int:
        """How many rows were held out."""
        return self.sums.rows

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is predicted right."""
        return self._mean(np.trace(self.sums.confusion))

    @property
    def log_loss(self) -> float:
        """The mean of −log p(the label that came true)."""
        return self._mean(self.sums.loss)

    @property
    def brier(self) -> float:
        """The mean of Σ (p − what came true)²: 0 is perfect, 2 is sure of the wrong."""
        return self._mean(self.sums.brier)

    @property
    def calibration_error(self) -> float:
        """How far the probability of the predicted class is from how often it came true, on average over groups."""
        return self._mean(np.abs(self.sums.gaps).sum())

    @property
    def confusion(self) -> Array:
        """The weight of the rows by true class (rows) and predicted class (columns)."""
        return self.sums.confusion

    @property
    def measures(self) -> dict[str, float]:
        """All measures by name."""
        return {
            "accuracy": self.accuracy,
            "log-loss": self.log_loss,
            "Brier score": self.brier,
            "calibration error": self.calibration_error,
        }

    def __str__(self) -> str:
        head = f"{self.rows:,} rows, each predicted by a model of the other {self.folds - 1} of {self.folds} folds"
        lines = [f"{name:<18}{value:8.4f}" for name, value in self.measures.items()]
        return "\n".join([head, *lines, "", *self._confusion_lines()])

    def _confusion_lines(self, most: int = 12) -> list[str]:
        if len(self.classes) > most:
            return [f"{len(self.classes)} classes: see .confusion"]
        names = [printable(str(label)) for label in self.classes.tolist()]
        cells = [[f"{count:.6g}" for count in row] for row in self.confusion]
        wide = max(len(text) for text in [*names, *(cell for row in cells for cell in row)])
        first = max(len("true \\ predicted"), wide)
        lines = [" ".join([f"{'true ' + chr(92) + ' predicted':<{first}}", *(f"{name:>{wide}}" for name in names)])]
        for name, row in zip(names, cells, strict=True):
            lines.append(" ".join([f"{name:<{first}}", *(f"{cell:>{wide}}" for cell in row)]))
        return lines


@dataclass(frozen=True, eq=False)
class Evaluation(Measures):
    """The probabilities of rows that were held out, and the labels that they had.

    Attributes
    ----------
    classes
        the labels, sorted
    codes
        the index of each row's label among them
    probabilities
        p(y | x) of each row under a model that has not seen it, rows × classes
    weights
        how much each row counts
    folds
        into how many cross-validation folds the rows were split

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> result = Evaluation(np.array(["no", "yes"]), np.array([0, 1]), probabilities, np.ones(2), 2)
    >>> result.accuracy, round(result.log_loss, 3), round(result.brier, 3)
    (0.5, 0.511, 0.37)
    """

    classes: Labels
    codes: NDArray[np.int64]
    probabilities: Array
    weights: Array
    folds: int

    @cached_property
    def sums(self) -> Sums:  # type: ignore[override]
        """What is added up over the rows."""
        return Sums.of(self.codes, self.probabilities, self.weights)


@dataclass(frozen=True, eq=False)
class SummedEvaluation(Measures):
    """What was measured on rows out-of-core: of each of them nothing is kept."""

    classes: Labels
    sums: Sums
    folds: int

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("codes", "probabilities", "weights"):
            raise AttributeError(
                f"expected rows in memory to keep {name} of each, got {self.rows:,} that stay where they lie: evaluate "
                "some of them, in a frame"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def check_folds(folds: Any, rows: int) -> None:
    """Raise if so many rows cannot be split into so many folds."""
    if not isinstance(folds, int | np.integer) or isinstance(folds, bool) or folds < 2:
        raise ValueError(f"expected 2 folds or more, got {folds!r}")
    if rows < folds:
        raise ValueError(f"expected at least as many rows as folds, {folds}, got {rows}: use fewer folds")


def shuffled_folds(codes: NDArray[Any], folds: int, random_state: Any) -> NDArray[np.int64]:
    """Return a cross-validation fold for each row, in random order, or raise if there cannot be so many."""
    check_folds(folds, len(codes))
    order = np.random.default_rng(random_state).permutation(len(codes))
    fold_of = np.empty(len(codes), dtype=np.int64)
    fold_of[order] = assign_folds(codes[order], folds)
    return fold_of
