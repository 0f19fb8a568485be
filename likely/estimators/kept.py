"""What a model has learned, kept: in the model, and in a file."""

import os
from typing import Any, Self

from likely.data.table import Table
from likely.estimators.questions import Questions
from likely.model.state import Knowledge
from likely.persistence import file as files
from likely.persistence.codec import KINDS, Saved
from likely.persistence.entries import kind_of


class Kept(Questions):
    """A model whose knowledge is replaced at once, and can be written to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, from which ``likely.load`` returns it.

        A file that was there is replaced at once, when all is written. Text, numbers and arrays are all it can hold.

        >>> import tempfile
        >>> import likely
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     likely.NaiveBayes().fit([[1.0], [4.0]], ["a", "b"]).save(f"{folder}/letters.likely")
        ...     likely.load(f"{folder}/letters.likely").predict([[1.2]]).tolist()
        ['a']
        """
        contents = Saved(self._kind(), self._kept_parameters(), self._known(), self._remembered()).contents()
        self._from_saved(Saved.read(*contents))  # what could not be loaded is said now
        files.write(path, *contents)

    @classmethod
    def _from_saved(cls, saved: Saved) -> Self:
        """Return the model that a file holds, or raise if its parts do not belong together."""
        model = cls(**saved.parameters)
        model._keep_columns(saved.knowledge.columns)
        model._replace(saved.knowledge)
        model._remember(**saved.more)
        return model

    @classmethod
    def _kind(cls) -> str:
        """Return the name that files give to the estimator."""
        return kind_of(cls, KINDS)

    def _kept_parameters(self) -> dict[str, Any]:
        """Return the parameters that a file holds."""
        return self.get_params(deep=False)

    def _remembered(self) -> dict[str, Any]:
        """Return what is remembered beside the parameters and the statistics, by name, for a file."""
        return {}

    def _remember(self) -> None:
        """Take what ``_remembered`` has given, or raise ValueError if it does not belong to the rest."""

    def _note(self, table: Table, sample_weight: Any, *, more: bool) -> None:
        """Remember what else is known of a matrix that was learned, or of ``more`` rows of it."""

    def _keep(self, table: Table, knowledge: Knowledge) -> None:
        self._keep_columns(table.columns)
        self._replace(knowledge)

    def _replace(self, knowledge: Knowledge) -> None:
        knowledge.given_weights  # noqa: B018  what does not fit the classes is said before anything changes
        self._knowledge = knowledge
        self.classes_ = knowledge.statistics.classes
        self.class_count_ = knowledge.statistics.weights.sums["weight"]
