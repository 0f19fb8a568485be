"""Tables are read from anything that has rows, again and again; what is no table is refused in a sentence."""

import gzip
import io
import json
import math
import os
import random
import subprocess
import sys
import threading
import time

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusal import assert_refused

from likely import NaiveBayes
from likely.data import sources as reading_sources
from likely.data.csv import CsvFile
from likely.data.rows import open_rows
from likely.data.schema import Schema
from likely.persistence.codec import decode, encode

AGE, CITY, SCORE = [31, None, 40, 52], ["Oslo", "Rome", None, "Oslo"], [0.5, 1.25, None, -3.0]
WANTED = pa.table({"age": pa.array(AGE, pa.int64()), "city": CITY, "score": SCORE})
RECORDS = [dict(zip(["age", "city", "score"], row, strict=True)) for row in zip(AGE, CITY, SCORE, strict=True)]
CSV = b"age,city,score\n31,Oslo,0.5\n,Rome,1.25\n40,,\n52,Oslo,-3.0\n"
JSONL = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def zstd(content):
    return pa.Codec("zstd").compress(content).to_pybytes()


def ipc(table, make):
    sink = pa.BufferOutputStream()
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def parquet(table, path):
    pa.parquet.write_table(table, path)
    return path


def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    parquet(WANTED.slice(0, 2), tmp_path / "folder" / "part-0.parquet")
    parquet(WANTED.slice(2), tmp_path / "folder" / "part-1.snappy.parquet")
    (tmp_path / "folder" / "_SUCCESS").write_bytes(b"")
    return tmp_path / "folder"


def two_files(tmp_path):
    lines = CSV.splitlines(keepends=True)
    return [
        written(tmp_path, "1.csv", b"".join(lines[:2])),
        written(tmp_path, "2.csv", b"".join([lines[0], *lines[2:]])),
    ]


def structured():
    return np.array(
        [(31.0, "Oslo", 0.5), (np.nan, "Rome", 1.25), (40.0, None, np.nan), (52.0, "Oslo", -3.0)],
        dtype=[("age", "f8"), ("city", "O"), ("score", "f4")],
    )


def crlf(content):
    return content.replace(b"\n", b"\r\n")


SOURCES = {
    "pandas": lambda _: pd.DataFrame({"age": AGE, "city": CITY, "score": SCORE}),
    "pandas, objects": lambda _: pd.DataFrame(
        {"age": AGE, "city": ["Oslo", "Rome", float("nan"), "Oslo"], "score": SCORE}, dtype=object
    ),
    "pandas, nullable": lambda _: pd.DataFrame(
        {
            "age": pd.array(AGE, dtype="Int64"),
            "city": pd.array(CITY, dtype="string"),
            "score": pd.array(SCORE, dtype="Float64"),
        }
    ),
    "pandas, categories": lambda _: pd.DataFrame({"age": AGE, "city": pd.Categorical(CITY), "score": SCORE}),
    "Polars": lambda _: pl.DataFrame({"age": AGE, "city": CITY, "score": SCORE}),
    "Polars, lazy": lambda _: pl.LazyFrame({"age": AGE, "city": CITY, "score": SCORE}),
    "Polars, categories": lambda _: pl.DataFrame(
        {"age": AGE, "city": pl.Series(CITY, dtype=pl.Categorical), "score": SCORE}
    ),
    "Arrow": lambda _: WANTED,
    "an Arrow batch": lambda _: WANTED.to_batches()[0],
    "an Arrow reader": lambda _: WANTED.to_reader(2),
    "an Arrow dataset": lambda _: pa.dataset.dataset(WANTED),
    "an Arrow dictionary": lambda _: WANTED.set_column(1, "city", WANTED["city"].dictionary_encode()),
    "a generator": lambda _: (WANTED.slice(i, 1) for i in range(4)),
    "DuckDB": lambda _: duckdb.connect().from_arrow(WANTED),
    "a structured array": lambda _: structured(),
    "records": lambda _: RECORDS,
    "columns": lambda _: {"age": AGE, "city": CITY, "score": SCORE},
    "columns of arrays": lambda _: {
        "age": np.array([31.0, np.nan, 40, 52]), "city": pd.Series(CITY), "score": pl.Series(SCORE)
    },
    "CSV": lambda p: written(p, "a.csv", CSV),
    "CSV by name": lambda p: str(written(p, "a.csv", CSV)),
    "CSV, BOM": lambda p: written(p, "a.csv", b"\xef\xbb\xbf" + CSV),
    "CSV, CR and LF": lambda p: written(p, "a.csv", crlf(CSV)),
    "CSV, semicolons": lambda p: written(p, "a.csv", CSV.replace(b",", b";")),
    "CSV, bars": lambda p: written(p, "a.csv", CSV.replace(b",", b"|")),
    "CSV, tabs": lambda p: written(p, "a.csv", CSV.replace(b",", b"\t")),
    "CSV, spaces": lambda p: written(p, "a.csv", CSV.replace(b",", b", ")),
    "CSV, quotes": lambda p: written(p, "a.csv", CSV.replace(b"Oslo", b'"Oslo"')),
    "TSV": lambda p: written(p, "a.tsv", CSV.replace(b",", b"\t")),
    "CSV, gzip": lambda p: written(p, "a.csv.gz", gzip.compress(CSV)),
    "CSV, zstd": lambda p: written(p, "a.csv.zst", zstd(CSV)),
    "CSV, two files": two_files,
    "CSV, wildcard": lambda p: str(two_files(p)[0].parent / "*.csv"),
    "CSV, folder": lambda p: two_files(p)[0].parent,
    "JSON lines": lambda p: written(p, "a.jsonl", JSONL),
    "JSON lines, gzip": lambda p: written(p, "a.jsonl.gz", gzip.compress(JSONL)),
    "JSON lines, NaN": lambda p: written(p, "a.ndjson", JSONL.replace(b"null", b"NaN")),
    "Parquet": lambda p: parquet(WANTED, p / "a.parquet"),
    "a folder of Parquet": folder,
    "Arrow file": lambda p: written(p, "a.arrow", ipc(WANTED, pa.ipc.new_file)),
    "Arrow stream": lambda p: written(p, "a.arrows", ipc(WANTED, pa.ipc.new_stream)),
    "Feather": lambda p: (pa.feather.write_feather(WANTED, p / "a.feather"), p / "a.feather")[1],
}  # fmt: skip


@pytest.fixture(params=SOURCES.values(), ids=SOURCES)
def source(request, tmp_path):
    return request.param(tmp_path)


def read(rows):
    schema = Schema.infer(rows)
    tables = list(schema.tables(rows))
    assert len({table.names for table in tables}) == 1
    return schema, np.vstack([table.cells for table in tables]), tables


def named_cells(schema, tables):
    """Return all cells by column, categories by their names."""
    columns = {}
    for j, name in enumerate(schema.names):
        columns[name] = [
            None if math.isnan(x) else (str(t.categories[j][int(x)]) if j in t.categories else float(x))
            for t in tables
            for x in t.cells[:, j]
        ]
    return columns


def test_every_source_gives_the_same_table(source):
    rows = open_rows(source)
    assert rows.names == ("age", "city", "score")
    for _ in range(2):  # and gives it again
        schema, cells, tables = read(rows)
        assert schema.kinds == (schema.kinds[0], "category", "number")
        assert schema.kinds[0] in ("integer", "number")
        np.testing.assert_array_equal(cells[:, [0, 2]], np.array([AGE, SCORE], dtype=float).T)
        assert named_cells(schema, tables)["city"] == CITY
        assert tables[0].cells.flags.f_contiguous
    done, total, unit = rows.progress
    assert unit in ("rows", "bytes")
    assert total is None or done == total > 0


@pytest.mark.parametrize(("form", "content"), [("csv", CSV), ("jsonl", JSONL), ("csv.gz", gzip.compress(CSV, mtime=0))])
@pytest.mark.parametrize("typed", [True, False])
def test_an_open_file_is_read_once_and_its_rows_again(form, content, typed):
    rows = open_rows(io.BytesIO(content), format=form, typed=typed)
    for _ in range(2):
        batches = list(rows.batches())
        assert [cell.as_py() for batch in batches for cell in batch.column("city")] == CITY


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_open_file_of_arrow_is_read(make):
    rows = open_rows(io.BytesIO(ipc(WANTED, make)), format="arrow")
    assert pa.Table.from_batches(rows.batches()) == pa.Table.from_batches(rows.batches()) == WANTED


def test_an_open_parquet_file_is_read(tmp_path):
    with open(parquet(WANTED, tmp_path / "a"), "rb") as file:
        rows = open_rows(file, format="parquet")
    assert pa.Table.from_batches(rows.batches()) == WANTED


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=(tmp_path / "pipe.csv").write_bytes, args=[CSV])
    writer.start()
    rows = open_rows(tmp_path / "pipe.csv")
    assert [batch.num_rows for batch in rows.batches()] == [4]
    writer.join()


def test_rows_interrupted_and_read_again_are_all_there():
    rows = open_rows(WANTED.slice(i, 1) for i in range(4))
    next(rows.batches())
    one, two = rows.batches(), rows.batches()
    assert [batch.num_rows for pair in zip(one, two, strict=True) for batch in pair] == [1] * 8


def test_arrays_have_no_names():
    for data in (np.array([[1.0, 2.0], [3.0, np.nan]]), [[1.0, 2.0], [3.0, None]], pd.DataFrame([[1.0, 2], [3, None]])):
        rows = open_rows(data)
        schema, cells, tables = read(rows)
        assert rows.names is None
        assert tables[0].names is None
        assert decode(encode(schema, "schema", {}), Schema, "schema", {}) == schema
        np.testing.assert_array_equal(cells, [[1, 2], [3, np.nan]])


def test_float32_stays_float32():
    cells = np.array([[1.5, 2.0], [3.0, np.nan]], dtype=np.float32)
    assert read(open_rows(cells))[1].dtype == np.float32
    assert read(open_rows(pd.DataFrame({"a": cells[:, 0], "b": ["x", "y"]})))[1].dtype == np.float64


def csv_types(tmp_path, content, **options):
    rows = open_rows(written(tmp_path, "a.csv", content), **options)
    table = pa.Table.from_batches(rows.batches())
    assert table.schema == rows.schema
    return {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)}, table


def test_types_of_csv(tmp_path):
    kinds, table = csv_types(
        tmp_path,
        b"i,f,t,z,d,w,u,n,big,huge,inf,b\n"
        b"1,1.5,a,0012,2024-02-29,2024-02-29 10:00:00,2024-02-29T10:00:00Z,,9007199254740993,1e400,inf,true\n"
        b"-2,3,7,3400,2024-03-01,2024-02-29T11:30:00,2024-02-29T10:00:00+02:00,,123456789012345678901234,-1,-inf,false\n",
    )
    assert kinds == {
        "i": "int64", "f": "double", "t": "string", "z": "string", "d": "timestamp[us]", "w": "timestamp[us]",
        "u": "timestamp[us, tz=UTC]", "n": "null", "big": "double", "huge": "double", "inf": "double", "b": "bool",
    }  # fmt: skip
    assert table["inf"].to_pylist() == [math.inf, -math.inf]
    assert table["z"].to_pylist() == ["0012", "3400"]


def test_integers_beyond_doubles_are_exact_in_csv(tmp_path):
    assert csv_types(tmp_path, b"a\n9007199254740993\n1\n")[1]["a"].to_pylist() == [9007199254740993, 1]


@pytest.mark.parametrize("kept", [0, 64 << 20])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_the_last_block_of_csv_decides_as_much_as_the_first(tmp_path, monkeypatch, kept, ending):
    monkeypatch.setattr("likely.data.csv.BLOCK", 4096)
    monkeypatch.setattr("likely.data.sources.KEPT", kept)
    lines = [f"{i},{i},,{i},2024-01-01" for i in range(5000)]
    content = "\n".join(["a,b,c,d,e", *lines, "abc,1.5,7,8,never"]).encode() + b"\n"
    content = gzip.compress(content) if ending == "csv.gz" else content
    rows = open_rows(written(tmp_path, f"a.{ending}", content))
    assert [str(kind) for kind in rows.schema.types] == ["string", "double", "int64", "int64", "string"]
    batches = list(rows.batches())
    assert len(batches) > 5
    table = pa.Table.from_batches(batches)
    assert table["a"].to_pylist() == [str(i) for i in range(5000)] + ["abc"]
    assert table["b"].to_pylist() == [*range(5000), 1.5]
    assert table["c"].to_pylist() == [None] * 5000 + [7]
    sample = rows.sample(100)
    assert sample.schema == rows.schema
    assert max(sample["d"].to_pylist()) > 3000  # from all over the file


def test_blocks_of_json_lines_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr("likely.data.jsonl.BLOCK", 1000)
    records = [{"a": i, "b": "2024-01-01", "c": None} for i in range(200)]
    records += [{"a": "x", "b": "never", "d": True}, {"a": 1.5, "c": 2}]
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    rows = open_rows(written(tmp_path, "a.jsonl", content))
    table = pa.Table.from_batches(rows.batches())
    assert [str(kind) for kind in table.schema.types] == ["string", "string", "int64", "bool"]
    assert table["a"].to_pylist() == [*map(str, range(200)), "x", "1.5"]
    assert table["b"].to_pylist() == ["2024-01-01"] * 200 + ["never", None]
    assert table["d"].to_pylist() == [None] * 200 + [True, None]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: written(p, "a.csv", b"age, city\n31, ?\n?, Oslo\n NA ,\n"),
        lambda p: written(p, "a.jsonl", b'{"age": 31, "city": "?"}\n{"age": "?", "city": "Oslo"}\n{"age": "NA"}\n'),
        lambda _: pd.DataFrame({"age": ["31", "?", "NA"], "city": pd.Categorical(["?", "Oslo", None])}),
        lambda _: [{"age": 31, "city": "?"}, {"age": "?", "city": "Oslo"}, {"age": "NA"}],
    ],
)
def test_given_text_is_missing(make, tmp_path):
    rows = open_rows(make(tmp_path), missing=("?", "NA"))
    schema, _, tables = read(rows)
    assert schema.kinds in (("integer", "category"), ("number", "category"))
    assert named_cells(schema, tables) == {"age": [31, None, None], "city": [None, "Oslo", None]}


def test_quoted_newlines_and_separators(tmp_path):
    table = csv_types(tmp_path, b'a,"b\nc"\n"x, y","1\n2"\n"say ""hi""",z\n')[1]
    assert table.to_pydict() == {"a": ["x, y", 'say "hi"'], "b\nc": ["1\n2", "z"]}


def test_a_file_of_one_row_and_of_none(tmp_path):
    assert csv_types(tmp_path, b"a,b\n1,x")[1].to_pydict() == {"a": [1], "b": ["x"]}
    rows = open_rows(written(tmp_path, "a.csv", b"a,b\n"))
    schema, cells, _ = read(rows)
    assert rows.names == ("a", "b")
    assert cells.shape == (0, 0)
    assert [column.kind for column in schema.columns] == ["ignore", "ignore"]


def test_ten_thousand_columns(tmp_path):
    names = ",".join(f"x{j}" for j in range(10_000))
    row = ",".join(str(j / 2) for j in range(10_000))
    rows = open_rows(written(tmp_path, "a.csv", f"{names}\n{row}\n{row}\n".encode()))
    cells = read(rows)[1]
    np.testing.assert_array_equal(cells, [np.arange(10_000) / 2] * 2)


def test_other_types_are_made_plain():
    table = pa.table(
        {
            "decimal": pa.array([1, None]).cast(pa.decimal128(30, 2)),
            "half": pa.array(np.array([1.5, 2], dtype=np.float16)),
            "day": pa.array([0, None]).cast(pa.int32()).cast(pa.date32()).cast(pa.date64()),
            "view": pa.array(["x", None], pa.string_view()),
            "runs": pa.RunEndEncodedArray.from_arrays([2], ["x"]),
        }
    )
    assert list(map(str, open_rows(table).schema.types)) == ["double", "float", "date32[day]", "large_string", "string"]


def test_zones_and_times_of_pandas():
    when = pd.to_datetime(["2024-02-29 23:30", None]).tz_localize("Europe/Oslo")
    kind = open_rows(pd.DataFrame({"when": when})).schema.types[0]
    assert pa.types.is_timestamp(kind)
    assert kind.tz == "Europe/Oslo"


def test_files_of_different_types_are_joined(tmp_path):
    parquet(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    parquet(pa.table({"b": [3, None], "a": [1.5, None]}), tmp_path / "2.parquet")
    rows = open_rows(str(tmp_path / "?.parquet"))
    table = pa.Table.from_batches(rows.batches())
    assert table.to_pydict() == {"a": [1.0, 2.0, 1.5, None], "b": ["x", "y", "3", None]}


def test_batches_are_not_too_large():
    table = pa.table({"a": np.zeros(5_000_000)})
    for data in (table, table.to_reader(), pa.dataset.dataset(table)):
        sizes = [batch.nbytes for batch in open_rows(data).batches()]
        assert max(sizes) <= reading_sources.BATCH + 8
        assert sum(sizes) == 40_000_000


REFUSED = {
    "empty": (b"", "empty file"),
    "only spaces": (b"  \n \n", "empty file"),
    "ragged": (b'a,b\n1,"x\ny"\n1,2,3\n', "2 cells", "got 3 in line 4"),
    "short": (b"a,b\n1,2\n\n3\n", "got 1 in line 4"),
    "twice the same name": (b"a,b,a\n1,2,3\n", "'a' twice"),
    "no header": (b"1.5,2.5\n1.5,3.5\n", "names of the columns", "'1.5'"),
    "Latin-1": ("a,b\n1,2\n3,é\n".encode("latin-1"), "UTF-8", "byte 10"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    "gzip": (gzip.compress(CSV), "a gzip file"),
    "Parquet": (b"PAR1\0\0\0", "a Parquet file"),
    "zeros": (bytes(100), "no text"),
}


@pytest.mark.parametrize(("content", "words"), [(c, w) for c, *w in REFUSED.values()], ids=REFUSED)
def test_a_broken_csv_file_is_refused(content, words, tmp_path):
    path = written(tmp_path, "a.csv", content)
    assert_refused(lambda: open_rows(path).schema, "a.csv", *words)
    assert_refused(lambda: list(open_rows(path, typed=False).batches()), *words)
    stream_words = [word for word in words if not any(place in word for place in ("line", "byte"))]
    assert_refused(lambda: open_rows(io.BytesIO(content), format="csv").schema, *stream_words)


def test_a_quote_left_open_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("likely.data.csv.BLOCK", 4096)
    path = written(tmp_path, "a.csv", b'a,b\n1,"x\n' + b"1,2\n" * 5000)
    assert_refused(lambda: open_rows(path).schema, "a.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}\n{"a": \n', ["line 2", "JSON"]),
        (b'{"a": 1}\n\n[1]\n', ["line 3", "list"]),
        (b'{"a": 1}\n{"a": [1, 2]}\n', ["line 2", "a list in 'a'"]),
        (b'{"a": {"b": 1}}\n', ["line 1", "an object in 'a'"]),
        (b'{"a": 1, "a": 2}\n', ["'a' twice"]),
        (b'{"a": "\xe9"}\n', ["UTF-8", "line 1"]),
        (b'{"a": ' + b"[" * 100_000 + b"\n", ["line 1"]),
    ],
)
def test_broken_json_lines_are_refused(content, words, tmp_path):
    assert_refused(lambda: open_rows(written(tmp_path, "a.jsonl", content)).schema, "a.jsonl", *words)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zst", "a.jsonl.gz", "a.parquet", "a.arrow", "a.feather"])
def test_a_file_that_is_not_what_it_is_called_is_refused(name, tmp_path):
    for content in (b"a,b\n1,2\n", b"", bytes(1000), gzip.compress(CSV * 1000)[:50]):
        assert_refused(lambda c=content: open_rows(written(tmp_path, name, c)).schema, "a.")


def test_what_is_no_table_is_refused(tmp_path):
    for data in (3, None, np.zeros(3), np.zeros((2, 2), dtype=complex), {1, 2}, [1, 2], object()):
        assert_refused(lambda d=data: open_rows(d), "expected a table", kind=TypeError)
    assert_refused(lambda: open_rows({"a": [1], "b": [1, 2]}), "1 cells in 'a'", "2 in 'b'")
    assert_refused(lambda: open_rows({"a": [1, {2}]}), "column 'a'", "set")
    assert_refused(lambda: open_rows({1: [1]}), "names", kind=TypeError)
    assert_refused(lambda: open_rows([{"a": 1}, 3]), "row 2")
    assert_refused(lambda: open_rows([[1, 2], [3]]), "one length")
    assert_refused(lambda: open_rows(pa.table([[1], [2]], names=["a", "a"])), "'a' twice")
    assert_refused(lambda: open_rows(io.StringIO("a"), format="csv"), "binary", kind=TypeError)
    assert_refused(lambda: open_rows(io.BytesIO(CSV)), "format=")
    assert_refused(lambda: open_rows(io.BytesIO(CSV), format="xlsx"), "'xlsx'")
    assert_refused(lambda: open_rows(RECORDS, format="csv"), "'csv'")
    assert_refused(lambda: open_rows(RECORDS, missing=[None]), "missing")
    assert_refused(lambda: open_rows(written(tmp_path, "a.xlsx", b"")), "a.xlsx", "format=")
    assert_refused(lambda: open_rows(str(tmp_path / "*.csv")), "*.csv", kind=FileNotFoundError)
    assert_refused(lambda: open_rows(tmp_path / "none.csv"), "none.csv", kind=FileNotFoundError)
    assert_refused(lambda: open_rows("memory://nowhere/a.csv"), "nowhere", kind=FileNotFoundError)
    assert_refused(lambda: open_rows("nothing://nowhere/a.csv"), "nothing://nowhere")
    os.mkdir(tmp_path / "empty")
    assert_refused(lambda: open_rows(tmp_path / "empty"), "empty", kind=FileNotFoundError)
    paths = [written(tmp_path, "1.csv", b"a,b\n1,2\n"), written(tmp_path, "2.csv", b"a,c\n1,2\n")]
    assert_refused(lambda: open_rows(paths).schema, "2.csv", "'b'")
    assert_refused(lambda: open_rows([paths[0], parquet(WANTED, tmp_path / "a.parquet")]), "csv and parquet")


def test_a_file_with_wildcards_in_its_name_is_that_file(tmp_path):
    assert open_rows(written(tmp_path, "a[1].csv", CSV)).names == ("age", "city", "score")


def test_a_bomb_is_read_in_a_stream(tmp_path):
    line = b"1," + b"0" * 997 + b"\n"
    path = written(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n") + gzip.compress(line * 20_000) * 20)
    assert path.stat().st_size < 1_000_000
    before = pa.total_allocated_bytes()
    rows, most = 0, 0
    for batch in open_rows(path, typed=False).batches():
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 400_000
    assert most < 120_000_000


def test_import_of_likely_leaves_arrow_out():
    code = "import sys, likely, likely.data.rows, likely.data.schema; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_fuzzed_csv_is_read_or_refused_in_a_sentence(tmp_path):
    path = tmp_path / "a.csv"
    generator = random.Random(0)
    seeds = [CSV, b'a,"b\nc"\n"x, y","1\n2"\n"say ""hi""",z\n', crlf(CSV), b"a;b\n1;2\n;\n", b"\xef\xbb\xbfa\n1\n"]
    alphabet = [
        b",",
        b'"',
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xc3",
        b";",
        b"\t",
        b"|",
        b" ",
        b"0",
        b"x",
        b"e",
        b"-",
        b"\xe2\x80\xa8",
    ]
    for _ in range(1000):
        content = bytearray(generator.choice(seeds))
        for _ in range(generator.randint(1, 6)):
            at = generator.randrange(len(content) + 1)
            content[at : at + generator.randint(0, 3)] = generator.choice(alphabet) * generator.randint(0, 3)
        path.write_bytes(content)
        try:
            rows = open_rows(path)
            list(Schema.infer(rows).tables(rows))
        except ValueError as error:
            said = error
        else:
            continue
        assert type(said) is ValueError, bytes(content)
        assert "\n" not in str(said), bytes(content)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8).map(str.strip).filter(bool)
CELLS = {
    "numbers": st.floats(allow_nan=False),
    "integers": st.integers(-(2**63), 2**63 - 1),
    "booleans": st.booleans(),
    "words": WORDS,
    "dates": st.datetimes(),
}


@st.composite
def tables(draw):
    height = draw(st.integers(1, 6))
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = {}
    for name in names:
        cells = CELLS[draw(st.sampled_from(sorted(CELLS)))]
        columns[name] = draw(st.lists(st.none() | cells, min_size=height, max_size=height))
    return pa.table(columns)


def through(table, form, path):
    if form == "csv":
        pa.csv.write_csv(table, path)
    elif form == "parquet":
        pa.parquet.write_table(table, path)
    elif form == "arrow":
        pa.feather.write_feather(table, path)
    else:
        with open(path, "w", encoding="utf-8") as file:
            for record in table.to_pylist():
                file.write(json.dumps(record, default=str) + "\n")
    return path


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "jsonl"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables())
def test_any_table_survives_a_file(table, form, tmp_path):
    """Under the schema of the table in memory, the file's rows give the same cells."""
    if form == "csv" and len(table.schema.names) == 1:
        table = table.append_column("\N{BULLET}", [["x"] * table.num_rows])  # an empty line is no row
    rows, again = open_rows(table), open_rows(through(table, form, tmp_path / f"a.{form}"))
    schema = Schema.infer(rows)
    for typed in (True, False):
        again = open_rows(tmp_path / f"a.{form}", typed=typed)
        one, two = list(schema.tables(rows)), list(schema.tables(again))
        assert named_cells(schema, one) == named_cells(schema, two)


def deep(levels):
    """Values in values, in the ways that they can be written."""
    return {
        "lists": '{"x": ' + "[" * levels + "]" * levels + "}",
        "objects": '{"x": ' + '{"a": ' * levels + "1" + "}" * levels + "}",
        "lines": '{"x": ' + "[\n" * levels + "]\n" * levels + "}",
        "not closed": '{"x": ' + "[" * levels,
        "after a string": '{"s": "\\\\", "x": ' + "[ " * levels + "] " * levels + "}",
    }


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        *((shape, "jsonl") for shape in deep(1)),
        *(("lists", how) for how in ("jsonl.gz", "jsonl.zst", "open", "untyped")),
    ],
)
def test_json_that_is_nested_too_deep_is_refused(shape, how, tmp_path):
    # In a process of its own: what is wrong here ends it.
    content = ('{"y": 1}\n' * 3 + deep(100_000)[shape] + "\n").encode()
    packed = {"jsonl.gz": gzip.compress, "jsonl.zst": zstd}.get(how, bytes)(content)
    path = written(tmp_path, f"rows.{how if how.startswith('jsonl') else 'jsonl'}", packed)
    data = f"open({str(path)!r}, 'rb')" if how == "open" else repr(str(path))
    code = (
        "from likely.data.rows import open_rows\n"
        f"try: list(open_rows({data}, format='jsonl', typed={how != 'untyped'}).batches())\n"
        "except ValueError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("expected an object")
    assert "line 4 of " in ran.stdout
    assert ran.stdout.count("\n") == 1


def test_brackets_in_strings_are_no_nesting(tmp_path):
    rows = [{"x": "[{" * 200 + '"' + "\\", "y": i} for i in range(50)]
    path = written(tmp_path, "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert [row for batch in open_rows(path).batches() for row in batch.to_pylist()] == rows


class Slowly(io.RawIOBase):
    """Rows without end, or with a bad one, that take a while; counts how often it was asked and has answered."""

    def __init__(self, bad=False):
        self.bad, self.reads, self.answers = bad, 0, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        self.reads += 1
        if self.reads > 3:
            time.sleep(0.05)
        part = (b"x,y\n" if self.reads == 1 else b"1,2,3\n" if self.bad and self.reads == 6 else b"") + b"1,a\n" * 5000
        buffer[: len(part)] = part
        self.answers += 1
        return len(part)


def test_nothing_is_read_after_an_error(monkeypatch):
    monkeypatch.setattr("likely.data.csv.BLOCK", 1 << 14)
    stream = Slowly(bad=True)
    rows = open_rows(stream, format="csv", typed=False)
    with pytest.raises(ValueError, match="expected 2 cells in each row"):
        list(rows.batches())
    asked = stream.reads
    assert stream.answers == asked
    time.sleep(0.2)
    assert stream.reads == asked


def test_nothing_is_read_when_nobody_wants_more():
    stream = Slowly()
    batches = CsvFile(lambda: stream, "the stream", None, (), again=False).batches()
    next(batches)
    batches.close()
    asked = stream.reads
    assert stream.answers == asked
    time.sleep(0.2)
    assert stream.reads == asked


@pytest.mark.parametrize(("end", "exit_code"), [("", 0), ("raise LookupError", 1), ("sys.exit(3)", 3)])
def test_python_ends_as_it_should_while_rows_are_read(end, exit_code):
    code = f"""
import sys
sys.path[:0] = {[os.path.dirname(__file__), os.path.dirname(assert_refused.__code__.co_filename)]!r}
from test_reading import Slowly
from likely import NaiveBayes
from likely.data.rows import open_rows
batches = open_rows(Slowly(), format="csv", typed=False).batches()
next(batches)
{end}
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == exit_code, ran.stderr


@pytest.mark.parametrize("kind", ["lazy", "relation", "dataset"])
def test_kinds_are_found_on_rows_of_all_batches(kind):
    rows = 60_000
    table = pa.table({"id": range(rows), "note": ["none"] * (rows // 2) + [f"note {i}" for i in range(rows // 2)]})
    data = {
        "lazy": lambda: pl.from_arrow(table).lazy(),
        "relation": lambda: duckdb.from_arrow(table),
        "dataset": lambda: pa.dataset.dataset(table),
    }[kind]()
    sample = open_rows(data).sample(5_000)
    assert sample.num_rows == 5_000
    late = np.mean(np.asarray(sample.column("id")) >= rows // 2)
    assert 0.45 < late < 0.55


def test_repeated_rows_of_early_batches_stay_in_the_sample():
    early = np.concatenate([np.full(10_000, 7.0), np.tile([0.0, 1.0], 45_000)])
    batches = pa.table({"n": early}).to_batches(max_chunksize=1_000)
    sample = open_rows(pa.dataset.dataset(pa.Table.from_batches(batches))).sample(2_000)
    assert sample.num_rows == 2_000
    assert 150 < np.sum(np.asarray(sample.column("n")) == 7.0) < 250


@pytest.mark.parametrize("missing", [["-999"], [-999], -999, (-999.0,)])
@pytest.mark.parametrize("kind", ["csv", "pandas", "floats", "polars", "parquet"])
def test_a_number_that_stands_for_a_missing_cell_is_missing_everywhere(kind, missing, tmp_path):
    frame = pd.DataFrame(
        {"age": [31, -999, 40, 52], "score": [0.5, -999.0, -999.0, 1.5], "city": ["a", "b", "-999", "a"]}
    )
    if kind == "floats":
        frame = frame[["score"]]
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    data = {"csv": tmp_path / "a.csv", "parquet": tmp_path / "a.parquet", "polars": pl.from_pandas(frame)}.get(
        kind, frame
    )
    table = pa.Table.from_batches(open_rows(data, missing=missing).batches())
    assert [table.column(name).null_count for name in table.column_names] == ([2] if kind == "floats" else [1, 2, 1])
    model = NaiveBayes(missing=missing).fit(data, ["x", "y", "x", "y"])
    means = dict(zip(model.schema_.names, range(3), strict=False))
    assert abs(model.joint_.expected(model.schema_.table(table))[:, means["score"]]).max() <= 1.5
    if kind != "floats":
        assert model.schema_.column("age").range == (31.0, 52.0)


@pytest.mark.parametrize("typed", [True, False])
def test_a_stream_of_a_header_alone_has_columns(typed):
    rows = open_rows(io.BytesIO(b"age,city\n"), format="csv", typed=typed)
    assert rows.names == ("age", "city")
    assert rows.count() == 0
