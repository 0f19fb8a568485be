"""The classifier for tables: families by the types of columns, and calibrated probabilities by default."""

from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from likely.data.progress import ProgressLine
from likely.data.table import SparseRows, Table
from likely.density.labelled_table import LabelledTable
from likely.ensemble.members import Chooser, MemberEncoding, Plain, choose_mixture
from likely.ensemble.selection import Selection, select
from likely.estimators import fitting
from likely.estimators.base import LabelledEstimator, tags_of
from likely.estimators.column_families import ColumnFamilies, count_tags
from likely.estimators.fitting import FirstFit, Guessed, Plan
from likely.estimators.laws import Laws
from likely.families import Gaussian, Together, on_one_line
from likely.joint import Part
from likely.learn.class_mixtures import Mixed, MixedStatistics, mix
from likely.model.state import State
from likely.statistics import Assignment, JointStatistics, class_weights

# Rows that every component is imagined to have, as in a mixture.
PSEUDO_ROWS = 1e-4


@dataclass(eq=False, repr=False)
class Classifier(LabelledEstimator):
    """Classify the rows of any table, missing cells and all, with probabilities that can be trusted.

    Two views of the same rows compare the classes: naive Bayes of bins, and a regularised discriminant of ranks and
    categories, between tied and per class, full and diagonal. How much each counts, how far the columns depend on each
    other, and how sure to be at most, is chosen by the rows themselves: each is predicted from the other folds, whose
    statistics come from the same pass. What else can be asked, rows like these, missing cells, other columns, how usual
    a row is, is answered by a joint of all columns and the class.

    Parameters
    ----------
    columns
        what the columns are, by name: a kind, "number", "integer", "boolean", "category", "date", "text" or "ignore",
        or a family, such as "log-normal"; others are chosen by their type
    joint
        what answers all but which class it is: "tree", Chow–Liu trees of the columns and the class, one of all rows and
        one in every class, whose counts add exactly; "full", the joint of ``Model`` with the class as a column, which
        takes as long as ``Model`` to fit; "naive", ``joint_``, in which columns are class-conditionally independent.
        It is ``joint_``, too, if ``calibrate=False`` or if ``columns`` names families, with ``covariance``,
        ``components`` or ``together``, where a column is text, of more than 1000 columns or classes, and
        with "tree" of fewer than 40 rows, too few to hold some out
    forest
        whether a forest of 200 classification trees compares classes, too: its leaves keep counts of classes, which
        add. It is more often right where classes have sharp thresholds or odd shapes and rows are many, and a fit takes
        several times as long
    calibrate
        choose among models and calibrate their probabilities; otherwise the joint alone compares classes
    covariance
        how Gaussian columns are correlated in the joint: "diagonal", not at all given the class; "full", by a
        covariance of each class; "tied", by one of all classes
    components
        how many components each class is a mixture of, at most: 1, more, or "auto", as many as the BIC favours. Such a
        joint also helps to compare classes. Models of components learn more rows, but cannot be merged, nor forget.
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the proportions of the classes in the data
    smoothing, pseudo_rows, unbiased
        as of ``NaiveBayes``, for the joint
    missing
        text or numbers that stand for a missing cell of a table, such as ``["?", -999]``
    together
        columns of categories that depend on each other: a list of names, or several lists
    unlabelled
        as of ``NaiveBayes``
    random_state
        the seed by which rows are assigned to cross-validation folds

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

    columns: Any = "auto"
    _: KW_ONLY
    joint: Literal["tree", "full", "naive"] = "tree"
    forest: bool = False
    calibrate: bool = True
    covariance: str = "diagonal"
    components: Any = 1
    priors: Any = None
    smoothing: Any = 1.0
    pseudo_rows: float = 0.0
    unbiased: bool = False
    missing: Any = ()
    together: Any = ()
    unlabelled: Any = "auto"
    random_state: int = 0

    def plan(self) -> Plan:
        """Return what is to be fitted: families by type, mixtures of components, and an ensemble to compare classes."""
        components = self._components()
        if self.forest and not self.calibrate:
            raise ValueError("expected calibrate=True with forest=True, got False: a forest is one of several members")
        # A component needs some imagined rows, or it could be one row.
        pseudo_rows = self.pseudo_rows if components == 1 or self.pseudo_rows else PSEUDO_ROWS
        correlates = self.covariance != "diagonal"
        columns = ColumnFamilies(self.columns, self.smoothing, pseudo_rows, self.together, self.unbiased, correlates)

        def families(table: Table, assignment: Assignment) -> tuple[Part, ...]:
            parts = columns(table, assignment)
            if not correlates:
                return parts
            # A little shrinkage, chosen by the rows, so that every class has an inverse; of components, imagined rows.
            full = Gaussian(
                "full",
                tied=self.covariance == "tied",
                shrinkage=0.0 if components != 1 else "oas",
                pseudo_rows=pseudo_rows,
                uncorrelated=components != 1,
            )
            return tuple(part._replace(family=full) if type(part.family) is Gaussian else part for part in parts)

        return Plan(
            "Classifier",
            families,
            "table",
            self.columns,
            self.missing,
            by_type=columns.by_type,
            begin=None if components == 1 else self._mixtures,
            compare=self._compared if self.calibrate else None,
            answer=self._answer(columns),
            chosen=bool(self.calibrate) or components != 1,
            priors=self.priors,
            unlabelled=self.unlabelled,
            random_state=self.random_state,
        )

    def emptied(self) -> Self:
        """Return a model that has chosen as this one has, and knows no rows: to learn others elsewhere, and be merged.

        >>> from likely import Classifier
        >>> X, y = [[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"]
        >>> here = Classifier().fit(X, y)
        >>> elsewhere = here.emptied().partial_fit([[2.0], [5.0]], ["a", "b"])
        >>> here.merge(elsewhere).class_count_.tolist()
        [3.0, 3.0]
        """
        model = copy(self)
        model._state = fitting.emptied(self.fitted())
        return model

    @property
    def selection_(self) -> Selection | None:
        """The ensemble that compares classes."""
        return self.fitted().selection

    def _answer(self, columns: ColumnFamilies) -> Callable[[State, Table, Assignment], State] | None:
        """Return what adds the joint of the whole table; None if the families of the columns are to answer all."""
        if self.joint not in ("tree", "full", "naive"):
            raise ValueError(f"expected joint='tree', 'full' or 'naive', got {on_one_line(self.joint)}")
        instead = {
            "calibrate=False": not self.calibrate,
            f"components={self.components!r}": self.components != 1,
            f"covariance={self.covariance!r}": self.covariance != "diagonal",
            "together=": bool(np.size(self.together)),
            "families in columns=": columns.named,
        }
        asked = [name for name, is_asked in instead.items() if is_asked]
        if self.joint == "full" and asked:
            raise ValueError(f"expected joint='naive' with {asked[0]}, got 'full': leave out one of the two")
        return None if asked or self.joint == "naive" else self._answered

    def _answered(self, state: State, table: Table, assignment: Assignment) -> State:
        """Learn the joint of the whole table from first rows."""
        if self.joint == "naive" or not LabelledTable.reads(table, assignment, self.joint):
            return state
        with ProgressLine(True) as line:
            return state.with_table(LabelledTable.fit(table, assignment, self.joint, self.random_state, line))

    def _mixtures(self, table: Table, assignment: Assignment, parts: tuple[Part, ...], guessed: Guessed) -> FirstFit:
        """Find the components of every class."""
        if not parts:
            return FirstFit(parts, JointStatistics(class_weights(assignment), ()))
        with ProgressLine(True) as line:
            part, statistics = mix(table, assignment, parts, self._components(), self.random_state, line=line)
        return FirstFit((part,), JointStatistics(class_weights(assignment), (statistics,)))

    def _compared(self, state: State, table: Table, assignment: Assignment, guessed: Guessed) -> State:
        """Choose the ensemble that is to compare classes, by rows that are predicted from other folds."""
        if isinstance(table.cells, SparseRows):
            raise TypeError(
                "Sparse data was passed for X, but Classifier needs dense data: use X.toarray(), calibrate=False, or "
                "NaiveBayes for a bag of words"
            )
        parts, line = state.parts, ProgressLine(True)
        more: list[tuple[MemberEncoding, Chooser]] = []
        if len(parts) == 1 and isinstance(parts[0].family, Mixed):
            parts = parts[0].family.blocks
            # How many there are in each class was found from all rows: to look for it in every fold takes far longer.
            found = state.statistics.blocks[0]
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
            chosen = select(
                table,
                assignment,
                seed=self.random_state,
                groups=groups,
                guessed=guessed,
                more=more,
                forest=bool(self.forest),
            )
        return state.with_ensemble(chosen)

    def _components(self) -> int | str:
        """Return how many components a class has, or raise if that, or the covariance, is not said well."""
        if self.covariance not in ("diagonal", "full", "tied"):
            raise ValueError(f"expected covariance='diagonal', 'full' or 'tied', got {self.covariance!r}")
        given = self.components.item() if isinstance(self.components, np.generic) else self.components
        if type(given) in (int, str) and (given == "auto" or (type(given) is int and given >= 1)):
            if given != 1 and self.covariance == "tied":
                raise ValueError(
                    "expected covariance='diagonal' or 'full' of classes that are mixtures, got 'tied': choose one"
                )
            return given  # type: ignore[no-any-return]
        raise ValueError(f"expected components as a whole number of 1 or more, or 'auto', got {self.components!r}")

    def __sklearn_tags__(self) -> Any:
        sparse, positive_only = count_tags(self.columns)
        return tags_of("classifier", sparse=sparse and not self.calibrate, positive_only=positive_only)
