"""Tuples that are handed on as a pointer: the same values, whoever asks, and little to pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import typeof, types

from mcrank.kernels import kernel, step
from mcrank.kernels.handed import Handed, handed, taken


class Numbers(NamedTuple):
    """A tuple without arrays."""

    first: int
    yes: bool


class Inner(NamedTuple):
    """A tuple of arrays."""

    floats: npt.NDArray[np.float64]
    table: npt.NDArray[np.int32]


class Outer(NamedTuple):
    """Some of everything."""

    numbers: Numbers
    inner: Inner
    last: Any


@step(shared=True)
def _weigh(g, times):  # type: ignore[no-untyped-def]
    """Read each kind of field, and write into an array."""
    g.inner.table[1, 0] += times
    numbers = g.numbers
    return g.inner.floats[2] * numbers.first + g.last + (100 if numbers.yes else 0)


@step(shared=True)
def _total(inner):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(inner.floats)):
        total += inner.floats[i] * inner.table.shape[1]
    return total


@kernel()
def _use(numbers, inner, last, times):  # type: ignore[no-untyped-def]
    g = handed(Outer(numbers, inner, last))
    found = 0.0
    for _ in range(times):
        found += _weigh(g, times)
    return found, _total(taken(g.inner)), _total(g.inner), taken(g.numbers).first


def _outer() -> Outer:
    inner = Inner(np.array([1.0, 2.0, 4.0]), np.zeros((2, 3), dtype=np.int32))
    return Outer(Numbers(3, True), inner, 0.5)


def test_values_are_those_of_the_tuple():
    outer = _outer()
    found = _use(outer.numbers, outer.inner, outer.last, 2)
    assert found == (2 * (4.0 * 3 + 0.5 + 100), 21.0, 21.0, 3)
    assert outer.inner.table.tolist() == [[0, 0, 0], [4, 0, 0]]


def test_each_call_has_its_own():
    outer, other = _outer(), _outer()._replace(numbers=Numbers(5, False), last=-1.0)
    assert _use(outer.numbers, outer.inner, outer.last, 1)[0] == 112.5
    assert _use(other.numbers, other.inner, other.last, 1)[0] == 19.0


def test_attributes_that_hold_arrays_are_places():
    kind = Handed(typeof(_outer()))
    assert isinstance(kind.field("inner")[1], Handed)
    assert kind.field("inner")[1].field("table") == (1, typeof(_outer().inner.table))
    assert kind.field("numbers")[1] == typeof(_outer().numbers)
    assert kind.field("last") == (2, types.float64)
    assert kind == Handed(typeof(_outer()))
    assert kind != Handed(typeof(_outer().inner))
