"""Texts as bags of words: the textbook's formulas, discounted words, and all that a classifier of texts is asked."""

import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from texts import made, textbook, texts_and_labels

import likely
from likely import Classifier, NaiveBayes, TextClassifier
from likely.data.distinct import sample_texts
from likely.families.bag import Bag, strength
from likely.statistics import Assignment
from likely.text import Analyzer, WordStatistics, collect_words


@pytest.mark.parametrize(
    ("event", "peer"), [("multinomial", MultinomialNB), ("complement", ComplementNB), ("bernoulli", BernoulliNB)]
)
@pytest.mark.parametrize("smoothing", [1.0, 0.3])
@given(texts_and_labels)
def test_events_are_those_of_scikit_learn(event, peer, smoothing, rows):
    texts, y = zip(*rows, strict=True)
    vectorizer = CountVectorizer(token_pattern=r"(?u)\w+")
    X = vectorizer.fit_transform(texts)
    priors = "uniform" if event == "complement" else None
    ours = textbook(event=event, smoothing=smoothing, priors=priors).fit(texts, y)
    asked = [*texts, "cat cat unheard of", ""]
    theirs = peer(alpha=smoothing).fit(X, y).predict_joint_log_proba(vectorizer.transform(asked))
    expected = theirs - theirs.max(axis=1, keepdims=True)
    expected = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours.predict_proba(asked), expected, rtol=1e-9, atol=1e-12)
    if event != "complement":
        total = np.logaddexp.reduce(theirs, axis=1)
        np.testing.assert_allclose(ours.log_density(asked), total, rtol=1e-9, atol=1e-9)


def test_the_worked_example():
    """θ = (.5, .4, .05, .05) or (.1, .1, .5, .3): the bag dog dog cat dog cat tulip, as in the lecture notes."""
    texts = ["dog " * 10 + "cat " * 8 + "tulip rose", "dog " * 2 + "cat " * 2 + "tulip " * 10 + "rose " * 6]
    model = textbook(smoothing=0).fit(texts, ["pets", "garden"])
    bag = ["dog dog cat dog cat tulip"]
    pets, garden = 0.5**3 * 0.4**2 * 0.05, 0.1**3 * 0.1**2 * 0.5
    np.testing.assert_allclose(
        model.predict_proba(bag), [[garden / (pets + garden), pets / (pets + garden)]], rtol=1e-12
    )
    np.testing.assert_allclose(model.log_density(bag), np.log((pets + garden) / 2), rtol=1e-12)


@pytest.mark.parametrize("model", [textbook(), textbook(smoothing="kneser-ney"), TextClassifier()], ids=str)
@given(rows=texts_and_labels, cut=st.integers(1, 20))
def test_batches_merging_forgetting(model, rows, cut):
    texts, y = zip(*rows, strict=True)
    whole = model.__class__(**model.get_params()).fit(texts, y)
    expected = whole.predict_proba(texts)
    parts = model.__class__(**model.get_params()).fit(texts, y)
    parts.partial_fit(texts[:cut], y[:cut]).forget(texts[:cut], y[:cut])
    np.testing.assert_allclose(parts.predict_proba(texts), expected, rtol=1e-7, atol=1e-9)
    if not model.calibrate and cut < len(texts):
        one, two = (
            textbook(smoothing=model.smoothing).fit(t, label)
            for t, label in ((texts[:cut], y[:cut]), (texts[cut:], y[cut:]))
        )
        np.testing.assert_allclose(one.merge(two).predict_proba(texts), expected, rtol=1e-9)


@given(texts_and_labels)
def test_a_weight_of_two_is_a_text_twice(rows):
    texts, y = zip(*rows, strict=True)
    weights = np.arange(len(texts)) % 3
    if len({label for label, weight in zip(y, weights, strict=True) if weight}) < len(set(y)):
        return
    weighed = textbook().fit(texts, y, sample_weight=weights)
    again = textbook().fit(list(np.repeat(texts, weights)), np.repeat(y, weights))
    known = [text for text, weight in zip(texts, weights, strict=True) if weight]
    np.testing.assert_allclose(weighed.predict_proba(known), again.predict_proba(known), rtol=1e-9)


def test_discounted_words_do_not_depend_on_order_or_copies():
    texts, y = made(150, seed=4)
    expected = TextClassifier().fit(texts, y).predict_proba(texts)
    turned = TextClassifier().fit(texts[::-1], y[::-1]).predict_proba(texts)
    np.testing.assert_allclose(turned, expected, rtol=1e-7, atol=1e-10)
    weights = np.arange(len(texts)) % 3
    weighed = TextClassifier().fit(texts, y, sample_weight=weights).predict_proba(texts)
    again = TextClassifier().fit(list(np.repeat(texts, weights)), np.repeat(y, weights)).predict_proba(texts)
    np.testing.assert_allclose(weighed, again, rtol=1e-7, atol=1e-10)
    rows = [{"t": text, "x": float(len(text))} for text in texts]
    one, other = (Classifier({"t": "text"}).fit(rows[::step], y[::step]) for step in (1, -1))
    np.testing.assert_allclose(one.predict_proba(rows), other.predict_proba(rows), rtol=1e-7, atol=1e-10)


def test_many_classes_and_rare_ones():
    generator = np.random.default_rng(0)
    texts = [f"w{c} w{generator.integers(0, 50)} common" for c in np.arange(1400) % 700]
    model = TextClassifier().fit(texts, np.arange(1400) % 700)
    assert model.score(texts, np.arange(1400) % 700) > 0.9
    codes = np.repeat(np.arange(101), [30_000, *[25] * 100]).astype(np.int32)
    numbers, _ = sample_texts(
        pa.array([f"text {i}" for i in range(len(codes))]), Assignment(np.arange(101), codes), 500
    )
    assert len(np.unique(codes[numbers])) == 101
    assert len(numbers) < 700


@pytest.mark.parametrize("model", [textbook(), TextClassifier(), TextClassifier(ngrams=1, min_df=1)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_streams_are_lists(model, weighted, tmp_path, monkeypatch):
    from likely.text import documents as streams

    texts, y = made(300, seed=2)
    texts[7:9] = [texts[3]] * 2
    y[7:9] = y[3]
    weights = np.arange(300) % 3 + 1.0 if weighted else None
    expected = clone(model).fit(texts, y, weights).predict_proba(texts)
    monkeypatch.setattr(streams, "_MOST", 41)
    again = clone(model).fit(iter(texts), iter(y), None if weights is None else iter(weights))
    np.testing.assert_allclose(again.predict_proba(iter(texts)), expected, rtol=1e-6, atol=1e-9)
    files = [tmp_path / f"{i}.txt" for i in range(300)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    found = clone(model).fit(files, y, weights).predict_proba(files)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_streams_draw_as_much_as_lists(monkeypatch):
    from likely.text import documents as streams

    texts, y = made(900, seed=5)
    monkeypatch.setattr("likely.ensemble.discounting.ENOUGH", 200)
    expected = TextClassifier().fit(texts, y).predict_proba(texts)
    monkeypatch.setattr(streams, "_MOST", 100)
    streamed = TextClassifier().fit(iter(texts), y)
    np.testing.assert_allclose(streamed.predict_proba(texts), expected, rtol=1e-6, atol=1e-9)
    monkeypatch.undo()
    assert np.abs(TextClassifier().fit(texts, y).predict_proba(texts) - expected).max() > 1e-4


def test_streams_with_weights(monkeypatch):
    from likely.text import documents as streams

    texts, y = made(90, seed=3)
    monkeypatch.setattr(streams, "_MOST", 30)
    weights = np.where(np.arange(90) // 30 == 1, 0.0, 2.0)
    expected = TextClassifier().fit(texts, y, weights).predict_proba(texts)
    found = TextClassifier().fit(iter(texts), y, weights).predict_proba(texts)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    alike, list_alike = (textbook().fit(X, y, 2.0).class_count_.tolist() for X in (iter(texts), texts))
    assert alike == list_alike


def test_texts_that_are_not_utf8_are_named():
    with pytest.raises(UnicodeDecodeError, match="in the text at index 1: decode the texts"):
        TextClassifier().fit(["fine", b"caf\xe9"], [0, 1])


def test_forgetting_words_that_were_to_be_kept():
    texts, y = ["good fun", "bad no fun"] * 6, ["p", "n"] * 6
    model = TextClassifier(min_df=4).fit(texts, y).forget(texts[:8], y[:8])
    np.testing.assert_allclose(model.predict_proba(["good"]).sum(), 1.0)


@pytest.mark.parametrize("copies", [20, 1000])
def test_a_text_that_comes_again_and_again(copies):
    texts, y = made(100, classes=1)
    model = TextClassifier().fit([*texts, *["buy now cheap pills"] * copies], [*y, *["spam"] * copies])
    assert model.fitted().parts[0].family.prior >= 0
    assert model.predict(["buy now cheap pills", texts[0]]).tolist() == ["spam", y[0]]


def test_streams_that_do_not_fit(tmp_path):
    model = TextClassifier().fit(["a b", "c d"], [0, 1])
    before = model.predict_proba(["a"])
    for texts, y, weights, said in [
        (iter(["a", "b"]), [0], None, "expected a label for each text, got 1 for more texts"),
        (iter(["a", "b"]), [0, 1, None], None, "expected a label, and a weight if any, for each of 2 texts, got more"),
        (iter(["a", "b"]), [0, 1], [1.0], "expected a weight for each text, got 1 for more texts"),
        (iter([]), [], None, "expected at least one text, got none"),
        (iter(["a", 3.5]), [0, 1], None, "expected texts, got 3.5"),
        ([tmp_path / "gone.txt"], [0], None, "gone.txt"),
    ]:
        with pytest.raises((ValueError, TypeError, FileNotFoundError), match=re.escape(said)):
            model.fit(texts, y, weights)
        np.testing.assert_array_equal(model.predict_proba(["a"]), before)


@pytest.mark.parametrize("model", [textbook(), TextClassifier(), TextClassifier(refine=1)], ids=str)
def test_labels_and_files_from_iterators(model, tmp_path):
    texts, y = made(60, seed=1)
    expected = clone(model).fit(texts, y).predict_proba(texts)
    for X in (texts, iter(texts)):
        np.testing.assert_allclose(clone(model).fit(X, iter(y)).predict_proba(texts), expected, rtol=1e-6, atol=1e-9)
    again = clone(model).fit(texts, y).partial_fit(texts[:9], iter(y[:9])).forget(iter(texts[:9]), iter(y[:9]))
    np.testing.assert_allclose(again.predict_proba(texts), expected, rtol=1e-6, atol=1e-9)
    assert again.evaluate(texts, iter(y), folds=3).accuracy >= 0
    files = [tmp_path / f"{i}.txt" for i in range(5)]
    for file, text in zip(files, texts[:5], strict=True):
        file.write_text(text, encoding="utf-8")
    for X in (files, iter(files), pd.Series(files), np.array(files, dtype=object), tuple(files)):
        np.testing.assert_allclose(again.predict_proba(X), again.predict_proba(texts[:5]), rtol=1e-9)
    files[3].write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"expected a text in UTF-8, got '.*3.txt' with byte 0xe9 at index 3: read"):
        again.predict(files)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (None, "expected texts, got None"),
        (Path("mail"), "expected several files, got a single one, 'mail'"),
        (scipy.sparse.csr_array(np.eye(2)), "expected the texts themselves, got a matrix of counts"),
        (scipy.sparse.csr_matrix(np.eye(2)), "expected the texts themselves, got a matrix of counts"),
        (3, "expected texts, got 3"),
    ],
)
def test_what_is_no_list_of_texts(texts, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        TextClassifier().fit(["a", "b"], [0, 1]).predict(texts)


def test_parameters_that_mislead():
    for more, said in [
        ({"ngrams": True}, "expected ngrams as a number of words"),
        ({"ngrams": 0}, "or the least and the most, got 0"),
        ({"stop_words": "english"}, "got 'english': no list is built in"),
        ({"max_df": 1}, "expected some words to keep, got none of 6 by min_df=2 and max_df=1"),
        ({"idf": True}, "got counts='plain', normalize=False, idf=True: use calibrate=False"),
    ]:
        with pytest.raises(ValueError, match=re.escape(said)):
            TextClassifier(**more).fit(["a b c", "c a b"], [0, 1])
    with pytest.raises(TypeError, match="expected a label for each text, got None"):
        TextClassifier().fit(iter(["a"]), None)
    with pytest.raises(ValueError, match="expected words with probabilities, got scores"):
        textbook(event="complement").fit(["a", "b"], [0, 1]).sample()
    with pytest.raises(ValueError, match="expected to draw 0 texts or more, got n=-1"):
        textbook().fit(["a", "b"], [0, 1]).sample(-1)


def test_stop_words_are_folded_as_texts_are():
    plain = textbook(stop_words=["the", "été"]).fit(["the été", "a cat"], [0, 1])
    for stop_words, more in ((["The", "ÉTÉ"], {}), (["THE", "ete"], {"accents": "unicode"})):
        found = textbook(stop_words=stop_words, **more).fit(["The Été", "A cat"], [0, 1])
        assert found.words_.terms.to_pylist() == plain.words_.terms.to_pylist() == ["a", "cat"]


def test_what_is_before_a_text_does_not_depend_on_it():
    texts, y = made(400)
    model = TextClassifier().fit(texts, y)
    told = model.explain(["", "any1 any2", " ".join(texts[:30]), *texts[:20]], "class 0", "class 1")
    logs = model.predict_log_proba(["", "any1 any2", " ".join(texts[:30]), *texts[:20]])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(told.base, told.base[0], atol=0.02)


def test_texts_too_long_to_be_drawn():
    model = textbook().fit(["a b", "c d"], [0, 1], sample_weight=[1.0, 1.0])
    words = model.words_
    known = model._state
    huge = replace(words, sums={**words.sums, "count": words.sums["count"] * 1e12})
    model.hold(known.with_statistics(replace(known.statistics, blocks=(huge,))))
    with pytest.raises(ValueError, match="expected to draw texts of at most 10,000,000 words, got a model of"):
        model.sample(2, random_state=0)


def test_words_keep_their_signs():
    model = TextClassifier(calibrate=False, event="bernoulli", ngrams=1)
    model.fit(["good a b c d"] * 2 + ["bad"] * 2, list("++--"))
    assert {word: odds > 0 for word, _, odds in model.explain(["good"], "+", "-").words()} == {"good": True}
    texts, y = made(300, share=0.3)
    discounted = TextClassifier(ngrams=1).fit(texts, y)
    for word, _ in discounted.top_words("class 1", 20):
        ((_, _, odds),) = discounted.explain([word], "class 1", "class 0").words()
        assert odds > 0


def test_discounted_words_are_calibrated():
    texts, y = made()
    others, labels = made(seed=1)
    plain, discounted = textbook().fit(texts, y), TextClassifier().fit(texts, y)
    places = np.searchsorted(discounted.classes_, labels)

    def loss(model):
        return -np.mean(model.predict_log_proba(others)[np.arange(len(places)), places])

    assert loss(discounted) < loss(plain)
    assert discounted.score(others, labels) >= plain.score(others, labels) - 0.02
    found = discounted.evaluate(texts, y, folds=4)
    assert found.log_loss < np.log(3)
    assert found.calibration_error < 0.1


@pytest.mark.parametrize("model", [textbook(), textbook(event="bernoulli"), TextClassifier()], ids=str)
def test_explanations_add_up(model):
    texts, y = made(60)
    model = model.__class__(**model.get_params()).fit(texts, y)
    told = model.explain(texts[:7], "class 0", "class 2")
    logs = model.predict_log_proba(texts[:7])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 2], rtol=1e-9, atol=1e-9)
    strongest = told.words(0)
    assert [abs(odds) for _, _, odds in strongest] == sorted((abs(odds) for _, _, odds in strongest), reverse=True)
    assert "before reading the text" in str(told)


def test_missing_texts_say_nothing():
    texts, y = made(60)
    model = TextClassifier().fit([*texts, None], [*y, "class 0"])
    same = TextClassifier().fit(texts, y)
    np.testing.assert_allclose(model.predict_proba([None]), model.priors_[None, :], rtol=1e-12)
    assert model.class_count_.sum() == same.class_count_.sum() + 1
    words, others = (m.words_.sums["weight"] for m in (model, same))
    np.testing.assert_array_equal(words, others)


@pytest.mark.parametrize(
    "model", [textbook(), textbook(smoothing={"dog": 2.0, "cat": 1.0}), TextClassifier(stop_words=["any1"])], ids=str
)
def test_saved_pickled_and_read(model, tmp_path):
    texts, y = made(80)
    model = model.__class__(**model.get_params()).fit(texts, y)
    expected = model.predict_proba(texts)
    model.save(tmp_path / "model.likely")
    for again in (likely.load(tmp_path / "model.likely"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(texts), expected)
        again.partial_fit(texts[:5], y[:5]).forget(texts[:5], y[:5])
        np.testing.assert_allclose(again.predict_proba(texts), expected, rtol=1e-9)


def test_draws_have_the_words_of_their_class():
    model = textbook(smoothing=0).fit(["dog cat cat", "rose rose tulip tulip"], ["pets", "garden"])
    texts, y = model.sample(300, random_state=0)
    for text, label in zip(texts, y, strict=True):
        assert set(text.split()) <= ({"dog", "cat"} if label == "pets" else {"rose", "tulip"})
    drawn = " ".join(text for text, label in zip(texts, y, strict=True) if label == "pets").split()
    assert drawn.count("cat") / len(drawn) == pytest.approx(2 / 3, abs=0.08)


def test_top_words():
    texts, y = made(300)
    model = TextClassifier(ngrams=1).fit(texts, y)
    found = model.top_words("class 0", 5)
    assert all(word.startswith("own0") for word, _ in found)
    assert [told for _, told in found] == sorted((told for _, told in found), reverse=True)


def test_strength_of_a_background_is_the_best():
    texts, y = made(100, share=0.6)
    codes = np.unique(y, return_inverse=True)[1].astype(np.int32)
    words = collect_words(Analyzer("words"), pa.array(texts), Assignment(np.unique(y), codes))
    shares = words.in_words("count") / words.in_words("count").sum()
    n, p, totals = words.sums["count"], shares[words.words], words.in_classes("count")[words.codes]

    def left_out(mu):
        return (n * np.log((n - 1 + mu * p) / (totals - 1 + mu))).sum()

    best = strength(words, shares)
    assert best < 1e6
    assert left_out(best) >= max(left_out(best * 1.01), left_out(best / 1.01))


def test_threads_do_not_change_bits():
    texts, y = made(3000, classes=5)
    texts = [" ".join([text] * 20) for text in texts]  # enough for several pieces
    before = likely.get_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            likely.set_threads(threads)
            found.append(TextClassifier().fit(texts, y).predict_proba(texts[:200]))
    finally:
        likely.set_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TextClassifier(ngrams="two"), "expected ngrams as a number"),
        (TextClassifier(ngrams=0), "the least and the most, got 0"),
        (TextClassifier(unit="lines"), "expected unit to be one of"),
        (TextClassifier(stop_words="the"), "expected stop_words as a list"),
        (TextClassifier(event="poisson"), "expected the event to be one of"),
        (TextClassifier(smoothing=-1), "expected smoothing of 0 or more"),
        (TextClassifier(event="bernoulli", smoothing={"a": 1}), "expected smoothing of 0 or more, got"),
    ],
)
def test_parameters_that_are_none(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(["a", "b"], [0, 1])


def test_texts_that_are_none():
    model = textbook().fit(["a b", "b c"], [0, 1])
    with pytest.raises(TypeError, match="expected several texts, got a single one"):
        model.predict("a b")
    for table in ({"text": ["a"]}, pa.table({"text": ["a"]}), pd.DataFrame({"text": ["a"]})):
        with pytest.raises(TypeError, match="expected a column of texts, got a table"):
            model.predict(table)
    with pytest.raises(TypeError, match="expected texts, got 3"):
        model.predict(["a", 3])
    with pytest.raises(ValueError, match="expected at least one text, got none"):
        textbook().fit([], [])
    with pytest.raises(ValueError, match="have words that are not left in their class"):
        model.forget(["c c"], [0])
    assert model.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("change", ["twice", "utf8", "class", "starts", "negative", "none"])
def test_files_whose_words_do_not_fit(change, tmp_path):
    from likely.persistence import file as files

    model = textbook().fit(["dog cat", "cat rose"], ["a", "b"])
    model.save(tmp_path / "model.likely")
    header, arrays = files.read(tmp_path / "model.likely")
    arrays = {name: array.copy() for name, array in arrays.items()}
    if change == "twice":
        arrays["block 0.bytes"][:3] = arrays["block 0.bytes"][3:6]
    elif change == "utf8":
        arrays["block 0.bytes"][0] = 0xFF
    elif change == "class":
        arrays["block 0.codes"][0] = 7
    elif change == "starts":
        arrays["block 0.starts"] = arrays["block 0.starts"][::-1].copy()
    elif change == "negative":
        arrays["block 0.sum.count"][0] = -1.0
    else:
        del arrays["block 0.offsets"]
    files.write(tmp_path / "broken.likely", header, arrays)
    with pytest.raises(ValueError, match="expected"):
        likely.load(tmp_path / "broken.likely")


def table(n=300):
    texts, y = made(n)
    generator = np.random.default_rng(5)
    return [
        {"note": None if i % 9 == 0 else text, "size": float(generator.normal() + (label == "class 1")), "label": label}
        for i, (text, label) in enumerate(zip(texts, y, strict=True))
    ]


@pytest.mark.parametrize("kind", [NaiveBayes, Classifier])
def test_columns_of_text(kind, tmp_path):
    rows = table()
    model = kind().fit(rows, "label")
    without = kind(columns={"note": "ignore"}).fit(rows, "label")
    assert "bag of words: note" in str(model)
    assert model.score(rows, "label") > without.score(rows, "label") + 0.1
    told = model.explain(rows[:20], "class 0", "class 1")
    logs = model.predict_log_proba(rows[:20])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 1], atol=1e-9)
    if kind is NaiveBayes:  # to the other, that a text is missing says something, too
        assert told.cells[0, 0] == 0
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    again.partial_fit(rows[:30], "label").forget(rows[:30], "label")
    np.testing.assert_allclose(again.predict_proba(rows), model.predict_proba(rows), rtol=1e-7, atol=1e-9)
    drawn, _ = model.sample(3, random_state=0)
    assert drawn.column("note").null_count == 3
    assert model.impute(rows[:1]).column("note").null_count == 1
    assert 0.5 < kind().evaluate(rows, "label", folds=3).accuracy <= 1


def test_weights_of_rows_with_texts():
    rows = table(120)
    weights = np.arange(len(rows)) % 3
    weighed = Classifier().fit(rows, "label", sample_weight=weights)
    again = Classifier().fit([row for row, w in zip(rows, weights, strict=True) for _ in range(w)], "label")
    np.testing.assert_allclose(weighed.predict_proba(rows), again.predict_proba(rows), atol=1e-3)


def test_statistics_are_a_group():
    analyzer = Analyzer("words")
    one = collect_words(analyzer, pa.array(["a b", "b c c"]), Assignment(np.array([0, 1]), np.array([0, 1], np.int32)))
    two = collect_words(analyzer, pa.array(["c d", "a"]), Assignment(np.array([1, 2]), np.array([0, 1], np.int32)))
    both, other = one + two, two + one
    assert sorted(both.terms.to_pylist()) == sorted(other.terms.to_pylist()) == ["a", "b", "c", "d"]
    assert isinstance(both - two, WordStatistics)
    for name, array in (both - two).sums.items():
        expected = one.aligned({"class": np.array([0, 1, 2])}).sums[name]
        np.testing.assert_allclose(array, expected, atol=1e-12)
    np.testing.assert_allclose((one * 2.0).sums["count"], 2 * one.sums["count"])
    assert len((one * 0.0).terms) == 0
    assert Bag(analyzer) == Bag(Analyzer("words"))


def test_a_single_document_of_100_megabytes():
    words = [f"word{i}" for i in range(1000)]
    line = " ".join(words) + " "
    times = 100_000_000 // len(line) + 1
    texts, labels = [line * times, "word0 short"], ["long", "short"]
    model = textbook().fit(texts, labels)
    assert len(model.joint_.densities[0].terms) == 1001
    shares = np.array([(times + 1) / (1000 * times + 1001), 1 / (2 + 1001)])
    assert model.predict_proba(["word7"])[0] == pytest.approx(shares / shares.sum(), rel=1e-12)
    assert model.predict(texts).tolist() == labels
    pairs = TextClassifier(calibrate=False, ngrams=2, unit="words").fit(texts, labels)
    assert len(pairs.joint_.densities[0].terms) == 1001 + 1000 + 1


def test_texts_that_share_no_word_with_others_are_known_again():
    """Out of fold such texts say nothing of how much words count: these count as they come, and not for nothing."""
    texts = ["order shipped today"] * 900 + ["refund not received"] * 100
    model = TextClassifier().fit(texts, ["fine"] * 900 + ["complaint"] * 100)
    assert model.predict(["refund not received", "order shipped today"]).tolist() == ["complaint", "fine"]
