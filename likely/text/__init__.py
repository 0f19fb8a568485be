"""From strings to counts of words, characters and their n-grams."""

from likely.text.analyzer import Analyzer, ClassCounts, Rows, sorted_terms
from likely.text.documents import as_terms, as_texts

__all__ = ["Analyzer", "ClassCounts", "Rows", "as_terms", "as_texts", "sorted_terms"]
