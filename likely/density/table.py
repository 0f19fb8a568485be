"""The joint of a table: its columns, how its cells are encoded, the members of the joint, and what is asked of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.hashing import row_keys
from likely.data.table import Block, Table
from likely.density.class_trees import fit_class_trees, structure_rows
from likely.density.columns import (
    UNKNOWN,
    CategoryColumn,
    Encoded,
    NumberColumn,
    Scores,
    TableColumn,
    TextCells,
    level_counts,
    number_index,
    numbers,
)
from likely.density.combination import (
    CLASS_TREES,
    COMBINED,
    COUNTED,
    FEW_ROWS,
    TIED,
    Combination,
    Member,
    MissingCells,
    component_shares,
    components,
    continued,
    fit_member,
    log_density,
    members_worth,
)
from likely.density.evidence import Evidence, rare_shares
from likely.density.left_out import tiles
from likely.density.structure import Candidates, bounded
from likely.density.topics import pieces, unsettled
from likely.density.trees import COARSE, candidates, dependence, responsibilities
from likely.statistics import NOT_LEARNED, Array, Assignment, Labels

if TYPE_CHECKING:
    from likely.density.texts import TextColumn

# Rows in which columns, structures and starts are looked for; statistics are those of all rows.
ENOUGH = 50_000
# Rows that are encoded together when statistics are collected, or answers given.
_BATCH = 1 << 13
# Cross-validation folds by which members are weighted: of few rows each is held out once, else one is.
_FOLDS = 5
_FEW = 150
FEWEST = 40
"""Of fewer rows none are held out."""

Progress = Callable[[Callable[[], str]], None]


class Distribution(NamedTuple):
    """Distributions of a number: points in order, and p of each for each row."""

    values: Array
    p: Array


@dataclass(frozen=True, eq=False)
class TableJoint:
    """The joint p(x) of all columns of a table, and of which cells are missing."""

    columns: tuple[TableColumn, ...]
    names: Mapping[int, Labels]
    """of every column of categories its names, as codes that are answered number them"""
    weights: Array
    members: tuple[Member, ...]
    missing: MissingCells | None
    information: Array
    """columns × columns: the mutual information of each pair, and on the diagonal the entropy of each"""
    rows: float
    """the weight of all rows that were learned"""
    texts: "tuple[TextColumn, ...]" = ()
    """columns of texts: their topics are columns of the members"""

    @classmethod
    def fit(
        cls,
        table: Table,
        weights: Array | None,
        kinds: Sequence[tuple[str, int]] = COMBINED,
        seed: int = 0,
        progress: Progress | None = None,
        labels: Assignment | None = None,
    ) -> Self:
        """Fit the joint to rows; those of weight 0 are left out.

        With ``labels`` the class of rows is the last column; which cells are missing is then not modelled.
        """
        if weights is not None and not (weights > 0).all():
            kept = weights > 0
            table, weights, labels = table.taken(kept), weights[kept], None if labels is None else labels.taken(kept)
        say = progress or (lambda _: None)
        every = labels or Assignment(np.zeros(1), np.zeros(table.rows, dtype=np.int32), weights)
        keys = row_keys(table, every, seed)
        order = np.argsort(keys, kind="stable")
        sample = order[:ENOUGH]
        say(lambda: "looking at columns")
        columns, names = table_columns(table, weights)
        codes = None if labels is None else labels.codes
        if labels is not None:
            counts = np.bincount(labels.codes + 1, weights, minlength=len(labels.classes) + 1)[1:]
            columns = (*columns, class_column(counts.astype(np.float64)))
        part, own = table.taken(sample), None if weights is None else weights[sample]
        columns, texts = with_topics(columns, part, own, seed, say)
        counted = all(kind in COUNTED for kind, _ in kinds)
        known = None if codes is None else codes[sample]
        rows = encode(columns, part, own, known, texts, learning=True, scores=not counted)
        folds = _folds(keys[sample], own)
        members: tuple[Member, ...]
        if kinds == CLASS_TREES:
            information = dependence(rows.taken(slice(0, structure_rows(len(columns)))))
            member = Member.of("class trees", fit_class_trees(rows, folds[0] if folds else None, information))
            members, shares = (member,), np.ones(1)
        else:
            members, shares = fit_members(rows, kinds, folds, seed, say)
            information = dependence(rows, candidates(rows))
        missing = MissingCells.of(rows.missing, own) if labels is None else None
        found = cls(columns, names, shares, members, missing, information, 0.0, texts)
        if table.rows > ENOUGH:
            return found.advanced().plus(table, weights, 1.0, say, codes)
        if missing is not None:
            members = tuple(replace(m, missing=missing.counts(rows.missing, m.shares(rows))) for m in members)
        total = float(table.rows) if weights is None else float(weights.sum())
        return replace(found, members=members, rows=total, texts=learned_texts(texts, part, rows))

    def plus(
        self,
        table: Table,
        weights: Array | None,
        sign: float = 1.0,
        say: Progress | None = None,
        codes: NDArray[np.int32] | None = None,
    ) -> Self:
        """Return the joint that has learned more rows, or forgotten some: expected under its stored reference.

        ``codes``: the indices of their classes, −1 of one that is not known, if the last column is the class.
        """
        members, texts, total = list(self.members), self.texts, self.rows
        scores = not all(m.kind in COUNTED for m in members)
        for first in range(0, table.rows, _BATCH):
            part = table.between(first, first + _BATCH)
            own = None if weights is None else weights[first : first + _BATCH]
            known = None if codes is None else codes[first : first + _BATCH]
            rows = encode(self.columns, part, own, known, texts, learning=True, scores=scores)
            members = [m.learned(rows, self.missing, sign) for m in members]
            texts = learned_texts(texts, part, rows, sign)
            total += sign * (float(rows.rows) if own is None else float(own.sum()))
            if say is not None:
                say(partial("learning rows: {:,} of {:,}".format, first, table.rows))
        return replace(self, members=tuple(members), rows=total, texts=texts)

    def emptied(self) -> Self:
        """Return the joint that knows no rows, under the same reference."""
        texts = tuple(t.emptied() for t in self.texts)
        return replace(self, members=tuple(m.emptied() for m in self.members), rows=0.0, texts=texts)

    def advanced(self) -> Self:
        """Return the joint that knows no rows, and has its densities as the reference."""
        return replace(self.emptied(), members=tuple(m.advanced() for m in self.members))

    def checked(self, before: Self) -> Self:
        """Return the joint after rows were forgotten, or raise if it never had learned them."""
        if self.miscounted(before):
            raise ValueError(NOT_LEARNED.format("weigh more than what is left"))
        if self.rows <= _ROUNDING * before.rows:
            raise ValueError(
                "expected some rows to be left, got a request to forget all of them: use a new model instead"
            )
        return self

    def miscounted(self, before: Self) -> bool:
        """Say whether more was forgotten than was there before."""
        least = -_ROUNDING * max(before.rows, 1.0)
        return self.rows < -_ROUNDING * before.rows or any((m.counts < least).any() for m in self.members)

    def same_reference(self, other: Self) -> bool:
        """Say whether rows are expected under the same reference."""
        if len(self.members) != len(other.members) or len(self.texts) != len(other.texts):
            return False
        members = all(
            _same(one.reference, two.reference) and _same(one.prior, two.prior)
            for one, two in zip(self.members, other.members, strict=True)
        )
        return members and all(one.same_reference(two) for one, two in zip(self.texts, other.texts, strict=True))

    def merged(self, other: Self, factor: float = 1.0) -> Self:
        """Return the joint of the rows of both, which have the same reference, those of the other times a factor."""
        members = tuple(one.merged(two, factor) for one, two in zip(self.members, other.members, strict=True))
        texts = tuple(one.merged(two, factor) for one, two in zip(self.texts, other.texts, strict=True))
        return replace(self, members=members, rows=self.rows + factor * other.rows, texts=texts)

    @cached_property
    def combination(self) -> Combination:
        """The density that all sums solve to."""
        counts = tuple(m.missing for m in self.members if m.missing is not None)
        missing = self.missing if len(counts) == len(self.members) else None
        return Combination(self.columns, self.weights, tuple(m.density for m in self.members), missing, counts)

    def as_cells(self, table: Table) -> Array:
        """Return the first row of a table as answers are: numbers, and codes of ``names``; NaN if unknown."""
        cells: Array = np.full(len(self.columns), np.nan)
        cells[: table.columns.width] = Block(table, None).values()[0]
        for j, names in self.names.items():
            if not np.isnan(cells[j]):
                found = np.flatnonzero(names == str(table.categories[j][int(cells[j])]))
                cells[j] = found[0] if len(found) else np.nan
        return cells

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Whether the values of each column are whole numbers, or codes of categories."""
        return np.array([not isinstance(column, NumberColumn) or column.whole for column in self.columns])

    def encode(self, table: Table, codes: NDArray[np.int32] | None = None) -> Encoded:
        """Return rows as the members read them; ``codes`` of a class that is the last column, by default not known."""
        return encode(self.columns, table, None, codes, self.texts)

    def batches(self, table: Table) -> Iterator[Encoded]:
        """Return rows some at a time; no rows are one batch of none."""
        for _, part in self.parts(table):
            yield from pieces(self.encode(part))

    @cached_property
    def text_columns(self) -> frozenset[int]:
        """The columns of texts, of which the joint has topics."""
        return frozenset(text.column for text in self.texts)

    @staticmethod
    def parts(table: Table) -> Iterator[tuple[slice, Table]]:
        """Cut rows into those that are answered together; no rows are one part of none."""
        for first in range(0, max(table.rows, 1), _BATCH):
            yield slice(first, first + _BATCH), table.between(first, first + _BATCH)

    def values_of(self, j: int) -> Labels:
        """Return the values of a column in the order of the probabilities of ``named_values``."""
        column = self.columns[j]
        if isinstance(column, NumberColumn):
            return column.support_values
        names = self.names.get(j)
        return np.array([0, 1]) if names is None else names

    def named_values(self, j: int, found: Array, evidence: Evidence | None = None) -> Array:
        """Return p(value) of a column of categories, as ``values_of`` has them, from p(level), given the evidence."""
        column = self.columns[j]
        assert isinstance(column, CategoryColumn)
        if not column.rare:
            return found[:, : len(column.frequent)]
        return np.concatenate([found[:, :-1], found[:, -1:] * rare_shares(column, evidence, j)], axis=1)

    def distribution(self, column: NumberColumn, found: Array, evidence: Evidence | None, j: int) -> Distribution:
        """Return the distribution of a number from that on its support: points in order."""
        atoms, points = len(column.atoms), column.support_points
        share = np.full(points.shape, 1.0 / points.shape[1])
        if evidence is not None and j in evidence.known:  # points of that part of each bin which is in the range
            known, ends = evidence.known[j], np.arange(column.bins + 1) / column.bins
            low, high = np.maximum(ends[:-1], known.u_low), np.minimum(ends[1:], known.u_high)
            at = (np.arange(points.shape[1]) + 0.5) / points.shape[1]
            points = column.value(low[:, None] + np.maximum(high - low, 0)[:, None] * at, known)
            points = np.clip(points, known.least, known.most)
        values = np.concatenate([column.atoms, points.ravel()])
        p = np.concatenate(
            [found[:, :atoms], (found[:, atoms:, None] * share).reshape(len(found), points.size)], axis=1
        )
        order = np.argsort(values, kind="stable")
        p = p[:, order]
        return Distribution(values[order], p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300))

    def cells(
        self,
        levels: NDArray[np.int16],
        u: Array,
        generator: np.random.Generator,
        evidence: Evidence | None = None,
    ) -> Array:
        """Return levels and u, drawn given the evidence, as cells of a table: numbers, and codes of categories.

        NaN is missing.
        """
        out = np.full(levels.shape, np.nan)
        index = number_index(self.columns)
        for j, column in enumerate(self.columns):
            if j in self.text_columns or (isinstance(column, NumberColumn) and column.empty):
                continue
            there = levels[:, j] >= 0
            code = levels[there, j].astype(np.int64)
            if isinstance(column, CategoryColumn):
                value = code.astype(np.float64)
                if column.has_rare:
                    other = code == len(column.frequent)
                    value[other] = np.nan
                    if column.rare and other.any():
                        p = rare_shares(column, evidence, j)
                        value[other] = len(column.frequent) + generator.choice(len(p), int(other.sum()), p=p / p.sum())
                out[there, j] = value
            else:
                known = None if evidence is None else evidence.known.get(j)
                drawn = column.value(np.nan_to_num(u[there, index[j]]), known)
                if len(column.atoms):
                    atom = column.atoms[np.minimum(code, len(column.atoms) - 1)]
                    drawn = np.where(code < len(column.atoms), atom, drawn)
                out[there, j] = drawn
        return out

    def expected(self, combination: Combination, rows: Encoded, evidence: Evidence | None = None) -> Array:
        """Return the mean of numbers and the likeliest category in place of each missing cell, else NaN."""
        lacking = np.flatnonzero((rows.levels < 0).any(axis=0)).tolist()
        parts = [rows.taken(tile) for tile in tiles(rows, lacking)]
        return np.concatenate([self._expected(combination, part, evidence) for part in parts])

    def _expected(self, combination: Combination, rows: Encoded, evidence: Evidence | None) -> Array:
        wanted = [j for j in np.flatnonzero((rows.levels < 0).any(axis=0)).tolist() if j not in self.text_columns]
        out = np.full(rows.levels.shape, np.nan)
        for j, found in zip(wanted, combination.marginals(rows, wanted, evidence), strict=True):
            column, own = self.columns[j], rows.unknown(j)
            if isinstance(column, NumberColumn) and column.empty:
                continue
            if isinstance(column, NumberColumn):
                if evidence is None or j not in evidence.known:
                    # Row by row: a product of matrices may round as the number of rows says.
                    out[own, j] = np.einsum("nb,b->n", found, column.support_values)
                else:
                    spread = self.distribution(column, found, evidence, j)
                    out[own, j] = np.einsum("nv,v->n", spread.p, spread.values)
            elif column.frequent or column.rare:
                out[own, j] = self.named_values(j, found, evidence).argmax(axis=1)
        return out


def fit_members(
    rows: Encoded, kinds: Sequence[tuple[str, int]], folds: Sequence[NDArray[np.bool_]], seed: int, say: Progress
) -> tuple[tuple[Member, ...], Array]:
    """Fit members: weights by the likelihood of rows held out, in one fold or in several; then to all rows.

    Members that were fitted without one fold go on with all rows; if there are several they are fitted anew.
    """
    if len(kinds) > 1 and rows.weight > FEW_ROWS:
        kinds = [each for each in kinds if each[0] != TIED]
    if bounded(len(rows.columns)):
        # Where columns are many, rows may be so few for them that a large member and a small one are the same.
        first = rows.taken(slice(0, _FIRST_ROWS))
        kinds = list({(kind, components(kind, first, most)): (kind, most) for kind, most in reversed(kinds)}.values())
    if len(kinds) == 1 or not folds:
        members, _ = _fitted(rows, kinds, seed, say)
        return tuple(members), np.full(len(kinds), 1.0 / len(kinds))
    logs, weights = [], []
    for held_out in folds:
        members, among = _fitted(rows.taken(~held_out), kinds, seed, say)
        test = unsettled(rows.taken(held_out))
        parts = [[log_density(m.density, part) for m in members] for part in pieces(test)]
        logs.append(np.concatenate([np.stack(each, axis=1) for each in parts]))
        weights.append(np.ones(test.rows) if test.weights is None else test.weights)
    grouping = [m for m, (kind, _) in enumerate(kinds) if kind == "trees"]  # whose components are groups of rows
    kept, shares = members_worth(np.concatenate(logs), np.concatenate(weights), grouping)
    if len(folds) > 1:
        found, _ = _fitted(rows, [kinds[m] for m in kept], seed, say)
    else:
        found = []
        for m in kept:
            say(partial("fitting {} to all rows".format, members[m].kind))
            found.append(continued(members[m], rows, _LAST_STEPS, among))
    return tuple(found), shares


def _fitted(
    rows: Encoded, kinds: Sequence[tuple[str, int]], seed: int, say: Progress
) -> tuple[list[Member], Candidates]:
    """Fit members to rows; of many the first ones, which are in an order by their content, are what they start with.

    Returns them with the pairs of columns that may be neighbours in their trees.
    """
    members, among = [], candidates(rows)
    for kind, most in kinds:
        say(partial("fitting {}".format, kind))
        member = fit_member(kind, rows.taken(slice(0, _FIRST_ROWS)), seed, most, among)
        if rows.rows > _FIRST_ROWS:
            member = continued(member, rows, _MORE_STEPS.get(kind, 1), among)
        members.append(member)
    return members, among


# Rows that members start with; EM steps of all that are not held out, if they are more; and of all rows.
_FIRST_ROWS = 10_000
_MORE_STEPS, _LAST_STEPS = {"trees": 6, "hidden trees": 12, "scores": 10, TIED: 10}, 5
# What is left of counts that were subtracted by rounding.
_ROUNDING = 1e-9


def _same(one: Any, two: Any) -> bool:
    """Say whether two records hold the same, arrays by their elements."""
    if one is two:
        return True
    if type(one) is not type(two):
        return False
    if is_dataclass(one):
        return all(_same(getattr(one, f.name), getattr(two, f.name)) for f in fields(one))
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(_same, one, two))
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else bool(one == two)


def _folds(keys: NDArray[np.uint64], weights: Array | None) -> list[NDArray[np.bool_]]:
    """Return which rows are held out, by their content: a fifth, of few rows each of five, and of fewer none."""
    order = np.argsort(keys, kind="stable")
    running = np.cumsum(np.ones(len(keys)) if weights is None else weights[order])
    total = float(running[-1])
    if total < FEWEST:
        return []
    shares = np.arange(1, _FOLDS) / _FOLDS if total < _FEW else np.array([1 / _FOLDS])
    bounds = keys[order[np.searchsorted(running, shares * total - 1e-9)]]
    fold = np.searchsorted(bounds, keys)  # equal rows are in the same
    counts = np.bincount(fold, minlength=len(shares) + 1)
    if (counts == len(keys)).any():
        return []
    return [fold == f for f in range(len(shares) + (total < _FEW)) if counts[f]]


def table_columns(table: Table, weights: Array | None) -> tuple[tuple[TableColumn, ...], dict[int, Labels]]:
    """Return the marginals of all columns, and the names of categories."""
    columns: list[TableColumn] = []
    names: dict[int, Labels] = {}
    for j in range(table.columns.width):
        cells = finite_cells(table, j)
        kind = table.kinds[j] if table.kinds else "number"
        there = ~np.isnan(cells)
        counted = None if weights is None else weights[there]
        if kind == "category":
            known = [str(name) for name in table.categories[j].tolist()]
            counts = np.bincount(cells[there].astype(np.int64), counted, minlength=len(known)).astype(np.float64)
            named = CategoryColumn.fit(known, counts)
            names[j] = np.array([*named.frequent, *named.rare], dtype=object)
            column: TableColumn = named
        elif kind == "boolean":
            counts = np.bincount(cells[there].astype(np.int64), counted, minlength=2).astype(np.float64)
            column = CategoryColumn.fit(("0", "1"), counts, named=False)
        elif kind == "text":
            column = CategoryColumn.fit((), np.zeros(0))
        else:
            column = NumberColumn.fit(cells, weights, whole=kind == "integer")
        columns.append(column)
    return tuple(columns), names


def class_column(counts: Array) -> CategoryColumn:
    """Return the column that the classes of rows are, which have these weights: each is a level, in their order."""
    return CategoryColumn(tuple(map(str, range(len(counts)))), {}, counts)


def encode(
    columns: tuple[TableColumn, ...],
    table: Table,
    weights: Array | None,
    codes: NDArray[np.int32] | None = None,
    texts: "tuple[TextColumn, ...]" = (),
    *,
    learning: bool = False,
    scores: bool = True,
) -> Encoded:
    """Return rows as the members read them, or raise if a number is infinite.

    ``codes`` are those of the class, where there is one more column than the table has. Topics of ``texts`` are unknown
    unless rows are for ``learning``. Without ``scores`` there are levels and u alone, which is all that is counted.
    """
    scored, told = [], []
    topics = {text.column: text for text in texts}
    for j, column in enumerate(columns):
        if j == table.columns.width:
            known_classes = _nothing(table.rows)
            scored.append(known_classes if codes is None else known_classes._replace(levels=codes.astype(np.int16)))
            continue
        if j in topics:
            words, nothing = Block(table, [j]).texts(), _nothing(table.rows)
            if learning:
                levels, cells_of = topics[j].learnable(words)
                nothing = nothing._replace(levels=levels)
            else:
                cells_of = topics[j].cells(words)
            scored.append(nothing)
            told.append(cells_of)
            continue
        cells = finite_cells(table, j)
        if isinstance(column, NumberColumn):
            scored.append(column.scored(cells, scores=scores))
        elif table.kinds and table.kinds[j] == "text":
            scored.append(_nothing(len(cells)))
        else:
            known = ["0", "1"] if not column.named else [str(name) for name in table.categories.get(j, np.zeros(0))]
            scored.append(column.scored(known, cells))
    of_numbers = [scored[j] for j, _ in numbers(columns)]
    empty = np.zeros((table.rows, 0))
    return Encoded(
        columns,
        np.stack([s.levels for s in scored], axis=1),
        np.stack([s.u for s in of_numbers], axis=1) if of_numbers else empty,
        np.stack([s.z for s in of_numbers], axis=1) if of_numbers and scores else empty,
        np.stack([s.log for s in scored], axis=1) if scores else empty,
        weights,
        tuple(told),
    )


def with_topics(
    columns: tuple[TableColumn, ...], table: Table, weights: Array | None, seed: int, say: Progress
) -> "tuple[tuple[TableColumn, ...], tuple[TextColumn, ...]]":
    """Return columns in which those of texts are their topics, which are chosen here."""
    wanted = [j for j, kind in enumerate(table.kinds) if kind == "text"]
    if not wanted:
        return columns, ()
    from likely.density.texts import fit_text

    rows, found = encode(columns, table, weights), list(columns)
    others = [j for j in range(len(columns)) if j not in wanted]
    codes, levels, texts = rows.binned(COARSE)[:, others], level_counts(columns, COARSE)[others], []
    for j in wanted:
        say(lambda: "looking for topics of texts")
        words = Block(table, [j]).texts()
        text = fit_text(j, words, weights, codes, levels, seed)
        found[j] = text.levels(text.learnable(words)[0], weights)
        texts.append(text)
    return tuple(found), tuple(texts)


def learned_texts(
    texts: "tuple[TextColumn, ...]", table: Table, rows: Encoded, sign: float = 1.0
) -> "tuple[TextColumn, ...]":
    """Return columns of texts that have learned, or forgotten, those of a table, whose topics are in ``rows``."""
    return tuple(
        text.learned(Block(table, [text.column]).texts(), rows.levels[:, text.column], rows.weights, sign)
        for text in texts
    )


def finite_cells(table: Table, j: int) -> Array:
    """Return the cells of a column, or raise if one is infinite."""
    cells = Block(table, [j]).values()[:, 0]
    bad = np.isinf(cells)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"expected finite numbers, got {cells[row]} (infinity) in row {int(table.row_numbers[row])} of "
            f"{table.columns.listed([j])}: replace it by a number, or by NaN if the value is not known"
        )
    return cells


def _nothing(n: int) -> Scores:
    empty = np.full(n, np.nan)
    return Scores(np.full(n, UNKNOWN, dtype=np.int16), empty, empty, np.zeros(n))


def hidden_shares(combination: Combination, rows: Encoded) -> Array:
    """Return p(component | row) of every mixture, side by side: what rows are similar by."""
    parts = [component_shares(member, rows) for member in combination.members]
    parts = [part for part in parts if part.shape[1] > 1] or parts
    return np.concatenate([*parts, *(_topic_shares(combination, cells) for cells in rows.texts)], axis=1)


def _topic_shares(combination: Combination, cells: TextCells) -> Array:
    """Return p(topic | words) of texts; of those that say nothing, p(topic)."""
    column = combination.columns[cells.column]
    assert isinstance(column, CategoryColumn)
    with np.errstate(divide="ignore"):
        return responsibilities(cells.logs + np.log(np.maximum(column.counts, 1e-9)))
