"""Swap steps of every form of measure, against the formula of the ranking before and after."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from mcrank.metrics import swaps
from tests.reference import measures as reference

STEPS = {name: njit(getattr(swaps, name)) for name in dir(swaps) if name.endswith(("_row", "_start"))}
GRADES = st.lists(st.integers(0, 4), min_size=1, max_size=8)
DEPTHS = st.sampled_from([1, 2, 3, 10])


def check(ranked, formula, fill):
    """Fill the changes of each rank in turn and compare those below it."""
    change = np.full(len(ranked), np.nan)
    for i in range(len(ranked)):
        fill(i, change)
        wanted = [reference.swap_change(formula, ranked, None, i, j) for j in range(i + 1, len(ranked))]
        assert change[i + 1 :] == pytest.approx(wanted, abs=1e-12)


def weights(n, depth, of):
    """A weight for each of ``n`` ranks, 0 beyond ``depth``."""
    return np.array([of(r) if r < depth else 0.0 for r in range(n)])


@settings(max_examples=60, deadline=None)
@given(ranked=GRADES, depth=DEPTHS)
def test_discounted_sums(ranked, depth):
    gain = np.array([2.0**g - 1 for g in ranked])
    discount = weights(len(ranked), depth, lambda r: reference.discount(r + 1))
    check(
        ranked,
        lambda y, _: reference.dcg(y, depth),
        lambda i, change: STEPS["discounted_row"](i, gain, discount, change),
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ranked=GRADES, depth=DEPTHS)
def test_average_precision(ranked, depth):
    relevant = np.array([float(g > 0) for g in ranked])
    check(
        ranked,
        lambda y, _: reference.average_precision(y, depth) * relevant.sum(),
        lambda i, change: STEPS["average_precision_row"](i, relevant, depth, change),
    )


@settings(max_examples=60, deadline=None)
@given(ranked=GRADES, depth=DEPTHS)
def test_cascades(ranked, depth):
    satisfied = np.array([(2.0**g - 1) / 16 for g in ranked])
    weight = weights(len(ranked), depth, lambda r: 1 / (r + 1))
    check(
        ranked,
        lambda y, _: reference.err(y, depth),
        lambda i, change: STEPS["cascade_row"](i, satisfied, weight, change),
    )


@settings(max_examples=60, deadline=None)
@given(ranked=GRADES, depth=DEPTHS)
def test_best_grades(ranked, depth):
    grade = np.array(ranked, dtype=np.float64)
    check(
        ranked,
        lambda y, _: reference.best(y, depth),
        lambda i, change: STEPS["best_grade_row"](i, grade, depth, change),
    )


@settings(max_examples=60, deadline=None)
@given(ranked=GRADES)
def test_kendall(ranked):
    n = len(ranked)
    places = np.searchsorted(np.unique(ranked), ranked).astype(np.float64)
    tree, theirs = np.empty(n), np.empty(n)
    STEPS["kendall_start"](places, tree, theirs)
    falling = list(range(n, 0, -1))
    untied = sum(a != b for i, a in enumerate(ranked) for b in ranked[:i])
    scale = np.sqrt(n * (n - 1) / 2 * untied)
    check(
        ranked,
        lambda y, _: reference.kendall(falling, y) * scale,
        lambda i, change: STEPS["kendall_row"](i, places, theirs, change),
    )
