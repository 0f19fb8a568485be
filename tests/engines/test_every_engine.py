"""Every estimator on every engine: the model is that of all rows in one place."""

import numpy as np
import pandas as pd
import pytest
from engines import Frames, arrow_parts, groups, people, ray_session, spark_frame, spark_session

from likely import Classifier, GaussianDiscriminant, KMeans, Mixture, NaiveBayes, TextClassifier
from likely.estimators import cross_validation, fitting


@pytest.fixture(scope="module", params=["dask", "spark", "spark connect", "ray"])
def cut(request):
    """Cut a frame into partitions of an engine."""
    if request.param == "dask":
        from_pandas = pytest.importorskip("dask.dataframe").from_pandas
        yield lambda frame, count: from_pandas(frame, npartitions=count, sort=False)
    elif request.param == "ray":
        with ray_session() as data:
            yield lambda frame, count: data.from_arrow(arrow_parts(frame, count))
    else:
        where = {"master" if request.param == "spark" else "remote": "local[2]"}
        with pytest.MonkeyPatch.context() as patch, spark_session(patch, **where) as session:
            yield lambda frame, count: spark_frame(session, frame, count)


def texts(n=300, seed=0):
    generator = np.random.default_rng(seed)
    kind = generator.choice(["sport", "science"], n)
    words = {"sport": ["goal", "team", "win", "the", "of"], "science": ["atom", "law", "proof", "the", "of"]}
    return pd.DataFrame({"text": [" ".join(generator.choice(words[k], 8)) for k in kind], "label": kind})


def labelled():
    return groups(900).assign(label=lambda frame: np.where(frame.a + frame.b > 5, "far", "near"))


def with_holes():
    frame = labelled()
    frame["c"] = frame.c.mask(np.arange(len(frame)) % 7 == 0)
    return frame


LABELLED = {
    "NaiveBayes": (NaiveBayes(), people(), "income"),
    "Classifier": (Classifier(), people(), "income"),
    "GaussianDiscriminant": (GaussianDiscriminant(), labelled(), "label"),
    "GaussianDiscriminant, holes": (GaussianDiscriminant(), with_holes(), "label"),
    "TextClassifier": (TextClassifier(), texts(), "label"),
}
GROUPS = {
    "Mixture": (Mixture(3, tolerance=1e-10, progress=False), groups(900)),
    "KMeans": (KMeans(3, random_state=0), groups(900)),
}


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    for module in (cross_validation, fitting):
        monkeypatch.setattr(module, "SAMPLE", 200)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LABELLED)
def test_labelled_rows(name, cut):
    model, frame, y = LABELLED[name]
    asked = frame["text"] if "text" in frame else frame.drop(columns=y)
    in_one_place = model.fit(Frames([frame]), y).predict_proba(asked)
    np.testing.assert_allclose(model.fit(cut(frame, 5), y).predict_proba(asked), in_one_place, rtol=1e-11, atol=1e-13)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GROUPS)
def test_groups(name, cut):
    model, frame = GROUPS[name]
    in_one_place = model.fit(Frames([frame])).predict(frame)
    np.testing.assert_array_equal(model.fit(cut(frame, 5)).predict(frame), in_one_place)


@pytest.mark.filterwarnings("ignore")
def test_evaluation(cut):
    frame = people()
    here, there = (NaiveBayes().evaluate(rows, "income", folds=4) for rows in (Frames([frame]), cut(frame, 5)))
    np.testing.assert_array_equal(there.confusion, here.confusion)
    assert there.log_loss == pytest.approx(here.log_loss, rel=1e-12)
