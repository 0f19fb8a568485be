"""How long ``likely fit`` takes from start to exit, beside a script of pandas and scikit-learn.

    python benchmarks/command_line.py adult.csv income

Both learn from the CSV file: the script reads it, fills holes, makes columns of categories and fits GaussianNB. Each
runs as a process of its own, by turns, and the medians are compared. The last lines: what ``import likely`` and what
``from likely import Classifier`` add to ``import numpy``.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

ROUNDS, IMPORTS = 5, 10
SCRIPT = """
import sys
import pandas
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

table = pandas.read_csv(sys.argv[1])
labels = table.pop(sys.argv[2])
categories = make_pipeline(
    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
)
columns = make_column_transformer(
    (SimpleImputer(), make_column_selector(dtype_include="number")),
    (categories, make_column_selector(dtype_exclude="number")),
)
make_pipeline(columns, GaussianNB()).fit(table, labels)
"""


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python benchmarks/command_line.py DATA.csv TARGET")
    data, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "model.likely"))
        ours = [sys.executable, "-m", "likely", "fit", data, "--target", target, "-o", model]
        theirs = [sys.executable, "-c", SCRIPT, data, target]
        first, second = compared([ours, theirs], ROUNDS)
    print(f"likely fit {first:.2f} s, pandas and scikit-learn {second:.2f} s: {second / first:.1f} × as fast")
    codes = ["import numpy", "import numpy, likely", "import numpy; from likely import Classifier"]
    base, package, classifier = compared([[sys.executable, "-c", code] for code in codes], IMPORTS)
    print(f"import likely adds {1000 * (package - base):.0f} ms to import numpy ({1000 * base:.0f} ms),", end=" ")
    print(f"with Classifier {1000 * (classifier - base):.0f} ms")


def compared(commands: list[list[str]], rounds: int) -> list[float]:
    """Return the median seconds of each command. The first round is not counted: it writes bytecode."""
    # An installed package has its bytecode, so that is kept here too.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds + 1):
        for command, seconds in zip(commands, taken, strict=True):
            start = perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            seconds.append(perf_counter() - start)
    return [median(seconds[1:]) for seconds in taken]


if __name__ == "__main__":
    main()
