"""The command that finds groups: cluster."""

from time import perf_counter
from typing import Annotated, Any

from likely.cli import options
from likely.cli.learning import kinds_of
from likely.cli.streams import check_model_place, opened
from likely.data.progress import watched

AUTO = "auto"


def cluster(
    data: options.Data,
    output: options.ModelOutput,
    groups: Annotated[
        str, options.Option("--groups -k", "How many groups to find, or auto: as many as the BIC favours.", "K")
    ] = AUTO,
    covariance: Annotated[
        options.Covariance, options.Option("--covariance", "How columns of numbers hang together in a group.")
    ] = options.Covariance.AUTO,
    tied: Annotated[bool, options.Option("--tied", "One covariance of all groups.")] = False,
    starts: Annotated[int, options.Option("--starts", "How often to begin; the best is kept.", least=1)] = 1,
    most: Annotated[int, options.Option("--most", "How many groups -k auto tries at most.", least=1)] = 9,
    column: options.Columns = (),
    ignore: options.Ignored = (),
    text: options.Texts = (),
    missing: options.Missing = (),
    form: options.InputFormat = None,
    seed: options.StartSeed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Find groups of rows that nobody has labelled, holes and all, and save the model."""
    from likely.cli.describing import as_text, described, printed_json

    check_model_place(output, data, form)
    start = perf_counter()
    number = _number(groups)
    rows = opened(data, form, missing)
    settings: dict[str, Any] = {
        "columns": kinds_of(column, ignore, text) or "auto",
        "missing": tuple(missing),
        "n_starts": starts,
        "random_state": seed,
    }
    with watched(rows, "reading"):
        from likely.engines.labelled import together

        table = together(rows)
    model, tried = _found(table, number, most, _structures(covariance, tied), settings)
    model.save(output)
    found = {"model": output, "seconds": round(perf_counter() - start, 3), **described(model)}
    if as_json:
        printed_json({**found, "log_likelihood": model.log_likelihood_, "tried": [each._asdict() for each in tried]})
        return
    print(as_text(found))
    if len(tried) > 1:
        print(f"chosen from {len(tried)} mixtures by BIC")


def _found(table: Any, number: int | None, most: int, structures: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Return the best mixture, and all that were tried."""
    from likely.estimators.mixture import Mixture

    numbers = [number] if number is not None else range(1, min(most, max(table.num_rows, 1)) + 1)
    best = Mixture.select(table, numbers, structures, **settings)
    return best.best, best.table


def _number(groups: str) -> int | None:
    """Return how many groups to find; None if that is to be found out."""
    if groups == AUTO:
        return None
    if not groups.isdecimal() or int(groups) < 1:
        raise ValueError(f"expected -k as a whole number of groups of 1 or more, or auto, got {groups!r}")
    return int(groups)


def _structures(covariance: options.Covariance, tied: bool) -> list[tuple[str, bool]]:
    """Return pairs of a covariance and whether it is tied: spheres would depend on the units of the columns."""
    if covariance != options.Covariance.AUTO:
        return [(covariance.value, tied)]
    return [("full", True)] if tied else [("diagonal", False), ("full", False), ("full", True)]
