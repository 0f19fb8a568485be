"""The classifier of texts: from strings to a class, in one pass."""

from collections.abc import Collection
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from likely.data.table import Table
from likely.ensemble.discounting import Refine, collect_discounted
from likely.estimators.laws import Laws
from likely.estimators.text_learning import TextLearning
from likely.estimators.text_rows import LabelledTexts
from likely.families import on_one_line
from likely.families.bag import Bag
from likely.families.counting import Counting
from likely.joint import Part
from likely.model.evaluation import Evaluation, SummedEvaluation
from likely.model.state import Knowledge
from likely.statistics import Assignment, JointStatistics, class_weights
from likely.text import Analyzer, Kept, batches, is_stream, listed
from likely.text.tokens import folded


class TextClassifier(TextLearning):
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
        p(y): one number for each class, a dict, or "uniform"; by default the shares of the classes in the data
    unlabelled
        as of ``NaiveBayes``, for texts without a label
    random_state
        the seed by which texts are drawn and dealt into folds

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

    def __init__(
        self,
        ngrams: Any = 2,
        *,
        unit: str = "words and punctuation",
        lowercase: bool = True,
        accents: str | None = None,
        stop_words: Any = (),
        tokenizer: Any = None,
        min_df: int | float | None = None,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        calibrate: bool = True,
        refine: Any = 0,
        event: str = "multinomial",
        smoothing: Any = 1.0,
        counts: str = "plain",
        normalize: bool = False,
        idf: bool = False,
        priors: Any = None,
        unlabelled: Any = "auto",
        random_state: int = 0,
    ):
        self.ngrams = ngrams
        self.unit = unit
        self.lowercase = lowercase
        self.accents = accents
        self.stop_words = stop_words
        self.tokenizer = tokenizer
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.calibrate = calibrate
        self.refine = refine
        self.event = event
        self.smoothing = smoothing
        self.counts = counts
        self.normalize = normalize
        self.idf = idf
        self.priors = priors
        self.unlabelled = unlabelled
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from texts X and their labels y, forgetting all that was learned before.

        Parameters
        ----------
        X
            strings or bytes: a list, a column of pandas, Polars or Arrow; None is a missing text. An iterator, or a
            list of files (``pathlib.Path``), is read some at a time, and never held as a whole, unless words are
            refined. Or a table with a column of texts beside that of the labels, as ``NaiveBayes`` takes it: a frame,
            the path of a CSV, Parquet or JSON lines file, or a frame of Dask, Spark or Ray, which is learned in one
            pass where it lies.
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
        if isinstance(y, str):
            return self._fit_table(LabelledTexts.of(X, y), sample_weight)
        if is_stream(X) and not self._refine():
            self._keep_learned(self._streamed(batches(X, y, sample_weight)))
        else:
            super().fit(X, listed(y), listed(sample_weight))
        self._keep_column(None)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more texts; the vocabulary grows with them.

        The exponents stay as the first texts decided: let these be some hundreds, of all classes. Without exponents the
        result is that of ``fit`` on all texts. ``classes`` may name labels that will come later; labels not named are
        learned when they come.
        """
        first = not hasattr(self, "_knowledge")
        texts, labels, weights, column = self._brought(X, y, sample_weight, partly=first)
        super().partial_fit(texts, labels, classes, weights)
        if first:
            self._keep_column(column)
        return self

    def merge(self, *others: Self) -> Self:
        """Learn all that other models have learned; the exponents stay as they are. The others stay, too."""
        return super().merge(*others)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn texts: no word of them is counted any more. The exponents stay as the first texts decided."""
        texts, labels, weights, _ = self._brought(X, y, sample_weight, partly=False)
        return super().forget(texts, labels, weights)

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
        if self.calibrate and not counting.as_they_come:
            raise ValueError(
                "expected counts='plain' without normalize and idf, as exponents are fitted to how words come, got "
                f"counts={self.counts!r}, normalize={self.normalize!r}, idf={self.idf!r}: use calibrate=False"
            )
        kept = Kept(self.min_df, self.max_df, self.max_features)
        return Bag(analyzer, self.event, self.smoothing, counting, kept)  # type: ignore[arg-type]

    def _refine(self) -> Refine:
        """Return how words are refined, or raise ValueError if that cannot be."""
        refine = self.refine.item() if isinstance(self.refine, np.generic) else self.refine
        if type(refine) not in (int, str) or refine not in (0, 1, "full"):
            raise ValueError(f"expected refine to be 0, 1 or 'full', got {on_one_line(self.refine)}")
        if refine and not self.calibrate:
            raise ValueError(f"expected calibrate=True to refine, got refine={refine!r} without: leave one of them out")
        return refine  # type: ignore[no-any-return]

    def _begun(self, table: Table, assignment: Assignment, guessed: NDArray[np.bool_] | None = None) -> Knowledge:
        refine = self._refine()
        if not self.calibrate:
            return super()._begun(table, assignment, guessed)
        texts, seed = table.strings[0], self.random_state
        family, words = collect_discounted(self._bag(), texts, assignment, seed=seed, refine=refine, guessed=guessed)
        statistics = JointStatistics(class_weights(assignment), (words,))
        return Knowledge((Part(family, None),), statistics, table.columns, self._given_priors())

    def evaluate(
        self, X: Any, y: Any, *, folds: int = 10, sample_weight: Any = None, random_state: Any = 0
    ) -> Evaluation | SummedEvaluation:
        """Return how well models of this kind predict texts that they have not seen. The model stays as it is."""
        texts, labels, weights, _ = self._brought(X, y, sample_weight, partly=True)
        return super().evaluate(texts, labels, folds=folds, sample_weight=weights, random_state=random_state)
