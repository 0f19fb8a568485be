"""The classifier of texts: from strings to a class, in one pass."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from likely.data.table import Block, Table
from likely.engines import engine_of
from likely.ensemble.discounting import Refine, TextSample, collect_discounted, fit_on_sample
from likely.estimators import fitting
from likely.estimators.base import LabelledEstimator
from likely.estimators.fitting import FirstFit, Guessed, Plan, texts_of
from likely.estimators.laws import Laws
from likely.families import on_one_line, subtract_logs
from likely.families.bag import Bag, BagDensity, Counting
from likely.joint import Joint, Part
from likely.learn.one_pass import collect
from likely.model.explanation import WordExplanation, added_up
from likely.model.questions import accuracy, code_of, compared, random_generator
from likely.model.readers import TextReader
from likely.model.state import State, scaling
from likely.statistics import Array, Assignment, JointStatistics, Labels, class_weights
from likely.text import Analyzer, VocabularyLimits, WordStatistics
from likely.text.analyzer import folded


@dataclass(eq=False, repr=False)
class TextClassifier(LabelledEstimator):
    """Classify texts by their words, with probabilities that can be trusted.

    Words, and pairs of words that follow each other, are counted class by class in one pass; no matrix of texts and
    words is ever made. What a word says of a class is discounted: some seventy exponents, one for each group of words
    that are as frequent and tell as much, are fitted on texts that were scored as if their fold had not been learned.
    The textbook's model, which takes words as independent, is one argument away: ``calibrate=False, ngrams=1``.

    Parameters
    ----------
    ngrams
        how many words in a row make a unit: 2 means single words and pairs; (2, 3) pairs and triples
    unit
        "words", "words of two" characters at least, "words and punctuation", "characters", or "characters in words"
    lowercase
        whether capitals are made small
    accents
        "unicode": letters lose their accents; "ascii": and what is still not ASCII is left out
    stop_words
        words, or units of characters, that are left out
    tokenizer
        in the place of ``unit``, a function from a text to a list of its words, such as ``str.split``; slower. It gets
        the text in lower case and without accents, as far as these were asked for; n-grams are made, and stop words and
        empty ones left out, of what it returns. A model with a function can be pickled, but not saved.
    min_df, max_df
        in how many texts a word must be at least, and may be at most, to say something: a whole number of texts, or a
        share of them, from 0.0 to 1.0. By default at least 2, and 1 without exponents.
    max_features
        how many words say something at most: those that come most often
    calibrate
        fit exponents; otherwise the words of a text count as they come
    refine
        with exponents, what is left to single words: 0, nothing; 1, scores of words and classes by one more pass over
        all texts; "full", by ten, which is logistic regression that begins where the exponents end
    event, smoothing
        without exponents, and for ``sample`` and ``log_density``: "multinomial", "complement" or "bernoulli", and the
        count that every word is imagined to have: a number, a dict from words to numbers, a dict from classes to such
        dicts, or a background, "collection" or "kneser-ney", whose strength is found by leaving each word out; what a
        dict lacks has 0
    counts
        without exponents: "plain", or "log", by which a word that comes x times counts log(1 + x)
    normalize
        without exponents: whether all texts count as if they were of one length, the root of the sum of the squares of
        their counts. That length is such that all texts learned have together as many counts as they have words, so
        ``smoothing`` weighs as much as it does otherwise.
    idf
        without exponents: whether the counts of a word, after that, are multiplied with log((1 + N) / (1 + n)) + 1 if n
        of the N texts learned have it
    priors
        p(y): one number for each class, a dict, or "uniform"; by default the proportions of the classes in the data
    unlabelled
        as of ``NaiveBayes``, for texts without a label
    random_state
        the seed by which texts are drawn and assigned to cross-validation folds

    Attributes
    ----------
    classes_, class_count_, priors_, joint_
        as of ``NaiveBayes``
    text_column_
        the name of the column of texts, if the model was fitted on a table

    Examples
    --------
    >>> from likely import TextClassifier
    >>> texts = ["win a prize now", "free prize inside", "see you at lunch", "lunch at noon?"]
    >>> model = TextClassifier(calibrate=False, ngrams=1).fit(texts, ["spam", "spam", "ham", "ham"])
    >>> model.predict(["a free lunch prize", "see you at noon"]).tolist()
    ['spam', 'ham']
    >>> [word for word, _ in model.top_words("spam", 1)]
    ['prize']
    """

    # The exponents of words are those that the first texts have decided; with calibrate=False there are none.
    laws: ClassVar[Laws] = Laws(batches="reference", merge="reference", forget="reference")

    ngrams: Any = 2
    _: KW_ONLY
    unit: str = "words and punctuation"
    lowercase: bool = True
    accents: str | None = None
    stop_words: Any = ()
    tokenizer: Any = None
    min_df: int | float | None = None
    max_df: int | float = 1.0
    max_features: int | None = None
    calibrate: bool = True
    refine: Any = 0
    event: str = "multinomial"
    smoothing: Any = 1.0
    counts: str = "plain"
    normalize: bool = False
    idf: bool = False
    priors: Any = None
    unlabelled: Any = "auto"
    random_state: int = 0

    def plan(self) -> Plan:
        """Return what is to be fitted: words class by class, and exponents of groups of words that compare classes."""
        bag, refine = self._bag(), self._refine()
        parts = (Part(bag, None),)

        def discounted(table: Table, assignment: Assignment, _: tuple[Part, ...], guessed: Guessed) -> FirstFit:
            texts, seed = table.strings[0], self.random_state
            family, words = collect_discounted(bag, texts, assignment, seed=seed, refine=refine, guessed=guessed)
            return FirstFit((Part(family, None),), JointStatistics(class_weights(assignment), (words,)))

        def finish(learned: _Learned) -> FirstFit:
            """Fit exponents on the texts that were drawn, if any were."""
            statistics, family = learned.statistics, bag
            words = statistics.blocks[0]
            assert isinstance(words, WordStatistics)
            if learned.sample is not None:
                family = fit_on_sample(bag, words, learned.sample.among(statistics.classes))
            return FirstFit((Part(family, None),), statistics)

        learn = partial(_Learned.of, parts=parts, draw=bool(self.calibrate), seed=self.random_state)
        return Plan(
            "TextClassifier",
            lambda *_: parts,
            "texts",
            begin=discounted if self.calibrate else None,
            chosen=bool(self.calibrate),
            priors=self.priors,
            unlabelled=self.unlabelled,
            random_state=self.random_state,
            collect=None if refine else learn,
            finish=finish,
            check=_check_words,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from texts X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            strings or bytes: a list, a column of pandas, Polars or Arrow; None is a missing text. An iterator, or a
            list of files (``pathlib.Path``), is read some at a time, and never held as a whole, unless words are
            refined. Or a table with a column of texts beside that of the labels, as ``NaiveBayes`` takes it: a frame,
            the path of a CSV, Parquet or JSON lines file, or a frame of Dask, Spark or Ray, which is learned in one
            pass on the workers.
        y
            a label for each text; it may be an iterator, too. Of a table, the name of the column of labels
        sample_weight
            how much each text counts: a weight of 2 is the text twice

        Examples
        --------
        >>> from likely import TextClassifier
        >>> rows = {"text": ["free prize", "win a prize", "see you at lunch", "lunch at noon"], "label": list("ssll")}
        >>> model = TextClassifier().fit(rows, "label")
        >>> model.text_column_, model.predict({"text": ["a prize", "at noon"]}).tolist()
        ('text', ['s', 'l'])
        """
        if isinstance(y, str) and (refine := self._refine()) and engine_of(X) is not None:
            raise ValueError(
                f"expected refine=0 of texts in partitions, got refine={refine!r}, which needs all of them in memory: "
                "leave it out, or give a frame that is not in partitions"
            )
        self._state = fitting.fit(self.plan(), X, y, sample_weight)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of texts whose class is predicted right; ``y`` may be the name of a column of a table."""
        texts, labels, weights, _ = texts_of(self.fitted(), X, y, sample_weight, partially_labelled=True)
        return accuracy(self.predict(texts), labels, weights)

    @property
    def text_column_(self) -> str:
        """The name of the column of texts, if the model was fitted on a table."""
        reader = self.fitted().reader
        if not isinstance(reader, TextReader) or reader.column_name is None:
            raise AttributeError("TextClassifier was fitted on texts that are in no table")
        return reader.column_name

    @property
    def words_(self) -> WordStatistics:
        """What classes have of each word."""
        words = self.fitted().statistics.blocks[0]
        assert isinstance(words, WordStatistics)
        return words

    @property
    def textbook_(self) -> Joint:
        """The joint distribution of the textbook, in which words are independent: what texts are drawn from.

        Words count as they come in it, whatever ``counts``, ``normalize`` and ``idf`` make of them for classes.
        """
        return self.fitted().plain_naive_bayes

    def log_density(self, X: Any) -> Array:
        """Return log p(x) of each text by the textbook's model, whatever its class: how usual its words are.

        A word that was not learned does not count, and of two texts the longer is the less likely.
        """
        return self.textbook_.log_density(self.fitted().reader.read(X))

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
        state = self.fitted()
        joint, comparison, table = state.joint, state.comparison, state.reader.read(X)
        one, other = compared(state.classes, comparison.log_joint(table), label, against)
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
        """Return the words that set a class apart most, and by how much: p log(p / p in all classes)."""
        state = self.fitted()
        family: Any = state.parts[0].family
        words, c = family.kept.of(self.words_), code_of(state.classes, label)
        counts, of_all = np.zeros(len(words.terms)), words.in_words("count")
        own = words.codes == c
        counts[words.words[own]] = words.sums["count"][own]
        if not counts.any():
            return []
        p, p_all = counts / counts.sum(), of_all / of_all.sum()
        there = np.flatnonzero(counts)
        gain = p[there] * np.log(p[there] / p_all[there])
        order = np.lexsort((there, -gain))[:n]
        terms = words.terms.take(there[order]).to_pylist()
        return list(zip(terms, gain[order].tolist(), strict=True))

    def _bag(self) -> Bag:
        ngrams = self.ngrams if isinstance(self.ngrams, tuple | list) else (1, self.ngrams)
        whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in ngrams)
        if len(ngrams) != 2 or not whole or not 1 <= ngrams[0] <= ngrams[1]:
            raise ValueError(f"expected ngrams as a number of words, or the least and the most, got {self.ngrams!r}")
        stop_words = () if self.stop_words is None else self.stop_words
        several = isinstance(stop_words, Collection) and not isinstance(stop_words, str)
        if not several or not all(isinstance(word, str) for word in stop_words):
            raise ValueError(
                f"expected stop_words as a list of words, got {on_one_line(self.stop_words)}: no list is built in"
            )
        analyzer = Analyzer(
            self.unit,  # type: ignore[arg-type]
            (int(ngrams[0]), int(ngrams[1])),
            self.lowercase,
            self.accents,  # type: ignore[arg-type]
            frozenset(folded(word, lowercase=self.lowercase is True, accents=self.accents) for word in stop_words),
            tokenizer=self.tokenizer,
        )
        counting = Counting(self.counts, self.normalize, self.idf)  # type: ignore[arg-type]
        if self.calibrate and not counting.raw_counts:
            raise ValueError(
                "expected counts='plain' without normalize and idf, as exponents are fitted to how words come, got "
                f"counts={self.counts!r}, normalize={self.normalize!r}, idf={self.idf!r}: use calibrate=False"
            )
        kept = VocabularyLimits(self.min_df, self.max_df, self.max_features)
        return Bag(analyzer, self.event, self.smoothing, counting, kept)  # type: ignore[arg-type]

    def _refine(self) -> Refine:
        """Return how words are refined, or raise ValueError if that cannot be."""
        refine = self.refine.item() if isinstance(self.refine, np.generic) else self.refine
        if type(refine) not in (int, str) or refine not in (0, 1, "full"):
            raise ValueError(f"expected refine to be 0, 1 or 'full', got {on_one_line(self.refine)}")
        if refine and not self.calibrate:
            raise ValueError(f"expected calibrate=True to refine, got refine={refine!r} without: leave one of them out")
        return refine  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _Learned:
    """What was learned of some texts: their words, and if exponents are to be fitted, some of the texts."""

    statistics: JointStatistics
    sample: TextSample | None

    @classmethod
    def of(cls, table: Table, assignment: Assignment, parts: tuple[Part, ...], draw: bool, seed: Any) -> "_Learned":
        """Learn texts whose classes are known; ``draw``: whether some of them are kept."""
        sample = TextSample.of(table.strings[0], assignment, seed) if draw else None
        return cls(collect(table, assignment, parts), sample)

    def __add__(self, other: "_Learned") -> "_Learned":
        sample = None if self.sample is None or other.sample is None else self.sample + other.sample
        return _Learned(self.statistics + other.statistics, sample)


def _check_words(_: Table, state: State) -> None:
    (words,), (part,) = state.statistics.blocks, state.parts
    assert isinstance(words, WordStatistics)
    assert isinstance(part.family, Bag)
    part.family.kept.check(words, part.family.least_documents)
