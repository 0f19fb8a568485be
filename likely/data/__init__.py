"""From anything that is a table to typed cells, and back into the frames of the user."""

from likely.data.rows import open_rows
from likely.data.write import write_rows

__all__ = ["open_rows", "write_rows"]
