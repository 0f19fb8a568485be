"""The native core's functions: arrays in, arrays out, the interpreter released. Written in Rust, in ``core/``."""

try:
    from likely._core import (
        BadCellError,
        begin_scores,
        collect_categories,
        collect_expected,
        collect_moments,
        collect_scatter,
        collect_sparse,
        encode_integers,
        excess,
        gamma_shapes,
        get_threads,
        likeliest,
        log_density,
        log_shares,
        posterior_in_place,
        score_binary,
        score_categories,
        score_full,
        score_gamma,
        score_gaussian,
        score_jacobian,
        score_linear,
        score_poisson,
        score_products,
        score_sparse,
        set_threads,
    )
except ModuleNotFoundError as error:
    raise ImportError(
        "expected likely with its compiled core, got its source folder without one: "
        "leave the folder, or install with pip install -e ."
    ) from error

__all__ = [
    "BadCellError",
    "begin_scores",
    "collect_categories",
    "collect_expected",
    "collect_moments",
    "collect_scatter",
    "collect_sparse",
    "encode_integers",
    "excess",
    "gamma_shapes",
    "get_threads",
    "likeliest",
    "log_density",
    "log_shares",
    "posterior_in_place",
    "score_binary",
    "score_categories",
    "score_full",
    "score_gamma",
    "score_gaussian",
    "score_jacobian",
    "score_linear",
    "score_poisson",
    "score_products",
    "score_sparse",
    "set_threads",
]
