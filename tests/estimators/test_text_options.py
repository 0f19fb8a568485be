"""Options of the classifier of texts: how words are counted, which are kept, pseudo-counts, functions as tokenizers."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from texts import made, textbook, texts_and_labels

import likely
from likely import TextClassifier
from likely.text import Analyzer

COUNTINGS = [
    {"counts": "log"},
    {"normalize": True},
    {"idf": True},
    {"counts": "log", "normalize": True},
    {"counts": "log", "normalize": True, "idf": True},
]
ASKED = ["cat cat unheard of", "", "rose cat rose rose the"]


def softmax(scores):
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def taken(X, counts="plain", normalize=False, idf=False):
    """What texts × words are taken for, but for the one length of texts."""
    T = np.log1p(X) if counts == "log" else X.astype(float)
    norms = np.sqrt((T**2).sum(axis=1, keepdims=True))
    return T / np.where(norms > 0, norms, 1) if normalize else T


def reference(texts, y, asked, counting, weights=None, event="multinomial", smoothing=1.0, kept=None):
    """log p(y) + Σ x log θ by the formulas, from scikit-learn's counts."""
    vectorizer = CountVectorizer(token_pattern=r"(?u)\w+")
    X, Q = (matrix.toarray() for matrix in (vectorizer.fit_transform(texts), vectorizer.transform(asked)))
    weights = np.ones(len(texts)) if weights is None else np.asarray(weights, dtype=float)
    T = taken(X, **counting)
    length = (weights @ X).sum() / (weights @ T).sum() if counting.get("normalize") else 1.0
    kept = np.full(X.shape[1], True) if kept is None else kept(weights @ (X > 0))
    T, U = T[:, kept] * length, taken(Q * kept, **counting)[:, kept] * length
    if counting.get("idf"):
        idf = np.log((1 + weights.sum()) / (1 + weights @ (X[:, kept] > 0))) + 1
        T, U = T * idf, U * idf
    classes = np.unique(y)
    one = np.array([(weights * (np.asarray(y) == c)) @ T for c in classes])
    if event == "complement":
        one = one.sum(axis=0) - one
    logs = np.log((one + smoothing) / (one + smoothing).sum(axis=1, keepdims=True))
    shares = np.array([weights[np.asarray(y) == c].sum() for c in classes]) / weights.sum()
    return np.log(shares) + (U @ logs.T if event == "multinomial" else -U @ logs.T)


@pytest.mark.parametrize("event", ["multinomial", "complement"])
@pytest.mark.parametrize("counting", COUNTINGS, ids=str)
@given(rows=texts_and_labels, smoothing=st.sampled_from([1.0, 0.3]))
def test_countings_are_their_formulas(event, counting, rows, smoothing):
    texts, y = zip(*rows, strict=True)
    model = textbook(event=event, smoothing=smoothing, **counting).fit(texts, y)
    asked = [*texts, *ASKED]
    expected = softmax(reference(texts, y, asked, counting, event=event, smoothing=smoothing))
    np.testing.assert_allclose(model.predict_proba(asked), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("counting", COUNTINGS, ids=str)
@given(rows=texts_and_labels, cut=st.integers(1, 19))
def test_countings_merge_forget_and_weigh(counting, rows, cut):
    texts, y = zip(*rows, strict=True)
    expected = textbook(**counting).fit(texts, y).predict_proba(texts)
    again = textbook(**counting).fit(texts, y).partial_fit(texts[:cut], y[:cut]).forget(texts[:cut], y[:cut])
    np.testing.assert_allclose(again.predict_proba(texts), expected, rtol=1e-8, atol=1e-12)
    if cut < len(texts):
        one, two = (textbook(**counting).fit(texts[part], y[part]) for part in (slice(cut), slice(cut, None)))
        np.testing.assert_allclose(one.merge(two).predict_proba(texts), expected, rtol=1e-9, atol=1e-12)
    weights = np.arange(len(texts)) % 3 + 0.5
    weighed = textbook(**counting).fit(texts, y, sample_weight=weights).predict_proba(texts)
    np.testing.assert_allclose(weighed, softmax(reference(texts, y, texts, counting, weights)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("event", ["multinomial", "complement"])
@pytest.mark.parametrize("counting", COUNTINGS, ids=str)
def test_countings_explained_and_saved(event, counting, tmp_path):
    texts, y = made(60)
    model = textbook(event=event, min_df=2, max_features=200, **counting).fit(texts, y)
    told = model.explain([*texts[:7], ""], "class 0", "class 2")
    logs = model.predict_log_proba([*texts[:7], ""])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 2], rtol=1e-9, atol=1e-9)
    # one word's part is what the text says more than without it, where texts keep their length
    if not counting.get("normalize"):
        word, _, odds = told.words(0)[0]
        without = " ".join(each for each in texts[0].split() if each != word)
        less = model.predict_log_proba([without])[0]
        np.testing.assert_allclose(odds, logs[0, 0] - logs[0, 2] - (less[0] - less[2]), rtol=1e-8)
    model.save(tmp_path / "model.likely")
    for again in (
        likely.load(tmp_path / "model.likely"),
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(texts, y),
    ):
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict_proba(texts), model.predict_proba(texts))
    if event == "multinomial":  # how usual texts are is asked of words as they come
        plain = textbook(min_df=2, max_features=200).fit(texts, y)
        np.testing.assert_array_equal(model.log_density(texts), plain.log_density(texts))
        assert model.sample(3, random_state=0)[0] == plain.sample(3, random_state=0)[0]


def test_smoothing_weighs_as_much_in_texts_of_one_length():
    texts, y = made(200)
    long = [" ".join([text] * 7) for text in texts]
    model, other = (textbook(normalize=True).fit(texts, y) for texts in (texts, long))
    density = model.joint_.densities[0]
    assert density.length @ model.class_count_ == pytest.approx(model.words_.sums["count"].sum())
    # texts seven times as long have seven times the counts, and each says seven times as much
    assert other.joint_.densities[0].rule[3] == pytest.approx(7 * density.rule[3])


LIMITS = [
    {"min_df": 2},
    {"min_df": 0.3},
    {"max_df": 3},
    {"max_df": 0.6},
    {"min_df": 2, "max_df": 0.8},
    {"min_df": 1, "max_df": 0.5},
    {"max_features": 3},
    {"min_df": 2, "max_features": 2},
]


@pytest.mark.parametrize(("event", "peer"), [("multinomial", MultinomialNB), ("complement", ComplementNB)])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@given(rows=texts_and_labels)
def test_kept_words_are_those_of_scikit_learn(event, peer, limits, rows):
    texts, y = zip(*rows, strict=True)
    vectorizer = CountVectorizer(token_pattern=r"(?u)\w+", **limits)
    try:
        X = vectorizer.fit_transform(texts)
    except ValueError:
        with pytest.raises(ValueError, match="expected some words to keep, got none"):
            textbook(**limits).fit(texts, y)
        return
    if "max_features" in limits:  # of words as frequent as the last, scikit-learn keeps any
        every = CountVectorizer(token_pattern=r"(?u)\w+", **{**limits, "max_features": None}).fit_transform(texts)
        totals = np.sort(np.asarray(every.sum(axis=0)).ravel())[::-1]
        if len(totals) > X.shape[1] and totals[X.shape[1] - 1] == totals[X.shape[1]]:
            return
    asked = [*texts, *ASKED]
    theirs = peer().fit(X, y).predict_joint_log_proba(vectorizer.transform(asked))
    priors = "uniform" if event == "complement" else None
    ours = textbook(event=event, priors=priors, **limits).fit(texts, y).predict_proba(asked)
    np.testing.assert_allclose(ours, softmax(theirs), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("counting", COUNTINGS, ids=str)
@given(rows=texts_and_labels)
def test_kept_words_in_other_countings(counting, rows):
    texts, y = zip(*rows, strict=True)
    words = [word for text in texts for word in set(text.lower().split())]
    if len(set(words)) == len(words):  # none is in two texts
        return
    model = textbook(min_df=2, **counting).fit(texts, y)
    expected = softmax(reference(texts, y, texts, counting, kept=lambda documents: documents >= 2))
    np.testing.assert_allclose(model.predict_proba(texts), expected, rtol=1e-9, atol=1e-12)


@given(rows=texts_and_labels, cut=st.integers(1, 19))
def test_words_that_are_not_kept_are_not_lost(rows, cut):
    texts, y = zip(*rows, strict=True)
    if cut >= len(texts):
        return
    whole = textbook(max_features=3).fit(texts, y)
    one, two = (textbook(max_features=3).fit(texts[part], y[part]) for part in (slice(cut), slice(cut, None)))
    np.testing.assert_allclose(one.merge(two).predict_proba(texts), whole.predict_proba(texts), rtol=1e-9)
    one.forget(texts[cut:], y[cut:]).partial_fit(texts[cut:], y[cut:])
    np.testing.assert_allclose(one.predict_proba(texts), whole.predict_proba(texts), rtol=1e-9)
    assert len(whole.joint_.densities[0].terms) <= 3


def test_kept_words_of_discounted_words(tmp_path):
    texts, y = made(200)
    default = TextClassifier().fit(texts, y)
    same = TextClassifier(min_df=2, max_df=1.0).fit(texts, y)
    np.testing.assert_array_equal(same.predict_proba(texts), default.predict_proba(texts))
    few = TextClassifier(min_df=5, max_df=0.5, max_features=100).fit(texts, y)
    terms, documents = few.words_.terms.to_pylist(), few.words_.in_words("documents")
    found = few.joint_.densities[0].terms.to_pylist()
    assert len(found) == 100
    assert set(found) <= {term for term, n in zip(terms, documents, strict=True) if 5 <= n <= 0.5 * len(texts)}
    assert set(dict(few.top_words("class 0", 500))) <= set(found)
    few.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict_proba(texts), few.predict_proba(texts))
    every = TextClassifier(min_df=1).fit(texts, y)
    assert len(every.joint_.densities[0].terms) == len(every.words_.terms)
    assert few.evaluate(texts, y, folds=3).log_loss < np.log(3)


@pytest.mark.parametrize("event", ["multinomial", "complement"])
@given(rows=texts_and_labels)
def test_pseudo_counts_of_classes_and_words(event, rows):
    texts, y = zip(*rows, strict=True)
    vectorizer = CountVectorizer(token_pattern=r"(?u)\w+")
    X, classes = vectorizer.fit_transform(texts).toarray(), np.unique(y)
    words = vectorizer.get_feature_names_out()
    generator = np.random.default_rng(len(texts))
    numbers = generator.integers(1, 5, (len(classes), len(words))) / 2
    smoothing = {
        str(c): dict(zip(words.tolist(), own, strict=True)) for c, own in zip(classes, numbers.tolist(), strict=True)
    }
    sums = np.array([X[np.asarray(y) == c].sum(axis=0) for c in classes])
    sums = sums + numbers if event == "multinomial" else sums.sum(axis=0) - sums + numbers
    logs = np.log(sums / sums.sum(axis=1, keepdims=True)) * (1 if event == "multinomial" else -1)
    shares = np.array([np.mean(np.asarray(y) == c) for c in classes])
    model = textbook(event=event, smoothing=smoothing).fit(texts, y)
    np.testing.assert_allclose(model.predict_proba(texts), softmax(np.log(shares) + X @ logs.T), rtol=1e-9, atol=1e-12)
    if event == "multinomial":
        expected = np.log(np.exp(np.log(shares) + X @ logs.T).sum(axis=1))
        np.testing.assert_allclose(model.log_density(texts), expected, rtol=1e-9, atol=1e-9)


def test_pseudo_counts_that_are_not_of_all(tmp_path):
    """θ(win) = (1 + 3) / (2 + 3) for spam, and (0 + 1) / (2 + 1) for ham; no ham has "prize"."""
    smoothing = {"spam": {"win": 3.0, "unheard": 9.0}, "ham": {"win": 1.0}}
    model = textbook(smoothing=smoothing).fit(["win prize", "noon lunch"], ["spam", "ham"])
    np.testing.assert_allclose(model.predict_proba(["win"]), [[(1 / 3) / (1 / 3 + 4 / 5), (4 / 5) / (1 / 3 + 4 / 5)]])
    assert model.predict_proba(["prize"])[0, 0] < 1e-300
    told = model.explain(["win"], "spam", "ham")
    np.testing.assert_allclose(told.log_odds, np.log((4 / 5) / (1 / 3)), rtol=1e-12)
    model.save(tmp_path / "model.likely")
    assert likely.load(tmp_path / "model.likely").smoothing == smoothing
    # a dict of numbers is one of words, also if they are the names of classes
    words = textbook(smoothing={"spam": 1.0, "ham": 2.0}).fit(["spam spam", "ham"], ["spam", "ham"])
    np.testing.assert_allclose(words.predict_proba(["ham"]), [[(3 / 4) / (3 / 4 + 2 / 5), (2 / 5) / (3 / 4 + 2 / 5)]])
    numbered = textbook(smoothing={0: {"win": 3.0}, 1: {"win": 1.0}}).fit(["win prize", "noon lunch"], [0, 1])
    np.testing.assert_allclose(numbered.predict_proba(["win"])[:, 0], model.predict_proba(["win"])[:, 1])


@given(
    st.lists(st.text(alphabet="aAbBÉéßİΣσ ,.-1_\n", max_size=12), min_size=2, max_size=6),
    st.booleans(),
    st.sampled_from([None, "unicode", "ascii"]),
    st.sampled_from([(1, 1), (1, 2), (2, 3)]),
)
def test_a_function_finds_what_the_core_finds(texts, lowercase, accents, ngrams):
    more = {"lowercase": lowercase, "accents": accents, "ngrams": ngrams, "stop_words": frozenset({"a", "b"})}
    found = Analyzer(tokenizer=re.compile(r"\w+").findall, **more)
    same = Analyzer("words", **more)
    (rows, terms), (expected, others) = found.counts(texts), same.counts(texts)
    known = sorted(terms.to_pylist())
    assert known == sorted(others.to_pylist())
    assert rows.counts.sum() == expected.counts.sum()
    own, theirs = (
        np.bincount(r.documents * (len(known) + 1) + r.units, r.counts)
        for r in (found.transform(texts, known), same.transform(texts, known))
    )
    np.testing.assert_array_equal(own, theirs)


def halves(text):
    return text.split("|")


@pytest.mark.parametrize("calibrate", [False, True])
def test_models_whose_words_a_function_finds(calibrate, tmp_path):
    texts, y = made(120)
    expected = TextClassifier(unit="words", calibrate=calibrate).fit(texts, y).predict_proba(texts)
    model = TextClassifier(tokenizer=str.split, calibrate=calibrate).fit(texts, y)
    np.testing.assert_allclose(model.predict_proba(texts), expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"tokenizer=.*split.*: a model file holds data, not code") as refusal:
        model.save(tmp_path / "model.likely")
    assert "\n" not in str(refusal.value)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(texts), model.predict_proba(texts))
    again.partial_fit(texts[:5], y[:5]).forget(texts[:5], y[:5])
    np.testing.assert_allclose(again.predict_proba(texts), expected, rtol=1e-7)
    told = model.explain(texts[:4], "class 0", "class 1")
    logs = model.predict_log_proba(texts[:4])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 1], atol=1e-9)


def test_tokens_may_be_anything_but_empty():
    texts = ["New York||a", b"\xc3\x89t\xc3\xa9|New York", None, "", "|", "\ud800|x y"]
    model = TextClassifier(calibrate=False, ngrams=2, tokenizer=halves, lowercase=False)
    model.fit(texts, [0, 1, 0, 0, 1, 1])
    found = ["New York", "a", "New York a", "Été", "Été New York", "\ufffd", "x y", "\ufffd x y"]
    assert sorted(model.words_.terms.to_pylist()) == sorted(found)
    assert model.words_.sums["weight"].tolist() == [2.0, 3.0]
    assert [word for word, *_ in model.explain(["New York"], 0, 1).words()] == ["New York"]
    np.testing.assert_allclose(model.predict_proba(["York"]), model.predict_proba([""]))
    # stop words are left out before n-grams are made
    fewer = TextClassifier(calibrate=False, tokenizer=halves, stop_words=["b"]).fit(["A|B|C", "c"], [0, 1])
    assert sorted(fewer.words_.terms.to_pylist()) == ["a", "a c", "c"]
    generated = TextClassifier(calibrate=False, tokenizer=lambda text: iter(text.split())).fit(["a b", "c"], [0, 1])
    assert generated.predict(["a"]).tolist() == [0]


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (str.upper, "expected the tokenizer to return a list of words, got 'A B' of the text at index 0"),
        (len, "expected the tokenizer to return a list of words, got 3"),
        (lambda text: [*text.split(), 7], "expected words from the tokenizer, got 7 in the text at index 0"),
        (lambda _: [None], "expected words from the tokenizer, got None"),
        (lambda _: [b"a"], "expected words from the tokenizer, got b'a'"),
    ],
)
def test_functions_that_find_no_words(tokenizer, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        TextClassifier(tokenizer=tokenizer, lowercase=False).fit(["a b", "c"], [0, 1])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (textbook(counts="sqrt"), "expected counts to be one of 'plain', 'log', got 'sqrt'"),
        (textbook(counts=None), "expected counts to be one of"),
        (textbook(normalize="l2"), "expected normalize to be True or False, got 'l2'"),
        (textbook(idf=1), "expected idf to be True or False, got 1"),
        (TextClassifier(counts="log"), "expected counts='plain' without normalize and idf, as exponents"),
        (TextClassifier(idf=True), "use calibrate=False"),
        (textbook(event="bernoulli", normalize=True), "as event='bernoulli' only asks whether a word is there"),
        (textbook(min_df=0), "expected min_df as a number of texts, 1 or more, or a share from 0.0 to 1.0, got 0"),
        (textbook(min_df=True), "expected min_df as a number of texts"),
        (textbook(max_df=1.5), "expected max_df as a number of texts, 1 or more, or a share from 0.0 to 1.0, got 1.5"),
        (textbook(max_df=None), "expected max_df as a number of texts"),
        (textbook(max_df=float("nan")), "expected max_df as a number of texts"),
        (textbook(min_df=3, max_df=2), "expected min_df up to max_df, got 3 and 2"),
        (textbook(min_df=2, max_df=0.4), "expected some words to keep, got none of 2 by min_df=2 and max_df=0.4"),
        (textbook(max_features=0), "expected max_features as a number of words, 1 or more, or None, got 0"),
        (textbook(max_features=2.0), "expected max_features as a number of words"),
        (
            textbook(smoothing={"a": {"b": -1}}),
            "expected smoothing of 0 or more, a dict from words to numbers, or from",
        ),
        (textbook(smoothing={"a": {"b": 1}, "c": 1}), "expected smoothing of 0 or more"),
        (textbook(smoothing={"z": {"b": 1}}), r"expected smoothing of the classes \[0, 1\], got 'z'"),
        (textbook(event="bernoulli", smoothing={0: {"b": 1}}), "expected smoothing of 0 or more, got"),
        (TextClassifier(tokenizer="split"), "expected the tokenizer as a function from a text to a list, got 'split'"),
        (textbook(tokenizer=str.split), "expected a unit or a tokenizer, which says what words are, got both"),
    ],
)
def test_options_that_are_none(model, message):
    with pytest.raises(ValueError, match=message) as refusal:
        model.fit(["a", "b"], [0, 1])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("counts", "sqrt"), ("normalize", 1), ("idf", "yes"), ("min_df", -1), ("max_df", "a"), ("tokenizer", "os.system")],
)
def test_options_of_a_file_are_checked(name, value, tmp_path):
    from likely.persistence import file as files

    textbook().fit(["dog cat", "cat rose"], ["a", "b"]).save(tmp_path / "model.likely")
    header, arrays = files.read(tmp_path / "model.likely")
    changed = {**header, "parameters": {**header["parameters"], name: value}}
    files.write(tmp_path / "parameter.likely", changed, arrays)
    family = header["blocks"][0]["family"]["fields"]
    home = (
        "counting"
        if name in family["counting"]["fields"]
        else "kept"
        if name in family["kept"]["fields"]
        else "analyzer"
    )
    family[home]["fields"][name] = value
    files.write(tmp_path / "family.likely", header, arrays)
    for path in ("parameter.likely", "family.likely"):
        with pytest.raises(ValueError, match=f"expected .*{name}"):
            likely.load(tmp_path / path)


@pytest.mark.parametrize("last", ["a", "b"])
def test_complements_of_which_nothing_is_left(last):
    """If all words are in one class, what the others have is nothing, not what rounding leaves of it."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        texts = [" ".join(rng.choice(list("abcdefgh"), rng.integers(1, 7))) for _ in range(12)]
        model = textbook(event="complement", smoothing=0, counts="log").fit([*texts, ""], [*"a" * 12, last])
        p = model.predict_proba(texts)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (p >= 0).all()
