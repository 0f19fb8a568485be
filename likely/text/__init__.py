"""From strings to counts of words, characters and their n-grams."""

from likely.text.analyzer import SHARES, Analyzer, Measure, Rows, numbers_of_kept, sorted_terms
from likely.text.documents import as_read, as_terms, as_texts, checked_terms, packed_terms, rises
from likely.text.kept import Kept, document_limits
from likely.text.streams import TextBatch, batches, contents, is_stream, listed
from likely.text.words import WordStatistics, collect_sized, collect_words

__all__ = [
    "SHARES",
    "Analyzer",
    "Kept",
    "Measure",
    "Rows",
    "TextBatch",
    "WordStatistics",
    "as_read",
    "as_terms",
    "as_texts",
    "batches",
    "checked_terms",
    "collect_sized",
    "collect_words",
    "contents",
    "document_limits",
    "is_stream",
    "listed",
    "numbers_of_kept",
    "packed_terms",
    "rises",
    "sorted_terms",
]
