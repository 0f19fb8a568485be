"""What was given: a matrix of numbers, a table whose columns have types, texts, or data in partitions of an engine.

No library is imported to find out.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from likely.data.infer import is_whole
from likely.data.partitions import Engine, PartitionedRows
from likely.data.rows import Rows, missing_words
from likely.data.table import Table
from likely.lazy import pa


def engine_class(data: Any) -> str | None:
    """Return the module and class in ``likely.engines`` for data that an engine keeps in partitions; None for others.

    >>> engine_class([[1.0, 2.0]]) is None
    True
    """
    module = type(data).__module__
    if module.startswith("dask.dataframe") and getattr(data, "ndim", 0) == 2:
        return "dask.DaskFrame"
    if module.startswith("dask.array") and hasattr(data, "numblocks") and data.ndim == 2:
        return "dask.DaskArray"
    if module == "ray.data.dataset" and hasattr(data, "map_batches"):
        return "ray.RayDataset"
    return "spark.SparkFrame" if module.startswith("pyspark.sql") and hasattr(data, "mapInArrow") else None


def is_partitioned(data: Any) -> bool:
    """Say whether an engine keeps data in partitions."""
    return isinstance(data, Engine) or engine_class(data) is not None


def is_typed(data: Any) -> bool:
    """Say whether data are a table whose columns have types: a frame, records, a path; not a matrix of numbers.

    >>> is_typed([{"age": 31}]), is_typed("people.csv"), is_typed([[1.0, 2.0]])
    (True, True, False)
    """
    if is_partitioned(data):  # asked first: a frame of Spark Connect has attributes of any name
        return True
    if hasattr(data, "tocsr") or isinstance(data, Table):
        return False
    if isinstance(data, str | os.PathLike | Mapping | Rows | Iterator) or hasattr(data, "collect_schema"):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if isinstance(data, list | tuple):
        return len(data) > 0 and isinstance(data[0], str | os.PathLike | Mapping)
    if hasattr(data, "columns") and hasattr(data, "dtypes"):
        # A frame of nothing but floats is a matrix: read in place; its names must match, as scikit-learn wants.
        return not all(str(dtype).lower() in ("float64", "float32") for dtype in data.dtypes)
    return any(hasattr(data, name) for name in ("__arrow_c_stream__", "fetch_arrow_table", "read", "count_rows"))


def is_table(data: Any, columns: Any, missing: Any) -> bool:
    """Say whether data are to be learned as a table, given what was said of its columns and of missing cells.

    A frame of floats is one, too, if it has a column of whole numbers, or if words for missing cells were given, among
    which its numbers may be.
    """
    if is_typed(data):
        return True
    if not _has_names(data):
        return False
    by_name = isinstance(columns, Mapping) and all(isinstance(name, str) for name in columns)
    auto = isinstance(columns, str) and columns == "auto"
    if missing is not None and missing_words(missing):
        return True
    return (auto or by_name) and _has_whole_numbers(data)


def is_text_table(data: Any) -> bool:
    """Say whether data are a table, or where one is, and not texts.

    >>> is_text_table({"text": ["a b"]}), is_text_table("reviews.parquet"), is_text_table(["a text"])
    (True, True, False)
    """
    if isinstance(data, str | os.PathLike | Mapping | Rows) or is_partitioned(data):
        return True
    if isinstance(data, list | tuple):
        return len(data) > 0 and isinstance(data[0], Mapping)
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    return not isinstance(data, Table) and any(hasattr(data, name) for name in ("collect_schema", "schema", "columns"))


def is_matrix(rows: Rows) -> bool:
    """Say whether rows are blocks of an array: numbers without names, which a model takes as it takes a matrix."""
    return isinstance(rows, PartitionedRows) and rows.names is None


def _has_names(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "dtypes") and all(isinstance(c, str) for c in data.columns)


def _has_whole_numbers(data: Any) -> bool:
    """Say whether a frame of floats has a column of nothing but whole numbers, which may be missing.

    Its library may have made floats of integers, as pandas does where one is missing: elsewhere they are integers.
    """
    columns = list(range(len(data.columns)))
    for rows in (data.head(64), data):  # most are seen not to be by their first cells
        columns = [j for j in columns if _is_whole(rows.iloc[:, j] if hasattr(rows, "iloc") else rows[:, j])]
    return bool(columns)


def _is_whole(column: Any) -> bool:

    cells = np.asarray(column, dtype=np.float64)
    return not np.isnan(cells).all() and is_whole(pa.array(cells))
