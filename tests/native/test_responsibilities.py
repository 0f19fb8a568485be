"""The kernels of hidden classes equal their definitions in NumPy: responsibilities, and sums weighted by them."""

import numpy as np
import pytest
from scipy.special import logsumexp

import likely
from likely import native

ROWS = 5000
FORMS = {
    "contiguous": lambda x: x,
    "Fortran": np.asfortranarray,
    "float32": lambda x: x.astype(np.float32),
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
}
# Widths and numbers of classes around those that are multiplied together.
SHAPES = [(1, 1), (3, 2), (4, 4), (5, 3), (9, 6), (13, 10)]


def _rows(width, form="contiguous", missing=0.0, apart=1.0):
    rng = np.random.default_rng(width)
    x = apart * rng.integers(3, size=(ROWS, 1)) + rng.normal(size=(ROWS, width)) @ rng.normal(size=(width, width))
    x[rng.random(x.shape) < missing] = np.nan
    return FORMS[form](x)


def _responsibilities(k, kind="soft"):
    """Responsibilities of all classes in every row, of one class alone, or of all in some rows and of one in others."""
    rng = np.random.default_rng(k)
    hard = np.eye(k)[rng.integers(k, size=ROWS)]
    soft = rng.dirichlet(np.ones(k), ROWS)
    return {"soft": soft, "hard": hard, "mixed": np.where(np.arange(ROWS)[:, None] < 2000, soft, hard)}[kind]


def _weights(weighted):
    return np.random.default_rng(3).integers(0, 4, ROWS) / 2 if weighted else None


def _weighed(responsibilities, weights):
    return responsibilities if weights is None else responsibilities * weights[:, None]


def _close(got, values, responsibilities):
    """Σ_r responsibilities · values of each class, to some digits of what is added up."""
    want = np.einsum("rc,rc...->c...", responsibilities, values)
    size = np.einsum("rc,rc...->c...", responsibilities, np.abs(values))
    np.testing.assert_array_less(np.abs(got - want), 1e-13 * size + 1e-300)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["soft", "hard", "mixed"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("width", "k"), SHAPES)
def test_moments_of_shared_rows(width, k, form, kind, weighted):
    x, responsibilities, weights = _rows(width, form, missing=0.01), _responsibilities(k, kind), _weights(weighted)
    origin = np.random.default_rng(5).normal(size=(k, width))
    weight, total, square = native.collect_responsibility_moments(x, None, "real", responsibilities, weights, origin)
    t = x.astype(np.float64)[:, None, :] - origin
    there = ~np.isnan(t)
    t = np.where(there, t, 0.0)
    w = _weighed(responsibilities, weights)
    _close(weight, there.astype(float), w)
    _close(total, t, w)
    _close(square, t**2, w)


@pytest.mark.parametrize("domain", ["real", "log"])
def test_moments_of_some_columns_and_of_logarithms(domain):
    x, responsibilities = np.exp(_rows(6)), _responsibilities(5)
    origin = np.random.default_rng(5).normal(size=(5, 3))
    weight, total, square = native.collect_responsibility_moments(x, [4, 0, 5], domain, responsibilities, None, origin)
    t = (np.log(x) if domain == "log" else x)[:, None, [4, 0, 5]] - origin
    _close(weight, np.ones_like(t), responsibilities)
    _close(total, t, responsibilities)
    _close(square, t**2, responsibilities)


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_a_row_of_weight_0_is_not_read_and_an_infinite_cell_is_named(kind):
    x, responsibilities, weights = _rows(5), _responsibilities(3, kind), np.ones(ROWS)
    want = native.collect_responsibility_moments(
        x, None, "real", responsibilities, np.where(np.arange(ROWS) == 70, 0, 1.0), x[:3].copy()
    )
    x[70, 3] = np.inf
    got = native.collect_responsibility_moments(
        x, None, "real", responsibilities, np.where(np.arange(ROWS) == 70, 0, 1.0), x[:3].copy()
    )
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(native.BadCellError) as raised:
        native.collect_responsibility_moments(x, None, "real", responsibilities, weights, x[:3].copy())
    assert raised.value.args == (70, 3, np.inf)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["soft", "hard", "mixed"])
@pytest.mark.parametrize("form", FORMS)
def test_categories_of_shared_rows(form, kind, weighted):
    rng = np.random.default_rng(0)
    x = rng.choice([0.0, 1.0, 7.0, 255.0, 256.0, -2.0, 0.5, np.nan], (ROWS, 3))
    responsibilities, weights = _responsibilities(4, kind), _weights(weighted)
    counted = native.collect_responsibility_categories(FORMS[form](x), [2, 0], "real", responsibilities, weights)
    for j, (values, counts) in zip([2, 0], counted, strict=True):
        np.testing.assert_array_equal(values, np.unique(x[~np.isnan(x[:, j]), j]))
        for value, count in zip(values, counts, strict=True):
            np.testing.assert_allclose(
                count, _weighed(responsibilities, weights)[x[:, j] == value].sum(axis=0), rtol=1e-12
            )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("width", "k"), [*SHAPES, (17, 2), (29, 3)])
def test_scatter_of_shared_rows(width, k, form, weighted):
    x, responsibilities, weights = _rows(width, form), _responsibilities(k), _weights(weighted)
    origin = np.random.default_rng(5).normal(size=(k, width))
    weight, total, product = native.collect_responsibility_scatter(x, None, responsibilities, weights, origin, False)
    t = x.astype(np.float64)[:, None, :] - origin
    w = _weighed(responsibilities, weights)
    np.testing.assert_allclose(weight, w.sum(axis=0), rtol=1e-13)
    _close(total, t, w)
    _close(product, t[:, :, :, None] * t[:, :, None, :], w)


def _within(weight, total, product):
    """The scatter of all classes, each about its mean."""
    mean = total / weight[:, None]
    return (product - weight[:, None, None] * mean[:, :, None] * mean[:, None, :]).sum(axis=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("apart", [0.0, 1.0, 1e3, 1e6])
@pytest.mark.parametrize(("width", "k"), [(3, 2), (13, 10)])
def test_the_scatter_within_all_classes_is_the_same_if_tied(width, k, apart, weighted):
    """Classes lie up to a million deviations apart, and a million from 0."""
    rng = np.random.default_rng(0)
    responsibilities, weights = _responsibilities(k, "hard") * 0.999 + 0.001 / k, _weights(weighted)
    centres = apart * rng.normal(size=(k, width))
    if apart > 1:
        responsibilities = _responsibilities(k, "hard")
    x = 1e6 + centres[responsibilities.argmax(axis=1)] + rng.normal(size=(ROWS, width))
    origin = 1e6 + centres
    each = native.collect_responsibility_scatter(x, None, responsibilities, weights, origin, False)
    tied = native.collect_responsibility_scatter(x, None, responsibilities, weights, origin, True)
    np.testing.assert_allclose(tied[0], each[0], rtol=1e-13)
    np.testing.assert_allclose(tied[1], each[1], rtol=1e-9, atol=1e-9)
    within = _within(*each)
    scale = np.sqrt(np.outer(np.diagonal(within), np.diagonal(within)))
    np.testing.assert_array_less(np.abs(_within(*tied) - within), 1e-11 * scale)


def test_a_missing_cell_is_named_where_products_are_wanted():
    x = _rows(4)
    x[30, 2] = np.nan
    for tied in (False, True):
        with pytest.raises(native.BadCellError) as raised:
            native.collect_responsibility_scatter(x, None, _responsibilities(3), None, np.zeros((3, 4)), tied)
        assert raised.value.args[:2] == (30, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5, 13])
def test_expected_classes(k, known, weighted):
    rng = np.random.default_rng(k)
    scores = rng.normal(scale=30.0, size=(ROWS, k)) - 1e3
    log_weights, weights = np.log(rng.dirichlet(np.ones(k))), _weights(weighted)
    log_likelihood = logsumexp(scores, axis=1)
    want = np.exp(scores - log_likelihood[:, None])
    codes = None
    if known:
        codes = rng.integers(-1, k, ROWS).astype(np.int32)
        want[codes >= 0] = np.eye(k)[codes[codes >= 0]]
        log_likelihood = np.where(codes >= 0, scores[np.arange(ROWS), codes], log_likelihood)
    responsibilities = scores.copy()
    got, class_weights = native.expect_classes(responsibilities, log_weights, codes, weights)
    np.testing.assert_allclose(class_weights, _weighed(want, weights).sum(axis=0), rtol=1e-12)
    assert got == pytest.approx(np.sum(log_likelihood if weights is None else weights * log_likelihood), rel=1e-13)
    np.testing.assert_allclose(responsibilities, want, rtol=1e-12, atol=1e-300)


def test_a_row_that_is_impossible_in_every_class_belongs_to_each_by_its_weight():
    scores, log_weights = np.full((3, 2), -np.inf), np.log([0.25, 0.75])
    scores[1] = -1.0
    log_likelihood, class_weights = native.expect_classes(scores, log_weights, None, np.array([0.0, 1.0, 0.0]))
    assert log_likelihood == pytest.approx(np.log(2) - 1)
    np.testing.assert_allclose(class_weights, [0.5, 0.5])
    np.testing.assert_allclose(scores, [[0.25, 0.75], [0.5, 0.5], [0.25, 0.75]])


def test_threads_do_not_change_bits():
    x, responsibilities = np.repeat(_rows(13), 8, axis=0), np.repeat(_responsibilities(10, "mixed"), 8, axis=0)
    origin, found = np.ascontiguousarray(x[:10]), []
    for threads in (1, 2, 5):
        likely.set_threads(threads)
        sums = [
            *native.collect_responsibility_moments(x, None, "real", responsibilities, None, origin),
            *native.collect_responsibility_scatter(x, None, responsibilities, None, origin, False),
            *native.collect_responsibility_scatter(x, None, responsibilities, None, origin, True),
            *(
                counts
                for _, counts in native.collect_responsibility_categories(
                    x.round(), None, "real", responsibilities, None
                )
            ),
        ]
        scores = np.log(responsibilities + 1e-9)
        log_likelihood, class_weights = native.expect_classes(scores, np.zeros(10), None, None)
        found.append([log_likelihood, class_weights.tobytes(), scores.tobytes(), *(part.tobytes() for part in sums)])
    likely.set_threads(None)
    assert found[0] == found[1] == found[2]
