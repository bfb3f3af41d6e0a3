"""Residuals of least squares in one pass, against NumPy's two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcrank.losses.quantize import GRADIENT_BITS
from mcrank.losses.regression import STEP, RegressionLoss, round_residuals
from mcrank.threads import run_all


def every(task, items):
    for item in items:
        task(item)


@given(st.integers(0, 2**32), st.integers(0, 70), st.integers(-40, 40))
@example(0, 0, 0)
def test_rounded_as_numpy_rounds(seed, n, exponent):
    """Halves of the unit go to the even neighbour."""
    stream = np.random.default_rng(seed)
    unit = 2.0**exponent
    wanted = stream.integers(-(2**24), 2**24, n) / 2.0 ** stream.integers(0, 3, n)
    scores = stream.integers(-9, 9, n) * unit
    q = np.empty(n, dtype=np.int32)
    largest = round_residuals(wanted * unit + scores, scores, unit, q)
    residuals = (wanted * unit + scores) - scores
    assert np.array_equal(q, np.rint(residuals / unit))
    assert largest == np.abs(residuals).max(initial=0.0)


@pytest.mark.parametrize("run", [every, lambda task, items: run_all(task, items, 2)])
def test_the_unit_is_that_of_these_residuals_whatever_it_was_before(run):
    stream = np.random.default_rng(5)
    target = stream.normal(size=STEP + 1000)
    loss = RegressionLoss(target, "l2")
    gradients = loss.allocate("mse")
    for scale in (1.0, 1.0, 1e-3, 40.0, 1e-200, 0.0, 1e300, 1.0):
        residuals = scale * stream.normal(size=len(target))
        scores = (target - residuals).reshape(1, -1)
        residuals = target - scores[0]
        loss.fill(scores, gradients, run)
        largest = np.abs(residuals).max()
        if largest > 0:
            assert largest / gradients.unit < 2**GRADIENT_BITS <= 2 * largest / gradients.unit
        assert np.array_equal(gradients.q[0], np.rint(residuals / gradients.unit))
