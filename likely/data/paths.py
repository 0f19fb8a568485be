"""Files by their paths: which there are, on this machine or behind a URL that fsspec knows, and in which format."""

import glob
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

from likely.lazy import pa
from likely.messages import Advice, Setting

_FORMATS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet", "pq": "parquet", "arrow": "arrow",
    "feather": "arrow", "ipc": "arrow", "arrows": "arrow", "jsonl": "jsonl", "ndjson": "jsonl",
}  # fmt: skip
_COMPRESSIONS = {"gz": "gzip", "zst": "zstd"}
KNOWN_FORMATS = '"csv", "tsv", "jsonl", "parquet" or "arrow", the first three also with ".gz" or ".zst"'
"""The formats, in a message."""
OPEN_WITH_FORMAT = Setting("format", None, "open it by likely.data.open_rows(…, format=…)")
"""What to do with a file whose format nobody knows."""


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
        found = parse_format(given) if not isinstance(given, Format) else given
        named = _COMPRESSIONS.get(ending.lower().rpartition(".")[2]) if found.text else None
        return found._replace(compression=found.compression or named)


def parse_format(name: Any) -> Format:
    """Return a format that was given by name."""
    found = Format.named(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"expected the format {KNOWN_FORMATS}, got {name!r}")
    return found


class File(NamedTuple):
    """A file that is there, and what it holds."""

    path: str
    format: Format
    system: Any = None
    """the file system of a URL, as fsspec knows it"""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return int(os.stat(self.path).st_size if self.system is None else self.system.size(self.path) or 0)

    @property
    def is_regular(self) -> bool:
        """Whether it can be read again: a pipe cannot."""
        return self.system is not None or stat.S_ISREG(os.stat(self.path).st_mode)

    def opened(self) -> Any:
        """Return the bytes, as Arrow reads them."""
        return pa.OSFile(self.path) if self.system is None else pa.PythonFile(self.system.open(self.path, "rb"), "r")

    def mapped(self) -> Any:
        """Return the bytes memory-mapped, if they are on this machine."""
        return pa.memory_map(self.path) if self.system is None else self.opened()


def find_files(paths: list[str], format_name: str | None) -> list[File]:
    """Return the files of paths, folders, wildcards and URLs, in order."""
    given = None if format_name is None else parse_format(format_name)
    return [
        File(path, _format_of(path, given), system)
        for one in paths
        for path, system in expand_path(one, any_ending=given is not None)
    ]


def expand_path(path: str, *, any_ending: bool) -> list[tuple[str, Any]]:
    """Return the files of a path, folder, name with wildcards or URL, in order, each with the file system of a URL.

    ``any_ending``: files of a folder are read whatever their names end with.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) and not os.path.lexists(path):
        return _behind(path, any_ending=any_ending)
    if not os.path.lexists(path) and glob.has_magic(path):
        found = sorted(one for one in glob.glob(path, recursive=True) if not os.path.isdir(one))
        return [(one, None) for one in _some(found, path)]
    if stat.S_ISDIR(os.stat(path).st_mode):
        inside = [str(one) for one in Path(path).rglob("*") if one.is_file()]
        return [(one, None) for one in _of_a_table(inside, path, any_ending=any_ending)]
    return [(path, None)]


def _behind(url: str, *, any_ending: bool) -> list[tuple[str, Any]]:
    """Return the files behind a URL, and their file system."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(f"expected fsspec to read {url!r}, found none: pip install fsspec") from None
    try:
        system, path = url_to_fs(url)
    except ImportError as error:  # fsspec names the package that it lacks
        raise ImportError(f"expected a package that reads {url!r}, found none: {error}") from None
    except ValueError as error:
        raise ValueError(f"expected a URL that fsspec knows, got {url!r}: {error}") from None
    if glob.has_magic(path):
        found = sorted(one for one in system.glob(path) if not system.isdir(one))
        return [(one, system) for one in _some(found, url)]
    if system.isdir(path):
        return [(one, system) for one in _of_a_table(system.find(path), url, any_ending=any_ending)]
    if not system.exists(path):
        raise FileNotFoundError(f"expected a file at {url!r}, found none")
    return [(path, system)]


def _some(found: list[str], path: str) -> list[str]:
    if not found:
        raise FileNotFoundError(f"expected files named like {path!r}, found none")
    return found


def _of_a_table(inside: list[str], folder: str, *, any_ending: bool) -> list[str]:
    """Return those files of a folder that may hold rows, in order."""
    shown = sorted(one for one in inside if os.path.basename(one)[0] not in "._")
    found = [one for one in shown if any_ending or Format.of(one)]
    if not found:
        raise FileNotFoundError(f"expected files of a table in the folder {folder!r}, such as .parquet, found none")
    return found


def _format_of(path: str, given: Format | None) -> Format:
    found = Format.of(path, given)
    if found is None:
        expected = f"expected a file whose name ends with its format, got {path!r}: "
        raise ValueError(Advice(expected, OPEN_WITH_FORMAT, f", one of {KNOWN_FORMATS}"))
    return found
