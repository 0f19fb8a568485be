"""Mixtures whose fit is shown, interrupted, killed, and gone on with."""

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import likely
from likely import Classifier, Mixture
from likely.data import progress as progress_line
from likely.estimators import checkpoint as watching


def rows(kind="holes"):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=300)
    X = rng.normal(scale=1.5, size=(4, 3))[codes] + rng.normal(size=(300, 3))
    if kind == "sparse":
        return csr_matrix(rng.poisson(1.0 + codes[:, None] * rng.random(12), (300, 12)))
    X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "holes":
        return X
    words = np.array(["sun sea sand warm", "snow ice ski cold", "rain wind leaf grey", "bud bird lamb green"])
    said = [" ".join(rng.permutation(words[c].split() * 2)) + f" and this was day {i}" for i, c in enumerate(codes)]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "name": np.array([*"wxyz"])[codes], "said": said})


def interrupted(model, X, calls, kind=KeyboardInterrupt):
    """Fit, and raise when the watch has been called so often."""
    left, before = iter(range(calls)), watching.Checkpoint.__call__

    def watch(self, search):
        before(self, search)
        if next(left, None) is None:
            raise kind

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching.Checkpoint, "__call__", watch)
        with pytest.raises(kind):
            model.fit(X)


def parameters(model):
    found = [model.priors_, model.means_.ravel(), model.log_likelihoods_, [start[0] for start in model.starts_]]
    return [*np.concatenate(found).tolist(), model.n_iterations_, model.converged_]


@pytest.mark.parametrize("calls", [0, 1, 7, 12])
@pytest.mark.parametrize("kind", ["holes", "table", "sparse"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(kind, calls, tmp_path):
    X = rows(kind)
    options = {
        "n_components": 4,
        "n_starts": 4,
        "tolerance": 1e-4,
        "start": "k-means++" if kind != "sparse" else "assignment",
    }
    whole = Mixture(**options).fit(X)
    path = tmp_path / "groups.checkpoint"
    model = Mixture(**options, checkpoint=path)
    interrupted(model, X, calls)
    assert path.exists()
    assert not model.__sklearn_is_fitted__()
    assert parameters(model.fit(X)) == pytest.approx(parameters(whole), rel=0, abs=0, nan_ok=True)
    assert not path.exists()
    if kind != "sparse":
        assert np.array_equal(model.predict_proba(X), whole.predict_proba(X))


def test_a_fit_may_be_interrupted_again_and_again(tmp_path):
    X, path = rows(), tmp_path / "groups.checkpoint"
    whole, model = Mixture(4, tolerance=1e-4).fit(X), Mixture(4, tolerance=1e-4, checkpoint=str(path))
    for _ in range(3):
        interrupted(model, X, 5)
    assert parameters(model.fit(X)) == parameters(whole)


def test_a_component_begun_anew_stays_so(tmp_path):
    X = np.array([[1.0], [1.0], [4.0], [4.0]])
    model = Mixture(3, covariance="diagonal", checkpoint=tmp_path / "a", max_iterations=50)
    interrupted(model, X, 2)
    with pytest.warns(UserWarning, match="3 restarted at the rows explained worst"):
        model.fit(X)


KILLED = """
import sys, time
import numpy as np
from likely import Classifier, Mixture
from likely.estimators import checkpoint as watching
sys.path.insert(0, {folder!r})
from test_mixture_stopped import rows
watching._EVERY = 0
before = watching.Checkpoint.__call__
def slowly(self, search):
    before(self, search)
    time.sleep(0.05)
watching.Checkpoint.__call__ = slowly
Mixture(4, n_starts=3, tolerance=1e-4, checkpoint={path!r}).fit(rows())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_killed_process_loses_only_what_came_after(name, tmp_path):
    path = str(tmp_path / "groups.checkpoint")
    code = KILLED.format(folder=os.path.dirname(__file__), path=path)
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        while not os.path.exists(path) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.4)
        process.send_signal(getattr(signal, name))
        said = process.communicate()[1]
    assert process.returncode != 0
    assert "\r" not in said  # no line is shown where errors do not go to a terminal
    model, taken = Mixture(4, n_starts=3, tolerance=1e-4, checkpoint=path), []
    steps = watching.Checkpoint.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching.Checkpoint, "__call__", lambda self, search: (taken.append(search), steps(self, search)))
        model.fit(rows())
    whole = Mixture(4, n_starts=3, tolerance=1e-4).fit(rows())
    assert parameters(model) == parameters(whole)
    assert len(taken) < sum(start.iterations for start in whole.starts_)
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    X, path = rows(), tmp_path / "groups.checkpoint"
    interrupted(Mixture(3, checkpoint=path), X, 3)
    content = path.read_bytes()
    other = X.copy()
    other[5, 1] = 0.25
    message = "expected a checkpoint of a fit to these rows with these parameters, got that of another"
    for model, data, weights in (
        (Mixture(3, checkpoint=path), other, None),
        (Mixture(3, checkpoint=path), X.astype(np.float32), None),
        (Mixture(3, checkpoint=path), X[:-1], None),
        (Mixture(3, checkpoint=path), X, np.ones(300)),
        (Mixture(4, checkpoint=path), X, None),
        (Mixture(3, tied=True, checkpoint=path), X, None),
        (Mixture(3, random_state=1, checkpoint=path), X, None),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(data, sample_weight=weights)
    assert path.read_bytes() == content
    path.write_bytes(content[:-9])
    with pytest.raises(ValueError, match="expected a model file"):
        Mixture(3, checkpoint=path).fit(X)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="Mixture checkpoint"):
        likely.load(path)


def test_other_files_and_places_are_refused_at_once(tmp_path):
    X, path = rows(), tmp_path / "groups.likely"
    Mixture(3).fit(X).save(path)
    with pytest.raises(ValueError, match="expected a checkpoint of a Mixture, or no file yet, got another kind"):
        Mixture(3, checkpoint=path).fit(X)
    likely.load(path)
    with pytest.raises(FileNotFoundError):
        Mixture(3, checkpoint=tmp_path / "nowhere" / "groups").fit(X)


def test_a_saved_model_knows_no_checkpoint(tmp_path):
    X = rows()
    Mixture(3, checkpoint=tmp_path / "groups.checkpoint").fit(X).save(tmp_path / "groups.likely")
    same = likely.load(tmp_path / "groups.likely")
    assert same.checkpoint is None
    assert np.array_equal(same.predict_proba(X), Mixture(3).fit(X).predict_proba(X))


def test_an_error_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    X, path = rows(), tmp_path / "groups.checkpoint"
    monkeypatch.setattr(watching, "_EVERY", 0)
    interrupted(Mixture(3, checkpoint=path), X, 6, OSError)
    assert parameters(Mixture(3, checkpoint=path).fit(X)) == parameters(Mixture(3).fit(X))


class Terminal(io.StringIO):
    """What looks like one."""

    def isatty(self):
        return True


WHERE = [(True, Terminal, True), (False, Terminal, False), (True, io.StringIO, False)]


@pytest.mark.parametrize(("progress", "where", "shown"), WHERE)
def test_a_line_shows_how_far_a_long_fit_is(progress, where, shown, monkeypatch):
    monkeypatch.setattr(progress_line, "PATIENCE", -1)
    monkeypatch.setattr(progress_line, "AGAIN", -1)
    screen = where()
    monkeypatch.setattr(sys, "stderr", screen)
    model = Mixture(3, n_starts=2, progress=progress).fit(rows())
    said = screen.getvalue()
    assert bool(said) == shown
    if shown:
        lines = [line.strip() for line in said.split("\r") if line.strip()]
        assert any(line.startswith("start 2 of 2, step 1: log-likelihood -") for line in lines)
        assert f"{model.log_likelihoods_[0] / 300:.6f} for each row" in said
        assert said.endswith("\r")
        assert said.split("\r")[-2].strip() == ""  # nothing stays


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("where", [Terminal, io.StringIO])
def test_a_line_shows_which_components_of_a_class_are_tried(calibrate, where, monkeypatch):
    monkeypatch.setattr(progress_line, "PATIENCE", -1)
    monkeypatch.setattr(progress_line, "AGAIN", -1)
    screen = where()
    monkeypatch.setattr(sys, "stderr", screen)
    X = rows()
    y = np.where(np.arange(len(X)) % 2, "odd", "even\x1b[2J")
    Classifier(components="auto", covariance="full", calibrate=calibrate).fit(X, y)
    said = screen.getvalue()
    if where is Terminal:
        lines = {line.strip() for line in said.split("\r")}
        assert {"1 component of class odd", r"2 components of class even\x1b[2J", "2 components of class odd"} <= lines
        assert "\x1b" not in said
        assert said.split("\r")[-2].strip() == ""  # nothing stays
    else:
        assert said == ""


@pytest.mark.parametrize("put", [None, object()], ids=["none", "without isatty"])
def test_no_line_without_a_terminal(put, monkeypatch):
    monkeypatch.setattr(sys, "stderr", put)
    X = rows()
    assert Classifier(components=2).fit(X, np.arange(len(X)) % 2).class_count_.sum() == len(X)


def test_nothing_is_shown_of_a_short_fit(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    Mixture(3).fit(rows())
    assert sys.stderr.getvalue() == ""
