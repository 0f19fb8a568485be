"""Rows that are held out where they lie: what is measured is what a plain loop over folds in memory finds."""

import json
import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from engines import Frames, people, spark_frame, spark_session, split

from likely import Classifier, GaussianDiscriminant, NaiveBayes
from likely.cli import run
from likely.data import folds
from likely.data.folds import FrequentItems, HashedFolds, fold_seed
from likely.data.hashing import row_keys
from likely.data.labelled import LabelledRows, Labelling
from likely.data.rows import open_rows
from likely.estimators import cross_validation, fitting
from likely.estimators.fitting import infer_schema
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.readers import numbers_of


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    for module in (cross_validation, fitting):
        monkeypatch.setattr(module, "SAMPLE", 100)


def numbers(n=600, holes=False):
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(generator.normal(size=(n, 3)) @ [[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1]], columns=["a", "b", "c"])
    frame["income"] = np.where(frame.a + frame.c + generator.normal(size=n) > 0, "high", "low")
    if holes:
        frame["b"] = frame.b.mask(np.arange(n) % 5 == 0)
    return frame


def repeated():
    """Return rows of which some come a few times, and some again and again."""
    frame = people(200)
    parts = [frame, frame.iloc[:40], frame.iloc[:15], *[frame.iloc[[3]]] * 60, *[frame.iloc[[8]]] * 45]
    return pd.concat(parts).sample(frac=1, random_state=0, ignore_index=True)


def drawn_again(n=900):
    frame = people(150)
    return frame.iloc[np.random.default_rng(0).integers(0, len(frame), n)].reset_index(drop=True)


def with_dates_and_texts():
    frame = repeated().drop(columns="visits")
    frame["since"] = pd.Timestamp("2024-02-01") + pd.to_timedelta(np.arange(len(frame)) % 40, unit="D")
    frame["note"] = [f"word{i % 7} {income} word{i % 3}" for i, income in enumerate(frame.income)]
    frame["note"] = frame.note.mask(np.arange(len(frame)) % 4 == 0)
    return frame


CASES = {
    "naive Bayes": (NaiveBayes(), people()),
    "naive Bayes by kinds": (NaiveBayes({"visits": "category"}), people()),
    "naive Bayes of repeated rows": (NaiveBayes(), repeated()),
    "naive Bayes by kinds of repeated rows": (NaiveBayes({"visits": "category"}), repeated()),
    "dates and texts": (NaiveBayes({"note": "text"}), with_dates_and_texts()),
    "priors": (NaiveBayes({"visits": "number"}, priors=[0.4, 0.6]), people()),
    "classifier": (Classifier(), people()),
    "classifier of repeated rows": (Classifier(), repeated()),
    "classifier of rows drawn again and again": (Classifier(), drawn_again()),
    "classifier, not calibrated": (Classifier(calibrate=False), people()),
    "quadratic discriminant": (GaussianDiscriminant(), numbers()),
    "linear discriminant": (GaussianDiscriminant(tied=True), numbers()),
    "diagonal discriminant with holes": (GaussianDiscriminant("diagonal"), numbers(holes=True)),
}
EVERY = pytest.mark.parametrize("case", CASES)


def keys_of(model, frame, seed):
    rows = open_rows(frame)
    by_numbers = isinstance(model, GaussianDiscriminant)
    schema = numbers_of(rows, but="income") if by_numbers else infer_schema(rows, "income", model.plan().overrides())
    return row_keys(*LabelledRows(rows, Labelling(schema, "income")).all(), seed)


def folds_of(model, frame, count, seed):
    """Deal rows out one by one: by their keys, and those that come again and again as copies that are told apart."""
    keys = keys_of(model, frame, seed)
    found = (keys % np.uint64(count)).astype(int)
    distinct, counts = np.unique(keys, return_counts=True)
    often = counts > max(1, len(keys) // folds.MOST)
    copies = HashedFolds.assigned(count, seed, distinct[often], counts[often]).copies
    for key, each in zip(distinct[often], copies, strict=True):
        found[keys == key] = np.repeat(np.arange(count), each)
    return found


def plainly(model, frame, count=4, random_state=0):
    """Evaluate by a loop over folds, in which a new model is fitted."""
    places = folds_of(model, frame, count, fold_seed(random_state))
    classes = np.unique(frame.income)
    probabilities = np.zeros((len(frame), len(classes)))
    for fold in range(count):
        held = places == fold
        new = type(model)(**model.get_params()).fit(frame[~held], "income")
        asked = new.predict_proba(frame[held].drop(columns="income"))
        probabilities[np.ix_(held, np.searchsorted(classes, new.classes_))] = asked
    return Evaluation(classes, np.searchsorted(classes, frame.income), probabilities, np.ones(len(frame)), count)


@cache
def expected_of(case):
    return plainly(*CASES[case])


def check(found, expected, tolerance=1e-12):
    assert isinstance(found, SummedEvaluation)
    assert found.classes.tolist() == expected.classes.tolist()
    assert (found.rows, found.folds) == (expected.rows, expected.folds)
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    for name, value in expected.measures.items():
        assert found.measures[name] == pytest.approx(value, rel=tolerance, abs=1e-14), name
    assert str(found) == str(expected)


@EVERY
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_any_partitions_measure_what_a_loop_over_folds_does(case, count):
    model, frame = CASES[case]
    check(model.evaluate(Frames(split(frame, count)), "income", folds=4), expected_of(case))
    assert not hasattr(model, "classes_")


@EVERY
def test_a_stream_measures_what_a_loop_over_folds_does(case, tmp_path):
    model, frame = CASES[case]
    for part, rows in enumerate(split(frame, 3)):
        rows.to_parquet(tmp_path / f"{part}.parquet", row_group_size=50)
    check(model.evaluate(tmp_path, "income", folds=4), expected_of(case))
    batches = (rows for rows in split(frame, 3))
    check(model.evaluate(batches, "income", folds=4, random_state=5), plainly(model, frame, random_state=5))


@EVERY
def test_who_works_first_does_not_change_a_bit(case):
    model, frame = CASES[case]
    found = [
        model.evaluate(Frames(split(frame, 7), order), "income", folds=3)
        for order in (range(7), [6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 1, 5, 2, 4])
    ]
    assert found[0].measures == found[1].measures == found[2].measures


@EVERY
def test_where_rows_lie_does_not_matter(case):
    model, frame = CASES[case]
    expected = model.evaluate(Frames(split(frame, 3)), "income", folds=3)
    mixed = frame.sample(frac=1, random_state=1)
    found = model.evaluate(Frames([mixed.iloc[:0], *split(mixed, 4), mixed.iloc[:0]]), "income", folds=3)
    check(found, expected)


@pytest.mark.parametrize("repeats", [False, True])
def test_missing_cells_under_a_full_covariance_are_expected_without_the_fold(repeats):
    frame = numbers(holes=True)
    if repeats:
        frame = pd.concat([frame, *[frame.iloc[:1]] * 30, *[frame.iloc[1:2]] * 30], ignore_index=True)
    model = GaussianDiscriminant()
    found = [model.evaluate(Frames(split(frame, count)), "income", folds=3) for count in (1, 6)]
    check(found[0], found[1], tolerance=1e-9)
    expected = plainly(model, frame, 3)
    # Steps end when they gain nothing, here and there.
    assert found[0].log_loss == pytest.approx(expected.log_loss, rel=1e-6)
    assert found[0].brier == pytest.approx(expected.brier, rel=1e-6)


def test_a_class_in_few_rows_and_one_in_a_single_row():
    frame = people()
    frame.loc[[5, 100, 101], "income"] = "middle"
    frame.loc[7, "income"] = "none"
    for model in (NaiveBayes(), NaiveBayes({"visits": "category"})):
        check(model.evaluate(Frames(split(frame, 5)), "income", folds=4), plainly(model, frame))
    found = Classifier().evaluate(Frames(split(frame, 5)), "income", folds=4)
    assert found.classes.tolist() == ["high", "low", "middle", "none"]
    assert found.confusion.sum(axis=1).tolist() == [*frame.income.value_counts()[found.classes]]
    assert np.isfinite(found.log_loss)
    few = numbers()
    few.loc[[5, 100, 101, 102, 400, 401], "income"] = "middle"
    model = GaussianDiscriminant(tied=True)
    check(model.evaluate(Frames(split(few, 5)), "income", folds=4), plainly(model, few))


@pytest.mark.filterwarnings("ignore:.*without a label")
def test_whole_labels_are_the_same_where_some_are_missing():
    frame = people().assign(income=lambda frame: np.where(frame.income == "high", 1.0, 2.0))
    frame["income"] = frame.income.mask(np.arange(600) % 97 == 0)
    model = NaiveBayes({"visits": "category"})
    expected = plainly(model, frame.dropna(subset="income", ignore_index=True).astype({"income": int}))
    check(model.evaluate(Frames(split(frame, 40)), "income", folds=4), expected)


@pytest.mark.parametrize("model", [NaiveBayes(), NaiveBayes({"visits": "category"}), Classifier()], ids=repr)
def test_rows_without_a_label_are_left_out_and_told_of_once(model):
    frame = people()
    frame.loc[frame.index % 9 == 0, "income"] = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = model.evaluate(Frames(split(frame, 5)), "income", folds=4)
    assert [str(each.message) for each in told] == ["67 rows without a label in 'income' are left out"]
    check(found, plainly(model, frame.dropna(subset="income", ignore_index=True)))


def test_if_rows_without_a_label_are_learned_from_all_are_held():
    frame = people(300)
    frame.loc[frame.index % 3 > 0, "income"] = None
    found = NaiveBayes(unlabelled=1.0).evaluate(Frames(split(frame, 5)), "income", folds=3)
    np.testing.assert_array_equal(
        found.probabilities, NaiveBayes(unlabelled=1.0).evaluate(frame, "income", folds=3).probabilities
    )


def test_few_rows_and_lists_of_labels_or_weights_are_evaluated_in_memory(monkeypatch, tmp_path):
    frame = people()
    frame.to_parquet(tmp_path / "people.parquet")
    weights = np.linspace(0.5, 2, len(frame))
    expected = NaiveBayes().evaluate(frame, "income", folds=3, sample_weight=weights)
    for rows in (tmp_path / "people.parquet", Frames(split(frame, 4))):
        found = NaiveBayes().evaluate(rows, "income", folds=3, sample_weight=weights)
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    labels = frame.pop("income").tolist()
    frame.to_parquet(tmp_path / "people.parquet")
    found = NaiveBayes().evaluate(tmp_path / "people.parquet", labels, folds=3)
    np.testing.assert_array_equal(found.probabilities, NaiveBayes().evaluate(frame, labels, folds=3).probabilities)
    monkeypatch.setattr(cross_validation, "SAMPLE", 600)
    found = NaiveBayes().evaluate(Frames(split(people(), 4)), "income", folds=3)
    np.testing.assert_array_equal(found.probabilities, NaiveBayes().evaluate(people(), "income", folds=3).probabilities)


def test_a_frame_of_numbers_with_the_name_of_the_labels():
    frame = numbers(holes=True)
    found = GaussianDiscriminant().evaluate(frame, "income", folds=3)
    expected = GaussianDiscriminant().evaluate(frame.drop(columns="income"), frame.income, folds=3)
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)


def test_what_cannot_be_is_said_in_one_sentence():
    rows = Frames(split(people(), 3))
    with pytest.raises(ValueError, match="expected at least as many rows as folds, 601, got 600: use fewer folds"):
        NaiveBayes().evaluate(rows, "income", folds=601)
    with pytest.raises(ValueError, match="expected at least as many rows as folds, 30, got 20: use fewer folds"):
        NaiveBayes().evaluate(Frames(split(people(20), 3)), "income", folds=30)
    with pytest.raises(ValueError, match="expected 2 folds or more, got 1"):
        NaiveBayes().evaluate(rows, "income", folds=1)
    with pytest.raises(ValueError, match="expected columns of numbers, got 'town' of kind category"):
        GaussianDiscriminant().evaluate(rows, "income")
    found = NaiveBayes().evaluate(rows, "income", folds=2)
    with pytest.raises(
        AttributeError, match="expected rows in memory to keep probabilities of each, got 600 that stay"
    ):
        found.probabilities  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'wrong'"):
        found.wrong  # noqa: B018
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_folds_are_even_and_equal_rows_are_spread_over_all():
    frame = people(20_000).assign(age=np.random.default_rng(0).normal(size=20_000))
    places = folds_of(NaiveBayes(), frame, 10, fold_seed(0))
    others = folds_of(NaiveBayes(), frame, 10, fold_seed(1))
    # Of 2,000 rows that are assigned at random, five standard deviations are some 210.
    assert np.abs(np.bincount(places, minlength=10) - 2000).max() < 210
    assert np.abs(np.bincount(places * 10 + others, minlength=100) - 200).max() < 5 * 200**0.5
    same = pd.concat([frame.iloc[:1]] * 20_000, ignore_index=True)
    assert np.abs(np.bincount(folds_of(NaiveBayes(), same, 10, fold_seed(0)), minlength=10) - 2000).max() < 210


def test_few_distinct_rows_are_evaluated_as_honestly_as_in_memory():
    """Were equal rows held out together, none would be predicted by a model that has seen any like it."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"x": generator.choice(["a", "b", "c"], 5000), "z": generator.choice(["k", "l"], 5000)})
    frame["income"] = np.where(generator.random(5000) < np.where(frame.x == "a", 0.8, 0.3), "high", "low")
    model = NaiveBayes(together=["x", "z"])
    here, there = model.evaluate(frame, "income"), model.evaluate(Frames(split(frame, 5)), "income")
    assert there.log_loss == pytest.approx(here.log_loss, abs=1e-3)
    assert there.accuracy == pytest.approx(here.accuracy, abs=1e-3)
    # Labels that are tossed cannot be expected: to have seen the copies of a row does not help to predict the others.
    frame["income"] = generator.choice(["high", "low"], 5000)
    assert model.evaluate(Frames(split(frame, 5)), "income").log_loss > np.log(2)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_rows_that_come_often_are_found_wherever_they_lie(count, monkeypatch):
    monkeypatch.setattr(folds, "MOST", 10)
    monkeypatch.setattr(cross_validation, "MOST", 10)
    generator = np.random.default_rng(0)
    keys = np.concatenate([generator.integers(0, 2**63, 500), np.repeat([7, 9], [300, 90]), np.repeat(11, 80)])
    keys = generator.permutation(keys).astype(np.uint64)
    parts = [FrequentItems.of(part) for part in np.array_split(keys, count)]
    found = parts[0]
    for part in parts[1:]:
        found = found.plus(part)
    assert len(found.keys) <= 10
    assert {7, 9} <= set(found.keys.tolist())  # more than one of ten
    for key, least in zip(found.keys, found.counts, strict=True):
        assert least <= (keys == key).sum() <= least + found.lost
    frame = repeated()
    expected = NaiveBayes().evaluate(Frames([frame]), "income", folds=4)
    check(NaiveBayes().evaluate(Frames(split(frame, count)), "income", folds=4), expected)
    check(expected, plainly(NaiveBayes(), frame))


def test_the_command_line_evaluates_large_files(capsys, tmp_path):
    frame = people()
    frame.to_csv(tmp_path / "people.csv", index=False)
    words = ["evaluate", str(tmp_path / "people.csv"), "-t", "income", "--model", "naive-bayes", "--folds", "4"]
    expected = NaiveBayes().evaluate(Frames(split(frame, 3)), "income", folds=4)
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 600
    assert found["confusion"] == expected.confusion.tolist()
    assert found["log_loss"] == pytest.approx(expected.log_loss, rel=1e-12)
    assert run(words) == 0
    assert f"{100 * expected.accuracy:.2f} %" in capsys.readouterr().out


ENGINES = ["naive Bayes by kinds of repeated rows", "classifier", "quadratic discriminant"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ENGINES)
def test_dask(case):
    frames = pytest.importorskip("dask.dataframe")
    dask = pytest.importorskip("dask")
    model, frame = CASES[case]
    with dask.config.set(scheduler="threads"):
        found = model.evaluate(frames.from_pandas(frame, npartitions=20, sort=False), "income", folds=4)
    check(found, expected_of(case))


@pytest.mark.filterwarnings("ignore")
def test_spark(monkeypatch):
    with spark_session(monkeypatch, master="local[2]") as spark:
        for case in ENGINES:
            model, frame = CASES[case]
            found = model.evaluate(spark_frame(spark, frame, 3), "income", folds=4)
            check(found, expected_of(case))


@pytest.mark.filterwarnings("ignore")
def test_ray(ray_data):
    for case in ENGINES:
        model, frame = CASES[case]
        found = model.evaluate(ray_data.from_pandas(split(frame, 6)), "income", folds=4)
        check(found, expected_of(case))
