"""What every vectorizer of text does: find out what units are, read documents, count, and keep the terms.

Parameters, checks and messages are scikit-learn's own. What only Python can do, such as a tokenizer of the user's, is
left to scikit-learn, too.
"""

import codecs
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import sklearn.feature_extraction.text as upstream
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from likely.sklearn.terms import document_limits, limited, warn_of_capitals
from likely.text import Analyzer, Rows, as_read, as_texts, numbers_of_kept, sorted_terms

try:
    from sklearn.utils import _align_api_if_sparse
except ImportError:  # before scikit-learn 1.9 there is only one kind of sparse matrix
    _align_api_if_sparse = None

_WORDS = {
    r"(?u)\b\w\w+\b": "words of two",
    r"\b\w\w+\b": "words of two",
    r"\w\w+": "words of two",
    r"(?u)\b\w+\b": "words",
    r"\b\w+\b": "words",
    r"(?u)\w+": "words",
    r"\w+": "words",
    r"\w+|[^\w\s]": "words and punctuation",
}
SINGLE = "Iterable over raw text documents expected, string object received."
_CHARACTERS = {"char": "characters", "char_wb": "characters in words"}
# what a subclass may have replaced to find units in its own way
_STEPS = (
    *("build_analyzer", "build_preprocessor", "build_tokenizer", "decode"),
    *("_word_ngrams", "_char_ngrams", "_char_wb_ngrams"),
)


class Vectorizer:
    """What all vectorizers do: read documents, and tell whether the core can find their units."""

    def _analyzer(self: Any) -> Analyzer | None:
        """Return what the units are, None if only Python can find them."""
        self.build_analyzer()  # checks the parameters, and warns of stop words that cannot be met
        own = (getattr(getattr(self, step), "__func__", None) for step in _STEPS)
        if any(step is not getattr(upstream.CountVectorizer, name) for step, name in zip(own, _STEPS, strict=True)):
            return None
        if self.preprocessor is not None or callable(self.analyzer) or callable(self.strip_accents):
            return None
        unit: Any = _CHARACTERS.get(self.analyzer)
        stop_words: Any = None
        if self.analyzer == "word":
            unit = _WORDS.get(self.token_pattern) if self.tokenizer is None else None
            stop_words = self.get_stop_words()
        shortest, longest = (int(n) if isinstance(n, Integral) else 0 for n in self.ngram_range)
        if unit is None or not 1 <= shortest <= longest:
            return None
        words = frozenset(word for word in stop_words or () if isinstance(word, str))
        accents = self.strip_accents or None
        return Analyzer(unit, (shortest, longest), self.lowercase, accents, words, self.decode_error)

    def _read(self: Any, documents: Any) -> tuple[Any, Analyzer | None, Any]:
        """Return the documents, what their units are, and the documents as the core reads them.

        The last two are None if the core cannot: scikit-learn then finds the units, or says what is wrong.
        """
        if isinstance(documents, str):
            raise ValueError(SINGLE)
        analyzer = self._analyzer()
        if analyzer is None:
            return documents, None, None
        documents = documents if hasattr(documents, "__len__") else list(documents)
        plain = self.input == "content" and codecs.lookup(self.encoding).name == "utf-8"
        try:
            texts = as_read(documents if plain else [self.decode(document) for document in documents])
        except TypeError:
            return documents, None, None
        return (documents, None, None) if texts.null_count else (documents, analyzer, texts)


class Counting(Vectorizer):
    """Counts of documents × terms, and the terms."""

    _terms: pa.Array
    _places: dict[Any, Any]

    @property
    def vocabulary_(self) -> dict[Any, Any]:
        """The column of each term. It is made when first asked for: a vocabulary may have millions of terms."""
        if "_places" not in vars(self):
            if "_terms" not in vars(self):
                raise AttributeError(f"this {type(self).__name__} has no vocabulary_: it is not fitted")
            terms = self._terms.to_pylist()
            self._places = dict(zip(terms, range(len(terms)), strict=True))
        return self._places

    @vocabulary_.setter
    def vocabulary_(self, places: Mapping[Any, Any]) -> None:
        vars(self).pop("_terms", None)
        self._places = dict(places)

    def get_feature_names_out(self: Any, input_features: Any = None) -> NDArray[Any]:
        """Return the terms, in the order of the columns.

        Parameters
        ----------
        input_features
            not used
        """
        if "_terms" in vars(self):
            names: NDArray[Any] = self._terms.to_numpy(zero_copy_only=False)
            return names
        found: NDArray[Any] = super().get_feature_names_out(input_features)  # type: ignore[misc]
        return found

    def _fit_counts(self: Any, documents: Any) -> Any:
        """Learn the vocabulary, and return the counts."""
        self._validate_params()
        self._validate_ngram_range()
        documents, analyzer, texts = self._read(documents)
        if analyzer is None:
            return upstream.CountVectorizer.fit_transform(self, documents)
        self._warn_for_unused_params()
        self._validate_vocabulary()
        if self.fixed_vocabulary_:
            if self.lowercase:
                warn_of_capitals(self.vocabulary)
            return self._counted(analyzer, texts)
        rows, vocabulary = analyzer.counts(texts)
        if not len(vocabulary):
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        low, high = document_limits(self.min_df, self.max_df, len(texts))
        del texts  # perhaps a copy, no longer needed
        numbers, terms = sorted_terms(vocabulary)
        if self.binary:
            rows.counts.fill(1)
        kept = limited(rows, numbers, low, high, self.max_features, np.dtype(self.dtype))
        if kept is not None:
            numbers = numbers_of_kept(kept)[numbers]
            terms = terms.filter(pa.array(kept))
        vars(self).pop("_places", None)
        self._terms = terms
        rows = rows.renumbered(numbers)
        return matrix(rows, len(terms), self.dtype)

    def _count(self: Any, documents: Any) -> Any:
        """Return the counts of terms that are known."""
        if isinstance(documents, str):
            raise ValueError(SINGLE)
        self._check_vocabulary()
        documents, analyzer, texts = self._read(documents)
        if analyzer is None:
            return upstream.CountVectorizer.transform(self, documents)
        return self._counted(analyzer, texts)

    def _counted(self: Any, analyzer: Analyzer, texts: pa.Array) -> Any:
        terms = self._known_terms()
        rows = analyzer.transform(texts, terms)
        if self.binary:
            rows.counts.fill(1)
        return matrix(rows.renumbered(np.arange(len(terms), dtype=np.int32)), len(terms), self.dtype)

    def _check_vocabulary(self: Any) -> None:
        """Raise if there is no vocabulary, or an empty one."""
        if "_terms" not in vars(self):
            super()._check_vocabulary()  # type: ignore[misc]

    def _known_terms(self: Any) -> pa.Array:
        """Return the terms in the order of their columns."""
        if "_terms" not in vars(self):
            # a term that is no text is never met; one that none could be keeps its place
            named = {place: term for term, place in self._places.items()}
            terms = [named[i] if isinstance(named[i], str) else None for i in range(len(named))]
            self._terms = as_texts(terms).cast(pa.large_string())
        return self._terms


def matrix(rows: Rows, width: int, dtype: Any) -> Any:
    """Return rows that are sorted as a sparse matrix."""
    narrow = len(rows.units) <= np.iinfo(np.int32).max
    kind: Any = np.int32 if narrow else np.int64
    units, starts = rows.units.astype(kind, copy=False), rows.starts.astype(kind)
    found = csr_matrix((rows.counts.astype(dtype), units, starts), shape=(len(starts) - 1, width))
    found.has_canonical_format = True
    return aligned(found)


def aligned(X: Any) -> Any:
    """Return a sparse matrix as the kind that scikit-learn is set to give."""
    return X if _align_api_if_sparse is None else _align_api_if_sparse(X)
