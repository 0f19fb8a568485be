"""What every estimator promises of itself, law by law: tests hold it to that, and docs/laws.md says the same."""

from dataclasses import dataclass
from typing import Literal

Promise = Literal["exact", "reference", "not offered"]
"""A law holds exactly; exactly under what the first rows have decided, which is kept as a reference; or not at all."""


@dataclass(frozen=True)
class Laws:
    """The promises of an estimator."""

    order: Promise = "exact"
    """the order of rows does not matter"""
    weights: Promise = "exact"
    """a weight of 2 is a row twice, a weight of 0 is no row"""
    batches: Promise = "exact"
    """``partial_fit`` of rows in any batches gives the model of all of them together"""
    merge: Promise = "exact"
    """models of parts of the rows, merged, are the model of all of them"""
    forget: Promise = "exact"
    """rows that are learned and forgotten leave the model as it was"""
    missing: Promise = "exact"
    """a missing cell carries no information: a row without any cell has the class weights as its answer"""
    posterior: Promise = "exact"
    """probabilities of classes are not negative and sum to 1"""
    density: Promise = "exact"
    """p(x) is the sum of p(x, y) over the classes"""
    sample: Promise = "exact"
    """classes are drawn with their weights, and the same seed draws the same rows"""
    save: Promise = "exact"
    """a saved and loaded model answers with the same bits"""
    threads: Promise = "exact"
    """the number of threads does not change a bit"""
