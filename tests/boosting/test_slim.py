"""Slim histograms of small nodes: whatever is slim, the tree is the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.boosting import boost
from mcrank.boosting.grow import grow
from mcrank.boosting.tickets import new_board
from mcrank.boosting.workspace import Scratch, Workspace
from mcrank.rankers.registry import to_bytes
from tests.boosting.growing import CASES, random_plot
from tests.boosting.test_grow import check_nodes
from tests.reference import grow as naive


def grown(p, num_leaves, min_rows, slim, threads=1):
    """A tree whose nodes of at most ``slim`` rows have slim histograms, led by one of several threads."""
    rules = p.rules(num_leaves, min_rows, derived=not p.rounded)._replace(slim=slim)
    assert rules.packing.chunk >= slim
    ws = Workspace.allocate(p.arrays, p.rows, rules, threads)
    scratch = Scratch.allocate(p.arrays, rules.packing)
    n = grow(p.arrays, rules, p.input(threads=threads), ws, scratch, new_board(), threads)
    return ws.nodes[:n], ws


@settings(max_examples=150, deadline=None)
@given(
    CASES, st.integers(2, 40), st.integers(1, 3), st.integers(1, 70), st.sampled_from([1, 4]), st.booleans()
)
def test_trees_equal_the_naive_best_first_tree(case, num_leaves, min_rows, slim, threads, lane):
    """From all slim but the root to none: every way from two lanes to one."""
    p = replace(random_plot(*case, lane=lane), rounded=lane)
    nodes, ws = grown(p, num_leaves, min_rows, slim, threads)
    q, curvatures = p.derived()
    wanted = naive.grow(naive.features_of(p.binned), q, num_leaves, min_rows, lane=curvatures)
    check_nodes(nodes, wanted, ws)


@pytest.mark.parametrize("lane", [False, True])
@pytest.mark.parametrize("slim", [500, 7168])
def test_many_rows(slim, lane):
    p = replace(random_plot(8, 30_000, 11, values=90, missing=0.05, lane=lane), rounded=lane)
    wanted, _ = grown(p, 90, 5, 0)
    small = (wanted["count"] <= slim) & (wanted["depth"] > 0)
    assert 40 < small.sum() < len(wanted) - 5  # there are both kinds
    for threads in (1, 2, 4):
        nodes, _ = grown(p, 90, 5, slim, threads)
        for name in ("left", "right", "feature", "bin", "missing_left", "total", "weight", "count", "gain"):
            assert np.array_equal(nodes[name], wanted[name]), name


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (mcrank.LambdaMART, {}), (mcrank.LambdaMART, {"max_depth": 6, "l2": 2.0}),
        (mcrank.McRank, {"split": "newton"}), (mcrank.OrdinalMcRank, {"split": "newton", "colsample": 0.5}),
    ],
)  # fmt: skip
def test_models_are_the_same_bytes(kind, options, n_jobs, monkeypatch):
    stream = np.random.default_rng(5)
    X = np.round(stream.normal(size=(24_000, 130)), 1).astype(np.float32)
    X[stream.random(X.shape) < 0.05] = np.nan
    X[:, 3] = stream.integers(0, 12, len(X))
    grades = np.clip(np.rint(np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + X[:, 3] % 3), 0, 4)
    data = mcrank.Dataset(X, grades, np.arange(len(X)) // 40, categorical=[3])

    def trained():
        return to_bytes(kind(n_estimators=2, num_leaves=60, n_jobs=n_jobs, **options).fit(data))

    slim = trained()
    limits = []
    monkeypatch.setattr(boost, "slim_rows", lambda *about: limits.append(about) or 0)
    assert trained() == slim
    monkeypatch.undo()
    assert boost.slim_rows(*limits[0]) > 0
