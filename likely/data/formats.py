"""Formats of files: what the ending of a name tells, and what is said of it."""

import os
from typing import Any, NamedTuple

_FORMATS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet", "pq": "parquet", "arrow": "arrow",
    "feather": "arrow", "ipc": "arrow", "arrows": "arrow", "jsonl": "jsonl", "ndjson": "jsonl",
}  # fmt: skip
_COMPRESSIONS = {"gz": "gzip", "zst": "zstd"}
EXPECTED = '"csv", "tsv", "jsonl", "parquet" or "arrow", the first three also with ".gz" or ".zst"'
"""The formats, in a message."""


class Format(NamedTuple):
    """What a file holds."""

    name: str
    compression: str | None

    @property
    def text(self) -> bool:
        """Whether it is a text file, in which types are not written."""
        return self.name in ("csv", "tsv", "jsonl")

    @property
    def delimited(self) -> bool:
        """Whether it is text between separators, all of whose cells are text."""
        return self.name in ("csv", "tsv")

    @classmethod
    def named(cls, ending: str) -> "Format | None":
        """Return the format of a name's ending, such as "csv" or "csv.gz"."""
        *first, last = ending.lower().lstrip(".").split(".")
        compression = _COMPRESSIONS.get(last)
        if compression is not None and first:
            last = first[-1]
        found = _FORMATS.get(last)
        fits = found is not None and (compression is None or found in ("csv", "tsv", "jsonl"))
        return cls(str(found), compression) if fits else None

    @classmethod
    def of(cls, path: str, given: "str | Format | None" = None) -> "Format | None":
        """Return the format that was given, or the one that a file's name ends with; None if neither tells.

        What is given wins. A name may still tell that the file is compressed.

        >>> Format.of("people.csv.gz"), Format.of("people.txt.gz", "tsv"), Format.of("people.txt")
        (Format(name='csv', compression='gzip'), Format(name='tsv', compression='gzip'), None)
        """
        ending = ".".join(os.path.basename(path).split(".")[1:])
        if given is None:
            return cls.named(ending)
        found = stated(given) if not isinstance(given, Format) else given
        named = _COMPRESSIONS.get(ending.lower().rpartition(".")[2]) if found.text else None
        return found._replace(compression=found.compression or named)


def stated(name: Any) -> Format:
    """Return a format that was given by name."""
    found = Format.named(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"expected the format {EXPECTED}, got {name!r}")
    return found
