"""The commands: what each is given, and what it does."""

import os
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from likely.cli import arguments
from likely.cli.arguments import Group, New, argument, flag, option, several
from likely.cli.io import (
    LINES,
    Output,
    check_model_output,
    lines_of,
    opened,
    opened_to_answer,
    read_meanwhile,
    rows_at,
)
from likely.data.paths import KNOWN_FORMATS, Format
from likely.data.progress import progress_bar

if TYPE_CHECKING:
    from likely.cli.models import Loaded
    from likely.data.rows import Rows

_FOLDS = 10


@click.group(
    cls=Group,
    examples=[
        "likely demo",
        "likely fit people.csv --target income -o income.likely",
        "likely predict income.likely new.csv",
        "likely evaluate people.csv --target income",
    ],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
)
@flag("--version", help="Show the version and leave.")
@flag("--install-completion", help="Let your shell complete commands and options: bash, zsh or fish.")
@flag("--show-completion", help="Show what your shell would run to complete them.")
@click.pass_context
def application(context: click.Context, version: bool, install_completion: bool, show_completion: bool) -> None:
    """Model how the data came to be, and answer every question from that one model."""
    if version:
        from likely import __version__

        print(f"likely {__version__}")
    elif install_completion or show_completion:
        shell = os.path.basename(os.environ.get("SHELL", ""))
        if shell not in arguments.SHELLS:
            raise ValueError(f"expected one of {', '.join(arguments.SHELLS)} in $SHELL, got {shell!r}")
        if show_completion:
            print(arguments.completion(application, shell))
        else:
            print(
                f"{shell} will complete likely when it starts anew: {arguments.install_completion(application, shell)}"
            )
    elif context.invoked_subcommand is None:
        print(context.get_help())
    else:
        return
    context.exit()


@application.command(
    "likely fit people.csv --target income -o income.likely",
    "likely fit 'parts/*.parquet' --target income -o income.likely --ignore id --column zip=category",
    "zcat people.csv.gz | likely fit - --target income -o income.likely --missing '?'",
    "likely fit reviews.csv --text review --target stars -o stars.likely",
    "likely fit mail --text-dirs -o mail.likely",
)
@arguments.DATA
@arguments.MODEL_OUTPUT
@option("--target", "-t", metavar="NAME", help="The column that holds the label; without one, a model of all columns.")
@arguments.CLASSIFIER
@option(
    "--joint",
    type=click.Choice(["tree", "full", "naive"]),
    help="What answers of a classifier all but the class, such as what a missing cell was: trees of the columns "
    "and the class, a model of all columns, which takes long, or independent columns.  [default: tree]",
)
@flag("--forest", help="Let a forest of trees compare the classes, too: more often right, and slower to fit.")
@flag("--text-dirs", help="DATA is a folder with one folder for each label, in which every file is a text.")
@arguments.JSON
def fit(
    data: Sequence[str],
    output: str,
    target: str | None,
    new: New,
    joint: str | None,
    forest: bool,
    form: str | None,
    text_dirs: bool,
    as_json: bool,
) -> None:
    """Learn from a table, missing cells and all, and save the model: of a target, or without one of all columns."""
    check_model_output(output, data, form, text_dirs=text_dirs)
    start = perf_counter()
    if text_dirs:
        from likely.cli.io import LABEL, TEXT, folders_of

        rows, target = folders_of(data), target or LABEL
        new = new._replace(columns={TEXT: "text", **new.columns})
    elif target is None:
        whole, rows = new.whole(joint, forest=forest), opened(data, form, new.missing)
        with progress_bar(rows, "learning"):
            whole.fit(rows)
        _save(whole, output, as_json, start)
        return
    else:
        rows = opened(data, form, new.missing)
    with read_meanwhile(rows, data):
        model = new.model(joint, forest=forest)
    with progress_bar(rows, "learning"):
        model.fit(rows, target)
    _save(model, output, as_json, start)


@application.command(
    "likely predict income.likely new.csv",
    "likely predict income.likely new.csv -o answers.parquet --only",
    "cat new.jsonl | likely predict income.likely - --format jsonl | head",
    "echo 'win a prize now' | likely predict mail.likely -",
)
@arguments.MODEL
@arguments.ROWS
@arguments.ANSWERED_ROWS
@option("--of", metavar="NAME", help="Of a model of a whole table: which column to predict; by default the group.")
@arguments.GIVEN
@option(
    "--coverage",
    type=float,
    metavar="SHARE",
    help="With --of a column of numbers or dates: the probability that the interval has, by default 0.9.",
)
@option(
    "--probabilities/--no-probabilities",
    default=True,
    help="Write the probability of every class, or the interval of a number.",
)
@flag("--only", help="Write the answers without the rows.")
@arguments.ESCAPE_FORMULAS
def predict(
    model: str,
    data: str,
    out: Output,
    form: str | None,
    missing: Sequence[str],
    of: str | None,
    given: Sequence[str],
    coverage: float | None,
    probabilities: bool,
    only: bool,
) -> None:
    """Write rows with the likeliest class of each, and the probability of every class; or with a column, or groups."""
    from likely.cli.models import Loaded

    to = out.format([model, data], form)
    loaded = Loaded.read(model, missing)
    if loaded.whole:
        from likely.cli.whole_table import check_coverage, grouped, predicted

        rows, how = opened_to_answer(data, form, to, loaded.missing), {"probabilities": probabilities, "only": only}
        with progress_bar(rows, "predicting"):
            if of is None:
                check_coverage(coverage, "no --of")
                out.write(grouped(loaded, rows, given, **how), to)
            else:
                out.write(predicted(loaded, rows, of, given, coverage, **how), to)
        return
    if of is not None or given or coverage is not None:
        raise ValueError(
            f"expected --of, --given and --coverage only of a model of a whole table, got one of {loaded.target!r}"
        )
    rows = _lines(loaded, data, form) or opened_to_answer(data, form, to, loaded.missing)
    with progress_bar(rows, "predicting"):
        out.write(loaded.predicted(rows, probabilities=probabilities, only=only), to)


@application.command(
    "likely evaluate people.csv --target income",
    "likely evaluate people.csv --target income --model naive-bayes --folds 5 --json",
    "likely evaluate people.csv                 # a model of all columns",
    "likely evaluate people.likely new.csv      # such a model that was fitted, on other rows",
)
@argument(
    "data",
    "[MODEL] DATA...",
    "Tables, as of likely fit; or a model of all columns, written by it, and other rows.",
    nargs=-1,
    required=True,
)
@option("--target", "-t", metavar="NAME", help="The column that holds the label; without one, all columns are judged.")
@option("--folds", least=2, help="Into how many cross-validation folds the rows are split: 10, of all columns 5.")
@arguments.CLASSIFIER
@arguments.JSON
def evaluate(
    data: Sequence[str], target: str | None, folds: int | None, new: New, form: str | None, as_json: bool
) -> None:
    """Say how well a model predicts rows that it has not seen: each by a model of the others, or by one from a file."""
    from likely.cli import render
    from likely.persistence.file import is_model

    if target is None or is_model(data[0]):
        from likely.cli.whole_table import evaluated, print_table_evaluation

        found = evaluated(data, target, folds, new, form)
        print_table_evaluation(found, as_json=as_json)
        return
    model = new.model()
    rows = opened(data, form, new.missing)
    with progress_bar(rows, "evaluating"):
        measured = model.evaluate(rows, target, folds=folds or _FOLDS, random_state=new.seed)
    if as_json:
        measures = {name.lower().replace("-", "_").replace(" ", "_"): x for name, x in measured.measures.items()}
        classes, confusion = measured.classes.tolist(), measured.confusion.tolist()
        counts = {"target": target, "rows": measured.rows, "folds": measured.folds}
        render.print_json({**counts, **measures, "classes": classes, "confusion": confusion})
    else:
        render.print_evaluation(measured)


@application.command(
    "likely cluster people.csv -k 3 -o groups.likely",
    "likely cluster people.csv -k auto -o groups.likely --ignore id",
    "likely predict groups.likely people.csv   # the rows with the group of each",
)
@arguments.DATA
@arguments.MODEL_OUTPUT
@option(
    "--groups", "-k", metavar="K", default="auto", help="How many groups to find, or auto: as many as the BIC favours."
)
@option(
    "--covariance",
    type=click.Choice(["auto", "full", "diagonal", "spherical"]),
    default="auto",
    help="How columns of numbers are correlated in a group.",
)
@flag("--tied", help="One covariance of all groups.")
@option("--starts", least=1, default=1, help="How often EM is started; the best fit is kept.")
@option("--most", least=1, default=9, help="How many groups -k auto tries at most.")
@arguments.COLUMNS
@arguments.MISSING
@arguments.INPUT_FORMAT
@option("--seed", least=0, default=0, help="By which it is drawn where EM starts.")
@arguments.JSON
def cluster(
    data: Sequence[str],
    output: str,
    groups: str,
    covariance: str,
    tied: bool,
    starts: int,
    most: int,
    columns: dict[str, str],
    missing: Sequence[str],
    form: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find groups of rows that nobody has labelled, missing cells and all, and save the model."""
    check_model_output(output, data, form)
    start = perf_counter()
    if groups != "auto" and (not groups.isdecimal() or int(groups) < 1):
        raise ValueError(f"expected -k as a whole number of groups of 1 or more, or auto, got {groups!r}")
    rows = opened(data, form, missing)
    with progress_bar(rows, "reading"):
        from likely.data.labelled import as_arrow_table

        table = as_arrow_table(rows)
    from likely.estimators.mixture import Mixture

    # Spheres are not tried unasked: they would depend on the units of the columns.
    structures = [("full", True)] if tied else [("diagonal", False), ("full", False), ("full", True)]
    found = Mixture.select(
        table,
        range(1, min(most, max(table.num_rows, 1)) + 1) if groups == "auto" else [int(groups)],
        structures if covariance == "auto" else [(covariance, tied)],
        columns=columns or "auto",
        missing=tuple(missing),
        n_starts=starts,
        random_state=seed,
    )
    model, tried = found.best, [each._asdict() for each in found.table]
    _save(model, output, as_json, start, {"log_likelihood": model.log_likelihood_, "tried": tried})
    if len(tried) > 1 and not as_json:
        print(f"chosen from {len(tried)} mixtures by BIC")


@application.command(
    "likely explain income.likely new.csv",
    "likely explain income.likely new.csv --row 3 --label '>50K'",
)
@arguments.MODEL
@arguments.ROWS
@several("--row", least=1, default=[1], help="Which row, counted from 1. May be repeated.")
@option("--of", metavar="NAME", help="Of a model of a whole table: which column to explain.")
@arguments.GIVEN
@option("--label", help="For which class; by default the likeliest.")
@option("--against", help="Against which class; by default the next.")
@arguments.INPUT_FORMAT
@arguments.MORE_MISSING
@arguments.JSON
def explain(
    model: str,
    data: str,
    row: Sequence[int],
    of: str | None,
    given: Sequence[str],
    label: str | None,
    against: str | None,
    form: str | None,
    missing: Sequence[str],
    as_json: bool,
) -> None:
    """Say what each cell of a row contributes to its class, in log-odds that add up."""
    from likely.cli import render
    from likely.cli.models import Loaded

    loaded = Loaded.read(model, missing)
    rows = _lines(loaded, data, form) or opened([data], form, loaded.missing, typed=False)
    table = loaded.table(rows_at(rows, row), [number - 1 for number in row])
    if loaded.whole:
        from likely.cli.whole_table import print_column_explanations

        if of is None:
            raise ValueError("expected --of NAME, the column to explain, of a model of a whole table, got none")
        if label is not None or against is not None:
            raise ValueError("expected --label and --against only of a model with a target, got one of a whole table")
        print_column_explanations(loaded, table, of, row, given, as_json=as_json)
        return
    if of is not None or given:
        raise ValueError(f"expected --of and --given only of a model of a whole table, got one of {loaded.target!r}")
    found = loaded.model.explain(table, loaded.label(label), loaded.label(against))
    if as_json:
        render.print_json({"rows": [render.explanation_dict(found, i, number) for i, number in enumerate(row)]})
    else:
        render.print_explanations(found, row, loaded.model.classes_, loaded.model.predict_proba(table))


@application.command(
    "likely impute income.likely holes.csv -o whole.csv",
    "likely impute income.likely holes.csv --how draw --seed 1",
)
@arguments.MODEL
@arguments.ROWS
@arguments.ANSWERED_ROWS
@option(
    "--how",
    type=click.Choice(["mean", "draw"]),
    default="mean",
    help="The mean of a number and the likeliest category; or a draw of all that could be.",
)
@option("--draws", least=1, help="With --how draw: write every row so often, each with the number of its draw.")
@arguments.GIVEN
@arguments.DRAW_SEED
@arguments.ESCAPE_FORMULAS
def impute(
    model: str,
    data: str,
    out: Output,
    form: str | None,
    missing: Sequence[str],
    how: str,
    draws: int | None,
    given: Sequence[str],
    seed: int | None,
) -> None:
    """Write the same rows with their missing cells filled, given all other cells, and the label if there is one."""
    from likely.cli.models import Loaded

    to = out.format([model, data], form)
    loaded = Loaded.read(model, missing)
    if draws is not None and how != "draw":
        raise ValueError(f"expected --how draw with --draws, got --how {how}")
    rows = opened_to_answer(data, form, to, loaded.missing, verbatim=False)
    with progress_bar(rows, "filling"):
        out.write(loaded.filled(rows, how, seed, draws, given), to)


@application.command(
    "likely sample income.likely -n 5",
    "likely sample income.likely -n 1000 --given sex=Female --given 'income=>50K' -o women.csv",
)
@arguments.MODEL
@option("-n", "--number", least=0, default=10, help="How many rows.")
@arguments.GIVEN
@flag("--missing-cells", help="Let cells be missing as those of the learned rows are.")
@arguments.DRAW_SEED
@arguments.NEW_ROWS
def sample(model: str, number: int, given: Sequence[str], missing_cells: bool, seed: int | None, out: Output) -> None:
    """Write new rows, drawn from what the model knows, each with its label."""
    from likely.cli.models import Loaded

    to = out.format([model])
    out.write(Loaded.read(model).drawn(number, given, seed, missing=missing_cells), to)


@application.command(
    "likely ask people.likely --of income",
    "likely ask people.likely --of income --given age=30..40 --given 'job=clerk|sales'",
    "likely ask people.likely --of age --given income=missing",
)
@arguments.MODEL
@option("--of", metavar="NAME", required=True, help="The column that is asked about.")
@arguments.GIVEN
@arguments.JSON
def ask(model: str, of: str, given: Sequence[str], as_json: bool) -> None:
    """Print the distribution of a column, given what is known of others: a model of a whole table."""
    from likely.cli.models import Loaded
    from likely.cli.whole_table import check_whole, print_distribution

    loaded = Loaded.read(model)
    check_whole(loaded.model, "ask")
    print_distribution(loaded, of, given, as_json=as_json)


@application.command(
    "likely outliers people.likely people.csv",
    "likely outliers people.likely people.csv -n 100 -o odd.csv",
)
@arguments.MODEL
@arguments.ROWS
@arguments.ANSWERED_ROWS
@option("-n", "--number", least=1, default=20, help="How many rows.")
@arguments.GIVEN
@arguments.ESCAPE_FORMULAS
def outliers(
    model: str,
    data: str,
    out: Output,
    form: str | None,
    missing: Sequence[str],
    number: int,
    given: Sequence[str],
) -> None:
    """Write the most surprising rows, each with the cell to blame: a model of a whole table."""
    from likely.cli.models import Loaded
    from likely.cli.whole_table import check_whole
    from likely.cli.whole_table import outliers as most_surprising

    to = out.format([model, data], form)
    loaded = Loaded.read(model, missing)
    check_whole(loaded.model, "outliers")
    rows = opened_to_answer(data, form, to, loaded.missing)
    with progress_bar(rows, "looking"):
        out.write(most_surprising(loaded, rows, number, given), to)


@application.command("likely dependence people.likely", "likely dependence people.likely -n 50 --json")
@arguments.MODEL
@option("-n", "--number", least=1, default=20, help="How many pairs.")
@arguments.JSON
def dependence(model: str, number: int, as_json: bool) -> None:
    """Print which columns depend on each other most: a model of a whole table."""
    from likely.cli.models import Loaded
    from likely.cli.whole_table import check_whole, print_dependence

    loaded = Loaded.read(model)
    check_whole(loaded.model, "dependence")
    print_dependence(loaded.model, number, as_json=as_json)


@application.command(
    "likely inspect income.likely",
    "likely inspect people.csv   # what its columns would be taken for",
)
@argument("file", "FILE", "A model file, or a table: a file, a folder, or -.")
@arguments.MISSING
@arguments.INPUT_FORMAT
@arguments.JSON
def inspect(file: str, missing: Sequence[str], form: str | None, as_json: bool) -> None:
    """Show what a model has learned, or what the columns of a table would be taken for."""
    from likely.cli import render
    from likely.persistence.file import is_model

    if form is not None or not is_model(file):
        if form is None and os.path.isfile(file) and Format.of(file) is None:
            raise ValueError(
                f"expected a model file, or a table whose name ends with its format, got {file!r}, which is neither: "
                f"if it is a table, say --format, one of {KNOWN_FORMATS}"
            )
        from likely.data.schema import Schema

        rows = opened([file], form, missing)
        with progress_bar(rows, "looking"):
            schema = Schema.infer(rows)
        render.print_schema(schema, file, as_json=as_json)
        return
    from likely.cli.models import described
    from likely.persistence.saved import load

    model = load(file)
    found = {"model": file, **described(model)}
    whole = found["kind"] == "Model"
    if whole:
        from likely.cli.whole_table import described_groups, print_whole

        found["groups"] = described_groups(model)
    if as_json:
        render.print_json(found)
    elif whole:
        print_whole(found)
    else:
        render.print_model(found)


@application.command(
    "likely fit north.csv --target income -o north.likely --model naive-bayes",
    "likely merge north.likely south.likely -o both.likely",
)
@arguments.MODELS
@arguments.MODEL_OUTPUT
@arguments.JSON
def merge(models: Sequence[str], output: str, as_json: bool) -> None:
    """Make one model of several, as if one had seen all their rows."""
    from likely.messages import warn
    from likely.persistence.saved import load

    check_model_output(output, models)
    if len(set(map(os.path.realpath, models))) < len(models):
        warn("the same model file is given more than once: its rows are counted as often")
    first, *others = [load(path) for path in models]
    first.merge(*others)
    _save(first, output, as_json)


@application.command("likely demo", "likely demo --seed 7   # draw other new birds")
@option("--seed", least=0, default=0, help="Which new birds to draw.")
def demo(seed: int) -> None:
    """Fit 344 penguins, missing cells and all; then score, explain, fill a missing cell, and draw new ones."""
    from likely.cli.demo import show

    show(seed)


def _save(
    model: Any, output: str, as_json: bool, start: float | None = None, more: dict[str, Any] | None = None
) -> None:
    """Save a model, and print what it is; ``start``: when its fit began, ``more``: what only JSON says of it."""
    from likely.cli import render
    from likely.cli.models import described

    model.save(output)
    took = {} if start is None else {"seconds": round(perf_counter() - start, 3)}
    found = {"model": output, **took, **described(model)}
    if as_json:
        render.print_json({**found, **(more or {})})
    else:
        from likely.cli.whole_table import whole_text

        print(whole_text(found) if found["kind"] == "Model" else render.model_text(found))


def _lines(loaded: "Loaded", data: str, form: str | None) -> "Rows | None":
    """Open lines of text, as standard input and .txt files are to a model of one column of text; None of other rows."""
    if form != LINES and not (form is None and loaded.text and (data == "-" or data.endswith(f".{LINES}"))):
        return None
    if loaded.text is None:
        raise ValueError("expected a model of one column of text for lines, got one of others: give a table")
    return lines_of(data, loaded.text)
