"""Numbers looked up in registers, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, uint64

from mcrank.kernels import planes

add = planes.add_numbers(3, 70)


@njit
def added(table, first, places, at, sums, to):
    add(table, uint64(first), places, uint64(at), sums, uint64(to))


@pytest.mark.skipif(not planes.looks_up_fast(), reason="the processor has no instruction for it")
def test_numbers_are_added_in_turn_to_the_last_bit():
    stream = np.random.default_rng(1)
    numbers = stream.standard_normal((4, 64)) * 10.0 ** stream.integers(-300, 300, (4, 64))
    numbers[0, :4] = [0.0, -0.0, np.inf, 5e-324]
    places = stream.integers(0, 64, 300).astype(np.uint8)
    sums = stream.standard_normal(100)
    expected = sums.copy()
    for k in range(3):
        expected[5:69] += numbers[1 + k, places[7 + 70 * k : 71 + 70 * k]]
    added(planes.planes_of(numbers), planes.PLANES, places, 7, sums, 5)
    assert sums.tobytes() == expected.tobytes()


def test_planes_hold_the_bytes_of_their_numbers():
    numbers = np.random.default_rng(2).standard_normal((3, 64))
    bytes_ = planes.planes_of(numbers).reshape(3, 8, 64).swapaxes(1, 2)
    assert np.ascontiguousarray(bytes_).view("<f8").reshape(3, 64).tolist() == numbers.tolist()
    assert planes.planes_of(numbers[:0]).shape == (0,)


def test_without_the_instruction_nothing_is_emitted(monkeypatch):
    monkeypatch.setattr(planes, "_has_lookup", lambda context: False)
    assert not planes.looks_up_fast()
    nothing = planes.add_numbers(3, 70)

    @njit
    def run(table, places, sums):
        nothing(table, uint64(0), places, uint64(0), sums, uint64(0))

    sums = np.ones(64)
    run(np.zeros(planes.PLANES, dtype=np.uint8), np.zeros(300, dtype=np.uint8), sums)
    assert (sums == 1).all()
