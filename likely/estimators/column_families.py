"""Which family every column follows: where a family for a column is chosen."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.data.schema import KINDS, Schema
from likely.data.table import Block, SparseRows, Table
from likely.families import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Counts,
    Family,
    Gaussian,
    Multinomial,
    Named,
    Poisson,
    Together,
    WholeNumbers,
    on_one_line,
    readable_errors,
)
from likely.families.choice import family_of_integers
from likely.joint import Part
from likely.statistics import Assignment

IGNORE, TEXT, WHOLE, COUNTS = "ignore", "text", "whole numbers", "counts"
# A category cannot be correlated with anything. Where columns may be, more whole numbers than this are numbers.
_MOST_CATEGORIES = 20


@dataclass(frozen=True)
class ColumnFamilies:
    """Columns are class-conditionally independent, each of its own family."""

    columns: Any
    """what the user said: "auto", a family or type for all columns, a list, or a dict by name"""
    smoothing: Any = 1.0
    pseudo_rows: Any = 0.0
    """how many rows every class is imagined to have"""
    together: Any = ()
    unbiased: bool = False
    """of the estimator"""
    correlates: bool = False
    """whether numbers of one component may be correlated"""
    gaussian: Callable[[type[Gaussian]], Gaussian] | None = None
    """what makes the family of Gaussian or log-normal columns, if it is not that of naive Bayes"""

    @property
    def named(self) -> bool:
        """Whether the user names families, and not only kinds of columns."""
        if isinstance(self.columns, str | Family):
            return self.columns != "auto"
        given = self.columns.values() if isinstance(self.columns, Mapping) else self.columns
        return any(not isinstance(each, str) or each not in (*KINDS, "auto") for each in given)

    def __call__(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        """Return the family of every block of columns of a table, as its types or its rows decide."""
        if isinstance(self.columns, str) and self.columns == IGNORE:
            return ()
        if isinstance(self.columns, str) and self.columns in KINDS:
            raise ValueError(
                f"expected kinds by column, such as columns={{{table.columns.name(0)!r}: {self.columns!r}}}, got "
                f"columns={self.columns!r}: name the columns, or give one family for all"
            )
        if isinstance(self.columns, str | Family) and not table.kinds:
            family = self._family(self.columns, table)
            if isinstance(family, Bernoulli | Multinomial) or not isinstance(table.cells, SparseRows):
                return (Part(family, None),)
        if isinstance(table.cells, SparseRows):
            raise ValueError(
                "expected columns='multinomial', 'complement' or 'bernoulli' for a sparse matrix, got "
                f"{self.columns!r}: call X.toarray() first"
            )
        wanted = self._wanted(table, assignment)
        groups: dict[int, tuple[Family, list[int]]] = {}
        made: dict[str, Family] = {}
        for j, name in enumerate(wanted):
            if name == IGNORE:
                continue
            if name == TEXT:  # each has its own words
                family = self._bag()
            elif isinstance(name, str):
                family = made.setdefault(name, self._family(name, table))
            else:
                family = self._family(name, table)
            groups.setdefault(id(family), (family, []))[1].append(j)
        self._take_together(groups, table)
        if len(groups) == 1:
            family, columns = next(iter(groups.values()))
            if len(columns) == table.columns.width:
                return (Part(family, None),)
        return tuple(Part(family, columns) for family, columns in groups.values())

    def _take_together(self, groups: dict[int, tuple[Family, list[int]]], table: Table) -> None:
        """Move the columns that are taken together from the group of all categories to groups of their own."""
        independent = next((columns for family, columns in groups.values() if type(family) is Named), [])
        for group in groups_of(self.together):
            columns = sorted(_column_number(name, table) for name in group)
            for j in columns:
                if j not in independent:
                    raise ValueError(
                        f"expected columns of categories, each once, in together=, got {table.columns.listed([j])}: "
                        "leave it out, or say that it is a category in columns="
                    )
                independent.remove(j)
            family = Together(smoothing=self.smoothing)
            groups[id(family)] = family, columns
        for key in [key for key, (_, columns) in groups.items() if not columns]:
            del groups[key]

    def _wanted(self, table: Table, assignment: Assignment) -> list[object]:
        """Return what every column is to follow: a name, or a family."""
        if not table.kinds:
            return [
                self._of_numbers(wanted, Block(table, [j]), assignment)
                for j, wanted in enumerate(_families_by_column(self.columns, table))
            ]
        names = table.names or tuple(map(str, range(len(table.kinds))))
        if isinstance(self.columns, Mapping):
            given = [self.columns.get(name) for name in names]
        else:  # one family for all columns but those of categories
            given = [None if self.columns == "auto" else self.columns] * len(names)
        return [
            self._by_kind(kind, wanted, Block(table, [j]), assignment)
            for j, (kind, wanted) in enumerate(zip(table.kinds, given, strict=True))
        ]

    def _by_kind(self, kind: str, given: object, column: Block, assignment: Assignment) -> object:
        """Return what a column of a kind follows, unless a family was given."""
        if kind == "category":
            return Named.name
        if kind == TEXT:
            return TEXT
        if given is not None and given not in KINDS:
            return given
        if kind == "integer":
            with readable_errors(column.table, Gaussian.expects):
                found = family_of_integers(column, assignment, _MOST_CATEGORIES if self.correlates else None)
            return {Categorical.name: WHOLE, Poisson.name: COUNTS}.get(found, found)
        return "bernoulli" if kind == "boolean" else "gaussian"

    def _of_numbers(self, wanted: object, column: Block, assignment: Assignment) -> object:
        """Return what a column of a matrix, which holds numbers, follows where no family was given, or a kind."""
        if isinstance(wanted, str) and wanted == "auto":
            return _by_type(column.table)
        if not isinstance(wanted, str) or wanted not in KINDS or wanted == IGNORE:
            return wanted
        if wanted in (TEXT, "date"):
            listed = column.table.columns.listed([column.number(0)])
            raise ValueError(
                f"expected text or dates in {listed}, since columns= says {wanted!r}, got numbers: convert it"
            )
        return "categorical" if wanted == "category" else self._by_kind(wanted, None, column, assignment)

    def _bag(self) -> Family:
        """Return the family of a column of texts."""
        from likely.families.bag import Bag
        from likely.text import Analyzer

        one = isinstance(self.smoothing, int | float | np.integer | np.floating)
        return Bag(Analyzer("words"), smoothing=self.smoothing if one else 1.0)

    def _family(self, wanted: object, table: Table) -> Family:
        if isinstance(wanted, Family):
            if isinstance(wanted, Gaussian) and wanted.covariance == "full":
                raise ValueError("expected independent columns, got a full covariance: use likely.GaussianDiscriminant")
            return wanted
        if not isinstance(wanted, str):
            raise ValueError(f"expected a family among {[*FAMILIES, IGNORE]}, got {on_one_line(wanted)}")
        if wanted == "auto":
            wanted = _by_type(table)
        if wanted in (Named.name, WHOLE):
            return (Named if wanted == Named.name else WholeNumbers)(smoothing=self.smoothing)
        if wanted == COUNTS:
            return Counts(pseudo_rows=self.pseudo_rows)
        if wanted not in FAMILIES:
            raise ValueError(f"expected a kind among {list(KINDS)} or a family among {list(FAMILIES)}, got {wanted!r}")
        kind = FAMILIES[wanted]
        if issubclass(kind, Bernoulli | Categorical | Multinomial):
            return kind(smoothing=self.smoothing)
        if issubclass(kind, Gaussian):
            if self.gaussian is not None:
                return self.gaussian(kind)
            return kind(pseudo_rows=self.pseudo_rows, unbiased=self.unbiased)
        return kind(pseudo_rows=self.pseudo_rows)  # type: ignore[call-arg]

    def by_type(self, schema: Schema) -> bool:
        """Say whether the declared types alone decide: not of whole numbers, which may be counts, codes or amounts."""
        given = self.columns if isinstance(self.columns, Mapping) else {}
        kinds = zip(schema.names, schema.kinds, strict=True)
        return not any(kind == "integer" and given.get(name) in (None, "integer") for name, kind in kinds)


def count_tags(columns: object) -> tuple[bool, bool]:
    """Say whether columns of these families may be sparse, and may not be negative."""
    one = columns.name if isinstance(columns, Family) else columns
    counts = isinstance(one, str) and one in ("multinomial", "complement", "bernoulli")
    return counts or (isinstance(one, str) and one == "auto"), counts


def groups_of(together: object) -> list[list[object]]:
    """Return lists of the columns to take together, from one list or several.

    >>> groups_of(["sex", "job"]), groups_of([["sex", "job"], ("a", "b")])
    ([['sex', 'job']], [['sex', 'job'], ['a', 'b']])
    """
    listed = list(together) if isinstance(together, list | tuple) else [together]
    flat = listed and not any(isinstance(each, list | tuple) for each in listed)
    groups = [listed] if flat else [list(each) if isinstance(each, list | tuple) else [each] for each in listed]
    for group in groups:
        if len(group) < 2:
            raise ValueError(f"expected two or more columns to take together, got {on_one_line(together)}")
    return groups


def _by_type(table: Table) -> str:
    if isinstance(table.cells, SparseRows):
        return "multinomial"
    return "bernoulli" if table.cells.dtype == bool else "gaussian"


def _families_by_column(columns: object, table: Table) -> list[object]:
    """Return what the user wants for each column: a name, or a family."""
    if isinstance(columns, Mapping):
        wanted: list[object] = ["auto"] * table.columns.width
        named: dict[int, object] = {}
        for key, family in columns.items():
            column = _column_number(key, table)
            if column in named:
                raise ValueError(f"expected each column once, got {named[column]!r} and {key!r} for the same one")
            named[column] = key
            wanted[column] = family
        return wanted
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ValueError(f"expected columns as a family, a list or a dict of families, got {on_one_line(columns)}")
    wanted = list(columns)
    if len(wanted) != table.columns.width:
        raise ValueError(f"expected a family for each of the {table.columns.width} columns, got {len(wanted)}")
    return wanted


def _column_number(key: object, table: Table) -> int:
    if isinstance(key, str) and table.names is not None and key in table.names:
        return table.names.index(key)
    if isinstance(key, int | np.integer) and -table.columns.width <= key < table.columns.width:
        return int(key) % table.columns.width
    have = list(table.names) if table.names is not None else f"0 to {table.columns.width - 1}"
    raise ValueError(f"expected columns among {have}, got {key!r}")
