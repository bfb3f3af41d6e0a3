"""Sums that do not depend on the order of their terms, against the standard library's exact ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcrank.sums import as_integers, exact_mean, exact_sum, exact_sums_by

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False, width=64)


@given(st.lists(NUMBERS, max_size=60), st.integers(0, 2**32))
def test_the_order_does_not_matter_and_the_sum_is_right(values, seed):
    array = np.array(values, dtype=np.float64)
    total = exact_sum(array)
    assert exact_sum(np.random.default_rng(seed).permutation(array)) == total
    # Terms keep 2 (62 - 6) bits below the largest of them.
    assert total == pytest.approx(math.fsum(values), rel=1e-15, abs=60 * 1e6 * 2.0**-111)


@given(st.lists(NUMBERS, max_size=20), st.floats(1e-9, 1e-3), st.integers(0, 2**32))
def test_what_is_left_when_large_terms_cancel(values, small, seed):
    array = np.random.default_rng(seed).permutation(np.array([*values, small, *(-v for v in values)]))
    assert exact_sum(array) == pytest.approx(small, rel=1e-12)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=50))
def test_integers_are_summed_exactly(values):
    assert exact_sum(np.array(values, dtype=np.float64)) == sum(values)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1.0, 1e300])
def test_tiny_and_huge_terms(scale):
    values = np.array([3.0, 1.0, 2.0]) * scale
    assert exact_sum(values) == pytest.approx(math.fsum(values), rel=1e-15)
    assert exact_sum(values) == exact_sum(values[::-1])


def test_a_sum_beyond_all_floats_is_infinite_and_nan_stays():
    assert exact_sum(np.full(4, 1.7e308)) == math.inf
    assert math.isnan(exact_sum(np.array([1.0, math.nan])))
    assert exact_sum(np.empty(0)) == 0.0


@given(st.lists(st.tuples(NUMBERS, st.floats(0.1, 10)), min_size=1, max_size=30))
def test_means(pairs):
    values, weight = np.array(pairs).T.copy()
    assert exact_mean(values) == pytest.approx(np.mean(values), rel=1e-9, abs=1e-9)
    assert exact_mean(values, weight) == pytest.approx(np.average(values, weights=weight), rel=1e-9, abs=1e-8)


def test_sums_by_class():
    classes, weight = np.array([2, 0, 2, 2]), np.array([1.0, 5.0, 2.0, 4.0])
    assert exact_sums_by(classes, 4, weight).tolist() == [5.0, 0.0, 7.0, 0.0]
    assert exact_sums_by(classes, 4, None).tolist() == [1.0, 0.0, 3.0, 0.0]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40).filter(any))
def test_whole_weights_stay_whole(weights):
    found = as_integers(np.array(weights, dtype=np.float64))
    assert int(found.sum()) < 2**63
    assert [int(a) * max(weights) for a in found] == [int(found.max()) * w for w in weights]
