"""Why a row got its class: what each column says, in logarithms that add up."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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
        return "\n\n".join(self._table(row) for row in range(min(len(self.base), 5)))

    def _table(self, row: int) -> str:
        lines = [("before reading the row", "", self.base[row])]
        top = self.top(row=row)
        lines += [(printable(name), _short(value), odds) for name, value, odds in top]
        others = self.size(row) - len(top)
        if others:
            said = self.log_odds[row] - self.base[row] - sum(odds for _, _, odds in top)
            lines.append((f"{others} other column{'s' if others > 1 else ''}", "", said))
        lines.append(("altogether", "", self.log_odds[row]))
        width, wide = (max(len(line[i]) for line in lines) for i in (0, 1))
        wide = max(wide, 12)
        head = f"{plain_label(self.label[row])!r} against {plain_label(self.against[row])!r}, log-odds"
        return "\n".join([head, *(f"{name:<{width}}  {value:>{wide}}  {odds:+10.3f}" for name, value, odds in lines)])


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
