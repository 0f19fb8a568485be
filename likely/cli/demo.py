"""The demonstration: real birds with missing cells, fitted, scored, explained, filled in, and new ones drawn."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from likely import __version__
from likely.cli.render import explanation_table, new_console, rows_table
from likely.datasets import TARGET, penguins
from likely.estimators import Classifier
from likely.lazy import pa

if TYPE_CHECKING:
    from rich.console import Console

# A bird whose cells disagree: it has the bill of one species and lives on the island of another.
BIRD = 111


def show(seed: int = 0) -> None:
    """Print the demonstration."""
    console = new_console()
    birds = penguins()
    missing = sum(column.null_count for column in birds.columns)
    console.print(
        f"[bold]likely {__version__}[/bold] on {birds.num_rows} Palmer penguins of three species, {missing} cells "
        "missing.\n"
    )
    start = perf_counter()
    model = Classifier().fit(birds, TARGET)
    console.print(f"Fitted in [bold]{_taken(start)}[/bold], numbers, categories and missing cells as they are.")
    start = perf_counter()
    found = Classifier().evaluate(birds, TARGET, folds=10)
    console.print(
        f"Held out, [bold]{100 * found.accuracy:.1f} %[/bold] are classified right, with a log-loss of "
        f"{found.log_loss:.3f}: ten folds in {_taken(start)}.\n"
    )
    _explain(model, birds.slice(BIRD - 1, 1), console)
    _fill(model, birds, console)
    console.print("Birds that never were, drawn from the model:")
    drawn, species = model.sample(3, seed)
    console.print(rows_table(drawn.append_column(TARGET, [species.tolist()]).to_pylist()))


def _explain(model: Classifier, bird: "pa.Table", console: "Console") -> None:
    explanation = model.explain(bird)
    label, against = explanation.label[0], explanation.against[0]
    console.print(f"Bird {BIRD}: why [green]{label}[/green] and not [red]{against}[/red]?")
    console.print(explanation_table(explanation, console))
    strongest = explanation.top(1)[0][0]
    console.print(f"So {_probabilities(model, bird)}. It is: {bird[TARGET][0]}.")
    unknown = bird.set_column(bird.schema.get_field_index(strongest), strongest, [[None]])
    console.print(f"Were its {strongest.replace('_', ' ')} not known: {_probabilities(model, unknown)}.\n")


def _fill(model: Classifier, birds: "pa.Table", console: "Console") -> None:
    """Show a bird with a missing cell, and the same one with what is expected there."""
    row = next(i for i in range(birds.num_rows) if birds["sex"][i].as_py() is None and birds["body_mass_g"][i].is_valid)
    bird = birds.slice(row, 1)
    whole = model.impute(bird, bird[TARGET].to_pylist())
    console.print(f"Bird {row + 1} has a missing cell, and what is most likely there:")
    console.print(rows_table([*bird.to_pylist(), *whole.to_pylist()]))
    console.print()


def _taken(start: float) -> str:
    return f"{1000 * (perf_counter() - start):.0f} ms"


def _probabilities(model: Classifier, row: Any) -> str:
    found = model.predict_proba(row)[0]
    return ", ".join(f"{model.classes_[c]} {100 * found[c]:.0f} %" for c in np.argsort(-found))
