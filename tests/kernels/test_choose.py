"""Choices by the comparison of bytes, on their own, against NumPy: in both forms they are compiled to."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, uint64

from mcrank.kernels import choose

DEPTH, STEP = 3, 140


def four_times(byte):
    return np.uint32((byte & 255) * 0x01010101)


def compiled(lanes):
    """The three steps for so many lanes."""
    select, four = choose.select_below(lanes), choose.one_of_four(lanes)
    leaf = choose.leaf_of_tree(lanes, DEPTH, STEP)

    @njit
    def run_select(slots, keys, left, right, column, number, out):
        select(slots, keys, uint64(left), uint64(right), uint64(column), number, uint64(out))

    @njit
    def run_four(slots, keys, columns, numbers, out):
        four(slots, keys, columns, numbers, uint64(4), uint64(out))

    @njit
    def run_leaf(slots, keys, columns, numbers, at, out):
        leaf(slots, keys, columns, numbers, uint64(at), uint64(out))

    return run_select, run_four, run_leaf


@pytest.fixture(params=["as this processor does", "as any processor does"])
def form(request, monkeypatch):
    if request.param == "as any processor does":
        monkeypatch.setattr(choose, "has_features", lambda context, *names: False)


@pytest.mark.parametrize("lanes", [16, 64, 128])
def test_steps(lanes, form):
    select, four, leaf = compiled(lanes)
    for number in (-128, -1, 0, 1, 127):
        check_select(select, lanes, number)
    for first in (0, 100, 252):
        check_four(four, lanes, first)
    for at in (0, 5):
        check_leaf(leaf, lanes, at)


def check_select(run, lanes, number):
    stream = np.random.default_rng(lanes)
    slots = stream.integers(0, 256, 4 * lanes).astype(np.uint8)
    keys = np.arange(-128, 128).astype(np.int8)
    expected = slots.copy()
    for column in range(0, 257 - lanes, 3):
        left, right = expected[7 : 7 + lanes], expected[lanes : 2 * lanes]
        expected[2 * lanes + 1 : 3 * lanes + 1] = np.where(
            number > keys[column : column + lanes], left, right
        )
        run(slots, keys, 7, lanes, column, four_times(number), 2 * lanes + 1)
        assert (slots == expected).all()


def check_four(run, lanes, first):
    stream = np.random.default_rng(first)
    keys = stream.integers(-128, 128, 400).astype(np.int8)
    slots = np.zeros(200, dtype=np.uint8)
    bytes_ = [*stream.integers(-128, 128, 3).tolist(), first]
    numbers = np.array([0] * 4 + [four_times(byte) for byte in bytes_], dtype=np.uint32)
    places = (3, 100, 230)
    run(slots, keys, tuple(map(uint64, places)), numbers, 9)
    top, left, right = (keys[c : c + lanes] >= byte for c, byte in zip(places, bytes_, strict=False))
    expected = first + 2 * top + np.where(top, right, left)
    assert slots[9 : 9 + lanes].tolist() == expected.tolist()
    assert not slots[:9].any()
    assert not slots[9 + lanes :].any()


def check_leaf(run, lanes, at):
    stream = np.random.default_rng(at)
    keys = stream.integers(-128, 128, 5 * STEP).astype(np.int8)
    columns = stream.integers(0, 5, at + 7).astype(np.uint16)
    numbers = stream.integers(-128, 128, at + 7)
    slots = np.full(200, 77, dtype=np.uint8)
    run(slots, keys, columns, np.array([four_times(number) for number in numbers.tolist()]), at, 9)
    node = np.zeros(lanes, dtype=np.int64)
    for _ in range(DEPTH):
        values = keys[STEP * columns[at + node].astype(np.int64) + np.arange(lanes)]
        node = 2 * node + 1 + (values >= numbers[at + node])
    assert slots[9 : 9 + lanes].tolist() == (node - 7).tolist()
    assert (np.delete(slots, np.s_[9 : 9 + lanes]) == 77).all()
