"""Scores of single words: the formulas in plain NumPy, SciPy's minimum, and all that a model is asked with them."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import likely
from likely import TextClassifier
from likely.data.table import Block, SparseRows, Table
from likely.ensemble import discounting, refining
from likely.ensemble.discounting import _of_most_documents
from likely.ensemble.refining import BaseLogits, lbfgs, newton, times, transposed
from likely.families.discounted import Refinement
from likely.persistence import file as files
from likely.text import Analyzer

REFINED = [1, "full"]


def unrefined(seed, rows=60, words=15, classes=3):
    """Texts as a dense matrix, and as they are given."""
    generator = np.random.default_rng(seed)
    x = np.where(generator.random((rows, words)) < 0.3, generator.random((rows, words)), 0.0).astype(np.float32)
    y = generator.integers(0, classes, rows)
    scores = generator.normal(0, 1, (rows, classes)) + np.eye(classes)[y]
    sparse = scipy.sparse.csr_array(x)
    given = SparseRows(sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data, words)
    return x.astype(float), BaseLogits(given, scores, y, generator.random(rows) * 3)


def loss(x, texts, delta):
    logs = log_softmax(texts.scores + x @ delta, axis=1)
    return -texts.weights @ logs[np.arange(len(logs)), texts.codes] + 2 * (delta**2).sum()


def least(x, texts, **options):
    """What SciPy finds."""
    shape = (x.shape[1], texts.scores.shape[1])
    right = np.eye(shape[1])[texts.codes]

    def of(flat):
        delta = flat.reshape(shape)
        gap = texts.weights[:, None] * (softmax(texts.scores + x @ delta, axis=1) - right)
        return loss(x, texts, delta), (x.T @ gap + 4 * delta).ravel()

    return minimize(of, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)


@given(st.integers(0, 10_000))
def test_products_are_those_of_scipy(seed):
    x, texts = unrefined(seed, rows=20)
    generator = np.random.default_rng(seed)
    words, rows = generator.standard_normal((15, 3)), generator.standard_normal((20, 3))
    np.testing.assert_allclose(times(texts.x, words), x @ words, atol=1e-9)
    np.testing.assert_allclose(times(transposed(texts.x), rows), x.T @ rows, atol=1e-9)
    some = transposed(texts.x.between(3, 9))
    squares = some._replace(values=some.values**2)
    np.testing.assert_allclose(times(squares, rows[3:9]), (x**2)[3:9].T @ rows[3:9], atol=1e-6)


@pytest.mark.parametrize("tile", [1, 1 << 23])
@given(seed=st.integers(0, 10_000))
def test_one_step_is_the_formula(tile, seed):
    x, texts = unrefined(seed)
    ends = [0, 20, 20, 45, 60]
    p = softmax(texts.scores, axis=1)
    w = texts.weights[:, None]

    def sums(rows):
        gap = w[rows] * (np.eye(3)[texts.codes[rows]] - p[rows])
        return x[rows].T @ gap, (x[rows] ** 2).T @ (w[rows] * p[rows] * (1 - p[rows]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refining, "_TILE", tile)
        delta, said = newton(texts, ends)
    g, h = sums(np.arange(60))
    np.testing.assert_allclose(delta, g / (h + 4), rtol=1e-5, atol=1e-6)
    for first, last in pairwise(ends):
        others = np.setdiff1d(np.arange(60), np.arange(first, last))
        g, h = sums(others)
        np.testing.assert_allclose(said[first:last], x[first:last] @ (g / (h + 4)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_many_steps_end_at_the_minimum(seed):
    x, texts = unrefined(seed)
    best = least(x, texts, maxiter=500, ftol=1e-14, gtol=1e-9)
    found = [loss(x, texts, lbfgs(texts, steps)) for steps in (1, 2, 3, 4, 40)]
    first = x.T @ texts.residual(texts.probabilities())
    assert found[0] < loss(x, texts, np.zeros_like(best))
    assert all(np.diff(found) < 1e-5)
    # Where the slope is a thousandth of the first, the pull of 4 leaves no more than this.
    assert found[-1] - loss(x, texts, best) < 1e-6 * (first**2).sum() / 8 + 1e-9
    np.testing.assert_allclose(lbfgs(texts, 40), best, atol=1e-3 * np.sqrt((first**2).sum()) / 4)


@pytest.mark.parametrize("tile", [1, 1 << 23])
def test_ten_steps_are_as_good_as_those_of_scipy(tile, monkeypatch):
    monkeypatch.setattr(refining, "_TILE", tile)
    x, texts = unrefined(1, rows=400, words=120, classes=5)
    theirs = least(x, texts, maxiter=10)
    best = least(x, texts, maxiter=500, ftol=1e-14, gtol=1e-9)
    left, allowed = (loss(x, texts, delta) - loss(x, texts, best) for delta in (lbfgs(texts), theirs))
    assert left <= 1.2 * allowed + 1e-6 * loss(x, texts, best)


def made(n=400, seed=0, classes=3):
    """Texts in which some words of a class come four at a time, and say no more than one of them."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, n)
    texts = []
    for c in y:
        words = [f"any{i}" for i in generator.integers(0, 60, 8)]
        for _ in range(3):
            said = c if generator.random() < 0.55 else generator.integers(0, classes)
            words.append(f"own{said}x{generator.integers(0, 8)}")
        if generator.random() < 0.7:
            said = c if generator.random() < 0.55 else generator.integers(0, classes)
            words += [f"{part}{said}" for part in ("best", "regards", "yours", "ever")]
        texts.append(" ".join(words))
    return texts, np.array([f"class {c}" for c in y])


def block(texts):
    return Block(Table(np.zeros((len(texts), 1)), strings={0: pa.array(texts)}), None)


def log_loss(model, texts, y):
    logs = model.predict_log_proba(texts)
    return -logs[np.arange(len(texts)), np.searchsorted(model.classes_, y)].mean()


def test_scores_of_words_make_probabilities_better():
    texts, y = made(1500)
    others, labels = made(3000, seed=1)
    plain, once, full = (
        log_loss(TextClassifier(refine=refine, ngrams=1).fit(texts, y), others, labels) for refine in (0, 1, "full")
    )
    assert once < plain - 0.002
    assert full < plain - 0.002


@pytest.mark.parametrize("refine", REFINED)
def test_the_whole_model_is_the_formulas(refine, monkeypatch):
    """Z of the texts comes from the core; all that follows is written out."""
    texts, y = made(600)
    met = []
    name = "lbfgs" if refine == "full" else "newton"
    step = getattr(refining, name)

    def watched(given, *ends):
        found = step(given, *ends)
        met.append((given, *ends, (found if refine == "full" else found[0]).copy()))
        return found

    monkeypatch.setattr(discounting, name, watched)
    plain, model = (TextClassifier(refine=r).fit(texts, y) for r in (0, refine))
    ((given, *_, delta),) = met
    without, family = (m.fitted().parts[0].family for m in (plain, model))
    terms = family.refinement.terms.to_pylist()
    assert len(set(texts)) == len(texts) == len(given.codes)
    rows, words = Analyzer(ngrams=(1, 2)).counts(texts)
    counts = np.zeros((len(texts), len(words)))
    counts[rows.documents, rows.units] = rows.counts
    documents = (counts > 0).sum(axis=0)
    assert sorted(terms) == sorted(np.array(words.to_pylist())[documents >= 2])
    counts = counts[:, [words.to_pylist().index(term) for term in terms]]
    lengths = np.maximum((counts[:, [" " not in term for term in terms]] > 0).sum(axis=1), 1)
    # v = √max(ē_b / e_max, .02), by the groups that the density has
    density = plain.fitted().joint.densities[0]
    assert density.terms.to_pylist() == terms
    mean = without.exponents.reshape(2, -1).mean(axis=0)
    group_weight = np.sqrt(np.maximum(mean / mean.max(), 0.02))[density.groups]
    x = np.log1p(counts) * group_weight * ((lengths / without.usual) ** -without.power)[:, None]
    order = np.argsort(x @ np.arange(len(terms)))
    dense = scipy.sparse.csr_array((given.x.values, given.x.indices, given.x.starts)).toarray()
    np.testing.assert_allclose(dense[np.argsort(dense @ np.arange(len(terms)))], x[order], rtol=1e-4, atol=1e-6)
    scores = group_weight[:, None] * delta
    if refine == "full":
        np.testing.assert_array_equal(family.exponents, without.exponents)
        np.testing.assert_allclose(family.refinement.scores, scores, rtol=1e-5)
    else:
        counted = family.refinement.scores.ravel() @ scores.ravel() / (scores**2).sum()
        assert 0.1 < counted < 2
        np.testing.assert_allclose(family.refinement.scores, counted * scores, rtol=1e-4, atol=1e-7)
    bare, found = np.zeros((2, len(texts), 3))
    replace(family, refinement=None).solve(model.words_).add_scores(block(texts), bare)
    model.fitted().joint.densities[0].add_scores(block(texts), found)
    more = (np.log1p(counts) * ((lengths / family.usual) ** -family.power)[:, None]) @ family.refinement.scores
    np.testing.assert_allclose(found, bare + more, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("refine", REFINED)
def test_order_and_copies_do_not_matter(refine):
    texts, y = made(150, seed=4)
    expected = TextClassifier(refine=refine).fit(texts, y).predict_proba(texts)
    turned = TextClassifier(refine=refine).fit(texts[::-1], y[::-1]).predict_proba(texts)
    np.testing.assert_allclose(turned, expected, rtol=1e-4, atol=1e-6)
    weights = np.arange(len(texts)) % 3
    weighed = TextClassifier(refine=refine).fit(texts, y, sample_weight=weights).predict_proba(texts)
    again = TextClassifier(refine=refine).fit(list(np.repeat(texts, weights)), np.repeat(y, weights))
    np.testing.assert_allclose(weighed, again.predict_proba(texts), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("refine", REFINED)
def test_explanations_add_up(refine):
    texts, y = made(200)
    model = TextClassifier(refine=refine).fit(texts, y)
    told = model.explain(texts[:7], "class 0", "class 2")
    logs = model.predict_log_proba(texts[:7])
    np.testing.assert_allclose(told.log_odds, logs[:, 0] - logs[:, 2], rtol=1e-9, atol=1e-9)
    density = model.fitted().joint.densities[0]
    parts = density.word_odds(block(texts[:7]), np.zeros(7, np.int64), np.full(7, 2))
    sums = np.add.reduceat(parts[3], parts[0][:-1])
    scores = np.zeros((7, 3))
    density.add_scores(block(texts[:7]), scores)
    scores -= density.constant
    np.testing.assert_allclose(sums, scores[:, 0] - scores[:, 2], rtol=1e-6, atol=1e-8)
    assert all("1" in word for word, _ in model.top_words("class 1", 3))
    assert model.evaluate(texts, y, folds=3).log_loss < np.log(3)


@pytest.mark.parametrize("refine", REFINED)
def test_saved_merged_and_forgotten(refine, tmp_path):
    texts, y = made(1000)
    model = TextClassifier(refine=refine).fit(texts, y)
    expected = model.predict_proba(texts)
    model.save(tmp_path / "model.likely")
    for again in (likely.load(tmp_path / "model.likely"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(texts), expected)
        again.partial_fit(["words not yet heard", *texts[:5]], y[:6]).forget(["words not yet heard", *texts[:5]], y[:6])
        np.testing.assert_allclose(again.predict_proba(texts), expected, rtol=1e-7, atol=1e-9)
        again.partial_fit(["new words for a class"], ["class 1½"])
        found = again.fitted().joint.densities[0].refinement
        assert found.any(axis=0).tolist() == [True, True, False, True]
    one, two = (TextClassifier(refine=refine).fit(texts[part], y[part]) for part in (slice(0, 60), slice(60, 120)))
    kept = one.fitted().parts[0].family.refinement
    one.merge(two)
    terms, places = one.fitted().joint.densities[0].terms.to_pylist(), kept.terms.to_pylist()
    found = one.fitted().joint.densities[0].refinement
    for i, term in enumerate(terms):
        expected = kept.scores[places.index(term)] if term in places else 0.0
        np.testing.assert_array_equal(found[i], expected)
    with pytest.raises(ValueError, match="expected a model with the same parameters"):
        one.merge(TextClassifier().fit(texts, y))


@pytest.mark.parametrize("refine", REFINED)
@pytest.mark.parametrize(
    ("texts", "y", "weights"),
    [
        (["a b", "b c"], ["x", "y"], None),
        (["a b", "b c", "a c", "c d e"], ["x", "y", "x", "y"], None),
        (["same words"] * 4, ["x", "x", "y", "y"], None),
        (["", "", "a a"], ["x", "y", "z"], None),
        (["", None, "a a", None], ["x", "y", "x", "y"], None),
        (["a b c", "a b", "b c d"], ["x", "x", "x"], None),
        (["a b c", "a b", "b c d", "d a"], ["x", "x", "y", "z"], [0.25, 1e-9, 3.5, 1e6]),
        ([f"w{i % 7} w{i % 5} only{i}" for i in range(40)], [*range(38), 0, 1], None),
    ],
)
def test_few_texts(refine, texts, y, weights):
    model = TextClassifier(refine=refine).fit(texts, y, sample_weight=weights)
    found = model.predict_proba([*texts, "a b unheard of", "", None])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("refine", REFINED)
def test_a_class_that_folds_lack(refine):
    texts, y = made(100)
    model = TextClassifier(refine=refine).fit([*texts, "rare bird", None], [*y, "rare", "rare"])
    assert np.isfinite(model.predict_log_proba(texts)).all()
    assert model.predict_proba([None])[0] == pytest.approx(model.priors_)


@pytest.mark.parametrize("refine", REFINED)
def test_threads_do_not_change_bits(refine):
    texts, y = made(800, classes=5)
    before = likely.get_threads()
    try:
        found = []
        for threads in (1, 3):
            likely.set_threads(threads)
            found.append(TextClassifier(refine=refine).fit(texts, y).predict_proba(texts[:50]))
    finally:
        likely.set_threads(before)
    np.testing.assert_array_equal(*found)


def test_words_of_many_documents_come_first(monkeypatch):
    assert _of_most_documents(np.array([2.0, 5.0, 2.0]), 3).all()
    assert _of_most_documents(np.array([2.0, 5.0, 2.0]), 2).tolist() == [False, True, False]
    assert not _of_most_documents(np.array([2.0, 5.0, 2.0]), 0).any()
    texts, y = made(200)
    every = TextClassifier(refine="full").fit(texts, y)
    monkeypatch.setattr(discounting, "MOST_SCORES", 90)
    some = TextClassifier(refine="full").fit(texts, y)
    scores = some.fitted().parts[0].family.refinement.scores
    assert 0 < len(scores) <= 30
    assert len(scores) < len(every.fitted().parts[0].family.refinement.scores)
    np.testing.assert_allclose(some.predict_proba(texts), every.predict_proba(texts), atol=0.3)
    monkeypatch.setattr(discounting, "MOST_SCORES", 0)
    none = TextClassifier(refine=1).fit(texts, y)
    assert np.isfinite(none.predict_proba(texts)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TextClassifier(refine=2), "expected refine to be 0, 1 or 'full', got 2"),
        (TextClassifier(refine="all"), "expected refine to be 0, 1 or 'full', got 'all'"),
        (TextClassifier(refine=True), "expected refine to be 0, 1 or 'full', got True"),
        (TextClassifier(refine=None), "expected refine to be 0, 1 or 'full', got None"),
        (TextClassifier(refine=1, calibrate=False), "expected calibrate=True to refine, got refine=1 without"),
        (TextClassifier(refine="full", calibrate=False), "expected calibrate=True to refine, got refine='full'"),
    ],
)
def test_parameters_that_are_none(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(["a b", "b c"], [0, 1])


NAME = "header.blocks.0.family.refinement"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays[f"{NAME}.scores"].__setitem__((0, 0), np.nan), "finite scores"),
        (lambda arrays: arrays.update({f"{NAME}.scores": arrays[f"{NAME}.scores"].astype(float)}), "finite scores"),
        (lambda arrays: arrays.update({f"{NAME}.scores": arrays[f"{NAME}.scores"][:-1]}), "expected scores of"),
        (lambda arrays: arrays.update({f"{NAME}.scores": arrays[f"{NAME}.scores"][:, :-1].copy()}), "in 3 classes"),
        (lambda arrays: arrays[f"{NAME}.characters"].__setitem__(0, 0xFF), "UTF-8"),
        (lambda arrays: arrays[f"{NAME}.offsets"].__setitem__(1, -1), "one after the other"),
        (lambda arrays: arrays[f"{NAME}.offsets"].__setitem__(slice(1, 3), 0), "each word once"),
        (lambda arrays: arrays.pop(f"{NAME}.offsets"), "the name of an array"),
    ],
)
def test_files_whose_scores_do_not_fit(change, message, tmp_path):
    texts, y = made(60)
    TextClassifier(refine=1).fit(texts, y).save(tmp_path / "model.likely")
    header, arrays = files.read(tmp_path / "model.likely")
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    files.write(tmp_path / "broken.likely", header, arrays)
    with pytest.raises(ValueError, match=message):
        likely.load(tmp_path / "broken.likely")


def test_words_are_found_by_their_terms():
    found = Refinement.of(pa.array(["a", "b"])[1:], np.array([[3, 4]], dtype=np.float32))
    assert found.terms.to_pylist() == ["b"]
    assert found.table(pa.array(["b"]), np.arange(2)) is found.scores
    assert found.table(pa.array(["a", "b"]), np.array([-1, 1])).tolist() == [[0, 0], [0, 4]]
    assert found.table(pa.array([], pa.large_string()), np.arange(2)).shape == (0, 2)
