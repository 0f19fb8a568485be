"""Rows that do not lie in memory: wherever they come from, the model is that of all rows in one place."""

import io
import sys
import threading
import time

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from likely import Classifier, KMeans, Mixture, NaiveBayes
from likely.data import progress as watching
from likely.data.rows import open_rows
from likely.data.sources import read_ahead
from likely.estimators import fitting


@pytest.fixture(autouse=True)
def few_are_drawn(monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 300)


def people(n=2000):
    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, n)
    frame = pd.DataFrame(generator.normal(size=(n, 2)) + 4 * group[:, None], columns=["a", "b"])
    return frame.assign(label=np.array(["low", "high"])[group])


def one_by_one(path):
    frame = pd.read_parquet(path)
    yield from (frame.iloc[i : i + 300] for i in range(0, len(frame), 300))


SOURCES = {
    "path": lambda path: path,
    "list of paths": lambda path: [path],
    "dataset": pa.dataset.dataset,
    "reader": lambda path: pa.dataset.dataset(path).to_table().to_reader(),
    "lazy frame": pl.scan_parquet,
    "relation": lambda path: duckdb.read_parquet(str(path)),
    "generator": one_by_one,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_sources_that_are_read_in_batches(source, tmp_path):
    frame = people()
    frame.to_parquet(tmp_path / "people.parquet")
    for model in (NaiveBayes(), Classifier(), Classifier(calibrate=False)):
        whole = model.fit(frame, "label").predict_proba(frame)
        found = model.fit(source(tmp_path / "people.parquet"), "label").predict_proba(frame)
        np.testing.assert_allclose(found, whole, rtol=1e-11, atol=1e-13)
    X = frame[["a", "b"]]
    X.to_parquet(tmp_path / "numbers.parquet")
    whole, found = (
        Mixture(2, tolerance=1e-9, progress=False).fit(rows) for rows in (X, source(tmp_path / "numbers.parquet"))
    )
    assert found.log_likelihood_ == pytest.approx(whole.log_likelihood_, rel=1e-7)
    assert found.class_count_.sum() == pytest.approx(len(X))
    whole, found = (KMeans(2, random_state=0).fit(rows) for rows in (X, source(tmp_path / "numbers.parquet")))
    assert found.inertia_ == pytest.approx(whole.inertia_, rel=1e-12)


def test_labels_that_are_missing_in_a_file_are_told_of_and_counted(tmp_path):
    frame = people()
    frame.loc[::10, "label"] = None
    frame.to_parquet(tmp_path / "people.parquet")
    with pytest.warns(UserWarning, match="200 rows without a label in 'label' are left out"):
        model = NaiveBayes().fit(tmp_path / "people.parquet", "label")
    assert model.class_count_.sum() == 1800
    frame.loc[1::2, "label"] = None
    frame.to_parquet(tmp_path / "people.parquet")
    model = NaiveBayes(unlabelled=1).fit(tmp_path / "people.parquet", "label")
    assert model.class_count_.sum() == pytest.approx(2000)


def test_the_next_batch_is_read_while_this_one_is_used():
    begun = [threading.Event() for _ in range(3)]

    def batches():
        for i, event in enumerate(begun):
            event.set()
            yield i

    ahead = read_ahead(batches())
    assert next(ahead) == 0
    assert begun[1].wait(timeout=30)
    assert not begun[2].is_set()
    assert list(ahead) == [1, 2]


def test_what_goes_wrong_while_reading_ahead_is_raised_where_it_is_used():
    def batches():
        yield 1
        raise OSError("gone")

    ahead = read_ahead(batches())
    assert next(ahead) == 1
    with pytest.raises(OSError, match="gone"):
        next(ahead)


def test_a_file_that_vanishes_is_named(tmp_path):
    people().to_parquet(tmp_path / "one.parquet")
    people().to_parquet(tmp_path / "two.parquet")
    rows = open_rows([tmp_path / "one.parquet", tmp_path / "two.parquet"])
    (tmp_path / "two.parquet").unlink()
    with pytest.raises((FileNotFoundError, ValueError), match=r"two\.parquet"):
        NaiveBayes().fit(rows, "label")


def test_files_behind_a_url(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    frame = people()
    store = fsspec.filesystem("memory")
    for number in range(3):
        frame.iloc[number::3].to_parquet(tmp_path / "part.parquet")
        store.pipe(f"/likely/parts/{number}.parquet", (tmp_path / "part.parquet").read_bytes())
    store.pipe("/likely/people.csv", frame.to_csv(index=False).encode())
    whole = NaiveBayes().fit(frame, "label").predict_proba(frame)
    try:
        for url in ("memory://likely/parts", "memory://likely/parts/*.parquet", "memory://likely/people.csv"):
            model = NaiveBayes().fit(url, "label")
            assert model.class_count_.sum() == len(frame)
            np.testing.assert_allclose(model.predict_proba(frame), whole, rtol=1e-11, atol=1e-13)
        with pytest.raises(
            FileNotFoundError, match=r"expected files named like 'memory://likely/parts/.*csv', found none"
        ):
            NaiveBayes().fit("memory://likely/parts/*.csv", "label")
        with pytest.raises(FileNotFoundError, match=r"expected a file at 'memory://likely/nobody\.csv', found none"):
            NaiveBayes().fit("memory://likely/nobody.csv", "label")
        with pytest.raises(ValueError, match="expected a URL that fsspec knows, got 'nobody://"):
            NaiveBayes().fit("nobody://likely/people.csv", "label")
    finally:
        store.rm("/likely", recursive=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_shows_how_far_rows_are_read(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    frame = people(12_300)

    def slowly():
        yield frame[:12_000]  # more than are looked at to see what the columns are
        for _ in range(1000):
            if "rows" in terminal.getvalue():
                break
            time.sleep(0.01)
        yield frame[12_000:]

    model = NaiveBayes().fit(slowly(), "label")
    assert model.class_count_.sum() == 12_300
    assert "reading" in terminal.getvalue()
    assert "rows" in terminal.getvalue()


def test_no_bar_is_shown_to_a_file(monkeypatch, tmp_path):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(watching, "PATIENCE", 0.0)
    people(600).to_parquet(tmp_path / "a.parquet")
    NaiveBayes().fit(tmp_path / "a.parquet", "label")
    assert said.getvalue() == ""


@pytest.mark.parametrize("put", [None, object(), io.StringIO()], ids=["none", "without isatty", "closed"])
def test_whatever_is_put_in_the_place_of_stderr(put, monkeypatch, tmp_path):
    if isinstance(put, io.StringIO):
        put.close()
    monkeypatch.setattr(sys, "stderr", put)
    people(600).to_parquet(tmp_path / "a.parquet")
    assert NaiveBayes().fit(tmp_path / "a.parquet", "label").class_count_.sum() == 600


def test_parts_of_a_stream_may_differ_in_types_and_in_order():
    frame = people(900).assign(n=np.arange(900) % 5)
    parts = [frame[:300], frame[300:600].astype({"n": float}), frame[600:][["n", "label", "b", "a"]]]
    found = NaiveBayes().fit(iter(parts), "label")
    whole = NaiveBayes().fit(frame.astype({"n": float}), "label")
    np.testing.assert_allclose(found.predict_proba(frame), whole.predict_proba(frame), rtol=1e-12)
    with pytest.raises(ValueError, match="expected the columns of the first part of a stream in all, got others in"):
        NaiveBayes().fit(iter([frame[:300], frame[300:].drop(columns="n")]), "label")
