"""Evidence of words, group by group and out of fold, against plain NumPy; and the exponents that discount it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likely
from likely import native
from likely.ensemble import exponents
from likely.ensemble.exponents import Evidence, Exponents, Scored

CUTS = 3


def evidence(amounts, documents, class_documents):
    """ℓ (classes × words), how much words tell, and what is against a class: the formulas as they stand."""
    has = documents > 0
    share = has.sum(axis=0) / has.sum()
    different = np.maximum(has.sum(axis=1), 1)
    total = amounts.sum(axis=1) + different
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log((amounts / share + different[:, None]) / total[:, None])
    pi = (class_documents + 0.5) / (class_documents + 0.5).sum()
    q = (documents + 2 * pi[:, None]) / (documents.sum(axis=0) + 2)
    return logs, (q * np.log(q / pi[:, None])).sum(axis=0), np.log(different / total)


def group(order, documents, told, edges):
    place = np.searchsorted(edges[order], told, side="right")
    inner = 0 if documents < 4 else 1 + (CUTS + 1) * (documents >= 64) + place
    return order * (1 + 2 * (CUTS + 1)) + inner


def sparse(amounts, documents, orders):
    """The arrays that the core takes, of classes × words."""
    has = documents.T > 0
    starts = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
    return (
        starts.astype(np.int64),
        np.nonzero(has)[1].astype(np.int32),
        amounts.T[has],
        documents.T[has],
        orders.astype(np.uint8),
    )


def made(seed, rows=40, words=12, classes=3, weighted=False):
    generator = np.random.default_rng(seed)
    counts = generator.poisson(0.7, (rows, words)).astype(np.float32)
    counts[:, 0] += 1
    y = generator.integers(0, classes, rows)
    weights = generator.integers(1, 4, rows).astype(float) if weighted else np.ones(rows)
    scales = 1 / counts.sum(axis=1).astype(float)
    orders = generator.integers(0, 2, words)
    edges = tuple(np.sort(generator.random(CUTS)) for _ in range(2))
    return counts, y, weights, scales, orders, edges


def sums(counts, y, weights, scales, classes):
    one = np.eye(classes)[y] * weights[:, None]
    return one.T @ (counts * scales[:, None]), one.T @ (counts > 0), one.sum(axis=0)


def dense(evidence, groups):
    """Evidence as rows × classes × groups."""
    rows = np.repeat(np.arange(len(evidence.starts) - 1), np.diff(evidence.starts))
    found = np.zeros((len(evidence.starts) - 1, groups, evidence.values.shape[1]))
    found[rows, evidence.columns] = evidence.values
    assert (np.diff(rows * groups + evidence.columns) > 0).all()
    assert evidence.values.any(axis=1).all()
    return found.transpose(0, 2, 1)


@given(st.integers(0, 10_000), st.booleans())
def test_evidence_is_the_formula(seed, weighted):
    counts, y, weights, scales, orders, _ = made(seed, weighted=weighted)
    amounts, documents, of_classes = sums(counts, y, weights, scales, 3)
    logs, told, against = evidence(amounts, documents, of_classes)
    found = native.word_evidence(sparse(amounts, documents, orders), of_classes)
    np.testing.assert_allclose(found[0], told, atol=1e-12)
    np.testing.assert_allclose(found[1], documents.sum(axis=0))
    np.testing.assert_allclose(found[2], logs.T[documents.T > 0], atol=1e-12)
    np.testing.assert_allclose(found[3], against, atol=1e-12)


@given(st.integers(0, 10_000), st.booleans())
def test_out_of_fold_is_without_the_fold(seed, weighted):
    counts, y, weights, scales, orders, edges = made(seed, weighted=weighted)
    folds = [0, 15, 15, 31, 40]
    whole = sums(counts, y, weights, scales, 3)
    row, word = np.nonzero(counts)
    rows = (
        np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))]).astype(np.int64),
        word.astype(np.int32),
        counts[row, word],
        y.astype(np.int32),
        weights,
        scales,
    )
    words = sparse(*whole[:2], orders)
    found, shares = native.evidence_out_of_fold(words, whole[2], rows, folds, edges)
    size = 2 * (1 + 2 * (CUTS + 1))
    found = dense(Evidence(*found), 2 * size)
    for fold, (first, last) in enumerate(pairwise(folds)):
        others = np.ones(len(y), dtype=bool)
        others[first:last] = False
        amounts, documents, of_classes = sums(counts[others], y[others], weights[others], scales[others], 3)
        logs, told, _ = evidence(amounts, documents, of_classes)
        np.testing.assert_allclose(shares[fold], (of_classes + 0.5) / (of_classes + 0.5).sum())
        for i in range(first, last):
            expected = np.zeros((3, 2 * size))
            for w in np.flatnonzero((counts[i] > 0) & (documents.sum(axis=0) > 0)):
                place = group(orders[w], documents[:, w].sum(), told[w], edges)
                expected[:, place] += counts[i, w] * np.maximum(logs[:, w], 0)
                expected[:, size + place] += counts[i, w] * np.minimum(logs[:, w], 0)
            np.testing.assert_allclose(found[i], expected, atol=2e-5)


def test_groups_of_words():
    edges = (np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7]))
    orders = np.array([0, 0, 0, 1, 1], dtype=np.uint8)
    documents, told = np.array([3.0, 4.0, 64.0, 3.0, 64.0]), np.array([0.9, 0.1, 0.0, 0.0, 0.9])
    found = native.word_groups(orders, documents, told, edges)
    assert found.tolist() == [group(*each, edges) for each in zip(orders, documents, told, strict=True)]
    assert found.tolist() == [0, 2, 5, 9, 17]


@pytest.mark.parametrize("change", ["starts", "class", "fold", "word"])
def test_arrays_that_do_not_fit(change):
    counts, y, weights, scales, orders, edges = made(0)
    whole = sums(counts, y, weights, scales, 3)
    words = list(sparse(*whole[:2], orders))
    row, word = np.nonzero(counts)
    starts = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))]).astype(np.int64)
    rows = [starts, word.astype(np.int32), counts[row, word], y.astype(np.int32), weights, scales]
    folds = [0, 40]
    if change == "starts":
        words[0] = words[0][::-1].copy()
    elif change == "class":
        rows[3] = rows[3] + 1
    elif change == "fold":
        folds = [0, 41]
    else:
        rows[1] = rows[1] - 1
    with pytest.raises(ValueError, match="do not fit together"):
        native.evidence_out_of_fold(tuple(words), whole[2], tuple(rows), folds, edges)


def scored(seed, rows=300, classes=3, groups=6, there=1.0):
    """Rows, each with such a share of the groups."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, rows)
    x = generator.standard_normal((rows, classes, groups)).astype(np.float32)
    x[np.arange(rows), y] += np.linspace(0, 1.5, groups, dtype=np.float32)
    x *= generator.random((rows, 1, groups)) < there
    shares = np.log(np.full((rows, classes), 1 / classes)) + generator.normal(0, 0.1, (rows, classes))
    return Scored(Evidence.of(x), generator.normal(0, 0.5, rows), shares, y, generator.random(rows) + 0.5)


def by_hand(rows, flat, groups):
    """The loss of rows, its gradient, its curvature without unlikely classes and the bend of the power; and that bend.

    Of the classes that are next to unlikely, the curvature of many rows takes every fourth, four times.
    """
    classes = rows.log_priors.shape[1]
    number = groups
    evidence = dense(rows.evidence, number)
    factor = np.exp(-flat[number] * rows.lengths)
    said = (evidence @ flat[:number]) * factor[:, None]
    z = said + flat[number + 1] * rows.log_priors + (flat[number + 2 :] if len(flat) > number + 2 else 0.0)
    logs = z - np.logaddexp.reduce(z, axis=1)[:, None]
    p, right = np.exp(logs), np.eye(classes)[rows.codes]
    drawn = (np.arange(len(p))[:, None] + np.arange(classes)) % 4 == 0
    thinned = (p < 1e-2) & (len(p) >= 1000)
    kept = (p * (1 - p) >= 1e-4) * np.where(thinned, 4.0 * drawn, 1.0)
    biases = np.eye(classes)[:, : len(flat) - number - 2]
    moves = [evidence * factor[:, None, None], -(rows.lengths[:, None] * said)[:, :, None]]
    u = np.concatenate([*moves, rows.log_priors[:, :, None]], axis=2)
    one = np.concatenate([u, np.broadcast_to(biases, (len(p), *biases.shape))], axis=2)
    means = np.concatenate([np.einsum("ic,icb->ib", p, u), (p * kept) @ biases], axis=1)
    apart = one - means[:, None]
    bend = np.zeros((len(flat), len(flat)))
    bent = -np.einsum("i,i,ic,icb->b", rows.weights, rows.lengths, p - right, u[:, :, : number + 1])
    bend[number, : number + 1] = bend[: number + 1, number] = bent
    return (
        -float(rows.weights @ (logs * right).sum(axis=1)),
        np.einsum("i,ic,icb->b", rows.weights, p - right, one),
        np.einsum("i,ic,ica,icb->ab", rows.weights, p * kept, apart, apart, optimize=True),
        bend,
    )


@pytest.mark.parametrize("classes", [2, 3, 9])
@pytest.mark.parametrize("biased", [True, False])
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 200),
    groups=st.integers(1, 40),
    there=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_slope_is_the_formula(classes, biased, seed, rows, groups, there):
    check_slope(scored(seed, rows, classes, groups, there), biased, seed, groups)


@pytest.mark.parametrize("biased", [True, False])
def test_slope_of_many_rows_is_the_formula(biased):
    check_slope(scored(0, 1001, 9, 20, 0.5), biased, 0, 20, strength=2.0)


def check_slope(scores, biased, seed, groups, strength=0.1):
    rows, classes = scores.log_priors.shape
    generator = np.random.default_rng(seed)
    bias = generator.normal(0, 0.1, classes if biased else 0)
    flat = np.concatenate([generator.random(groups) * strength + 0.1, [0.3, 0.9], bias])
    loss, gradient, curvature = native.exponent_slope(*scores, (flat[:groups], 0.3, 0.9, bias))
    expected = by_hand(scores, flat, groups)
    np.testing.assert_allclose(loss, expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-11 * rows)
    size = max(float(np.abs(expected[2]).max()), float(np.abs(expected[3]).max()), 1.0)
    np.testing.assert_allclose(curvature, expected[2] + expected[3], atol=1e-12 * size)
    np.testing.assert_array_equal(curvature, curvature.T)
    alone = native.exponent_slope(*scores, (flat[:groups], 0.3, 0.9, bias), False)
    np.testing.assert_array_equal(alone[1], gradient)
    assert (alone[0], alone[2]) == (loss, None)
    squares = curvature - expected[3]
    assert np.linalg.eigvalsh(squares).min() > -1e-12 * size
    damped = squares + np.diag(0.1 * np.abs(np.diag(squares)) + 1e-9)
    step = native.solve_damped(squares, gradient, 0.1)
    np.testing.assert_allclose(damped @ step, gradient, atol=1e-9 * (1 + np.abs(gradient).max()))


@pytest.mark.parametrize("further", [0, 2])
def test_slope_is_that_of_the_loss(further):
    rows = scored(0)
    generator = np.random.default_rng(1)
    flat = np.concatenate([generator.random(6) * 0.1 + 0.1, [0.3, 0.9], generator.normal(0, 0.1, 3)])
    begun = Exponents(np.zeros(6 - further), 0.0, 1.0, np.zeros(3), 0.2, np.ones(further))
    _, gradient, curvature = begun._at(flat)._slope(rows)
    pairs = [(begun._at(flat + h)._slope(rows), begun._at(flat - h)._slope(rows)) for h in 1e-3 * np.eye(len(flat))]
    found, others = ([(one[i] - other[i]) / 2e-3 for one, other in pairs] for i in (0, 1))
    np.testing.assert_allclose(gradient, found, rtol=2e-3, atol=2e-2)
    np.testing.assert_allclose(curvature, others, rtol=2e-3, atol=0.2)


def test_slope_does_not_depend_on_threads():
    rows = scored(5, rows=4000, classes=5, groups=68)
    at = (np.full(68, 0.1), 0.3, 0.9, np.zeros(5))
    likely.set_threads(1)
    alone = native.exponent_slope(*rows, at)
    likely.set_threads(None)
    for one, other in zip(alone, native.exponent_slope(*rows, at), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_that_do_not_fit():
    rows = scored(0)
    at = (np.full(6, 0.1), 0.3, 0.9, np.zeros(3))
    for broken in [
        rows._replace(codes=rows.codes + 1),
        rows._replace(lengths=rows.lengths[1:]),
        rows._replace(evidence=rows.evidence._replace(starts=rows.evidence.starts[1:])),
        rows._replace(evidence=rows.evidence._replace(columns=rows.evidence.columns + np.uint8(1))),
        rows._replace(evidence=rows.evidence._replace(columns=rows.evidence.columns[::-1].copy())),
        rows._replace(evidence=rows.evidence._replace(values=rows.evidence.values[1:])),
        rows._replace(evidence=rows.evidence._replace(values=rows.evidence.values[:, 1:].copy())),
    ]:
        with pytest.raises(ValueError, match="do not fit together"):
            native.exponent_slope(*broken, at)
    with pytest.raises(ValueError, match="do not fit together"):
        native.exponent_slope(*rows, (np.zeros(0), *at[1:]))
    with pytest.raises(ValueError, match="do not fit together"):
        native.exponent_slope(*rows, (np.full(5, 0.1), 0.3, 0.9, np.zeros(3)))
    with pytest.raises(ValueError, match="do not fit together"):
        native.weigh_evidence(rows.evidence, np.ones(5))
    with pytest.raises(ValueError, match="do not fit together"):
        native.solve_damped(np.eye(3), np.ones(2), 0.1)


def test_fitted_is_a_minimum():
    rows = scored(2)
    found = Exponents.fitted(rows, 6)
    best = -(rows.weights @ found.log_posterior(rows)[np.arange(300), rows.codes])
    assert -0.5 <= found.power <= 1.5
    assert np.all(np.diff(found.groups)[2:] > 0)  # groups that tell more count more
    even = Exponents(np.full(6, found.groups.mean()), 0.0, 1.0, np.zeros(3))
    assert best < -(rows.weights @ even.log_posterior(rows)[np.arange(300), rows.codes])


@pytest.mark.parametrize("classes", [3, 30])
@pytest.mark.parametrize("rows", [300, 4000])
@pytest.mark.parametrize("seed", [4, 8])
def test_fitted_leaves_next_to_nothing(rows, classes, seed):
    rows = scored(seed, rows, classes, groups=20, there=0.5)
    found = Exponents.fitted(rows, 20)
    _, gradient, curvature = found._slope(rows)
    free = np.full(len(gradient), True)
    free[21] = found.prior > 0  # or else at its bound
    gradient, curvature = gradient[free], curvature[np.ix_(free, free)]
    # twice what one more step would gain
    assert gradient @ np.linalg.solve(curvature, gradient) < 1e-8 * rows.weights.sum()


@pytest.mark.parametrize("best", [0, 3, 12, 24])
def test_one_for_all_is_the_best_guess(best):
    rows = scored(6, rows=4000, classes=4)
    # Nothing is told apart by the first rows: what they would choose is far from what all would.
    cells = dense(rows.evidence, 6) / exponents._GUESSES[best]
    cells[:1000] *= 0.01
    rows = rows._replace(evidence=Evidence.of(cells))
    total = cells.sum(axis=2)
    z = exponents._GUESSES[:, None, None] * total + rows.log_priors
    logs = z - np.logaddexp.reduce(z, axis=2)[:, :, None]
    losses = -(logs[:, np.arange(4000), rows.codes] @ rows.weights)
    assert exponents._one_for_all(rows, 6) == exponents._GUESSES[losses.argmin()]


def test_weights_are_rows():
    rows = scored(3, rows=80)
    cells = dense(rows.evidence, 6)
    evidence = Evidence.of(np.concatenate([cells, cells[:40]]))
    twice = Scored(evidence, *(np.concatenate([array, array[:40]]) for array in rows[1:4]), np.ones(120))
    weighed = rows._replace(weights=np.repeat([2.0, 1.0], 40))
    one, two = Exponents.fitted(twice, 6), Exponents.fitted(weighed, 6)
    np.testing.assert_allclose(one.groups, two.groups, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(one.bias, two.bias, atol=1e-3)
