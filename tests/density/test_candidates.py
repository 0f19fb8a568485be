"""Where columns are many, only the strongest pairs of them are candidates for trees."""

import numpy as np
import pytest
from encoded import encoded

import likely
from likely.density import structure
from likely.density.columns import CategoryColumn, NumberColumn, level_counts
from likely.density.combination import continued, fit_member
from likely.density.structure import Candidates, Pairs, all_pairs, entropies, maximum_tree
from likely.density.trees import COARSE, candidates, dependence
from likely.persistence.table_joint import StoredPairs, StoredTree

D, N = 24, 500
KINDS = ("tree", "trees", "hidden trees", "scores")


@pytest.fixture
def bounded(monkeypatch):
    """Few pairs may be looked at, and few partners of each column."""
    monkeypatch.setattr(structure, "MOST_PAIRS", 50)
    monkeypatch.setattr(structure, "_PARTNERS", 3)


def chain(n=N, d=D, seed=0):
    """Return cells of columns, numbers and categories in turn, each of which depends on the one before; and names."""
    rng = np.random.default_rng(seed)
    cells = [rng.normal(size=n)]
    for _ in range(d - 1):
        cells.append(0.8 * cells[-1] + 0.6 * rng.normal(size=n))
    table = np.stack(cells, axis=1)
    table[:, 1::2] = np.searchsorted([-0.7, 0.7], table[:, 1::2])
    table[rng.random(table.shape) < 0.03] = np.nan
    return table, {j: ["a", "b", "c"] for j in range(1, d, 2)}


def rows_of(n=N, d=D, seed=0):
    cells, names = chain(n, d, seed)
    columns = tuple(
        CategoryColumn.fit(names[j], np.full(3, n / 3)) if j in names else NumberColumn.fit(cells[:, j])
        for j in range(d)
    )
    return encoded(columns, cells, names)


def frame_of(n=N, d=D, seed=0):
    cells, names = chain(n, d, seed)
    return [
        {
            f"c{j}": None if np.isnan(x) else (names[j][int(x)] if j in names else float(x))
            for j, x in enumerate(line.tolist())
        }
        for line in cells
    ]


@pytest.fixture(scope="module")
def rows():
    return rows_of()


def coarse(rows):
    return rows.binned(COARSE), level_counts(rows.columns, COARSE)


def edges(tree):
    return {frozenset((j, p)) for j, p in enumerate(tree.parents.tolist()) if p >= 0}


def test_few_pairs_are_all_candidates(rows):
    found = candidates(rows)
    np.testing.assert_array_equal(found.pairs, all_pairs(D))
    assert found.of_columns is None
    want = Pairs.of(*coarse(rows)).information()[0]
    want[np.diag_indices(D)] = entropies(*coarse(rows))
    np.testing.assert_array_equal(dependence(rows, found), want)


@pytest.mark.usefixtures("bounded")
def test_candidates_are_the_strongest_partners_and_connect_all_columns(rows):
    found, every = candidates(rows), Pairs.of(*coarse(rows)).information()[0]
    assert D - 1 <= len(found.pairs) <= 3 * D + D - 1 < D * (D - 1) / 2
    assert (found.pairs[:, 0] > found.pairs[:, 1]).all()
    allowed = found.of_columns
    assert allowed is not None
    for j in range(D):
        assert allowed[j, np.argsort(-every[j], kind="stable")[:3]].all()
    whole = maximum_tree(every)
    assert edges(whole) <= {frozenset(pair) for pair in found.pairs.tolist()}
    assert edges(maximum_tree(every, allowed)) == edges(whole)
    # Against information that tempts to other edges
    tempting = np.where(allowed, 1e-9, 1.0)
    assert edges(maximum_tree(tempting, allowed)) <= {frozenset(pair) for pair in found.pairs.tolist()}


@pytest.mark.usefixtures("bounded")
def test_independent_columns_are_connected_too():
    codes = np.random.default_rng(0).integers(2, size=(300, 40)).astype(np.int16)
    codes[:, 7] = -1  # and one that is never there
    found = Candidates.of(codes, np.full(40, 2, dtype=np.int32))
    tree = maximum_tree(np.zeros((40, 40)), found.of_columns)
    assert sorted(tree.order.tolist()) == list(range(40))
    assert edges(tree) <= {frozenset(pair) for pair in found.pairs.tolist()}
    assert np.count_nonzero(tree.parents < 0) == 1


@pytest.mark.usefixtures("bounded")
def test_information_of_candidates_is_that_of_all_rows_and_else_of_the_first(rows, monkeypatch):
    monkeypatch.setattr(structure, "_SCREENED", 200)
    codes, levels = coarse(rows)
    weights = np.random.default_rng(0).integers(1, 4, N) / 2.0
    found = Candidates.of(codes, levels, weights)
    allowed, information = found.of_columns, found.information(codes, levels, weights)
    every = Pairs.of(codes, levels).information(weights)[0]
    first = Pairs.of(codes[:200], levels).information(weights[:200])[0]
    off = ~np.eye(D, dtype=bool)
    np.testing.assert_array_equal(information[allowed], every[allowed])
    np.testing.assert_array_equal(information[off & ~allowed], first[off & ~allowed])
    assert not np.array_equal(every, information)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", KINDS)
def test_members_have_trees_of_candidates(rows, kind):
    some = rows.taken(slice(0, 300))
    among = candidates(some)
    pairs = {frozenset(pair) for pair in among.pairs.tolist()}
    member = fit_member(kind, some, 0, among=among)
    for one in (member, continued(member, rows, 2, among)):
        if kind == "scores":
            assert np.isfinite(one.density.log_density(rows)).all()
            continue
        trees = one.density.structure if kind == "hidden trees" else one.density.forest.structures
        for tree in [trees] if kind == "hidden trees" else trees:
            assert edges(tree) <= pairs


def test_one_tree_of_candidates_is_that_of_all_pairs(rows, monkeypatch):
    every = fit_member("tree", rows, 0)
    monkeypatch.setattr(structure, "MOST_PAIRS", 50)
    some = fit_member("tree", rows, 0)
    assert len(some.sums.pairs) < len(every.sums.pairs)
    np.testing.assert_array_equal(some.density.log_density(rows), every.density.log_density(rows))


@pytest.mark.parametrize("kind", [None, "trees", "hidden trees"])
def test_new_rows_are_as_likely(kind, monkeypatch):
    train, test = frame_of(), frame_of(300, seed=1)
    found = []
    for bound in (5000, 50):
        monkeypatch.setattr(structure, "MOST_PAIRS", bound)
        model = likely.Model(random_state=0) if kind is None else likely.Model(kind, random_state=0)
        found.append(model.fit(train).score(test))
    assert found[1] > found[0] - 0.1


@pytest.fixture
def model(bounded):
    return likely.Model(random_state=0).fit(frame_of())


def test_every_question_has_an_answer(model, tmp_path):
    rows = frame_of(20, seed=2)
    assert np.isfinite(model.log_density(rows)).all()
    assert model.sample(5, 0).num_rows == 5
    assert model.sample(5, 0, given={"c0": (0, None)}, missing=True).num_rows == 5
    assert sum(column.null_count for column in model.impute(rows).columns) == 0
    assert np.isfinite(model.predict(rows, of="c0")).all()
    np.testing.assert_allclose(model.predict_proba(rows, of="c1").sum(axis=1), 1)
    known = np.array([[cell is not None for cell in row.values()] for row in rows])
    np.testing.assert_array_equal(np.isfinite(model.surprise(rows).cells), known)
    told = model.explain(rows[:2], of="c1")
    odds = model.predict_log_proba(rows[:2], of="c1")
    np.testing.assert_allclose(told.total, np.sort(odds, axis=1)[:, -1] - np.sort(odds, axis=1)[:, -2])
    model.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "m.likely").log_density(rows), model.log_density(rows))


def test_dependence_lists_all_pairs(model):
    found = model.dependence()
    assert found.num_rows == D * (D - 1) // 2
    strongest = found.slice(0, D - 1).to_pylist()
    near = [abs(int(pair["column"][1:]) - int(pair["other"][1:])) for pair in strongest]
    assert np.median(near) == 1


@pytest.mark.usefixtures("bounded")
def test_one_tree_is_merged_and_forgotten_by_its_pairs(tmp_path):
    first, second = frame_of(200, seed=3), frame_of(200, seed=4)
    whole = likely.Model("tree", random_state=0).fit(first)
    empty = whole.emptied()
    merged = empty.emptied().partial_fit(first).merge(empty.emptied().partial_fit(second))
    batches = whole.emptied().partial_fit(first).partial_fit(second)
    np.testing.assert_allclose(merged.log_density(second), batches.log_density(second), rtol=1e-9)
    np.testing.assert_allclose(batches.forget(second).log_density(second), whole.log_density(second), rtol=1e-9)
    whole.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely").partial_fit(second)
    np.testing.assert_allclose(again.log_density(first), merged.log_density(first), rtol=1e-9)


@pytest.mark.usefixtures("bounded")
def test_pairs_in_a_file_are_checked(rows):
    member = fit_member("tree", rows, 0)
    stored = StoredTree.of(member)
    assert stored.among is not None
    pairs = stored.among.listed
    np.testing.assert_array_equal(stored.member(rows.columns).prior.among, pairs)
    alone = pairs[~(pairs == 5).any(axis=1)]
    for broken in (pairs[:, ::-1], pairs + 1, alone, np.concatenate([pairs, pairs[:1]]), pairs.ravel(), pairs - 1):
        with pytest.raises(ValueError, match="expected"):
            StoredPairs(np.ascontiguousarray(broken)).restored(D)
    assert pairs.max() == D - 1


@pytest.mark.usefixtures("bounded")
def test_large_and_small_members_that_are_the_same_are_fitted_once():
    model = likely.Model(random_state=0).fit(frame_of(120))
    kinds = [member.kind for member in model._state.joint.members]
    assert kinds.count("scores") <= 1
