"""What the command line asks of a model of a whole table: evidence as text, distributions, outliers, dependence."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.cli.arguments import New
from likely.cli.io import opened
from likely.cli.models import Loaded
from likely.cli.render import literal, new_console, plain_table
from likely.data.progress import progress_bar
from likely.data.schema import check_name
from likely.lazy import pa
from likely.messages import shown

if TYPE_CHECKING:
    from likely.data.rows import Rows
    from likely.model.table_evaluation import TableEvaluation

_BARS, _MOST_VALUES, _WIDTH = 12, 20, 30
# Columns that are shown of a group, and the nats by which they must differ from those of all rows.
_MOST_SPECIAL, _SPECIAL = 3, 0.02
_FOLDS = 5


def check_whole(model: Any, command: str) -> None:
    """Raise unless a model is one of a whole table."""
    if type(model).__name__ != "Model":
        raise ValueError(
            f"expected a model of a whole table for likely {command}, from likely fit without --target, got "
            f"{type(model).__name__}"
        )


def evidence(loaded: Loaded, given: Sequence[str]) -> dict[Any, Any]:
    """Return what is given from NAME=VALUE, NAME=LOW..HIGH, NAME=ONE|OTHER or NAME=missing, by column.

    A category that is written so itself comes first.
    """
    model = loaded.model
    joint, names = model.fitted().joint, model.fitted().columns.names
    found: dict[Any, Any] = {}
    for name, text in loaded.split_given(given).items():
        column = name if names is not None else int(name)
        kind = next((c.kind for c in loaded.schema.columns if c.name == name), "number")
        j = model.fitted().reader.column(column)
        categories = [str(value) for value in joint.names[j].tolist()] if j in joint.names else []
        kind = "category" if categories else kind
        found[column] = _value(text, kind, categories, name)
    return found


def _value(text: str, kind: str, categories: Sequence[str], name: str) -> Any:
    from likely.model.given import MISSING

    if text in categories:
        return text
    if text == "missing":
        return MISSING
    if kind == "text":
        return text
    if "|" in text:
        return {_single(each, kind, name) for each in text.split("|")}
    if ".." in text and kind not in ("category", "boolean"):
        low, _, high = text.partition("..")
        return (_single(low, kind, name) if low else None), (_single(high, kind, name) if high else None)
    if categories:
        check_name(text, categories, f"expected one of the categories of {name!r} in --given")
    return _single(text, kind, name)


def _single(text: str, kind: str, name: str) -> str | float:
    """Return one value: words and dates as they are, numbers as such."""
    if kind in ("category", "boolean", "date"):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"expected a number, a range LOW..HIGH, or missing, for --given {name}=, got {text!r}"
        ) from None


def print_distribution(loaded: Loaded, of: str, given: Sequence[str], *, as_json: bool) -> None:
    """Print the distribution of a column: its values with bars, or of a number mean, quantiles and a histogram."""
    from likely.cli import render

    model, known = loaded.model, evidence(loaded, given)
    answer = model.distribution(_column(loaded, of), known)
    numeric = answer.values.dtype.kind in "fiuM" and not _is_yes_no(loaded, of)
    if not numeric:
        order, names = np.argsort(-answer.p, kind="stable"), _names(loaded, of, answer.values)
        lines = [(names[k], float(answer.p[k])) for k in order.tolist()]
        if as_json:
            render.print_json({"of": of, "values": [{"value": v, "p": p} for v, p in lines]})
            return
        _print_bars(lines[:_MOST_VALUES], len(lines) - _MOST_VALUES)
        return
    kind, values = answer.values.dtype, answer.values
    if kind.kind == "M":
        values = values.astype(np.int64).astype(np.float64)
    running = np.cumsum(answer.p)
    quantile = {q: float(values[min(np.searchsorted(running, q - 1e-12), len(running) - 1)]) for q in _QUANTILES}
    mean = float(values @ answer.p)
    if as_json:
        told = {q: _in_json(value, kind) for q, value in quantile.items()}
        found = {"of": of, "mean": _in_json(mean, kind), "quantiles": {str(q): value for q, value in told.items()}}
        render.print_json(found)
        return
    low, high, middle = (_shown(quantile[q], kind) for q in (0.05, 0.95, 0.5))
    print(f"mean {_shown(mean, kind)}, median {middle}, 90 % between {low} and {high}")
    _print_bars(_histogram(values, answer.p, kind), 0)


def _answered(value: Any) -> str:
    """Return a number or a date that was answered, as a person writes it."""
    return _shown(float(value.astype(np.int64)), value.dtype) if value.dtype.kind == "M" else shown(float(value))


def _in_json(value: float, kind: np.dtype[Any]) -> float | str:
    return str(_date(value, kind)) if kind.kind == "M" else value


def _shown(value: float, kind: np.dtype[Any]) -> str:
    """Return a number, or a date that is counted in the unit of a type of NumPy's, as a person writes it."""
    if kind.kind != "M":
        return shown(value)
    date = _date(value, kind)
    return str(date if np.datetime_data(kind)[0] == "D" else date.astype("datetime64[s]")).replace("T", " ")


def _date(value: float, kind: np.dtype[Any]) -> np.datetime64:
    found: np.datetime64 = np.int64(round(value)).astype(kind)
    return found


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _is_yes_no(loaded: Loaded, of: str) -> bool:
    return any(column.name == of and column.kind == "boolean" for column in loaded.schema.columns)


def _written(loaded: Loaded, of: str, values: Any) -> "pa.Array":
    """Return values of a column that is no number as they are written in files: yes and no in its own words."""
    from likely.data.frames import in_words

    words = next((column.words for column in loaded.schema.columns if column.name == of), ())
    return in_words(values, words) if words and values.dtype == bool else pa.array(values)


def _names(loaded: Loaded, of: str, values: Any) -> list[str]:
    from likely.model.questions import labels_in_text

    return labels_in_text(_written(loaded, of, values))


def _column(loaded: Loaded, of: str) -> Any:
    """Return the column of that name; of a matrix, its number."""
    return of if loaded.model.fitted().columns.names is not None else int(of) if of.isdecimal() else of


def _histogram(values: Any, p: Any, kind: np.dtype[Any]) -> list[tuple[str, float]]:
    """Return intervals of the range that has most of the probability, and of each how much."""
    there = values[p > 1e-6]
    if np.all(there == np.rint(there)) and kind.kind != "M":
        return _whole_histogram(values, p, there)
    running = np.cumsum(p)
    first, last = (values[min(np.searchsorted(running, q), len(values) - 1)] for q in (0.005, 0.995))
    if first == last:
        return [(_shown(float(first), kind), 1.0)]
    edges = np.linspace(first, last, _BARS + 1)
    index = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, _BARS - 1)
    found = np.bincount(index, p, minlength=_BARS)
    ends = [_shown(float(edge), kind) for edge in edges]
    return [(f"{a} – {b}", float(x)) for a, b, x in zip(ends, ends[1:], found)]  # noqa: B905


def _whole_histogram(values: Any, p: Any, there: Any) -> list[tuple[str, float]]:
    """Return whole numbers, or intervals of them if they are many, and of each how much."""
    low, high = int(there.min()), int(there.max())
    step = max(1, -(-(high - low + 1) // _BARS)) if high - low + 1 > _MOST_VALUES else 1
    index = ((np.clip(np.rint(values), low, high) - low) // step).astype(np.int64)
    found = np.bincount(index, p)
    starts = [low + step * k for k in range(len(found))]
    names = [f"{a:,}" if step == 1 else f"{a:,} – {min(a + step - 1, high):,}" for a in starts]
    return list(zip(names, found.tolist(), strict=True))


def _print_bars(lines: Sequence[tuple[str, float]], more: int) -> None:
    console = new_console()
    block = "#" if console.options.ascii_only else "█"
    most = max([p for _, p in lines] + [1e-300])
    table = plain_table("", "p", "", right=("p",))
    for name, p in lines:
        table.add_row(literal(name), f"{100 * p:.1f} %", literal(block * round(_WIDTH * p / most), "green"))
    console.print(table)
    if more > 0:
        console.print(f"and {more:,} more")


def outliers(loaded: Loaded, rows: "Rows", most: int, given: Sequence[str]) -> Iterator["pa.Table"]:
    """Return the most surprising rows, each with its surprise, and the cell to blame with its own."""
    known = evidence(loaded, given)
    kept: list[tuple[float, int, Any]] = []
    first = 0
    schema = rows.schema
    for batch, table in loaded.tables(rows):
        if table is None:
            continue
        found = loaded.model.surprise(table, known)
        worst = found.worst()
        cells = np.where(np.isnan(found.cells), -np.inf, found.cells).max(axis=1)
        for i in np.argsort(-found.rows, kind="stable")[:most].tolist():
            line = (batch.slice(i, 1), str(worst[i]), float(cells[i]))
            kept.append((float(found.rows[i]), first + i, line))
        kept = sorted(kept, key=lambda each: (-each[0], each[1]))[:most]
        first += batch.num_rows
    answers = {
        "row": pa.array([number + 1 for _, number, _ in kept], pa.int64()),
        "surprise": pa.array([surprise for surprise, _, _ in kept], pa.float64()),
        "cell": pa.array([name for *_, (_, name, _) in kept], pa.string()),
        "cell_surprise": pa.array([x for *_, (_, _, x) in kept], pa.float64()),
    }
    batches = [
        pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch for *_, (batch, _, _) in kept
    ]
    whole = pa.concat_tables(batches) if batches else schema.empty_table()
    columns = {name: whole.column(name) for name in whole.schema.names if name not in answers}
    yield pa.table({**answers, **columns})


def grouped(
    loaded: Loaded, rows: "Rows", given: Sequence[str], *, probabilities: bool, only: bool
) -> Iterator["pa.Table"]:
    """Return the rows with the group of each, and the probability of every group."""
    model, known = loaded.model, evidence(loaded, given)
    k = len(model.group_weights_)
    for batch, table in loaded.tables(rows):
        p = np.empty((0, k)) if table is None else model.predict_proba(table, given=known)
        answers = {model.answers: pa.array(p.argmax(axis=1), pa.int64())}
        if probabilities:
            answers |= {f"p({group})": pa.array(p[:, group]) for group in range(k)}
        yield _beside(batch, answers, only=only)


def _beside(batch: Any, answers: dict[str, Any], *, only: bool) -> "pa.Table":
    """Return rows with answers beside them, or ``only`` these."""
    names = [] if only else [name for name in batch.schema.names if name not in answers]
    return pa.table({**{name: batch.column(name) for name in names}, **answers})


def check_coverage(coverage: float | None, without: str | None = None) -> None:
    """Raise if an interval is asked for that is none; ``without``: what was said, instead of what has one."""
    if coverage is None:
        return
    if without is not None:
        raise ValueError(f"expected --coverage with --of, a column of numbers or dates, got {without}")
    if not 0 < coverage < 1:
        raise ValueError(f"expected --coverage between 0 and 1, such as 0.9, got {coverage:g}")


def predicted(
    loaded: Loaded,
    rows: "Rows",
    of: str,
    given: Sequence[str],
    coverage: float | None = None,
    *,
    probabilities: bool,
    only: bool,
) -> Iterator["pa.Table"]:
    """Return the rows with what a column is expected to be: the likeliest value, or the mean with an interval."""
    model, known, column = loaded.model, evidence(loaded, given), _column(loaded, of)
    categories = _is_yes_no(loaded, of) or any(c.name == of and c.kind == "category" for c in loaded.schema.columns)
    check_coverage(coverage, f"{of!r}" if categories else None if probabilities else "--no-probabilities")
    held = coverage or 0.9
    ends = tuple(f"{100 * q:g} %" for q in np.round([(1 - held) / 2, (1 + held) / 2], 12))
    for batch, table in loaded.tables(rows):
        answers: dict[str, Any] = {}
        n = 0 if table is None else table.rows
        if categories:
            values = model.values_of(column)
            p = model.predict_proba(table, column, known) if n else np.empty((0, len(values)))
            answers[f"predicted {of}"] = _written(loaded, of, values).take(pa.array(p.argmax(axis=1), pa.int64()))
            if probabilities:
                answers |= {f"p({name})": pa.array(p[:, k]) for k, name in enumerate(_names(loaded, of, values))}
        else:
            nothing = np.empty((0, 2), dtype=model.distribution(column).values.dtype)
            mean = model.predict(table, column, known) if n else nothing[:, 0]
            answers[f"predicted {of}"] = pa.array(mean)
            if probabilities:
                found = model.predict_interval(table, column, held, known) if n else nothing
                answers |= {end: pa.array(found[:, k]) for k, end in enumerate(ends)}
        yield _beside(batch, answers, only=only)


def evaluated(
    data: Sequence[str], target: str | None, folds: int | None, new: "New", form: str | None
) -> "TableEvaluation":
    """Evaluate a model of all columns: one from a file, which comes first, on other rows, or by cross-validation."""
    from likely.persistence.file import is_model

    if not is_model(data[0]):
        rows = opened(data, form, new.missing)
        with progress_bar(rows, "evaluating"):
            return new.whole().evaluate(rows, folds=folds or _FOLDS, random_state=new.seed)  # type: ignore[no-any-return]
    model, *others = data
    if target is not None or folds is not None or new.said:
        raise ValueError(
            f"expected --missing, --format and --json alone beside the model file {model!r}, got another option: the "
            "model is fitted already"
        )
    loaded = Loaded.read(model, new.missing)
    check_whole(loaded.model, "evaluate MODEL DATA")
    if not others:
        raise ValueError(f"expected rows to evaluate {model!r} on, got none: likely evaluate {model} DATA")
    rows = opened(others, form, loaded.missing, typed=False)
    with progress_bar(rows, "evaluating"):
        return loaded.model.evaluate(rows)  # type: ignore[no-any-return]


def print_table_evaluation(found: "TableEvaluation", *, as_json: bool) -> None:
    """Print how good a model of all columns is on rows that it has not seen, column by column."""
    from likely.cli import render
    from likely.model.table_evaluation import HEADS

    lines = found.as_table().to_pylist()
    if as_json:
        columns = [{name: x for name, x in line.items() if x is not None} for line in lines]
        counts = {"target": None, "rows": found.rows, "folds": found.folds, "log_density": found.log_density}
        render.print_json({**counts, "columns": columns})
        return
    console = new_console()
    console.print(literal(f"{found.title}."))
    for kind, names, meaning in (
        ("number", ("rmse", "r2", "crps", "coverage"), _OF_NUMBERS),
        ("category", ("accuracy", "most_frequent", "log_loss", "unseen"), _OF_CATEGORIES),
    ):
        own = [line for line in lines if line["kind"] == kind]
        if not own:
            continue
        heads = [HEADS.get(name, name) for name in names]
        table = plain_table("column", "cells", *heads, right=("cells", *heads))
        for line in own:
            measures = (_measure(name, line[name]) for name in names)
            table.add_row(literal(line["column"]), f"{line['cells']:,}", *measures)
        for part in ("", table, literal(meaning, "dim")):
            console.print(part)


def _measure(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in ("accuracy", "most_frequent", "coverage"):
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


_OF_NUMBERS = "Each cell predicted by the others of its row; RMSE and CRPS in standard deviations of the column."
_OF_CATEGORIES = "Each cell predicted by the others of its row; beside it the share of the most frequent category."


def print_dependence(model: Any, most: int, *, as_json: bool) -> None:
    """Print which pairs of columns depend on each other most."""
    from likely.cli import render

    found = model.dependence().slice(0, most).to_pylist()
    if as_json:
        render.print_json({"pairs": found})
        return
    console = new_console()
    block = "#" if console.options.ascii_only else "█"
    table = plain_table("column", "other", "information", "share", "", right=("information", "share"))
    for pair in found:
        bar = literal(block * round(_WIDTH * pair["normalised"]), "green")
        information, share = f"{pair['information']:.3f}", f"{pair['normalised']:.2f}"
        table.add_row(literal(pair["column"]), literal(pair["other"]), information, share, bar)
    console.print(table)


def described_whole(model: Any) -> dict[str, Any]:
    """Return what a fitted model of a whole table is."""
    joint, schema = model.fitted().joint, getattr(model, "schema_", None)
    kinds = [{"name": c.name, "kind": c.kind} for c in schema.columns] if schema is not None else []
    rows = float(joint.rows)
    return {
        "kind": "Model",
        "target": None,
        "rows": int(rows) if rows.is_integer() else rows,
        "columns": kinds
        or [{"name": model.fitted().columns.name(j), "kind": "number"} for j in range(len(joint.columns))],
        "members": [{"name": kind, "weight": weight} for kind, weight in model.members_],
        "dependence": model.dependence().slice(0, 10).to_pylist(),
    }


def described_groups(model: Any) -> list[dict[str, Any]]:
    """Return what the groups of a model are like, the largest first, and of each the most special column first."""
    found: dict[int, dict[str, Any]] = {}
    for row in model.group_profiles_.to_pylist():
        of = {name: row.pop(name) for name in ("group", "weight")}
        found.setdefault(of["group"], {**of, "columns": []})["columns"].append(row)
    return list(found.values())


def whole_text(found: dict[str, Any]) -> str:
    """Return a few lines about a model of a whole table."""
    from collections import Counter

    from likely.messages import printable

    took = f" in {found['seconds']:.2g} s" if "seconds" in found else ""
    kinds = Counter(column["kind"] for column in found["columns"])
    members = ", ".join(f"{each['name']} × {each['weight']:.2f}" for each in found["members"])
    lines = [
        f"Model of the whole table: {found['rows']:,.0f} rows{took}",
        f"columns  {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}",
        f"members  {members}",
    ]
    pairs = [f"{each['column']} and {each['other']} {each['normalised']:.2f}" for each in found["dependence"][:3]]
    if pairs:
        lines.append(f"depend on each other most: {', '.join(pairs)}")
    return "\n".join(map(printable, [*lines, f"saved in {found['model']}"]))


def print_whole(found: dict[str, Any]) -> None:
    """Print the tables of what a model of a whole table has learned."""
    columns = plain_table("column", "kind")
    for column in found["columns"]:
        columns.add_row(literal(column["name"]), column["kind"])
    members = plain_table("member", "weight", right=("weight",))
    for member in found["members"]:
        members.add_row(member["name"], f"{member['weight']:.2f}")
    pairs = plain_table("column", "depends on", "share", right=("share",))
    for pair in found["dependence"]:
        pairs.add_row(literal(pair["column"]), literal(pair["other"]), f"{pair['normalised']:.2f}")
    groups = plain_table("group", "share", "special in", "there", right=("share",))
    for group in found["groups"]:
        special = [column for column in group["columns"] if column["difference"] >= _SPECIAL][:_MOST_SPECIAL]
        for at, column in enumerate(special or group["columns"][:1]):
            first = (str(group["group"]), f"{100 * group['weight']:.1f} %") if at == 0 else ("", "")
            groups.add_row(*first, literal(column["column"]), literal(column["profile"]))
    console = new_console()
    title = f"Model of the whole table: {found['rows']:,.6g} rows, {len(found['columns'])} columns"
    for part in (literal(title), "", columns, "", members, "", pairs, "", groups):
        console.print(part)


def print_column_explanations(
    loaded: Loaded, table: Any, of: str, rows: Sequence[int], given: Sequence[str], *, as_json: bool, half: int = 14
) -> None:
    """Print what each known cell of a row adds to the answer about a column."""
    from likely.cli import render
    from likely.statistics import plain_label

    found = loaded.model.explain(table, _column(loaded, of), evidence(loaded, given))
    numeric, dates = found.against is None, found.label.dtype.kind == "M"
    labels = [] if found.against is None else _names(loaded, of, found.label)
    others = [] if found.against is None else _names(loaded, of, found.against)
    if as_json:
        each = [
            {
                "row": number,
                "answer": str(found.label[i]) if dates else plain_label(found.label[i]),
                "against": None if numeric else plain_label(found.against[i]),
                "base": float(found.base[i]),
                "total": float(found.total[i]),
                "cells": [{"column": name, "adds": value} for name, value in found.top(len(found.cells[i]), i)],
            }
            for i, number in enumerate(rows)
        ]
        render.print_json({"of": of, "rows": each})
        return
    console = new_console()
    block = "#" if console.options.ascii_only else "█"
    for i, number in enumerate(rows):
        why = (
            str(found.label[i])
            if dates
            else shown(float(found.label[i]))
            if numeric
            else f"{labels[i]} and not {others[i]}"
        )
        console.print(literal(f"Row {number}: why {of} {why}?"))
        lines = [("before any cell", float(found.base[i])), *found.top(15, i)]
        most = max([abs(value) for _, value in lines[1:]] + [1e-300])
        adds = plain_table("", "adds", "", right=("adds",))
        for at, (name, value) in enumerate(lines):
            bar = "" if at == 0 else block * round(half * abs(value) / most)
            added = str(found.dates(found.base)[i]) if dates and at == 0 else f"{value:+,.4g}"
            adds.add_row(literal(name), added, literal(bar, "green" if value > 0 else "red"))
        total = str(found.dates(found.total)[i]) if dates else f"{found.total[i]:+,.4g}"
        adds.add_row("altogether", total, "", style="bold")
        console.print(adds)
