"""What a file says of a model that has centres: a header and arrays, and back, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Columns
from likely.learn.kmeans import cluster_sums
from likely.persistence.entries import described_columns, entry, float_array, read_columns
from likely.persistence.file import Arrays, Contents
from likely.persistence.values import packed, unpacked
from likely.statistics import Array, Statistics

KINDS = ("KMeans", "sklearn KMeans", "sklearn MiniBatchKMeans")
"""The estimators that a file can hold, by the names that it gives them."""


@dataclass(frozen=True)
class SavedCentres:
    """A model, taken apart.

    Parameters
    ----------
    kind, parameters, columns
        of the estimator
    statistics
        the weight and the sum of each cluster's cells
    centres, origin
        the centres less an origin, and the origin
    known
        of each column whether it has a cell at all
    more
        what else is remembered, by name
    """

    kind: str
    parameters: Mapping[str, Any]
    columns: Columns
    statistics: Statistics
    centres: Array
    origin: Array
    known: NDArray[np.bool_]
    more: Mapping[str, Any]

    def contents(self) -> Contents:
        """Return the header and arrays of a file; what does not fit in one raises ValueError."""
        sums = self.statistics.restored()
        assert sums.origin is not None
        arrays: Arrays = {
            "weight": sums.sums["weight"],
            "sum": sums.sums["sum"],
            "sum.origin": sums.origin,
            "centres": self.centres,
            "origin": self.origin,
            "known": self.known,
        }
        header = {
            "kind": self.kind,
            "parameters": {n: packed(value, f"parameters.{n}", arrays) for n, value in self.parameters.items()},
            "columns": described_columns(self.columns),
            "more": {name: packed(value, f"more.{name}", arrays) for name, value in self.more.items()},
        }
        return Contents(header, arrays)

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "SavedCentres":
        """Return what a file holds, or raise ValueError if it does not agree with itself."""
        columns = read_columns(entry(header, "columns", dict))
        found = {name: float_array(name, arrays) for name in ("weight", "sum", "sum.origin", "centres", "origin")}
        known = arrays.get("known")
        width, k = columns.width, len(found["centres"]) if found["centres"].ndim else 0
        shapes = {name: (width,) if name == "origin" else (k, width) for name in found}
        if known is None or known.dtype != bool or known.shape != (width,) or k == 0:
            raise ValueError("expected centres, and of each column whether it is known, got others")
        for name, array in found.items():
            if array.shape != shapes[name]:
                raise ValueError(f"expected {name!r} of the shape {shapes[name]}, got {array.shape}")
            if not np.isfinite(array[..., known]).all():
                raise ValueError(f"expected finite numbers in {name!r}, got others")
        if np.any(found["weight"] < 0) or not 0 < found["weight"].sum() < np.inf:
            raise ValueError("expected weights of 0 or more, some of them positive, got others")
        return cls(
            entry(header, "kind", str),
            {n: unpacked(value, arrays) for n, value in entry(header, "parameters", dict).items()},
            columns,
            cluster_sums(found["weight"], found["sum"], found["sum.origin"]),
            found["centres"],
            found["origin"],
            known,
            {n: unpacked(value, arrays) for n, value in entry(header, "more", dict).items()},
        )
