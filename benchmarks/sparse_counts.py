"""Sparse counts, 50,000 rows × 300,000 words, 0.02 % filled, 20 classes, beside scikit-learn's MultinomialNB.

python benchmarks/sparse_counts.py
"""

import numpy as np
from compare import compare, header
from scipy.sparse import csr_matrix
from sklearn.naive_bayes import MultinomialNB

from likely import NaiveBayes


def bags(rows: int = 50_000, words: int = 300_000, filled: float = 0.0002, classes: int = 20):
    """Make bags of words whose frequencies fall like those of a language."""
    rng = np.random.default_rng(0)
    per_row = rng.poisson(words * filled, rows)
    starts = np.concatenate([[0], np.cumsum(per_row)])
    indices = np.minimum((words * rng.random(starts[-1]) ** 3).astype(np.int32), words - 1)
    counts = csr_matrix((rng.poisson(0.3, starts[-1]) + 1.0, indices, starts), shape=(rows, words))
    counts.sum_duplicates()
    return counts, rng.integers(0, classes, rows)


def main() -> None:
    X, y = bags()
    header(f"sparse counts, 50,000 × 300,000, {X.nnz:,} cells, 20 classes")
    ours, peer = NaiveBayes("multinomial"), MultinomialNB()
    compare("fit", lambda: ours.fit(X, y), lambda: peer.fit(X, y))
    compare("predict", lambda: ours.predict(X), lambda: peer.predict(X))
    compare("predict_proba", lambda: ours.predict_proba(X), lambda: peer.predict_proba(X))


if __name__ == "__main__":
    main()
