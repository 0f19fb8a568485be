"""One joint of a whole table beside what people use for each question: density, filling cells, drawing rows, outliers.

python benchmarks/joint.py DIRECTORY [TABLE …] [--only PARTS] [--who NAMES] [--splits 3] [--rows 4000] [--out FILE]

The directory holds Parquet files, with a label, if there is one, in the column `target`. Each split draws at most 4,000
rows anew, trains on one half and tests on the other:

density   log-likelihood of a row, numbers standardised
fill      20 % of the cells of both halves are hidden and filled in: normalised RMSE and CRPS of numbers, how many of
          them are in 90 % intervals, right categories
draw      C2ST, the AUC of LightGBM that tells drawn rows from real ones (.5 is perfect), as drawn and with numbers
          snapped to values that were learned; TSTR, the accuracy on real rows of LightGBM trained on drawn ones
cells     how often a cell that was replaced by another row's is the most surprising of its row
outliers  trained on half of the largest class: the AUC that tells its other half from all other classes, with all cells
          and with 10 % of them missing, on eight tables of numbers

Peers are in `joint_peers.py`. With --out, results are kept in FILE line by line, and those that it has are not measured
again: so a run may be stopped and go on, in parts. Lines that are to be measured anew are to be taken out of it.
"""

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joint_peers import COVERAGE, DRAW, FILL, OUTLIERS, AdversarialForest, Filled, codes, is_number
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

import likely

NAMES = [
    "adult", "bank_marketing", "credit_approval", "wine_quality", "covertype", "eucalyptus", "chronic_kidney",
    "autos", "diabetes_mclust", "phoneme",
]  # fmt: skip
ONE_CLASS = ["breast_cancer_w", "pima_na", "satimage", "vowel", "glass", "htru2", "mammography", "vehicle"]
PARTS = ("density", "fill", "draw", "cells", "outliers")
OURS = "likely"
# Measures of which less is better, and those that are not compared.
LESS = {"normalised RMSE", "CRPS", "C2ST", "C2ST, snapped"}
SHOWN = {"coverage"}

Frame = pd.DataFrame
Measures = dict[str, float]


def read(folder: Path, name: str, rows: int, split: int) -> tuple[Frame, Frame]:
    """Return two halves of a table: numbers of 30 distinct values and more, and all others as categories."""
    frame = pd.read_parquet(folder / f"{name}.parquet")
    frame = frame.iloc[np.random.default_rng(split).permutation(len(frame))[:rows]].reset_index(drop=True)
    if "target" in frame:
        frame["target"] = frame.pop("target")  # the last column
    found = {}
    for column, values in frame.items():
        distinct = values.nunique()
        if distinct < 2 or values.dtype.kind == "M":
            continue
        if values.dtype.kind in "iuf" and column != "target" and distinct >= 30:
            found[column] = values.astype(float)
            continue
        words = values.astype(object).where(values.notna(), None).map(lambda v: None if v is None else f"={v}")
        counts = words.value_counts()
        kept = set(counts[counts >= 3].index[:50])
        words = words.map(lambda v, kept=kept: v if v is None or v in kept else "=other")
        if words.nunique() > 1:
            found[column] = words.astype(object)
    whole = pd.DataFrame(found)
    half = len(whole) // 2
    return whole.iloc[:half].reset_index(drop=True), whole.iloc[half:].reset_index(drop=True)


def hide(frame: Frame, seed: int, share: float = 0.2) -> tuple[Frame, np.ndarray]:
    hidden = np.random.default_rng(seed).random(frame.shape) < share
    return frame.mask(hidden, None), hidden & frame.notna().to_numpy()


def numbers(frame: Frame) -> list[str]:
    return [c for c in frame if is_number(frame, c)]


def fitted(train: Frame, *kind: str) -> likely.Model:
    columns = {c: "number" if is_number(train, c) else "category" for c in train}
    return likely.Model(*kind, columns=columns, progress=False).fit(train)


# Density


def density(train: Frame, test: Frame, *, who: str) -> Measures:
    """Return the mean log-likelihood: atoms of the model have a probability, all other numbers a density.

    Adversarial forests and independent columns have the same marginals, so that they differ in dependence alone.
    """
    start = time.perf_counter()
    model = fitted(train, *([] if who == OURS else ["tree"]))
    seconds = time.perf_counter() - start
    columns = model.fitted().joint.columns
    if who == OURS:
        logs = model.log_density(test)
    else:
        a, b = (next(iter(model.fitted().batches(frame))) for frame in (train, test))
        start = time.perf_counter()
        copula = forest_copula if who == "adversarial forest" else independent
        logs = copula(columns, a, b) + b.log.sum(axis=1)
        seconds = time.perf_counter() - start
    for c, column in zip(train, columns, strict=True):
        if is_number(train, c):
            free = (test[c].notna() & ~test[c].isin(column.atoms)).to_numpy()
            logs = logs + np.log(max(train[c].std(ddof=0), 1e-12)) * free
    return {"log-likelihood": float(logs.mean()), "seconds": seconds}


def forest_copula(columns: Any, train: Any, test: Any) -> np.ndarray:
    """Return log p of rows whose numbers are in 32 bins of u, by an adversarial forest, less that of uniform u."""
    bins = [32 * (column.bins > 1) for column in columns]
    sizes = [column.levels + max(b - 1, 0) for column, b in zip(columns, bins, strict=True)]
    values = [_values(column) if b else None for column, b in zip(columns, bins, strict=True)]
    forest = AdversarialForest(train.binned(32), sizes, values, bins)
    binned = sum(test.levels[:, j] == column.levels - 1 for j, column in enumerate(columns) if bins[j])
    return forest.log_probability(test.binned(32)) + np.log(32) * binned


def independent(columns: Any, train: Any, test: Any) -> np.ndarray:
    """Return log p of the levels of rows, column by column."""
    logs = np.zeros(test.rows)
    for j, column in enumerate(columns):
        counts = np.bincount(train.levels[train.levels[:, j] >= 0, j], minlength=column.levels) + 0.5 / column.levels
        there = test.levels[:, j] >= 0
        logs[there] += np.log(counts / counts.sum())[test.levels[there, j]]
    return logs


def _values(column: Any) -> np.ndarray:
    """Return the atoms of a number, and the mean of those in each of 32 bins."""
    return np.append(column.atoms, column.support_points.reshape(32, -1).mean(axis=1))


# Filling cells


def fill_likely(train: Frame, test: Frame) -> Filled:
    start = time.perf_counter()
    model = fitted(train)
    cells = model.impute(test)
    seconds = time.perf_counter() - start
    q = (np.arange(40) + 0.5) / 40
    spread = {c: model.predict_quantiles(test, q, of=c) for c in numbers(train)}
    intervals = {c: model.predict_interval(test, of=c, coverage=COVERAGE) for c in numbers(train)}
    return Filled(cells, spread, intervals, seconds)


def crps(members: np.ndarray, truth: np.ndarray, *, drawn: bool) -> float:
    """Return the mean CRPS of ensembles, rows × members; of few draws without bias (Ferro, 2014)."""
    e, m = np.sort(members, axis=1), members.shape[1]
    spread = (e * (2 * np.arange(1, m + 1) - m - 1)).sum(axis=1) / (m * (m - drawn))
    return float(np.mean(np.abs(e - truth[:, None]).mean(axis=1) - spread))


def fill(train: Frame, test: Frame, *, by: Callable[[Frame, Frame], Filled]) -> Measures:
    """Return how well hidden cells are filled in: each measure is the mean over columns."""
    lacking, _ = hide(train, 1)
    asked, mask = hide(test, 2)
    filled = by(lacking, asked)
    found: dict[str, list[float]] = {each: [] for each in ("normalised RMSE", "CRPS", "coverage", "category accuracy")}
    for j, c in enumerate(test):
        hidden = mask[:, j]
        if hidden.sum() < 3:
            continue
        truth, cells = test[c].to_numpy()[hidden], filled.cells[c].to_numpy()[hidden]
        if not is_number(test, c):
            found["category accuracy"].append(np.mean(truth == cells))
            continue
        scale = train[c].std(ddof=0)
        found["normalised RMSE"].append(np.sqrt(np.mean((truth - cells.astype(float)) ** 2)) / scale)
        found["CRPS"].append(crps(filled.spread[c][hidden], truth, drawn=filled.drawn) / scale)
        if c in filled.intervals:
            low, high = filled.intervals[c][hidden].T
            found["coverage"].append(np.mean((low <= truth) & (truth <= high)))
    return {what: float(np.mean(each)) for what, each in found.items() if each} | {"seconds": filled.seconds}


# Drawing rows


def draw_likely(train: Frame, n: int, seed: int) -> Frame:
    return fitted(train).sample(n, seed).to_pandas()


def draw(train: Frame, test: Frame, *, by: Callable[[Frame, int, int], Frame]) -> Measures:
    start = time.perf_counter()
    drawn = by(train, len(train), 0)[list(train)]
    seconds = time.perf_counter() - start
    drawn = pd.DataFrame({c: drawn[c].astype(float if is_number(train, c) else object) for c in train})
    found = {"C2ST": told_apart(test, drawn), "C2ST, snapped": told_apart(test, snapped(train, drawn))}
    return found | trained_on_drawn(drawn, test) | {"seconds": seconds}


def snapped(train: Frame, drawn: Frame) -> Frame:
    """Return rows in which each number is the nearest of those that were learned."""
    found = drawn.copy()
    for c in numbers(train):
        values = np.unique(train[c].dropna())
        x = drawn[c].to_numpy()
        at = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
        nearest = np.where(x - values[at - 1] < values[at] - x, values[at - 1], values[at])
        found[c] = np.where(np.isnan(x), np.nan, nearest)
    return found


def told_apart(real: Frame, drawn: Frame) -> float:
    """Return the AUC of LightGBM that tells drawn rows from real ones. Both lack the cells that either lacks."""
    a, b = codes(real, drawn)
    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    gone = np.isnan(a) | np.isnan(b)
    a[gone] = b[gone] = np.nan
    X, y, p = np.vstack([a, b]), np.repeat([1, 0], n), np.zeros(2 * n)
    categories = [j for j, c in enumerate(real) if not is_number(real, c)]
    for learn, ask in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        p[ask] = _boosting().fit(X[learn], y[learn], categorical_feature=categories).predict_proba(X[ask])[:, 1]
    return float(roc_auc_score(y, p))


def trained_on_drawn(drawn: Frame, real: Frame) -> Measures:
    """Return the accuracy on real rows of LightGBM trained on drawn ones."""
    a, b = codes(drawn, real)
    a, b = (rows[~np.isnan(rows[:, -1])] for rows in (a, b))
    if is_number(real, real.columns[-1]) or len(np.unique(a[:, -1])) < 2:
        return {}
    categories = [j for j, c in enumerate(real.columns[:-1]) if not is_number(real, c)]
    model = _boosting().fit(a[:, :-1], a[:, -1], categorical_feature=categories)
    return {"TSTR": float((model.predict(b[:, :-1]) == b[:, -1]).mean())}


def _boosting() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=100, num_leaves=15, learning_rate=0.1, min_child_samples=10, verbose=-1, n_jobs=1
    )


# Surprise


def cells(train: Frame, test: Frame) -> Measures:
    """Return how often a cell that was replaced by another row's different one is the most surprising of its row."""
    model = fitted(train)
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
    surprise = model.surprise(changed.astype(dict.fromkeys(numbers(part), float))).cells
    found = np.where(np.isnan(surprise), -np.inf, surprise).argmax(axis=1) == which
    return {"found": float(found[which >= 0].mean())}


def odd_likely(train: Frame, test: Frame) -> np.ndarray:
    return -likely.Model(progress=False).fit(train).log_density(test)


def outliers(folder: Path, name: str, split: int, missing: float, by: Callable[[Frame, Frame], np.ndarray]) -> Measures:
    """Fit on half of the largest class, and tell its other half from all other classes."""
    frame = pd.read_parquet(folder / f"{name}.parquet")
    y = frame.pop("target").astype(str)
    X = frame.astype(float)
    usual = np.flatnonzero(y == y.value_counts().index[0])
    rng = np.random.default_rng(split)
    rng.shuffle(usual)
    train, rest = usual[: len(usual) // 2], np.setdiff1d(np.arange(len(X)), usual[: len(usual) // 2])
    rest = rng.permutation(rest)[:10_000]
    odd = (y.iloc[rest] != y.value_counts().index[0]).to_numpy()
    X = X.mask(rng.random(X.shape) < missing)
    X = X.loc[:, X.iloc[train].notna().any()]
    start = time.perf_counter()
    score = by(X.iloc[train], X.iloc[rest])
    return {"AUC": float(roc_auc_score(odd, score)), "seconds": time.perf_counter() - start}


# What is measured, and what it comes to


def jobs(part: str) -> dict[str, Callable[[Frame, Frame], Measures]]:
    """Return who answers a part of the benchmark, and how that is measured on two halves of a table."""
    if part == "density":
        return {who: partial(density, who=who) for who in (OURS, "adversarial forest", "independent columns")}
    if part == "fill":
        return {who: partial(fill, by=by) for who, by in ({OURS: fill_likely} | FILL).items()}
    if part == "draw":
        return {who: partial(draw, by=by) for who, by in ({OURS: draw_likely} | DRAW).items()}
    return {OURS: cells}


def work(settings: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], Measures]]]:
    """Yield what is to be measured: its key, and what measures it."""
    folder, rows = settings.folder, settings.rows
    for part, split in ((part, split) for part in settings.only.split(",") for split in range(settings.splits)):
        if part == "outliers":
            for name in settings.names or ONE_CLASS:
                for missing, (who, by) in (
                    (m, each) for m in (0.0, 0.1) for each in ({OURS: odd_likely} | OUTLIERS).items()
                ):
                    key = {"part": f"{part}, {missing:.0%} missing", "table": name, "split": split, "who": who}
                    yield key, partial(outliers, folder, name, split, missing, by)
            continue
        for name in settings.names or NAMES:
            for who, measure in jobs(part).items():
                key = {"part": part, "table": name, "split": split, "rows": rows, "who": who}
                yield key, lambda name=name, split=split, measure=measure: measure(*read(folder, name, rows, split))


def main() -> None:
    """Measure what has not been measured yet, and print what all comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--who", default="")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--out", type=Path)
    settings = parser.parse_args()
    kept = [json.loads(line) for line in settings.out.open()] if settings.out and settings.out.exists() else []
    known = {tuple(line["key"].items()): line for line in kept}
    found = []
    for key, measure in work(settings):
        if settings.who and key["who"] not in settings.who.split(","):
            continue
        line = known.get(tuple(key.items()))
        if line is None:
            line = {"key": key}
            try:
                line["measures"] = measure()
            except Exception:  # of a peer: said, and kept
                line["failed"] = traceback.format_exc(limit=-1)
            if settings.out:
                with settings.out.open("a") as out:
                    out.write(json.dumps(line) + "\n")
            told = line.get("failed") or ", ".join(f"{what} {x:.3f}" for what, x in line["measures"].items())
            print(*key.values(), told, flush=True)
        found.append(line)
    report(found)


def report(lines: list[dict[str, Any]]) -> None:
    """Print the mean of each measure over tables, its spread between splits, and on how many tables ours is better."""
    measured = [line["key"] | {"what": what, "x": x} for line in lines for what, x in line.get("measures", {}).items()]
    for (part, what), own in pd.DataFrame(measured).groupby(["part", "what"], sort=False):
        by_split = own.pivot_table(index="table", columns=["who", "split"], values="x", sort=False).T.groupby(
            "who", sort=False
        )
        means, spread = by_split.mean().T, by_split.std().T.mean().fillna(0.0)
        print(f"\n{part}: {what}, mean of {len(means)} tables ± standard deviation between splits")
        for who in means:
            print(f"  {who:20} {means[who].mean():8.3f} ± {spread[who]:.3f}", end="")
            if OURS in means and who != OURS:
                print(compared(what, means[[OURS, who]].dropna()), end="")
            print()
    for line in lines:
        if "failed" in line:
            print("failed:", *line["key"].values(), line["failed"].strip().splitlines()[-1])


def compared(what: str, both: pd.DataFrame) -> str:
    """Return how ours compares with a peer, tables × 2, on the tables that both have."""
    ours, theirs = both.to_numpy().T
    if what in SHOWN or not len(both):
        return ""
    if what == "seconds":
        return f"   {np.exp(np.mean(np.log(np.maximum(theirs, 1e-3) / np.maximum(ours, 1e-3)))):.1f} × ours"
    better = (theirs - ours) * (1 if what in LESS else -1)
    error = better.std(ddof=1) / np.sqrt(len(better)) if len(better) > 1 else 0.0
    return f"   ours is better by {better.mean():.3f} ± {error:.3f} (s.e.), on {(better > 0).sum()} of {len(better)}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
