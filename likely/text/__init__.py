"""From strings to counts of words, characters and their n-grams."""

from likely.text.analyzer import SHARES, Analyzer, Measure, Rows, sorted_terms
from likely.text.documents import as_terms, as_texts, checked_terms, packed_terms, rises
from likely.text.kept import Kept, document_limits
from likely.text.words import WordStatistics, collect_sized, collect_words

__all__ = [
    "SHARES",
    "Analyzer",
    "Kept",
    "Measure",
    "Rows",
    "WordStatistics",
    "as_terms",
    "as_texts",
    "checked_terms",
    "collect_sized",
    "collect_words",
    "document_limits",
    "packed_terms",
    "rises",
    "sorted_terms",
]
