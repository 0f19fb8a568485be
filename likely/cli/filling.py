"""Commands that write cells that were not there: impute and sample."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from likely.cli import options
from likely.cli.streams import check_place, opened_to_answer, output_format, written
from likely.data.progress import watched

if TYPE_CHECKING:
    import pyarrow as pa

    from likely.cli.models import Loaded
    from likely.data.rows import Rows

# Rows are drawn so many at a time.
_AT_ONCE = 50_000


def impute(
    model: options.Model,
    data: options.Rows,
    output: options.Output = None,
    form: options.InputFormat = None,
    to: options.OutputFormat = None,
    missing: options.MoreMissing = (),
    how: Annotated[
        options.How,
        options.Option("--how", "The mean of a number and the likeliest category; or a draw of all that could be."),
    ] = options.How.MEAN,
    seed: options.DrawSeed = None,
    escape_formulas: options.EscapeFormulas = False,
) -> None:
    """Write the same rows with their holes filled, given all other cells, and the label if there is one."""
    from likely.cli.models import Loaded

    check_place(output, [model, data], form)
    out = output_format(output, to, form)
    loaded = Loaded.read(model, missing)
    rows = opened_to_answer(data, form, out, loaded.missing, verbatim=False)
    with watched(rows, "filling"):
        written(_filled(loaded, rows, how.value, seed), output, out, escape_formulas=escape_formulas)


def _filled(loaded: "Loaded", rows: "Rows", how: str, seed: int | None) -> Iterator["pa.Table"]:
    import numpy as np
    import pyarrow as pa

    from likely.data.arrow import recast

    generator = np.random.default_rng(seed)
    types = _types(loaded, rows.schema)
    for batch, table in loaded.tables(rows):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if table is not None:
            columns |= loaded.filled(batch, table, how, generator)
        yield pa.table({name: recast(column, types[name]) for name, column in columns.items()})


def _types(loaded: "Loaded", schema: "pa.Schema") -> "dict[str, pa.DataType]":
    """Return the type of every column after its holes are filled: the same in all batches."""
    import pyarrow as pa

    kinds = {column.name: column.kind for column in loaded.schema.columns}
    by_kind = {"number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}
    types = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        wanted = by_kind.get(kinds.get(name, ""))
        if pa.types.is_null(kind):
            kind = wanted or pa.string()
        elif wanted is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            # A column of whole numbers has its own type, which may be larger; yes and no are written as 1 and 0.
            wanted = pa.int64() if pa.types.is_boolean(wanted) else wanted
            kind = kind if wanted == pa.int64() and pa.types.is_integer(kind) else wanted
        types[name] = kind
    return types


def sample(
    model: options.Model,
    number: Annotated[int, options.Option("-n --number", "How many rows.", least=0)] = 10,
    given: Annotated[
        Sequence[str], options.Option("--given -g", "A cell that all rows have. May be repeated.", "NAME=VALUE")
    ] = (),
    seed: options.DrawSeed = None,
    output: options.Output = None,
    form: options.DrawnFormat = None,
    escape_formulas: options.EscapeFormulas = False,
) -> None:
    """Write new rows, drawn from what the model knows, each with its label."""
    from likely.cli.models import Loaded

    check_place(output, [model])
    out = output_format(output, form)
    loaded = Loaded.read(model)
    columns = [column.name for column in loaded.schema.columns if column.outputs]
    known = dict.fromkeys([*columns, *loaded.schema.names, *([loaded.target] if loaded.target else [])])
    cells = _cells(given, list(known))
    written(_drawn(loaded, number, cells, seed), output, out, escape_formulas=escape_formulas)


def _drawn(loaded: "Loaded", number: int, given: dict[str, str], seed: int | None) -> Iterator["pa.Table"]:
    import numpy as np

    generator = np.random.default_rng(seed)
    for first in range(0, max(number, 1), _AT_ONCE):
        yield loaded.drawn(min(_AT_ONCE, number - first), given, generator)


def _cells(given: Sequence[str], names: list[str]) -> dict[str, str]:
    """Return cells by column from NAME=VALUE, where a name may have = in it."""
    from likely.data.schema import check_name

    cells = {}
    for each in given:
        if "=" not in each:
            raise ValueError(f"expected --given NAME=VALUE, such as sex=female, got {each!r}")
        fitting = [name for name in names if each.startswith(f"{name}=")]
        name = max(fitting, key=len) if fitting else each.partition("=")[0]
        check_name(name, names, "expected a column that the model knows", f" in --given {each!r}")
        cells[name] = each[len(name) + 1 :]
    return cells
