"""What every family does: collect statistics of a block of columns, and solve them for a density in every class."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Block, Columns, Table
from likely.messages import Advice, Setting
from likely.native import BadCellError
from likely.statistics import Array, Assignment, Labels, Responsibilities, SomeRows, Statistics

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Codes = NDArray[np.int64]


class LinearForm(NamedTuple):
    """Scores θ·x + θ₀ of every class, equal to log p(x, y) up to a term that is the same in every class."""

    theta: Array
    theta0: Array


class QuadraticForm(NamedTuple):
    """Scores xᵀAx + b·x + c of every class, equal to log p(x, y) up to a term that is the same in every class."""

    A: Array
    b: Array
    c: Array


class EMInput(NamedTuple):
    """What a step of EM starts from: the rows, the class weights and density of the step before, and known classes.

    ``codes``: the indices of the classes that are known, −1 of the others; ``weights``: how much rows count.
    """

    block: Block
    given: "Density"
    classes: Labels
    log_weights: Array
    codes: NDArray[np.int32] | None
    weights: Array | None


class EMStep(NamedTuple):
    """What a step of EM finds: Σ w log p(x), how much rows count in each class, and the statistics for the M step."""

    log_likelihood: float
    class_weights: Array
    statistics: Statistics


class Density(ABC):
    """p(x | class) for a block of columns, in every class."""

    @abstractmethod
    def add_log_density(self, block: Block, out: Array) -> None:
        """Add log p(x | class) of every row to ``out`` (rows × classes); a missing cell adds nothing."""

    def add_scores(self, block: Block, out: Array) -> None:
        """Add log p(x | class), up to a term that is the same in all classes of a row: enough to compare them."""
        self.add_log_density(block, out)

    @abstractmethod
    def sample(self, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw a row of each of the given classes."""

    @abstractmethod
    def column(self, j: int) -> "Density":
        """Return the density of one column, whatever the others hold."""

    @property
    def means(self) -> Array:
        """The mean of every class and column (classes × columns); NaN in columns of categories, which have none."""
        return np.full((self.classes, 1), np.nan)

    def discrete(self, j: int) -> tuple[Array, Array] | None:
        """Return the values that column j can have and their probabilities (classes × values); None for a density."""
        return None

    def discrete_given(self, block: Block, rows: SomeRows, j: int, posterior: Array) -> Array:
        """Return the probability of each of column j's values in some rows (rows × values), given their other columns.

        ``posterior``: p(class) of these rows.
        """
        found = self.discrete(j)
        assert found is not None
        return posterior @ found[1]

    def names_of(self, j: int) -> Labels | None:
        """Return the names of column j's categories, in the order of their numbers; None if they have none."""
        return None

    def expected(self, block: Block, c: int) -> Array:
        """Return the mean of every cell (rows × columns) in class c, given the other cells of its row."""
        return np.broadcast_to(self.means[c], (block.table.rows, block.width))

    def drawn(self, block: Block, codes: Codes, generator: "np.random.Generator") -> Array:
        """Draw every cell of rows of the given classes, given the cells of its row that are there."""
        return np.asarray(self.sample(codes, generator))

    def log_odds(self, block: Block, one: Codes, other: Codes) -> "tuple[Array | csr_array, Array]":
        """Return what every cell says for class ``one`` against ``other`` (rows × columns), and what is left over."""
        rows = np.arange(block.table.rows)
        odds = np.empty((len(rows), block.width))
        k = self.classes
        for j in range(block.width):
            scores = np.zeros((len(rows), k))
            self.column(j).add_log_density(block.single(j), scores)
            odds[:, j] = subtract_logs(scores[rows, one], scores[rows, other])
        return odds, np.zeros(len(rows))

    @property
    def no_density(self) -> str | None:
        """None if the scores are logarithms of densities; else, as they only compare classes, what to do instead."""
        return None

    @property
    @abstractmethod
    def classes(self) -> int:
        """The number of classes."""

    def linear_form(self) -> LinearForm | None:
        """Return the scores as a linear function of the cells, or None if they are not one."""
        return None

    def quadratic_form(self) -> QuadraticForm | None:
        """Return the scores as a quadratic function of the cells, or None if they are not one."""
        linear = self.linear_form()
        if linear is None:
            return None
        k, d = linear.theta.shape
        return QuadraticForm(np.zeros((k, d, d)), linear.theta, linear.theta0)


@dataclass(frozen=True, eq=False)
class ColumnwiseDensity(Density):
    """Columns that are class-conditionally independent; the fields that are arrays are classes × columns."""

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(getattr(self, fields(self)[0].name))

    def column(self, j: int) -> Self:
        """Return the density of one column."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: a[:, [j]] for name, a in own.items() if isinstance(a, np.ndarray)})


class Family(ABC):
    """What x looks like within one class. Families are values: frozen, compared by their parameters."""

    name: str
    expects: str
    calibrated = False
    """Whether scores were fitted on rows that were held out, so that they give probabilities to be trusted."""
    needs_density = False
    """Whether a density must be given to collect more rows, as it tells which components are responsible."""
    guessed = 0.0
    """The weight of the rows whose classes were guessed: they do not make surer."""

    def collect(
        self, block: Block, assignment: Assignment | Responsibilities, given: Density | None = None
    ) -> Statistics:
        """Collect the sufficient statistics of a block of columns.

        ``given``: the density that the responsibilities were found with, if rows have such.
        """
        with readable_errors(block.table, self.expects):
            try:
                if isinstance(assignment, Assignment):
                    return self._collect(block, assignment)
                assert given is not None
                return self._collect_responsibilities(block, assignment, given)
            except UnsolvableError as error:
                raise error.named(block.table.columns, block.columns) from None

    def additive(self, block: Block) -> bool:
        """Say whether the statistics of these rows are the sum of those of any parts of them, exactly."""
        return True

    @abstractmethod
    def _collect(self, block: Block, assignment: Assignment) -> Statistics: ...

    def _collect_responsibilities(self, block: Block, r: Responsibilities, given: Density) -> Statistics:
        """Collect the statistics of rows with responsibilities: one class after the other."""
        return reduce(operator.add, (self._collect(block, one) for one in r.each()))

    def em_step(self, at: EMInput) -> EMStep | None:
        """Take a step of EM in one pass, if this family is all there is and has a kernel for that; None if not."""
        return None

    def free_parameters(self, density: Density, classes: int) -> int:
        """Return the dimension of the parameter space: how many numbers the data have chosen in so many classes."""
        raise NotImplementedError(f"expected a family with a density, got {self.name!r}, which only compares classes")

    def log_prior(self, density: Density) -> float:
        """Return the logarithm of the prior of a density's parameters, up to a constant; 0 without a prior."""
        return 0.0

    def tempered(self, temperature: float) -> "Family":
        """Return the family whose scores are multiplied with a number, if they are calibrated; others stay."""
        return self

    @abstractmethod
    def solve(self, statistics: Statistics) -> Density:
        """Return the density that maximises the likelihood, or the posterior if the family has a prior."""


class UnsolvableError(np.linalg.LinAlgError):
    """Statistics that no parameters fit: the numbers of the columns to blame, and what to say before and after them.

    ``label`` is the class to blame, or None if it is all of them, ``rows`` how many rows it has, and ``blamed`` the
    columns by name.
    """

    def __init__(
        self, columns: list[int], before: str, after: str, label: object = None, rows: float = 0.0, blamed: str = ""
    ):
        super().__init__(columns, before, after, label, rows, blamed)  # so it can be sent by workers
        self.columns, self.before, self.after, self.label, self.rows, self.blamed = self.args

    def __str__(self) -> str:
        return f"{self.before}{self.blamed}{self.after}"

    def named(self, columns: Columns, indices: list[int] | None) -> "UnsolvableError":
        """Return the error in words; ``indices``: those of the block's columns in the table, None if all are."""
        blamed = columns.listed(self.columns if indices is None else [indices[j] for j in self.columns])
        return UnsolvableError(self.columns, self.before, self.after, self.label, self.rows, blamed)


@contextmanager
def readable_errors(table: Table, expects: str) -> Iterator[None]:
    """Turn the core's complaint about a cell into a sentence."""
    try:
        yield
    except BadCellError as error:
        row, column, value = error.args
        # The core's exception names indices; the sentence below says it all, so its traceback is left out.
        negative = f"Negative values in data passed to {table.reader} (input X): " if table.reader and value < 0 else ""
        where = f"{table.row_name(row)} of {table.columns.listed([column])}"
        remedy = _remedy(value, column, table)
        raise ValueError(Advice(f"{negative}expected {expects}, got {value:g} in {where}: ", *remedy)) from None


def _remedy(value: float, column: int, table: Table) -> tuple[str | Setting, ...]:
    if np.isinf(value):
        return ("replace infinity by a number, or by NaN if the value is not known",)
    if table.reader is not None:
        return ("correct the value, or set it to NaN if it is not known",)
    if table.kinds:
        return "correct the value, or fit with ", Setting.of_column(table.columns.name(column), "number", '"number"')
    return ("correct the value, set it to NaN if it is not known, or choose another family for the column",)


def on_one_line(value: object) -> str:
    """Return what a value looks like in a sentence."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 150 else text[:149] + "…"


def read_number(value: object, expected: str) -> float:
    """Return a parameter that is one number, or raise ValueError, which says what was expected.

    >>> read_number(2, "a number")
    2.0
    >>> read_number("two", "shrinkage between 0 and 1")
    Traceback (most recent call last):
    ...
    ValueError: expected shrinkage between 0 and 1, got 'two'
    """
    found = read_numbers(value, expected)
    if found.ndim > 0:
        raise ValueError(f"expected {expected}, got {on_one_line(value)}")
    return float(found)


def read_numbers(value: object, expected: str) -> Array:
    """Return a parameter that is an array of numbers, or raise ValueError, which says what was expected."""
    try:
        if np.asarray(value).dtype.kind in "biufO":
            return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"expected {expected}, got {on_one_line(value)}")


def subtract_logs(one: Array, other: Array) -> Array:
    """Return the difference of two logarithms; 0 where both are −∞: what is impossible twice says nothing."""
    with np.errstate(invalid="ignore"):
        difference = one - other
    return np.where(np.isnan(difference) & np.isneginf(one) & np.isneginf(other), 0.0, difference)
