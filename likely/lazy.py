"""Arrow, imported when something in it is first asked for: matrices do without, and it takes as long as NumPy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:

    class _Lazy:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    pa, pc, pq = _Lazy("pyarrow"), _Lazy("pyarrow.compute"), _Lazy("pyarrow.parquet")

__all__ = ["pa", "pc", "pq"]
