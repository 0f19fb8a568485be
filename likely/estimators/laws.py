"""What every estimator promises of itself, law by law: tests hold it to that, and docs/laws.md says the same."""

from dataclasses import dataclass
from typing import Literal

Promise = Literal["exact", "reference", "not offered"]
"""A law holds exactly; exactly under what the first rows have decided, which is kept as a reference; or not at all."""


@dataclass(frozen=True)
class Laws:
    """The promises of an estimator.

    Parameters
    ----------
    order
        the order of rows does not matter
    weights
        a weight of 2 is a row twice, a weight of 0 is no row
    batches
        ``partial_fit`` of rows in any batches gives the model of all of them together
    merge
        models of parts of the rows, merged, are the model of all of them
    forget
        rows that are learned and forgotten leave the model as it was
    missing
        a missing cell carries no information: a row without any cell has the class weights as its answer
    posterior
        probabilities of classes are not negative and sum to 1
    density
        p(x) is the sum of p(x, y) over the classes
    sample
        classes are drawn with their weights, and the same seed draws the same rows
    save
        a saved and loaded model answers with the same bits
    threads
        the number of threads does not change a bit
    """

    order: Promise = "exact"
    weights: Promise = "exact"
    batches: Promise = "exact"
    merge: Promise = "exact"
    forget: Promise = "exact"
    missing: Promise = "exact"
    posterior: Promise = "exact"
    density: Promise = "exact"
    sample: Promise = "exact"
    save: Promise = "exact"
    threads: Promise = "exact"
