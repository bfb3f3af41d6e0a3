"""Penalties and constraints of trees: LightGBM's and XGBoost's trees, the naive twin, promises kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.boosting.limits import LimitOptions
from mcrank.rankers.constraints import factors, orders, together
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import few_values
from tests.rankers.test_custom import pairs
from tests.rankers.test_determinism import noisy
from tests.rankers.test_start import KINDS
from tests.reference import limits as reference

RATE, LEAVES = 0.3, 7
# LightGBM grows best leaf first as we do. A feature that gains nothing at a node is not looked at below it
# there, so penalties that end the gain of features early have XGBoost for a witness.
LIGHTGBM = {
    "hessian": ({"min_sum_hessian": 41.0}, {"min_sum_hessian_in_leaf": 41.0}),
    "depth": ({"max_depth": 2}, {"max_depth": 2}),
    "weights": ({"feature_weights": {1: 0.3, "f3": 2.0}}, {"feature_contri": [1.0, 0.3, 2.0, 1.0]}),
    "interaction": (
        {"interaction": [[0, 1], ["f2", "f3"], [3]]},
        {"interaction_constraints": [[0, 1], [1, 2], [3]]},
    ),
}
XGBOOST = {
    "l2": ({"l2": 20.0}, {"lambda": 20.0}),
    "l1": ({"l1": 6.0}, {"alpha": 6.0}),
    "both": ({"l1": 3.0, "l2": 5.0}, {"alpha": 3.0, "lambda": 5.0}),
    "hessian": ({"min_sum_hessian": 41.0}, {"min_child_weight": 41.0}),
}
ORDERS = {
    "monotone": ({"monotone": {0: 1, 2: -1}}, {"monotone_constraints": "(1,0,-1,0)"}),
    "all but one": ({"monotone": [1, 1, 1, 0]}, {"monotone_constraints": "(1,1,1,0)"}),
    "monotone and l2": (
        {"monotone": [1, -1, 0, 1], "l2": 4.0},
        {"monotone_constraints": "(1,-1,0,1)", "lambda": 4.0},
    ),
}


def lightgbm_scores(X, y, **options):
    lightgbm = pytest.importorskip("lightgbm")
    told = {
        "objective": "regression", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": 5,
        "min_sum_hessian_in_leaf": 0, "boost_from_average": False, "verbose": -1, "num_threads": 1,
        "min_data_in_bin": 1,
    }  # fmt: skip
    return lightgbm.train(told | options, lightgbm.Dataset(X.astype(float), y), 4).predict(X)


def xgboost_scores(X, y, objective=None, **options):
    xgboost = pytest.importorskip("xgboost")
    told = {
        "objective": "reg:squarederror", "base_score": 0.0, "eta": RATE, "lambda": 0.0, "max_depth": 3,
        "min_child_weight": 0, "tree_method": "exact", "nthread": 1,
    }  # fmt: skip
    rows = xgboost.DMatrix(X, y)
    return xgboost.train(told | options, rows, 4, obj=objective).predict(rows, output_margin=True)


def regression(rounds=4, **options):
    told = {
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_samples_leaf": 5,
        "target": "grade",
        "n_jobs": 1,
    }
    return mcrank.RegressionRanker(n_estimators=rounds, **told | options)


def scores(X, y, qid, **options):
    return regression(**options).fit(X, y, qid=qid, init_score=np.zeros(len(y))).predict(X)


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm_grows_the_same_trees(name):
    ours, theirs = LIGHTGBM[name]
    rows = few_values(1, 400, 4, 6, 5)
    found = scores(*rows, **ours)
    assert np.allclose(found, lightgbm_scores(*rows[:2], **theirs), atol=2e-5)
    assert not np.allclose(found, scores(*rows), atol=1e-3)


@pytest.mark.parametrize("least", [2.0, 9.0])
def test_lightgbm_asks_for_the_same_gain(least):
    X, y, qid = few_values(1, 400, 4, 6, 5)
    X = np.ascontiguousarray(X[:, :2])
    found = scores(X, y, qid, num_leaves=31, min_gain=least)
    assert np.allclose(found, lightgbm_scores(X, y, num_leaves=31, min_gain_to_split=least), atol=2e-5)
    assert not np.allclose(found, scores(X, y, qid, num_leaves=31), atol=1e-3)


@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("name", XGBOOST | ORDERS)
def test_xgboost_grows_the_same_trees(name, seed):
    ours, theirs = (XGBOOST | ORDERS)[name]
    rows = few_values(seed, 400, 4, 6, 5)
    deep = {"num_leaves": 64, "max_depth": 3, "min_samples_leaf": 1}
    found = scores(*rows, **deep, **ours)
    assert np.allclose(found, xgboost_scores(*rows[:2], **theirs), atol=2e-5)
    assert not np.allclose(found, scores(*rows, **deep), atol=1e-3)


@pytest.mark.parametrize("name", XGBOOST)
def test_curvatures_are_what_newton_splits_divide_by(name):
    ours, theirs = XGBOOST[name]
    X, y, qid = few_values(3, 300, 4, 6, 4)
    offsets = np.arange(0, 301, 10)
    told = {"n_estimators": 4, "num_leaves": 64, "max_depth": 3, "learning_rate": RATE, "min_samples_leaf": 1}
    found = mcrank.CustomRanker(loss=pairs, n_jobs=1, **told, **ours).fit(X, y, qid=qid).predict(X)
    peer = xgboost_scores(X, y, lambda s, _: pairs(s.astype(float), y, offsets), **theirs)
    assert np.allclose(found, peer, atol=5e-5)


@pytest.mark.parametrize("groups", [[[0, 1], [2, 3]], [[0, 2], [1, 2]], [[1, 3]]])
def test_xgboost_has_the_same_interactions(groups):
    rows = few_values(5, 400, 4, 6, 5)
    found = scores(*rows, num_leaves=64, max_depth=3, min_samples_leaf=1, interaction=groups)
    assert np.allclose(found, xgboost_scores(*rows[:2], interaction_constraints=str(groups)), atol=2e-5)


def options_of(draw, features):
    maybe = lambda strategy: draw(st.one_of(st.none(), strategy))  # noqa: E731
    orders = maybe(st.lists(st.sampled_from([-1, 0, 1]), min_size=features, max_size=features))
    weights = maybe(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=features, max_size=features))
    groups = maybe(
        st.lists(st.lists(st.integers(0, features - 1), min_size=1, max_size=3), min_size=1, max_size=3)
    )
    return {
        "l1": draw(st.sampled_from([0.0, 0.0, 2.5])),
        "l2": draw(st.sampled_from([0.0, 0.0, 7.25])),
        "min_sum_hessian": draw(st.sampled_from([0.0, 12.0])),
        "min_gain": draw(st.sampled_from([0.0, 0.0, 1.5])),
        "max_depth": draw(st.sampled_from([None, 1, 3])),
        "colsample_node": draw(st.sampled_from([1.0, 1.0, 0.5])),
        "extra_trees": draw(st.booleans()),
        "feature_weights": weights,
        "interaction": groups,
        "monotone": orders,
    }


def both(seed, **told):
    """Our scores, and the naive twin's: as many as equal gains leave open."""
    X, y, qid = few_values(seed, 150, 4, 5, 4)
    found = regression(2, num_leaves=6, random_state=seed, **told).fit(
        X, y, qid=qid, init_score=np.zeros(150)
    )
    makers = {"feature_weights": factors, "monotone": orders, "interaction": together}
    arrays = {name: make(found.options_.get(name), found.feature_names_) for name, make in makers.items()}
    shape = {"num_leaves": 6, "min_rows": 5, "rate": RATE, "seed": seed}
    return found.predict(X), reference.regressions(X, y, 2, limits=LimitOptions(**told | arrays), **shape)


@given(data=st.data(), seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_the_naive_twin_grows_the_same_trees(data, seed):
    found, expected = both(seed, **options_of(data.draw, 4))
    assert any(np.allclose(found, way, atol=1e-5) for way in expected)


@pytest.mark.parametrize(
    ("seed", "told"),
    [
        (10243, {}),
        (721790, {"l2": 7.25, "max_depth": 3}),
        (502853, {"feature_weights": [0.5, 0.5, 3.0, 0.5], "min_sum_hessian": 12.0, "max_depth": 3}),
        (775408, {"interaction": [[0, 2]], "l1": 2.5}),
    ],
)
def test_rounding_decides_between_gains_that_are_equal_on_paper(seed, told):
    found, expected = both(seed, **told)
    same = [np.allclose(found, way, atol=1e-5) for way in expected]
    assert len(same) > 1
    assert any(same)
    assert not all(same)


LIMITS = {
    "penalties": {"l1": 1e-3, "l2": 0.01, "min_sum_hessian": 3e-3, "min_gain": 1e-5, "max_depth": 3},
    "drawn": {"colsample": 0.7, "colsample_node": 0.5, "extra_trees": True, "random_state": 3},
    "features": {"feature_weights": {0: 0.5, "f5": 2.0}, "interaction": [[0, 1, 2], [3, 4], [0, 4]]},
    "monotone": {"monotone": {0: 1, 3: -1, 4: 1}},
}
MONOTONE = [kind for kind in KINDS if kind not in ("mcrank", "sampled", "sequential", "adaptive", "newton")]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sampled"])
def test_threads_files_and_parts_change_nothing(kind, weighted):
    ranker, own = KINDS[kind]
    limits = {name: value for each in LIMITS.values() for name, value in each.items()}
    if kind not in MONOTONE:
        del limits["monotone"]
    if kind == "lad":
        del limits["l1"], limits["l2"]
    told = {"num_leaves": 6, "min_samples_leaf": 4, **own, **limits}
    data = noisy(300, weighted=weighted)
    found = {to_bytes(ranker(n_estimators=4, **told, n_jobs=n).fit(data)) for n in (1, 2, 4)}
    assert len(found) == 1
    first = ranker(n_estimators=2, **told).fit(data)
    assert {to_bytes(ranker(n_estimators=2, **told).fit(data, init_model=first))} == found
    content = found.pop()
    again = from_bytes(content)
    assert to_bytes(again) == content
    assert set(again.options_) >= set(limits)
    assert (again.forest_.feature >= 0).sum() > 4


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_rows_enough_to_share_a_tree(name):
    data = noisy(21_000)
    told = {"n_estimators": 2, "num_leaves": 8, **LIMITS[name]}
    found = {to_bytes(mcrank.RegressionRanker(**told, n_jobs=n).fit(data)) for n in (1, 2)}
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MONOTONE)
def test_no_prediction_moves_the_wrong_way(kind, seed):
    ranker, own = KINDS[kind]
    data = noisy(400, seed=seed, weighted=seed == 2)
    own = own | ({"dart": True, "drop_rate": 0.5, "skip_drop": 0.0} if seed == 1 else {})
    orders = {0: 1, 3: 1, 4: -1}
    found = ranker(n_estimators=25, num_leaves=12, min_samples_leaf=3, monotone=orders, n_jobs=2, **own).fit(
        data
    )
    rows = np.random.default_rng(seed).choice(data.X, 40)
    moved = 0
    for feature, order in orders.items():
        grid = np.unique(np.r_[np.nan_to_num(data.X[:, feature]), -1e30, 1e30]).astype(np.float32)[::4]
        for row in rows:
            line = np.repeat(row[None, :], len(grid), axis=0)
            line[:, feature] = grid
            steps = order * np.diff(found.predict(line))
            assert (steps >= 0).all()
            moved += (steps > 0).any()
    assert moved > 10  # it learned something all the same


def test_expected_relevance_of_two_grades_keeps_to_an_order():
    data = noisy(300)
    two = mcrank.Dataset(data.X, (data.y > 2).astype(int), np.repeat(data.qids, data.sizes))
    found = mcrank.McRank(n_estimators=10, monotone={0: 1}, n_jobs=1).fit(two)
    line = np.repeat(data.X[:1], 50, axis=0)
    line[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(found.predict(line)) >= 0).all()


def test_nodes_are_no_deeper_and_leaves_no_lighter():
    data = noisy(400)
    for depth in (1, 2, 4):
        forest = mcrank.McRank(n_estimators=2, num_leaves=30, max_depth=depth, n_jobs=1).fit(data).forest_
        for t in range(forest.n_trees):
            nodes = slice(*forest.tree_offsets[t : t + 2])
            deep = np.zeros(nodes.stop - nodes.start, dtype=int)
            for i, (left, right) in enumerate(zip(forest.left[nodes], forest.right[nodes], strict=True)):
                if left >= 0:
                    deep[[left, right]] = deep[i] + 1
            assert deep.max() == depth


def test_features_apart_never_meet_on_a_path():
    data = noisy(400)
    groups = [[0, 3], [4, 5, 6]]
    forest = mcrank.OrdinalMcRank(
        n_estimators=4, num_leaves=20, min_samples_leaf=3, interaction=groups, n_jobs=1
    ).fit(data).forest_  # fmt: skip
    allowed = [set(group) for group in groups] + [{f} for f in range(11) if f not in (0, 3, 4, 5, 6)]
    seen = set()
    for t in range(forest.n_trees):
        start = int(forest.tree_offsets[t])
        paths = {0: frozenset()}
        for i in range(int(forest.tree_offsets[t + 1]) - start):
            if forest.feature[start + i] >= 0:
                path = paths[i] | {int(forest.feature[start + i])}
                paths[int(forest.left[start + i])] = paths[int(forest.right[start + i])] = path
                assert any(path <= group for group in allowed)
                seen.add(path)
    assert any(len(path) > 1 for path in seen)


def test_a_feature_without_weight_never_splits():
    data = noisy(300)
    found = mcrank.LambdaMART(n_estimators=5, feature_weights={0: 0, "f4": 0}, n_jobs=1).fit(data)
    assert found.feature_importances_[[0, 3]].tolist() == [0.0, 0.0]
