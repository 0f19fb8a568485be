"""Classifiers one member of which is a forest."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest import mock

from likely.ensemble.selection import select


@contextmanager
def with_forests() -> Iterator[None]:
    """Let every ``Classifier`` that is fitted here have a forest."""
    with mock.patch("likely.estimators.classifier.select", partial(select, forest=True)):
        yield
