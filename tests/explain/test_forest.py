"""Shapley values of a forest: the definition, the plain recursion, sums, threads, company, odd trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.errors import DataError
from mcrank.explain import pieces as cutting
from mcrank.explain.forest import forest_baseline, forest_contributions, quadratures
from mcrank.explain.pieces import TESTS, cut_forest
from mcrank.scorers.forest.forest import NODE_DTYPES, ForestBuilder
from tests.explain.forests import random_forest, random_rows
from tests.reference.shapley import forest_shapley, tree_shap


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    features=st.integers(1, 7),
    leaves=st.integers(1, 16),
    outputs=st.integers(1, 3),
    empty=st.booleans(),
)
def test_equal_to_all_subsets(seed, features, leaves, outputs, empty):
    forest = random_forest(seed, features, 3, leaves, outputs, empty)
    X = random_rows(seed, 3, features, 0.2)
    found = forest_contributions(forest, X)
    for k in range(outputs):
        for row in range(len(X)):
            np.testing.assert_allclose(found[k, row], forest_shapley(forest, X[row], k), rtol=0, atol=1e-12)


def test_equal_to_all_subsets_of_ten_features():
    forest = random_forest(5, 10, 1, 12)
    X = random_rows(5, 1, 10)
    np.testing.assert_allclose(
        forest_contributions(forest, X)[0, 0], forest_shapley(forest, X[0], 0), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(("features", "leaves", "chain"), [(30, 31, True), (12, 30, True), (40, 120, False)])
def test_equal_to_the_plain_recursion_in_deep_trees(features, leaves, chain):
    forest = random_forest(leaves, features, 2, leaves, chain=chain)
    X = random_rows(3, 6, features)
    assert (np.diff(cut_forest(forest).node_start) > TESTS).any()
    found = forest_contributions(forest, X)[0]
    expected = [tree_shap(forest, x, 0) for x in X]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("leaves", [2, 9, 10, 31])
def test_baseline_and_values_add_up_to_the_outputs(leaves):
    forest = random_forest(leaves, 6, 20, leaves, outputs=2)
    X = random_rows(1, 1000, 6)
    total = forest_baseline(forest)[:, None] + forest_contributions(forest, X).sum(axis=-1)
    np.testing.assert_allclose(total, forest.raw(X), rtol=0, atol=1e-12)


def test_the_same_bytes_for_any_threads_and_company():
    forest = random_forest(8, 8, 12, 20, outputs=2)
    X = random_rows(2, 3000, 8)
    found = forest_contributions(forest, X)
    for n_jobs in (2, 4):
        np.testing.assert_array_equal(forest_contributions(forest, X, n_jobs=n_jobs), found)
    for rows in (slice(0, 1), slice(5, 22), slice(100, 400)):
        np.testing.assert_array_equal(forest_contributions(forest, X[rows]), found[:, rows])


def test_tables_in_several_batches(monkeypatch):
    from mcrank.explain import forest as module

    forest = random_forest(8, 8, 12, 20)
    X = random_rows(2, 700, 8)
    found = forest_contributions(forest, X)
    monkeypatch.setattr(module, "_CELLS", 3000)
    np.testing.assert_allclose(forest_contributions(forest, X), found, rtol=0, atol=1e-13)


def test_outputs_weighted_by_row():
    forest = random_forest(9, 5, 6, 8, outputs=3)
    X = random_rows(4, 40, 5)
    weights = np.random.default_rng(0).normal(size=(3, 40))
    expected = np.einsum("or,orf->rf", weights, forest_contributions(forest, X))
    np.testing.assert_allclose(forest_contributions(forest, X, weights)[0], expected, rtol=0, atol=1e-13)


def test_a_feature_that_no_tree_tests_adds_exactly_nothing():
    forest = random_forest(3, 4, 10, 8)
    wide = ForestBuilder(6, forest.base)
    for t in range(forest.n_trees):
        part = forest.part(t, t + 1)
        wide.append(
            feature=np.where(part.feature >= 0, part.feature + 1, -1),
            **{name: getattr(part, name) for name in NODE_DTYPES if name != "feature"},
        )
    assert (forest_contributions(wide.build(), random_rows(1, 50, 6))[..., [0, 5]] == 0).all()


def test_trees_of_one_leaf_and_no_trees():
    builder = ForestBuilder(2, [0.25])
    X = random_rows(1, 5, 2)
    assert not forest_contributions(builder.build(), X).any()
    builder.append(feature=[-1], value=[2.0], rows=[0])
    assert not forest_contributions(builder.build(), X).any()
    assert forest_baseline(builder.build()).tolist() == [2.25]
    assert forest_contributions(builder.build(), X[:0]).shape == (1, 0, 2)


def test_a_forest_without_counts_is_refused():
    builder = ForestBuilder(1, [0.0])
    builder.append(feature=[0, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, 1.0, 2.0])
    with pytest.raises(DataError, match="no counts of training rows"):
        forest_contributions(builder.build(), random_rows(1, 2, 1))


@pytest.mark.parametrize("tests", [1, 3, 9])
def test_every_leaf_is_in_one_piece(tests):
    forest = random_forest(11, 5, 6, 23, outputs=2)
    pieces = cut_forest(forest, tests)
    leaves = pieces.leaf == 1
    assert sorted(pieces.value[leaves].tolist()) == sorted(forest.value[forest.feature < 0].tolist())
    nodes = np.diff(pieces.node_start)
    deep = nodes > tests
    assert np.count_nonzero(deep) <= forest.n_trees
    assert (np.diff(pieces.output) >= 0).all()


def test_shares_of_nodes_without_rows_are_halves():
    forest = random_forest(1, 3, 1, 12, empty=True)
    shares = cutting.shares(forest)
    inner = np.flatnonzero(forest.feature >= 0)
    np.testing.assert_allclose(shares[forest.left[inner]] + shares[forest.right[inner]], 1.0)


@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_quadratures_are_exact_for_powers(n):
    rule = quadratures(n)
    points, weights = (part[n * (n - 1) // 2 :] for part in rule)
    for power in range(2 * n):
        assert abs(weights @ points**power - 1 / (power + 1)) < 1e-14
