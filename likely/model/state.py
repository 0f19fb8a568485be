"""What a fitted estimator has: statistics, the joint that they solve to, and what compares classes."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Columns, Table
from likely.density.labelled_table import AnsweringJoint, LabelledTable, LabelledTableAnswers
from likely.ensemble.selection import Selection
from likely.families import on_one_line, read_numbers, subtract_logs
from likely.joint import Joint, LogOdds, Part
from likely.learn.one_pass import collect
from likely.model.readers import Reader
from likely.statistics import Array, Assignment, JointStatistics, Labels

ALIKE = "alike"


class NotFittedError(ValueError, AttributeError):
    """A question was asked before ``fit``."""


def not_fitted(name: str) -> Exception:
    """Return the error for an estimator without data: scikit-learn's own where it is loaded."""
    exceptions = sys.modules.get("sklearn.exceptions")
    kind = NotFittedError if exceptions is None else exceptions.NotFittedError
    error: Exception = kind(f"This {name} instance is not fitted yet: call fit(X, y) or partial_fit(X, y) first.")
    return error


@dataclass(frozen=True, eq=False)
class State:
    """What a fitted estimator has: statistics, the joint that they solve to, and how rows are read.

    It is never changed: learning, merging and forgetting make another. Classes are compared by the ensemble, if there
    is one, and otherwise by the joint.
    """

    parts: tuple[Part, ...]
    """the family of every block of columns, and then those of the ensemble's members"""
    statistics: JointStatistics
    """of the same parts"""
    reader: Reader
    """how rows are read, and answers shown"""
    priors: Any = None
    """the class priors that were given, in any form that ``read_priors`` takes"""
    ensemble: Selection | None = None
    """what compares classes, beside the joint"""
    unlabelled: float | None = None
    """how much each row without a label counted; None if there were none, or something was learned since"""

    @property
    def columns(self) -> Columns:
        """How many columns there are, and their names."""
        return self.reader.columns

    @property
    def classes(self) -> Labels:
        """The labels, sorted."""
        return self.statistics.classes

    @property
    def class_count(self) -> Array:
        """The weight of the rows of each class."""
        return self.statistics.weights.sums["weight"]

    @cached_property
    def given_weights(self) -> Array | None:
        """The class weights that were given, in the order of the classes."""
        return read_priors(self.priors, self.classes, self.class_count)

    @cached_property
    def joint(self) -> Joint:
        """The joint distribution, solved when it is first asked for."""
        if not self.class_count.any():
            raise ValueError("expected rows with a positive weight, got a model that has learned none")
        parts = tuple(part for part in self.parts if part.encoding is None)
        return Joint.solve(self._of(encoded=False), parts, self.columns, self.given_weights)

    @property
    def table(self) -> LabelledTable | None:
        """What was learned of all columns and the class together, if they have a joint of their own."""
        found = self.statistics.table
        assert found is None or isinstance(found, LabelledTable)
        return found

    @cached_property
    def answering(self) -> AnsweringJoint:
        """What answers questions beside that about the class: the joint of the whole table, if there is one."""
        if self.table is None or not self.class_count.any():
            return self.joint  # which says that nothing was learned
        return LabelledTableAnswers(self.table, self.classes, self.given_weights)

    @cached_property
    def plain_naive_bayes(self) -> Joint:
        """The joint of texts in which words are independent and count as they come: what texts are drawn from."""
        from likely.families.bag import Bag

        family: Any = self.parts[0].family
        bag = Bag(family.analyzer, family.event, family.smoothing, kept=family.kept)
        return Joint.solve(self.statistics, (Part(bag, None),), self.columns, self.given_weights)

    @cached_property
    def selection(self) -> Selection | None:
        """The ensemble, if there is one, with the statistics of all rows."""
        return None if self.ensemble is None else replace(self.ensemble, statistics=self._of(encoded=True))

    @property
    def calibrated(self) -> bool:
        """Whether something else than the joint alone compares classes."""
        return self.ensemble is not None or any(part.family.calibrated for part in self.parts)

    @cached_property
    def comparison(self) -> "Comparison":
        """What compares classes."""
        if not self.calibrated or not self.class_count.any():
            return self.joint  # which says that nothing was learned
        if self.selection is None:
            guessed = sum(part.family.guessed for part in self.parts)
            return SmoothedPosterior(self.joint, max(float(self.class_count.sum()) - guessed, 0.0))
        if self.given_weights is None:
            return Calibrated(self.selection, np.zeros(len(self.selection.classes)))
        with np.errstate(divide="ignore"):
            return Calibrated(self.selection, np.log(self.given_weights) - np.log(self.selection.priors))

    @property
    def collect(self) -> Callable[[Table, Assignment], JointStatistics]:
        """What collects the statistics of more rows, also on workers: it needs nothing else of the state."""
        given = None
        if any(part.family.needs_density for part in self.parts):
            members = () if self.selection is None else self.selection.densities
            given = (*self.joint.densities, *members)
        whole = None if self.table is None else self.table.emptied()
        return partial(collect, parts=self.parts, given=given, whole=whole)

    def kept(self) -> dict[str, object]:
        """Return what a file holds of the state beside statistics and reader, by name."""
        return {}

    def keeping(self, kept: Mapping[str, object]) -> Self:
        """Return the state with what ``kept`` has given, or raise ValueError if it does not belong to the rest."""
        if kept:
            raise ValueError(f"expected nothing else to be kept, got {on_one_line(sorted(kept))}")
        return self

    def _of(self, *, encoded: bool) -> JointStatistics:
        blocks = zip(self.parts, self.statistics.blocks, strict=True)
        chosen = tuple(block for part, block in blocks if (part.encoding is not None) == encoded)
        return JointStatistics(self.statistics.weights, chosen)

    def with_statistics(self, statistics: JointStatistics) -> Self:
        """Return the state of other statistics, or raise if the given class weights do not fit their classes."""
        state = replace(self, statistics=statistics, unlabelled=None)
        state.given_weights  # noqa: B018
        return state

    def tempered(self, temperature: float) -> Self:
        """Return the state of a calibrated comparison whose log posteriors are multiplied with a number."""
        if self.ensemble is not None:
            calibration = self.ensemble.calibration.tempered(temperature)
            return replace(self, ensemble=replace(self.ensemble, calibration=calibration))
        parts = tuple(part._replace(family=part.family.tempered(temperature)) for part in self.parts)
        return replace(self, parts=parts)

    def with_ensemble(self, ensemble: Selection) -> Self:
        """Return the state with an ensemble, which has the statistics of the same rows."""
        members = tuple(member.part for member in ensemble.members)
        joined = replace(self.statistics, blocks=(*self.statistics.blocks, *ensemble.statistics.blocks))
        return replace(self, parts=(*self.parts, *members), statistics=joined, ensemble=ensemble)

    def with_table(self, table: LabelledTable) -> Self:
        """Return the state whose questions, but that about the class, are answered by a joint of the whole table."""
        return replace(self, statistics=replace(self.statistics, table=table))


class Calibrated(NamedTuple):
    """The members of a selection, asked as a joint is asked. They compare classes and know no p(x)."""

    selection: Selection
    shift: Array
    """by how much given class priors move every class from its proportion of the rows, in logarithms"""

    def log_joint(self, table: Table) -> Array:
        """Return log p(y | x) for every row and class: log p(x, y) up to what classes share."""
        scores = self.selection.log_posterior(table)
        if self.shift.any():
            scores = scores + self.shift
            top = scores.max(axis=1, keepdims=True)
            scores -= top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return scores

    def posterior(self, table: Table, *, log: bool = False) -> Array:
        """Return p(y | x) for every row and class, or its logarithm."""
        return self.log_joint(table) if log else np.exp(self.log_joint(table))

    def likeliest(self, table: Table) -> NDArray[np.int64]:
        """Return the index of the likeliest class of every row."""
        return np.asarray(self.log_joint(table).argmax(axis=1))

    def log_odds(self, table: Table, one: NDArray[np.int64], other: NDArray[np.int64]) -> LogOdds:
        """Return what every cell says for class ``one`` of its row against class ``other``."""
        scores, rows = self.log_joint(table), np.arange(table.rows)
        base, cells = self.selection.log_odds(table, one, other)
        base = base + subtract_logs(self.shift[one], self.shift[other])
        return _scaled(base, cells, subtract_logs(scores[rows, one], scores[rows, other]))


class SmoothedPosterior(NamedTuple):
    """A joint that is never surer than the number of rows allows: p becomes (n p + p(y)) / (n + 1)."""

    joint: Joint
    rows: float

    def log_joint(self, table: Table) -> Array:
        """Return log p(y | x) for every row and class: log p(x, y) up to what classes share."""
        found = self.joint.posterior(table)
        found *= self.rows
        found += self.joint.weights
        found /= self.rows + 1
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found, out=found))

    def posterior(self, table: Table, *, log: bool = False) -> Array:
        """Return p(y | x) for every row and class, or its logarithm."""
        return self.log_joint(table) if log else np.exp(self.log_joint(table))

    def likeliest(self, table: Table) -> NDArray[np.int64]:
        """Return the index of the likeliest class of every row."""
        return self.joint.likeliest(table)

    def log_odds(self, table: Table, one: NDArray[np.int64], other: NDArray[np.int64]) -> LogOdds:
        """Return what every cell says for class ``one`` of its row against class ``other``."""
        scores, rows = self.log_joint(table), np.arange(table.rows)
        return _scaled(*self.joint.log_odds(table, one, other), subtract_logs(scores[rows, one], scores[rows, other]))


Comparison = Joint | Calibrated | SmoothedPosterior
"""What compares classes."""


def _scaled(base: Array, cells: Array, total: Array) -> LogOdds:
    """Return contributions to log-odds in the same proportions that add up to the given total."""
    cells = cells * scaling(base + cells.sum(axis=1), total)[:, None]
    return LogOdds(total - cells.sum(axis=1), cells)


def scaling(found: Array, total: Array) -> Array:
    """Return what makes log-odds that were found those of the total: 1 where they are none, or of another sign."""
    same = (np.sign(found) == np.sign(total)) & (np.abs(found) > 1e-6) & np.isfinite(total)
    return np.where(same, total / np.where(same, found, 1.0), 1.0)


def read_priors(priors: Any, classes: Labels, counts: Array) -> Array | None:
    """Return given class weights in the order of the classes: from a sequence, a dict, or a word.

    ``"uniform"`` are the classes that have rows: of others nothing is known. ``"alike"`` are all, seen or not.
    """
    if priors is None:
        return None
    k = len(classes)
    if isinstance(priors, str):
        if priors == ALIKE:
            return np.full(k, 1 / k)
        if priors != "uniform":
            raise ValueError(f"expected priors='uniform', one number for each class, or a dict, got {priors!r}")
        seen = counts > 0 if counts.any() else np.full(k, True)
        return np.asarray(seen / seen.sum())
    if isinstance(priors, Mapping):
        lacking = [label for label in classes.tolist() if label not in priors]
        if lacking or len(priors) != k:
            raise ValueError(
                f"expected priors for the classes {few(tuple(classes.tolist()))}, got {priors!r}; in partial_fit, "
                "name labels yet to come by classes="
            )
        priors = [priors[label] for label in classes.tolist()]
    weights = read_numbers(priors, "priors='uniform', one number for each class, or a dict")
    if weights.shape != (k,):
        raise ValueError(f"Number of priors must match number of classes: expected {k}, got {weights.shape}")
    if not np.all(weights >= 0):
        raise ValueError(f"Priors must be non-negative: got {weights.tolist()}")
    if not np.isclose(weights.sum(), 1.0):
        raise ValueError(
            f"The sum of the priors should be 1: got {weights.tolist()}, whose sum is {weights.sum():g}; divide by it"
        )
    weights /= weights.sum()
    return weights


def few(names: tuple[object, ...], most: int = 6) -> str:
    """Return names for a sentence, not all if they are many."""
    shown = ", ".join(map(repr, names[:most]))
    return f"[{shown}, … {len(names) - most} more]" if len(names) > most else f"[{shown}]"
