"""JSON lines: an object in every line."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.json

from likely.data.arrow import check_names, common_type, from_records, is_text, plain_batch, recast, words_as_missing
from likely.data.sources import BLOCK
from likely.native import json_is_deeper

_LONGEST = 64 << 20
# Arrow calls itself for every level, and ends the process where that is too deep; values in rows have one.
_DEEPEST = 64


class JsonLines(NamedTuple):
    """A file of JSON lines: how its bytes are opened, and what it is called in messages."""

    open: Callable[[], Any]
    label: str
    missing: tuple[str, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows; a batch has the columns and types that its own rows have."""
        stream = self.open()
        text: set[str] = set()  # columns of text that looks like dates, which is decided elsewhere
        order: dict[str, None] = {}
        first, empty = 1, True
        for block in self._blocks(stream):
            if block.strip():
                batch = self._fast(block, text, order)
                if batch is None:
                    batch = self._slow(block, first)
                if batch.num_rows:
                    empty = False
                    yield words_as_missing(batch, self.missing)
            first += block.count(b"\n")
        if empty:
            raise ValueError(f"expected an object in each line of {self.label}, got an empty file")

    def _blocks(self, stream: Any) -> Iterator[bytes]:
        """Return whole lines, some megabytes at a time."""
        rest, first = b"", True
        while True:
            try:
                part = stream.read(BLOCK)
            except OSError as error:
                raise ValueError(f"expected JSON lines in {self.label}, got a broken file: {error}") from None
            part, first = part.removeprefix(b"\xef\xbb\xbf") if first else part, False
            if not part:
                yield rest
                return
            end = part.rfind(b"\n") + 1
            if end:
                yield rest + part[:end]
                rest = part[end:]
            else:
                rest += part
                if len(rest) > _LONGEST:
                    raise ValueError(
                        f"expected lines of less than {_LONGEST >> 20} MB in {self.label}, got a longer one: write one "
                        "object in each line"
                    )

    def _fast(self, block: bytes, text: set[str], order: dict[str, None]) -> pa.RecordBatch | None:
        """Return a block as Arrow reads it, or None if Arrow cannot, or not as it is meant.

        Arrow puts columns whose types are given first: ``order`` has the names as they came.
        """
        if json_is_deeper(block, _DEEPEST):
            return None
        for _ in range(2):
            explicit = pa.schema([(name, pa.string()) for name in sorted(text)])
            try:
                block.decode("utf-8")  # which Arrow does not check
                table = pa.json.read_json(
                    pa.BufferReader(block),
                    pa.json.ReadOptions(block_size=len(block) + 1, use_threads=False),
                    pa.json.ParseOptions(explicit_schema=explicit if text else None),
                )
            except (pa.ArrowException, UnicodeDecodeError, OSError):
                return None
            order.update(dict.fromkeys(table.schema.names))
            dates = {field.name for field in table.schema if pa.types.is_timestamp(field.type)}
            if not dates:
                break
            text |= dates
        nested = any(pa.types.is_nested(kind) for kind in table.schema.types)
        if nested or table.num_rows == 0 or len(set(table.schema.names)) < table.num_columns:
            return None
        return plain_batch(table.select([name for name in order if name in table.schema.names]))

    def _slow(self, block: bytes, first: int) -> pa.RecordBatch:
        """Return a block as Python reads it, or raise with the line that is wrong."""
        numbers, records = [], []
        for number, line in enumerate(block.split(b"\n"), first):
            if line.strip():
                numbers.append(number)
                records.append(self._record(line, number))
        return from_records(records, lambda i: f"line {numbers[i]} of {self.label}")

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        where = f"line {number} of {self.label}"
        try:
            record = json.loads(line.decode("utf-8"), object_pairs_hook=lambda pairs: _pairs(pairs, where))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"expected text in UTF-8 in {where}, got another encoding at byte {error.start} of the line: save the "
                "file as UTF-8"
            ) from None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"expected an object in JSON in {where}, got something else at character {error.colno}: {error.msg}"
            ) from None
        except RecursionError:
            raise ValueError(f"expected an object of plain values in {where}, got one nested too deep") from None
        if not isinstance(record, dict):
            raise ValueError(
                f"expected an object in JSON in {where}, got {type(record).__name__}: write {{…}} in each line"
            )
        for name, value in record.items():
            if isinstance(value, dict | list):
                raise ValueError(
                    f"expected plain values in {where}, got {'an object' if isinstance(value, dict) else 'a list'} in "
                    f"{name!r}: write its parts as columns of their own"
                )
        return {name: None if value in self.missing else value for name, value in record.items()}


def _pairs(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        check_names([name for name, _ in pairs], where)
    return dict(pairs)


def json_type(kind: pa.DataType, column: Any) -> pa.DataType:
    """Return a type that holds what ``kind`` holds, and a column, which is typed batch by batch."""
    return kind if column.null_count == len(column) and not is_text(kind) else common_type(kind, column.type)


def json_cast(column: Any, kind: pa.DataType) -> Any:
    """Return a column in a wider type."""
    return pa.nulls(len(column), kind) if column.null_count == len(column) else recast(column, kind)
