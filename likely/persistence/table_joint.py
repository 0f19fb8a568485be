"""The joint of a whole table in a file: columns, members with reference and sums, and missing cells, all checked."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.density.class_trees import ClassTreesPrior, ClassTreeSums
from likely.density.columns import CategoryColumn, NumberColumn, TableColumn, level_counts, scored_numbers, unknown_rows
from likely.density.combination import TIED, Member, MissingCells
from likely.density.hidden_trees import HiddenTreeDensity, HiddenTreePrior, Sums
from likely.density.scores import ScoreDensity, ScorePrior, ScoreSums, ScoreTables
from likely.density.structure import Structure, maximum_tree, neighbours
from likely.density.table import TableJoint
from likely.density.trees import ChowLiuPrior, Forest, PairSums, TreeDensity, TreePrior, TreeSums
from likely.persistence.validate import check_words
from likely.statistics import Array, Labels

if TYPE_CHECKING:
    from likely.density.texts import TextColumn
    from likely.text import WordStatistics

Ints = NDArray[np.int32]
Columns = tuple[TableColumn, ...]
_NONE = np.zeros(0)


def _structures(parents: Ints, order: Ints) -> list[Structure]:
    if parents.ndim != 2 or parents.shape != order.shape or not len(parents):
        raise ValueError("expected the parents of the columns in every tree, got others")
    if parents.min() < -1 or parents.max() >= parents.shape[1]:
        raise ValueError("expected parents among the columns of a tree, got others")
    return [Structure(p, o) for p, o in zip(parents, order, strict=True)]


def _forest(levels: Ints, parents: Ints, order: Ints, tables: Array) -> Forest:
    """Return trees, or raise ValueError if the arrays are of others: the core checks structures and sizes."""
    if parents.ndim != 2 or parents.shape[1] != len(levels):
        raise ValueError("expected the parents of the columns in every tree, got others")
    forest = Forest.empty(levels, _structures(parents, order))
    _check_sizes((tables, forest.tables))
    found = forest.with_tables(tables)
    _check_order(lambda: found.log_densities(np.full((0, len(levels)), -1, dtype=np.int16)))
    return found


def _check_order(ask: Callable[[], Array]) -> None:
    """Raise if the core, which looks at the order of columns, refuses to answer about no rows."""
    try:
        ask()
    except ValueError:
        raise ValueError("expected columns of trees in an order in which parents come first, got others") from None


def _check_sizes(*pairs: tuple[Array, Array]) -> None:
    for got, want in pairs:
        if got.shape != want.shape:
            raise ValueError(f"expected an array of the shape {want.shape}, got {got.shape}")


def _check_shape(array: Array, *shape: int) -> None:
    if array.shape != shape:
        raise ValueError(f"expected an array of the shape {shape}, got {array.shape}")


def _check_positive(*arrays: Array) -> None:
    if not all(np.all(array > 0) for array in arrays):
        raise ValueError("expected positive probabilities and variances, got others")


@dataclass(frozen=True)
class StoredPairs:
    """The pairs of columns that may be neighbours in a tree, where not all may."""

    listed: NDArray[np.int64]

    @classmethod
    def of(cls, pairs: NDArray[np.int64] | None) -> "StoredPairs | None":
        """Return pairs, unless they are all."""
        return None if pairs is None else cls(pairs)

    def restored(self, d: int) -> NDArray[np.int64]:
        """Return the pairs, or raise ValueError unless they connect all columns."""
        pairs = self.listed
        listed = pairs.ndim == 2 and pairs.shape[1] == 2
        if not listed or not np.all((pairs[:, 1] >= 0) & (pairs[:, 1] < pairs[:, 0]) & (pairs[:, 0] < d)):
            raise ValueError("expected pairs of columns, the greater one first, got others")
        allowed = neighbours(d, pairs)
        tree = maximum_tree(np.zeros((d, d)), allowed)
        below = np.flatnonzero(tree.parents >= 0)
        if int(allowed.sum()) != 2 * len(pairs) or len(below) < d - 1 or not allowed[below, tree.parents[below]].all():
            raise ValueError("expected different pairs of columns that connect all of them, got others")
        return pairs


@dataclass(frozen=True)
class StoredTree:
    """One Chow–Liu tree: counts of levels and of pairs."""

    levels: Array
    pairs: Array
    missing: Array
    among: StoredPairs | None = None

    @classmethod
    def of(cls, member: Member) -> Self:
        """Take a member apart."""
        return cls(member.sums.levels, member.sums.pairs, _counts(member), StoredPairs.of(member.prior.among))

    def member(self, columns: Columns) -> Member:
        """Put the member together."""
        prior = ChowLiuPrior(columns, None if self.among is None else self.among.restored(len(columns)))
        _check_shape(self.levels, int(prior.levels.sum()))
        _check_shape(self.pairs, int(prior.pairs[1][-1]))
        return Member("tree", prior, prior, PairSums(self.levels, self.pairs))


@dataclass(frozen=True)
class StoredClassTrees:
    """Chow–Liu trees of all rows and of those in every class: counts of classes, and of levels and of pairs in each."""

    listed: NDArray[np.int64]
    share: float
    weight: Array
    levels: Array
    pairs: Array
    missing: Array

    @classmethod
    def of(cls, member: Member) -> Self:
        """Take a member apart."""
        prior: ClassTreesPrior = member.prior
        sums: ClassTreeSums = member.sums
        return cls(prior.listed, prior.share, sums.weight, sums.levels, sums.pairs, _counts(member))

    def member(self, columns: Columns) -> Member:
        """Put the member together."""
        if not isinstance(columns[-1], CategoryColumn) or len(columns) < 2 or not columns[-1].levels:
            raise ValueError("expected a class in the last column, got another")
        prior = ClassTreesPrior(columns, self.listed, self.share)
        prior.validate()
        _check_shape(self.weight, prior.classes + 1)
        _check_shape(self.levels, prior.classes + 1, int(prior.levels.sum()))
        _check_shape(self.pairs, int(prior.starts[-1]))
        return Member("class trees", prior, prior, ClassTreeSums(self.weight, self.levels, self.pairs))


@dataclass(frozen=True)
class StoredTrees:
    """A mixture of trees."""

    parents: Ints
    order: Ints
    tables: Array
    widths: Array
    reference_weights: Array
    reference_tables: Array
    weight: Array
    counts: Array
    missing: Array

    @classmethod
    def of(cls, member: Member) -> Self:
        """Take a member apart."""
        prior: TreePrior = member.prior
        reference: TreeDensity = member.reference
        _, parents, order, _, tables = prior.forest.arrays
        sums: TreeSums = member.sums
        found = reference.weights, reference.forest.tables, sums.weight, sums.tables
        return cls(parents, order, tables, prior.widths, *found, _counts(member))

    def member(self, columns: Columns) -> Member:
        """Put the member together."""
        levels = level_counts(columns, 32)
        forest = _forest(levels, self.parents, self.order, self.tables)
        k = len(self.parents)
        _check_sizes((self.reference_tables, self.tables), (self.counts, self.tables))
        _check_shape(self.widths, k, len(columns))
        _check_shape(self.reference_weights, k)
        _check_shape(self.weight, k)
        _check_positive(self.tables, self.reference_tables, self.reference_weights)
        reference = TreeDensity(columns, self.reference_weights, forest.with_tables(self.reference_tables))
        return Member("trees", TreePrior(columns, forest, self.widths), reference, TreeSums(self.weight, self.counts))


@dataclass(frozen=True)
class StoredHiddenTree:
    """A tree of hidden states."""

    parents: Ints
    order: Ints
    marginals: Array
    root: Array
    transitions: Array
    probabilities: Array
    mean: Array
    variance: Array
    root_sums: Array
    transition_sums: Array
    level_sums: Array
    score_sums: Array
    square_sums: Array
    missing: Array

    @classmethod
    def of(cls, member: Member) -> Self:
        """Take a member apart."""
        prior: HiddenTreePrior = member.prior
        d: HiddenTreeDensity = member.reference
        s: Sums = member.sums
        found = d.root, d.transitions, d.probabilities, d.mean, d.variance
        sums = s.root, s.transitions, s.levels, s.score, s.square
        return cls(prior.structure.parents, prior.structure.order, prior.marginals, *found, *sums, _counts(member))

    def member(self, columns: Columns) -> Member:
        """Put the member together."""
        (structure,) = _structures(self.parents[None], self.order[None])
        k, all_levels = len(self.root), int(level_counts(columns).sum())
        m = len(scored_numbers(columns))
        _check_shape(self.marginals, all_levels)
        _check_shape(self.transitions, len(columns), k, k)
        _check_shape(self.probabilities, all_levels, k)
        _check_shape(self.mean, m, k)
        _check_sizes(
            (self.variance, self.mean),
            (self.root_sums, self.root),
            (self.transition_sums, self.transitions),
            (self.level_sums, self.probabilities),
            (self.score_sums, self.mean),
            (self.square_sums, self.mean),
        )
        _check_positive(self.marginals, self.root, self.probabilities, self.variance)
        if (self.transitions < 0).any() or (self.square_sums < 0).any():
            raise ValueError("expected transitions and squares of 0 or more, got others")
        parameters = self.root, self.transitions, self.probabilities, self.mean, self.variance
        reference = HiddenTreeDensity(columns, structure, *parameters)
        _check_order(lambda: reference.log_density(unknown_rows(columns, 0)))
        sums = Sums(self.root_sums, self.transition_sums, self.level_sums, self.score_sums, self.square_sums)
        return Member("hidden trees", HiddenTreePrior(columns, structure, self.marginals), reference, sums)


@dataclass(frozen=True)
class StoredScores:
    """A Gaussian mixture of normal scores with a tree of categories and atoms."""

    chosen: NDArray[np.int64]
    parents: Ints
    order: Ints
    tables: Array
    reference_weights: Array
    reference_mean: Array
    reference_covariance: Array
    reference_tables: Array
    weight: Array
    score: Array
    product: Array
    counts: Array
    missing: Array
    tied: bool = False
    """whether all components have one covariance, and one sum of products"""

    @classmethod
    def of(cls, member: Member) -> Self:
        """Take a member apart."""
        prior: ScorePrior = member.prior
        d: ScoreDensity = member.reference
        tables = _NONE if d.forest is None else d.forest.tables
        s: ScoreSums = member.sums
        found = d.weights, d.mean, d.covariance[:1] if prior.tied else d.covariance, tables
        sums = s.weight, s.score, s.product, s.tables
        return cls(*_store_tables(prior.tables), *found, *sums, _counts(member), prior.tied)

    def member(self, columns: Columns) -> Member:
        """Put the member together."""
        tables = _restore_tables(columns, self.chosen, self.parents, self.order, self.tables)
        k, m = len(self.reference_weights), len(scored_numbers(columns))
        size = 0 if tables is None else k * len(tables.forest.tables)
        _check_shape(self.reference_tables, size)
        _check_shape(self.counts, size)
        _check_shape(self.weight, k)
        _check_shape(self.reference_mean, k, m)
        _check_shape(self.reference_covariance, 1 if self.tied else k, m, m)
        _check_sizes((self.score, self.reference_mean), (self.product, self.reference_covariance))
        _check_positive(self.reference_tables, self.reference_weights)
        for products in (self.reference_covariance, self.product):
            if not np.allclose(products, np.swapaxes(products, 1, 2)):
                raise ValueError("expected symmetric covariances, got others")
        try:
            np.linalg.cholesky(self.reference_covariance)
        except np.linalg.LinAlgError:
            raise ValueError("expected covariances that are positive definite, got others") from None
        forest = None if tables is None else tables.of_components(k).with_tables(self.reference_tables)
        covariance = np.tile(self.reference_covariance, (k, 1, 1)) if self.tied else self.reference_covariance
        parameters = self.reference_weights, self.reference_mean, covariance
        reference = ScoreDensity(columns, *parameters, tables, forest, self.tied)
        sums = ScoreSums(self.weight, self.score, self.product, self.counts)
        return Member(TIED if self.tied else "scores", ScorePrior(columns, tables, self.tied), reference, sums)


def _counts(member: Member) -> Array:
    return _NONE if member.missing is None else member.missing


def _store_tables(tables: ScoreTables | None) -> tuple[NDArray[np.int64], Ints, Ints, Array]:
    if tables is None:
        empty = np.zeros((0, 0), dtype=np.int32)
        return np.zeros(0, dtype=np.int64), empty, empty, _NONE
    _, parents, order, _, values = tables.forest.arrays
    return np.array(tables.chosen, dtype=np.int64), parents, order, values


def _restore_tables(
    columns: Columns, chosen: NDArray[np.int64], parents: Ints, order: Ints, tables: Array
) -> ScoreTables | None:
    sizes = level_counts(columns)
    if chosen.ndim != 1 or not np.array_equal(chosen, np.flatnonzero(sizes > 1)):
        raise ValueError("expected the columns that have more than one level, got others")
    if not len(chosen):
        return None
    _check_positive(tables)
    if len(parents) != 1:
        raise ValueError("expected one tree of categories, got others")
    return ScoreTables(tuple(chosen.tolist()), _forest(sizes[chosen], parents, order, tables))


@dataclass(frozen=True)
class StoredMember:
    """A member of any kind."""

    tree: StoredTree | None = None
    class_trees: StoredClassTrees | None = None
    trees: StoredTrees | None = None
    hidden_tree: StoredHiddenTree | None = None
    scores: StoredScores | None = None

    @classmethod
    def of(cls, member: Member) -> Self:
        """Take a member apart."""
        match member.kind:
            case "tree":
                return cls(tree=StoredTree.of(member))
            case "class trees":
                return cls(class_trees=StoredClassTrees.of(member))
            case "trees":
                return cls(trees=StoredTrees.of(member))
            case "hidden trees":
                return cls(hidden_tree=StoredHiddenTree.of(member))
        return cls(scores=StoredScores.of(member))

    def validate(self) -> None:
        """Raise ValueError unless there is one kind."""
        if sum(getattr(self, field.name) is not None for field in fields(self)) != 1:
            raise ValueError("expected a member of one kind, got others")

    @property
    def stored(self) -> StoredTree | StoredClassTrees | StoredTrees | StoredHiddenTree | StoredScores:
        """The member, whatever its kind."""
        found = self.tree or self.class_trees or self.trees or self.hidden_tree or self.scores
        assert found is not None
        return found


@dataclass(frozen=True)
class StoredMissing:
    """Which columns lack cells, and the tree of that."""

    lacking: tuple[int, ...]
    parents: Ints
    order: Ints
    tables: Array

    @classmethod
    def of(cls, missing: MissingCells) -> Self:
        """Take it apart."""
        return cls(missing.columns, *_store_tables(missing.tables)[1:])

    def restored(self, width: int) -> MissingCells:
        """Put it together."""
        if not self.lacking or list(self.lacking) != sorted(set(self.lacking)) or not 0 <= self.lacking[-1] < width:
            raise ValueError("expected the columns that lack cells in order, got others")
        pair = CategoryColumn(("0", "1"), {}, np.zeros(2), named=False)
        indices = np.arange(len(self.lacking))
        tables = _restore_tables((pair,) * len(indices), indices, self.parents, self.order, self.tables)
        assert tables is not None
        return MissingCells(self.lacking, tables)


@dataclass(frozen=True)
class StoredWords:
    """Sums of words in classes."""

    offsets: NDArray[np.int64]
    characters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    codes: Ints
    count: Array
    share: Array
    documents: Array
    weight: Array
    log_size: Array

    @classmethod
    def of(cls, words: "WordStatistics") -> Self:
        """Take sums apart."""
        from likely.text import packed_terms

        sums = [words.sums[name] for name in ("count", "share", "documents", "weight", "log size")]
        return cls(*packed_terms(words.terms), words.starts, words.codes, *sums)

    def restored(self, classes: int) -> "WordStatistics":
        """Put sums together."""
        from likely.text import WordStatistics, checked_terms

        parts: dict[str, NDArray[Any]] = {
            "offsets": self.offsets,
            "bytes": self.characters,
            "starts": self.starts,
            "codes": self.codes,
        }
        pairs = {"count": self.count, "share": self.share, "documents": self.documents}
        sums = {**pairs, "weight": self.weight, "log size": self.log_size}
        check_words(parts, sums, classes)
        if classes > np.iinfo(np.int16).max:
            raise ValueError(f"expected topics of texts, got {classes}")
        terms = checked_terms(self.offsets, self.characters)
        return WordStatistics.of(terms, self.starts, self.codes, sums, np.arange(classes))


@dataclass(frozen=True)
class StoredText:
    """A column of texts."""

    column: int
    reference: StoredWords
    sums: StoredWords

    @classmethod
    def of(cls, text: "TextColumn") -> Self:
        """Take it apart."""
        return cls(text.column, StoredWords.of(text.reference), StoredWords.of(text.sums))

    def restored(self, columns: Columns) -> "TextColumn":
        """Put it together."""
        from likely.density.texts import FOLDS, TextColumn, topic_levels

        topics = columns[self.column] if 0 <= self.column < len(columns) else None
        if not isinstance(topics, CategoryColumn) or topics.frequent != topic_levels(topics.counts).frequent:
            raise ValueError("expected topics in the columns of texts, got others")
        reference = self.reference.restored(FOLDS * topics.levels)
        text = TextColumn(self.column, reference, self.sums.restored(topics.levels))
        if not set(text.sums.terms.to_pylist()) <= set(reference.terms.to_pylist()):
            raise ValueError("expected words of texts among those of the reference, got others")
        return text


@dataclass(frozen=True)
class StoredJoint:
    """The joint of a whole table."""

    columns: tuple[CategoryColumn | NumberColumn, ...]
    members: tuple[StoredMember, ...]
    weights: Array
    information: Array
    rows: float
    named: tuple[int, ...]
    """columns of categories that have names"""
    missing: StoredMissing | None = None
    texts: tuple[StoredText, ...] = ()

    @classmethod
    def of(cls, joint: TableJoint) -> Self:
        """Take a joint apart."""
        missing = None if joint.missing is None else StoredMissing.of(joint.missing)
        members = tuple(map(StoredMember.of, joint.members))
        texts = tuple(map(StoredText.of, joint.texts))
        parts = joint.columns, members, joint.weights, joint.information, joint.rows
        return cls(*parts, tuple(joint.names), missing, texts)

    def restored(self) -> TableJoint:
        """Put the joint together, or raise ValueError if its parts do not belong together."""
        d = len(self.columns)
        _check_shape(self.information, d, d)
        _check_shape(self.weights, len(self.members))
        _check_positive(self.weights)
        if not d or not self.members or abs(self.weights.sum() - 1) > 1e-6 or self.rows < 0:
            raise ValueError("expected columns, and members whose weights add up to 1, got others")
        missing = None if self.missing is None else self.missing.restored(d)
        names: dict[int, Labels] = {}
        for j in self.named:
            column = self.columns[j] if 0 <= j < d else None
            if not isinstance(column, CategoryColumn) or not column.named:
                raise ValueError("expected names of columns of categories, got others")
            names[j] = np.array([*column.frequent, *column.rare], dtype=object)
        members = []
        for one in self.members:
            stored = one.stored
            member = stored.member(self.columns)
            if (member.counts < -1e-6 * max(self.rows, 1.0)).any() or (
                stored.missing < -1e-6 * max(self.rows, 1.0)
            ).any():
                raise ValueError("expected counts of 0 or more, got others")
            if len(stored.missing):
                if missing is None:
                    raise ValueError("expected counts of missing cells only where some are missing, got others")
                size = len(missing.tables.forest.tables)
                k = member.reference.log_components(unknown_rows(self.columns, 1)).shape[1]
                _check_shape(stored.missing, k * size)
                member = Member(member.kind, member.prior, member.reference, member.sums, stored.missing)
            members.append(member)
        texts = tuple(text.restored(self.columns) for text in self.texts)
        if len({text.column for text in texts} - set(names)) < len(texts):
            raise ValueError("expected each column of texts once, and no names in it, got others")
        joint = TableJoint(
            self.columns, names, self.weights, tuple(members), missing, self.information, float(self.rows), texts
        )
        if self.rows:
            # What is known of nothing has the probability 1: so all tables and sizes agree.
            try:
                nothing = joint.combination.log_density(unknown_rows(self.columns, 1))
            except (ValueError, np.linalg.LinAlgError):
                raise ValueError("expected sums that densities can be solved from, got others") from None
            if not np.all(np.abs(nothing) < 1e-6):
                raise ValueError("expected tables of probabilities that add up to 1, got others")
        return joint
