"""How a model of texts learns from very many: batch by batch, or where the partitions of a table lie."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self

from likely.data.labels import read_assignment
from likely.data.table import Table
from likely.engines import Spread
from likely.engines.labelled import Collected, collected, tell_of_unlabelled
from likely.ensemble.discounting import Refine
from likely.ensemble.text_samples import settled_by
from likely.estimators.classifier import GenerativeClassifier
from likely.estimators.text_answers import TextAnswers
from likely.estimators.text_rows import LabelledTexts, Learned, text_table
from likely.families.bag import Bag
from likely.joint import Part
from likely.model.semi_supervised import check_unlabelled
from likely.model.state import Knowledge
from likely.statistics import Assignment
from likely.text import TextBatch, WordStatistics


class TextLearning(TextAnswers):
    """A model of texts that need not be held all at once."""

    calibrate: bool
    random_state: Any

    @abstractmethod
    def _refine(self) -> Refine:
        """Return how words are refined, or raise ValueError if that cannot be."""

    def _fit_table(self, table: LabelledTexts, sample_weight: Any) -> Self:
        """Learn from a table in one pass, unless all of its texts lie in memory, or must."""
        partly, refine = check_unlabelled(self.unlabelled) is not None, self._refine()
        if refine and isinstance(table.rows, Spread):
            raise ValueError(
                f"expected refine=0 of texts in partitions, got refine={refine!r}, which needs all of them in memory: "
                "leave it out, or give a frame that is not in partitions"
            )
        found: Collected[Learned] = Collected(None)
        if not table.rows.held and not refine:
            found = collected(table.rows, table.column, table.y, sample_weight, self._collector, partly=partly)
            if found.statistics is None:
                raise ValueError("expected rows with a label, got none")
        if found.statistics is None or self._learns_unlabelled(found.labelled, found.unlabelled):
            GenerativeClassifier.fit(self, *table.here(sample_weight, partly=partly))
        else:
            tell_of_unlabelled(found.unlabelled, table.y)
            self._keep_learned(found.statistics)
        self._keep_column(table.column.name)
        return self

    @property
    def _collector(self) -> Callable[[Table, Assignment], Learned]:
        """What learns of some texts, wherever they lie."""
        return partial(Learned.of, parts=(Part(self._bag(), None),), draw=bool(self.calibrate), seed=self.random_state)

    def _streamed(self, texts: Iterable[TextBatch]) -> Learned:
        """Learn from batches; what the exponents are fitted on is drawn from all."""
        learn = self._collector
        learned: Learned | None = None
        for batch in texts:
            table = self._read_texts(batch.texts)
            if batch.weights is not None and all(weight == 0 for weight in batch.weights):
                continue
            own = learn(table, read_assignment(batch.labels, batch.weights, table.rows))
            learned = own if learned is None else learned + own
        if learned is None:
            raise ValueError("expected at least one text, got none")
        return learned

    def _keep_learned(self, learned: Learned) -> None:
        """Fit exponents on the texts that were drawn, if any were, and keep what was learned."""
        statistics, bag = learned.statistics, self._bag()
        words, table = statistics.blocks[0], text_table(())
        assert isinstance(words, WordStatistics)
        if learned.sample is not None:
            bag = settled_by(bag, words, learned.sample.among(statistics.classes))
        knowledge = Knowledge((Part(bag, None),), statistics, table.columns, self._given_priors())
        self._solve_now(table, knowledge)
        self._keep(table, knowledge)

    def _parts(self, table: Table, assignment: Assignment) -> tuple[Part, ...]:
        return (Part(self._bag(), None),)

    def _solve_now(self, table: Table, knowledge: Knowledge) -> None:
        (words,), (part,) = knowledge.statistics.blocks, knowledge.parts
        assert isinstance(words, WordStatistics)
        assert isinstance(part.family, Bag)
        part.family.kept.check(words, part.family.least_documents)
        super()._solve_now(table, knowledge)

    def _remember(self, text_column: Any = None) -> None:
        super()._remember(text_column)
        self._bag()  # which says what parameters of a file do not fit
        self._refine()
