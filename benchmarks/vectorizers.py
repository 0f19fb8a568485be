"""Texts to counts beside scikit-learn's vectorizers: time, bytes a second, peak memory.

python benchmarks/vectorizers.py DIRECTORY [MEGABYTES]

The directory, and what a number of megabytes adds, are as for `texts.py`.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import sklearn.feature_extraction.text as upstream
from compare import compare, header, seconds
from texts import peak, together, with_texts

import likely
import likely.sklearn as faces
from likely.statistics import Assignment
from likely.text import Analyzer, collect_words


def measure(name: str, directory: Path, sets: list[str], megabytes: float, repeats: int) -> None:
    source = directory, sets, megabytes
    texts, labels, _, _ = together(*source)
    column = pa.array(texts, type=pa.large_string())
    size = column.nbytes / 1e6
    header(f"{name}, {len(texts):,} texts, {size:.1f} MB")
    for title, vectorizer, options in [
        ("CountVectorizer", "CountVectorizer", {}),
        ("  of one and two words", "CountVectorizer", {"ngram_range": (1, 2)}),
        ("TfidfVectorizer", "TfidfVectorizer", {}),
        ("HashingVectorizer", "HashingVectorizer", {}),
    ]:
        if size > 100 and title != "CountVectorizer":
            continue  # scikit-learn would take minutes
        ours, theirs = (getattr(module, vectorizer)(**options) for module in (faces, upstream))
        compare(title, lambda m=ours: m.fit_transform(texts), lambda m=theirs: m.fit_transform(texts), repeats)
        if title == "CountVectorizer":
            a, b = (peak(module.CountVectorizer().fit_transform, *source) for module in (faces, upstream))
            print(f"{'  peak memory beyond the texts':<52}{a:>9.0f} MB{b:>9.0f} MB{b / a:>9.1f} ×")
    classes, codes = np.unique(labels, return_inverse=True)
    assignment = Assignment(np.arange(len(classes)), codes.astype(np.int32))
    for threads in (1, None):
        likely.set_threads(threads)
        for unit, ngrams in [("words of two", (1, 1)), ("words and punctuation", (1, 1)), ("words of two", (1, 2))]:
            job = Analyzer(unit, ngrams)
            best = min(seconds(lambda job=job: collect_words(job, column, assignment)) for _ in range(max(repeats, 3)))
            rate = f"counts of classes, {unit} {ngrams}, {threads or 'all'} threads"
            print(f"{rate:<52}{size / best:>7.0f} MB/s")


def main(directory: str, megabytes: str = "0") -> None:
    names = with_texts(Path(directory))
    for name in names:
        measure(name, Path(directory), [name], 0.0, repeats=3)
    if float(megabytes):
        measure("all of them, repeated", Path(directory), names, float(megabytes), repeats=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
