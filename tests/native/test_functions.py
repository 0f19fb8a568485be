"""The kernels that read no matrix of cells, and how a bad cell is named."""

import numpy as np
import oracle
import pytest
from mpmath import mp, mpf
from scipy.special import logsumexp, softmax

from likely import native

CLASSES = 3


@pytest.mark.parametrize("kind", ["one", "by word", "by class and word", "none"])
def test_log_probabilities(kind):
    rng = np.random.default_rng(9)
    counts = rng.poisson(40, (CLASSES, 5000)).astype(float)
    counts[:, ::5] += 0.25
    smoothing = {
        "one": np.array([0.7]),
        "by word": rng.random(5000),
        "by class and word": rng.random(CLASSES * 5000),
        "none": np.zeros(1),
    }[kind]
    smoothed = counts + (smoothing.reshape(CLASSES, -1) if len(smoothing) > 5000 else smoothing)
    want = np.log(smoothed / smoothed.sum(axis=1, keepdims=True)).T
    np.testing.assert_allclose(native.log_probabilities(counts, smoothing), want, rtol=1e-14)


def _rows_with_holes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of 11 columns, sorted by pattern and class, the patterns, and lines of (pattern, class, rows)."""
    rng = np.random.default_rng(11)
    patterns = rng.random((40, 11)) < 0.6
    patterns[:2] = [[True] * 11, [True] + [False] * 10]
    groups = np.array([(p, c, rng.integers(1, 30)) for p in range(40) for c in range(CLASSES) if rng.random() < 0.7])
    x = rng.normal(size=(groups[:, 2].sum(), 11))
    x[~np.repeat(patterns[groups[:, 0]], groups[:, 2], axis=0)] = np.nan
    return x, patterns, groups


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_collect_expected(tied, weighted):
    x, patterns, groups = _rows_with_holes()
    rng = np.random.default_rng(12)
    mean = rng.normal(size=(CLASSES, 11))
    factor = np.eye(11) + 0.3 * rng.normal(size=(1 if tied else CLASSES, 11, 11))
    covariance = factor @ np.swapaxes(factor, 1, 2)
    weights = rng.uniform(0.1, 3.0, len(x)) if weighted else None
    there, precision = ~np.isnan(x), np.linalg.inv(covariance)
    got = native.collect_expected(x[there], len(x), weights, patterns, groups, mean, precision)
    want = [np.zeros(CLASSES), np.zeros((CLASSES, 11)), np.zeros((CLASSES, 11, 11))]
    for i, c in enumerate(np.repeat(groups[:, 1], groups[:, 2])):
        o, m, S = there[i], ~there[i], covariance[0 if tied else c]
        B = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, m)]).T
        t, C = x[i].copy(), np.zeros((11, 11))
        t[m] = mean[c, m] + B @ (t[o] - mean[c, o])
        C[np.ix_(m, m)] = S[np.ix_(m, m)] - B @ S[np.ix_(o, m)]
        w = 1.0 if weights is None else weights[i]
        for total, part in zip(want, (1.0, t, np.outer(t, t) + C), strict=True):
            total[c] += w * part
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(got[2], np.swapaxes(got[2], 1, 2))


@pytest.mark.parametrize("wrong", [(0, 0, 10**9), (0, 0, -1), (0, CLASSES, 1), (-1, 0, 1), (40, 0, 1), (1, 0, 1)])
def test_groups_that_do_not_fit_are_refused(wrong):
    x, patterns, groups = _rows_with_holes()
    mean, precision = np.zeros((CLASSES, 11)), np.eye(11)[None]
    with pytest.raises(ValueError, match=r"fit|outside"):
        native.collect_expected(x[~np.isnan(x)], len(x), None, patterns, np.vstack([groups, [wrong]]), mean, precision)


def test_encode_integers():
    for labels in ([3, -5, 3, 2**62, 0, -5], [7], np.random.default_rng(0).integers(-1000, 1000, 100_000)):
        classes, places = native.encode_integers(np.array(labels, dtype=np.int64))
        want, inverse = np.unique(labels, return_inverse=True)
        np.testing.assert_array_equal(classes, want)
        np.testing.assert_array_equal(places, inverse)


def _log_joint() -> np.ndarray:
    joint = np.random.default_rng(10).normal(-500, 30, (20_000, 4))
    joint[::7, 2] = -np.inf
    joint[5] = -np.inf
    return joint


def test_log_density_is_log_sum_exp():
    joint = _log_joint()
    np.testing.assert_allclose(native.log_density(joint), logsumexp(joint, axis=1), rtol=1e-15)
    assert native.log_density(joint)[5] == -np.inf


@pytest.mark.parametrize("log", [False, True])
def test_posterior_is_softmax_and_the_weights_where_nothing_is_possible(log):
    joint, weights = _log_joint(), np.array([0.1, 0.2, 0.3, 0.4])
    got = joint.copy()
    native.posterior_in_place(got, np.log(weights), log)
    want = np.where(np.isneginf(joint).all(axis=1, keepdims=True), np.log(weights), joint)
    want = want - logsumexp(want, axis=1, keepdims=True) if log else softmax(want, axis=1)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=0 if not log else 1e-12)


def test_likeliest_is_argmax_and_the_weightiest_where_nothing_is_possible():
    joint, weights = _log_joint(), np.array([0.1, 0.2, 0.4, 0.3])
    want = joint.argmax(axis=1)
    want[5] = 2
    np.testing.assert_array_equal(native.likeliest(joint, np.log(weights)), want)


@pytest.mark.parametrize("ratio", [1e-300, 1e-9, 0.1, 0.79, 0.81, 1 - 1e-9, 1.0, 1 + 1e-12, 1.29, 1.31, 50.0, 1e290])
@pytest.mark.parametrize("centre", [1.0, 3.0, 1e9])
def test_excess_keeps_its_digits(ratio, centre):
    """u − 1 − log u with u = x/m, of the numbers as they are stored."""
    x = ratio * centre
    with mp.workdps(50):
        u = mpf(x) / mpf(centre)
        want = float(u - 1 - mp.log(u))
    assert native.excess(np.array([[x]]), np.array([[centre]]))[0, 0] == pytest.approx(want, rel=1e-14, abs=0)


def test_gamma_shapes():
    gaps = np.array([1e-8, 1e-6, 1e-4, 0.01, 0.3, 1.0, 2.5, 10.0, 100.0])
    with mp.workdps(40):
        want = [oracle.gamma_shape(gap) for gap in gaps]
    np.testing.assert_allclose(native.gamma_shapes(gaps), want, rtol=1e-12)


def test_a_bad_cell_is_named_by_row_column_and_value():
    x = np.ones((4, 3))
    x[2, 1] = -5.0
    codes = np.zeros(4, dtype=np.int32)
    for domain in ("log", "non-negative", "positive", "count", "binary"):
        with pytest.raises(native.BadCellError) as caught:
            native.collect_moments(x, None, domain, 1, codes, None, True, "square")
        assert caught.value.args == (2, 1, -5.0)
    with pytest.raises(native.BadCellError):
        native.collect_moments(np.full((1, 1), 0.5), None, "count", 1, codes[:1], None, False, "square")


@pytest.mark.parametrize(
    "ask",
    [
        lambda none: native.begin_scores(np.empty((3, 0)), none),
        lambda none: native.likeliest(np.empty((3, 0)), none),
        lambda none: native.expect_classes(np.empty((3, 0)), none, None, None),
        lambda _: native.collect_categories(np.ones((3, 1)), None, "real", 0, np.full(3, -1, np.int32), None),
        lambda none: native.score_full(
            np.ones((3, 1)), [], np.empty((2, 0)), none, none, np.zeros(2), None, np.zeros((3, 2))
        ),
        lambda _: native.collect_responsibility_expected(
            np.ones((3, 1)), [], np.ones((3, 2)), None, np.empty((2, 0)), np.empty((2, 0, 0))
        ),
    ],
)
def test_no_class_and_no_column_are_refused(ask):
    with pytest.raises(ValueError, match="at least one class and one column"):
        ask(np.empty(0))


@pytest.mark.parametrize("count", [0.0, -1.0, np.nan])
def test_counts_of_words_that_are_none_are_no_evidence(count):
    words = (
        np.array([0, 2]),
        np.array([0, 1], np.int32),
        np.array([3.0, 2.0]),
        np.array([3.0, 2.0]),
        np.zeros(1, np.uint8),
    )
    rows = (
        np.array([0, 1, 2]),
        np.zeros(2, np.int32),
        np.array([count, count], np.float32),
        np.array([0, 1], np.int32),
        np.ones(2),
        np.ones(2),
    )
    (starts, _, evidence), shares = native.evidence_out_of_fold(
        words, np.array([3.0, 2.0]), rows, [0, 1, 2], (np.empty(0), np.empty(0))
    )
    assert len(starts) == 3
    assert np.isfinite(evidence).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_tables_of_characters_are_text():
    tables = (
        np.zeros(300, np.uint8),
        np.array([200], np.uint32),
        np.array([0, 1], np.uint32),
        np.array([0xE9], np.uint8),
    )
    with pytest.raises(ValueError, match="not UTF-8"):
        native.count_units(["é"], ("words", 1, 1, True, "strict", []), tables)
