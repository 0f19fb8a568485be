"""scikit-learn's vectorizers of text, on the core: the same matrices, many times faster."""

from typing import Any, Self

import sklearn.feature_extraction.text as upstream
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from likely.sklearn.counting import SINGLE, Counting, Vectorizer, aligned, matrix


class CountVectorizer(Counting, upstream.CountVectorizer):  # type: ignore[misc]
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

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Learn the vocabulary, and return the counts, documents × terms.

        Parameters
        ----------
        raw_documents
            texts, files or names of files, as ``input`` says
        y
            not used
        """
        return self._fit_counts(raw_documents)

    def transform(self, raw_documents: Any) -> Any:
        """Return the counts of the terms in the vocabulary, documents × terms.

        Parameters
        ----------
        raw_documents
            as in ``fit_transform``
        """
        return self._count(raw_documents)


class TfidfVectorizer(Counting, upstream.TfidfVectorizer):  # type: ignore[misc]
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

    def fit(self, raw_documents: Any, y: Any = None) -> Self:
        """Learn the vocabulary and the weights of its terms.

        Parameters
        ----------
        raw_documents
            texts, files or names of files, as ``input`` says
        y
            not used
        """
        self._learn(raw_documents)
        return self

    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        """Learn the vocabulary and the weights of its terms, and return the weighted counts, documents × terms.

        Parameters
        ----------
        raw_documents, y
            as in ``fit``
        """
        counts = self._learn(raw_documents)
        return self._tfidf.transform(counts, copy=False)

    def transform(self, raw_documents: Any) -> Any:
        """Return the weighted counts, documents × terms.

        Parameters
        ----------
        raw_documents
            as in ``fit``
        """
        check_is_fitted(self, msg="The TF-IDF vectorizer is not fitted")
        return self._tfidf.transform(self._count(raw_documents), copy=False)

    def _learn(self, documents: Any) -> Any:
        self._check_params()
        self._tfidf = TfidfTransformer(
            norm=self.norm, use_idf=self.use_idf, smooth_idf=self.smooth_idf, sublinear_tf=self.sublinear_tf
        )
        counts = self._fit_counts(documents)
        self._tfidf.fit(counts)
        return counts


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
            raise ValueError(SINGLE)
        self._validate_ngram_range()
        documents, analyzer, texts = self._read(X)
        if analyzer is None or not len(texts):
            return super().transform(documents)
        hashed = matrix(analyzer.hashed(texts, self.n_features, self.alternate_sign), self.n_features, self.dtype)
        if self.binary:
            hashed.data.fill(1)
        return hashed if self.norm is None else aligned(normalize(hashed, norm=self.norm, copy=False))
