"""Blocks of Ray, in whatever order they are made, by processes that may die."""

import operator
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from engines import MODELS, arrow_parts, people, slow, split

from likely import NaiveBayes
from likely.engines import PartitionedRows, Task, engine_of
from likely.estimators import fitting


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "blocks"), [("naive Bayes", "pandas"), ("classifier", "arrow")])
def test_a_ray_dataset_gives_the_model_of_all_rows(model, blocks, ray_data, monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 100)
    model, frame = MODELS[model], people()
    monkeypatch.setattr("likely.engines.ray.KEPT", 0.25 if blocks == "pandas" else 0)
    spread = (
        ray_data.from_pandas(split(frame, 20)) if blocks == "pandas" else ray_data.from_arrow(arrow_parts(frame, 20))
    )
    assert engine_of(spread).partitions == 20
    whole = model.fit(frame, "income").predict_proba(frame)
    learned = model.fit(spread, "income")
    np.testing.assert_allclose(learned.predict_proba(frame), whole, rtol=1e-12, atol=1e-14)
    assert learned.score(spread, "income") == learned.score(frame, "income")
    spread.context.execution_options.preserve_order = True
    asked = learned.predict_proba(spread)
    assert asked.columns() == [*frame.columns, "p(high)", "p(low)"]
    np.testing.assert_array_equal(asked.to_pandas()[["p(high)", "p(low)"]], learned.predict_proba(frame))
    assert learned.predict(spread).to_pandas().prediction.tolist() == learned.predict(frame).tolist()
    filled, here = learned.impute(spread).to_pandas(), learned.impute(frame)
    assert filled.columns.tolist() == frame.columns.tolist()
    assert filled.town.tolist() == here.town.tolist()
    np.testing.assert_array_equal(filled.age.astype(float), here.age)


def _first_comes_last(rows):
    time.sleep(0.5 if rows["number"][0].as_py() == 0 else 0)
    return rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kept", [0, 0.25], ids=["streamed", "kept"])
def test_ray_blocks_keep_their_numbers_whichever_is_made_first(kept, ray_data, monkeypatch):
    monkeypatch.setattr("likely.engines.ray.KEPT", kept)
    parts = [pa.table({"number": [i] * (i + 1)}) for i in range(5)]
    spread = ray_data.from_arrow(parts).map_batches(_first_comes_last, batch_size=None, batch_format="pyarrow")
    rows = PartitionedRows(engine_of(spread))
    assert rows.schema == parts[0].schema
    assert bool(rows.engine._first_run[1]) == bool(kept)
    assert rows.map(operator.methodcaller("count")) == [1, 2, 3, 4, 5]
    assert rows.reduce(operator.methodcaller("count"), operator.add) == 15
    assert [block.num_rows for block in rows.engine.contents()] == [1, 2, 3, 4, 5]
    assert not spread.context.execution_options.preserve_order


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_in_a_ray_block_is_told_in_one_sentence(ray_data):
    frames = split(people().assign(age=lambda frame: frame.age.astype(str)), 3)
    frames[2] = frames[2].assign(age="old")
    with pytest.raises(ValueError, match=r"^partition 2: expected a number in column 'age', got 'old'") as caught:
        NaiveBayes({"age": "number"}).fit(ray_data.from_pandas(frames), "income")
    assert caught.type is ValueError
    with pytest.raises(ValueError, match="expected a dataset with columns, got an empty one"):
        NaiveBayes().fit(ray_data.from_items([]), "income")


@dataclass(frozen=True)
class Deadly:
    """A task whose process dies when a partition comes to it for the first time."""

    task: Task
    folder: Path

    def wants(self, number):
        return self.task.wants(number)

    def __call__(self, number, content):
        try:
            (self.folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            return self.task(number, content)
        os._exit(1)


@slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["naive Bayes", "classifier"])
def test_ray_workers_that_die_do_not_change_a_bit(model, ray_data, monkeypatch, tmp_path):
    """Twenty processes die: half of them in one pass, half in the next."""
    from likely.engines.ray import RayDataset

    class Dying(RayDataset):
        passes = 0

        def run(self, task, add):
            if task.only is not None:
                return super().run(task, add)
            self.passes += 1
            (tmp_path / str(self.passes)).mkdir()
            return super().run(Deadly(task, tmp_path / str(self.passes)) if self.passes < 3 else task, add)

    monkeypatch.setattr(fitting, "SAMPLE", 100)
    frame = people()
    spread = ray_data.from_arrow(arrow_parts(frame, 10))
    expected = MODELS[model].fit(spread, "income").predict_proba(frame)
    found = MODELS[model].fit(Dying(spread), "income").predict_proba(frame)
    assert len(list(tmp_path.glob("[12]/*"))) == 20
    np.testing.assert_array_equal(found, expected)
