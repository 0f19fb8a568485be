"""Why a row or a text got its class: what each column or word says, in logarithms that add up."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Columns
from likely.messages import printable
from likely.statistics import Array, Labels, plain_label


@dataclass(frozen=True)
class Explanation:
    """For each row, the log-odds of one class against another, cell by cell.

    Attributes
    ----------
    label, against
        the two classes, one of each for every row
    base
        what holds before any cell is read: the log-odds of the class weights (and, under a full covariance, of what
        no single column accounts for)
    cells
        what each cell says, rows × columns: positive for ``label``, negative for ``against``; 0 where it is missing,
        unless that it is missing says something
    columns
        the columns and their names
    values
        the rows explained
    """

    label: Labels
    against: Labels
    base: Array
    cells: Any
    columns: Columns
    values: Any

    @property
    def log_odds(self) -> Array:
        """log p(label | x) − log p(against | x) of every row: the base and its cells added.

        Of a row that is impossible under both classes, the base: as for ``predict_proba``, its cells say nothing.
        """
        with np.errstate(invalid="ignore"):
            total = self.base + np.asarray(self.cells.sum(axis=1)).ravel()
        return np.where(np.isnan(total), self.base, total)

    things: ClassVar[str] = "columns"
    before: ClassVar[str] = "before any cell"

    def size(self, row: int = 0) -> int:
        """Return how many columns say something about a row."""
        return int(np.count_nonzero(_row_of(self.cells, row)))

    def top(self, most: int = 10, row: int = 0) -> list[tuple[str, Any, float]]:
        """Return the columns that say most about a row: (name, value, log-odds), the strongest first."""
        cells, values = (_row_of(array, row) for array in (self.cells, self.values))
        order = np.argsort(-np.abs(cells), kind="stable")[:most]
        return [(self.columns.name(j), plain_label(values[j]), float(cells[j])) for j in order if cells[j] != 0]

    def __str__(self) -> str:
        return _tables(self)


@dataclass(frozen=True, eq=False)
class WordExplanation:
    """What every word of some texts says for one class against another, in logarithms."""

    label: Labels
    against: Labels
    base: Array
    """the log-odds before the text is read"""
    starts: NDArray[np.int64]
    terms: Any = field(repr=False)  # Arrow would show its text as it is
    counts: NDArray[Any]
    odds: Array
    """the words of text i, how often each came, and what they say altogether, are those from ``starts[i]`` on"""

    @property
    def log_odds(self) -> Array:
        """log p(label | x) − log p(against | x) of every text: the base and its words added."""
        return self.base + added_up(self.odds, self.starts)

    things: ClassVar[str] = "words"
    before: ClassVar[str] = "before any word"

    def __len__(self) -> int:
        return len(self.base)

    def size(self, row: int = 0) -> int:
        """Return how many words a text has."""
        return int(self.starts[row + 1] - self.starts[row])

    def top(self, most: int = 10, row: int = 0) -> list[tuple[str, int, float]]:
        """Return the words that say most of a text: (word, how often, log-odds), the strongest first."""
        own = np.arange(self.starts[row], self.starts[row + 1])
        own = own[np.argsort(-np.abs(self.odds[own]), kind="stable")][:most]
        terms = self.terms.take(own).to_pylist()
        return list(zip(terms, self.counts[own].tolist(), self.odds[own].tolist(), strict=True))

    def words(self, text: int = 0) -> list[tuple[str, int, float]]:
        """Return all words of a text: (word, how often, log-odds), the strongest first."""
        return self.top(self.size(text), text)

    def __str__(self) -> str:
        return _tables(self)


def _tables(found: Explanation | WordExplanation, most: int = 5) -> str:
    """Return the first rows or texts as tables."""
    return "\n\n".join(_table(found, row) for row in range(min(len(found.base), most)))


def _table(found: Explanation | WordExplanation, row: int) -> str:
    in_words = isinstance(found, WordExplanation)
    top, base, total = found.top(row=row), found.base[row], found.log_odds[row]
    lines = [(f"before reading the {'text' if in_words else 'row'}", "", base)]
    for name, value, odds in top:
        times = f" × {value}" if in_words and value != 1 else ""
        lines.append((printable(name) + times, "" if in_words else _short(value), odds))
    if others := found.size(row) - len(top):
        rest = total - base - sum(odds for _, _, odds in top)
        lines.append((f"{others} other {found.things if others > 1 else found.things[:-1]}", "", rest))
    lines.append(("altogether", "", total))
    width, wide = (max(len(line[i]) for line in lines) for i in (0, 1))
    wide = 0 if in_words else max(wide, 12) + 2
    head = f"{plain_label(found.label[row])!r} against {plain_label(found.against[row])!r}, log-odds"
    return "\n".join([head, *(f"{name:<{width}}{value:>{wide}}  {odds:+10.3f}" for name, value, odds in lines)])


def _short(value: Any, most: int = 40) -> str:
    if value is None or value != value:
        return "missing"
    text = f"{value:.6g}" if isinstance(value, int | float) else printable(" ".join(str(value).split()))
    return text if len(text) <= most else text[: most - 1] + "…"


def _row_of(array: Any, row: int) -> Any:
    if hasattr(array, "tocsr"):
        return np.asarray(array.tocsr()[[row]].toarray()).ravel()
    line = np.asarray(array[row])
    return line if line.dtype.kind == "O" else line.astype(np.float64)


def added_up(odds: Array, starts: NDArray[np.int64]) -> Array:
    """Return the sum of what the words of each text say."""
    return np.diff(np.concatenate([[0.0], np.cumsum(odds)])[starts])
