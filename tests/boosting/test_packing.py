"""What rows add to counters, against the naive twin, and whether sums fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcrank.boosting.packing import Packing, fill_packs, round_entries, spread
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS
from tests.reference import packing as naive

NONE = np.empty(0, dtype=np.int64)
ROWS = [1, 2, 3, 10, 100, 1000, 5000, 10**4, 10**5, 5 * 10**5, 10**7, 2 * 10**8]


def entries_of(q):
    rows = np.arange(len(q), dtype=np.int64)[::-1]
    return (rows << 32) | (np.asarray(q, dtype=np.int64) & 0xFFFFFFFF)


# The gradient that balances a row may round to a little more than 1.
GRADIENTS = st.floats(-1, 1) | st.sampled_from([-1.0002, 1.0002])


@given(st.sampled_from(ROWS), st.lists(GRADIENTS, min_size=1, max_size=20), st.booleans())
def test_derived_packs_equal_the_twin(rows, gradients, wide):
    packing = Packing.of(rows, derived=True, wide=wide)
    bits = GRADIENT_BITS
    q = np.rint(np.array(gradients) * (1 << bits)).astype(np.int64)
    r, h = naive.narrow(q, bits, packing.bits)
    packs = np.zeros(packing.pack_lanes * len(q), dtype=np.int64)
    fill_packs(entries_of(q), 0, len(q), packing, NONE, packs)
    if wide:
        lanes = packs.reshape(-1, packing.lanes)
    else:
        lanes = np.full((len(q), packing.lanes), 77, dtype=np.int64)
        spread(packs.copy(), packing, False, lanes.reshape(-1))
        twice = lanes.copy()
        spread(packs, packing, True, twice.reshape(-1))
        assert np.array_equal(twice, 2 * lanes)
        assert not packs.any()
    assert np.array_equal(lanes[:, 0], (r << packing.count_bits) + (packing.count_bits > 0))
    assert np.array_equal(lanes[:, 1], h)
    assert (lanes[:, 2:] == 1).all()


def test_plain_and_given_packs():
    q = np.array([5, -7, 0])
    weights = np.array([30, 20, 10])
    packs = np.zeros(6, dtype=np.int64)
    fill_packs(entries_of(q), 1, 3, Packing.of(3), NONE, packs)
    assert packs.tolist() == [(-7 << 19) + 1, 1, 0, 0, 0, 0]
    fill_packs(entries_of(q), 0, 3, Packing.of(3, given=True), weights, packs)
    # Rows run backwards, so the first entry has the last weight.
    assert packs.tolist() == [(5 << 19) + 1, 10, (-7 << 19) + 1, 20, 1, 30]


@pytest.mark.parametrize("given", [False, True])
def test_many_rows_are_counted_in_chunks_and_spread(given):
    packing = Packing.of(10**7, given=given)
    q, weights = np.array([5, -7, 0]), np.array([30, 20, 10])
    packs = np.zeros(packing.pack_lanes * 3, dtype=np.int64)
    fill_packs(entries_of(q), 0, 3, packing, weights if given else NONE, packs)
    lanes = np.full((3, packing.lanes), 77, dtype=np.int64)
    spread(packs.copy(), packing, False, lanes.reshape(-1))
    assert lanes.tolist() == [[a, b, 1] if given else [a, 1] for a, b in zip(q, weights[::-1], strict=True)]
    twice = lanes.copy()
    spread(packs, packing, True, twice.reshape(-1))
    assert np.array_equal(twice, 2 * lanes)
    assert not packs.any()


@pytest.mark.parametrize("rows", ROWS)
def test_a_chunk_of_the_largest_triples_fits(rows):
    packing = Packing.of(rows, derived=True)
    n = min(packing.chunk, rows)
    assert n >= min(rows, 7000)
    one = 1 << GRADIENT_BITS
    slack = min(50, one >> 3)  # classes that balance the rounding of others
    for q in (one + slack, -one - slack, one >> 1, 1, 0):
        pack = np.zeros(1, dtype=np.int64)
        fill_packs(entries_of([q]), 0, 1, packing, NONE, pack)
        total = n * int(pack[0])
        assert abs(total) < 1 << 63
        lanes = np.zeros(packing.lanes, dtype=np.int64)
        spread(np.array([total]), packing, False, lanes)
        (r,), (h,) = naive.narrow([q], GRADIENT_BITS, packing.bits)
        shared = n if packing.count_bits else 0
        assert lanes.tolist() == [(n * int(r) << packing.count_bits) + shared, n * int(h), n][: packing.lanes]


def test_gains_are_in_the_loss_s_own_scale():
    packing = Packing.of(10**5, derived=True)
    # Gradient 1/2 and curvature 1/4 of 8 rows: S²/H = 16/2.
    (r,), (h,) = naive.narrow([1 << (GRADIENT_BITS - 1)], GRADIENT_BITS, packing.bits)
    assert (8 * r) ** 2 / (8 * h) * packing.gain_unit(0.123, 0.456) == 8.0
    assert Packing.of(9).gain_unit(0.5, 7.0) == 0.25
    assert Packing.of(9, given=True).gain_unit(0.5, 0.125) == 2.0


@given(st.lists(st.tuples(GRADIENTS, st.floats(0, 1)), min_size=1, max_size=20), st.sampled_from(ROWS))
def test_rounded_triples_equal_the_twin(pairs, rows):
    packing = Packing.of(rows, given=True, rounded=True)
    q = np.rint(np.array([g for g, _ in pairs]) * (1 << GRADIENT_BITS)).astype(np.int64)
    lane = np.rint(np.array([h for _, h in pairs]) * (1 << LANE_BITS)).astype(np.int64)
    entries = entries_of(q)
    round_entries(entries, 0, len(q), packing, lane[::-1].copy())  # rows run backwards
    assert np.array_equal(entries >> 32, np.arange(len(q))[::-1])
    packs = np.zeros(len(q), dtype=np.int64)
    fill_packs(entries, 0, len(q), packing, NONE, packs)
    lanes = np.zeros((len(q), packing.lanes), dtype=np.int64)
    spread(packs, packing, False, lanes.reshape(-1))
    r, h = naive.rounded(q, lane, packing.drop, packing.lane_drop)
    assert np.array_equal(lanes[:, 0], (r << packing.count_bits) + (packing.count_bits > 0))
    assert np.array_equal(lanes[:, 1], h)
    assert h.max() <= 1 << 11  # as much as a triple has room for, 7,168 times


def test_sums_of_rounded_gradients_and_curvatures_come_out_right():
    stream = np.random.default_rng(0)
    n = 200_000
    packing = Packing.of(n, given=True, rounded=True)
    q, lane = stream.integers(-3000, 3001, n), stream.integers(0, 1 << 16, n)  # most would round to 0
    entries = entries_of(q)
    round_entries(entries, 0, n, packing, lane[::-1].copy())
    low = entries.astype(np.int32).astype(np.int64)
    for found, exact, drop in ((low >> 12, q, packing.drop), (low & 4095, lane, packing.lane_drop)):
        error = found.sum() * (1 << drop) - exact.sum()
        assert abs(error) < 4 * np.sqrt(n) * (1 << drop) / 2  # four standard deviations at most


def test_a_rounded_gain_is_in_the_loss_s_own_scale():
    packing = Packing.of(10**5, given=True, rounded=True)
    # Gradient 1/2 and curvature 1/4 of 8 rows, both whole numbers of the rounded units: S²/H = 16/2.
    q, lane = 1 << (GRADIENT_BITS - 1), 1 << (LANE_BITS - 2)
    (r,), (h,) = naive.rounded([q], [lane], packing.drop, packing.lane_drop)
    assert (8 * r) ** 2 / (8 * h) * packing.gain_unit(2.0**-GRADIENT_BITS, 2.0**-LANE_BITS) == 8.0
