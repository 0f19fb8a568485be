"""What Classifier answers beside the class, by trees, by all of Model, or naively: of frames, matrices and files."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

import likely
from likely.data.table import Table
from likely.datasets import penguins
from likely.density.labelled_table import LabelledTable
from likely.statistics import Assignment

JOINTS = ("tree", "full", "naive")
every_joint = pytest.mark.parametrize("joint", JOINTS)
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


@pytest.fixture(scope="module")
def birds():
    return penguins()


@pytest.fixture(scope="module")
def models(birds):
    return {joint: likely.Classifier(joint=joint).fit(birds, "species") for joint in JOINTS}


@pytest.fixture(scope="module")
def matrix(birds):
    X = np.column_stack([np.array(birds[name].to_pylist(), dtype=float) for name in NUMBERS])
    return X, np.array(birds["species"].to_pylist())


def hidden(frame, seed=0):
    """A frame in which cells are missing, and which."""
    gone = np.random.default_rng(seed).random(frame.shape) < 0.2
    return frame.mask(gone), gone


@every_joint
def test_missing_cells_of_frames(models, birds, joint):
    frame = birds.to_pandas().drop(columns="species")
    holes = hidden(frame)[0]
    filled = models[joint].impute(holes)
    assert list(filled.columns) == list(frame.columns)
    assert not filled.isna().any(axis=None)
    np.testing.assert_array_equal(
        filled.to_numpy()[~holes.isna().to_numpy()], holes.to_numpy()[holes.notna().to_numpy()]
    )
    drawn = models[joint].impute(holes, how="draw", random_state=0)
    assert drawn.equals(models[joint].impute(holes, how="draw", random_state=0))
    assert set(drawn["island"]) <= set(frame["island"])
    for other in (pl.from_pandas(holes), pa.Table.from_pandas(holes, preserve_index=False)):
        found = models[joint].impute(other)
        assert type(found) is type(other)
        found = found.to_pandas() if isinstance(found, pa.Table) else pd.DataFrame(found.to_dict(as_series=False))
        np.testing.assert_array_equal(found.astype(object).to_numpy(), filled.astype(object).to_numpy())


def test_trees_fill_cells_better_than_independent_columns(birds):
    frame = birds.to_pandas().dropna().reset_index(drop=True)
    rest, held = frame.iloc[::2], frame.iloc[1::2].drop(columns="species").reset_index(drop=True)
    holes, gone = hidden(held)
    errors = {}
    for joint in JOINTS:
        filled = likely.Classifier(joint=joint).fit(rest, "species").impute(holes)
        errors[joint] = np.mean(
            [
                np.sqrt(np.mean((filled[name] - held[name])[gone[:, held.columns.get_loc(name)]] ** 2))
                / held[name].std()
                for name in NUMBERS
            ]
        )
        sex = gone[:, held.columns.get_loc("sex")]
        errors[joint] -= (filled["sex"] == held["sex"])[sex].mean()
    assert errors["tree"] < errors["naive"] - 0.1
    assert errors["full"] < errors["naive"] - 0.1


@every_joint
def test_a_matrix_of_numbers(matrix, joint):
    X, y = matrix
    model = likely.Classifier(joint=joint).fit(X, y)
    filled = model.impute(X, y)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    rows, labels = model.sample(200, random_state=0, given={0: 40.0})
    assert rows.shape == (200, 4)
    assert (rows[:, 0] == 40.0).all()
    assert (labels == "Gentoo").mean() < 0.1  # which have longer bills
    assert model.log_density(X).shape == (len(X),)
    far = X[~np.isnan(X).any(axis=1)][:1] * 5
    assert model.log_density(far)[0] < model.log_density(X).min()


@every_joint
def test_what_is_known_of_the_class_is_used(models, joint):
    holes = pd.DataFrame({name: [None] * 3 for name in models[joint].feature_names_in_})
    filled = models[joint].impute(holes, ["Adelie", None, "Gentoo"])
    assert filled["island"][2] == "Biscoe"
    assert filled["body_mass_g"][0] < filled["body_mass_g"][1] < filled["body_mass_g"][2]
    rows, labels = models[joint].sample(500, random_state=0, given={"species": "Gentoo"})
    assert set(labels) == {"Gentoo"}
    assert np.mean(np.array(rows["island"].to_pylist()) == "Biscoe") > 0.9
    with pytest.raises(ValueError, match="expected labels among"):
        models[joint].impute(holes, ["Adelie", None, "Emperor"])


@every_joint
def test_the_class_is_compared_by_the_same_whatever_the_joint(models, birds, joint):
    np.testing.assert_array_equal(models[joint].predict_proba(birds), models["tree"].predict_proba(birds))
    one, other = (models[name].explain(birds.slice(0, 5)) for name in (joint, "tree"))
    np.testing.assert_array_equal(one.cells, other.cells)


@every_joint
def test_other_columns_are_predicted(models, birds, joint):
    p = models[joint].predict_proba(birds, of="island")
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    islands = models[joint].values_of("island")
    assert sorted(islands) == ["Biscoe", "Dream", "Torgersen"]
    right = islands[p.argmax(axis=1)] == np.array(birds["island"].to_pylist())
    assert right.mean() > 0.6
    with pytest.raises(ValueError, match="expected a column of categories"):
        models[joint].predict_proba(birds, of="body_mass_g")


@every_joint
@pytest.mark.parametrize("priors", [None, {"Adelie": 0.1, "Chinstrap": 0.7, "Gentoo": 0.2}], ids=["rows", "given"])
def test_draws_match_the_probabilities(birds, joint, priors):
    """Class and island, class and sex, by chi-square; p values times how many there are."""
    n = 8000
    model = likely.Classifier(joint=joint, priors=priors).fit(birds, "species")
    rows, labels = model.sample(n, random_state=0)
    empty = pd.DataFrame({name: [None] for name in model.feature_names_in_})
    prior = np.array([priors[label] for label in model.classes_]) if priors else None
    if prior is None:
        prior = model.class_count_ / model.class_count_.sum()
    found = []
    for column, (k, label) in product(("island", "sex"), enumerate(model.classes_)):
        state = model.fitted()
        codes = np.array([k], dtype=np.int32)
        values = model.values_of(column)
        p = state.answering.column_posterior(state.reader.read(empty), state.reader.column(column), codes)[1][0]
        own = np.array(rows[column].to_pylist(), dtype=object)[labels == label]
        counts = np.array([(own == value).sum() for value in values])
        expected = n * prior[k] * p
        large = expected > 5
        counts, expected = counts[large], expected[large]
        if joint == "full":  # whose classes are as often as its members say, near the proportions
            expected *= counts.sum() / expected.sum()
        found.append(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts)))
    assert min(found) * len(found) > 1e-3


@every_joint
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files(models, birds, joint, suffix, tmp_path):
    path = tmp_path / f"birds.{suffix}"
    if suffix == "csv":
        birds.to_pandas().to_csv(path, index=False)
    else:
        pq.write_table(birds, path)
    model = likely.Classifier(joint=joint).fit(str(path), "species")
    np.testing.assert_allclose(model.log_density(str(path)), models[joint].log_density(birds), rtol=1e-9)


@every_joint
def test_a_saved_model_answers_as_before(models, birds, joint, tmp_path):
    model = models[joint]
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    assert again.joint == joint
    holes = hidden(birds.to_pandas().drop(columns="species"))[0]
    np.testing.assert_array_equal(again.log_density(birds), model.log_density(birds))
    assert again.impute(holes, how="draw", random_state=1).equals(model.impute(holes, how="draw", random_state=1))
    assert again.sample(20, random_state=0)[0].equals(model.sample(20, random_state=0)[0])
    np.testing.assert_array_equal(again.predict_proba(birds, of="sex"), model.predict_proba(birds, of="sex"))
    more = birds.slice(0, 40)
    one, other = again.partial_fit(more, "species"), likely.load(tmp_path / "model.likely").partial_fit(more, "species")
    np.testing.assert_array_equal(one.log_density(birds), other.log_density(birds))
    assert (one.log_density(birds) != model.log_density(birds)).any()


@every_joint
def test_batches_forgetting_and_merging(birds, joint):
    first, second, third = (
        birds.slice(0, 344).take(np.random.default_rng(0).permutation(344)),
        *(birds.slice(start, 60) for start in (0, 200)),
    )
    make = lambda: likely.Classifier(joint=joint).fit(first, "species")  # noqa: E731
    together = make().partial_fit(second, "species").partial_fit(third, "species").log_density(birds)
    turned = make().partial_fit(third, "species").partial_fit(second, "species")
    np.testing.assert_allclose(turned.log_density(birds), together, rtol=1e-8)
    merged = make().merge(*(make().emptied().partial_fit(part, "species") for part in (second, third)))
    np.testing.assert_allclose(merged.log_density(birds), together, rtol=1e-8)
    left = merged.forget(third, "species").forget(second, "species")
    np.testing.assert_allclose(left.log_density(birds), make().log_density(birds), rtol=1e-8)


def test_rows_without_a_label(birds):
    frame = birds.to_pandas()
    frame.loc[::3, "species"] = None
    with pytest.warns(UserWarning, match="115 rows without a label"):
        ignored = likely.Classifier(unlabelled=0.0).fit(frame, "species")
    counted = likely.Classifier(unlabelled=1.0).fit(frame, "species")
    for model, rows in ((ignored, frame["species"].notna().sum()), (counted, len(frame))):
        assert model.fitted().table.joint.rows == rows
        assert model.fitted().table.joint.members[0].sums.weight[-1] == rows
        assert np.isfinite(model.log_density(birds)).all()


@pytest.mark.parametrize(
    "settings",
    [{"calibrate": False}, {"components": 2}, {"covariance": "full"}, {"together": ["island", "sex"]}],
    ids=str,
)
def test_settings_of_the_naive_joint_take_it(birds, settings):
    model = likely.Classifier(**settings).fit(birds, "species")
    assert model.fitted().table is None
    (name,) = settings
    with pytest.raises(ValueError, match=rf"expected joint='naive' with {name}="):
        likely.Classifier(joint="full", **settings).fit(birds, "species")


def test_families_and_texts_take_the_naive_joint(birds):
    assert likely.Classifier({"body_mass_g": "gaussian"}).fit(birds, "species").fitted().table is None
    assert likely.Classifier({"body_mass_g": "number"}).fit(birds, "species").fitted().table is not None
    texts = birds.append_column("note", pa.array([f"seen near the {i}th stone of the shore" for i in range(344)]))
    assert likely.Classifier({"note": "text"}).fit(texts, "species").fitted().table is None
    with pytest.raises(ValueError, match="expected joint='tree', 'full' or 'naive', got 'forest'"):
        likely.Classifier(joint="forest").fit(birds, "species")


@pytest.mark.parametrize("weight", [1, 2])
def test_a_few_rows_take_the_naive_joint(birds, weight):
    few = birds.take(np.arange(0, 344, 344 // 38)[: 39 // weight])
    weights = np.full(len(few), float(weight))
    for settings, rows, taken in (
        ({}, weights, False),
        ({}, weights + 1 / len(few) + 1, True),
        ({"joint": "full"}, weights, True),
    ):
        model = likely.Classifier(**settings).fit(few, "species", sample_weight=rows)
        assert (model.fitted().table is not None) == taken
    more = likely.Classifier().fit(few, "species").partial_fit(birds, "species")
    assert more.fitted().table is None
    assert np.isfinite(more.log_density(birds)).all()


def test_too_many_columns_or_classes_take_the_naive_joint():
    rng = np.random.default_rng(0)
    for columns, classes, reads in ((1000, 100, True), (1000, 101, False), (1001, 2, False)):
        known = Assignment(np.arange(classes), np.zeros(40, dtype=np.int32))
        for kind in ("tree", "full"):
            assert LabelledTable.reads(Table(np.zeros((40, columns))), known, kind) == reads
    X, y = rng.normal(size=(1001, 2)), np.arange(1001)
    assert likely.Classifier().fit(X, y).fitted().table is None
    assert likely.Classifier().fit(X, y % 100).fitted().table is not None
