"""What is measured of a model of a whole table on rows that it has not learned."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import likely
from likely.datasets import penguins
from likely.model.evaluation import shuffled_folds

NUMBERS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year")
CATEGORIES = ("species", "island", "sex")


@pytest.fixture(scope="module")
def birds():
    return penguins().take(np.random.default_rng(0).permutation(344))


@pytest.fixture(scope="module")
def model(birds):
    return likely.Model().fit(birds.slice(0, 200))


def cells(table, name):
    return np.array([np.nan if x is None else x for x in table[name].to_pylist()])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_measured_as_they_are_predicted(model, birds, name):
    new = birds.slice(200)
    found = model.evaluate(new).measures[name]
    truth = cells(new, name)
    there = ~np.isnan(truth)
    error = (model.predict(new, of=name) - truth)[there]
    assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()) / truth[there].std(), rel=1e-9)
    assert found["r2"] == pytest.approx(1 - (error**2).sum() / ((truth[there] - truth[there].mean()) ** 2).sum())
    ends = model.predict_interval(new, of=name)
    assert found["coverage"] == pytest.approx(((ends[:, 0] <= truth) & (truth <= ends[:, 1]))[there].mean())
    crps = []
    for row in new.filter(pa.array(there)).to_pylist():
        known = {key: value for key, value in row.items() if value is not None and key != name}
        answer = model.distribution(name, known)
        apart = np.abs(answer.values[:, None] - answer.values)
        crps.append(answer.p @ np.abs(answer.values - row[name]) - 0.5 * answer.p @ apart @ answer.p)
    assert found["crps"] == pytest.approx(np.mean(crps) / truth[there].std(), rel=1e-7)


@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_are_measured_as_they_are_predicted(model, birds, name):
    new = birds.slice(200)
    found = model.evaluate(new).measures[name]
    truth = new[name].to_pylist()
    there = [i for i, value in enumerate(truth) if value is not None]
    p, values = model.predict_proba(new, of=name), model.values_of(name).tolist()
    predicted = model.predict(new, of=name)
    assert found["accuracy"] == pytest.approx(np.mean([predicted[i] == truth[i] for i in there]))
    assert found["log_loss"] == pytest.approx(-np.mean([np.log(p[i, values.index(truth[i])]) for i in there]))
    assert found["most_frequent"] == max(truth.count(value) for value in values) / len(there)


def test_the_density_is_the_score(model, birds):
    found = model.evaluate(birds.slice(200))
    assert found.log_density == pytest.approx(model.score(birds.slice(200)), rel=1e-12)
    assert found.rows == 144
    assert repr(found) == "TableEvaluation(144 rows, 8 columns)"
    table = found.as_table()
    assert table["column"].to_pylist() == birds.schema.names
    assert table["kind"].to_pylist().count("number") == 5
    assert table["cells"].to_pylist() == [144 - birds.slice(200)[name].null_count for name in birds.schema.names]
    for row in table.to_pylist():
        measured = {name: x for name, x in row.items() if x is not None}
        assert measured.items() >= found.measures[row["column"]].items()
        assert f"{row['cells']:,}" in str(found)


def test_a_weight_of_2_is_a_row_twice_and_of_0_is_none(model, birds):
    new, weights = birds.slice(200), np.random.default_rng(0).integers(0, 3, 144)
    repeated = new.take(np.repeat(np.arange(144), weights))
    weighed, twice = model.evaluate(new, sample_weight=weights), model.evaluate(repeated)
    assert weighed.log_density == pytest.approx(twice.log_density, rel=1e-12)
    for name, measures in twice.measures.items():
        assert weighed.measures[name] == pytest.approx(measures, rel=1e-9)


def test_folds_are_models_of_the_others(birds):
    found = likely.Model("tree").evaluate(birds, folds=4, random_state=3)
    fold_of = shuffled_folds(np.zeros(344, dtype=np.int64), 4, 3)
    sums = None
    for fold in range(4):
        part = birds.filter(pa.array(fold_of == fold))
        own = likely.Model("tree").fit(birds.filter(pa.array(fold_of != fold))).evaluate(part).sums
        sums = own if sums is None else sums.plus(own)
    assert found.log_density == pytest.approx(sums.log_density / 344, rel=1e-9)
    for name, column in sums.columns.items():
        assert found.measures[name] == pytest.approx(column.measures, rel=1e-9)
    assert "the other 3 of 4 folds" in str(found)
    assert repr(found) == "TableEvaluation(344 rows, 8 columns, 4 folds)"


def test_folds_leave_the_model_as_it_was(birds, model):
    before = model.log_density(birds)
    model.evaluate(birds.slice(0, 60), folds=2)
    np.testing.assert_array_equal(model.log_density(birds), before)
    unfitted = likely.Model("tree")
    unfitted.evaluate(birds.slice(0, 60), folds=2)
    assert not unfitted.__sklearn_is_fitted__()


def test_categories_that_were_never_learned_are_told_and_not_measured(birds):
    known = likely.Model("tree").fit(birds.filter(pa.array([s != "Gentoo" for s in birds["species"].to_pylist()])))
    found = known.evaluate(birds)
    row = next(row for row in found.as_table().to_pylist() if row["column"] == "species")
    assert (row["cells"], row["unseen"]) == (220, 124)
    assert "124 never seen" in str(found)


def test_rare_categories_are_told_apart():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["p", "q"], 200).astype(object), "b": rng.normal(size=200)})
    frame.loc[:2, "a"] = ["one", "two", "two"]
    model = likely.Model("tree").fit(frame)
    p, values = model.predict_proba(frame, of="a"), model.values_of("a").tolist()
    loss = -np.mean([np.log(p[i, values.index(value)]) for i, value in enumerate(frame.a)])
    assert model.evaluate(frame).measures["a"]["log_loss"] == pytest.approx(loss)


def test_columns_of_all_kinds():
    rng = np.random.default_rng(0)
    n = 150
    x = rng.normal(size=n)
    table = pa.table(
        {
            "huge": x * 1e300,
            "tiny": x * 1e-200,
            "constant": np.full(n, 7.5),
            "yes": x > 0,
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=round(100 * v)) for v in x],
            "text": ["a boat on the sea" if v > 0 else "a road in the land" for v in x],
            "none": pa.nulls(n, pa.float64()),
        }
    )
    model = likely.Model(columns={"text": "text"}).fit(table)
    found = model.evaluate(table)
    assert set(found.measures) == set(table.schema.names) - {"text"}
    for name in ("huge", "tiny", "day"):
        assert 0.7 < found.measures[name]["r2"] < 1, name
        assert 0 < found.measures[name]["crps"] < 0.4
    assert found.measures["yes"]["accuracy"] > 0.9
    assert found.log_density == pytest.approx(model.score(table))
    rows = {row["column"]: row for row in found.as_table().to_pylist()}
    assert rows["constant"]["r2"] is rows["none"]["coverage"] is None
    assert rows["none"]["cells"] == 0
    assert rows["constant"]["coverage"] == 1
    assert "constant" in str(found)


def test_a_matrix_and_a_file(birds, model, tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3)) + np.random.default_rng(1).normal(size=(90, 1))
    assert set(likely.Model("tree").fit(X).evaluate(X).measures) == {"0", "1", "2"}
    birds.slice(200).to_pandas().to_csv(tmp_path / "new.csv", index=False)
    from_file, here = model.evaluate(str(tmp_path / "new.csv")), model.evaluate(birds.slice(200))
    assert from_file.log_density == pytest.approx(here.log_density, rel=1e-12)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda _, b: likely.Model().evaluate(b), "not fitted yet"),
        (lambda m, b: m.evaluate(b.slice(0, 0)), "at least one row to evaluate"),
        (lambda _, b: likely.Model("tree").evaluate(b, folds=1), "2 folds or more"),
        (lambda _, b: likely.Model("tree").evaluate(b.slice(0, 3), folds=4), "as many rows as folds"),
        (lambda m, b: m.evaluate(b, sample_weight=[1.0]), "one weight for each row"),
        (lambda _, b: likely.Model("forest").evaluate(b, folds=3), "kind among"),
    ],
)
def test_what_cannot_be_evaluated(model, birds, ask, words):
    with pytest.raises(ValueError, match=words):
        ask(model, birds)
