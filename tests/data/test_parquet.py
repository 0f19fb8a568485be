"""Parquet files in stretches: every row once, and frames that are nothing but files are read by those who work."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likely import KMeans, NaiveBayes
from likely.data import files
from likely.data.files import parquet_chunks as cut
from likely.data.rows import Rows
from likely.engines import PartitionedRows, engine_of


def numbers(n=1000, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["label"] = np.where(frame.a + generator.normal(size=n) > 0, "yes", "no")
    return frame.mask(generator.random(frame.shape) < 0.05)


@pytest.fixture
def folder(tmp_path):
    frame = numbers()
    for number, first in enumerate(range(0, 1000, 250)):
        frame[first : first + 250].to_parquet(tmp_path / f"{number}.parquet", index=False, row_group_size=40)
    return tmp_path


def in_one_order(frame):
    return frame.sort_values(["a", "b", "c"], ignore_index=True)


@pytest.mark.parametrize("length", [100, 700, 3000, 1 << 30])
def test_every_row_is_in_one_stretch(length, folder, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_BYTES", length)
    parts = [Rows(part) for part in cut(map(str, folder.glob("*")), ["c", "label", "a", "b"])]
    assert len(parts) == 4 if length == 1 << 30 else len(parts) > 4
    tables = [pa.Table.from_batches(part.batches(), part.schema) for part in parts]
    assert [table.num_rows for table in tables] == [part.count() for part in parts]
    pd.testing.assert_frame_equal(
        in_one_order(pa.concat_tables(tables).to_pandas()),
        in_one_order(numbers()[["c", "label", "a", "b"]]),
        check_dtype=False,
    )


def test_files_that_differ_are_read_in_types_that_hold_all_cells(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [None]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"b": pa.array(["y"]).dictionary_encode(), "a": [1.5]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"c": [0], "b": ["z"], "a": [2]}), tmp_path / "2.parquet")
    parts = cut(map(str, tmp_path.glob("*")), ["a", "b"])
    rows = [row for part in parts for batch in Rows(part).batches() for row in batch.to_pylist()]
    assert rows == [{"a": 1.0, "b": None}, {"a": 1.5, "b": "y"}, {"a": 2.0, "b": "z"}]
    assert cut(map(str, tmp_path.glob("*")), ["a", "B"]) == []
    assert cut(map(str, tmp_path.glob("*")), ["a", "c"]) == []


def test_no_more_rows_are_read_than_are_wanted(folder):
    part = Rows(cut([str(folder / "0.parquet")], ["a", "label"])[0])
    assert part.sample(7).num_rows == 7
    assert part.sample(70).num_rows == 70


def test_a_file_that_vanishes_or_breaks_is_named(folder):
    parts = cut(map(str, folder.glob("*")), ["a"])
    (folder / "1.parquet").unlink()
    (folder / "2.parquet").write_bytes(b"PAR1 nothing PAR1")
    for number in (1, 2):
        with pytest.raises(ValueError, match=rf"^expected a Parquet file in '.*{number}\.parquet', got one"):
            Rows(parts[number]).count()


@pytest.mark.filterwarnings("ignore")
def test_dask_workers_read_files_by_themselves(folder, monkeypatch):
    dask = pytest.importorskip("dask")
    read_parquet = pytest.importorskip("dask.dataframe").read_parquet
    monkeypatch.setattr(files, "CHUNK_BYTES", 2000)
    path = str(folder)
    (folder / "0.parquet.bak").write_bytes((folder / "0.parquet").read_bytes())  # which Dask does not read
    (folder / "README.txt").write_text("no table")
    plain = read_parquet(path)
    for frame in (plain, plain[["c", "a", "label"]], plain.drop(columns="b"), read_parquet(f"{path}/*.parquet")):
        assert engine_of(frame).partitions > 4, frame
        assert sum(PartitionedRows(engine_of(frame)).map(Rows.count)) == 1000
    others = [
        plain[plain.a > 0],
        plain.assign(a=1.0),
        plain.rename(columns={"a": "d"}),
        plain.partitions[:2],
        plain.repartition(npartitions=2),
        read_parquet(path, filters=[("a", ">", 0)]),
        read_parquet(path, index="a"),
    ]
    for frame in others:
        engine = engine_of(frame)
        assert engine.partitions == frame.npartitions
        assert not any(isinstance(part, Rows) for part in engine.parts)
        assert sum(PartitionedRows(engine).map(Rows.count)) == len(frame)
    with dask.config.set(scheduler="threads"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (NaiveBayes().fit(data, "label") for data in (numbers(), plain))
        asked = there.predict_proba(plain).compute()
    np.testing.assert_allclose(there.predict_proba(numbers()), here.predict_proba(numbers()), rtol=1e-12)
    np.testing.assert_array_equal(asked[["p(no)", "p(yes)"]], there.predict_proba(numbers()))
    assert KMeans(2, random_state=0).fit(plain[["a", "b"]]).cluster_centers_.shape == (2, 2)


def test_text_that_a_file_keeps_as_places_is_not_written_out(tmp_path):
    generator = np.random.default_rng(0)
    frame = numbers().assign(note=[f"note {i} " + "x" * 30 for i in generator.permutation(1000)])
    names = ["a", "label", "note"]
    for name, coded in (("coded", True), ("plain", False)):
        path = tmp_path / f"{name}.parquet"
        frame.to_parquet(path, index=False, row_group_size=300, use_dictionary=coded)
        (part,) = cut([str(path)], names)
        found = list(part.batches(dictionaries=True))
        assert {pa.types.is_dictionary(batch.schema.field("label").type) for batch in found} == {coded}
        assert {batch.schema.field("note").type for batch in found} == {part.schema.field("note").type}
        written = [row for batch in found for row in batch.to_pylist()]
        assert written == [row for batch in part.batches() for row in batch.to_pylist()]
        assert {batch.schema.field("label").type for batch in part.batches()} == {part.schema.field("label").type}


def test_models_of_coded_text_are_those_of_text(tmp_path):
    frame = numbers(3000).assign(kind=np.random.default_rng(1).choice(["x", "y", "?"], 3000))
    frame.to_parquet(tmp_path / "0.parquet", index=False, row_group_size=700)
    models = []
    read_parquet = pytest.importorskip("dask.dataframe").read_parquet
    for rows in (frame, read_parquet(tmp_path)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # rows without a label are left out
            models.append(NaiveBayes(missing="?").fit(rows, "label"))
    assert models[0].classes_.tolist() == models[1].classes_.tolist() == ["no", "yes"]
    whole, coded = (model.predict_log_proba(frame.drop(columns="label")) for model in models)
    np.testing.assert_allclose(coded, whole, rtol=1e-12, atol=1e-12)


def test_labels_of_files_that_differ_are_of_one_type(tmp_path):
    frame = numbers(400).dropna()
    labels = (np.arange(len(frame)) % 2).tolist()
    frame[:200].assign(label=pd.Categorical(labels[:200])).to_parquet(tmp_path / "0.parquet", index=False)
    frame[200:].assign(label=list(map(str, labels[200:]))).to_parquet(tmp_path / "1.parquet", index=False)
    parts = cut(map(str, tmp_path.glob("*")), frame.columns)
    found = [
        label
        for part in parts
        for batch in part.batches(dictionaries=True)
        for label in batch.column("label").to_pylist()
    ]
    assert found == list(map(str, labels))
