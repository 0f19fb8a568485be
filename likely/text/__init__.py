"""From strings to counts of words, characters and their n-grams."""

from likely.text.analyzer import Analyzer, Rows, sorted_terms
from likely.text.documents import as_terms, as_texts
from likely.text.words import WordStatistics, collect_sized, collect_words

__all__ = [
    "Analyzer",
    "Rows",
    "WordStatistics",
    "as_terms",
    "as_texts",
    "collect_sized",
    "collect_words",
    "sorted_terms",
]
