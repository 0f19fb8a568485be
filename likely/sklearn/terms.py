"""Which terms a vectorizer keeps, by scikit-learn's rules."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely import text
from likely.text import Rows


def document_limits(min_df: Any, max_df: Any, documents: int) -> tuple[float, float]:
    """Return in how many documents a term must be at least, and may be at most."""
    low, high = text.document_limits(min_df, max_df, documents)
    if high < low:
        raise ValueError("max_df corresponds to < documents than min_df")
    return low, high


def limited(
    rows: Rows, numbers: NDArray[np.int32], low: float, high: float, most: int | None, dtype: np.dtype[Any]
) -> NDArray[np.bool_] | None:
    """Return which terms are kept, in their sorted order, whose places ``numbers`` gives: None if all are."""
    documents = np.empty(len(numbers), dtype=np.int64)
    documents[numbers] = rows.document_counts(len(numbers))
    kept = (documents <= high) & (documents >= low)
    if most is not None and kept.sum() > most:
        counts = np.empty(len(numbers))
        counts[numbers] = np.bincount(rows.units, weights=rows.counts, minlength=len(numbers))
        # the type decides which of equally frequent terms are kept, as sorting differs
        totals = counts.astype(np.int64 if dtype.kind in "biu" else dtype)
        places = (-totals[kept]).argsort()[:most]
        found = np.flatnonzero(kept)[places]
        kept = np.zeros(len(numbers), dtype=bool)
        kept[found] = True
    if not kept.any():
        raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
    return None if kept.all() else kept


def warn_of_capitals(vocabulary: Iterable[str]) -> None:
    """Warn if a term has capitals, which no text has once it is in lower case."""
    if any(any(map(str.isupper, term)) for term in vocabulary):
        warnings.warn(
            "Upper case characters found in vocabulary while 'lowercase' is True. These entries will not be matched "
            "with any documents",
            stacklevel=2,
        )
