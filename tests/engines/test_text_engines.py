"""Texts in partitions, and in files: whatever keeps them, the model is that of the texts in one place."""

import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import Frames, arrow_parts, spark_frame, split
from sklearn.base import clone
from texts import made

import likely
from likely import TextClassifier
from likely.text import documents as streams

MODELS = {
    "discounted": TextClassifier(),
    "characters": TextClassifier((1, 3), unit="characters", max_features=500),
    "textbook": TextClassifier(1, calibrate=False),
    "normalized": TextClassifier(1, calibrate=False, counts="log", normalize=True, idf=True),
}
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def reviews(n=600, seed=0):
    """Texts, some of which come again, are missing or have no words."""
    texts, y = made(n, seed=seed)
    texts[20:25], y[20:25] = [texts[3]] * 5, y[3]
    texts[7], texts[50], texts[8] = None, None, " "
    return pd.DataFrame({"review": texts, "mood": y})


@pytest.mark.parametrize("drawn", [150, 6000])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_any_partitions_give_the_model_of_a_stream_and_of_a_list(model, count, drawn, monkeypatch):
    monkeypatch.setattr("likely.ensemble.discounting.ENOUGH", drawn)
    monkeypatch.setattr(streams, "_MOST", 97)
    frame = reviews()
    texts, y = frame.review.tolist(), frame.mood.tolist()
    streamed = clone(model).fit(iter(texts), y).predict_proba(texts)
    listed = clone(model).fit(texts, y).predict_proba(texts)
    spread = clone(model).fit(Frames(split(frame, count)), "mood")
    assert spread.text_column_ == "review"
    assert spread.class_count_.tolist() == frame.mood.value_counts().sort_index().tolist()
    np.testing.assert_allclose(spread.predict_proba(texts), streamed, **CLOSE)
    np.testing.assert_allclose(spread.predict_proba(texts), listed, **CLOSE)


@pytest.mark.parametrize("seed", [1, 2])
def test_words_as_frequent_as_in_languages(seed):
    """Few words are in most texts, so that much of the evidence for and against a class cancels, up to rounding."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, 4000)
    texts = [
        " ".join(f"w{min(v, 50_000) + (7 * c if v % 3 == 0 else 0)}" for v in generator.zipf(1.3, length))
        for c, length in zip(y, generator.integers(3, 120, 4000), strict=True)
    ]
    frame = pd.DataFrame({"review": texts, "mood": y})
    expected = TextClassifier().fit(iter(texts), y).predict_proba(texts)
    for count in (2, 7, 40):
        spread = TextClassifier().fit(Frames(split(frame, count)), "mood")
        np.testing.assert_allclose(spread.predict_proba(texts), expected, **CLOSE)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_who_works_first_does_not_change_a_bit(model, monkeypatch):
    monkeypatch.setattr("likely.ensemble.discounting.ENOUGH", 150)
    frame = reviews()
    found = [
        clone(model).fit(Frames(split(frame, 7), order), "mood").predict_proba(frame)
        for order in (range(7), [6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4])
    ]
    np.testing.assert_array_equal(found[1:], found[:1] * 2)


def test_a_class_of_one_partition_only_an_empty_one_and_one_without_texts(monkeypatch):
    monkeypatch.setattr("likely.ensemble.discounting.ENOUGH", 150)
    frame = reviews().sort_values("mood", ignore_index=True)
    frame.loc[:119, "review"] = None
    parts = [*split(frame, 5), frame.iloc[:0], frame.iloc[:0]]
    assert parts[0].review.isna().all()
    assert parts[4].mood.nunique() == 1
    whole = TextClassifier().fit(frame.review, frame.mood).predict_proba(frame.review)
    found = TextClassifier().fit(Frames(parts), "mood")
    np.testing.assert_allclose(found.predict_proba(frame), whole, **CLOSE)
    np.testing.assert_allclose(TextClassifier().fit(Frames(parts[::-1]), "mood").predict_proba(frame), whole, **CLOSE)
    with pytest.raises(ValueError, match="expected rows with a label, got none"):
        TextClassifier().fit(Frames(parts[5:]), "mood")


def test_labels_that_are_numbers_or_yes_and_no_keep_their_type():
    frame = reviews(300)
    for labels in (frame.mood.factorize()[0], frame.mood == "class 1", frame.mood.astype("category")):
        found = TextClassifier().fit(Frames(split(frame.assign(mood=labels), 7)), "mood")
        whole = TextClassifier().fit(frame.review, labels)
        assert found.classes_.tolist() == whole.classes_.tolist()
        assert found.classes_.dtype.kind == np.asarray(whole.classes_.tolist()).dtype.kind
        np.testing.assert_allclose(found.predict_proba(frame), whole.predict_proba(frame.review), **CLOSE)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_rows_without_a_label(share, tmp_path):
    frame = reviews(300)
    gone = np.arange(300) % 10 < 10 * share
    frame["mood"] = frame.mood.mask(gone)
    frame.to_parquet(tmp_path / "reviews.parquet")
    texts, labels = frame.review.tolist(), frame.mood.astype(object).where(~gone, None).tolist()
    # More than half of the rows are worth learning from, and are, since labels are expected better with them.
    left_out = pytest.warns(UserWarning, match="^90 rows without a label") if share < 0.5 else nullcontext()
    with left_out:
        whole = TextClassifier().fit(texts, labels).predict_proba(texts)
    for table in (frame, Frames(split(frame, 7)), tmp_path / "reviews.parquet"):
        with left_out:
            model = TextClassifier().fit(table, "mood")
        assert model.unlabelled_ == (None if share < 0.5 else 1.0)
        np.testing.assert_allclose(model.predict_proba(texts), whole, **CLOSE)
    learned = TextClassifier(unlabelled=0.5).fit(texts, labels).predict_proba(texts)
    for table in (frame, Frames(split(frame, 7)), tmp_path / "reviews.parquet"):
        model = TextClassifier(unlabelled=0.5).fit(table, "mood")
        assert model.unlabelled_ == 0.5
        np.testing.assert_array_equal(model.predict_proba(texts), learned)
    with pytest.warns(UserWarning, match=rf"^{gone.sum()} rows without a label in 'mood' are left out$"):
        TextClassifier(unlabelled=None).fit(Frames(split(frame, 7)), "mood")


def formats(frame, folder):
    """Return the same table as everything that it may be."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    (folder / "parts").mkdir()
    for number, part in enumerate(split(frame, 3)):
        part.to_parquet(folder / "parts" / f"{number}.parquet", index=False)
        part.to_csv(folder / f"part-{number}.csv", index=False)
        part.to_json(folder / f"part-{number}.jsonl", orient="records", lines=True)
    return {
        "pandas": lambda: frame,
        "polars": lambda: polars.from_pandas(frame),
        "lazy": lambda: polars.from_pandas(frame).lazy(),
        "arrow": lambda: table,
        "batches": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=50)),
        "dict": lambda: table.to_pydict(),
        "records": lambda: table.to_pylist(),
        "relation": lambda: duckdb.from_arrow(table),
        "folder": lambda: folder / "parts",
        "csv": lambda: str(folder / "*.csv"),
        "json lines": lambda: str(folder / "*.jsonl"),
        "paths": lambda: sorted((folder / "parts").iterdir()),
        "frames": lambda: iter(split(frame, 4)),
    }


def test_tables_from_anywhere_give_the_model_of_a_list(tmp_path, monkeypatch):
    monkeypatch.setattr("likely.ensemble.discounting.ENOUGH", 150)
    frame = reviews(300).replace({"review": {" ": None}})  # which is a missing cell in CSV files
    texts = frame.review.tolist()
    whole = TextClassifier().fit(texts, frame.mood)
    expected = whole.predict_proba(texts)
    texts_too = ("paths", "frames")  # what is asked about: lists of files are texts, and so are iterators
    for name, table in formats(frame, tmp_path).items():
        model = TextClassifier().fit(table(), "mood")
        np.testing.assert_allclose(model.predict_proba(texts), expected, **CLOSE, err_msg=name)
        if name not in texts_too:
            np.testing.assert_array_equal(model.predict_proba(table()), model.predict_proba(texts), err_msg=name)
            assert model.predict(table()).tolist() == whole.predict(texts).tolist()
            assert model.score(table(), "mood") == whole.score(texts, frame.mood)
    np.testing.assert_array_equal(TextClassifier().fit(frame, "mood").predict_proba(texts), expected)
    model = TextClassifier(refine=1)
    expected = clone(model).fit(texts, frame.mood).predict_proba(texts)
    np.testing.assert_allclose(model.fit(str(tmp_path / "*.csv"), "mood").predict_proba(texts), expected, **CLOSE)


def test_weights_of_rows_of_a_file(tmp_path):
    frame, weights = reviews(300), np.arange(300) % 3
    frame.to_parquet(tmp_path / "reviews.parquet")
    expected = TextClassifier().fit(frame.review, frame.mood, weights).predict_proba(frame.review)
    found = TextClassifier().fit(tmp_path / "reviews.parquet", "mood", weights)
    np.testing.assert_allclose(found.predict_proba(frame), expected, **CLOSE)


def test_the_column_of_texts_is_found_and_remembered(tmp_path):
    frame = reviews(100).assign(stars=np.arange(100) % 5, town=np.where(np.arange(100) % 2, "Oslo", "Rome"))
    model = TextClassifier().fit(frame, "mood")
    assert model.text_column_ == "review"
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    assert again.text_column_ == "review"
    shuffled = frame[["town", "review"]]
    np.testing.assert_array_equal(again.predict_proba(shuffled), model.predict_proba(frame.review))
    np.testing.assert_array_equal(again.predict_log_proba(shuffled), model.predict_log_proba(frame.review))
    np.testing.assert_array_equal(again.log_density(shuffled), model.log_density(frame.review))
    assert str(again.explain(shuffled[:1])) == str(model.explain(frame.review[:1]))
    assert len(again.predict(frame[:0])) == 0
    assert not hasattr(model.fit(frame.review, frame.mood), "text_column_")
    with pytest.raises(TypeError, match="expected a column of texts, got a table"):
        model.predict(frame)
    with pytest.raises(ValueError, match="expected the column of texts, got 'review': it has 'town'"):
        again.predict(frame[["town"]])


def test_other_ways_of_learning_take_tables():
    frame = reviews(300)
    first, second = frame[:200], frame[200:]
    expected = TextClassifier().partial_fit(first.review, first.mood).partial_fit(second.review, second.mood)
    model = TextClassifier().partial_fit(first, "mood").partial_fit(Frames(split(second, 3)), "mood")
    assert model.text_column_ == "review"
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame.review))
    expected.forget(second.review, second.mood)
    model.forget(second, "mood")
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame.review))
    assert model.merge(TextClassifier().fit(second.review, second.mood)).class_count_.sum() == 300
    found = model.evaluate(frame, "mood", folds=3)
    assert found.log_loss == model.evaluate(frame.review, frame.mood, folds=3).log_loss


def test_what_is_wrong_is_one_sentence():
    frame = reviews(60)
    parts = split(frame, 3)
    numbers = [parts[0], parts[1].assign(review=np.arange(20)), parts[2]]
    with pytest.raises(TypeError, match=r"^partition 1: expected texts in column 'review', got int64: turn them into"):
        TextClassifier().fit(Frames(numbers), "mood")
    with pytest.raises(ValueError, match=r"^partition 2: expected the same columns as in the other .* 'review'"):
        TextClassifier().fit(Frames([*parts[:2], parts[2].rename(columns={"review": "text"})]), "mood")
    with pytest.raises(TypeError, match=r"^expected texts in column 'review', got double: turn them into strings"):
        TextClassifier().fit(frame.assign(review=1.5), "mood")
    several = frame.assign(stars=3, title="one two three four " + frame.index.astype(str))
    said = "expected one column of texts beside 'mood', got 'review' (text), 'stars' (integer), 'title' (text)"
    for table in (several, Frames(split(several, 2))):
        with pytest.raises(ValueError, match=re.escape(said) + ": select it and the labels"):
            TextClassifier().fit(table, "mood")
    with pytest.raises(ValueError, match="expected one column of texts beside 'mood', got none: select"):
        TextClassifier().fit(frame[["mood"]], "mood")
    with pytest.raises(ValueError, match="expected the name of a column as target, got 'mod': did you mean 'mood'"):
        TextClassifier().fit(frame, "mod")
    for refine in (1, "full"):
        with pytest.raises(ValueError, match=f"expected refine=0 of texts in partitions, got refine={refine!r}, which"):
            TextClassifier(refine=refine).fit(Frames(parts), "mood")
    with pytest.raises(TypeError, match="expected a column of texts, got a table"):
        TextClassifier().fit(frame, "mood").fit(frame, frame.mood)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_dask_frame_gives_the_model_of_all_texts(model, dask_frame, monkeypatch):
    import dask

    monkeypatch.setattr("likely.ensemble.discounting.ENOUGH", 150)
    frame = reviews()
    spread, whole = dask_frame(frame, 20), clone(model).fit(frame, "mood")
    with dask.config.set(scheduler="threads"):
        learned = clone(model).fit(spread, "mood")
        np.testing.assert_allclose(learned.predict_proba(frame), whole.predict_proba(frame), **CLOSE)
        asked = learned.predict_proba(spread)
        answers = [f"p(class {c})" for c in range(3)]
        assert list(asked.columns) == ["review", "mood", *answers]
        np.testing.assert_array_equal(asked.compute()[answers], learned.predict_proba(frame))
        assert learned.predict(spread).compute().prediction.tolist() == learned.predict(frame).tolist()
        np.testing.assert_array_equal(learned.predict_log_proba(spread), learned.predict_log_proba(frame))
        assert learned.score(spread, "mood") == learned.score(frame, "mood")


@pytest.mark.filterwarnings("ignore")
def test_a_ray_dataset_gives_the_model_of_all_texts(ray_data):
    frame = reviews()
    spread, whole = ray_data.from_arrow(arrow_parts(frame, 7)), TextClassifier().fit(frame, "mood")
    learned = TextClassifier().fit(spread, "mood")
    np.testing.assert_allclose(learned.predict_proba(frame), whole.predict_proba(frame), **CLOSE)
    spread.context.execution_options.preserve_order = True
    answers = [f"p(class {c})" for c in range(3)]
    asked = learned.predict_proba(spread).to_pandas()
    np.testing.assert_array_equal(asked[answers], learned.predict_proba(frame))
    assert learned.predict(spread).to_pandas().prediction.tolist() == learned.predict(frame).tolist()
    numbers = ray_data.from_pandas([frame[:300], frame[300:].assign(review=5)])
    with pytest.raises(TypeError, match=r"^partition 1: expected texts in column 'review', got int64"):
        TextClassifier().fit(numbers, "mood")


@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_gives_the_model_of_all_texts(spark, monkeypatch):
    monkeypatch.setattr("likely.engines.spark.FAN_IN", 2)
    monkeypatch.setattr("likely.engines.spark.MANY", 2)
    frame = reviews()
    spread, whole = spark_frame(spark, frame, 3), TextClassifier().fit(frame, "mood")
    learned = TextClassifier().fit(spread, "mood")
    np.testing.assert_allclose(learned.predict_proba(frame), whole.predict_proba(frame), **CLOSE)
    answers = [f"p(class {c})" for c in range(3)]
    asked = learned.predict_proba(learned.predict(spread)).toPandas()
    assert list(asked.columns) == ["review", "mood", "prediction", *answers]
    np.testing.assert_array_equal(asked[answers], learned.predict_proba(asked[["review"]]))
    assert sorted(asked.prediction) == sorted(learned.predict(frame))
