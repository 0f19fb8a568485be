"""Choosing a forest: trees are grown on samples of the rows, and each row is scored by those grown without it."""

import numpy as np
from numpy.typing import NDArray

from likely.data.hashing import break_ties, random_keys, row_keys
from likely.data.table import Block, Table
from likely.ensemble.calibration import LEAST
from likely.ensemble.members import Chosen, Folds
from likely.families.forest import Forest, SampledRows
from likely.statistics import Array, Assignment

TREES = 100
"""So many trees take the best cut of √d of d columns at each node, and so many the best of d/2 random ones."""

# More rows tell no better how much a member counts, and take long to score.
_MOST_SCORED = 10_000


def choose_forest(encoded: Table, folds: Folds, *, categories: NDArray[np.bool_], seed: int = 0) -> Chosen:
    """Grow a forest, count all rows at its leaves, and score each row by trees that were grown without it, less itself.

    Folds only say which rows are to be scored; if they are many, some are. Rows in no fold are learned from.
    """
    classes, codes, weights = folds.assignment
    rows = SampledRows(np.asarray(encoded.cells), folds.assignment, _hashes(encoded, folds.assignment, seed))
    d = len(categories)
    kinds = [(TREES, int(np.ceil(np.sqrt(d))), False), (TREES, (d + 1) // 2, True)]
    forest = Forest.grown(rows, categories, int(random_keys(seed, 1)[0]), kinds)
    statistics = forest.collect(Block(encoded, None), folds.assignment)
    density = forest.solve(statistics)
    if weights is not None:
        # A row that came again and again will come again: only as much of it as is usual in its class is left out.
        usual = np.bincount(codes, weights) / np.maximum(np.bincount(codes), 1)
        rows = rows._replace(assignment=folds.assignment._replace(weights=np.minimum(weights, usual[codes])))

    def score(some: Table, numbers: NDArray[np.intp]) -> Array:
        return np.maximum(np.log(density.probabilities(np.asarray(some.cells), rows.taken(numbers))), LEAST)

    out, scored = np.full((encoded.rows, len(classes)), np.nan), folds.scored
    few = min(len(scored), _MOST_SCORED)
    some = scored[np.arange(few) * len(scored) // max(few, 1)]
    out[some] = score(encoded.taken(some), some)
    return Chosen(forest, statistics, out, score)


def _hashes(encoded: Table, assignment: Assignment, seed: int) -> NDArray[np.uint64]:
    """Return a hash of each row and its class, which depends on neither the names of classes nor the units of columns.

    Rows that are equal as codes are different rows, and so are parts of a heavy one: each is drawn by itself.
    """
    seen, codes = np.unique(assignment.codes, return_inverse=True)
    keys = row_keys(encoded, Assignment(np.arange(len(seen)), codes.astype(np.int32)), seed)
    return break_ties(keys)
