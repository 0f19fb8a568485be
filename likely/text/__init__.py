"""From strings to counts of words, characters and their n-grams."""

from likely.text.analyzer import Analyzer, Rows, sorted_terms
from likely.text.documents import as_terms, as_texts, checked_terms, packed_terms, rises
from likely.text.words import WordStatistics, collect_sized, collect_words

__all__ = [
    "Analyzer",
    "Rows",
    "WordStatistics",
    "as_terms",
    "as_texts",
    "checked_terms",
    "collect_sized",
    "collect_words",
    "packed_terms",
    "rises",
    "sorted_terms",
]
