"""scikit-learn's vectorizers of text, on the core: the same matrices, many times faster.

Parameters, checks and messages are scikit-learn's own. What only Python can do, such as a tokenizer of the user's, is
left to scikit-learn, too.
"""

import codecs
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import sklearn.feature_extraction.text as upstream
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from likely.text import Analyzer, TermCounts, as_read, as_texts, document_limits, kept_numbers, sorted_terms

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
_SINGLE = "Iterable over raw text documents expected, string object received."
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
            raise ValueError(_SINGLE)
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


def _matrix(rows: TermCounts, width: int, dtype: Any) -> Any:
    """Return rows that are sorted as a sparse matrix."""
    narrow = len(rows.units) <= np.iinfo(np.int32).max
    kind: Any = np.int32 if narrow else np.int64
    units, starts = rows.units.astype(kind, copy=False), rows.starts.astype(kind)
    found = csr_matrix((rows.counts.astype(dtype), units, starts), shape=(len(starts) - 1, width))
    found.has_canonical_format = True
    return _aligned(found)


def _aligned(X: Any) -> Any:
    """Return a sparse matrix as the kind that scikit-learn is set to give."""
    return X if _align_api_if_sparse is None else _align_api_if_sparse(X)


def _limited(
    rows: TermCounts, numbers: NDArray[np.int32], low: float, high: float, most: int | None, dtype: np.dtype[Any]
) -> NDArray[np.bool_] | None:
    """Return which terms are kept, in their sorted order, whose positions ``numbers`` gives: None if all are."""
    documents = np.empty(len(numbers), dtype=np.int64)
    documents[numbers] = rows.document_counts(len(numbers))
    kept = (documents <= high) & (documents >= low)
    if most is not None and kept.sum() > most:
        counts = np.empty(len(numbers))
        counts[numbers] = np.bincount(rows.units, weights=rows.counts, minlength=len(numbers))
        # the type decides which of equally frequent terms are kept, as sorting differs
        totals = counts.astype(np.int64 if dtype.kind in "biu" else dtype)
        most_frequent = (-totals[kept]).argsort()[:most]
        found = np.flatnonzero(kept)[most_frequent]
        kept = np.zeros(len(numbers), dtype=bool)
        kept[found] = True
    if not kept.any():
        raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
    return None if kept.all() else kept


def _warn_of_capitals(vocabulary: Iterable[str]) -> None:
    """Warn if a term has capitals, which no text has once it is in lower case."""
    if any(any(map(str.isupper, term)) for term in vocabulary):
        warnings.warn(
            "Upper case characters found in vocabulary while 'lowercase' is True. These entries will not be matched "
            "with any documents",
            stacklevel=2,
        )


class CountVectorizer(Vectorizer, upstream.CountVectorizer):  # type: ignore[misc]
    r"""scikit-learn's ``CountVectorizer``: documents to counts of words, or of characters, and their n-grams.

    Units are found in Rust, on all cores, unless ``preprocessor``, ``tokenizer``, ``analyzer`` or ``strip_accents`` is
    a function, or ``token_pattern`` one that the core does not know. It knows ``(?u)\b\w\w+\b``, ``(?u)\b\w+\b``,
    ``\w+``, and ``\w+|[^\w\s]``, words and punctuation.

    Parameters
    ----------
    input, encoding, decode_error
        what documents are: texts, files or their names; how their bytes are decoded
    strip_accents, lowercase, preprocessor
        what is done to a text before it is split
    tokenizer, stop_words, token_pattern, ngram_range, analyzer
        how it is split
    max_df, min_df, max_features
        which terms are kept: those in at most and at least so many documents, or such a share; the most frequent
    vocabulary
        the terms, if they are known
    binary
        1 in place of all counts
    dtype
        the type of the counts

    Attributes
    ----------
    vocabulary_
        the column of each term, made when first asked for
    fixed_vocabulary_
        whether ``vocabulary`` was given

    Examples
    --------
    >>> from likely.sklearn import CountVectorizer
    >>> vectorizer = CountVectorizer()
    >>> vectorizer.fit_transform(["The cat sat.", "A cat, a cat!"]).toarray()
    array([[1, 1, 1],
           [2, 0, 0]])
    >>> vectorizer.get_feature_names_out().tolist()
    ['cat', 'sat', 'the']
    """

    _terms: pa.Array
    _positions: dict[Any, Any]

    @property
    def vocabulary_(self) -> dict[Any, Any]:
        """The column of each term. It is made when first asked for: a vocabulary may have millions of terms."""
        if "_positions" not in vars(self):
            if "_terms" not in vars(self):
                raise AttributeError(f"this {type(self).__name__} has no vocabulary_: it is not fitted")
            terms = self._terms.to_pylist()
            self._positions = dict(zip(terms, range(len(terms)), strict=True))
        return self._positions

    @vocabulary_.setter
    def vocabulary_(self, positions: Mapping[Any, Any]) -> None:
        self.__dict__.pop("_terms", None)
        self._positions = dict(positions)

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
        found: NDArray[Any] = super().get_feature_names_out(input_features)
        return found

    def fit_transform(self: Any, raw_documents: Any, y: Any = None) -> Any:
        """Learn the vocabulary, and return the counts, documents × terms.

        Parameters
        ----------
        raw_documents
            texts, files or names of files, as ``input`` says
        y
            not used
        """
        self._validate_params()
        self._validate_ngram_range()
        documents, analyzer, texts = self._read(raw_documents)
        if analyzer is None:
            return super().fit_transform(documents)
        self._warn_for_unused_params()
        self._validate_vocabulary()
        if self.fixed_vocabulary_:
            if self.lowercase:
                _warn_of_capitals(self.vocabulary)
            return self._counted(analyzer, texts)
        rows, vocabulary = analyzer.counts(texts)
        if not len(vocabulary):
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        low, high = document_limits(self.min_df, self.max_df, len(texts))
        if high < low:
            raise ValueError("max_df corresponds to < documents than min_df")
        del texts  # perhaps a copy, no longer needed
        numbers, terms = sorted_terms(vocabulary)
        if self.binary:
            rows.counts.fill(1)
        kept = _limited(rows, numbers, low, high, self.max_features, np.dtype(self.dtype))
        if kept is not None:
            numbers = kept_numbers(kept)[numbers]
            terms = terms.filter(pa.array(kept))
        vars(self).pop("_positions", None)
        self._terms = terms
        rows = rows.renumbered(numbers)
        return _matrix(rows, len(terms), self.dtype)

    def transform(self: Any, raw_documents: Any) -> Any:
        """Return the counts of the terms in the vocabulary, documents × terms.

        Parameters
        ----------
        raw_documents
            as in ``fit_transform``
        """
        if isinstance(raw_documents, str):
            raise ValueError(_SINGLE)
        self._check_vocabulary()
        documents, analyzer, texts = self._read(raw_documents)
        return super().transform(documents) if analyzer is None else self._counted(analyzer, texts)

    def _counted(self: Any, analyzer: Analyzer, texts: pa.Array) -> Any:
        """Return the counts of terms that are known."""
        terms = self._known_terms()
        rows = analyzer.transform(texts, terms)
        if self.binary:
            rows.counts.fill(1)
        return _matrix(rows.renumbered(np.arange(len(terms), dtype=np.int32)), len(terms), self.dtype)

    def _check_vocabulary(self: Any) -> None:
        """Raise if there is no vocabulary, or an empty one."""
        if "_terms" not in vars(self):
            super()._check_vocabulary()

    def _known_terms(self: Any) -> pa.Array:
        """Return the terms in the order of their columns."""
        if "_terms" not in vars(self):
            # a term that is no text is never met; one that none could be keeps its position
            named = {position: term for term, position in self._positions.items()}
            terms = [named[i] if isinstance(named[i], str) else None for i in range(len(named))]
            self._terms = as_texts(terms).cast(pa.large_string())
        return self._terms


class TfidfVectorizer(upstream.TfidfVectorizer, CountVectorizer):  # type: ignore[misc]
    """scikit-learn's ``TfidfVectorizer``: ``CountVectorizer``, and what ``TfidfTransformer`` makes of the counts.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, analyzer, stop_words
        as in ``CountVectorizer``
    token_pattern, ngram_range, max_df, min_df, max_features, vocabulary, binary, dtype
        as in ``CountVectorizer``
    norm, use_idf, smooth_idf, sublinear_tf
        as in ``TfidfTransformer``

    Attributes
    ----------
    idf_
        the weight of each term
    vocabulary_, fixed_vocabulary_
        as in ``CountVectorizer``

    Examples
    --------
    >>> from likely.sklearn import TfidfVectorizer
    >>> TfidfVectorizer().fit_transform(["The cat sat.", "A cat, a cat!"]).toarray().round(2)
    array([[0.45, 0.63, 0.63],
           [1.  , 0.  , 0.  ]])
    """


class HashingVectorizer(Vectorizer, upstream.HashingVectorizer):  # type: ignore[misc]
    """scikit-learn's ``HashingVectorizer``: counts in columns that are hashes, so that no vocabulary is held.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, stop_words, token_pattern
        as in ``CountVectorizer``
    ngram_range, analyzer, binary, dtype
        as in ``CountVectorizer``
    n_features
        the number of columns
    norm
        scale rows to a sum of 1 of their absolute values (``"l1"``) or of their squares (``"l2"``)
    alternate_sign
        half of the terms count down, so that terms in the same column tend to cancel out

    Examples
    --------
    >>> from likely.sklearn import HashingVectorizer
    >>> HashingVectorizer(n_features=4, norm=None).transform(["The cat sat.", "A cat, a cat!"]).toarray()
    array([[ 1.,  0., -1.,  1.],
           [ 0.,  0.,  0.,  2.]])
    """

    def transform(self, X: Any) -> Any:
        """Return the counts, documents × columns.

        Parameters
        ----------
        X
            texts, files or names of files, as ``input`` says
        """
        if isinstance(X, str):
            raise ValueError(_SINGLE)
        self._validate_ngram_range()
        documents, analyzer, texts = self._read(X)
        if analyzer is None or not len(texts):
            return super().transform(documents)
        hashed = _matrix(analyzer.hashed(texts, self.n_features, self.alternate_sign), self.n_features, self.dtype)
        if self.binary:
            hashed.data.fill(1)
        return hashed if self.norm is None else _aligned(normalize(hashed, norm=self.norm, copy=False))
