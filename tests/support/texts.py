"""Texts for tests: hard characters, rows of labelled texts, and the textbook's classifier of them."""

import numpy as np
from hypothesis import strategies as st

from likely import TextClassifier

# letters whose lower case is long or depends on neighbours, marks, spaces of all kinds, and what is no letter
HARD = "aAbB zZ_09 .,!'\n\t\0\x1c\x85\xa0\u2003éÉßİıΣσςΑΆǅﬁ½²٣京コ한\u0301\u0345\u200d😀𝔸𐐀\ufffd"
STRINGS = st.text(st.one_of(st.sampled_from(HARD), st.characters(exclude_categories=["Cs"])), max_size=60)

WORDS = ["dog", "cat", "tulip", "rose", "the", "Straße", "naïve"]
texts_and_labels = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), st.sampled_from(["a", "b", "c"])),
    min_size=2,
    max_size=20,
).filter(lambda rows: len({label for _, label in rows}) > 1 and any(text for text, _ in rows))


def textbook(**more):
    return TextClassifier(calibrate=False, ngrams=1, unit="words", **more)


def made(n=400, seed=0, classes=3, share=0.15):
    """Texts of which some words tell the class, and most do not."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, n)
    texts = [
        " ".join(
            f"own{c}x{generator.integers(0, 30)}" if generator.random() < share else f"any{generator.integers(0, 300)}"
            for _ in range(generator.integers(1, 40))
        )
        for c in y
    ]
    return texts, np.array([f"class {c}" for c in y])
