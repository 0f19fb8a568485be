"""Every kernel of the native core equals its definition in NumPy."""

import numpy as np
import oracle
import pytest
from scipy import stats
from scipy.sparse import csr_array

from likely import native

ROWS, WIDTH, CLASSES = 5000, 5, 3


@pytest.fixture(params=["contiguous", "Fortran", "float32"])
def x(request) -> np.ndarray:
    """Positive numbers with holes, in several forms."""
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 3.0, (ROWS, WIDTH)) + 0.01
    x[rng.random(x.shape) < 0.1] = np.nan
    forms = {"contiguous": x, "Fortran": np.asfortranarray(x), "float32": x.astype(np.float32)}
    return forms[request.param]


@pytest.fixture
def codes() -> np.ndarray:
    return np.random.default_rng(1).integers(-1, CLASSES, ROWS).astype(np.int32)  # −1: of no class


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def weights(request) -> np.ndarray | None:
    return np.random.default_rng(2).integers(0, 4, ROWS) / 2 if request.param else None


every_choice_of_columns = pytest.mark.parametrize("columns", [None, [3, 0], [2]], ids=str)


def _chosen(x: np.ndarray, columns: list[int] | None) -> np.ndarray:
    return x.astype(np.float64) if columns is None else x[:, columns].astype(np.float64)


def _by_class(values: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Σ w · values of each class, passing over NaN."""
    w = np.ones(len(codes)) if weights is None else weights
    weighed = w.reshape(-1, *[1] * (values.ndim - 1)) * values
    return np.array([np.nansum(weighed[codes == c], axis=0) for c in range(CLASSES)])


def _about(values: np.ndarray, origin: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance of every cell from the origin of its class, and that origin; a row of no class has 1."""
    o = np.vstack([origin, np.ones(values.shape[1])])[codes]
    return values - o, o


@every_choice_of_columns
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("domain", ["real", "log", "non-negative", "positive", "count", "above 4.5"])
def test_collect_moments(x, codes, weights, columns, centred, domain):
    x = np.round(x) if domain == "count" else x
    got = native.collect_moments(x, columns, domain, CLASSES, codes, weights, centred, "square")
    origin, weight, total, square = got
    values = _read(_chosen(x, columns), domain)
    assert centred or not origin.any()
    t, _ = _about(values, origin, codes)
    np.testing.assert_array_equal(weight, _by_class(np.where(np.isnan(values), np.nan, 1.0), codes, weights))
    np.testing.assert_allclose(total, _by_class(t, codes, weights), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(square, _by_class(t**2, codes, weights), rtol=1e-12)


def _read(values: np.ndarray, domain: str) -> np.ndarray:
    """Take cells to their domain."""
    if domain == "log":
        return np.log(values)
    return np.where(np.isnan(values), np.nan, values > 4.5) if domain == "above 4.5" else values


@every_choice_of_columns
def test_collect_excess(x, codes, weights, columns):
    """Σw(u − 1 − log u), u = x/origin."""
    origin, _, total, excess = native.collect_moments(x, columns, "positive", CLASSES, codes, weights, True, "excess")
    values = _chosen(x, columns)
    t, o = _about(values, origin, codes)
    np.testing.assert_allclose(total, _by_class(t, codes, weights), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(excess, _by_class(t / o - np.log(values / o), codes, weights), rtol=1e-12)


@every_choice_of_columns
@pytest.mark.parametrize("fourth", [False, True])
def test_collect_scatter(x, codes, weights, columns, fourth):
    x = np.where(np.isnan(x), x.dtype.type(1.5), x)
    origin, *sums = native.collect_scatter(x, columns, CLASSES, codes, weights, fourth)
    t, _ = _about(_chosen(x, columns), origin, codes)
    one, two = t[:, :, None], t[:, None, :]
    want = [np.ones(len(t)), t, one * two, one**2 * two, one**2 * two**2][: 5 if fourth else 3]
    assert len(sums) == len(want)
    for got, values in zip(sums, want, strict=True):
        size = _by_class(np.abs(values), codes, weights)
        np.testing.assert_array_less(np.abs(got - _by_class(values, codes, weights)), 1e-13 * size + 1e-300)


@every_choice_of_columns
def test_collect_categories(x, codes, weights, columns):
    x = np.round(x) - 3
    counted = native.collect_categories(x, columns, "real", CLASSES, codes, weights)
    kept = (codes >= 0) & (True if weights is None else weights > 0)
    for (values, counts), column in zip(counted, _chosen(x, columns).T, strict=True):
        there = kept & ~np.isnan(column)
        np.testing.assert_array_equal(values, np.unique(column[there]))
        indicators = (column[:, None] == values).astype(float)
        np.testing.assert_array_equal(counts.T, _by_class(indicators, codes, weights))


def _sparse(dtype: type, index: type) -> csr_array:
    rng = np.random.default_rng(3)
    rows = csr_array(rng.poisson(0.3, (ROWS, 40)).astype(dtype))
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    return rows


SPARSE_TYPES = [(np.float64, np.int32), (np.float32, np.int32), (np.int64, np.int32), (np.float64, np.int64)]


@pytest.mark.parametrize(("dtype", "index"), SPARSE_TYPES)
def test_collect_sparse(codes, weights, dtype, index):
    rows = _sparse(dtype, index)
    starts = rows.indptr.astype(np.int64)
    got = native.collect_sparse(starts, rows.indices, rows.data, 40, "non-negative", CLASSES, codes, weights)
    np.testing.assert_array_equal(got, _by_class(rows.toarray().astype(float), codes, weights))


@pytest.mark.parametrize(("dtype", "index"), SPARSE_TYPES)
def test_score_sparse(dtype, index):
    rows = _sparse(dtype, index)
    log_shares = np.log(np.random.default_rng(4).dirichlet(np.ones(40), CLASSES)).T.copy()
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_sparse(rows.indptr.astype(np.int64), rows.indices, rows.data, "non-negative", log_shares, out)
    np.testing.assert_allclose(out, 7.0 + rows.toarray() @ log_shares, rtol=1e-13)


@every_choice_of_columns
@pytest.mark.parametrize("domain", ["real", "log"])
def test_score_gaussian(x, columns, domain):
    values = _chosen(x, columns)
    values = np.log(values) if domain == "log" else values
    rng = np.random.default_rng(5)
    mean, deviation = rng.normal(size=(CLASSES, values.shape[1])), rng.uniform(0.5, 2, (CLASSES, values.shape[1]))
    constant = -np.log(deviation) - 0.5 * np.log(2 * np.pi)
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_gaussian(x, columns, domain, mean, 1 / deviation, constant, out)
    cells = stats.norm.logpdf(values[:, None, :], mean, deviation)
    np.testing.assert_allclose(out, 7.0 + np.nansum(cells, axis=2), rtol=1e-12, atol=1e-12)


@every_choice_of_columns
def test_score_linear(x, columns):
    values = _chosen(x, columns)
    rng = np.random.default_rng(6)
    slope, constant = rng.normal(size=(2, CLASSES, values.shape[1]))
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_linear(x, columns, "non-negative", slope, constant, out)
    want = 7.0 + np.nansum(values[:, None, :] * slope + constant, axis=2)
    np.testing.assert_allclose(out, want, rtol=1e-12, atol=1e-12)


@every_choice_of_columns
def test_score_gamma(x, columns):
    values = _chosen(x, columns)
    mean, shape = np.random.default_rng(6).uniform(0.5, 9, (2, CLASSES, values.shape[1]))
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_gamma(x, columns, mean, shape, out)
    cells = stats.gamma.logpdf(values[:, None, :], shape, scale=mean / shape)
    np.testing.assert_allclose(out, 7.0 + np.nansum(cells, axis=2), rtol=1e-12, atol=1e-12)


def test_score_linear_takes_zero_times_minus_infinity_as_zero():
    out = np.zeros((2, 1))
    native.score_linear(np.array([[0.0], [1.0]]), None, "count", np.array([[-np.inf]]), np.array([[0.5]]), out)
    assert out.tolist() == [[0.5], [-np.inf]]


@every_choice_of_columns
def test_score_jacobian(x, columns):
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_jacobian(x, columns, out)
    want = 7.0 - np.nansum(np.log(_chosen(x, columns)), axis=1, keepdims=True)
    np.testing.assert_allclose(out, np.tile(want, CLASSES), rtol=1e-12, atol=1e-12)


@every_choice_of_columns
def test_score_poisson(x, columns):
    x = np.round(x)
    values = _chosen(x, columns)
    assert (values == 0).any()
    rate = np.random.default_rng(6).uniform(0.5, 9, (CLASSES, values.shape[1]))
    rate[0, 0] = 0.0
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_poisson(x, columns, rate, out)
    cells = stats.poisson.logpmf(values[:, None, :], rate)
    np.testing.assert_allclose(out, 7.0 + np.nansum(cells, axis=2), rtol=1e-12, atol=1e-12)


@every_choice_of_columns
@pytest.mark.parametrize("domain", ["binary", "above 4.5"])
def test_score_binary(x, columns, domain):
    x = np.where(np.isnan(x), np.nan, x > 4.5) if domain == "binary" else x
    values = _chosen(x, columns)
    yes = _read(values, domain)[:, None, :]
    share = np.random.default_rng(6).uniform(0.1, 0.9, (CLASSES, values.shape[1]))
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_binary(x, columns, domain, np.log(1 - share), np.log(share), out)
    cells = np.where(np.isnan(yes), 0.0, np.where(yes == 1, np.log(share), np.log(1 - share)))
    np.testing.assert_allclose(out, 7.0 + cells.sum(axis=2), rtol=1e-12, atol=1e-12)


def test_score_binary_may_be_impossible():
    out = np.zeros((2, 1))
    native.score_binary(np.array([[0.0], [1.0]]), None, "binary", np.array([[0.0]]), np.array([[-np.inf]]), out)
    assert out.tolist() == [[0.0], [-np.inf]]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("columns", [None, [3, 0], [2], [4, 1, 2, 0, 3]], ids=str)
@pytest.mark.parametrize("holes", [False, True])
def test_score_full(x, columns, tied, holes):
    x = x[:400] if holes else np.where(np.isnan(x[:400]), x.dtype.type(2), x[:400])
    values = _chosen(x, columns)
    d = values.shape[1]
    rng = np.random.default_rng(7)
    mean = rng.normal(5, 2, (CLASSES, d))
    factor = np.tril(rng.normal(size=(1 if tied else CLASSES, d, d))) + 3 * np.eye(d)
    covariance = factor @ np.swapaxes(factor, 1, 2)
    constant = -0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1] * np.ones(CLASSES)
    out, compared = np.full((2, 400, CLASSES), 7.0)
    parameters = mean, np.tril(np.linalg.inv(factor)), covariance, constant
    native.score_full(x, columns, *parameters, None, out)
    for c in range(CLASSES):
        want = [oracle._marginal(row, mean[c], covariance[0 if tied else c]) for row in values]
        np.testing.assert_allclose(out[:, c], 7.0 + np.array(want), rtol=1e-12, atol=1e-11)
    if not tied:
        return
    theta = np.linalg.solve(covariance[0], (mean - 1.0).T).T
    linear = np.ones(d), np.ascontiguousarray(theta), -0.5 * (theta * (mean - 1.0)).sum(axis=1)
    native.score_full(x, columns, *parameters, linear, compared)
    differences = [scores - scores[:, :1] for scores in (compared, out)]
    np.testing.assert_allclose(*differences, rtol=1e-12, atol=1e-10)


@every_choice_of_columns
def test_score_categories(x, columns):
    x = np.round(x)
    values = _chosen(x, columns)
    known = [np.array([0.0, 1.0, 2.0, 5.0]), np.array([]), np.array([3.0]), np.arange(20.0), np.array([2.0, 400.0])]
    known = known[: values.shape[1]]
    starts = np.cumsum([0, *map(len, known)])
    scores = np.random.default_rng(8).normal(size=(starts[-1], CLASSES))
    out = np.full((ROWS, CLASSES), 7.0)
    native.score_categories(x, columns, "real", np.concatenate(known), starts, scores, out)
    want = np.full((ROWS, CLASSES), 7.0)
    for j, column in enumerate(values.T):
        for place, value in enumerate(known[j]):
            want[column == value] += scores[starts[j] + place]
    np.testing.assert_allclose(out, want, rtol=1e-13, atol=1e-13)
