"""Cells hidden only at prediction, completely at random: log-loss and accuracy beside LightGBM and the class shares.

python benchmarks/hidden_cells.py DIRECTORY [NAME …] [--peers FILE]

Models are fitted on the rows as they are; then shares of the cells of the rows to be predicted are hidden. The
directory holds Parquet files with the label in the column `target`. LightGBM's results are kept in FILE, since they
take long.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from tables import gradient_boosting, read

from likely import Classifier

NAMES = ["vehicle", "satimage", "phoneme", "wine_quality", "adult", "credit_approval", "eucalyptus", "autos"]
HIDDEN = (0.0, 0.1, 0.3)


def with_hidden(X: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Return the rows with so large a share of their cells missing."""
    return X.mask(np.random.default_rng(seed).random(X.shape) < share, np.nan)


def likely(X: pd.DataFrame, y: Any, asked: list[pd.DataFrame]) -> tuple[list[Any], list[float]]:
    """Return the probabilities of each of several tables, and the seconds that each took."""
    model, found, seconds = Classifier().fit(X, y), [], []
    for new in asked:
        began = time.perf_counter()
        found.append(model.predict_proba(new))
        seconds.append(time.perf_counter() - began)
    return found, seconds


def boosting(X: pd.DataFrame, y: Any, asked: list[pd.DataFrame]) -> tuple[list[Any], list[float]]:
    """Return the same of LightGBM, fitted once; its seconds are not told apart."""
    found = gradient_boosting(X, y, pd.concat(asked, ignore_index=True))
    return np.split(found, len(asked)), [0.0] * len(asked)


def class_shares(_: pd.DataFrame, y: Any, asked: list[pd.DataFrame]) -> tuple[list[Any], list[float]]:
    """Return what is known before a cell is read."""
    shares = np.bincount(y) / len(y)
    return [np.tile(shares, (len(new), 1)) for new in asked], [0.0] * len(asked)


METHODS = {"class shares": class_shares, "LightGBM": boosting, "likely": likely}


def measure(method: Any, X: pd.DataFrame, y: Any) -> list[list[float]]:
    """Return mean accuracy, log-loss and seconds of prediction, for every share of hidden cells."""
    results = []
    for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
        asked = [with_hidden(X.iloc[test], share, fold) for share in HIDDEN]
        found, seconds = method(X.iloc[train], y[train], asked)
        line = []
        for p, took in zip(found, seconds, strict=True):
            true = np.maximum(p[np.arange(len(test)), y[test]], 1e-15)
            line.append([float(np.mean(p.argmax(axis=1) == y[test])), float(-np.log(true).mean()), took])
        results.append(line)
    return np.mean(results, axis=0).tolist()


def show(name: str, lines: dict[str, list[list[float]]]) -> None:
    for i, share in enumerate(HIDDEN):
        print(f"{name if i == 0 else '':20}{share:6.0%}", end="")
        for line in lines.values():
            accuracy, loss, seconds = line[i]
            print(f"{accuracy:12.3f}{loss:7.3f}{seconds:8.3f}", end="")
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peers", type=Path)
    given = parser.parse_args()
    kept = json.loads(given.peers.read_text()) if given.peers and given.peers.exists() else {}
    warnings.filterwarnings("ignore", module="sklearn|lightgbm")
    print(f"{'':20}{'hidden':>6}" + "".join(f"{method:>27}" for method in METHODS))
    print(f"{'':26}" + f"{'acc.':>12}{'loss':>7}{'s':>8}" * len(METHODS))
    tables = []
    for name in given.names or NAMES:
        data = read(given.directory / f"{name}.parquet")
        if data is None:
            continue
        lines = {}
        for method, run in METHODS.items():
            key = f"{name}/{method}"
            lines[method] = (kept.get(key) if method != "likely" else None) or measure(run, *data)
            if given.peers and method != "likely":
                kept[key] = lines[method]
                given.peers.write_text(json.dumps(kept))
        tables.append(lines)
        show(name, lines)
    show("mean", {method: np.mean([lines[method] for lines in tables], axis=0).tolist() for method in METHODS})


if __name__ == "__main__":
    main()
