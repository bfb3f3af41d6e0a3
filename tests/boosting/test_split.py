"""The best split of a node against trying every cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.boosting.growing import CASES, plot, random_plot
from tests.reference.grow import features_of
from tests.reference.split import best_split, exact_gain, sides


def check_root(p, min_rows, *, derived=False):
    """Compare the root's split with the naive one; return it."""
    q, lane = p.derived() if derived else (p.q, p.lane if len(p.lane) else None)
    nodes, _, _ = p.grow(2, min_rows, derived=derived)
    root = nodes[0]
    features = features_of(p.binned)
    wanted = best_split(features, list(range(p.rows)), q, min_rows, lane) if p.rows >= 2 * min_rows else None
    if wanted is None:
        assert len(nodes) == 1
        assert root["gain"] == 0
        return None
    assert (root["feature"], root["bin"]) == (wanted.feature, wanted.bin)
    assert bool(root["missing_left"]) == wanted.missing_left
    assert root["gain"] == wanted.gain
    left, right = sides(features[wanted.feature], range(p.rows), int(root["bin"]), wanted.missing_left)
    assert (left, right) == (wanted.left, wanted.right)
    assert nodes["count"][1] == root["left_count"] == len(left)
    assert root["left_total"] == sum(int(q[r]) for r in left)
    if lane is not None:
        assert root["left_weight"] == sum(int(lane[r]) for r in left)
    # The float gain is the true one, but for rounding.
    total = exact_gain(left, right, q, lane)
    size = abs(float(total)) + float(sum(int(v) for v in q)) ** 2 / (p.rows if lane is None else sum(lane))
    assert abs(float(root["gain"] - total)) <= 1e-12 * size
    return wanted


@settings(max_examples=150, deadline=None)
@given(CASES, st.integers(1, 8), st.sampled_from([None, 1, 3]))
def test_split_equals_trying_every_cut(case, min_rows, grain):
    check_root(random_plot(*case, grain=grain), min_rows)


@settings(max_examples=80, deadline=None)
@given(CASES, st.integers(1, 4))
def test_split_with_a_second_lane(case, min_rows):
    check_root(random_plot(*case, lane=True), min_rows)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(1, 4))
def test_split_by_the_newton_gain(case, min_rows):
    check_root(random_plot(*case), min_rows, derived=True)


@settings(max_examples=30, deadline=None)
@given(CASES, st.integers(1, 4))
def test_split_on_wide_bins(case, min_rows):
    p = random_plot(*case)
    stream = np.random.default_rng(case[0])
    # One feature of 300 distinct values makes all of them wide.
    many = np.resize(p.X, (300, p.X.shape[1]))
    X = np.column_stack([many, stream.permutation(300)])
    wide = plot(X, np.resize(p.q, 300), max_bins=400)
    assert wide.binned.bins.wide
    check_root(wide, min_rows)


def test_ties_go_to_the_lowest_feature_then_the_lowest_bin():
    column = [0, 0, 1, 1, 2, 2]
    X = np.array([[5 - v, v, v] for v in column])
    # Cuts after the first and after the second value gain the same, on every feature.
    nodes, _, _ = plot(X, [9, 9, 0, 0, -9, -9]).grow(2)
    assert (nodes[0]["feature"], nodes[0]["bin"]) == (0, 0)


def test_no_split_where_nothing_differs():
    X = np.arange(40)[:, None] % 7
    for q in (np.full(40, 1 << 30), np.full(40, -12345), np.zeros(40)):
        nodes, _, _ = plot(X, q).grow(8)
        assert len(nodes) == 1


def test_an_empty_bin_puts_the_cut_in_the_middle_of_the_gap():
    # Values 0, 1, 2, 3, 9 have bins; in the left child of the first split only 0, 3 and 9 are left, and later
    # cuts between 0 and 3 have the empty bins 1 and 2 to move over.
    X = np.array([[0, 0], [0, 0], [0, 3], [0, 3], [0, 9], [1, 1], [1, 2], [1, 1], [1, 2]])
    q = [-100, -100, 40, 40, 41, 9000, 9000, 9000, 9000]
    p = plot(X, q)
    nodes, _, _ = p.grow(3)
    assert nodes[0]["feature"] == 0
    child = nodes[int(nodes[0]["left"])]
    # The middle of 0 and 3 is 1.5: the bin of value 1 goes left, that of value 2 right.
    assert (child["feature"], child["bin"]) == (1, 1)


def test_a_value_in_the_very_middle_of_the_gap_goes_left():
    # In the left child the bin of 1 is empty, and 1 is the middle of 0 and 2. Threshold and x <= threshold
    # would send it left, so the cut does.
    X = np.array([[0, 0], [0, 0], [0, 2], [0, 2], [1, 1], [1, 1], [1, 1], [1, 1]])
    nodes, _, _ = plot(X, [-100, -100, 40, 41, 9000, 9000, 9000, 9000]).grow(3)
    assert nodes[0]["feature"] == 0
    child = nodes[int(nodes[0]["left"])]
    assert (child["feature"], child["bin"]) == (1, 1)


def test_missing_values_can_part_from_all_others():
    X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]])
    wanted = check_root(plot(X, [5, 5, 5, -5, -5]), 1)
    assert wanted.right == [3, 4]


def test_missing_values_go_where_they_gain_most():
    X = np.array([[1.0], [1.0], [2.0], [2.0], [np.nan], [np.nan]])
    assert check_root(plot(X, [6, 6, -6, -6, 5, 5]), 1).missing_left
    assert not check_root(plot(X, [6, 6, -6, -6, -5, -5]), 1).missing_left


def test_missing_values_never_seen_follow_the_larger_side():
    X = np.array([[1.0]] * 2 + [[2.0]] * 3)
    nodes, _, _ = plot(X, [5, 5, -5, -5, -5]).grow(2)
    assert nodes[0]["missing_left"] == 0
    nodes, _, _ = plot(-X, [5, 5, -5, -5, -5]).grow(2)
    assert nodes[0]["missing_left"] == 1


def test_missing_values_never_seen_go_left_where_sides_are_equal():
    for sign in (1, -1):
        nodes, _, _ = plot(sign * np.array([[1.0], [1.0], [2.0], [2.0]]), [5, 5, -5, -5]).grow(2)
        assert nodes[0]["missing_left"] == 1


def test_rows_without_weight_do_not_make_a_side():
    X = np.array([[1.0], [1.0], [2.0], [2.0]])
    nodes, _, _ = plot(X, [5, 5, 0, 0], [7, 7, 0, 0]).grow(2)
    assert len(nodes) == 1
