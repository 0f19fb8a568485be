"""Few labels, many rows: learning from rows with a label alone, and from all of them.

    python benchmarks/labels.py FOLDER NAME... [--share 0.01] [--seeds 3]

FOLDER has NAME.parquet with the label in "target", and texts in "text" or columns of any kind. Of at most 20,000 rows
a quarter is asked about; of the others a share of each class has a label, two at least. Shown are accuracy and log-loss
without the other rows, with them if that is chosen ("auto"), and the weight that was chosen; means over the seeds.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from compare import timed
from sklearn.metrics import log_loss

from likely import Classifier, GaussianDiscriminant, NaiveBayes, TextClassifier

MOST, LEAST = 20_000, 2
OF_TEXTS: dict[str, Callable[..., Any]] = {
    "TextClassifier(1)": lambda **more: TextClassifier(1, **more),
    "multinomial": lambda **more: TextClassifier(calibrate=False, ngrams=1, **more),
}
OF_TABLES: dict[str, Callable[..., Any]] = {"Classifier()": Classifier, "NaiveBayes()": NaiveBayes}
OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **OF_TABLES,
    "discriminant, tied": lambda **more: GaussianDiscriminant(tied=True, **more),
}


def split(y: pd.Series, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows to learn from, their labels as far as they are known, and the rows to ask about."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(y))[:MOST]
    asked, learned = order[: len(order) // 4], order[len(order) // 4 :]
    labels = y.to_numpy().astype(str)
    known = np.full(len(learned), None, dtype=object)
    for label in np.unique(labels[learned]):
        rows = np.flatnonzero(labels[learned] == label)
        rows = rows[: max(round(share * len(rows)), LEAST)]
        known[rows] = label
    return learned, known, asked


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"{'':<40}{'labels':>8}{'alone':>16}{'auto':>16}{'seconds':>9}  weights")
    for name in given.names:
        frame = pd.read_parquet(given.folder / f"{name}.parquet")
        y = frame.pop("target")
        X = frame.get("text", frame)
        numbers = "text" not in frame and all(kind.kind in "fiu" for kind in frame.dtypes)
        ways = OF_TEXTS if "text" in frame else OF_NUMBERS if numbers else OF_TABLES
        for way, make in ways.items():
            found: dict[Any, list[tuple[float, float]]] = {0: [], "auto": []}
            weights, seconds = [], []
            for seed in range(given.seeds):
                learned, known, asked = split(y, given.share, seed)
                truth = y.to_numpy().astype(str)[asked]
                for unlabelled, results in found.items():
                    taken, model = timed(
                        lambda make=make, unlabelled=unlabelled, learned=learned, known=known, X=X: make(
                            unlabelled=unlabelled
                        ).fit(X.iloc[learned], known)
                    )
                    p = model.predict_proba(X.iloc[asked])
                    right = float(np.mean(model.classes_[p.argmax(axis=1)] == truth))
                    results.append((right, log_loss(truth, np.clip(p, 1e-15, 1), labels=model.classes_)))
                weights.append(model.unlabelled_)
                seconds.append(taken)
            shown = "".join("{:>8.3f} /{:6.3f}".format(*np.mean(results, axis=0)) for results in found.values())
            labels = sum(label is not None for label in known)
            print(f"{name + ', ' + way:<40}{labels:>8}{shown}{np.median(seconds):>9.1f}  {weights}", flush=True)


if __name__ == "__main__":
    main()
