"""One EM step of each member equals the formulas; steps do not lower the penalised likelihood, or the best is kept."""

import density_formulas as formulas
import numpy as np
import pytest
from encoded import mixed_table
from scipy.special import logsumexp

from likely.density.columns import level_counts, numbers
from likely.density.hidden_trees import HiddenTreePrior
from likely.density.scores import ScorePrior, ScoreTables
from likely.density.structure import Structure
from likely.density.trees import BINS, COARSE, fit_mixture, fit_trees, responsibilities, tree_prior, weighted

N, K = 240, 3
STRUCTURE = Structure(np.array([-1, 0, 0, 2], dtype=np.int32), np.arange(4, dtype=np.int32))
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


@pytest.fixture(scope="module", params=[0.0, 0.12], ids=["complete", "missing cells"])
def rows(request):
    """Rows that count differently."""
    found = mixed_table(N, request.param)
    return found._replace(weights=np.random.default_rng(1).integers(1, 4, N) / 2)


@pytest.fixture(scope="module")
def groups():
    return np.random.default_rng(2).integers(K, size=N)


def softmax(logs):
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def test_a_step_of_a_mixture_of_trees(rows, groups):
    codes, sizes = rows.binned(BINS), level_counts(rows.columns, BINS).tolist()
    ordered = [BINS * (c.bins > 1) for c in rows.columns]
    shares = 0.8 * np.eye(K)[groups] + 0.2 / K
    coarse, few = rows.binned(COARSE), level_counts(rows.columns, COARSE).tolist()
    parents = formulas.own_trees(codes, sizes, coarse, few, shares, rows.weights)
    prior = tree_prior(rows, shares)
    assert [s.parents.tolist() for s in prior.forest.structures] == parents
    want, found = formulas.common_tables(codes, sizes, ordered, rows.weights, parents), prior.first
    for _ in range(3):
        for k, j in np.ndindex(K, len(sizes)):
            np.testing.assert_allclose(found.forest.table(k, j), want.tables[k][j], **CLOSE)
        np.testing.assert_allclose(found.weights, want.weights, **CLOSE)
        want = formulas.tree_step(codes, sizes, shares * rows.weights[:, None], want)
        found = prior.solve(found.expected(rows, weighted(shares, rows.weights)))
        logs = want.log_components(codes, sizes)
        free = sum((rows.levels[:, j] == c.levels - 1) * (c.bins > 1) for j, c in numbers(rows.columns))
        np.testing.assert_allclose(found.log_components(rows), logs + np.log(BINS) * free[:, None], **CLOSE)
        shares = softmax(logs)
        np.testing.assert_allclose(responsibilities(found.log_components(rows)), shares, **CLOSE)


def test_a_step_of_a_hidden_tree(rows):
    parents = STRUCTURE.parents.tolist()
    scores = {j: rows.z[:, number] for number, (j, _) in enumerate(numbers(rows.columns))}
    groups = np.random.default_rng(3).integers(K, size=(N, 4))
    prior = HiddenTreePrior.of(
        rows, Structure(np.array(parents, dtype=np.int32), np.array([0, 1, 2, 3], dtype=np.int32))
    )
    found = prior.first(rows, groups, K)
    states = [0.9 * np.eye(K)[groups[:, j]] + 0.1 / K for j in range(4)]
    edges = {j: (states[p] * rows.weights[:, None]).T @ states[j] for j, p in enumerate(parents) if p >= 0}
    want = formulas.solved_hidden(rows.levels, scores, rows.weights, parents, states, edges)
    for _ in range(3):
        np.testing.assert_allclose(found.root, want.root, **CLOSE)
        np.testing.assert_allclose(found.probabilities, np.concatenate(want.levels), **CLOSE)
        for j, table in want.transitions.items():
            np.testing.assert_allclose(found.transitions[j], table, **CLOSE)
        for place, j in enumerate(scores):
            np.testing.assert_allclose(found.mean[place], want.gaussians[j][0], **CLOSE)
            np.testing.assert_allclose(found.variance[place], want.gaussians[j][1], **CLOSE)
        logs, states, edges = formulas.hidden_step(rows.levels, scores, rows.weights, want)
        at, sums = found.step(rows)
        np.testing.assert_allclose(at, logs, **CLOSE)
        want = formulas.solved_hidden(rows.levels, scores, rows.weights, parents, states, edges)
        found = prior.solve(sums)


def test_a_step_of_a_mixture_of_scores(rows, groups):
    sizes = level_counts(rows.columns).tolist()
    chosen = [j for j, size in enumerate(sizes) if size > 1]
    codes, sizes = rows.levels[:, chosen], [sizes[j] for j in chosen]
    shares = 0.9 * np.eye(K)[groups] + 0.1 / K
    want = formulas.standard_scores(codes, sizes, rows.z, rows.weights, K)
    prior = ScorePrior(rows.columns, ScoreTables.of(rows))
    assert prior.tables.forest.structures[0].parents.tolist() == want.parents
    found = prior.first(K)
    for _ in range(3):
        for k, j in np.ndindex(K, len(sizes)):
            np.testing.assert_allclose(found.forest.table(k, j), want.tables[k][j], **CLOSE)
        for part in ("weights", "mean", "covariance"):
            np.testing.assert_allclose(getattr(found, part), getattr(want, part), **CLOSE)
        want = formulas.score_step(codes, sizes, rows.z, shares * rows.weights[:, None], want)
        found = prior.solve(found.expected(rows, weighted(shares, rows.weights)))
        logs = want.log_components(codes, sizes, rows.z)
        np.testing.assert_allclose(found.log_components(rows), logs, **CLOSE)
        shares = softmax(logs)


def log_likelihood(density, rows):
    return float(rows.weights @ density.log_density(rows))


def test_a_step_of_a_hidden_tree_does_not_lower_the_penalised_likelihood(rows):
    prior = HiddenTreePrior.of(rows, STRUCTURE)
    at = prior.first(rows, np.random.default_rng(3).integers(K, size=(N, 4)), K)
    for _ in range(30):
        sums = at.step(rows)[1]
        child = sums.transitions[1:].sum(axis=1)
        child = 0.9 * child / child.sum(axis=1, keepdims=True) + 0.1 / K

        def penalty(density, child=child):
            of_scores = 0.5 * (density.mean**2 + 0.3) / density.variance + 0.5 * np.log(density.variance)
            return (
                0.1 * np.log(density.root).sum()
                + (2 * child[:, None] * np.log(density.transitions[1:])).sum()
                + (prior.marginals[:, None] * np.log(density.probabilities)).sum()
                - 0.5 * of_scores.sum()
            )

        new = prior.solve(sums)
        gain = log_likelihood(new, rows) + penalty(new) - log_likelihood(at, rows) - penalty(at)
        assert gain >= -1e-9
        at = new


def test_a_step_of_scores_does_not_lower_the_penalised_likelihood(rows, groups):
    prior = ScorePrior(rows.columns, ScoreTables.of(rows))
    shares = 0.9 * np.eye(K)[groups] + 0.1 / K
    at = prior.solve(prior.first(K).expected(rows, weighted(shares, rows.weights)))
    d = at.mean.shape[1]
    nu = d + 2
    for _ in range(30):
        sums = at.expected(rows, weighted(responsibilities(at.log_components(rows)), rows.weights))
        new = prior.solve(sums)
        cross = np.einsum("ki,kj->kij", sums.score, new.mean)
        scatter = sums.product - cross - np.swapaxes(cross, 1, 2)
        scatter += (sums.weight + 0.5)[:, None, None] * np.einsum("ki,kj->kij", new.mean, new.mean)
        pooled = scatter.sum(axis=0) / sums.weight.sum()
        pooled = 0.9 * pooled + 0.1 * np.diag(np.diag(pooled)) + 1e-3 * np.eye(d)
        imagined = nu * pooled + (sums.weight + nu)[:, None, None] * 1e-6 * np.eye(d)

        def penalty(density, imagined=imagined):
            precision = np.linalg.inv(density.covariance)
            of_scores = np.einsum("kij,kij", precision, imagined) + nu * np.linalg.slogdet(density.covariance)[1].sum()
            of_scores += 0.5 * np.einsum("ki,kij,kj", density.mean, precision, density.mean)
            common = prior.tables.of_components(K).tables
            return 0.01 * np.log(density.weights).sum() + 10 * common @ np.log(density.forest.tables) - 0.5 * of_scores

        gain = log_likelihood(new, rows) + penalty(new) - log_likelihood(at, rows) - penalty(at)
        assert gain >= -1e-9
        at = new


def test_tied_scores_have_the_pooled_covariance(rows, groups):
    tables = ScoreTables.of(rows)
    each, tied = ScorePrior(rows.columns, tables), ScorePrior(rows.columns, tables, tied=True)
    shares = weighted(0.9 * np.eye(K)[groups] + 0.1 / K, rows.weights)
    sums, together = (prior.first(K).expected(rows, shares) for prior in (each, tied))
    np.testing.assert_allclose(together.product, sums.product.sum(axis=0, keepdims=True), **CLOSE)
    found = tied.solve(together)
    scatter = sums.product.sum(axis=0)
    for n, score, mean in zip(sums.weight, sums.score, found.mean, strict=True):
        np.testing.assert_allclose(mean, score / (n + 0.5), **CLOSE)
        scatter += (n + 0.5) * np.outer(mean, mean) - np.outer(score, mean) - np.outer(mean, score)
    pooled = scatter / sums.weight.sum()
    pooled = 0.9 * pooled + 0.1 * np.diag(np.diag(pooled)) + (1e-3 + 1e-6) * np.eye(len(pooled))
    for covariance in found.covariance:
        np.testing.assert_allclose(covariance, pooled, **CLOSE)
    common, counts = tables.of_components(K), tables.of_components(K).with_tables(sums.tables)
    for k, j in np.ndindex(K, len(common.levels)):
        n = counts.table(k, j).sum(axis=-1, keepdims=True)
        want = (counts.table(k, j) + 0.3 * common.table(k, j)) / (n + 0.3)
        np.testing.assert_allclose(found.forest.table(k, j), want, **CLOSE)


class Recorded:
    """A prior that keeps how likely rows are under every mixture that it has solved."""

    def __init__(self, prior, rows):
        self.prior, self.rows, self.found = prior, rows, []

    def solve(self, sums):
        density = self.prior.solve(sums)
        self.found.append(float(np.average(density.log_density(self.rows), weights=self.rows.weights)))
        return density


@pytest.mark.parametrize("kind", ["trees", "scores"])
def test_the_best_step_is_kept(rows, groups, kind):
    shares = 0.8 * np.eye(K)[groups] + 0.2 / K
    prior = tree_prior(rows, shares) if kind == "trees" else ScorePrior(rows.columns, ScoreTables.of(rows))
    first = prior.first if kind == "trees" else prior.first(K)
    recorded = Recorded(prior, rows)
    kept = fit_mixture(recorded, first, shares, rows, steps=60, tolerance=0.0)
    assert kept.log_likelihood == pytest.approx(max(recorded.found[1:]), abs=1e-12)
    again = np.average(prior.solve(kept.learned.sums).log_density(rows), weights=rows.weights)
    assert again == pytest.approx(kept.log_likelihood, abs=1e-12)


def test_trees_that_are_chosen_anew_are_kept_if_they_are_better(rows, groups):
    shares = 0.8 * np.eye(K)[groups] + 0.2 / K
    prior = tree_prior(rows, shares)
    early = fit_mixture(prior, prior.first, shares, rows, steps=4, tolerance=0.0)
    late, learned = fit_trees(rows, groups, K)
    found = np.average(late.solve(learned.sums).log_density(rows), weights=rows.weights)
    assert found >= early.log_likelihood
