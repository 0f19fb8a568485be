"""What is asked of a model of texts: how usual words are, what they say of classes, which set a class apart."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from likely.data.table import Block, Table
from likely.engines import rows_of
from likely.engines.labelled import together
from likely.estimators.classifier import GenerativeClassifier
from likely.estimators.questions import random_generator
from likely.estimators.text_rows import LabelledTexts, TextColumn, is_table, text_table
from likely.families import on_one_line, subtract_logs
from likely.families.bag import Bag
from likely.families.bag_density import BagDensity
from likely.families.counting import Counting
from likely.joint import Joint, Part
from likely.model.state import scaling
from likely.model.word_explanation import WordExplanation, added_up
from likely.statistics import Array, Labels
from likely.text import WordStatistics, as_read, contents, listed


class TextAnswers(GenerativeClassifier):
    """Answers of a model whose rows are texts."""

    text_column_: str

    @abstractmethod
    def _bag(self) -> Bag:
        """Return the family of the textbook."""

    def _read_first(self, X: Any) -> Table:
        table = self._read_texts(X)
        if table.rows == 0:
            raise ValueError("expected at least one text, got none")
        return table

    def _read_next(self, X: Any) -> Table:
        column = self._column_in(X)
        return self._read_texts(X) if column is None else column.table(together(rows_of(X, typed=False)))

    def _read_texts(self, X: Any) -> Table:
        return X if isinstance(X, Table) else text_table(as_read(contents(X)))

    def _batches(self, X: Any) -> Iterator[Any]:
        if (column := self._column_in(X)) is None:
            yield X
            return
        yield from column.tables(rows_of(X, typed=False))

    def _column_in(self, X: Any) -> TextColumn | None:
        """Return the column of texts if the model was fitted on a table and is asked about one."""
        name = getattr(self, "text_column_", None)
        return TextColumn.named_so(name) if name is not None and is_table(X) else None

    def _brought(self, X: Any, y: Any, sample_weight: Any, *, partly: bool) -> tuple[Any, Any, Any, str | None]:
        """Return texts, labels and weights in memory, and the name of the column of texts if they come from a table."""
        if not isinstance(y, str):
            return X, listed(y), listed(sample_weight), None
        table = LabelledTexts.of(X, y, getattr(self, "text_column_", None))
        return *table.here(sample_weight, partly=partly), table.column.name

    def _keep_column(self, name: str | None) -> None:
        """Remember the column of texts, if there was a table."""
        self.__dict__.pop("text_column_", None)
        if name is not None:
            self.text_column_ = name

    def _remembered(self) -> dict[str, Any]:
        named = {"text_column": self.text_column_} if hasattr(self, "text_column_") else {}
        return {**super()._remembered(), **named}

    def _remember(self, text_column: Any = None) -> None:
        if text_column is not None and not isinstance(text_column, str):
            raise ValueError(f"expected the name of the column of texts, got {on_one_line(text_column)}")
        self._keep_column(text_column)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of texts whose class is predicted right; ``y`` may be the name of a column of a table."""
        texts, labels, weights, _ = self._brought(X, y, sample_weight, partly=True)
        return super().score(texts, labels, weights)

    @property
    def _words(self) -> WordStatistics:
        words = self._known().statistics.blocks[0]
        assert isinstance(words, WordStatistics)
        return words

    @property
    def textbook_(self) -> Joint:
        """The joint distribution of the textbook, in which words are independent: what texts are drawn from.

        Words count as they come in it, whatever ``counts``, ``normalize`` and ``idf`` make of them for classes.
        """
        known = self._known()
        if "textbook" not in known.derived:
            parts = (Part(replace(self._bag(), counting=Counting()), None),)
            known.derived["textbook"] = Joint.solve(known.statistics, parts, known.columns, known.given_weights)
        return known.derived["textbook"]  # type: ignore[no-any-return]

    def log_density(self, X: Any) -> Array:
        """Return log p(x) of each text by the textbook's model, whatever its class: how usual its words are.

        A word that was not learned does not count, and of two texts the longer is the less likely.
        """
        return self.textbook_.log_density(self._read_next(X))

    def sample(self, n: int = 1, random_state: Any = None, given: Any = None) -> tuple[list[str], Labels]:
        """Draw n bags of words by the textbook's model, first y, then words given y. Returns (texts, y)."""
        if given:
            raise ValueError(f"expected no cells in given=, which texts do not have, got {given!r}")
        if n < 0:
            raise ValueError(f"expected to draw 0 texts or more, got n={n!r}")
        joint, generator = self.textbook_, random_generator(random_state)
        if joint.densities[0].no_density is not None:
            raise ValueError(f"expected words with probabilities, got scores: {joint.densities[0].no_density}")
        codes = generator.choice(len(joint.classes), size=n, p=joint.weights)
        density = joint.densities[0]
        assert isinstance(density, BagDensity)
        return [" ".join(words) for words in density.bags(codes, generator)], joint.classes[codes]

    def impute(self, X: Any, y: Any = None, *, how: str = "mean", random_state: Any = None) -> Any:
        """Say that there is nothing to fill in."""
        raise TypeError("expected a table with missing cells to fill in, got a model of texts: texts have none")

    def explain(self, X: Any, label: Any = None, against: Any = None) -> WordExplanation:  # type: ignore[override]
        """Say what each word contributes to the log-odds of ``label`` against ``against``.

        By default the likeliest class of each text against the next one.

        >>> from likely import TextClassifier
        >>> model = TextClassifier(calibrate=False, ngrams=1).fit(["good fun", "no fun", "bad"], ["+", "-", "-"])
        >>> print(model.explain(["good"]))
        '+' against '-', log-odds
        before reading the text      -0.693
        good                         +0.847
        altogether                   +0.154
        """
        joint, comparison = self._known().joint, self._comparison
        table = self._read_next(X)
        one, other = self._pair(comparison.log_joint(table), label, against)
        density = joint.densities[0]
        assert isinstance(density, BagDensity)
        starts, terms, counts, odds = density.word_odds(Block(table, None), one, other)
        base, texts = comparison.log_odds(table, one, other)
        total = base + texts[:, 0]
        # What words say is in the proportions of the joint, and with the base adds up to what the comparison says.
        before = subtract_logs(joint.log_weights[one], joint.log_weights[other])
        before = before + density.constant[one] - density.constant[other]
        odds = odds * np.repeat(scaling(added_up(odds, starts), total - before), np.diff(starts))
        base = total - added_up(odds, starts)
        return WordExplanation(joint.classes[one], joint.classes[other], base, starts, terms, counts, odds)

    def top_words(self, label: Any, n: int = 10) -> list[tuple[str, float]]:
        """Return the words that set a class apart most, and by how much: share × log (share / share in all classes)."""
        words, c = self._bag().kept.of(self._words), self._place(label)
        counts, of_all = np.zeros(len(words.terms)), words.in_words("count")
        own = words.codes == c
        counts[words.words[own]] = words.sums["count"][own]
        if not counts.any():
            return []
        share, shares = counts / counts.sum(), of_all / of_all.sum()
        there = np.flatnonzero(counts)
        told = share[there] * np.log(share[there] / shares[there])
        order = np.lexsort((there, -told))[:n]
        terms = words.terms.take(there[order]).to_pylist()
        return list(zip(terms, told[order].tolist(), strict=True))
