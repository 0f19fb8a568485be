"""What a model file says: a model's parameters and statistics as a header and arrays, and back, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Table
from likely.families import FAMILIES, Family, Gaussian, Named, Together, on_one_line
from likely.joint import Part
from likely.learn.class_mixture_density import MixedStatistics
from likely.learn.class_mixtures import Mixed
from likely.model.state import Knowledge
from likely.persistence.entries import MOST_COLUMNS, described_columns, entry, float_array, read_columns
from likely.persistence.file import Arrays, Contents
from likely.persistence.validate import check_block, check_classes, check_weights
from likely.persistence.values import packed, unpacked
from likely.statistics import Assignment, JointStatistics, Labels, Statistics


class Kind(NamedTuple):
    """Which families an estimator can have, by name, whether their covariances are full, and if in several blocks."""

    families: tuple[str, ...]
    full: bool | None = None
    several: bool = False


OF_TABLES = ("whole numbers", "counts", Named.name, Together.name, "bag of words")
"""The families that only columns of tables have."""

KINDS = {
    "NaiveBayes": Kind((*FAMILIES, *OF_TABLES), full=False, several=True),
    "Classifier": Kind((*FAMILIES, *OF_TABLES, Mixed.name), several=True),
    "GaussianDiscriminant": Kind(("gaussian",)),
    "Mixture": Kind((*FAMILIES, *OF_TABLES), several=True),
    "TextClassifier": Kind(("bag of words", "discounted words")),
    "sklearn GaussianNB": Kind(("gaussian",), full=False),
    "sklearn MultinomialNB": Kind(("multinomial",)),
    "sklearn ComplementNB": Kind(("complement",)),
    "sklearn BernoulliNB": Kind(("bernoulli",)),
    "sklearn CategoricalNB": Kind(("numbered categories",)),
    "sklearn LinearDiscriminantAnalysis": Kind(("gaussian",), full=True),
    "sklearn QuadraticDiscriminantAnalysis": Kind(("gaussian",), full=True),
}
"""The estimators that a file can hold, by the names that it gives them."""

OF_TEXT = ("bag of words", "discounted words")


@dataclass(frozen=True)
class Saved:
    """A model, taken apart. ``more`` is what it remembers beside the parameters and the statistics.

    ``members`` are the families, statistics and widths of parts with an encoding, which the knowledge of a file lacks:
    what they encode, only the estimator can read.
    """

    kind: str
    parameters: Mapping[str, Any]
    knowledge: Knowledge
    more: Mapping[str, Any]
    members: tuple[tuple[Family, Statistics, int], ...] = ()

    def contents(self) -> Contents:
        """Return the header and arrays of a file; what does not fit in one raises ValueError."""
        known, statistics = self.knowledge, self.knowledge.statistics
        arrays: Arrays = {"weight": statistics.weights.sums["weight"]}
        header = {
            "kind": self.kind,
            "parameters": {n: packed(value, f"parameters.{n}", arrays) for n, value in self.parameters.items()},
            "columns": described_columns(known.columns),
            "classes": packed(statistics.classes, "classes", arrays),
            "priors": packed(known.priors, "priors", arrays),
            "blocks": [
                _packed_block(part, block, f"block {i}", arrays)
                for i, (part, block) in enumerate(zip(known.parts, statistics.blocks, strict=True))
            ],
            "more": {name: packed(value, f"more.{name}", arrays) for name, value in self.more.items()},
        }
        return Contents(header, arrays)

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Saved":
        """Return what a file holds, or raise if it does not agree with itself."""
        kind = entry(header, "kind", str)
        if kind not in KINDS:
            raise ValueError(f"expected an estimator among {list(KINDS)}, got {kind!r}")
        columns = read_columns(entry(header, "columns", dict))
        classes = check_classes(unpacked(header.get("classes"), arrays))
        described = entry(header, "blocks", list)
        wide = [_member_width(each) for each in described]
        every = [_part(each, columns.width, arrays) for each in described]
        parts = tuple(part for part, width in zip(every, wide, strict=True) if width is None)
        _check_parts(kind, parts)
        weights = Statistics({"weight": float_array("weight", arrays)}, {"weight": ("class",)}, {"class": classes})
        check_weights(weights)
        blocks = [
            _block(part, classes, width or columns.width, f"block {i}", each, arrays)
            for i, (part, each, width) in enumerate(zip(every, described, wide, strict=True))
        ]
        own = tuple(block for block, width in zip(blocks, wide, strict=True) if width is None)
        return cls(
            kind,
            {n: unpacked(value, arrays) for n, value in entry(header, "parameters", dict).items()},
            Knowledge(parts, JointStatistics(weights, own), columns, unpacked(header.get("priors"), arrays)),
            {n: unpacked(value, arrays) for n, value in entry(header, "more", dict).items()},
            tuple((p.family, b, width) for p, b, width in zip(every, blocks, wide, strict=True) if width is not None),
        )


def _member_width(described: Any) -> int | None:
    """Return how many columns a part with an encoding has; None if it has no encoding."""
    width = described.get("width") if isinstance(described, dict) else None
    if width is not None and (type(width) is not int or not 0 < width <= MOST_COLUMNS):
        raise ValueError(f"expected 1 to {MOST_COLUMNS:,} encoded columns, got {on_one_line(width)}")
    return width


def _part(described: Any, width: int, arrays: Mapping[str, NDArray[Any]]) -> Part:
    if not isinstance(described, dict):
        raise ValueError(f"expected a block of columns, got {on_one_line(described)}")
    family = unpacked(described.get("family"), arrays)
    if not isinstance(family, Family):
        raise ValueError(f"expected a family, got {on_one_line(family)}")
    columns = described.get("columns")
    if columns is None:
        return Part(family, None)
    if not isinstance(columns, list) or not columns or not all(type(j) is int and 0 <= j < width for j in columns):
        raise ValueError(f"expected columns from 0 to {width - 1}, got {on_one_line(columns)}")
    return Part(family, columns)


def _check_parts(kind: str, parts: tuple[Part, ...]) -> None:
    """Raise unless the estimator could have these families in these blocks."""
    families, full, several = KINDS[kind]
    if len(parts) == 1 and isinstance(parts[0].family, Mixed) and Mixed.name in families:
        if parts[0].columns != parts[0].family.columns:
            raise ValueError("expected a mixture of the columns of its blocks, got others")
        parts, families = parts[0].family.blocks, tuple(name for name in families if name != Mixed.name)
    for family, *_ in parts:
        matrix = isinstance(family, Gaussian) and family.covariance == "full"
        if packed(family, "family", {})["is"] not in families or full not in (None, matrix):
            raise ValueError(f"expected families that {kind} has, got {on_one_line(family)}")
    if len(parts) == 1 and parts[0].columns is None:
        return
    taken = [j for part in parts for j in part.columns or ()]
    if not several or any(part.columns is None for part in parts) or len(set(taken)) < len(taken):
        raise ValueError(f"expected every column in one block, got {on_one_line(parts)}")


def _packed_block(part: Part, statistics: Statistics, name: str, arrays: Arrays) -> dict[str, Any]:
    mixed = {}
    if part.family.name in OF_TEXT:
        from likely.persistence.words import packed_words

        packed_words(statistics, name, arrays)
    elif isinstance(part.family, Mixed):
        mixed["components"] = _packed_components(part.family, statistics, name, arrays)
    for word, sums in (("sum", statistics.sums), ("lost", statistics.lost or {})):
        arrays.update({f"{name}.{word}.{n}": array for n, array in sums.items()})
    if statistics.origin is not None:
        arrays[f"{name}.origin"] = statistics.origin
    names = None
    if "category" in statistics.labels:
        labels = statistics.labels["category"]
        arrays[f"{name}.category.column"] = labels["column"]
        if isinstance(part.family, Named):
            names = labels["value"].tolist()
        else:
            arrays[f"{name}.category.value"] = labels["value"]
    return {
        "family": packed(part.family, f"{name}.family", arrays),
        "columns": part.columns,
        "sums": {n: list(axes) for n, axes in statistics.axes.items()},
        "lost": statistics.lost is not None,
        **({} if names is None else {"names": names}),
        **({} if part.encoding is None else {"width": part.encoding.width}),
        **mixed,
    }


def _packed_components(family: Mixed, statistics: Any, name: str, arrays: Arrays) -> list[list[dict[str, Any]]]:
    """Describe the blocks of every component, whose weights and sums are put among the arrays."""
    found = []
    for m, each in enumerate(statistics.components):
        arrays[f"{name}.{m}.weight"] = each.weights.sums["weight"]
        blocks = zip(family.blocks, each.blocks, strict=True)
        found.append([_packed_block(p, b, f"{name}.{m}.{i}", arrays) for i, (p, b) in enumerate(blocks)])
    return found


def _block(
    part: Part,
    classes: Labels,
    width: int,
    name: str,
    described: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> Statistics:
    """Return the statistics of a block: the sums that its family collects, also from no rows at all."""
    if part.family.name in OF_TEXT:
        from likely.persistence.words import read_words

        return read_words(classes, name, arrays)
    if isinstance(part.family, Mixed):
        return _components(part.family, classes, width, name, entry(described, "components", list), arrays)
    none = part.family.collect(
        Block(Table(np.empty((0, 1))), None), Assignment(np.zeros(1), np.empty(0, dtype=np.int32))
    )
    if described.get("sums") != {n: list(axes) for n, axes in none.axes.items()}:
        raise ValueError(
            f"expected the sums {dict(none.axes)} of {part.family.name!r}, got {on_one_line(described.get('sums'))}"
        )
    labels = {"class": classes}
    if "category" in none.labels:
        columns = arrays.get(f"{name}.category.column")
        named = isinstance(part.family, Named)
        values = _names(entry(described, "names", list)) if named else arrays.get(f"{name}.category.value")
        labels["category"] = _categories(columns, values, none.labels["category"].dtype)
    lost = entry(described, "lost", bool)
    statistics = Statistics(
        {n: float_array(f"{name}.sum.{n}", arrays) for n in none.sums},
        none.axes,
        labels,
        None if none.origin is None else float_array(f"{name}.origin", arrays),
        {n: float_array(f"{name}.lost.{n}", arrays) for n in none.sums} if lost else None,
    )
    check_block(statistics, part.family, width if part.columns is None else len(part.columns))
    return statistics


def _components(
    family: Mixed,
    classes: Labels,
    width: int,
    name: str,
    described: list[Any],
    arrays: Mapping[str, NDArray[Any]],
) -> MixedStatistics:
    """Return the statistics of every component of classes that are mixtures."""
    sizes = {len(each) for each in described if isinstance(each, list)}
    if len(described) != family.components or sizes != {len(family.parts)}:
        raise ValueError(f"expected {family.components} components of {len(family.parts)} blocks, got others")
    _check_columns(family, width)
    found = []
    for m, blocks in enumerate(described):
        weights = float_array(f"{name}.{m}.weight", arrays)
        own = Statistics({"weight": weights}, {"weight": ("class",)}, {"class": classes})
        check_weights(own)
        read = (
            _block(part, classes, width, f"{name}.{m}.{i}", each if isinstance(each, dict) else {}, arrays)
            for i, (part, each) in enumerate(zip(family.blocks, blocks, strict=True))
        )
        found.append(JointStatistics(own, tuple(read)))
    return MixedStatistics.of(tuple(found))


def _check_columns(family: Mixed, width: int) -> None:
    """Raise unless the columns of a mixture's blocks are among those of the table, each once."""
    inner = [part.family for part in family.blocks]
    numbers = [j for part in family.blocks for j in part.columns or ()]
    known = all(type(j) is int and 0 <= j < width for j in numbers) and len(set(numbers)) == len(numbers)
    whole = any(part.columns is None for part in family.blocks)
    if any(isinstance(each, Mixed) for each in inner) or not known or (whole and len(inner) > 1):
        raise ValueError("expected every column in one block of a mixture, got others")


def _names(names: list[Any]) -> NDArray[Any]:
    if not all(isinstance(name, str) for name in names):
        raise ValueError("expected names of categories as text, got others")
    return np.array(names, dtype=object)


def _categories(columns: NDArray[Any] | None, values: NDArray[Any] | None, kind: np.dtype[Any]) -> Labels:
    if (
        columns is None
        or values is None
        or (columns.dtype, values.dtype) != (kind["column"], kind["value"])
        or columns.ndim != 1
        or columns.shape != values.shape
    ):
        raise ValueError("expected the column and the value of every category, got other arrays")
    labels = np.empty(len(columns), dtype=kind)
    labels["column"], labels["value"] = columns, values
    return labels
