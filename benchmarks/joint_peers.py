"""What people use instead of one joint of a whole table: to fill cells, to draw rows, for densities, and for outliers.

Peers of ``joint.py``. Those whose package is not installed are left out: missForest, the mean, adversarial forests and
outliers need scikit-learn only; others arfpy, miceforest and sdv (Gaussian copula, CTGAN).
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, IsolationForest, RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

COVERAGE = 0.9
# Imputations by miceforest, too few for intervals.
_DRAWS = 8
_QUANTILES = (np.arange(40) + 0.5) / 40


class Filled(NamedTuple):
    """A table whose missing cells were filled in."""

    cells: pd.DataFrame
    spread: dict[str, np.ndarray]
    """of numbers what a cell may be, rows × members: quantiles, trees or draws"""
    intervals: dict[str, np.ndarray]
    """of numbers between what a cell is with 90 % probability, rows × 2; or none"""
    seconds: float
    drawn: bool = False
    """whether members are draws, of which there are few"""


def is_number(frame: pd.DataFrame, column: str) -> bool:
    return frame[column].dtype.kind == "f"


def codes(train: pd.DataFrame, *others: pd.DataFrame) -> list[np.ndarray]:
    """Return frames as numbers, categories by their place among those of all frames."""
    frames = train, *others
    found = [np.empty(frame.shape) for frame in frames]
    for j, c in enumerate(train):
        known = (
            {}
            if is_number(train, c)
            else {v: i for i, v in enumerate(sorted({*pd.concat([f[c] for f in frames]).dropna()}))}
        )
        for out, frame in zip(found, frames, strict=True):
            out[:, j] = (frame[c].map(known) if known else frame[c]).to_numpy(float)
    return found


def fill_forest(train: pd.DataFrame, test: pd.DataFrame) -> Filled:
    """missForest: columns by turns from all others, by 40 extra trees, four rounds."""
    start = time.perf_counter()
    a, b = codes(train, test)
    lacking = np.isnan(a), np.isnan(b)
    number = [is_number(train, c) for c in train]
    for j in range(a.shape[1]):
        known = a[~lacking[0][:, j], j]
        first = known.mean() if number[j] else np.bincount(known.astype(int)).argmax()
        a[lacking[0][:, j], j] = b[lacking[1][:, j], j] = first
    spread = {}
    for turn in range(4):
        for j in np.argsort(lacking[0].sum(axis=0)):
            others = np.delete(np.arange(a.shape[1]), j)
            known = ~lacking[0][:, j]
            kind = ExtraTreesRegressor if number[j] else ExtraTreesClassifier
            forest = kind(40, random_state=turn, n_jobs=2, max_features=0.5 if number[j] else "sqrt")
            forest.fit(a[known][:, others], a[known, j])
            for cells, gone in zip((a, b), lacking, strict=True):
                if gone[:, j].any():
                    cells[gone[:, j], j] = forest.predict(cells[gone[:, j]][:, others])
            if turn == 3 and number[j]:
                spread[train.columns[j]] = np.stack([tree.predict(b[:, others]) for tree in forest.estimators_], axis=1)
    cells = {}
    for j, c in enumerate(train):
        names = None if number[j] else np.array(sorted({*train[c].dropna(), *test[c].dropna()}), dtype=object)
        cells[c] = b[:, j] if names is None else names[b[:, j].astype(int)]
    return Filled(pd.DataFrame(cells), spread, _ends(spread), time.perf_counter() - start)


def fill_mice(train: pd.DataFrame, test: pd.DataFrame) -> Filled:
    """miceforest: imputations of all rows by chained equations of LightGBM; their mean, or most frequent category.

    It learns from the rows that it fills, too: its way to fill rows that it has not learned fills in noise (6.0.5).
    """
    import miceforest

    start = time.perf_counter()
    frame = pd.concat([train, test], ignore_index=True)
    for c in train:
        if not is_number(train, c):
            frame[c] = frame[c].astype("category")
    frame.columns = [f"c{j}" for j in range(frame.shape[1])]
    # Categories by their probabilities: it matches rows by their logits, which may be infinite.
    matched = {c: "normal" if is_number(frame, c) else "fast" for c in frame}
    kernel = miceforest.ImputationKernel(frame, num_datasets=_DRAWS, mean_match_strategy=matched, random_state=0)
    kernel.mice(3)
    draws = [kernel.complete_data(dataset=i).iloc[len(train) :] for i in range(_DRAWS)]
    cells, spread = {}, {}
    for j, c in enumerate(train):
        own = np.stack([draw[f"c{j}"].to_numpy() for draw in draws], axis=1)
        if is_number(train, c):
            spread[c], cells[c] = own, own.mean(axis=1)
        else:
            cells[c] = pd.DataFrame(own).mode(axis=1)[0].to_numpy()
    return Filled(pd.DataFrame(cells), spread, {}, time.perf_counter() - start, drawn=True)


def fill_mean(train: pd.DataFrame, test: pd.DataFrame) -> Filled:
    """Fill in the mean, or the most frequent category, whatever else is known."""
    start = time.perf_counter()
    value = {c: train[c].mean() if is_number(train, c) else train[c].mode()[0] for c in train}
    number = [c for c in train if is_number(train, c)]
    spread = {c: np.tile(train[c].quantile(_QUANTILES).to_numpy(), (len(test), 1)) for c in number}
    ends = {c: np.tile(train[c].quantile([0.05, 0.95]).to_numpy(), (len(test), 1)) for c in number}
    return Filled(test.fillna(value), spread, ends, time.perf_counter() - start)


def _ends(spread: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    low = (1 - COVERAGE) / 2
    return {c: np.quantile(x, [low, 1 - low], axis=1).T for c, x in spread.items()}


def draw_arf(train: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Adversarial random forest (Watson and others, 2023) by arfpy; missing cells are a category, or the median."""
    vars(np).setdefault("in1d", np.isin)  # which it asks NumPy for by its former name
    from arfpy import arf

    np.random.seed(seed)  # noqa: NPY002  which it draws by
    frame = train.copy()
    for c in frame:
        if is_number(train, c):
            frame[c] = frame[c].fillna(frame[c].median())
        else:
            frame[c] = frame[c].where(frame[c].notna(), "none").astype("category")
    model = arf.arf(x=frame, num_trees=30, verbose=False, min_node_size=5, max_iters=5)
    model.forde()
    drawn = model.forge(n=n)
    return drawn.astype({c: object for c in drawn if not is_number(drawn, c)}).replace("none", None)


def draw_copula(train: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Draw from a Gaussian copula: ranks as normal scores, categories as intervals of them, one covariance."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(seed)
    (a,) = codes(train)
    z = np.zeros_like(a)
    for j in range(a.shape[1]):
        known = np.flatnonzero(~np.isnan(a[:, j]))
        order = np.lexsort([rng.random(len(known)), a[known, j]])
        u = np.empty(len(known))
        u[order] = (np.arange(len(known)) + 0.5) / len(known)
        z[:, j] = rng.normal(size=len(a))
        z[known, j] = ndtri(u)
    covariance = 0.999 * np.corrcoef(z.T) + 0.001 * np.eye(z.shape[1])
    u = ndtr(rng.normal(size=(n, z.shape[1])) @ np.linalg.cholesky(covariance).T)
    columns = {}
    for j, c in enumerate(train):
        values = np.sort(train[c].dropna().to_numpy())
        columns[c] = values[np.minimum((u[:, j] * len(values)).astype(int), len(values) - 1)]
    return pd.DataFrame(columns)


def draw_sdv(kind: str) -> Callable[[pd.DataFrame, int, int], pd.DataFrame]:
    """Return how rows are drawn by one of SDV's synthesizers with its own settings."""

    def draw(train: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
        import torch
        from sdv import single_table
        from sdv.metadata import Metadata

        np.random.seed(seed)  # noqa: NPY002  which it draws by
        torch.manual_seed(seed)
        sdtypes = {c: {"sdtype": "numerical" if is_number(train, c) else "categorical"} for c in train}
        model = getattr(single_table, kind)(Metadata.load_from_dict({"tables": {"rows": {"columns": sdtypes}}}))
        model.fit({"rows": train})
        return model.sample(n)["rows"]

    return draw


def draw_real(train: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Return the rows themselves: the best that drawn ones can be."""
    return train.sample(n, replace=n > len(train), random_state=seed).reset_index(drop=True)


class AdversarialForest:
    """The density of an adversarial random forest: leaves of all trees, and in each a product of histograms.

    Trees tell rows from such whose columns are drawn independently, at first from the marginals and then within leaves,
    until they can no more. Every leaf has a histogram of each column over the levels within its box, smoothed over
    neighbouring bins and with pseudo-counts of the marginal.
    """

    def __init__(self, levels: np.ndarray, sizes: list[int], values: list[np.ndarray | None], bins: list[int]) -> None:
        """Fit to rows × columns of levels, −1 if missing.

        ``values``: of a number the value of each level, by which it is ordered; ``bins``: how many of its last levels
        are bins, between which counts are smoothed.
        """
        rng = np.random.default_rng(0)
        n, d = levels.shape
        self.places = [np.arange(s) if v is None else v.argsort().argsort() for s, v in zip(sizes, values, strict=True)]
        real = np.stack([np.where(levels[:, j] < 0, np.nan, self.places[j][levels[:, j]]) for j in range(d)], axis=1)
        other = np.stack([rng.permutation(real[:, j]) for j in range(d)], axis=1)
        told, kept = 1.0, None
        for turn in range(5):
            forest = RandomForestClassifier(30, min_samples_leaf=5, oob_score=True, random_state=turn)
            forest.fit(np.concatenate([real, other]), np.repeat([1, 0], n))
            if forest.oob_score_ > told:
                break
            told, kept = forest.oob_score_, forest
            if told <= 0.5:
                break
            leaves = forest.apply(real)
            trees, own = rng.integers(leaves.shape[1], size=n), rng.integers(n, size=n)
            for i, (tree, row) in enumerate(zip(trees, own, strict=True)):
                near = np.flatnonzero(leaves[:, tree] == leaves[row, tree])
                other[i] = real[rng.choice(near, d), np.arange(d)]
        assert kept is not None
        self._leaves(kept, real, levels, sizes, bins)

    def _leaves(
        self, forest: RandomForestClassifier, real: np.ndarray, levels: np.ndarray, sizes: list[int], bins: list[int]
    ) -> None:
        n, d = levels.shape
        leaves, low, high, weights = np.empty((n, len(forest.estimators_)), dtype=int), [], [], []
        first = 0
        for t, estimator in enumerate(forest.estimators_):
            tree = estimator.tree_
            ends = np.full((2, tree.node_count, d), np.inf) * np.array([-1, 1])[:, None, None]
            for node in range(tree.node_count):
                left, right, j = tree.children_left[node], tree.children_right[node], tree.feature[node]
                if left >= 0:
                    ends[:, [left, right]] = ends[:, [node]]
                    ends[1, left, j] = ends[0, right, j] = tree.threshold[node]
            nodes, index, counts = np.unique(
                tree.apply(real.astype(np.float32)), return_inverse=True, return_counts=True
            )
            leaves[:, t], first = first + index, first + len(nodes)
            low.append(ends[0, nodes])
            high.append(ends[1, nodes])
            weights.append(counts / n / len(forest.estimators_))
        self.log_weights = np.log(np.concatenate(weights))
        below, above = np.concatenate(low), np.concatenate(high)
        self.log_tables = []
        for j, size in enumerate(sizes):
            there = levels[:, j] >= 0
            marginal = np.bincount(levels[there, j], minlength=size) + 0.5 / size
            index = leaves[there] * size + levels[there, j, None]
            counts = np.bincount(index.ravel(), minlength=first * size).reshape(first, size).astype(float)
            if bins[j]:
                marginal[-bins[j] :] = marginal[-bins[j] :].mean()
                i = np.arange(bins[j])
                near = np.exp(-0.5 * ((i[:, None] - i) / 1.5) ** 2)
                counts[:, -bins[j] :] = counts[:, -bins[j] :] @ (near / near.sum(axis=0)).T
            inside = (self.places[j] > below[:, [j]]) & (self.places[j] <= above[:, [j]])
            share = np.where(inside, marginal, 1e-300)
            table = counts * inside + 2 * share / share.sum(axis=1, keepdims=True)
            self.log_tables.append(np.log(np.maximum(table / table.sum(axis=1, keepdims=True), 1e-30)).T)

    def log_probability(self, levels: np.ndarray) -> np.ndarray:
        """Return log p of the levels of each row; missing cells are left out."""
        found = np.empty(len(levels))
        for start in range(0, len(levels), 256):
            part = levels[start : start + 256]
            logs = np.tile(self.log_weights, (len(part), 1))
            for j, table in enumerate(self.log_tables):
                there = part[:, j] >= 0
                logs[there] += table[part[there, j]]
            found[start : start + 256] = np.logaddexp.reduce(logs, axis=1)
        return found


def ecod(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Empirical-cumulative-distribution outliers (Li and others, 2022): tails of every column, added up."""
    left, right, auto = np.zeros(len(test)), np.zeros(len(test)), np.zeros(len(test))
    for j in range(train.shape[1]):
        x = np.sort(train[:, j])
        below = -np.log(np.maximum(np.searchsorted(x, test[:, j], side="right"), 1) / (len(x) + 1))
        above = -np.log(np.maximum(len(x) - np.searchsorted(x, test[:, j], side="left"), 1) / (len(x) + 1))
        centred = x - x.mean()
        skewed = (centred**3).mean() < 0
        left, right, auto = left + below, right + above, auto + (below if skewed else above)
    return np.maximum(np.maximum(left, right), auto)


def oddness(
    score: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Callable[[pd.DataFrame, pd.DataFrame], np.ndarray]:
    """Return an outlier score of frames, which sees medians for missing cells, and standardised numbers."""

    def of(train: pd.DataFrame, test: pd.DataFrame) -> np.ndarray:
        median = train.median()
        scaler = StandardScaler().fit(train.fillna(median).to_numpy())
        return score(*(scaler.transform(frame.fillna(median).to_numpy()) for frame in (train, test)))

    return of


FILL: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Filled]] = {
    "missForest": fill_forest,
    "mean": fill_mean,
    **({"miceforest": fill_mice} if find_spec("miceforest") else {}),
}
DRAW: dict[str, Callable[[pd.DataFrame, int, int], pd.DataFrame]] = {
    "real rows": draw_real,
    "Gaussian copula": draw_copula,
    **({"arfpy": draw_arf} if find_spec("arfpy") else {}),
    **(
        {"SDV's copula": draw_sdv("GaussianCopulaSynthesizer"), "CTGAN": draw_sdv("CTGANSynthesizer")}
        if find_spec("sdv")
        else {}
    ),
}
OUTLIERS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Any]] = {
    "LocalOutlierFactor": oddness(lambda a, b: -LocalOutlierFactor(novelty=True).fit(a).score_samples(b)),
    "IsolationForest": oddness(lambda a, b: -IsolationForest(random_state=0).fit(a).score_samples(b)),
    "ECOD": oddness(ecod),
}
