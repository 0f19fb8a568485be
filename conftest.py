"""Test the installed package: unless it is installed with ``-e``, this folder lacks the compiled module."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if not any(file.suffix in (".so", ".pyd") for file in (HERE / "likely").glob("_core.*")):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != HERE]
    os.environ["PYTHONSAFEPATH"] = "1"  # the same for the processes that tests start
