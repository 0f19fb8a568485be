"""Texts to counts: the units that Python's own functions find, however documents are cut, and whatever is in them."""

import re
import unicodedata

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, strip_accents_ascii, strip_accents_unicode
from texts import STRINGS

import likely
from likely.statistics import Assignment
from likely.text import Analyzer, as_texts, collect_words, sorted_terms
from likely.text.characters import tables

DOCUMENTS = st.lists(STRINGS, max_size=12)

# each beside the analyzer of scikit-learn that finds the same units
ANALYZERS = {
    "words of two": (Analyzer("words of two"), {}),
    "words": (Analyzer("words"), {"token_pattern": r"(?u)\b\w+\b"}),
    "words and punctuation": (Analyzer(), {"token_pattern": r"\w+|[^\w\s]"}),
    "case kept": (Analyzer("words", lowercase=False), {"token_pattern": r"\w+", "lowercase": False}),
    "no accents": (Analyzer("words of two", accents="unicode"), {"strip_accents": "unicode"}),
    "ascii": (Analyzer("words of two", accents="ascii"), {"strip_accents": "ascii"}),
    "n-grams": (Analyzer("words", (1, 3)), {"token_pattern": r"\w+", "ngram_range": (1, 3)}),
    "long n-grams": (Analyzer("words", (3, 4)), {"token_pattern": r"\w+", "ngram_range": (3, 4)}),
    "stop words": (
        Analyzer("words", (1, 2), stop_words=frozenset(["a", "σ"])),
        {"token_pattern": r"\w+", "ngram_range": (1, 2), "stop_words": ["a", "σ"]},
    ),
    "characters": (Analyzer("characters", (1, 3)), {"analyzer": "char", "ngram_range": (1, 3)}),
    "characters in words": (Analyzer("characters in words", (2, 5)), {"analyzer": "char_wb", "ngram_range": (2, 5)}),
}


def _bags(rows, vocabulary):
    """Return the counts of each document by term."""
    terms = vocabulary.to_pylist()
    spans = zip(rows.starts[:-1], rows.starts[1:], strict=True)
    return [{terms[rows.units[i]]: int(rows.counts[i]) for i in range(start, end)} for start, end in spans]


def _bag(units):
    return {unit: units.count(unit) for unit in dict.fromkeys(units)}


@pytest.mark.parametrize("name", ANALYZERS)
@settings(deadline=None)
@given(texts=DOCUMENTS)
def test_units_are_those_of_python(name, texts):
    analyzer, parameters = ANALYZERS[name]
    find = CountVectorizer(**parameters).build_analyzer()
    rows, vocabulary = analyzer.counts(texts)
    assert _bags(rows, vocabulary) == [_bag(find(text)) for text in texts]
    assert len(set(vocabulary.to_pylist())) == len(vocabulary)


@pytest.mark.parametrize("unit", ["characters", "characters in words"])
@settings(deadline=None, max_examples=30)
@given(texts=DOCUMENTS)
def test_units_of_characters_that_are_stop_words_are_left_out(unit, texts):
    stop_words = frozenset(["a", " ", "ab", "σ", " a "])
    every, fewer = Analyzer(unit, (1, 3)), Analyzer(unit, (1, 3), stop_words=stop_words)
    left = [{term: n for term, n in bag.items() if term not in stop_words} for bag in _bags(*every.counts(texts))]
    rows, vocabulary = fewer.counts(texts)
    assert _bags(rows, vocabulary) == left
    assert _bags(fewer.transform(texts, vocabulary), vocabulary) == left
    one = Assignment(np.zeros(1), np.zeros(len(texts), dtype=np.int32))
    words = collect_words(fewer, texts, one)
    counts = dict(zip(words.terms.to_pylist(), words.sums["count"].tolist(), strict=True))
    assert counts == {term: sum(bag.get(term, 0) for bag in left) for term in vocabulary.to_pylist()}
    assert fewer.hashed(texts, 1, signs=False).counts.sum() == sum(sum(bag.values()) for bag in left)


@pytest.mark.parametrize("name", ANALYZERS)
@settings(deadline=None, max_examples=30)
@given(texts=DOCUMENTS, others=DOCUMENTS)
def test_a_vocabulary_is_looked_up(name, texts, others):
    analyzer = ANALYZERS[name][0]
    rows, vocabulary = analyzer.counts(texts)
    assert _bags(analyzer.transform(texts, vocabulary), vocabulary) == _bags(rows, vocabulary)
    known = set(vocabulary.to_pylist())
    expected = [{unit: n for unit, n in bag.items() if unit in known} for bag in _bags(*analyzer.counts(others))]
    assert _bags(analyzer.transform(others, vocabulary), vocabulary) == expected


@pytest.mark.parametrize("name", ANALYZERS)
@settings(deadline=None, max_examples=30)
@given(texts=DOCUMENTS, codes=st.lists(st.integers(-1, 3), min_size=12, max_size=12))
def test_classes_are_sums_of_documents(name, texts, codes):
    analyzer = ANALYZERS[name][0]
    codes = np.array(codes[: len(texts)], dtype=np.int32)
    sums = collect_words(analyzer, as_texts(texts), Assignment(np.arange(4), codes))
    vocabulary = sums.terms
    rows = analyzer.transform(texts, vocabulary)
    counts, documents = np.zeros((2, 4, len(vocabulary)))
    for i, code in enumerate(codes):
        if code >= 0:
            units = rows.units[rows.starts[i] : rows.starts[i + 1]]
            counts[code, units] += rows.counts[rows.starts[i] : rows.starts[i + 1]]
            documents[code, units] += 1
    for name, expected in (("count", counts), ("documents", documents)):
        found = np.zeros_like(expected)
        found[sums.codes, sums.words] = sums.sums[name]
        np.testing.assert_array_equal(found, expected)
    assert counts.sum(axis=0).all()


@pytest.mark.parametrize(("lowercase", "accents"), [(True, None), (True, "ascii"), (False, "unicode")])
def test_every_character_is_as_python_has_it(lowercase, accents):
    strip = {None: str, "unicode": strip_accents_unicode, "ascii": strip_accents_ascii}[accents]
    found = tables(lowercase, accents, True)
    becomes = found.becomes.tobytes()
    folded = {int(code): becomes[found.starts[i] : found.starts[i + 1]].decode() for i, code in enumerate(found.folded)}
    for code in [*range(128, 0x3400), *range(0x3400, 0xA000, 61), *range(0xA000, 0xD800), *range(0xE000, 0x20000)]:
        character, kind = chr(code), int(found.kinds[code])
        expected = strip(character.lower() if lowercase else character)
        assert ("" if kind & 32 else folded.get(code, character)) == expected
        assert (bool(kind & 4), bool(kind & 1)) == (code in folded, character.isalnum())
        assert bool(kind & 2) == character.isspace()


def test_the_form_of_a_sigma_depends_on_every_neighbour():
    analyzer = Analyzer("characters", (1, 1))
    for start in [*range(0, 0x3200, 0x100), 0xA600, 0xA700, 0xFB00, 0xFE00, 0x10400, 0x1D400, 0x1E900, 0xE0100]:
        texts = [
            t for c in range(start, start + 0x100) if not 0xD800 <= c < 0xE000 for t in (f"a{chr(c)}Σ", f"aΣ{chr(c)}b")
        ]
        rows, vocabulary = analyzer.counts(texts)
        assert _bags(rows, vocabulary) == [_bag(re.sub(r"\s\s+", " ", text.lower())) for text in texts]


@pytest.fixture
def threads():
    yield likely.set_threads
    likely.set_threads(None)


@pytest.mark.parametrize("name", ANALYZERS)
def test_threads_do_not_matter(name, threads):
    analyzer = ANALYZERS[name][0]
    generator = np.random.default_rng(5)
    words = np.array([f"wörd{i}" if i % 3 else f"a{i} b" for i in range(3000)])
    texts = [" ".join(words[generator.zipf(1.3, n) % 3000]) for n in generator.integers(0, 250, 1500)]
    assignment = Assignment(np.arange(5), generator.integers(0, 5, len(texts)).astype(np.int32))
    found = []
    for number in (1, 2, 7):
        threads(number)
        rows, vocabulary = analyzer.counts(texts)
        sums = collect_words(analyzer, as_texts(texts), assignment)
        hashed = analyzer.hashed(texts, 1000)
        known = analyzer.transform(texts, vocabulary)
        found.append(([*rows, *sums.sums.values(), *hashed, *known], vocabulary, sums.terms))
    for arrays, vocabulary, terms in found[1:]:
        assert vocabulary.equals(found[0][1])
        assert terms.equals(found[0][2])
        for array, first in zip(arrays, found[0][0], strict=True):
            np.testing.assert_array_equal(array, first)


def test_a_split_of_the_documents_adds_up():
    texts = ["a b c", "b b", "", "c d a", "e"]
    whole, vocabulary = Analyzer("words", (1, 2)).counts(texts)
    for cut in range(len(texts) + 1):
        parts = [Analyzer("words", (1, 2)).counts(part) for part in (texts[:cut], texts[cut:])]
        terms = list(dict.fromkeys([term for _, part in parts for term in part.to_pylist()]))
        assert terms == vocabulary.to_pylist()
        assert [bag for part in parts for bag in _bags(*part)] == _bags(whole, vocabulary)


TEXTS = ["One two", "two, three", None, "three"]
COLUMNS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "generator": TEXTS,
    "objects": np.array(TEXTS, dtype=object),
    "bytes": [None if text is None else text.encode() for text in TEXTS],
    "pandas": pd.Series(TEXTS, index=[3, 1, 4, 1]),
    "pandas strings": pd.Series(TEXTS, dtype="string"),
    "pandas categories": pd.Series(TEXTS, dtype="category"),
    "arrow": pa.array(TEXTS),
    "large": pa.array(TEXTS, pa.large_string()),
    "view": pa.array(TEXTS).cast(pa.string_view()),
    "binary": pa.array(TEXTS).cast(pa.binary()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "slice": pa.array(["x", *TEXTS, "y"])[1:-1],
    "chunks": pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
    "polars": TEXTS,
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_all_kinds(kind):
    column = COLUMNS[kind]
    if kind == "generator":
        column = (text for text in column)
    if kind == "polars":
        column = pytest.importorskip("polars").Series(column)
    rows, vocabulary = Analyzer("words").counts(column)
    assert _bags(rows, vocabulary) == [{"one": 1, "two": 1}, {"two": 1, "three": 1}, {}, {"three": 1}]


def test_no_texts_and_no_words():
    rows, vocabulary = Analyzer().counts([])
    assert (rows.starts.tolist(), len(rows.units), len(vocabulary)) == ([0], 0, 0)
    rows, vocabulary = Analyzer().counts(["", None, " "])
    assert (rows.starts.tolist(), len(vocabulary)) == ([0, 0, 0, 0], 0)
    assert Analyzer().transform(["a"], []).starts.tolist() == [0, 0]
    nothing = Assignment(np.arange(2), np.empty(0, dtype=np.int32))
    assert collect_words(Analyzer(), as_texts([]), nothing).starts.tolist() == [0]
    assert Analyzer().counts(pa.array([None, None]))[0].starts.tolist() == [0, 0, 0]


@settings(deadline=None)
@given(text=st.binary(max_size=30))
def test_bytes_that_are_not_utf8(text):
    for errors in ("ignore", "replace"):
        analyzer = Analyzer("characters", errors=errors)
        decoded = re.sub(r"\s\s+", " ", text.decode("utf-8", errors).lower())
        assert _bags(*analyzer.counts([b"", text])) == [{}, _bag(decoded)]
    try:
        text.decode()
    except UnicodeDecodeError as expected:
        with pytest.raises(UnicodeDecodeError, match=re.escape(str(expected))):
            Analyzer().counts([b"", text])


def test_lone_surrogates_become_the_replacement_character():
    rows, vocabulary = Analyzer().counts(["a \ud800b", "\udfff"])
    assert _bags(rows, vocabulary) == [{"a": 1, "\ufffd": 1, "b": 1}, {"\ufffd": 1}]


def test_long_words_and_documents():
    long = "x" * 100_000
    text = " ".join([long, long + "y", long, "é" * 70_000])
    assert _bags(*Analyzer("words").counts([text])) == [{long: 2, long + "y": 1, "é" * 70_000: 1}]
    rows, vocabulary = Analyzer("words", (1, 2)).counts(["ab cd " * 500_000])
    assert _bags(rows, vocabulary) == [{"ab": 500_000, "cd": 500_000, "ab cd": 500_000, "cd ab": 499_999}]


@settings(deadline=None)
@given(texts=DOCUMENTS)
def test_vocabularies_are_sorted_as_python_sorts(texts):
    rows, vocabulary = Analyzer("characters", (1, 2)).counts(texts)
    numbers, terms = sorted_terms(vocabulary)
    assert terms.to_pylist() == sorted(vocabulary.to_pylist())
    assert _bags(rows.renumbered(numbers), terms) == _bags(rows, vocabulary)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Analyzer().counts("one text"), TypeError, "expected several texts, got a single one, 'one text'"),
        (lambda: Analyzer().counts(["a", 3]), TypeError, "expected texts, got 3 at index 1"),
        (lambda: Analyzer().counts(pa.array([1.5])), TypeError, "expected texts, got values of type double"),
        (lambda: Analyzer("letters"), ValueError, "expected unit to be one of 'words', .* got 'letters'"),
        (lambda: Analyzer(ngrams=(2, 1)), ValueError, r"expected ngrams from 1 or more .* got \(2, 1\)"),
        (lambda: Analyzer(ngrams=(0, 1)), ValueError, r"expected ngrams from 1 or more .* got \(0, 1\)"),
        (
            lambda: Analyzer(accents="latin"),
            ValueError,
            "expected accents to be None, 'ascii' or 'unicode', got 'latin'",
        ),
        (
            lambda: Analyzer(errors="drop"),
            ValueError,
            "expected errors to be 'strict', 'ignore' or 'replace', got 'drop'",
        ),
        (
            lambda: Analyzer().amounts(["a"], np.zeros(2, np.int32), None, 2),
            ValueError,
            "a class for each of the 1 texts",
        ),
        (lambda: Analyzer().amounts(["a"], np.full(1, 2, np.int32), None, 2), ValueError, "do not fit the documents"),
    ],
)
def test_errors_say_what_was_expected(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_offsets_that_lead_nowhere_are_refused():
    buffers = [None, pa.py_buffer(np.array([0, 100, 2], dtype=np.int32)), pa.py_buffer(b"abc")]
    with pytest.raises(ValueError, match="the texts are broken"):
        Analyzer().counts(pa.Array.from_buffers(pa.string(), 2, buffers))


def test_texts_of_arrow_are_not_copied():
    texts = pa.array(["one", "two"])
    assert as_texts(texts).buffers()[2].address == texts.buffers()[2].address


def test_the_planes_left_out_have_no_characters():
    for code in [*range(0x40000, 0xE0000, 97), *range(0xF0000, 0x110000, 97)]:
        assert unicodedata.category(chr(code)) in ("Cn", "Co")
