"""scikit-learn's vectorizers on the core: the same matrices, vocabularies, messages."""

import io
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.feature_extraction.text as upstream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from texts import STRINGS

import likely.sklearn as faces
from likely.sklearn import CountVectorizer, HashingVectorizer, MultinomialNB, TfidfVectorizer

VECTORIZERS = {"CountVectorizer", "TfidfVectorizer", "HashingVectorizer"}
TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "A quick, QUICK fox; Çà et là!",
    "",
    "ΟΔΥΣΣΕΥΣ and İstanbul, naïve café — the dog's bone",
    "the the the the",
    "over\tand  over\nand over",
]
PARAMETERS = {
    "default": {},
    "bigrams": {"ngram_range": (1, 2)},
    "trigrams": {"ngram_range": (2, 3)},
    "characters": {"analyzer": "char", "ngram_range": (1, 3)},
    "characters in words": {"analyzer": "char_wb", "ngram_range": (2, 4)},
    "english": {"stop_words": "english"},
    "stop words": {"stop_words": ["the", "fox"], "ngram_range": (1, 2)},
    "accents": {"strip_accents": "unicode"},
    "ascii": {"strip_accents": "ascii"},
    "case": {"lowercase": False},
    "binary": {"binary": True},
    "single letters": {"token_pattern": r"(?u)\b\w+\b"},
    "punctuation": {"token_pattern": r"\w+|[^\w\s]"},
    "own pattern": {"token_pattern": r"[a-z]+"},
    "own tokenizer": {"tokenizer": str.split, "token_pattern": None},
    "own preprocessor": {"preprocessor": str.upper},
    "own analyzer": {"analyzer": list},
    "own accents": {"strip_accents": str.title},
    "float": {"dtype": np.float32},
}
LIMITS = {
    "min_df": {"min_df": 2},
    "max_df": {"max_df": 0.3},
    "most": {"max_features": 3},
    "all limits": {"min_df": 2, "max_df": 4, "max_features": 2, "ngram_range": (1, 2)},
    "vocabulary": {"vocabulary": ["dog", "fox", "over and", "none"], "ngram_range": (1, 2)},
    "places": {"vocabulary": {"dog": 2, "fox": 0, "the": 1}},
    "set": {"vocabulary": {"dog", "fox"}},
}


def _same(found, expected):
    assert type(found) is type(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    found.sort_indices()
    expected.sort_indices()  # scikit-learn leaves cells in the order of first appearance
    for name in ("indptr", "indices"):
        assert getattr(found, name).dtype == getattr(expected, name).dtype
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    if found.dtype.kind == "f":  # the squares of a row are summed in the order of its cells
        np.testing.assert_array_max_ulp(found.data, expected.data, 4)
    else:
        np.testing.assert_array_equal(found.data, expected.data)


def _both(name, parameters):
    return getattr(faces, name)(**parameters), getattr(upstream, name)(**parameters)


@pytest.mark.parametrize("parameters", [*PARAMETERS.values(), *LIMITS.values()], ids=[*PARAMETERS, *LIMITS])
@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer"])
def test_matrix_and_vocabulary_are_the_same(name, parameters):
    ours, theirs = _both(name, parameters)
    _same(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))
    assert ours.vocabulary_ == theirs.vocabulary_
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert ours.fixed_vocabulary_ == theirs.fixed_vocabulary_
    for texts in (TEXTS[::-1], ["something unseen", "dog"]):
        _same(ours.transform(texts), theirs.transform(texts))
        _same(pickle.loads(pickle.dumps(ours)).transform(texts), theirs.transform(texts))
    _same(clone(ours).fit(TEXTS[:5]).transform(TEXTS), clone(theirs).fit(TEXTS[:5]).transform(TEXTS))
    for found, expected in zip(
        ours.inverse_transform(ours.transform(TEXTS)), theirs.inverse_transform(theirs.transform(TEXTS)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
@pytest.mark.parametrize(
    "hashing", [{}, {"n_features": 7}, {"n_features": 2**31 - 2}, {"alternate_sign": False, "norm": None}]
)
def test_hashes_are_the_same(parameters, hashing):
    ours, theirs = _both("HashingVectorizer", {**parameters, **hashing})
    _same(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))


@settings(deadline=None)
@given(texts=st.lists(STRINGS, min_size=1, max_size=8))
def test_any_strings(texts):
    ours, theirs = _both("CountVectorizer", {"ngram_range": (1, 2)})
    try:
        expected = theirs.fit_transform(texts)
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            ours.fit_transform(texts)
    else:
        _same(ours.fit_transform(texts), expected)
        assert ours.vocabulary_ == theirs.vocabulary_
    ours, theirs = _both("HashingVectorizer", {"analyzer": "char_wb", "ngram_range": (1, 3)})
    _same(ours.transform(texts), theirs.transform(texts))


@pytest.mark.parametrize("most", [1, 5, 40, 300])
@pytest.mark.parametrize("name", ["CountVectorizer", "TfidfVectorizer"])
def test_ties_of_the_most_frequent_terms(name, most):
    generator = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in generator.integers(0, 400, 30)) for _ in range(50)]
    ours, theirs = _both(name, {"max_features": most})
    _same(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.vocabulary_ == theirs.vocabulary_


COLUMNS = {
    "generator": lambda: (text for text in TEXTS),
    "tuple": lambda: tuple(TEXTS),
    "array": lambda: np.array(TEXTS),
    "objects": lambda: np.array(TEXTS, dtype=object),
    "series": lambda: pd.Series(TEXTS, index=range(6, 0, -1)),
    "strings": lambda: pd.Series(TEXTS, dtype="string"),
    "bytes": lambda: [text.encode() for text in TEXTS],
    "keys": lambda: dict.fromkeys(TEXTS),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_documents_of_all_kinds(kind):
    ours, theirs = _both("CountVectorizer", {})
    _same(ours.fit_transform(COLUMNS[kind]()), theirs.fit_transform(COLUMNS[kind]()))
    _same(ours.transform(COLUMNS[kind]()), theirs.transform(COLUMNS[kind]()))


@pytest.mark.parametrize("parameters", [{}, {"tokenizer": str.split, "token_pattern": None}])
def test_files(tmp_path, parameters):
    paths = [tmp_path / f"{i}.txt" for i in range(len(TEXTS))]
    for path, text in zip(paths, TEXTS, strict=True):
        path.write_text(text, encoding="utf-16")
    ours, theirs = _both("CountVectorizer", {"input": "filename", "encoding": "utf-16", **parameters})
    _same(ours.fit_transform(paths), theirs.fit_transform(paths))
    ours, theirs = _both("CountVectorizer", {"input": "file", "encoding": "utf-16", **parameters})
    files = [[io.BytesIO(path.read_bytes()) for path in paths] for _ in range(2)]
    _same(ours.fit_transform(files[0]), theirs.fit_transform(files[1]))


BAD = {
    "None": ["a", None],
    "NaN": ["a", np.nan],
    "number": ["a", 3],
    "bytes": [b"caf\xe9 au lait"],
    "string": "a string",
    "list": [["a"]],
    "no words": ["", "a"],
    "nothing": [],
}


@pytest.mark.parametrize("documents", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", sorted(VECTORIZERS))
def test_messages_are_the_same(name, documents):
    def outcome(vectorizer):
        try:
            return vectorizer.fit_transform(documents).shape
        except Exception as error:
            return type(error), str(error)

    ours, theirs = _both(name, {})
    assert outcome(ours) == outcome(theirs)


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_df": 5, "max_df": 2},
        {"min_df": 6},
        {"ngram_range": (2, 1)},
        {"token_pattern": "(a)(b)"},
        {"max_features": -1},
        {"analyzer": "letters"},
        {"vocabulary": []},
        {"vocabulary": ["a", "a"]},
        {"vocabulary": {"a": 1, "b": 3}},
        {"encoding": "no such"},
    ],
)
def test_bad_parameters_are_refused_alike(parameters):
    ours, theirs = _both("CountVectorizer", parameters)
    documents = [text.encode() for text in TEXTS]
    with pytest.raises(Exception) as expected:  # noqa: PT011
        theirs.fit_transform(documents)
    with pytest.raises(expected.type, match=re.escape(str(expected.value))):
        ours.fit_transform(documents)


@pytest.mark.parametrize("decode_error", ["ignore", "replace"])
def test_bytes_that_are_not_utf8(decode_error):
    documents = [b"caf\xe9 au lait", b"\xff\xfeab \xe2\x82x"]
    ours, theirs = _both("CountVectorizer", {"decode_error": decode_error, "analyzer": "char"})
    _same(ours.fit_transform(documents), theirs.fit_transform(documents))
    assert ours.vocabulary_ == theirs.vocabulary_


def test_warnings_are_the_same():
    for parameters in ({"stop_words": ["don't"]}, {"vocabulary": ["Dog"]}, {"analyzer": "char", "stop_words": ["a"]}):
        caught = []
        for vectorizer in _both("CountVectorizer", parameters):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                vectorizer.fit(TEXTS)
            caught.append([str(warning.message) for warning in found])
        assert caught[0] == caught[1] != []


def test_what_is_not_fitted_says_so():
    for vectorizer in (CountVectorizer(), TfidfVectorizer()):
        with pytest.raises(NotFittedError):
            vectorizer.transform(TEXTS)
        with pytest.raises(NotFittedError):
            vectorizer.get_feature_names_out()
        assert not hasattr(vectorizer, "vocabulary_")


def test_a_failed_fit_of_words_leaves_the_vocabulary():
    vectorizer = CountVectorizer().fit(TEXTS)
    before = vectorizer.vocabulary_
    with pytest.raises(ValueError, match="empty vocabulary"):
        vectorizer.fit([""])
    assert vectorizer.vocabulary_ == before


def test_a_vocabulary_that_is_set_is_used():
    vectorizer = CountVectorizer().fit(TEXTS)
    vectorizer.vocabulary_ = {"fox": 1, "dog": 0}
    assert vectorizer.transform(["fox fox dog"]).toarray().tolist() == [[1, 2]]
    vectorizer.fit(["cat"])
    assert vectorizer.vocabulary_ == {"cat": 0}


def test_a_subclass_may_find_units_in_its_own_way():
    class Initials(CountVectorizer):
        def build_analyzer(self):
            return lambda text: [word[0] for word in text.split()]

    assert Initials().fit(["ab ac b"]).vocabulary_ == {"a": 0, "b": 1}
    assert HashingVectorizer(n_features=4).fit_transform(["ab"]).shape == (1, 4)


@pytest.mark.parametrize("vectorizer", [CountVectorizer(), TfidfVectorizer(ngram_range=(1, 2)), HashingVectorizer()])
def test_cells_are_sorted(vectorizer):
    found = vectorizer.fit_transform(TEXTS)
    assert csr_matrix((found.data, found.indices, found.indptr), shape=found.shape).has_canonical_format


def test_a_pipeline_of_text():
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), MultinomialNB())
    assert model.fit(["good film", "bad film", "good"], [1, 0, 1]).predict(["a good one"]).tolist() == [1]
