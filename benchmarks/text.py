"""Texts to counts beside scikit-learn's vectorizers: time, bytes a second, peak memory.

python benchmarks/text.py DIRECTORY [MEGABYTES]

The directory has Parquet files with the columns ``text`` and ``target``. With a number of megabytes, all of them
repeated, in random order, up to that size, come last.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.feature_extraction.text as upstream
from compare import compare, header, seconds
from memory import peak_of

import likely
import likely.sklearn as faces
from likely.text import Analyzer


def texts_of(path: Path) -> tuple[list[str], list[str]] | None:
    if not {"text", "target"} <= set(pq.read_schema(path).names):
        return None
    table = pq.read_table(path, columns=["text", "target"])
    return table["text"].to_pylist(), list(map(str, table["target"].to_pylist()))


def measure(name: str, texts: list[str], labels: list[str], repeats: int) -> None:
    column = pa.array(texts, type=pa.large_string())
    megabytes = column.nbytes / 1e6
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    header(f"{name}, {len(texts):,} texts, {megabytes:.1f} MB")
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
        if megabytes > 100 and title != "CountVectorizer":
            continue  # scikit-learn would take minutes
        compare(title, lambda m=ours: m.fit_transform(texts), lambda m=theirs: m.fit_transform(texts), repeats)
        if title == "CountVectorizer":
            a, b = (peak_of(lambda m=m: m.fit_transform(texts)) for m in (ours, theirs))
            print(f"{'  peak memory beyond the texts':<52}{a:>9.0f} MB{b:>9.0f} MB{b / a:>9.1f} ×")
    for threads in (1, None):
        likely.set_threads(threads)
        for unit, ngrams in [("words of two", (1, 1)), ("words and punctuation", (1, 1)), ("words of two", (1, 2))]:
            job = Analyzer(unit, ngrams).class_counts
            best = min(seconds(lambda job=job: job(column, codes, codes.max() + 1)) for _ in range(max(repeats, 3)))
            rate = f"class counts of {unit} {ngrams}, {threads or 'all'} threads"
            print(f"{rate:<52}{megabytes / best:>7.0f} MB/s")
    rise = peak_of(lambda: Analyzer("words of two").class_counts(column, codes, codes.max() + 1))
    print(f"{'  peak memory beyond the texts':<52}{rise:>9.0f} MB", flush=True)


def main(directory: str, megabytes: str = "0") -> None:
    every: list[tuple[str, str]] = []
    for path in sorted(Path(directory).glob("*.parquet")):
        if found := texts_of(path):
            measure(path.stem, *found, repeats=3)
            every.extend(zip(*found, strict=True))
    if float(megabytes):
        size = sum(len(text) for text, _ in every) / 1e6
        times = int(float(megabytes) / size) + 1
        order = np.random.default_rng(0).permutation(len(every) * times)[: int(len(every) * float(megabytes) / size)]
        texts, labels = zip(*(every[i % len(every)] for i in order), strict=True)
        measure("all of them, repeated", list(texts), list(labels), repeats=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
