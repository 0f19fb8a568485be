"""Families of distributions: what x looks like within one class."""

from likely.families.base import (
    Density,
    EMInput,
    EMStep,
    Family,
    LinearForm,
    QuadraticForm,
    UnsolvableError,
    on_one_line,
    read_number,
    read_numbers,
    readable_errors,
    subtract_logs,
)
from likely.families.categorical import Categorical, Named, Numbered, WholeNumbers
from likely.families.covariance_prior import CovariancePrior
from likely.families.gaussian import Gaussian, GaussianPrior, LogNormal
from likely.families.positive import Counts, Exponential, Gamma, Poisson
from likely.families.together import Together
from likely.families.words import Bernoulli, Complement, Multinomial

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (Gaussian, LogNormal, Gamma, Exponential, Poisson, Bernoulli, Categorical, Multinomial, Complement)
}

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Complement",
    "Counts",
    "CovariancePrior",
    "Density",
    "EMInput",
    "EMStep",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "GaussianPrior",
    "LinearForm",
    "LogNormal",
    "Multinomial",
    "Named",
    "Numbered",
    "Poisson",
    "QuadraticForm",
    "Together",
    "UnsolvableError",
    "WholeNumbers",
    "on_one_line",
    "read_number",
    "read_numbers",
    "readable_errors",
    "subtract_logs",
]
