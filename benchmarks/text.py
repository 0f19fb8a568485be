"""Texts to counts beside scikit-learn's vectorizers: time, bytes a second, peak memory.

python benchmarks/text.py DIRECTORY [MEGABYTES]

The directory has Parquet files with the columns ``text`` and ``target``. With a number of megabytes, all of them
repeated, in random order, up to that size, come last.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.feature_extraction.text as upstream
from compare import compare, header, seconds
from memory import peak_of

import likely
import likely.sklearn as faces
from likely.statistics import Assignment
from likely.text import Analyzer, collect_words


def corpus(paths: list[Path], megabytes: float) -> tuple[list[str], list[str]]:
    """Read texts and labels; repeat them in random order up to so many megabytes, if any."""
    tables = [pq.read_table(path, columns=["text", "target"]) for path in paths]
    texts = [text for table in tables for text in table["text"].to_pylist()]
    labels = [str(label) for table in tables for label in table["target"].to_pylist()]
    if megabytes:
        share = megabytes * 1e6 / sum(map(len, texts))
        order = np.random.default_rng(0).permutation(len(texts) * (int(share) + 1))[: int(len(texts) * share)]
        texts, labels = ([column[i % len(column)] for i in order] for column in (texts, labels))
    return texts, labels


def peak(module: str, paths: list[Path], megabytes: float) -> float:
    """Return the peak memory beyond the texts of a first fit, for a process of its own."""
    texts, _ = corpus(paths, megabytes)
    vectorizer = import_module(module).CountVectorizer()
    vectorizer.fit_transform(texts[:10])
    return peak_of(lambda: vectorizer.fit_transform(texts))


def measure(name: str, paths: list[Path], megabytes: float, repeats: int) -> None:
    texts, labels = corpus(paths, megabytes)
    column = pa.array(texts, type=pa.large_string())
    size = column.nbytes / 1e6
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    header(f"{name}, {len(texts):,} texts, {size:.1f} MB")
    for title, ours, theirs in [
        ("CountVectorizer", faces.CountVectorizer(), upstream.CountVectorizer()),
        (
            "  of one and two words",
            faces.CountVectorizer(ngram_range=(1, 2)),
            upstream.CountVectorizer(ngram_range=(1, 2)),
        ),
        ("TfidfVectorizer", faces.TfidfVectorizer(), upstream.TfidfVectorizer()),
        ("HashingVectorizer", faces.HashingVectorizer(), upstream.HashingVectorizer()),
    ]:
        if size > 100 and title != "CountVectorizer":
            continue  # scikit-learn would take minutes
        compare(title, lambda m=ours: m.fit_transform(texts), lambda m=theirs: m.fit_transform(texts), repeats)
        if title == "CountVectorizer":
            modules = ("likely.sklearn", "sklearn.feature_extraction.text")
            with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone:
                a, b = (alone.submit(peak, module, paths, megabytes).result() for module in modules)
            print(f"{'  peak memory beyond the texts':<52}{a:>9.0f} MB{b:>9.0f} MB{b / a:>9.1f} ×")
    assignment = Assignment(np.arange(codes.max() + 1), codes)
    for threads in (1, None):
        likely.set_threads(threads)
        for unit, ngrams in [("words of two", (1, 1)), ("words and punctuation", (1, 1)), ("words of two", (1, 2))]:
            job = Analyzer(unit, ngrams)
            best = min(seconds(lambda job=job: collect_words(job, column, assignment)) for _ in range(max(repeats, 3)))
            rate = f"counts of classes, {unit} {ngrams}, {threads or 'all'} threads"
            print(f"{rate:<52}{size / best:>7.0f} MB/s")


def main(directory: str, megabytes: str = "0") -> None:
    columns = {"text", "target"}
    paths = [p for p in sorted(Path(directory).glob("*.parquet")) if columns <= set(pq.read_schema(p).names)]
    for path in paths:
        measure(path.stem, [path], 0.0, repeats=3)
    if float(megabytes):
        measure("all of them, repeated", paths, float(megabytes), repeats=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
