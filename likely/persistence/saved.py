"""Save and load models: parameters, statistics and reader as a header and arrays, and back, checked."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.schema import Schema
from likely.data.table import Block, Columns, Table
from likely.density.columns import CategoryColumn, NumberColumn
from likely.density.labelled_table import LabelledTable, positions
from likely.density.table import TableJoint
from likely.ensemble.bins import Bins, ColumnBins
from likely.ensemble.calibration import Calibration
from likely.ensemble.codes import CodedColumns, ColumnCodes
from likely.ensemble.combinations import Grouped, Groups
from likely.ensemble.features import Feature, Features
from likely.ensemble.members import Member, Plain, TextColumn
from likely.ensemble.missing_patterns import MissingPairs
from likely.ensemble.selection import Selection
from likely.families import Family, Named, on_one_line
from likely.families.forest import Forest, LeafStatistics
from likely.families.regularised import Regularised
from likely.joint import Part
from likely.learn.class_mixtures import Mixed, MixedStatistics
from likely.learn.kmeans import cluster_sums
from likely.model.centres import Centres
from likely.model.readers import MatrixReader, Reader, TableReader, TextReader
from likely.model.state import State
from likely.model.table_questions import TableState
from likely.persistence import file
from likely.persistence.codec import Given, decode, encode, read_array
from likely.persistence.file import Arrays, Contents
from likely.persistence.registry import ESTIMATORS, estimator, kind_of, tag_of
from likely.persistence.table_joint import StoredJoint
from likely.persistence.validate import (
    check_block,
    check_centres,
    check_classes,
    check_columns,
    check_leaves,
    check_mixture,
    check_part,
    check_parts,
    check_weights,
    check_words,
)
from likely.statistics import Assignment, JointStatistics, Labels, Statistics

_OF_TEXT = ("bag of words", "discounted words")
_CENTRES = ("weight", "sum", "sum.origin", "centres", "origin")
_WORDS = {"offsets": np.int64, "bytes": np.uint8, "starts": np.int64, "codes": np.int32}


@dataclass(frozen=True, kw_only=True)
class Header:
    """What every file says of a model."""

    kind: str
    parameters: Mapping[str, Any]
    columns: Columns
    version: int | None = None

    def validate(self) -> None:
        """Raise ValueError unless the estimator and so many columns are known."""
        if self.kind not in ESTIMATORS:
            raise ValueError(f"expected an estimator among {list(ESTIMATORS)}, got {on_one_line(self.kind)}")
        check_columns(self.columns)


@dataclass(frozen=True)
class StoredBlock:
    """What a file says of a block of columns: its family, its columns, and the axes of its sums."""

    family: Any
    columns: tuple[int, ...] | None
    sums: dict[str, tuple[str, ...]]
    lost: bool
    names: tuple[str, ...] | None = None
    """of categories"""
    width: int | None = None
    """the number of encoded columns, of a part with an encoding"""
    components: tuple[tuple["StoredBlock", ...], ...] | None = None
    """the blocks of every component, of classes that are mixtures"""

    def validate(self) -> None:
        """Raise ValueError unless so many encoded columns can be."""
        if self.width is not None:
            check_columns(Columns(self.width))


@dataclass(frozen=True, kw_only=True)
class ModelHeader(Header):
    """What a file says of a model with statistics of classes."""

    classes: Any
    priors: Any
    blocks: tuple[StoredBlock, ...]
    more: Mapping[str, Any]
    table: StoredJoint | None = None
    """the joint of columns and class, which answers what is not about the class"""
    labels: Any = None
    """the classes of its last column, in their order there"""


@dataclass(frozen=True, kw_only=True)
class CentresHeader(Header):
    """What a file says of a model with centres."""

    more: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TableHeader(Header):
    """What a file says of a model of a whole table."""

    joint: StoredJoint
    more: Mapping[str, Any]


@dataclass(frozen=True)
class Saved:
    """A model, taken apart. ``more`` is what it remembers beside the parameters and the statistics.

    ``members`` are the families, statistics and widths of parts with an encoding, which the state of a file lacks:
    what they encode, only the estimator can read.
    """

    kind: str
    parameters: Mapping[str, Any]
    state: State
    more: Mapping[str, Any]
    members: tuple[tuple[Family, Statistics, int], ...] = ()

    def contents(self) -> Contents:
        """Return the header and arrays of a file; what does not fit in one raises ValueError."""
        state, statistics = self.state, self.state.statistics
        table, arrays = state.table, {"weight": statistics.weights.sums["weight"]}
        header = ModelHeader(
            kind=self.kind,
            parameters=self.parameters,
            columns=state.columns,
            classes=statistics.classes,
            priors=state.priors,
            blocks=_store_blocks(state.parts, statistics, "block ", arrays),
            more=self.more,
            table=None if table is None else StoredJoint.of(table.joint),
            labels=None if table is None else table.labels,
        )
        return Contents(encode(header, "header", arrays), arrays)

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Given) -> "Saved":
        """Return what a file holds, or raise if it does not agree with itself."""
        stored: ModelHeader = decode(header, ModelHeader, "header", arrays)
        classes, width = check_classes(stored.classes), stored.columns.width
        blocks = [(check_part(each.family, each.columns, width), each) for each in stored.blocks]
        check_parts(stored.kind, [part for part, each in blocks if each.width is None])
        weights = _read_weights("weight", classes, arrays)
        found = [
            (part, _restore(part, each, classes, each.width or width, f"block {i}", arrays), each.width)
            for i, (part, each) in enumerate(blocks)
        ]
        members = tuple((part.family, statistics, width) for part, statistics, width in found if width is not None)
        joint = JointStatistics(weights, tuple(statistics for _, statistics, width in found if width is None))
        joint = replace(joint, table=_restore_table(stored, classes))
        reader = MatrixReader(stored.kind, stored.columns)
        state = State(tuple(part for part, _, width in found if width is None), joint, reader, stored.priors)
        return cls(stored.kind, stored.parameters, state, stored.more, members)


def _restore_table(stored: ModelHeader, classes: Labels) -> LabelledTable | None:
    """Return the joint of columns and class, or raise ValueError if it does not belong to the rest."""
    if stored.table is None:
        return None
    labels, joint = check_classes(stored.labels), stored.table.restored()
    fits = len(joint.columns) == stored.columns.width + 1 and joint.columns[-1].levels == len(labels)
    if not fits or not isinstance(joint.columns[-1], CategoryColumn) or (positions(labels, classes) < 0).any():
        raise ValueError("expected a joint of the columns and the classes that were learned, got another")
    return LabelledTable(joint, labels)


def _store_blocks(
    parts: Sequence[Part], statistics: JointStatistics, name: str, arrays: Arrays
) -> tuple[StoredBlock, ...]:
    blocks = zip(parts, statistics.blocks, strict=True)
    return tuple(_store(part, block, f"{name}{i}", arrays) for i, (part, block) in enumerate(blocks))


def _store(part: Part, statistics: Any, name: str, arrays: Arrays) -> StoredBlock:
    """Return what a file says of a block, whose sums are put among the arrays."""
    family, names, components = part.family, None, None
    if family.name in _OF_TEXT:
        from likely.text import packed_terms

        offsets, characters = packed_terms(statistics.terms)
        found = {"offsets": offsets, "bytes": characters, "starts": statistics.starts, "codes": statistics.codes}
        arrays.update({f"{name}.{each}": array for each, array in found.items()})
    elif isinstance(family, Forest):
        arrays[f"{name}.sizes"] = _narrow(np.diff(statistics.starts))
        arrays[f"{name}.codes"] = _narrow(statistics.codes)
    elif isinstance(family, Mixed):
        for m, each in enumerate(statistics.components):
            arrays[f"{name}.{m}.weight"] = each.weights.sums["weight"]
            components = (*(components or ()), _store_blocks(family.blocks, each, f"{name}.{m}.", arrays))
    for word, sums in (("sum", statistics.sums), ("lost", statistics.lost or {})):
        arrays.update({f"{name}.{word}.{n}": array for n, array in sums.items()})
    if isinstance(family, Forest):
        arrays[f"{name}.sum.count"] = _narrow(statistics.sums["count"])
    if statistics.origin is not None:
        arrays[f"{name}.origin"] = statistics.origin
    if "category" in statistics.labels:
        labels = statistics.labels["category"]
        arrays[f"{name}.category.column"] = labels["column"]
        if isinstance(family, Named):
            names = tuple(labels["value"].tolist())
        else:
            arrays[f"{name}.category.value"] = labels["value"]
    columns = None if part.columns is None else tuple(part.columns)
    width = None if part.encoding is None else part.encoding.width
    lost = statistics.lost is not None
    return StoredBlock(family, columns, statistics.axes, lost, names, width, components)


def _restore(part: Part, stored: StoredBlock, classes: Labels, width: int, name: str, arrays: Given) -> Statistics:
    """Return the statistics of a block: the sums that its family collects, also from no rows at all."""
    family = part.family
    if family.name in _OF_TEXT:
        return _restore_words(classes, name, arrays)
    if isinstance(family, Forest):
        return _restore_leaves(family, classes, name, arrays)
    if isinstance(family, Mixed):
        return _restore_components(family, stored, classes, width, name, arrays)
    none = family.collect(Block(Table(np.empty((0, 1))), None), Assignment(np.zeros(1), np.empty(0, dtype=np.int32)))
    if stored.sums != dict(none.axes):
        raise ValueError(f"expected the sums {dict(none.axes)} of {family.name!r}, got {on_one_line(stored.sums)}")
    labels = {"class": classes}
    if "category" in none.labels:
        kind = none.labels["category"].dtype
        columns = read_array(f"{name}.category.column", arrays, kind["column"])
        if isinstance(family, Named):
            values = np.array(stored.names, dtype=object)
        else:
            values = read_array(f"{name}.category.value", arrays, kind["value"])
        if columns.ndim != 1 or columns.shape != values.shape:
            raise ValueError("expected the column and the value of every category, got other arrays")
        labels["category"] = np.empty(len(columns), dtype=kind)
        labels["category"]["column"], labels["category"]["value"] = columns, values
    statistics = Statistics(
        {n: read_array(f"{name}.sum.{n}", arrays, finite=False) for n in none.sums},
        none.axes,
        labels,
        None if none.origin is None else read_array(f"{name}.origin", arrays, finite=False),
        {n: read_array(f"{name}.lost.{n}", arrays, finite=False) for n in none.sums} if stored.lost else None,
    )
    check_block(statistics, family, width if part.columns is None else len(part.columns))
    return statistics


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in as few bytes as they need: those of a forest are many, small, and mostly whole."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if len(numbers) == 0 or (numbers.max() <= np.iinfo(kind).max and not np.any(numbers % 1)):
            return numbers.astype(kind)
    return numbers


def _widen(name: str, arrays: Given, kind: Any) -> NDArray[Any]:
    """Return numbers that were narrowed."""
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype not in (np.uint8, np.uint16, np.uint32, kind):
        raise ValueError(f"expected the array {name!r} of numbers, got another")
    return array.astype(kind)


def _restore_leaves(family: Forest, classes: Labels, name: str, arrays: Given) -> LeafStatistics:
    """Return the counts at the leaves of a forest."""
    sizes = _widen(f"{name}.sizes", arrays, np.int64)
    counts, codes = _widen(f"{name}.sum.count", arrays, np.float64), _widen(f"{name}.codes", arrays, np.int32)
    check_leaves(sizes, codes, counts, family, len(classes))
    return LeafStatistics.of(np.concatenate([[0], np.cumsum(sizes)]), codes, counts, classes)


def _restore_words(classes: Labels, name: str, arrays: Given) -> Statistics:
    from likely.text import WordStatistics, checked_terms
    from likely.text.words import CLASSES, PAIRS

    parts = {part: read_array(f"{name}.{part}", arrays, kind) for part, kind in _WORDS.items()}
    sums = {n: read_array(f"{name}.sum.{n}", arrays) for n in (*PAIRS, *CLASSES)}
    check_words(parts, sums, len(classes))
    return WordStatistics.of(
        checked_terms(parts["offsets"], parts["bytes"]), parts["starts"], parts["codes"], sums, classes
    )


def _restore_components(
    family: Mixed, stored: StoredBlock, classes: Labels, width: int, name: str, arrays: Given
) -> MixedStatistics:
    """Return the statistics of every component of classes that are mixtures."""
    components = stored.components or ()
    if len(components) != family.components or {len(each) for each in components} != {len(family.parts)}:
        raise ValueError(f"expected {family.components} components of {len(family.parts)} blocks, got others")
    check_mixture(family, width)
    return MixedStatistics.of(
        tuple(
            JointStatistics(
                _read_weights(f"{name}.{m}.weight", classes, arrays),
                tuple(
                    _restore(part, each, classes, width, f"{name}.{m}.{i}", arrays)
                    for i, (part, each) in enumerate(zip(family.blocks, blocks, strict=True))
                ),
            )
            for m, blocks in enumerate(components)
        )
    )


def _read_weights(name: str, classes: Labels, arrays: Given) -> Statistics:
    weights = Statistics({"weight": read_array(name, arrays)}, {"weight": ("class",)}, {"class": classes})
    check_weights(weights)
    return weights


# The kind of a member in a file, its encoding, and the type of its columns in a file, by the name of its family.
_MEMBERS: dict[str | None, tuple[str, type[Any], Any]] = {
    "regularised": ("discriminant", Features, tuple[Feature, ...]),
    "left-out categories": ("levels", Bins, tuple[ColumnBins, ...]),
    "discounted words": ("words", TextColumn, tuple[TextColumn]),
    "mixture": ("mixture", Plain, tuple[Plain]),
    "forest": ("forest", CodedColumns, tuple[ColumnCodes, ...]),
}
_SELECTION = "selection"


def store_selection(selection: Selection) -> dict[str, Any]:
    """Return what a file says of a selection; its statistics are in blocks of their own."""
    arrays: Arrays = {}
    described = {
        "members": [_store_member(member, f"{_SELECTION}.{i}", arrays) for i, member in enumerate(selection.members)],
        "calibration": encode(selection.calibration, f"{_SELECTION}.calibration", arrays),
        "missing": encode(selection.missing, f"{_SELECTION}.missing", arrays),
    }
    return {"described": described, "arrays": arrays, "calibrated": selection.calibrated}


def restore_selection(chosen: Any, saved: Saved) -> Selection:
    """Return the selection that a file describes, or raise ValueError if it does not fit the rest."""
    weights, columns = saved.state.statistics.weights, saved.state.columns
    statistics = JointStatistics(weights, tuple(block for _, block, _ in saved.members))
    try:
        stored, arrays, calibrated = chosen["described"], chosen["arrays"], check_classes(chosen["calibrated"])
        # The first files knew neither how missing cells count nor which were missing together.
        arrays = {f"{_SELECTION}.calibration.hidden_weights": arrays.get(f"{_SELECTION}.calibration.weights"), **arrays}
        missing = MissingPairs(np.arange(columns.width), np.broadcast_to(1.0, (columns.width, columns.width)), 1.0)
        if stored.get("missing") is not None:
            missing = decode(stored["missing"], MissingPairs, f"{_SELECTION}.missing", arrays)
        if len(stored["members"]) != len(saved.members):
            raise ValueError(f"expected {len(saved.members)} members, as there are statistics of, got others")
        members = tuple(
            _restore_member(each, family, columns.width, f"{_SELECTION}.{i}", arrays)
            for i, (each, (family, *_)) in enumerate(zip(stored["members"], saved.members, strict=True))
        )
        calibration = decode(stored["calibration"], Calibration, f"{_SELECTION}.calibration", arrays)
        selection = Selection(members, statistics, calibration, calibrated, missing)
        selection.validate(columns.width, [width for *_, width in saved.members])
        # An answer to one row of missing cells shows whether all sizes agree.
        answer = selection.log_posterior(Table(np.full((1, columns.width), np.nan), columns.names))
    except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"expected members that belong to the rest, got others ({on_one_line(str(error))})") from None
    if not np.isfinite(answer).all():
        raise ValueError("expected members that belong to the statistics, got others")
    return selection


def _store_member(member: Member, name: str, arrays: Arrays) -> dict[str, Any]:
    encoding, family = member.encoding, member.family
    inner = encoding.inner if isinstance(encoding, Grouped) else encoding
    columns = inner.columns if isinstance(inner, Features | Bins | CodedColumns) else (inner,)
    kind, *_ = _MEMBERS[tag_of(type(family))]
    found: dict[str, Any] = {"kind": kind, "columns": encode(columns, name, arrays)}
    if isinstance(family, Regularised):
        # JSON knows no infinity, which a strength may be.
        strength = family.strength if math.isfinite(family.strength) else None
        found |= {"diagonal": family.diagonal, "strength": strength}
    if isinstance(encoding, Grouped):
        found |= {"groups": encode(encoding.groups, name, arrays), "of": encoding.of}
    return found


def _restore_member(described: Any, family: Family, width: int, name: str, arrays: Given) -> Member:
    kind, encodes, columns = _MEMBERS[tag_of(type(family))]
    found = decode(described["columns"], columns, name, arrays)
    encoding = encodes(found) if encodes in (Features, Bins, CodedColumns) else found[0]
    if isinstance(encoding, CodedColumns):
        encoding.validate()
    if "groups" in described:
        encoding = Grouped(decode(described["groups"], Groups, "groups", arrays), width, encoding)
        encoding.validate()
    member = Member(encoding, family)
    if _store_member(member, name, {}) != described:
        raise ValueError(f"expected a member of the kind {kind!r}, as its statistics are, got {on_one_line(described)}")
    return member


def save(model: Any, path: str | os.PathLike[str], **instead: Any) -> None:
    """Write a model to a file; ``instead``: parameters that the file is to hold in place of the model's own."""
    contents = _contents(model, {**model.get_params(deep=False), **instead})
    _restored(*contents)  # what could not be loaded is said now
    file.write(path, *contents)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that ``save`` has written to a file: it answers, learns, merges and forgets as before.

    A file is data. Nothing in it is run, so files of strangers may be loaded; one that is broken raises ValueError.

    Examples
    --------
    >>> import tempfile
    >>> import likely
    >>> model = likely.NaiveBayes().fit([[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/letters.likely")
    ...     same = likely.load(f"{folder}/letters.likely")
    >>> same.predict([[1.2]]).tolist()
    ['a']
    """
    contents = file.read(path)
    try:
        with np.errstate(all="ignore"):
            return _restored(*contents)
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        what = " ".join(str(error).split())
        if not isinstance(error, ValueError):
            what = f"expected parameters that belong together, got others ({what})"
        raise ValueError(f"{what}, in {os.fspath(path)!r}: save the model again, or update likely") from None


def _contents(model: Any, parameters: Mapping[str, Any]) -> Contents:
    state, kind = model.fitted(), kind_of(type(model))
    if isinstance(state, Centres):
        more = {name: getattr(model, name) for name in model.saved_attributes if hasattr(model, name)}
        if model.keeps_dtype:
            more["single"] = state.dtype == np.float32
        sums = state.statistics.restored()
        found: Any = sums.sums["weight"], sums.sums["sum"], sums.origin, state.centres, state.origin
        arrays: Arrays = {**dict(zip(_CENTRES, found, strict=True)), "known": state.known}
        header = CentresHeader(kind=kind, parameters=parameters, columns=state.columns, more=more)
        return Contents(encode(header, "", arrays), arrays)
    if isinstance(state, TableState):
        arrays = {}
        joint, more = StoredJoint.of(state.joint), _stored_reader(state.reader)
        table = TableHeader(kind=kind, parameters=parameters, columns=state.columns, joint=joint, more=more)
        return Contents(encode(table, "header", arrays), arrays)
    kept = {**_stored_reader(state.reader), **state.kept()}
    if state.selection is not None:
        kept["selection"] = store_selection(state.selection)
    return Saved(kind, parameters, state, kept).contents()


def _stored_reader(reader: Reader) -> dict[str, Any]:
    found = reader.described()
    if isinstance(reader, TableReader):
        found |= {"schema": encode(reader.schema, "schema", {}), "target": reader.target}
    return found


def _restored(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """Return the model that a file holds, or raise if its parts do not belong together."""
    known = ESTIMATORS.get(kind) if isinstance(kind := header.get("kind"), str) else None
    if known is not None and known.centred:
        return _restored_centres(header, arrays)
    if known is not None and known.whole:
        table: TableHeader = decode(header, TableHeader, "header", arrays)
        model, more = estimator(table.kind)(**table.parameters), dict(table.more)
        joint = table.joint.restored()
        if len(joint.columns) != table.columns.width:
            raise ValueError("expected a joint of the columns that were learned, got another")
        reader = _restored_reader(model.plan().first_reader(table.columns), None, more)
        if isinstance(reader, TableReader):
            _check_dates(reader.schema, joint)
        return model.hold(TableState(reader, joint))
    saved = Saved.read(header, arrays)
    parameters = {**dict(ESTIMATORS[saved.kind].before), **saved.parameters}
    model, more = estimator(saved.kind)(**parameters), dict(saved.more)
    plan, read = model.plan(), saved.state
    chosen = more.pop("selection", None)
    reader = _restored_reader(plan.first_reader(read.columns), read.statistics, more)
    state: State = plan.state(read.parts, read.statistics, reader, read.priors).keeping(more)
    state.given_weights  # noqa: B018
    return model.hold(state if chosen is None else state.with_ensemble(restore_selection(chosen, saved)))


def _check_dates(schema: Schema, joint: TableJoint) -> None:
    """Raise unless every date is one number in the joint."""
    if any(column.kind == "date" and not column.unit for column in schema.columns):
        raise ValueError("expected dates as one column each, got a Model that learned their parts: fit it again")
    used = [column for column in schema.columns if column.outputs]
    for column, of in zip(used, joint.columns, strict=True):
        if column.unit and not isinstance(of, NumberColumn):
            raise ValueError(f"expected a column of numbers for the dates in {column.name[:50]!r}, got another")


def _restored_reader(reader: Reader, statistics: JointStatistics | None, more: dict[str, Any]) -> Reader:
    """Return the reader that a file describes, and take what it says of it out of ``more``."""
    columns = reader.columns
    if isinstance(reader, TextReader):
        return replace(reader, column_name=decode(more.pop("text_column", None), str | None, "text_column", {}))
    assert isinstance(reader, MatrixReader)
    if "schema" in more:
        schema = decode(more.pop("schema"), Schema, "schema", {})
        if len(schema.names) != columns.width or (schema.names if schema.named else None) != columns.names:
            raise ValueError("expected a schema of the columns that were learned, got another")
        target = decode(more.pop("target", None), str, "target", {})
        return TableReader(reader.estimator, columns, schema, target, missing=reader.missing)
    lowest = decode(more.pop("lowest", None), tuple[float | None, ...] | None, "lowest", {})
    if lowest is not None:
        if len(lowest) != columns.width:
            raise ValueError("expected the least number of every column that was learned, got others")
        reader = replace(reader, lowest=np.array([np.inf if low is None else low for low in lowest], np.float64))
    return reader if statistics is None else reader.keeping(more, statistics)


def _restored_centres(header: Mapping[str, Any], arrays: Given) -> Any:
    stored: CentresHeader = decode(header, CentresHeader, "header", arrays)
    found = {name: read_array(name, arrays, finite=False) for name in _CENTRES}
    known = read_array("known", arrays, np.bool_)
    check_centres(found, known, stored.columns.width)
    statistics = cluster_sums(found["weight"], found["sum"], found["sum.origin"])
    model, centres = estimator(stored.kind)(**stored.parameters), np.ascontiguousarray(found["centres"])
    if model.n_clusters != len(centres):
        raise ValueError(f"expected {on_one_line(model.n_clusters)} clusters, got centres of {len(centres)}")
    state = Centres(model.plan().matrix(stored.columns), statistics, centres, found["origin"], known)
    if model.keeps_dtype:
        state = replace(state, dtype=np.dtype(np.float32 if stored.more.get("single") else np.float64))
    for name, kind in model.saved_attributes.items():
        if name in stored.more or name in model.needed_attributes:
            value = stored.more.get(name)
            if type(value) is not kind:
                raise ValueError(f"expected a number as {name}, got {on_one_line(value)}")
            setattr(model, name, value)
    return model.hold(state)
