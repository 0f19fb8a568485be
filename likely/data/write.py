"""Rows out: CSV, TSV, JSON lines, Parquet and Arrow files, batch by batch, to a path or a stream."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import IO, Any

from likely.data.arrow import is_dictionary_text, is_text, plain, text_of
from likely.data.atomic import replacing
from likely.data.paths import Format, parse_format
from likely.lazy import pa, pc, pq

# What makes a cell a formula to a spreadsheet, in full width too; a number with a sign is only a number.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"


def write_rows(
    tables: Iterable[pa.Table],
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
    form = form if isinstance(form, Format) else parse_format(form)
    if escape_formulas and not form.delimited:
        raise ValueError(f"expected csv or tsv to escape formulas in, got {form.name}, whose text is never run")
    rows, writer = 0, None
    opened = replacing(to) if isinstance(to, str | os.PathLike) else nullcontext(to)
    with opened as stream, _compressed(stream, form.compression) as out:
        for table in tables:
            writer = writer or _writer(out, form.name, table.schema, escape_formulas)
            writer.write_table(table)
            rows += table.num_rows
        if writer is not None and not form.text:
            writer.close()
    return rows


def _compressed(stream: IO[bytes], compression: str | None) -> AbstractContextManager[IO[bytes]]:
    if compression is None:
        return nullcontext(stream)
    return pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(stream), "w"), compression)  # type: ignore[no-any-return]


class _LeftOpen:
    """A stream that stays open when what writes to it is closed: standard output is not ours to close."""

    closed = False

    def __init__(self, stream: IO[bytes]):
        self.write, self.flush = stream.write, stream.flush

    def close(self) -> None:
        """Do nothing."""


def _writer(stream: IO[bytes], form: str, schema: pa.Schema, escape_formulas: bool) -> Any:
    """Return what writes tables in a format."""
    if form == "jsonl":
        return SimpleNamespace(write_table=partial(_write_json, stream))
    if form == "parquet":
        return pq.ParquetWriter(stream, schema)
    if form == "arrow":
        return pa.ipc.new_file(stream, schema)
    return _CsvWriter(stream, schema.names, "\t" if form == "tsv" else ",", escape_formulas)


def _write_json(stream: IO[bytes], table: pa.Table) -> None:
    lines = [json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist()]
    stream.write("".join(f"{line}\n" for line in lines).encode())


class _CsvWriter:
    """Writes CSV and TSV with quotes only around cells that need them: Arrow's writer puts them around all text."""

    def __init__(self, stream: IO[bytes], names: list[str], separator: str, escape_formulas: bool):

        self.stream, self.separator, self._escape_formulas = stream, separator, escape_formulas
        self._needs = f'[{separator}"\r\n]'
        self.write_lines([self._safe(pa.array([name], pa.string())) for name in names])

    def write_table(self, table: pa.Table) -> None:
        """Write more rows."""
        for batch in table.to_batches():
            self.write_lines([self._safe(column) for column in batch.columns])

    def write_lines(self, columns: list[Any]) -> None:
        """Write columns of text, a line for each row."""
        cells = [self._quoted(column, len(columns)) for column in columns]
        lines = pc.binary_join_element_wise(*cells, self.separator) if cells else pa.array([], pa.string())
        if len(lines):
            self.stream.write("\n".join([*lines.to_pylist(), ""]).encode())

    def _safe(self, column: Any) -> Any:
        """Return a column as text, of which no spreadsheet takes a part for a formula if that is wanted."""
        text = _text(column)
        if not self._escape_formulas or not (is_text(column.type) or is_dictionary_text(column.type)):
            return text
        formula = pc.match_substring_regex(text, _FORMULA)
        number = pc.match_substring_regex(text, _NUMBER)
        unsafe = pc.fill_null(pc.and_not(formula, number), False)
        return pc.if_else(unsafe, pc.binary_join_element_wise(pa.scalar("'"), text, ""), text)

    def _quoted(self, column: Any, width: int) -> Any:

        column = column.fill_null("")
        quoted = pc.match_substring_regex(column, self._needs)
        if width == 1:  # an empty line would be no row
            quoted = pc.or_(quoted, pc.equal(column, ""))
        if not pc.any(quoted).as_py():
            return column
        within = pc.replace_substring(column, '"', '""')
        return pc.if_else(quoted, pc.binary_join_element_wise('"', within, '"', ""), column)


def _text(column: Any) -> Any:
    """Return a column as text: what has no other form, such as a list, as JSON."""
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
