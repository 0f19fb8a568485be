"""Every question to a fitted model: which class by what compares them, all else by the joint p(x, y)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from likely.data.cells import read_target
from likely.data.labels import is_missing, missing_labels
from likely.data.schema import Schema
from likely.engines import engine_of, rows_of, with_labels
from likely.families import LinearForm, QuadraticForm, on_one_line, subtract_logs
from likely.joint import Joint
from likely.lazy import pa
from likely.messages import printable
from likely.model.explanation import Explanation
from likely.model.readers import TableReader
from likely.model.state import State, few, not_fitted
from likely.statistics import Array, Labels

PREDICTION, GROUP = "prediction", "group"
"""The names of the column of answers: classes, and groups that nobody has named."""

# What is answered lazily where rows are in partitions of an engine.
_LAZY = ("predict", "predict_proba")

Asked = TypeVar("Asked", bound=Callable[..., NDArray[Any]])


@dataclass(frozen=True)
class Answer:
    """A question as it is sent to the workers: of a partition's rows to columns of answers."""

    model: Any
    question: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, rows: "pa.Table") -> "pa.Table":
        """Return the answers, in columns of their own, or the cells that were asked for in those that they are of."""
        found = self.asked(rows)
        if isinstance(found, pa.Table):
            return found
        if self.question == "impute":
            return pa.table({name: pa.array(found[:, j]) for j, name in enumerate(self.model.feature_names_in_)})
        if found.ndim == 1:
            return pa.table({self.model.answers: pa.array(found)})
        of = self.options.get("of")
        labels = labels_in_text(self.model.classes_ if of is None else self.model.values_of(of))
        return pa.table({f"p({label})": pa.array(found[:, k]) for k, label in enumerate(labels)})

    def asked(self, rows: Any) -> Any:
        """Return the answers as the model gives them."""
        return getattr(self.model, self.question)(rows, **self.options)


def labels_in_text(labels: Any) -> list[str]:
    """Return classes as the names of columns tell them."""
    from likely.data.arrow import text_of

    return [str(label) for label in text_of(pa.array(labels)).to_pylist()]


def row_by_row(ask: Asked) -> Asked:
    """Let a question about tables be asked about any rows: batch by batch, or lazily in partitions of an engine."""

    @wraps(ask)
    def answered(model: Any, X: Any, *more: Any, **options: Any) -> NDArray[Any]:
        state = model.fitted()
        if not more and ask.__name__ in _LAZY and (engine := engine_of(X)) is not None:
            return engine.lazily(Answer(model, ask.__name__, options))  # type: ignore[no-any-return]
        answers = [ask(model, table, *more, **options) for table in state.reader.batches(X)]
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    return cast("Asked", answered)


class Questions:
    """What can be asked of a model that has learned: all of it is asked of the state that it holds."""

    answers: ClassVar[str] = PREDICTION
    _state: State

    def fitted(self) -> State:
        """Return the fitted state, or raise NotFittedError."""
        try:
            return self._state
        except AttributeError:
            raise not_fitted(type(self).__name__) from None

    def hold(self, state: State) -> Self:
        """Take a fitted state, such as one from a file."""
        self._state = state
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __str__(self) -> str:
        """Show what was learned: the classes and their weights, and the blocks of columns and their families."""
        if not self.__sklearn_is_fitted__():
            return repr(self)
        state = self.fitted()
        rows = state.class_count.sum()
        lines = [f"{self!r}, {rows:,.6g} rows"]
        weights = zip(state.classes.tolist(), (self.priors_ if rows else state.class_count).tolist(), strict=True)
        lines.append("classes: " + _listed([f"{label} {weight:.3g}" for label, weight in weights]))
        for part in state.parts:
            if part.encoding is None:
                columns = range(state.columns.width) if part.columns is None else part.columns
                whole = " (full covariance)" if getattr(part.family, "covariance", "") == "full" else ""
                lines.append(f"{part.family.name}{whole}: " + _listed([state.columns.name(j) for j in columns]))
        if (ensemble := state.selection) is not None:
            weighed = zip(ensemble.members, ensemble.calibration.weights.tolist(), strict=True)
            shown = [f"{m.family.name} of {m.encoding.width} columns × {weight:.2f}" for m, weight in weighed]
            lines.append("compared by: " + ", ".join(shown))
        return "\n".join(map(printable, lines))

    @property
    def joint_(self) -> Joint:
        """The joint distribution p(x, y)."""
        return self.fitted().joint

    @property
    def priors_(self) -> Array:
        """p(y), one for each class."""
        return self.fitted().joint.weights

    @property
    def classes_(self) -> Labels:
        """The labels, sorted."""
        return self.fitted().classes

    @property
    def class_count_(self) -> Array:
        """The weight of the rows of each class."""
        return self.fitted().class_count

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self.fitted().columns.width

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns, if they have any."""
        names = self.fitted().columns.names
        if names is None:
            raise AttributeError(f"{type(self).__name__} was fitted on columns without names")
        return np.array(names, dtype=object)

    @property
    def schema_(self) -> Schema:
        """What the columns of a table are; a matrix of numbers has none."""
        return self._table_reader().schema

    @property
    def target_(self) -> str:
        """The name of the labels of a table."""
        return self._table_reader().target

    def _table_reader(self) -> TableReader:
        reader = self.fitted().reader
        if not isinstance(reader, TableReader):
            raise AttributeError(f"{type(self).__name__} was fitted on a matrix of numbers, which has no schema")
        return reader

    @row_by_row
    def predict(self, X: Any) -> Labels:
        """Return the likeliest class of each row."""
        state = self.fitted()
        labels: Labels = state.classes[state.comparison.likeliest(X)]
        return labels

    @row_by_row
    def predict_proba(self, X: Any, of: Any = None) -> Array:
        """Return p(y | x), rows × classes.

        Given the name or number ``of`` another column, of categories or of 0 and 1, p(that column | the others), as if
        it were missing: the label is only a column, too. ``values_of`` says which value is which.
        """
        state = self.fitted()
        if of is None:
            return state.comparison.posterior(X)
        self.values_of(of)  # which says what is wrong with it
        return state.answering.column_posterior(X, state.reader.column(of))[1]

    def values_of(self, column: Any) -> NDArray[Any]:
        """Return the values of a column in the order in which ``predict_proba`` gives their probabilities."""
        state = self.fitted()
        number = state.reader.column(column)
        try:
            values = state.answering.values_of(number)
        except ValueError:
            listed = state.columns.listed([number])
            raise ValueError(f"expected a column of categories or of 0 and 1, got {listed}: ask for another") from None
        names = state.answering.categories.get(number)
        return values if names is None else names[values.astype(np.int64)]

    @row_by_row
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x), rows × classes, exact where p itself would round to 0 or 1."""
        return self.fitted().comparison.posterior(X, log=True)

    @row_by_row
    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class if there are two, else log p(x, y), rows × classes.

        If probabilities are calibrated, log p(y | x) stands in place of log p(x, y).
        """
        scores = self.fitted().comparison.log_joint(X)
        if scores.shape[1] != 2:
            return scores
        return subtract_logs(scores[:, 1], scores[:, 0])

    @row_by_row
    def log_density(self, X: Any) -> Array:
        """Return log p(x) of each row, whatever its class: how usual it is."""
        return self.fitted().answering.log_density(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right, of those that have a label.

        ``y`` may be the name of a column of X.
        """
        X, y = with_labels(X, y) if hasattr(X, "columns") else (X, y)
        if isinstance(y, str):
            X = rows_of(X, missing=getattr(self.fitted().reader, "missing", ()))
            y = np.concatenate([read_target(batch, y) for batch in X.batches()])
        return accuracy(self.predict(X), y, sample_weight)

    def sample(
        self, n: int = 1, random_state: Any = None, given: Mapping[Any, Any] | None = None
    ) -> tuple[Any, Labels]:
        """Draw n new rows, first y, then x given y. Returns (X, y).

        ``given`` holds cells that all rows are to have, by the name or number of their column: the others are drawn
        from what the model knows of such rows. Of a table it may hold the label, too, by the name of its column.
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"expected a whole number of rows to draw, got {n!r}")
        state, generator = self.fitted(), random_generator(random_state)
        for column, value in (given or {}).items():
            if isinstance(value, tuple | set | frozenset | list):
                raise ValueError(
                    f"expected one value of column {column!r} in given=, got {on_one_line(value)}: ranges and sets are "
                    "evidence for likely.Model"
                )
        cells, target = dict(given or {}), getattr(state.reader, "target", None)
        known = self._known_codes([cells.pop(target)] * int(n), int(n)) if target in cells else None
        joint = state.answering
        table = state.reader.given_rows(cells, int(n), joint.categories)
        x, codes = joint.drawn(table, generator, known) if given else joint.sample(n, generator)
        x = state.reader.within_limits(x)
        return state.reader.drawn_rows(table, x, cells, joint.categories, generator), state.classes[codes]

    def impute(self, X: Any, y: Any = None, *, how: str = "mean", random_state: Any = None) -> Any:
        """Return the rows with their missing cells filled in, given those that are there and, if known, the label.

        Parameters
        ----------
        X
            rows with missing cells
        y
            a label for each row, None where it is not known; by default none is
        how
            "mean": what is expected of a number, and the likeliest category; "draw": one of all that could be, so that
            the filled rows vary as real ones do
        random_state
            the seed of draws

        Examples
        --------
        >>> from likely import NaiveBayes
        >>> model = NaiveBayes().fit([[1.0, 5.0], [1.2, 5.2], [3.0, 9.0], [3.2, 9.2]], ["a", "a", "b", "b"])
        >>> model.impute([[1.1, np.nan]]).round(3).tolist()
        [[1.1, 5.1]]
        """
        if how not in ("mean", "draw"):
            raise ValueError(f"expected how='mean' or 'draw', got {how!r}")
        reader, joint = self.fitted().reader, self.fitted().answering
        if y is None and how == "mean" and (engine := engine_of(X)) is not None:
            return engine.lazily(Answer(self, "impute"))
        rows = reader.held(X)
        table = reader.read(rows)
        codes = None if y is None else self._known_codes(y, table.rows)
        generator = None if how == "mean" else random_generator(random_state)
        filled = joint.expected(table, codes) if generator is None else joint.drawn(table, generator, codes)[0]
        return reader.filled_rows(X, rows, table, reader.within_limits(filled), joint.categories, generator)

    def _known_codes(self, y: Any, rows: int) -> NDArray[np.int32]:
        labels = np.asarray(y, dtype=object).ravel()
        if len(labels) != rows:
            raise ValueError(f"expected a label, or None, for each of the {rows} rows of X, got {len(labels)}")
        codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        try:
            return np.array([-1 if is_missing(label) else codes[label] for label in labels], dtype=np.int32)
        except KeyError as error:
            raise ValueError(
                f"expected labels among {few(tuple(self.classes_.tolist()))}, got {error.args[0]!r}"
            ) from None

    def explain(self, X: Any, label: Any = None, against: Any = None) -> Explanation:
        """Say what each cell contributes to the log-odds of ``label`` against ``against``.

        By default the likeliest class of each row against the next one. If probabilities are calibrated, cells add up
        to the calibrated log-odds; where few rows were learned, all are scaled down, as no probability is surer than
        they allow.
        """
        state = self.fitted()
        comparison, table = state.comparison, state.reader.read(X)
        one, other = compared(state.classes, comparison.log_joint(table), label, against)
        base, cells = comparison.log_odds(table, one, other)
        shown = state.reader.shown(table, X)
        return Explanation(state.classes[one], state.classes[other], base, cells, state.columns, shown)

    def linear_form(self) -> LinearForm:
        """Return θ (classes × columns) and θ₀: the scores θ·x + θ₀ of two classes differ by their log-odds."""
        return self.joint_.linear_form()

    def quadratic_form(self) -> QuadraticForm:
        """Return A, b and c: the scores xᵀAx + b·x + c of two classes differ by their log-odds."""
        return self.joint_.quadratic_form()


def accuracy(predicted: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the share of rows whose class is predicted right, of those that have a label."""
    predicted, labels = np.asarray(predicted), np.asarray(y).ravel()
    if len(labels) != len(predicted):
        raise ValueError(f"expected one label for each of the {len(predicted)} rows of X, got {len(labels)} labels")
    known = ~missing_labels(labels, y)
    if not known.any():
        raise ValueError(f"expected a label for some rows, got {len(labels)} rows without any")
    weights = None if sample_weight is None else np.asarray(sample_weight)[known]
    return float(np.average(predicted[known] == labels[known], weights=weights))


def compared(classes: Labels, scores: Array, label: Any, against: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of the two classes to compare in each row: those asked for, or the likeliest ones."""
    rows = np.arange(len(scores))
    if label is None:
        scores_for_label = scores.copy()
        if against is not None and scores.shape[1] > 1:
            scores_for_label[:, code_of(classes, against)] = -np.inf
        one = scores_for_label.argmax(axis=1)
    else:
        one = np.full(len(scores), code_of(classes, label))
    if against is not None:
        return one, np.full(len(scores), code_of(classes, against))
    if scores.shape[1] == 1:
        return one, one
    others = scores.copy()
    others[rows, one] = -np.inf
    other = others.argmax(axis=1)
    return one, np.where(other == one, np.where(one == 0, 1, 0), other)


def code_of(classes: Labels, label: Any) -> int:
    """Return the index of a label among the classes, or raise ValueError."""
    found = np.flatnonzero(classes == label)
    if len(found) == 0:
        raise ValueError(f"expected a label among {few(tuple(classes.tolist()))}, got {label!r}")
    return int(found[0])


def random_generator(random_state: Any) -> "np.random.Generator":
    """Return a generator of random numbers from a seed, a generator, or scikit-learn's kind of one."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        got = on_one_line(random_state)
        raise ValueError(
            f"expected random_state as None, a whole number of 0 or more, or a generator, got {got}"
        ) from None


def _listed(words: list[str], most: int = 12) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
