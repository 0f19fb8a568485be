"""When two classifiers of a kind are the same: in what they learned, and in what they answer."""

import numpy as np

ATTRIBUTES = [
    "class_count_",
    "class_log_prior_",
    "classes_",
    "feature_count_",
    "feature_log_prob_",
    "feature_all_",
    "category_count_",
    "n_categories_",
    "n_features_in_",
]


def equal(one, other):
    if isinstance(other, list):
        assert isinstance(one, list)
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            equal(a, b)
    elif isinstance(other, np.ndarray) and other.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    else:
        np.testing.assert_array_equal(one, other)


def alike(one, other, new):
    """Two models that must be the same, whatever way they have learned."""
    for attribute in ATTRIBUTES:
        assert hasattr(one, attribute) == hasattr(other, attribute), attribute
        if hasattr(other, attribute):
            equal(getattr(one, attribute), getattr(other, attribute))
    equal(one.predict_proba(new), other.predict_proba(new))
