"""Every public estimator × every law, each held to what it declares (``laws``), and docs/laws.md, which says the same.

``cases.py`` and ``laws.py`` go deeper for the families of ``NaiveBayes`` and ``GaussianDiscriminant``. Here are all six
estimators, on arrays, tables and texts, with rare classes, constant columns, offsets, missing cells and zero weights.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import likely
from likely.estimators.laws import Laws

SEEDS = range(4)
CLOSE = {"rtol": 1e-7, "atol": 1e-9}


@dataclass(frozen=True)
class Data:
    """Rows (an array, a frame or a list of texts), their labels, and a row without any cell."""

    X: Any
    y: np.ndarray
    empty: Any

    def rows(self, index: Any) -> tuple[Any, np.ndarray]:
        index = np.asarray(index)
        if isinstance(self.X, list):
            return [self.X[i] for i in np.arange(len(self.X))[index]], self.y[index]
        return (self.X.iloc[index] if isinstance(self.X, pd.DataFrame) else self.X[index]), self.y[index]


def array(rng: np.random.Generator, holes: float = 0.1) -> Data:
    """Numbers: correlated, at an offset, constant, 0 and 1, whole; a class of a few rows."""
    y = np.sort(rng.permutation(np.repeat([0, 1, 2], [60, 45, 7])))
    X = rng.normal(size=(len(y), 5)) + 1.5 * y[:, None]
    X[:, 1] += 0.8 * X[:, 0] + 1e6
    X[:, 2] = 3.25
    X[:, 3] = X[:, 3] > 1
    X[:, 4] = np.rint(5 * X[:, 4])
    X[rng.random(X.shape) < holes] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.0
    order = rng.permutation(len(y))
    return Data(X[order], y[order], np.full((1, 5), np.nan))


def frame(rng: np.random.Generator, holes: float = 0.1) -> Data:
    """A table: numbers, 0 and 1, counts, amounts that hardly repeat, categories, yes/no, and missing cells."""
    numbers = array(rng, holes=0.0)
    n, y = len(numbers.y), numbers.y
    table = pd.DataFrame(
        {
            "number": numbers.X[:, 0],
            "flag": (rng.random(n) < 0.1 + 0.2 * y).astype(int),
            "visits": rng.poisson(2 + y),
            "amount": np.rint(rng.lognormal(7 + 0.2 * y, 0.5)).astype(int),
            "town": rng.choice(["Oslo", "Rome", "Lima"], n),
            "member": rng.random(n) < 0.5,
        }
    ).convert_dtypes()
    table = table.mask(rng.random(table.shape) < holes)
    table.loc[table.isna().all(axis=1), "visits"] = 1
    return Data(table, np.array(["a", "b", "c"])[y], table.head(1).mask(np.ones((1, 6), dtype=bool)))


def texts(rng: np.random.Generator) -> Data:
    words = [["win", "prize", "free", "cash", "now"], ["lunch", "noon", "see", "you", "now"]]
    y = rng.integers(0, 2, 90)
    written = [" ".join(rng.choice(words[c], 4).tolist() + rng.choice(words[1 - c], 2).tolist()) for c in y]
    return Data(written, np.array(["ham", "spam"])[y], [None])


@dataclass(frozen=True)
class Case:
    """An estimator and the data that suits it; ``exact``: whether nothing is decided by its first rows."""

    name: str
    make: Callable[[], Any]
    data: Callable[[np.random.Generator], Data]
    exact: bool = False
    labelled: bool = True
    whole: bool = False
    """whether it is a joint of the whole table, in which groups have no names"""

    @property
    def laws(self) -> Laws:
        return type(self.make()).laws

    def fit(self, data: Data, index: Any = slice(None), weights: Any = None) -> Any:
        X, y = data.rows(np.arange(len(data.y))[index])
        given = (X, y) if self.labelled else (X,)
        return self.make().fit(*given, sample_weight=weights)

    def answers(self, model: Any, data: Data) -> np.ndarray:
        if self.whole:
            return model.log_density(data.X)[:, None]
        ask = model.predict_proba if hasattr(model, "predict_proba") else model.transform
        return np.asarray(ask(data.X))

    def __str__(self) -> str:
        return self.name


def _complete(rng: np.random.Generator) -> Data:
    return array(rng, holes=0.0)


CASES = [
    Case("NaiveBayes of an array", likely.NaiveBayes, array, exact=True),
    Case("NaiveBayes of a table", likely.NaiveBayes, frame),
    Case("GaussianDiscriminant", lambda: likely.GaussianDiscriminant("diagonal"), array, exact=True),
    Case("GaussianDiscriminant full", likely.GaussianDiscriminant, _complete, exact=True),
    Case("GaussianDiscriminant tied", lambda: likely.GaussianDiscriminant(tied=True), _complete, exact=True),
    Case("Classifier of an array", likely.Classifier, array),
    Case("Classifier of a table", likely.Classifier, frame),
    Case("Classifier uncalibrated", lambda: likely.Classifier(calibrate=False), frame),
    Case("TextClassifier", likely.TextClassifier, texts),
    Case("TextClassifier textbook", lambda: likely.TextClassifier(calibrate=False), texts, exact=True),
    Case("Mixture of an array", lambda: likely.Mixture(2, progress=False), array, labelled=False),
    Case("Mixture of a table", lambda: likely.Mixture(2, progress=False), frame, labelled=False),
    Case("Model of an array", likely.Model, array, labelled=False, whole=True),
    Case("Model of a table", likely.Model, frame, labelled=False, whole=True),
    Case("Model of one tree", lambda: likely.Model("tree"), frame, labelled=False, whole=True),
    Case("KMeans", lambda: likely.KMeans(3, random_state=0), array, labelled=False),
]

every = pytest.mark.parametrize("case", CASES, ids=str)
seeds = pytest.mark.parametrize("seed", SEEDS)
pytestmark = pytest.mark.filterwarnings("ignore")


def test_every_public_estimator_is_here():
    public = {name for name in likely.__all__ if hasattr(getattr(likely, name), "fit")}
    assert {type(case.make()).__name__ for case in CASES} == public


def offered(case: Case, law: str, *promises: str) -> None:
    if getattr(case.laws, law) not in (promises or ("exact", "reference")):
        pytest.skip(f"{law}: {getattr(case.laws, law)}")


@every
@seeds
def test_order(case, seed):
    offered(case, "order")
    rng = np.random.default_rng(seed)
    data = case.data(rng)
    one, other = case.fit(data), case.fit(data, rng.permutation(len(data.y)))
    np.testing.assert_allclose(_matched(case, one, other, data), case.answers(one, data), **CLOSE)


@every
@seeds
def test_weights(case, seed):
    offered(case, "weights")
    rng = np.random.default_rng(seed)
    data = case.data(rng)
    weights = rng.integers(0, 4, len(data.y))
    weights[[np.flatnonzero(data.y == label)[0] for label in np.unique(data.y)]] = 1  # no class is lost
    weighed = case.fit(data, weights=weights.astype(float))
    repeated = case.fit(data, np.repeat(np.arange(len(data.y)), weights))
    np.testing.assert_allclose(_matched(case, repeated, weighed, data), case.answers(repeated, data), **CLOSE)
    kept = case.fit(data, weights > 0)
    without = case.fit(data, weights=(weights > 0).astype(float))
    np.testing.assert_allclose(_matched(case, kept, without, data), case.answers(kept, data), **CLOSE)


def _matched(case: Case, one: Any, other: Any, data: Data) -> np.ndarray:
    """Return the answers of another model; groups have no names, so those of the first are found among its own."""
    answers, own = case.answers(other, data), case.answers(one, data)
    if case.labelled or answers.shape != own.shape:
        return answers
    distance = np.abs(own[:, :, None] - answers[:, None, :]).sum(axis=0)
    return answers[:, distance.argmin(axis=1)]


def _parts(data: Data, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows in three parts, the first with some of every class."""
    first = np.concatenate([np.flatnonzero(data.y == label)[:4] for label in np.unique(data.y)])
    first = np.union1d(first, np.flatnonzero(rng.random(len(data.y)) < 0.5))
    rest = rng.permutation(np.setdiff1d(np.arange(len(data.y)), first))
    return [first, rest[: len(rest) // 3], rest[len(rest) // 3 :]]


@every
@seeds
def test_batches(case, seed):
    offered(case, "batches")
    rng = np.random.default_rng(seed)
    data = case.data(rng)
    first, second, third = _parts(data, rng)
    batched = case.fit(data, first).partial_fit(*data.rows(second)).partial_fit(*data.rows(third))
    if case.exact:
        together = case.fit(data)
    else:
        together = case.fit(data, first).partial_fit(*data.rows(np.concatenate([third, second])))
    np.testing.assert_allclose(case.answers(batched, data), case.answers(together, data), **CLOSE)


@every
@seeds
def test_merge(case, seed):
    offered(case, "merge")
    rng = np.random.default_rng(seed)
    data = case.data(rng)
    first, second, third = _parts(data, rng)
    if case.exact:
        merged = case.fit(data, first).merge(case.fit(data, np.concatenate([second, third])))
        together = case.fit(data)
    else:
        start = case.fit(data, first)  # the reference of all: other rows are learned under it, and the first forgotten
        parts = [copy.copy(start).partial_fit(*data.rows(part)).forget(*data.rows(first)) for part in (second, third)]
        merged = copy.copy(start).merge(*parts)
        together = copy.copy(start).partial_fit(*data.rows(np.concatenate([second, third])))
    np.testing.assert_allclose(case.answers(merged, data), case.answers(together, data), **CLOSE)


@every
@seeds
def test_forget(case, seed):
    offered(case, "forget")
    rng = np.random.default_rng(seed)
    data = case.data(rng)
    first, second, _ = _parts(data, rng)
    model = case.fit(data, first)
    before = case.answers(model, data)
    model.partial_fit(*data.rows(second)).forget(*data.rows(second))
    np.testing.assert_allclose(case.answers(model, data), before, **CLOSE)


@every
@seeds
def test_missing(case, seed):
    offered(case, "missing")
    # What is missing in training may say something, and Classifier learns what: then it must not be missing there.
    complete = isinstance(case.make(), likely.Classifier) and case.make().calibrate
    data = case.data(np.random.default_rng(seed), *([0.0] if complete else []))
    model = case.fit(data)
    if case.whole:
        np.testing.assert_allclose(model.predict_proba(data.empty), [model.group_weights_], rtol=1e-9)
        np.testing.assert_allclose(model.log_density(data.empty), 0.0, atol=1e-9)
        return
    counts = model.class_count_ + (
        0.5 if complete else 0.0
    )  # where members are weighed, every class has half a row more
    np.testing.assert_allclose(model.predict_proba(data.empty), [counts / counts.sum()], rtol=1e-9)


@every
@seeds
def test_posterior(case, seed):
    offered(case, "posterior")
    data = case.data(np.random.default_rng(seed))
    model = case.fit(data)
    for X in (data.X, data.empty):
        p = model.predict_proba(X)
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-9, atol=1e-300)
        # Of two that are as likely, either.
        classes = np.arange(p.shape[1]) if case.whole else model.classes_
        best = p[np.arange(len(p)), np.searchsorted(classes, model.predict(X))]
        np.testing.assert_allclose(best, p.max(axis=1), rtol=1e-12)


@every
@seeds
def test_density(case, seed):
    offered(case, "density")
    data = case.data(np.random.default_rng(seed))
    model = case.fit(data)
    if case.whole:
        joint = model.fitted().joint
        parts = [
            member.density.log_density(joint.encode(t))
            for t in model.fitted().reader.batches(data.X)
            for member in joint.members
        ]
        logs = logsumexp(np.array(parts) + np.log(joint.weights)[:, None], axis=0)
        own = np.concatenate([joint.encode(t).log.sum(axis=1) for t in model.fitted().reader.batches(data.X)])
        np.testing.assert_allclose(model.log_density(data.X), logs + own, rtol=1e-9)
        return
    if getattr(model.fitted(), "table", None) is not None:  # that of every class and what is known, added up
        labelled, rows = model.fitted().table, model.fitted().reader.read(data.X)
        codes = np.arange(len(labelled.labels), dtype=np.int32)
        of_classes = [labelled.joint.encode(rows, np.full(rows.rows, code, dtype=np.int32)) for code in codes]
        logs = np.stack([labelled.joint.combination.log_density(each) for each in of_classes], axis=1)
        np.testing.assert_allclose(model.log_density(data.X), logsumexp(logs, axis=1), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.log_density(data.empty), 0.0, atol=1e-10)
        return
    joint = getattr(model, "textbook_", model.joint_).log_joint(model.fitted().reader.read(data.X))
    np.testing.assert_allclose(model.log_density(data.X), logsumexp(joint, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.log_density(data.empty), 0.0, atol=1e-12)


@every
@seeds
def test_sample(case, seed):
    offered(case, "sample")
    model = case.fit(case.data(np.random.default_rng(seed)))
    n = 4000
    if case.whole:  # draws are compared with the density in tests/density
        assert str(model.sample(50, random_state=seed)) == str(model.sample(50, random_state=seed))
        return
    rows, y = model.sample(n, random_state=seed)
    again, _ = model.sample(n, random_state=seed)
    assert rows == again if isinstance(rows, list) else np.array_equal(np.asarray(rows), np.asarray(again))
    share = np.array([(y == label).mean() for label in model.classes_])
    assert (np.abs(share - model.priors_) <= 5 * np.sqrt(model.priors_ * (1 - model.priors_) / n) + 1e-12).all()


@every
@seeds
def test_save(case, seed, tmp_path):
    offered(case, "save")
    data = case.data(np.random.default_rng(seed))
    model = case.fit(data)
    model.save(tmp_path / "model.likely")
    np.testing.assert_array_equal(case.answers(likely.load(tmp_path / "model.likely"), data), case.answers(model, data))


@every
def test_threads(case):
    offered(case, "threads")
    data = case.data(np.random.default_rng(0))
    X, y = data.rows(np.tile(np.arange(len(data.y)), 40))
    many = Data(X, y, data.empty)
    try:
        likely.set_threads(1)
        one = case.answers(case.fit(many), data)
        likely.set_threads(3)
        three = case.answers(case.fit(many), data)
    finally:
        likely.set_threads(None)
    np.testing.assert_array_equal(one, three)


WORDS = {"exact": "exact", "reference": "exact under its reference", "not offered": "–"}


def test_the_documentation_says_the_same():
    text = (Path(__file__).parents[2] / "docs" / "laws.md").read_text()
    lines = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in text.splitlines() if line[:1] == "|"]
    heads, rows = [re.sub("`", "", cell) for cell in lines[0][1:]], lines[2:]
    said = {
        (re.findall(r"\((\w+)\)", row[0])[-1], head): cell
        for row in rows
        for head, cell in zip(heads, row[1:], strict=True)
    }
    declared = {
        (law.name, name): WORDS[getattr(getattr(likely, name).laws, law.name)]
        for name in sorted(heads)
        for law in fields(Laws)
    }
    assert said == declared
    assert set(heads) == {type(case.make()).__name__ for case in CASES}
