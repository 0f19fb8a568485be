"""Small data that the package ships: the penguins of Palmer Archipelago."""

from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np

from likely.data.rows import open_rows
from likely.data.schema import Schema
from likely.data.table import Block
from likely.lazy import pa
from likely.statistics import Array, Labels

TARGET, MISSING = "species", ("NA",)
MEASURED = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")


def penguins() -> "pa.Table":
    """Return the birds that the package ships, as they are.

    >>> birds = penguins()
    >>> birds.num_rows, sum(column.null_count for column in birds.columns)
    (344, 19)
    """
    with as_file(files("likely").joinpath("datasets", "penguins.csv")) as path:
        return pa.Table.from_batches(list(open_rows(path, missing=MISSING).batches()))


class Penguins(NamedTuple):
    """Four measurements of every bird, then the codes of its island and sex, NaN if missing; and its species."""

    X: Array
    species: Labels


def load_penguins() -> Penguins:
    """Return the birds as a matrix of numbers.

    >>> X, species = load_penguins()
    >>> X.shape, int(np.isnan(X).sum()), sorted(set(species.tolist()))
    ((344, 6), 19, ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    birds = penguins()
    schema = Schema.infer(open_rows(birds)).without(TARGET)
    cells = Block(schema.table(birds.drop_columns([TARGET])), None).values()
    positions = [schema.names.index(name) for name in (*MEASURED, "island", "sex")]
    return Penguins(np.ascontiguousarray(cells[:, positions]), np.array(birds[TARGET].to_pylist()))
