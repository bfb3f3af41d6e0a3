"""Lowering by values: what plain Numba computes, with less code, and none of it where Numba is another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime import _nrt_python, rtsys
from numba.core.typed_passes import NativeLowering

from mcrank.kernels import kernel
from mcrank.kernels.entry import KernelCompiler
from mcrank.kernels.lowering import ValueLowering, by_values
from mcrank.kernels.tested import NEWEST_TESTED, TRIED, was_tried


def elements(table, line, flags, i, j):
    """Elements by indices of every kind: from the end, unsigned, narrow, of one axis and of two."""
    total = 0.0
    unsigned = np.uint8(i % 2)
    total += table[i, j] + 2 * table[-1, np.int16(j)] + 3 * table[unsigned, -2]
    total += 5 * line[i] + 7 * line[np.uint32(j)] + 11 * line[-1]
    if flags[i]:
        total += 13
    table[np.int8(i), j] = total
    line[-2] = i  # an integer in an array of floats
    flags[j] = total > 10
    row = table[i]  # a view
    row[0] = 17
    return total + row[-1]


def only_elements(table, line, flags, i, j):
    """Elements, and nothing that makes an array."""
    table[i, j] = line[j] + table[-1, i]
    line[i] = table[j, 0]
    flags[i] = line[0] > table[0, 0]


def ways(values, n):
    """Variables assigned before, in and after loops, on some ways only, and used far from there."""
    first = values[0]
    low, high = 0, n - 1
    kept = -1.0
    while low < high:
        left, right = values[low], values[high]
        if left < right:
            step = 1
            if left < first:
                kept = left
                if low > 2:
                    break
        elif left == right:
            low += 1
            continue
        else:
            step = 2
            first = right
        for i in range(low, high, step):
            mid = values[i] + first
            if mid > 3 * kept:
                kept = mid / 2
        low += step
        high -= 1
    return first, kept, low, high


def made(n):
    """Arrays whose references are counted, replaced in a loop, in a tuple and in an expression."""
    best = np.zeros(n)
    pair = (best, np.ones(n))
    for i in range(5):
        other = pair[0] + i * pair[1]
        if i % 2:
            best = other
            pair = (best, pair[0])
    return best.sum() + len(pair[1]) + (pair[1] * 2).max()


numbers = st.floats(-100, 100, width=32)


@given(table=arrays(np.float64, (3, 4), elements=numbers), i=st.integers(-3, 2), j=st.integers(0, 3))
def test_elements_are_those_of_python(table, i, j):
    line, flags = np.arange(4.0), np.array([True, False, True, False])
    given_, expected = ([a.copy() for a in (table, line, flags)] for _ in range(2))
    assert ELEMENTS(*given_, i, j) == elements(*expected, i, j)
    for ours, theirs in zip(given_, expected, strict=True):
        assert np.array_equal(ours, theirs)


@given(values=arrays(np.float64, st.integers(1, 12), elements=st.integers(0, 5).map(float)))
def test_variables_are_those_of_python(values):
    assert WAYS(values, len(values)) == ways(values, len(values))


def test_arrays_that_are_counted_stay_and_go():
    assert MADE(4) == made(4)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(10):
        MADE(100)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


def test_arrays_in_the_order_of_columns_and_with_gaps():
    table = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    line = np.arange(8.0)[::2]
    flags = np.array([True, False, True, False])
    copies = table.copy(), line.copy(), flags.copy()
    assert elements(*copies, 1, 2) == ELEMENTS(table, line, flags, 1, 2)
    assert np.array_equal(table, copies[0])
    assert np.array_equal(line, copies[1])


@pytest.mark.skipif(not was_tried(numba.__version__), reason="code is written as this Numba writes it")
def test_less_code_is_written(monkeypatch):
    written = []
    take = CPUCodeLibrary.add_ir_module
    monkeypatch.setattr(
        CPUCodeLibrary, "add_ir_module", lambda self, m: (written.append(str(m)), take(self, m))
    )
    kinds = "(float64[:,::1],float64[::1],boolean[::1],int64,int64)"
    sizes = []
    for compiler in (Compiler, KernelCompiler):
        alone: Any = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "_nrt": False}
        njit(pipeline_class=compiler, **alone)(only_elements).compile(kinds)
        sizes.append(max(map(len, written)))
        written.clear()
    assert sizes[1] < sizes[0] / 2


@pytest.mark.parametrize("version", ["0.61.0", "0.99.1", "unknown"])
def test_another_numba_goes_its_own_way(version):
    pipeline = SimpleNamespace(passes=[(NativeLowering, "lower")])
    assert by_values([pipeline], version)[0].passes == [(NativeLowering, "lower")]


def test_the_newest_numba_was_tried():
    assert NEWEST_TESTED in TRIED
    compiler = ELEMENTS._compiler.pipeline_class
    assert compiler is not Compiler
    assert ValueLowering().lowering_class.__name__ == "ValueLower"


ELEMENTS = kernel(allocates=True)(elements)
WAYS = kernel()(ways)
MADE = kernel(allocates=True)(made)
