"""Files changed at random are refused in a sentence, or hold a model that agrees with itself."""

import json
import random
import warnings
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from filebytes import apart, whole
from safetensors.numpy import load, save

import likely
from likely import Classifier, GaussianDiscriminant, GaussianPrior, NaiveBayes, TextClassifier
from likely.sklearn import CategoricalNB, ComplementNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

RNG = np.random.default_rng(7)
CELLS = RNG.poisson(3.0, size=(40, 3)) + 1.0
LABELS = np.array(["a", "b", "c"])[np.arange(40) % 3]
COLOURS = [[("red", "blue", "green")[int(x) % 3], x % 4] for x in CELLS[:, 0]]
HOLES = np.where(RNG.random(CELLS.shape) < 0.1, np.nan, CELLS)
RECORDS = [
    {"colour": colour, "mass": float(row[0]), "count": int(row[1]), "yes": bool(row[2] > 3)}
    for (colour, _), row in zip(COLOURS, CELLS, strict=True)
]

WORDS = np.array(["the", "of", "win", "free", "prize", "cash", "lunch", "noon", "home", "call"])
TEXTS = [" ".join(WORDS[RNG.integers(0, 10, n)]) for n in RNG.integers(4, 9, 40)]
NOTES = [
    {**row, "size": "large" if row["mass"] > 4 else "small", "note": t} for row, t in zip(RECORDS, TEXTS, strict=True)
]

MODELS = [
    (NaiveBayes(), HOLES),
    (NaiveBayes(["gamma", "categorical", "log-normal"], priors={"a": 0.2, "b": 0.3, "c": 0.5}), HOLES),
    (NaiveBayes({0: "multinomial", 1: "exponential", 2: "poisson"}, smoothing=np.array([0.5])), HOLES),
    (NaiveBayes("bernoulli", smoothing=0.0), (CELLS > 3) * 1.0),
    (NaiveBayes(), RECORDS),
    (Classifier(), HOLES),
    (Classifier(), RECORDS),
    (Classifier(components=2, covariance="full", calibrate=False), HOLES),
    (Classifier(components="auto"), RECORDS),
    (NaiveBayes(together=["colour", "size"]), NOTES),
    (Classifier(together=["colour", "size"]), NOTES),
    (TextClassifier(), TEXTS),
    (TextClassifier(refine=1), TEXTS),
    (TextClassifier(refine="full", ngrams=1), TEXTS),
    (TextClassifier(ngrams=1, calibrate=False, smoothing={"free": 1.0, "the": 2.0}, stop_words=["of"]), TEXTS),
    (TextClassifier(calibrate=False, counts="log", normalize=True, idf=True, min_df=2, max_features=15), TEXTS),
    (TextClassifier(calibrate=False, event="complement", smoothing={"a": {"free": 1.0}, "b": {"the": 2.0}}), TEXTS),
    (TextClassifier(ngrams=1, min_df=0.1, max_df=0.9), TEXTS),
    (GaussianDiscriminant(), HOLES),
    (GaussianDiscriminant(shrinkage="ledoit-wolf", tied=0.5), CELLS),
    (GaussianDiscriminant("diagonal", pseudo_rows=GaussianPrior([0.0] * 3, [1.0] * 3, 2.0)), HOLES),
    (ComplementNB(norm=True, fit_prior=False), CELLS),
    (CategoricalNB(min_categories=3), COLOURS),
    (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1, priors=[0.2, 0.3, 0.5]), CELLS),
    (QuadraticDiscriminantAnalysis(reg_param=0.1), CELLS),
]
VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 10**9, 2**63, 10**400, 0.5, -1.0, 1e-300, 1e308, "", "a", "class", "full",
    "gaussian", "weight", "uniform", "nan", "inf", "classes", "block 0.origin", "object", [], {}, [0], [[1]],
    ["a", "a"], {"is": "array", "name": "weight"}, {"is": "tuple", "items": [1]}, {"is": "number", "value": "nan"},
    {"is": "gaussian", "fields": {}}, {"is": "dict", "items": [[[], 1]]},
    {"is": "list", "type": "O", "items": [1, "a"]},
    {"is": "numbered categories", "fields": {"least": 10**12}}, {"is": "os.system", "fields": {}},
]  # fmt: skip
ODD = [0.0, -1.0, 1.0, 1e308, -1e308, 5e-324, 1e15, np.nan, np.inf, -np.inf]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The bytes of every model's file, and the rows to ask it about."""
    path = tmp_path_factory.mktemp("models") / "model"
    found = []
    for model, rows in MODELS:
        model.fit(rows, LABELS)
        if isinstance(model, NaiveBayes):
            model.partial_fit(rows, LABELS)
        model.save(path)
        found.append((path.read_bytes(), rows))
    Classifier(forest=True).fit(RECORDS, LABELS).save(path)
    found.append((path.read_bytes(), RECORDS))
    return found


def places(value, path=()):
    """Return the way to everything within a value of JSON."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    for key, item in inner:
        found += places(item, (*path, key))
    return found


def change(value, dice):
    """Change something within a value of JSON, in place."""
    *way, last = dice.choice(places(value))
    for key in way:
        value = value[key]
    what = dice.random()
    if what < 0.1:
        del value[last]
    elif what < 0.2 and isinstance(value, list):
        value.append(dice.choice(VALUES))
    elif what < 0.4 and type(value[last]) in (int, float):
        value[last] += dice.choice([1, -1, 0.5, 2**40])
    else:
        value[last] = json.loads(json.dumps(dice.choice(VALUES)))


def with_bytes_changed(content, dice):
    changed = bytearray(content)
    for _ in range(dice.choice([1, 1, 2, 8])):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def with_another_length(content, dice):
    if dice.random() < 0.5:
        return content[: dice.randrange(len(content))]
    return content + dice.randbytes(dice.choice([1, 8, 1000]))


def with_another_header(content, dice):
    outer, rest = apart(content)
    header = json.loads(outer["__metadata__"]["likely"])
    for _ in range(dice.choice([1, 1, 2, 4])):
        change(header, dice)
    outer["__metadata__"]["likely"] = json.dumps(header)
    return whole(outer, rest)


def with_another_outer_header(content, dice):
    outer, rest = apart(content)
    for _ in range(dice.choice([1, 2])):
        change(outer, dice)
    return whole(outer, rest)


def with_other_arrays(content, dice):
    outer, _ = apart(content)
    arrays = {name: array.copy() for name, array in load(content).items()}
    for _ in range(dice.choice([1, 1, 2, 4])):
        name, other = dice.choice(list(arrays)), dice.choice(list(arrays))
        array = arrays[name]
        what = dice.randrange(6)
        if what == 0:
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif what == 1 and array.size:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array[tuple(dice.randrange(n) for n in array.shape)] = np.float64(dice.choice(ODD)).astype(array.dtype)
        elif what == 2:
            arrays[name] = array.T if dice.random() < 0.5 else array.reshape(-1)
        elif what == 3:
            arrays[name] = array[: dice.randrange(len(array) + 1)] if array.ndim else array
        elif what == 4:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(dice.choice([np.float32, np.int64, np.uint8, bool, np.float64]))
        elif len(arrays) > 1:
            del arrays[name]
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()}, outer["__metadata__"])


MUTATIONS = [
    with_bytes_changed,
    with_another_length,
    with_another_header,
    with_another_outer_header,
    with_other_arrays,
]


def ask(model, rows):
    """Ask a model all there is to ask. What it cannot answer it may refuse, but only as any model would."""
    questions = [
        lambda: model.predict(rows),
        lambda: model.predict_log_proba(rows),
        lambda: model.log_density(rows),
        lambda: model.explain(rows[:2]),
        lambda: model.sample(3, random_state=0),
        lambda: model.partial_fit(rows, LABELS),
        lambda: model.merge(model),
        lambda: model.forget(rows[:3], LABELS[:3]),
        lambda: model.predict(rows),
        lambda: repr(model),
        *(partial(getattr, model, name, None) for name in dir(type(model)) if name[0] != "_" and name[-1] == "_"),
    ]
    for question in questions:
        with suppress(ValueError):
            question()


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda f: f.__name__)
def test_a_file_that_was_changed_is_refused_or_a_model_that_agrees_with_itself(mutate, stored, tmp_path):
    path = tmp_path / "model"
    for seed in range(2000):
        dice = random.Random(seed)
        content, rows = dice.choice(stored)
        path.write_bytes(mutate(content, dice))
        try:
            model = likely.load(path)
        except ValueError as error:
            refusal = str(error)
        else:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ask(model, rows)
            continue
        assert "\n" not in refusal, seed
        assert str(path) in refusal, seed
