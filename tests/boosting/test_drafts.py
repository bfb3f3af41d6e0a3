"""Leaves that threads divide before their turn: the tree must not show it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.boosting.drafts import Drafts
from mcrank.boosting.grow import grow
from mcrank.boosting.tickets import new_board
from mcrank.boosting.workspace import Scratch, Workspace
from tests.boosting.growing import CASES, random_plot, rows_of
from tests.boosting.test_grow import check_nodes, same_trees
from tests.reference import grow as naive


def led_alone(p, num_leaves, min_rows, threads=4, derived=False):
    """A tree by a leader who expects helpers and gets none: it drafts, and nothing is left to chance."""
    rules = p.rules(num_leaves, min_rows, derived)
    ws = Workspace.allocate(p.arrays, p.rows, rules, threads)
    scratch = Scratch.allocate(p.arrays, rules.packing)
    n = grow(p.arrays, rules, p.input(threads=threads), ws, scratch, new_board(), threads)
    return ws.nodes[:n], ws


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(16, 40), st.integers(1, 3), st.booleans())
def test_drafted_trees_equal_the_naive_best_first_tree(case, num_leaves, min_rows, derived):
    p = random_plot(*case)
    nodes, ws = led_alone(p, num_leaves, min_rows, derived=derived)
    q, lane = p.derived() if derived else (p.q, None)
    check_nodes(nodes, naive.grow(naive.features_of(p.binned), q, num_leaves, min_rows, lane=lane), ws)


@pytest.mark.parametrize(("rows", "num_leaves"), [(4000, 64), (70_000, 120)])
def test_drafts_are_made_and_those_without_a_turn_undone(rows, num_leaves):
    """Of 70,000 rows those of a leaf are listed when it is drafted."""
    p = random_plot(6, rows, 5, values=90, missing=0.05)
    nodes, ws = led_alone(p, num_leaves, 2)
    one, _, _ = p.grow(num_leaves, 2)
    assert len(nodes) == len(one) == 2 * num_leaves - 1
    for name in ("left", "right", "total", "count", "gain"):
        assert np.array_equal(nodes[name], one[name]), name
    drafted = ws.drafts.sides["depth"][:, 0] > 0
    undone = np.flatnonzero(ws.drafts.state)
    assert drafted.sum() > num_leaves // 2
    assert 0 < len(undone) <= ws.drafts.slots
    for leaf in undone:
        found = rows_of(ws, leaf)
        assert len(found) == nodes["count"][leaf]
        assert (np.diff(found) > 0).all()
    leaves = np.flatnonzero(nodes["left"] < 0)
    assert np.array_equal(np.sort(np.concatenate([rows_of(ws, leaf) for leaf in leaves])), np.arange(rows))


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_that_draft_grow_the_same_tree(n_jobs):
    plain = random_plot(8, 30_000, 9, values=90, missing=0.05)
    same_trees(plain, 100, 3, n_jobs=n_jobs)
    same_trees(plain, 100, 3, derived=True, n_jobs=n_jobs)
    same_trees(plain, 70, 3, rows=np.arange(0, 30_000, 3), features=np.arange(1, 9, 2), n_jobs=n_jobs)
    same_trees(random_plot(9, 70_000, 9, values=90, lane=True), 100, 3, n_jobs=n_jobs)


def test_few_leaves_or_one_thread_draft_nothing():
    assert Drafts.allocate(255, 1).slots == 0
    assert Drafts.allocate(15, 8).slots == 0
    assert Drafts.allocate(255, 2).slots == 16
