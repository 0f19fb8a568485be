"""Gaussian discriminants on a million rows × 50 columns × 10 classes, beside scikit-learn's LDA and QDA.

python benchmarks/discriminant.py
"""

from compare import classes_of_rows, compare, header
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

from likely import GaussianDiscriminant


def main() -> None:
    X, y = classes_of_rows()
    header("full covariance, 1,000,000 × 50, 10 classes")
    linear = GaussianDiscriminant(tied=True, shrinkage=0)
    for solver in ("lsqr", "eigen", "svd"):
        peer = LinearDiscriminantAnalysis(solver=solver)
        compare(f"LDA fit, solver {solver}", lambda: linear.fit(X, y), lambda peer=peer: peer.fit(X, y), repeats=3)
    compare("LDA predict", lambda: linear.predict(X), lambda: peer.predict(X))
    compare("LDA predict_proba", lambda: linear.predict_proba(X), lambda: peer.predict_proba(X), repeats=3)
    quadratic = GaussianDiscriminant(shrinkage=0)
    for solver in ("eigen", "svd"):
        peer = QuadraticDiscriminantAnalysis(solver=solver)
        compare(f"QDA fit, solver {solver}", lambda: quadratic.fit(X, y), lambda peer=peer: peer.fit(X, y), repeats=3)
    compare("QDA predict", lambda: quadratic.predict(X), lambda: peer.predict(X), repeats=3)
    row = X[:1]
    compare(
        "QDA predict_proba of one row", lambda: quadratic.predict_proba(row), lambda: peer.predict_proba(row), times=300
    )
    shrunk, peer = GaussianDiscriminant(tied=True, shrinkage="ledoit-wolf"), LinearDiscriminantAnalysis("lsqr", "auto")
    compare("LDA fit, Ledoit–Wolf", lambda: shrunk.fit(X, y), lambda: peer.fit(X, y), repeats=3)


if __name__ == "__main__":
    main()
