"""Vector leaves (`multi_output="tree"`): one structure a round for all outputs."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.errors import OptionError
from tests.reference import together as naive

SMALL = {
    "n_estimators": 4, "num_leaves": 5, "min_samples_leaf": 3, "learning_rate": 0.3, "n_jobs": 1,
    "split": "mse", "init": "zero", "binning": "adaptive",
}  # fmt: skip


def few_values(seed=0, rows=150, features=4, grades=4):
    stream = np.random.default_rng(seed)
    X = stream.integers(0, 7, (rows, features)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] / 5 + 2 * stream.normal(size=rows), [3, 6, 9][: grades - 1])
    y[:grades] = range(grades)
    return X, y, np.arange(rows) // 10


def vector(kind=mcrank.McRank, **options):
    return kind(multi_output="tree", **SMALL | options)


def structure(forest, t):
    nodes = slice(forest.tree_offsets[t], forest.tree_offsets[t + 1])
    return [getattr(forest, name)[nodes].tolist() for name in ("feature", "threshold", "left", "right")]


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("seed", range(3))
def test_the_naive_twin_boosts_the_same_scores(split, seed):
    X, y, qid = few_values(seed)
    ranker = vector(split=split, init="zero").fit(X, y, qid=qid)
    wanted, _ = naive.boost(X, y, 4, 5, 3, 0.3, split == "newton")
    assert np.allclose(ranker.forest_.raw(X).T, wanted, atol=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_xgboost_grows_the_same_vector_trees(seed):
    xgboost = pytest.importorskip("xgboost")
    X, y, qid = few_values(seed, rows=400)
    options = {"l2": 1.0, "min_samples_leaf": 1, "max_depth": 3, "num_leaves": 8, "init": "zero"}
    ranker = vector(split="newton", **options).fit(X, y, qid=qid)
    told = {
        "objective": "multi:softprob", "num_class": 4, "multi_strategy": "multi_output_tree", "max_depth": 3,
        "tree_method": "hist", "lambda": 2.0, "min_child_weight": 0, "eta": 2 * 0.75 * 0.3, "base_score": 0.0,
        "nthread": 1,
    }  # fmt: skip
    rows = xgboost.DMatrix(X, y)
    peer = xgboost.train(told, rows, 4).predict(rows, output_margin=True)
    ours = ranker.forest_.raw(X).T
    # Scores of a softmax are the same but for a constant.
    assert np.allclose(
        ours - ours.mean(axis=1, keepdims=True), peer - peer.mean(axis=1, keepdims=True), atol=2e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.OrdinalMcRank])
@pytest.mark.parametrize(
    "options",
    [{}, {"split": "newton"}, {"subsample": 0.6}, {"goss": True, "learning_rate": 1.0}, {"dart": True},
     {"l1": 0.1, "l2": 1.0, "min_gain": 0.01}, {"colsample": 0.5, "colsample_node": 0.7},
     {"extra_trees": True}, {"max_bins": 2000}, {"num_leaves": 300, "min_samples_leaf": 1},
     {"feature_weights": {0: 0.5}}],
    ids=str,
)  # fmt: skip
def test_trees_of_a_round_share_their_splits_on_any_number_of_threads(kind, options, tmp_path):
    stream = np.random.default_rng(1)
    X = stream.normal(size=(700, 5)).astype(np.float32)
    X[stream.random(X.shape) < 0.1] = np.nan
    y = np.digitize(np.nansum(X[:, :3], axis=1), [-1, 0, 1.5])
    files = []
    for n_jobs in (1, 2, 4):
        ranker = vector(kind, **options | {"n_jobs": n_jobs}).fit(X, y, qid=np.arange(700) // 7)
        ranker.save(tmp_path / f"{n_jobs}")
        files.append((tmp_path / f"{n_jobs}").read_bytes())
    assert files[0] == files[1] == files[2]
    forest = ranker.forest_
    outputs = len(forest.base)
    assert forest.n_trees == 4 * outputs
    for first in range(0, forest.n_trees, outputs):
        shapes = [structure(forest, first + k) for k in range(outputs)]
        assert all(shape == shapes[0] for shape in shapes)
        assert len(shapes[0][0]) > 1
    again = mcrank.load(tmp_path / "1")
    assert np.array_equal(again.predict(X), ranker.predict(X))
    assert again.multi_output == "tree"


@pytest.mark.slow  # compiles counting that is otherwise a cluster's
def test_weighted_rows_count_as_often():
    X, y, qid = few_values(2)
    twice = np.repeat(np.arange(150), np.where(np.arange(150) % 3 == 0, 2, 1))
    weight = np.where(np.arange(150) % 3 == 0, 2.0, 1.0)
    once = vector(min_samples_leaf=1).fit(X, y, qid=qid, weight=weight)
    often = vector(min_samples_leaf=1).fit(X[twice], y[twice], qid=qid[twice])
    assert np.allclose(once.forest_.raw(X), often.forest_.raw(X), atol=1e-5)


def test_two_grades_have_one_output_anyway():
    X, y, qid = few_values(grades=2)
    one, other = vector().fit(X, y, qid=qid), mcrank.McRank(**SMALL).fit(X, y, qid=qid)
    assert np.array_equal(one.predict(X), other.predict(X))


def test_going_on_is_one_longer_fit():
    X, y, qid = few_values(4)
    first = vector(n_estimators=2).fit(X, y, qid=qid)
    both = vector(n_estimators=2).fit(X, y, qid=qid, init_model=first)
    assert np.array_equal(both.predict(X), vector().fit(X, y, qid=qid).predict(X))
    grown = vector(n_estimators=2, warm_start=True).fit(X, y, qid=qid)
    grown.n_estimators = 4
    assert np.array_equal(grown.fit(X, y, qid=qid).predict(X), both.predict(X))


def test_gains_of_the_copies_add_up_to_the_splits():
    X, y, qid = few_values(5)
    forest = vector(n_estimators=1, num_leaves=2).fit(X, y, qid=qid).forest_
    g = np.eye(4)[y] - 0.25
    _, left, right = naive.best_split(X, np.arange(150), g, np.ones_like(g), 3)
    assert forest.gain.sum() == pytest.approx(naive.gain(left, right, g, np.ones_like(g)), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"sequential": True}, "multi_output of McRank must be 'output' with sequential"),
     ({"base_class": "adaptive"}, "multi_output of McRank must be 'output'"),
     ({"monotone": {0: 1}}, "monotone of McRank is for trees of single outputs"),
     ({"min_sum_hessian": 1.0}, "min_sum_hessian of McRank is for trees of single outputs"),
     ({"multi_output": "vector"}, "multi_output")],
    ids=str,
)  # fmt: skip
def test_what_does_not_go_together_is_refused(options, words):
    X, y, qid = few_values()
    with pytest.raises(OptionError, match=words):
        mcrank.McRank(**SMALL | {"multi_output": "tree"} | options).fit(X, y, qid=qid)


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_rows_with_numbers_grow_the_same_trees_as_lists(split, monkeypatch):
    X, y, qid = few_values(6, rows=300)
    told = {"split": split, "num_leaves": 30, "min_samples_leaf": 1, "subsample": 0.8}
    listed = vector(**told).fit(X, y, qid=qid)
    monkeypatch.setattr("mcrank.boosting.rows.NUMBERED_ROWS", 0)
    numbered = vector(**told).fit(X, y, qid=qid)
    assert np.array_equal(listed.forest_.value, numbered.forest_.value)
    assert np.array_equal(listed.forest_.feature, numbered.forest_.feature)
