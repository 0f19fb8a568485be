"""One EM step of each member of the joint of a table, from the formulas: sums over everything that is hidden.

All completions of missing levels, and all combinations of hidden states, are listed one by one. Nothing here is fast,
and nothing is shared with the package.
"""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

Tables = list[list[np.ndarray]]
"""of components and columns: p(level) of a root, else p(level | level of the parent)"""


# Trees of mutual information


def information(counts: np.ndarray) -> float:
    """Return the mutual information of a table of counts less its bias, (r − 1)(c − 1) / 2n, and not below 0."""
    n = counts.sum()
    p, down, across = counts / n, counts.sum(axis=1), counts.sum(axis=0)
    found = sum(p[i, j] * np.log(p[i, j] * n * n / (down[i] * across[j])) for i, j in np.argwhere(counts > 0))
    return max(found - ((down > 0.5).sum() - 1) * ((across > 0.5).sum() - 1) / (2 * n), 0.0)


def tree(weights: np.ndarray) -> list[int]:
    """Return the parents of the tree of the greatest weight, by Kruskal's algorithm; −1 is the root."""
    d = len(weights)
    part, edges = list(range(d)), [[] for _ in range(d)]
    for i, j in sorted(combinations(range(d), 2), key=lambda pair: -weights[pair]):
        if part[i] != part[j]:
            part = [part[i] if p == part[j] else p for p in part]
            edges[i].append(j)
            edges[j].append(i)
    root = int(weights.sum(axis=0).argmax())
    parents, reached = [-1] * d, [root]
    for column in reached:
        for other in edges[column]:
            if other not in reached:
                parents[other] = column
                reached.append(other)
    return parents


def pair_counts(codes: np.ndarray, sizes: list[int], i: int, j: int, weights: np.ndarray) -> np.ndarray:
    """Return how often levels of two columns come together, of rows in which both are there."""
    found = np.zeros((sizes[i], sizes[j]))
    for row, w in zip(codes, weights, strict=True):
        if row[i] >= 0 and row[j] >= 0:
            found[row[i], row[j]] += w
    return found


def informations(codes: np.ndarray, sizes: list[int], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mutual information of all pairs, and the weight of the rows in which both are there."""
    d = len(sizes)
    found, total = np.zeros((d, d)), np.zeros((d, d))
    for i, j in combinations(range(d), 2):
        counts = pair_counts(codes, sizes, i, j, weights)
        found[i, j] = found[j, i] = information(counts)
        total[i, j] = total[j, i] = counts.sum()
    return found, total


def own_trees(
    codes: np.ndarray, sizes: list[int], coarse: np.ndarray, few: list[int], shares: np.ndarray, weights: np.ndarray
) -> list[list[int]]:
    """Return the tree of each component, by its own information and 30 rows of that of all rows in coarse bins."""
    together = informations(coarse, few, weights)[0]
    found = []
    for share in shares.T:
        own, n = informations(codes, sizes, weights * share)
        found.append(tree((n * own + 30 * together) / (n + 30)))
    return found


# Levels in trees


def completions(codes: np.ndarray, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return every way to fill the missing levels of each row, and the row of each."""
    found, owner = [], []
    for i, row in enumerate(codes):
        for way in product(*([c] if c >= 0 else range(size) for c, size in zip(row, sizes, strict=True))):
            found.append(way)
            owner.append(i)
    return np.array(found), np.array(owner)


def log_levels(full: np.ndarray, parents: list[list[int]], tables: Tables) -> np.ndarray:
    """Return log p_k(levels) of complete rows, rows × components."""
    out = np.zeros((len(full), len(tables)))
    for k, (above, own) in enumerate(zip(parents, tables, strict=True)):
        for j, parent in enumerate(above):
            out[:, k] += np.log(own[j][full[:, j]] if parent < 0 else own[j][full[:, parent], full[:, j]])
    return out


def log_known_levels(codes: np.ndarray, parents: list[list[int]], tables: Tables, sizes: list[int]) -> np.ndarray:
    """Return log p_k(known levels), rows × components."""
    full, owner = completions(codes, sizes)
    logs = log_levels(full, parents, tables)
    return np.stack([logsumexp(logs[owner == i], axis=0) for i in range(len(codes))])


def level_counts(
    codes: np.ndarray, shares: np.ndarray, parents: list[list[int]], tables: Tables, sizes: list[int]
) -> Tables:
    """Return the expected counts of every table; missing levels are expected given those that are known."""
    full, owner = completions(codes, sizes)
    logs = log_levels(full, parents, tables)
    p = np.exp(logs - log_known_levels(codes, parents, tables, sizes)[owner]) * shares[owner]
    found = [[np.zeros_like(table) for table in own] for own in tables]
    for k, above in enumerate(parents):
        for j, parent in enumerate(above):
            index = (full[:, j],) if parent < 0 else (full[:, parent], full[:, j])
            np.add.at(found[k][j], index, p[:, k])
    return found


# Mixtures of trees


def kernel(size: int, bins: int, width: float) -> np.ndarray:
    """Return weights between levels: each column adds up to 1, the last ``bins`` are spread over their neighbours."""
    out = np.eye(size)
    for i, j in product(range(bins), range(bins)):
        out[size - bins + i, size - bins + j] = np.exp(-0.5 * ((i - j) / width) ** 2)
    return out / out.sum(axis=0)


def marginals(codes: np.ndarray, sizes: list[int], bins: list[int], weights: np.ndarray) -> list[np.ndarray]:
    """Return p(level) of every column, of numbers uniform over bins, with half a row of all levels alike."""
    found = []
    for j, size in enumerate(sizes):
        p = np.array([weights[codes[:, j] == level].sum() for level in range(size)])
        if bins[j]:
            p[-bins[j] :] = p[-bins[j] :].mean()
        found.append((p + 0.5 / size) / (p + 0.5 / size).sum())
    return found


class Smoothed(NamedTuple):
    """A table of all rows, and the kernels that smooth its counts."""

    table: np.ndarray
    down: np.ndarray
    across: np.ndarray


def gaussian_table(counts: np.ndarray, marginal: np.ndarray, bins: tuple[int, int]) -> np.ndarray:
    """Return p(level of the child | level of the parent) of Gaussian scores, cell by cell.

    A bin has the score of its middle. Sums of squares have 3 rows of variance 1 and no dependence more than were seen,
    means of levels 3 rows at the mean of all; no standard deviation is less than .05. A hundredth is independent.
    """
    (rows, levels), (above, below) = counts.shape, bins
    first = [size - b for size, b in zip(counts.shape, bins, strict=True)]

    def middle(b: int, of: int) -> float:
        return float(norm.ppf((b + 0.5) / of))

    def moments(points: list[tuple[int, float, float]]) -> tuple[dict[int, float], float]:
        """Return the mean of each level, and the standard deviation about them, from (level, score, weight)."""
        total = sum(w for *_, w in points)
        centre = sum(w * z for _, z, w in points) / (total + 1e-9)
        weight = {level: sum(w for one, _, w in points if one == level) for level, *_ in points}
        means = {
            level: centre + sum(w * (z - centre) for one, z, w in points if one == level) / (n + 3)
            for level, n in weight.items()
        }
        squares = sum(w * (z - means[level]) ** 2 for level, z, w in points)
        return means, max(float(np.sqrt((squares + 3) / (total + 3))), 0.05)

    def in_bin(b: int, mean: float, deviation: float) -> float:
        low, high = norm.ppf(b / below), norm.ppf((b + 1) / below)
        return float(norm.cdf((high - mean) / deviation) - norm.cdf((low - mean) / deviation))

    out = np.tile(marginal, (rows, 1))
    if not below:
        points = [(x, middle(b, above), counts[first[0] + b, x]) for x in range(levels) for b in range(above)]
        means, deviation = moments(points)
        for b in range(above):
            for x in range(levels):
                out[first[0] + b, x] *= np.exp(-0.5 * ((middle(b, above) - means[x]) / deviation) ** 2)
    else:
        free = 1 - marginal[: first[1]].sum()
        points = [(p, middle(b, below), counts[p, first[1] + b]) for p in range(first[0]) for b in range(below)]
        means, deviation = moments(points) if points else ({}, 1.0)
        for p, b in product(range(first[0]), range(below)):
            out[p, first[1] + b] = free * in_bin(b, means[p], deviation)
        if above:
            both = [
                (middle(a, above), middle(b, below), counts[first[0] + a, first[1] + b])
                for a, b in product(range(above), range(below))
            ]
            total = sum(w for *_, w in both)
            x0, y0 = (sum(point[2] * point[i] for point in both) / (total + 1e-9) for i in (0, 1))
            xx, yy = (
                sum(w * d for d, w in zip(away, [p[2] for p in both], strict=True)) + 3
                for away in ([(x - x0) ** 2 for x, *_ in both], [(y - y0) ** 2 for _, y, _ in both])
            )
            slope = sum(w * (x - x0) * (y - y0) for x, y, w in both) / xx
            deviation = float(np.sqrt(max((yy - slope**2 * xx) / (total + 3), 0.05**2)))
            for a, b in product(range(above), range(below)):
                mean = y0 + slope * (middle(a, above) - x0)
                out[first[0] + a, first[1] + b] = free * in_bin(b, mean, deviation)
    return np.asarray(0.99 * out / out.sum(axis=1, keepdims=True) + 0.01 * marginal)


def smoothed(counts: np.ndarray, marginal: np.ndarray, bins: tuple[int, int], widths: tuple[float, ...]) -> Smoothed:
    """Return the table of an edge, with the smoothing of the greatest leave-one-out likelihood.

    What is smoothed are the kernel, pseudo-counts, and towards which table: the marginal, or Gaussian scores.
    """
    best, found = -np.inf, None
    towards = [np.tile(marginal, (len(counts), 1))] + [gaussian_table(counts, marginal, bins)] * any(bins)
    for width, pseudo, back in product(widths, (1.0, 3.0, 10.0, 30.0), towards):
        down, across = (kernel(size, b, width) for size, b in zip(counts.shape, bins, strict=True))
        smooth, score = down @ counts @ across.T, 0.0
        for i, j in np.argwhere(counts > 0):
            own = smooth[i, j] - down[i, i] * across[j, j]
            rest = smooth[i].sum() - down[i, i]
            score += counts[i, j] * np.log((max(own, 0) + pseudo * back[i, j]) / (max(rest, 0) + pseudo))
        if score > best:
            table = (smooth + pseudo * back) / (smooth.sum(axis=1, keepdims=True) + pseudo)
            best, found = score, Smoothed(table, down, across)
    assert found is not None
    return found


class Trees(NamedTuple):
    """A mixture of trees, with the smoothed tables of all rows that its own are pulled to."""

    parents: list[list[int]]
    common: list[list[Smoothed]]
    weights: np.ndarray
    tables: Tables

    def log_components(self, codes: np.ndarray, sizes: list[int]) -> np.ndarray:
        """Return log w_k p_k(known levels)."""
        return np.log(self.weights) + log_known_levels(codes, self.parents, self.tables, sizes)


def common_tables(
    codes: np.ndarray, sizes: list[int], bins: list[int], weights: np.ndarray, parents: list[list[int]]
) -> Trees:
    """Return the mixture in which all components have the tables of all rows."""
    p = marginals(codes, sizes, bins, weights)
    common = []
    for above in parents:
        own = []
        for j, parent in enumerate(above):
            if parent < 0:
                own.append(Smoothed(p[j], np.eye(1), kernel(sizes[j], bins[j], 4.0)))
                continue
            counts = pair_counts(codes, sizes, parent, j, weights)
            widths = (1.0, 2.0, 4.0, 8.0) if bins[parent] or bins[j] else (1.0,)
            own.append(smoothed(counts, p[j], (bins[parent], bins[j]), widths))
        common.append(own)
    k = len(parents)
    return Trees(parents, common, np.full(k, 1 / k), [[each.table for each in own] for own in common])


def tree_step(codes: np.ndarray, sizes: list[int], shares: np.ndarray, at: Trees) -> Trees:
    """Return the mixture after one EM step from these responsibilities (weighted): (S N Sᵀ + 5 T) / (row + 5)."""
    counts = level_counts(codes, shares, at.parents, at.tables, sizes)
    tables = []
    for own, common in zip(counts, at.common, strict=True):
        smooth = [n @ s.across.T if n.ndim == 1 else s.down @ n @ s.across.T for n, s in zip(own, common, strict=True)]
        tables.append(
            [(n + 5 * s.table) / (n.sum(axis=-1, keepdims=True) + 5) for n, s in zip(smooth, common, strict=True)]
        )
    weight = shares.sum(axis=0) + 0.1
    return Trees(at.parents, at.common, weight / weight.sum(), tables)


# Hidden trees


class Hidden(NamedTuple):
    """A hidden tree: p(state) of the root, transitions, p(level | state), and Gaussians of the scores of numbers."""

    parents: list[int]
    root: np.ndarray
    transitions: dict[int, np.ndarray]
    levels: list[np.ndarray]
    """of columns: levels × states"""
    gaussians: dict[int, tuple[np.ndarray, np.ndarray]]
    """of columns of numbers: means and variances"""


def emissions(codes: np.ndarray, scores: dict[int, np.ndarray], at: Hidden) -> np.ndarray:
    """Return log p(cell | state), columns × rows × states; scores by their density over the standard normal."""
    out = np.zeros((codes.shape[1], len(codes), len(at.root)))
    for j, table in enumerate(at.levels):
        there = codes[:, j] >= 0
        out[j, there] = np.log(table[codes[there, j]])
        if j in scores:
            free = ~np.isnan(scores[j])
            z, (mean, variance) = scores[j][free, None], at.gaussians[j]
            out[j, free] += norm.logpdf(z, mean, np.sqrt(variance)) - norm.logpdf(z)
    return out


def hidden_step(
    codes: np.ndarray, scores: dict[int, np.ndarray], weights: np.ndarray, at: Hidden
) -> tuple[np.ndarray, list[np.ndarray], dict[int, np.ndarray]]:
    """Return log p of each row, and p(state) of every column and of every edge: by a sum over all hidden states."""
    k, d = len(at.root), codes.shape[1]
    logs, cells = [], emissions(codes, scores, at)
    ways = list(product(range(k), repeat=d))
    for way in ways:
        log = 0.0
        for j, parent in enumerate(at.parents):
            log = log + np.log(at.root[way[j]] if parent < 0 else at.transitions[j][way[parent], way[j]])
            log = log + cells[j][:, way[j]]
        logs.append(log)
    total = logsumexp(logs, axis=0)
    states = [np.zeros((len(codes), k)) for _ in range(d)]
    edges = {j: np.zeros((k, k)) for j in at.transitions}
    for way, log in zip(ways, logs, strict=True):
        p = np.exp(log - total)
        for j, parent in enumerate(at.parents):
            states[j][:, way[j]] += p
            if parent >= 0:
                edges[j][way[parent], way[j]] += weights @ p
    return total, states, edges


def solved_hidden(
    codes: np.ndarray,
    scores: dict[int, np.ndarray],
    weights: np.ndarray,
    parents: list[int],
    states: list[np.ndarray],
    edges: dict[int, np.ndarray],
) -> Hidden:
    """Return the hidden tree of expected states: each table with its imagined rows."""
    k = states[0].shape[1]
    root = weights @ states[parents.index(-1)] + 0.1
    transitions = {}
    for j, counts in edges.items():
        child = counts.sum(axis=0) / counts.sum()
        table = counts + 2 * (0.9 * child + 0.1 / k)
        transitions[j] = table / table.sum(axis=1, keepdims=True)
    levels, gaussians = [], {}
    for j, share in enumerate(states):
        size = codes[:, j].max() + 1
        marginal = np.array([weights[codes[:, j] == level].sum() + 0.5 / size for level in range(size)])
        counts = np.stack([(weights[:, None] * share)[codes[:, j] == level].sum(axis=0) for level in range(size)])
        levels.append((counts + (marginal / marginal.sum())[:, None]) / (counts.sum(axis=0) + 1))
        if j in scores:
            free = ~np.isnan(scores[j])
            z, r = scores[j][free, None], (weights[:, None] * share)[free]
            mean = (r * z).sum(axis=0) / (r.sum(axis=0) + 0.5)
            square = (r * (z - mean) ** 2).sum(axis=0) + 0.5 * mean**2 + 0.5 * 0.3
            gaussians[j] = mean, np.maximum(square / (r.sum(axis=0) + 0.5), 1e-4)
    return Hidden(parents, root / root.sum(), transitions, levels, gaussians)


# Gaussian mixtures of normal scores


class Scores(NamedTuple):
    """A mixture of Gaussians of z, each with a tree of levels; ``common`` are the tables of all rows."""

    weights: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    parents: list[int]
    tables: Tables
    common: list[np.ndarray]

    def log_components(self, codes: np.ndarray, sizes: list[int], z: np.ndarray) -> np.ndarray:
        """Return log w_k p_k(what is known); scores by their density over the standard normal."""
        k = len(self.weights)
        out = np.log(self.weights) + log_known_levels(codes, [self.parents] * k, self.tables, sizes)
        for i, row in enumerate(z):
            there = ~np.isnan(row)
            for c in range(k if there.any() else 0):
                own = multivariate_normal(self.mean[c][there], self.covariance[c][np.ix_(there, there)])
                out[i, c] += own.logpdf(row[there]) - norm.logpdf(row[there]).sum()
        return out


def standard_scores(codes: np.ndarray, sizes: list[int], z: np.ndarray, weights: np.ndarray, k: int) -> Scores:
    """Return the mixture whose Gaussians are standard, and whose tables are those of all rows."""
    d = z.shape[1]
    p = marginals(codes, sizes, [0] * len(sizes), weights)
    parents = tree(informations(codes, sizes, weights)[0])
    common = []
    for j, parent in enumerate(parents):
        counts = None if parent < 0 else pair_counts(codes, sizes, parent, j, weights)
        common.append(p[j] if counts is None else smoothed(counts, p[j], (0, 0), (1.0,)).table)
    unit = np.tile(np.eye(d), (k, 1, 1))
    return Scores(np.full(k, 1 / k), np.zeros((k, d)), unit, parents, [common] * k, common)


def score_step(codes: np.ndarray, sizes: list[int], z: np.ndarray, shares: np.ndarray, at: Scores) -> Scores:
    """Return the mixture after one EM step from these responsibilities (weighted)."""
    (n, d), k = z.shape, len(at.weights)
    counts = level_counts(codes, shares, [at.parents] * k, at.tables, sizes)
    tables = [
        [(c + 10 * t) / (c.sum(axis=-1, keepdims=True) + 10) for c, t in zip(own, at.common, strict=True)]
        for own in counts
    ]
    weight, mean, scatter = shares.sum(axis=0), np.zeros((k, d)), np.zeros((k, d, d))
    for c in range(k):
        filled, beside = np.zeros((n, d)), np.zeros((n, d, d))
        for i, row in enumerate(z):
            there = ~np.isnan(row)
            gone = ~there
            slope = np.linalg.solve(at.covariance[c][np.ix_(there, there)], at.covariance[c][np.ix_(there, gone)])
            filled[i, there] = row[there]
            filled[i, gone] = at.mean[c][gone] + (row[there] - at.mean[c][there]) @ slope
            own = at.covariance[c][np.ix_(gone, gone)] - at.covariance[c][np.ix_(gone, there)] @ slope
            beside[i][np.ix_(gone, gone)] = own
        mean[c] = shares[:, c] @ filled / (weight[c] + 0.5)
        away = filled - mean[c]
        scatter[c] = (away.T * shares[:, c]) @ away + 0.5 * np.outer(mean[c], mean[c])
        scatter[c] += np.einsum("n,nij->ij", shares[:, c], beside)
    pooled = scatter.sum(axis=0) / weight.sum()
    pooled = 0.9 * pooled + 0.1 * np.diag(np.diag(pooled)) + 1e-3 * np.eye(d)
    nu = d + 2
    covariance = (scatter + nu * pooled) / (weight + nu)[:, None, None] + 1e-6 * np.eye(d)
    return Scores((weight + 0.01) / (weight + 0.01).sum(), mean, covariance, at.parents, tables, at.common)
