"""Texts as rows: the lines of a stream or file, and files in folders named by their label."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likely.data.rows import Rows

TEXT, LABEL = "text", "label"
_PIECE = 1 << 22


def lines_of(data: str, name: str) -> "Rows":
    """Return the lines of a file, or of standard input, as rows of one column of that name."""
    import pyarrow as pa

    from likely.data.rows import open_rows

    schema = pa.schema([(name, pa.large_string())])
    stream = sys.stdin.buffer if data == "-" else open(data, "rb")  # noqa: SIM115  closed when all is read
    batches = (pa.record_batch([_texts(lines)], schema=schema) for lines in _pieces(stream))
    return open_rows(pa.RecordBatchReader.from_batches(schema, batches))


def _pieces(stream: Any) -> Iterator[list[bytes]]:
    """Return the lines of a stream, some megabytes at a time."""
    with stream:
        rest = b""
        while piece := stream.read(_PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            if lines:
                yield lines
        if rest:
            yield [rest]


def folders_of(folders: list[str]) -> "Rows":
    """Return the files in the folders of folders as rows: their text, and the name of the folder they are in."""
    import pyarrow as pa

    from likely.data.rows import open_rows

    files = labelled_files(folders)
    if not files:
        raise ValueError(
            f"expected a folder for each label with texts in it, in {', '.join(map(repr, folders))}, got none: "
            "put every text in a file, and the files of a label in a folder of its name"
        )
    schema = pa.schema([(TEXT, pa.large_string()), (LABEL, pa.string())])

    def batches() -> Iterator[Any]:
        texts: list[bytes] = []
        labels: list[str] = []
        size = 0
        for path, label in files:
            texts.append(path.read_bytes())
            labels.append(label)
            size += len(texts[-1])
            if size > _PIECE:
                yield pa.record_batch([_texts(texts), pa.array(labels)], schema=schema)
                texts, labels, size = [], [], 0
        if texts:
            yield pa.record_batch([_texts(texts), pa.array(labels)], schema=schema)

    return open_rows(pa.Table.from_batches(batches(), schema))


def labelled_files(folders: list[str]) -> list[tuple[Path, str]]:
    """Return the files in the folders of folders, each with the name of the folder it is in."""
    return [
        (path, label.name)
        for folder in folders
        for label in _sorted(folder, Path.is_dir)
        for path in _sorted(label, Path.is_file)
    ]


def _sorted(folder: str | os.PathLike[str], kind: Any) -> list[Path]:
    return sorted(path for path in Path(folder).iterdir() if kind(path) and not path.name.startswith("."))


def _texts(lines: list[bytes]) -> Any:
    """Return bytes as text; those that are not UTF-8 become U+FFFD."""
    import pyarrow as pa

    return pa.array([line.decode("utf-8", "replace").rstrip("\r") for line in lines], pa.large_string())
