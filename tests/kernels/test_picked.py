"""Entries picked by the bits of a mask against a loop over the bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit, uint64

from mcrank.kernels.picked import pick_entries, picks_fast


@njit
def fast():
    return picks_fast()


@njit
def pick(found, first, low, out, to):
    return pick_entries(uint64(found), uint64(first), low, out, uint64(to))


masks = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 63).map(lambda i: 1 << i), st.just(2**64 - 1))


@given(masks, st.integers(0, 30), st.integers(0, 5), st.integers(0, 2**32))
def test_rows_of_a_mask_in_order(found, first, to, seed):
    low = np.random.default_rng(seed).integers(-(2**31), 2**31, 100).astype(np.int32)
    out = np.full(to + 64, -7)
    rows = [first + i for i in range(64) if found >> i & 1]
    end = pick(np.uint64(found), first, low, out, to)
    if not fast():
        assert end == to
        return
    assert end == to + len(rows)
    assert (out[:to] == -7).all()
    assert (out[to:end] >> 32).tolist() == rows
    assert np.array_equal(out[to:end].astype(np.int32), low[rows])
    assert (out[end + 8 :] == -7).all()  # no more than eight are written over
