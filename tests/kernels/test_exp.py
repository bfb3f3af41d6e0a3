"""exp(x) for x <= 0 against the C library."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mcrank.kernels.exp import exp_negative


@njit
def exponentials(x, out):
    for i in range(len(x)):
        out[i] = exp_negative(x[i])


def test_exp_negative_over_its_range():
    stream = np.random.default_rng(0)
    x = np.r_[0.0, -0.0, -700.0, -stream.uniform(0, 700, 20000), -(10.0 ** stream.uniform(-320, 2.8, 20000))]
    edges = -np.log(2) * (np.arange(1000) + 0.5)  # where the power of two changes
    x = np.r_[x, edges, np.nextafter(edges, 0), np.nextafter(edges, -1e9)]
    out = np.empty_like(x)
    exponentials(x, out)
    exact = np.array([math.exp(max(v, -700.0)) for v in x])
    assert np.abs(out / exact - 1).max() < 1e-14
    assert out[0] == 1.0


def test_exp_negative_stays_where_it_is_below_the_range():
    out = np.empty(3)
    exponentials(np.array([-701.0, -1e10, -1e308]), out)
    assert (out == out[0]).all()
    assert 0 < out[0] < 1e-300
