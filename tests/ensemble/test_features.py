"""Encodings of tables: ranks, levels, holes; known by name, whatever codes a batch has."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from likely.data.column_values import counted_columns, gaussian_quantiles
from likely.data.table import Table
from likely.ensemble.bins import Bins
from likely.ensemble.features import Features
from likely.persistence.codec import decode, encode

NAN = np.nan


def mixed(rows: int = 300, seed: int = 0) -> Table:
    generator = np.random.default_rng(seed)
    numbers = generator.standard_normal((rows, 3)) * [1, 1e-3, 1e6] + [0, 5, 1e12]
    numbers[generator.random((rows, 3)) < [0, 0.1, 0.3]] = NAN
    codes = generator.integers(0, 4, (rows, 2)).astype(float)
    codes[generator.random((rows, 2)) < [0, 0.2]] = NAN
    names = np.array(["a", "b", "c", "d"])
    return Table(np.hstack([numbers, codes]), categories={3: names, 4: names})


@pytest.mark.parametrize("encoding", [Features, Bins])
def test_batches_add_up(encoding: Any) -> None:
    table = mixed()
    fitted = encoding.fitted(counted_columns(table))
    parts = [fitted.encoded(table.between(first, first + 70)).cells for first in range(0, 300, 70)]
    np.testing.assert_array_equal(np.concatenate(parts), fitted.encoded(table).cells)


@pytest.mark.parametrize("encoding", [Features, Bins])
def test_order_of_rows_does_not_matter(encoding: Any) -> None:
    table = mixed()
    other = replace(table, cells=table.cells[np.random.default_rng(1).permutation(300)])
    expected = encoding.fitted(counted_columns(table)).encoded(table).cells
    np.testing.assert_allclose(
        encoding.fitted(counted_columns(other)).encoded(table).cells, expected, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("encoding", [Features, Bins])
def test_categories_are_known_by_name(encoding: Any) -> None:
    table = mixed()
    fitted = encoding.fitted(counted_columns(table))
    cells = table.cells.copy()
    cells[:, 3] = 3 - cells[:, 3] + 1  # other codes, and a name before them that no row has
    renamed = replace(table, cells=cells, categories={**table.categories, 3: np.array(["new", "d", "c", "b", "a"])})
    np.testing.assert_array_equal(fitted.encoded(renamed).cells, fitted.encoded(table).cells)
    np.testing.assert_allclose(
        encoding.fitted(counted_columns(renamed)).encoded(renamed).cells,
        fitted.encoded(table).cells,
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("encoding", [Features, Bins])
def test_description_gives_it_back(encoding: Any) -> None:
    table, arrays = mixed(), {}
    fitted = encoding.fitted(counted_columns(table))
    again = decode(encode(fitted, "x", arrays), encoding, "x", arrays)
    np.testing.assert_array_equal(again.encoded(table).cells, fitted.encoded(table).cells)


@pytest.mark.parametrize("rows", [300, 5000])
def test_features_have_mean_0_and_variance_1(rows: int) -> None:
    table = mixed(rows)
    X = Features.fitted(counted_columns(table)).matrix(table)
    assert X.shape == (rows, 1 + 2 + 2 + 4 + 5)
    # A missing number is 0, which takes from the variance; with many values, knots stand for several of them.
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=5e-3)
    np.testing.assert_allclose(X.var(axis=0)[[0, 2, 4, *range(5, 14)]], 1, atol=1e-2)


def test_quantiles() -> None:
    p = np.linspace(0.001, 0.999, 99)
    np.testing.assert_allclose(gaussian_quantiles(p), norm.ppf(p), rtol=1e-12, atol=1e-14)


def test_numbers_go_by_rank_alone() -> None:
    x = np.random.default_rng(0).standard_normal((200, 1))
    expected = Features.fitted(counted_columns(Table(x))).matrix(Table(x))
    for other in (np.exp(x), x + 1e6, x * 1e-300, x * 1e300):
        np.testing.assert_allclose(
            Features.fitted(counted_columns(Table(other))).matrix(Table(other)), expected, atol=1e-12
        )
    ordered = norm.ppf((np.argsort(np.argsort(x[:, 0])) + 0.5) / 200)
    # Features are of single precision: equal up to its last bit.
    np.testing.assert_array_max_ulp(expected[:, 0], (ordered / ordered.std()).astype(np.float32))


def test_numbers_beyond_what_was_seen_are_like_the_last() -> None:
    features = Features.fitted(counted_columns(Table(np.arange(10.0)[:, None])))
    low, high, *beyond = features.matrix(Table(np.array([[0.0], [9.0], [-np.inf], [np.inf], [-5.0], [1e308]])))[:, 0]
    assert beyond == [low, high, low, high]


def test_what_never_varies_is_left_out() -> None:
    cells = np.array([[1.0, NAN, 0.0, 1.0], [1.0, NAN, 0.0, NAN], [1.0, NAN, 0.0, 1.0]])
    table = Table(cells, categories={2: np.array(["only"])})
    features = Features.fitted(counted_columns(table))
    assert features.width == 1  # whether the last one is missing
    assert features.matrix(table)[:, 0].astype(float).round(2).tolist() == [-0.71, 1.41, -0.71]


def test_a_hole_where_there_was_none_says_nothing() -> None:
    table = Table(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]), categories={1: np.array(["a", "b", "c"])})
    holes = replace(table, cells=np.full((1, 2), NAN))
    assert np.isnan(Features.fitted(counted_columns(table)).matrix(holes)).all()
    assert np.isnan(Bins.fitted(counted_columns(table)).encoded(holes).cells).all()


def test_a_new_category_is_like_a_hole_if_no_level_was_left_out() -> None:
    table = Table(np.array([[0.0], [1.0], [2.0]]), categories={0: np.array(["a", "b", "c"])})
    new = Table(np.array([[0.0]]), categories={0: np.array(["d"])})
    assert np.isnan(Features.fitted(counted_columns(table)).matrix(new)).all()


def test_rare_and_unseen_levels_say_nothing() -> None:
    names = np.array([f"level {i}" for i in range(60)])
    codes = np.repeat(np.arange(60.0), np.arange(60, 0, -1))[:, None]
    table = Table(codes, categories={0: names})
    assert Features.fitted(counted_columns(table)).width == 50
    rare = Table(np.array([[59.0], [0.0], [1.0]]), categories={0: np.array(["new", "level 0", *names[2:]])})
    X = Features.fitted(counted_columns(table)).matrix(rare)
    assert not X[[0, 1]].any()
    assert X[2].any()
    assert np.isnan(Bins.fitted(counted_columns(table)).encoded(rare).cells[:2]).all()


def test_the_rarest_levels_make_way() -> None:
    generator = np.random.default_rng(0)
    cells = np.column_stack([generator.standard_normal(500), *generator.integers(0, 40, (3, 500))])
    table = Table(cells, categories=dict.fromkeys((1, 2, 3), np.array([f"{i}" for i in range(40)])))
    assert Features.fitted(counted_columns(table)).width == 121
    narrow = Features.fitted(counted_columns(table), widest=50)
    assert narrow.width == 50
    assert narrow.matrix(table).shape == (500, 50)


def test_bins_hold_equally_many_and_heavy_values_their_own() -> None:
    x = np.arange(800.0)
    codes = Bins.fitted(counted_columns(Table(x[:, None]))).encoded(Table(x[:, None])).cells[:, 0]
    assert np.bincount(codes.astype(int)).tolist() == [50] * 16
    x[:300] = -1.0
    codes = Bins.fitted(counted_columns(Table(x[:, None]))).encoded(Table(x[:, None])).cells[:, 0].astype(int)
    assert np.bincount(codes)[0] == 300
    assert len(set(codes[:300])) == 1


def test_wrong_types_are_named() -> None:
    table = Table(np.array([[1.0, 0.0], [2.0, 1.0]]), ("age", "sex"), categories={1: np.array(["f", "m"])})
    fitted = Features.fitted(counted_columns(table))
    with pytest.raises(TypeError, match=r"expected categories in column 'sex', .*, got 3"):
        fitted.matrix(Table(np.array([[1.0, 3.0]]), ("age", "sex")))
    with pytest.raises(TypeError, match=r"expected numbers in column 'age', .*, got 'old'"):
        fitted.matrix(Table(np.zeros((1, 2)), ("age", "sex"), categories={0: np.array(["old"]), 1: np.array(["f"])}))
    with pytest.raises(ValueError, match="expected a table of 2 columns, as the model was fitted on, got 3"):
        fitted.matrix(Table(np.zeros((1, 3))))


@given(st.lists(st.floats(), min_size=1, max_size=30))
def test_any_numbers(cells: list[float]) -> None:
    table = Table(np.array(cells)[:, None])
    X = Features.fitted(counted_columns(table)).matrix(table)
    assert np.isfinite(X).all()
    Bins.fitted(counted_columns(table)).encoded(table)
