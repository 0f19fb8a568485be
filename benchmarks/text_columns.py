"""Columns of text in the joint of a table: what a text says of the other columns, on rows that were not learned.

    python benchmarks/text_columns.py FOLDER NAME... [--rows 5000] [--kind combined]

FOLDER has NAME.parquet with texts in "text" and a category in "target". Beside them stand the length of each text and
its share of capitals and exclamation marks. Half of at most twice so many rows is learned, the other half asked about.
Shown are the log-likelihood of the other columns of a row and the share of categories that are right, without the text
and given it; the seconds of both fits; and rows answered in a second by log_density and by predict_proba.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from compare import timed

from likely import Model


def halves(path: Path, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows to learn, and rows to ask about."""
    frame = pd.read_parquet(path, columns=["text", "target"]).sample(frac=1, random_state=0).reset_index(drop=True)
    frame["length"] = frame.text.str.len().astype(float)
    frame["capitals"] = frame.text.str.count("[A-Z!]") / frame.length.clip(lower=1)
    rows = min(rows, len(frame) // 2)
    return frame[:rows], frame[rows : 2 * rows]


def right(model: Model, rows: pd.DataFrame) -> float:
    """Return the share of rows whose category is predicted."""
    return float((model.predict(rows, of="target") == rows.target.to_numpy()).mean())


def line(path: Path, rows: int, kind: str) -> str:
    """Fit a model with and without the text, and return what they say of other rows."""
    learned, asked = halves(path, rows)
    model, without = (Model(kind, progress=False) for _ in range(2))
    model.columns = {"text": "text"}
    before, _ = timed(lambda: without.fit(learned.drop(columns="text")))
    fit, _ = timed(lambda: model.fit(learned))
    other = asked.drop(columns="text")
    alone = asked[["text"]].assign(target=None, length=np.nan, capitals=np.nan)
    density, both = timed(lambda: model.log_density(asked))
    nats = without.log_density(other).mean(), (both - model.log_density(alone)).mean()
    answers, _ = timed(lambda: model.predict_proba(asked, of="target"))
    speeds = len(asked) / density, len(asked) / answers
    shown = f"{path.stem:18} {nats[0]:7.3f} {nats[1]:7.3f} {right(without, other):6.3f} {right(model, asked):6.3f}"
    return f"{shown} {before:6.2f} {fit:6.2f} {speeds[0]:8,.0f} {speeds[1]:8,.0f}"


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--kind", default="combined")
    given = parser.parse_args()
    names = ("nats", "| text", "right", "| text", "fit s", "+ text", "p(x)/s", "of/s")
    widths = (7, 7, 6, 6, 6, 6, 8, 8)
    print(f"{'':18} " + " ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)))
    for name in given.names:
        print(line(given.folder / f"{name}.parquet", given.rows, given.kind), flush=True)


if __name__ == "__main__":
    main()
