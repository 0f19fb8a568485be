"""Members of a combination: which are worth their time, and their weights."""

import numpy as np
import pytest

from likely.density.combination import combination_weights, members_worth

N = 4000


def log_likelihood(logs, shares):
    return float(np.log(np.exp(logs) @ shares).mean())


@pytest.fixture(scope="module")
def logs():
    """Three members, of which the second is the first over again, and the third tells half of the rows."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=N)
    third = np.where(rng.random(N) < 0.5, one + 2.0, one - 2.0)
    return np.stack([one, one, third], axis=1)


def test_members_worth_nothing_are_left_out(logs):
    kept, shares = members_worth(logs, np.ones(N))
    assert len(kept) == 2
    assert 2 in kept
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    full = combination_weights(logs)
    assert log_likelihood(logs, full) - log_likelihood(logs[:, kept], shares) < 1e-6


def test_what_is_left_out_is_worth_little(logs):
    rng = np.random.default_rng(1)
    many = np.concatenate([logs + 0.2 * rng.normal(size=logs.shape) for _ in range(4)], axis=1)
    kept, shares = members_worth(many, np.ones(N))
    assert len(kept) < many.shape[1]
    assert log_likelihood(many, combination_weights(many)) - log_likelihood(many[:, kept], shares) < 0.01


def test_one_member_is_always_kept():
    kept, shares = members_worth(np.zeros((5, 3)), np.ones(5))
    assert len(kept) == 1
    np.testing.assert_allclose(shares, [1.0])


def test_a_weight_of_two_is_a_row_twice(logs):
    rows = np.append(np.arange(N), np.arange(0, N, 3))
    kept, shares = members_worth(logs[rows], np.ones(len(rows)))
    again, same = members_worth(logs, np.bincount(rows).astype(float))
    assert kept == again
    np.testing.assert_allclose(shares, same, rtol=1e-9)


@pytest.mark.parametrize("needed", [[0], [1], [0, 1]])
def test_one_of_those_that_are_needed_is_kept(logs, needed):
    worse = logs - np.array([5.0, 5.0, 0.0])
    assert members_worth(worse, np.ones(N))[0] == [2]
    assert set(members_worth(worse, np.ones(N), needed)[0]) & set(needed)
