"""Accuracy and log-loss on real tables with holes, beside scikit-learn's recipes and LightGBM, in 5 stratified folds.

python benchmarks/tables.py DIRECTORY [NAME …] [--peers FILE]

The directory holds Parquet files with the label in the column `target`. Without names: all of them that have columns
other than one of text. The peers' results are kept in FILE, since they take long.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likely import Classifier

MOST_ROWS = 12_000
FEWEST_ROWS_OF_A_CLASS = 5


def read(path: Path) -> tuple[pd.DataFrame, Any] | None:
    """Return columns and codes of classes, at most so many rows, without classes too rare for the folds."""
    frame = pd.read_parquet(path)
    if "target" not in frame or "text" in frame:
        return None
    frame = frame[frame.target.notna()]
    y = pd.factorize(frame.pop("target").astype(str), sort=True)[0]
    for rows in (len(y), MOST_ROWS):
        kept = np.sort(np.random.default_rng(0).permutation(len(y))[:rows]) if len(y) > rows else np.arange(len(y))
        kept = kept[np.bincount(y[kept])[y[kept]] >= FEWEST_ROWS_OF_A_CLASS]
        frame, y = frame.iloc[kept], y[kept]
    for name in frame:
        if frame[name].dtype.kind not in "iuf":
            there = frame[name].notna()
            frame[name] = frame[name].astype(object).where(there, None).map(str, na_action="ignore").astype(object)
        else:
            frame[name] = frame[name].astype(np.float64)
    return frame.reset_index(drop=True), np.unique(y, return_inverse=True)[1]


def likely(X: pd.DataFrame, y: Any, new: pd.DataFrame, *, forest: bool = False) -> Any:
    return Classifier(forest=forest).fit(X, y).predict_proba(new)


def recipe(model: Any, X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:
    """Impute, standardise, encode, and fit."""
    X = X.loc[:, X.notna().any()]
    named = [name for name in X if X[name].dtype == object]
    # The imputer of scikit-learn knows NaN, not None.
    X, new = (
        part.assign(**{name: part[name].where(part[name].notna(), np.nan) for name in named}) for part in (X, new)
    )
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=not isinstance(model, GaussianNB))
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder)
    columns = [("numbers", numbers, [name for name in X if name not in named]), ("categories", categories, named)]
    return make_pipeline(ColumnTransformer(columns), model).fit(X, y).predict_proba(new)


def gradient_boosting(X: pd.DataFrame, y: Any, new: pd.DataFrame) -> Any:
    both = pd.concat([X, new], ignore_index=True)
    both.columns = [f"column {j}" for j in range(both.shape[1])]
    for name in both:
        if both[name].dtype == object:
            both[name] = both[name].astype("category")
    model = lightgbm.LGBMClassifier(verbose=-1).fit(both.iloc[: len(X)], y)
    return model.predict_proba(both.iloc[len(X) :])


def measure(method: Callable[..., Any], X: pd.DataFrame, y: Any) -> list[float]:
    """Return mean accuracy, log-loss and seconds."""
    results = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        began = time.perf_counter()
        p = method(X.iloc[train], y[train], X.iloc[test])
        seconds = time.perf_counter() - began
        p = np.nan_to_num(p)  # a model that has no answer
        true = np.maximum(p[np.arange(len(test)), y[test]], 1e-15)
        results.append([float(np.mean(p.argmax(axis=1) == y[test])), float(-np.log(true).mean()), seconds])
    return np.mean(results, axis=0).tolist()


METHODS = {
    "likely": likely,
    "likely with a forest": partial(likely, forest=True),
    "GaussianNB": partial(recipe, GaussianNB()),
    "logistic regression": partial(recipe, LogisticRegression(max_iter=1000)),
    "LightGBM": gradient_boosting,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peers", type=Path)
    given = parser.parse_args()
    kept = json.loads(given.peers.read_text()) if given.peers and given.peers.exists() else {}
    names = given.names or sorted(path.stem for path in given.directory.glob("*.parquet"))
    warnings.filterwarnings("ignore", module="sklearn|lightgbm")
    print(f"{'':24}{'rows':>6}" + "".join(f"{method:>26}" for method in METHODS))
    print(f"{'':30}" + f"{'acc.':>12}{'loss':>7}{'s':>7}" * len(METHODS))
    table = []
    for name in names:
        if (data := read(given.directory / f"{name}.parquet")) is None:
            continue
        line = []
        for method, run in METHODS.items():
            key = f"{name}/{method}"
            result = kept.get(key) or measure(run, *data)
            line.append(result)
            if given.peers and not method.startswith("likely"):
                kept[key] = result
                given.peers.write_text(json.dumps(kept))
        table.append(line)
        show(name, len(data[1]), line)
    show("mean", len(table), np.mean(table, axis=0).tolist())


def show(name: str, rows: int, line: list[list[float]]) -> None:
    print(f"{name:24}{rows:6}" + "".join(f"{a:12.3f}{loss:7.3f}{s:7.2f}" for a, loss, s in line), flush=True)


if __name__ == "__main__":
    main()
