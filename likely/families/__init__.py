"""Families of distributions: what x looks like within one class."""

from likely.families.base import (
    CollinearError,
    Density,
    Family,
    LinearForm,
    QuadraticForm,
    readable_errors,
    subtract_logs,
)
from likely.families.discrete import Bernoulli, Categorical, Multinomial
from likely.families.gaussian import Gaussian, GaussianPrior, LogNormal
from likely.families.positive import Exponential, Gamma, Poisson

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (Gaussian, LogNormal, Gamma, Exponential, Poisson, Bernoulli, Categorical, Multinomial)
}

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "CollinearError",
    "Density",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "GaussianPrior",
    "LinearForm",
    "LogNormal",
    "Multinomial",
    "Poisson",
    "QuadraticForm",
    "readable_errors",
    "subtract_logs",
]
