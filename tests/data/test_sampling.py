"""What is drawn to choose by is the same wherever rows lie, and little of it travels."""

import numpy as np
import pandas as pd
import pytest
from engines import Frames

from likely.data import labelled, sources
from likely.data.distinct import sample_rows
from likely.data.labelled import LabelledRows, Labelling
from likely.data.rows import open_rows
from likely.data.schema import Schema
from likely.engines import rows_of

CUTS = {
    "one": [1000],
    "even": [100] * 10,
    "one of many times the size of others": [920, *[10] * 8],
    "of which some are empty": [0, 500, 0, 500, 0],
    "so small that none leaves rows out": [5] * 200,
}


@pytest.fixture(params=["all different", "some equal"])
def frame(request):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"a": generator.normal(size=1000), "town": generator.choice(["Oslo", "Rome"], 1000)})
    if request.param == "some equal":
        frame["a"] = frame.a.round(2)
    frame["label"] = np.where(generator.random(1000) < 0.3, "yes", "no")
    return frame


def cut(frame, sizes):
    ends = np.cumsum(sizes)
    assert ends[-1] == len(frame)
    return [frame.iloc[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def content(rows):
    """Return drawn rows as a frame, in one order."""
    table, (classes, codes, weights) = rows
    names = table.categories[1][table.cells[:, 1].astype(int)]
    columns = {"a": table.cells[:, 0], "town": names, "label": classes[codes], "weight": weights}
    return pd.DataFrame(columns).sort_values(["a", "town", "label"], ignore_index=True)


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_the_same_rows_are_drawn_from_any_partitions(cuts, frame):
    schema = Schema.infer(open_rows(frame)).without("label")
    rows = rows_of(Frames(cut(frame, cuts)))
    found = LabelledRows(rows, Labelling(schema, "label")).sample(120, 0)
    expected = sample_rows(*LabelledRows(open_rows(frame), Labelling(schema, "label")).all(), 120, 0)
    pd.testing.assert_frame_equal(content(found.rows), content(expected))
    assert (found.whole, found.labelled, found.unlabelled) == (False, 1000, 0)
    assert found.rows.table.rows == 120


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_few_rows_are_not_drawn_from(cuts, frame):
    schema = Schema.infer(open_rows(frame)).without("label")
    frame.loc[::4, "label"] = None
    found = LabelledRows(rows_of(Frames(cut(frame, cuts))), Labelling(schema, "label")).sample(1000, 0)
    assert (found.whole, found.labelled, found.unlabelled) == (True, 750, 250)
    expected = frame[frame.label.notna()]
    np.testing.assert_array_equal(np.sort(found.rows.table.cells[:, 0]), np.sort(expected.a))


def test_a_second_pass_is_only_made_where_one_partition_is_much_larger(frame):
    frame["a"] = np.random.default_rng(1).normal(size=1000)
    schema = Schema.infer(open_rows(frame)).without("label")
    passes = {}
    for name, sizes in CUTS.items():
        rows = rows_of(Frames(cut(frame, sizes)))
        LabelledRows(rows, Labelling(schema, "label")).sample(120, 0)
        passes[name] = rows.progress.done
    assert passes.pop("one of many times the size of others") == 2
    assert set(passes.values()) == {1}


def test_partitions_send_little_more_than_their_share(frame):
    schema = Schema.infer(open_rows(frame)).without("label")
    sent = []

    class Counting(Frames):
        def run(self, task, add):
            made = super().run(task, add)
            sent.extend(part.result.rows.table.rows for part in made)
            return made

    LabelledRows(rows_of(Counting(cut(frame, [100] * 10))), Labelling(schema, "label")).sample(50, 0)
    assert len(sent) == 10
    assert max(sent) == 4 * 50 / 10 + 10


def test_classes_and_categories_are_known_of_batches_of_which_no_row_is_drawn(monkeypatch, frame):
    monkeypatch.setattr(sources, "BATCH", 300)  # some ten rows
    monkeypatch.setattr(labelled, "_BATCHES", 5)
    frame.loc[990:992, ["label", "town"]] = "rare", "Lima"
    schema = Schema.infer(open_rows(frame)).without("label")
    without = 0
    for seed in range(9):
        rows, *_ = LabelledRows(rows_of(Frames(cut(frame, [400, 600]))), Labelling(schema, "label")).sample(12, seed)
        assert rows.assignment.classes.tolist() == ["no", "rare", "yes"]
        assert rows.table.categories[1].tolist() == ["Lima", "Oslo", "Rome"]
        without += "rare" not in rows.assignment.classes[rows.assignment.codes]
    assert without > 5
