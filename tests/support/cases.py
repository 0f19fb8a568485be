"""The table of cases: a row for every family and model, and the data that suits it.

A case says how to make an unfitted model and what its columns hold. ``tables(case)`` is a hypothesis strategy of data
for it, with all that goes wrong in practice: empty classes, zero weights, holes, columns that are constant or missing
altogether, one row per class, offsets of 1e9 standard deviations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from likely import GaussianDiscriminant, GaussianPrior, NaiveBayes
from likely.families import Bernoulli, Categorical, Complement, Gamma, Gaussian, LogNormal

OFFSET = 1e9
CATEGORIES = np.array([-1.0, 0.0, 1.0, 2.5])


@dataclass(frozen=True)
class Case:
    """A model, and the data that suits it."""

    name: str
    make: Callable[[], Any]
    kinds: tuple[str, ...]
    holes: bool = True
    """whether it can be fitted on missing cells"""
    expected: bool = False
    """whether missing cells are expected from others of their batch, so that batches are not quite one fit"""
    offset: bool = False
    """whether an offset of 1e9 standard deviations must cost nothing"""
    least_rows: int = 1
    """how many rows a class needs for the model to exist"""
    classes: int | None = None
    """the number of classes, where the parameters fix it"""
    plain: bool = False
    """whether the parameters fix what is in the data, so that nothing may be left out of it"""
    sparse: bool = False
    density: bool = True
    """whether it models how x came to be, and not only which class it belongs to"""
    linear: bool = False
    quadratic: bool = False

    def table(self, X: np.ndarray) -> Any:
        """Return rows in the form the model is given them."""
        return csr_array(X) if self.sparse else X

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Data:
    """Rows, labels and weights; ``classes`` may name labels that no row has."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    classes: np.ndarray

    @property
    def has_empty_classes(self) -> bool:
        return len(self.classes) > len(np.unique(self.y))

    def rows(self, index: Any) -> "Data":
        weights = None if self.weights is None else self.weights[index]
        return replace(self, X=self.X[index], y=self.y[index], weights=weights)


def learn(case: Case, data: Data) -> Any:
    """Fit a new model, by ``fit`` unless there are classes without a row."""
    if data.has_empty_classes:
        return learn_more(case, case.make(), data)
    return case.make().fit(case.table(data.X), data.y, sample_weight=data.weights)


def learn_more(case: Case, model: Any, data: Data) -> Any:
    """Add rows to a model."""
    return model.partial_fit(case.table(data.X), data.y, classes=data.classes, sample_weight=data.weights)


def parameters(model: Any) -> dict[str, np.ndarray]:
    """Return every solved parameter: the class weights and all arrays of each density."""
    found = {"weights": model.joint_.weights}
    for i, density in enumerate(model.joint_.densities):
        for field in fields(density):
            value = getattr(density, field.name)
            if isinstance(value, np.ndarray):
                found[f"{i} {type(density).__name__}.{field.name}"] = value
    return found


def draw_cells(kind: str, codes: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a column whose distribution differs by class."""
    n = len(codes)
    if kind == "real":
        return rng.normal(rng.normal(0, 2, classes)[codes], rng.uniform(0.5, 2, classes)[codes])
    if kind == "positive":
        return rng.gamma(rng.uniform(1, 4, classes)[codes], rng.uniform(0.5, 3, classes)[codes])
    if kind == "waiting":
        return rng.exponential(rng.uniform(0.2, 5, classes)[codes])
    if kind == "count":
        return rng.poisson(rng.uniform(0.5, 6, classes)[codes]).astype(float)
    if kind == "word":
        return rng.poisson(rng.uniform(0.2, 3, classes)[codes]).astype(float)
    if kind == "binary":
        return (rng.random(n) < rng.uniform(0.1, 0.9, classes)[codes]).astype(float)
    assert kind == "category"
    chances = rng.dirichlet(np.full(len(CATEGORIES), 2.0), classes).cumsum(axis=1)[codes]
    places = np.minimum((rng.random(n)[:, None] > chances).sum(axis=1), len(CATEGORIES) - 1)
    places[: len(CATEGORIES)] = np.arange(len(CATEGORIES))[:n]  # every category is there
    return CATEGORIES[places]


def make_data(case: Case, sizes: Sequence[int], rng: np.random.Generator, *, text: bool = False) -> Data:
    """Draw data with a given number of rows in each class, the rows in random order."""
    k = len(sizes)
    codes = rng.permutation(np.repeat(np.arange(k), sizes))
    X = np.column_stack([draw_cells(kind, codes, k, rng) for kind in case.kinds])
    if case.kinds.count("real") > 1:  # columns that depend on each other
        real = [j for j, kind in enumerate(case.kinds) if kind == "real"]
        X[:, real[1]] += 0.7 * X[:, real[0]]
    labels = np.array([f"class {c}" for c in range(k)]) if text else np.arange(k) * 2 - 1
    return Data(X, labels[codes], None, labels)


@st.composite
def tables(draw: Any, case: Case, *, offset: bool = False, odd: bool = True) -> Data:
    """Return data for a case; ``odd``: with all that goes wrong in practice."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = case.classes or draw(st.integers(1, 4))
    more = draw(st.sampled_from([0, 1, 9, 30]))
    least = max(case.least_rows, len(CATEGORIES) if case.plain else 1)
    sizes = least + rng.integers(0, more + 1, k)
    data = make_data(case, sizes, rng, text=draw(st.booleans()))
    if offset:
        data = replace(data, X=data.X + OFFSET * data.X.std(axis=0))
    if not odd or case.plain:
        return data
    return _with_weights(draw, _with_empty_classes(draw, _with_odd_columns(draw, case, data, rng)), case, rng)


def _with_odd_columns(draw: Any, case: Case, data: Data, rng: np.random.Generator) -> Data:
    X = data.X.copy()
    one = data.y == data.y[0]
    odd = ["constant"]
    if case.holes:
        odd += ["constant in a class", "holes", "missing", "missing in a class"]
    for j in range(X.shape[1]):
        change = draw(st.sampled_from(["nothing", "nothing", *odd]))
        if change == "constant":
            X[:, j] = X[0, j]
        elif change == "constant in a class":
            X[one, j] = X[0, j]
        elif change == "holes":
            X[rng.random(len(X)) < 0.3, j] = np.nan
        elif change == "missing":
            X[:, j] = np.nan
        elif change == "missing in a class":
            X[one, j] = np.nan
    return replace(data, X=X)


def _with_empty_classes(draw: Any, data: Data) -> Data:
    if not draw(st.booleans()):
        return data
    text = data.classes.dtype.kind == "U"
    more = np.array(["a first class", "class 0.5"] if text else [-7, 0])[: draw(st.integers(1, 2))]
    return replace(data, classes=np.union1d(data.classes, more))


def _with_weights(draw: Any, data: Data, case: Case, rng: np.random.Generator) -> Data:
    how = draw(st.sampled_from(["none", "whole", "fractions"]))
    if how == "none":
        return data
    n = len(data.y)
    weights = rng.integers(1, 4, n).astype(float) if how == "whole" else rng.uniform(0.1, 2.0, n)
    for label in np.unique(data.y):  # zeros, but not in the rows that a class needs
        spare = np.flatnonzero(data.y == label)[case.least_rows :]
        weights[spare[rng.random(len(spare)) < 0.3]] = 0.0
    return replace(data, weights=weights)


def _gaussian(covariance: str, tied: float, shrinkage: Any = 0.0, **more: Any) -> Case:
    full = covariance == "full"
    if full and shrinkage == 0 and "pseudo_rows" not in more:
        least_rows = 12
    else:  # two rows alone have no fourth moments beyond their squares, so that nothing is shrunk
        least_rows = 5 if shrinkage == "ledoit-wolf" else 1
    settings = {"tied": tied, "shrinkage": shrinkage, **more}
    shown = ", ".join(
        f"{key}={type(value).__name__ if key == 'pseudo_rows' else value}" for key, value in settings.items()
    )
    return Case(
        f"{covariance} {shown}",
        lambda: GaussianDiscriminant(covariance, **settings),
        ("real",) * 3,
        holes=shrinkage != "ledoit-wolf",
        expected=full,
        offset=not isinstance(more.get("pseudo_rows"), GaussianPrior),
        least_rows=least_rows,
        linear=tied == 1,
        quadratic=True,
    )


def _naive(name: str, columns: Any, kinds: Sequence[str], **more: Any) -> Case:
    settings = {key: more.pop(key) for key in ("smoothing", "pseudo_rows", "priors") if key in more}
    return Case(name, lambda: NaiveBayes(columns, **settings), tuple(kinds), **more)


_TIES = (False, True, 0.3)
_MATRIX_PRIOR = GaussianPrior([0.5, -0.5, 0.0], [[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.5]], 3.0)
_EVERY_WORD = [0.5, 1.0, 2.0, 0.1, 3.0]
_EVERY_CATEGORY = [0.5, 1.0, 2.0, 0.1, 3.0, 1.0, 0.2, 0.4]
_BY_CLASS = [[1.0, 0.5, 2.0, 0.1, 1.0], [0.3, 0.3, 0.3, 4.0, 1.0], [2.0, 1.0, 1.0, 1.0, 0.6]]

GAUSSIANS = [
    *(_gaussian("spherical", tied) for tied in _TIES),
    *(_gaussian("diagonal", tied, shrinkage) for tied in _TIES for shrinkage in (0.0, 0.2)),
    *(_gaussian("full", tied, shrinkage) for tied in _TIES for shrinkage in (0.0, 0.2, "oas", "ledoit-wolf")),
    *(_gaussian("full", tied, rule, target="spherical") for tied in _TIES[:2] for rule in (0.2, "oas", "ledoit-wolf")),
    *(_gaussian(covariance, tied, unbiased=True) for covariance in ("spherical", "diagonal") for tied in _TIES[:2]),
    *(_gaussian("full", tied, unbiased=True) for tied in _TIES[:2]),
    *(_gaussian(covariance, False, pseudo_rows=2.0) for covariance in ("spherical", "diagonal")),
    _gaussian("full", False, "oas", pseudo_rows=2.0),
    _gaussian("diagonal", True, pseudo_rows=GaussianPrior(0.5, [1.0, 2.0, 3.0], 2.0)),
    *(_gaussian("full", tied, pseudo_rows=_MATRIX_PRIOR) for tied in _TIES),
]

OTHERS = [
    _naive("naive gaussian", "auto", ["real"] * 3, offset=True, quadratic=True),
    _naive("naive gaussian tied", Gaussian(tied=True), ["real"] * 3, offset=True, linear=True, quadratic=True),
    _naive("log-normal", "log-normal", ["positive"] * 3),
    _naive("log-normal tied", LogNormal(tied=True, shrinkage=0.2), ["positive"] * 3),
    _naive("gamma", "gamma", ["positive"] * 3),
    _naive("gamma pseudo_rows", Gamma(pseudo_rows=2.0), ["positive"] * 3),
    _naive("exponential", "exponential", ["waiting"] * 3, linear=True, quadratic=True),
    _naive("exponential pseudo_rows", "exponential", ["waiting"] * 3, pseudo_rows=1.5, linear=True, quadratic=True),
    _naive("poisson", "poisson", ["count"] * 3, linear=True, quadratic=True),
    _naive("poisson pseudo_rows", "poisson", ["count"] * 3, pseudo_rows=0.5, linear=True, quadratic=True),
    _naive("bernoulli", "bernoulli", ["binary"] * 3, linear=True, quadratic=True),
    _naive("bernoulli unsmoothed", "bernoulli", ["binary"] * 3, smoothing=0.0, linear=True, quadratic=True),
    _naive("bernoulli threshold", Bernoulli(threshold=1.5), ["count"] * 3),
    _naive("bernoulli sparse", "bernoulli", ["binary"] * 3, sparse=True, linear=True, quadratic=True),
    _naive("categorical", "categorical", ["category"] * 2),
    _naive("categorical unsmoothed", "categorical", ["category"] * 2, smoothing=0.0),
    _naive("categorical λ each", "categorical", ["category"] * 2, smoothing=_EVERY_CATEGORY, plain=True),
    _naive("multinomial", "multinomial", ["word"] * 5, linear=True, quadratic=True),
    _naive("multinomial unsmoothed", "multinomial", ["word"] * 5, smoothing=0.0, linear=True, quadratic=True),
    _naive("multinomial λ each", "multinomial", ["word"] * 5, smoothing=_EVERY_WORD, linear=True, quadratic=True),
    _naive("multinomial λ by class", "multinomial", ["word"] * 5, smoothing=_BY_CLASS, classes=3, plain=True,
           linear=True, quadratic=True),
    _naive("multinomial sparse", "auto", ["word"] * 5, sparse=True, linear=True, quadratic=True),
    _naive("complement", "complement", ["word"] * 5, density=False, linear=True, quadratic=True),
    _naive("complement normalised", Complement(0.5, normalized=True), ["word"] * 5, density=False, sparse=True,
           linear=True, quadratic=True),
    _naive("mixed linear", [Gaussian(tied=True), "bernoulli", "poisson", "exponential", Gaussian(tied=True)],
           ["real", "binary", "count", "waiting", "real"], linear=True, quadratic=True, priors="uniform"),
    _naive("mixed",
           ["gaussian", "categorical", "gamma", "ignore", "bernoulli", "log-normal", "multinomial", "gaussian"],
           ["real", "category", "positive", "real", "binary", "positive", "word", "real"]),
    _naive("mixed dict", {0: Categorical(0.5), -1: "poisson"}, ["category", "real", "count"]),
]  # fmt: skip

CASES = [*GAUSSIANS, *OTHERS]
