"""One joint of a whole table beside what people use for each question: density, filling cells, drawing rows, outliers.

python benchmarks/joint.py DIRECTORY [NAME …] [--only density,fill,draw,outliers,cells] [--rows 4000]

The directory holds Parquet files, with a label, if there is one, in the column `target`. Halves of at most 4,000 rows
are trained and tested on; 20 % of the cells of both are hidden for filling. Drawing is judged by LightGBM; arfpy is a
peer where it is installed. All else needs scikit-learn only.
"""

import argparse
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

import likely

NAMES = [
    "adult", "bank_marketing", "credit_approval", "wine_quality", "covertype", "eucalyptus", "chronic_kidney",
    "autos", "diabetes_mclust", "phoneme",
]  # fmt: skip
ONE_CLASS = ["breast_cancer_w", "pima_na", "satimage", "vowel", "glass", "htru2", "mammography", "vehicle"]
PARTS = ("density", "fill", "draw", "outliers", "cells")


def read(folder: Path, name: str, rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two halves of a table: numbers of 30 distinct values and more, and all others as categories."""
    frame = pd.read_parquet(folder / f"{name}.parquet")
    frame = frame.sample(min(len(frame), rows), random_state=seed).reset_index(drop=True)
    found = {}
    for column in frame:
        values = frame[column]
        if values.nunique() < 2 or str(values.dtype).startswith("datetime"):
            continue
        if (
            pd.api.types.is_numeric_dtype(values)
            and values.dtype != bool
            and column != "target"
            and values.nunique() >= 30
        ):
            found[column] = values.astype(float)
            continue
        words = values.astype(object).where(values.notna(), None).map(lambda v: None if v is None else f"={v}")
        counts = words.value_counts()
        kept = set(counts[counts >= 3].index[:50])
        words = words.map(lambda v, kept=kept: v if v is None or v in kept else "=other")
        if words.nunique() > 1:
            found[column] = words
    whole = pd.DataFrame(found)
    half = len(whole) // 2
    return whole.iloc[:half].reset_index(drop=True), whole.iloc[half:].reset_index(drop=True)


def kinds_of(frame: pd.DataFrame) -> dict[str, str]:
    return {c: "number" if frame[c].dtype.kind == "f" else "category" for c in frame}


def hide(frame: pd.DataFrame, seed: int, share: float = 0.2) -> tuple[pd.DataFrame, np.ndarray]:
    hidden = np.random.default_rng(seed).random(frame.shape) < share
    return frame.mask(hidden, None), hidden & frame.notna().to_numpy()


def codes(train: pd.DataFrame, *others: pd.DataFrame) -> list[np.ndarray]:
    """Return frames as numbers, categories by their place among those of all frames."""
    known = {
        c: sorted({v for f in (train, *others) for v in f[c].dropna()}) for c in train if train[c].dtype.kind != "f"
    }
    return [
        np.stack(
            [
                f[c].to_numpy(float)
                if c not in known
                else f[c].map({v: i for i, v in enumerate(known[c])}).to_numpy(float)
                for c in train
            ],
            axis=1,
        )
        for f in (train, *others)
    ]


def crps(draws: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean CRPS of ensembles, rows × draws."""
    e = np.sort(draws, axis=1)
    m = e.shape[1]
    spread = (e * (2 * np.arange(1, m + 1) - m - 1)).sum(axis=1) / m**2
    return float(np.mean(np.abs(e - truth[:, None]).mean(axis=1) - spread))


def scores(
    train: pd.DataFrame, test: pd.DataFrame, mask: np.ndarray, fill: pd.DataFrame, ensembles: dict[str, np.ndarray]
) -> dict[str, float]:
    """Return normalised RMSE and CRPS of numbers, and the share of right categories, each the mean over columns."""
    error, spread, right = [], [], []
    for j, c in enumerate(test):
        hidden = mask[:, j]
        if hidden.sum() < 3:
            continue
        if test[c].dtype.kind != "f":
            right.append(np.mean(test[c].to_numpy()[hidden] == fill[c].to_numpy()[hidden]))
            continue
        truth, scale = test[c].to_numpy()[hidden], train[c].std(ddof=0)
        error.append(np.sqrt(np.mean((truth - fill[c].to_numpy(float)[hidden]) ** 2)) / scale)
        spread.append(crps(ensembles[c][hidden], truth) / scale)
    return {"nrmse": _mean(error), "category accuracy": _mean(right), "crps": _mean(spread)}


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def fill_likely(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, np.ndarray], float]:
    start = time.perf_counter()
    model = likely.Model(columns=kinds_of(train), progress=False).fit(train)
    seconds = time.perf_counter() - start
    q = (np.arange(40) + 0.5) / 40
    ensembles = {c: model.predict_quantiles(test, q, of=c) for c in train if train[c].dtype.kind == "f"}
    return model.impute(test), ensembles, seconds


def fill_forest(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, np.ndarray], float]:
    """missForest: columns by turns from all others, by 40 extra trees, four rounds."""
    start = time.perf_counter()
    a, b = codes(train, test)
    lacking = np.isnan(a), np.isnan(b)
    number = [train[c].dtype.kind == "f" for c in train]
    for j in range(a.shape[1]):
        known = a[~lacking[0][:, j], j]
        first = known.mean() if number[j] else np.bincount(known.astype(int)).argmax()
        a[lacking[0][:, j], j] = b[lacking[1][:, j], j] = first
    ensembles = {}
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
                ensembles[train.columns[j]] = np.stack(
                    [tree.predict(b[:, others]) for tree in forest.estimators_], axis=1
                )
    known = {c: sorted({v for f in (train, test) for v in f[c].dropna()}) for c in train if train[c].dtype.kind != "f"}
    filled = {
        c: b[:, j] if number[j] else np.array(known[c], dtype=object)[b[:, j].astype(int)] for j, c in enumerate(train)
    }
    return pd.DataFrame(filled), ensembles, time.perf_counter() - start


def fill_mean(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, np.ndarray], float]:
    filled = {c: train[c].mean() if train[c].dtype.kind == "f" else train[c].mode()[0] for c in train}
    q = (np.arange(40) + 0.5) / 40
    spread = {c: np.tile(train[c].quantile(q).to_numpy(), (len(test), 1)) for c in train if train[c].dtype.kind == "f"}
    return test.fillna(filled), spread, 0.0


def told_apart(real: pd.DataFrame, drawn: pd.DataFrame) -> float:
    """Return the AUC of LightGBM that tells drawn rows from real ones; .5 is perfect. Both lack the same cells."""
    a, b = codes(real, drawn[real.columns])
    b = b[: len(a)]
    a = a[: len(b)]
    b[np.isnan(a)] = np.nan
    X, y, p = np.vstack([a, b]), np.repeat([1, 0], [len(a), len(b)]), np.zeros(len(a) + len(b))
    categories = [j for j, c in enumerate(real) if real[c].dtype.kind != "f"]
    for fit, ask in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        p[ask] = _boosting().fit(X[fit], y[fit], categorical_feature=categories).predict_proba(X[ask])[:, 1]
    return float(roc_auc_score(y, p))


def _boosting() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=100, num_leaves=15, learning_rate=0.1, min_child_samples=10, verbose=-1, n_jobs=2
    )


def trained_on_drawn(drawn: pd.DataFrame, real: pd.DataFrame) -> float:
    """Return the accuracy on real rows of LightGBM trained on drawn ones."""
    target = real.columns[-1]
    a, b = codes(drawn[real.columns], real)
    known = [~np.isnan(each[:, -1]) for each in (a, b)]
    if len(np.unique(a[known[0], -1])) < 2:
        return float("nan")
    categories = [j for j, c in enumerate(real) if real[c].dtype.kind != "f" and c != target]
    model = _boosting().fit(a[known[0], :-1], a[known[0], -1], categorical_feature=categories)
    return float((model.predict(b[known[1], :-1]) == b[known[1], -1]).mean())


def draw_likely(train: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    return likely.Model(columns=kinds_of(train), progress=False).fit(train).sample(n, seed).to_pandas()


def draw_arf(train: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    from arfpy import arf

    np.random.seed(seed)  # noqa: NPY002  which it draws by
    frame = train.copy()
    for c in frame:
        if frame[c].dtype.kind == "f":
            frame[c] = frame[c].fillna(frame[c].median())
        else:
            frame[c] = frame[c].where(frame[c].notna(), "none").astype("category")
    model = arf.arf(x=frame, num_trees=30, verbose=False, min_node_size=5, max_iters=5)
    model.forde()
    drawn = model.forge(n=n)
    return drawn.astype({c: object for c in drawn if drawn[c].dtype.kind != "f"}).replace("none", None)


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


def outliers(folder: Path, name: str, share: float) -> dict[str, float]:
    """Fit on half of the largest class, and tell its other half from all other classes."""
    frame = pd.read_parquet(folder / f"{name}.parquet")
    y = frame.pop("target").astype(str)
    X = frame.astype(float)
    usual = np.flatnonzero(y == y.value_counts().index[0])
    rng = np.random.default_rng(0)
    rng.shuffle(usual)
    train, rest = usual[: len(usual) // 2], np.setdiff1d(np.arange(len(X)), usual[: len(usual) // 2])
    rest = rng.permutation(rest)[:10_000]
    odd = (y.iloc[rest] != y.value_counts().index[0]).to_numpy()
    if share:
        X = X.mask(rng.random(X.shape) < share)
    X = X.loc[:, X.iloc[train].notna().any()]
    start = time.perf_counter()
    model = likely.Model(progress=False).fit(X.iloc[train].to_numpy())
    found = {
        "likely": roc_auc_score(odd, -model.log_density(X.iloc[rest].to_numpy())),
        "seconds": time.perf_counter() - start,
    }
    whole = X.fillna(X.iloc[train].median()).to_numpy()
    scaler = StandardScaler().fit(whole[train])
    a, b = scaler.transform(whole[train]), scaler.transform(whole[rest])
    found["LocalOutlierFactor"] = roc_auc_score(odd, -LocalOutlierFactor(novelty=True).fit(a).score_samples(b))
    found["IsolationForest"] = roc_auc_score(odd, -IsolationForest(random_state=0).fit(a).score_samples(b))
    found["ECOD"] = roc_auc_score(odd, ecod(a, b))
    return {name: float(value) for name, value in found.items()}


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


def corrupted(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """Return how often a cell that was replaced by another row's different one is the most surprising of its row."""
    model = likely.Model(columns=kinds_of(train), progress=False).fit(train)
    rng = np.random.default_rng(0)
    part = test.sample(min(len(test), 500), random_state=0).reset_index(drop=True)
    which, changed = np.full(len(part), -1), part.astype(object)
    for i in range(len(part)):
        c = rng.integers(part.shape[1])
        others = part.iloc[:, c].dropna()
        others = others[others != part.iloc[i, c]]
        if len(others) and pd.notna(part.iloc[i, c]):
            changed.iloc[i, c] = others.iloc[rng.integers(len(others))]
            which[i] = c
    changed = changed.astype({c: float for c in part if part[c].dtype.kind == "f"})
    cells = np.where(np.isnan(found := model.surprise(changed).cells), -np.inf, found)
    return float((cells.argmax(axis=1) == which)[which >= 0].mean())


def density(train: pd.DataFrame, test: pd.DataFrame) -> tuple[float, float]:
    """Return the held-out log-likelihood of a row on standardised numbers, and seconds to fit."""
    start = time.perf_counter()
    model = likely.Model(columns=kinds_of(train), progress=False).fit(train)
    seconds = time.perf_counter() - start
    logs = model.log_density(test)
    for j, c in enumerate(train):
        column = model.fitted().joint.columns[j]
        if train[c].dtype.kind == "f":
            atoms = test[c].isin(column.atoms).to_numpy()
            logs = logs + np.log(max(train[c].std(ddof=0), 1e-12)) * (test[c].notna().to_numpy() & ~atoms)
    return float(logs.mean()), seconds


def main() -> None:
    """Print a line for each table, and means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--rows", type=int, default=4000)
    settings = parser.parse_args()
    parts = settings.only.split(",")
    fills = {"likely": fill_likely, "missForest": fill_forest, "mean": fill_mean}
    draws = {"likely": draw_likely, "Gaussian copula": draw_copula} | (
        {"arfpy": draw_arf} if find_spec("arfpy") else {}
    )
    results: dict[str, list[float]] = {}

    def note(what: str, value: float) -> str:
        results.setdefault(what, []).append(value)
        return f"{what} {value:.3f}"

    for name in settings.names or NAMES:
        train, test = read(settings.folder, name, settings.rows)
        line = [f"{name} {train.shape[0]}×{train.shape[1]}"]
        if "density" in parts:
            found, seconds = density(train, test)
            line += [note("log-likelihood", found), note("fit seconds", seconds)]
        if "fill" in parts:
            lacking, _ = hide(train, 1)
            asked, mask = hide(test, 2)
            for who, fill in fills.items():
                *filled, seconds = fill(lacking, asked)
                line += [note(f"{who} {k}", v) for k, v in scores(train, test, mask, *filled).items()]
                line.append(note(f"{who} fill seconds", seconds))
        if "draw" in parts:
            for who, draw in draws.items():
                drawn = [draw(train, len(train), seed) for seed in range(3 if who == "likely" else 1)]
                line.append(note(f"{who} C2ST", float(np.mean([told_apart(test, each) for each in drawn]))))
                line.append(note(f"{who} TSTR", trained_on_drawn(drawn[0], test)))
        if "cells" in parts:
            line.append(note("changed cell found", corrupted(train, test)))
        print(", ".join(line), flush=True)
    print("mean:", ", ".join(f"{what} {np.nanmean(values):.3f}" for what, values in results.items()))
    if "outliers" in parts and not settings.names:
        for share in (0.0, 0.1):
            table = pd.DataFrame({name: outliers(settings.folder, name, share) for name in ONE_CLASS}).T
            print(
                f"\nAUC of outliers, {share:.0%} of cells missing\n{table.round(3)}\n{table.mean().round(3).to_dict()}"
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
