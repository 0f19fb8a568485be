"""Mixtures of texts: as columns of tables, beside other columns, and as sparse counts."""

from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

import likely
from likely import Mixture
from likely.data.table import Block, Table
from likely.families.bag import Bag
from likely.statistics import Responsibilities
from likely.text import Analyzer

THEMES = (
    "goal match team league striker penalty coach season referee stadium",
    "flour butter oven sugar dough recipe bake whisk cake spoon",
    "orbit rocket planet telescope lunar galaxy probe launch comet star",
)
COMMON = ["the", "a", "of", "and", "to", "in", "was", "with", "for", "that", "it", "on", "then", "when", "more"]


def diaries(n=240, seed=0, k=3):
    """Texts of some themes, most of whose words are common to all of them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=n)
    themes = [theme.split() for theme in THEMES]
    texts = [" ".join([*rng.choice(COMMON, 14), *rng.choice(themes[c], 8)]) for c in codes]
    return texts, codes


def agreement(found, codes):
    """The share of rows in the commonest component of their theme, if these differ."""
    table = np.zeros((3, found.max() + 1))
    np.add.at(table, (codes, found), 1)
    return table.max(axis=1).sum() / len(codes) if len(set(table.argmax(axis=1))) == len(set(codes)) else 0.0


def test_a_column_of_texts():
    texts, codes = diaries()
    model = Mixture(3).fit(pd.DataFrame({"diary": texts}))
    assert model.schema_.kinds == ("text",)
    assert agreement(model.predict(pd.DataFrame({"diary": texts})), codes) > 0.98
    more, themes = diaries(seed=1)
    assert agreement(model.predict([{"diary": text} for text in more]), themes) > 0.98
    assert np.diff(model.log_likelihoods_).min() > -1e-6


def test_records_and_texts_that_are_missing():
    texts, codes = diaries()
    rows = [{"diary": text if i % 9 else None} for i, text in enumerate(texts)]
    model = Mixture(3).fit(rows)
    there = np.arange(240) % 9 > 0
    assert agreement(model.predict(rows)[there], codes[there]) > 0.98
    assert model.predict_proba(rows)[0] == pytest.approx(model.priors_, rel=1e-9)


def test_texts_beside_other_columns():
    texts, codes = diaries()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "hours": rng.normal(codes == 2, 2.0),  # hardly says anything
            "diary": texts,
            "place": np.where(rng.random(240) < 0.4, np.array(["pitch", "kitchen", "hill"])[codes], "street"),
        }
    )
    frame.loc[::7, "hours"] = np.nan
    model = Mixture(3).fit(frame)
    assert agreement(model.predict(frame), codes) > 0.98
    assert model.impute(frame)["hours"].notna().all()


def counts(texts):
    rows, terms = Analyzer("words").counts(texts)
    return csr_matrix((rows.counts.astype(float), rows.units, rows.starts), shape=(len(texts), len(terms)))


@pytest.mark.parametrize("columns", ["auto", "multinomial", "bernoulli"])
def test_sparse_counts_of_words(columns):
    texts, codes = diaries()
    X = counts(texts).sign() if columns == "bernoulli" else counts(texts)
    model = Mixture(3, columns=columns, n_starts=2).fit(X)
    assert agreement(model.predict(X), codes) > 0.98
    assert model.starts_[0].log_likelihood == pytest.approx(model.log_likelihood_, rel=1e-3)


def test_a_text_of_weight_two_is_a_text_twice():
    texts, _ = diaries(90)
    weights = np.arange(90) % 3
    frame = pd.DataFrame({"diary": texts})
    one = Mixture(3).fit(frame, sample_weight=weights)
    other = Mixture(3).fit(frame.iloc[np.repeat(np.arange(90), weights)])
    assert one.predict_proba(frame) == pytest.approx(other.predict_proba(frame), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_texts_are_read_once_for_all_components(weighted):
    texts, _ = diaries(60)
    texts[5] = None
    rng = np.random.default_rng(0)
    table = Table(np.full((60, 1), np.nan), strings={0: pa.array(texts)})
    r = Responsibilities(np.arange(4), rng.dirichlet(np.ones(4), 60), rng.random(60) if weighted else None)
    bag, block = Bag(Analyzer("words")), Block(table, [0])
    found = bag.collect(block, r, bag.solve(bag.collect(block, next(r.each()))))
    each = reduce(add, (bag.collect(block, one) for one in r.each()))
    got, wanted = (dict(zip(s.terms.to_pylist(), s.sums["count"].reshape(-1, 4), strict=True)) for s in (found, each))
    assert got.keys() == wanted.keys()
    assert all(got[word] == pytest.approx(wanted[word], rel=1e-12) for word in got)
    for name in ("weight", "log size"):
        assert found.sums[name] == pytest.approx(each.sums[name], rel=1e-12)


def test_batches_and_files_of_texts(tmp_path):
    model = Mixture(3)
    for seed in range(6):
        texts, codes = diaries(seed=seed)
        model.partial_fit(pd.DataFrame({"diary": texts}))
    assert agreement(model.predict(pd.DataFrame({"diary": texts})), codes) > 0.98
    model.save(tmp_path / "themes.likely")
    same = likely.load(tmp_path / "themes.likely")
    assert np.array_equal(same.predict([{"diary": t} for t in texts]), model.predict([{"diary": t} for t in texts]))


def test_components_that_share_no_word_are_saved(tmp_path):
    """A text so far from a component that its responsibility is 0 gives it no word."""
    rng = np.random.default_rng(0)
    themes = [theme.split() for theme in THEMES[:2]]
    texts = [" ".join(rng.choice(themes[i % 2], 300)) for i in range(40)]
    model = Mixture(2).fit({"diary": texts})
    words = model.joint_.densities[0]
    assert np.bincount(words.codes).tolist() == [10, 10]
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        likely.load(tmp_path / "model").predict_proba({"diary": texts}), np.eye(2)[model.predict({"diary": texts})]
    )
