"""Texts in the joint of a table: words given a topic, which is a level of every member. Sums are 1, and sums add."""

import json
import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest

import likely
from likely.density import table, texts
from likely.estimators import fitting

KINDS = ("combined", "tree", "trees", "hidden trees", "scores", "tied scores")
every_kind = pytest.mark.parametrize("kind", KINDS)
WORDS = {"sea": ["fish", "salt"], "land": ["soil", "grass"], "sky": ["cloud", "fish"]}
VOCABULARY = ("cloud", "fish", "grass", "salt", "soil")
TYPES = {"about": "text", "where": "category", "depth": "number"}


def stories(n, seed=0, noise=0.2):
    """Texts whose words depend on a category, and a number that does so, too; a few cells are missing."""
    rng = np.random.default_rng(seed)
    where = rng.choice(list(WORDS), n, p=[0.5, 0.3, 0.2])
    about = [
        " ".join(rng.choice(VOCABULARY if rng.random() < noise else WORDS[w]) for _ in range(rng.integers(1, 6)))
        for w in where
    ]
    depth = rng.normal(size=n) + 2 * (where == "sea")
    frame = pd.DataFrame({"about": about, "where": where, "depth": depth}).astype({"about": object, "where": object})
    frame.loc[rng.random(n) < 0.05, "about"] = None
    frame.loc[rng.random(n) < 0.05, "where"] = None
    return frame


@pytest.fixture(scope="module")
def frame():
    return stories(600)


@pytest.fixture(scope="module")
def models(frame):
    return {kind: likely.Model(kind, columns=TYPES).fit(frame) for kind in KINDS}


@every_kind
def test_words_in_their_order_sum_to_one(models, kind):
    about = [" ".join(words) for words in product(VOCABULARY, repeat=3)]
    alone = models[kind].log_density(pd.DataFrame({"about": about, "where": None, "depth": np.nan}))
    assert np.exp(alone).sum() == pytest.approx(1, abs=1e-10)
    rows = pd.DataFrame([(words, where, np.nan) for words in about for where in WORDS], columns=list(TYPES))
    both = models[kind].log_density(rows)
    assert np.exp(both).sum() == pytest.approx(1, abs=1e-10)
    given = models[kind].log_density(rows[["about", "depth"]].assign(where=None)[: 3 * 5], given={"where": "sea"})
    assert np.isfinite(given).all()


@every_kind
def test_conditionals_are_ratios(models, kind):
    model, about = models[kind], ["salt fish", "cloud", "grass soil soil", None, "unheard"]
    rows = pd.DataFrame({"about": about, "where": None, "depth": [0.5, np.nan, 1.0, 2.0, np.nan]})
    p, below = model.predict_proba(rows, of="where"), model.log_density(rows)
    for at, where in enumerate(model.values_of("where")):
        ratio = np.exp(model.log_density(rows.assign(where=where)) - below)
        np.testing.assert_allclose(p[:, at], ratio, rtol=1e-9)
    alone = model.distribution("where", given={"about": "salt fish"})
    np.testing.assert_allclose(alone.p, model.predict_proba(rows[:1].assign(depth=np.nan), of="where")[0], rtol=1e-9)
    assert alone.log_given == pytest.approx(model.log_density(rows[:1].assign(depth=np.nan))[0], rel=1e-9)


@every_kind
def test_texts_tell_of_other_columns(models, kind):
    new = stories(1500, seed=1)
    new = new[new["where"].notna() & new["about"].notna()]
    asked = new.assign(where=None)
    at = np.array([list(models[kind].values_of("where")).index(w) for w in new["where"]])
    with_text = models[kind].predict_proba(asked, of="where")
    without = models[kind].predict_proba(asked.assign(about=None), of="where")
    every = np.arange(len(at))
    assert (with_text.argmax(axis=1) == at).mean() > (without.argmax(axis=1) == at).mean() + 0.15
    assert np.log(with_text[every, at]).mean() > np.log(without[every, at]).mean() + 0.2
    depth = new["depth"].to_numpy()
    errors = [models[kind].predict(x.assign(where=None), of="depth") - depth for x in (new, new.assign(about=None))]
    assert (errors[0] ** 2).mean() < 0.85 * (errors[1] ** 2).mean()
    filled = models[kind].impute(asked)
    assert (filled["where"].to_numpy() == new["where"].to_numpy()).mean() > 0.75


def test_texts_that_tell_nothing_do_little_harm():
    rng = np.random.default_rng(0)
    n = 800
    about = [" ".join(rng.choice([f"w{i}" for i in range(300)], 60)) for _ in range(2 * n)]
    frame = pd.DataFrame({"about": about, "a": rng.choice(list("xyz"), 2 * n), "b": rng.normal(size=2 * n)})
    model, without = likely.Model().fit(frame[:n]), likely.Model().fit(frame[["a", "b"]][:n])
    assert model.schema_.columns[0].kind == "text"
    new = frame[n:]
    told = model.log_density(new) - model.log_density(new.assign(a=None, b=np.nan))
    assert told.mean() > without.log_density(new[["a", "b"]]).mean() - 0.03


@every_kind
def test_what_is_not_known_says_nothing(models, kind):
    rows = pd.DataFrame({"about": [None, "", "unheard words", "salt", "salt unheard"], "where": "sea", "depth": 1.0})
    found = models[kind].log_density(rows)
    np.testing.assert_allclose(found[1:3], found[0], rtol=1e-12)
    assert found[3] == pytest.approx(found[4], rel=1e-12)
    assert found[3] < found[0]


@every_kind
def test_texts_are_evidence_and_are_not_filled_in(models, frame, kind):
    model = models[kind]
    drawn = model.sample(300, 0).to_pandas()
    assert drawn["about"].isna().all()
    assert [x for x in model.impute(frame)["about"] if isinstance(x, str)] == frame["about"].dropna().tolist()
    given = model.sample(300, 0, given={"about": "soil grass grass soil"}).to_pandas()
    assert (given["about"] == "soil grass grass soil").all()
    assert (given["where"] == "land").mean() > (drawn["where"] == "land").mean() + 0.2
    p = model.distribution("where", given={"about": "soil grass grass soil"}).p
    shares = [(given["where"] == where).mean() for where in model.values_of("where")]
    np.testing.assert_allclose(shares, p, atol=0.1)
    missing = {"about": likely.MISSING}
    for_text = model.predict_proba(frame[:20].assign(about="soil"), of="where", given=missing)
    assert np.array_equal(for_text, model.predict_proba(frame[:20].assign(about=None), of="where", given=missing))
    lacking = model.sample(400, 0, missing=True, given={"about": "soil"})
    assert lacking["about"].null_count == 0
    assert model.groups(frame).shape == (len(frame),)


def test_surprise_explanation_dependence_and_similar_rows(models, frame):
    model = models["combined"]
    known = frame.dropna()[:40]
    found = model.surprise(known)
    np.testing.assert_allclose(found.rows, -model.log_density(known))
    assert np.isnan(found.cells[:, 0]).all()
    assert set(found.worst()) <= {"where", "depth"}
    told = model.explain(known, of="where")
    p = np.sort(model.predict_proba(known, of="where"), axis=1)
    np.testing.assert_allclose(told.total, np.log(p[:, -1] / p[:, -2]), rtol=1e-6)
    assert (told.cells[:, 0] != 0).all()
    pairs = {frozenset((each["column"], each["other"])): each for each in model.dependence().to_pylist()}
    assert pairs[frozenset(("about", "where"))]["normalised"] > 0.2
    rows = pd.DataFrame({"about": ["soil grass soil", "salt fish salt"], "where": None, "depth": np.nan})
    near = model.similar(rows, known, k=5)
    assert (known["where"].to_numpy()[near[0]] == "land").mean() > 0.5
    assert (known["where"].to_numpy()[near[1]] == "sea").mean() > 0.5


@every_kind
def test_sums_add_and_subtract(models, frame, kind):
    whole, new = models[kind], stories(200, seed=2)
    more = pickle.loads(pickle.dumps(whole)).partial_fit(new)
    asked = stories(100, seed=3)
    assert not np.allclose(more.log_density(asked), whole.log_density(asked), rtol=1e-6)
    more.forget(new)
    np.testing.assert_allclose(more.log_density(asked), whole.log_density(asked), rtol=1e-12)
    parts = [whole.emptied().partial_fit(frame[at : at + 200]) for at in (0, 200, 400)]
    at_once = whole.emptied().partial_fit(frame)
    merged = parts[0].merge(*parts[1:])
    np.testing.assert_allclose(merged.log_density(asked), at_once.log_density(asked), rtol=1e-12)
    if kind == "tree":
        np.testing.assert_allclose(at_once.log_density(asked), whole.log_density(asked), rtol=1e-12)
    with pytest.raises(ValueError, match="rows that the model has learned"):
        whole.emptied().partial_fit(frame[:50]).forget(frame)
    with pytest.raises(ValueError, match="the same reference"):
        likely.Model(kind, columns=TYPES).fit(frame[:500]).merge(whole)


def test_a_weight_of_two_is_a_row_twice(frame):
    twice = pd.concat([frame, frame[:200]])
    weights = np.where(np.arange(len(frame)) < 200, 2.0, 1.0)
    asked = stories(100, seed=3)
    one = likely.Model("tree", columns=TYPES).fit(twice)
    other = likely.Model("tree", columns=TYPES).fit(frame, sample_weight=weights)
    np.testing.assert_allclose(other.log_density(asked), one.log_density(asked), rtol=1e-9)


@every_kind
def test_files_hold_texts(models, frame, kind, tmp_path):
    models[kind].save(tmp_path / "a.likely")
    same = likely.load(tmp_path / "a.likely")
    assert np.array_equal(same.log_density(frame), models[kind].log_density(frame))
    same.partial_fit(frame[:50]).forget(frame[:50])
    np.testing.assert_allclose(same.log_density(frame), models[kind].log_density(frame), rtol=1e-9)


def test_broken_files_of_texts_are_refused_in_a_sentence(models, frame, tmp_path):
    from safetensors.numpy import load_file, save_file

    models["tree"].save(tmp_path / "a.likely")
    arrays = load_file(tmp_path / "a.likely")
    with open(tmp_path / "a.likely", "rb") as file:
        metadata = json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]
    of_texts, refused = [name for name in arrays if ".texts." in name], []
    assert len(of_texts) == 18
    for name in of_texts:
        array = arrays[name]
        flat = array.copy().ravel()
        flat[len(flat) // 2] = 200 if array.dtype == np.uint8 else -77
        huge = np.full(array.shape, np.iinfo(array.dtype).max if array.dtype.kind in "iu" else 1e300, array.dtype)
        for broken in (array[:-1].copy(), np.append(array, array[-1:]), array[None], flat, huge, 0 * array):
            save_file({**arrays, name: broken}, tmp_path / "b.likely", metadata)
            try:
                model = likely.load(tmp_path / "b.likely")
            except ValueError as error:
                refused.append(str(error))
                continue
            assert not np.isnan(model.log_density(frame[:5])).any()  # what is changed may still be a model
    assert len(refused) > 4 * len(of_texts)
    assert all("expected" in words for words in refused)


def test_many_rows_are_learned_in_passes(monkeypatch, frame):
    monkeypatch.setattr(table, "ENOUGH", 300)
    monkeypatch.setattr(table, "_BATCH", 128)
    model = likely.Model("trees", columns=TYPES).fit(frame)
    (text,) = model.fitted().joint.texts
    assert text.sums.sums["weight"].sum() == frame["about"].notna().sum()
    assert model.predict(
        pd.DataFrame({"about": ["soil grass soil grass"]}).assign(where=None, depth=np.nan), of="where"
    ) == ["land"]


def test_a_file_beyond_memory_is_learned_in_passes(monkeypatch, frame, tmp_path):
    monkeypatch.setattr(fitting, "SAMPLE", 300)
    frame.to_csv(tmp_path / "a.csv", index=False)
    model = likely.Model("trees", columns=TYPES).fit(tmp_path / "a.csv")
    joint = model.fitted().joint
    assert joint.rows == len(frame)
    assert joint.texts[0].sums.sums["weight"].sum() == frame["about"].notna().sum()
    batches = model.emptied()
    for at in range(0, len(frame), 150):
        batches.partial_fit(frame[at : at + 150])
    np.testing.assert_allclose(batches.log_density(frame), model.log_density(frame), rtol=1e-9)


def test_words_beyond_the_vocabulary_are_not_kept(monkeypatch, frame):
    monkeypatch.setattr(texts, "VOCABULARY", texts.VocabularyLimits(min_df=2, max_features=3))
    model = likely.Model("tree", columns=TYPES).fit(frame)
    (text,) = model.fitted().joint.texts
    assert len(text.reference.terms) == 3
    model.partial_fit(pd.DataFrame({"about": ["new words come"] * 30, "where": "sea", "depth": 0.0}))
    assert len(model.fitted().joint.texts[0].sums.terms) == 3


@every_kind
@pytest.mark.parametrize(
    "about",
    [["a b", "b c", None], [None, None, None], ["", "", ""], ["one", "two", "three"], ["only this"] * 3],
    ids=["three", "missing", "empty", "words of one text", "alike"],
)
def test_odd_texts(kind, about, tmp_path):
    frame = pd.DataFrame({"about": about, "x": [1.0, 2.0, np.nan]}).astype({"about": object})
    for X in (frame, pd.concat([frame] * 30), frame[["about"]]):
        model = likely.Model(kind, columns={"about": "text"}).fit(X)
        assert np.isfinite(model.log_density(X)).all()
        model.surprise(X)
        model.sample(3, 0, missing=True)
        model.save(tmp_path / "a.likely")
        assert np.array_equal(likely.load(tmp_path / "a.likely").log_density(X), model.log_density(X))


def test_two_columns_of_texts():
    one, other = stories(500), stories(500, seed=5)
    frame = pd.DataFrame({"a": one["about"], "b": other["about"], "x": one["where"], "y": other["where"]})
    model = likely.Model("trees", columns={"a": "text", "b": "text"}).fit(frame)
    pairs = [" ".join(words) for words in product(VOCABULARY, repeat=2)]
    rows = pd.DataFrame(list(product(pairs, pairs)), columns=["a", "b"]).assign(x=None, y=None)
    assert np.exp(model.log_density(rows)).sum() == pytest.approx(1, abs=1e-10)
    ask = pd.DataFrame({"a": ["soil grass soil"], "b": ["salt fish salt"], "x": None, "y": None})
    assert model.predict(ask, of="x").tolist() == ["land"]
    assert model.predict(ask, of="y").tolist() == ["sea"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m, f: m.predict(f, of="about"), "numbers or categories.*about.*of text"),
        (lambda m, _: m.distribution("about"), "numbers or categories.*about.*of text"),
        (lambda m, _: m.distribution("where", given={"about": {"a", "b"}}), "a text, or likely.MISSING.*about"),
        (lambda m, _: m.distribution("where", given={"about": (1, 2)}), "a text, or likely.MISSING.*about"),
    ],
)
def test_questions_about_texts_that_cannot_be(models, frame, ask, words):
    with pytest.raises(ValueError, match=words):
        ask(models["combined"], frame)
