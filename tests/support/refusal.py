"""Assertions about what is refused: in one line, and without a trace in the model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import parameters

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 2.0], [1.0, 1.0], [3.0, 5.0]])
Y = np.array([0, 0, 0, 1, 1, 1])


def with_cell(value: Any, row: int = 3, column: int = 1) -> np.ndarray:
    """Return X with one cell changed."""
    changed = X.copy()
    changed[row, column] = value
    return changed


def assert_refused(ask: Callable[[], Any], *words: str, kind: type = ValueError) -> None:
    """Assert that a question is refused in one line with all these words in it."""
    with pytest.raises(kind) as caught:
        ask()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"


def _snapshot(model: Any, rows: Any) -> list[np.ndarray]:
    return [*parameters(model).values(), model.classes_, model.class_count_, model.predict_proba(rows)]


def assert_unchanged_by(
    model: Any, ask: Callable[[Any], Any], *words: str, kind: type = ValueError, rows: Any = X
) -> None:
    """Assert that a fitted model refuses, and is the same to the last bit afterwards."""
    before, attributes = _snapshot(model, rows), set(vars(model))
    assert_refused(lambda: ask(model), *words, kind=kind)
    assert set(vars(model)) == attributes
    for one, two in zip(before, _snapshot(model, rows), strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
