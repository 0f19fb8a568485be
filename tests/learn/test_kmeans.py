"""k-means beside a plain one in NumPy that looks everywhere, and its laws."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris

import likely
from likely import KMeans
from likely.data.table import read_table
from likely.learn.kmeans import centres_of_groups, collect, iterate, means, read_points


def squares(X, centres):
    """Squared distances over the cells that are there, rows × centres."""
    return np.nansum((X[:, None, :] - centres[None]) ** 2, axis=2)


def plain(X, centres, weights=None, iterations=300):
    """Lloyd's iteration; returns labels, centres, the inertia before each step, and how many steps there were."""
    X, centres = np.asarray(X, dtype=np.float64), np.array(centres, dtype=np.float64)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    there = ~np.isnan(X)
    before, course = None, []
    for step in range(iterations + 1):
        d = squares(X, centres)
        labels = d.argmin(axis=1)
        near = d[np.arange(len(X)), labels]
        course.append(float(w @ near))
        if step == iterations or (before is not None and np.array_equal(before, labels)):
            break
        labels = repaired(labels, near, w, len(centres), X)
        for c in range(len(centres)):
            n = (w[:, None] * there)[labels == c].sum(axis=0)
            total = np.nansum((w[:, None] * X)[labels == c], axis=0)
            centres[c] = np.where(n > 0, total / np.where(n > 0, n, 1), centres[c])
        before = labels
    return labels, centres, course, step


def repaired(labels, near, w, k, X):
    """Each empty cluster gets the row that is farthest from its centre, and all that are equal to it."""
    labels = labels.copy()
    far = [i for i in np.lexsort((np.arange(len(w)), -near)) if w[i] > 0 and near[i] > 0]
    for c in range(k):
        if (w[labels == c] > 0).any():
            continue
        while far:
            row = far[0]
            equal = [i for i in far if near[i] == near[row] and np.array_equal(X[i], X[row], equal_nan=True)]
            far = [i for i in far if i not in equal]
            if (w[labels == labels[row]] > 0).sum() > len(equal):
                labels[equal] = c
                break
    return labels


def rows(seed, n, d, k, spread=2.0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) + spread * generator.normal(size=(k, d))[generator.integers(0, k, n)]
    return X, X[generator.choice(n, k, replace=False)]


def quiet(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, **options)


shapes = st.tuples(st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 20), st.integers(1, 70))


@settings(deadline=None, max_examples=150)
@given(
    shapes,
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["C", "F", "slice", "step"]),
    st.booleans(),
    st.sampled_from([0.0, 0.1, 0.6]),
    st.sampled_from([1, 3, 300]),
)
def test_as_looking_everywhere(shape, dtype, order, weighted, holes, iterations):
    seed, n, d, k = shape
    k = min(n, k)
    generator = np.random.default_rng(seed)
    X, start = rows(seed, n, d, k)
    X = X.astype(dtype)
    X[generator.random(X.shape) < holes] = np.nan
    start = start.astype(dtype).astype(np.float64)
    weights = generator.integers(0, 4, n) + (generator.random() < 0.5) if weighted else None
    if weights is not None and not weights.any():
        weights[0] = 1
    given_rows = {
        "C": X,
        "F": np.asfortranarray(X),
        "slice": np.concatenate([X, X])[n:],
        "step": np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    }[order]
    labels, centres, course, _ = plain(X, start, weights, iterations)
    assume(not 0 < min(course) < 1e-20)  # rounding alone would say which row is farthest from its centre
    model = quiet(KMeans(k, start=start, max_iterations=iterations), given_rows, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, labels)
    known = ~np.isnan(model.cluster_centers_)
    np.testing.assert_allclose(model.cluster_centers_[known], centres[known], rtol=1e-9, atol=1e-9)
    assert model.inertia_ == pytest.approx(course[-1], rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(model.predict(given_rows), model.labels_)


@settings(deadline=None, max_examples=60)
@given(shapes, st.sampled_from([np.float32, np.float64]), st.booleans())
def test_sparse_rows_as_dense_ones(shape, dtype, weighted):
    seed, n, d, k = shape
    k = min(n, k)
    generator = np.random.default_rng(seed)
    X = (generator.poisson(0.5, (n, d)) * generator.normal(size=(n, d))).astype(dtype)
    weights = generator.random(n) + 0.5 if weighted else None
    start = X[generator.choice(n, k, replace=False)].astype(np.float64) + generator.normal(size=(k, d)) * 0.1
    labels, centres, course, _ = plain(X, start, weights)
    model = quiet(KMeans(k, start=start), sparse.csr_matrix(X), sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centres, atol=1e-9)
    assert model.inertia_ == pytest.approx(course[-1], rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(X)), model.labels_)
    np.testing.assert_allclose(model.transform(sparse.csc_matrix(X)), np.sqrt(squares(X, centres)), atol=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_sparse_rows_far_from_zero_lose_no_digits(offset):
    X = np.random.default_rng(0).normal(size=(60, 7)) + offset
    X[0, 3] = 0.0
    model = KMeans(5, random_state=0).fit(sparse.csr_matrix(X))
    squares = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.labels_, squares.argmin(axis=1))
    assert model.inertia_ == pytest.approx(squares.min(axis=1).sum(), rel=1e-12)


def test_sparse_cells_in_several_parts_and_any_order():
    X, start = rows(37, 60, 4, 3)
    order = np.tile([2, 0, 3, 1, 0], (60, 1))
    halves = np.where(order == 0, 0.5, 1.0) * np.take_along_axis(X, order, axis=1)
    parts = sparse.csr_matrix((halves.ravel(), order.ravel(), np.arange(0, 301, 5)), shape=X.shape)
    model = KMeans(3, start=start).fit(parts)
    np.testing.assert_array_equal(model.labels_, plain(X, start)[0])
    np.testing.assert_allclose(model.transform(parts), KMeans(3, start=start).fit(X).transform(X))


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 3), st.integers(1, 12))
def test_ties_go_to_the_first(seed, n, d, k):
    """Small whole numbers, from rows: many are equally far from two centres, and all arithmetic is exact."""
    k = min(n, k)
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 4, (n, d)).astype(np.float64)
    start = X[generator.choice(n, k, replace=False)]
    for dtype in (np.float64, np.float32):
        points = read_points(read_table(X.astype(dtype)))
        labels = collect(points, start - points.origin)[1]
        np.testing.assert_array_equal(labels, squares(X, start).argmin(axis=1))


@pytest.mark.parametrize(("dtype", "offset"), [(np.float64, 1e7), (np.float32, 1e4), (np.float64, 1e9)])
def test_offsets_change_nothing(dtype, offset):
    generator = np.random.default_rng(3)
    # Numbers that keep all their digits at the offset.
    X = np.round(rows(3, 3000, 6, 8)[0] * 256 if offset < 1e9 else rows(3, 3000, 6, 8)[0] * 64) / (
        256 if offset < 1e9 else 64
    )
    X = np.round(X * 16) / 16
    start = X[generator.choice(3000, 8, replace=False)]
    near = KMeans(8, start=start).fit(X)
    far = KMeans(8, start=start + offset).fit((X + offset).astype(dtype))
    np.testing.assert_array_equal(near.labels_, far.labels_)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)
    np.testing.assert_array_equal(far.predict((X + offset).astype(dtype)), far.labels_)


@pytest.mark.parametrize("start", ["k-means++", "greedy k-means++", "rows", "assignment"])
@pytest.mark.parametrize("holes", [False, True])
def test_threads_change_no_bits(start, holes):
    X, _ = rows(5, 30_000, 10, 40)
    if holes:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    found = []
    for threads in (1, 3):
        likely.set_threads(threads)
        found.append(KMeans(40, start=start, n_starts=1, max_iterations=12, random_state=1).fit(X))
    likely.set_threads(None)
    one, two = found
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert one.inertia_ == two.inertia_


def test_many_clusters_and_iterations_in_float32():
    """Groups of centres, bounds that moved far, float32: still the labels of looking everywhere."""
    X, start = rows(7, 20_000, 12, 150, spread=1.0)
    X, start = X.astype(np.float32), start.astype(np.float32).astype(np.float64)
    for iterations in (1, 2, 5, 40):
        found = KMeans(150, start=start, max_iterations=iterations).fit(X)
        d = squares(X.astype(np.float64), found.cluster_centers_)
        np.testing.assert_array_equal(found.labels_, d.argmin(axis=1))


def test_worked_example():
    """Points A(7,9) B(3,3) C(4,1) D(3,8) in clusters {A, B} and {C, D}: centroids (5, 6) and (3.5, 4.5)."""
    X = np.array([[7.0, 9.0], [3.0, 3.0], [4.0, 1.0], [3.0, 8.0]])
    first = KMeans(2, start=[[5.0, 6.0], [3.5, 4.5]], max_iterations=1).fit(X)
    labels, centres, _, _ = plain(X, [[5.0, 6.0], [3.5, 4.5]], iterations=1)
    np.testing.assert_array_equal(first.labels_, labels)
    np.testing.assert_allclose(first.cluster_centers_, centres)
    points = read_points(read_table(X))
    centroids = centres_of_groups(points, np.array([0, 0, 1, 1], dtype=np.int32), 2) + points.origin
    assert centroids.tolist() == [[5.0, 6.0], [3.5, 4.5]]


# R 4.2, kmeans(iris[, 1:4], k, nstart = 200): tot.withinss of the best
IRIS = {2: 152.347951760358, 3: 78.851441426146, 4: 57.2284732142857, 5: 46.446182051282, 6: 39.0399872460872}


@pytest.mark.parametrize("k", IRIS)
@pytest.mark.parametrize("start", ["k-means++", "greedy k-means++", "rows", "assignment"])
def test_best_of_r(k, start):
    model = KMeans(k, start=start, n_starts=200, random_state=0).fit(load_iris().data)
    assert model.inertia_ == pytest.approx(IRIS[k], rel=1e-9)
    assert model.inertia_ == pytest.approx(min(one.inertia for one in model.starts_), rel=1e-12)
    assert len(model.starts_) == 200
    assert all(one.converged for one in model.starts_)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_inertia_never_rises(holes):
    X, start = rows(11, 500, 5, 12, spread=1.0)
    X[np.random.default_rng(1).random(X.shape) < holes] = np.nan
    course = [KMeans(12, start=start, max_iterations=i).fit(X).inertia_ for i in range(1, 15)]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(course))


def test_a_weight_of_two_is_a_row_twice():
    X, start = rows(13, 200, 4, 6)
    weights = np.random.default_rng(0).integers(0, 3, 200)
    one = KMeans(6, start=start).fit(X, sample_weight=weights)
    two = KMeans(6, start=start).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(np.repeat(one.labels_, weights), two.labels_)
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_)
    assert one.inertia_ == pytest.approx(two.inertia_)


def test_an_empty_cluster_gets_the_farthest_row():
    X = np.array([[0.0], [1.0], [2.0], [20.0]])
    model = KMeans(2, start=[[1.0], [100.0]]).fit(X)
    assert model.labels_.tolist() == [0, 0, 0, 1]
    assert model.inertia_ == 2.0


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    with pytest.warns(UserWarning, match="found 2 distinct clusters, fewer than n_clusters=4"):
        model = KMeans(4, random_state=0).fit(X)
    assert model.inertia_ == 0
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_one_row_and_as_many_clusters_as_rows():
    assert KMeans(1).fit([[3.0, 4.0]]).cluster_centers_.tolist() == [[3.0, 4.0]]
    X, _ = rows(1, 30, 3, 3)
    model = KMeans(30, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert len(set(model.labels_.tolist())) == 30


def test_constant_rows():
    with pytest.warns(UserWarning, match="found 1 distinct clusters"):
        model = KMeans(3, random_state=0).fit(np.full((50, 2), 1e9 + 0.1))
    assert model.inertia_ == 0
    assert model.labels_.tolist() == [0] * 50


def test_missing_cells():
    X = np.array([[0.0, np.nan], [1.0, 1.0], [np.nan, 9.0], [10.0, 10.0], [np.nan, np.nan]])
    model = KMeans(2, start=[[0.0, 0.0], [10.0, 10.0]]).fit(X)
    assert model.labels_.tolist() == [0, 0, 1, 1, 0]
    np.testing.assert_allclose(model.cluster_centers_, [[0.5, 1.0], [10.0, 9.5]])
    assert model.inertia_ == pytest.approx(0.25 + 0.25 + 0.25 + 0.25)
    distances = model.transform(X)
    assert distances[0, 0] == pytest.approx(np.sqrt(0.25 * 2 / 1))
    assert distances[4].tolist() == [0.0, 0.0]


def test_a_column_without_cells_says_nothing():
    X, start = rows(17, 40, 3, 3)
    wide = np.column_stack([X, np.full(40, np.nan)])
    model = KMeans(3, start=np.column_stack([start, np.zeros(3)])).fit(wide)
    np.testing.assert_array_equal(model.labels_, KMeans(3, start=start).fit(X).labels_)
    assert np.isnan(model.cluster_centers_[:, 3]).all()
    wide[:, 3] = 1e6
    np.testing.assert_allclose(model.transform(wide), KMeans(3, start=start).fit(X).transform(X))


def test_scales_that_float32_cannot_square():
    for scale in (1e-30, 1e25):
        X, start = rows(19, 300, 4, 5)
        X, start = (X * scale).astype(np.float32), start * scale
        start = start.astype(np.float32).astype(np.float64)
        np.testing.assert_array_equal(KMeans(5, start=start).fit(X).labels_, plain(X, start)[0])


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"n_clusters": 4}, [[1.0], [2.0]], "n_samples=2 should be >= n_clusters=4"),
        ({"n_clusters": 0}, [[1.0]], "expected a whole number of clusters from 1 on, got n_clusters=0"),
        ({"n_clusters": 1, "start": "best"}, [[1.0]], "expected start to be one of"),
        ({"n_clusters": 1, "start": [[1.0, 2.0]]}, [[1.0]], r"expected finite centres of shape \(1, 1\)"),
        ({"n_clusters": 1, "n_starts": 0}, [[1.0]], "got n_starts=0"),
        ({"n_clusters": 1, "tolerance": -1.0}, [[1.0]], "got tolerance=-1.0"),
        ({"n_clusters": 1}, [[1.0], [np.inf]], "expected finite numbers, got inf in row index 1 of column 0"),
    ],
)
def test_refusals(options, X, message):
    with pytest.raises(ValueError, match=message):
        KMeans(**options).fit(X)


def test_infinity_is_refused_in_questions_too():
    model = KMeans(1).fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="expected finite numbers, got -inf"):
        model.predict([[-np.inf]])
    with pytest.raises(ValueError, match="not fitted"):
        KMeans().predict([[1.0]])


def test_batches():
    X, _ = rows(23, 4000, 3, 5, spread=20.0)
    model = KMeans(5, random_state=0)
    for part in np.array_split(X, 8):
        model.partial_fit(part)
    whole = KMeans(5, random_state=0).fit(X)
    assert -model.score(X) == pytest.approx(whole.inertia_, rel=1e-3)
    assert model.statistics_.sums["weight"][:, 0].sum() == 4000


def test_sums_of_batches_add_up():
    X, start = rows(29, 1000, 4, 6)
    origin = read_points(read_table(X)).origin
    parts = [read_points(read_table(part))._replace(origin=origin) for part in np.array_split(X, 3)]
    sums = [collect(part, start - origin)[0] for part in parts]
    step = iterate(read_points(read_table(X)), start - origin, iterations=1)
    np.testing.assert_allclose(means(sums[0] + sums[1] + sums[2]), step.centres + origin)


def test_float32_rows_asked_of_a_model_of_float64():
    X, start = rows(31, 500, 4, 6)
    model = KMeans(6, start=start + 1e7).fit(X + 1e7)
    asked = (X + 1e7).astype(np.float32)
    expected = squares(asked.astype(np.float64), model.cluster_centers_)
    found = model.predict(asked)
    near = expected[np.arange(500), found]
    np.testing.assert_allclose(near, expected.min(axis=1), rtol=1e-6)


@pytest.mark.parametrize("heavy", [1e4, 1e8, 1e12, 1e14])
def test_heavy_rows_that_have_left_a_cluster_leave_no_trace(heavy):
    X = np.array([[-2.0], [0.0], [9.0], [12.0], [3.3], [5.1], [6.2]])
    model = KMeans(3, start=[[-8.0], [5.0], [18.0]]).fit(X, sample_weight=[heavy] * 4 + [1.0] * 3)
    assert model.labels_.tolist() == [0, 0, 2, 2, 1, 1, 1]
    np.testing.assert_allclose(model.cluster_centers_[1], np.mean(X[4:], axis=0), rtol=1e-14)
