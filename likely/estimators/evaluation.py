"""How good a model is on rows that it has not seen: folds from one collecting pass, and what is measured on them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.learn import deal
from likely.statistics import Array, Labels

# Probabilities are compared with what came true in so many groups.
_GROUPS = 15


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The probabilities of rows that were held out, and the labels that they had.

    Attributes
    ----------
    classes
        the labels, sorted
    codes
        the place of each row's label among them
    probabilities
        p(y | x) of each row under a model that has not seen it, rows × classes
    weights
        how much each row counts
    folds
        how many parts the rows were dealt into

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
    def _predicted(self) -> NDArray[np.int64]:
        return np.asarray(self.probabilities.argmax(axis=1))

    def _mean(self, values: Any) -> float:
        return float(np.average(values, weights=self.weights))

    @property
    def accuracy(self) -> float:
        """The share of rows whose class is predicted right."""
        return self._mean(self._predicted == self.codes)

    @property
    def log_loss(self) -> float:
        """The mean of −log p(the label that came true)."""
        true = self.probabilities[np.arange(len(self.codes)), self.codes]
        return self._mean(-np.log(np.maximum(true, np.finfo(np.float64).tiny)))

    @property
    def brier(self) -> float:
        """The mean of Σ (p − what came true)²: 0 is perfect, 2 is sure of the wrong."""
        true = self.probabilities[np.arange(len(self.codes)), self.codes]
        return self._mean((self.probabilities**2).sum(axis=1) - 2 * true + 1)

    @property
    def calibration_error(self) -> float:
        """How far the probability of the predicted class is from how often it came true, on average over groups."""
        sure = self.probabilities.max(axis=1)
        group = np.minimum((sure * _GROUPS).astype(np.int64), _GROUPS - 1)
        gap = np.bincount(group, self.weights * (sure - (self._predicted == self.codes)), _GROUPS)
        return float(np.abs(gap).sum() / self.weights.sum())

    @property
    def confusion(self) -> Array:
        """The weight of the rows by true class (rows) and predicted class (columns)."""
        k = len(self.classes)
        counts = np.bincount(self.codes * k + self._predicted, self.weights, k * k)
        return counts.reshape(k, k).astype(np.float64)

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
        head = (
            f"{len(self.codes):,} rows, each predicted by a model of the other {self.folds - 1} of {self.folds} folds"
        )
        lines = [f"{name:<18}{value:8.4f}" for name, value in self.measures.items()]
        return "\n".join([head, *lines, "", *self._confusion_lines()])

    def _confusion_lines(self, most: int = 12) -> list[str]:
        if len(self.classes) > most:
            return [f"{len(self.classes)} classes: see .confusion"]
        names = [str(label) for label in self.classes.tolist()]
        cells = [[f"{count:.6g}" for count in row] for row in self.confusion]
        wide = max(len(text) for text in [*names, *(cell for row in cells for cell in row)])
        first = max(len("true \\ predicted"), wide)
        lines = [" ".join([f"{'true ' + chr(92) + ' predicted':<{first}}", *(f"{name:>{wide}}" for name in names)])]
        for name, row in zip(names, cells, strict=True):
            lines.append(" ".join([f"{name:<{first}}", *(f"{cell:>{wide}}" for cell in row)]))
        return lines


def dealt(codes: NDArray[Any], folds: int, random_state: Any) -> NDArray[np.int64]:
    """Return a fold for each row, dealt in random order, or raise if there cannot be so many."""
    if not isinstance(folds, int | np.integer) or isinstance(folds, bool) or folds < 2:
        raise ValueError(f"expected 2 folds or more, got {folds!r}")
    if len(codes) < folds:
        raise ValueError(f"expected at least as many rows as folds, {folds}, got {len(codes)}: use fewer folds")
    order = np.random.default_rng(random_state).permutation(len(codes))
    places = np.empty(len(codes), dtype=np.int64)
    places[order] = deal(codes[order], folds)
    return places
