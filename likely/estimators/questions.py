"""Every question to a fitted classifier: which class by what compares them, all else by the joint p(x, y)."""

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from likely.data.labels import is_missing, missing_labels
from likely.data.schema import check_name
from likely.data.table import Block, Table
from likely.engines import engine_of
from likely.estimators.protocol import Estimator, not_fitted
from likely.families import LinearForm, QuadraticForm, on_one_line, subtract_logs
from likely.joint import Joint
from likely.messages import printable
from likely.model import lazy as lazily
from likely.model.explanation import Explanation
from likely.model.state import Calibrated, Knowledge, Modest, few
from likely.statistics import Array, Labels

# What is answered lazily where rows lie in partitions.
_LAZY = ("predict", "predict_proba")

Asked = TypeVar("Asked", bound=Callable[..., NDArray[Any]])


def row_by_row(ask: Asked) -> Asked:
    """Let a question about every row be answered batch by batch: of a file, only the answers must fit in memory."""

    @wraps(ask)
    def answered(model: Any, X: Any, *more: Any, **options: Any) -> NDArray[Any]:
        if not more and ask.__name__ in _LAZY and (engine := engine_of(X)) is not None:
            model._known()
            return lazily.answered(model, engine, ask.__name__, options)  # type: ignore[no-any-return]
        answers = [ask(model, part, *more, **options) for part in model._batches(X)]
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    return cast("Asked", answered)


class Questions(Estimator):
    """What can be asked of a model that has learned."""

    classes_: Labels
    _knowledge: Knowledge

    def _known(self) -> Knowledge:
        try:
            return self._knowledge
        except AttributeError:
            raise not_fitted(type(self).__name__) from None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_knowledge")

    def __str__(self) -> str:
        """Show what was learned: the classes and their weights, and the blocks of columns and their families."""
        if not self.__sklearn_is_fitted__():
            return repr(self)
        known = self._known()
        rows = known.statistics.weights.sums["weight"].sum()
        lines = [f"{self!r}, {rows:,.6g} rows"]
        shares = zip(
            self.classes_.tolist(),
            (self.priors_ if rows else known.statistics.weights.sums["weight"]).tolist(),
            strict=True,
        )
        lines.append("classes: " + _listed([f"{label} {share:.3g}" for label, share in shares]))
        for part in known.parts:
            if part.encoding is None:
                columns = range(known.columns.width) if part.columns is None else part.columns
                whole = " (full covariance)" if getattr(part.family, "covariance", "") == "full" else ""
                lines.append(f"{part.family.name}{whole}: " + _listed([known.columns.name(j) for j in columns]))
        return "\n".join(map(printable, [*lines, *self._more_lines()]))

    def _more_lines(self) -> list[str]:
        """Return what else there is to show."""
        return []

    @property
    def joint_(self) -> Joint:
        """The joint distribution p(x, y)."""
        return self._known().joint

    @property
    def _comparison(self) -> Joint | Calibrated | Modest:
        """What compares classes: the joint, unless members were chosen for it."""
        known = self._known()
        return known.comparison if known.calibrated else self.joint_

    @property
    def priors_(self) -> Array:
        """p(y), one for each class."""
        return self._known().joint.weights

    def _batches(self, X: Any) -> Iterator[Any]:
        """Return rows in parts of which each can be asked about."""
        yield X

    @row_by_row
    def predict(self, X: Any) -> Labels:
        """Return the likeliest class of each row."""
        comparison = self._comparison
        labels: Labels = self.classes_[comparison.likeliest(self._read_next(X))]
        return labels

    @row_by_row
    def predict_proba(self, X: Any, of: Any = None) -> Array:
        """Return p(y | x), rows × classes.

        Given the name or number ``of`` another column, of categories or of 0 and 1, p(that column | the others), as if
        it were missing: the label is only a column, too. ``values_of`` says which value is which.
        """
        comparison = self._comparison
        if of is not None:
            self.values_of(of)  # which says what is wrong with it
        table = self._read_next(X)
        return comparison.posterior(table) if of is None else self.joint_.column_posterior(table, self._column(of))[1]

    def values_of(self, column: Any) -> NDArray[Any]:
        """Return the values of a column in the order in which ``predict_proba`` gives their probabilities."""
        number = self._column(column)
        try:
            values = self.joint_.values_of(number)
        except ValueError:
            listed = self._known().columns.listed([number])
            raise ValueError(f"expected a column of categories or of 0 and 1, got {listed}: ask for another") from None
        names = self.joint_.categories.get(number)
        return values if names is None else names[values.astype(np.int64)]

    def _column(self, column: Any) -> int:
        columns = self._known().columns
        if isinstance(column, str) and columns.names is not None and column in columns.names:
            return columns.names.index(column)
        if isinstance(column, int | np.integer) and 0 <= column < columns.width:
            return int(column)
        if columns.names is not None:
            check_name(column, columns.names)
        raise ValueError(f"expected a column among 0 to {columns.width - 1}, got {column!r}")

    @row_by_row
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x), rows × classes, exact where p itself would round to 0 or 1."""
        comparison = self._comparison
        return comparison.posterior(self._read_next(X), log=True)

    @row_by_row
    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class if there are two, else log p(x, y), rows × classes.

        If probabilities are calibrated, log p(y | x) stands in place of log p(x, y).
        """
        comparison = self._comparison
        scores = comparison.log_joint(self._read_next(X))
        if scores.shape[1] != 2:
            return scores
        return subtract_logs(scores[:, 1], scores[:, 0])

    @row_by_row
    def log_density(self, X: Any) -> Array:
        """Return log p(x) of each row, whatever its class: how usual it is."""
        return self.joint_.log_density(self._read_next(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right, of those that have a label."""
        predicted, labels = np.asarray(self.predict(X)), np.asarray(y).ravel()
        if len(labels) != len(predicted):
            raise ValueError(f"expected one label for each of the {len(predicted)} rows of X, got {len(labels)} labels")
        known = ~missing_labels(labels, y)
        if not known.any():
            raise ValueError(f"expected a label for some rows, got {len(labels)} rows without any")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(predicted[known] == labels[known], weights=weights))

    def sample(
        self, n: int = 1, random_state: Any = None, given: Mapping[Any, Any] | None = None
    ) -> tuple[Any, Labels]:
        """Draw n new rows, first y, then x given y. Returns (X, y).

        ``given`` holds cells that all rows are to have, by the name or number of their column: the others are drawn
        from what the model knows of such rows. Of a table it may hold the label, too, by the name of its column.
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"expected a whole number of rows to draw, got {n!r}")
        generator = random_generator(random_state)
        cells, target = dict(given or {}), getattr(self, "target_", None)
        known = self._known_codes([cells.pop(target)] * int(n), int(n)) if target in cells else None
        table = self._given_rows(cells, int(n))
        x, codes = self.joint_.drawn(table, generator, known) if given else self.joint_.sample(n, generator)
        return self._drawn_rows(table, self._within_limits(x), cells, generator), self.joint_.classes[codes]

    def _within_limits(self, x: Array) -> Array:
        """Return cells that are drawn or expected, within what their columns can hold."""
        return x

    def _given_rows(self, given: Mapping[Any, Any], n: int) -> Table:
        """Return rows in which only some cells are there."""
        cells = np.full((n, self._known().columns.width), np.nan)
        for column, value in given.items():
            cells[:, self._column(column)] = value
        return Table(cells, self._known().columns.names)

    def _drawn_rows(self, table: Table, x: Array, given: Mapping[Any, Any], generator: "np.random.Generator") -> Any:
        """Return drawn rows as the user gets them; cells that were given, and are in the table, stay."""
        cells = Block(table, None).values()
        return np.where(np.isnan(cells), x, cells)

    def impute(self, X: Any, y: Any = None, *, how: str = "mean", random_state: Any = None) -> Any:
        """Return the rows with their missing cells filled in, given those that are there and, if known, the label.

        Parameters
        ----------
        X
            rows with holes
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
        if y is None and how == "mean" and (engine := engine_of(X)) is not None:
            self._known()
            return lazily.answered(self, engine, "impute", {})
        joint = self.joint_
        rows = self._held(X)
        table = self._read_next(rows)
        codes = None if y is None else self._known_codes(y, table.rows)
        generator = None if how == "mean" else random_generator(random_state)
        filled = joint.expected(table, codes) if generator is None else joint.drawn(table, generator, codes)[0]
        return self._filled_rows(X, rows, table, self._within_limits(filled), generator)

    def _held(self, X: Any) -> Any:
        """Return rows that can be read again at no cost."""
        return X

    def _filled_rows(
        self, X: Any, rows: Any, table: Table, filled: Array, generator: "np.random.Generator | None"
    ) -> Any:
        """Return the user's rows, held as ``rows``, with what was found in place of missing cells."""
        cells = Block(table, None).values()
        return np.where(np.isnan(cells), filled, cells)

    def _known_codes(self, y: Any, rows: int) -> NDArray[np.int32]:
        labels = np.asarray(y, dtype=object).ravel()
        if len(labels) != rows:
            raise ValueError(f"expected a label, or None, for each of the {rows} rows of X, got {len(labels)}")
        unknown = [is_missing(label) for label in labels]
        places = {None: -1, **{label: place for place, label in enumerate(self.classes_.tolist())}}
        try:
            return np.array(
                [-1 if gone else places[label] for gone, label in zip(unknown, labels, strict=True)], dtype=np.int32
            )
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
        comparison = self._comparison
        table = self._read_next(X)
        one, other = self._pair(comparison.log_joint(table), label, against)
        base, cells = comparison.log_odds(table, one, other)
        columns = self._known().columns
        return Explanation(self.classes_[one], self.classes_[other], base, cells, columns, self._shown(table, X))

    def _shown(self, table: Table, X: Any) -> Any:
        """Return the cells as an explanation shows them."""
        return table.cells if isinstance(table.cells, np.ndarray) else X

    def linear_form(self) -> LinearForm:
        """Return θ (classes × columns) and θ₀: the scores θ·x + θ₀ of two classes differ by their log-odds."""
        return self.joint_.linear_form()

    def quadratic_form(self) -> QuadraticForm:
        """Return A, b and c: the scores xᵀAx + b·x + c of two classes differ by their log-odds."""
        return self.joint_.quadratic_form()

    def _pair(self, scores: Array, label: Any, against: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of the two classes to compare in each row."""
        rows = np.arange(len(scores))
        if label is None:
            scores_for_label = scores.copy()
            if against is not None and scores.shape[1] > 1:
                scores_for_label[:, self._place(against)] = -np.inf
            one = scores_for_label.argmax(axis=1)
        else:
            one = np.full(len(scores), self._place(label))
        if against is not None:
            return one, np.full(len(scores), self._place(against))
        if scores.shape[1] == 1:
            return one, one
        others = scores.copy()
        others[rows, one] = -np.inf
        other = others.argmax(axis=1)
        return one, np.where(other == one, np.where(one == 0, 1, 0), other)

    def _place(self, label: Any) -> int:
        found = np.flatnonzero(self.classes_ == label)
        if len(found) == 0:
            raise ValueError(f"expected a label among {few(tuple(self.classes_.tolist()))}, got {label!r}")
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
