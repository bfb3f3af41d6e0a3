"""How compiled functions are declared."""

from __future__ import annotations

import numpy as np
from numba import njit

from mcrank.kernels import step


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


def test_a_step_compiles_once_for_a_literal_and_a_number():
    compiled = []

    @step()
    def seen(i):
        return i + 1

    @njit
    def both(i):
        return seen(0) + seen(i)

    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, happened):
            compiled.append(happened.data["dispatcher"].py_func.__name__)

        def on_end(self, happened):
            pass

    with event.install_listener("numba:compile", Listener()):
        assert both(1) == 3
    assert compiled.count("seen") == 1
