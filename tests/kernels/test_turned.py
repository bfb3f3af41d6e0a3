"""Squares turned in registers against NumPy's transposition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit, uint64

from mcrank.kernels.turned import turn

_APART = 11
_turns = {width: turn(width, _APART) for width in (2, 4, 8)}
_turn2, _turn4, _turn8 = _turns.values()


@njit
def turn_two(values, p, out, to):
    _turn2(values, (p[0], p[1]), out, uint64(to))


@njit
def turn_four(values, p, out, to):
    _turn4(values, (p[0], p[1], p[2], p[3]), out, uint64(to))


@njit
def turn_eight(values, p, out, to):
    _turn8(values, (p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]), out, uint64(to))


@pytest.mark.parametrize(("width", "turned"), [(2, turn_two), (4, turn_four), (8, turn_eight)])
@given(seed=st.integers(0, 2**32), to=st.integers(0, 9))
def test_rows_from_anywhere_become_columns(width, turned, seed, to):
    stream = np.random.default_rng(seed)
    values = stream.integers(-(2**63), 2**63, 40)
    places = stream.integers(0, 40 - width + 1, width).astype(np.uint64)  # may overlap, and be odd
    out = np.zeros(to + _APART * width, dtype=np.int64)
    turned(values, places, out, to)
    wanted = np.zeros_like(out)
    for i, place in enumerate(places.astype(int)):
        for k in range(width):
            wanted[to + k * _APART + i] = values[place + k]
    assert np.array_equal(out, wanted)
