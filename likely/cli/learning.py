"""Commands that make models: fit, evaluate, merge."""

import csv
import os
from collections.abc import Sequence
from time import perf_counter
from typing import Annotated, Any

from likely.cli import options
from likely.cli.streams import check_model_place, opened, read_meanwhile
from likely.data.progress import watched


def fit(
    data: options.Data,
    output: options.ModelOutput,
    target: options.TargetUnlessFolders = None,
    model: options.ModelKind = options.Kind.CLASSIFIER,
    column: options.Columns = (),
    ignore: options.Ignored = (),
    text: options.Texts = (),
    together: options.Together = (),
    missing: options.Missing = (),
    form: options.InputFormat = None,
    calibrate: options.Calibrate = True,
    unlabelled: options.Unlabelled = "auto",
    seed: options.Seed = 0,
    text_dirs: options.TextFolders = False,
    as_json: options.AsJson = False,
) -> None:
    """Learn from a table, holes and all, and save the model."""
    from likely.cli.describing import as_text, described, printed_json

    check_model_place(output, data, form, text_dirs=text_dirs)
    start = perf_counter()
    kinds = kinds_of(column, ignore, text)
    if text_dirs:
        from likely.cli.texts import LABEL, TEXT, folders_of

        rows, target, kinds = folders_of(list(data)), target or LABEL, {TEXT: "text", **kinds}
    elif target is None:
        raise ValueError("expected --target NAME, the column that holds the label, got none")
    else:
        rows = opened(data, form, missing)
    with read_meanwhile(rows, data):
        begun = _new(model, kinds, together, missing, calibrate, unlabelled, seed)
    with watched(rows, "learning"):
        begun.fit(rows, target)
    begun.save(output)
    found = {"model": output, "seconds": round(perf_counter() - start, 3), **described(begun)}
    if as_json:
        printed_json(found)
    else:
        print(as_text(found))


def evaluate(
    data: options.Data,
    target: options.Target,
    folds: Annotated[int, options.Option("--folds", "How many parts the rows are dealt into.", least=2)] = 10,
    model: options.ModelKind = options.Kind.CLASSIFIER,
    column: options.Columns = (),
    ignore: options.Ignored = (),
    text: options.Texts = (),
    together: options.Together = (),
    missing: options.Missing = (),
    form: options.InputFormat = None,
    calibrate: options.Calibrate = True,
    unlabelled: options.Unlabelled = "auto",
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Say how well a model predicts rows that it has not seen: each by a model of the others."""
    begun = _new(model, kinds_of(column, ignore, text), together, missing, calibrate, unlabelled, seed)
    rows = opened(data, form, missing)
    with watched(rows, "evaluating"):
        found = begun.evaluate(rows, target, folds=folds, random_state=seed)
    if as_json:
        from likely.cli.describing import printed_json

        measures = {name.lower().replace("-", "_").replace(" ", "_"): x for name, x in found.measures.items()}
        printed_json(
            {
                "target": target,
                "rows": found.rows,
                "folds": found.folds,
                **measures,
                "classes": found.classes.tolist(),
                "confusion": found.confusion.tolist(),
            }
        )
        return
    from rich.console import Console

    from likely.cli.tables import confusion_table, measures_table

    console = Console(highlight=False)
    console.print(
        f"[bold]{found.rows:,}[/bold] rows, each predicted by a model of the other "
        f"{found.folds - 1} of {found.folds} folds.\n"
    )
    console.print(measures_table(found))
    console.print()
    console.print(confusion_table(found))


def merge(
    models: options.Models,
    output: options.ModelOutput,
    as_json: options.AsJson = False,
) -> None:
    """Make one model of several, as if one had seen all their rows."""
    from likely.cli.describing import as_text, described, printed_json
    from likely.messages import tell
    from likely.persistence.registry import load

    check_model_place(output, models)
    if len(set(map(os.path.realpath, models))) < len(models):
        tell("the same model file is given more than once: its rows are counted as often")
    first, *others = [load(path) for path in models]
    first.merge(*others)
    first.save(output)
    found = {"model": output, **described(first)}
    if as_json:
        printed_json(found)
    else:
        print(as_text(found))


def _new(
    kind: options.Kind,
    columns: dict[str, str],
    together: Sequence[str],
    missing: Sequence[str],
    calibrate: bool,
    unlabelled: str,
    seed: int,
) -> Any:
    from likely.estimators import Classifier, NaiveBayes

    common: dict[str, Any] = {
        "missing": tuple(missing),
        "together": [next(csv.reader([names])) for names in together],
        "unlabelled": unlabelled if unlabelled == "auto" else _weight(unlabelled),
    }
    if kind == options.Kind.NAIVE_BAYES:
        return NaiveBayes(columns or "auto", **common)
    return Classifier(columns or "auto", calibrate=calibrate, random_state=seed, **common)


def kinds_of(given: Sequence[str], ignored: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    """Return what columns are by name, from NAME=KIND."""
    kinds = dict.fromkeys(ignored, "ignore") | dict.fromkeys(texts, "text")
    for each in given:
        name, equals, kind = each.rpartition("=")
        if not equals or not name or not kind:
            raise ValueError(f"expected --column NAME=KIND, such as zip=category, got {each!r}")
        kinds[name] = kind
    return kinds


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected --unlabelled as a number of 0 or more, or auto, got {text!r}") from None
