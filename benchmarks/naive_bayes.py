"""Naive Bayes on a million rows × 50 columns × 10 classes, beside GaussianNB and the time to read the memory.

python benchmarks/naive_bayes.py
"""

import numpy as np
from compare import classes_of_rows, compare, header
from sklearn.naive_bayes import GaussianNB

from likely import NaiveBayes


def main() -> None:
    X, y = classes_of_rows()
    ours, peer = NaiveBayes(), GaussianNB()
    header("naive Bayes, 1,000,000 × 50, 10 classes")
    compare("fit", lambda: ours.fit(X, y), lambda: peer.fit(X, y))
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    compare("fit with 5 % NaN (peer: without)", lambda: ours.fit(holes, y), lambda: peer.fit(X, y))
    ours.fit(X, y)
    compare("predict", lambda: ours.predict(X), lambda: peer.predict(X))
    compare("predict with 5 % NaN (peer: without)", lambda: ours.predict(holes), lambda: peer.predict(X), repeats=3)
    compare("predict_proba", lambda: ours.predict_proba(X), lambda: peer.predict_proba(X), repeats=3)
    row = X[:1]
    compare("predict_proba of one row", lambda: ours.predict_proba(row), lambda: peer.predict_proba(row), times=500)
    single = X.astype(np.float32)
    compare("fit, float32", lambda: ours.fit(single, y), lambda: peer.fit(single, y), repeats=3)
    compare("predict, float32", lambda: ours.predict(single), lambda: peer.predict(single), repeats=3)
    columns_first = np.asfortranarray(X)
    compare("fit, Fortran order", lambda: ours.fit(columns_first, y), lambda: peer.fit(columns_first, y), repeats=3)
    header("beside reading the memory", "X.sum()")
    compare("fit", lambda: ours.fit(X, y), lambda: X.sum())
    header("float32 beside float64", "float64")
    compare("fit", lambda: ours.fit(single, y), lambda: ours.fit(X, y))
    compare("predict", lambda: ours.predict(single), lambda: ours.predict(X))


if __name__ == "__main__":
    main()
