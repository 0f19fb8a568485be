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
from likely.families.categorical import Categorical
from likely.families.gaussian import Gaussian, GaussianPrior, LogNormal
from likely.families.positive import Exponential, Gamma, Poisson
from likely.families.words import Bernoulli, Complement, Multinomial

FAMILIES: dict[str, type[Family]] = {
    family.name: family
    for family in (Gaussian, LogNormal, Gamma, Exponential, Poisson, Bernoulli, Categorical, Multinomial, Complement)
}

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "CollinearError",
    "Complement",
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
