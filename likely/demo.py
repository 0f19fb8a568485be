"""The demonstration: real birds with holes in their data, fitted, classified, explained, and new ones drawn."""

import csv
from copy import copy
from importlib.resources import files
from time import perf_counter
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from likely import __version__
from likely.estimators import Explanation, NaiveBayes
from likely.statistics import Array, Labels

UNITS = {"bill_length_mm": "mm", "bill_depth_mm": "mm", "flipper_length_mm": "mm", "body_mass_g": "g"}
CATEGORIES = {"island": ["Biscoe", "Dream", "Torgersen"], "sex": ["female", "male"]}
COLUMNS = [*UNITS, *CATEGORIES]
FAMILIES = ["gaussian"] * len(UNITS) + ["categorical"] * len(CATEGORIES)
FOLDS = 10
# A bird whose cells disagree: it has the bill of one species and lives on the island of another.
BIRD = 20


class Penguins(NamedTuple):
    """The measurements and categories of every bird, NaN where a cell is missing, and its species."""

    X: Array
    species: Labels


def read_penguins() -> Penguins:
    """Read the data that the package ships.

    >>> X, species = read_penguins()
    >>> X.shape, int(np.isnan(X).sum()), sorted(set(species.tolist()))
    ((344, 6), 19, ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    text = files("likely").joinpath("data", "penguins.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    X = np.array([[_number(name, row[name]) for name in COLUMNS] for row in rows])
    return Penguins(X, np.array([row["species"] for row in rows]))


def held_out_score(model: NaiveBayes, X: Array, y: Labels) -> float:
    """Return the share of rows classified right by models that never saw them.

    A model that has seen all rows forgets a fold at a time, so that no fold is fitted again.

    >>> X, species = read_penguins()
    >>> model = NaiveBayes(FAMILIES).fit(X, species)
    >>> 0.9 < held_out_score(model, X, species) < 1
    True
    """
    fold = np.arange(len(y)) % FOLDS
    right = [copy(model).forget(X[fold == f], y[fold == f]).predict(X[fold == f]) == y[fold == f] for f in range(FOLDS)]
    return float(np.concatenate(right).mean())


def show(console: Console, seed: int = 0) -> None:
    """Print the demonstration."""
    X, species = read_penguins()
    console.print(
        f"[bold]likely {__version__}[/bold] on the Palmer penguins: {len(X)} birds of {len(set(species))} species, "
        f"{np.isnan(X).sum()} cells missing.\n"
    )

    start = perf_counter()
    model = NaiveBayes(FAMILIES).fit(X, species)
    console.print(f"Fitted in [bold]{_milliseconds(start)}[/bold], missing cells and all.")

    start = perf_counter()
    score = held_out_score(model, X, species)
    console.print(
        f"Held out, [bold]{100 * score:.1f} %[/bold] are classified right: ten times a tenth of the birds "
        f"is\nforgotten and then classified, in {_milliseconds(start)} altogether.\n"
    )

    bird = X[[BIRD - 1]]
    explanation = model.explain(bird)
    label, against = explanation.label[0], explanation.against[0]
    console.print(f"Bird {BIRD}: why [green]{label}[/green] and not [red]{against}[/red]?")
    console.print(_explanation_table(explanation, console))
    console.print(f"So {_probabilities(model, bird)}. It is: {species[BIRD - 1]}.")

    strongest = int(np.abs(explanation.cells[0]).argmax())
    with_a_hole = bird.copy()
    with_a_hole[0, strongest] = np.nan
    console.print(f"Were its {_words(COLUMNS[strongest])} not known: {_probabilities(model, with_a_hole)}.\n")

    console.print("Birds that never were, drawn from the model:")
    console.print(_rows_table(*model.sample(3, seed)))


def _number(column: str, text: str) -> float:
    if text == "NA":
        return np.nan
    return float(CATEGORIES[column].index(text) if column in CATEGORIES else text)


def _words(column: str) -> str:
    """Return a column's name without its unit, as words."""
    return column.removesuffix(f"_{UNITS.get(column)}").replace("_", " ")


def _value(column: str, value: float) -> str:
    if np.isnan(value):
        return "missing"
    if column in CATEGORIES:
        return CATEGORIES[column][int(value)]
    return f"{value:.{0 if value >= 100 else 1}f} {UNITS[column]}"


def _milliseconds(start: float) -> str:
    return f"{1000 * (perf_counter() - start):.2g} ms"


def _probabilities(model: NaiveBayes, row: Array) -> str:
    shares = model.predict_proba(row)[0]
    return ", ".join(f"{model.classes_[c]} {100 * shares[c]:.0f} %" for c in np.argsort(-shares))


def _explanation_table(explanation: Explanation, console: Console, half: int = 14) -> Table:
    """Return what every cell says, as numbers and as bars: to the right for the label, to the left against it."""
    odds, values = explanation.cells[0], explanation.values[0]
    strongest = float(np.abs(odds).max())
    block = "#" if console.options.ascii_only else "█"

    def bar(x: float) -> Text:
        blocks = block * round(half * abs(x) / strongest)
        if x < 0:
            return Text(blocks.rjust(half) + "|", style="red")
        return Text(" " * half + "|" + blocks, style="green")

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("log-odds", justify="right")
    table.add_column(Text(f"{explanation.against[0]:>{half}}|{explanation.label[0]}"), no_wrap=True)
    table.add_row("before any cell", "", f"{explanation.base[0]:+.2f}", bar(float(explanation.base[0])))
    for j in np.argsort(-np.abs(odds)):
        table.add_row(_words(COLUMNS[j]), _value(COLUMNS[j], values[j]), f"{odds[j]:+.2f}", bar(float(odds[j])))
    total = float(explanation.log_odds[0])
    table.add_row("altogether", "", f"{total:+.2f}", bar(total), style="bold")
    return table


def _rows_table(X: Array, species: Labels) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("species")
    for name in COLUMNS:
        table.add_column(_words(name), justify="left" if name in CATEGORIES else "right")
    for label, row in zip(species, X, strict=True):
        table.add_row(str(label), *(_value(name, value) for name, value in zip(COLUMNS, row, strict=True)))
    return table
