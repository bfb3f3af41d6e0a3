"""Shortcuts through Numba: the same machine code, and none where Numba is another."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mcrank.kernels.shortcuts import take_shortcuts
from mcrank.kernels.tested import NEWEST_TESTED, TRIED

# Inlined twice and in each other, operators on several types, overloads under different options, a generator,
# variables that are assigned again and again, in branches and loops, or on some ways only.
CODE = """
import sys
from typing import NamedTuple
import numpy as np
from numba import njit
from mcrank.kernels import kernel, step

if sys.argv[1] == "short":
    from mcrank.kernels.shortcuts import take_shortcuts
    assert take_shortcuts()

class Pair(NamedTuple):
    low: np.ndarray
    high: np.ndarray

@njit(inline="always")
def middle(pair, i):
    return (pair.low[i] + pair.high[i]) / 2

@njit(inline="always")
def apart(pair, i):
    if pair.low[i] > pair.high[i]:
        return 0.0
    return abs(middle(pair, i) - pair.low[i])

@step(fastmath={"reassoc"})
def least(values):
    least = np.inf
    for value in values:
        least = min(least, value)
    return least

@step(shared=True)
def many(n, values):
    for i in range(n):
        values[i] = max(values[i], least(values[i:]), float(i % 3))
    return min(n, len(values))

@step()
def turning(values):
    low, high, turns = 0, len(values) - 1, 0
    while low < high:
        left = values[low]
        if left < values[high]:
            low, left = low + 1, left + high
            for i in range(low):
                if i > turns:
                    turns, last = turns + i, i
        elif turns > 3:
            high -= 1
            left = -left
            last = high
        else:
            low, high = low + turns, high - 1
            turns = turns + 1
        values[low] = left
    if turns > 100:
        turns = last
    return turns + low

@njit
def every(n):
    for i in range(n):
        yield i

@kernel(allocates=True)
def sample(low, high):
    pair = Pair(low, high)
    found = np.zeros(len(low))
    for i in every(len(low)):
        found[i] += middle(pair, i) + min(apart(pair, i), 3.0) + least(low)
    return many(np.int64(len(found)), found), found.sum(), turning(found)

print(sample(np.arange(3.0), np.ones(3)))
for code in sample.inspect_asm().values():
    print(code)
"""


@pytest.mark.slow
def test_machine_code_is_the_same_with_shortcuts(tmp_path):
    file = tmp_path / "sample.py"
    file.write_text(CODE)
    printed = []
    for way in ("long", "short"):
        folder = {"MCRANK_CACHE_DIR": str(tmp_path / way)}
        command = [sys.executable, str(file), way]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | folder)
        printed.append(done.stdout)
    assert len(printed[0]) > 1000
    assert printed[0] == printed[1]


def test_another_numba_is_left_alone():
    assert not take_shortcuts("0.99.0")
    assert not take_shortcuts("unknown")


def test_the_newest_numba_was_tried():
    assert NEWEST_TESTED in TRIED
