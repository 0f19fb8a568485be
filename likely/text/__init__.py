"""From strings to counts of words, characters and their n-grams."""

from likely.text.analyzer import SHARES, Analyzer, Measure, TermCounts, kept_numbers, sorted_terms
from likely.text.documents import (
    TextBatch,
    as_read,
    as_terms,
    as_texts,
    batches,
    checked_terms,
    contents,
    is_stream,
    listed,
    packed_terms,
    rises,
)
from likely.text.vocabulary import VocabularyLimits, document_limits
from likely.text.words import WordStatistics, collect_sized, collect_words

__all__ = [
    "SHARES", "Analyzer", "Measure", "TermCounts", "TextBatch", "VocabularyLimits", "WordStatistics", "as_read",
    "as_terms", "as_texts", "batches", "checked_terms", "collect_sized", "collect_words", "contents",
    "document_limits", "is_stream", "kept_numbers", "listed", "packed_terms", "rises", "sorted_terms",
]  # fmt: skip
