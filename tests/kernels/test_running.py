"""Running sums on vectors against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit, uint64

from mcrank.kernels.running import SCANNED, scan_block, scan_pairs


@njit
def scan(values, at, sums, to, before):
    return scan_block(values, uint64(at), sums, uint64(to), before)


@njit
def scan_both(values, at, sums, others, to, before):
    return scan_pairs(values, uint64(at), (sums, others), uint64(to), before)


@given(st.integers(0, 2**32), st.integers(0, 9), st.integers(0, 9))
def test_running_sums_begin_anywhere_and_wrap_as_integers_do(seed, at, to):
    stream = np.random.default_rng(seed)
    values = stream.integers(-(2**62), 2**62, 40)
    before, second = stream.integers(-(2**62), 2**62, 2)
    sums, others = np.zeros((2, 20), dtype=np.int64)
    last = scan(values, at, sums, to, before)
    wanted = before + np.cumsum(values[at : at + SCANNED])
    assert last == wanted[-1]
    assert np.array_equal(sums[to : to + SCANNED], wanted)
    assert not sums[:to].any()
    assert not sums[to + SCANNED :].any()

    sums[:] = 0
    found = scan_both(values, at, sums, others, to, (before, second))
    both = values[at : at + 2 * SCANNED].reshape(SCANNED, 2)
    for side, (out, start) in enumerate([(sums, before), (others, second)]):
        wanted = start + np.cumsum(both[:, side])
        assert np.array_equal(out[to : to + SCANNED], wanted)
        assert found[side] == wanted[-1]
        assert not out[:to].any()
        assert not out[to + SCANNED :].any()


@pytest.mark.parametrize("n", [0, 7, 8, 9, 254, 255, 256])
@pytest.mark.parametrize(("rows", "derived"), [(1000, False), (1000, True), (600_000, False)])
def test_prefix_sums_of_any_number_of_bins_in_every_layout(n, rows, derived):
    """One lane, two, and sums apart from counts; the last of these goes bin by bin."""
    from mcrank.boosting.packing import Packing
    from mcrank.boosting.split import prefix

    packing = Packing.of(rows, derived=derived)
    hist = np.random.default_rng(n).integers(0, 2**40, 300 * packing.lanes)
    sums = np.zeros((3, 256), dtype=np.int64)
    some = njit(lambda *given: prefix(*given))
    some(hist, 3, 3 + n, packing, (np.int64(5), np.int64(7), np.int64(2)), sums)
    lanes = hist[3 * packing.lanes : (3 + n) * packing.lanes].reshape(n, packing.lanes)
    first = (5 << packing.count_bits) + (2 if packing.count_bits else 0)
    assert np.array_equal(sums[0, :n], first + np.cumsum(lanes[:, 0]))
    if packing.second:
        assert np.array_equal(sums[1, :n], 7 + np.cumsum(lanes[:, 1]))
    if packing.count_bits == 0:
        assert np.array_equal(sums[2, :n], 2 + np.cumsum(lanes[:, -1]))
    assert not sums[:, n:].any()
