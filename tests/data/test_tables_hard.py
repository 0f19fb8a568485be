"""Tables that are hard: labels and weights that do not fit, batches that are not the whole, cells that must stay."""

import copy
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from likely import Classifier, NaiveBayes

BOTH = pytest.mark.parametrize("kind", [NaiveBayes, Classifier])


def frame(n: int = 200, seed: int = 0, k: int = 2) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    y = generator.integers(0, k, n)
    return pd.DataFrame(
        {
            "a": generator.normal(size=n) + y,
            "c": np.array(list("xyz"))[(generator.integers(0, 3, n) + y) % 3],
            "i": generator.poisson(3 + y),
            "b": generator.random(n) < 0.3 + 0.3 * y,
            "y": np.array(list("npqrs"))[y],
        }
    )


def test_weights_are_taken_along_into_a_sample():
    generator = np.random.default_rng(0)
    n = 120_000
    y = generator.integers(0, 2, n)
    bad = generator.random(n) < 0.5
    rows = pd.DataFrame({"x": generator.normal(size=n) + 3 * y, "c": "a", "y": np.where(bad, 1 - y, y)})
    model = Classifier().fit(rows, "y", sample_weight=np.where(bad, 0.0, 1.0))
    p = model.predict_proba(pd.DataFrame({"x": [-1.0, 4.0], "c": "a"}))[:, 1]
    assert p[0] < 0.01
    assert p[1] > 0.99


@BOTH
def test_too_many_labels_or_weights(kind):
    rows = frame()
    for call in (
        lambda: kind().fit(rows.drop(columns="y"), [*rows.y, *rows.y]),
        lambda: kind().evaluate(rows.drop(columns="y"), [*rows.y, *rows.y], folds=2),
        lambda: kind().fit(rows.drop(columns="y"), list(rows.y)[:-1]),
    ):
        with pytest.raises(ValueError, match="one label for each row"):
            call()
    with pytest.raises(ValueError, match="one weight for each row"):
        kind().fit(rows, "y", sample_weight=np.ones(300))
    with pytest.raises(ValueError, match="a weight for each row"):
        kind().fit(rows, "y", sample_weight=2.0)


@BOTH
def test_rows_without_labels_are_told_of(kind):
    rows = frame()
    rows.loc[3, "y"] = None
    with pytest.warns(UserWarning, match="1 rows without a label"):
        kind().fit(rows, "y")
    for empty in (frame().assign(y=None), frame().iloc[:0]):
        with pytest.raises(ValueError, match=r"expected rows with a label|expected columns"):
            kind().fit(empty, "y")
    with pytest.raises(ValueError, match="expected rows with a label"):
        kind().fit(frame().drop(columns="y").iloc[:0], [])


def test_parts_of_dates_can_be_given():
    rows = frame(300).assign(d=pd.date_range("2020", periods=300))
    model = NaiveBayes().fit(rows, "y")
    drawn, _ = model.sample(50, 0, given={"d.month": "May", "c": "x"})
    assert {day.month for day in drawn["d"].to_pylist()} == {5}
    assert {day.month for day in model.sample(5, 0, given={"d.month": "May"})[0]["d"].to_pylist()} == {5}
    assert model.sample(5, 0, given={0: 1.0})[0]["a"].to_pylist() == [1.0] * 5


def test_impute_leaves_cells_and_types():
    rows = frame(50)
    rows["i"] = pd.array([2**53 + 1 + 2 * k for k in range(50)], dtype="Int64")
    rows.loc[0, "i"] = pd.NA
    filled = NaiveBayes().fit(rows, "y").impute(rows)
    assert (filled.i[1:].astype(int) == rows.i[1:].astype(int)).all()
    codes = frame(50).assign(zip=pd.array(np.arange(50) % 3 + 1000, dtype="Int64"))
    codes.loc[0, "zip"] = pd.NA
    filled = NaiveBayes({"zip": "category"}).fit(codes, "y").impute(codes)
    assert filled.zip[1:].tolist() == codes.zip[1:].tolist()


@BOTH
def test_forget_all_batches_or_none(kind):
    rows = frame(150_000)
    model = kind().fit(rows, "y")
    before = model.class_count_.copy()
    rows.loc[149_999, "c"] = "never"
    with pytest.raises(ValueError, match="expected rows that the model has learned"):
        model.forget(rows, "y")
    np.testing.assert_array_equal(model.class_count_, before)


def test_a_category_that_was_forgotten_is_gone():
    rows = frame()
    rows.loc[7, "c"] = "single"
    model = NaiveBayes().fit(rows, "y").forget(rows.iloc[[7]], "y")
    assert "single" not in model.values_of("c")
    want = NaiveBayes().fit(rows.drop(index=7), "y")
    np.testing.assert_allclose(model.predict_proba(rows), want.predict_proba(rows), rtol=1e-9)


def test_a_model_that_chose_learns_elsewhere_and_is_merged():
    rows = frame(300, 6, 3)
    here = Classifier().fit(rows.iloc[:150], "y")
    elsewhere = here.emptied().partial_fit(rows.iloc[150:], "y")
    both = copy.deepcopy(here).partial_fit(rows.iloc[150:], "y")
    here.merge(elsewhere)
    assert here.class_count_.sum() == 300
    np.testing.assert_allclose(here.predict_proba(rows), both.predict_proba(rows), rtol=1e-9)
    with pytest.raises(ValueError, match="learned none"):
        Classifier().fit(rows, "y").emptied().log_density(rows)


def test_forgetting_nearly_all():
    rows = frame(200, 1, 3)
    model = Classifier().fit(rows, "y").forget(rows.iloc[1:], "y")
    assert np.isfinite(model.predict_proba(rows)).all()


@BOTH
def test_labels_of_files_keep_their_type(kind, tmp_path):
    rows = frame()
    rows["y"] = (rows.y == "p").astype(int)
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    model = kind().fit(path, "y").partial_fit(path, "y").forget(path, "y")
    assert model.classes_.tolist() == [0, 1]
    assert model.class_count_.sum() == 200


@BOTH
def test_no_batch_is_taken_for_the_whole(kind):
    rows = frame(150_000).sort_values("y")
    weights = np.ones(len(rows))
    weights[:70_000] = 0
    model = kind(priors={"n": 0.5, "p": 0.5}).fit(rows, "y", sample_weight=weights)
    assert model.priors_.tolist() == [0.5, 0.5]


MANY = """
import resource
import numpy as np
from likely import NaiveBayes
n = 40_000
rows = {"c": [f"name {i % 20_000}" for i in range(n)], "x": np.arange(n) * 1.0}
model = NaiveBayes({"c": "category"}).fit(rows, np.arange(n) % 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.sample(10_000, 0)
model.impute({"c": [None] * 5_000, "x": np.arange(5_000) * 1.0})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_many_categories_take_little_memory():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200  # MB; rows × categories would be 1,600


def test_columns_that_cannot_be_read_are_told_of():
    rows = frame(40).assign(lists=[[1]] * 40)
    with pytest.warns(UserWarning, match="cannot be read are left out: 'lists'"):
        NaiveBayes().fit(rows, "y")
    with pytest.raises(ValueError, match="by name, as a dict"):
        NaiveBayes(["gaussian", "categorical"]).fit(frame(), "y")


def test_fits_side_by_side_leave_threads_as_they_were():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: Classifier().fit(frame(), "y"), range(12)))
    assert threads() == before
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(frame()), models[0].predict_proba(frame()))


def test_small_things():
    rows = frame()
    model = NaiveBayes().fit(rows, "y")
    assert model.score(rows, "y") == model.score(rows, rows.y)
    with pytest.raises(ValueError, match="missing"):
        NaiveBayes(unlabelled=None).fit(rows.drop(columns="y"), [*rows.y[:-1], pd.NA])
    huge = rows.assign(i=[*rows.i[:-1], 10**300])
    assert np.isfinite(NaiveBayes({"i": "integer"}).fit(huge.astype({"i": float}), "y").predict_proba(rows)).all()


def test_text_of_any_width_is_written():
    import io

    import pyarrow as pa

    from likely.data.write import write_rows

    table = pa.table({"a": pa.array(["x", None, 'q"'], pa.large_string()), "b": pa.array(["u", "v,w", ""])})
    out = io.BytesIO()
    write_rows([table], out, "csv")
    assert out.getvalue().decode() == 'a,b\nx,u\n,"v,w"\n"q""",\n'
