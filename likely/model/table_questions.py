"""What can be asked of the joint of a whole table: any column, given any others."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from likely.data.labels import read_weights
from likely.data.table import Columns, Table
from likely.density.columns import SUPPORT, UNKNOWN, CategoryColumn, Encoded, NumberColumn, numbers, unknown_rows
from likely.density.groups import group_shares, group_weights
from likely.density.left_out import column_of_support, support_starts, tiles
from likely.density.normal import ndtr
from likely.density.table import TableJoint, hidden_shares
from likely.density.topics import pieces
from likely.engines import engine_of
from likely.families import on_one_line, read_numbers
from likely.lazy import pa
from likely.messages import printable
from likely.model.given import Given
from likely.model.group_profiles import group_profiles
from likely.model.questions import Answer as Answered
from likely.model.questions import Questions, labels_in_text, random_generator
from likely.model.readers import Reader
from likely.model.state import not_fitted
from likely.model.table_evaluation import quantiles
from likely.statistics import Array, Labels

if TYPE_CHECKING:
    import pyarrow

Evidence = Mapping[Any, Any] | None


Asked = TypeVar("Asked", bound=Callable[..., Any])


@dataclass(frozen=True)
class TableAnswer(Answered):
    """A question as it is sent to the workers: answers stand in columns that say what was asked."""

    def __call__(self, rows: "pyarrow.Table") -> "pyarrow.Table":
        """Return the answers in columns of their own, or the cells that were asked for in those that they are of."""
        found, of = getattr(self.model, self.question)(rows, **self.options), self.options.get("of")
        if isinstance(found, pa.Table):
            return found
        if isinstance(found, Surprise):
            cells = np.where(np.isnan(found.cells), -np.inf, found.cells).max(axis=1, initial=-np.inf)
            blamed = np.where(np.isfinite(cells), cells, np.nan)
            worst = pa.array(found.worst().tolist(), pa.string())
            return pa.table({"surprise": found.rows, "cell": worst, "cell_surprise": blamed})
        if self.question == "impute":
            return pa.table({name: found[:, j] for j, name in enumerate(self.model.feature_names_in_)})
        if found.ndim == 1:
            grouped = of is None and self.question != "log_density"
            name = self.model.answers if grouped else "log_density" if of is None else f"predicted {of}"
            kind = pa.array(self.model.values_of(of)).type if found.dtype == object else None
            return pa.table({name: pa.array(found, kind)})
        if self.question == "predict_quantiles":
            names = [f"{100 * q:.12g} %" for q in np.atleast_1d(self.options["q"]).tolist()]
        else:
            labels = range(found.shape[1]) if of is None else labels_in_text(self.model.values_of(of))
            names = [f"{'log ' if self.question == 'predict_log_proba' else ''}p({label})" for label in labels]
        return pa.table({name: pa.array(found[:, k]) for k, name in enumerate(names)})

    def asked(self, rows: Any) -> Any:
        """Return the answers about rows of an array, as one."""
        found = getattr(self.model, self.question)(rows, **self.options)
        return found.rows if isinstance(found, Surprise) else found


def lazily(ask: Asked) -> Asked:
    """Let a question about rows in partitions of an engine be answered lazily, in a frame of that engine."""
    parameters = signature(ask)

    @wraps(ask)
    def answered(model: Any, X: Any, *more: Any, **options: Any) -> Any:
        engine = engine_of(X)
        if engine is None:
            return ask(model, X, *more, **options)
        model.fitted()
        asked = dict(parameters.bind(model, X, *more, **options).arguments)
        for name in ("self", "X"):
            asked.pop(name)
        return engine.lazily(TableAnswer(model, ask.__name__, asked))

    return cast("Asked", answered)


@dataclass(frozen=True, eq=False)
class TableState:
    """What a fitted model of a whole table has: how rows are read, and their joint."""

    reader: Reader
    joint: TableJoint

    @property
    def columns(self) -> Columns:
        """How many columns there are, and their names."""
        return self.reader.columns

    def batches(self, X: Any) -> Iterator[Encoded]:
        """Return rows as the joint reads them, some at a time."""
        for table in self.reader.batches(X, note=False):
            yield from self.joint.batches(table)


# Likenesses of rows that are held at a time.
_LIKENESSES = 1 << 22


class Answer(NamedTuple):
    """The distribution of a column."""

    values: NDArray[Any]
    p: Array
    log_given: float
    """log p(what was given), a density where that is a number"""


class Surprise(NamedTuple):
    """How surprising rows and their cells are."""

    rows: Array
    """−log p of each row"""
    cells: Array
    """rows × columns: −log of the probability of a value that is as likely or less, given the others; NaN if missing"""
    columns: Columns

    def worst(self) -> Labels:
        """Return the name, or number, of the most surprising column of each row."""
        found = np.where(np.isnan(self.cells), -np.inf, self.cells).argmax(axis=1)
        return np.array([self.columns.name(j) for j in found.tolist()], dtype=object)


class ColumnExplanation(NamedTuple):
    """What every known cell adds to an answer about a column: cells add up to it."""

    label: NDArray[Any]
    """the answer of each row: the likeliest value, or the mean"""
    against: NDArray[Any] | None
    """the runner-up; None of numbers"""
    base: Array
    """log-odds of the two, or the mean, before any cell is read; dates count in days, or seconds, since 1970"""
    cells: Array
    """rows × columns"""
    columns: Columns

    @property
    def total(self) -> Array:
        """The log-odds of the answer against the runner-up, or the mean, of every row."""
        return np.asarray(self.base + self.cells.sum(axis=1))

    def dates(self, counts: Array) -> NDArray[np.datetime64]:
        """Return days, or seconds, since 1970 as dates, where the answers are dates."""
        unit = "D" if self.label.dtype == np.dtype("datetime64[D]") else "s"
        return np.rint(counts).astype(np.int64).astype(f"datetime64[{unit}]")

    def top(self, most: int = 10, row: int = 0) -> list[tuple[str, float]]:
        """Return the columns that say most about a row, the strongest first."""
        order = np.argsort(-np.abs(self.cells[row]), kind="stable")[:most]
        return [(self.columns.name(j), float(self.cells[row, j])) for j in order.tolist() if self.cells[row, j] != 0]

    def __str__(self) -> str:
        lines = []
        for row in range(len(self.base)):
            against = "" if self.against is None else f" against {self.against[row]}"
            if self.label.dtype.kind == "M":
                lines.append(f"{self.label[row]} ({self.dates(self.base)[row]} before any cell)")
            elif self.against is None:
                lines.append(f"{self.total[row]:.6g} ({self.base[row]:.6g} before any cell)")
            else:
                found = f"{self.label[row]}{against}: {self.total[row]:+.4g} ({self.base[row]:+.4g} before any cell)"
                lines.append(printable(found))
            top = self.top(row=row)
            lines += [printable(f"  {name}: {value:+.4g}") for name, value in top]
            others = int(np.count_nonzero(self.cells[row])) - len(top)
            if others > 0:
                rest = self.cells[row].sum() - sum(value for _, value in top)
                lines.append(f"  {others} other cell{'s' * (others > 1)}: {rest:+.4g}")
        return "\n".join(lines)


class TableQuestions:
    """What can be asked of a model of a whole table. Cells of rows may be missing: they are unknown.

    Every question takes ``given``, evidence that holds for all rows: a dict from columns to a value, a range
    ``(low, high)`` of numbers, in which None is no end, a set of values, or ``likely.MISSING``. It takes the place of
    the cells of these columns.
    """

    _state: TableState

    def fitted(self) -> TableState:
        """Return the fitted state, or raise NotFittedError."""
        try:
            return self._state
        except AttributeError:
            raise not_fitted(type(self).__name__) from None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    hold = Questions.hold
    n_features_in_ = Questions.n_features_in_
    feature_names_in_ = Questions.feature_names_in_
    schema_ = Questions.schema_
    _table_reader = Questions._table_reader

    def _asked(self, of: Any) -> int:
        """Return the number of the column that is asked about."""
        if of is None:
            raise ValueError("expected of=, the name or number of the column that is asked about, got None")
        state = self.fitted()
        j = state.reader.column(of)
        if j in state.joint.text_columns or (state.joint.columns[j].support == 1 and j not in state.joint.names):
            raise ValueError(
                f"expected a column of numbers or categories, got {state.columns.listed([j])} of text: texts are "
                "evidence about other columns, and have no values to list"
            )
        if j in state.joint.names and not len(state.joint.names[j]):
            raise ValueError(
                f"expected a column in which a category was learned, got {state.columns.listed([j])}, whose cells were "
                "all missing: ask about another"
            )
        return j

    def _known(self, j: int, given: Evidence) -> Given:
        """Read what is given, or raise if it is the value of the column that is asked about."""
        state = self.fitted()
        known = Given.of(given, state.joint, state.reader)
        if not np.isnan(known.cells[j]):
            raise ValueError(
                f"expected evidence on other columns than the one that is asked about, or a range or a set of it, got "
                f"a value of {state.columns.listed([j])}"
            )
        return known

    def _answers(self, X: Any, of: Any, given: Evidence) -> tuple[Given, int, list[tuple[Encoded, Array]]]:
        """Return the distributions of a column on its support, batch by batch: its own cells are not looked at."""
        state = self.fitted()
        j = self._asked(of)
        known = self._known(j, given)
        found = []
        for rows in state.batches(X):
            asked = known.applied(rows).hiding(j)
            found.append((asked, known.combination.marginals(asked, [j], known.evidence)[0]))
        return known, j, found

    @lazily
    def log_density(self, X: Any, given: Evidence = None) -> Array:
        """Return log p(x) of each row, of the cells that are there: how usual it is; given evidence, log p(x | it).

        Numbers count by their density, in their unit; categories, repeated and whole numbers by their probability.
        """
        return self._log_density(X, given)

    def _log_density(self, X: Any, given: Evidence) -> Array:
        """Return log p(x) of each row; those in partitions are brought here, one partition at a time."""
        state = self.fitted()
        known = Given.of(given, state.joint, state.reader)
        if not given:
            return np.concatenate([known.combination.log_density(rows) for rows in state.batches(X)])
        return np.concatenate([known.log_density(rows) for rows in state.batches(X)])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of log p(x) over the rows."""
        found = self._log_density(X, None)
        if not len(found):
            raise ValueError("expected at least one row, got none")
        return float(np.average(found, weights=read_weights(sample_weight, len(found))))

    @lazily
    def predict(self, X: Any, of: Any = None, given: Evidence = None) -> NDArray[Any]:
        """Return the likeliest value of a column of categories, or the mean of numbers or dates, given all others.

        The cells of the column itself are not looked at. Without ``of`` it is the group of each row, as of ``groups``.
        """
        if of is None:
            return self.groups(X, given)
        joint, reader = self.fitted().joint, self.fitted().reader
        known, j, found = self._answers(X, of, given)
        column = joint.columns[j]
        if isinstance(column, NumberColumn):
            parts = [joint.distribution(column, p, known.evidence, j) for _, p in found]
            return reader.as_asked(j, np.concatenate([part.p @ part.values for part in parts]))
        likeliest = np.concatenate([joint.named_values(j, p, known.evidence).argmax(axis=1) for _, p in found])
        return np.asarray(reader.as_asked(j, joint.values_of(j))[likeliest])

    @lazily
    def predict_proba(self, X: Any, of: Any = None, given: Evidence = None) -> Array:
        """Return p(value | all other cells) of a column of categories, rows × values in the order of ``values_of``.

        Without ``of`` it is p(group | row), of the groups that ``groups`` finds.
        """
        if of is None:
            return self._group_shares(X, given)
        state = self.fitted()
        j = self._asked(of)
        if isinstance(state.joint.columns[j], NumberColumn):
            raise ValueError(
                f"expected a column of categories or of yes and no, got {state.columns.listed([j])} of numbers: ask "
                "for predict, predict_quantiles or predict_interval"
            )
        known, _, found = self._answers(X, of, given)
        return np.concatenate([state.joint.named_values(j, levels, known.evidence) for _, levels in found])

    @lazily
    def predict_log_proba(self, X: Any, of: Any = None, given: Evidence = None) -> Array:
        """Return the logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X, of, given)))

    def values_of(self, column: Any) -> NDArray[Any]:
        """Return the values of a column in the order in which ``predict_proba`` gives their probabilities.

        Of a column of yes and no they are False and True, or 0 and 1 where it was written so.
        """
        state = self.fitted()
        j = self._asked(column)
        if isinstance(state.joint.columns[j], NumberColumn):
            raise ValueError(
                f"expected a column of categories or of yes and no, got {state.columns.listed([j])}: ask for another"
            )
        return state.reader.as_asked(j, state.joint.values_of(j))

    def distribution(self, of: Any, given: Evidence = None) -> "Answer":
        """Return the distribution of a column given evidence: values, or points of a number in order, and p of each.

        >>> from likely import Model
        >>> from likely.datasets import penguins
        >>> answer = Model().fit(penguins()).distribution("species", given={"body_mass_g": (5500, None)})
        >>> str(answer.values[answer.p.argmax()])
        'Gentoo'
        """
        state = self.fitted()
        j = self._asked(of)
        known = self._known(j, given)
        rows = known.applied(unknown_rows(state.joint.columns, 1)).hiding(j)
        blank = known.applied(unknown_rows(state.joint.columns, 1))
        log = float(known.combination.log_density(blank, known.evidence)[0]) + known.log_missing
        column, found = state.joint.columns[j], known.combination.marginals(rows, [j], known.evidence)[0]
        if not isinstance(column, NumberColumn):
            p = state.joint.named_values(j, found, known.evidence)[0]
            return Answer(state.reader.as_asked(j, state.joint.values_of(j)), p, log)
        spread = state.joint.distribution(column, found, known.evidence, j)
        return Answer(state.reader.as_asked(j, spread.values), spread.p[0], log)

    @lazily
    def predict_quantiles(self, X: Any, q: Any, of: Any = None, given: Evidence = None) -> NDArray[Any]:
        """Return quantiles of a number, or of dates, given all other cells: rows × quantiles.

        Parameters
        ----------
        X
            rows
        q
            numbers between 0 and 1
        of
            the column
        given
            evidence that holds for all rows
        """
        wanted = np.atleast_1d(read_numbers(q, "quantiles q between 0 and 1"))
        if wanted.ndim > 1 or not len(wanted) or not np.all((wanted >= 0) & (wanted <= 1)):
            raise ValueError(f"expected one or more quantiles q between 0 and 1, got {on_one_line(q)}")
        state = self.fitted()
        known, j, found = self._answers(X, of, given)
        column = state.joint.columns[j]
        if not isinstance(column, NumberColumn):
            raise ValueError(
                f"expected a column of numbers, got {state.columns.listed([j])} of categories: ask for predict_proba"
            )
        parts = []
        for _, p in found:
            spread = state.joint.distribution(column, p, known.evidence, j)
            parts.append(quantiles(spread, wanted))
        return state.reader.as_asked(j, np.concatenate(parts))

    def predict_interval(self, X: Any, of: Any = None, coverage: float = 0.9, given: Evidence = None) -> NDArray[Any]:
        """Return between what a number, or a date, lies with a probability of ``coverage``, rows × 2."""
        if not isinstance(coverage, float | int | np.number) or not 0 < coverage < 1:
            raise ValueError(f"expected coverage between 0 and 1, got {on_one_line(coverage)}")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2], of, given)

    def impute(
        self, X: Any, *, how: str = "mean", draws: int | None = None, given: Evidence = None, random_state: Any = None
    ) -> Any:
        """Return the rows with their missing cells filled in, as the kind of frame that they are.

        Parameters
        ----------
        X
            rows with missing cells
        how
            "mean": the mean of a number, the likeliest category; "draw": one of all that could be, so that filled rows
            vary as real ones do
        draws
            how often to draw, for multiple imputation: a list of so many frames. A loop of single draws that gives one
            NumPy generator as ``random_state`` has the same frames, and holds one at a time
        given
            evidence that holds for all rows
        random_state
            the seed of draws
        """
        if how not in ("mean", "draw"):
            raise ValueError(f"expected how='mean' or 'draw', got {how!r}")
        counts = isinstance(draws, int | np.integer) and not isinstance(draws, bool) and draws >= 1
        if draws is not None and (how != "draw" or not counts):
            raise ValueError(f"expected draws, 1 or more, with how='draw', got draws={draws!r} with how={how!r}")
        state = self.fitted()
        if how == "mean" and (engine := engine_of(X)) is not None:
            return engine.lazily(TableAnswer(self, "impute", {"given": given}))
        known = Given.of(given, state.joint, state.reader)
        rows = state.reader.held(X)
        table = state.reader.read(rows, note=False)
        generator = None if how == "mean" else random_generator(random_state)
        frames = []
        for _ in range(draws or 1):
            filled = self._filled(table, known, generator)
            x = known.within(state.reader.within_limits(filled), state.joint.whole, generator)
            frames.append(state.reader.filled_rows(X, rows, table, x, state.joint.names, generator))
        return frames[0] if draws is None else frames

    def _filled(self, table: Table, known: Given, generator: "np.random.Generator | None") -> Array:
        joint, parts = self.fitted().joint, []
        for rows in joint.batches(table):
            rows = known.applied(rows)
            if generator is None:
                parts.append(joint.expected(known.combination, rows, known.evidence))
            else:
                levels, u = known.combination.draw(rows, generator, known.evidence)
                parts.append(joint.cells(levels, u, generator, known.evidence))
        return np.concatenate(parts)

    def sample(self, n: int = 1, random_state: Any = None, given: Evidence = None, *, missing: bool = False) -> Any:
        """Draw n new rows, as a table; of a model of a matrix, as a matrix.

        Parameters
        ----------
        n
            how many rows
        random_state
            a seed, or a NumPy generator
        given
            evidence that holds for all rows
        missing
            whether cells are missing as those of the learned rows are
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"expected a whole number of rows to draw, got {n!r}")
        state, generator = self.fitted(), random_generator(random_state)
        joint, reader = state.joint, state.reader
        known = Given.of(given, joint, reader)
        table = reader.given_rows(known.values, int(n), joint.names)
        parts = []
        for rows in joint.batches(table):
            levels, u = known.combination.draw(
                known.applied(rows), generator, known.evidence, missing=missing, lacking=known.missing
            )
            levels[:, list(known.missing)] = UNKNOWN
            parts.append(joint.cells(levels, u, generator, known.evidence))
        x = known.within(reader.within_limits(np.concatenate(parts)[: int(n)]), joint.whole, generator)
        return reader.drawn_rows(table, x, known.values, joint.names, generator)

    @lazily
    def surprise(self, X: Any, given: Evidence = None) -> Surprise:
        """Return how surprising each row is, −log p(x), and each cell given the others of its row.

        The surprise of a cell is −log of the probability of all values of its column that are as likely as it is, or
        less, given the other cells: so numbers and categories can be compared.
        """
        state = self.fitted()
        known = Given.of(given, state.joint, state.reader)
        parts = [_surprise(known, rows) for rows in state.batches(X)]
        whole, cells = (np.concatenate(found) for found in zip(*parts, strict=True))
        return Surprise(whole, cells, state.columns)

    def dependence(self) -> Any:
        """Return how much columns depend on each other, as an Arrow table of all pairs, the strongest first.

        ``information`` is the mutual information in nats, ``normalised`` its share of the most that two columns of
        these entropies could have, between 0 and 1.
        """
        state = self.fitted()
        found, columns = state.joint.information, state.columns
        entropy = np.diag(found)
        one, other = np.tril_indices(len(found), -1)
        share = found[one, other] / np.maximum(np.sqrt(entropy[one] * entropy[other]), 1e-12)
        order = np.argsort(-share, kind="stable")
        return pa.table(
            {
                "column": [columns.name(j) for j in other[order].tolist()],
                "other": [columns.name(j) for j in one[order].tolist()],
                "information": found[one, other][order],
                "normalised": np.minimum(share[order], 1.0),
            }
        )

    def explain(self, X: Any, of: Any = None, given: Evidence = None) -> ColumnExplanation:
        """Say what each known cell adds to the answer about a column: log-odds against the runner-up, or the mean.

        Cells are taken in one after the other, in the order of how much they depend on the column and in the reverse,
        and what each adds in both is averaged; so they add up to the answer exactly.
        """
        state = self.fitted()
        j = self._asked(of)
        known = self._known(j, given)
        parts = [_explained(state.joint, known, rows, j) for rows in state.batches(X)]
        values, others, base, cells = (np.concatenate(part) for part in zip(*parts, strict=True))
        number = isinstance(state.joint.columns[j], NumberColumn)
        names = None if number else self.values_of(of)
        label = state.reader.as_asked(j, values) if names is None else names[values.astype(np.int64)]
        against = None if names is None else names[others.astype(np.int64)]
        return ColumnExplanation(label, against, base, cells, state.columns)

    def similar(self, X: Any, among: Any, k: int = 5, given: Evidence = None) -> NDArray[np.int64]:
        """Return the k rows of ``among`` that are most like each row, rows × k: by p(hidden components | row).

        The most alike comes first. If there are fewer rows, all of them are returned.
        """
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
            raise ValueError(f"expected k as a whole number of rows of 1 or more, got {on_one_line(k)}")
        state = self.fitted()
        known = Given.of(given, state.joint, state.reader)

        def roots(data: Any) -> Array:
            parts = [hidden_shares(known.combination, known.applied(rows)) for rows in state.batches(data)]
            return np.sqrt(np.concatenate(parts))

        own, others = roots(X), roots(among).T
        size = max(1, _LIKENESSES // max(others.shape[1], 1))
        parts = [
            np.argsort(-(own[first : first + size] @ others), axis=1, kind="stable")[:, :k]
            for first in range(0, max(len(own), 1), size)
        ]
        return np.concatenate(parts)

    @lazily
    def groups(self, X: Any, given: Evidence = None) -> NDArray[np.int64]:
        """Return the group of each row: the component of the mixture of trees with the greatest responsibility.

        Where there is no such mixture, it is that of the mixture of scores; a tree, or a tree of hidden states, has one
        group. ``group_profiles_`` says what groups are like.
        """
        return np.asarray(self._group_shares(X, given).argmax(axis=1))

    @property
    def group_weights_(self) -> Array:
        """p(group) of the groups that ``groups`` finds."""
        return group_weights(self.fitted().joint)

    @property
    def group_profiles_(self) -> Any:
        """What each group that ``groups`` finds is like, as an Arrow table: a row for each group and column.

        The largest group comes first, and of each the column that is most special: ``difference`` is how far its
        distribution in the group is from that of all rows (Kullback–Leibler, in nats). ``profile`` tells of it in
        words. Of numbers ``mean`` and ``deviation`` (of dates in days, or seconds, since 1970) stand beside those of
        all rows, of categories the most frequent ``value`` and its ``share``; ``missing`` is the share of missing
        cells. All are exact, from the joint itself. Texts have no profile.

        >>> from likely import Model
        >>> from likely.datasets import penguins
        >>> profiles = Model("trees").fit(penguins()).group_profiles_.to_pylist()
        >>> profiles[0]["weight"] >= profiles[-1]["weight"] and profiles[0]["difference"] >= profiles[1]["difference"]
        True
        """
        state = self.fitted()
        return group_profiles(state.joint, state.reader)

    def _group_shares(self, X: Any, given: Evidence) -> Array:
        state = self.fitted()
        known = Given.of(given, state.joint, state.reader)
        rows = [known.applied(batch) for batch in state.batches(X)]
        return np.concatenate([group_shares(state.joint, known.combination, each, known.evidence) for each in rows])


def _surprise(known: Given, rows: Encoded) -> tuple[Array, Array]:
    rows = known.applied(rows)
    whole = -known.log_density(rows) if known.row or known.evidence else -known.combination.log_density(rows)
    if not rows.rows:
        return whole, np.zeros(rows.levels.shape)
    return whole, np.concatenate([_surprise_of_cells(known, rows.taken(tile)) for tile in tiles(rows)])


def _surprise_of_cells(known: Given, rows: Encoded) -> Array:
    """Return −log of the probability of a value that is as likely as each cell or less, given the others of its row."""
    found, at = known.combination.left_out(rows, known.evidence), rows.binned(SUPPORT).astype(np.int64)
    owner, starts = column_of_support(rows.columns), support_starts(rows.columns)[:-1]
    # Bins of numbers are as likely as they are dense.
    widths = [c.support_widths if isinstance(c, NumberColumn) else np.ones(c.support) for c in rows.columns]
    dense = found / np.concatenate(widths)
    own = np.take_along_axis(dense, starts + np.maximum(at, 0), axis=1) * (1 + 1e-9)
    as_likely = np.add.reduceat(np.where(dense <= own[:, owner], found, 0.0), starts, axis=1)
    for number, (j, column) in enumerate(numbers(rows.columns)):
        if column.bins > 1:  # of the outermost bins what lies further out counts
            z = rows.z[:, number]
            outer = np.flatnonzero((at[:, j] == len(column.atoms)) | (at[:, j] == column.support - 1))
            outer = outer[rows.levels[outer, j] == len(column.atoms)]
            beyond = ndtr(-np.abs(z[outer])) * column.bins
            as_likely[outer, j] *= np.minimum(np.nan_to_num(beyond, nan=1.0), 1.0)
    return np.where(rows.levels >= 0, -np.log(np.clip(as_likely, 1e-300, 1.0)) + 0.0, np.nan)


# Versions of rows, with cells hidden, that are asked together.
_TOGETHER = 1024


def _explained(joint: TableJoint, known: Given, rows: Encoded, j: int) -> tuple[Array, Array, Array, Array]:
    """Return the answer and runner-up (or the mean, twice), the base, and what each cell adds."""
    rows = known.applied(rows).hiding(j)
    column = joint.columns[j]
    order = np.argsort(-joint.information[j], kind="stable")
    order = order[order != j]

    def asked(part: Encoded) -> Array:
        found = [known.combination.marginals(piece, [j], known.evidence)[0] for piece in pieces(part)]
        if isinstance(column, CategoryColumn):
            return joint.named_values(j, np.concatenate(found), known.evidence)
        spread = joint.distribution(column, np.concatenate(found), known.evidence, j)
        return np.asarray(spread.p @ spread.values)

    final = asked(rows)
    every = np.arange(rows.rows)
    one: NDArray[Any] = final
    other: NDArray[Any] = final
    if isinstance(column, CategoryColumn):
        ranked = np.argsort(-final, axis=1, kind="stable")
        one, other = ranked[:, 0], ranked[:, min(1, final.shape[1] - 1)]

    def values(answers: Array, versions: int) -> Array:
        """Return what cells add up to, versions × rows, from answers about versions of all rows."""
        answers = answers.reshape(versions, *final.shape)
        if not isinstance(column, CategoryColumn):
            return answers
        logs = np.log(np.maximum(answers, 1e-300))
        return np.asarray(logs[:, every, one] - logs[:, every, other])

    cells = np.zeros(rows.levels.shape)
    together = max(1, _TOGETHER // max(rows.rows, 1))
    for way in (order, order[::-1]):  # from all cells to none
        hidden_at = np.full(len(joint.columns), -1)
        hidden_at[way] = np.arange(len(way))
        found = [values(final, 1)]
        for first in range(0, len(way), together):
            versions = np.arange(first, min(first + together, len(way)))
            hidden = np.repeat(hidden_at <= versions[:, None], rows.rows, axis=0)
            found.append(values(asked(rows.taken(np.tile(every, len(versions))).without(hidden)), len(versions)))
        after = np.concatenate(found)
        cells[:, way] += 0.5 * (after[:-1] - after[1:]).T
    return np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64), after[-1], cells
