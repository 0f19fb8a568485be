"""Load a model from a file, whichever estimator it is."""

import os
from typing import Any

import numpy as np

from likely import estimators, files
from likely.estimators.centres import Centred
from likely.estimators.kept import Kept
from likely.estimators.saved import Saved
from likely.estimators.saved_centres import KINDS as CENTRED
from likely.estimators.saved_centres import SavedCentres


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
                return _centred(centred.kind)._from_saved(centred)
            saved = Saved.read(header, arrays)
            return _class(saved.kind)._from_saved(saved)
    except (ValueError, TypeError, OverflowError) as error:
        what = " ".join(str(error).split())
        if not isinstance(error, ValueError):
            what = f"expected parameters that belong together, got others ({what})"
        raise ValueError(f"{what}, in {os.fspath(path)!r}: save the model again, or update likely") from None


def _centred(kind: str) -> type[Centred]:
    if kind == "KMeans":
        from likely.estimators.kmeans import KMeans

        return KMeans
    from likely import sklearn  # which needs scikit-learn

    return sklearn.KMeans if kind == "sklearn KMeans" else sklearn.MiniBatchKMeans


def _class(kind: str) -> type[Kept]:
    if not kind.startswith("sklearn "):
        if kind == "TextClassifier":
            from likely.estimators.text import TextClassifier

            return TextClassifier
        if kind == "Mixture":
            from likely.estimators.mixture import Mixture

            return Mixture
        own = estimators.Classifier, estimators.NaiveBayes, estimators.GaussianDiscriminant
        return {each.__name__: each for each in own}[kind]
    from likely import sklearn  # which needs scikit-learn

    faces: tuple[type[Kept], ...] = (
        sklearn.GaussianNB,
        sklearn.MultinomialNB,
        sklearn.ComplementNB,
        sklearn.BernoulliNB,
        sklearn.CategoricalNB,
        sklearn.LinearDiscriminantAnalysis,
        sklearn.QuadraticDiscriminantAnalysis,
    )
    return {f"sklearn {face.__name__}": face for face in faces}[kind]
