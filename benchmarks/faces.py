"""The faces of likely.sklearn: what they lose to the native estimators, and what they gain on scikit-learn's classes.

python benchmarks/faces.py
"""

from typing import Any

import numpy as np
import sklearn.discriminant_analysis
import sklearn.naive_bayes
from compare import classes_of_rows, compare, header
from sklearn.datasets import load_iris
from sparse_counts import bags

import likely.sklearn
from likely import GaussianDiscriminant, NaiveBayes


def both(name: str, face: Any, other: Any, X: Any, y: Any, **how: int) -> None:
    """Compare fitting and predicting."""
    compare(f"{name} fit", lambda: face.fit(X, y), lambda: other.fit(X, y), **how)
    compare(f"{name} predict", lambda: face.predict(X), lambda: other.predict(X), **how)


def main() -> None:
    X, y = classes_of_rows()
    counts, labels = bags()
    binary = X[:, :20] > 0
    codes = np.floor(np.abs(X[:, :20])).astype(np.int64)
    jobs = [
        ("GaussianNB", NaiveBayes(), X, y),
        ("MultinomialNB", NaiveBayes("multinomial"), counts, labels),
        ("ComplementNB", NaiveBayes("complement", priors="uniform"), counts, labels),
        ("BernoulliNB", NaiveBayes("bernoulli"), binary, y),
        ("CategoricalNB", NaiveBayes("categorical"), codes, y),
        ("LinearDiscriminantAnalysis", GaussianDiscriminant(tied=True, shrinkage=0), X, y),
        ("QuadraticDiscriminantAnalysis", GaussianDiscriminant(shrinkage=0), X, y),
    ]
    header("faces, 1,000,000 × 50 (counts 50,000 × 300,000)", "native")
    for name, native, rows, classes in jobs:
        # Nearly the same code on both sides: only many repeats tell a few percent from noise.
        both(name, getattr(likely.sklearn, name)(), native, rows, classes, repeats=21)
    header("iris, 150 × 4, 3 classes")
    X, y = load_iris(return_X_y=True)
    for name, *_ in jobs:
        module = sklearn.discriminant_analysis if "Analysis" in name else sklearn.naive_bayes
        both(name, getattr(likely.sklearn, name)(), getattr(module, name)(), X, y, times=200)


if __name__ == "__main__":
    main()
