"""The classifier for tables: families by the kinds of columns, and calibrated probabilities by default."""

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.rows import Rows
from likely.data.schema import Schema
from likely.data.table import SparseRows, Table
from likely.ensemble.members import Chooser, MemberEncoding, Plain, choose_mixture
from likely.ensemble.selection import Selection, same_members, select
from likely.estimators.laws import Laws
from likely.estimators.naive_bayes import NaiveBayes
from likely.estimators.watching import ProgressLine
from likely.families import Gaussian, Together, on_one_line
from likely.joint import Part
from likely.learn.class_mixture_density import MixedStatistics
from likely.learn.class_mixtures import Mixed, mix
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.state import Knowledge
from likely.persistence.codec import Saved
from likely.persistence.validate import check_classes
from likely.statistics import Assignment, JointStatistics, class_weights

# Rows that every component is imagined to have, as in a mixture.
PSEUDO_ROWS = 1e-4


class Classifier(NaiveBayes):
    """Classify the rows of any table, holes and all, with probabilities that can be trusted.

    Two views of the same rows compare the classes: naive Bayes of levels, and a regularised discriminant of ranks and
    categories, between tied and per class, full and diagonal. How much each counts, how far the columns depend on each
    other, and how sure to be at most, is chosen by the rows themselves: each is predicted from the other folds, whose
    statistics come from the same pass. What else can be asked, rows like these, missing cells, how usual a row is, is
    answered by ``joint_``, the families of the columns in every class; if that is a mixture, it is a third view.

    Parameters
    ----------
    columns
        what the columns are, by name: a kind, "number", "integer", "boolean", "category", "date", "text" or "ignore",
        or a family, such as "log-normal"; others are chosen by their type
    calibrate
        choose among models and calibrate their probabilities; otherwise the joint alone compares classes
    covariance
        how Gaussian columns hang together in the joint: "diagonal", not at all given the class; "full", by a covariance
        of each class; "tied", by one of all classes
    components
        how many components each class is a mixture of, at most: 1, more, or "auto", as many as the BIC favours. Such a
        joint also helps to compare classes. Models of components learn more rows, but cannot be merged, nor forget.
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the shares of the classes in the data
    smoothing, pseudo_rows, unbiased
        as of ``NaiveBayes``, for the joint
    missing
        text or numbers that stand for a missing cell of a table, such as ``["?", -999]``
    together
        columns of categories that depend on each other: a list of names, or several lists
    unlabelled
        as of ``NaiveBayes``
    random_state
        the seed by which rows are dealt into folds

    Attributes
    ----------
    schema_
        what the columns of the table are
    target_
        the name of the column that holds the label
    selection_
        the members that compare classes, and how they are weighed and calibrated; None without ``calibrate``
    classes_, class_count_, priors_, joint_, n_features_in_, feature_names_in_
        as of ``NaiveBayes``

    Examples
    --------
    >>> from likely import Classifier
    >>> birds = [
    ...     {"mass": 3750, "island": "Torgersen", "species": "Adelie"},
    ...     {"mass": 3800, "island": None, "species": "Adelie"},
    ...     {"mass": 5000, "island": "Biscoe", "species": "Gentoo"},
    ...     {"mass": None, "island": "Biscoe", "species": "Gentoo"},
    ... ]
    >>> model = Classifier().fit(birds, "species")
    >>> model.predict([{"mass": 5100, "island": "Biscoe"}, {"island": "Torgersen", "mass": 3700}]).tolist()
    ['Gentoo', 'Adelie']
    """

    # Kinds, ranks, bins, weights of members and the calibration are those that the first rows have decided.
    laws: ClassVar[Laws] = Laws(weights="reference", batches="reference", merge="reference", forget="reference")

    def __init__(
        self,
        columns: Any = "auto",
        *,
        calibrate: bool = True,
        covariance: str = "diagonal",
        components: Any = 1,
        priors: Any = None,
        smoothing: Any = 1.0,
        pseudo_rows: float = 0.0,
        unbiased: bool = False,
        missing: Any = (),
        together: Any = (),
        unlabelled: Any = "auto",
        random_state: int = 0,
    ):
        super().__init__(
            columns,
            priors=priors,
            smoothing=smoothing,
            pseudo_rows=pseudo_rows,
            unbiased=unbiased,
            missing=missing,
            together=together,
            unlabelled=unlabelled,
        )
        self.calibrate = calibrate
        self.covariance = covariance
        self.components = components
        self.random_state = random_state

    @property
    def selection_(self) -> Selection | None:
        """What was chosen to compare classes."""
        return self._known().selection

    def _parts(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        if self.covariance not in ("diagonal", "full", "tied"):
            raise ValueError(f"expected covariance='diagonal', 'full' or 'tied', got {self.covariance!r}")
        parts = super()._parts(table, assignment)
        if self.covariance == "diagonal":
            return parts
        # A little shrinkage, chosen by the rows, so that every class has an inverse; of components, imagined rows.
        several = self._components() != 1
        together = Gaussian(
            "full",
            tied=self.covariance == "tied",
            shrinkage=0.0 if several else "oas",
            pseudo_rows=self._imagined(),
            uncorrelated=several,
        )
        return tuple(part._replace(family=together) if type(part.family) is Gaussian else part for part in parts)

    def _gaussian(self, kind: type[Gaussian]) -> Gaussian:
        return kind(pseudo_rows=self._imagined(), unbiased=self.unbiased)

    def _correlates(self) -> bool:
        return self.covariance != "diagonal"

    def _imagined(self) -> Any:
        """Return how many rows every class is imagined to have; a component needs some, or it could be one row."""
        return self.pseudo_rows if self._components() == 1 or self.pseudo_rows else PSEUDO_ROWS

    def _parts_by_kind(self, schema: Schema, rows: Rows) -> tuple[Part, ...] | None:
        return None if self.calibrate or self._components() != 1 else super()._parts_by_kind(schema, rows)

    def _begun(self, table: Table, assignment: Assignment, guessed: NDArray[np.bool_] | None = None) -> Knowledge:
        if self.calibrate and isinstance(table.cells, SparseRows):
            raise TypeError(
                "Sparse data was passed for X, but Classifier needs dense data: use X.toarray(), calibrate=False, or "
                "NaiveBayes for a bag of words"
            )
        knowledge = super()._begun(table, assignment)
        if not self.calibrate:
            return knowledge
        parts, line = knowledge.parts, ProgressLine(True)
        more: list[tuple[MemberEncoding, Chooser]] = []
        if len(parts) == 1 and isinstance(parts[0].family, Mixed):
            parts = parts[0].family.blocks
            # How many there are in each class was found from all rows: to look for it in every fold takes far longer.
            found = knowledge.statistics.blocks[0]
            assert isinstance(found, MixedStatistics)
            numbers = np.maximum((found.weights > 0).sum(axis=0), 1).tolist()
            chooser = partial(choose_mixture, parts=parts, components=numbers, seed=self.random_state, line=line)
            more.append((Plain(table.columns.width), chooser))
        groups = tuple(
            tuple(range(table.columns.width) if part.columns is None else part.columns)
            for part in parts
            if isinstance(part.family, Together)
        )
        with line:
            chosen = select(table, assignment, seed=self.random_state, groups=groups, guessed=guessed, more=more)
        return knowledge.with_selection(chosen)

    def _first(
        self, table: Table, assignment: Assignment, parts: tuple[Part, ...]
    ) -> tuple[tuple[Part, ...], JointStatistics]:
        components = self._components()
        if components == 1 or not parts:
            return super()._first(table, assignment, parts)
        with ProgressLine(True) as line:
            part, statistics = mix(table, assignment, parts, components, self.random_state, line=line)
        return (part,), JointStatistics(class_weights(assignment), (statistics,))

    def _components(self) -> int | str:
        """Return how many components a class has, or raise if that is not said well."""
        given = self.components.item() if isinstance(self.components, np.generic) else self.components
        if type(given) in (int, str) and (given == "auto" or (type(given) is int and given >= 1)):
            if given != 1 and self.covariance == "tied":
                raise ValueError(
                    "expected covariance='diagonal' or 'full' of classes that are mixtures, got 'tied': choose one"
                )
            return given  # type: ignore[no-any-return]
        raise ValueError(f"expected components as a whole number of 1 or more, or 'auto', got {self.components!r}")

    def emptied(self) -> Self:
        """Return a model that has chosen as this one has, and knows no rows: to learn others elsewhere, and be merged.

        >>> from likely import Classifier
        >>> X, y = [[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"]
        >>> here = Classifier().fit(X, y)
        >>> elsewhere = here.emptied().partial_fit([[2.0], [5.0]], ["a", "b"])
        >>> here.merge(elsewhere).class_count_.tolist()
        [3.0, 3.0]
        """
        known = self._known()
        self._must_be_whole("empty")
        model = copy(self)
        model._replace(known.with_statistics(known.statistics * 0.0))
        return model

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows. What the first rows decided stays: kinds, ranks, bins, and the calibration.

        ``classes`` may name labels that will come later; labels not named are learned when they come.
        """
        return super().partial_fit(X, y, classes, sample_weight)

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation | SummedEvaluation:
        """Return how well models of this kind predict rows that they have not seen. The model itself stays as it is.

        The rows are dealt into folds; each is predicted by a model that was chosen and calibrated on the others. Many
        rows in files or partitions stay where they lie, as for ``NaiveBayes``.
        """
        return super().evaluate(X, y, folds=folds, sample_weight=sample_weight, random_state=random_state)

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned, as if their rows had been given to this one.

        All must have been chosen on the same rows: fit one, and let ``emptied`` copies of it learn other rows. The
        others stay as they are.
        """
        self._must_be_whole("merge")
        for other in others:
            one, two = self._known().selection, other._known().selection
            if (one is None) != (two is None) or (one and two and not same_members(one, two)):
                raise ValueError(
                    "expected models chosen on the same rows, got two that encode their columns in different ways: fit "
                    "one of them, and let copies of it, from emptied(), learn the other rows"
                )
        return super().merge(*others)

    def _without(self, gone: JointStatistics) -> None:
        self._must_be_whole("forget")
        super()._without(gone)

    def _must_be_whole(self, what: str) -> None:
        """Raise if classes are mixtures: which component is which, and what a row gave to each, is not known."""
        if any(part.family.shares_rows for part in self._known().parts):
            raise ValueError(
                f"expected classes of one component to {what}, got mixtures, whose components depend on all rows: fit "
                "again, or use components=1"
            )

    def _remembered(self) -> dict[str, Any]:
        selection = self._known().selection
        if selection is None:
            return super()._remembered()
        arrays: dict[str, NDArray[Any]] = {}
        described = selection.described("selection", arrays)
        chosen = {"described": described, "arrays": arrays, "calibrated": selection.calibrated}
        return {**super()._remembered(), "selection": chosen}

    @classmethod
    def _from_saved(cls, saved: Saved) -> Self:
        more = dict(saved.more)
        chosen = more.pop("selection", None)
        model = super()._from_saved(replace(saved, more=more))
        if chosen is not None:
            model._replace(saved.knowledge.with_selection(_read_selection(chosen, saved)))
        return model

    def _more_lines(self) -> list[str]:
        selection = self._known().selection
        if selection is None:
            return []
        weights = zip(selection.members, selection.calibration.weights.tolist(), strict=True)
        shown = [
            f"{member.family.name} of {member.encoding.width} columns × {weight:.2f}" for member, weight in weights
        ]
        return ["compared by: " + ", ".join(shown)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.sparse and not self.calibrate
        return tags


def _read_selection(chosen: Any, saved: Saved) -> Selection:
    """Return the selection that a file describes, or raise ValueError if it does not fit the rest."""
    weights, columns = saved.knowledge.statistics.weights, saved.knowledge.columns
    statistics = JointStatistics(weights, tuple(block for _, block, _ in saved.members))
    try:
        calibrated = check_classes(chosen["calibrated"])
        selection = Selection.from_description(
            chosen["described"],
            "selection",
            chosen["arrays"],
            statistics,
            [family for family, *_ in saved.members],
            calibrated,
            columns.width,
        )
        for member in selection.members:
            if getattr(member.encoding, "of", columns.width) != columns.width:
                raise ValueError(f"expected members of {columns.width} columns, got others")
        families = [(type(member.family), member.encoding.width) for member in selection.members]
        stored = [(type(family), width) for family, _, width in saved.members]
        # An answer to one row of holes shows whether all sizes agree.
        answer = selection.log_posterior(Table(np.full((1, columns.width), np.nan), columns.names))
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"expected members that belong to the rest, got others ({on_one_line(str(error))})") from None
    if families != stored or not np.isin(calibrated, weights.labels["class"]).all() or not np.isfinite(answer).all():
        raise ValueError("expected members that belong to the statistics, got others")
    return selection
