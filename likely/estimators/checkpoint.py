"""While a mixture is fitted: a line on the terminal if it takes long, and a file to go on from if it is stopped."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, InitVar, dataclass
from time import monotonic
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.hashing import string_hashes, text_keys
from likely.data.progress import ProgressLine
from likely.data.table import SparseRows
from likely.joint import Joint, Part
from likely.learn.hidden import EMResult, EMState, Hidden
from likely.learn.mixtures import Search, Start
from likely.model.readers import MatrixReader
from likely.model.state import State
from likely.persistence import file as files
from likely.persistence.codec import decode, read_array
from likely.persistence.saved import Saved
from likely.statistics import JointStatistics

# Seconds between two checkpoints.
_EVERY = 10.0
_KIND = "Mixture checkpoint"
_TILE = 1 << 16


@dataclass(eq=False)
class Checkpoint:
    """Watch a search: ``with Checkpoint(…) as watch``, and give ``watch`` how far it is."""

    rows: Hidden
    parts: tuple[Part, ...]
    search: Search
    """the search from its beginning, and then as far as it is, or a checkpoint has left it"""
    _: KW_ONLY
    progress: InitVar[bool]
    """whether to show a line, if the errors go to a terminal"""
    path: Any
    """the file to write every ten seconds, and when the fit is interrupted; it is removed at the end"""
    parameters: Mapping[str, object]
    """what else the result depends on"""

    def __post_init__(self, progress: bool) -> None:
        self._line, self._written = ProgressLine(progress), monotonic()
        if self.path is not None:
            self.path, self._fingerprint = os.fspath(self.path), fingerprint(self.rows, self.parameters)
            if os.path.exists(self.path):
                self.search = self._read(self.path)
            else:
                self._written = -np.inf  # a file that cannot be written is to be known at once

    def __enter__(self) -> Self:
        return self

    def __call__(self, search: Search) -> None:
        """Take note of how far the search is."""
        self.search = search
        self._line(self._progress)
        if self.path is not None and monotonic() - self._written > _EVERY:
            self._write(self.path)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._line.clear()
        if self.path is None:
            return
        if kind is None:
            os.unlink(self.path)
        elif issubclass(kind, KeyboardInterrupt | SystemExit):
            self._write(self.path)

    def _progress(self) -> str:
        seeds, starts, _, present = self.search
        found = present.log_likelihoods if present is not None else ()
        start = f"start {len(starts) + 1} of {len(seeds) - 1}, " if len(seeds) > 2 else ""
        if not found:
            return start
        return f"{start}step {len(found)}: log-likelihood {found[-1] / self.rows.weight:.6f} for each row"

    def _write(self, path: str) -> None:
        self._written = monotonic()
        seeds, starts, best, present = self.search
        header: dict[str, object] = {
            "kind": _KIND,
            "fingerprint": self._fingerprint,
            "seeds": list(seeds),
            "starts": [[*start] for start in starts],
        }
        arrays: files.Arrays = {}
        if best is not None:
            ended = EMState(best.statistics, tuple(best.log_likelihoods), best.removed, best.restarted)
            header["best"] = {**self._packed("best", ended, arrays), "converged": best.converged}
        if present is not None:
            header["present"] = self._packed("present", present, arrays)
        files.write(path, header, arrays)

    def _packed(self, name: str, at: EMState, arrays: files.Arrays) -> dict[str, object]:
        state = State(self.parts, at.statistics, MatrixReader("Mixture", self.rows.table.columns))
        header, own = Saved("Mixture", {}, state, {}).contents()
        arrays.update({f"{name}.{each}": array for each, array in own.items()})
        arrays[f"{name}.log-likelihoods"] = np.array(at.log_likelihoods)
        counts = {"removed": at.removed, "revived": at.restarted, "since": at.since}
        return {"model": header, **counts, "log-prior": at.log_prior}

    def _read(self, path: str) -> Search:
        header, arrays = files.read(path)
        if header.get("kind") != _KIND:
            raise ValueError(
                f"expected a checkpoint of a Mixture, or no file yet, got another kind of file in {path!r}: choose "
                "another name"
            )
        if header.get("fingerprint") != self._fingerprint:
            raise ValueError(
                f"expected a checkpoint of a fit to these rows with these parameters, got that of another in {path!r}: "
                "remove it, or choose another name"
            )
        try:
            return self._unpacked(header, arrays)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"expected a whole checkpoint in {path!r}, got one with {error}: remove it") from None

    def _unpacked(self, header: Mapping[str, Any], arrays: files.Arrays) -> Search:
        best = present = None
        if "present" in header:
            present = self._ascent("present", header["present"], arrays)
        if "best" in header:
            at = self._ascent("best", header["best"], arrays)
            joint = Joint.solve(at.statistics, self.parts, self.rows.table.columns)
            found = list(at.log_likelihoods)
            converged = decode(header["best"]["converged"], bool, "converged", arrays)
            best = EMResult(joint, at.statistics, found, converged, at.removed, at.restarted)
        starts = decode(header["starts"], tuple[tuple[float, int, bool], ...], "starts", arrays)
        seeds = decode(header["seeds"], tuple[int, ...], "seeds", arrays)
        return Search(seeds, tuple(Start(*start) for start in starts), best, present)

    def _ascent(self, name: str, described: Mapping[str, Any], arrays: files.Arrays) -> EMState:
        own = {each.removeprefix(f"{name}."): array for each, array in arrays.items() if each.startswith(f"{name}.")}
        found = tuple(read_array("log-likelihoods", own, finite=False).tolist())
        statistics: JointStatistics = Saved.read(described["model"], own).state.statistics
        removed, restarted, since = (
            decode(described[each], int, each, own) for each in ("removed", "revived", "since")
        )
        return EMState(
            statistics, found, removed, restarted, since, decode(described["log-prior"], float, "log-prior", own)
        )


def fingerprint(rows: Hidden, parameters: Mapping[str, object]) -> str:
    """Return a digest of all cells, weights and parameters: the same for the same fit only.

    >>> from likely.data.table import Table
    >>> one, other = (fingerprint(Hidden(Table(np.array([[x]]))), {"tied": True}) for x in (1.0, 2.0))
    >>> one == other, len(one)
    (False, 32)
    """
    digest = hashlib.blake2b(digest_size=16)
    table = rows.table
    arrays: list[NDArray[Any]] = list(table.cells[:3]) if isinstance(table.cells, SparseRows) else [table.cells]
    arrays += [text_keys(names.tolist()) for _, names in sorted(table.categories.items())]
    arrays += [string_hashes(texts) for _, texts in sorted(table.strings.items())]
    for array in arrays if rows.weights is None else [*arrays, rows.weights]:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        for first in range(0, len(array), _TILE):
            digest.update(np.ascontiguousarray(array[first : first + _TILE]).data)
    digest.update(repr((table.names, table.kinds, rows.weights is None)).encode())
    for name, value in sorted(parameters.items()):
        text = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        digest.update(name.encode() + b"=" + text + b";")
    return digest.hexdigest()
