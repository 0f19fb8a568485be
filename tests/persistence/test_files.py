"""Models that were saved and loaded are the models that they were, to the last bit."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import CASES, Case, learn, learn_more, tables
from hypothesis import HealthCheck, Phase, given, settings
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_iris

import likely
import likely.sklearn
from likely import GaussianDiscriminant, GaussianPrior, NaiveBayes, NotFittedError
from likely.families import Bernoulli, Gaussian
from likely.persistence import file as files
from likely.sklearn import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
)

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 2.0], [1.0, 1.0], [3.0, 5.0]])
Y = np.array([0, 0, 0, 1, 1, 1])


def loaded(model):
    """Return what comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.likely")
        assert os.listdir(folder) == ["model.likely"]
        return likely.load(f"{folder}/model.likely")


def assert_same_bits(one, two):
    assert (one is None) == (two is None)
    if one is not None:
        assert (one.dtype.kind, one.shape) == (two.dtype.kind, two.shape)
        assert one.dtype.kind in "UTO" or one.dtype == two.dtype
        assert one.tolist() == two.tolist() if one.dtype.kind in "UTO" else one.tobytes() == two.tobytes()


def assert_same_statistics(one, two):
    assert type(one) is type(two)
    mine, theirs = one._state, two._state
    assert mine.columns == theirs.columns
    assert [(type(p.family), p.columns) for p in mine.parts] == [(type(p.family), p.columns) for p in theirs.parts]
    for a, b in zip(
        (mine.statistics.weights, *mine.statistics.blocks),
        (theirs.statistics.weights, *theirs.statistics.blocks),
        strict=True,
    ):
        assert a.axes == b.axes
        assert (a.lost is None) == (b.lost is None)
        assert_same_bits(a.origin, b.origin)
        for these, those in ((a.sums, b.sums), (a.labels, b.labels), (a.lost or {}, b.lost or {})):
            assert list(these) == list(those)
            for name, array in these.items():
                assert_same_bits(array, those[name])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_loaded_model_is_the_model_and_goes_on_as_it_does(case: Case):
    @settings(max_examples=5, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(data=tables(case))
    def holds(data):
        rows = case.table(data.X)
        model = learn(case, data)
        same = loaded(model)
        assert repr(same) == repr(model)
        assert_same_statistics(model, same)
        assert_same_bits(model.predict_log_proba(rows), same.predict_log_proba(rows))
        more = learn_more(case, model, data)
        assert_same_statistics(more, learn_more(case, same, data))
        again = loaded(more)  # with what rounding has taken
        assert_same_statistics(more, again)
        assert_same_bits(more.predict_log_proba(rows), again.predict_log_proba(rows))
        assert_same_statistics(learn(case, data).merge(more), loaded(learn(case, data)).merge(again))
        for each in (more, again):
            each.forget(rows, data.y, data.weights)
        assert_same_statistics(more, again)

    holds()


FACES = [
    (GaussianNB, {"priors": [0.2, 0.3, 0.5], "var_smoothing": 1e-6}),
    (MultinomialNB, {"alpha": np.array([0.5, 1.0, 2.0, 0.1])}),
    (MultinomialNB, {"fit_prior": False, "class_prior": (0.2, 0.3, 0.5)}),
    (ComplementNB, {"norm": True, "fit_prior": False}),
    (BernoulliNB, {"binarize": 3.0, "fit_prior": False}),
    (CategoricalNB, {"min_categories": [9, 9, 9, 9]}),
    (LinearDiscriminantAnalysis, {}),
    (LinearDiscriminantAnalysis, {"solver": "lsqr", "shrinkage": "auto", "priors": [0.2, 0.3, 0.5]}),
    (LinearDiscriminantAnalysis, {"solver": "eigen", "shrinkage": 0.1, "n_components": 1}),
    (QuadraticDiscriminantAnalysis, {"reg_param": 0.1, "store_covariance": True}),
]


@pytest.mark.parametrize(("face", "parameters"), FACES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_faces(face, parameters):
    cells, species = load_iris(return_X_y=True, as_frame=True)
    cells = np.floor(cells) if face is CategoricalNB else cells
    y = species.map({0: "setosa", 1: "versicolor", 2: "virginica"})
    model = face(**parameters).fit(cells, y)
    same = loaded(model)
    assert repr(same) == repr(model)
    assert_same_statistics(model, same)
    assert_same_bits(model.predict_log_proba(cells), same.predict_log_proba(cells))
    assert_same_bits(model.feature_names_in_, same.feature_names_in_)
    for attribute in [name for name in dir(type(model)) if name.endswith("_") and name[0] != "_"]:
        assert str(getattr(model, attribute, None)) == str(getattr(same, attribute, None))
    for each in (model, same):
        each.partial_fit(cells[::2], y[::2]).merge(loaded(each)).forget(cells[::3], y[::3])
    assert_same_statistics(model, same)


def test_the_categories_of_text_come_back():
    rows = [["red", 1], ["red", 0], ["yellow", 2], [None, 1]]
    model = CategoricalNB().fit(rows, ["apple", "apple", "banana", "banana"])
    same = loaded(model)
    assert same._reader.categories == model._reader.categories == {0: ("red", "yellow")}
    assert same.sample(5, 0)[0].tolist() == model.sample(5, 0)[0].tolist()
    assert_same_statistics(model.partial_fit([["blue", 1]], ["apple"]), same.partial_fit([["blue", 1]], ["apple"]))


def test_the_precision_of_directions_comes_back():
    model = LinearDiscriminantAnalysis().fit(X.astype(np.float32), Y)
    assert_same_bits(model.transform(X), loaded(model).transform(X))
    assert loaded(model).scalings_.dtype == np.float32


@pytest.mark.parametrize(
    "labels",
    [
        *(np.array([0, 1], dtype=kind) for kind in (bool, np.int8, np.uint8, np.int64, np.uint64, np.float32, float)),
        np.array(["no", "yes"]),
        np.array(["", "ünï\nα\"'\\"]),
        np.array(["\ud800", "\U0001f427"]),
        np.array(["no", "yes"], dtype=object),
        np.array([3, 10**30], dtype=object),
        np.array(["no", "yes"], dtype=np.dtypes.StringDType()),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_keep_their_type(labels):
    model = NaiveBayes().fit(X, labels[Y])
    same = loaded(model)
    assert same.classes_.dtype == model.classes_.dtype
    assert same.predict(X).tolist() == model.predict(X).tolist()
    assert_same_statistics(model.partial_fit(X, labels[Y]), same.partial_fit(X, labels[Y]))


def test_labels_come_back_in_the_order_of_bytes_of_this_machine():
    assert loaded(NaiveBayes().fit(X, np.array([1, 2], dtype=">i4")[Y])).classes_.dtype == np.int32


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayes(priors={0: 0.25, 1: 0.75}),
        NaiveBayes(priors=np.array([0.25, 0.75])),
        NaiveBayes((Gaussian(tied=0.5), "poisson"), pseudo_rows=np.float32(0.1)),
        NaiveBayes(np.array(["gaussian", "ignore"])),
        NaiveBayes("ignore"),
        NaiveBayes(Bernoulli(threshold=float("inf"))),
        GaussianDiscriminant(pseudo_rows=GaussianPrior(np.zeros(2), [[2.0, 0.1], [0.1, 1.0]], 3)),
    ],
    ids=str,
)
def test_parameters_come_back(model):
    same = loaded(model.fit(X, Y))
    assert repr(same) == repr(model).replace("np.float32(0.1)", "0.10000000149011612")
    assert_same_bits(model.predict_log_proba(X), same.predict_log_proba(X))
    assert_same_statistics(model.merge(same), same.merge(loaded(same)))


def test_a_model_that_cannot_be_solved_yet_is_saved_all_the_same():
    model = GaussianDiscriminant(shrinkage=0).partial_fit(X[:1], Y[:1], classes=[0, 1])
    same = loaded(model)
    assert_same_bits(model.partial_fit(X, Y).predict_proba(X), same.partial_fit(X, Y).predict_proba(X))


def test_parameters_set_after_fit_do_not_change_what_was_learned():
    model = NaiveBayes("gaussian").fit(X, Y).set_params(columns="poisson", priors=[0.1, 0.9])
    same = loaded(model)
    assert repr(same) == repr(model)
    assert_same_bits(model.predict_log_proba(X), same.predict_log_proba(X))


def test_a_discriminant_keeps_the_settings_of_its_fit():
    model = LinearDiscriminantAnalysis(store_covariance=True).fit(X, Y)
    model.set_params(solver="lsqr", store_covariance=False)
    same = loaded(model)
    assert repr(same) == repr(model)
    assert_same_bits(model.transform(X), same.transform(X))
    assert_same_bits(model.covariance_, same.covariance_)


class Mine(NaiveBayes):
    pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Mine().fit(X, Y), ["own estimators", "Mine", "not code"]),
        (lambda: NaiveBayes().fit(X, Y).set_params(smoothing=len), ["smoothing=<built-in function len>", "not code"]),
        (lambda: NaiveBayes().fit(X, np.array(["2020", "2021"], dtype="M8[D]")[Y]), ["classes", "datetime64"]),
        (lambda: NaiveBayes().fit(X, np.array([(1, 2), (3, 4)], dtype="i,i")[Y]), ["classes", "convert"]),
        (lambda: GaussianNB(priors=pd.Series([0.5, 0.5])).fit(X, Y), ["priors=", "numbers, text, lists"]),
        (
            lambda: QuadraticDiscriminantAnalysis(solver="eigen", covariance_estimator=LedoitWolf()).fit(X, Y),
            ["covariance_estimator=LedoitWolf()", "data, not code"],
        ),
        (
            lambda: (
                LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=LedoitWolf())
                .fit(X, Y)
                .set_params(covariance_estimator=None)
            ),
            ["EstimatedGaussian", "data, not code"],
        ),
    ],
)
def test_what_no_file_can_hold_is_refused_in_a_sentence(make, words, tmp_path):
    model = make()
    with pytest.raises(ValueError, match=r"^expected ") as caught:
        model.save(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value
    assert os.listdir(tmp_path) == []


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises((NotFittedError, ValueError), match="not fitted yet"):
        NaiveBayes().save(tmp_path / "model")


def test_paths_are_those_of_the_system(tmp_path):
    model = NaiveBayes().fit(X, Y)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        likely.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"nowhere/model'"):
        model.save(tmp_path / "nowhere" / "model")
    with pytest.raises(IsADirectoryError):
        likely.load(tmp_path)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OSError, match="circle"):
        likely.load(tmp_path / "circle")
    (tmp_path / "circle").unlink()
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_file_has_the_permissions_of_a_new_file_and_a_link_stays_a_link(tmp_path):
    model = NaiveBayes().fit(X, Y)
    (tmp_path / "other").write_text("")
    model.save(tmp_path / "model")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)
    (tmp_path / "link").symlink_to(tmp_path / "other")
    model.save(str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert_same_statistics(model, likely.load(tmp_path / "other"))


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(failing, tmp_path, monkeypatch):
    path = tmp_path / "model"
    NaiveBayes().fit(X, Y).save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match=r"No space left on device: .*model'"):
        NaiveBayes().fit(X * 2, Y).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path, monkeypatch):
    sync, calls = os.fsync, []

    def only_first(descriptor):
        calls.append(descriptor)
        if len(calls) > 1:
            raise OSError(22, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", only_first)
    NaiveBayes().fit(X, Y).save(tmp_path / "model")
    assert len(calls) == 2
    assert likely.load(tmp_path / "model").class_count_.tolist() == [3, 3]


def test_every_bit_of_an_array_survives(tmp_path):
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324]).view(np.int64) | np.array([1, 0, 0, 0, 0, 0])
    arrays = {"odd": odd.view(np.float64), "none": np.empty((0, 3)), "one": np.array(7), "turned": X.T, "yes": Y == 1}
    files.write(tmp_path / "a", {"text": "\ud800 α"}, arrays)
    header, found = files.read(tmp_path / "a")
    assert header == {"text": "\ud800 α", "version": 1}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert_same_bits(array, found[name])


def test_importing_likely_imports_no_safetensors():
    code = "import likely, sys; sys.exit('safetensors' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(likely.__file__).parent.parent).returncode == 0


@pytest.mark.parametrize("name", ["naive_bayes", "classifier", "components", "mixture", "text"])
def test_files_of_the_first_form_still_load(name):
    """Files of before classifiers knew what to do of cells that are missing only when rows are predicted."""
    folder = Path(__file__).parents[1] / "reference" / "files"
    known = json.loads((folder / "answers.json").read_text())[name]
    complete = [i for i, row in enumerate(known["rows"]) if isinstance(row, str) or row["island"] is not None]
    if name in ("classifier", "components"):  # which answer such rows better than they did
        complete = [i for i in complete if known["rows"][i]["flipper_length_mm"] is not None]
    rows = [known["rows"][i] for i in complete]
    model = likely.load(folder / f"{name}.likely")
    np.testing.assert_allclose(model.predict_proba(rows), np.array(known["probabilities"])[complete], rtol=1e-12)
