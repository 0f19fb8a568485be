"""Hashes of 64 bits, by splitmix64: the same on every machine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

GOLDEN, FIRST = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""The golden ratio, by which splitmix64 counts, and its first multiplier, as the core has them."""
_SECOND = np.uint64(0x94D049BB133111EB)


def mixed(keys: Any) -> Keys:
    """Return keys of which each bit depends on all bits of what was given.

    >>> mixed(np.arange(1, 3, dtype=np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    keys = (keys ^ (keys >> np.uint64(30))) * FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
    return np.asarray(keys ^ (keys >> np.uint64(31)))
