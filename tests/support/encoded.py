"""A small table as the members of a joint density read it: numbers, atoms, categories, and cells that are missing."""

from typing import Any

import numpy as np

from likely.density.columns import CategoryColumn, Encoded, NumberColumn


def encoded(columns: Any, cells: np.ndarray, names: dict[int, list[str]]) -> Encoded:
    """Return cells, categories as codes of ``names``, as members read them."""
    scored = [
        c.scored(names[j], cells[:, j]) if isinstance(c, CategoryColumn) else c.scored(cells[:, j])
        for j, c in enumerate(columns)
    ]
    of_numbers = [s for c, s in zip(columns, scored, strict=True) if isinstance(c, NumberColumn)]
    return Encoded(
        columns,
        np.stack([s.levels for s in scored], axis=1),
        np.stack([s.u for s in of_numbers], axis=1),
        np.stack([s.z for s in of_numbers], axis=1),
        np.stack([s.log for s in scored], axis=1),
    )


def mixed_table(n: int, missing: float = 0.1) -> Encoded:
    """Return two numbers, one often 0, and two categories, which all depend on each other; some cells are missing."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    x = rng.normal(group * 2.0, 1.0)
    y = np.where(rng.random(n) < 0.3, 0.0, np.exp(0.5 * x + 0.3 * rng.normal(size=n)))
    a = np.where(rng.random(n) < 0.8, group, rng.integers(3, size=n)).astype(float)
    b = (x + rng.normal(size=n) > 2).astype(float)
    cells = np.stack([x, a, y, b], axis=1)
    cells[rng.random(cells.shape) < missing] = np.nan
    names = {1: ["p", "q", "r"], 3: ["no", "yes"]}
    columns = (
        NumberColumn.fit(cells[:, 0]),
        CategoryColumn.fit(names[1], np.bincount(cells[~np.isnan(cells[:, 1]), 1].astype(int), minlength=3)),
        NumberColumn.fit(cells[:, 2]),
        CategoryColumn.fit(names[3], np.bincount(cells[~np.isnan(cells[:, 3]), 3].astype(int)), named=False),
    )
    return encoded(columns, cells, names)
