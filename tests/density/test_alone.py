"""A model of a whole table needs nothing but what the package requires."""

import subprocess
import sys

PROGRAM = """
import sys

class Lacking:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("scipy", "sklearn", "pandas", "polars"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Lacking())
import likely
from likely.datasets import penguins

model = likely.Model().fit(penguins())
model.sample(3, 0, given={"body_mass_g": (4000, None), "bill_length_mm": (40, 45)}, missing=True)
model.impute(penguins())
model.surprise(penguins().slice(0, 3))
model.explain(penguins().slice(0, 1), of="body_mass_g")
print(len(model.members_) > 1)
"""


def test_scipy_is_not_needed():
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"]
