"""The demonstration: real birds as one model that is asked five questions, and a classifier of their species."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from likely import __version__
from likely.cli.render import explanation_table, new_console, rows_table
from likely.datasets import TARGET, penguins
from likely.estimators import Classifier
from likely.estimators.model import Model
from likely.lazy import pa
from likely.messages import shown

if TYPE_CHECKING:
    from rich.console import Console

# A bird whose cells disagree: it has the bill of one species and lives on the island of another.
BIRD = 111
# A weight of which a nought too many was written.
ODD, MASS, WRONG = 7, "body_mass_g", 6300


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
    model = Model(progress=False).fit(birds)
    console.print(
        f"One model of all {birds.num_columns} columns, in [bold]{_taken(start)}[/bold]. Five questions to it:\n"
    )
    _ask(model, console)
    _fill(model, birds, console)
    _blame(model, birds, console)
    console.print("5. Birds of 5 kg and more that never were, drawn from the model:")
    console.print(rows_table(model.sample(3, seed, given={MASS: (5000, None)}).to_pylist()))
    console.print()
    _classify(birds, console)


def _ask(model: Model, console: "Console") -> None:
    """Ask about a category and about a number."""
    answer = model.distribution(TARGET, given={"flipper_length_mm": (210, None)})
    order = np.argsort(-answer.p)
    shares = ", ".join(f"{answer.values[k]} {100 * answer.p[k]:.0f} %" for k in order)
    console.print(f"1. Which species has flippers of 210 mm and more? [bold]{shares}[/bold]")
    rows = [{TARGET: "Gentoo", "sex": "male"}]
    mean, (low, high) = model.predict(rows, of=MASS)[0], model.predict_interval(rows, of=MASS)[0]
    console.print(
        f"2. How heavy is a male Gentoo? [bold]{mean:,.0f} g[/bold], with 90 % between {low:,.0f} and {high:,.0f}"
    )


def _fill(model: Model, birds: "pa.Table", console: "Console") -> None:
    """Show a bird with a missing cell, and the same one with what is expected there."""
    row = next(i for i in range(birds.num_rows) if birds["sex"][i].as_py() is None and birds[MASS][i].is_valid)
    bird = birds.slice(row, 1)
    console.print(f"3. Bird {row + 1} has a missing cell. What is most likely there?")
    console.print(rows_table([*bird.to_pylist(), *model.impute(bird).to_pylist()]))


def _blame(model: Model, birds: "pa.Table", console: "Console") -> None:
    """Show a bird with a wrong cell, and which one the model blames."""
    column = birds.schema.get_field_index(MASS)
    bird = birds.slice(ODD - 1, 1)
    wrong = bird.set_column(column, MASS, pa.array([WRONG], birds.schema.field(MASS).type))
    found, before = model.surprise(wrong), model.surprise(bird)
    share = float(np.mean(model.log_density(birds) < -found.rows[0]))
    console.print(
        f"4. Bird {ODD} weighs {shown(bird[MASS][0].as_py())} g. Had {WRONG} been written, which cell is odd? "
        f"[bold]{found.worst()[0]}[/bold]: the row would be {np.exp(found.rows[0] - before.rows[0]):,.0f} times less "
        f"likely, and odder than {100 * (1 - share):.0f} % of all"
    )


def _classify(birds: "pa.Table", console: "Console") -> None:
    """Fit, score and ask a classifier of the species."""
    start = perf_counter()
    model = Classifier().fit(birds, TARGET)
    console.print(f"And a classifier of one column, the species, in [bold]{_taken(start)}[/bold].")
    start = perf_counter()
    found = Classifier().evaluate(birds, TARGET, folds=10)
    console.print(
        f"Held out, [bold]{100 * found.accuracy:.1f} %[/bold] are classified right, with a log-loss of "
        f"{found.log_loss:.3f}: ten folds in {_taken(start)}.\n"
    )
    bird = birds.slice(BIRD - 1, 1)
    explanation = model.explain(bird)
    label, against = explanation.label[0], explanation.against[0]
    console.print(f"Bird {BIRD}: why [green]{label}[/green] and not [red]{against}[/red]?")
    console.print(explanation_table(explanation, console))
    strongest = explanation.top(1)[0][0]
    console.print(f"So {_probabilities(model, bird)}. It is: {bird[TARGET][0]}.")
    unknown = bird.set_column(bird.schema.get_field_index(strongest), strongest, [[None]])
    console.print(f"Were its {strongest.replace('_', ' ')} not known: {_probabilities(model, unknown)}.")


def _taken(start: float) -> str:
    return f"{1000 * (perf_counter() - start):.0f} ms"


def _probabilities(model: Classifier, row: Any) -> str:
    found = model.predict_proba(row)[0]
    return ", ".join(f"{model.classes_[c]} {100 * found[c]:.0f} %" for c in np.argsort(-found))
