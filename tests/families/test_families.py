"""Every family solves to what the reference solves to, and has the densities of SciPy."""

import numpy as np
import oracle
import pytest
from cases import CASES, Case, Data, learn, make_data, parameters
from laws import log_joint

from likely.joint import Joint


def _data(case: Case) -> Data:
    """Return rows with whole weights, and holes where the case takes them; every class has cells in every column."""
    rng = np.random.default_rng(11)
    data = make_data(case, [30, 20, 45], rng)
    X = data.X.copy()
    if case.holes and not case.plain and not case.expected:
        X[rng.random(X.shape) < 0.15] = np.nan
    return Data(X, data.y, rng.integers(1, 4, len(X)).astype(float), data.classes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_solution_is_that_of_the_reference(case: Case):
    data = _data(case)
    model = learn(case, data)
    codes = np.searchsorted(data.classes, data.y)
    found = parameters(model)
    counts = np.bincount(codes, data.weights)
    if getattr(model, "priors", None) is None:
        np.testing.assert_allclose(found.pop("weights"), counts / counts.sum(), rtol=1e-15)
    else:
        np.testing.assert_allclose(found.pop("weights"), 1 / 3, rtol=1e-15)
    for i, part in enumerate(model.joint_.parts):
        X = data.X if part.columns is None else data.X[:, part.columns]
        for name, want in oracle.solve(part.family, X, codes, 3, data.weights).items():
            got = found.pop(f"{i} {type(model.joint_.densities[i]).__name__}.{name}")
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13, err_msg=name)
    assert not found, f"not compared: {list(found)}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_log_density_is_that_of_scipy(case: Case):
    data = _data(case)
    model = learn(case, data)
    joint: Joint = model.joint_
    X = data.X.copy()
    X[::3, 0] = np.nan
    want = np.tile(np.log(joint.weights), (len(X), 1))
    for part, density in zip(joint.parts, joint.densities, strict=True):
        want += oracle.log_density(density, X if part.columns is None else X[:, part.columns])
    np.testing.assert_allclose(log_joint(case, model, X), want, rtol=1e-11)


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 0.04, 0.5, 1.0, 3.0, 20.0, 300.0])
def test_gamma_shape_of_the_reference_solves_its_equation(gap: float):
    from mpmath import mp

    shape = oracle.gamma_shape(gap)
    assert float(abs(mp.log(shape) - mp.digamma(shape) - gap)) <= 1e-12 * gap + 1e-15
