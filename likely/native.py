"""The native core's functions: arrays in, arrays out, the interpreter released. Written in Rust, in ``core/``."""

try:
    from likely._core import *  # noqa: F403
except ModuleNotFoundError as error:
    raise ImportError(
        "expected likely with its compiled core, got its source folder without one: "
        "leave the folder, or install with pip install -e ."
    ) from error
