"""Load a model from a file, whichever estimator it is."""

import os
from importlib import import_module
from typing import Any

import numpy as np

from likely.persistence import file as files
from likely.persistence.centres import KINDS as CENTRED
from likely.persistence.centres import SavedCentres
from likely.persistence.codec import Saved


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that ``save`` has written to a file: it answers, learns, merges and forgets as before.

    A file is data. Nothing in it is run, so files of strangers may be loaded; one that is broken raises ValueError.

    Examples
    --------
    >>> import tempfile
    >>> import likely
    >>> model = likely.NaiveBayes().fit([[1.0], [1.5], [4.0], [4.5]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/letters.likely")
    ...     same = likely.load(f"{folder}/letters.likely")
    >>> same.predict([[1.2]]).tolist()
    ['a']
    """
    header, arrays = files.read(path)
    try:
        with np.errstate(all="ignore"):
            if header.get("kind") in CENTRED:
                centred = SavedCentres.read(header, arrays)
                return _class(centred.kind)._from_saved(centred)
            saved = Saved.read(header, arrays)
            return _class(saved.kind)._from_saved(saved)
    except (ValueError, TypeError, OverflowError) as error:
        what = " ".join(str(error).split())
        if not isinstance(error, ValueError):
            what = f"expected parameters that belong together, got others ({what})"
        raise ValueError(f"{what}, in {os.fspath(path)!r}: save the model again, or update likely") from None


def _class(kind: str) -> Any:
    """Return the estimator of a kind; those of scikit-learn's names need scikit-learn."""
    name = kind.removeprefix("sklearn ")
    return getattr(import_module("likely" if name == kind else "likely.sklearn"), name)
