"""Rows out: CSV, TSV, JSON lines, Parquet and Arrow files, batch by batch, to a path or a stream."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from likely.data.atomic import replacing
from likely.data.formats import Format, stated

if TYPE_CHECKING:
    import pyarrow as pa

# What makes a cell a formula to a spreadsheet, in full width too; a number with a sign is only a number.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"


def write_rows(
    tables: "Iterable[pa.Table]",
    to: str | os.PathLike[str] | IO[bytes],
    form: str | Format,
    *,
    escape_formulas: bool = False,
) -> int:
    """Write tables of the same columns one after the other, and return how many rows that were.

    The format is one that ``open_rows`` reads, such as "csv" or "csv.gz". A file takes its place when all is
    written; if that fails, what was there stays. ``escape_formulas`` puts ``'`` before text in CSV and TSV files that a
    spreadsheet would run; numbers stay numbers.

    >>> import io, pyarrow as pa
    >>> out = io.BytesIO()
    >>> write_rows([pa.table({"a": [1, None], "b": ["x", "y"]})], out, "csv")
    2
    >>> print(out.getvalue().decode(), end="")
    a,b
    1,x
    ,y
    """
    rows = 0
    form = form if isinstance(form, Format) else stated(form)
    if escape_formulas and not form.delimited:
        raise ValueError(f"expected csv or tsv to escape formulas in, got {form.name}, whose text is never run")
    with (
        _opened(to) as stream,
        _compressed(stream, form.compression) as out,
        _Writer(out, form.name, escape_formulas) as writer,
    ):
        for table in tables:
            writer.write(table)
            rows += table.num_rows
    return rows


@contextmanager
def _opened(to: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    if not isinstance(to, str | os.PathLike):
        yield to
        return
    with replacing(to) as stream:
        yield stream


@contextmanager
def _compressed(stream: IO[bytes], compression: str | None) -> Iterator[IO[bytes]]:
    if compression is None:
        yield stream
        return
    import pyarrow as pa

    with pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(stream), "w"), compression) as out:
        yield out


class _LeftOpen:
    """A stream that stays open when what writes to it is closed: standard output is not ours to close."""

    closed = False

    def __init__(self, stream: IO[bytes]):
        self.write, self.flush = stream.write, stream.flush

    def close(self) -> None:
        """Do nothing."""


class _Writer:
    """Writes tables in a format; the first one decides the columns."""

    def __init__(self, stream: IO[bytes], form: str, escape_formulas: bool):
        self.stream, self.form, self.escape_formulas = stream, form, escape_formulas
        self.writer: Any = None

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.writer is not None and kind is None:
            self.writer.close()

    def write(self, table: "pa.Table") -> None:
        """Write more rows."""
        if self.form == "jsonl":
            lines = [json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist()]
            self.stream.write("".join(f"{line}\n" for line in lines).encode())
            return
        if self.writer is None:
            self.writer = self._begun(table.schema)
        self.writer.write_table(table)

    def _begun(self, schema: "pa.Schema") -> Any:
        if self.form == "parquet":
            from pyarrow.parquet import ParquetWriter

            return ParquetWriter(self.stream, schema)
        if self.form == "arrow":
            import pyarrow as pa

            return pa.ipc.new_file(self.stream, schema)
        separator = "\t" if self.form == "tsv" else ","
        return _DelimitedWriter(self.stream, schema.names, separator, self.escape_formulas)


class _DelimitedWriter:
    """Writes CSV and TSV with quotes only around cells that need them: Arrow's writer puts them around all text."""

    def __init__(self, stream: IO[bytes], names: list[str], separator: str, escape_formulas: bool):
        import pyarrow as pa

        self.stream, self.separator, self._escape_formulas = stream, separator, escape_formulas
        self._needs = f'[{separator}"\r\n]'
        self.write_lines([self._safe(pa.array([name], pa.string())) for name in names])

    def write_table(self, table: "pa.Table") -> None:
        """Write more rows."""
        for batch in table.to_batches():
            self.write_lines([self._safe(column) for column in batch.columns])

    def write_lines(self, columns: list[Any]) -> None:
        """Write columns of text, a line for each row."""
        import pyarrow as pa

        cells = [self._quoted(column, len(columns)) for column in columns]
        lines = pa.compute.binary_join_element_wise(*cells, self.separator) if cells else pa.array([], pa.string())
        if len(lines):
            self.stream.write("\n".join([*lines.to_pylist(), ""]).encode())

    def _safe(self, column: Any) -> Any:
        """Return a column as text, of which no spreadsheet takes a part for a formula if that is wanted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from likely.data.arrow import is_coded_text, is_text

        text = _text(column)
        if not self._escape_formulas or not (is_text(column.type) or is_coded_text(column.type)):
            return text
        formula = pc.match_substring_regex(text, _FORMULA)
        number = pc.match_substring_regex(text, _NUMBER)
        unsafe = pc.fill_null(pc.and_not(formula, number), False)
        return pc.if_else(unsafe, pc.binary_join_element_wise(pa.scalar("'"), text, ""), text)

    def _quoted(self, column: Any, width: int) -> Any:
        import pyarrow.compute as pc

        column = column.fill_null("")
        quoted = pc.match_substring_regex(column, self._needs)
        if width == 1:  # an empty line would be no row
            quoted = pc.or_(quoted, pc.equal(column, ""))
        if not pc.any(quoted).as_py():
            return column
        within = pc.replace_substring(column, '"', '""')
        return pc.if_else(quoted, pc.binary_join_element_wise('"', within, '"', ""), column)

    def close(self) -> None:
        """End the file, of which nothing is left to write."""


def _text(column: Any) -> Any:
    """Return a column as text: what has no other form, such as a list, as JSON."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from likely.data.arrow import plain, text_of

    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.string()), column.cast(pa.string()))
    try:
        return text_of(plain(column)).cast(pa.string())
    except ValueError:
        return pa.array(map(_cell_text, column.to_pylist()), pa.string())


def _cell_text(cell: Any) -> str | None:
    if isinstance(cell, list | dict):
        return json.dumps(cell, default=str, ensure_ascii=False)
    return None if cell is None else str(cell)
