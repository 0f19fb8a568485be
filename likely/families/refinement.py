"""What single words say beside what their group lets them say: a table of words × classes, kept by their terms."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likely.text import checked_terms, packed_terms


@dataclass(frozen=True, eq=False)
class Refinement:
    """Scores that are added to those of words, whatever numbers the words come to have.

    Parameters
    ----------
    offsets, characters
        where each word begins and the last one ends, and the bytes of all words
    scores
        words × classes

    Examples
    --------
    >>> found = Refinement.of(pa.array(["a", "b"]), np.array([[1, 2], [3, 4]], dtype=np.float32))
    >>> found.table(pa.array(["c", "b"]), np.array([1, -1, 0])).tolist()
    [[0.0, 0.0, 0.0], [4.0, 0.0, 3.0]]
    """

    offsets: Any
    characters: Any
    scores: Any

    def __post_init__(self) -> None:
        scores = self.scores
        table = isinstance(scores, np.ndarray) and scores.dtype == np.float32 and scores.ndim == 2
        if not table or not np.isfinite(scores).all():
            raise ValueError("expected a table of finite scores of words and classes, got another")
        if len(scores) != len(self.terms):
            raise ValueError(f"expected scores of {len(self.terms)} words, got {len(scores)}")

    @classmethod
    def of(cls, terms: pa.Array, scores: NDArray[np.float32]) -> "Refinement":
        """Return the scores of these words."""
        return cls(*packed_terms(terms), scores)

    @cached_property
    def terms(self) -> pa.Array:
        """The words."""
        return checked_terms(self.offsets, self.characters)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "terms"}

    def table(self, terms: pa.Array, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return scores of other words, and of classes that are at these places; 0 where a word or a class is new."""
        import pyarrow.compute as pc

        rows: Any = pc.index_in(terms.cast(pa.large_string()), value_set=self.terms).fill_null(-1).to_numpy()
        width = self.scores.shape[1]
        if np.array_equal(rows, np.arange(len(self.scores))) and np.array_equal(places, np.arange(width)):
            return self.scores  # type: ignore[no-any-return]
        found = np.zeros((len(rows), len(places)), dtype=np.float32)
        known, classes = np.flatnonzero(rows >= 0), np.flatnonzero(places >= 0)
        found[np.ix_(known, classes)] = self.scores[np.ix_(rows[known], places[classes])]
        return found
