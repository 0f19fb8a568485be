"""Kernels are compiled for several kinds of machines. Each copy is asked the same, in a process of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest

ASKED = """
import sys

import numpy as np

from likely import GaussianDiscriminant, KMeans, Mixture, NaiveBayes, TextClassifier

rng = np.random.default_rng(0)
answers = {}
for columns, kind in [(3, np.float64), (40, np.float32), (130, np.float32), (110, np.float64)]:
    y = rng.integers(0, 3, 900)
    X = (rng.normal(size=(900, columns)) + 0.3 * y[:, None]).astype(kind)
    gaps = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    name = f"{columns} {X.dtype}"
    for k in (3, 39, 70):
        found = KMeans(k, start="rows", random_state=0, max_iterations=5).fit(X)
        answers[f"k-means {k} {name}"] = found.labels_
        answers[f"k-means inertia {k} {name}"] = found.inertia_
    answers[f"k-means gaps {name}"] = KMeans(7, random_state=0, max_iterations=5).fit(gaps).labels_
    for covariance in ("diagonal", "full"):
        for rows in (X, gaps) if columns < 100 or covariance == "diagonal" else (X,):
            model = Mixture(3, covariance=covariance, start=y, max_iterations=4, tolerance=0).fit(rows)
            answers[f"mixture {covariance} {name} {rows is X}"] = model.predict_log_proba(rows)
    answers[f"naive Bayes {name}"] = NaiveBayes().fit(gaps, y).predict_log_proba(gaps)
    answers[f"discriminant {name}"] = GaussianDiscriminant(tied=False).fit(X, y).predict_log_proba(gaps)
texts = [" ".join(rng.choice(list("abcdefghij"), 12)) for _ in range(200)]
labels = [text[0] < "e" for text in texts]
answers["texts"] = TextClassifier().fit(texts, labels).predict_log_proba(texts)
np.savez(sys.argv[1], **answers)
"""


def asked(path, level):
    environment = {**os.environ, "LIKELY_SIMD": level, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", ASKED, str(path)], check=True, env=environment)
    with np.load(path) as file:
        return dict(file)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return asked(tmp_path_factory.mktemp("plain") / "answers.npz", "none")


@pytest.mark.parametrize("level", ["avx2", "avx512"])
def test_every_copy_of_a_kernel_answers_alike(level, plain, tmp_path):
    fast = asked(tmp_path / "answers.npz", level)
    assert fast.keys() == plain.keys()
    for name, want in plain.items():
        if want.dtype.kind == "i":  # labels follow from a definition in float64, to the last bit
            np.testing.assert_array_equal(fast[name], want, err_msg=name)
        else:
            np.testing.assert_allclose(fast[name], want, rtol=1e-7, atol=1e-7, err_msg=name)


def test_an_unknown_level_is_refused():
    environment = {**os.environ, "LIKELY_SIMD": "AVX2"}
    done = subprocess.run(
        [sys.executable, "-c", "from likely import native"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "expected LIKELY_SIMD to be one of none, avx2, avx512" in done.stderr
