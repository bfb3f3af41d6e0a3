"""How compiled functions are declared."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.caching import NullCache
from numba.core.errors import NumbaError

from mcrank.kernels import kernel, step
from mcrank.kernels.linked import LinkedLibrary


@step()
def bump(values, i):
    values[i] += 1.0


@njit
def bump_all(values):
    for i in range(len(values)):
        bump(values, i)


def test_a_step_runs_in_kernels_and_called_by_mistake_from_python():
    values = np.zeros(3)
    bump_all(values)
    bump(values, 1)
    assert values.tolist() == [1.0, 2.0, 1.0]


class Listener(event.Listener):
    """Hears which functions are compiled."""

    def __init__(self):
        self.compiled = []

    def on_start(self, happened):
        self.compiled.append(happened.data["dispatcher"].py_func.__name__)

    def on_end(self, happened):
        pass


def test_a_step_compiles_once_for_a_literal_and_a_number():
    @step()
    def seen(i):
        return i + 1

    @njit
    def both(i):
        return seen(0) + seen(i)

    heard = Listener()
    with event.install_listener("numba:compile", heard):
        assert both(1) == 3
    assert heard.compiled.count("seen") == 1


@step(shared=True, error_model="numpy")
def share(values, i):
    values[i] = np.float64(values[i]) / np.float64(len(values) - 3)
    return i


@step(shared=True, outer=True)
def share_two(values, i):
    return share(values, i) + share(values, i + 1)


@step()
def share_first(values):
    return share(values, np.int64(0))


@kernel(error_model="python")
def share_all(values):
    return share_first(values) + share_two(values, np.int64(1))


def test_a_shared_step_is_compiled_once_for_kernels_and_steps_and_has_no_machine_code():
    heard = Listener()
    values = np.array([1.0, -2.0, 0.0])
    with event.install_listener("numba:compile", heard):
        assert share_all(values) == 3
    # By its own error model: one that raises would have ended here.
    assert np.array_equal(values, [np.inf, -np.inf, np.nan], equal_nan=True)
    if heard.compiled:  # else the kernel was on disk
        assert heard.compiled.count("share") == 1
        (made,) = share._mcrank_dispatcher.overloads.values()
        assert isinstance(made.library, LinkedLibrary)
    assert share(values, 1) == 1


def test_a_kernel_that_makes_arrays_without_saying_so_is_refused():
    def reversed_copy(values):
        found = np.empty_like(values)
        for i in range(len(values)):
            found[i] = values[len(values) - 1 - i]
        return found

    with pytest.raises(NumbaError, match=r"NRT required|returning of array"):
        kernel()(reversed_copy)(np.arange(3.0))
    told = kernel(allocates=True)(reversed_copy)
    np.testing.assert_array_equal(told(np.arange(3.0)), [2.0, 1.0, 0.0])


def test_a_kernel_counts_no_references_unless_it_makes_arrays():
    def first_of(pair):
        values, others = pair
        return values[0] + others[0]

    for allocates in (False, True):
        counting = kernel(allocates=allocates)(first_of)
        counting._cache = NullCache()  # what comes from disk cannot be looked into
        counting((np.ones(2), np.ones(2)))
        (text,) = counting.inspect_llvm().values()
        assert ("NRT_incref" in text or "NRT_decref" in text) == allocates
