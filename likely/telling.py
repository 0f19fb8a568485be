"""Warnings about the user's data, at the line of the user's program that gave them."""

import os
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def tell(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn; the line shown is the first one up the stack that is outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
