"""The laws that hold for every case: functions ``law(case, data)`` that raise AssertionError where one is broken.

Laws about what is learned are here; laws about what is answered are in ``laws_of_answers``.
"""

import pickle
from typing import Any

import numpy as np
from cases import Case, Data, learn, learn_more, parameters

import likely
from likely.data.table import read_table
from likely.families.gaussian import DiagonalGaussian, FullGaussian

EXACT = 1e-12
SETTLED = 1e-7


# What is compared, and against which scale


def scales(data: Data, model: Any) -> dict[str, np.ndarray]:
    """Return the scale of every parameter: what a relative difference of it is relative to.

    Of a Gaussian it is the standard deviation of the column (within the classes), of a product of two columns that of
    both. A probability, a rate or a shape is its own scale, and the logarithm of a probability is measured by 1.
    """
    found = {}
    densities, parts = model.joint_.densities, model.joint_.parts
    for name, value in parameters(model).items():
        scale = np.ones(value.shape) if name.endswith("log_shares") else np.abs(value)
        if name != "weights":
            i = int(name.split()[0])
            if isinstance(densities[i], DiagonalGaussian | FullGaussian):
                columns = slice(None) if parts[i].columns is None else parts[i].columns
                X = data.X[:, columns]
                deviation = _deviations(np.log(X) if parts[i].family.domain == "log" else X, data.y, densities[i])
                scale = _gaussian_scale(name.split(".")[1], deviation)
        found[name] = scale
    return found


def _gaussian_scale(name: str, deviation: np.ndarray) -> np.ndarray:
    """``deviation``: classes × columns, or 1 × columns."""
    if name == "mean":
        return deviation.max(axis=0)
    if name == "variance":
        return deviation**2
    return deviation[:, :, None] * (deviation[:, None, :] if name == "covariance" else 1.0)


def _deviations(X: np.ndarray, y: np.ndarray, density: Any) -> np.ndarray:
    """Return the deviation of each column within the classes, or that of the model where it is larger.

    Where each class has but one value, it is the deviation of the whole column.
    """
    spread = np.zeros(X.shape[1])
    for label in np.unique(y):
        rows = X[y == label]
        some = ~np.isnan(rows).all(axis=0)
        spread[some] = np.maximum(spread[some], np.nanstd(rows[:, some], axis=0))
    flat = (spread == 0) & ~np.isnan(X).all(axis=0)
    spread[flat] = np.nanstd(X[:, flat], axis=0)
    full = isinstance(density, FullGaussian)
    own = np.einsum("cii->ci", density.covariance) if full else np.nan_to_num(density.variance)
    return np.maximum(np.sqrt(own), spread)


def assert_same(case: Case, data: Data, one: Any, two: Any, tolerance: float = EXACT) -> None:
    """Assert that two models are the same in every parameter, to a tolerance relative to its scale.

    Where missing cells are expected, it is to the digits to which steps have settled.
    """
    if case.expected and np.isnan(data.X).any():
        tolerance = max(tolerance, SETTLED)
    np.testing.assert_array_equal(one.classes_, two.classes_)
    np.testing.assert_allclose(one.class_count_, two.class_count_, rtol=tolerance, atol=0)
    wanted, scale = parameters(one), scales(data, one)
    for name, got in parameters(two).items():
        want = wanted[name]
        assert got.shape == want.shape, f"{name}: {got.shape} instead of {want.shape}"
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=name)
        known = np.isfinite(want)
        np.testing.assert_array_equal(got[~known], want[~known], err_msg=name)
        # A mean at a large offset is rounded to a double: one unit in its last place is no difference.
        rounding = np.spacing(np.abs(want[known])) if name.endswith(".mean") else 0.0
        allowed = tolerance * np.broadcast_to(scale[name], want.shape)[known] + rounding
        apart = np.abs(got[known] - want[known])
        worst = np.argmax(apart - allowed) if apart.size else None
        assert worst is None or apart[worst] <= allowed[worst], (
            f"{name} differs by {apart[worst]:.3g} of {want[known][worst]!r}, allowed are {allowed[worst]:.3g}"
        )


def assert_bitwise(one: Any, two: Any) -> None:
    """Assert that two models do not differ in a single bit of any parameter."""
    wanted, found = parameters(one), parameters(two)
    assert wanted.keys() == found.keys()
    for name, want in wanted.items():
        np.testing.assert_array_equal(found[name], want, err_msg=name, strict=True)
    np.testing.assert_array_equal(one.classes_, two.classes_)
    np.testing.assert_array_equal(one.class_count_, two.class_count_)


def log_joint(case: Case, model: Any, X: np.ndarray) -> np.ndarray:
    """Return log p(x, y), rows × classes."""
    return model.joint_.log_joint(read_table(case.table(X)))


def _parts(data: Data, rng: np.random.Generator, most: int) -> list[Data]:
    """Cut the rows into consecutive parts at random places, leaving out parts that weigh nothing."""
    n = len(data.y)
    cuts = np.unique(rng.integers(1, n, min(most - 1, n - 1))) if n > 1 else []
    parts = [data.rows(part) for part in np.split(np.arange(n), cuts)]
    return [part for part in parts if part.weights is None or part.weights.any()]


def _random(data: Data) -> np.random.Generator:
    return np.random.default_rng(len(data.y))


# The group of statistics


def adding_nothing_changes_nothing(case: Case, data: Data) -> None:
    """Statistics scaled to zero are the identity, from either side; merging with no model is too."""
    model = learn(case, data)
    for combine in (lambda s: s + 0.0 * s, lambda s: 0.0 * s + s, lambda s: s - 0.0 * s):
        other = learn(case, data)
        other.hold(other._state.with_statistics(combine(other._state.statistics)))
        assert_bitwise(model, other)
    assert_bitwise(model, learn(case, data).merge())


def order_of_rows_does_not_matter(case: Case, data: Data) -> None:
    """Shuffled rows give the same model."""
    shuffled = data.rows(_random(data).permutation(len(data.y)))
    assert_same(case, data, learn(case, data), learn(case, shuffled))


def order_of_merging_does_not_matter(case: Case, data: Data) -> None:
    """The last part may be the first."""
    rng = _random(data)
    model = learn(case, data)
    parts = [learn_more(case, case.make(), part) for part in _parts(data, rng, 3)]
    last = parts.pop()
    assert_same(case, data, model, last.merge(*parts[::-1]))


def adding_then_subtracting_gives_back(case: Case, data: Data) -> None:
    """Rows that are learned and forgotten leave no trace, though they belonged to any class."""
    rng = _random(data)
    model = learn(case, data)
    more = data.rows(rng.integers(0, len(data.y), len(data.y)))
    if not case.plain:
        more = Data(more.X, rng.choice(data.classes, len(more.y)), more.weights, data.classes)
    if more.weights is not None and not more.weights.any():
        return
    changed = learn_more(case, learn(case, data), more)
    assert changed.class_count_.sum() > model.class_count_.sum()
    forgotten = changed.forget(case.table(more.X), more.y, sample_weight=more.weights)
    assert_same(case, data, model, forgotten)


def any_batches_are_one_fit(case: Case, data: Data) -> None:
    """Rows may come in any batches, also one by one."""
    model = learn(case, data)
    rng = _random(data)
    for batches in (2, 5, len(data.y)):
        batched = case.make()
        for part in _parts(data, rng, batches):
            learn_more(case, batched, part)
        assert_same(case, data, model, batched)


def any_merge_is_one_fit(case: Case, data: Data) -> None:
    """Models of any parts of the rows merge into the model of all rows, in any tree of merges."""
    model = learn(case, data)
    rng = _random(data)
    for parts in (2, 4, 9):
        models = [learn_more(case, case.make(), part) for part in _parts(data, rng, parts)]
        half = len(models) // 2
        left, right = models[: half or 1], models[half or 1 :]
        merged = left[0].merge(*left[1:])
        if right:
            merged.merge(right[0].merge(*right[1:]))
        assert_same(case, data, model, merged)


# Weights


def a_weight_of_two_is_a_row_twice(case: Case, data: Data) -> None:
    """Whole weights repeat rows."""
    times = _random(data).integers(1, 4, len(data.y))
    weights = np.ones(len(times)) if data.weights is None else data.weights
    weighted = Data(data.X, data.y, weights * times, data.classes)
    repeated = data.rows(np.repeat(np.arange(len(times)), times))
    assert_same(case, data, learn(case, weighted), learn(case, repeated))


def a_zero_weight_is_no_row(case: Case, data: Data) -> None:
    """A row of weight zero leaves no trace, whatever it holds: here the worst cells of other rows."""
    rng = _random(data)
    weights = np.ones(len(data.y)) if data.weights is None else data.weights
    ghosts = data.rows(rng.integers(0, len(data.y), 3))
    X = np.vstack([data.X, ghosts.X])
    X[len(weights) :, rng.integers(0, X.shape[1])] *= 1 if case.sparse else np.nan if case.holes else 1e6
    y = np.concatenate([data.y, ghosts.y])
    order = rng.permutation(len(y))
    haunted = Data(X, y, np.concatenate([weights, np.zeros(3)]), data.classes).rows(order)
    alive = haunted.weights > 0
    assert_same(case, data, learn(case, haunted.rows(alive)), learn(case, haunted))


def a_row_of_holes_says_nothing_of_x(case: Case, data: Data) -> None:
    """Rows without a cell count for the class weights only."""
    if not case.holes or case.sparse or any("Multinomial" in name for name in parameters(learn(case, data))):
        return
    holes = np.full_like(data.X, np.nan)
    weights = np.ones(len(data.y)) if data.weights is None else data.weights
    padded = Data(
        np.vstack([data.X, holes]), np.tile(data.y, 2), np.tile(weights, 2), data.classes
    )  # in the same proportions, so that the class weights stay
    one, two = learn(case, data), learn(case, padded)
    for name, want in parameters(one).items():
        np.testing.assert_allclose(parameters(two)[name], want, rtol=EXACT, err_msg=name)


# The same data in another form


def memory_order_does_not_matter(case: Case, data: Data) -> None:
    """C order, Fortran order, slices of rows and columns, backward views: the same bits."""
    n, d = data.X.shape
    wide = np.full((2 * n, 2 * d), 7.0)
    wide[::2, ::2] = data.X
    back = np.ascontiguousarray(data.X[:, ::-1])
    views = {
        "Fortran": np.asfortranarray(data.X),
        "every second row and column": wide[::2, ::2],
        "columns backward": back[:, ::-1],
        "rows backward": np.ascontiguousarray(data.X[::-1])[::-1],
        "read only": _frozen(data.X),
    }
    if not case.sparse:
        views["big endian"] = data.X.astype(">f8")
    model = learn(case, data)
    answers = model.predict_proba(case.table(data.X))
    for name, view in views.items():
        assert np.array_equal(view, data.X, equal_nan=True)
        assert_bitwise(model, learn(case, Data(view, data.y, data.weights, data.classes)))
        np.testing.assert_array_equal(model.predict_proba(case.table(view)), answers, err_msg=name)


def number_type_does_not_matter(case: Case, data: Data) -> None:
    """Values that float32 or an integer type holds exactly are the same values."""
    single = data.X.astype(np.float32)
    forms = [(single.astype(np.float64), [single])]
    whole = np.round(np.nan_to_num(data.X, nan=1.0))
    if "category" not in case.kinds and np.abs(whole).max() < 100 and (whole.min() > 0 or "positive" not in case.kinds):
        forms.append((whole, [whole.astype(kind) for kind in ("i1", "i2", "i4", "i8", "f4")]))
        if whole.min() >= 0:
            forms.append((whole, [whole.astype(kind) for kind in ("u1", "u2", "u4", "u8")]))
    for X, same in forms:
        plain = Data(X, data.y, data.weights, data.classes)
        try:
            model = learn(case, plain)
        except np.linalg.LinAlgError:  # rounding made the columns collinear
            continue
        for other in same:
            assert_bitwise(model, learn(case, Data(other, data.y, data.weights, data.classes)))
            np.testing.assert_array_equal(model.predict_proba(case.table(other)), model.predict_proba(case.table(X)))


def _frozen(X: np.ndarray) -> np.ndarray:
    frozen = X.copy()
    frozen.setflags(write=False)
    return frozen


def pickling_is_the_identity(case: Case, data: Data) -> None:
    """A model that was stored is the model, and learns, forgets and merges as it does."""
    model = learn(case, data)
    answers = model.predict_proba(case.table(data.X))
    stored = pickle.loads(pickle.dumps(model))
    assert_bitwise(model, stored)
    np.testing.assert_array_equal(stored.predict_proba(case.table(data.X)), answers)
    assert_bitwise(learn_more(case, learn(case, data), data), learn_more(case, stored, data))
    assert_bitwise(learn(case, data).merge(model), learn(case, data).merge(pickle.loads(pickle.dumps(model))))


def threads_do_not_change_bits(case: Case, data: Data) -> None:
    """One thread or many: the same parameters and the same answers, to the last bit."""
    X = data.X.copy()
    X[::7, 0] = np.nan
    results = []
    try:
        for threads in (1, 2, 5):
            likely.set_threads(threads)
            assert likely.get_threads() == threads
            model = learn(case, data)
            answers = [
                model.predict_proba(case.table(X)),
                model.predict_log_proba(case.table(X)),
                *([model.log_density(case.table(X))] if case.density else []),
                model.predict(case.table(X)),
            ]
            results.append((model, answers))
    finally:
        likely.set_threads(None)
    for model, answers in results[1:]:
        assert_bitwise(results[0][0], model)
        for got, want in zip(answers, results[0][1], strict=True):
            np.testing.assert_array_equal(got, want)
