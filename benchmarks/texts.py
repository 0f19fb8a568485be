"""Texts classified beside scikit-learn's recipes and fastText: accuracy, log-loss, time, peak memory.

python benchmarks/texts.py DIRECTORY [NAME …] [--peers FILE] [--fresh] [--megabytes N]

The directory holds Parquet files with the columns `text` and `target`. Where its `meta.json`, if any, has a number at a
set's name under `split`, so many leading rows are to learn from; elsewhere four fifths of each class, drawn at random.
The slow peers run once, and their results are kept in FILE, unless `--fresh` asks for new ones. With a number of
megabytes, the training parts of all sets, repeated in random order up to that size, come last, without slow peers.
"""

import argparse
import json
import os
import re
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from compare import timed
from memory import peak_of
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from likely import TextClassifier

PATTERN = r"\w+|[^\w\s]"  # words and punctuation, as the default takes them
Split = tuple[list[str], Any, list[str], Any]  # the texts and labels to learn from, and those to answer


def with_texts(directory: Path) -> list[str]:
    """Return the names of the files that have texts and labels."""
    paths = sorted(directory.glob("*.parquet"))
    return [path.stem for path in paths if {"text", "target"} <= set(pq.read_schema(path).names)]


def read(directory: Path, name: str) -> Split:
    """Return one set in its two parts."""
    table = pq.read_table(directory / f"{name}.parquet", columns=["text", "target"])
    texts, labels = table["text"].to_pylist(), np.array([str(label) for label in table["target"].to_pylist()])
    meta = directory / "meta.json"
    if leading := meta.exists() and json.loads(meta.read_text()).get(name, {}).get("split"):
        return texts[:leading], labels[:leading], texts[leading:], labels[leading:]
    a, b, y, z = train_test_split(texts, labels, test_size=0.2, stratify=labels, random_state=0)
    return a, y, b, z


def together(directory: Path, names: list[str], megabytes: float = 0.0) -> Split:
    """Return all sets as one; the part to learn from is repeated in random order up to so many megabytes, if any."""
    texts, y, new, z = zip(*(read(directory, name) for name in names), strict=True)
    texts, new = ([text for part in parts for text in part] for parts in (texts, new))
    y, z = np.concatenate(y), np.concatenate(z)
    if megabytes:
        share = megabytes / size_of(texts)
        order = np.random.default_rng(0).permutation(len(y) * (int(share) + 1))[: int(len(y) * share)] % len(y)
        texts, y = [texts[i] for i in order], y[order]
    return texts, y, new, z


def size_of(texts: list[str]) -> float:
    """Return the megabytes of texts in UTF-8."""
    return sum(len(text.encode()) for text in texts) / 1e6


def peak(fit: Callable[..., object], *source: Any) -> float:
    """Return the megabytes beyond the texts that a fit takes in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        return alone.submit(_peak, fit, *source).result()


def _peak(fit: Callable[..., object], *source: Any) -> float:
    texts, y, _, _ = together(*source)
    fit(texts[:: len(texts) // 20], y[:: len(y) // 20])  # what is loaded once does not count
    return peak_of(lambda: fit(texts, y))


def scores(p: Any, classes: Any, z: Any) -> tuple[float, float]:
    """Return accuracy and log-loss of probabilities; a label that was not learned has none."""
    there = np.isin(z, classes)
    true = np.where(there, p[np.arange(len(z)), np.searchsorted(classes, z) % len(classes)], 0)
    return float(np.mean(classes[p.argmax(axis=1)] == z)), float(-np.log(np.maximum(true, 1e-15)).mean())


def search(data: Split, vectorizers: list[Any], model: Any, grid: list[dict[str, Any]]) -> list[float]:
    """Return the best accuracy and the best log-loss on the test texts, the seconds of all fits and of one answer."""
    texts, y, new, z = data
    found, fit, answers = [], 0.0, []
    for vectorizer in map(clone, vectorizers):
        tried = clone(model)
        reading, X = timed(partial(vectorizer.fit_transform, texts))
        reading_new, X_new = timed(partial(vectorizer.transform, new))
        fit += reading
        for values in grid:
            fit += timed(partial(tried.set_params(**values).fit, X, y))[0]
            answer, p = timed(partial(tried.predict_proba, X_new))
            answers.append(reading_new + answer)
            found.append(scores(p, tried.classes_, z))
    return [max(a for a, _ in found), min(loss for _, loss in found), fit, float(np.mean(answers))]


def fast_text(data: Split, epochs: int) -> list[float] | None:
    """Return accuracy, log-loss and seconds of fastText, if it is there, with words and punctuation."""
    if not find_spec("fasttext"):
        return None
    from fasttext import train_supervised

    texts, y, new, z = data
    classes, codes = np.unique(y, return_inverse=True)

    def lines(texts: list[str]) -> list[str]:
        return [" ".join(re.findall(PATTERN, text.lower())) + "\n" for text in texts]

    def fit(path: Path) -> Any:
        labelled = [f"__label__{k} {line}" for k, line in zip(codes, lines(texts), strict=True)]
        np.random.default_rng(0).shuffle(labelled)  # its steps follow the order, and some sets come class by class
        path.write_text("".join(labelled))
        options = {"lr": 0.5, "dim": 20, "wordNgrams": 2, "epoch": epochs, "thread": os.cpu_count(), "verbose": 0}
        return train_supervised(str(path), **options)

    def answer() -> Any:
        p = np.zeros((len(new), len(classes)))
        for row, line in zip(p, lines(new), strict=True):
            for share, label in model.f.predict(line, len(classes), 0.0, "strict"):  # its Python part: NumPy 1 only
                row[int(label.removeprefix("__label__"))] = share
        return p

    with TemporaryDirectory() as folder:
        fitting, model = timed(lambda: fit(Path(folder) / "texts.txt"))
    answering, p = timed(answer)
    return [*scores(p, classes, z), fitting, answering]


OURS, TEXTBOOK, COUNTS = "likely, default", "likely, textbook", "CountVectorizer + MultinomialNB"
LOGISTIC = "TfidfVectorizer (1, 2) + LogisticRegression"
QUICK = {
    OURS: TextClassifier(),
    TEXTBOOK: TextClassifier(calibrate=False, ngrams=1, unit="words of two"),
    COUNTS: make_pipeline(CountVectorizer(), MultinomialNB()),
}
WORDS, PAIRS = [CountVectorizer(), TfidfVectorizer(sublinear_tf=True)], [TfidfVectorizer(ngram_range=(1, 2))]
PUNCTUATED = [TfidfVectorizer(ngram_range=(1, 2), token_pattern=PATTERN, sublinear_tf=True, min_df=2)]
LINEAR, STRENGTHS = LogisticRegression(max_iter=1000), [{"C": C} for C in (1, 10, 100)]
ALPHAS = [{"alpha": alpha} for alpha in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)]
SLOW: dict[str, Callable[[Split], list[float] | None]] = {
    "  best of 8 alphas, counts and TF-IDF *": lambda data: search(data, WORDS, MultinomialNB(), ALPHAS),
    "fastText, 5 epochs": lambda data: fast_text(data, 5),
    "fastText, 25 epochs": lambda data: fast_text(data, 25),
    LOGISTIC: lambda data: search(data, PAIRS, LINEAR, [{}]),
    "  punctuation too, seen twice, best of C = 1, 10, 100 *": lambda data: search(data, PUNCTUATED, LINEAR, STRENGTHS),
}


def described(name: str, data: Split) -> str:
    texts, y, new, _ = data
    return f"{name}, {len(y):,} + {len(new):,} texts, {size_of(texts):.1f} MB, {len(set(y))} classes"


def in_turn(data: Split, repeats: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return accuracy, log-loss and median seconds of the quick ones, run in turn, and the medians of their ratios."""
    texts, y, new, z = data
    fits, answers, results = ({name: [] for name in QUICK} for _ in range(3))
    for _ in range(repeats):
        for name, model in QUICK.items():
            fits[name].append(timed(partial(model.fit, texts, y))[0])
            answer, p = timed(partial(model.predict_proba, new))
            answers[name].append(answer)
            results[name] = [*scores(p, model.classes_, z), median(fits[name]), median(answers[name])]

    def ratio(times: dict[str, list[float]], ours: str) -> float:
        return median(b / a for a, b in zip(times[ours], times[COUNTS], strict=True))

    return results, {
        f"fit, default: {COUNTS}": ratio(fits, OURS),
        f"fit, textbook: {COUNTS}": ratio(fits, TEXTBOOK),
        f"predict, textbook: {COUNTS}": ratio(answers, TEXTBOOK),
    }


def show(title: str, results: dict[str, list[float]], ratios: dict[str, float], *source: Any) -> None:
    """Print one table, with the peak memory of fits to the source."""
    print(f"\n{title:<70}{'accuracy':>10}{'log-loss':>10}{'fit, s':>10}{'predict, s':>12}")
    for name, (accuracy, loss, fit, answer) in results.items():
        print(f"{name:<70}{accuracy:>10.4f}{loss:>10.4f}{fit:>10.3f}{answer:>12.3f}", flush=True)
    if source:
        ours, theirs = (peak(clone(QUICK[model]).fit, *source) for model in (TEXTBOOK, COUNTS))
        ratios[f"memory of fit, textbook {ours:.0f} MB: {COUNTS} {theirs:.0f} MB"] = theirs / ours
    for name, ratio in ratios.items():
        print(f"{name:<70}{ratio:>10.{1 if ratio >= 2 else 2}f} ×", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--quick", action="store_true", help="leave the slow peers out")
    parser.add_argument("--megabytes", type=float, default=0.0)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    kept = json.loads(given.peers.read_text()) if given.peers and given.peers.exists() else {}
    known = {} if given.fresh else dict(kept)
    names = given.names or with_texts(given.directory)
    print("Ratios: how many times as long, or as much, the peer takes. *: chosen on the test texts, which flatters it.")
    if not find_spec("fasttext"):
        print("fastText is not installed.")
    tables = []
    for name in names:
        data = together(given.directory, [name])
        results, ratios = in_turn(data, repeats=5)
        for peer, run in () if given.quick else SLOW.items():
            key = f"{name}/{peer}"
            if result := known.get(key) or run(data):
                results[peer] = kept[key] = result
            if given.peers:
                given.peers.write_text(json.dumps(kept, indent=1))
        if LOGISTIC in results:
            when = ", as kept" if f"{name}/{LOGISTIC}" in known else ""
            ratios[f"fit, default: {LOGISTIC}{when}"] = results[LOGISTIC][2] / results[OURS][2]
        show(described(name, data), results, ratios, given.directory, [name])
        tables.append(results)
    everywhere = [peer for peer in tables[0] if all(peer in results for results in tables)]
    means = {peer: np.mean([results[peer] for results in tables], axis=0).tolist() for peer in everywhere}
    show(f"mean of {len(tables)}", means, {})
    if given.megabytes:
        source = given.directory, names, given.megabytes
        data = together(*source)
        show(described("all of them, repeated", data), *in_turn(data, repeats=1), *source)


if __name__ == "__main__":
    main()
