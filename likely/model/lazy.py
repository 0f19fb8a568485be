"""Questions about rows in partitions: each is asked where a partition lies, when its answer is wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likely.engines import Engine

if TYPE_CHECKING:
    import pyarrow as pa

PREDICTION, GROUP = "prediction", "group"
"""The names of the column of answers: classes, and groups that nobody has named."""


@dataclass(frozen=True)
class Answer:
    """A question as it is sent to the workers: of a partition's rows to columns of answers."""

    model: Any
    question: str
    options: Mapping[str, Any]

    def __call__(self, rows: "pa.Table") -> "pa.Table":
        """Return the answers, in columns of their own, or the cells that were asked for in those that they are of."""
        import pyarrow as pa

        found = self.asked(rows)
        if isinstance(found, pa.Table):
            return found
        if self.question == "impute":
            return pa.table({name: pa.array(found[:, j]) for j, name in enumerate(self.model.feature_names_in_)})
        if found.ndim == 1:
            return pa.table({answer_name(self.model): pa.array(found)})
        labels = labels_in_text(self.model.classes_)
        return pa.table({f"p({label})": pa.array(found[:, k]) for k, label in enumerate(labels)})

    def asked(self, rows: Any) -> Any:
        """Return the answers as the model gives them."""
        return getattr(self.model, self.question)(rows, **self.options)


def answered(model: Any, engine: Engine, question: str, options: Mapping[str, Any]) -> Any:
    """Return a frame of the engine, its rows and the answers beside them; or of arrays, an array of the answers."""
    return engine.lazily(Answer(model, question, options))


def answer_name(model: Any) -> str:
    """Return the name of the column of answers."""
    return PREDICTION if model._learns_labels else GROUP


def labels_in_text(labels: Any) -> list[str]:
    """Return classes as the names of columns tell them."""
    import pyarrow as pa

    from likely.data.arrow import text_of

    return [str(label) for label in text_of(pa.array(labels)).to_pylist()]
