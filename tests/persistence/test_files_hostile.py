"""Files that are broken, foreign or made to do harm are refused in a sentence."""

import json
import math
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from filebytes import apart, whole
from refusal import assert_refused
from safetensors.numpy import load, save

import likely
from likely import GaussianDiscriminant, KMeans, Mixture, NaiveBayes
from likely.persistence import file as files
from likely.sklearn import CategoricalNB

CELLS = np.arange(12.0).reshape(6, 2) % 5
LABELS = np.array(["a", "b"] * 3)


def png(path):
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(100))


def archive(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model", "{}")


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(b"{}"),
    "text": lambda path: path.write_text("a model, honestly " * 100),
    "JSON": lambda path: path.write_text(json.dumps({"kind": "NaiveBayes"})),
    "PNG": png,
    "zip": archive,
    "NumPy": lambda path: path.write_bytes(b"\x93NUMPY\x01\x00" + bytes(120)),
    "pickle": lambda path: path.write_bytes(pickle.dumps(NaiveBayes())),
    "zeros": lambda path: path.write_bytes(bytes(1000)),
    "safetensors": lambda path: path.write_bytes(save({"a": np.zeros(3)}, {"format": "pt"})),
    "no metadata": lambda path: path.write_bytes(save({"a": np.zeros(3)})),
    "a header that is no object": lambda path: path.write_bytes(save({"a": np.zeros(3)}, {"likely": "[1]"})),
    "NaN in the header": lambda path: path.write_bytes(save({}, {"likely": '{"version": NaN}'})),
    "deep": lambda path: path.write_bytes(save({}, {"likely": '{"version":1,"a":' + "[" * 10**5 + "]" * 10**5 + "}"})),
    "not quite as deep": lambda path: path.write_bytes(save({}, {"likely": '{"a":' + "[" * 60 + "]" * 60 + "}"})),
    "a key twice": lambda path: path.write_bytes(save({}, {"likely": '{"version":1,"version":1}'})),
    "no version": lambda path: path.write_bytes(save({}, {"likely": "{}"})),
    "version zero": lambda path: path.write_bytes(save({}, {"likely": '{"version":0}'})),
    "another kind": lambda path: files.write(path, {"kind": "os.system"}, {}),
    "another type": lambda path: path.write_bytes(whole(claiming([4], 8, "BF16"), bytes(8))),
    "a huge header": lambda path: path.write_bytes(struct.pack("<Q", 10**18) + b"{" + bytes(1000)),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_another_file_is_refused_in_a_sentence(make, tmp_path):
    make(tmp_path / "file")
    with pytest.raises(ValueError, match=r"^expected .*, got .*, in '.*file'") as caught:
        likely.load(tmp_path / "file")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no file"):
        likely.load(tmp_path / "pipe")


def test_a_newer_version_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "VERSION", 7)
    NaiveBayes().fit(CELLS, LABELS).save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"format version 7 where this likely reads up to 1 \(update it\)"):
        likely.load(tmp_path / "model")


def test_names_too_long_for_a_header_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="at most 1,000 bytes as JSON, got 1,"):
        NaiveBayes().fit(CELLS, LABELS).save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def claiming(shape, end, dtype="F64"):
    size = math.prod(shape) * 8 if end is None else end
    described = {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}
    return {"__metadata__": {"likely": json.dumps({"version": 1})}, "a": described}


@pytest.mark.parametrize("rest", [0, 8, 10**6])
@pytest.mark.parametrize("shape", [[10**9], [10**6, 10**6], [2**62, 4], [2**64], [0, 2**62, 2**62], [1] * 200], ids=str)
def test_an_array_larger_than_the_file_takes_no_memory(shape, rest, tmp_path):
    def refused():
        with pytest.raises(ValueError, match="expected a model file"):
            likely.load(tmp_path / "file")

    for end in (None, rest):  # where the array is said to end: where its shape does, or where the file does
        (tmp_path / "file").write_bytes(whole(claiming(shape, end), bytes(rest)))
        assert _peak(refused) < 2 * rest + 300_000


def test_a_file_takes_at_most_twice_its_size(tmp_path):
    path = tmp_path / "model"
    model = GaussianDiscriminant().fit(np.random.default_rng(0).normal(size=(400, 300)), np.arange(400) % 4)
    model.save(path)
    likely.load(path)  # imports
    size = path.stat().st_size
    assert size > 2_000_000
    assert _peak(lambda: likely.load(path)) < 2 * size + 500_000


def test_a_few_long_labels_take_no_memory(tmp_path):
    NaiveBayes().fit(CELLS, LABELS).save(tmp_path / "file")
    outer, rest = apart((tmp_path / "file").read_bytes())
    header = json.loads(outer["__metadata__"]["likely"])
    header["classes"]["items"] = ["x" * 10**6, *(f"y{i}" for i in range(10**4))]
    outer["__metadata__"]["likely"] = json.dumps(header)
    (tmp_path / "file").write_bytes(whole(outer, rest))
    with pytest.raises(ValueError, match="similar lengths"):
        likely.load(tmp_path / "file")


def test_a_few_large_numbers_of_categories_take_no_memory(tmp_path):
    CategoricalNB(min_categories=10).fit(CELLS, LABELS).save(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    numbers = [array for name, array in load(content).items() if array.dtype == np.int64 and array.tolist() == 10]
    assert len(numbers) == 1
    assert content.count(numbers[0].tobytes()) == 1
    (tmp_path / "file").write_bytes(content.replace(numbers[0].tobytes(), np.int64(10**9).tobytes()))
    with pytest.raises(ValueError, match="expected at most 67,108,864 classes × categories, got 4,000,000,000"):
        likely.load(tmp_path / "file")


def test_what_a_file_says_is_never_looked_up_as_a_module(tmp_path):
    """Loading imports nothing that the estimators do not: also where a file names modules."""
    NaiveBayes().fit(CELLS, LABELS).save(tmp_path / "file")
    outer, rest = apart((tmp_path / "file").read_bytes())
    outer["__metadata__"]["likely"] = outer["__metadata__"]["likely"].replace('"NaiveBayes"', '"antigravity.x"')
    (tmp_path / "file").write_bytes(whole(outer, rest))
    code = (
        "import likely, sys\n"
        "try: likely.load(sys.argv[1])\n"
        "except ValueError: sys.exit('antigravity' in sys.modules)\n"
        "sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "file"], cwd=tmp_path).returncode == 0


def _peak(do):
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def edited(path, edit):
    """Change what the header of a model file says."""
    outer, rest = apart(path.read_bytes())
    header = json.loads(outer["__metadata__"]["likely"])
    edit(header)
    outer["__metadata__"]["likely"] = json.dumps(header)
    path.write_bytes(whole(outer, rest))


@pytest.mark.parametrize("field", ["covariance", "rows"])
def test_a_prior_without_its_covariance_or_rows_is_refused(field, tmp_path):
    path = tmp_path / "mixture.likely"
    Mixture(2).fit(np.random.default_rng(0).normal(size=(40, 2))).save(path)

    def without(value):
        if isinstance(value, dict):
            if value.get("is") == "covariance prior":
                value["fields"][field] = None
            for each in value.values():
                without(each)
        elif isinstance(value, list):
            for each in value:
                without(each)

    edited(path, without)
    assert_refused(lambda: likely.load(path), "prior")


def test_centres_that_do_not_say_how_often_they_moved_go_on(tmp_path):
    path, rows = tmp_path / "centres.likely", np.random.default_rng(0).normal(size=(40, 2))
    KMeans(2).fit(rows).save(path)

    def without(value):
        if isinstance(value, dict):
            value.pop("n_iter_", None)
            for each in value.values():
                without(each)

    edited(path, without)
    assert likely.load(path).partial_fit(rows).n_iter_ == 1
